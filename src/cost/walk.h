// SPDX-License-Identifier: Apache-2.0
//
// One walk over a kernel that knows how often each statement is executed.

#ifndef FW_COST_WALK_H
#define FW_COST_WALK_H

#include "cost/scope.h"

typedef struct CostWalk CostWalk;

typedef struct {
    const Buffer *buffer; // global or local
    const Arith *index;
    int width; // scalars
    bool store;
    bool border;  // under a condition that rarely holds
    double exec;  // how often, per work-item
    double warps; // how many warps execute it, over those whose lanes would be full
    const LaneValues *lanes; // of the index; NULL: it depends on data
    int lines;               // that the lanes touch, of global memory
} CountedAccess;

// Counts are per work-item, averaged over all of a launch.
struct CostWalk {
    Arena *arena;
    Scope scope;
    void (*on_access)(CostWalk *walk, void *user, const CountedAccess *access);
    void *user;
    double exec;     // of the statement walked
    double loads[3]; // by address space
    double stores[3];
    double barriers, ifs, bodies, flops;
    double spared; // operations of floats that need no issue, because matrix units do them
    int64_t in_flight; // most bytes loaded from global memory in straight-line code
    int registers;     // 32-bit words live at once: variables
    int64_t held;      // bytes of private arrays

    double unguarded; // exec without the conditions
    double spread;    // Access.warps
    VEC(Guard) guards;
    int border;
    int64_t flight;
    int position;
    Table live; // variables: first and last position
    VEC(struct WordRange) ranges;
    VEC(struct Cost) costs;
};

typedef struct WordRange {
    int first, last, words;
} WordRange;

typedef struct Cost {
    const Function *function;
    double flops;
} Cost;

// How many times as fast as multiply-adds of floats, or of doubles, matrix units multiply
// factors of a type: data sheets of the A100 and the H100 say 16, 8 and 2, none of a card
// before Blackwell more. 0: there are no units.
extern const double matrix_times[SCALARS];

// Walks the kernel; false if a size is not bound. on_access may be NULL. The walk's
// memory is the arena's.
bool walk_kernel(CostWalk *walk, Arena *arena, const Kernel *kernel,
                 const FeatureSetting *setting,
                 void (*on_access)(CostWalk *walk, void *user, const CountedAccess *access),
                 void *user);

#endif
