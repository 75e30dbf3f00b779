// SPDX-License-Identifier: Apache-2.0
//
// Running points as a stream: each is asked for when a device, of one or several, has room
// for it, and told as soon as its trial is done. A strategy that does not learn keeps all
// of them busy until it has nothing left, or waits for all that it asked for. One that
// learns is asked for many at a time, which it answers from the same model: half as many as
// may be under way whenever the other half is done.

#include "tune/internal.h"

#include <math.h>
#include <stdlib.h>

enum {
    PENDING_MOST = 256, // points under way: of one device, and of a strategy that learns
    LATE_MOST = 16      // points that are too late, after which none is asked for
};
// What is under way is lost when the run is killed: on a processor, which times nothing
// before it has compiled many, as much as takes a few seconds.
static const double PENDING_S = 4;

typedef struct Pending {
    Arena *arena;
    Candidate candidate;
    Point point;
    struct Pending *next; // of those that are finished
} Pending;

struct TrialStream {
    Tune *t;
    ArenaMark scratch;
    NextPoint *next;
    bool told, store_failed;
    VEC(Pending *) pending; // by number; NULL: finished
    Pending *finished;      // to be used again
    int running;
    int wanted;  // points still to be asked for before the strategy is left to learn
    bool dry;    // it has none, or none before all that run are told
    bool begins; // the reference is being made
    int late;    // points in a row that would take longer than is left
};

static void finish(TrialStream *s, Pending *pending)
{
    candidate_release(&pending->candidate);
    arena_free(pending->arena);
    pending->next = s->finished;
    s->finished = pending;
}

static double on_done(void *user, int number, Trial *trial)
{
    TrialStream *s = user;
    Pending *pending = s->pending.at[number];
    tune_spent(s->t, &pending->candidate.job, trial);
    if (!s->store_failed)
        s->store_failed = !tune_take_trial(s->t, s->told, &pending->point, trial);
    s->pending.at[number] = NULL;
    s->running--;
    finish(s, pending);
    return tune_cutoff_ns(s->t);
}

static Pending *new_pending(TrialStream *s, const Point *point)
{
    Pending *pending = s->finished ? s->finished : NEW(s->t->scratch, Pending);
    s->finished = s->finished ? s->finished->next : NULL;
    *pending = (Pending){.arena = arena_new(), .point = *point};
    return pending;
}

static const Job *start(TrialStream *s, const Point *point)
{
    Tune *t = s->t;
    Pending *pending = new_pending(s, point);
    IrMark mark = ir_mark(t->problem->ir);
    Diags quiet = {.arena = pending->arena};
    bool ok = tune_candidate(t, point, pending->arena, &pending->candidate, &quiet);
    ir_release(t->problem->ir, mark);
    if (!ok) {
        s->store_failed |= !tune_take_unlowered(t, s->told, point, &quiet);
        finish(s, pending);
        return NULL;
    }
    if (!tune_compiles_in_time(t, &pending->candidate.job)) {
        s->late++;
        finish(s, pending);
        return &job_later;
    }
    s->late = 0;
    VEC_PUSH(t->scratch, &s->pending, pending);
    s->running++;
    return &pending->candidate.job;
}

// How many may run now.
static int most_pending(const Tune *t)
{
    int most = t->search->kind->learns ? MIN(runner_batch(t->runner), PENDING_MOST)
                                       : PENDING_MOST * (1 + runner_peers(t->runner));
    return tune_trials_in(t, t->device->is_cpu ? PENDING_S : INFINITY, most);
}

// Whether a further point may be asked for. While the reference is made, only until it is.
static bool has_room(TrialStream *s)
{
    Tune *t = s->t;
    int most = most_pending(t);
    if (s->store_failed || s->late >= LATE_MOST || !tune_budget_left(t) ||
        (s->begins && tune_reference_made(t)) ||
        (t->budget_trials && t->result->trials + s->running >= t->budget_trials) ||
        s->running >= most || (s->dry && s->running > 0))
        return false;
    if (t->search->kind->learns && s->wanted <= 0 && s->running <= most / 2)
        s->wanted = most - s->running;
    return !t->search->kind->learns || s->wanted > 0;
}

static const Job *next_job(void *user, int number)
{
    TrialStream *s = user;
    Point point;
    while (has_room(s)) {
        s->dry = !s->next(s->t, &point);
        if (s->dry)
            break;
        s->wanted--;
        if (tune_take_known(s->t, s->told, &point))
            continue;
        const Job *job = start(s, &point);
        if (job)
            return job;
    }
    return NULL;
}

static TrialStream *open_stream(Tune *t, NextPoint *next, bool told)
{
    TrialStream *s = xcalloc(1, sizeof *s);
    *s = (TrialStream){
        .t = t, .scratch = arena_mark(t->scratch), .next = next, .told = told};
    return s;
}

static void close_stream(TrialStream *s)
{
    for (int i = 0; i < s->pending.len; i++)
        if (s->pending.at[i])
            finish(s, s->pending.at[i]);
    arena_reset(s->t->scratch, s->scratch);
    free(s);
}

// Only where the budget is time: else the first of few trials are to be those of points
// that were asked for when all before them were known.
bool tune_stream_begin(Tune *t, NextPoint *next, bool told)
{
    bool wanted = isfinite(t->budget_s) && !t->budget_trials && !t->options->npeer &&
                  !t->options->no_search;
    if (!wanted || !runner_begins(t->runner))
        return true;
    t->begun = open_stream(t, next, told);
    t->begun->begins = true;
    bool ok = runner_begin(t->runner, next_job, t->begun, t->diags);
    t->begun->begins = false;
    return ok && !t->begun->store_failed;
}

void tune_stream_drop(Tune *t)
{
    if (t->begun)
        close_stream(t->begun);
    t->begun = NULL;
}

bool tune_stream(Tune *t, NextPoint *next, bool told)
{
    TrialStream *s = t->begun ? t->begun : open_stream(t, next, told);
    t->begun = NULL;
    s->late = 0;
    bool ok = runner_stream(t->runner, next_job, tune_cutoff_ns(t), on_done, s, t->diags) &&
              !s->store_failed;
    close_stream(s);
    return ok;
}
