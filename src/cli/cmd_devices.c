// SPDX-License-Identifier: Apache-2.0
//
// forewarp devices: what is there to run on, and what it was measured to reach.

#include "cli/cli.h"

#include <unistd.h>

static json_t *device_json(const DeviceInfo *d)
{
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:b, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:b, s:b, s:s}",
        "id", d->id, "name", d->name, "platform", d->platform, "driver", d->driver,
        "fingerprint", d->fingerprint, "cpu", d->is_cpu, "compute_units", d->compute_units,
        "warp", d->warp, "line_bytes", d->line_bytes, "max_group", (json_int_t)d->max_group,
        "local_bytes", (json_int_t)d->local_bytes, "global_bytes",
        (json_int_t)d->global_bytes, "alloc_bytes", (json_int_t)d->alloc_bytes, "double",
        d->has_double, "half", d->has_half, "limits", d->limits);
}

static json_t *known(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *ceilings_json(const Ceilings *c)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "copy_gbs", known(c->copy_gbs), "float_gflops",
                     known(c->float_gflops), "double_gflops", known(c->double_gflops),
                     "int_gops", known(c->int_gops));
}

static void print_device(const DeviceInfo *d, const Ceilings *c)
{
    printf("%-9s %s\n", d->id, d->name);
    printf("          %s, %s; %d units, group %lld, local %lld KiB%s%s; fingerprint %s\n",
           d->platform, d->driver, d->compute_units, (long long)d->max_group,
           (long long)d->local_bytes / 1024, d->has_double ? ", double" : "",
           d->has_half ? ", half" : "", d->fingerprint);
    if (d->limits[0])
        printf("          limits set by its owner: %s\n", d->limits);
    if (c->copy_gbs > 0)
        printf("          measured: copy %.1f GB/s, float %.0f Gflop/s", c->copy_gbs,
               c->float_gflops);
    if (c->copy_gbs > 0 && c->double_gflops > 0)
        printf(", double %.0f Gflop/s", c->double_gflops);
    if (c->copy_gbs > 0 && c->int_gops > 0)
        printf(", int %.0f Gop/s", c->int_gops);
    fputs(c->copy_gbs > 0 ? "\n" : "", stdout);
}

// A store is not made only to find that it is empty.
static bool find_ceilings(Options *o, const DeviceInfo *device, Ceilings *c)
{
    int64_t bytes = ceilings_bytes(device, 0);
    if (!o->measure && access(cli_store(o), F_OK) != 0)
        return true;
    const Workplace place = cli_workplace(o);
    Store *store = store_open(cli_store(o), &o->diags);
    bool ok =
        store && (o->measure ? ceilings_measure(store, device, &place, bytes, c, &o->diags)
                             : ceilings_load(store, device, bytes, c, &o->diags));
    store_close(store);
    return ok;
}

int cmd_devices(Options *o)
{
    DeviceInfo one, *info = &one;
    int n = !o->device_given
                ? devices_list(o->arena, NULL, cli_stop(), &info, &o->diags)
                : devices_find(o->arena, NULL, cli_stop(), o->device, &one, &o->diags);
    json_t *all = json_array();
    bool stored = true; // a store that cannot be read is told of once
    ARRAY_EACH_REF(const DeviceInfo *, d, info, n) {
        Ceilings ceilings = {0};
        stored = stored && find_ceilings(o, d, &ceilings);
        if (cli_prints(o))
            print_device(d, &ceilings);
        json_t *json = device_json(d);
        json_object_set_new(json, "measured", ceilings_json(&ceilings));
        json_array_append_new(all, json);
    }
    return cli_json(o, all) && !o->diags.errors ? 0 : 1;
}
