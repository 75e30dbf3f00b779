// SPDX-License-Identifier: Apache-2.0
//
// Tuning: ask the strategy, skip what is stored, run the rest, store every trial, measure
// the best few again, write the winner out. tune() is this as one expression; below it are
// the same steps led by a caller.

#include "calibrate/ceiling.h"
#include "tune/internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Points that somebody found come after the first. A plain kernel that is slow is the last,
// where it keeps nothing waiting.
static bool next_first(Tune *t, Point *point)
{
    bool first = t->asked_first < t->nfirst, claimed = t->asked_claimed < t->claimed.len;
    int after = t->has_plain && tune_plain_is_slow(t);
    if (claimed && (t->asked_first || !first))
        *point = t->claimed.at[t->asked_claimed++];
    else if (first)
        *point = t->first[(t->asked_first++ + after) % t->nfirst];
    return claimed || first;
}

// Stages ------------------------------------------------------------------------------

// A reference has no bounds if it had them later than after this share of the budget.
static const double PATIENCE = 0.5;
// Until then its compiler leaves the processors to the check of the plain kernel, where
// that runs on them, too.
static const double FIRST_CHECK = 0.4;

// Inputs and what their outputs must be.
static void make_reference(Tune *t, const Problem *problem, Arena *arena, Diags *diags)
{
    const ProblemKind *kind = problem->kind;
    const TuneOptions *o = t->options;
    const double start_s = clock_s();
    t->data = kind->data(problem, o->seed, &o->inputs, arena, diags);
    t->set_s = clock_s() - start_s;
    t->compares = t->data && o->by_plain && reference_by_kernel(problem, t->data);
    if (t->data && !t->compares &&
        !kind->expect(problem, t->data, o->device, &t->place, arena, &t->apart.how, diags))
        t->data = NULL;
}

static void make_here(void *user)
{
    Tune *t = user;
    make_reference(t, t->problem, t->arena, t->diags);
}

static void *make_apart(void *user)
{
    Tune *t = user;
    make_reference(t, t->apart.own, t->apart.arena, &t->apart.said);
    return NULL;
}

// One that is still being made ends soon.
static void drop_reference(Tune *t)
{
    const double end_s = t->stop.end_s;
    if (t->apart.running) {
        t->stop.end_s = 0;
        pthread_join(t->apart.thread, NULL);
        t->stop.end_s = end_s;
    }
    problem_free(t->apart.own);
    arena_free(t->apart.arena);
    memset(&t->apart, 0, sizeof t->apart);
    t->data = NULL;
}

// Begins to make the reference, in a thread that has read the program anew for itself.
static void begin_reference(Tune *t)
{
    const Problem *problem = t->problem;
    drop_reference(t);
    t->apart.start_s = clock_s();
    double spent_s = isfinite(t->budget_s) ? t->apart.start_s - t->start_s : 0;
    t->place.patience_s = fmax(PATIENCE * t->options->budget_s - spent_s, DBL_MIN);
    if (!problem->bound)
        return;
    t->apart.arena = arena_new();
    t->apart.said = (Diags){.arena = t->apart.arena};
    t->apart.own = problem_again(problem, &t->apart.said);
    t->apart.running =
        problem_bind(t->apart.own, problem->binding, problem->nbinding, &t->apart.said) &&
        tune_thread(&t->apart.thread, make_apart, t);
}

bool tune_reference_made(Tune *t)
{
    if (t->apart.running && pthread_tryjoin_np(t->apart.thread, NULL) == 0) {
        t->apart.running = false;
        t->apart.made = true;
    }
    return t->apart.made;
}

static void end_reference(Tune *t)
{
    if (t->apart.running)
        pthread_join(t->apart.thread, NULL);
    if (t->apart.running || t->apart.made) {
        diags_add(t->diags, &t->apart.said, &t->problem->source);
    } else
        deep_call(make_here, t);
    t->apart.running = t->apart.made = false;
    t->result->reference = t->apart.how ? arena_strdup(t->arena, t->apart.how) : NULL;
    t->result->reference_s = clock_s() - t->apart.start_s;
}

