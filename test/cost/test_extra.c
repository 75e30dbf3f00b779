// SPDX-License-Identifier: Apache-2.0
//
// Features beyond the paper, on kernels small enough to work them out by hand.

#include "calibrate/describe.h"
#include "cost/features.h"
#include "tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

// Sets `name=value ...` in a plain point.
static void set_point(const Space *space, Point *point, const char *text)
{
    char copy[256], *save = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *item = strtok_r(copy, " ", &save); item; item = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(item, '=');
        *eq = 0;
        assert_true(space_set(space, point, item, eq + 1));
    }
    assert_true(space_valid(space, point));
}

// Features of a program at all its sizes = n, at a point, on a model.
static void extract(const char *text, int64_t n, const char *at, const char *device,
                    double out[FEATURES])
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse("test", text, &diags);
    assert_non_null(problem);
    Binding binding[4];
    int sizes = problem->program->sizes.len;
    for (int i = 0; i < sizes; i++)
        binding[i] = (Binding){problem->program->sizes.at[i].name, n};
    DeviceModel model;
    DeviceInfo info;
    assert_true(problem_bind(problem, binding, sizes, &diags));
    assert_true(device_model_find(device, &model));
    describe_model(&model, &info);
    Derivation *derivation = derive_new(problem->bound, &info, &diags);
    assert_non_null(derivation);
    Point point;
    derive_plain(derivation, &point);
    set_point(derive_space(derivation), &point, at);
    Expr *body = derive_body(derivation, &point, &diags);
    KernelOptions options = derive_options(derivation, &point);
    Unit *unit = lower(problem->bound, body, &options, arena, &diags);
    assert_non_null(unit);
    FeatureSetting setting = {&model, problem->binding, problem->nbinding};
    assert_true(features_unit(unit, &setting, out));
    for (int i = 0; i < FEATURES; i++)
        assert_true(isfinite(out[i]) && out[i] >= 0);
    derive_free(derivation);
    problem_free(problem);
    arena_free(arena);
}

static void assert_close(double got, double want)
{
    if (fabs(got - want) > 1e-9 * fmax(1, fabs(want)))
        fail_msg("%.12g, not %.12g", got, want);
}

static const char twice[] = "size N\n"
                            "def twice(x: [N]float): [N]float = x |> map(\\e -> 2 * e)\n";

static void scalars_and_vectors(void **state)
{
    (void)state;
    double f[FEATURES];
    extract(twice, 1 << 20, "lx=256", "nvidia-h200", f);
    assert_close(f[FEATURE_GROUP_SIZE], 256);
    assert_close(f[FEATURE_GROUPS], 4096);
    assert_close(f[FEATURE_OUTPUTS], 1);
    assert_close(f[FEATURE_REDUNDANCY], 1);
    assert_close(f[FEATURE_BYTES_OUTPUT], 8);
    assert_close(f[FEATURE_ACCESSES_32], 2);
    assert_close(f[FEATURE_VECTOR_SHARE], 0);
    assert_close(f[FEATURE_COALESCED], 1);
    assert_close(f[FEATURE_LINES_GROUP], 16);
    assert_close(f[FEATURE_LINES_OUTPUT], 8);
    assert_close(f[FEATURE_FLOPS_OUTPUT], 1);
    assert_close(f[FEATURE_INTENSITY], 1.0 / 8);
    assert_close(f[FEATURE_OCCUPANCY], 1);
    assert_close(f[FEATURE_IN_FLIGHT], 2048 * 4);
    assert_close(f[FEATURE_WAVES], 4096.0 / (132 * 8));
    assert_close(f[FEATURE_TAIL], 4096.0 / (132 * 8) / 4);
    assert_close(f[FEATURE_L1_PRESSURE], 8.0 * 16 * 128 / (256 << 10));
    assert_close(f[FEATURE_L2_PRESSURE], 2.0 * (4 << 20) / (60 << 20));
    extract(twice, 1 << 20, "lx=256 bx=4 vec=4", "nvidia-h200", f);
    assert_close(f[FEATURE_ACCESSES_128], 2);
    assert_close(f[FEATURE_ACCESSES_32], 0);
    assert_close(f[FEATURE_VECTOR_SHARE], 1);
    assert_close(f[FEATURE_CACHE_LINES], 4);
    assert_close(f[FEATURE_COALESCED], 1);
    assert_close(f[FEATURE_LINES_GROUP], 64);
    assert_close(f[FEATURE_IN_FLIGHT], 2048 * 16);
    extract(twice, 1 << 20, "lx=256 bx=16", "nvidia-h200", f);
    assert_close(f[FEATURE_COALESCED], 0);
    assert_close(f[FEATURE_CACHE_LINES], 16);
    extract(twice, 1 << 20, "lx=256 bx=16", "amd-r9-295x2", f);
    assert_close(f[FEATURE_CACHE_LINES], 64);
}

