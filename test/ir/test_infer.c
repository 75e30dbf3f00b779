// SPDX-License-Identifier: Apache-2.0
//
// Inference: the type of every pattern as text, an error table with codes and lines,
// literals, inlining, and the binding of sizes.
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

typedef struct {
    Ir *ir;
    Arena *arena;
    Diags diags;
    Source source;
    Program *program; // NULL if it does not parse
    bool ok;          // parsed and inferred
    char text[4096];
} Case;

static void load(Case *c, const char *text)
{
    c->ir = ir_new();
    c->arena = arena_new();
    c->diags = (Diags){.arena = c->arena};
    c->source = (Source){"test", text, strlen(text)};
    c->program = ir_parse(c->ir, &c->source, &c->diags);
    c->ok = c->program && ir_infer(c->program, &c->diags);
}

static void unload(Case *c)
{
    arena_free(c->arena);
    ir_free(c->ir);
}

static const char *messages(Case *c)
{
    Buf out = buf_new();
    diags_print(&out, &c->diags);
    snprintf(c->text, sizeof c->text, "%s", out.text);
    buf_release(&out);
    return c->text;
}

// Types ----------------------------------------------------------------------------

#define SIZES "size N, M, K\n"

static const struct {
    const char *body, *type;
} types[] = {
    // an initial value has the type that the function gives back
    {"a |> reduce(\\s v -> s + (if v > 0 then 1 else 0), 0)", "int"},
    {"a |> reduce(\\s v -> s + double(v), 0)", "double"},
    {"i |> reduce(\\s v -> s + 0.5, 5)", "float"},
    {"i |> reduce(\\(s, n) v -> (s + 0.5, n + 0.5), (0.0, 5))", "(float, float)"},
    {"i |> map(\\x -> bf16(x)) |> reduce(\\s v -> s + float(v), 0.0)", "float"},
    {"i |> map(\\x -> bf16(x)) |> reduce(\\s v -> s + float(v) * 2, 0)", "float"},
    {"a |> scan(\\s v -> (s.0 + v, s.1 + 1), (0, 0))", "[N](float, int)"},
    // so has each literal in it, in arrays too
    {"iterate(K, \\q r j -> (map(\\x -> x + r[0], q), map(\\x -> x * q[j], r), j + 1), "
     "(d, array(4, \\k -> 0.0), 0))",
     "([N]double, [4]double, int)"},
    {"iterate(K, \\q r -> (map(\\x -> x + r[0], q), map(\\x -> x * q[0], r)), "
     "(d, array(4, \\k -> 0.0)))",
     "([N]double, [4]double)"},
    {"iterate(K, \\q r j -> (map(\\x -> x + r[0], q), map(\\x -> x * q[j], r), j + 1), "
     "(h, array(4, \\k -> 0.5), int(0)))",
     "([N]half, [4]half, int)"},
    {"iterate(K, \\r -> map(\\x -> x + d[0], r), array(4, \\k -> 0.0))", "[4]double"},
    {"iterate(K, \\q r j s n -> (map(\\x -> x + r[0], q), map(\\x -> x * q[j], r), j + 1, "
     "s "
     "+ q[n], n), (d, array(4, \\k -> 0.0), 0, 0, 0))",
     "([N]double, [4]double, int, double, int)"},
    {"iterate(K, \\s x -> (s + x, x * d[0]), (0.0, 1.0))", "(double, double)"},
    {"d |> reduce(\\(s, t, m, n, l) v -> (s + v, t + v*v, max(m, v), n % 7 + 1, l + 1), "
     "(0, 0, -inf, 0, 0))",
     "(double, double, double, int, int)"},
    {"a |> reduce(\\(s, n) v -> (s + double(v), n + 1), (0.0, 0))", "(double, int)"},
    // what follows a name takes its type from its place, too
    {"array(N, \\k -> if k > 3 then (let x = a[k] in if x > 0 then 1 else -1) else d[k])",
     "[N]double"},
    {"i |> map(\\x -> (let y = x + 1 in 2) * uchar(x))", "[N]uchar"},
    {"i |> map(\\x -> (let y = 0.5 in N) + long(x))", "[N]long"},
    // parameters taken apart
    {"zip(a, i) |> reduce(\\(m, k) (x, j) -> if x > m then (x, j) else (m, k), (-1e30, 0))",
     "(float, int)"},
    {"zip(a, i) |> map(\\(x, j) -> x * float(j))", "[N]float"},
    {"zip(a, zip(i, a)) |> map(\\x (j, y) -> x + y * float(j))", "[N]float"},
    {"zip(zip(i, a), a, zip(a, i)) |> map(\\(j, y) x (z, k) -> (j + k, x + y + z))",
     "[N](int, float)"},
    {"i |> map(\\x -> uint(x) >> 3 & 255)", "[N]uint"},
    {"i |> map(\\x -> let y = uchar(x) in max(y, 200) ^ ~y)", "[N]uchar"},
    {"i |> map(\\x -> sqrt(long(x)))", "[N]float"},
    {"a |> map(\\x -> bf16(x) * 2 + 0.5)", "[N]bf16"},
    {"a |> map(\\x -> x + 1)", "[N]float"},
    {"m |> map2(\\x -> x > 0)", "[N][M]bool"},
    {"c |> map3(\\x -> (x, 1))", "[N][M][K](float, int)"},
    {"a |> reduce(+, 0)", "float"},
    {"zip(a, i) |> reduce(\\s t -> s + t.0, 0)", "float"},
    {"zip(a, i) |> reduce(\\s t -> (s.0 + t.0, s.1 + t.1), (0, 0))", "(float, int)"},
    {"a |> reduce(\\s x -> (s.0 + x, s.1 + x*x), (0, 0))", "(float, float)"},
    {"a |> scan(+, 0)", "[N]float"},
    {"a |> iterate(5, \\u -> u |> map(\\x -> 2*x))", "[N]float"},
    {"(a, i) |> iterate(5, \\u v -> (u, v))", "([N]float, [N]int)"},
    {"array(N, \\k -> k)", "[N]int"},
    {"array2(N, M, \\y x -> float(x) + 0.5)", "[N][M]float"},
    {"array3(2, 3, 4, \\z y x -> x + y + z)", "[2][3][4]int"},
    {"zip(a, i)", "[N](float, int)"},
    {"zip2(m, m, m)", "[N][M](float, float, float)"},
    {"unzip(zip(a, i))", "([N]float, [N]int)"},
    {"unzip(zip2(m, m))", "([N][M]float, [N][M]float)"},
    {"array(4*N, \\k -> k) |> split(4)", "[N][4]int"},
    {"array2(4*N, 2*M, \\y x -> x) |> split2(4, 2)", "[N][M][4][2]int"},
    {"m |> join", "[N*M]float"},
    {"m |> slide2(1, 1) |> join2", "[N][M]float"},
    {"a |> pad(1, 1, clamp) |> slide(3, 1)", "[N][3]float"},
    {"m |> pad2(1, 1, clamp) |> slide2(3, 1)", "[N][M][3][3]float"},
    {"a |> pad(2, 3, 0)", "[N + 5]float"},
    {"m |> pad(1, 1, 0)", "[N + 2][M]float"},
    {"c |> pad3(1, 1, mirror)", "[N + 2][M + 2][K + 2]float"},
    {"c |> transpose", "[M][N][K]float"},
    {"a |> gather(\\k -> N - 1 - k)", "[N]float"},
    {"m |> scatter(\\k -> N - 1 - k)", "[N][M]float"},
    {"array(N + 3, \\k -> k) |> take(3)", "[3]int"},
    {"array(N + 3, \\k -> k) |> drop(3)", "[N]int"},
    {"array(4*N, \\k -> 1.0) |> asVector(4)", "[N]float4"},
    {"array(4*N, \\k -> 1.0) |> asVector(4) |> map(\\v -> 2*v + 1) |> asScalar",
     "[4*N]float"},
    {"array(2*N, \\k -> k) |> asVector(2) |> map(\\v -> f2(float(v)))", "[N]float2"},
    {"m |> mapGlb1(mapGlb0(\\x -> x))", "[N][M]float"},
    {"m |> mapWrg0(mapLcl0(\\x -> x))", "[N][M]float"},
    {"a |> mapSeq(\\x -> x)", "[N]float"},
    {"a |> mapSeqUnroll(\\x -> x)", "[N]float"},
    {"a |> reduceSeq(+, 0)", "float"},
    {"a |> reduceSeqUnroll(+, 0)", "float"},
    {"a |> scanSeq(+, 0)", "[N]float"},
    {"zip(array(N, \\k -> k), a) |> reduceBy(7, \\s v -> s + 1, 0)", "[7]int"},
    {"zip(array(N, \\k -> k), a) |> reduceBy(M, \\(s, n) v -> (s + v, n + 1), (0, 0))",
     "[M](float, int)"},
    {"a |> iterateStream(3, 2, 4, 64, \\v -> map(sqrt, v))", "[N]float"},
    {"a |> pad(1, 1, clamp) |> mapSeqSlide(3, 1, \\w -> w[0] + w[2])", "[N]float"},
    {"a |> mapSeq(\\x -> x) |> toGlobal", "[N]float"},
    {"a |> split(2) |> mapWrg0(toLocal)", "[N/2][2]float"},
    {"a |> split(2) |> mapWrg0(\\r -> mapLcl0(\\x -> toLocal(mapLcl0(sqrt, r))[0] + x, r))",
     "[N/2][2]float"},
    {"a |> toPrivate", "[N]float"},
    // Literals follow their surroundings.
    {"1", "int"},
    {"1.5", "float"},
    {"1 + 2.5", "float"},
    {"1 / 2 * a[0]", "float"},
    {"double(0.1)", "double"},
    {"sqrt(2)", "float"},
    {"sqrt(i[0])", "float"},
    {"pow(a[0], 2)", "float"},
    {"if a[0] > 0 then a[0] else 0", "float"},
    {"if a[0] > 0 then (a[0], 1) else (0, 0)", "(float, int)"},
    {"d[0] * 0.1", "double"},
    {"h[0] * 0.1 + 1", "half"},
    {"f2(1)", "float"},
    {"i[0] % 2", "int"},
    {"N + size(N*M - 1)", "int"},
    // So do sizes.
    {"N", "int"},
    {"a[0] / N", "float"},
    {"reduce(+, 0, d) / (N * M)", "double"},
    {"N / 2 * d[0]", "double"},
    {"1.0 / N * d[0]", "double"},
    {"h[0] / N", "half"},
    {"N / 2", "int"},
    {"N / 2.0", "float"},
    {"double(N / 2.0)", "double"},
    {"N * sqrt(M)", "float"},
    {"sqrt(N) * d[0]", "double"},
    {"pow(d[0], N)", "double"},
    {"long(i[0]) + (N - 1)", "long"},
    {"uint(i[0]) % N", "uint"},
    {"a[0] > N - 1", "bool"},
    {"if a[0] > 0 then a[0] else N", "float"},
    {"if a[0] > 0 then (a[0], 1) else (N, N)", "(float, int)"},
    {"a |> pad(1, 1, N)", "[N + 2]float"},
    {"f2(N)", "float"},
    {"plus(a, N - 1)", "[N]float"},
    {"a |> reduce(+, N)", "float"},
    {"i |> reduce(+, N)", "int"},
    {"a |> reduce(\\s v -> s + int(v), N)", "int"},
    {"a |> reduce(\\s v -> s + N, 0)", "int"},
    {"pow(d[0], reduce(\\s v -> s + N, 0, a))", "double"},
    {"array(4*N, \\k -> 1.0) |> asVector(4) |> map(\\v -> v / N)", "[N]float4"},
    {"let x = a[0] in x * 2", "float"},
    {"twice(a)", "[N]float"},
    {"plus(a, 1)", "[N]float"},
    {"twice(twice(a)) |> twice", "[N]float"},
};

