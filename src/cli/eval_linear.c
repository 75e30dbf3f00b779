// SPDX-License-Identifier: Apache-2.0
//
// forewarp fit linear: weights from measured kernels.
// forewarp eval linear: the table of paper 003 (its Table 1) from measured kernels: weights
// are fitted to the measurement kernels, and predict the four test kernels, which the fit
// has not seen. Errors are |predicted - measured| / measured; their means are geometric.

#include "cli/cli.h"

#include "plan/calibrate.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Measured *row;
    double predicted_ns, error;
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

// One shape of group a size: the first measured.
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
        double cost[PROPERTIES];
        Case found = {.row = row};
        found.predicted_ns = weights_predict(w, row->count, cost) * 1e9;
        found.error = fabs(found.predicted_ns - row->time_ns) / row->time_ns;
        VEC_PUSH(o->arena, cases, found);
    }
}

// Of the cases of that kernel, or of all.
static double mean_error(const Cases *cases, const char *kernel)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < cases->len; i++)
        if (!kernel || strcmp(cases->at[i].row->kernel, kernel) == 0) {
            sum += log(fmax(cases->at[i].error, 1e-4));
            n++;
        }
    return exp(sum / MAX(n, 1));
}

static json_t *print_case(const Cases *cases, int i, bool print)
{
    const Case *c = &cases->at[i];
    const char *kernel = c->row->kernel;
    bool last = i + 1 == cases->len || strcmp(cases->at[i + 1].row->kernel, kernel) != 0;
    if (print) {
        printf("%-20s  %8lld  %12.4f  %12.4f  %6.1f %%\n", kernel, (long long)c->row->n,
               c->predicted_ns * 1e-6, c->row->time_ns * 1e-6, 100 * c->error);
        if (last)
            printf("%-20s  %8s  %12s  %12s  %6.1f %%\n", "", "", "", "geomean",
                   100 * mean_error(cases, kernel));
    }
    return json_pack("{s:s, s:I, s:f, s:f, s:f}", "kernel", kernel, "n",
                     (json_int_t)c->row->n, "predicted_ms", c->predicted_ns * 1e-6,
                     "measured_ms", c->row->time_ns * 1e-6, "error", c->error);
}

int eval_linear(Options *o)
{
    Calibration c;
    Weights w;
    Cases cases = {0};
    if (!calibration_read(o->data, o->arena, &c, &o->diags))
        return 1;
    calibrate_fit(&c, &w);
    find_cases(o, &c, &w, &cases);
    if (!cases.len) {
        diag_error(&o->diags, span_none, "C016", "%s has no test kernels", o->data);
        return 2;
    }
    bool print = !o->json || o->json[0] != '-';
    json_t *list = json_array();
    if (print)
        printf("%s: %d measurements fitted, residuals %.1f %%\n\n"
               "%-20s  %8s  %12s  %12s  %8s\n",
               c.device.name, w.rows, 100 * w.rms, "kernel", "n", "predicted ms",
               "measured ms", "error");
    for (int i = 0; i < cases.len; i++)
        json_array_append_new(list, print_case(&cases, i, print));
    if (print)
        printf("\nall %d cases: geometric mean of the relative error %.1f %%\n", cases.len,
               100 * mean_error(&cases, NULL));
    return cli_json(o, json_pack("{s:s, s:i, s:f, s:f, s:o}", "device", c.device.name,
                                 "measurements", w.rows, "residuals", w.rms, "geomean",
                                 mean_error(&cases, NULL), "cases", list))
               ? 0
               : 1;
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
           w.device.name, w.rows, 100 * w.rms);
    return 0;
}
