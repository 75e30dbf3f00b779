// SPDX-License-Identifier: Apache-2.0
//
// Judging on the device: reading 256 MB back and comparing them takes 60 ms, a kernel that
// does it where they are 0.2 ms. The kernel only reports whether all is right, and the
// largest error; buffers.c finds out what is wrong. As many elements may differ as
// `spared` says.
//
// Elements are judged by rule.def, in double as in check.c, so that the two never differ;
// inputs are added up, each word mixed with its place, and the sum compared with the one
// they had. Outputs of devices without double are read back.
#include "measure/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The most that one work-item counts, so that the sum of all is an int.
enum { WRONG_MOST = 8191 };

// What is found of a buffer.
typedef struct {
    int32_t wrong; // elements, at most WRONG_MOST of each work-item
    int32_t worst; // the bits of the largest error, as a float
    int32_t stray; // work-items that found a zone written
    uint32_t sum;
} FoundErrors;

struct GpuCheck {
    const DeviceKind *kind;
    Device *device;
    bool compares; // it has double
    Module *module;
    Mem *found;
    int room; // buffers that `found` has room for
};

static const char opencl_words[] = "#define GLOBAL global\n"
                                   "#define FUNCTION\n"
                                   "#define ENDLESS ((double)INFINITY)\n"
                                   "#define KERNEL kernel void\n"
                                   "#define ITEM (int)get_global_id(0)\n"
                                   "#define ITEMS (int)get_global_size(0)\n"
                                   "#define BITS(x) as_int(x)\n"
                                   "#define FLOAT(x) as_float(x)\n"
                                   "#define ADD(p, x) atomic_add(p, x)\n"
                                   "#define RAISE(p, x) atomic_max(p, x)\n";

static const char cuda_words[] =
    "#define GLOBAL\n"
    "#define FUNCTION __device__ static\n"
    "#define ENDLESS __longlong_as_double(0x7ff0000000000000LL)\n"
    "#define KERNEL extern \"C\" __global__ void\n"
    "#define ITEM (int)(blockIdx.x * blockDim.x + threadIdx.x)\n"
    "#define ITEMS (int)(gridDim.x * blockDim.x)\n"
    "#define BITS(x) __float_as_int(x)\n"
    "#define FLOAT(x) __uint_as_float(x)\n"
    "#define ADD(p, x) atomicAdd(p, x)\n"
    "#define RAISE(p, x) atomicMax(p, x)\n";

// The zones lie before `bytes` bytes and after them. A sum is of whole words, and of the
// bytes after the last; no two words at a place are mixed to the same.
static const char body[] =
    "KERNEL fw_zones(GLOBAL const unsigned char *p, long bytes, int zone, int poison,\n"
    "                GLOBAL int *found, int at)\n"
    "{\n"
    "    int stray = 0;\n"
    "    for (int i = ITEM; i < 2 * zone; i += ITEMS)\n"
    "        stray |= p[i < zone ? i : bytes + i] != poison;\n"
    "    if (stray)\n"
    "        ADD(&found[at + 2], 1);\n"
    "}\n"
    "#define MIX(w, i) (((w) ^ (unsigned)(i) * 2654435761u) * 2246822519u)\n"
    "KERNEL fw_sum(GLOBAL const unsigned *p, GLOBAL const unsigned char *q, long bytes,\n"
    "              GLOBAL int *found, int at)\n"
    "{\n"
    "    unsigned sum = 0;\n"
    "    for (long i = ITEM; i < bytes / 4; i += ITEMS) {\n"
    "        unsigned mixed = MIX(p[i], i);\n"
    "        sum += mixed ^ mixed >> 15;\n"
    "    }\n"
    "    for (long i = bytes / 4 * 4 + ITEM; i < bytes; i += ITEMS)\n"
    "        sum += MIX(q[i], i);\n"
    "    if (sum)\n"
    "        ADD(&found[at + 3], (int)sum);\n"
    "}\n";

#define RULE(...) #__VA_ARGS__ "\n"
// Halfs are taken apart: neither language has them without an extension or a header.
static const char body_double[] =
#include "measure/rule.def"
    "FUNCTION double fw_half(unsigned short h)\n"
    "{\n"
    "    int power = h >> 10 & 31, part = h & 1023;\n"
    "    double v = power ? 1024 + part : part, unit = 1.0 / (1 << 24);\n"
    "    for (int i = 1; i < power; i++)\n"
    "        unit *= 2;\n"
    "    v = power < 31 ? v * unit : part ? ENDLESS - ENDLESS : ENDLESS;\n"
    "    return h >> 15 ? -v : v;\n"
    "}\n";
