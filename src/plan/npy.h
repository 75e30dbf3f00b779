// SPDX-License-Identifier: Apache-2.0
//
// npy: arrays in NumPy's file format, one plane of a Value a file.

#ifndef FW_NPY_H
#define FW_NPY_H

#include "ir/ir.h"

// Reads a whole file as a value of the expected type, whose lengths are constant.
//   needs   a type of one plane (no tuples); a vector is one more dimension
//   error   diag_world: the file cannot be read; diag_error: it does not hold that type
//   owner   arena
bool npy_read(const char *path, Arena *arena, const Type *expected, Value **out,
              Diags *diags);
// Writes one plane, in C order; a reader never sees half a file. A scalar has shape ().
bool npy_write(const char *path, const Value *value, int plane, Diags *diags);

#endif
