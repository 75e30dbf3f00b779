// SPDX-License-Identifier: Apache-2.0
//
// routine: the compute routine of an elementary function, as C text.

#ifndef FW_FUSE_ROUTINE_H
#define FW_FUSE_ROUTINE_H

#include "fuse/fuse.h"

// Where a routine finds a parameter or the result: words of an instance in memory, the
// words of one thread in an array of its own, or the one word of a thread.
typedef enum { HELD_MEMORY, HELD_ARRAY, HELD_SCALAR } HeldKind;

typedef struct {
    HeldKind kind;
    const char *name;
} Held;

// Adds up what the threads of an instance have in the variable `name`, so that all of them
// have the result. op: '+', or '<' and '>' for the least and the greatest.
typedef void PutTree(void *user, const char *name, char op, int indent);

// operation.c: an operation on arguments in this text; NULL: no kernel of a script has it.
// of_ints: its result is an int. Owner: arena.
const char *operation_text(Op op, bool of_ints, const char *const *arg, Arena *arena);

// Words of an array of `words` that a thread has of strips; one with fewer checks indices.
int strip_own(const Impl *impl, int words);

// Prints the statements of an implementation made of a def: parameters, then the result,
// are found where held says; `lane` is the thread of the instance. unroll: what stands
// before a loop whose indices must be known when it is compiled, or "". tree: for an
// implementation by strips that reduces.
void routine_emit(const Script *script, const Elementary *function, int impl,
                  const Held *held, const char *unroll, int indent, PutTree *tree,
                  void *user, Buf *out);

#endif
