// SPDX-License-Identifier: Apache-2.0
//
// A runner: opened on a device with the problem's buffers, run on jobs, closed. What
// becomes of a job is in round.c. No device call is made here.
#include "measure/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORKERS_CPU = 4 }; // most that are chosen for a device that shares our cores
// How many builds a worker does. PoCL's compiler keeps 20 to 40 kB of each job it builds,
// so that a worker of 230 MB grows by 40 at most; the first build of a new one takes a
// second more, in minutes.
enum { BUILDS_MAX = 1000 };

// Runs --------------------------------------------------------------------------------

static bool stream_alone(void *runner_, RunnerNext *next, double cutoff_ns,
                         RunnerDone *done, void *user, Diags *diags)
{
    Runner *runner = runner_;
    Round round = {.samples = runner->config.samples,
                   .cutoff_ns = cutoff_ns,
                   .next = next,
                   .done = done,
                   .user = user,
                   .streams = true};
    return round_run(runner, WORKERS_MAX, &round, diags);
}

bool runner_begin(Runner *runner, RunnerNext *next, void *user, Diags *diags)
{
    Round round = {.next = next, .user = user};
    return round_begin(runner, &round, diags);
}

bool runner_begins(const Runner *runner)
{
    return runner->ahead && runner->most_workers > 1;
}

bool runner_stream(Runner *runner, RunnerNext *next, double cutoff_ns, RunnerDone *done,
                   void *user, Diags *diags)
{
    if (runner_peers(runner) > 0)
        return peers_run(runner->peers, stream_alone, runner, next, cutoff_ns, done, user,
                         diags);
    return stream_alone(runner, next, cutoff_ns, done, user, diags);
}

// Jobs of an array.
typedef struct {
    const Job *job;
    int n;
    RunnerDone *done;
    void *user;
} Array;

static const Job *next_of_array(void *user, int number)
{
    const Array *array = user;
    return number < array->n ? &array->job[number] : NULL;
}

static double done_of_array(void *user, int number, Trial *trial)
{
    const Array *array = user;
    return array->done(array->user, number, trial);
}

static bool run_array(Runner *runner, Array *array, Round *round, Diags *diags)
{
    round->next = next_of_array;
    round->done = done_of_array;
    round->user = array;
    return round_run(runner, array->n, round, diags);
}

bool runner_run(Runner *runner, const Job *job, int n, double cutoff_ns, RunnerDone *done,
                void *user, Diags *diags)
{
    Array array = {job, n, done, user};
    Round round = {.samples = runner->config.samples, .cutoff_ns = cutoff_ns};
    if (runner_peers(runner) > 0 && n > 1)
        return runner_stream(runner, next_of_array, cutoff_ns, done_of_array, &array,
                             diags);
    return run_array(runner, &array, &round, diags);
}

// One job -----------------------------------------------------------------------------

static double keep_trial(void *user, int job, Trial *trial)
{
    *(Trial *)user = *trial;
    trial->log = NULL;
    return INFINITY;
}

static const char *output_path(const Runner *runner, int buffer)
{
    return arena_printf(runner->arena, "%s/out-%d", runner->folder.own, buffer);
}

// The path of an array that workers can map; NULL: there is none for it.
static char *mapped_path(const Runner *runner, const void *at)
{
    return runner->config.sandbox ? NULL : shared_path(at, runner->arena);
}

static json_t *output_paths(const Runner *runner, void *const *out)
{
    json_t *paths = json_array();
    for (int i = 0; i < runner->config.nbuffer; i++) {
        bool wanted = out[i] && runner->buffer_output[i];
        const char *mapped = wanted ? mapped_path(runner, out[i]) : NULL;
        json_array_append_new(paths, mapped   ? json_string(mapped)
                                     : wanted ? json_string(output_path(runner, i))
                                              : json_null());
    }
    return paths;
}

// What a worker left may be no file of its own.
static int open_output(const char *path)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)))
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

