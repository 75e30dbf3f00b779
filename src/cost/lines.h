// SPDX-License-Identifier: Apache-2.0
//
// Cache lines of one access of a warp, as offsets from its first lane.
//
//   source  paper 000, sections 4.2.3 and 4.4

#ifndef FW_COST_LINES_H
#define FW_COST_LINES_H

#include "cost/scope.h"

typedef struct {
    int by_difference; // the paper's: 0 if some difference of two lanes' indices does not
                       // simplify to a number
    int by_evaluation; // 0 if the index depends on data
} WarpLines;

// line: scalars in a line. Boundary conditions are ignored: of each, the side is taken that
// holds for the warp.
WarpLines warp_lines(Scope *scope, ArithCtx *ctx, const Arith *index, int width,
                     int64_t line);

#endif
