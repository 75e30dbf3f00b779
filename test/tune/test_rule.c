// SPDX-License-Identifier: Apache-2.0
//
// Rules that choose a point by the sizes.
#include "tune/tune.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int row_of(const Rule *rule, int64_t n, int64_t m)
{
    const Binding at[] = {{"N", n}, {"M", m}};
    return rule_choose(rule, at, 2);
}

static const char *text_of(const Rule *rule, Arena *arena)
{
    Buf text = buf_new();
    rule_print(&text, rule);
    return buf_keep(&text, arena);
}

static void test_text(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    const char *text = "N < 2896, M >= 512: lx=64 by=2; M < 8: lx=32 by=1; lx=16 by=4";
    Rule rule;
    assert_true(is_rule(text));
    assert_false(is_rule("lx=64 by=2"));
    assert_true(rule_parse(text, arena, &rule));
    assert_int_equal(rule.n, 3);
    assert_string_equal(text_of(&rule, arena), text);
    assert_int_equal(row_of(&rule, 2895, 512), 0);
    assert_int_equal(row_of(&rule, 2896, 512), 2);
    assert_int_equal(row_of(&rule, 100, 7), 1);
    text = "N*M < 100000: lx=64; lx=16";
    assert_true(rule_parse(text, arena, &rule));
    assert_string_equal(text_of(&rule, arena), text);
    assert_int_equal(row_of(&rule, 100, 999), 0);
    assert_int_equal(row_of(&rule, 1000, 100), 1);
    assert_false(rule_parse("N < x: lx=1; lx=2", arena, &rule));
    assert_false(rule_parse("N = 3: lx=1; lx=2", arena, &rule));
    assert_false(rule_parse("N < 3: lx=1", arena, &rule)); // and else?
    assert_true(rule_parse(": lx=1", arena, &rule));
    assert_int_equal(rule.n, 1);
    arena_free(arena);
}

enum { SIZES = 9 };
static const int64_t size[SIZES][2] = {{16, 16},   {64, 16},   {256, 16},
                                       {16, 256},  {64, 256},  {256, 256},
                                       {16, 4096}, {64, 4096}, {256, 4096}};

// What is best where is found again, whatever the order of the points.
static void learn(const double *time, int npoint, Rule *rule)
{
    static const char *const name[] = {"N", "M"}, *const point[] = {"a=0", "a=1", "a=2"};
    const int64_t *list[SIZES];
    for (int s = 0; s < SIZES; s++)
        list[s] = size[s];
    const RuleTimes times = {name, 2, list, SIZES, point, npoint, time};
    rule_learn(&times, rule);
}

static void test_learns(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    double time[3 * SIZES];
    Rule rule;
    const char *kernel[RULE_ROWS];
    for (int s = 0; s < SIZES; s++) {
        bool small = size[s][0] < 100, tall = size[s][1] >= 1000;
        time[s] = small ? 1 : 2;
        time[SIZES + s] = !small && !tall ? 1 : 1.5;
        time[2 * SIZES + s] = !small && tall ? 1 : INFINITY;
    }
    learn(time, 3, &rule);
    assert_int_equal(rule_points(&rule, kernel), 3);
    for (int s = 0; s < SIZES; s++) {
        const char *want = size[s][0] < 100 ? "a=0" : size[s][1] < 1000 ? "a=1" : "a=2";
        assert_string_equal(rule.row[row_of(&rule, size[s][0], size[s][1])].point, want);
    }
    assert_true(rule_parse(text_of(&rule, arena), arena, &rule));
    assert_int_equal(row_of(&rule, 127, 16), row_of(&rule, 16, 16)); // between 64 and 256
    assert_int_equal(row_of(&rule, 128, 16), row_of(&rule, 256, 16));
    arena_free(arena);
}

// Seven per cent at one size are not worth a kernel.
static void test_ignores_noise(void **state)
{
    (void)state;
    double time[2 * SIZES];
    Rule rule;
    for (int s = 0; s < SIZES; s++) {
        time[s] = 1;
        time[SIZES + s] = s == 0 ? 0.93 : 1.015;
    }
    learn(time, 2, &rule);
    assert_int_equal(rule.n, 1);
    assert_string_equal(rule.row[0].point, "a=0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_learns),
                                       cmocka_unit_test(test_ignores_noise)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
