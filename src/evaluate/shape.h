// SPDX-License-Identifier: Apache-2.0
//
// What a stencil looks like, read off its program: the features of paper 001, section 6.1.

#ifndef FW_EVALUATE_SHAPE_H
#define FW_EVALUATE_SHAPE_H

#include "ir/ir.h"

typedef struct {
    int points;     // elements read for one
    int dims;       // dimensions in which they extend
    double density; // their share of the smallest box around them
    int unique;     // the dimension unlike the others: 1 x, 2 y, 3 z; 0: none
} StencilShape;

// The shape of the first map over windows in a program; false: there is none. A window that
// is read at places which are not constant counts as read entirely.
bool stencil_shape(const Program *program, StencilShape *shape);

#endif
