// SPDX-License-Identifier: Apache-2.0
//
// Derivations of points: the rules lead to the expression, the text of the rules too, and
// the points tried first are valid and different.

#include "opened.h"

#include <glob.h>

static void open_file(Opened *x, const char *path, const DeviceInfo *device)
{
    x->arena = arena_new();
    x->diags = (Diags){.arena = x->arena};
    x->problem = problem_load(path, &x->diags);
    open_bound(x, path, device);
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

static const struct {
    const char *def;
    RuleId rule;
    bool in_order; // the device's groups begin so
    int units;     // groups that run at once
} parallel[] = {
    {"def p(x: [100000]float) = scan(+, 0, x)", RULE_SCAN_SPLIT},
    {"def p(x: [100000]float) = scan(+, 0, x)", RULE_SCAN_ONE_PASS, true},
    {"def p(x: [100000]float, k: [7]float) = scan(+, 0, x) |> map(\\v -> reduce(+, 0, "
     "scan(\\y w -> 0.9 * y + w, v, k)))",
     RULE_SCAN_SPLIT, true},
    {"def p(x: [100000]double) = scan(max, -1e30, x)", RULE_SCAN_SPLIT},
    // A group's, too, if it is short and a fold reads it.
    {"def p(x: [1000]float) = let c = scan(+, 0, x) in array(10, \\k -> reduce(+, 0, "
     "map(\\v -> if v < float(k) then 1 else 0, c)))",
     RULE_SCAN_LCL},
    {"def p(x: [1000]float, y: [5000]float) = let c = scan(+, 0, x) in map(\\e -> "
     "reduce(+, 0, map(\\v -> if v < e then 1 else 0, c)), y)",
     RULE_SCAN_LCL},
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
    {"def p(x: [90][9000]float) = map(scan(\\y v -> 0.9 * y + v, 0.0), x)",
     RULE_SCAN_AFFINE},
    {"def p(x: [90][9000]float) = map(scan(\\y v -> 0.9 * y + v, 0.0), x)",
     RULE_SCAN_SPLIT},
    {"def p(x: [9000][90]float) = map(\\r -> zip(scan(+, 0.0, r), gather(\\i -> 8999 - i, "
     "scan(\\y v -> 0.9 * y + v, 0.0, gather(\\i -> 8999 - i, r)))) |> map(-), "
     "transpose(x))",
     RULE_MAP_FISSION_LET},
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
    {"def p(x, y: [4][100000]float) = map(\\r q -> reduce(+, 0, r) / reduce(max, 1, "
     "map(+, zip(r, q))), zip(x, y))",
     RULE_LET_TUPLE},
    // Of one array at once; with a stage, also one of windows.
    {"def p(x: [99999]float) = let m = reduce(+, 0, x) / 99999 in (m, reduce(max, 0, "
     "x), sqrt(reduce(\\s v -> s + v * v, 0.0, x) - m * m))",
     RULE_LET_TUPLE},
    {"def p(x: [65536]float) = (map(\\v -> 2 * v, x), reduce(+, 0, x))",
     RULE_FOLD_TOGETHER},
    {"def p(x: [65536]float) = let q = x |> pad(1, 1, 0.0) |> slide(3, 1) |> map(\\w "
     "-> w[0] - w[2]) in (q, reduce(+, 0, map(*, zip(x, q))))",
     RULE_FOLD_TOGETHER},
    {"def p(x: [256][512]float) = let q = x |> pad2(1, 1, 0.0) |> slide2(3, 1) |> "
     "map2(\\w -> w[0][1] - w[2][1]) in (q, reduce(+, 0, join(map2(*, zip2(x, q)))))",
     RULE_FOLD_TOGETHER},
    // Beside a product, whose fold is too short for parts.
    {"def p(x: [9000][99]float, a: [2000][64]float) = (map(reduce(+, 0), "
     "transpose(x)), array2(2000, 2000, \\i j -> reduce(+, 0, array(64, \\k -> "
     "a[i][k] * a[j][k]))))",
     RULE_FOLD_SPLIT},
    {"def p(x: [1000][64]float) = reduce(\\s r -> map(+, zip(s, r)), array(64, \\j -> "
     "0.0), x)",
     RULE_FOLD_SPLIT},
    // Of rows likewise, in one kernel.
    {"def p(x: [1000][999]float) = let s = map(reduce(+, 0), x) in let m = map(\\r -> "
     "reduce(max, 0, map(\\v -> v * v, r)), x) in (s, m)",
     RULE_LET_TUPLE},
    // A loop of numbers goes on in either of two ways.
    {"def p(x: [1000][999]float) = map(\\r -> (iterate(20, \\a b -> let m = (a + b) / 2 in "
     "let n = reduce(\\k v -> if v > m then k + 1 else k, 0, r) in if n > 499 then (m, b) "
     "else (a, m), (-1.0, 1.0))).0, x)",
     RULE_REDUCE_LCL},
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
    {"def p(x: [999][70]float, k: [70][70]float) = map(\\r -> iterate(3, \\d -> array(70, "
     "\\j -> reduce(max, 0, array(70, \\i -> d[i] + k[i][j]))), r), x)",
     RULE_ITERATE_ROWS},
    // Few states: a group takes all steps, and reads what a step is given where it lies.
    {"def p(x: [999][3000][40]float, k: [40][40]float) = map(\\e -> (iterate(2999, \\d t "
     "-> "
     "(array(40, \\j -> e[t][j] + reduce(max, 0, array(40, \\i -> d[i] + k[i][j]))), t + "
     "1), (e[0], 1))).0, x)",
     RULE_NAME_ARRAY},
    {"def p(x: [999][300][30]float) = map(\\e -> (iterate(299, \\d t -> (array(30, \\j -> "
     "d[j] + d[max(j - 1, 0)] * e[t][j]), t + 1), (e[0], 1))).0[29], x)",
     RULE_NAME_ARRAY},
    // Few rows of them, too, where an item would fold much for each step.
    {"def p(x: [999][32]float, k: [32][32]float) = map(\\r -> iterate(100, \\d -> "
     "array(32, "
     "\\j -> reduce(max, 0, array(32, \\i -> d[i] + k[i][j]))), r), x)",
     RULE_NAME_ARRAY},
    {"def p(q, k, v: [4][4096][64]float) = map(\\q k v -> array(4096, \\i -> let z = "
     "array(64, \\w -> reduce(+, 0, map(*, zip(q[i], k[max(i + w - 63, 0)])))) in let p = "
     "map(exp, z) in let s = reduce(+, 0, p) in array(64, \\d -> reduce(+, 0, array(64, "
     "\\w -> p[w] * v[max(i + w - 63, 0)][d])) / s)), zip(q, k, v))",
     RULE_REDUCE_LCL},
    {"def p(q: [4][64]float, k, v: [16384][64]float) = map(\\h -> let p = map(\\r -> "
     "reduce(+, 0, map(*, zip(h, r))), k) in let s = reduce(+, 0, p) in array(64, \\d -> "
     "reduce(+, 0, array(16384, \\t -> p[t] * v[t][d])) / s), q)",
     RULE_FOLD_SPLIT, .units = 132},
    {"def p(x: [50][100][70]float) = zip3(x, x |> map(transpose) |> map2(scan(+, 0)) "
     "|> "
     "map(transpose)) |> map3(+)",
     RULE_TRANSPOSE_BOTH},
};

// By its plain point a GPU shares folds and prefixes of every length, and their kernels
// fit.
static void test_plain_is_parallel(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(parallel); i++) {
        Opened x;
        DeviceInfo ordered = gpu;
        ordered.in_order = parallel[i].in_order;
        ordered.compute_units = parallel[i].units;
        open_on(&x, parallel[i].def, &ordered);
        Point point;
        Rewriting steps;
        derive_plain(x.derivation, &point);
        assert_true(space_valid(derive_space(x.derivation), &point));
        assert_true(derive_rewriting(x.derivation, &point, &steps, &x.diags));
        bool found = false;
        for (int k = 0; k < steps.steps.len; k++)
            found |= steps.steps.at[k].rule == parallel[i].rule;
        if (!found)
            fail_msg("%s: no %s", parallel[i].def, rule_info[parallel[i].rule].name);
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

// The plain point joins stages where one reads the other point by point, and only there;
// results have names for that.
static void test_plain_cover(void **state)
{
    (void)state;
    static const struct {
        const char *def, *cover;
        bool other; // it is in the space
    } known[] = {
        {"def p(a: [500][700]float) = let t = a |> map2(\\v -> v * 2) in let u = t |> "
         "pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\w -> w[0][1] + w[2][1]) in let v "
         "= zip2(u, a) |> map2(+) in (v |> map2(\\y -> y + 1), v)",
         "1|2+3+4"},
        // Long rows of a prefix are held as they are made, of whatever.
        {"def p(a: [500][9000]uchar) = let c = map2(int, a) in map(scan(+, 0), c)", "1+2"},
        {"def p(a: [9000][500]uchar) = let c = map2(int, a) in transpose(map(scan(+, 0), "
         "transpose(c)))",
         "1+2", true},
    };
    for (int i = 0; i < COUNTOF(known); i++) {
        Opened x;
        Point plain, expected;
        open_text(&x, known[i].def);
        const Space *space = derive_space(x.derivation);
        derive_plain(x.derivation, &plain);
        expected = plain;
        assert_true(space_set(space, &expected, "cover", known[i].cover));
        assert_int_equal(point_equal(space, &plain, &expected), !known[i].other);
        close_all(&x);
    }
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
    space_set(derive_space(x->derivation), &point, "inner", "unroll");
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

// What is made anew where it is read, because this takes less time than to store it, or
// than to make all of an array; and folds that are written out in what a map reads, too.
static void test_made_anew(void **state)
{
    (void)state;
#define BOTH(of)                                                                           \
    "let d = " of " in (map(reduce(+, 0), d), map(reduce(max, 0), transpose(d)))"
    static const struct {
        const char *def, *rule;
        bool has;
    } known[] = {
        {"def f(a: [512][512]float) = " BOTH("map2(exp, a)"), "toGlobal", false},
        {"def f(x: [512]float) = " BOTH("array2(512, 512, \\i j -> abs(x[i] - x[j]))"),
         "toGlobal", false},
        {"def f(a: [512][512]float) = " BOTH("map2(\\v -> short(v), a)"), "toGlobal", true},
        {"def f(a: [1000][64]float) = map(\\r -> let t = map(\\v -> 2 * v, r) in "
         "join(array(2, \\i -> array(64, \\k -> if i == 0 then t[k] else t[63 - k]))), a)",
         "holdItem", false},
        {"def f(a, b: [500][500]float) = map2(+, zip2(b, map2(\\w -> reduce(+, 0, "
         "array(2, \\k -> w[if k == 0 then 0 else 2][1])), slide2(3, 1, pad2(1, 1, clamp, "
         "a)))))",
         "reduceSeqUnroll", true},
    };
#undef BOTH
    for (int i = 0; i < COUNTOF(known); i++) {
        Opened x = {0};
        open_text(&x, known[i].def);
        if (known[i].has != has_step(&x, known[i].rule))
            fail_msg("%d: %s", i, known[i].def);
        close_all(&x);
    }
}

// Stages that go through the same long rows are one map, from which results are taken; not
// where others want rows that are no results, and not of a few rows.
static void test_stages_of_rows(void **state)
{
    (void)state;
#define SUM   "let s = map(\\r -> reduce(+, 0, r), a) in "
#define SHARE "map(\\r t -> map(\\v -> v / t, r), zip(a, s))"
    static const struct {
        const char *def;
        int kernels;
    } known[] = {
        {"def p(a: [999][300]float) = " SUM SHARE, 1},
        {"def p(a: [999][300]float) = " SUM "(s, " SHARE ", map(reduce(max, 0), a))", 1},
        {"def p(b: [999][300]float) = let a = map2(exp, b) in " SUM "(a, " SHARE ")", 1},
        {"def p(a: [999][300]float) = let s = array(999, \\i -> reduce(+, 0, a[i])) in "
         "array2(999, 300, \\i j -> a[i][j] / s[i])",
         1},
        {"def p(a: [999][300]float) = iterate(4, \\a -> " SUM SHARE ", a)", 1},
        {"def p(a: [999][300]float) = " SUM "let b = " SHARE " in "
         "map(\\v -> v[0] * v[2], slide(3, 1, join(b)))",
         3},
        {"def p(a: [999][30]float) = " SUM SHARE, 2},
        {"def p(a: [3][30000]float) = " SUM SHARE, 3},
    };
#undef SUM
#undef SHARE
    for (int i = 0; i < COUNTOF(known); i++) {
        Opened x = {0};
        Point point;
        open_text(&x, known[i].def);
        derive_plain(x.derivation, &point);
        const Unit *unit = derive_unit(x.derivation, &point, false, x.arena, &x.diags);
        if (!unit || unit->kernels.len != known[i].kernels)
            fail_msg("%d: %d kernels: %s", i, unit ? (int)unit->kernels.len : -1,
                     known[i].def);
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
        // An item goes through a row where each of a group's would.
        {"def p(x: [1000][384]float) = map(\\r -> let m = reduce(+, 0, r) in reduce(\\s v "
         "-> 0.5 * s * s + v, m, r), x)",
         true, false, false},
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
        cmocka_unit_test(test_separated_folds_are_stages),
        cmocka_unit_test(test_plain_cover),
        cmocka_unit_test(test_parameters_have_rows),
        cmocka_unit_test(test_strict_passes),
        cmocka_unit_test(test_folds_again),
        cmocka_unit_test(test_made_anew),
        cmocka_unit_test(test_stages_of_rows),
        cmocka_unit_test(test_rows_by_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
