// SPDX-License-Identifier: Apache-2.0
//
// CUDA devices through the driver's own interface (libcuda) and NVRTC, both loaded at run
// time: nothing of CUDA's is needed to build, and without a driver there are no devices.
//
// Times are those between two events on one stream. A kernel that only waits goes before
// them, so that all is queued when the first event comes: without it the GPU may wait for
// the launch, or not. Of 2,500 kernels of about 5.4 us each on an H200, 10 runs each, a few
// came out 0.8 us shorter than any other, and so as the best of all.
//
// An error met while waiting is a fault inside a kernel; CUDA then refuses every further
// call of the process, so it is DEV_FAILED, after which a worker ends. It chooses no build
// options.
#include "device/device.h"
#include "device/nvidia.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// Numbers from NVIDIA's interface.
enum {
    CU_OK = 0,
    CU_OUT_OF_MEMORY = 2,
    CU_LAUNCH_OUT_OF_RESOURCES = 701,
    ATTR_MAX_THREADS = 1,
    ATTR_MAX_BLOCK_X = 2, // y and z follow
    ATTR_MAX_GRID_X = 5,
    ATTR_SHARED_BYTES = 8,
    ATTR_WARP = 10,
    ATTR_CLOCK_KHZ = 13,
    ATTR_MULTIPROCESSORS = 16,
    ATTR_PCI_BUS = 33,
    ATTR_PCI_SLOT = 34,
    ATTR_PCI_DOMAIN = 50,
    ATTR_TEXTURE_WIDTH = 69, // of textures of linear memory, in elements
    ATTR_MAJOR = 75,
    ATTR_MINOR = 76,
    ATTR_SHARED_ASKED = 97, // of a block that asks for it
    FUNC_MAX_THREADS = 0,
    FUNC_SHARED_BYTES = 1,
    FUNC_LOCAL_BYTES = 3, // of a thread: what is in no register
    FUNC_REGISTERS = 4,
    FUNC_DYNAMIC_BYTES = 8, // most that a launch may ask for
    LAUNCH_OVERLAP = 6,     // PROGRAMMATIC_STREAM_SERIALIZATION
};

enum { LINE_BYTES = 128, ARGS_MAX = 256 };

// To queue an event or a launch takes 1 to 3 us.
enum { WAIT_US = 10, WAIT_LAUNCH_US = 3, WAIT_MOST_US = 1000 };
static const char wait_text[] =
    "extern \"C\" __global__ void fw_wait(long long cycles)\n"
    "{ long long start = clock64(); while (clock64() - start < cycles) ; }\n";

typedef struct {
#define DRIVER(name, args) int(*name) args;
#define LATER              DRIVER
#include "device/cuda.def"
#undef LATER
#undef DRIVER
} Driver;

struct Device {
    Driver cu;
    Nvrtc *nvrtc;
    Nvml *nvml; // NULL: nothing is known
    DeviceInfo info;
    int device;
    void *context, *start, *end; // events
    void *wait_module, *wait;    // NULL: not built, and not waited
    int64_t max_grid[3];
    bool follows; // a launch may begin while the one before it ends
    char arch[16];
};

struct Mem {
    uint64_t address; // of a view: its texture object
    bool is_view, is_part;
};

// A name of the module's text, and what it is called in the module.
typedef struct {
    char *name, *symbol;
} Named;

struct Module {
    void *module;
    int nnamed;
    Named *named;
};

// Loading and errors --------------------------------------------------------------------

