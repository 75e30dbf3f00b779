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

// Numbers as they lie in a file, for what no Value holds; the machine's order is the
// file's.
typedef struct {
    const char *dtype; // "<u4"
    const int64_t *shape;
    int ndim, bytes; // bytes: of one number
} NpyLayout;

// As npy_read, into room for as many numbers as the layout has.
bool npy_read_raw(const char *path, const NpyLayout *layout, void *to, Diags *diags);
// What comes before the numbers in such a file.
void npy_header(const NpyLayout *layout, Buf *out);
bool npy_write_raw(const char *path, const NpyLayout *layout, const void *from,
                   Diags *diags);

#endif