static const char body_check[] =
    "KERNEL fw_check(GLOBAL const unsigned char *x, GLOBAL const unsigned char *e,\n"
    "                GLOBAL const float *bound, int scalar, int wide, int bounded,\n"
    "                long n, double tolerance, double scale, GLOBAL int *found, int at)\n"
    "{\n"
    "    double worst = 0;\n"
    "    int wrong = 0;\n"
    "    for (long i = ITEM; i < n; i += ITEMS) {\n"
    "        double u = fw_element(x, i, scalar), v = fw_element(e, i, scalar);\n"
    "        double size = v < 0 ? -v : v;\n"
    "        double usual = tolerance * (size > scale ? size : scale);\n"
    "        usual = size < ENDLESS || size != size ? usual : 0;\n"
    "        double allowed = bounded ? (double)bound[i] : usual;\n"
    "        if (wide && u == v &&\n"
    "            ((GLOBAL const long *)x)[i] != ((GLOBAL const long *)e)[i])\n"
    "            u += size / (1L << 52);\n"
    "        double error = allowed < ENDLESS ? fw_error(u, v, scale) : 0;\n"
    "        wrong += wrong < WRONG_MOST && !fw_right(u, v, allowed);\n"
    "        worst = error > worst ? error : worst;\n"
    "    }\n"
    "    if (wrong)\n"
    "        ADD(&found[at], wrong);\n"
    "    if (worst > 0)\n"
    "        RAISE(&found[at + 1], BITS((float)worst));\n"
    "}\n";
#undef RULE

// Element i of an array, whose type is an argument: a kernel for each would take a compiler
// a tenth of a second.
static void put_element(Buf *out)
{
    buf_puts(out, "FUNCTION double fw_element(GLOBAL const unsigned char *p, long i, "
                  "int scalar)\n{\n    switch (scalar) {\n");
    for (int scalar = 0; scalar < SCALARS; scalar++) {
        const char *form = scalar == S_HALF ? "fw_half(((GLOBAL const %s *)p)[i])"
                           : scalar == S_BF16
                               ? "FLOAT((unsigned)((GLOBAL const %s *)p)[i] << 16)"
                               : "((GLOBAL const %s *)p)[i]";
        const char *type = scalar == S_HALF   ? "unsigned short"
                           : scalar == S_BOOL ? "unsigned char"
                                              : scalar_info[scalar].c;
        buf_printf(out, "    case %d: return ", scalar);
        buf_printf(out, form, type);
        buf_puts(out, ";\n");
    }
    buf_puts(out, "    }\n    return 0;\n}\n");
}

