// SPDX-License-Identifier: Apache-2.0
//
// The parameterised derivation: see derive.h. One walk over the host level of the program
// applies rewrite rules to each abstract map, reduction and stage; which ones, and with
// what numbers, the point says. A rule that does not match leaves a slower, right program.

#include "derive/walk.h"

#include <string.h>

// Steps -------------------------------------------------------------------------------

const Expr *walk_node(const DeriveWalk *w, Path at)
{
    const Expr *expr = path_find(w->r.expr, &at);
    if (!expr)
        BUG("a walk leads nowhere");
    return expr;
}

Path walk_below(DeriveWalk *w, Path at, int child)
{
    w->deep |= !path_push(&at, child);
    return at;
}

Path walk_under_layout(DeriveWalk *w, Path at)
{
    const Expr *under = w->deep ? NULL : under_layout(walk_node(w, at));
    while (!w->deep && walk_node(w, at) != under)
        at = walk_below(w, at, 0);
    return at;
}

Path walk_inside(DeriveWalk *w, Path at, int dims)
{
    for (int k = 0; k < dims; k++)
        at = walk_below(w, at, CHILD_FUN);
    return at;
}

bool walk_apply(DeriveWalk *w, RuleId rule, Path at, const int64_t *args, int n)
{
    RuleArgs given = {.n = n};
    for (int i = 0; i < n; i++)
        given.at[i] = args[i];
    return !w->deep && rewriter_rule(&w->r, &at, rule, &given);
}

bool walk_apply_plain(DeriveWalk *w, RuleId rule, Path at)
{
    return walk_apply(w, rule, at, NULL, 0);
}

// The innermost dimension runs along x.
static bool apply_threads(DeriveWalk *w, RuleId rule, Path at, int dims)
{
    int64_t thread[DIMS_MAX];
    for (int k = 0; k < dims; k++)
        thread[k] = dims - 1 - k;
    return walk_apply(w, rule, at, thread, dims);
}

// Reductions of at most so many elements anywhere below become straight-line code, but for
// those around others that leave too many copies.
static void unroll_inner(DeriveWalk *w, Path at, int64_t most)
{
    enum { COPIES_MOST = 1024 };
    if (w->deep)
        return;
    int64_t length = nested_length(walk_node(w, at));
    if (length && length <= most && expr_fold_terms(walk_node(w, at)) <= COPIES_MOST)
        walk_apply_plain(w, RULE_REDUCE_UNROLL, at);
    if (walk_node(w, at)->fun)
        unroll_inner(w, walk_below(w, at, CHILD_FUN), most);
    for (int i = 0; i < walk_node(w, at)->narg; i++)
        unroll_inner(w, walk_below(w, at, i), most);
}

// The lengths of rows that a folded array is joined of, shortest first.
typedef struct {
    int64_t row[DIMS_MAX];
    int n;
} FoldRows;

static FoldRows find_rows(const Expr *fold)
{
    FoldRows rows = {.n = 0};
    for (int64_t row = 1; rows.n < DIMS_MAX && (row = fold_row(fold->arg[1], row));)
        rows.row[rows.n++] = row;
    return rows;
}

// A fold becomes loops in loops, one for each length of rows, whose indices need no
// division; the innermost are written out as long as they have so many elements at most.
static void nest_rows(DeriveWalk *w, Path at, const FoldRows *rows, int64_t most)
{
    for (int i = 0; i < rows->n; i++) {
        int64_t n = rows->row[i] / (i ? rows->row[i - 1] : 1);
        if (!walk_apply_plain(w, RULE_REDUCE_ROWS, at))
            walk_apply(w, RULE_SPLIT_REDUCE, at, &n, 1);
    }
    for (int i = rows->n; i > 0; i--) {
        at = walk_below(w, at, CHILD_FUN);
        if (rows->row[i - 1] <= most)
            walk_apply_plain(w, RULE_REDUCE_UNROLL, at);
    }
}

// Folds of joined arrays that are too long to be written out.
static void nest_folds(DeriveWalk *w, Path at)
{
    if (w->deep)
        return;
    const Expr *expr = walk_node(w, at);
    if (expr_is(expr, P_REDUCE) && (!w->unroll || reduce_length(expr) > UNROLL_MOST)) {
        FoldRows rows = find_rows(expr);
        nest_rows(w, at, &rows, w->unroll ? UNROLL_MOST : 0);
        while (walk_apply_plain(w, RULE_REDUCE_ROWS, at)) // of lengths that are not known
            ;
    }
    if (walk_node(w, at)->fun)
        nest_folds(w, walk_below(w, at, CHILD_FUN));
    for (int i = 0; i < walk_node(w, at)->narg; i++)
        nest_folds(w, walk_below(w, at, i));
}

