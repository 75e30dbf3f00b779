// SPDX-License-Identifier: Apache-2.0
//
// Threads with a stack of a known size. What walks expressions calls itself, as deep as the
// parser and inference let them be; a shell's `ulimit -s`, or a caller's thread, may have
// far less than that needs.
#include "base/base.h"

#include <signal.h>
#include <stdatomic.h>

static const size_t deep_bytes = (size_t)128 << 20, usual_bytes = (size_t)8 << 20,
                    enough_bytes = (size_t)32 << 20;

bool thread_start(pthread_t *thread, void *(*work)(void *), void *user)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return false;
    bool ok = pthread_attr_setstacksize(&attr, deep_bytes) == 0 &&
              pthread_create(thread, &attr, work, user) == 0;
    pthread_attr_destroy(&attr);
    return ok;
}

void thread_defaults(void)
{
    pthread_attr_t attr;
    size_t size;
    if (pthread_getattr_default_np(&attr) != 0)
        return;
    if (pthread_attr_getstacksize(&attr, &size) == 0 && size < usual_bytes &&
        pthread_attr_setstacksize(&attr, usual_bytes) == 0)
        pthread_setattr_default_np(&attr);
    pthread_attr_destroy(&attr);
}

// Is there enough left of the stack of this thread? Stacks grow downwards.
static bool is_deep(void)
{
    pthread_attr_t attr;
    void *lowest;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return false;
    bool known = pthread_attr_getstack(&attr, &lowest, &size) == 0;
    pthread_attr_destroy(&attr);
    return known && (uintptr_t)&attr > (uintptr_t)lowest + enough_bytes;
}

typedef struct {
    void (*work)(void *);
    void *user;
    sigset_t signals;
} ThreadCall;

static void *make_call(void *user)
{
    const ThreadCall *call = user;
    pthread_sigmask(SIG_SETMASK, &call->signals, NULL);
    call->work(call->user);
    return NULL;
}

// While it waits, this thread takes no signals: they are for the one that works.
void deep_call(void (*work)(void *), void *user)
{
    ThreadCall call = {work, user, {{0}}};
    pthread_t thread;
    sigset_t all;
    if (is_deep()) {
        work(user);
        return;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &call.signals);
    bool started = thread_start(&thread, make_call, &call);
    if (started)
        pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &call.signals, NULL);
    if (!started) // no memory for one: as deep as this stack goes
        work(user);
}

// Several -------------------------------------------------------------------------------

typedef struct {
    TaskWork *work;
    void *user;
    int n;
    atomic_int next, threads;
} Tasks;

static void *do_tasks(void *user)
{
    Tasks *tasks = user;
    int thread = atomic_fetch_add(&tasks->threads, 1);
    for (int i; (i = atomic_fetch_add(&tasks->next, 1)) < tasks->n;)
        tasks->work(tasks->user, thread, i);
    return NULL;
}

// A thread that cannot be started leaves its share to the others.
void tasks_call(int n, TaskWork *work, void *user)
{
    Tasks tasks = {.work = work, .user = user, .n = n};
    pthread_t thread[THREADS_MOST];
    int wanted = MIN(MIN(processors(), THREADS_MOST), n) - 1, started = 0;
    while (started < wanted && thread_start(&thread[started], do_tasks, &tasks))
        started++;
    do_tasks(&tasks);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
}

typedef struct {
    PartWork *work;
    void *user;
    int64_t n, each;
} ThreadParts;

static void do_part(void *user, int thread, int i)
{
    const ThreadParts *parts = user;
    int64_t from = i * parts->each;
    if (from < parts->n)
        parts->work(parts->user, from, MIN(from + parts->each, parts->n));
}

// Threads are worth starting from so many elements each.
enum { PART_LEAST = 1 << 18 };

void parts_call(int64_t n, int64_t grain, PartWork *work, void *user)
{
    int parts = (int)MAX(MIN(n / PART_LEAST, processors()), 1);
    int64_t each = (n / parts + grain) / grain * grain;
    tasks_call(parts, do_part, &(ThreadParts){work, user, n, each});
}
