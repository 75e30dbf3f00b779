// SPDX-License-Identifier: Apache-2.0
//
// Streams: several steps of `iterate` over a two-dimensional stencil in one kernel.
//
//   method  a warp owns a strip of columns, some a lane, and walks along y. For each step
//           (level) but the last it keeps the newest 2r+1 rows of its strip in registers; a
//           new row of the input gives one new row of every level, each r rows behind the
//           one before. Columns beyond a lane's own come from its neighbours by shuffles.
//           Strips overlap by r columns a step on each side, streams by r rows a step on
//           each end: what is computed twice needs no memory and no barrier. The loop is
//           unrolled 2r+1 times, so that windows move by changing names.
//           Cells beyond the grid are computed like others, and then replaced, at each
//           level, by what the padding says: only as many as the stencil reaches. That is
//           done in code of its own, which runs where a strip or a row is near the border.
//   source  streaming with overlapped blocks of several steps: AN5D (Matsumura et al., CGO
//           2020), whose rows are in local memory
//
// The function of the iterate is evaluated as it stands with its state in registers, so
// each step computes exactly what a sweep would. What is not a stencil of at most 8 columns
// and rows of reach, with one kind of padding, is refused: it stays repeated sweeps.

#include "lower/stream.h"

#include <stdlib.h>
#include <string.h>

// The state as the function sees it ---------------------------------------------------

static const View *window_new(Stream *s, int grid, const Type *type)
{
    View *view = NEW(s->l->arena, View);
    *view = (View){.kind = V_WINDOW, .type = type, .field = grid, .stream = s};
    return view;
}

const View *window_elem(Lower *l, const View *view, const Arith *index)
{
    View *elem = NEW(l->arena, View);
    *elem = *view;
    elem->type = view->type->elem;
    elem->index[elem->nindex++] = index;
    return elem;
}

static bool same_fill(const View *a, const View *b)
{
    return a->kind == V_VALUE && b->kind == V_VALUE && a->value->kind == b->value->kind &&
           ((a->value->kind == K_LITERAL && a->value->number == b->value->number) ||
            (a->value->kind == K_INDEX && a->value->arith == b->value->arith));
}

void window_pad(const View *view, PadMode mode, const View *fill)
{
    Stream *s = view->stream;
    if (!s->probing)
        return;
    bool differs = s->padded && (s->mode != mode || (fill && !same_fill(s->fill, fill)));
    s->refused |= differs || (fill && !same_fill(fill, fill));
    s->padded = true;
    s->mode = mode;
    s->fill = fill;
}

static bool is_within(Stream *s, const Arith *at, int64_t len)
{
    ArithCtx *c = s->l->ctx;
    return arith_nonneg(c, at) && arith_le(c, at, arith_const(c, len - 1));
}

static void note_read(Stream *s, const View *view, const int64_t *off)
{
    int grid = view->field, last = s->dims - 1;
    bool row = s->dims == 3 && off[1] != 0, column = off[last] != 0;
    for (int k = 0; k < s->dims; k++) {
        s->crosses |= !is_within(s, view->index[k], s->size[k]);
        s->reach[k] = MAX(s->reach[k], llabs(off[k]));
    }
    s->beside[grid] |= column;
    s->above[grid] |= row;
    s->corners |= off[0] != 0 && (row || column);
    s->diagonal |= row && column;
}

// Where a place is seen from the cell being computed; false if that is no constant, or far.
static bool offset_of(Stream *s, const View *view, int64_t *off)
{
    for (int k = 0; k < s->dims; k++)
        if (!arith_is_const(arith_sub(s->l->ctx, view->index[k], s->at[k]), &off[k]) ||
            llabs(off[k]) > REACH_MAX)
            return false;
    return true;
}

const KExpr *window_read(Lower *l, const View *view)
{
    Stream *s = view->stream;
    int64_t off[DIMS_MAX];
    bool near = offset_of(s, view, off);
    if (!near && !s->probing)
        BUG("a stream read where its first evaluation did not");
    if (s->probing) {
        s->refused |= !near;
        if (near)
            note_read(s, view, off);
        return k_literal(l, 0, view->type);
    }
    int64_t slot = slot_of(s, off[0] - s->reach[0]), j = s->dims == 3 ? s->j + off[1] : 0;
    return k_var(l, cell_var(s, s->level, view->field, slot, j, s->c + off[s->dims - 1]));
}