static bool stream_loop(DeriveWalk *w, Path at, int64_t steps)
{
    int64_t stream[] = {steps, w->cols, w->strip};
    if (!walk_apply(w, RULE_ITERATE_STREAM, at, stream, 3))
        return false;
    unroll_inner(w, walk_below(w, at, CHILD_FUN), STEPS_COPIES);
    return true;
}

// If the step of a loop has loops itself, their steps share kernels, and its own do not.
static bool fuse_steps(DeriveWalk *w, Path at)
{
    return w->fused > 1 && !has_loop(walk_node(w, at)->fun->arg[0]) &&
           stream_loop(w, at, w->fused);
}

static bool reaches(const TimeLoop *loop)
{
    int64_t most = 0;
    for (int k = 0; k < loop->dims; k++)
        most = MAX(most, loop->beyond[k]);
    return most > 0;
}

// A map of windows, with the stages that only its kernel needs, as one step of a loop;
// false, and nothing changed, where warps cannot walk through it.
static bool stream_map(DeriveWalk *w, Path at)
{
    Ir *ir = w->r.ir;
    TimeLoop found = {0};
    if (!w->stream)
        return false;
    const Rewriter before = rewriter_hold(&w->r);
    bool streams = walk_apply_plain(w, RULE_ITERATE_ONCE, at) && stream_loop(w, at, 1);
    if (streams)
        lower_steps(ir, walk_node(w, at), w->shuffle, &found);
    streams = streams && !found.why && reaches(&found);
    if (streams)
        merge_loops(&w->passes, &found);
    return rewriter_end(&w->r, &before, streams);
}

// Nests -------------------------------------------------------------------------------

typedef struct {
    int dims;
    int64_t step[DIMS_MAX]; // outputs of a work-item that are written out
    int64_t item[DIMS_MAX]; // outputs of a work-item: as many steps as it walks
    int64_t tile[DIMS_MAX]; // outputs of a group
    bool one_each;
} Nest;

static Nest nest_of(const DeriveWalk *w, const Expr *map)
{
    Nest nest = {.dims = map->dims, .one_each = true};
    for (int k = 0; k < nest.dims; k++) {
        int x = nest.dims - 1 - k;
        nest.step[k] = w->block[x] * w->cyclic[x];
        nest.item[k] = nest.step[k] * (k == 0 ? w->steps : 1);
        nest.tile[k] = nest.item[k] * w->local[x];
        nest.one_each &= nest.item[k] == 1;
    }
    return nest;
}

// Which of the arrays that a map reads, by bits, are copied to local memory, tile by tile.
static uint32_t copied_windows(const DeriveWalk *w, const Expr *in, int dims)
{
    uint32_t copied = 0;
    if (is_window(in, dims))
        return cover_copies(&w->unstored, in, w->tiled);
    for (int i = 0; is_zip(in, dims) && i < MIN(in->narg, 32); i++)
        if (is_window(in->arg[i], dims) && cover_copies(&w->unstored, in->arg[i], w->tiled))
            copied |= (uint32_t)1 << i;
    return copied;
}

// Windows are read from a copy of their tile in local memory.
static void stage_windows(DeriveWalk *w, Path in, int dims, uint32_t copied)
{
    if (is_window(walk_node(w, in), dims)) {
        apply_threads(w, RULE_TO_LOCAL, walk_below(w, in, 0), dims);
        return;
    }
    for (int i = 0; copied; i++, copied >>= 1)
        if (copied & 1)
            apply_threads(w, RULE_TO_LOCAL, walk_below(w, walk_below(w, in, i), 0), dims);
}

// One work-item's outputs: it walks along the outermost dimension, straight-line code a
// step.
static void derive_item(DeriveWalk *w, const Nest *nest, Path item)
{
    if (nest->item[0] > nest->step[0] &&
        walk_apply(w, RULE_SPLIT_JOIN, item, nest->step, nest->dims)) {
        item = walk_below(w, item, 0);
        walk_apply_plain(w, RULE_MAP_SEQ, item);
        item = walk_inside(w, item, nest->dims);
    }
    walk_apply_plain(w, RULE_MAP_UNROLL, item);
}

