// SPDX-License-Identifier: Apache-2.0
//
// Chains: maps whose function folds what it is given and goes on with the results, as
// soft-max and the norms of rows do. The outer maps are places for work-groups or
// work-items; the nests below follow each other, by all items of the group or in a loop.
//
//   method  folds get names, so that each is computed once; then every nest of the chain
//           is lowered where it stands, and what it makes is held for the next

#include "derive/walk.h"

// What can be a chain ------------------------------------------------------------------

static bool can_share(const Expr *expr, int64_t least)
{
    if (expr_is(expr, P_SCAN)) // in local memory, so of a length that is known
        return scan_is_long(expr, least) && folds_by_parts(expr) &&
               arith_is_const(expr->type->len, NULL);
    return fold_is_long(expr, least) && reduce_shares(expr);
}

static bool shares(const Expr *expr)
{
    return can_share(expr, INNER_MOST + 1);
}

// How many elements the arrays that a function returns have together.
static double elements_made(const Type *type)
{
    double count = 0;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        count += elements_made(type->item[i]);
    for (; type->kind == T_ARRAY; type = type->elem)
        count = (count > 0 ? count : 1) * (double)arith_most(type->len);
    return count;
}

// Elements of a fold that is worth sharing: where an array is made, each of its elements
// would fold them again.
static int64_t least_of(const Expr *body)
{
    double count = elements_made(body->type);
    return count > 0 && count <= INNER_MOST * INNER_MOST
               ? MAX(8, (int64_t)count / INNER_MOST)
               : INNER_MOST + 1;
}

// A prefix that items cannot share would be computed by all of them.
static bool is_alone(const Expr *expr, const void *least)
{
    return expr_is(expr, P_SCAN) && !can_share(expr, *(const int64_t *)least);
}

// Does a body fold at its own level what items may share?
static bool folds(const Expr *body, int64_t least)
{
    const Expr *fold = fold_to_name(body, least);
    if (can_share(body, least) || (fold && can_share(fold, least)))
        return true;
    return body->kind == E_LET &&
           (can_share(body->arg[0], least) || folds(body->arg[1], least));
}

bool is_chain_body(const Expr *body)
{
    return folds(body, least_of(body)) &&
           !expr_find(body, is_alone, &(int64_t){least_of(body)});
}

// Are its elements found by time loops? They have to be in memory before anything reads
// them, which nobody would share between the groups of two maps.
static bool loops_within(const Expr *in, const void *none)
{
    return is_map(in) && expr_find_pattern(in->fun, P_ITERATE);
}

// Maps around it are places only where each runs over what the one around it is given: a
// fold of every element of one array with every element of another is a product.
int chain_depth(const Expr *map)
{
    for (int depth = 1; depth <= DIMS_MAX && is_map(map) && map->dims == 1; depth++) {
        const Expr *body = map->fun->arg[0];
        if (folds(body, least_of(body)))
            return is_chain_body(body) ? depth : 0;
        body = under_layout(body);
        if (!is_map(body) || !expr_mentions(body->arg[0], map->fun->params[0]) ||
            expr_find(map->arg[0], loops_within, NULL))
            return 0;
        map = body;
    }
    return 0;
}

bool has_chain(const Expr *expr)
{
    if (chain_depth(expr))
        return true;
    for (int i = 0; i < expr->narg; i++)
        if (has_chain(expr->arg[i]))
            return true;
    return false;
}

static int64_t bytes_of(const Type *type)
{
    return (int64_t)MIN(type_bytes(type, NULL, NULL), 0x1p50);
}

int64_t chain_split(const Expr *map)
{
    Path at = {0};
    int64_t len;
    if (chain_depth(map) != 1 || map->type->elem->kind == T_ARRAY ||
        !path_to_fold(map->fun->arg[0], &at, shares))
        return 0;
    const Expr *fold = path_find(map->fun->arg[0], &at);
    return arith_is_const(fold->arg[1]->type->len, &len) ? len : 0;
}

