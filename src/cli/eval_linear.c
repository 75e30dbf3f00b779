// SPDX-License-Identifier: Apache-2.0
//
// forewarp fit linear: weights from measured kernels.
// forewarp eval linear: weights are fitted to the measurement kernels, and predict the test
// kernels, which the fit has not seen. bench/papers/counts.py makes paper 003's Table 1 of
// that.

#include "cli/cli.h"

#include "calibrate/calibrate.h"
#include "measure/json.h"

#include <math.h>

// What is compared: the paper's properties, those and what doc/counts.md adds to them, and
// the model of overlapping parts.
typedef enum { BY_PAPER, BY_COUNTS, BY_DEMANDS, MODELS } Way;
static const char *const way_name[MODELS] = {"paper", "counts", "demands"};

static double predict_row(const Weights *w, Way way, const Measured *row)
{
    double cost[PROPERTIES], part[DEMANDS];
    return way == BY_DEMANDS ? weights_overlap(w, &row->demand, 1, part)
                             : weights_predict(w, row->count, cost);
}

// In milliseconds, by each way that the measurements allow.
static json_t *tests_json(const Calibration *c, const Weights w[MODELS])
{
    json_t *list = json_array();
    VEC_EACH_REF(const Measured *, row, &c->rows) {
        if (row->class != CLASS_TEST)
            continue;
        json_t *one = json_pack("{s:s, s:I, s:f}", "kernel", row->kernel, "n",
                                (json_int_t)row->n, "measured_ms", row->time_ns * 1e-6);
        for (int way = 0; way < (c->demands ? MODELS : BY_DEMANDS); way++)
            json_object_set_new(one, way_name[way],
                                json_finite(1e3 * predict_row(&w[way], way, row)));
        json_array_append_new(list, one);
    }
    return list;
}

int eval_linear(Options *o)
{
    Calibration c;
    Weights w[MODELS];
    if (!calibration_read(o->data, o->arena, &c, &o->diags))
        return 1;
    calibrate_counts(&c, true, &w[BY_PAPER]);
    calibrate_counts(&c, false, &w[BY_COUNTS]);
    w[BY_DEMANDS] = w[BY_COUNTS];
    if (c.demands)
        calibrate_overlap(&c, &w[BY_DEMANDS].overlap);
    // The one that predictions on such a device are made with.
    Way used = c.device.is_cpu ? BY_PAPER : c.demands ? BY_DEMANDS : BY_COUNTS;
    double residuals = used == BY_DEMANDS ? w[used].overlap.rms : w[used].rms;
    json_t *json = json_pack("{s:s, s:i, s:f, s:s, s:o}", "device", c.device.name,
                             "measurements", w->rows, "residuals", residuals, "used",
                             way_name[used], "tests", tests_json(&c, w));
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
