// SPDX-License-Identifier: Apache-2.0
//
// forewarp eval: how well a model ranks the points of programs it has not seen.

#include "cli/cli.h"

#include "evaluate/eval.h"

#include <string.h>

static const double goal = 0.9; // of the best throughput (000, section 8.2)

static int eval_exploration(Options *o)
{
    const ModelKind *kind = cli_model_kind(o);
    if (!kind)
        return 2;
    if (o->nlist > 2) {
        diag_error(&o->diags, span_none, "C044",
                   "unexpected argument `%s`: give one exploration", o->list[2]);
        return 2;
    }
    EvalOptions options = {
        .goal = goal, .random_repeat = o->random_repeat, .seed = o->seed};
    const Dataset *data = dataset_read(o->data, o->arena, &o->diags);
    if (data)
        data = dataset_columns(data, cli_columns(o, kind), o->arena);
    json_t *json = data ? eval_run(data, kind, &options, o->arena, &o->diags) : NULL;
    return json && cli_result(o, json) ? 0 : 1;
}

// The evaluations by the word that asks for them; NULL: a table of numbers does.
static const struct {
    const char *word;
    int (*run)(Options *o);
    const char *name;
} evaluations[] = {
    {"points", eval_points, "points of recorded spaces"},
    {"loading", eval_loading, "an evaluation of loadings"},
    {"linear", eval_linear, "an evaluation of weights"},
    {"picks", eval_picks, "an evaluation of picks"},
    {"terms", eval_terms, "an evaluation of terms"},
    {NULL, eval_table, "a table of numbers"},
};

int cmd_eval(Options *o)
{
    for (int i = 0; i < COUNTOF(evaluations); i++)
        if (evaluations[i].word ? strcmp(o->file, evaluations[i].word) == 0
                                : path_ends(o->data, ".table"))
            return cli_refuse(o, evaluations[i].name,
                              GIVEN(RANDOM_REPEAT) | GIVEN(FEATURES))
                       ? evaluations[i].run(o)
                       : 2;
    return eval_exploration(o);
}
