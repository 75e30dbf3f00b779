// SPDX-License-Identifier: Apache-2.0
//
// Derivations of points: the rules lead to the expression, the text of the rules too, and
// the points tried first are valid and different.

#include "tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

static const DeviceInfo gpu = {
    .max_group = 1024, .max_item = {1024, 1024, 64}, .local_bytes = 49152, .warp = 32};

typedef struct {
    Arena *arena;
    Diags diags;
    Problem *problem;
    Derivation *derivation;
} Opened;

static void fail_with(const Opened *x, const char *what)
{
    Buf text = buf_new();
    diags_print(&text, &x->diags);
    fail_msg("%s: %s", what, text.text);
}

static void open_bound(Opened *x, const char *what, const DeviceInfo *device)
{
    Binding binding[8];
    int n = 0;
    if (!x->problem)
        fail_with(x, what);
    for (; n < x->problem->program->sizes.len; n++)
        binding[n] = (Binding){x->problem->program->sizes.at[n].name, n == 0 ? 37 : 48};
    if (!problem_bind(x->problem, binding, n, &x->diags) ||
        !(x->derivation = derive_new(x->problem->bound, device, &x->diags)))
        fail_with(x, what);
}

static void open_file(Opened *x, const char *path, const DeviceInfo *device)
{
    x->arena = arena_new();
    x->diags = (Diags){.arena = x->arena};
    x->problem = problem_load(path, &x->diags);
    open_bound(x, path, device);
}

static void open_on(Opened *x, const char *text, const DeviceInfo *device)
{
    x->arena = arena_new();
    x->diags = (Diags){.arena = x->arena};
    x->problem = problem_parse("test", text, &x->diags);
    open_bound(x, text, device);
}

static void open_text(Opened *x, const char *text)
{
    open_on(x, text, &gpu);
}

static void close_all(Opened *x)
{
    derive_free(x->derivation);
    problem_free(x->problem);
    arena_free(x->arena);
}

static void each_program(void (*check)(const char *path))
{
    glob_t found;
    assert_int_equal(glob("examples/*.fw", 0, NULL, &found), 0);
    assert_int_equal(glob("test/programs/*.fw", GLOB_APPEND, NULL, &found), 0);
    assert_true(found.gl_pathc > 20);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check(found.gl_pathv[i]);
    globfree(&found);
}

// The expression of a point, by the text of its derivation.
static Expr *by_text(Opened *x, const Point *point)
{
    Rewriting steps;
    assert_true(derive_rewriting(x->derivation, point, &steps, &x->diags));
    Buf text = buf_new();
    derivation_print(&text, &steps);
    Source source = {"steps", arena_strdup(x->arena, text.text), text.len};
    buf_release(&text);
    const Rewriting *again = derivation_parse(x->arena, &source, &x->diags);
    return again ? derivation_apply(x->problem->bound, again, &x->diags) : NULL;
}

static void check_text(const char *path)
{
    Opened x;
    open_file(&x, path, &gpu);
    Rng rng = rng_new(5);
    for (int i = 0; i < 5; i++) {
        Point point;
        space_sample(derive_space(x.derivation), &rng, &point);
        Expr *body = derive_body(x.derivation, &point, &x.diags);
        Expr *again = by_text(&x, &point);
        if (!body || !again)
            fail_with(&x, path);
        assert_true(expr_equal(body, again));
    }
    close_all(&x);
}

static void test_rules_lead_there(void **state)
{
    (void)state;
    each_program(check_text);
}

static void check_first(const char *path)
{
    static const int64_t group[] = {1, 16, 256, 4096};
    for (int i = 0; i < 2 * COUNTOF(group); i++) {
        DeviceInfo device = gpu;
        device.max_group = device.max_item[0] = device.max_item[1] = group[i / 2];
        device.is_cpu = i % 2;
        Opened x;
        open_file(&x, path, &device);
        Point point[9];
        const Space *space = derive_space(x.derivation);
        derive_plain(x.derivation, &point[0]);
        int n = 1 + derive_first(x.derivation, &point[1], COUNTOF(point) - 1);
        for (int a = 0; a < n; a++) {
            assert_true(space_valid(space, &point[a]));
            for (int b = 0; b < a; b++)
                assert_false(point_equal(space, &point[a], &point[b]));
        }
        close_all(&x);
    }
}

static void test_first_points(void **state)
{
    (void)state;
    each_program(check_first);
}

// Only what is seen not to mind the order, or folds by parts, is shared by work-items.
static void test_shared_reductions(void **state)
{
    (void)state;
    static const struct {
        const char *fun;
        bool shared;
        const char *type; // float if none is named
    } known[] = {
        {"+", true},
        {"max", true},
        {"add", true},
        {"\\s e -> s + e*e", true},
        {"\\s e -> e*e + s", true},
        {"\\s e -> min(s, -e)", true},
        {"\\s e -> s + e*s", true}, // 0, whatever the order
        {"\\s e -> s + e*s + 2*e", false},
        {"\\s e -> s - e", true},
        {"-", true},
        {"\\s e -> if e > 1 then s + e*e else if e < 0 then s - e else s", true},
        {"\\s e -> if e > 1 then s + e else s * e", false},
        {"\\s e -> if e > 1 && e > s then e else s", true},
        {"\\s e -> if e > 0 then e else s", true},
        {"\\s e -> max(0, s + e)", false},
        {"\\s e -> 2*s + e", false},
        {"\\s e -> s ^ e", true, "ushort"},
        {"\\s e -> e >> ushort(11) ^ e ^ s", false, "ushort"}, // of small numbers it is
    };
    for (int i = 0; i < COUNTOF(known); i++) {
        Opened x;
        Arena *arena = arena_new();
        open_text(&x, arena_printf(arena,
                                   "size N\nfun add(a, b: float): float = b + a\n"
                                   "def p(x: [N]%s) = reduce(%s, %s(0), x)\n",
                                   known[i].type ? known[i].type : "float", known[i].fun,
                                   known[i].type ? known[i].type : "float"));
        bool shared = space_find(derive_space(x.derivation), "groups") >= 0;
        if (shared != known[i].shared)
            fail_msg("reduce(%s): shared %d", known[i].fun, shared);
        Point point;
        Rewriting steps;
        derive_plain(x.derivation, &point);
        assert_true(derive_rewriting(x.derivation, &point, &steps, &x.diags));
        assert_int_equal(steps.steps.len > 0, shared);
        close_all(&x);
        arena_free(arena);
    }
}

