// SPDX-License-Identifier: Apache-2.0
//
// The worked examples of paper 000, sections 4.2.2, 4.2.3 and 4.3, as written and as
// emitted.

#include "calibrate/describe.h"
#include "cost/features.h"
#include "tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

typedef struct {
    int64_t n, local, global;
    int line_bytes; // 0: the model's
} Setup;

// Features of a lowered program text at N = n, on a Titan Black.
static void extract(const char *text, Setup setup, double expression[FEATURES],
                    double kernels[FEATURES])
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse("test", text, &diags);
    Binding binding = {"N", setup.n};
    DeviceModel model;
    bool ok = problem && problem_bind(problem, &binding, 1, &diags) &&
              device_model_find("nvidia-titan-black", &model);
    if (ok) {
        model.line_bytes = setup.line_bytes ? setup.line_bytes : 128;
        FeatureSetting setting = {&model, &binding, 1};
        KernelOptions options = {
            .local = {setup.local}, .global = {setup.global}, .unroll_cap = 64};
        Expr *body = problem->bound->main->body;
        Unit *unit = lower(problem->bound, body, &options, arena, &diags);
        Unit *written = lower_as_written(problem->bound, body, &options, arena, &diags);
        ok = unit && features_unit(unit, &setting, kernels) && written &&
             features_unit(written, &setting, expression);
    }
    Buf out = buf_new();
    diags_print(&out, &diags);
    if (out.len)
        print_message("%s", out.text);
    buf_release(&out);
    problem_free(problem);
    arena_free(arena);
    assert_true(ok);
}

static double threads(const double *f)
{
    return f[FEATURE_GLOBAL_SIZE_0] * f[FEATURE_GLOBAL_SIZE_1] * f[FEATURE_GLOBAL_SIZE_2];
}

static void assert_close(double got, double want)
{
    if (!(got - want < 1e-9 && want - got < 1e-9))
        fail_msg("%.12g, not %.12g", got, want);
}

// Listing 3: N/64 groups; 2N global loads, N local stores, N local loads, N global stores.
static void memory_counts(void **state)
{
    (void)state;
    static const char *const text =
        "size N\n"
        "fun add(x, y: float): float = x + y\n"
        "fun multByTwo(x: float): float = 2 * x\n"
        "def example(arg0, arg1: [N]float) =\n"
        "  join(mapWrg0(\\x -> mapLcl0(multByTwo,\n"
        "    toLocal(mapLcl0(\\t -> add(t.0, t.1), x))), split(64, zip(arg0, arg1))))\n";
    double f[2][FEATURES];
    const double n = 8192;
    extract(text, (Setup){.n = 8192, .local = 64}, f[0], f[1]);
    for (int i = 0; i < 2; i++) {
        assert_close(threads(f[i]), n);
        assert_close(f[i][FEATURE_GLOBAL_LOADS] * threads(f[i]), 2 * n);
        assert_close(f[i][FEATURE_LOCAL_STORES] * threads(f[i]), n);
        assert_close(f[i][FEATURE_LOCAL_LOADS] * threads(f[i]), n);
        assert_close(f[i][FEATURE_GLOBAL_STORES] * threads(f[i]), n);
        assert_close(f[i][FEATURE_GLOBAL_LOADS], 2);
        assert_close(f[i][FEATURE_LOCAL_SIZE_0], 64);
        assert_close(f[i][FEATURE_LOCAL_MEMORY], 64 * 4);
        assert_close(f[i][FEATURE_CACHE_LINES], 1);
        assert_close(f[i][FEATURE_LOOP_BODIES], 0);
        // Every work-item reads what it wrote itself.
        assert_close(f[i][FEATURE_BARRIERS], 0);
    }
    assert_close(f[1][FEATURE_GROUPS], n / 64);
}

// As Listing 3 with 32 work-items a group (a loop of two), 128 (an if), and a group that
// reads what others wrote (a barrier).
static void loops_of_groups(void **state)
{
    (void)state;
    static const char *const text =
        "size N\n"
        "def example(a: [N]float) =\n"
        "  join(mapWrg0(\\x -> mapLcl0(\\e -> 2 * e, gather(\\i -> 63 - i,\n"
        "    toLocal(mapLcl0(\\e -> e, x)))), split(64, a)))\n";
    double f[2][FEATURES];
    extract(text, (Setup){.n = 8192, .local = 32}, f[0], f[1]);
    for (int i = 0; i < 2; i++) {
        assert_close(f[i][FEATURE_LOOP_BODIES], 4);
        assert_close(f[i][FEATURE_IFS], 0);
        assert_close(f[i][FEATURE_BARRIERS], 1);
        assert_close(f[i][FEATURE_GLOBAL_LOADS], 2);
    }
    extract(text, (Setup){.n = 8192, .local = 128}, f[0], f[1]);
    for (int i = 0; i < 2; i++) {
        assert_close(f[i][FEATURE_LOOP_BODIES], 0);
        assert_close(f[i][FEATURE_IFS], 2);
        assert_close(f[i][FEATURE_GLOBAL_LOADS], 0.5);
    }
}