static void local_memory_limits(void **state)
{
    (void)state;
    static const char *const text =
        "size N, M\n"
        "def sum(a: [N][M]float): [N][M]float = a |> pad2(1, 1, clamp) |> slide2(3, 1)\n"
        "  |> map2(\\p -> p[0][1] + p[1][1] + p[2][1])\n";
    double f[FEATURES];
    extract(text, 4096, "lx=16 ly=4 bx=4 by=8 scheme=tiled", "nvidia-h200", f);
    double bytes = 4 * (16 * 4 + 2) * (4 * 8 + 2);
    assert_close(f[FEATURE_LOCAL_MEMORY], bytes);
    assert_close(f[FEATURE_OCCUPANCY], floor(228 * 1024 / bytes) * 64 / 2048);
    assert_close(f[FEATURE_LOADS_OUTPUT], (66.0 * 34) / (64 * 32));
    assert_close(f[FEATURE_BARRIERS], 1);
}

// Every work-item reads a row of its own whole, and all of them the vector.
static void loops_are_followed(void **state)
{
    (void)state;
    static const char *const text =
        "size N\n"
        "def mv(a: [N][N]float, x: [N]float): [N]float = a |> map(\\row ->\n"
        "  zip(row, x) |> reduce(\\sum t -> sum + t.0 * t.1, 0))\n";
    double f[FEATURES];
    extract(text, 1024, "lx=64 fold=item", "nvidia-h200", f);
    assert_close(f[FEATURE_LOOP_BODIES], 1024);
    assert_close(f[FEATURE_LINES_GROUP], 64 * 32 + 32 + 2);
    assert_close(f[FEATURE_LOADS_OUTPUT], 2048);
    assert_close(f[FEATURE_FLOPS_OUTPUT], 2048);
}

static void launches_are_summed(void **state)
{
    (void)state;
    static const char *const text = "size N\n"
                                    "def steps(x: [N]float): [N]float = x |> iterate(8, "
                                    "\\s -> s |> map(\\e -> 2 * e))\n";
    double f[FEATURES];
    extract(text, 4096, "lx=64", "nvidia-h200", f);
    assert_close(f[FEATURE_LAUNCHES], 8);
    assert_close(f[FEATURE_GLOBAL_LOADS], 1);
    assert_close(f[FEATURE_OUTPUTS], 1);
    assert_close(f[FEATURE_BYTES_OUTPUT], 8);
}

// out[g] = x[at[g]] where data says so: made by hand, on a grid of 64 in groups of 32.
static void data_decides(void **state)
{
    (void)state;
    Ir *ir = ir_new();
    ArithCtx *ctx = ir->arith;
    const Arith *n = arith_const(ctx, 64), *zero = arith_const(ctx, 0);
    const Arith *g = arith_var(ctx, "g", zero, arith_const(ctx, 63));
    const Arith *at = arith_var(ctx, "at", NULL, NULL);
    const Type *type = type_scalar(S_FLOAT), *whole = type_scalar(S_INT);
    Buffer index = {.name = "at", .scalar = S_INT, .count = n};
    Buffer x = {.name = "x", .scalar = S_FLOAT, .count = n, .number = 1};
    Buffer out = {
        .name = "out", .scalar = S_FLOAT, .count = n, .number = 2, .role = ROLE_OUTPUT};
    KExpr place = {.kind = K_LOAD, .type = whole, .buffer = &index, .arith = g};
    KExpr value = {.kind = K_LOAD, .type = type, .buffer = &x, .arith = at};
    KExpr test = {.kind = K_LITERAL, .type = type_scalar(S_BOOL), .number = 1};
    Stm read = {.kind = ST_INT, .iter = at, .value = &place};
    Stm write = {.kind = ST_STORE, .buffer = &out, .index = g, .value = &value};
    Stm branch = {.kind = ST_IF, .value = &test};
    Stm loop = {.kind = ST_FOR, .loop = LOOP_GLB, .iter = g, .extent = n, .threads = n};
    VEC_PUSH(ir->arena, &branch.body, &write);
    VEC_PUSH(ir->arena, &loop.body, &read);
    VEC_PUSH(ir->arena, &loop.body, &branch);
    Kernel kernel = {.name = "k",
                     .local = {32, 1, 1},
                     .global = {n, arith_const(ctx, 1), arith_const(ctx, 1)}};
    VEC_PUSH(ir->arena, &kernel.body, &loop);
    Buffer *params[] = {&index, &x, &out};
    for (int i = 0; i < COUNTOF(params); i++)
        VEC_PUSH(ir->arena, &kernel.params, params[i]);
    Unit unit = {.ir = ir, .arena = ir->arena};
    Launch launch = {&kernel, kernel.params.at};
    VEC_PUSH(ir->arena, &unit.kernels, &kernel);
    VEC_PUSH(ir->arena, &unit.launches, launch);
    DeviceModel model;
    double f[FEATURES];
    assert_true(device_model_find("nvidia-h200", &model));
    FeatureSetting setting = {.device = &model};
    assert_true(features_unit(&unit, &setting, f));
    assert_close(f[FEATURE_GLOBAL_LOADS], 1.5);
    assert_close(f[FEATURE_GLOBAL_STORES], 0.5);
    assert_close(f[FEATURE_IFS], 1);
    // One line for what is contiguous; an index read from memory may be anywhere.
    assert_close(f[FEATURE_CACHE_LINES], (1 + 0.5 * 32 + 0.5 * 1) / 2);
    ir_free(ir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_and_vectors), cmocka_unit_test(local_memory_limits),
        cmocka_unit_test(loops_are_followed), cmocka_unit_test(launches_are_summed),
        cmocka_unit_test(data_decides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
