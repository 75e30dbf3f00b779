// SPDX-License-Identifier: Apache-2.0
//
// What may be evaluated without the conditions that guard it.

#include "kir/kir.h"

static bool load_exists(ArithCtx *ctx, const KExpr *load)
{
    int64_t lo, hi, count;
    arith_range(ctx, load->arith, &lo, &hi);
    int width = load->type->kind == T_VECTOR ? load->type->width : 1;
    return lo >= 0 && arith_is_const(load->buffer->count, &count) && hi <= count - width;
}

static bool is_division(Op op, const Type *type)
{
    return (op == OP_DIV || op == OP_MOD) && !scalar_info[type->scalar].floating;
}

// Integers cannot be divided by 0, nor the least one by -1.
static bool divides(ArithCtx *ctx, const KExpr *by)
{
    int64_t lo, hi;
    if (by->kind == K_LITERAL)
        return by->number != 0 && by->number != -1;
    if (by->kind != K_INDEX)
        return false;
    arith_range(ctx, by->arith, &lo, &hi);
    return lo > 0 || hi < -1;
}

// The body of a function of scalars; what it is called with is not known.
static bool body_divides(const Expr *e, const void *none)
{
    const Expr *by = e->kind == E_OP && e->narg == 2 ? e->arg[1] : NULL;
    bool known = by && by->kind == E_LITERAL && by->number != 0 && by->number != -1;
    return (by && is_division(e->op, e->type) && !known) ||
           expr_calls(e, body_divides, none);
}

// A text in C divides integers only if it is given some.
static bool call_divides(const Function *f)
{
    if (f->body)
        return expr_find(f->body, body_divides, NULL);
    for (int i = 0; i < f->nparam; i++)
        if (!scalar_info[f->params[i]->type->scalar].floating)
            return true;
    return false;
}

// By itself, not in what it is made of.
static bool traps(const KExpr *e, const void *ctx)
{
    return (e->kind == K_OP && is_division(e->op, e->type) &&
            !divides((ArithCtx *)ctx, e->arg[1])) ||
           (e->kind == K_CALL && call_divides(e->callee));
}

static bool stays_behind(const KExpr *e, const void *ctx)
{
    return e->kind == K_AWAIT || (e->kind == K_LOAD && !load_exists((ArithCtx *)ctx, e)) ||
           traps(e, ctx);
}

bool may_trap(ArithCtx *ctx, const KExpr *e)
{
    return kexpr_any(e, traps, ctx);
}

bool may_go_ahead(ArithCtx *ctx, const KExpr *e)
{
    return !kexpr_any(e, stays_behind, ctx);
}
