// SPDX-License-Identifier: Apache-2.0
//
// Picks among timed points; see picks.h.

#include "evaluate/picks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Judging ---------------------------------------------------------------------------------

typedef struct {
    double first, five, rho;
} Judged;

// False: too few of its points ran.
static bool judge(const Sweep *s, const SweepRun *run, const double *before, Judged *judged)
{
    AUTO_FREE Numbered *order = xcalloc((size_t)run->n + 1, sizeof *order);
    double *a = xcalloc((size_t)run->n + 1, sizeof *a),
           *b = xcalloc((size_t)run->n + 1, sizeof *b);
    int n = 0;
    *judged = (Judged){INFINITY, INFINITY, 0};
    for (int i = 0; i < run->n; i++) {
        int row = run->first + i;
        order[i] = (Numbered){isnan(before[row]) ? INFINITY : before[row], row};
        if (isfinite(order[i].value) && isfinite(s->ns[row])) {
            a[n] = before[row];
            b[n++] = s->ns[row];
        }
    }
    sort_numbered(order, run->n);
    for (int i = 0; i < MIN(run->n, 5); i++) {
        double ratio = s->ns[order[i].number] / run->best_ns;
        judged->first = i ? judged->first : ratio;
        judged->five = fmin(judged->five, ratio);
    }
    judged->rho = metric_spearman(a, b, n);
    free(a);
    free(b);
    return n >= PICKS_LEAST;
}

static double quantile(double *at, int n, double share)
{
    sort_doubles(at, n);
    return n ? at[(int)(share * (n - 1) + 0.5)] : NAN;
}

static double share_within(const double *x, int n, double most)
{
    int within = 0;
    for (int i = 0; i < n; i++)
        within += x[i] <= most;
    return (double)within / MAX(n, 1);
}

Picks picks_of(const Sweep *s, const double *before, int class)
{
    size_t room = (size_t)s->runs.len + 1;
    double *first = xcalloc(room, sizeof *first), *five = xcalloc(room, sizeof *five),
           rho = 0;
    int n = 0, ranked = 0;
    VEC_EACH_REF(const SweepRun *, run, &s->runs) {
        Judged judged;
        if ((class >= 0 && run->class_number != class) || !judge(s, run, before, &judged))
            continue;
        first[n] = judged.first;
        five[n++] = judged.five;
        rho += isfinite(judged.rho) ? judged.rho : 0;
        ranked += isfinite(judged.rho);
    }
    Picks picks = {n,
                   quantile(first, n, 0.5),
                   quantile(first, n, 0.9),
                   quantile(five, n, 0.5),
                   quantile(five, n, 0.9),
                   share_within(first, n, 1.01),
                   share_within(first, n, 1.05),
                   rho / MAX(ranked, 1)};
    free(first);
    free(five);
    return picks;
}

// Learning -----------------------------------------------------------------------------

static const double MOST_SLOWNESS = 3; // its logarithm; what is worse is bad enough

static bool is_usable(const Sweep *s, int row)
{
    return s->known[row] && isfinite(s->ns[row]);
}

// How much slower a row is than predicted. The mean of its run is taken off later: what all
// points of a program share decides nothing.
static double slowness(const Sweep *s, int row)
{
    return log(s->ns[row] * 1e-9 / s->predicted[row]);
}

static double mean_slowness(const Sweep *s, const SweepRun *run)
{
    double sum = 0;
    int n = 0;
    for (int row = run->first; row < run->first + run->n; row++)
        if (is_usable(s, row)) {
            sum += slowness(s, row);
            n++;
        }
    return n ? sum / n : 0;
}

static void keep_terms(const Matrix *x, TermRange terms)
{
    const int shares = TERMS - FEATURES;
    for (int i = 0; i < x->n; i++)
        for (int t = 0; t < TERMS; t++)
            if (t < terms.from || t >= terms.to ||
                (t >= shares && feature_info[t - shares].subject == terms.without))
                matrix_row(x, i)[t] = 0;
}

Model *picks_fit(const Sweep *s, const char *const *without, int nwithout, TermRange terms,
                 uint64_t seed)
{
    int *row = xcalloc((size_t)s->n + 1, sizeof *row), n = 0;
    AUTO_FREE double *y = xcalloc((size_t)s->n + 1, sizeof *y);
    const char *name[TERMS];
    VEC_EACH_REF(const SweepRun *, run, &s->runs) {
        double mean = mean_slowness(s, run);
        if (FIND_TEXT(without, nwithout, run->class) >= 0)
            continue;
        for (int i = run->first; i < run->first + run->n; i++)
            if (is_usable(s, i)) {
                row[n] = i;
                y[n++] = fmin(slowness(s, i) - mean, MOST_SLOWNESS);
            }
    }
    for (int t = 0; t < TERMS; t++)
        name[t] = terms_name(t);
    AutoMatrix x = matrix_select(&s->term, row, n);
    keep_terms(&x, terms);
    Model *model = model_fit(model_find("boost"), &x, y, seed, name,
                             s->fingerprint ? s->fingerprint : "");
    free(row);
    return model;
}

void picks_predict(const Sweep *s, const Model *model, const char *const *class, int nclass,
                   TermRange terms, double *seconds)
{
    VEC_EACH_REF(const SweepRun *, run, &s->runs) {
        if (FIND_TEXT(class, nclass, run->class) < 0)
            continue;
        Matrix x = matrix_select(&s->term, &s->row[run->first], run->n);
        keep_terms(&x, terms);
        model_predict(model, &x, seconds + run->first);
        for (int i = run->first; i < run->first + run->n; i++)
            seconds[i] = s->known[i] ? s->predicted[i] * exp(seconds[i]) : NAN;
        matrix_free(&x);
    }
}
