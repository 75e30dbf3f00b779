// SPDX-License-Identifier: Apache-2.0
//
// Blocks: loops over items go over blocks of them where neighbours along the innermost axis
// access elements that are far apart, and neighbours along another axis the ones beside.
//
//   method  Both loops become one over blocks, and inside these over the items of a block.
//           A block is as wide as a line of cache has floats, and four times as high.
//   why     What a line of cache holds is used before it is lost. Transposition of 4096 x
//           4096 floats: 70 ms without blocks, 17 in blocks of 16 x 16, 8 with 64 high; of
//           2432 x 2432: 4.3, 2.7, 2.2 (gcc 12, two cores)
//   needs   items that are loops of nothing but each other, and do not loop themselves

#include "kir/passes.h"

enum { WIDTH = 16, HEIGHT = 64, DEPTH_MOST = 3 };

typedef struct {
    Kernel *kernel;
    ArithCtx *ctx;
    Arena *arena;
    const Stm *loop[DEPTH_MOST]; // outermost first
    int n, blocks, items;        // blocks, items: names given
} ItemNest;

typedef struct {
    ArithCtx *ctx;
    const Arith *across, *along;
} AxisPair;

static bool are_apart(const AxisPair *axes, const Buffer *buffer, const Arith *index)
{
    if (buffer->space != MEM_GLOBAL || index_stride(axes->ctx, index, axes->along) != 1)
        return false;
    int64_t stride = index_stride(axes->ctx, index, axes->across);
    return stride != STRIDE_ANY && (stride > WIDTH || stride < -WIDTH);
}

static bool is_load_apart(const KExpr *e, const void *axes)
{
    return e->kind == K_LOAD && are_apart(axes, e->buffer, e->arith);
}

static bool goes_apart(const Stm *stm, const void *axes)
{
    return (stm->kind == ST_STORE && are_apart(axes, stm->buffer, stm->index)) ||
           kexpr_any(stm->value, is_load_apart, axes);
}

static bool loops(const Stm *stm, const void *none)
{
    return stm->kind == ST_FOR || stm->atomic;
}

// Is it many blocks long, as far as one knows?
static bool is_long(ArithCtx *ctx, const Arith *extent, int64_t block)
{
    int64_t known = 2 * block;
    arith_is_const(extent, &known);
    return known >= 2 * block;
}

// The number of the loop that is to go in blocks with the innermost one; -1: none.
static int other_axis(const ItemNest *nest)
{
    const Stm *inner = nest->loop[nest->n - 1];
    if (!is_long(nest->ctx, inner->extent, WIDTH))
        return -1;
    for (int i = nest->n - 2; i >= 0; i--) {
        AxisPair axes = {nest->ctx, inner->iter, nest->loop[i]->iter};
        if (block_any(&inner->body, goes_apart, &axes))
            return is_long(nest->ctx, nest->loop[i]->extent, HEIGHT) ? i : -1;
    }
    return -1;
}

// Adds a loop over the blocks of a loop.
static Block *add_blocks(ItemNest *nest, Block *to, const Stm *loop, int64_t size,
                         Division *division)
{
    const char *block = name_fresh(nest->arena, nest->kernel, "block", &nest->blocks);
    const char *item = name_fresh(nest->arena, nest->kernel, "k", &nest->items);
    *division = loop_divided(nest->ctx, loop, size, block, item);
    Stm *blocks = block_add(nest->arena, to, *loop);
    blocks->extent = blocks->threads = division->blocks;
    blocks->iter = division->block;
    blocks->body = (Block){0};
    return &blocks->body;
}

static Block *add_part(ItemNest *nest, Block *to, const Division *part)
{
    Stm loop = {.kind = ST_FOR, .iter = part->iter, .extent = part->extent, .items = true};
    return &block_add(nest->arena, to, loop)->body;
}

static void add_nest(ItemNest *nest, Block *to, int other)
{
    const int last = nest->n - 1;
    Division part[2];
    for (int i = 0; i < nest->n; i++) {
        if (i == other || i == last) {
            to = add_blocks(nest, to, nest->loop[i], i == other ? HEIGHT : WIDTH,
                            &part[i == last]);
            continue;
        }
        Stm *loop = block_add(nest->arena, to, *nest->loop[i]);
        loop->body = (Block){0};
        to = &loop->body;
    }
    to = add_part(nest, to, &part[0]);
    to = add_part(nest, to, &part[1]);
    Block body = block_moved(nest->ctx, nest->arena, &nest->loop[last]->body,
                             nest->loop[last]->iter, part[1].index);
    *to =
        block_moved(nest->ctx, nest->arena, &body, nest->loop[other]->iter, part[0].index);
}

// Loops over items that are nothing but loops over others.
static bool find_nest(ItemNest *nest, const Stm *stm)
{
    for (nest->n = 0; stm->kind == ST_FOR && stm->loop == LOOP_GLB; stm = stm->body.at[0]) {
        if (nest->n == DEPTH_MOST)
            return false;
        nest->loop[nest->n++] = stm;
        if (stm->body.len != 1)
            break;
    }
    return nest->n > 1 && !block_any(&nest->loop[nest->n - 1]->body, loops, NULL);
}

static void in_blocks(ItemNest *nest, Block *block)
{
    Block out = {0};
    VEC_EACH(Stm *, stm, block) {
        int other = find_nest(nest, stm) ? other_axis(nest) : -1;
        if (other >= 0) {
            add_nest(nest, &out, other);
            continue;
        }
        in_blocks(nest, &stm->body);
        in_blocks(nest, &stm->other);
        VEC_PUSH(nest->arena, &out, stm);
    }
    *block = out;
}

void pass_blocks(Pass *pass, Kernel *kernel)
{
    in_blocks(&(ItemNest){.kernel = kernel, .ctx = pass->ctx, .arena = pass->arena},
              &kernel->body);
}
