// SPDX-License-Identifier: Apache-2.0
//
// The plots of the evaluation of 000, one SVG file each.
#include "report/knn.h"

#include "report/svg.h"

#include <errno.h>
#include <math.h>
#include <string.h>

typedef struct {
    const Eval *eval;
    const Dataset *data;
    Arena *arena;
    int size; // shown where the paper shows 4K
} Sheet;

// Where the time goes, in percent.
static void draw_figure2(Buf *out, const Sheet *sheet)
{
    const Dataset *data = sheet->data;
    const char **name = NEW_ARRAY(sheet->arena, const char *, data->nprogram + 1);
    double *share = NEW_ARRAY(sheet->arena, double, KNN_STAGES *(data->nprogram + 1));
    int n = 0;
    for (int p = 0; p <= data->nprogram; p++) {
        const char *program = p < data->nprogram ? data->program_name[p] : NULL;
        double s[KNN_STAGES];
        if (!report_knn_stages(data, program, s))
            continue;
        for (int i = 0; i < KNN_STAGES; i++)
            share[n * KNN_STAGES + i] = 100 * s[i] / (s[0] + s[1] + s[2]);
        name[n++] = program ? program : "all";
    }
    SvgPlot plot = {.width = 760,
                    .height = 380,
                    .title = "Where the time of exploring goes",
                    .y_label = "% of time",
                    .y_low = 0,
                    .y_high = 100};
    svg_open(out, 760, 380);
    svg_bars(out, &plot, name, n, knn_stage_name, KNN_STAGES, share, true);
    svg_close(out);
}

static void draw_figure3(Buf *out, const Sheet *sheet)
{
    const Dataset *data = sheet->data;
    const char **row = NEW_ARRAY(sheet->arena, const char *, data->nprogram + 1);
    double *share =
        NEW_ARRAY(sheet->arena, double, (int64_t)(data->nprogram + 1) * data->d);
    int n = 0;
    for (int g = 0; g < data->ngroup; g++)
        if (data->group_at[g].size == sheet->size && data->group_at[g].ok) {
            row[n] = data->program_name[data->group_at[g].program];
            report_knn_shape(data, sheet->size, g, share + n++ * data->d);
        }
    row[n] = "mean of all";
    report_knn_shape(data, sheet->size, -1, share + n++ * data->d);
    int width = 190 + 48 * data->d, height = 120 + 26 * n;
    SvgPlot plot = {.width = width,
                    .height = height,
                    .title = arena_printf(sheet->arena,
                                          "Features of the best points, size %s: least 0, "
                                          "most 1",
                                          data->size_name[sheet->size])};
    svg_open(out, width, height);
    svg_heat(out, &plot, row, n, data->feature, data->d, share, 2);
    svg_close(out);
}

static void draw_figure4(Buf *out, const Sheet *sheet)
{
    int d = sheet->data->d;
    const char **name = NEW_ARRAY(sheet->arena, const char *, d);
    double *value = NEW_ARRAY(sheet->arena, double, d);
    for (int f = 0; f < d; f++) {
        name[f] = sheet->data->feature[sheet->eval->feature[f].feature];
        value[f] = sheet->eval->feature[f].redundancy;
    }
    SvgPlot plot = {.width = 760,
                    .height = 380,
                    .title = "Redundancy between each feature and throughput",
                    .y_label = "I(X;Y) / (H(X) + H(Y))"};
    svg_open(out, 760, 380);
    svg_bars(out, &plot, name, d, &plot.title, 1, value, false);
    svg_close(out);
}

// A cell for each program and size, by the number asked for: shaded from 0 to high, or by
// its logarithm if high is 0.
static void draw_pairs(Buf *out, const Sheet *sheet, double y, const char *title,
                       double (*get)(const EvalGroup *), int decimals, double high)
{
    const Dataset *data = sheet->data;
    int n = data->nprogram * data->nsize;
    double *value = NEW_ARRAY(sheet->arena, double, n);
    for (int i = 0; i < n; i++)
        value[i] = NAN;
    for (int i = 0; i < sheet->eval->ngroup; i++) {
        const EvalGroup *g = &sheet->eval->group[i];
        const DatasetGroup *at = &data->group_at[g->group];
        value[at->program * data->nsize + at->size] = get(g);
    }
    SvgPlot plot = {.y = y,
                    .width = 560,
                    .height = 90 + 26 * data->nprogram,
                    .title = title,
                    .x_label = "size",
                    .y_log = high <= 0,
                    .y_high = high};
    svg_heat(out, &plot, data->program_name, data->nprogram, data->size_name, data->nsize,
             value, decimals);
}

static double get_pearson(const EvalGroup *g)
{
    return g->pearson;
}
static double get_model(const EvalGroup *g)
{
    return g->model.runs;
}
static double get_random(const EvalGroup *g)
{
    return g->random.runs;
}

enum { SHOWN_POINTS = 400 }; // of a program, in the scatter plot

// Predicted against measured, an even choice of the rows that ran.
static SvgSeries sample_points(const Sheet *sheet, int program)
{
    const Dataset *data = sheet->data;
    SvgSeries s = {.name = data->program_name[program], .colour = program};
    double *x = NEW_ARRAY(sheet->arena, double, SHOWN_POINTS);
    double *y = NEW_ARRAY(sheet->arena, double, SHOWN_POINTS);
    int total = 0, seen = 0;
    for (int i = 0; i < data->n; i++)
        total += data->program[i] == program && !isnan(data->time_ns[i]);
    for (int i = 0; i < data->n; i++) {
        if (data->program[i] != program || isnan(data->time_ns[i]))
            continue;
        if ((int64_t)seen++ * MIN(SHOWN_POINTS, total) < (int64_t)s.n * total)
            continue;
        x[s.n] = data->throughput[i];
        y[s.n++] = sheet->eval->predicted[i];
    }
    s.x = x;
    s.y = y;
    return s;
}