// One group's outputs: strided ones (cyclic merging) of neighbouring ones (block merging)
// for each work-item. Where the outputs of an item are, which are left as they stand.
static Path derive_items(DeriveWalk *w, const Nest *nest, Path work)
{
    for (int k = 0; k < nest->dims; k++) {
        int x = nest->dims - 1 - k;
        int64_t order[] = {k, w->local[x], w->block[x]};
        // If four warps add up together, a lane has two of its warp's 16 rows, eight apart.
        int64_t of_warps[] = {k, 8, 1, 16};
        if (x == 1 && w->four_warps && walk_apply(w, RULE_REORDER, work, of_warps, 4))
            work = walk_below(w, work, 0);
        if (w->cyclic[x] > 1 && w->local[x] > 1 &&
            walk_apply(w, RULE_REORDER, work, order, 3))
            work = walk_below(w, work, 0);
    }
    if (!nest->one_each && walk_apply(w, RULE_SPLIT_JOIN, work, nest->item, nest->dims))
        work = walk_below(w, work, 0);
    apply_threads(w, RULE_MAP_LCL, work, nest->dims);
    return walk_inside(w, work, nest->dims);
}

// 0 where it is not known.
static int64_t length_along(const Type *type, int k)
{
    int64_t length = 0;
    for (; k > 0 && type->kind == T_ARRAY; k--)
        type = type->elem;
    return type->kind == T_ARRAY && arith_is_const(type->len, &length) ? length : 0;
}

// Outputs of items that know no group: strided ones are as far apart as there are items.
static void derive_any_group(DeriveWalk *w, const Nest *nest, Path at)
{
    for (int k = 0; k < nest->dims; k++) {
        int x = nest->dims - 1 - k;
        int64_t items = length_along(walk_node(w, at)->type, k) / nest->step[k];
        int64_t order[] = {k, items, w->block[x]};
        if (w->cyclic[x] > 1 && items > 1 && walk_apply(w, RULE_REORDER, at, order, 3))
            at = walk_below(w, at, 0);
    }
    if (walk_apply(w, RULE_SPLIT_JOIN, at, nest->item, nest->dims))
        at = walk_map_below(w, at);
    apply_threads(w, RULE_MAP_GLB, at, nest->dims);
    derive_item(w, nest, walk_inside(w, at, nest->dims));
}

// A map over all its dimensions.
static void derive_nest(DeriveWalk *w, Path at)
{
    const Expr *map = walk_node(w, at);
    Nest nest = nest_of(w, map);
    int dims = nest.dims;
    uint32_t copied = copied_windows(w, map->arg[0], dims);
    bool tiled = copied && walk_apply(w, RULE_TILE, at, nest.tile, dims);
    if (!tiled && nest.one_each && !(w->strips && walks_lines(map))) {
        apply_threads(w, RULE_MAP_GLB, at, dims);
        return;
    }
    if (!tiled && w->any_group) {
        derive_any_group(w, &nest, at);
        return;
    }
    if (!tiled && !walk_apply(w, RULE_SPLIT_JOIN, at, nest.tile, dims))
        return;
    Path groups = walk_map_below(w, at);
    if (!apply_threads(w, RULE_MAP_WRG, groups, dims))
        return;
    Path work = walk_inside(w, groups, dims);
    if (tiled)
        stage_windows(w, walk_below(w, work, 0), dims, copied);
    Path item = derive_items(w, &nest, work);
    if (!nest.one_each)
        derive_item(w, &nest, item);
}

// Maps written inside one another: one thread dimension each.
static void derive_nested(DeriveWalk *w, Path at, int depth)
{
    for (int64_t d = depth - 1; d >= 0; d--) {
        walk_apply(w, RULE_MAP_GLB, at, &d, 1);
        at = walk_below(w, at, CHILD_FUN);
        while (d > 0 && !w->deep && !is_map(walk_node(w, at)))
            at = walk_below(w, at, walk_node(w, at)->kind == E_LET);
    }
}

// The map that a step of the fold is, for the outputs of an item.
static void unroll_outputs(DeriveWalk *w, Path at)
{
    while (!w->deep && !is_map(walk_node(w, at)))
        at = walk_below(w, at, walk_node(w, at)->kind == E_LET ? 1 : CHILD_FUN);
    walk_apply_plain(w, RULE_MAP_UNROLL, at);
}

// The length of the array that a pattern goes through; an unknown one counts as long.
static int64_t shared_length(const Expr *expr)
{
    int64_t len;
    return arith_is_const(expr->arg[expr->narg - 1]->type->len, &len) ? len : INT64_MAX;
}

// Writes out the fold of a block of so many outputs if it is short, and else its shortest
// rows.
static void unroll_block(DeriveWalk *w, Path block, const FoldRows *rows, int64_t outputs)
{
    enum { BLOCK_MOST = 512 };
    const int64_t length = w->deep ? 0 : shared_length(walk_node(w, block));
    if (length <= (rows->n ? BLOCK_MOST / outputs : UNROLL_MOST))
        walk_apply_plain(w, RULE_REDUCE_UNROLL, block);
    else
        nest_rows(w, block, rows, rows->row[0]);
}

