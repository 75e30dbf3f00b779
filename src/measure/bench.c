// SPDX-License-Identifier: Apache-2.0
//
// The worker's bench: the device, the problem's buffers, and one job at a time built,
// run and checked, timed.
//
// Outputs are filled with 0xff (not-a-number) before the checked run, so that what a
// candidate leaves unwritten is seen. A wrong result is given a second run on restored
// inputs: an earlier candidate may have written over them. It guards against nothing that
// a candidate does to this process: the controller does, by ending it.
#include "measure/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    char *name;
    Scalar scalar;
    int64_t count;
    size_t bytes;
    const void *init, *expect; // mapped files; NULL: none
    bool inout;
    double scale;
    Mem *mem;
    Mem *expect_mem; // a copy on the device, where it compares there
} Buffer;

struct Bench {
    const DeviceKind *kind;
    Device *device;
    const DeviceInfo *info;
    int nbuffer;
    Buffer *buffer;
    double tolerance;
    GpuCheck *gpucheck; // NULL: outputs are read back and compared here
    void *readback;     // room for the largest buffer that is read
    bool compiles;      // and has nothing else
    bool sick;
};

// A module and how many pieces use it.
typedef struct {
    Module *module;
    int users;
} Built;

typedef struct {
    int buffer;
    Mem *mem;
} View;

struct Piece {
    int number;
    Arena *arena;
    const Job *job;
    Built *built;
    Trial trial;
    Buf log;
    Mem **scratch;
    VEC(View) views; // of buffers that kernels read as images
    DeviceLaunch *launch;
    double checked_ns; // how long the checked run took
};

// A checked run is cold: against the 3 at which a timed run is cut.
static const double HOPELESS = 10;

static const TrialStatus status_of[] = {
    [DEV_OK] = TRIAL_OK,
    [DEV_BUILD_FAILED] = TRIAL_BUILD_FAILED,
    [DEV_OUT_OF_RESOURCES] = TRIAL_OUT_OF_RESOURCES,
    [DEV_FAILED] = TRIAL_FAILED,
};

// Opening -----------------------------------------------------------------------------

static bool map_file(const char *path, size_t bytes, const void **at, Buf *log)
{
    *at = NULL;
    if (!*path || bytes == 0)
        return true;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        buf_printf(log, "cannot map %s: %s\n", path, strerror(errno));
    else
        *at = p;
    if (fd >= 0)
        close(fd);
    return p != MAP_FAILED;
}

static bool upload(Bench *bench, const Buffer *b, Buf *log)
{
    return !b->init ||
           bench->kind->write(bench->device, b->mem, b->init, b->bytes, log) == DEV_OK;
}

static Mem *new_mem(Bench *bench, ImageShape image, size_t bytes, Buf *log)
{
    if (!image.dims)
        return bench->kind->mem_new(bench->device, bytes, log);
    if (bench->kind->image_new)
        return bench->kind->image_new(bench->device, &image, log);
    buf_printf(log, "%s devices have no images\n", bench->kind->name);
    return NULL;
}

static bool open_buffer(Bench *bench, const json_t *json, Buffer *b, Buf *log)
{
    b->name = xstrdup(json_text_of(json, "name"));
    b->scalar = (Scalar)json_int_of(json, "scalar", S_FLOAT);
    b->count = json_int_of(json, "count", 0);
    b->bytes = (size_t)b->count * scalar_device_bytes(b->scalar);
    if (!map_file(json_text_of(json, "init"), b->bytes, &b->init, log) ||
        !map_file(json_text_of(json, "expect"), b->bytes, &b->expect, log))
        return false;
    if (b->expect)
        b->scale = check_scale(b->scalar, b->expect, b->count);
    b->inout = json_is_true(json_object_get(json, "inout"));
    b->mem = new_mem(bench, image_from_json(json_object_get(json, "image")), b->bytes, log);
    return b->mem && upload(bench, b, log);
}

// Without room for it on the device, the outputs are read back.
static void upload_expected(Bench *bench, Buffer *b)
{
    Buf ignored;
    buf_init(&ignored);
    b->expect_mem = bench->kind->mem_new(bench->device, b->bytes, &ignored);
    if (b->expect_mem && bench->kind->write(bench->device, b->expect_mem, b->expect,
                                            b->bytes, &ignored) != DEV_OK) {
        bench->kind->mem_free(bench->device, b->expect_mem);
        b->expect_mem = NULL;
    }
    buf_release(&ignored);
}

