// SPDX-License-Identifier: Apache-2.0
//
// The cells of a stream: variables of its windows, what lanes give each other, and what
// stands in for cells beyond the grid.
//
//   method  Columns beyond a lane's own come from its neighbours by shuffles, or through
//           local memory where there are none. In three dimensions a lane has rows too,
//           and warps lie one below another: the first and last rows of each go through
//           local memory. A star reads neighbours of the middle plane only, which is older
//           than the newest: what all steps need of each other is published at once.

#include "lower/stream.h"

#include <stdlib.h>

// Cells -------------------------------------------------------------------------------

int64_t slot_of(const Stream *s, int64_t from_newest)
{
    return floor_mod(s->phase + from_newest, s->phases);
}

// l1, 0, r1: before, of and after one's own.
static const char *place_name(Arena *arena, int64_t at, int64_t own, char before,
                              char after)
{
    return at < 0      ? arena_printf(arena, "%c%d", before, (int)-at)
           : at >= own ? arena_printf(arena, "%c%d", after, (int)(at - own + 1))
                       : arena_printf(arena, "%d", (int)at);
}

static const char *cell_name(Stream *s, int level, int grid, int64_t slot, int64_t j,
                             int64_t c)
{
    Arena *a = s->l->arena;
    const char *row =
        s->dims == 3 ? arena_printf(a, "%s_", place_name(a, j, s->jam, 'a', 'b')) : "";
    const char *letter = s->ngrid == 1 ? "" : arena_printf(a, "%c", 'a' + grid);
    return name_new(s->l, arena_printf(a, "v%d%s_%d_%s%s", level, letter, (int)slot, row,
                                       place_name(a, c, s->cols, 'l', 'r')));
}

Var *stream_declare(Stream *s, const char *name, int grid, const KExpr *value)
{
    Stm *decl = stm_add(s->l, ST_DECL);
    decl->var = NEW(s->l->arena, Var);
    *decl->var = (Var){name, s->scalar[grid], false};
    decl->value = value;
    return decl->var;
}

void stream_assign(Stream *s, Var *var, const KExpr *value)
{
    Stm *stm = stm_add(s->l, ST_ASSIGN);
    stm->var = var;
    stm->value = value;
}

Var *cell_var(Stream *s, int level, int grid, int64_t slot, int64_t j, int64_t c)
{
    int64_t across = s->cols + 2 * reach_x(s), along = s->jam + 2 * reach_y(s);
    int64_t i = (level * s->ngrid + grid) * s->phases + slot;
    i = (i * along + j + reach_y(s)) * across + c + reach_x(s);
    if (s->cell[i])
        return s->cell[i];
    if (!s->names[i])
        s->names[i] = cell_name(s, level, grid, slot, j, c);
    Block *here = s->l->block;
    s->l->block = s->top;
    s->cell[i] = stream_declare(s, s->names[i], grid, k_literal(s->l, 0, s->scalar[grid]));
    s->l->block = here;
    return s->cell[i];
}

// Exchange between lanes --------------------------------------------------------------

// Rows of a lane that others see: all, but where columns are shuffled only those that
// neighbouring warps reach.
static int64_t rows_kept(const Stream *s)
{
    return s->l->options->shuffle ? MIN(s->jam, 2 * reach_y(s)) : s->jam;
}

// Which of them row j is; -1 if nobody sees it.
static int64_t kept_row(const Stream *s, int64_t j)
{
    int64_t kept = rows_kept(s);
    if (kept == s->jam || j < reach_y(s))
        return j;
    return j >= s->jam - reach_y(s) ? j - s->jam + kept : -1;
}

static bool has_rows(const Stream *s)
{
    bool any = false;
    for (int g = 0; g < s->ngrid; g++)
        any |= s->above[g];
    return any;
}

static bool has_sides(const Stream *s)
{
    bool any = false;
    for (int g = 0; g < s->ngrid; g++)
        any |= s->beside[g];
    return any;
}

static const Buffer *shared_of(const Stream *s, int64_t level, int g)
{
    return s->shared[level * s->ngrid + g];
}

