// SPDX-License-Identifier: Apache-2.0
//
// prototype
#include "search/search.h"

#include "model/gp.h"
#include "search/encode.h"
#include "search/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
static double env(const char *n, double d)
{
    const char *s = getenv(n);
    return s ? atof(s) : d;
}

enum { ROWS_MOST = 256, POOL_MOST = 1024, NEIGHBOURS_MOST = 512 };

typedef struct {
    Point point;
    double cost;
} Told;

typedef struct {
    Encoding *code;
    Gp *gp;
    GpPool *pool;
    Point *candidate; // of the pool
    Told *told;
    int ntold, cap, nok;
    int modelled; // told points that the model has seen
    int refit_at;
    int initial;
    Point best;
    double best_cost;
    double ceiling;
    double *wait;
    int nwait;
    Numbers inpool;
    bool stale;
    double best_y;
    double p_pool, p_init, p_kappa, p_refit, p_rows, p_sweeps, p_ei, p_clip, p_local,
        p_centre;
} Surrogate;

static void *open_surrogate(Search *search)
{
    Surrogate *s = xcalloc(1, sizeof *s);
    s->p_pool = env("POOL", 600);
    s->p_init = env("INIT", 8);
    s->p_kappa = env("KAPPA", 1);
    s->p_refit = env("REFIT", 1.3);
    s->p_rows = env("ROWS", 200);
    s->p_sweeps = env("SWEEPS", 2);
    s->p_ei = env("EI", 1);
    s->p_clip = env("CLIP", 0.75);
    s->p_local = env("LOCAL", 0.5);
    s->p_centre = env("CENTRE", 1);
    s->code = encode_new(search->space);
    s->gp = gp_new(s->code->d, s->code->group, s->code->ngroup, ROWS_MOST);
    s->pool = gp_pool_new(s->gp, POOL_MOST);
    s->candidate = xcalloc(POOL_MOST, sizeof *s->candidate);
    s->wait = xcalloc(POOL_MOST * 512, sizeof(double));
    s->best_cost = INFINITY;
    s->refit_at = (int)s->p_init;
    return s;
}

static int compare(const void *p, const void *q)
{
    double a = ((const Told *)p)->cost, b = ((const Told *)q)->cost;
    return (a > b) - (a < b);
}

static double target(const Surrogate *s, double cost)
{
    return log(fmax(fmin(cost, s->ceiling), 1e-30));
}

static void push(Surrogate *s, const Search *search, const Point *point)
{
    double cost, row[512];
    if (s->pool->n + s->nwait >= s->pool->cap || search_known(search, point, &cost))
        return;
    if (!numbers_put(&s->inpool, point_hash(search->space, point), 0))
        return;
    (void)row;
    s->candidate[s->pool->n + s->nwait] = *point;
    encode_point(s->code, point, s->wait + s->nwait++ * s->code->d);
}
static void flush(Surrogate *s)
{
    gp_pool_push(s->pool, s->gp, s->wait, s->nwait);
    s->nwait = 0;
}

static void push_neighbours(Surrogate *s, Search *search, const Point *of)
{
    Point near[NEIGHBOURS_MOST];
    int n = space_neighbours(search->space, of, false, near, NEIGHBOURS_MOST);
    if (n > NEIGHBOURS_MOST)
        n = NEIGHBOURS_MOST;
    for (int i = 0; i < n; i++)
        push(s, search, &near[i]);
}

static void refit(Surrogate *s, Search *search)
{
    // rows: the best half, and random others
    Told *sorted = xmalloc(sizeof *sorted * (size_t)s->ntold);
    memcpy(sorted, s->told, sizeof *sorted * (size_t)s->ntold);
    qsort(sorted, (size_t)s->ntold, sizeof *sorted, compare);
    int rows = MIN(s->ntold, (int)s->p_rows), best = rows == s->ntold ? rows : rows / 2;
    for (int i = best; i < rows; i++) {
        int k = i + (int)rng_below(&search->rng, (uint64_t)(s->ntold - i));
        Told swap = sorted[i];
        sorted[i] = sorted[k];
        sorted[k] = swap;
    }
    int ok = 0;
    while (ok < s->ntold && isfinite(s->told[ok].cost))
        ok++;
    Told *t2 = xmalloc(sizeof *t2 * (size_t)s->ntold);
    memcpy(t2, s->told, sizeof *t2 * (size_t)s->ntold);
    qsort(t2, (size_t)s->ntold, sizeof *t2, compare);
    s->ceiling = s->nok ? t2[(int)((s->nok - 1) * s->p_clip)].cost : 1;
    if (s->nok)
        s->ceiling = fmax(s->ceiling, t2[0].cost * 1.0001);
    free(t2);
    double *x = xmalloc(sizeof *x * (size_t)(rows * s->code->d)),
           *y = xmalloc(sizeof *y * (size_t)rows);
    for (int i = 0; i < rows; i++) {
        encode_point(s->code, &sorted[i].point, x + i * s->code->d);
        y[i] = target(s, sorted[i].cost);
    }
    gp_set(s->gp, x, y, rows);
    if (s->ntold <= 130)
        gp_tune(s->gp, (int)s->p_sweeps);
    free(x);
    free(y);
    gp_pool_clear(s->pool);
    numbers_release(&s->inpool);
    for (int i = 0; i < MIN(3, s->nok) && s->p_local > 0; i++)
        push_neighbours(s, search, &sorted[i].point);
    Point point;
    for (int i = 0; i < 2 * POOL_MOST && s->nwait < (int)s->p_pool; i++) {
        space_sample(search->space, &search->rng, &point);
        push(s, search, &point);
    }
    flush(s);
    free(sorted);
    s->refit_at = MAX((int)(s->p_refit * s->ntold), s->ntold + 1);
    s->refit_at = MIN(s->refit_at, s->ntold + ROWS_MOST - rows);
}

