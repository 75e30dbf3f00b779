// SPDX-License-Identifier: Apache-2.0
//
// When a stream computes which row, how many rows it keeps, and how it covers the grid.
//
//   method  Each array after each step is a field. A row of a field is computed as soon as
//           the rows are there that it reads: so many iterations after the newest row of
//           the input, its delay. A row is kept for as long as somebody reads it. What is
//           copied from one step to the next is not kept twice: the older of two time
//           levels is the newer one of the step before.

#include "lower/stream.h"

Field *stream_field(const Stream *s, int64_t step, int grid)
{
    Field *field = &s->field[step * s->ngrid + grid];
    while (field->same >= 0)
        field = &s->field[field->same];
    return field;
}

Field *stream_computed(const Stream *s, int64_t step, int i)
{
    int stages = s->ngrid - s->nstate;
    return i < stages ? &s->field[step * s->ngrid + s->nstate + i]
                      : &s->field[(step + 1) * s->ngrid + i - stages];
}

static void make_fields(Stream *s)
{
    s->nfield = (int)(s->steps + 1) * s->ngrid;
    s->field = NEW_ARRAY(s->l->arena, Field, s->nfield);
    for (int i = 0; i < s->nfield; i++) {
        int step = i / s->ngrid, grid = i % s->ngrid;
        const Grid *from = &s->grid[grid];
        s->field[i] = (Field){.step = step, .grid = grid, .same = -1, .age = -1};
        bool copied = grid < s->nstate ? step > 0 && from->same >= 0 : from->same >= 0;
        if (copied)
            s->field[i].same = (step - (grid < s->nstate)) * s->ngrid + from->same;
    }
    for (int g = 0; g < s->nstate; g++)
        stream_field(s, s->steps, g)->used = true;
}

// What a field's cells read, of all that are computed; true: it is computed and wanted.
static bool is_wanted(const Stream *s, const Field *field)
{
    bool state = field->grid < s->nstate;
    return field->used && field->same < 0 &&
           (state ? field->step > 0 : field->step < s->steps);
}

typedef struct {
    Field *from;
    const int64_t *off;
} Taken;

static Taken source(const Stream *s, const Field *reader, int i)
{
    const Read *read = &s->grid[reader->grid].reads.at[i];
    return (Taken){stream_field(s, reader->step - (reader->grid < s->nstate), read->grid),
                   read->off};
}

static int sources(const Stream *s, const Field *reader)
{
    return s->grid[reader->grid].reads.len;
}

// From the last step to the first: who is read, and how far beyond what is written.
static void mark_used(Stream *s, Field *reader)
{
    for (int i = 0; is_wanted(s, reader) && i < sources(s, reader); i++) {
        Taken read = source(s, reader, i);
        Field *from = read.from;
        from->used = true;
        for (int d = 0; d < s->dims; d++) {
            from->lo[d] = MAX(from->lo[d], -read.off[d]);
            from->hi[d] = MAX(from->hi[d], read.off[d]);
            from->beyond[0][d] =
                MAX(from->beyond[0][d], reader->beyond[0][d] - read.off[d]);
            from->beyond[1][d] =
                MAX(from->beyond[1][d], reader->beyond[1][d] + read.off[d]);
        }
        from->diagonal |= s->dims == 3 && read.off[1] && read.off[2];
    }
}

static void delay_reader(Stream *s, Field *reader)
{
    for (int i = 0; is_wanted(s, reader) && i < sources(s, reader); i++) {
        Taken read = source(s, reader, i);
        reader->delay = MAX(reader->delay, read.from->delay + read.off[0]);
    }
}

static void keep_rows(Stream *s, const Field *reader)
{
    for (int i = 0; is_wanted(s, reader) && i < sources(s, reader); i++) {
        Taken read = source(s, reader, i);
        Field *from = read.from;
        int64_t age = reader->delay - read.off[0] - from->delay;
        bool row = s->dims == 3 && read.off[1], column = read.off[s->dims - 1];
        from->depth = MAX(from->depth, age + 1);
        if (!row && !column)
            continue;
        from->age = from->age < 0 ? age : MIN(from->age, age);
        from->oldest = MAX(from->oldest, age);
        from->shared |= !s->in_rows && (row || !s->l->options->shuffle);
    }
}

