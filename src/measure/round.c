// SPDX-License-Identifier: Apache-2.0
//
// The controller: hands jobs to workers, watches their time, and turns what becomes of
// them into trials.
//
//   method  a batch is prepared (built and checked) by all workers at once, then its jobs
//           are timed one after the other while all else is idle. Compiling and timing
//           never overlap: on a CPU device they would share its cores.
//           On a GPU whose kind can compile ahead they do: the first worker alone runs
//           anything there, and builds what the others have compiled into the cache that
//           all of them share. Jobs flow through: compiled some at a time (a parcel: one
//           program), then checked and timed parcel by parcel.
//
// Controllers that share a folder take turns on a GPU, by whatever kind and index they
// reach it, so that they do not disturb each other's times. Where one worker runs jobs a
// turn is what it does at one message, checks or a timing, and it takes it itself: any
// number of controllers keep the cores busy. Elsewhere all workers run jobs, and a turn is
// a batch.
//
// When the stop of the runner is due, what is under way is dropped: compilers are ended, a
// run may end if that takes a moment, and workers forget what they have prepared.
//
// Compilers leak, so a worker that has built many jobs is replaced by a new one when it is
// to be handed others and holds none; the one that only runs what others compiled stays.
// Who is to blame when one dies says blame.c. No device call is made here.
#include "measure/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    AHEAD = 3,       // parcels a compiler may be ahead of the worker that runs
    STARTS_MAX = 3,  // attempts to start a worker without one success
    JOBS_WORKER = 8, // that one more worker of a CPU is worth
    SECOND = 4,      // times the limit on a clock, for the second attempt
    SLICE = 8,       // of the time left, for the samples of one job: fewer of slow ones
};
static const double OPEN_LIMIT_S = 120, JOINT_LIMIT_S = 0.5, MOMENT_S = 0.3;
// Compiling takes jobs for so long at once; the weight of a new time in their mean.
static const double PARCEL_S = 2, NEWS = 0.2;
// Jobs are made for so long before workers get those that there are: the kernels of streams
// take 0.1 s each, and ten for each of 16 compilers kept all workers waiting.
static const double REFILL_S = 0.03;

// Limits ------------------------------------------------------------------------------

static double build_limit(const Runner *runner, int jobs)
{
    return runner->config.build_limit_s + JOINT_LIMIT_S * (jobs - 1);
}

static double run_limit(const Runner *runner, const Item *item)
{
    bool longer = item->alone && !runner->info.is_cpu;
    return runner->config.run_limit_s * (longer ? SECOND : 1);
}

// The sampler stops by itself after the limit for a run; a last run may then be under way.
// To count energy takes a few seconds or, of long runs, some of them.
static double time_limit(const Runner *runner, const Item *item)
{
    return (runner->config.energy ? 5 : 2) * run_limit(runner, item) + 1;
}

// Workers -----------------------------------------------------------------------------

static bool is_compiler(const Runner *runner, const Worker *worker)
{
    return runner->ahead && worker != runner->worker;
}

static json_t *opening(const Runner *runner, const Worker *worker)
{
    const Sandbox *sandbox = runner->config.sandbox;
    if (!is_compiler(runner, worker))
        return json_incref(runner->open_message);
    json_t *message = json_pack("{s:s,s:o,s:b}", "do", "open", "device",
                                json_text(runner->config.device), "compiler", 1);
    if (sandbox)
        json_object_set_new(message, "sandbox", sandbox_to_json(sandbox, &runner->folder));
    return message;
}

// The cache of a worker: one for all where some compile for another.
static Cache *cache_of(Runner *runner, int number)
{
    return &runner->cache[runner->ahead ? 0 : number];
}

