// SPDX-License-Identifier: Apache-2.0
//
// execute: a cover of fused kernels as a job of a rig, its data, and its reference.

#ifndef FW_FUSE_EXECUTE_H
#define FW_FUSE_EXECUTE_H

#include "fuse/kernel.h"
#include "measure/measure.h"

// Kernels that together make every call, in an order they can run in.
typedef struct {
    int n;
    FusedKernel kernel[CALLS_MAX];
    double predicted_ns; // an instance
} Solution;

// As text: `123/3.3.1 x32 | 456/5.5.5 x16`: the calls in their order, the threads an
// instance of each, the instances of a block; + for loads first, * for registers, then how
// it copies. The same text, the same kernels.
void solution_print(Buf *out, const Script *script, const Solution *solution);

// Reads what solution_print writes; false with a diagnostic if it is no solution of the
// script, or does not fit a group of the device.
bool solution_parse(const FuseSpace *space, const char *text, const DeviceInfo *device,
                    Solution *solution, Diags *diags);
// The launches as comments, then everything the kernels need and the kernels.
void solution_source(const Script *script, Solution *solution, int64_t instances,
                     const char *target, Buf *out);

// The numbers of the buffers of elements that are inputs, then of those that are outputs,
// in the order of `return`; -1: it is an intermediate. Returns how many there are.
int script_buffers(const Script *script, int number[ELEMS_MAX]);

// What a solution works on: a list of instances of every element.
typedef struct {
    int64_t instances;
    float **value;     // of each element; what calls make: as the reference has it
    RigBuffer *buffer; // inputs, then outputs
    int nbuffer;
    int buffer_of[ELEMS_MAX]; // its number; -1: an intermediate
} ScriptData;

// Seeded inputs, uniform in [0.5, 1.5). Owner: arena.
ScriptData *script_inputs(const Script *script, int64_t instances, uint64_t seed,
                          Arena *arena);
// What the outputs must be, also as value: from the first implementation of each call, one
// after another, as C on the host device, after the interpreter gave the same for the first
// instances. False with diagnostics.
bool script_expect(const Script *script, ScriptData *data, const Workplace *place,
                   Diags *diags);

// A solution as a job: its kernels are named PREFIX0, PREFIX1, ..; their text goes to
// source.
void solution_job(const Script *script, Solution *solution, int64_t instances,
                  const int *buffer_of, int nbuffer, const char *target, const char *prefix,
                  const char *prelude, Arena *arena, Buf *source, Job *job);

// Times a kernel that copies so many times four words, a multiple of 1024; see
// rig_run_one.
bool fused_time_copy(Rig *rig, int64_t fours, int samples, Trial *trial, Diags *diags);
// Times so many blocks that do nothing.
bool fused_time_empty(Rig *rig, int64_t blocks, int threads, Trial *trial, Diags *diags);

#endif
