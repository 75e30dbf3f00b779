// SPDX-License-Identifier: Apache-2.0
//
// Rows of tiles without bank conflicts: shapes worked out by hand, and many others, whose
// turns are counted here in another way: by the accesses of each pair of items.
#include "kir/kir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

static TileShape shape(int64_t lx, int64_t ly, int64_t bx, int64_t by, int64_t halo,
                       int bytes, int vector)
{
    return (TileShape){.local = {lx, ly, 1},
                       .item = {bx, by, 1},
                       .length = {lx * bx + halo, ly * by + halo, 1},
                       .bytes = bytes,
                       .vector = vector};
}

static void expect(TileShape tile, double before, int64_t row, double after)
{
    assert_true(tile_turns(&tile, tile.length[0]) == before);
    assert_int_equal(tile_row(&tile), row);
    assert_true(tile_turns(&tile, row) == after);
}

static void test_by_hand(void **state)
{
    (void)state;
    // A warp in one row: nothing to gain.
    expect(shape(32, 4, 1, 1, 2, 4, 1), 1, 34, 1);
    expect(shape(256, 1, 1, 1, 2, 4, 1), 1, 258, 1);
    // Two rows of 16, which begin half a round of banks apart: 48 = 32 + 16.
    expect(shape(16, 8, 1, 1, 2, 4, 1), 2, 48, 1);
    // Four rows of 8: 24 = 3 * 8; with two rows an item 12.
    expect(shape(8, 4, 1, 1, 2, 4, 1), 2, 24, 1);
    expect(shape(8, 4, 1, 2, 2, 4, 1), 2, 12, 1);
    // Neighbouring outputs four at a time: rows as long as allows it.
    expect(shape(32, 4, 4, 1, 2, 4, 4), 2, 132, 1);
    expect(shape(32, 4, 4, 2, 2, 4, 4), 1, 130, 1);
    // Doubles: half a warp is a request. Rows of 16 need no care, of 8 they do.
    expect(shape(16, 2, 1, 1, 2, 8, 1), 2, 18, 2);
    expect(shape(8, 4, 1, 1, 2, 8, 1), 4, 24, 2);
    // Halves: two share a word.
    expect(shape(32, 2, 1, 1, 2, 2, 1), 1, 34, 1);
    // Not more items than there are.
    expect(shape(8, 1, 1, 1, 2, 4, 1), 1, 10, 1);
}

// A third dimension: planes are as far apart as their three rows together, 3 * 24 = 64 + 8.
static void test_planes(void **state)
{
    (void)state;
    TileShape tile = shape(8, 1, 1, 1, 2, 4, 1);
    tile.local[2] = 4;
    tile.length[2] = 6;
    expect(tile, 4, 24, 1);
}

// Of scalars of 4 bytes: how many items ask the busiest bank, each word once.
static int count_turns(const TileShape *t, int64_t row)
{
    int64_t at[32], n = MIN(t->local[0] * t->local[1], 32);
    int most = 0;
    for (int64_t i = 0; i < n; i++)
        at[i] = i / t->local[0] * t->item[1] * row + i % t->local[0] * t->item[0];
    for (int64_t i = 0; i < n; i++) {
        int turns = 0;
        for (int64_t k = 0; k < n; k++) {
            bool first = true;
            for (int64_t j = 0; j < k; j++)
                first &= at[j] != at[k];
            turns += first && at[k] % 32 == at[i] % 32;
        }
        most = MAX(most, turns);
    }
    return most;
}

static void test_never_worse(void **state)
{
    (void)state;
    Rng rng = rng_new(1);
    for (int i = 0; i < 2000; i++) {
        TileShape t =
            shape(1 << rng_below(&rng, 7), 1 << rng_below(&rng, 5),
                  1 + (int64_t)rng_below(&rng, 8), 1 + (int64_t)rng_below(&rng, 4),
                  (int64_t)rng_below(&rng, 9), 4, 1);
        int64_t row = tile_row(&t);
        assert_true(row >= t.length[0] && row < t.length[0] + TILE_PAD);
        assert_true(tile_turns(&t, row) == count_turns(&t, row));
        for (int64_t other = t.length[0]; other < t.length[0] + TILE_PAD; other++)
            assert_true(count_turns(&t, row) <= count_turns(&t, other));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand),
                                       cmocka_unit_test(test_planes),
                                       cmocka_unit_test(test_never_worse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
