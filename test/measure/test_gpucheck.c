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
                         Scalar scalar, const void *got, const void *want, int n,
                         const float *bound)
{
    Buf log = buf_new();
    DeviceBuffers held = {.kind = kind, .device = device, .tolerance = 1e-4};
    DeviceBuffer b = {0}, *used[] = {&b};
    assert_true(
        buffer_scratch(&held, 0, (size_t)n * scalar_device_bytes(scalar), &b, &log));
    b.scalar = scalar;
    b.count = n;
    b.scale = scalar_info[scalar].floating ? check_scale(scalar, want, n) : 1;
    b.expect = want;
    if (bound) {
        b.bound_mem = kind->mem_new(device, (size_t)n * sizeof *bound, &log);
        kind->write(device, b.bound_mem, bound, (size_t)n * sizeof *bound, &log);
    }
    assert_true(gpucheck_takes(gpu, &b));
    b.expect_mem = kind->mem_new(device, b.bytes, &log);
    assert_int_equal(kind->write(device, b.expect_mem, want, b.bytes, &log), DEV_OK);
    assert_int_equal(buffers_reset(&held, used, 1, POISON_AGAIN, &log), DEV_OK);
    assert_int_equal(kind->write(device, b.mem, got, b.bytes, &log), DEV_OK);
    bool right = false;
    double error = 0;
    assert_true(gpucheck_judge(gpu, used, 1, POISON_AGAIN, 1e-4, &right, &error));
    Check check = check_compare(scalar, got, want, n, (Allowed){bound, 1e-4, b.scale});
    assert_int_equal(right, check.first_wrong < 0);
    assert_true(error == (double)(float)check.max_error);
    // The zones, to the byte.
    assert_true(gpucheck_judge(gpu, used, 1, POISON_FIRST, 1e-4, &right, &error) && !right);
    const size_t at[] = {0, GUARD - 1, GUARD + b.bytes, 2 * (size_t)GUARD + b.bytes - 1};
    for (int i = 0; i < COUNTOF(at); i++) {
        kind->fill(device, b.whole, 1, at[i], 1, &log);
        assert_true(gpucheck_judge(gpu, used, 1, POISON_AGAIN, 1e-4, &right, &error));
        assert_false(right);
        kind->fill(device, b.whole, buffer_poison(&b, POISON_AGAIN), at[i], 1, &log);
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
    log = buf_new();
    Device *device = kind->open(0, &log);
    GpuCheck *gpu = device ? gpucheck_open(kind, device) : NULL;
    assert_non_null(gpu);
    enum { COUNT = 1000, SPECIAL = 12 };
    const double special[SPECIAL] = {0,         -0.0,  1,     -1,   NAN, INFINITY,
                                     -INFINITY, 1e-40, 1e-30, 1e10, 3,   1.0001};
    float want[COUNT], got[COUNT], bound[COUNT];
    double wide_want[COUNT], wide_got[COUNT];
    for (int i = 0; i < COUNT; i++)
        bound[i] = i % 3 == 0 ? INFINITY : i % 3 == 1 ? 0 : (float)i * 1e-5f;
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
        compare_both(kind, device, gpu, S_FLOAT, got, want, COUNT, NULL);
        compare_both(kind, device, gpu, S_FLOAT, got, want, COUNT, bound);
        if (round % SPECIAL < 3)
            compare_both(kind, device, gpu, S_DOUBLE, wide_got, wide_want, COUNT, NULL);
    }
    int32_t whole_want[] = {1, INT32_MAX, 7}, whole_got[] = {1, INT32_MAX - 1, 7};
    compare_both(kind, device, gpu, S_INT, whole_got, whole_want, 3, NULL);
    compare_both(kind, device, gpu, S_INT, whole_want, whole_want, 3, NULL);
    const float undecided[] = {0, INFINITY, 0};
    compare_both(kind, device, gpu, S_INT, whole_got, whole_want, 3, undecided);
    const uint8_t truth[] = {1, 0, 1}, lie[] = {1, 1, 1};
    compare_both(kind, device, gpu, S_BOOL, lie, truth, 3, NULL);
    compare_both(kind, device, gpu, S_BOOL, lie, truth, 3, undecided);
    // The last bits of wide integers, which a double does not hold.
    const int64_t wide[] = {INT64_MAX, INT64_MIN, 5},
                  beside[] = {INT64_MAX - 1, INT64_MIN, 5};
    compare_both(kind, device, gpu, S_LONG, wide, wide, 3, NULL);
    compare_both(kind, device, gpu, S_LONG, beside, wide, 3, NULL);
    compare_both(kind, device, gpu, S_ULONG, wide, beside, 3, undecided);
    // Every pattern of narrow types, beside its neighbour.
    static const Scalar narrow[] = {S_CHAR, S_UCHAR, S_SHORT, S_USHORT, S_HALF, S_BF16};
    static uint16_t half[1 << 16], next[1 << 16];
    for (int i = 0; i < 1 << 16; i++) {
        half[i] = (uint16_t)i;
        next[i] = (uint16_t)(i ^ (i % 64 == 5));
    }
    for (int i = 0; i < COUNTOF(narrow); i++) {
        compare_both(kind, device, gpu, narrow[i], half, half, 1 << 16, NULL);
        compare_both(kind, device, gpu, narrow[i], next, half, 1 << 16, NULL);
    }
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
    log = buf_new();
    Device *device = kind->open(0, &log);
    GpuCheck *gpu = device ? gpucheck_open(kind, device) : NULL;
    assert_non_null(gpu);
    enum { BYTES = 4099 };
    unsigned char data[BYTES], word[4];
    uint32_t sum, other;
    DeviceBuffers held = {.kind = kind, .device = device};
    DeviceBuffer b = {0};
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

enum { WORDS = 3000 };

typedef struct {
    const DeviceKind *kind;
    Device *device;
    DeviceBuffers held;
    DeviceBuffer *used[2];
    Verdict verdict;
    float in[WORDS], out[WORDS];
    Buf log;
} Judged;

static void write_floats(const char *path, const float *x)
{
    assert_true(file_write(path, (const char *)x, sizeof(float) * WORDS));
}

// An input and an output, as a worker is told of them.
static void open_judged(Judged *j)
{
    char folder[] = "/tmp/forewarp-test-XXXXXX", init[64], expect[64];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < WORDS; i++) {
        j->in[i] = (float)i;
        j->out[i] = 0.5f + (float)(i % 10);
    }
    snprintf(init, sizeof init, "%s/init", folder);
    snprintf(expect, sizeof expect, "%s/expect", folder);
    write_floats(init, j->in);
    write_floats(expect, j->out);
    json_t *message = json_pack(
        "{s:f,s:[{s:s,s:i,s:i,s:i,s:i,s:s},{s:s,s:i,s:i,s:i,s:i,s:s}]}", "tolerance", 1e-4,
        "buffers", "name", "in", "scalar", S_FLOAT, "count", WORDS, "bytes", 4 * WORDS,
        "width", 4, "init", init, "name", "out", "scalar", S_FLOAT, "count", WORDS, "bytes",
        4 * WORDS, "width", 4, "expect", expect);
    j->held = (DeviceBuffers){.kind = j->kind,
                              .device = j->device,
                              .gpucheck = gpucheck_open(j->kind, j->device)};
    assert_non_null(j->held.gpucheck);
    assert_true(buffers_fill(&j->held, message, &j->log));
    json_decref(message);
    remove_tree(folder);
    j->used[0] = &j->held.at[0];
    j->used[1] = &j->held.at[1];
}

