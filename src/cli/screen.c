// SPDX-License-Identifier: Apache-2.0
//
// Progress (cli.h). The rate is that of the last ten to twenty seconds, so that trials
// taken from the store at once do not promise what the device cannot keep. On a terminal a
// thread writes the line again before it is a second old, whatever the command waits for.
#include "cli/cli.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const double every_terminal_s = 0.1, every_log_s = 5, window_s = 10;
// So that with what a busy machine delays, a line is no older than a second.
static const double tick_s = 0.8;

Screen screen_open(const Options *options)
{
    double now = clock_s();
    return (Screen){.terminal = isatty(STDERR_FILENO),
                    .quiet = options->quiet,
                    .colour = cli_colour(options, STDERR_FILENO),
                    .start_s = now,
                    .last_s = -INFINITY,
                    .stage = ""};
}

// What is done a second; NAN while nothing can be said.
static double follow(Screen *s, const Moment *m, double now)
{
    if (strcmp(s->stage, m->stage) != 0) {
        s->stage = m->stage;
        s->stage_s = s->at_s[0] = s->at_s[1] = now;
        s->done_at[0] = s->done_at[1] = m->done;
    }
    if (now - s->at_s[1] > window_s) {
        s->at_s[0] = s->at_s[1];
        s->done_at[0] = s->done_at[1];
        s->at_s[1] = now;
        s->done_at[1] = m->done;
    }
    double seconds = now - s->at_s[0];
    int64_t done = m->done - s->done_at[0];
    return seconds > 0.5 && done > 0 ? (double)done / seconds : NAN;
}

// What bounds the stage first: its time, or the number of things to do.
static double left_s(const Screen *s, const Moment *m, double rate, double now)
{
    double left = m->budget_s - (now - s->start_s);
    if (m->of > 0 && isfinite(rate))
        left = fmin(left, (double)(m->of - m->done) / rate);
    return fmax(left, 0);
}

static void put_seconds(Buf *line, double s)
{
    if (s < 120)
        buf_printf(line, "%.0f s", ceil(s));
    else if (s < 7200)
        buf_printf(line, "%.0f min", ceil(s / 60));
    else
        buf_printf(line, "%.1f h", s / 3600);
}

static void put_moment(Buf *line, Screen *s, const Moment *m, double now)
{
    double rate = follow(s, m, now), left = left_s(s, m, rate, now);
    buf_printf(line, "%6.1f s  %s", now - s->start_s, m->stage);
    if (m->done || m->of) {
        buf_printf(line, "  %lld", (long long)m->done);
        if (m->of)
            buf_printf(line, " of %lld", (long long)m->of);
        buf_printf(line, " %s", m->what);
    }
    if (isfinite(rate))
        buf_printf(line, rate < 10 ? "  %.1f/s" : "  %.0f/s", rate);
    if (isfinite(m->best_ns)) {
        buf_puts(line, s->colour ? "  best \033[1m" : "  best ");
        cli_time(line, m->best_ns);
        buf_puts(line, s->colour ? "\033[0m" : "");
    }
    if (isfinite(left)) {
        buf_puts(line, "  ");
        put_seconds(line, left);
        buf_puts(line, " left");
    }
}

// Cuts a line that would wrap; escapes take no room.
static void cut_line(Buf *line)
{
    struct winsize size;
    size_t room = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10
                      ? size.ws_col - 1u
                      : 79;
    for (size_t i = 0, shown = 0; i < line->len; i++)
        if (line->text[i] == '\033')
            i += strcspn(line->text + i, "m");
        else if (++shown > room)
            line->text[line->len = i] = 0;
}

static void paint(Screen *s, double now)
{
    AutoBuf line = buf_new(), whole = buf_new();
    s->last_s = now;
    s->shown = s->terminal;
    put_moment(&line, s, &s->moment, now);
    if (s->terminal)
        cut_line(&line);
    buf_printf(&whole, s->terminal ? "\r%s\033[0m\033[K" : "%s\n", line.text);
    cli_paint(whole.text);
}

// Or until the screen is closed. at_s: by clock_s, which conditions do not know.
static void wait_until(Screen *s, double at_s)
{
    enum { NS = 1000000000 };
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t ns = until.tv_nsec + (int64_t)(1e9 * fmax(at_s - clock_s(), 0.001));
    until.tv_sec += ns / NS;
    until.tv_nsec = ns % NS;
    pthread_cond_timedwait(&s->wake, &s->lock, &until);
}

static void *tick(void *user)
{
    Screen *s = user;
    pthread_mutex_lock(&s->lock);
    while (!s->closed) {
        wait_until(s, s->last_s + tick_s);
        double now = clock_s();
        if (!s->closed && now - s->last_s >= tick_s)
            paint(s, now);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

// Without a thread the line stands still between moments. Signals are for the thread that
// works.
static void start_ticking(Screen *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    s->ticking = thread_start(&s->thread, tick, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void screen_show(Screen *s, const Moment *m)
{
    if (s->quiet)
        return;
    if (s->ticking)
        pthread_mutex_lock(&s->lock);
    double now = clock_s();
    s->moment = *m;
    if (now - s->last_s >= (s->terminal ? every_terminal_s : every_log_s))
        paint(s, now);
    if (s->ticking)
        pthread_mutex_unlock(&s->lock);
    else if (s->terminal)
        start_ticking(s);
}

void screen_close(Screen *s)
{
    if (s->ticking) {
        pthread_mutex_lock(&s->lock);
        s->closed = true;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
        s->ticking = false;
    }
    if (s->shown)
        cli_paint("\r\033[K");
    s->shown = false;
}
