// SPDX-License-Identifier: Apache-2.0
//
// Measuring: layouts, comparison and sampling by themselves; then whole runners with jobs
// that are right, wrong, do not compile, do not fit, crash and hang. This program is its
// own worker.
#include "measure/parts.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

// Runners --------------------------------------------------------------------------------

enum { N = 4096, BATCH = 30 };

typedef struct {
    char folder[64];
    float x[N], y[N], z[N];
    RunnerBuffer buffer[3];
    RunnerConfig config;
    Arena *arena;
    Diags diags;
    Trial trial[BATCH];
    int done;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/forewarp-test-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    for (int i = 0; i < N; i++) {
        f->x[i] = 0.5f + (float)(i % 100) * 0.01f;
        f->y[i] = 1.0f + (float)(i % 7);
        f->z[i] = 2.0f * f->x[i] + f->y[i];
    }
    f->buffer[0] = (RunnerBuffer){
        .name = "x", .scalar = S_FLOAT, .count = N, .init = f->x, .expect = NULL};
    f->buffer[1] = (RunnerBuffer){
        .name = "y", .scalar = S_FLOAT, .count = N, .init = f->y, .expect = NULL};
    f->buffer[2] = (RunnerBuffer){
        .name = "z", .scalar = S_FLOAT, .count = N, .init = NULL, .expect = f->z};
    f->config = (RunnerConfig){.device = "opencl:0",
                               .folder = f->folder,
                               .nbuffer = 3,
                               .buffer = f->buffer,
                               .tolerance = 1e-5,
                               .build_limit_s = 20,
                               .run_limit_s = 10};
    f->arena = arena_new();
    f->diags = (Diags){.arena = f->arena};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    for (int i = 0; i < BATCH; i++)
        trial_release(&f->trial[i]);
    remove_tree(f->folder);
    arena_free(f->arena);
    free(f);
    return 0;
}

static double keep(void *user, int job, Trial *trial)
{
    Fixture *f = user;
    trial_release(&f->trial[job]);
    f->trial[job] = *trial;
    trial->log = NULL;
    f->done++;
    return INFINITY;
}

// A job `kernel NAME(x, y, z, n, a) { body }`, with i the work-item's number.
static Job make_job(Fixture *f, int number, const char *body, int local)
{
    JobArg *arg = NEW_ARRAY(f->arena, JobArg, 6);
    for (int i = 0; i < 3; i++)
        arg[i] = (JobArg){.kind = ARG_BUFFER, .buffer = i};
    arg[3] = (JobArg){.kind = ARG_INT, .number = N};
    arg[4] = (JobArg){.kind = ARG_SCALAR, .scalar = S_FLOAT, .value = 2};
    arg[5] = (JobArg){.kind = ARG_BUFFER, .buffer = 3};
    int64_t *scratch = NEW(f->arena, int64_t);
    *scratch = N * 4;
    JobLaunch *launch = NEW(f->arena, JobLaunch);
    *launch = (JobLaunch){arena_printf(f->arena, "k%d", number),
                          {local > N ? local : N, 1, 1},
                          {local, 1, 1},
                          0,
                          6,
                          arg};
    const char *source = arena_printf(
        f->arena,
        "kernel void k%d(global const float *x, global const float *y, global float *z,\n"
        "                int n, float a, global float *t)\n"
        "{ int i = get_global_id(0); %s }\n",
        number, body);
    return (Job){"float times(float a, float b) { return a * b; }\n",
                 source,
                 "",
                 1,
                 scratch,
                 1,
                 launch,
                 false};
}

static const char *const right = "z[i] = times(a, x[i]) + y[i];";
static const char *const crash = "z[i + ((long)n << 30)] = a;";
static const char *const hang =
    "volatile global float *v = z; while (v[0] != 77) v[i] = times(a, x[i]);";

// Asked of a worker: this process is a controller, and touches no device.
static bool no_opencl(void)
{
    Arena *arena = arena_new();
    Diags diags;
    DeviceInfo *info;
    diags = (Diags){.arena = arena};
    int n = devices_list(arena, NULL, NULL, &info, &diags), found = 0;
    for (int i = 0; i < n; i++)
        found += strncmp(info[i].id, "opencl:", 7) == 0;
    arena_free(arena);
    return found == 0;
}

static Runner *open_runner(Fixture *f)
{
    Runner *runner = runner_open(&f->config, &f->diags);
    if (!runner && f->diags.list.len)
        print_message("%s\n", f->diags.list.at[0].message);
    assert_non_null(runner);
    return runner;
}

