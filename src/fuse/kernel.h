// SPDX-License-Identifier: Apache-2.0
//
// kernel: a fusion with every choice made, and its kernel as text.

#ifndef FW_FUSE_KERNEL_H
#define FW_FUSE_KERNEL_H

#include "device/device.h"
#include "fuse/routine.h"

enum { PLACES_MAX = MEMBERS_MAX * (ARITY_MAX + 1) };

// How elements move between global memory and the chip.
typedef enum {
    COPY_WORDS,  // a word a thread at a time
    COPY_FOURS,  // four neighbouring words; instances a block are a multiple of four
    COPY_ASYNC,  // four, without passing through registers; CUDA only
    COPY_STRIPS, // nothing is on chip: every thread has its words of long arrays in
                 // registers (Impl.strip). early: those of the next instance are loaded
                 // while this one's are computed
    COPIES
} CopyKind;
extern const char *const copy_name[COPIES];

typedef struct {
    uint8_t impl[MEMBERS_MAX]; // of the calls, in the fusion's order
    int instances;             // of a block at a time
    int serial;                // times it does so, one after another; 0 is 1
    bool early;     // all loads stand first: paper 004 loads just before the first use
    bool registers; // what one thread makes and uses stays with it, where indices are known
    CopyKind copy;
} Choice;

// A fusion made concrete: where its elements are, how many threads it takes.
typedef struct {
    const Fusion *fusion;
    Choice choice;
    int threads;               // of a block: instances x the most threads an instance
    HeldKind held[PLACES_MAX]; // of each element of the fusion
    int offset[PLACES_MAX];    // of those in memory, in words an instance
    int top;                   // on-chip words an instance
    int common;                // on-chip words of a block that belong to no instance
    int lanes[PLACES_MAX];     // of those held by a thread: threads an instance
    int barriers;              // in its kernel, once that is printed
} FusedKernel;

// False if the choice breaks a limit: more threads than group_max, more words on chip than
// local_bytes allow.
bool fused_make(const Script *script, const Fusion *fusion, const Choice *choice,
                int64_t local_bytes, int64_t group_max, FusedKernel *kernel);
int fused_lanes(const Script *script,
                const FusedKernel *kernel); // most threads an instance

// Targets: "opencl", "cuda", "c".
void fused_prelude(const char *target, Buf *out);
// Prints the kernel: global arrays in the order of fused_arguments, then the number of
// instances.
void fused_print(const Script *script, FusedKernel *kernel, const char *target,
                 const char *name, Buf *out);
// What a block of the device may have on chip. NVIDIA's OpenCL keeps a part of its 48 KB
// for itself: on an H200 kernels of all 49,152 bytes do not start.
int64_t fused_local_bytes(const DeviceInfo *device);
// What a block of any GPU has, where no device is asked.
enum { ON_CHIP_BYTES = 48 * 1024 };
// True if every call has a kernel that fits; else false with a diagnostic that names the
// largest element of the call that has none.
bool fused_fits(const FuseSpace *space, int64_t local_bytes, int64_t group_max,
                Diags *diags);
// Parts of kernels that are timed on their own.
#define ROUTINE_KINDS(X)                                                                   \
    X(COMPUTE, "compute") X(LOAD, "load") X(STORE, "store") X(BARRIER, "barrier")
typedef enum {
#define X(id, text) ROUTINE_##id,
    ROUTINE_KINDS(X)
#undef X
        ROUTINES
} RoutineKind;
// Prints a kernel (in, out, int N, int R) that does one part: R times the compute routine
// of the kernel's one call, each with a barrier, or R barriers; or one load or store of an
// element of `words` words. extra: words an instance that are allocated besides.
void fused_print_routine(const Script *script, FusedKernel *kernel, RoutineKind kind,
                         int words, int extra, const char *target, const char *name,
                         Buf *out);
// Prints a kernel (in, out, int fours) that copies four words 4 times a thread, by blocks
// of 256.
void fused_print_copy(const char *target, const char *name, Buf *out);
// Prints a kernel (out, int n) that does nothing for n >= 0.
void fused_print_empty(const char *target, const char *name, int threads, Buf *out);
// Elements: those that are loaded, those of one value for all, those that are stored, and
// those that are sums, of which each block stores its part; returns how many.
int fused_arguments(const Script *script, const Fusion *fusion, int *elem);
// True for an argument of one value for all, of several words: a block keeps a copy on
// chip.
bool fused_copies(const Script *script, const Fusion *fusion, int elem);
int fused_serial(const FusedKernel *kernel);
// The same for the result of a fusion's calls: 1 if they are made once.
int64_t fused_count(const Script *script, const Fusion *fusion, int64_t instances);
// The implementation by strips that those of the kernel share; NULL: it has none.
const Impl *fused_strips(const Script *script, const FusedKernel *kernel);
int strips_words(const Script *script, const Fusion *fusion); // of its longest array
// Parts of a sum that its kernel stores: one a block; by strips, one for each of the
// instances that a block has at a time.
int64_t fused_parts(const Script *script, const FusedKernel *kernel, int64_t instances);
int64_t fused_blocks(const Script *script, const FusedKernel *kernel, int64_t instances);
// Prints a kernel (const float *part, float *sum, int blocks) that adds the parts of blocks
// in a fixed order; global_size of it are needed, in blocks of SUM_THREADS.
enum { SUM_THREADS = 256, SUM_WORDS = 32 }; // SUM_WORDS: of an array, a block's
void fused_print_sum(const char *target, const char *name, int words, Buf *out);
int64_t fused_sum_size(int words);

#endif
