// SPDX-License-Identifier: Apache-2.0
//
// Tuning: ask the strategy, skip what is stored, run the rest in batches, store every
// trial, measure the best few again, write the winner out.

#include "plan/ceiling.h"

#include "cost/features.h"
#include "plan/describe.h"
#include "plan/predict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double BATCH_S = 4;
enum { FINALISTS = 5, FINAL_SAMPLES = 20, BATCH_MOST = 256 };

// A trial this run knows, by its point.
typedef struct {
    TrialStatus status;
    double time_ns, max_error;
    bool counted; // in this run's result
    ExchangeTrial exchange;
} Known;

typedef struct {
    const Problem *problem;
    const TuneOptions *options;
    Arena *arena;
    TuneResult *result;
    Diags *diags;
    double start_s, search_s; // when tuning began, and its first trial
    ProblemData *data;
    Rig *rig;
    Ways ways;
    const Space *space;
    Store *store;
    int64_t session;
    Map known;                   // point text to Known
    VEC(ExchangeTrial) exchange; // trials of this run, where they are to be written
    Search *search;
    int asked_first; // of the points tried before the strategy's
    Point first[16];
    int nfirst;
    bool has_plain;      // the first of them is the plain point
    uint64_t space_hash; // without options->where: trials are the same
    struct {
        Point point;
        double ns;
    } best[FINALISTS]; // sorted
    int nbest;
    const char *last_log; // of the last trial that failed
    int serial;           // makes kernel names unique
    Arena *scratch;       // candidates of the batch at hand
} Tune;

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
    return t->options->t4 || t->options->cache;
}

static const double *copy_samples(Tune *t, const double *sample, int n)
{
    double *copy = NEW_ARRAY(t->arena, double, MAX(n, 1));
    for (int i = 0; i < n; i++)
        copy[i] = sample[i];
    return copy;
}

static void load_stored(void *user, const StoreTrial *trial)
{
    Tune *t = user;
    Known known = {
        .status = trial->status, .time_ns = trial->time_ns, .max_error = trial->max_error};
    if (exchanges(t)) {
        known.exchange =
            (ExchangeTrial){.status = trial->status,
                            .time_ns = trial->time_ns,
                            .sample_ns = copy_samples(t, trial->sample_ns, trial->nsample),
                            .nsample = trial->nsample,
                            .spent_s = trial->spent_s,
                            .when = exchange_now(t->arena)};
    }
    remember(t, trial->point, &known);
}

static void exchange_stored(Tune *t, const Point *point, const Known *known)
{
    ExchangeTrial trial = known->exchange;
    trial.point = *point;
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
                          .timing_s = trial->timing_s};
    if (!exchanges(t))
        return;
    made.sample_ns = copy_samples(t, trial->sample_ns, trial->nsample);
    made.when = exchange_now(t->arena);
    VEC_PUSH(t->arena, &t->exchange, made);
}

// Batches -----------------------------------------------------------------------------

