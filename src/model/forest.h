// SPDX-License-Identifier: Apache-2.0
//
// A forest that tells classes apart.

#ifndef FW_MODEL_FOREST_H
#define FW_MODEL_FOREST_H

#include "model/model.h"

typedef struct {
    int n;
    void **forest; // n
} Classes;

// class[i] in [0, nclass) is that of row i. Owner: the caller, classes_free.
Classes *classes_fit(const Matrix *x, const int *class, int nclass, uint64_t seed);
// The likeliest class of a row of d features; share: nclass votes, each in [0, 1].
int classes_predict(const Classes *classes, const double *at, int d, double *share);
void classes_free(Classes *classes); // accepts NULL

#endif
