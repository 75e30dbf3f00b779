// SPDX-License-Identifier: Apache-2.0
//
// Overlapping parts; see overlap.h.
//
//   method  Levenberg and Marquardt on the logarithms of the weights, which keeps them
//           positive, from weights that alone would explain the fastest rows. The loss is
//           2 s^2 (sqrt(1 + (r/s)^2) - 1): squares near 0, lines further off.
//   cost    a column's share of its part, times what the part changes in the time: parts
//           enter as a function homogeneous of degree 1, so the shares add up (Euler)

#include "model/overlap.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 300, TRIES = 12, FREE = 2, MOST = OVERLAP_COLUMNS + FREE };
static const double LOSS_SCALE = 0.1, START_SHARE = 0.3, STEP_MOST = 1;
static const double POWER_LEAST = 1.05, POWER_MOST = 8, DRAIN_MOST = 3;

// A row taken apart.
typedef struct {
    double added, start, part[OVERLAP_PARTS];
    double norm, time;
} RowParts;

static double column_cost(const Overlap *o, const double *row, int c, double idle)
{
    return o->weight[c] * row[c] * (o->part[c] == 0 ? 1 + o->drain * idle : 1);
}

static RowParts take_apart(const Overlap *o, const double *row, double idle)
{
    RowParts p = {0};
    for (int c = 0; c < o->d; c++) {
        double cost = column_cost(o, row, c, idle);
        *(o->part[c] == PART_ADDED   ? &p.added
          : o->part[c] == PART_START ? &p.start
                                     : &p.part[o->part[c]]) += cost;
    }
    double most = 0, sum = 0;
    for (int i = 0; i < OVERLAP_PARTS; i++)
        most = fmax(most, p.part[i]);
    for (int i = 0; most > 0 && i < OVERLAP_PARTS; i++)
        sum += pow(p.part[i] / most, o->power);
    p.norm = most > 0 ? most * pow(sum, 1 / o->power) : 0;
    p.time = p.added + fmax(p.start, p.norm);
    return p;
}

// What the time gains when the column's cost gains.
static double slope(const Overlap *o, const RowParts *p, int c)
{
    bool started = p->start > p->norm;
    if (o->part[c] == PART_ADDED)
        return 1;
    if (o->part[c] == PART_START)
        return started;
    return started || p->norm <= 0 ? 0 : pow(p->part[o->part[c]] / p->norm, o->power - 1);
}

double overlap_predict(const Overlap *o, const double *row, double idle, double *cost)
{
    RowParts p = take_apart(o, row, idle);
    for (int c = 0; cost && c < o->d; c++)
        cost[c] = slope(o, &p, c) * column_cost(o, row, c, idle);
    return p.time;
}

// Fitting --------------------------------------------------------------------------------

// Parameters are the logarithms of the weights, of power - 1, and of drain.
typedef struct {
    Overlap *o;
    const Matrix *x;
    const double *idle, *y;
    double *jacobian, *residual; // n by m, n
    int m;
} OverlapFit;

static double loss(const OverlapFit *f)
{
    double sum = 0;
    for (int i = 0; i < f->x->n; i++) {
        const double *row = matrix_row(f->x, i);
        double r = log(take_apart(f->o, row, f->idle[i]).time / f->y[i]);
        r = isfinite(r) ? r : 100;
        sum += sqrt(1 + r * r / (LOSS_SCALE * LOSS_SCALE)) - 1;
    }
    return sum;
}

// d norm / d log(power - 1).
static double power_slope(const Overlap *o, const RowParts *p)
{
    double sum = 0, logs = 0, power = o->power;
    if (p->start > p->norm || p->norm <= 0)
        return 0;
    for (int i = 0; i < OVERLAP_PARTS; i++) {
        double share = p->part[i] / p->norm;
        if (share <= 0)
            continue;
        sum += pow(share, power);
        logs += pow(share, power) * log(share);
    }
    return (power - 1) * p->norm * (logs / power - sum * log(sum) / (power * power));
}

static double drain_slope(const Overlap *o, const RowParts *p, double idle)
{
    double cost = p->part[0] / (1 + o->drain * idle) * idle * o->drain;
    bool hidden = p->start > p->norm || p->norm <= 0;
    return hidden ? 0 : cost * pow(p->part[0] / p->norm, o->power - 1);
}

static void linearise(OverlapFit *f)
{
    const Overlap *o = f->o;
    for (int i = 0; i < f->x->n; i++) {
        const double *row = matrix_row(f->x, i);
        double *j = f->jacobian + (size_t)i * (size_t)f->m;
        RowParts p = take_apart(o, row, f->idle[i]);
        for (int c = 0; c < o->d; c++)
            j[c] = slope(o, &p, c) * column_cost(o, row, c, f->idle[i]) / p.time;
        j[o->d] = power_slope(o, &p) / p.time;
        j[o->d + 1] = drain_slope(o, &p, f->idle[i]) / p.time;
        f->residual[i] = log(p.time / f->y[i]);
    }
}

