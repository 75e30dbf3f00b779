// SPDX-License-Identifier: Apache-2.0
//
// The worker's bench: the device, the problem's buffers, and one job at a time built,
// run and checked, timed.
//
// A job is judged after its first run and after its last timed one, which begin with
// different poisons in the outputs (buffers.c). It guards against nothing that a candidate
// does to this process: the controller does, by ending it.
#include "measure/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

// A module, how many pieces use it, and of what text it was made.
typedef struct {
    Module *module;
    int users;
    char *text;
} Built;

struct Bench {
    const DeviceInfo *info;
    Buffers held;  // the device and the problem's buffers
    Judge *judge;  // NULL: none
    bool compiles; // and has nothing else
    bool sick;
    Built *last; // kept: the same job comes again with other inputs
};

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
    Buffer *scratch;
    Buffer **used; // those of the problem that this job may read or write, and its scratch
    int nused;
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

bool bench_fill(Bench *bench, const json_t *message, Buf *log)
{
    judge_close(bench->judge);
    return judge_open(message, &bench->judge, log) &&
           buffers_fill(&bench->held, message, log);
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
    bench->held = (Buffers){.kind = kind, .device = device};
    bench->info = kind->info(device);
    bench->compiles = compiles;
    if (compiles)
        return bench;
    if (!bench->info->is_cpu)
        bench->held.gpucheck = gpucheck_open(kind, device);
    if (bench_fill(bench, message, log))
        return bench;
    bench_close(bench);
    return NULL;
}

static void drop_built(Bench *bench, Built *built)
{
    if (!built || --built->users > 0)
        return;
    if (built->module)
        bench->held.kind->module_free(bench->held.device, built->module);
    free(built->text);
    free(built);
}

