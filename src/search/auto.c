// SPDX-License-Identifier: Apache-2.0
//
// The default, led by a Gaussian process of the logarithm of the costs: the next point is
// that of a pool of candidates which promises the largest expected improvement (Jones,
// Schonlau and Welch, 1998). The pool is the neighbours of the best points and a random
// sample of the space, or all of a small space; it is never more than POOL_MOST points, so
// that a question costs the same however large the space is.
//
// The first points are spread out, and rather in the middle of the space than at its edges:
// extreme block and tile sizes are mostly slow. Costs above a quantile of those told count
// as that quantile, and so do failures: the model need not tell bad points from worse ones.
//
// The model sees at most ROWS_MOST points: the best ones and a sample of the others, chosen
// anew whenever it is full or a third more are known; then its rates are improved too. A
// point that was given out and is not told yet counts as what the model expected of it.
//
// Where times are predicted before points run, it learns the logarithm of measured over
// predicted: a prediction decides where no measurement is near, and its errors are learnt.
// The first points are those of the best predictions, and the pool is of those that are
// ranked and neighbours of the best points, but for what cannot be made. A failure, or a
// cost above the quantile, then says: as slow as that, and no faster than is usual for its
// prediction. Predictions are dropped for the rest of the search where they and the costs
// have no ranks in common (Spearman's correlation is not positive), and a model of the
// costs alone has a higher posterior density, by strong evidence. The ranks alone would not
// tell: what is learnt on top of predictions may turn their order round.
//
// It does not model the chance to fail by itself, nor noise that differs between points.
#include "model/gp.h"
#include "model/model.h"
#include "search/encode.h"
#include "search/moves.h"
#include "search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST = 6,       // spread points before the model is asked
    FIRST_TRIED = 8, // candidates for each of them
    ROWS_KEPT = 112, // rows that are left when the model is full
    ROWS_MOST = 168,
    POOL_SAMPLE = 400, // random candidates
    POOL_MOST = 640,   // with neighbours
    CENTRES = 3,       // points whose neighbours are candidates
    SWEEPS = 2,
    NEAR = 48,   // neighbours of a point that are predicted at once
    JUDGED = 12, // points that ran by which predictions are judged first
};
static const double GROWTH = 1.3, CEILING = 0.8;
static const double STRONG = 6; // evidence, a logarithm; from 5 on it is very strong
                                // (Kass and Raftery, 1995)

typedef struct {
    Point point;
    double cost, predicted;
} ToldPoint;

typedef struct {
    Point point;
    double expected; // what the model said of its target; NAN: it was not asked
    bool counted;    // the model has it as a row
} PendingPoint;

typedef struct {
    Encoding *code;
    Gp *gp;
    GpPool *pool;
    Point *candidate;  // of the pool
    double *predicted; // of each; 0: nothing predicts
    double *row;       // of candidates to be added
    int nrow;
    Numbers pooled; // hashes of the candidates
    VEC(ToldPoint) told;
    int nok;
    VEC(PendingPoint) pending;
    int fit_at;     // told points at which the model is made anew
    bool dropped;   // predictions told less than nothing
    bool stale;     // it has expected costs of points that are told now
    double ceiling; // costs above count as this
    double usual; // logarithm of the ratio of cost and prediction; -INFINITY: none predicts
} Surrogate;

static void open_auto(Search *search)
{
    Surrogate *s = search->state;
    s->code = encode_new(search->space);
    s->gp = gp_new(s->code->d, s->code->group, s->code->ngroup, ROWS_MOST);
    s->pool = gp_pool_new(s->gp, POOL_MOST);
    s->candidate = xcalloc(POOL_MOST, sizeof *s->candidate);
    s->predicted = xcalloc(POOL_MOST, sizeof *s->predicted);
    s->row = xcalloc((size_t)(POOL_MOST * s->code->d) + 1, sizeof *s->row);
    s->fit_at = FIRST;
    s->usual = -INFINITY;
}

static const Predictions *predictions_of(const Search *search)
{
    const Surrogate *s = search->state;
    return s->dropped ? NULL : search->predictions;
}

static void predict(const Search *search, const Point *point, int n, double *predicted)
{
    const Predictions *by = predictions_of(search);
    if (by)
        by->times(by->user, point, n, predicted);
    else
        memset(predicted, 0, sizeof *predicted * (size_t)n);
}

// The first points ------------------------------------------------------------------------

static double square_distance(const double *a, const double *b, int d)
{
    double sum = 0;
    for (int c = 0; c < d; c++)
        sum += (a[c] - b[c]) * (a[c] - b[c]);
    return sum;
}