// A sum of many terms has enough accumulators; its plain point, too, on any device.
static void test_long_sums(void **state)
{
    (void)state;
    for (int cpu = 0; cpu < 2; cpu++) {
        Opened x;
        DeviceInfo device = gpu;
        device.is_cpu = cpu;
        x.arena = arena_new();
        x.diags = (Diags){.arena = x.arena};
        const char *text =
            "def p(x: [1024][1048576]float) = x |> map(reduce(+, 0)) |> reduce(+, 0)\n";
        x.problem = problem_parse("test", text, &x.diags);
        open_bound(&x, text, &device);
        const Space *space = derive_space(x.derivation);
        Point point;
        derive_plain(x.derivation, &point);
        assert_true(space_valid(space, &point));
        space_set(space, &point, "lx", "1");
        space_set(space, &point, "groups", "1");
        assert_false(space_valid(space, &point));
        close_all(&x);
    }
}

// A chain of n maps, each a stage that windows of the next one read.
static void open_chain(Opened *x, int n)
{
    Buf text = buf_new();
    buf_puts(&text, "size N\ndef p(x: [N]float): [N]float = x");
    for (int i = 0; i < n; i++)
        buf_puts(&text, " |> slide(1, 1) |> map(\\w -> w[0])");
    buf_putc(&text, '\n');
    open_text(x, text.text);
    buf_release(&text);
}

static void test_deep_programs(void **state)
{
    (void)state;
    Opened x;
    Point point;
    open_chain(&x, 60);
    derive_plain(x.derivation, &point);
    Rewriting steps;
    assert_true(derive_rewriting(x.derivation, &point, &steps, &x.diags));
    assert_true(steps.steps.len >= 60);
    close_all(&x);
}