// The first points are compiled meanwhile.
static bool compute_reference(Tune *t)
{
    tune_report(t, "reference", TRIAL_OK, INFINITY);
    if (t->apart.start_s <= 0) {
        tune_await_small(t, t->start_s + FIRST_CHECK * t->budget_s);
        begin_reference(t);
    }
    tune_end_small(t);
    bool begun = !t->space || t->options->by_plain ||
                 tune_stream_begin(t, next_first, t->search->kind->learns);
    end_reference(t);
    if (!t->data)
        return false;
    t->set_s += fmax(t->data->seconds - t->data->build_s, 0);
    t->sets_s = t->data->build_s;
    if (t->data->lesser)
        t->place.patience_s = DBL_MIN; // further inputs have no bounds either
    return begun;
}

static void set_device(Tune *t, const DeviceInfo *device)
{
    t->device = device;
    t->result->device = arena_strdup(t->arena, device->name);
    t->result->fingerprint = arena_strdup(t->arena, device->fingerprint);
    t->result->target = target_name(target_find(device->target));
}

// The plain kernels of a program of a thousand lets are a thousand to compile.
static double build_limit(const Problem *problem)
{
    enum { LETS_USUAL = 64 };
    int lets = 0;
    const Program *program = problem->bound;
    for (const Expr *e = program ? program->main->body : NULL; e && e->kind == E_LET;
         e = e->arg[1])
        lets++;
    return problem->kind->limit_s * MAX(1, lets / LETS_USUAL);
}

RunnerConfig tune_runner_config(const Tune *t, const ProblemData *data)
{
    return (RunnerConfig){.device = t->options->device,
                          .worker = t->options->place.worker,
                          .folder = t->options->place.folder,
                          .sandbox = t->options->place.sandbox,
                          .stop = &t->stop,
                          .nbuffer = data->nbuffer,
                          .buffer = data->buffer,
                          .share = t->options->share,
                          .judge = data->judge,
                          .tolerance = data->tolerance,
                          .build_limit_s = build_limit(t->problem),
                          .run_limit_s = t->problem->kind->limit_s,
                          .samples = t->options->samples,
                          .energy = t->goal && goal_weighs(t->goal)};
}

// What the space and the search depend on, known before the reference is computed, which
// may take long.
static bool open_device(Tune *t)
{
    DeviceInfo *device = NEW(t->arena, DeviceInfo);
    Diags quiet = {.arena = t->arena};
    RunnerConfig config = tune_runner_config(t, &(ProblemData){0});
    t->runner = runner_open(&config, &quiet);
    // Who looks for it says which there are.
    if (!t->runner)
        return devices_find(t->arena, config.worker, config.stop, config.device, device,
                            t->diags) &&
               diag_world(t->diags, "", "%s", quiet.list.at[0].message);
    *device = *runner_device(t->runner);
    set_device(t, device);
    tune_begin_small(t);
    if (!device->is_cpu && problem_fits(t->problem, device, &quiet))
        begin_reference(t);
    return true;
}

static bool fill_device(Tune *t)
{
    tune_end_small(t);
    t->spent.begun_s = clock_s();
    tune_set_end(t, BUDGET_SEARCH);
    RunnerConfig config = tune_runner_config(t, t->data);
    config.npeer = t->options->npeer;
    config.peer = t->options->peer;
    return runner_fill(t->runner, &config, t->diags);
}

// What is compared within one tolerance, for want of time, is stored apart from what is
// compared within bounds. What is known by those holds here, too.
static bool keep_apart(Tune *t)
{
    StoreKey key;
    if (!t->data->lesser)
        return true;
    plan_key(t->problem, t->space_hash, t->device, &key);
    key.version = LESSER_VERSION;
    t->session = store_session(t->store, &key, t->diags);
    return t->session &&
           (!t->options->fresh || store_forget(t->store, t->session, t->diags)) &&
           store_each(t->store, t->session, tune_load_stored, t, t->diags);
}

static bool run_plain(Tune *t)
{
    Point plain;
    Candidate candidate;
    Trial trial = {0};
    void **out = data_outputs(t->data, t->arena);
    double start_s = clock_s();
    variants_first(&t->variants, &plain, 1);
    bool ok = tune_candidate(t, &plain, t->arena, &candidate, t->diags) &&
              runner_compute(t->runner, &candidate.job, &trial, out, t->diags);
    if (ok && trial.status != TRIAL_OK)
        ok = diag_world(t->diags, "C099", "the plain kernel, the reference, failed: %s",
                        trial.log ? trial.log : trial_status_name[trial.status]);
    for (int i = t->data->ninput; i < t->data->nbuffer; i++)
        t->data->buffer[i].expect = out[i];
    RunnerConfig config = tune_runner_config(t, t->data);
    ok = ok && runner_fill(t->runner, &config, t->diags);
    trial_release(&trial);
    candidate_release(&candidate);
    t->set_s += clock_s() - start_s;
    return ok;
}

