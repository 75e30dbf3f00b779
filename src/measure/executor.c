// SPDX-License-Identifier: Apache-2.0
//
// What a worker executes jobs with: the device, the problem's buffers, and one job at a
// time built, run and checked, timed.
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
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// A module, how many jobs use it, and of what text it was made.
typedef struct {
    Module *module;
    int users;
    char *text;
} Built;

struct Executor {
    const DeviceInfo *info;
    DeviceBuffers held; // the device and the problem's buffers
    Judge *judge;       // NULL: none
    bool compiles;      // and has nothing else
    bool sick;
    Built *last; // kept: the same job comes again with other inputs
};

typedef struct {
    int buffer;
    Mem *mem;
} BufferView;

struct PreparedJob {
    int number;
    Arena *arena;
    const Job *job;
    Built *built;
    Trial trial;
    Buf log;
    DeviceBuffer *scratch;
    DeviceBuffer *
        *used; // those of the problem that this job may read or write, and its scratch
    int nused;
    VEC(BufferView) views; // of buffers that kernels read as images
    DeviceLaunch *launch;
    double checked_ns; // how long the checked run took
};

// Compilers are as many as processors; the reference and the worker that runs come first.
enum { COMPILER_NICE = 10 };

// A checked run is cold: against the 3 at which a timed run is cut.
static const double HOPELESS = 10;

static const TrialStatus status_of[] = {
    [DEV_OK] = TRIAL_OK,
    [DEV_BUILD_FAILED] = TRIAL_BUILD_FAILED,
    [DEV_OUT_OF_RESOURCES] = TRIAL_OUT_OF_RESOURCES,
    [DEV_FAILED] = TRIAL_FAILED,
};

// Opening -----------------------------------------------------------------------------

bool executor_fill(Executor *executor, const json_t *message, Buf *log)
{
    bool compares = json_array_size(json_object_get(message, "buffers")) > 0;
    if (compares && !executor->info->is_cpu && !executor->held.gpucheck)
        executor->held.gpucheck = gpucheck_open(executor->held.kind, executor->held.device);
    judge_close(executor->judge);
    return judge_open(message, &executor->judge, log) &&
           buffers_fill(&executor->held, message, log);
}

Executor *executor_open(const json_t *message, Buf *log)
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
    Executor *executor = xcalloc(1, sizeof *executor);
    executor->held = (DeviceBuffers){.kind = kind, .device = device};
    executor->info = kind->info(device);
    executor->compiles = compiles;
    if (compiles) {
        setpriority(PRIO_PROCESS, 0, COMPILER_NICE);
        return executor;
    }
    if (executor_fill(executor, message, log))
        return executor;
    executor_close(executor);
    return NULL;
}

static void drop_built(Executor *executor, Built *built)
{
    if (!built || --built->users > 0)
        return;
    if (built->module)
        executor->held.kind->module_free(executor->held.device, built->module);
    free(built->text);
    free(built);
}

void executor_close(Executor *executor)
{
    drop_built(executor, executor->last);
    judge_close(executor->judge);
    buffers_clear(&executor->held);
    gpucheck_close(executor->held.gpucheck);
    executor->held.kind->close(executor->held.device);
    free(executor);
}

const DeviceInfo *executor_info(const Executor *executor)
{
    return executor->info;
}

bool executor_compiles(const Executor *executor)
{
    return executor->compiles;
}

bool executor_sick(const Executor *executor)
{
    return executor->sick;
}

// Pieces ------------------------------------------------------------------------------

PreparedJob *prepared_new(const json_t *job, int number)
{
    PreparedJob *prepared = xcalloc(1, sizeof *prepared);
    prepared->number = number;
    prepared->arena = arena_new();
    prepared->job = job_from_json(prepared->arena, job);
    prepared->trial.time_ns = INFINITY;
    prepared->log = buf_new();
    return prepared;
}

void prepared_free(Executor *executor, PreparedJob *prepared)
{
    drop_built(executor, prepared->built);
    buf_release(&prepared->log);
    arena_free(prepared->arena);
    free(prepared);
}

