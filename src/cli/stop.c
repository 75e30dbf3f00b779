// SPDX-License-Identifier: Apache-2.0
//
// What ends a command in good order: Ctrl-C, SIGTERM, a terminal that is closed. A signal
// handler can reach only global variables.
#include "cli/cli.h"

#include <math.h>
#include <signal.h>

static atomic_int asked;
static bool ready;

static void on_signal(int signal)
{
    asked = signal;
}

const Stop *cli_stop(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    static const Stop stop = {.end_s = INFINITY, .asked = &asked};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    for (int i = 0; i < COUNTOF(ends) && !ready; i++) {
        struct sigaction before;
        // Whoever ignores it, as nohup does, is not to be ended by it.
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
    }
    ready = true;
    return &stop;
}

int cli_signal(void)
{
    return asked;
}
