// SPDX-License-Identifier: Apache-2.0
//
// forewarp eval: how well a model ranks the points of programs it has not seen.

#include "cli/cli.h"

#include "model/eval.h"

#include <math.h>
#include <string.h>

static const double goal = 0.9; // of the best throughput (000, section 8.2)

static json_t *group_json(const Eval *e, const EvalGroup *g)
{
    const DatasetGroup *d = &e->data->group_at[g->group];
    json_t *model = json_array(), *random = json_array();
    for (int i = 0; i < g->curve; i++) {
        json_array_append_new(model, json_real(g->model_curve[i]));
        json_array_append_new(random, json_real(g->random_curve[i]));
    }
    return json_pack(
        "{s:s, s:s, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "program",
        e->data->program_name[d->program], "size", e->data->size_name[d->size], "points",
        d->n, "ran", d->ok, "good", g->good, "pearson", json_finite(g->pearson), "spearman",
        json_finite(g->spearman), "model_runs", json_finite(g->model.runs), "random_runs",
        json_finite(g->random.runs), "model_runs_95", json_finite(g->model_strict.runs),
        "model_ns", json_finite(g->model.time_ns), "random_ns",
        json_finite(g->random.time_ns), "model_best", model, "random_best", random);
}

static json_t *reach_json(const EvalReach *r)
{
    return json_pack("{s:f, s:o, s:o, s:o, s:o, s:o}", "goal", r->goal, "mean",
                     json_finite(r->mean), "geomean", json_finite(r->geomean),
                     "random_mean", json_finite(r->random_mean), "random_geomean",
                     json_finite(r->random_geomean), "within_5", json_finite(r->soon));
}

static json_t *sizes_json(const Eval *e)
{
    json_t *sizes = json_array();
    for (int i = 0; i < e->nsize; i++) {
        const EvalSize *s = &e->size[i];
        json_array_append_new(sizes, json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", "size",
                                               e->data->size_name[s->size], "programs",
                                               s->groups, "runs", json_finite(s->runs),
                                               "runs_95", json_finite(s->strict_runs),
                                               "fewer_runs", json_finite(s->fewer_runs),
                                               "pearson", json_finite(s->pearson)));
    }
    return sizes;
}

static json_t *summary_json(const EvalSummary *s)
{
    return json_pack(
        "{s:[o, o], s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:f, "
        "s:f, s:f}",
        "reach", reach_json(&s->goal), reach_json(&s->strict), "pearson",
        json_finite(s->pearson), "lowest_pearson", json_finite(s->lowest_pearson),
        "highest_pearson", json_finite(s->highest_pearson), "spearman",
        json_finite(s->spearman), "model_runs", json_finite(s->model_runs), "random_runs",
        json_finite(s->random_runs), "median_model_runs", json_finite(s->median_model),
        "median_random_runs", json_finite(s->median_random), "fewer_runs",
        json_finite(s->fewer_runs), "less_time", json_finite(s->less_time), "best_after_1",
        s->after1, "best_after_5", s->after5, "best_after_10", s->after10, "random_after_1",
        s->random1, "random_after_5", s->random5, "random_after_10", s->random10);
}

static json_t *eval_json(const Eval *e)
{
    const char *device = dataset_meta(e->data, "device");
    json_t *groups = json_array(), *features = json_array(), *programs = json_array();
    for (int i = 0; i < e->ngroup; i++)
        json_array_append_new(groups, group_json(e, &e->group[i]));
    for (int f = 0; f < e->data->d; f++)
        json_array_append_new(features, json_pack("{s:s, s:o}", "feature",
                                                  e->data->feature[e->feature[f].feature],
                                                  "redundancy",
                                                  json_finite(e->feature[f].redundancy)));
    for (int p = 0; p < e->data->nprogram; p++)
        json_array_append_new(
            programs, json_pack("{s:s, s:o, s:o}", "program", e->data->program_name[p],
                                "fewer_runs", json_finite(e->fewer_runs[p]), "less_time",
                                json_finite(e->less_time[p])));
    return json_pack("{s:s, s:s*, s:i, s:f, s:o, s:o, s:o, s:o, s:o}", "model",
                     e->kind->name, "device", device, "points", e->data->n, "goal", e->goal,
                     "summary", summary_json(&e->summary), "features", features, "programs",
                     programs, "sizes", sizes_json(e), "groups", groups);
}

static bool is_linear(const Options *o)
{
    return strcmp(o->file, "linear") == 0;
}

static bool is_picks(const Options *o)
{
    return strcmp(o->file, "picks") == 0;
}

static bool is_exploration(const Options *o)
{
    (void)o;
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
    const Eval *e = data ? eval_run(data, kind, &options, o->arena, &o->diags) : NULL;
    return e && cli_result(o, eval_json(e)) ? 0 : 1;
}

// The evaluations by what they are of; refused: options that only others take.
static const struct {
    bool (*takes)(const Options *o);
    int (*run)(Options *o);
    const char *name;
    uint64_t refused;
} evaluations[] = {
    {is_linear, eval_linear, "an evaluation of weights",
     GIVEN(REPEAT) | GIVEN(RANDOM_REPEAT) | GIVEN(FEATURES) | GIVEN(NUMBER)},
    {is_picks, eval_picks, "an evaluation of picks",
     GIVEN(REPEAT) | GIVEN(RANDOM_REPEAT) | GIVEN(FEATURES) | GIVEN(NUMBER)},
    {eval_takes_loadings, eval_loading, "an evaluation of loadings",
     GIVEN(REPEAT) | GIVEN(RANDOM_REPEAT) | GIVEN(FEATURES) | GIVEN(NUMBER)},
    {eval_takes_records, eval_stages, "an evaluation of recorded spaces",
     GIVEN(RANDOM_REPEAT) | GIVEN(FEATURES)},
    {is_exploration, eval_exploration, "an evaluation of an exploration",
     GIVEN(REPEAT) | GIVEN(NUMBER)},
};

int cmd_eval(Options *o)
{
    int i = 0;
    while (!evaluations[i].takes(o))
        i++;
    return cli_refuse(o, evaluations[i].name, evaluations[i].refused)
               ? evaluations[i].run(o)
               : 2;
}
