// SPDX-License-Identifier: Apache-2.0
//
// routine: a function of small arrays as what one of the threads that share its result
// does, in the midst of a kernel that somebody else prints: the calls of a script (fuse).

#ifndef FW_LOWER_ROUTINE_H
#define FW_LOWER_ROUTINE_H

#include "lower/lower.h"

// Where a routine finds a parameter or the result: words of an instance in memory, the
// words of one thread in an array of its own, or the one word of a thread.
typedef enum { HELD_MEMORY, HELD_ARRAY, HELD_SCALAR } HeldKind;

typedef struct {
    HeldKind kind;
    const char *name;
} Held;

typedef struct {
    const Program *program; // bound
    const Function *def;
    int lanes; // threads that share the leading dimensions of the result
    int strip; // 0; else neighbouring words of every array that a thread takes at a time,
               // thread after thread, again and again, so that it has words of its own
    const Held *held; // of each parameter, then of the result
    bool unroll;      // loops ask to be written out: indices must be known to the compiler
} RoutineOptions;

// After so many statements all threads join what they have in var: by OP_ADD, OP_MINIMUM or
// OP_MAXIMUM.
typedef struct {
    int after;
    const Var *var;
    Op join;
} RoutineTree;

typedef struct Routine {
    Kernel *kernel;            // its body and names alone
    const Buffer *const *held; // as in the options
    const Arith *lane;         // the thread: a variable, or 0 where there is one
    VEC(RoutineTree) trees;    // of strips
} Routine;

// Words of an array of so many that a thread has of strips; one with fewer checks indices.
int64_t routine_own(int lanes, int strip, int64_t words);

// False with a diagnostic (F016, or one of lower's) where no routine can be made so: of
// patterns that store, of lengths that are not known; by strips, of an index that is
// another thread's. Owner: arena.
bool lower_routine(const RoutineOptions *options, Arena *arena, Diags *diags,
                   Routine *routine);

#endif