static bool start(Runner *runner, Worker *worker, Diags *diags)
{
    int number = (int)(worker - runner->worker);
    char *log =
        arena_printf(runner->arena, "%s/worker-%d.log", runner->folder.data.path, number);
    WorkerPlace place = {runner->config.worker, cache_of(runner, number)->path,
                         runner->folder.own, log, runner->config.sandbox != NULL};
    if (!worker_start(worker, &place, diags))
        return false;
    worker_send(worker, opening(runner, worker), STAGE_OPEN, 0, OPEN_LIMIT_S);
    return true;
}

// Compilers alone are no use.
static bool any_alive(const Runner *runner)
{
    for (int i = 0; i < (runner->ahead ? 1 : runner->nworker); i++)
        if (runner->worker[i].state != WORKER_OFF)
            return true;
    return false;
}

static bool any_busy(const Runner *runner)
{
    for (int i = 0; i < runner->nworker; i++)
        if (runner->worker[i].state == WORKER_BUSY)
            return true;
    return false;
}

static int sent_to(const Runner *runner, const Worker *worker)
{
    int n = 0;
    for (int i = runner->round->first; i < runner->round->end; i++) {
        const Item *item = item_at(runner->round, i);
        n += item->state == ITEM_SENT && &runner->worker[item->worker] == worker;
    }
    return n;
}

// Replacing ---------------------------------------------------------------------------

// Ends a worker that died, is late, or could not open its device, and starts another.
static bool replace(Runner *runner, Worker *worker, Diags *diags)
{
    Death death = {.was = *worker};
    int number = (int)(worker - runner->worker);
    AutoBuf why = buf_new();
    death.killed = worker_end(worker, &why);
    death.why = why.text;
    if (runner->round)
        blame_dead(runner, number, &death);
    bool opening = death.was.stage == STAGE_OPEN;
    int *failed = &runner->failed[number];
    *failed += opening;
    if (opening && runner->trouble.len == 0)
        buf_write(&runner->trouble, why.text, why.len);
    bool wanted = runner->round || death.killed; // outside of rounds only what others ended
    return *failed >= STARTS_MAX || !wanted || start(runner, worker, diags);
}

// Messages ----------------------------------------------------------------------------

static void take_stage(Runner *runner, Worker *worker, const json_t *message)
{
    int job = (int)json_int_of(message, "job", JOINT_BUILD);
    const char *at = json_text_of(message, "at");
    const Item *item = item_at(runner->round, MAX(job, 0));
    if (strcmp(at, "run") == 0)
        worker_enter(worker, STAGE_RUN, job, run_limit(runner, item));
    else if (strcmp(at, "turn") == 0)
        worker_enter(worker, STAGE_TURN, job, INFINITY);
    else if (strcmp(at, "time") == 0)
        worker_enter(worker, STAGE_TIME, job, time_limit(runner, item));
    else
        worker_enter(worker, STAGE_BUILD, job,
                     build_limit(runner, job == JOINT_BUILD ? sent_to(runner, worker) : 1));
    if (worker->stage == STAGE_BUILD && job != JOINT_BUILD && is_compiler(runner, worker))
        item_at(runner->round, job)->parcel = job; // its program holds nothing else
}

// A job whose compilation was late may be tried once more if its run is late, too.
static void note_compiled(Runner *runner, Item *item)
{
    double spent = item->trial.build_s, *mean = &runner->compile_s;
    *mean = *mean > 0 ? (1 - NEWS) * *mean + NEWS * spent : spent;
    item->compile_s = spent;
    item->alone = false;
}

// The second report on a job, its timing, replaces the first.
static void take_trial(Runner *runner, Worker *worker, const json_t *message)
{
    Item *item = item_at(runner->round, (int)json_int_of(message, "job", 0));
    bool compiled = is_compiler(runner, worker);
    trial_release(&item->trial);
    trial_from_json(json_object_get(message, "trial"), &item->trial);
    if (compiled)
        note_compiled(runner, item);
    else
        item->trial.build_s += item->compile_s;
    bool good = item->state == ITEM_SENT && item->trial.status == TRIAL_OK;
    if (!blame_outside(runner, item))
        item->state = !good ? ITEM_DECIDED : compiled ? ITEM_COMPILED : ITEM_PREPARED;
    worker_enter(worker, STAGE_NONE, 0, build_limit(runner, 1));
}