static bool open_buffers(Bench *bench, const json_t *list, Buf *log)
{
    size_t largest = 1;
    bench->nbuffer = (int)json_array_size(list);
    bench->buffer = xcalloc((size_t)bench->nbuffer, sizeof *bench->buffer);
    for (int i = 0; i < bench->nbuffer; i++) {
        Buffer *b = &bench->buffer[i];
        if (!open_buffer(bench, json_array_get(list, (size_t)i), b, log))
            return false;
        if (b->expect && bench->gpucheck)
            upload_expected(bench, b);
        if (b->expect || !b->init || b->inout)
            largest = MAX(largest, b->bytes);
    }
    bench->readback = malloc(largest);
    if (!bench->readback)
        buf_puts(log, "no memory to read the outputs back\n");
    return bench->readback != NULL;
}

static void close_buffer(Bench *bench, Buffer *b)
{
    if (b->mem)
        bench->kind->mem_free(bench->device, b->mem);
    if (b->expect_mem)
        bench->kind->mem_free(bench->device, b->expect_mem);
    if (b->init)
        munmap((void *)(uintptr_t)b->init, b->bytes);
    if (b->expect)
        munmap((void *)(uintptr_t)b->expect, b->bytes);
    free(b->name);
}

static void close_buffers(Bench *bench)
{
    for (int i = 0; i < bench->nbuffer; i++)
        close_buffer(bench, &bench->buffer[i]);
    free(bench->buffer);
    free(bench->readback);
    bench->buffer = NULL;
    bench->readback = NULL;
    bench->nbuffer = 0;
}

bool bench_fill(Bench *bench, const json_t *message, Buf *log)
{
    close_buffers(bench);
    bench->tolerance = json_number_of(message, "tolerance", INFINITY);
    return open_buffers(bench, json_object_get(message, "buffers"), log);
}

Bench *bench_open(const json_t *message, Buf *log)
{
    const char *id = json_text_of(message, "device");
    bool compiles = json_is_true(json_object_get(message, "compiler"));
    const DeviceKind *kind;
    int index;
    if (!device_parse(id, &kind, &index)) {
        buf_printf(log, "'%s' names no device\n", id);
        return NULL;
    }
    Device *device = (compiles ? kind->open_compiler : kind->open)(index, log);
    if (!device)
        return NULL;
    Bench *bench = xcalloc(1, sizeof *bench);
    bench->kind = kind;
    bench->device = device;
    bench->info = kind->info(device);
    bench->compiles = compiles;
    if (compiles)
        return bench;
    bench->gpucheck = gpucheck_open(kind, device);
    if (bench_fill(bench, message, log))
        return bench;
    bench_close(bench);
    return NULL;
}

void bench_close(Bench *bench)
{
    close_buffers(bench);
    gpucheck_close(bench->gpucheck);
    bench->kind->close(bench->device);
    free(bench);
}

const DeviceInfo *bench_info(const Bench *bench)
{
    return bench->info;
}

bool bench_compiles(const Bench *bench)
{
    return bench->compiles;
}

bool bench_sick(const Bench *bench)
{
    return bench->sick;
}

// Pieces ------------------------------------------------------------------------------

Piece *piece_new(const json_t *job, int number)
{
    Piece *piece = xcalloc(1, sizeof *piece);
    piece->number = number;
    piece->arena = arena_new();
    piece->job = job_from_json(piece->arena, job);
    piece->trial.time_ns = INFINITY;
    buf_init(&piece->log);
    return piece;
}

static void drop_built(Bench *bench, Built *built)
{
    if (!built || --built->users > 0)
        return;
    if (built->module)
        bench->kind->module_free(bench->device, built->module);
    free(built);
}

void piece_free(Bench *bench, Piece *piece)
{
    drop_built(bench, piece->built);
    buf_release(&piece->log);
    arena_free(piece->arena);
    free(piece);
}

int piece_number(const Piece *piece)
{
    return piece->number;
}

bool piece_ok(const Piece *piece)
{
    return piece->trial.status == TRIAL_OK;
}

