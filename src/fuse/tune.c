// SPDX-License-Identifier: Apache-2.0
//
// The empirical stage (paper 004, section 4.3.3): the cheapest covers by prediction, in
// order, as points of the script's space, and what their trials say of the prediction.
// Besides come the best without fusions and the best single kernel, to compare with.
//
// Of kernels that differ in the instances of a block alone only the best by prediction is
// in the order: else its first places would be alike.

#include "fuse/tune.h"

#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const ScriptSpace *s;
    const Script *script;
    const FuseAsked *asked;
    Arena *arena;
    Psi *psi;
    const char *target;
    VEC(FusedKernel) kernels; // of the units
    VEC(CoverUnit) units;
    int family; // of the last unit
    int barriers;
    Solution *solution; // room for one
} Ranker;

// Units -------------------------------------------------------------------------------

static int count_barriers(const Ranker *r, FusedKernel kernel)
{
    Buf text;
    buf_init(&text);
    kernel.choice.instances = 4;
    kernel.threads = 4 * fused_lanes(r->script, &kernel);
    fused_print(r->script, &kernel, r->target, "count", &text);
    buf_release(&text);
    return kernel.barriers;
}

// Where times are the same: 16, 32, .., 256, then 8, 4, ..
static int preference(int instances)
{
    return instances >= 16 ? instances : 100000 / instances;
}

static void add_unit(void *user, const FusedKernel *given, int family)
{
    Ranker *r = user;
    FusedKernel kernel = *given;
    bool strips = kernel.choice.copy == COPY_STRIPS, same = family == r->family && !strips;
    if (family != r->family && !strips)
        r->barriers = count_barriers(r, kernel);
    kernel.barriers = strips ? 0 : r->barriers;
    double ns = psi_predict(r->psi, r->script, &kernel, r->asked->instances);
    if (!isfinite(ns))
        return;
    r->family = family;
    if (!same) {
        CoverUnit unit = {kernel.fusion->set, ns, r->units.len};
        VEC_PUSH(r->arena, &r->units, unit);
        VEC_PUSH(r->arena, &r->kernels, kernel);
        return;
    }
    CoverUnit *last = &r->units.at[r->units.len - 1];
    FusedKernel *kept = &r->kernels.at[r->units.len - 1];
    if (ns < last->cost || (ns == last->cost && preference(kernel.choice.instances) <
                                                    preference(kept->choice.instances))) {
        last->cost = ns;
        *kept = kernel;
    }
}

// The order ---------------------------------------------------------------------------

// number: the units by their numbers in the cover; NULL: they are the same. False: it is no
// point of the space.
static bool to_point(Ranker *r, const Cover *cover, const int *number, FusePoint *point)
{
    r->solution->n = cover->n;
    for (int i = 0; i < cover->n; i++)
        r->solution->kernel[i] =
            r->kernels.at[number ? number[cover->unit[i]] : cover->unit[i]];
    point->predicted_ns = cover->cost * (double)r->asked->instances;
    return script_point(r->s, r->solution, &point->point);
}

static const Graph *graph_of(const Ranker *r)
{
    return &script_space_sets(r->s)->graph;
}

static void add_ranked(Ranker *r, FuseRanking *ranking)
{
    Cover *cover;
    int n = cover_best(graph_of(r), r->units.at, r->units.len, r->asked->solutions,
                       r->arena, &cover);
    ranking->point = NEW_ARRAY(r->arena, FusePoint, n + 1);
    for (int i = 0; i < n; i++)
        ranking->n += to_point(r, &cover[i], NULL, &ranking->point[ranking->n]);
}

// The cheapest cover by units of so many calls.
static void add_by_size(Ranker *r, int calls, FuseRanking *ranking)
{
    CoverUnit *unit = NEW_ARRAY(r->arena, CoverUnit, r->units.len + 1);
    int *number = NEW_ARRAY(r->arena, int, r->units.len + 1), n = 0;
    for (int i = 0; i < r->units.len; i++)
        if (__builtin_popcountll(r->units.at[i].set) == calls) {
            number[n] = i;
            unit[n++] = r->units.at[i];
        }
    Cover *cover;
    FusePoint point;
    if (n && cover_best(graph_of(r), unit, n, 1, r->arena, &cover) == 1 &&
        to_point(r, cover, number, &point))
        ranking->first[ranking->nfirst++] = point.point;
}

