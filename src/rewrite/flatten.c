// SPDX-License-Identifier: Apache-2.0
//
// Maps in maps as one map: the inner one reads rows of what the outer one reads, windows of
// them, and arrays that are the same for all rows; all become arrays over all dimensions,
// the last as views that repeat what they look at.
//
//   source  Lift: maps of several dimensions are compositions

#include "rewrite/internal.h"

enum { WHOLE_LEAST = 64 }; // elements of a fold

typedef struct {
    Rewrite *rw;
    const Expr *map;  // the outer one
    const Param *row; // its element
    const Expr *in;   // what the inner one reads
    int dims;         // of the inner one
    Expr *part[PARTS_MAX];
    bool window[PARTS_MAX]; // its elements are windows of length 1 along the outer ones
    int n;
    bool windows; // some parts have them
} Flat;

// What the outer map reads as component k of its element; the element itself: k < 0.
static const Expr *whole(const Flat *f, int k)
{
    const Expr *in = f->map->arg[0];
    if (k < 0)
        return in;
    return is_dims(in, P_ZIP, f->map->dims) ? in->arg[k] : NULL;
}

// The view over the first dims dimensions of `lens`, which is the same everywhere in them.
static Expr *repeated(const Flat *f, const Type *over, int dims, Expr *e)
{
    if (dims == 0)
        return e;
    Param *i = fresh(f->rw, "i");
    Expr *inner = repeated(f, over->elem, dims - 1, e);
    return array_by(f->rw, over->len, i, inner);
}

// The elements of an array over the outer dimensions, each repeated over the inner ones.
static Expr *stretched(const Flat *f, const Type *over, int dims, Expr *array)
{
    if (dims == 0)
        return repeated(f, f->in->type, f->dims, array);
    Param *i = fresh(f->rw, "i");
    Expr *elem = expr_at(f->rw->ir, array, use(f->rw, i));
    return array_by(f->rw, over->len, i, stretched(f, over->elem, dims - 1, elem));
}

// Rows that are turned are rows of an array whose elements are.
static Expr *turned(const Flat *f, const Expr *rows)
{
    Param *r = fresh(f->rw, "r");
    return map_by(f->rw, f->map->dims, r, make1(f->rw, P_TRANSPOSE, use(f->rw, r)),
                  copy_of(f->rw, rows));
}

// A layout of the inner dimensions that leaves the outer ones as they are.
static bool is_local(const Flat *f, const Expr *e)
{
    return (is_dims(e, P_PAD, f->dims) || is_dims(e, P_SLIDE, f->dims)) &&
           (e->narg == 1 || !expr_mentions(e->arg[0], f->row));
}

// Windows of rows, which may be padded: the rows' component; -2: they are something else.
static int windowed(const Flat *f, const Expr *e)
{
    if (!is_dims(e, P_SLIDE, f->dims))
        return -2;
    while (is_local(f, e))
        e = data_of(e);
    return element_component(e, f->row);
}

// The same windows over all dimensions: nothing is added along the outer ones, where
// windows have the length 1.
static Expr *widened(const Flat *f, const Expr *e, const Expr *rows)
{
    if (!is_local(f, e))
        return copy_of(f->rw, rows);
    int outer = 2 * f->map->dims, inner = 2 * f->dims;
    const Arith *n[2 * DIMS_MAX];
    for (int i = 0; i < outer; i++)
        n[i] = num(f->rw, e->pattern == P_SLIDE);
    for (int i = 0; i < inner; i++)
        n[outer + i] = e->num[i];
    Expr *arg[] = {copy_of(f->rw, e->arg[0]), widened(f, data_of(e), rows)};
    bool one = e->narg == 1;
    Expr *made = expr_pattern(f->rw->ir, e->pattern, f->map->dims + f->dims, 0, n, NULL,
                              one ? arg + 1 : arg, e->narg);
    made->mode = e->mode;
    return made;
}

