// SPDX-License-Identifier: Apache-2.0
//
// The public interface: plans.

#include "api/api.h"
#include "calibrate/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Options -----------------------------------------------------------------------------

bool api_options(const fw_plan_options *o, const fw_device *device, Arena *arena,
                 TuneOptions *options, Diags *diags)
{
    const char *strategy = api_or(o->strategy, NULL);
    *options =
        (TuneOptions){.device = device->info.id,
                      .strategy = strategy,
                      .where = o->where && o->where[0] ? o->where : NULL,
                      .seed = o->seed ? o->seed : 1,
                      .budget_s = INFINITY,
                      .no_roofline = true,
                      .store = api_store(o->store, arena),
                      .place = {.folder = workplace_folder(arena), .worker = o->worker}};
    if (strategy && !search_find(strategy))
        return diag_error(diags, span_none, "C010", "there is no strategy `%s`", strategy);
    Diags quiet = {.arena = arena};
    const char *worker = api_worker(o->worker, arena, &quiet);
    options->place.worker = worker;
    const char *program = api_worker(NULL, arena, &quiet);
    options->models = o->models && o->models[0] ? o->models : NULL;
    if (!options->models && worker)
        options->models = file_shared(worker, "models", "../data/models", arena);
    if (!options->models && program) // a caller that is its own worker has none beside it
        options->models = file_shared(program, "models", "../data/models", arena);
    return true;
}

// What each rigor is by default.
typedef struct {
    Rigor rigor; // that wisdom must have to answer it
    const char *strategy;
    double budget_s;
} RigorInfo;

static const RigorInfo rigor_info[] = {
    [FW_MEASURE] = {RIGOR_MEASURE, NULL, 30},
    [FW_ESTIMATE] = {RIGOR_NONE, NULL, 0},
    [FW_PATIENT] = {RIGOR_PATIENT, NULL, RIGOR_PATIENT_S},
    [FW_EXHAUSTIVE] = {RIGOR_EXHAUSTIVE, "exhaustive", INFINITY},
    [FW_WISDOM_ONLY] = {RIGOR_NONE, NULL, 0},
};

// Making ------------------------------------------------------------------------------

typedef struct {
    const fw_plan_options *o;
    const fw_problem *problem;
    const fw_device *device;
    TuneOptions options;
    Variants variants;
    Arena *arena;
    fw_plan *plan;
    Diags *diags;
    bool ok;
} PlanMaking;

static bool set_plan(PlanMaking *m, const Point *point, const char *rule, fw_origin origin,
                     double time_ns)
{
    m->plan->origin = origin;
    m->plan->time_ns = isfinite(time_ns) ? time_ns : 0;
    return recipe_make(&m->variants, point, rule, m->plan->arena, &m->plan->recipe,
                       m->diags);
}

// 1: the plan is that of the store; 0: there is none; -1: failed.
static int take_wisdom(PlanMaking *m, int reach, Rigor least)
{
    PlanFound found;
    fw_plan *plan = m->plan;
    const PlanAsked asked = {.store = m->options.store,
                             .device = &m->device->info,
                             .reach = reach,
                             .least = least,
                             .place = m->options.place.worker ? &m->options.place : NULL,
                             .seed = m->options.seed};
    int got = plan_find(&m->variants, &asked, plan->arena, &found, m->diags);
    if (got <= 0)
        return got;
    if (!found.checked) {
        diag_warning(m->diags, span_none, "C089",
                     "the stored plan of %s is not used: it was never checked on %s, and "
                     "there is no worker to check it",
                     found.problem, m->device->info.name);
        return 0;
    }
    plan->found_for = found.other_size ? found.problem : NULL;
    plan->foreign = found.other_device ? found.device : NULL;
    plan_warn(&found, &m->variants, &m->device->info, m->diags);
    bool ok = set_plan(m, &found.point, found.rule,
                       found.other_size ? FW_NEAREST : FW_WISDOM, found.time_ns);
    return ok ? 1 : -1;
}

// The points in the order of a model, or of the device's weights; false: there is neither.
static bool rank(PlanMaking *m, Ranking *ranking)
{
    const Problem *problem = m->problem->problem;
    const DeviceInfo *device = &m->device->info;
    Weights *weights = NEW(m->arena, Weights);
    Predictor by = {0};
    Diags quiet = {.arena = m->arena};
    if (!problem->program)
        return false;
    if (m->options.models)
        predictor_load(&by, device, NULL, m->options.models, m->arena, &quiet);
    if (!by.model && access(weights_path(m->arena, device->fingerprint), R_OK) == 0 &&
        weights_load(weights, NULL, device->fingerprint, &quiet))
        by.weights = weights;
    Derivation *derivation =
        by.model || by.weights ? derive_new(problem->general, device, &quiet) : NULL;
    bool ok = derivation && rank_points(problem, device, derivation, &by, NULL,
                                        m->options.seed, m->arena, ranking, &quiet);
    derive_free(derivation);
    predictor_free(&by);
    return ok && ranking->n > 0;
}