static bool take_end(Runner *runner, Worker *worker, const json_t *message, Diags *diags)
{
    const json_t *info = json_object_get(message, "info");
    if (worker->stage == STAGE_OPEN && !info) {
        buf_clear(&runner->trouble);
        buf_puts(&runner->trouble, json_text_of(message, "log"));
        return replace(runner, worker, diags);
    }
    if (worker->stage == STAGE_OPEN) {
        if (!*runner->info.id) // memory sizes may differ from one process to the next
            info_from_json(info, &runner->info);
        worker->waits = !runner->info.is_cpu;
        runner->failed[worker - runner->worker] = 0;
        buf_clear(&runner->trouble);
    }
    worker_enter(worker, STAGE_NONE, 0, INFINITY);
    worker->state = WORKER_IDLE;
    return true;
}

// A message is about a job that the worker has, or about all it was sent. One that is not
// was written by a job that got hold of its worker.
static bool is_its_own(const Runner *runner, const Worker *worker, const json_t *message)
{
    const Round *round = runner->round;
    const json_t *named = json_object_get(message, "job");
    int job = (int)json_int_of(message, "job", JOINT_BUILD);
    if (!named || (job == JOINT_BUILD && json_object_get(message, "at")))
        return !named || round;
    if (!round || job < round->first || job >= round->end)
        return false;
    const Item *item = item_at(round, job);
    return &runner->worker[item->worker] == worker &&
           (item->state == ITEM_SENT || item->state == ITEM_PREPARED);
}

static bool take(Runner *runner, Worker *worker, const json_t *message, Diags *diags)
{
    if (json_object_get(message, "end"))
        return take_end(runner, worker, message, diags);
    if (json_object_get(message, "quit")) {
        worker_enter(worker, STAGE_QUIT, 0, 0);
        return replace(runner, worker, diags);
    }
    if (!is_its_own(runner, worker, message))
        return replace(runner, worker, diags);
    if (json_object_get(message, "at"))
        take_stage(runner, worker, message);
    else
        take_trial(runner, worker, message);
    return true;
}

// A worker with what it says, or one that is dead or late; false: none is left.
static bool deal_with(Runner *runner, Worker *worker, json_t *message, Diags *diags)
{
    bool ok = !worker || (message ? take(runner, worker, message, diags)
                                  : replace(runner, worker, diags));
    json_decref(message);
    if (!ok || any_alive(runner))
        return ok;
    return diag_world(diags, "", "no worker can use the device %s: %.*s",
                      runner->config.device, (int)strcspn(runner->trouble.text, "\n"),
                      runner->trouble.text);
}

// Waits until one thing has happened, and deals with it; false: no worker is left, or the
// runner is halted.
static bool attend(Runner *runner, Diags *diags)
{
    json_t *message;
    Worker *worker =
        worker_wait(runner->worker, runner->nworker, runner->config.stop, true, &message);
    if (!worker && stop_due(runner->config.stop)) {
        runner->halted = true;
        return false;
    }
    return deal_with(runner, worker, message, diags);
}

// Deals with what has happened, and does not wait.
static bool catch_up(Runner *runner, Diags *diags)
{
    json_t *message;
    Worker *worker;
    bool ok = true;
    while (ok && (worker = worker_wait(runner->worker, runner->nworker, runner->config.stop,
                                       false, &message)))
        ok = deal_with(runner, worker, message, diags);
    return ok;
}

// Preparing ---------------------------------------------------------------------------

static int count_items(const Round *round, ItemState state)
{
    int n = 0;
    for (int i = round->first; i < round->end; i++)
        n += item_at(round, i)->state == state;
    return n;
}

static Item *first_item(const Round *round, ItemState state)
{
    for (int i = round->first; i < round->end; i++)
        if (item_at(round, i)->state == state)
            return item_at(round, i);
    return NULL;
}

