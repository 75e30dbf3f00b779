// SPDX-License-Identifier: Apache-2.0
//
// The share of iterations for which conditions hold, and the lines of lanes, against
// counting one by one.

#include "cost/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { VARS = 3 };

typedef struct {
    ArithCtx *ctx;
    Arena *arena;
    DeviceModel device;
    FeatureSetting setting;
    Kernel kernel;
    Scope scope;
    const Arith *var[VARS];
    int64_t n[VARS], at[VARS];
} World;

static void world_open(World *w, const int64_t *n)
{
    *w = (World){.ctx = arith_ctx_new(), .arena = arena_new()};
    assert_true(device_model_find("nvidia-h200", &w->device));
    w->setting.device = &w->device;
    for (int d = 0; d < 3; d++) {
        w->kernel.local[d] = d == 0 ? 8 : d == 1 ? 4 : 2;
        w->kernel.global[d] = arith_const(w->ctx, 64);
    }
    assert_true(scope_init(&w->scope, w->arena, &w->kernel, &w->setting));
    static const char *const name[VARS] = {"a", "b", "c"};
    for (int i = 0; i < VARS; i++) {
        w->n[i] = n[i];
        w->var[i] = arith_var(w->ctx, name[i], arith_const(w->ctx, 0),
                              arith_const(w->ctx, MAX(n[i] - 1, 1)));
        Stm loop = {.kind = ST_FOR, .loop = LOOP_SEQ, .iter = w->var[i]};
        scope_declare(&w->scope, &loop, n[i]);
    }
}

static void world_close(World *w)
{
    arena_free(w->arena);
    arith_ctx_free(w->ctx);
}

static bool lookup(void *user, const Arith *var, int64_t *value)
{
    World *w = user;
    for (int i = 0; i < VARS; i++)
        if (w->var[i] == var) {
            *value = w->at[i];
            return true;
        }
    return false;
}

static bool holds(World *w, const Guard *guard)
{
    bool all = true;
    for (int i = 0; i < guard->n; i++) {
        int64_t value;
        assert_true(arith_eval(guard->cond[i], lookup, w, &value));
        all = all && value >= 0;
    }
    return all != guard->negated;
}

static double count(World *w, const Guard *guard, int n)
{
    double held = 0;
    for (w->at[0] = 0; w->at[0] < w->n[0]; w->at[0]++)
        for (w->at[1] = 0; w->at[1] < w->n[1]; w->at[1]++)
            for (w->at[2] = 0; w->at[2] < w->n[2]; w->at[2]++) {
                bool all = true;
                for (int i = 0; i < n; i++)
                    all = all && holds(w, &guard[i]);
                held += all;
            }
    return held / (double)(w->n[0] * w->n[1] * w->n[2]);
}

static int64_t between(Rng *rng, int64_t lo, int64_t hi)
{
    return lo + (int64_t)rng_below(rng, (uint64_t)(hi - lo + 1));
}

static const Arith *random_cond(World *w, Rng *rng)
{
    static const int64_t stride[] = {0, 0, 1, 1, -1, 2, -3, 7, 16, -16};
    const Arith *sum = arith_const(w->ctx, between(rng, -20, 60));
    for (int i = 0; i < VARS; i++) {
        int64_t s = stride[rng_below(rng, COUNTOF(stride))];
        sum = arith_add(w->ctx, sum, arith_mulc(w->ctx, w->var[i], s));
    }
    if (rng_below(rng, 5) == 0)
        sum = arith_addc(w->ctx, arith_mod(w->ctx, sum, arith_const(w->ctx, 6)), -3);
    return sum;
}

static void shares_are_exact(void **state)
{
    (void)state;
    Rng rng = rng_new(11);
    int partial = 0;
    for (int round = 0; round < 400; round++) {
        World w;
        const Arith *cond[3][2];
        Guard guard[3];
        world_open(&w, (int64_t[]){between(&rng, 1, 9), between(&rng, 1, 16),
                                   between(&rng, 2, 12)});
        int n = (int)between(&rng, 0, 3);
        for (int i = 0; i < n; i++) {
            guard[i] = (Guard){cond[i], (int)between(&rng, 1, 2), rng_below(&rng, 3) == 0};
            for (int k = 0; k < guard[i].n; k++)
                cond[i][k] = random_cond(&w, &rng);
        }
        double got = scope_share(&w.scope, guard, n), want = count(&w, guard, n);
        partial += want > 0 && want < 1;
        double again = scope_share(&w.scope, guard, n);
        if (fabs(got - want) > 1e-9 || again != got)
            fail_msg("round %d: %.9g, then %.9g, counted %.9g", round, got, again, want);
        world_close(&w);
    }
    assert_true(partial > 100);
}

// The two sides of a range of one sum of mixed digits: what an interior test looks like.
static void large_boxes(void **state)
{
    (void)state;
    World w;
    world_open(&w, (int64_t[]){4096, 64, 1024});
    const Arith *x = arith_add(w.ctx, arith_mulc(w.ctx, w.var[0], 64), w.var[1]);
    const Arith *cond[] = {
        arith_addc(w.ctx, x, -1),
        arith_sub(w.ctx, arith_const(w.ctx, 4096 * 64 - 2), x),
        arith_addc(w.ctx, w.var[2], -256),
    };
    double want = (4096 * 64 - 2) / (4096.0 * 64) * 0.75;
    Guard guard = {cond, 3, false}, rest = {cond, 3, true};
    assert_true(fabs(scope_share(&w.scope, &guard, 1) - want) < 1e-12);
    assert_true(fabs(scope_share(&w.scope, &rest, 1) - (1 - want)) < 1e-12);
    world_close(&w);
}

static int slow_lines(const LaneValues *lanes, int n, int width, int64_t line)
{
    int64_t seen[LANES_MAX * 8];
    int count = 0;
    for (int i = 0; i < n; i++)
        for (int64_t at = lanes->v[i]; at < lanes->v[i] + width; at++) {
            int64_t l = (int64_t)floor((double)at / (double)line);
            int k = 0;
            while (k < count && seen[k] != l)
                k++;
            if (k == count)
                seen[count++] = l;
        }
    return count;
}

static void lines_are_counted(void **state)
{
    (void)state;
    Rng rng = rng_new(3);
    for (int round = 0; round < 1000; round++) {
        LaneValues lanes = {0};
        int n = (int)between(&rng, 1, LANES_MAX), width = 1 << rng_below(&rng, 3);
        int64_t line = rng_below(&rng, 4) ? 32 : 24, start = between(&rng, -100, 100);
        int64_t step = between(&rng, -40, 40), jitter = between(&rng, 0, 100);
        for (int i = 0; i < n; i++)
            lanes.v[i] = start + i * step + between(&rng, 0, jitter);
        assert_int_equal(lanes_lines(&lanes, n, width, line),
                         slow_lines(&lanes, n, width, line));
    }
}

// Work-items are numbered along x, then y, then z.
static void warps_are_numbered(void **state)
{
    (void)state;
    World w;
    world_open(&w, (int64_t[]){1, 1, 1});
    assert_int_equal(scope_warps(&w.scope), 2);
    for (int warp = 0; warp < 2; warp++) {
        scope_warp(&w.scope, warp);
        for (int i = 0; i < 32; i++) {
            assert_int_equal(w.scope.local_id[0][i], i % 8);
            assert_int_equal(w.scope.local_id[1][i], i / 8);
            assert_int_equal(w.scope.local_id[2][i], warp);
        }
    }
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_exact), cmocka_unit_test(large_boxes),
        cmocka_unit_test(lines_are_counted), cmocka_unit_test(warps_are_numbered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