// By its plain point a GPU shares folds and prefixes of every length, and their kernels
// fit.
static void test_plain_is_parallel(void **state)
{
    (void)state;
    static const struct {
        const char *def;
        RuleId rule;
        bool in_order; // the device's groups begin so
    } known[] = {
        {"def p(x: [100000]float) = scan(+, 0, x)", RULE_SCAN_SPLIT},
        {"def p(x: [100000]float) = scan(+, 0, x)", RULE_SCAN_ONE_PASS, true},
        {"def p(x: [100000]float, k: [7]float) = scan(+, 0, x) |> map(\\v -> reduce(+, 0, "
         "scan(\\y w -> 0.9 * y + w, v, k)))",
         RULE_SCAN_SPLIT, true},
        {"def p(x: [100000]double) = scan(max, -1e30, x)", RULE_SCAN_SPLIT},
        {"def p(x: [1000][1000]float) = map(scan(+, 0), x)", RULE_SCAN_LCL},
        {"def p(x: [1000][9000]float) = map(scan(+, 0), x)", RULE_SCAN_SPLIT},
        {"def p(x: [4][100000]float) = map(scan(*, 1), x)", RULE_SCAN_SPLIT},
        {"def p(x: [9000][1000]float) = map(scan(+, 0), transpose(x))", RULE_SCAN_RESUME},
        {"def p(x: [9000][999]half) = transpose(map(\\r -> pad(1, 0, 0.0, take(8999, "
         "scan(\\s v -> s + float(v), 0.0, r))), transpose(x)))",
         RULE_SCAN_RESUME},
        {"def p(x: [90][9000]float) = map(\\r -> map(\\t -> t.1, scan(\\a b -> (a.0 * b.0, "
         "b.0 * "
         "a.1 + b.1), (1.0, 0.0), map(\\v -> (0.5 * v, v), r))), x)",
         RULE_SCAN_SPLIT},
        {"def p(x: [100000]float) = map(-, zip(x, scan(+, 0, x)))", RULE_SCAN_SPLIT},
        // Suffixes are prefixes of what is read from its end.
        {"def p(x: [4][100000]float) = map(\\r -> gather(\\i -> 99999 - i, scan(+, 0, "
         "gather(\\i -> 99999 - i, r))), x)",
         RULE_SCAN_SPLIT},
        {"def p(x: [1000][1000]float) = map(\\r -> let y = scan(+, 0, array(1000, \\i -> "
         "r[999 - i])) in array(1000, \\i -> 2 * y[999 - i]), x)",
         RULE_SCAN_LCL},
        {"def p(x: [90][700]float) = map2(abs, scatter(\\i -> (i + 6) % 90, x))",
         RULE_MAP_SCATTER},
        {"def p(x: [90][700]float) = map2(-, zip2(x, scatter(\\i -> (i + 6) % 90, x)))",
         RULE_TO_GLOBAL},
        {"def p(x: [9000][990]float) = map2(-, zip2(x, transpose(map(\\r -> map(\\t -> "
         "t.1, "
         "scan(\\a b -> (a.0 * b.0, b.0 * a.1 + b.1), (1.0, 0.0), map(\\v -> (0.5 * v, v), "
         "r))), transpose(x)))))",
         RULE_SCAN_RESUME},
        {"def p(a: [256][303]float, b: [303][200]float) = map(\\r -> map(\\c -> reduce(\\s "
         "t "
         "-> s + t.0 * t.1, 0.0, zip(r, c)), transpose(b)), a)",
         RULE_STAGE_TILES},
        {"def p(a: [5][99][64]double, b: [5][77][64]double) = array3(5, 99, 77, \\n i j -> "
         "reduce(+, double(0), array(64, \\k -> a[n][i][k] * b[n][j][k])))",
         RULE_STAGE_TILES},
        {"def p(x: [1000][1000]float) = map(reduce(+, 0), x)", RULE_REDUCE_LCL},
        {"def p(x: [100][40000]float) = map(reduce(+, 0), x)", RULE_REDUCE_LCL},
        {"def p(x: [1000][1000]float) = map(reduce(+, 0), transpose(x))", RULE_FOLD_SPLIT},
        {"def p(x: [4][100000]float) = map(reduce(+, 0), x)", RULE_FOLD_SPLIT},
        {"def p(x: [1000][64]float) = reduce(\\s r -> map(+, zip(s, r)), array(64, \\j -> "
         "0.0), x)",
         RULE_FOLD_SPLIT},
        {"def p(x: [1000][64]float) = reduce(max, 0, map(reduce(max, 0), x))",
         RULE_JOIN_REDUCE},
        {"def p(x: [100000]float) = reduce(\\a b -> if b.0 > a.0 then b else a, (-1e30, "
         "-1), "
         "zip(x, array(100000, \\i -> i)))",
         RULE_REDUCE_LCL},
        {"def p(x: [1000][48]float) = map(\\r -> let s = reduce(+, 0, r) in map(\\e -> e / "
         "s, "
         "r), x)",
         RULE_REDUCE_LCL},
        {"def p(x: [1000][300]half) = x |> map(\\h -> let r = map(\\e -> float(e), h) in "
         "let "
         "m = reduce(max, 0, r) in let e = map(\\v -> exp(v - m), r) in let s = reduce(+, "
         "0, e) in map(\\v -> v / "
         "s, e)) |> map2(half)",
         RULE_REDUCE_LCL},
        {"def p(x: [99999][50]float) = map(\\r -> map(\\c -> 2 * reduce(\\s t -> s + t.0 * "
         "t.1, "
         "0.0, zip(r, c)), transpose(x)), transpose(x))",
         RULE_PRODUCT_SPLIT},
        {"def p(x: [32][30000]half, y: [48][30000]half, z: [48]float) = map(\\r -> map(\\c "
         "v "
         "-> v + reduce(max, 0.0, map(\\a b -> float(a) - float(b), zip(r, c))), zip(y, "
         "z)), x)",
         RULE_PRODUCT_SPLIT},
        {"def p(x: [5000][9]float, y: [7000][9]float) = map(\\r -> reduce(min, 1e30, "
         "map(\\q -> "
         "reduce(+, 0.0, map(\\t -> abs(t.0 - t.1), zip(r, q))), y)), x)",
         RULE_FOLD_SPLIT},
        {"def p(x: [50][100][70]float) = zip3(x, x |> map(transpose) |> map2(scan(+, 0)) "
         "|> "
         "map(transpose)) |> map3(+)",
         RULE_TRANSPOSE_BOTH},
    };
    for (int i = 0; i < COUNTOF(known); i++) {
        Opened x;
        DeviceInfo ordered = gpu;
        ordered.in_order = known[i].in_order;
        open_on(&x, known[i].def, &ordered);
        Point point;
        Rewriting steps;
        derive_plain(x.derivation, &point);
        assert_true(space_valid(derive_space(x.derivation), &point));
        assert_true(derive_rewriting(x.derivation, &point, &steps, &x.diags));
        bool found = false;
        for (int k = 0; k < steps.steps.len; k++)
            found |= steps.steps.at[k].rule == known[i].rule;
        if (!found)
            fail_msg("%s: no %s", known[i].def, rule_info[known[i].rule].name);
        close_all(&x);
    }
}

