// SPDX-License-Identifier: Apache-2.0
//
// Demands of kernels whose accesses can be counted by hand: 32 lanes, lines of 128 bytes.

#include "calibrate/describe.h"
#include "cost/demand.h"
#include "tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *text, *point;
    int64_t n;
    int demand;
    double want;
} Ask;

#define COPY  "size N def copy(a: [N]float): [N]float = a |> map(\\x -> x)"
#define COPY2 "size N def copy(a: [N][N]float): [N][N]float = a |> map2(\\x -> x)"
#define TRANSPOSE                                                                          \
    "size N def tr(a: [N][N]float): [N][N]float = a |> transpose |> map2(\\x -> x)"
#define SUM                                                                                \
    "size N def sums(x, y: [N]float): [N]float = x |> map(\\p -> y |> reduce(\\s q ->\n"   \
    "  s + p * q, 0.0))"
#define ROOTS                                                                              \
    "size N def sums(x, y: [N]float): [N]float = x |> map(\\p -> y |> reduce(\\s q ->\n"   \
    "  sqrt(s + q) + p * q * q, 0.0))"
#define WINDOW                                                                             \
    "size N def w(a: [N][N]float): [N][N]float = a |> pad2(1, 1, clamp) |> slide2(3, 1)\n" \
    "  |> map2(\\p -> p[0][0] + p[2][2])"

// 2^20 elements are 32,768 warps; groups are never fewer than the 132 units.
static const Ask rows[] = {
    {COPY, "lx=256", 1 << 20, DEMAND_WARP, 32768},
    {COPY, "lx=256", 1 << 20, DEMAND_LINE, 32768},
    {COPY, "lx=256", 1 << 20, DEMAND_SECTOR, 4 * 32768},
    {COPY, "lx=256", 1 << 20, DEMAND_ACCESS, 2 * 32768},
    {COPY, "lx=256", 1 << 20, DEMAND_ARRAY, 8 << 20},
    {COPY, "lx=256", 1 << 20, DEMAND_FAR, 0},         // 8 MB fit
    {COPY, "lx=256", 1 << 24, DEMAND_FAR, 128 << 20}, // these do not
    {COPY, "lx=256", 1 << 20, DEMAND_GROUP, 4096},
    {COPY, "lx=16", 1 << 20, DEMAND_WARP, 65536}, // half full
    {COPY, "lx=256 bx=4 vec=4", 1 << 20, DEMAND_LINE, 4 * 8192},
    {COPY, "lx=256 bx=4 vec=4", 1 << 20, DEMAND_BANK, 4 * 8192},
    {COPY, "lx=256 bx=4", 1 << 20, DEMAND_LINE, 4 * 4 * 8192},
    {COPY2, "lx=8 ly=32", 1024, DEMAND_LINE, 4 * 32768},   // four rows
    {COPY2, "lx=8 ly=32", 1024, DEMAND_SECTOR, 4 * 32768}, // of 32 bytes
    {COPY2, "lx=8 ly=32", 1024, DEMAND_BANK, 4 * 32768},   // whose banks are the same
    {TRANSPOSE, "lx=32 ly=8", 1024, DEMAND_LINE, 32 * 32768},
    {TRANSPOSE, "lx=32 ly=8", 1024, DEMAND_BANK, 32 * 32768},
    {SUM, "lx=64 fold=item parts=1", 1 << 14, DEMAND_OPERATE, 16384.0 * 512}, // a fused one
    {SUM, "lx=64 fold=item parts=1", 1 << 14, DEMAND_CHAIN,
     16384}, // one wave of 256 groups
    {SUM, "lx=64 fold=item parts=1", 1 << 14, DEMAND_SLOW, 0},
    {SUM, "lx=64 fold=item parts=1", 1 << 14, DEMAND_FETCH, 16384},
    {ROOTS, "lx=64", 1 << 14, DEMAND_CHAIN, 2 * 16384}, // products do not wait
    {ROOTS, "lx=64", 1 << 14, DEMAND_SLOW, 16384},
    // 18 x 18 elements by 16 x 16 items: along x a warp goes round twice, along y there are
    // 18 rows for 16; two rows of a warp meet in two banks.
    {WINDOW, "lx=16 ly=16 scheme=tiled", 1024, DEMAND_PUT, 2 * 4096 * 8 * 2 * 18 / 16.0},
    {WINDOW, "lx=16 ly=16 scheme=tiled", 1024, DEMAND_MEET, 1 * 4096.0 / (132 * 8)},
};

static double demand_at(const Ask *row)
{
    Arena *arena = arena_new();
    Diags diags;
    DeviceModel device;
    DeviceInfo info;
    diags = (Diags){.arena = arena};
    assert_true(device_model_find("nvidia-h200", &device));
    describe_model(&device, &info);
    describe_device(&info, &device);
    Problem *problem = problem_parse("row", row->text, &diags);
    Binding binding = {"N", row->n};
    assert_true(problem_bind(problem, &binding, 1, &diags));
    Derivation *derivation = derive_new(problem->bound, &info, &diags);
    Point point;
    derive_plain(derivation, &point);
    char name[8], value[16];
    for (const char *at = row->point; at;) {
        assert_int_equal(sscanf(at, "%7[^=]=%15s", name, value), 2);
        assert_true(space_set(derive_space(derivation), &point, name, value));
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    Expr *body = derive_body(derivation, &point, &diags);
    KernelOptions options = derive_options(derivation, &point);
    Unit *unit = lower(problem->bound, body, &options, arena, &diags);
    FeatureSetting setting = {&device, problem->binding, problem->nbinding};
    Demand *demand;
    assert_int_equal(demand_unit(unit, &setting, arena, &demand, NULL), 1);
    double found = demand->value[row->demand];
    derive_free(derivation);
    problem_free(problem);
    arena_free(arena);
    return found;
}

static void demands_by_hand(void **state)
{
    (void)state;
    int wrong = 0;
    for (int i = 0; i < COUNTOF(rows); i++) {
        double found = demand_at(&rows[i]);
        if (fabs(found - rows[i].want) <= 1e-6 * fabs(rows[i].want))
            continue;
        print_message("row %d, %s at %s: %g, not %g\n", i, demand_info[rows[i].demand].name,
                      rows[i].point, found, rows[i].want);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(demands_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
