/* SPDX-License-Identifier: Apache-2.0
 *
 * forewarp inside a program of CUDA's driver interface, which is loaded at run time: it is
 * compiled without the toolkit, and starts on machines without a GPU. It smooths an image
 * once, by the stencil in smooth.fw.
 *
 *     make driver && ./driver [N]
 */
#include <forewarp.h>

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What this program needs of libcuda, as cuda.h declares it. */
typedef uint64_t DevicePointer;
#define DRIVER(F)                                                                          \
    F(cuInit, (unsigned))                                                                  \
    F(cuDeviceGet, (int *, int))                                                           \
    F(cuDevicePrimaryCtxRetain, (void **, int))                                            \
    F(cuCtxSetCurrent, (void *))                                                           \
    F(cuMemAlloc_v2, (DevicePointer *, size_t))                                            \
    F(cuMemFree_v2, (DevicePointer))                                                       \
    F(cuMemcpyHtoD_v2, (DevicePointer, const void *, size_t))                              \
    F(cuMemcpyDtoH_v2, (void *, DevicePointer, size_t))                                    \
    F(cuCtxSynchronize, (void))

#define DECLARE(name, arguments) static int(*name) arguments;
DRIVER(DECLARE)

static void stop(const char *what, char *message)
{
    fprintf(stderr, "%s failed\n%s", what, message ? message : "");
    fw_free_text(message);
    exit(1);
}

static void check(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "%s failed: %d\n", what, error);
        exit(1);
    }
}

static void find(void *library, const char *name, void *function)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "no CUDA driver: %s\n", dlerror());
        exit(1);
    }
    memcpy(function, &found, sizeof found);
}

/* A current context, as a program of the driver interface has anyway. */
static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    int device;
#define FIND(name, arguments) find(library, #name, &name);
    DRIVER(FIND)
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static fw_plan *make_plan(const fw_problem *problem)
{
    char *message = NULL;
    fw_plan_options options = {.rigor = FW_ESTIMATE, .worker = "/proc/self/exe"};
    fw_device *device = fw_device_adopt("cuda", NULL, &message);
    if (!device)
        stop("fw_device_adopt", message);
    fw_plan *plan = fw_plan_make(problem, device, &options, &message);
    if (!plan)
        stop("fw_plan_make", message);
    fw_free_text(message); /* a warning, if any */
    printf("%s: %s\n", fw_device_name(device), fw_plan_point(plan));
    fw_device_free(device);
    return plan;
}

static float smoothed(const float *a, int n, int y, int x)
{
    int up = y > 0 ? y - 1 : 0, down = y + 1 < n ? y + 1 : y;
    int left = x > 0 ? x - 1 : 0, right = x + 1 < n ? x + 1 : x;
    return 0.2f * (a[up * n + x] + a[y * n + left] + a[y * n + x] + a[y * n + right] +
                   a[down * n + x]);
}

int main(int argc, char **argv)
{
    int status;
    if (fw_worker(argc, argv, &status))
        return status;
    int n = argc > 1 ? atoi(argv[1]) : 4096;
    size_t count = (size_t)n * (size_t)n, bytes = count * sizeof(float);
    float *image = malloc(bytes), *out = malloc(bytes);
    DevicePointer from, to;
    open_driver();
    for (size_t i = 0; i < count; i++)
        image[i] = (float)(i * 2654435761u % 1000) / 1000;
    check(cuMemAlloc_v2(&from, bytes), "cuMemAlloc");
    check(cuMemAlloc_v2(&to, bytes), "cuMemAlloc");
    check(cuMemcpyHtoD_v2(from, image, bytes), "cuMemcpyHtoD");

    char sizes[64], *message = NULL;
    snprintf(sizes, sizeof sizes, "N=%d,M=%d", n, n);
    fw_problem *problem = fw_problem_load("smooth.fw", sizes, &message);
    if (!problem)
        stop("fw_problem_load", message);
    fw_plan *plan = make_plan(problem);
    fw_executable *kernel = fw_load(plan, NULL, &message);
    if (!kernel)
        stop("fw_load", message);
    void *const buffer[] = {(void *)(uintptr_t)from, (void *)(uintptr_t)to};
    if (!fw_execute(kernel, NULL, buffer, 2, &message)) /* NULL: the default stream */
        stop("fw_execute", message);
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    check(cuMemcpyDtoH_v2(out, to, bytes), "cuMemcpyDtoH");

    double difference = 0;
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++)
            difference = fmax(difference, fabs((double)out[(size_t)y * n + x] -
                                               smoothed(image, n, y, x)));
    printf("%d x %d: largest difference to the processor %.2g\n", n, n, difference);

    fw_executable_free(kernel);
    fw_plan_free(plan);
    fw_problem_free(problem);
    cuMemFree_v2(from);
    cuMemFree_v2(to);
    free(image);
    free(out);
    return difference > 1e-5;
}
