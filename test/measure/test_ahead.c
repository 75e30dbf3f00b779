// SPDX-License-Identifier: Apache-2.0
//
// Runners whose workers compile ahead of the one that runs, on a GPU played by fake_cuda.c:
// what becomes of jobs that are right, wrong, do not compile, crash or hold up the
// compiler, crash or hang when run. This program is its own worker.
#include "measure/parts.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 4096, JOBS = 120 };

typedef struct {
    char folder[64], log[128];
    float x[N], z[N];
    RunnerBuffer buffer[2];
    RunnerConfig config;
    Arena *arena;
    Diags diags;
    Job job[JOBS];
    int njob, alive, most_alive, done;
    Trial trial[JOBS];
} Fixture;

static void run_command(const char *command)
{
    if (system(command) != 0)
        fail_msg("%s", command);
}

// The fake libraries, where a worker looks for the real ones.
static void make_libraries(const Fixture *f)
{
    char text[512];
    snprintf(text, sizeof text,
             "mkdir -p %s/lib64 && cc -std=c11 -D_GNU_SOURCE -shared -fPIC -O1 "
             "-o %s/lib64/libnvrtc.so test/measure/fake_cuda.c -ldl && "
             "ln -s libnvrtc.so %s/lib64/libcuda.so.1",
             f->folder, f->folder, f->folder);
    run_command(text);
    snprintf(text, sizeof text, "%s/lib64", f->folder);
    setenv("LD_LIBRARY_PATH", text, 1);
    setenv("CUDA_HOME", f->folder, 1);
    setenv("FAKE_CUDA_LOG", f->log, 1);
}

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/forewarp-test-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->log, sizeof f->log, "%s/compilations", f->folder);
    make_libraries(f);
    for (int i = 0; i < N; i++) {
        f->x[i] = 0.5f + (float)(i % 100) * 0.01f;
        f->z[i] = 2.0f * f->x[i];
    }
    f->buffer[0] = (RunnerBuffer){.name = "x", .scalar = S_FLOAT, .count = N, .init = f->x};
    f->buffer[1] =
        (RunnerBuffer){.name = "z", .scalar = S_FLOAT, .count = N, .expect = f->z};
    f->config = (RunnerConfig){.device = "cuda:0",
                               .folder = f->folder,
                               .nbuffer = 2,
                               .buffer = f->buffer,
                               .tolerance = 1e-5,
                               .build_limit_s = 20,
                               .run_limit_s = 10,
                               .workers = 3};
    f->arena = arena_new();
    f->diags = (Diags){.arena = f->arena};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    for (int i = 0; i < JOBS; i++)
        trial_release(&f->trial[i]);
    remove_tree(f->folder);
    arena_free(f->arena);
    free(f);
    return 0;
}

static const char right[] = "z[i] = a * x[i];";

static void add_job(Fixture *f, const char *body)
{
    int number = f->njob++;
    JobArg *arg = NEW_ARRAY(f->arena, JobArg, 4);
    arg[0] = (JobArg){.kind = ARG_BUFFER, .buffer = 0};
    arg[1] = (JobArg){.kind = ARG_BUFFER, .buffer = 1};
    arg[2] = (JobArg){.kind = ARG_INT, .number = N};
    arg[3] = (JobArg){.kind = ARG_SCALAR, .scalar = S_FLOAT, .value = 2};
    JobLaunch *launch = NEW(f->arena, JobLaunch);
    *launch = (JobLaunch){arena_printf(f->arena, "k%d", number), {N}, {64}, 0, 4, arg};
    launch->global[1] = launch->global[2] = launch->local[1] = launch->local[2] = 1;
    const char *source = arena_printf(
        f->arena,
        "extern \"C\" __global__ void __launch_bounds__(64)\n"
        "k%d(const float *__restrict__ x, float *__restrict__ z, int n, float a)\n"
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; %s }\n",
        number, body);
    f->job[number] = (Job){"", source, "", 0, NULL, 1, launch, false};
}

