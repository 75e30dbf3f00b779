// SPDX-License-Identifier: Apache-2.0
//
// Tuning: ask the strategy, skip what is stored, run the rest in batches, store every
// trial, measure the best few again, write the winner out.

#include "plan/tune.h"

#include "cost/features.h"
#include "plan/ceiling.h"
#include "plan/describe.h"
#include "plan/predict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double BATCH_S = 4;
enum { FINAL_SAMPLES = 20 };

static const char *point_text(Tune *t, const Point *point)
{
    Buf text;
    buf_init(&text);
    point_print(&text, t->space, point);
    const char *copy = arena_strdup(t->arena, text.text);
    buf_release(&text);
    return copy;
}

static void report(Tune *t, const char *stage, TrialStatus last, double last_ns)
{
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

static void keep_best(Tune *t, const Point *point, double ns)
{
    int i = t->nbest < FINALISTS ? t->nbest++ : FINALISTS - 1;
    if (i == FINALISTS - 1 && t->nbest == FINALISTS && t->best[i].ns <= ns &&
        t->best[i].ns > 0)
        return;
    for (; i > 0 && t->best[i - 1].ns > ns; i--)
        t->best[i] = t->best[i - 1];
    t->best[i].point = *point;
    t->best[i].ns = ns;
}

static void record(Tune *t, const Point *point, TrialStatus status, double ns, double error)
{
    t->result->trials++;
    t->result->count[status]++;
    if (status != TRIAL_OK)
        return;
    t->result->max_error = fmax(t->result->max_error, error);
    keep_best(t, point, ns);
}

static void remember(Tune *t, const char *text, const Known *trial)
{
    Known *known = NEW(t->arena, Known);
    *known = *trial;
    map_put(&t->known, text, known);
}

static bool exchanges(const Tune *t)
{
    return t->options->t4 || t->options->cache || t->options->command;
}

static const double *copy_samples(Tune *t, const double *sample, int n)
{
    double *copy = NEW_ARRAY(t->arena, double, MAX(n, 1));
    for (int i = 0; i < n; i++)
        copy[i] = sample[i];
    return copy;
}

static const char *first_line(Tune *t, const char *log)
{
    return log ? arena_strndup(t->arena, log, strcspn(log, "\n")) : "";
}

static const char *why_failed(Tune *t, TrialStatus status, const char *log)
{
    return status != TRIAL_OK && log && log[0] ? first_line(t, log) : NULL;
}

static void load_stored(void *user, const StoreTrial *trial)
{
    Tune *t = user;
    Known known = {.status = trial->status,
                   .time_ns = trial->time_ns,
                   .max_error = trial->max_error,
                   .log = why_failed(t, trial->status, trial->log)};
    if (exchanges(t)) {
        known.exchange =
            (ExchangeTrial){.status = trial->status,
                            .time_ns = trial->time_ns,
                            .sample_ns = copy_samples(t, trial->sample_ns, trial->nsample),
                            .nsample = trial->nsample,
                            .spent_s = trial->spent_s,
                            .stored = true,
                            .cut = trial->cut,
                            .log = first_line(t, trial->log),
                            .when = exchange_now(t->arena)};
    }
    remember(t, trial->point, &known);
}

static void exchange_stored(Tune *t, const Point *point, const Known *known)
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
                          .cut = trial->cut};
    if (!exchanges(t))
        return;
    made.log = first_line(t, trial->status == TRIAL_OK ? NULL : trial->log);
    made.sample_ns = copy_samples(t, trial->sample_ns, trial->nsample);
    made.when = exchange_now(t->arena);
    VEC_PUSH(t->arena, &t->exchange, made);
}

// Batches -----------------------------------------------------------------------------

typedef struct {
    Tune *t;
    Candidate candidate[TUNE_BATCH];
    Job job[TUNE_BATCH];
    Point point[TUNE_BATCH];
    int n;
    bool told; // outcomes go to the strategy
    bool store_failed;
} Batch;

static void count_known(Tune *t, Known *known, const Point *point)
{
    known->counted = true;
    t->result->reused++;
    exchange_stored(t, point, known);
    record(t, point, known->status, known->time_ns, known->max_error);
}

static void tell(Tune *t, bool told, const Point *point, TrialStatus status, double ns)
{
    if (told)
        search_tell(t->search, point, status == TRIAL_OK ? ns : INFINITY);
}

// What is clearly worse than this is not timed further, unless a record is wanted.
double tune_cutoff_ns(const Tune *t)
{
    return t->nbest && !t->options->samples ? t->best[0].ns : INFINITY;
}

