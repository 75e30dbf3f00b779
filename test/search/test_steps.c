// SPDX-License-Identifier: Apache-2.0
//
// Heuristic files: the spaces of paper 001 and their golden counts, its heuristics followed
// against nested loops, samples, and errors with their place.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../space/constrain.h"
#include "search/search.h"
#include "search/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_powers(Space *space, const char *stem, int from, int to)
{
    for (int d = 0; d < 3; d++) {
        int64_t value[16];
        int n = 0;
        for (int v = from; v <= to; v *= 2)
            value[n++] = v;
        space_add_ints(space, (const char[]){stem[0], "xyz"[d], 0}, value, n);
    }
}

// Table 1 of paper 001 for 256 x 256 x 256.
static Space *full_space(void)
{
    Space *space = space_new();
    add_powers(space, "l", 1, 256);
    add_powers(space, "b", 1, 256);
    add_powers(space, "c", 1, 256);
    space_add_ints(space, "vx", (const int64_t[]){1, 2, 4, 8, 16}, 5);
    space_add_ints(space, "local", (const int64_t[]){0, 1}, 2);
    space_add_ints(space, "image", (const int64_t[]){0, 1}, 2);
    constrain(space, "lx*bx*cx <= 256 and ly*by*cy <= 256 and lz*bz*cz <= 256");
    constrain(space, "vx <= bx");
    return space;
}

// Section 4.7: one loading technique; blocks only as vectors.
static Space *restricted_space(void)
{
    static const char *const technique[] = {"global", "vector", "local", "image"};
    Space *space = space_new();
    add_powers(space, "l", 1, 256);
    add_powers(space, "c", 1, 256);
    space_add_ints(space, "bx", (const int64_t[]){1, 2, 4, 8, 16}, 5);
    space_add_words(space, "load", technique, 4);
    constrain(space, "lx*bx*cx <= 256 and ly*cy <= 256 and lz*cz <= 256");
    constrain(space, "load == 'vector' and bx > 1 or load != 'vector' and bx == 1");
    return space;
}

static void test_golden_counts(void **state)
{
    (void)state;
    Space *full = full_space(), *space = restricted_space();
    assert_true(space_count(full) == 50094000);
    assert_true(space_count(space) == 475875);
    constrain(space, "bx <= 4 and lx >= 32 and ly*cy <= 4 and lz*cz <= 4"); // ExpS, 8.1
    assert_true(space_count(space) == 1404);
    space_free(full);
    space_free(space);
}

// A script and a search over it ---------------------------------------------------------

typedef struct {
    Arena *arena;
    Diags diags;
    Source source;
    Steps *script;
} Text;

static Text *text_new(const char *text)
{
    Text *t = xcalloc(1, sizeof *t);
    t->arena = arena_new();
    t->diags = (Diags){.arena = t->arena};
    t->source = (Source){"test.fwh", text, strlen(text)};
    t->script = steps_parse(&t->source, t->arena, &t->diags);
    return t;
}

static void text_free(Text *t)
{
    arena_free(t->arena);
    free(t);
}

typedef double Cost(const Space *space, const Point *point);

// Follows a script to its end; points are told in batches of a few. How many there were.
static int follow(const char *text, Space *space, uint64_t seed, Cost *cost, Point *best,
                  double *best_ns)
{
    static const StepsSize size[] = {{"N", 64}};
    Text *t = text_new(text);
    assert_non_null(t->script);
    assert_true(steps_check(t->script, space, size, 1, &t->diags));
    Search *search = search_open(search_find("heuristic"), space, seed, INFINITY);
    search->steps = t->script;
    search->size = size;
    search->nsize = 1;
    int n = 0, batch;
    Point point[7];
    do {
        for (batch = 0; batch < COUNTOF(point) && search_ask(search, &point[batch]);)
            assert_true(space_valid(space, &point[batch++]));
        for (int i = 0; i < batch; i++)
            search_tell(search, &point[i], cost(space, &point[i]));
        n += batch;
    } while (batch);
    *best = search->best;
    *best_ns = search->best_ns;
    search_close(search);
    text_free(t);
    return n;
}

static double value(const Space *space, const Point *point, const char *name)
{
    return space_value(space, point, space_find(space, name));
}

// Best at lx = 32, ly = 4, lz = 2, cx = 2, cy = 1, cz = 4, with work-groups that must not
// be small.
static double bowl(const Space *space, const Point *point)
{
    static const char *const name[] = {"lx", "ly", "lz", "cx", "cy", "cz"};
    static const double at[] = {5, 2, 1, 1, 0, 2};
    double cost = 1;
    for (int i = 0; i < 6; i++)
        cost += fabs(log2(value(space, point, name[i])) - at[i]);
    return cost;
}

