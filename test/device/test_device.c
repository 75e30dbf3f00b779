// SPDX-License-Identifier: Apache-2.0
//
// Devices one call at a time, in this process: what they say of themselves, a launch that
// computes, and launches that do not fit refused before they reach the driver.
#include "device/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// PoCL's threads outlive the tests, and the leak checker does not survive them.
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

enum { N = 1024 };

static const char *const opencl_text =
    "kernel void scale(global float *a, float f, int n)\n"
    "{ int i = get_global_id(0); if (i < n) a[i] *= f; }\n";

static const char *const greedy_text =
    "kernel void greedy(global float *a)\n"
    "{ local float t[1 << 20]; t[get_local_id(0)] = a[0];\n"
    "  barrier(CLK_LOCAL_MEM_FENCE); a[get_global_id(0)] = t[0]; }\n";

static const char *const host_text =
    "void scale_entry(void *const *arg)\n"
    "{ float *a = arg[0], f = *(float *)arg[1]; int n = *(int *)arg[2];\n"
    "  for (int i = 0; i < n; i++) a[i] *= f; }\n";

static void test_parse(void **state)
{
    (void)state;
    const DeviceKind *kind;
    int index;
    assert_true(device_parse("opencl:1", &kind, &index));
    assert_string_equal(kind->name, "opencl");
    assert_int_equal(index, 1);
    assert_true(device_parse("host", &kind, &index));
    assert_string_equal(kind->name, "host");
    assert_int_equal(index, 0);
    const char *wrong[] = {"", "cuda9", "opencl:", "opencl:x", "opencl:1x", "opencl:99999"};
    for (int i = 0; i < COUNTOF(wrong); i++)
        assert_false(device_parse(wrong[i], &kind, &index));
}

// Whether scaling by 3 through the device works; the log is kept for what went wrong.
static DeviceStatus scale(const DeviceKind *kind, Device *device, const char *text,
                          const char *name, size_t local, float *data, Buf *log)
{
    float factor = 3;
    int n = N;
    double time_ns = 0;
    Module *module = NULL;
    const DeviceText source = {.source = text, .options = ""};
    DeviceStatus status = kind->build(device, &source, &module, log);
    if (status != DEV_OK)
        return status;
    Mem *mem = kind->mem_new(device, sizeof(float) * N, log);
    assert_non_null(mem);
    assert_int_equal(kind->write(device, mem, data, sizeof(float) * N, log), DEV_OK);
    DeviceArg arg[] = {{.mem = mem},
                       {.data = &factor, .bytes = sizeof factor},
                       {.data = &n, .bytes = sizeof n}};
    bool greedy = strcmp(name, "greedy") == 0;
    DeviceLaunch launch = {
        name, {local > N ? local : N, 1, 1}, {local, 1, 1}, 0, greedy ? 1 : 3, arg};
    status = kind->run(device, module, &launch, 1, &time_ns, log);
    if (status == DEV_OK)
        assert_true(time_ns > 0);
    assert_int_equal(kind->read(device, mem, data, sizeof(float) * N, log), DEV_OK);
    kind->mem_free(device, mem);
    kind->module_free(device, module);
    return status;
}

static void check_info(const DeviceInfo *info)
{
    assert_true(strlen(info->name) > 0 && strlen(info->driver) > 0);
    assert_int_equal(strlen(info->fingerprint), 16);
    assert_true(info->compute_units >= 1 && info->warp >= 1 && info->line_bytes >= 16);
    assert_true(info->max_group >= 1 && info->alloc_bytes > 1 << 20);
}

static void check_scales(const char *id, const char *text)
{
    const DeviceKind *kind;
    int index;
    float data[N];
    Buf log = buf_new();
    assert_true(device_parse(id, &kind, &index));
    if (kind->count() == 0) {
        buf_release(&log);
        skip();
    }
    Device *device = kind->open(index, &log);
    assert_non_null(device);
    check_info(kind->info(device));
    for (int i = 0; i < N; i++)
        data[i] = (float)i;
    assert_int_equal(scale(kind, device, text, "scale", 64, data, &log), DEV_OK);
    for (int i = 0; i < N; i++)
        assert_true(data[i] == 3.0f * (float)i);
    assert_int_equal(scale(kind, device, "no C at all", "scale", 64, data, &log),
                     DEV_BUILD_FAILED);
    assert_non_null(strstr(log.text, "error"));
    assert_null(kind->open(63, &log));
    kind->close(device);
    buf_release(&log);
}