static bool find_symbols(Driver *cu, void *library, Buf *log)
{
#define DRIVER(name, args)                                                                 \
    if (!library_find(library, #name, "the CUDA driver", &cu->name, log))                  \
        return false;
#define LATER(name, args) *(void **)&cu->name = dlsym(library, #name);
#include "device/cuda.def"
#undef LATER
#undef DRIVER
    return true;
}

// True if code is success; else the call and the error's name go to log.
static bool succeeds(const Driver *cu, int code, const char *call, Buf *log)
{
    const char *name = NULL;
    if (code == CU_OK)
        return true;
    if (cu->cuGetErrorName(code, &name) != CU_OK || !name)
        name = "unknown error";
    buf_printf(log, "%s failed: %s (%d)\n", call, name, code);
    return false;
}

static DeviceStatus status_of(const Driver *cu, int code, const char *call, Buf *log)
{
    if (succeeds(cu, code, call, log))
        return DEV_OK;
    bool resources = code == CU_OUT_OF_MEMORY || code == CU_LAUNCH_OUT_OF_RESOURCES;
    return resources ? DEV_OUT_OF_RESOURCES : DEV_FAILED;
}

// The library stays loaded: unloading a driver that was started is not safe.
static bool load_driver(Driver *cu, Buf *log)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        buf_puts(log, "no CUDA driver (libcuda.so.1) on this machine\n");
        return false;
    }
    return find_symbols(cu, library, log) && succeeds(cu, cu->cuInit(0), "cuInit", log);
}

static int count_devices(const Driver *cu)
{
    int n = 0;
    return cu->cuDeviceGetCount(&n) == CU_OK ? n : 0;
}

static int cuda_count(void)
{
    Driver cu;
    AutoBuf log = buf_new();
    return load_driver(&cu, &log) ? count_devices(&cu) : 0;
}

// Describing ----------------------------------------------------------------------------

static int attribute(const Device *device, int what)
{
    int value = 0;
    if (device->cu.cuDeviceGetAttribute(&value, what, device->device) != CU_OK)
        return 0;
    return value;
}

static void describe_driver(const Device *device, DeviceInfo *info)
{
    int version = 0, major, minor;
    device->cu.cuDriverGetVersion(&version);
    nvrtc_version(device->nvrtc, &major, &minor);
    snprintf(info->platform, sizeof info->platform, "NVIDIA CUDA");
    snprintf(info->driver, sizeof info->driver, "CUDA %d.%d, NVRTC %d.%d, %s",
             version / 1000, version % 1000 / 10, major, minor, device->arch);
}

static void describe(Device *device, int index)
{
    DeviceInfo *info = &device->info;
    size_t bytes = 0;
    snprintf(info->id, sizeof info->id, "cuda:%d", index);
    snprintf(info->target, sizeof info->target, "%s", language_name[LANGUAGE_CUDA]);
    const int major = attribute(device, ATTR_MAJOR), minor = attribute(device, ATTR_MINOR);
    // What four warps do together is of this architecture alone.
    snprintf(device->arch, sizeof device->arch, "sm_%d%d%s", major, minor,
             major == 9 ? "a" : "");
    device->cu.cuDeviceGetName(info->name, (int)sizeof info->name, device->device);
    device->cu.cuDeviceTotalMem_v2(&bytes, device->device);
    describe_driver(device, info);
    info->has_double = info->has_half = info->has_texture = true;
    info->matrix = (major >= 8) + (major == 9);
    device->follows = major >= 9 && device->cu.cuLaunchKernelEx;
    info->compute_units = attribute(device, ATTR_MULTIPROCESSORS);
    info->clock_mhz = attribute(device, ATTR_CLOCK_KHZ) / 1000;
    info->warp = attribute(device, ATTR_WARP);
    info->lanes = info->warp;
    info->shuffle = info->in_order = true;
    info->line_bytes = LINE_BYTES;
    info->max_group = attribute(device, ATTR_MAX_THREADS);
    info->local_bytes =
        MAX(attribute(device, ATTR_SHARED_BYTES), attribute(device, ATTR_SHARED_ASKED));
    info->global_bytes = info->alloc_bytes = (int64_t)bytes;
    for (int i = 0; i < 3; i++) {
        info->max_item[i] = attribute(device, ATTR_MAX_BLOCK_X + i);
        device->max_grid[i] = attribute(device, ATTR_MAX_GRID_X + i);
    }
    device_set_bus(info, (unsigned)attribute(device, ATTR_PCI_DOMAIN),
                   (unsigned)attribute(device, ATTR_PCI_BUS),
                   (unsigned)attribute(device, ATTR_PCI_SLOT));
    device_set_fingerprint(info, "cuda");
}

// Opening -------------------------------------------------------------------------------

