// SPDX-License-Identifier: Apache-2.0
//
// The interpreter: every pattern against results worked out by hand, integer and floating
// semantics, run-time errors, and every example; the eight 2D stencils against plain loops.
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <string.h>

enum { INPUTS_MAX = 8 };

typedef struct {
    Ir *ir;
    Arena *arena;
    Diags diags;
    Source source;
    Program *program; // bound; NULL after an error
    Value *input[INPUTS_MAX];
    Value *result;
    bool ok;
} Run;

static void report(Run *r)
{
    Buf out = buf_new();
    diags_print(&out, &r->diags);
    print_message("%s\n%s", r->source.name, out.text);
    buf_release(&out);
}

// Parses, infers and binds the sizes in order of declaration; makes random inputs.
static void prepare(Run *r, const char *name, const char *text, const int64_t *size)
{
    *r = (Run){.ir = ir_new(), .arena = arena_new(), .source = {name, text, strlen(text)}};
    r->diags = (Diags){.arena = r->arena};
    Program *program = ir_parse(r->ir, &r->source, &r->diags);
    if (!program || !ir_infer(program, &r->diags))
        return;
    Binding binding[8];
    for (int i = 0; i < program->sizes.len; i++)
        binding[i] = (Binding){program->sizes.at[i].name, size[i]};
    r->program = ir_bind(program, binding, program->sizes.len, &r->diags);
    for (int i = 0; r->program && i < r->program->main->nparam; i++) {
        r->input[i] = value_new(r->arena, r->program->main->params[i]->type);
        value_random(r->input[i], (uint64_t)i + 1);
    }
}

static void evaluate(Run *r, int64_t quota)
{
    r->ok =
        r->program && ir_eval(r->program, r->input, r->arena, &r->result, quota, &r->diags);
}

static void finish(Run *r)
{
    arena_free(r->arena);
    ir_free(r->ir);
}

// Patterns, by hand ------------------------------------------------------------------

