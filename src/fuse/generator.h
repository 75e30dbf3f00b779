// SPDX-License-Identifier: Apache-2.0
//
// A kernel being printed, inside: what generate.c (elements on chip) and strips.c (all in
// registers) share.

#ifndef FW_FUSE_GENERATOR_H
#define FW_FUSE_GENERATOR_H

#include "fuse/barrier.h"

// What the languages write differently.
typedef struct {
    const char *name, *start, *function, *global, *local, *restricted, *barrier, *thread,
        *block, *unroll;
    const char *four; // copies four words from `from + k` to `to + k`; @: address spaces
    bool loops;       // threads are loops
} Dialect;

typedef struct {
    const Script *script;
    FusedKernel *kernel;
    const Fusion *fusion;
    const Dialect *d;
    Watch *watch;
    Buf *out;
    int indent;
    bool routine;            // a routine on its own: it sums nothing
    bool pending;            // asynchronous loads that nobody has waited for
    bool loaded[PLACES_MAX]; // elements whose load was printed
} Generator;

void gen_put(Generator *g, const char *format, ...) FW_PRINTF(2, 3); // one line
const Elem *gen_elem(const Generator *g, int place);
// The kernel's name and arguments, as far as the opening brace.
void gen_head(Generator *g, const char *name);
// Where memory of a block is declared: "__shared__ ", "local ", "".
const char *gen_shared(const Generator *g);
// The line that says what a call makes.
void gen_title(Generator *g, const Call *call, const Impl *impl);

// strips.c: the kernel of COPY_STRIPS, for OpenCL and CUDA, and the functions it calls.
void strips_prelude(const Dialect *d, Buf *out);
void strips_print(Generator *g, const char *name);

#endif