// Rows of the input are not read before they are wanted.
static void delay_inputs(Stream *s)
{
    int64_t *most = NEW_ARRAY(s->l->arena, int64_t, s->ngrid);
    for (int g = 0; g < s->nstate; g++)
        most[g] = INT64_MAX;
    ARRAY_EACH_REF(const Field *, reader, s->field, s->nfield)
        for (int i = 0; is_wanted(s, reader) && i < sources(s, reader); i++) {
            Taken read = source(s, reader, i);
            if (is_input(s, read.from))
                most[read.from->grid] =
                    MIN(most[read.from->grid], reader->delay - read.off[0]);
        }
    for (int g = 0; g < s->nstate; g++)
        s->field[g].delay = most[g] == INT64_MAX ? 0 : MAX(most[g], 0);
}

void stream_schedule(Stream *s)
{
    make_fields(s);
    for (int64_t t = s->steps - 1; t >= 0; t--)
        for (int i = s->ngrid - 1; i >= 0; i--)
            mark_used(s, stream_computed(s, t, i));
    for (int64_t t = 0; t < s->steps; t++)
        for (int i = 0; i < s->ngrid; i++)
            delay_reader(s, stream_computed(s, t, i));
    delay_inputs(s);
    for (int i = 0; i < s->nfield; i++)
        keep_rows(s, &s->field[i]);
    s->phases = 1;
    s->above = s->delay = 0;
    ARRAY_EACH_REF(const Field *, field, s->field, s->nfield) {
        if (!field->used || field->same >= 0)
            continue;
        s->phases = MAX(s->phases, field->depth);
        s->above = MAX(s->above, field->beyond[0][0] - field->delay);
        s->delay = MAX(s->delay, field->delay);
    }
    s->after = s->delay;
    s->behind = 0;
    if (s->relay > 1)
        relay_plan(s);
}

// The most cells beyond those written, along an axis, that must be right.
static int64_t most_beyond(const Stream *s, int axis)
{
    int64_t most = 0;
    for (int g = 0; g < s->nstate; g++)
        for (int side = 0; side < 2; side++)
            most = MAX(most, s->field[g].beyond[side][axis]);
    return most * s->relay;
}

// Columns of a strip at each end that are not written: at least so many, and more where
// that makes no further strip. Then fewer strips are near the border, and strips begin at
// multiples of what memory moves at once. (H200, star of 5 in float, 24 steps, 16 columns
// a lane, 11616 columns: the last strip wrote 16, the one before it was at the border,
// too.)
static int64_t widest_halo(const Stream *s, int64_t least)
{
    enum { ALIGNED = 32 };
    const int64_t across = s->lanes * s->cols, width = width_of(s);
    const int64_t strips = ceil_div(width, across - 2 * least);
    const int64_t step = s->relay == 1 ? s->cols : 1;
    int64_t best = least, fewest = INT64_MAX;
    for (int64_t halo = least; 2 * halo < across; halo += step) {
        const int64_t own = across - 2 * halo;
        if (ceil_div(width, own) > strips)
            break;
        const int64_t inside = (width - across + halo) / own; // but for the first
        int64_t cost = (strips - MIN(MAX(inside, 0), strips)) * ALIGNED;
        for (int64_t a = ALIGNED; halo % a || own % a; a /= 2)
            cost++;
        if (cost < fewest) {
            fewest = cost;
            best = halo;
        }
    }
    return best;
}

// Strips of warps side by side, or, in three dimensions, tiles of warps one below another.
// Whole iterations: what would be computed anyway is written.
bool stream_tiles(Stream *s)
{
    s->halo = most_beyond(s, s->dims - 1);
    if (s->relay == 1 && !s->in_rows) // a lane writes all its columns or none
        s->halo = ceil_div(s->halo, s->cols) * s->cols;
    if (!s->in_rows && 2 * s->halo < s->lanes * s->cols)
        s->halo = widest_halo(s, s->halo);
    for (int64_t a = s->cols, b = s->halo; a; a = b % a, b = s->grain)
        s->grain = a;
    s->border = s->dims == 3 ? most_beyond(s, 1) : 0;
    int64_t own = s->lanes * s->cols - 2 * s->halo;
    int64_t lines = s->dims == 3 ? s->warps * s->jam - 2 * s->border : 1;
    int64_t height = s->dims == 3 ? s->size[1] : 1;
    if (own < 1 || lines < 1)
        return false;
    s->strips = ceil_div(width_of(s), own);
    s->tiles = ceil_div(height, lines);
    int64_t around = s->above + s->after;
    s->streams = ceil_div(s->size[0], s->rows); // of the same length
    s->rows = ceil_div(s->size[0], s->streams);
    s->times = ceil_div(s->rows + around, s->phases);
    s->rows = s->times * s->phases - around;
    s->streams = ceil_div(s->size[0], s->rows);
    return true;
}
