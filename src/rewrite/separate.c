// SPDX-License-Identifier: Apache-2.0
//
// Folds of windows in two maps: what windows that overlap have in common is folded once, by
// a map of its own, and the windows fold its results.
//
//   method  In several dimensions the last axis that the window is longer than 1 along goes
//           apart. A border goes apart with its axis, so the first map has no more rows
//           than the array; beyond them is what the fold of a row of constants comes to.
//           Along a single axis the first map folds short runs of elements, and a window
//           folds the runs that stand side by side and what is left. Elements are folded in
//           the order of the program. Several folds of the same windows have one first map.
//   source  separable filters; Halide (Ragan-Kelley et al., PLDI 2013), section 2

#include "rewrite/internal.h"

// A window as `count` runs of `length` elements, and the rest of it.
typedef struct {
    int64_t length, count, rest;
} Runs;

enum { FOLDS_MAX = 8 };

typedef struct {
    const Expr *map, *slide;
    const Expr *fold[FOLDS_MAX]; // of the windows, in the map's function; all different
    int n;
    int part; // of the map's zip, which the windows are; -1: all that it reads
    int axis;
    bool single; // the window is longer than 1 along no other axis
    Runs runs;   // if so
} Separable;

// What saves elements ------------------------------------------------------------------

// The elements that are folded for a window, of each run once.
static int64_t folded_in(Runs runs)
{
    return runs.length + runs.count + runs.rest;
}

static Runs best_runs(int64_t window)
{
    Runs best = {1, window, 0};
    for (int64_t n = 2; n <= window / n; n++) {
        const Runs runs = {n, window / n, window % n};
        if (folded_in(runs) < folded_in(best))
            best = runs;
    }
    return best;
}

// How long the windows are along an axis, and below how far apart.
static int64_t length_of(const Expr *slide, int axis)
{
    int64_t length = 1;
    arith_is_const(slide->num[2 * axis], &length);
    return length;
}

static int64_t step_of(const Expr *slide, int axis)
{
    int64_t step = 1;
    arith_is_const(slide->num[2 * axis + 1], &step);
    return MIN(step, length_of(slide, axis));
}

// Sets the axis that goes apart or has runs. Returns how many elements less are folded
// then, for each that the first map makes.
static int64_t saved(Separable *s, const Expr *slide)
{
    int64_t rows = 1, windows = 1;
    s->axis = 0;
    for (int k = 0; k < slide->dims; k++)
        s->axis = length_of(slide, k) > 1 ? k : s->axis;
    const int64_t length = length_of(slide, s->axis);
    for (int k = 0; k < s->axis; k++)
        rows *= length_of(slide, k), windows *= step_of(slide, k);
    s->single = rows == 1;
    s->runs = best_runs(length);
    return s->single ? (length - folded_in(s->runs)) / step_of(slide, s->axis)
                     : (rows * length - (windows * length + rows)) / windows;
}

// Which folds they are -------------------------------------------------------------------

// Does the array have a value for each element of the window, in its order? The window is
// component k of the map's element (-1: all of it).
static bool goes_through(const Expr *expr, const Param *element, int k)
{
    if (element_component(expr, element) == k)
        return true;
    if (expr_is(expr, P_MAP)) {
        const Expr *body = expr->fun->arg[0];
        const Param *own = expr->fun->params[0];
        bool scalars = !type_holds_array(own->type) && !type_holds_array(body->type);
        if (expr_mentions(expr->fun, element) || (!scalars && !goes_through(body, own, -1)))
            return false;
    } else if (!expr_is(expr, P_JOIN)) {
        return false;
    }
    return goes_through(expr->arg[0], element, k);
}

static const Expr *windows_of(const Separable *s, int part)
{
    const Expr *in = s->map->arg[0];
    in = part < 0 ? in : in->arg[part];
    return is_dims(in, P_SLIDE, s->map->dims) && has_constants(in) ? in : NULL;
}

