// SPDX-License-Identifier: Apache-2.0
//
// Ways to lower one map: over the grid, in rows, in blocks of outputs, in groups with or
// without tiles in local memory, streamed, as vectors; and nests of maps like a matrix
// product's.
//
//   source  paper 000, sections 3.3, 3.4 and 8.1; the mappings global0 ... group10 of
//           Lift's MemoryMappingRewrite; block and cyclic merging of paper 001, section 4

#include "evaluate/random_walk.h"

// What was chosen for the dimensions of one map, outermost first.
typedef struct {
    int dims;
    int64_t par[DIMS_MAX];  // thread dimension
    int64_t item[DIMS_MAX]; // outputs of a work-item
    int64_t tile[DIMS_MAX]; // outputs of a group
    bool items;             // some work-item has several
} MapShape;

// Neighbours in memory to neighbouring threads, or another order.
static void choose_par(RandomWalk *w, int dims, int64_t *par)
{
    for (int k = 0; k < dims; k++)
        par[k] = dims - 1 - k;
    for (int k = dims - 1; k > 0 && chance(w, 30); k--) {
        int j = (int)rng_below(w->rng, (uint64_t)k + 1);
        int64_t other = par[k];
        par[k] = par[j];
        par[j] = other;
    }
}

static MapShape choose_shape(RandomWalk *w, const Expr *map)
{
    static const int64_t odd[] = {3, 5, 6, 10, 12};
    MapShape s = {.dims = map->dims};
    choose_par(w, s.dims, s.par);
    int64_t left = w->options->most_outputs;
    for (int i = 0; i < s.dims; i++) {
        int k = (i + (int)rng_below(w->rng, 3)) % s.dims; // any dimension may be first
        if (s.item[k])
            continue;
        s.item[k] = pick_power(w, MIN(left, 8));
        int64_t other = pick(w, odd, COUNTOF(odd)), len;
        if (chance(w, 15) && other <= left && arith_is_const(len_of(map, k), &len) &&
            len % other == 0)
            s.item[k] = other;
        left /= s.item[k];
    }
    for (int k = 0; k < s.dims; k++) {
        s.item[k] = MAX(s.item[k], 1);
        s.items |= s.item[k] > 1;
        s.tile[k] = s.item[k] * w->local[s.par[k]];
    }
    return s;
}

static int count_windows(const Expr *map)
{
    const Expr *in = map->arg[0];
    int n = is_dims(in, P_SLIDE, map->dims);
    for (int i = 0; is_dims(in, P_ZIP, map->dims) && i < in->narg; i++)
        n += is_dims(in->arg[i], P_SLIDE, map->dims);
    return n;
}

// Work of one work-item ------------------------------------------------------------------

enum { UNROLL_MOST = 64 };

bool lower_seq(RandomWalk *w, Path at)
{
    const Expr *map = node_at(w, at);
    if (!expr_is(map, P_MAP))
        return false;
    int64_t count = 1, len;
    for (int k = 0; k < map->dims; k++)
        count *= arith_is_const(len_of(map, k), &len) && len <= UNROLL_MOST
                     ? len
                     : UNROLL_MOST + 1;
    if (count <= UNROLL_MOST && chance(w, 60))
        return apply_plain(w, RULE_MAP_UNROLL, at);
    return apply_plain(w, RULE_MAP_SEQ, at);
}

// Several outputs of one item: in a loop, or walking with a register window.
static bool lower_item(RandomWalk *w, Path at)
{
    const Expr *map = node_at(w, at);
    if (!expr_is(map, P_MAP))
        return false;
    if (is_dims(map->arg[0], P_SLIDE, map->dims) && chance(w, 60)) {
        if (map->dims == 1)
            return apply_plain(w, RULE_SLIDE_SEQ, at);
        return apply_plain(w, RULE_STREAM, at) && lower_seq(w, inwards(w, at));
    }
    return lower_seq(w, at);
}

