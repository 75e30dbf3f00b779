// SPDX-License-Identifier: Apache-2.0
//
// Exploration: what it finds is distinct, the same for the same seed, can be lowered, and
// means what the program means; and it is quick.

#include "explored.h"

#include <time.h>

static const char *const stencils[] = {"stencil2d",  "srad1",    "srad2",     "hotspot2d",
                                       "gradient2d", "jacobi2d", "jacobi2d9", "gaussian"};

static Exploration *explore(Example *e, uint64_t seed, int n)
{
    ExploreOptions options = explore_defaults;
    options.accept = can_lower;
    options.user = e;
    return explore_random(e->program, seed, n, &options, e->arena);
}

static void check_distinct(const Exploration *x)
{
    for (int i = 0; i < x->found.len; i++)
        for (int j = 0; j < i; j++)
            if (x->found.at[i].hash == x->found.at[j].hash)
                assert_false(expr_equal(x->found.at[i].expr, x->found.at[j].expr));
}

static void test_thousand_of_each_stencil(void **state)
{
    (void)state;
    static const int64_t sizes[] = {4096, 4096};
    for (int i = 0; i < COUNTOF(stencils); i++) {
        Example e;
        example_open(&e, stencils[i], sizes);
        clock_t start = clock(); // of the processor: the machine may be busy
        Exploration *x = explore(&e, 1, 1000);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (x->found.len < 1000 || seconds > 30)
            fail_msg("%s: %d in %.1f s", stencils[i], x->found.len, seconds);
        assert_true(x->refused * 20 <= x->tried && x->stuck * 20 <= x->tried);
        check_distinct(x);
        example_close(&e);
    }
}

typedef struct {
    const char *name;
    int64_t sizes[3];
    int n;
} Sample;

static void check_sample(const Sample *sample)
{
    Example e;
    example_open(&e, sample->name, sample->sizes);
    example_expect(&e);
    Exploration *x = explore(&e, 7, sample->n);
    if (x->found.len < sample->n)
        fail_msg("%s: %d found", sample->name, x->found.len);
    for (int i = 0; i < x->found.len; i++) {
        Value *value = value_of_body(&e, x->found.at[i].expr);
        if (!value || !agrees(value, e.expect)) {
            show_diags(&e.diags, sample->name);
            show_explored(&x->found.at[i]);
            fail_msg("%s: another value", sample->name);
        }
    }
    example_close(&e);
}

static void test_same_meaning(void **state)
{
    (void)state;
    static const Sample samples[] = {
        {"jacobi2d", {37, 29}, 40},
        {"hotspot2d", {16, 23}, 30},
        {"srad2", {9, 32}, 20},
        {"stencil2d", {20, 12}, 20},
        {"gaussian", {11, 13}, 10},
        {"blur", {19, 24}, 30},
        {"heat3d", {5, 7, 6}, 12},
        {"j3d27pt", {4, 5, 6}, 6},
        {"wave2d", {10, 8}, 15},
        {"life2d", {12, 16}, 15},
        {"convolution1d", {50}, 30},
        {"dot", {1000}, 40},
        {"asum", {777}, 40},
        {"gemv", {20, 33}, 40},
        {"mm", {12, 9, 16}, 40},
        {"blackscholes", {96}, 20},
        {"scal", {64}, 40},
        {"transpose", {12, 16}, 30},
        {"nbody", {33}, 15},
        {"reverse", {24}, 20},
        {"prefix", {30}, 1},
        {"jacobi2d_steps", {9, 8}, 8},
        {"heat2d_dirichlet", {9, 14}, 15},
    };
    for (int i = 0; i < COUNTOF(samples); i++)
        check_sample(&samples[i]);
}

static void test_a_seed_is_a_walk(void **state)
{
    (void)state;
    static const int64_t sizes[] = {64, 48};
    Example a, b;
    example_open(&a, "hotspot2d", sizes);
    example_open(&b, "hotspot2d", sizes);
    Exploration *one = explore(&a, 5, 60), *two = explore(&b, 5, 60);
    Exploration *other = explore(&b, 6, 60);
    assert_int_equal(one->found.len, 60);
    assert_int_equal(two->found.len, 60);
    int same = 0;
    for (int i = 0; i < 60; i++) {
        assert_true(one->found.at[i].hash == two->found.at[i].hash);
        same += one->found.at[i].hash == other->found.at[i].hash;
    }
    assert_true(same < 30);
    example_close(&a);
    example_close(&b);
}

static bool refuse(void *user, const Explored *found)
{
    (void)found;
    ++*(int *)user;
    return false;
}

static void test_gives_up(void **state)
{
    (void)state;
    static const int64_t sizes[] = {32, 32};
    Example e;
    example_open(&e, "jacobi2d", sizes);
    int asked = 0;
    ExploreOptions options = explore_defaults;
    options.accept = refuse;
    options.user = &asked;
    options.tries = 3;
    Exploration *x = explore_random(e.program, 1, 10, &options, e.arena);
    assert_int_equal(x->found.len, 0);
    assert_int_equal(x->tried, 30);
    assert_int_equal(x->refused, asked);
    assert_int_equal(x->tried, x->refused + x->same + x->stuck);
    example_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_meaning),
        cmocka_unit_test(test_a_seed_is_a_walk),
        cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_thousand_of_each_stencil),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