static bool is_separable(Separable *s, const Expr *fold, int64_t least)
{
    const Param *element = s->map->fun->params[0];
    const Expr *in = s->map->arg[0];
    const int parts = is_dims(in, P_ZIP, s->map->dims) ? in->narg : 0;
    if (!expr_is(fold, P_REDUCE) || type_holds_array(fold->type) ||
        expr_mentions(fold->fun, element) || expr_mentions(fold->arg[0], element))
        return false;
    for (s->part = parts ? 0 : -1; s->part < parts; s->part++) {
        s->slide = windows_of(s, s->part);
        if (s->slide && goes_through(fold->arg[1], element, s->part) &&
            saved(s, s->slide) >= least)
            return true;
    }
    return false;
}

double fold_share(const Expr *map, const Expr *fold)
{
    Separable s = {.map = map};
    if (!expr_is(map, P_MAP) || !is_separable(&s, fold, 1))
        return 1;
    double apart = 0, rows = 1, all = 1;
    for (int k = 0; k < s.slide->dims; k++) {
        const int64_t length = length_of(s.slide, k);
        apart += rows * (double)(length > 1 ? folded_in(best_runs(length)) : 0);
        rows *= (double)step_of(s.slide, k);
        all *= (double)length;
    }
    return MIN(1, apart / all);
}

// Adds a fold of the same windows as the others.
static void add_fold(Separable *s, const Expr *fold)
{
    for (int i = 0; i < s->n; i++)
        if (expr_equal(s->fold[i], fold))
            return;
    bool scalars =
        type_is_scalar(fold->type) && (!s->n || type_is_scalar(s->fold[0]->type));
    if (s->n == 0 || (scalars && s->n < FOLDS_MAX))
        s->fold[s->n++] = fold;
}

// Looks for folds whose parts may be folded by themselves, and which mention nothing bound
// on the way to them and stand behind no guard.
static void find_separable(Rewrite *rw, Separable *s, const Expr *expr, const Bound *bound,
                           int64_t least)
{
    Separable found = *s;
    if (!mentions_bound(expr, bound) && is_separable(&found, expr, least) &&
        (s->n == 0 || found.part == s->part) &&
        (is_regroupable(expr) || rule_reduceFission(rw, expr, NULL))) {
        *s = found;
        add_fold(s, expr);
        return;
    }
    for (int i = 0; i < expr->narg && !expr_guards(expr, i); i++) {
        Bound own;
        find_separable(rw, s, expr->arg[i], bound_around(expr, i, bound, &own), least);
    }
    if (expr->fun)
        find_separable(rw, s, expr->fun, bound, least);
}

// The first map --------------------------------------------------------------------------

// A layout with two numbers for each dimension: those of the axis as they are, `none` for
// all others, or the reverse. value: of a constant border, else NULL.
static Expr *layout_along(Rewrite *rw, const Separable *s, const Expr *like, bool axis,
                          const int64_t none[2], Expr *value, Expr *in)
{
    const Arith *number[NUMS_MAX];
    for (int k = 0; k < like->nnum; k++)
        number[k] = (k / 2 == s->axis) == axis ? like->num[k] : num(rw, none[k % 2]);
    if (value)
        return make_pad(rw, like->dims, number, value, in);
    Expr *made = make(rw, like->pattern, like->dims, number, NULL, in);
    made->mode = like->mode;
    return made;
}

static const int64_t no_border[2] = {0, 0}, no_window[2] = {1, 1};

// The windows' border if each axis can have its own; else NULL.
static const Expr *border_of(const Separable *s)
{
    const Expr *in = s->slide->arg[0];
    return !s->single && is_dims(in, P_PAD, s->slide->dims) ? in : NULL;
}

static bool is_constant(const Expr *border)
{
    return border->mode == PAD_CONSTANT;
}

// Windows of so many elements along the axis, so far apart.
static Expr *windows_along(Rewrite *rw, const Separable *s, int64_t length,
                           const Arith *step, Expr *in)
{
    const Arith *number[NUMS_MAX];
    for (int k = 0; k < s->slide->nnum; k++)
        number[k] = num(rw, 1);
    number[2 * s->axis] = num(rw, length);
    number[2 * s->axis + 1] = step;
    return make(rw, P_SLIDE, s->slide->dims, number, NULL, in);
}

// The window, as the map's function has it.
static Expr *own_window(Rewrite *rw, const Separable *s)
{
    Expr *element = use(rw, s->map->fun->params[0]);
    return s->part < 0 ? element : expr_get(rw->ir, element, s->part);
}

