// SPDX-License-Identifier: Apache-2.0
//
// A scoped table of pointers: pushed on entering a scope, popped on leaving it, found in
// constant time; of equal keys the newest is found.

#ifndef FW_KIR_TABLE_H
#define FW_KIR_TABLE_H

#include "base/base.h"

typedef struct {
    const void *a, *b, *c;
} Key;

typedef struct {
    Key key;
    int next;  // older entry of the same bucket, or -1
    int value; // the user's
} TableEntry;

typedef struct {
    Arena *arena;
    int *bucket;
    int nbucket; // a power of two
    VEC(TableEntry) entry;
} Table;

void table_init(Table *table, Arena *arena);
int table_find(const Table *table, Key key); // number of the entry, or -1
int table_push(Table *table, Key key, int value);
void table_pop(Table *table, int len); // drops all but the oldest len entries

#endif
