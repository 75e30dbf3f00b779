// SPDX-License-Identifier: Apache-2.0
//
// forewarp fit linear: weights from measured kernels.
// forewarp eval linear: the table of paper 003 (its Table 1) from measured kernels: weights
// are fitted to the measurement kernels, and predict the four test kernels, which the fit
// has not seen. Errors are |predicted - measured| / measured; their means are geometric.

#include "cli/cli.h"

#include "calibrate/calibrate.h"

#include <math.h>
#include <string.h>

// What is compared: the paper's properties, those and what doc/counts.md adds to them, and
// the model of overlapping parts.
typedef enum { BY_PAPER, BY_COUNTS, BY_DEMANDS, MODELS } Way;
static const char *const error_key[MODELS] = {"paper", "counts", "demands"};

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
    VEC_EACH_REF(const Measured *, row, &c->rows) {
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

static json_t *cases_json(const Cases *cases, Way used, int variants)
{
    json_t *list = json_array();
    VEC_EACH_REF(const Case *, c, cases) {
        json_t *one =
            json_pack("{s:s, s:I, s:f, s:f, s:f}", "kernel", c->row->kernel, "n",
                      (json_int_t)c->row->n, "predicted_ms", c->predicted_ns * 1e-6,
                      "measured_ms", c->row->time_ns * 1e-6, "error", c->error[used]);
        for (int way = 0; way < variants; way++)
            json_object_set_new(one, error_key[way], json_real(c->error[way]));
        json_array_append_new(list, one);
    }
    return list;
}

// Geometric means over the cases of each kernel, and over all.
static json_t *means_json(const Cases *cases, int variants)
{
    json_t *list = json_array();
    for (int i = 0; i <= cases->len; i++) {
        const char *kernel = i < cases->len ? cases->at[i].row->kernel : NULL;
        if (i && kernel && strcmp(kernel, cases->at[i - 1].row->kernel) == 0)
            continue;
        json_t *one = json_pack("{s:s}", "kernel", kernel ? kernel : "all");
        for (int way = 0; way < variants; way++)
            json_object_set_new(one, error_key[way],
                                json_real(mean_error(cases, way, kernel)));
        json_array_append_new(list, one);
    }
    return list;
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
    Way used = way_used(&c);
    int variants = c.demands ? MODELS : BY_DEMANDS;
    double residuals = used == BY_DEMANDS ? w[used].overlap.rms : w[used].rms;
    json_t *json = json_pack(
        "{s:s, s:i, s:f, s:f, s:o, s:o}", "device", c.device.name, "measurements", w->rows,
        "residuals", residuals, "geomean", mean_error(&cases, used, NULL), "cases",
        cases_json(&cases, used, variants), "geomeans", means_json(&cases, variants));
    return cli_result(o, json) ? 0 : 1;
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