int prepared_number(const PreparedJob *prepared)
{
    return prepared->number;
}

bool prepared_ok(const PreparedJob *prepared)
{
    return prepared->trial.status == TRIAL_OK;
}

json_t *prepared_report(const PreparedJob *prepared)
{
    Trial trial = prepared->trial;
    trial.log = prepared->log.text;
    return json_pack("{s:i,s:o}", "job", prepared->number, "trial", trial_to_json(&trial));
}

// Building ----------------------------------------------------------------------------

static void use_built(Built *built, PreparedJob **prepared, int n)
{
    built->users += n;
    for (int i = 0; i < n; i++)
        prepared[i]->built = built;
}

static DeviceStatus build(Executor *executor, PreparedJob **prepared, int n, Buf *log)
{
    const DeviceKind *kind = executor->held.kind;
    Module *module = NULL;
    Buf source = buf_new();
    buf_puts(&source, prepared[0]->job->prelude);
    for (int i = 0; i < n; i++)
        buf_printf(&source, "\n%s", prepared[i]->job->source);
    buf_putc(&source, '\n');
    DeviceText text = {.source = source.text, .options = prepared[0]->job->options};
    // What is named is in the module, too, and so are the values of its symbols.
    bool known = n == 1 && !prepared[0]->job->named && !executor->compiles;
    Buf key = buf_new();
    buf_printf(&key, "%s\n%s", text.options ? text.options : "", text.source);
    if (known && executor->last && strcmp(executor->last->text, key.text) == 0) {
        use_built(executor->last, prepared, n);
        buf_release(&source);
        buf_release(&key);
        return DEV_OK;
    }
    if (n == 1)
        job_names(prepared[0]->job, prepared[0]->arena, &text);
    DeviceStatus status = executor->compiles
                              ? kind->compile(executor->held.device, &text, log)
                              : kind->build(executor->held.device, &text, &module, log);
    buf_release(&source);
    if (status == DEV_OK) {
        Built *built = xmalloc(sizeof *built);
        *built = (Built){module, 0, xstrdup(key.text)};
        use_built(built, prepared, n);
        if (known) {
            drop_built(executor, executor->last);
            executor->last = built;
            built->users++;
        }
    }
    buf_release(&key);
    return status;
}

// A group that no kernel of the device can have need not be compiled.
static bool can_launch(const Executor *executor, const JobLaunch *launch)
{
    int64_t group = 1;
    for (int i = 0; i < 3; i++) {
        if (launch->local[i] > executor->info->max_item[i])
            return false;
        group *= launch->local[i];
    }
    return group <= executor->info->max_group;
}

static void build_alone(Executor *executor, PreparedJob *prepared)
{
    double start = clock_s();
    for (int i = 0; i < prepared->job->nlaunch; i++)
        if (!can_launch(executor, &prepared->job->launch[i])) {
            buf_printf(&prepared->log, "%s: a group larger than the device allows\n",
                       prepared->job->launch[i].kernel);
            prepared->trial.status = TRIAL_OUT_OF_RESOURCES;
            return;
        }
    prepared->trial.status = status_of[build(executor, &prepared, 1, &prepared->log)];
    prepared->trial.build_s += clock_s() - start;
}

static bool build_jointly(Executor *executor, PreparedJob **prepared, int n)
{
    double start = clock_s();
    Buf ignored; // each says for itself what is wrong with it
    ignored = buf_new();
    bool ok = build(executor, prepared, n, &ignored) == DEV_OK;
    for (int i = 0; i < n; i++)
        prepared[i]->trial.build_s += (clock_s() - start) / n;
    buf_release(&ignored);
    return ok;
}

static bool can_share(const PreparedJob *a, const PreparedJob *b)
{
    return !a->job->named && !b->job->named &&
           strcmp(a->job->prelude, b->job->prelude) == 0 &&
           strcmp(a->job->options, b->job->options) == 0;
}

