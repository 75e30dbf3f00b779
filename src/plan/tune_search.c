// SPDX-License-Identifier: Apache-2.0
//
// Opening the strategy: what it is led by (a ranking by a model or by the device's weights,
// the steps of a heuristic file), and what is stored already.

#include "plan/tune.h"

#include "plan/predict.h"

#include <math.h>
#include <string.h>

static void compare_device(Tune *t, const char *fingerprint)
{
    if (strcmp(fingerprint, t->device->fingerprint) != 0)
        diag_warning(t->diags, span_none, "C018", "%s was fitted on another device",
                     t->options->model);
}

// Points in the order of the predictions of a model, or of the device's weights.
static bool make_ranking(Tune *t, Ranking *ranking)
{
    const DeviceInfo *device = t->device;
    if (t->search->kind->by_weights) {
        Weights *weights = NEW(t->arena, Weights);
        if (!weights_load(weights, t->options->model, device->fingerprint, t->diags))
            return false;
        compare_device(t, weights->device.fingerprint);
        t->result->model = "weights";
        return rank_predicted(t->problem, device, weights, t->options->seed, t->arena,
                              ranking, t->diags);
    }
    const char *path = t->options->model;
    if (!path)
        path = arena_printf(t->arena, "%s/%s.json.gz", t->options->models,
                            device->is_cpu ? "cpu" : "gpu");
    Model *model = model_load(path, t->diags);
    if (!model)
        return false;
    if (t->options->model)
        compare_device(t, model->fingerprint);
    bool ok = rank_points(t->problem, device, model, t->options->seed, t->arena, ranking,
                          t->diags);
    t->result->model = model->kind->name;
    model_free(model);
    return ok;
}

// The points for which options->where holds, which the ranking does not know.
static void keep_valid(Tune *t, const Ranking *ranking)
{
    Point *kept = NEW_ARRAY(t->arena, Point, ranking->n + 1);
    int n = 0;
    for (int i = 0; i < ranking->n; i++)
        if (space_valid(t->space, &ranking->point[i]))
            kept[n++] = ranking->point[i];
    t->search->ranking = kept;
    t->search->nranking = n;
}

// The predicted points, after the plain one, are all that is run.
static bool set_ranking(Tune *t)
{
    if (t->problem->template)
        return diag_error(t->diags, span_none, "C019",
                          "strategy `%s` ranks programs; %s is a template",
                          t->options->strategy, t->problem->name);
    if (!t->options->model && !t->options->models && !t->search->kind->by_weights)
        return diag_error(t->diags, span_none, "C017", "strategy `%s` needs a fitted model",
                          t->options->strategy);
    tune_report(t, "rank", TRIAL_OK, INFINITY);
    Ranking ranking;
    bool ok = make_ranking(t, &ranking);
    if (ok) {
        keep_valid(t, &ranking);
        t->result->ranked = ranking.n;
        t->result->ranking_s = ranking.seconds;
        t->nfirst = MIN(t->nfirst, 1);
    }
    return ok;
}

// The steps begin at the plain point, and are all else that is run.
static bool set_steps(Tune *t)
{
    const Problem *problem = t->problem;
    StepsSize *size = NEW_ARRAY(t->arena, StepsSize, problem->nbinding + 1);
    for (int i = 0; i < problem->nbinding; i++)
        size[i] = (StepsSize){problem->binding[i].name, (double)problem->binding[i].value};
    if (!t->options->steps)
        return diag_error(t->diags, span_none, "C041", "strategy `%s` needs a FILE.fwh",
                          t->options->strategy);
    t->search->steps = t->options->steps;
    t->search->size = size;
    t->search->nsize = problem->nbinding;
    t->nfirst = t->has_plain;
    t->search->start = t->has_plain ? &t->first[0] : NULL;
    return steps_check(t->options->steps, t->space, size, problem->nbinding, t->diags);
}

// A strategy that learns from any point begins with what is stored.
static void tell_stored(void *user, const StoreTrial *trial)
{
    Tune *t = user;
    Point point;
    if (point_parse(t->space, trial->point, &point) && space_valid(t->space, &point))
        tune_take_known(t, true, &point);
}

bool tune_open_search(Tune *t)
{
    const SearchKind *kind = search_find(t->options->strategy);
    if (!kind)
        return diag_error(t->diags, span_none, "C010", "there is no strategy `%s`",
                          t->options->strategy);
    double limit = t->options->budget_trials ? (double)t->options->budget_trials : INFINITY;
    t->search = search_open(kind, t->space, t->options->seed, limit);
    t->search->stage[0] = t->options->stage[0];
    t->search->stage[1] = t->options->stage[1];
    t->search->launches = ways_launches(&t->ways);
    t->result->strategy = kind->name;
    if (kind->learns && !store_each(t->store, t->session, tell_stored, t, t->diags))
        return false;
    return (!kind->needs_ranking || set_ranking(t)) && (!kind->needs_steps || set_steps(t));
}
