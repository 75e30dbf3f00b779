// SPDX-License-Identifier: Apache-2.0
//
// ceiling: what a device can reach, what a problem must do at least, and so the time below
// which no kernel can get: the roofline.
//
//   source  the roofline model (Williams, Waterman, Patterson, CACM 2009); paper 003

#ifndef FW_CALIBRATE_CEILING_H
#define FW_CALIBRATE_CEILING_H

#include "problem/problem.h"
#include "store/store.h"

// What a device was measured to reach; 0: it cannot, or it is not known.
typedef struct {
    double copy_gbs; // bytes read and written by a copy kernel
    double float_gflops, double_gflops;
    double int_gops; // a multiply-add is two, as of floats
    bool matrix;     // its matrix units add up products: what they reach is not measured
} Ceilings;

// Bytes moved by the copy that bounds a problem: the power of two nearest to what it moves,
// so that what fits a cache is compared with what fits the same cache; bounded by the
// device's memory. 0: the size at which a device as such is measured.
int64_t ceilings_bytes(const DeviceInfo *device, double bytes);
// What is stored of a device; false with a diagnostic if the store fails.
bool ceilings_load(Store *store, const DeviceInfo *device, int64_t bytes,
                   Ceilings *ceilings, Diags *diags);
// Measures, in a worker, what is not known in `ceilings`, and stores it. About a second.
bool ceilings_measure(Store *store, const DeviceInfo *device, const Workplace *place,
                      int64_t bytes, Ceilings *ceilings, Diags *diags);
// What is stored, and what is not as measured now; false as both.
bool ceilings_find(Store *store, const DeviceInfo *device, const Workplace *place,
                   int64_t bytes, Ceilings *ceilings, Diags *diags);

// The larger of the two bounds; 0 where ceilings are not known.
typedef struct {
    double ns, memory_ns, compute_ns;
} Roofline;

Roofline roofline_of(const Work *work, const Ceilings *ceilings);
// A kernel that is far faster than the copy shows that something else ran beside the copy
// when it was measured.
bool roofline_is_refuted(Roofline roofline, double ns);

#endif
