// SPDX-License-Identifier: Apache-2.0
//
// Every rule on programs of its own, at random sizes, arguments and inputs: both sides have
// the same value to the last bit. And what rules must refuse.

#include "rewriter/rewriter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "instances.h"

typedef struct {
    Ir *ir;
    Arena *arena;
    Diags diags;
    Source source;
    Program *program;
} Loaded;

static void load(Loaded *l, const char *def)
{
    l->ir = ir_new();
    l->arena = arena_new();
    l->diags = (Diags){.arena = l->arena};
    char *text = arena_printf(l->arena, "%s%s\n", HEAD, def);
    l->source = (Source){"test", text, strlen(text)};
    l->program = ir_parse(l->ir, &l->source, &l->diags);
    if (!l->program || !ir_infer(l->program, &l->diags)) {
        Buf out = buf_new();
        diags_print(&out, &l->diags);
        fail_msg("%s\n%s", def, out.text);
    }
}

static void unload(Loaded *l)
{
    ir_free(l->ir);
    arena_free(l->arena);
}

static Program *bind(Loaded *l, Rng *rng)
{
    Binding b[] = {{"N", 1 + (int64_t)rng_below(rng, 16)},
                   {"M", 1 + (int64_t)rng_below(rng, 12)},
                   {"K", 1 + (int64_t)rng_below(rng, 5)}};
    Diags diags = {.arena = l->arena};
    return ir_bind(l->program, b, COUNTOF(b), &diags);
}

static Value *value_of(const Program *program, const Expr *body, Arena *arena,
                       uint64_t seed)
{
    Function main = *program->main;
    Program with = *program;
    main.body = (Expr *)body;
    with.main = &main;
    Value **in = NEW_ARRAY(arena, Value *, main.nparam), *out = NULL;
    for (int i = 0; i < main.nparam; i++) {
        in[i] = value_new(arena, main.params[i]->type);
        value_random(in[i], seed + (uint64_t)i);
    }
    Diags diags = {.arena = arena};
    if (!ir_eval(&with, in, arena, &out, 0, &diags)) {
        Buf text = buf_new();
        diags_print(&text, &diags);
        print_message("%s", text.text);
        buf_release(&text);
        return NULL;
    }
    return out;
}

static bool same_value(const Value *a, const Value *b)
{
    if (a->nplane != b->nplane)
        return false;
    for (int i = 0; i < a->nplane; i++)
        if (a->count[i] != b->count[i] || a->scalar[i] != b->scalar[i] ||
            memcmp(a->plane[i], b->plane[i], (size_t)a->count[i] * sizeof(double)))
            return false;
    return true;
}

static RuleArgs draw_args(const char *text, Rng *rng)
{
    RuleArgs args = {0};
    while (*text) {
        size_t n = strcspn(text, " ");
        args.at[args.n++] = text[rng_below(rng, n)] - '0';
        text += n + (text[n] == ' ');
    }
    return args;
}

static void show(const char *what, const Expr *expr)
{
    Buf out = buf_new();
    expr_print(&out, expr);
    print_message("%s: %s\n", what, out.text);
    buf_release(&out);
}

// 1 if the rule matched and both sides agree, 0 if it did not match.
static int try_once(const Instance *instance, Rng *rng)
{
    Loaded l;
    load(&l, instance->def);
    Program *bound = bind(&l, rng);
    RuleArgs args = draw_args(instance->args, rng);
    Path path;
    assert_true(path_parse(instance->path, &path));
    int rule = rule_find(instance->rule);
    assert_true(rule >= 0);
    Expr *left = bound ? rewrite_begin(bound->ir, bound->main->body) : NULL;
    Expr *right = left ? rewrite_at(bound->ir, left, &path, (RuleId)rule, &args) : NULL;
    if (right) {
        Diags diags = {.arena = l.arena};
        Buf out = buf_new();
        if (!ir_infer_expr(bound->ir, right, &diags)) {
            diags_print(&out, &diags);
            show("left", left);
            show("right", right);
            fail_msg("%s: %s", instance->rule, out.text);
        }
        buf_release(&out);
        Value *a = value_of(bound, right, l.arena, 5);
        assert_true(ir_infer_expr(bound->ir, left, &diags));
        Value *b = value_of(bound, left, l.arena, 5);
        if (!a || !b || !same_value(a, b)) {
            show("left", left);
            show("right", right);
            fail_msg("%s: the sides differ", instance->rule);
        }
    }
    unload(&l);
    return right != NULL;
}

