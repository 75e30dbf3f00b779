// SPDX-License-Identifier: Apache-2.0
//
// Every valid point, in the order of their numbers.
#include "search/search.h"

static bool ask_exhaustive(Search *search, Point *point)
{
    uint64_t *next = search->state;
    if ((double)*next >= space_count(search->space))
        return false;
    space_point(search->space, (*next)++, point);
    return true;
}

const SearchKind search_exhaustive = {
    .name = "exhaustive",
    .doc = "every valid point, in order",
    .state = sizeof(uint64_t),
    .ask = ask_exhaustive,
};
