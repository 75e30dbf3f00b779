// SPDX-License-Identifier: Apache-2.0
//
// How many groups of a kernel a multiprocessor holds at once, estimated.

#ifndef FW_COST_RESIDENCY_H
#define FW_COST_RESIDENCY_H

#include "cost/walk.h"

// 32-bit registers of a work-item, from the values that are live at once; not more than an
// instruction can name.
double residency_registers(const CostWalk *walk);
// Groups that fit beside each other; 0 if not even one does.
double residency_groups(const CostWalk *walk, const DeviceModel *device);

#endif
