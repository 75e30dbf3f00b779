// SPDX-License-Identifier: Apache-2.0
//
// The table psi, inside: what psi.c (filling it) and predict.c (asking it) share.

#ifndef FW_FUSE_PSI_H
#define FW_FUSE_PSI_H

#include "fuse/predict.h"

// A routine at a point of the grid.
typedef struct {
    RoutineKind kind;
    const Elementary *function; // COMPUTE
    int impl, words, threads;   // words: LOAD, STORE; threads: BARRIER
    CopyKind copy;
    int lanes; // LOAD, STORE: threads an instance
    int instances, extra;
    int flight; // instances that a unit of the device has on their way at once
    double ns;  // an instance; INFINITY: it does not run
    const char *key;
} Row;

struct Psi {
    Arena *arena;
    DeviceInfo device;
    int barrier_words; // on chip while a barrier was timed
    double launch_ns;
    double word_ns;           // a word read and a word written by a plain copy, each
    double block_ns, warp_ns; // the start of a block, and of each of its warps
    VEC(Row) rows;
};

// What NVIDIA's multiprocessors hold since compute capability 9.0; a block costs 1 KB more.
enum { UNIT_THREADS = 2048, UNIT_BLOCKS = 32, UNIT_BYTES = 228 * 1024, BLOCK_BYTES = 1024 };

// On chip, with so many words an instance besides.
int64_t psi_block_bytes(const FusedKernel *kernel, int extra);
// Blocks that a multiprocessor holds at once, at least 1.
int psi_resident(int threads, int64_t bytes);

#endif
