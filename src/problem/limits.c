// SPDX-License-Identifier: Apache-2.0
//
// How far outputs are from others, and how wide their bounds may be: passes over the
// elements of a reference.

#include "problem/pass.h"

#include <math.h>
#include <string.h>

// By how much x and e differ, as rule.def says it.
static double difference(double x, double e, double scale)
{
    double error = fabs(x - e) / fmax(fabs(e), scale);
    return x == e || (isnan(x) && isnan(e)) ? 0 : error >= 0 ? error : INFINITY;
}

static void differ_chunk(const RefPass *pass, int64_t at, int64_t n, Found *found)
{
    const RunnerBuffer *b = pass->buffer;
    double x[CHUNK], e[CHUNK];
    pass_unpack(b->scalar, pass->raw, at, n, x);
    pass_unpack(b->scalar, b->expect, at, n, e);
    for (int64_t j = 0; j < n; j++) {
        double by = b->bound ? (double)b->bound[at + j] : 0;
        bool left_out[] = {
            [COMPARE_ALL] = isinf(by) && !isfinite(x[j]),
            [COMPARE_BOUNDED] = !isfinite(by),
            [COMPARE_DECIDED] = isinf(by) || by > fmax(fabs(e[j]), pass->scale),
            [COMPARE_OUTSIDE] = b->bound && (isinf(by) || by >= fabs(x[j] - e[j])),
        };
        if (!left_out[pass->compared])
            found->most = fmax(found->most, difference(x[j], e[j], pass->scale));
    }
}

// The largest difference of the outputs of two.
double outputs_differ(const ProblemData *data, const void *const *other, Compared compared)
{
    double most = 0;
    for (int k = data->ninput; k < data->nbuffer; k++) {
        const RunnerBuffer *b = &data->buffer[k];
        bool floating = scalar_info[b->scalar].floating;
        if (!b->bound && !floating)
            continue;
        // Where both values are nothing but rounding, that of fewer bits is far larger.
        double scale = floating ? fmax(check_scale(b->scalar, b->expect, b->count),
                                       check_scale(b->scalar, other[k], b->count))
                                : 1;
        RefPass pass = {differ_chunk, b, other[k], .scale = scale, .compared = compared};
        most = fmax(most, pass_run(pass).most);
    }
    return most;
}

const void **outputs_of(const ProblemData *data, Arena *arena)
{
    const void **out = NEW_ARRAY(arena, const void *, data->nbuffer);
    for (int k = data->ninput; k < data->nbuffer; k++)
        out[k] = data->buffer[k].expect;
    return out;
}

static void nudge_chunk(const RefPass *pass, int64_t at, int64_t n, Found *found)
{
    double value[CHUNK];
    size_t size = scalar_device_bytes(pass->buffer->scalar);
    char *to = pass->to + (size_t)at * size; // little-endian, as all we run on
    memcpy(to, (const char *)pass->buffer->init + (size_t)at * size, (size_t)n * size);
    pass_unpack(pass->buffer->scalar, pass->buffer->init, at, n, value);
    for (int64_t k = 0; k < n; k++)
        if (isfinite(value[k]) && value[k] != 0)
            to[(size_t)k * size] ^= 1;
}

// Turns the last bit of each element that rounding can change: zero and infinity stay.
static const void *nudged(const RunnerBuffer *buffer, Arena *arena)
{
    char *turned = arena_shared(arena, runner_buffer_bytes(buffer));
    pass_run((RefPass){.chunk = nudge_chunk, .buffer = buffer, .to = turned});
    return turned;
}

ProblemData *nudged_data(const ProblemData *data, Arena *arena)
{
    ProblemData *other = arena_copy(arena, data, sizeof(ProblemData));
    other->buffer = COPY_ARRAY(arena, data->buffer, data->nbuffer);
    for (int i = 0; i < data->ninput; i++)
        if (scalar_info[data->buffer[i].scalar].floating)
            other->buffer[i].init = nudged(&data->buffer[i], arena);
    for (int i = data->ninput; i < data->nbuffer; i++) {
        other->buffer[i].expect = NULL;
        other->buffer[i].bound = NULL;
    }
    return other;
}

