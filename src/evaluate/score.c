// SPDX-License-Identifier: Apache-2.0
//
// The methodology (replay.h) step by step:
//   - the cutoff, the expected number of random evaluations until a share of the way from
//   the
//     median to the best is gone, gives the times at which the budget starts and ends;
//   - the baseline is the expected best of random search without replacement, smoothed by
//     Fritsch and Carlson's monotone cubics (1980) with the slopes of Fritsch and Butland;
//   - the curve of a strategy is the mean of isotonic regressions of its ranks over time,
//   on
//     bootstrap samples of all steps of all runs.
//
// Where the authors' code differs from their text it follows the code, with one exception:
// a budget of fewer than two evaluations is widened up to the whole space, not up to the
// value of the objective. Their resampling is not seeded, so scores agree to about 0.01.
#include "evaluate/replay.h"

#include <math.h>
#include <stdlib.h>

static const double START = 0.01, END = 0.95, LIMIT = 1.1;

static double median(const double *sorted, int n)
{
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

// Budget --------------------------------------------------------------------------------

// Random evaluations expected to go a share of the way from the median to the best.
static int cutoff_evals(const ScoreSpace *s, double share)
{
    double best = s->sorted[0], middle = median(s->sorted, s->nvalid);
    double target = best + (middle - best) * (1 - share);
    int worse = 0; // configurations that do not reach the target
    while (worse < s->nvalid - 1 && s->sorted[s->nvalid - 1 - worse] > target)
        worse++;
    if (s->sorted[s->nvalid - 1 - worse] == best && share < 1 && worse > 0)
        worse--;
    return (int)ceil((double)worse / (s->nvalid + 1 - worse));
}

static void set_budget(ScoreSpace *s, double *cost_s, int n)
{
    s->start_evals = cutoff_evals(s, START);
    s->end_evals = cutoff_evals(s, END);
    if (s->end_evals - s->start_evals < 2) {
        int wider = s->start_evals == 0 ? 2 : 1;
        s->end_evals = MIN(MAX(cutoff_evals(s, 1), 2), s->end_evals + wider);
        s->start_evals -= s->start_evals > 0;
    }
    sort_doubles(cost_s, n);
    s->start_s = s->start_evals * median(cost_s, n);
    s->end_s = s->end_evals * median(cost_s, n);
    s->limit_s = LIMIT * s->end_s;
}

static double moment(const ScoreSpace *s, int i)
{
    return s->start_s + (s->end_s - s->start_s) * i / (SCORE_POINTS - 1);
}

// Baseline ------------------------------------------------------------------------------

// Expected best of k random draws without replacement: the one at the expected rank.
static double random_best(const ScoreSpace *s, int k)
{
    double rank = rint(k * (s->nvalid + 1.0) / (k + 1.0));
    return s->sorted[s->nvalid - 1 - (int)fmin(s->nvalid - 1, rank)];
}

// The slope at an end, from its interval and the next.
static double end_slope(double h0, double h1, double m0, double m1)
{
    double d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1);
    if (d * m0 <= 0)
        return 0;
    return m0 * m1 <= 0 && fabs(d) > 3 * fabs(m0) ? 3 * m0 : d;
}

static void set_slopes(const double *x, const double *y, double *slope, int n)
{
    for (int i = 1; i < n - 1; i++) {
        double h0 = x[i] - x[i - 1], h1 = x[i + 1] - x[i];
        double m0 = (y[i] - y[i - 1]) / h0, m1 = (y[i + 1] - y[i]) / h1;
        double w0 = 2 * h1 + h0, w1 = h1 + 2 * h0;
        slope[i] = m0 * m1 <= 0 ? 0 : (w0 + w1) / (w0 / m0 + w1 / m1);
    }
    double m = (y[1] - y[0]) / (x[1] - x[0]);
    slope[0] = slope[n - 1] = m;
    if (n == 2)
        return;
    slope[0] = end_slope(x[1] - x[0], x[2] - x[1], m, (y[2] - y[1]) / (x[2] - x[1]));
    slope[n - 1] = end_slope(x[n - 1] - x[n - 2], x[n - 2] - x[n - 3],
                             (y[n - 1] - y[n - 2]) / (x[n - 1] - x[n - 2]),
                             (y[n - 2] - y[n - 3]) / (x[n - 2] - x[n - 3]));
}

