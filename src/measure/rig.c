// SPDX-License-Identifier: Apache-2.0
//
// The controller: hands jobs to workers, watches their time, and turns what becomes of
// them into trials.
//
//   method  a batch is prepared (built and checked) by all workers at once, then its jobs
//           are timed one after the other while all else is idle. Compiling and timing
//           never overlap: on a CPU device they would share its cores.
//
// Who is to blame when a worker dies: the job it was at, if that is the only one the
// process had. An earlier one may have spoilt the process (PoCL notices no write past a
// buffer's end), so a job that crashed among others becomes a suspect, and so do jobs
// built together when the compiler died, and jobs that were there at many deaths. When
// the rest of the batch is done each suspect is tried alone in a fresh process. A time
// limit passed while a job runs is a verdict at once. What else a dead worker had prepared
// is prepared again, which is quick with a compile cache. No device call is made here.
#include "measure/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WORKERS_MAX = 16,
    WORKERS_CPU = 4,    // most that are chosen for a device that shares our cores
    SHARE = 10,         // jobs a worker builds as one program
    STARTS_MAX = 3,     // attempts to start a worker without one success
    DEATHS_SUSPECT = 4, // of workers a job was with, before it is tried alone
    DEATHS_MAX = 8,     // before it is given up
};
static const double OPEN_LIMIT_S = 120, LIMIT_S = 10, JOINT_LIMIT_S = 0.5;

typedef enum { ITEM_WAITING, ITEM_SENT, ITEM_PREPARED, ITEM_DECIDED, ITEM_DONE } ItemState;

typedef struct {
    const Job *job;
    ItemState state;
    bool suspect; // to be tried alone, in a fresh process
    int worker;   // that has it
    int deaths;
    Trial trial;
} Item;

// The jobs of one call, and what is wanted of them.
typedef struct {
    Item *item;
    int first, end; // the batch at work
    int samples;
    double cutoff_ns;
    json_t *out; // paths for the outputs, or NULL
    RigDone *done;
    void *user;
} Round;

struct Rig {
    Arena *arena;
    RigConfig config; // its texts are the rig's; buffer: only the sizes are looked at
    size_t *buffer_bytes;
    bool *buffer_output;
    DeviceInfo info;
    Folder folder;
    json_t *open_message;
    int crew, nworker; // workers there may be, and those there are
    Worker worker[WORKERS_MAX];
    Cache cache[WORKERS_MAX];
    int failed[WORKERS_MAX]; // starts of each since the last that succeeded
    Buf trouble;             // why the last start failed
    Round *round;            // NULL between calls
};

// Limits ------------------------------------------------------------------------------

static double build_limit(const Rig *rig, int jobs)
{
    return rig->config.build_limit_s + JOINT_LIMIT_S * (jobs - 1);
}

// The sampler stops by itself after the limit for a run; a last run may then be under way.
static double time_limit(const Rig *rig)
{
    return 2 * rig->config.run_limit_s + 1;
}

// Workers -----------------------------------------------------------------------------

static bool start(Rig *rig, Worker *worker, Diags *diags)
{
    int number = (int)(worker - rig->worker);
    char *log = arena_printf(rig->arena, "%s/worker-%d.log", rig->folder.data, number);
    WorkerPlace place = {rig->config.worker, rig->cache[number].path, rig->folder.data,
                         log};
    if (!worker_start(worker, &place, diags))
        return false;
    worker_send(worker, json_incref(rig->open_message), STAGE_OPEN, 0, OPEN_LIMIT_S);
    return true;
}

static bool any_alive(const Rig *rig)
{
    for (int i = 0; i < rig->nworker; i++)
        if (rig->worker[i].state != CREW_OFF)
            return true;
    return false;
}

static bool any_busy(const Rig *rig)
{
    for (int i = 0; i < rig->nworker; i++)
        if (rig->worker[i].state == CREW_BUSY)
            return true;
    return false;
}

static int sent_to(const Rig *rig, const Worker *worker)
{
    int n = 0;
    for (int i = rig->round->first; i < rig->round->end; i++)
        n += rig->round->item[i].state == ITEM_SENT &&
             &rig->worker[rig->round->item[i].worker] == worker;
    return n;
}