json_t *piece_report(const Piece *piece)
{
    Trial trial = piece->trial;
    trial.log = piece->log.text;
    return json_pack("{s:i,s:o}", "job", piece->number, "trial", trial_to_json(&trial));
}

// Building ----------------------------------------------------------------------------

static DeviceStatus build(Bench *bench, Piece **piece, int n, Buf *log)
{
    Module *module = NULL;
    Buf text;
    buf_init(&text);
    buf_puts(&text, piece[0]->job->prelude);
    for (int i = 0; i < n; i++)
        buf_printf(&text, "\n%s", piece[i]->job->source);
    buf_putc(&text, '\n');
    const char *options = piece[0]->job->options;
    DeviceStatus status =
        bench->compiles
            ? bench->kind->compile(bench->device, text.text, options, log)
            : bench->kind->build(bench->device, text.text, options, &module, log);
    buf_release(&text);
    if (status != DEV_OK)
        return status;
    Built *built = xmalloc(sizeof *built);
    *built = (Built){module, n};
    for (int i = 0; i < n; i++)
        piece[i]->built = built;
    return DEV_OK;
}

// A group that no kernel of the device can have need not be compiled.
static bool can_launch(const Bench *bench, const JobLaunch *launch)
{
    int64_t group = 1;
    for (int i = 0; i < 3; i++) {
        if (launch->local[i] > bench->info->max_item[i])
            return false;
        group *= launch->local[i];
    }
    return group <= bench->info->max_group;
}

static void build_alone(Bench *bench, Piece *piece)
{
    double start = clock_s();
    for (int i = 0; i < piece->job->nlaunch; i++)
        if (!can_launch(bench, &piece->job->launch[i])) {
            buf_printf(&piece->log, "%s: a group larger than the device allows\n",
                       piece->job->launch[i].kernel);
            piece->trial.status = TRIAL_OUT_OF_RESOURCES;
            return;
        }
    piece->trial.status = status_of[build(bench, &piece, 1, &piece->log)];
    piece->trial.build_s += clock_s() - start;
}

static bool build_jointly(Bench *bench, Piece **piece, int n)
{
    double start = clock_s();
    Buf ignored; // each says for itself what is wrong with it
    buf_init(&ignored);
    bool ok = build(bench, piece, n, &ignored) == DEV_OK;
    for (int i = 0; i < n; i++)
        piece[i]->trial.build_s += (clock_s() - start) / n;
    buf_release(&ignored);
    return ok;
}

static bool can_share(const Piece *a, const Piece *b)
{
    return strcmp(a->job->prelude, b->job->prelude) == 0 &&
           strcmp(a->job->options, b->job->options) == 0;
}

void bench_build(Bench *bench, Piece **piece, int n, BenchTell *tell, void *user)
{
    for (int i = 0, len; i < n; i += len) {
        for (len = 1; i + len < n && can_share(piece[i], piece[i + len]); len++)
            ;
        if (len > 1) {
            tell(user, "build", JOINT_BUILD);
            if (build_jointly(bench, piece + i, len))
                continue;
        }
        for (int k = i; k < i + len; k++) {
            tell(user, "build", piece[k]->number);
            build_alone(bench, piece[k]);
        }
    }
}

// Launching ---------------------------------------------------------------------------

static Mem *mem_of(const Bench *bench, const Piece *piece, int buffer)
{
    return buffer < bench->nbuffer ? bench->buffer[buffer].mem
                                   : piece->scratch[buffer - bench->nbuffer];
}

// A buffer as an image, the same one for all launches; NULL with a log where the device
// has no such images.
static Mem *view_of(const Bench *bench, Piece *piece, const JobArg *arg)
{
    for (int i = 0; i < piece->views.len; i++)
        if (piece->views.at[i].buffer == arg->buffer)
            return piece->views.at[i].mem;
    int bytes = (int)scalar_device_bytes(arg->scalar);
    int64_t count = arg->buffer < bench->nbuffer
                        ? bench->buffer[arg->buffer].count
                        : piece->job->scratch_bytes[arg->buffer - bench->nbuffer] / bytes;
    ImageShape shape = {.dims = 1,
                        .size = {count, 1, 1},
                        .channels = 1,
                        .bytes = bytes,
                        .kind = arg->scalar == S_INT ? 'i' : 'f'};
    Mem *view = NULL;
    if (bench->kind->view_new)
        view = bench->kind->view_new(bench->device, mem_of(bench, piece, arg->buffer),
                                     &shape, &piece->log);
    else
        buf_printf(&piece->log, "%s devices read no images\n", bench->kind->name);
    if (view)
        VEC_PUSH(piece->arena, &piece->views, ((View){arg->buffer, view}));
    else
        piece->trial.status = TRIAL_OUT_OF_RESOURCES;
    return view;
}

