// SPDX-License-Identifier: Apache-2.0
//
// Measurement kernels are right programs whose counts are those of the paper's
// descriptions; weights and measurements survive being written and read.

#include "calibrate/calibrate.h"
#include "calibrate/describe.h"

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
#include "calibrate/calibrate.def"
};
#undef KERNEL

static void kernels_are_right(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(kernels); i++) {
        Arena *arena = arena_new();
        Diags diags = {.arena = arena};
        Problem *problem = problem_parse(kernels[i].name, kernels[i].text, &diags);
        if (!problem->program) {
            Buf text = buf_new();
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
    Rng rng = rng_new(4);
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

static void assert_same_rows(const Calibration *a, const Calibration *b)
{
    assert_int_equal(a->rows.len, b->rows.len);
    for (int i = 0; i < a->rows.len; i++) {
        const Demand *demand = &a->rows.at[i].demand, *want = &b->rows.at[i].demand;
        assert_memory_equal(a->rows.at[i].count, b->rows.at[i].count,
                            sizeof a->rows.at[i].count);
        assert_true(fabs(demand->value[DEMAND_FAR] - want->value[DEMAND_FAR]) <=
                    1e-8 * want->value[DEMAND_FAR]);
        assert_true(demand->waves == 10);
    }
}

// The path of a new file.
static const char *temporary(char *path)
{
    close(mkstemp(path));
    return path;
}

// What was written, read again.
static void read_again(const Calibration *c, Calibration *again, Arena *arena, Diags *diags)
{
    char rows[] = "/tmp/forewarp-rows-XXXXXX";
    Buf text = buf_new();
    calibration_write(&text, c);
    assert_true(file_write(temporary(rows), text.text, text.len));
    assert_true(calibration_read(rows, arena, again, diags));
    unlink(rows);
    buf_release(&text);
}

static void load_again(const Weights *w, Weights *loaded, Diags *diags)
{
    char path[] = "/tmp/forewarp-weights-XXXXXX";
    assert_true(weights_save(w, temporary(path), diags));
    assert_true(weights_load(loaded, path, NULL, diags));
    unlink(path);
    for (int p = 0; p < PROPERTIES; p++)
        assert_true(loaded->weight[p] == w->weight[p]);
    for (int d = 0; d < DEMANDS; d++)
        assert_true(loaded->overlap.weight[d] == w->overlap.weight[d]);
}

// The parts add up to what is predicted, and that is near the time.
static void assert_predicts(double ns, double predicted_s, const double *part, int n,
                            double error)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += part[i];
    assert_true(fabs(predicted_s - sum) <= 1e-12 * predicted_s);
    assert_true(fabs(predicted_s * 1e9 / ns - 1) < error);
}

static void weights_come_back(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Calibration c, again;
    Weights w, loaded;
    double part[DEMANDS], cost[PROPERTIES];
    make_rows(arena, &c);
    read_again(&c, &again, arena, &diags);
    assert_string_equal(again.device.name, "made, up");
    assert_true(again.demands);
    assert_same_rows(&again, &c);
    calibrate_fit(&again, &w);
    assert_true(fabs(w.weight[COUNT_ONE] / 2e-6 - 1) < 1e-4);
    assert_true(fabs(w.weight[COUNT_LOAD + 1] / 1e-11 - 1) < 1e-4);
    assert_true(fabs(w.weight[COUNT_ADD] / 2e-12 - 1) < 1e-4);
    load_again(&w, &loaded, &diags);
    double ns = c.rows.at[5].time_ns;
    double by_demands = weights_overlap(&loaded, &c.rows.at[5].demand, 1, part);
    assert_predicts(ns, by_demands, part, DEMANDS, 1e-2);
    double by_counts = weights_predict(&loaded, c.rows.at[5].count, cost);
    assert_predicts(ns, by_counts, cost, PROPERTIES, 1e-3);
    arena_free(arena);
}

// What the memory of an A100 does takes 4800 / 1555 times as long as on an H200; the
// latency of memory and a launch stay.
static void weights_of_other_devices(void **state)
{
    (void)state;
    DeviceModel model;
    DeviceInfo h200, a100;
    assert_true(device_model_find("nvidia-h200", &model));
    describe_model(&model, &h200);
    assert_true(device_model_find("nvidia-a100", &model));
    describe_model(&model, &a100);
    Weights w = {.device = h200};
    weights_parts(&w.overlap);
    for (int d = 0; d < DEMANDS; d++)
        w.overlap.weight[d] = 1;
    weights_scale(&w, &h200);
    assert_string_equal(w.from, "");
    for (int d = 0; d < DEMANDS; d++)
        assert_true(w.overlap.weight[d] == 1);
    weights_scale(&w, &a100);
    assert_string_equal(w.from, "H200");
    const double *by = w.overlap.weight, units = 132.0 * 1980 / (108 * 1410);
    assert_true(fabs(by[DEMAND_FAR] - 4800.0 / 1555) < 1e-12);
    assert_true(fabs(by[DEMAND_ARRAY] - units) < 1e-12);
    assert_true(fabs(by[DEMAND_OPERATE] - 66900.0 / 19500) < 1e-12);
    assert_true(fabs(by[DEMAND_CHAIN] - 1980.0 / 1410) < 1e-12);
    assert_true(by[DEMAND_PHASE] == 1 && by[DEMAND_LAUNCH] == 1);
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
        diags = (Diags){.arena = arena};
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
        cmocka_unit_test(weights_of_other_devices), cmocka_unit_test(stand_ins),
        cmocka_unit_test(bad_files_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
