// SPDX-License-Identifier: Apache-2.0
//
// The parser and the printer: what is printed parses back to the same program, wrong
// texts get the diagnostic with the place they deserve, and no text at all crashes.

#include "ir/ir.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    Ir *ir;
    Source source;
    Diags diags;
    Program *program;
} Parsed;

static Parsed parse_in(Ir *ir, const char *text, size_t len)
{
    Parsed parsed = {.ir = ir, .source = {"<test>", text, len}};
    // The source must outlive the program: it is kept where the program is.
    Source *source = NEW(ir->arena, Source);
    *source = parsed.source;
    parsed.diags = (Diags){.arena = ir->arena};
    parsed.program = ir_parse(ir, source, &parsed.diags);
    return parsed;
}

static Parsed parse(Ir *ir, const char *text)
{
    return parse_in(ir, text, strlen(text));
}

static void assert_parsed(const Parsed *parsed)
{
    if (parsed->program)
        return;
    Buf text = buf_new();
    diags_print(&text, &parsed->diags);
    print_error("%s\nin: %s\n", text.text, parsed->source.text);
    buf_release(&text);
    fail();
}

static char *printed(Ir *ir, const Program *program)
{
    Buf text = buf_new();
    ir_print(&text, program);
    char *copy = arena_strdup(ir->arena, text.text);
    buf_release(&text);
    return copy;
}

static Expr *as_lambda(Ir *ir, const Function *f)
{
    return expr_lambda(ir, f->params, f->nparam, f->body);
}

static void assert_same_function(Ir *ir, const Function *a, const Function *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->nparam, b->nparam);
    assert_int_equal(a->flops, b->flops);
    assert_true(!a->body == !b->body && !a->result == !b->result);
    for (int i = 0; i < a->nparam; i++)
        assert_true(type_equal(ir->arith, a->params[i]->type, b->params[i]->type));
    if (a->result)
        assert_true(type_equal(ir->arith, a->result, b->result));
    if (!a->body) {
        assert_string_equal(a->text, b->text);
        return;
    }
    Expr *left = as_lambda(ir, a), *right = as_lambda(ir, b);
    assert_true(expr_equal(left, right));
    assert_true(expr_hash(left) == expr_hash(right));
}

static void assert_same_program(Ir *ir, const Program *a, const Program *b)
{
    assert_int_equal(a->sizes.len, b->sizes.len);
    assert_int_equal(a->funs.len, b->funs.len);
    assert_int_equal(a->defs.len, b->defs.len);
    for (int i = 0; i < a->sizes.len; i++) {
        assert_ptr_equal(a->sizes.at[i].arith, b->sizes.at[i].arith);
        assert_int_equal(a->sizes.at[i].generic, b->sizes.at[i].generic);
    }
    for (int i = 0; i < a->funs.len; i++)
        assert_same_function(ir, a->funs.at[i], b->funs.at[i]);
    for (int i = 0; i < a->defs.len; i++)
        assert_same_function(ir, a->defs.at[i], b->defs.at[i]);
    assert_string_equal(a->main->name, b->main->name);
}

// Prints, parses again, and requires the same program and the same text.
static void assert_round_trip(Ir *ir, const Program *program)
{
    const char *text = printed(ir, program);
    Parsed again = parse(ir, text);
    assert_parsed(&again);
    assert_same_program(ir, program, again.program);
    assert_string_equal(text, printed(ir, again.program));
}

// A program over the sizes and functions that all the expressions below share.
static char *wrap(Ir *ir, const char *expr)
{
    return arena_printf(
        ir->arena,
        "size N, M, T generic\n"
        "fun sq(x: float): float = x * x\n"
        "fun axpy(a, x, y: float): float = fma(a, x, y)\n"
        "fun odd(x: int): int = c\"return x | 1; /* \\\"\\\\ */\\n\" flops 1\n"
        "def twice(v: [N]float): [N]float = map(\\x -> 2 * x, v)\n"
        "def main(a: [N][M]float, x, y: [N]float, z: [M]float, i, j: int,\n"
        "         b: bool, f, g: float, t: (float, (int, float))) =\n  %s\n",
        expr);
}

