// SPDX-License-Identifier: Apache-2.0
//
// Streams whose warps are time: each warp of a group does some steps for the rows that the
// one before it has finished, of the same columns.
//
//   method  rows of the state go from warp to warp through rings in local memory: one store
//           and one load of a cell for all steps of a warp. What enters the first ring, and
//           what leaves the last one, all items of the group move between it and memory,
//           neighbours by neighbours, a row ahead of its use; where memory can go to local
//           memory by itself, all rows up to the next barrier. So all warps run the same
//           code, columns of a lane are neighbours, however many, and nothing but the two
//           ends of a strip is computed twice along x. Where rings of so many rows are not
//           large, all rows of an iteration have one barrier, which costs 200 cycles or so.
//   source  warps as time levels: what is known of the fastest stencils in double
//           precision (FastStencil, SC 2026)

#include "lower/stream.h"

// The longest way that a grid of the state has from one warp to the next.
void relay_plan(Stream *s)
{
    int64_t before = 0, last = 0;
    s->batch = s->phases <= BATCH_MOST ? s->phases : 1;
    s->lag = s->batch;
    for (int g = 0; g < s->nstate; g++) {
        const Field *in = &s->field[g], *out = stream_field(s, s->steps, g);
        if (in->used)
            s->lag = MAX(s->lag, out->delay - in->delay + s->batch);
        before = MAX(before, in->beyond[0][0]);
        last = MAX(last, out->delay);
    }
    for (int g = 0; g < s->nstate; g++) {
        const Field *in = &s->field[g], *out = stream_field(s, s->steps, g);
        s->late[g] = in->used ? s->lag + in->delay - out->delay : s->batch;
    }
    // One row is not there so soon: a warp would wait where registers let it go on.
    s->copies = s->l->options->copies && s->batch > 1;
    for (int g = 0; g < s->nstate; g++) // of 4 bytes and more
        s->copies &= scalar_info[s->grid[g].scalar->scalar].bytes >= 4;
    s->behind = (s->relay - 1) * s->lag;
    s->above = s->relay * before;
    s->after = s->behind + last + s->batch;
}

static int64_t row_cells(const Stream *s)
{
    return s->lanes * s->cols;
}

// Cells from a lane's first to that of the next in a ring: lanes that load their columns as
// vectors, of up to 16 bytes, load from different banks if these are odd in number.
static int64_t lane_cells(const Stream *s, int g)
{
    int64_t most = 16 / scalar_info[s->grid[g].scalar->scalar].bytes, v = 1;
    while (2 * v <= most && s->cols % (2 * v) == 0)
        v *= 2;
    return s->cols / v % 2 ? s->cols : s->cols + v;
}

static int64_t ring_cells(const Stream *s, int g)
{
    return s->lanes * lane_cells(s, g);
}

int64_t relay_pieces(const Stream *s)
{
    int64_t items = s->relay * s->lanes;
    return ceil_div(row_cells(s), items);
}

// What a warp gives is taken after a barrier, and what is taken is overwritten after one.
int64_t ring_rows(const Stream *s, int g)
{
    return s->late[g] + s->batch;
}

void make_rings(Stream *s)
{
    Lower *l = s->l;
    for (int g = 0; g < s->nstate; g++) {
        int64_t cells = (s->relay + 1) * ring_rows(s, g) * ring_cells(s, g);
        const Type *type =
            type_array(l->arena, arith_const(l->ctx, cells), s->grid[g].scalar);
        s->ring[g] = buffers_new(l, type, MEM_LOCAL, ROLE_TEMP, 0, "ring")->buffer;
    }
}

// The row of a ring that an iteration so many before this one filled, or would have.
static const Arith *ring_row(Stream *s, int g, const Arith *ring, int64_t before)
{
    ArithCtx *c = s->l->ctx;
    int64_t rows = ring_rows(s, g);
    const Arith *turn = arith_addc(c, arith_mulc(c, s->turn, s->phases),
                                   s->phase + floor_mod(-before, rows));
    const Arith *row = arith_mod(c, turn, arith_const(c, rows));
    return arith_mulc(c, arith_add(c, arith_mulc(c, ring, rows), row), ring_cells(s, g));
}

static const Arith *own_cell(Stream *s, int g, const Arith *row, int64_t c)
{
    ArithCtx *a = s->l->ctx;
    return arith_addc(a, arith_add(a, row, arith_mulc(a, s->lane, lane_cells(s, g))), c);
}

// Where a cell of a row is in it.
static const Arith *cell_place(Stream *s, int g, const Arith *cell)
{
    ArithCtx *c = s->l->ctx;
    int64_t more = lane_cells(s, g) - s->cols;
    return arith_add(c, cell, arith_mulc(c, arith_divc(c, cell, s->cols), more));
}

void relay_take(Stream *s)
{
    for (int g = 0; g < s->nstate; g++) {
        if (!s->field[g].used)
            continue;
        const Arith *row = ring_row(s, g, s->warp, s->late[g]);
        for (int64_t c = 0; c < s->cols; c++)
            add_assign(s->l, cell_var(s, &s->field[g], 0, 0, c),
                       k_load(s->l, s->ring[g], own_cell(s, g, row, c), s->grid[g].scalar));
    }
}

void relay_pass(Stream *s, int g, int64_t c, const KExpr *value)
{
    const Arith *next = arith_addc(s->l->ctx, s->warp, 1);
    add_store(s->l, s->ring[g], own_cell(s, g, ring_row(s, g, next, 0), c), value);
}

// Which cell of a row an item moves: the last one, where there are no more.
const Arith *relay_cell(Stream *s, int64_t piece)
{
    ArithCtx *c = s->l->ctx;
    int64_t items = s->relay * s->lanes, last = row_cells(s) - 1;
    const Arith *at = arith_add(c, arith_mulc(c, s->warp, s->lanes), s->lane);
    return arith_min(c, arith_addc(c, at, piece * items), arith_const(c, last));
}

// Where a piece of the row is put that enters a barrier from now.
void relay_enter(Stream *s, int g, int64_t piece, const KExpr *value)
{
    ArithCtx *c = s->l->ctx;
    const Arith *row = ring_row(s, g, arith_const(c, 0), s->late[g] - s->batch);
    const Arith *index = arith_add(c, row, cell_place(s, g, relay_cell(s, piece)));
    add_store(s->l, s->ring[g], index, value)->async = s->copies;
}

// A piece of the row that left the last warp a barrier ago.
const KExpr *relay_left(Stream *s, int g, int64_t piece)
{
    ArithCtx *c = s->l->ctx;
    const Arith *row = ring_row(s, g, arith_const(c, s->relay), s->batch);
    return k_load(s->l, s->ring[g],
                  arith_add(c, row, cell_place(s, g, relay_cell(s, piece))),
                  s->grid[g].scalar);
}
