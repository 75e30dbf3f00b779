// SPDX-License-Identifier: Apache-2.0
//
// What is handed back must be right for more than the inputs of the search: random numbers
// near one show neither a wrong sign nor what is left out of a long fold. The best is run
// on further sets of inputs (data_more), and takes the place of none that is wrong for one.

#include "tune/internal.h"

#include <math.h>

typedef struct {
    Tune *t;
    ProblemData *data[MORE_SETS];
    bool known; // what their outputs must be
    Diags quiet;
} More;

static void reference_deep(void *user)
{
    More *more = user;
    Tune *t = more->t;
    more->known = t->problem->kind->more(t->problem, t->options->seed, more->data,
                                         &t->place, t->arena, &more->quiet);
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

// Of the best, whether it is right for this set; what is wrong is stored as that.
static bool try_set(Tune *t, Rig *rig, int set, bool *right)
{
    Candidate candidate;
    Trial trial = {0};
    bool ok = tune_candidate(t, &t->best[0].point, t->arena, &candidate, t->diags) &&
              rig_compute(rig, &candidate.job, &trial, NULL, t->diags);
    *right = !ok || trial.status != TRIAL_WRONG_RESULT;
    if (!*right) {
        const char *point = tune_point_text(t, &t->best[0].point);
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
// all.
static bool try_sets(More *more, Rig *rig)
{
    Tune *t = more->t;
    bool ok = true, right = false;
    while (ok && !right && t->nbest && t->best[0].ns < INFINITY) {
        right = true;
        for (int set = 0; ok && right && set < MORE_SETS; set++) {
            RigConfig config = tune_rig_config(t, more->data[set]);
            ok = rig_fill(rig, &config, t->diags) && try_set(t, rig, set, &right);
        }
    }
    return ok;
}

// Of a time budget it is the last part, which is not left out; whoever stops the search
// takes it as it is.
bool tune_check_more(Tune *t)
{
    More more = {.t = t};
    if (!t->problem->kind->more || !t->nbest || stop_asked(&t->stop))
        return true;
    double end_s = t->stop.end_s;
    t->stop.end_s = INFINITY;
    tune_report(t, "check", TRIAL_OK, INFINITY);
    diags_init(&more.quiet, t->arena);
    deep_call(reference_deep, &more);
    bool ok = true;
    int said = more.quiet.list.len;
    Diags *loud = t->diags;
    t->diags = &more.quiet;
    if (more.known) {
        RigConfig config = tune_rig_config(t, more.data[0]);
        config.workers = 1;
        Rig *rig = rig_open(&config, t->diags);
        ok = rig && try_sets(&more, rig);
        if (rig)
            rig_close(rig);
        if (t->nbest)
            t->result->reference =
                arena_printf(t->arena, "%s; the best is right for %d more inputs",
                             t->result->reference, MORE_SETS);
    }
    t->stop.end_s = end_s;
    t->diags = loud;
    for (int i = said; !stop_asked(&t->stop) && i < more.quiet.list.len; i++)
        diag_world(loud, more.quiet.list.at[i].code, "%s", more.quiet.list.at[i].message);
    return ok || stop_asked(&t->stop);
}
