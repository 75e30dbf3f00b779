// SPDX-License-Identifier: Apache-2.0
//
// Does a function of two give the same if they change places? That is read off its text.

#include "ir/internal.h"

// Names that stand for each other on the two sides.
typedef struct Swap Swap;
struct Swap {
    const Param *a, *b;
    const Swap *outer;
};

static const Param *partner(const Param *param, const Swap *swap)
{
    for (; swap; swap = swap->outer)
        if (swap->a == param)
            return swap->b;
    return param;
}

static bool symmetric_function(const Expr *body, Param *const *param);

// Are they the same once the names of one side are those of the other?
static bool same_swapped(const Expr *a, const Expr *b, const Swap *swap)
{
    if (a->kind != b->kind || a->narg != b->narg || a->kind == E_PATTERN ||
        a->kind == E_LAMBDA)
        return false;
    if (a->kind == E_LET)
        return same_swapped(a->arg[0], b->arg[0], swap) &&
               same_swapped(a->arg[1], b->arg[1], &(Swap){a->param, b->param, swap});
    if (a->kind == E_PARAM)
        return partner(a->param, swap) == b->param;
    if (a->kind == E_LITERAL || a->kind == E_NUM)
        return expr_equal(a, b);
    if ((a->kind == E_OP && a->op != b->op) || (a->kind == E_GET && a->index != b->index) ||
        (a->kind == E_CALL && a->callee != b->callee))
        return false;
    bool same = true;
    for (int i = 0; i < a->narg; i++)
        same = same && same_swapped(a->arg[i], b->arg[i], swap);
    bool turns = a->kind == E_OP
                     ? op_joins(a->op) || a->op == OP_EQ || a->op == OP_NE
                     : a->kind == E_CALL && a->callee->body &&
                           symmetric_function(a->callee->body, a->callee->params);
    return same || (a->narg == 2 && turns && same_swapped(a->arg[0], b->arg[1], swap) &&
                    same_swapped(a->arg[1], b->arg[0], swap));
}

static bool symmetric_function(const Expr *body, Param *const *param)
{
    Swap there = {param[0], param[1], NULL}, back = {param[1], param[0], &there};
    return same_swapped(body, body, &back);
}

// The component of a and b that e compares; -1: it does something else.
static int compared(const Expr *e, const Param *a, const Param *b)
{
    if (e->kind != E_OP || e->narg != 2 || e->arg[0]->kind != E_GET ||
        e->arg[1]->kind != E_GET || e->arg[0]->index != e->arg[1]->index)
        return -1;
    const Expr *x = e->arg[0]->arg[0], *y = e->arg[1]->arg[0];
    bool both = (expr_is_use(x, a) && expr_is_use(y, b)) ||
                (expr_is_use(x, b) && expr_is_use(y, a));
    return both ? e->arg[0]->index : -1;
}

// By one component after the other, so that neither comes first only if all are the same.
static bool orders(const Expr *e, const Param *a, const Param *b, unsigned components)
{
    const bool more = expr_is_op(e, OP_OR);
    const Expr *first = more ? e->arg[0] : e, *rest = more ? e->arg[1] : NULL;
    const int i = compared(first, a, b);
    if (i < 0 || !(components >> i & 1) || (first->op != OP_LT && first->op != OP_GT))
        return false;
    components &= ~(1u << i);
    return more ? expr_is_op(rest, OP_AND) && expr_is_op(rest->arg[0], OP_EQ) &&
                      compared(rest->arg[0], a, b) == i &&
                      orders(rest->arg[1], a, b, components)
                : components == 0;
}

// The first of the two in an order of tuples by all components.
static bool picks_first(const Expr *f)
{
    const Expr *body = f->arg[0];
    const Type *type = body->type;
    return expr_is_op(body, OP_SELECT) && type && type->kind == T_TUPLE && type->n < 32 &&
           type_leaves(type) == type->n && expr_is_use(body->arg[1], f->params[1]) &&
           expr_is_use(body->arg[2], f->params[0]) &&
           orders(body->arg[0], f->params[0], f->params[1], (1u << type->n) - 1);
}

bool expr_commutes(const Expr *f)
{
    return f->nparam == 2 && (picks_first(f) || symmetric_function(f->arg[0], f->params));
}
