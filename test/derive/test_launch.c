// SPDX-License-Identifier: Apache-2.0
//
// Every valid point can be launched on the device that its space was made for: local
// memory, the shape of groups and their number along each axis are within its limits, and
// no item keeps a row to itself. At sizes where each limit is near, for GPUs that are only
// described.

#include "calibrate/describe.h"
#include "problem/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct {
    const char *text;
    int64_t size[7][2]; // N, M
    bool generic;       // kernels are for all sizes
    bool plain;         // of the plain point alone
} Case;

#define AFFINE    "scan(\\(p, q) (r, s) -> (p * r, r * q + s), (1.0, 0.0))"
#define FIRST_MAX "reduce(\\(m, i) (x, j) -> if x > m then (x, j) else (m, i), (-1e30, 0))"
#define WELFORD                                                                            \
    "map(\\x -> (x, 0.0, 1.0)) |> reduce(\\(m, s, n) (k, t, l) -> let c = n + l in let d " \
    "= "                                                                                   \
    "k - m in if c > 0.0 then (m + d * l / c, s + t + d * d * n * l / c, c) else (m, s, "  \
    "n), (0.0, 0.0, 0.0))"

// Prefixes in the steps of a loop of numbers, of one and of two, and behind such a loop; in
// those of a loop of arrays, and of a loop in a loop.
#define TIMES(T) "map(\\v -> v * x) |> scan(+, " T "(0))"
#define STEPS1(T)                                                                          \
    "def f(a: [N][M]" T                                                                    \
    ") = a |> map(\\r -> iterate(5, \\x -> let s = r |> " TIMES(T) " in reduce(max, " T    \
                                                                   "(0), s), " T "(1)))"
#define STEPS2(T)                                                                          \
    "def f(a: [N][M]" T ") = a |> map(\\r -> iterate(4, \\x y -> let s = r |> " TIMES(     \
        T) " in let t = s |> map(\\v -> v * y) |> scan(max, " T "(0)) in (reduce(max, " T  \
           "(0), t), reduce(+, " T "(0), s)), (" T "(1), " T "(2))))"
#define STEPS3(T)                                                                          \
    "def f(a: [N][M]" T                                                                    \
    ") = a |> map(\\r -> let x = iterate(5, \\x -> let s = r |> " TIMES(                   \
        T) " in reduce(max, " T "(0), s), " T "(1)) in r |> " TIMES(T) ")"
#define STEPS4(T)                                                                          \
    "def f(a: [N][M]" T ") = a |> map(\\r -> iterate(5, \\v -> let s = v |> scan(+, " T    \
    "(0)) in let m = reduce(max, " T "(0), s) in zip(s, r) |> map(\\x y -> x / m + y), "   \
    "r))"
#define STEPS5(T)                                                                          \
    "def f(a: [N][M]" T ") = a |> map(\\r -> iterate(3, \\x -> let v = iterate(2, \\w -> " \
    "w |> pad(1, 1, clamp) |> slide(3, 1) |> map(\\p -> p[0] + p[1] + p[2]), r |> "        \
    "map(\\v -> v * x)) in reduce(+, " T "(0), v), " T "(1)))"
// Arrays that such a step names and reads again.
#define STEPS6(T)                                                                          \
    "def f(a: [N][M]" T ") = a |> map(\\r -> iterate(5, \\x -> let q = r |> map(\\v -> "   \
    "sin(v * x)) in let m = reduce(+, " T "(0), q) in q |> map(\\v -> abs(v - m)) |> "     \
    "reduce(max, " T "(0)), " T "(1)))"
// Prefixes, and loops, within prefixes that are rows.
#define ROWS1(T)                                                                           \
    "def f(a: [N][M]" T ") = a |> scan(\\p r -> let q = zip(p, r) |> map(*) in let s = "   \
    "scan(+, " T "(1), q) in map(\\v -> v / s[3], q), array(M, \\j -> " T "(1)))"
#define ROWS2(T)                                                                           \
    "def f(a: [N][7][M]" T ") = a |> map(\\x -> x |> scan(\\p r -> let q = zip(p, r) |> "  \
    "map(*) in let s = scan(+, " T                                                         \
    "(1), q) in map(\\v -> v / s[3], q), array(M, \\j -> " T "(1))))"
