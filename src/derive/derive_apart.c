// SPDX-License-Identifier: Apache-2.0
//
// Chains around products: what a chain makes for one, or goes on with, becomes an array of
// its own, so that the product is a nest by itself; so do folds of long columns and
// prefixes that no group holds.

#include "derive/walk.h"

enum { OWN_LEAST = 128 };

// Rows of a product that a chain goes through more than once are a product of their own:
// items of a chain would read the other operand for each row. Shorter ones are made where
// they are read.
static bool begins_with_product(const Expr *map)
{
    const Expr *let = map->fun->arg[0];
    int64_t length;
    return map->dims == 1 && let->kind == E_LET && folds_pairs(map, let->arg[0]) &&
           !expr_mentions(let->arg[0]->arg[0], map->fun->params[0]) &&
           expr_count(let->arg[1], expr_is_use, let->param) -
                   expr_count(let->arg[1], reads_element, let->param) >
               1 &&
           !(arith_is_const(let->arg[0]->type->len, &length) && length < OWN_LEAST);
}

// Is what a chain makes, or the row itself, one operand of a product?
static bool ends_in_product(const Expr *map)
{
    const Expr *tail = map->fun->arg[0];
    int64_t length, longest = 0;
    if (map->dims > 1 || tail->kind != E_LET)
        return false;
    for (; tail->kind == E_LET; tail = tail->arg[1])
        if (is_map(tail->arg[0]) && arith_is_const(tail->arg[0]->type->len, &length))
            longest = MAX(longest, length);
    if (!is_map(tail) || tail->dims > 1 || expr_mentions(tail->arg[0], map->fun->params[0]))
        return false;
    const Expr *fold = tail->fun->arg[0];
    fold = fold_is_long(fold, 0) ? fold : fold_to_name(fold, 0);
    if (!fold || !expr_mentions(fold, tail->fun->params[0]))
        return false;
    bool pairs = expr_mentions(fold, map->fun->params[0]);
    for (const Expr *let = map->fun->arg[0]; let != tail; let = let->arg[1]) {
        if (expr_mentions(tail->arg[0], let->param))
            return false;
        pairs |= is_map(let->arg[0]) && expr_mentions(fold, let->param);
    }
    return pairs &&
           (!arith_is_const(tail->type->len, &length) || MAX(length, longest) >= OWN_LEAST);
}

// A name of a map's function becomes an array of all elements' values; where the rest is.
static Path part_let(DeriveWalk *w, Path at)
{
    if (!walk_apply_plain(w, RULE_MAP_FISSION_LET, at))
        w->deep = true;
    return walk_below(w, at, 1);
}

// A scalar that only the next name needs is found with it.
static void part_lets(DeriveWalk *w, Path at)
{
    while (!w->deep && walk_node(w, at)->fun->arg[0]->kind == E_LET) {
        Path let = walk_below(w, at, CHILD_FUN);
        const Expr *next = walk_node(w, let)->arg[1];
        if (next->kind == E_LET && type_is_scalar(walk_node(w, let)->arg[0]->type) &&
            !expr_mentions(next->arg[1], walk_node(w, let)->param) &&
            walk_apply_plain(w, RULE_LET_INLINE, let))
            continue;
        at = part_let(w, at);
    }
}

// Is it a chain of columns that are too long to be kept while their folds are found? Each
// fold reads all of them then, which many items do for a column of a stage of its own.
static bool reads_long_columns(const Expr *map)
{
    int64_t length;
    return chain_depth(map) == 1 && reads_columns(map) && map->fun->arg[0]->kind == E_LET &&
           map->type->elem->kind == T_ARRAY && !scan_read(map->fun->arg[0]) &&
           arith_is_const(map->type->elem->len, &length) && length > INNER_MOST;
}

// Has it prefixes that are too long for a group, beside or within others or with names? An
// item would keep all of each, as it does of columns and of what items cannot share.
static bool keeps_long_prefix(const DeriveWalk *w, const Expr *map)
{
    enum { KEPT_MOST = 16 << 10, COLUMN_MOST = 1 << 10 };
    const Expr *body = map->fun->arg[0];
    const int64_t most = !chain_depth(map)    ? KEPT_MOST
                         : reads_columns(map) ? COLUMN_MOST
                                              : w->room;
    return map->dims == 1 &&
           (body->kind == E_LET ||
            (!lone_scan(under_turn(body)) && expr_find_pattern(body, P_SCAN))) &&
           chain_scan_bytes(map) > most;
}

