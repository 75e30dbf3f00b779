// SPDX-License-Identifier: Apache-2.0
//
// What a worker makes of one job's outputs and times: layouts of elements, the comparison
// with what is expected, and the samples that become a time.
#include "measure/parts.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void test_pack(void **state)
{
    (void)state;
    const double half[] = {0,       -0.0,    1,       -1.5, 65504, 65520, 1e9,
                           0x1p-14, 0x1p-24, 0x1p-25, 0.1,  2049,  2051};
    const uint16_t bits[] = {0,      0x8000, 0x3c00, 0xbe00, 0x7bff, 0x7c00, 0x7c00,
                             0x0400, 1,      0,      0x2e66, 0x6800, 0x6802};
    uint16_t packed[COUNTOF(half)];
    scalar_pack(S_HALF, half, COUNTOF(half), packed);
    for (int i = 0; i < COUNTOF(half); i++)
        assert_int_equal(packed[i], bits[i]);
    for (unsigned h = 0; h < 0x7c00; h++) {
        uint16_t in = (uint16_t)h, out;
        double x;
        scalar_unpack(S_HALF, &in, 1, &x);
        scalar_pack(S_HALF, &x, 1, &out);
        assert_int_equal(in, out);
    }
    double numbers[] = {3, -4e9, 0}, back[3];
    int32_t ints[3];
    uint8_t bools[3];
    scalar_pack(S_INT, numbers, 3, ints);
    assert_true(ints[0] == 3 && ints[1] == INT32_MIN);
    scalar_pack(S_BOOL, numbers, 3, bools);
    scalar_unpack(S_BOOL, bools, 3, back);
    assert_true(back[0] == 1 && back[1] == 1 && back[2] == 0);
    assert_int_equal(scalar_device_bytes(S_DOUBLE), 8);
}

static void test_check(void **state)
{
    (void)state;
    const float want[] = {1, 2, 0, INFINITY, NAN, 4};
    float got[] = {1, 2, 0, INFINITY, NAN, 4};
    double scale = check_scale(S_FLOAT, want, 6);
    assert_true(fabs(scale - 0.2) < 1e-9);
    assert_int_equal(
        check_compare(S_FLOAT, got, want, 6, (Allowed){NULL, 0, scale}).first_wrong, -1);
    got[5] = 4.004f;
    Check check = check_compare(S_FLOAT, got, want, 6, (Allowed){NULL, 1e-2, scale});
    assert_int_equal(check.first_wrong, -1);
    assert_true(fabs(check.max_error - 1e-3) < 1e-5);
    check = check_compare(S_FLOAT, got, want, 6, (Allowed){NULL, 1e-4, scale});
    assert_int_equal(check.first_wrong, 5);
    got[2] = NAN;
    check = check_compare(S_FLOAT, got, want, 6, (Allowed){NULL, 1, scale});
    assert_int_equal(check.first_wrong, 2);
    assert_true(isinf(check.max_error));
    const int32_t a[] = {1, 1000000}, b[] = {1, 1000001};
    assert_int_equal(check_compare(S_INT, a, b, 2, (Allowed){NULL, 1, 1}).first_wrong, 1);
    const int64_t wide[] = {7, 1ll << 60}, other[] = {7, (1ll << 60) + 1};
    assert_int_equal(
        check_compare(S_LONG, wide, other, 2, (Allowed){NULL, 1, 1}).first_wrong, 1);
    assert_int_equal(check_compare(S_ULONG, wide, wide, 2, (Allowed){NULL, 1, 1}).wrong, 0);
    const float zero[] = {0, 0};
    assert_true(check_scale(S_FLOAT, zero, 2) > 0);
    // An error before it hides no infinity.
    const float endless[] = {1, INFINITY}, finite[] = {1.00001f, 5};
    assert_int_equal(
        check_compare(S_FLOAT, finite, endless, 2, (Allowed){NULL, 1e-4, 0.1}).first_wrong,
        1);
}

