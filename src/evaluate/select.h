// SPDX-License-Identifier: Apache-2.0
//
// select: how near to the best are the points that weights put first, of points that were
// measured.
//
//   source  paper 003, section 6.2: choosing from a collection of kernels without a run

#ifndef FW_EVALUATE_SELECT_H
#define FW_EVALUATE_SELECT_H

#include "calibrate/predict.h"
#include "model/dataset.h"

enum { PICK_TEN = 10 };

// The points of one program at one size.
typedef struct {
    const char *program, *size;
    int points;              // measured, and predicted
    int unknown;             // rows that are no points of this version's space
    double best_ns;          // of the points
    double within[PICK_TEN]; // the best time of the first 1, 2, ... picks, over the best
    double first_ns;         // predicted for the first pick
    double spearman;
    double seconds; // spent on predicting
} Pick;

// One for each program and size of an exploration of derived points, whose programs are
// where its commands say. False with a diagnostic. Owner: arena.
bool select_points(const Dataset *data, const Weights *weights, Arena *arena, Pick **pick,
                   Diags *diags);

// The time of a point by the weights of a device; false if it cannot be lowered.
bool select_predict(const Problem *problem, const Derivation *derivation,
                    const Weights *weights, const Point *point, double *seconds);

#endif