void bench_close(Bench *bench)
{
    drop_built(bench, bench->last);
    judge_close(bench->judge);
    buffers_clear(&bench->held);
    gpucheck_close(bench->held.gpucheck);
    bench->held.kind->close(bench->held.device);
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

static void use_built(Built *built, Piece **piece, int n)
{
    built->users += n;
    for (int i = 0; i < n; i++)
        piece[i]->built = built;
}

static DeviceStatus build(Bench *bench, Piece **piece, int n, Buf *log)
{
    const DeviceKind *kind = bench->held.kind;
    Module *module = NULL;
    Buf source;
    buf_init(&source);
    buf_puts(&source, piece[0]->job->prelude);
    for (int i = 0; i < n; i++)
        buf_printf(&source, "\n%s", piece[i]->job->source);
    buf_putc(&source, '\n');
    DeviceText text = {.source = source.text, .options = piece[0]->job->options};
    // What is named is in the module, too, and so are the values of its symbols.
    bool known = n == 1 && !piece[0]->job->named && !bench->compiles;
    Buf key;
    buf_init(&key);
    buf_printf(&key, "%s\n%s", text.options ? text.options : "", text.source);
    if (known && bench->last && strcmp(bench->last->text, key.text) == 0) {
        use_built(bench->last, piece, n);
        buf_release(&source);
        buf_release(&key);
        return DEV_OK;
    }
    if (n == 1)
        job_names(piece[0]->job, piece[0]->arena, &text);
    DeviceStatus status = bench->compiles
                              ? kind->compile(bench->held.device, &text, log)
                              : kind->build(bench->held.device, &text, &module, log);
    buf_release(&source);
    if (status == DEV_OK) {
        Built *built = xmalloc(sizeof *built);
        *built = (Built){module, 0, xstrdup(key.text)};
        use_built(built, piece, n);
        if (known) {
            drop_built(bench, bench->last);
            bench->last = built;
            built->users++;
        }
    }
    buf_release(&key);
    return status;
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
    return !a->job->named && !b->job->named &&
           strcmp(a->job->prelude, b->job->prelude) == 0 &&
           strcmp(a->job->options, b->job->options) == 0;
}

int bench_joint(Piece *const *piece, int n)
{
    int len = 1;
    while (len < n && can_share(piece[0], piece[len]))
        len++;
    return len;
}

void bench_build(Bench *bench, Piece **piece, int n, BenchTell *tell, void *user)
{
    if (n > 1) {
        tell(user, "build", JOINT_BUILD);
        if (build_jointly(bench, piece, n))
            return;
    }
    for (int k = 0; k < n; k++) {
        tell(user, "build", piece[k]->number);
        build_alone(bench, piece[k]);
    }
}

// Launching ---------------------------------------------------------------------------

static Mem *mem_of(const Bench *bench, const Piece *piece, int buffer)
{
    return buffer < bench->held.n ? bench->held.at[buffer].mem
                                  : piece->scratch[buffer - bench->held.n].mem;
}

// A buffer as an image, the same one for all launches; NULL with a log where the device
// has no such images.
static Mem *view_of(const Bench *bench, Piece *piece, const JobArg *arg)
{
    for (int i = 0; i < piece->views.len; i++)
        if (piece->views.at[i].buffer == arg->buffer)
            return piece->views.at[i].mem;
    int bytes = (int)scalar_device_bytes(arg->scalar);
    int64_t count = arg->buffer < bench->held.n
                        ? bench->held.at[arg->buffer].count
                        : piece->job->scratch_bytes[arg->buffer - bench->held.n] / bytes;
    ImageShape shape = {.dims = 1,
                        .size = {count, 1, 1},
                        .channels = 1,
                        .bytes = bytes,
                        .kind = arg->scalar == S_INT ? 'i' : 'f'};
    Mem *view = NULL;
    if (bench->held.kind->view_new)
        view = bench->held.kind->view_new(
            bench->held.device, mem_of(bench, piece, arg->buffer), &shape, &piece->log);
    else
        buf_printf(&piece->log, "%s devices read no images\n", bench->held.kind->name);
    if (view)
        VEC_PUSH(piece->arena, &piece->views, ((View){arg->buffer, view}));
    else
        piece->trial.status = TRIAL_OUT_OF_RESOURCES;
    return view;
}

static size_t bytes_of(const Bench *bench, const Piece *piece, int buffer)
{
    return buffer < bench->held.n ? bench->held.at[buffer].bytes
                                  : piece->scratch[buffer - bench->held.n].bytes;
}

static DeviceArg device_arg(const Bench *bench, Piece *piece, const JobArg *arg)
{
    if (arg->kind == ARG_BUFFER)
        return (DeviceArg){.mem = mem_of(bench, piece, arg->buffer)};
    if (arg->kind == ARG_VALUE) {
        static const double zero = 0; // of inputs that hold nothing yet
        const void *init = bench->held.at[arg->buffer].init;
        return (DeviceArg){.data = init ? init : &zero,
                           .bytes = scalar_device_bytes(arg->scalar)};
    }
    if (arg->kind == ARG_IMAGE)
        return (DeviceArg){.mem = view_of(bench, piece, arg)};
    if (arg->kind == ARG_SYMBOL)
        return (DeviceArg){.mem = mem_of(bench, piece, arg->buffer),
                           .bytes = bytes_of(bench, piece, arg->buffer),
                           .symbol = job_symbol(arg, piece->arena)};
    if (arg->kind == ARG_BITS || arg->kind == ARG_LOCAL)
        return (DeviceArg){.data = arg->bits, .bytes = (size_t)arg->buffer};
    Scalar scalar = arg->kind == ARG_INT ? S_INT : arg->scalar;
    double value = arg->kind == ARG_INT ? (double)arg->number : arg->value;
    void *data = arena_alloc(piece->arena, sizeof(double));
    scalar_pack(scalar, &value, 1, data);
    return (DeviceArg){.data = data, .bytes = scalar_device_bytes(scalar)};
}

static DeviceLaunch device_launch(const Bench *bench, Piece *piece, const JobLaunch *from)
{
    DeviceArg *arg = NEW_ARRAY(piece->arena, DeviceArg, from->narg);
    DeviceLaunch launch = {.kernel = from->kernel,
                           .local_bytes = (size_t)from->local_bytes,
                           .follows = from->follows,
                           .narg = from->narg,
                           .arg = arg};
    for (int i = 0; i < from->narg; i++)
        arg[i] = device_arg(bench, piece, &from->arg[i]);
    for (int i = 0; i < 3; i++) {
        launch.global[i] = (size_t)from->global[i];
        launch.local[i] = (size_t)from->local[i];
    }
    return launch;
}

static bool is_passed(const Job *job, int buffer)
{
    for (int i = 0; i < job->nlaunch; i++)
        for (int k = 0; k < job->launch[i].narg; k++) {
            const JobArg *arg = &job->launch[i].arg[k];
            if (job_reads(arg) && arg->buffer == buffer)
                return true;
        }
    return false;
}

// Inputs that the job is not passed are no affair of its.
static void find_used(Bench *bench, Piece *piece)
{
    const Job *job = piece->job;
    piece->used = NEW_ARRAY(piece->arena, Buffer *, bench->held.n + job->nscratch);
    piece->nused = 0;
    for (int i = 0; i < bench->held.n; i++)
        if (!buffer_is_input(&bench->held.at[i]) || is_passed(job, i))
            piece->used[piece->nused++] = &bench->held.at[i];
    for (int i = 0; i < job->nscratch; i++)
        piece->used[piece->nused++] = &piece->scratch[i];
}

// The scratch buffers and the launches that use them; false with a trial that says why.
static bool set_up(Bench *bench, Piece *piece)
{
    const Job *job = piece->job;
    piece->scratch = NEW_ARRAY(piece->arena, Buffer, job->nscratch);
    for (int i = 0; i < job->nscratch; i++)
        if (!buffer_scratch(&bench->held, i, (size_t)job->scratch_bytes[i],
                            &piece->scratch[i], &piece->log)) {
            piece->trial.status = TRIAL_OUT_OF_RESOURCES;
            return false;
        }
    find_used(bench, piece);
    piece->launch = NEW_ARRAY(piece->arena, DeviceLaunch, job->nlaunch);
    for (int i = 0; i < job->nlaunch; i++)
        piece->launch[i] = device_launch(bench, piece, &job->launch[i]);
    return piece->trial.status == TRIAL_OK;
}

static void take_down(Bench *bench, Piece *piece)
{
    for (int i = 0; i < piece->views.len; i++)
        bench->held.kind->mem_free(bench->held.device, piece->views.at[i].mem);
    piece->views.len = 0;
    for (int i = 0; i < piece->job->nscratch; i++)
        buffer_free(&bench->held, &piece->scratch[i]);
    piece->scratch = NULL;
    piece->launch = NULL;
}

static DeviceStatus run(Bench *bench, Piece *piece, double *time_ns)
{
    DeviceStatus status =
        bench->held.kind->run(bench->held.device, piece->built->module, piece->launch,
                              piece->job->nlaunch, time_ns, &piece->log);
    bench->sick |= status == DEV_FAILED;
    return status;
}

// Checking ----------------------------------------------------------------------------

static DeviceStatus guard(Bench *bench, Piece *piece, Poison poison)
{
    return buffers_guard(&bench->held, piece->used, piece->nused, poison, &piece->log);
}

static DeviceStatus reset(Bench *bench, Piece *piece, Poison poison)
{
    return buffers_reset(&bench->held, piece->used, piece->nused, poison, &piece->log);
}

// What the problem's own judge says of a run that is right as far as others can tell.
static DeviceStatus ask_judge(Bench *bench, Verdict *verdict, Buf *log)
{
    int answer = 0;
    DeviceStatus status = DEV_OK;
    if (bench->judge && verdict->right)
        status = judge_ask(bench->judge, &bench->held, &answer, log);
    if (answer != 0) {
        verdict->right = false;
        buf_printf(&verdict->why, "the problem's judge says %d\n", answer);
    }
    return status;
}

// Judges the last run, which began with this poison; when: said of what is wrong.
static DeviceStatus judge(Bench *bench, Piece *piece, Poison poison, const char *when)
{
    Verdict verdict;
    double start = clock_s();
    buf_init(&verdict.why);
    DeviceStatus status = buffers_judge(&bench->held, piece->used, piece->nused, poison,
                                        &verdict, &piece->log);
    if (status == DEV_OK)
        status = ask_judge(bench, &verdict, &piece->log);
    piece->trial.status = status_of[status];
    piece->trial.max_error = MAX(piece->trial.max_error, verdict.max_error);
    if (status == DEV_OK && !verdict.right) {
        piece->trial.status = TRIAL_WRONG_RESULT;
        buf_puts(&piece->log, when);
        buf_write(&piece->log, verdict.why.text, verdict.why.len);
    }
    buf_release(&verdict.why);
    piece->trial.check_s += clock_s() - start;
    return status;
}

// One run on buffers that are as they are before a run. The device compiles as late as the
// first run: the time beyond the kernels' own is counted as building.
static DeviceStatus run_fresh(Bench *bench, Piece *piece, Poison poison)
{
    double start = clock_s(), time_ns = 0;
    DeviceStatus status = guard(bench, piece, poison);
    if (status == DEV_OK)
        status = reset(bench, piece, poison);
    if (status == DEV_OK) {
        double before = clock_s();
        status = run(bench, piece, &time_ns);
        double late = clock_s() - before - time_ns * 1e-9;
        piece->checked_ns = time_ns;
        piece->trial.build_s += MAX(late, 0);
        start += MAX(late, 0);
    }
    piece->trial.status = status_of[status];
    piece->trial.check_s += clock_s() - start;
    return status;
}

void bench_check(Bench *bench, Piece *piece, BenchTell *tell, void *user)
{
    if (set_up(bench, piece)) {
        tell(user, "run", piece->number);
        if (run_fresh(bench, piece, POISON_FIRST) == DEV_OK)
            judge(bench, piece, POISON_FIRST, "");
    }
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

// Each run finds what the first found, and cannot live on what another left.
static DeviceStatus timed_run(void *user, double *time_ns, double *used_ns)
{
    TimedRun *timed = user;
    DeviceStatus status = reset(timed->bench, timed->piece, POISON_AGAIN);
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
    // Under a limit on processor time Linux counts it in whole ticks: short runs take none.
    struct rlimit limit;
    bool ticks = getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    if (!bench->info->is_cpu || ticks)
        return 0;
    if (language_is(bench->info->target, LANGUAGE_C))
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

static DeviceStatus write_output(const Buffers *held, const Buffer *b, const char *path,
                                 Buf *log)
{
    const void *data = held->kind->map(held->device, b->mem, b->bytes, log);
    if (!data)
        return DEV_FAILED;
    bool ok = write_file(path, data, b->bytes);
    if (!ok)
        buf_printf(log, "cannot write %s: %s\n", path, strerror(errno));
    held->kind->unmap(held->device, b->mem, data);
    return ok ? DEV_OK : DEV_FAILED;
}

// What the last run left.
static void write_outputs(Bench *bench, Piece *piece, const json_t *options)
{
    const json_t *paths = json_object_get(options, "out");
    for (int i = 0; i < bench->held.n && piece->trial.status == TRIAL_OK; i++) {
        const char *path = json_string_value(json_array_get(paths, (size_t)i));
        if (path)
            piece->trial.status = status_of[write_output(&bench->held, &bench->held.at[i],
                                                         path, &piece->log)];
    }
}

static const char again[] = "run again, on outputs that held something else (what a kernel "
                            "reads needs access inout, in T1 ReadWrite):\n";

static void judge_again(Bench *bench, Piece *piece, const json_t *options)
{
    if (judge(bench, piece, POISON_AGAIN, again) == DEV_OK)
        write_outputs(bench, piece, options);
    if (piece->trial.status != TRIAL_OK) {
        piece->trial.time_ns = INFINITY;
        piece->trial.nsample = 0;
    }
}

static bool is_compared(const Bench *bench)
{
    for (int i = 0; i < bench->held.n; i++)
        if (bench->held.at[i].expect)
            return true;
    return false;
}

// Where nothing is expected one run is enough, and the outputs are still what it left.
static void compute_again(Bench *bench, Piece *piece, const json_t *options)
{
    Trial *trial = &piece->trial;
    trial->nsample = 1;
    trial->time_ns = trial->sample_ns[0] = piece->checked_ns;
    if (!is_compared(bench))
        write_outputs(bench, piece, options);
    else if (run_fresh(bench, piece, POISON_AGAIN) == DEV_OK)
        judge_again(bench, piece, options);
    if (trial->status != TRIAL_OK)
        trial->time_ns = INFINITY;
}

// What is told besides ----------------------------------------------------------------

static void tell_most(Measures *m, Measure what, int value)
{
    if (value >= 0 && !(measure_of(m, what) >= value))
        measure_tell(m, what, value);
}

static void tell_usage(Bench *bench, Piece *piece)
{
    const DeviceKind *kind = bench->held.kind;
    Measures *m = &piece->trial.measures;
    for (int i = 0; kind->usage && i < piece->job->nlaunch; i++) {
        const DeviceLaunch *launch = &piece->launch[i];
        KernelUsage usage;
        kind->usage(bench->held.device, piece->built->module, launch->kernel, &usage);
        tell_most(m, MEASURE_REGISTERS, usage.registers);
        tell_most(m, MEASURE_SPILLED, usage.spilled);
        if (usage.local_bytes >= 0)
            tell_most(m, MEASURE_SHARED, usage.local_bytes + (int)launch->local_bytes);
    }
}

// Runs as they are counted: many in one queue. A job that changes what it reads finds the
// same each time, and what that takes is counted by itself.
typedef struct {
    Bench *bench;
    Piece *piece;
    DeviceLaunch *launch; // of as many runs as there are between two looks at the counter
    bool restores, idle;  // idle: it restores and does nothing else
} Work;

// What restores does so before each run; else all runs are one queue.
static bool work(void *user, int runs)
{
    const Work *w = user;
    const int n = w->piece->job->nlaunch, queued = w->restores ? 1 : runs;
    const Buffers *held = &w->bench->held;
    Buf unsaid;
    double time_ns;
    bool ok = true;
    buf_init(&unsaid);
    for (int i = 0; ok && i < runs; i += queued)
        ok = (!w->restores || reset(w->bench, w->piece, POISON_AGAIN) == DEV_OK) &&
             (w->idle || held->kind->run(held->device, w->piece->built->module, w->launch,
                                         n * queued, &time_ns, &unsaid) == DEV_OK);
    buf_release(&unsaid);
    return ok;
}

static bool read_energy(void *user, double *joules)
{
    const Work *w = user;
    return w->bench->held.kind->energy(w->bench->held.device, joules);
}

static bool restores(const Piece *piece)
{
    for (int i = 0; i < piece->nused; i++)
        if (piece->used[i]->inout)
            return true;
    return false;
}

static void tell_energy(Bench *bench, Piece *piece)
{
    // To read the counter takes milliseconds, in which nothing runs.
    enum { LAUNCHES_MOST = 4096 };
    static const double BATCH_NS = 5e7;
    const int n = piece->job->nlaunch;
    Work w = {.bench = bench, .piece = piece, .restores = restores(piece)};
    double fits = fmin(BATCH_NS / piece->trial.time_ns, (double)LAUNCHES_MOST / n);
    Meter meter = {work, read_energy, &w, (int)fmax(fits, 1)};
    double joules, seconds, idle[2] = {0};
    if (!bench->held.kind->energy)
        return;
    w.launch = NEW_ARRAY(piece->arena, DeviceLaunch, n * meter.batch);
    for (int i = 0; i < n * meter.batch; i++)
        w.launch[i] = piece->launch[i % n];
    if (!energy_take(&meter, &joules, &seconds))
        return;
    w.idle = true;
    if (w.restores && energy_take(&meter, &idle[0], &idle[1]) &&
        (idle[0] >= joules || idle[1] >= seconds))
        return; // too little to be told from what restoring takes
    measure_tell(&piece->trial.measures, MEASURE_ENERGY, joules - idle[0]);
    measure_tell(&piece->trial.measures, MEASURE_POWER,
                 (joules - idle[0]) / (seconds - idle[1]));
}

static void tell(Bench *bench, Piece *piece, const json_t *options)
{
    tell_usage(bench, piece);
    if (json_is_true(json_object_get(options, "energy")) && !piece->trial.cut)
        tell_energy(bench, piece);
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
    DeviceStatus status = guard(bench, piece, POISON_AGAIN);
    if (status == DEV_OK)
        status = sample_take(&sampler, &piece->trial);
    piece->trial.status = status_of[status];
    if (status == DEV_OK)
        judge_again(bench, piece, options);
    else
        piece->trial.time_ns = INFINITY;
    if (piece->trial.status == TRIAL_OK)
        tell(bench, piece, options);
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
    bool timed = json_int_of(options, "samples", 5) > 0;
    if (set_up(bench, piece))
        (timed ? time_piece : compute_again)(bench, piece, options);
    take_down(bench, piece);
}