// With a = [10, 20, 30, 40], i = [3, 1, 2, 0], m = [[1, 2, 3], [4, 5, 6]].
static const struct {
    const char *body, *result; // planes separated by `|`
} cases[] = {
    {"a |> map(\\x -> x + 1)", "11 21 31 41"},
    // integers wrap, shift modulo their bits, and convert by their last bits
    {"i |> map(\\x -> uchar(x) - 2)", "1 255 0 254"},
    {"i |> map(\\x -> char(x + 126))", "-127 127 -128 126"},
    {"i |> map(\\x -> (uint(x) << 31) >> 30)", "2 2 0 0"},
    {"i |> map(\\x -> -x << 33 >> 1)", "-3 -1 -2 0"},
    {"i |> map(\\x -> short(~x) * 20000)", "-14464 25536 5536 -20000"},
    {"i |> map(\\x -> uint(x) * 2863311531)", "1 2863311531 1431655766 0"},
    {"i |> map(\\x -> long(x) * 3000000000)", "9000000000 3000000000 6000000000 0"},
    {"i |> map(\\x -> x & 2 | x ^ 1)", "2 0 3 1"},
    {"a |> map(\\x -> float(bf16(x) + 0.15625))", "10.125 20.125 30.125 40.25"},
    {"m |> map2(\\x -> -x)", "-1 -2 -3 -4 -5 -6"},
    {"m |> map(\\r -> r |> reduce(+, 0))", "6 15"},
    {"m |> map(\\r -> r |> map(\\x -> 2*x))", "2 4 6 8 10 12"},
    {"m |> split2(1, 3) |> map3(\\r -> r |> map(\\x -> x))", "1 2 3 4 5 6"},
    {"a |> reduce(+, 0)", "100"},
    {"a |> reduce(\\s x -> s - x, 1)", "-99"},
    {"zip(a, i) |> reduce(\\s t -> (max(s.0, t.0), s.1 + t.1), (0, 0))", "40|6"},
    {"m |> reduce(\\s r -> zip(s, r) |> map(\\x y -> x + y), array(3, \\k -> 0.0))",
     "5 7 9"},
    {"a |> scan(+, 0)", "10 30 60 100"},
    {"a |> scan(\\s x -> s - x, 5)", "-5 -25 -55 -95"},
    {"a |> iterate(3, \\u -> u |> map(\\x -> 2*x))", "80 160 240 320"},
    {"a |> iterate(0, \\u -> u |> map(\\x -> 2*x))", "10 20 30 40"},
    {"iterate(5, \\x y -> (y, x + y), (0, 1))", "5|8"},
    {"(a, i) |> iterate(3, \\u v -> (u |> map(\\x -> x + 1), v |> map(\\x -> x - 1)))",
     "13 23 33 43|0 -2 -1 -3"},
    {"array(4, \\k -> k * k)", "0 1 4 9"},
    {"array2(2, 3, \\y x -> 10*y + x)", "0 1 2 10 11 12"},
    {"array3(2, 1, 2, \\z y x -> 100*z + 10*y + x)", "0 1 100 101"},
    {"zip(a, i)", "10 20 30 40|3 1 2 0"},
    {"zip2(m, m) |> map2(\\x y -> x * y)", "1 4 9 16 25 36"},
    {"zip(m, take(2, a)) |> map(\\r x -> r |> map(\\e -> e + x))", "11 12 13 24 25 26"},
    {"unzip(zip(a, i)).1", "3 1 2 0"},
    {"zip(array(4, \\k -> 3 - k), m |> pad(1, 1, clamp)) |> unzip |> swap",
     "1 2 3 1 2 3 4 5 6 4 5 6|3 2 1 0"},
    {"a |> split(2) |> map(\\r -> r[1])", "20 40"},
    {"m |> split2(1, 3) |> join2", "1 2 3 4 5 6"},
    {"array2(4, 4, \\y x -> 10*y + x) |> split2(2, 2) |> map2(\\t -> t[1][0])",
     "10 12 30 32"},
    {"array2(4, 4, \\y x -> 10*y + x) |> split2(2, 2) |> join2 |> map(\\r -> r[1])",
     "1 11 21 31"},
    {"m |> join", "1 2 3 4 5 6"},
    {"a |> slide(3, 1)", "10 20 30 20 30 40"},
    {"a |> slide(2, 2)", "10 20 30 40"},
    {"m |> slide2(2, 1) |> map2(\\p -> p[0][1] * p[1][0])", "8 15"},
    {"m |> slide2(1, 1, 2, 1)", "1 2 2 3 4 5 5 6"},
    {"array3(3, 3, 3, \\z y x -> 100*z + 10*y + x) |> slide3(2, 1)\n"
     "  |> map3(\\p -> p[1][0][1])",
     "101 102 111 112 201 202 211 212"},
    {"a |> pad(2, 1, clamp)", "10 10 10 20 30 40 40"},
    {"a |> pad(2, 1, mirror)", "20 10 10 20 30 40 40"},
    {"a |> pad(4, 4, mirror)", "40 30 20 10 10 20 30 40 40 30 20 10"},
    {"a |> pad(2, 1, wrap)", "30 40 10 20 30 40 10"},
    {"a |> pad(4, 4, wrap)", "10 20 30 40 10 20 30 40 10 20 30 40"},
    {"a |> pad(2, 1, 7)", "7 7 10 20 30 40 7"},
    {"a |> pad(5, 6, clamp)", "10 10 10 10 10 10 20 30 40 40 40 40 40 40 40"},
    {"m |> pad2(1, 0, 0, 1, clamp)", "1 2 3 3 1 2 3 3 4 5 6 6"},
    {"m |> pad2(1, 0, 0, 1, mirror)", "1 2 3 3 1 2 3 3 4 5 6 6"},
    {"m |> pad2(1, 0, 0, 1, wrap)", "4 5 6 4 1 2 3 1 4 5 6 4"},
    {"m |> pad2(1, 0, 0, 1, -1)", "-1 -1 -1 -1 1 2 3 -1 4 5 6 -1"},
    {"m |> pad(1, 0, 9)", "9 9 9 1 2 3 4 5 6"},
    {"zip(a, i) |> pad(1, 0, (1, 2))", "1 10 20 30 40|2 3 1 2 0"},
    {"m |> transpose", "1 4 2 5 3 6"},
    {"m |> transpose |> map(\\r -> r[1])", "4 5 6"},
    {"a |> gather(\\k -> i[k])", "40 20 30 10"},
    {"m |> gather(\\k -> 1 - k)", "4 5 6 1 2 3"},
    {"array(2, \\s -> s) |> map(\\s -> a |> gather(\\k -> (k + s) % 4))",
     "10 20 30 40 20 30 40 10"},
    {"a |> scatter(\\k -> i[k])", "40 20 30 10"},
    {"a |> scatter(\\k -> (k + 1) % 4)", "40 10 20 30"},
    {"m |> scatter(\\k -> 1 - k)", "4 5 6 1 2 3"},
    {"a |> take(3)", "10 20 30"},
    {"a |> drop(3)", "40"},
    {"m |> take2(1, 2)", "1 2"},
    {"m |> drop2(1, 2)", "6"},
    {"a |> asVector(2) |> map(\\v -> v * v + 1)", "101 401 901 1601"},
    {"a |> asVector(4) |> map(\\v -> f2(v, 1, v)) |> asScalar", "110 420 930 1640"},
    {"i |> asVector(2) |> map(\\v -> float(v)) |> asScalar |> map(\\x -> x/2)",
     "1.5 0.5 1 0"},
    {"m |> mapGlb1(mapGlb0(\\x -> x + 1))", "2 3 4 5 6 7"},
    {"m |> mapWrg0(\\r -> r |> mapLcl0(\\x -> x) |> toLocal |> mapLcl0(\\x -> x))",
     "1 2 3 4 5 6"},
    {"a |> mapSeq(\\x -> x) |> toGlobal", "10 20 30 40"},
    {"a |> mapSeqUnroll(\\x -> x) |> toPrivate", "10 20 30 40"},
    {"a |> reduceSeq(+, 0)", "100"},
    {"a |> reduceSeqUnroll(+, 0)", "100"},
    {"a |> reduceMatrix(+, 0)", "100"},
    {"a |> reduceLanes(+, 0)", "100"},
    {"a |> scanSeq(+, 0)", "10 30 60 100"},
    {"map(\\v -> long(0), a) |> split(1) |> lookBack(+, 1, a, 30, 2)", "31"},
    {"zip(map(\\v -> int(v) / 10 % 3, a), a) |> reduceBy(2, +, 0.5)", "30.5 50.5"},
    {"zip(map(\\v -> int(v) / 10 - 2, a), a) |> reduceBy(2, \\s v -> (s.0 + v, v), (0, 0)) "
     "|> "
     "map(\\n v -> n + v)",
     "40 60"},
    {"reduceByGlb(+, array(2, \\i -> 1.0), split(2, zip(array(N, \\i -> i % 2), a)))",
     "41 61"},
    {"reduceByLcl(max, array(2, \\i -> 35.0), split(1, zip(array(N, \\i -> i % 2), a)))",
     "35 40"},
    {"reduceByOwn(+, array(2, \\i -> 1.0), split(1, zip(array(N, \\i -> i % 2), a)))",
     "41 61"},
    {"a |> iterateStream(3, 2, 1, 1, \\v -> map(\\x -> x + 1, v))", "13 23 33 43"},
    {"a |> mapSeqSlide(3, 1, \\w -> w[0] + w[2])", "40 60"},
    {"a |> mapSeqSlide(2, 2, \\w -> w[1])", "20 40"},
    {"let b = a |> map(\\x -> x / 10) in (b[1], b |> reduce(*, 1))", "2|24"},
    {"a |> map(\\x -> if x > 25 then x else 0)", "0 0 30 40"},
    {"double_all(a)[2] + double_all(double_all(a))[0]", "100"},
    // A view held while its function is applied again must not change.
    {"let v = array(2, \\s -> s) |> map(\\s -> a |> gather(\\k -> (k + s) % 4)) in\n"
     "  zip(v[0], v[1]) |> map(\\x y -> y - x)",
     "10 10 10 -30"},
    // Integers: floor division, its remainder, 32 bits that wrap; conversion truncates.
    {"array(4, \\k -> (2*k - 3) / 2)", "-2 -1 0 1"},
    {"array(4, \\k -> (2*k - 3) % 4)", "1 3 1 3"},
    {"(7 / int(-2), 7 % int(-2), int(-7) / 2)", "-4|-1|-4"},
    {"2147483647 + int(a[0]) - 10 + 1", "-2147483648"},
    {"65537 * (65537 * i[1])", "131073"},
    {"abs(int(-5)) + min(3, i[0]) + max(3, i[1])", "11"},
    {"(int(2.7), int(-2.7), int(a[0] * 1000000000), bool(0.5))", "2|-2|2147483647|1"},
    // Floating point.
    {"a[0] + 16777216 - 16777216", "10"},
    {"a[0] / 10 + 16777216 - 16777216", "0"},
    {"double(a[0]) / 10 + 16777216 - 16777216", "1"},
    {"half(a[0]) / 10 + 2048 - 2048", "0"},
    {"half(65519) + 0", "65504"},
    {"(sqrt(a[3] - 4), rsqrt(4), pow(a[0], 2), floor(-0.5), ceil(0.5))", "6|0.5|100|-1|1"},
    {"(exp(0), log(1), sin(0), cos(0), tan(0), tanh(0), erf(0))", "1|0|0|1|0|0|0"},
    {"fma(a[0], a[1], 5)", "205"},
    {"a[0] > 5 && (a[0] < 5 || !(a[1] == 20) || a[0] != 1)", "1"},
    {"array(5, \\k -> k > 0 && i[max(k - 1, 0)] == 1)", "0 0 1 0 0"},
    {"array(5, \\k -> if k < 4 then i[k] else 9)", "3 1 2 0 9"},
    {"N + size(N*N - 1)", "19"},
};

