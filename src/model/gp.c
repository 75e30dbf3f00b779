// SPDX-License-Identifier: Apache-2.0
//
// Gaussian process regression (Rasmussen and Williams 2006, algorithm 2.1) with the Matern
// 5/2 correlation and a sum over columns of rational quadratic ones. Rows are added to the
// Cholesky factor one at a time, and the posterior of a pool of candidates follows at the
// cost of one row: n candidates after m rows cost n m.
//
// Rates and noise are the mode of their posterior: the variance is integrated out, the
// logarithm of a rate has a normal prior; found by trying steps in each of them. No
// gradients: with groups of ten and rows of a hundred the steps take a few milliseconds.
#include "model/gp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double STEP = 0.7, RATE_MEAN = 0.5, RATE_SD = 1.5, NOISE_MEAN = -5,
                    NOISE_SD = 2;
static const double JITTER = 1e-6, ADDED = 0.7;
enum { COLUMNS_MOST = 512 };

Gp *gp_new(int d, const int *group, int ngroup, int most)
{
    Gp *gp = xcalloc(1, sizeof *gp);
    size_t rows = (size_t)most;
    gp->d = d;
    gp->ngroup = ngroup;
    gp->most = most;
    gp->group = xcalloc((size_t)d + 1, sizeof *gp->group);
    memcpy(gp->group, group, sizeof *group * (size_t)d);
    gp->x = xcalloc(rows * (size_t)d + 1, sizeof *gp->x);
    gp->y = xcalloc(rows, sizeof *gp->y);
    gp->z = xcalloc(rows, sizeof *gp->z);
    gp->u = xcalloc(rows * rows, sizeof *gp->u);
    gp->own = xcalloc(rows, sizeof *gp->own);
    gp->trial_z = xcalloc(rows, sizeof *gp->trial_z);
    gp->trial_u = xcalloc(rows * rows, sizeof *gp->trial_u);
    for (int g = 0; g < ngroup; g++)
        gp->rate[g] = RATE_MEAN;
    gp->noise = NOISE_MEAN;
    return gp;
}

void gp_free(Gp *gp)
{
    if (!gp)
        return;
    free(gp->group);
    free(gp->x);
    free(gp->y);
    free(gp->z);
    free(gp->u);
    free(gp->own);
    free(gp->trial_z);
    free(gp->trial_u);
    free(gp);
}

static void weights(const Gp *gp, double *weight)
{
    for (int c = 0; c < gp->d; c++)
        weight[c] = exp(2 * gp->rate[gp->group[c]]);
}

static double matern(double square)
{
    double r = sqrt(5 * square);
    return (1 + r + r * r / 3) * exp(-r);
}

static double *row_of(double *at, int i, int width)
{
    return at + (size_t)i * (size_t)width;
}

// The larger part is the mean of a correlation along each column alone, without which
// points that differ in several tell nothing of one another: early, all do.
static double correlation(const double *a, const double *b, const double *weight, int d)
{
    double square = 0, sum = 0;
    for (int c = 0; c < d; c++) {
        double own = weight[c] * (a[c] - b[c]) * (a[c] - b[c]);
        square += own;
        sum += 1 / (1 + own);
    }
    return ADDED * sum / MAX(d, 1) + (1 - ADDED) * matern(square);
}

// Solves U' own = own in place, i rows; inner loops run along rows of U.
static void forward(const double *u, int most, double *own, int i)
{
    for (int k = 0; k < i; k++) {
        const double *uk = u + (size_t)k * (size_t)most;
        double found = own[k] /= uk[k];
        for (int j = k + 1; j < i; j++)
            own[j] -= found * uk[j];
    }
}

// Adds column i to the factor; own holds the correlations with the rows before. Returns
// what y - mean becomes when it is whitened like the others in z.
static double factor_column(const Gp *gp, double *u, double *own, const double *z, int i)
{
    double square = 0, rest = gp->y[i] - gp->mean;
    forward(u, gp->most, own, i);
    for (int k = 0; k < i; k++) {
        row_of(u, k, gp->most)[i] = own[k];
        square += own[k] * own[k];
        rest -= own[k] * z[k];
    }
    double pivot = sqrt(fmax(1 + exp(gp->noise) + JITTER - square, JITTER));
    row_of(u, i, gp->most)[i] = pivot;
    return rest / pivot;
}

static void correlate(const Gp *gp, const double *weight, int i, double *own)
{
    const double *x = row_of(gp->x, i, gp->d);
    for (int k = 0; k < i; k++)
        own[k] = correlation(x, row_of(gp->x, k, gp->d), weight, gp->d);
}

// Logarithm of the factor's determinant; square is that of the whitened y.
static double factor(const Gp *gp, double *u, double *z, double *own, double *square)
{
    double weight[COLUMNS_MOST], log_det = 0;
    weights(gp, weight);
    *square = 0;
    for (int i = 0; i < gp->n; i++) {
        correlate(gp, weight, i, own);
        z[i] = factor_column(gp, u, own, z, i);
        *square += z[i] * z[i];
        log_det += log(row_of(u, i, gp->most)[i]);
    }
    return log_det;
}

static void settle(Gp *gp)
{
    double square;
    factor(gp, gp->u, gp->z, gp->own, &square);
    gp->variance = fmax(square / MAX(gp->n, 1), 1e-12);
}

