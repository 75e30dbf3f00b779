// SPDX-License-Identifier: Apache-2.0
//
// The cache lines that a work-group touches, all its accesses together.

#ifndef FW_COST_FOOTPRINT_H
#define FW_COST_FOOTPRINT_H

#include "cost/walk.h"

// Accesses of one buffer under the same conditions that differ by constants only.
typedef struct {
    const Buffer *buffer;
    const Arith *base;     // the index of the first of them
    VEC(int64_t) constant; // first scalars accessed, from there
    int width, nguard;
    Guard *guard;
} FootprintPart;

typedef struct {
    Arena *arena;
    Table table;
    VEC(FootprintPart) parts;
} Footprint;

void footprint_init(Footprint *footprint, Arena *arena);
void footprint_add(Footprint *footprint, const CountedAccess *access, const Guard *guard,
                   int nguard);
// How many different lines the group in the middle of the grid touches. Parts that depend
// on data are left out. Long strided loops are extrapolated from their first iterations.
double footprint_lines(const Footprint *footprint, Scope *scope);

#endif
