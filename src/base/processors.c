// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

#include <sched.h>
#include <unistd.h>

int processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return MAX(CPU_COUNT(&set), 1);
    return (int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1); // more than the set has bits for
}