bool only_views(const Expr *e)
{
    if (e->kind == E_LET || e->kind == E_OP || e->kind == E_CALL ||
        (e->kind == E_PATTERN && e->pattern != P_ARRAY && e->pattern != P_MAP &&
         pattern_info[e->pattern].group != G_VIEW))
        return false;
    bool views = !e->fun || e->pattern == P_GATHER || only_views(e->fun->arg[0]);
    for (int i = 0; i < e->narg && views; i++)
        views = (e->kind == E_AT && i == 1) || only_views(e->arg[i]);
    return views;
}

// Is it made as a whole, whichever element is read?
static bool is_whole(const Expr *e, const void *none)
{
    return e->kind == E_LET || expr_is(e, P_SCATTER) || expr_is(e, P_ITERATE) ||
           expr_is(e, P_REDUCEBY) || scan_is_long(e, 0) || fold_is_long(e, WHOLE_LEAST);
}

// A view of the row, with element `place` of what the outer map reads for the row; NULL: it
// uses the row in another way.
static Expr *view_of_row(const Flat *f, const Expr *e, Expr *place[], int n)
{
    Expr *view = copy_of(f->rw, e);
    for (int k = -1; expr_mentions(view, f->row); k++) {
        const Expr *rows = whole(f, k);
        if (k >= PARTS_MAX || (k >= 0 && (!rows || k >= f->map->arg[0]->narg)))
            return NULL;
        if ((k < 0 && is_dims(f->map->arg[0], P_ZIP, f->map->dims)) ||
            (k >= 0 && !uses_component(view, f->row, k)))
            continue;
        if (expr_find(rows, is_whole, NULL)) // again for each place
            return NULL;
        Expr *elem = copy_of(f->rw, rows);
        for (int i = 0; i < n; i++)
            elem = expr_at(f->rw->ir, elem, copy_of(f->rw, place[i]));
        Param *own = fresh(f->rw, "own");
        Expr *use_of = expr_param(f->rw->ir, (Param *)f->row);
        view = with_name(f->rw, view, k < 0 ? use_of : expr_get(f->rw->ir, use_of, k), own);
        view = expr_replace(f->rw->ir, view, own, elem);
    }
    return view;
}

// A view of each row, over all dimensions, by index.
static Expr *views_of_rows(const Flat *f, const Type *over, Expr *place[], int n,
                           const Expr *e)
{
    if (n == f->map->dims)
        return view_of_row(f, e, place, n);
    Param *i = fresh(f->rw, "i");
    place[n] = use(f->rw, i);
    Expr *rows = views_of_rows(f, over->elem, place, n + 1, e);
    return rows ? array_by(f->rw, over->len, i, rows) : NULL;
}

// Adds what the inner map reads, over all dimensions; false where that is not known.
static bool add_part(Flat *f, const Expr *e)
{
    int of = windowed(f, e);
    if (of > -2 && whole(f, of) && f->n < PARTS_MAX) {
        f->window[f->n] = f->windows = true;
        f->part[f->n++] = widened(f, e, whole(f, of));
        return true;
    }
    bool turns = is_dims(e, P_TRANSPOSE, 1) && element_component(e->arg[0], f->row) > -2;
    int k = element_component(turns ? e->arg[0] : e, f->row);
    const Expr *rows = k > -2 ? whole(f, k) : NULL;
    if (f->n == PARTS_MAX || (k > -2 && !rows))
        return false;
    if (k == -2 && expr_mentions(e, f->row)) {
        Expr *place[DIMS_MAX];
        Expr *views = only_views(e) ? views_of_rows(f, f->map->type, place, 0, e) : NULL;
        f->part[f->n] = views;
        f->n += views != NULL;
        return views;
    }
    f->part[f->n++] = turns  ? turned(f, rows)
                      : rows ? copy_of(f->rw, rows)
                             : repeated(f, f->map->type, f->map->dims, copy_of(f->rw, e));
    return true;
}

