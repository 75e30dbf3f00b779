// SPDX-License-Identifier: Apache-2.0
//
// Accesses of memory that items share, and whether an element is only one item's.

#ifndef FW_KIR_ACCESS_H
#define FW_KIR_ACCESS_H

#include "kir/passes.h"

typedef struct {
    const Buffer *buffer;
    const Arith *index;
    int width;
    bool write;
    const Stm *const *loops; // around it, outermost first
    int nloop;
} Access;

// Does a loop give its iterations to the items of a group?
static inline bool loop_is_of_items(const Stm *loop)
{
    return loop->loop == LOOP_LCL || loop->loop == LOOP_GLB;
}

// Only one item, in one iteration of its loops, touches these elements; local: the shape of
// the group.
bool access_is_own(const Access *access, const int64_t local[3]);

#endif