static const char case_program[] =
    "size N\n"
    "fun opaque(x: float): float = c\"return x;\" flops 1\n"
    "fun f2(x, y, z: float): float = x * y + x * z\n"
    "def double_all(a: [N]float): [N]float = a |> map(\\x -> 2*x)\n"
    "def swap(t: ([4]int, [4][3]float)) = (t.1, t.0)\n"
    "def main(a: [N]float, i: [N]int, m: [2][3]float) =\n  %s\n";

static void set_case_inputs(Run *r)
{
    static const double i[] = {3, 1, 2, 0};
    for (int k = 0; k < 4; k++) {
        r->input[0]->plane[0][k] = 10 * (k + 1);
        r->input[1]->plane[0][k] = i[k];
    }
    for (int k = 0; k < 6; k++)
        r->input[2]->plane[0][k] = k + 1;
}

static void print_value(Buf *out, const Value *value)
{
    for (int p = 0; p < value->nplane; p++) {
        buf_puts(out, p ? "|" : "");
        for (int64_t k = 0; k < value->count[p]; k++)
            buf_printf(out, "%s%.12g", k ? " " : "", value->plane[p][k] + 0.0);
    }
}

static void run_case(Run *r, Arena *arena, const char *body)
{
    prepare(r, body, arena_printf(arena, case_program, body), (int64_t[]){4});
    if (r->program) {
        set_case_inputs(r);
        evaluate(r, 0);
    }
}

