// SPDX-License-Identifier: Apache-2.0
//
// Steps from valid points to valid points, for strategies that walk.

#ifndef FW_SEARCH_MOVES_H
#define FW_SEARCH_MOVES_H

#include "space/space.h"

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