// In an order that gives an item elements far apart, in some dimensions.
static void choose_order(RandomWalk *w, Path at, const MapShape *s, const int64_t *local)
{
    for (int k = 0; k < s->dims; k++) {
        if (s->item[k] < 2 || local[k] < 2 || !chance(w, 35))
            continue;
        int64_t block = s->item[k] % 2 == 0 && chance(w, 40) ? 2 : 1;
        if (block < s->item[k])
            apply_rule(w, RULE_REORDER, inwards(w, at), (int64_t[]){k, local[k], block}, 3);
    }
}

// Splits a map's outputs by the items; a stencil's windows as overlapped tiles or as they
// are.
static bool split_items(RandomWalk *w, Path at, const MapShape *s)
{
    if (count_windows(node_at(w, at)) == 1 && chance(w, 40) &&
        apply_rule(w, RULE_TILE, at, s->item, s->dims))
        return true;
    return apply_rule(w, RULE_SPLIT_JOIN, at, s->item, s->dims);
}

// Over the grid --------------------------------------------------------------------------

static bool lower_global(RandomWalk *w, Path at)
{
    int dims = node_at(w, at)->dims;
    int64_t par[DIMS_MAX];
    choose_par(w, dims, par);
    if (!apply_rule(w, RULE_MAP_GLB, at, par, dims))
        return false;
    if (chance(w, 25))
        apply_plain(w, RULE_COPY_PRIVATE, functions(at, dims - 1));
    return true;
}

static bool lower_rows(RandomWalk *w, Path at)
{
    const int64_t d = chance(w, 80) ? 0 : 1;
    return apply_plain(w, RULE_MAP_NEST, at) && apply_rule(w, RULE_MAP_GLB, at, &d, 1) &&
           lower_seq(w, functions(at, 1));
}

static bool lower_blocks(RandomWalk *w, Path at)
{
    MapShape s = choose_shape(w, node_at(w, at));
    int64_t across[DIMS_MAX] = {0}, len;
    for (int k = 0; k < s.dims; k++)
        if (arith_is_const(len_of(node_at(w, at), k), &len))
            across[k] = len / s.item[k];
    if (!s.items)
        return lower_global(w, at);
    if (chance(w, 30))
        choose_order(w, at, &s, across);
    at = inwards(w, at);
    if (!split_items(w, at, &s))
        return false;
    at = inwards(w, at);
    return apply_rule(w, RULE_MAP_GLB, at, s.par, s.dims) &&
           lower_item(w, functions(at, s.dims));
}

// In groups ------------------------------------------------------------------------------

// A copy in local memory of what a window reads.
static void choose_local(RandomWalk *w, Path slide, const MapShape *s)
{
    Path source = below(slide, 0);
    double bytes = type_bytes(node_at(w, source)->type, NULL, NULL);
    if (bytes > (double)w->local_bytes || !chance(w, 60))
        return;
    if (apply_rule(w, RULE_TO_LOCAL, source, s->par, s->dims))
        w->local_bytes -= (int64_t)bytes;
}

static void choose_copies(RandomWalk *w, Path at, const MapShape *s)
{
    Path in = below(at, 0);
    if (is_dims(node_at(w, in), P_SLIDE, s->dims)) {
        choose_local(w, in, s);
        return;
    }
    for (int i = 0; expr_is(node_at(w, in), P_ZIP) && i < node_at(w, in)->narg; i++)
        if (is_dims(node_at(w, in)->arg[i], P_SLIDE, s->dims))
            choose_local(w, below(in, i), s);
}

static bool lower_group_work(RandomWalk *w, Path at, const MapShape *s)
{
    int64_t par[DIMS_MAX], local[DIMS_MAX];
    for (int k = 0; k < s->dims; k++) {
        par[k] = s->par[k];
        local[k] = w->local[s->par[k]];
    }
    if (chance(w, 10))
        choose_par(w, s->dims, par);
    if (s->items) {
        choose_order(w, at, s, local);
        at = inwards(w, at);
        if (!split_items(w, at, s))
            return false;
    }
    at = inwards(w, at);
    if (!apply_rule(w, RULE_MAP_LCL, at, par, s->dims))
        return false;
    return !s->items || lower_item(w, functions(at, s->dims));
}