// Verdicts ----------------------------------------------------------------------------

static void decide(Item *item, TrialStatus status, const char *why)
{
    trial_release(&item->trial);
    item->trial.status = status;
    item->trial.time_ns = INFINITY;
    item->trial.max_error = INFINITY;
    item->trial.log = xstrdup(why);
    item->state = ITEM_DECIDED;
}

static void again(Item *item, bool suspect)
{
    item->suspect |= suspect;
    item->state = ITEM_WAITING;
}

// What becomes of the job that a dead worker was at.
static void blame(Item *item, const Worker *dead, const char *why)
{
    if (dead->late)
        decide(item, TRIAL_TIMED_OUT, why);
    else if (dead->sent == 1)
        decide(item, TRIAL_CRASHED, why);
    else
        again(item, true);
}

// What becomes of another that it had.
static void bereave(Item *item, const Worker *dead, const char *why)
{
    bool joint = dead->stage == STAGE_BUILD && dead->job == JOINT_BUILD;
    item->deaths += dead->stage != STAGE_QUIT;
    if (item->deaths >= DEATHS_MAX)
        decide(item, TRIAL_CRASHED, why);
    else
        again(item, (joint && item->state == ITEM_SENT) || item->deaths >= DEATHS_SUSPECT);
}

// Settles what a dead worker, the number-th, had been given.
static void settle_jobs(Rig *rig, int number, const Worker *dead, const char *why)
{
    for (int i = rig->round->first; i < rig->round->end; i++) {
        Item *item = &rig->round->item[i];
        bool held = (item->state == ITEM_SENT || item->state == ITEM_PREPARED) &&
                    item->worker == number;
        if (!held)
            continue;
        if (dead->stage >= STAGE_BUILD && dead->job == i)
            blame(item, dead, why);
        else
            bereave(item, dead, why);
    }
}

// Ends a worker that died, is late, or could not open its device, and starts another.
static bool replace(Rig *rig, Worker *worker, Diags *diags)
{
    Worker dead = *worker;
    int number = (int)(worker - rig->worker);
    Buf why;
    buf_init(&why);
    worker_end(worker, &why);
    if (rig->round)
        settle_jobs(rig, number, &dead, why.text);
    int *failed = &rig->failed[number];
    *failed += dead.stage == STAGE_OPEN;
    if (dead.stage == STAGE_OPEN && rig->trouble.len == 0)
        buf_write(&rig->trouble, why.text, why.len);
    buf_release(&why);
    return *failed >= STARTS_MAX || !rig->round || start(rig, worker, diags);
}

// Messages ----------------------------------------------------------------------------

static void take_stage(Rig *rig, Worker *worker, const json_t *message)
{
    int job = (int)json_int_of(message, "job", JOINT_BUILD);
    if (strcmp(json_text_of(message, "at"), "run") == 0)
        worker_enter(worker, STAGE_RUN, job, rig->config.run_limit_s);
    else
        worker_enter(worker, STAGE_BUILD, job,
                     build_limit(rig, job == JOINT_BUILD ? sent_to(rig, worker) : 1));
}

// The second report on a job, its timing, replaces the first.
static void take_trial(Rig *rig, Worker *worker, const json_t *message)
{
    Item *item = &rig->round->item[json_int_of(message, "job", 0)];
    trial_release(&item->trial);
    trial_from_json(json_object_get(message, "trial"), &item->trial);
    bool prepared = item->state == ITEM_SENT && item->trial.status == TRIAL_OK;
    item->state = prepared ? ITEM_PREPARED : ITEM_DECIDED;
    worker_enter(worker, STAGE_NONE, 0, build_limit(rig, 1));
}

static bool take_end(Rig *rig, Worker *worker, const json_t *message, Diags *diags)
{
    const json_t *info = json_object_get(message, "info");
    if (worker->stage == STAGE_OPEN && !info) {
        buf_clear(&rig->trouble);
        buf_puts(&rig->trouble, json_text_of(message, "log"));
        return replace(rig, worker, diags);
    }
    if (worker->stage == STAGE_OPEN) {
        if (!*rig->info.id) // memory sizes may differ from one process to the next
            info_from_json(info, &rig->info);
        rig->failed[worker - rig->worker] = 0;
        buf_clear(&rig->trouble);
    }
    worker_enter(worker, STAGE_NONE, 0, INFINITY);
    worker->state = CREW_IDLE;
    return true;
}