int executor_joint(PreparedJob *const *prepared, int n)
{
    int len = 1;
    while (len < n && can_share(prepared[0], prepared[len]))
        len++;
    return len;
}

void executor_build(Executor *executor, PreparedJob **prepared, int n, ExecutorTell *tell,
                    void *user)
{
    if (n > 1) {
        tell(user, "build", JOINT_BUILD);
        if (build_jointly(executor, prepared, n))
            return;
    }
    for (int k = 0; k < n; k++) {
        tell(user, "build", prepared[k]->number);
        build_alone(executor, prepared[k]);
    }
}

// Launching ---------------------------------------------------------------------------

static Mem *mem_of(const Executor *executor, const PreparedJob *prepared, int buffer)
{
    return buffer < executor->held.n ? executor->held.at[buffer].mem
                                     : prepared->scratch[buffer - executor->held.n].mem;
}

// A buffer as an image, the same one for all launches; NULL with a log where the device
// has no such images.
static Mem *view_of(const Executor *executor, PreparedJob *prepared, const JobArg *arg)
{
    for (int i = 0; i < prepared->views.len; i++)
        if (prepared->views.at[i].buffer == arg->buffer)
            return prepared->views.at[i].mem;
    int bytes = (int)scalar_device_bytes(arg->scalar);
    int64_t count =
        arg->buffer < executor->held.n
            ? executor->held.at[arg->buffer].count
            : prepared->job->scratch_bytes[arg->buffer - executor->held.n] / bytes;
    ImageShape shape = {.dims = 1,
                        .size = {count, 1, 1},
                        .channels = 1,
                        .bytes = bytes,
                        .kind = arg->scalar == S_INT ? 'i' : 'f'};
    Mem *view = NULL;
    if (executor->held.kind->view_new)
        view = executor->held.kind->view_new(executor->held.device,
                                             mem_of(executor, prepared, arg->buffer),
                                             &shape, &prepared->log);
    else
        buf_printf(&prepared->log, "%s devices read no images\n",
                   executor->held.kind->name);
    if (view)
        VEC_PUSH(prepared->arena, &prepared->views, ((BufferView){arg->buffer, view}));
    else
        prepared->trial.status = TRIAL_OUT_OF_RESOURCES;
    return view;
}

static size_t bytes_of(const Executor *executor, const PreparedJob *prepared, int buffer)
{
    return buffer < executor->held.n ? executor->held.at[buffer].bytes
                                     : prepared->scratch[buffer - executor->held.n].bytes;
}

static DeviceArg device_arg(const Executor *executor, PreparedJob *prepared,
                            const JobArg *arg)
{
    if (arg->kind == ARG_BUFFER)
        return (DeviceArg){.mem = mem_of(executor, prepared, arg->buffer)};
    if (arg->kind == ARG_VALUE) {
        static const double zero = 0; // of inputs that hold nothing yet
        const void *init = executor->held.at[arg->buffer].init;
        return (DeviceArg){.data = init ? init : &zero,
                           .bytes = scalar_device_bytes(arg->scalar)};
    }
    if (arg->kind == ARG_IMAGE)
        return (DeviceArg){.mem = view_of(executor, prepared, arg)};
    if (arg->kind == ARG_SYMBOL)
        return (DeviceArg){.mem = mem_of(executor, prepared, arg->buffer),
                           .bytes = bytes_of(executor, prepared, arg->buffer),
                           .symbol = job_symbol(arg, prepared->arena)};
    if (arg->kind == ARG_BITS || arg->kind == ARG_LOCAL)
        return (DeviceArg){.data = arg->bits, .bytes = (size_t)arg->buffer};
    Scalar scalar = arg->kind == ARG_INT ? S_INT : arg->scalar;
    double value = arg->kind == ARG_INT ? (double)arg->number : arg->value;
    void *data = arena_alloc(prepared->arena, sizeof(double));
    scalar_pack(scalar, &value, 1, data);
    return (DeviceArg){.data = data, .bytes = scalar_device_bytes(scalar)};
}

