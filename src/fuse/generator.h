// SPDX-License-Identifier: Apache-2.0
//
// A kernel being printed, inside: what generate.c (elements on chip), strips.c (all in
// registers) and generate_plain.c (no calls) share.

#ifndef FW_FUSE_GENERATOR_H
#define FW_FUSE_GENERATOR_H

#include "emit/print.h"
#include "fuse/barrier.h"

typedef struct {
    const Script *script;
    FusedKernel *kernel;
    const Fusion *fusion;
    const Target *t;
    const char *name; // of the kernel
    Watch *watch;
    Buf *out;
    int indent;
    bool routine;            // a routine on its own: it sums nothing
    bool pending;            // asynchronous loads that nobody has waited for
    bool loaded[PLACES_MAX]; // elements whose load was printed
} Generator;

// copies.c: a copy of four words at k, between the address spaces that are named.
void copy_four(const Target *t, const char *to, const char *from, Buf *out);

// generate.c
void gen_put(Generator *g, const char *format, ...) FW_PRINTF(2, 3); // one line
const Elem *gen_elem(const Generator *g, int place);
// The kernel's attributes and name, as far as the opening parenthesis.
void gen_start(Generator *g, const char *name);
// The kernel's name and arguments, as far as the opening brace.
void gen_head(Generator *g, const char *name);
// "lid = ..": the item of the block, and the block.
void gen_ids(Generator *g);
void gen_barrier(Generator *g); // nothing where threads are loops
void gen_unroll(Generator *g);  // the loop that follows
// The line that says what a call makes.
void gen_title(Generator *g, const Call *call, const Impl *impl);
// The threads' sums of a scalar, added in pairs that do not depend on the device.
void gen_tree(Generator *g, const char *from, const char *shared, const char *to);
// In C only: what the host calls, with the addresses of all arguments, the arrays first.
void gen_entry(Generator *g, const char *name, int arrays, int ints);

// strips.c: the kernel of COPY_STRIPS, for OpenCL and CUDA, and the functions it calls.
void strips_prelude(const Target *t, Buf *out);
void strips_print(Generator *g, const char *name);

#endif
