// SPDX-License-Identifier: Apache-2.0
//
// overlap: a time from what is asked of the parts of a machine that work side by side.
//
//   source  paper 003, sections 4.3 and 6.2: what the linear model cannot say
//   model   added + max(start, (part_0^p + part_1^p + ...)^(1/p)). Each is a sum of weights
//           times columns. Part 0 is multiplied by 1 + drain * idle: the more of a run lies
//           at its end, when not all of the machine is busy any more, the longer it takes.
//           p = 1 adds the parts up, a large p lets the longest hide the others.
//
// Like linear, it predicts a time, and is not one of the kinds in models.def.

#ifndef FW_MODEL_OVERLAP_H
#define FW_MODEL_OVERLAP_H

#include "model/model.h"

enum { OVERLAP_COLUMNS = 32, OVERLAP_PARTS = 8 };
enum { PART_ADDED = -2, PART_START = -1 }; // others: 0 to OVERLAP_PARTS - 1

typedef struct {
    int d;
    int part[OVERLAP_COLUMNS]; // of each column
    double weight[OVERLAP_COLUMNS];
    double error[OVERLAP_COLUMNS]; // standard error of the weight
    int support[OVERLAP_COLUMNS];  // rows in which the column is not 0
    double power, drain;
    int rows;
    double rms; // of the logarithms of predicted over measured
} Overlap;

// Fits all members but d and part to times y > 0, so that the logarithms of predicted over
// measured times are small; rows that are far off count less. idle: a number for each row,
// at least 0.
void overlap_fit(Overlap *overlap, const Matrix *x, const double *idle, const double *y);
// cost: of each column, so that they add up to the time; may be NULL.
double overlap_predict(const Overlap *overlap, const double *row, double idle,
                       double *cost);

#endif
