// SPDX-License-Identifier: Apache-2.0
//
// OpenCL devices through the ICD loader, with nothing newer than OpenCL 1.2.
//
// A launch is checked before it is enqueued: PoCL ends the process (assert, SIGSEGV)
// where the standard asks for an error, for example when local memory is exceeded.
// Devices are numbered over all platforms in the loader's order. Times come from event
// profiling. It does not choose build options, and knows drivers apart only where
// the standard has no word: the width of a warp, a compiler's complaint.
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "device/device.h"

#include <CL/cl.h>
#include <stdlib.h>
#include <string.h>

#ifndef CL_DEVICE_WARP_SIZE_NV
#define CL_DEVICE_WARP_SIZE_NV 0x4003
#endif
#ifndef CL_DEVICE_WAVEFRONT_WIDTH_AMD
#define CL_DEVICE_WAVEFRONT_WIDTH_AMD 0x4043
#endif
#ifndef CL_DEVICE_PCI_BUS_INFO_KHR
#define CL_DEVICE_PCI_BUS_INFO_KHR 0x410F
#endif

enum { DEVICES_MAX = 64, PLATFORMS_MAX = 16 };

#define DRIVER_ADVICE                                                                      \
    "install a driver (Debian and Ubuntu: pocl-opencl-icd for the CPU, or the GPU "        \
    "vendor's)"

struct Device {
    DeviceInfo info;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
};

struct Mem {
    cl_mem mem;
    size_t bytes;
    ImageShape image; // dims 0: a buffer
    cl_mem source;    // a view of a part: the part, whose contents each launch copies to
    cl_mem copy;      // what the image is made of; else both NULL
};

typedef struct ClKernel {
    struct ClKernel *next;
    cl_kernel kernel;
    size_t max_group;
    cl_ulong local_bytes;
    char name[];
} ClKernel;

struct Module {
    cl_program program;
    ClKernel *kernels; // those launched so far
};

// Errors ------------------------------------------------------------------------------

typedef struct {
    cl_int code;
    const char *name;
    bool resources; // the launch or buffer asks for more than the device has
} ErrorInfo;

#define PLAIN(name) {name, #name, false},
#define LARGE(name) {name, #name, true},
static const ErrorInfo error_info[] = {
#include "device/opencl.def"
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR", false},
};
#undef PLAIN
#undef LARGE

static const ErrorInfo *find_error(cl_int code)
{
    for (int i = 0; i < COUNTOF(error_info); i++)
        if (error_info[i].code == code)
            return &error_info[i];
    return NULL;
}

// True if code is success; else the call and the error's name go to log.
static bool succeeds(cl_int code, const char *call, Buf *log)
{
    if (code == CL_SUCCESS)
        return true;
    const ErrorInfo *info = find_error(code);
    buf_printf(log, "%s failed: %s (%d)\n", call, info ? info->name : "unknown error",
               (int)code);
    return false;
}

static DeviceStatus status_of(cl_int code, const char *call, Buf *log)
{
    if (succeeds(code, call, log))
        return DEV_OK;
    const ErrorInfo *info = find_error(code);
    return info && info->resources ? DEV_OUT_OF_RESOURCES : DEV_FAILED;
}

// Finding and describing devices ------------------------------------------------------

// A platform that fails to answer is left out: another may still work.
static int list_devices(cl_device_id device[DEVICES_MAX])
{
    cl_platform_id platform[PLATFORMS_MAX];
    cl_uint nplatform = 0, n = 0;
    if (clGetPlatformIDs(PLATFORMS_MAX, platform, &nplatform) != CL_SUCCESS)
        return 0;
    nplatform = MIN(nplatform, PLATFORMS_MAX);
    for (cl_uint i = 0; i < nplatform && n < DEVICES_MAX; i++) {
        cl_uint found = 0, room = DEVICES_MAX - n;
        if (clGetDeviceIDs(platform[i], CL_DEVICE_TYPE_ALL, room, device + n, &found) ==
            CL_SUCCESS)
            n += MIN(found, room);
    }
    return (int)n;
}

static int opencl_count(void)
{
    cl_device_id device[DEVICES_MAX];
    return list_devices(device);
}

