// SPDX-License-Identifier: Apache-2.0
//
// Simd: loops over items whose iterations a compiler may take as lanes of vectors say so,
// and so do loops that only add up, multiply or pick the least or largest, whose lanes are
// joined behind them.
//
//   why    Without being asked gcc makes no vectors of a loop with another loop inside: a
//          convolution of 16 channels, 3 x 3, 501 x 503, took 234 ms, and takes 28 (gcc 12,
//          two cores). Nor does it see that pointers are restricted, once the loop around
//          is shared out.
//   needs  items that are a loop, and in the loops inside accesses of neighbouring elements
//          by neighbouring items, or of the same one
//
// Short loops inside are to be written out. Sums of floating numbers come in another order
// so, which `reduce` allows and strict programs do not. (Sums of 25,527 rows of 224 floats:
// 2.5 ms, and 1.1 as lanes; their largest: 8.4 and 1.2.)

#include "kir/passes.h"

enum { SHORT = 16, LANES_LEAST = 4, SUMS_LEAST = 32 };

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

// Elements from an item's load to the next item's, at most, where an array has two loads:
// gcc 12 makes a group as long as that way (a[i][0] + a[i][M - 1] of 4,096 columns takes it
// 27 s as lanes, 0.04 otherwise).
enum { FAR = 64 };

typedef struct {
    const ItemLanes *lanes;
    const KExpr *first; // NULL: none yet
} FarPair;

static bool holds_far(const Stm *stm, const void *user);

// A load that goes far, and another one of the same array.
static bool is_far_pair(const KExpr *e, const void *user)
{
    const FarPair *p = user;
    const ItemLanes *l = p->lanes;
    if (e->kind != K_LOAD || e == p->first || (p->first && e->buffer != p->first->buffer))
        return false;
    const int64_t across = index_stride(l->ctx, e->arith, l->items->iter);
    if (across == STRIDE_ANY || (across <= FAR && across >= -FAR))
        return false;
    return p->first || block_any(&l->items->body, holds_far, &(FarPair){l, e});
}

static bool holds_far(const Stm *stm, const void *user)
{
    return kexpr_any(stm->value, is_far_pair, user);
}

// An element that data name, of an array that is read: the same item may have changed it in
// an earlier iteration (reduceByOwn by fewer items than a vector has lanes).
static bool changes_named(const Stm *stm, const ItemLanes *l)
{
    if (stm->kind != ST_STORE || stm->buffer->space == MEM_PRIVATE)
        return false;
    const int64_t across = index_stride(l->ctx, stm->index, l->items->iter);
    return (across == 0 || across == STRIDE_ANY) &&
           block_any(&l->items->body, stm_loads, stm->buffer);
}

// What lanes cannot do, or not together.
static bool keeps_apart(const Stm *stm, const void *user)
{
    const ItemLanes *l = user;
    if (stm->kind != ST_FOR)
        return stm->atomic || changes_named(stm, l);
    return stm->loop != LOOP_SEQ || stm->items || stm->value ||
           arith_mentions(stm->extent, l->items->iter) ||
           block_any(&stm->body, goes_far, user);
}

static bool declares_array(const Stm *stm, const void *none)
{
    return stm->kind == ST_ARRAY || stm->kind == ST_INT;
}

static bool are_lanes(const ItemLanes *l)
{
    const Block *body = &l->items->body;
    int64_t extent = LANES_LEAST;
    arith_is_const(l->items->extent, &extent);
    return extent >= LANES_LEAST && !block_any(body, keeps_apart, l) &&
           !block_any(body, holds_far, &(FarPair){l, NULL}) &&
           !(block_any(body, stm_is_loop, NULL) && block_any(body, declares_array, NULL));
}

static void write_out(Stm *stm, void *none)
{
    int64_t extent;
    if (stm->kind == ST_FOR && !stm->unroll && arith_is_const(stm->extent, &extent) &&
        stm_iterations(stm, SHORT + 1) <= SHORT)
        stm->unroll = (int)extent;
}

// An operation whose order does not matter.
static bool is_any_order(const KExpr *value, bool strict)
{
    const bool sum = value->op == OP_ADD || value->op == OP_MUL;
    return (sum || value->op == OP_MINIMUM || value->op == OP_MAXIMUM) &&
           value->type->kind == T_SCALAR && value->type->width <= 1 &&
           !(sum && strict && scalar_info[value->type->scalar].floating);
}

static int count_uses(const KExpr *e, const Var *var)
{
    int n = e && e->kind == K_VAR && e->var == var;
    for (int i = 0; e && i < kexpr_args(e); i++)
        n += count_uses(e->arg[i], var);
    return n;
}

static int uses_in(const Stm *loop, const Var *var)
{
    int n = 0;
    VEC_EACH(const Stm *, stm, &loop->body)
        n += count_uses(stm->value, var);
    return n;
}

// Is the only use of each variable that the loop carries its joining with something else?
static bool only_joins(const Stm *loop, bool strict)
{
    int joined = 0;
    VEC_EACH(const Stm *, stm, &loop->body) {
        if (stm->kind != ST_DECL && stm->kind != ST_ASSIGN)
            return false;
        if (!stm_carries(stm, loop))
            continue;
        const KExpr *value = stm_joins(stm, loop);
        if (!value || !is_any_order(value, strict) || uses_in(loop, stm->var) != 1 ||
            (value != stm->value && uses_in(loop, stm->value->var) != 1))
            return false;
        joined++;
    }
    return joined > 0;
}

static bool sums_up(const Stm *loop, const ItemLanes *l, bool strict)
{
    int64_t extent = SUMS_LEAST;
    arith_is_const(loop->extent, &extent);
    return loop->loop == LOOP_SEQ && !loop->items && !loop->value && !loop->unroll &&
           extent >= SUMS_LEAST && only_joins(loop, strict) &&
           !block_any(&loop->body, goes_far, l);
}

static bool is_simd(const Stm *stm, const void *none)
{
    return stm->kind == ST_FOR && stm->simd;
}

// A long loop around lanes is not written out: gcc takes 3 s for 64 loops of lanes.
static void mark(Pass *pass, Block *block, bool within)
{
    const bool strict = pass->program->math == MATH_STRICT;
    VEC_EACH(Stm *, stm, block) {
        const ItemLanes l = {pass->ctx, stm};
        bool items = stm->kind == ST_FOR && (stm->items || loop_is_of_items(stm));
        stm->simd = stm->kind == ST_FOR && !within &&
                    (items ? are_lanes(&l) : sums_up(stm, &l, strict));
        if (items && stm->simd)
            block_each(&stm->body, write_out, NULL);
        mark(pass, &stm->body, within || stm->simd);
        mark(pass, &stm->other, within);
        if (stm->unroll > SHORT && block_any(&stm->body, is_simd, NULL))
            stm->unroll = 0;
    }
}

void pass_simd(Pass *pass, Kernel *kernel)
{
    mark(pass, &kernel->body, false);
}