static const View *state_view(Stream *s)
{
    const Type *type = s->from->type;
    if (type->kind != T_TUPLE)
        return window_new(s, 0, type);
    const View *item[GRIDS_MAX];
    for (int g = 0; g < s->ngrid; g++)
        item[g] = window_new(s, g, type->item[g]);
    return view_tuple(s->l, type, item);
}

static const View *grid_of(Stream *s, const View *state, int g)
{
    return state->type->kind == T_TUPLE ? view_get(s->l, state, g) : state;
}

static const View *element(Stream *s, const View *grid, const Arith *const *at)
{
    for (int k = 0; k < s->dims; k++)
        grid = view_elem(s->l, grid, at[k]);
    return grid;
}

// One grid of the function's result at the cell.
static const KExpr *cell_value(Stream *s, const View *result, int g)
{
    return view_read(s->l, element(s, grid_of(s, result, g), s->at));
}

static const View *evaluate(Stream *s)
{
    return eval(s->l, s->f->arg[0], env_bind(s->l, s->env, s->f->params[0], state_view(s)));
}

// What can be streamed ----------------------------------------------------------------

static bool is_grid(Stream *s, const Type *type, int g)
{
    int64_t size[DIMS_MAX];
    int dims = 0;
    for (; type->kind == T_ARRAY; type = type->elem, dims++)
        if (dims == DIMS_MAX || !arith_is_const(type->len, &size[dims]))
            return false;
    if (dims < 2 || type->kind != T_SCALAR || type->scalar == S_BOOL)
        return false;
    s->scalar[g] = type;
    bool same = g == 0 || (dims == s->dims &&
                           memcmp(size, s->size, (size_t)dims * sizeof *size) == 0);
    memcpy(s->size, size, sizeof size);
    s->dims = dims;
    return same;
}

static bool are_grids(Stream *s, const Type *type)
{
    s->ngrid = type->kind == T_TUPLE ? type->n : 1;
    if (s->ngrid > GRIDS_MAX)
        return false;
    for (int g = 0; g < s->ngrid; g++)
        if (!is_grid(s, type->kind == T_TUPLE ? type->item[g] : type, g))
            return false;
    return true;
}

static const Arith *ranged(Stream *s, const char *name, int64_t lo, int64_t hi,
                           int64_t multiple)
{
    ArithCtx *c = s->l->ctx;
    return arith_var_multiple(c, name, arith_const(c, lo), arith_const(c, hi), multiple);
}

// Evaluates one cell, into nothing, to learn what it reads.
static bool probe(Stream *s)
{
    Lower *l = s->l, outer = *l;
    Diags quiet;
    Kernel nowhere = {0};
    Block nothing = {0};
    diags_init(&quiet, l->arena);
    map_init(&nowhere.names, l->arena);
    l->diags = &quiet;
    l->kernel = &nowhere;
    l->block = &nothing;
    s->probing = true;
    for (int k = 0; k < s->dims; k++)
        s->at[k] = ranged(s, "at", 0, s->size[k] - 1, 1);
    const View *result = evaluate(s);
    for (int g = 0; g < s->ngrid; g++)
        cell_value(s, result, g);
    s->refused |= l->failed || nowhere.locals.len > 0;
    s->probing = false;
    *l = outer;
    int64_t reach = 0;
    for (int k = 0; k < s->dims; k++)
        reach += s->reach[k];
    return !s->refused && (s->padded || reach == 0);
}

// Strips of warps side by side, or, in three dimensions, tiles of warps one below another.
static bool plan_tiles(Stream *s)
{
    int64_t rx = reach_x(s), ry = reach_y(s);
    s->halo = (s->steps * rx + s->cols - 1) / s->cols * s->cols;
    int64_t own = s->lanes * s->cols - 2 * s->halo;
    // So that the grid's first and last rows are the same ones of a lane in each tile.
    s->border = (2 * s->steps * ry + s->jam - 1) / s->jam * s->jam / 2;
    int64_t lines = s->dims == 3 ? s->warps * s->jam - 2 * s->border : 1;
    int64_t height = s->dims == 3 ? s->size[1] : 1;
    if (own < 1 || lines < 1 || width_of(s) < 2 * rx || height < 2 * ry || ry > s->jam)
        return false;
    s->strips = (width_of(s) + own - 1) / own;
    s->tiles = (height + lines - 1) / lines;
    return true;
}