static void cuda_close(Device *device)
{
    if (device->wait_module)
        device->cu.cuModuleUnload(device->wait_module);
    if (device->start)
        device->cu.cuEventDestroy_v2(device->start);
    if (device->end)
        device->cu.cuEventDestroy_v2(device->end);
    if (device->context)
        device->cu.cuDevicePrimaryCtxRelease_v2(device->device);
    nvrtc_close(device->nvrtc);
    free(device->nvml);
    free(device);
}

static bool open_context(Device *device, Buf *log)
{
    const Driver *cu = &device->cu;
    return succeeds(cu, cu->cuDevicePrimaryCtxRetain(&device->context, device->device),
                    "cuDevicePrimaryCtxRetain", log) &&
           succeeds(cu, cu->cuCtxSetCurrent(device->context), "cuCtxSetCurrent", log) &&
           succeeds(cu, cu->cuEventCreate(&device->start, 0), "cuEventCreate", log) &&
           succeeds(cu, cu->cuEventCreate(&device->end, 0), "cuEventCreate", log);
}

static bool find_indexed(Device *device, int *index, Buf *log)
{
    int n = count_devices(&device->cu);
    if (*index >= n) {
        buf_printf(log,
                   n == 0 ? "no CUDA device found\n" : "the last CUDA device is cuda:%d\n",
                   n - 1);
        return false;
    }
    return succeeds(&device->cu, device->cu.cuDeviceGet(&device->device, *index),
                    "cuDeviceGet", log);
}

// Sets the device's number for the driver, and index, its number for the user.
typedef bool FindDevice(Device *device, int *index, Buf *log);

static Device *open_compiler(FindDevice *find, int index, Buf *log)
{
    Device *device = xcalloc(1, sizeof *device);
    if (load_driver(&device->cu, log) && find(device, &index, log) &&
        (device->nvrtc = nvrtc_open(log))) {
        describe(device, index);
        return device;
    }
    cuda_close(device);
    return NULL;
}

static Device *cuda_open_compiler(int index, Buf *log)
{
    return open_compiler(find_indexed, index, log);
}

static void build_wait(Device *device);

static Device *cuda_open(int index, Buf *log)
{
    Device *device = cuda_open_compiler(index, log);
    if (!device)
        return NULL;
    if (open_context(device, log)) {
        build_wait(device);
        device->nvml = nvml_open(device->info.bus);
        nvml_limits(device->nvml, device->info.limits, sizeof device->info.limits);
        return device;
    }
    cuda_close(device);
    return NULL;
}

static const DeviceInfo *cuda_info(const Device *device)
{
    return &device->info;
}

// Buffers -------------------------------------------------------------------------------

static Mem *cuda_mem_new(Device *device, size_t bytes, Buf *log)
{
    uint64_t address;
    if (!succeeds(&device->cu, device->cu.cuMemAlloc_v2(&address, MAX(bytes, 1)),
                  "cuMemAlloc", log))
        return NULL;
    Mem *mem = xmalloc(sizeof *mem);
    *mem = (Mem){.address = address};
    return mem;
}

static Mem *cuda_part_new(Device *device, Mem *of, size_t offset, size_t bytes, Buf *log)
{
    Mem *mem = xmalloc(sizeof *mem);
    *mem = (Mem){.address = of->address + offset, .is_part = true};
    return mem;
}

// CUDA_RESOURCE_DESC of linear memory, and CUDA_TEXTURE_DESC.
typedef struct {
    int kind; // CU_RESOURCE_TYPE_LINEAR
    union {
        struct {
            uint64_t address;
            int format;
            unsigned channels;
            size_t bytes;
        } linear;
        int reserved[32];
    } of;
    unsigned flags;
} ResourceDesc;

typedef struct {
    int address_mode[3], filter_mode;
    unsigned flags, max_anisotropy;
    int mipmap_filter_mode;
    float mipmap[3], border[4];
    int reserved[12];
} TextureDesc;

enum {
    RESOURCE_LINEAR = 2,
    FORMAT_INT32 = 0x0a,
    FORMAT_FLOAT = 0x20,
    READ_AS_INTEGER = 1,
};