// A product: tiles for groups, blocks of outputs in registers for items. What does not
// match leaves less of it.
static void derive_product(DeriveWalk *w, Path at)
{
    Nest nest = {.dims = 2};
    for (int k = 0; k < 2; k++) {
        nest.item[k] = w->block[1 - k] * w->cyclic[1 - k];
        nest.tile[k] = nest.item[k] * w->local[1 - k];
    }
    if (!walk_apply(w, RULE_PRODUCT_TILE, at, nest.tile, 2))
        return;
    while (!w->deep && !is_map(walk_node(w, at)))
        at = walk_below(w, at, 0);
    Path work = walk_inside(w, at, 2), block;
    walk_apply(w, RULE_MAP_WRG, at, (int64_t[]){1}, 1);
    walk_apply(w, RULE_MAP_WRG, walk_below(w, at, CHILD_FUN), (int64_t[]){0}, 1);
    block = derive_items(w, &nest, work);
    const Expr *fold = w->deep ? NULL : fold_inside(walk_node(w, block)->fun->arg[0]);
    FoldRows rows = fold ? find_rows(fold) : (FoldRows){.n = 0};
    if (!walk_apply_plain(w, RULE_MAP_REDUCE_BLOCK, block))
        return;
    if (!w->deep && walk_node(w, block)->kind == E_LET) { // what follows the fold
        walk_apply_plain(w, RULE_MAP_UNROLL, walk_below(w, block, 1));
        block = walk_below(w, block, 0);
    }
    if (w->matrix)
        walk_apply(w, RULE_MATRIX_TILES, block, &w->stage, 1);
    else if (w->stage)
        walk_apply(w, RULE_STAGE_TILES, block, &w->stage, 1);
    else if (w->unroll)
        unroll_block(w, block, &rows, nest.item[0] * nest.item[1]);
    Path last = walk_below_lets(w, block); // a tile that the others leave some of
    const Expr *before =
        !w->deep && walk_node(w, last)->narg ? walk_node(w, last)->arg[0] : NULL;
    if (before && expr_is(before, P_REDSEQ))
        unroll_outputs(w, walk_below(w, last, 0));
    unroll_outputs(w, block);
}

// A product in blocks, or a batch of them; false if it is none.
static bool derive_blocks(DeriveWalk *w, Path at)
{
    Path inner = walk_below(w, at, CHILD_FUN);
    if (is_product(walk_node(w, at)))
        derive_product(w, at);
    else if (is_map(walk_node(w, at)) && is_product(walk_node(w, inner)) &&
             walk_apply(w, RULE_MAP_WRG, at, (int64_t[]){2}, 1))
        derive_product(w, inner);
    else
        return false;
    return true;
}

static void derive_map(DeriveWalk *w, Path at);

// A product beside a longer one may have too few terms for as many parts.
static bool has_terms(const Expr *product, int64_t parts)
{
    const int64_t terms = expr_fold_terms(product->fun->arg[0]->fun->arg[0]);
    return terms <= 1 || terms >= 8 * parts;
}

// The map of the parts that the folds of a map have, which is no product, and that of what
// they give.
static void derive_parts(DeriveWalk *w, Path at, int64_t parts)
{
    enum { ITEM_PARTS = 256 }; // that an item joins
    const bool blocks = w->blocks;
    const Path each = walk_below(w, at, 0), whole = walk_below(w, at, 1);
    w->blocks = false;
    if (!derive_parts_by_groups(w, each))
        derive_map(w, each);
    w->blocks = blocks;
    if (parts <= ITEM_PARTS || !derive_by_group(w, whole))
        derive_map(w, whole);
}

// The folds of a map, or of a product, in parts, which another map folds.
static bool derive_fold_parts(DeriveWalk *w, Path at)
{
    enum { NUMBERS_MOST = 4 }; // whose uses double
    const int64_t of_product = w->parts, of_folds = w->fold_parts;
    const bool product = of_product > 1 && !w->deep && is_product(walk_node(w, at)) &&
                         has_terms(walk_node(w, at), of_product);
    const int64_t parts = product ? of_product : of_folds;
    Path fold = walk_inside(w, at, 1 + product);
    if (w->deep || !(product || chain_parts(w, walk_node(w, at))))
        return false;
    const Rewriter before = rewriter_hold(&w->r);
    if (!product)
        derive_join_folds(w, fold);
    for (int i = 0; i < NUMBERS_MOST && names_number(walk_node(w, fold)) &&
                    walk_apply_plain(w, RULE_LET_INLINE, fold);
         i++)
        ;
    const bool found = path_to_fold(walk_node(w, fold), &fold, NULL);
    if (found)
        walk_apply_plain(w, RULE_REDUCE_FISSION, fold);
    if (!rewriter_end(&w->r, &before,
                      found && walk_apply(w, product ? RULE_PRODUCT_SPLIT : RULE_FOLD_SPLIT,
                                          at, &parts, 1)))
        return false;
    w->parts = w->fold_parts = 1;
    at = walk_last_let(w, at);
    if (product) {
        derive_map(w, walk_below(w, at, 0));
        derive_nested(w, walk_below(w, at, 1), 2);
    } else {
        derive_parts(w, at, parts);
    }
    w->parts = of_product;
    w->fold_parts = of_folds;
    return true;
}