static const char *program_of(Arena *arena, const char *body)
{
    return arena_printf(arena,
                        SIZES "fun f2(x: float): float = x * x\n"
                              "def twice(x: [N]float): [N]float = x |> map(\\e -> 2*e)\n"
                              "def plus(x: [N]float, y: float) = x |> map(\\e -> e + y)\n"
                              "def main(a: [N]float, m: [N][M]float, c: [N][M][K]float,\n"
                              "         i: [N]int, d: [N]double, h: [N]half) =\n  %s\n",
                        body);
}

static void test_types(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    for (int i = 0; i < COUNTOF(types); i++) {
        Case c;
        load(&c, program_of(arena, types[i].body));
        if (!c.ok)
            fail_msg("%s", messages(&c));
        const char *got = type_text(c.program->main->result, c.ir->arena);
        if (strcmp(got, types[i].type) != 0)
            fail_msg("%s: %s, not %s", types[i].body, got, types[i].type);
        assert_true(ir_infer(c.program, &c.diags));
        unload(&c);
    }
    arena_free(arena);
}

// Errors ---------------------------------------------------------------------------

static const struct {
    const char *body, *code, *says;
} errors[] = {
    {"a |> map(\\x -> x + i[0])", "T001", "`+` of float and int"},
    {"a[0] * d[0]", "T001", "write double(...)"},
    {"a[0] / i[0]", "T001", "write float(...)"},
    {"a |> map(\\x -> N * i[0] * x)", "T001", "`*` of int and float"},
    {"char(i[0]) + N", "T001", "`+` of char and int"},
    {"a[0] && N", "T002", "needs bool"},
    {"a + 1", "T002", "needs numbers, not [N]float"},
    {"mapLcl0(sqrt, a)", "T026", "`mapLcl0` is outside mapWrg"},
    {"toLocal(a)", "T026", "`toLocal` is outside mapWrg"},
    {"mapWrg1(\\r -> mapGlb0(sqrt, r), split(2, a))", "T026", "`mapGlb0` is inside mapWrg"},
    {"mapGlb0(\\r -> mapWrg0(sqrt, r), split(2, a))", "T026", "`mapWrg0` is inside mapGlb"},
    {"mapGlb1(\\r -> mapGlb1(sqrt, r), split(2, a))", "T026", "over the same work-items"},
    {"mapWrg0(\\r -> mapLcl2(\\x -> x + mapLcl2(sqrt, r)[0], r), split(2, a))", "T026",
     "over the same work-items"},
    {"a[0] % 2", "T002", "needs integer operands"},
    {"a[0] && true", "T002", "needs bool"},
    {"true + 1", "T002", "needs numbers"},
    {"a[0] * 1e39", "T002", "1e+39 does not fit in float"},
    {"3000000000 + 1", "T002", "does not fit"},
    {"a[0] & 1", "T002", "needs integer operands"},
    {"i[0] & a[0]", "T002", "needs integer operands, not float"},
    {"uint(i[0]) + -1", "T002", "-1 does not fit in uint"},
    {"uint(i[0]) + i[1]", "T001", "write uint(...)"},
    {"float(a)", "T002", "a scalar or vector"},
    {"if a[0] > 0 then a else a", "T002", "tuples of them"},
    {"if a[0] > 0 then a[0] else true", "T001", "float and bool"},
    {"f2(d[0])", "T004", "argument `x` of `f2` must be float, not double"},
    {"twice(i)", "T004", "must be [N]float, not [N]int"},
    {"wrong(a)", "T005", "declared to return [N]int, but returns [N]float"},
    {"a[0] |> map(\\x -> x)", "T006", "`map` needs an array, not float"},
    {"a |> map2(\\x -> x)", "T006", "`map2` needs an array of arrays, not [N]float"},
    {"zip3(m, m, m)", "T006", "`zip2` takes any number of arrays of two"},
    {"zip2(a, a)", "T006", "`zip` takes any number of arrays of one"},
    {"a |> pad(1, 1, clamp) |> slide(3, 1) |> map(\\p -> p[0][0])", "T006",
     "only an array has elements, not float"},
    {"a[1.5]", "T007", "must be int, not float"},
    {"a |> pad(1, 1, clamp) |> slide(3, 1) |> map(\\p -> p[3])", "T008",
     "index 3 is outside [3]float"},
    {"a[-1]", "T008", "index -1 is outside"},
    {"a[N]", "T008", "index N is outside [N]float"},
    {"zip(a, i) |> map(\\t -> t.2)", "T009", "has no component 2"},
    {"unzip(a)", "T009", "an array of tuples"},
    {"a |> reduce(\\s x -> x > 0, 0)", "T011", "must return float"},
    {"a |> iterate(3, \\u -> u |> map(\\x -> true))", "T011", "returns [N]bool"},
    {"a |> gather(\\k -> 1.0)", "T011", "must return an index"},
    {"zip(a, m[0])", "T012", "equal lengths, not [N]float and [M]float"},
    {"zip(a)", "T012", "two arrays"},
    {"array(10, \\k -> k) |> split(4)", "T013", "divisible by 4, not 10"},
    {"array(10, \\k -> k) |> slide(11, 1)", "T013", "at least 11, not 10"},
    {"array(10, \\k -> k) |> slide(3, 2)", "T013", "divisible by 2, not 7"},
    {"array(2, \\k -> k) |> pad(3, 0, mirror)", "T013", "at least 3, not 2"},
    {"array(2, \\k -> k) |> take(3)", "T013", "at least 3, not 2"},
    {"array(2, \\k -> k) |> drop(3)", "T013", "at least 3, not 2"},
    {"array(6, \\k -> k) |> asVector(4)", "T013", "divisible by 4, not 6"},
    {"if 1 then 2 else 3", "T014", "must be bool, not int"},
    {"a |> asVector(3)", "T015", "width 2, 4 or 8, not 3"},
    {"m |> asVector(4)", "T015", "an array of scalars"},
    {"a |> asScalar", "T015", "an array of vectors"},
    {"a |> slide(3, 0)", "T016", "step of `slide` must be positive, not 0"},
    {"a |> split(0)", "T016", "must be positive"},
    {"a |> pad(1, 1, true)", "T004", "constant of `pad` must be float, not bool"},
};

