// SPDX-License-Identifier: Apache-2.0
//
// libcuda, libnvrtc and libnvidia-ml of a machine that has neither, for tests: kernels are
// compiled as C++ by the system compiler, and a launch runs its threads one after the
// other. Built by test_ahead.c and test/cli/stream.sh into one shared object that stands
// for all of them.
//
// It knows $FAKE_CUDA_DEVICES devices (1), no barriers, and kernels written `extern "C"
// __global__ void NAME(...)` whose parameters are scalars and pointers. It refuses events
// before which no kernel named fw_wait was queued. Text with the word CRASH ends the
// process that compiles it, with HANG holds it up. $FAKE_CUDA_LOG gets a line a
// compilation: the process and the length of the text. A launch takes $FAKE_CUDA_LAUNCH_US
// longer, of no core.

#include <dlfcn.h>
#include <elf.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const char head[] = "typedef __SIZE_TYPE__ size_t;\n"
                           "typedef struct { int x, y, z; } Three;\n"
                           "Three blockIdx, blockDim, gridDim, threadIdx;\n"
                           "#define __global__\n"
                           "#define __device__ static\n"
                           "#define __launch_bounds__(...)\n"
                           "#define __align__(n) __attribute__((aligned(n)))\n"
                           "#define __forceinline__ inline\n"
                           "struct float2 { float x, y; };\n"
                           "struct alignas(16) float4 { float x, y, z, w; };\n"
                           "struct int2 { int x, y; };\n"
                           "struct alignas(16) int4 { int x, y, z, w; };\n"
                           "struct alignas(16) double2 { double x, y; };\n"
                           "struct alignas(16) double4 { double x, y, z, w; };\n"
                           "static inline int min(int a, int b) { return a < b ? a : b; }\n"
                           "static inline int max(int a, int b) { return a > b ? a : b; }\n"
                           "static long long cycles_now;\n"
                           "#define clock64() (cycles_now += 1000)\n";

// The compiler --------------------------------------------------------------------------

typedef struct {
    char *source, *code, log[256];
    size_t bytes;
} Program;

EXPORT int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return 0;
}

EXPORT int nvrtcCreateProgram(void **program, const char *source, const char *name, int n,
                              const char *const *headers, const char *const *names)
{
    (void)name, (void)n, (void)headers, (void)names;
    Program *p = calloc(1, sizeof *p);
    p->source = strdup(source);
    *program = p;
    return 0;
}

EXPORT int nvrtcDestroyProgram(void **program)
{
    Program *p = *program;
    free(p->source);
    free(p->code);
    free(p);
    return 0;
}

// `float *z` as `form` wants it of the type `float *` and the number i.
static void put_parameter(FILE *out, const char *form, const char *at, size_t len, int i)
{
    char type[256];
    snprintf(type, sizeof type, "%.*s", (int)len, at);
    char *word = strstr(type, "__restrict__");
    if (word)
        memset(word, ' ', strlen("__restrict__"));
    size_t end = strlen(type);
    while (end > 0 && strchr(" \n", type[end - 1]))
        end--;
    while (end > 0 && !strchr(" *\n", type[end - 1]))
        end--;
    fprintf(out, i ? ", " : "");
    fprintf(out, form, (int)end, type, i);
}

static void put_parameters(FILE *out, const char *form, const char *open, const char *close)
{
    int i = 0;
    for (const char *p = open + 1; p < close; i++) {
        size_t len = strcspn(p, ",)");
        put_parameter(out, form, p, len, i);
        p += len + 1;
    }
}