static const char *const round_trips[] = {
    // bits, and types of scalars
    "i << 2 >> j & i + 1 ^ ~i | (i & 3) * -j",
    "(i & 1) == 0 && i == (j | 1)",
    "(char(i), uchar(i), short(i), ushort(i), uint(i), long(i), ulong(i), bf16(f))",
    "reduce(^, 0, map(\\e -> int(e), x))",
    // the other functions of a floating number
    "cbrt(exp2(f) + exp10(f) + expm1(f)) * hypot(log2(f), log10(g) - log1p(f))",
    "asin(f) + acos(f) + atan(f) + atan2(f, g) + sinh(f) + cosh(f) + asinh(f)",
    "acosh(f) + atanh(f) + erfc(f) + tgamma(f) + lgamma(f) + copysign(f, g)",
    "round(f) + rint(f) + trunc(f) + fmod(f, g) + remainder(f, g) + fdim(f, g)",
    "zip(x, y) |> reduce(\\(m, k) (u, v) -> (max(m, u), k + v), (0.0, 0.0))",
    "zip(x, y) |> map(\\(u, v) -> u * v)",
    // patterns
    "map(sq, x)",
    "map2(sqrt, a)",
    "map3(sq, a |> split2(4, 8))",
    "map(*, zip(x, y))",
    "zip(x, y, x) |> map(axpy)",
    "zip(x, y) |> map(\\p q -> p - q)",
    "a |> map(reduce(+, 0))",
    "x |> reduce(max, -1e30)",
    "x |> scan(+, 0.0)",
    "x |> iterate(T, twice)",
    "(x, y) |> iterate(3, \\p q -> (q, map(+, zip(p, q))))",
    "array(N, \\k -> k % 2)",
    "array2(N, M, \\p q -> p * M + q)",
    "array2(N, \\p q -> float(p == q))",
    "array3(2, 3, 4, \\p q r -> p + q + r)",
    "array3(2, fma)",
    "zip2(a, a)",
    "zip3(array3(2, fma), array3(2, fma))",
    "unzip(zip(x, y)).1",
    "x |> split(N / 4) |> join",
    "a |> split2(4, 8) |> join2",
    "a |> split2(4, 4) |> join2()",
    "x |> slide(3, 1) |> map(reduce(+, 0))",
    "a |> slide2(3, 1, 5, 2)",
    "x |> pad(1, 1, clamp)",
    "a |> pad2(1, 1, mirror)",
    "a |> pad2(1, 2, 3, 4, wrap)",
    "a |> pad2(1, 1, 0.0)",
    "pad(1, 2, f + 1, x)",
    "pad2(1, 1, 0, a)",
    "transpose(a)",
    "a |> transpose |> transpose() |> map(zip)",
    "x |> gather(\\k -> N - 1 - k)",
    "x |> scatter(\\k -> (k + 1) % N)",
    "take(N - 1, x)",
    "a |> drop2(1, 2) |> take2(N - 2, M - 3)",
    "x |> asVector(4) |> asScalar",
    "a |> mapGlb0(\\r -> r |> mapSeq(sq) |> toGlobal)",
    "a |> mapWrg1(\\r -> r |> mapLcl0(sq) |> toLocal)",
    "a |> mapGlb2(mapGlb1(sq))",
    "a |> mapWrg2(mapLcl1(mapLcl2(sq)))",
    "x |> mapSeqUnroll(sq)",
    "x |> reduceSeq(+, toPrivate(0.0))",
    "x |> reduceSeqUnroll(\\acc e -> acc + e, 0.0)",
    "x |> reduceMatrix(\\acc e -> acc + e, 0.0)",
    "x |> reduceLanes(\\acc e -> acc + e, 0.0)",
    "x |> scanSeq(min, 0.0)",
    "map(\\v -> long(v), x) |> split(1) |> lookBack(min, 0.0, x, x[3], 3)",
    "zip(array(N, \\k -> k), x) |> reduceBy(M, \\s v -> s + v, 0.0)",
    "reduceByGlb(+, y, split(2, zip(array(N, \\k -> k), x)))",
    "reduceByLcl(+, y, split(2, zip(array(N, \\k -> k), x)))",
    "reduceByOwn(+, y, split(2, zip(array(N, \\k -> k), x)))",
    "x |> mapSeqSlide(3, 1, reduceSeq(+, 0))",
    "x |> iterateStream(3, 2, 4, 64, \\v -> map(\\e -> e + f, v))",
    // operations, precedence, literals
    "i + j * 3 - 4 / 5 % 6 - (i - (j - 1)) * (i * (j / 2))",
    "b || i < j && !(i == j) || i >= j && (b && (f != g || f > g || f <= g))",
    "-f - -g + -(-f) - -1 - (-(1)) * -(f + g)",
    "if b then f else if i < 3 then g else 0",
    "(if b then f else g) + (let h = f in h)",
    "min(max(i, j), abs(i))",
    "sqrt(f) + rsqrt(f) + exp(f) + log(f) + pow(f, g) + sin(f) + cos(f) + tan(f)",
    "tanh(f) + erf(f) + floor(f) + ceil(f) + fma(f, g, f)",
    "(bool(i), int(f), half(f), float(i), double(f), true, false)",
    "f |> sqrt |> pow(2.0) |> float",
    "(1, 0, 1.0, 0.1, 1e-3, 1e22, 1e300, 123456.5, 3.4028234663852886e38, 5e-324)",
    "(0.30000000000000004, 9007199254740992, 100.0, 1e15, 12345678901234567890.0)",
    "(inf, -inf, max(f, -inf), -(inf + f))",
    "t.1.0 + t.0 + a[i][j] + x[N - 1] + (t.1).1 + zip(x, y)[0].1",
    "(x[0], (y[1], 2)).1.0",
    "N * M - T + size(N * M - T) + size(4) + size(N)",
    "size(min(N, M / 2) % 3)",
    // names
    "let N = 3 in let x = N + 1 in let x = x * x in x",
    "let p = (let q = 1 in q) in let q = p in q + p",
    "x |> map(\\x -> y |> map(\\y -> x + y) |> reduce(+, 0))",
    "let sq = 1 in sq + 1",
    "axpy(f, sq(g), float(odd(i)))",
    "x |> twice |> map(axpy(f, g))",
    "twice(twice(x)) |> map(odd)",
    // wide ones
    "a |> map(\\row -> row |> pad(1, 1, clamp) |> slide(3, 1) |> map(\\w -> if w[0] + w[1] "
    "> "
    "w[2] then reduce(+, 0, w) + 100000 * w[0] else let third = w[2] / 3 in third * third "
    "* third - (w[0] + w[1] + w[2]) * (w[0] - w[1] - w[2]) / (1 + abs(w[0])))) |> "
    "transpose",
    "(pow(pow(f, g) + pow(g, f) + pow(f, f), pow(g, g) + pow(f, g) + pow(g, f) + pow(f, "
    "f)), "
    "pow(f, g) * (pow(g, f) + pow(g, g) + pow(f, f)) * pow(f, f) * pow(g, g) * pow(f, g))",
};