static const char *faulty_program(Arena *arena, const char *body)
{
    const char *wrong = strstr(body, "wrong")
                            ? "def wrong(x: [N]float): [N]int = x |> map(\\e -> e)\n"
                            : "def wrong(x: [N]float) = x\n";
    return arena_printf(arena,
                        SIZES "fun f2(x: float): float = x * x\n"
                              "def twice(x: [N]float): [N]float = x |> map(\\e -> 2*e)\n"
                              "%sdef main(a: [N]float, m: [N][M]float, i: [N]int,\n"
                              "         d: [N]double) =\n  %s\n",
                        wrong, body);
}

static void test_errors(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    for (int i = 0; i < COUNTOF(errors); i++) {
        Case c;
        load(&c, faulty_program(arena, errors[i].body));
        assert_false(c.ok);
        if (c.diags.errors != 1 || strcmp(c.diags.list.at[0].code, errors[i].code) != 0 ||
            !strstr(c.diags.list.at[0].message, errors[i].says))
            fail_msg("%s: want one %s with \"%s\":\n%s", errors[i].body, errors[i].code,
                     errors[i].says, messages(&c));
        int line, col;
        span_line_col(c.diags.list.at[0].span, &line, &col);
        assert_int_equal(line, strstr(errors[i].body, "wrong") ? 4 : 7);
        unload(&c);
    }
    arena_free(arena);
}

