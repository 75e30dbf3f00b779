// SPDX-License-Identifier: Apache-2.0
//
// What a tuning knows of its points: the trials that are stored and those of this run, each
// kept in the store before the next, told to the strategy, and counted in the result.

#include "tune/internal.h"

#include <math.h>
#include <string.h>

void tune_report(Tune *t, const char *stage, TrialStatus last, double last_ns)
{
    tune_follow(t);
    if (!t->options->progress)
        return;
    Progress progress = {.trials = (int)t->result->trials,
                         .best_ns = t->nbest ? t->best[0].ns : INFINITY,
                         .last_ns = last_ns,
                         .last = last,
                         .elapsed_s = clock_s() - t->start_s,
                         .budget_s = t->options->budget_s,
                         .budget_trials = t->options->budget_trials,
                         .stage = stage};
    t->options->progress(t->options->user, &progress);
}

// The record of what was found --------------------------------------------------------

double tune_cost(const Tune *t, const Point *point, double ns, const Measures *measures)
{
    GoalValues values;
    if (goal_is_time(t->goal))
        return ns;
    goal_values(t->goal, point, ns, measures, &values);
    return values.cost;
}

// The front ---------------------------------------------------------------------------

void tune_keep_front(Tune *t, const Finalist *made)
{
    GoalValues own, other;
    int n = 0;
    goal_values(t->goal, &made->point, made->ns, &made->measures, &own);
    VEC_EACH_REF(const Finalist *, f, &t->front) {
        goal_values(t->goal, &f->point, f->ns, &f->measures, &other);
        if (goal_beats(t->goal, &other, &own))
            return; // then it beats none either
        if (!goal_beats(t->goal, &own, &other))
            t->front.at[n++] = *f;
    }
    t->front.len = n;
    if (own.cost < INFINITY)
        VEC_PUSH(t->arena, &t->front, *made);
}

Finalist *tune_finalist(const Tune *t, Finalist *of, int n, const Point *point)
{
    for (int i = 0; i < n; i++)
        if (point_equal(t->space, &of[i].point, point))
            return &of[i];
    return NULL;
}

void tune_keep_best(Tune *t, const Point *point, double ns, const Measures *measures)
{
    const Finalist made = {.point = *point,
                           .cost = tune_cost(t, point, ns, measures),
                           .ns = ns,
                           .measures = *measures,
                           .first_ns = ns,
                           .turn = t->turns++};
    if (goal_objectives(t->goal) > 1)
        tune_keep_front(t, &made);
    int i = t->nbest < FINALISTS ? t->nbest++ : FINALISTS - 1;
    if (i == FINALISTS - 1 && t->nbest == FINALISTS && t->best[i].cost <= made.cost &&
        t->best[i].cost > 0)
        return;
    for (; i > 0 && t->best[i - 1].cost > made.cost; i--)
        t->best[i] = t->best[i - 1];
    t->best[i] = made;
}

void tune_drop(Tune *t, const Point *point)
{
    Finalist *f = tune_finalist(t, t->front.at, t->front.len, point);
    if (f)
        *f = t->front.at[--t->front.len];
}

// An objective that the device does not tell makes a search that goes nowhere.
static void see_aim(Tune *t)
{
    enum { ENOUGH = 3 };
    t->aimless = t->result->count[TRIAL_OK] >= ENOUGH && !(t->best[0].cost < INFINITY);
    t->stopped |= t->aimless;
}

// Less than a hundredth is no gain.
static void see_gain(Tune *t)
{
    static const double GAIN = 0.99;
    if (t->gain.trials && t->best[0].cost > GAIN * t->gain.cost)
        return;
    t->gain.cost = t->best[0].cost;
    t->gain.trials = t->result->trials;
    t->gain.at_s = clock_s();
}

static void record(Tune *t, const Point *point, TrialStatus status, double ns, double error,
                   const Measures *measures)
{
    t->result->trials++;
    t->result->count[status]++;
    if (status != TRIAL_OK)
        return;
    if (!t->nbest)
        t->result->grace_s = fmax(0, clock_s() - t->start_s - t->budget_s);
    t->result->max_error = fmax(t->result->max_error, error);
    tune_keep_best(t, point, ns, measures);
    see_aim(t);
    see_gain(t);
}