static double hermite(const double *x, const double *y, const double *slope, int i,
                      double at)
{
    double h = x[i + 1] - x[i], t = (at - x[i]) / h;
    return y[i] * (1 + 2 * t) * (1 - t) * (1 - t) + slope[i] * h * t * (1 - t) * (1 - t) +
           y[i + 1] * t * t * (3 - 2 * t) + slope[i + 1] * h * t * t * (t - 1);
}

// Distinct numbers of evaluations over the moments, joined smoothly.
static void set_baseline(ScoreSpace *s)
{
    double x[SCORE_POINTS], y[SCORE_POINTS], slope[SCORE_POINTS], evals[SCORE_POINTS];
    int n = 0;
    for (int i = 0; i < SCORE_POINTS; i++) {
        evals[i] = rint(fmax(moment(s, i) / s->mean_s, 1));
        s->baseline[i] = random_best(s, (int)evals[i]);
        if (n == 0 || evals[i] > x[n - 1]) {
            x[n] = evals[i];
            y[n++] = s->baseline[i];
        }
    }
    if (n < 2)
        return;
    set_slopes(x, y, slope, n);
    for (int i = 0, k = 0; i < SCORE_POINTS; i++) {
        double at = x[0] + (x[n - 1] - x[0]) * i / (SCORE_POINTS - 1);
        while (k < n - 2 && at >= x[k + 1])
            k++;
        s->baseline[i] = hermite(x, y, slope, k, at);
    }
}

void score_release(ScoreSpace *space)
{
    free(space->sorted);
    *space = (ScoreSpace){0};
}

bool score_space(ScoreSpace *s, const double *loss, const double *cost_s, int n)
{
    *s = (ScoreSpace){.n = n};
    s->sorted = xcalloc((size_t)n + 1, sizeof *s->sorted);
    double *cost = xcalloc((size_t)n + 1, sizeof *cost), valid_s = 0, failed_s = 0;
    for (int i = 0; i < n; i++) {
        cost[i] = cost_s[i];
        *(isnan(loss[i]) ? &failed_s : &valid_s) += cost_s[i];
        if (!isnan(loss[i]))
            s->sorted[s->nvalid++] = loss[i];
    }
    sort_doubles(s->sorted, s->nvalid);
    bool ok = s->nvalid > 2 && s->sorted[0] < median(s->sorted, s->nvalid);
    if (ok) {
        int failed = n - s->nvalid;
        s->mean_s = valid_s / s->nvalid;
        if (failed)
            s->mean_s += (double)failed / n * (failed_s / failed);
        set_budget(s, cost, n);
        ok = s->end_s > s->start_s && s->mean_s > 0;
    }
    if (ok)
        set_baseline(s);
    else
        score_release(s);
    free(cost);
    return ok;
}

// The curve of a strategy --------------------------------------------------------------

typedef struct {
    double at_s, rank;
} Sample;

typedef struct {
    double x, y, weight; // x: the first and the last of what is pooled
    double last;
} PooledBlock;

static int compare_samples(const void *p, const void *q)
{
    const Sample *a = p, *b = q;
    return compare_doubles(&a->at_s, &b->at_s);
}

