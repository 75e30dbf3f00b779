/* SPDX-License-Identifier: Apache-2.0
 *
 * A tuned kernel ahead of time: smooth.c and smooth.h were written by
 *
 *     forewarp emit smooth.fw -s N=512,M=512 --best --host -o smooth.c
 *
 * and this program, which they are compiled with, needs OpenCL alone.
 */
#include "smooth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 512 };

static void check(cl_int error, const char *what)
{
    if (error != CL_SUCCESS) {
        fprintf(stderr, "%s failed: %d\n", what, (int)error);
        exit(1);
    }
}

/* One step on the processor. */
static float smoothed(const float *a, int y, int x)
{
    int up = y > 0 ? y - 1 : 0, down = y + 1 < N ? y + 1 : y;
    int left = x > 0 ? x - 1 : 0, right = x + 1 < N ? x + 1 : x;
    return 0.2f * (a[up * N + x] + a[y * N + left] + a[y * N + x] + a[y * N + right] +
                   a[down * N + x]);
}

int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    char log[4096];
    float *image = malloc(SMOOTH_A_BYTES), *out = malloc(SMOOTH_OUT_BYTES);
    double difference = 0;
    for (int i = 0; i < N * N; i++)
        image[i] = (float)(i % 1009) / 1000;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "clCreateCommandQueue");
    cl_mem a = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                              SMOOTH_A_BYTES, image, &error);
    check(error, "clCreateBuffer");
    cl_mem b = clCreateBuffer(context, CL_MEM_WRITE_ONLY, SMOOTH_OUT_BYTES, NULL, &error);
    check(error, "clCreateBuffer");

    smooth *kernel = smooth_open(context, device, log, sizeof log, &error);
    if (!kernel) {
        fprintf(stderr, "smooth_open failed: %d\n%s\n", (int)error, log);
        return 1;
    }
    check(smooth_run(kernel, queue, a, b), "smooth_run");
    check(clEnqueueReadBuffer(queue, b, CL_TRUE, 0, SMOOTH_OUT_BYTES, out, 0, NULL, NULL),
          "clEnqueueReadBuffer");
    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++)
            difference =
                fmax(difference, fabs((double)(out[y * N + x] - smoothed(image, y, x))));
    printf("%d x %d: largest difference to the processor %.2g\n", N, N, difference);

    smooth_close(kernel);
    clReleaseMemObject(a);
    clReleaseMemObject(b);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    free(image);
    free(out);
    return difference > 1e-5;
}