static void remember(Tune *t, const char *text, const KnownTrial *trial)
{
    KnownTrial *known = arena_copy(t->arena, trial, sizeof(KnownTrial));
    map_put(&t->known, text, known);
}

static bool exchanges(const Tune *t)
{
    return t->options->t4 || t->options->cache || t->options->command;
}

const double *tune_samples(Tune *t, const double *sample, int n)
{
    return COPY_ARRAY(t->arena, sample, n);
}

static const char *first_line(Tune *t, const char *log)
{
    return log ? arena_strndup(t->arena, log, strcspn(log, "\n")) : "";
}

static const char *why_failed(Tune *t, TrialStatus status, const char *log)
{
    return status != TRIAL_OK && log && log[0] ? first_line(t, log) : NULL;
}

// What nobody measured here is tried, and not believed. Nor is an output that was wrong for
// other data: a reference of files may be for one seed only. A time-out says that so long
// was not enough; where there is more time, it says nothing.
static bool is_believed(Tune *t, const StoreTrial *trial)
{
    Point point;
    if (trial->seed != t->data_seed && (trial->seed | t->data_seed) >> 63)
        return false; // of inputs that somebody gave
    if (trial->status == TRIAL_TIMED_OUT)
        return trial->limit_s >= t->problem->kind->limit_s;
    if (trial->status == TRIAL_WRONG_RESULT)
        return trial->seed == t->data_seed;
    if (trial->status == TRIAL_OK && goal_weighs(t->goal) &&
        isnan(measure_of(&trial->measures, MEASURE_ENERGY)))
        return false;
    if (trial->status != TRIAL_OK || trial->nsample > 0)
        return true;
    if (point_parse(t->space, trial->point, &point) && space_valid(t->space, &point))
        VEC_PUSH(t->arena, &t->claimed, point);
    return false;
}

void tune_load_stored(void *user, const StoreTrial *trial)
{
    Tune *t = user;
    if (map_get(&t->known, trial->point) || !is_believed(t, trial))
        return;
    KnownTrial known = {.status = trial->status,
                        .time_ns = trial->time_ns,
                        .max_error = trial->max_error,
                        .measures = trial->measures,
                        .log = why_failed(t, trial->status, trial->log)};
    if (exchanges(t)) {
        known.exchange =
            (ExchangeTrial){.status = trial->status,
                            .time_ns = trial->time_ns,
                            .sample_ns = tune_samples(t, trial->sample_ns, trial->nsample),
                            .nsample = trial->nsample,
                            .spent_s = trial->spent_s,
                            .stored = true,
                            .measures = trial->measures,
                            .cut = trial->cut,
                            .log = first_line(t, trial->log),
                            .when = exchange_now(t->arena)};
    }
    remember(t, trial->point, &known);
}

// What is stored was checked here, and comes first. Points that only crashed somewhere, or
// were wrong, are tried.
void tune_load_cached(void *user, const ExchangeTrial *trial)
{
    Tune *t = user;
    const char *text = point_text(t->space, &trial->point, t->arena);
    KnownTrial *stored = map_get(&t->known, text);
    if (stored) {
        stored->exchange.held = true;
        return;
    }
    KnownTrial known = {
        .status = trial->status, .time_ns = trial->time_ns, .measures = trial->measures};
    known.exchange = *trial;
    remember(t, text, &known);
}

static void exchange_stored(Tune *t, const Point *point, const KnownTrial *known)
{
    ExchangeTrial trial = known->exchange;
    trial.point = *point;
    trial.at_s = clock_s() - t->start_s;
    if (exchanges(t))
        VEC_PUSH(t->arena, &t->exchange, trial);
}