static void get_text(cl_device_id id, cl_device_info what, char *out, size_t size)
{
    size_t len = 0;
    AutoBuf text = buf_new();
    if (clGetDeviceInfo(id, what, 0, NULL, &len) == CL_SUCCESS && len > 0) {
        AUTO_FREE char *value = xcalloc(len + 1, 1);
        clGetDeviceInfo(id, what, len, value, NULL);
        buf_puts(&text, value + strspn(value, " "));
    }
    snprintf(out, size, "%s", text.text);
}

static int get_uint(cl_device_id id, cl_device_info what, int otherwise)
{
    cl_uint value = 0;
    if (clGetDeviceInfo(id, what, sizeof value, &value, NULL) != CL_SUCCESS || !value)
        return otherwise;
    return (int)value;
}

static int64_t get_ulong(cl_device_id id, cl_device_info what)
{
    cl_ulong value = 0;
    clGetDeviceInfo(id, what, sizeof value, &value, NULL);
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int64_t get_size(cl_device_id id, cl_device_info what)
{
    size_t value = 0;
    clGetDeviceInfo(id, what, sizeof value, &value, NULL);
    return (int64_t)value;
}

static bool has_extension(cl_device_id id, const char *name)
{
    char text[8192];
    get_text(id, CL_DEVICE_EXTENSIONS, text, sizeof text);
    return strstr(text, name) != NULL;
}

// Lanes of a stream, which meet in local memory, because OpenCL C has no shuffles; NVIDIA's
// has inline PTX, which has them.
enum { CPU_LANES = 8, GPU_LANES = 32 };

static int warp_width(cl_device_id id, bool is_cpu)
{
    if (is_cpu)
        return get_uint(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 1);
    if (has_extension(id, "cl_nv_device_attribute_query"))
        return get_uint(id, CL_DEVICE_WARP_SIZE_NV, 32);
    if (has_extension(id, "cl_amd_device_attribute_query"))
        return get_uint(id, CL_DEVICE_WAVEFRONT_WIDTH_AMD, 64);
    return 32;
}

static void describe_sizes(cl_device_id id, DeviceInfo *info)
{
    size_t item[8] = {1, 1, 1};
    clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof item, item, NULL);
    for (int i = 0; i < 3; i++)
        info->max_item[i] = (int64_t)item[i];
    info->max_group = get_size(id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    info->local_bytes = get_ulong(id, CL_DEVICE_LOCAL_MEM_SIZE);
    info->global_bytes = get_ulong(id, CL_DEVICE_GLOBAL_MEM_SIZE);
    info->alloc_bytes = get_ulong(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
}

static void describe_bus(cl_device_id id, DeviceInfo *info)
{
    cl_uint place[4] = {0}; // domain, bus, slot, function
    if (has_extension(id, "cl_khr_pci_bus_info") &&
        clGetDeviceInfo(id, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof place, place, NULL) ==
            CL_SUCCESS)
        device_set_bus(info, place[0], place[1], place[2]);
}

static void describe(cl_device_id id, int index, DeviceInfo *info)
{
    cl_device_type type = 0;
    cl_platform_id platform = NULL;
    snprintf(info->id, sizeof info->id, "opencl:%d", index);
    snprintf(info->target, sizeof info->target, "%s", language_name[LANGUAGE_OPENCL]);
    get_text(id, CL_DEVICE_NAME, info->name, sizeof info->name);
    get_text(id, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
    if (clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) ==
        CL_SUCCESS)
        clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof info->platform - 1,
                          info->platform, NULL);
    clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    info->is_cpu = type & CL_DEVICE_TYPE_CPU;
    info->has_double = has_extension(id, "cl_khr_fp64");
    info->has_half = has_extension(id, "cl_khr_fp16");
    info->has_image = get_uint(id, CL_DEVICE_IMAGE_SUPPORT, 0);
    info->has_texture = info->has_image;
    info->compute_units = get_uint(id, CL_DEVICE_MAX_COMPUTE_UNITS, 1);
    info->clock_mhz = get_uint(id, CL_DEVICE_MAX_CLOCK_FREQUENCY, 0);
    info->warp = warp_width(id, info->is_cpu);
    info->lanes = info->is_cpu ? CPU_LANES : GPU_LANES;
    info->shuffle =
        has_extension(id, "cl_nv_device_attribute_query") && info->warp == info->lanes;
    info->in_order =
        info->shuffle || strcmp(info->platform, "Portable Computing Language") == 0;
    info->line_bytes = get_uint(id, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, 64);
    describe_sizes(id, info);
    describe_bus(id, info);
    device_set_fingerprint(info, "opencl");
}

static void opencl_close(Device *device)
{
    if (device->queue)
        clReleaseCommandQueue(device->queue);
    if (device->context)
        clReleaseContext(device->context);
    free(device);
}

static bool find_device(int index, cl_device_id *id, Buf *log)
{
    cl_device_id list[DEVICES_MAX];
    int n = list_devices(list);
    if (index < n) {
        *id = list[index];
        return true;
    }
    if (n == 0)
        buf_puts(log, "no OpenCL device found: " DRIVER_ADVICE "\n");
    else
        buf_printf(log, "the last OpenCL device is opencl:%d\n", n - 1);
    return false;
}

static Device *opencl_open(int index, Buf *log)
{
    cl_device_id id;
    cl_int code;
    if (!find_device(index, &id, log))
        return NULL;
    Device *device = xcalloc(1, sizeof *device);
    device->id = id;
    describe(id, index, &device->info);
    device->context = clCreateContext(NULL, 1, &id, NULL, NULL, &code);
    bool ok = succeeds(code, "clCreateContext", log);
    if (ok) {
        device->queue =
            clCreateCommandQueue(device->context, id, CL_QUEUE_PROFILING_ENABLE, &code);
        ok = succeeds(code, "clCreateCommandQueue", log);
    }
    if (ok)
        return device;
    opencl_close(device);
    return NULL;
}

static const DeviceInfo *opencl_info(const Device *device)
{
    return &device->info;
}

// Buffers -----------------------------------------------------------------------------

// What a call made, if its code says so.
static Mem *mem_of(cl_mem mem, cl_int code, const char *call, size_t bytes, Buf *log)
{
    if (!succeeds(code, call, log))
        return NULL;
    Mem *made = xmalloc(sizeof *made);
    *made = (Mem){.mem = mem, .bytes = bytes};
    return made;
}

static Mem *opencl_mem_new(Device *device, size_t bytes, Buf *log)
{
    if (bytes > (size_t)device->info.alloc_bytes) {
        buf_printf(log, "a buffer of %zu bytes is larger than the device allows (%lld)\n",
                   bytes, (long long)device->info.alloc_bytes);
        return NULL;
    }
    cl_int code;
    cl_mem mem =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE, MAX(bytes, 1), NULL, &code);
    return mem_of(mem, code, "clCreateBuffer", bytes, log);
}

