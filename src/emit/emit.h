// SPDX-License-Identifier: Apache-2.0
//
// emit: kernel IR to text: one printer, one table row a target (targets.def).
// It decides nothing: loop forms, memory, order and names are in the kernel already.

#ifndef FW_EMIT_H
#define FW_EMIT_H

#include "kir/kir.h"

typedef struct Target Target;

const Target *target_find(const char *name); // "opencl", "cuda", ...; NULL: unknown
const Target *target_at(int i);              // the i-th; NULL: there are no more
// C++ whose numbers carry bounds of their rounding (doubt.txt), for the devices of the
// target of that name; NULL: it has none.
const Target *target_reference(const char *of);
bool target_is_exact(const Target *target); // its `standard` rounds as `exact` does
const char *target_name(const Target *target);
bool target_has_threads(const Target *target);      // else work-items become loops
bool target_has_images(const Target *target);       // else buffers stay buffers
bool target_takes_values(const Target *target);     // else scalars are buffers
const char *target_extension(const Target *target); // "cl", "cu", "c"
// What the table says of a device that is not present; -1: as its description says.
int target_warp(const Target *target);
int target_matrix_units(const Target *target);
bool target_whole_local(const Target *target);
// The bytes of a scalar in the buffers of kernels. A reference keeps two numbers for each,
// a value and the bound of its error, except in inputs that kernels only read, which hold
// the value alone. Halfs are floats there.
int64_t target_bytes(const Target *target, Scalar scalar);
// The options that make its compiler as exact as `math` asks for.
const char *target_options(const Target *target, Math math);

// True if a name means something in OpenCL C, CUDA or C, so that it cannot be used as it
// is: emit then appends `_` to it.
bool emit_reserved(const char *name);

// What all kernels of a program share: pragmas, helpers, the program's functions. The same
// text for every candidate of a program, so that many can be built as one.
void emit_prelude(Buf *out, const Target *target, const Program *program);
// One kernel. Target c: threads become loops (one after another, so barriers vanish; the
// outermost one is an OpenMP loop) and `void NAME_entry(void *const *arg)` is added, where
// arg[i] points to a buffer's data, or to the value of an int argument.
void emit_kernel(Buf *out, const Target *target, const Unit *unit, const Kernel *kernel);
// Whether the kernels of a unit wait themselves, each for the launch before its own.
bool emit_follows(const Target *target, const Unit *unit);
// Bytes of local memory that a launch of the kernel must ask for: 0 where its text declares
// all of it, which a target may allow up to a size only.
const Arith *emit_local_bytes(ArithCtx *ctx, const Target *target, const Kernel *kernel);
int64_t emit_local_most(const Target *target, const Kernel *kernel); // at any sizes
// A whole readable file: a comment with the program, its sizes, and each launch's shape;
// the prelude; every kernel.
void emit_unit(Buf *out, const Target *target, const Unit *unit);

#endif
