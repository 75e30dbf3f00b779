// SPDX-License-Identifier: Apache-2.0
//
// forewarp calibrate: run the measurement kernels on a device and store its weights.

#include "cli/cli.h"

#include "plan/calibrate.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const double budget_s = 180;

static void show_progress(void *user, const char *kernel, int done, int of)
{
    const Options *o = user;
    enum { BAR = 30 };
    char bar[BAR + 1];
    if (o->quiet || !isatty(STDERR_FILENO))
        return;
    for (int i = 0; i < BAR; i++)
        bar[i] = i * of < done * BAR ? '#' : '.';
    bar[BAR] = 0;
    fprintf(stderr, "\r[%s] %2d of %d  %-20s", bar, done, of, kernel);
}

static void print_weights(const Weights *w)
{
    Buf name;
    buf_init(&name);
    printf("%-44s  %12s  %12s  %s\n", "property", "ns each", "std. error", "kernels");
    for (int p = 0; p < PROPERTIES; p++) {
        if (!w->support[p])
            continue;
        buf_clear(&name);
        counts_name(&name, p);
        printf("%-44s  %12.4g  %12.4g  %d\n", name.text, w->weight[p] * 1e9,
               w->error[p] * 1e9, w->support[p]);
    }
    buf_release(&name);
}

static bool write_rows(Options *o, const Calibration *c)
{
    Buf text;
    buf_init(&text);
    calibration_write(&text, c);
    bool ok = strcmp(o->csv, "-") == 0 ? fputs(text.text, stdout) >= 0
                                       : file_write(o->csv, text.text, text.len);
    if (!ok)
        diag_world(&o->diags, "C003", "cannot write %s: %s", o->csv, strerror(errno));
    buf_release(&text);
    return ok;
}

int cmd_calibrate(Options *o)
{
    Calibration c;
    Weights w;
    CalibrateOptions options = {.device = o->device,
                                .budget_s = isfinite(o->budget_s) ? o->budget_s : budget_s,
                                .tests = o->csv != NULL,
                                .place = cli_place(o),
                                .progress = show_progress,
                                .user = o};
    double start = clock_s();
    bool ok = calibrate(&options, o->arena, &c, &o->diags);
    if (!o->quiet && isatty(STDERR_FILENO))
        fputc('\n', stderr);
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
    printf("relative residuals: %.1f %% (root of the mean square); stored in %s\n",
           100 * w.rms, path);
    return 0;
}