static bool plan(Stream *s, const Expr *expr)
{
    const LowerOptions *options = s->l->options;
    if (!options->lanes || !arith_is_const(expr->num[2], &s->cols) ||
        !arith_is_const(expr->num[3], &s->rows) || s->cols < 1 || s->rows < 1 ||
        s->cols > COLS_MAX || !are_grids(s, expr->type) || !probe(s))
        return false;
    s->lanes = options->lanes;
    s->jam = s->dims == 3 ? MAX(options->lane_rows, 1) : 1;
    s->warps = s->dims == 3       ? MAX(options->local[1], 1)
               : options->shuffle ? MAX(options->local[0] / s->lanes, 1)
                                  : 1;
    s->phases = 2 * s->reach[0] + 1;
    if (s->steps < 1 || s->steps > 64 || s->size[0] < s->phases || s->jam > JAM_MAX ||
        !plan_tiles(s))
        return false;
    // Whole iterations: what would be computed anyway is written.
    int64_t delay = 2 * s->steps * s->reach[0];
    s->rows = MIN(s->rows, s->size[0]);
    s->rows = (s->rows + delay + s->phases - 1) / s->phases * s->phases - delay;
    s->streams = (s->size[0] + s->rows - 1) / s->rows;
    return true;
}

// Coordinates -------------------------------------------------------------------------

// A name for an index, with what is known of it.
static const Arith *name_index(Stream *s, const char *name, const Arith *value, int64_t lo,
                               int64_t hi, int64_t multiple)
{
    if (lo == hi)
        return arith_const(s->l->ctx, lo);
    Stm *stm = stm_add(s->l, ST_INT);
    stm->index = value;
    return stm->iter = ranged(s, name_new(s->l, name), lo, hi, multiple);
}

// A place within the grid for one that may be beyond it; `size` places from it are meant.
static const Arith *within(Stream *s, const Arith *at, int64_t len, int64_t size)
{
    ArithCtx *c = s->l->ctx;
    if (s->padded && s->mode == PAD_WRAP)
        return arith_mod(c, at, arith_const(c, len));
    at = arith_max(c, at, arith_const(c, 0));
    return arith_min(c, at, arith_const(c, len - size));
}

// Where the n neighbours from `first` on are that a lane has along an axis: those that are
// not in the grid are moved into it.
static void name_places(Stream *s, const char *name, const Arith *first, int axis,
                        int64_t n, bool inside, const Arith **at)
{
    ArithCtx *c = s->l->ctx;
    int64_t size = s->size[axis], r = s->reach[axis];
    int64_t step = axis == s->dims - 1 ? s->cols : 1; // what `first` is a multiple of
    bool whole = size % n == 0 && step == n;          // all are within, or none
    const Arith *base = NULL;
    if (inside)
        base = name_index(s, name, first, r, size - r - n, step);
    else if (whole)
        base = name_index(s, name, within(s, first, size, n), 0, size - n, n);
    for (int64_t k = 0; k < n; k++)
        at[k] = base ? arith_addc(c, base, k)
                     : name_index(s, name, within(s, arith_addc(c, first, k), size, 1), 0,
                                  size - 1, 1);
}

// Code --------------------------------------------------------------------------------

typedef struct {
    Part part;
    const Arith **col, **line; // of the lane
} Way;

// Cell (j, c) of the lane, of a row of the grid.
static void set_cell(Stream *s, const Arith *row, int64_t j, int64_t c, const Way *way)
{
    s->j = j;
    s->c = c;
    s->at[0] = row;
    if (s->dims == 3)
        s->at[1] = way->line[j];
    s->at[s->dims - 1] = way->col[c];
}

static int64_t ahead_of(const Stream *s, int g, int64_t j, int64_t c)
{
    return (g * s->jam + j) * s->cols + c;
}

static void load_cell(Stream *s, int g, int64_t j, int64_t c)
{
    int64_t i = ahead_of(s, g, j, c);
    const KExpr *value = view_read(s->l, element(s, grid_of(s, s->from, g), s->at));
    if (s->ahead[i]) {
        stream_assign(s, s->ahead[i], value);
        return;
    }
    if (!s->nexts[i])
        s->nexts[i] = name_new(s->l, "next");
    s->ahead[i] = stream_declare(s, s->nexts[i], g, value);
}

