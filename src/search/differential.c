// SPDX-License-Identifier: Apache-2.0
//
// Differential evolution (Storn and Price, 1997) on the places of values in their domains:
// a trial goes from a member of the population towards another one plus the scaled
// difference of two more, rounded, as far as valid steps lead, and replaces its member if
// it is not worse. Words have no differences: they are taken over as they are.
#include "search/moves.h"
#include "search/search.h"

#include <math.h>
#include <stdlib.h>

enum { POPULATION = 16, KNOWN_TRIALS = 16 };
static const double SCALE = 0.7, CROSSOVER = 0.8;

typedef struct {
    Point point[POPULATION];
    double cost[POPULATION];
    int n, given, turn;
    Numbers member; // hash of a trial to the member it may replace
} Differential;

static int16_t mixed(const SpaceParam *param, int16_t a, int16_t b, int16_t c)
{
    if (param->label)
        return b != c ? b : a;
    double at = rint(a + SCALE * (b - c));
    return (int16_t)fmin(fmax(at, 0), param->n - 1);
}

static void make_trial(Search *search, int member, Point *trial)
{
    const Differential *d = search->state;
    const Point *other[3];
    for (int i = 0; i < 3; i++)
        other[i] = &d->point[rng_below(&search->rng, (uint64_t)d->n)];
    *trial = d->point[member];
    Point wish = *trial;
    for (int i = 0; i < space_params(search->space); i++)
        if (rng_double(&search->rng) < CROSSOVER)
            wish.choice[i] = mixed(space_param(search->space, i), other[0]->choice[i],
                                   other[1]->choice[i], other[2]->choice[i]);
    move_towards(search->space, &search->rng, &wish, trial);
}

static bool ask_differential(Search *search, Point *point)
{
    Differential *d = search->state;
    double cost;
    if (space_count(search->space) == 0)
        return false;
    for (int i = 0; i < KNOWN_TRIALS && d->given >= POPULATION && d->n > 0; i++) {
        int member = d->turn++ % d->n;
        make_trial(search, member, point);
        if (search_known(search, point, &cost))
            continue;
        numbers_put(&d->member, point_hash(search->space, point), (uint64_t)member);
        return true;
    }
    d->given++;
    space_sample(search->space, &search->rng, point);
    return true;
}

static int worst_of(const Differential *d)
{
    int worst = 0;
    for (int i = 1; i < d->n; i++)
        if (d->cost[i] > d->cost[worst])
            worst = i;
    return worst;
}

static void tell_differential(Search *search, const Point *point, double cost)
{
    Differential *d = search->state;
    const uint64_t *own = numbers_get(&d->member, point_hash(search->space, point));
    if (!isfinite(cost))
        return;
    bool grows = !own && d->n < POPULATION;
    int i = own ? (int)*own : grows ? d->n++ : worst_of(d);
    if (grows || cost <= d->cost[i]) {
        d->point[i] = *point;
        d->cost[i] = cost;
    }
}

static void close_differential(Search *search)
{
    numbers_release(&((Differential *)search->state)->member);
}

const SearchKind search_differential = {
    .name = "differential",
    .doc = "differential evolution: points move by the differences of others",
    .learns = true,
    .state = sizeof(Differential),
    .ask = ask_differential,
    .tell = tell_differential,
    .close = close_differential,
};
