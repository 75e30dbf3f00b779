// SPDX-License-Identifier: Apache-2.0
//
// Writes what a tuning leaves besides its kernel: its trials in the formats of other tools,
// and its record, from which a report is made.

#include "tune/internal.h"

#include "tune/run.h"

#include <string.h>
#include <unistd.h>

// Its metrics, and behind them its objectives.
static const double *trial_values(const Tune *t, const Point *point, double ns,
                                  const Measures *measures, Arena *arena)
{
    int n = goal_metrics(t->goal), more = goal_objectives(t->goal);
    double *value = NEW_ARRAY(arena, double, n + more);
    GoalValues values;
    goal_values(t->goal, point, ns, measures, &values);
    memcpy(value, values.metric, sizeof *value * (size_t)n);
    memcpy(value + n, values.objective, sizeof *value * (size_t)more);
    return value;
}

static void value_trials(Tune *t)
{
    VEC_EACH_REF(ExchangeTrial *, e, &t->exchange)
        if (e->status == TRIAL_OK && !e->metric)
            e->metric = trial_values(t, &e->point, e->time_ns, &e->measures, t->arena);
}

static const char **metric_names(const Tune *t, Arena *arena)
{
    const char **name = NEW_ARRAY(arena, const char *, goal_metrics(t->goal));
    for (int i = 0; i < goal_metrics(t->goal); i++)
        name[i] = goal_metric(t->goal, i);
    return name;
}

static Exchange describe(Tune *t)
{
    const Problem *problem = t->problem;
    int64_t *size = NEW_ARRAY(t->arena, int64_t, MAX(problem->nbinding, 1));
    for (int i = 0; i < problem->nbinding; i++)
        size[i] = problem->binding[i].value;
    const char **objective = NEW_ARRAY(t->arena, const char *, GOAL_OBJECTIVES);
    for (int i = 0; i < goal_objectives(t->goal); i++)
        objective[i] = goal_objective(t->goal, i);
    value_trials(t);
    return (Exchange){.device = t->result->device,
                      .kernel = problem_kernel(problem),
                      .size = size,
                      .nsize = problem->nbinding,
                      .space = t->space,
                      .launches = variants_launches(&t->variants),
                      .trial = t->exchange.at,
                      .n = t->exchange.len,
                      .nmetric = goal_metrics(t->goal),
                      .metric = metric_names(t, t->arena),
                      .nobjective = goal_objectives(t->goal),
                      .objective = objective};
}

// What was tried is written even if nothing of it was right.
bool tune_write_exchange(Tune *t)
{
    const TuneOptions *o = t->options;
    const Exchange exchange = describe(t);
    return (!o->t4 || exchange_write_t4(o->t4, &exchange, t->diags)) &&
           (!o->cache ||
            exchange_write_cache(o->cache, &exchange, t->cache_body, t->diags));
}

bool tune_read_cache(Tune *t)
{
    const char *path = t->options->cache;
    if (!path || t->options->fresh || access(path, F_OK) != 0)
        return true;
    const Exchange of = describe(t);
    return exchange_read_cache(path, &of, t->arena, &t->cache_body, tune_load_cached, t,
                               t->diags);
}

// The record of the run ----------------------------------------------------------------

static void copy_space(const Tune *t, Run *run, Arena *arena)
{
    AutoBuf text = buf_new();
    run->nparam = space_params(t->space);
    for (int i = 0; i < run->nparam; i++) {
        const SpaceParam *param = space_param(t->space, i);
        const char **value = NEW_ARRAY(arena, const char *, param->n);
        for (int k = 0; k < param->n; k++) {
            buf_clear(&text);
            space_value_print(&text, t->space, i, k);
            value[k] = arena_strdup(arena, text.text);
        }
        run->param[i] = (RunParam){param->name, param->n, value};
    }
}

// Those of the front have the values that were measured at the end.
static void copy_trials(Tune *t, Run *run, Arena *arena)
{
    run->n = t->exchange.len;
    run->trial = NEW_ARRAY(arena, RunTrial, run->n + 1);
    for (int i = 0; i < run->n; i++) {
        const ExchangeTrial *e = &t->exchange.at[i];
        run->trial[i] = (RunTrial){.point = e->point,
                                   .status = e->status,
                                   .time_ns = e->time_ns,
                                   .at_s = e->at_s,
                                   .build_s = e->build_s,
                                   .check_s = e->check_s,
                                   .timing_s = e->timing_s,
                                   .value = e->metric,
                                   .stored = e->stored,
                                   .cut = e->cut,
                                   .log = e->log};
        const Finalist *f = tune_finalist(t, t->front.at, t->front.len, &e->point);
        run->trial[i].front = f != NULL;
        if (f)
            run->trial[i].value = trial_values(t, &f->point, f->ns, &f->measures, arena);
    }
}

static void copy_problem(const Tune *t, Run *run)
{
    const Problem *problem = t->problem;
    run->name = problem->name;
    run->problem = t->result->problem;
    run->kind = problem->kind->name;
    run->file = problem->source.name;
    run->text = problem->template ? "" : problem->source.text;
    run->math = problem->program ? math_info[problem->program->math].text : "";
    run->nsize = MIN(problem->nbinding, COUNTOF(run->size));
    for (int i = 0; i < run->nsize; i++) {
        run->size[i] = problem->binding[i].name;
        run->size_value[i] = problem->binding[i].value;
    }
}

static Run *make_run(Tune *t, Arena *arena)
{
    const TuneOptions *o = t->options;
    const TuneResult *r = t->result;
    Run *run = NEW_OF(
        arena, Run, .command = o->command, .when = exchange_now(arena),
        .version = CODEGEN_VERSION, .where = o->where, .strategy = r->strategy,
        .model = r->model, .sandbox = r->sandbox, .seed = o->seed, .device = *t->device,
        .elapsed_s = clock_s() - t->start_s, .space_points = r->space_points,
        .baseline_ns = r->baseline_ns, .best_ns = r->best_ns, .bytes = r->bytes,
        .flops = r->flops, .copy_ns = r->copy_ns, .compute_ns = r->compute_ns,
        .reference = r->reference, .best_point = r->point, .target = r->target,
        .kernel = t->kernel_text, .plain_kernel = t->plain_text, .max_error = r->max_error);
    for (int d = 0; d < 3; d++) {
        run->global[d] = r->global[d];
        run->local[d] = r->local[d];
    }
    run->metric = metric_names(t, arena);
    run->nmetric = goal_metrics(t->goal);
    run->nobjective = goal_objectives(t->goal);
    for (int i = 0; i < run->nobjective; i++)
        run->objective[i] = goal_objective(t->goal, i);
    copy_problem(t, run);
    copy_space(t, run, arena);
    copy_trials(t, run, arena);
    return run;
}

bool tune_write_record(Tune *t)
{
    if (!t->options->command)
        return true;
    value_trials(t);
    t->result->record_path =
        arena_printf(t->arena, "%s/%s" RUN_SUFFIX, t->options->out, t->problem->name);
    return run_write(t->result->record_path, make_run(t, t->arena), t->diags);
}

void tune_follow(Tune *t)
{
    enum { EVERY_S = 1 };
    if (!t->options->follow || !t->search || clock_s() - t->followed_s < EVERY_S)
        return;
    AutoArena *arena = arena_new();
    value_trials(t);
    t->options->follow(t->options->user, make_run(t, arena));
    t->followed_s = clock_s();
}
