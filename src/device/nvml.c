// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's management library, loaded where it is. It is no error if a machine lacks it, or
// if the device is a part of a GPU, whose energy is not counted.
#include "device/nvidia.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct Nvml {
#define NVML(name, args) int(*name) args;
#include "device/cuda.def"
#undef NVML
    void *device;
};

// Numbers from NVIDIA's interface.
enum { CLOCK_MULTIPROCESSOR = 1, CLOCK_MEMORY = 2 };

static bool find_symbols(Nvml *nvml, void *library)
{
    bool ok = true;
    AutoBuf unsaid = buf_new();
#define NVML(name, args)                                                                   \
    ok = ok && library_find(library, #name, "libnvidia-ml", &nvml->name, &unsaid);
#include "device/cuda.def"
#undef NVML
    return ok;
}

// The library stays loaded, as the driver does.
Nvml *nvml_open(const char *bus)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    char place[48];
    snprintf(place, sizeof place, "%s.0", bus);
    if (!library)
        return NULL;
    Nvml *nvml = xcalloc(1, sizeof *nvml);
    if (find_symbols(nvml, library) && nvml->nvmlInit_v2() == 0 &&
        nvml->nvmlDeviceGetHandleByPciBusId_v2(place, &nvml->device) == 0)
        return nvml;
    free(nvml);
    return NULL;
}

bool nvml_energy(const Nvml *nvml, double *joules)
{
    unsigned long long mj = 0;
    bool ok = nvml && nvml->nvmlDeviceGetTotalEnergyConsumption(nvml->device, &mj) == 0;
    *joules = (double)mj * 1e-3;
    return ok;
}

// The clock that applications are given where the owner has set one, else the highest.
static unsigned clock_mhz(const Nvml *nvml, int which)
{
    unsigned most = 0, set = 0;
    if (nvml->nvmlDeviceGetMaxClockInfo(nvml->device, which, &most) != 0)
        most = 0;
    if (nvml->nvmlDeviceGetApplicationsClock(nvml->device, which, &set) == 0 && set > 0)
        most = most ? MIN(most, set) : set;
    return most;
}

void nvml_limits(const Nvml *nvml, char *out, size_t size)
{
    unsigned mw = 0;
    AutoBuf text = buf_new();
    if (nvml && clock_mhz(nvml, CLOCK_MULTIPROCESSOR))
        buf_printf(&text, "%u MHz", clock_mhz(nvml, CLOCK_MULTIPROCESSOR));
    if (nvml && clock_mhz(nvml, CLOCK_MEMORY))
        buf_printf(&text, "%smemory %u MHz", text.len ? ", " : "",
                   clock_mhz(nvml, CLOCK_MEMORY));
    if (nvml && nvml->nvmlDeviceGetEnforcedPowerLimit(nvml->device, &mw) == 0 && mw)
        buf_printf(&text, "%s%u W", text.len ? ", " : "", mw / 1000);
    snprintf(out, size, "%s", text.text);
}