// The first that waits, of the suspects or of the others.
static Item *first_waiting(const Round *round, bool suspect)
{
    for (int i = round->first; i < round->end; i++) {
        Item *item = item_at(round, i);
        if (item->state == ITEM_WAITING && item->suspect == suspect)
            return item;
    }
    return NULL;
}

// Does a worker that runs jobs take its turn itself, since no other does?
static bool takes_turns(const Runner *runner)
{
    return runner->ahead || (!runner->info.is_cpu && runner->most_workers == 1);
}

// What a worker runs, once it has its turn where that is its own affair.
static void send_run(const Runner *runner, Worker *worker, json_t *message,
                     WorkerStage stage, int job, double limit_s)
{
    if (takes_turns(runner) && !is_compiler(runner, worker))
        json_object_set_new(message, "turn", json_text(runner->turn));
    worker_send(worker, message, stage, job, limit_s);
}

static void check_job(const Runner *runner, const Job *job)
{
    for (int i = 0; i < job->nlaunch; i++)
        for (int k = 0; k < job->launch[i].narg; k++) {
            const JobArg *arg = &job->launch[i].arg[k];
            if (job_reads(arg) &&
                (arg->buffer < 0 || arg->buffer >= runner->config.nbuffer + job->nscratch))
                BUG("argument %d of %s is no buffer", k, job->launch[i].kernel);
        }
}

static void append_job(Runner *runner, Worker *worker, Item *item, json_t *jobs)
{
    int number = (int)(worker - runner->worker);
    if (!is_compiler(runner, worker))
        check_job(runner, item->job);
    cache_of(runner, number)->jobs += item->state == ITEM_WAITING;
    item->state = ITEM_SENT;
    item->worker = number;
    worker->sent++;
    json_array_append_new(jobs, job_to_json(item->job, item->number));
}

static void send_prepare(Runner *runner, Worker *worker, json_t *jobs, int first)
{
    int n = (int)json_array_size(jobs);
    send_run(runner, worker, json_pack("{s:s,s:o}", "do", "prepare", "jobs", jobs),
             STAGE_BUILD, n == 1 ? first : JOINT_BUILD, build_limit(runner, n));
}

static void send_jobs(Runner *runner, Worker *worker, bool suspect, int most)
{
    json_t *jobs = json_array();
    Item *item = first_waiting(runner->round, suspect);
    int first = item ? item->number : 0;
    for (int n = 0; item && n < most; n++) {
        item->parcel = item->job->named ? item->number : first; // not built with others
        append_job(runner, worker, item, jobs);
        item = first_waiting(runner->round, suspect);
    }
    send_prepare(runner, worker, jobs, first);
}

static int count_waiting(const Round *round)
{
    int n = 0;
    for (int i = round->first; i < round->end; i++)
        n += item_at(round, i)->state == ITEM_WAITING && !item_at(round, i)->suspect;
    return n;
}

// Workers that have no job yet, of those that compile.
static int count_free(const Runner *runner)
{
    int n = 0;
    for (int i = runner->ahead; i < runner->nworker; i++)
        n += runner->worker[i].state != WORKER_OFF && runner->worker[i].stage <= STAGE_OPEN;
    return n;
}

// As many jobs as a worker gets at most: few of those that take a compiler long, so that
// no compiler has a row of them when the others have none left.
static int share_most(const Runner *runner)
{
    if (!runner->ahead)
        return 2 * SHARE;
    bool quick = SHARE * runner->compile_s <= PARCEL_S; // also where it is not known
    return quick ? SHARE : MAX((int)(PARCEL_S / runner->compile_s), 1);
}

// An even part of what waits, among the workers that have none yet. What is left over comes
// last: the first jobs, among them the plain kernel, keep no other company than they must.
static int even_share(const Runner *runner)
{
    int waiting = count_waiting(runner->round), among = MAX(count_free(runner), 1);
    return MIN(MAX(waiting / among, 1), share_most(runner));
}