static DeviceArg device_arg(const Bench *bench, Piece *piece, const JobArg *arg)
{
    if (arg->kind == ARG_BUFFER)
        return (DeviceArg){.mem = mem_of(bench, piece, arg->buffer)};
    if (arg->kind == ARG_IMAGE)
        return (DeviceArg){.mem = view_of(bench, piece, arg)};
    Scalar scalar = arg->kind == ARG_INT ? S_INT : arg->scalar;
    double value = arg->kind == ARG_INT ? (double)arg->number : arg->value;
    void *data = arena_alloc(piece->arena, sizeof(double));
    if (arg->kind == ARG_BITS) {
        memcpy(data, &arg->number, sizeof arg->number);
        return (DeviceArg){.data = data, .bytes = (size_t)arg->buffer};
    }
    scalar_pack(scalar, &value, 1, data);
    return (DeviceArg){.data = data, .bytes = scalar_device_bytes(scalar)};
}

static DeviceLaunch device_launch(const Bench *bench, Piece *piece, const JobLaunch *from)
{
    DeviceArg *arg = NEW_ARRAY(piece->arena, DeviceArg, from->narg);
    DeviceLaunch launch = {.kernel = from->kernel, .narg = from->narg, .arg = arg};
    for (int i = 0; i < from->narg; i++)
        arg[i] = device_arg(bench, piece, &from->arg[i]);
    for (int i = 0; i < 3; i++) {
        launch.global[i] = (size_t)from->global[i];
        launch.local[i] = (size_t)from->local[i];
    }
    return launch;
}

// The scratch buffers and the launches that use them; false with a trial that says why.
static bool set_up(Bench *bench, Piece *piece)
{
    const Job *job = piece->job;
    piece->scratch = NEW_ARRAY(piece->arena, Mem *, job->nscratch);
    for (int i = 0; i < job->nscratch; i++) {
        piece->scratch[i] =
            bench->kind->mem_new(bench->device, (size_t)job->scratch_bytes[i], &piece->log);
        if (!piece->scratch[i]) {
            piece->trial.status = TRIAL_OUT_OF_RESOURCES;
            return false;
        }
    }
    piece->launch = NEW_ARRAY(piece->arena, DeviceLaunch, job->nlaunch);
    for (int i = 0; i < job->nlaunch; i++)
        piece->launch[i] = device_launch(bench, piece, &job->launch[i]);
    return piece->trial.status == TRIAL_OK;
}

static void take_down(Bench *bench, Piece *piece)
{
    for (int i = 0; i < piece->views.len; i++)
        bench->kind->mem_free(bench->device, piece->views.at[i].mem);
    piece->views.len = 0;
    for (int i = 0; i < piece->job->nscratch; i++)
        if (piece->scratch[i])
            bench->kind->mem_free(bench->device, piece->scratch[i]);
    piece->scratch = NULL;
    piece->launch = NULL;
}

static DeviceStatus run(Bench *bench, Piece *piece, double *time_ns)
{
    DeviceStatus status =
        bench->kind->run(bench->device, piece->built->module, piece->launch,
                         piece->job->nlaunch, time_ns, &piece->log);
    bench->sick |= status == DEV_FAILED;
    return status;
}

// Checking ----------------------------------------------------------------------------