static Mem *opencl_part_new(Device *device, Mem *of, size_t offset, size_t bytes, Buf *log)
{
    cl_int code;
    const cl_buffer_region region = {offset, MAX(bytes, 1)};
    cl_mem mem = clCreateSubBuffer(of->mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                   &region, &code);
    return mem_of(mem, code, "clCreateSubBuffer", bytes, log);
}

// Channel types by kind and bytes; integers are read as such, never as fractions of one.
static bool image_format(const ImageShape *shape, cl_image_format *format)
{
    static const struct {
        char kind;
        int bytes;
        cl_channel_type type;
    } known[] = {{'f', 4, CL_FLOAT},          {'f', 2, CL_HALF_FLOAT},
                 {'i', 1, CL_SIGNED_INT8},    {'i', 2, CL_SIGNED_INT16},
                 {'i', 4, CL_SIGNED_INT32},   {'u', 1, CL_UNSIGNED_INT8},
                 {'u', 2, CL_UNSIGNED_INT16}, {'u', 4, CL_UNSIGNED_INT32}};
    static const cl_channel_order order[] = {[1] = CL_R, [2] = CL_RG, [4] = CL_RGBA};
    for (int i = 0; i < COUNTOF(known); i++)
        if (known[i].kind == shape->kind && known[i].bytes == shape->bytes) {
            *format = (cl_image_format){order[shape->channels], known[i].type};
            return true;
        }
    return false;
}

