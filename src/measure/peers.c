// SPDX-License-Identifier: Apache-2.0
//
// Sharing a stream of jobs: every device takes the next one when it has room for it, so
// that all are busy until there are no more. While another asks too, none takes many more
// than that one has, or a few jobs would all be with one; what a device has not done when
// it is lost goes to the others. A device that finds no job waits until something is done
// anywhere: strategies may then have more.
//
// A peer's thread lives as long as it, because workers end with the thread that started
// them. Jobs are made, and what became of them is told, by one thread at a time.
#include "measure/peers.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 4 }; // jobs that a device may take whatever others have

typedef struct {
    const Job *job;
    int number; // in the whole stream
    bool done;
} TakenJob;

typedef VEC(TakenJob) TakenList;

typedef struct PeerStream PeerStream;

// What one device has of a stream.
typedef struct {
    PeerStream *stream;
    atomic_bool asks; // wants more than it has; set before the lock, which may take long
    int under;        // jobs under way
    TakenList taken;  // since it began, by its own numbers
    unsigned seen;    // changes of the stream when there was no job for it
} DevicePart;

struct PeerStream {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    RunnerNext *next;
    RunnerDone *done;
    void *user;
    const Stop *stop;
    int asked, under; // jobs taken, and under way, of all devices
    TakenList back;   // given back by those that are lost
    unsigned changes;
    bool over;
    double cutoff_ns;
    int nparts;
    DevicePart *part; // the first is the runner's own
};

typedef enum { POST_OPENING, POST_IDLE, POST_BUSY, POST_LOST } PostState;

typedef struct {
    const RunnerPeer *peer;
    const RunnerConfig *config;
    Peers *peers;
    pthread_t thread;
    bool started;
    PostState state;
    DeviceInfo info;
    Diags diags; // its own: two threads must not write to one
} Post;

struct Peers {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool quit;
    const Stop *stop;   // of the runner
    PeerStream *stream; // at work; NULL: none
    int serial;         // of the stream
    int n;
    Post *post;
};

// A part of a stream ----------------------------------------------------------------------

static void tell_change(PeerStream *stream)
{
    stream->changes++;
    pthread_cond_broadcast(&stream->changed);
}

static bool is_ahead(const DevicePart *part)
{
    const PeerStream *stream = part->stream;
    for (int i = 0; i < stream->nparts; i++)
        if (stream->part[i].asks && part->under >= 2 * stream->part[i].under + LEAST)
            return true;
    return false;
}

static bool is_over(PeerStream *stream)
{
    if (!stream->over && stop_due(stream->stop)) {
        stream->over = true;
        tell_change(stream);
    }
    return stream->over;
}

static TakenJob take_next(PeerStream *stream)
{
    if (is_over(stream))
        return (TakenJob){0};
    if (stream->back.len)
        return stream->back.at[--stream->back.len];
    TakenJob taken = {.number = stream->asked};
    do
        taken.job = stream->next(stream->user, stream->asked);
    while (taken.job == &job_later);
    stream->asked += taken.job != NULL;
    return taken;
}

static const Job *part_next(void *user, int number)
{
    DevicePart *part = user;
    PeerStream *stream = part->stream;
    TakenJob taken = {0};
    part->asks = true;
    pthread_mutex_lock(&stream->lock);
    if (number != part->taken.len)
        BUG("a job of a stream was not asked for in turn");
    if (!is_ahead(part)) {
        taken = take_next(stream);
        if (!taken.job && !stream->under && !stream->over) {
            stream->over = true; // nothing can change any more
            tell_change(stream);
        }
    }
    if (taken.job) {
        VEC_PUSH(NULL, &part->taken, taken);
        part->under++;
        stream->under++;
        part->asks = false;
    }
    part->seen = stream->changes;
    pthread_mutex_unlock(&stream->lock);
    return taken.job;
}

static double part_done(void *user, int number, Trial *trial)
{
    DevicePart *part = user;
    PeerStream *stream = part->stream;
    TakenJob *taken = &part->taken.at[number];
    pthread_mutex_lock(&stream->lock);
    taken->done = true;
    part->under--;
    stream->under--;
    double cutoff = stream->done(stream->user, taken->number, trial);
    stream->cutoff_ns = cutoff = fmin(stream->cutoff_ns, cutoff);
    tell_change(stream);
    pthread_mutex_unlock(&stream->lock);
    return cutoff;
}

// Gives back what is not done, at the end of a run that may have failed.
static void part_return(DevicePart *part, bool lost)
{
    PeerStream *stream = part->stream;
    pthread_mutex_lock(&stream->lock);
    for (int i = 0; i < part->taken.len; i++)
        if (!part->taken.at[i].done)
            VEC_PUSH(NULL, &stream->back, part->taken.at[i]);
    if (part->under)
        tell_change(stream);
    stream->under -= part->under;
    part->under = part->taken.len = 0;
    part->asks = part->asks && !lost;
    pthread_mutex_unlock(&stream->lock);
}

