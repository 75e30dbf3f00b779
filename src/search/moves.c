// SPDX-License-Identifier: Apache-2.0
//
// Steps are tried and kept if the space says that they are valid: no constraint is looked
// into, so the same holds for spaces that are lists of points.
#include "search/moves.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES = 32, PASSES = 2 };

bool move_one(const Space *space, Rng *rng, const Point *from, Point *to)
{
    int n = space_params(space);
    *to = *from;
    for (int i = 0; i < TRIES && n > 0; i++) {
        int param = (int)rng_below(rng, (uint64_t)n);
        int values = space_param(space, param)->n;
        if (values < 2)
            continue;
        int other = (int)rng_below(rng, (uint64_t)(values - 1));
        to->choice[param] = (int16_t)(other + (other >= from->choice[param]));
        if (space_valid(space, to))
            return true;
        to->choice[param] = from->choice[param];
    }
    Point all[MOVES_MOST];
    int found = move_all(space, rng, from, all);
    if (found)
        *to = all[0];
    return found > 0;
}

// Later steps may make earlier ones valid, hence a second pass.
void move_towards(const Space *space, Rng *rng, const Point *wish, Point *point)
{
    int order[SPACE_PARAMS_MAX], n = space_params(space);
    for (int i = 0; i < n; i++)
        order[i] = i;
    rng_shuffle(rng, order, n);
    for (int i = 0; i < PASSES * n; i++) {
        int param = order[i % n];
        int16_t own = point->choice[param];
        if (own == wish->choice[param])
            continue;
        point->choice[param] = wish->choice[param];
        if (!space_valid(space, point))
            point->choice[param] = own;
    }
}

// Where there are more than are wanted, all of them are listed first: the values of a large
// parameter would else leave no room for the parameters after it.
int move_all(const Space *space, Rng *rng, const Point *from, Point to[MOVES_MOST])
{
    int n = space_neighbours(space, from, false, to, MOVES_MOST);
    if (n <= MOVES_MOST) {
        rng_sample(rng, to, sizeof *to, n, n);
        return n;
    }
    AUTO_FREE Point *all = xcalloc((size_t)n, sizeof *all);
    space_neighbours(space, from, false, all, n);
    rng_sample(rng, all, sizeof *all, n, MOVES_MOST);
    memcpy(to, all, sizeof *all * MOVES_MOST);
    return MOVES_MOST;
}
