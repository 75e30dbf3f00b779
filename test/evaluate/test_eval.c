// SPDX-License-Identifier: Apache-2.0
//
// The evaluation: expected runs against counting every order, an exploration with a planted
// relation that the model must see through, and programs kept out of their own training.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "evaluate/eval.h"

#include "measure/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

enum { N = 6 };

static const double throughput[N] = {0.2, 0.95, 0.5, 1, 0, 0.7};
static const double time_ns[N] = {50, 10.5, 20, 10, NAN, 14};

// What running in this order costs, and the best after each run.
static EvalCost walk(const int order[N], double goal, double best[N])
{
    EvalCost cost = {0};
    double most = 0;
    for (int i = 0; i < N; i++) {
        int p = order[i];
        if (most < goal) {
            cost.runs++;
            cost.time_ns += isnan(time_ns[p]) ? 0 : time_ns[p];
        }
        best[i] = most = fmax(most, throughput[p]);
    }
    return cost;
}

// The mean over all orders that put higher predictions first.
static int add_orders(const double *prediction, int order[N], int n, EvalCost *cost,
                      double best[N])
{
    if (n == N) {
        double one[N];
        for (int i = 1; i < N; i++)
            if (prediction[order[i]] > prediction[order[i - 1]])
                return 0;
        EvalCost c = walk(order, 0.9, one);
        cost->runs += c.runs;
        cost->time_ns += c.time_ns;
        for (int i = 0; i < N; i++)
            best[i] += one[i];
        return 1;
    }
    int count = 0;
    for (int i = n; i < N; i++) {
        int swap = order[n];
        order[n] = order[i];
        order[i] = swap;
        count += add_orders(prediction, order, n + 1, cost, best);
        order[i] = order[n];
        order[n] = swap;
    }
    return count;
}

static void test_expectations(void **state)
{
    (void)state;
    static const double predictions[][N] = {
        {0, 0, 0, 0, 0, 0}, // random
        {6, 5, 4, 3, 2, 1}, // one order
        {1, 2, 2, 1, 2, 2}, // ties of several kinds
        {3, 1, 3, 2, 2, 3}, {0, 0, 5, 0, 5, 5},
    };
    for (int k = 0; k < COUNTOF(predictions); k++) {
        int order[N] = {0, 1, 2, 3, 4, 5};
        EvalCost want = {0};
        double want_best[N] = {0}, best[N];
        int count = add_orders(predictions[k], order, 0, &want, want_best);
        assert_true(count > 0);
        EvalCost cost = eval_cost(predictions[k], throughput, time_ns, N, 0.9);
        assert_true(is_near(cost.runs, want.runs / count));
        assert_true(is_near(cost.time_ns, want.time_ns / count));
        eval_curve(predictions[k], throughput, N, best, N);
        for (int i = 0; i < N; i++)
            assert_true(is_near(best[i], want_best[i] / count));
    }
}

static void test_simulation_agrees(void **state)
{
    (void)state;
    enum { POINTS = 200 };
    double y[POINTS], t[POINTS];
    for (int i = 0; i < POINTS; i++) {
        t[i] = 100 + (i * 61) % POINTS;
        y[i] = 100 / t[i];
    }
    EvalCost exact = eval_cost(NULL, y, t, POINTS, 0.9);
    EvalCost rough = eval_cost_simulated(y, t, POINTS, 0.9, 4000, 1);
    // 100 to 111 are good: 12 of them.
    assert_true(is_near(exact.runs, 201.0 / 13));
    assert_true(fabs(rough.runs / exact.runs - 1) < 0.05);
    assert_true(fabs(rough.time_ns / exact.time_ns - 1) < 0.05);
    EvalCost again = eval_cost_simulated(y, t, POINTS, 0.9, 4000, 1);
    assert_true(again.runs == rough.runs);
}

static void test_no_good_point(void **state)
{
    (void)state;
    const double y[] = {0, 0}, t[] = {NAN, NAN};
    assert_true(isnan(eval_cost(NULL, y, t, 2, 0.9).runs));
}

// Explorations ---------------------------------------------------------------------------

// Throughput falls with lines and with the distance of local0 from 64; the constant factor
// of a program and size must not matter. One row in nine fails: those of local0 256.
static void add_rows(Buf *text, const char *program, int size, double factor, Rng *rng)
{
    static const int lines[] = {1, 2, 4, 8, 16, 32}, local[] = {8, 16, 32, 64, 128};
    for (int i = 0; i < 270; i++) {
        int line = lines[rng_below(rng, 6)], l0 = local[rng_below(rng, 5)];
        bool fails = i % 9 == 0;
        l0 = fails ? 256 : l0;
        buf_printf(text, "%s,%d,e%d,%d,1,1,%d,1,1,%d,%d,", program, size, i, size, l0, line,
                   (int)rng_below(rng, 3));
        double t = factor * size * line * (1 + fabs(log2(l0 / 64.0)));
        t *= 1 + 0.02 * rng_double(rng);
        buf_printf(text, fails ? ",out-of-resources\n" : "%.6f,ok\n", t);
    }
}

static Dataset *planted(const char *const *program, int n, Arena *arena, Diags *diags)
{
    Rng rng;
    Buf text;
    rng = rng_new(11);
    text = buf_new();
    buf_puts(&text, "program,size,expression,global0,global1,global2,local0,local1,local2,"
                    "lines,noise,time_ns,status\n");
    for (int p = 0; p < n; p++)
        for (int size = 512; size <= 4096; size *= 2)
            add_rows(&text, program[p], size, 1 + 5 * p, &rng);
    Source *source = NEW(arena, Source);
    *source = (Source){"planted", arena_strdup(arena, text.text), text.len};
    buf_release(&text);
    return dataset_parse(source, arena, diags);
}