static const Job *next(void *user, int number)
{
    Fixture *f = user;
    if (number >= f->njob)
        return NULL;
    f->alive++;
    f->most_alive = MAX(f->most_alive, f->alive);
    return &f->job[number];
}

static double keep(void *user, int job, Trial *trial)
{
    Fixture *f = user;
    f->trial[job] = *trial;
    trial->log = NULL;
    f->done++;
    f->alive--;
    return trial->time_ns;
}

static void run_all(Fixture *f)
{
    Runner *runner = runner_open(&f->config, &f->diags);
    if (!runner)
        fail_msg("%s", f->diags.list.at[0].message);
    assert_string_equal(runner_device(runner)->id, "cuda:0");
    bool ok = runner_stream(runner, next, INFINITY, keep, f, &f->diags);
    if (!ok)
        fail_msg("%s", f->diags.list.at[0].message);
    assert_int_equal(f->done, f->njob);
    runner_close(runner);
}

static void expect_status(const Fixture *f, int job, TrialStatus status)
{
    const Trial *trial = &f->trial[job];
    if (trial->status != status)
        print_message("job %d is %s: %s\n", job, trial_status_name[trial->status],
                      trial->log ? trial->log : "");
    assert_int_equal(trial->status, status);
    if (status == TRIAL_OK)
        assert_true(trial->time_ns > 0 && trial->nsample > 0 && trial->build_s > 0);
}

// Which processes compiled, and how often.
static int count_compilers(const Fixture *f, int *compilations)
{
    int pid[64], n = 0, one;
    size_t length;
    FILE *log = fopen(f->log, "re");
    assert_non_null(log);
    for (*compilations = 0; fscanf(log, "%d %zu", &one, &length) == 2; (*compilations)++) {
        int i = 0;
        while (i < n && pid[i] != one)
            i++;
        if (i == n && n < COUNTOF(pid))
            pid[n++] = one;
    }
    fclose(log);
    return n;
}

// Runs n jobs that are right; returns how many processes compiled.
static int run_right(Fixture *f, int n, int *compilations)
{
    for (int i = 0; i < n; i++)
        add_job(f, right);
    run_all(f);
    for (int i = 0; i < n; i++)
        expect_status(f, i, TRIAL_OK);
    return count_compilers(f, compilations);
}

// Many jobs: the two compilers make programs of several, the first worker only those that
// compare outputs and wait.
static void test_flow(void **state)
{
    Fixture *f = *state;
    int compilations;
    assert_int_equal(run_right(f, JOBS, &compilations), 3);
    assert_in_range(compilations, JOBS / 10, JOBS / 2);
    assert_true(f->most_alive < JOBS); // no more than are needed to keep all busy
}

// Jobs that were begun without buffers are compiled once, and are the first of the stream.
static void test_begun(void **state)
{
    Fixture *f = *state;
    enum { BEGUN = 6, ALL = 9 };
    int compilations;
    RunnerConfig empty = f->config;
    empty.nbuffer = 0;
    Runner *runner = runner_open(&empty, &f->diags);
    assert_true(runner_begins(runner));
    for (int i = 0; i < BEGUN; i++)
        add_job(f, i == 2 ? "z[i] = nothing;" : right);
    assert_true(runner_begin(runner, next, f, &f->diags));
    assert_int_equal(f->alive, BEGUN);
    assert_true(runner_fill(runner, &f->config, &f->diags));
    assert_int_equal(f->done, 0);
    while (f->njob < ALL)
        add_job(f, right);
    assert_true(runner_stream(runner, next, INFINITY, keep, f, &f->diags));
    assert_int_equal(f->done, ALL);
    for (int i = 0; i < ALL; i++)
        expect_status(f, i, i == 2 ? TRIAL_BUILD_FAILED : TRIAL_OK);
    count_compilers(f, &compilations);
    assert_in_range(compilations, 4, ALL);
    runner_close(runner);
}

