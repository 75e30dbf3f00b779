// SPDX-License-Identifier: Apache-2.0
//
// Strategies on recorded spaces: the times and costs of the record stand in for a device.

#ifndef FW_EVALUATE_REPLAY_H
#define FW_EVALUATE_REPLAY_H

#include "evaluate/score.h"
#include "search/search.h"
#include "search/steps.h"
#include "store/recorded.h"

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
