// SPDX-License-Identifier: Apache-2.0
//
// linear: a time as a sum of weights times counts, fitted to relative errors.
//
//   source  paper 003, section 4.3; signs by the active-set method of Lawson and Hanson,
//           Solving Least Squares Problems (1974), chapter 23
//
// It is not one of the kinds in models.def: those predict throughput from features, this
// one time from counts, in seconds an operation.

#ifndef FW_MODEL_LINEAR_H
#define FW_MODEL_LINEAR_H

#include "model/model.h"

typedef enum { SIGN_FREE, SIGN_POSITIVE, SIGN_NEGATIVE } Sign;

// d columns each; owner of the arrays: the heap, linear_free.
typedef struct {
    int d, rows;
    double *weight;
    double *error; // standard error of the weight; 0 where it is held at 0
    int *support;  // rows in which the column is not 0
    double rms;    // of the relative residuals
} Linear;

// Minimises the sum of (1 - sum of weight * x / y)^2 over the rows, y > 0, with each weight
// on the side that its sign allows. Columns that are 0 in all rows keep weight 0.
Linear linear_fit(const Matrix *x, const double *y, const Sign *sign);
void linear_free(Linear *linear);

#endif
