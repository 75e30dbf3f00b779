// SPDX-License-Identifier: Apache-2.0
//
// forewarp calibrate: run the measurement kernels on a device and store its weights.

#include "cli/cli.h"

#include "calibrate/calibrate.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const double budget_s = 180;

static void show(void *user, const char *kernel, int done, int of)
{
    screen_show(user, &(Moment){.stage = "measure",
                                .what = "kernels",
                                .done = done,
                                .of = of,
                                .budget_s = INFINITY,
                                .best_ns = INFINITY});
}

static void print_weights(const Weights *w)
{
    AutoBuf name = buf_new();
    printf("%-44s  %12s  %12s  %s\n", "property", "ns each", "std. error", "kernels");
    for (int p = 0; p < PROPERTIES; p++) {
        if (!w->support[p])
            continue;
        buf_clear(&name);
        counts_name(&name, p);
        printf("%-44s  %12.4g  %12.4g  %d\n", name.text, w->weight[p] * 1e9,
               w->error[p] * 1e9, w->support[p]);
    }
}

static void print_demands(const Overlap *o)
{
    printf("\n%-44s  %12s  %12s  %s\n", "demand", "ns each", "std. error", "kernels");
    for (int d = 0; d < o->d; d++)
        if (o->support[d])
            printf("%-44s  %12.4g  %12.4g  %d\n", demand_info[d].name, o->weight[d] * 1e9,
                   o->error[d] * 1e9, o->support[d]);
    printf("parts meet by the power %.2f, far memory drains by %.2f of a wave\n", o->power,
           o->drain);
}

static bool write_rows(Options *o, const Calibration *c)
{
    AutoBuf text = buf_new();
    calibration_write(&text, c);
    return cli_write(o, o->csv, &text);
}

int cmd_calibrate(Options *o)
{
    Calibration c;
    Weights w;
    Screen screen = screen_open(o);
    CalibrateOptions options = {.device = o->device,
                                .budget_s = isfinite(o->budget_s) ? o->budget_s : budget_s,
                                .tests = o->csv != NULL,
                                .place = cli_workplace(o),
                                .progress = show,
                                .user = &screen};
    double start = clock_s();
    bool ok = calibrate(&options, o->arena, &c, &o->diags);
    screen_close(&screen);
    if (!ok || (o->csv && !write_rows(o, &c)))
        return 1;
    calibrate_fit(&c, &w);
    const char *path = o->nout ? o->out[0] : weights_path(o->arena, w.device.fingerprint);
    if (!weights_save(&w, path, &o->diags))
        return 1;
    if (o->csv && strcmp(o->csv, "-") == 0)
        return 0;
    printf("%s: %d measurements in %.0f s, an empty kernel takes %.1f us\n", w.device.name,
           w.rows, clock_s() - start, c.launch_ns * 1e-3);
    print_weights(&w);
    if (w.overlap.d)
        print_demands(&w.overlap);
    printf("relative residuals: %.1f %% (root of the mean square); stored in %s\n",
           100 * (w.overlap.d ? w.overlap.rms : w.rms), path);
    return 0;
}