static void expect_status(const Fixture *f, int job, TrialStatus status)
{
    const Trial *trial = &f->trial[job];
    if (trial->status != status)
        print_message("job %d is %s: %s\n", job, trial_status_name[trial->status],
                      trial->log ? trial->log : "");
    assert_int_equal(trial->status, status);
    if (status == TRIAL_OK)
        assert_true(isfinite(trial->time_ns) && trial->time_ns > 0 && trial->nsample > 0);
    else
        assert_true(isinf(trial->time_ns) && trial->log && *trial->log);
}

static void test_verdicts(void **state)
{
    Fixture *f = *state;
    if (no_opencl())
        skip();
    Runner *runner = open_runner(f);
    assert_string_equal(runner_device(runner)->id, "opencl:0");
    assert_true(runner_batch(runner) >= 1);
    int large = 2 * (int)runner_device(runner)->max_group;
    Job job[] = {
        make_job(f, 0, right, 64),
        make_job(f, 1, "z[i] = a * x[i] + y[i] + (i == 17);", 64),
        make_job(f, 2, "z[i] = nothing here;", 64),
        make_job(f, 3, right, large),
        make_job(f, 4,
                 "local float s[1 << 20]; s[get_local_id(0)] = x[i];\n"
                 "barrier(CLK_LOCAL_MEM_FENCE); z[i] = a * s[get_local_id(0)] + y[i];",
                 64),
        make_job(f, 5, "if (i != n - 1) z[i] = a * x[i] + y[i];", 64),
        make_job(f, 6, "t[i] = a * x[i]; z[i] = t[i] + y[i];", 64),
        make_job(f, 7, right, 100),
        // One that spoils an input, and the next, which is given it anew.
        make_job(f, 8, "z[i] = a * x[i] + y[i]; ((global float *)x)[i] = -1;", 64),
        make_job(f, 9, right, 64),
    };
    assert_true(runner_run(runner, job, COUNTOF(job), INFINITY, keep, f, &f->diags));
    assert_int_equal(f->done, COUNTOF(job));
    expect_status(f, 0, TRIAL_OK);
    assert_true(f->trial[0].nsample == 5 && f->trial[0].max_error < 1e-5);
    assert_true(f->trial[0].build_s > 0 && f->trial[0].timing_s > 0);
    expect_status(f, 1, TRIAL_WRONG_RESULT);
    assert_non_null(strstr(f->trial[1].log, "z: element 17 "));
    expect_status(f, 2, TRIAL_BUILD_FAILED);
    assert_non_null(strstr(f->trial[2].log, "nothing"));
    expect_status(f, 3, TRIAL_OUT_OF_RESOURCES);
    if (runner_device(runner)->local_bytes < 4 << 20)
        expect_status(f, 4, TRIAL_OUT_OF_RESOURCES);
    expect_status(f, 5, TRIAL_WRONG_RESULT); // the poison shows
    expect_status(f, 6, TRIAL_OK);
    expect_status(f, 7, TRIAL_OUT_OF_RESOURCES);
    expect_status(f, 8, TRIAL_WRONG_RESULT);
    assert_non_null(strstr(f->trial[8].log, "writes into the input `x`: element 0"));
    expect_status(f, 9, TRIAL_OK);
    runner_close(runner);
}

static void test_batch(void **state)
{
    Fixture *f = *state;
    Job job[BATCH];
    if (no_opencl())
        skip();
    f->config.run_limit_s = 2;
    Runner *runner = open_runner(f);
    // A GPU's driver survives what ends a CPU's process.
    TrialStatus fault = runner_device(runner)->is_cpu ? TRIAL_CRASHED : TRIAL_FAILED;
    for (int i = 0; i < BATCH; i++)
        job[i] = make_job(f, i,
                          i == 4    ? "z[i] = oops;"
                          : i == 11 ? crash
                          : i == 23 ? hang
                                    : right,
                          32 << i % 4);
    assert_true(runner_run(runner, job, BATCH, INFINITY, keep, f, &f->diags));
    assert_int_equal(f->done, BATCH);
    for (int i = 0; i < BATCH; i++)
        expect_status(f, i,
                      i == 4    ? TRIAL_BUILD_FAILED
                      : i == 11 ? fault
                      : i == 23 ? TRIAL_TIMED_OUT
                                : TRIAL_OK);
    if (fault == TRIAL_CRASHED)
        assert_non_null(strstr(f->trial[11].log, "while running"));
    runner_close(runner);
}

static double lower(void *user, int job, Trial *trial)
{
    return keep(user, job, trial), 1.0;
}