GpuCheck *gpucheck_open(const DeviceKind *kind, Device *device)
{
    const DeviceInfo *info = kind->info(device);
    bool cuda = language_is(info->target, LANGUAGE_CUDA);
    if (!cuda && !language_is(info->target, LANGUAGE_OPENCL))
        return NULL;
    AutoBuf text = buf_new(), log = buf_new();
    if (!cuda && info->has_double)
        buf_puts(&text, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
    buf_printf(&text, "#define WRONG_MOST %d\n%s%s", WRONG_MOST,
               cuda ? cuda_words : opencl_words, body);
    if (info->has_double) {
        buf_puts(&text, body_double);
        put_element(&text);
        buf_puts(&text, body_check);
    }
    GpuCheck *check = xcalloc(1, sizeof *check);
    check->kind = kind;
    check->device = device;
    check->compares = info->has_double;
    const DeviceText source = {.source = text.text, .options = ""};
    bool ok = kind->build(device, &source, &check->module, &log) == DEV_OK;
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

bool gpucheck_takes(const GpuCheck *check, const DeviceBuffer *b)
{
    return check && check->compares && b->whole &&
           b->bytes % scalar_device_bytes(b->scalar) == 0;
}

// A launch with what its arguments point to.
typedef struct {
    DeviceArg arg[11];
    int64_t count;
    double tolerance, scale;
    int32_t zone, poison, at, scalar, wide, bounded;
} CheckLaunch;

static DeviceLaunch launch_of(const GpuCheck *check, const char *kernel, CheckLaunch *asked,
                              int narg)
{
    enum { ITEMS = 256 * 1024, GROUP = 256 };
    asked->arg[narg] = (DeviceArg){.mem = check->found};
    asked->arg[narg + 1] = (DeviceArg){.data = &asked->at, .bytes = sizeof asked->at};
    return (DeviceLaunch){.kernel = kernel,
                          .global = {ITEMS, 1, 1},
                          .local = {GROUP, 1, 1},
                          .narg = narg + 2,
                          .arg = asked->arg};
}

static DeviceLaunch ask_zones(const GpuCheck *check, const DeviceBuffer *b, Poison poison,
                              int i, CheckLaunch *a)
{
    *a = (CheckLaunch){.count = (int64_t)b->bytes,
                       .zone = GUARD,
                       .poison = buffer_poison(b, poison),
                       .at = i * (int)(sizeof(FoundErrors) / sizeof(int32_t))};
    a->arg[0] = (DeviceArg){.mem = b->whole};
    a->arg[1] = (DeviceArg){.data = &a->count, .bytes = sizeof a->count};
    a->arg[2] = (DeviceArg){.data = &a->zone, .bytes = sizeof a->zone};
    a->arg[3] = (DeviceArg){.data = &a->poison, .bytes = sizeof a->poison};
    return launch_of(check, "fw_zones", a, 4);
}

static DeviceLaunch ask_sum(const GpuCheck *check, const DeviceBuffer *b, int i,
                            CheckLaunch *a)
{
    *a = (CheckLaunch){.count = (int64_t)b->bytes,
                       .at = i * (int)(sizeof(FoundErrors) / sizeof(int32_t))};
    a->arg[0] = a->arg[1] = (DeviceArg){.mem = b->mem};
    a->arg[2] = (DeviceArg){.data = &a->count, .bytes = sizeof a->count};
    return launch_of(check, "fw_sum", a, 3);
}

static DeviceLaunch ask_elements(const GpuCheck *check, const DeviceBuffer *b,
                                 double tolerance, int i, CheckLaunch *a)
{
    bool exact = !scalar_info[b->scalar].floating;
    *a = (CheckLaunch){.count = b->count,
                       .tolerance = exact ? 0 : tolerance,
                       .scale = exact ? 1 : b->scale,
                       .scalar = (int32_t)b->scalar,
                       .wide = exact && scalar_device_bytes(b->scalar) == sizeof(int64_t),
                       .bounded = b->bound_mem != NULL,
                       .at = i * (int)(sizeof(FoundErrors) / sizeof(int32_t))};
    a->arg[0] = (DeviceArg){.mem = b->mem};
    a->arg[1] = (DeviceArg){.mem = b->expect_mem};
    a->arg[2] = (DeviceArg){.mem = b->bound_mem ? b->bound_mem : b->expect_mem};
    a->arg[3] = (DeviceArg){.data = &a->scalar, .bytes = sizeof a->scalar};
    a->arg[4] = (DeviceArg){.data = &a->wide, .bytes = sizeof a->wide};
    a->arg[5] = (DeviceArg){.data = &a->bounded, .bytes = sizeof a->bounded};
    a->arg[6] = (DeviceArg){.data = &a->count, .bytes = sizeof a->count};
    a->arg[7] = (DeviceArg){.data = &a->tolerance, .bytes = sizeof a->tolerance};
    a->arg[8] = (DeviceArg){.data = &a->scale, .bytes = sizeof a->scale};
    return launch_of(check, "fw_check", a, 9);
}

static bool make_room(GpuCheck *check, int n, Buf *log)
{
    if (n <= check->room)
        return true;
    if (check->found)
        check->kind->mem_free(check->device, check->found);
    check->found =
        check->kind->mem_new(check->device, (size_t)n * sizeof(FoundErrors), log);
    check->room = check->found ? n : 0;
    return check->found != NULL;
}

// Runs all launches at once, and reads what they have found of n buffers.
static bool find(GpuCheck *check, const DeviceLaunch *launch, int nlaunch,
                 FoundErrors *found, int n, Buf *log)
{
    const DeviceKind *kind = check->kind;
    size_t bytes = (size_t)n * sizeof *found;
    double time_ns;
    return kind->write(check->device, check->found, found, bytes, log) == DEV_OK &&
           kind->run(check->device, check->module, launch, nlaunch, &time_ns, log) ==
               DEV_OK &&
           kind->read(check->device, check->found, found, bytes, log) == DEV_OK;
}

bool gpucheck_sum(GpuCheck *check, DeviceBuffer *b, uint32_t *sum)
{
    CheckLaunch asked;
    FoundErrors found = {0};
    AutoBuf log = buf_new();
    bool ok = make_room(check, 1, &log);
    if (ok) {
        DeviceLaunch launch = ask_sum(check, b, 0, &asked);
        ok = find(check, &launch, 1, &found, 1, &log);
    }
    *sum = found.sum;
    return ok;
}

static bool is_right(const DeviceBuffer *b, const FoundErrors *found, double *max_error)
{
    float worst;
    memcpy(&worst, &found->worst, sizeof worst);
    *max_error = fmax(*max_error, worst);
    return !found->stray && found->wrong <= b->spared && (!b->expect || b->expect_mem) &&
           (!buffer_is_input(b) || found->sum == b->sum);
}

bool gpucheck_judge(GpuCheck *check, DeviceBuffer *const *used, int n, Poison poison,
                    double tolerance, bool *right, double *max_error)
{
    enum { MOST = 2 }; // launches a buffer
    AUTO_FREE DeviceLaunch *launch = xcalloc((size_t)n * MOST, sizeof *launch);
    AUTO_FREE CheckLaunch *asked = xcalloc((size_t)n * MOST, sizeof *asked);
    AUTO_FREE FoundErrors *found = xcalloc((size_t)n, sizeof *found);
    AutoBuf log = buf_new();
    int k = 0;
    bool ok = make_room(check, n, &log);
    for (int i = 0; i < n && ok; i++) {
        const DeviceBuffer *b = used[i];
        if (b->is_image)
            continue;
        launch[k] = ask_zones(check, b, poison, i, &asked[k]);
        k++;
        if (b->expect_mem)
            launch[k] = ask_elements(check, b, tolerance, i, &asked[k]);
        else if (buffer_is_input(b))
            launch[k] = ask_sum(check, b, i, &asked[k]);
        k += b->expect_mem || buffer_is_input(b);
    }
    ok = ok && find(check, launch, k, found, n, &log);
    for (int i = 0; i < n && ok; i++)
        right[i] = is_right(used[i], &found[i], max_error);
    return ok;
}