static void derive_map(DeriveWalk *w, Path at)
{
    if (stream_map(w, at))
        return;
    if (w->lists && derive_list(w, at))
        return;
    if (derive_keyed_parts(w, at)) {
        derive_map(w, walk_below(w, at, 1));
        return;
    }
    if (derive_scan_rows(w, at) || derive_keyed_map(w, at) || derive_fold_parts(w, at))
        return;
    if (derive_chain(w, at))
        return;
    cover_pull(&w->r, at, &w->unstored);
    if (w->blocks && derive_blocks(w, at))
        return;
    nest_folds(w, at);
    if (w->unroll)
        unroll_inner(w, at, UNROLL_MOST);
    const Expr *map = walk_node(w, at);
    int depth = map->dims == 1 ? nested_depth(map) : 1;
    if (depth > 1)
        derive_nested(w, at, depth);
    else
        derive_nest(w, at);
}

// Reductions --------------------------------------------------------------------------

// Leaves one element for each of that many parts, reduced by a work-group: tiles where
// windows are looked at, if nobody sees the order, else equal parts.
static bool reduce_parts(DeriveWalk *w, Path at, int64_t groups, int64_t lanes)
{
    const int64_t args[] = {groups, w->line * lanes};
    const Expr *fold = walk_node(w, at);
    Path parts = walk_below(w, at, 1);
    return ((expr_find_pattern(fold->arg[1], P_SLIDE) &&
             !(w->strict && order_shows(fold)) &&
             walk_apply(w, RULE_PARTIAL_TILES, at, args, 2)) ||
            walk_apply(w, RULE_PARTIAL_INTO, at, args, 2)) &&
           derive_folds(w, parts, lanes) && walk_apply_plain(w, RULE_TO_GLOBAL, parts);
}

// Folds of folds are one fold of all.
static void join_folds(DeriveWalk *w, Path at)
{
    do {
        walk_apply_plain(w, RULE_REDUCE_FISSION, at);
        if (is_map(walk_node(w, walk_below(w, at, 1))))
            walk_apply_plain(w, RULE_REDUCE_FISSION,
                             walk_below(w, walk_below(w, at, 1), CHILD_FUN));
    } while (walk_apply_plain(w, RULE_JOIN_REDUCE, at));
}

static void derive_reduce(DeriveWalk *w, Path at)
{
    if (!reduce_shares(walk_node(w, at)))
        return;
    int64_t groups = folds_parts(w, walk_node(w, at)) ? 1 : w->groups;
    bool ok = reduce_parts(w, at, groups, w->lanes);
    bool hold = w->hold;
    w->hold = false; // there may be more parts than fit
    if (ok && groups > 1)
        ok = reduce_parts(w, at, 1, 1);
    w->hold = hold;
    if (ok)
        walk_apply_plain(w, RULE_REDUCE_ONE, at);
}

// The host level ----------------------------------------------------------------------

static void walk(DeriveWalk *w, Path at, bool root);
static void walk_apart(DeriveWalk *w, Path at);
static void walk_step(DeriveWalk *w, Path at);

static void walk_items(DeriveWalk *w, Path at, bool root)
{
    for (int i = 0; !w->deep && i < walk_node(w, at)->narg; i++)
        walk(w, walk_below(w, at, i), root);
}

// A pure re-layout of inputs is copied in parallel.
static void parallel_copy(DeriveWalk *w, Path at)
{
    int64_t dims = array_dims(walk_node(w, at)->type), one = 1;
    if (dims <= 0 || !walk_apply(w, RULE_COPY, at, &dims, 1))
        return;
    Path elem = walk_below(w, at, CHILD_FUN);
    while (walk_apply(w, RULE_COPY, elem, &one, 1))
        elem = walk_below(w, elem, CHILD_FUN);
    at = join_outer(w, at);
    walk_apply_plain(w, RULE_MAP_FLATTEN, at);
    derive_map(w, at);
}

enum { PARTS_TOGETHER = 16 };

