// SPDX-License-Identifier: Apache-2.0
//
// Comparing on the device: reading 256 MB back and comparing them takes 60 ms, a kernel
// that does it where they are 0.2 ms. It only says whether all is right and the largest
// error; what is wrong, check.c finds out.
//
// Floating numbers and ints; other types, and devices that are CPUs, go through check.c.
#include "measure/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct GpuCheck {
    const DeviceKind *kind;
    Device *device;
    Module *module;
    Mem *found; // how many are wrong; the bits of the largest error
};

static const char opencl_words[] = "#define GLOBAL global\n"
                                   "#define KERNEL kernel void\n"
                                   "#define ITEM (int)get_global_id(0)\n"
                                   "#define ITEMS (int)get_global_size(0)\n"
                                   "#define BITS(x) as_int(x)\n"
                                   "#define ADD(p, x) atomic_add(p, x)\n"
                                   "#define RAISE(p, x) atomic_max(p, x)\n";

static const char cuda_words[] =
    "#define GLOBAL\n"
    "#define KERNEL extern \"C\" __global__ void\n"
    "#define ITEM (int)(blockIdx.x * blockDim.x + threadIdx.x)\n"
    "#define ITEMS (int)(gridDim.x * blockDim.x)\n"
    "#define BITS(x) __float_as_int(x)\n"
    "#define ADD(p, x) atomicAdd(p, x)\n"
    "#define RAISE(p, x) atomicMax(p, x)\n";

// The rule of check.c: |x - e| <= tolerance * max(|e|, scale), not-a-number equals itself.
static const char body[] =
    "#define CHECK(NAME, T)                                                         \\\n"
    "KERNEL NAME(GLOBAL const T *x, GLOBAL const T *e, int n, float tolerance,      \\\n"
    "            float scale, GLOBAL int *found)                                    \\\n"
    "{                                                                              \\\n"
    "    float worst = 0;                                                           \\\n"
    "    int wrong = 0;                                                             \\\n"
    "    for (int i = ITEM; i < n; i += ITEMS) {                                    \\\n"
    "        T a = x[i], b = e[i];                                                  \\\n"
    "        if (a == b || (a != a && b != b))                                      \\\n"
    "            continue;                                                          \\\n"
    "        T d = a > b ? a - b : b - a, m = b < 0 ? -b : b;                       \\\n"
    "        float error = (float)(d / (m > (T)scale ? m : (T)scale));              \\\n"
    "        wrong += !(error <= tolerance);                                        \\\n"
    "        worst = error > worst ? error : worst;                                 \\\n"
    "    }                                                                          \\\n"
    "    if (wrong)                                                                 \\\n"
    "        ADD(&found[0], wrong);                                                 \\\n"
    "    RAISE(&found[1], BITS(worst));                                             \\\n"
    "}\n"
    "CHECK(fw_check_float, float)\n";

static const char body_double[] = "CHECK(fw_check_double, double)\n";

GpuCheck *gpucheck_open(const DeviceKind *kind, Device *device)
{
    const DeviceInfo *info = kind->info(device);
    bool cuda = strcmp(info->target, "cuda") == 0;
    if (info->is_cpu || (!cuda && strcmp(info->target, "opencl") != 0))
        return NULL;
    Buf text, log;
    buf_init(&text);
    buf_init(&log);
    if (!cuda && info->has_double)
        buf_puts(&text, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
    buf_printf(&text, "%s%s%s", cuda ? cuda_words : opencl_words, body,
               info->has_double ? body_double : "");
    GpuCheck *check = xcalloc(1, sizeof *check);
    check->kind = kind;
    check->device = device;
    check->found = kind->mem_new(device, 2 * sizeof(int32_t), &log);
    bool ok =
        check->found && kind->build(device, text.text, "", &check->module, &log) == DEV_OK;
    buf_release(&log);
    buf_release(&text);
    if (ok)
        return check;
    gpucheck_close(check);
    return NULL;
}

void gpucheck_close(GpuCheck *check)
{
    if (!check)
        return;
    if (check->module)
        check->kind->module_free(check->device, check->module);
    if (check->found)
        check->kind->mem_free(check->device, check->found);
    free(check);
}

bool gpucheck_right(GpuCheck *check, Scalar scalar, Mem *got, Mem *expect, int64_t n,
                    double tolerance, double scale, double *max_error)
{
    enum { ITEMS = 256 * 1024, GROUP = 256 };
    if (!check || !expect || (scalar != S_FLOAT && scalar != S_DOUBLE) || n > INT32_MAX)
        return false;
    int32_t count = (int32_t)n, found[2] = {0, 0};
    float most = (float)tolerance, unit = (float)scale, worst;
    double time_ns;
    Buf log;
    buf_init(&log);
    const DeviceArg arg[] = {{.mem = got},
                             {.mem = expect},
                             {.data = &count, .bytes = sizeof count},
                             {.data = &most, .bytes = sizeof most},
                             {.data = &unit, .bytes = sizeof unit},
                             {.mem = check->found}};
    const DeviceLaunch launch = {.kernel = scalar == S_FLOAT ? "fw_check_float"
                                                             : "fw_check_double",
                                 .global = {ITEMS, 1, 1},
                                 .local = {GROUP, 1, 1},
                                 .narg = COUNTOF(arg),
                                 .arg = arg};
    const DeviceKind *kind = check->kind;
    Device *device = check->device;
    bool ok = kind->write(device, check->found, found, sizeof found, &log) == DEV_OK &&
              kind->run(device, check->module, &launch, 1, &time_ns, &log) == DEV_OK &&
              kind->read(device, check->found, found, sizeof found, &log) == DEV_OK;
    buf_release(&log);
    memcpy(&worst, &found[1], sizeof worst);
    *max_error = fmax(*max_error, worst);
    return ok && found[0] == 0;
}
