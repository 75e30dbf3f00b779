// SPDX-License-Identifier: Apache-2.0
//
// Jobs shared by several runners: devices of this process, and a runner in another process
// at the end of a socket; one that is lost on the way, and one that never comes.
#include "measure/peers.h"

#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 256, JOBS = 60 };

typedef struct {
    char folder[64];
    float x[N], z[N];
    RunnerBuffer buffer[2];
    RunnerConfig config;
    Arena *arena;
    Diags diags;
    Job job[JOBS];
    int told[JOBS], ok, calls;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/forewarp-test-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    f->arena = arena_new();
    f->diags = (Diags){.arena = f->arena};
    for (int i = 0; i < N; i++)
        f->z[i] = 2 * (f->x[i] = (float)i);
    f->buffer[0] = (RunnerBuffer){.name = "x", .scalar = S_FLOAT, .count = N, .init = f->x};
    f->buffer[1] =
        (RunnerBuffer){.name = "z", .scalar = S_FLOAT, .count = N, .expect = f->z};
    f->config = (RunnerConfig){.device = "host",
                               .folder = f->folder,
                               .nbuffer = 2,
                               .buffer = f->buffer,
                               .tolerance = 1e-5,
                               .workers = 1,
                               .samples = 2};
    static const JobArg arg[] = {{.kind = ARG_BUFFER}, {.kind = ARG_BUFFER, .buffer = 1}};
    for (int i = 0; i < JOBS; i++) {
        JobLaunch *launch = NEW(f->arena, JobLaunch);
        *launch = (JobLaunch){.kernel = arena_printf(f->arena, "k%d", i),
                              .global = {1, 1, 1},
                              .local = {1, 1, 1},
                              .narg = 2,
                              .arg = arg};
        // Every tenth is wrong.
        f->job[i] = (Job){
            .prelude = "",
            .source = arena_printf(f->arena,
                                   "void k%d_entry(void *const *arg)\n{\n"
                                   "    const float *x = arg[0];\n    float *z = arg[1];\n"
                                   "    for (int i = 0; i < %d; i++)\n"
                                   "        z[i] = %d * x[i];\n}\n",
                                   i, N, i % 10 ? 2 : 3),
            .options = "",
            .launch = launch,
            .nlaunch = 1};
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    arena_free(f->arena);
    free(f);
    return system(command);
}

static double on_done(void *user, int job, Trial *trial)
{
    Fixture *f = user;
    f->told[job]++;
    f->calls++;
    f->ok += trial->status == TRIAL_OK;
    if (trial->status != (job % 10 ? TRIAL_OK : TRIAL_WRONG_RESULT))
        fail_msg("job %d: %s: %s", job, trial_status_name[trial->status],
                 trial->log ? trial->log : "");
    return INFINITY;
}

static void run_all(Fixture *f, Runner *runner)
{
    assert_true(runner_run(runner, f->job, JOBS, INFINITY, on_done, f, &f->diags));
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(f->told[i], 1);
    assert_int_equal(f->ok, JOBS - JOBS / 10);
}

// Links over a socket: texts after their lengths ------------------------------------------

typedef struct {
    int fd;
    Link link;
    RunnerPeer peer;
    pid_t child;
} Wire;

static bool socket_send(void *end, const char *text, size_t len)
{
    const Wire *wire = end;
    return send(wire->fd, &len, sizeof len, MSG_NOSIGNAL) == sizeof len &&
           send(wire->fd, text, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static bool socket_receive(void *end, Buf *text, double limit_s)
{
    const Wire *wire = end;
    struct pollfd poller = {wire->fd, POLLIN, 0};
    size_t len;
    if (poll(&poller, 1, limit_s < 1e6 ? (int)(limit_s * 1e3) : -1) != 1 ||
        recv(wire->fd, &len, sizeof len, MSG_WAITALL) != sizeof len)
        return false;
    char *bytes = xmalloc(len);
    bool ok = recv(wire->fd, bytes, len, MSG_WAITALL) == (ssize_t)len;
    if (ok)
        buf_write(text, bytes, len);
    free(bytes);
    return ok;
}

// What the other process does: serves, or cannot open its device.
typedef enum { SERVES, FAILS } Fate;

static void be_served(const Fixture *f, Wire *wire, Fate fate)
{
    Diags diags;
    RunnerConfig config = f->config;
    Stop stop = {.end_s = INFINITY};
    diags = (Diags){.arena = arena_new()};
    config.stop = &stop;
    Runner *runner = fate == FAILS ? NULL : runner_open(&config, &diags);
    if (fate == FAILS)
        diag_world(&diags, "", "there is no such device");
    bool ok = remote_serve(runner, &stop, &wire->link, &diags);
    runner_close(runner);
    _exit(ok ? 0 : 1);
}

static void start_wire(const Fixture *f, Wire *wire, Fate fate)
{
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    wire->child = fork();
    assert_true(wire->child >= 0);
    wire->fd = fd[wire->child == 0];
    close(fd[wire->child != 0]);
    wire->link = (Link){socket_send, socket_receive, wire};
    wire->peer =
        (RunnerPeer){.kind = &peer_remote, .device = "rank 1", .link = &wire->link};
    if (wire->child == 0)
        be_served(f, wire, fate);
}

static int end_wire(Wire *wire)
{
    int status = 0;
    waitpid(wire->child, &status, 0);
    close(wire->fd);
    return status;
}

// Tests -----------------------------------------------------------------------------------

// A runner with peers of which so many take part.
static Runner *open_runner(Fixture *f, const RunnerPeer *peer, int n, int taking_part)
{
    f->config.peer = peer;
    f->config.npeer = n;
    Runner *runner = runner_open(&f->config, &f->diags);
    assert_non_null(runner);
    assert_int_equal(runner_peers(runner), taking_part);
    return runner;
}

// There are so many warnings, and each says this.
static void expect_said(const Fixture *f, int n, const char *text)
{
    assert_int_equal(f->diags.list.len, n);
    for (int i = 0; i < n; i++)
        assert_non_null(strstr(f->diags.list.at[i].message, text));
}

static void test_local(void **state)
{
    Fixture *f = *state;
    const RunnerPeer peer[] = {{.kind = &peer_local, .device = "host"},
                               {.kind = &peer_local, .device = "host"}};
    Runner *runner = open_runner(f, peer, 2, 2);
    run_all(f, runner);
    memset(f->told, 0, sizeof f->told);
    f->ok = 0;
    run_all(f, runner); // once more
    runner_close(runner);
    assert_int_equal(f->diags.list.len, 0);
}

enum { STAGE = 12 };

typedef struct {
    Fixture *f;
    int given, stages;
    pthread_t who[3]; // devices, each by its thread
    int did[3];
} Stages;

// The jobs of a stage are there when those before it are done.
static const Job *next_of_stage(void *user, int number)
{
    Stages *s = user;
    if (number != s->given)
        fail_msg("job %d in place of %d", number, s->given);
    if (number == JOBS || (number % STAGE == 0 && s->f->calls < number))
        return NULL;
    s->stages += number % STAGE == 0;
    return &s->f->job[s->given++];
}

static double count_who(void *user, int job, Trial *trial)
{
    Stages *s = user;
    int i = 0;
    while (i < COUNTOF(s->who) - 1 && s->did[i] &&
           !pthread_equal(s->who[i], pthread_self()))
        i++;
    s->who[i] = pthread_self();
    s->did[i]++;
    return on_done(s->f, job, trial);
}

// Jobs that wait for others, of whichever device; each device does some.
static void test_stages(void **state)
{
    Fixture *f = *state;
    Stages stages = {.f = f};
    Wire wire;
    start_wire(f, &wire, SERVES);
    const RunnerPeer peer[] = {{.kind = &peer_local, .device = "host"}, wire.peer};
    Runner *runner = open_runner(f, peer, 2, 2);
    assert_true(
        runner_stream(runner, next_of_stage, INFINITY, count_who, &stages, &f->diags));
    assert_int_equal(stages.stages, JOBS / STAGE);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(f->told[i], 1);
    for (int i = 0; i < 3; i++)
        assert_in_range(stages.did[i], 1, JOBS - 2);
    runner_close(runner);
    assert_int_equal(f->diags.list.len, 0);
    assert_int_equal(end_wire(&wire), 0);
}

// One that is not there, and one whose times mean something else.
static void test_other_device(void **state)
{
    Fixture *f = *state;
    const RunnerPeer peer[] = {{.kind = &peer_local, .device = "opencl:77"},
                               {.kind = &peer_local, .device = "opencl:0"}};
    Runner *runner = open_runner(f, peer, 2, 0);
    expect_said(f, 2, "takes no part");
    run_all(f, runner);
    runner_close(runner);
}

static void test_remote(void **state)
{
    Fixture *f = *state;
    Wire wire;
    start_wire(f, &wire, SERVES);
    Runner *runner = open_runner(f, &wire.peer, 1, 1);
    run_all(f, runner);
    runner_close(runner);
    assert_int_equal(f->diags.list.len, 0);
    assert_int_equal(end_wire(&wire), 0);
}

static void test_remote_fails(void **state)
{
    Fixture *f = *state;
    Wire wire;
    start_wire(f, &wire, FAILS);
    Runner *runner = open_runner(f, &wire.peer, 1, 0);
    expect_said(f, 1, "there is no such device");
    run_all(f, runner);
    runner_close(runner);
    end_wire(&wire);
}

typedef struct {
    Fixture *f;
    pid_t victim;
} Murder;

static double kill_at_first(void *user, int job, Trial *trial)
{
    Murder *murder = user;
    if (murder->victim)
        kill(murder->victim, SIGKILL);
    murder->victim = 0;
    return on_done(murder->f, job, trial);
}

// What a lost process had is done by the others; each job is told once.
static void test_remote_lost(void **state)
{
    Fixture *f = *state;
    Wire wire;
    start_wire(f, &wire, SERVES);
    Runner *runner = open_runner(f, &wire.peer, 1, 1);
    Murder murder = {f, wire.child};
    assert_true(
        runner_run(runner, f->job, JOBS, INFINITY, kill_at_first, &murder, &f->diags));
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(f->told[i], 1);
    assert_int_equal(runner_peers(runner), 0);
    expect_said(f, 1, "rank 1 is lost");
    runner_close(runner);
    end_wire(&wire);
}

// One that serves ends when the search is gone: it says nothing any more, though nobody has
// told it that it is enough.
static void test_leader_lost(void **state)
{
    Fixture *f = *state;
    Wire wire;
    Buf hello = buf_new();
    start_wire(f, &wire, SERVES);
    assert_true(socket_receive(&wire, &hello, INFINITY)); // it waits for jobs
    buf_release(&hello);
    static const char alive[] = "{\"alive\": true}";
    assert_true(socket_send(&wire, alive, strlen(alive))); // so did the search
    int status = 0;
    waitpid(wire.child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    close(wire.fd);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_local),        TEST(test_other_device),
                                       TEST(test_stages),       TEST(test_remote),
                                       TEST(test_remote_fails), TEST(test_remote_lost),
                                       TEST(test_leader_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
