// SPDX-License-Identifier: Apache-2.0
//
// Type inference of expressions, bottom-up: the arguments of a pattern come before its
// function, so that the parameters of a lambda have types before its body is seen.
// Types flow down only to number literals and sizes, as the type "wanted". Calls of
// definitions are inlined on the way. After an error the expressions around it stay quiet.
//
// Codes: T001 operands differ, T002 wrong operand, T003 argument count, T004 argument
// type, T005 result type, T006 not an array, T007 index type, T008 index out of bounds,
// T009 no such component, T010 function argument, T011 what that function returns,
// T012 zip, T013 a length, T014 condition of an if, T015 vector width, T016 not positive,
// T017 called before its definition ends, T018 signature of a fun, T019 too much inlined,
// T024 too many scalars in tuples, T025 too many operations.
//
// It converts sizes and nothing else: int to float and float to double must be written.
// nesting.c checks where lowered patterns may stand.
#include <math.h>

#include "ir/internal.h"

// Literals ---------------------------------------------------------------------------

static const Type *infer_literal(Infer *in, const Expr *e, const Type *want)
{
    if (e->boolean)
        return type_scalar(S_BOOL);
    bool is_float = want && type_is_scalar(want) && type_is_float(want);
    if (is_float && isfinite(e->number) && !isfinite(scalar_round(want->scalar, e->number)))
        return diag_null(in->diags, e->span, "T002", "%.9g does not fit in %s", e->number,
                         scalar_info[want->scalar].name);
    if (is_float || e->floating)
        return is_float ? want : type_scalar(S_FLOAT);
    const Type *type = want && type_is_integer(want) ? want : type_scalar(S_INT);
    if (scalar_round(type->scalar, e->number) == e->number)
        return type;
    return diag_null(in->diags, e->span, "T002", "%.0f does not fit in %s", e->number,
                     scalar_info[type->scalar].name);
}

// Operations ---------------------------------------------------------------------------

static const Type *with_scalar(const Type *shape, Scalar scalar)
{
    return shape->kind == T_VECTOR ? type_vector(scalar, shape->width)
                                   : type_scalar(scalar);
}

// What the literals among the operands should become, given one typed operand.
static const Type *literal_hint(const Expr *e, const Type *typed)
{
    if (!type_is_scalar(typed))
        return typed;
    if (op_info[e->op].types == TY_SELECT)
        return typed;
    if (op_info[e->op].types == TY_FLOAT && type_is_integer(typed))
        return type_scalar(S_FLOAT);
    return type_scalar(typed->scalar);
}

static const Type *all_literal_want(const Expr *e, const Type *want)
{
    bool floats = want && type_is_scalar(want) && type_is_float(want);
    return !floats && infer_has_floating(e) ? type_scalar(S_FLOAT) : want;
}

void infer_quiet(Infer *in, Quiet *quiet)
{
    int conditions = in->program ? in->program->conditions.len : 0;
    *quiet =
        (Quiet){in->diags, {.arena = in->ir->arena}, conditions, in->too_deep, in->spread};
    in->diags = &quiet->diags;
}

void infer_aloud(Infer *in, const Quiet *quiet, bool kept)
{
    in->diags = quiet->said;
    in->too_deep = quiet->too_deep;
    if (kept)
        return;
    in->spread = quiet->spread;
    if (in->program)
        in->program->conditions.len = quiet->conditions;
}

// The type of an expression in which all sizes are ints; NULL if it has none, of which
// nothing is said.
static const Type *infer_with_int_sizes(Infer *in, Expr *e, const Type *want)
{
    Quiet quiet;
    infer_quiet(in, &quiet);
    in->int_sizes = true;
    const Type *type = infer_expr(in, e, want);
    in->int_sizes = false;
    infer_aloud(in, &quiet, type);
    return type;
}