// Each element has its own bound; an endless one leaves it undecided.
static void test_bounds(void **state)
{
    (void)state;
    const float want[] = {1, 1, 1, NAN, INFINITY, 0};
    const float bound[] = {0.5f, 1e-7f, INFINITY, 0, 0, 0};
    float got[] = {1.5f, 1, NAN, NAN, INFINITY, 0};
    const Allowed allowed = {bound, 1e-4, 0.1};
    Check check = check_compare(S_FLOAT, got, want, 6, allowed);
    assert_int_equal(check.first_wrong, -1);
    assert_true(fabs(check.max_error - 0.5) < 1e-9);
    for (int i = 0; i < 6; i++) {
        float right = got[i];
        got[i] = i == 3 ? 1 : i == 4 ? -INFINITY : 1.51f;
        check = check_compare(S_FLOAT, got, want, 6, allowed);
        assert_int_equal(check.first_wrong, i == 2 ? -1 : i);
        got[i] = right;
    }
    const int32_t a[] = {1, 2}, b[] = {1, 3};
    const float undecided[] = {0, INFINITY};
    assert_int_equal(check_compare(S_INT, b, a, 2, (Allowed){undecided, 0, 1}).first_wrong,
                     -1);
}

// Zeros for all elements but the largest of n of these magnitudes: the first that is seen
// to be wrong, or -1.
static int64_t first_zero_seen(float *want, int n)
{
    float *got = xcalloc((size_t)n, sizeof *got);
    double scale = check_scale(S_FLOAT, want, n);
    for (int i = 0; i < n; i++)
        if (want[i] > 1e9f)
            got[i] = want[i];
    int64_t first =
        check_compare(S_FLOAT, got, want, n, (Allowed){NULL, 1e-4, scale}).first_wrong;
    free(got);
    return first;
}

// A few huge elements, or many, do not make the others small.
static void test_scale(void **state)
{
    (void)state;
    enum { COUNT = 4096 };
    float want[COUNT];
    for (int huge = 1; huge <= COUNT * 2 / 5; huge *= 5) {
        for (int i = 0; i < COUNT; i++)
            want[i] = i % (COUNT / huge) == 7 ? 1e10f : 1.0f + (float)(i % 10);
        assert_int_equal(first_zero_seen(want, COUNT), 0);
    }
    // From 1e-10 to 1e10, evenly in the logarithm: zeros show from 1e-5 on.
    for (int i = 0; i < COUNT; i++)
        want[i] = powf(10, -10 + 20 * (float)i / COUNT);
    int64_t first = first_zero_seen(want, COUNT);
    assert_true(first > 0 && want[first] < 1.1e-5f && want[first] > 0.9e-5f);
    // What a device may take for zero is right as zero, and nothing else is.
    for (int i = 0; i < COUNT; i++)
        want[i] = 1e-40f;
    assert_int_equal(first_zero_seen(want, COUNT), -1);
    for (int i = 0; i < COUNT; i++)
        want[i] = 1e-36f;
    assert_int_equal(first_zero_seen(want, COUNT), 0);
    // Terms of 0.2 that cancel: the rounding of the terms shows.
    for (int i = 0; i < COUNT; i++)
        want[i] = i % 2 ? 0.2f : 8e-4f;
    double scale = check_scale(S_FLOAT, want, COUNT);
    want[0] = 8e-4f + 5e-9f;
    const float near = 8e-4f;
    assert_int_equal(
        check_compare(S_FLOAT, &near, want, 1, (Allowed){NULL, 1e-4, scale}).first_wrong,
        -1);
}

typedef struct {
    const double *time_ns, *share; // of one core
    int n, calls;
} Script;

static DeviceStatus scripted(void *user, double *time_ns, double *cpu_ns)
{
    Script *script = user;
    int i = script->calls++ % script->n;
    *time_ns = script->time_ns[i];
    *cpu_ns = script->time_ns[i] * script->share[i];
    return DEV_OK;
}