// False: there is none any more.
static bool wait_for_job(DevicePart *part, double *cutoff_ns)
{
    PeerStream *stream = part->stream;
    pthread_mutex_lock(&stream->lock);
    while (!is_over(stream) && part->seen == stream->changes)
        pthread_cond_wait(&stream->changed, &stream->lock);
    bool more = !stream->over;
    *cutoff_ns = stream->cutoff_ns;
    pthread_mutex_unlock(&stream->lock);
    return more;
}

// Takes and runs jobs until there are no more; false: whoever runs is lost.
static bool work(DevicePart *part, OwnRun *run, void *on, Diags *diags)
{
    double cutoff_ns;
    bool ok = true;
    while (ok && wait_for_job(part, &cutoff_ns)) {
        ok = run(on, part_next, cutoff_ns, part_done, part, diags);
        part_return(part, !ok);
    }
    return ok;
}

// Threads ---------------------------------------------------------------------------------

static void enter(Post *post, PostState state)
{
    pthread_mutex_lock(&post->peers->lock);
    post->state = state;
    pthread_cond_broadcast(&post->peers->changed);
    pthread_mutex_unlock(&post->peers->lock);
}

// The post's part of the next stream after the serial-th; NULL: there will be none.
static DevicePart *next_part(Post *post, int *serial)
{
    Peers *peers = post->peers;
    pthread_mutex_lock(&peers->lock);
    while (!peers->quit &&
           (post->state == POST_LOST || !peers->stream || peers->serial == *serial))
        pthread_cond_wait(&peers->changed, &peers->lock);
    PeerStream *stream = peers->quit ? NULL : peers->stream;
    *serial = peers->serial;
    if (stream)
        post->state = POST_BUSY;
    pthread_mutex_unlock(&peers->lock);
    return stream ? &stream->part[1 + (post - peers->post)] : NULL;
}

static void *attend(void *user)
{
    Post *post = user;
    const PeerKind *kind = post->peer->kind;
    int serial = 0;
    bool ok = true;
    DevicePart *part;
    void *opened = kind->open(post->peer, post->config, &post->diags);
    if (opened)
        post->info = *kind->info(opened);
    enter(post, opened ? POST_IDLE : POST_LOST);
    while (opened && ok && (part = next_part(post, &serial))) {
        ok = work(part, kind->run, opened, &post->diags);
        enter(post, ok ? POST_IDLE : POST_LOST);
    }
    if (opened)
        kind->close(opened);
    return NULL;
}

static bool any_in(const Peers *peers, PostState state)
{
    for (int i = 0; i < peers->n; i++)
        if (peers->post[i].state == state)
            return true;
    return false;
}

static void wait_while(Peers *peers, PostState state)
{
    pthread_mutex_lock(&peers->lock);
    while (any_in(peers, state))
        pthread_cond_wait(&peers->changed, &peers->lock);
    pthread_mutex_unlock(&peers->lock);
}

// Opening ---------------------------------------------------------------------------------

// Why a peer is not there, or not any more; said once.
static void tell_loss(Post *post, const char *what, Diags *diags)
{
    AutoBuf why = buf_new();
    if (post->diags.list.len)
        buf_printf(&why, ": %s", post->diags.list.at[0].message);
    diag_warning(diags, span_none, "D001", "%s %s%s",
                 post->peer->device ? post->peer->device : post->peer->kind->name, what,
                 why.text);
    post->diags.list.len = 0;
}

static void check_opened(Post *post, const DeviceInfo *device, Diags *diags)
{
    if (post->state == POST_LOST) {
        tell_loss(post, "takes no part", diags);
    } else if (strcmp(post->info.fingerprint, device->fingerprint) != 0) {
        diag_warning(diags, span_none, "D002",
                     "%s (%s) takes no part: it is not comparable to %s (%s)",
                     post->info.id, post->info.name, device->id, device->name);
        enter(post, POST_LOST);
    }
}

Peers *peers_open(const RunnerConfig *config, const DeviceInfo *device, Diags *diags)
{
    Peers *peers = xcalloc(1, sizeof *peers);
    pthread_mutex_init(&peers->lock, NULL);
    pthread_cond_init(&peers->changed, NULL);
    peers->post = xcalloc((size_t)config->npeer, sizeof *peers->post);
    peers->n = config->npeer;
    peers->stop = config->stop;
    for (int i = 0; i < peers->n; i++) {
        Post *post = &peers->post[i];
        *post = (Post){.peer = &config->peer[i], .config = config, .peers = peers};
        post->diags = (Diags){.arena = arena_new()};
        post->started = thread_start(&post->thread, attend, post);
        if (!post->started)
            enter(post, POST_LOST);
    }
    wait_while(peers, POST_OPENING);
    for (int i = 0; i < peers->n; i++)
        check_opened(&peers->post[i], device, diags);
    return peers;
}

