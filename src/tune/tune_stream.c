// SPDX-License-Identifier: Apache-2.0
//
// Running points as a stream: each is asked for when a device, of one or several, has room
// for it, and told as soon as its trial is done. A strategy that does not learn keeps all
// of them busy until it has nothing left, or waits for all that it asked for. One that
// learns is asked for many at a time, which it answers from the same model: half as many as
// may be under way whenever the other half is done.

#include "tune/internal.h"

#include <math.h>

enum { FLIGHTS = 256 }; // points under way: of one device, and of a strategy that learns
// What is under way is lost when the run is killed: on a processor, which times nothing
// before it has compiled many, as much as takes a few seconds.
static const double FLIGHT_S = 4;

typedef struct Flight {
    Arena *arena;
    Candidate candidate;
    Point point;
    struct Flight *next; // of those that have landed
} Flight;

typedef struct {
    Tune *t;
    NextPoint *next;
    bool told, store_failed;
    VEC(Flight *) flight; // by number; NULL: landed
    Flight *landed;       // to be used again
    int flying;
    int wanted; // points still to be asked for before the strategy is left to learn
    bool dry;   // it has none, or none before all those that fly are told
    bool late;  // a point would take longer than is left
} Stream;

static void land(Stream *s, Flight *flight)
{
    candidate_release(&flight->candidate);
    arena_free(flight->arena);
    flight->next = s->landed;
    s->landed = flight;
}

static double on_landing(void *user, int number, Trial *trial)
{
    Stream *s = user;
    Flight *flight = s->flight.at[number];
    tune_spent(s->t, &flight->candidate.job, trial);
    if (!s->store_failed)
        s->store_failed = !tune_take_trial(s->t, s->told, &flight->point, trial);
    s->flight.at[number] = NULL;
    s->flying--;
    land(s, flight);
    return tune_cutoff_ns(s->t);
}

static Flight *new_flight(Stream *s, const Point *point)
{
    Flight *flight = s->landed ? s->landed : NEW(s->t->scratch, Flight);
    s->landed = s->landed ? s->landed->next : NULL;
    *flight = (Flight){.arena = arena_new(), .point = *point};
    return flight;
}

static const Job *take_off(Stream *s, const Point *point)
{
    Tune *t = s->t;
    Flight *flight = new_flight(s, point);
    IrMark mark = ir_mark(t->problem->ir);
    Diags quiet;
    diags_init(&quiet, flight->arena);
    bool ok = tune_candidate(t, point, flight->arena, &flight->candidate, &quiet);
    ir_release(t->problem->ir, mark);
    if (!ok) {
        s->store_failed |= !tune_take_unlowered(t, s->told, point, &quiet);
        land(s, flight);
        return NULL;
    }
    s->late = !tune_compiles_in_time(t, &flight->candidate.job);
    if (s->late) {
        land(s, flight);
        return NULL;
    }
    VEC_PUSH(t->scratch, &s->flight, flight);
    s->flying++;
    return &flight->candidate.job;
}

// How many may fly now.
static int most_flying(const Tune *t)
{
    int most = t->search->kind->learns ? MIN(rig_batch(t->rig), FLIGHTS)
                                       : FLIGHTS * (1 + rig_peers(t->rig));
    return tune_trials_in(t, t->device->is_cpu ? FLIGHT_S : INFINITY, most);
}

// Whether a further point may be asked for.
static bool has_room(Stream *s)
{
    const Tune *t = s->t;
    int most = most_flying(t);
    if (s->store_failed || s->late || !tune_budget_left(t) ||
        (t->budget_trials && t->result->trials + s->flying >= t->budget_trials) ||
        s->flying >= most || (s->dry && s->flying > 0))
        return false;
    if (t->search->kind->learns && s->wanted <= 0 && s->flying <= most / 2)
        s->wanted = most - s->flying;
    return !t->search->kind->learns || s->wanted > 0;
}

static const Job *next_job(void *user, int number)
{
    Stream *s = user;
    Point point;
    (void)number;
    while (has_room(s)) {
        s->dry = !s->next(s->t, &point);
        if (s->dry)
            break;
        s->wanted--;
        if (tune_take_known(s->t, s->told, &point))
            continue;
        const Job *job = take_off(s, &point);
        if (job)
            return job;
    }
    return NULL;
}

bool tune_stream(Tune *t, NextPoint *next, bool told)
{
    Stream s = {.t = t, .next = next, .told = told};
    ArenaMark scratch = arena_mark(t->scratch);
    bool ok = rig_stream(t->rig, next_job, tune_cutoff_ns(t), on_landing, &s, t->diags) &&
              !s.store_failed;
    for (int i = 0; i < s.flight.len; i++)
        if (s.flight.at[i])
            land(&s, s.flight.at[i]);
    arena_reset(t->scratch, scratch);
    return ok;
}
