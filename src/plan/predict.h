// SPDX-License-Identifier: Apache-2.0
//
// predict: counts of a program's points, symbolic or at its sizes, and what they cost.
//
//   source  paper 003

#ifndef FW_PLAN_PREDICT_H
#define FW_PLAN_PREDICT_H

#include "cost/counts.h"
#include "plan/plan.h"

// Leaves all sizes open but those that say how often an iterate goes round: these take
// their value from binding. False with diagnostics.
bool problem_open(Problem *problem, const Binding *binding, int n, Diags *diags);
// The sizes of an opened problem: those of binding, and OPEN_SAMPLE where it says nothing.
enum { OPEN_SAMPLE = 1000 };
int problem_sample(const Problem *problem, const Binding *binding, int n, Binding *out,
                   int max);

#endif
