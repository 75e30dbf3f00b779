// SPDX-License-Identifier: Apache-2.0
//
// Valid points uniformly at random without repetition (moves.h).
#include "search/moves.h"
#include "search/search.h"

static bool ask_random(Search *search, Point *point)
{
    return shuffle_next(search->state, search->space, &search->rng, point);
}

static void close_random(Search *search)
{
    shuffle_release(search->state);
}

const SearchKind search_random = {
    .name = "random",
    .doc = "valid points uniformly at random, none twice; of scripts, covers",
    .state = sizeof(Shuffle),
    .ask = ask_random,
    .close = close_random,
};