#define ROWS3(T)                                                                           \
    "def f(a: [N][7][M]" T ") = a |> map(\\x -> x |> scan(\\p r -> let v = iterate(3, "    \
    "\\w -> w |> pad(1, 1, clamp) |> slide(3, 1) |> map(\\q -> q[0] + q[1] + q[2]), "      \
    "zip(p, r) |> map(*)) in map(\\e -> " T "(2) * e, v), array(M, \\j -> " T "(1))))"
#define LENGTHS                                                                            \
    {                                                                                      \
        {500, 500}, {500, 5000}, {500, 7000}, {500, 12000}, {500, 16000}, {500, 20000},    \
        {                                                                                  \
            500, 40000                                                                     \
        }                                                                                  \
    }

static const Case cases[] = {
    // Vectors, held and folded.
    {"def f(a: [N][M]float4) = a |> map(\\r -> let m = reduce(+, 0.0, r) in r |> map(\\x "
     "-> x - m))",
     {{20, 1000000}, {2000, 12000}, {100000, 256}}},
    {"def f(a: [N][M]float8) = a |> map(\\r -> let m = reduce(+, 0.0, r) in r |> map(\\x "
     "-> x / m) |> scan(+, 0.0))",
     {{20, 1000000}, {2000, 12000}, {100000, 256}}},
    {"def f(a, b: [M]double8) = zip(a, b) |> reduce(\\s t -> (s.0 + t.0, s.1 + t.1), (0.0, "
     "0.0))",
     {{1, 1000003}}},
    // Folds of tuples whose items are given neighbours, also computed ones.
    {"def f(a: [N][M]float) = a |> map(\\r -> zip(r, r |> map(\\x -> -1e30)) |> "
     "reduce(\\(m, "
     "n) (x, y) -> if x > m then (x, max(m, y)) else (m, max(x, n)), (-1e30, -1e30)))",
     {{4096, 4096}, {200000, 300}, {500, 10240}}},
    {"def f(a: [N][M]float) = a |> map(\\r -> let s = r |> " WELFORD
     " in r |> map(\\x -> (x - s.0) / (1.0 + s.1)))",
     {{500, 54500}, {500, 10240}, {200000, 300}}},
    {"def f(a: [N][M]float) = a |> map(\\r -> let s = zip(r, array(M, \\j -> j)) "
     "|> " FIRST_MAX " in r |> map(\\x -> x - s.0))",
     {{500, 56064}, {500, 10240}, {20, 1000003}}},
    // Prefixes of pairs, and of rows that no group can hold.
    {"def f(a, b: [N][M]float) = zip(a, b) |> map(\\r q -> zip(r, q) |> " AFFINE
     " |> map(\\t -> t.1))",
     {{600, 2400}, {4096, 4096}, {20, 10000}}},
    {"def f(a: [N][M]float) = a |> map(\\r -> let c = scan(+, 0.0, r) in let t = "
     "reduce(max, "
     "0.0, c) in c |> map(\\x -> x / t))",
     {{20, 1000003}, {600, 100000}, {500, 28032}}},
    // Prefixes of prefixes, also of what is read from its end, of two, of columns, and
    // folds
    // of them.
    {"def f(a: [N][M]double) = a |> map(\\r -> r |> scan(max, double(0)) |> scan(+, "
     "double(0)))",
     {{4096, 24000}, {20, 1000003}, {500, 6000}}},
    {"def f(a: [N][M]float) = a |> map(\\r -> r |> gather(\\i -> M - 1 - i) |> scan(max, "
     "0.0) |> map(abs) |> scan(+, 0.0) |> gather(\\i -> M - 1 - i))",
     {{20, 1000003}, {600, 28000}}},
    {"def f(a: [N][M]float) = a |> map(\\r -> zip(scan(max, 0.0, r), scan(+, 0.0, r)) |> "
     "map(*) |> scan(+, 0.0) |> reduce(max, 0.0))",
     {{20, 1000003}, {600, 28000}}},
    {"def f(a: [N][M]float) = a |> transpose |> map(\\c -> let s = scan(max, 0.0, c) in "
     "(s, "
     "scan(+, 0.0, s)))",
     {{200000, 20}, {4096, 4096}}},
    // Prefixes of columns that become rows, alone, in batches, and beside a long one.
    {"def f(a: [N][M]float) = a |> transpose |> map(scan(+, 0.0))",
     {{8192, 8000}, {1000003, 20}, {7, 5000}}},
    {"def f(a: [N][M][33]double) = a |> map(transpose) |> map2(scan(max, double(-9)))",
     {{400, 401}, {3, 100000}}},
    {"def f(a: [N][M]float, b: [N]float) = let s = scan(+, 0.0, b) in (s, a |> transpose "
     "|> map(scan(+, 0.0)))",
     {{80000, 800}, {300, 5000}}},
    {"def f(a: [N][M]double) = a |> map(\\r -> let s = reduce(max, double(0), r) in let c "
     "= scan(+, double(0), r) in let d = scan(max, double(-1e30), c) in zip(c, d) |> "
     "map(\\x y -> x - y * s))",
     {{20, 1000003}, {600, 100000}}},
    {"def f(a: [N][M]float) = a |> map(\\r -> let c = scan(\\y x -> 0.9 * y + x, 0.0, r) "
     "in let t = reduce(max, 0.0, c) in c |> map(\\x -> x / t))",
     {{20, 1000003}, {600, 100000}}},
    // Prefixes that are rows, and their last step beside them: of many rows, too.
    {"def f(a: [N][M][65]float) = a |> map(\\x -> let c = x |> scan(\\p r -> let q = "
     "zip(p, r) |> map(\\u v -> 0.5 * u + v) in let s = reduce(+, 0.0, q) in map(\\v -> v "
     "/ s, q), array(65, \\i -> 1.0)) in (c, c[M - 1]))",
     {{64, 4097}, {2048, 4097}, {40000, 1000}, {4096, 100}}},
    // Beside prefixes that groups share, some that none does: who reads them finds more.
    {"def f(a: [N][M]float, k: [7]float) = (map(scan(+, 0.0), a), a |> map(\\r -> "
     "scan(max, 0.0, r) |> map(\\v -> reduce(+, 0.0, scan(+, v, k)))))",
     {{90, 9000}, {20, 1000003}}},
    {"def f(a: [N][M]float, k: [N][16]float) = zip(a, k) |> map(\\r q -> let h = q |> "
     "map(\\c -> r |> map(\\v -> (exp(v * c), v)) |> " AFFINE
     ") in array(M, \\t -> reduce(+, 0.0, array(16, \\n -> q[n] * h[n][t].1))))",
     {{2048, 4096}, {90, 9000}}},
    // Folds of rows to several rows.
    {"def f(a: [N][M]float) = reduce(\\s r -> (zip(s.0, r) |> map(+), zip(s.1, r) |> "
     "map(max)), (array(M, \\j -> 0.0), array(M, \\j -> -1e30)), a)",
     {{20, 1000003}, {4096, 4096}}},
    {"def f(a: [N][M]float) = reduce(\\s t -> zip(s, t.0) |> map(\\p x -> if x > p.0 then "
     "(x, t.1) else p), array(M, \\j -> (-1e30, 0)), zip(a, array(N, \\i -> i)))",
     {{20, 1000003}, {200000, 300}}},
    // Rows that are made of numbers, by steps or at once, and folds and rows in turn.
    {"def f(a: [N]float) = a |> map(\\x -> (iterate(M, \\v -> array(300, \\j -> 0.5 * "
     "v[min(j + 1, 299)] + v[j]), array(300, \\j -> x * float(j))))[0])",
     {{100000, 9}, {7, 300}}},
    {"def f(a: [N]float) = a |> map(\\x -> let p = array(M, \\i -> sin(x * float(i))) in "
     "let m = reduce(+, 0.0, p) in (m, p |> map(\\v -> (v - m) * (v - m)) |> reduce(+, "
     "0.0)))",
     {{16, 100000}, {5000, 3000}}},
    {"def f(a: [N][M]float) = a |> map(\\r -> iterate(8, \\s -> r |> map(\\x -> if x < s "
     "then x else -1e30) |> reduce(max, -1e30), 1e30))",
     {{1024, 65536}, {100000, 300}}},
    {"def f(a: [N][M][300]float) = a |> map(\\x -> x |> scan(\\p r -> zip(r, p |> pad(1, "
     "1, clamp) |> slide(3, 1)) |> map(\\v w -> v + w[0] * w[2]), array(300, \\j -> 0.0)))",
     {{32, 1080}, {1, 9000}}},
    {"def f(a: [N][M]float) = a |> scan(\\p r -> let q = zip(p, r) |> map(*) in let s = "
     "reduce(+, 1.0, q) in map(\\v -> v / s, q), array(M, \\j -> 1.0))",
     {{300, 1920}, {20, 1000003}}},
    {"def f(a: [N][300]float, b: [M][300]float) = a |> map(\\p -> b |> map(\\q -> 2 * "
     "iterate(3, \\s -> s + (zip(p, q) |> map(\\x y -> x * y - s) |> reduce(+, 0.0)), "
     "0.0)))",
     {{4096, 4096}, {3, 100000}}},
    {STEPS1("float"), LENGTHS, .plain = true},
    {STEPS2("float"), LENGTHS, .plain = true},
    {STEPS3("float"), LENGTHS, .plain = true},
    {STEPS4("float"), LENGTHS, .plain = true},
    {STEPS5("float"), LENGTHS, .plain = true},
    {STEPS6("float"), LENGTHS, .plain = true},
    {ROWS1("float"), LENGTHS, .plain = true},
    {ROWS2("float"), LENGTHS, .plain = true},
    {ROWS3("float"), LENGTHS, .plain = true},
    {STEPS1("double"), LENGTHS, .plain = true},
    {STEPS2("double"), LENGTHS, .plain = true},
    {STEPS3("double"), LENGTHS, .plain = true},
    {STEPS4("double"), LENGTHS, .plain = true},
    {STEPS5("double"), LENGTHS, .plain = true},
    {STEPS6("double"), LENGTHS, .plain = true},
    {ROWS1("double"), LENGTHS, .plain = true},
    {ROWS2("double"), LENGTHS, .plain = true},
    {ROWS3("double"), LENGTHS, .plain = true},
    {STEPS1("float"), {{500, 16900}, {100, 3000}}},
    {STEPS2("double"), {{500, 5900}, {100, 1500}}},
    {STEPS3("float"), {{500, 3500}, {100, 1500}}},
    {STEPS4("float"), {{500, 5300}}},
    {STEPS6("float"), {{500, 9000}, {500, 19000}}},
    {ROWS2("float"), {{500, 26000}, {500, 5000}}},
    {ROWS1("double"), {{20, 40000}, {20, 100003}}},
    {ROWS3("double"), {{50, 40000}}},
    {"def f(a: [N][M]double) = a |> scan(\\p r -> zip(p, r) |> map(*) |> scan(+, "
     "double(0)), array(M, \\j -> double(1)))",
     {{20, 4000}, {20, 100003}}},
    // Streams of many rows, and of several arrays.
    {"def f(a: [N][M]float) = iterate(8, \\v -> v |> pad2(1, 1, clamp) |> slide2(3, 1) |> "
     "map2(\\w -> 0.25 * (w[0][1] + w[2][1] + w[1][0] + w[1][2])), a)",
     {{10000000, 8}, {3000000, 40}, {4096, 4096}}},
    {"def f(a, b: [N][M][256]float) = iterate(4, \\u v -> (v, zip3(u, v |> pad3(1, 1, 0.0) "
     "|> slide3(3, 1)) |> map3(\\o w -> 0.3 * (w[0][1][1] + w[2][1][1] + w[1][0][1] + "
     "w[1][2][1]) - o)), (a, b))",
     {{256, 256}, {1000000, 16}}},
    {"def f(a: [N][M]float) = let b = a |> pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\w "
     "-> "
     "w[0][1] + w[2][1]) in b |> pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\w -> w[1][0] "
     "* "
     "w[1][2])",
     {{3000000, 40}}},
    // More rows than groups along y, in a kernel for any number of them.
    {"def f(a: [N][M]float) = a |> pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\w -> "
     "w[0][1] + w[2][1])",
     {{10000000, 40}, {40, 10000000}},
     true},
    {"def f(a: [N][M]float) = a |> map(map(\\x -> 2 * x))", {{10000000, 40}}, true},
    // Windows of small arrays.
    {"def f(a: [N][M][3]double) = a |> pad2(2, 2, clamp) |> slide2(5, 1) |> map2(\\w -> "
     "w[0][0][0] + w[4][4][2])",
     {{4096, 4096}}},
};

