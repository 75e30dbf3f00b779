// SPDX-License-Identifier: Apache-2.0
//
// Device models: by name from the table, or from the description of a device present.

#include "cost/device_model.h"

#include <string.h>

typedef struct {
    const char *name, *part;
    int warp, line;
    int64_t local, mp_local, max_group;
    int mps, mp_items, mp_groups, mp_registers;
    int64_t l1, l2, global;
    int mhz;
    double bandwidth, gflops;
} ModelRow;

static const ModelRow rows[] = {
#define MODEL(name, ...) {name, __VA_ARGS__},
#include "cost/models.def"
#undef MODEL
};

static const char *const names[] = {
#define MODEL(name, ...) name,
#include "cost/models.def"
#undef MODEL
};

const char *const *device_model_names(int *n)
{
    *n = COUNTOF(names);
    return names;
}

static void complete(const ModelRow *row, DeviceModel *model)
{
    model->mp_local_bytes = row->mp_local * 1024;
    model->mp_items = row->mp_items;
    model->mp_groups = row->mp_groups;
    model->mp_registers = row->mp_registers;
    model->l1_bytes = row->l1 * 1024;
    model->l2_bytes = row->l2 * 1024;
    model->bandwidth = row->bandwidth;
    model->gflops = row->gflops;
}

bool device_model_find(const char *name, DeviceModel *model)
{
    for (int i = 0; i < COUNTOF(rows); i++) {
        const ModelRow *row = &rows[i];
        if (strcmp(row->name, name) != 0)
            continue;
        int64_t bytes = row->global << 20;
        *model = (DeviceModel){.info = {.has_double = true,
                                        .compute_units = row->mps,
                                        .clock_mhz = row->mhz,
                                        .warp = row->warp,
                                        .line_bytes = row->line,
                                        .max_group = row->max_group,
                                        .local_bytes = row->local,
                                        .global_bytes = bytes,
                                        .alloc_bytes = bytes / 4}};
        DeviceInfo *info = &model->info;
        snprintf(info->id, sizeof info->id, "%s", row->name);
        snprintf(info->name, sizeof info->name, "%s (model)", row->part);
        snprintf(info->target, sizeof info->target, "opencl");
        for (int d = 0; d < 3; d++)
            info->max_item[d] = d < 2 ? row->max_group : MIN(row->max_group, 64);
        complete(row, model);
        return true;
    }
    return false;
}

// What is usual: a GPU of the last ten years, or a core with its caches as multiprocessor.
static void complete_unknown(DeviceModel *model)
{
    const DeviceInfo *info = &model->info;
    bool cpu = info->is_cpu;
    model->mp_local_bytes = info->local_bytes;
    model->mp_items = cpu ? (int)MAX(info->max_group, 1) : 2048;
    model->mp_groups = cpu ? 1 : 32;
    model->mp_registers = cpu ? 32 * model->mp_items * MAX(info->warp, 1) : 65536;
    model->l1_bytes = cpu ? 48 << 10 : 128 << 10;
    model->l2_bytes = 4 << 20;
}

void device_model_of(const DeviceInfo *info, DeviceModel *model)
{
    *model = (DeviceModel){.info = *info};
    complete_unknown(model);
    for (int i = 0; i < COUNTOF(rows); i++)
        if (strstr(info->name, rows[i].part))
            complete(&rows[i], model);
    model->info.warp = MIN(MAX(info->warp, 1), LANES_MAX);
    model->info.line_bytes = MAX(info->line_bytes, 16);
    model->info.compute_units = MAX(info->compute_units, 1);
}
