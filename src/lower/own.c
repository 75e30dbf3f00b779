// SPDX-License-Identifier: Apache-2.0
//
// Arrays that the items of a group share out among their registers: `near` neighbours for
// each item in turn, row after row. What all items write with mapLcl into toPrivate is such
// an array, and the accumulator of a fold that the group does is. An item may read and
// change the elements that it wrote, and no others.

#include "lower/internal.h"

// Iterations that are written out for registers to have no index, and the calls of
// functions that are written out with them: a transform of 64 numbers in six loops, each of
// two such calls, took NVRTC 8.5 s, and takes 1.5 in loops. For a processor so many of all
// loops: 32 steps of a sorting network of 16 numbers took gcc 32 s, and take 0.2.
enum { UNROLLED_MOST = 64, CALLS_MOST = 64, WRITTEN_MOST = 256 };

bool is_shared_out(const Lower *l, const Expr *expr)
{
    return l->inside[LOOP_WRG] && !l->inside[LOOP_LCL] && expr->type->kind == T_ARRAY &&
           expr_find_pattern(expr, P_MAPLCL);
}

const View *own_memory(Lower *l, const Expr *expr, const View *whole)
{
    int64_t near, count, items = l->kernel->local[0];
    const Type *each = expr_find_pattern(expr, P_MAPLCL)->fun->arg[0]->type;
    if (whole->kind != V_MEM || !arith_is_const(type_count(l->ctx, each), &near) ||
        !arith_is_const(whole->buffer->count, &count))
        return lower_fail(
            l, expr->span, "L024",
            "only arrays of scalars with a known length can be in registers of items");
    Buffer *buffer = (Buffer *)whole->buffer; // as yet ours alone
    buffer->items = (int)items;
    buffer->near = (int)near;
    buffer->count = arith_const(l->ctx, (count + items * near - 1) / (items * near) * near);
    return whole;
}

const Arith *own_index(Lower *l, const Buffer *buffer, const Arith *index)
{
    if (!buffer->items)
        return index;
    ArithCtx *c = l->ctx;
    const Arith *near = arith_const(c, buffer->near),
                *items = arith_const(c, buffer->items);
    const Arith *turn = arith_div(c, index, near), *row = arith_div(c, turn, items);
    if (buffer->items > 1 && arith_mod(c, turn, items) != l->item[0])
        lower_fail(l, span_none, "L024",
                   "an element that is in the registers of another item");
    return arith_add(c, arith_mul(c, row, near), arith_mod(c, index, near));
}

typedef struct {
    const View *from, *out;
    int64_t row;
} Turn;

static void copy_turn(Lower *l, void *user, const Arith *item)
{
    const Turn *turn = user;
    const Buffer *buffer = turn->from->buffer;
    const Arith *place = arith_addc(l->ctx, item, turn->row * buffer->items);
    for (int64_t j = 0; j < buffer->near; j++) {
        const Arith *i = arith_addc(l->ctx, arith_mulc(l->ctx, place, buffer->near), j);
        gen_copy(l, view_elem(l, turn->from, i), view_elem(l, turn->out, i));
    }
}

bool own_copy(Lower *l, const View *from, const View *out)
{
    int64_t length;
    if (from->kind != V_MEM || !from->buffer->items || l->inside[LOOP_LCL])
        return false;
    const Buffer *b = from->buffer;
    int64_t row = (int64_t)b->items * b->near;
    if (from->type->elem->kind == T_ARRAY || !arith_is_const(from->type->len, &length) ||
        length % row) {
        lower_fail(l, span_none, "L024", "only whole rows can be in registers of items");
        return true;
    }
    for (int64_t k = 0; k < length / row; k++)
        gen_loop(l, LOOP_LCL, 0, false, arith_const(l->ctx, b->items), copy_turn,
                 &(Turn){from, out, k});
    return true;
}

// An array is in registers only where all its indices are known.
static bool is_in_registers(const Buffer *buffer, const Arith *index, const Arith *iter)
{
    return buffer->space == MEM_PRIVATE && arith_mentions(index, iter);
}

static bool loads_own(const KExpr *e, const void *iter)
{
    return e->kind == K_LOAD && is_in_registers(e->buffer, e->arith, iter);
}

static bool asks_own(const Stm *stm, const void *iter)
{
    bool stores = stm->kind == ST_STORE && is_in_registers(stm->buffer, stm->index, iter);
    return stores || kexpr_any(stm->value, loads_own, iter);
}

static bool is_call(const KExpr *e, const void *none)
{
    return e->kind == K_CALL || (e->kind == K_OP && op_info[e->op].kind >= OPK_EXP);
}

static bool calls(const Stm *stm, const void *none)
{
    return kexpr_any(stm->value, is_call, NULL);
}

void own_unroll(Lower *l, Stm *loop)
{
    const bool processor = l->options->item_loops;
    int64_t n;
    if (l->options->rolled || loop->loop != LOOP_SEQ || !arith_is_const(loop->extent, &n) ||
        n > UNROLLED_MOST ||
        (!processor && n * block_count(&loop->body, calls, NULL) > CALLS_MOST) ||
        !block_any(&loop->body, asks_own, loop->iter))
        return;
    // A processor has arrays in its cache, and its compiler is slow on long texts.
    loop->rolled = processor && l->written_out + n > WRITTEN_MOST;
    loop->unroll = loop->rolled ? 1 : (int)n;
    l->written_out += loop->rolled ? 0 : n;
}