static void exchange_trial(Tune *t, const Point *point, const Trial *trial)
{
    ExchangeTrial made = {.point = *point,
                          .status = trial->status,
                          .time_ns = trial->time_ns,
                          .nsample = trial->nsample,
                          .build_s = trial->build_s,
                          .check_s = trial->check_s,
                          .timing_s = trial->timing_s,
                          .at_s = clock_s() - t->start_s,
                          .cut = trial->cut,
                          .measures = trial->measures};
    if (!exchanges(t))
        return;
    made.log = first_line(t, trial->status == TRIAL_OK ? NULL : trial->log);
    made.sample_ns = tune_samples(t, trial->sample_ns, trial->nsample);
    made.when = exchange_now(t->arena);
    VEC_PUSH(t->arena, &t->exchange, made);
}

// Trials ------------------------------------------------------------------------------

static void count_known(Tune *t, KnownTrial *known, const Point *point)
{
    known->counted = true;
    t->result->reused++;
    exchange_stored(t, point, known);
    record(t, point, known->status, known->time_ns, known->max_error, &known->measures);
}

static void tell(Tune *t, bool told, const Point *point, TrialStatus status, double ns,
                 const Measures *measures)
{
    if (told)
        search_tell(t->search, point,
                    status == TRIAL_OK ? tune_cost(t, point, ns, measures) : INFINITY);
}

double tune_cutoff_ns(const Tune *t)
{
    bool cuts = goal_is_time(t->goal) && !t->options->samples;
    return t->nbest && cuts ? t->best[0].ns : INFINITY;
}

bool tune_take_trial(Tune *t, bool told, const Point *point, Trial *trial)
{
    const char *text = point_text(t->space, point, t->arena);
    StoreTrial stored = store_trial(text, trial);
    stored.seed = t->data_seed;
    const char *why = why_failed(t, trial->status, trial->log);
    t->last_log = why ? why : t->last_log;
    bool ok = store_put(t->store, t->session, &stored, t->diags);
    remember(t, text,
             &(KnownTrial){.status = trial->status,
                           .time_ns = trial->time_ns,
                           .max_error = trial->max_error,
                           .measures = trial->measures,
                           .counted = true,
                           .log = why});
    exchange_trial(t, point, trial);
    record(t, point, trial->status, trial->time_ns, trial->max_error, &trial->measures);
    tell(t, told, point, trial->status, trial->time_ns, &trial->measures);
    tune_set_end(t, BUDGET_SEARCH);
    if (t->options->on_trial && !t->stopped &&
        t->options->on_trial(t->options->user, text, trial))
        t->stopped = true;
    tune_report(t, "search", trial->status, trial->time_ns);
    return ok;
}

// A kernel's name is that of its point, so that those compiled as one program have names of
// their own, and one that is compiled again is found in the cache.
bool tune_candidate_of(const Variants *variants, uint64_t space, const Point *point,
                       Arena *arena, Candidate *candidate, Diags *diags)
{
    const char *text = point_text(variants->space, point, arena);
    uint64_t hash = hash_bytes(text, strlen(text), space);
    const char *name = arena_printf(arena, "%.80s_%016llx", variants->problem->name,
                                    (unsigned long long)hash);
    return variants_candidate(variants, point, name, arena, candidate, diags);
}

bool tune_candidate(Tune *t, const Point *point, Arena *arena, Candidate *candidate,
                    Diags *diags)
{
    return tune_candidate_of(&t->variants, t->space_hash, point, arena, candidate, diags);
}

// That is a fault of ours in the derivation, but tuning goes on.
bool tune_take_unlowered(Tune *t, bool told, const Point *point, const Diags *why)
{
    AutoBuf log = buf_new();
    diags_print(&log, why);
    Trial failed = {.status = TRIAL_BUILD_FAILED, .time_ns = INFINITY, .log = log.text};
    return tune_take_trial(t, told, point, &failed);
}

bool tune_take_known(Tune *t, bool told, const Point *point)
{
    KnownTrial *known = map_get(&t->known, point_text(t->space, point, t->arena));
    if (!known)
        return false;
    bool news = !known->counted;
    if (news)
        count_known(t, known, point);
    if (news || !t->search->kind->learns)
        tell(t, told, point, known->status, known->time_ns, &known->measures);
    return true;
}
