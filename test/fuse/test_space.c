// SPDX-License-Identifier: Apache-2.0
//
// The space of the worked example against counts made by hand and by an independent script:
// sets, orders, words, allocations, covers in order; cycles between convex sets; large
// graphs in the time a user waits for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fuse/fuse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    Arena *arena;
    Diags diags;
    Script *script;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    f->diags = (Diags){.arena = f->arena};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    script_free(f->script);
    arena_free(f->arena);
    free(f);
    return 0;
}

static FuseSpace *open_space(Fixture *f, const char *text, int limit)
{
    bool ok;
    f->script = script_parse("test.fws", text, NULL, 0, &f->diags, &ok);
    assert_true(ok);
    FuseSpace *space = fuse_space(f->script, limit, f->arena);
    fuse_order(space);
    return space;
}

static FuseSpace *open_example(Fixture *f)
{
    bool ok;
    f->script = script_load("examples/fusion/paper.fws", NULL, 0, &f->diags, &ok);
    assert_true(ok);
    FuseSpace *space = fuse_space(f->script, 0, f->arena);
    fuse_order(space);
    return space;
}

static void set_text(char *out, const FuseSpace *space, const Cover *cover)
{
    for (int i = 0; i < cover->n; i++) {
        for (Set s = space->fusion.at[cover->unit[i]].set; s; s &= s - 1)
            *out++ = (char)('1' + __builtin_ctzll(s));
        *out++ = '|';
    }
    out[-1] = 0;
}

static int cheapest(const FuseSpace *space, int k, Arena *arena, Cover **cover)
{
    CoverUnit *unit = NEW_ARRAY(arena, CoverUnit, space->fusion.len);
    for (int i = 0; i < space->fusion.len; i++)
        unit[i] = (CoverUnit){space->fusion.at[i].set, space->fusion.at[i].moved, i};
    return cover_parts(space, unit, space->fusion.len, k, arena, cover);
}

static void test_counts(void **state)
{
    FuseSpace *s = open_example(*state);
    assert_int_equal(s->subsets, 63);
    assert_int_equal(s->convex, 39);
    assert_int_equal(s->connected, 21);
    assert_int_equal(s->fusions, 15);
    assert_int_equal(s->impls, 410);
    assert_int_equal(s->covers, 32);
    assert_int_equal(s->cover_impls, 5184);
    assert_false(s->covers_cut);
}

// calls, orders, least and greatest need, order, words allocated, implementations, words
// moved fused and apart
static const struct {
    const char *calls;
    int orders, least, most;
    const char *order;
    int top, impls, moved, apart;
} golden[] = {
    {"12", 1, 27, 27, "12", 27, 6, 24, 42},
    {"23", 1, 15, 15, "23", 15, 2, 13, 19},
    {"36", 1, 51, 51, "36", 51, 3, 53, 55},
    {"45", 1, 75, 75, "45", 75, 9, 75, 150},
    {"56", 1, 75, 75, "56", 75, 9, 76, 126},
    {"123", 1, 27, 27, "123", 27, 6, 22, 46},
    {"236", 1, 51, 51, "236", 51, 6, 62, 70},
    {"356", 2, 75, 76, "536", 75, 9, 78, 130},
    {"456", 1, 75, 75, "456", 75, 27, 76, 201},
    {"1236", 1, 51, 51, "1236", 51, 18, 71, 97},
    {"2356", 3, 75, 78, "5236", 75, 18, 87, 145},
    {"3456", 3, 75, 76, "4536", 75, 27, 78, 205},
    {"12356", 4, 75, 84, "51236", 75, 54, 96, 172},
    {"23456", 6, 75, 78, "45236", 75, 54, 87, 220},
    {"123456", 10, 75, 84, "451236", 75, 162, 96, 247},
};

static Set set_of(const char *calls)
{
    Set set = 0;
    for (; *calls; calls++)
        set |= (Set)1 << (*calls - '1');
    return set;
}

static const Fusion *find(const FuseSpace *space, Set set)
{
    for (int i = 0; i < space->fusion.len; i++)
        if (space->fusion.at[i].set == set)
            return &space->fusion.at[i];
    return NULL;
}

