// SPDX-License-Identifier: Apache-2.0
//
// Nests of more maps than work-items have dimensions: which of the maps become one. The
// innermost two do if each row of a product is a number of one outside of them and its
// columns are those of both, as the pixels of images whose channels stand first; else the
// outermost two, until there are few enough.

#include "derive/walk.h"

int nest_depth(const Expr *expr)
{
    expr = under_layout(expr);
    return is_map(expr) || expr_is(expr, P_ARRAY)
               ? expr->dims + nest_depth(expr->fun->arg[0])
               : 0;
}

// A layout between more maps than work-items have dimensions comes after all of them. Where
// the maps are.
static Path layouts_out(DeriveWalk *w, Path at)
{
    const int64_t all = 0;
    while (!w->deep && nest_depth(walk_node(w, at)) > DIMS_MAX) {
        const Rewriter before = rewriter_hold(&w->r);
        int level = 0;
        const Expr *map = walk_node(w, at), *body;
        for (; is_map(map) && is_map(body = map->fun->arg[0]); map = body)
            level++;
        bool out = is_map(map) && is_map(under_layout(map->fun->arg[0]));
        while (out && level >= 0)
            out = walk_apply(w, RULE_MAP_FISSION_ARG, walk_inside(w, at, level--), &all, 1);
        if (!rewriter_end(&w->r, &before, out))
            break;
        at = walk_below(w, at, 0);
    }
    return at;
}

Path join_outer(DeriveWalk *w, Path at)
{
    at = layouts_out(w, at);
    while (!w->deep && is_map(walk_node(w, at)) &&
           nest_depth(walk_node(w, at)) > DIMS_MAX) {
        if (walk_node(w, at)->dims == 1) {
            walk_apply_plain(w, RULE_MAP_NEST, walk_below(w, at, CHILD_FUN));
            if (!walk_apply_plain(w, RULE_MAP_FLATTEN, at))
                return at;
        }
        if (!walk_apply_plain(w, RULE_MAP_JOIN, at))
            return at;
        at = walk_below(w, at, 0);
    }
    return at;
}

// How far inside a nest the map is whose dimensions, and those of what is within it, are
// columns of a product whose rows are further out; 0: there is none.
static int columns_within(const Expr *map)
{
    const NestReads reads = nest_reads(map);
    const int last = reads.levels - 1;
    const Expr *inner = map;
    for (int i = 0; i < last; i++)
        inner = inner->fun->arg[0];
    const int level = inner->dims > 1 ? last : last - 1;
    if (level < 1 || !reads_alike(&reads, level, last))
        return 0;
    for (int i = 0; i < level; i++)
        if (reads_pairs(&reads, i, last))
            return level;
    return 0;
}

// What the maps around it give is split; that then comes after all of them.
static bool join_columns(DeriveWalk *w, Path at, int level)
{
    const int64_t all = 0;
    const Path inner = walk_inside(w, at, level);
    if ((walk_node(w, inner)->dims == 1 && !walk_apply_plain(w, RULE_MAP_FLATTEN, inner)) ||
        !walk_apply_plain(w, RULE_MAP_JOIN, inner))
        return false;
    while (level-- > 0)
        if (!walk_apply(w, RULE_MAP_FISSION_ARG, walk_inside(w, at, level), &all, 1))
            return false;
    return true;
}

Path join_inner(DeriveWalk *w, Path at)
{
    const Expr *map = w->deep ? NULL : walk_node(w, at);
    const int level =
        map && is_map(map) && nest_depth(map) > DIMS_MAX ? columns_within(map) : 0;
    const Rewriter before = rewriter_hold(&w->r);
    return rewriter_end(&w->r, &before, level && join_columns(w, at, level))
               ? walk_below(w, at, 0)
               : at;
}

Path walk_below_lets(DeriveWalk *w, Path at)
{
    while (!w->deep && walk_node(w, at)->kind == E_LET)
        at = walk_below(w, at, 1);
    return at;
}

Path walk_last_let(DeriveWalk *w, Path at)
{
    at = walk_below_lets(w, at);
    at.n--;
    return at;
}

Path walk_map_below(DeriveWalk *w, Path at)
{
    while (!w->deep && !is_map(walk_node(w, at)))
        at = walk_below(w, at, 0);
    return at;
}
