// SPDX-License-Identifier: Apache-2.0
//
// Parameters of iterated stencils: how many steps a kernel does (fuse), outputs a lane
// along x (cols), and rows, or planes, that a group walks along (rows); with shuffles, how
// many warps a multiprocessor is to hold (warps). In three dimensions ly is the warps of a
// group, one below another, and by the rows of a lane. A point that does one step at a time
// has the parameters of a single sweep, and the others not, and the reverse.

#include "derive/derive_parts.h"

#include <string.h>

// 32-bit registers of windows that leave room for the rest: a 5-point stencil of 10 steps
// and 4 columns has 80, is compiled to 128, and is the fastest on an H200; with 128 of
// them, at 16 steps and 4 columns, most shapes spill.
enum { WINDOW_REGISTERS = 128, ROWS_LEAST = 64 };

void note_stencil(Shape *shape, const Expr *iterate)
{
    Stencil found;
    if (!iterates_stencil(iterate, &found))
        return;
    Stencil *s = &shape->stencil;
    if (s->count && s->dims != found.dims)
        found.count = 1; // no parameters fit both
    s->count = s->count ? MIN(s->count, found.count) : found.count;
    s->dims = found.dims;
    s->bytes = MAX(s->bytes, found.bytes);
    for (int d = 0; d < found.dims; d++)
        s->reach[d] = MAX(s->reach[d], found.reach[d]);
}

static void add_steps(Derivation *d)
{
    static const int64_t steps[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16};
    int n = 0;
    while (n < COUNTOF(steps) && steps[n] <= d->shape.stencil.count)
        n++;
    space_add_ints(d->space, "fuse", steps, n);
}

// On a CPU, where lanes meet at barriers, streams are slow, and take minutes to compile.
bool has_stream(const Derivation *d)
{
    return d->shape.stencil.count > 1 && d->device.lanes > 0 && !d->device.is_cpu &&
           d->shape.dims == d->shape.stencil.dims && d->shape.rectangular;
}

static void constrain(Derivation *d, Diags *diags, const char *format, ...) FW_PRINTF(3, 4);

static void constrain(Derivation *d, Diags *diags, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    space_constrain(d->space, arena_vprintf(diags->arena, format, args), diags);
    va_end(args);
}

static bool is_deep(const Derivation *d)
{
    return d->shape.stencil.dims == 3;
}

// The parameters of a single sweep stay as they are where several steps are done.
static void constrain_sweeps(Derivation *d, Diags *diags)
{
    static const char *const param[][2] = {{"ly", "1"}, // in two dimensions
                                           {"by", "1"},
                                           {"lz", "1"},
                                           {"bz", "1"},
                                           {"cz", "1"},
                                           {"walk", "1"},
                                           {"bx", "1"},
                                           {"cx", "1"},
                                           {"cy", "1"},
                                           {"vec", "1"},
                                           {"scheme", "'global'"},
                                           {"border", "'inline'"},
                                           {"inner", "'loop'"}};
    for (int i = is_deep(d) ? 2 : 0; i < COUNTOF(param); i++)
        if (space_find(d->space, param[i][0]) >= 0)
            constrain(d, diags, "fuse == 1 or %s == %s", param[i][0], param[i][1]);
    if (space_find(d->space, "cover") >= 0)
        constrain(d, diags, "fuse == 1 or cover == '%s'",
                  cover_single(d) ? cover_single(d) : "");
    constrain(d, diags, "fuse > 1 or cols == 1 and rows == %d%s", ROWS_LEAST,
              d->device.shuffle ? " and warps == 8" : "");
}

