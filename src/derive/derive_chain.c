// SPDX-License-Identifier: Apache-2.0
//
// Chains: maps whose function folds what it is given and goes on with the results, as
// soft-max and the norms of rows do. The outer maps are places for work-groups or
// work-items; the nests below follow each other, by all items of the group or in a loop.
//
//   method  folds get names, so that each is computed once; then every nest of the chain
//           is lowered where it stands, and what it makes is held for the next

#include "derive/walk.h"

// Lowering -----------------------------------------------------------------------------

// Where the items of a group share an array of arrays, they do so element by element: rows
// of it may be fewer than they are.
static Path flat_elements(DeriveWalk *w, Path at)
{
    while (!w->deep && is_map(walk_node(w, at)) &&
           (walk_node(w, at)->dims > 1 || walk_apply_plain(w, RULE_MAP_FLATTEN, at)) &&
           walk_apply_plain(w, RULE_MAP_JOIN, at))
        at = walk_below(w, at, 0);
    return at;
}

// A processor has a loop for each row, in which it finds neighbours, where rows are worth
// one: where the map of the last of them is.
static Path rows_in_turn(DeriveWalk *w, Path at)
{
    enum { ROW_LEAST = 8 };
    walk_apply_plain(w, RULE_MAP_NEST, at);
    while (!w->deep && is_map(walk_node(w, at))) {
        const Expr *inner = walk_node(w, at)->fun->arg[0];
        int64_t length;
        if (!is_map(inner) || inner->dims > 1 || type_depth(inner->type) > 1 ||
            !arith_is_const(inner->type->len, &length) || length < ROW_LEAST ||
            !walk_apply_plain(w, RULE_MAP_SEQ, at))
            break;
        at = walk_below(w, at, CHILD_FUN);
    }
    return at;
}

// Neighbours as vectors where they divide the length: nothing sticks out that way.
static void derive_elements(DeriveWalk *w, Path at)
{
    int64_t x = 0, one = 1, all = array_dims(walk_node(w, at)->type);
    if (!is_map(walk_node(w, at)))
        walk_apply(w, RULE_COPY, at, w->rows ? &all : &one, 1);
    if (w->rows && w->cpu)
        at = rows_in_turn(w, at);
    if (w->rows)
        at = flat_elements(w, at);
    walk_apply_plain(w, RULE_MAP_NEST, at);
    if (!w->rows) {
        walk_apply_plain(w, RULE_MAP_SEQ, at);
        return;
    }
    const Arith *len = walk_node(w, at)->type->len;
    bool even = arith_multiple(w->r.ir->arith, len) % w->lanes == 0;
    if (w->lanes > 1 && even && walk_apply(w, RULE_SPLIT_JOIN, at, &w->lanes, 1)) {
        at = walk_below(w, at, 0);
        walk_apply_plain(w, RULE_MAP_UNROLL, walk_below(w, at, CHILD_FUN));
    }
    walk_apply(w, RULE_MAP_LCL, at, &x, 1);
}

// Is it worth holding: computed, or a row that was given a name because it is?
static bool is_held(const Expr *value)
{
    return value->type->kind == T_ARRAY &&
           (is_name(value) || expr_is(expr_behind_gets(value), P_SCATTER) ||
            (writes_itself(value) && value->pattern != P_TOLOCAL));
}

// A fold or a prefix by the items of the group: lets around it, one for each level.
static bool derive_shared(DeriveWalk *w, Path at)
{
    const Expr *value = walk_node(w, at);
    if (fold_is_long(value, ALONE_MOST + 1)) {
        const int64_t items[] = {w->items, w->each};
        walk_apply_plain(w, RULE_REDUCE_FISSION, at);
        return w->rows && ((w->join && walk_apply(w, RULE_REDUCE_LANES, at, items, 2)) ||
                           walk_apply(w, RULE_REDUCE_LCL, at, items, 2));
    }
    return w->rows && scan_is_long(value, 0) &&
           walk_apply(w, RULE_SCAN_LCL, at, &w->items, 1);
}

