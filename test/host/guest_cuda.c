/* SPDX-License-Identifier: Apache-2.0
 *
 * The library in a program of CUDA's, on the libraries of test/measure/fake_cuda.c, where
 * device memory is the host's: plans, loads, runs, and is refused a buffer too small.
 */
#define _POSIX_C_SOURCE 200112L
#include <forewarp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000 };

static const char text[] = "size N\ndef add3(x: [N]float): [N]float = x |> iterate(3, \\s "
                           "-> s |> map(\\v -> v + 1))\n";

/* As cuMemAlloc gives it: from where vectors may be read. */
static void *device_memory(size_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, 256, bytes) != 0)
        exit(1);
    return memset(memory, 0, bytes);
}

static int fails(const char *what, char *message)
{
    fprintf(stderr, "%s: %s\n", what, message ? message : "");
    return 1;
}

int main(void)
{
    char *message = NULL;
    fw_plan_options options = {.rigor = FW_ESTIMATE, .store = "/no/store"};
    fw_device *device = fw_device_adopt("cuda", NULL, &message);
    if (!device || strcmp(fw_device_id(device), "cuda:0") != 0)
        return fails("fw_device_adopt", message);
    fw_problem *problem = fw_problem_parse("add3.fw", text, "N=1000", &message);
    if (!problem)
        return fails("fw_problem_parse", message);
    fw_plan *plan = fw_plan_make(problem, device, &options, &message);
    if (!plan)
        return fails("fw_plan_make", message);
    if (fw_plan_origin(plan) != FW_PLAIN)
        return fails("fw_plan_origin", NULL);
    fw_executable *kernel = fw_load(plan, NULL, &message);
    if (!kernel)
        return fails("fw_load", message);
    float *x = device_memory(N * sizeof *x), *out = device_memory(N * sizeof *out);
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    void *buffer[] = {x, out};
    for (int round = 0; round < 2; round++)
        if (!fw_execute(kernel, NULL, buffer, 2, &message))
            return fails("fw_execute", message);
    for (int i = 0; i < N; i++)
        if (out[i] != x[i] + 3)
            return fails("a wrong result", NULL);
    void *small = device_memory(16);
    buffer[1] = small;
    if (fw_execute(kernel, NULL, buffer, 2, &message) ||
        !strstr(message, "4000 are needed"))
        return fails("a small buffer is taken", message);
    fw_free_text(message);
    fw_executable_free(kernel);
    fw_plan_free(plan);
    fw_problem_free(problem);
    fw_device_free(device);
    free(small);
    free(x);
    free(out);
    return 0;
}
