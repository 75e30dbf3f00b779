// SPDX-License-Identifier: Apache-2.0
//
// A runner at the other end of a link. Jobs go there and trials come back as JSON, in the
// form in which workers get them; the data do not travel: both sides made the same from the
// same problem and seed.
//
//   there   {"jobs": [JOB, ...], "cutoff_ns": T, "left_s": T, "stream": n} ...
//           {"quit": true}
//   back    {"info": INFO, "window": N} or {"log": TEXT};
//           {"job": k, "trial": TRIAL, "stream": n} ...
//
// Its window is the number of jobs that it should have: some at work, others waiting for
// room. A {"log": TEXT} in place of a trial says why it cannot go on. Once opened, both
// ends say {"alive": true} every second; one that is silent for long is lost, whatever
// became of it. When the time that is left is over both ends drop what is under way; a
// trial that still comes is known by the number of its stream.
#include "measure/parts.h"
#include "measure/peers.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WINDOW = 2 }; // batches of a runner that are to be with it
static const double SILENCE_S = 20, OPEN_S = 1800; // a reference may take long

// Messages --------------------------------------------------------------------------------

// Takes the message.
static bool put(const Link *link, json_t *message)
{
    AUTO_FREE char *text = json_dumps(message, JSON_COMPACT);
    bool ok = text && link->send(link->end, text, strlen(text));
    json_decref(message);
    return ok;
}

// NULL: nothing came in time, or no JSON.
static json_t *get(const Link *link, double limit_s)
{
    AutoBuf text = buf_new();
    return link->receive(link->end, &text, limit_s)
               ? json_loadb(text.text, text.len, 0, NULL)
               : NULL;
}

// Voices ----------------------------------------------------------------------------------

// What one end says, by a thread every second that it is alive.
typedef struct {
    const Link *link;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    pthread_t thread;
    bool beats, over;
} Voice;

static bool say(Voice *voice, json_t *message)
{
    pthread_mutex_lock(&voice->lock);
    bool ok = put(voice->link, message);
    pthread_mutex_unlock(&voice->lock);
    return ok;
}

static void *beat(void *user)
{
    Voice *voice = user;
    pthread_mutex_lock(&voice->lock);
    while (!voice->over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&voice->ended, &voice->lock, &until);
        if (!voice->over)
            put(voice->link, json_pack("{s:b}", "alive", 1));
    }
    pthread_mutex_unlock(&voice->lock);
    return NULL;
}

// It must stay where it is until it is closed.
static void voice_open(Voice *voice, const Link *link)
{
    *voice = (Voice){.link = link};
    pthread_mutex_init(&voice->lock, NULL);
    pthread_cond_init(&voice->ended, NULL);
    voice->beats = thread_start(&voice->thread, beat, voice);
}

static void voice_close(Voice *voice)
{
    pthread_mutex_lock(&voice->lock);
    voice->over = true;
    pthread_cond_broadcast(&voice->ended);
    pthread_mutex_unlock(&voice->lock);
    if (voice->beats)
        pthread_join(voice->thread, NULL);
    pthread_cond_destroy(&voice->ended);
    pthread_mutex_destroy(&voice->lock);
}

// Here ------------------------------------------------------------------------------------

typedef struct {
    const Link *link;
    Voice voice;
    const Stop *stop;
    DeviceInfo info;
    int window;
    int stream; // number of the one at work
} Remote;

static void *remote_open(const RunnerPeer *peer, const RunnerConfig *config, Diags *diags)
{
    json_auto_t *hello = get(peer->link, OPEN_S);
    const json_t *info = json_object_get(hello, "info");
    Remote *remote = NULL;
    if (info) {
        remote = xcalloc(1, sizeof *remote);
        remote->link = peer->link;
        remote->stop = config->stop;
        voice_open(&remote->voice, remote->link);
        info_from_json(info, &remote->info);
        remote->window = MAX((int)json_int_of(hello, "window", 1), 1);
    } else {
        diag_world(diags, "", "%s", hello ? json_text_of(hello, "log") : "no answer");
    }
    return remote;
}

static const DeviceInfo *remote_info(const void *opened)
{
    return &((const Remote *)opened)->info;
}

// What is under way there.
typedef struct {
    Remote *remote;
    RunnerNext *next;
    RunnerDone *done;
    void *user;
    double cutoff_ns;
    int sent, under;
    bool *seen; // trials that came, by number
} Sending;

// Sends jobs as long as there are some and fewer are under way than fit; false: it is gone.
static bool send_jobs(Sending *s)
{
    json_t *jobs = json_array();
    const Job *job;
    for (; s->under < s->remote->window && (job = s->next(s->user, s->sent)); s->under++) {
        json_array_append_new(jobs, job_to_json(job, s->sent));
        s->seen = xrealloc(s->seen, (size_t)s->sent + 1);
        s->seen[s->sent++] = false;
    }
    if (json_array_size(jobs) == 0) {
        json_decref(jobs);
        return true;
    }
    json_t *message = json_pack("{s:o}", "jobs", jobs);
    json_set_number(message, "cutoff_ns", s->cutoff_ns);
    json_set_number(message, "left_s", stop_left_s(s->remote->stop));
    json_object_set_new(message, "stream", json_integer(s->remote->stream));
    return say(&s->remote->voice, message);
}