static void derive_loop(DeriveWalk *w, Path at);
static void derive_step(DeriveWalk *w, Path at);

// An array is held where all items can read it, or computed where it is read.
static void derive_value(DeriveWalk *w, Path at)
{
    const Expr *value = walk_node(w, at);
    if (w->rows && is_shared_loop(value)) {
        derive_loop(w, at);
    } else if (w->rows && w->hold && scans_rows(value)) {
        derive_step(w, at);
        walk_apply_plain(w, RULE_HOLD_LOCAL, at);
    } else if (w->rows && w->hold && is_held(value)) {
        derive_elements(w, expr_is(value, P_SCATTER) ? walk_below(w, at, 0) : at);
        walk_apply_plain(w, RULE_HOLD_LOCAL, at);
    }
}

// Arrays by all items. Scalars are stored by one, or are each item's own.
static void derive_result(DeriveWalk *w, Path at, bool stored)
{
    at = walk_under_layout(w, at);
    const Expr *result = walk_node(w, at);
    if (result->kind == E_TUPLE) {
        for (int i = 0; i < result->narg; i++)
            derive_result(w, walk_below(w, at, i), stored);
    } else if (w->rows && scans_rows(result)) {
        derive_step(w, at);
    } else if (result->type->kind == T_ARRAY) {
        if (w->rows || !expr_is(result, P_SCAN))
            derive_elements(w, at);
    } else if (w->rows && stored) {
        walk_apply_plain(w, RULE_ONLY_ITEM, at);
    }
}

// Another name for what the chain gave one; or a prefix, as a map of positions, that one
// nest looks at in its turn.
static bool needs_no_name(const Expr *let, const Param *row)
{
    const Expr *value = let->arg[0];
    if (value->kind == E_PARAM)
        return value->param != row;
    const Expr *in = let->arg[1]; // what groups are told is one element of it
    if (in->kind == E_LET && expr_is(in->arg[0], P_LOOKBACK))
        in = in->arg[1];
    return is_map(value) && expr_is(value->arg[0], P_ARRAY) &&
           expr_uses(in, let->param) <= 1;
}

void derive_lets(DeriveWalk *w, Path *at, const Param *row,
                 void (*hold)(DeriveWalk *w, Path value))
{
    const int64_t args[] = {w->deep ? 0 : chain_least(walk_node(w, *at)), 0};
    while (!w->deep) {
        if (walk_apply_plain(w, RULE_LET_OUT, *at) ||
            walk_apply(w, RULE_NAME_FOLD, *at, args, 2))
            continue;
        bool let = walk_node(w, *at)->kind == E_LET;
        if (let && !expr_mentions(walk_node(w, *at)->arg[1], walk_node(w, *at)->param) &&
            walk_apply_plain(w, RULE_LET_INLINE, *at))
            continue;
        if (derive_shared(w, let ? walk_below(w, *at, 0) : *at))
            continue;
        if (!let)
            break;
        if (needs_no_name(walk_node(w, *at), row) &&
            walk_apply_plain(w, RULE_LET_INLINE, *at))
            continue;
        hold(w, walk_below(w, *at, 0));
        *at = walk_below(w, *at, 1);
    }
}

static void derive_body_of_chain(DeriveWalk *w, Path at, const Param *row, bool stored)
{
    derive_lets(w, &at, row, derive_value);
    if (!w->deep)
        derive_result(w, at, stored);
}

// The items of a group take each step of a loop together, or make each of its prefixes.
static void derive_loop(DeriveWalk *w, Path at)
{
    derive_result(w, walk_below(w, at, 0), false);
    derive_step(w, at);
}

static void derive_step(DeriveWalk *w, Path at)
{
    const bool rows = walk_apply_plain(w, RULE_SCAN_SEQ, at); // else its state is local
    const Param *before = rows && !w->deep ? walk_node(w, at)->fun->params[0] : NULL;
    derive_body_of_chain(w, walk_below(w, at, CHILD_FUN), before, false);
}

