// SPDX-License-Identifier: Apache-2.0
//
// Performance over time, as the community of auto-tuning scores a search on a recorded
// space: at each moment of a budget that suits the space, how far the strategy is on the
// way from what random search would have found by then to the optimum. 0 is random search,
// 1 the optimum; there is no lower bound.
//
// Source: Willemsen, Schoonhoven, Filipovic, Torring, van Nieuwpoort and van Werkhoven, "A
// methodology for comparing optimization algorithms for auto-tuning", FGCS 2024, as its
// authors' code computes it.

#ifndef FW_EVALUATE_SCORE_H
#define FW_EVALUATE_SCORE_H

#include "base/base.h"

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

#endif
