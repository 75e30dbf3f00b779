// SPDX-License-Identifier: Apache-2.0
//
// device: OpenCL and CUDA devices, and the host as a device that compiles the C target with
// the system compiler. Capabilities and fingerprint, build, buffers, launch, timing.
//
// Only a worker process opens a device (measure): drivers crash, hang, and do not
// survive fork. A program that embeds the library lends its own (adopt). A device never
// sees a point of a space.

#ifndef FW_DEVICE_H
#define FW_DEVICE_H

#include "base/base.h"

typedef struct {
    char id[32]; // "opencl:0", "cuda:0", "host"
    char name[256], platform[128], driver[128];
    char fingerprint[17]; // hash of what makes timings comparable: kind, name, driver,
                          // compute units; never of values that change between runs
    char target[16];      // the emit target it takes: "opencl", "cuda", "c"
    char bus[32];         // where on PCI it is, alike for all kinds and indices that reach
                          // it ("0000:3b:00"); "": not known
    char limits[96];      // clocks and power that its owner allows: "1980 MHz, 700 W"; "":
                          // not known. They are read and never set
    bool is_cpu, has_double, has_half, has_image;
    bool has_texture; // kernels can read a buffer as an image of one dimension
    int compute_units, clock_mhz;
    int matrix;     // who adds up products on matrix units, in the target's text: 0 nobody,
                    // 1 warps, 2 four warps together too
    int warp;       // work-items that execute together; CPU: the float SIMD width
    int lanes;      // work-items that can walk along an axis together; 0: none can
    bool shuffle;   // these are a warp that exchanges registers in the target's text
    bool in_order;  // groups begin in the order of their numbers, so that one may wait for
                    // what groups of lower numbers write
    bool wide_sums; // variables of kernels add up floats as doubles, in C, for a reference
    int line_bytes; // cache line
    int64_t max_group; // work-items in a group
    int64_t max_item[3];
    int64_t local_bytes, global_bytes, alloc_bytes; // most local, global, one buffer
} DeviceInfo;

typedef struct Device Device;
typedef struct Module Module;
typedef struct Mem Mem;

// Parts of buffers begin where a buffer may begin on any device.
enum { PART_ALIGN = 4096 };

// An image is read by a kernel through the texture path; its elements are numbers.
typedef struct {
    int dims;        // 1, 2 or 3; 0: no image
    int64_t size[3]; // width, height, depth
    int channels;    // 1, 2 or 4
    int bytes;       // of a channel
    char kind;       // of a channel: 'f' floating, 'i' signed, 'u' unsigned
} ImageShape;

typedef struct {
    Mem *mem;         // a buffer or image, or NULL:
    const void *data; // a scalar argument of this many bytes; NULL: so much local memory
    size_t bytes;
    // The buffer is no argument: its contents are copied to this variable of the module
    // (`__constant__`, `__device__`) before a run, and back after it. Its name is one of
    // the text's names. CUDA; NULL: an argument.
    const char *symbol;
} DeviceArg;

typedef struct {
    const char *kernel;
    size_t global[3], local[3]; // OpenCL meaning: global in work-items, local divides it
    size_t local_bytes;         // local memory of a group that its text does not declare
    int narg;
    const DeviceArg *arg;
    bool follows; // it waits itself for the launch before it, as that one did
} DeviceLaunch;

// What is compiled. Kernels of CUDA that are not extern "C", templates among them, have
// names that only its compiler knows: names lists such expressions, `scale<float, 4>` and
// `&variable`. Other devices look at none.
typedef struct {
    const char *source, *options;
    const char *const *name;
    int nname;
} DeviceText;

// What a kernel takes of the device; -1: it is not said.
typedef struct {
    int registers, spilled; // of a work-item; spilled: bytes that are in no register
    int local_bytes;        // of a group, as the text declares them
} KernelUsage;

typedef enum {
    DEV_OK,
    DEV_BUILD_FAILED,     // the text does not compile; the log says why
    DEV_OUT_OF_RESOURCES, // group, local memory or buffer larger than the device allows
    DEV_FAILED,           // any other error of the API; the log names it
} DeviceStatus;