static Mem *own_image(cl_mem mem, const ImageShape *shape)
{
    Mem *made = xmalloc(sizeof *made);
    *made = (Mem){.mem = mem, .image = *shape};
    return made;
}

static Mem *opencl_image_new(Device *device, const ImageShape *shape, Buf *log)
{
    static const cl_mem_object_type type[] = {[1] = CL_MEM_OBJECT_IMAGE1D,
                                              [2] = CL_MEM_OBJECT_IMAGE2D,
                                              [3] = CL_MEM_OBJECT_IMAGE3D};
    cl_image_format format;
    if (!device->info.has_image || !image_format(shape, &format)) {
        buf_puts(log, "the device has no images of such elements\n");
        return NULL;
    }
    cl_image_desc desc = {.image_type = type[shape->dims],
                          .image_width = (size_t)shape->size[0],
                          .image_height = (size_t)shape->size[1],
                          .image_depth = (size_t)shape->size[2]};
    cl_int code;
    cl_mem mem =
        clCreateImage(device->context, CL_MEM_READ_ONLY, &format, &desc, NULL, &code);
    return succeeds(code, "clCreateImage", log) ? own_image(mem, shape) : NULL;
}

static cl_mem image_over(Device *device, cl_mem of, const ImageShape *shape, cl_int *code)
{
    cl_image_format format;
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                          .image_width = (size_t)shape->size[0],
                          .buffer = of};
    *code = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
    if (!image_format(shape, &format))
        return NULL;
    return clCreateImage(device->context, CL_MEM_READ_ONLY, &format, &desc, NULL, code);
}

// PoCL makes no image of a part of a buffer: of such a part the image has a copy.
static Mem *opencl_view_new(Device *device, Mem *of, const ImageShape *shape, Buf *log)
{
    cl_int code = CL_INVALID_IMAGE_SIZE;
    cl_mem copy = NULL, mem = NULL;
    if (shape->size[0] <= get_size(device->id, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE))
        mem = image_over(device, of->mem, shape, &code);
    if (code == CL_INVALID_MEM_OBJECT) {
        copy = clCreateBuffer(device->context, CL_MEM_READ_WRITE, MAX(of->bytes, 1), NULL,
                              &code);
        mem = code == CL_SUCCESS ? image_over(device, copy, shape, &code) : NULL;
    }
    if (!succeeds(code, "clCreateImage", log)) {
        if (copy)
            clReleaseMemObject(copy);
        return NULL;
    }
    Mem *made = own_image(mem, shape);
    made->source = copy ? of->mem : NULL;
    made->copy = copy;
    made->bytes = of->bytes;
    return made;
}

// A processor works where the array is; any other device is to have a buffer of its own.
static Mem *opencl_mem_wrap(Device *device, void *data, size_t bytes, Buf *log)
{
    cl_int code;
    if (!device->info.is_cpu || bytes == 0)
        return NULL;
    cl_mem mem = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                bytes, data, &code);
    return mem_of(mem, code, "clCreateBuffer", bytes, log);
}

static void opencl_mem_free(Device *device, Mem *mem)
{
    clReleaseMemObject(mem->mem);
    if (mem->copy)
        clReleaseMemObject(mem->copy);
    free(mem);
}

static DeviceStatus opencl_write(Device *device, Mem *mem, const void *data, size_t bytes,
                                 Buf *log)
{
    if (bytes == 0)
        return DEV_OK;
    if (mem->image.dims) {
        const int64_t *size = mem->image.size;
        const size_t origin[3] = {0, 0, 0};
        const size_t region[3] = {(size_t)size[0], (size_t)size[1], (size_t)size[2]};
        return status_of(clEnqueueWriteImage(device->queue, mem->mem, CL_TRUE, origin,
                                             region, 0, 0, data, 0, NULL, NULL),
                         "clEnqueueWriteImage", log);
    }
    return status_of(clEnqueueWriteBuffer(device->queue, mem->mem, CL_TRUE, 0, bytes, data,
                                          0, NULL, NULL),
                     "clEnqueueWriteBuffer", log);
}

