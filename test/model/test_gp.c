// SPDX-License-Identifier: Apache-2.0
//
// The Gaussian process: it passes through its rows, following row by row gives what fitting
// at once does, and rates find out which columns matter.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/gp.h"

#include <math.h>

enum { D = 3, N = 60, POOL = 40 };

// The second column matters, the first a little, the third not at all.
static double truth(const double *x)
{
    return 3 + sin(5 * x[1]) + 0.1 * x[0];
}

static void fill(double *x, double *y, int n, uint64_t seed)
{
    Rng rng = rng_new(seed);
    for (int i = 0; i < n; i++) {
        for (int c = 0; c < D; c++)
            x[i * D + c] = rng_double(&rng);
        y[i] = truth(x + i * D);
    }
}

static const int group[D] = {0, 1, 2};

static void test_rows(void **state)
{
    (void)state;
    double x[N * D], y[N];
    fill(x, y, N, 1);
    Gp *gp = gp_new(D, group, D, N);
    gp_set(gp, x, y, N);
    gp_tune(gp, 8);
    GpPool *pool = gp_pool_new(gp, N);
    assert_int_equal(gp_pool_push(pool, gp, x, N), N);
    for (int i = 0; i < N; i++) {
        assert_true(fabs(pool->mean[i] - y[i]) < 0.02);
        assert_true(pool->variance[i] < 0.05 * gp->variance);
    }
    assert_true(gp->rate[1] > gp->rate[0] + 0.5 && gp->rate[1] > gp->rate[2] + 0.5);
    gp_pool_free(pool);
    gp_free(gp);
}

static void test_prediction(void **state)
{
    (void)state;
    double x[N * D], y[N], at[POOL * D], want[POOL], error = 0;
    fill(x, y, N, 2);
    fill(at, want, POOL, 3);
    Gp *gp = gp_new(D, group, D, N);
    gp_set(gp, x, y, N);
    gp_tune(gp, 8);
    GpPool *pool = gp_pool_new(gp, POOL);
    gp_pool_push(pool, gp, at, POOL);
    for (int i = 0; i < POOL; i++)
        error += fabs(pool->mean[i] - want[i]) / POOL;
    assert_true(error < 0.05);
    gp_pool_free(pool);
    gp_free(gp);
}

// One row after the other, candidates before and after rows, removals: all the same.
static void test_following(void **state)
{
    (void)state;
    double x[N * D], y[N], at[POOL * D], ignored[POOL];
    fill(x, y, N, 4);
    fill(at, ignored, POOL, 5);
    Gp *grown = gp_new(D, group, D, N);
    gp_set(grown, x, y, N / 2);
    double mean = grown->mean;
    GpPool *pool = gp_pool_new(grown, POOL), *check = gp_pool_new(grown, POOL);
    gp_pool_push(pool, grown, at, POOL / 2);
    for (int i = N / 2; i < N; i++) {
        gp_add(grown, x + i * D, y[i]);
        gp_pool_follow(pool, grown);
        if (i == N / 2 + 5)
            assert_int_equal(gp_pool_push(pool, grown, at + POOL / 2 * D, POOL), POOL / 2);
    }
    assert_true(grown->mean == mean);
    gp_pool_push(check, grown, at, POOL);
    for (int i = 0; i < POOL; i++) {
        assert_true(fabs(pool->mean[i] - check->mean[i]) < 1e-3);
        assert_true(fabs(pool->variance[i] - check->variance[i]) < 1e-3);
    }
    gp_pool_swap(pool, 3);
    assert_int_equal(pool->n, POOL - 1);
    assert_true(fabs(pool->mean[3] - check->mean[POOL - 1]) < 1e-3);
    gp_pool_free(pool);
    gp_pool_free(check);
    gp_free(grown);
}

// Equal rows with different values, and no rows at all, are no trouble.
static void test_degenerate(void **state)
{
    (void)state;
    double x[4] = {0.5, 0.5, 0.5, 0.5}, y[4] = {1, 2, 3, 2};
    int one[1] = {0};
    Gp *gp = gp_new(1, one, 1, 8);
    GpPool *pool = gp_pool_new(gp, 2);
    gp_pool_push(pool, gp, x, 1);
    gp_set(gp, x, y, 4);
    gp_tune(gp, 4);
    gp_pool_clear(pool);
    gp_pool_push(pool, gp, x, 1);
    assert_true(isfinite(pool->mean[0]) && pool->mean[0] > 1 && pool->mean[0] < 3);
    gp_pool_free(pool);
    gp_free(gp);
    gp_free(NULL);
    gp_pool_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_prediction),
        cmocka_unit_test(test_following),
        cmocka_unit_test(test_degenerate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