static bool take(Rig *rig, Worker *worker, const json_t *message, Diags *diags)
{
    if (json_object_get(message, "end"))
        return take_end(rig, worker, message, diags);
    if (json_object_get(message, "quit")) {
        worker_enter(worker, STAGE_QUIT, 0, 0);
        return replace(rig, worker, diags);
    }
    if (json_object_get(message, "at"))
        take_stage(rig, worker, message);
    else
        take_trial(rig, worker, message);
    return true;
}

// Waits until one thing has happened, and deals with it; false: no worker is left.
static bool attend(Rig *rig, Diags *diags)
{
    json_t *message;
    Worker *worker = worker_wait(rig->worker, rig->nworker, &message);
    bool ok = !worker ||
              (message ? take(rig, worker, message, diags) : replace(rig, worker, diags));
    json_decref(message);
    if (!ok || any_alive(rig))
        return ok;
    return diag_world(diags, "", "no worker can use the device %s: %s", rig->config.device,
                      rig->trouble.text);
}

// Preparing ---------------------------------------------------------------------------

static int count_items(const Round *round, ItemState state)
{
    int n = 0;
    for (int i = round->first; i < round->end; i++)
        n += round->item[i].state == state;
    return n;
}

static Item *first_item(const Round *round, ItemState state)
{
    for (int i = round->first; i < round->end; i++)
        if (round->item[i].state == state)
            return &round->item[i];
    return NULL;
}

// The first that waits, of the suspects or of the others.
static Item *first_waiting(const Round *round, bool suspect)
{
    for (int i = round->first; i < round->end; i++)
        if (round->item[i].state == ITEM_WAITING && round->item[i].suspect == suspect)
            return &round->item[i];
    return NULL;
}

static void append_job(Rig *rig, Worker *worker, Item *item, json_t *jobs)
{
    int number = (int)(worker - rig->worker);
    item->state = ITEM_SENT;
    item->worker = number;
    worker->sent++;
    rig->cache[number].jobs++;
    json_array_append_new(jobs, job_to_json(item->job, (int)(item - rig->round->item)));
}

static void send_jobs(Rig *rig, Worker *worker, bool suspect, int most)
{
    json_t *jobs = json_array();
    Item *item = first_waiting(rig->round, suspect);
    int n = 0, first = (int)(item - rig->round->item);
    for (; item && n < most; n++) {
        append_job(rig, worker, item, jobs);
        item = first_waiting(rig->round, suspect);
    }
    worker_send(worker, json_pack("{s:s,s:o}", "do", "prepare", "jobs", jobs), STAGE_BUILD,
                n == 1 ? first : JOINT_BUILD, build_limit(rig, n));
}

// An even part of what waits, among the workers that have none yet.
static int even_share(const Rig *rig)
{
    int waiting = 0, free_workers = 0;
    for (int i = rig->round->first; i < rig->round->end; i++)
        waiting +=
            rig->round->item[i].state == ITEM_WAITING && !rig->round->item[i].suspect;
    for (int i = 0; i < rig->nworker; i++)
        free_workers +=
            rig->worker[i].state != CREW_OFF && rig->worker[i].stage <= STAGE_OPEN;
    return MIN((waiting + free_workers - 1) / MAX(free_workers, 1), 2 * SHARE);
}

static void hand_out(Rig *rig)
{
    for (int i = 0; i < rig->nworker; i++)
        if (rig->worker[i].state == CREW_IDLE && first_waiting(rig->round, false))
            send_jobs(rig, &rig->worker[i], false, even_share(rig));
}

static bool attend_all(Rig *rig, Diags *diags)
{
    bool ok = true;
    while (ok && any_busy(rig))
        ok = attend(rig, diags);
    return ok;
}

// Until every job of the batch is prepared, decided or suspect, and every worker idle.
static bool prepare(Rig *rig, Diags *diags)
{
    bool ok = true;
    while (ok && (any_busy(rig) || first_waiting(rig->round, false))) {
        hand_out(rig);
        ok = attend(rig, diags);
    }
    return ok;
}

