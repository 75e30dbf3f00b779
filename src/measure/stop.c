// SPDX-License-Identifier: Apache-2.0
#include "measure/measure.h"

#include <math.h>
#include <signal.h>

int stop_asked(const Stop *stop)
{
    int asked = stop && stop->asked ? atomic_load(stop->asked) : 0;
    return asked || !stop ? asked : stop_asked(stop->of);
}

double stop_left_s(const Stop *stop)
{
    return !stop ? INFINITY
           : stop_asked(stop)
               ? 0
               : fmin(fmax(0, stop->end_s - clock_s()), stop_left_s(stop->of));
}

bool stop_due(const Stop *stop)
{
    return !(stop_left_s(stop) > 0);
}

const char *stop_text(const Stop *stop)
{
    switch (stop_asked(stop)) {
    case 0: return "its time was over";
    case SIGINT: return "it was interrupted";
    case SIGHUP: return "the terminal was closed";
    default: return "it was told to end by a signal";
    }
}
