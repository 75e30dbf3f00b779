// SPDX-License-Identifier: Apache-2.0
//
// Barriers are as few as the words and threads themselves demand: for every on-chip word of
// a block it is known which thread wrote it and which one, or more than one, read it since
// the last barrier. Comparing thread maps by name would have to include the granularity,
// the offset and the stride (two maps of `a thread an instance` with strides 1 and 25 share
// words of different threads); here that follows from the addresses.

#include "fuse/barrier.h"

#include <stdlib.h>

enum { NOBODY = -1, SEVERAL = -2 };

struct Watch {
    int words, instances, threads;
    int *writer, *reader; // since the last barrier
};

Watch *watch_new(int words, int instances, int threads)
{
    Watch *w = xcalloc(1, sizeof *w);
    *w = (Watch){words, instances, threads, NULL, NULL};
    w->writer = xmalloc(sizeof *w->writer * (size_t)MAX(words, 1));
    w->reader = xmalloc(sizeof *w->reader * (size_t)MAX(words, 1));
    for (int i = 0; i < words; i++)
        w->writer[i] = w->reader[i] = NOBODY;
    return w;
}

void watch_free(Watch *watch)
{
    free(watch->writer);
    free(watch->reader);
    free(watch);
}

static bool differ(int who, int thread)
{
    return who != NOBODY && who != thread;
}

static bool clashes(const Watch *w, int word, int thread, bool write)
{
    return differ(w->writer[word], thread) || (write && differ(w->reader[word], thread));
}

static void note(Watch *w, int word, int thread, bool write)
{
    int *who = write ? &w->writer[word] : &w->reader[word];
    *who = differ(*who, thread) ? SEVERAL : thread;
}

// Calls for every word and thread of an access: asks, or notes; true if one clashes.
static bool walk(Watch *w, const ChipAccess *a, bool ask)
{
    for (int t = 0; t < w->instances; t++)
        for (int k = 0; k < a->words; k++) {
            int word = a->base + t * a->stride + k;
            int lanes = a->map ? a->map->lanes : 1;
            for (int l = 0; l < lanes; l++) {
                int thread = t * lanes + l;
                if (a->map && !map_has(a->map, l, k))
                    continue;
                if (a->by_word)
                    thread = k % w->threads;
                else if (!a->map)
                    thread = (t * a->words + k) / a->vector % w->threads;
                if (!ask)
                    note(w, word, thread, a->write);
                else if (clashes(w, word, thread, a->write))
                    return true;
            }
        }
    return false;
}

bool watch_access(Watch *w, const ChipAccess *access, int n)
{
    bool clash = false;
    for (int i = 0; i < n && !clash; i++)
        clash = walk(w, &access[i], true);
    for (int i = 0; clash && i < w->words; i++)
        w->writer[i] = w->reader[i] = NOBODY;
    for (int i = 0; i < n; i++)
        walk(w, &access[i], false);
    return clash;
}
