// SPDX-License-Identifier: Apache-2.0
//
// Two stages (paper 002, section 5): N points at random train a bag of networks (of two
// hidden layers, where 002 has one) on the logarithm of their times; the M points it
// predicts to be fastest come second. With budget left, more rounds follow, each after
// training anew on everything told and, so that training does not cost more than trials,
// half as many points as that.
//
// Points that fail train a bag of their own that tells whether a point will run, and points
// that it doubts come after those it trusts (model/attempt.h).
#include "search/moves.h"
#include "search/search.h"

#include "model/attempt.h"

#include <math.h>
#include <stdlib.h>

// Up to so many points are all predicted, at about 3 us each; of larger spaces as many
// drawn at random. 002's largest space has 2.4 million.
enum { POINTS_MOST = 4000000, SAMPLE = 200000, BLOCK = 4096 };
enum { FIRST_STAGE = 2000, PROPORTION = 10, PART = 20, LEAST_STAGE = 50 };

typedef struct {
    Point point;
    double cost_ns;
} Told;

typedef struct {
    Encoding *encoding;
    VEC(Told) told;
    Shuffle shuffle;   // the first stage: the points of strategy random
    int first, second; // points of a stage
    Point *next;       // of the stage at hand, best first
    int nnext, at;
} TwoStages;

// What the caller did not choose: 002's numbers, or a small part of a small space, in 002's
// proportion; within the budget.
static void set_stages(const Search *search, TwoStages *s)
{
    double first = fmin(FIRST_STAGE, fmax(space_count(search->space) / PART, LEAST_STAGE));
    s->first = (int)fmin(first, ceil(search->limit * PROPORTION / (PROPORTION + 1)));
    s->second = MAX(s->first / PROPORTION, LEAST_STAGE / PROPORTION);
    if (search->stage[0] > 0)
        s->first = search->stage[0];
    if (search->stage[1] > 0)
        s->second = search->stage[1];
}

static void close_stages(Search *search)
{
    TwoStages *s = search->state;
    encode_free(s->encoding);
    shuffle_release(&s->shuffle);
    free(s->told.at);
    free(s->next);
}

static void tell_stages(Search *search, const Point *point, double cost_ns)
{
    TwoStages *s = search->state;
    VEC_PUSH(NULL, &s->told, ((Told){*point, cost_ns}));
}

// Models --------------------------------------------------------------------------------

static Attempts fit_told(Search *search)
{
    TwoStages *s = search->state;
    AutoMatrix x = matrix_new(s->told.len, s->encoding->d);
    AUTO_FREE double *cost = xcalloc((size_t)s->told.len + 1, sizeof *cost);
    for (int i = 0; i < s->told.len; i++) {
        encode_point(s->encoding, &s->told.at[i].point, matrix_row(&x, i));
        cost[i] = s->told.at[i].cost_ns;
    }
    return attempts_fit(model_find("deep"), &x, cost, rng_next(&search->rng));
}

// Ranking -------------------------------------------------------------------------------

static void candidate_point(const Search *search, bool all, uint64_t i, Rng *rng,
                            Point *point)
{
    if (all)
        space_point(search->space, i, point);
    else
        space_sample(search->space, rng, point);
}

// Ranks are numbered by the point, or by the draw. They come from the predictions for n
// points: all of the space, or drawn by rng.
static void rank_all(const Search *search, const Attempts *fits, bool all, Rng rng, int n,
                     AttemptRank *rank)
{
    const TwoStages *s = search->state;
    AutoMatrix x = matrix_new(BLOCK, s->encoding->d);
    double time[BLOCK], doubt[BLOCK];
    for (int from = 0; from < n; from += BLOCK) {
        x.n = MIN(BLOCK, n - from);
        for (int i = 0; i < x.n; i++) {
            Point point;
            candidate_point(search, all, (uint64_t)(from + i), &rng, &point);
            encode_point(s->encoding, &point, matrix_row(&x, i));
        }
        attempts_predict(fits, &x, time, doubt);
        for (int i = 0; i < x.n; i++)
            rank[from + i] = (AttemptRank){doubt[i], time[i], (uint64_t)(from + i)};
    }
    x.n = BLOCK;
}

// The best of the ranked points that were not tried: those of draws are drawn once more.
static void take_best(Search *search, bool all, Rng rng, int n, AttemptRank *rank)
{
    TwoStages *s = search->state;
    AUTO_FREE Point *drawn = NULL;
    if (!all) {
        drawn = xcalloc((size_t)n, sizeof *drawn);
        for (int i = 0; i < n; i++)
            space_sample(search->space, &rng, &drawn[i]);
    }
    attempts_sort(rank, n);
    free(s->next);
    int most = search->given > s->first ? MAX(s->second, search->told / 2) : s->second;
    s->next = xcalloc((size_t)most, sizeof *s->next);
    s->nnext = s->at = 0;
    for (int i = 0; i < n && s->nnext < most; i++) {
        Point point;
        if (all)
            space_point(search->space, rank[i].number, &point);
        else
            point = drawn[rank[i].number];
        double cost_ns;
        if (!search_known(search, &point, &cost_ns))
            s->next[s->nnext++] = point;
    }
}

static void plan_stage(Search *search)
{
    double count = space_count(search->space);
    bool all = count <= POINTS_MOST;
    int n = all ? (int)count : SAMPLE;
    Attempts fits = fit_told(search);
    AUTO_FREE AttemptRank *rank = xcalloc((size_t)n, sizeof *rank);
    Rng rng = rng_new(rng_next(&search->rng));
    rank_all(search, &fits, all, rng, n, rank);
    take_best(search, all, rng, n, rank);
    attempts_free(&fits);
}

static bool ask_stages(Search *search, Point *point)
{
    TwoStages *s = search->state;
    if (!s->encoding) {
        s->encoding = encode_new(search->space);
        encode_launches(s->encoding, search->launches);
        set_stages(search, s);
    }
    if (search->given < s->first)
        return shuffle_next(&s->shuffle, search->space, &search->rng, point);
    if (s->at == s->nnext) {
        if (search->given > search->told)
            return false; // a stage begins when the one before is told
        plan_stage(search);
    }
    if (s->at == s->nnext)
        return false;
    *point = s->next[s->at++];
    return true;
}

const SearchKind search_two_stage = {
    .name = "two-stage",
    .doc = "random points train neural networks that pick the rest (--stages N,M)",
    .state = sizeof(TwoStages),
    .ask = ask_stages,
    .tell = tell_stages,
    .close = close_stages,
};
