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

#include "lower/internal.h"

#include <stdlib.h>
#include <string.h>

enum { REACH_MAX = 8, GRIDS_MAX = 8, COLS_MAX = 64 };

// Where a row and its strip are: all within, columns near the border, anything.
typedef enum { PART_INSIDE, PART_SIDE, PART_ANY } Part;

typedef struct Stream Stream;
struct Stream {
    Lower *l;
    const Expr *f;
    const Env *env;
    const View *from, *to;
    int64_t height, width; // of the grid
    int64_t steps, cols, rows, lanes, warps;
    int64_t ncell;
    int64_t strips, streams;
    int64_t halo;   // halo: columns at each end of a strip that are not written
    int64_t phases; // rows of a window, and of one iteration
    int ngrid;      // components of the state
    const Type *scalar[GRIDS_MAX];
    // Found by a first evaluation.
    bool probing, refused, padded;
    bool crosses; // cells beyond the grid are read
    PadMode mode;
    const View *fill;
    int64_t ry, rx;
    bool corners;           // neighbours' columns are read in all rows, not the middle one
    bool beside[GRIDS_MAX]; // neighbours' columns are read at all
    // The cell being computed.
    int level;
    int64_t phase, c;
    const Arith *row, *col;
    // The code being made.
    Block *top;                  // declarations
    Var **cell, **ahead;         // windows; the row that comes next
    const char **names, **nexts; // of these, the same in each way
    const Arith *strip, *stream, *lane;
    const Arith *start, *x, *first; // column of the strip, of the lane; first row written
    const Buffer *shared[GRIDS_MAX];
};

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

static void note_read(Stream *s, const View *view, int64_t a, int64_t b)
{
    int grid = view->field;
    s->crosses |=
        !is_within(s, view->index[0], s->height) || !is_within(s, view->index[1], s->width);
    s->ry = MAX(s->ry, llabs(a));
    s->rx = MAX(s->rx, llabs(b));
    s->beside[grid] |= b != 0;
    s->corners |= a != 0 && b != 0;
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    return (a % b + b) % b;
}

// The slot of the row that is so many below (negative: above) the newest.
static int64_t slot_of(const Stream *s, int64_t from_newest)
{
    return floor_mod(s->phase + from_newest, s->phases);
}

static const char *cell_name(Stream *s, int level, int grid, int64_t slot, int64_t c)
{
    Lower *l = s->l;
    const char *side = c < 0 ? "l" : c >= s->cols ? "r" : "";
    int64_t number = c < 0 ? -c : c >= s->cols ? c - s->cols + 1 : c;
    return name_new(
        l, s->ngrid == 1
               ? arena_printf(l->arena, "v%d_%d_%s%d", level, (int)slot, side, (int)number)
               : arena_printf(l->arena, "v%d%c_%d_%s%d", level, 'a' + grid, (int)slot, side,
                              (int)number));
}

static Var *declare(Stream *s, const char *name, int grid, const KExpr *value)
{
    Stm *decl = stm_add(s->l, ST_DECL);
    decl->var = NEW(s->l->arena, Var);
    *decl->var = (Var){name, s->scalar[grid], false};
    decl->value = value;
    return decl->var;
}

// A cell of the window of a level: its columns are the lane's own and r on each side.
static Var *cell_var(Stream *s, int level, int grid, int64_t slot, int64_t c)
{
    int64_t across = s->cols + 2 * s->rx;
    int64_t i = ((level * s->ngrid + grid) * s->phases + slot) * across + c + s->rx;
    if (s->cell[i])
        return s->cell[i];
    if (!s->names[i])
        s->names[i] = cell_name(s, level, grid, slot, c);
    Block *here = s->l->block;
    s->l->block = s->top;
    s->cell[i] = declare(s, s->names[i], grid, k_literal(s->l, 0, s->scalar[grid]));
    s->l->block = here;
    return s->cell[i];
}