static void draw_correlation(Buf *out, const Sheet *sheet)
{
    const Dataset *data = sheet->data;
    SvgSeries *series = NEW_ARRAY(sheet->arena, SvgSeries, data->nprogram);
    for (int p = 0; p < data->nprogram; p++)
        series[p] = sample_points(sheet, p);
    int below = 90 + 26 * data->nprogram;
    SvgPlot plot = {.y = below,
                    .width = 560,
                    .height = 460,
                    .title = "Predicted and measured throughput of the best",
                    .x_label = "measured",
                    .y_label = "predicted",
                    .y_low = 0,
                    .y_high = 1};
    svg_open(out, 560, below + 460);
    draw_pairs(out, sheet, 0, "Correlation of predicted and measured throughput",
               get_pearson, 2, 1);
    svg_scatter(out, &plot, series, data->nprogram);
    svg_close(out);
}

static void draw_curves(Buf *out, const Sheet *sheet, const EvalGroup *g, int at)
{
    const Dataset *data = sheet->data;
    double *runs = NEW_ARRAY(sheet->arena, double, g->curve);
    for (int i = 0; i < g->curve; i++)
        runs[i] = i + 1;
    SvgSeries series[] = {
        {"model", runs, g->model_curve, g->curve, .colour = 0, .step = true},
        {"random", runs, g->random_curve, g->curve, .colour = 1, .dashed = true}};
    SvgPlot plot = {.x = 390 * (at % 2),
                    .y = 240 * (at / 2),
                    .width = 390,
                    .height = 240,
                    .title = data->program_name[data->group_at[g->group].program],
                    .x_label = "runs",
                    .y_label = "best throughput",
                    .x_log = true,
                    .y_low = 0,
                    .y_high = 1};
    svg_lines(out, &plot, series, COUNTOF(series));
}

static void draw_figure5(Buf *out, const Sheet *sheet)
{
    int n = 0;
    for (int i = 0; i < sheet->eval->ngroup; i++)
        n += sheet->data->group_at[sheet->eval->group[i].group].size == sheet->size;
    svg_open(out, 780, MAX(240 * ((n + 1) / 2), 1));
    for (int i = 0, at = 0; i < sheet->eval->ngroup; i++) {
        const EvalGroup *g = &sheet->eval->group[i];
        if (sheet->data->group_at[g->group].size == sheet->size)
            draw_curves(out, sheet, g, at++);
    }
    svg_close(out);
}

static void draw_figure6(Buf *out, const Sheet *sheet)
{
    static const char *const series[] = {"runs", "time"};
    const Eval *e = sheet->eval;
    int n = e->data->nprogram;
    const char **name = NEW_ARRAY(sheet->arena, const char *, n + 1);
    double *value = NEW_ARRAY(sheet->arena, double, 2 * (n + 1));
    for (int p = 0; p <= n; p++) {
        name[p] = p < n ? e->data->program_name[p] : "geometric mean";
        value[2 * p] = p < n ? e->fewer_runs[p] : e->summary.fewer_runs;
        value[2 * p + 1] = p < n ? e->less_time[p] : e->summary.less_time;
    }
    SvgPlot plot = {.width = 760,
                    .height = 380,
                    .y_log = true,
                    .title = arena_printf(sheet->arena,
                                          "Times less than random search, to %.0f %% of "
                                          "the best",
                                          100 * e->goal),
                    .y_label = "random / model"};
    svg_open(out, 760, 380);
    svg_bars(out, &plot, name, n + 1, series, 2, value, false);
    svg_close(out);
}

static void draw_figure7(Buf *out, const Sheet *sheet)
{
    int height = 90 + 26 * sheet->data->nprogram;
    svg_open(out, 560, 2 * height);
    draw_pairs(out, sheet, 0, "Runs needed with the model", get_model, 1, 0);
    draw_pairs(out, sheet, height, "Runs needed at random", get_random, 1, 0);
    svg_close(out);
}

static bool write_sheet(const Sheet *sheet, const char *folder, const char *name,
                        void (*draw)(Buf *, const Sheet *), Diags *diags)
{
    Buf out;
    buf_init(&out);
    draw(&out, sheet);
    const char *path = arena_printf(sheet->arena, "%s/%s.svg", folder, name);
    bool ok = file_write(path, out.text, out.len);
    if (!ok)
        diag_world(diags, "G001", "cannot write %s: %s", path, strerror(errno));
    buf_release(&out);
    return ok;
}

bool report_knn_svg(const Eval *e, const char *folder, Diags *diags)
{
    static const struct {
        const char *name;
        void (*draw)(Buf *, const Sheet *);
    } sheets[] = {{"figure2", draw_figure2}, {"figure3", draw_figure3},
                  {"figure4", draw_figure4}, {"correlation", draw_correlation},
                  {"figure5", draw_figure5}, {"figure6", draw_figure6},
                  {"figure7", draw_figure7}};
    if (!file_mkdirs(folder))
        return diag_world(diags, "G001", "cannot make %s: %s", folder, strerror(errno));
    Sheet sheet = {e, e->data, arena_new(), report_knn_size(e->data)};
    bool ok = true;
    for (int i = 0; i < COUNTOF(sheets) && ok; i++)
        ok = write_sheet(&sheet, folder, sheets[i].name, sheets[i].draw, diags);
    arena_free(sheet.arena);
    return ok;
}