// What a size, or an expression of sizes and literals, among the operands should become:
// what the typed ones are, else what is wanted of all. Operations on floating numbers take
// ints, and make floats of them.
static const Type *size_want(Infer *in, const Expr *op, const Expr *e, const Type *typed,
                             const Type *want)
{
    bool floats = op_info[op->op].types == TY_FLOAT;
    if (floats && typed && (!type_is_float(typed) || infer_is_count(in, e)))
        return NULL;
    if (floats && !typed && want && type_is_float(want) && want->scalar == S_FLOAT &&
        infer_is_count(in, e))
        return NULL;
    return typed ? literal_hint(op, typed) : all_literal_want(op, want);
}

// An operand that is not made of literals, where others are of type `typed`, or, before any
// of them has a type, one is wanted. An operation on floating numbers takes an int for what
// it wants, so that sizes in such an operand need no other type if ints will do.
static const Type *infer_operand(Infer *in, const Expr *op, Expr *e, const Type *typed,
                                 const Type *want)
{
    if (infer_of_sizes(in, e))
        return infer_expr(in, e, size_want(in, op, e, typed, want));
    const Type *hint = typed ? typed : want;
    bool free = !in->int_sizes && hint && op_info[op->op].types == TY_FLOAT;
    const Type *type = free ? infer_with_int_sizes(in, e, hint) : NULL;
    return type ? type : infer_expr(in, e, hint);
}

// In which turn an operand is inferred: those with types of their own come first, then
// sizes, of which those that are ints come last.
static int operand_turn(Infer *in, const Expr *e)
{
    return !infer_of_sizes(in, e) ? 0 : infer_is_count(in, e) ? 2 : 1;
}

// Infers the operands from the first-th on: typed ones first, then literals to match.
static bool infer_operands(Infer *in, Expr *e, int first, const Type *want)
{
    const Type *typed = NULL;
    bool ok = true, any_typed = false;
    for (int turn = 0; turn < 3; turn++)
        for (int i = first; i < e->narg; i++) {
            if (infer_adapts(e->arg[i]) || operand_turn(in, e->arg[i]) != turn)
                continue;
            const Type *type =
                infer_operand(in, e, e->arg[i], typed, typed || any_typed ? NULL : want);
            any_typed = true;
            ok = ok && type;
            typed = typed && type_is_scalar(typed) && type_is_float(typed) ? typed : type;
        }
    const Type *hint = !any_typed ? all_literal_want(e, want)
                       : typed    ? literal_hint(e, typed)
                                  : NULL;
    for (int i = first; ok && i < e->narg; i++)
        if (infer_adapts(e->arg[i]))
            ok = infer_expr(in, e->arg[i], hint) != NULL;
    return ok;
}

static const Type *operands_differ(Infer *in, const Expr *e, const Type *a, const Type *b)
{
    const char *hint = "", *to = "";
    if (type_is_scalar(a) && type_is_scalar(b) && a->scalar != b->scalar) {
        Scalar wide = MAX(a->scalar, b->scalar);
        hint = "; nothing is converted silently: write ";
        to = arena_printf(in->ir->arena, "%s(...)", scalar_info[wide].name);
    }
    return diag_null(in->diags, e->span, "T001", "`%s` of %s and %s%s%s",
                     op_info[e->op].text, infer_show(in, a), infer_show(in, b), hint, to);
}

// The type of two operands together; a scalar meets a vector of its type by broadcast.
// ints_float: an integer meeting a floating type becomes one.
static const Type *join_types(Infer *in, const Expr *e, const Type *a, const Type *b,
                              bool ints_float)
{
    if (type_equal(in->ir->arith, a, b))
        return a;
    if (!type_is_scalar(a) || !type_is_scalar(b))
        return operands_differ(in, e, a, b);
    const Type *x = a, *y = b;
    if (ints_float && type_is_integer(x))
        x = with_scalar(x, y->scalar);
    else if (ints_float && type_is_integer(y))
        y = with_scalar(y, x->scalar);
    if (x->scalar != y->scalar)
        return operands_differ(in, e, a, b);
    if (x->kind == T_VECTOR && y->kind == T_VECTOR && x->width != y->width)
        return operands_differ(in, e, a, b);
    return x->kind == T_VECTOR ? x : y;
}

