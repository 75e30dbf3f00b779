// SPDX-License-Identifier: Apache-2.0
//
// Strategies on recorded spaces: the times and costs of the record stand in for a device.

#ifndef FW_EVALUATE_REPLAY_H
#define FW_EVALUATE_REPLAY_H

#include "base/base.h"
#include "search/search.h"
#include "search/steps.h"
#include "store/recorded.h"

// Performance over time, as the community of auto-tuning scores a search on a recorded
// space: at each moment of a budget that suits the space, how far the strategy is on the
// way from what random search would have found by then to the optimum. 0 is random search,
// 1 the optimum; there is no lower bound.
//
// Source: Willemsen, Schoonhoven, Filipovic, Torring, van Nieuwpoort and van Werkhoven, "A
// methodology for comparing optimization algorithms for auto-tuning", FGCS 2024, as its
// authors' code computes it.

enum { SCORE_POINTS = 1000 }; // moments between the start and the end of the budget

// A space as the score sees it; smaller losses are better.
typedef struct {
    double *sorted; // losses of the valid configurations, best first; heap
    int nvalid, n;
    double mean_s;                 // what a random evaluation costs
    int start_evals, end_evals;    // of random search, to get 1 % and 95 % of the way
    double start_s, end_s;         // the same as time
    double limit_s;                // what a strategy may use
    double baseline[SCORE_POINTS]; // what random search has found, by moment
} ScoreSpace;

// Makes the space of n configurations with their losses (NAN: failed) and costs. False if
// all valid ones are equally good, so that nothing can be won; then there is nothing to
// release.
bool score_space(ScoreSpace *space, const double *loss, const double *cost_s, int n);
void score_release(ScoreSpace *space);

// One evaluation of one run: when it ended, and the least loss of the run so far.
typedef struct {
    double at_s, best;
} ScoreStep;

typedef struct {
    ScoreStep *step; // of the caller; steps before the first success are left out
    int n;
} ScoreRun;

typedef struct {
    double mean;   // the score: of all moments
    double spread; // standard deviation over the moments
    double end;    // at the last moment
    double at[SCORE_POINTS];
} Score;

// The score of all runs together, each averaged over resamples by the seed. False if no run
// has a step in the budget's time.
bool score_runs(const ScoreSpace *space, const ScoreRun *run, int nrun, uint64_t seed,
                Score *score);

typedef struct {
    double budget_s;       // simulated; INFINITY: what the score's methodology gives
    int64_t budget_trials; // 0: not bounded by trials
    int repeats;
    uint64_t seed;         // of the first run; the next ones follow from it
    const Recorded *prior; // of another device: its best points are tried first; or NULL
} ReplayOptions;

typedef struct {
    Score score;
    int64_t evaluations;     // of all runs
    double best, worst;      // the best value found, by the best and the worst run
    double found;            // mean over the runs of the best over the value found
    double optimum_runs;     // share of the runs that found the best there is
    double wall_s, search_s; // all the work of replaying; the strategy's part of it
} Replay;

// The space as the score needs it; false with a diagnostic if it cannot be scored.
bool replay_space(const Recorded *recorded, ScoreSpace *space, Diags *diags);
// False with a diagnostic if no run came far enough to be scored.
bool replay(const Recorded *recorded, const ScoreSpace *space, const SearchKind *kind,
            const ReplayOptions *options, Replay *result, Diags *diags);

// What following a heuristic to its end, or until the budget is used up, came to.
typedef struct {
    int n, *asked; // numbers of the points, in the order in which they were asked for
    int best;      // the number of the best; -1: none ran
    double cost_s; // of building and running them, as recorded
} Followed;

// It heeds the budget and the seed of the options. False with a diagnostic if the steps do
// not fit the space.
bool replay_steps(const Recorded *recorded, const Steps *steps, const StepsSize *size,
                  int nsize, const ReplayOptions *options, Arena *arena, Followed *followed,
                  Diags *diags);

#endif