static void test_fusions(void **state)
{
    FuseSpace *s = open_example(*state);
    for (int i = 0; i < COUNTOF(golden); i++) {
        const Fusion *f = find(s, set_of(golden[i].calls));
        assert_non_null(f);
        assert_int_equal(f->orders, golden[i].orders);
        assert_int_equal(f->need_min, golden[i].least);
        assert_int_equal(f->need_max, golden[i].most);
        for (int k = 0; k < f->ncall; k++)
            assert_int_equal(f->order[k], golden[i].order[k] - '1');
        assert_int_equal(f->top, golden[i].top);
        assert_int_equal(f->impls, golden[i].impls);
        assert_int_equal(f->moved, golden[i].moved);
        assert_int_equal(f->apart, golden[i].apart);
        assert_in_range(f->nodes, 1, 20);
    }
}

static void test_single_calls(void **state)
{
    FuseSpace *s = open_example(*state);
    static const int words[] = {27, 15, 4, 75, 75, 51}, impls[] = {3, 2, 1, 3, 3, 3};
    for (int v = 0; v < 6; v++) {
        assert_int_equal(find(s, (Set)1 << v)->moved, words[v]);
        assert_int_equal(s->part[0].script->call[v].function->nimpl, impls[v]);
    }
}

static void test_covers_in_order(void **state)
{
    Fixture *f = *state;
    FuseSpace *s = open_example(f);
    static const struct {
        int words;
        const char *sets;
    } want[] = {{96, "123456"},
                {98, "123|456"},
                {102, "12|3456"},
                {104, "12|3|456"},
                {114, "1|23456"}};
    Cover *cover;
    int n = cheapest(s, 100, f->arena, &cover);
    assert_int_equal(n, 32);
    for (int i = 0; i < n; i++) {
        char text[64];
        set_text(text, s, &cover[i]);
        if (i < COUNTOF(want)) {
            assert_int_equal(cover[i].cost, want[i].words);
            assert_string_equal(text, want[i].sets);
        }
        for (int k = 0; k < i; k++) {
            char other[64];
            set_text(other, s, &cover[k]);
            assert_string_not_equal(text, other);
        }
        assert_true(i == 0 || cover[i].cost >= cover[i - 1].cost);
    }
    assert_int_equal(cover[31].cost, 247);
}

// Elements that are live together lie apart, and offsets of the worked example fill 75.
static void test_offsets(void **state)
{
    FuseSpace *s = open_example(*state);
    const Fusion *f = find(s, 63);
    const Script *script = s->part[0].script;
    int first[32], last[32];
    for (int i = 0; i < f->nelem; i++) {
        const Elem *e = &script->elem[f->elem[i]];
        first[i] = 99;
        for (int step = 0; step < f->ncall; step++)
            if (e->producer == f->order[step] || (elem_users(e, 0) >> f->order[step] & 1)) {
                first[i] = step < first[i] ? step : first[i];
                last[i] = step;
            }
        assert_in_range(f->offset[i] + e->words, 1, 75);
    }
    for (int i = 0; i < f->nelem; i++)
        for (int k = 0; k < i; k++)
            if (first[i] <= last[k] && first[k] <= last[i])
                assert_true(f->offset[i] + script->elem[f->elem[i]].words <= f->offset[k] ||
                            f->offset[k] + script->elem[f->elem[k]].words <= f->offset[i]);
}

// a -> b and c -> d; b, c share an input, and so do a, d. {a, d} and {b, c} are convex, and
// together they wait for each other.
static void test_quotient_cycle(void **state)
{
    Fixture *f = *state;
    FuseSpace *s =
        open_space(f,
                   "SCALAR p, q, a, b, c, d; input p, q;\n"
                   "a = add(p, p); b = add(a, q); c = add(q, q); d = add(c, p);\n"
                   "return b, d;",
                   0);
    Set ad = 1 | 8, bc = 2 | 4;
    const Script *script = s->part[0].script;
    // The calls keep their order: a 0, b 1, c 2, d 3.
    assert_string_equal(script->elem[script->call[3].out].name, "d");
    assert_non_null(find(s, ad));
    assert_non_null(find(s, bc));
    CoverUnit unit[] = {{ad, 1, 0}, {bc, 1, 1}, {1, 5, 2}, {2, 5, 3}, {4, 5, 4}, {8, 5, 5}};
    Cover *cover;
    int n = cover_best(&s->part[0], unit, COUNTOF(unit), 10, 1, f->arena, &cover);
    assert_int_equal(n, 3); // {a,d} with two singles, {b,c} with two, four singles
    assert_int_equal(cover[0].cost, 11);
    assert_int_equal(cover[2].cost, 20);
}