// Poison for what is written, the original contents for what is read and written.
static DeviceStatus prepare_buffers(Bench *bench, Piece *piece, bool restore)
{
    const DeviceKind *kind = bench->kind;
    DeviceStatus status = DEV_OK;
    for (int i = 0; i < bench->nbuffer && status == DEV_OK; i++) {
        const Buffer *b = &bench->buffer[i];
        if (!b->init)
            status = kind->fill(bench->device, b->mem, 0xff, b->bytes, &piece->log);
        else if (restore || b->expect || b->inout)
            status = kind->write(bench->device, b->mem, b->init, b->bytes, &piece->log);
    }
    for (int i = 0; i < piece->job->nscratch && status == DEV_OK; i++)
        status = kind->fill(bench->device, piece->scratch[i], 0xff,
                            (size_t)piece->job->scratch_bytes[i], &piece->log);
    return status;
}

static void explain(const Buffer *b, const Check *check, Buf *log)
{
    buf_printf(
        log, "%s: element %lld is %.9g, must be %.9g (largest relative error %.3g)\n",
        b->name, (long long)check->first_wrong, check->got, check->want, check->max_error);
}

// True if every expected buffer holds what it must.
static bool compare(Bench *bench, Piece *piece, DeviceStatus *status, Buf *why)
{
    bool right = true;
    piece->trial.max_error = 0;
    for (int i = 0; i < bench->nbuffer && *status == DEV_OK; i++) {
        const Buffer *b = &bench->buffer[i];
        if (!b->expect ||
            gpucheck_right(bench->gpucheck, b->scalar, b->mem, b->expect_mem, b->count,
                           bench->tolerance, b->scale, &piece->trial.max_error))
            continue;
        *status = bench->kind->read(bench->device, b->mem, bench->readback, b->bytes,
                                    &piece->log);
        if (*status != DEV_OK)
            break;
        Check check = check_compare(b->scalar, bench->readback, b->expect, b->count,
                                    bench->tolerance, b->scale);
        piece->trial.max_error = MAX(piece->trial.max_error, check.max_error);
        if (check.first_wrong >= 0)
            explain(b, &check, why);
        right = right && check.first_wrong < 0;
    }
    return right;
}

// One checked run. The device compiles as late as the first run: the time beyond the
// kernels' own is counted as building.
static DeviceStatus check_once(Bench *bench, Piece *piece, bool restore, bool *right,
                               Buf *why)
{
    double start = clock_s(), time_ns = 0;
    DeviceStatus status = prepare_buffers(bench, piece, restore);
    if (status == DEV_OK) {
        double before = clock_s();
        status = run(bench, piece, &time_ns);
        double late = clock_s() - before - time_ns * 1e-9;
        piece->checked_ns = time_ns;
        piece->trial.build_s += MAX(late, 0);
        start += MAX(late, 0);
    }
    if (status == DEV_OK)
        *right = compare(bench, piece, &status, why);
    piece->trial.check_s += clock_s() - start;
    return status;
}

static void check_piece(Bench *bench, Piece *piece, BenchTell *tell, void *user)
{
    DeviceStatus status = DEV_OK;
    bool right = false;
    Buf why;
    buf_init(&why);
    for (int attempt = 0; attempt < 2 && !right && status == DEV_OK; attempt++) {
        buf_clear(&why);
        tell(user, "run", piece->number);
        status = check_once(bench, piece, attempt > 0, &right, &why);
    }
    piece->trial.status = status_of[status];
    if (status == DEV_OK && !right) {
        piece->trial.status = TRIAL_WRONG_RESULT;
        buf_write(&piece->log, why.text, why.len);
    }
    buf_release(&why);
}

void bench_check(Bench *bench, Piece *piece, BenchTell *tell, void *user)
{
    if (set_up(bench, piece))
        check_piece(bench, piece, tell, user);
    take_down(bench, piece);
}

// Timing ------------------------------------------------------------------------------

typedef struct {
    Bench *bench;
    Piece *piece;
} TimedRun;

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// A kernel that works in place gets the same data in every sample.
static DeviceStatus restore_inouts(Bench *bench, Buf *log)
{
    DeviceStatus status = DEV_OK;
    for (int i = 0; i < bench->nbuffer && status == DEV_OK; i++) {
        const Buffer *b = &bench->buffer[i];
        if (b->inout)
            status = bench->kind->write(bench->device, b->mem, b->init, b->bytes, log);
    }
    return status;
}