// a += the weighted products of the columns of the jacobian, b += those with the residuals.
static void add_products(const OverlapFit *f, double *a, double *b)
{
    int m = f->m;
    for (int i = 0; i < f->x->n; i++) {
        const double *j = f->jacobian + (size_t)i * (size_t)m;
        double r = f->residual[i] / LOSS_SCALE, weight = 1 / sqrt(1 + r * r);
        for (int k = 0; k < m; k++) {
            b[k] -= weight * j[k] * f->residual[i];
            for (int l = 0; l <= k && j[k] != 0; l++)
                a[k * m + l] += weight * j[k] * j[l];
        }
    }
}

static void move(Overlap *o, const Overlap *from, const double *step)
{
    *o = *from;
    for (int c = 0; c < o->d; c++)
        o->weight[c] *= exp(fmin(fmax(step[c], -STEP_MOST), STEP_MOST));
    double power = exp(fmin(fmax(step[o->d], -STEP_MOST), STEP_MOST));
    o->power = fmin(fmax(1 + (o->power - 1) * power, POWER_LEAST), POWER_MOST);
    double drain = exp(fmin(fmax(step[o->d + 1], -STEP_MOST), STEP_MOST));
    o->drain = fmin(o->drain * drain, DRAIN_MOST);
}

// One step downhill; false if there is none.
static bool improve(OverlapFit *f, double *damping, double *least)
{
    int m = f->m;
    double a[MOST * MOST] = {0}, b[MOST] = {0};
    Overlap before = *f->o;
    linearise(f);
    add_products(f, a, b);
    for (int attempt = 0; attempt < TRIES; attempt++, *damping *= 4) {
        double g[MOST * MOST], step[MOST];
        memcpy(g, a, sizeof *g * (size_t)(m * m));
        memcpy(step, b, sizeof *step * (size_t)m);
        for (int k = 0; k < m; k++)
            g[k * m + k] += *damping * (a[k * m + k] + 1e-3);
        if (LAPACKE_dposv(LAPACK_ROW_MAJOR, 'L', m, 1, g, m, step, 1) != 0)
            continue;
        move(f->o, &before, step);
        double now = loss(f);
        if (now < *least) {
            bool enough = now < *least * (1 - 1e-7);
            *least = now;
            *damping = fmax(*damping / 8, 1e-8);
            return enough;
        }
    }
    *f->o = before;
    return false;
}

// A share of the largest weight that makes all but the fastest rows no faster than they
// are.
static double start_weight(const OverlapFit *f, int c, double *room)
{
    int n = 0;
    for (int i = 0; i < f->x->n; i++) {
        double value = matrix_row(f->x, i)[c];
        if (value > 0)
            room[n++] = f->y[i] / value;
    }
    f->o->support[c] = n;
    sort_doubles(room, n);
    return n ? START_SHARE * room[n / 50] : 0;
}

// The diagonal of the inverse of the products, times the variance of the logarithms.
static void find_errors(OverlapFit *f)
{
    int m = f->m, n = f->x->n;
    double a[MOST * MOST] = {0}, b[MOST] = {0}, sum = 0;
    linearise(f);
    add_products(f, a, b);
    for (int k = 0; k < m; k++)
        a[k * m + k] += 1e-9;
    bool ok = LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', m, a, m) == 0 &&
              LAPACKE_dpotri(LAPACK_ROW_MAJOR, 'L', m, a, m) == 0;
    for (int i = 0; i < n; i++)
        sum += f->residual[i] * f->residual[i];
    f->o->rms = n ? sqrt(sum / n) : 0;
    for (int c = 0; c < f->o->d; c++)
        f->o->error[c] =
            ok ? f->o->weight[c] * sqrt(sum / MAX(n - m, 1) * a[c * m + c]) : INFINITY;
}

void overlap_fit(Overlap *o, const Matrix *x, const double *idle, const double *y)
{
    size_t n = (size_t)x->n + 1;
    OverlapFit f = {.o = o, .x = x, .idle = idle, .y = y, .m = o->d + FREE};
    f.jacobian = xcalloc(n * (size_t)f.m, sizeof *f.jacobian);
    f.residual = xcalloc(n, sizeof *f.residual);
    o->rows = x->n;
    o->power = 2;
    o->drain = 0.2;
    for (int c = 0; c < o->d; c++)
        o->weight[c] = start_weight(&f, c, f.residual);
    double damping = 1e-2, least = loss(&f);
    for (int round = 0; round < ROUNDS && improve(&f, &damping, &least); round++)
        ;
    find_errors(&f);
    free(f.jacobian);
    free(f.residual);
}