// In two dimensions lanes meet for one row at a time; in three a buffer a level, and one
// for the border where nothing can be shuffled.
void make_shared(Stream *s)
{
    Lower *l = s->l;
    bool shuffle = l->options->shuffle;
    int64_t levels = s->dims == 2 ? !shuffle : has_rows(s) || !shuffle ? s->steps : 0;
    levels += s->dims == 3 && !shuffle;
    int64_t cells = s->lanes * s->cols * (s->dims == 3 ? s->warps * rows_kept(s) : 1);
    s->shared = NEW_ARRAY(l->arena, const Buffer *, (s->steps + 1) * s->ngrid);
    for (int64_t i = 0; i < levels * s->ngrid; i++) {
        const Type *type =
            type_array(l->arena, arith_const(l->ctx, cells), s->scalar[i % s->ngrid]);
        s->shared[i] = buffers_new(l, type, MEM_LOCAL, ROLE_TEMP, 0, "shared")->buffer;
    }
}

// Where column c of a row of a lane is in local memory. In three dimensions a lane's
// columns are neighbours, so that they move as vectors.
static const Arith *shared_index(Stream *s, const Arith *warp, int64_t row,
                                 const Arith *lane, int64_t c)
{
    ArithCtx *a = s->l->ctx;
    if (s->dims == 2)
        return arith_addc(a, lane, c * s->lanes);
    const Arith *line =
        arith_addc(a, arith_mulc(a, warp, rows_kept(s)), row); // of lanes * cols
    line = arith_add(a, arith_mulc(a, line, s->lanes), lane);
    return arith_addc(a, arith_mulc(a, line, s->cols), c);
}

static void publish(Stream *s, int level, int64_t slot, int64_t buffer)
{
    Lower *l = s->l;
    for (int g = 0; g < s->ngrid; g++)
        for (int64_t j = 0; j < s->jam; j++)
            for (int64_t c = 0; c < s->cols && kept_row(s, j) >= 0; c++) {
                Stm *store = stm_add(l, ST_STORE);
                store->buffer = shared_of(s, buffer, g);
                store->index = shared_index(s, s->warp, kept_row(s, j), s->lane, c);
                store->value = k_var(l, cell_var(s, level, g, slot, j, c));
            }
}

// Own column c of row j of another lane; anything if there is no such lane.
static const KExpr *from_lane(Stream *s, int64_t buffer, const Var *own, int g,
                              const Arith *warp, int64_t j, const Arith *lane, int64_t c)
{
    Lower *l = s->l;
    if (l->options->shuffle)
        return k_shuffle(l, k_var(l, own), lane);
    lane = arith_max(l->ctx, lane, arith_const(l->ctx, 0));
    lane = arith_min(l->ctx, lane, arith_const(l->ctx, s->lanes - 1));
    return k_load(l, shared_of(s, buffer, g),
                  shared_index(s, warp, kept_row(s, j), lane, c), s->scalar[g]);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return (a - floor_mod(a, b)) / b;
}

// The warp that has row j of this one, and which row of its own it is.
static const Arith *warp_of(Stream *s, int64_t j, int64_t *row)
{
    ArithCtx *a = s->l->ctx;
    *row = floor_mod(j, s->jam);
    if (s->dims == 2 || *row == j)
        return s->warp;
    const Arith *warp = arith_addc(a, s->warp, floor_div(j, s->jam));
    warp = arith_max(a, warp, arith_const(a, 0));
    return arith_min(a, warp, arith_const(a, s->warps - 1));
}

static void fetch_rows(Stream *s, int level, int64_t slot)
{
    for (int g = 0; g < s->ngrid; g++)
        for (int64_t j = -reach_y(s); s->above[g] && j < s->jam + reach_y(s); j++) {
            if (j == 0)
                j = s->jam;
            int64_t row;
            const Arith *warp = warp_of(s, j, &row);
            for (int64_t c = 0; c < s->cols; c++)
                stream_assign(s, cell_var(s, level, g, slot, j, c),
                              k_load(s->l, shared_of(s, level, g),
                                     shared_index(s, warp, kept_row(s, row), s->lane, c),
                                     s->scalar[g]));
        }
}

// Of row j, for the buffer of a level.
static void fetch_sides(Stream *s, int level, int64_t slot, int64_t j)
{
    int64_t row, rx = reach_x(s);
    const Arith *warp = warp_of(s, j, &row);
    for (int g = 0; g < s->ngrid; g++)
        for (int64_t c = -rx; s->beside[g] && c < s->cols + rx; c++) {
            if (c == 0)
                c = s->cols;
            int64_t of = floor_mod(c, s->cols);
            const Arith *lane = arith_addc(s->l->ctx, s->lane, floor_div(c, s->cols));
            const Var *own = cell_var(s, level, g, slot, j, of);
            stream_assign(
                s, cell_var(s, level, g, slot, j, c),
                from_lane(s, s->dims == 3 ? level : 0, own, g, warp, row, lane, of));
        }
}

