// SPDX-License-Identifier: Apache-2.0
//
// A rig at the other end of a link. Jobs go there and trials come back as JSON, in the form
// in which workers get them; the data do not travel: both sides made the same from the same
// problem and seed.
//
//   there   {"jobs": [JOB, ...], "cutoff_ns": T} ... {"quit": true}
//   back    {"info": INFO} or {"log": TEXT}; {"job": k, "trial": TRIAL} ... {"end": OK}
//
// While it works the other end says {"alive": true} every second; one that is silent for
// long is lost, whatever became of it.
#include "measure/parts.h"
#include "measure/peers.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double SILENCE_S = 20, OPEN_S = 1800; // a reference may take long

// Messages --------------------------------------------------------------------------------

// Takes the message.
static bool put(const Link *link, json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT);
    bool ok = text && link->send(link->end, text, strlen(text));
    free(text);
    json_decref(message);
    return ok;
}

// NULL: nothing came in time, or no JSON.
static json_t *get(const Link *link, double limit_s)
{
    Buf text;
    buf_init(&text);
    json_t *message = link->receive(link->end, &text, limit_s)
                          ? json_loadb(text.text, text.len, 0, NULL)
                          : NULL;
    buf_release(&text);
    return message;
}

// Here ------------------------------------------------------------------------------------

typedef struct {
    const Link *link;
    DeviceInfo info;
} Remote;

static void *remote_open(const RigPeer *peer, const RigConfig *config, Diags *diags)
{
    json_t *hello = get(peer->link, OPEN_S);
    const json_t *info = json_object_get(hello, "info");
    Remote *remote = NULL;
    (void)config;
    if (info) {
        remote = xcalloc(1, sizeof *remote);
        remote->link = peer->link;
        info_from_json(info, &remote->info);
    } else {
        diag_world(diags, "", "%s", hello ? json_text_of(hello, "log") : "no answer");
    }
    json_decref(hello);
    return remote;
}

static const DeviceInfo *remote_info(const void *opened)
{
    return &((const Remote *)opened)->info;
}

static bool send_jobs(const Link *link, const Job *job, int n, double cutoff_ns)
{
    json_t *message = json_object(), *jobs = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(jobs, job_to_json(&job[i], i));
    json_object_set_new(message, "jobs", jobs);
    json_set_number(message, "cutoff_ns", cutoff_ns);
    return put(link, message);
}

static void take_trial(const json_t *message, int n, bool *seen, RigDone *done, void *user)
{
    Trial trial;
    int number = (int)json_int_of(message, "job", -1);
    if (number < 0 || number >= n || seen[number])
        return;
    seen[number] = true;
    trial_from_json(json_object_get(message, "trial"), &trial);
    done(user, number, &trial);
    trial_release(&trial);
}

static bool remote_run(void *opened, const Job *job, int n, double cutoff_ns, RigDone *done,
                       void *user, Diags *diags)
{
    Remote *remote = opened;
    bool sent = send_jobs(remote->link, job, n, cutoff_ns), ended = false, ok = false;
    bool *seen = xcalloc((size_t)n + 1, sizeof *seen);
    json_t *message;
    while (sent && !ended && (message = get(remote->link, SILENCE_S))) {
        ended = json_object_get(message, "end") != NULL;
        ok = json_is_true(json_object_get(message, "end"));
        if (json_object_get(message, "trial"))
            take_trial(message, n, seen, done, user);
        if (ended && !ok)
            diag_world(diags, "", "%s", json_text_of(message, "log"));
        json_decref(message);
    }
    if (!ended)
        diag_world(diags, "", "nothing was heard of it for %.0f s", SILENCE_S);
    free(seen);
    return ok;
}

static void remote_close(void *opened)
{
    Remote *remote = opened;
    put(remote->link, json_pack("{s:b}", "quit", 1));
    free(remote);
}

const PeerKind peer_remote = {"remote", remote_open, remote_info, remote_run, remote_close};

// There -----------------------------------------------------------------------------------

typedef struct {
    const Link *link;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
} Serving;

static bool say(Serving *serving, json_t *message)
{
    pthread_mutex_lock(&serving->lock);
    bool ok = put(serving->link, message);
    pthread_mutex_unlock(&serving->lock);
    return ok;
}

static void *beat(void *user)
{
    Serving *serving = user;
    pthread_mutex_lock(&serving->lock);
    while (!serving->over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&serving->ended, &serving->lock, &until);
        if (!serving->over)
            put(serving->link, json_pack("{s:b}", "alive", 1));
    }
    pthread_mutex_unlock(&serving->lock);
    return NULL;
}

static double send_trial(void *user, int job, Trial *trial)
{
    say(user, json_pack("{s:i,s:o}", "job", job, "trial", trial_to_json(trial)));
    return INFINITY;
}

static bool serve_jobs(Rig *rig, Serving *serving, const json_t *message)
{
    Arena *arena = arena_new();
    Diags diags;
    diags_init(&diags, arena);
    const json_t *jobs = json_object_get(message, "jobs");
    int n = (int)json_array_size(jobs);
    Job *job = NEW_ARRAY(arena, Job, n + 1);
    for (int i = 0; i < n; i++)
        job[i] = *job_from_json(arena, json_array_get(jobs, (size_t)i));
    bool ok = rig_run(rig, job, n, json_number_of(message, "cutoff_ns", INFINITY),
                      send_trial, serving, &diags);
    json_t *end = json_pack("{s:b}", "end", ok);
    if (!ok && diags.list.len)
        json_object_set_new(end, "log", json_text(diags.list.at[0].message));
    bool sent = say(serving, end);
    arena_free(arena);
    return sent && ok;
}

bool remote_serve(Rig *rig, const Link *link, const char *why)
{
    Serving serving = {.link = link};
    if (!rig)
        return put(link, json_pack("{s:o}", "log", json_text(why)));
    pthread_mutex_init(&serving.lock, NULL);
    pthread_cond_init(&serving.ended, NULL);
    pthread_t thread;
    bool beats = pthread_create(&thread, NULL, beat, &serving) == 0;
    bool ok = say(&serving, json_pack("{s:o}", "info", info_to_json(rig_device(rig))));
    json_t *message = NULL;
    while (ok && (message = get(link, INFINITY)) && !json_object_get(message, "quit")) {
        ok = serve_jobs(rig, &serving, message);
        json_decref(message);
        message = NULL;
    }
    ok = ok && message;
    json_decref(message);
    pthread_mutex_lock(&serving.lock);
    serving.over = true;
    pthread_cond_broadcast(&serving.ended);
    pthread_mutex_unlock(&serving.lock);
    if (beats)
        pthread_join(thread, NULL);
    pthread_cond_destroy(&serving.ended);
    pthread_mutex_destroy(&serving.lock);
    return ok;
}
