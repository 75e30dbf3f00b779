// SPDX-License-Identifier: Apache-2.0
//
// The shuffle of Fisher and Yates over the numbers of the points, of which only the places
// it has moved are stored. Spaces too large to number are sampled; a repetition
// there is the caller's to skip.
#include "search/moves.h"

#define NUMBERED_MAX 0x1p53

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

bool shuffle_next(Shuffle *shuffle, const Space *space, Rng *rng, Point *point)
{
    double count = space_count(space);
    if (count >= NUMBERED_MAX) {
        space_sample(space, rng, point);
        return true;
    }
    if ((double)shuffle->next >= count)
        return false;
    space_point(space, draw(shuffle, rng, (uint64_t)count), point);
    return true;
}

void shuffle_release(Shuffle *shuffle)
{
    numbers_release(&shuffle->moved);
}