typedef struct {
    Tune *t;
    Candidate candidate[BATCH_MOST];
    Job job[BATCH_MOST];
    Point point[BATCH_MOST];
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

static double on_trial(void *user, int job, Trial *trial)
{
    Batch *batch = user;
    Tune *t = batch->t;
    const Point *point = &batch->point[job];
    const char *text = point_text(t, point);
    StoreTrial stored = {.point = text,
                         .status = trial->status,
                         .time_ns = trial->time_ns,
                         .cut = trial->cut,
                         .max_error = trial->max_error,
                         .spent_s = trial->build_s + trial->check_s + trial->timing_s,
                         .log = trial->log,
                         .sample_ns = trial->sample_ns,
                         .nsample = trial->nsample};
    if (trial->status != TRIAL_OK && trial->log)
        t->last_log = arena_strndup(t->arena, trial->log, strcspn(trial->log, "\n"));
    if (!batch->store_failed)
        batch->store_failed = !store_put(t->store, t->session, &stored, t->diags);
    remember(t, text,
             &(Known){.status = trial->status,
                      .time_ns = trial->time_ns,
                      .max_error = trial->max_error,
                      .counted = true});
    exchange_trial(t, point, trial);
    record(t, point, trial->status, trial->time_ns, trial->max_error);
    tell(t, batch->told, point, trial->status, trial->time_ns);
    report(t, "search", trial->status, trial->time_ns);
    return t->nbest ? t->best[0].ns : INFINITY;
}

// A candidate that cannot be lowered is a fault of ours in the derivation, but tuning goes
// on: it counts as not built.
static bool add_candidate(Batch *batch, const Point *point)
{
    Tune *t = batch->t;
    Diags quiet;
    diags_init(&quiet, t->scratch);
    char name[128];
    snprintf(name, sizeof name, "%.80s_c%d", t->problem->name, t->serial++);
    batch->point[batch->n] = *point;
    Candidate *candidate = &batch->candidate[batch->n];
    if (ways_candidate(&t->ways, point, arena_strdup(t->scratch, name), t->scratch,
                       candidate, &quiet)) {
        batch->job[batch->n++] = candidate->job;
        return true;
    }
    Buf log;
    buf_init(&log);
    diags_print(&log, &quiet);
    Trial failed = {.status = TRIAL_BUILD_FAILED, .time_ns = INFINITY, .log = log.text};
    on_trial(batch, batch->n, &failed);
    buf_release(&log);
    return false;
}

static bool run_batch(Batch *batch)
{
    Tune *t = batch->t;
    double cutoff = t->nbest ? t->best[0].ns : INFINITY;
    bool ok = rig_run(t->rig, batch->job, batch->n, cutoff, on_trial, batch, t->diags);
    for (int i = 0; i < batch->n; i++)
        candidate_release(&batch->candidate[i]);
    return ok && !batch->store_failed;
}

// A trial this store already holds costs nothing.
static bool take_known(Batch *batch, const Point *point)
{
    Tune *t = batch->t;
    Known *known = map_get(&t->known, point_text(t, point));
    if (!known)
        return false;
    bool news = !known->counted;
    if (news)
        count_known(t, known, point);
    if (news || !t->search->kind->learns)
        tell(t, batch->told, point, known->status, known->time_ns);
    return true;
}

// Runs points given by `next` until it has none, a batch at a time; false on failure.
typedef bool NextPoint(Tune *t, Point *point);

static bool budget_left(const Tune *t)
{
    const TuneOptions *o = t->options;
    return clock_s() - t->search_s < o->budget_s &&
           (!o->budget_trials || t->result->trials < o->budget_trials);
}

static bool fill_batch(Batch *batch, NextPoint *next, int most)
{
    Tune *t = batch->t;
    Point point;
    int64_t trials = t->options->budget_trials;
    while (batch->n < most && budget_left(t) &&
           (!trials || t->result->trials + batch->n < trials)) {
        if (!next(t, &point)) // there may be more once these are told
            return batch->n > 0;
        if (!take_known(batch, &point))
            add_candidate(batch, &point);
    }
    return budget_left(t);
}

// As many trials as the time left should allow, at the pace so far; and no more than take a
// few seconds, because a batch in flight is lost when the run is killed.
static int batch_size(const Tune *t)
{
    int most = MIN(rig_batch(t->rig), BATCH_MOST);
    double now = clock_s(), left = t->options->budget_s - (now - t->search_s);
    int64_t done = t->result->trials - t->result->reused;
    if (done < 1)
        return most;
    left = fmin(left, BATCH_S);
    double pace = (now - t->search_s) / (double)done;
    return (int)fmin(most, fmax(1, left / pace));
}

static bool run_points(Tune *t, NextPoint *next, bool told)
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
    const DeviceInfo *device = rig_device(t->rig);
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
    describe_device(rig_device(t->rig), &model);
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

static bool open_device(Tune *t)
{
    RigConfig config = {.device = t->options->device,
                        .worker = t->options->place.worker,
                        .folder = t->options->place.folder,
                        .nbuffer = t->data->nbuffer,
                        .buffer = t->data->buffer,
                        .tolerance = t->data->tolerance};
    t->rig = rig_open(&config, t->diags);
    if (!t->rig)
        return false;
    const DeviceInfo *device = rig_device(t->rig);
    t->result->device = arena_strdup(t->arena, device->name);
    t->result->fingerprint = arena_strdup(t->arena, device->fingerprint);
    t->result->target = target_name(target_find(device->target));
    return true;
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
    if (!ways_open(&t->ways, t->problem, rig_device(t->rig), t->diags))
        return false;
    t->space = t->ways.space;
    t->space_hash = space_hash(t->space);
    if (t->options->where && !ways_constrain(&t->ways, t->options->where, t->diags))
        return false;
    t->result->space_points = space_count(t->space);
    set_first(t);
    return true;
}

static void fill_key(const Problem *problem, uint64_t hash, const DeviceInfo *device,
                     StoreKey *key)
{
    *key = (StoreKey){.problem = problem_label(problem),
                      .problem_hash = problem_hash(problem),
                      .space_hash = hash,
                      .fingerprint = device->fingerprint,
                      .device = device->name,
                      .version = CODEGEN_VERSION};
}

static bool open_store(Tune *t)
{
    t->store = store_open(t->options->store, t->diags);
    if (!t->store)
        return false;
    StoreKey key;
    fill_key(t->problem, t->space_hash, rig_device(t->rig), &key);
    t->session = store_session(t->store, &key, t->diags);
    if (!t->session)
        return false;
    if (t->options->fresh && !store_forget(t->store, t->session, t->diags))
        return false;
    return store_each(t->store, t->session, load_stored, t, t->diags);
}

static void compare_device(Tune *t, const char *fingerprint)
{
    if (strcmp(fingerprint, rig_device(t->rig)->fingerprint) != 0)
        diag_warning(t->diags, span_none, "C018", "%s was fitted on another device",
                     t->options->model);
}

// Points in the order of the predictions of a model, or of the device's weights.
static bool make_ranking(Tune *t, Ranking *ranking)
{
    const DeviceInfo *device = rig_device(t->rig);
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

// The steps begin at the plain point.
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
    t->search->start = t->nfirst ? &t->first[0] : NULL;
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
static bool measure_again(Tune *t)
{
    report(t, "re-measure", TRIAL_OK, INFINITY);
    for (int i = 0; i < t->nbest; i++) {
        Candidate candidate;
        Trial trial = {0};
        char name[128];
        snprintf(name, sizeof name, "%.80s_c%d", t->problem->name, t->serial++);
        if (!ways_candidate(&t->ways, &t->best[i].point, arena_strdup(t->arena, name),
                            t->arena, &candidate, t->diags) ||
            !rig_run_one(t->rig, &candidate.job, FINAL_SAMPLES, &trial, NULL, t->diags))
            return false;
        t->best[i].ns = trial.status == TRIAL_OK ? trial.time_ns : INFINITY;
        trial_release(&trial);
        candidate_release(&candidate);
    }
    for (int i = 1; i < t->nbest; i++)
        if (t->best[i].ns < t->best[0].ns)
            t->best[0] = t->best[i];
    return true;
}

static bool write_kernel(Tune *t)
{
    if (!file_mkdirs(t->options->out))
        return diag_world(t->diags, "C011", "cannot make the folder %s: %s",
                          t->options->out, strerror(errno));
    Candidate candidate;
    if (!ways_candidate(&t->ways, &t->best[0].point, t->problem->name, t->arena, &candidate,
                        t->diags))
        return false;
    Buf text;
    buf_init(&text);
    ways_text(&t->ways, &candidate, &text);
    const char *path = arena_printf(t->arena, "%s/%s.%s", t->options->out, t->problem->name,
                                    target_extension(t->ways.target));
    bool ok = file_write(path, text.text, text.len);
    if (!ok)
        diag_world(t->diags, "C012", "cannot write %s: %s", path, strerror(errno));
    t->result->kernel_path = path;
    t->result->nlaunch = candidate.job.nlaunch;
    for (int d = 0; d < 3 && candidate.job.nlaunch; d++) {
        t->result->global[d] = candidate.job.launch[0].global[d];
        t->result->local[d] = candidate.job.launch[0].local[d];
    }
    find_flight(t, candidate.unit);
    buf_release(&text);
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

static bool conclude(Tune *t)
{
    t->result->checked = t->nbest && t->best[0].ns < INFINITY;
    if (!t->result->checked)
        return no_winner(t);
    t->result->best_ns = t->best[0].ns;
    t->result->point = point_text(t, &t->best[0].point);
    return find_floor(t) && write_kernel(t);
}

// What was tried is written even if nothing of it was right.
static bool write_exchange(Tune *t)
{
    const Problem *problem = t->problem;
    int64_t *size = NEW_ARRAY(t->arena, int64_t, MAX(problem->nbinding, 1));
    for (int i = 0; i < problem->nbinding; i++)
        size[i] = problem->binding[i].value;
    const Exchange exchange = {.device = t->result->device,
                               .kernel = problem->name,
                               .size = size,
                               .nsize = problem->nbinding,
                               .space = t->space,
                               .trial = t->exchange.at,
                               .n = t->exchange.len};
    return (!t->options->t4 || exchange_write_t4(t->options->t4, &exchange, t->diags)) &&
           (!t->options->cache ||
            exchange_write_cache(t->options->cache, &exchange, t->diags));
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

bool tune(const Problem *problem, const TuneOptions *options, Arena *arena,
          TuneResult *result, Diags *diags)
{
    Tune t = {.problem = problem,
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
    map_init(&t.known, arena);
    bool ok = compute_reference(&t) && open_device(&t) && open_space(&t) &&
              open_store(&t) && open_search(&t) && try_first(&t) &&
              run_points(&t, next_asked, true) && write_exchange(&t) && measure_again(&t) &&
              conclude(&t);
    result->elapsed_s = clock_s() - t.start_s;
    close_all(&t);
    return ok;
}

// The best stored point ---------------------------------------------------------------

typedef struct {
    const Space *space;
    Point *point;
    double ns;
} BestStored;

static void keep_stored(void *user, const StoreTrial *trial)
{
    BestStored *best = user;
    Point point;
    if (trial->status == TRIAL_OK && trial->time_ns < best->ns &&
        point_parse(best->space, trial->point, &point)) {
        best->ns = trial->time_ns;
        *best->point = point;
    }
}

bool plan_best(const Ways *ways, const char *path, const DeviceInfo *device, Point *point,
               Diags *diags)
{
    ways_first(ways, point, 1);
    Store *store = store_open(path, diags);
    if (!store)
        return false;
    StoreKey key;
    BestStored best = {ways->space, point, INFINITY};
    fill_key(ways->problem, space_hash(best.space), device, &key);
    int64_t session = store_session(store, &key, diags);
    if (session)
        store_each(store, session, keep_stored, &best, diags);
    store_close(store);
    return best.ns < INFINITY;
}