static void test_patterns(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    int failures = 0;
    for (int k = 0; k < COUNTOF(cases); k++) {
        Run r;
        run_case(&r, arena, cases[k].body);
        Buf got = buf_new();
        if (r.ok)
            print_value(&got, r.result);
        else
            report(&r);
        if (strcmp(got.text, cases[k].result) != 0) {
            print_message("%s:\n  %s, not %s\n", cases[k].body, got.text, cases[k].result);
            failures++;
        }
        buf_release(&got);
        finish(&r);
    }
    assert_int_equal(failures, 0);
    arena_free(arena);
}

static void test_every_pattern_has_a_case(void **state)
{
    (void)state;
    for (int p = 0; p < PATTERNS; p++) {
        bool found = false;
        for (int k = 0; k < COUNTOF(cases) && !found; k++)
            found = strstr(cases[k].body, pattern_info[p].text) != NULL;
        if (!found)
            fail_msg("no case for %s", pattern_info[p].text);
    }
}

// Errors -------------------------------------------------------------------------------

static const struct {
    const char *body, *code, *says;
} faults[] = {
    {"a |> map(\\x -> a[int(x)])", "R001", "index 10 is outside an array of 4"},
    {"a[i[3] - 1]", "R001", "index -1"},
    {"a |> gather(\\k -> k + 1) |> map(\\x -> x)", "R001", "element 4 of an array of 4"},
    {"a |> scatter(\\k -> k - 1)", "R001", "place -1"},
    {"a |> scatter(\\k -> k / 2)", "R002", "two elements at place 0"},
    {"array(2000000000, \\k -> k) |> reduce(+, 0)", "R006", "too large"},
    {"opaque(a[0])", "R004", "`opaque` is C text"},
    {"1 / i[3]", "R003", "division by zero"},
    {"i[0] % i[3]", "R003", "division by zero"},
};

