// SPDX-License-Identifier: Apache-2.0
//
// Progress (screen.h). The rate is that of the last ten to twenty seconds, so that trials
// taken from the store at once do not promise what the device cannot keep.
#include "cli/screen.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const double every_terminal_s = 0.1, every_log_s = 5, window_s = 10;

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

void screen_show(Screen *s, const Moment *m)
{
    double now = clock_s();
    if (s->quiet || now - s->last_s < (s->terminal ? every_terminal_s : every_log_s))
        return;
    Buf line;
    buf_init(&line);
    s->last_s = now;
    s->shown = s->terminal;
    put_moment(&line, s, m, now);
    if (s->terminal)
        cut_line(&line);
    Buf whole;
    buf_init(&whole);
    buf_printf(&whole, s->terminal ? "\r%s\033[0m\033[K" : "%s\n", line.text);
    cli_paint(whole.text);
    buf_release(&whole);
    buf_release(&line);
}

void screen_close(Screen *s)
{
    if (s->shown)
        cli_paint("\r\033[K");
    s->shown = false;
}
