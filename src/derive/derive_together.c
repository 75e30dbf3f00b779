// SPDX-License-Identifier: Apache-2.0
//
// Folds and maps over one axis in one pass. A group or an item goes through a part of the
// axis element by element: it stores results and keeps the folds' accumulators in
// registers. The results of the parts are folded afterwards. So a matrix whose rows are
// summed along both axes is read once.
//
//   source  paper 004 and its successor (values of several calls in registers, sums as
//           parts); the rules foldTogether and holdOwn

#include "derive/walk.h"

#include "emit/emit.h"

enum { OWN_MOST = 64 }; // words of an array that an item has
enum { PARTS_OF_TOGETHER = 32 };

// Are its elements arrays that the items of a group can share out evenly?
static bool fits_items(const Type *type, int64_t row)
{
    int64_t len;
    return type->elem->kind != T_ARRAY && arith_is_const(type->len, &len) &&
           len > INNER_MOST && len % row == 0 && len / row <= OWN_MOST;
}

static bool fits_all(const Type *type, int64_t row, int64_t lanes)
{
    bool fits = true;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        fits = fits && fits_all(type->item[i], row, lanes);
    return fits && (type->kind != T_ARRAY ||
                    (fits_items(type, row) && type->len->value / row * lanes <= OWN_MOST));
}

// The largest number up to `most` that divides the length.
static int64_t divisor(int64_t length, int64_t most)
{
    int64_t n = MIN(length, MAX(most, 1));
    while (length % n)
        n--;
    return n;
}

bool has_items(const Derivation *d)
{
    const Target *target = target_find(d->device.target);
    return !target || target_has_threads(target);
}

// Numbers, or windows of them, element by element.
static bool gives_numbers(const Expr *in, int dims)
{
    bool all = is_zip(in, dims);
    for (int i = 0; all && i < in->narg; i++)
        all = gives_numbers(in->arg[i], dims);
    return all || is_window(in, dims) || !type_holds_array(type_elem(in->type, dims));
}

bool together_parts(const Derivation *d, const Point *point, const Expr *map,
                    Together *parts)
{
    int64_t lanes = derive_param(d, point, "lanes"), items = 1, len = 1, axis = 0;
    const Type *in = type_elem(map->arg[0]->type, map->dims);
    const Type *out = type_elem(map->type, map->dims);
    bool scalars = gives_numbers(map->arg[0], map->dims) && !type_holds_array(out);
    bool groups = scalars ? has_items(d) : by_groups(d, point);
    if (groups)
        items = derive_number(d, point, "l", 0);
    *parts = (Together){.group = groups, .near = scalars ? items * lanes : 0};
    for (int k = 0; k < map->dims; k++, len *= axis)
        if (!arith_is_const(type_elem(map->type, k)->len, &axis))
            return false;
    if (len % MAX(parts->near, 1) || (map->dims > 1 && !scalars) ||
        (!scalars && groups &&
         !(fits_all(in, items * lanes, lanes) && fits_all(out, items * lanes, lanes))))
        return false;
    parts->rows = divisor(len / MAX(parts->near, 1), derive_param(d, point, "turns"));
    return true;
}

bool together_first(const Derivation *d, int i, Point *point)
{
    // So many that a multiprocessor has two to four groups, with the row before and the
    // accumulators in registers.
    static const struct {
        int lx, turns;
    } first[] = {{256, 32}, {512, 32},  {256, 16}, {512, 64},
                 {128, 32}, {1024, 64}, {256, 64}};
    if (space_find(d->space, "turns") < 0 || i >= COUNTOF(first))
        return false;
    derive_single(d, point);
    cover_choose(d, point, 0, false);
    set_values(d, point, "lx=%d turns=%d ly=1 lanes=4 parts=1 vec=1 fold=group hold=again",
               first[i].lx, first[i].turns);
    return true;
}

bool is_list(const Expr *map)
{
    const Expr *in = is_map(map) ? map->arg[0] : NULL;
    bool windows = in && is_window(in, map->dims);
    for (int i = 0; in && is_zip(in, map->dims) && i < in->narg; i++)
        windows |= is_window(in->arg[i], map->dims);
    return in && !windows && is_whole_item(map);
}

bool derive_list(DeriveWalk *w, Path at)
{
    enum { NEAR = 4 }; // words that an item copies at once
    const int64_t args[] = {w->line, NEAR};
    const Rewriter before = rewriter_hold(&w->r);
    if (!w->deep && is_list(walk_node(w, at)))
        at = derive_joined(w, at);
    return rewriter_end(&w->r, &before, walk_apply(w, RULE_TILE_LIST, at, args, 2));
}

void list_plain(const Derivation *d, Point *point)
{
    if (d->device.is_cpu || !d->items_list || space_find(d->space, "lists") < 0)
        return;
    for (int items = 128; items >= 32; items /= 2)
        if (try_values(d, point, "lists=tiles lx=%d ly=1 lz=1", items))
            return;
}

