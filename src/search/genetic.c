// SPDX-License-Identifier: Apache-2.0
//
// A genetic algorithm (Holland, 1975) of the steady kind: each answer may replace the worst
// of the population at once, so there are no generations to wait for. Parents win
// tournaments of two; a child takes each parameter from either and is then mutated. It
// stays valid, since it walks from one parent towards the mixture by valid steps.
#include "search/moves.h"
#include "search/search.h"

#include <math.h>

enum { POPULATION = 20, KNOWN_CHILDREN = 16 };
static const double MUTATION = 0.5;

typedef struct {
    Point point[POPULATION];
    double cost[POPULATION]; // ascending
    int n, given;
} Genetic;

static const Point *parent(const Genetic *g, Rng *rng)
{
    uint64_t a = rng_below(rng, (uint64_t)g->n), b = rng_below(rng, (uint64_t)g->n);
    return &g->point[MIN(a, b)];
}

static void breed(Search *search, Point *child)
{
    Genetic *g = search->state;
    Rng *rng = &search->rng;
    *child = *parent(g, rng);
    Point wish = *child;
    const Point *other = parent(g, rng);
    for (int i = 0; i < space_params(search->space); i++)
        if (rng_below(rng, 2))
            wish.choice[i] = other->choice[i];
    move_towards(search->space, rng, &wish, child);
}

static bool ask_genetic(Search *search, Point *point)
{
    Genetic *g = search->state;
    double cost;
    if (space_count(search->space) == 0)
        return false;
    if (g->given++ >= POPULATION && g->n > 0) {
        breed(search, point);
        bool mutate = rng_double(&search->rng) < MUTATION;
        for (int i = 0; i < KNOWN_CHILDREN; i++, mutate = true) {
            Point before = *point;
            if (mutate)
                move_one(search->space, &search->rng, &before, point);
            if (!search_known(search, point, &cost))
                return true;
        }
    }
    space_sample(search->space, &search->rng, point);
    return true;
}

static void tell_genetic(Search *search, const Point *point, double cost)
{
    Genetic *g = search->state;
    if (!isfinite(cost) || (g->n == POPULATION && cost >= g->cost[g->n - 1]))
        return;
    int i = g->n < POPULATION ? g->n++ : g->n - 1;
    for (; i > 0 && g->cost[i - 1] > cost; i--) {
        g->point[i] = g->point[i - 1];
        g->cost[i] = g->cost[i - 1];
    }
    g->point[i] = *point;
    g->cost[i] = cost;
}

const SearchKind search_genetic = {
    .name = "genetic",
    .doc = "a population of points that breed and mutate",
    .learns = true,
    .state = sizeof(Genetic),
    .ask = ask_genetic,
    .tell = tell_genetic,
};
