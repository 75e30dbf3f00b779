// SPDX-License-Identifier: Apache-2.0
//
// run: the record that a tuning leaves beside its kernel, NAME.run.json: what was asked,
// where, every trial in its order, and the kernel that won. It is what reports are made of,
// and needs neither the store nor the device.

#ifndef FW_TUNE_RUN_H
#define FW_TUNE_RUN_H

#include "measure/json.h"
#include "tune/tune.h"

enum { RUN_VERSION = 1 };
#define RUN_SUFFIX ".run.json"

typedef struct {
    const char *name;
    int n;
    const char **value; // as text
} RunParam;

typedef struct {
    Point point; // choices among the values of the parameters
    TrialStatus status;
    double time_ns; // INFINITY unless ok
    double at_s;    // when it ended, from the start of the run
    double build_s, check_s, timing_s;
    bool stored, cut;
    bool front;          // of several objectives: no other trial beats it
    const double *value; // its metrics, then its objectives; NAN: not known; NULL: none is
    const char *log;     // the first line of why it failed, or ""
} RunTrial;

typedef struct Run {
    // What was asked.
    const char *command, *when, *version; // of the code generator
    const char *problem, *name, *file;    // label, main definition, path as given
    const char *kind, *math, *text; // text: of the program or script; "" of a template
    const char *where, *strategy, *model, *sandbox; // "" where there is none
    const char *size[64];
    int64_t size_value[64];
    int nsize;
    uint64_t seed;
    DeviceInfo device;
    // What came of it.
    double elapsed_s, space_points;
    double baseline_ns, best_ns; // INFINITY: not known
    double bytes, flops, copy_ns, compute_ns;
    const char *reference, *best_point, *target;
    const char *kernel, *plain_kernel; // texts; "" where there is none
    double max_error;
    int64_t global[3], local[3];
    RunParam param[SPACE_PARAMS_MAX];
    int nparam;
    const char **metric; // names
    int nmetric, nobjective;
    const char *objective[GOAL_OBJECTIVES]; // "min time"
    RunTrial *trial;
    int n;
} Run;

json_t *run_json(const Run *run); // owner: the caller
bool run_write(const char *path, const Run *run, Diags *diags);
// path: the file, or a folder that holds one such file. NULL with a diagnostic: it cannot
// be read, is no run, or was written by another version. Owner: arena.
Run *run_read(const char *path, Arena *arena, Diags *diags);
// "lx=64 ly=4", as point_print writes it.
void run_point(Buf *out, const Run *run, const Point *point);

#endif