static DeviceStatus opencl_read(Device *device, Mem *mem, void *data, size_t bytes,
                                Buf *log)
{
    if (bytes == 0)
        return DEV_OK;
    return status_of(clEnqueueReadBuffer(device->queue, mem->mem, CL_TRUE, 0, bytes, data,
                                         0, NULL, NULL),
                     "clEnqueueReadBuffer", log);
}

// A device of its own memory is read into ours: what such a driver maps is pinned.
static const void *opencl_map(Device *device, Mem *mem, size_t bytes, Buf *log)
{
    cl_int code = CL_OUT_OF_HOST_MEMORY;
    if (device->info.is_cpu) {
        const void *data = clEnqueueMapBuffer(device->queue, mem->mem, CL_TRUE, CL_MAP_READ,
                                              0, MAX(bytes, 1), 0, NULL, NULL, &code);
        return succeeds(code, "clEnqueueMapBuffer", log) ? data : NULL;
    }
    void *data = malloc(MAX(bytes, 1));
    if (data && opencl_read(device, mem, data, bytes, log) == DEV_OK)
        return data;
    if (!data)
        buf_puts(log, "no memory to read a buffer back\n");
    free(data);
    return NULL;
}

static void opencl_unmap(Device *device, Mem *mem, const void *data)
{
    void *mapped = (void *)(uintptr_t)data;
    if (!device->info.is_cpu)
        free(mapped);
    else if (clEnqueueUnmapMemObject(device->queue, mem->mem, mapped, 0, NULL, NULL) ==
             CL_SUCCESS)
        clFinish(device->queue);
}

// Wide patterns fill faster, where they may begin; the odd bytes are filled singly.
static DeviceStatus opencl_fill(Device *device, Mem *mem, unsigned char byte, size_t offset,
                                size_t bytes, Buf *log)
{
    enum { WIDE = 16 };
    unsigned char pattern[WIDE];
    size_t end = offset + bytes, first = MIN((offset + WIDE - 1) / WIDE * WIDE, end);
    size_t last = MAX(end / WIDE * WIDE, first);
    const size_t part[][3] = {{offset, first, 1}, {first, last, WIDE}, {last, end, 1}};
    cl_int code = CL_SUCCESS;
    memset(pattern, byte, sizeof pattern);
    for (int i = 0; i < COUNTOF(part) && code == CL_SUCCESS; i++)
        if (part[i][0] < part[i][1])
            code = clEnqueueFillBuffer(device->queue, mem->mem, pattern, part[i][2],
                                       part[i][0], part[i][1] - part[i][0], 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clFinish(device->queue);
    return status_of(code, "clEnqueueFillBuffer", log);
}

// Programs ----------------------------------------------------------------------------

// True if the build log says anything.
static bool append_build_log(Device *device, cl_program program, Buf *log)
{
    size_t len = 0;
    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &len);
    AUTO_FREE char *text = xcalloc(len + 1, 1);
    if (len)
        clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, len, text, NULL);
    bool says = text[strspn(text, " \n")] != 0;
    if (says)
        buf_printf(log, "%s\n", text);
    return says;
}

// Without warnings: PoCL prints how many there are where the caller's output goes.
static cl_int build_once(Device *device, const DeviceText *text, cl_program *program)
{
    cl_int code;
    const char *source = text->source;
    AutoBuf options = buf_new();
    buf_printf(&options, "-w %s", text->options ? text->options : "");
    *program = clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
    if (code != CL_SUCCESS)
        *program = NULL;
    else
        code = clBuildProgram(*program, 1, &device->id, options.text, NULL, NULL);
    return code;
}

// A failure without a word in its log is PoCL losing a race for its cache (pocl issue
// 1480): once more succeeds.
static DeviceStatus opencl_build(Device *device, const DeviceText *text, Module **module,
                                 Buf *log)
{
    cl_program program = NULL;
    cl_int code = CL_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        code = build_once(device, text, &program);
        if (code == CL_SUCCESS) {
            *module = xcalloc(1, sizeof **module);
            (*module)->program = program;
            return DEV_OK;
        }
        bool says = program && append_build_log(device, program, log);
        if (program)
            clReleaseProgram(program);
        if (says || code != CL_BUILD_PROGRAM_FAILURE)
            break;
    }
    succeeds(code, "clBuildProgram", log);
    // NVIDIA's compiler checks local memory itself, and has no error for it but these
    // words.
    return strstr(log->text, "uses too much shared data") ? DEV_OUT_OF_RESOURCES
                                                          : DEV_BUILD_FAILED;
}