enum { MATCHES = 12, TRIES = 300 };

static void test_both_sides_agree(void **state)
{
    (void)state;
    Rng rng = rng_new(11);
    for (int i = 0; i < COUNTOF(instances); i++) {
        int matched = 0;
        for (int t = 0; t < TRIES && matched < MATCHES; t++)
            matched += try_once(&instances[i], &rng);
        if (matched == 0)
            fail_msg("instance %d of %s never matched", i, instances[i].rule);
    }
}

static void test_every_rule_has_an_instance(void **state)
{
    (void)state;
    for (int r = 0; r < RULES; r++) {
        bool found = false;
        for (int i = 0; i < COUNTOF(instances); i++)
            found |= strcmp(instances[i].rule, rule_info[r].name) == 0;
        if (!found)
            fail_msg("%s has no instance", rule_info[r].name);
        assert_true(*rule_info[r].left && *rule_info[r].right && *rule_info[r].source);
    }
}

typedef struct {
    const char *rule, *def, *path;
    RuleArgs args;
} Refusal;

static const Refusal refusals[] = {
    // Windows of one element, of more than there may be, and of what is no name.
    {"arrayWindows", "def p(x: [N]int) = array(N, \\i -> x[i] + i)", "root", {0}},
    {"arrayWindows", "def p(x: [100]int) = array(50, \\i -> x[i + 1])", "root", {0}},
    {"arrayWindows", "def p(x: [N + 1]int) = array(N, \\i -> drop(1, x)[i])", "root", {0}},
    {"arrayWindows", "def p(x: [N + 1]int) = array(N, \\i -> x[2 * i % N])", "root", {0}},
    {"mapLcl", "def p(x: [8]int) = map(twice, x)", "root", {1, {0}}},
    {"mapLcl",
     "def p(x: [8][4]int) = mapWrg0(\\r -> mapLcl0(\\e -> reduceSeq(+, 0, "
     "map(twice, r)), r), x)",
     "f.f.1",
     {1, {0}}},
    {"mapGlb", "def p(x: [8][4]int) = mapGlb0(\\r -> map(twice, r), x)", "f", {1, {0}}},
    {"mapGlb", "def p(x: [8][4]int) = mapSeq(\\r -> map(twice, r), x)", "f", {1, {0}}},
    {"mapGlb", "def p(x: [8][4]int) = mapWrg0(\\r -> map(twice, r), x)", "f", {1, {1}}},
    {"mapGlb", "def p(x: [8][4]int) = map2(twice, x)", "root", {2, {1, 1}}},
    {"mapGlb", "def p(x: [8][4]int) = map2(twice, x)", "root", {1, {1}}},
    {"mapWrg", "def p(x: [8][4]int) = mapGlb0(\\r -> map(twice, r), x)", "f", {1, {1}}},
    {"mapSeq", "def p(x: [8][4]int) = map(\\r -> mapGlb0(twice, r), x)", "root", {0}},
    {"toLocal", "def p(x: [8]int) = mapGlb0(twice, x)", "0", {1, {0}}},
    {"toPrivate", "def p(x: [8]int) = mapGlb0(twice, x)", "0", {0}},
    {"toGlobal", "def p(x: [8]int) = toGlobal(mapGlb0(twice, x))", "0", {0}},
    {"partialReduce",
     "def p(x: [8]int) = reduce(\\s e -> s + float(e), 0.0, x)",
     "root",
     {1, {2}}},
    {"scanSplit",
     "def p(x: [8]float) = scan(\\y v -> 0.9 * y + v, 0, x)",
     "root",
     {1, {2}}},
    {"scanSplit",
     "def p(x: [8]int) = scan(\\s v -> max(0, s + v), 0, x)",
     "root",
     {1, {2}}},
    {"scanSplit", "def p(x: [8]int) = scan(+, 5, x)", "root", {1, {2}}},
    {"scanSplit", "def p(x: [8]int) = scan(\\s v -> s + v * v, 0, x)", "root", {1, {2}}},
    {"scanSplit", "def p(x: [8]int) = scan(\\s v -> s - v, 0, x)", "root", {1, {2}}},
    {"scanSplit",
     "def p(x: [8]int) = map(+, zip(scan(+, 0, x), scan(max, 0, x)))",
     "root",
     {1, {2}}},
    {"scanResume", "def p(x: [8]int) = scan(\\s v -> s - v, 0, x)", "root", {1, {2}}},
    {"scanOnePass", "def p(x: [8]int) = scan(\\s v -> s - v, 0, x)", "root", {2, {2, 0}}},
    {"scanOnePass", "def p(x: [8]int) = scan(+, 0, x)", "root", {2, {2, 1}}},
    {"scanOnePass", "def p(x: [8]char) = scan(max, char(0), x)", "root", {2, {2, 0}}},
    {"scanAffine", "def p(x: [8]int) = scan(+, 0, x)", "root", {0}},
    {"scanAffine", "def p(x: [8]int) = scan(\\y v -> y + v * v, 0, x)", "root", {0}},
    {"scanAffine", "def p(x: [8]int) = scan(\\y v -> y * y + v, 0, x)", "root", {0}},
    {"scanAffine", "def p(x: [8]int) = scan(\\y v -> y / 2 + v, 0, x)", "root", {0}},
    {"scanAffine", "def p(x: [8]float) = scan(\\y v -> v / (4 - y), 0, x)", "root", {0}},
    {"scanAffine",
     "def p(x: [8]float) = scan(\\y v -> if v > 2 then v else y / 2, 0, x)",
     "root", // 0 times infinity
     {0}},
    {"scanAffine",
     "def p(x: [8]int) = scan(\\y v -> if y > 2 then v else y + v, 0, x)",
     "root",
     {0}},
    {"scanAffine", "def p(x: [8]half) = scan(\\y v -> y / 2 + v, 0, x)", "root", {0}},
    {"scanAffine",
     "def p(x: [8]int) = scan(\\s v -> (s.0 + v, s.1 + s.2, s.0), (0, 0, 0), x)",
     "root",
     {0}},
    {"scanShift", "def p(x: [8]int) = pad(1, 0, 1, take(7, scan(+, 0, x)))", "root", {0}},
    {"scanShift", "def p(x: [8]int) = pad(0, 1, 0, take(7, scan(+, 0, x)))", "root", {0}},
    {"scanShift", "def p(x: [8]int) = pad(1, 0, 0, take(7, scan(+, 1, x)))", "root", {0}},
    {"scanShift", "def p(x: [8]int) = pad(1, 0, 5, take(7, scan(+, 5, x)))", "root", {0}},
    {"scanLcl", "def p(x: [4][8]int) = map(\\r -> scan(+, 0, r), x)", "f", {1, {2}}},
    {"scanLcl",
     "def p(x: [4][8]float) = mapWrg0(\\r -> scan(\\y v -> (y + v) / 2, 0, r), x)",
     "f",
     {1, {2}}},
    {"reduceLcl",
     "def p(x: [4][8]float) = mapWrg0(\\r -> reduce(\\y v -> (y + v) / 2, 0, r), x)",
     "f",
     {2, {2, 1}}},
    {"reduceLcl",
     "def p(x: [4][8]int) = mapWrg0(\\r -> reduce(\\y v -> (y.0 + v.1, y.1 - v.0), (0, 0), "
     "zip(r, r)), x)",
     "f",
     {2, {2, 1}}},
    {"reduceLcl",
     "def p(x: [4][8]int) = mapWrg0(\\r -> zip(r, r) |> " LAST_VALUE ", x)",
     "f",
     {2, {2, 1}}},
    {"reduceLcl",
     "def p(x: [4][8]int) = mapWrg0(\\r -> map(\\v -> (1, v), r) |> "
     "reduce(\\a b -> (a.0 + b.0, a.1 + b.1 / b.0), (0, 0)), x)",
     "f",
     {2, {2, 1}}},
    // No finite numbers; a part after the start value; start values behind a part; parts of
    // many elements; beyond a number that the map names; elements made of arrays.
    {"reduceLcl",
     "def p(x: [4][8]float) = mapWrg0(\\r -> map(\\v -> (1, sqrt(v - 1000)), r) |> "
     "reduce(\\a b -> (a.0 + b.0, (a.1 + b.1) / 2), (0, 0)), x)",
     "f",
     {2, {2, 1}}},
    {"reduceLcl",
     "def p(x: [4][8]int) = mapWrg0(\\r -> map(\\v -> (1, v), r) |> reduce(\\a b -> (a.0 + "
     "b.0, "
     "if a.0 == 0 then (if b.0 > 1 then 0 else b.1) else a.1 + b.1), (0, 0)), x)",
     "f",
     {2, {2, 1}}},
    {"reduceLcl",
     "def p(x: [4][8]int) = mapWrg0(\\r -> map(\\v -> (1, v), r) |> reduce(\\a b -> "
     "(a.0 + b.0, if b.0 == 0 && a.0 > 0 then a.1 + 100 else a.1 + b.1), (0, 0)), x)",
     "f",
     {2, {2, 1}}},
    {"reduceLcl",
     "def p(x: [4][8]int) = mapWrg0(\\r -> map(\\v -> (1, v), r) |> reduce(\\a b -> "
     "(min(a.0 + b.0, 5), if b.0 > 3 then a.1 - b.1 else a.1 + b.1), (0, 0)), x)",
     "f",
     {2, {2, 1}}},
    {"reduceLcl",
     "def p(x: [4][8]float) = mapWrg0(\\r -> map(\\v -> (if v > 1000 then -1 else 1, v), "
     "r) |> " LAST_VALUE ", x)",
     "f",
     {2, {2, 1}}},
    {"reduceLcl",
     "def p(x: [4][8][N]int) = mapWrg0(\\r -> map(\\v -> (1, v[0]), r) |> " LAST_VALUE
     ", x)",
     "f",
     {2, {2, 1}}},
    {"reduceMapInterchange",
     "def p(x: [8][4]int) = reduce(\\a r -> map(\\u v -> u + v, zip(a, r)), array(4, \\j "
     "-> "
     "j), x)",
     "root",
     {0}},
    {"reduceMapInterchange",
     "def p(x: [8][4]int) = reduce(\\s t -> map(\\v w -> v + w + t.0[t.1], zip(s, t.0)), "
     "array(4, \\j -> 0), zip(x, array(8, \\i -> i % 4)))",
     "root",
     {0}},
    {"reduceMapInterchange",
     "def p(x: [8][4]int) = reduce(\\s r -> (map(+, zip(s.0, r)), map(+, zip(gather(\\j "
     "-> 3 - j, s.0), r))), (array(4, \\j -> 0), array(4, \\j -> 0)), x)",
     "root",
     {0}},
    {"reduceByMapInterchange",
     "def p(x: [8]int, y: [8][4]int) = zip(x, y) |> reduceBy(3, \\s r -> map(\\u v -> u + "
     "v + "
     "s[0], zip(s, r)), array(4, \\j -> 0))",
     "root",
     {0}},
    {"reduceByElements",
     "def p(x: [8]int, y: [8][4]int) = zip(x, y) |> reduceBy(3, \\s r -> map(\\u v -> u + "
     "v + "
     "s[0], zip(s, r)), array(4, \\j -> 0))",
     "root",
     {0}},
    {"foldChoice", "def p(x: [8]int) = reduce(\\s e -> s + e * e, 0, x)", "root", {0}},
    {"foldChoice",
     "def p(x: [8]float) = reduce(\\s e -> if s > e then s else e, -9, x)", // NaN counts
     "root",
     {0}},
    {"foldChoice",
     "def p(x: [8]int) = reduce(\\s e -> if e > 2 then s + e else s * e, 0, x)",
     "root",
     {0}},
    {"foldChoice",
     "def p(x: [8]int) = reduce(\\s e -> if e > 2 then e else s, 0, x)",
     "root",
     {0}},
    {"foldChoice",
     "def p(x: [8]int) = reduce(\\s e -> if s.0 > 2 then (s.0 + e, s.1) else s, (0, 0), x)",
     "root",
     {0}},
    {"foldChoice",
     "def p(x: [8]int) = reduce(\\s e -> if e > s.0 then (e, s.1 + 1) else s, (0, 0), x)",
     "root",
     {0}},
    {"foldChoice",
     "def p(x, y: [8]int) = reduce(\\s e -> if e > 2 then max(s, e) else s, reduce(max, 0, "
     "y), x)",
     "root",
     {0}},
    {"joinReduce",
     "def p(x: [8][4]int) = reduce(max, 0, map(reduce(+, 0), x))",
     "root",
     {0}},
    {"partialReduceStrided",
     "def p(x: [8]int) = reduce(\\a b -> if b == 0 then a else b, 0, x)",
     "root",
     {1, {2}}},
    {"partialReduceTiles",
     "def p(x: [4][64]int) = reduce(\\a b -> if b == 0 then a else b, 0, join(x))",
     "root",
     {2, {2, 32}}},
    {"partialReduceTiles",
     "def p(x: [4][40]int) = reduce(+, 0, join(x))",
     "root",
     {2, {2, 64}}},
    {"partialReduceTiles", "def p(x: [64]int) = reduce(+, 0, x)", "root", {2, {2, 32}}},
    {"foldAgain",
     "def p(x: [5]int) = let a = map(twice, x) in let s = reduce(max, 0, map(\\w -> w[0], "
     "slide(2, 1, a))) in map(\\v -> v + s, a)",
     "root",
     {1, {0}}},
    {"foldAgain",
     "def p(x: [8]int) = let a = map(twice, x) in map(\\v -> v + 1, a)",
     "root",
     {1, {1}}},
    {"foldAgain",
     "def p(x: [8]int) = let a = scan(+, 0, x) in reduce(max, 0, a)",
     "root",
     {1, {1}}},
    {"reduceOne",
     "def p(x: [8]int) = reduceSeq(\\s e -> s + twice(e), 0, take(1, x))",
     "root",
     {0}},
    {"reduceOne",
     "def p(x: [8]int) = reduce(\\s e -> s + twice(e), 0, take(1, x))",
     "root",
     {0}},
    {"partialReduce",
     "def p(x: [8](int, int)) = reduce(\\a e -> ((if e.0 == 12345 then 7 else e.0) + a.0, "
     "max(a.1, e.1)), (0, -99), x)",
     "root",
     {1, {2}}},
    {"partialReduce",
     "def p(x: [8]int) = reduce(\\s e -> s + e * e, 0, x)",
     "root",
     {1, {2}}},
    {"partialReduceInto",
     "def p(x: [8]int) = reduce(\\s e -> e * e + s, 0, x)",
     "root",
     {2, {2, 2}}},
    {"partialReduceInto", "def p(x: [8]int) = reduce(+, 0, x)", "root", {2, {0, 2}}},
    {"reduceFission",
     "def p(x: [8]int) = reduce(\\a e -> mix(a, twice(e)), 0, x)",
     "root",
     {0}},
    {"reduceFission",
     "def p(x: [8]int) = reduce(\\a e -> a + twice(a) * e, 0, x)",
     "root",
     {0}},
    {"layoutOfMap", "def p(x: [8]int) = pad(1, 1, 0, map(twice, x))", "root", {0}},
    {"layoutOfMap", "def p(x: [8]int) = join(map(split(2), split(4, x)))", "root", {0}},
    {"layoutOfZip",
     "def p(x, y: [8]int) = join(zip2(split(2, x), split(2, y)))",
     "root",
     {0}},
    {"zipFlatten", "def p(x, y: [8]int) = map(mix, zip(x, y))", "root", {0}},
    {"letOut", "def p(x: [8]int) = let a = map(twice, x) in a", "root", {0}},
    {"letSwap",
     "def p(x: [8]int) = let a = map(twice, x) in let b = drop(1, a) in (a, b)",
     "root",
     {0}},
    {"letApart", "def p(x: [8]int) = let a = map(twice, x) in zip(a, a)", "root", {0}},
    {"letSplit", "def p(x: [8]int) = let a = split2(2, split(4, x)) in a", "root", {0}},
    {"letTuple",
     "def p(x: [8]int) = let a = map(twice, x) in let b = map(twice, drop(1, x)) in (a, b)",
     "root",
     {1, {2}}},
    {"letTuple",
     "def p(x: [8]int) = let a = map(twice, x) in map(mix, zip(a, x))",
     "root",
     {1, {2}}},
    {"vectorize",
     "def p(x: [8]int) = map(\\e -> if e > 2 then 1 else e, x)",
     "root",
     {1, {2}}},
    {"vectorize", "def p(x: [9]int) = map(twice, x)", "root", {1, {2}}},
    {"reorder", "def p(x: [9]int) = map(twice, x)", "root", {3, {0, 2, 1}}},
    {"tile", "def p(x: [8]int) = map(twice, x)", "root", {1, {2}}},
    {"splitJoin", "def p(x: [8]int) = map(twice, x)", "root", {1, {0}}},
    {"mapInterchange", "def p(x: [4][3]int) = map(\\r -> map(twice, r), x)", "root", {0}},
};