// False if it could not be stored.
bool tune_take_trial(Tune *t, bool told, const Point *point, Trial *trial)
{
    const char *text = point_text(t, point);
    StoreTrial stored = store_trial(text, trial);
    const char *why = why_failed(t, trial->status, trial->log);
    t->last_log = why ? why : t->last_log;
    bool ok = store_put(t->store, t->session, &stored, t->diags);
    remember(t, text,
             &(Known){.status = trial->status,
                      .time_ns = trial->time_ns,
                      .max_error = trial->max_error,
                      .counted = true,
                      .log = why});
    exchange_trial(t, point, trial);
    record(t, point, trial->status, trial->time_ns, trial->max_error);
    tell(t, told, point, trial->status, trial->time_ns);
    if (t->options->on_trial && t->options->on_trial(t->options->user, text, trial))
        t->stopped = true;
    report(t, "search", trial->status, trial->time_ns);
    return ok;
}

static double on_trial(void *user, int job, Trial *trial)
{
    Batch *batch = user;
    if (!batch->store_failed)
        batch->store_failed =
            !tune_take_trial(batch->t, batch->told, &batch->point[job], trial);
    return tune_cutoff_ns(batch->t);
}

// A candidate that cannot be lowered is a fault of ours in the derivation, but tuning goes
// on: it counts as not built. False if that could not be stored.
bool tune_take_unlowered(Tune *t, bool told, const Point *point, const Diags *why)
{
    Buf log;
    buf_init(&log);
    diags_print(&log, why);
    Trial failed = {.status = TRIAL_BUILD_FAILED, .time_ns = INFINITY, .log = log.text};
    bool ok = tune_take_trial(t, told, point, &failed);
    buf_release(&log);
    return ok;
}

static void add_candidate(Batch *batch, const Point *point)
{
    Tune *t = batch->t;
    Diags quiet;
    diags_init(&quiet, t->scratch);
    char name[128];
    snprintf(name, sizeof name, "%.80s_c%d", t->problem->name, t->serial++);
    batch->point[batch->n] = *point;
    Candidate *candidate = &batch->candidate[batch->n];
    if (ways_candidate(&t->ways, point, arena_strdup(t->scratch, name), t->scratch,
                       candidate, &quiet))
        batch->job[batch->n++] = candidate->job;
    else
        batch->store_failed |= !tune_take_unlowered(t, batch->told, point, &quiet);
}

static bool run_batch(Batch *batch)
{
    Tune *t = batch->t;
    double cutoff = tune_cutoff_ns(t);
    bool ok = rig_run(t->rig, batch->job, batch->n, cutoff, on_trial, batch, t->diags);
    for (int i = 0; i < batch->n; i++)
        candidate_release(&batch->candidate[i]);
    return ok && !batch->store_failed;
}

// A trial this store already holds costs nothing.
bool tune_take_known(Tune *t, bool told, const Point *point)
{
    Known *known = map_get(&t->known, point_text(t, point));
    if (!known)
        return false;
    bool news = !known->counted;
    if (news)
        count_known(t, known, point);
    if (news || !t->search->kind->learns)
        tell(t, told, point, known->status, known->time_ns);
    return true;
}

bool tune_budget_left(const Tune *t)
{
    const TuneOptions *o = t->options;
    return !t->stopped && clock_s() - t->search_s < o->budget_s &&
           (!o->budget_trials || t->result->trials < o->budget_trials);
}

static bool fill_batch(Batch *batch, NextPoint *next, int most)
{
    Tune *t = batch->t;
    Point point;
    int64_t trials = t->options->budget_trials;
    while (batch->n < most && tune_budget_left(t) &&
           (!trials || t->result->trials + batch->n < trials)) {
        if (!next(t, &point)) // there may be more once these are told
            return batch->n > 0;
        if (!tune_take_known(t, batch->told, &point))
            add_candidate(batch, &point);
    }
    return tune_budget_left(t);
}

// As many trials as so many seconds, and the time left, should allow at the pace so far.
int tune_trials_in(const Tune *t, double seconds, int most)
{
    double now = clock_s(), left = t->options->budget_s - (now - t->search_s);
    int64_t done = t->result->trials - t->result->reused;
    if (done < 1)
        return most;
    double pace = (now - t->search_s) / (double)done;
    return (int)fmin(most, fmax(1, fmin(left, seconds) / pace));
}