static void test_round_trips(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(round_trips); i++) {
        Ir *ir = ir_new();
        Parsed parsed = parse(ir, wrap(ir, round_trips[i]));
        assert_parsed(&parsed);
        assert_round_trip(ir, parsed.program);
        ir_free(ir);
    }
}

static void note_used(const Expr *expr, bool *pattern, bool *op)
{
    if (expr->kind == E_PATTERN)
        pattern[expr->pattern] = true;
    if (expr->kind == E_OP)
        op[expr->op] = true;
    for (int i = 0; i < expr->narg; i++)
        note_used(expr->arg[i], pattern, op);
    if (expr->fun)
        note_used(expr->fun, pattern, op);
}

static void test_every_pattern_and_op_is_covered(void **state)
{
    (void)state;
    bool pattern[PATTERNS] = {0}, op[OPS] = {0};
    Ir *ir = ir_new();
    for (int i = 0; i < COUNTOF(round_trips); i++) {
        Parsed parsed = parse(ir, wrap(ir, round_trips[i]));
        assert_parsed(&parsed);
        note_used(parsed.program->main->body, pattern, op);
    }
    for (int i = 0; i < PATTERNS; i++)
        if (!pattern[i])
            fail_msg("no round trip of %s", pattern_info[i].text);
    for (int i = 0; i < OPS; i++)
        if (!op[i])
            fail_msg("no round trip of %s", op_info[i].text);
    ir_free(ir);
}

// Canonical text ----------------------------------------------------------------------

typedef struct {
    const char *from, *to;
} Canonical;

static const Canonical canonical[] = {
    {"map(\\x->2*x,y)", "map(\\x2 -> 2 * x2, y)"},
    {"map(sq, (x))", "map(\\x2 -> sq(x2), x)"},
    {"map(join, map(split(4), x))",
     "x |> map(\\x2 -> split(4, x2)) |> map(\\x2 -> join(x2))"},
    {"map(+, zip(x,y))", "zip(x, y) |> map(\\t2 -> t2.0 + t2.1)"},
    {"zip(x,y) |> map(\\p q -> p + q)", "zip(x, y) |> map(\\t2 -> t2.0 + t2.1)"},
    {"a |> slide2(3,1, 3,1) |> pad2(1,1, 1,2, clamp)",
     "a |> slide2(3, 1) |> pad2(1, 1, 1, 2, clamp)"},
    {"((i) + (j * 2)) - ((3))", "i + j * 2 - 3"},
    {"i - (j - 2)", "i - (j - 2)"},
    {"f |> pow(2)", "pow(2, f)"},
    {"- 1 + -i", "-1 + -i"},
    {"1.50 + 1e2 + 0.1e-6 + 007", "1.5 + 100.0 + 1e-07 + 7"},
    {"0x1F + 0xedb88320 + 0x00", "31 + 3988292384 + 0"},
    {"let i = 1 in i", "let i2 = 1 in i2"},
};

static void test_canonical_text(void **state)
{
    (void)state;
    Ir *ir = ir_new();
    for (int i = 0; i < COUNTOF(canonical); i++) {
        Parsed parsed = parse(ir, wrap(ir, canonical[i].from));
        assert_parsed(&parsed);
        const char *text = printed(ir, parsed.program);
        const char *body = strstr(text, "))) =\n  ");
        assert_non_null(body);
        char *want = arena_printf(ir->arena, "))) =\n  %s\n", canonical[i].to);
        assert_string_equal(body, want);
    }
    ir_free(ir);
}

static void test_whole_program(void **state)
{
    (void)state;
    static const char text[] =
        "// 5-point Jacobi\n"
        "size N, M\n"
        "fun j5(n, w, c, e, s: float): float = (5*n + 12*w + 15*c + 12*e + 5*s) / 118\n"
        "def halved[A,t](a: [A]t, w: t): [A]t = map(\\x -> t(0.5)*x, a)\n"
        "def jacobi2d(a: [N][M]float): [N][M]float =\n"
        "  a |> pad2(1, 1, clamp) |> slide2(3, 1)\n"
        "    |> map2(\\p -> j5(p[0][1], p[1][0], p[1][1], p[1][2], p[2][1]))\n";
    static const char want[] =
        "size N, M\n\n"
        "fun j5(n, w, c, e, s: float): float = (5 * n + 12 * w + 15 * c + 12 * e + 5 * s) "
        "/ 118\n\n"
        "def halved[A, t](a: [A]t, w: t): [A]t =\n"
        "  map(\\x -> t(0.5) * x, a)\n\n"
        "def jacobi2d(a: [N][M]float): [N][M]float =\n"
        "  a\n"
        "    |> pad2(1, 1, clamp)\n"
        "    |> slide2(3, 1)\n"
        "    |> map2(\\p -> j5(p[0][1], p[1][0], p[1][1], p[1][2], p[2][1]))\n";
    Ir *ir = ir_new();
    Parsed parsed = parse(ir, text);
    assert_parsed(&parsed);
    assert_string_equal(printed(ir, parsed.program), want);
    assert_string_equal(parsed.program->main->name, "jacobi2d");
    const Expr *map = parsed.program->main->body;
    assert_int_equal(map->pattern, P_MAP);
    assert_int_equal(map->dims, 2);
    assert_int_equal(map->span.start, strstr(text, "a |> pad2") - text);
    assert_int_equal(map->span.end, sizeof text - 2);
    const Expr *slide = map->arg[0];
    assert_int_equal(slide->nnum, 4);
    assert_ptr_equal(slide->num[2], slide->num[0]);
    assert_int_equal(slide->span.end, strstr(text, "\n    |> map2") - text);
    const Param *p = map->fun->params[0];
    assert_int_equal(p->span.start, strstr(text, "p -> j5") - text);
    ir_free(ir);
}

