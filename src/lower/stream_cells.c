// SPDX-License-Identifier: Apache-2.0
//
// The cells of a stream: variables of its windows, and what lanes give each other.
//
//   method  Columns beyond a lane's own come from its neighbours by shuffles, or through
//           local memory where there are none. In three dimensions a lane has rows too,
//           and warps lie one below another: the first and last rows of each go through
//           local memory. Of what is read some iterations after it was computed (a star
//           reads neighbours of the middle plane only) all fields are published together,
//           at the beginning of an iteration; what is read at once has a barrier of its
//           own. In local memory lines of all lanes follow each other, and lines of all
//           warps, with room around them: a neighbour's cell is where one's own would be if
//           there were more of them.

#include "lower/stream.h"

// Cells -------------------------------------------------------------------------------

// l1, 0, r1: before, of and after one's own.
static const char *place_name(Arena *arena, int64_t at, int64_t own, char before,
                              char after)
{
    return at < 0      ? arena_printf(arena, "%c%d", before, (int)-at)
           : at >= own ? arena_printf(arena, "%c%d", after, (int)(at - own + 1))
                       : arena_printf(arena, "%d", (int)at);
}

static const char *cell_name(Stream *s, const Field *field, int64_t slot, int64_t j,
                             int64_t c)
{
    Arena *a = s->l->arena;
    const char *row =
        s->dims == 3 ? arena_printf(a, "%s_", place_name(a, j, s->jam, 'a', 'b')) : "";
    const char *letter = s->ngrid == 1      ? ""
                         : field->grid < 26 ? arena_printf(a, "%c", 'a' + field->grid)
                                            : arena_printf(a, "z%d", field->grid);
    return name_new(s->l, arena_printf(a, "v%d%s_%d_%s%s", field->step, letter, (int)slot,
                                       row, place_name(a, c, s->cols, 'l', 'r')));
}

Var *stream_declare(Stream *s, const char *name, int grid, const KExpr *value)
{
    Stm *decl = stm_add(s->l, ST_DECL);
    decl->var = NEW(s->l->arena, Var);
    *decl->var = (Var){name, s->grid[grid].scalar, false};
    decl->value = value;
    return decl->var;
}

Var *cell_var(Stream *s, const Field *field, int64_t age, int64_t j, int64_t c)
{
    int64_t across = s->cols + 2 * reach_x(s), along = s->jam + 2 * reach_y(s);
    int64_t slot = floor_mod(s->phase - age, s->phases);
    int64_t i = (field - s->field) * s->phases + slot;
    i = (i * along + j + reach_y(s)) * across + c + reach_x(s);
    if (s->cell[i])
        return s->cell[i];
    if (!s->names[i])
        s->names[i] = cell_name(s, field, slot, j, c);
    Block *here = s->l->block;
    s->l->block = s->top;
    s->cell[i] = stream_declare(s, s->names[i], field->grid,
                                k_literal(s->l, 0, s->grid[field->grid].scalar));
    s->l->block = here;
    return s->cell[i];
}

// Local memory ----------------------------------------------------------------------------

static int64_t ceil_to(int64_t a, int64_t b)
{
    return ceil_div(a, b) * b;
}

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

// Warps and columns around those that there are, which nobody fills.
static int64_t warps_around(const Stream *s)
{
    return ceil_to(reach_y(s), s->jam) / s->jam;
}

static int64_t columns_around(const Stream *s)
{
    return ceil_to(reach_x(s), s->cols);
}

// Barriers of an iteration.
static int barriers(const Stream *s)
{
    int n = 0, last = -1;
    bool older = false;
    ARRAY_EACH_REF(const Field *, field, s->field, s->nfield) {
        if (!field->shared)
            continue;
        older |= field->age > 0;
        bool stage = field->grid >= s->nstate;
        if (field->age == 0 && (stage || last != field->step))
            n++;
        if (field->age == 0)
            last = stage ? -1 : field->step;
    }
    return n + older;
}

// Where an iteration has one barrier, the next one publishes elsewhere; else what it
// overwrites has been read before the last barrier.
static int64_t copies(const Stream *s)
{
    return barriers(s) == 1 ? 2 : 1;
}

void make_shared(Stream *s)
{
    Lower *l = s->l;
    int64_t warps = (s->dims == 3 ? s->warps : 1) + 2 * warps_around(s);
    int64_t cells = warps * rows_kept(s) * s->lanes * s->cols + 2 * columns_around(s);
    s->line = cells;
    ARRAY_EACH_REF(Field *, field, s->field, s->nfield) {
        if (!field->shared)
            continue;
        const Type *type = type_array(l->arena, arith_const(l->ctx, copies(s) * cells),
                                      s->grid[field->grid].scalar);
        field->buffer = buffers_new(l, type, MEM_LOCAL, ROLE_TEMP, 0, "shared")->buffer;
    }
}