// void NAME_entry(void **arg), for each kernel, and the bytes of its parameters, then 0.
static void put_entries(FILE *out, const char *text)
{
    static const char mark[] = "__global__ void", bounds[] = "__launch_bounds__";
    for (const char *at = text; (at = strstr(at, mark));) {
        at += strlen(mark);
        at += strspn(at, " ");
        if (strncmp(at, bounds, strlen(bounds)) == 0)
            at = strchr(at, ')') + 1;
        const char *open = strchr(at, '('), *name = open;
        while (name > at && !strchr(" \n*", name[-1]))
            name--;
        const char *close = strchr(open, ')');
        fprintf(out, "extern \"C\" void %.*s_entry(void **arg) { %.*s(", (int)(open - name),
                name, (int)(open - name), name);
        put_parameters(out, "*(%.*s *)arg[%d]", open, close);
        fprintf(out, "); }\nextern \"C\" { size_t %.*s_bytes[] = {", (int)(open - name),
                name);
        put_parameters(out, "sizeof(%.*s) /* %d */", open, close);
        fprintf(out, close > open + 1 ? ", 0}; }\n" : "0}; }\n");
        at = close;
    }
}

static void write_text(const char *path, const char *source)
{
    static const char linkage[] = "extern \"C\"";
    FILE *out = fopen(path, "w");
    char *text = strdup(source);
    for (char *p; (p = strstr(text, linkage));)
        memset(p, ' ', strlen(linkage));
    fprintf(out, "%s%s", head, text);
    put_entries(out, text);
    fclose(out);
    free(text);
}

static void note(size_t length)
{
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log)
        return;
    fprintf(log, "%d %zu\n", (int)getpid(), length);
    fclose(log);
}

static int read_code(Program *p, const char *path)
{
    FILE *in = fopen(path, "r");
    if (!in)
        return 6;
    fseek(in, 0, SEEK_END);
    p->bytes = (size_t)ftell(in);
    rewind(in);
    p->code = malloc(p->bytes);
    int short_by = fread(p->code, 1, p->bytes, in) != p->bytes;
    fclose(in);
    return short_by ? 6 : 0;
}

EXPORT int nvrtcCompileProgram(void *program, int n, const char *const *options)
{
    (void)n, (void)options;
    Program *p = program;
    const char *temp = getenv("TMPDIR");
    char text[512], code[512], command[2048];
    note(strlen(p->source));
    if (strstr(p->source, "CRASH"))
        abort();
    while (strstr(p->source, "HANG"))
        ;
    snprintf(text, sizeof text, "%s/fake-%d.c", temp ? temp : "/tmp", (int)getpid());
    snprintf(code, sizeof code, "%s/fake-%d.so", temp ? temp : "/tmp", (int)getpid());
    write_text(text, p->source);
    snprintf(command, sizeof command,
             "c++ -w -shared -fPIC -O0 -x c++ -o %s %s 2>/dev/null", code, text);
    int error = system(command) == 0 ? read_code(p, code) : 6;
    snprintf(p->log, sizeof p->log, "%s", error ? "the text is wrong" : "");
    unlink(text);
    unlink(code);
    return error;
}

// Kernels are `extern "C"`: what the compiler calls them is how they are written.
EXPORT int nvrtcAddNameExpression(void *program, const char *name)
{
    (void)program, (void)name;
    return 0;
}

EXPORT int nvrtcGetLoweredName(void *program, const char *name, const char **symbol)
{
    (void)program;
    *symbol = name;
    return 0;
}

EXPORT int nvrtcGetProgramLogSize(void *program, size_t *size)
{
    *size = strlen(((Program *)program)->log) + 1;
    return 0;
}

EXPORT int nvrtcGetProgramLog(void *program, char *log)
{
    strcpy(log, ((Program *)program)->log);
    return 0;
}

EXPORT int nvrtcGetCUBINSize(void *program, size_t *size)
{
    *size = ((Program *)program)->bytes;
    return 0;
}

EXPORT int nvrtcGetCUBIN(void *program, char *cubin)
{
    memcpy(cubin, ((Program *)program)->code, ((Program *)program)->bytes);
    return 0;
}

// The driver ----------------------------------------------------------------------------

EXPORT int cuInit(unsigned flags)
{
    return (int)flags;
}

