// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

#include <stdlib.h>

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
