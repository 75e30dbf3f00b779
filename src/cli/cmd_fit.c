// SPDX-License-Identifier: Apache-2.0
//
// forewarp fit: a model from an exploration, as a file for `tune --strategy ranked`.

#include "cli/cli.h"

#include <string.h>

// The rows to fit, of all programs but the one left out; NULL with a diagnostic.
static int *choose_rows(Options *o, const Dataset *data, int *n)
{
    int *row = NEW_ARRAY(o->arena, int, data->n), left_out = -1;
    for (int p = 0; o->leave_out && p < data->nprogram; p++)
        if (strcmp(data->program_name[p], o->leave_out) == 0)
            left_out = p;
    if (o->leave_out && left_out < 0) {
        diag_error(&o->diags, span_none, "C016", "the data have no program `%s`",
                   o->leave_out);
        return NULL;
    }
    *n = 0;
    for (int i = 0; i < data->n; i++)
        if (data->program[i] != left_out)
            row[(*n)++] = i;
    if (*n)
        return row;
    diag_error(&o->diags, span_none, "C016",
               "the data have only the program `%s`, so nothing is left to fit",
               o->leave_out);
    return NULL;
}

static bool fit_rows(Options *o, const ModelKind *kind, const Dataset *data, const int *row,
                     int n)
{
    double *y = NEW_ARRAY(o->arena, double, n), start = clock_s();
    for (int i = 0; i < n; i++)
        y[i] = data->throughput[row[i]];
    const char *fingerprint = dataset_meta(data, "fingerprint");
    AutoMatrix x = matrix_select(&data->x, row, n);
    Model *model =
        model_fit(kind, &x, y, o->seed, data->feature, fingerprint ? fingerprint : "");
    bool ok = model_save(model, o->out[0], &o->diags);
    model_free(model);
    if (ok)
        printf("%s: %s on %d points, %d features, in %.1f s\n", o->out[0], kind->name, n,
               data->d, clock_s() - start);
    return ok;
}

int cmd_fit(Options *o)
{
    int (*own)(Options *) = strcmp(o->file, "linear") == 0  ? fit_linear
                            : strcmp(o->file, "picks") == 0 ? fit_picks
                                                            : NULL;
    const ModelKind *kind = own ? NULL : cli_model_kind(o);
    if (!kind && !own)
        return 2;
    if (!o->nout) {
        diag_error(&o->diags, span_none, "C016", "name the file for the model with -o");
        return 2;
    }
    if (own)
        return own(o);
    const Dataset *data = dataset_read(o->data, o->arena, &o->diags);
    if (!data)
        return 1;
    data = dataset_columns(data, cli_columns(o, kind), o->arena);
    int n, *row = choose_rows(o, data, &n);
    return row && fit_rows(o, kind, data, row, n) ? 0 : 1;
}