static Mem *cuda_view_new(Device *device, Mem *of, const ImageShape *shape, Buf *log)
{
    bool real = shape->kind == 'f';
    ResourceDesc resource = {.kind = RESOURCE_LINEAR,
                             .of.linear = {.address = of->address,
                                           .format = real ? FORMAT_FLOAT : FORMAT_INT32,
                                           .channels = 1,
                                           .bytes = (size_t)shape->size[0] * 4}};
    TextureDesc texture = {.flags = real ? 0 : READ_AS_INTEGER};
    uint64_t object;
    if (shape->bytes != 4 || shape->channels != 1) {
        buf_puts(log, "textures are of 32-bit elements\n");
        return NULL;
    }
    if (shape->size[0] > attribute(device, ATTR_TEXTURE_WIDTH)) {
        buf_printf(log, "a texture of %lld elements, at most %d are possible\n",
                   (long long)shape->size[0], attribute(device, ATTR_TEXTURE_WIDTH));
        return NULL;
    }
    if (!succeeds(&device->cu,
                  device->cu.cuTexObjectCreate(&object, &resource, &texture, NULL),
                  "cuTexObjectCreate", log))
        return NULL;
    Mem *mem = xmalloc(sizeof *mem);
    *mem = (Mem){.address = object, .is_view = true};
    return mem;
}

static void cuda_mem_free(Device *device, Mem *mem)
{
    if (mem->is_view)
        device->cu.cuTexObjectDestroy(mem->address);
    else if (!mem->is_part)
        device->cu.cuMemFree_v2(mem->address);
    free(mem);
}

static DeviceStatus cuda_write(Device *device, Mem *mem, const void *data, size_t bytes,
                               Buf *log)
{
    if (bytes == 0)
        return DEV_OK;
    return status_of(&device->cu, device->cu.cuMemcpyHtoD_v2(mem->address, data, bytes),
                     "cuMemcpyHtoD", log);
}

static DeviceStatus cuda_read(Device *device, Mem *mem, void *data, size_t bytes, Buf *log)
{
    if (bytes == 0)
        return DEV_OK;
    return status_of(&device->cu, device->cu.cuMemcpyDtoH_v2(data, mem->address, bytes),
                     "cuMemcpyDtoH", log);
}

static const void *cuda_map(Device *device, Mem *mem, size_t bytes, Buf *log)
{
    void *data = malloc(MAX(bytes, 1));
    if (data && cuda_read(device, mem, data, bytes, log) == DEV_OK)
        return data;
    if (!data)
        buf_puts(log, "no memory to read a buffer back\n");
    free(data);
    return NULL;
}

static void cuda_unmap(Device *device, Mem *mem, const void *data)
{
    free((void *)(uintptr_t)data);
}

static DeviceStatus cuda_fill(Device *device, Mem *mem, unsigned char byte, size_t offset,
                              size_t bytes, Buf *log)
{
    if (bytes == 0)
        return DEV_OK;
    int code = device->cu.cuMemsetD8_v2(mem->address + offset, byte, bytes);
    if (code == CU_OK)
        code = device->cu.cuCtxSynchronize();
    return status_of(&device->cu, code, "cuMemsetD8", log);
}

// Modules -------------------------------------------------------------------------------

static Module *module_new(void *loaded, const DeviceText *text, const Buf *symbols)
{
    Module *module = xcalloc(1, sizeof *module);
    const char *symbol = symbols->text;
    module->module = loaded;
    module->nnamed = text->nname;
    module->named = xcalloc((size_t)text->nname + 1, sizeof *module->named);
    for (int i = 0; i < text->nname; i++, symbol += strlen(symbol) + 1)
        module->named[i] = (Named){xstrdup(text->name[i]), xstrdup(symbol)};
    return module;
}

// What a name of the text is called in the module; a name that the text does not list is
// called so.
static const char *symbol_of(const Module *module, const char *name)
{
    for (int i = 0; i < module->nnamed; i++)
        if (strcmp(module->named[i].name, name) == 0)
            return module->named[i].symbol;
    return name;
}

static DeviceStatus make_cubin(Device *device, const DeviceText *text, Buf *cubin,
                               Buf *symbols, Buf *log)
{
    return nvrtc_compile(device->nvrtc, text, device->arch, getenv("FOREWARP_CACHE"), cubin,
                         symbols, log);
}