// An item of a heuristic may name several parameters: the bowl is solved dimension by
// dimension, in as many trials as nested loops over each need, less those that coincide.
static void test_dimension(void **state)
{
    (void)state;
    Space *space = restricted_space();
    constrain(space, "load == 'global'");
    Point best;
    double ns;
    int n = follow("set ly = 1, lz = 1, cy = 1, cz = 1\n"
                   "tune lx, bx, cx\n"
                   "tune ly, cy   # all else is fixed now\n"
                   "tune lz, cz\n",
                   space, 1, bowl, &best, &ns);
    assert_int_equal(n, 45 + 44 + 44); // each later step has one point that is known
    assert_true(ns == 1);
    assert_true(value(space, &best, "lz") == 2 && value(space, &best, "cz") == 4);
    space_free(space);
}

static double constant(const Space *space, const Point *point)
{
    (void)space;
    (void)point;
    return 5;
}

static double prefers_wide(const Space *space, const Point *point)
{
    int ly = space_find(space, "ly");
    return 1000 - value(space, point, "lx") -
           (ly < 0 ? 0 : space_value(space, point, ly) / 2);
}

// The shape of a group at its size: every way to write the product.
static void test_where(void **state)
{
    (void)state;
    Space *space = space_new();
    add_powers(space, "l", 1, 16);
    Point best;
    double ns;
    int n = follow("set lx = 4, ly = 2, lz = 4\n"
                   "tune lx, ly, lz where lx * ly * lz == best.lx * best.ly * best.lz\n",
                   space, 1, prefers_wide, &best, &ns);
    int count = 0;
    for (int a = 0; a <= 4; a++)
        for (int b = 0; b <= 4; b++)
            count += 5 - a - b >= 0 && 5 - a - b <= 4;
    assert_int_equal(n, count);
    assert_true(value(space, &best, "lx") == 16 && value(space, &best, "ly") == 2);
    space_free(space);
}

// Expressions over sizes, parameters of the same step and the best so far; lists; samples.
static void test_items(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int trials;
    } cases[] = {
        {"tune lx in 4..N / 2\n", 3},
        {"tune lx in (1, 4, 5)\n", 2},
        {"tune lx, ly = 16 / lx\n", 5},
        {"set lx = 8\ntune ly in best.lx..16, lz = ly\n", 2},
        {"tune lx in sample(3)\n", 3},
        {"tune lx in sample(9, 2..8)\n", 3},
        {"sample 20 lx, ly, lz\n", 20},
        {"sample 20 lx, ly where lx == ly\n", 5},
        {"set lx = 3\ntune ly\n", 5}, // lx has no 3: it stays
        {"tune lx in 5..7\ntune ly\n", 5},
        {"repeat 1000\n tune lx\nend\n", 5}, // a pass that changes nothing is the last
        {"optional q, r = 2\ntune lx in 1..q * best.r, q\n", 3},
    };
    for (int i = 0; i < COUNTOF(cases); i++) {
        Space *space = space_new();
        add_powers(space, "l", 1, 16);
        Point best;
        double ns;
        assert_int_equal(follow(cases[i].text, space, 3, constant, &best, &ns),
                         cases[i].trials);
        space_free(space);
    }
}

// Words are set, compared with the best so far, and may decide what a number becomes.
static double prefers_tiles(const Space *space, const Point *point)
{
    const char *load = space_word(space, point, "load");
    double lx = value(space, point, "lx");
    return strcmp(load, "local") == 0 ? 10 + fabs(lx - 8) : 20 + lx;
}

static void test_words(void **state)
{
    (void)state;
    Space *space = restricted_space();
    Point best;
    double ns;
    int n = follow(
        "set load = 'local', lx = 1, ly = 1, lz = 1, cx = 1, cy = 1, cz = 1\n"
        "tune lx in 4..16\n"
        "set ly = (load == 'local') * 4\n"
        "tune lx, load where (lx != best.lx) + (load != best.load) <= 1 and bx == 1\n",
        space, 1, prefers_tiles, &best, &ns);
    // 3; the other 8 values of lx for ly = 4 and the best; 2 other loadings without
    // vectors.
    assert_int_equal(n, 3 + 9 + 2);
    assert_true(value(space, &best, "lx") == 8 && ns == 10);
    assert_string_equal(space_word(space, &best, "load"), "local");
    space_free(space);
}

static double prefers_same(const Space *space, const Point *point)
{
    bool same = strcmp(space_word(space, point, "load"), space_word(space, point, "keep"));
    return same ? 2 : 1;
}