static double normal_cdf(double u)
{
    return 0.5 * erfc(-u * M_SQRT1_2);
}
static double acquisition(const Surrogate *s, int i)
{
    double sd = sqrt(fmax(s->pool->variance[i], 1e-12));
    if (!s->p_ei)
        return -(s->pool->mean[i] - s->p_kappa * sd);
    double u = (s->best_y - s->pool->mean[i]) / sd;
    return sd * (u * normal_cdf(u) + exp(-u * u / 2) * 0.3989422804);
}

static bool ask_surrogate(Search *search, Point *point)
{
    Surrogate *s = search->state;
    if (s->ntold < (int)s->p_init || !s->nok) {
        // candidates: the one nearest to centre among several and far from others
        Point p;
        double bestv = -INFINITY;
        if (space_count(search->space) < 1)
            return false;
        for (int i = 0; i < 8; i++) {
            space_sample(search->space, &search->rng, &p);
            double row[512], dist = 0;
            encode_point(s->code, &p, row);
            for (int c = 0; c < s->code->d; c++)
                dist += (row[c] - .5) * (row[c] - .5);
            double c2;
            if (search_known(search, &p, &c2))
                continue;
            double v = -dist * s->p_centre;
            double near = INFINITY;
            for (int k = 0; k < s->ntold; k++) {
                double q[512], e = 0;
                encode_point(s->code, &s->told[k].point, q);
                for (int c = 0; c < s->code->d; c++)
                    e += (row[c] - q[c]) * (row[c] - q[c]);
                near = fmin(near, e);
            }
            if (s->ntold)
                v += near * env("SPREAD", 1);
            if (v > bestv) {
                bestv = v;
                *point = p;
            }
        }
        if (bestv == -INFINITY)
            space_sample(search->space, &search->rng, point);
        return true;
    }
    if (s->ntold >= s->refit_at)
        refit(s, search);
    for (;;) {
        int pick = -1;
        double top = -INFINITY;
        s->best_y = target(s, s->best_cost);
        for (int i = 0; i < s->pool->n; i++) {
            double a = acquisition(s, i);
            if (a > top) {
                top = a;
                pick = i;
            }
        }
        if (pick < 0) {
            space_sample(search->space, &search->rng, point);
            s->refit_at = s->ntold + 1;
            return true;
        }
        *point = s->candidate[pick];
        s->candidate[pick] = s->candidate[s->pool->n - 1];
        gp_pool_swap(s->pool, pick);
        double c;
        if (!search_known(search, point, &c))
            return true;
    }
}

static void tell_surrogate(Search *search, const Point *point, double cost)
{
    Surrogate *s = search->state;
    if (s->ntold == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 64;
        s->told = xrealloc(s->told, sizeof *s->told * (size_t)s->cap);
    }
    s->told[s->ntold++] = (Told){*point, cost};
    s->nok += isfinite(cost);
    bool better = cost < s->best_cost;
    if (better) {
        s->best = *point;
        s->best_cost = cost;
    }
    if (s->gp->n && s->gp->n < ROWS_MOST && s->ntold < s->refit_at) {
        double row[512];
        encode_point(s->code, point, row);
        gp_add(s->gp, row, target(s, cost));
        gp_pool_follow(s->pool, s->gp);
        if (better && s->p_local > 0) {
            push_neighbours(s, search, point);
            flush(s);
        }
    }
}

static void close_surrogate(Search *search)
{
    Surrogate *s = search->state;
    encode_free(s->code);
    gp_free(s->gp);
    gp_pool_free(s->pool);
    free(s->candidate);
    free(s->told);
    free(s->wait);
    numbers_release(&s->inpool);
    free(s);
}

const SearchKind search_surrogate = {
    .name = "surrogate",
    .doc = "a Gaussian process of the costs, and where it expects to gain most",
    .open = open_surrogate,
    .ask = ask_surrogate,
    .tell = tell_surrogate,
    .close = close_surrogate,
};