// What was begun and is not gone on with leaves nothing behind.
static void test_dropped(void **state)
{
    Fixture *f = *state;
    Trial trial;
    Runner *runner = runner_open(&f->config, &f->diags);
    for (int i = 0; i < 4; i++)
        add_job(f, i == 1 ? "z[i] = a * x[i]; /* HANG */" : right);
    assert_true(runner_begin(runner, next, f, &f->diags));
    assert_true(runner_run_one(runner, &f->job[3], 0, &trial, NULL, &f->diags));
    assert_int_equal(trial.status, TRIAL_OK);
    trial_release(&trial);
    assert_true(runner_begin(runner, next, f, &f->diags));
    runner_close(runner);
    assert_int_equal(f->done, 0);
}

// Compilers that have built their number of jobs are replaced: each builds 5 to 14, but for
// the last two.
static void test_worn_compilers(void **state)
{
    Fixture *f = *state;
    int compilations;
    f->config.builds = 5;
    assert_in_range(run_right(f, JOBS, &compilations), 1 + JOBS / 14, 3 + JOBS / 5);
}

static void test_verdicts(void **state)
{
    Fixture *f = *state;
    f->config.run_limit_s = 2;
    f->config.build_limit_s = 2;
    for (int i = 0; i < 40; i++)
        add_job(f, i == 3    ? "z[i] = nothing;"
                   : i == 7  ? "z[i] = a * x[i] + (i == 17);"
                   : i == 12 ? "z[i + ((long)n << 30)] = a;"
                   : i == 19 ? "z[i] = a * x[i]; /* CRASH */"
                   : i == 26 ? "volatile float *v = z; v[0] = 1; while (v[0] != 77) ;"
                   : i >= 33 && i < 36 ? "z[i] = a * x[i]; /* HANG */"
                                       : right);
    run_all(f);
    for (int i = 0; i < 40; i++)
        expect_status(f, i,
                      i == 3                           ? TRIAL_BUILD_FAILED
                      : i == 7                         ? TRIAL_WRONG_RESULT
                      : i == 12 || i == 19             ? TRIAL_CRASHED
                      : i == 26 || (i >= 33 && i < 36) ? TRIAL_TIMED_OUT
                                                       : TRIAL_OK);
    assert_non_null(strstr(f->trial[3].log, "the text is wrong"));
    assert_non_null(strstr(f->trial[19].log, "while building"));
    assert_non_null(strstr(f->trial[12].log, "while running"));
}

// What is far slower than the best is not run again after it was found right.
static void test_hopeless(void **state)
{
    Fixture *f = *state;
    for (int i = 0; i < 12; i++)
        add_job(f, i < 11 ? right
                          : "for (volatile int k = 0; k < 2000; k++) ; z[i] = a * x[i];");
    run_all(f);
    for (int i = 0; i < 12; i++)
        expect_status(f, i, TRIAL_OK);
    assert_true(f->trial[11].cut && f->trial[11].nsample == 1);
    assert_true(f->trial[11].timing_s == 0);
}

static void *let_go(void *user)
{
    usleep(2500 * 1000);
    close(*(int *)user);
    return NULL;
}

// Where the played driver says that its first device is: whoever is there shares its turns,
// whatever kind and index it has there.
static const char place[] = "0000:01:00";

// While another controller has its turn on the GPU, nothing is done there, and no limit
// passes.
static void test_turns(void **state)
{
    Fixture *f = *state;
    pthread_t other;
    Folder folder = {.path = f->folder};
    char *path = folder_turn_path(&folder, place);
    int turn = turn_take(path);
    free(path);
    assert_true(turn >= 0);
    f->config.run_limit_s = 0.5;
    f->config.build_limit_s = 2;
    double start = clock_s();
    assert_int_equal(pthread_create(&other, NULL, let_go, &turn), 0);
    add_job(f, right);
    run_all(f);
    pthread_join(other, NULL);
    expect_status(f, 0, TRIAL_OK);
    assert_true(clock_s() - start >= 2.5);
}