static bool renew(Runner *runner, Worker *worker, Diags *diags)
{
    worker_end(worker, NULL);
    return start(runner, worker, diags);
}

// Jobs that an idle worker is to time.
static bool holds_jobs(const Runner *runner, const Worker *worker)
{
    for (int i = runner->round->first; i < runner->round->end; i++) {
        const Item *item = item_at(runner->round, i);
        if (item->state == ITEM_PREPARED && &runner->worker[item->worker] == worker)
            return true;
    }
    return false;
}

// To those that compile. A new one has its share when it has opened its device.
static bool hand_out(Runner *runner, Diags *diags)
{
    bool ok = true;
    for (int i = runner->ahead; i < runner->nworker && ok; i++) {
        Worker *worker = &runner->worker[i];
        if (worker->state != WORKER_IDLE || !first_waiting(runner->round, false))
            continue;
        if (worker->sent >= runner->config.builds && !holds_jobs(runner, worker))
            ok = renew(runner, worker, diags);
        else
            send_jobs(runner, worker, false, even_share(runner));
    }
    return ok;
}

bool workers_settle(Runner *runner, Diags *diags)
{
    bool ok = true;
    while (ok && any_busy(runner))
        ok = attend(runner, diags);
    return ok;
}

// Until every job of the batch is prepared, decided or suspect, and every worker idle.
static bool prepare(Runner *runner, Diags *diags)
{
    bool ok = true;
    while (ok && (any_busy(runner) || first_waiting(runner->round, false)))
        ok = hand_out(runner, diags) && attend(runner, diags);
    return ok;
}

// Starts the workers anew that have done something; they hold no job.
static bool freshen(Runner *runner, Diags *diags)
{
    bool ok = true;
    for (int i = 0; i < runner->nworker && ok; i++)
        if (runner->worker[i].state == WORKER_IDLE && runner->worker[i].sent > 0)
            ok = renew(runner, &runner->worker[i], diags);
    return ok && workers_settle(runner, diags);
}

// As many as workers, but one that is to be alone by itself.
static bool prepare_suspects(Runner *runner, Diags *diags)
{
    bool ok = freshen(runner, diags), alone = false;
    for (int i = 0; i < runner->nworker && ok && !alone; i++) {
        const Item *item = first_waiting(runner->round, true);
        if (runner->worker[i].state != WORKER_IDLE || !item ||
            (item->alone && any_busy(runner)))
            continue;
        alone = item->alone;
        send_jobs(runner, &runner->worker[i], true, 1);
    }
    return ok && workers_settle(runner, diags);
}

// Timing ------------------------------------------------------------------------------

static void send_time(Runner *runner, Item *item)
{
    const Round *round = runner->round;
    const Stop *stop = runner->config.stop;
    double grace_s = stop ? stop->grace_s : 0;
    Worker *worker = &runner->worker[item->worker];
    json_t *message = json_pack("{s:s,s:i,s:i}", "do", "time", "job", item->number,
                                "samples", round->samples);
    json_set_number(
        message, "limit_s",
        MIN(runner->config.run_limit_s, fmax(0, stop_left_s(stop) - grace_s) / SLICE));
    json_set_number(message, "cutoff_ns", round->cutoff_ns);
    json_object_set_new(message, "alone", json_boolean(runner->ahead));
    json_object_set_new(message, "energy", json_boolean(runner->config.energy));
    if (round->out)
        json_object_set(message, "out", round->out);
    send_run(runner, worker, message, STAGE_TIME, item->number, time_limit(runner, item));
}

static bool time_one(Runner *runner, Item *item, Diags *diags)
{
    send_time(runner, item);
    bool ok = workers_settle(runner, diags);
    if (ok && item->state == ITEM_PREPARED)
        BUG("a prepared job was not timed");
    return ok;
}

