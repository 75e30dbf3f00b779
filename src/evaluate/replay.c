// SPDX-License-Identifier: Apache-2.0
//
// Replaying: ask the strategy, look the point up, advance the simulated clock by what its
// evaluation cost when it was recorded, tell the strategy, until the budget is used up. The
// strategy's own time is measured beside, but not charged: against builds and runs of
// seconds it is nothing, and a replay stays the same on every machine.
//
// A run with too few evaluations in the budget's time is done over with another seed, as
// the methodology has it. A heuristic file ends by itself: it is followed, not scored.
#include "evaluate/replay.h"

#include <math.h>
#include <stdlib.h>

enum { RETRIES = 20, PRIOR_POINTS = 5 };

typedef struct {
    const Recorded *recorded;
    const ScoreSpace *space;
    const SearchKind *kind;
    const ReplayOptions *options;
    Replay *result;
    Point *ranking; // by another device, the best first; nranking of them
    int nranking;
    double *predicted; // of each point, the logarithm of its cost there
    Predictions predictions;
} Replayer;

static double loss_of(const Recorded *recorded, double value)
{
    return recorded->maximise ? -value : value;
}

bool replay_space(const Recorded *recorded, ScoreSpace *space, Diags *diags)
{
    size_t n = (size_t)recorded->n;
    double *loss = xcalloc(n, sizeof *loss), *cost = xcalloc(n, sizeof *cost);
    for (size_t i = 0; i < n; i++) {
        loss[i] = loss_of(recorded, recorded->at[i].value);
        cost[i] = recorded->at[i].cost_s;
    }
    bool ok = score_space(space, loss, cost, recorded->n);
    free(loss);
    free(cost);
    return ok || diag_error(diags, span_none, "X003",
                            "%s cannot be scored: its valid configurations are too few or "
                            "too alike, or cost no time",
                            recorded->name);
}

static void look_up(void *user, const Point *point, int n, double *predicted)
{
    const Replayer *r = user;
    for (int i = 0; i < n; i++)
        predicted[i] = r->predicted[space_number(r->recorded->space, &point[i])];
}

// What the prior says of the points that this space has, by their values. Those
// that it lacks, or that failed there, are predicted to be as slow as its slowest.
static void take_prior(Replayer *r)
{
    const Recorded *prior = r->options->prior;
    const Space *space = r->recorded->space;
    AUTO_FREE int *order = recorded_order(prior);
    double slowest = log(recorded_cost(prior, &prior->at[order[prior->nvalid - 1]]));
    bool same = space_params(space) == space_params(prior->space);
    r->ranking = xcalloc((size_t)prior->nvalid + 1, sizeof *r->ranking);
    r->predicted = xcalloc((size_t)r->recorded->n + 1, sizeof *r->predicted);
    for (int i = 0; i < r->recorded->n; i++)
        r->predicted[i] = slowest;
    for (int i = 0; i < prior->nvalid; i++) {
        Point there, point = {0};
        space_point(prior->space, (uint64_t)order[i], &there);
        if (!same || !point_move(space, &point, prior->space, &there) ||
            !space_valid(space, &point))
            continue;
        r->ranking[r->nranking++] = point;
        r->predicted[space_number(space, &point)] =
            log(recorded_cost(prior, &prior->at[order[i]]));
    }
    r->predictions = (Predictions){look_up, r};
}

static double time_limit(const Replayer *r)
{
    const ReplayOptions *o = r->options;
    if (isfinite(o->budget_s))
        return o->budget_s;
    return o->budget_trials ? INFINITY : r->space->limit_s;
}

// One run to the end of its budget; steps has room for every point of the space.
static int run_once(Replayer *r, uint64_t seed, ScoreStep *steps)
{
    const Recorded *recorded = r->recorded;
    int64_t trials = r->options->budget_trials, done = 0;
    double limit_s = time_limit(r), at_s = 0, best = INFINITY, began = clock_s(),
           search = 0;
    Search *strategy =
        search_open(r->kind, recorded->space, seed, trials ? (double)trials : INFINITY);
    int n = 0;
    strategy->launches = recorded_launches(recorded);
    strategy->ranking = r->ranking;
    strategy->nranking = r->nranking;
    strategy->predictions = r->nranking ? &r->predictions : NULL;
    for (Point point; at_s < limit_s && (!trials || done < trials); done++) {
        double asked = clock_s();
        if (done < MIN(r->nranking, PRIOR_POINTS))
            point = r->ranking[done];
        else if (!search_ask(strategy, &point))
            break;
        double told = clock_s();
        const RecordedPoint *found = &recorded->at[space_number(recorded->space, &point)];
        search += told - asked;
        at_s += found->cost_s;
        if (!isnan(found->value))
            best = fmin(best, loss_of(recorded, found->value));
        if (isfinite(best))
            steps[n++] = (ScoreStep){at_s, best};
        asked = clock_s();
        search_tell(strategy, &point, recorded_cost(recorded, found));
        search += clock_s() - asked;
    }
    search_close(strategy);
    r->result->evaluations += done;
    r->result->search_s += search;
    r->result->wall_s += clock_s() - began;
    return n;
}