static DeviceStatus timed_run(void *user, double *time_ns, double *used_ns)
{
    TimedRun *timed = user;
    DeviceStatus status = restore_inouts(timed->bench, &timed->piece->log);
    if (status != DEV_OK)
        return status;
    double before = cpu_ns();
    status = run(timed->bench, timed->piece, time_ns);
    *used_ns = cpu_ns() - before;
    return status;
}

// The cores kept busy by a number of groups: on two cores, three groups keep 1.5 busy.
static double cores_used(const JobLaunch *launch, int cores)
{
    int64_t groups = 1;
    for (int i = 0; i < 3; i++)
        groups *= MAX(launch->global[i] / MAX(launch->local[i], 1), 1);
    int64_t rounds = (groups + cores - 1) / cores;
    return (double)groups / (double)rounds;
}

// The least that any of the launches keeps busy; of the host's own threads one is sure.
static double cores_in_use(const Bench *bench, const Job *job)
{
    double used = bench->info->compute_units;
    if (!bench->info->is_cpu)
        return 0;
    if (strcmp(bench->info->target, "c") == 0)
        return 1;
    for (int i = 0; i < job->nlaunch; i++)
        used = MIN(used, cores_used(&job->launch[i], bench->info->compute_units));
    return used;
}

static bool write_file(const char *path, const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    while (fd >= 0 && len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        bytes += n;
        len -= (size_t)n;
    }
    return fd >= 0 && close(fd) == 0 && len == 0;
}

static DeviceStatus write_outputs(Bench *bench, Piece *piece, const json_t *paths)
{
    DeviceStatus status = DEV_OK;
    for (int i = 0; i < bench->nbuffer && status == DEV_OK; i++) {
        const char *path = json_string_value(json_array_get(paths, (size_t)i));
        const Buffer *b = &bench->buffer[i];
        if (!path)
            continue;
        status = bench->kind->read(bench->device, b->mem, bench->readback, b->bytes,
                                   &piece->log);
        if (status == DEV_OK && !write_file(path, bench->readback, b->bytes)) {
            buf_printf(&piece->log, "cannot write %s: %s\n", path, strerror(errno));
            status = DEV_FAILED;
        }
    }
    return status;
}

// The outputs are still what the checked run left.
static void take_checked(Bench *bench, Piece *piece, const json_t *options)
{
    Trial *trial = &piece->trial;
    trial->status = status_of[write_outputs(bench, piece, json_object_get(options, "out"))];
    trial->nsample = trial->status == TRIAL_OK;
    trial->time_ns = trial->sample_ns[0] = trial->nsample ? piece->checked_ns : INFINITY;
}

static void time_piece(Bench *bench, Piece *piece, const json_t *options)
{
    TimedRun timed = {bench, piece};
    Sampler sampler = {
        .run = timed_run,
        .user = &timed,
        .wanted = (int)json_int_of(options, "samples", 5),
        .cores_in_use = cores_in_use(bench, piece->job),
        .cutoff_ns = json_number_of(options, "cutoff_ns", INFINITY),
        .limit_s = json_number_of(options, "limit_s", INFINITY),
    };
    DeviceStatus status = prepare_buffers(bench, piece, false);
    if (status == DEV_OK)
        status = sample_take(&sampler, &piece->trial);
    if (status == DEV_OK)
        status = write_outputs(bench, piece, json_object_get(options, "out"));
    piece->trial.status = status_of[status];
    if (status != DEV_OK)
        piece->trial.time_ns = INFINITY;
}

// So slow a checked run, with the device to itself, says enough.
static bool is_hopeless(Piece *piece, const json_t *options)
{
    double cutoff_ns = json_number_of(options, "cutoff_ns", INFINITY);
    Trial *trial = &piece->trial;
    if (!json_is_true(json_object_get(options, "alone")) ||
        !(piece->checked_ns > HOPELESS * cutoff_ns))
        return false;
    trial->cut = true;
    trial->nsample = 1;
    trial->time_ns = trial->sample_ns[0] = piece->checked_ns;
    return true;
}

void bench_time(Bench *bench, Piece *piece, const json_t *options)
{
    if (is_hopeless(piece, options))
        return;
    if (json_int_of(options, "samples", 5) == 0) {
        take_checked(bench, piece, options);
        return;
    }
    if (set_up(bench, piece))
        time_piece(bench, piece, options);
    take_down(bench, piece);
}
