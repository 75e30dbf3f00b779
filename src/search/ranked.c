// SPDX-License-Identifier: Apache-2.0
//
// The points of search->ranking, first to last: an order that someone else worked out, say
// by a model's predictions (000, section 8) or by weights of counts (003, section 6.2). It
// looks at nothing else.
#include "search/search.h"

static bool ask_ranked(Search *search, Point *point)
{
    int *next = search->state;
    if (*next >= search->nranking)
        return false;
    *point = search->ranking[(*next)++];
    return true;
}

const SearchKind search_ranked = {
    .name = "ranked",
    .doc = "the points that a fitted model predicts to be fastest (--model, or that of the "
           "program)",
    .needs_ranking = true,
    .state = sizeof(int),
    .ask = ask_ranked,
};

const SearchKind search_predicted = {
    .name = "predicted",
    .doc = "the points that the device's weights predict to be fastest (needs `forewarp "
           "calibrate`)",
    .needs_ranking = true,
    .by_weights = true,
    .state = sizeof(int),
    .ask = ask_ranked,
};
