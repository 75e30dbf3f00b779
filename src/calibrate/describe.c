// SPDX-License-Identifier: Apache-2.0
//
// Devices as models and models as devices.

#include "calibrate/describe.h"

#include "emit/emit.h"

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
                         .has_texture = true,
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
    snprintf(info->target, sizeof info->target, "%s", language_name[LANGUAGE_OPENCL]);
}

void describe_target(const char *target, DeviceInfo *info)
{
    DeviceModel model;
    const Target *t = target_find(target);
    int warp = target_warp(t);
    if (strcmp(info->target, target) != 0)
        info->shuffle = info->in_order = warp > 0;
    info->matrix = target_matrix_units(t);
    info->lanes = warp < 0 ? info->lanes : warp;
    info->is_cpu &= warp <= 0;
    if (target_whole_local(t) && device_model_find(info->id, &model))
        info->local_bytes = MAX(info->local_bytes, model.mp_local_bytes - 1024);
    snprintf(info->target, sizeof info->target, "%s", target);
}

// JSON ----------------------------------------------------------------------------------

// Beside texts and flags, the numbers: their key, place, and range.
typedef struct {
    const char *key;
    size_t at;
    bool wide; // 64 bits
    int64_t least, most;
} NumberRow;

#define NUMBER(key, field, wide, least, most)                                              \
    {                                                                                      \
        key, offsetof(DeviceInfo, field), wide, least, most                                \
    }
static const NumberRow number_row[] = {
    NUMBER("units", compute_units, false, 1, 1 << 20),
    NUMBER("clock_mhz", clock_mhz, false, 0, 1 << 20),
    NUMBER("warp", warp, false, 1, 64),
    NUMBER("lanes", lanes, false, 0, 64),
    NUMBER("matrix", matrix, false, 0, 2),
    NUMBER("line_bytes", line_bytes, false, 16, 4096),
    NUMBER("max_group", max_group, true, 1, 1 << 20),
    NUMBER("local_bytes", local_bytes, true, 0, INT64_MAX),
    NUMBER("global_bytes", global_bytes, true, 0, INT64_MAX),
};
#undef NUMBER

json_t *device_json(const DeviceInfo *d)
{
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b}",
                             "id", d->id, "device", d->name, "driver", d->driver, "limits",
                             d->limits, "fingerprint", d->fingerprint, "target", d->target,
                             "is_cpu", d->is_cpu, "shuffle", d->shuffle, "in_order",
                             d->in_order, "half", d->has_half, "double", d->has_double);
    ARRAY_EACH_REF(const NumberRow *, row, number_row, COUNTOF(number_row)) {
        const char *at = (const char *)d + row->at;
        int64_t value = row->wide ? *(const int64_t *)at : *(const int *)at;
        json_object_set_new(json, row->key, json_integer((json_int_t)value));
    }
    return json;
}

static void get_text(const json_t *json, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(json, key));
    snprintf(out, size, "%s", text ? text : "");
}

void device_of_json(const json_t *json, DeviceInfo *d)
{
    *d = (DeviceInfo){0};
    get_text(json, "id", d->id, sizeof d->id);
    get_text(json, "device", d->name, sizeof d->name);
    get_text(json, "driver", d->driver, sizeof d->driver);
    get_text(json, "limits", d->limits, sizeof d->limits);
    get_text(json, "fingerprint", d->fingerprint, sizeof d->fingerprint);
    get_text(json, "target", d->target, sizeof d->target);
    d->is_cpu = json_is_true(json_object_get(json, "is_cpu"));
    d->shuffle = json_is_true(json_object_get(json, "shuffle"));
    d->in_order = json_is_true(json_object_get(json, "in_order"));
    d->has_half = json_is_true(json_object_get(json, "half"));
    d->has_double = !json_is_false(json_object_get(json, "double")); // files before it
    ARRAY_EACH_REF(const NumberRow *, row, number_row, COUNTOF(number_row)) {
        int64_t value = json_integer_value(json_object_get(json, row->key));
        value = MIN(MAX(value, row->least), row->most);
        if (row->wide)
            *(int64_t *)((char *)d + row->at) = value;
        else
            *(int *)((char *)d + row->at) = (int)value;
    }
    d->alloc_bytes = d->global_bytes;
    for (int i = 0; i < 3; i++)
        d->max_item[i] = d->max_group;
}