// One row a device kind: one file, one line in devices.def. Every function that can fail
// appends what happened (API call, error name, build log) to log.
typedef struct {
    const char *name;   // "opencl", "cuda", "host"
    const char *target; // the emit target that its devices take
    const char *advice; // what to do where there is none; NULL: it need not be said
    int (*count)(void); // devices present now; 0 where the driver is missing
    Device *(*open)(int index, Buf *log); // NULL on failure
    void (*close)(Device *device);
    const DeviceInfo *(*info)(const Device *device);
    Mem *(*mem_new)(Device *device, size_t bytes, Buf *log); // NULL on failure
    // Some bytes of a buffer as a buffer, without a copy; to be freed before it. The offset
    // is a multiple of PART_ALIGN. NULL on failure.
    Mem *(*part_new)(Device *device, Mem *of, size_t offset, size_t bytes, Buf *log);
    // An image that kernels read, filled by write; NULL where the kind has none.
    Mem *(*image_new)(Device *device, const ImageShape *shape, Buf *log);
    // The elements of a buffer as an image of one dimension, without a copy; to be freed
    // before the buffer. NULL where has_texture is false.
    Mem *(*view_new)(Device *device, Mem *of, const ImageShape *shape, Buf *log);
    // The caller's memory as a buffer, without a copy; it must outlive the buffer. NULL,
    // also as the function, where kernels cannot work in the memory of this process.
    Mem *(*mem_wrap)(Device *device, void *data, size_t bytes, Buf *log);
    void (*mem_free)(Device *device, Mem *mem);
    DeviceStatus (*write)(Device *device, Mem *mem, const void *data, size_t bytes,
                          Buf *log);
    DeviceStatus (*read)(Device *device, Mem *mem, void *data, size_t bytes, Buf *log);
    // The bytes of a buffer for this process to read until unmap: where the device shares
    // this memory, without a copy. NULL on failure.
    const void *(*map)(Device *device, Mem *mem, size_t bytes, Buf *log);
    void (*unmap)(Device *device, Mem *mem, const void *data);
    // Fills a part of a buffer with one byte.
    DeviceStatus (*fill)(Device *device, Mem *mem, unsigned char byte, size_t offset,
                         size_t bytes, Buf *log);
    DeviceStatus (*build)(Device *device, const DeviceText *text, Module **module,
                          Buf *log);
    void (*module_free)(Device *device, Module *module);
    // Appends what a text compiles to for this device, as its driver loads it, to image;
    // and to symbols what the names of the text are called in it, each with a zero byte
    // after it, unless they are called what they are. NULL: the kind has no such thing.
    DeviceStatus (*image)(Device *device, const DeviceText *text, Buf *image, Buf *symbols,
                          Buf *log);
    // For processes that compile ahead of the one that runs. A device opened so knows its
    // info and compiles, and takes no memory of the device. compile stores what a build of
    // the same text finds in any process with the same $FOREWARP_CACHE. Both
    // NULL: a build can only be done by the process that runs.
    Device *(*open_compiler)(int index, Buf *log);
    DeviceStatus (*compile)(Device *device, const DeviceText *text, Buf *log);
    // Runs the launches in order and waits. time_ns: from the start of the first to the
    // end of the last, on the device's clock.
    DeviceStatus (*run)(Device *device, Module *module, const DeviceLaunch *launch, int n,
                        double *time_ns, Buf *log);
    // What a kernel of a module uses. NULL: no device of the kind can tell.
    void (*usage)(Device *device, Module *module, const char *kernel, KernelUsage *usage);
    // What the device has taken since some time of its own, in joules; false where it does
    // not count. NULL: none of the kind does.
    bool (*energy)(Device *device, double *joules);
    // What enqueue takes as the queue of a device that was opened here.
    void *(*queue)(const Device *device);
    // For a program that runs kernels on queues and buffers of its own, in its own process:
    // the device behind a cl_command_queue; for CUDA that of the current context, for the
    // host the host, and queue is not looked at.
    Device *(*adopt)(void *queue, Buf *log);
    // How a launch is passed a buffer of the caller's: *handle is a cl_mem, a CUdeviceptr
    // or a pointer, and stays where it is until the launch. False if it is known to be of
    // fewer bytes.
    bool (*lend)(Device *device, void *const *handle, size_t bytes, DeviceArg *arg,
                 Buf *log);
    // Puts the launches, in order, into the caller's queue (a cl_command_queue, or a
    // CUstream; the host runs them at once), and does not wait.
    DeviceStatus (*enqueue)(Device *device, Module *module, void *queue,
                            const DeviceLaunch *launch, int n, Buf *log);
} DeviceKind;

const DeviceKind *device_kind(const char *name);
// The processor that this runs on: one device, which needs no number and no driver.
extern const char device_host_id[];
bool device_is_host(const char *id);
const DeviceKind *device_kind_of(const char *target); // that takes it; NULL: none
const DeviceKind *const *device_kinds(int *n);
// Splits "opencl:1" into kind and index; false if the kind is unknown or the text wrong.
bool device_parse(const char *id, const DeviceKind **kind, int *index);
// For the kinds: sets the fingerprint from what is set already.
void device_set_fingerprint(DeviceInfo *info, const char *kind);
// Sets where on PCI a device is; nothing where all are 0, which is no GPU's
// place but what a driver says that does not know.
void device_set_bus(DeviceInfo *info, unsigned domain, unsigned bus, unsigned slot);

#endif
