// SPDX-License-Identifier: Apache-2.0
//
// What tests of fusion share: where they run kernels, what is said when a script is wrong,
// and a main whose tests are one function on one device after another: the host, OpenCL,
// and a GPU (the CUDA device, or one that FW_DEVICE names). With FW_DEVICE set, on that
// alone.

#ifndef FW_TEST_FUSE_H
#define FW_TEST_FUSE_H

#include "fuse/execute.h"

#include <stdlib.h>
#include <string.h>

static inline Workplace place_here(Arena *arena)
{
    const char *home = getenv("HOME");
    return (Workplace){.folder = arena_printf(arena, "%s/fuse-test", home ? home : "/tmp")};
}

static inline void explain(const Diags *diags)
{
    Buf text;
    buf_init(&text);
    diags_print(&text, diags);
    print_error("%s", text.text);
    buf_release(&text);
}

typedef struct {
    void (*run)(const char *device);
    const char *device; // NULL: there is none
} OnDevice;

static inline void on_device(void **state)
{
    const OnDevice *on = *state;
    const char *only = getenv("FW_DEVICE");
    if (!on->device || (only && strcmp(only, on->device) != 0))
        skip();
    on->run(on->device);
}

static inline const char *gpu_name(void)
{
    const char *only = getenv("FW_DEVICE");
    if (only && strcmp(only, "host") != 0 && strcmp(only, "opencl:0") != 0)
        return only;
    return device_kind("cuda")->count() > 0 ? "cuda:0" : NULL;
}

// The whole of main.
static inline int main_on_devices(int argc, char **argv, void (*run)(const char *device))
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    OnDevice host = {run, "host"}, opencl = {run, "opencl:0"}, gpu = {run, gpu_name()};
    const struct CMUnitTest tests[] = {
        {"host", on_device, NULL, NULL, &host},
        {"opencl", on_device, NULL, NULL, &opencl},
        {"gpu", on_device, NULL, NULL, &gpu},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
