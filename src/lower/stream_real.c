// SPDX-License-Identifier: Apache-2.0
//
// Steps that only cells of the grid may take.
//
//   method  A stream computes cells that nobody reads: beyond the grid, of rows for which
//           it is too early, at the ends of a strip. What they are computed from is no
//           state that the program has: rows that are not there yet, or cells each of
//           which is right, but not beside the others. For arithmetic that does not matter,
//           and asking costs more than computing. But a division of integers by a number
//           that is 0 in no state may trap on such cells, and an index that is within its
//           array in every state may be anywhere. Where a field is made by either, what
//           it is computed from is asked for; it is then called for nothing that a sweep
//           would not call it for.

#include "lower/stream.h"

// Is an index made of more than what is read at a place of the grid? While it is being
// found what a step reads, cells of the state are literals, and no other int is one.
static bool is_computed(const KExpr *e, const void *none)
{
    return e->kind == K_LITERAL || e->kind == K_VAR;
}

static bool may_fail(const Stm *stm, const void *stream)
{
    const Stream *s = stream;
    return (stm->value && may_trap(s->l->ctx, stm->value)) ||
           (stm->kind == ST_INT && kexpr_any(stm->value, is_computed, NULL));
}

bool stream_may_fail(const Stream *s, const Block *made, const KExpr *value)
{
    return may_trap(s->l->ctx, value) || block_any(made, may_fail, s);
}

// What the warps after this one reach beyond what they write.
static const Arith *reached_later(Stream *s, int side, int axis)
{
    ArithCtx *c = s->l->ctx;
    int64_t most = 0;
    for (int g = 0; g < s->nstate; g++)
        most = MAX(most, s->field[g].beyond[side][axis]);
    if (s->relay == 1)
        return arith_const(c, 0);
    return arith_mulc(c, arith_sub(c, arith_const(c, s->relay - 1), s->warp), most);
}

// The condition for what a cell reads before it, so many after the first that is written,
// being right; the same for what it reads after it.
static const Arith *right_before(Stream *s, const Field *field, int axis, const Arith *at)
{
    ArithCtx *c = s->l->ctx;
    at = arith_addc(c, at, field->beyond[0][axis]);
    return arith_add(c, at, reached_later(s, 0, axis));
}

static const Arith *right_after(Stream *s, const Field *field, int axis, const Arith *at,
                                int64_t written)
{
    ArithCtx *c = s->l->ctx;
    const Arith *left = arith_sub(c, arith_const(c, written - 1), at);
    left = arith_addc(c, left, field->beyond[1][axis]);
    return arith_add(c, left, reached_later(s, 1, axis));
}

// The conditions for a place to be in the grid, unless its border wraps around.
static int add_within(Stream *s, int axis, const Arith *at, const Arith **cond)
{
    ArithCtx *c = s->l->ctx;
    if (s->wrap[axis])
        return 0;
    cond[0] = at;
    cond[1] = arith_sub(c, arith_const(c, s->size[axis] - 1), at);
    return 2;
}

void stream_real_row(Stream *s, const Field *field, const Arith *row, Part part)
{
    const Arith *cond[3];
    if (!s->grid[field->grid].picky)
        return;
    int n = part == PART_ANY ? add_within(s, 0, row, cond) : 0;
    cond[n++] = right_before(s, field, 0, arith_sub(s->l->ctx, row, s->first));
    stream_if(s, cond, n);
}

void stream_real_place(Stream *s, const Field *field, const Arith *line, const Arith *col,
                       Part part)
{
    ArithCtx *c = s->l->ctx;
    const Arith *cond[8];
    int n = 0, x = s->dims - 1;
    if (!s->grid[field->grid].picky)
        return;
    if (part != PART_INSIDE) {
        n += add_within(s, x, arith_add(c, s->start, col), cond);
        if (s->dims == 3)
            n += add_within(s, 1, arith_add(c, s->top_row, line), cond + n);
    }
    if (!s->in_rows) { // whose loops end where it is
        int64_t lines = s->warps * s->jam - 2 * s->border;
        int64_t across = s->lanes * s->cols - 2 * s->halo;
        col = arith_addc(c, col, -s->halo);
        cond[n++] = right_before(s, field, x, col);
        cond[n++] = right_after(s, field, x, col, across);
        line = s->dims == 3 ? arith_addc(c, line, -s->border) : NULL;
        if (line)
            cond[n++] = right_before(s, field, 1, line);
        if (line)
            cond[n++] = right_after(s, field, 1, line, lines);
    }
    stream_if(s, cond, n);
}
