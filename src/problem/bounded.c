// SPDX-License-Identifier: Apache-2.0
//
// Buffers of numbers with bounds, as the plain kernel in C++ writes them: each element is a
// pair, a value and how far a right kernel may be from it (of what is exact: whether it
// is in doubt).

#include "problem/pass.h"

#include <float.h>
#include <math.h>
#include <string.h>

static Scalar scalar_of_pairs(Scalar scalar)
{
    return scalar_is_short(scalar) ? S_FLOAT : scalar;
}

// Integers and truth values as they are: a double does not hold all integers of 8 bytes.
static void spread_exact(const RefPass *pass, int64_t at, int64_t n)
{
    const size_t size = scalar_device_bytes(pass->buffer->scalar);
    const char *from = (const char *)pass->buffer->init + (size_t)at * size;
    char *to = pass->to + (size_t)at * 2 * size;
    for (int64_t k = 0; k < n; k++, from += size, to += 2 * size) {
        memcpy(to, from, size);
        memset(to + size, 0, size);
    }
}

static void spread_chunk(const RefPass *pass, int64_t at, int64_t n, Found *found)
{
    if (!scalar_info[pass->buffer->scalar].floating) {
        spread_exact(pass, at, n);
        return;
    }
    double value[CHUNK], both[2 * CHUNK] = {0};
    pass_unpack(pass->buffer->scalar, pass->buffer->init, at, n, value);
    for (int64_t k = 0; k < n; k++)
        both[2 * k] = value[k];
    pass_pack(scalar_of_pairs(pass->buffer->scalar), both, 2 * at, 2 * n, pass->to);
}

RunnerBuffer pairs_of(const RunnerBuffer *from, Arena *arena)
{
    RunnerBuffer to = {.name = from->name,
                       .scalar = scalar_of_pairs(from->scalar),
                       .count = 2 * from->count};
    if (!from->init)
        return to;
    char *init = arena_shared(arena, runner_buffer_bytes(&to));
    pass_run((RefPass){.chunk = spread_chunk, .buffer = from, .to = init});
    to.init = init;
    return to;
}

static void widen_chunk(const RefPass *pass, int64_t at, int64_t n, Found *found)
{
    double value[CHUNK];
    pass_unpack(pass->buffer->scalar, pass->buffer->init, at, n, value);
    pass_pack(scalar_of_pairs(pass->buffer->scalar), value, at, n, pass->to);
}

RunnerBuffer pairs_read(const RunnerBuffer *from, Arena *arena)
{
    RunnerBuffer to = *from;
    to.scalar = scalar_of_pairs(from->scalar);
    if (to.scalar == from->scalar)
        return to;
    char *init = arena_shared(arena, runner_buffer_bytes(&to));
    pass_run((RefPass){.chunk = widen_chunk, .buffer = from, .to = init});
    to.init = init;
    return to;
}

float float_above(double x)
{
    float f = (float)x;
    return f < x ? nextafterf(f, INFINITY) : f;
}

double scalar_most(Scalar scalar)
{
    return scalar == S_HALF ? 65504 : scalar == S_DOUBLE ? DBL_MAX : FLT_MAX;
}

// How far an integer may be off; the largest of its type: by anything. Of a truth value: 1
// is in doubt.
static float whole_bound(const char *from, size_t size, const ScalarInfo *info)
{
    uint64_t by = 0, most = UINT64_MAX >> (64 - 8 * size);
    memcpy(&by, from, size); // little-endian, as all we run on
    if (info->kind == SCALAR_SIGNED)
        most >>= 1;
    return by == 0 ? 0 : !info->integer || by >= most ? INFINITY : float_above((double)by);
}

static void take_exact(const RefPass *pass, int64_t at, int64_t n)
{
    const ScalarInfo *info = &scalar_info[pass->buffer->scalar];
    const size_t size = scalar_device_bytes(pass->buffer->scalar);
    const char *from = (const char *)pass->raw + (size_t)at * 2 * size;
    for (int64_t k = at; k < at + n; k++, from += 2 * size) {
        memcpy(pass->to + (size_t)k * size, from, size);
        pass->bound[k] = whole_bound(from + size, size, info);
    }
}

static void take_chunk(const RefPass *pass, int64_t at, int64_t n, Found *found)
{
    Scalar scalar = pass->buffer->scalar;
    if (!scalar_info[scalar].floating) {
        take_exact(pass, at, n);
        return;
    }
    double both[2 * CHUNK], value[CHUNK], packed[CHUNK];
    pass_unpack(scalar_of_pairs(scalar), pass->raw, 2 * at, 2 * n, both);
    for (int64_t k = 0; k < n; k++)
        value[k] = both[2 * k];
    pass_pack(scalar, value, at, n, pass->to);
    pass_unpack(scalar, pass->to, at, n, packed);
    for (int64_t k = 0; k < n; k++) {
        double by = both[2 * k + 1];
        if (isfinite(value[k]) && packed[k] != value[k])
            by += fabs(packed[k] - value[k]);
        if (by > 0 && isfinite(value[k]) && fabs(value[k]) + by > scalar_most(scalar))
            by = INFINITY; // an infinity is as near
        pass->bound[at + k] = float_above(by);
    }
}

void pairs_take(RunnerBuffer *to, const void *pairs, Arena *arena)
{
    char *expect = arena_shared(arena, runner_buffer_bytes(to));
    float *bound = arena_shared(arena, (size_t)to->count * sizeof *bound);
    pass_run((RefPass){
        .chunk = take_chunk, .buffer = to, .raw = pairs, .to = expect, .bound = bound});
    to->expect = expect;
    to->bound = bound;
}