// Does each item go through a row or column of its own, of which the group copies strips?
// One item alone has none to share. (Prefixes that are rows are read where they are
// stored.)
static bool in_strips(const DeriveWalk *w, const Expr *map)
{
    return !w->rows && w->strips && w->local[0] > 1 && walks_lines(map) &&
           !chain_scans_rows(map);
}

// So many rows a group, one for the items of each place along dimension y: then at is their
// map.
static bool derive_beside(DeriveWalk *w, Path *at, int64_t beside, int64_t y)
{
    if (beside < 2 || !walk_apply(w, RULE_SPLIT_JOIN, *at, &beside, 1))
        return false;
    Path groups = walk_map_below(w, *at);
    *at = walk_below(w, groups, CHILD_FUN);
    walk_apply(w, RULE_MAP_WRG, groups, (int64_t[]){0}, 1);
    walk_apply(w, RULE_MAP_LCL, *at, &y, 1);
    return true;
}

// Several short rows a group, each by the items of one y, or long ones by an item each; the
// map of them.
static Path rows_beside(DeriveWalk *w, Path at)
{
    const Expr *map = walk_node(w, at);
    const bool items = in_strips(w, map);
    int64_t beside = items ? w->local[0] : w->rows ? w->beside : 1;
    // What is read where it was written must be there for each of them.
    if (chain_scans_rows(map) &&
        arith_multiple(w->r.ir->arith, map->type->len) % beside != 0)
        beside = 1;
    derive_beside(w, &at, beside, !items);
    return at;
}

// Where items go through lines of their own, rows that are none are a group's.
static bool shares_row(const DeriveWalk *w, const Expr *map)
{
    const bool columns = reads_columns(map);
    return (w->rows && !(w->near && columns)) ||
           (!w->rows && w->strips && !columns && !walks_lines(chain_map(map)));
}

// given: rows that are read again are copied to where the group holds what it makes.
static void derive_rows(DeriveWalk *w, Path at, int depth, bool given)
{
    const bool strips = in_strips(w, chain_map(walk_node(w, at)));
    for (int64_t d = depth - 1; d >= 0; d--) {
        if (d == 0 && (depth == 1 || strips))
            at = rows_beside(w, at);
        if (walk_node(w, at)->pattern == P_MAP)
            walk_apply(w, w->rows || strips ? RULE_MAP_WRG : RULE_MAP_GLB, at, &d, 1);
        if (d == 0 && w->rows && given)
            walk_apply_plain(w, RULE_NAME_ROWS, at);
        const Param *row = w->deep ? NULL : walk_node(w, at)->fun->params[0];
        at = walk_below(w, at, CHILD_FUN);
        if (d > 0)
            at = walk_under_layout(w, at);
        else
            derive_body_of_chain(w, at, row, true);
    }
}

bool derive_chain(DeriveWalk *w, Path at)
{
    const Expr *map = walk_node(w, at);
    const int depth = chain_depth(map);
    const bool rows = w->rows, hold = w->hold;
    if (depth) {
        const bool held = chain_holds(map), steps = chain_scans_rows(map);
        const bool fits = chain_scan_bytes(map) <= w->room;
        const bool given =
            copies_given(map) || (hold && (rows || !steps) && chain_bytes(map) <= w->room);
        w->hold = held || given;
        w->rows = fits && (held || steps || shares_row(w, map));
        derive_rows(w, at, depth, given);
    }
    w->rows = rows;
    w->hold = hold;
    return depth > 0;
}

bool derive_by_group(DeriveWalk *w, Path at)
{
    const DeriveWalk before = *w;
    w->rows = true;
    w->near = false;
    w->beside = 1;
    bool ok = derive_chain(w, at);
    w->rows = before.rows;
    w->near = before.near;
    w->beside = before.beside;
    return ok;
}

bool derive_parts_by_groups(DeriveWalk *w, Path at)
{
    int64_t y = 1;
    Path rows = walk_below(w, at, CHILD_FUN);
    return !w->deep && is_map(walk_node(w, rows)) && shares_row(w, walk_node(w, rows)) &&
           chain_depth(walk_node(w, rows)) && walk_apply(w, RULE_MAP_WRG, at, &y, 1) &&
           derive_by_group(w, rows);
}

