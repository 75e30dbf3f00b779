// SPDX-License-Identifier: Apache-2.0
//
// The reference's bounds: no smaller than what another order or one rounding more does, 0
// where nothing rounds, endless where a decision is in doubt, and tight enough that what is
// wrong by a little is outside.
#include "tune/tune.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 64 };

// The outputs of a program over a: [N]float; owner: arena. patience_s: as of a Workplace.
static ProblemData *judged_in(double patience_s, const char *body, const double *a,
                              Arena *arena, const char **how)
{
    Diags diags = {.arena = arena};
    char folder[] = "/tmp/forewarp-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *text = arena_printf(arena, "size N\n%s\n", body);
    Problem *problem = problem_parse("p.fw", text, &diags);
    const Binding size = {.name = "N", .value = N};
    assert_true(problem_bind(problem, &size, 1, &diags));
    Value **inputs = problem_inputs(problem, 1, arena);
    for (int i = 0; i < N; i++)
        inputs[0]->plane[0][i] = a[i];
    ProblemData *data = data_new(problem, inputs, arena);
    const Workplace place = {.folder = folder, .patience_s = patience_s};
    assert_true(reference_compute(problem, data, "host", &place, arena, how, &diags));
    problem_free(problem);
    remove_tree(folder);
    return data;
}

// With bounds.
static ProblemData *judged(const char *body, const double *a, Arena *arena,
                           const char **how)
{
    ProblemData *data = judged_in(0, body, a, arena, how);
    assert_non_null(data->buffer[data->ninput].bound);
    return data;
}

static ProblemData *of(const char *expression, const double *a, Arena *arena)
{
    const char *how;
    return judged(arena_printf(arena, "def p(a: [N]float): [N]float = %s", expression), a,
                  arena, &how);
}

static const float *bounds(const ProblemData *data)
{
    return data->buffer[data->ninput].bound;
}

static void test_rounding(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    double a[N];
    for (int i = 0; i < N; i++)
        a[i] = (float)(0.1 * (i + 1));
    ProblemData *data = of("map(\\x -> x * x + 0.1, a)", a, arena);
    const float *expect = data->buffer[1].expect, *bound = bounds(data);
    for (int i = 0; i < N; i++) {
        float x = (float)a[i], twice = x * x, right = twice + 0.1f;
        assert_true(fabsf(right - expect[i]) <= bound[i]);
        assert_true(fabsf(fmaf(x, x, 0.1f) - expect[i]) <= bound[i]);
        assert_true(bound[i] < 4e-7f * expect[i]); // a few units in the last place
    }
    // What is exact has no bound: copies, sums of small whole numbers in any order.
    for (int i = 0; i < N; i++)
        a[i] = i % 7 - 3;
    bound = bounds(
        of("let s = reduce(+, 0, map(\\x -> x * x, a)) in map(\\x -> x + s, a)", a, arena));
    for (int i = 0; i < N; i++)
        assert_true(bound[i] == 0);
    arena_free(arena);
}

static void test_any_order(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    double a[N];
    for (int i = 0; i < N; i++)
        a[i] = i == 0 ? 1e8 : i == N - 1 ? -1e8 : 0.3;
    ProblemData *data =
        of("let s = reduce(+, 0, a) in map(\\x -> 0.0 * x + s, a)", a, arena);
    float one = 0, other = 0, expect = ((const float *)data->buffer[1].expect)[1];
    for (int i = 0; i < N; i++) {
        one += (float)a[i];
        other += (float)a[(i + N / 2) % N];
    }
    assert_true(one != other);
    assert_true(fabsf(one - expect) <= bounds(data)[1]);
    assert_true(fabsf(other - expect) <= bounds(data)[1]);
    arena_free(arena);
}

// Without bounds the tolerance is what rounding does to the folds.
static void test_no_bounds(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    double a[N];
    const char *how;
    for (int i = 0; i < N; i++)
        a[i] = 0.5 + i / 64.0;
    static const struct {
        const char *type;
        double least, most;
    } known[] = {{"half", 0.03, 0.04}, {"float", 1e-4, 1e-4}};
    // Predicted to take longer than there is time for, and found to on the way.
    static const double patience_s[] = {1e-15, 1e-3};
    for (int i = 0; i < 2 * COUNTOF(known); i++) {
        const char *type = known[i / 2].type;
        const char *body = arena_printf(arena,
                                        "def p(a: [N]%s) = let s = reduce(+, %s(0), a) in "
                                        "map(\\x -> x + s, a)",
                                        type, type);
        ProblemData *data = judged_in(patience_s[i % 2], body, a, arena, &how);
        assert_non_null(strstr(how, "bounds would take long"));
        assert_null(data->buffer[data->ninput].bound);
        assert_true(data->tolerance >= known[i / 2].least &&
                    data->tolerance <= known[i / 2].most);
    }
    arena_free(arena);
}

