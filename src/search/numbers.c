// SPDX-License-Identifier: Apache-2.0
//
// Open addressing with linear probing; nothing is ever removed.
#include "search/moves.h"

#include "base/base.h"

#include <stdlib.h>

struct NumberSlot {
    uint64_t key, value;
    bool used;
};

// The slot of a key, or the free one where it belongs.
static struct NumberSlot *slot_of(const Numbers *numbers, uint64_t key)
{
    size_t i = hash_mix(key, 0) & (numbers->cap - 1);
    while (numbers->slot[i].used && numbers->slot[i].key != key)
        i = (i + 1) & (numbers->cap - 1);
    return &numbers->slot[i];
}

static void grow(Numbers *numbers)
{
    Numbers old = *numbers;
    numbers->cap = old.cap ? 2 * old.cap : 64;
    numbers->slot = xcalloc(numbers->cap, sizeof *numbers->slot);
    for (size_t i = 0; i < old.cap; i++)
        if (old.slot[i].used)
            *slot_of(numbers, old.slot[i].key) = old.slot[i];
    free(old.slot);
}

const uint64_t *numbers_get(const Numbers *numbers, uint64_t key)
{
    if (!numbers->cap)
        return NULL;
    const struct NumberSlot *slot = slot_of(numbers, key);
    return slot->used ? &slot->value : NULL;
}

bool numbers_put(Numbers *numbers, uint64_t key, uint64_t value)
{
    if (2 * numbers->len >= numbers->cap)
        grow(numbers);
    struct NumberSlot *slot = slot_of(numbers, key);
    bool fresh = !slot->used;
    *slot = (struct NumberSlot){key, value, true};
    numbers->len += fresh;
    return fresh;
}

void numbers_release(Numbers *numbers)
{
    free(numbers->slot);
    *numbers = (Numbers){0};
}