static bool estimate(PlanMaking *m)
{
    Ranking ranking = {0};
    Point plain;
    if (rank(m, &ranking))
        for (int i = 0; i < ranking.n; i++)
            if (space_valid(m->variants.space, &ranking.point[i]))
                return set_plan(m, &ranking.point[i], NULL, FW_PREDICTED, 0);
    variants_first(&m->variants, &plain, 1);
    if (!space_valid(m->variants.space, &plain))
        space_point(m->variants.space, 0, &plain);
    return set_plan(m, &plain, NULL, FW_PLAIN, 0);
}

static bool hook_trial(void *user, const char *point, const Trial *trial)
{
    const PlanMaking *m = user;
    fw_trial told = api_trial(point, trial);
    return m->o->on_trial(m->o->user, &told) != 0;
}

static bool hook_accept(void *user, const char *point, const RunnerBuffer *buffer, int n,
                        void *const *out)
{
    const PlanMaking *m = user;
    AUTO_FREE const void **array = xcalloc(2 * (size_t)n + 1, sizeof *array);
    for (int i = 0; i < n; i++) {
        array[i] = buffer[i].init;
        array[n + i] = out[i];
    }
    fw_result result = {point, n, array, array + n};
    return m->o->verify(m->o->user, &result) != 0;
}

static bool run_search(PlanMaking *m, fw_origin origin)
{
    TuneResult result;
    RangeResult range;
    TuneOptions *options = &m->options;
    const Problem *problem = m->problem->problem;
    bool spans = problem_spans(problem);
    Point point;
    options->on_trial = m->o->on_trial ? hook_trial : NULL;
    options->accept = m->o->verify ? hook_accept : NULL;
    options->user = m;
    options->place.worker = api_worker(m->o->worker, m->arena, m->diags);
    if (!options->place.worker ||
        !(spans ? tune_range(problem, options, m->arena, &range, m->diags)
                : tune(problem, options, m->arena, &result, m->diags)))
        return false;
    if (spans)
        result = range.base;
    if (strcmp(result.fingerprint, m->device->info.fingerprint) != 0)
        return diag_world(m->diags, "C051", "%s is now another device: %s",
                          m->device->info.id, result.device);
    if (!point_parse(m->variants.space, result.point, &point))
        BUG("the point of a search is not of its space");
    m->plan->baseline_ns = isfinite(result.baseline_ns) ? result.baseline_ns : 0;
    AutoBuf rule = buf_new();
    if (spans)
        rule_print(&rule, &range.rule);
    return set_plan(m, &point, spans ? rule.text : NULL,
                    isfinite(result.best_ns) ? origin : FW_PLAIN, result.best_ns);
}

static bool search(PlanMaking *m, const RigorInfo *rigor)
{
    TuneOptions *options = &m->options;
    const fw_plan_options *o = m->o;
    bool bounded = o->budget_s > 0 || o->budget_trials > 0;
    if (!o->strategy && rigor->strategy)
        options->strategy = rigor->strategy;
    options->budget_s = o->budget_s > 0 ? o->budget_s
                        : bounded       ? INFINITY
                                        : rigor->budget_s;
    options->budget_trials = MAX(o->budget_trials, 0);
    options->enough = fmax(o->enough, 0);
    options->no_roofline = !(o->enough > 0);
    options->quiet_trials = MAX(o->quiet_trials, 0);
    options->quiet_s = fmax(o->quiet_s, 0);
    return run_search(m, FW_MEASURED);
}

// Wisdom that the caller wants to check: a search without time for trials begins with those
// stored, runs the best of them again, and shows what they compute. False: none was
// accepted; what was said of that is no news if a search then finds another.
static bool show_wisdom(PlanMaking *m)
{
    Diags quiet, *loud = m->diags;
    TuneOptions options = m->options;
    quiet = (Diags){.arena = m->arena};
    m->diags = &quiet;
    m->options.strategy = "auto"; // it begins with what is stored
    m->options.no_search = true;
    bool ok = run_search(m, FW_WISDOM);
    m->options = options;
    m->diags = loud;
    return ok;
}