// The manual --------------------------------------------------------------------------

static char *manual(Arena *arena)
{
    Buf text = buf_new();
    assert_true(file_read("doc/language.md", FILE_DATA_MOST, &text));
    char *copy = arena_strdup(arena, text.text);
    buf_release(&text);
    return copy;
}

// The text up to the end of its line.
static char *line_at(Arena *arena, const char *text)
{
    return arena_strndup(arena, text, strcspn(text, "\n"));
}

// An example in the manual has to parse and to have a type.
static Program *assert_example(Ir *ir, const char *example)
{
    Parsed parsed = parse(ir, wrap(ir, example));
    assert_parsed(&parsed);
    if (!ir_infer(parsed.program, &parsed.diags)) {
        parsed.program = NULL;
        assert_parsed(&parsed);
    }
    return parsed.program;
}

// A pattern is three lines of the manual: its name and type, what it does, an example.
static void test_manual_has_every_pattern(void **state)
{
    (void)state;
    Ir *ir = ir_new();
    char *text = manual(ir->arena);
    for (int i = 0; i < PATTERNS; i++) {
        const PatternInfo *info = &pattern_info[i];
        char *row = strstr(text, arena_printf(ir->arena, "\n%s  ", info->text));
        if (!row)
            fail_msg("no %s in doc/language.md", info->text);
        char *doc = strchr(row + 1, '\n') + 1, *example = strchr(doc, '\n') + 1;
        doc = line_at(ir->arena, doc + strspn(doc, " "));
        assert_string_equal(doc, info->doc);
        bool pattern[PATTERNS] = {0}, op[OPS] = {0};
        Program *program = assert_example(ir, line_at(ir->arena, example));
        note_used(program->main->body, pattern, op);
        assert_true(pattern[i]);
    }
    ir_free(ir);
}

static const char *const types_word[] = {"arith", "integer", "float", "comp",
                                         "logic", "cast",    "select"};

// An operation is one line: the operation, its types, what it does, an example.
static void test_manual_has_every_op(void **state)
{
    (void)state;
    Ir *ir = ir_new();
    char *text = manual(ir->arena);
    for (int i = 0; i < OPS; i++) {
        const OpInfo *info = &op_info[i];
        char *head = arena_printf(ir->arena, "\n%-8s %-7s %s  ", info->text,
                                  types_word[info->types], info->doc);
        char *row = strstr(text, head);
        if (!row)
            fail_msg("no row of %s in doc/language.md:%s", info->text, head);
        bool pattern[PATTERNS] = {0}, op[OPS] = {0};
        Program *program = assert_example(ir, line_at(ir->arena, row + strlen(head)));
        note_used(program->main->body, pattern, op);
        assert_true(op[i]);
    }
    ir_free(ir);
}

// Trees made by hand ------------------------------------------------------------------

static char *expr_text(Ir *ir, const Expr *expr)
{
    Buf text = buf_new();
    expr_print(&text, expr);
    char *copy = arena_strdup(ir->arena, text.text);
    buf_release(&text);
    return copy;
}

static Param *int_param(Ir *ir, const char *name)
{
    return param_new(ir, name, type_scalar(S_INT));
}

static void test_replace_does_not_capture(void **state)
{
    (void)state;
    Ir *ir = ir_new();
    Param *free_x = int_param(ir, "x"), *bound = int_param(ir, "x"),
          *y = int_param(ir, "y");
    // \x -> x + y with y := the outer x
    Expr *sum = expr_op(ir, OP_ADD, expr_param(ir, bound), expr_param(ir, y), NULL);
    Expr *lambda = expr_lambda(ir, &bound, 1, sum);
    Expr *replaced = expr_replace(ir, lambda, y, expr_param(ir, free_x));
    assert_string_equal(expr_text(ir, lambda), "\\x -> x + y");
    assert_string_equal(expr_text(ir, replaced), "\\x2 -> x2 + x");
    assert_true(expr_mentions(replaced, free_x));
    assert_false(expr_mentions(replaced, y));
    assert_false(expr_mentions(replaced, bound));
    ir_free(ir);
}