static DeviceLaunch device_launch(const Executor *executor, PreparedJob *prepared,
                                  const JobLaunch *from)
{
    DeviceArg *arg = NEW_ARRAY(prepared->arena, DeviceArg, from->narg);
    for (int i = 0; i < from->narg; i++)
        arg[i] = device_arg(executor, prepared, &from->arg[i]);
    return job_launch(from, arg);
}

static bool is_passed(const Job *job, int buffer)
{
    for (int i = 0; i < job->nlaunch; i++)
        ARRAY_EACH_REF(const JobArg *, arg, job->launch[i].arg, job->launch[i].narg)
            if (job_reads(arg) && arg->buffer == buffer)
                return true;
    return false;
}

// Inputs that the job is not passed are no affair of its.
static void find_used(Executor *executor, PreparedJob *prepared)
{
    const Job *job = prepared->job;
    prepared->used =
        NEW_ARRAY(prepared->arena, DeviceBuffer *, executor->held.n + job->nscratch);
    prepared->nused = 0;
    for (int i = 0; i < executor->held.n; i++)
        if (!buffer_is_input(&executor->held.at[i]) || is_passed(job, i))
            prepared->used[prepared->nused++] = &executor->held.at[i];
    for (int i = 0; i < job->nscratch; i++)
        prepared->used[prepared->nused++] = &prepared->scratch[i];
}

// The scratch buffers and the launches that use them; false with a trial that says why.
static bool set_up(Executor *executor, PreparedJob *prepared)
{
    const Job *job = prepared->job;
    prepared->scratch = NEW_ARRAY(prepared->arena, DeviceBuffer, job->nscratch);
    for (int i = 0; i < job->nscratch; i++)
        if (!buffer_scratch(&executor->held, i, (size_t)job->scratch_bytes[i],
                            &prepared->scratch[i], &prepared->log)) {
            prepared->trial.status = TRIAL_OUT_OF_RESOURCES;
            return false;
        }
    find_used(executor, prepared);
    prepared->launch = NEW_ARRAY(prepared->arena, DeviceLaunch, job->nlaunch);
    for (int i = 0; i < job->nlaunch; i++)
        prepared->launch[i] = device_launch(executor, prepared, &job->launch[i]);
    return prepared->trial.status == TRIAL_OK;
}

static void take_down(Executor *executor, PreparedJob *prepared)
{
    for (int i = 0; i < prepared->views.len; i++)
        executor->held.kind->mem_free(executor->held.device, prepared->views.at[i].mem);
    prepared->views.len = 0;
    for (int i = 0; i < prepared->job->nscratch; i++)
        buffer_free(&executor->held, &prepared->scratch[i]);
    prepared->scratch = NULL;
    prepared->launch = NULL;
}

static DeviceStatus run(Executor *executor, PreparedJob *prepared, double *time_ns)
{
    DeviceStatus status = executor->held.kind->run(
        executor->held.device, prepared->built->module, prepared->launch,
        prepared->job->nlaunch, time_ns, &prepared->log);
    executor->sick |= status == DEV_FAILED;
    return status;
}

// Checking ----------------------------------------------------------------------------

static DeviceStatus guard(Executor *executor, PreparedJob *prepared, Poison poison)
{
    return buffers_guard(&executor->held, prepared->used, prepared->nused, poison,
                         &prepared->log);
}

static DeviceStatus reset(Executor *executor, PreparedJob *prepared, Poison poison)
{
    return buffers_reset(&executor->held, prepared->used, prepared->nused, poison,
                         &prepared->log);
}

// What the problem's own judge says of a run that is right as far as others can tell.
static DeviceStatus ask_judge(Executor *executor, Verdict *verdict, Buf *log)
{
    int answer = 0;
    DeviceStatus status = DEV_OK;
    if (executor->judge && verdict->right)
        status = judge_ask(executor->judge, &executor->held, &answer, log);
    if (answer != 0) {
        verdict->right = false;
        buf_printf(&verdict->why, "the problem's judge says %d\n", answer);
    }
    return status;
}