static void report(Round *round)
{
    Item *item;
    while ((item = first_item(round, ITEM_DECIDED))) {
        item->state = ITEM_DONE;
        double cutoff = round->done(round->user, item->number, &item->trial);
        round->cutoff_ns = MIN(round->cutoff_ns, cutoff);
        trial_release(&item->trial);
    }
}

// Prepares all it can and times that; then the suspects, as many as workers at a time.
static bool run_batch(Runner *runner, Diags *diags)
{
    bool ok = true;
    Item *next;
    while (ok && count_items(runner->round, ITEM_DONE) <
                     runner->round->end - runner->round->first) {
        ok = prepare(runner, diags);
        if (ok && (next = first_item(runner->round, ITEM_PREPARED)))
            ok = time_one(runner, next, diags);
        else if (ok && first_waiting(runner->round, true))
            ok = prepare_suspects(runner, diags);
        report(runner->round);
    }
    return ok;
}

// Flowing -----------------------------------------------------------------------------

static void grow(Round *round)
{
    Round old = *round;
    round->capacity = MAX(2 * old.capacity, 64);
    round->item = xcalloc((size_t)round->capacity, sizeof *round->item);
    for (int i = old.first; i < old.end; i++)
        *item_at(round, i) = *item_at(&old, i);
    free(old.item);
}

// Takes in further jobs as long as there are some, few are under way and fewer wait than
// are wanted. Returns whether it was enough; else its time was over, and workers wait. The
// first, which is the plain kernel, waits for no other.
static bool refill(Runner *runner, int most, int wanted, double time_s)
{
    Round *round = runner->round;
    const double end_s = clock_s() + time_s;
    while (round->first < round->end && item_at(round, round->first)->state == ITEM_DONE)
        round->first++;
    for (int n = count_waiting(round); n < wanted && round->end - round->first < most;
         n++) {
        const Job *job = round->next(round->user, round->end);
        if (!job || job == &job_later)
            return !job;
        if (round->end - round->first == round->capacity)
            grow(round);
        *item_at(round, round->end) = (Item){.job = job, .number = round->end};
        round->end++;
        if (clock_s() > end_s || round->end == 1)
            return false;
    }
    return true;
}

static bool is_whole(const Round *round, int parcel)
{
    for (int i = round->first; i < round->end; i++)
        if (item_at(round, i)->parcel == parcel && item_at(round, i)->state == ITEM_SENT)
            return false;
    return true;
}

// Hands the worker that runs the next parcel; false if there is none.
static bool send_parcel(Runner *runner)
{
    Round *round = runner->round;
    json_t *jobs = NULL;
    int parcel = -1;
    for (int i = round->first; i < round->end; i++) {
        Item *item = item_at(round, i);
        if (item->state != ITEM_COMPILED)
            continue;
        if (!jobs && is_whole(round, item->parcel)) {
            parcel = item->parcel;
            jobs = json_array();
        }
        if (jobs && item->parcel == parcel)
            append_job(runner, runner->worker, item, jobs);
    }
    if (jobs)
        send_prepare(runner, runner->worker, jobs, parcel);
    return jobs != NULL;
}

static bool any_compiler(const Runner *runner)
{
    for (int i = 1; i < runner->nworker; i++)
        if (runner->worker[i].state != WORKER_OFF)
            return true;
    return false;
}

// Suspects that no compiler has finished: one for each compiler, in a fresh process.
static bool compile_suspects(Runner *runner, Diags *diags)
{
    bool ok = freshen(runner, diags);
    for (int i = 1; i < runner->nworker && ok; i++) {
        const Item *item = first_waiting(runner->round, true);
        if (runner->worker[i].state == WORKER_IDLE && item && item->compile_s == 0)
            send_jobs(runner, &runner->worker[i], true, 1);
    }
    return ok;
}