// A fold of rows element by element is one fold for each column. It is written to memory,
// as every fold is.
static void walk_columns(DeriveWalk *w, Path at, bool root, bool of_parts)
{
    int64_t parts = w->fold_parts;
    bool rows = w->rows;
    if (of_parts) { // by items, each a few of them
        w->fold_parts = PARTS_TOGETHER;
        w->rows = false;
    }
    if (!root)
        walk_apply_plain(w, RULE_TO_GLOBAL, at);
    derive_map(w, root ? at : walk_below(w, at, 0));
    w->fold_parts = parts;
    w->rows = rows;
}

static void walk_keyed(DeriveWalk *w, Path at, bool root)
{
    if (derive_keyed(w, at))
        walk_columns(w, walk_below(w, at, 1), root, true);
}

// A map that reads a prefix of a whole array beside arrays that are there: both in one.
static bool walk_scan_read(DeriveWalk *w, Path at)
{
    const Expr *map = walk_node(w, at), *scan = scan_read(map), *in = map->arg[0];
    if (!scan || scan == map || !scan_splits(w, map))
        return false;
    int which = -1;
    for (int i = 0; scan != in && i < in->narg; i++)
        if (in->arg[i] == scan)
            which = i;
        else if (!is_view(in->arg[i]))
            return false;
    Path below = walk_below(w, at, 0);
    if (which >= 0)
        below = walk_below(w, below, which);
    walk_items(w, below, false);
    return derive_scan(w, at);
}

static void walk_pattern(DeriveWalk *w, Path at, bool root)
{
    const Expr *expr = walk_node(w, at);
    Pattern pattern = expr->pattern;
    if (root && is_zip(expr, 1)) {
        walk_items(w, at, true);
        return;
    }
    if ((root && (is_relayout(expr) || pattern == P_SCATTER)) ||
        (pattern == P_TOGLOBAL && is_relayout(expr->arg[0]))) {
        walk_apart(w, walk_below(w, at, 0));
        walk_apply_plain(w, RULE_TRANSPOSE_TWICE, at);
        return;
    }
    // Who reads one element of a scatter would make all; a turned stage writes neighbours.
    if ((pattern == P_SCATTER || (turns_columns(expr) && is_costly(expr->arg[0]))) &&
        walk_apply_plain(w, RULE_TO_GLOBAL, at)) {
        walk_apart(w, walk_below(w, walk_below(w, at, 0), 0));
        return;
    }
    if (pattern == P_REDUCE && reduce_shares(expr))
        join_folds(w, at);
    if (pattern == P_MAP && root && walk_scan_read(w, at))
        return;
    walk_items(w, at, false);
    if (pattern == P_ITERATE && fuse_steps(w, at))
        return;
    if (pattern == P_ITERATE)
        walk_step(w, at);
    else if (pattern == P_REDUCE && walk_apply_plain(w, RULE_REDUCE_MAP_INTERCHANGE, at))
        walk_columns(w, at, root, folds_parts(w, walk_node(w, at)));
    else if (pattern == P_REDUCE)
        derive_reduce(w, at);
    else if (root && moves_rows(walk_node(w, at)))
        parallel_copy(w, at);
    else if (w->keys == KEYS_ALL && join_keyed(w, &at))
        walk_keyed(w, at, false);
    else if (pattern == P_MAP && root)
        derive_map(w, at);
    else if (pattern == P_MAP &&
             (is_costly(walk_node(w, at)) || is_keyed_map(walk_node(w, at)) ||
              is_for_items(walk_node(w, at))) &&
             walk_apply_plain(w, RULE_TO_GLOBAL, at)) // who reads it would compute it again
        derive_map(w, walk_below(w, at, 0));
    else if (pattern == P_TOGLOBAL && is_map(walk_node(w, walk_below(w, at, 0))))
        derive_map(w, walk_below(w, at, 0));
    else if (launches_rows(walk_node(w, at), w->steps_room))
        derive_row_step(w, walk_below(w, at, CHILD_FUN), walk_apart);
    else if (pattern == P_SCAN)
        derive_scan(w, at);
    else if (pattern == P_REDUCEBY)
        walk_keyed(w, at, root);
    else if (root)
        parallel_copy(w, at);
}

// A stage that its kernel does not store, and must not compute again: it has one reader.
static bool is_unstored_costly(const DeriveWalk *w, const Expr *let)
{
    return cover_unstored(&w->unstored, let->param) &&
           expr_uses(let->arg[1], let->param) == 1 && is_costly(let->arg[0]);
}

