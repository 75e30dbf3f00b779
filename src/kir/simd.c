// SPDX-License-Identifier: Apache-2.0
//
// Simd: loops over items whose iterations a compiler may take as lanes of vectors say so.
//
//   why    Without being asked gcc makes no vectors of a loop with another loop inside: a
//          convolution of 16 channels, 3 x 3, 501 x 503, took 234 ms, and takes 28 (gcc 12,
//          two cores). Nor does it see that pointers are restricted, once the loop around
//          is shared out.
//   needs  items that are a loop, and in the loops inside accesses of neighbouring elements
//          by neighbouring items, or of the same one
//
// Short loops inside are to be written out.

#include "kir/passes.h"

enum { SHORT = 16, LANES_LEAST = 4 };

typedef struct {
    ArithCtx *ctx;
    const Stm *items;
} ItemLanes;

static bool is_far(const KExpr *e, const void *user)
{
    const ItemLanes *l = user;
    int64_t across = e->kind == K_LOAD ? index_stride(l->ctx, e->arith, l->items->iter) : 0;
    return across < 0 || across > 1;
}

static bool goes_far(const Stm *stm, const void *user)
{
    const ItemLanes *l = user;
    bool beside =
        stm->kind != ST_STORE || index_stride(l->ctx, stm->index, l->items->iter) == 1;
    return !beside || stm->kind == ST_INT || kexpr_any(stm->value, is_far, user);
}

// What lanes cannot do, or not together.
static bool keeps_apart(const Stm *stm, const void *user)
{
    const ItemLanes *l = user;
    if (stm->kind != ST_FOR)
        return stm->atomic;
    return stm->loop != LOOP_SEQ || stm->items || stm->value ||
           arith_mentions(stm->extent, l->items->iter) ||
           block_any(&stm->body, goes_far, user);
}

static bool makes_array(const Stm *stm, const void *none)
{
    return stm->kind == ST_ARRAY || stm->kind == ST_INT;
}

static bool are_lanes(const ItemLanes *l)
{
    const Block *body = &l->items->body;
    int64_t extent = LANES_LEAST;
    arith_is_const(l->items->extent, &extent);
    return extent >= LANES_LEAST && !block_any(body, keeps_apart, l) &&
           !(block_any(body, stm_is_loop, NULL) && block_any(body, makes_array, NULL));
}

static void write_out(Block *block)
{
    VEC_EACH(Stm *, stm, block) {
        int64_t extent;
        if (stm->kind == ST_FOR && !stm->unroll && arith_is_const(stm->extent, &extent) &&
            stm_iterations(stm, SHORT + 1) <= SHORT)
            stm->unroll = (int)extent;
        write_out(&stm->body);
        write_out(&stm->other);
    }
}

static void mark(ArithCtx *ctx, Block *block)
{
    VEC_EACH(Stm *, stm, block) {
        bool items = stm->kind == ST_FOR && (stm->items || loop_is_of_items(stm));
        stm->simd = items && are_lanes(&(ItemLanes){ctx, stm});
        if (stm->simd)
            write_out(&stm->body);
        mark(ctx, &stm->body);
        mark(ctx, &stm->other);
    }
}

void pass_simd(Pass *pass, Kernel *kernel)
{
    mark(pass->ctx, &kernel->body);
}