// Bounds of steps that follow one another may grow where errors do not: of a wave,
// threefold each; of a recurrence y = x + 1.2*y' - 0.5*y'' 1.7 times. How far rounding does
// take a result is asked of the plain kernel then: it runs without bounds, in the program's
// own types, on inputs that differ by their last bit, and a kernel may be MARGIN times as
// far from the reference as that run is.
static const double MARGIN = 32;
// What is further than this is left to the bounds.
static const double TOLERANCE_MOST = 0.1;

// Runs a pass over the bounds of each floating output: its scale is theirs.
static Found each_bound(const ProblemData *data, RefPass pass)
{
    for (int k = data->ninput; k < data->nbuffer; k++) {
        const RunnerBuffer *b = &data->buffer[k];
        if (!scalar_info[b->scalar].floating)
            continue;
        pass.buffer = b;
        pass.bound = (float *)(uintptr_t)b->bound;
        pass.raw = pass.beside ? pass.beside[k].expect : NULL;
        pass.scale = check_scale(b->scalar, b->expect, b->count);
        pass.found = pass_run(pass);
    }
    return pass.found;
}

// The magnitude of each element or, if it is more, the scale.
static void sizes_of(const RefPass *pass, int64_t at, int64_t n, double *size)
{
    pass_unpack(pass->buffer->scalar, pass->buffer->expect, at, n, size);
    for (int64_t k = 0; k < n; k++)
        size[k] = fmax(fabs(size[k]), pass->scale);
}

// all: nothing decides, and what has no bound only grew beyond all.
static void widest_chunk(const RefPass *pass, int64_t at, int64_t n, Found *found)
{
    double size[CHUNK];
    sizes_of(pass, at, n, size);
    for (int64_t k = 0; k < n; k++)
        if ((pass->all || isfinite(pass->bound[at + k])) && isfinite(size[k]))
            found->most = fmax(found->most, (double)pass->bound[at + k] / size[k]);
}

// An infinity stays right where the limit reaches beyond the largest number, and so does
// anything where the nudged run overflows.
static void narrow_chunk(const RefPass *pass, int64_t at, int64_t n, Found *found)
{
    const double most = scalar_most(pass->buffer->scalar);
    double size[CHUNK], x[CHUNK];
    sizes_of(pass, at, n, size);
    pass_unpack(pass->buffer->scalar, pass->raw, at, n, x);
    for (int64_t k = 0; k < n; k++) {
        float *bound = &pass->bound[at + k];
        const double limit = pass->tolerance * size[k];
        const bool known = isfinite(*bound) || (pass->all && isfinite(x[k]));
        if (known && size[k] + limit <= most && *bound > limit)
            *bound = float_above(limit);
    }
}

// An element whose steps diverge is undecided: whether it ends as an infinity or as a NaN
// is a matter of the order.
static void diverged_chunk(const RefPass *pass, int64_t at, int64_t n, Found *found)
{
    double value[CHUNK], size[CHUNK];
    pass_unpack(pass->buffer->scalar, pass->buffer->expect, at, n, value);
    sizes_of(pass, at, n, size);
    for (int64_t k = 0; k < n; k++) {
        found->count += !isfinite(value[k]);
        if (pass->all)
            pass->bound[at + k] =
                isfinite(value[k]) ? float_above(TOLERANCE_MOST * size[k]) : INFINITY;
    }
}

void limits_diverged(ProblemData *data, Arena *arena)
{
    RefPass pass = {.chunk = diverged_chunk};
    data->diverged = each_bound(data, pass).count;
    pass.all = data->diverged > 0;
    for (int k = data->ninput; pass.all && k < data->nbuffer; k++)
        if (scalar_info[data->buffer[k].scalar].floating)
            data->buffer[k].bound =
                arena_shared(arena, (size_t)data->buffer[k].count * sizeof(float));
    if (pass.all)
        each_bound(data, pass);
}

// Nothing is decided of an element whose bound allows more than its own size, and more than
// a tenth of the median one: both outcomes of a decision, say.
static void doubt_chunk(const RefPass *pass, int64_t at, int64_t n, Found *found)
{
    double size[CHUNK];
    sizes_of(pass, at, n, size);
    for (int64_t k = 0; k < n; k++) {
        float bound = pass->bound[at + k];
        found->count += bound > size[k] || (isinf(bound) && !isnan(size[k]));
    }
}

