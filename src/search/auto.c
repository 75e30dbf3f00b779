// SPDX-License-Identifier: Apache-2.0
//
// The default: a portfolio of other strategies. The surrogate learns fastest from few
// points, so it is asked alone as long as it makes progress. A model may also be blind for
// what is left to gain, hence every other question goes to strategies that believe in none
// once it has had no success for a while, until one of them has.
//
// Every strategy is told every answer, so that each knows the best of all. Points that one
// has given out are not given out again by another.
#include "search/search.h"

#include <math.h>
#include <stdlib.h>

static const char *const member_name[] = {"surrogate", "local", "genetic"};
enum { MEMBERS = COUNTOF(member_name), PATIENCE = 25, KNOWN_ASKED = 64 };
static const double PATIENCE_SHARE = 0.2; // of the points told so far

typedef struct {
    Search *member[MEMBERS];
    int told, progress; // told points, and those when the best was found
    uint64_t turn;
} Auto;

static void *open_auto(Search *search)
{
    Auto *a = xcalloc(1, sizeof *a);
    for (int i = 0; i < MEMBERS; i++)
        a->member[i] = search_open(search_find(member_name[i]), search->space,
                                   rng_next(&search->rng), search->limit);
    return a;
}

// The surrogate, or in bad times every other time one of the others in turn.
static int choose_member(Auto *a)
{
    int patience = (int)fmax(PATIENCE, PATIENCE_SHARE * a->told);
    if (a->told - a->progress <= patience || a->turn++ % 2 == 0)
        return 0;
    return 1 + (int)(a->turn / 2 % (MEMBERS - 1));
}

static bool ask_auto(Search *search, Point *point)
{
    Auto *a = search->state;
    double cost;
    for (int i = 0; i < KNOWN_ASKED; i++)
        if (search_ask(a->member[choose_member(a)], point) &&
            !search_known(search, point, &cost))
            return true;
    if (space_count(search->space) == 0)
        return false;
    space_sample(search->space, &search->rng, point);
    return true;
}

static void tell_auto(Search *search, const Point *point, double cost)
{
    Auto *a = search->state;
    for (int i = 0; i < MEMBERS; i++)
        search_tell(a->member[i], point, cost);
    a->told++;
    if (isfinite(cost) && cost == search->best_ns)
        a->progress = a->told;
}

static void close_auto(Search *search)
{
    Auto *a = search->state;
    for (int i = 0; i < MEMBERS; i++)
        search_close(a->member[i]);
    free(a);
}

const SearchKind search_auto = {
    .name = "auto",
    .doc = "the surrogate; where it makes no progress, local search and genetics beside it",
    .learns = true,
    .open = open_auto,
    .ask = ask_auto,
    .tell = tell_auto,
    .close = close_auto,
};