static const Type *wrong_operand(Infer *in, const Expr *e, const char *needs,
                                 const Type *got)
{
    return diag_null(in->diags, e->span, "T002", "`%s` needs %s, not %s",
                     op_info[e->op].text, needs, infer_show(in, got));
}

// The common type of the inferred operands from the first-th on, or NULL.
static const Type *common_type(Infer *in, const Expr *e, int first)
{
    bool ints_float = op_info[e->op].types == TY_FLOAT;
    const Type *type = e->arg[first]->type;
    for (int i = first + 1; type && i < e->narg; i++)
        type = join_types(in, e, type, e->arg[i]->type, ints_float);
    return type;
}

// Numbers in, one common numeric type out.
static const Type *infer_numbers(Infer *in, Expr *e, const Type *want)
{
    if (!infer_operands(in, e, 0, want))
        return NULL;
    bool integers = e->op == OP_MOD || op_info[e->op].types == TY_INTEGER;
    for (int i = 0; i < e->narg; i++) {
        const Type *type = e->arg[i]->type;
        if (!type_is_scalar(type) || type->scalar == S_BOOL)
            return wrong_operand(in, e, "numbers", type);
        if (integers && !type_is_integer(type))
            return wrong_operand(in, e, "integer operands", type);
    }
    return common_type(in, e, 0);
}

static const Type *infer_floating(Infer *in, Expr *e, const Type *want)
{
    const Type *type = infer_numbers(in, e, want);
    return type && type_is_integer(type) ? with_scalar(type, S_FLOAT) : type;
}

static const Type *infer_comparison(Infer *in, Expr *e)
{
    if (!infer_operands(in, e, 0, NULL))
        return NULL;
    bool equality = e->op == OP_EQ || e->op == OP_NE;
    for (int i = 0; i < e->narg; i++) {
        const Type *type = e->arg[i]->type;
        if (type->kind == T_VECTOR)
            return wrong_operand(
                in, e, "scalars (a fun applies to vectors component by component)", type);
        if (type->kind != T_SCALAR || (type->scalar == S_BOOL && !equality))
            return wrong_operand(in, e, "numbers", type);
    }
    return common_type(in, e, 0) ? type_scalar(S_BOOL) : NULL;
}

static bool is_bool(const Type *type)
{
    return type->kind == T_SCALAR && type->scalar == S_BOOL;
}

static const Type *infer_logic(Infer *in, Expr *e)
{
    if (!infer_operands(in, e, 0, NULL))
        return NULL;
    for (int i = 0; i < e->narg; i++)
        if (!is_bool(e->arg[i]->type))
            return wrong_operand(in, e, "bool", e->arg[i]->type);
    return type_scalar(S_BOOL);
}

static Scalar cast_target(Op op)
{
    Scalar to = 0;
    while (op_cast(to) != op)
        to++;
    return to;
}

static const Type *infer_cast(Infer *in, Expr *e)
{
    Scalar target = cast_target(e->op);
    // So that double(0.1) is not 0.1 rounded to float.
    bool sizes = infer_of_sizes(in, e->arg[0]) && !infer_is_count(in, e->arg[0]);
    const Type *want = infer_adapts(e->arg[0]) || sizes ? type_scalar(target) : NULL;
    const Type *type = sizes ? infer_with_int_sizes(in, e->arg[0], NULL) : NULL;
    if (!type)
        type = infer_expr(in, e->arg[0], want);
    if (!type)
        return NULL;
    if (!type_is_scalar(type))
        return wrong_operand(in, e, "a scalar or vector", type);
    return with_scalar(type, target);
}

