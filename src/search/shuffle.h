// SPDX-License-Identifier: Apache-2.0
//
// The valid points of a space in an order of chance, none twice.

#ifndef FW_SEARCH_SHUFFLE_H
#define FW_SEARCH_SHUFFLE_H

#include "search/numbers.h"
#include "space/space.h"

// All zero is one that has given nothing.
typedef struct {
    Numbers moved; // place to the number that lies there, if not its own
    uint64_t next;
} Shuffle;

// The next point; false when all were given. Always the same space and generator.
bool shuffle_next(Shuffle *shuffle, const Space *space, Rng *rng, Point *point);
void shuffle_release(Shuffle *shuffle);

#endif