// Where column c of row j, of one's own or beyond them, is in local memory. A lane's
// columns are neighbours, so that they move as vectors.
static const Arith *shared_index(Stream *s, int64_t j, int64_t c)
{
    ArithCtx *a = s->l->ctx;
    int64_t row = floor_mod(j, s->jam), up = (j - row) / s->jam + warps_around(s);
    const Arith *line = arith_const(a, up * rows_kept(s) + kept_row(s, row));
    if (s->dims == 3)
        line = arith_add(a, line, arith_mulc(a, s->warp, rows_kept(s)));
    line = arith_add(a, arith_mulc(a, line, s->lanes), s->lane);
    line = arith_addc(a, arith_mulc(a, line, s->cols), c + columns_around(s));
    const Arith *turn = arith_addc(a, arith_mulc(a, s->turn, s->phases), s->phase);
    turn = arith_mod(a, turn, arith_const(a, copies(s)));
    return arith_add(a, line, arith_mulc(a, turn, s->line));
}

static void publish(Stream *s, const Field *field)
{
    Lower *l = s->l;
    for (int64_t j = 0; j < s->jam; j++)
        for (int64_t c = 0; c < s->cols && kept_row(s, j) >= 0; c++) {
            const KExpr *value = k_var(l, cell_var(s, field, field->age, j, c));
            add_store(l, field->buffer, shared_index(s, j, c), value);
        }
}

// Fetching ----------------------------------------------------------------------------

static const KExpr *shuffled(Stream *s, const Field *field, int64_t j, int64_t c)
{
    int64_t own = floor_mod(c, s->cols);
    const Arith *lane = arith_addc(s->l->ctx, s->lane, (c - own) / s->cols);
    return k_shuffle(s->l, k_var(s->l, cell_var(s, field, field->age, j, own)), lane);
}

// Cells that are not the lane's own: through local memory or by shuffles.
static void fetch(Stream *s, const Field *field, bool shared)
{
    Lower *l = s->l;
    int x = s->dims - 1;
    int64_t up = s->dims == 3 ? field->lo[1] : 0, down = s->dims == 3 ? field->hi[1] : 0;
    for (int64_t j = -up; j < s->jam + down; j++) {
        bool line = j < 0 || j >= s->jam;
        int64_t lo = line && !field->diagonal ? 0 : field->lo[x];
        int64_t hi = line && !field->diagonal ? 0 : field->hi[x];
        for (int64_t c = -lo; c < s->cols + hi; c++) {
            bool column = c < 0 || c >= s->cols;
            bool from_memory = line || (column && !l->options->shuffle);
            if ((!line && !column) || from_memory != shared)
                continue;
            const Type *type = s->grid[field->grid].scalar;
            const KExpr *value = shared
                                     ? k_load(l, field->buffer, shared_index(s, j, c), type)
                                     : shuffled(s, field, j, c);
            add_assign(s->l, cell_var(s, field, field->age, j, c), value);
        }
    }
}

static void exchange(Stream *s, Field *const *field, int n)
{
    int shared = 0;
    for (int i = 0; i < n; i++)
        if (field[i]->shared) {
            publish(s, field[i]);
            shared++;
        }
    if (shared)
        add_barrier(s->l);
    for (int i = 0; i < n; i++)
        if (field[i]->shared)
            fetch(s, field[i], true);
}

void exchange_older(Stream *s)
{
    Field **older = NEW_ARRAY(s->l->arena, Field *, s->nfield);
    int n = 0;
    for (int i = 0; i < s->nfield; i++) {
        s->field[i].fetched = false;
        if (s->field[i].shared && s->field[i].age > 0)
            older[n++] = &s->field[i];
    }
    exchange(s, older, n);
}

void exchange_new(Stream *s, Field *const *field, int n)
{
    Field **now = NEW_ARRAY(s->l->arena, Field *, n);
    int count = 0;
    for (int i = 0; i < n; i++)
        if (field[i]->shared && field[i]->age == 0)
            now[count++] = field[i];
    exchange(s, now, count);
}

void fetch_sources(Stream *s, const Field *reader)
{
    const Grid *grid = &s->grid[reader->grid];
    for (int i = 0; i < grid->reads.len; i++) {
        Field *from = stream_field(s, reader->step - (reader->grid < s->nstate),
                                   grid->reads.at[i].grid);
        if (from->age < 0 || from->fetched)
            continue;
        from->fetched = true;
        if (s->l->options->shuffle)
            fetch(s, from, false);
    }
}