static void test_several_errors_without_cascade(void **state)
{
    (void)state;
    Case c;
    load(&c, "size N\n"
             "fun f(x: float): int = x\n"
             "def g(a: [N]float) = a |> map(\\x -> x + true) |> map(\\y -> y && 1)\n"
             "def main(a: [N]float) = (g(a), f(a[0]), a[0] + (1 == 2))\n");
    assert_int_equal(c.diags.errors, 3);
    unload(&c);
}

static void test_errors_are_said_once(void **state)
{
    (void)state;
    static const char *const body[] = {
        "zip3(m, m, c)",
        "iterate(3, \\x y -> (x, y), (a, 3000000000))",
        "iterate(3, \\x y -> (map(\\e -> e + y[a[0]], x), y), (d, array(4, \\k -> 0.0)))",
    };
    Arena *arena = arena_new();
    for (int i = 0; i < COUNTOF(body); i++) {
        Case c;
        load(&c, program_of(arena, body[i]));
        assert_false(c.ok);
        assert_int_equal(c.diags.list.len, 1);
        unload(&c);
    }
    arena_free(arena);
}

static void test_signature(void **state)
{
    (void)state;
    Case c;
    load(&c, "size N\nfun f(x: [N]float): float = 1\ndef main(a: [N]float) = a\n");
    assert_false(c.ok);
    unload(&c);
}