static void test_equal_up_to_bound_names(void **state)
{
    (void)state;
    Ir *ir = ir_new();
    Param *a = int_param(ir, "a"), *b = int_param(ir, "b");
    Param *ab[] = {a, b}, *ba[] = {b, a};
    Expr *left = expr_lambda(
        ir, ab, 2, expr_op(ir, OP_SUB, expr_param(ir, a), expr_param(ir, b), NULL));
    Expr *swapped = expr_lambda(
        ir, ba, 2, expr_op(ir, OP_SUB, expr_param(ir, a), expr_param(ir, b), NULL));
    Expr *copy = expr_clone(ir, left);
    assert_ptr_not_equal(copy->params[0], a);
    assert_true(expr_equal(left, copy));
    assert_true(expr_hash(left) == expr_hash(copy));
    assert_false(expr_equal(left, swapped));
    assert_true(expr_hash(left) != expr_hash(swapped));
    assert_false(expr_equal(left, left->arg[0]));
    // Free params are themselves, whatever their names.
    Expr *one = expr_param(ir, a), *other = expr_param(ir, int_param(ir, "a"));
    assert_true(expr_equal(one, expr_param(ir, a)));
    assert_false(expr_equal(one, other));
    ir_free(ir);
}

static void test_types(void **state)
{
    (void)state;
    Ir *ir = ir_new();
    const Arith *n = arith_size(ir->arith, "N"), *two = arith_const(ir->arith, 2);
    const Type *item[] = {type_scalar(S_FLOAT), type_vector(S_INT, 4)};
    const Type *tuple = type_tuple(ir->arena, item, 2);
    const Type *type = type_array(ir->arena, n, type_array(ir->arena, two, tuple));
    Buf text = buf_new();
    type_print(&text, type);
    assert_string_equal(text.text, "[N][2](float, int4)");
    buf_release(&text);
    const Arith *count = type_count(ir->arith, type);
    assert_true(arith_equal(ir->arith, count, arith_mulc(ir->arith, n, 10)));
    assert_ptr_equal(type_elem(type, 2), tuple);
    assert_true(type_equal(ir->arith, tuple, type_tuple(ir->arena, item, 2)));
    assert_false(type_equal(ir->arith, tuple, type_tuple(ir->arena, item, 1)));
    assert_false(type_equal(ir->arith, type, type->elem));
    assert_true(type_is_float(item[0]) && !type_is_float(item[1]) && !type_is_float(tuple));
    assert_true(type_is_scalar(item[1]) && !type_is_scalar(type));
    ir_free(ir);
}

// Errors ------------------------------------------------------------------------------

typedef struct {
    const char *text, *code;
    int line, col;
    const char *words; // some of the message
} Wrong;

#define BODY(expr) "size N\ndef f(a: [N]float, i: int) =\n" expr