// Costs without a pattern: the list is what trying all subsets of units gives.
static void test_covers_against_brute_force(void **state)
{
    Fixture *f = *state;
    FuseSpace *s = open_example(f);
    Rng rng = rng_new(7);
    for (int round = 0; round < 5; round++) {
        CoverUnit unit[32];
        int n = s->fusion.len;
        for (int i = 0; i < n; i++)
            unit[i] = (CoverUnit){s->fusion.at[i].set, 1 + (double)rng_below(&rng, 50), i};
        double cost[64];
        int found = 0;
        for (uint32_t mask = 0; mask < (uint32_t)1 << n; mask++) {
            Set all = 0;
            double sum = 0;
            bool apart = true;
            for (int i = 0; i < n && apart; i++)
                if (mask >> i & 1) {
                    apart = !(all & unit[i].set);
                    all |= unit[i].set;
                    sum += unit[i].cost;
                }
            if (!apart || all != 63)
                continue;
            int k = found++;
            for (; k > 0 && cost[k - 1] > sum; k--)
                cost[k] = cost[k - 1];
            cost[k] = sum;
        }
        Cover *cover;
        assert_int_equal(cover_best(&s->part[0], unit, n, 64, 1, f->arena, &cover), found);
        for (int i = 0; i < found; i++)
            assert_true(fabs(cover[i].cost - cost[i]) < 1e-9);
    }
}

// A graph of n calls, each of one or two of the last six values.
static char *random_graph(Arena *arena, int n, uint64_t seed)
{
    Buf text;
    Rng rng = rng_new(seed);
    text = buf_new();
    buf_puts(&text, "SCALAR x, y");
    for (int v = 0; v < n; v++)
        buf_printf(&text, ", v%d", v);
    buf_puts(&text, "; input x, y;\n");
    for (int v = 0; v < n; v++) {
        int a = v - 1 - (int)rng_below(&rng, 6), b = v - 1 - (int)rng_below(&rng, 6);
        buf_printf(&text, "v%d = %s(", v, v % 3 ? "add" : "mul");
        buf_printf(&text, a < 0 ? "x, " : "v%d, ", a);
        buf_printf(&text, b < 0 ? "y);\n" : "v%d);\n", b);
    }
    buf_puts(&text, "return v0");
    for (int v = 1; v < n; v++)
        buf_printf(&text, ", v%d", v);
    buf_puts(&text, ";");
    char *copy = arena_strdup(arena, text.text);
    buf_release(&text);
    return copy;
}

static bool connected(const Graph *graph, Set set)
{
    Set seen = set & -set;
    for (int again = 1; again;) {
        Set before = seen;
        for (Set s = seen; s; s &= s - 1)
            seen |= graph->adj[__builtin_ctzll(s)] & set;
        again = seen != before;
    }
    return seen == set;
}

// Each set that is convex and connected, of all there are, is found once.
static void test_sets_against_brute_force(void **state)
{
    Fixture *f = *state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        FuseSpace *s = open_space(f, random_graph(f->arena, 11, seed), 11);
        int found = 0;
        for (Set set = 1; set < (Set)1 << 11; set++) {
            bool want = graph_convex(&s->part[0], set) && connected(&s->part[0], set);
            int times = 0;
            for (int i = 0; i < s->fusion.len; i++)
                times += s->fusion.at[i].set == set;
            assert_int_equal(times, want);
            found += want;
        }
        assert_int_equal(found, s->fusion.len);
        script_free(f->script);
        f->script = NULL;
    }
}