// One of the units of a random set that has the lowest call of rest; -1: there is none.
static int random_unit(const Ranker *r, Rng *rng, Set rest)
{
    Set lowest = rest & -rest;
    int chosen = -1;
    uint64_t seen = 0;
    for (int i = 0; i < r->units.len; i++) {
        Set set = r->units.at[i].set;
        if ((set & lowest) && !(set & ~rest) && rng_below(rng, ++seen) == 0)
            chosen = i;
    }
    return chosen;
}

// Solutions drawn at random, of any cost: how well are times predicted in general?
static void add_random(Ranker *r, FuseRanking *ranking)
{
    int n = graph_of(r)->n, wanted = r->asked->sample;
    Set all = n == CALLS_MAX ? ~(Set)0 : ((Set)1 << n) - 1;
    Rng rng;
    rng_seed(&rng, r->asked->seed);
    ranking->random = NEW_ARRAY(r->arena, FusePoint, wanted + 1);
    for (int tries = 0; ranking->nrandom < wanted && tries < 100 * wanted; tries++) {
        CoverUnit unit[CALLS_MAX];
        int number[CALLS_MAX], k = 0, u;
        for (Set rest = all; rest && (u = random_unit(r, &rng, rest)) >= 0;
             rest &= ~r->units.at[u].set) {
            number[k] = u;
            unit[k++] = r->units.at[u];
        }
        Cover *cover;
        if (cover_best(graph_of(r), unit, k, 1, r->arena, &cover) == 1)
            ranking->nrandom +=
                to_point(r, cover, number, &ranking->random[ranking->nrandom]);
    }
}

static bool rank_all(Ranker *r, FuseRanking *ranking, Diags *diags)
{
    double start = clock_s();
    script_each_kernel(r->s, add_unit, r);
    double units_s = clock_s();
    ranking->units_s = units_s - start;
    add_ranked(r, ranking);
    ranking->cover_s = clock_s() - units_s;
    add_by_size(r, 1, ranking);
    if (r->script->ncall > 1)
        add_by_size(r, r->script->ncall, ranking);
    add_random(r, ranking);
    return ranking->n > 0 ||
           diag_error(diags, r->script->elem[0].span, "F030",
                      "a call has no kernel whose parts could be timed on the device");
}

bool fuse_rank(const ScriptSpace *s, const Script *script, const FuseAsked *asked,
               Arena *arena, FuseRanking *ranking, Diags *diags)
{
    *ranking = (FuseRanking){0};
    Ranker r = {.s = s,
                .script = script,
                .asked = asked,
                .arena = arena,
                .target = script_space_device(s)->target,
                .family = -1,
                .solution = NEW(arena, Solution)};
    r.psi = psi_open(script, script_space_device(s), asked->store, &asked->place,
                     &ranking->routines, diags);
    bool ok = r.psi && rank_all(&r, ranking, diags);
    psi_free(r.psi);
    return ok;
}

// Conclusions -------------------------------------------------------------------------

typedef struct {
    const ScriptSpace *s;
    const Script *script;
    const Outcome *outcome;
    int n;
    Arena *arena;
    Solution *solution; // room for one
} Judge;

static const char *solution_text(Judge *j, const Point *point)
{
    Buf text;
    buf_init(&text);
    script_solution(j->s, point, j->solution);
    solution_print(&text, j->script, j->solution);
    return buf_keep(&text, j->arena);
}

static const Outcome *find_outcome(const Judge *j, const Point *point)
{
    for (int i = 0; i < j->n; i++)
        if (point_equal(script_space_points(j->s), &j->outcome[i].point, point))
            return &j->outcome[i];
    return NULL;
}

static bool same_partition(const FuseTrial *a, const FuseTrial *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++) {
        bool found = false;
        for (int k = 0; k < b->n; k++)
            found = found || a->set[i] == b->set[k];
        if (!found)
            return false;
    }
    return true;
}