// The border --------------------------------------------------------------------------

static bool has_border(const Stream *s)
{
    return s->padded && s->crosses && s->mode != PAD_WRAP; // a torus goes on as it is
}

static int64_t source_of(Stream *s, int64_t at, int64_t len)
{
    ArithCtx *c = s->l->ctx;
    int64_t source;
    if (!arith_is_const(boundary(s->l, s->mode, arith_const(c, at), arith_const(c, len)),
                        &source))
        BUG("a border that is not constant");
    return source;
}

static const KExpr *fill_value(Stream *s, int g)
{
    const KExpr *fill = s->fill->value;
    return fill->kind == K_INDEX ? fill : k_literal(s->l, fill->number, s->scalar[g]);
}

// Column `at`, which is beyond the grid, of row j of a lane, in all grids. Lanes further
// out get the same: nobody reads them.
static void fix_column(Stream *s, int level, int64_t slot, int64_t j, int64_t at)
{
    Lower *l = s->l;
    int64_t c = floor_mod(at, s->cols);
    const Arith *past = at < 0 ? arith_sub(l->ctx, arith_const(l->ctx, at - c), s->x)
                               : arith_addc(l->ctx, s->x, c - at);
    for (int g = 0; g < s->ngrid; g++) {
        Var *cell = cell_var(s, level, g, slot, j, c);
        const KExpr *to;
        if (s->mode == PAD_CONSTANT) {
            to = fill_value(s, g);
        } else {
            int64_t source = source_of(s, at, width_of(s));
            int64_t of = floor_mod(source, s->cols);
            int64_t own = s->lanes - 2 * (s->halo / s->cols); // lanes
            const Arith *lane =
                arith_sub(l->ctx, arith_const(l->ctx, (source + s->halo) / s->cols),
                          arith_mulc(l->ctx, s->strip, own));
            to = from_lane(s, s->dims == 3 ? s->steps : 0,
                           cell_var(s, level, g, slot, j, of), g, s->warp, j, lane, of);
            if (l->options->shuffle)
                to = k_named(l, to, "edge");
        }
        stream_assign(s, cell,
                      k_op(l, OP_SELECT, s->scalar[g],
                           (const KExpr *[]){k_cond(l, &past, 1), to, k_var(l, cell)}, 3));
    }
}

void fix_columns(Stream *s, int level, int64_t slot)
{
    if (!has_border(s) || reach_x(s) == 0)
        return;
    bool exchange = s->mode != PAD_CONSTANT && !s->l->options->shuffle;
    if (exchange) {
        publish(s, level, slot, s->dims == 3 ? s->steps : 0);
        add_barrier(s->l);
    }
    for (int64_t j = 0; j < s->jam; j++)
        for (int64_t k = 0; k < reach_x(s); k++) {
            fix_column(s, level, slot, j, -1 - k);
            fix_column(s, level, slot, j, width_of(s) + k);
        }
    if (exchange)
        add_barrier(s->l);
}

// What a cell takes over that is beyond the grid: another of the window, or the fill.
static void take_over(Stream *s, int level, int g, int64_t slot, int64_t j, int64_t c,
                      int64_t from_slot, int64_t from_j)
{
    const KExpr *value = s->mode == PAD_CONSTANT
                             ? fill_value(s, g)
                             : k_var(s->l, cell_var(s, level, g, from_slot, from_j, c));
    stream_assign(s, cell_var(s, level, g, slot, j, c), value);
}

// Row `at` of the grid, which is beyond it, is row j of the lanes of one warp.
static void fix_line(Stream *s, int level, int64_t slot, int64_t j, int64_t at)
{
    int64_t source = s->mode == PAD_CONSTANT ? at : source_of(s, at, s->size[1]);
    for (int g = 0; g < s->ngrid; g++) {
        int64_t sides = s->diagonal && s->beside[g] ? reach_x(s) : 0;
        for (int64_t c = -sides; s->above[g] && c < s->cols + sides; c++)
            take_over(s, level, g, slot, j, c, slot, j + source - at);
    }
}

// Opens an `if` for two numbers being the same; returns where we were.
static Block *open_if_same(Stream *s, const Arith *a, int64_t b)
{
    Lower *l = s->l;
    Block *here = l->block;
    Stm *branch = stm_add(l, ST_IF);
    const KExpr *arg[] = {k_index(l, a), k_index(l, arith_const(l->ctx, b))};
    branch->value = k_op(l, OP_EQ, type_scalar(S_BOOL), arg, 2);
    l->block = &branch->body;
    return here;
}