static void test_cutoff(void **state)
{
    Fixture *f = *state;
    if (no_opencl())
        skip();
    f->config.batch = 2;
    Runner *runner = open_runner(f);
    Job job[] = {make_job(f, 0, right, 64), make_job(f, 1, right, 64)};
    assert_true(runner_run(runner, job, 2, INFINITY, lower, f, &f->diags));
    expect_status(f, 0, TRIAL_OK);
    expect_status(f, 1, TRIAL_OK);
    assert_false(f->trial[0].cut);
    assert_true(f->trial[1].cut && f->trial[1].nsample == 1);
    runner_close(runner);
}

// Timed with that many samples; with none, computed in one run.
static void run_for_outputs(Fixture *f, Runner *runner, const Job *job, int samples)
{
    float *z = xcalloc(N, sizeof *z);
    void *out[] = {NULL, NULL, z};
    Trial trial;
    assert_true(samples ? runner_run_one(runner, job, samples, &trial, out, &f->diags)
                        : runner_compute(runner, job, &trial, out, &f->diags));
    f->trial[0] = trial;
    expect_status(f, 0, TRIAL_OK);
    assert_true(samples ? trial.nsample >= samples : trial.nsample == 1);
    assert_true(trial.time_ns > 0 && trial.time_ns < INFINITY);
    for (int i = 0; i < N; i++)
        assert_true(fabsf(z[i] - f->z[i]) <= 1e-5f * f->z[i]);
    free(z);
}

static void check_run_one(Fixture *f, Runner *runner, const Job *job)
{
    run_for_outputs(f, runner, job, 12);
    trial_release(&f->trial[0]);
    run_for_outputs(f, runner, job, 0);
}

// Children of this process, taken from /proc: workers of an open runner.
static int find_workers(pid_t *pid, int most)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int n = 0;
    while (dir && (entry = readdir(dir)) && n < most) {
        char path[64], line[256];
        int id = atoi(entry->d_name), parent = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", id);
        FILE *file = id > 0 ? fopen(path, "re") : NULL;
        if (file && fgets(line, sizeof line, file) &&
            sscanf(strrchr(line, ')') + 1, " %*c %d", &parent) == 1 && parent == getpid())
            pid[n++] = id;
        if (file)
            fclose(file);
    }
    if (dir)
        closedir(dir);
    return n;
}

typedef struct {
    Fixture *f;
    const Job *job;
    pid_t worker[BATCH]; // there when the trial was done
} Watch;

static const Job *next_watched(void *user, int number)
{
    const Watch *watch = user;
    return number < BATCH ? &watch->job[number] : NULL;
}

static double keep_watched(void *user, int job, Trial *trial)
{
    Watch *watch = user;
    pid_t pid[16];
    assert_int_equal(find_workers(pid, 16), 1);
    watch->worker[job] = pid[0];
    return keep(watch->f, job, trial);
}

// A worker that has built its number of jobs is replaced, but not while it holds some that
// are to be timed; nothing is lost by it, and nothing is told of it.
static void test_worn_worker(void **state)
{
    Fixture *f = *state;
    enum { FIRST = 24 }; // given in two parts, as more than are built as one
    Job job[BATCH];
    Watch watch = {.f = f, .job = job};
    if (no_opencl())
        skip();
    f->config.workers = 1;
    f->config.batch = FIRST;
    f->config.builds = 5;
    for (int i = 0; i < BATCH; i++)
        job[i] = make_job(f, i, right, 64);
    Runner *runner = open_runner(f);
    assert_true(
        runner_stream(runner, next_watched, INFINITY, keep_watched, &watch, &f->diags));
    runner_close(runner);
    assert_int_equal(f->done, BATCH);
    assert_int_equal(f->diags.list.len, 0);
    for (int i = 0; i < BATCH; i++) {
        expect_status(f, i, TRIAL_OK);
        assert_int_equal(watch.worker[i], watch.worker[i < FIRST ? 0 : FIRST]);
    }
    assert_int_not_equal(watch.worker[0], watch.worker[FIRST]);
}

static Job host_job(Fixture *f, const char *body)
{
    Job job = make_job(f, 0, right, 64);
    job.source = arena_printf(
        f->arena,
        "void k0_entry(void *const *arg)\n"
        "{ const float *x = arg[0], *y = arg[1]; float *z = arg[2];\n"
        "  int n = *(int *)arg[3]; float a = *(float *)arg[4];\n"
        "  _Pragma(\"omp parallel for\") for (int i = 0; i < n; i++) { %s } }\n",
        body);
    return job;
}

