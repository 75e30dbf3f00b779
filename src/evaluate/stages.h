// SPDX-License-Identifier: Apache-2.0
//
// The two stages of paper 002 on recorded spaces: how well a model that has seen N points
// predicts the others, and how slow the best of the M points is that it would try next.
//
//   source  002, section 6: Figures 4 to 14
//
// The record stands in for the space: a second stage is picked among its points, and the
// best there is is the best of them.

#ifndef FW_EVALUATE_STAGES_H
#define FW_EVALUATE_STAGES_H

#include "model/model.h"
#include "store/recorded.h"

// Sizes of a first stage (valid points) and of a second that are looked at.
enum { STAGE_FIRSTS = 7, STAGE_SECONDS = 5, STAGE_SCATTER = 100 };
extern const int stage_first[STAGE_FIRSTS], stage_second[STAGE_SECONDS];

// One second stage, as means over the repetitions; NAN where none had a point that ran.
typedef struct {
    double slowdown,
        worst;     // its best point over the best not seen before; of all repetitions
    double failed; // share of its points that fail
    int empty;     // repetitions in which all of them failed
} StageCell;

// What a model trained on so many valid points does.
typedef struct {
    int first;     // 0: the record is too small, nothing else is set
    double runs;   // points tried until so many were valid
    double error;  // mean relative error on valid points that it has not seen
    double spread; // standard deviation of that over the repetitions
    double median; // median relative error
    double rank;   // Spearman's correlation
    double fit_s;  // processor time of training
    // The model of failures, of points not seen: share it is right about; share of the
    // larger kind; failing points that it trusts, good ones that it doubts, of their kind.
    double right, plain, missed, doubted;
    StageCell with[STAGE_SECONDS];    // doubted points last
    StageCell without[STAGE_SECONDS]; // as 002 has it: failures are not learnt
} StageFirst;

typedef struct {
    const Recorded *recorded;
    const ModelKind *kind;
    int repeats;
    double best_ns;
    StageFirst first[STAGE_FIRSTS];
    int nscatter; // points not seen by one model of the most training points
    double actual_ns[STAGE_SCATTER], predicted_ns[STAGE_SCATTER];
} Stages;

// Whether a record has enough valid points to train on so many and to judge by the others.
bool stages_fit(const Recorded *recorded, int first);
// Repetitions have seeds and first stages of their own. Runs on all cores; the same numbers
// on any. firsts: a set of bits, which of stage_first. False with a diagnostic if the
// record has too few valid points for any.
enum { STAGE_ALL = (1 << STAGE_FIRSTS) - 1 };
bool stages_run(const Recorded *recorded, const ModelKind *kind, int firsts, int repeats,
                uint64_t seed, Stages *stages, Diags *diags);

#endif
