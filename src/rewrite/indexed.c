// SPDX-License-Identifier: Apache-2.0
//
// Arrays that are written by their index, as maps of the arrays that they read: what the
// index picks is a row of an operand, whichever of its axes the index goes along.
//
//   source  an array is the map of its index function; the reverse of zipIndex

#include "rewrite/internal.h"

bool is_counting(const Expr *e)
{
    return is_dims(e, P_ARRAY, 1) && expr_is_use(e->fun->arg[0], e->fun->params[0]);
}

Expr *rule_arrayMap(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_ARRAY) || is_counting(at))
        return NULL;
    Expr *fun = copy_of(rw, at->fun), *body = fun->arg[0];
    for (int k = at->dims - 1; k >= 0; k--)
        body = map_by(rw, 1, fun->params[k], body, counting(rw, at->num[k]));
    return body;
}

// The n elements of an array in the order that an index picks them in: theirs, or that of
// n - 1 - i; NULL: it is none of these.
static Expr *in_order_of(Rewrite *rw, const Expr *index, const Param *i, const Arith *n,
                         Expr *array)
{
    if (expr_is_use(index, i))
        return array;
    if (!expr_turns(rw->ir->arith, index, i, n))
        return NULL;
    Param *k = fresh(rw, "k");
    Expr *place = expr_replace(rw->ir, index, i, use(rw, k));
    return make(rw, P_GATHER, 1, NULL, make_lambda(rw, k, place), array);
}

// What x[..][i][k].. is for all n of i: x[..] turned until what stands behind i comes
// first. The accesses of the expression are used up; NULL: it is something else.
static Expr *all_of_axis(Rewrite *rw, const Param *i, const Arith *n, Expr *at)
{
    Expr *below = at->kind == E_AT ? at->arg[0] : NULL;
    if (!below)
        return NULL;
    if (below->type && !expr_mentions(below, i) &&
        arith_equal(rw->ir->arith, below->type->len, n)) {
        Expr *whole = in_order_of(rw, at->arg[1], i, n, below);
        if (whole)
            return whole;
    }
    Expr *all = expr_mentions(at->arg[1], i) ? NULL : all_of_axis(rw, i, n, below);
    return all ? expr_at(rw->ir, make1(rw, P_TRANSPOSE, all), at->arg[1]) : NULL;
}

Expr *rule_arrayView(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Expr *fun = expr_is(at, P_ARRAY) ? copy_of(rw, at->fun) : NULL;
    Expr *all = fun ? fun->arg[0] : NULL;
    for (int k = at->dims - 1; k >= 0 && all; k--)
        all = all_of_axis(rw, fun->params[k], at->num[k], all);
    return all;
}

enum { BOUND_MOST = 64 };

typedef struct {
    Rewrite *rw;
    const Param *index, *bound[BOUND_MOST]; // bound: names within the function
    int nbound;
    const Arith *len;
    Param *elem; // what takes the place of the index
    Expr *part[PARTS_MAX];
    int n;
} Indexed;

// The array with axis `axis` first, and the others in their order.
static Expr *axis_first(Rewrite *rw, Expr *array, int axis)
{
    if (axis == 0)
        return array;
    Param *row = fresh(rw, "r");
    Expr *below = axis_first(rw, use(rw, row), axis - 1);
    bool same = expr_is_use(below, row);
    Expr *rows = same ? array : map_by(rw, 1, row, below, array);
    return make1(rw, P_TRANSPOSE, rows);
}

// The component of the element that an array gives, whose axis the index goes along; -1: it
// goes along in another order, or there are too many.
static int part_of(Indexed *x, const Expr *array, int axis, const Expr *index)
{
    Expr *part = in_order_of(x->rw, index, x->index, x->len,
                             axis_first(x->rw, copy_of(x->rw, array), axis));
    if (!part)
        return -1;
    for (int i = 0; i < x->n; i++)
        if (expr_equal(x->part[i], part))
            return i;
    if (x->n == PARTS_MAX)
        return -1;
    x->part[x->n] = part;
    return x->n++;
}