static const Wrong wrong[] = {
    {"", "P012", 1, 1, "no def"},
    {"size N", "P012", 1, 7, "no def"},
    {"def f[A, t](a: [A]t) = a", "P012", 1, 25, "all known"},
    {"size A def f[A](a: [A]int) = a", "P007", 1, 14, "declared already"},
    {"fun f[t](a: t): t = a", "P016", 1, 7, "use a def"},
    {"def f[A](a: [A]int) = a def g(a: [A]int) = a", "P006", 1, 35, "no size named `A`"},
    {"size N, N\n", "P007", 1, 9, "line 1"},
    {"size N multiple 4\n", "P005", 1, 8, "follows `generic`"},
    {"size map\n", "P015", 1, 6, "word of the language"},
    {"size def\n", "P015", 1, 6, "word of the language"},
    {"hello", "P005", 1, 1, "expected `size`, `fun` or `def`"},
    {"def f(a: [M]float) = a", "P006", 1, 11, "no size named `M`"},
    {"def f[n](a: [n]int) = a", "P009", 1, 14, "begins with a small letter"},
    {"size Width\ndef f(a: [Widht]float) = a", "P006", 2, 11, "did you mean `Width`"},
    {"def f(a: flaot) = a", "P006", 1, 10, "not a type"},
    {"def f(a: [3, 4]float) = a", "P005", 1, 12, "own brackets"},
    {"def f(a: [0]float) = a", "P011", 1, 11, "at least 1"},
    {"def f(a: [4/0]float) = a", "P011", 1, 13, "divisor"},
    {"size N def f(a: [4/(N-1)]float) = a", "P011", 1, 20, "divisor"},
    {"def f(a: [99999999999999999999]float) = a", "P003", 1, 11, "2^53"},
    {"def f(a, a: float) = a", "P007", 1, 10, "two parameters"},
    {"def f(a: float = a", "P005", 1, 16, "expected `)`"},
    {"def f(a: float) a", "P005", 1, 17, "expected `=`"},
    {"def f(a: float) = a b", "P005", 1, 21, "found `b`"},
    {"def f(a: float) = (a, a", "P005", 1, 24, "the end of the text"},
    {"fun f(a: float) = a", "P005", 1, 17, "type of the result"},
    {"fun f(): float = 1", "P016", 1, 7, "needs a parameter"},
    {"fun f(a: (float, float)): float = 1", "P016", 1, 10, "takes scalars"},
    {"size N fun f(a: float): [N]float = 1", "P016", 1, 25, "returns a scalar"},
    {"fun f(a: float): (float, float) = (a, a)", "P016", 1, 18, "use a def"},
    {"fun f(a: float): float = map(sqrt, a)", "P016", 1, 26, "patterns belong in a def"},
    {"def g(a: float) = a fun f(a: float): float = g(a)", "P016", 1, 46, "only funs"},
    {"fun f(a: float): float = c\"x\"", "P005", 1, 30, "flops"},
    {"def f(a: float): float = c\"x\" flops 1", "P016", 1, 26, "only a fun"},
    {"fun f(a: float): float = c\"x flops 1", "P004", 1, 26, "closing quote"},
    {"fun f(a: float): float = c\"\\x\" flops 1", "P004", 1, 28, "escape"},
    {"def f(a: float) = f(a)", "P006", 1, 19, "cannot call itself"},
    {BODY("map(\\x -> iterate(2 * i, \\y -> y + x, x), a)"), "P009", 3, 23, "an `if`"},
    {BODY("array(N, \\k -> array(k + 1, \\j -> a[j]))"), "P009", 3, 22, "`k` is a value"},
    {BODY("let n = 3 in take(a[n] - n, a)"), "P009", 3, 19, "`a` is a value"},
    {"size N def f(n: int, a: [n]float) = a", "P009", 1, 26, "`n` is a value"},
    {BODY("b"), "P006", 3, 1, "nothing named `b`"},
    {BODY("map(sqtr, a)"), "P006", 3, 5, "did you mean `sqrt`"},
    {BODY("a |> mapp(sqrt)"), "P006", 3, 6, "did you mean `map`"},
    {BODY("a |> mapGlb(sqrt)"), "P006", 3, 6, "did you mean `mapGlb0`"},
    {BODY("a |> map4(sqrt)"), "P006", 3, 6, "did you mean `map"},
    {BODY("map"), "P009", 3, 1, "is a pattern"},
    {BODY("sqrt"), "P009", 3, 1, "is a function"},
    {BODY("clamp"), "P009", 3, 1, "word of the language"},
    {BODY("a(1)"), "P009", 3, 1, "cannot be called"},
    {BODY("N(1)"), "P009", 3, 1, "cannot be called"},
    {BODY("map(a, a)"), "P009", 3, 5, "a function is needed"},
    {BODY("map(N, a)"), "P009", 3, 5, "a function is needed"},
    {BODY("map(1, a)"), "P005", 3, 5, "expected a function"},
    {BODY("map(sqrt)"), "P008", 3, 1, "`map(function, array)`, found 1"},
    {BODY("a |> map(sqrt, a)"), "P008", 3, 6, "found 2 and the piped array"},
    {BODY("slide2(3, a)"), "P008", 3, 1, "the sizes once or 2 times"},
    {BODY("pad(1, 1, a)"), "P008", 3, 1, "`pad(size, size, mode, array)`"},
    {BODY("reduce(sqrt, 0, a)"), "P008", 3, 8, "a function of 2 parameters"},
    {BODY("reduce(\\x -> x, 0, a)"), "P008", 3, 8, "this one has 1"},
    {BODY("reduce(\\s x y -> s, 0, zip(a, a))"), "P008", 3, 8, "in parentheses"},
    {BODY("array(N, \\x y -> x)"), "P008", 3, 10, "a function of 1 parameter,"},
    {BODY("reduce(split(4), 0, a)"), "P008", 3, 8, "this one has 1"},
    {BODY("sqrt(1, 2)"), "P008", 3, 1, "takes 1 argument, not 2"},
    {BODY("1.0 |> sqrt(2)"), "P008", 3, 8, "takes 1 argument, not 2"},
    {BODY("a |> split(i)"), "P009", 3, 12,
     "`i` is a value; lengths and counts are made of"},
    {BODY("a |> split(1.5)"), "P005", 3, 12, "expected a size"},
    {BODY("a |> 3"), "P005", 3, 6, "to pipe into"},
    {BODY("\\x -> x"), "P013", 3, 1, "function of a pattern"},
    {BODY("map(\\x x -> x, a)"), "P007", 3, 8, "two parameters"},
    {BODY("map(\\let -> 1, a)"), "P015", 3, 6, "word of the language"},
    {BODY("map(\\x y, a)"), "P005", 3, 9, "expected `->`"},
    {BODY("i < i < i"), "P014", 3, 7, "do not chain"},
    {BODY("1 + if i < 1 then 1 else 2"), "P005", 3, 5, "parentheses"},
    {BODY("let x = 1; x"), "P005", 3, 10, "expected `in` and"},
    {BODY("let x = 1 x"), "P005", 3, 11, "expected `in`"},
    {BODY("if i < 1 then 1"), "P005", 3, 16, "expected `else`"},
    {BODY("a.b"), "P005", 3, 3, "the number of a component"},
    {BODY("a.1000"), "P003", 3, 3, "no tuple"},
    {BODY("a[1"), "P005", 3, 4, "expected `]`"},
    {BODY("1.0f"), "P002", 3, 1, "`1.0f` is not a number"},
    {BODY("1. + 2"), "P002", 3, 1, "`1.` is not a number"},
    {BODY("1e400"), "P003", 3, 1, "does not fit"},
    {BODY("1e-400"), "P003", 3, 1, "does not fit"},
    {BODY("9007199254740993"), "P003", 3, 1, "2^53"},
    {BODY("0x20000000000001"), "P003", 3, 1, "2^53"},
    {BODY("0x1g"), "P002", 3, 1, "`0x1g` is not a number"},
    {BODY("0x"), "P002", 3, 1, "`0x` is not a number"},
    {BODY("a @ b"), "P001", 3, 3, "@"},
    {BODY("\"text\""), "P001", 3, 1, "c\"...\""},
    {BODY("a + \xc3\xa9"), "P001", 3, 5, "ASCII"},
    {BODY("\x01\x01"), "P001", 3, 1, "control byte 0x01"},
    {BODY("1 + ()"), "P005", 3, 6, "expected an expression"},
    {BODY("size(N"), "P005", 3, 7, "expected `)`"},
    {BODY("a |> map(sqrt"), "P005", 3, 9, "not closed"},
    {BODY("a |> map(sqrt] + (1)"), "P005", 3, 14, "expected `)`"},
    {BODY("min(i\nfun g(x: int): int = x\ndef h(x: int) = g(x)"), "P005", 3, 4, "closed"},
};

