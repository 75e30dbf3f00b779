// SPDX-License-Identifier: Apache-2.0
//
// Running points in batches, which a strategy is told of between one and the next, and
// which several devices share.

#include "plan/tune.h"

#include <math.h>
#include <stdlib.h>

static const double BATCH_S = 4;

typedef struct {
    Tune *t;
    Candidate candidate[TUNE_BATCH];
    Job job[TUNE_BATCH];
    Point point[TUNE_BATCH];
    int n;
    bool told; // outcomes go to the strategy
    bool store_failed;
} Batch;

static double on_trial(void *user, int job, Trial *trial)
{
    Batch *batch = user;
    if (!batch->store_failed)
        batch->store_failed =
            !tune_take_trial(batch->t, batch->told, &batch->point[job], trial);
    return tune_cutoff_ns(batch->t);
}

static void add_candidate(Batch *batch, const Point *point)
{
    Tune *t = batch->t;
    Diags quiet;
    diags_init(&quiet, t->scratch);
    batch->point[batch->n] = *point;
    Candidate *candidate = &batch->candidate[batch->n];
    if (tune_candidate(t, point, t->scratch, candidate, &quiet))
        batch->job[batch->n++] = candidate->job;
    else
        batch->store_failed |= !tune_take_unlowered(t, batch->told, point, &quiet);
}

static bool run_batch(Batch *batch)
{
    Tune *t = batch->t;
    double cutoff = tune_cutoff_ns(t);
    bool ok = rig_run(t->rig, batch->job, batch->n, cutoff, on_trial, batch, t->diags);
    for (int i = 0; i < batch->n; i++)
        candidate_release(&batch->candidate[i]);
    return ok && !batch->store_failed;
}

static bool fill_batch(Batch *batch, NextPoint *next, int most)
{
    Tune *t = batch->t;
    Point point;
    int64_t trials = t->budget_trials;
    while (batch->n < most && tune_budget_left(t) &&
           (!trials || t->result->trials + batch->n < trials)) {
        if (!next(t, &point)) // there may be more once these are told
            return batch->n > 0;
        if (!tune_take_known(t, batch->told, &point))
            add_candidate(batch, &point);
    }
    return tune_budget_left(t);
}

// No more than take a few seconds, because a batch in flight is lost when the run is
// killed.
static int batch_size(const Tune *t)
{
    return tune_trials_in(t, BATCH_S, MIN(rig_batch(t->rig), TUNE_BATCH));
}

bool tune_batches(Tune *t, NextPoint *next, bool told)
{
    Batch *batch = xcalloc(1, sizeof *batch);
    bool more = true, ok = true;
    while (ok && more) {
        *batch = (Batch){.t = t, .told = told};
        Ir *ir = t->problem->ir;
        ArithMark arith = arith_mark(ir->arith);
        ArenaMark exprs = arena_mark(ir->arena), scratch = arena_mark(t->scratch);
        more = fill_batch(batch, next, batch_size(t));
        ok = batch->n == 0 || run_batch(batch);
        arena_reset(t->scratch, scratch);
        arena_reset(ir->arena, exprs);
        arith_release(ir->arith, arith);
    }
    free(batch);
    return ok;
}
