// SPDX-License-Identifier: Apache-2.0
//
// Passes over the kernel IR: in place, one file each; passes.def says in which order and
// when they run.

#ifndef FW_KIR_PASSES_H
#define FW_KIR_PASSES_H

#include "base/base.h"
#include "kir/kir.h"

// A scoped table of pointers: pushed on entering a scope, popped on leaving it, found in
// constant time; of equal keys the newest is found.

typedef struct {
    const void *a, *b, *c;
} Key;

typedef struct {
    Key key;
    int next;  // older entry of the same bucket, or -1
    int value; // the user's
} TableEntry;

typedef struct {
    Arena *arena;
    int *bucket;
    int nbucket; // a power of two
    VEC(TableEntry) entry;
} Table;

void table_init(Table *table, Arena *arena);
int table_find(const Table *table, Key key); // number of the entry, or -1
int table_push(Table *table, Key key, int value);
void table_pop(Table *table, int len); // drops all but the oldest len entries

struct Pass {
    ArithCtx *ctx;
    Arena *arena;
    const Program *program; // whose generic sizes kernels take
    const KernelOptions *options;
    bool steps; // they take numbers of steps, too
};

// uses.c: fills params, sizes, funs and wide of a kernel from its statements.
void kernel_collect(const Pass *pass, Kernel *kernel);

// jam.c: sequential loops of a block that do not need each other become one loop.
void pass_jam(Pass *pass, Kernel *kernel);
// strips.c: the items of a group copy strips of the rows that they go through, one each, to
// local memory together, and back.
void pass_strips(Pass *pass, Kernel *kernel);
// vectors.c: neighbouring loads, and stores, of straight-line code become one of up to
// options->vector elements where the alignment is proved.
void pass_vectors(Pass *pass, Kernel *kernel);
// reuse.c: arrays in local memory that live one after another have the same memory.
void pass_reuse(Pass *pass, Kernel *kernel);
// barrier.c: drops every barrier with no conflicting accesses of local or global memory by
// different work-items before and after it; sets the fences of those that stay.
void pass_barriers(Pass *pass, Kernel *kernel);
// interior.c: splits the work of an item into interior (no boundary condition left in any
// index) and border, behind one condition.
void pass_interior(Pass *pass, Kernel *kernel);
// ranges.c: a loop over items that asks which item it is becomes loops that do not.
void pass_ranges(Pass *pass, Kernel *kernel);
// blocks.c: loops over items go over blocks of them where their rows are far apart.
void pass_blocks(Pass *pass, Kernel *kernel);
// interchange.c: a loop over items goes inside the loops that all of them have in common.
void pass_interchange(Pass *pass, Kernel *kernel);
// invariants.c: what every iteration of a loop loads from the same place is loaded once.
void pass_invariants(Pass *pass, Kernel *kernel);
// simd.c: loops over items whose iterations may be lanes of vectors say so.
void pass_simd(Pass *pass, Kernel *kernel);
// tasks.c: a work-item does what all items of a group do, and what is left is shared out.
// kernel_has_tasks: may it?
void pass_tasks(Pass *pass, Kernel *kernel);
bool kernel_has_tasks(const Kernel *kernel);
// ahead.c: a loop that first copies inputs to local memory loads what the next iteration
// copies while this one computes.
void pass_ahead(Pass *pass, Kernel *kernel);
// ring.c: the same by copies that go on by themselves, several iterations ahead.
void pass_ring(Pass *pass, Kernel *kernel);
// pairs.c: neighbouring items exchange what matrix units left them, to store more at a
// time.
void pass_pairs(Pass *pass, Kernel *kernel);
// masks.c: a sum to which nothing is added where a condition does not hold stays as it is.
void pass_masks(Pass *pass, Kernel *kernel);
// same.c: one name for constants of the same value in straight-line code.
void pass_same(Pass *pass, Kernel *kernel);
// loads.c: one load for loads of the same element in straight-line code.
void pass_loads(Pass *pass, Kernel *kernel);
// windows.c: what an iteration of a sequential loop loads and the next one would load again
// stays in variables.
void pass_windows(Pass *pass, Kernel *kernel);
// indices.c: names the common variable part of the indices of a block, for people to read
// and for compilers to share: `a[i - 4096]`.
void pass_indices(Pass *pass, Kernel *kernel);

// Accesses of memory that items share, and whether an element is only one item's.

typedef struct {
    const Buffer *buffer;
    const Arith *index;
    int width;
    bool write;
    const Stm *const *loops; // around it, outermost first
    int nloop;
    bool groups; // items of other groups count
} Access;

// Does a loop give its iterations to the items of a group?
static inline bool loop_is_of_items(const Stm *loop)
{
    return loop->loop == LOOP_LCL || loop->loop == LOOP_GLB;
}

// Only one item, in one iteration of its loops, touches these elements; local: the shape of
// the group.
bool access_is_own(const Access *access, const int64_t local[3]);
// Does its index differ wherever a variable that it mentions does?
bool access_is_injective(const Access *access);

#endif