// Also who leads the tuning must have described the device that a worker opens: the session
// is its.
static bool open_described(Tune *t)
{
    const DeviceInfo *described = t->device;
    bool ok =
        problem_fits(t->problem, described, t->diags) && (t->runner || open_device(t));
    if (ok && strcmp(described->fingerprint, t->device->fingerprint) != 0)
        ok = diag_world(t->diags, "C051", "%s is now another device: %s",
                        t->options->device, t->device->name);
    ok = ok && compute_reference(t) && keep_apart(t) && fill_device(t) &&
         (!t->compares || run_plain(t));
    if (ok)
        return true;
    set_device(t, described);
    drop_reference(t);
    tune_end_small(t);
    tune_stream_drop(t);
    runner_close(t->runner);
    t->runner = NULL; // the next call must not measure there
    return false;
}

static void set_first(Tune *t)
{
    int n = variants_first(&t->variants, t->first, COUNTOF(t->first));
    t->has_plain = space_valid(t->space, &t->first[0]);
    for (int i = 0; i < n; i++)
        if (space_valid(t->space, &t->first[i]))
            t->first[t->nfirst++] = t->first[i];
}

static void claim(Tune *t)
{
    Point point;
    for (int i = 0; i < t->options->nalso; i++)
        if (point_parse(t->space, t->options->also[i], &point) &&
            space_valid(t->space, &point))
            VEC_PUSH(t->arena, &t->claimed, point);
}

static bool open_space(Tune *t)
{
    if (!variants_open(&t->variants, t->problem, t->device, t->diags))
        return false;
    t->space = t->variants.space;
    t->space_hash = space_hash(t->space);
    if (t->options->where && !variants_constrain(&t->variants, t->options->where, t->diags))
        return false;
    t->result->space_points = space_count(t->space);
    set_first(t);
    claim(t);
    t->goal = problem_goal(t->problem, t->space, t->diags);
    return t->goal;
}

static bool know_roofline(Tune *t)
{
    Ceilings c = {0};
    int64_t bytes = ceilings_bytes(t->device, problem_work(t->problem).bytes);
    bool ok = ceilings_load(t->store, t->device, bytes, &c, t->diags);
    t->roofline_known =
        t->options->no_roofline || (c.copy_gbs > 0 && c.float_gflops > 0 && c.int_gops > 0);
    return ok;
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
    return know_roofline(t) &&
           store_each(t->store, t->session, tune_load_stored, t, t->diags) &&
           tune_read_cache(t);
}

// Where a share of the roofline is enough it must be known before the search.
static bool find_end(Tune *t)
{
    if (t->options->enough <= 0)
        return true;
    bool ok = tune_find_roofline(t);
    t->roofline_known = true;
    t->roofline_ns = t->result->roofline_ns;
    if (ok && !(t->roofline_ns > 0))
        diag_warning(
            t->diags, span_none, "C095",
            "the roofline is not known here, so a share of it cannot end the search");
    return ok;
}

// The first points, among them the plain one, are tried before any strategy.
static bool try_first(Tune *t)
{
    if (t->nfirst > t->has_plain)
        t->result->first_pick = point_text(t->space, &t->first[t->has_plain], t->arena);
    if (!tune_stream(t, next_first, t->search->kind->learns))
        return false;
    const KnownTrial *plain =
        t->has_plain ? map_get(&t->known, point_text(t->space, &t->first[0], t->arena))
                     : NULL;
    t->result->baseline_ns = plain && plain->status == TRIAL_OK ? plain->time_ns : INFINITY;
    return true;
}

static void close_all(Tune *t)
{
    tune_end_small(t);
    tune_stream_drop(t);
    free(t->small.right);
    tune_close_search(t);
    store_close(t->store);
    goal_close(t->goal);
    variants_close(&t->variants);
    if (t->runner)
        runner_close(t->runner);
    drop_reference(t);
    arena_free(t->scratch);
}

