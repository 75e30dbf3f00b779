// SPDX-License-Identifier: Apache-2.0
//
// The points of a script in the order in which times of its routines predict them to be
// fast, and what the trials say of that order. The module fuse does both.
#include "tune/internal.h"

enum { RANKED_MOST = 10000, RANKED = 200 };

static const Point *points_of(const FusePoint *from, int n, Arena *arena)
{
    Point *point = NEW_ARRAY(arena, Point, n + 1);
    for (int i = 0; i < n; i++)
        point[i] = from[i].point;
    return point;
}

static bool has_script(const Ways *ways)
{
    return ways->script != NULL;
}

static bool rank_script(const Ways *ways, const DeviceInfo *device,
                        const TuneOptions *options, const SearchKind *strategy,
                        Arena *arena, Ranking *ranking, Diags *diags)
{
    (void)device;
    if (!strategy->by_weights)
        return diag_error(diags, span_none, "C019",
                          "strategy `%s` asks a model of programs' kernels; those of the "
                          "script %s are ranked by times of their routines: predicted",
                          strategy->name, ways->problem->name);
    double start = clock_s();
    const FuseAsked asked = {
        .store = options->store,
        .place = options->place,
        .instances = ways->problem->instances,
        .solutions =
            options->budget_trials ? (int)MIN(options->budget_trials, RANKED_MOST) : RANKED,
        .sample = options->sample,
        .seed = options->seed};
    FuseRanking *own = NEW(arena, FuseRanking);
    if (!fuse_rank(ways->script, ways->problem->script, &asked, arena, own, diags))
        return false;
    *ranking = (Ranking){.point = points_of(own->point, own->n, arena),
                         .n = own->n,
                         .seconds = clock_s() - start,
                         .model = "times of routines",
                         .first = own->first,
                         .nfirst = own->nfirst,
                         .sample = points_of(own->random, own->nrandom, arena),
                         .nsample = own->nrandom,
                         .fused = own};
    return true;
}

static void conclude_script(const Ways *ways, const Ranking *ranking,
                            const Outcome *outcome, int n, const Point *best, Arena *arena,
                            TuneResult *result)
{
    result->fused = fuse_conclude(ways->script, ways->problem->script, ranking->fused,
                                  outcome, n, best, result->best_ns, arena);
}

const Ranker ranker_script = {has_script, rank_script, conclude_script};