static const struct {
    const char *model, *target;
} devices[] = {{"nvidia-h200", "cuda"},
               {"nvidia-h200", "opencl"},
               {"nvidia-titan-black", "cuda"},
               {"amd-r9-295x2", "opencl"}};

typedef struct {
    const char *text;
    Problem *problem;
    DeviceInfo info;
    const Target *target;
    Derivation *derivation;
    Diags *diags;
} Opened;

static int64_t local_of(const Opened *x, const Kernel *kernel)
{
    int64_t bytes = 0;
    for (int i = 0; i < kernel->locals.len; i++)
        bytes += problem_number(x->problem, kernel->locals.at[i]->count) *
                 target_bytes(x->target, kernel->locals.at[i]->scalar);
    return MAX(bytes, emit_local_most(x->target, kernel));
}

static bool launches(const Opened *x, const Kernel *kernel)
{
    enum { KEPT_MOST = 512 << 10 }; // what CUDA gives an item
    int64_t items = 1;
    bool ok = true;
    for (int d = 0; d < 3; d++) {
        int64_t groups = problem_number(x->problem, kernel->global[d]) / kernel->local[d];
        items *= kernel->local[d];
        ok &= kernel->local[d] <= x->info.max_item[d] && groups > 0 &&
              groups <= (d ? 65535 : INT32_MAX);
    }
    return ok && items <= x->info.max_group && local_of(x, kernel) <= x->info.local_bytes &&
           (kernel_private_bytes(kernel) <= KEPT_MOST);
}