// The row that comes next, into registers of its own, early.
static void load_ahead(Stream *s, const Arith *row, const Way *way)
{
    if (way->part == PART_ANY)
        row = name_index(s, "row", within(s, row, s->size[0], 1), 0, s->size[0] - 1, 1);
    for (int g = 0; g < s->ngrid; g++)
        for (int64_t j = 0; j < s->jam; j++)
            for (int64_t c = 0; c < s->cols; c++) {
                set_cell(s, row, j, c, way);
                load_cell(s, g, j, c);
            }
}

static void take_ahead(Stream *s)
{
    for (int g = 0; g < s->ngrid; g++)
        for (int64_t j = 0; j < s->jam; j++)
            for (int64_t c = 0; c < s->cols; c++)
                stream_assign(s, cell_var(s, 0, g, s->phase, j, c),
                              k_var(s->l, s->ahead[ahead_of(s, g, j, c)]));
}

// Opens an `if` for those of n conditions that are not known to hold.
static void open_if(Stream *s, const Arith *const *cond, int n)
{
    const Arith *open[16];
    int left = 0;
    for (int i = 0; i < n; i++)
        if (!arith_nonneg(s->l->ctx, cond[i]))
            open[left++] = cond[i];
    if (!left)
        return;
    Stm *branch = stm_add(s->l, ST_IF);
    branch->value = k_cond(s->l, open, left);
    s->l->block = &branch->body;
}

// Opens an `if` for the cells of the last level that this lane writes.
static void open_writes(Stream *s, const Arith *row, const Way *way)
{
    ArithCtx *c = s->l->ctx;
    int64_t side = s->halo / s->cols;
    const Arith *from_start = arith_sub(c, row, s->first);
    const Arith *cond[] = {from_start,
                           arith_sub(c, arith_const(c, s->rows - 1), from_start),
                           arith_addc(c, s->lane, -side),
                           arith_sub(c, arith_const(c, s->lanes - side - 1), s->lane),
                           arith_sub(c, arith_const(c, width_of(s) - 1), s->x),
                           arith_sub(c, arith_const(c, s->size[0] - 1), row)};
    open_if(s, cond, way->part == PART_INSIDE ? 4 : way->part == PART_SIDE ? 5 : 6);
}

// In three dimensions, for row j of the lane.
static void open_line(Stream *s, int64_t j, const Way *way)
{
    ArithCtx *c = s->l->ctx;
    if (s->dims != 3)
        return;
    const Arith *within =
        arith_addc(c, arith_mulc(c, s->warp, s->jam), j - s->border); // of those written
    int64_t last = s->warps * s->jam - 2 * s->border - 1;
    const Arith *left = arith_sub(c, arith_const(c, s->size[1] - 1 - j), s->y);
    const Arith *cond[] = {within, arith_sub(c, arith_const(c, last), within), left};
    open_if(s, cond, way->part == PART_INSIDE ? 2 : 3);
}

// Cell (j, k) of the lane, where the grid may end within the lane.
static void write_cell(Stream *s, const View *result, const Arith *row, int64_t j,
                       int64_t k, const Way *way)
{
    Lower *l = s->l;
    Block *here = l->block;
    const Arith *x = arith_addc(l->ctx, s->x, k);
    if (k > 0 && way->part != PART_INSIDE && width_of(s) % s->cols != 0) {
        const Arith *left = arith_sub(l->ctx, arith_const(l->ctx, width_of(s) - 1), x);
        Stm *branch = stm_add(l, ST_IF);
        branch->value = k_cond(l, &left, 1);
        l->block = &branch->body;
    }
    const Arith *at[DIMS_MAX] = {row, s->dims == 3 ? arith_addc(l->ctx, s->y, j) : x, x};
    for (int g = 0; g < s->ngrid; g++) {
        const View *to = element(s, grid_of(s, s->to, g), at);
        gen_copy(l, view_value(l, cell_value(s, result, g)), to);
    }
    l->block = here;
}

static void write_row(Stream *s, const View *result, const Arith *row, const Way *way)
{
    const Arith *at = s->at[0];
    for (int64_t j = 0; j < s->jam; j++) {
        Block *here = s->l->block;
        open_line(s, j, way);
        for (int64_t c = 0; c < s->cols; c++) {
            set_cell(s, at, j, c, way);
            write_cell(s, result, row, j, c, way);
        }
        s->l->block = here;
    }
}

