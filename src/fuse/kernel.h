// SPDX-License-Identifier: Apache-2.0
//
// kernel: a fusion with every choice made, and its kernel as text.

#ifndef FW_FUSE_KERNEL_H
#define FW_FUSE_KERNEL_H

#include "fuse/routine.h"

enum { PLACES_MAX = MEMBERS_MAX * (ARITY_MAX + 1) };

// How elements move between global memory and the chip.
typedef enum {
    COPY_WORDS, // a word a thread at a time
    COPY_FOURS, // four neighbouring words; instances a block are a multiple of four
    COPY_ASYNC, // four, without passing through registers; CUDA only
    COPIES
} CopyKind;
extern const char *const copy_name[COPIES];

typedef struct {
    uint8_t impl[MEMBERS_MAX]; // of the calls, in the fusion's order
    int instances;             // of a block
    bool early;     // all loads stand first: paper 004 loads just before the first use
    bool registers; // what one thread makes and uses stays with it, where indices are known
    CopyKind copy;
} Choice;

// A fusion made concrete: where its elements are, how many threads it takes.
typedef struct {
    const Fusion *fusion;
    Choice choice;
    int threads;                 // of a block: instances x the most threads an instance
    HeldKind held[PLACES_MAX];   // of each element of the fusion
    uint16_t offset[PLACES_MAX]; // of those in memory, in words an instance
    int top;                     // on-chip words an instance
    int lanes[PLACES_MAX];       // of those held by a thread: threads an instance
    int barriers;                // in its kernel, once that is printed
} FusedKernel;

// False if the choice breaks a limit: more threads than group_max, more words on chip than
// local_bytes allow.
bool kernel_make(const Script *script, const Fusion *fusion, const Choice *choice,
                 int64_t local_bytes, int64_t group_max, FusedKernel *kernel);
int kernel_lanes(const Script *script,
                 const FusedKernel *kernel);                     // most threads an instance
double kernel_flops(const Script *script, const Fusion *fusion); // an instance

// Targets: "opencl", "cuda", "c".
void kernel_prelude(const char *target, Buf *out);
// Prints the kernel: global arrays in the order of kernel_arguments, then the number of
// instances.
void kernel_print(const Script *script, FusedKernel *kernel, const char *target,
                  const char *name, Buf *out);
// The elements that are loaded, then those that are stored; returns how many.
int kernel_arguments(const Script *script, const Fusion *fusion, int *elem);

#endif