static void test_sample(void **state)
{
    (void)state;
    const double even[] = {9e6, 8e6, 5e6, 4e6, 6e6, 7e6, 3e6, 2e6}, slow[] = {9e6};
    const double busy[] = {1, 1, 2, 1, 2, 2, 2, 2}, idle[] = {1};
    Script script = {even, busy, 8, 0};
    Sampler sampler = {scripted, &script, 5, 2, INFINITY, INFINITY};
    Trial trial = {0};
    // Two warm-ups; 4e6 is not valid; the five valid ones end with 2e6.
    assert_int_equal(sample_take(&sampler, &trial), DEV_OK);
    assert_int_equal(trial.nsample, 5);
    assert_true(trial.time_ns == 2e6 && !trial.cut && script.calls == 8);
    script = (Script){slow, idle, 1, 0};
    assert_int_equal(sample_take(&sampler, &trial), DEV_OK);
    assert_int_equal(trial.nsample, 20); // given up
    script.calls = 0;
    sampler.cutoff_ns = 1e6;
    assert_int_equal(sample_take(&sampler, &trial), DEV_OK);
    assert_true(trial.cut && trial.nsample == 1 && script.calls == 2);
}

// A run took no longer than the processor time that was spent on it, whatever the clock
// says; with one core that is all there is to know of it.
static void test_disturbed_sample(void **state)
{
    (void)state;
    const double clock[] = {9e6, 6e6}, share[] = {0.5, 0.6};
    Script script = {clock, share, 2, 0};
    Sampler sampler = {scripted, &script, 5, 1, INFINITY, INFINITY};
    Trial trial = {0};
    assert_int_equal(sample_take(&sampler, &trial), DEV_OK);
    assert_int_equal(trial.nsample, 5);
    assert_true(fabs(trial.time_ns - 3.6e6) < 1);
    sampler.cores_in_use = 0; // no processor: its clock alone counts
    assert_int_equal(sample_take(&sampler, &trial), DEV_OK);
    assert_true(trial.time_ns == 6e6);
}

// Without time for samples, a run that is long is its own sample; short ones are warmed up.
static void test_sample_without_time(void **state)
{
    (void)state;
    const double slow[] = {3e9}, quick[] = {1e6}, share[] = {1};
    Script script = {slow, share, 1, 0};
    Sampler sampler = {scripted, &script, 5, 1, INFINITY, -1};
    Trial trial = {0};
    assert_int_equal(sample_take(&sampler, &trial), DEV_OK);
    assert_true(trial.nsample == 1 && trial.time_ns == 3e9 && script.calls == 1);
    script = (Script){quick, share, 1, 0};
    assert_int_equal(sample_take(&sampler, &trial), DEV_OK);
    assert_true(trial.nsample == 1 && trial.time_ns == 1e6 && script.calls == 3);
}

// A processor time far below all others of the point was misread.
static void test_misread_sample(void **state)
{
    (void)state;
    const double clock[] = {5e6, 5e6, 6e6, 5.5e6, 5.2e6, 5.1e6, 6e6};
    const double share[] = {1, 1, 1, 1, 0.03, 1, 0.9};
    Script script = {clock, share, 7, 0};
    Sampler sampler = {scripted, &script, 5, 1, INFINITY, INFINITY};
    Trial trial = {0};
    assert_int_equal(sample_take(&sampler, &trial), DEV_OK);
    assert_int_equal(trial.nsample, 5);
    assert_true(fabs(trial.time_ns - 5e6) < 1 && script.calls == 8); // another in its place
    const double half[] = {1, 1, 1, 0.5, 0.5, 1, 0.4}; // of two, each bears the other out
    script = (Script){clock, half, 7, 0};
    assert_int_equal(sample_take(&sampler, &trial), DEV_OK);
    assert_int_equal(trial.nsample, 5);
    assert_true(fabs(trial.time_ns - 2.4e6) < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_disturbed_sample),
        cmocka_unit_test(test_sample_without_time),
        cmocka_unit_test(test_misread_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