// Products are found under other axes, with what follows them, and through views.
static void test_products_are_found(void **state)
{
    (void)state;
    static const char *const known[] = {
        "def p(a: [8][40][30]float, b: [8][30][50]float, c: [50]float) = zip(a, b) |> "
        "map(\\x "
        "y -> x |> map(\\r -> transpose(y) |> map(\\s -> zip(r, s) |> reduce(\\t e -> t + "
        "e.0 "
        "* e.1, 0.0))) |> map(\\r -> zip(r, c) |> map(+)))",
        "def p(a: [4][40][30]float, f: [8][4][3][3]float) = let w = a |> map(\\q -> q |> "
        "pad2(1, 1, 0) |> slide2(3, 1)) in f |> map(\\g -> w |> transpose |> "
        "map(transpose) "
        "|> map2(\\v -> zip3(v, g) |> join |> join |> reduce(\\t e -> t + e.0 * e.1, "
        "0.0)))",
        "def p(a: [4][40][300]float, b: [4][300][50]float, c: [40][50]float, beta: float) "
        "= "
        "zip(a, b) |> map(\\x y -> let s = beta in zip2(x |> map(\\r -> transpose(y) |> "
        "map(\\q -> zip(r, q) |> reduce(\\t e -> t + e.0 * e.1, 0.0))), c) |> "
        "map2(\\v e -> v + s * e))",
        "def p(a: [4][40][30]float, b: [50][30]float) = array3(4, 40, 50, \\g i j -> "
        "reduce(max, 0, array(30, \\k -> a[g][i][k] - b[j][k])))",
        "def p(x: [4][40][30]float, f: [8][4][3][3]float) = let w = x |> map(\\q -> q |> "
        "pad2(1, 1, 0) |> slide2(3, 1)) in f |> map(\\g -> array2(40, 30, \\i j -> "
        "reduce(+, 0, map(\\c -> reduce(+, 0, map(\\a b -> a * b, zip(join(g[c]), "
        "join(w[c][i][j])))), array(4, \\c -> c)))))",
    };
    for (int i = 0; i < COUNTOF(known); i++) {
        Opened x;
        Point point;
        open_text(&x, known[i]);
        const Space *space = derive_space(x.derivation);
        derive_plain(x.derivation, &point);
        assert_true(space_set(space, &point, "product", "blocks"));
        Unit *unit = derive_unit(x.derivation, &point, false, x.arena, &x.diags);
        assert_non_null(unit);
        assert_int_equal(unit->kernels.len, 1);
        close_all(&x);
    }
}

static void same_space(const char *by_index, const char *by_patterns)
{
    Opened a, b;
    open_text(&a, by_index);
    open_text(&b, by_patterns);
    const Space *x = derive_space(a.derivation), *y = derive_space(b.derivation);
    assert_int_equal(space_params(x), space_params(y));
    for (int i = 0; i < space_params(x); i++) {
        assert_string_equal(space_param(x, i)->name, space_param(y, i)->name);
        assert_int_equal(space_param(x, i)->n, space_param(y, i)->n);
    }
    close_all(&a);
    close_all(&b);
}

// A program has the same choices whether its elements are written by index or by patterns.
static void test_arrays_by_index(void **state)
{
    (void)state;
    same_space(
        "def p(a: [50][700]float) = array(50, \\i -> let m = reduce(max, 0, a[i]) in let s "
        "= reduce(+, 0, array(700, \\k -> exp(a[i][k] - m))) in array(700, \\j -> "
        "exp(a[i][j] - m) / s))",
        "def p(a: [50][700]float) = a |> map(\\r -> let m = r |> reduce(max, 0) in let s = "
        "r "
        "|> map(\\x -> exp(x - m)) |> reduce(+, 0) in r |> map(\\x -> exp(x - m) / s))");
    same_space(
        "def p(a: [500][70]float) = array(70, \\j -> reduce(+, 0, array(500, \\i -> "
        "a[i][j] "
        "* a[i][j])))",
        "def p(a: [500][70]float) = a |> transpose |> map(\\c -> c |> map(\\x -> x * x) |> "
        "reduce(+, 0))");
    same_space("def p(a: [50][700]float) = array(50, \\i -> scan(+, 0.0, array(700, \\j -> "
               "a[i][j] / "
               "2)))",
               "def p(a: [50][700]float) = a |> map(\\r -> r |> map(\\x -> x / 2) |> "
               "scan(+, 0.0))");
    same_space("def p(a: [50][70]float) = array(50, \\i -> let s = scan(\\y x -> 0.5 * y + "
               "x, 0.0, array(70, \\j -> a[i][69 - j])) in array(70, \\j -> s[69 - j]))",
               "def p(a: [50][70]float) = a |> map(\\r -> r |> gather(\\j -> 69 - j) |> "
               "scan(\\y x -> 0.5 * y + x, 0.0) |> gather(\\j -> 69 - j))");
    same_space(
        "def p(a: [50][70]float, b: [70]float) = a |> map(\\r -> array(70, \\j -> r[j] * "
        "b[j]))",
        "def p(a: [50][70]float, b: [70]float) = a |> map(\\r -> zip(r, b) |> map(*))");
    // A name costs nothing.
    same_space(
        "def p(a: [500][70]float) = array(70, \\j -> let q = array(500, \\i -> a[i][j] * "
        "2) in reduce(+, 0, q))",
        "def p(a: [500][70]float) = array(70, \\j -> reduce(+, 0, array(500, \\i -> "
        "a[i][j] * 2)))");
    // Stages that windows look at, and what follows a fold.
    same_space(
        "def p(a: [50][70]float) = let e = array2(50, 70, \\i j -> exp(a[i][j])) in e |> "
        "pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\w -> w[0][1] + w[1][0] * w[1][2])",
        "def p(a: [50][70]float) = a |> map2(exp) |> pad2(1, 1, clamp) |> slide2(3, 1) |> "
        "map2(\\w -> w[0][1] + w[1][0] * w[1][2])");
    same_space(
        "def p(a: [64][96]float, b: [96][80]float, c: [80]float) = let m = array2(64, 80, "
        "\\i j -> reduce(+, 0, array(96, \\k -> a[i][k] * b[k][j]))) in array2(64, 80, "
        "\\i j -> max(m[i][j] + c[j], 0))",
        "def p(a: [64][96]float, b: [96][80]float, c: [80]float) = let m = a |> map(\\r -> "
        "transpose(b) |> map(\\q -> reduce(+, 0, zip(r, q) |> map(*)))) in m |> "
        "map(\\r -> zip(r, c) |> map(\\x d -> max(x + d, 0)))");
}

