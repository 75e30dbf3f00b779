// SPDX-License-Identifier: Apache-2.0
//
// Spaces of programs: the same for the same program, however it is written, and with the
// choices that it asks for.

#include "opened.h"

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

// The kernels of the plain point, so many; the caller closes o.
static const Unit *plain_unit(Opened *o, const char *text, const DeviceInfo *device,
                              int kernels)
{
    Point plain;
    open_on(o, text, device);
    derive_plain(o->derivation, &plain);
    const Unit *unit = derive_unit(o->derivation, &plain, false, o->arena, &o->diags);
    assert_non_null(unit);
    assert_int_equal(unit->kernels.len, kernels);
    return unit;
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
    // Keys that a condition chooses among.
    same_space("def p(a: [5000]int, b: [5000]int) = reduceBy(8, +, 0, join(zip(a, b) |> "
               "map(\\x y -> array(2, \\k -> (if k == 0 then x else y, 1)))))",
               "def p(a: [5000]int, b: [5000]int) = reduceBy(8, +, 0, join(zip(a, b) |> "
               "map(\\x y -> array(2, \\k -> k) |> map(\\k -> (if k == 0 then x else y, "
               "1)))))");
    same_space(
        "def p(a: [6][64][96]float, b: [6][80][96]float, c: [6]float) = zip(a, b, c) "
        "|> map(\\x y z -> let s = 1 / (1 + exp(z)) in x |> map(\\r -> y |> map(\\q -> "
        "s * reduce(+, 0, zip(r, q) |> map(\\u v -> s * u * v)))))",
        "def p(a: [6][64][96]float, b: [6][80][96]float, c: [6]float) = zip(a, b, c) "
        "|> map(\\x y z -> x |> map(\\r -> y |> map(\\q -> 1 / (1 + exp(z)) * "
        "reduce(+, 0, zip(r, q) |> map(\\u v -> 1 / (1 + exp(z)) * u * v)))))");
    // Several results of which nothing is computed, and layouts of rows folded by key.
    same_space(
        "def p(a: [50][70]float, b: [50][70]int) = unzip(pad2(1, 1, clamp, zip2(a, "
        "b)))",
        "def p(a: [50][70]float, b: [50][70]int) = zip2(a, b) |> pad2(1, 1, clamp) |> "
        "map2(\\e -> e) |> unzip");
    same_space("def p(a: [5000]int) = array(40, \\i -> split(16, reduceBy(256, +, 0, a |> "
               "map(\\v -> (v & 255, i)))))",
               "def p(a: [5000]int) = let h = array(40, \\i -> reduceBy(256, +, 0, a |> "
               "map(\\v -> (v & 255, i)))) in map(split(16), h)");
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

// Stages have the same choices whether names hold them or a tuple that a name holds does.
static void test_tuples_of_stages(void **state)
{
    (void)state;
    static const char *const step[] = {
        "let x = b |> map2(f) in let y = c |> map2(f) in (zip2(w(x), w(y)) |> map2(\\p q "
        "-> "
        "g(p) + g(q)), x, y)",
        "let v = (b |> map2(f), c |> map2(f)) in (zip2(w(v.0), w(v.1)) |> map2(\\p q -> "
        "g(p) + g(q)), v.0, v.1)",
        "let v = let k = a[0][0] in (b |> map2(f), c |> map2(f)) in let y = v.1 in let x = "
        "v.0 "
        "in (zip2(w(x), w(y)) |> map2(\\p q -> g(p) + g(q)), x, y)",
        "let v = zip2(b, c) |> map2(\\p q -> (f(p), f(q))) in (zip2(w(map2(\\t -> t.0, "
        "v)), "
        "w(map2(\\t -> t.1, v))) |> map2(\\p q -> g(p) + g(q)), map2(\\t -> t.0, v), "
        "map2(\\t -> t.1, v))",
        "let v = unzip(zip2(b, c) |> map2(\\p q -> (f(p), f(q)))) in (zip2(w(v.0), w(v.1)) "
        "|> "
        "map2(\\p q -> g(p) + g(q)), v.0, v.1)",
    };
    char text[COUNTOF(step)][1500];
    for (int i = 0; i < COUNTOF(step); i++)
        snprintf(text[i], sizeof text[i],
                 "fun f(x: float): float = 1 / (1 + x * x)\n"
                 "def w(x: [500][700]float) = x |> pad2(1, 1, clamp) |> slide2(3, 1)\n"
                 "def g(w: [3][3]float): float = w[0][1] - w[2][1]\n"
                 "def p(a, b, c: [500][700]float) = iterate(4, \\a b c -> %s, (a, b, c))",
                 step[i]);
    same_space(text[0], text[1]);
    same_space(text[0], text[2]);
    same_space(text[3], text[4]);
}

// Each product that a map reads has its own tiles, whether it has a name or not.
static void test_products_are_stages(void **state)
{
    (void)state;
    static const char *const result[] = {
        "map2(\\x y -> max(x, 0) * y, zip2(mm(a, b), mm(a, c)))",
        "let x = mm(a, b) in let y = mm(a, c) in map2(\\x y -> max(x, 0) * y, zip2(x, y))",
    };
    for (int i = 0; i < COUNTOF(result); i++) {
        char text[1000];
        snprintf(text, sizeof text,
                 "def mm(a: [256][192]float, b: [320][192]float) = a |> map(\\r -> b |> "
                 "map(\\q -> reduce(+, 0, zip(r, q) |> map(*))))\n"
                 "def p(a: [256][192]float, b, c: [320][192]float) = %s",
                 result[i]);
        Opened o;
        const Unit *unit = plain_unit(&o, text, &gpu, 2);
        for (int k = 0; k < 2; k++) // both hold tiles of their factors
            assert_true(unit->kernels.at[k]->locals.len > 0);
        close_all(&o);
    }
}

// Rows that a place says are read where they are: each kernel makes something.
static void test_rows_by_place(void **state)
{
    (void)state;
    const DeviceInfo many = {.max_group = 1024,
                             .max_item = {1024, 1024, 64},
                             .local_bytes = 49152,
                             .warp = 32,
                             .compute_units = 132};
    Opened o;
    plain_unit(&o,
               "def head(q, k, v: [2048][64]float) = q |> map(\\r -> k |> map(\\c -> "
               "reduce(+, 0, zip(r, c) |> map(*)))) |> map(\\r -> let e = r |> map(exp) in "
               "let z = reduce(+, 0, e) in transpose(v) |> map(\\c -> reduce(+, 0, zip(e, "
               "c) |> map(*)) / z))\n"
               "def p(q: [16][2048][64]float, k, v: [4][2048][64]float) = array(16, \\h -> "
               "head(q[h], k[h / 4], v[h / 4]))",
               &many, 4);
    close_all(&o);
}

// Images have the same choices however many dimensions tell them apart.
static void test_batches_of_batches(void **state)
{
    (void)state;
    char text[2][1000];
    for (int k = 0; k < 2; k++)
        snprintf(
            text[k], sizeof text[k],
            "def f(w: [3][3]float): float = w[0][1] - w[2][1]\n"
            "def g(w: [3][3]float): float = w[1][0] - w[1][2]\n"
            "def b(x: [500][700]float) = x |> pad2(1, 1, clamp) |> slide2(3, 1) |> map2(f) "
            "|> pad2(1, 1, clamp) |> slide2(3, 1) |> map2(g)\n"
            "def p(a: %s[500][700]float) = let y = a |> %s(b) in zip%s(a, y) |> %s(\\x y "
            "-> "
            "zip2(x, y) |> map2(\\u v -> 2*u - v))",
            k ? "[6]" : "[2][3]", k ? "map" : "map2", k ? "" : "2", k ? "map" : "map2");
    same_space(text[0], text[1]);
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

// What is written out for each output limits how many an item has: the steps of a loop of
// numbers, and on a processor those of small arrays, too.
static void test_outputs_of_long_texts(void **state)
{
    (void)state;
    const char *text[] = {
        "def p(a: [64][64]float) = map2(\\x -> iterate(100, \\s -> s * s + x, x), a)",
        "def p(a: [64][64]float) = map2(\\x -> x * x + x, a)"};
    for (int i = 0; i < COUNTOF(text); i++) {
        Opened o;
        Point point;
        open_text(&o, text[i]);
        const Space *space = derive_space(o.derivation);
        derive_plain(o.derivation, &point);
        assert_true(space_valid(space, &point));
        assert_true(space_set(space, &point, "bx", "16"));
        assert_true(space_valid(space, &point));
        assert_true(space_set(space, &point, "by", "4"));
        assert_int_equal(space_valid(space, &point), i == 1);
        close_all(&o);
    }
}

// Items may have all of an axis of few elements.
static void test_few(void **state)
{
    (void)state;
    has_first("def p(a: [9][500][700]float) = array3(9, 500, 700, \\q i j -> let s = "
              "a[0][i][j] + a[8][i][j] in if q == 3 then s / 2 else exp(s) * a[q][i][j])",
              "bz", "9");
    // So it does, with tiles, where these call functions for what all elements read.
    Opened o;
    const Unit *unit = plain_unit(
        &o,
        "def p(a: [5000][3]float) = a |> map(\\v -> let r = exp(v[0]) in let g = "
        "exp(v[1]) in array(3, \\k -> if k == 0 then r + g else r - g))",
        &gpu, 1);
    assert_int_equal(unit->kernels.at[0]->locals.len, 2);
    close_all(&o);
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

// Outputs that fold the same rows at places near theirs are an item's each, whose folds
// have parts, whatever has a name before the fold and whether there are several such
// arrays.
static void test_same_rows(void **state)
{
    (void)state;
    static const char *const rest[] = {"g: [4000][2000]float) = stack(g)",
                                       "g: [3][4000][2000]float) = g |> map(stack)"};
    for (int i = 0; i < COUNTOF(rest); i++) {
        AutoArena *arena = arena_new();
        Opened o;
        plain_unit(
            &o,
            arena_printf(arena,
                         "def stack(g: [4000][2000]float) = array(2000, \\k -> let t = "
                         "0.5 * float(k) in reduce(+, 0, array(4000, \\h -> let i = "
                         "int(t * float(h)) in if i < 2000 then g[h][i] else 0.0)) / "
                         "4000)\ndef p(%s",
                         rest[i]),
            &gpu, 2);
        close_all(&o);
    }
}

// A fold that one group does as fast as another kernel joins parts has no parts.
static void test_short_folds(void **state)
{
    (void)state;
    static const struct {
        const char *element;
        int kernels;
    } folds[] = {{"v * v", 2}, {"iterate(99, \\s -> s * s + v, v)", 3}};
    for (int i = 0; i < COUNTOF(folds); i++) {
        AutoArena *arena = arena_new();
        Opened o;
        plain_unit(&o,
                   arena_printf(arena,
                                "def p(x: [4000]float, y: [9000]float) = let s = reduce(+, "
                                "0, map(\\v -> %s, x)) in map(\\e -> e / s, y)",
                                folds[i].element),
                   &gpu, folds[i].kernels);
        close_all(&o);
    }
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
    // Each of several elements of a cell is one of the nest, whatever windows it folds.
    has_first(
        "def p(a: [50][70][16]float) = zip2(a, a |> pad2(1, 1, 0) |> slide2(3, 1)) |> "
        "map2(\\c w -> c |> map(\\u -> reduce(+, 0, join(join(w)) |> map(\\v -> u * "
        "v))))",
        "bz", "4");
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
    // A layout between the maps comes after all of them.
    same_space("def p(a: [5][6]float, b: [50][70]float) = a |> map(\\r -> b |> map(\\q -> "
               "join(r |> map(\\x -> q |> map(\\y -> x * y)))))",
               "def p(a: [5][6]float, b: [50][70]float) = a |> map(\\r -> b |> map(\\q -> "
               "r |> map(\\x -> q |> map(\\y -> x * y))))");
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

// Two ways to write a program, which have the same choices.
static const char *const same[][2] = {
    // Pooling: one list of rows, whose neighbours are channels.
    {"def p(x: [4][40][30][8]float) = array(4, \\n -> array3(20, 15, 8, \\i j c -> "
     "reduce(max, 0, array(2, \\p -> reduce(max, 0, array(2, \\q -> "
     "x[n][2*i + p][2*j + q][c]))))))",
     "def p(x: [160][30][8]float) = array3(80, 15, 8, \\i j c -> reduce(max, 0, array(2, "
     "\\p -> reduce(max, 0, array(2, \\q -> x[2*i + p][2*j + q][c])))))"},
    // Stages that are read beside their own place.
    {"def p(a: [52][700]float) = let s = array2(50, 700, \\i j -> a[i][j] + 2 * a[i + "
     "1][j] "
     "+ a[i + 2][j]) in array2(48, 698, \\i j -> s[i][j + 1] - 4 * s[i + 1][j + 2] + "
     "s[i + 2][j])",
     "def p(a: [52][700]float) = let s = a |> slide2(3, 1, 1, 1) |> map2(\\w -> w[0][0] + "
     "2 * w[1][0] + w[2][0]) in s |> slide2(3, 1) |> map2(\\w -> w[0][1] - 4 * w[1][2] + "
     "w[2][0])"},
};

static void test_nests_written_otherwise(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(same); i++)
        same_space(same[i][0], same[i][1]);
}

static const char *const products[] = {
    "def p(x: [4][40][30][8]float, w: [3][3][8][16]float) = array2(4, 38, \\n i -> "
    "array2(28, 16, \\j o -> reduce(+, 0, array(3, \\p -> reduce(+, 0, array(3, \\q -> "
    "reduce(+, 0, array(8, \\c -> x[n][i + p][j + q][c] * w[p][q][c][o]))))))))",
    // Channels first: the pixels are the columns.
    "def p(x: [4][8][40][30]float, w: [16][8][3][3]float) = array2(4, 16, \\n o -> "
    "array2(38, 28, \\i j -> reduce(+, 0, array(8, \\c -> reduce(+, 0, join(array2(3, 3, "
    "\\p q -> x[n][c][i + p][j + q] * w[o][c][p][q])))))))",
    "def p(x: [4][5][30]float, y: [30][6][7]float) = array2(4, 5, \\a b -> array2(6, 7, "
    "\\c d -> reduce(+, 0, array(30, \\e -> x[a][b][e] * y[e][c][d]))))",
    "def p(a: [4][40][30]float, b: [30][50]float) = a |> map2(\\v -> transpose(b) |> "
    "map(\\c -> zip(v, c) |> map(*) |> reduce(+, 0)))",
    "def p(a: [2][4][40][30]float, b: [50][30]float) = a |> map3(\\v -> b |> map(\\c -> "
    "zip(v, c) |> map(*) |> reduce(+, 0)))",
    "def p(x: [40][30][8]float, w: [3][3][8][16]float) = x |> slide2(3, 1) |> map2(\\v -> "
    "array(16, \\o -> reduce(+, 0, join(join(array3(3, 3, 8, \\p q c -> v[p][q][c] * "
    "w[p][q][c][o]))))))",
};

// Both factors of each, however they are laid out, can be copied to tiles.
static void test_products(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(products); i++) {
        Opened x;
        Point point;
        open_text(&x, products[i]);
        const Space *space = derive_space(x.derivation);
        derive_plain(x.derivation, &point);
        assert_true(space_set(space, &point, "product", "blocks"));
        assert_true(space_set(space, &point, "lx", "8"));
        assert_true(space_set(space, &point, "ly", "8"));
        assert_true(space_set(space, &point, "stage", "8"));
        assert_true(space_valid(space, &point));
        Expr *body = derive_body(x.derivation, &point, &x.diags);
        assert_non_null(body);
        close_all(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nests_written_otherwise),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_arrays_by_index),
        cmocka_unit_test(test_chains_have_names),
        cmocka_unit_test(test_tuples_of_stages),
        cmocka_unit_test(test_products_are_stages),
        cmocka_unit_test(test_rows_by_place),
        cmocka_unit_test(test_batches_of_batches),
        cmocka_unit_test(test_folds_are_hoisted),
        cmocka_unit_test(test_names_within_rows),
        cmocka_unit_test(test_named_loops),
        cmocka_unit_test(test_outputs_of_long_texts),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_long_columns_are_apart),
        cmocka_unit_test(test_same_rows),
        cmocka_unit_test(test_short_folds),
        cmocka_unit_test(test_named_folds_have_parts),
        cmocka_unit_test(test_windows_in_batches),
        cmocka_unit_test(test_deep_nests),
        cmocka_unit_test(test_chains_around_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
