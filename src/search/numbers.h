// SPDX-License-Identifier: Apache-2.0
//
// A map of numbers to numbers, for strategies that remember where they have been.

#ifndef FW_SEARCH_NUMBERS_H
#define FW_SEARCH_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// All zero is an empty map.
typedef struct {
    struct NumberSlot *slot;
    size_t len, cap;
} Numbers;

// NULL if absent; valid until the next put.
const uint64_t *numbers_get(const Numbers *numbers, uint64_t key);
// Adds or replaces; true if the key is new.
bool numbers_put(Numbers *numbers, uint64_t key, uint64_t value);
void numbers_release(Numbers *numbers);

#endif
