// SPDX-License-Identifier: Apache-2.0
//
// Valid points uniformly at random without repetition (moves.h).
#include "search/moves.h"
#include "search/search.h"

#include <stdlib.h>

static void *open_random(Search *search)
{
    return xcalloc(1, sizeof(Shuffle));
}

static bool ask_random(Search *search, Point *point)
{
    return shuffle_next(search->state, search->space, &search->rng, point);
}

static void close_random(Search *search)
{
    shuffle_release(search->state);
    free(search->state);
}

const SearchKind search_random = {
    .name = "random",
    .doc = "valid points uniformly at random, none twice; of scripts, covers",
    .open = open_random,
    .ask = ask_random,
    .close = close_random,
};
