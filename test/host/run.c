/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a program that `emit --host` wrote, on buffers with known contents, and writes its
 * outputs to standard output. Compiled with
 *   HEADER  "stem.h"
 *   BYTES   sizes of the buffers, "A_BYTES, OUT_BYTES"
 *   OUTPUT  number of the first output
 *   NAME    of the functions; ARGS the buffers, "b[0], b[1]"
 *   OPENCL  1: by OpenCL; 2: by CUDA; 0: as C
 */
#include HEADER

#include <stdio.h>
#include <stdlib.h>

#define JOIN(a, b) a##b
#define CALL(a, b) JOIN(a, b)
#define COUNT      ((int)(sizeof bytes / sizeof bytes[0]))

static const size_t bytes[] = {BYTES};

static float *contents(int i)
{
    size_t n = bytes[i] / sizeof(float), k;
    float *x = malloc(bytes[i]);
    for (k = 0; x && k < n; k++)
        x[k] = (float)((k * 7 + (size_t)i * 13) % 61 + 1) / 8;
    return x;
}

static int write_out(const void *x, size_t n)
{
    return fwrite(x, 1, n, stdout) == n;
}

#if OPENCL == 1
int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_mem b[sizeof bytes / sizeof bytes[0]], small;
    char log[4096];
    cl_int error;
    int i,
        ok = clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS &&
             clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS;
    if (!ok)
        return 77;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    NAME *kernel = CALL(NAME, _open)(context, device, log, sizeof log, &error);
    if (!kernel) {
        fprintf(stderr, "open: %d\n%s\n", (int)error, log);
        return 1;
    }
    for (i = 0; i < COUNT; i++) {
        float *x = contents(i);
        b[i] = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, bytes[i], x, &error);
        free(x);
    }
    for (i = 0; i < 2 && ok; i++) { /* a second time, to the same end */
        error = CALL(NAME, _run)(kernel, queue, ARGS);
        ok = error == CL_SUCCESS;
    }
    for (i = OUTPUT; i < COUNT && ok; i++) {
        float *x = malloc(bytes[i]);
        ok = clEnqueueReadBuffer(queue, b[i], CL_TRUE, 0, bytes[i], x, 0, NULL, NULL) ==
                 CL_SUCCESS &&
             write_out(x, bytes[i]);
        free(x);
    }
    small = clCreateBuffer(context, CL_MEM_READ_WRITE, 1, NULL, &error);
    b[COUNT - 1] = small;
    ok = ok && CALL(NAME, _run)(kernel, queue, ARGS) == CL_INVALID_BUFFER_SIZE;
    clFinish(queue);
    CALL(NAME, _close)(kernel);
    return !ok;
}
#elif OPENCL == 2
int main(void)
{
    CUdeviceptr b[sizeof bytes / sizeof bytes[0]], small;
    CUdevice device;
    CUcontext context;
    CUresult error = CUDA_SUCCESS;
    char log[4096];
    int i, ok = cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
                cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
                cuCtxSetCurrent(context) == CUDA_SUCCESS;
    if (!ok)
        return 77;
    NAME *kernel = CALL(NAME, _open)(log, sizeof log, &error);
    if (!kernel) {
        fprintf(stderr, "open: %d\n%s\n", (int)error, log);
        return 1;
    }
    for (i = 0; i < COUNT && ok; i++) {
        float *x = contents(i);
        ok = cuMemAlloc(&b[i], bytes[i]) == CUDA_SUCCESS &&
             cuMemcpyHtoD(b[i], x, bytes[i]) == CUDA_SUCCESS;
        free(x);
    }
    for (i = 0; i < 2 && ok; i++) {
        error = CALL(NAME, _run)(kernel, NULL, ARGS);
        ok = error == CUDA_SUCCESS;
    }
    ok = ok && cuCtxSynchronize() == CUDA_SUCCESS;
    for (i = OUTPUT; i < COUNT && ok; i++) {
        float *x = malloc(bytes[i]);
        ok = cuMemcpyDtoH(x, b[i], bytes[i]) == CUDA_SUCCESS && write_out(x, bytes[i]);
        free(x);
    }
    if (!ok)
        fprintf(stderr, "run: %d\n", (int)error);
    small = b[0];
    b[0] += 4; /* a vector must not be read there */
    ok = ok && CALL(NAME, _run)(kernel, NULL, ARGS) == CUDA_ERROR_MISALIGNED_ADDRESS;
    b[0] = small;
    ok = ok && cuMemAlloc(&small, 1) == CUDA_SUCCESS;
    b[COUNT - 1] = small;
    ok = ok && CALL(NAME, _run)(kernel, NULL, ARGS) == CUDA_ERROR_INVALID_VALUE;
    CALL(NAME, _close)(kernel);
    return !ok;
}
#else
int main(void)
{
    void *b[sizeof bytes / sizeof bytes[0]];
    int i, ok = 1;
    for (i = 0; i < COUNT; i++)
        b[i] = contents(i);
    ok = CALL(NAME, _run)(ARGS) && CALL(NAME, _run)(ARGS);
    for (i = OUTPUT; i < COUNT && ok; i++)
        ok = write_out(b[i], bytes[i]);
    b[0] = NULL;
    return !ok || CALL(NAME, _run)(ARGS);
}
#endif