// An access array[..][index]: what it reads of the element instead; NULL: it is none. axis:
// how many accesses stand before that of the index.
static Expr *picked(Indexed *x, Expr *at)
{
    const Expr *array = at->arg[0];
    int axis = 0;
    if (!expr_mentions(at->arg[1], x->index))
        return NULL;
    for (; array->kind == E_AT; array = array->arg[0], axis++)
        if (expr_mentions(array->arg[1], x->index))
            return NULL;
    // The array must hold outside of the function, too.
    if (expr_mentions_any(array, x->bound, x->nbound) || expr_mentions(array, x->index) ||
        !arith_equal(x->rw->ir->arith, at->arg[0]->type->len, x->len))
        return NULL;
    int k = part_of(x, array, axis, at->arg[1]);
    if (k < 0)
        return NULL;
    Expr *elem = get_of(x->rw, x->elem, k);
    Expr **end = &elem;
    for (Expr *e = at->arg[0]; e->kind == E_AT; e = e->arg[0], end = &(*end)->arg[0])
        *end = expr_at(x->rw->ir, *end, e->arg[1]);
    return elem;
}

// A copy of the function's body, changed in place.
static Expr *without_index(Indexed *x, Expr *e)
{
    const int outer = x->nbound;
    Expr *found = e->kind == E_AT ? picked(x, e) : NULL;
    if (found)
        e = found;
    for (int i = 0; i < e->nparam && x->nbound < BOUND_MOST; i++)
        x->bound[x->nbound++] = e->params[i];
    for (int i = 0; i < e->narg; i++) {
        if (e->kind == E_LET && i == 1 && x->nbound < BOUND_MOST)
            x->bound[x->nbound++] = e->param;
        e->arg[i] = without_index(x, e->arg[i]);
    }
    if (e->fun)
        e->fun = without_index(x, e->fun);
    x->nbound = outer;
    return e;
}

static bool is_deep(const Expr *e, int *left)
{
    *left -= (e->kind == E_LET) + e->nparam;
    bool deep = *left < 0 || (e->fun && is_deep(e->fun, left));
    for (int i = 0; i < e->narg && !deep; i++)
        deep = is_deep(e->arg[i], left);
    return deep;
}

// The function, of elements instead of the index, which is its last parameter.
static Expr *of_elements(Indexed *x, const Expr *fun)
{
    Expr *copy = copy_of(x->rw, fun);
    int last = copy->nparam - 1;
    x->index = copy->params[last];
    x->elem = fresh(x->rw, "t");
    for (int i = 0; i < last; i++)
        x->bound[x->nbound++] = copy->params[i];
    Expr *body = without_index(x, copy->arg[0]);
    if (!x->n || x->n == PARTS_MAX)
        return NULL;
    if (expr_mentions(body, x->index)) {
        Expr *index = get_of(x->rw, x->elem, x->n);
        x->part[x->n++] = counting(x->rw, x->len);
        body = expr_replace(x->rw->ir, body, x->index, index);
    }
    Param *params[] = {copy->params[0], x->elem};
    return expr_lambda(x->rw->ir, params + (last == 0), last + 1, body);
}

// If there is one part, the element is that part.
static void take_whole(const Indexed *x, Expr *e)
{
    if (e->kind == E_GET && expr_is_use(e->arg[0], x->elem)) {
        *e = *e->arg[0];
        return;
    }
    for (int i = 0; i < e->narg; i++)
        take_whole(x, e->arg[i]);
    if (e->fun)
        take_whole(x, e->fun);
}

Expr *rule_indexZip(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    bool walks = is_dims(at, P_MAP, 1) || expr_is(at, P_REDUCE) || expr_is(at, P_SCAN);
    const Expr *in = walks ? at->arg[at->narg - 1] : NULL;
    int left = BOUND_MOST - 2;
    if (!in || !is_counting(in) || at->fun->nparam > 2 || is_deep(at->fun, &left))
        return NULL;
    Indexed x = {.rw = rw, .len = in->num[0]};
    Expr *fun = of_elements(&x, at->fun);
    if (!fun)
        return NULL;
    if (x.n == 1)
        take_whole(&x, fun);
    Expr *zip = x.n == 1 ? x.part[0] : make_zip(rw, 1, x.part, x.n);
    return expr_is(at, P_MAP)
               ? make_map(rw, 1, fun, zip)
               : make_reduce(rw, at->pattern, fun, start_value(rw, at->arg[0]), zip);
}
