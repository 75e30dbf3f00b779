// SPDX-License-Identifier: Apache-2.0
//
// Points drawn evenly over the values of one parameter (space_spread).
#include "constrain.h"

#include <stdlib.h>

// Of four values one has no point, one has one, one 3, one 36: three of four each a third.
static void test_spread(void **state)
{
    (void)state;
    Space *space = space_new();
    const int64_t v[] = {1, 2, 3, 4, 5, 6};
    const char *covers[] = {"many", "none", "few", "one"};
    int hits[4] = {0}, few[3] = {0};
    Rng rng;
    Point point;
    space_add_ints(space, "a", v, 6);
    space_add_ints(space, "b", v, 6);
    int cover = space_add_words(space, "cover", covers, 4);
    space_spread(space, cover);
    constrain(space, "cover != 'one' || a * b == 1");
    constrain(space, "cover != 'few' || (a <= 3 && b == 2)");
    constrain(space, "cover != 'none' || a * b > 36");
    assert_true(space_count(space) == 40);
    rng_seed(&rng, 3);
    for (int i = 0; i < 3000; i++) {
        space_sample(space, &rng, &point);
        assert_true(space_valid(space, &point));
        hits[point.choice[cover]]++;
        if (point.choice[cover] == 2)
            few[point.choice[0]]++;
    }
    for (int i = 0; i < 3; i++) // five standard deviations
        assert_true(abs(hits[i == 1 ? 3 : i] - 1000) < 130 &&
                    abs(few[i] - hits[2] / 3) < 80);
    assert_int_equal(hits[1], 0);
    for (uint64_t i = 0; i < 40; i++) {
        space_point(space, i, &point);
        assert_true(space_number(space, &point) == i);
    }
    space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