// Is the element of that map an index into rows?
static bool indexes_rows(const Expr *expr, const void *element)
{
    return expr->kind == E_AT && expr->arg[0]->kind == E_AT &&
           expr_mentions(expr->arg[1], element) &&
           !expr_mentions(expr->arg[0]->arg[1], element);
}

enum { ALONE_MOST = 16 }; // elements that an item folds by itself

static bool goes_on(const Expr *expr, const void *none)
{
    return scan_is_long(expr, ALONE_MOST + 1) ||
           (fold_is_long(expr, INNER_MOST + 1) && !reduce_shares(expr));
}

bool walks_lines(const Expr *map)
{
    return is_map(map) && map->dims == 1 && expr_find(map->fun->arg[0], goes_on, NULL);
}

bool walks_rows(const Expr *map)
{
    return walks_lines(map) && !reads_columns(map);
}

// Do neighbours of a turned array lie within one access of a warp?
static bool is_close(const Type *turned)
{
    enum { APART_MOST = 16 }; // bytes
    return bytes_of(turned->elem->elem) <= APART_MOST;
}

static bool turns_elements(const Expr *array);

static bool is_turned(const Expr *array)
{
    if (array->kind != E_PATTERN)
        return false;
    for (int i = 0; array->pattern == P_ZIP && i < array->narg; i++)
        if (is_turned(array->arg[i]))
            return true;
    if (array->pattern == P_JOIN)
        return turns_elements(array->arg[0]);
    return array->pattern == P_TRANSPOSE ? is_close(array->type)
                                         : is_map(array) && is_turned(array->arg[0]);
}

bool turns_array(const Expr *expr)
{
    return expr_is(is_map(expr) && expr->dims == 1 ? expr->fun->arg[0] : expr, P_TRANSPOSE);
}

// Is each of its elements turned?
static bool turns_elements(const Expr *array)
{
    return is_map(array) && array->dims == 1 && expr_is(array->fun->arg[0], P_TRANSPOSE) &&
           is_close(array->type->elem);
}

static bool depends_on(const Expr *array, const Param *element)
{
    if (is_map(array))
        return depends_on(array->arg[0], element);
    if (!is_zip(array, 1))
        return expr_mentions(array, element);
    for (int i = 0; i < array->narg; i++)
        if (depends_on(array->arg[i], element))
            return true;
    return false;
}

bool folds_same(const Expr *map)
{
    enum { ROWS_LEAST = 1024 };
    int64_t rows;
    Path at = {0};
    return map->type->elem->kind != T_ARRAY && arith_is_const(map->type->len, &rows) &&
           rows >= ROWS_LEAST && path_to_fold(map->fun->arg[0], &at, shares) &&
           !depends_on(path_find(map->fun->arg[0], &at)->arg[1], map->fun->params[0]);
}

bool reads_columns(const Expr *map)
{
    for (int depth = chain_depth(map); depth > 1; depth--) {
        if (turns_elements(map->arg[0]))
            return true;
        map = under_layout(map->fun->arg[0]);
    }
    return is_turned(map->arg[0]) || folds_same(map) ||
           expr_find(map->fun->arg[0], indexes_rows, map->fun->params[0]);
}

static bool is_near(const Expr *expr, const void *none)
{
    return expr_is(expr, P_SCAN) || (keeps_order(expr) && shares(expr));
}

bool reads_near(const Expr *expr)
{
    return expr_find(expr, is_near, NULL);
}

int64_t fold_elem_bytes(const Expr *expr)
{
    return keeps_order(expr) && shares(expr) ? bytes_of(expr->type) : 0;
}

int64_t shared_fold_bytes(const Expr *expr)
{
    return expr_is(expr, P_REDUCE) && expr->type->kind != T_ARRAY && can_share(expr, 0)
               ? bytes_of(expr->type)
               : 0;
}

int64_t scan_row_length(const Expr *map)
{
    int64_t len;
    const Expr *scan = is_map(map) && map->dims == 1 ? scan_read(map->fun->arg[0]) : NULL;
    return scan && shares(scan) && arith_is_const(scan->type->len, &len) ? len : 0;
}

