// SPDX-License-Identifier: Apache-2.0
//
// forewarp fit linear: weights from measured kernels.
// forewarp eval linear: the table of paper 003 (its Table 1) from measured kernels: weights
// are fitted to the measurement kernels, and predict the four test kernels, which the fit
// has not seen. Errors are |predicted - measured| / measured; their means are geometric.
// With --points: how near the best are the points that the weights put first.

#include "cli/cli.h"

#include "calibrate/calibrate.h"
#include "evaluate/select.h"

#include <math.h>
#include <string.h>

// What is compared: the paper's properties, those and what doc/counts.md adds to them, and
// the model of overlapping parts.
typedef enum { BY_PAPER, BY_COUNTS, BY_DEMANDS, MODELS } Way;
static const char *const way_name[MODELS] = {"the paper's properties, added up",
                                             "properties by bytes, arrays, idle units",
                                             "demands that overlap"};

typedef struct {
    const Measured *row;
    double predicted_ns, error[MODELS];
} Case;

typedef VEC(Case) Cases;

enum { SIZES = 4 }; // of each kernel: the largest

static bool is_large(const Calibration *c, const Measured *row)
{
    int64_t larger[SIZES];
    int n = 0;
    for (int i = 0; i < c->rows.len && n < SIZES; i++) {
        const Measured *other = &c->rows.at[i];
        bool seen = strcmp(other->kernel, row->kernel) != 0 || other->n <= row->n;
        for (int k = 0; k < n; k++)
            seen |= larger[k] == other->n;
        if (!seen)
            larger[n++] = other->n;
    }
    return n < SIZES;
}

static double predict_row(const Weights *w, Way way, const Measured *row)
{
    double cost[PROPERTIES], part[DEMANDS];
    return 1e9 * (way == BY_DEMANDS ? weights_overlap(w, &row->demand, 1, part)
                                    : weights_predict(w, row->count, cost));
}

// The one that predictions on such a device are made with.
static Way way_used(const Calibration *c)
{
    return c->device.is_cpu ? BY_PAPER : c->demands ? BY_DEMANDS : BY_COUNTS;
}

// One shape of group a size: the first measured. w: of each way.
static void find_cases(Options *o, const Calibration *c, const Weights *w, Cases *cases)
{
    for (int i = 0; i < c->rows.len; i++) {
        const Measured *row = &c->rows.at[i];
        bool seen = row->class != CLASS_TEST || !is_large(c, row);
        for (int k = 0; k < cases->len; k++)
            seen |= strcmp(cases->at[k].row->kernel, row->kernel) == 0 &&
                    cases->at[k].row->n == row->n;
        if (seen)
            continue;
        Case found = {.row = row};
        for (int way = 0; way < MODELS; way++) {
            double ns =
                way == BY_DEMANDS && !c->demands ? 0 : predict_row(&w[way], way, row);
            found.error[way] = fabs(ns - row->time_ns) / row->time_ns;
            found.predicted_ns = way == (int)way_used(c) ? ns : found.predicted_ns;
        }
        VEC_PUSH(o->arena, cases, found);
    }
}

// The mean error over the cases of that kernel, or over all.
static double mean_error(const Cases *cases, Way way, const char *kernel)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < cases->len; i++)
        if (!kernel || strcmp(cases->at[i].row->kernel, kernel) == 0) {
            sum += log(fmax(cases->at[i].error[way], 1e-4));
            n++;
        }
    return exp(sum / MAX(n, 1));
}

static json_t *print_case(const Cases *cases, int i, Way way, bool print)
{
    const Case *c = &cases->at[i];
    const char *kernel = c->row->kernel;
    bool last = i + 1 == cases->len || strcmp(cases->at[i + 1].row->kernel, kernel) != 0;
    if (print) {
        printf("%-20s  %8lld  %12.4f  %12.4f  %6.1f %%\n", kernel, (long long)c->row->n,
               c->predicted_ns * 1e-6, c->row->time_ns * 1e-6, 100 * c->error[way]);
        if (last)
            printf("%-20s  %8s  %12s  %12s  %6.1f %%\n", "", "", "", "geomean",
                   100 * mean_error(cases, way, kernel));
    }
    return json_pack("{s:s, s:I, s:f, s:f, s:f}", "kernel", kernel, "n",
                     (json_int_t)c->row->n, "predicted_ms", c->predicted_ns * 1e-6,
                     "measured_ms", c->row->time_ns * 1e-6, "error", c->error[way]);
}

// A row for each model, a column for each kernel.
static void print_ways(const Cases *cases, int ways)
{
    printf("\n%-42s", "geometric means, %");
    for (int i = 0; i < cases->len; i++)
        if (!i || strcmp(cases->at[i].row->kernel, cases->at[i - 1].row->kernel) != 0)
            printf("  %.10s", cases->at[i].row->kernel);
    printf("%12s\n", "all");
    for (int way = 0; way < ways; way++) {
        printf("%-42s", way_name[way]);
        for (int i = 0; i < cases->len; i++)
            if (!i || strcmp(cases->at[i].row->kernel, cases->at[i - 1].row->kernel) != 0)
                printf("  %*.1f", (int)MIN(strlen(cases->at[i].row->kernel), 10),
                       100 * mean_error(cases, way, cases->at[i].row->kernel));
        printf("%12.1f\n", 100 * mean_error(cases, way, NULL));
    }
}

// Selection ------------------------------------------------------------------------------