// Rows of a lane and warps that meet in local memory: two rows at each end of a warp, or
// all where columns are exchanged there too.
static void constrain_tiles(Derivation *d, Diags *diags)
{
    const Stencil *s = &d->shape.stencil;
    long long line = d->device.lanes * s->bytes, reach = s->reach[1];
    constrain(d, diags, "fuse == 1 or fuse * %lld <= ly * by", 4 * reach);
    constrain(d, diags, "fuse == 1 or by >= %lld", reach);
    if (d->device.shuffle) {
        constrain(d, diags, "fuse == 1 or warps %% ly == 0");
        constrain(d, diags, "fuse == 1 or fuse * ly * cols * %lld <= %lld",
                  2 * reach * line, (long long)d->device.local_bytes);
    } else {
        constrain(d, diags, "fuse == 1 or (fuse + 1) * ly * by * cols * %lld <= %lld", line,
                  (long long)d->device.local_bytes);
    }
}

void add_stream_params(Derivation *d, Diags *diags)
{
    const Stencil *s = &d->shape.stencil;
    add_steps(d);
    space_add_ints(d->space, "cols", (const int64_t[]){1, 2, 4, 8}, 4);
    space_add_ints(
        d->space, "rows",
        (const int64_t[]){ROWS_LEAST, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1280},
        is_deep(d) ? 7 : 11);
    // Registers that a compiler may use: 8 warps leave 255 each, 16 leave 128. Of 12 shapes
    // of a 5-point stencil on an H200, 20 warps made one 1.3 times as fast, and three
    // slower.
    if (d->device.shuffle)
        space_add_ints(d->space, "warps", (const int64_t[]){8, 12, 16, 20, 24, 32}, 6);
    constrain_sweeps(d, diags);
    constrain(d, diags,
              d->device.shuffle && !is_deep(d) ? "fuse == 1 or lx >= %d"
                                               : "fuse == 1 or lx == %d",
              d->device.lanes);
    int64_t words = 2 * s->reach[0] * s->bytes; // of a window, times 4
    constrain(d, diags, "fuse == 1 or fuse * cols%s * %lld <= %d",
              is_deep(d) ? " * by" : "", (long long)MAX(words, 4), 4 * WINDOW_REGISTERS);
    // At least half of a strip is written.
    constrain(d, diags, "fuse == 1 or fuse * %lld <= cols * %d",
              (long long)(4 * s->reach[s->dims - 1]), d->device.lanes);
    if (is_deep(d))
        constrain_tiles(d, diags);
}

// What is often among the fastest, for a GPU; and for grids in three dimensions what fits
// in registers and leaves the fewest instructions a cell, by their count: lx, fuse, cols,
// rows, warps, ly, by.
enum { STREAM_STARTS = 8 };
static const int64_t starts[][STREAM_STARTS][7] = {{{32, 10, 4, 256, 16, 1, 1},
                                                    {32, 8, 4, 256, 16, 1, 1},
                                                    {32, 8, 4, 256, 12, 1, 1},
                                                    {32, 6, 4, 256, 16, 1, 1},
                                                    {32, 12, 4, 256, 12, 1, 1},
                                                    {32, 6, 4, 256, 20, 1, 1},
                                                    {32, 5, 4, 256, 20, 1, 1},
                                                    {32, 8, 4, 128, 16, 1, 1}},
                                                   {{32, 2, 4, 128, 16, 16, 2},
                                                    {32, 3, 4, 128, 16, 16, 2},
                                                    {32, 3, 4, 128, 8, 8, 4},
                                                    {32, 2, 4, 128, 16, 8, 4},
                                                    {32, 2, 4, 128, 16, 8, 2},
                                                    {32, 2, 1, 128, 16, 16, 4},
                                                    {32, 2, 2, 128, 16, 16, 2},
                                                    {32, 2, 4, 64, 16, 16, 2}}};

int stream_starts(const Derivation *d)
{
    return has_stream(d) ? STREAM_STARTS : 0;
}

void stream_start(const Derivation *d, int i, Point *point)
{
    static const char *const name[] = {"lx", "fuse", "cols", "rows", "warps", "ly", "by"};
    for (int k = 0; k < COUNTOF(name); k++)
        set_number(d, point, name[k], starts[is_deep(d)][i][k]);
}