static const Type *infer_select(Infer *in, Expr *e, const Type *want)
{
    const Type *cond = infer_expr(in, e->arg[0], type_scalar(S_BOOL));
    if (!infer_operands(in, e, 1, want) || !cond)
        return NULL;
    if (!is_bool(cond))
        return diag_null(in->diags, e->arg[0]->span, "T014",
                         "the condition of `if` must be bool, not %s",
                         infer_show(in, cond));
    const Type *type = common_type(in, e, 1);
    if (type && type_holds_array(type))
        return wrong_operand(in, e, "scalars, vectors or tuples of them", type);
    return type;
}

static const Type *infer_op(Infer *in, Expr *e, const Type *want)
{
    if (e->narg != op_info[e->op].args)
        return diag_null(in->diags, e->span, "T003", "`%s` takes %d arguments, not %d",
                         op_info[e->op].text, op_info[e->op].args, e->narg);
    switch (op_info[e->op].types) {
    case TY_ARITH:
    case TY_INTEGER: return infer_numbers(in, e, want);
    case TY_FLOAT: return infer_floating(in, e, want);
    case TY_COMP: return infer_comparison(in, e);
    case TY_LOGIC: return infer_logic(in, e);
    case TY_CAST: return infer_cast(in, e);
    case TY_SELECT: return infer_select(in, e, want);
    }
    BUG("operation %d", (int)e->op);
}

// Calls --------------------------------------------------------------------------------

// Whether a call may be typed: its function is inferred already, hence not recursive.
static bool callable(Infer *in, const Expr *e)
{
    const Function *f = e->callee;
    if (list_has(in->failed.at, in->failed.len, f))
        return false;
    if (in->program && !list_has(in->ready.at, in->ready.len, f))
        return diag_error(in->diags, e->span, "T017",
                          "`%s` is called before its definition ends: there is no "
                          "recursion",
                          f->name);
    if (e->narg != f->nparam)
        return diag_error(in->diags, e->span, "T003", "`%s` takes %d argument%s, not %d",
                          f->name, f->nparam, f->nparam == 1 ? "" : "s", e->narg);
    return true;
}

static bool wrong_argument(Infer *in, const Expr *e, int i)
{
    return diag_error(
        in->diags, e->arg[i]->span, "T004", "argument `%s` of `%s` must be %s, not %s",
        e->callee->params[i]->name, e->callee->name,
        infer_show(in, e->callee->params[i]->type), infer_show(in, e->arg[i]->type));
}

// A fun on vectors applies component by component; *width collects their common width.
static bool accept_fun_argument(Infer *in, const Expr *e, int i, int *width)
{
    const Type *need = e->callee->params[i]->type, *got = e->arg[i]->type;
    if (type_equal(in->ir->arith, need, got))
        return true;
    if (need->kind != T_SCALAR || got->kind != T_VECTOR || got->scalar != need->scalar)
        return wrong_argument(in, e, i);
    if (*width && *width != got->width)
        return diag_error(in->diags, e->arg[i]->span, "T015",
                          "`%s` is applied to vectors of widths %d and %d", e->callee->name,
                          *width, got->width);
    *width = got->width;
    return true;
}

static const Type *infer_fun_call(Infer *in, const Expr *e)
{
    int width = 0;
    bool ok = true;
    for (int i = 0; i < e->narg; i++)
        ok = accept_fun_argument(in, e, i, &width) && ok;
    if (!ok)
        return NULL;
    const Type *result = e->callee->result;
    return width && result->kind == T_SCALAR ? type_vector(result->scalar, width) : result;
}

enum { INLINED_MAX = 1000000 };

static bool is_node(const Expr *e, const void *none)
{
    return e;
}

// Definitions that call each other twice grow exponentially.
static bool small_enough(Infer *in, const Expr *e)
{
    if (in->inlined <= INLINED_MAX)
        in->inlined += expr_count(e->callee->body, is_node, NULL);
    return in->inlined <= INLINED_MAX ||
           diag_error(in->diags, e->span, "T019",
                      "inlining `%s` here makes the program too large", e->callee->name);
}

