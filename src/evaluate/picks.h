// SPDX-License-Identifier: Apache-2.0
//
// picks: how near to the best of the points that were timed are those that somebody puts
// first.
//
//   source  paper 003, section 6.2: choosing from a collection of kernels without a run

#ifndef FW_EVALUATE_PICKS_H
#define FW_EVALUATE_PICKS_H

#include "evaluate/sweep.h"
#include "model/model.h"

// The best time of the first picks over the best time of all, in the runs of a class. Runs
// of less than PICKS_LEAST points that ran tell nothing and are left out.
enum { PICKS_LEAST = 8 };
typedef struct {
    int runs;
    double first, first_90; // one pick: the median, the 90th percentile
    double five, five_90;   // the best of five
    double best, near;      // share of runs whose first pick is within 1 % of the best, 5 %
    double rho;             // rank correlation (Spearman), the mean
} Picks;

// before: for each row, the smaller the earlier; NAN: nothing is known, last. class: a
// number, or -1 for all.
Picks picks_of(const Sweep *sweep, const double *before, int class);

// Slowness beyond what weights predict, learnt from some terms of all rows but those of a
// class (NULL: of all). Owner: the caller, model_free.
typedef struct {
    int from, to; // from first to end; others count as 0
} TermRange;
Model *picks_fit(const Sweep *sweep, const char *without, TermRange terms, uint64_t seed);
// Adds the seconds that weights predict times the slowness to rows of a class, or all:
// NULL.
void picks_predict(const Sweep *sweep, const Model *model, const char *class,
                   TermRange terms, double *seconds);

#endif