// No more than take a few seconds, because a batch in flight is lost when the run is
// killed.
static int batch_size(const Tune *t)
{
    return tune_trials_in(t, BATCH_S, MIN(rig_batch(t->rig), TUNE_BATCH));
}

static bool run_batches(Tune *t, NextPoint *next, bool told)
{
    Batch *batch = xcalloc(1, sizeof *batch);
    bool more = true, ok = true;
    while (ok && more) {
        *batch = (Batch){.t = t, .told = told};
        Ir *ir = t->problem->ir;
        ArithMark arith = arith_mark(ir->arith);
        ArenaMark exprs = arena_mark(ir->arena), scratch = arena_mark(t->scratch);
        more = fill_batch(batch, next, batch_size(t));
        ok = batch->n == 0 || run_batch(batch);
        arena_reset(t->scratch, scratch);
        arena_reset(ir->arena, exprs);
        arith_release(ir->arith, arith);
    }
    free(batch);
    return ok;
}

// Runs points given by `next` until it has none; false on failure. Only batches are shared
// with other devices.
static bool run_points(Tune *t, NextPoint *next, bool told)
{
    bool stream = !t->device->is_cpu && !t->search->kind->learns && rig_peers(t->rig) == 0;
    return (stream ? tune_stream : run_batches)(t, next, told);
}

static bool next_first(Tune *t, Point *point)
{
    if (t->asked_first == t->nfirst)
        return false;
    *point = t->first[t->asked_first++];
    return true;
}

static bool next_asked(Tune *t, Point *point)
{
    return search_ask(t->search, point);
}

// What bounds everything --------------------------------------------------------------

// The floor, from what is stored of the device or measured now.
static bool find_floor(Tune *t)
{
    if (t->options->no_floor)
        return true;
    const DeviceInfo *device = t->device;
    Work work = problem_work(t->problem);
    Ceilings ceilings = {0};
    int64_t bytes = ceilings_bytes(device, work.bytes);
    if (!ceilings_load(t->store, device, bytes, &ceilings, t->diags) ||
        !ceilings_measure(t->store, device, &t->options->place, bytes, &ceilings, t->diags))
        return false;
    Floor floor = floor_of(&work, &ceilings);
    t->result->flops = work.float_flops + work.double_flops;
    t->result->copy_ns = floor.memory_ns;
    t->result->compute_ns = floor.compute_ns;
    t->result->floor_ns = floor.ns;
    return true;
}

// Bytes in flight of the best kernel, which must cover latency times bandwidth.
static void find_flight(Tune *t, const Unit *unit)
{
    DeviceModel model;
    double feature[FEATURES];
    describe_device(t->device, &model);
    FeatureSetting setting = {&model, t->problem->binding, t->problem->nbinding};
    if (unit && !model.is_cpu && features_unit(unit, &setting, feature))
        t->result->in_flight_bytes = feature[FEATURE_IN_FLIGHT];
}

// Stages ------------------------------------------------------------------------------

static bool compute_reference(Tune *t)
{
    report(t, "reference", TRIAL_OK, INFINITY);
    const ProblemKind *kind = t->problem->kind;
    t->data = kind->data(t->problem, t->options->seed, NULL, t->arena, t->diags);
    return t->data &&
           kind->expect(t->problem, t->data, t->options->device, &t->options->place,
                        t->arena, &t->result->reference, t->diags);
}

static void set_device(Tune *t, const DeviceInfo *device)
{
    t->device = device;
    t->result->device = arena_strdup(t->arena, device->name);
    t->result->fingerprint = arena_strdup(t->arena, device->fingerprint);
    t->result->target = target_name(target_find(device->target));
}

// What the space depends on, known before the reference is computed, which may take long.
static bool look_at_device(Tune *t)
{
    DeviceInfo *device = NEW(t->arena, DeviceInfo);
    if (!devices_find(t->arena, t->options->place.worker, t->options->device, device,
                      t->diags))
        return false;
    set_device(t, device);
    return true;
}

static bool open_device(Tune *t)
{
    RigConfig config = {.device = t->options->device,
                        .worker = t->options->place.worker,
                        .folder = t->options->place.folder,
                        .nbuffer = t->data->nbuffer,
                        .buffer = t->data->buffer,
                        .share = t->options->share,
                        .npeer = t->options->npeer,
                        .peer = t->options->peer,
                        .tolerance = t->data->tolerance,
                        .samples = t->options->samples};
    t->rig = rig_open(&config, t->diags);
    if (!t->rig)
        return false;
    set_device(t, rig_device(t->rig));
    return true;
}