// Stages have the same choices whether lets name them or one reads the other, also beside
// others, in a tuple and in a time loop.
static void test_chains_have_names(void **state)
{
    (void)state;
    static const char windows[] = "pad2(1, 1, clamp) |> slide2(3, 1)";
    static const char *const way[][2] = {
        {"a |> %s |> map2(f) |> %s |> map2(g)",
         "let x = a |> %s |> map2(f) in x |> %s |> map2(g)"},
        {"zip2(a |> map2(h) |> %s, a) |> map2(\\w v -> f(w) * v)",
         "let x = a |> map2(h) in zip2(x |> %s, a) |> map2(\\w v -> f(w) * v)"},
        {"let x = a |> map2(h) in x |> map2(\\v -> v) |> %s |> map2(g)",
         "let x = a |> map2(h) in x |> %s |> map2(g)"},
        {"(a, a |> map2(h) |> %s |> map2(g))",
         "let x = a |> map2(h) in (a, x |> %s |> map2(g))"},
        {"iterate(4, \\s -> s |> %s |> map2(f) |> %s |> map2(g), a)",
         "iterate(4, \\s -> let x = s |> %s |> map2(f) in x |> %s |> map2(g), a)"},
    };
    for (int i = 0; i < COUNTOF(way); i++) {
        char text[2][1000];
        for (int k = 0; k < 2; k++) {
            int n = snprintf(text[k], sizeof text[k], "%s",
                             "fun h(x: float): float = x * x\n"
                             "def f(w: [3][3]float): float = w[0][1] - w[2][1]\n"
                             "def g(w: [3][3]float): float = w[1][0] - w[1][2]\n"
                             "def p(a: [500][700]float) = ");
            snprintf(text[k] + n, sizeof text[k] - (size_t)n, way[i][k], windows, windows);
        }
        same_space(text[0], text[1]);
    }
}

// Windows are folded in two maps, which are stages, wherever their folds are read.
static void test_separated_folds_are_stages(void **state)
{
    (void)state;
    static const char *const way[] = {
        "a |> windows",
        "a |> windows |> map2(g)",
        "zip2(a, a |> windows) |> map2(f)",
        "(a |> windows, a |> map2(g))",
        "a |> windows |> join |> reduce(max, 0)",
        "iterate(4, \\a -> zip2(a, a |> windows) |> map2(f), a)"};
    for (int i = 0; i < COUNTOF(way); i++) {
        char text[800];
        snprintf(text, sizeof text,
                 "fun f(x, y: float): float = x - y / 81\n"
                 "fun g(x: float): float = x / 81\n"
                 "def windows(a: [500][700]float) = a |> pad2(4, 4, clamp) |> slide2(9, 1) "
                 "|> map2(\\p -> p |> join |> reduce(\\s x -> s + x * x, 0))\n"
                 "def p(a: [500][700]float) = %s",
                 way[i]);
        Opened opened;
        open_text(&opened, text);
        const Space *space = derive_space(opened.derivation);
        assert_true(space_find(space, "cover") >= 0);
        close_all(&opened);
    }
}

// A fold that is the same for all elements is found once, wherever it is written.
static void test_folds_are_hoisted(void **state)
{
    (void)state;
    static const char *const rows =
        "def p(a: [50][700]float) = a |> map(\\r -> let s = reduce(+, 0, r) in r |> "
        "map(\\x -> x / s))";
    same_space(
        "def p(a: [50][700]float) = a |> map(\\r -> r |> map(\\x -> x / reduce(+, 0, "
        "r)))",
        rows);
    same_space("def p(a: [50][700]float) = array2(50, 700, \\i j -> a[i][j] / reduce(+, 0, "
               "a[i]))",
               rows);
    same_space(
        "def p(a: [50][700]float) = array2(50, 700, \\i j -> let s = reduce(+, 0, "
        "a[i]) in let t = reduce(+, 0, a[i] |> map(\\x -> (x - s) * (x - s))) in "
        "a[i][j] * t)",
        "def p(a: [50][700]float) = a |> map(\\r -> let s = reduce(+, 0, r) in let t "
        "= r |> map(\\x -> (x - s) * (x - s)) |> reduce(+, 0) in r |> map(\\x -> x "
        "* t))");
    // Of rows too, where the columns are gone through.
    same_space(
        "def p(a: [500][700]float) = array(700, \\j -> reduce(+, 0, array(500, \\i -> "
        "a[i][j] / reduce(+, 0, a[i]))))",
        "def p(a: [500][700]float) = let s = a |> map(reduce(+, 0)) in a |> transpose "
        "|> map(\\c -> zip(a, c, s) |> map(\\t -> t.1 / t.2) |> reduce(+, 0))");
    same_space(
        "def p(a: [700]float, b: [900]float) = a |> map(\\x -> x / reduce(max, 0, b))",
        "def p(a: [700]float, b: [900]float) = let m = b |> reduce(max, 0) in a |> "
        "map(\\x -> x / m)");
}

static void has_first(const char *text, const char *name, const char *value)
{
    Opened x;
    Point point;
    open_text(&x, text);
    const Space *space = derive_space(x.derivation);
    bool has = space_find(space, name) >= 0;
    if (has) {
        derive_plain(x.derivation, &point);
        has = space_set(space, &point, name, value);
    }
    close_all(&x);
    if (!has)
        fail_msg("no %s=%s: %s", name, value, text);
}