// Starts the workers anew that have done something; they hold no job.
static bool freshen(Rig *rig, Diags *diags)
{
    bool ok = true;
    for (int i = 0; i < rig->nworker && ok; i++)
        if (rig->worker[i].state == CREW_IDLE && rig->worker[i].sent > 0) {
            worker_end(&rig->worker[i], NULL);
            ok = start(rig, &rig->worker[i], diags);
        }
    return ok && attend_all(rig, diags);
}

static bool prepare_suspects(Rig *rig, Diags *diags)
{
    bool ok = freshen(rig, diags);
    for (int i = 0; i < rig->nworker && ok; i++)
        if (rig->worker[i].state == CREW_IDLE && first_waiting(rig->round, true))
            send_jobs(rig, &rig->worker[i], true, 1);
    return ok && attend_all(rig, diags);
}

// Timing ------------------------------------------------------------------------------

static bool time_one(Rig *rig, Item *item, Diags *diags)
{
    const Round *round = rig->round;
    Worker *worker = &rig->worker[item->worker];
    int number = (int)(item - round->item);
    json_t *message =
        json_pack("{s:s,s:i,s:i}", "do", "time", "job", number, "samples", round->samples);
    json_set_number(message, "limit_s", rig->config.run_limit_s);
    json_set_number(message, "cutoff_ns", round->cutoff_ns);
    if (round->out)
        json_object_set(message, "out", round->out);
    worker_send(worker, message, STAGE_TIME, number, time_limit(rig));
    bool ok = attend_all(rig, diags);
    if (ok && item->state == ITEM_PREPARED)
        BUG("a prepared job was not timed");
    return ok;
}

static void report(Round *round)
{
    Item *item;
    while ((item = first_item(round, ITEM_DECIDED))) {
        item->state = ITEM_DONE;
        double cutoff = round->done(round->user, (int)(item - round->item), &item->trial);
        round->cutoff_ns = MIN(round->cutoff_ns, cutoff);
        trial_release(&item->trial);
    }
}

// Prepares all it can and times that; then the suspects, as many as workers at a time.
static bool run_batch(Rig *rig, Diags *diags)
{
    bool ok = true;
    Item *next;
    while (ok && count_items(rig->round, ITEM_DONE) < rig->round->end - rig->round->first) {
        ok = prepare(rig, diags);
        if (ok && (next = first_item(rig->round, ITEM_PREPARED)))
            ok = time_one(rig, next, diags);
        else if (ok && first_waiting(rig->round, true))
            ok = prepare_suspects(rig, diags);
        report(rig->round);
    }
    return ok;
}

static bool add_worker(Rig *rig, Diags *diags)
{
    int i = rig->nworker;
    if (!cache_open(&rig->cache[i], &rig->folder, diags))
        return false;
    rig->nworker++;
    return start(rig, &rig->worker[i], diags);
}

// Workers are added when there is work for them: to open a GPU takes longer than a kernel.
static bool enlist(Rig *rig, int jobs, Diags *diags)
{
    bool ok = true;
    while (ok && rig->nworker < MIN(rig->crew, jobs))
        ok = add_worker(rig, diags);
    return ok;
}

// A call that finds every worker gone, after an earlier failure, starts them again.
static bool revive(Rig *rig, Diags *diags)
{
    bool ok = true, alive = any_alive(rig);
    for (int i = 0; i < rig->nworker && ok && !alive; i++) {
        rig->failed[i] = 0;
        ok = start(rig, &rig->worker[i], diags);
    }
    return ok;
}

static void check_job(const Rig *rig, const Job *job)
{
    for (int i = 0; i < job->nlaunch; i++)
        for (int k = 0; k < job->launch[i].narg; k++) {
            const JobArg *arg = &job->launch[i].arg[k];
            if (arg->kind == ARG_BUFFER &&
                (arg->buffer < 0 || arg->buffer >= rig->config.nbuffer + job->nscratch))
                BUG("argument %d of %s is no buffer", k, job->launch[i].kernel);
        }
}