static void build_wait(Device *device)
{
    static const DeviceText text = {.source = wait_text, .options = ""};
    AutoBuf cubin = buf_new(), ignored = buf_new();
    if (make_cubin(device, &text, &cubin, &ignored, &ignored) == DEV_OK &&
        device->cu.cuModuleLoadData(&device->wait_module, cubin.text) == CU_OK)
        device->cu.cuModuleGetFunction(&device->wait, device->wait_module, "fw_wait");
}

static DeviceStatus cuda_compile(Device *device, const DeviceText *text, Buf *log)
{
    AutoBuf cubin = buf_new(), symbols = buf_new();
    return make_cubin(device, text, &cubin, &symbols, log);
}

static DeviceStatus cuda_build(Device *device, const DeviceText *text, Module **module,
                               Buf *log)
{
    void *loaded;
    AutoBuf cubin = buf_new(), symbols = buf_new();
    DeviceStatus status = make_cubin(device, text, &cubin, &symbols, log);
    if (status == DEV_OK)
        status = status_of(&device->cu, device->cu.cuModuleLoadData(&loaded, cubin.text),
                           "cuModuleLoadData", log);
    if (status == DEV_OK)
        *module = module_new(loaded, text, &symbols);
    return status;
}

static void cuda_module_free(Device *device, Module *module)
{
    device->cu.cuModuleUnload(module->module);
    for (int i = 0; i < module->nnamed; i++) {
        free(module->named[i].name);
        free(module->named[i].symbol);
    }
    free(module->named);
    free(module);
}

// Launches ------------------------------------------------------------------------------

typedef struct {
    void *function;
    unsigned grid[3], block[3], shared;
    bool follows;
    void *arg[ARGS_MAX];
} Ready;

static bool shape_fits(const Device *device, const DeviceLaunch *l, int64_t most, Buf *log)
{
    int64_t group = 1;
    for (int i = 0; i < 3; i++) {
        int64_t local = (int64_t)l->local[i], global = (int64_t)l->global[i];
        if (local == 0 || global == 0 || global % local != 0) {
            buf_printf(log, "%s: block size %lld does not divide %lld threads\n", l->kernel,
                       (long long)local, (long long)global);
            return false;
        }
        if (local > device->info.max_item[i] || global / local > device->max_grid[i]) {
            buf_printf(log, "%s: dimension %d has %lld blocks of %lld threads, too many\n",
                       l->kernel, i, (long long)(global / local), (long long)local);
            return false;
        }
        group *= local;
    }
    if (group > most)
        buf_printf(log, "%s: a block of %lld threads, at most %lld fit\n", l->kernel,
                   (long long)group, (long long)most);
    return group <= most;
}

// Beyond the 48 KB that every block has, a kernel must say what its launches may ask for.
static bool shared_fits(const Device *device, void *function, const DeviceLaunch *l,
                        Buf *log)
{
    const Driver *cu = &device->cu;
    int declared = 0, allowed = 0;
    cu->cuFuncGetAttribute(&declared, FUNC_SHARED_BYTES, function);
    cu->cuFuncGetAttribute(&allowed, FUNC_DYNAMIC_BYTES, function);
    int64_t bytes = declared + (int64_t)l->local_bytes;
    if (bytes > device->info.local_bytes) {
        buf_printf(log, "%s: %lld bytes of shared memory, the device has %lld\n", l->kernel,
                   (long long)bytes, (long long)device->info.local_bytes);
        return false;
    }
    return (int64_t)l->local_bytes <= allowed || // sizes before these asked for more
           succeeds(
               cu,
               cu->cuFuncSetAttribute(function, FUNC_DYNAMIC_BYTES, (int)l->local_bytes),
               "cuFuncSetAttribute", log);
}

static bool launch_fits(const Device *device, void *function, const DeviceLaunch *l,
                        Buf *log)
{
    const Driver *cu = &device->cu;
    int threads = (int)device->info.max_group;
    cu->cuFuncGetAttribute(&threads, FUNC_MAX_THREADS, function);
    if (!shared_fits(device, function, l, log))
        return false;
    if (l->narg > ARGS_MAX) {
        buf_printf(log, "%s: more than %d arguments\n", l->kernel, ARGS_MAX);
        return false;
    }
    return shape_fits(device, l, MIN(threads, device->info.max_group), log);
}

