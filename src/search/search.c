// SPDX-License-Identifier: Apache-2.0
//
// The table of strategies, and what all of them share: the best point so far, and the
// promise that no point is given out twice. Points told without having been asked for,
// such as those of an earlier run, count as given out.
//
// It does not count trials against the limit: the caller owns the budget.
#include "search/search.h"

#include "search/moves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH(name) extern const SearchKind search_##name;
#include "search/searches.def"
#undef SEARCH

static const SearchKind *const kinds[] = {
#define SEARCH(name) &search_##name,
#include "search/searches.def"
#undef SEARCH
};

typedef struct {
    Search search; // first, so that a Search is a Given
    Numbers hashes;
} GivenSearch;

// A strategy that proposes only known points this many times in a row has no other.
enum { STALE_MAX = 1 << 20 };

const SearchKind *const *search_all(int *n)
{
    *n = COUNTOF(kinds);
    return kinds;
}

const SearchKind *search_find(const char *name)
{
    for (int i = 0; i < COUNTOF(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

Search *search_open(const SearchKind *kind, const Space *space, uint64_t seed, double limit)
{
    GivenSearch *given = xcalloc(1, sizeof *given);
    Search *search = &given->search;
    search->kind = kind;
    search->space = space;
    search->limit = limit;
    search->best_ns = INFINITY;
    search->rng = rng_new(seed);
    search->state = xcalloc(1, kind->state);
    if (kind->open)
        kind->open(search);
    return search;
}

// True if the point was not given out before.
static bool remember(Search *search, const Point *point, double cost_ns)
{
    uint64_t bits;
    memcpy(&bits, &cost_ns, sizeof bits);
    bool fresh = numbers_put(&((GivenSearch *)search)->hashes,
                             point_hash(search->space, point), bits);
    search->given += fresh;
    return fresh;
}

bool search_known(const Search *search, const Point *point, double *cost_ns)
{
    const GivenSearch *given = (const GivenSearch *)search;
    const uint64_t *bits = numbers_get(&given->hashes, point_hash(search->space, point));
    if (bits)
        memcpy(cost_ns, bits, sizeof *bits);
    return bits;
}

bool search_ask(Search *search, Point *point)
{
    double count = space_count(search->space);
    for (int stale = 0; stale < STALE_MAX; stale++) {
        if ((double)((GivenSearch *)search)->hashes.len >= count)
            return false;
        if (!search->kind->ask(search, point))
            return false;
        if (!space_valid(search->space, point))
            BUG("strategy %s gave out an invalid point", search->kind->name);
        if (remember(search, point, NAN))
            return true;
    }
    return false;
}

void search_tell(Search *search, const Point *point, double cost_ns)
{
    if (!space_valid(search->space, point))
        BUG("told of an invalid point");
    remember(search, point, cost_ns);
    search->told++;
    if (cost_ns < search->best_ns) {
        search->best_ns = cost_ns;
        search->best = *point;
    }
    if (search->kind->tell)
        search->kind->tell(search, point, cost_ns);
}

void search_close(Search *search)
{
    if (!search)
        return;
    if (search->kind->close)
        search->kind->close(search);
    free(search->state);
    numbers_release(&((GivenSearch *)search)->hashes);
    free(search);
}