static bool add_parts(Flat *f)
{
    if (!is_dims(f->in, P_ZIP, f->dims))
        return add_part(f, f->in);
    for (int i = 0; i < f->in->narg; i++)
        if (!add_part(f, f->in->arg[i]))
            return false;
    return true;
}

// Where the function of the inner map uses the row itself, one more part is what it uses;
// at: a copy of the function's body, changed in place. False where that is not known.
static bool add_uses(Flat *f, Param *t, Expr *at)
{
    int k = element_component(at, f->row);
    if (k == -2) {
        for (int i = 0; i < at->narg; i++)
            if (!add_uses(f, t, (Expr *)at->arg[i]))
                return false;
        return !at->fun || add_uses(f, t, at->fun);
    }
    const Expr *rows = whole(f, k);
    if (!rows || f->n == PARTS_MAX)
        return false;
    f->part[f->n] = stretched(f, f->map->type, f->map->dims, copy_of(f->rw, rows));
    *at = *get_of(f->rw, t, f->n++);
    return true;
}

// What the inner function takes, from the element t of all parts or, if there is no other,
// of the one part.
static Expr *element(const Flat *f, Param *t, int n, bool one)
{
    Expr *part[PARTS_MAX];
    for (int i = 0; i < n; i++) {
        part[i] = one ? use(f->rw, t) : get_of(f->rw, t, i);
        for (int d = 0; f->window[i] && d < f->map->dims; d++)
            part[i] = expr_at(f->rw->ir, part[i], expr_num(f->rw->ir, num(f->rw, 0)));
    }
    return is_dims(f->in, P_ZIP, f->dims) ? expr_tuple(f->rw->ir, part, n) : part[0];
}

Expr *rule_mapFlatten(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *inner = expr_is(at, P_MAP) ? at->fun->arg[0] : NULL;
    if (!inner || !expr_is(inner, P_MAP) || at->dims + inner->dims > DIMS_MAX)
        return NULL;
    int dims = at->dims + inner->dims;
    Flat f = {.rw = rw,
              .map = at,
              .row = at->fun->params[0],
              .in = inner->arg[0],
              .dims = inner->dims};
    if (!add_parts(&f))
        return NULL;
    Param *t = fresh(rw, "t");
    if (!expr_mentions(inner->fun, f.row)) {
        bool one = !is_dims(f.in, P_ZIP, f.dims);
        Expr *fun = f.windows
                        ? make_lambda(rw, t, call(rw, inner->fun, element(&f, t, f.n, one)))
                        : copy_of(rw, inner->fun);
        return make_map(rw, dims, fun, one ? f.part[0] : make_zip(rw, dims, f.part, f.n));
    }
    Expr *body = call(rw, inner->fun, element(&f, t, f.n, false));
    if (!add_uses(&f, t, body))
        return NULL;
    return map_by(rw, dims, t, body, make_zip(rw, dims, f.part, f.n));
}

// The two outermost dimensions as one, of each part of a zip.
static Expr *joined(Rewrite *rw, int dims, const Expr *in)
{
    Expr *part[PARTS_MAX];
    if (!is_dims(in, P_ZIP, dims) || in->narg > PARTS_MAX)
        return is_dims(in, P_SPLIT, 1) ? copy_of(rw, in->arg[0])
                                       : make1(rw, P_JOIN, copy_of(rw, in));
    for (int i = 0; i < in->narg; i++)
        part[i] = joined(rw, dims, in->arg[i]);
    return make_zip(rw, dims - 1, part, in->narg);
}

Expr *rule_mapJoin(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_MAP) || at->dims == 1)
        return NULL;
    Expr *map =
        make_map(rw, at->dims - 1, copy_of(rw, at->fun), joined(rw, at->dims, at->arg[0]));
    return make_sized(rw, P_SPLIT, len_of(at, 1), map);
}
