// SPDX-License-Identifier: Apache-2.0
//
// A rig: opened on a device with the problem's buffers, run on jobs, closed. What becomes
// of a job is in round.c. No device call is made here.
#include "measure/rig.h"

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

static bool stream_alone(void *rig_, RigNext *next, double cutoff_ns, RigDone *done,
                         void *user, Diags *diags)
{
    Rig *rig = rig_;
    Round round = {.samples = rig->config.samples,
                   .cutoff_ns = cutoff_ns,
                   .next = next,
                   .done = done,
                   .user = user};
    return round_run(rig, WORKERS_MAX, &round, diags);
}

bool rig_stream(Rig *rig, RigNext *next, double cutoff_ns, RigDone *done, void *user,
                Diags *diags)
{
    if (rig_peers(rig) > 0)
        return peers_run(rig->peers, stream_alone, rig, next, cutoff_ns, done, user, diags);
    return stream_alone(rig, next, cutoff_ns, done, user, diags);
}

// Jobs of an array.
typedef struct {
    const Job *job;
    int n;
    RigDone *done;
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

static bool run_array(Rig *rig, Array *array, Round *round, Diags *diags)
{
    round->next = next_of_array;
    round->done = done_of_array;
    round->user = array;
    return round_run(rig, array->n, round, diags);
}

bool rig_run(Rig *rig, const Job *job, int n, double cutoff_ns, RigDone *done, void *user,
             Diags *diags)
{
    Array array = {job, n, done, user};
    Round round = {.samples = rig->config.samples, .cutoff_ns = cutoff_ns};
    if (rig_peers(rig) > 0 && n > 1)
        return rig_stream(rig, next_of_array, cutoff_ns, done_of_array, &array, diags);
    return run_array(rig, &array, &round, diags);
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
    return arena_printf(rig->arena, "%s/out-%d", rig->folder.own, buffer);
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

static bool read_output(const Rig *rig, int buffer, char *to, Diags *diags)
{
    const char *path = output_path(rig, buffer);
    size_t left = rig->buffer_bytes[buffer];
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

// Without samples: see rig_compute.
static bool run_one(Rig *rig, const Job *job, int samples, Trial *trial, void **out,
                    Diags *diags)
{
    ArenaMark mark = arena_mark(rig->arena);
    *trial = (Trial){.status = TRIAL_FAILED, .time_ns = INFINITY};
    Round round = {.samples = samples,
                   .cutoff_ns = INFINITY,
                   .out = out ? output_paths(rig, out) : NULL};
    Array array = {job, 1, keep_trial, trial};
    bool ok = run_array(rig, &array, &round, diags);
    if (rig->halted && trial->status == TRIAL_FAILED && !trial->log) {
        trial->outside = true;
        trial->log = xstrdup(stop_text(rig->config.stop));
    }
    for (int i = 0; ok && out && trial->status == TRIAL_OK && i < rig->config.nbuffer; i++)
        if (out[i] && rig->buffer_output[i])
            ok = read_output(rig, i, out[i], diags);
    json_decref(round.out);
    arena_reset(rig->arena, mark);
    return ok;
}

bool rig_run_one(Rig *rig, const Job *job, int samples, Trial *trial, void **out,
                 Diags *diags)
{
    return run_one(rig, job, samples ? samples : rig->config.samples, trial, out, diags);
}

bool rig_compute(Rig *rig, const Job *job, Trial *trial, void **out, Diags *diags)
{
    return run_one(rig, job, 0, trial, out, diags);
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
    rig->config.build_limit_s = or_else(config->build_limit_s, TRIAL_LIMIT_S);
    rig->config.run_limit_s = or_else(config->run_limit_s, TRIAL_LIMIT_S);
    rig->config.samples = config->samples > 0 ? config->samples : 5;
    rig->config.builds = config->builds > 0 ? config->builds : BUILDS_MAX;
    rig->folder.data.lock = -1;
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
        json, key,
        json_string(arena_printf(rig->arena, "%s/%s", rig->folder.data.path, name)));
    return folder_write(&rig->folder, name, data, bytes, diags);
}

static bool write_buffers(Rig *rig, const RigBuffer *buffer, json_t *list, Diags *diags)
{
    rig->buffer_bytes = NEW_ARRAY(rig->arena, size_t, rig->config.nbuffer);
    rig->buffer_output = NEW_ARRAY(rig->arena, bool, rig->config.nbuffer);
    for (int i = 0; i < rig->config.nbuffer; i++) {
        const RigBuffer *b = &buffer[i];
        size_t bytes = rig_buffer_bytes(b);
        size_t width = b->width ? (size_t)b->width : scalar_device_bytes(b->scalar);
        json_t *json = json_pack("{s:o,s:i,s:I,s:I,s:I,s:I,s:b,s:o}", "name",
                                 json_text(b->name), "scalar", (int)b->scalar, "count",
                                 (json_int_t)b->count, "bytes", (json_int_t)bytes, "width",
                                 (json_int_t)width, "spared", (json_int_t)b->spared,
                                 "inout", b->inout, "image", image_to_json(&b->image));
        json_array_append_new(list, json);
        rig->buffer_bytes[i] = bytes;
        rig->buffer_output[i] = !b->init || b->inout;
        if (!write_data(rig, b->init, bytes, "init", i, json, diags) ||
            !write_data(rig, b->expect, bytes, "expect", i, json, diags) ||
            !write_data(rig, b->bound, (size_t)b->count * sizeof *b->bound, "bound", i,
                        json, diags))
            return false;
    }
    return true;
}

static json_t *judge_json(const RigJudge *judge)
{
    json_t *list = json_array();
    for (int i = 0; i < judge->n; i++)
        json_array_append_new(list, json_integer(judge->buffer[i]));
    return json_pack("{s:o, s:o, s:o}", "text", json_text(judge->text), "options",
                     json_text(judge->options), "buffers", list);
}

static bool write_files(Rig *rig, const RigConfig *config, Diags *diags)
{
    json_t *list = json_array();
    rig->open_message = json_pack("{s:s,s:o,s:o}", "do", "open", "device",
                                  json_text(config->device), "buffers", list);
    json_set_number(rig->open_message, "tolerance", config->tolerance);
    if (config->judge)
        json_object_set_new(rig->open_message, "judge", judge_json(config->judge));
    if (rig->config.sandbox)
        json_object_set_new(rig->open_message, "sandbox",
                            sandbox_to_json(rig->config.sandbox, &rig->folder));
    return write_buffers(rig, config->buffer, list, diags);
}

// The first worker tells what the device is.
static bool open_first(Rig *rig, Diags *diags)
{
    return workers_add(rig, diags) && workers_settle(rig, diags);
}

// As many as cores, and as their copies of the buffers leave room for (a compiler has
// none). A GPU leaves the cores to the compilers: NVRTC gets on best with one process a
// core.
static int choose_workers(const Rig *rig)
{
    double bytes = 0;
    int cores = MAX(processors() / MAX(rig->config.share, 1), 1);
    int n = rig->info.is_cpu ? MIN(cores, WORKERS_CPU)
            : rig->ahead     ? MIN(MAX(cores, 2), WORKERS_MAX)
                             : MIN(cores - 1, WORKERS_MAX);
    n = MAX(n, 1);
    for (int i = 0; i < rig->config.nbuffer; i++)
        bytes += (double)rig->buffer_bytes[i];
    while (!rig->ahead && n > 1 && n * bytes > 0.5 * (double)rig->info.global_bytes)
        n--;
    return rig->config.workers > 0 ? MIN(rig->config.workers, WORKERS_MAX) : n;
}

// Where one worker is all there is to be, it compiles for itself.
static void choose_crew(Rig *rig)
{
    const DeviceKind *kind;
    int index;
    device_parse(rig->config.device, &kind, &index);
    rig->ahead = !rig->info.is_cpu && kind->compile && rig->config.workers != 1;
    rig->most_workers = choose_workers(rig);
    if (rig->config.batch <= 0)
        rig->config.batch = SHARE * rig->most_workers;
}

static bool check_device(const char *device, Diags *diags)
{
    const DeviceKind *kind;
    int index;
    return device_parse(device, &kind, &index) ||
           diag_error(
               diags, span_none, "",
               "'%s' is not a device; devices are opencl:0, ..., cuda:0, ..., and host",
               device);
}

Rig *rig_open(const RigConfig *config, Diags *diags)
{
    if (!check_device(config->device, diags))
        return NULL;
    Rig *rig = rig_new(config);
    bool ok = folder_open(&rig->folder, config->folder, diags);
    if (ok && write_files(rig, config, diags) && open_first(rig, diags)) {
        const char *bus = rig->info.bus;
        rig->turn = folder_turn_path(&rig->folder, *bus ? bus : config->device);
        choose_crew(rig);
        if (config->npeer)
            rig->peers = peers_open(config, &rig->info, diags);
        return rig;
    }
    if (rig->halted)
        diag_world(diags, "D002", "%s was not opened: %s", config->device,
                   stop_text(config->stop));
    rig_close(rig);
    return NULL;
}

void rig_close(Rig *rig)
{
    if (!rig)
        return;
    peers_close(rig->peers);
    for (int i = 0; i < rig->nworker; i++)
        worker_end(&rig->worker[i], NULL);
    for (int i = 0; i < WORKERS_MAX; i++)
        cache_close(&rig->cache[i]);
    folder_close(&rig->folder);
    free(rig->turn);
    json_decref(rig->open_message);
    buf_release(&rig->trouble);
    arena_free(rig->arena);
    free(rig);
}

bool rig_fill(Rig *rig, const RigConfig *config, Diags *diags)
{
    if (rig->peers || strcmp(config->device, rig->config.device) != 0)
        BUG("buffers of another rig");
    json_decref(rig->open_message);
    rig->config.nbuffer = config->nbuffer;
    rig->config.tolerance = config->tolerance;
    return write_files(rig, config, diags) && workers_fill(rig, diags);
}

const DeviceInfo *rig_device(const Rig *rig)
{
    return &rig->info;
}

int rig_batch(const Rig *rig)
{
    return rig->config.batch * (1 + rig_peers(rig));
}

int rig_peers(const Rig *rig)
{
    return rig->peers ? peers_count(rig->peers) : 0;
}