static void test_faults(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    for (int k = 0; k < COUNTOF(faults); k++) {
        Run r;
        run_case(&r, arena, faults[k].body);
        assert_non_null(r.program);
        assert_false(r.ok);
        assert_int_equal(r.diags.errors, 1);
        assert_string_equal(r.diags.list.at[0].code, faults[k].code);
        if (!strstr(r.diags.list.at[0].message, faults[k].says))
            report(&r), fail();
        finish(&r);
    }
    arena_free(arena);
}

static void test_quota(void **state)
{
    (void)state;
    Run r;
    prepare(&r, "quota", "size N\ndef main(a: [N]float) = a |> reduce(+, 0)\n",
            (int64_t[]){1000});
    evaluate(&r, 500);
    assert_false(r.ok);
    assert_string_equal(r.diags.list.at[0].code, "R005");
    evaluate(&r, 5000);
    assert_true(r.ok);
    finish(&r);
}

static void test_wrong_input(void **state)
{
    (void)state;
    Run r;
    prepare(&r, "input", "size N\ndef main(a: [N]float) = a\n", (int64_t[]){4});
    r.input[0] = value_new(r.arena, type_scalar(S_FLOAT));
    evaluate(&r, 0);
    assert_false(r.ok);
    assert_string_equal(r.diags.list.at[0].code, "R007");
    assert_string_equal(r.diags.list.at[0].message,
                        "input `a` must be [4]float, not float");
    finish(&r);
}

// Values -------------------------------------------------------------------------------

static void test_rounding(void **state)
{
    (void)state;
    assert_true(scalar_round(S_FLOAT, 0.1) == (double)0.1f);
    assert_true(scalar_round(S_DOUBLE, 0.1) == 0.1);
    assert_true(scalar_round(S_HALF, 0.1) == 0.0999755859375);
    assert_true(scalar_round(S_HALF, 2049) == 2048 && scalar_round(S_HALF, 2051) == 2052);
    assert_true(scalar_round(S_HALF, 0x1p-25) == 0);
    assert_true(scalar_round(S_HALF, 0x1.8p-25) == 0x1p-24);
    assert_true(isinf(scalar_round(S_HALF, 65520)));
    assert_true(scalar_round(S_HALF, -65519) == -65504);
    assert_true(scalar_round(S_INT, -2.9) == -2 && scalar_round(S_INT, 1e20) == INT32_MAX);
    assert_true(scalar_round(S_BOOL, -3) == 1 && scalar_round(S_BOOL, 0) == 0);
}

static void test_values(void **state)
{
    (void)state;
    Run r;
    prepare(&r, "values",
            "size N\ndef main(a: [N](half, [3]int, double), b: bool) = (a, b)\n",
            (int64_t[]){5});
    const Value *a = r.input[0];
    assert_int_equal(a->nplane, 3);
    assert_int_equal(a->count[0], 5);
    assert_int_equal(a->count[1], 15);
    assert_int_equal(a->scalar[2], S_DOUBLE);
    for (int p = 0; p < 3; p++)
        for (int64_t k = 0; k < a->count[p]; k++) {
            double x = a->plane[p][k];
            assert_true(x == scalar_round(a->scalar[p], x));
            assert_true(p == 1 ? x >= 0 && x < 8 : x >= 0.5 && x < 1.5);
        }
    Value *again = value_new(r.arena, a->type);
    value_random(again, 1);
    assert_memory_equal(again->plane[1], a->plane[1], 15 * sizeof(double));
    evaluate(&r, 0); // tuples of arrays survive storing
    assert_true(r.ok);
    assert_int_equal(r.result->nplane, 4);
    assert_memory_equal(r.result->plane[1], a->plane[1], 15 * sizeof(double));
    finish(&r);
}

// The 2D stencils against loops ------------------------------------------------------

typedef struct {
    int64_t n, m;
    double *const *in; // plane 0 of each input
} Grid;

// Element (i + di, j + dj) of input k, clamped.
static float at(const Grid *g, int k, int64_t i, int64_t j)
{
    i = MAX(0, MIN(g->n - 1, i));
    j = MAX(0, MIN(g->m - 1, j));
    return (float)g->in[k][i * g->m + j];
}

typedef float Stencil(const Grid *g, int64_t i, int64_t j);