// Rewrites the call in place into `let p = a in ... body` with fresh parameters.
static const Type *inline_def_call(Infer *in, Expr *e, const Type *want)
{
    Function *f = e->callee;
    for (int i = 0; i < e->narg; i++)
        if (!type_equal(in->ir->arith, f->params[i]->type, e->arg[i]->type)) {
            wrong_argument(in, e, i);
            return NULL;
        }
    if (!small_enough(in, e))
        return NULL;
    Expr *lambda = expr_clone(in->ir, expr_lambda(in->ir, f->params, f->nparam, f->body));
    Expr *body = lambda->arg[0];
    for (int i = 0; i < e->narg; i++)
        lambda->params[i]->type = e->arg[i]->type;
    const Type *type = infer_expr(in, body, f->result ? f->result : want);
    for (int i = e->narg - 1; i >= 0; i--) {
        Span span = e->arg[i]->span;
        body = expr_let(in->ir, lambda->params[i], infer_pin_value(in, e->arg[i]), body);
        body->span = span;
        body->type = type;
    }
    Span span = e->span;
    *e = *body;
    e->span = span;
    return type;
}

// Literals and sizes take the types that the other arguments leave them.
static const Type *infer_open_call(Infer *in, Expr *e, const Type *want)
{
    Instance instance = instance_new(in->ir, e->callee);
    bool ok = callable(in, e);
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; ok && i < e->narg; i++) {
            const Type *need = e->callee->params[i]->type;
            if (infer_follows(in, e->arg[i]) != (turn == 1))
                continue;
            ok = infer_expr(in, e->arg[i], instance_type(&instance, need)) != NULL;
            if (ok)
                instance_match(&instance, need, e->arg[i]->type);
        }
    const char *open = ok ? instance_open(&instance) : NULL;
    if (open)
        return diag_null(in->diags, e->span, "T026",
                         "the arguments here do not determine `%s` of `%s`", open,
                         e->callee->name);
    if (!ok)
        return NULL;
    Function *open_callee = e->callee;
    e->callee = instance_function(&instance);
    const Type *type = inline_def_call(in, e, want);
    if (e->kind == E_CALL) // it may do with other types of its arguments
        e->callee = open_callee;
    return type;
}

static const Type *infer_call(Infer *in, Expr *e, const Type *want)
{
    if (e->callee->ngeneric)
        return infer_open_call(in, e, want);
    bool ok = callable(in, e);
    for (int i = 0; i < e->narg; i++) {
        const Type *need = i < e->callee->nparam ? e->callee->params[i]->type : NULL;
        ok = infer_expr(in, e->arg[i], need) && ok;
    }
    if (!ok)
        return NULL;
    return e->callee->is_def ? inline_def_call(in, e, want) : infer_fun_call(in, e);
}

// The rest -----------------------------------------------------------------------------

static const Type *infer_let(Infer *in, Expr *e, const Type *want)
{
    e->param->type = infer_expr(in, e->arg[0], NULL);
    return e->param->type ? infer_expr(in, e->arg[1], want) : NULL;
}

static const Type *infer_tuple(Infer *in, Expr *e, const Type *want)
{
    bool match = want && want->kind == T_TUPLE && want->n == e->narg, ok = true;
    const Type **item = NEW_ARRAY(in->ir->arena, const Type *, e->narg);
    for (int i = 0; i < e->narg; i++) {
        item[i] = infer_expr(in, e->arg[i], match ? want->item[i] : NULL);
        ok = ok && item[i];
    }
    return ok ? type_tuple(in->ir->arena, item, e->narg) : NULL;
}

static const Type *infer_get(Infer *in, Expr *e)
{
    const Type *tuple = infer_expr(in, e->arg[0], NULL);
    if (!tuple)
        return NULL;
    if (tuple->kind != T_TUPLE || e->index < 0 || e->index >= tuple->n)
        return diag_null(in->diags, e->span, "T009", "%s has no component %d",
                         infer_show(in, tuple), e->index);
    return tuple->item[e->index];
}