// Whether a run has what the score wants of it in the budget's time.
static bool is_enough(const Replayer *r, const ScoreStep *step, int n)
{
    const ScoreSpace *s = r->space;
    double want = fmax(2, fmin(rint(0.1 * s->end_evals), 10));
    int in_time = 0;
    for (int i = 0; i < n; i++)
        in_time += step[i].at_s >= s->start_s && step[i].at_s <= 1.1 * s->end_s;
    return in_time >= want;
}

// What part of the optimum a run has reached; of values that are not all of one sign, of
// the way from the worst of them.
static double part_of(const Recorded *recorded, double best, double optimum)
{
    if (!recorded->maximise)
        return optimum / best;
    if (recorded->least > 0 || recorded->most == recorded->least)
        return best / optimum;
    return (-best - recorded->least) / (-optimum - recorded->least);
}

static void summarise(Replayer *r, const ScoreRun *run)
{
    Replay *result = r->result;
    double optimum = r->space->sorted[0], least = INFINITY, most = -INFINITY;
    for (int i = 0; i < r->options->repeats; i++) {
        double best = run[i].n ? run[i].step[run[i].n - 1].best : INFINITY;
        least = fmin(least, best);
        most = fmax(most, best);
        result->found += part_of(r->recorded, best, optimum);
        result->optimum_runs += best == optimum;
    }
    result->found /= r->options->repeats;
    result->optimum_runs /= r->options->repeats;
    result->best = r->recorded->maximise ? -least : least;
    result->worst = r->recorded->maximise ? -most : most;
}

bool replay(const Recorded *recorded, const ScoreSpace *space, const SearchKind *kind,
            const ReplayOptions *options, Replay *result, Diags *diags)
{
    Replayer r = {recorded, space, kind, options, result, NULL, 0, NULL, {0}};
    size_t room = (size_t)recorded->n + 1;
    AUTO_FREE ScoreStep *steps = xcalloc(room, sizeof *steps);
    AUTO_FREE ScoreRun *run = xcalloc((size_t)options->repeats, sizeof *run);
    *result = (Replay){0};
    if (options->prior)
        take_prior(&r);
    for (int i = 0; i < options->repeats; i++) {
        uint64_t seed = hash_mix(options->seed, (uint64_t)i);
        for (int retry = 0; retry <= RETRIES; retry++) {
            run[i].n = run_once(&r, hash_mix(seed, (uint64_t)retry), steps);
            if (is_enough(&r, steps, run[i].n))
                break;
        }
        run[i].step = xcalloc((size_t)run[i].n + 1, sizeof *steps);
        for (int k = 0; k < run[i].n; k++)
            run[i].step[k] = steps[k];
    }
    bool ok = score_runs(space, run, options->repeats, options->seed, &result->score);
    summarise(&r, run);
    free(r.ranking);
    free(r.predicted);
    for (int i = 0; i < options->repeats; i++)
        free(run[i].step);
    return ok ||
           diag_error(diags, span_none, "X004",
                      "%s on %s: no run reached the start of the score's time, %.3g s",
                      kind->name, recorded->name, space->start_s);
}

bool replay_steps(const Recorded *recorded, const Steps *steps, const StepsSize *size,
                  int nsize, const ReplayOptions *options, Arena *arena, Followed *followed,
                  Diags *diags)
{
    *followed = (Followed){.asked = NEW_ARRAY(arena, int, recorded->n + 1), .best = -1};
    if (!steps_check(steps, recorded->space, size, nsize, diags))
        return false;
    Search *search =
        search_open(search_find("heuristic"), recorded->space, options->seed, INFINITY);
    search->steps = steps;
    search->size = size;
    search->nsize = nsize;
    int64_t trials = options->budget_trials ? options->budget_trials : recorded->n;
    double best = INFINITY;
    for (Point point; followed->n < trials && followed->cost_s < options->budget_s &&
                      search_ask(search, &point);) {
        int number = (int)space_number(recorded->space, &point);
        double cost = recorded_cost(recorded, &recorded->at[number]);
        followed->asked[followed->n++] = number;
        followed->cost_s += recorded->at[number].cost_s;
        if (cost < best) {
            best = cost;
            followed->best = number;
        }
        search_tell(search, &point, cost);
    }
    search_close(search);
    return true;
}
