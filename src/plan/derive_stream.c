// SPDX-License-Identifier: Apache-2.0
//
// Parameters of iterated stencils: how many steps a kernel does (fuse), outputs a lane
// along x (cols), and rows that a group walks along (rows); with shuffles, how many warps a
// multiprocessor is to hold (warps). A point that does one step at a time has the
// parameters of a single sweep, and the others not, and the reverse.

#include "plan/derive_parts.h"

#include <string.h>

// 32-bit registers of windows that leave room for the rest: a 5-point stencil of 10 steps
// and 4 columns has 80, is compiled to 128, and is the fastest on an H200; with 128 of
// them, at 16 steps and 4 columns, most shapes spill.
enum { WINDOW_REGISTERS = 128 };

void note_stencil(Shape *shape, const Expr *iterate)
{
    Stencil found;
    if (!iterates_stencil(iterate, &found))
        return;
    Stencil *s = &shape->stencil;
    s->count = s->count ? MIN(s->count, found.count) : found.count;
    s->bytes = MAX(s->bytes, found.bytes);
    for (int d = 0; d < 2; d++)
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
    return d->shape.stencil.count > 1 && d->device.lanes > 0 && !d->device.is_cpu;
}

static void constrain(Derivation *d, Diags *diags, const char *format, ...) FW_PRINTF(3, 4);

static void constrain(Derivation *d, Diags *diags, const char *format, ...)
{
    Buf text;
    va_list args;
    buf_init(&text);
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    space_constrain(d->space, text.text, diags);
    buf_release(&text);
}

// The parameters of a single sweep stay as they are where several steps are done.
static void constrain_sweeps(Derivation *d, Diags *diags)
{
    static const char *const param[][2] = {{"ly", "1"},
                                           {"walk", "1"},
                                           {"bx", "1"},
                                           {"by", "1"},
                                           {"cx", "1"},
                                           {"cy", "1"},
                                           {"vec", "1"},
                                           {"scheme", "'global'"},
                                           {"border", "'inline'"},
                                           {"inner", "'loop'"},
                                           {"stages", "'fused'"}};
    for (int i = 0; i < COUNTOF(param); i++)
        if (space_find(d->space, param[i][0]) >= 0)
            constrain(d, diags, "fuse == 1 or %s == %s", param[i][0], param[i][1]);
    constrain(d, diags, "fuse > 1 or cols == 1 and rows == 64%s",
              d->device.shuffle ? " and warps == 8" : "");
}

void add_stream_params(Derivation *d, Diags *diags)
{
    const Stencil *s = &d->shape.stencil;
    add_steps(d);
    space_add_ints(d->space, "cols", (const int64_t[]){1, 2, 4, 8}, 4);
    space_add_ints(
        d->space, "rows",
        (const int64_t[]){64, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1280}, 11);
    // Registers that a compiler may use: 8 warps leave 255 each, 16 leave 128. Of 12 shapes
    // of a 5-point stencil on an H200, 20 warps made one 1.3 times as fast, and three
    // slower.
    if (d->device.shuffle)
        space_add_ints(d->space, "warps", (const int64_t[]){8, 12, 16, 20, 24, 32}, 6);
    constrain_sweeps(d, diags);
    constrain(d, diags,
              d->device.shuffle ? "fuse == 1 or lx >= %d" : "fuse == 1 or lx == %d",
              d->device.lanes);
    int64_t words = 2 * s->reach[0] * s->bytes; // of a window, times 4
    constrain(d, diags, "fuse == 1 or fuse * cols * %lld <= %d", (long long)MAX(words, 4),
              4 * WINDOW_REGISTERS);
    // At least half of a strip is written.
    constrain(d, diags, "fuse == 1 or fuse * %lld <= cols * %d",
              (long long)(4 * s->reach[1]), d->device.lanes);
}

// What is often among the fastest, for a GPU: lx, fuse, cols, rows, warps.
static const int64_t starts[][5] = {
    {32, 10, 4, 256, 16}, {32, 8, 4, 256, 16}, {32, 8, 4, 256, 12}, {32, 6, 4, 256, 16},
    {32, 12, 4, 256, 12}, {32, 6, 4, 256, 20}, {32, 8, 2, 256, 32}, {32, 8, 4, 128, 16}};

int stream_starts(const Derivation *d)
{
    return has_stream(d) ? COUNTOF(starts) : 0;
}

void stream_start(const Derivation *d, int i, Point *point)
{
    static const char *const name[] = {"lx", "fuse", "cols", "rows", "warps"};
    for (int k = 0; k < COUNTOF(name); k++) {
        char text[32];
        snprintf(text, sizeof text, "%lld", (long long)starts[i][k]);
        space_set(d->space, point, name[k], text);
    }
}