// The value of one word parameter is given to another.
static void test_other_words(void **state)
{
    (void)state;
    static const char *const load[] = {"local", "global"};
    static const char *const keep[] = {"image", "global", "local"};
    static const char *const text[] = {
        "set load = 'global', keep = best.load\ntune lx\n",
        "set load = 'global'\nset keep = best.load\ntune lx\n",
    };
    for (int i = 0; i < COUNTOF(text); i++) {
        Space *space = space_new();
        space_add_words(space, "load", load, 2);
        space_add_words(space, "keep", keep, 3);
        add_powers(space, "l", 1, 4);
        Point best;
        double ns;
        follow(text[i], space, 1, prefers_same, &best, &ns);
        assert_string_equal(space_word(space, &best, "keep"), "global");
        space_free(space);
    }
}

// Of points equally good the one that stands stays.
static void test_ties(void **state)
{
    (void)state;
    Space *space = space_new();
    add_powers(space, "l", 1, 16);
    Point best;
    double ns;
    assert_int_equal(follow("set lx = 4, ly = 8\ntune lx\ntune ly where lx == 4\n", space,
                            1, constant, &best, &ns),
                     9);
    space_free(space);
}

static double fails(const Space *space, const Point *point)
{
    (void)space;
    (void)point;
    return INFINITY;
}

static void test_all_fail(void **state)
{
    (void)state;
    Space *space = space_new();
    add_powers(space, "l", 1, 16);
    Point best;
    double ns;
    assert_int_equal(
        follow("repeat 3\ntune lx\ntune ly\nend\n", space, 1, fails, &best, &ns), 9);
    assert_true(isinf(ns));
    space_free(space);
}

// Errors ----------------------------------------------------------------------------------

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line, col;
    } cases[] = {
        {"", 1, 1},
        {"# nothing\n", 2, 1},
        {"\ntun lx\n", 2, 1},
        {"tune lx,\n", 1, 9},
        {"tune lx in\n", 1, 11},
        {"tune lx in 1\n", 1, 13},
        {"tune lx in 1..\n", 1, 15},
        {"tune lx where\n", 1, 14},
        {"set lx\n", 1, 7},
        {"tune lx ly\n", 1, 9},
        {"repeat\n", 1, 7},
        {"repeat 0\ntune lx\nend\n", 1, 8},
        {"repeat 2\ntune lx\n", 3, 1},
        {"tune lx\nend\n", 2, 1},
        {"tune lx in sample(0)\n", 1, 19},
        {"tune nn\n", 1, 6},
        {"tune lx where lx * nn == 3\n", 1, 20},
        {"tune lx\nset ly = best.nn\n", 2, 10},
        {"tune lx in 1 .. (2\n", 1, 19},
        {"tune lx where 2 ==\n", 1, 19},
    };
    Space *space = space_new();
    add_powers(space, "l", 1, 16);
    for (int i = 0; i < COUNTOF(cases); i++) {
        Text *t = text_new(cases[i].text);
        int line, col;
        assert_true(!t->script || !steps_check(t->script, space, NULL, 0, &t->diags));
        assert_true(t->diags.list.len > 0);
        span_line_col(t->diags.list.at[0].span, &line, &col);
        if (line != cases[i].line || col != cases[i].col)
            fail_msg("case %d: %d:%d: %s", i, line, col, t->diags.list.at[0].message);
        text_free(t);
    }
    space_free(space);
}

// The files that are shipped suit spaces of one to three dimensions.
static void test_shipped(void **state)
{
    (void)state;
    static const char *const name[] = {"dimension",  "optimisation", "hybrid",
                                       "restricted", "expert",       "random"};
    for (int i = 0; i < COUNTOF(name); i++)
        for (int dims = 1; dims <= 3; dims++) {
            Buf path, text;
            path = buf_new();
            text = buf_new();
            buf_printf(&path, "heuristics/%s.fwh", name[i]);
            assert_true(file_read(path.text, FILE_DATA_MOST, &text));
            Space *space = space_new();
            for (int d = 0; d < dims; d++)
                for (int k = 0; k < 3; k++)
                    space_add_ints(space, (const char[]){"lbc"[k], "xyz"[d], 0},
                                   (const int64_t[]){1, 2, 4, 8, 16, 32}, 6);
            Point best;
            double ns;
            assert_true(follow(text.text, space, 1, prefers_wide, &best, &ns) > 5);
            space_free(space);
            buf_release(&path);
            buf_release(&text);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_counts), cmocka_unit_test(test_dimension),
        cmocka_unit_test(test_where),         cmocka_unit_test(test_items),
        cmocka_unit_test(test_words),         cmocka_unit_test(test_other_words),
        cmocka_unit_test(test_ties),          cmocka_unit_test(test_all_fail),
        cmocka_unit_test(test_errors),        cmocka_unit_test(test_shipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