// What a later map makes of each element, and results beside a row, leave the chain as it
// is.
static void test_names_within_rows(void **state)
{
    (void)state;
    same_space(
        "def p(a: [50][700]float, b: [50][700]float) = zip(a, b) |> map(\\r q -> let x = r "
        "|> "
        "map(\\v -> v + 1) in let y = q |> map(\\v -> v * 2) in let s = zip(x, y) |> "
        "reduce(\\s v -> s + v.0 * v.1, 0) in x |> map(\\v -> v * s)) |> map2(\\v -> v - "
        "1)",
        "def p(a: [50][700]float, b: [50][700]float) = zip(a, b) |> map(\\r q -> let x = r "
        "|> "
        "map(\\v -> v + 1) in let y = q |> map(\\v -> v * 2) in let s = zip(x, y) |> "
        "reduce(\\s v -> s + v.0 * v.1, 0) in x |> map(\\v -> v * s - 1))");
    has_first(
        "def p(a: [5000][64]float) = a |> map(\\r -> let s = r |> reduce(+, 0) in (r |> "
        "map(\\v -> v / s), s))",
        "fold", "group");
}

// The plain point joins stages where one reads the other point by point, and only there.
static void test_plain_cover(void **state)
{
    (void)state;
    Opened x;
    Point plain, expected;
    open_text(
        &x, "def p(a: [500][700]float) = let t = a |> map2(\\v -> v * 2) in let u = t |> "
            "pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\w -> w[0][1] + w[2][1]) in let v "
            "= zip2(u, a) |> map2(+) in (v |> map2(\\y -> y + 1), v)");
    const Space *space = derive_space(x.derivation);
    derive_plain(x.derivation, &plain);
    expected = plain;
    assert_true(space_set(space, &expected, "cover", "1|2+3|4"));
    assert_true(point_equal(space, &plain, &expected));
    close_all(&x);
}

// The stages of a step share kernels as covers say, also where the loop has a name.
static void test_named_loops(void **state)
{
    (void)state;
#define STEP                                                                               \
    "iterate(5, \\x y -> let u = zip2(x, y) |> map2(\\v w -> exp(v) * w) in (u |> "        \
    "transpose |> map(\\c -> c |> map(\\v -> v + reduce(+, 0, c))) |> transpose, u), "     \
    "(a, b))"
    static const char *const head = "def p(a: [500][700]float, b: [500][700]float) = ";
    Arena *arena = arena_new();
    same_space(arena_printf(arena, "%s%s", head, STEP),
               arena_printf(arena, "%slet s = %s in (s.0, s.1)", head, STEP));
    arena_free(arena);
#undef STEP
}

// Items may have all of an axis of few elements.
static void test_few(void **state)
{
    (void)state;
    has_first("def p(a: [9][500][700]float) = array3(9, 500, 700, \\q i j -> let s = "
              "a[0][i][j] + a[8][i][j] in if q == 3 then s / 2 else exp(s) * a[q][i][j])",
              "bz", "9");
}

// Folds of long columns that a chain goes on with have kernels of their own, and parts.
static void test_long_columns_are_apart(void **state)
{
    (void)state;
    static const char *const chain = "def p(a: [5000][700]float) = a |> transpose |> "
                                     "map(\\c -> let m = reduce(max, 0, c) in "
                                     "let e = c |> map(\\v -> exp(v - m)) in let s = "
                                     "reduce(+, 0, e) in e |> map(\\v -> v / "
                                     "s)) |> transpose";
    same_space(
        chain,
        "def p(a: [5000][700]float) = let m = a |> transpose |> map(reduce(max, 0)) in "
        "let s = zip(a |> transpose, m) |> map(\\c m -> c |> map(\\v -> exp(v - m)) |> "
        "reduce(+, 0)) in a |> map(\\r -> zip(r, m, s) |> map(\\v m s -> exp(v - m) / "
        "s))");
    has_first(chain, "parts", "64");
}

// What is done with a fold, or with its components, does not matter for its parts; nor do
// names and conditions in its function.
static void test_named_folds_have_parts(void **state)
{
    (void)state;
    static const char *const rest[] = {
        "reduce(\\s e -> (s.0 + e, s.1 + 1), (0.0, 0), r) in s.0 / float(s.1)",
        "reduce(\\s e -> if e > 0 then (s.0 + e, s.1 + 1) else s, (0.0, 0), r) in s.0 / "
        "float(s.1)",
        "reduce(\\s e -> let d = e - 1 in (s.0 + d, s.1 + d * d), (0, 0), r) in s.1 - "
        "s.0 * s.0",
        "reduce(\\s e -> if e > 0 then s + e else s, 0, r) in s * s",
    };
    for (int i = 0; i < COUNTOF(rest); i++) {
        AutoArena *arena = arena_new();
        has_first(arena_printf(arena,
                               "def p(a: [20][5000000]float): [20]float = a |> map(\\r -> "
                               "let s = %s)",
                               rest[i]),
                  "parts", "64");
    }
}

// Windows of rows, and of images in batches, are windows over all dimensions.
static void test_windows_in_batches(void **state)
{
    (void)state;
    same_space(
        "def p(a: [500][700]float) = a |> map(\\r -> r |> pad(4, 4, mirror) |> slide(9, "
        "1) |> map(reduce(+, 0)))",
        "def p(a: [500][700]float) = a |> pad2(0, 0, 4, 4, mirror) |> slide2(1, 1, 9, 1) "
        "|> map2(\\w -> reduce(+, 0, w[0]))");
    has_first(
        "def p(a: [4][8][50][70]float, f: [8][3][3]float) = a |> map(\\b -> zip(b, f) |> "
        "map(\\q k -> q |> pad2(1, 1, 0) |> slide2(3, 1) |> map2(\\w -> zip(join(w), "
        "join(k)) |> map(*) |> reduce(+, 0))))",
        "border", "split");
}