// Inlining, sizes ------------------------------------------------------------------

static bool has_call(const Expr *e)
{
    bool found = e->kind == E_CALL && e->callee->is_def;
    for (int i = 0; i < e->narg; i++)
        found = found || has_call(e->arg[i]);
    return found || (e->fun && has_call(e->fun));
}

static void test_defs_are_inlined(void **state)
{
    (void)state;
    Case c;
    load(&c, "size N\n"
             "def add(a: [N]double, y: double) = a |> map(\\x -> x + y)\n"
             "def main(a: [N]double) = add(add(a, 1), 0.1)\n");
    assert_true(c.ok);
    assert_false(has_call(c.program->main->body));
    assert_true(ir_infer(c.program, &c.diags)); // the literals keep their type
    assert_string_equal(type_text(c.program->main->result, c.ir->arena), "[N]double");
    unload(&c);
}

// The body of the last def after inference, whose sizes are converted where they stand.
static void converts(const char *body, const char *text)
{
    Case c;
    Arena *arena = arena_new();
    load(&c, arena_printf(arena,
                          SIZES "def open[A, t](x: [A]t, s: t) = x[0] * s\n"
                                "def plus(x: [N]float, y: float) = x[0] + y\n"
                                "def main(a: [N]float, d: [N]double, i: [N]int) = %s\n",
                          body));
    if (!c.ok)
        fail_msg("%s", messages(&c));
    for (int again = 0; again < 2; again++) { // what is written down stays so
        Buf out = buf_new();
        expr_print(&out, c.program->main->body);
        assert_string_equal(out.text, text);
        buf_release(&out);
        assert_true(ir_infer(c.program, &c.diags));
    }
    unload(&c);
    arena_free(arena);
}