const KExpr *window_read(Lower *l, const View *view)
{
    Stream *s = view->stream;
    int64_t a, b;
    bool near = arith_is_const(arith_sub(l->ctx, view->index[0], s->row), &a) &&
                arith_is_const(arith_sub(l->ctx, view->index[1], s->col), &b) &&
                llabs(a) <= REACH_MAX && llabs(b) <= REACH_MAX;
    if (!near && !s->probing)
        BUG("a stream read where its first evaluation did not");
    if (s->probing) {
        s->refused |= !near;
        if (near)
            note_read(s, view, a, b);
        return k_literal(l, 0, view->type);
    }
    int64_t slot = slot_of(s, a - s->ry);
    return k_var(l, cell_var(s, s->level, view->field, slot, s->c + b));
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

static const View *element(Stream *s, const View *grid, const Arith *row, const Arith *col)
{
    return view_elem(s->l, view_elem(s->l, grid, row), col);
}

// One grid of the function's result at the cell.
static const KExpr *cell_value(Stream *s, const View *result, int g)
{
    return view_read(s->l, element(s, grid_of(s, result, g), s->row, s->col));
}

static const View *evaluate(Stream *s)
{
    return eval(s->l, s->f->arg[0], env_bind(s->l, s->env, s->f->params[0], state_view(s)));
}

// What can be streamed ----------------------------------------------------------------

static bool is_grid(Stream *s, const Type *type, int g)
{
    if (type->kind != T_ARRAY || type->elem->kind != T_ARRAY ||
        type->elem->elem->kind != T_SCALAR || type->elem->elem->scalar == S_BOOL)
        return false;
    s->scalar[g] = type->elem->elem;
    int64_t height, width;
    if (!arith_is_const(type->len, &height) || !arith_is_const(type->elem->len, &width))
        return false;
    bool same = g == 0 || (height == s->height && width == s->width);
    s->height = height;
    s->width = width;
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
    s->row = ranged(s, "row", 0, s->height - 1, 1);
    s->col = ranged(s, "col", 0, s->width - 1, 1);
    const View *result = evaluate(s);
    for (int g = 0; g < s->ngrid; g++)
        cell_value(s, result, g);
    s->refused |= l->failed || nowhere.locals.len > 0;
    s->probing = false;
    *l = outer;
    return !s->refused && (s->padded || s->ry + s->rx == 0);
}

static bool plan(Stream *s, const Expr *expr)
{
    const LowerOptions *options = s->l->options;
    if (!options->lanes || !arith_is_const(expr->num[2], &s->cols) ||
        !arith_is_const(expr->num[3], &s->rows) || s->cols < 1 || s->rows < 1 ||
        s->cols > COLS_MAX || !are_grids(s, expr->type) || !probe(s))
        return false;
    s->lanes = options->lanes;
    s->warps = options->shuffle ? MAX(options->local[0] / s->lanes, 1) : 1;
    s->phases = 2 * s->ry + 1;
    s->halo = (s->steps * s->rx + s->cols - 1) / s->cols * s->cols;
    int64_t own = s->lanes * s->cols - 2 * s->halo;
    if (s->steps < 1 || own < 1 || s->height < s->phases || s->width < 2 * s->rx ||
        s->steps > 64)
        return false;
    s->strips = (s->width + own - 1) / own;
    // Whole iterations: what would be computed anyway is written.
    int64_t delay = 2 * s->steps * s->ry;
    s->rows = MIN(s->rows, s->height);
    s->rows = (s->rows + delay + s->phases - 1) / s->phases * s->phases - delay;
    s->streams = (s->height + s->rows - 1) / s->rows;
    return true;
}

// Exchange between lanes --------------------------------------------------------------

// Own cells of a row, where the other lanes can see them; nothing where they can be asked.
static void publish(Stream *s, int level, int64_t slot)
{
    Lower *l = s->l;
    if (l->options->shuffle)
        return;
    for (int g = 0; g < s->ngrid; g++)
        for (int64_t c = 0; c < s->cols; c++) {
            Stm *store = stm_add(l, ST_STORE);
            store->buffer = s->shared[g];
            store->index = arith_addc(l->ctx, s->lane, c * s->lanes);
            store->value = k_var(l, cell_var(s, level, g, slot, c));
        }
    add_barrier(l);
}

static void unpublish(Stream *s)
{
    if (!s->l->options->shuffle)
        add_barrier(s->l);
}

// Own column c of another lane of a published row; anything if there is no such lane.
static const KExpr *from_lane(Stream *s, int level, int g, int64_t slot, int64_t c,
                              const Arith *lane)
{
    Lower *l = s->l;
    if (l->options->shuffle)
        return k_shuffle(l, k_var(l, cell_var(s, level, g, slot, c)), lane);
    lane = arith_max(l->ctx, lane, arith_const(l->ctx, 0));
    lane = arith_min(l->ctx, lane, arith_const(l->ctx, s->lanes - 1));
    return k_load(l, s->shared[g], arith_addc(l->ctx, lane, c * s->lanes), s->scalar[g]);
}

static void assign(Stream *s, Var *var, const KExpr *value)
{
    Stm *stm = stm_add(s->l, ST_ASSIGN);
    stm->var = var;
    stm->value = value;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return (a - floor_mod(a, b)) / b;
}

// The columns of a row that belong to neighbours.
static void fetch_sides(Stream *s, int level, int64_t slot)
{
    bool any = false;
    for (int g = 0; g < s->ngrid; g++)
        any |= s->beside[g];
    if (!any)
        return;
    publish(s, level, slot);
    for (int g = 0; g < s->ngrid; g++)
        for (int64_t c = -s->rx; s->beside[g] && c < s->cols + s->rx; c++) {
            if (c == 0)
                c = s->cols;
            const Arith *lane = arith_addc(s->l->ctx, s->lane, floor_div(c, s->cols));
            assign(s, cell_var(s, level, g, slot, c),
                   from_lane(s, level, g, slot, floor_mod(c, s->cols), lane));
        }
    unpublish(s);
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

// Column `at`, which is beyond the grid, of a row of all grids. Lanes further out get the
// same: nobody reads them.
static void fix_column(Stream *s, int level, int64_t slot, int64_t at)
{
    Lower *l = s->l;
    int64_t c = floor_mod(at, s->cols);
    const Arith *past = at < 0 ? arith_sub(l->ctx, arith_const(l->ctx, at - c), s->x)
                               : arith_addc(l->ctx, s->x, c - at);
    for (int g = 0; g < s->ngrid; g++) {
        Var *cell = cell_var(s, level, g, slot, c);
        const KExpr *to;
        if (s->mode == PAD_CONSTANT) {
            to = fill_value(s, g);
        } else {
            int64_t source = source_of(s, at, s->width);
            int64_t own = s->lanes - 2 * (s->halo / s->cols); // lanes
            const Arith *lane =
                arith_sub(l->ctx, arith_const(l->ctx, (source + s->halo) / s->cols),
                          arith_mulc(l->ctx, s->strip, own));
            to = from_lane(s, level, g, slot, floor_mod(source, s->cols), lane);
            if (l->options->shuffle)
                to = k_named(l, to, "edge");
        }
        assign(s, cell,
               k_op(l, OP_SELECT, s->scalar[g],
                    (const KExpr *[]){k_cond(l, &past, 1), to, k_var(l, cell)}, 3));
    }
}

static void fix_columns(Stream *s, int level, int64_t slot)
{
    if (!has_border(s) || s->rx == 0)
        return;
    bool exchange = s->mode != PAD_CONSTANT;
    if (exchange)
        publish(s, level, slot);
    for (int64_t j = 0; j < s->rx; j++) {
        fix_column(s, level, slot, -1 - j);
        fix_column(s, level, slot, s->width + j);
    }
    if (exchange)
        unpublish(s);
}

// Row `at`, which is beyond the grid, if it is so many below the newest.
static void fix_row(Stream *s, int level, int64_t at, int64_t from_newest)
{
    int64_t source = s->mode == PAD_CONSTANT ? 0 : source_of(s, at, s->height);
    int64_t to = slot_of(s, from_newest), from = slot_of(s, from_newest + source - at);
    int64_t sides = s->corners && from_newest < 0 ? s->rx : 0;
    for (int g = 0; g < s->ngrid; g++)
        for (int64_t c = -sides; c < s->cols + sides; c++) {
            if ((c < 0 || c >= s->cols) && !s->beside[g])
                continue;
            const KExpr *value = s->mode == PAD_CONSTANT
                                     ? fill_value(s, g)
                                     : k_var(s->l, cell_var(s, level, g, from, c));
            assign(s, cell_var(s, level, g, to, c), value);
        }
}

// Opens an `if` for a row of the grid being the newest of a level; returns where we were.
static Block *open_if_row(Stream *s, const Arith *newest, int64_t row)
{
    Lower *l = s->l;
    Block *here = l->block;
    Stm *branch = stm_add(l, ST_IF);
    const KExpr *arg[] = {k_index(l, newest), k_index(l, arith_const(l->ctx, row))};
    branch->value = k_op(l, OP_EQ, type_scalar(S_BOOL), arg, 2);
    l->block = &branch->body;
    return here;
}

// Rows above the grid are made when the window first has all that they repeat, rows below
// when they come.
static void fix_rows_above(Stream *s, int level, const Arith *newest)
{
    if (!has_border(s) || s->ry == 0)
        return;
    Block *here = open_if_row(s, newest, s->ry);
    for (int64_t j = 1; j <= s->ry; j++)
        fix_row(s, level, -j, -s->ry - j);
    s->l->block = here;
}

static void fix_rows_below(Stream *s, int level, const Arith *newest)
{
    for (int64_t j = 0; has_border(s) && j < s->ry; j++) {
        Block *here = open_if_row(s, newest, s->height + j);
        fix_row(s, level, s->height + j, 0);
        s->l->block = here;
    }
}

// Coordinates -------------------------------------------------------------------------

// A name for an index, with what is known of it.
static const Arith *name_index(Stream *s, const char *name, const Arith *value, int64_t lo,
                               int64_t hi, int64_t multiple)
{
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

// The lane's columns, where they are in the grid.
static void name_columns(Stream *s, const Arith **col, bool inside)
{
    ArithCtx *c = s->l->ctx;
    bool whole = s->width % s->cols == 0; // a lane's columns are all within, or none
    const Arith *first = NULL;
    if (inside)
        first = name_index(s, "col", s->x, s->rx, s->width - s->rx - s->cols, s->cols);
    else if (whole)
        first = name_index(s, "col", within(s, s->x, s->width, s->cols), 0,
                           s->width - s->cols, s->cols);
    for (int64_t k = 0; k < s->cols; k++)
        col[k] = first
                     ? arith_addc(c, first, k)
                     : name_index(s, "col", within(s, arith_addc(c, s->x, k), s->width, 1),
                                  0, s->width - 1, 1);
}

// Code --------------------------------------------------------------------------------

typedef struct {
    Part part;
    const Arith **col;
} Way;

// The row that comes next, into registers of its own, early.
static void load_ahead(Stream *s, const Arith *row, const Way *way)
{
    if (way->part == PART_ANY)
        row = name_index(s, "row", within(s, row, s->height, 1), 0, s->height - 1, 1);
    for (int g = 0; g < s->ngrid; g++)
        for (int64_t c = 0; c < s->cols; c++) {
            const View *from = element(s, grid_of(s, s->from, g), row, way->col[c]);
            int64_t i = g * s->cols + c;
            const KExpr *value = view_read(s->l, from);
            if (s->ahead[i]) {
                assign(s, s->ahead[i], value);
                continue;
            }
            if (!s->nexts[i])
                s->nexts[i] = name_new(s->l, "next");
            s->ahead[i] = declare(s, s->nexts[i], g, value);
        }
}

static void take_ahead(Stream *s)
{
    for (int g = 0; g < s->ngrid; g++)
        for (int64_t c = 0; c < s->cols; c++)
            assign(s, cell_var(s, 0, g, s->phase, c),
                   k_var(s->l, s->ahead[g * s->cols + c]));
}

// Opens an `if` for the cells of the last level that this lane writes.
static void open_writes(Stream *s, const Arith *row, const Way *way)
{
    Lower *l = s->l;
    ArithCtx *c = l->ctx;
    int64_t side = s->halo / s->cols;
    const Arith *from_start = arith_sub(c, row, s->first);
    const Arith *cond[] = {from_start,
                           arith_sub(c, arith_const(c, s->rows - 1), from_start),
                           arith_addc(c, s->lane, -side),
                           arith_sub(c, arith_const(c, s->lanes - side - 1), s->lane),
                           arith_sub(c, arith_const(c, s->width - 1), s->x),
                           arith_sub(c, arith_const(c, s->height - 1), row)};
    const Arith *open[COUNTOF(cond)];
    int n = 0, all = way->part == PART_INSIDE ? 4 : way->part == PART_SIDE ? 5 : 6;
    for (int i = 0; i < all; i++)
        if (!arith_nonneg(c, cond[i]))
            open[n++] = cond[i];
    if (!n)
        return;
    Stm *branch = stm_add(l, ST_IF);
    branch->value = k_cond(l, open, n);
    l->block = &branch->body;
}

// Column k of the lane, where the grid may end within the lane.
static void write_cell(Stream *s, const View *result, const Arith *row, int64_t k,
                       const Way *way)
{
    Lower *l = s->l;
    Block *here = l->block;
    const Arith *x = arith_addc(l->ctx, s->x, k);
    if (k > 0 && way->part != PART_INSIDE && s->width % s->cols != 0) {
        const Arith *left = arith_sub(l->ctx, arith_const(l->ctx, s->width - 1), x);
        Stm *branch = stm_add(l, ST_IF);
        branch->value = k_cond(l, &left, 1);
        l->block = &branch->body;
    }
    for (int g = 0; g < s->ngrid; g++) {
        const View *to = element(s, grid_of(s, s->to, g), row, x);
        gen_copy(l, view_value(l, cell_value(s, result, g)), to);
    }
    l->block = here;
}

// One new row of the level after `level`.
static void next_level(Stream *s, const Arith *newest, const Way *way)
{
    Lower *l = s->l;
    int level = s->level;
    const Arith *row = arith_addc(l->ctx, newest, -s->ry);
    if (way->part == PART_ANY)
        fix_rows_below(s, level, newest);
    fetch_sides(s, level, slot_of(s, s->corners ? 0 : -s->ry));
    if (way->part == PART_ANY)
        fix_rows_above(s, level, newest);
    Block *here = l->block;
    bool last = level + 1 == s->steps;
    if (last)
        open_writes(s, row, way);
    s->row = row;
    if (way->part == PART_ANY)
        s->row = name_index(s, "row", within(s, row, s->height, 1), 0, s->height - 1, 1);
    const View *result = evaluate(s);
    for (s->c = 0; s->c < s->cols; s->c++) {
        s->col = way->col[s->c];
        for (int g = 0; g < s->ngrid && !last; g++)
            assign(s, cell_var(s, level + 1, g, s->phase, s->c), cell_value(s, result, g));
        if (last)
            write_cell(s, result, row, s->c, way);
    }
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
        for (s->level = 0; s->level < s->steps; s->level++)
            next_level(s, arith_addc(s->l->ctx, newest, -s->level * s->ry), way);
    }
}

// Opens an `if` that all lanes of a warp agree on; returns it.
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
    return (s->steps + 1) * s->ry;
}

static int64_t last_inside(const Stream *s)
{
    return s->height - 1 - s->phases;
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
        Way side = {PART_SIDE, way->col};
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
    int64_t delay = s->steps * s->ry, times = (s->rows + 2 * delay) / s->phases;
    const Arith *col[COLS_MAX], *above = arith_addc(c, s->first, -delay);
    Way way = {part, col};
    memset(s->cell, 0, (size_t)s->ncell * sizeof(Var *));
    memset(s->ahead, 0, (size_t)(s->ngrid * s->cols) * sizeof(Var *));
    name_columns(s, col, inside);
    load_ahead(s, above, &way);
    s->top = l->block;
    Stm *loop = NEW(l->arena, Stm);
    *loop = (Stm){.kind = ST_FOR, .loop = LOOP_SEQ, .extent = arith_const(c, times)};
    loop->iter = ranged(s, name_new(l, "i"), 0, MAX(times - 1, 1), 1);
    l->block = &loop->body;
    const Arith *y =
        name_index(s, "y", arith_add(c, above, arith_mulc(c, loop->iter, s->phases)),
                   inside ? first_inside(s) : -delay,
                   inside ? last_inside(s) : s->height + s->rows + delay, 1);
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

// Most warps are nowhere near the border: they have a loop of their own, so that what the
// others need costs them neither registers nor branches (an H200, 5 points: 3.0 against 2.1
// T points/s).
static void gen_ways(Stream *s)
{
    Lower *l = s->l;
    ArithCtx *c = l->ctx;
    Block *here = l->block;
    int64_t across = s->lanes * s->cols, delay = s->steps * s->ry;
    int64_t last_x = s->width - s->rx - across, first_y = first_inside(s) + delay,
            last_y = s->height - 1 - s->rows - delay;
    s->strip = last_first(s, "strip", s->strip, s->strips);
    s->stream = last_first(s, "stream", s->stream, s->streams);
    s->first = arith_mulc(c, s->stream, s->rows);
    s->start = arith_addc(c, arith_mulc(c, s->strip, across - 2 * s->halo), -s->halo);
    s->x = name_index(s, "x", arith_add(c, s->start, arith_mulc(c, s->lane, s->cols)),
                      -s->halo, s->width + across, s->cols);
    if (l->options->shuffle && s->rx <= last_x && first_y <= last_y) {
        const Arith *cond[] = {arith_addc(c, s->start, -s->rx),
                               arith_sub(c, arith_const(c, last_x), s->start),
                               arith_addc(c, s->first, -first_y),
                               arith_sub(c, arith_const(c, last_y), s->first)};
        Stm *branch = open_choice(s, cond, COUNTOF(cond));
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
    if (s->warps > 1) {
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

static void in_strips(Lower *l, void *user, const Arith *group)
{
    Stream *s = user;
    s->strip = group;
    gen_loop(l, LOOP_LCL, 0, false, arith_const(l->ctx, s->warps * s->lanes), in_lane, s);
}

static void in_stream(Lower *l, void *user, const Arith *stream)
{
    Stream *s = user;
    int64_t groups = (s->strips + s->warps - 1) / s->warps;
    s->stream = stream;
    gen_loop(l, LOOP_WRG, 0, false, arith_const(l->ctx, groups), in_strips, s);
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

void gen_stream(Lower *l, const Expr *expr, const Env *env, int64_t steps, const View *from,
                const View *to)
{
    Stream s = {.l = l, .f = expr->fun, .env = env, .from = from, .to = to, .steps = steps};
    if (l->failed || !plan(&s, expr))
        return;
    ArithCtx *c = l->ctx;
    int64_t local = s.warps * s.lanes;
    int64_t cells = s.steps * s.ngrid * s.phases * (s.cols + 2 * s.rx);
    s.ncell = cells;
    s.cell = NEW_ARRAY(l->arena, Var *, cells);
    s.names = NEW_ARRAY(l->arena, const char *, cells);
    s.nexts = NEW_ARRAY(l->arena, const char *, s.ngrid *s.cols);
    s.ahead = NEW_ARRAY(l->arena, Var *, s.ngrid * s.cols);
    kernel_begin(l, expr);
    Kernel *kernel = l->kernel;
    memcpy(kernel->local, (int64_t[]){local, 1, 1}, sizeof kernel->local);
    kernel->global[0] = arith_const(c, (s.strips + s.warps - 1) / s.warps * local);
    kernel->global[1] = arith_const(c, s.streams);
    kernel->global[2] = arith_const(c, 1);
    kernel->resident = l->options->warps / s.warps;
    for (int g = 0; g < s.ngrid && !l->options->shuffle; g++) {
        const Type *type =
            type_array(l->arena, arith_const(c, s.lanes * s.cols), s.scalar[g]);
        s.shared[g] = buffers_new(l, type, MEM_LOCAL, ROLE_TEMP, 0, "shared")->buffer;
    }
    gen_loop(l, LOOP_WRG, 1, false, arith_const(c, s.streams), in_stream, &s);
    kernel_end(l);
}
