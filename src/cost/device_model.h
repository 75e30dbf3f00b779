// SPDX-License-Identifier: Apache-2.0
//
// What features need to know of a device: its description, and what no API tells.
//
//   source  models.def: published specifications of the devices named there
//
// With a model by name, the features of any GPU can be found on any machine.

#ifndef FW_COST_DEVICE_MODEL_H
#define FW_COST_DEVICE_MODEL_H

#include "device/device.h"

typedef struct {
    DeviceInfo info;
    int64_t mp_local_bytes;   // local memory of a multiprocessor
    int mp_items, mp_groups;  // most work-items and groups resident on one
    int mp_registers;         // 32-bit registers of one
    int64_t l1_bytes;         // first-level data cache of one
    int64_t l2_bytes;         // last-level cache
    double bandwidth, gflops; // GB/s of memory, single-precision Gflop/s; 0: unknown
} DeviceModel;

enum { LANES_MAX = 64 }; // the widest warp that is modelled

const char *const *device_model_names(int *n);
bool device_model_find(const char *name, DeviceModel *model);
// Of a device present: its own description, completed from the table if it is a device
// named there, else by what is usual.
void device_model_of(const DeviceInfo *info, DeviceModel *model);

#endif
