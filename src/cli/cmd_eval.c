// SPDX-License-Identifier: Apache-2.0
//
// forewarp eval: how well a model ranks the points of programs it has not seen.

#include "cli/cli.h"

#include "evaluate/eval.h"

#include <string.h>

static const double goal = 0.9; // of the best throughput (000, section 8.2)

static bool is_exploration(const Options *o)
{
    return true;
}

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

#define OF_SEARCH (GIVEN(RANDOM_REPEAT) | GIVEN(FEATURES))

// The evaluations by what they are of; refused: options that only others take.
static const struct {
    const char *word; // that asks for it; NULL: it is asked whether it takes the files
    bool (*takes)(const Options *o);
    int (*run)(Options *o);
    const char *name;
    uint64_t refused;
} evaluations[] = {
    {"points", NULL, eval_points, "points of recorded spaces", OF_SEARCH},
    {"loading", NULL, eval_loading, "an evaluation of loadings", OF_SEARCH},
    {"linear", NULL, eval_linear, "an evaluation of weights", OF_SEARCH},
    {"picks", NULL, eval_picks, "an evaluation of picks", OF_SEARCH},
    {"terms", NULL, eval_terms, "an evaluation of terms", OF_SEARCH},
    {NULL, eval_takes_table, eval_table, "a table of numbers", OF_SEARCH},
    {NULL, is_exploration, eval_exploration, "", 0},
};

int cmd_eval(Options *o)
{
    int i = 0;
    while (evaluations[i].word ? strcmp(o->file, evaluations[i].word) != 0
                               : !evaluations[i].takes(o))
        i++;
    return cli_refuse(o, evaluations[i].name, evaluations[i].refused)
               ? evaluations[i].run(o)
               : 2;
}