static void test_host(void **state)
{
    Fixture *f = *state;
    f->config.device = "host";
    Runner *runner = open_runner(f);
    Job job = host_job(f, right), broken = host_job(f, "z[i] = oops;");
    Job bad = host_job(f, "z[(long)i << 40] = a;");
    check_run_one(f, runner, &job);
    trial_release(&f->trial[0]);
    assert_true(runner_run(runner, &broken, 1, INFINITY, keep, f, &f->diags));
    expect_status(f, 0, TRIAL_BUILD_FAILED);
    assert_non_null(strstr(f->trial[0].log, "oops"));
    assert_true(runner_run(runner, &bad, 1, INFINITY, keep, f, &f->diags));
    expect_status(f, 0, TRIAL_CRASHED);
    trial_release(&f->trial[0]);
    check_run_one(f, runner, &job);
    runner_close(runner);
}

// Trouble from outside ----------------------------------------------------------------

// Killed with nothing to do: no job is to blame.
static void test_killed_idle(void **state)
{
    Fixture *f = *state;
    f->config.device = "host";
    Runner *runner = open_runner(f);
    Job good = host_job(f, right);
    pid_t pid[16];
    check_run_one(f, runner, &good);
    assert_int_equal(find_workers(pid, 16), 1);
    kill(pid[0], SIGKILL);
    trial_release(&f->trial[0]);
    check_run_one(f, runner, &good);
    runner_close(runner);
    assert_int_equal(find_workers(pid, 16), 0);
}

// A job for the host that does something before its work: each time, or only in the first
// process that runs it.
static Job troubled(Fixture *f, const char *trouble, bool once)
{
    Job job = host_job(f, right);
    job.source = arena_printf(
        f->arena,
        "extern int open(const char *, int, ...), getpid(void), kill(int, int);\n"
        "extern int usleep(unsigned);\n"
        "%s\nvoid k0_entry(void *const *arg)\n"
        "{ if (!%d || open(\"%s/marker\", 0301, 0600) >= 0) { %s } base_entry(arg); }\n",
        arena_printf(f->arena, "#define k0_entry base_entry\n%s\n#undef k0_entry",
                     job.source),
        once, f->folder, trouble);
    return job;
}

static void run_troubled(Fixture *f, const char *trouble, bool once, TrialStatus status)
{
    Runner *runner = open_runner(f);
    Job job = troubled(f, trouble, once);
    trial_release(&f->trial[0]);
    f->done = 0;
    assert_true(runner_run(runner, &job, 1, INFINITY, keep, f, &f->diags));
    assert_int_equal(f->done, 1);
    expect_status(f, 0, status);
    runner_close(runner);
}

static const char killed[] = "kill(getpid(), 9);", stopped[] = "kill(getpid(), 19);",
                  spins[] = "for (volatile int i = 0; ; i++) ;";

// What somebody did to a job once does not count; what is done to it each time is no fact.
static void test_killed_job(void **state)
{
    Fixture *f = *state;
    f->config.device = "host";
    run_troubled(f, killed, true, TRIAL_OK);
    run_troubled(f, killed, false, TRIAL_CRASHED);
    assert_true(f->trial[0].outside);
    assert_non_null(strstr(f->trial[0].log, "signal 9"));
    run_troubled(f, "*(volatile int *)8 = 1;", false, TRIAL_CRASHED);
    assert_false(f->trial[0].outside);
}

// A limit is one of the time that a job works. One that does not work is ended as well,
// long after, and is tried again.
static void test_time_is_work(void **state)
{
    Fixture *f = *state;
    f->config.device = "host";
    f->config.run_limit_s = 0.3;
    run_troubled(f, "usleep(900000);", true, TRIAL_OK);
    assert_true(f->trial[0].check_s > 0.9); // the first attempt
    run_troubled(f, stopped, true, TRIAL_OK);
    run_troubled(f, spins, false, TRIAL_TIMED_OUT);
    assert_true(f->trial[0].limit_s == 0.3 && !f->trial[0].outside);
    assert_non_null(strstr(f->trial[0].log, "limit of 0.3 s while running"));
}

// A compiler that does as the script says before it compiles, but for its version; the
// script knows the folder as F.
static void play_compiler(Fixture *f, const char *script)
{
    const char *path = arena_printf(f->arena, "%s/compiler", f->folder);
    const char *text = arena_printf(
        f->arena,
        "#!/bin/sh\nF=%s\ncase $1 in --version) ;; *) %s ;; esac\nexec cc \"$@\"\n",
        f->folder, script);
    assert_true(file_write(path, text, strlen(text)));
    assert_int_equal(chmod(path, 0700), 0);
    setenv("CC", path, 1);
    f->config.device = "host";
}

