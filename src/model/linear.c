// SPDX-License-Identifier: Apache-2.0
//
// Relative least squares with signs; see linear.h.
//
//   method  rows are divided by their time, columns by their length; columns that must not
//           be positive are turned round. Free columns are always in the active set; of
//           the others the one whose gradient is steepest enters, and one that would turn
//           negative leaves, until no gradient points inwards.

#include "model/linear.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_PER_COLUMN = 6 };
static const double GRADIENT_LEAST = 1e-10, RANK = 1e-11;

// The scaled problem: minimise |1 - a w|.
typedef struct {
    int n, d;
    double *a; // column-major
    double *scale;
    const Sign *sign;
    bool *in; // column is in the active set
    double *w;
} LinearFit;

// A column whose numbers are too large to be squared and added up says nothing.
static void scale_columns(LinearFit *f, const Matrix *x, const double *y)
{
    for (int c = 0; c < f->d; c++) {
        double *column = f->a + (size_t)c * (size_t)f->n, length = 0;
        for (int r = 0; r < f->n; r++) {
            column[r] = matrix_row(x, r)[c] / y[r];
            length += column[r] * column[r];
        }
        bool usable = length > 0 && isfinite(length);
        f->scale[c] = usable ? 1 / sqrt(length) : 0;
        if (f->sign[c] == SIGN_NEGATIVE)
            f->scale[c] = -f->scale[c];
        for (int r = 0; r < f->n; r++)
            column[r] = usable ? column[r] * f->scale[c] : 0;
        f->in[c] = f->sign[c] == SIGN_FREE && f->scale[c] != 0;
    }
}

// Least squares over the active set, minimum norm where it is not of full rank.
static void solve(const LinearFit *f, double *w)
{
    int m = 0, n = f->n, rank = 0;
    AUTO_FREE double *a = xcalloc((size_t)n * (size_t)f->d + 1, sizeof *a);
    AUTO_FREE double *b = xcalloc((size_t)MAX(n, f->d) + 1, sizeof *b);
    AUTO_FREE double *s = xcalloc((size_t)MAX(n, f->d) + 1, sizeof *s);
    for (int c = 0; c < f->d; c++)
        if (f->in[c])
            memcpy(a + (size_t)m++ * (size_t)n, f->a + (size_t)c * (size_t)n,
                   sizeof *a * (size_t)n);
    for (int r = 0; r < n; r++)
        b[r] = 1;
    memset(w, 0, sizeof *w * (size_t)f->d);
    if (m && LAPACKE_dgelsd(LAPACK_COL_MAJOR, n, m, 1, a, MAX(n, 1), b, MAX(n, m), s, RANK,
                            &rank) == 0)
        for (int c = 0, k = 0; c < f->d; c++)
            if (f->in[c])
                w[c] = b[k++];
}

static double residual(const LinearFit *f, const double *w, double *out)
{
    double sum = 0;
    for (int r = 0; r < f->n; r++) {
        out[r] = 1;
        for (int c = 0; c < f->d; c++)
            out[r] -= f->a[(size_t)c * (size_t)f->n + (size_t)r] * w[c];
        sum += out[r] * out[r];
    }
    return sum;
}

static int steepest(const LinearFit *f, const double *rest)
{
    int best = -1;
    double most = GRADIENT_LEAST;
    for (int c = 0; c < f->d; c++) {
        double gradient = 0;
        for (int r = 0; !f->in[c] && f->scale[c] != 0 && r < f->n; r++)
            gradient += f->a[(size_t)c * (size_t)f->n + (size_t)r] * rest[r];
        if (gradient > most) {
            most = gradient;
            best = c;
        }
    }
    return best;
}

// Moves w towards the solution as far as the signs allow; false if some column left.
static bool step(LinearFit *f, const double *solution)
{
    double part = 1;
    for (int c = 0; c < f->d; c++)
        if (f->in[c] && f->sign[c] != SIGN_FREE && solution[c] <= 0)
            part = fmin(part, f->w[c] / (f->w[c] - solution[c]));
    for (int c = 0; c < f->d; c++) {
        if (!f->in[c])
            continue;
        f->w[c] += part * (solution[c] - f->w[c]);
        if (part < 1 && f->sign[c] != SIGN_FREE && f->w[c] <= 1e-15 && solution[c] <= 0) {
            f->w[c] = 0;
            f->in[c] = false;
        }
    }
    return part >= 1;
}

static void find_weights(LinearFit *f)
{
    AUTO_FREE double *solution = xcalloc((size_t)f->d + 1, sizeof *solution);
    AUTO_FREE double *rest = xcalloc((size_t)f->n + 1, sizeof *rest);
    bool more = true;
    for (int round = 0; more && round < ROUNDS_PER_COLUMN * f->d + 1; round++) {
        do
            solve(f, solution);
        while (!step(f, solution));
        residual(f, f->w, rest);
        int enters = steepest(f, rest);
        more = enters >= 0;
        if (more)
            f->in[enters] = true;
    }
}

// The diagonal of the inverse of the active columns' products, times the variance.
static void find_errors(const LinearFit *f, double variance, double *error)
{
    int m = 0, *column = xcalloc((size_t)f->d + 1, sizeof *column);
    for (int c = 0; c < f->d; c++)
        if (f->in[c])
            column[m++] = c;
    AUTO_FREE double *g = xcalloc((size_t)m * (size_t)m + 1, sizeof *g);
    for (int i = 0; i < m; i++)
        for (int k = 0; k < m; k++)
            for (int r = 0; r < f->n; r++)
                g[i * m + k] += f->a[(size_t)column[i] * (size_t)f->n + (size_t)r] *
                                f->a[(size_t)column[k] * (size_t)f->n + (size_t)r];
    bool ok = m && LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', m, g, m) == 0 &&
              LAPACKE_dpotri(LAPACK_COL_MAJOR, 'U', m, g, m) == 0;
    for (int i = 0; i < m; i++)
        error[column[i]] =
            ok ? sqrt(variance * g[i * m + i]) * fabs(f->scale[column[i]]) : INFINITY;
    free(column);
}

Linear linear_fit(const Matrix *x, const double *y, const Sign *sign)
{
    size_t d = (size_t)x->d + 1, n = (size_t)x->n + 1;
    Linear l = {.d = x->d,
                .rows = x->n,
                .weight = xcalloc(d, sizeof(double)),
                .error = xcalloc(d, sizeof(double)),
                .support = xcalloc(d, sizeof(int))};
    LinearFit f = {.n = x->n,
                   .d = x->d,
                   .a = xcalloc(n * d, sizeof(double)),
                   .scale = xcalloc(d, sizeof(double)),
                   .sign = sign,
                   .in = xcalloc(d, sizeof(bool)),
                   .w = xcalloc(d, sizeof(double))};
    AUTO_FREE double *rest = xcalloc(n, sizeof *rest);
    int active = 0;
    scale_columns(&f, x, y);
    find_weights(&f);
    double sum = residual(&f, f.w, rest);
    for (int c = 0; c < l.d; c++) {
        l.weight[c] = f.w[c] * f.scale[c];
        active += f.in[c];
        for (int r = 0; r < x->n; r++)
            l.support[c] += matrix_row(x, r)[c] != 0;
    }
    l.rms = x->n ? sqrt(sum / x->n) : 0;
    find_errors(&f, sum / MAX(x->n - active, 1), l.error);
    free(f.a);
    free(f.scale);
    free(f.in);
    free(f.w);
    return l;
}

void linear_free(Linear *l)
{
    free(l->weight);
    free(l->error);
    free(l->support);
    *l = (Linear){0};
}