static double number(const json_t *json, const char *key)
{
    return json_number_of(json, key, NAN);
}

static double best_after(const json_t *curve, size_t runs)
{
    return json_number_value(json_array_get(curve, runs - 1));
}

static void test_planted(void **state)
{
    (void)state;
    static const char *const programs[] = {"p", "q", "r"};
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    const Dataset *data = planted(programs, 3, arena, &diags);
    assert_non_null(data);
    EvalOptions options = {.goal = 0.9, .seed = 1};
    json_t *e = eval_run(data, model_find("knn"), &options, arena, &diags), *g;
    assert_non_null(e);
    const json_t *summary = json_object_get(e, "summary"),
                 *sizes = json_object_get(e, "sizes");
    size_t i, groups = json_array_size(json_object_get(e, "groups"));
    assert_int_equal(groups, 12);
    assert_true(number(summary, "pearson") > 0.95 &&
                number(summary, "lowest_pearson") > 0.9);
    json_array_foreach(json_object_get(e, "groups"), i, g)
    {
        const json_t *model = json_object_get(g, "model_best");
        double good = number(g, "good");
        assert_true(is_near(number(g, "random_runs"), 271.0 / (good + 1)));
        // Good points have one line and local0 64: the model puts them first.
        assert_true(good >= 1 && number(g, "model_runs") < 1.5);
        assert_true(best_after(model, 2) >
                    best_after(json_object_get(g, "random_best"), 2));
        assert_true(best_after(model, json_array_size(model)) == 1);
    }
    assert_true(number(summary, "fewer_runs") > 8);
    const json_t *reach = json_object_get(summary, "reach");
    const json_t *goal = json_array_get(reach, 0), *strict = json_array_get(reach, 1);
    assert_true(number(goal, "goal") == 0.9 && number(strict, "goal") == EVAL_STRICT);
    assert_true(number(goal, "mean") == number(summary, "model_runs") &&
                number(goal, "geomean") <= number(goal, "mean"));
    assert_true(number(strict, "mean") >= number(goal, "mean") &&
                number(strict, "random_mean") >= number(goal, "random_mean"));
    assert_true(number(goal, "within_5") >= number(strict, "within_5") &&
                number(goal, "within_5") > 0.5);
    assert_int_equal(json_array_size(sizes), 4);
    double runs = 0;
    json_array_foreach(sizes, i, g)
    {
        assert_int_equal(number(g, "programs") * 4, groups);
        runs += number(g, "runs") / 4;
    }
    assert_true(is_near(runs, number(goal, "mean")));
    // Bad points are slow.
    assert_true(number(summary, "less_time") > number(summary, "fewer_runs"));
    json_array_foreach(json_object_get(e, "features"), i, g)
    {
        const char *name = json_text_of(g, "feature");
        if (i == 0)
            assert_string_equal(name, "lines");
        if (strcmp(name, "noise") == 0 || strcmp(name, "global1") == 0)
            assert_true(number(g, "redundancy") < 0.005);
    }
    json_decref(e);
    arena_free(arena);
}

// Three programs with the same points, one of them upside down. Whoever is predicted from
// the others only: the odd one badly; were its own rows seen, it would be seen well.
static void test_leaves_program_out(void **state)
{
    (void)state;
    Buf text = buf_new();
    buf_puts(&text, "program,size,expression,global0,global1,global2,local0,local1,local2,"
                    "time_ns,status\n");
    for (int p = 0; p < 3; p++)
        for (int i = 0; i < 100; i++)
            buf_printf(&text, "p%d,64,e,%d,%d,1,1,1,1,%d,ok\n", p, i, (i * 7) % 10,
                       p == 1 ? 200 - i : 100 + i);
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    const Source source = {"odd", text.text, text.len};
    const Dataset *data = dataset_parse(&source, arena, &diags);
    EvalOptions options = {.goal = 0.9, .seed = 1};
    json_t *e = eval_run(data, model_find("knn"), &options, arena, &diags);
    const json_t *groups = json_object_get(e, "groups"), *odd = json_array_get(groups, 1);
    assert_int_equal(json_array_size(groups), 3);
    assert_true(number(odd, "pearson") < -0.9);
    assert_true(number(odd, "model_runs") > 50);
    json_decref(e);
    buf_release(&text);
    arena_free(arena);
}

static void test_refuses(void **state)
{
    (void)state;
    static const char *const one[] = {"alone"};
    static const char failed[] =
        "program,size,expression,global0,global1,global2,local0,local1,local2,time_ns,"
        "status\na,1,e,1,1,1,1,1,1,,crashed\nb,1,e,1,1,1,1,1,1,,crashed\n";
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    EvalOptions options = {.goal = 0.9, .seed = 1};
    const ModelKind *knn = model_find("knn");
    assert_null(eval_run(planted(one, 1, arena, &diags), knn, &options, arena, &diags));
    assert_int_equal(diags.errors, 1);
    const Source source = {"failed", failed, strlen(failed)};
    const Dataset *data = dataset_parse(&source, arena, &diags);
    assert_non_null(data);
    assert_null(eval_run(data, knn, &options, arena, &diags));
    assert_int_equal(diags.errors, 2);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expectations),       cmocka_unit_test(test_simulation_agrees),
        cmocka_unit_test(test_no_good_point),      cmocka_unit_test(test_planted),
        cmocka_unit_test(test_leaves_program_out), cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
