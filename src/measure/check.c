// SPDX-License-Identifier: Apache-2.0
//
// Comparing what a candidate computed with what it must compute, at the speed of memory.
//
// An element is right by rule.def within its bound or, where there are none, floating
// numbers within tolerance * max(|e|, scale); integers and truth values are exact then. The
// loop divides only where an element is worse than all before it, which is rare.
#include "measure/parts.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RULE(...) __VA_ARGS__
#define FUNCTION  static
#define ENDLESS   ((double)INFINITY)
#include "measure/rule.def"
#undef RULE
#undef FUNCTION
#undef ENDLESS

enum { CHUNK = 4096 }; // elements widened at a time where the layout is not plain

// Magnitudes are counted by exponent and the first bits of the fraction: the median is
// known to one part in 256.
enum { MEDIAN_SHIFT = 52 - 8, MEDIAN_BINS = 1 << (11 + 8) };
enum { MEDIAN_ELEMENTS = 1 << 20 };

// A device may take numbers below the least normal one for zero. At the usual tolerance
// this scale accepts that, and of half some units of the last place.
static const double least_scale[SCALARS] = {[S_HALF] = 0x1p-13,
                                            [S_BF16] = 1e4 * FLT_MIN,
                                            [S_FLOAT] = 1e4 * FLT_MIN,
                                            [S_DOUBLE] = 1e4 * DBL_MIN};

static const char *element(Scalar scalar, const void *base, int64_t i)
{
    return (const char *)base + (size_t)i * scalar_device_bytes(scalar);
}

static void count_magnitudes(const double *x, int64_t n, int64_t *bin, int64_t *counted)
{
    for (int64_t i = 0; i < n; i++) {
        double size = fabs(x[i]);
        uint64_t bits;
        memcpy(&bits, &size, sizeof bits);
        bool counts = size > 0 && size <= DBL_MAX;
        bin[bits >> MEDIAN_SHIFT] += counts;
        *counted += counts;
    }
}

// The lower median; 0: nothing was counted.
static double median_of(const int64_t *bin, int64_t counted)
{
    int64_t below = 0;
    double median = 0;
    for (uint64_t i = 0; counted > 0 && i < MEDIAN_BINS; i++) {
        uint64_t bits = i << MEDIAN_SHIFT;
        below += bin[i];
        if (below >= (counted + 1) / 2) {
            memcpy(&median, &bits, sizeof median);
            break;
        }
    }
    return median;
}

// A tenth of the median magnitude: where large terms cancel, the rounding of the terms
// shows (7-point 3D stencil: terms of 0.2, results down to 8e-4, differences of 1e-7). Of
// a mean a few huge elements make all others small enough to be anything.
// A million elements, spread over all of them, tell it as well as 60 million do, which take
// a quarter of a second.
double check_scale(Scalar scalar, const void *expect, int64_t n)
{
    double chunk[CHUNK];
    int64_t *bin = xcalloc(MEDIAN_BINS, sizeof *bin), counted = 0;
    int64_t step = MAX(n / MEDIAN_ELEMENTS, 1) * CHUNK;
    for (int64_t i = 0; i < n; i += step) {
        int64_t len = MIN(CHUNK, n - i);
        scalar_unpack(scalar, element(scalar, expect, i), len, chunk);
        count_magnitudes(chunk, len, bin, &counted);
    }
    double median = median_of(bin, counted);
    free(bin);
    // Where everything expected is zero there is no magnitude to go by: take one.
    return fmax(0.1 * (counted > 0 ? median : 1.0), least_scale[scalar]);
}

// An element that is wrong, or worse than all before it, or no finite number.
static void note(Check *check, double x, double e, double bound, double scale, int64_t i)
{
    bool wrong = !fw_right(x, e, bound);
    check->wrong += wrong;
    if (wrong && check->first_wrong < 0) {
        check->first_wrong = i;
        check->got = x;
        check->want = e;
    }
    if (bound < INFINITY)
        check->max_error = MAX(check->max_error, fw_error(x, e, scale));
}

#define COMPARE(name, T)                                                                   \
    static void name(Check *check, const T *got, const T *expect, int64_t n, int64_t at,   \
                     const Allowed *a)                                                     \
    {                                                                                      \
        const float *bound = a->bound ? a->bound + at : NULL;                              \
        for (int64_t i = 0; i < n; i++) {                                                  \
            double x = (double)got[i], e = (double)expect[i], size = fabs(e);              \
            double unit = size > a->scale ? size : a->scale, far = fabs(x - e);            \
            double usual = size > DBL_MAX ? 0 : a->tolerance * unit;                       \
            double allowed = bound ? (double)bound[i] : usual;                             \
            if (!(far <= check->max_error * unit) || !(far <= allowed) || size > DBL_MAX)  \
                note(check, x, e, allowed, a->scale, at + i);                              \
        }                                                                                  \
    }
COMPARE(compare_float, float)
COMPARE(compare_double, double)
#undef COMPARE

// Of 8 bytes, which doubles may not tell apart.
static void compare_wide_integers(Check *check, Scalar scalar, const int64_t *got,
                                  const int64_t *expect, int64_t n, const Allowed *a)
{
    for (int64_t i = 0; i < n; i++) {
        double x, e;
        if (got[i] == expect[i])
            continue;
        scalar_unpack(scalar, &got[i], 1, &x);
        scalar_unpack(scalar, &expect[i], 1, &e);
        x = x == e ? nextafter(x, INFINITY) : x;
        note(check, x, e, a->bound ? (double)a->bound[i] : 0, a->scale, i);
    }
}

static void compare_widened(Check *check, Scalar scalar, const void *got,
                            const void *expect, int64_t n, const Allowed *allowed)
{
    double x[CHUNK], e[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t len = MIN(CHUNK, n - i);
        scalar_unpack(scalar, element(scalar, got, i), len, x);
        scalar_unpack(scalar, element(scalar, expect, i), len, e);
        compare_double(check, x, e, len, i, allowed);
    }
}

Check check_compare(Scalar scalar, const void *got, const void *expect, int64_t n,
                    Allowed allowed)
{
    Check check = {.first_wrong = -1};
    const Allowed exact = {allowed.bound, 0, 1};
    switch (scalar) {
    case S_FLOAT: compare_float(&check, got, expect, n, 0, &allowed); break;
    case S_DOUBLE: compare_double(&check, got, expect, n, 0, &allowed); break;
    case S_HALF:
    case S_BF16: compare_widened(&check, scalar, got, expect, n, &allowed); break;
    case S_LONG:
    case S_ULONG: compare_wide_integers(&check, scalar, got, expect, n, &exact); break;
    default: compare_widened(&check, scalar, got, expect, n, &exact); break;
    }
    return check;
}