// Steps that multiply by 4 end beyond all numbers for half of the elements. Of the others,
// which reach 1e32 and more, each is as near as rounding leaves it; also without bounds.
static void test_diverging(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    double a[N];
    const char *how,
        *body = "def p(a: [N]float) = iterate(54, \\x -> map(\\y -> 4.0 * y + 0.3, x), a)";
    for (int i = 0; i < N; i++)
        a[i] = i % 2 ? 1e9 : 0.5 + i;
    ProblemData *data = judged_in(1e-15, body, a, arena, &how);
    const RunnerBuffer *out = &data->buffer[data->ninput];
    const float *expect = out->expect;
    assert_non_null(strstr(how, "32 are undecided: their steps diverge"));
    for (int i = 0; i < N; i++)
        assert_true(i % 2
                        ? isinf(out->bound[i])
                        : expect[i] > 1e32 && out->bound[i] <= 1e-3f * expect[2 * (N / 4)]);
    arena_free(arena);
}

// Without bounds as many elements are spared as a changed bit takes far, by a decision or
// by what cancels; or integers that all change may differ by more than that; else none.
static void test_spared(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t spared;
        float bound;
    } programs[] = {
        {"map(\\x -> if x > 100.5 then 2.0 * x else x, a)", 0, 0},
        {"map(\\x -> if x * 3.0 > 6.0 then 2.0 else 1.0, a)", 4, 0},
        {"map(\\x -> int(floor(x * 3.0)), a)", 0, 32},
        {"map(\\x -> 1.0 / (x * 3.0 - 6.000001), a)", 4, 0},
        {"map(\\x -> 1.0 / (x * 3.0 + 6.000001), a)", 0, 0},
    };
    for (int k = 0; k < COUNTOF(programs); k++) {
        Arena *arena = arena_new();
        const char *how;
        double a[N];
        for (int i = 0; i < N; i++)
            a[i] = k % 2 ? 2.0 + (i > 0) * (i % 2 ? 1 : -1) : (float)(i / 3.0);
        ProblemData *data = judged_in(
            1e-15, arena_printf(arena, "def p(a: [N]float) = %s", programs[k].text), a,
            arena, &how);
        const RunnerBuffer *out = &data->buffer[data->ninput];
        assert_non_null(strstr(how, "bounds would take long"));
        assert_int_equal(out->spared, programs[k].spared);
        assert_int_equal(out->bound != NULL, programs[k].bound > 0);
        assert_true(!out->bound || out->bound[0] >= programs[k].bound);
        assert_int_equal(strstr(how, "takes them further") != NULL, out->spared > 0);
        arena_free(arena);
    }
}

static void test_decisions(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    double a[N];
    for (int i = 0; i < N; i++)
        a[i] = 0.25 * (i + 1);
    // Two ways to the same number: which is larger is in doubt for all that round.
    const float *bound = bounds(
        of("map(\\x -> let y = x / 3.0 in if y * 3.0 > x then 1.0 else 2.0, a)", a, arena));
    for (int i = 0; i < N; i++)
        assert_true(bound[i] >= 1 && bound[i] < 2); // both outcomes
    bound = bounds(of("map(\\x -> floor(x / 3.0 * 3.0), a)", a, arena));
    for (int i = 0; i < N; i++)
        assert_true(i % 4 == 3 ? bound[i] >= 1 && bound[i] < 1.01 : bound[i] == 0);
    bound = bounds(
        of("map(\\x -> let i = int(x / 0.25 * 1.0) in a[max(0, min(i - 1, N - 1))], a)", a,
           arena));
    for (int i = 0; i < N; i++)
        assert_true(isinf(bound[i]));
    bound = bounds(of("map(\\x -> if x > 3.0 then x else 0.0, a)", a, arena));
    for (int i = 0; i < N; i++)
        assert_true(bound[i] == 0); // inputs are exact
    // Doubles of few digits that a product or a sum has rounded: 5 * 0.1 is 0.5, and a
    // kernel that rounds 5 * 0.1 - 0.5 once has another number.
    bound =
        bounds(of("map(\\x -> let y = double(x) * 0.1 in if y == 0.5 then 1.0 else 0.0, a)",
                  a, arena));
    for (int i = 0; i < N; i++)
        assert_true(i == 19 ? bound[i] >= 1 && bound[i] < 1.01 : bound[i] == 0);
    bound = bounds(of("map(\\x -> let y = double(x) + 0.1 in if y + 0.4 == 0.75 then 1.0 "
                      "else 0.0, a)",
                      a, arena));
    for (int i = 0; i < N; i++)
        assert_true(i == 0 ? bound[i] >= 1 && bound[i] < 1.01 : bound[i] == 0);
    const char *how;
    ProblemData *data = judged(
        "def p(a: [N]float): [N]int = map(\\x -> int(x / 3.0 * 3.0), a)", a, arena, &how);
    for (int i = 0; i < N; i++)
        assert_true(bounds(data)[i] == (i % 4 == 3)); // it may be the number below
    assert_non_null(strstr(how, "16 of 64 elements"));
    arena_free(arena);
}