void peers_close(Peers *peers)
{
    if (!peers)
        return;
    pthread_mutex_lock(&peers->lock);
    peers->quit = true;
    pthread_cond_broadcast(&peers->changed);
    pthread_mutex_unlock(&peers->lock);
    for (int i = 0; i < peers->n; i++) {
        if (peers->post[i].started)
            pthread_join(peers->post[i].thread, NULL);
        arena_free(peers->post[i].diags.arena);
    }
    pthread_cond_destroy(&peers->changed);
    pthread_mutex_destroy(&peers->lock);
    free(peers->post);
    free(peers);
}

int peers_count(Peers *peers)
{
    int n = 0;
    pthread_mutex_lock(&peers->lock);
    for (int i = 0; i < peers->n; i++)
        n += peers->post[i].state != POST_LOST;
    pthread_mutex_unlock(&peers->lock);
    return n;
}

// Running ---------------------------------------------------------------------------------

static void begin(Peers *peers, PeerStream *stream)
{
    pthread_mutex_lock(&peers->lock);
    peers->stream = stream;
    peers->serial++;
    for (int i = 0; i < peers->n; i++)
        if (peers->post[i].state == POST_IDLE)
            peers->post[i].state = POST_BUSY; // until it has seen that nothing is left
    pthread_cond_broadcast(&peers->changed);
    pthread_mutex_unlock(&peers->lock);
}

// Waits for the peers, and says which were lost.
static void end(Peers *peers, const bool *lost_before, Diags *diags)
{
    wait_while(peers, POST_BUSY);
    pthread_mutex_lock(&peers->lock);
    peers->stream = NULL;
    pthread_mutex_unlock(&peers->lock);
    for (int i = 0; i < peers->n; i++)
        if (peers->post[i].state == POST_LOST && !lost_before[i])
            tell_loss(&peers->post[i], "is lost, and others go on with what it had", diags);
}

static void stream_open(PeerStream *stream, int nparts)
{
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    stream->changes = 1; // a part has seen 0
    stream->nparts = nparts;
    stream->part = xcalloc((size_t)nparts, sizeof *stream->part);
    for (int i = 0; i < nparts; i++)
        stream->part[i].stream = stream;
}

static void stream_stop(PeerStream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->over = true;
    tell_change(stream);
    pthread_mutex_unlock(&stream->lock);
}

static void stream_close(PeerStream *stream)
{
    for (int i = 0; i < stream->nparts; i++)
        free(stream->part[i].taken.at);
    free(stream->part);
    free(stream->back.at);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
}

bool peers_run(Peers *peers, OwnRun *own, void *runner, RunnerNext *next, double cutoff_ns,
               RunnerDone *done, void *user, Diags *diags)
{
    PeerStream stream = {.next = next,
                         .done = done,
                         .user = user,
                         .stop = peers->stop,
                         .cutoff_ns = cutoff_ns};
    AUTO_FREE bool *lost = xcalloc((size_t)peers->n + 1, sizeof *lost);
    // The caller's may be written to by next and done, in any thread.
    Diags mine = {.arena = arena_new()};
    stream_open(&stream, 1 + peers->n);
    for (int i = 0; i < peers->n; i++)
        lost[i] = peers->post[i].state == POST_LOST;
    begin(peers, &stream);
    bool ok = work(&stream.part[0], own, runner, &mine);
    if (!ok)
        stream_stop(&stream);
    end(peers, lost, diags);
    for (int i = 0; i < mine.list.len; i++)
        diag_world(diags, mine.list.at[i].code, "%s", mine.list.at[i].message);
    arena_free(mine.arena);
    stream_close(&stream);
    return ok;
}

// A device of this machine ----------------------------------------------------------------

static void *local_open(const RunnerPeer *peer, const RunnerConfig *config, Diags *diags)
{
    RunnerConfig own = *config;
    own.device = peer->device;
    own.share = MAX(config->share, 1);
    own.peer = NULL;
    own.npeer = 0;
    return runner_open(&own, diags);
}

static const DeviceInfo *local_info(const void *opened)
{
    return runner_device(opened);
}

static bool local_run(void *opened, RunnerNext *next, double cutoff_ns, RunnerDone *done,
                      void *user, Diags *diags)
{
    return runner_stream(opened, next, cutoff_ns, done, user, diags);
}

static void local_close(void *opened)
{
    runner_close(opened);
}

const PeerKind peer_local = {"local", local_open, local_info, local_run, local_close};
