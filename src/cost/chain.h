// SPDX-License-Identifier: Apache-2.0
//
// chain: operations of a work-item that wait for one another from each iteration of a loop
// to the next. What does not depend on the iteration before can be done ahead.

#ifndef FW_COST_CHAIN_H
#define FW_COST_CHAIN_H

#include "cost/scope.h"

// Along the longest way through an iteration, times the iterations, over all sequential
// loops. slow: divisions, roots and functions; operations: the others.
typedef struct {
    double operations, slow;
} Chain;

// Needs: the scope knows the sizes.
Chain chain_of(Scope *scope, const Kernel *kernel);

#endif