// Gives the worker that runs something to do, if it is idle: it times what it has
// prepared, prepares what was compiled, and tries suspects when all else is done.
static bool keep_running(Runner *runner, Diags *diags)
{
    Round *round = runner->round;
    Item *prepared = first_item(round, ITEM_PREPARED);
    if (runner->worker->state != WORKER_IDLE)
        return true;
    if (prepared)
        send_time(runner, prepared);
    else if (send_parcel(runner))
        return true;
    else if (first_waiting(round, false) && !any_compiler(runner))
        send_jobs(runner, runner->worker, false, SHARE);
    else if (!first_waiting(round, false) && !any_busy(runner) &&
             first_waiting(round, true)) {
        if (any_compiler(runner) && first_waiting(round, true)->compile_s == 0)
            return compile_suspects(runner, diags);
        if (runner->worker->sent > 0)
            return freshen(runner, diags);
        send_jobs(runner, runner->worker, true, 1);
    }
    return true;
}

static bool run_ahead(Runner *runner, Diags *diags)
{
    Round *round = runner->round;
    for (bool ok = true;;) {
        report(round);
        if (!ok)
            return false;
        bool full = refill(runner, AHEAD * SHARE * runner->most_workers,
                           SHARE * MAX(count_free(runner), 1), REFILL_S);
        if (full && round->first == round->end)
            return workers_settle(runner, diags);
        ok = hand_out(runner, diags) && keep_running(runner, diags) &&
             (full && any_busy(runner) ? attend : catch_up)(runner, diags);
    }
}

bool workers_add(Runner *runner, Diags *diags)
{
    int i = runner->nworker;
    bool wanted = i == 0 || !runner->ahead;
    if (wanted && runner->config.sandbox)
        cache_open_own(&runner->cache[i], &runner->folder, i);
    else if (wanted && !cache_open(&runner->cache[i], &runner->folder, i, diags))
        return false;
    runner->nworker++;
    return start(runner, &runner->worker[i], diags);
}

// Until those that run jobs are idle, also one that drops what was under way.
static bool settle_runners(Runner *runner, Diags *diags)
{
    bool ok = true;
    while (ok && (runner->ahead ? runner->worker->state == WORKER_BUSY : any_busy(runner)))
        ok = attend(runner, diags);
    return ok;
}

bool workers_fill(Runner *runner, Diags *diags)
{
    if (!settle_runners(runner, diags))
        return false;
    for (int i = 0; i < runner->nworker; i++)
        if (runner->worker[i].state == WORKER_IDLE &&
            !is_compiler(runner, &runner->worker[i]))
            worker_send(&runner->worker[i], opening(runner, &runner->worker[i]), STAGE_OPEN,
                        0, OPEN_LIMIT_S);
    return settle_runners(runner, diags);
}

// Workers are added when there is work for them: to open a GPU takes longer than a kernel,
// and the first kernel of a process takes PoCL as long as several.
static bool enlist(Runner *runner, int jobs, Diags *diags)
{
    bool ok = true;
    if (runner->info.is_cpu && runner->config.workers <= 0)
        jobs = (jobs + JOBS_WORKER - 1) / JOBS_WORKER;
    while (ok && runner->nworker < MIN(runner->most_workers, jobs))
        ok = workers_add(runner, diags);
    return ok;
}

// While points are made for the next batch, another controller has its turn.
static bool run_batches(Runner *runner, Diags *diags)
{
    Round *round = runner->round;
    bool ok = true;
    while (ok) {
        while (!refill(runner, runner->batch, runner->batch, INFINITY))
            continue;
        if (round->first == round->end)
            break;
        bool batch = !runner->info.is_cpu && !takes_turns(runner);
        int turn = batch ? turn_take(runner->turn) : -1;
        ok = enlist(runner, round->end - round->first, diags) && run_batch(runner, diags);
        if (turn >= 0)
            close(turn);
    }
    return ok;
}

// A call that finds every worker gone, after an earlier failure, starts them again.
static bool revive(Runner *runner, int workers, Diags *diags)
{
    bool ok = true, alive = any_alive(runner);
    for (int i = 0; i < MIN(runner->nworker, workers) && ok && !alive; i++) {
        runner->failed[i] = 0;
        ok = start(runner, &runner->worker[i], diags);
    }
    return ok;
}