static bool read_output(const Runner *runner, int buffer, char *to, Diags *diags)
{
    const char *path = output_path(runner, buffer);
    size_t left = runner->buffer_bytes[buffer];
    int fd = open_output(path);
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

// Without samples: see runner_compute.
static bool run_one(Runner *runner, const Job *job, int samples, Trial *trial, void **out,
                    Diags *diags)
{
    ArenaMark mark = arena_mark(runner->arena);
    *trial = (Trial){.status = TRIAL_FAILED, .time_ns = INFINITY};
    Round round = {.samples = samples,
                   .cutoff_ns = INFINITY,
                   .out = out ? output_paths(runner, out) : NULL};
    Array array = {job, 1, keep_trial, trial};
    bool ok = run_array(runner, &array, &round, diags);
    if (runner->halted && trial->status == TRIAL_FAILED && !trial->log) {
        trial->outside = true;
        trial->log = xstrdup(stop_text(runner->config.stop));
    }
    for (int i = 0; ok && out && trial->status == TRIAL_OK && i < runner->config.nbuffer;
         i++)
        if (out[i] && runner->buffer_output[i] && !mapped_path(runner, out[i]))
            ok = read_output(runner, i, out[i], diags);
    json_decref(round.out);
    arena_reset(runner->arena, mark);
    return ok;
}

bool runner_run_one(Runner *runner, const Job *job, int samples, Trial *trial, void **out,
                    Diags *diags)
{
    return run_one(runner, job, samples ? samples : runner->config.samples, trial, out,
                   diags);
}

bool runner_compute(Runner *runner, const Job *job, Trial *trial, void **out, Diags *diags)
{
    return run_one(runner, job, 0, trial, out, diags);
}

// Opening -----------------------------------------------------------------------------

static char *copy_text(Arena *arena, const char *text)
{
    return text ? arena_strdup(arena, text) : NULL;
}

static Runner *runner_new(const RunnerConfig *config)
{
    Runner *runner = xcalloc(1, sizeof *runner);
    runner->arena = arena_new();
    runner->config = *config;
    runner->config.device = arena_strdup(runner->arena, config->device);
    runner->config.worker = copy_text(runner->arena, config->worker);
    runner->config.buffer = NULL;
    if (!(config->build_limit_s > 0))
        runner->config.build_limit_s = TRIAL_LIMIT_S;
    if (!(config->run_limit_s > 0))
        runner->config.run_limit_s = TRIAL_LIMIT_S;
    runner->config.samples = config->samples > 0 ? config->samples : 5;
    runner->config.builds = config->builds > 0 ? config->builds : BUILDS_MAX;
    runner->folder.data.lock = -1;
    for (int i = 0; i < WORKERS_MAX; i++)
        runner->cache[i].lock = runner->worker[i].fd = runner->worker[i].log = -1;
    runner->trouble = buf_new();
    return runner;
}

// Writes data to a file, unless workers can map it, and its path to the message; no data,
// no file.
static bool write_data(Runner *runner, const void *data, size_t bytes, const char *key,
                       int number, json_t *json, Diags *diags)
{
    if (!data)
        return true;
    const char *mapped = mapped_path(runner, data);
    if (mapped) {
        json_object_set_new(json, key, json_string(mapped));
        return true;
    }
    runner->halted = stop_due(runner->config.stop); // files of a GB take seconds
    if (runner->halted)
        return false;
    char *name = arena_printf(runner->arena, "%s-%d", key, number);
    json_object_set_new(
        json, key,
        json_string(arena_printf(runner->arena, "%s/%s", runner->folder.data.path, name)));
    return folder_write(&runner->folder, name, data, bytes, diags);
}

static bool write_buffers(Runner *runner, const RunnerBuffer *buffer, json_t *list,
                          Diags *diags)
{
    runner->buffer_bytes = NEW_ARRAY(runner->arena, size_t, runner->config.nbuffer);
    runner->buffer_output = NEW_ARRAY(runner->arena, bool, runner->config.nbuffer);
    for (int i = 0; i < runner->config.nbuffer; i++) {
        const RunnerBuffer *b = &buffer[i];
        size_t bytes = runner_buffer_bytes(b);
        size_t width = b->width ? (size_t)b->width : scalar_device_bytes(b->scalar);
        json_t *json = json_pack("{s:o,s:i,s:I,s:I,s:I,s:I,s:b,s:o}", "name",
                                 json_text(b->name), "scalar", (int)b->scalar, "count",
                                 (json_int_t)b->count, "bytes", (json_int_t)bytes, "width",
                                 (json_int_t)width, "spared", (json_int_t)b->spared,
                                 "inout", b->inout, "image", image_to_json(&b->image));
        json_array_append_new(list, json);
        runner->buffer_bytes[i] = bytes;
        runner->buffer_output[i] = !b->init || b->inout;
        if (!write_data(runner, b->init, bytes, "init", i, json, diags) ||
            !write_data(runner, b->expect, bytes, "expect", i, json, diags) ||
            !write_data(runner, b->bound, (size_t)b->count * sizeof *b->bound, "bound", i,
                        json, diags))
            return false;
    }
    return true;
}

static json_t *judge_json(const RunnerJudge *judge)
{
    json_t *list = json_array();
    for (int i = 0; i < judge->n; i++)
        json_array_append_new(list, json_integer(judge->buffer[i]));
    return json_pack("{s:o, s:o, s:o}", "text", json_text(judge->text), "options",
                     json_text(judge->options), "buffers", list);
}

static bool write_files(Runner *runner, const RunnerConfig *config, Diags *diags)
{
    json_t *list = json_array();
    runner->open_message = json_pack("{s:s,s:o,s:o}", "do", "open", "device",
                                     json_text(config->device), "buffers", list);
    json_set_number(runner->open_message, "tolerance", config->tolerance);
    if (config->judge)
        json_object_set_new(runner->open_message, "judge", judge_json(config->judge));
    if (runner->config.sandbox)
        json_object_set_new(runner->open_message, "sandbox",
                            sandbox_to_json(runner->config.sandbox, &runner->folder));
    return write_buffers(runner, config->buffer, list, diags);
}

// As many as cores, and as their copies of the buffers leave room for (a compiler has
// none). A GPU leaves the cores to the compilers: NVRTC gets on best with one process a
// core.
static int choose_workers(const Runner *runner)
{
    double bytes = 0;
    int cores = MAX(processors() / MAX(runner->config.share, 1), 1);
    int n = runner->info.is_cpu ? MIN(cores, WORKERS_CPU)
            : runner->ahead     ? MIN(MAX(cores, 2), WORKERS_MAX)
                                : MIN(cores - 1, WORKERS_MAX);
    n = MAX(n, 1);
    for (int i = 0; i < runner->config.nbuffer; i++)
        bytes += (double)runner->buffer_bytes[i];
    while (!runner->ahead && n > 1 && n * bytes > 0.5 * (double)runner->info.global_bytes)
        n--;
    return runner->config.workers > 0 ? MIN(runner->config.workers, WORKERS_MAX) : n;
}

// Where one worker is all there is to be, it compiles for itself.
static void plan_workers(Runner *runner, const RunnerConfig *config, Diags *diags)
{
    const DeviceKind *kind;
    int index;
    device_parse(runner->config.device, &kind, &index);
    runner->ahead = !runner->info.is_cpu && kind->compile && runner->config.workers != 1;
    runner->most_workers = choose_workers(runner);
    runner->batch =
        runner->config.batch > 0 ? runner->config.batch : SHARE * runner->most_workers;
    if (config->npeer)
        runner->peers = peers_open(config, &runner->info, diags);
}

bool device_check(const char *id, Diags *diags)
{
    const DeviceKind *kind;
    int index;
    return device_parse(id, &kind, &index) ||
           diag_error(diags, span_none, "C006",
                      "a device is opencl:N, cuda:N or host, not `%s`; `forewarp devices` "
                      "lists those of this machine",
                      id);
}

Runner *runner_open(const RunnerConfig *config, Diags *diags)
{
    if (!device_check(config->device, diags))
        return NULL;
    Runner *runner = runner_new(config);
    bool ok = folder_open(&runner->folder, config->folder, diags);
    if (ok && write_files(runner, config, diags) && workers_add(runner, diags) &&
        workers_settle(runner, diags)) { // the first tells what the device is
        const char *bus = runner->info.bus;
        runner->turn = folder_turn_path(&runner->folder, *bus ? bus : config->device);
        plan_workers(runner, config, diags);
        return runner;
    }
    if (runner->halted)
        diag_world(diags, "D002", "%s was not opened: %s", config->device,
                   stop_text(config->stop));
    runner_close(runner);
    return NULL;
}

void runner_close(Runner *runner)
{
    if (!runner)
        return;
    peers_close(runner->peers);
    round_drop(runner);
    for (int i = 0; i < runner->nworker; i++)
        worker_end(&runner->worker[i], NULL);
    for (int i = 0; i < WORKERS_MAX; i++)
        cache_close(&runner->cache[i]);
    folder_close(&runner->folder);
    free(runner->turn);
    json_decref(runner->open_message);
    buf_release(&runner->trouble);
    arena_free(runner->arena);
    free(runner);
}

bool runner_fill(Runner *runner, const RunnerConfig *config, Diags *diags)
{
    if (strcmp(config->device, runner->config.device) != 0)
        BUG("buffers of another runner");
    json_decref(runner->open_message);
    runner->config.nbuffer = config->nbuffer;
    runner->config.tolerance = config->tolerance;
    runner->config.energy = config->energy;
    bool ok = write_files(runner, config, diags) && workers_fill(runner, diags);
    if (ok)
        plan_workers(runner, config, diags);
    return ok;
}

const DeviceInfo *runner_device(const Runner *runner)
{
    return &runner->info;
}

int runner_batch(const Runner *runner)
{
    return runner->batch * (1 + runner_peers(runner));
}

int runner_peers(const Runner *runner)
{
    return runner->peers ? peers_count(runner->peers) : 0;
}