void gp_set(Gp *gp, const double *x, const double *y, int n)
{
    gp->n = n;
    memcpy(gp->x, x, sizeof *x * (size_t)n * (size_t)gp->d);
    gp->mean = 0;
    for (int i = 0; i < n; i++) {
        gp->y[i] = y[i];
        gp->mean += y[i] / n;
    }
    settle(gp);
}

void gp_add(Gp *gp, const double *x, double y)
{
    double weight[COLUMNS_MOST];
    int i = gp->n++;
    weights(gp, weight);
    memcpy(row_of(gp->x, i, gp->d), x, sizeof *x * (size_t)gp->d);
    gp->y[i] = y;
    correlate(gp, weight, i, gp->own);
    gp->z[i] = factor_column(gp, gp->u, gp->own, gp->z, i);
}

// Rates and noise -----------------------------------------------------------------------

static double square_of(double x)
{
    return x * x;
}

// Logarithm of the posterior density of rates and noise, but for a constant.
static double density(Gp *gp)
{
    double square, log_det = factor(gp, gp->trial_u, gp->trial_z, gp->own, &square);
    double prior = square_of((gp->noise - NOISE_MEAN) / NOISE_SD);
    for (int g = 0; g < gp->ngroup; g++)
        prior += square_of((gp->rate[g] - RATE_MEAN) / RATE_SD);
    return -log_det - gp->n / 2.0 * log(fmax(square, 1e-12)) - prior / 2;
}

// Steps in one number as long as the density grows; the density then.
static double climb(Gp *gp, double *at, double step, double now)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        double before = *at;
        *at = before + sign * step;
        double then = density(gp);
        if (then > now)
            return then;
        *at = before;
    }
    return now;
}

double gp_tune(Gp *gp, int sweeps)
{
    double now = density(gp);
    for (int s = 0; s < sweeps; s++) {
        for (int g = 0; g < gp->ngroup; g++)
            now = climb(gp, &gp->rate[g], STEP, now);
        now = climb(gp, &gp->noise, 2 * STEP, now);
    }
    settle(gp);
    return now;
}

// Pools ---------------------------------------------------------------------------------

GpPool *gp_pool_new(const Gp *gp, int cap)
{
    GpPool *pool = xcalloc(1, sizeof *pool);
    size_t room = (size_t)cap;
    pool->cap = cap;
    pool->d = gp->d;
    pool->most = gp->most;
    pool->x = xcalloc(room * (size_t)gp->d + 1, sizeof *pool->x);
    pool->v = xcalloc(room * (size_t)gp->most, sizeof *pool->v);
    pool->mean = xcalloc(room, sizeof *pool->mean);
    pool->variance = xcalloc(room, sizeof *pool->variance);
    return pool;
}

void gp_pool_free(GpPool *pool)
{
    if (!pool)
        return;
    free(pool->x);
    free(pool->v);
    free(pool->mean);
    free(pool->variance);
    free(pool);
}

void gp_pool_clear(GpPool *pool)
{
    pool->n = 0;
}

// What row i says of candidates from..to.
static void learn(GpPool *pool, const Gp *gp, const double *weight, int i, int from, int to)
{
    float *restrict v = pool->v + (size_t)i * (size_t)pool->cap;
    const double *x = row_of(gp->x, i, gp->d);
    for (int c = from; c < to; c++)
        v[c] = (float)correlation(x, row_of(pool->x, c, pool->d), weight, gp->d);
    for (int k = 0; k < i; k++) {
        const float *restrict vk = pool->v + (size_t)k * (size_t)pool->cap;
        float share = (float)row_of(gp->u, k, gp->most)[i];
        for (int c = from; c < to; c++)
            v[c] -= share * vk[c];
    }
    float scale = (float)(1 / row_of(gp->u, i, gp->most)[i]), z = (float)gp->z[i];
    float *restrict mean = pool->mean, *restrict variance = pool->variance;
    for (int c = from; c < to; c++) {
        v[c] *= scale;
        mean[c] += v[c] * z;
        variance[c] -= (float)gp->variance * v[c] * v[c];
    }
}

int gp_pool_push(GpPool *pool, const Gp *gp, const double *x, int n)
{
    double weight[COLUMNS_MOST];
    int from = pool->n, taken = MIN(n, pool->cap - from);
    weights(gp, weight);
    memcpy(row_of(pool->x, from, pool->d), x, sizeof *x * (size_t)taken * (size_t)pool->d);
    for (int c = from; c < from + taken; c++) {
        pool->mean[c] = (float)gp->mean;
        pool->variance[c] = (float)gp->variance;
    }
    for (int i = 0; i < gp->n; i++)
        learn(pool, gp, weight, i, from, from + taken);
    pool->n += taken;
    return taken;
}

void gp_pool_follow(GpPool *pool, const Gp *gp)
{
    double weight[COLUMNS_MOST];
    weights(gp, weight);
    learn(pool, gp, weight, gp->n - 1, 0, pool->n);
}

void gp_pool_swap(GpPool *pool, int i)
{
    int last = --pool->n;
    memcpy(row_of(pool->x, i, pool->d), row_of(pool->x, last, pool->d),
           sizeof *pool->x * (size_t)pool->d);
    for (size_t k = 0; k < (size_t)pool->most * (size_t)pool->cap; k += (size_t)pool->cap)
        pool->v[k + (size_t)i] = pool->v[k + (size_t)last];
    pool->mean[i] = pool->mean[last];
    pool->variance[i] = pool->variance[last];
}
