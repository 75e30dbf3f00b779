// SPDX-License-Identifier: Apache-2.0
//
// What problems must do, counted by hand; sizes at which a copy is measured; the roofline.

#include "calibrate/ceiling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static Work work_of(const char *text)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse("test", text, &diags);
    Binding size[] = {{"N", 6}, {"M", 4}, {"K", 5}};
    assert_non_null(problem->program);
    assert_true(problem_bind(problem, size, problem->program->sizes.len, &diags));
    Work work = problem_work(problem);
    problem_free(problem);
    arena_free(arena);
    return work;
}

static void expect(const char *text, double bytes, double floats, double doubles)
{
    Work work = work_of(text);
    if (work.bytes != bytes || work.float_flops != floats || work.double_flops != doubles)
        fail_msg("%s: %g B, %g float, %g double", text, work.bytes, work.float_flops,
                 work.double_flops);
}

static void test_int_work(void **state)
{
    (void)state;
    assert_true(work_of("size N\ndef f(x: [N]int) = x |> map(\\e -> e * e + 1)").int_ops ==
                12);
    assert_true(work_of("size N\ndef f(x: [N]int) = x |> map(\\e -> 3 * e + e)").int_ops ==
                0);
    assert_true(work_of("size N\ndef f(x: [N]float) = x |> map(\\e -> e * e)").int_ops ==
                0);
    Work work = {.bytes = 10, .int_ops = 5000};
    Roofline f = roofline_of(&work, &(Ceilings){.copy_gbs = 10, .int_gops = 100});
    assert_true(f.memory_ns == 1 && f.compute_ns == 50 && f.ns == 50);
}

static void test_work(void **state)
{
    (void)state;
    expect("size N\ndef f(x: [N]float) = x |> map(\\e -> 2*e + 1)", 48, 12, 0);
    expect("size N\ndef f(x: [N]double) = x |> map(\\e -> fma(e, e, sqrt(e)))", 96, 0, 18);
    expect("size N\ndef f(x: [N]half) = x |> map(\\e -> e * e)", 24, 3, 0);
    expect("size N\ndef f(x: [N]int) = x |> map(\\e -> e * e)", 48, 0, 0);
    expect("size N\ndef f(x: [N]float) = x |> map(\\e -> if e > 1 then e + 1 else e)", 48,
           6, 0);
    expect("size N, M, K\ndef mm(a: [N][K]float, b: [K][M]float): [N][M]float =\n"
           "  a |> map(\\r -> transpose(b) |> map(\\c ->\n"
           "    zip(r, c) |> reduce(\\s t -> s + t.0 * t.1, 0)))",
           4 * (30 + 20 + 24), 2 * 6 * 4 * 5, 0);
    expect("size N\nfun g(a, b: float): float = a * b - a\n"
           "def f(x: [N]float) = x |> pad(1, 1, clamp) |> slide(3, 1)\n"
           "  |> map(\\w -> g(w[0], w[2]))",
           48, 12, 0);
    // A fold in a function of two indices is computed once for each value of the one it
    // reads.
    const char *sums =
        "size N, M, K\ndef f(a: [N][K]float): [N][M]float =\n"
        "  array2(N, M, \\i j -> reduce(\\s x -> s + x, 0, a[i]) * float(j))";
    expect(sums, 4 * (30 + 24), 6 * 5 + 24, 0);
    expect("size N, M, K\ndef f(a: [N][K]float, b: [M]float): [N][M]float =\n"
           "  array2(N, M, \\i j -> let m = reduce(\\s x -> s + x, 0, a[i]) in\n"
           "    b[j] + reduce(\\s x -> s + x / m, 0, a[i]))",
           4 * (30 + 4 + 24), 6 * 5 + 6 * 5 * 2 + 24, 0);
    expect("size N\ndef f(x: [N]float) = iterate(3, \\y -> map(\\e -> e + 1, y), x)", 48,
           18, 0);
}