// A result that the kernel of a let writes: all that it stores, or a component of it, the
// first time that it is asked for.
static bool is_placed(DeriveWalk *w, const Expr *result)
{
    int field;
    const Param *param = placed_result(result, &field);
    for (int i = w->outside; param && i < w->stored.len && field < COMPONENTS_MOST - 1;
         i++) {
        StoredLet *s = &w->stored.at[i];
        uint64_t bit = (uint64_t)1 << (field + 1) % 64;
        uint64_t *placed = &s->placed[(field + 1) / 64];
        if (s->param != param || s->whole != (field < 0) || (*placed & bit))
            continue;
        *placed |= bit;
        return true;
    }
    return false;
}

// Where what is below is no result as it stands.
static void walk_apart(DeriveWalk *w, Path at)
{
    int outside = w->outside;
    w->outside = w->stored.len;
    walk(w, at, true);
    w->outside = outside;
}

static void walk_step(DeriveWalk *w, Path at)
{
    const Param *outer = w->state;
    w->state = walk_node(w, at)->fun->params[0];
    walk_apart(w, walk_below(w, at, CHILD_FUN));
    w->state = outer;
}

// Is what follows the let still to be walked?
static bool walk_let(DeriveWalk *w, Path at, bool root)
{
    if ((root && makes_results(walk_node(w, at))) ||
        cover_before_steps(&w->unstored, walk_node(w, at)))
        walk_apply_plain(w, RULE_TO_GLOBAL, walk_below(w, at, 0));
    if (is_unstored_costly(w, walk_node(w, at)) &&
        walk_apply_plain(w, RULE_LET_INLINE, at)) {
        derive_normalise(w, at);
        walk(w, at, root);
        return false;
    }
    const Together *parts = together_of(w, walk_node(w, at)->param);
    if (parts)
        derive_together(w, walk_map_below(w, walk_below(w, at, 0)), parts);
    else
        walk(w, walk_below(w, at, 0), false);
    const Expr *let = w->deep ? NULL : walk_node(w, at), *value = let ? let->arg[0] : NULL;
    if (root && value && (expr_is(value, P_TOGLOBAL) || is_time_loop(value))) {
        VEC_PUSH(w->r.arena, &w->stored,
                 (StoredLet){let->param, has_result(let->arg[1], let->param, -1), {0}});
    }
    return !w->deep;
}

// Root: the expression is written to memory as it stands.
static void walk(DeriveWalk *w, Path at, bool root)
{
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    while (expr && expr->kind == E_LET && walk_let(w, at, root)) {
        at = walk_below(w, at, 1);
        expr = w->deep ? NULL : walk_node(w, at);
    }
    if (!expr || expr->kind == E_LET ||
        (root && (is_placed(w, expr) || is_carried(expr, w->state))))
        return;
    switch (expr->kind) {
    case E_TUPLE: walk_items(w, at, root); return;
    case E_PATTERN: walk_pattern(w, at, root); return;
    case E_OP:
    case E_CALL:
    case E_GET:
    case E_AT:
    case E_PARAM:
        for (int i = 0; i < walk_node(w, at)->narg; i++)
            walk(w, walk_below(w, at, i), false);
        if (root && !is_loop_result(w->r.ir, walk_node(w, at)))
            parallel_copy(w, at);
        return;
    case E_LITERAL:
    case E_NUM:
    case E_LET:
    case E_LAMBDA: return;
    }
}

// Entry -------------------------------------------------------------------------------

DeriveWalk walk_start(const Derivation *d)
{
    return (DeriveWalk){.strict = d->program->math == MATH_STRICT,
                        .cpu = d->device.is_cpu,
                        .room = fold_room(d),
                        .steps_room = steps_room(d),
                        .units = d->device.compute_units};
}