Doubt limits_doubt(const ProblemData *data)
{
    Doubt doubt = {.undecided = each_bound(data, (RefPass){.chunk = doubt_chunk}).count};
    for (int k = data->ninput; k < data->nbuffer; k++) {
        const RunnerBuffer *b = &data->buffer[k];
        doubt.elements += b->count;
        if (scalar_info[b->scalar].floating)
            continue;
        for (int64_t i = 0; i < b->count; i++)
            doubt.undecided += b->bound[i] != 0;
    }
    return doubt;
}

// Do bounds say nothing of most elements?
static bool is_in_doubt(const ProblemData *data)
{
    Doubt doubt = limits_doubt(data);
    return 2 * doubt.undecided > doubt.elements;
}

bool limits_are_wide(const ProblemData *data, bool continuous)
{
    RefPass pass = {.chunk = widest_chunk, .all = continuous};
    return each_bound(data, pass).most > data->tolerance || is_in_doubt(data);
}

static double limit_of(const ProblemData *data, const ProblemData *nudged,
                       Compared compared)
{
    AutoArena *scratch = arena_new();
    return MARGIN * outputs_differ(data, outputs_of(nudged, scratch), compared);
}

void limits_set(ProblemData *data, const ProblemData *nudged, bool bounded, bool continuous)
{
    double limit = limit_of(data, nudged, bounded ? COMPARE_ALL : COMPARE_BOUNDED);
    RefPass pass = {.chunk = narrow_chunk, .beside = nudged->buffer};
    pass.all = bounded && (continuous || (limit <= TOLERANCE_MOST && is_in_doubt(data)));
    if (bounded && !pass.all)
        limit = limit_of(data, nudged, COMPARE_BOUNDED);
    if (bounded && limit > TOLERANCE_MOST)
        return;
    data->tolerance = fmax(data->tolerance, fmin(limit, TOLERANCE_MOST));
    pass.tolerance = data->tolerance;
    if (bounded || data->diverged)
        each_bound(data, pass);
}

// How many elements a changed last bit takes further than the tolerance, and how far at
// most.
static void far_chunk(const RefPass *pass, int64_t at, int64_t n, Found *found)
{
    double x[CHUNK], e[CHUNK];
    pass_unpack(pass->buffer->scalar, pass->raw, at, n, x);
    pass_unpack(pass->buffer->scalar, pass->buffer->expect, at, n, e);
    for (int64_t k = 0; k < n; k++) {
        const double by = x[k] == e[k] || (isnan(x[k]) && isnan(e[k])) ? 0 : x[k] - e[k];
        found->count += difference(x[k], e[k], pass->scale) > pass->tolerance;
        found->most = fmax(found->most, isnan(by) ? INFINITY : fabs(by));
    }
}

// Another order takes about as many elements as far as the changed bits did: a few may be
// anything, but no more than a sixteenth, or, where more differ (as the counts of a
// histogram), all by so much. If the program decides, one element in a million, up to 16,
// may differ where none did.
static void spare(RunnerBuffer *b, Found far, bool decides, Arena *arena)
{
    enum { FEW = 64, PART = 16, RARE = 1 << 20, RARE_MOST = 16 };
    if (FEW * far.count <= b->count) {
        const double most = MARGIN * (double)far.count;
        b->spared = far.count ? (int64_t)fmin(most, (double)(b->count / PART))
                    : decides ? MIN(b->count / RARE, RARE_MOST)
                              : 0;
        return;
    }
    float *bound = arena_shared(arena, (size_t)b->count * sizeof *bound);
    for (int64_t i = 0; i < b->count; i++)
        bound[i] = float_above(MARGIN * far.most);
    b->bound = bound;
}

void limits_spare(ProblemData *data, const ProblemData *nudged, bool decides, Arena *arena)
{
    for (int k = data->ninput; k < data->nbuffer; k++) {
        RunnerBuffer *b = &data->buffer[k];
        const bool floating = scalar_info[b->scalar].floating;
        RefPass pass = {.chunk = far_chunk, .buffer = b, .raw = nudged->buffer[k].expect};
        pass.scale = floating ? check_scale(b->scalar, b->expect, b->count) : 1;
        pass.tolerance = floating ? data->tolerance : 0;
        spare(b, pass_run(pass), decides, arena);
    }
}

int64_t limits_spared(const ProblemData *data)
{
    int64_t spared = 0;
    for (int k = data->ninput; k < data->nbuffer; k++)
        spared += data->buffer[k].spared;
    return spared;
}
