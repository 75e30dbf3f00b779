// SPDX-License-Identifier: Apache-2.0
//
// The returned kernel must be right for more than the inputs of the search, because random
// numbers near one show neither a wrong sign nor a missing element of a long fold. The best
// is run on further sets of inputs (data_more). If it is wrong for one of them, the next
// best takes its place.

#include "tune/internal.h"

#include <math.h>

typedef struct {
    Tune *t;
    ProblemData *data[MORE_SETS];
    int n;     // of them, for which it is known what their outputs must be
    int right; // of those, for which the best was
    Diags quiet;
} More;

static void reference_deep(void *user)
{
    More *more = user;
    Tune *t = more->t;
    more->n = t->problem->kind->more(t->problem, t->options->seed, more->n, more->data,
                                     t->options->device, &t->place, t->arena, &more->quiet);
}

static void drop_first(Tune *t, int set, Trial *trial)
{
    t->last_log = arena_printf(t->arena, "for the inputs besides, set %d: %s", set + 1,
                               trial->log ? trial->log : "");
    trial->time_ns = INFINITY;
    t->result->count[TRIAL_WRONG_RESULT]++;
    tune_drop(t, &t->best[0].point);
    for (int i = 1; i < t->nbest; i++)
        t->best[i - 1] = t->best[i];
    t->nbest--;
}

// Runs the best on this set; if it is wrong, that is stored.
static bool try_set(Tune *t, int set, TrialStatus *status)
{
    Candidate candidate;
    Trial trial = {0};
    bool ok = tune_candidate(t, &t->best[0].point, t->arena, &candidate, t->diags) &&
              runner_compute(t->runner, &candidate.job, &trial, NULL, t->diags);
    *status = ok ? trial.status : TRIAL_FAILED;
    if (*status == TRIAL_WRONG_RESULT) {
        const char *point = point_text(t->space, &t->best[0].point, t->arena);
        trial.time_ns = INFINITY;
        StoreTrial wrong = store_trial(point, &trial);
        wrong.seed = t->options->seed;
        ok = store_put_again(t->store, t->session, &wrong, t->diags) &&
             store_put_checked(t->store, t->session, point, trial.status, trial.log,
                               t->diags);
        drop_first(t, set, &trial);
    }
    trial_release(&trial);
    candidate_release(&candidate);
    return ok;
}

// Those of the best few that are wrong for some set go; the first that stays is right for
// all that there was time for. The search's workers run them: others would load a compiler.
static bool try_sets(More *more)
{
    Tune *t = more->t;
    TrialStatus status = TRIAL_WRONG_RESULT;
    bool ok = true;
    while (ok && status == TRIAL_WRONG_RESULT && t->nbest && t->best[0].ns < INFINITY) {
        status = TRIAL_OK;
        more->right = 0;
        for (int set = 0; ok && status != TRIAL_WRONG_RESULT && set < more->n; set++) {
            RunnerConfig config = tune_runner_config(t, more->data[set]);
            ok = runner_fill(t->runner, &config, t->diags) && try_set(t, set, &status);
            more->right += status == TRIAL_OK;
        }
    }
    return ok;
}

static const char *tell(const More *more)
{
    const Tune *t = more->t;
    const char *of = t->result->reference;
    if (more->right == 0)
        return arena_printf(t->arena,
                            "%s; there was no time to run the best on more inputs", of);
    return arena_printf(
        t->arena, "%s; the best is right for %d more inputs%s", of, more->right,
        more->right < MORE_KINDS ? ", and there was no time for others" : "");
}

// This is the last part of a time budget. Whoever stops the search takes the best as it is.
bool tune_check_more(Tune *t)
{
    More more = {.t = t};
    if (!t->problem->kind->more || t->options->by_plain || !t->nbest ||
        stop_asked(&t->stop))
        return true;
    if (t->options->inputs.n) { // random ones may mean nothing
        t->result->reference = arena_printf(
            t->arena, "%s; on the inputs given, and no others", t->result->reference);
        return true;
    }
    tune_set_end(t, BUDGET_CHECKS);
    tune_report(t, "check", TRIAL_OK, INFINITY);
    more.quiet = (Diags){.arena = t->arena};
    more.n = tune_sets_in_time(t);
    if (more.n)
        deep_call(reference_deep, &more);
    int said = more.quiet.list.len;
    Diags *loud = t->diags;
    t->diags = &more.quiet;
    bool ok = try_sets(&more);
    if (t->nbest)
        t->result->reference = tell(&more);
    t->diags = loud;
    for (int i = said; !stop_due(&t->stop) && i < more.quiet.list.len; i++)
        diag_world(loud, more.quiet.list.at[i].code, "%s", more.quiet.list.at[i].message);
    return ok || stop_due(&t->stop);
}

bool tune_check_points(Tune *t, const char *const *point, int n, bool *wrong, Diags *diags)
{
    More more = {.t = t, .n = MORE_KINDS, .quiet = {.arena = t->arena}};
    t->diags = diags;
    deep_call(reference_deep, &more);
    if (!more.n)
        return false;
    RunnerConfig config = tune_runner_config(t, more.data[0]);
    config.workers = 1;
    t->runner = runner_open(&config, diags);
    bool ok = t->runner != NULL;
    for (int i = 0; ok && i < n; i++) {
        t->nbest = 1;
        t->best[0] = (Finalist){.ns = 0};
        ok = point_parse(t->space, point[i], &t->best[0].point) && try_sets(&more) &&
             !stop_due(&t->stop);
        wrong[i] |= ok && more.right < more.n;
    }
    return ok;
}