static bool run_round(Rig *rig, const Job *job, int n, Round *round, Diags *diags)
{
    round->item = xcalloc((size_t)n, sizeof *round->item);
    for (int i = 0; i < n; i++) {
        check_job(rig, &job[i]);
        round->item[i].job = &job[i];
    }
    rig->round = round;
    bool ok = revive(rig, diags) && enlist(rig, n, diags);
    for (int at = 0; ok && at < n; at = round->end) {
        round->first = at;
        round->end = MIN(at + rig->config.batch, n);
        ok = run_batch(rig, diags);
    }
    for (int i = 0; i < n; i++)
        trial_release(&round->item[i].trial);
    free(round->item);
    rig->round = NULL;
    return ok;
}

bool rig_run(Rig *rig, const Job *job, int n, double cutoff_ns, RigDone *done, void *user,
             Diags *diags)
{
    Round round = {
        .samples = rig->config.samples, .cutoff_ns = cutoff_ns, .done = done, .user = user};
    return run_round(rig, job, n, &round, diags);
}

// One job -----------------------------------------------------------------------------

static double keep_trial(void *user, int job, Trial *trial)
{
    (void)job;
    *(Trial *)user = *trial;
    trial->log = NULL;
    return INFINITY;
}

static const char *output_path(const Rig *rig, int buffer)
{
    return arena_printf(rig->arena, "%s/out-%d", rig->folder.data, buffer);
}

static json_t *output_paths(const Rig *rig, void *const *out)
{
    json_t *paths = json_array();
    for (int i = 0; i < rig->config.nbuffer; i++)
        json_array_append_new(paths, out[i] && rig->buffer_output[i]
                                         ? json_string(output_path(rig, i))
                                         : json_null());
    return paths;
}

