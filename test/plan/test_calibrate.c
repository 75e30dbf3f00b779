// SPDX-License-Identifier: Apache-2.0
//
// Measurement kernels are right programs whose counts are those of the paper's
// descriptions; weights and measurements survive being written and read.

#include "plan/calibrate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KERNEL(class, name, sizes, first, last, step, shapes, more, text) {#name, text},
static const struct {
    const char *name, *text;
} kernels[] = {
#include "plan/calibrate.def"
};
#undef KERNEL

static void kernels_are_right(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(kernels); i++) {
        Arena *arena = arena_new();
        Diags diags;
        diags_init(&diags, arena);
        Problem *problem = problem_parse(kernels[i].name, kernels[i].text, &diags);
        if (!problem->program) {
            Buf text;
            buf_init(&text);
            diags_print(&text, &diags);
            print_message("%s", text.text);
            buf_release(&text);
        }
        assert_non_null(problem->program);
        problem_free(problem);
        arena_free(arena);
    }
}

// Times that follow planted weights exactly, of made-up kernels.
static void make_rows(Arena *arena, Calibration *c)
{
    Rng rng;
    rng_seed(&rng, 4);
    *c = (Calibration){.launch_ns = 1000, .demands = true};
    snprintf(c->device.name, sizeof c->device.name, "made, up");
    snprintf(c->device.fingerprint, sizeof c->device.fingerprint, "0123456789abcdef");
    for (int i = 0; i < 80; i++) {
        Measured row = {.class = i % 8 == 0 ? CLASS_EMPTY : CLASS_STRIDE_1,
                        .kernel = "k",
                        .point = "lx=1 ly=2",
                        .n = 1 << (i % 20)};
        row.count[COUNT_ONE] = 1;
        row.count[COUNT_GROUP] = floor(exp(10 * rng_double(&rng)));
        if (row.class != CLASS_EMPTY) {
            row.count[COUNT_LOAD + 1] = floor(exp(18 * rng_double(&rng)));
            row.count[COUNT_ADD] = floor(exp(18 * rng_double(&rng)));
        }
        row.time_ns = 2000 + 0.5 * row.count[COUNT_GROUP] +
                      0.01 * row.count[COUNT_LOAD + 1] + 0.002 * row.count[COUNT_ADD];
        row.demand = (Demand){.launches = 1, .waves = 10};
        row.demand.value[DEMAND_LAUNCH] = 1;
        row.demand.value[DEMAND_FAR] = (row.time_ns - 2000) * 100;
        VEC_PUSH(arena, &c->rows, row);
    }
}

static void weights_come_back(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags;
    diags_init(&diags, arena);
    Calibration c, again;
    Weights w, loaded;
    make_rows(arena, &c);
    char rows[] = "/tmp/forewarp-rows-XXXXXX", path[] = "/tmp/forewarp-weights-XXXXXX";
    close(mkstemp(rows));
    close(mkstemp(path));
    Buf text;
    buf_init(&text);
    calibration_write(&text, &c);
    assert_true(file_write(rows, text.text, text.len));
    assert_true(calibration_read(rows, arena, &again, &diags));
    assert_int_equal(again.rows.len, c.rows.len);
    assert_string_equal(again.device.name, "made, up");
    assert_true(again.demands);
    for (int i = 0; i < c.rows.len; i++) {
        assert_memory_equal(again.rows.at[i].count, c.rows.at[i].count,
                            sizeof c.rows.at[i].count);
        assert_true(fabs(again.rows.at[i].demand.value[DEMAND_FAR] -
                         c.rows.at[i].demand.value[DEMAND_FAR]) <=
                    1e-8 * c.rows.at[i].demand.value[DEMAND_FAR]);
        assert_true(again.rows.at[i].demand.waves == 10);
    }
    calibrate_fit(&again, &w);
    assert_true(fabs(w.weight[COUNT_ONE] / 2e-6 - 1) < 1e-4);
    assert_true(fabs(w.weight[COUNT_LOAD + 1] / 1e-11 - 1) < 1e-4);
    assert_true(fabs(w.weight[COUNT_ADD] / 2e-12 - 1) < 1e-4);
    assert_true(weights_save(&w, path, &diags));
    assert_true(weights_load(&loaded, path, NULL, &diags));
    for (int p = 0; p < PROPERTIES; p++)
        assert_true(loaded.weight[p] == w.weight[p]);
    for (int d = 0; d < DEMANDS; d++)
        assert_true(loaded.overlap.weight[d] == w.overlap.weight[d]);
    double part[DEMANDS], parts = 0;
    double by_demands = weights_overlap(&loaded, &c.rows.at[5].demand, 1, part);
    for (int d = 0; d < DEMANDS; d++)
        parts += part[d];
    assert_true(fabs(by_demands - parts) <= 1e-12 * by_demands);
    assert_true(fabs(by_demands * 1e9 / c.rows.at[5].time_ns - 1) < 1e-2);
    double cost[PROPERTIES], sum = 0;
    const double *count = c.rows.at[5].count;
    double total = weights_predict(&loaded, count, cost);
    for (int p = 0; p < PROPERTIES; p++)
        sum += cost[p];
    assert_true(fabs(total - sum) <= 1e-12 * total);
    assert_true(fabs(total * 1e9 / c.rows.at[5].time_ns - 1) < 1e-3);
    unlink(rows);
    unlink(path);
    buf_release(&text);
    arena_free(arena);
}

static void stand_ins(void **state)
{
    (void)state;
    Weights w = {0};
    double factor;
    w.support[COUNT_LOAD + 1] = 1; // 32 bits, stride 1
    assert_int_equal(weights_stand_in(&w, COUNT_LOAD + 1, &factor), COUNT_LOAD + 1);
    assert_int_equal(weights_stand_in(&w, COUNT_LOAD + 2 * COUNT_STRIDES + 1, &factor),
                     COUNT_LOAD + 1);
    assert_true(factor == 4);
    assert_int_equal(weights_stand_in(&w, COUNT_STORE + 1, &factor), -1);
    w.support[COUNT_MUL] = 1;
    assert_int_equal(weights_stand_in(&w, COUNT_MUL + 1, &factor), COUNT_MUL);
    assert_true(factor == 2);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "{\"forewarp_weights\": 99}",
                                      "{\"forewarp_weights\": 2, \"weights\": [{}]}",
                                      "class,kernel,n,point,time_ns\nempty,k,1,p,x\n",
                                      "class,kernel,n,point,time_ns,\"no such\"\n"};
    char path[] = "/tmp/forewarp-bad-XXXXXX";
    close(mkstemp(path));
    for (int i = 0; i < COUNTOF(bad); i++) {
        Arena *arena = arena_new();
        Diags diags;
        Weights w;
        Calibration c;
        diags_init(&diags, arena);
        assert_true(file_write(path, bad[i], strlen(bad[i])));
        assert_false(weights_load(&w, path, NULL, &diags));
        assert_false(calibration_read(path, arena, &c, &diags));
        assert_int_equal(diags.errors, 2);
        arena_free(arena);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_right), cmocka_unit_test(weights_come_back),
        cmocka_unit_test(stand_ins), cmocka_unit_test(bad_files_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
