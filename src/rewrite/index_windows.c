// SPDX-License-Identifier: Apache-2.0
//
// Arrays that are written by their index and read others at constant places beside it, as
// maps of windows of these.
//
//   source  an array is the map of its index function

#include "rewrite/internal.h"

enum { ALONG_MOST = 16 }; // elements of a window along an axis

typedef struct {
    int64_t size[DIMS_MAX], all; // of a window, and all of it
} WindowSize;

typedef struct {
    Rewrite *rw;
    const Expr *at, *body; // the array, and a copy of what its elements are
    Param *elem;           // of the map
    const Expr *base[PARTS_MAX];
    WindowSize window[PARTS_MAX];
    int n;
} BesideReads;

// Which place beside an index it is; below 0: it is none, or one before it.
static int64_t beside(const Expr *place, const Param *index)
{
    int64_t found = -1;
    if (expr_is_use(place, index))
        return 0;
    const bool sum = place->kind == E_OP && place->op == OP_ADD;
    const Expr *by = !sum                                ? NULL
                     : expr_is_use(place->arg[0], index) ? place->arg[1]
                     : expr_is_use(place->arg[1], index) ? place->arg[0]
                                                         : NULL;
    if (by && by->kind == E_NUM)
        arith_is_const(by->num[0], &found);
    else if (by && by->kind == E_LITERAL && !by->floating && !by->boolean)
        found = by->number < ALONG_MOST ? (int64_t)by->number : ALONG_MOST;
    return found;
}

// The number of the part with the windows of an array that has a name outside of the
// function, as many as the array at hand has elements; -1: they are too large.
static int window_of(BesideReads *x, const Expr *base)
{
    const Expr *name = expr_behind_gets(base);
    WindowSize *window = &x->window[x->n];
    for (int i = 0; i < x->n; i++)
        if (expr_equal(x->base[i], base))
            return i;
    if (name->kind != E_PARAM || expr_find(x->body, expr_binds, name->param) ||
        x->n + DIMS_MAX >= PARTS_MAX)
        return -1;
    window->all = 1;
    for (int k = 0; k < x->at->dims; k++) {
        const Arith *more = arith_sub(x->rw->ir->arith, len_of(base, k), x->at->num[k]);
        if (!arith_is_const(more, &window->size[k]) || ++window->size[k] < 1 ||
            window->size[k] > ALONG_MOST)
            return -1;
        window->all *= window->size[k];
    }
    x->base[x->n] = base;
    return x->n++;
}

// What base[i + 1][j] is of the element; NULL: it is no such access.
static Expr *looked_at(BesideReads *x, const Expr *access)
{
    int64_t place[DIMS_MAX];
    const Expr *base = access;
    for (int k = x->at->dims - 1; k >= 0; k--, base = base->arg[0])
        if (base->kind != E_AT ||
            (place[k] = beside(base->arg[1], x->at->fun->params[k])) < 0)
            return NULL;
    const int before = x->n, part = window_of(x, base);
    for (int k = 0; k < x->at->dims; k++)
        if (part < 0 || place[k] >= x->window[part].size[k]) {
            x->n = before;
            return NULL;
        }
    Expr *of = get_of(x->rw, x->elem, part);
    for (int k = 0; k < x->at->dims && x->window[part].all > 1; k++)
        of = expr_at(x->rw->ir, of, expr_num(x->rw->ir, num(x->rw, place[k])));
    return of;
}

static Expr *of_windows(BesideReads *x, Expr *e)
{
    Expr *found = e->kind == E_AT ? looked_at(x, e) : NULL;
    if (found)
        return found;
    for (int i = 0; i < e->narg; i++)
        e->arg[i] = of_windows(x, e->arg[i]);
    if (e->fun)
        e->fun = of_windows(x, e->fun);
    return e;
}

static Expr *windows_part(const BesideReads *x, int part)
{
    const Arith *n[NUMS_MAX];
    for (int k = 0; k < 2 * x->at->dims; k++)
        n[k] = num(x->rw, k % 2 ? 1 : x->window[part].size[k / 2]);
    Expr *base = copy_of(x->rw, x->base[part]);
    return x->window[part].all > 1 ? make(x->rw, P_SLIDE, x->at->dims, n, NULL, base)
                                   : base;
}

Expr *rule_arrayWindows(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_ARRAY))
        return NULL;
    Expr *part[PARTS_MAX], *body = copy_of(rw, at->fun->arg[0]);
    BesideReads x = {.rw = rw, .at = at, .body = body, .elem = fresh(rw, "t")};
    body = of_windows(&x, body);
    bool window = false;
    for (int i = 0; i < x.n; i++) {
        window |= x.window[i].all > 1;
        part[i] = windows_part(&x, i);
    }
    for (int k = 0; window && k < at->dims; k++) {
        if (!expr_mentions(body, at->fun->params[k]))
            continue;
        Expr *fun = copy_of(rw, at->fun);
        fun->arg[0] = use(rw, fun->params[k]);
        part[x.n] = expr_pattern(rw->ir, P_ARRAY, at->dims, 0, at->num, fun, NULL, 0);
        Expr *index = get_of(rw, x.elem, x.n++);
        body = expr_replace(rw->ir, body, at->fun->params[k], index);
    }
    Expr *in = x.n == 1 ? part[0] : window ? make_zip(rw, at->dims, part, x.n) : NULL;
    if (window && x.n == 1) { // the element is that part
        Param *own = fresh(rw, "w");
        body = with_name(rw, body, get_of(rw, x.elem, 0), own);
        x.elem = own;
    }
    return window ? map_by(rw, at->dims, x.elem, body, in) : NULL;
}