// The place of a loss among the valid ones, the first of equal ones.
static int rank_of(const ScoreSpace *s, double loss)
{
    int lo = 0, hi = s->nvalid - 1;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (s->sorted[mid] < loss)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

// All steps near enough to the budget's time, in the order of time. Owner: the caller.
static Sample *collect(const ScoreSpace *s, const ScoreRun *run, int nrun, int *n)
{
    size_t total = 0, longest = 1;
    for (int i = 0; i < nrun; i++) {
        total += (size_t)run[i].n;
        longest = MAX(longest, (size_t)run[i].n);
    }
    double margin = 0.1 + 0.25 / (double)longest;
    double from = s->start_s * (1 - margin), to = s->end_s * (1 + margin);
    Sample *sample = xcalloc(total + 1, sizeof *sample);
    *n = 0;
    for (int i = 0; i < nrun; i++)
        for (int k = 0; k < run[i].n; k++)
            if (run[i].step[k].at_s >= from && run[i].step[k].at_s <= to)
                sample[(*n)++] =
                    (Sample){run[i].step[k].at_s, rank_of(s, run[i].step[k].best)};
    qsort(sample, (size_t)*n, sizeof *sample, compare_samples);
    return sample;
}

// Pools neighbours until their means fall; samples of weight 0 are absent.
static int pool(const Sample *sample, const int *weight, int n, PooledBlock *block)
{
    int blocks = 0;
    for (int i = 0; i < n; i++) {
        if (!weight[i])
            continue;
        PooledBlock own = {sample[i].at_s, sample[i].rank, weight[i], sample[i].at_s};
        if (blocks > 0 && block[blocks - 1].last == own.x) { // same time: one sample
            blocks--;
            own.x = block[blocks].x;
            own.y = (own.y * own.weight + block[blocks].y * block[blocks].weight) /
                    (own.weight + block[blocks].weight);
            own.weight += block[blocks].weight;
        }
        for (; blocks > 0 && block[blocks - 1].y <= own.y; blocks--) {
            const PooledBlock *b = &block[blocks - 1];
            own.x = b->x;
            own.y = (own.y * own.weight + b->y * b->weight) / (own.weight + b->weight);
            own.weight += b->weight;
        }
        block[blocks++] = own;
    }
    return blocks;
}

// Adds the regression at each moment: level in a block, straight lines between blocks.
static void add_curve(const ScoreSpace *s, const PooledBlock *block, int n, double *sum)
{
    for (int i = 0, k = 0; i < SCORE_POINTS; i++) {
        double at = moment(s, i);
        while (k < n - 1 && at >= block[k + 1].x)
            k++;
        const PooledBlock *b = &block[k];
        double share = 0;
        if (k < n - 1 && at > b->last)
            share = (at - b->last) / (b[1].x - b->last);
        sum[i] += share > 0 ? b->y + share * (b[1].y - b->y) : b->y;
    }
}

static void bootstrap(const ScoreSpace *s, const Sample *sample, int n, int nrun, Rng *rng,
                      double rank[SCORE_POINTS])
{
    int times = MAX(nrun, 3), drawn = MAX((int)(n / sqrt(times)), 1);
    AUTO_FREE int *weight = xcalloc((size_t)n, sizeof *weight);
    AUTO_FREE PooledBlock *block = xcalloc((size_t)n + 1, sizeof *block);
    for (int i = 0; i < SCORE_POINTS; i++)
        rank[i] = 0;
    for (int t = 0; t < times; t++) {
        for (int i = 0; i < n; i++)
            weight[i] = 0;
        for (int i = 0; i < drawn; i++)
            weight[rng_below(rng, (uint64_t)n)]++;
        add_curve(s, block, pool(sample, weight, n, block), rank);
    }
    for (int i = 0; i < SCORE_POINTS; i++)
        rank[i] /= times;
}

// When most runs have ended: the end after the median of the ends. INFINITY if there is
// none.
static double real_end(const ScoreRun *run, int nrun)
{
    double *end = xcalloc((size_t)nrun + 1, sizeof *end), found = INFINITY;
    int n = 0;
    for (int i = 0; i < nrun; i++)
        if (run[i].n)
            end[n++] = run[i].step[run[i].n - 1].at_s;
    sort_doubles(end, n);
    for (int i = n - 1; i >= 0 && end[i] > median(end, n); i--)
        found = end[i];
    free(end);
    return found;
}

static void set_score(const ScoreSpace *s, const double *rank, double stop_s, Score *score)
{
    double frozen = NAN, square = 0;
    score->mean = 0;
    for (int i = 0; i < SCORE_POINTS; i++) {
        double found = s->sorted[(int)fmin(fmax(rint(rank[i]), 0), s->nvalid - 1)];
        if (isnan(frozen) && moment(s, i) > stop_s)
            frozen = found;
        if (!isnan(frozen))
            found = frozen;
        double room = s->sorted[0] - s->baseline[i];
        score->at[i] = room == 0 ? found == s->sorted[0] : (found - s->baseline[i]) / room;
        score->mean += score->at[i] / SCORE_POINTS;
    }
    for (int i = 0; i < SCORE_POINTS; i++)
        square += (score->at[i] - score->mean) * (score->at[i] - score->mean);
    score->spread = sqrt(square / SCORE_POINTS);
    score->end = score->at[SCORE_POINTS - 1];
}

bool score_runs(const ScoreSpace *s, const ScoreRun *run, int nrun, uint64_t seed,
                Score *score)
{
    int n;
    double rank[SCORE_POINTS];
    AUTO_FREE Sample *sample = collect(s, run, nrun, &n);
    Rng rng = rng_new(seed);
    if (n)
        bootstrap(s, sample, n, nrun, &rng, rank);
    if (n)
        set_score(s, rank, real_end(run, nrun), score);
    return n > 0;
}