bool list_first(const Derivation *d, int i, Point *point)
{
    static const int items[] = {128, 64, 256, 32};
    if (space_find(d->space, "lists") < 0 || i >= COUNTOF(items))
        return false;
    derive_single(d, point);
    cover_choose(d, point, 0, false);
    set_values(d, point, "lists=tiles lx=%d ly=1 lz=1", items[i]);
    return true;
}

// An array by all items, neighbours each in turn, all written out; or by the one item.
static void derive_own(DeriveWalk *w, Path at)
{
    int64_t x = 0, one = 1, row = w->line * w->lanes;
    if (!is_map(walk_node(w, at)))
        walk_apply(w, RULE_COPY, at, &one, 1);
    if (!w->rows) {
        walk_apply_plain(w, RULE_MAP_SEQ, at);
        return;
    }
    if (!walk_apply(w, RULE_SPLIT_JOIN, at, &row, 1))
        return;
    at = walk_below(w, at, 0);
    walk_apply_plain(w, RULE_MAP_UNROLL, at);
    at = walk_below(w, at, CHILD_FUN);
    if (w->lanes > 1 && walk_apply(w, RULE_SPLIT_JOIN, at, &w->lanes, 1)) {
        at = walk_below(w, at, 0);
        walk_apply_plain(w, RULE_MAP_UNROLL, walk_below(w, at, CHILD_FUN));
    }
    walk_apply(w, RULE_MAP_LCL, at, &x, 1);
}

// On the host items are loops, so that what each of them has is in memory of the group.
static void hold_own(DeriveWalk *w, Path at)
{
    derive_own(w, at);
    if (w->rows)
        walk_apply_plain(w, w->host ? RULE_HOLD_LOCAL : RULE_HOLD_OWN, at);
}

static void hold_row(DeriveWalk *w, Path value)
{
    const Expr *expr = walk_node(w, value);
    if (w->rows && expr->type->kind == T_ARRAY && is_name(expr))
        hold_own(w, value);
}

static void hold_nothing(DeriveWalk *w, Path value)
{
}

static void derive_given(DeriveWalk *w, Path at)
{
    if (walk_node(w, at)->type->kind == T_ARRAY)
        derive_own(w, at);
    else if (w->rows)
        walk_apply_plain(w, RULE_ONLY_ITEM, at);
}

static Path item_of(DeriveWalk *w, Path at, int i)
{
    return walk_node(w, at)->kind == E_TUPLE ? walk_below(w, at, i) : at;
}

// What an element comes to: folds of it and rows that are read again have names; what is
// stored is, what is folded stays where the fold computes it.
static void derive_element(DeriveWalk *w, Path loop, const bool *folded, int n)
{
    Path at = walk_below(w, loop, CHILD_FUN);
    derive_lets(w, &at, walk_node(w, loop)->fun->params[0], hold_row);
    for (int i = 0; i < n && !w->deep; i++)
        if (!folded[i])
            derive_given(w, item_of(w, at, i));
}

static void derive_accumulator(DeriveWalk *w, Path fold)
{
    bool arrays = walk_node(w, fold)->type->kind == T_ARRAY;
    if (!walk_apply_plain(w, RULE_REDUCE_SEQ, fold) || !arrays)
        return;
    derive_own(w, walk_below(w, fold, CHILD_FUN));
    if (w->rows)
        hold_own(w, walk_below(w, fold, 0));
}

// The fold of a part; one that leaves a row goes on with a fold of that.
static void derive_part(DeriveWalk *w, Path at)
{
    if (expr_is(walk_node(w, at), P_REDUCE)) {
        derive_accumulator(w, at);
        if (w->rows && walk_node(w, at)->type->kind != T_ARRAY)
            walk_apply_plain(w, RULE_ONLY_ITEM, at);
        return;
    }
    derive_accumulator(w, walk_below(w, at, 0));
    at = walk_below(w, at, 1);
    if (w->rows)
        walk_apply(w, RULE_REDUCE_LCL, at, (int64_t[]){w->line, w->lanes}, 2);
    derive_lets(w, &at, NULL, hold_nothing);
    if (expr_is(walk_node(w, at), P_REDUCE))
        walk_apply_plain(w, RULE_REDUCE_SEQ, at);
    derive_given(w, at);
}