// The device that a worker opens must be the one that was described: the session is its.
static bool open_described(Tune *t)
{
    const DeviceInfo *described = t->device;
    if (!compute_reference(t) || !open_device(t))
        return false;
    if (strcmp(described->fingerprint, t->device->fingerprint) == 0)
        return true;
    diag_world(t->diags, "C051", "%s is now another device: %s", t->options->device,
               t->device->name);
    set_device(t, described);
    rig_close(t->rig);
    t->rig = NULL; // the next call must not measure there
    return false;
}

static void set_first(Tune *t)
{
    int n = ways_first(&t->ways, t->first, COUNTOF(t->first));
    t->has_plain = space_valid(t->space, &t->first[0]);
    for (int i = 0; i < n; i++)
        if (space_valid(t->space, &t->first[i]))
            t->first[t->nfirst++] = t->first[i];
}

static bool open_space(Tune *t)
{
    if (!ways_open(&t->ways, t->problem, t->device, t->diags))
        return false;
    t->space = t->ways.space;
    t->space_hash = space_hash(t->space);
    if (t->options->where && !ways_constrain(&t->ways, t->options->where, t->diags))
        return false;
    t->result->space_points = space_count(t->space);
    set_first(t);
    return true;
}

static bool open_store(Tune *t)
{
    t->store = store_open(t->options->store, t->diags);
    if (!t->store)
        return false;
    StoreKey key;
    plan_key(t->problem, t->space_hash, t->device, &key);
    t->session = store_session(t->store, &key, t->diags);
    if (!t->session)
        return false;
    if (t->options->fresh && !store_forget(t->store, t->session, t->diags))
        return false;
    return store_each(t->store, t->session, load_stored, t, t->diags);
}

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
    report(t, "rank", TRIAL_OK, INFINITY);
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
    Known *known = map_get(&t->known, trial->point);
    if (!known || !point_parse(t->space, trial->point, &point) ||
        !space_valid(t->space, &point))
        return;
    count_known(t, known, &point);
    tell(t, true, &point, known->status, known->time_ns);
}

static bool open_search(Tune *t)
{
    const SearchKind *kind = search_find(t->options->strategy);
    if (!kind)
        return diag_error(t->diags, span_none, "C010", "there is no strategy `%s`",
                          t->options->strategy);
    double limit = t->options->budget_trials ? (double)t->options->budget_trials : INFINITY;
    t->search = search_open(kind, t->space, t->options->seed, limit);
    t->search->stage[0] = t->options->stage[0];
    t->search->stage[1] = t->options->stage[1];
    t->result->strategy = kind->name;
    if (kind->learns && !store_each(t->store, t->session, tell_stored, t, t->diags))
        return false;
    return (!kind->needs_ranking || set_ranking(t)) && (!kind->needs_steps || set_steps(t));
}

// The first points, among them the plain one, are tried before any strategy.
static bool try_first(Tune *t)
{
    t->search_s = clock_s();
    if (!run_points(t, next_first, t->search->kind->learns))
        return false;
    const Known *plain =
        t->has_plain ? map_get(&t->known, point_text(t, &t->first[0])) : NULL;
    t->result->baseline_ns = plain && plain->status == TRIAL_OK ? plain->time_ns : INFINITY;
    return true;
}

// Differences below 10 % between runs minutes apart mean nothing, so the best few are timed
// again, side by side, with more samples.
static bool measure_finalist(Tune *t, int i, void **out, Diags *diags)
{
    Candidate candidate;
    Trial trial = {0};
    char name[128];
    snprintf(name, sizeof name, "%.80s_c%d", t->problem->name, t->serial++);
    bool ok = ways_candidate(&t->ways, &t->best[i].point, arena_strdup(t->arena, name),
                             t->arena, &candidate, diags) &&
              rig_run_one(t->rig, &candidate.job, FINAL_SAMPLES, &trial, out, diags);
    t->best[i].ns = trial.status == TRIAL_OK ? trial.time_ns : INFINITY;
    trial_release(&trial);
    candidate_release(&candidate);
    return ok;
}

static bool measure_again(Tune *t)
{
    report(t, "re-measure", TRIAL_OK, INFINITY);
    for (int i = 0; i < t->nbest; i++)
        if (!measure_finalist(t, i, NULL, t->diags))
            return false;
    for (int i = 1; i < t->nbest; i++)
        for (int k = i; k > 0 && t->best[k].ns < t->best[k - 1].ns; k--) {
            double ns = t->best[k].ns;
            Point point = t->best[k].point;
            t->best[k] = t->best[k - 1];
            t->best[k - 1].point = point;
            t->best[k - 1].ns = ns;
        }
    return true;
}