// What adds up products of halfs or doubles is bounded by matrix units, where there are
// some.
static void test_products(void **state)
{
    (void)state;
    Work work = work_of("size N, M, K\ndef mm(a: [N][K]half, b: [K][M]half) =\n"
                        "  array2(N, M, \\i j -> reduce(+, 0.0, array(K, \\k ->\n"
                        "    float(a[i][k]) * float(b[k][j]))) + 1)");
    assert_true(work.products[S_HALF] == 2 * 6 * 4 * 5 && work.float_flops == 6 * 4);
    assert_true(work_flops(&work) == 2 * 6 * 4 * 5 + 6 * 4);
    assert_true(roofline_of(&work, &(Ceilings){0, 1}).ns == 6 * 4 * 5 + 6 * 4);
    assert_true(roofline_of(&work, &(Ceilings){0, 1, .matrix = true}).ns == 24);
    work = work_of("size N\ndef f(a, b: [N]double) =\n"
                   "  zip(a, b) |> reduce(\\s p -> s + p.0 * p.1 , 0) |> sqrt");
    assert_true(work.products[S_DOUBLE] == 12 && work.double_flops == 1);
    assert_true(roofline_of(&work, &(Ceilings){0, 1, 1}).ns == 13);
    assert_true(roofline_of(&work, &(Ceilings){0, 1, 1, .matrix = true}).ns == 6);
    work = work_of("size N\ndef f(a: [N]float) = a |> map(\\x -> x * x) |> reduce(+, 0)");
    assert_true(work.products[S_FLOAT] == 0 && work.float_flops == 12);
}

static void test_sizes(void **state)
{
    (void)state;
    DeviceInfo gpu = {.global_bytes = (int64_t)1 << 37};
    assert_int_equal(ceilings_bytes(&gpu, 0), 1 << 30);
    assert_int_equal(ceilings_bytes(&gpu, 1e12), 1 << 30);
    assert_int_equal(ceilings_bytes(&gpu, 8.0 * 4096 * 4096), 1 << 27);
    assert_int_equal(ceilings_bytes(&gpu, 1.3 * (1 << 27)), 1 << 27);
    assert_int_equal(ceilings_bytes(&gpu, 1.5 * (1 << 27)), 1 << 28);
    assert_int_equal(ceilings_bytes(&gpu, 100), 1 << 16);
    gpu.global_bytes = 1 << 20;
    assert_int_equal(ceilings_bytes(&gpu, 0), 1 << 18);
}

static void test_roofline(void **state)
{
    (void)state;
    Work work = {.bytes = 1000, .float_flops = 5000, .double_flops = 100};
    Roofline f = roofline_of(&work, &(Ceilings){10, 100, 1});
    assert_true(f.memory_ns == 100 && f.compute_ns == 100 && f.ns == 100);
    f = roofline_of(&work, &(Ceilings){10, 1000, 1000});
    assert_true(f.memory_ns == 100 && f.compute_ns == 5 && f.ns == 100);
    f = roofline_of(&work, &(Ceilings){0});
    assert_true(f.ns == 0);
}

// 100 bytes in, 100 out; on a processor the data lie beside the buffers.
static void test_fits(void **state)
{
    (void)state;
    static const struct {
        bool is_cpu;
        int64_t memory, buffer;
        const char *wrong;
    } of[] = {{false, 200, 100, NULL},
              {false, 199, 100, "memory"},
              {false, 1000, 99, "`a` of f N=25 takes"},
              {true, 399, 1000, "twice"},
              {true, 400, 100, NULL}};
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem =
        problem_parse("test", "size N def f(a: [N]float): [N]float = map(sqrt, a)", &diags);
    Binding size = {"N", 25};
    assert_true(problem_bind(problem, &size, 1, &diags));
    for (int i = 0; i < COUNTOF(of); i++) {
        DeviceInfo device = {.is_cpu = of[i].is_cpu,
                             .global_bytes = of[i].memory,
                             .alloc_bytes = of[i].buffer};
        diags = (Diags){.arena = arena};
        assert_int_equal(problem_fits(problem, &device, &diags), !of[i].wrong);
        assert_int_equal(diags.world, of[i].wrong != NULL);
        assert_true(!of[i].wrong || strstr(diags.list.at[0].message, of[i].wrong));
    }
    problem_free(problem);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work),     cmocka_unit_test(test_products),
        cmocka_unit_test(test_int_work), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_roofline), cmocka_unit_test(test_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
