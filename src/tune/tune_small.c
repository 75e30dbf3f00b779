// SPDX-License-Identifier: Apache-2.0
//
// The plain kernel at small sizes, where the interpreter says in a moment what is right. It
// runs on the device while the host makes inputs and the reference of the whole problem,
// and so it loads the device's compiler, too. If the time of the tuning is over before any
// kernel was compared at the sizes of the problem, the plain kernel is the result: known to
// be right at small sizes, and neither timed nor stored.

#include "tune/internal.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>

// What takes a compiler longer would keep the search waiting.
enum { TEXT_MOST = 1 << 15 };

static bool is_right(Tune *t, const Variants *variants, const ProblemData *data,
                     Arena *arena, Diags *diags)
{
    Point plain;
    Candidate candidate;
    Trial trial = {0};
    RunnerConfig config = t->small.config;
    config.nbuffer = data->nbuffer;
    config.buffer = data->buffer;
    config.tolerance = data->tolerance;
    if (!variants_first(variants, &plain, 1) || !space_valid(variants->space, &plain) ||
        !tune_candidate_of(variants, space_hash(variants->space), &plain, arena, &candidate,
                           diags))
        return false;
    bool ok = strlen(candidate.job.source) <= TEXT_MOST &&
              runner_fill(t->runner, &config, diags) &&
              runner_compute(t->runner, &candidate.job, &trial, NULL, diags) &&
              trial.status == TRIAL_OK;
    trial_release(&trial);
    candidate_release(&candidate);
    return ok;
}

static void *check(void *user)
{
    Tune *t = user;
    AutoArena *arena = arena_new();
    Diags quiet = {.arena = arena};
    ProblemData *data;
    const char *why;
    Problem *small = problem_small(t->problem, arena, &data, &why);
    Variants variants;
    if (!small)
        return NULL;
    if (variants_open(&variants, small, t->device, &quiet) &&
        is_right(t, &variants, data, arena, &quiet))
        t->small.right = xstrdup(problem_label(small));
    variants_close(&variants);
    problem_free(small);
    return NULL;
}

bool tune_thread(pthread_t *thread, void *(*work)(void *), Tune *t)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool started = thread_start(thread, work, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void tune_begin_small(Tune *t)
{
    if (!t->problem->bound || calls_opaque(t->problem) || !isfinite(t->budget_s) ||
        t->options->no_search || t->options->accept || t->options->by_plain)
        return;
    t->small.config = tune_runner_config(t, &(ProblemData){0});
    t->small.running = tune_thread(&t->small.thread, check, t);
}

void tune_await_small(Tune *t, double until_s)
{
    struct timespec until;
    if (!t->small.running)
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    double left = fmax(until_s - clock_s(), 0) + 1e-9 * (double)until.tv_nsec;
    until.tv_sec += (time_t)left;
    until.tv_nsec = (long)(1e9 * (left - floor(left)));
    t->small.running = pthread_timedjoin_np(t->small.thread, NULL, &until) != 0;
}

void tune_end_small(Tune *t)
{
    if (t->small.running)
        pthread_join(t->small.thread, NULL);
    t->small.running = false;
}

bool tune_take_small(Tune *t)
{
    tune_end_small(t);
    const KnownTrial *plain =
        t->has_plain ? map_get(&t->known, point_text(t->space, &t->first[0], t->arena))
                     : NULL;
    if (!t->small.right || !t->has_plain || t->nbest ||
        (plain && plain->status != TRIAL_OK) || stop_asked(&t->stop) || !stop_due(&t->stop))
        return false;
    t->best[t->nbest++] =
        (Finalist){.point = t->first[0], .cost = INFINITY, .ns = INFINITY};
    t->small.taken = true;
    t->result->baseline_ns = INFINITY;
    t->result->reference =
        arena_printf(t->arena,
                     "there was no time for one; the plain kernel is right at %s, within "
                     "one tolerance of the interpreter; it was not timed, and not compared "
                     "at other sizes",
                     t->small.right + strlen(t->problem->name) + 1);
    return true;
}