// What is folded or gone through beside a prefix that a map reads gets a name, so that the
// prefix needs none.
static bool name_beside(DeriveWalk *w, Path at)
{
    const int64_t args[] = {INNER_MOST + 1, 1};
    const Expr *expr = walk_node(w, at), *map = under_turn(expr), *scan = scan_read(map);
    Path in = walk_below(w, map != expr ? walk_below(w, at, 0) : at, 0);
    for (int i = 0; scan && scan != map && i < map->arg[0]->narg; i++)
        if (map->arg[0]->arg[i] != scan &&
            walk_apply(w, RULE_NAME_FOLD, walk_below(w, in, i), args, 2)) {
            for (; in.n >= at.n; in.n--)
                walk_apply_plain(w, RULE_LET_OUT, in);
            return true;
        }
    return false;
}

// What each value of a chain folds or goes through before gets a name, but for a prefix
// that it reads element by element.
static void name_within(DeriveWalk *w, Path at)
{
    const int64_t args[] = {INNER_MOST + 1, 1};
    while (!w->deep) {
        const Expr *expr = walk_node(w, at);
        const bool let = expr->kind == E_LET;
        const bool named =
            !lone_scan(under_turn(let ? expr->arg[0] : expr)) &&
            (name_beside(w, at) || walk_apply(w, RULE_NAME_FOLD, at, args, 2));
        if (!named && !let)
            return;
        at = walk_below(w, at, 1);
    }
}

// An array that each name of the chain would read is found where it is read.
static void inline_arrays(DeriveWalk *w, Path at)
{
    while (!w->deep && walk_node(w, at)->kind == E_LET) {
        const Expr *value = walk_node(w, at)->arg[0];
        if (!is_map(value) || has_fold(value) || !walk_apply_plain(w, RULE_LET_INLINE, at))
            at = walk_below(w, at, 1);
    }
}

// From the innermost map of a nest on outwards: all of it, or nothing.
static bool part_nest(DeriveWalk *w, Path at)
{
    const Expr *map = walk_node(w, at);
    if (w->deep || !is_map(map))
        return false;
    if (part_nest(w, walk_below(w, at, CHILD_FUN))) {
        part_lets(w, at);
        return true;
    }
    bool begins = begins_with_product(map);
    if (begins)
        at = part_let(w, at);
    bool ends = !w->deep && ends_in_product(walk_node(w, at));
    bool columns = !w->deep && reads_long_columns(walk_node(w, at));
    if (columns)
        inline_arrays(w, walk_below(w, at, CHILD_FUN));
    bool prefix = !w->deep && keeps_long_prefix(w, walk_node(w, at));
    if (prefix) {
        name_within(w, walk_below(w, at, CHILD_FUN));
        prefix = !w->deep && walk_node(w, at)->fun->arg[0]->kind == E_LET;
    }
    if (ends || columns || prefix)
        part_lets(w, at);
    return begins || ends || columns || prefix;
}

// Several folds of one pair of rows are a product each: the first becomes an array, which
// the map of the others reads.
static bool part_products(DeriveWalk *w, Path at)
{
    const Expr *map = w->deep ? NULL : walk_node(w, at);
    Path inner = walk_below(w, at, CHILD_FUN);
    if (!map || !is_map(map) || map->dims > 1)
        return false;
    if (is_map(map->fun->arg[0]) && is_map(map->fun->arg[0]->fun->arg[0]))
        return part_products(w, inner) && (part_let(w, at), true);
    const Expr *columns = map->fun->arg[0];
    const Expr *let = is_map(columns) && columns->dims == 1 ? columns->fun->arg[0] : NULL;
    if (!let || let->kind != E_LET || !fold_is_long(let->arg[0], OWN_LEAST) ||
        !has_fold(let->arg[1]) || !expr_mentions(let->arg[0], map->fun->params[0]) ||
        !expr_mentions(let->arg[0], columns->fun->params[0]))
        return false;
    part_let(w, inner);
    part_let(w, at);
    return true;
}

bool derive_part_chain(DeriveWalk *w, Path at)
{
    const DeriveWalk before = *w;
    const Rewriter held = rewriter_hold(&w->r);
    bool parted = (part_nest(w, at) || part_products(w, at)) && !w->deep;
    if (!parted)
        *w = before;
    return rewriter_end(&w->r, &held, parted);
}