// The driver reads as many arguments as the kernel takes, each with the kernel's size. What
// is passed beyond these is not read.
static bool args_fit(const Driver *cu, void *function, const DeviceLaunch *l, Buf *log)
{
    size_t offset, taken, n = 0;
    for (int i = 0; i < l->narg && cu->cuFuncGetParamInfo; i++) {
        size_t passed = l->arg[i].mem ? sizeof(uint64_t) : l->arg[i].bytes;
        if (l->arg[i].symbol)
            continue;
        if (cu->cuFuncGetParamInfo(function, n++, &offset, &taken) != CU_OK)
            return true;
        if (passed != taken) {
            buf_printf(log, "%s: argument %zu has %zu bytes, but the kernel takes %zu\n",
                       l->kernel, n, passed, taken);
            return false;
        }
    }
    if (!cu->cuFuncGetParamInfo ||
        cu->cuFuncGetParamInfo(function, n, &offset, &taken) != CU_OK)
        return true;
    buf_printf(log, "%s: the kernel takes more than the %zu arguments that are passed\n",
               l->kernel, n);
    return false;
}

static DeviceStatus get_ready(const Device *device, const Module *module,
                              const DeviceLaunch *launch, Ready *ready, Buf *log)
{
    const Driver *cu = &device->cu;
    int code = cu->cuModuleGetFunction(&ready->function, module->module,
                                       symbol_of(module, launch->kernel));
    if (!succeeds(cu, code, "cuModuleGetFunction", log)) {
        buf_printf(log, "the kernel asked for is '%s'\n", launch->kernel);
        return DEV_FAILED;
    }
    if (!launch_fits(device, ready->function, launch, log))
        return DEV_OUT_OF_RESOURCES;
    if (!args_fit(cu, ready->function, launch, log))
        return DEV_FAILED;
    for (int i = 0; i < 3; i++) {
        ready->block[i] = (unsigned)launch->local[i];
        ready->grid[i] = (unsigned)(launch->global[i] / launch->local[i]);
    }
    ready->shared = (unsigned)launch->local_bytes;
    ready->follows = launch->follows && device->follows;
    for (int i = 0, n = 0; i < launch->narg; i++)
        if (!launch->arg[i].symbol)
            ready->arg[n++] = launch->arg[i].mem ? (void *)&launch->arg[i].mem->address
                                                 : (void *)(uintptr_t)launch->arg[i].data;
    return DEV_OK;
}

// Memory named by a symbol ------------------------------------------------------------

// Where a variable is; DEV_OUT_OF_RESOURCES if a buffer does not go into it.
static DeviceStatus find_variable(const Device *device, const Module *module,
                                  const DeviceArg *arg, uint64_t *address, Buf *log)
{
    size_t bytes = 0;
    int code = device->cu.cuModuleGetGlobal_v2(address, &bytes, module->module,
                                               symbol_of(module, arg->symbol));
    if (!succeeds(&device->cu, code, "cuModuleGetGlobal", log)) {
        buf_printf(log, "the variable asked for is '%s'\n", arg->symbol);
        return DEV_FAILED;
    }
    if (bytes >= arg->bytes)
        return DEV_OK;
    buf_printf(log, "%s: the variable has %zu bytes, its argument %zu\n", arg->symbol,
               bytes, arg->bytes);
    return DEV_OUT_OF_RESOURCES;
}

// Copies what belongs to variables of the module to them, or back.
static DeviceStatus copy_symbols(const Device *device, const Module *module,
                                 const DeviceLaunch *launch, int n, bool back, void *stream,
                                 Buf *log)
{
    DeviceStatus status = DEV_OK;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < launch[k].narg && status == DEV_OK; i++) {
            const DeviceArg *arg = &launch[k].arg[i];
            uint64_t variable, buffer;
            if (!arg->symbol || (k > 0 && launch[k].arg == launch[k - 1].arg))
                continue; // it is where it was
            memcpy(&buffer, arg->mem ? (const void *)&arg->mem->address : arg->data,
                   sizeof buffer);
            status = find_variable(device, module, arg, &variable, log);
            if (status == DEV_OK)
                status = status_of(&device->cu,
                                   device->cu.cuMemcpyDtoDAsync_v2(back ? buffer : variable,
                                                                   back ? variable : buffer,
                                                                   arg->bytes, stream),
                                   "cuMemcpyDtoD", log);
        }
    return status;
}