// Another controller that waits for its turn from the first trial on.
typedef struct {
    Fixture *f;
    pthread_t thread;
    char *path;
    atomic_bool waits, had; // its turn
    bool had_before_last;   // trial was done
} Waiter;

static void *have_turn(void *user)
{
    Waiter *waiter = user;
    int turn = turn_take(waiter->path);
    waiter->had = true;
    close(turn);
    return NULL;
}

// To make a point takes as long as the other needs to wake up, if it can have its turn.
static const Job *next_made(void *user, int number)
{
    Waiter *waiter = user;
    for (int i = 0; i < 4000 && waiter->waits && !waiter->had; i++)
        usleep(5000);
    return next(waiter->f, number);
}

static double keep_and_wait(void *user, int job, Trial *trial)
{
    Waiter *waiter = user;
    if (job == 0)
        assert_int_equal(pthread_create(&waiter->thread, NULL, have_turn, waiter), 0);
    waiter->waits = true;
    waiter->had_before_last = waiter->had;
    return keep(waiter->f, job, trial);
}

// Where nobody compiles ahead a turn is a batch, not the whole stream.
static void test_turns_between(void **state)
{
    Fixture *f = *state;
    Folder folder = {.path = f->folder};
    Waiter waiter = {.f = f, .path = folder_turn_path(&folder, place)};
    f->config.workers = 1;
    f->config.batch = 3;
    for (int i = 0; i < 12; i++)
        add_job(f, right);
    Runner *runner = runner_open(&f->config, &f->diags);
    assert_non_null(runner);
    assert_true(
        runner_stream(runner, next_made, INFINITY, keep_and_wait, &waiter, &f->diags));
    runner_close(runner);
    pthread_join(waiter.thread, NULL);
    free(waiter.path);
    assert_int_equal(f->done, 12);
    assert_true(waiter.had_before_last);
}

// With one worker there is nobody to compile ahead.
static void test_alone(void **state)
{
    Fixture *f = *state;
    int compilations;
    f->config.workers = 1;
    assert_int_equal(run_right(f, 4, &compilations), 1);
    assert_int_equal(compilations, 3); // all jobs, what compares, what waits
}

// Launches that read the same buffer as an image share one; an image that is too long for
// the device costs the point, nothing else.
static void test_images(void **state)
{
    Fixture *f = *state;
    for (int i = 0; i < 2; i++)
        add_job(f, "z[i] = a * ((const float *)x)[i];");
    for (int i = 0; i < 2; i++) {
        JobLaunch *launch = NEW_ARRAY(f->arena, JobLaunch, 4);
        JobArg *arg = (JobArg *)f->job[i].launch->arg;
        arg[0].kind = ARG_IMAGE;
        arg[0].scalar = S_FLOAT;
        for (int k = 0; k < 4; k++)
            launch[k] = f->job[i].launch[0];
        f->job[i].launch = launch;
        f->job[i].nlaunch = 4;
    }
    static const int64_t scratch = 4 * (N + 1);
    f->job[1].nscratch = 1;
    f->job[1].scratch_bytes = &scratch;
    ((JobArg *)f->job[1].launch->arg)[0].buffer = 2;
    add_job(f, right);
    run_all(f);
    expect_status(f, 0, TRIAL_OK);
    expect_status(f, 1, TRIAL_OUT_OF_RESOURCES);
    expect_status(f, 2, TRIAL_OK);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_flow),     RIG_TEST(test_begun),
        RIG_TEST(test_dropped),  RIG_TEST(test_worn_compilers),
        RIG_TEST(test_verdicts), RIG_TEST(test_hopeless),
        RIG_TEST(test_turns),    RIG_TEST(test_turns_between),
        RIG_TEST(test_alone),    RIG_TEST(test_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
