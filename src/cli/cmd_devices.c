// SPDX-License-Identifier: Apache-2.0
//
// forewarp devices: what is there to run on.

#include "cli/cli.h"

static json_t *device_json(const DeviceInfo *d)
{
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:b, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:b, s:b}", "id",
        d->id, "name", d->name, "platform", d->platform, "driver", d->driver, "fingerprint",
        d->fingerprint, "cpu", d->is_cpu, "compute_units", d->compute_units, "warp",
        d->warp, "line_bytes", d->line_bytes, "max_group", (json_int_t)d->max_group,
        "local_bytes", (json_int_t)d->local_bytes, "global_bytes",
        (json_int_t)d->global_bytes, "alloc_bytes", (json_int_t)d->alloc_bytes, "double",
        d->has_double, "half", d->has_half);
}

int cmd_devices(Options *o)
{
    DeviceInfo *info;
    int n = devices_list(o->arena, NULL, &info, &o->diags);
    json_t *all = json_array();
    for (int i = 0; i < n; i++) {
        const DeviceInfo *d = &info[i];
        printf("%-9s %s\n", d->id, d->name);
        printf(
            "          %s, %s; %d units, group %lld, local %lld KiB%s%s; fingerprint %s\n",
            d->platform, d->driver, d->compute_units, (long long)d->max_group,
            (long long)d->local_bytes / 1024, d->has_double ? ", double" : "",
            d->has_half ? ", half" : "", d->fingerprint);
        json_array_append_new(all, device_json(d));
    }
    return cli_json(o, all) ? 0 : 1;
}
