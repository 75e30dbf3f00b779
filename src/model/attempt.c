// SPDX-License-Identifier: Apache-2.0
//
// Times enter by their logarithm, so that errors are relative (paper 002, section 5.2).
//
// Beyond 002, which leaves points that fail out of its training and can so end with a
// second stage of nothing else: whether a point runs is learnt as a number, 1 or 0, and a
// point of less than a half is doubted. The paper's own network learns that, whatever kind
// predicts the times: limits on groups and on local memory are straight lines in logarithms
// of sizes, and it is right about 99.7 % of points on an H200 where half of them fail, in a
// sixth of the time of a deeper one (99.9 %).
#include "model/attempt.h"

#include <math.h>
#include <stdlib.h>

static const double TRUSTED = 0.5;

static const ModelKind *failures(void)
{
    return model_find("ann");
}

bool attempt_ran(double cost)
{
    return isfinite(cost) && cost > 0;
}

// Fits the logarithms of the costs of the rows that ran if `times`; otherwise it fits
// whether a row ran, for all rows.
static void *fit(const ModelKind *kind, const Matrix *x, const double *cost, bool times,
                 uint64_t seed)
{
    AutoMatrix used = matrix_new(x->n, x->d);
    AUTO_FREE double *y = xcalloc((size_t)x->n + 1, sizeof *y);
    used.n = 0;
    for (int i = 0; i < x->n; i++) {
        if (times && !attempt_ran(cost[i]))
            continue;
        for (int c = 0; c < x->d; c++)
            matrix_row(&used, used.n)[c] = matrix_row(x, i)[c];
        y[used.n++] = times ? log(cost[i]) : attempt_ran(cost[i]);
    }
    void *made = used.n ? kind->fit(&used, y, seed) : NULL;
    used.n = x->n;
    return made;
}

Attempts attempts_fit(const ModelKind *kind, const Matrix *x, const double *cost,
                      uint64_t seed)
{
    int good = 0;
    for (int i = 0; i < x->n; i++)
        good += attempt_ran(cost[i]);
    Attempts made = {.kind = kind};
    if (good)
        made.time = fit(kind, x, cost, true, seed);
    if (good < x->n)
        made.runs = fit(failures(), x, cost, false, seed + 1);
    return made;
}

void attempts_free(Attempts *attempts)
{
    if (attempts->time)
        attempts->kind->free(attempts->time);
    if (attempts->runs)
        failures()->free(attempts->runs);
    *attempts = (Attempts){0};
}

void attempts_predict(const Attempts *attempts, const Matrix *x, double *time,
                      double *doubt)
{
    for (int i = 0; i < x->n; i++) {
        time[i] = 0;
        doubt[i] = 1;
    }
    if (attempts->time)
        attempts->kind->predict(attempts->time, x, time);
    if (attempts->runs)
        failures()->predict(attempts->runs, x, doubt);
    for (int i = 0; i < x->n; i++)
        doubt[i] = doubt[i] >= TRUSTED ? 0 : 1 - doubt[i];
}

static int by_promise(const void *a, const void *b)
{
    const AttemptRank *x = a, *y = b;
    if (x->doubt != y->doubt)
        return x->doubt < y->doubt ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

void attempts_sort(AttemptRank *rank, int n)
{
    qsort(rank, (size_t)n, sizeof *rank, by_promise);
}