// A fold of something else than the window.
static Expr *fold_of(Rewrite *rw, const Separable *s, int i, Expr *window)
{
    Param *w = fresh(rw, "w");
    Expr *own = with_name(rw, copy_of(rw, s->fold[i]), own_window(rw, s), w);
    return expr_replace(rw->ir, own, w, window);
}

static Expr *first_map(Rewrite *rw, const Separable *s)
{
    const Expr *border = border_of(s),
               *in = border ? border->arg[is_constant(border)] : s->slide->arg[0];
    Expr *own = copy_of(rw, in), *fold[FOLDS_MAX];
    if (border)
        own = layout_along(rw, s, border, true, no_border,
                           is_constant(border) ? copy_of(rw, border->arg[0]) : NULL, own);
    own = s->single ? windows_along(rw, s, s->runs.length, num(rw, 1), own)
                    : layout_along(rw, s, s->slide, true, no_window, NULL, own);
    Param *window = fresh(rw, "w");
    for (int i = 0; i < s->n; i++)
        fold[i] = fold_of(rw, s, i, use(rw, window));
    Expr *body = all_parts(rw, fold, s->n);
    return map_by(rw, s->slide->dims, window, body, own);
}

// Beyond the first map -------------------------------------------------------------------

// What the array that a fold reads has for an element whose value is c.
static Expr *mapped(Rewrite *rw, const Expr *expr, const Param *element, int k, Expr *c)
{
    if (element_component(expr, element) == k)
        return c;
    c = mapped(rw, expr->arg[0], element, k, c);
    if (!expr_is(expr, P_MAP))
        return c;
    const Expr *body = expr->fun->arg[0];
    const Param *own = expr->fun->params[0];
    return type_holds_array(own->type) ? mapped(rw, body, own, -1, c)
                                       : call_all(rw, expr->fun, (const Expr *[]){c});
}

// f(a, b), or which of them that is.
static Expr *joined(Rewrite *rw, const Expr *f, Expr *a, Expr *b)
{
    const Expr *body = f->arg[0];
    double x, y;
    const bool known = body->kind == E_OP && body->narg == 2 && is_number(a, &x) &&
                       is_number(b, &y) && expr_is_use(body->arg[0], f->params[0]) &&
                       expr_is_use(body->arg[1], f->params[1]);
    if (known && body->op == OP_ADD && (x == 0 || y == 0))
        return x == 0 ? b : a;
    if (known && (body->op == OP_MAXIMUM || body->op == OP_MINIMUM))
        return (x < y) == (body->op == OP_MAXIMUM) ? b : a;
    return call_all(rw, f, (const Expr *[]){a, b});
}

// The results of the folds of a row that holds the constant alone.
static Expr *row_beyond(Rewrite *rw, const Separable *s, const Expr *constant)
{
    const int64_t length = length_of(s->slide, s->axis);
    Expr *found[FOLDS_MAX];
    for (int i = 0; i < s->n; i++) {
        const Expr *fold = s->fold[i];
        const Expr *of = mapped(rw, fold->arg[1], s->map->fun->params[0], s->part,
                                copy_of(rw, constant));
        found[i] = copy_of(rw, fold->arg[0]);
        for (int64_t k = 0; k < length; k++)
            found[i] = joined(rw, fold->fun, found[i], copy_of(rw, of));
    }
    return all_parts(rw, found, s->n);
}

// The second map -------------------------------------------------------------------------

static Expr *second_windows(Rewrite *rw, const Separable *s, Param *rows)
{
    Expr *in = use(rw, rows);
    if (s->single) {
        const Arith *step = s->slide->num[2 * s->axis + 1], *len[DIMS_MAX];
        for (int k = 0; k < s->slide->dims; k++)
            len[k] = len_of(s->map, k);
        in = windows_along(rw, s, (s->runs.count - 1) * s->runs.length + 1, step, in);
        return s->runs.rest ? make(rw, P_TAKE, s->slide->dims, len, NULL, in) : in;
    }
    const Expr *border = border_of(s);
    if (border)
        in = layout_along(rw, s, border, false, no_border,
                          is_constant(border) ? row_beyond(rw, s, border->arg[0]) : NULL,
                          in);
    return layout_along(rw, s, s->slide, false, no_window, NULL, in);
}

