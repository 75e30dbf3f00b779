// SPDX-License-Identifier: Apache-2.0
//
// What the files of counts share: the walk's findings, and sets of iterations.

#ifndef FW_COST_COUNTS_INTERNAL_H
#define FW_COST_COUNTS_INTERNAL_H

#include "cost/counts.h"
#include "cost/scope.h"

// The iterations a statement is executed for: those of its loops for which the guards
// hold, by all work-items of a launch.
typedef struct {
    const Stm *const *loop;
    int nloop;
    const Guard *guard;
    int nguard;
    int halves;   // conditions on data around it
    double share; // of the iterations for which the guards hold
    double exec;  // how many, at the sizes of the setting
} Domain;

// So many of a property for each iteration of the domain.
typedef struct {
    const Domain *domain;
    int property;
    int64_t times;
} CountedItem;

// A load or store of global memory.
typedef struct {
    const Domain *domain;
    const Buffer *buffer;
    const Arith *index;
    int width; // scalars
    bool store;
    bool data;      // the index depends on data
    int64_t stride; // scalars from lane to lane
    double used;    // utilisation, once it was found
} Touch;

typedef struct {
    const Arith *var, *value;
} Definition;

typedef struct {
    const Buffer *buffer;
    bool store; // else loaded from
} ArrayUse;

typedef struct {
    Arena *arena;
    const Unit *unit;
    const Kernel *kernel;
    int64_t launches; // of the kernel
    FeatureSetting setting;
    Scope scope;
    VEC(CountedItem) items;
    VEC(Touch) touches;
    VEC(ArrayUse) arrays; // one entry for each direction
    bool accesses;        // are counted and put into classes
    VEC(Definition) defs; // integers of the kernel; value NULL: read from memory

    // Where the walk stands.
    VEC(const Stm *) loops;
    VEC(Guard) guards;
    int halves;
    double unguarded;
    const Domain *domain;
} Tally;

// Walks one kernel; false if a size has no value. kept: shares that a walk in a scope like
// its own found (NULL: none). accesses: else loads and stores are left
// out, which takes most of the time.
bool tally_kernel(Tally *tally, Arena *arena, const Unit *unit, const Kernel *kernel,
                  const FeatureSetting *setting, struct KeptShare *kept, bool accesses);
void tally_item(Tally *tally, const Domain *domain, int property, int64_t times);

// counts_stride.c: sets the stride of a touch while its index is in scope; then the class
// of all touches of the kernel together, as items.
void stride_note(Tally *tally, Touch *touch);
int stride_bank_degree(Tally *tally, const Buffer *buffer, const Arith *index, int width);
void stride_classes(Tally *tally);

// counts_system.c ---------------------------------------------------------------------

// The parameters of symbolic counts, and what counts with them.
typedef struct {
    ArithCtx *ctx;
    Sum sum;
    const Arith *param[SUM_PARAMS]; // sizes, and expressions of them that are not affine
} Symbols;

// Appends the pieces of the number of iterations of the domain; guards count as true where
// they depend on data. False, with a reason in symbols->sum.refused, if it is refused.
bool symbols_count(Symbols *symbols, const Tally *tally, const Domain *domain,
                   Pieces *pieces);

#endif