static void test_host(void **state)
{
    (void)state;
    check_scales("host", host_text);
}

// Two devices of one process at once have files of their own: each module is its own text.
static void test_host_twice(void **state)
{
    (void)state;
    const DeviceKind *kind = device_kind("host");
    const char *const text[] = {
        "void put_entry(void *const *arg);\n"
        "void put_entry(void *const *arg) { *(float *)arg[0] = 1; }\n",
        "void put_entry(void *const *arg);\n"
        "void put_entry(void *const *arg) { *(float *)arg[0] = 2; }\n"};
    Device *device[2];
    Module *module[2];
    Buf log;
    if (kind->count() == 0)
        skip();
    log = buf_new();
    for (int i = 0; i < 2; i++) {
        device[i] = kind->open(0, &log);
        assert_non_null(device[i]);
        const DeviceText source = {.source = text[i], .options = ""};
        assert_int_equal(kind->build(device[i], &source, &module[i], &log), DEV_OK);
    }
    for (int i = 0; i < 2; i++) {
        float got = 0;
        double time_ns;
        Mem *mem = kind->mem_new(device[i], sizeof got, &log);
        DeviceArg arg = {.mem = mem};
        DeviceLaunch launch = {"put", {1, 1, 1}, {1, 1, 1}, 0, 1, &arg};
        assert_int_equal(kind->run(device[i], module[i], &launch, 1, &time_ns, &log),
                         DEV_OK);
        kind->read(device[i], mem, &got, sizeof got, &log);
        assert_true(got == (float)(1 + i));
        kind->mem_free(device[i], mem);
        kind->module_free(device[i], module[i]);
        kind->close(device[i]);
    }
    buf_release(&log);
}

static void test_opencl(void **state)
{
    (void)state;
    check_scales("opencl:0", opencl_text);
}

static void test_opencl_refuses(void **state)
{
    (void)state;
    const DeviceKind *kind = device_kind("opencl");
    float data[N] = {0};
    Buf log;
    if (kind->count() == 0)
        skip();
    log = buf_new();
    Device *device = kind->open(0, &log);
    assert_non_null(device);
    const DeviceInfo *info = kind->info(device);
    size_t large = 2 * (size_t)info->max_group;
    assert_int_equal(scale(kind, device, opencl_text, "scale", large, data, &log),
                     DEV_OUT_OF_RESOURCES);
    assert_int_equal(scale(kind, device, opencl_text, "scale", 3, data, &log),
                     DEV_OUT_OF_RESOURCES);
    if (info->local_bytes < 4 << 20)
        assert_int_equal(scale(kind, device, greedy_text, "greedy", 64, data, &log),
                         DEV_OUT_OF_RESOURCES);
    assert_int_equal(scale(kind, device, opencl_text, "absent", 64, data, &log),
                     DEV_FAILED);
    assert_null(kind->mem_new(device, (size_t)info->alloc_bytes + 1, &log));
    kind->close(device);
    buf_release(&log);
}

static void test_missing_compiler(void **state)
{
    (void)state;
    const DeviceKind *kind = device_kind("host");
    const char *had = getenv("CC");
    char *kept = had ? xstrdup(had) : NULL;
    Buf log = buf_new();
    setenv("CC", "no-such-compiler", 1);
    assert_int_equal(kind->count(), 0);
    assert_null(kind->open(0, &log));
    assert_non_null(strstr(log.text, "no-such-compiler"));
    if (kept)
        setenv("CC", kept, 1);
    else
        unsetenv("CC");
    free(kept);
    buf_release(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),          cmocka_unit_test(test_host),
        cmocka_unit_test(test_host_twice),     cmocka_unit_test(test_opencl),
        cmocka_unit_test(test_opencl_refuses), cmocka_unit_test(test_missing_compiler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
