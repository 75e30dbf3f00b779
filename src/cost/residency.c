// SPDX-License-Identifier: Apache-2.0
//
// Registers and residency; see residency.h.

#include "cost/residency.h"

#include <math.h>

enum { REGISTERS_FIXED = 10, REGISTERS_MOST = 255, PRIVATE_WORDS_MOST = 256 };

// 10 registers hold ids, addresses and bounds; private arrays of up to 256 words are
// taken to be kept in registers, as their indices are mostly constant.
double residency_registers(const CostWalk *walk)
{
    double words = (double)walk->held / 4;
    words = words <= PRIVATE_WORDS_MOST ? words : 0;
    return MIN(REGISTERS_FIXED + walk->registers + words, REGISTERS_MOST);
}

double residency_groups(const CostWalk *walk, const DeviceModel *device)
{
    int64_t warp = device->warp, size = walk->scope.group_size;
    double items = (double)((size + warp - 1) / warp * warp);
    double local = (double)walk->scope.local_bytes;
    double groups = MIN(device->mp_groups, floor(device->mp_items / items));
    if (local > 0)
        groups = MIN(groups, floor((double)device->mp_local_bytes / local));
    return MIN(groups, floor(device->mp_registers / (residency_registers(walk) * items)));
}