// Judges the last run, which began with this poison; when: said of what is wrong.
static DeviceStatus judge(Executor *executor, PreparedJob *prepared, Poison poison,
                          const char *when)
{
    Verdict verdict;
    double start = clock_s();
    verdict.why = buf_new();
    DeviceStatus status = buffers_judge(&executor->held, prepared->used, prepared->nused,
                                        poison, &verdict, &prepared->log);
    if (status == DEV_OK)
        status = ask_judge(executor, &verdict, &prepared->log);
    prepared->trial.status = status_of[status];
    prepared->trial.max_error = MAX(prepared->trial.max_error, verdict.max_error);
    if (status == DEV_OK && !verdict.right) {
        prepared->trial.status = TRIAL_WRONG_RESULT;
        buf_puts(&prepared->log, when);
        buf_write(&prepared->log, verdict.why.text, verdict.why.len);
    }
    buf_release(&verdict.why);
    prepared->trial.check_s += clock_s() - start;
    return status;
}

// One run on buffers that are as they are before a run. The device compiles as late as the
// first run: the time beyond the kernels' own is counted as building.
static DeviceStatus run_fresh(Executor *executor, PreparedJob *prepared, Poison poison)
{
    double start = clock_s(), time_ns = 0;
    DeviceStatus status = guard(executor, prepared, poison);
    if (status == DEV_OK)
        status = reset(executor, prepared, poison);
    if (status == DEV_OK) {
        double before = clock_s();
        status = run(executor, prepared, &time_ns);
        double late = clock_s() - before - time_ns * 1e-9;
        prepared->checked_ns = time_ns;
        prepared->trial.build_s += MAX(late, 0);
        start += MAX(late, 0);
    }
    prepared->trial.status = status_of[status];
    prepared->trial.check_s += clock_s() - start;
    return status;
}

void executor_check(Executor *executor, PreparedJob *prepared, ExecutorTell *tell,
                    void *user)
{
    if (set_up(executor, prepared)) {
        tell(user, "run", prepared->number);
        if (run_fresh(executor, prepared, POISON_FIRST) == DEV_OK)
            judge(executor, prepared, POISON_FIRST, "");
    }
    take_down(executor, prepared);
}

// Timing ------------------------------------------------------------------------------

typedef struct {
    Executor *executor;
    PreparedJob *prepared;
} TimedRun;

