// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

#include <time.h>

int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double clock_s(void)
{
    return (double)clock_ns() * 1e-9;
}