int64_t scan_elem_bytes(const Expr *expr)
{
    return expr_is(expr, P_SCAN) && shares(expr) ? bytes_of(expr->type->elem) : 0;
}

// What a group makes before it shares a fold or prefix of neighbours: what is computed of
// the elements, array by array.
static int64_t input_bytes(const Expr *in)
{
    int64_t bytes = 0;
    for (int i = 0; is_zip(in, 1) && i < in->narg; i++)
        bytes += input_bytes(in->arg[i]);
    return is_zip(in, 1) || in->kind != E_PATTERN || in->pattern == P_ARRAY
               ? bytes
               : bytes_of(in->type);
}

// The bytes that the items keep for each prefix: a row, padded, and what precedes each
// item. inputs: counts what is computed for it, and for folds of neighbours, too.
static int64_t scan_bytes(const Expr *expr, bool inputs)
{
    int64_t len, bytes = 0;
    if (expr_is(expr, P_SCAN) && arith_is_const(expr->type->len, &len))
        bytes = bytes_of(expr->type) / MAX(len, 1) * (len + SCAN_MORE);
    if (inputs && (expr_is(expr, P_SCAN) || (keeps_order(expr) && shares(expr))))
        bytes += input_bytes(expr->arg[1]);
    for (int i = 0; i < expr->narg; i++)
        bytes += scan_bytes(expr->arg[i], inputs);
    return expr->fun ? bytes + scan_bytes(expr->fun->arg[0], inputs) : bytes;
}

typedef struct {
    LengthOf *length;
    const void *user;
    int64_t most;
} Longest;

static void note_longest(const Expr *expr, void *user)
{
    Longest *l = user;
    if (can_share(expr, 0))
        l->most = MAX(l->most, l->length(l->user, expr->arg[expr->narg - 1]->type->len));
}

static const Expr *innermost_of(const Expr *map)
{
    for (int depth = chain_depth(map); depth > 1; depth--)
        map = under_layout(map->fun->arg[0]);
    return map;
}

int64_t chain_length(const Expr *map, LengthOf *length, const void *user)
{
    map = innermost_of(map);
    Longest longest = {length, user, 0};
    expr_each(map->fun->arg[0], note_longest, &longest);
    return longest.most;
}

int64_t chain_scan_bytes(const Expr *map)
{
    return scan_bytes(map->fun->arg[0], false);
}

// Is an array of scalars read by a map of it, element by element, and by nothing else that
// is still to come?
static bool ends_in(const Param *array, const Expr *let)
{
    const Expr *value = let->arg[0];
    int uses = expr_uses(value, array), found = 0;
    if (expr_mentions(let->arg[1], array) || !is_map(value) || value->dims != 1)
        return false;
    const Expr *in = value->arg[0];
    bool zip = is_zip(in, 1);
    for (int i = 0; i < (zip ? in->narg : 1); i++)
        found += expr_is_use(zip ? in->arg[i] : in, array);
    return uses == found;
}

static bool same_scalars(const Type *a, const Type *b)
{
    return a->kind == T_ARRAY && b->kind == T_ARRAY && a->len == b->len &&
           a->elem->kind == T_SCALAR && b->elem->kind == T_SCALAR &&
           a->elem->scalar == b->elem->scalar;
}

// What a chain holds, whose arrays take the place of others that are used no more (the pass
// reuse).
enum { HELD_MOST = 16 };

typedef struct {
    const Param *array[HELD_MOST];
    int n;
} HeldArrays;

static bool takes_place(HeldArrays *held, const Expr *let)
{
    for (int i = 0; i < held->n; i++)
        if (same_scalars(held->array[i]->type, let->param->type) &&
            ends_in(held->array[i], let)) {
            held->array[i] = let->param;
            return true;
        }
    return false;
}

