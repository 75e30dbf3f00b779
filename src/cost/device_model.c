// SPDX-License-Identifier: Apache-2.0
//
// Device models: by their id, or by what a device tells of itself.

#include "cost/device_model.h"

#include <string.h>

typedef struct {
    const char *id, *part;
    int warp, line;
    int64_t local, mp_local, max_group;
    int mps, mp_items, mp_groups, mp_registers;
    int64_t l1, l2, global;
    int mhz;
    double bandwidth, gflops;
} ModelRow;

static const ModelRow rows[] = {
#define MODEL(id, ...) {id, __VA_ARGS__},
#include "cost/models.def"
#undef MODEL
};

static const char *const ids[] = {
#define MODEL(id, ...) id,
#include "cost/models.def"
#undef MODEL
};

const char *const *device_model_ids(int *n)
{
    *n = COUNTOF(ids);
    return ids;
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

bool device_model_find(const char *id, DeviceModel *model)
{
    ARRAY_EACH_REF(const ModelRow *, row, rows, COUNTOF(rows)) {
        if (strcmp(row->id, id) != 0)
            continue;
        *model = (DeviceModel){.id = row->id,
                               .warp = row->warp,
                               .line_bytes = row->line,
                               .units = row->mps,
                               .clock_mhz = row->mhz,
                               .max_group = row->max_group,
                               .local_bytes = row->local,
                               .global_bytes = row->global << 20};
        snprintf(model->name, sizeof model->name, "%s", row->part);
        complete(row, model);
        return true;
    }
    return false;
}

// A GPU of the last ten years, or a core with its caches as multiprocessor.
static void complete_usual(DeviceModel *model)
{
    bool cpu = model->is_cpu;
    model->mp_local_bytes = model->local_bytes;
    model->mp_items = cpu ? (int)MAX(model->max_group, 1) : 2048;
    model->mp_groups = cpu ? 1 : 32;
    model->mp_registers = cpu ? 32 * model->mp_items * model->warp : 65536;
    model->l1_bytes = cpu ? 48 << 10 : 128 << 10;
    model->l2_bytes = 4 << 20;
}

void device_model_complete(DeviceModel *model)
{
    model->warp = MIN(MAX(model->warp, 1), LANES_MAX);
    model->line_bytes = MAX(model->line_bytes, 16);
    model->units = MAX(model->units, 1);
    complete_usual(model);
    for (int i = 0; i < COUNTOF(rows); i++)
        if (strstr(model->name, rows[i].part))
            complete(&rows[i], model);
}