static void test_full_disk(void **state)
{
    Fixture *f = *state;
    play_compiler(f, "[ -e $F/marker ] || { : >$F/marker; echo 'x.s: No space left on "
                     "device'; exit 1; }");
    run_troubled(f, "", false, TRIAL_OK);
    play_compiler(f, "echo 'x.s: No space left on device'; exit 1");
    run_troubled(f, "", false, TRIAL_BUILD_FAILED);
    assert_true(f->trial[0].outside);
    play_compiler(f, "kill -9 $$");
    run_troubled(f, "", false, TRIAL_BUILD_FAILED);
    assert_true(f->trial[0].outside);
    play_compiler(f, "echo 'x.c: no such name'; exit 1");
    run_troubled(f, "", false, TRIAL_BUILD_FAILED);
    assert_false(f->trial[0].outside);
    unsetenv("CC");
}

// Alive: a dead one that nobody has asked after is not.
static bool is_there(const char *pid_file)
{
    Buf text;
    char path[64], state = 'X';
    text = buf_new();
    assert_true(file_read(pid_file, FILE_TEXT_MOST, &text));
    snprintf(path, sizeof path, "/proc/%d/stat", atoi(text.text));
    buf_clear(&text);
    if (file_read(path, FILE_TEXT_MOST, &text) && strrchr(text.text, ')'))
        state = strrchr(text.text, ')')[2];
    buf_release(&text);
    return state != 'X' && state != 'Z';
}

// The time of a compiler, and of those that it starts, is the job's; none of them is left
// when the job is ended.
static void test_slow_compiler(void **state)
{
    Fixture *f = *state;
    f->config.build_limit_s = 1.5;
    play_compiler(f, "[ -e $F/pid ] || sh -c 'echo $$ >'$F'/pid; while :; do :; done'");
    run_troubled(f, "", false, TRIAL_OK);
    const char *pid_file = arena_printf(f->arena, "%s/pid", f->folder);
    for (int tries = 0; tries < 6000 && is_there(pid_file); tries++)
        usleep(10 * 1000);
    assert_false(is_there(pid_file));
    unsetenv("CC");
}

// Runs a job until the stop is due, which is then no longer so; it has no verdict.
static void run_stopped(Fixture *f, Runner *runner, Stop *stop, const Job *job)
{
    f->done = 0;
    assert_true(runner_run(runner, job, 1, INFINITY, keep, f, &f->diags));
    assert_true(stop_due(stop));
    assert_int_equal(f->done, 0);
    stop->end_s = INFINITY;
}

// When the time is up a compiler is ended, and what it started, or a kernel; the runner
// goes on with other jobs. Who is asked to end does nothing more.
static void test_stop(void **state)
{
    Fixture *f = *state;
    atomic_int asked = 0;
    Stop stop = {.end_s = INFINITY, .asked = &asked};
    f->config.stop = &stop;
    play_compiler(f, "[ -e $F/pid ] || sh -c 'echo $$ >'$F'/pid; while :; do :; done'");
    Runner *runner = open_runner(f);
    Job good = troubled(f, "", false), spin = troubled(f, spins, false);
    const char *pid_file = arena_printf(f->arena, "%s/pid", f->folder);
    stop.end_s = clock_s() + 1;
    run_stopped(f, runner, &stop, &good);
    if (access(pid_file, F_OK) == 0)
        for (int tries = 0; tries < 6000 && is_there(pid_file); tries++)
            usleep(10 * 1000);
    assert_true(access(pid_file, F_OK) != 0 || !is_there(pid_file));
    assert_true(file_write(pid_file, "0", 1));
    check_run_one(f, runner, &good);
    stop.end_s = clock_s() + 1;
    run_stopped(f, runner, &stop, &spin);
    asked = SIGINT;
    Trial trial;
    assert_true(runner_run_one(runner, &good, 1, &trial, NULL, &f->diags));
    assert_true(trial.status == TRIAL_FAILED && trial.outside);
    assert_string_equal(trial.log, "it was interrupted");
    trial_release(&trial);
    assert_null(runner_open(&f->config, &f->diags));
    assert_non_null(strstr(f->diags.list.at[f->diags.list.len - 1].message, "interrupted"));
    asked = 0;
    trial_release(&f->trial[0]);
    check_run_one(f, runner, &good);
    runner_close(runner);
    unsetenv("CC");
}

