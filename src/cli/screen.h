// SPDX-License-Identifier: Apache-2.0
//
// What a long command says on standard error while it works: on a terminal one line that
// rewrites itself, elsewhere a plain line now and then.

#ifndef FW_CLI_SCREEN_H
#define FW_CLI_SCREEN_H

#include "cli/cli.h"

#include <pthread.h>

typedef struct {
    const char *stage, *what; // "search", "trials": static texts
    int64_t done, of;         // of: 0 where it is not known
    double budget_s;          // since the screen was opened; INFINITY: none
    double best_ns;           // INFINITY: none yet
} Moment;

typedef struct {
    bool terminal, quiet, colour;
    bool shown;   // there is a line to wipe
    bool ticking; // a thread writes the line again, so that its clock goes on
    bool closed;  // the thread is to end
    pthread_t thread;
    pthread_mutex_t lock; // of all that follows, while it ticks
    pthread_cond_t wake;
    Moment moment; // the last one
    double start_s, last_s;
    const char *stage;  // at hand; static text
    double stage_s;     // when it began
    double at_s[2];     // two moments of it, about ten seconds apart,
    int64_t done_at[2]; // and what was done by then
} Screen;

Screen screen_open(const Options *options);
// Now, if the last time was long enough ago; on a terminal again every second until
// screen_close, which must follow. The screen stays where it is between the two.
void screen_show(Screen *screen, const Moment *moment);
void screen_close(Screen *screen);

#endif
