// SPDX-License-Identifier: Apache-2.0
//
// Comparing what a candidate computed with what it must compute, at the speed of memory.
//
// Floating numbers: |x - e| <= tolerance * max(|e|, scale). Not-a-number equals only
// itself, an infinity only the same one. Integers and truth values are exact. The loop
// divides only where an element is worse than all before it, which is rare.
#include "measure/parts.h"

#include <float.h>
#include <math.h>

enum { CHUNK = 4096 }; // elements widened at a time where the layout is not plain

// The running sum over a few lanes, so that additions overlap.
typedef struct {
    double sum[4];
    int64_t n;
} Mean;

static void mean_add(Mean *mean, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double a = fabs(x[i]);
        bool finite = a <= DBL_MAX;
        mean->sum[i & 3] += finite ? a : 0;
        mean->n += finite;
    }
}

static const char *element(Scalar scalar, const void *base, int64_t i)
{
    return (const char *)base + (size_t)i * scalar_device_bytes(scalar);
}

// A tenth of the mean magnitude: where large terms cancel, the rounding of the terms shows
// (7-point 3D stencil: terms of 0.2, results down to 8e-4, differences of 1e-7).
double check_scale(Scalar scalar, const void *expect, int64_t n)
{
    double chunk[CHUNK];
    Mean mean = {0};
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t len = MIN(CHUNK, n - i);
        scalar_unpack(scalar, element(scalar, expect, i), len, chunk);
        mean_add(&mean, chunk, len);
    }
    double sum = mean.sum[0] + mean.sum[1] + mean.sum[2] + mean.sum[3];
    // Where everything expected is zero there is no magnitude to go by: take one.
    return 0.1 * (sum > 0 ? sum / (double)mean.n : 1.0);
}

// An element worse than all before it, or one that is not a finite number.
static void note_worse(Check *check, double x, double e, double unit, double tolerance,
                       int64_t i)
{
    bool same = x == e || (isnan(x) && isnan(e));
    double error = same ? 0 : fabs(x - e) / unit;
    if (isnan(error))
        error = INFINITY;
    if (error > tolerance && check->first_wrong < 0) {
        check->first_wrong = i;
        check->got = x;
        check->want = e;
    }
    check->max_error = MAX(check->max_error, error);
}

#define COMPARE(name, T)                                                                   \
    static void name(Check *check, const T *got, const T *expect, int64_t n, int64_t at,   \
                     double tolerance, double scale)                                       \
    {                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                  \
            double x = (double)got[i], e = (double)expect[i], size = fabs(e);              \
            double unit = size > scale ? size : scale;                                     \
            if (!(fabs(x - e) <= check->max_error * unit))                                 \
                note_worse(check, x, e, unit, tolerance, at + i);                          \
        }                                                                                  \
    }
COMPARE(compare_float, float)
COMPARE(compare_double, double)
#undef COMPARE

static void compare_widened(Check *check, Scalar scalar, const void *got,
                            const void *expect, int64_t n, double tolerance, double scale)
{
    double x[CHUNK], e[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t len = MIN(CHUNK, n - i);
        scalar_unpack(scalar, element(scalar, got, i), len, x);
        scalar_unpack(scalar, element(scalar, expect, i), len, e);
        compare_double(check, x, e, len, i, tolerance, scale);
    }
}

Check check_compare(Scalar scalar, const void *got, const void *expect, int64_t n,
                    double tolerance, double scale)
{
    Check check = {.first_wrong = -1};
    switch (scalar) {
    case S_FLOAT: compare_float(&check, got, expect, n, 0, tolerance, scale); break;
    case S_DOUBLE: compare_double(&check, got, expect, n, 0, tolerance, scale); break;
    case S_HALF: compare_widened(&check, scalar, got, expect, n, tolerance, scale); break;
    case S_BOOL:
    case S_INT: compare_widened(&check, scalar, got, expect, n, 0, 1); break;
    }
    return check;
}
