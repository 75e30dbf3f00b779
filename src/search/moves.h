// SPDX-License-Identifier: Apache-2.0
//
// What strategies share that walk through a space.

#ifndef FW_SEARCH_MOVES_H
#define FW_SEARCH_MOVES_H

#include "space/space.h"

// A map of numbers to numbers, for strategies that remember where they have been.

// All zero is an empty map.
typedef struct {
    struct NumberSlot *slot;
    size_t len, cap;
} Numbers;

// NULL if absent; valid until the next put.
const uint64_t *numbers_get(const Numbers *numbers, uint64_t key);
// Adds or replaces; true if the key is new.
bool numbers_put(Numbers *numbers, uint64_t key, uint64_t value);
void numbers_release(Numbers *numbers);

// The valid points of a space in an order of chance, none twice.

// All zero is one that has given nothing.
typedef struct {
    Numbers moved; // place to the number that lies there, if not its own
    uint64_t next;
} Shuffle;

// The next point; false when all were given. Always the same space and generator.
bool shuffle_next(Shuffle *shuffle, const Space *space, Rng *rng, Point *point);
void shuffle_release(Shuffle *shuffle);

// Steps from valid points to valid points, for strategies that walk.

// A valid point that differs in one parameter, chosen at random; false if none was found.
bool move_one(const Space *space, Rng *rng, const Point *from, Point *to);
// Goes from a valid point as far towards a wish, valid or not, as single valid steps lead:
// parameters take the wish's values in random order.
void move_towards(const Space *space, Rng *rng, const Point *wish, Point *point);
// The valid points that differ in one parameter, in random order; of more than MOVES_MOST a
// sample.
enum { MOVES_MOST = 512 };
int move_all(const Space *space, Rng *rng, const Point *from, Point to[MOVES_MOST]);

#endif