static void check_point(const Opened *x, const Point *point)
{
    Arena *scratch = arena_new();
    ArenaMark mark = arena_mark(x->problem->ir->arena);
    const Space *space = derive_space(x->derivation);
    const char *text = point_text(space, point, scratch);
    if (!space_valid(space, point))
        fail_msg("%s\n%s: not valid on %s: %s", x->text, problem_label(x->problem),
                 x->info.name, text);
    Unit *unit = derive_unit(x->derivation, point, true, scratch, x->diags);
    for (int i = 0; unit && i < unit->launches.len; i++)
        if (!launches(x, unit->launches.at[i].kernel))
            fail_msg("%s\n%s: kernel %d cannot be launched on %s (%s): %s", x->text,
                     problem_label(x->problem), i, x->info.name, target_name(x->target),
                     text);
    arena_reset(x->problem->ir->arena, mark);
    arena_free(scratch);
}

static void check_points(Opened *x, bool plain)
{
    enum { POINTS = 20 };
    Point first[FIRST_MOST], point;
    Rng rng = rng_new(3);
    derive_plain(x->derivation, &point);
    check_point(x, &point);
    if (plain)
        return;
    int n = derive_first(x->derivation, first, FIRST_MOST);
    for (int i = 0; i < n; i++)
        check_point(x, &first[i]);
    for (int i = 0; i < POINTS; i++) {
        space_sample(derive_space(x->derivation), &rng, &point);
        check_point(x, &point);
    }
}

static void check_case(const Case *c, const int64_t size[2], const char *model,
                       const char *target)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    DeviceModel described;
    const char *generic = c->generic ? " generic" : "";
    Opened x = {.text = c->text, .target = target_find(target), .diags = &diags};
    const Binding binding[] = {{"N", size[0]}, {"M", size[1]}};
    assert_true(device_model_find(model, &described));
    describe_model(&described, &x.info);
    describe_target(target, &x.info);
    x.problem = problem_parse(
        "f", arena_printf(arena, "size N%s, M%s\n%s", generic, generic, c->text), &diags);
    assert_non_null(x.problem);
    assert_true(problem_bind(x.problem, binding, 2, &diags));
    x.derivation = derive_new(x.problem->general, &x.info, &diags);
    assert_non_null(x.derivation);
    check_points(&x, c->plain);
    derive_free(x.derivation);
    problem_free(x.problem);
    arena_free(arena);
}

static void test_points_can_be_launched(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(cases); i++)
        for (int k = 0; k < COUNTOF(cases[i].size) && cases[i].size[k][0]; k++)
            for (int d = 0; d < COUNTOF(devices); d++)
                check_case(&cases[i], cases[i].size[k], devices[d].model,
                           devices[d].target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_points_can_be_launched)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
