// SPDX-License-Identifier: Apache-2.0
//
// Judging on the device: what its kernels say of arrays is what check.c says. In this
// process, on any OpenCL device, where a worker uses them on GPUs only.
#include "measure/parts.h"

#include <math.h>
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

// What the device says of arrays is what check.c says: the first `n` floats, doubles or
// ints of which one may differ.
static void compare_both(const DeviceKind *kind, Device *device, GpuCheck *gpu,
                         Scalar scalar, const void *got, const void *want, int n)
{
    Buf log;
    buf_init(&log);
    Buffers held = {.kind = kind, .device = device, .tolerance = 1e-4};
    Buffer b = {0}, *used[] = {&b};
    assert_true(
        buffer_scratch(&held, 0, (size_t)n * scalar_device_bytes(scalar), &b, &log));
    b.scalar = scalar;
    b.count = n;
    b.scale = scalar == S_INT ? 1 : check_scale(scalar, want, n);
    b.expect = want;
    assert_true(gpucheck_takes(gpu, &b));
    b.expect_mem = kind->mem_new(device, b.bytes, &log);
    assert_int_equal(kind->write(device, b.expect_mem, want, b.bytes, &log), DEV_OK);
    assert_int_equal(buffers_reset(&held, used, 1, POISON_ZEROS, &log), DEV_OK);
    assert_int_equal(kind->write(device, b.mem, got, b.bytes, &log), DEV_OK);
    bool right = false;
    double error = 0;
    assert_true(gpucheck_judge(gpu, used, 1, POISON_ZEROS, 1e-4, &right, &error));
    Check check = check_compare(scalar, got, want, n, 1e-4, b.scale);
    assert_int_equal(right, check.first_wrong < 0);
    assert_true(error == (double)(float)check.max_error);
    // The zones, to the byte.
    assert_true(gpucheck_judge(gpu, used, 1, POISON_ONES, 1e-4, &right, &error) && !right);
    const size_t at[] = {0, GUARD - 1, GUARD + b.bytes, 2 * (size_t)GUARD + b.bytes - 1};
    for (int i = 0; i < COUNTOF(at); i++) {
        kind->fill(device, b.whole, 1, at[i], 1, &log);
        assert_true(gpucheck_judge(gpu, used, 1, POISON_ZEROS, 1e-4, &right, &error));
        assert_false(right);
        kind->fill(device, b.whole, 0, at[i], 1, &log);
    }
    b.expect = NULL; // not mapped
    buffer_free(&held, &b);
    buf_release(&log);
}

static void test_gpucheck(void **state)
{
    (void)state;
    const DeviceKind *kind = device_kind("opencl");
    Buf log;
    if (kind->count() == 0)
        skip();
    buf_init(&log);
    Device *device = kind->open(0, &log);
    GpuCheck *gpu = device ? gpucheck_open(kind, device) : NULL;
    assert_non_null(gpu);
    enum { COUNT = 1000, SPECIAL = 12 };
    const double special[SPECIAL] = {0,         -0.0,  1,     -1,   NAN, INFINITY,
                                     -INFINITY, 1e-40, 1e-30, 1e10, 3,   1.0001};
    float want[COUNT], got[COUNT];
    double wide_want[COUNT], wide_got[COUNT];
    for (int round = 0; round < SPECIAL * SPECIAL; round++) {
        for (int i = 0; i < COUNT; i++) {
            want[i] = got[i] = 0.5f + (float)i;
            wide_want[i] = wide_got[i] = want[i];
        }
        int at = round * 7 % COUNT;
        wide_want[at] = special[round / SPECIAL];
        want[at] = (float)wide_want[at];
        wide_got[at] = special[round % SPECIAL];
        got[at] = (float)wide_got[at];
        got[5] *= 1.00001f; // an error that is allowed
        compare_both(kind, device, gpu, S_FLOAT, got, want, COUNT);
        if (round % SPECIAL < 3)
            compare_both(kind, device, gpu, S_DOUBLE, wide_got, wide_want, COUNT);
    }
    int32_t whole_want[] = {1, INT32_MAX, 7}, whole_got[] = {1, INT32_MAX - 1, 7};
    compare_both(kind, device, gpu, S_INT, whole_got, whole_want, 3);
    compare_both(kind, device, gpu, S_INT, whole_want, whole_want, 3);
    gpucheck_close(gpu);
    kind->close(device);
    buf_release(&log);
}

// Any one bit of an input, and of what follows its last whole word, changes its sum; words
// that change places do too.
static void test_gpucheck_inputs(void **state)
{
    (void)state;
    const DeviceKind *kind = device_kind("opencl");
    Buf log;
    if (kind->count() == 0)
        skip();
    buf_init(&log);
    Device *device = kind->open(0, &log);
    GpuCheck *gpu = device ? gpucheck_open(kind, device) : NULL;
    assert_non_null(gpu);
    enum { BYTES = 4099 };
    unsigned char data[BYTES], word[4];
    uint32_t sum, other;
    Buffers held = {.kind = kind, .device = device};
    Buffer b = {0};
    assert_true(buffer_scratch(&held, 0, BYTES, &b, &log));
    for (int i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(i / 4);
    kind->write(device, b.mem, data, BYTES, &log);
    assert_true(gpucheck_sum(gpu, &b, &sum));
    for (int bit = 0; bit < 8 * BYTES; bit += 97) {
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        kind->write(device, b.mem, data, BYTES, &log);
        assert_true(gpucheck_sum(gpu, &b, &other));
        assert_true(other != sum);
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    memcpy(word, data, 4);
    memcpy(data, data + 40, 4);
    memcpy(data + 40, word, 4);
    kind->write(device, b.mem, data, BYTES, &log);
    assert_true(gpucheck_sum(gpu, &b, &other));
    assert_true(other != sum);
    buffer_free(&held, &b);
    gpucheck_close(gpu);
    kind->close(device);
    buf_release(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpucheck),
        cmocka_unit_test(test_gpucheck_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
