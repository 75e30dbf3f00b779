// SPDX-License-Identifier: Apache-2.0
//
// npy: arrays in NumPy's file format, one plane of a value a file. Numbers lie in memory as
// they do in a file: a long through a double would lose its last digits.

#ifndef FW_NPY_H
#define FW_NPY_H

#include "ir/ir.h"

// Reads a whole file of the expected type, whose lengths are constant, into room for it.
//   needs   a type of one plane (no tuples); a vector is one more dimension
//   error   diag_world: the file cannot be read; diag_error: it does not hold that type
bool npy_read(const char *path, const Type *expected, void *to, Diags *diags);
// Writes one plane, in C order; a reader never sees half a file. A scalar has shape ().
bool npy_write(const char *path, const Type *type, int plane, const void *from,
               Diags *diags);

// Numbers of any kind; the machine's order is the file's.
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