static void keep_row(Stream *s, const View *result, const Way *way)
{
    const Arith *at = s->at[0];
    for (int64_t j = 0; j < s->jam; j++)
        for (int64_t c = 0; c < s->cols; c++) {
            set_cell(s, at, j, c, way);
            for (int g = 0; g < s->ngrid; g++)
                stream_assign(s, cell_var(s, s->level + 1, g, s->phase, j, c),
                              cell_value(s, result, g));
        }
}

// One new row of the level after `level`.
static void next_level(Stream *s, const Arith *newest, const Way *way)
{
    Lower *l = s->l;
    int level = s->level;
    const Arith *row = arith_addc(l->ctx, newest, -s->reach[0]);
    if (way->part == PART_ANY)
        fix_rows_below(s, level, newest);
    fetch_neighbours(s, level, way->part);
    if (way->part == PART_ANY)
        fix_rows_above(s, level, newest);
    Block *here = l->block;
    bool last = level + 1 == s->steps;
    if (last)
        open_writes(s, row, way);
    s->at[0] = row;
    if (way->part == PART_ANY)
        s->at[0] =
            name_index(s, "row", within(s, row, s->size[0], 1), 0, s->size[0] - 1, 1);
    const View *result = evaluate(s);
    if (last)
        write_row(s, result, row, way);
    else
        keep_row(s, result, way);
    l->block = here;
    if (way->part != PART_INSIDE && !last)
        fix_columns(s, level + 1, s->phase);
}

// One iteration: as many rows as a window has, from y on.
static void gen_rows(Stream *s, const Way *way, const Arith *y)
{
    for (s->phase = 0; s->phase < s->phases && !s->l->failed; s->phase++) {
        const Arith *newest = arith_addc(s->l->ctx, y, s->phase);
        take_ahead(s);
        load_ahead(s, arith_addc(s->l->ctx, newest, 1), way);
        if (way->part != PART_INSIDE)
            fix_columns(s, 0, s->phase);
        publish_phase(s);
        for (s->level = 0; s->level < s->steps; s->level++)
            next_level(s, arith_addc(s->l->ctx, newest, -s->level * s->reach[0]), way);
    }
}

// Opens an `if` that all lanes of a group agree on; returns it.
static Stm *open_choice(Stream *s, const Arith *const *cond, int n)
{
    Stm *branch = stm_add(s->l, ST_IF);
    branch->value = k_cond(s->l, cond, n);
    s->l->block = &branch->body;
    return branch;
}

// The first and the last y of an iteration that has all its rows within the grid.
static int64_t first_inside(const Stream *s)
{
    return (s->steps + 1) * s->reach[0];
}

static int64_t last_inside(const Stream *s)
{
    return s->size[0] - 1 - s->phases;
}

// Any rows: those near the border in a way of their own.
static void gen_any_rows(Stream *s, const Way *way, const Arith *y)
{
    Lower *l = s->l;
    Block *here = l->block;
    // Barriers under a condition, even one that all agree on, go wrong on PoCL 3.1.
    if (l->options->shuffle && first_inside(s) <= last_inside(s)) {
        const Arith *cond[] = {arith_addc(l->ctx, y, -first_inside(s)),
                               arith_sub(l->ctx, arith_const(l->ctx, last_inside(s)), y)};
        Stm *branch = open_choice(s, cond, 2);
        Way side = {PART_SIDE, way->col, way->line};
        gen_rows(s, &side, name_index(s, "y", y, first_inside(s), last_inside(s), 1));
        l->block = &branch->other;
    }
    gen_rows(s, way, y);
    l->block = here;
}