int64_t chain_bytes(const Expr *map)
{
    map = innermost_of(map);
    int64_t bytes = bytes_of(map->arg[0]->type->elem) + scan_bytes(map->fun->arg[0], true);
    HeldArrays held = {{map->fun->params[0]}, 1};
    for (const Expr *e = map->fun->arg[0]; e->kind == E_LET; e = e->arg[1]) {
        if (e->param->type->kind != T_ARRAY || takes_place(&held, e))
            continue;
        bytes += bytes_of(e->param->type);
        if (held.n < HELD_MOST)
            held.array[held.n++] = e->param;
    }
    return bytes;
}

// Lowering -----------------------------------------------------------------------------

// Neighbours as vectors where they divide the length: nothing sticks out that way.
static void derive_elements(DeriveWalk *w, Path at)
{
    int64_t x = 0, one = 1;
    if (!is_map(walk_node(w, at)))
        walk_apply(w, RULE_COPY, at, &one, 1);
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
    const Expr *of = value;
    while (of->kind == E_GET)
        of = of->arg[0];
    return value->type->kind == T_ARRAY &&
           (of->kind == E_PARAM || (writes_itself(value) && value->pattern != P_TOLOCAL));
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

// An array is held where all items can read it, or computed where it is read.
static void derive_value(DeriveWalk *w, Path at)
{
    const Expr *value = walk_node(w, at);
    if (w->rows && w->hold && is_held(value)) {
        derive_elements(w, at);
        walk_apply_plain(w, RULE_HOLD_LOCAL, at);
    }
}

static void derive_result(DeriveWalk *w, Path at)
{
    at = walk_under_layout(w, at);
    const Expr *result = walk_node(w, at);
    if (result->kind == E_TUPLE) {
        for (int i = 0; i < result->narg; i++)
            derive_result(w, walk_below(w, at, i));
    } else if (result->type->kind == T_ARRAY) {
        if (w->rows || !expr_is(result, P_SCAN))
            derive_elements(w, at);
    } else if (w->rows) {
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
    const int64_t least = w->deep ? 0 : least_of(walk_node(w, *at));
    while (!w->deep) {
        if (walk_apply_plain(w, RULE_LET_OUT, *at) ||
            walk_apply(w, RULE_NAME_FOLD, *at, &least, 1))
            continue;
        bool let = walk_node(w, *at)->kind == E_LET;
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

static void derive_body_of_chain(DeriveWalk *w, Path at, const Param *row)
{
    derive_lets(w, &at, row, derive_value);
    if (!w->deep)
        derive_result(w, at);
}

// Does each item go through a row or column of its own, of which the group copies strips?
static bool in_strips(const DeriveWalk *w, const Expr *map)
{
    return !w->rows && w->strips && walks_lines(map);
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
    const bool items = in_strips(w, walk_node(w, at));
    derive_beside(w, &at, items ? w->local[0] : w->rows ? w->beside : 1, !items);
    return at;
}

static bool shares_row(const DeriveWalk *w, const Expr *map)
{
    return w->rows && !(w->near && reads_columns(map));
}

static void derive_rows(DeriveWalk *w, Path at, int depth)
{
    const bool strips = in_strips(w, innermost_of(walk_node(w, at)));
    for (int64_t d = depth - 1; d >= 0; d--) {
        if (d == 0 && (depth == 1 || strips))
            at = rows_beside(w, at);
        if (walk_node(w, at)->pattern == P_MAP)
            walk_apply(w, w->rows || strips ? RULE_MAP_WRG : RULE_MAP_GLB, at, &d, 1);
        if (d == 0 && w->rows && w->hold)
            walk_apply_plain(w, RULE_NAME_ROWS, at);
        const Param *row = w->deep ? NULL : walk_node(w, at)->fun->params[0];
        at = walk_below(w, at, CHILD_FUN);
        if (d > 0)
            at = walk_under_layout(w, at);
        else
            derive_body_of_chain(w, at, row);
    }
}

bool derive_chain(DeriveWalk *w, Path at)
{
    int depth = chain_depth(walk_node(w, at));
    bool rows = w->rows;
    if (depth) {
        w->rows = shares_row(w, walk_node(w, at));
        derive_rows(w, at, depth);
    }
    w->rows = rows;
    return depth > 0;
}

// By groups, whatever the point says.
static bool derive_group(DeriveWalk *w, Path at)
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
           derive_group(w, rows);
}

bool derive_folds(DeriveWalk *w, Path at, int64_t lanes)
{
    bool near = keeps_order(walk_node(w, walk_below(w, at, CHILD_FUN)));
    return (near && derive_group(w, at)) ||
           walk_apply(w, RULE_REDUCE_WRG, at, (int64_t[]){w->items, lanes}, 2);
}

// Prefixes of whole arrays ----------------------------------------------------------------

bool scan_splits(const DeriveWalk *w, const Expr *expr)
{
    const Expr *scan = scan_read(expr);
    int64_t len;
    return w->share && scan && shares(scan) &&
           !(arith_is_const(scan->type->len, &len) && len <= w->items * w->share);
}

// In one pass, in parts; where the map is then.
static bool look_back(DeriveWalk *w, Path *at, int64_t part, int64_t items)
{
    const int64_t args[] = {part, items}, x = 0;
    if (!w->one_pass || !walk_apply(w, RULE_SCAN_ONE_PASS, *at, args, 2))
        return false;
    *at = walk_below(w, *at, 1);
    walk_apply(w, RULE_MAP_GLB, walk_under_layout(w, walk_below(w, *at, 0)), &x, 1);
    *at = walk_below(w, *at, 1);
    return true;
}

// In one group, or in parts: what each gives, the prefixes of these, and its own behind
// them.
bool derive_scan(DeriveWalk *w, Path at)
{
    int64_t part = w->items * w->share;
    if (w->deep || !w->share || !shares(scan_read(walk_node(w, at))))
        return false;
    if (!scan_splits(w, walk_node(w, at)))
        return walk_apply_plain(w, RULE_SCAN_AS_MAP, at) &&
               derive_group(w, walk_map_below(w, at));
    if (look_back(w, &at, part, 0))
        return derive_group(w, walk_map_below(w, at));
    if (!walk_apply(w, RULE_SCAN_SPLIT, at, &part, 1))
        return false;
    derive_folds(w, walk_below(w, at, 0), w->each);
    at = walk_below(w, at, 1);
    derive_scan(w, walk_below(w, at, 0));
    return derive_group(w, walk_map_below(w, walk_below(w, at, 1)));
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
    int64_t len = scan_row_length(walk_node(w, at)), parts = w->parts;
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
// own.
bool derive_scan_rows(DeriveWalk *w, Path at)
{
    int64_t part = w->items * w->share, y = 1;
    if (!w->deep && derive_scan_columns(w, at))
        return true;
    if (w->deep || scan_row_length(walk_node(w, at)) <= part || !w->share)
        return false;
    if (look_back(w, &at, part, 0)) {
        walk_apply(w, RULE_MAP_WRG, at, &y, 1);
        return derive_group(w, walk_map_below(w, walk_below(w, at, CHILD_FUN)));
    }
    if (!walk_apply(w, RULE_SCAN_SPLIT, walk_below(w, at, CHILD_FUN), &part, 1))
        return false;
    walk_apply_plain(w, RULE_MAP_FISSION_LET, at);
    Path totals = walk_below(w, at, 0), rest = walk_below(w, at, 1);
    walk_apply_plain(w, RULE_MAP_FISSION_LET, rest);
    Path before = walk_below(w, rest, 0), own = walk_below(w, rest, 1);
    derive_group(w, totals);
    if (!derive_scan_rows(w, before) && !derive_group(w, before))
        walk_apply(w, RULE_MAP_GLB, before, (int64_t[]){0}, 1);
    walk_apply(w, RULE_MAP_WRG, own, &y, 1);
    return derive_group(w, walk_map_below(w, walk_below(w, own, CHILD_FUN)));
}