// Listing 4 at a split factor.
static void lines_of(int n, int line_bytes, double want)
{
    char text[256];
    snprintf(
        text, sizeof text,
        "size N\n"
        "fun f(x: float): float = x + 1\n"
        "def example(arg: [N]float) = join(mapGlb0(\\r -> mapSeq(f, r), split(%d, arg)))\n",
        n);
    double f[2][FEATURES];
    extract(text, (Setup){.n = 1 << 18, .local = 64, .line_bytes = line_bytes}, f[0], f[1]);
    for (int i = 0; i < 2; i++) {
        assert_close(f[i][FEATURE_CACHE_LINES], want);
        assert_close(f[i][FEATURE_GLOBAL_LOADS], n);
        assert_close(f[i][FEATURE_LOOP_BODIES], n == 1 ? 0 : n);
    }
}

// One line for n = 1, 32 for n >= 32, with 32 words a line and 32 lanes. For n = 4 the
// paper says 8; by its own list {0, 4/32, ..., 124/32} it is 4, and 8 with 16 words a line.
static void access_patterns(void **state)
{
    (void)state;
    lines_of(1, 128, 1);
    lines_of(4, 128, 4);
    lines_of(4, 64, 8);
    lines_of(8, 128, 8);
    lines_of(32, 128, 32);
    lines_of(64, 128, 32);
}

// Listing 5: one work-item an element needs no loop for them, fewer do (Listing 6), more an
// if; the reduction is a loop of 3, and the clamp counts for nothing.
static void stencil_control(void **state)
{
    (void)state;
    static const char *const text =
        "size N\n"
        "def stencil(input: [N]float) =\n"
        "  mapGlb0(\\w -> reduceSeq(+, 0, w), slide(3, 1, pad(1, 1, clamp, input)))\n";
    double f[2][FEATURES];
    extract(text, (Setup){.n = 4096, .local = 64}, f[0], f[1]);
    for (int i = 0; i < 2; i++) {
        assert_close(f[i][FEATURE_IFS], 0);
        assert_close(f[i][FEATURE_LOOP_BODIES], 3);
        assert_close(f[i][FEATURE_GLOBAL_LOADS], 3);
        assert_close(f[i][FEATURE_GLOBAL_STORES], 1);
    }
    assert_close(f[0][FEATURE_CACHE_LINES], 1);
    extract(text, (Setup){.n = 4096, .local = 64, .global = 1024}, f[0], f[1]);
    for (int i = 0; i < 2; i++) {
        assert_close(f[i][FEATURE_IFS], 0);
        assert_close(f[i][FEATURE_LOOP_BODIES], 4 + 4 * 3);
        assert_close(f[i][FEATURE_GLOBAL_LOADS], 4 * 3);
    }
    extract(text, (Setup){.n = 4096, .local = 64, .global = 8192}, f[0], f[1]);
    for (int i = 0; i < 2; i++) {
        assert_close(f[i][FEATURE_IFS], 1);
        assert_close(f[i][FEATURE_LOOP_BODIES], 1.5);
        assert_close(f[i][FEATURE_GLOBAL_LOADS], 1.5);
        assert_close(f[i][FEATURE_GLOBAL_STORES], 0.5);
    }
}

static void names_are_columns(void **state)
{
    (void)state;
    for (int i = 0; i < FEATURES; i++) {
        const char *name = feature_info[i].name;
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789"),
                         strlen(name));
        assert_true((feature_info[i].group == FEATURES_EXTRA) == (i >= FEATURES_PAPER));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(name, feature_info[k].name);
    }
}

static void device_models(void **state)
{
    (void)state;
    int n;
    const char *const *id = device_model_ids(&n);
    DeviceModel model, same;
    assert_true(n >= 5);
    for (int i = 0; i < n; i++) {
        DeviceInfo info;
        assert_true(device_model_find(id[i], &model));
        assert_true(model.warp <= LANES_MAX && model.local_bytes >= 32768);
        describe_model(&model, &info);
        describe_device(&info, &same);
        assert_int_equal(same.l2_bytes, model.l2_bytes);
        assert_int_equal(same.mp_registers, model.mp_registers);
    }
    assert_false(device_model_find("nvidia", &model));
    model = (DeviceModel){.name = "some processor", .is_cpu = true, .max_group = 4096};
    device_model_complete(&model);
    assert_true(model.warp == 1 && model.units == 1 && model.l2_bytes > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_counts),     cmocka_unit_test(loops_of_groups),
        cmocka_unit_test(access_patterns),   cmocka_unit_test(stencil_control),
        cmocka_unit_test(names_are_columns), cmocka_unit_test(device_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