static void gen_walk(Stream *s, Part part)
{
    Lower *l = s->l;
    ArithCtx *c = l->ctx;
    bool inside = part == PART_INSIDE;
    int64_t delay = s->steps * s->reach[0], times = (s->rows + 2 * delay) / s->phases;
    const Arith *col[COLS_MAX], *line[JAM_MAX], *above = arith_addc(c, s->first, -delay);
    Way way = {part, col, line};
    memset(s->cell, 0, (size_t)s->ncell * sizeof(Var *));
    memset(s->ahead, 0, (size_t)(s->ngrid * s->jam * s->cols) * sizeof(Var *));
    name_places(s, "col", s->x, s->dims - 1, s->cols, inside, col);
    if (s->dims == 3)
        name_places(s, "line", s->y, 1, s->jam, inside, line);
    load_ahead(s, above, &way);
    s->top = l->block;
    Stm *loop = NEW(l->arena, Stm);
    *loop = (Stm){.kind = ST_FOR, .loop = LOOP_SEQ, .extent = arith_const(c, times)};
    loop->iter = ranged(s, name_new(l, "i"), 0, MAX(times - 1, 1), 1);
    l->block = &loop->body;
    const Arith *y =
        name_index(s, "y", arith_add(c, above, arith_mulc(c, loop->iter, s->phases)),
                   inside ? first_inside(s) : -delay,
                   inside ? last_inside(s) : s->size[0] + s->rows + delay, 1);
    if (inside)
        gen_rows(s, &way, y);
    else
        gen_any_rows(s, &way, y);
    l->block = s->top;
    VEC_PUSH(l->arena, s->top, loop);
}

// The last of n comes first, and then the first, so that what takes longest, at the border,
// is not what a launch ends with.
static const Arith *last_first(Stream *s, const char *name, const Arith *at, int64_t n)
{
    ArithCtx *c = s->l->ctx;
    if (n == 1)
        return arith_const(c, 0);
    at = arith_mod(c, arith_addc(c, at, n - 1), arith_const(c, n));
    return name_index(s, name, at, 0, n - 1, 1);
}

// Where the group, its warp and its lane are.
static void name_place(Stream *s)
{
    ArithCtx *c = s->l->ctx;
    int64_t across = s->lanes * s->cols, along = s->warps * s->jam;
    s->strip = last_first(s, "strip", s->strip, s->strips);
    s->stream = last_first(s, "stream", s->stream, s->streams);
    s->first = arith_mulc(c, s->stream, s->rows);
    s->start = arith_addc(c, arith_mulc(c, s->strip, across - 2 * s->halo), -s->halo);
    s->x = name_index(s, "x", arith_add(c, s->start, arith_mulc(c, s->lane, s->cols)),
                      -s->halo, width_of(s) + across, s->cols);
    if (s->dims != 3)
        return;
    s->tile = last_first(s, "tile", s->tile, s->tiles);
    s->top_row = arith_addc(c, arith_mulc(c, s->tile, along - 2 * s->border), -s->border);
    s->y = name_index(s, "line", arith_add(c, s->top_row, arith_mulc(c, s->warp, s->jam)),
                      -s->border, s->size[1] + along, 1);
}

// Conditions for all cells that a group reads being within the grid; 0: none ever are.
static int inside_conds(Stream *s, const Arith **cond)
{
    ArithCtx *c = s->l->ctx;
    int64_t delay = s->steps * s->reach[0];
    const struct {
        const Arith *at;
        int64_t first, last;
    } span[] = {{s->start, reach_x(s), width_of(s) - reach_x(s) - s->lanes * s->cols},
                {s->first, first_inside(s) + delay, s->size[0] - 1 - s->rows - delay},
                {s->top_row, reach_y(s), s->size[1] - reach_y(s) - s->warps * s->jam}};
    int n = 0;
    for (int i = 0; i < s->dims; i++) {
        if (span[i].first > span[i].last)
            return 0;
        cond[n++] = arith_addc(c, span[i].at, -span[i].first);
        cond[n++] = arith_sub(c, arith_const(c, span[i].last), span[i].at);
    }
    return n;
}

// Most warps are nowhere near the border: they have a loop of their own, so that what the
// others need costs them neither registers nor branches (an H200, 5 points: 3.0 against 2.1
// T points/s).
static void gen_ways(Stream *s)
{
    Lower *l = s->l;
    Block *here = l->block;
    const Arith *cond[2 * DIMS_MAX];
    name_place(s);
    int n = l->options->shuffle ? inside_conds(s, cond) : 0;
    if (n) {
        Stm *branch = open_choice(s, cond, n);
        gen_walk(s, PART_INSIDE);
        l->block = &branch->other;
    }
    gen_walk(s, PART_ANY);
    l->block = here;
}

