// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

int compare_doubles(const void *p, const void *q)
{
    double a = *(const double *)p, b = *(const double *)q;
    return (a > b) - (a < b);
}

static int compare_numbered(const void *p, const void *q)
{
    const Numbered *a = p, *b = q;
    int order = compare_doubles(&a->value, &b->value);
    return order ? order : a->number - b->number;
}

void sort_numbered(Numbered *at, int n)
{
    qsort(at, (size_t)n, sizeof *at, compare_numbered);
}

void sort_doubles(double *at, int n)
{
    qsort(at, (size_t)n, sizeof *at, compare_doubles);
}

bool list_has(const void *list, int n, const void *pointer)
{
    const char *at = list;
    for (int i = 0; i < n; i++)
        if (memcmp(at + (size_t)i * sizeof pointer, &pointer, sizeof pointer) == 0)
            return true;
    return false;
}
