// SPDX-License-Identifier: Apache-2.0
//
// Sharing a batch: every device takes some of what is left, fewer the less there is (guided
// self-scheduling, Polychronopoulos and Kuck, 1987), so that all end together; what one has
// not done when it is lost goes back to the others.
//
// A peer's thread lives as long as it, because workers end with the thread that started
// them. What is told of trials is told by one thread at a time.
#include "measure/peers.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 4 }; // jobs taken at once, where there are as many

// A batch, shared by all that run it.
typedef struct {
    pthread_mutex_t lock;
    const Job *job;
    int n, devices;
    int *waiting; // numbers of jobs that nobody has, a stack
    int nwaiting;
    double cutoff_ns;
    RigDone *done;
    void *user;
} Batch;

typedef enum { POST_OPENING, POST_IDLE, POST_BUSY, POST_LOST } PostState;

typedef struct {
    const RigPeer *peer;
    const RigConfig *config;
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
    Batch *batch; // at work; NULL: none
    int serial;   // of the batch
    int n;
    Post *post;
};

// A part of a batch
// ------------------------------------------------------------------------

typedef struct {
    Batch *batch;
    int n, *number;
    Job *job;
    bool *done;
    double cutoff_ns; // the batch's when it was taken
} Part;

static int part_size(const Batch *batch)
{
    int share = (batch->nwaiting + 2 * batch->devices - 1) / (2 * batch->devices);
    return MIN(MAX(share, LEAST), batch->nwaiting);
}

static bool part_take(Batch *batch, Part *part)
{
    pthread_mutex_lock(&batch->lock);
    *part = (Part){.batch = batch, .n = part_size(batch), .cutoff_ns = batch->cutoff_ns};
    part->number = xcalloc((size_t)part->n + 1, sizeof *part->number);
    part->job = xcalloc((size_t)part->n + 1, sizeof *part->job);
    part->done = xcalloc((size_t)part->n + 1, sizeof *part->done);
    for (int i = 0; i < part->n; i++) {
        part->number[i] = batch->waiting[--batch->nwaiting];
        part->job[i] = batch->job[part->number[i]];
    }
    pthread_mutex_unlock(&batch->lock);
    return part->n > 0;
}

static void part_release(Part *part)
{
    Batch *batch = part->batch;
    pthread_mutex_lock(&batch->lock);
    for (int i = 0; i < part->n; i++)
        if (!part->done[i])
            batch->waiting[batch->nwaiting++] = part->number[i];
    pthread_mutex_unlock(&batch->lock);
    free(part->number);
    free(part->job);
    free(part->done);
}

static double on_done(void *user, int job, Trial *trial)
{
    Part *part = user;
    Batch *batch = part->batch;
    pthread_mutex_lock(&batch->lock);
    part->done[job] = true;
    double cutoff = batch->done(batch->user, part->number[job], trial);
    batch->cutoff_ns = MIN(batch->cutoff_ns, cutoff);
    cutoff = batch->cutoff_ns;
    pthread_mutex_unlock(&batch->lock);
    return cutoff;
}