// The results of fold i for the runs that stand side by side in a window of all runs.
static Expr *of_runs(Rewrite *rw, const Separable *s, int i, Expr *window)
{
    Param *j = fresh(rw, "j");
    for (int k = 0; k < s->slide->dims; k++)
        window = expr_at(rw->ir, window,
                         k == s->axis ? arith_of(rw, OP_MUL, use(rw, j), s->runs.length)
                                      : expr_num(rw->ir, num(rw, 0)));
    return array_by(rw, num(rw, s->runs.count), j, part_of_value(rw, window, i, s->n));
}

// The results of fold i for the rows in a window.
static Expr *of_rows(Rewrite *rw, const Separable *s, int i, Expr *window)
{
    for (int k = 1; k < s->slide->dims; k++)
        window = make1(rw, P_JOIN, window);
    if (s->n == 1)
        return window;
    Param *all = fresh(rw, "all");
    Expr *own = make_lambda(rw, all, part_of_value(rw, use(rw, all), i, s->n));
    return make_map(rw, 1, own, window);
}

// The fold of what the first map found.
static Expr *second_fold(Rewrite *rw, const Separable *s, int i, Expr *window)
{
    const Expr *apart = rule_reduceFission(rw, s->fold[i], NULL);
    const Expr *fold = apart ? apart : s->fold[i];
    Expr *in = s->single ? of_runs(rw, s, i, window) : of_rows(rw, s, i, window);
    Expr *found = fold_like(rw, fold, P_REDUCE, in);
    if (!s->single || !s->runs.rest)
        return found;
    const Arith *drop[DIMS_MAX];
    for (int k = 0; k < s->slide->dims; k++)
        drop[k] = num(rw, k == s->axis ? s->runs.length * s->runs.count : 0);
    Expr *rest = make(rw, P_DROP, s->slide->dims, drop, NULL, own_window(rw, s));
    return call_all(rw, fold->fun, (const Expr *[]){found, fold_of(rw, s, i, rest)});
}

// The map with windows of what the first one found as one part more, or in place of those
// that it uses for nothing else.
static Expr *second_map(Rewrite *rw, const Separable *s, Param *rows)
{
    const Expr *in = s->map->arg[0];
    const Param *element = s->map->fun->params[0];
    Param *t = fresh(rw, "t"), *found[FOLDS_MAX];
    Expr *body = copy_of(rw, s->map->fun->arg[0]), *part[PARTS_MAX];
    for (int i = 0; i < s->n; i++) {
        found[i] = fresh(rw, "found");
        body = with_name(rw, body, s->fold[i], found[i]);
    }
    const bool used = (s->single && s->runs.rest) || uses_component(body, element, s->part);
    int n = 0;
    for (int i = 0; i < (s->part < 0 ? 1 : in->narg); i++)
        part[n++] = copy_of(rw, s->part < 0 ? in : in->arg[i]);
    const int to = used ? n++ : MAX(s->part, 0);
    part[to] = second_windows(rw, s, rows);
    for (int i = 0; i < s->n; i++) {
        Expr *window = n > 1 ? get_of(rw, t, to) : use(rw, t);
        body = expr_replace(rw->ir, body, found[i], second_fold(rw, s, i, window));
    }
    body = expr_replace(rw->ir, body, element, s->part < 0 ? get_of(rw, t, 0) : use(rw, t));
    return map_by(rw, s->map->dims, t, body,
                  n > 1 ? make_zip(rw, s->map->dims, part, n) : part[0]);
}

Expr *rule_separateFold(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Separable s = {.map = at};
    if (!expr_is(at, P_MAP) || !at_host(rw))
        return NULL;
    find_separable(rw, &s, at->fun->arg[0], NULL, args->at[0]);
    if (s.n == 0 || (s.part >= 0 && at->arg[0]->narg + 1 >= PARTS_MAX))
        return NULL;
    Param *rows = fresh(rw, "rows");
    return expr_let(rw->ir, rows, first_map(rw, &s), second_map(rw, &s, rows));
}