EXPORT int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

EXPORT int cuGetErrorName(int error, const char **name)
{
    *name = error ? "CUDA_ERROR_FAKE" : "CUDA_SUCCESS";
    return 0;
}

EXPORT int cuDeviceGetCount(int *n)
{
    const char *count = getenv("FAKE_CUDA_DEVICES");
    *n = count ? atoi(count) : 1;
    return 0;
}

EXPORT int cuDeviceGet(int *device, int index)
{
    *device = index;
    return 0;
}

EXPORT int cuDeviceGetName(char *name, int size, int device)
{
    (void)device; // times of all are comparable
    snprintf(name, (size_t)size, "Fake GPU");
    return 0;
}

// Numbers as in cuda.c.
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 8    ? 49152
             : attribute == 33 ? 1 + device // the place on PCI
             : attribute == 34 ? 0
             : attribute == 50 ? 0
             : attribute == 69 ? 4096
             : attribute == 10 ? 32
             : attribute <= 7  ? 1024
             : attribute == 76 ? 0
                               : 9;
    return 0;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = context;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    return device;
}

EXPORT int cuCtxSetCurrent(void *context)
{
    return context == NULL;
}

// Every process has a current context, as if the run-time library had been called.
EXPORT int cuCtxGetCurrent(void **context)
{
    *context = context;
    return 0;
}

EXPORT int cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}

static bool waits; // since the last call that waited for all

EXPORT int cuCtxSynchronize(void)
{
    waits = false;
    return 0;
}

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    *address = (uint64_t)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    return 0;
}

EXPORT int cuMemFree_v2(uint64_t address)
{
    free((void *)(uintptr_t)address);
    return 0;
}

EXPORT int cuMemGetAddressRange_v2(uint64_t *start, size_t *bytes, uint64_t address)
{
    *start = address;
    *bytes = malloc_usable_size((void *)(uintptr_t)address);
    return 0;
}

static int ntexture; // alive

// A texture is the address of its elements, which are as many as the driver is told: it
// does not look. Two at a time are enough.
EXPORT int cuTexObjectCreate(uint64_t *texture, const void *resource,
                             const void *description, const void *view)
{
    (void)description, (void)view;
    memcpy(texture, (const char *)resource + 8, sizeof *texture);
    return ntexture++ >= 2;
}

EXPORT int cuTexObjectDestroy(uint64_t texture)
{
    ntexture--;
    return texture == 0;
}

EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

EXPORT int cuMemsetD8_v2(uint64_t to, unsigned char byte, size_t bytes)
{
    memset((void *)(uintptr_t)to, byte, bytes);
    return 0;
}

// An image says itself how long it is: the table of sections ends it.
EXPORT int cuModuleLoadData(void **module, const void *image)
{
    const Elf64_Ehdr *elf = image;
    size_t bytes = elf->e_shoff + (size_t)elf->e_shnum * elf->e_shentsize;
    char path[] = "/tmp/fake-module-XXXXXX";
    int fd = mkstemp(path);
    int error = fd < 0 || write(fd, image, bytes) != (ssize_t)bytes;
    close(fd);
    *module = error ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    return *module ? 0 : 200;
}

EXPORT int cuModuleUnload(void *module)
{
    return dlclose(module);
}

typedef struct {
    int x, y, z;
} Three;

// A kernel is found by name in its module at each launch: function holds both.
typedef struct {
    void (*entry)(void **arg);
    Three *block_index, *block, *grid, *thread;
    const size_t *bytes; // of its parameters
    bool waits;
} Function;

