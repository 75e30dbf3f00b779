// SPDX-License-Identifier: Apache-2.0
//
// Numbers become their logarithm where they are not negative, since sizes double: 64 is to
// 128 what 1 is to 2. Integers with odd and even values get a second column: how often 2
// divides them, since speed is often a matter of alignment. Words become a column
// each, and so do integers that count from 0, which are codes of ways more often than
// amounts; a parameter of more than ENCODE_WORDS_MOST words is one column, in their order.
#include "search/encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_whole(const SpaceParam *param)
{
    for (int i = 0; i < param->n; i++)
        if (param->label || param->value[i] != floor(param->value[i]) ||
            fabs(param->value[i]) > 0x1p40)
            return false;
    return true;
}

// How often 2 divides a whole number, at most 8 times.
static int evenness(double value)
{
    int times = 0;
    for (int64_t n = (int64_t)value; times < 8 && n % 2 == 0; n /= 2)
        times++;
    return times;
}

// Whether evenness says something that the size does not: it falls somewhere.
static bool is_uneven(const SpaceParam *param)
{
    if (!is_whole(param) || param->n < 4)
        return false;
    for (int i = 0; i < param->n; i++)
        for (int k = 0; k < param->n; k++)
            if (param->value[i] < param->value[k] && param->value[i] > 0 &&
                evenness(param->value[i]) > evenness(param->value[k]))
                return true;
    return false;
}

static void scale(double *at, int n, int width)
{
    double lo = INFINITY, hi = -INFINITY;
    for (int i = 0; i < n; i++) {
        lo = fmin(lo, at[i * width]);
        hi = fmax(hi, at[i * width]);
    }
    for (int i = 0; i < n; i++)
        at[i * width] = hi > lo ? (at[i * width] - lo) / (hi - lo) : 0;
}

static void size_column(const SpaceParam *param, double *at, int width)
{
    double least = INFINITY;
    for (int i = 0; i < param->n; i++)
        least = fmin(least, param->value[i]);
    for (int i = 0; i < param->n; i++)
        at[i * width] = least > 0    ? log2(param->value[i])
                        : least == 0 ? log2(1 + param->value[i])
                                     : param->value[i];
    scale(at, param->n, width);
}

// Whether each value has a column of its own.
static bool is_category(const SpaceParam *param)
{
    bool codes = is_whole(param);
    for (int i = 0; codes && i < param->n; i++)
        codes = param->value[i] >= 0 && param->value[i] < param->n;
    return (param->label || codes) && param->n > 2 && param->n <= ENCODE_WORDS_MOST;
}

static int columns_of(const SpaceParam *param)
{
    if (param->n < 2)
        return 0;
    if (is_category(param))
        return param->n;
    return is_uneven(param) ? 2 : 1;
}

static void fill(const SpaceParam *param, double *at, int width)
{
    if (is_category(param)) {
        for (int i = 0; i < param->n; i++)
            at[i * width + i] = M_SQRT1_2;
        return;
    }
    size_column(param, at, width);
    for (int i = 0; i < param->n && width == 2; i++)
        at[i * width + 1] = evenness(param->value[i]);
    if (width == 2)
        scale(at + 1, param->n, width);
}

Encoding *encode_new(const Space *space)
{
    Encoding *e = xcalloc(1, sizeof *e);
    int n = space_params(space);
    e->space = space;
    e->group = xcalloc(ENCODE_COLUMNS_MOST, sizeof *e->group);
    for (int i = 0; i < n; i++) {
        const SpaceParam *param = space_param(space, i);
        int width = columns_of(param);
        e->first[i] = e->d;
        e->width[i] = width;
        e->value[i] = xcalloc((size_t)(width * param->n) + 1, sizeof(double));
        if (width)
            fill(param, e->value[i], width);
        bool one = is_category(param);
        for (int k = 0; k < width; k++, e->d++)
            e->group[e->d] = one ? e->ngroup : e->ngroup + k;
        e->ngroup += one ? 1 : width;
    }
    return e;
}

void encode_launches(Encoding *e, LaunchShapes launches)
{
    e->launches = launches;
    e->d += launches.shape ? LAUNCH_COLUMNS : 0;
}

// All 0 where the launch has no shape: such a point does not run.
static void launch_columns(const Encoding *e, const Point *point, double *row)
{
    LaunchShape shape;
    memset(row, 0, LAUNCH_COLUMNS * sizeof *row);
    if (!e->launches.shape(e->launches.user, point, &shape))
        return;
    for (int d = 0; d < 3; d++) {
        row[d] = log2(shape.groups[d]);
        row[3 + d] = log2(shape.local[d]);
        row[6] += row[d];
        row[7] += row[3 + d];
    }
    row[8] = row[6] + row[7];
}

void encode_free(Encoding *e)
{
    if (!e)
        return;
    for (int i = 0; i < SPACE_PARAMS_MAX; i++)
        free(e->value[i]);
    free(e->group);
    free(e);
}

void encode_point(const Encoding *e, const Point *point, double *row)
{
    for (int i = 0; i < space_params(e->space); i++)
        for (int k = 0; k < e->width[i]; k++)
            row[e->first[i] + k] = e->value[i][point->choice[i] * e->width[i] + k];
    if (e->launches.shape)
        launch_columns(e, point, row + e->d - LAUNCH_COLUMNS);
}
