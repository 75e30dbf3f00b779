// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a trial, predicted before it: how long a point takes, and whether it
// runs at all. Two models, the first of the points that ran, the second of all.

#ifndef FW_MODEL_ATTEMPT_H
#define FW_MODEL_ATTEMPT_H

#include "model/model.h"

typedef struct {
    const ModelKind *kind; // of times; failures are learnt by a kind of their own
    void *time, *runs;     // NULL: none ran; none failed
} Attempts;

// Costs in any unit above 0; those that are not finite failed. Owner: attempts_free.
Attempts attempts_fit(const ModelKind *kind, const Matrix *x, const double *cost,
                      uint64_t seed);
void attempts_free(Attempts *attempts);

// time: the logarithm of the cost; doubt: 0 for a point that is trusted to run, else above
// 0, and the more the surer it is to fail. Points are to be tried by doubt, then by time.
void attempts_predict(const Attempts *attempts, const Matrix *x, double *time,
                      double *doubt);

// A point among others; number: the caller's.
typedef struct {
    double doubt, time;
    uint64_t number;
} AttemptRank;
// In the order to try them in.
void attempts_sort(AttemptRank *rank, int n);
// Whether a cost is that of a point that ran.
bool attempt_ran(double cost);

#endif
