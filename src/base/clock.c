// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

#include <time.h>

static int64_t read_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t clock_processor_ns(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

double clock_s(void)
{
    return (double)clock_ns() * 1e-9;
}
