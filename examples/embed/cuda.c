/* SPDX-License-Identifier: Apache-2.0
 *
 * forewarp inside a program of CUDA's run-time interface: it has a stream and device memory
 * of its own, and smooths an image some times, by the stencil in smooth.fw.
 *
 *     make cuda && ./cuda [RIGOR] [N]
 *
 * RIGOR as in opencl.c. A program of the driver interface looks the same: the context must
 * be current, a CUstream is passed as it is, a CUdeviceptr is converted to void *.
 */
#include <cuda_runtime_api.h>
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

static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s failed: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

static fw_plan *make_plan(const fw_problem *problem, const char *rigor)
{
    char *message = NULL;
    fw_plan_options options = {.budget_s = SECONDS, .worker = "/proc/self/exe"};
    options.rigor = strcmp(rigor, "measure") == 0  ? FW_MEASURE
                    : strcmp(rigor, "wisdom") == 0 ? FW_WISDOM_ONLY
                                                   : FW_ESTIMATE;
    fw_device *device = fw_device_adopt("cuda", NULL, &message);
    if (!device)
        stop("fw_device_adopt", message);
    printf("device: %s\n", fw_device_name(device));
    fw_plan *plan = fw_plan_make(problem, device, &options, &message);
    if (!plan)
        stop("fw_plan_make", message);
    if (message)
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

int main(int argc, char **argv)
{
    int status;
    if (fw_worker(argc, argv, &status))
        return status;
    const char *rigor = argc > 1 ? argv[1] : "estimate";
    int n = argc > 2 ? atoi(argv[2]) : 4096;
    size_t count = (size_t)n * (size_t)n, bytes = count * sizeof(float);
    float *image = malloc(bytes), *expected = malloc(bytes), *next = malloc(bytes);
    void *device[2];
    cudaStream_t stream;
    cudaEvent_t start, end;
    for (size_t i = 0; i < count; i++)
        image[i] = expected[i] = (float)(i * 2654435761u % 1000) / 1000;
    check(cudaStreamCreate(&stream), "cudaStreamCreate");
    check(cudaEventCreate(&start), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
    for (int i = 0; i < 2; i++)
        check(cudaMalloc(&device[i], bytes), "cudaMalloc");
    check(cudaMemcpy(device[0], image, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");

    char sizes[64], *message = NULL;
    snprintf(sizes, sizeof sizes, "N=%d,M=%d", n, n);
    fw_problem *problem = fw_problem_load("smooth.fw", sizes, &message);
    if (!problem)
        stop("fw_problem_load", message);
    fw_plan *plan = make_plan(problem, rigor);
    print_plan(plan);
    fw_executable *kernel = fw_load(plan, NULL, &message);
    if (!kernel)
        stop("fw_load", message);

    check(cudaEventRecord(start, stream), "cudaEventRecord");
    for (int i = 0; i < ROUNDS; i++) {
        void *const buffer[] = {device[i % 2], device[(i + 1) % 2]};
        if (!fw_execute(kernel, stream, buffer, 2, &message))
            stop("fw_execute", message);
    }
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    float ms = 0;
    double difference = 0;
    check(cudaEventElapsedTime(&ms, start, end), "cudaEventElapsedTime");
    check(cudaMemcpy(image, device[ROUNDS % 2], bytes, cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    for (int i = 0; i < ROUNDS; i++) {
        smooth(expected, next, n);
        float *swap = expected;
        expected = next;
        next = swap;
    }
    for (size_t i = 0; i < count; i++)
        difference = fmax(difference, fabs((double)image[i] - (double)expected[i]));
    printf(
        "%d rounds of %d x %d in %.1f us each: largest difference to the processor %.2g\n",
        ROUNDS, n, n, (double)ms * 1e3 / ROUNDS, difference);

    fw_executable_free(kernel);
    fw_plan_free(plan);
    fw_problem_free(problem);
    for (int i = 0; i < 2; i++)
        cudaFree(device[i]);
    cudaStreamDestroy(stream);
    free(image);
    free(expected);
    free(next);
    return difference > 1e-5;
}
