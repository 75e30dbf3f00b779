// SPDX-License-Identifier: Apache-2.0
//
// routine: the compute routine of an elementary function, as C text.

#ifndef FW_FUSE_ROUTINE_H
#define FW_FUSE_ROUTINE_H

#include "fuse/fuse.h"
#include "lower/routine.h"

// Joins what the threads of an instance have in the variable `name`, so that all of them
// have the result. op: as in RoutineTree.
typedef void PutTree(void *user, const char *name, Op op, int indent);

// Words of an array of `words` that a thread has of strips; one with fewer checks indices.
int strip_own(const Impl *impl, int words);

// Prints the statements of an implementation made of a def: parameters, then the result,
// are found where held says; `lane` is the thread of the instance. unroll: the compiler
// must know all indices. tree: for an implementation by strips that reduces.
void routine_emit(const Script *script, const Elementary *function, int impl,
                  const Held *held, const char *target, bool unroll, int indent,
                  PutTree *tree, void *user, Buf *out);

#endif