// How near the closest of the last points given out is.
static double isolation(const Surrogate *s, const double *row)
{
    double other[ENCODE_COLUMNS_MOST], least = INFINITY;
    for (int i = MAX(0, s->told.len - 64); i < s->told.len; i++) {
        encode_point(s->code, &s->told.at[i].point, other);
        least = fmin(least, square_distance(row, other, s->code->d));
    }
    for (int i = MAX(0, s->pending.len - 64); i < s->pending.len; i++) {
        encode_point(s->code, &s->pending.at[i].point, other);
        least = fmin(least, square_distance(row, other, s->code->d));
    }
    return isfinite(least) ? least : 0;
}

// Far from the points so far, and near the middle.
static void spread(Search *search, Point *point)
{
    const Surrogate *s = search->state;
    double row[ENCODE_COLUMNS_MOST], middle[ENCODE_COLUMNS_MOST], cost, best = -INFINITY;
    Point tried;
    for (int c = 0; c < s->code->d; c++)
        middle[c] = 0.5;
    for (int i = 0; i < FIRST_TRIED; i++) {
        space_sample(search->space, &search->rng, &tried);
        encode_point(s->code, &tried, row);
        double merit = isolation(s, row) - square_distance(row, middle, s->code->d);
        if (search_known(search, &tried, &cost))
            merit -= 1e9;
        if (merit > best) {
            best = merit;
            *point = tried;
        }
    }
}

// The best predicted of those that were not given out; false: there is none.
static bool lead(const Search *search, Point *point)
{
    double cost;
    for (int i = 0; i < search->nranking; i++)
        if (!search_known(search, &search->ranking[i], &cost)) {
            *point = search->ranking[i];
            return true;
        }
    return false;
}

// The pool --------------------------------------------------------------------------------

static void add_candidate(Search *search, const Point *point)
{
    Surrogate *s = search->state;
    int at = s->pool->n + s->nrow;
    double cost;
    if (at >= POOL_MOST || search_known(search, point, &cost) ||
        !numbers_put(&s->pooled, point_hash(search->space, point), 0))
        return;
    s->candidate[at] = *point;
    encode_point(s->code, point, s->row + (size_t)(s->nrow++ * s->code->d));
}

static void add_neighbours(Search *search, const Point *of)
{
    Point near[MOVES_MOST];
    int n = move_all(search->space, &search->rng, of, near);
    for (int i = 0; i < (predictions_of(search) ? MIN(n, NEAR) : n); i++)
        add_candidate(search, &near[i]);
}

static void push_candidates(Search *search)
{
    Surrogate *s = search->state;
    int d = s->code->d, from = s->pool->n, n = 0;
    Point *point = s->candidate + from;
    double *predicted = s->predicted + from;
    predict(search, point, s->nrow, predicted);
    for (int i = 0; i < s->nrow; i++) {
        if (!isfinite(predicted[i]))
            continue;
        point[n] = point[i];
        predicted[n] = predicted[i];
        memmove(s->row + (size_t)(n++ * d), s->row + (size_t)(i * d),
                sizeof *s->row * (size_t)d);
    }
    gp_pool_push(s->pool, s->gp, s->row, n);
    s->nrow = 0;
}

// Half of them the best that are left, the others at random.
static void add_ranked(Search *search)
{
    const Surrogate *s = search->state;
    for (int i = 0; i < search->nranking && s->nrow < POOL_MOST - POOL_SAMPLE / 2; i++)
        add_candidate(search, &search->ranking[i]);
    for (int i = 0; i < POOL_SAMPLE / 2 && search->nranking; i++)
        add_candidate(
            search, &search->ranking[rng_below(&search->rng, (uint64_t)search->nranking)]);
}

// All that is left of a small space, else a sample.
static void add_sample(Search *search)
{
    double count = space_count(search->space);
    Point point;
    if (count <= POOL_MOST) {
        for (uint64_t i = 0; i < (uint64_t)count; i++) {
            space_point(search->space, i, &point);
            add_candidate(search, &point);
        }
        return;
    }
    for (int i = 0; i < POOL_SAMPLE; i++) {
        space_sample(search->space, &search->rng, &point);
        add_candidate(search, &point);
    }
}

// The model -------------------------------------------------------------------------------

static int compare(const void *p, const void *q)
{
    const ToldPoint *a = p, *b = q;
    return compare_doubles(&a->cost, &b->cost);
}

// What the model learns of a point: the logarithm of its cost over what was predicted.
static double target(const Surrogate *s, double cost, double predicted)
{
    if (!isfinite(predicted))
        return s->usual;
    double most = log(fmax(s->ceiling, 1e-9)) - predicted;
    return fmin(log(fmax(cost, 1e-9)) - predicted, fmax(most, s->usual));
}