// A key that rounding decides: either place may have the element. Each other place has what
// belongs there, and of a number in doubt what stays within it is as sure.
static void test_keys(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    double a[N];
    for (int i = 0; i < N; i++)
        a[i] = 0.25 * (i + 1); // x / 3 * 3 is whole at each fourth
    static const char *const counts[] = {"int(x / 3.0 * 3.0)", "min(int(x / 3.0 * 3.0), N)",
                                         "int(x / 3.0 * 3.0) + N % 1"};
    const char *how;
    for (int k = 0; k < COUNTOF(counts); k++) {
        ProblemData *data =
            judged(arena_printf(arena,
                                "def p(a: [N]float): [N]int = a |> map(\\x -> (%s, 2)) |> "
                                "reduceBy(N, +, 0)",
                                counts[k]),
                   a, arena, &how);
        const int *expect = data->buffer[1].expect;
        for (int i = 0; i < N; i++) { // one below and one of its own, but at the ends
            const int whole = i <= N / 4, own = i > 0 && whole, next = i < N / 4;
            const float least = (float)(2 * own + 2 * next);
            assert_in_range(bounds(data)[i], least,
                            least + 2); // the next ones on both sides
            assert_true(expect[i] == (i == 0 ? 6 : i < N / 4 ? 8 : i == N / 4 ? 2 : 0));
        }
    }
    ProblemData *truth = judged(
        "def p(a: [N]float): [N]bool = a |> map(\\x -> (int(x / 3.0 * 3.0), x > 0.0)) "
        "|> reduceBy(N, \\p q -> p || q, false)",
        a, arena, &how);
    const unsigned char *found = truth->buffer[1].expect;
    for (int i = 0; i < N; i++)
        assert_true(found[i] == (i <= N / 4) && (i <= N / 4 + 1 || bounds(truth)[i] == 0));
    ProblemData *data =
        of("a |> map(\\x -> (int(x / 3.0 * 3.0), x)) |> reduceBy(N, max, 0.0)", a, arena);
    for (int i = 0; i < N; i++) {
        const float *expect = data->buffer[1].expect;
        const float own = (float)i, below = (float)i + 0.75f;
        const float most = i < N / 4 ? (float)i + 1 : own; // were the next one here
        assert_true(i > N / 4 ||
                    (expect[i] == (i < N / 4 ? below : own) &&
                     bounds(data)[i] >= most - expect[i] && bounds(data)[i] < 40));
    }
    arena_free(arena);
}

// Where to read may be a magnitude.
// No bound is not-a-number: comparisons would take that for none.
static void test_beyond(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    double a[N];
    for (int i = 0; i < N; i++)
        a[i] = 0.25 * (i + 1) + 1;
    static const char *const undecided[] = {
        "max(0.0 * u, 1.0)", "min(0.0 * u, 1.0)", "if 0.0 * u > 1.0 then 1.0 else 2.0",
        "max(u - u, 1.0)", "max(exp(0.0 - abs(u)), 1.0)"};
    for (int k = 0; k < COUNTOF(undecided); k++) {
        const float *bound = bounds(
            of(arena_printf(arena, "map(\\x -> let u = 1.0 / (x / 3.0 * 3.0 - x) in %s, a)",
                            undecided[k]),
               a, arena));
        for (int i = 0; i < N; i++)
            assert_true(bound[i] >= 1);
    }
    // What is infinite or not-a-number is sure where the others cannot be 0.
    static const struct {
        double a, right;
    } sure[] = {{INFINITY, INFINITY}, {-INFINITY, 0}, {NAN, 0}};
    static const char *const products[] = {"max(x * (1.0 / 3.0), 0.0)",
                                           "max(x / (1.0 / 3.0), 0.0)",
                                           "max(fma(x, 1.0 / 3.0, 1.0), 0.0)"};
    for (int i = 0; i < N; i++)
        a[i] = sure[i % COUNTOF(sure)].a;
    for (int k = 0; k < COUNTOF(products); k++) {
        ProblemData *data =
            of(arena_printf(arena, "map(\\x -> %s, a)", products[k]), a, arena);
        for (int i = 0; i < N; i++) {
            assert_true(((const float *)data->buffer[1].expect)[i] ==
                        (float)sure[i % COUNTOF(sure)].right);
            assert_true(isfinite(bounds(data)[i]));
        }
    }
    arena_free(arena);
}