static float jacobi2d(const Grid *g, int64_t i, int64_t j)
{
    return (5 * at(g, 0, i - 1, j) + 12 * at(g, 0, i, j - 1) + 15 * at(g, 0, i, j) +
            12 * at(g, 0, i, j + 1) + 5 * at(g, 0, i + 1, j)) /
           118;
}

static float weighted(const Grid *g, int64_t i, int64_t j, int r, const double *weight)
{
    double sum = 0;
    for (int y = -r; y <= r; y++)
        for (int x = -r; x <= r; x++)
            sum += *weight++ * (double)at(g, 0, i + y, j + x);
    return (float)sum;
}

static float jacobi2d9(const Grid *g, int64_t i, int64_t j)
{
    static const double w[] = {7, 5, 9, 12, 15, 12, 9, 5, 7};
    return weighted(g, i, j, 1, w) / 118;
}

static float stencil2d(const Grid *g, int64_t i, int64_t j)
{
    return weighted(g, i, j, 1, g->in[1]);
}

static float gaussian(const Grid *g, int64_t i, int64_t j)
{
    static const double w[] = {2,  4, 5, 4, 2,  4, 9, 12, 9, 4, 5, 12, 15,
                               12, 5, 4, 9, 12, 9, 4, 2,  4, 5, 4, 2};
    return weighted(g, i, j, 2, w) / 159;
}

static float gradient2d(const Grid *g, int64_t i, int64_t j)
{
    float c = at(g, 0, i, j), sum = 0.0001f;
    const float d[] = {c - at(g, 0, i - 1, j), c - at(g, 0, i + 1, j),
                       c - at(g, 0, i, j - 1), c - at(g, 0, i, j + 1)};
    for (int k = 0; k < 4; k++)
        sum += d[k] * d[k];
    return c + 1 / sqrtf(sum);
}

static float hotspot2d(const Grid *g, int64_t i, int64_t j)
{
    float c = at(g, 0, i, j), power = at(g, 1, i, j);
    float y = at(g, 0, i - 1, j) + at(g, 0, i + 1, j) - 2 * c;
    float x = at(g, 0, i, j - 1) + at(g, 0, i, j + 1) - 2 * c;
    return c + 0.341333f * (power + 0.1f * y + 0.1f * x + 1.953125e-4f * (80 - c));
}

static float srad1(const Grid *g, int64_t i, int64_t j)
{
    double c = at(g, 0, i, j), squares = 0, sum = 0, q0 = 0.053787220269;
    const double x[] = {at(g, 0, i - 1, j), at(g, 0, i + 1, j), at(g, 0, i, j - 1),
                        at(g, 0, i, j + 1)};
    for (int k = 0; k < 4; k++) {
        squares += (x[k] - c) * (x[k] - c);
        sum += x[k] - c;
    }
    double l = sum / c, den = 1 + l / 4;
    double q = (squares / (c * c) / 2 - l * l / 16) / (den * den);
    double out = 1 / (1 + (q - q0) / (q0 * (1 + q0)));
    return (float)(out < 0 ? 0 : out > 1 ? 1 : out);
}

static float srad2(const Grid *g, int64_t i, int64_t j)
{
    float k = at(g, 1, i, j), south = at(g, 1, i + 1, j), east = at(g, 1, i, j + 1);
    float div = k * at(g, 2, i, j) + south * at(g, 3, i, j) + k * at(g, 5, i, j) +
                east * at(g, 4, i, j);
    return at(g, 0, i, j) + 0.125f * div;
}

static const struct {
    const char *name;
    Stencil *stencil;
} stencils[] = {
    {"jacobi2d", jacobi2d}, {"jacobi2d9", jacobi2d9},   {"stencil2d", stencil2d},
    {"srad1", srad1},       {"srad2", srad2},           {"hotspot2d", hotspot2d},
    {"gaussian", gaussian}, {"gradient2d", gradient2d},
};

static void load_example(Run *r, Buf *text, const char *name, const int64_t *size)
{
    char path[300];
    snprintf(path, sizeof path, "examples/%s", name);
    *text = buf_new();
    assert_true(file_read(path, FILE_DATA_MOST, text));
    prepare(r, name, text->text, size);
    if (!r->program)
        report(r);
    assert_non_null(r->program);
}