static void test_errors(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(wrong); i++) {
        Ir *ir = ir_new();
        Parsed parsed = parse(ir, wrong[i].text);
        if (parsed.program || !parsed.diags.list.len)
            fail_msg("accepted: %s", wrong[i].text);
        const Diag *diag = &parsed.diags.list.at[0];
        int line, col;
        span_line_col(diag->span, &line, &col);
        if (strcmp(diag->code, wrong[i].code) || line != wrong[i].line ||
            col != wrong[i].col || !strstr(diag->message, wrong[i].words))
            fail_msg("%s\n  gives %d:%d %s %s", wrong[i].text, line, col, diag->code,
                     diag->message);
        ir_free(ir);
    }
}

static void test_nul_byte(void **state)
{
    (void)state;
    static const char outside[] = "def f(a: float) = a \0 + 1";
    static const char inside[] = "fun f(a: float): float = c\"ret\0urn\" flops 1";
    static const char comment[] = "def f(a: float) = a // \0 \xff\n";
    Ir *ir = ir_new();
    Parsed parsed = parse_in(ir, outside, sizeof outside - 1);
    assert_null(parsed.program);
    assert_string_equal(parsed.diags.list.at[0].code, "P001");
    assert_int_equal(parsed.diags.list.at[0].span.start, 20);
    parsed = parse_in(ir, inside, sizeof inside - 1);
    assert_null(parsed.program);
    assert_string_equal(parsed.diags.list.at[0].code, "P004");
    parsed = parse_in(ir, comment, sizeof comment - 1);
    assert_parsed(&parsed);
    ir_free(ir);
}

// Every declaration is looked at, and a broken one does not break those that use it.
static void test_several_errors(void **state)
{
    (void)state;
    static const char text[] = "size map, N\n"
                               "fun f(x: float): float = x +\n"
                               "fun g(x: float): float = y\n"
                               "def one(a: [N]float) = map(f, a) |> map(g)\n"
                               "def two(a: [N]float) = map(h, a)\n";
    static const int lines[] = {1, 3, 3, 5};
    Ir *ir = ir_new();
    Parsed parsed = parse(ir, text);
    assert_null(parsed.program);
    assert_int_equal(parsed.diags.errors, COUNTOF(lines));
    for (int i = 0; i < COUNTOF(lines); i++) {
        int line, col;
        span_line_col(parsed.diags.list.at[i].span, &line, &col);
        assert_int_equal(line, lines[i]);
    }
    ir_free(ir);
}

// Depth -------------------------------------------------------------------------------

static char *repeated(Ir *ir, const char *head, const char *part, int n, const char *tail)
{
    Buf text = buf_new();
    buf_puts(&text, head);
    for (int i = 0; i < n; i++)
        buf_puts(&text, part);
    buf_puts(&text, tail);
    char *copy = arena_strdup(ir->arena, text.text);
    buf_release(&text);
    return copy;
}

static void test_depth_is_limited(void **state)
{
    (void)state;
    static const char *const part[][2] = {
        {"(", ")"},     {"-", ""},
        {"!", ""},      {"let y = 1 in ", ""},
        {"sqrt(", ")"}, {"x[", "]"},
        {"x + (", ")"}, {"x |> map(\\z -> ", ")"},
        {"(1, ", ")"},  {"if b then ", " else 1"},
    };
    Ir *ir = ir_new();
    for (int i = 0; i < COUNTOF(part); i++) {
        const char *tail = repeated(ir, "x", part[i][1], 10000, "");
        Parsed parsed =
            parse(ir, repeated(ir, "def f(x, b: float) = ", part[i][0], 10000, tail));
        assert_null(parsed.program);
        assert_string_equal(parsed.diags.list.at[0].code, "P010");
        assert_int_equal(parsed.diags.errors, 1);
    }
    static const char *const chain[] = {" + x", "[0]", ".0", " |> sqrt", " |> join"};
    for (int i = 0; i < COUNTOF(chain); i++) {
        Parsed parsed =
            parse(ir, repeated(ir, "def f(x: float) = x", chain[i], 100000, ""));
        assert_null(parsed.program);
        assert_string_equal(parsed.diags.list.at[0].code, "P010");
        parsed = parse(ir, repeated(ir, "def f(x: float) = x", chain[i], 1500, ""));
        assert_parsed(&parsed);
    }
    Parsed parsed = parse(ir, repeated(ir, "def f(x: ", "[2]", 100000, "float) = x"));
    assert_string_equal(parsed.diags.list.at[0].code, "P010");
    parsed = parse(ir, repeated(ir, "size N def f(x: [", "-(", 100000, "N"));
    assert_string_equal(parsed.diags.list.at[0].code, "P010");
    parsed =
        parse(ir, repeated(ir, "size N, M def f(x: [1", "*(N+M+1)", 60, "]float) = x"));
    assert_string_equal(parsed.diags.list.at[0].code, "P011");
    parsed = parse(ir, repeated(ir, "def f(x: [2", "*9999", 60, "]float) = x"));
    assert_string_equal(parsed.diags.list.at[0].code, "P011");
    parsed = parse(ir, repeated(ir, "size N def f(x: [N", "+N", 10000, "]float) = x"));
    assert_parsed(&parsed);
    parsed = parse(ir, repeated(ir, "size N, M def f(x: [1", "*(N+M+1)", 7, "]float) = x"));
    assert_parsed(&parsed);
    assert_round_trip(ir, parsed.program);
    ir_free(ir);
}