EXPORT int cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *module,
                                const char *name)
{
    *address = (uint64_t)(uintptr_t)dlsym(module, name);
    *bytes = 0; // not known of a symbol
    return *address == 0;
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
    char entry[256];
    Function *f = calloc(1, sizeof *f); // never freed: that is the driver's to do
    snprintf(entry, sizeof entry, "%s_entry", name);
    void *symbol = dlsym(module, entry);
    memcpy(&f->entry, &symbol, sizeof symbol);
    f->block_index = dlsym(module, "blockIdx");
    f->block = dlsym(module, "blockDim");
    f->grid = dlsym(module, "gridDim");
    f->thread = dlsym(module, "threadIdx");
    snprintf(entry, sizeof entry, "%s_bytes", name);
    f->bytes = dlsym(module, entry);
    f->waits = strcmp(name, "fw_wait") == 0;
    *function = f;
    return symbol ? 0 : 500;
}

EXPORT int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    (void)function;
    *value = attribute == 0 ? 1024 : attribute == 4 ? 24 : 0;
    return 0;
}

EXPORT int cuFuncGetParamInfo(void *function, size_t number, size_t *offset, size_t *bytes)
{
    const Function *f = function;
    *offset = 0;
    for (size_t i = 0; i < number; i++)
        if (f->bytes[i] == 0)
            return 1;
    *bytes = f->bytes[number];
    return *bytes == 0;
}

EXPORT int cuFuncSetAttribute(void *function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return 0;
}

static double millijoules; // one for each 1,000 work-items, a kernel that only waits aside

static Three place(unsigned i, const Three *of)
{
    int at = (int)i;
    return (Three){at % of->x, at / of->x % of->y, at / of->x / of->y};
}

EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz,
                          unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          void *stream, void **arg, void **extra)
{
    (void)shared, (void)stream, (void)extra;
    Function *f = function;
    const char *us = getenv("FAKE_CUDA_LAUNCH_US");
    waits |= f->waits;
    if (!f->waits)
        millijoules += (double)gx * gy * gz * bx * by * bz * 1e-3;
    if (us)
        usleep((useconds_t)atoi(us));
    *f->grid = (Three){(int)gx, (int)gy, (int)gz};
    *f->block = (Three){(int)bx, (int)by, (int)bz};
    for (unsigned group = 0; group < gx * gy * gz; group++)
        for (unsigned item = 0; item < bx * by * bz; item++) {
            *f->block_index = place(group, f->grid);
            *f->thread = place(item, f->block);
            f->entry(arg);
        }
    return 0;
}

// A launch that may overlap the one before it: CUlaunchConfig.
EXPORT int cuLaunchKernelEx(const void *config, void *function, void **arg, void **extra)
{
    const struct {
        unsigned grid[3], block[3], shared;
        void *stream;
    } *c = config;
    return cuLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0],
                          c->block[1], c->block[2], c->shared, c->stream, arg, extra);
}

EXPORT int cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(double));
    return 0;
}

EXPORT int cuEventDestroy_v2(void *event)
{
    free(event);
    return 0;
}

EXPORT int cuEventRecord(void *event, void *stream)
{
    struct timespec t;
    (void)stream;
    if (!waits)
        return 1;
    clock_gettime(CLOCK_MONOTONIC, &t);
    *(double *)event = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
    return 0;
}

EXPORT int cuEventElapsedTime(float *ms, void *start, void *end)
{
    *ms = (float)(*(double *)end - *(double *)start);
    return 0;
}

// The management library ----------------------------------------------------------------

EXPORT int nvmlInit_v2(void)
{
    return 0;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    *device = device;
    return strcmp(bus, "0000:01:00.0") != 0;
}

EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
{
    (void)device;
    *mj = (unsigned long long)millijoules;
    return 0;
}

EXPORT int nvmlDeviceGetMaxClockInfo(void *device, int which, unsigned *mhz)
{
    (void)device;
    *mhz = which == 1 ? 1980 : 2619;
    return 0;
}

EXPORT int nvmlDeviceGetApplicationsClock(void *device, int which, unsigned *mhz)
{
    (void)device;
    *mhz = 1500;
    return which != 1;
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = 700000;
    return 0;
}
