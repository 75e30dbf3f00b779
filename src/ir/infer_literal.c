// SPDX-License-Identifier: Apache-2.0
//
// Type inference of what takes its type from its place: number literals, and sizes used as
// values. Once a body is inferred, the types that it would not find again are written down:
// what inlines or rewrites it later knows nothing of its place.
#include "ir/internal.h"

// Which operand is the first that the type of an expression comes from: no condition, and
// no value of a name.
static int first_typed(const Expr *e)
{
    return e->kind == E_LET || expr_is_op(e, OP_SELECT);
}

// Made of literals alone, or of literals and sizes; which of the operands count.
static bool follows_place(const Expr *e, bool sizes)
{
    if (e->kind == E_NUM)
        return sizes;
    if (e->kind == E_LITERAL)
        return !e->boolean;
    if (e->kind != E_OP && e->kind != E_LET)
        return false;
    OpTypes types = e->kind == E_OP ? op_info[e->op].types : TY_SELECT;
    if (types != TY_ARITH && types != TY_INTEGER && types != TY_FLOAT && types != TY_SELECT)
        return false;
    for (int i = first_typed(e); i < e->narg; i++)
        if (!follows_place(e->arg[i], sizes))
            return false;
    return true;
}

bool infer_adapts(const Expr *e)
{
    return follows_place(e, false);
}

bool infer_follows(const Infer *in, const Expr *e)
{
    return follows_place(e, !in->int_sizes);
}

bool infer_has_floating(const Expr *e)
{
    if (e->kind == E_LITERAL)
        return e->floating;
    for (int i = first_typed(e); i < e->narg; i++)
        if (infer_has_floating(e->arg[i]))
            return true;
    return false;
}

bool infer_of_sizes(const Infer *in, const Expr *e)
{
    return infer_follows(in, e) && !infer_adapts(e);
}

static bool has_float_operation(const Expr *e)
{
    bool found = e->kind == E_OP && op_info[e->op].types == TY_FLOAT;
    for (int i = first_typed(e); i < e->narg && !found; i++)
        found = has_float_operation(e->arg[i]);
    return found;
}

bool infer_is_count(const Infer *in, const Expr *e)
{
    return infer_of_sizes(in, e) && !infer_has_floating(e) && !has_float_operation(e);
}

const Type *infer_count_type(const Type *want)
{
    if (!want || !type_is_scalar(want) || want->scalar == S_INT)
        return NULL;
    const ScalarInfo *info = &scalar_info[want->scalar];
    bool holds = info->floating || (info->integer && info->bytes >= 4);
    return holds ? type_scalar(want->scalar) : NULL;
}

// Writing types down -------------------------------------------------------------------

static Expr *conversion(Infer *in, Expr *e, const Type *type)
{
    Expr *cast = expr_op(in->ir, op_cast(type->scalar), e, NULL, NULL);
    cast->span = e->span;
    cast->type = type;
    return cast;
}

// Writes the type of a literal down, unless it has that type by itself.
static Expr *pin_literal(Infer *in, Expr *e, const Type *itself)
{
    if (itself && type_equal(in->ir->arith, e->type, itself))
        return e;
    if (e->type->scalar == S_FLOAT) {
        e->floating = true;
        return e;
    }
    return conversion(in, e, e->type);
}

// A count of another type than int is an int that is converted.
static Expr *pin_count(Infer *in, Expr *e)
{
    const Type *type = e->type;
    if (type->scalar == S_INT)
        return e;
    e->type = type_scalar(S_INT);
    return conversion(in, e, type);
}

Expr *infer_pin_counts(Infer *in, Expr *e)
{
    for (int i = 0; i < e->narg; i++)
        e->arg[i] = infer_pin_counts(in, e->arg[i]);
    if (e->fun)
        e->fun = infer_pin_counts(in, e->fun);
    return infer_is_count(in, e) ? pin_count(in, e) : e;
}

Expr *infer_pin_value(Infer *in, Expr *e)
{
    if (infer_is_count(in, e))
        return infer_pin_counts(in, e);
    bool follows = infer_follows(in, e);
    for (int i = first_typed(e); i < e->narg && (follows || e->kind == E_TUPLE); i++)
        e->arg[i] = infer_pin_value(in, e->arg[i]);
    return follows && e->kind == E_LITERAL ? pin_literal(in, e, type_scalar(S_INT)) : e;
}

// The same for those that have other types in `alone`, the same expression without a type
// that is wanted of it.
static Expr *pin_unlike(Infer *in, Expr *e, const Expr *alone)
{
    for (int i = 0; i < e->narg; i++)
        e->arg[i] = pin_unlike(in, e->arg[i], alone->arg[i]);
    if (e->fun)
        e->fun = pin_unlike(in, e->fun, alone->fun);
    return e->kind == E_LITERAL && !e->boolean ? pin_literal(in, e, alone->type) : e;
}

static void forget_type(const Expr *e, void *none)
{
    ((Expr *)e)->type = NULL;
}

Expr *infer_pin_declared(Infer *in, Expr *body)
{
    AutoArena *arena = arena_new();
    Diags quiet = {.arena = arena};
    Expr *alone = expr_clone(in->ir, body);
    expr_each(alone, forget_type, NULL);
    ir_infer_expr(in->ir, alone, &quiet);
    return pin_unlike(in, body, alone);
}

void infer_pin_initials(Infer *in, Expr *e)
{
    for (int i = 0; i < e->narg; i++)
        infer_pin_initials(in, e->arg[i]);
    if (e->fun)
        infer_pin_initials(in, e->fun);
    bool initial = e->kind == E_PATTERN &&
                   (e->pattern == P_ITERATE || pattern_info[e->pattern].data == 2);
    if (initial)
        e->arg[0] = infer_pin_declared(in, e->arg[0]);
}
