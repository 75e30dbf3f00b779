// SPDX-License-Identifier: Apache-2.0
//
// Chained hashing over a stack of entries: since the newest entry of a bucket is its first,
// leaving a scope only moves the heads of chains back.

#include "kir/passes.h"

#include <string.h>

// The upper half of a product depends on all bits of a pointer. Most of what a pass looks
// up is found here: hash_mix was a tenth of the time of lowering.
static int bucket_of(const Table *table, Key key)
{
    uint64_t h = (uint64_t)(uintptr_t)key.a * 0x9e3779b97f4a7c15u;
    h = (h ^ (uint64_t)(uintptr_t)key.b) * 0xff51afd7ed558ccdu;
    h = (h ^ (uint64_t)(uintptr_t)key.c) * 0xc4ceb9fe1a85ec53u;
    return (int)(h >> 32 & (uint64_t)(table->nbucket - 1));
}

static void make_buckets(Table *table, int n)
{
    table->nbucket = n;
    table->bucket = NEW_ARRAY(table->arena, int, n);
    memset(table->bucket, -1, sizeof(int) * (size_t)n);
}

static void link_entry(Table *table, int i)
{
    int *head = &table->bucket[bucket_of(table, table->entry.at[i].key)];
    table->entry.at[i].next = *head;
    *head = i;
}

void table_init(Table *table, Arena *arena)
{
    *table = (Table){.arena = arena};
    make_buckets(table, 64);
}

int table_find(const Table *table, Key key)
{
    int i = table->bucket[bucket_of(table, key)];
    for (; i >= 0; i = table->entry.at[i].next) {
        const Key *k = &table->entry.at[i].key;
        if (k->a == key.a && k->b == key.b && k->c == key.c)
            break;
    }
    return i;
}

int table_push(Table *table, Key key, int value)
{
    if (table->entry.len >= table->nbucket) {
        make_buckets(table, 4 * table->nbucket);
        for (int i = 0; i < table->entry.len; i++)
            link_entry(table, i);
    }
    VEC_PUSH(table->arena, &table->entry, (TableEntry){.key = key, .value = value});
    link_entry(table, table->entry.len - 1);
    return table->entry.len - 1;
}

void table_pop(Table *table, int len)
{
    while (table->entry.len > len) {
        const TableEntry *last = &table->entry.at[--table->entry.len];
        table->bucket[bucket_of(table, last->key)] = last->next;
    }
}
