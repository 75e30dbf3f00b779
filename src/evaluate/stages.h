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

enum { STAGE_FIRSTS = 7 };
extern const int stage_first[STAGE_FIRSTS]; // sizes of a first stage that are looked at

// Whether a record has enough valid points to train on so many and to judge by the others.
bool stages_fit(const Recorded *recorded, int first);
// The result as it is shown (doc/two-stage.md). Repetitions have seeds and first stages of
// their own. Runs on all cores; the same numbers on any. firsts: a set of bits, which of
// stage_first. NULL with a diagnostic if the record has too few valid points for any.
enum { STAGE_ALL = (1 << STAGE_FIRSTS) - 1 };
json_t *stages_run(const Recorded *recorded, const ModelKind *kind, int firsts, int repeats,
                   uint64_t seed, Diags *diags);

#endif
