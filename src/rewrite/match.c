// SPDX-License-Identifier: Apache-2.0
//
// Matching the left sides of rules, and looking at what is around them.

#include "rewrite/internal.h"

bool is_dims(const Expr *expr, Pattern p, int dims)
{
    return expr_is(expr, p) && expr->dims == dims;
}

bool is_threads(Pattern p)
{
    return pattern_info[p].group == G_PAR;
}

bool moves_elements(const Expr *expr, const void *none)
{
    return (expr_is(expr, P_GATHER) && !view_inverts(expr)) || expr_is(expr, P_DROP) ||
           expr_is(expr, P_SLIDE);
}

const Expr *under_turn(const Expr *expr)
{
    return expr_is(expr, P_GATHER) && view_inverts(expr) ? expr->arg[0] : expr;
}

const Expr *data_of(const Expr *pattern)
{
    return pattern->arg[pattern->narg - 1];
}

const Arith *len_of(const Expr *expr, int dim)
{
    return type_elem(expr->type, dim)->len;
}

const Expr *inner_of(const Expr *map, Pattern p)
{
    const Expr *body = map->fun->arg[0];
    if (!expr_is(body, p) || !expr_is_use(data_of(body), map->fun->params[0]))
        return NULL;
    for (int i = 0; i + 1 < body->narg; i++)
        if (expr_mentions(body->arg[i], map->fun->params[0]))
            return NULL;
    if (body->fun && expr_mentions(body->fun, map->fun->params[0]))
        return NULL;
    return body;
}

bool divides(Rewrite *rw, int64_t n, const Arith *len)
{
    return n > 0 && missing(rw, len, n) == num(rw, 0);
}

bool has_constants(const Expr *pattern)
{
    for (int k = 0; k < pattern->nnum; k++)
        if (!arith_is_const(pattern->num[k], NULL))
            return false;
    return true;
}

bool is_number(const Expr *e, double *number)
{
    while (e->kind == E_OP && e->narg == 1 && e->type->kind == T_SCALAR &&
           e->op == op_cast(e->type->scalar))
        e = e->arg[0];
    *number = e->number;
    return e->kind == E_LITERAL;
}

int combined(const Expr *f, int i)
{
    const Expr *body = i >= 0 && f->arg[0]->kind == E_TUPLE ? f->arg[0]->arg[i] : f->arg[0];
    for (int k = 0; k < body->narg && body->kind == E_OP && op_joins(body->op); k++) {
        const Expr *was = body->arg[1 - k];
        if (i < 0 ? expr_is_use(was, f->params[0])
                  : was->kind == E_GET && was->index == i &&
                        expr_is_use(was->arg[0], f->params[0]))
            return expr_mentions(body->arg[k], f->params[0]) ? -1 : k;
    }
    return -1;
}

int accumulated(const Expr *f)
{
    int side = combined(f, -1);
    return side >= 0 && expr_is_use(f->arg[0]->arg[side], f->params[1]) ? -1 : side;
}

static bool one_scalar_type(const Type *a, const Type *b)
{
    return type_is_scalar(a) && a->kind == b->kind && a->scalar == b->scalar &&
           a->width == b->width;
}

// g(e) of component i of a function of tuples, a.i o g(e); NULL: it is no such.
static const Expr *added_to(const Expr *f, int i)
{
    int side = combined(f, i);
    return side < 0 ? NULL : f->arg[0]->arg[i]->arg[side];
}

// Does each component add up something of the elements by itself?
static bool adds_up_tuple(const Expr *reduce)
{
    const Expr *body = reduce->fun->arg[0];
    for (int i = 0; body->kind == E_TUPLE && i < body->narg; i++) {
        const Expr *value = added_to(reduce->fun, i);
        if (!value || !one_scalar_type(value->type, body->arg[i]->type))
            return false;
    }
    return body->kind == E_TUPLE;
}

bool adds_up_others(const Expr *f)
{
    const Expr *body = f->arg[0];
    bool others = false;
    if (body->kind != E_TUPLE)
        return accumulated(f) >= 0;
    for (int i = 0; i < body->narg; i++) {
        const Expr *value = added_to(f, i);
        if (!value)
            return false;
        others = others || value->kind != E_GET || value->index != i ||
                 !expr_is_use(value->arg[0], f->params[1]);
    }
    return others;
}

bool is_regroupable(const Expr *reduce)
{
    if (type_is_scalar(reduce->type))
        return accumulated(reduce->fun) < 0 &&
               one_scalar_type(data_of(reduce)->type->elem, reduce->type);
    return folds_by_parts(reduce);
}

bool keeps_order(const Expr *reduce)
{
    return expr_is(reduce, P_REDUCE) && accumulated(reduce->fun) < 0 &&
           !adds_up_tuple(reduce) && !expr_commutes(reduce->fun);
}

bool is_operation(const Expr *reduce)
{
    return type_is_scalar(reduce->type) && is_regroupable(reduce) &&
           combined(reduce->fun, -1) >= 0;
}

bool reduce_shares(const Expr *reduce)
{
    int side = accumulated(reduce->fun);
    if (keeps_order(reduce) && !arith_is_const(len_of(reduce->arg[1], 0), NULL))
        return false; // shares of neighbours are held, so their length must be known
    return side >= 0
               ? one_scalar_type(reduce->fun->arg[0]->arg[side]->type, reduce->type)
               : is_operation(reduce) || adds_up_tuple(reduce) || folds_by_parts(reduce);
}

typedef struct {
    Pattern pattern;
    int dim;
} Threads;

static bool maps_along(const Expr *expr, const void *of)
{
    const Threads *t = of;
    return expr_is(expr, t->pattern) && expr->par == t->dim;
}

bool mentions_threads(const Expr *expr, Pattern p, int dim)
{
    return expr_find(expr, maps_along, &(Threads){p, dim});
}

int64_t static_count(const Type *type)
{
    int64_t count = 1, len;
    for (; type->kind == T_ARRAY; type = type->elem) {
        if (!arith_is_const(type->len, &len) || len > 1 << 20)
            return -1;
        count *= len;
    }
    return count;
}

bool inside(const Rewrite *rw, Pattern p, int dim)
{
    for (const Context *c = rw->context; c; c = c->outer)
        if (c->child == CHILD_FUN && expr_is(c->expr, p) &&
            (dim < 0 || c->expr->par == dim))
            return true;
    return false;
}

// Does it call its function with arrays, one step after the other, each of which may be
// launched?
static bool is_steps(const Expr *expr)
{
    return expr->pattern == P_ITERATE ||
           (expr->pattern == P_SCAN && expr->type->elem->kind == T_ARRAY);
}

bool inside_loop(const Rewrite *rw)
{
    for (const Context *c = rw->context; c; c = c->outer)
        if (c->child == CHILD_FUN && !is_threads(c->expr->pattern) && !is_steps(c->expr))
            return true;
    return false;
}

bool inside_abstract(const Rewrite *rw)
{
    for (const Context *c = rw->context; c; c = c->outer)
        if (c->child == CHILD_FUN && pattern_info[c->expr->pattern].group == G_ALGO &&
            !is_steps(c->expr))
            return true;
    return false;
}

bool at_host(const Rewrite *rw)
{
    for (const Context *c = rw->context; c; c = c->outer)
        if (c->child == CHILD_FUN && !is_steps(c->expr))
            return false;
    return true;
}