static void take_trial(Sending *s, const json_t *message)
{
    Trial trial;
    int number = (int)json_int_of(message, "job", -1);
    if (number < 0 || number >= s->sent || s->seen[number] ||
        json_int_of(message, "stream", 0) != s->remote->stream)
        return;
    s->seen[number] = true;
    s->under--;
    trial_from_json(json_object_get(message, "trial"), &trial);
    s->cutoff_ns = fmin(s->cutoff_ns, s->done(s->user, number, &trial));
    trial_release(&trial);
}

static bool remote_run(void *opened, RunnerNext *next, double cutoff_ns, RunnerDone *done,
                       void *user, Diags *diags)
{
    Sending s = {
        .remote = opened, .next = next, .done = done, .user = user, .cutoff_ns = cutoff_ns};
    bool ok = true;
    s.remote->stream++;
    while (!stop_due(s.remote->stop) && (ok = send_jobs(&s)) && s.under > 0) {
        json_t *message = get(s.remote->link, SILENCE_S);
        const json_t *log = json_object_get(message, "log");
        if (json_object_get(message, "trial"))
            take_trial(&s, message);
        if (log)
            diag_world(diags, "", "%s", json_text_of(message, "log"));
        ok = message && !log;
        json_decref(message);
        if (!ok)
            break;
    }
    if (!ok && !diags->list.len)
        diag_world(diags, "", "it does not answer any more");
    free(s.seen);
    return ok;
}

void remote_dismiss(const Link *link)
{
    put(link, json_pack("{s:b}", "quit", 1));
}

static void remote_close(void *opened)
{
    AUTO_FREE Remote *remote = opened;
    say(&remote->voice, json_pack("{s:b}", "quit", 1));
    voice_close(&remote->voice);
}

const PeerKind peer_remote = {"remote", remote_open, remote_info, remote_run, remote_close};

// There -----------------------------------------------------------------------------------

// A job that came, and goes when its trial is sent.
typedef struct {
    Arena *arena;
    const Job *job;
    int number, stream; // at the other end
} Order;

typedef struct {
    const Link *link;
    Voice voice;
    bool quit; // no more is to come
    double cutoff_ns;
    Stop *stop;       // of the runner
    VEC(Order) order; // of the stream at work, by number
} Serving;

static void add_order(Serving *serving, const json_t *job, int stream)
{
    Order order = {
        .arena = arena_new(), .number = (int)json_int_of(job, "job", -1), .stream = stream};
    order.job = job_from_json(order.arena, job);
    VEC_PUSH(NULL, &serving->order, order);
}

// Takes the message.
static void take_orders(Serving *serving, json_t *message)
{
    const json_t *jobs = json_object_get(message, "jobs");
    serving->quit |= json_object_get(message, "quit") != NULL;
    serving->cutoff_ns = json_number_of(message, "cutoff_ns", INFINITY);
    int stream = (int)json_int_of(message, "stream", 0);
    if (jobs)
        serving->stop->end_s = clock_s() + json_number_of(message, "left_s", INFINITY);
    for (size_t i = 0; i < json_array_size(jobs); i++)
        add_order(serving, json_array_get(jobs, i), stream);
    json_decref(message);
}

static const Job *next_order(void *user, int number)
{
    Serving *serving = user;
    json_t *message;
    while ((message = get(serving->link, 0)))
        take_orders(serving, message);
    return number < serving->order.len ? serving->order.at[number].job : NULL;
}

static double send_trial(void *user, int number, Trial *trial)
{
    Serving *serving = user;
    Order *order = &serving->order.at[number];
    say(&serving->voice, json_pack("{s:i,s:i,s:o}", "job", order->number, "stream",
                                   order->stream, "trial", trial_to_json(trial)));
    arena_free(order->arena);
    order->arena = NULL;
    return serving->cutoff_ns;
}

// Why it cannot go on: what was said last.
static json_t *parting(const Diags *diags)
{
    int n = diags->list.len;
    return json_pack("{s:o}", "log", json_text(n ? diags->list.at[n - 1].message : ""));
}

// Serves as long as jobs are there; false: the runner is broken, which it says.
static bool serve_jobs(Runner *runner, Serving *serving, Diags *diags)
{
    bool ok =
        runner_stream(runner, next_order, serving->cutoff_ns, send_trial, serving, diags);
    if (!ok)
        say(&serving->voice, parting(diags));
    for (int i = 0; i < serving->order.len; i++)
        if (serving->order.at[i].arena)
            arena_free(serving->order.at[i].arena);
    serving->order.len = 0;
    return ok;
}

bool remote_serve(Runner *runner, Stop *stop, const Link *link, Diags *diags)
{
    Serving serving = {.link = link, .stop = stop};
    if (!runner) {
        put(link, parting(diags));
        return false;
    }
    voice_open(&serving.voice, link);
    bool ok = say(&serving.voice,
                  json_pack("{s:o,s:i}", "info", info_to_json(runner_device(runner)),
                            "window", WINDOW * runner_batch(runner)));
    bool broken = false;
    double limit_s = OPEN_S; // the other end may still be at its reference
    while (ok && !serving.quit && !broken && !stop_asked(stop)) {
        json_t *message = get(link, limit_s);
        ok = message;
        limit_s = SILENCE_S;
        take_orders(&serving, message);
        broken = serving.order.len > 0 && !serve_jobs(runner, &serving, diags);
    }
    if (!ok)
        diag_world(diags, "C061", "the search that this process served is gone");
    free(serving.order.at);
    voice_close(&serving.voice);
    return ok && !broken;
}