// An answer that has arrived is read before its worker is judged late.
static void test_answer_first(void **state)
{
    (void)state;
    int fd[2];
    json_t *message;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    Worker worker = {.state = WORKER_BUSY, .fd = fd[0], .waits = true};
    worker.in = buf_new();
    worker_enter(&worker, STAGE_RUN, 0, 0);
    assert_true(message_send(fd[1], json_pack("{s:b}", "end", 1)));
    assert_ptr_equal(worker_wait(&worker, 1, NULL, true, &message), &worker);
    assert_true(json_is_true(json_object_get(message, "end")) && !worker.late);
    json_decref(message);
    assert_ptr_equal(worker_wait(&worker, 1, NULL, true, &message), &worker);
    assert_true(!message && worker.late);
    buf_release(&worker.in);
    close(fd[0]);
    close(fd[1]);
}

// A job that got hold of its worker's socket and tells of jobs that nobody sent: it is a
// trial that crashed, and the runner goes on.
static void test_forged_message(void **state)
{
    Fixture *f = *state;
    static const char *const text[] = {
        "{\\\"job\\\":123456789,\\\"trial\\\":{}}", "{\\\"job\\\":-7,\\\"trial\\\":{}}",
        "{\\\"at\\\":\\\"build\\\",\\\"job\\\":123456789}", "no JSON"};
    f->config.device = "host";
    Runner *runner = open_runner(f);
    Job job = host_job(f, right);
    for (int i = 0; i < COUNTOF(text); i++) {
        Job forger = host_job(
            f,
            arena_printf(f->arena,
                         "extern long send(int, const void *, unsigned long, int); if (i) "
                         "continue; static const char t[] = \"%s\"; int l = sizeof t - 1; "
                         "for (int fd = 3; fd < 64; fd++) { send(fd, &l, 4, 0x4000); "
                         "send(fd, t, l, 0x4000); } for (;;);",
                         text[i]));
        assert_true(runner_run(runner, &forger, 1, INFINITY, keep, f, &f->diags));
        expect_status(f, 0, TRIAL_CRASHED);
        trial_release(&f->trial[0]);
    }
    check_run_one(f, runner, &job);
    runner_close(runner);
}

// A job that computes z of a type by a statement for each i, for OpenCL or for the host,
// where `once` is there in every run: static variables tell the runs of a process apart.
static Job typed_job(Fixture *f, const char *type, const char *once, const char *body)
{
    bool host = strcmp(f->config.device, "host") == 0;
    Job job = make_job(f, 0, "", 64);
    const char *head =
        host ? arena_printf(f->arena,
                            "#include <math.h>\nvoid k0_entry(void *const *arg)\n"
                            "{ float *x = arg[0], *t = arg[5]; %s *z = arg[2];\n"
                            "int n = *(int *)arg[3]; (void)t;\n"
                            "%s\nfor (int i = 0; i < n; i++) {",
                            type, once)
             : arena_printf(f->arena,
                            "kernel void k0(global float *x, global float *y,\n"
                            "global %s *z, int n, float a, global float *t)\n"
                            "{ int i = get_global_id(0); {",
                            type);
    job.source = arena_printf(f->arena, "%s %s } }\n", head, body);
    return job;
}

// The status of that job where z must hold N elements of a type; log: a part of its log.
static void expect_verdict(Fixture *f, Scalar scalar, const void *expect, const Job *job,
                           TrialStatus status, const char *log)
{
    f->buffer[2].scalar = scalar;
    f->buffer[2].expect = expect;
    Runner *runner = open_runner(f);
    f->done = 0;
    assert_true(runner_run(runner, job, 1, INFINITY, keep, f, &f->diags));
    expect_status(f, 0, status);
    assert_non_null(strstr(f->trial[0].log, log));
    // The same for who wants but the outputs.
    Trial trial;
    assert_true(runner_compute(runner, job, &trial, NULL, &f->diags));
    assert_int_equal(trial.status, status);
    trial_release(&trial);
    runner_close(runner);
}

static bool for_device(Fixture *f, int number)
{
    static const char *const device[] = {"host", "opencl:0"};
    f->config.device = device[number];
    return number == 0 || !no_opencl();
}

