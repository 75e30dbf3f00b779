// SPDX-License-Identifier: Apache-2.0
//
// barrier: which words on chip which threads have touched since the last barrier.

#ifndef FW_FUSE_BARRIER_H
#define FW_FUSE_BARRIER_H

#include "fuse/kernel.h"

// One access of a block to an element on chip: by a copy, or by a routine.
typedef struct {
    int base, stride; // of instance t: words base + t * stride and on
    int words;
    const WordMap *map; // of a routine: thread lanes * t + l touches the words of row l;
                        // NULL: a copy, whose thread k touches words k, k + threads, ..
    int vector;         // of a copy: words a thread takes at a time
    bool by_word; // of a sum: thread k touches words k, k + threads, .. of all instances
    bool write;
} ChipAccess;

typedef struct Watch Watch;
Watch *watch_new(int words, int instances, int threads); // owner: the caller
void watch_free(Watch *watch);
// True if a barrier must stand before these accesses, which happen together: one thread
// wrote a word that another touches, or the other way round. The accesses are then noted.
bool watch_access(Watch *watch, const ChipAccess *access, int n);

#endif