// Takes and runs parts until there is nothing left; false: whoever runs is lost.
static bool work(Batch *batch, OwnRun *run, void *on, Diags *diags)
{
    Part part;
    bool ok = true, any = true;
    while (ok && (any = part_take(batch, &part))) {
        ok = run(on, part.job, part.n, part.cutoff_ns, on_done, &part, diags);
        part_release(&part);
    }
    if (!any)
        part_release(&part);
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

// The next batch after the serial-th; NULL: there will be none.
static Batch *next_batch(Post *post, int *serial)
{
    Peers *peers = post->peers;
    pthread_mutex_lock(&peers->lock);
    while (!peers->quit &&
           (post->state == POST_LOST || !peers->batch || peers->serial == *serial))
        pthread_cond_wait(&peers->changed, &peers->lock);
    Batch *batch = peers->quit ? NULL : peers->batch;
    *serial = peers->serial;
    if (batch)
        post->state = POST_BUSY;
    pthread_mutex_unlock(&peers->lock);
    return batch;
}

static void *attend(void *user)
{
    Post *post = user;
    const PeerKind *kind = post->peer->kind;
    int serial = 0;
    bool ok = true;
    Batch *batch;
    void *opened = kind->open(post->peer, post->config, &post->diags);
    if (opened)
        post->info = *kind->info(opened);
    enter(post, opened ? POST_IDLE : POST_LOST);
    while (opened && ok && (batch = next_batch(post, &serial))) {
        ok = work(batch, kind->run, opened, &post->diags);
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
    Buf why;
    buf_init(&why);
    if (post->diags.list.len)
        buf_printf(&why, ": %s", post->diags.list.at[0].message);
    diag_warning(diags, span_none, "D001", "%s %s%s",
                 post->peer->device ? post->peer->device : post->peer->kind->name, what,
                 why.text);
    buf_release(&why);
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

Peers *peers_open(const RigConfig *config, const DeviceInfo *device, Diags *diags)
{
    Peers *peers = xcalloc(1, sizeof *peers);
    pthread_mutex_init(&peers->lock, NULL);
    pthread_cond_init(&peers->changed, NULL);
    peers->post = xcalloc((size_t)config->npeer, sizeof *peers->post);
    peers->n = config->npeer;
    for (int i = 0; i < peers->n; i++) {
        Post *post = &peers->post[i];
        *post = (Post){.peer = &config->peer[i], .config = config, .peers = peers};
        diags_init(&post->diags, arena_new());
        post->started = pthread_create(&post->thread, NULL, attend, post) == 0;
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

int peers_count(const Peers *peers)
{
    int n = 0;
    for (int i = 0; i < peers->n; i++)
        n += peers->post[i].state != POST_LOST;
    return n;
}

// Running ---------------------------------------------------------------------------------

static void begin(Peers *peers, Batch *batch)
{
    pthread_mutex_lock(&peers->lock);
    peers->batch = batch;
    peers->serial++;
    for (int i = 0; i < peers->n; i++)
        if (peers->post[i].state == POST_IDLE)
            peers->post[i].state = POST_BUSY; // until it has seen that nothing is left
    pthread_cond_broadcast(&peers->changed);
    pthread_mutex_unlock(&peers->lock);
}

// Waits for the peers; false if none of them was lost.
static bool end(Peers *peers, const bool *lost_before, Diags *diags)
{
    bool lost = false;
    wait_while(peers, POST_BUSY);
    pthread_mutex_lock(&peers->lock);
    peers->batch = NULL;
    pthread_mutex_unlock(&peers->lock);
    for (int i = 0; i < peers->n; i++)
        if (peers->post[i].state == POST_LOST && !lost_before[i]) {
            tell_loss(&peers->post[i], "is lost, and others go on with what it had", diags);
            lost = true;
        }
    return lost;
}

bool peers_run(Peers *peers, OwnRun *own, void *rig, const Job *job, int n,
               double cutoff_ns, RigDone *done, void *user, Diags *diags)
{
    Batch batch = {.job = job,
                   .n = n,
                   .devices = 1 + peers_count(peers),
                   .nwaiting = n,
                   .cutoff_ns = cutoff_ns,
                   .done = done,
                   .user = user};
    bool *lost = xcalloc((size_t)peers->n + 1, sizeof *lost);
    Diags mine; // the caller's may be written to by done, in any thread
    diags_init(&mine, arena_new());
    pthread_mutex_init(&batch.lock, NULL);
    batch.waiting = xcalloc((size_t)n + 1, sizeof *batch.waiting);
    for (int i = 0; i < n; i++)
        batch.waiting[i] = n - 1 - i;
    for (int i = 0; i < peers->n; i++)
        lost[i] = peers->post[i].state == POST_LOST;
    begin(peers, &batch);
    bool ok = work(&batch, own, rig, &mine);
    if (end(peers, lost, diags) && ok) // what a lost one gave back
        ok = work(&batch, own, rig, &mine);
    for (int i = 0; i < mine.list.len; i++)
        diag_world(diags, mine.list.at[i].code, "%s", mine.list.at[i].message);
    pthread_mutex_destroy(&batch.lock);
    arena_free(mine.arena);
    free(batch.waiting);
    free(lost);
    return ok;
}

// A device of this machine ----------------------------------------------------------------

static void *local_open(const RigPeer *peer, const RigConfig *config, Diags *diags)
{
    RigConfig own = *config;
    own.device = peer->device;
    own.share = MAX(config->share, 1);
    own.peer = NULL;
    own.npeer = 0;
    return rig_open(&own, diags);
}

static const DeviceInfo *local_info(const void *opened)
{
    return rig_device(opened);
}

static bool local_run(void *opened, const Job *job, int n, double cutoff_ns, RigDone *done,
                      void *user, Diags *diags)
{
    return rig_run(opened, job, n, cutoff_ns, done, user, diags);
}

static void local_close(void *opened)
{
    rig_close(opened);
}

const PeerKind peer_local = {"local", local_open, local_info, local_run, local_close};
