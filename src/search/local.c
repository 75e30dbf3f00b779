// SPDX-License-Identifier: Apache-2.0
//
// Iterated local search: from a point to the first of its neighbours that is better (they
// differ in one parameter, and are tried in random order), until none is. Then it starts
// again, in turn a few random steps from the best point so far and anywhere.
//
// Answers may come late and in any order, as when trials run in batches: whichever
// neighbour is told to be better becomes the next point.
#include "search/moves.h"
#include "search/search.h"

#include <math.h>

enum { KICKS = 3, STARTS_TRIED = 64 };

typedef struct {
    Point at, start;
    double cost;  // of `at`; NAN: there is no point yet
    bool started; // `start` was given out, and its cost is awaited
    int starts;
    Point next[MOVES_MOST];
    int n, used;
} LocalSearch;

static void open_local(Search *search)
{
    ((LocalSearch *)search->state)->cost = NAN;
}

static void stand_at(Search *search, const Point *point, double cost)
{
    LocalSearch *local = search->state;
    local->at = *point;
    local->cost = cost;
    local->started = false;
    local->used = 0;
    local->n = move_all(search->space, &search->rng, point, local->next);
}

// Every other start lies near the best point.
static void choose_start(Search *search, Point *point)
{
    LocalSearch *local = search->state;
    bool near = local->starts++ % 2 && isfinite(search->best_ns);
    if (!near) {
        space_sample(search->space, &search->rng, point);
        return;
    }
    *point = search->best;
    for (int i = 0; i < KICKS; i++) {
        Point from = *point;
        move_one(search->space, &search->rng, &from, point);
    }
}

// The next neighbour that is not known; known ones that are better are stepped to.
static bool next_neighbour(Search *search, Point *point)
{
    LocalSearch *local = search->state;
    double cost;
    while (local->used < local->n) {
        *point = local->next[local->used++];
        if (!search_known(search, point, &cost))
            return true;
        if (cost < local->cost)
            stand_at(search, point, cost);
    }
    return false;
}

static bool ask_local(Search *search, Point *point)
{
    LocalSearch *local = search->state;
    double cost;
    for (int i = 0; i < STARTS_TRIED; i++) {
        if (!isnan(local->cost) && next_neighbour(search, point))
            return true;
        choose_start(search, point);
        if (!search_known(search, point, &cost)) {
            local->start = *point;
            local->cost = NAN;
            return local->started = true;
        }
        if (isfinite(cost))
            stand_at(search, point, cost);
    }
    space_sample(search->space, &search->rng, point);
    return true;
}

static int differences(const Space *space, const Point *a, const Point *b)
{
    int n = 0;
    for (int i = 0; i < space_params(space); i++)
        n += a->choice[i] != b->choice[i];
    return n;
}

static void tell_local(Search *search, const Point *point, double cost)
{
    LocalSearch *local = search->state;
    bool is_start = local->started && point_equal(search->space, point, &local->start);
    bool is_better = !isnan(local->cost) && cost < local->cost &&
                     differences(search->space, point, &local->at) == 1;
    if ((is_start && isfinite(cost)) || is_better)
        stand_at(search, point, cost);
}

const SearchKind search_local = {
    .name = "local",
    .doc = "to better neighbours until there are none, with restarts near the best and "
           "anywhere",
    .learns = true,
    .state = sizeof(LocalSearch),
    .open = open_local,
    .ask = ask_local,
    .tell = tell_local,
};