// Each run finds what the first found, and cannot live on what another left.
static DeviceStatus timed_run(void *user, double *time_ns, double *used_ns)
{
    TimedRun *timed = user;
    DeviceStatus status = reset(timed->executor, timed->prepared, POISON_AGAIN);
    if (status != DEV_OK)
        return status;
    int64_t before = clock_processor_ns();
    status = run(timed->executor, timed->prepared, time_ns);
    *used_ns = (double)(clock_processor_ns() - before);
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
static double cores_in_use(const Executor *executor, const Job *job)
{
    double used = executor->info->compute_units;
    // Under a limit on processor time Linux counts it in whole ticks: short runs take none.
    struct rlimit limit;
    bool ticks = getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    if (!executor->info->is_cpu || ticks)
        return 0;
    if (language_is(executor->info->target, LANGUAGE_C))
        return 1;
    for (int i = 0; i < job->nlaunch; i++)
        used = MIN(used, cores_used(&job->launch[i], executor->info->compute_units));
    return used;
}

static bool write_file(const char *path, const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && file_put(fd, bytes, len);
    return fd >= 0 && close(fd) == 0 && ok;
}

// An array that the controller has mapped, as a file that is there: NULL, it is none.
static void *map_array(const char *path, size_t bytes)
{
    struct stat about;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool is_there = fd >= 0 && bytes > 0 && fstat(fd, &about) == 0 &&
                    S_ISREG(about.st_mode) && (size_t)about.st_size >= bytes;
    void *at = is_there ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                        : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

static DeviceStatus write_output(const DeviceBuffers *held, const DeviceBuffer *b,
                                 const char *path, Buf *log)
{
    void *array = map_array(path, b->bytes);
    if (array) {
        DeviceStatus status = held->kind->read(held->device, b->mem, array, b->bytes, log);
        munmap(array, b->bytes);
        return status;
    }
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
static void write_outputs(Executor *executor, PreparedJob *prepared, const json_t *options)
{
    const json_t *paths = json_object_get(options, "out");
    for (int i = 0; i < executor->held.n && prepared->trial.status == TRIAL_OK; i++) {
        const char *path = json_string_value(json_array_get(paths, (size_t)i));
        if (path)
            prepared->trial.status = status_of[write_output(
                &executor->held, &executor->held.at[i], path, &prepared->log)];
    }
}

static const char again[] = "run again, on outputs that held something else (what a kernel "
                            "reads needs access inout, in T1 ReadWrite):\n";

static void judge_again(Executor *executor, PreparedJob *prepared, const json_t *options)
{
    if (judge(executor, prepared, POISON_AGAIN, again) == DEV_OK)
        write_outputs(executor, prepared, options);
    if (prepared->trial.status != TRIAL_OK) {
        prepared->trial.time_ns = INFINITY;
        prepared->trial.nsample = 0;
    }
}

static bool is_compared(const Executor *executor)
{
    for (int i = 0; i < executor->held.n; i++)
        if (executor->held.at[i].expect)
            return true;
    return false;
}

// Where nothing is expected one run is enough, and the outputs are still what it left.
static void compute_again(Executor *executor, PreparedJob *prepared, const json_t *options)
{
    Trial *trial = &prepared->trial;
    trial->nsample = 1;
    trial->time_ns = trial->sample_ns[0] = prepared->checked_ns;
    if (!is_compared(executor))
        write_outputs(executor, prepared, options);
    else if (run_fresh(executor, prepared, POISON_AGAIN) == DEV_OK)
        judge_again(executor, prepared, options);
    if (trial->status != TRIAL_OK)
        trial->time_ns = INFINITY;
}

// What is told besides ----------------------------------------------------------------

static void tell_most(Measures *m, Measure what, int value)
{
    if (value >= 0 && !(measure_of(m, what) >= value))
        measure_tell(m, what, value);
}

static void tell_usage(Executor *executor, PreparedJob *prepared)
{
    const DeviceKind *kind = executor->held.kind;
    Measures *m = &prepared->trial.measures;
    for (int i = 0; kind->usage && i < prepared->job->nlaunch; i++) {
        const DeviceLaunch *launch = &prepared->launch[i];
        KernelUsage usage;
        kind->usage(executor->held.device, prepared->built->module, launch->kernel, &usage);
        tell_most(m, MEASURE_REGISTERS, usage.registers);
        tell_most(m, MEASURE_SPILLED, usage.spilled);
        if (usage.local_bytes >= 0)
            tell_most(m, MEASURE_SHARED, usage.local_bytes + (int)launch->local_bytes);
    }
}

// The runs that are counted: many in one queue. If a job changes its inputs, they are
// restored before each run, and the time of restoring is measured apart.
typedef struct {
    Executor *executor;
    PreparedJob *prepared;
    DeviceLaunch *launch; // of as many runs as there are between two looks at the counter
    bool restores, idle;  // idle: it restores and does nothing else
} QueuedWork;

// What restores does so before each run; else all runs are one queue.
static bool work(void *user, int runs)
{
    const QueuedWork *w = user;
    const int n = w->prepared->job->nlaunch, queued = w->restores ? 1 : runs;
    const DeviceBuffers *held = &w->executor->held;
    Buf unsaid;
    double time_ns;
    bool ok = true;
    unsaid = buf_new();
    for (int i = 0; ok && i < runs; i += queued)
        ok =
            (!w->restores || reset(w->executor, w->prepared, POISON_AGAIN) == DEV_OK) &&
            (w->idle || held->kind->run(held->device, w->prepared->built->module, w->launch,
                                        n * queued, &time_ns, &unsaid) == DEV_OK);
    buf_release(&unsaid);
    return ok;
}

static bool read_energy(void *user, double *joules)
{
    const QueuedWork *w = user;
    return w->executor->held.kind->energy(w->executor->held.device, joules);
}

static bool restores(const PreparedJob *prepared)
{
    for (int i = 0; i < prepared->nused; i++)
        if (prepared->used[i]->inout)
            return true;
    return false;
}

static void tell_energy(Executor *executor, PreparedJob *prepared)
{
    // To read the counter takes milliseconds, in which nothing runs.
    enum { LAUNCHES_MOST = 4096 };
    static const double BATCH_NS = 5e7;
    const int n = prepared->job->nlaunch;
    QueuedWork w = {
        .executor = executor, .prepared = prepared, .restores = restores(prepared)};
    double fits = fmin(BATCH_NS / prepared->trial.time_ns, (double)LAUNCHES_MOST / n);
    Meter meter = {work, read_energy, &w, (int)fmax(fits, 1)};
    double joules, seconds, idle[2] = {0};
    if (!executor->held.kind->energy)
        return;
    w.launch = NEW_ARRAY(prepared->arena, DeviceLaunch, n * meter.batch);
    for (int i = 0; i < n * meter.batch; i++)
        w.launch[i] = prepared->launch[i % n];
    if (!energy_take(&meter, &joules, &seconds))
        return;
    w.idle = true;
    if (w.restores && energy_take(&meter, &idle[0], &idle[1]) &&
        (idle[0] >= joules || idle[1] >= seconds))
        return; // too little to be told from what restoring takes
    measure_tell(&prepared->trial.measures, MEASURE_ENERGY, joules - idle[0]);
    measure_tell(&prepared->trial.measures, MEASURE_POWER,
                 (joules - idle[0]) / (seconds - idle[1]));
}

static void tell(Executor *executor, PreparedJob *prepared, const json_t *options)
{
    tell_usage(executor, prepared);
    if (json_is_true(json_object_get(options, "energy")) && !prepared->trial.cut)
        tell_energy(executor, prepared);
}

static void time_piece(Executor *executor, PreparedJob *prepared, const json_t *options)
{
    TimedRun timed = {executor, prepared};
    Sampler sampler = {
        .run = timed_run,
        .user = &timed,
        .wanted = (int)json_int_of(options, "samples", 5),
        .cores_in_use = cores_in_use(executor, prepared->job),
        .cutoff_ns = json_number_of(options, "cutoff_ns", INFINITY),
        .limit_s = json_number_of(options, "limit_s", INFINITY),
    };
    DeviceStatus status = guard(executor, prepared, POISON_AGAIN);
    if (status == DEV_OK)
        status = sample_take(&sampler, &prepared->trial);
    prepared->trial.status = status_of[status];
    if (status == DEV_OK)
        judge_again(executor, prepared, options);
    else
        prepared->trial.time_ns = INFINITY;
    if (prepared->trial.status == TRIAL_OK)
        tell(executor, prepared, options);
}

// So slow a checked run, with the device to itself, says enough.
static bool is_hopeless(PreparedJob *prepared, const json_t *options)
{
    double cutoff_ns = json_number_of(options, "cutoff_ns", INFINITY);
    Trial *trial = &prepared->trial;
    if (!json_is_true(json_object_get(options, "alone")) ||
        !(prepared->checked_ns > HOPELESS * cutoff_ns))
        return false;
    trial->cut = true;
    trial->nsample = 1;
    trial->time_ns = trial->sample_ns[0] = prepared->checked_ns;
    return true;
}

void executor_time(Executor *executor, PreparedJob *prepared, const json_t *options)
{
    if (is_hopeless(prepared, options))
        return;
    bool timed = json_int_of(options, "samples", 5) > 0;
    if (set_up(executor, prepared))
        (timed ? time_piece : compute_again)(executor, prepared, options);
    take_down(executor, prepared);
}