// Nothing that an output may hold is taken for written.
static void test_unwritten(void **state)
{
    Fixture *f = *state;
    int32_t whole[N];
    uint8_t truth[N];
    float real[N];
    for (int d = 0; d < 2 && for_device(f, d); d++) {
        Job nothing = typed_job(f, "int", "", "if (n < 0) z[i] = 0;");
        for (int value = -1; value <= 0; value++) {
            for (int i = 0; i < N; i++)
                whole[i] = value;
            expect_verdict(f, S_INT, whole, &nothing, TRIAL_WRONG_RESULT, "z: element 0 ");
        }
        Job all = typed_job(f, "int", "", "z[i] = 0;");
        expect_verdict(f, S_INT, whole, &all, TRIAL_OK, "");
        nothing = typed_job(f, "unsigned char", "", "if (n < 0) z[i] = 0;");
        memset(truth, 1, sizeof truth);
        expect_verdict(f, S_BOOL, truth, &nothing, TRIAL_WRONG_RESULT, "z: element 0 ");
        for (int i = 0; i < N; i++)
            real[i] = i == 77 ? NAN : 1;
        Job one = typed_job(f, "float", "", "if (i != 77) z[i] = 1;");
        expect_verdict(f, S_FLOAT, real, &one, TRIAL_WRONG_RESULT, "z: element 77 ");
        one = typed_job(f, "float", "", "z[i] = i == 77 ? NAN : 1;");
        expect_verdict(f, S_FLOAT, real, &one, TRIAL_OK, "");
    }
}

// Writes to where nothing is to be written, all with the right outputs.
static void test_stray_writes(void **state)
{
    Fixture *f = *state;
    static const struct {
        const char *body, *log;
    } stray[] = {
        {"if (i == n - 1) z[n] = 1;", "writes past the end of `z`: element 4096"},
        {"if (i == 0) z[n + 900] = 1;", "writes past the end of `z`: element 4996"},
        {"if (i == 0) z[-1] = 1;", "writes before the start of `z`: element -1"},
        {"if (i == 0) z[-70] = 1;", "writes before the start of `z`: element -70"},
        {"if (i == 7) x[n - 1] = 9;", "writes into the input `x`: element 4095"},
        {"if (i == 7) x[n] = 9;", "writes past the end of `x`: element 4096"},
        {"if (i == 7) t[n] = 9;", "writes past the end of `scratch 0`"},
    };
    float real[N];
    for (int i = 0; i < N; i++)
        real[i] = (float)i;
    for (int d = 0; d < 2 && for_device(f, d); d++)
        for (int k = 0; k < COUNTOF(stray); k++) {
            const char *body = arena_printf(f->arena, "z[i] = i; %s", stray[k].body);
            Job job = typed_job(f, "float", "", body);
            expect_verdict(f, S_FLOAT, real, &job, TRIAL_WRONG_RESULT, stray[k].log);
        }
}

// Every run computes everything, whatever the runs before it have left.
static void test_other_runs(void **state)
{
    Fixture *f = *state;
    static const char *const again = "run again";
    float real[N];
    for (int i = 0; i < N; i++)
        real[i] = (float)(i + 1);
    for (int d = 0; d < 2 && for_device(f, d); d++) {
        int32_t zeros[N] = {0};
        Job poisoned = typed_job(f, "int", "", "if (z[i] == -1) z[i] = 0;");
        expect_verdict(f, S_INT, zeros, &poisoned, TRIAL_WRONG_RESULT, again);
        poisoned = typed_job(f, "float", "", "if (isnan(z[i])) z[i] = i + 1;");
        expect_verdict(f, S_FLOAT, real, &poisoned, TRIAL_WRONG_RESULT, again);
    }
    for_device(f, 0);
    Job first =
        typed_job(f, "float", "static int runs; if (runs++ > 0) return;", "z[i] = i + 1;");
    expect_verdict(f, S_FLOAT, real, &first, TRIAL_WRONG_RESULT, again);
    // Wrong from when it has found its results of another run: it never does.
    Job jealous = typed_job(f, "float", "static int seen; seen |= z[0] == 1 || t[0] == 1;",
                            "z[i] = seen ? 0 : i + 1; t[0] = 1;");
    expect_verdict(f, S_FLOAT, real, &jealous, TRIAL_OK, "");
}

static int count_entries(const char *folder, const char *prefix)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    int n = 0;
    while (dir && (entry = readdir(dir)))
        n += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    if (dir)
        closedir(dir);
    return n;
}

// A folder left by a killed run, then two runners in it at once; nothing of them stays but
// caches.
static void test_folder(void **state)
{
    Fixture *f = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/run-staled", f->folder);
    assert_true(file_mkdirs(path));
    snprintf(path, sizeof path, "%s/run-staled/init-0", f->folder);
    assert_true(file_write(path, "old", 3));
    snprintf(path, sizeof path, "%s/run-staled/lock", f->folder);
    assert_true(file_write(path, "", 0));
    f->config.device = "host";
    Runner *a = open_runner(f), *b = open_runner(f);
    assert_int_equal(count_entries(f->folder, "run-"), 2);
    Job job = host_job(f, right);
    check_run_one(f, a, &job);
    trial_release(&f->trial[0]);
    check_run_one(f, b, &job);
    runner_close(a);
    runner_close(b);
    assert_int_equal(count_entries(f->folder, "run-"), 0);
    assert_true(count_entries(f->folder, "cache-") > 0);
}