// Rows of a plane beyond the grid, for the warps that read them for cells within: the one
// that has the grid's first row as its row `top`, or the last one as its row `bottom`, and
// perhaps its neighbour, which is as many rows further in.
static void fix_lines(Stream *s, int level, int64_t slot)
{
    int64_t height = s->size[1], ry = reach_y(s);
    int64_t top = s->border % s->jam, bottom = (height - 1 + s->border) % s->jam;
    Block *here = s->l->block;
    if (!has_border(s) || !has_rows(s))
        return;
    for (int64_t in = 0; in < ry + top; in += s->jam) {
        open_if_same(s, s->y, in - top);
        for (int64_t j = MAX(-ry, top - in - ry); j < top - in; j++)
            fix_line(s, level, slot, j, j - top + in);
        s->l->block = here;
    }
    for (int64_t in = 0; bottom + in < s->jam + ry - 1; in += s->jam) {
        open_if_same(s, s->y, height - 1 - bottom - in);
        for (int64_t k = 1; k <= ry && bottom + in + k < s->jam + ry; k++)
            fix_line(s, level, slot, bottom + in + k, height - 1 + k);
        s->l->block = here;
    }
}

// Row `at`, which is beyond the grid, if it is so many below the newest.
static void fix_row(Stream *s, int level, int64_t at, int64_t from_newest)
{
    int64_t source = s->mode == PAD_CONSTANT ? 0 : source_of(s, at, s->size[0]);
    int64_t to = slot_of(s, from_newest), from = slot_of(s, from_newest + source - at);
    bool all = s->corners && from_newest < 0;
    int64_t sides = all ? reach_x(s) : 0, lines = all ? reach_y(s) : 0;
    for (int g = 0; g < s->ngrid; g++)
        for (int64_t j = -lines; j < s->jam + lines; j++)
            for (int64_t c = -sides; c < s->cols + sides; c++) {
                bool column = c < 0 || c >= s->cols, line = j < 0 || j >= s->jam;
                if ((column && !s->beside[g]) || (line && !s->above[g]) ||
                    (column && line && !s->diagonal))
                    continue;
                take_over(s, level, g, to, j, c, from, j);
            }
}

void fix_rows_above(Stream *s, int level, const Arith *newest)
{
    if (!has_border(s) || s->reach[0] == 0)
        return;
    Block *here = open_if_same(s, newest, s->reach[0]);
    for (int64_t k = 1; k <= s->reach[0]; k++)
        fix_row(s, level, -k, -s->reach[0] - k);
    s->l->block = here;
}

void fix_rows_below(Stream *s, int level, const Arith *newest)
{
    for (int64_t k = 0; has_border(s) && k < s->reach[0]; k++) {
        Block *here = open_if_same(s, newest, s->size[0] + k);
        fix_row(s, level, s->size[0] + k, 0);
        s->l->block = here;
    }
}

// Phases --------------------------------------------------------------------------------

// Is what neighbours read known before the phase in which they read it?
static bool reads_older(const Stream *s)
{
    return s->dims == 3 && !s->corners && s->reach[0] > 0;
}

static bool meets(const Stream *s)
{
    return s->dims == 3 && (has_rows(s) || (has_sides(s) && !s->l->options->shuffle));
}

void publish_phase(Stream *s)
{
    if (!reads_older(s) || !meets(s))
        return;
    add_barrier(s->l); // what was published before has been read
    for (int level = 0; level < s->steps; level++)
        publish(s, level, slot_of(s, -s->reach[0]), level);
    add_barrier(s->l);
}

void fetch_neighbours(Stream *s, int level, Part part)
{
    int64_t slot = slot_of(s, s->corners ? 0 : -s->reach[0]);
    bool shuffle = s->l->options->shuffle, flat = s->dims == 2 && has_sides(s) && !shuffle;
    bool now = flat || (meets(s) && !reads_older(s));
    if (now) {
        publish(s, level, slot, flat ? 0 : level);
        add_barrier(s->l);
    }
    if (s->dims == 3)
        fetch_rows(s, level, slot);
    int64_t lines = s->diagonal && has_rows(s) ? reach_y(s) : 0;
    for (int64_t j = -lines; j < s->jam + lines; j++)
        fetch_sides(s, level, slot, j);
    if (s->dims == 3 && part != PART_INSIDE)
        fix_lines(s, level, slot);
    // The next level has a buffer of its own, and its barrier.
    if (flat || (now && s->steps == 1))
        add_barrier(s->l);
}
