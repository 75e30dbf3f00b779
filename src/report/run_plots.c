// SPDX-License-Identifier: Apache-2.0
//
// The plots of a tuning's report, each from its record alone.
#include "report/run.h"
#include "report/svg.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { WIDTH = 780, TIPS_MOST = 4000, FEATURES_SHOWN = 12, PANEL_COLUMNS = 3 };

// Units ---------------------------------------------------------------------------------

typedef struct {
    const char *name;
    double ns;
} TimeUnit;

// The unit in which times of this order are read best.
static TimeUnit unit_of(double ns)
{
    static const TimeUnit unit[] = {{"ns", 1}, {"\u00b5s", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    int i = 0;
    while (i + 1 < COUNTOF(unit) && ns >= unit[i + 1].ns)
        i++;
    return unit[i];
}

static double best_ns(const Analysis *a)
{
    double best = INFINITY;
    for (int i = 0; i < a->nok; i++)
        best = fmin(best, a->run->trial[a->ok[i]].time_ns);
    return best;
}

static double worst_ns(const Analysis *a)
{
    double worst = 0;
    for (int i = 0; i < a->nok; i++)
        worst = fmax(worst, a->run->trial[a->ok[i]].time_ns);
    return worst;
}

// The unit of the axis that all trials share.
static TimeUnit axis_unit(const Analysis *a)
{
    return unit_of(sqrt(best_ns(a) * worst_ns(a)));
}

// Search ----------------------------------------------------------------------------------

static const char *trial_tip(const Run *run, int i, TimeUnit unit, Arena *arena)
{
    const RunTrial *trial = &run->trial[i];
    Buf text;
    buf_init(&text);
    buf_printf(&text, "trial %d: ", i + 1);
    if (trial->status == TRIAL_OK)
        buf_printf(&text, "%.4g %s%s; ", trial->time_ns / unit.ns, unit.name,
                   trial->cut ? ", stopped early" : "");
    else
        buf_printf(&text, "%s; ", trial_status_name[trial->status]);
    run_point(&text, run, &trial->point);
    return buf_keep(&text, arena);
}

// The trials of one status (and, of those that ran, cut or not) as dots; those without a
// time stand at `height`.
static SvgSeries dots_of(const Analysis *a, TrialStatus status, bool cut, double height,
                         TimeUnit unit, Arena *arena)
{
    const Run *run = a->run;
    double *x = NEW_ARRAY(arena, double, run->n + 1);
    double *y = NEW_ARRAY(arena, double, run->n + 1);
    const char **tip = NEW_ARRAY(arena, const char *, run->n + 1);
    SvgSeries s = {.x = x, .y = y, .dots = true, .radius = 2.2, .tip = tip};
    for (int i = 0; i < run->n; i++) {
        const RunTrial *trial = &run->trial[i];
        if (trial->status != status || (status == TRIAL_OK && trial->cut != cut))
            continue;
        x[s.n] = i + 1;
        y[s.n] = status == TRIAL_OK ? trial->time_ns / unit.ns : height;
        tip[s.n++] = run->n <= TIPS_MOST ? trial_tip(run, i, unit, arena) : NULL;
    }
    return s;
}

static SvgSeries best_so_far(const Analysis *a, TimeUnit unit, Arena *arena)
{
    double *x = NEW_ARRAY(arena, double, a->nok + 2), best = INFINITY;
    double *y = NEW_ARRAY(arena, double, a->nok + 2);
    SvgSeries s = {.name = "best so far", .x = x, .y = y, .colour = 1, .step = true};
    for (int i = 0; i < a->nok; i++) {
        double ns = a->run->trial[a->ok[i]].time_ns;
        if (ns >= best)
            continue;
        best = ns;
        x[s.n] = a->ok[i] + 1;
        y[s.n++] = ns / unit.ns;
    }
    x[s.n] = a->run->n;
    y[s.n++] = best / unit.ns;
    return s;
}

// A time that all trials are compared with, as a line.
static SvgSeries level(const char *name, double ns, int colour, const Run *run,
                       TimeUnit unit, Arena *arena)
{
    double *x = NEW_ARRAY(arena, double, 2), *y = NEW_ARRAY(arena, double, 2);
    x[0] = 1;
    x[1] = run->n;
    y[0] = y[1] = ns / unit.ns;
    return (SvgSeries){
        .name = name, .x = x, .y = y, .n = 2, .colour = colour, .dashed = true};
}

static bool draw_search(Buf *out, const Analysis *a, Arena *arena)
{
    if (!a->nok)
        return false;
    TimeUnit unit = axis_unit(a);
    double height = 1.5 * worst_ns(a) / unit.ns;
    SvgSeries series[TRIAL_STATUS_COUNT + 4], s;
    int n = 0, colour = 3;
    s = dots_of(a, TRIAL_OK, false, height, unit, arena);
    s.name = s.n ? "ok" : NULL;
    series[n++] = s;
    s = dots_of(a, TRIAL_OK, true, height, unit, arena);
    s.name = s.n ? "stopped early" : NULL;
    s.hollow = true;
    s.colour = 5;
    series[n++] = s;
    for (int status = 0; status < TRIAL_STATUS_COUNT; status++) {
        if (status == TRIAL_OK)
            continue;
        s = dots_of(a, (TrialStatus)status, false, height, unit, arena);
        s.name = s.n ? trial_status_name[status] : NULL;
        s.colour = colour;
        colour += s.n > 0;
        if (s.n)
            series[n++] = s;
    }
    series[n++] = best_so_far(a, unit, arena);
    if (isfinite(a->run->baseline_ns))
        series[n++] = level("plain kernel", a->run->baseline_ns, 6, a->run, unit, arena);
    if (run_floor_ns(a->run) > 0)
        series[n++] = level("floor", run_floor_ns(a->run), 2, a->run, unit, arena);
    SvgPlot plot = {.width = WIDTH,
                    .height = 340,
                    .title = "Time of every trial",
                    .x_label = "trial",
                    .y_label = arena_printf(arena, "time, %s", unit.name),
                    .y_log = true};
    svg_open(out, WIDTH, 340);
    svg_lines(out, &plot, series, n);
    svg_close(out);
    return true;
}

static bool draw_distribution(Buf *out, const Analysis *a, Arena *arena)
{
    if (a->nok < 2)
        return false;
    TimeUnit unit = axis_unit(a);
    double *value = NEW_ARRAY(arena, double, a->nok);
    for (int i = 0; i < a->nok; i++)
        value[i] = a->run->trial[a->ok[i]].time_ns / unit.ns;
    SvgPlot plot = {.width = WIDTH,
                    .height = 260,
                    .title = "How the times are distributed",
                    .x_label = arena_printf(arena, "time, %s", unit.name),
                    .y_label = "trials",
                    .x_log = true};
    svg_open(out, WIDTH, 260);
    svg_histogram(out, &plot, value, a->nok, 40);
    svg_close(out);
    return true;
}

// Parameters ----------------------------------------------------------------------------

// The times of the trials in which a parameter has a value.
static SvgRange range_of(const Analysis *a, int param, int choice, TimeUnit unit,
                         Arena *arena)
{
    double *ns = NEW_ARRAY(arena, double, a->nok + 1);
    SvgRange r = {a->run->param[param].value[choice], NAN, NAN, NAN, NAN, 0};
    for (int i = 0; i < a->nok; i++) {
        const RunTrial *trial = &a->run->trial[a->ok[i]];
        if (trial->point.choice[param] == choice)
            ns[r.n++] = trial->time_ns / unit.ns;
    }
    if (!r.n)
        return r;
    sort_doubles(ns, r.n);
    r.least = ns[0];
    r.low = ns[(r.n - 1) / 4];
    r.median = metric_median(ns, r.n);
    r.high = ns[(3 * (r.n - 1) + 3) / 4];
    return r;
}

enum { VALUES_SHOWN = 14 };

// The values that were tried: all, or the most frequent of many.
static int ranges_of(const Analysis *a, int param, TimeUnit unit, Arena *arena,
                     SvgRange range[VALUES_SHOWN])
{
    const RunParam *p = &a->run->param[param];
    SvgRange *all = NEW_ARRAY(arena, SvgRange, p->n + 1);
    int n = 0, shown = 0, least = 1;
    for (int k = 0; k < p->n; k++) {
        all[n] = range_of(a, param, k, unit, arena);
        n += all[n].n > 0;
    }
    for (int more = n; more > VALUES_SHOWN; least++) {
        more = 0;
        for (int i = 0; i < n; i++)
            more += all[i].n > least;
    }
    for (int i = 0; i < n && shown < VALUES_SHOWN; i++)
        if (all[i].n >= least)
            range[shown++] = all[i];
    return shown;
}

static bool draw_parameters(Buf *out, const Analysis *a, Arena *arena)
{
    enum { HIGH = 200 };
    SvgRange(*range)[VALUES_SHOWN] =
        arena_alloc(arena, sizeof *range * (size_t)(a->run->nparam + 1));
    int *n = NEW_ARRAY(arena, int, a->run->nparam + 1), panels = 0;
    int *param = NEW_ARRAY(arena, int, a->run->nparam + 1);
    if (!a->nok)
        return false;
    TimeUnit unit = axis_unit(a);
    double low = INFINITY, high = 0;
    for (int i = 0; i < a->run->nparam; i++) {
        n[panels] = ranges_of(a, a->order[i], unit, arena, range[panels]);
        param[panels] = a->order[i];
        for (int k = 0; k < n[panels]; k++) {
            low = fmin(low, range[panels][k].least);
            high = fmax(high, range[panels][k].high);
        }
        panels += n[panels] > 1;
    }
    if (!panels)
        return false;
    int rows = (panels + PANEL_COLUMNS - 1) / PANEL_COLUMNS;
    double wide = (double)WIDTH / PANEL_COLUMNS;
    svg_open(out, WIDTH, HIGH * rows);
    for (int i = 0; i < panels; i++) {
        SvgPlot plot = {.x = wide * (i % PANEL_COLUMNS),
                        .y = HIGH * (i / PANEL_COLUMNS),
                        .width = wide,
                        .height = HIGH,
                        .title = a->run->param[param[i]].name,
                        .y_label = i % PANEL_COLUMNS
                                       ? NULL
                                       : arena_printf(arena, "time, %s", unit.name),
                        .y_log = true,
                        .y_low = 0.95 * low,
                        .y_high = 1.05 * high};
        svg_ranges(out, &plot, range[i], n[i]);
    }
    svg_close(out);
    return true;
}

// The best time of each pair of values of the two parameters that matter most.
static bool draw_pair(Buf *out, const Analysis *a, Arena *arena)
{
    const Run *run = a->run;
    if (!isfinite(a->explained) || run->nparam < 2)
        return false;
    const RunParam *row = &run->param[a->order[0]], *column = &run->param[a->order[1]];
    if (row->n < 2 || column->n < 2 || row->n > VALUES_SHOWN || column->n > VALUES_SHOWN)
        return false;
    TimeUnit unit = axis_unit(a);
    double *best = NEW_ARRAY(arena, double, row->n * column->n);
    for (int i = 0; i < row->n * column->n; i++)
        best[i] = NAN;
    for (int i = 0; i < a->nok; i++) {
        const RunTrial *trial = &run->trial[a->ok[i]];
        double *cell = &best[trial->point.choice[a->order[0]] * column->n +
                             trial->point.choice[a->order[1]]];
        *cell = fmin(isnan(*cell) ? INFINITY : *cell, trial->time_ns / unit.ns);
    }
    int height = 90 + 26 * row->n;
    SvgPlot plot = {.width = WIDTH,
                    .height = height,
                    .title = arena_printf(arena, "Best time of pairs, %s", unit.name),
                    .x_label = column->name,
                    .y_label = row->name,
                    .y_log = true};
    svg_open(out, WIDTH, height);
    svg_heat(out, &plot, row->value, row->n, column->value, column->n, best,
             best_ns(a) < 100 * unit.ns ? 2 : 0);
    svg_close(out);
    return true;
}

static void draw_rows(Buf *out, const char *title, const char *x_label,
                      const char *const *label, int n, const double *value)
{
    int height = 80 + 22 * n;
    SvgPlot plot = {.width = WIDTH, .height = height, .title = title, .x_label = x_label};
    svg_open(out, WIDTH, height);
    svg_rows(out, &plot, label, n, value, 3);
    svg_close(out);
}

static bool draw_importance(Buf *out, const Analysis *a, Arena *arena)
{
    const char **label = NEW_ARRAY(arena, const char *, a->run->nparam + 1);
    double *value = NEW_ARRAY(arena, double, a->run->nparam + 1);
    int n = 0;
    if (!isfinite(a->explained))
        return false;
    for (int i = 0; i < a->run->nparam; i++)
        if (a->run->param[a->order[i]].n > 1) {
            label[n] = a->run->param[a->order[i]].name;
            value[n++] = fmax(a->importance[a->order[i]], 0);
        }
    if (n)
        draw_rows(out, "Importance of the parameters",
                  arena_printf(arena,
                               "variance of the times that is lost when a parameter is "
                               "shuffled (of %.0f %% explained)",
                               100 * fmax(a->explained, 0)),
                  label, n, value);
    return n > 0;
}

static bool draw_features(Buf *out, const Analysis *a, Arena *arena)
{
    const char **label = NEW_ARRAY(arena, const char *, FEATURES);
    double *value = NEW_ARRAY(arena, double, FEATURES);
    int n = 0;
    for (int f = 0; f < FEATURES && a->feature.n >= 10; f++) {
        double v = a->redundancy[f];
        if (!(v > 0) || (n == FEATURES_SHOWN && v <= value[n - 1]))
            continue;
        int at = n < FEATURES_SHOWN ? n++ : n - 1;
        for (; at > 0 && value[at - 1] < v; at--) {
            value[at] = value[at - 1];
            label[at] = label[at - 1];
        }
        value[at] = v;
        label[at] = feature_info[f].name;
    }
    if (n)
        draw_rows(out, "What features tell of the time",
                  "mutual information with the time, I / (H + H): 0 nothing, 0.5 all",
                  label, n, value);
    return n > 0;
}

// Models --------------------------------------------------------------------------------

static const char **kernel_tips(const Analysis *a, TimeUnit unit, Arena *arena)
{
    const char **tip = NEW_ARRAY(arena, const char *, a->nkernel + 1);
    for (int i = 0; i < a->nkernel; i++)
        tip[i] = trial_tip(a->run, a->kernel[i], unit, arena);
    return tip;
}

static void draw_prediction(Buf *out, const Analysis *a, const Prediction *p, double x,
                            double width, Arena *arena)
{
    TimeUnit unit = axis_unit(a);
    double *measured = NEW_ARRAY(arena, double, a->nkernel + 1);
    double *predicted = NEW_ARRAY(arena, double, a->nkernel + 1);
    double best = best_ns(a), ends[2] = {INFINITY, 0};
    for (int i = 0; i < a->nkernel; i++) {
        double ns = a->run->trial[a->kernel[i]].time_ns;
        measured[i] = p->is_time ? ns / unit.ns : best / ns;
        predicted[i] = p->is_time ? p->value[i] / unit.ns : p->value[i];
        ends[0] = fmin(ends[0], fmin(measured[i], predicted[i]));
        ends[1] = fmax(ends[1], fmax(measured[i], predicted[i]));
    }
    if (!p->is_time) {
        ends[0] = 0;
        ends[1] = 1;
    }
    SvgSeries series[] = {{.x = ends, .y = ends, .n = 2, .colour = 6, .dashed = true},
                          {.x = measured,
                           .y = predicted,
                           .n = a->nkernel,
                           .dots = true,
                           .radius = 2.2,
                           .tip = kernel_tips(a, unit, arena)}};
    const char *what = p->is_time ? arena_printf(arena, "time, %s", unit.name)
                                  : "speed relative to the best";
    SvgPlot plot = {.x = x,
                    .width = width,
                    .height = 380,
                    .title = arena_printf(arena, "%s%s: rank correlation %.2f", p->model,
                                          a->feature.n ? "" : " of the other trials",
                                          p->spearman),
                    .x_label = arena_printf(arena, "measured %s", what),
                    .y_label = arena_printf(arena, "predicted %s", what),
                    .x_log = p->is_time,
                    .y_log = p->is_time};
    svg_lines(out, &plot, series, COUNTOF(series));
}

static bool draw_predicted(Buf *out, const Analysis *a, Arena *arena)
{
    int n = 0, at = 0;
    for (int i = 0; i < ANALYSIS_MODELS; i++)
        n += a->predicted[i].model != NULL && a->nkernel > 1;
    if (!n)
        return false;
    double width = (double)WIDTH / MAX(n, 2);
    svg_open(out, (int)(width * n), 380);
    for (int i = 0; i < ANALYSIS_MODELS; i++)
        if (a->predicted[i].model)
            draw_prediction(out, a, &a->predicted[i], width * at++, width, arena);
    svg_close(out);
    return true;
}

// Roofline ------------------------------------------------------------------------------

// The roof from low to high intensity: along the slope of the bandwidth, then flat.
static SvgSeries make_roof(const Run *run, double low, double high, Arena *arena)
{
    double slope = run->bytes / run->copy_ns, peak = run->flops / run->compute_ns;
    double knee = peak / slope, *x = NEW_ARRAY(arena, double, 3),
           *y = NEW_ARRAY(arena, double, 3);
    x[0] = fmin(low, knee / 2);
    x[1] = knee;
    x[2] = fmax(high, 2 * knee);
    y[0] = slope * x[0];
    y[1] = y[2] = peak;
    return (SvgSeries){.name = "roof, measured", .x = x, .y = y, .n = 3, .colour = 6};
}

static bool has_roof(const Run *run)
{
    return run->flops > 0 && isfinite(run->copy_ns) && run->copy_ns > 0 &&
           isfinite(run->compute_ns) && run->compute_ns > 0;
}

// The kernels by intensity and speed.
typedef struct {
    double *x, *y;
    double low, high; // intensities, and that of each byte once
    double slowest;
    int best;
} Candidates;

static Candidates place_candidates(const Analysis *a, double least, Arena *arena)
{
    Candidates c = {.x = NEW_ARRAY(arena, double, a->nkernel),
                    .y = NEW_ARRAY(arena, double, a->nkernel),
                    .low = least,
                    .high = least,
                    .slowest = INFINITY};
    for (int i = 0; i < a->nkernel; i++) {
        c.x[i] = matrix_row(&a->feature, i)[FEATURE_INTENSITY];
        c.y[i] = a->run->flops / a->run->trial[a->kernel[i]].time_ns;
        if (c.x[i] > 0) {
            c.low = fmin(c.low, c.x[i]);
            c.high = fmax(c.high, c.x[i]);
        }
        c.slowest = fmin(c.slowest, c.y[i]);
        if (c.y[i] > c.y[c.best])
            c.best = i;
    }
    return c;
}

static bool draw_roofline(Buf *out, const Analysis *a, Arena *arena)
{
    const Run *run = a->run;
    if (!has_roof(run) || !a->nkernel || !a->feature.n)
        return false;
    double least = run->flops / run->bytes;
    Candidates c = place_candidates(a, least, arena);
    SvgSeries roof = make_roof(run, c.low / 1.5, c.high, arena);
    double bound[2] = {least, least}, foot[2] = {c.slowest, roof.y[1]};
    SvgSeries series[] = {roof,
                          {.name = "each byte once",
                           .x = bound,
                           .y = foot,
                           .n = 2,
                           .colour = 2,
                           .dashed = true},
                          {.name = "candidates",
                           .x = c.x,
                           .y = c.y,
                           .n = a->nkernel,
                           .dots = true,
                           .radius = 2.2,
                           .tip = kernel_tips(a, axis_unit(a), arena)},
                          {.name = "best",
                           .x = &c.x[c.best],
                           .y = &c.y[c.best],
                           .n = 1,
                           .colour = 1,
                           .dots = true,
                           .hollow = true,
                           .radius = 5}};
    SvgPlot plot = {.width = WIDTH,
                    .height = 380,
                    .title = "Roofline",
                    .x_label = "floating-point operations a byte of the lines that a "
                               "group touches",
                    .y_label = "Gflop/s",
                    .x_log = true,
                    .y_log = true};
    svg_open(out, WIDTH, 380);
    svg_lines(out, &plot, series, COUNTOF(series));
    svg_close(out);
    return true;
}

// Objectives ----------------------------------------------------------------------------

// The right trials by two objectives, those of the front or the others.
static SvgSeries place_objectives(const Analysis *a, bool front, Arena *arena)
{
    const Run *run = a->run;
    double *x = NEW_ARRAY(arena, double, a->nok + 1);
    double *y = NEW_ARRAY(arena, double, a->nok + 1);
    const char **tip = NEW_ARRAY(arena, const char *, a->nok + 1);
    TimeUnit unit = axis_unit(a);
    SvgSeries s = {.x = x, .y = y, .dots = true, .radius = front ? 4 : 2.2, .tip = tip};
    for (int i = 0; i < a->nok; i++) {
        const double *value = run->trial[a->ok[i]].value;
        if (!value || run_in_front(run, a->ok[i]) != front ||
            !isfinite(value[run->nmetric] + value[run->nmetric + 1]))
            continue;
        x[s.n] = value[run->nmetric];
        y[s.n] = value[run->nmetric + 1];
        tip[s.n++] = trial_tip(run, a->ok[i], unit, arena);
    }
    return s;
}

static bool draw_front(Buf *out, const Analysis *a, Arena *arena)
{
    const Run *run = a->run;
    if (run->nobjective < 2 || !a->nok)
        return false;
    SvgSeries series[] = {place_objectives(a, false, arena),
                          place_objectives(a, true, arena)};
    series[0].name = series[0].n ? "beaten" : NULL;
    series[1].name = "the front";
    series[1].colour = 1;
    if (!series[1].n)
        return false;
    SvgPlot plot = {.width = WIDTH,
                    .height = 380,
                    .title = "Objectives",
                    .x_label = run->objective[0],
                    .y_label = run->objective[1]};
    svg_open(out, WIDTH, 380);
    svg_lines(out, &plot, series, COUNTOF(series));
    svg_close(out);
    return true;
}

// All of them ---------------------------------------------------------------------------

const RunPlot run_plot[RUN_PLOTS] = {
    {"search",
     "A dot a trial, in the order in which they ended; the line is the best so far. A "
     "trial that is clearly worse than the best is stopped early. Trials that failed have "
     "no time and stand along the top. The floor is what a copy of the bytes, or the "
     "operations alone, would take.",
     draw_search},
    {"distribution", "The same times without their order: how rare fast kernels are.",
     draw_distribution},
    {"importance",
     "A forest is fitted to the trials and asked for those it has not seen; then a "
     "parameter's values are shuffled. What the prediction loses is the parameter's share. "
     "Parameters that say the same share their importance.",
     draw_importance},
    {"parameters",
     "For each value that was tried: the middle half of its times, the median, and the "
     "best as a dot. A search that learns tries good values more often, so medians flatter "
     "them; the dots do not.",
     draw_parameters},
    {"pair",
     "The two parameters that matter most, together: the best time that was found for each "
     "pair of their values, dark where slow. Grey: not tried, or none ran.",
     draw_pair},
    {"features",
     "Static features of the kernels, found without running them. Those that tell most of "
     "the time come first.",
     draw_features},
    {"predicted",
     "What models say of the kernels that ran, without having run them, beside what was "
     "measured. On the dashed line they are right. The forest of a template knows its "
     "parameters and the other trials.",
     draw_predicted},
    {"roofline",
     "Above the roof nothing can run that takes all its bytes from memory. Bytes are those "
     "of the cache lines that each work-group touches: where groups share lines through a "
     "cache a dot may stand above the slope. Left of the dashed line lines are loaded more "
     "than once.",
     draw_roofline},
    {"front",
     "The first two objectives of all trials that were right. A trial of the front is "
     "beaten by none: whatever is better in one objective is worse in another.",
     draw_front},
};

bool report_run_svg(const Analysis *analysis, const char *folder, Arena *arena,
                    Diags *diags)
{
    bool ok = file_mkdirs(folder) ||
              diag_world(diags, "G001", "cannot make %s: %s", folder, strerror(errno));
    for (int i = 0; i < RUN_PLOTS && ok; i++) {
        Buf out;
        buf_init(&out);
        const char *path = arena_printf(arena, "%s/%s.svg", folder, run_plot[i].name);
        if (run_plot[i].svg(&out, analysis, arena) && !file_write(path, out.text, out.len))
            ok = diag_world(diags, "G001", "cannot write %s: %s", path, strerror(errno));
        buf_release(&out);
    }
    return ok;
}