// Where the outputs of a run are read to; owner: arena.
static void **output_memory(const Tune *t)
{
    void **out = NEW_ARRAY(t->arena, void *, t->data->nbuffer);
    for (int k = 0; k < t->data->noutput; k++) {
        const RigBuffer *buffer = &t->data->buffer[t->data->output[k]];
        out[t->data->output[k]] = arena_alloc(
            t->arena, (size_t)buffer->count * scalar_device_bytes(buffer->scalar));
    }
    return out;
}

// The fastest that the caller accepts comes first.
static bool ask_caller(Tune *t)
{
    const TuneOptions *o = t->options;
    void **out = o->accept ? output_memory(t) : NULL;
    for (int i = 0; o->accept && i < t->nbest && t->best[i].ns < INFINITY; i++) {
        if (!measure_finalist(t, i, out, t->diags))
            return false;
        if (t->best[i].ns < INFINITY && o->accept(o->user, point_text(t, &t->best[i].point),
                                                  t->data->buffer, t->data->nbuffer, out)) {
            t->best[0] = t->best[i];
            return true;
        }
    }
    if (o->accept && t->nbest && t->best[0].ns < INFINITY)
        return diag_world(t->diags, "C050", "the caller accepted none of the best %d",
                          t->nbest);
    return true;
}

static bool write_text(Tune *t, const Candidate *candidate)
{
    if (!file_mkdirs(t->options->out))
        return diag_world(t->diags, "C011", "cannot make the folder %s: %s",
                          t->options->out, strerror(errno));
    Buf text;
    buf_init(&text);
    ways_text(&t->ways, candidate, &text);
    const char *path = arena_printf(t->arena, "%s/%s.%s", t->options->out, t->problem->name,
                                    target_extension(t->ways.target));
    bool ok = file_write(path, text.text, text.len);
    if (!ok)
        diag_world(t->diags, "C012", "cannot write %s: %s", path, strerror(errno));
    t->result->kernel_path = path;
    t->kernel_text = arena_strdup(t->arena, text.text);
    buf_release(&text);
    return ok;
}

static bool write_kernel(Tune *t)
{
    Candidate candidate;
    if (!ways_candidate(&t->ways, &t->best[0].point, t->problem->name, t->arena, &candidate,
                        t->diags))
        return false;
    bool ok = !t->options->out || write_text(t, &candidate);
    t->result->nlaunch = candidate.job.nlaunch;
    for (int d = 0; d < 3 && candidate.job.nlaunch; d++) {
        t->result->global[d] = candidate.job.launch[0].global[d];
        t->result->local[d] = candidate.job.launch[0].local[d];
    }
    find_flight(t, candidate.unit);
    candidate_release(&candidate);
    return ok;
}

static bool no_winner(Tune *t)
{
    Buf text;
    buf_init(&text);
    for (int i = 0; i < TRIAL_STATUS_COUNT; i++)
        if (t->result->count[i])
            buf_printf(&text, " %lld %s", (long long)t->result->count[i],
                       trial_status_name[i]);
    diag_world(t->diags, "C013", "no candidate was built, right and in time:%s%s%s",
               text.len ? text.text : " none was tried",
               t->last_log[0] ? "; the last: " : "", t->last_log);
    buf_release(&text);
    return false;
}

// What this search was worth: another, no more rigorous one need not be made.
static bool put_rigor(Tune *t)
{
    double spent_s = clock_s() - t->search_s;
    bool all = (double)t->result->trials >= t->result->space_points;
    t->result->rigor = t->stopped || t->options->where  ? RIGOR_NONE
                       : all                            ? RIGOR_EXHAUSTIVE
                       : spent_s >= RIGOR_PATIENT_S - 1 ? RIGOR_PATIENT
                                                        : RIGOR_MEASURE;
    return store_put_rigor(t->store, t->session, t->result->rigor, t->diags);
}

static bool conclude(Tune *t)
{
    t->result->checked = t->nbest && t->best[0].ns < INFINITY;
    if (!t->result->checked)
        return no_winner(t);
    t->result->best_ns = t->best[0].ns;
    t->result->point = point_text(t, &t->best[0].point);
    return put_rigor(t) && find_floor(t) && write_kernel(t);
}