static void print_picks(const Pick *pick, int n, const double median[PICK_TEN])
{
    static const int shown[] = {1, 5, 10};
    double seconds = 0;
    int points = 0;
    printf("\n%-12s  %6s  %6s  %9s  %9s", "program", "size", "points", "best us",
           "rank corr");
    for (int i = 0; i < COUNTOF(shown); i++)
        printf("  first %2d", shown[i]);
    putchar('\n');
    for (int g = 0; g < n; g++) {
        printf("%-12s  %6s  %6d  %9.1f  %9.2f", pick[g].program, pick[g].size,
               pick[g].points, pick[g].best_ns * 1e-3, pick[g].spearman);
        for (int i = 0; i < COUNTOF(shown); i++)
            printf("  %8.3f", pick[g].within[shown[i] - 1]);
        putchar('\n');
        seconds += pick[g].seconds;
        points += pick[g].points;
    }
    printf("%-12s  %6s  %6s  %9s  %9s", "median", "", "", "", "");
    for (int i = 0; i < COUNTOF(shown); i++)
        printf("  %8.3f", median[shown[i] - 1]);
    printf("\nbest time of the first picks over the best of all; %d points lowered and "
           "predicted in %.2f s\n",
           points, seconds);
}

// Appends to the JSON; false with a diagnostic.
static bool eval_points(Options *o, const Weights *w, bool print, json_t *json)
{
    Pick *pick;
    const Dataset *data = dataset_read(o->points, o->arena, &o->diags);
    if (!data || !select_points(data, w, o->arena, &pick, &o->diags))
        return false;
    double median[PICK_TEN], *ratio = NEW_ARRAY(o->arena, double, data->ngroup + 1);
    json_t *list = json_array();
    for (int i = 0; i < PICK_TEN; i++) {
        for (int g = 0; g < data->ngroup; g++)
            ratio[g] = pick[g].within[i];
        median[i] = metric_median(ratio, data->ngroup);
    }
    for (int g = 0; g < data->ngroup; g++)
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:i, s:i, s:f, s:o, s:f, s:f, s:f}", "program",
                      pick[g].program, "size", pick[g].size, "points", pick[g].points,
                      "unknown", pick[g].unknown, "best_ns", pick[g].best_ns, "spearman",
                      json_finite(pick[g].spearman), "first", pick[g].within[0], "five",
                      pick[g].within[4], "ten", pick[g].within[9]));
    json_object_set_new(json, "selection", list);
    json_object_set_new(json, "selection_median",
                        json_pack("{s:f, s:f, s:f}", "first", median[0], "five", median[4],
                                  "ten", median[9]));
    if (print)
        print_picks(pick, data->ngroup, median);
    return true;
}

// The table of the test kernels; appends to the JSON.
static void eval_cases(const Calibration *c, const Weights *w, const Cases *cases,
                       bool print, json_t *json)
{
    static const char *const key[MODELS] = {"geomean_paper", "geomean_counts",
                                            "geomean_demands"};
    Way way = way_used(c);
    json_t *list = json_array();
    if (print)
        printf("%s: %d measurements fitted, residuals %.1f %%\n\n"
               "%-20s  %8s  %12s  %12s  %8s\n",
               c->device.name, w->rows,
               100 * (way == BY_DEMANDS ? w[way].overlap.rms : w[way].rms), "kernel", "n",
               "predicted ms", "measured ms", "error");
    for (int i = 0; i < cases->len; i++)
        json_array_append_new(list, print_case(cases, i, way, print));
    if (print) {
        printf("\nall %d cases: geometric mean of the relative error %.1f %%\n", cases->len,
               100 * mean_error(cases, way, NULL));
        print_ways(cases, c->demands ? MODELS : BY_DEMANDS);
    }
    json_object_set_new(json, "cases", list);
    json_object_set_new(json, "geomean", json_real(mean_error(cases, way, NULL)));
    for (int k = 0; k < (c->demands ? MODELS : BY_DEMANDS); k++)
        json_object_set_new(json, key[k], json_real(mean_error(cases, k, NULL)));
}

int eval_linear(Options *o)
{
    Calibration c;
    Weights w[MODELS];
    Cases cases = {0};
    if (!calibration_read(o->data, o->arena, &c, &o->diags))
        return 1;
    calibrate_counts(&c, true, &w[BY_PAPER]);
    calibrate_counts(&c, false, &w[BY_COUNTS]);
    w[BY_DEMANDS] = w[BY_COUNTS];
    if (c.demands)
        calibrate_overlap(&c, &w[BY_DEMANDS].overlap);
    find_cases(o, &c, w, &cases);
    if (!cases.len) {
        diag_error(&o->diags, span_none, "C016", "%s has no test kernels", o->data);
        return 2;
    }
    bool print = cli_prints(o);
    json_t *json =
        json_pack("{s:s, s:i}", "device", c.device.name, "measurements", w->rows);
    eval_cases(&c, w, &cases, print, json);
    bool ok = !o->points || eval_points(o, &w[way_used(&c)], print, json);
    return cli_json(o, json) && ok ? 0 : 1;
}

int fit_linear(Options *o)
{
    Calibration c;
    Weights w;
    if (!calibration_read(o->data, o->arena, &c, &o->diags))
        return 1;
    calibrate_fit(&c, &w);
    if (!weights_save(&w, o->out[0], &o->diags))
        return 1;
    printf("%s: weights of %s from %d measurements, residuals %.1f %%\n", o->out[0],
           w.device.name, w.rows, 100 * (w.overlap.d ? w.overlap.rms : w.rms));
    return 0;
}