static bool lower_group(RandomWalk *w, Path at)
{
    MapShape s = choose_shape(w, node_at(w, at));
    bool window = count_windows(node_at(w, at)) > 0;
    if (!apply_rule(w, window ? RULE_TILE : RULE_SPLIT_JOIN, at, s.tile, s.dims))
        return false;
    at = inwards(w, at);
    if (!apply_rule(w, RULE_MAP_WRG, at, s.par, s.dims))
        return false;
    at = functions(at, s.dims);
    if (window)
        choose_copies(w, at, &s);
    return lower_group_work(w, at, &s);
}

// A row to each group.
static bool lower_group_rows(RandomWalk *w, Path at)
{
    int64_t d = chance(w, 50);
    if (!apply_plain(w, RULE_MAP_NEST, at) || !apply_rule(w, RULE_MAP_WRG, at, &d, 1))
        return false;
    at = functions(at, 1);
    MapShape s = choose_shape(w, node_at(w, at));
    return lower_group_work(w, at, &s);
}

// Streams and vectors --------------------------------------------------------------------

static bool lower_stream(RandomWalk *w, Path at)
{
    if (!apply_plain(w, RULE_STREAM, at))
        return false;
    at = inwards(w, at);
    if (chance(w, 50))
        return lower_global(w, at);
    MapShape s = choose_shape(w, node_at(w, at));
    if (!apply_rule(w, RULE_SPLIT_JOIN, at, s.tile, s.dims))
        return false;
    at = inwards(w, at);
    return apply_rule(w, RULE_MAP_WRG, at, s.par, s.dims) &&
           lower_group_work(w, functions(at, s.dims), &s);
}

static bool lower_vectors(RandomWalk *w, Path at)
{
    if (count_windows(node_at(w, at)) > 0)
        return false;
    int64_t row = 1, width = pick(w, (const int64_t[]){2, 4, 8}, 3);
    if (node_at(w, at)->dims == 2) {
        if (!apply_plain(w, RULE_MAP_NEST, at) || !apply_rule(w, RULE_MAP_GLB, at, &row, 1))
            return false;
        at = functions(at, 1);
        apply_rule(w, RULE_VECTORIZE, at, &width, 1);
        return apply_rule(w, RULE_MAP_GLB, inwards(w, at), (int64_t[]){0}, 1);
    }
    if (!apply_rule(w, RULE_VECTORIZE, at, &width, 1))
        return false;
    at = inwards(w, at);
    return chance(w, 30)   ? lower_global(w, at)
           : chance(w, 50) ? lower_blocks(w, at)
                           : lower_group(w, at);
}

// Nests ----------------------------------------------------------------------------------

// The map that the function of a map gives, under its lets.
static Path inner_map(RandomWalk *w, Path at)
{
    at = functions(at, 1);
    while (node_at(w, at) && node_at(w, at)->kind == E_LET)
        at = below(at, 1);
    return inwards(w, at);
}

static bool has_inner_map(RandomWalk *w, Path at)
{
    const Expr *map = node_at(w, at);
    return is_dims(map, P_MAP, 1) && expr_is(node_at(w, inner_map(w, at)), P_MAP);
}

static bool nest_of_groups(RandomWalk *w, Path at)
{
    int64_t x = 0;
    if (!apply_rule(w, RULE_MAP_WRG, at, &x, 1))
        return false;
    const Type *row = node_at(w, at)->arg[0]->type->elem;
    double bytes = type_bytes(row, NULL, NULL);
    if (row->kind == T_ARRAY && bytes <= (double)w->local_bytes && chance(w, 50) &&
        apply_rule(w, RULE_COPY_LOCAL, at, &x, 1))
        w->local_bytes -= (int64_t)bytes;
    Path inner = inner_map(w, at);
    MapShape s = choose_shape(w, node_at(w, inner));
    if (s.dims > 1)
        return apply_rule(w, RULE_MAP_LCL, inner, s.par, s.dims);
    s.par[0] = 0;
    return lower_group_work(w, inner, &s);
}