static void close_all(Tune *t)
{
    if (t->search)
        search_close(t->search);
    store_close(t->store);
    ways_close(&t->ways);
    if (t->rig)
        rig_close(t->rig);
    arena_free(t->scratch);
}

static void start(Tune *t, const Problem *problem, const TuneOptions *options, Arena *arena,
                  TuneResult *result, Diags *diags)
{
    *t = (Tune){.problem = problem,
                .options = options,
                .arena = arena,
                .result = result,
                .diags = diags,
                .start_s = clock_s(),
                .scratch = arena_new(),
                .last_log = ""};
    *result = (TuneResult){.problem = problem_label(problem),
                           .seed = options->seed,
                           .bytes = problem_bytes(problem),
                           .best_ns = INFINITY};
    map_init(&t->known, arena);
}

bool tune(const Problem *problem, const TuneOptions *options, Arena *arena,
          TuneResult *result, Diags *diags)
{
    Tune t;
    start(&t, problem, options, arena, result, diags);
    bool ok = look_at_device(&t) && open_space(&t) && open_described(&t) &&
              open_store(&t) && open_search(&t) && try_first(&t) &&
              run_points(&t, next_asked, true) && tune_write_exchange(&t) &&
              measure_again(&t) && ask_caller(&t);
    if (ok) {
        bool found = conclude(&t);
        ok = tune_write_record(&t) && found;
    }
    result->elapsed_s = clock_s() - t.start_s;
    result->devices = t.rig ? 1 + rig_peers(t.rig) : 0;
    close_all(&t);
    return ok;
}

bool tune_serve(const Problem *problem, const TuneOptions *options, const Link *link,
                Diags *diags)
{
    Tune t;
    TuneResult result;
    Arena *arena = arena_new();
    start(&t, problem, options, arena, &result, diags);
    bool ready = compute_reference(&t) && open_device(&t);
    bool ok = remote_serve(ready ? t.rig : NULL, link,
                           diags->list.len ? diags->list.at[0].message : "");
    close_all(&t);
    arena_free(arena);
    return ready && (ok || diag_world(diags, "C061",
                                      "the search that this process served "
                                      "is gone"));
}

// Led by the caller -------------------------------------------------------------------

Tune *tune_open(const Problem *problem, const TuneOptions *options,
                const DeviceInfo *device, Arena *arena, TuneResult *result, Diags *diags)
{
    Tune *t = xcalloc(1, sizeof *t);
    start(t, problem, options, arena, result, diags);
    set_device(t, device);
    t->search_s = t->start_s;
    if (open_space(t) && open_store(t) && open_search(t))
        return t;
    tune_close(t);
    return NULL;
}

void tune_close(Tune *t)
{
    if (t)
        close_all(t);
    free(t);
}

const Ways *tune_ways(const Tune *t)
{
    return &t->ways;
}

bool tune_ask(Tune *t, Point *point)
{
    return search_ask(t->search, point);
}

void tune_tell(Tune *t, const Point *point, double ns)
{
    double cost;
    if (t->search->kind->learns || search_known(t->search, point, &cost))
        search_tell(t->search, point, ns);
    if (ns < INFINITY)
        keep_best(t, point, ns);
}

static bool next_given(Tune *t, Point *point)
{
    const Point *given = t->given;
    t->given = NULL;
    if (given)
        *point = *given;
    return given != NULL;
}

bool tune_measure(Tune *t, const Point *point, Trial *trial, Diags *diags)
{
    t->diags = diags;
    t->given = point;
    *trial = (Trial){.status = TRIAL_FAILED, .time_ns = INFINITY};
    if (!t->rig && !open_described(t))
        return false;
    if (!run_points(t, next_given, false))
        return false;
    const Known *known = map_get(&t->known, point_text(t, point));
    if (!known)
        return diag_world(diags, "C052", "the point was not tried");
    trial->status = known->status;
    trial->time_ns = known->status == TRIAL_OK ? known->time_ns : INFINITY;
    trial->max_error = known->max_error;
    trial->log = (char *)known->log;
    return true;
}

bool tune_measured(Tune *t, const Point *point, double *ns)
{
    const Known *known = map_get(&t->known, point_text(t, point));
    *ns = known ? known->time_ns : INFINITY;
    return known && known->status == TRIAL_OK;
}

bool tune_best(const Tune *t, Point *point, double *ns)
{
    if (t->nbest == 0 || !(t->best[0].ns < INFINITY))
        return false;
    *point = t->best[0].point;
    *ns = t->best[0].ns;
    return true;
}