static void assert_refused(Ir *ir, const char *text, const char *code)
{
    Parsed parsed = parse(ir, text);
    assert_null(parsed.program);
    assert_string_equal(parsed.diags.list.at[0].code, code);
}

// Each of so many names would be looked for among all the others.
static void test_number_is_limited(void **state)
{
    (void)state;
    Ir *ir = ir_new();
    Buf sizes, params;
    sizes = buf_new();
    params = buf_new();
    buf_puts(&params, "def f(");
    for (int i = 0; i < 30000; i++) {
        buf_printf(&sizes, "size N%d\n", i);
        buf_printf(&params, "a%d, ", i);
    }
    buf_puts(&sizes, "def f(x: float) = x\n");
    buf_puts(&params, "x: float) = x\n");
    assert_refused(ir, sizes.text, "P018");
    assert_refused(ir, params.text, "P018");
    assert_refused(ir, repeated(ir, "def f(x: float) = x", "\n", 1 << 20, ""), "P017");
    buf_release(&sizes);
    buf_release(&params);
    ir_free(ir);
}

// C text goes into kernels, which people print.
static void test_control_characters(void **state)
{
    (void)state;
    static const char *const part[] = {"\033[31m", "\a", "\xc2\x9b", "\xe2\x80\xae",
                                       "\xff"};
    Ir *ir = ir_new();
    for (int i = 0; i < COUNTOF(part); i++)
        assert_refused(
            ir,
            arena_printf(ir->arena, "fun f(x: float): float = c\"%s\" flops 1", part[i]),
            "P004");
    Parsed parsed = parse(ir, "fun f(x: float): float = c\"return x; /* \xc3\xa9\t\n */\" "
                              "flops 1 def g(x: float) = f(x)");
    assert_parsed(&parsed);
    assert_round_trip(ir, parsed.program);
    ir_free(ir);
}

static void test_nesting_round_trips(void **state)
{
    (void)state;
    Ir *ir = ir_new();
    Parsed parsed = parse(
        ir, repeated(ir, "def f(x: float) = ", "-(", 240, repeated(ir, "x", ")", 240, "")));
    assert_parsed(&parsed);
    parsed = parse(ir, repeated(ir, "def f(x: float) = x", " + x * x", 900, ""));
    assert_parsed(&parsed);
    assert_round_trip(ir, parsed.program);
    ir_free(ir);
}

// Mutations ---------------------------------------------------------------------------

static const char *const pieces[] = {
    "(",   ")",    "[",     "]",   ",",    "|>",  "\\x -> ", "->", "let ", " in ",   "if ",
    "N",   "x",    "a",     "map", "pad2", "1",   "1.0",     "-",  "*",    "/",      ".0",
    "def", "size", "clamp", "fun", "=",    "c\"", "\"",      ":",  "0",    "reduce", "+",
};

static void mutate(Buf *text, Rng *rng)
{
    size_t at = rng_below(rng, text->len + 1), len = rng_below(rng, 12);
    size_t to = MIN(at + len, text->len);
    Buf out = buf_new();
    buf_write(&out, text->text, at);
    switch (rng_below(rng, 5)) {
    case 0: buf_putc(&out, (char)rng_below(rng, 256)); break;
    case 1: buf_puts(&out, pieces[rng_below(rng, COUNTOF(pieces))]); break;
    case 2: at = to; break;
    case 3: buf_write(&out, text->text + at, to - at); break;
    case 4: at = rng_below(rng, 8) ? at : text->len; break;
    }
    buf_write(&out, text->text + at, text->len - at);
    buf_release(text);
    *text = out;
}

static void test_mutations(void **state)
{
    (void)state;
    Rng rng = rng_new(1);
    int accepted = 0;
    for (int i = 0; i < 4000; i++) {
        Ir *ir = ir_new();
        const char *start = wrap(ir, round_trips[rng_below(&rng, COUNTOF(round_trips))]);
        Buf text = buf_new();
        buf_puts(&text, start);
        for (int n = (int)rng_below(&rng, 4); n >= 0; n--)
            mutate(&text, &rng);
        Parsed parsed = parse_in(ir, text.text, text.len);
        if (parsed.program)
            assert_round_trip(ir, parsed.program);
        else
            assert_true(parsed.diags.errors > 0);
        Buf shown = buf_new();
        diags_print(&shown, &parsed.diags);
        buf_release(&shown);
        accepted += parsed.program != NULL;
        buf_release(&text);
        ir_free(ir);
    }
    assert_in_range(accepted, 200, 3800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_every_pattern_and_op_is_covered),
        cmocka_unit_test(test_canonical_text),
        cmocka_unit_test(test_whole_program),
        cmocka_unit_test(test_manual_has_every_pattern),
        cmocka_unit_test(test_manual_has_every_op),
        cmocka_unit_test(test_replace_does_not_capture),
        cmocka_unit_test(test_equal_up_to_bound_names),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_nul_byte),
        cmocka_unit_test(test_several_errors),
        cmocka_unit_test(test_depth_is_limited),
        cmocka_unit_test(test_number_is_limited),
        cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_nesting_round_trips),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