static void opencl_module_free(Device *device, Module *module)
{
    for (ClKernel *k = module->kernels, *next; k; k = next) {
        next = k->next;
        clReleaseKernel(k->kernel);
        free(k);
    }
    clReleaseProgram(module->program);
    free(module);
}

// A program is for the only device of its context.
static DeviceStatus opencl_image(Device *device, const DeviceText *text, Buf *image,
                                 Buf *symbols, Buf *log)
{
    Module *module;
    DeviceStatus status = opencl_build(device, text, &module, log);
    if (status != DEV_OK)
        return status;
    size_t bytes = 0;
    cl_int code = clGetProgramInfo(module->program, CL_PROGRAM_BINARY_SIZES, sizeof bytes,
                                   &bytes, NULL);
    AUTO_FREE unsigned char *binary = xcalloc(bytes + 1, 1);
    if (code == CL_SUCCESS)
        code = clGetProgramInfo(module->program, CL_PROGRAM_BINARIES, sizeof binary,
                                &binary, NULL);
    buf_write(image, (const char *)binary, bytes);
    opencl_module_free(device, module);
    return succeeds(code, "clGetProgramInfo", log) ? DEV_OK : DEV_FAILED;
}

// Launches ----------------------------------------------------------------------------

static ClKernel *find_kernel(Device *device, Module *module, const char *name, Buf *log)
{
    for (ClKernel *k = module->kernels; k; k = k->next)
        if (strcmp(k->name, name) == 0)
            return k;
    cl_int code;
    cl_kernel kernel = clCreateKernel(module->program, name, &code);
    if (!succeeds(code, "clCreateKernel", log)) {
        buf_printf(log, "the kernel asked for is '%s'\n", name);
        return NULL;
    }
    ClKernel *made = xcalloc(1, sizeof *made + strlen(name) + 1);
    *made = (ClKernel){.next = module->kernels, .kernel = kernel};
    strcpy(made->name, name);
    clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_WORK_GROUP_SIZE,
                             sizeof made->max_group, &made->max_group, NULL);
    clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_LOCAL_MEM_SIZE,
                             sizeof made->local_bytes, &made->local_bytes, NULL);
    return module->kernels = made;
}

static bool shape_fits(const Device *device, const ClKernel *kernel, const DeviceLaunch *l,
                       Buf *log)
{
    size_t group = 1, most = (size_t)device->info.max_group;
    if (kernel->max_group)
        most = MIN(most, kernel->max_group);
    for (int i = 0; i < 3; i++) {
        if (l->local[i] == 0 || l->global[i] == 0 || l->global[i] % l->local[i] != 0) {
            buf_printf(log, "%s: local size %zu does not divide global size %zu\n",
                       l->kernel, l->local[i], l->global[i]);
            return false;
        }
        if (l->local[i] > (size_t)device->info.max_item[i] || l->local[i] > most) {
            buf_printf(log, "%s: local size %zu is larger than the device allows\n",
                       l->kernel, l->local[i]);
            return false;
        }
        group *= l->local[i];
    }
    if (group > most)
        buf_printf(log, "%s: a group of %zu work-items, at most %zu fit\n", l->kernel,
                   group, most);
    return group <= most;
}

static bool launch_fits(const Device *device, const ClKernel *kernel, const DeviceLaunch *l,
                        Buf *log)
{
    cl_ulong bytes = kernel->local_bytes;
    for (int i = 0; i < l->narg; i++)
        if (!l->arg[i].mem && !l->arg[i].data)
            bytes += l->arg[i].bytes;
    bool ok = bytes <= (cl_ulong)device->info.local_bytes;
    if (!ok)
        buf_printf(log, "%s: %llu bytes of local memory, the device has %lld\n", l->kernel,
                   (unsigned long long)bytes, (long long)device->info.local_bytes);
    return ok && shape_fits(device, kernel, l, log);
}