// Nests of more maps than work-items have dimensions have work-items along all of them, and
// folds of folds within are one fold, which items share, or a product.
static void test_deep_nests(void **state)
{
    (void)state;
    same_space("def p(a: [5][6][50][70]float) = a |> map(map(map(map(\\x -> x * 2))))",
               "def p(a: [30][50][70]float) = a |> map3(\\x -> x * 2)");
    same_space(
        "def p(a: [5][6][50][70]float) = array(5, \\i -> array(6, \\j -> array2(50, 70, "
        "\\k l -> a[i][j][k][l] * 2)))",
        "def p(a: [30][50][70]float) = a |> map3(\\x -> x * 2)");
    has_first("def p(a: [4][5000][70]float) = a |> map(\\p -> p |> transpose |> map(\\c -> "
              "reduce(max, c[0], c)))",
              "parts", "64");
    has_first(
        "def p(a: [50][80][90]float) = array(80, \\j -> reduce(+, 0, array(50, \\i -> "
        "reduce(+, 0, a[i][j]))))",
        "fold", "group");
    has_first(
        "def p(a: [8][30][40]float, f: [16][8][3][3]float) = f |> map(\\g -> array2(28, "
        "38, \\i j -> reduce(+, 0, array(8, \\c -> reduce(+, 0, array(3, \\u -> "
        "reduce(+, 0, array(3, \\v -> a[c][i + u][j + v] * g[c][u][v]))))))))",
        "product", "blocks");
}

// A chain that begins with rows of a product, or ends in one, leaves the product to itself.
static void test_chains_around_products(void **state)
{
    (void)state;
    static const char *const scores =
        "let s = k |> map(\\c -> zip(r, c) |> map(*) |> reduce(+, 0)) in let m = "
        "reduce(max, "
        "s[0], s) in let e = s |> map(\\x -> exp(x - m)) in let z = reduce(+, 0, e) in";
    static const char *const ends[] = {
        "e |> map(\\x -> x / z)",
        "v |> transpose |> map(\\c -> (zip(e, c) |> map(*) |> reduce(+, 0)) / z)"};
    char text[1024];
    for (int i = 0; i < COUNTOF(ends); i++) {
        snprintf(
            text, sizeof text,
            "def p(q: [50][8]float, k: [300][8]float, v: [300][8]float) = q |> map(\\r "
            "-> %s %s)",
            scores, ends[i]);
        has_first(text, "product", "blocks");
        has_first(text, "fold", "group");
    }
    has_first(
        "def p(a: [50][8]float, b: [300][8]float) = array2(50, 300, \\i j -> reduce(+, 0, "
        "array(8, \\k -> a[i][k] * b[j][k])) / reduce(+, 0, a[i]))",
        "product", "blocks");
    // Rows beside columns: a group each, and an item each.
    has_first(
        "def p(a: [500][700]float) = array2(500, 700, \\i j -> a[i][j] - reduce(+, 0, "
        "a[i]) - reduce(+, 0, array(500, \\k -> a[k][j])))",
        "fold", "near");
    // A sum of what is found for each row leaves rows to groups.
    has_first(
        "def p(a: [500][700]float) = reduce(+, 0, a |> map(\\r -> log(reduce(+, 0, r))))",
        "fold", "group");
}

// Is it the row's name, with what may follow?
static bool is_of_row(const ParameterInfo *info, const char *name)
{
    size_t stem = strlen(info->name), left = strlen(name) - stem;
    if (strncmp(name, info->name, stem) != 0)
        return false;
    if (info->suffix[0] == 'x')
        return left == 1 && strchr(info->suffix, name[stem]);
    return info->suffix[0] ? left > 0 && strspn(name + stem, "0123456789") == left
                           : left == 0;
}

static void check_parameters(const char *path)
{
    Opened x = {0};
    open_file(&x, path, &gpu);
    const Space *space = derive_space(x.derivation);
    for (int i = 0; i < space_params(space); i++) {
        int rows = 0;
        for (int k = 0; k < parameters; k++)
            rows += is_of_row(&parameter_info[k], space_param(space, i)->name);
        if (rows != 1)
            fail_msg("%s: %s has %d rows of parameters.def", path,
                     space_param(space, i)->name, rows);
    }
    close_all(&x);
}

// What is said of each: whether it decides the order of a fold.
static void test_parameters_have_rows(void **state)
{
    (void)state;
    each_program(check_parameters);
}

// With --math strict no fold is in the pass of a map whose bits show that.
static void test_strict_passes(void **state)
{
    (void)state;
    static const struct {
        const char *def;
        bool strict, turns;
    } known[] = {
        {"size N\ndef f(a: [N]float) = (map(\\x -> 2 * x, a), reduce(+, 0, a))", false,
         true},
        {"size N\ndef f(a: [N]float) = (map(\\x -> 2 * x, a), reduce(+, 0, a))", true,
         false},
        {"size N\ndef f(a: [N]float) = (map(\\x -> 2 * x, a), reduce(max, 0, a))", true,
         true},
        {"size N\ndef f(a: [N]int) = (map(\\x -> 2 * x, a), reduce(+, 0, a))", true, true},
        {"size N\ndef f(a: [40][N]float) = (map2(\\x -> 2 * x, a), reduce(\\r s -> "
         "map(+, zip(r, s)), map(\\x -> 0.0, take(N, a[0])), a))",
         true, false},
    };
    for (int i = 0; i < COUNTOF(known); i++) {
        Opened x = {0};
        open_text(&x, known[i].def);
        derive_free(x.derivation);
        x.problem->bound->math = known[i].strict ? MATH_STRICT : MATH_STANDARD;
        x.derivation = derive_new(x.problem->bound, &gpu, &x.diags);
        if (!x.derivation)
            fail_with(&x, known[i].def);
        if (known[i].turns != (space_find(derive_space(x.derivation), "turns") >= 0))
            fail_msg("%s", known[i].def);
        close_all(&x);
    }
}

