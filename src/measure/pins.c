// SPDX-License-Identifier: Apache-2.0
//
// Threads of the device bound to one core each. Timing needs that: without it Linux often
// puts two of PoCL's threads on one core, and every other time is twice too long. But
// PoCL compiles in the same threads, and those of two workers bound to the same core would
// compile by turns. So they are let loose while jobs are prepared.
//
// It binds nothing by itself: it lets loose and restores what the driver bound.
#include "measure/parts.h"

#include <dirent.h>
#include <stdlib.h>

void pins_read(Pins *pins)
{
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry;
    pins->n = 0;
    pins->loose = false;
    if (sched_getaffinity(0, sizeof pins->all, &pins->all) != 0)
        CPU_ZERO(&pins->all);
    while (dir && (entry = readdir(dir)) && pins->n < PINS_MAX) {
        Pin *pin = &pins->pin[pins->n];
        pin->thread = atoi(entry->d_name);
        if (pin->thread > 0 &&
            sched_getaffinity(pin->thread, sizeof pin->cores, &pin->cores) == 0 &&
            CPU_COUNT(&pin->cores) == 1 && CPU_COUNT(&pins->all) > 1)
            pins->n++;
    }
    if (dir)
        closedir(dir);
}

// A thread that has ended since is passed over.
void pins_set_loose(Pins *pins, bool loose)
{
    for (int i = 0; i < pins->n && loose != pins->loose; i++)
        sched_setaffinity(pins->pin[i].thread, sizeof(cpu_set_t),
                          loose ? &pins->all : &pins->pin[i].cores);
    pins->loose = loose;
}