// The median of it, of points that came through.
static void find_usual(Surrogate *s, const ToldPoint *sorted)
{
    AUTO_FREE double *ratio = xcalloc((size_t)s->nok + 1, sizeof *ratio);
    int n = 0;
    for (int i = 0; i < s->nok; i++)
        if (isfinite(sorted[i].predicted))
            ratio[n++] = log(fmax(sorted[i].cost, 1e-9)) - sorted[i].predicted;
    qsort(ratio, (size_t)n, sizeof *ratio, compare_doubles);
    s->usual = n ? ratio[n / 2] : 0;
}

// The best half of the rows, and others at random behind it; sorted holds all told points.
static int choose_rows(Search *search, ToldPoint *sorted)
{
    const Surrogate *s = search->state;
    int rows = MIN(s->told.len, ROWS_KEPT);
    for (int i = rows == s->told.len ? rows : rows / 2; i < rows; i++) {
        int k = i + (int)rng_below(&search->rng, (uint64_t)(s->told.len - i));
        ToldPoint swap = sorted[i];
        sorted[i] = sorted[k];
        sorted[k] = swap;
    }
    return rows;
}

static void set_rows(Surrogate *s, const ToldPoint *told, int n)
{
    int d = s->code->d;
    double *x = xcalloc((size_t)(n * d) + 1, sizeof *x), y[ROWS_MOST];
    for (int i = 0; i < n; i++) {
        encode_point(s->code, &told[i].point, x + (size_t)(i * d));
        y[i] = target(s, told[i].cost, told[i].predicted);
    }
    gp_set(s->gp, x, y, n);
    free(x);
}

// Whether predictions and costs have their ranks in common; true as long as few ran.
static bool are_ranks_alike(const Surrogate *s)
{
    AUTO_FREE double *cost = xcalloc(2 * (size_t)s->told.len + 1, sizeof *cost);
    double *predicted = cost + s->told.len;
    int n = 0;
    for (int i = 0; i < s->told.len; i++)
        if (isfinite(s->told.at[i].cost) && isfinite(s->told.at[i].predicted)) {
            cost[n] = s->told.at[i].cost;
            predicted[n++] = s->told.at[i].predicted;
        }
    return n < JUDGED || metric_spearman(predicted, cost, n) > 0;
}

// Drops predictions if the costs are likelier without them; density: that of the rows with
// them, which the model has.
static void judge_predictions(Surrogate *s, const ToldPoint *row, int n, double density)
{
    AUTO_FREE ToldPoint *plain = xcalloc((size_t)n + 1, sizeof *plain);
    const Gp before = *s->gp;
    double usual = s->usual;
    for (int i = 0; i < n; i++)
        plain[i] = (ToldPoint){row[i].point, row[i].cost, 0};
    s->usual = -INFINITY;
    set_rows(s, plain, n);
    s->dropped = gp_tune(s->gp, SWEEPS) > density + STRONG;
    for (int i = 0; s->dropped && i < s->told.len; i++)
        s->told.at[i].predicted = 0;
    for (int i = 0; s->dropped && i < s->pending.len; i++)
        s->pending.at[i].expected = NAN; // that was a ratio
    if (s->dropped)
        return;
    s->usual = usual;
    memcpy(s->gp->rate, before.rate, sizeof before.rate);
    s->gp->noise = before.noise;
    set_rows(s, row, n);
}

static void fit(Search *search)
{
    Surrogate *s = search->state;
    AUTO_FREE ToldPoint *sorted = xcalloc((size_t)s->told.len, sizeof *sorted);
    bool grown = s->told.len >= s->fit_at;
    memcpy(sorted, s->told.at, sizeof *sorted * (size_t)s->told.len);
    qsort(sorted, (size_t)s->told.len, sizeof *sorted, compare);
    s->ceiling = fmax(sorted[(int)((s->nok - 1) * CEILING)].cost, 1.001 * sorted[0].cost);
    if (predictions_of(search))
        find_usual(s, sorted);
    ToldPoint centre[CENTRES];
    int centres = MIN(CENTRES, s->nok);
    memcpy(centre, sorted, sizeof *sorted * (size_t)centres);
    int rows = choose_rows(search, sorted);
    set_rows(s, sorted, rows);
    if (grown) {
        double density = gp_tune(s->gp, SWEEPS);
        if (predictions_of(search) && !are_ranks_alike(s))
            judge_predictions(s, sorted, rows, density);
        s->fit_at = MAX((int)(GROWTH * s->told.len), s->told.len + 1);
    }
    gp_pool_clear(s->pool);
    numbers_release(&s->pooled);
    for (int i = 0; i < centres; i++)
        add_neighbours(search, &centre[i].point);
    (predictions_of(search) ? add_ranked : add_sample)(search);
    push_candidates(search);
    for (int i = 0; i < s->pending.len; i++)
        s->pending.at[i].counted = false;
    s->stale = false;
}

