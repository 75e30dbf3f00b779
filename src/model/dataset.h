// SPDX-License-Identifier: Apache-2.0
//
// Explorations as text: one row a candidate that was run, CSV, plain or gzipped.
//
//   # device: NVIDIA H200
//   # fingerprint: 0123456789abcdef
//   # generation_s: 12.5
//   program,size,expression,global0,global1,global2,local0,local1,local2,...,time_ns,status
//   jacobi2d,4096,"tile 16, local",4096,1024,1,64,4,1,...,181234.5,ok
//   jacobi2d,4096,"tile 64, local",4096,1024,1,64,4,1,...,,crashed
//
// Lines that begin with # come first and hold `key: value`; the keys device, fingerprint,
// command, generation_s, compilation_s and execution_s have a meaning, and the last three
// may be given by program too (`generation_s.jacobi2d: 1.5`). A row of the same first nine
// fields as one before it is that point measured again, and takes its place. Between local2
// and time_ns stand the other features, under names of the writer's choice. A row whose
// status is not `ok` has an empty time. Fields may be quoted ("" inside quotes is one
// quote).

#ifndef FW_DATASET_H
#define FW_DATASET_H

#include "cost/features.h"
#include "model/model.h"

typedef struct {
    const char *key, *value;
} DatasetMeta;

// The rows of one program at one size.
typedef struct {
    int program, size;
    int *row, n; // in the order of the file
    int ok;      // rows with a time
    double best_ns;
} DatasetGroup;

// Owner of all of it: the arena given to dataset_read.
typedef struct {
    int n, d;
    Matrix x;             // n by d: the sizes of launch first, then the file's features
    const char **feature; // d names
    int *program, *size, *group;
    const char **expression;
    const char **status;
    double *time_ns;    // NAN where there is none
    double *throughput; // best time of the group / time (000, section 5.1); 0 where none
    int nprogram, nsize, ngroup;
    const char **program_name; // in the order of the file
    const char **size_name;    // by the number they begin with, then by text
    DatasetGroup *group_at;    // by program, then size
    VEC(DatasetMeta) meta;
} Dataset;

// Appends what a file holds, gzipped or not. False with a diagnostic.
bool dataset_text(const char *path, Buf *text, Diags *diags);
// NULL with diagnostics, each at its line and column.
Dataset *dataset_read(const char *path, Arena *arena, Diags *diags);
// The same from a text that outlives the dataset and the diagnostics.
Dataset *dataset_parse(const Source *source, Arena *arena, Diags *diags);
const char *dataset_meta(const Dataset *data, const char *key); // NULL if absent

// columns.c -----------------------------------------------------------------------------

extern const char *const column_set_name[COLUMN_SETS];
// The same rows with the columns of a set; what they share stays with the first one.
Dataset *dataset_columns(const Dataset *data, ColumnSet set, Arena *arena);
// The value of a column, by its name, of a candidate whose features are known; false if it
// is none that features tell.
int column_feature(const char *name); // -1: it is a ratio, or no feature of ours
bool column_value(const char *name, const double feature[FEATURES], double *value);

#endif
