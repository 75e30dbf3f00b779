// SPDX-License-Identifier: Apache-2.0
//
// picks: which of the models picks best: the loading of a stencil (paper 001, section 6.1),
// and the points of a second stage (paper 002, section 5.3).
//
// For the loading a model of numbers is asked for the time that the hybrid heuristic comes
// to with each, over the best of them, from the features of 001 and the loading; it has not
// seen the stencil. Weights of a device (paper 003) are asked for the fastest point that
// hybrid tried with each. They need no training, so they pick second stages without a
// first.

#ifndef FW_EVALUATE_PICKS_H
#define FW_EVALUATE_PICKS_H

#include "evaluate/study.h"

enum { PICKS_SETS = 16, PICKS_TAKEN = 2 };
extern const int picks_taken[PICKS_TAKEN]; // points of a second stage: 10, 50

typedef struct {
    const char *name;
    int n, right;   // stencils of the main set, those whose best loading was picked
    double penalty; // mean of the best over what the pick comes to; NAN: it picks none
    // The best point picked over the best there was; NAN: it was not asked. Set 0 are the
    // stencils of the main set, a geometric mean; then each record.
    double slowdown[PICKS_SETS][PICKS_TAKEN];
} Picker;

typedef struct {
    int n;
    Picker *picker;
    int first;        // most points of a first stage
    const char **set; // names, 1 + the number of records
    int sets;
} Picks;

// Owner: arena. False with a diagnostic if a record is too small.
bool picks_run(const Study *study, const Recorded *const *record, int n, uint64_t seed,
               Arena *arena, Picks *picks, Diags *diags);

#endif