static void add_row(Surrogate *s, const Point *point, double y)
{
    double row[ENCODE_COLUMNS_MOST];
    encode_point(s->code, point, row);
    gp_add(s->gp, row, y);
    gp_pool_follow(s->pool, s->gp);
}

// Points that are out count as what was expected of them.
static void count_pending(Surrogate *s)
{
    for (int i = 0; i < s->pending.len && s->gp->n < ROWS_MOST; i++) {
        PendingPoint *p = &s->pending.at[i];
        if (p->counted)
            continue;
        p->counted = true;
        add_row(s, &p->point, isnan(p->expected) ? s->gp->mean : p->expected);
    }
}

static double normal_share(double u)
{
    return 0.5 * erfc(-u * M_SQRT1_2);
}

static double expected_improvement(double best, double mean, double variance)
{
    double sd = sqrt(fmax(variance, 1e-12)), u = (best - mean) / sd;
    static const double root = 0.39894228040143268; // 1/sqrt(2 pi)
    return sd * (u * normal_share(u) + root * exp(-u * u / 2));
}

static int choose_candidate(const Surrogate *s, double best_ns)
{
    double best = log(fmax(best_ns, 1e-9)), most = -INFINITY;
    int chosen = -1;
    for (int i = 0; i < s->pool->n; i++) {
        double mean = s->pool->mean[i] + s->predicted[i];
        double gain = expected_improvement(best, mean, s->pool->variance[i]);
        if (gain > most) {
            most = gain;
            chosen = i;
        }
    }
    return chosen;
}

// Asking and telling ---------------------------------------------------------------------

static bool give(Surrogate *s, const Point *point, double expected)
{
    VEC_PUSH(NULL, &s->pending, ((PendingPoint){*point, expected, false}));
    return true;
}

// Whether rows are in the way of points that are out, which are rows themselves once they
// are counted. Made anew, the model has at most ROWS_KEPT of the points told.
static bool is_crowded(const Surrogate *s)
{
    int counted = 0;
    for (int i = 0; i < s->pending.len; i++)
        counted += s->pending.at[i].counted;
    return s->gp->n + s->pending.len - counted > ROWS_MOST &&
           s->gp->n - counted > ROWS_KEPT;
}

static bool ask_auto(Search *search, Point *point)
{
    Surrogate *s = search->state;
    double cost;
    if (space_count(search->space) == 0)
        return false;
    if (s->nok && s->told.len >= FIRST) {
        if (s->told.len >= s->fit_at || s->stale || is_crowded(s))
            fit(search);
        count_pending(s);
        for (int i; (i = choose_candidate(s, search->best_ns)) >= 0;) {
            double expected = s->pool->mean[i];
            *point = s->candidate[i];
            s->candidate[i] = s->candidate[s->pool->n - 1];
            s->predicted[i] = s->predicted[s->pool->n - 1];
            gp_pool_swap(s->pool, i);
            if (!search_known(search, point, &cost))
                return give(s, point, expected);
        }
        s->stale = true; // the pool is empty
    }
    if (!lead(search, point))
        spread(search, point);
    return search_known(search, point, &cost) || give(s, point, NAN);
}

// Forgets that a point is out; whether the model has it as a row.
static bool take_back(Surrogate *s, const Space *space, const Point *point)
{
    for (int i = 0; i < s->pending.len; i++)
        if (point_equal(space, &s->pending.at[i].point, point)) {
            bool counted = s->pending.at[i].counted;
            s->pending.at[i] = s->pending.at[--s->pending.len];
            return counted;
        }
    return false;
}

static void tell_auto(Search *search, const Point *point, double cost)
{
    Surrogate *s = search->state;
    bool best = cost == search->best_ns;
    double predicted;
    predict(search, point, 1, &predicted);
    VEC_PUSH(NULL, &s->told, ((ToldPoint){*point, cost, predicted}));
    s->nok += isfinite(cost);
    s->stale |= take_back(s, search->space, point) || s->gp->n == ROWS_MOST;
    if (!s->gp->n || s->stale)
        return;
    add_row(s, point, target(s, cost, predicted));
    if (best) {
        add_neighbours(search, point);
        push_candidates(search);
    }
}

static void close_auto(Search *search)
{
    Surrogate *s = search->state;
    encode_free(s->code);
    gp_free(s->gp);
    gp_pool_free(s->pool);
    numbers_release(&s->pooled);
    free(s->candidate);
    free(s->predicted);
    free(s->row);
    free(s->told.at);
    free(s->pending.at);
}

const SearchKind search_auto = {
    .name = "auto",
    .doc = "the default: a Gaussian process of the costs so far, asked where most is to be "
           "gained",
    .learns = true,
    .state = sizeof(Surrogate),
    .open = open_auto,
    .ask = ask_auto,
    .tell = tell_auto,
    .close = close_auto,
};