void derive_together(DeriveWalk *w, Path at, const Together *parts)
{
    bool folded[PARTS_OF_TOGETHER] = {false}, rows = w->rows;
    int64_t x = 0;
    const Expr *given = walk_node(w, at)->fun->arg[0]->arg[1];
    int n = MIN(given->kind == E_TUPLE ? given->narg : 1, PARTS_OF_TOGETHER);
    for (int i = 0; i < n; i++) {
        const Expr *item = given->kind == E_TUPLE ? given->arg[i] : given;
        folded[i] = expr_is(item, P_REDUCE) || item->kind == E_LET;
    }
    w->rows = parts->group;
    walk_apply(w, w->rows ? RULE_MAP_WRG : RULE_MAP_GLB, at, &x, 1);
    Path inner = walk_below(w, at, CHILD_FUN), loop = walk_below(w, inner, 0);
    if (w->rows && !parts->near)
        walk_apply_plain(w, RULE_NAME_ROWS, loop);
    walk_apply_plain(w, RULE_MAP_SEQ, loop);
    derive_element(w, loop, folded, n);
    for (int i = 0; i < n && !w->deep; i++)
        if (folded[i])
            derive_part(w, item_of(w, walk_below(w, inner, 1), i));
    w->rows = rows;
}

const Together *together_of(const DeriveWalk *w, const Param *param)
{
    for (int i = 0; i < w->unstored.together.len; i++)
        if (w->unstored.together.at[i].param == param)
            return &w->unstored.together.at[i];
    return NULL;
}

bool folds_parts(const DeriveWalk *w, const Expr *expr)
{
    for (int i = 0; i < w->unstored.together.len; i++)
        if (expr_mentions(expr, w->unstored.together.at[i].param))
            return true;
    return false;
}

// Folds of one array -----------------------------------------------------------------

// An array that both what one fold folds and another array are made of, by maps and zips;
// NULL: there is none.
static const Expr *shared_array(const Expr *in, const Expr *other)
{
    const Expr *found = NULL;
    if (is_map(in))
        return shared_array(in->arg[0], other);
    for (int i = 0; is_zip(in, 1) && i < in->narg && !found; i++)
        found = shared_array(in->arg[i], other);
    if (is_zip(in, 1))
        return found;
    if (is_map(other) || is_zip(other, 1))
        return shared_array(other, in) ? in : NULL;
    return expr_equal(in, other) ? in : NULL;
}

// Does a map make the array, or go through it and wait for no fold of it? Then the map's
// pass does the folds, too.
static bool has_pass(const Expr *let, const Expr *array)
{
    enum { WAITING = 64 };
    const Param *waits[WAITING];
    int n = 0;
    for (; let->kind == E_LET && n < WAITING; let = let->arg[1]) {
        const Expr *value = let->arg[0];
        const bool waiting = expr_mentions_any(value, waits, n);
        if (is_map(value) && value->dims == 1 && !waiting &&
            (expr_is_use(array, let->param) || shared_array(value->arg[0], array)))
            return true;
        if (waiting || (expr_is(value, P_REDUCE) && shared_array(value->arg[1], array)))
            waits[n++] = let->param;
    }
    return false;
}

bool walk_move_up(DeriveWalk *w, Path at, int to)
{
    while (at.n > to) {
        at.n--;
        if (!walk_apply_plain(w, RULE_LET_SWAP, at))
            return false;
    }
    return true;
}

static bool is_whole_fold(const Expr *let)
{
    return let->kind == E_LET && expr_is(let->arg[0], P_REDUCE) &&
           type_is_scalar(let->arg[0]->type);
}

// Folds have names of their own, and fold maps of what is joined.
static void name_all_folds(DeriveWalk *w, Path at)
{
    const int64_t any[] = {0, 0};
    while (!w->deep &&
           (walk_apply(w, RULE_NAME_FOLD, at, any, 2) || walk_node(w, at)->kind == E_LET)) {
        const bool fold = is_whole_fold(walk_node(w, at));
        Path in = walk_below(w, walk_below(w, at, 0), 1);
        while (fold && walk_apply_plain(w, RULE_LAYOUT_OF_MAP, in)) {
            in = walk_below(w, in, 0);
            walk_apply_plain(w, RULE_JOIN_ZIP, in);
        }
        at = walk_below(w, at, 1);
    }
}

// Folds that read one array, as its mean and its extremes, become one fold, but for those
// that need the result of another.
void derive_join_folds(DeriveWalk *w, Path at)
{
    const Rewriter before = rewriter_hold(&w->r);
    const Path lets = at;
    bool joined = false;
    name_all_folds(w, at);
    for (; !w->deep && walk_node(w, at)->kind == E_LET; at = walk_below(w, at, 1)) {
        int64_t n = 1;
        const Expr *first = walk_node(w, at);
        Path next = walk_below(w, at, 1);
        for (; is_whole_fold(first) && !w->deep && walk_node(w, next)->kind == E_LET;
             next = walk_below(w, next, 1)) {
            const Expr *let = walk_node(w, next), *array = NULL;
            if (is_whole_fold(let))
                array = shared_array(first->arg[0]->arg[1], let->arg[0]->arg[1]);
            n += array && !has_pass(walk_node(w, lets), array) &&
                 walk_move_up(w, next, at.n + (int)n);
        }
        joined |= n > 1 && walk_apply(w, RULE_LET_TUPLE, at, &n, 1);
    }
    rewriter_end(&w->r, &before, joined);
}
