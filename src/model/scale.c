// SPDX-License-Identifier: Apache-2.0
//
// Centre and scale: mean 0 and standard deviation 1 in every column (000, section 5.2).
// A column whose deviation is rounding error beside its size counts as constant; so does
// one whose numbers are too large to have a deviation.
#include "model/model.h"

#include <math.h>
#include <stdlib.h>

static const double rounding = 1e-12;
// Beyond any row that was fitted (those are within the square root of their number), and
// small enough that squares of it can be added up.
static const double farthest = 1e9;

static double column_mean(const Matrix *x, int c)
{
    double sum = 0;
    for (int i = 0; i < x->n; i++)
        sum += matrix_row(x, i)[c];
    return sum / MAX(x->n, 1);
}

static double column_deviation(const Matrix *x, int c, double mean)
{
    double sum = 0;
    for (int i = 0; i < x->n; i++) {
        double off = matrix_row(x, i)[c] - mean;
        sum += off * off;
    }
    return sqrt(sum / MAX(x->n, 1));
}

Scaler scaler_fit(const Matrix *x)
{
    size_t d = (size_t)x->d + 1;
    Scaler s = {.from = x->d,
                .column = xcalloc(d, sizeof(int)),
                .mean = xcalloc(d, sizeof(double)),
                .deviation = xcalloc(d, sizeof(double))};
    for (int c = 0; c < x->d; c++) {
        double mean = column_mean(x, c), deviation = column_deviation(x, c, mean);
        if (!(deviation > rounding * fabs(mean)) || !isfinite(deviation))
            continue;
        s.column[s.d] = c;
        s.mean[s.d] = mean;
        s.deviation[s.d++] = deviation;
    }
    return s;
}

Matrix scaler_apply(const Scaler *s, const Matrix *x)
{
    if (x->d != s->from)
        BUG("a scaler of %d columns applied to %d", s->from, x->d);
    Matrix out = matrix_new(x->n, s->d);
    for (int i = 0; i < x->n; i++)
        for (int c = 0; c < s->d; c++) {
            double z = (matrix_row(x, i)[s->column[c]] - s->mean[c]) / s->deviation[c];
            matrix_row(&out, i)[c] = fmin(fmax(z, -farthest), farthest);
        }
    return out;
}

void scaler_free(Scaler *s)
{
    free(s->column);
    free(s->mean);
    free(s->deviation);
    *s = (Scaler){0};
}

void scaler_save(const Scaler *s, json_t *object)
{
    json_t *columns = json_array();
    for (int c = 0; c < s->d; c++)
        json_array_append_new(columns, json_integer(s->column[c]));
    json_object_set_new(object, "columns", columns);
    json_object_set_new(object, "mean", json_numbers(s->mean, s->d));
    json_object_set_new(object, "deviation", json_numbers(s->deviation, s->d));
}

bool scaler_load(Scaler *s, const json_t *object, int d)
{
    const json_t *columns = json_object_get(object, "columns");
    *s = (Scaler){.from = d, .d = (int)json_array_size(columns)};
    if (!json_is_array(columns) || json_array_size(columns) > (size_t)d)
        return false;
    s->column = xcalloc((size_t)s->d + 1, sizeof(int));
    s->mean = json_get_numbers(object, "mean", s->d);
    s->deviation = json_get_numbers(object, "deviation", s->d);
    for (int c = 0; c < s->d; c++) {
        json_int_t column = json_integer_value(json_array_get(columns, (size_t)c));
        if (column < 0 || column >= d)
            return false;
        s->column[c] = (int)column;
        if (s->deviation && !(s->deviation[c] >= 1e-300))
            return false;
    }
    return s->mean && s->deviation;
}
