// SPDX-License-Identifier: Apache-2.0
//
// Streams whose warps are time: each warp of a group does some steps for the rows that the
// one before it has finished, of the same columns.
//
//   method  rows of the state go from warp to warp through rings in local memory: one store
//           and one load of a cell for all steps of a warp. What enters the first ring, and
//           what leaves the last one, all items of the group move between it and memory,
//           neighbours by neighbours, a row ahead of its use. So all warps run the same
//           code, columns of a lane are neighbours, however many, and nothing but the two
//           ends of a strip is computed twice along x. An iteration has one barrier.
//   source  warps as time levels: what is known of the fastest stencils in double
//           precision (FastStencil, SC 2026)

#include "lower/stream.h"

// The longest way that a grid of the state has from one warp to the next.
void relay_plan(Stream *s)
{
    int64_t before = 0, last = 0;
    s->lag = 1;
    for (int g = 0; g < s->nstate; g++) {
        const Field *in = &s->field[g], *out = stream_field(s, s->steps, g);
        if (in->used)
            s->lag = MAX(s->lag, out->delay - in->delay + 1);
        before = MAX(before, in->beyond[0][0]);
        last = MAX(last, out->delay);
    }
    for (int g = 0; g < s->nstate; g++) {
        const Field *in = &s->field[g], *out = stream_field(s, s->steps, g);
        s->late[g] = in->used ? s->lag + in->delay - out->delay : 1;
    }
    s->behind = (s->relay - 1) * s->lag;
    s->above = s->relay * before;
    s->after = s->behind + last + 1;
}

static int64_t row_cells(const Stream *s)
{
    return s->lanes * s->cols;
}

int64_t relay_pieces(const Stream *s)
{
    int64_t items = s->relay * s->lanes;
    return (row_cells(s) + items - 1) / items;
}

void make_rings(Stream *s)
{
    Lower *l = s->l;
    for (int g = 0; g < s->nstate; g++) {
        int64_t cells = (s->relay + 1) * (s->late[g] + 1) * row_cells(s);
        const Type *type =
            type_array(l->arena, arith_const(l->ctx, cells), s->grid[g].scalar);
        s->ring[g] = buffers_new(l, type, MEM_LOCAL, ROLE_TEMP, 0, "ring")->buffer;
    }
}

// The row of a ring that an iteration so many before this one filled, or would have.
static const Arith *ring_row(Stream *s, int g, const Arith *ring, int64_t before)
{
    ArithCtx *c = s->l->ctx;
    int64_t rows = s->late[g] + 1;
    const Arith *turn = arith_addc(c, arith_mulc(c, s->turn, s->phases),
                                   s->phase + floor_mod(-before, rows));
    const Arith *row = arith_mod(c, turn, arith_const(c, rows));
    return arith_mulc(c, arith_add(c, arith_mulc(c, ring, rows), row), row_cells(s));
}

static const Arith *own_cell(Stream *s, const Arith *row, int64_t c)
{
    ArithCtx *a = s->l->ctx;
    return arith_addc(a, arith_add(a, row, arith_mulc(a, s->lane, s->cols)), c);
}

void relay_take(Stream *s)
{
    for (int g = 0; g < s->nstate; g++) {
        if (!s->field[g].used)
            continue;
        const Arith *row = ring_row(s, g, s->warp, s->late[g]);
        for (int64_t c = 0; c < s->cols; c++)
            stream_assign(s, cell_var(s, &s->field[g], 0, 0, c),
                          k_load(s->l, s->ring[g], own_cell(s, row, c), s->grid[g].scalar));
    }
}

void relay_pass(Stream *s, int g, int64_t c, const KExpr *value)
{
    const Arith *next = arith_addc(s->l->ctx, s->warp, 1);
    Stm *store = stm_add(s->l, ST_STORE);
    store->buffer = s->ring[g];
    store->index = own_cell(s, ring_row(s, g, next, 0), c);
    store->value = value;
}

// Which cell of a row an item moves: the last one, where there are no more.
const Arith *relay_cell(Stream *s, int64_t piece)
{
    ArithCtx *c = s->l->ctx;
    int64_t items = s->relay * s->lanes, last = row_cells(s) - 1;
    const Arith *at = arith_add(c, arith_mulc(c, s->warp, s->lanes), s->lane);
    return arith_min(c, arith_addc(c, at, piece * items), arith_const(c, last));
}

// Where a piece of the row that enters next is put.
void relay_enter(Stream *s, int g, int64_t piece, const KExpr *value)
{
    ArithCtx *c = s->l->ctx;
    Stm *store = stm_add(s->l, ST_STORE);
    store->buffer = s->ring[g];
    store->index = arith_add(c, ring_row(s, g, arith_const(c, 0), s->late[g] - 1),
                             relay_cell(s, piece));
    store->value = value;
}

// A piece of the row that left the last warp in the iteration before.
const KExpr *relay_left(Stream *s, int g, int64_t piece)
{
    ArithCtx *c = s->l->ctx;
    const Arith *row = ring_row(s, g, arith_const(c, s->relay), 1);
    return k_load(s->l, s->ring[g], arith_add(c, row, relay_cell(s, piece)),
                  s->grid[g].scalar);
}
