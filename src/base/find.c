// SPDX-License-Identifier: Apache-2.0

#include "base/base.h"

#include <string.h>

int find_text(const char *const *first, size_t step, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        if (strcmp(*(const char *const *)((const char *)first + (size_t)i * step), text) ==
            0)
            return i;
    return -1;
}
