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

static bool shares(const Expr *expr)
{
    return fold_is_long(expr, INNER_MOST + 1) && reduce_shares(expr);
}

static bool mentions_scan(const Expr *expr)
{
    if (expr->kind == E_PATTERN && expr->pattern == P_SCAN)
        return true;
    for (int i = 0; i < expr->narg; i++)
        if (mentions_scan(expr->arg[i]))
            return true;
    return expr->fun && mentions_scan(expr->fun->arg[0]);
}

// Does a body fold at its own level what items may share?
static bool folds(const Expr *body)
{
    const Expr *fold = fold_to_name(body, INNER_MOST + 1);
    if (shares(body) || (fold && shares(fold)))
        return true;
    return body->kind == E_LET && (shares(body->arg[0]) || folds(body->arg[1]));
}

// Maps around it are places only where each runs over what the one around it is given: a
// fold of every element of one array with every element of another is a product.
int chain_depth(const Expr *map)
{
    for (int depth = 1; depth <= DIMS_MAX && is_map(map) && map->dims == 1; depth++) {
        const Expr *body = map->fun->arg[0];
        if (folds(body))
            return mentions_scan(body) ? 0 : depth;
        if (!is_map(body) || !expr_mentions(body->arg[0], map->fun->params[0]))
            return 0;
        map = body;
    }
    return 0;
}

static int64_t bytes_of(const Type *type)
{
    int64_t count = 1, len;
    for (; type->kind == T_ARRAY; type = type->elem)
        count *= arith_is_const(type->len, &len) ? len : 0;
    int64_t bytes = type->kind == T_SCALAR ? scalar_info[type->scalar].bytes : 0;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        bytes += bytes_of(type->item[i]);
    return count * bytes;
}

int64_t chain_bytes(const Expr *map)
{
    for (int depth = chain_depth(map); depth > 1; depth--)
        map = map->fun->arg[0];
    int64_t bytes = bytes_of(map->arg[0]->type->elem);
    for (const Expr *e = map->fun->arg[0]; e->kind == E_LET; e = e->arg[1])
        bytes += e->arg[0]->type->kind == T_ARRAY ? bytes_of(e->arg[0]->type) : 0;
    return bytes;
}

// Lowering -----------------------------------------------------------------------------

// Neighbours as vectors where they divide the length: nothing sticks out that way.
static void derive_elements(Walk *w, Path at)
{
    int64_t x = 0, one = 1, len;
    if (!is_map(walk_node(w, at)))
        walk_apply(w, RULE_COPY, at, &one, 1);
    walk_apply_plain(w, RULE_MAP_NEST, at);
    if (!w->rows) {
        walk_apply_plain(w, RULE_MAP_SEQ, at);
        return;
    }
    bool even = arith_is_const(walk_node(w, at)->type->len, &len) && len % w->lanes == 0;
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

// By the items of the group, or in a loop.
static void derive_fold(Walk *w, Path at)
{
    const Expr *value = walk_node(w, at);
    if (fold_is_long(value, INNER_MOST + 1)) {
        walk_apply_plain(w, RULE_REDUCE_FISSION, at);
        if (w->rows)
            walk_apply(w, RULE_REDUCE_LCL, at, (int64_t[]){w->local[0], w->lanes}, 2);
    }
}

// An array is held where all items can read it, or computed where it is read.
static void derive_held(Walk *w, Path at)
{
    if (w->rows && w->hold && is_held(walk_node(w, at))) {
        derive_elements(w, at);
        walk_apply_plain(w, RULE_HOLD_LOCAL, at);
    }
}

static void derive_result(Walk *w, Path at)
{
    const Expr *result = walk_node(w, at);
    if (result->kind == E_TUPLE) {
        for (int i = 0; i < result->narg; i++)
            derive_result(w, walk_below(w, at, i));
    } else if (result->type->kind == T_ARRAY) {
        derive_elements(w, at);
    } else if (w->rows) {
        walk_apply_plain(w, RULE_ONLY_ITEM, at);
    }
}

static void derive_body_of_chain(Walk *w, Path at)
{
    const int64_t least = INNER_MOST + 1;
    while (!w->deep) {
        if (walk_apply(w, RULE_NAME_FOLD, at, &least, 1))
            continue;
        bool let = walk_node(w, at)->kind == E_LET;
        derive_fold(w, let ? walk_below(w, at, 0) : at);
        if (walk_node(w, at)->kind != E_LET)
            break;
        derive_held(w, walk_below(w, at, 0));
        while (walk_apply_plain(w, RULE_LET_OF_LET, at))
            ;
        at = walk_below(w, at, 1);
    }
    if (!w->deep)
        derive_result(w, at);
}

bool derive_chain(Walk *w, Path at)
{
    int depth = chain_depth(walk_node(w, at));
    if (!depth)
        return false;
    for (int64_t d = depth - 1; d >= 0; d--) {
        walk_apply(w, w->rows ? RULE_MAP_WRG : RULE_MAP_GLB, at, &d, 1);
        if (d == 0 && w->rows && w->hold)
            walk_apply_plain(w, RULE_NAME_ROWS, at);
        at = walk_below(w, at, CHILD_FUN);
    }
    derive_body_of_chain(w, at);
    return true;
}
