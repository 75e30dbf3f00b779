// SPDX-License-Identifier: Apache-2.0
//
// Valid points uniformly at random without repetition: the shuffle of Fisher and Yates
// over the numbers of the points, of which only the places it has moved are stored.
// Spaces too large to number are sampled; a repetition there is the caller's to skip.
#include "search/search.h"

#include "search/numbers.h"

#include <stdlib.h>

#define NUMBERED_MAX 0x1p63

typedef struct {
    Numbers moved; // place to the number that lies there, if not its own
    uint64_t next;
} Shuffle;

static void *open_random(Search *search)
{
    (void)search;
    return xcalloc(1, sizeof(Shuffle));
}

static uint64_t number_at(const Shuffle *shuffle, uint64_t place)
{
    const uint64_t *number = numbers_get(&shuffle->moved, place);
    return number ? *number : place;
}

static uint64_t draw(Shuffle *shuffle, Rng *rng, uint64_t count)
{
    uint64_t place = shuffle->next + rng_below(rng, count - shuffle->next);
    uint64_t number = number_at(shuffle, place);
    numbers_put(&shuffle->moved, place, number_at(shuffle, shuffle->next));
    shuffle->next++;
    return number;
}

static bool ask_random(Search *search, Point *point)
{
    Shuffle *shuffle = search->state;
    double count = space_count(search->space);
    if (count >= NUMBERED_MAX) {
        space_sample(search->space, &search->rng, point);
        return true;
    }
    if ((double)shuffle->next >= count)
        return false;
    space_point(search->space, draw(shuffle, &search->rng, (uint64_t)count), point);
    return true;
}

static void close_random(Search *search)
{
    Shuffle *shuffle = search->state;
    numbers_release(&shuffle->moved);
    free(shuffle);
}

const SearchKind search_random = {
    .name = "random",
    .doc = "valid points uniformly at random, none twice",
    .open = open_random,
    .ask = ask_random,
    .close = close_random,
};