// Trials on inputs that somebody gave have a number made of them, which is no random seed.
static uint64_t data_seed(const TuneOptions *options)
{
    const InputFiles *given = &options->inputs;
    uint64_t hash = options->seed;
    for (int i = 0; i < given->n; i++) {
        AutoBuf bytes = buf_new();
        file_read(given->file[i], SIZE_MAX, &bytes); // what is wrong with it is said later
        hash = hash_bytes(given->name[i], strlen(given->name[i]), hash);
        hash = hash_bytes(bytes.text, bytes.len, hash);
    }
    return given->n ? hash | UINT64_C(1) << 63 : options->seed;
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
                .budget_s = options->budget_s,
                .budget_trials = options->budget_trials,
                .place = options->place,
                .scratch = arena_new(),
                .last_log = ""};
    t->stop.asked = options->place.stop ? options->place.stop->asked : NULL;
    t->place.stop = &t->stop;
    tune_set_end(t, BUDGET_REFERENCE);
    *result = (TuneResult){.problem = problem_label(problem),
                           .sandbox =
                               options->place.sandbox ? options->place.sandbox->says : NULL,
                           .seed = options->seed,
                           .bytes = problem_bytes(problem),
                           .best_ns = INFINITY};
    t->known = (Map){.arena = arena};
    t->data_seed = data_seed(options);
}

static bool find_best(Tune *t)
{
    return open_device(t) && open_space(t) && open_store(t) && tune_open_search(t) &&
           open_described(t) && find_end(t) && try_first(t) &&
           tune_stream(t, tune_ask, true) && tune_write_exchange(t) &&
           tune_measure_again(t) && tune_check_more(t) && tune_ask_caller(t);
}

bool tune(const Problem *problem, const TuneOptions *options, Arena *arena,
          TuneResult *result, Diags *diags)
{
    Tune t;
    Diags before = *diags;
    start(&t, problem, options, arena, result, diags);
    bool ok = find_best(&t);
    if (tune_take_small(&t)) {
        *diags = before; // there was no time, and the result says so
        ok = true;
    }
    if (ok) {
        bool found = tune_conclude(&t);
        ok = tune_write_record(&t) && found;
    } else {
        tune_say_end(&t);
    }
    result->elapsed_s = clock_s() - t.start_s;
    result->devices = t.runner ? 1 + runner_peers(t.runner) : 0;
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
    t.stop.end_s = t.budget_s = INFINITY; // the other end says what is left
    bool ready = open_device(&t) && compute_reference(&t) && fill_device(&t);
    bool ok = remote_serve(ready ? t.runner : NULL, &t.stop, link, diags);
    close_all(&t);
    arena_free(arena);
    return ok;
}

// Led by the caller -------------------------------------------------------------------

Tune *tune_open(const Problem *problem, const TuneOptions *options,
                const DeviceInfo *device, Arena *arena, TuneResult *result, Diags *diags)
{
    Tune *t = xcalloc(1, sizeof *t);
    start(t, problem, options, arena, result, diags);
    set_device(t, device);
    t->budget_s = INFINITY;
    t->stop.end_s = INFINITY;
    if (open_space(t) && open_store(t) && tune_open_search(t))
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

const Variants *tune_variants(const Tune *t)
{
    return &t->variants;
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
        tune_keep_best(t, point, ns, &(Measures){0});
}

static bool next_given(Tune *t, Point *point)
{
    if (t->ngiven == 0)
        return false;
    t->ngiven--;
    *point = *t->given++;
    return true;
}

bool tune_measure_all(Tune *t, const Point *point, int n, Diags *diags)
{
    t->diags = diags;
    t->given = point;
    t->ngiven = n;
    return (t->runner || open_described(t)) && tune_stream(t, next_given, false);
}

bool tune_measure(Tune *t, const Point *point, Trial *trial, Diags *diags)
{
    *trial = (Trial){.status = TRIAL_FAILED, .time_ns = INFINITY};
    if (!tune_measure_all(t, point, 1, diags))
        return false;
    const KnownTrial *known = map_get(&t->known, point_text(t->space, point, t->arena));
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
    const KnownTrial *known = map_get(&t->known, point_text(t->space, point, t->arena));
    bool right = known && known->status == TRIAL_OK;
    *ns = right ? known->time_ns : known ? INFINITY : NAN;
    return right;
}

bool tune_best(const Tune *t, Point *point, double *ns)
{
    if (t->nbest == 0 || !(t->best[0].ns < INFINITY))
        return false;
    *point = t->best[0].point;
    *ns = t->best[0].ns;
    return true;
}