static DeriveWalk walk_of(const Derivation *d, const Point *point)
{
    DeriveWalk w = walk_start(d);
    w.tiled = derive_word(d, point, "scheme", "tiled") ||
              derive_word(d, point, "scheme", "padded");
    w.any_group = derive_word(d, point, "group", "any");
    w.unroll = derive_word(d, point, "inner", "unroll");
    w.matrix = derive_word(d, point, "product", "matrix");
    w.blocks = w.matrix || derive_word(d, point, "product", "blocks");
    w.near = derive_word(d, point, "fold", "near");
    w.rows = by_groups(d, point);
    w.hold = derive_word(d, point, "hold", "local");
    w.join = derive_word(d, point, "join", "lanes");
    w.beside = w.rows && !d->shape.product ? derive_number(d, point, "l", 1) : 1;
    w.line = line_items(d, point);
    w.lanes = derive_param(d, point, "lanes");
    if (space_find(d->space, "stage") >= 0)
        w.stage = space_int(d->space, point, "stage");
    w.groups = derive_param(d, point, "groups");
    w.copies = derive_param(d, point, "copies");
    w.keyed = derive_param(d, point, "beside");
    w.keys = derive_word(d, point, "keys", "group") ? KEYS_GROUP
             : derive_word(d, point, "keys", "all") ? KEYS_ALL
                                                    : KEYS_ITEM;
    w.parts = derive_param(d, point, "parts");
    w.fold_parts = own_parts(d) ? parts_to_fill(&d->shape) : w.parts;
    if (space_find(d->space, "share") >= 0)
        w.share = space_int(d->space, point, "share");
    w.steps = derive_param(d, point, "walk");
    w.stream = derive_word(d, point, "scheme", "stream");
    w.shuffle = d->device.shuffle;
    w.host = d->device.is_cpu || !has_items(d);
    w.one_pass = derive_word(d, point, "prefix", "lookback");
    w.strips = space_find(d->space, "strip") >= 0 && derive_param(d, point, "strip") > 0;
    w.lists = derive_word(d, point, "lists", "tiles");
    w.fused = derive_param(d, point, "fuse");
    w.cols = derive_param(d, point, "cols");
    w.strip = derive_param(d, point, "rows");
    for (int x = 0; x < DIMS_MAX; x++) {
        w.local[x] = derive_number(d, point, "l", x);
        w.block[x] = derive_number(d, point, "b", x);
        w.cyclic[x] = derive_number(d, point, "c", x);
    }
    w.four_warps = w.matrix && derive_word(d, point, "unit", "group");
    for (int x = 0; x < 2 && w.matrix; x++) {
        w.block[x] = x == 0 || w.four_warps ? 2 : 1; // as fragments are laid out
        w.cyclic[x] = derive_number(d, point, "m", x) / (x == 1 ? w.block[x] : 1);
    }
    w.items = d->items ? d->items : w.line;
    w.each = d->items ? d->each : w.lanes;
    return w;
}

typedef struct {
    const Derivation *d;
    const Point *point;
    DeriveWalk *w;
} Deriving;

// Each level has several positions on the stack.
static void derive_deep(void *user)
{
    const Deriving *x = user;
    DeriveWalk *w = x->w;
    cover_begin(x->d, x->point, &w->r, &w->unstored);
    if (!x->d->shape.lowered) {
        walk(w, (Path){0}, true);
        derive_hold_items(w);
    }
}

static bool derive(const Derivation *d, const Point *point, bool steps, DeriveWalk *w,
                   Diags *diags)
{
    *w = walk_of(d, point);
    w->deep = d->deep;
    w->r = rewriter_again(&d->normal);
    w->r.forgets = !steps;
    deep_call(derive_deep, &(Deriving){d, point, w});
    return !w->deep || diag_error(diags, d->program->main->span, "P010",
                                  "the program is nested too deeply to be derived");
}

const Expr *derive_steps(Ir *ir, Expr *iterate)
{
    DeriveWalk w = {.fused = 2, .cols = 1, .strip = 1};
    rewriter_init(&w.r, ir, ir->arena, iterate);
    return fuse_steps(&w, (Path){0}) ? w.r.expr : NULL;
}

void derive_passes(const Derivation *d, const Point *point, TimeLoop *passes)
{
    DeriveWalk w;
    Diags quiet = {.arena = d->program->ir->arena};
    *passes = (TimeLoop){0};
    if (derive(d, point, false, &w, &quiet))
        *passes = w.passes;
}

Expr *derive_body(const Derivation *d, const Point *point, Diags *diags)
{
    DeriveWalk w;
    return derive(d, point, false, &w, diags) ? w.r.expr : NULL;
}

typedef Unit *Lowering(const Program *program, Expr *body, const KernelOptions *options,
                       Arena *arena, Diags *diags);

static Unit *lowered(const Derivation *d, const Point *point, Lowering *lowering,
                     bool quick, Arena *arena, Diags *diags)
{
    Expr *body = derive_body(d, point, diags);
    KernelOptions options = derive_options(d, point);
    options.quick = quick;
    return body ? lowering(d->program, body, &options, arena, diags) : NULL;
}

Unit *derive_unit(const Derivation *d, const Point *point, bool quick, Arena *arena,
                  Diags *diags)
{
    return lowered(d, point, lower, quick, arena, diags);
}

Unit *derive_as_written(const Derivation *d, const Point *point, Arena *arena, Diags *diags)
{
    return lowered(d, point, lower_as_written, false, arena, diags);
}

bool derive_rewriting(const Derivation *d, const Point *point, Rewriting *rewriting,
                      Diags *diags)
{
    DeriveWalk w;
    bool ok = derive(d, point, true, &w, diags);
    *rewriting = w.r.done;
    return ok;
}