// Rows of outputs in registers: blocks of the outer map, the inner map over threads.
static bool nest_of_blocks(RandomWalk *w, Path at)
{
    int64_t n = 2 * pick_power(w, 4), y = 1, x = 0;
    if (!apply_rule(w, RULE_SPLIT_JOIN, at, &n, 1))
        return false;
    at = inwards(w, at);
    if (!apply_rule(w, RULE_MAP_GLB, at, &y, 1))
        return false;
    at = functions(at, 1);
    if (!apply_plain(w, RULE_MAP_INTERCHANGE, at))
        return lower_seq(w, at) && lower_seq(w, inner_map(w, at));
    at = inwards(w, at);
    return apply_rule(w, RULE_MAP_GLB, at, &x, 1) && lower_seq(w, inner_map(w, at));
}

static bool nest_of_threads(RandomWalk *w, Path at)
{
    int dims = node_at(w, inner_map(w, at))->dims;
    int64_t par[DIMS_MAX];
    if (dims + 1 > DIMS_MAX)
        return false;
    choose_par(w, dims + 1, par);
    return apply_rule(w, RULE_MAP_GLB, at, par, 1) &&
           apply_rule(w, RULE_MAP_GLB, inner_map(w, at), par + 1, dims);
}

static bool nest_of_tiles(RandomWalk *w, Path at)
{
    int64_t y = 1, x = 0, n = w->local[1];
    if (!apply_rule(w, RULE_SPLIT_JOIN, at, &n, 1))
        return false;
    at = inwards(w, at);
    if (!apply_rule(w, RULE_MAP_WRG, at, &y, 1))
        return false;
    at = functions(at, 1);
    return apply_rule(w, RULE_MAP_LCL, at, &y, 1) &&
           apply_rule(w, RULE_MAP_LCL, inner_map(w, at), &x, 1);
}

static bool lower_nest(RandomWalk *w, Path at)
{
    int64_t x = 0;
    if (chance(w, 30) && apply_plain(w, RULE_MAP_INTERCHANGE, at))
        at = inwards(w, at);
    switch (rng_below(w->rng, 6)) {
    case 0: return apply_rule(w, RULE_MAP_GLB, at, &x, 1) && lower_seq(w, inner_map(w, at));
    case 1: return nest_of_groups(w, at);
    case 2: return nest_of_blocks(w, at);
    case 3: return nest_of_tiles(w, at);
    default: return nest_of_threads(w, at);
    }
}

// Entry ----------------------------------------------------------------------------------

// One way at random; another where the first does not fit from the start.
static bool lower_flat(RandomWalk *w, Path at)
{
    const Expr *map = node_at(w, at);
    bool deep = map->dims > 1, one = is_dims(map->arg[0], P_SLIDE, map->dims);
    int steps = w->r.done.steps.len;
    switch (rng_below(w->rng, 12)) {
    case 0: return lower_global(w, at);
    case 1: return deep ? lower_rows(w, at) : lower_global(w, at);
    case 2: return deep ? lower_group_rows(w, at) : lower_group(w, at);
    case 3:
    case 4: return deep && one ? lower_stream(w, at) : lower_blocks(w, at);
    case 5:
    case 6:
        if (lower_vectors(w, at))
            return true;
        return w->r.done.steps.len == steps && lower_group(w, at);
    case 7: return lower_blocks(w, at);
    default: return lower_group(w, at);
    }
}

void lower_map(RandomWalk *w, Path at)
{
    const Expr *map = node_at(w, at);
    if (map->dims == 1 && inner_of(map, P_MAP) && chance(w, 80))
        apply_plain(w, RULE_MAP_FLATTEN, at);
    else if (map->dims == 2 && chance(w, 4) && apply_plain(w, RULE_TRANSPOSE_BOTH, at))
        at = inwards(w, at);
    Path site = at;
    if (!(has_inner_map(w, at) ? lower_nest(w, at) : lower_flat(w, at)))
        w->stuck = true;
    else
        lower_scalars(w, site);
}