// Halting -----------------------------------------------------------------------------

// Waits a moment, unless somebody asks for the end, for what is being run; its trial
// counts.
static void let_finish(Runner *runner, Diags *diags)
{
    const Stop *stop = runner->config.stop;
    Stop moment = {.end_s = clock_s() + MOMENT_S, .asked = stop->asked};
    runner->config.stop = &moment;
    for (bool ok = true; ok && any_busy(runner);)
        ok = attend(runner, diags);
    runner->config.stop = stop;
}

// Ends what is under way. Who is idle stays, and forgets what it was to time.
static void halt(Runner *runner)
{
    AutoArena *arena = arena_new();
    Diags quiet = {.arena = arena};
    ARRAY_EACH_REF(Worker *, worker, runner->worker, runner->nworker)
        if (worker->state == WORKER_BUSY && worker->stage != STAGE_RUN &&
            worker->stage != STAGE_TIME)
            worker_end(worker, NULL);
    let_finish(runner, &quiet);
    report(runner->round);
    ARRAY_EACH_REF(Worker *, worker, runner->worker, runner->nworker)
        if (worker->state == WORKER_BUSY)
            worker_end(worker, NULL);
        else if (worker->state == WORKER_IDLE && holds_jobs(runner, worker))
            worker_send(worker, json_pack("{s:s}", "do", "drop"), STAGE_NONE, 0,
                        OPEN_LIMIT_S);
}

// Beginning ---------------------------------------------------------------------------

static void free_items(Round *round)
{
    for (int i = round->first; i < round->end; i++)
        trial_release(&item_at(round, i)->trial);
    free(round->item);
}

static bool any_opening(const Runner *runner)
{
    for (int i = 1; i < runner->nworker; i++)
        if (runner->worker[i].state == WORKER_BUSY && runner->worker[i].stage == STAGE_OPEN)
            return true;
    return false;
}

bool round_begin(Runner *runner, const Round *round, Diags *diags)
{
    round_drop(runner);
    runner->halted = stop_due(runner->config.stop);
    if (runner->halted)
        return true;
    runner->round = runner->begun = xmalloc(sizeof *round);
    *runner->begun = *round;
    bool ok = revive(runner, WORKERS_MAX, diags) && enlist(runner, WORKERS_MAX, diags);
    for (bool full = false; ok && !full;) {
        full = refill(runner, SHARE * runner->most_workers, SHARE * runner->most_workers,
                      REFILL_S);
        ok = catch_up(runner, diags) && hand_out(runner, diags);
    }
    while (ok && first_waiting(runner->round, false) && any_opening(runner))
        ok = attend(runner, diags) && hand_out(runner, diags);
    return ok || runner->halted;
}

void round_drop(Runner *runner)
{
    if (!runner->begun)
        return;
    for (int i = 1; i < runner->nworker; i++)
        if (runner->worker[i].state == WORKER_BUSY)
            worker_end(&runner->worker[i], NULL);
    free_items(runner->begun);
    free(runner->begun);
    runner->round = runner->begun = NULL;
}

static void go_on(Runner *runner, Round *round)
{
    const Round *begun = runner->begun;
    round->item = begun->item;
    round->capacity = begun->capacity;
    round->first = begun->first;
    round->end = begun->end;
    free(runner->begun);
    runner->begun = NULL;
}

bool round_run(Runner *runner, int workers, Round *round, Diags *diags)
{
    runner->halted = stop_due(runner->config.stop);
    if (runner->halted)
        return true;
    if (runner->begun && round->streams)
        go_on(runner, round);
    round_drop(runner);
    runner->round = round;
    bool ok = revive(runner, workers, diags) &&
              (runner->ahead ? enlist(runner, workers, diags) && run_ahead(runner, diags)
                             : run_batches(runner, diags));
    if (runner->halted)
        halt(runner);
    free_items(round);
    runner->round = NULL;
    return ok || runner->halted;
}