bool derive_folds(DeriveWalk *w, Path at, int64_t lanes)
{
    bool near = keeps_order(walk_node(w, walk_below(w, at, CHILD_FUN)));
    return (near && derive_by_group(w, at)) ||
           walk_apply(w, RULE_REDUCE_WRG, at, (int64_t[]){w->items, lanes}, 2);
}

// As many parts as columns have are too many for rows beside them, unless those are long.
bool chain_parts(const DeriveWalk *w, const Expr *map)
{
    enum { LONG_LEAST = 2048 };
    int64_t length = chain_split(map);
    return length && w->fold_parts > 1 &&
           (!w->near || reads_columns(map) || length / w->fold_parts >= LONG_LEAST);
}

// Prefixes of whole arrays ----------------------------------------------------------------

bool scan_splits(const DeriveWalk *w, const Expr *expr)
{
    const Expr *scan = scan_read(expr);
    int64_t len;
    return w->share && scan && chain_shares(scan) &&
           !(arith_is_const(scan->type->len, &len) && len <= w->items * w->share);
}

// In one pass, in parts; where the map is then.
static bool look_back(DeriveWalk *w, Path *at, int64_t part, int64_t items)
{
    const int64_t args[] = {part, items}, x = 0;
    if (!w->one_pass || !walk_apply(w, RULE_SCAN_ONE_PASS, *at, args, 2))
        return false;
    *at = walk_last_let(w, *at);
    walk_apply(w, RULE_MAP_GLB, walk_under_layout(w, walk_below(w, *at, 0)), &x, 1);
    *at = walk_below(w, *at, 1);
    return true;
}

// The same, where groups share what is done with the prefixes of a part.
static bool groups_look_back(DeriveWalk *w, Path at, int64_t part)
{
    const Rewriter before = rewriter_hold(&w->r);
    return rewriter_end(&w->r, &before,
                        look_back(w, &at, part, 0) &&
                            derive_by_group(w, walk_map_below(w, at)));
}

// By a group each, or else by an item each.
static void derive_each(DeriveWalk *w, Path at)
{
    if (!derive_by_group(w, at))
        walk_apply(w, RULE_MAP_GLB, at, (int64_t[]){0}, 1);
}

// In one group, or in parts: what each gives, the prefixes of these, and its own behind
// them.
bool derive_scan(DeriveWalk *w, Path at)
{
    int64_t part = w->items * w->share;
    if (!w->deep && scans_rows(walk_node(w, at)))
        return walk_apply_plain(w, RULE_SCAN_AS_MAP, at) &&
               derive_chain(w, walk_map_below(w, at));
    if (w->deep || !w->share || !chain_shares(scan_read(walk_node(w, at))))
        return false;
    if (!scan_splits(w, walk_node(w, at)))
        return walk_apply_plain(w, RULE_SCAN_AS_MAP, at) &&
               derive_by_group(w, walk_map_below(w, at));
    if (groups_look_back(w, at, part))
        return true;
    if (!walk_apply(w, RULE_SCAN_SPLIT, at, &part, 1))
        return false;
    derive_folds(w, walk_below(w, at, 0), w->each);
    at = walk_below(w, at, 1);
    derive_scan(w, walk_below(w, at, 0));
    derive_each(w, walk_map_below(w, walk_below(w, at, 1)));
    return true;
}

// What nobody shares is a kernel, too.
void derive_row_step(DeriveWalk *w, Path at, void (*apart)(DeriveWalk *w, Path at))
{
    apart(w, at);
    at = walk_under_layout(w, walk_below_lets(w, at));
    if (!w->deep && expr_is(walk_node(w, at), P_SCAN) &&
        walk_apply_plain(w, RULE_SCAN_AS_MAP, at))
        derive_each(w, walk_map_below(w, at));
}

