// SPDX-License-Identifier: Apache-2.0
//
// forewarp eval MODEL FILE.table: models of any numbers, for programs that know what these
// mean (bench/papers/common.py).
//
//   [[part, target, x, ...], ...]
//
// The rows of each part, counted from 0, are predicted by a model that is fitted to those
// rows of the other parts whose target is no null; null: there are none.

#include "cli/cli.h"

#include "measure/json.h"

#include <math.h>

typedef struct {
    Matrix x;
    double *y; // NAN: null
    int *part, parts;
} NumberTable;

static bool read_row(const json_t *row, int i, NumberTable *t)
{
    const json_t *part = json_array_get(row, 0), *target = json_array_get(row, 1);
    json_int_t number = json_integer_value(part);
    bool ok = json_array_size(row) == (size_t)t->x.d + 2 && json_is_integer(part) &&
              number >= 0 && number < t->x.n &&
              (json_is_number(target) || json_is_null(target));
    for (int c = 0; ok && c < t->x.d; c++) {
        const json_t *x = json_array_get(row, (size_t)c + 2);
        matrix_row(&t->x, i)[c] = json_number_value(x);
        ok = json_is_number(x);
    }
    t->y[i] = json_is_number(target) ? json_number_value(target) : NAN;
    t->part[i] = (int)number;
    t->parts = MAX(t->parts, (int)number + 1);
    return ok;
}

static bool read_table(Options *o, NumberTable *t)
{
    AutoBuf text = buf_new();
    if (!dataset_text(o->data, &text, &o->diags))
        return false;
    json_auto_t *rows = json_loadb(text.text, text.len, 0, NULL);
    int n = (int)MIN(json_array_size(rows), INT32_MAX / 2);
    int d = (int)MIN(json_array_size(json_array_get(rows, 0)), INT16_MAX) - 2;
    bool ok = d > 0;
    *t = (NumberTable){.x = {n, d, NEW_ARRAY(o->arena, double, (int64_t)n *MAX(d, 0) + 1)},
                       .y = NEW_ARRAY(o->arena, double, n + 1),
                       .part = NEW_ARRAY(o->arena, int, n + 1)};
    for (int i = 0; ok && i < n; i++)
        ok = read_row(json_array_get(rows, (size_t)i), i, t);
    return ok ||
           diag_error(&o->diags, span_none, "M006", "%s is no table of numbers", o->data);
}

int eval_table(Options *o)
{
    const ModelKind *kind = cli_model_kind(o);
    NumberTable t;
    if (!kind)
        return 2;
    if (!read_table(o, &t))
        return 1;
    double *predicted = NEW_ARRAY(o->arena, double, t.x.n);
    int64_t start = clock_processor_ns();
    cross_validate(kind, &t.x, t.y, t.part, t.parts, o->seed, predicted);
    double spent = 1e-9 * (double)(clock_processor_ns() - start);
    json_t *list = json_array();
    for (int i = 0; i < t.x.n; i++)
        json_array_append_new(list, json_finite(predicted[i]));
    return cli_json_exact(o, json_pack("{s:s, s:i, s:f, s:o}", "model", kind->name, "parts",
                                       t.parts, "processor_s", spent, "predicted", list))
               ? 0
               : 1;
}