static void test_indices(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    double a[N];
    for (int i = 0; i < N; i++)
        a[i] = i;
    ProblemData *data = of("array(N, \\i -> a[abs(i - 9)])", a, arena);
    for (int i = 0; i < N; i++) {
        assert_true(((const float *)data->buffer[1].expect)[i] == (float)abs(i - 9));
        assert_true(bounds(data)[i] == 0);
    }
    arena_free(arena);
}

static void test_chaos(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    double a[N];
    const char *how;
    for (int i = 0; i < N; i++)
        a[i] = (float)(0.1 + 0.01 * i);
    judged("def p(a: [N]float): [N]float = iterate(60, \\s -> map(\\x -> 3.9 * x * (1.0 - "
           "x), s),"
           " a)",
           a, arena, &how);
    assert_non_null(strstr(how, "not checked"));
    arena_free(arena);
}

// Steps widen bounds until they say nothing. A changed last bit moves what these steps make
// by little, also where cells are kept, and where a limiter decides in doubt; where it
// turns a decision, nothing is known.
static void test_limits(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } programs[] = {
        {"def p(a: [N]float) = iterate(40, \\o n -> (n, zip(o, n |> pad(1, 1, clamp) |> "
         "slide(3, 1), array(N, \\i -> i > 0 && i < N - 1)) |> map(\\o p inner -> if inner "
         "then 1.9 * p[1] - 0.9 * o + 0.05 * (p[0] + p[2] - 2 * p[1]) else p[1])), (a, a))",
         "every element is decided"},
        {"fun slope(a, b, c: float): float = let d = (b - a) * (c - b) in if d > 0 then 2 "
         "* d / (c - a) else 0\n"
         "def p(a: [N]float) = iterate(24, \\q -> q |> pad(2, 1, wrap) |> slide(4, 1) |> "
         "map(\\p -> p[2] - 0.3 * (p[2] + 0.3 * slope(p[1], p[2], p[3]) - p[1] - 0.3 * "
         "slope(p[0], p[1], p[2]))), a)",
         "every element is decided"},
        {"def p(a: [N]float) = iterate(24, \\s -> map(\\x -> let y = 1.5 * x in if y > 1.2 "
         "then 0.5 * y else y + 0.2, s), map(\\x -> 0.8 + 0.0000003 * (x - 1.25), "
         "a))",
         "not checked"},
    };
    for (int k = 0; k < COUNTOF(programs); k++) {
        Arena *arena = arena_new();
        const char *how;
        double a[N];
        for (int i = 0; i < N; i++)
            a[i] = (float)(1 + 0.5 * sin(0.1 * i));
        judged(programs[k].text, a, arena, &how);
        if (!strstr(how, programs[k].says))
            fail_msg("program %d: %s", k, how);
        arena_free(arena);
    }
}

// Where lengths of the program's own are hundreds, small sizes may take seconds.
static void test_slow_small_sizes(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse("p.fw",
                                     "size N\ndef p(x: [128*N + 384]float) = let c = "
                                     "array2(257, 512, \\k n -> cos(0.01 * "
                                     "float(k * n % 512))) in let d = array2(257, 512, \\k "
                                     "n -> sin(0.01 * float(k * n % "
                                     "512))) in x |> slide(512, 128) |> map(\\f -> zip(c, "
                                     "d) |> map(\\r s -> reduce(+, 0, map(*, zip(f, "
                                     "r))) + reduce(+, 0, map(*, zip(f, s)))))\n",
                                     &diags);
    const Binding size = {.name = "N", .value = 65536};
    assert_true(problem_bind(problem, &size, 1, &diags));
    ProblemData *data;
    const char *why;
    Problem *small = problem_small(problem, arena, &data, &why);
    if (!small)
        fail_msg("%s", why);
    problem_free(small);
    problem_free(problem);
    arena_free(arena);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding),  cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_no_bounds), cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_keys),      cmocka_unit_test(test_beyond),
        cmocka_unit_test(test_indices),   cmocka_unit_test(test_chaos),
        cmocka_unit_test(test_diverging), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_spared),    cmocka_unit_test(test_slow_small_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
