// SPDX-License-Identifier: Apache-2.0
//
// Running points as a stream. A strategy that learns waits for its answers, a batch at a
// time; one that does not keeps a GPU's compilers busy, whatever is being timed, until it
// has nothing left or waits for all that it asked for.

#include "plan/tune.h"

#include <math.h>

typedef struct {
    Arena *arena;
    Candidate candidate;
    Point point;
    bool done;
} Flight;

typedef struct {
    Tune *t;
    NextPoint *next;
    bool told, store_failed;
    VEC(Flight *) flight; // by number
    int flying;
} Stream;

static void land(Flight *flight)
{
    if (!flight->done) {
        candidate_release(&flight->candidate);
        arena_free(flight->arena);
        flight->done = true;
    }
}

static double on_landing(void *user, int number, Trial *trial)
{
    Stream *s = user;
    Flight *flight = s->flight.at[number];
    if (!s->store_failed)
        s->store_failed = !tune_take_trial(s->t, s->told, &flight->point, trial);
    land(flight);
    s->flying--;
    return tune_cutoff_ns(s->t);
}

static const Job *take_off(Stream *s, const Point *point)
{
    Tune *t = s->t;
    Flight *flight = NEW(t->scratch, Flight);
    Ir *ir = t->problem->ir;
    ArithMark arith = arith_mark(ir->arith);
    ArenaMark exprs = arena_mark(ir->arena);
    Diags quiet;
    *flight = (Flight){.arena = arena_new(), .point = *point};
    diags_init(&quiet, flight->arena);
    bool ok = tune_candidate(t, point, flight->arena, &flight->candidate, &quiet);
    arena_reset(ir->arena, exprs);
    arith_release(ir->arith, arith);
    if (ok) {
        VEC_PUSH(t->scratch, &s->flight, flight);
        s->flying++;
        return &flight->candidate.job;
    }
    s->store_failed |= !tune_take_unlowered(t, s->told, point, &quiet);
    arena_free(flight->arena);
    return NULL;
}

static const Job *next_job(void *user, int number)
{
    Stream *s = user;
    Tune *t = s->t;
    Point point;
    int64_t trials = t->budget_trials;
    (void)number;
    while (!s->store_failed && tune_budget_left(t) &&
           (!trials || t->result->trials + s->flying < trials) &&
           s->flying < tune_trials_in(t, INFINITY, TUNE_BATCH) && s->next(t, &point)) {
        if (tune_take_known(t, s->told, &point))
            continue;
        const Job *job = take_off(s, &point);
        if (job)
            return job;
    }
    return NULL;
}

bool tune_stream(Tune *t, NextPoint *next, bool told)
{
    bool ok = true, more = true;
    while (ok && more) {
        Stream s = {.t = t, .next = next, .told = told};
        ArenaMark scratch = arena_mark(t->scratch);
        ok = rig_stream(t->rig, next_job, tune_cutoff_ns(t), on_landing, &s, t->diags) &&
             !s.store_failed;
        for (int i = 0; i < s.flight.len; i++)
            land(s.flight.at[i]);
        more = s.flight.len > 0 && tune_budget_left(t);
        arena_reset(t->scratch, scratch);
    }
    return ok;
}
