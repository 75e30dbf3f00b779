// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

#include <stdlib.h>

int compare_doubles(const void *p, const void *q)
{
    double a = *(const double *)p, b = *(const double *)q;
    return (a > b) - (a < b);
}

void sort_doubles(double *at, int n)
{
    qsort(at, (size_t)n, sizeof *at, compare_doubles);
}
