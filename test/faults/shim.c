// SPDX-License-Identifier: Apache-2.0
//
// Makes a call fail: FW_FAIL="WHAT:N" for the N-th call of WHAT in each process that
// FW_FAIL_IN names, "controller" (the default) or "worker". Loaded before all else by
// LD_PRELOAD, so that the program under test needs no hooks.
//
// * malloc: any allocation by malloc, calloc or realloc
// * write, sync: no space left on the device: write, pwrite, fwrite; fsync, fdatasync
// * rename, mkdir: as on a read-only file system
// * clBuildProgram, ...: a call of OpenCL: the device has failed
//
// The file FW_FAIL_HIT is made when the call fails. With N = 0 none does; how often each
// process called it is appended to the file FW_FAIL_COUNT.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static struct {
    char what[64];
    long at, calls;
    bool active;
} fail;

static bool is_worker(void)
{
    char text[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0 && memmem(text, (size_t)n, "--worker", 8);
}

static bool is_forewarp(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return strstr(path, "forewarp") != NULL;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("FW_FAIL"), *in = getenv("FW_FAIL_IN");
    const char *colon = text ? strrchr(text, ':') : NULL;
    bool worker = in && strcmp(in, "worker") == 0;
    if (!colon || !is_forewarp() || is_worker() != worker)
        return;
    snprintf(fail.what, sizeof fail.what, "%.*s", (int)(colon - text), text);
    fail.at = atol(colon + 1);
    fail.active = true;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FW_FAIL_COUNT");
    if (!fail.active || !path)
        return;
    fail.active = false;
    FILE *f = fopen(path, "a");
    if (f) {
        fprintf(f, "%s %ld\n", fail.what, fail.calls);
        fclose(f);
    }
}

// True for the call that is to fail. After a failed allocation the next ones succeed, as
// where another process has ended.
static bool fails(const char *what)
{
    const char *hit = getenv("FW_FAIL_HIT");
    if (!fail.active || strcmp(fail.what, what) != 0 ||
        __atomic_add_fetch(&fail.calls, 1, __ATOMIC_RELAXED) != fail.at)
        return false;
    if (hit)
        close(open(hit, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return true;
}

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

// Memory ----------------------------------------------------------------------------------

void *malloc(size_t size)
{
    return fails("malloc") ? (errno = ENOMEM, NULL) : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails("malloc") ? (errno = ENOMEM, NULL) : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return fails("malloc") ? (errno = ENOMEM, NULL) : __libc_realloc(p, size);
}

// Files -----------------------------------------------------------------------------------

ssize_t write(int fd, const void *bytes, size_t n)
{
    ssize_t (*real)(int, const void *, size_t) = next("write");
    return fd > 2 && fails("write") ? (errno = ENOSPC, -1) : real(fd, bytes, n);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
    ssize_t (*real)(int, const void *, size_t, off64_t) = next("pwrite64");
    return fails("write") ? (errno = ENOSPC, -1) : real(fd, bytes, n, at);
}

size_t fwrite(const void *bytes, size_t size, size_t n, FILE *f)
{
    size_t (*real)(const void *, size_t, size_t, FILE *) = next("fwrite");
    return f != stdout && f != stderr && fails("write") ? (errno = ENOSPC, 0)
                                                        : real(bytes, size, n, f);
}

int fsync(int fd)
{
    int (*real)(int) = next("fsync");
    return fails("sync") ? (errno = ENOSPC, -1) : real(fd);
}

int fdatasync(int fd)
{
    int (*real)(int) = next("fdatasync");
    return fails("sync") ? (errno = ENOSPC, -1) : real(fd);
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) = next("rename");
    return fails("rename") ? (errno = EROFS, -1) : real(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    int (*real)(const char *, mode_t) = next("mkdir");
    return fails("mkdir") ? (errno = EROFS, -1) : real(path, mode);
}

// OpenCL ----------------------------------------------------------------------------------

// Every call here takes at most ten arguments that fit registers or words of the stack, so
// one prototype passes all of them on.
typedef long Any;
typedef Any Call(Any, Any, Any, Any, Any, Any, Any, Any, Any, Any);
#define PARAMETERS Any a, Any b, Any c, Any d, Any e, Any f, Any g, Any h, Any i, Any j
#define ARGUMENTS  a, b, c, d, e, f, g, h, i, j

// Calls that return a status: CL_OUT_OF_RESOURCES.
#define STATUS(name)                                                                       \
    Any name(PARAMETERS)                                                                   \
    {                                                                                      \
        return fails(#name) ? -5 : ((Call *)next(#name))(ARGUMENTS);                       \
    }
// Calls that return an object, and a status by the argument named.
#define OBJECT(name, status)                                                               \
    Any name(PARAMETERS)                                                                   \
    {                                                                                      \
        if (!fails(#name))                                                                 \
            return ((Call *)next(#name))(ARGUMENTS);                                       \
        if (status)                                                                        \
            *(int *)status = -5;                                                           \
        return 0;                                                                          \
    }

STATUS(clGetPlatformIDs)
STATUS(clGetDeviceIDs)
STATUS(clGetDeviceInfo)
STATUS(clGetPlatformInfo)
STATUS(clBuildProgram)
STATUS(clGetProgramBuildInfo)
STATUS(clSetKernelArg)
STATUS(clEnqueueNDRangeKernel)
STATUS(clEnqueueWriteBuffer)
STATUS(clEnqueueFillBuffer)
STATUS(clWaitForEvents)
STATUS(clFinish)
STATUS(clGetEventProfilingInfo)
STATUS(clGetKernelWorkGroupInfo)
OBJECT(clCreateContext, f)
OBJECT(clCreateCommandQueue, d)
OBJECT(clCreateProgramWithSource, e)
OBJECT(clCreateBuffer, e)
OBJECT(clCreateSubBuffer, e)
OBJECT(clEnqueueMapBuffer, j)
OBJECT(clCreateKernel, c)