static void check_stencil(const char *name, Stencil *stencil, int64_t n, int64_t m)
{
    char file[100];
    snprintf(file, sizeof file, "%s.fw", name);
    Run r;
    Buf text;
    load_example(&r, &text, file, (int64_t[]){n, m});
    evaluate(&r, 0);
    assert_true(r.ok);
    double *plane[INPUTS_MAX];
    for (int k = 0; k < r.program->main->nparam; k++)
        plane[k] = r.input[k]->plane[0];
    Grid g = {n, m, plane};
    assert_int_equal(r.result->count[0], n * m);
    for (int64_t k = 0; k < n * m; k++) {
        double want = (double)stencil(&g, k / m, k % m), got = r.result->plane[0][k];
        if (fabs(want - got) > 2e-5 * (1 + fabs(want)))
            fail_msg("%s[%d][%d]: %g, not %g", name, (int)(k / m), (int)(k % m), got, want);
    }
    buf_release(&text);
    finish(&r);
}

static void test_stencils_against_loops(void **state)
{
    (void)state;
    for (int k = 0; k < COUNTOF(stencils); k++) {
        check_stencil(stencils[k].name, stencils[k].stencil, 7, 11);
        check_stencil(stencils[k].name, stencils[k].stencil, 1, 3);
    }
}

// All examples ---------------------------------------------------------------------------

static void check_example(const char *name, const int64_t *size)
{
    Run r;
    Buf text;
    load_example(&r, &text, name, size);
    evaluate(&r, 0);
    if (!r.ok)
        report(&r);
    assert_true(r.ok);
    for (int p = 0; p < r.result->nplane; p++)
        for (int64_t k = 0; k < r.result->count[p]; k++)
            assert_true(isfinite(r.result->plane[p][k]));
    buf_release(&text);
    finish(&r);
}

static void test_examples(void **state)
{
    (void)state;
    DIR *dir = opendir("examples");
    assert_non_null(dir);
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".fw") != 0)
            continue;
        check_example(entry->d_name, (int64_t[]){5, 3, 7});
        check_example(entry->d_name, (int64_t[]){9, 13, 1});
        n++;
    }
    closedir(dir);
    assert_true(n >= 20);
}

static void example_gives(const char *name, const int64_t *size, const double *in,
                          int64_t n, const char *want)
{
    Run r;
    Buf text, got;
    load_example(&r, &text, name, size);
    for (int64_t k = 0; k < n; k++)
        r.input[0]->plane[0][k] = in[k];
    evaluate(&r, 0);
    assert_true(r.ok);
    got = buf_new();
    print_value(&got, r.result);
    assert_string_equal(got.text, want);
    buf_release(&got);
    buf_release(&text);
    finish(&r);
}

static void test_examples_by_hand(void **state)
{
    (void)state;
    example_gives("prefix.fw", (int64_t[]){4}, (double[]){1, 2, 3, 4}, 4, "1 3 6 10");
    example_gives("reverse.fw", (int64_t[]){3}, (double[]){1, 2, 3}, 3, "3 2 1");
    example_gives("transpose.fw", (int64_t[]){2, 3}, (double[]){1, 2, 3, 4, 5, 6}, 6,
                  "1 4 2 5 3 6");
    example_gives("asum.fw", (int64_t[]){3}, (double[]){1, -2, 3}, 3, "6");
    // A blinker turns; on a 5 x 5 torus it does not meet itself.
    example_gives("life2d.fw", (int64_t[]){5, 5},
                  (double[]){0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1,
                             0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                  25, "0 0 0 0 0 0 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
    // Weighted means of equal elements are equal; a border of zeros pulls in.
    example_gives("gaussian.fw", (int64_t[]){2, 2}, (double[]){1, 1, 1, 1}, 4, "1 1 1 1");
    example_gives("heat2d_dirichlet.fw", (int64_t[]){1, 2}, (double[]){10, 10}, 2, "4 4");
    example_gives("blur_mirror.fw", (int64_t[]){1, 2}, (double[]){4, 8}, 2, "5 7");
    example_gives("advect2d.fw", (int64_t[]){1, 3}, (double[]){10, 0, 0}, 3, "7 3 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),    cmocka_unit_test(test_every_pattern_has_a_case),
        cmocka_unit_test(test_faults),      cmocka_unit_test(test_quota),
        cmocka_unit_test(test_wrong_input), cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_values),      cmocka_unit_test(test_stencils_against_loops),
        cmocka_unit_test(test_examples),    cmocka_unit_test(test_examples_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