static bool make(PlanMaking *m)
{
    fw_rigor rigor = m->o->rigor;
    int near = REACH_SIZES | (m->o->any_device ? REACH_DEVICES : 0);
    if ((int)rigor < 0 || (int)rigor >= COUNTOF(rigor_info))
        return diag_error(m->diags, span_none, "C055", "there is no rigor %d", (int)rigor);
    if (!api_options(m->o, m->device, m->arena, &m->options, m->diags) ||
        !variants_open(&m->variants, m->problem->problem, &m->device->info, m->diags) ||
        (m->options.where && !variants_constrain(&m->variants, m->options.where, m->diags)))
        return false;
    bool runs = rigor != FW_ESTIMATE && rigor != FW_WISDOM_ONLY;
    int got = take_wisdom(m, runs ? 0 : near, rigor_info[rigor].rigor);
    if (got < 0 || (got > 0 && (!runs || !m->o->verify || show_wisdom(m))))
        return got > 0;
    if (rigor == FW_WISDOM_ONLY)
        return diag_world(m->diags, "C005", "there is no wisdom for %s on this device",
                          m->problem->label);
    return runs ? search(m, &rigor_info[rigor]) : estimate(m);
}

static void make_deep(void *user)
{
    PlanMaking *m = user;
    m->ok = make(m);
}

fw_plan *api_plan(const fw_device *device)
{
    fw_plan *plan = xcalloc(1, sizeof *plan);
    plan->arena = arena_new();
    plan->device = device->info;
    return plan;
}

fw_plan *fw_plan_make(const fw_problem *problem, const fw_device *device,
                      const fw_plan_options *options, char **message)
{
    static const fw_plan_options defaults;
    Diags diags;
    if (!api_given(problem, "problem", message) || !api_given(device, "device", message))
        return NULL;
    PlanMaking m = {.o = options ? options : &defaults,
                    .problem = problem,
                    .device = device,
                    .arena = arena_new(),
                    .plan = api_plan(device),
                    .diags = &diags};
    diags = (Diags){.arena = arena_new()};
    deep_call(make_deep, &m);
    bool ok = m.ok;
    variants_close(&m.variants);
    api_message(&diags, message);
    arena_free(m.arena);
    if (ok)
        return m.plan;
    fw_plan_free(m.plan);
    return NULL;
}

void fw_plan_free(fw_plan *plan)
{
    if (plan)
        arena_free(plan->arena);
    free(plan);
}

// Asking ------------------------------------------------------------------------------

fw_trial api_trial(const char *point, const Trial *trial)
{
    bool ok = trial->status == TRIAL_OK;
    return (fw_trial){.point = point,
                      .status = trial_status_name[trial->status],
                      .time = ok ? trial->time_ns * 1e-9 : 0,
                      .max_error = trial->max_error,
                      .log = trial->log};
}

fw_origin fw_plan_origin(const fw_plan *plan)
{
    return plan ? plan->origin : FW_PLAIN;
}

const char *fw_plan_found_for(const fw_plan *plan)
{
    return plan ? plan->found_for : NULL;
}

const char *fw_plan_foreign(const fw_plan *plan)
{
    return plan ? plan->foreign : NULL;
}

const char *fw_plan_source(const fw_plan *plan)
{
    return plan ? plan->recipe.source : NULL;
}

const char *fw_plan_target(const fw_plan *plan)
{
    return plan ? target_name(plan->recipe.target) : NULL;
}

const char *fw_plan_point(const fw_plan *plan)
{
    return plan ? plan->recipe.point : NULL;
}

double fw_plan_time(const fw_plan *plan)
{
    return plan ? plan->time_ns * 1e-9 : 0;
}

double fw_plan_baseline(const fw_plan *plan)
{
    return plan ? plan->baseline_ns * 1e-9 : 0;
}

int fw_plan_host(const fw_plan *plan, const char *stem, char **header, char **body,
                 char **message)
{
    if (!api_given(header, "place for the header", message) ||
        !api_given(body, "place for the body", message))
        return 0;
    *header = *body = NULL;
    if (!api_given(plan, "plan", message) || !api_given(stem, "stem", message))
        return 0;
    Diags diags = {.arena = arena_new()};
    AutoBuf head = buf_new(), text = buf_new();
    HostPart part = {.recipe = &plan->recipe, .device = ""};
    bool ok = recipe_host(&part, 1, stem, &head, &text, &diags);
    *header = ok ? xstrdup(head.text) : NULL;
    *body = ok ? xstrdup(text.text) : NULL;
    api_message(&diags, message);
    return ok;
}