static void in_lane(Lower *l, void *user, const Arith *item)
{
    Stream *s = user;
    ArithCtx *c = l->ctx;
    Block *here = l->block;
    s->lane = item;
    if (s->dims == 2 && s->warps > 1) {
        s->lane = name_index(s, "lane", arith_mod(c, item, arith_const(c, s->lanes)), 0,
                             s->lanes - 1, 1);
        const Arith *warp =
            arith_add(c, arith_mulc(c, s->strip, s->warps), arith_divc(c, item, s->lanes));
        s->strip = name_index(s, "number", warp, 0, s->strips + s->warps - 2, 1);
        const Arith *left = arith_sub(c, arith_const(c, s->strips - 1), s->strip);
        if (!arith_nonneg(c, left)) {
            Stm *guard = stm_add(l, ST_IF);
            guard->value = k_cond(l, &left, 1);
            l->block = &guard->body;
        }
    }
    gen_ways(s);
    l->block = here;
}

// Work-items of a group along x: those of one warp in three dimensions.
static int64_t items_across(const Stream *s)
{
    return (s->dims == 2 ? s->warps : 1) * s->lanes;
}

static void in_warp(Lower *l, void *user, const Arith *warp)
{
    Stream *s = user;
    s->warp = warp;
    gen_loop(l, LOOP_LCL, 0, false, arith_const(l->ctx, items_across(s)), in_lane, s);
}

static void in_strips(Lower *l, void *user, const Arith *group)
{
    Stream *s = user;
    s->strip = group;
    if (s->dims == 3)
        gen_loop(l, LOOP_LCL, 1, false, arith_const(l->ctx, s->warps), in_warp, s);
    else
        in_warp(l, s, NULL);
}

static int64_t groups_across(const Stream *s)
{
    int64_t warps = s->dims == 2 ? s->warps : 1;
    return (s->strips + warps - 1) / warps;
}

static void in_tile(Lower *l, void *user, const Arith *tile)
{
    Stream *s = user;
    s->tile = tile;
    gen_loop(l, LOOP_WRG, 0, false, arith_const(l->ctx, groups_across(s)), in_strips, s);
}

static void in_stream(Lower *l, void *user, const Arith *stream)
{
    Stream *s = user;
    s->stream = stream;
    if (s->dims == 3)
        gen_loop(l, LOOP_WRG, 1, false, arith_const(l->ctx, s->tiles), in_tile, s);
    else
        in_tile(l, s, NULL);
}

int64_t stream_steps(Lower *l, const Expr *expr, const Env *env, const View *from,
                     const View *to)
{
    Stream s = {.l = l, .f = expr->fun, .env = env, .from = from, .to = to};
    if (l->failed || expr->pattern != P_ITERSTREAM ||
        !arith_is_const(expr->num[1], &s.steps))
        return 0;
    return plan(&s, expr) ? s.steps : 0;
}

static void shape_launch(Stream *s, Kernel *kernel)
{
    int64_t local[3] = {items_across(s), s->dims == 3 ? s->warps : 1, 1};
    int64_t group[3] = {groups_across(s), s->dims == 3 ? s->tiles : s->streams,
                        s->dims == 3 ? s->streams : 1};
    kernel->any_group = false;
    memcpy(kernel->local, local, sizeof kernel->local);
    for (int d = 0; d < 3; d++)
        kernel->global[d] = arith_const(s->l->ctx, group[d] * local[d]);
    kernel->resident = s->l->options->warps / (int)s->warps;
}

void gen_stream(Lower *l, const Expr *expr, const Env *env, int64_t steps, const View *from,
                const View *to)
{
    Stream s = {.l = l, .f = expr->fun, .env = env, .from = from, .to = to, .steps = steps};
    if (l->failed || !plan(&s, expr))
        return;
    int64_t lanes = s.ngrid * s.jam * s.cols;
    s.ncell = s.steps * s.ngrid * s.phases * (s.cols + 2 * reach_x(&s)) *
              (s.jam + 2 * reach_y(&s));
    s.cell = NEW_ARRAY(l->arena, Var *, s.ncell);
    s.names = NEW_ARRAY(l->arena, const char *, s.ncell);
    s.nexts = NEW_ARRAY(l->arena, const char *, lanes);
    s.ahead = NEW_ARRAY(l->arena, Var *, lanes);
    kernel_begin(l, expr);
    shape_launch(&s, l->kernel);
    make_shared(&s);
    gen_loop(l, LOOP_WRG, s.dims == 3 ? 2 : 1, false, arith_const(l->ctx, s.streams),
             in_stream, &s);
    kernel_end(l);
}