// What cuLaunchKernelEx takes: CUlaunchConfig with one CUlaunchAttribute.
typedef struct {
    int id, reserved, value[16];
} Attribute;

typedef struct {
    unsigned grid[3], block[3], shared;
    void *stream;
    const Attribute *attribute;
    unsigned n;
} LaunchConfig;

static int enqueue(const Driver *cu, Ready *r, void *stream)
{
    static const Attribute overlap = {.id = LAUNCH_OVERLAP, .value = {1}};
    if (r->follows) {
        LaunchConfig c = {
            .shared = r->shared, .stream = stream, .attribute = &overlap, .n = 1};
        memcpy(c.grid, r->grid, sizeof c.grid);
        memcpy(c.block, r->block, sizeof c.block);
        return cu->cuLaunchKernelEx(&c, r->function, r->arg, NULL);
    }
    return cu->cuLaunchKernel(r->function, r->grid[0], r->grid[1], r->grid[2], r->block[0],
                              r->block[1], r->block[2], r->shared, stream, r->arg, NULL);
}

static void wait_some(const Device *device, int launches)
{
    int64_t us = MIN(WAIT_US + (int64_t)WAIT_LAUNCH_US * launches, WAIT_MOST_US);
    long long cycles = us * device->info.clock_mhz;
    void *arg[] = {&cycles};
    if (device->wait)
        device->cu.cuLaunchKernel(device->wait, 1, 1, 1, 1, 1, 1, 0, NULL, arg, NULL);
}

// Everything that can be done before the first launch is: it would be in the time.
static DeviceStatus run_ready(Device *device, Ready *ready, int n, double *time_ns,
                              Buf *log)
{
    const Driver *cu = &device->cu;
    float ms = 0;
    wait_some(device, n);
    DeviceStatus status =
        status_of(cu, cu->cuEventRecord(device->start, NULL), "cuEventRecord", log);
    for (int i = 0; i < n && status == DEV_OK; i++)
        status = status_of(cu, enqueue(cu, &ready[i], NULL), "cuLaunchKernel", log);
    if (status == DEV_OK)
        status = status_of(cu, cu->cuEventRecord(device->end, NULL), "cuEventRecord", log);
    if (!succeeds(cu, cu->cuCtxSynchronize(), "cuCtxSynchronize", log))
        return DEV_FAILED;
    if (status == DEV_OK)
        status = status_of(cu, cu->cuEventElapsedTime(&ms, device->start, device->end),
                           "cuEventElapsedTime", log);
    *time_ns = MAX((double)ms * 1e6, 1.0);
    return status;
}

static DeviceStatus cuda_run(Device *device, Module *module, const DeviceLaunch *launch,
                             int n, double *time_ns, Buf *log)
{
    AUTO_FREE Ready *ready = xcalloc((size_t)n, sizeof *ready);
    DeviceStatus status = DEV_OK;
    for (int i = 0; i < n && status == DEV_OK; i++)
        status = get_ready(device, module, &launch[i], &ready[i], log);
    if (status == DEV_OK)
        status = copy_symbols(device, module, launch, n, false, NULL, log);
    if (status == DEV_OK)
        status = run_ready(device, ready, n, time_ns, log);
    if (status == DEV_OK)
        status = copy_symbols(device, module, launch, n, true, NULL, log);
    return status;
}

static void cuda_usage(Device *device, Module *module, const char *kernel,
                       KernelUsage *usage)
{
    const Driver *cu = &device->cu;
    void *function;
    *usage = (KernelUsage){-1, -1, -1};
    if (cu->cuModuleGetFunction(&function, module->module, symbol_of(module, kernel)) !=
        CU_OK)
        return;
    cu->cuFuncGetAttribute(&usage->registers, FUNC_REGISTERS, function);
    cu->cuFuncGetAttribute(&usage->spilled, FUNC_LOCAL_BYTES, function);
    cu->cuFuncGetAttribute(&usage->local_bytes, FUNC_SHARED_BYTES, function);
}