static void test_large_graph(void **state)
{
    Fixture *f = *state;
    clock_t start = clock();
    FuseSpace *s = open_space(f, random_graph(f->arena, 48, 3), 6);
    Cover *cover;
    assert_int_equal(s->part[0].n, 48);
    assert_int_equal(cheapest(s, 1, f->arena, &cover), 1);
    double spent = (double)(clock() - start) / CLOCKS_PER_SEC;
    print_message("space %.3f s\n", s->seconds);
    print_message("48 calls: %d sets, %.3f s\n", s->fusion.len, spent);
    assert_true(spent < 20); // a second on an idle machine, without sanitizers
}

// Which outputs there are: as `return` says.
static void test_order_of_return(void **state)
{
    Fixture *f = *state;
    static const char *const want[] = {"c", "a", "d"};
    open_space(f,
               "SCALAR x, y, a, b, c, d; input x, y; a = add(x, y); b = mul(a, x);"
               "c = mul(b, y); d = add(b, a); return c, a, d;",
               0);
    assert_int_equal(f->script->noutput, COUNTOF(want));
    for (int i = 0; i < COUNTOF(want); i++) {
        assert_string_equal(f->script->elem[f->script->output[i]].name, want[i]);
    }
}

// Does the program that a script is say this? False, too, where the script is wrong.
static bool says(Fixture *f, const char *text, const Binding *size, int n, const char *what)
{
    bool ok;
    Buf program = buf_new();
    script_free(f->script);
    f->script = script_parse("test.fws", text, size, n, &f->diags, &ok);
    if (ok)
        script_print(&program, f->script);
    ok = ok && strstr(program.text, what);
    buf_release(&program);
    return ok;
}

// A size that has a value is that in all definitions; one without is what a call says.
static void test_sizes(void **state)
{
    Fixture *f = *state;
    static const char text[] =
        "size N = 4, M; type ROW = [8]float; ROW x; SCALAR y, z; input x, z;"
        "def own(a: float): float = array(N, \\i -> a * float(i)) |> reduce(\\s w -> s + "
        "w, 0);"
        "def any(a: [M]float): float = array(M * N, \\i -> a[i / N]) |> reduce(\\s w -> s "
        "+ w, 0);"
        "def mean(a: [M]float): float = (a |> reduce(\\s w -> s + w, 0)) / float(M * N);";
    static const Binding five = {"N", 5}, none = {"N", 0}, twice[] = {{"N", 5}, {"N", 6}};
    const char *any = arena_printf(f->arena, "%s y = any(x); return y;", text);
    const char *mean = arena_printf(f->arena, "%s y = mean(x); return y;", text);
    const char *own = arena_printf(f->arena, "%s y = own(z); return y;", text);
    assert_true(says(f, any, NULL, 0, "array(32,"));
    assert_true(says(f, any, &five, 1, "array(40,"));
    assert_true(says(f, mean, NULL, 0, "[T][8]float"));
    assert_true(says(f, own, NULL, 0, "array(4,"));
    assert_true(says(f, own, &five, 1, "array(5,"));
    assert_false(says(f, own, &none, 1, ""));
    assert_false(says(f, own, twice, 2, ""));
    const char *unknown = arena_printf(
        f->arena, "%s def lost(a: float): float = a / float(M); y = lost(z); return y;",
        text);
    assert_false(says(f, unknown, NULL, 0, ""));
    assert_true(says(f, unknown, (Binding[]){{"M", 8}}, 1, "8"));
}

// Inputs, results and what is the same for all keep their names and types.
static void test_program(void **state)
{
    Fixture *f = *state;
    const char *text = "size N = 7; type ROW = [N]float; ROW A, w, s, p; SCALAR q, r;"
                       "input A, r; uniform p; q = dot(A, p); w = scalerow(r, A);"
                       "s = sum(w); return s, q;";
    assert_true(says(f, text, NULL, 0, "(A: [T][7]float, r: [T]float, p: [7]float)"));
    assert_true(says(f, text, NULL, 0, "(s, q)"));
    assert_true(says(f, text, NULL, 0, "let w = zip(r, A)"));
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_counts),
        TEST(test_fusions),
        TEST(test_single_calls),
        TEST(test_covers_in_order),
        TEST(test_offsets),
        TEST(test_quotient_cycle),
        TEST(test_large_graph),
        TEST(test_order_of_return),
        TEST(test_sizes),
        TEST(test_program),
        TEST(test_covers_against_brute_force),
        TEST(test_sets_against_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