static DeviceStatus set_args(cl_kernel kernel, const DeviceLaunch *launch, Buf *log)
{
    cl_uint taken = 0;
    DeviceStatus status = DEV_OK;
    clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof taken, &taken, NULL);
    if (taken != (cl_uint)launch->narg) {
        buf_printf(log, "%s: the kernel takes %u arguments, but %d are passed\n",
                   launch->kernel, taken, launch->narg);
        return DEV_FAILED;
    }
    for (int i = 0; i < launch->narg && status == DEV_OK; i++) {
        const DeviceArg *arg = &launch->arg[i];
        size_t bytes = arg->mem ? sizeof(cl_mem) : arg->bytes;
        status = status_of(clSetKernelArg(kernel, (cl_uint)i, bytes,
                                          arg->mem ? &arg->mem->mem : arg->data),
                           "clSetKernelArg", log);
        if (status != DEV_OK)
            buf_printf(log, "%s: argument %d is not of the kernel's type\n", launch->kernel,
                       i + 1);
    }
    return status;
}

static cl_int refresh_views(cl_command_queue queue, const DeviceLaunch *launch)
{
    cl_int code = CL_SUCCESS;
    for (int i = 0; i < launch->narg && code == CL_SUCCESS; i++) {
        const Mem *mem = launch->arg[i].mem;
        if (mem && mem->copy && mem->bytes)
            code = clEnqueueCopyBuffer(queue, mem->source, mem->copy, 0, 0, mem->bytes, 0,
                                       NULL, NULL);
    }
    return code;
}

static DeviceStatus enqueue(Device *device, Module *module, cl_command_queue queue,
                            const DeviceLaunch *launch, cl_event *event, Buf *log)
{
    ClKernel *kernel = find_kernel(device, module, launch->kernel, log);
    if (!kernel)
        return DEV_FAILED;
    if (!launch_fits(device, kernel, launch, log))
        return DEV_OUT_OF_RESOURCES;
    DeviceStatus status = set_args(kernel->kernel, launch, log);
    if (status == DEV_OK)
        status = status_of(refresh_views(queue, launch), "clEnqueueCopyBuffer", log);
    if (status != DEV_OK)
        return status;
    return status_of(clEnqueueNDRangeKernel(queue, kernel->kernel, 3, NULL, launch->global,
                                            launch->local, 0, NULL, event),
                     "clEnqueueNDRangeKernel", log);
}

static DeviceStatus elapsed(cl_event first, cl_event last, double *time_ns, Buf *log)
{
    cl_ulong start = 0, end = 0;
    cl_int code = clGetEventProfilingInfo(first, CL_PROFILING_COMMAND_START, sizeof start,
                                          &start, NULL);
    if (code == CL_SUCCESS)
        code =
            clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    *time_ns = end > start ? (double)(end - start) : 1.0;
    return status_of(code, "clGetEventProfilingInfo", log);
}

// An error met while waiting is a fault inside a kernel, whatever its code: NVIDIA's
// driver reports a wild address as CL_OUT_OF_RESOURCES.
static DeviceStatus opencl_run(Device *device, Module *module, const DeviceLaunch *launch,
                               int n, double *time_ns, Buf *log)
{
    cl_event first = NULL, last = NULL;
    DeviceStatus status = DEV_OK;
    for (int i = 0; i < n && status == DEV_OK; i++) {
        cl_event *event = i == 0 ? &first : i == n - 1 ? &last : NULL;
        status = enqueue(device, module, device->queue, &launch[i], event, log);
    }
    cl_int code = clFinish(device->queue);
    if (status == DEV_OK && !succeeds(code, "clFinish", log))
        status = DEV_FAILED;
    if (status == DEV_OK && first)
        status = elapsed(first, last ? last : first, time_ns, log);
    if (first)
        clReleaseEvent(first);
    if (last)
        clReleaseEvent(last);
    return status;
}

// In a process of the caller's ---------------------------------------------------------

static int find_index(cl_device_id id)
{
    cl_device_id list[DEVICES_MAX];
    int n = list_devices(list);
    for (int i = 0; i < n; i++)
        if (list[i] == id)
            return i;
    return 0; // a part of a device
}

static void *opencl_queue(const Device *device)
{
    return device->queue;
}

