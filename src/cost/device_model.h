// SPDX-License-Identifier: Apache-2.0
//
// What features need to know of a device: its description, and what no API tells.
//
//   source  models.def: published specifications of the devices named there
//
// With a model by name, the features of any GPU can be found on any machine. It opens no
// device.

#ifndef FW_COST_DEVICE_MODEL_H
#define FW_COST_DEVICE_MODEL_H

#include "base/base.h"

enum { LANES_MAX = 64 }; // the widest warp that is modelled

typedef struct {
    const char *id; // of the table; NULL for others
    char name[256];
    bool is_cpu;
    int warp;       // work-items that execute together
    int line_bytes; // of a cache line
    int units;      // multiprocessors
    int clock_mhz;
    int64_t max_group, local_bytes, global_bytes; // most of a group; memory
    // What device_model_complete fills in:
    int64_t mp_local_bytes;   // local memory of a multiprocessor
    int mp_items, mp_groups;  // most work-items and groups resident on one
    int mp_registers;         // 32-bit registers of one
    int64_t l1_bytes;         // first-level data cache of one
    int64_t l2_bytes;         // last-level cache
    double bandwidth, gflops; // GB/s of memory, single-precision Gflop/s; 0: unknown
} DeviceModel;

const char *const *device_model_ids(int *n);
bool device_model_find(const char *id, DeviceModel *model);
// Completes a model that holds what a device tells of itself: from the table if its name is
// there, else with usual values, within the ranges that features need.
void device_model_complete(DeviceModel *model);

#endif
