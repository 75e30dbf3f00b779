// SPDX-License-Identifier: Apache-2.0
//
// The table of device kinds, from devices.def. It makes no device call itself, so any
// process may ask it.
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

#define DEVICE(name) extern const DeviceKind device_##name;
#include "device/devices.def"
#undef DEVICE

static const DeviceKind *const kinds[] = {
#define DEVICE(name) &device_##name,
#include "device/devices.def"
#undef DEVICE
};

const DeviceKind *const *device_kinds(int *n)
{
    *n = COUNTOF(kinds);
    return kinds;
}

const DeviceKind *device_kind(const char *name)
{
    for (int i = 0; i < COUNTOF(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

const char device_host_id[] = "host";

bool device_is_host(const char *id)
{
    return strcmp(id, device_host_id) == 0;
}

const DeviceKind *device_kind_of(const char *target)
{
    for (int i = 0; i < COUNTOF(kinds); i++)
        if (strcmp(kinds[i]->target, target) == 0)
            return kinds[i];
    return NULL;
}

bool device_parse(const char *id, const DeviceKind **kind, int *index)
{
    char name[32];
    size_t len = strcspn(id, ":");
    if (len >= sizeof name)
        return false;
    memcpy(name, id, len);
    name[len] = 0;
    *kind = device_kind(name);
    *index = 0;
    if (!*kind || !id[len])
        return *kind != NULL;
    const char *digits = id + len + 1;
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > 4 || digits[n])
        return false;
    *index = atoi(digits);
    return true;
}

// Memory sizes are left out: PoCL's change from one process to the next.
void device_set_fingerprint(DeviceInfo *info, const char *kind)
{
    AutoBuf text = buf_new();
    buf_printf(&text, "%s|%s|%s|%d", kind, info->name, info->driver, info->compute_units);
    hash_hex(hash_bytes(text.text, text.len, 0), info->fingerprint);
}

void device_set_bus(DeviceInfo *info, unsigned domain, unsigned bus, unsigned slot)
{
    if (domain || bus || slot)
        snprintf(info->bus, sizeof info->bus, "%04x:%02x:%02x", domain, bus, slot);
}
