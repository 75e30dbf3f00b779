// SPDX-License-Identifier: Apache-2.0
//
// Devices as models and models as devices.

#include "plan/describe.h"

#include <string.h>

void describe_device(const DeviceInfo *info, DeviceModel *model)
{
    *model = (DeviceModel){.is_cpu = info->is_cpu,
                           .warp = info->warp,
                           .line_bytes = info->line_bytes,
                           .units = info->compute_units,
                           .clock_mhz = info->clock_mhz,
                           .max_group = info->max_group,
                           .local_bytes = info->local_bytes,
                           .global_bytes = info->global_bytes};
    snprintf(model->name, sizeof model->name, "%s", info->name);
    device_model_complete(model);
}

// What the space of a program asks; a model is never opened.
void describe_model(const DeviceModel *model, DeviceInfo *info)
{
    *info = (DeviceInfo){.is_cpu = model->is_cpu,
                         .has_double = true,
                         .compute_units = model->units,
                         .clock_mhz = model->clock_mhz,
                         .warp = model->warp,
                         .lanes = 32,
                         .line_bytes = model->line_bytes,
                         .max_group = model->max_group,
                         .local_bytes = model->local_bytes,
                         .global_bytes = model->global_bytes,
                         .alloc_bytes = model->global_bytes / 4};
    for (int d = 0; d < 3; d++)
        info->max_item[d] = d < 2 ? model->max_group : MIN(model->max_group, 64);
    snprintf(info->id, sizeof info->id, "%s", model->id ? model->id : "");
    snprintf(info->name, sizeof info->name, "%s", model->name);
    snprintf(info->target, sizeof info->target, "opencl");
}

void describe_target(const char *target, DeviceInfo *info)
{
    if (strcmp(target, "c") == 0)
        info->lanes = 0;
    if (strcmp(target, "opencl") == 0)
        info->shuffle = false;
    if (strcmp(target, "cuda") == 0) {
        info->is_cpu = false;
        info->lanes = 32;
        info->shuffle = true;
    }
    snprintf(info->target, sizeof info->target, "%s", target);
}