static bool read_output(const Rig *rig, int buffer, char *to, Diags *diags)
{
    const char *path = output_path(rig, buffer);
    size_t left = rig->buffer_bytes[buffer];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && left > 0) {
        ssize_t n = read(fd, to, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        to += n;
        left -= (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    bool ok = fd >= 0 && left == 0;
    if (!ok)
        diag_world(diags, "", "cannot read %s: %s", path, strerror(errno));
    unlink(path);
    return ok;
}

bool rig_run_one(Rig *rig, const Job *job, int samples, Trial *trial, void **out,
                 Diags *diags)
{
    ArenaMark mark = arena_mark(rig->arena);
    *trial = (Trial){.status = TRIAL_FAILED, .time_ns = INFINITY};
    Round round = {.samples = samples ? samples : rig->config.samples,
                   .cutoff_ns = INFINITY,
                   .out = out ? output_paths(rig, out) : NULL,
                   .done = keep_trial,
                   .user = trial};
    bool ok = run_round(rig, job, 1, &round, diags);
    for (int i = 0; ok && out && trial->status == TRIAL_OK && i < rig->config.nbuffer; i++)
        if (out[i] && rig->buffer_output[i])
            ok = read_output(rig, i, out[i], diags);
    json_decref(round.out);
    arena_reset(rig->arena, mark);
    return ok;
}

// Opening -----------------------------------------------------------------------------

static double or_else(double x, double otherwise)
{
    return x > 0 ? x : otherwise;
}

static char *copy_text(Arena *arena, const char *text)
{
    return text ? arena_strdup(arena, text) : NULL;
}

static Rig *rig_new(const RigConfig *config)
{
    Rig *rig = xcalloc(1, sizeof *rig);
    rig->arena = arena_new();
    rig->config = *config;
    rig->config.device = arena_strdup(rig->arena, config->device);
    rig->config.worker = copy_text(rig->arena, config->worker);
    rig->config.buffer = NULL;
    rig->config.build_limit_s = or_else(config->build_limit_s, LIMIT_S);
    rig->config.run_limit_s = or_else(config->run_limit_s, LIMIT_S);
    rig->config.samples = config->samples > 0 ? config->samples : 5;
    rig->folder.lock = -1;
    for (int i = 0; i < WORKERS_MAX; i++)
        rig->cache[i].lock = rig->worker[i].fd = rig->worker[i].log = -1;
    buf_init(&rig->trouble);
    return rig;
}

// Writes data to a file and its path to the message; no data, no file.
static bool write_data(Rig *rig, const void *data, size_t bytes, const char *key,
                       int number, json_t *json, Diags *diags)
{
    if (!data)
        return true;
    char *name = arena_printf(rig->arena, "%s-%d", key, number);
    json_object_set_new(
        json, key, json_string(arena_printf(rig->arena, "%s/%s", rig->folder.data, name)));
    return folder_write(&rig->folder, name, data, bytes, diags);
}

static bool write_buffers(Rig *rig, const RigBuffer *buffer, json_t *list, Diags *diags)
{
    rig->buffer_bytes = NEW_ARRAY(rig->arena, size_t, rig->config.nbuffer);
    rig->buffer_output = NEW_ARRAY(rig->arena, bool, rig->config.nbuffer);
    for (int i = 0; i < rig->config.nbuffer; i++) {
        const RigBuffer *b = &buffer[i];
        size_t bytes = (size_t)b->count * scalar_device_bytes(b->scalar);
        json_t *json = json_pack("{s:o,s:i,s:I,s:b,s:o}", "name", json_text(b->name),
                                 "scalar", (int)b->scalar, "count", (json_int_t)b->count,
                                 "inout", b->inout, "image", image_to_json(&b->image));
        json_array_append_new(list, json);
        rig->buffer_bytes[i] = bytes;
        rig->buffer_output[i] = !b->init || b->inout;
        if (!write_data(rig, b->init, bytes, "init", i, json, diags) ||
            !write_data(rig, b->expect, bytes, "expect", i, json, diags))
            return false;
    }
    return true;
}

static bool write_files(Rig *rig, const RigConfig *config, Diags *diags)
{
    json_t *list = json_array();
    rig->open_message = json_pack("{s:s,s:o,s:o}", "do", "open", "device",
                                  json_text(config->device), "buffers", list);
    json_set_number(rig->open_message, "tolerance", config->tolerance);
    return write_buffers(rig, config->buffer, list, diags);
}

// The first worker tells what the device is.
static bool open_first(Rig *rig, Diags *diags)
{
    return add_worker(rig, diags) && attend_all(rig, diags);
}

// As many as cores, and as their copies of the buffers leave room for. A GPU leaves the
// cores to the compilers: NVRTC gets on best with one process a core.
static int choose_workers(const Rig *rig)
{
    double bytes = 0;
    int cores = (int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    int n = rig->info.is_cpu ? MIN(cores, WORKERS_CPU) : MIN(cores - 1, WORKERS_MAX);
    n = MAX(n, 1);
    for (int i = 0; i < rig->config.nbuffer; i++)
        bytes += (double)rig->buffer_bytes[i];
    while (n > 1 && n * bytes > 0.5 * (double)rig->info.global_bytes)
        n--;
    return rig->config.workers > 0 ? MIN(rig->config.workers, WORKERS_MAX) : n;
}

static void choose_crew(Rig *rig)
{
    rig->crew = choose_workers(rig);
    if (rig->config.batch <= 0)
        rig->config.batch = SHARE * rig->crew;
}

static bool check_device(const char *device, Diags *diags)
{
    const DeviceKind *kind;
    int index;
    return device_parse(device, &kind, &index) ||
           diag_error(diags, span_none, "",
                      "'%s' names no device: they are opencl:0, ..., cuda:0, ..., and host",
                      device);
}

Rig *rig_open(const RigConfig *config, Diags *diags)
{
    if (!check_device(config->device, diags))
        return NULL;
    Rig *rig = rig_new(config);
    if (folder_open(&rig->folder, config->folder, diags) &&
        write_files(rig, config, diags) && open_first(rig, diags)) {
        choose_crew(rig);
        return rig;
    }
    rig_close(rig);
    return NULL;
}

void rig_close(Rig *rig)
{
    if (!rig)
        return;
    for (int i = 0; i < rig->nworker; i++)
        worker_end(&rig->worker[i], NULL);
    for (int i = 0; i < WORKERS_MAX; i++)
        cache_close(&rig->cache[i]);
    folder_close(&rig->folder);
    json_decref(rig->open_message);
    buf_release(&rig->trouble);
    arena_free(rig->arena);
    free(rig);
}

const DeviceInfo *rig_device(const Rig *rig)
{
    return &rig->info;
}

int rig_batch(const Rig *rig)
{
    return rig->config.batch;
}