static void test_sizes_are_converted(void **state)
{
    (void)state;
    converts("a[0] / N", "a[0] / float(N)");
    converts("N / 2 * a[0]", "float(N / 2) * a[0]");
    converts("a[0] * N / 2", "a[0] * float(N) / 2");
    converts("N / 2.0 * d[0]", "double(N) / 2.0 * d[0]");
    converts("d[0] + sqrt(N - 1)", "d[0] + sqrt(double(N - 1))");
    converts("a[0] * sqrt(N)", "a[0] * sqrt(N)");
    converts("pow(d[0], N)", "pow(d[0], N)");
    converts("double(N / 2)", "double(N / 2)");
    converts("reduce(\\s v -> s + v / N, 0, d)",
             "reduce(\\s v -> s + v / double(N), 0, d)");
    converts("open(d, N)", "let x = d in let s = double(N) in x[0] * s");
    converts("plus(a, N - 1)", "let x = a in let y = float(N - 1) in x[0] + y");
    converts("i[0] / N", "i[0] / N");
    // and so are literals in arrays of a state
    converts("iterate(3, \\r -> map(\\x -> x + d[0], r), array(4, \\k -> 0.0))",
             "array(4, \\k -> double(0.0)) |> iterate(3, \\r -> map(\\x -> x + d[0], r))");
}

static void open_fails(const char *text, const char *code, const char *says)
{
    Case c;
    load(&c, text);
    assert_false(c.ok);
    assert_string_equal(c.diags.list.at[0].code, code);
    if (!strstr(c.diags.list.at[0].message, says))
        fail_msg("%s", messages(&c));
    unload(&c);
}