// Code is loaded from a cache: what others could have put there is not used.
static void test_open_folder(void **state)
{
    Fixture *f = *state;
    char cache[128], planted[160];
    snprintf(cache, sizeof cache, "%s/cache-0", f->folder);
    snprintf(planted, sizeof planted, "%s/planted", cache);
    f->config.device = "host";
    const char *const open[] = {f->folder, cache};
    for (int i = 0; i < 2; i++) {
        runner_close(open_runner(f));
        assert_true(file_write(planted, "code", 4));
        runner_close(open_runner(f));
        assert_int_equal(access(planted, F_OK), 0); // a cache is kept
        assert_int_equal(chmod(open[i], 0777), 0);
        runner_close(open_runner(f));
        assert_int_equal(access(planted, F_OK), -1);
    }
    if (geteuid() != 0)
        return;
    assert_int_equal(chown(f->folder, 65534, 65534), 0);
    assert_null(runner_open(&f->config, &f->diags));
    assert_non_null(strstr(f->diags.list.at[0].message, "it is another user's"));
}

static void expect_refusal(Fixture *f, const char *part, bool world)
{
    f->diags = (Diags){.arena = f->arena};
    assert_null(runner_open(&f->config, &f->diags));
    assert_int_equal(f->diags.errors, 1);
    assert_int_equal(f->diags.world, world);
    assert_non_null(strstr(f->diags.list.at[0].message, part));
}

static void test_refusals(void **state)
{
    Fixture *f = *state;
    f->config.device = "abacus";
    expect_refusal(f, "abacus", false);
    f->config.device = "host:7";
    expect_refusal(f, "only one host", true);
    f->config.device = "opencl:63";
    expect_refusal(f, "OpenCL device", true);
    f->config.device = "host";
    f->config.worker = "/no/such/program";
    expect_refusal(f, "no worker", true);
    f->config.worker = NULL;
    f->config.folder = "/proc/nowhere/at/all";
    expect_refusal(f, "/proc/nowhere", true);
}

static void test_list(void **state)
{
    Fixture *f = *state;
    DeviceInfo *info;
    const char *left = arena_printf(f->arena, "%s/forewarp-list-staled", f->folder);
    assert_true(file_mkdirs(left)); // by one that was killed
    assert_true(file_write(arena_printf(f->arena, "%s/lock", left), "", 0));
    setenv("TMPDIR", f->folder, 1);
    int n = devices_list(f->arena, NULL, NULL, &info, &f->diags), hosts = 0, opencl = 0;
    assert_int_equal(count_entries(f->folder, "forewarp-list-"), 0);
    unsetenv("TMPDIR");
    for (int i = 0; i < n; i++) {
        hosts += strcmp(info[i].id, "host") == 0;
        opencl += strncmp(info[i].id, "opencl:", 7) == 0;
        assert_true(info[i].compute_units > 0 && strlen(info[i].fingerprint) == 16);
    }
    assert_int_equal(hosts, 1);
    assert_int_equal(opencl > 0, !no_opencl());
    assert_int_equal(f->diags.errors, 0);
    // A worker that cannot even start is a warning for each kind, and no device.
    n = devices_list(f->arena, "/no/such/program", NULL, &info, &f->diags);
    assert_int_equal(n, 0);
    assert_true(f->diags.list.len >= 2);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_verdicts),       RIG_TEST(test_batch),
        RIG_TEST(test_cutoff),         RIG_TEST(test_worn_worker),
        RIG_TEST(test_host),           RIG_TEST(test_killed_idle),
        RIG_TEST(test_killed_job),     RIG_TEST(test_time_is_work),
        RIG_TEST(test_full_disk),      RIG_TEST(test_slow_compiler),
        RIG_TEST(test_stop),           cmocka_unit_test(test_answer_first),
        RIG_TEST(test_forged_message), RIG_TEST(test_unwritten),
        RIG_TEST(test_stray_writes),   RIG_TEST(test_other_runs),
        RIG_TEST(test_folder),         RIG_TEST(test_open_folder),
        RIG_TEST(test_refusals),       RIG_TEST(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
