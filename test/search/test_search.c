// SPDX-License-Identifier: Apache-2.0
//
// What every strategy promises: only valid points, each at most once, all of them in the
// end, the same for the same seed; and that random is uniform.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../space/constrain.h"
#include "search/moves.h"
#include "search/search.h"
#include "search/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Space *space;
    Arena *arena;
    Diags diags;
} Fixture;

static int set_up(void **state)
{
    static const int64_t v[] = {1, 2, 3, 4, 5, 6};
    Fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    f->diags = (Diags){.arena = f->arena};
    f->space = space_new();
    space_add_ints(f->space, "a", v, 6);
    space_add_ints(f->space, "b", v, 6);
    space_add_ints(f->space, "c", v, 3);
    constrain(f->space, "a * b <= 8");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    space_free(f->space);
    arena_free(f->arena);
    free(f);
    return 0;
}

static double cost_of(const Space *space, const Point *point)
{
    double a = space_value(space, point, 0), b = space_value(space, point, 1);
    return a == 3 ? INFINITY : 10 + (a - 2) * (a - 2) + (b - 4) * (b - 4);
}

// A script that a strategy needs tries everything.
static const Steps *everything(void)
{
    static Vary vary[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    static Step step = {.kind = STEP_TUNE, .vary = {vary, 3, 3}};
    static Steps script = {.steps = {&step, 1, 1}};
    return &script;
}

// A ranking that a strategy needs is every point, last number first.
static Search *open_search(const SearchKind *kind, const Space *space, uint64_t seed)
{
    static Point ranking[256];
    Search *search = search_open(kind, space, seed, INFINITY);
    search->steps = everything();
    if (!kind->needs_ranking)
        return search;
    int n = search->nranking = (int)space_count(space);
    assert_true(n <= COUNTOF(ranking));
    for (int i = 0; i < n; i++)
        space_point(space, (uint64_t)(n - 1 - i), &ranking[i]);
    search->ranking = ranking;
    return search;
}

// Runs a search to its end; the numbers of its points in order. How many there were.
static int run_all(const SearchKind *kind, const Space *space, uint64_t seed, int *order)
{
    Search *search = open_search(kind, space, seed);
    int n = 0;
    for (Point point; search_ask(search, &point); n++) {
        assert_true(space_valid(space, &point));
        order[n] = (int)space_number(space, &point);
        search_tell(search, &point, cost_of(space, &point));
        assert_int_equal(search->told, n + 1);
    }
    assert_true(search->best_ns == 10);
    assert_true(cost_of(space, &search->best) == 10);
    search_close(search);
    return n;
}

static void test_every_strategy(void **state)
{
    Fixture *f = *state;
    int nkind, count = (int)space_count(f->space);
    const SearchKind *const *kind = search_all(&nkind);
    assert_true(nkind >= 2);
    for (int k = 0; k < nkind; k++) {
        int first[128], again[128], hits[128] = {0};
        assert_ptr_equal(search_find(kind[k]->name), kind[k]);
        assert_true(strlen(kind[k]->doc) > 0);
        int n = run_all(kind[k], f->space, 1, first);
        assert_true(n <= count);
        for (int i = 0; i < n; i++)
            assert_int_equal(hits[first[i]]++, 0);
        assert_int_equal(run_all(kind[k], f->space, 1, again), n);
        assert_memory_equal(first, again, sizeof *first * (size_t)n);
    }
    assert_null(search_find("no such strategy"));
}

static void test_exhaustive(void **state)
{
    Fixture *f = *state;
    int order[128], n = run_all(search_find("exhaustive"), f->space, 1, order);
    assert_int_equal(n, space_count(f->space));
    for (int i = 0; i < n; i++)
        assert_int_equal(order[i], i);
}

// How often each point comes at the first, second and last place, over many seeds.
static void test_random(void **state)
{
    enum { RUNS = 8000 };
    Fixture *f = *state;
    const SearchKind *kind = search_find("random");
    int count = (int)space_count(f->space), order[128], hits[3][128] = {0};
    for (int seed = 0; seed < RUNS; seed++) {
        assert_int_equal(run_all(kind, f->space, (uint64_t)seed, order), count);
        hits[0][order[0]]++;
        hits[1][order[1]]++;
        hits[2][order[count - 1]]++;
    }
    double expect = (double)RUNS / count;
    for (int place = 0; place < 3; place++) {
        double chi2 = 0;
        for (int i = 0; i < count; i++)
            chi2 += (hits[place][i] - expect) * (hits[place][i] - expect) / expect;
        assert_true(fabs(chi2 - (count - 1)) < 5 * sqrt(2.0 * (count - 1)));
    }
}

static void test_large_spaces(void **state)
{
    (void)state;
    for (int nparam = 8; nparam <= 40; nparam += 32) {
        int64_t v[20];
        for (int i = 0; i < COUNTOF(v); i++)
            v[i] = i;
        Space *space = space_new();
        for (int i = 0; i < nparam; i++)
            space_add_ints(space, (const char[]){(char)('A' + i), 0}, v, COUNTOF(v));
        Search *search = search_open(search_find("random"), space, 1, 1000);
        double sum = 0;
        Point point;
        for (int i = 0; i < 1000; i++) {
            assert_true(search_ask(search, &point));
            sum += space_value(space, &point, nparam - 1);
        }
        assert_true(fabs(sum / 1000 - 9.5) < 5 * 5.77 / sqrt(1000));
        search_close(search);
        space_free(space);
    }
}

// In the order given, but for points told before; nothing without a ranking.
static void test_ranked(void **state)
{
    Fixture *f = *state;
    int count = (int)space_count(f->space);
    int *order = xcalloc((size_t)count, sizeof *order);
    const SearchKind *kind = search_find("ranked");
    assert_int_equal(run_all(kind, f->space, 1, order), count);
    for (int i = 0; i < count; i++)
        assert_int_equal(order[i], count - 1 - i);
    free(order);
    Search *search = search_open(kind, f->space, 1, INFINITY);
    Point point;
    assert_false(search_ask(search, &point));
    search_close(search);
}

// Points of an earlier run are not given out again.
static void test_told_before(void **state)
{
    Fixture *f = *state;
    int nkind, count = (int)space_count(f->space);
    const SearchKind *const *kind = search_all(&nkind);
    for (int k = 0; k < nkind; k++) {
        Search *search = open_search(kind[k], f->space, 1);
        Point known, point;
        for (int i = 0; i < count; i += 2) {
            space_point(f->space, (uint64_t)i, &known);
            search_tell(search, &known, 100);
        }
        int n = 0;
        for (; search_ask(search, &point); n++)
            assert_int_equal(space_number(f->space, &point) % 2, 1);
        assert_true(n <= count / 2);
        search_close(search);
    }
}

// A valley over constrained parameters, of numbers and words; one in eight points fails.
typedef struct {
    Space *space;
    Point optimum;
} Valley;

static Valley make_valley(void)
{
    static const int64_t size[] = {1, 2, 4, 8, 16, 32, 64, 128},
                         step[] = {1, 2, 3, 4, 5, 6};
    static const char *const how[] = {"global", "local", "private"};
    Valley v = {.space = space_new()};
    space_add_ints(v.space, "x", size, COUNTOF(size));
    space_add_ints(v.space, "y", size, COUNTOF(size));
    space_add_ints(v.space, "s", step, COUNTOF(step));
    space_add_ints(v.space, "t", step, COUNTOF(step));
    space_add_words(v.space, "how", how, COUNTOF(how));
    constrain(v.space, "x * y <= 256 && x * y >= 8");
    constrain(v.space, "s * t <= 12 || how == 'local'");
    assert_true(point_parse(v.space, "x=32 y=4 s=2 t=5 how=local", &v.optimum));
    assert_true(space_valid(v.space, &v.optimum));
    return v;
}

static double valley_cost(const Valley *v, const Point *point)
{
    double cost = 1;
    for (int i = 0; i < space_params(v->space); i++) {
        double off = point->choice[i] - v->optimum.choice[i];
        cost += i == 4 ? off != 0 : off * off / 4;
    }
    return cost > 1 && point_hash(v->space, point) % 8 == 0 ? INFINITY : cost;
}

static bool is_guided(const SearchKind *kind)
{
    return kind->learns;
}

// Asks `batch` points at a time and tells them in reverse; the trials until the optimum was
// found. No point comes twice.
static int trials_to_optimum(const SearchKind *kind, const Valley *v, int batch,
                             uint64_t seed)
{
    Search *search = search_open(kind, v->space, seed, INFINITY);
    int count = (int)space_count(v->space), found = 0;
    char *given = xcalloc((size_t)count, 1);
    Point point[16];
    for (int n = 0; !found && n < count;) {
        int got = 0;
        while (got < batch && search_ask(search, &point[got]))
            assert_int_equal(given[space_number(v->space, &point[got++])]++, 0);
        assert_true(got > 0);
        n += got;
        while (got-- > 0)
            search_tell(search, &point[got], valley_cost(v, &point[got]));
        if (search->best_ns == 1)
            found = n;
    }
    assert_true(found > 0);
    search_close(search);
    free(given);
    return found;
}

// Of 2,226 points random search looks at half until it finds the best.
static void test_easy(void **state)
{
    (void)state;
    Valley v = make_valley();
    int nkind, count = (int)space_count(v.space);
    const SearchKind *const *kind = search_all(&nkind);
    for (int k = 0; k < nkind; k++) {
        if (!is_guided(kind[k]))
            continue;
        int one = 0, many = 0;
        for (uint64_t seed = 1; seed <= 3; seed++) {
            one += trials_to_optimum(kind[k], &v, 1, seed);
            many += trials_to_optimum(kind[k], &v, 16, seed);
        }
        if (one / 3 > count / 5 || many / 3 > count / 3)
            fail_msg("%s: %d and %d trials of %d", kind[k]->name, one / 3, many / 3, count);
    }
    space_free(v.space);
}

// A model of the costs needs few of them.
static void test_few_trials(void **state)
{
    (void)state;
    Valley v = make_valley();
    int trials = 0;
    for (uint64_t seed = 1; seed <= 5; seed++)
        trials += trials_to_optimum(search_find("auto"), &v, 1, seed);
    assert_true(trials / 5 < 120);
    space_free(v.space);
}

static void test_one_point(void **state)
{
    Fixture *f = *state;
    constrain(f->space, "a == 2 && b == 3 && c == 1");
    int nkind;
    const SearchKind *const *kind = search_all(&nkind);
    for (int k = 0; k < nkind; k++) {
        Search *search = open_search(kind[k], f->space, 1);
        Point point;
        assert_true(search_ask(search, &point));
        assert_false(search_ask(search, &point)); // before it is told, and after
        search_tell(search, &point, 5);
        assert_false(search_ask(search, &point));
        search_close(search);
    }
}

// Every trial fails: the search goes on to the end.
static void test_all_fail(void **state)
{
    Fixture *f = *state;
    int nkind, count = (int)space_count(f->space);
    const SearchKind *const *kind = search_all(&nkind);
    for (int k = 0; k < nkind; k++) {
        Search *search = open_search(kind[k], f->space, 1);
        Point point;
        int n = 0;
        for (; search_ask(search, &point); n++)
            search_tell(search, &point, INFINITY);
        assert_int_equal(n, count);
        assert_true(search->best_ns == INFINITY);
        search_close(search);
    }
}

// What an earlier run has found is gone on from.
static void test_resume(void **state)
{
    (void)state;
    Valley v = make_valley();
    int nkind;
    const SearchKind *const *kind = search_all(&nkind);
    for (int k = 0; k < nkind; k++) {
        if (!is_guided(kind[k]))
            continue;
        Search *search = search_open(kind[k], v.space, 1, INFINITY);
        Rng rng = rng_new(9);
        for (int i = 0; i < 300; i++) {
            Point known;
            space_sample(v.space, &rng, &known);
            if (!point_equal(v.space, &known, &v.optimum))
                search_tell(search, &known, valley_cost(&v, &known));
        }
        int told = search->told;
        for (Point point; search->best_ns > 1 && search_ask(search, &point);)
            search_tell(search, &point, valley_cost(&v, &point));
        assert_true(search->best_ns == 1);
        assert_true(search->told - told < 900);
        search_close(search);
    }
    space_free(v.space);
}

// Questions do not grow with the space: 2.6 x 10^10 points here.
static void test_guided_in_large_spaces(void **state)
{
    (void)state;
    double v[20];
    for (int i = 0; i < COUNTOF(v); i++)
        v[i] = i;
    Space *space = space_new();
    for (int i = 0; i < 8; i++)
        space_add(space, (const char[]){(char)('A' + i), 0}, v, COUNTOF(v));
    int nkind;
    const SearchKind *const *kind = search_all(&nkind);
    for (int k = 0; k < nkind; k++) {
        if (!is_guided(kind[k]))
            continue;
        Search *search = search_open(kind[k], space, 1, INFINITY);
        double best = INFINITY, first = 0;
        for (int i = 0; i < 400; i++) {
            Point point;
            double cost = 1;
            assert_true(search_ask(search, &point));
            for (int p = 0; p < 8; p++)
                cost += (point.choice[p] - 7) * (point.choice[p] - 7);
            search_tell(search, &point, cost);
            best = fmin(best, cost);
            first += i < 20 ? cost / 20 : 0;
        }
        assert_true(best < first / 3);
        search_close(search);
    }
    space_free(space);
}

static void test_empty(void **state)
{
    Fixture *f = *state;
    constrain(f->space, "a > 6");
    int nkind;
    const SearchKind *const *kind = search_all(&nkind);
    for (int k = 0; k < nkind; k++) {
        Search *search = open_search(kind[k], f->space, 1);
        Point point;
        assert_false(search_ask(search, &point));
        search_close(search);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

// A parameter of more values than are wanted leaves room for those after it.
static void test_moves_of_large_parameters(void **state)
{
    (void)state;
    Space *space = space_new();
    double value[700];
    Point at = {0}, *to = xcalloc(MOVES_MOST, sizeof *to);
    Rng rng = rng_new(1);
    for (int i = 0; i < 700; i++)
        value[i] = i;
    space_add(space, "large", value, 700);
    space_add(space, "small", value, 200);
    int n = move_all(space, &rng, &at, to), small = 0;
    for (int i = 0; i < n; i++)
        small += to[i].choice[1] != 0;
    assert_int_equal(n, MOVES_MOST);
    assert_true(small > 70 && small < 160); // 199 of 898, of 512: 113
    free(to);
    space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_strategy),
        TEST(test_exhaustive),
        TEST(test_random),
        TEST(test_ranked),
        cmocka_unit_test(test_large_spaces),
        cmocka_unit_test(test_moves_of_large_parameters),
        TEST(test_told_before),
        TEST(test_easy),
        TEST(test_few_trials),
        TEST(test_one_point),
        TEST(test_all_fail),
        TEST(test_resume),
        cmocka_unit_test(test_guided_in_large_spaces),
        TEST(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