static void test_open_defs(void **state)
{
    (void)state;
    Case c;
    load(&c,
         "size N, M\n"
         "def half_of[t](x: t): t = x * t(0.5)\n"
         "def near[A, B, t](a: [A][B]t): [A][B]t = a |> pad2(1, 1, clamp) |> slide2(3, 1)\n"
         "  |> map2(\\p -> half_of(p[0][1]) + p[1][0])\n"
         "def turn[A, B, t](a: [A][B]t, w: t): [B][A]t = near(transpose(a)) |> map2(\\x -> "
         "w * x)\n"
         "def main(a: [N][M]double, b: [M][4]float) =\n"
         "  (turn(near(a), 0.1), turn(turn(b, 2), 3))\n");
    if (!c.ok)
        fail_msg("%s", messages(&c));
    assert_false(has_call(c.program->main->body));
    assert_string_equal(type_text(c.program->main->result, c.ir->arena),
                        "([M][N]double, [M][4]float)");
    const Binding size[] = {{"N", 5}, {"M", 7}};
    assert_non_null(ir_bind(c.program, size, 2, &c.diags));
    unload(&c);
    load(&c,
         "size N\n"
         "def down[A, t](a: [2*A][2*A]t): [A][A]t = array2(A, A, \\i j -> a[2*i][2*j])\n"
         "def inner[A, t](a: [A + 2]t): [A]t = array(A, \\i -> a[i + 1])\n"
         "def main(a: [4*N][4*N]float) = map(inner, down(down(a)))\n");
    if (!c.ok)
        fail_msg("%s", messages(&c));
    assert_string_equal(type_text(c.program->main->result, c.ir->arena), "[N][N - 2]float");
    unload(&c);
    open_fails("size N def f[A](a: [2*A]float) = a def main(a: [N]float) = f(a)", "T004",
               "must be [2*(N/2)]float, not [N]float");
    open_fails("size N def f[A](a: [A*A]float) = a def main(a: [N]float) = f(a)", "T026",
               "do not determine `A` of `f`");
    open_fails(
        "size N def f[A, t](a: [A]t, b: [A]t) = a def main(a: [N]float, b: [N]int) = "
        "f(a, b)",
        "T004", "must be [N]float, not [N]int");
    open_fails(
        "size N, M def f[A](a, b: [A]int) = a def main(a: [N]int, b: [M]int) = f(a, b)",
        "T004", "must be [N]int, not [M]int");
    open_fails(
        "size N def f[A, t](a: [A]t) = a |> map(\\x -> x % 2) def main(a: [N]float) = "
        "f(a)",
        "T002", "integer");
}

static void test_conditions(void **state)
{
    (void)state;
    Case c;
    load(&c, "size N\n"
             "def rows(a: [N]float) = a |> split(64)\n"
             "def main(a: [N]float) = rows(a) |> join\n");
    assert_true(c.ok);
    assert_int_equal(c.program->conditions.len, 1);
    Binding n = {"N", 1000};
    assert_null(ir_bind(c.program, &n, 1, &c.diags));
    assert_string_equal(c.diags.list.at[0].code, "T013");
    assert_string_equal(c.diags.list.at[0].message,
                        "split(64) needs a length divisible by 64, not 1000");
    n.value = 1024;
    Program *bound = ir_bind(c.program, &n, 1, &c.diags);
    assert_non_null(bound);
    assert_int_equal(bound->conditions.len, 0);
    assert_string_equal(type_text(bound->main->result, c.ir->arena), "[1024]float");
    assert_string_equal(type_text(bound->main->params[0]->type, c.ir->arena),
                        "[1024]float");
    assert_int_equal(c.program->conditions.len, 1); // the original is untouched
    assert_string_equal(type_text(c.program->main->params[0]->type, c.ir->arena),
                        "[N]float");
    unload(&c);
}

static void bind_fails(const Binding *binding, int n, const char *code, const char *says)
{
    Case c;
    load(&c, "size N, M\ndef main(a: [N][M]float) = a |> map2(\\x -> x * float(N))\n");
    assert_true(c.ok);
    assert_null(ir_bind(c.program, binding, n, &c.diags));
    assert_string_equal(c.diags.list.at[0].code, code);
    if (!strstr(c.diags.list.at[0].message, says))
        fail_msg("%s", messages(&c));
    unload(&c);
}

static void test_bad_bindings(void **state)
{
    (void)state;
    bind_fails((Binding[]){{"N", 4}, {"M", 4}, {"Q", 4}}, 3, "T020",
               "there is no size `Q`; the sizes of this program: N, M");
    bind_fails((Binding[]){{"N", 4}}, 1, "T021", "size M has no value");
    bind_fails((Binding[]){{"N", 4}, {"M", 0}}, 2, "T022", "not 0");
    bind_fails((Binding[]){{"N", 4}, {"M", -7}}, 2, "T022", "not -7");
    bind_fails((Binding[]){{"N", 4}, {"M", 4}, {"N", 5}}, 3, "T022", "twice");
    bind_fails((Binding[]){{"N", 1 << 30}, {"M", 1 << 30}}, 2, "T023", "2^40");
    Case c;
    load(&c, "size N\ndef main(a: [N]float): [N-8]float = drop(8, a)\n");
    assert_true(c.ok);
    assert_null(ir_bind(c.program, &(Binding){"N", 8}, 1, &c.diags));
    assert_non_null(strstr(messages(&c), "an array of `main` has no elements"));
    unload(&c);
}

