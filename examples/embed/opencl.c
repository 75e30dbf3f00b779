/* SPDX-License-Identifier: Apache-2.0
 *
 * forewarp inside a program that has its own OpenCL context, queue and buffers: it smooths
 * an image some times, by the stencil in smooth.fw.
 *
 *     make && ./opencl [RIGOR] [N]
 *
 * RIGOR is estimate (the default: a kernel is ready at once), measure or wisdom. What
 * measure finds is kept, so the next run of any kind begins with it.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <forewarp.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10, SECONDS = 5 };

static void stop(const char *what, char *message)
{
    fprintf(stderr, "%s failed\n%s", what, message ? message : "");
    fw_free_text(message);
    exit(1);
}

static void check(cl_int error, const char *what)
{
    if (error != CL_SUCCESS) {
        fprintf(stderr, "%s failed: %d\n", what, (int)error);
        exit(1);
    }
}

/* What the host program has anyway. */
typedef struct {
    cl_context context;
    cl_command_queue queue;
    cl_mem image[2];
} Host;

static void open_host(Host *host, const float *image, size_t bytes)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    host->context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "clCreateContext");
    host->queue = clCreateCommandQueue(host->context, device, 0, &error);
    check(error, "clCreateCommandQueue");
    for (int i = 0; i < 2; i++) {
        host->image[i] =
            clCreateBuffer(host->context, CL_MEM_READ_WRITE, bytes, NULL, &error);
        check(error, "clCreateBuffer");
    }
    check(clEnqueueWriteBuffer(host->queue, host->image[0], CL_TRUE, 0, bytes, image, 0,
                               NULL, NULL),
          "clEnqueueWriteBuffer");
}

static fw_plan *make_plan(const Host *host, const fw_problem *problem, const char *rigor)
{
    char *message = NULL;
    fw_plan_options options = {.budget_s = SECONDS, .worker = "/proc/self/exe"};
    options.rigor = strcmp(rigor, "measure") == 0  ? FW_MEASURE
                    : strcmp(rigor, "wisdom") == 0 ? FW_WISDOM_ONLY
                                                   : FW_ESTIMATE;
    fw_device *device = fw_device_adopt("opencl", host->queue, &message);
    if (!device)
        stop("fw_device_adopt", message);
    fw_plan *plan = fw_plan_make(problem, device, &options, &message);
    if (!plan)
        stop("fw_plan_make", message);
    if (message) /* a warning: the plan is of another size, say */
        fputs(message, stderr);
    fw_free_text(message);
    fw_device_free(device);
    return plan;
}

static void print_plan(const fw_plan *plan)
{
    static const char *const origin[] = {"measured now", "wisdom", "wisdom of another size",
                                         "predicted", "the plain kernel"};
    printf("plan: %s\n  %s", fw_plan_point(plan), origin[fw_plan_origin(plan)]);
    if (fw_plan_time(plan) > 0)
        printf(", %.1f us", fw_plan_time(plan) * 1e6);
    putchar('\n');
}

/* The same on the processor, as anyone would write it. */
static void smooth(const float *a, float *out, int n)
{
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) {
            int up = y > 0 ? y - 1 : 0, down = y + 1 < n ? y + 1 : y;
            int left = x > 0 ? x - 1 : 0, right = x + 1 < n ? x + 1 : x;
            out[y * n + x] = 0.2f * (a[up * n + x] + a[y * n + left] + a[y * n + x] +
                                     a[y * n + right] + a[down * n + x]);
        }
}

static double largest_difference(const float *a, const float *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

int main(int argc, char **argv)
{
    int status;
    if (fw_worker(argc, argv, &status)) /* candidates run in copies of this program */
        return status;
    const char *rigor = argc > 1 ? argv[1] : "estimate";
    int n = argc > 2 ? atoi(argv[2]) : 512;
    size_t count = (size_t)n * (size_t)n, bytes = count * sizeof(float);
    float *image = malloc(bytes), *expected = malloc(bytes), *next = malloc(bytes);
    for (size_t i = 0; i < count; i++)
        image[i] = expected[i] = (float)(i * 2654435761u % 1000) / 1000;
    Host host;
    open_host(&host, image, bytes);

    char sizes[64], *message = NULL;
    snprintf(sizes, sizeof sizes, "N=%d,M=%d", n, n);
    fw_problem *problem = fw_problem_load("smooth.fw", sizes, &message);
    if (!problem)
        stop("fw_problem_load", message);
    fw_plan *plan = make_plan(&host, problem, rigor);
    print_plan(plan);
    fw_executable *kernel = fw_load(plan, host.queue, &message);
    if (!kernel)
        stop("fw_load", message);

    for (int i = 0; i < ROUNDS; i++) {
        void *const buffer[] = {host.image[i % 2], host.image[(i + 1) % 2]};
        if (!fw_execute(kernel, host.queue, buffer, 2, &message))
            stop("fw_execute", message);
        smooth(expected, next, n);
        float *swap = expected;
        expected = next;
        next = swap;
    }
    check(clEnqueueReadBuffer(host.queue, host.image[ROUNDS % 2], CL_TRUE, 0, bytes, image,
                              0, NULL, NULL),
          "clEnqueueReadBuffer");
    double difference = largest_difference(image, expected, count);
    printf("%d rounds of %d x %d: largest difference to the processor %.2g\n", ROUNDS, n, n,
           difference);

    fw_executable_free(kernel);
    fw_plan_free(plan);
    fw_problem_free(problem);
    for (int i = 0; i < 2; i++)
        clReleaseMemObject(host.image[i]);
    clReleaseCommandQueue(host.queue);
    clReleaseContext(host.context);
    free(image);
    free(expected);
    free(next);
    return difference > 1e-5;
}
