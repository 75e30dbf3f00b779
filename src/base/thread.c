// SPDX-License-Identifier: Apache-2.0
//
// Threads with a stack of a known size. What walks expressions calls itself, as deep as the
// parser and inference let them be; a shell's `ulimit -s`, or a caller's thread, may have
// far less than that needs.
#include "base/base.h"

#include <signal.h>

static const size_t deep_bytes = (size_t)64 << 20, usual_bytes = (size_t)8 << 20,
                    enough_bytes = (size_t)6 << 20;

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
} Call;

static void *make_call(void *user)
{
    const Call *call = user;
    pthread_sigmask(SIG_SETMASK, &call->signals, NULL);
    call->work(call->user);
    return NULL;
}

// While it waits, this thread takes no signals: they are for the one that works.
void deep_call(void (*work)(void *), void *user)
{
    Call call = {work, user, {{0}}};
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

enum { THREADS_MOST = 16 };

void threads_call(void *(*work)(void *), void *user)
{
    pthread_t thread[THREADS_MOST];
    bool started[THREADS_MOST];
    int n = MIN(processors(), THREADS_MOST);
    for (int i = 1; i < n; i++)
        started[i] = thread_start(&thread[i], work, user);
    work(user);
    for (int i = 1; i < n; i++)
        if (started[i])
            pthread_join(thread[i], NULL);
}

typedef struct {
    PartWork *work;
    void *user;
    int64_t from, to;
} Part;

static void *do_part(void *user)
{
    const Part *part = user;
    part->work(part->user, part->from, part->to);
    return NULL;
}

// Threads are worth starting from so many elements each.
enum { PART_LEAST = 1 << 18, PARTS_MOST = 32 };

void parts_call(int64_t n, int64_t grain, PartWork *work, void *user)
{
    pthread_t thread[PARTS_MOST];
    Part part[PARTS_MOST];
    bool started[PARTS_MOST] = {false};
    int64_t most = MIN(n / PART_LEAST, MIN(processors(), PARTS_MOST));
    int parts = (int)MAX(most, 1);
    int64_t each = (n / parts + grain - 1) / grain * grain;
    for (int i = parts - 1; i >= 0; i--) {
        part[i] = (Part){work, user, MIN(i * each, n),
                         i + 1 == parts ? n : MIN((i + 1) * each, n)};
        started[i] = i > 0 && pthread_create(&thread[i], NULL, do_part, &part[i]) == 0;
        if (!started[i])
            do_part(&part[i]);
    }
    for (int i = 1; i < parts; i++)
        if (started[i])
            pthread_join(thread[i], NULL);
}
