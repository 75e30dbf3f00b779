// SPDX-License-Identifier: Apache-2.0
//
// Worker processes: start, watch, end.
//
// A worker leads a process group of its own, so that an interrupt typed at the terminal
// does not reach it and ending it takes its compilers too; the kernel ends it when the
// thread that started it ends, however that happens. Its environment and limits are set
// before exec, because PoCL and the C library read them at start.
#include "measure/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PROCESSES_MAX = 64, TAIL = 1500 };
enum { PATIENCE = 10 }; // times its limit, for one that does not work
// Between two looks at how long a worker has worked, at least; at who asks to stop, at
// most.
static const double LOOK_S = 0.1;

const char *const stage_name[] = {
    [STAGE_NONE] = "idle",
    [STAGE_QUIT] = "ending",
    [STAGE_OPEN] = "opening the device",
    [STAGE_LIST] = "listing devices",
    [STAGE_TURN] = "waiting for the device",
    [STAGE_BUILD] = "building",
    [STAGE_RUN] = "running",
    [STAGE_TIME] = "timing",
};

// Starting ----------------------------------------------------------------------------

static bool sets(const char *entry, const char *name)
{
    size_t len = strlen(name);
    return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

// What compilers and drivers read: the rest may hold what is not for the jobs.
static bool is_for_bare(const char *entry)
{
    static const char *const known[] = {
        "PATH=", "CC=",     "LANG=",  "LC_",   "LD_",   "TZ=",    "OMP_",  "GOMP_",
        "OCL_",  "OPENCL_", "POCL_",  "CUDA_", "NV",    "HSA_",   "ROC",   "HIP_",
        "AMD_",  "ZE_",     "INTEL_", "FW_",   "ASAN_", "UBSAN_", "LSAN_", "TSAN_"};
    for (int i = 0; i < COUNTOF(known); i++)
        if (strncmp(entry, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

// This environment with a cache of this worker's own, for PoCL and for CUDA, and for PoCL
// threads that stay on their cores.
static char **worker_environment(Arena *arena, const WorkerPlace *place)
{
    VEC(char *) env = {0};
    for (char **e = environ; *e; e++)
        if (!sets(*e, "POCL_CACHE_DIR") && !sets(*e, "FOREWARP_CACHE") &&
            !sets(*e, "TMPDIR") && (!place->bare || is_for_bare(*e)))
            VEC_PUSH(arena, &env, *e);
    if (!getenv("POCL_AFFINITY"))
        VEC_PUSH(arena, &env, arena_strdup(arena, "POCL_AFFINITY=1"));
    VEC_PUSH(arena, &env, arena_printf(arena, "POCL_CACHE_DIR=%s", place->cache));
    VEC_PUSH(arena, &env, arena_printf(arena, "FOREWARP_CACHE=%s", place->cache));
    VEC_PUSH(arena, &env, arena_printf(arena, "TMPDIR=%s", place->temp));
    if (place->bare)
        VEC_PUSH(arena, &env, arena_printf(arena, "HOME=%s", place->temp));
    VEC_PUSH(arena, &env, NULL);
    return env.at;
}

static void set_limits(void)
{
    struct rlimit stack, core = {0, 0};
    if (getrlimit(RLIMIT_STACK, &stack) == 0) {
        stack.rlim_cur = MIN(stack.rlim_max, (rlim_t)WORKER_STACK_BYTES);
        setrlimit(RLIMIT_STACK, &stack);
    }
    setrlimit(RLIMIT_CORE, &core);
}

// In the child: only calls that are safe between fork and exec.
static void become_worker(char *const *argv, char *const *env, int fd, int log,
                          pid_t parent)
{
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    set_limits();
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (dup2(nothing, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0 || fcntl(fd, F_SETFD, 0) != 0)
        _exit(127);
    execve(argv[0], argv, env);
    _exit(127);
}

static pid_t spawn(const WorkerPlace *place, int fd, int log)
{
    Arena *arena = arena_new();
    const char *program = place->program ? place->program : "/proc/self/exe";
    char *argv[] = {arena_strdup(arena, program), arena_strdup(arena, WORKER_COMMAND),
                    arena_printf(arena, "%d", fd), NULL};
    char **env = worker_environment(arena, place);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become_worker(argv, env, fd, log, parent);
    if (pid > 0)
        setpgid(pid, pid); // whoever of the two comes first
    int saved = errno;
    arena_free(arena);
    errno = saved;
    return pid;
}

// Above the numbers of the standard streams, which are replaced in the child.
static int lift(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int saved = errno;
    close(fd);
    errno = saved;
    return high;
}

static bool socket_pair(int fd[2])
{
    struct timeval limit = {10, 0};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
        return false;
    fd[0] = lift(fd[0]);
    fd[1] = lift(fd[1]);
    setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return fd[0] >= 0 && fd[1] >= 0;
}

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

bool worker_start(Worker *worker, const WorkerPlace *place, Diags *diags)
{
    int fd[2] = {-1, -1};
    *worker = (Worker){.state = WORKER_OFF, .fd = -1, .deadline = INFINITY};
    worker->log = open(place->log, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (worker->log >= 0 && worker->log < 3)
        worker->log = lift(worker->log);
    if (worker->log >= 0 && socket_pair(fd))
        worker->pid = spawn(place, fd[1], worker->log);
    int saved = errno;
    shut(&fd[1]);
    worker->fd = fd[0];
    if (worker->pid > 0) {
        worker->state = WORKER_IDLE;
        worker->in = buf_new();
        return true;
    }
    shut(&worker->fd);
    shut(&worker->log);
    return diag_world(diags, "", "cannot start a worker process: %s", strerror(saved));
}

// Watching ----------------------------------------------------------------------------

// Whether the limit of its stage is one of the time that it works.
static bool counts_work(const Worker *worker)
{
    switch (worker->stage) {
    case STAGE_RUN:
    case STAGE_TIME: return !worker->waits;
    case STAGE_NONE:
    case STAGE_BUILD: return isfinite(worker->limit_s);
    case STAGE_QUIT:
    case STAGE_OPEN:
    case STAGE_LIST:
    case STAGE_TURN: return false;
    }
    return false;
}

void worker_enter(Worker *worker, WorkerStage stage, int job, double limit_s)
{
    worker->stage = stage;
    worker->job = job;
    worker->limit_s = limit_s;
    worker->begun_s = clock_s();
    worker->deadline = worker->begun_s + limit_s;
    if (counts_work(worker))
        usage_begin(&worker->usage, worker->pid);
}

// Asked when its deadline has passed, which is put off if it has not worked as long.
static bool is_late(Worker *worker)
{
    double now = clock_s(), spent = now - worker->begun_s;
    if (!counts_work(worker) || spent >= PATIENCE * worker->limit_s)
        return true;
    double left = worker->limit_s - usage_s(&worker->usage);
    double end = worker->begun_s + PATIENCE * worker->limit_s;
    worker->deadline = MIN(now + MAX(left, LOOK_S), end);
    return left <= 0;
}

static bool is_gone(const Worker *worker)
{
    char byte;
    return recv(worker->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// One that died while it had nothing to do is not to be said to have died of this. Its
// death is seen when it is waited for.
void worker_send(Worker *worker, json_t *message, WorkerStage stage, int job,
                 double limit_s)
{
    bool emptied = ftruncate(worker->log, 0) == 0;
    (void)emptied; // what it printed before is only of no use
    worker->state = WORKER_BUSY;
    worker_enter(worker, is_gone(worker) ? STAGE_NONE : stage, job, limit_s);
    message_send(worker->fd, message);
}

// Reads what there is; false at the end.
static bool fill(Worker *worker)
{
    char chunk[65536];
    ssize_t n = recv(worker->fd, chunk, sizeof chunk, MSG_DONTWAIT);
    if (n > 0)
        buf_write(&worker->in, chunk, (size_t)n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static Worker *find_whole(Worker *worker, int n, json_t **message)
{
    for (int i = 0; i < n; i++) {
        bool broken = false;
        if (worker[i].state == WORKER_OFF)
            continue;
        *message = message_take(&worker[i].in, &broken);
        if (*message || broken)
            return &worker[i];
    }
    return NULL;
}

static Worker *find_late(Worker *worker, int n)
{
    for (int i = 0; i < n; i++)
        if (worker[i].state == WORKER_BUSY && clock_s() >= worker[i].deadline &&
            is_late(&worker[i])) {
            worker[i].late = true;
            return &worker[i];
        }
    return NULL;
}

// Who asks to stop is seen by looking.
static int wait_ms(const Worker *worker, int n, const Stop *stop)
{
    double first = INFINITY;
    for (int i = 0; i < n; i++)
        if (worker[i].state == WORKER_BUSY)
            first = MIN(first, worker[i].deadline);
    double left = MIN(first - clock_s(), stop_left_s(stop)) * 1e3;
    if (stop && (stop->asked || stop->of))
        left = MIN(left, LOOK_S * 1e3);
    return left > 1e6 ? 1000000 : left > 0 ? (int)left + 1 : 0;
}

// Waits for the sockets, and reads what came; a worker at its end, or NULL. *any: one of
// them had something to read.
static Worker *listen_to(Worker *worker, int n, int ms, bool *any)
{
    struct pollfd poller[PROCESSES_MAX];
    for (int i = 0; i < n; i++)
        poller[i] =
            (struct pollfd){worker[i].state == WORKER_OFF ? -1 : worker[i].fd, POLLIN, 0};
    *any = poll(poller, (nfds_t)n, ms) > 0;
    for (int i = 0; i < n && *any; i++)
        if (poller[i].fd >= 0 && poller[i].revents && !fill(&worker[i]))
            return &worker[i];
    return NULL;
}

// What has arrived is read before anybody is judged late: this process may have been held
// up itself.
Worker *worker_wait(Worker *worker, int n, const Stop *stop, bool waits, json_t **message)
{
    bool alive = false, any = true;
    *message = NULL;
    for (int i = 0; i < n; i++)
        alive |= worker[i].state != WORKER_OFF;
    while (alive && (any || waits) && !stop_due(stop)) {
        Worker *found = find_whole(worker, n, message);
        if (!found)
            found = listen_to(worker, n, waits ? wait_ms(worker, n, stop) : 0, &any);
        if (!found && !any)
            found = find_late(worker, n);
        if (found)
            return found;
    }
    return NULL;
}

// Ending ------------------------------------------------------------------------------

// The end of what the worker printed: an assertion of a driver explains a crash.
static void append_tail(int log, Buf *why)
{
    char tail[TAIL];
    off_t size = lseek(log, 0, SEEK_END);
    ssize_t n = pread(log, tail, sizeof tail, size > TAIL ? size - TAIL : 0);
    for (ssize_t i = 0; i < n; i++)
        if ((unsigned char)tail[i] < ' ' && tail[i] != '\n' && tail[i] != '\t')
            tail[i] = ' ';
    if (n > 0) {
        buf_puts(why, "it printed:\n");
        buf_write(why, tail, (size_t)n);
    }
}

static void describe_death(const Worker *worker, int status, Buf *why)
{
    if (worker->late)
        buf_printf(why, "over the time limit of %g s while %s\n", worker->limit_s,
                   stage_name[worker->stage]);
    else if (WIFSIGNALED(status))
        buf_printf(why, "ended by signal %d (%s) while %s\n", WTERMSIG(status),
                   strsignal(WTERMSIG(status)), stage_name[worker->stage]);
    else
        buf_printf(why, "the worker ended with status %d while %s\n", WEXITSTATUS(status),
                   stage_name[worker->stage]);
}

// What a kernel, its compiler or their libraries end by is their own doing.
static bool is_own_signal(int signal)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    for (int i = 0; i < COUNTOF(own); i++)
        if (signal == own[i])
            return true;
    return false;
}

bool worker_end(Worker *worker, Buf *why)
{
    int status = 0;
    if (worker->state == WORKER_OFF)
        return false;
    kill(-worker->pid, SIGKILL); // does not change the status of one already dead
    kill(worker->pid, SIGKILL);
    while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (why) {
        describe_death(worker, status, why);
        append_tail(worker->log, why);
    }
    shut(&worker->fd);
    shut(&worker->log);
    buf_release(&worker->in);
    usage_release(&worker->usage);
    bool killed = !worker->late && WIFSIGNALED(status) && !is_own_signal(WTERMSIG(status));
    worker->state = WORKER_OFF;
    worker->late = false;
    return killed;
}
