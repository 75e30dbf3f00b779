// SPDX-License-Identifier: Apache-2.0
//
// auto where times are predicted: on a made-up space whose predictions are right but for a
// factor that one parameter decides, few trials are enough to learn the factor. Costs are
// else as rough as chance, so nothing but the predictions tells the good points. What
// cannot be made is never asked for while there is anything else. Predictions that order
// points the wrong way round are soon asked no more.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "search/search.h"

#include <math.h>
#include <stdlib.h>

enum { VALUES = 8, PARAMS = 5, RANKED = 1000, TRIALS = 40, SEEDS = 10 };

static const char *const name[PARAMS] = {"a", "b", "c", "d", "e"};

typedef struct {
    Space *space;
    Point ranking[RANKED];
    double best; // of the ranked ones
} Made;

// Points of an odd sum of all values but the last cannot be made.
static bool is_made(const Space *space, const Point *point)
{
    double sum = 0;
    for (int i = 0; i < PARAMS - 1; i++)
        sum += space_value(space, point, i);
    return fmod(sum, 2) == 0;
}

static double predicted_of(const Space *space, const Point *point)
{
    uint64_t hash = 7;
    for (int i = 0; i < PARAMS; i++)
        hash = hash_mix(hash, (uint64_t)space_value(space, point, i));
    double share = (double)(hash >> 11) / (double)(1ull << 53);
    return is_made(space, point) ? 5 * share + 0.2 * space_value(space, point, PARAMS - 1)
                                 : INFINITY;
}

// The larger the last value, the more the prediction is too slow.
static double cost_of(const Space *space, const Point *point)
{
    return 1e6 *
           exp(predicted_of(space, point) - 0.8 * space_value(space, point, PARAMS - 1));
}

static void predict(void *user, const Point *point, int n, double *predicted)
{
    for (int i = 0; i < n; i++)
        predicted[i] = predicted_of(user, &point[i]);
}

static const Space *sorted_by;

static int compare(const void *a, const void *b)
{
    double x = predicted_of(sorted_by, a), y = predicted_of(sorted_by, b);
    return (x > y) - (x < y);
}

static int set_up(void **state)
{
    static const int64_t v[VALUES] = {0, 1, 2, 3, 4, 5, 6, 7};
    Made *made = xcalloc(1, sizeof *made);
    made->space = space_new();
    for (int i = 0; i < PARAMS; i++)
        space_add_ints(made->space, name[i], v, VALUES);
    Rng rng = rng_new(5);
    made->best = INFINITY;
    for (int i = 0; i < RANKED; i++) {
        do
            space_sample(made->space, &rng, &made->ranking[i]);
        while (!is_made(made->space, &made->ranking[i]));
        made->best = fmin(made->best, cost_of(made->space, &made->ranking[i]));
    }
    sorted_by = made->space;
    qsort(made->ranking, RANKED, sizeof *made->ranking, compare);
    *state = made;
    return 0;
}

static int tear_down(void **state)
{
    Made *made = *state;
    space_free(made->space);
    free(made);
    return 0;
}

// The best of so many trials over that of the ranked ones; unmade: how many were asked for
// that cannot be made.
static double search_led(Made *made, uint64_t seed, bool led, int *unmade)
{
    Predictions predictions = {predict, made->space};
    Search *search = search_open(search_find("auto"), made->space, seed, TRIALS);
    if (led) {
        search->predictions = &predictions;
        search->ranking = made->ranking;
        search->nranking = RANKED;
    }
    for (int i = 0; i < TRIALS; i++) {
        Point point;
        assert_true(search_ask(search, &point));
        *unmade += !is_made(made->space, &point);
        search_tell(search, &point, cost_of(made->space, &point));
    }
    double ratio = search->best_ns / made->best;
    search_close(search);
    return ratio;
}

static void test_factor_is_learnt(void **state)
{
    int unmade = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        assert_true(search_led(*state, seed, true, &unmade) < 1.1);
    assert_int_equal(unmade, 0);
}

// The space is no easy one: neither a search without predictions nor going along the
// ranking comes near in most cases.
static void test_space_is_hard(void **state)
{
    Made *made = *state;
    int unmade = 0, near = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        near += search_led(made, seed, false, &unmade) < 1.5;
    assert_true(near < SEEDS / 2);
    assert_true(unmade > 0);
    for (int i = 0; i < TRIALS; i++)
        assert_true(cost_of(made->space, &made->ranking[i]) > 1.1 * made->best);
}

// With no prediction right in the end, every point is still asked for once.
static void test_all_are_asked(void **state)
{
    Made *made = *state;
    Predictions predictions = {predict, made->space};
    static const int64_t v[] = {0, 1, 2};
    Space *space = space_new();
    for (int i = 0; i < PARAMS; i++)
        space_add_ints(space, name[i], v, i < 3 ? 3 : 1);
    predictions.user = space;
    Search *search = search_open(search_find("auto"), space, 1, INFINITY);
    search->predictions = &predictions;
    Point point;
    int n = 0;
    for (; search_ask(search, &point); n++)
        search_tell(search, &point, cost_of(space, &point));
    assert_int_equal(n, 27);
    search_close(search);
    space_free(space);
}

static int asked;

static void predict_counted(void *user, const Point *point, int n, double *predicted)
{
    asked += n;
    predict(user, point, n, predicted);
}

// How many predictions the last quarter of the trials asks for, where costs are the
// predictions, or the slower the faster they were predicted to be.
static int asked_late(const Made *made, bool opposed)
{
    Predictions predictions = {predict_counted, made->space};
    Search *search = search_open(search_find("auto"), made->space, 1, TRIALS);
    search->predictions = &predictions;
    search->ranking = made->ranking;
    search->nranking = RANKED;
    for (int i = 0; i < TRIALS; i++) {
        Point point;
        asked = i == TRIALS * 3 / 4 ? 0 : asked;
        assert_true(search_ask(search, &point));
        double time = predicted_of(made->space, &point);
        search_tell(search, &point, 1e6 * exp(opposed && isfinite(time) ? -time : time));
    }
    search_close(search);
    return asked;
}

static void test_wrong_are_dropped(void **state)
{
    assert_int_equal(asked_late(*state, true), 0);
    assert_true(asked_late(*state, false) > TRIALS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_factor_is_learnt, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_space_is_hard, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_are_asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_are_dropped, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