static void number_partitions(FuseTrial *trial, int n)
{
    int partitions = 0;
    for (int i = 0; i < n; i++) {
        trial[i].partition = partitions;
        for (int k = i - 1; k >= 0; k--)
            if (same_partition(&trial[i], &trial[k]))
                trial[i].partition = trial[k].partition;
        partitions += trial[i].partition == partitions;
    }
}

// Those of the points that were tried.
static FuseTrial *tried(Judge *j, const FusePoint *point, int n, int *ntried)
{
    FuseTrial *trial = NEW_ARRAY(j->arena, FuseTrial, n + 1);
    *ntried = 0;
    for (int i = 0; i < n; i++) {
        const Outcome *outcome = find_outcome(j, &point[i].point);
        if (!outcome)
            continue;
        FuseTrial *t = &trial[(*ntried)++];
        t->outcome = *outcome;
        t->predicted_ns = point[i].predicted_ns;
        t->text = solution_text(j, &point[i].point);
        t->n = j->solution->n;
        for (int k = 0; k < t->n; k++)
            t->set[k] = j->solution->kernel[k].fusion->set;
    }
    number_partitions(trial, *ntried);
    return trial;
}

// Over the trials that were right.
static double correlate(Judge *j, const FuseTrial *trial, int n)
{
    double *time = NEW_ARRAY(j->arena, double, n + 1);
    double *predicted = NEW_ARRAY(j->arena, double, n + 1);
    int right = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(trial[i].outcome.time_ns)) {
            time[right] = trial[i].outcome.time_ns;
            predicted[right++] = trial[i].predicted_ns;
        }
    double spearman = right > 1 ? metric_spearman(time, predicted, right) : 0;
    return isfinite(spearman) ? spearman : 0;
}

// r->best: the best itself, which was measured again, or else the fastest of them.
static void find_ranks(Judge *j, const Point *best, double best_ns, FuseResult *r)
{
    double least = INFINITY;
    for (int i = 0; i < r->ntrial; i++) {
        const Outcome *outcome = &r->trial[i].outcome;
        bool is_best = point_equal(script_space_points(j->s), &outcome->point, best);
        if (is_best || (!r->is_fastest && outcome->time_ns < least)) {
            least = outcome->time_ns;
            r->best = i;
            r->best_partition = r->trial[i].partition;
        }
        if (r->within < 0 && outcome->time_ns <= 1.03 * best_ns)
            r->within = i;
        r->is_fastest |= is_best;
    }
}

// The fastest of so many kernels.
static double time_of(const Judge *j, int kernels)
{
    double best = INFINITY;
    for (int i = 0; i < j->n; i++)
        if (script_kernels(j->s, &j->outcome[i].point) == kernels)
            best = fmin(best, j->outcome[i].time_ns);
    return best;
}

FuseResult *fuse_conclude(const ScriptSpace *s, const Script *script,
                          const FuseRanking *ranking, const Outcome *outcome, int n,
                          const Point *best, double best_ns, Arena *arena)
{
    Judge j = {s, script, outcome, n, arena, NEW(arena, Solution)};
    FuseResult *r = NEW(arena, FuseResult);
    *r = (FuseResult){.solution = solution_text(&j, best),
                      .best = -1,
                      .best_partition = -1,
                      .within = -1,
                      .unfused_ns = time_of(&j, script->ncall),
                      .single_ns = time_of(&j, 1),
                      .space_s = script_space_sets(s)->seconds};
    if (!ranking)
        return r;
    r->trial = tried(&j, ranking->point, ranking->n, &r->ntrial);
    r->random = tried(&j, ranking->random, ranking->nrandom, &r->nrandom);
    find_ranks(&j, best, best_ns, r);
    r->correlation = r->nrandom ? correlate(&j, r->random, r->nrandom)
                                : correlate(&j, r->trial, r->ntrial);
    r->routines = ranking->routines;
    r->space_s += ranking->units_s;
    r->cover_s = ranking->cover_s;
    return r;
}