static bool has_step(Opened *x, const char *rule)
{
    Rewriting steps;
    Point point;
    Buf text;
    derive_plain(x->derivation, &point);
    assert_true(derive_rewriting(x->derivation, &point, &steps, &x->diags));
    text = buf_new();
    derivation_print(&text, &steps);
    bool has = strstr(text.text, rule);
    buf_release(&text);
    return has;
}

// A fold of the whole finds again what another map reads too, if that is cheap: and it goes
// down tiles of windows, where nobody sees the order.
static void test_folds_again(void **state)
{
    (void)state;
#define WINDOWS(of)                                                                        \
    "map2(\\p -> p[0][1] + p[2][1], slide2(3, 1, pad2(1, 1, clamp, " of ")))"
#define SCALED(fold) "let s = reduce(" fold ", 0, join(t)) in map2(\\e -> e / (1 + s), t)"
    static const struct {
        const char *def;
        bool strict, again, tiles;
    } known[] = {
        {"def f(a: [512][512]float) = let t = " WINDOWS("a") " in " SCALED("max"), false,
         true, true},
        {"def f(a: [512][512]float) = let t = " WINDOWS("a") " in " SCALED("max"), true,
         true, true},
        {"def f(a: [512][512]float) = let t = " WINDOWS("a") " in " SCALED("+"), true, true,
         false},
        {"def f(a: [512][512]float) = let t = map2(\\e -> e + 1, a) in " SCALED("max"),
         false, true, false},
        {"def f(a: [512][512]float) = let t = a in " SCALED("max"), false, false, false},
    };
#undef WINDOWS
#undef SCALED
    for (int i = 0; i < COUNTOF(known); i++) {
        Opened x = {0};
        open_text(&x, known[i].def);
        derive_free(x.derivation);
        x.problem->bound->math = known[i].strict ? MATH_STRICT : MATH_STANDARD;
        x.derivation = derive_new(x.problem->bound, &gpu, &x.diags);
        if (!x.derivation)
            fail_with(&x, known[i].def);
        if (known[i].again != has_step(&x, "foldAgain") ||
            known[i].tiles != has_step(&x, "partialReduceTiles"))
            fail_msg("%d: %s", i, known[i].def);
        close_all(&x);
    }
}

// Lanes that exchange registers join the folds of rows that are worth a warp.
static void test_rows_by_lanes(void **state)
{
    (void)state;
    static const struct {
        const char *def;
        bool shuffle, strict, lanes;
    } known[] = {
        {"def p(x: [1000][384]float) = map(reduce(+, 0), x)", true, false, true},
        {"def p(x: [1000][384]float) = map(reduce(+, 0), x)", false, false, false},
        {"def p(x: [1000][384]float) = map(reduce(+, 0), x)", true, true, false},
        {"def p(x: [1000][9000]float) = map(reduce(max, 0), x)", true, false, true},
        {"def p(x: [1000][40]float) = map(reduce(+, 0), x)", true, false, false},
    };
    for (int i = 0; i < COUNTOF(known); i++) {
        Opened x = {.arena = arena_new()};
        DeviceInfo device = gpu;
        Point point;
        Rewriting steps;
        bool found = false;
        device.lanes = 32;
        device.shuffle = known[i].shuffle;
        x.diags = (Diags){.arena = x.arena};
        x.problem = problem_parse("test", known[i].def, &x.diags);
        assert_non_null(x.problem);
        assert_true(problem_bind(x.problem, NULL, 0, &x.diags));
        x.problem->bound->math = known[i].strict ? MATH_STRICT : MATH_STANDARD;
        x.derivation = derive_new(x.problem->bound, &device, &x.diags);
        assert_non_null(x.derivation);
        derive_plain(x.derivation, &point);
        assert_true(space_valid(derive_space(x.derivation), &point));
        assert_true(derive_rewriting(x.derivation, &point, &steps, &x.diags));
        for (int k = 0; k < steps.steps.len; k++)
            found |= steps.steps.at[k].rule == RULE_REDUCE_LANES;
        assert_int_equal(found, known[i].lanes);
        close_all(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_lead_there),
        cmocka_unit_test(test_first_points),
        cmocka_unit_test(test_shared_reductions),
        cmocka_unit_test(test_long_sums),
        cmocka_unit_test(test_plain_is_parallel),
        cmocka_unit_test(test_deep_programs),
        cmocka_unit_test(test_products_are_found),
        cmocka_unit_test(test_arrays_by_index),
        cmocka_unit_test(test_folds_are_hoisted),
        cmocka_unit_test(test_names_within_rows),
        cmocka_unit_test(test_chains_have_names),
        cmocka_unit_test(test_separated_folds_are_stages),
        cmocka_unit_test(test_long_columns_are_apart),
        cmocka_unit_test(test_named_folds_have_parts),
        cmocka_unit_test(test_plain_cover),
        cmocka_unit_test(test_named_loops),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_windows_in_batches),
        cmocka_unit_test(test_deep_nests),
        cmocka_unit_test(test_chains_around_products),
        cmocka_unit_test(test_parameters_have_rows),
        cmocka_unit_test(test_strict_passes),
        cmocka_unit_test(test_folds_again),
        cmocka_unit_test(test_rows_by_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
