// SPDX-License-Identifier: Apache-2.0
//
// The page of a tuning: figures, plots, the kernel, how to do it again. One file of HTML;
// its own policy forbids a browser to load anything else. Light and dark follow the
// reader's setting: plots are drawn for paper, and the style below recolours them.
#include "report/run.h"
#include "report/svg.h"
#include "report/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BEST_SHOWN = 10, LOGS_SHOWN = 5 };

static const char style[] =
    ":root{--paper:#fff;--ink:#1b1f24;--soft:#5b6470;--line:#d8dde3;--card:#f5f7f9;"
    "--accent:#0b62a4;--kw:#8a1c7c;--bi:#0b62a4;--nu:#8a4b00;--st:#1a6b2f;--co:#5b6470}\n"
    "@media (prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e6e9ed;--soft:#9aa4b0;"
    "--line:#323941;--card:#1d2126;--accent:#6cb4f0;--kw:#e394d6;--bi:#7cc0f5;--nu:#f0b36c;"
    "--st:#86d296;--co:#9aa4b0}\n"
    "svg rect[fill=white]{fill:var(--paper)}svg text:not([fill]){fill:var(--ink)}\n"
    "svg line[stroke=\"#e0e0e0\"]{stroke:#2b3138}svg "
    "line[stroke=\"#404040\"]{stroke:#8b95a1}"
    "\n[fill=\"#0072b2\"]{fill:#4ea5e0}[stroke=\"#0072b2\"]{stroke:#8cc8f5}\n"
    "[fill=\"#d55e00\"]{fill:#ff8a3d}[stroke=\"#d55e00\"]{stroke:#ff8a3d}\n"
    "[fill=\"#009e73\"]{fill:#2fc99b}[stroke=\"#009e73\"]{stroke:#2fc99b}\n"
    "[fill=\"#000000\"]{fill:#d0d6dd}[stroke=\"#000000\"]{stroke:#d0d6dd}\n"
    "[fill=\"#c3d9ea\"]{fill:#284b66}}\n"
    "*{box-sizing:border-box}html{background:var(--paper);color:var(--ink)}\n"
    "body{margin:0;font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\","
    "sans-serif}\n"
    "main{max-width:860px;margin:0 auto;padding:2rem 1.25rem 4rem}\n"
    "h1{font-size:1.9rem;line-height:1.2;margin:0}h2{font-size:1.3rem;margin:2.75rem 0 "
    ".75rem;padding-top:1rem;border-top:1px solid var(--line)}\n"
    "p{margin:.5rem 0;max-width:70ch}.soft,figcaption{color:var(--soft)}\n"
    ".tiles{display:grid;grid-template-columns:repeat(3,1fr);gap:."
    "75rem;"
    "margin:1.5rem 0}\n"
    ".tile{background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "padding:.7rem .9rem}\n"
    ".tile b{display:block;font-size:1.45rem;font-weight:600;font-variant-numeric:"
    "tabular-nums}.tile span{color:var(--soft);font-size:.85rem}\n"
    "figure{margin:1.25rem 0 2rem}figcaption{font-size:.9rem;max-width:70ch}\n"
    "svg{max-width:100%;height:auto;display:block}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:"
    "tabular-nums;font-size:.92rem}th,td{text-align:left;padding:.3rem .9rem .3rem 0;"
    "border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--soft);"
    "font-weight:500}.r{text-align:right}\n"
    "code,pre{font-family:ui-monospace,\"DejaVu Sans Mono\",Menlo,Consolas,monospace;"
    "font-size:.84rem}pre{background:var(--card);border:1px solid var(--line);"
    "border-radius:8px;padding:1rem;overflow-x:auto;line-height:1.45;margin:.75rem 0;"
    "white-space:pre}\n"
    "pre .k{color:var(--kw)}pre .b{color:var(--bi)}pre .n{color:var(--nu)}pre "
    ".s{color:var(--st)}pre .c{color:var(--co);font-style:italic}pre .p{color:var(--kw)}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem "
    "1.25rem;margin:.75rem "
    "0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n"
    "@media (max-width:34rem){.tiles{grid-template-columns:repeat(2,1fr)}}\n"
    "@media print{pre{white-space:pre-wrap}}\n";

