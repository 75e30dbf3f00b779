// SPDX-License-Identifier: Apache-2.0
//
// Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983): to random neighbours, to
// worse ones with a probability that falls with the temperature. What counts is the ratio
// of two costs. When it is cold it starts again from the best point, half as hot.
#include "search/moves.h"
#include "search/search.h"

#include <math.h>

// At the first temperature a cost a third higher is accepted with probability 1/e.
static const double HOT = 0.3, COLD = 0.003, COOLING = 0.97;
enum { KNOWN_STEPS = 256 };

typedef struct {
    Point at;
    double cost; // NAN: there is no point yet
    double temperature, hottest;
} Annealing;

static void open_annealing(Search *search)
{
    Annealing *a = search->state;
    a->cost = NAN;
    a->temperature = a->hottest = HOT;
}

static void cool(Search *search)
{
    Annealing *a = search->state;
    a->temperature *= COOLING;
    if (a->temperature > COLD)
        return;
    a->hottest = fmax(a->hottest / 2, 4 * COLD);
    a->temperature = a->hottest;
    if (isfinite(search->best_ns)) {
        a->at = search->best;
        a->cost = search->best_ns;
    }
}

static void consider(Search *search, const Point *point, double cost)
{
    Annealing *a = search->state;
    bool first = isnan(a->cost);
    double chance = first ? 1 : exp(-log(cost / a->cost) / a->temperature);
    if (isfinite(cost) && (first || cost <= a->cost || rng_double(&search->rng) < chance)) {
        a->at = *point;
        a->cost = cost;
    }
}

// Steps to points already known cost nothing, and are taken at once.
static bool ask_annealing(Search *search, Point *point)
{
    Annealing *a = search->state;
    double cost;
    for (int i = 0; i < KNOWN_STEPS && !isnan(a->cost); i++) {
        if (!move_one(search->space, &search->rng, &a->at, point))
            break;
        if (!search_known(search, point, &cost))
            return true;
        if (!isnan(cost))
            consider(search, point, cost);
    }
    if (space_count(search->space) == 0)
        return false;
    space_sample(search->space, &search->rng, point);
    return true;
}

static void tell_annealing(Search *search, const Point *point, double cost)
{
    consider(search, point, cost);
    cool(search);
}

const SearchKind search_annealing = {
    .name = "annealing",
    .doc = "simulated annealing: random steps, worse ones ever more seldom",
    .learns = true,
    .state = sizeof(Annealing),
    .open = open_annealing,
    .ask = ask_annealing,
    .tell = tell_annealing,
};
