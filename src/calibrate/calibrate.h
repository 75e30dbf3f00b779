// SPDX-License-Identifier: Apache-2.0
//
// calibrate: measurement kernels, run once on a device, and the weights fitted to them.
//
//   source  paper 003, section 4; the kernels are in calibrate.def

#ifndef FW_CALIBRATE_CALIBRATE_H
#define FW_CALIBRATE_CALIBRATE_H

#include "calibrate/predict.h"

typedef enum {
    CLASS_EMPTY,
    CLASS_STRIDE_1,
    CLASS_SCALE_ADD,
    CLASS_TRANSPOSE,
    CLASS_FILLED,
    CLASS_PRODUCT,
    CLASS_ARITHMETIC,
    CLASS_EXTRA,
    CLASS_TEST, // not fitted: what the fit is judged by
    CLASSES
} KernelClass;

// One kernel at one size and point.
typedef struct {
    KernelClass class;
    const char *kernel, *point;
    int64_t n;
    double time_ns;
    double count[PROPERTIES];
    Demand demand; // of its one kernel
} Measured;

typedef struct {
    DeviceInfo device;
    VEC(Measured) rows;
    bool demands;     // the rows have them
    double launch_ns; // the shortest run of an empty kernel
} Calibration;

typedef struct {
    const char *device;
    double budget_s;
    bool tests; // the kernels of class TEST too
    Workplace place;
    void (*progress)(void *user, const char *kernel, int done, int of);
    void *user;
} CalibrateOptions;

// Runs the kernels; strings live in arena. False with diagnostics.
bool calibrate(const CalibrateOptions *options, Arena *arena, Calibration *calibration,
               Diags *diags);
// Fits weights to the rows that are no tests and run for no less than an empty kernel. On a
// CPU they are those of the paper's properties, on a GPU those of demands too, and the
// properties with what doc/counts.md says goes beyond the paper.
void calibrate_fit(const Calibration *calibration, Weights *weights);
// Properties alone, whatever the device is: the paper's, or with what goes beyond.
void calibrate_counts(const Calibration *calibration, bool paper, Weights *weights);
// Whatever the device is. Needs: the rows have demands.
void calibrate_overlap(const Calibration *calibration, Overlap *overlap);

// As text: a head of `# key: value` lines, then CSV with the counts that occur.
void calibration_write(Buf *out, const Calibration *calibration);
bool calibration_read(const char *path, Arena *arena, Calibration *calibration,
                      Diags *diags);

#endif