static void test_guards_refuse(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(refusals); i++) {
        Loaded l;
        load(&l, refusals[i].def);
        Path path;
        assert_true(path_parse(refusals[i].path, &path));
        assert_non_null(path_find(l.program->main->body, &path));
        int rule = rule_find(refusals[i].rule);
        assert_true(rule >= 0);
        Expr *body = rewrite_begin(l.ir, l.program->main->body);
        if (rewrite_at(l.ir, body, &path, (RuleId)rule, &refusals[i].args))
            fail_msg("%s matches %s", refusals[i].rule, refusals[i].def);
        unload(&l);
    }
}

static void test_paths(void **state)
{
    (void)state;
    static const char *const good[] = {"root", "0", "f", "0.f.12.f"};
    static const char *const bad[] = {"", ".", "0.", "x", "-1", "0..1", "f0", "9999", "0 "};
    Path path;
    for (int i = 0; i < COUNTOF(good); i++) {
        assert_true(path_parse(good[i], &path));
        Buf out = buf_new();
        path_print(&out, &path);
        assert_string_equal(out.text, good[i]);
        buf_release(&out);
    }
    for (int i = 0; i < COUNTOF(bad); i++)
        if (path_parse(bad[i], &path))
            fail_msg("`%s` is read as a position", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rule_has_an_instance),
        cmocka_unit_test(test_both_sides_agree),
        cmocka_unit_test(test_guards_refuse),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