// Pieces ----------------------------------------------------------------------------------

static void put_time(Buf *out, double ns)
{
    if (!isfinite(ns))
        buf_puts(out, "&ndash;");
    else
        put_duration(out, ns, "&micro;");
}

static void put_tag(Buf *out, const char *tag, const char *text)
{
    buf_printf(out, "<%s>", tag);
    svg_escape(out, text);
    buf_printf(out, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

static void put_tile(Buf *out, const char *value, const char *label)
{
    buf_printf(out, "<div class=\"tile\"><b>%s</b><span>%s</span></div>\n", value, label);
}

static void put_tiles(Buf *out, const Run *run)
{
    Buf text;
    buf_init(&text);
    buf_puts(out, "<div class=\"tiles\">\n");
    put_time(&text, run->best_ns);
    put_tile(out, text.text, "best kernel");
    if (isfinite(run->best_ns) && isfinite(run->baseline_ns)) {
        buf_clear(&text);
        buf_printf(&text, "%.2f&times;", run->baseline_ns / run->best_ns);
        put_tile(out, text.text, "faster than the plain one");
    }
    if (isfinite(run->best_ns) && run_floor_ns(run) > 0) {
        buf_clear(&text);
        buf_printf(&text, "%.1f %%", 100 * run_floor_ns(run) / run->best_ns);
        put_tile(out, text.text, "of the floor's speed");
    }
    if (isfinite(run->best_ns)) {
        buf_clear(&text);
        buf_printf(&text, "%.1f GB/s", run->bytes / run->best_ns);
        put_tile(out, text.text, "effective bandwidth");
    }
    buf_clear(&text);
    buf_printf(&text, "%d", run->n);
    put_tile(out, text.text, "trials");
    buf_clear(&text);
    buf_printf(&text, run->space_points < 1e7 ? "%.0f" : "%.3g", run->space_points);
    put_tile(out, text.text, "points in the space");
    buf_puts(out, "</div>\n");
    buf_release(&text);
}

static void put_head(Buf *out, const Run *run, Arena *arena)
{
    buf_puts(out,
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
             "'none'; style-src 'unsafe-inline'; img-src data:\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, "
             "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
             "<link rel=\"icon\" href=\"data:,\">\n<title>");
    svg_escape(out, run->problem);
    buf_printf(out,
               " \u2013 forewarp</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n",
               style);
    put_tag(out, "h1", run->problem);
    buf_puts(out, "<p class=\"soft\">on ");
    svg_escape(out, run->device.name);
    buf_puts(out, ", tuned ");
    svg_escape(out, arena_printf(arena, "%.16s", run->when));
    buf_puts(out, " UTC</p>\n");
    put_tiles(out, run);
}

// Draws a plot; false where there is nothing to draw.
static bool put_plot(Buf *out, const Analysis *a, const char *name, Arena *arena)
{
    for (int i = 0; i < RUN_PLOTS; i++) {
        if (strcmp(run_plot[i].name, name) != 0)
            continue;
        Buf svg;
        buf_init(&svg);
        bool drawn = run_plot[i].svg(&svg, a, arena);
        if (drawn) {
            buf_printf(out, "<figure id=\"%s\">\n%s<figcaption>", name, svg.text);
            svg_escape(out, run_plot[i].about);
            buf_puts(out, "</figcaption>\n</figure>\n");
        }
        buf_release(&svg);
        return drawn;
    }
    BUG("there is no plot %s", name);
}

// Sections ------------------------------------------------------------------------------

// How many trials ended how; nothing where all of them ran.
static void put_counts(Buf *out, const Run *run)
{
    int failed = 0;
    for (int i = 0; i < run->n; i++)
        failed += run->trial[i].status != TRIAL_OK;
    if (!failed)
        return;
    buf_puts(out, "<table>\n<tr><th>trials</th><th class=\"r\">number</th><th>the first "
                  "message</th></tr>\n");
    for (int s = 0; s < TRIAL_STATUS_COUNT; s++) {
        const char *log = "";
        int n = 0;
        for (int i = 0; i < run->n; i++)
            if (run->trial[i].status == (TrialStatus)s && n++ == 0)
                log = run->trial[i].log;
        if (!n)
            continue;
        buf_printf(out, "<tr><td>%s</td><td class=\"r\">%d</td><td>", trial_status_name[s],
                   n);
        svg_escape(out, s == TRIAL_OK ? "" : log);
        buf_puts(out, "</td></tr>\n");
    }
    buf_puts(out, "</table>\n");
}

static void put_search(Buf *out, const Analysis *a, Arena *arena)
{
    double build = 0, check = 0, timing = 0;
    int stored = 0;
    for (int i = 0; i < a->run->n; i++) {
        const RunTrial *trial = &a->run->trial[i];
        stored += trial->stored;
        build += trial->build_s;
        check += trial->check_s;
        timing += trial->timing_s;
    }
    put_tag(out, "h2", "The search");
    buf_puts(out, "<p>Strategy <code>");
    svg_escape(out, a->run->strategy);
    buf_printf(
        out,
        "</code>, %.1f s in all; of the trials' own time %.1f s went into compiling, "
        "%.1f s into checking and %.1f s into timing. %d of %d trials came from the "
        "store.</p>\n",
        a->run->elapsed_s, build, check, timing, stored, a->run->n);
    put_plot(out, a, "search", arena);
    put_plot(out, a, "distribution", arena);
    put_counts(out, a->run);
}

static void put_parameters(Buf *out, const Analysis *a, Arena *arena)
{
    put_tag(out, "h2", "What the parameters do");
    if (!put_plot(out, a, "importance", arena))
        buf_puts(out, "<p class=\"soft\">Too few trials ran to tell which parameters "
                      "matter.</p>\n");
    put_plot(out, a, "parameters", arena);
    put_plot(out, a, "pair", arena);
}

static void put_models(Buf *out, const Analysis *a, Arena *arena)
{
    put_tag(out, "h2",
            a->unknown ? "What trials tell of others" : "What is known without running");
    if (a->unknown) {
        put_plot(out, a, "predicted", arena);
        buf_puts(out, "<p class=\"soft\">No features, counts or roofline: ");
        svg_escape(out, a->unknown);
        buf_puts(out, ".</p>\n");
        return;
    }
    if (a->run->model && a->run->model[0]) {
        buf_puts(out, "<p>The search followed the ranking of a model: <code>");
        svg_escape(out, a->run->model);
        buf_puts(out, "</code>.</p>\n");
    }
    put_plot(out, a, "predicted", arena);
    put_plot(out, a, "features", arena);
    if (!put_plot(out, a, "roofline", arena))
        buf_puts(out, "<p class=\"soft\">No roofline: the program's operations or the "
                      "device's ceilings are not known.</p>\n");
}

static void put_best_table(Buf *out, const Analysis *a, Arena *arena)
{
    Numbered *rank = NEW_ARRAY(arena, Numbered, a->nok + 1);
    for (int i = 0; i < a->nok; i++)
        rank[i] = (Numbered){a->run->trial[a->ok[i]].time_ns, a->ok[i]};
    sort_numbered(rank, a->nok);
    buf_puts(out,
             "<div class=\"scroll\"><table>\n<tr><th class=\"r\">trial</th><th "
             "class=\"r\">time</th><th class=\"r\">slower by</th><th>point</th></tr>\n");
    for (int i = 0; i < MIN(a->nok, BEST_SHOWN); i++) {
        Buf point;
        buf_init(&point);
        run_point(&point, a->run, &a->run->trial[rank[i].number].point);
        buf_printf(out, "<tr><td class=\"r\">%d</td><td class=\"r\">", rank[i].number + 1);
        put_time(out, rank[i].value);
        buf_printf(out, "</td><td class=\"r\">%.1f %%</td><td><code>",
                   100 * (rank[i].value / rank[0].value - 1));
        svg_escape(out, point.text);
        buf_puts(out, "</code></td></tr>\n");
        buf_release(&point);
    }
    buf_puts(out, "</table></div>\n");
}

// The trials that none beats, with what is told of each.
static void put_objectives(Buf *out, const Analysis *a, Arena *arena)
{
    const Run *run = a->run;
    if (run->nobjective < 2)
        return;
    put_tag(out, "h2", "The front");
    if (!put_plot(out, a, "front", arena))
        return;
    buf_puts(out, "<div class=\"scroll\"><table>\n<tr><th class=\"r\">trial</th>");
    for (int k = 0; k < run->nobjective; k++)
        put_tag(out, "th class=\"r\"", run->objective[k]);
    buf_puts(out, "<th>point</th></tr>\n");
    for (int i = 0; i < run->n; i++) {
        Buf point;
        if (!run_in_front(run, i))
            continue;
        buf_init(&point);
        run_point(&point, run, &run->trial[i].point);
        buf_printf(out, "<tr><td class=\"r\">%d</td>", i + 1);
        for (int k = 0; k < run->nobjective; k++)
            buf_printf(out, "<td class=\"r\">%.4g</td>",
                       run->trial[i].value[run->nmetric + k]);
        buf_puts(out, "<td><code>");
        svg_escape(out, point.text);
        buf_puts(out, "</code></td></tr>\n");
        buf_release(&point);
    }
    buf_puts(out, "</table></div>\n");
}

static void put_kernel(Buf *out, const Analysis *a, Arena *arena)
{
    const Run *run = a->run;
    put_tag(out, "h2", "The best kernel");
    if (!isfinite(run->best_ns) || !run->kernel[0]) {
        buf_puts(out, "<p>No candidate was built, right and in time.</p>\n");
        return;
    }
    buf_puts(out, "<p>Point <code>");
    svg_escape(out, run->best_point);
    buf_printf(out, "</code>. Its outputs agree with the reference (");
    svg_escape(out, run->reference);
    buf_printf(out, "); the largest relative error of all right trials is %.2g.</p>\n",
               run->max_error);
    buf_puts(out, "<pre><code>");
    highlight_c(out, run->kernel);
    buf_puts(out, "</code></pre>\n<p>The fastest trials, as the search timed them. The "
                  "first few were timed again, side by side, before one was called the "
                  "best.</p>\n");
    put_best_table(out, a, arena);
}

static void put_fact(Buf *out, const char *term, const char *text)
{
    if (!text || !text[0])
        return;
    put_tag(out, "dt", term);
    put_tag(out, "dd", text);
}

static void put_reproduce(Buf *out, const Run *run, Arena *arena)
{
    Buf sizes;
    buf_init(&sizes);
    for (int i = 0; i < run->nsize; i++)
        buf_printf(&sizes, "%s%s=%lld", i ? ", " : "", run->size[i],
                   (long long)run->size_value[i]);
    put_tag(out, "h2", "How to do it again");
    buf_puts(out, "<pre><code>");
    svg_escape(out, run->command);
    buf_puts(out, "</code></pre>\n<dl>\n");
    put_fact(out, "program", run->file);
    put_fact(out, "sizes", sizes.text);
    put_fact(out, "seed", arena_printf(arena, "%llu", (unsigned long long)run->seed));
    put_fact(out, "only points where", run->where);
    put_fact(out, "arithmetic", run->math);
    put_fact(out, "device",
             arena_printf(arena, "%s (%s), fingerprint %s", run->device.name,
                          run->device.id, run->device.fingerprint));
    put_fact(out, "driver", run->device.driver);
    put_fact(out, "limits of the device", run->device.limits);
    for (int i = 0; i < run->nobjective; i++)
        put_fact(out, i ? "and" : "objective", run->objective[i]);
    put_fact(out, "sandbox", run->sandbox);
    put_fact(out, "language", run->target);
    put_fact(out, "forewarp", run->version);
    put_fact(out, "when", run->when);
    buf_puts(out,
             "</dl>\n<p class=\"soft\">The same seed gives the same inputs and, with a "
             "strategy that is not led by times, the same points. With the trials in "
             "the store the same command goes on where it stopped; "
             "<code>--fresh</code> forgets them first.</p>\n");
    buf_release(&sizes);
}

void report_run_page(Buf *out, const Analysis *a, Arena *arena)
{
    put_head(out, a->run, arena);
    put_search(out, a, arena);
    put_parameters(out, a, arena);
    put_models(out, a, arena);
    put_objectives(out, a, arena);
    put_kernel(out, a, arena);
    put_reproduce(out, a->run, arena);
    buf_puts(out, "</main>\n</body>\n</html>\n");
}