// A map of what each part of a row gives: a work-item a part, neighbours of neighbouring
// rows. Where results are rows, the group of these items may copy them in strips.
static Path derive_part_items(DeriveWalk *w, Path at, bool results)
{
    const int64_t x = 0, y = 1;
    const bool strips = results && w->strips && derive_beside(w, &at, w->local[0], x);
    if (!strips)
        walk_apply(w, RULE_MAP_GLB, at, &x, 1);
    at = walk_under_layout(w, walk_below(w, at, CHILD_FUN));
    if (is_map(walk_node(w, at)))
        walk_apply(w, strips ? RULE_MAP_WRG : RULE_MAP_GLB, at, &y, 1);
    return at;
}

// Prefixes of columns: the items of a group would read elements that lie far apart, so each
// item takes a part of a column.
static bool derive_scan_columns(DeriveWalk *w, Path at)
{
    int64_t len = scan_row_length(walk_node(w, at)), parts = w->fold_parts;
    int64_t part = (len + parts - 1) / MAX(parts, 1);
    if (parts < 2 || part < 2 || !reads_columns(walk_node(w, at)))
        return false;
    if (look_back(w, &at, part, 1)) {
        at = walk_below(w, derive_part_items(w, at, true), CHILD_FUN);
        while (walk_apply_plain(w, RULE_LET_OUT, at))
            ;
        if (walk_node(w, at)->kind == E_LET)
            walk_apply_plain(w, RULE_TO_PRIVATE, walk_below(w, at, 0));
        return true;
    }
    if (!walk_apply(w, RULE_SCAN_RESUME, walk_below(w, at, CHILD_FUN), &part, 1))
        return false;
    walk_apply_plain(w, RULE_MAP_FISSION_LET, at);
    Path rest = walk_below(w, at, 1);
    walk_apply_plain(w, RULE_MAP_FISSION_LET, rest);
    derive_part_items(w, walk_below(w, at, 0), false);
    derive_part_items(w, walk_below(w, rest, 0), false);
    derive_part_items(w, walk_below(w, rest, 1), true);
    return true;
}

// Prefixes of rows that are too long, or too few, for a group each: the same under a map.
// What each part gives, the prefixes of these, and its own behind them are maps of their
// own. Parts that no group shares would only add kernels: then all is as it was.
static bool scan_rows_in_parts(DeriveWalk *w, Path at, int64_t part)
{
    const int64_t y = 1;
    if (look_back(w, &at, part, 0)) {
        walk_apply(w, RULE_MAP_WRG, at, &y, 1);
        return derive_by_group(w, walk_map_below(w, walk_below(w, at, CHILD_FUN)));
    }
    if (!walk_apply(w, RULE_SCAN_SPLIT, walk_below(w, at, CHILD_FUN), &part, 1))
        return false;
    walk_apply_plain(w, RULE_MAP_FISSION_LET, at);
    Path totals = walk_below(w, at, 0), rest = walk_below(w, at, 1);
    walk_apply_plain(w, RULE_MAP_FISSION_LET, rest);
    Path before = walk_below(w, rest, 0), own = walk_below(w, rest, 1);
    derive_by_group(w, totals);
    if (!derive_scan_rows(w, before))
        derive_each(w, before);
    walk_apply(w, RULE_MAP_WRG, own, &y, 1);
    return derive_by_group(w, walk_map_below(w, walk_below(w, own, CHILD_FUN)));
}

bool derive_scan_rows(DeriveWalk *w, Path at)
{
    const int64_t part = w->items * w->share;
    if (!w->deep && derive_scan_columns(w, at))
        return true;
    if (w->deep || scan_row_length(walk_node(w, at)) <= part || !w->share)
        return false;
    const Rewriter before = rewriter_hold(&w->r);
    return rewriter_end(&w->r, &before, scan_rows_in_parts(w, at, part));
}

bool folds_again(DeriveWalk *w, bool windows)
{
    bool changed = false;
    Path at = walk_below_lets(w, (Path){0});
    for (int64_t all = windows; at.n > 0;) {
        at.n--;
        changed |= walk_apply(w, RULE_FOLD_AGAIN, at, &all, 1);
    }
    return changed;
}
