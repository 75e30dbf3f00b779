// SPDX-License-Identifier: Apache-2.0
//
// The index variables of a kernel: the range of each, and its values for the lanes of one
// warp. The warp is one of the group in the middle of the grid: away from every border.

#ifndef FW_COST_SCOPE_H
#define FW_COST_SCOPE_H

#include "cost/features.h"
#include "kir/passes.h"

typedef struct {
    bool uniform; // v[0] stands for all
    int64_t v[LANES_MAX];
} LaneValues;

typedef enum {
    BOUND_SIZE,   // a size
    BOUND_LOOP,   // a sequential loop
    BOUND_THREAD, // a loop over threads
    BOUND_INT,    // an integer defined by `def`
    BOUND_DATA,   // read from memory
} BoundKind;

typedef struct {
    BoundKind kind;
    const Arith *var, *def;
    int64_t n;     // LOOP, THREAD: takes the values in [0, n)
    int64_t at;    // SIZE: its value; LOOP: the iteration in the middle
    LoopKind loop; // THREAD
    int dim;
    unsigned stamp; // when lanes was computed
    LaneValues lanes;
} BoundVar;

typedef struct {
    Arena *arena;
    const Kernel *kernel;
    const FeatureSetting *setting;
    Table table;
    VEC(BoundVar *) bounds;
    BoundVar *recent[64]; // found last, by number of the variable
    int64_t global[3], groups[3], group_size, local_bytes;
    int warp, lanes; // the warp looked at; how many lanes it has
    int64_t local_id[3][LANES_MAX];
    unsigned stamp;
    unsigned again;         // how often a variable was declared that had been before
    struct KeptShare *kept; // shares of lists of conditions of this kernel; see share.c
} Scope;

// The value that counts for all launches of a kernel: that of the one in the middle.
static inline int64_t launch_usual(const Arith *number)
{
    return number->lo->value + (number->hi->value - number->lo->value) / 2;
}

// The value of a size, or of a number that launches say; false: it has none.
static inline bool scope_size(const Binding *binding, int n, const Arith *var,
                              int64_t *value)
{
    const Binding *size = var->launch ? NULL : binding_find(binding, n, var->name);
    *value = size ? size->value : var->launch ? launch_usual(var) : 0;
    return size || var->launch;
}

// False if a size is not bound.
bool scope_init(Scope *scope, Arena *arena, const Kernel *kernel,
                const FeatureSetting *setting);
int scope_warps(const Scope *scope); // of a group
// Threads that share the iterations of such a loop; 1 of a sequential one.
int64_t scope_threads(const Scope *scope, LoopKind loop, int dim);
void scope_warp(Scope *scope, int warp);
// Declares the variable of a FOR or INT statement; extent: of the FOR.
void scope_declare(Scope *scope, const Stm *stm, int64_t extent);
BoundVar *scope_find(Scope *scope, const Arith *var); // NULL if neither declared nor a size
// The value of a, of sizes only; false if it is more than that.
bool scope_constant(Scope *scope, const Arith *a, int64_t *value);
// The iterations of a loop; where they differ by group or item, the most that an item of
// the warp does; of a loop whose iterations depend on data, 1.
int64_t scope_extent(Scope *scope, const Arith *extent);
// The values for the lanes of the warp; lanes without an iteration do the last one. False
// if they depend on data.
bool scope_lanes(Scope *scope, const Arith *a, LaneValues *out);
// How many different lines of `line` scalars the lanes touch; width: scalars of an access.
int lanes_lines(const LaneValues *lanes, int n, int width, int64_t line);

// share.c: conditions.

// Every cond is >= 0; or, if negated, some is not.
typedef struct {
    const Arith *const *cond;
    int n;
    bool negated;
} Guard;

// The share of all values of the variables for which all guards hold, exact where the
// conditions are affine or the values few. Conditions on data count as true.
double scope_share(Scope *scope, const Guard *guard, int n);

#endif