static bool cuda_energy(Device *device, double *joules)
{
    return nvml_energy(device->nvml, joules);
}

// In a process of the caller's ---------------------------------------------------------

static bool find_current(Device *device, int *index, Buf *log)
{
    const Driver *cu = &device->cu;
    void *context = NULL;
    int current = 0, n = count_devices(cu);
    if (!succeeds(cu, cu->cuCtxGetCurrent(&context), "cuCtxGetCurrent", log))
        return false;
    if (!context) {
        buf_puts(log, "no CUDA context is current: make one (cuCtxSetCurrent, or any call "
                      "of the run-time library such as cudaFree(0))\n");
        return false;
    }
    if (!succeeds(cu, cu->cuCtxGetDevice(&current), "cuCtxGetDevice", log))
        return false;
    for (*index = 0; *index < n; ++*index)
        if (cu->cuDeviceGet(&device->device, *index) == CU_OK && device->device == current)
            return true;
    buf_puts(log, "the current CUDA context is of no device that is listed\n");
    return false;
}

// The default stream of the context that is current.
static void *cuda_queue(const Device *device)
{
    return NULL;
}

static Device *cuda_adopt(void *queue, Buf *log)
{
    return open_compiler(find_current, 0, log);
}

// Memory that the driver does not know the extent of is taken as it is. A vector at an
// address that is no multiple of its size is a fault that ends the caller's context; no
// access is of more than 32 bytes. What cuMemAlloc gives is aligned to 256.
enum { VECTOR_BYTES = 32 };

static bool cuda_lend(Device *device, void *const *handle, size_t bytes, DeviceArg *arg,
                      Buf *log)
{
    uint64_t start = 0, at = (uint64_t)(uintptr_t)*handle;
    size_t size = 0;
    *arg = (DeviceArg){.data = handle, .bytes = sizeof *handle};
    if (at % VECTOR_BYTES != 0) {
        buf_printf(log, "the device pointer is not a multiple of %d\n", VECTOR_BYTES);
        return false;
    }
    if (device->cu.cuMemGetAddressRange_v2(&start, &size, at) != CU_OK) {
        if (!*handle)
            buf_puts(log, "the device pointer is 0\n");
        return *handle != NULL;
    }
    bool fits = start + size - at >= bytes;
    if (!fits)
        buf_printf(log, "it has %llu bytes, %zu are needed\n",
                   (unsigned long long)(start + size - at), bytes);
    return fits;
}

static DeviceStatus cuda_enqueue(Device *device, Module *module, void *queue,
                                 const DeviceLaunch *launch, int n, Buf *log)
{
    Ready ready;
    DeviceStatus status = copy_symbols(device, module, launch, n, false, queue, log);
    for (int i = 0; i < n && status == DEV_OK; i++) {
        status = get_ready(device, module, &launch[i], &ready, log);
        if (status == DEV_OK)
            status = status_of(&device->cu, enqueue(&device->cu, &ready, queue),
                               "cuLaunchKernel", log);
    }
    return status == DEV_OK ? copy_symbols(device, module, launch, n, true, queue, log)
                            : status;
}

extern const DeviceKind device_cuda;
const DeviceKind device_cuda = {
    .name = "cuda",
    .target = "cuda",
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .info = cuda_info,
    .mem_new = cuda_mem_new,
    .part_new = cuda_part_new,
    .view_new = cuda_view_new,
    .mem_free = cuda_mem_free,
    .write = cuda_write,
    .read = cuda_read,
    .map = cuda_map,
    .unmap = cuda_unmap,
    .fill = cuda_fill,
    .build = cuda_build,
    .image = make_cubin,
    .module_free = cuda_module_free,
    .open_compiler = cuda_open_compiler,
    .compile = cuda_compile,
    .run = cuda_run,
    .usage = cuda_usage,
    .energy = cuda_energy,
    .queue = cuda_queue,
    .adopt = cuda_adopt,
    .lend = cuda_lend,
    .enqueue = cuda_enqueue,
};
