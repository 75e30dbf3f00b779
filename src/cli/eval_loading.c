// SPDX-License-Identifier: Apache-2.0
//
// forewarp eval loading TABLE: how well the forest of `--loading predicted` picks the
// loading of each stencil when it is fitted to the others (evaluate/loading.h).

#include "cli/cli.h"

#include "evaluate/loading.h"

#include <math.h>

static double share_of(const LoadingRow *row)
{
    return row->ns[row->best] / row->ns[row->picked];
}

// picked is null, and share, where there was nothing to fit to.
static json_t *rows_json(const Loadings *table)
{
    json_t *list = json_array();
    VEC_EACH_REF(const LoadingRow *, row, &table->rows) {
        const char *picked = row->picked < 0 ? NULL : loading_name[row->picked];
        double share = picked ? share_of(row) : NAN;
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s?, s:o}", "stencil", row->stencil,
                                        "best", loading_name[row->best], "picked", picked,
                                        "share", json_finite(share)));
    }
    return list;
}

static bool judge(Options *o, const Loadings *table)
{
    double right = 0, share = 0;
    int n = 0;
    VEC_EACH_REF(const LoadingRow *, row, &table->rows) {
        n += row->picked >= 0;
        right += (int)row->best == row->picked;
        share += row->picked < 0 ? 0 : share_of(row);
    }
    return cli_result(o,
                      json_pack("{s:s, s:s, s:o, s:o, s:o}", "model", o->file, "device",
                                table->device, "right", json_finite(right / n), "weighted",
                                json_finite(share / n), "stencils", rows_json(table)));
}

int eval_loading(Options *o)
{
    Loadings *table = loadings_read(o->data, o->arena, &o->diags);
    if (!table)
        return 1;
    loadings_forest(table, o->seed);
    return judge(o, table) ? 0 : 1;
}