// What is found of a run that computes what it must and then writes a float into a buffer,
// so many floats from its start.
static bool is_right(Judged *j, int buffer, int64_t at, float x, Poison poison)
{
    float copy = x;
    buf_clear(&j->verdict.why);
    assert_int_equal(buffers_guard(&j->held, j->used, 2, poison, &j->log), DEV_OK);
    assert_int_equal(buffers_reset(&j->held, j->used, 2, poison, &j->log), DEV_OK);
    j->kind->write(j->device, j->used[1]->mem, j->out, sizeof j->out, &j->log);
    unsigned char byte[4];
    memcpy(byte, &copy, sizeof byte);
    for (int i = 0; i < 4 && buffer >= 0; i++)
        j->kind->fill(j->device, j->used[buffer]->whole, byte[i],
                      (size_t)(GUARD + 4 * at + i), 1, &j->log);
    assert_int_equal(buffers_judge(&j->held, j->used, 2, poison, &j->verdict, &j->log),
                     DEV_OK);
    return j->verdict.right;
}

static void expect_wrong(Judged *j, int buffer, int64_t at, float x, const char *why)
{
    static const Poison poison[] = {POISON_FIRST, POISON_AGAIN};
    for (int i = 0; i < COUNTOF(poison); i++) {
        assert_false(is_right(j, buffer, at, x, poison[i]));
        assert_non_null(strstr(j->verdict.why.text, why));
        assert_true(is_right(j, -1, 0, 0, poison[i])); // what was spoilt is put back
    }
}

// A worker's judgement where the device compares: what is found and said is the same.
static void test_judged_there(void **state)
{
    (void)state;
    Judged *j = xcalloc(1, sizeof *j);
    j->kind = device_kind("opencl");
    if (j->kind->count() == 0) {
        free(j);
        skip();
    }
    j->log = buf_new();
    j->verdict.why = buf_new();
    j->device = j->kind->open(0, &j->log);
    assert_non_null(j->device);
    open_judged(j);
    assert_true(is_right(j, -1, 0, 0, POISON_FIRST));
    assert_true(is_right(j, 1, 7, 7.5001f, POISON_AGAIN));
    assert_true(j->verdict.max_error > 1e-6 && j->verdict.max_error < 1e-4);
    expect_wrong(j, 1, 7, 8, "out: element 7 is 8, must be 7.5");
    expect_wrong(j, 1, WORDS, 8, "writes past the end of `out`: element 3000");
    expect_wrong(j, 1, -1, 8, "writes before the start of `out`: element -1");
    expect_wrong(j, 0, WORDS + 5, 8, "writes past the end of `in`: element 3005");
    expect_wrong(j, 0, 33, 8, "writes into the input `in`: element 33");
    j->used[1]->spared = 1;
    assert_true(is_right(j, 1, 7, 8, POISON_AGAIN));
    j->used[1]->spared = 0;
    // Its copy of what is expected is not the last word.
    j->kind->fill(j->device, j->used[1]->expect_mem, 3, 0, 64, &j->log);
    assert_true(is_right(j, -1, 0, 0, POISON_FIRST));
    bool right[2];
    double error = 0;
    assert_true(
        gpucheck_judge(j->held.gpucheck, j->used, 2, POISON_FIRST, 1e-4, right, &error));
    assert_true(right[0] && right[1]); // it was put back
    buffers_clear(&j->held);
    gpucheck_close(j->held.gpucheck);
    j->kind->close(j->device);
    buf_release(&j->verdict.why);
    buf_release(&j->log);
    free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpucheck),
        cmocka_unit_test(test_gpucheck_inputs),
        cmocka_unit_test(test_judged_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
