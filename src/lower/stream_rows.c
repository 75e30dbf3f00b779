// SPDX-License-Identifier: Apache-2.0
//
// Streams on a processor: a group is one thread, and the rows of its strip are in arrays
// that stay in cache.
//
//   method  A window is an array: its newest rows, or planes of a tile, as wide as the
//           strip. A new row of the input gives one of every field, each by a loop over
//           its columns, which a compiler turns into vectors. A field is computed as far
//           beyond what is written as others read it, and no farther. The schedule, the
//           overlap of strips, and what is done near the border are those of streams in
//           registers.
//   source  time skewing within a tile of columns (Wonnacott, 2000) with overlapped strips

#include "lower/stream.h"

// Where the loops over a row are, and what each of its cells is for.
typedef struct {
    Stream *s;
    const Field *field;
    Part part;
    int g;                 // of the state that is read or written
    const int64_t *far[2]; // cells before and after those written that are computed
    void (*cell)(Stream *s, const Field *field, int g);
} Loop;

static int64_t lines_of(const Stream *s)
{
    return s->dims == 3 ? s->jam : 1;
}

void make_windows(Stream *s)
{
    Lower *l = s->l;
    ARRAY_EACH_REF(Field *, field, s->field, s->nfield) {
        if (!field->used || field->same >= 0 || !field->depth)
            continue;
        int64_t cells = s->phases * lines_of(s) * s->cols;
        const Type *type =
            type_array(l->arena, arith_const(l->ctx, cells), s->grid[field->grid].scalar);
        field->buffer = buffers_new(l, type, MEM_LOCAL, ROLE_TEMP, 0, "row")->buffer;
    }
}

// The cell that is so far from the one computed, in the row of so many iterations ago.
static const Arith *window_cell(Stream *s, int64_t age, int64_t j, int64_t c)
{
    ArithCtx *a = s->l->ctx;
    int64_t slot = floor_mod(s->phase - age, s->phases);
    const Arith *line = arith_addc(a, s->line_at, slot * lines_of(s) + j);
    return arith_addc(a, arith_add(a, arith_mulc(a, line, s->cols), s->col_at), c);
}

const KExpr *window_load(Stream *s, const Field *field, int64_t age, int64_t j, int64_t c)
{
    return k_load(s->l, field->buffer, window_cell(s, age, j, c),
                  s->grid[field->grid].scalar);
}

static void store_cell(Stream *s, const Field *field, const KExpr *value)
{
    add_store(s->l, field->buffer, window_cell(s, 0, 0, 0), value);
}

static void take_cell(Stream *s, const Field *field, int g)
{
    store_cell(s, field, stream_input(s, g));
}

static void compute_cell(Stream *s, const Field *field, int g)
{
    store_cell(s, field, stream_value(s, field));
}

static void write_cell(Stream *s, const Field *field, int g)
{
    const KExpr *value = field->depth > 0     ? window_load(s, field, 0, 0, 0)
                         : is_input(s, field) ? stream_input(s, field->grid)
                                              : stream_value(s, field);
    gen_copy(s->l, view_value(s->l, value),
             stream_element(s, stream_part(s, s->to, g), s->at));
}

// Axis 1 of three, or that of the columns: where its part of a strip begins, and its cells
// that are not written.
static const Arith *place_along(const Loop *loop, int axis, const Arith *at)
{
    Stream *s = loop->s;
    const Arith *from = axis == s->dims - 1 ? s->start : s->top_row;
    const char *name = axis == s->dims - 1 ? "col" : "line";
    return stream_place(s, name, arith_add(s->l->ctx, from, at), axis,
                        loop->part == PART_INSIDE);
}

// What is written ends with the grid.
static const Arith *extent_along(const Loop *loop, int axis)
{
    Stream *s = loop->s;
    ArithCtx *a = s->l->ctx;
    bool column = axis == s->dims - 1;
    int64_t skipped = column ? s->halo : s->border;
    int64_t all = column ? s->cols : lines_of(s);
    int64_t n = all - 2 * skipped + loop->far[0][axis] + loop->far[1][axis];
    const Arith *from = arith_addc(a, column ? s->start : s->top_row, skipped);
    if (loop->cell != write_cell || loop->part == PART_INSIDE)
        return arith_const(a, n);
    return arith_min(a, arith_const(a, n),
                     arith_sub(a, arith_const(a, s->size[axis]), from));
}

static void in_column(Lower *l, void *user, const Arith *k)
{
    Loop *loop = user;
    Stream *s = loop->s;
    int x = s->dims - 1;
    s->col_at = arith_addc(l->ctx, k, s->halo - loop->far[0][x]);
    Block *here = l->block;
    if (loop->cell == compute_cell)
        stream_real_place(s, loop->field, s->line_at, s->col_at, loop->part);
    s->at[x] = place_along(loop, x, s->col_at);
    loop->cell(s, loop->field, loop->g);
    l->block = here;
}

static void in_line(Lower *l, void *user, const Arith *j)
{
    Loop *loop = user;
    Stream *s = loop->s;
    s->line_at = arith_addc(l->ctx, j, s->dims == 3 ? s->border - loop->far[0][1] : 0);
    if (s->dims == 3)
        s->at[1] = place_along(loop, 1, s->line_at);
    gen_loop(l, LOOP_SEQ, 0, false, extent_along(loop, s->dims - 1), in_column, loop);
}

static void each_cell(Loop *loop, const Arith *row)
{
    Stream *s = loop->s;
    s->at[0] = row;
    if (s->dims == 3)
        gen_loop(s->l, LOOP_SEQ, 0, false, extent_along(loop, 1), in_line, loop);
    else
        in_line(s->l, loop, arith_const(s->l->ctx, 0));
}

void rows_take(Stream *s, int g, const Arith *row, Part part)
{
    const Field *field = &s->field[g];
    if (field->depth)
        each_cell(
            &(Loop){s, field, part, g, {field->beyond[0], field->beyond[1]}, take_cell},
            row);
}

void rows_compute(Stream *s, const Field *field, const Arith *row, Part part)
{
    each_cell(
        &(Loop){s, field, part, 0, {field->beyond[0], field->beyond[1]}, compute_cell},
        row);
}

void rows_write(Stream *s, int g, const Field *field, const Arith *row, Part part)
{
    static const int64_t none[DIMS_MAX];
    each_cell(&(Loop){s, field, part, g, {none, none}, write_cell}, row);
}