static Device *opencl_adopt(void *queue, Buf *log)
{
    Device *device = xcalloc(1, sizeof *device);
    if (!queue)
        buf_puts(log, "the OpenCL command queue is NULL\n");
    else if (succeeds(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device->id,
                                            &device->id, NULL),
                      "clGetCommandQueueInfo", log) &&
             succeeds(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof device->context,
                                            &device->context, NULL),
                      "clGetCommandQueueInfo", log)) {
        device->queue = queue;
        clRetainContext(device->context);
        clRetainCommandQueue(device->queue);
        describe(device->id, find_index(device->id), &device->info);
        return device;
    }
    free(device);
    return NULL;
}

// The size of an image is not asked: the driver checks its accesses.
static bool opencl_lend(Device *device, void *const *handle, size_t bytes, DeviceArg *arg,
                        Buf *log)
{
    cl_mem_object_type type = 0;
    size_t size = 0;
    *arg = (DeviceArg){.data = handle, .bytes = sizeof(cl_mem)};
    if (!*handle) {
        buf_puts(log, "the cl_mem is NULL\n");
        return false;
    }
    if (!succeeds(clGetMemObjectInfo(*handle, CL_MEM_TYPE, sizeof type, &type, NULL),
                  "clGetMemObjectInfo", log) ||
        !succeeds(clGetMemObjectInfo(*handle, CL_MEM_SIZE, sizeof size, &size, NULL),
                  "clGetMemObjectInfo", log))
        return false;
    bool fits = type != CL_MEM_OBJECT_BUFFER || size >= bytes;
    if (!fits)
        buf_printf(log, "it has %zu bytes, %zu are needed\n", size, bytes);
    return fits;
}

// Launches follow each other also in a queue that has no order.
static DeviceStatus opencl_enqueue(Device *device, Module *module, void *queue,
                                   const DeviceLaunch *launch, int n, Buf *log)
{
    cl_command_queue_properties properties = 0;
    DeviceStatus status =
        status_of(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties,
                                        &properties, NULL),
                  "clGetCommandQueueInfo", log);
    bool ordered = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    for (int i = 0; i < n && status == DEV_OK; i++) {
        if (!ordered)
            status = status_of(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL),
                               "clEnqueueBarrierWithWaitList", log);
        if (status == DEV_OK)
            status = enqueue(device, module, queue, &launch[i], NULL, log);
    }
    if (status == DEV_OK && !ordered)
        status = status_of(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL),
                           "clEnqueueBarrierWithWaitList", log);
    return status;
}

// The arguments in local memory that were set are counted.
static void opencl_usage(Device *device, Module *module, const char *name,
                         KernelUsage *usage)
{
    cl_ulong bytes = 0;
    *usage = (KernelUsage){-1, -1, -1};
    AutoBuf unsaid = buf_new();
    const ClKernel *kernel = find_kernel(device, module, name, &unsaid);
    if (kernel &&
        clGetKernelWorkGroupInfo(kernel->kernel, device->id, CL_KERNEL_LOCAL_MEM_SIZE,
                                 sizeof bytes, &bytes, NULL) == CL_SUCCESS)
        usage->local_bytes = (int)bytes;
}

extern const DeviceKind device_opencl;
const DeviceKind device_opencl = {
    .name = "opencl",
    .target = "opencl",
    .advice = DRIVER_ADVICE,
    .count = opencl_count,
    .open = opencl_open,
    .close = opencl_close,
    .info = opencl_info,
    .mem_new = opencl_mem_new,
    .part_new = opencl_part_new,
    .image_new = opencl_image_new,
    .view_new = opencl_view_new,
    .mem_wrap = opencl_mem_wrap,
    .mem_free = opencl_mem_free,
    .write = opencl_write,
    .read = opencl_read,
    .map = opencl_map,
    .unmap = opencl_unmap,
    .fill = opencl_fill,
    .build = opencl_build,
    .module_free = opencl_module_free,
    .image = opencl_image,
    .run = opencl_run,
    .usage = opencl_usage,
    .queue = opencl_queue,
    .adopt = opencl_adopt,
    .lend = opencl_lend,
    .enqueue = opencl_enqueue,
};