static void test_generic_sizes(void **state)
{
    (void)state;
    Case c;
    load(&c, "size N generic\ndef main(a: [N]float) = a |> map(\\x -> x * float(N))\n");
    if (!c.ok) // the word is the parser's; without it there is nothing to test
        fail_msg("%s", messages(&c));
    Program *open = ir_bind(c.program, NULL, 0, &c.diags);
    assert_non_null(open);
    assert_string_equal(type_text(open->main->result, c.ir->arena), "[N]float");
    Program *bound = ir_bind(open, &(Binding){"N", 3}, 1, &c.diags);
    assert_non_null(bound);
    assert_string_equal(type_text(bound->main->result, c.ir->arena), "[3]float");
    assert_null(ir_bind(bound, &(Binding){"N", 3}, 1, &c.diags));
    unload(&c);
}

// Forty definitions, each the sum of `calls` calls of the one before and `more` terms.
static void check_too_large(const char *kind, int calls, int more, const char *code)
{
    Buf text = buf_new();
    buf_printf(&text, "%s f0(x: float): float = x + x\n", kind);
    for (int i = 1; i < 40; i++) {
        buf_printf(&text, "%s f%d(x: float): float = ", kind, i);
        for (int k = 0; k < calls; k++)
            buf_printf(&text, "f%d(x) + ", i - 1);
        for (int k = 0; k < more; k++)
            buf_puts(&text, "x + ");
        buf_puts(&text, "x\n");
    }
    buf_puts(&text, "def g(x: float) = f39(x)\n");
    Case c;
    load(&c, text.text);
    assert_false(c.ok);
    assert_int_equal(c.diags.errors, 1);
    assert_string_equal(c.diags.list.at[0].code, code);
    unload(&c);
    buf_release(&text);
}

static void test_inlining_is_bounded(void **state)
{
    (void)state;
    check_too_large("def", 2, 0, "T019");
    check_too_large("fun", 2, 0, "T025");
    check_too_large("def", 1, 1000, "T019");
}

// Forty tuples, each of two of the one before.
static void test_tuples_are_bounded(void **state)
{
    (void)state;
    Buf text = buf_new();
    buf_puts(&text, "def f(x: float) =\n");
    for (int i = 0; i < 40; i++)
        buf_printf(&text, "let x = (x, x) in\n");
    buf_puts(&text, "1.0\n");
    Case c;
    load(&c, text.text);
    assert_false(c.ok);
    assert_int_equal(c.diags.errors, 1);
    assert_string_equal(c.diags.list.at[0].code, "T024");
    unload(&c);
    buf_release(&text);
}

static void test_lone_expression(void **state)
{
    (void)state;
    Ir *ir = ir_new();
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Param *x = param_new(ir, "x", type_scalar(S_FLOAT));
    Expr *sum = expr_op(ir, OP_ADD, expr_param(ir, x), expr_literal(ir, 1, false), NULL);
    assert_true(ir_infer_expr(ir, sum, &diags));
    assert_true(type_equal(ir->arith, sum->arg[1]->type, type_scalar(S_FLOAT)));
    Expr *bad = expr_get(ir, expr_param(ir, x), 0);
    assert_false(ir_infer_expr(ir, bad, &diags));
    assert_int_equal(diags.errors, 1);
    arena_free(arena);
    ir_free(ir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_several_errors_without_cascade),
        cmocka_unit_test(test_errors_are_said_once),
        cmocka_unit_test(test_signature),
        cmocka_unit_test(test_defs_are_inlined),
        cmocka_unit_test(test_sizes_are_converted),
        cmocka_unit_test(test_open_defs),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_bad_bindings),
        cmocka_unit_test(test_generic_sizes),
        cmocka_unit_test(test_inlining_is_bounded),
        cmocka_unit_test(test_tuples_are_bounded),
        cmocka_unit_test(test_lone_expression),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