// An index whose value is known must lie inside a length that is known to be too short.
static bool index_may_fit(Infer *in, const Expr *e, const Type *array)
{
    ArithCtx *ctx = in->ir->arith;
    const Expr *index = e->arg[1];
    const Arith *value = index->kind == E_NUM ? index->num[0] : NULL;
    if (index->kind == E_LITERAL)
        value = arith_const(ctx, (int64_t)index->number);
    if (!value)
        return true;
    int64_t lo, hi;
    arith_range(ctx, value, &lo, &hi);
    if (hi >= 0 && !arith_le(ctx, array->len, value))
        return true;
    return diag_error(in->diags, index->span, "T008", "index %s is outside %s",
                      infer_show_arith(in, value), infer_show(in, array));
}

static const Type *infer_at(Infer *in, Expr *e)
{
    const Type *array = infer_expr(in, e->arg[0], NULL);
    const Type *index = infer_expr(in, e->arg[1], type_scalar(S_INT));
    if (!array || !index)
        return NULL;
    if (array->kind != T_ARRAY)
        return diag_null(in->diags, e->arg[0]->span, "T006",
                         "only an array has elements, not %s", infer_show(in, array));
    if (index->kind != T_SCALAR || index->scalar != S_INT)
        return diag_null(in->diags, e->arg[1]->span, "T007", "an index must be int, not %s",
                         infer_show(in, index));
    return index_may_fit(in, e, array) ? array->elem : NULL;
}

static const Type *infer_kind(Infer *in, Expr *e, const Type *want)
{
    switch (e->kind) {
    case E_LITERAL: return infer_literal(in, e, want);
    case E_PARAM: return e->param->type;
    case E_NUM: return type_scalar(S_INT);
    case E_OP: return infer_op(in, e, want);
    case E_CALL: return infer_call(in, e, want);
    case E_LET: return infer_let(in, e, want);
    case E_TUPLE: return infer_tuple(in, e, want);
    case E_GET: return infer_get(in, e);
    case E_AT: return infer_at(in, e);
    case E_LAMBDA:
        return diag_null(in->diags, e->span, "T010",
                         "a function may stand only in a pattern");
    case E_PATTERN: return infer_pattern(in, e, want);
    }
    BUG("expression kind %d", (int)e->kind);
}

// Beyond what the parser accepts, within what a stack of 8 MiB holds.
enum { DEPTH_MAX = 3000, LEAVES_MAX = 1024 };

static const Type *too_deep(Infer *in, const Expr *e)
{
    if (!in->too_deep)
        diag_error(in->diags, e->span, "T019", "nested too deeply after inlining");
    in->too_deep = true;
    return NULL;
}

// A size, or ints of sizes and literals, becomes what is wanted as a whole: N / 2 is
// rounded down before. The conversion is written down when the body has its types.
static const Type *infer_converted(Infer *in, Expr *e, const Type *want)
{
    bool may = (e->kind == E_NUM || e->kind == E_OP) && infer_count_type(want);
    if (!may || !infer_is_count(in, e))
        return infer_kind(in, e, want);
    const Type *type = infer_kind(in, e, type_scalar(S_INT));
    bool is_int = type && type->kind == T_SCALAR && type->scalar == S_INT;
    in->converts = in->converts || is_int;
    return is_int ? infer_count_type(want) : type;
}

const Type *infer_expr(Infer *in, Expr *e, const Type *want)
{
    e->type = NULL;
    in->depth++;
    const Type *type =
        in->depth > DEPTH_MAX ? too_deep(in, e) : infer_converted(in, e, want);
    in->depth--;
    if (type && type_leaves(type) > LEAVES_MAX)
        type = diag_null(in->diags, e->span, "T024",
                         "a value of more than %d scalars in tuples", LEAVES_MAX);
    e->type = type;
    return type;
}

// Programs -----------------------------------------------------------------------------

