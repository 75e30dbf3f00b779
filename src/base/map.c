// SPDX-License-Identifier: Apache-2.0
//
// Open addressing, power-of-two table, in an arena; keys are copied.
#include "base/base.h"

#include <string.h>

struct MapSlot {
    const char *key;
    void *value;
};

// FNV-1a (Fowler, Noll, Vo), finished with a multiply-xorshift.
uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return hash_mix(h, len);
}

void hash_hex(uint64_t hash, char out[17])
{
    snprintf(out, 17, "%016llx", (unsigned long long)hash);
}

static struct MapSlot *find(const Map *map, const char *key)
{
    size_t mask = (size_t)map->cap - 1;
    size_t i = hash_bytes(key, strlen(key), 0) & mask;
    while (map->slot[i].key && strcmp(map->slot[i].key, key) != 0)
        i = (i + 1) & mask;
    return &map->slot[i];
}

void *map_get(const Map *map, const char *key)
{
    return map->cap ? find(map, key)->value : NULL;
}

static void map_grow(Map *map)
{
    Map grown = {.arena = map->arena, .cap = map->cap ? 2 * map->cap : 16};
    grown.slot = NEW_ARRAY(map->arena, struct MapSlot, grown.cap);
    for (int i = 0; i < map->cap; i++)
        if (map->slot[i].key)
            *find(&grown, map->slot[i].key) = map->slot[i];
    grown.len = map->len;
    *map = grown;
}

void map_put(Map *map, const char *key, void *value)
{
    if (4 * (map->len + 1) > 3 * map->cap)
        map_grow(map);
    struct MapSlot *slot = find(map, key);
    if (!slot->key) {
        slot->key = arena_strdup(map->arena, key);
        map->len++;
    }
    slot->value = value;
}