static bool scalar_signature(Infer *in, const Function *f)
{
    bool ok = f->result && type_is_scalar(f->result);
    for (int i = 0; i < f->nparam; i++)
        ok = ok && type_is_scalar(f->params[i]->type);
    return ok || diag_error(in->diags, f->span, "T018",
                            "`%s` is a fun: it takes and returns scalars; use def for "
                            "arrays and tuples",
                            f->name);
}

// What may be wrong with a declared result: lengths that are equal only for some sizes, or
// literals, which are float or int where nothing asks for another type.
static const char *result_hint(const Type *declared, const Type *type)
{
    while (declared->kind == T_ARRAY && type->kind == T_ARRAY)
        declared = declared->elem, type = type->elem;
    if (declared->kind == T_SCALAR && type->kind == T_SCALAR)
        return declared->scalar == type->scalar
                   ? "; if the lengths are equal for your sizes, leave out the result"
                   : "; convert it";
    return declared->kind == T_TUPLE && type->kind == T_TUPLE && declared->n == type->n
               ? "; literals that nothing gives a type to are int or float: write double(1)"
               : "";
}

static bool infer_body(Infer *in, Function *f)
{
    in->converts = in->spread = false;
    const Type *type = infer_expr(in, f->body, f->result);
    if (!type)
        return false;
    if (!f->result)
        f->result = type;
    if (!type_equal(in->ir->arith, f->result, type))
        return diag_error(in->diags, f->body->span, "T005",
                          "`%s` is declared to return %s, but returns %s%s", f->name,
                          infer_show(in, f->result), infer_show(in, type),
                          result_hint(f->result, type));
    if (in->converts)
        f->body = infer_pin_counts(in, f->body);
    if (in->spread)
        infer_pin_initials(in, f->body);
    f->body = infer_pin_declared(in, f->body);
    return true;
}

enum { OPERATIONS_MAX = 100000 };

// Those of the funs that it calls count each time: a fun that calls the one before twice,
// some tens of times over, would be evaluated, and compiled, for ever.
static double operations(const Expr *e)
{
    double n = e->kind == E_CALL ? 1 + e->callee->operations : e->kind == E_OP;
    for (int i = 0; i < e->narg; i++)
        n += operations(e->arg[i]);
    return n + (e->fun ? operations(e->fun) : 0);
}

static bool few_enough(Infer *in, Function *f)
{
    f->operations = operations(f->body);
    return f->operations <= OPERATIONS_MAX ||
           diag_error(in->diags, f->span, "T025",
                      "`%s` has more than %d operations, those of the functions that it "
                      "calls counted each time",
                      f->name, OPERATIONS_MAX);
}

static void infer_function(Infer *in, Function *f)
{
    // A definition's conditions appear again where it is inlined; only main's count.
    in->program->conditions.len = 0;
    bool ok = (f->is_def || scalar_signature(in, f)) &&
              (!f->body || (infer_body(in, f) && few_enough(in, f)));
    if (ok)
        VEC_PUSH(in->ir->arena, &in->ready, f);
    else
        VEC_PUSH(in->ir->arena, &in->failed, f);
}

bool ir_infer(Program *program, Diags *diags)
{
    Infer in = {.ir = program->ir, .program = program, .diags = diags};
    int before = diags->errors;
    for (int i = 0; i < program->generics.len; i++) // calls infer copies of them
        VEC_PUSH(in.ir->arena, &in.ready, program->generics.at[i]);
    for (int i = 0; i < program->funs.len; i++)
        infer_function(&in, program->funs.at[i]);
    for (int i = 0; i < program->defs.len; i++)
        infer_function(&in, program->defs.at[i]);
    return diags->errors == before && ir_check_nesting(program->main, diags);
}

bool ir_infer_expr(Ir *ir, Expr *expr, Diags *diags)
{
    Infer in = {.ir = ir, .diags = diags, .int_sizes = true};
    return infer_expr(&in, expr, NULL) != NULL;
}
