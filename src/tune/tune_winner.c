// SPDX-License-Identifier: Apache-2.0
//
// The end of a tuning: the best few are timed again, the caller is asked, and the winner is
// written out beside the roofline that no kernel gets below.

#include "tune/internal.h"

#include "calibrate/ceiling.h"
#include "calibrate/describe.h"
#include "cost/features.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Finalists ---------------------------------------------------------------------------

// Differences below 10 % between runs minutes apart mean nothing, so the best few are timed
// again, side by side, with more samples; the plain kernel, where it is one of them, is
// reported by that time too.
// One that the time did not suffice for stays as it was: *timed.
static bool time_again(Tune *t, Finalist *f, void **out, bool *timed, Diags *diags)
{
    Candidate candidate;
    Trial trial = {0};
    bool ok = tune_candidate(t, &f->point, t->arena, &candidate, diags) &&
              runner_run_one(t->runner, &candidate.job, FINAL_SAMPLES, &trial, out, diags);
    *timed = ok && (trial.status == TRIAL_OK || !stop_due(&t->stop));
    if (!*timed) {
        trial_release(&trial);
        candidate_release(&candidate);
        return ok;
    }
    bool right = trial.status == TRIAL_OK;
    if (!right)
        tune_drop(t, &f->point);
    f->ns = right ? trial.time_ns : INFINITY;
    f->measures = trial.measures;
    f->cost = right ? tune_cost(t, &f->point, trial.time_ns, &trial.measures) : INFINITY;
    f->again = store_trial(point_text(t->space, &f->point, t->arena), &trial);
    f->again.seed = t->data_seed;
    f->again.sample_ns = tune_samples(t, trial.sample_ns, trial.nsample);
    f->again.log = trial.log ? arena_strdup(t->arena, trial.log) : NULL;
    if (t->has_plain && point_equal(t->space, &f->point, &t->first[0]))
        t->result->baseline_ns = f->ns;
    trial_release(&trial);
    candidate_release(&candidate);
    return ok;
}

// A kernel that was right and is wrong now is known as wrong. One that could not be run
// says nothing: the device may be lost.
static bool says_more(const Finalist *f, bool winner)
{
    return f->again.status == TRIAL_OK ? !winner || f->ns < f->first_ns
                                       : f->again.status == TRIAL_WRONG_RESULT;
}

// The fastest trial of the store is to be the winner. So the new times replace the first
// ones, which the best few have by luck in part, but the winner keeps the lesser of its
// two: it is no more than any other finalist's second time, nor than the first time of a
// point that was no finalist. In a record of the space each time is of as many samples.
// Each was compared with the reference once more: who uses its plan need not check it, but
// where that was what another kernel computed.
static bool store_again(Tune *t, const Finalist *f, bool winner)
{
    const StoreTrial *again = &f->again;
    bool told =
        again->status == TRIAL_WRONG_RESULT || (again->status == TRIAL_OK && !t->compares);
    if (!t->options->samples && says_more(f, winner) &&
        !store_put_again(t->store, t->session, again, t->diags))
        return false;
    return !told || store_put_checked(t->store, t->session, again->point, again->status,
                                      again->log, t->diags);
}

// As many as there is time for, and the best if there is any.
static bool measure_finalists(Tune *t)
{
    bool ok = true, timed = true;
    while (ok && timed && t->nagain < t->nbest && !stop_due(&t->stop) &&
           (t->nagain == 0 || tune_has_time(t, tune_again_s(t, t->best[t->nagain].ns)))) {
        ok = time_again(t, &t->best[t->nagain], NULL, &timed, t->diags);
        t->nagain += timed;
    }
    if (t->nagain)
        t->nbest = t->nagain;
    return ok;
}

// The plain kernel is timed again, too, where none of them came up to its first time.
static bool measure_plain(Tune *t)
{
    Finalist plain = {.first_ns = t->result->baseline_ns};
    bool timed = t->has_plain && t->nagain &&
                 !tune_finalist(t, t->best, t->nagain, &t->first[0]) && !stop_due(&t->stop);
    for (int i = 0; i < t->nagain; i++)
        timed &= t->best[i].ns > plain.first_ns;
    if (!timed)
        return true;
    plain.point = t->first[0];
    bool ok = time_again(t, &plain, NULL, &timed, t->diags);
    if (timed) {
        t->nagain = MIN(t->nagain + 1, FINALISTS);
        t->best[t->nagain - 1] = plain;
        t->nbest = t->nagain;
    }
    return ok;
}

// The others of the front likewise, as far as time allows; it is made anew of what that
// gave.
static bool measure_front(Tune *t)
{
    Finalist *of = t->front.at;
    int n = t->front.len;
    bool ok = true, timed = true;
    t->front.len = t->front.cap = 0;
    t->front.at = NULL;
    for (int i = 0; ok && i < n; i++) {
        const Finalist *best = tune_finalist(t, t->best, t->nagain, &of[i].point);
        bool more = !best && timed && t->nagain && !stop_due(&t->stop) &&
                    tune_has_time(t, tune_again_s(t, of[i].ns));
        if (best)
            of[i] = *best;
        else if (more)
            ok = time_again(t, &of[i], NULL, &timed, t->diags) &&
                 (!timed || store_again(t, &of[i], false));
        if (of[i].ns < INFINITY)
            tune_keep_front(t, &of[i]);
    }
    return ok;
}

// The store finds the first one of equal times, so that is the winner, too.
static bool is_ahead(const Finalist *a, const Finalist *b)
{
    return a->cost < b->cost || (a->cost == b->cost && a->turn < b->turn);
}

bool tune_measure_again(Tune *t)
{
    tune_report(t, "re-measure", TRIAL_OK, INFINITY);
    tune_set_end(t, BUDGET_AFTERWARDS);
    if (!measure_finalists(t) || !measure_plain(t) || !measure_front(t))
        return false;
    for (int i = 1; i < t->nbest; i++)
        for (int k = i; k > 0 && is_ahead(&t->best[k], &t->best[k - 1]); k--) {
            Finalist better = t->best[k];
            t->best[k] = t->best[k - 1];
            t->best[k - 1] = better;
        }
    for (int i = 0; i < t->nagain; i++)
        if (!store_again(t, &t->best[i], i == 0))
            return false;
    return true;
}

// The fastest that the caller accepts comes first.
bool tune_ask_caller(Tune *t)
{
    const TuneOptions *o = t->options;
    void **out = o->accept ? data_outputs(t->data, t->arena) : NULL;
    bool timed;
    if (o->accept) {
        t->stop.end_s = INFINITY; // without an answer there is no winner
        RunnerConfig config = tune_runner_config(t, t->data);
        if (!stop_asked(&t->stop) && !runner_fill(t->runner, &config, t->diags))
            return false;
    }
    for (int i = 0; o->accept && i < t->nbest && t->best[i].ns < INFINITY; i++) {
        if (!time_again(t, &t->best[i], out, &timed, t->diags))
            return false;
        if (timed && t->best[i].ns < INFINITY &&
            o->accept(o->user, point_text(t->space, &t->best[i].point, t->arena),
                      t->data->buffer, t->data->nbuffer, out)) {
            t->best[0] = t->best[i];
            return true;
        }
    }
    if (o->accept && t->nbest && t->best[0].ns < INFINITY)
        return diag_world(t->diags, "C050", "the caller accepted none of the best %d",
                          t->nbest);
    return true;
}

// What bounds everything --------------------------------------------------------------

// The roofline, from what is stored of the device or measured now.
bool tune_find_roofline(Tune *t)
{
    if (t->options->no_roofline || t->result->roofline_ns > 0)
        return true;
    const DeviceInfo *device = t->device;
    Work work = problem_work(t->problem);
    Ceilings ceilings = {0};
    double best_ns = t->result->best_ns;
    int64_t bytes = ceilings_bytes(device, work.bytes);
    bool ok = ceilings_load(t->store, device, bytes, &ceilings, t->diags);
    if (roofline_is_refuted(roofline_of(&work, &ceilings), best_ns))
        ceilings.copy_gbs = 0; // once: a program may read little of its inputs
    if (ok && !stop_due(&t->stop))
        ok = ceilings_measure(t->store, device, &t->place, bytes, &ceilings, t->diags);
    Roofline roofline = roofline_of(&work, &ceilings);
    // There was no time: what is known bounds too little, or nothing.
    if (!ok || ceilings.copy_gbs <= 0 || roofline_is_refuted(roofline, best_ns))
        return ok;
    t->result->flops = work_flops(&work);
    t->result->copy_ns = roofline.memory_ns;
    t->result->compute_ns = roofline.compute_ns;
    t->result->roofline_ns = roofline.ns;
    return true;
}

// Bytes in flight of the best kernel, which must cover latency times bandwidth.
static void find_flight(Tune *t, const Unit *unit)
{
    DeviceModel model;
    double feature[FEATURES];
    describe_device(t->device, &model);
    FeatureSetting setting = {&model, t->problem->binding, t->problem->nbinding};
    if (unit && !model.is_cpu && features_unit(unit, &setting, feature))
        t->result->in_flight_bytes = feature[FEATURE_IN_FLIGHT];
}

// The winner --------------------------------------------------------------------------

static bool write_text(Tune *t, const Candidate *candidate)
{
    if (!file_mkdirs(t->options->out))
        return diag_world(t->diags, "C011", "cannot make the folder %s: %s",
                          t->options->out, strerror(errno));
    Buf text = buf_new();
    variants_text(&t->variants, candidate, &text);
    const char *path = arena_printf(t->arena, "%s/%s.%s", t->options->out, t->problem->name,
                                    target_extension(t->variants.target));
    bool ok = file_write(path, text.text, text.len);
    if (!ok)
        diag_world(t->diags, "C012", "cannot write %s: %s", path, strerror(errno));
    t->result->kernel_path = path;
    t->kernel_text = buf_keep(&text, t->arena);
    return ok;
}

// The plain kernel's text, for who wants to see what the search changed.
static void keep_plain(Tune *t)
{
    Candidate candidate;
    Diags quiet = {.arena = t->arena};
    if (!t->has_plain || !variants_candidate(&t->variants, &t->first[0], t->problem->name,
                                             t->arena, &candidate, &quiet))
        return;
    Buf text = buf_new();
    variants_text(&t->variants, &candidate, &text);
    t->plain_text = buf_keep(&text, t->arena);
    candidate_release(&candidate);
}

static bool write_kernel(Tune *t)
{
    Candidate candidate;
    if (!variants_candidate(&t->variants, &t->best[0].point, t->problem->name, t->arena,
                            &candidate, t->diags))
        return false;
    bool ok = !t->options->out || write_text(t, &candidate);
    if (t->options->command)
        keep_plain(t);
    t->result->nlaunch = candidate.job.nlaunch;
    for (int d = 0; d < 3 && candidate.job.nlaunch; d++) {
        t->result->global[d] = candidate.job.launch[0].global[d];
        t->result->local[d] = candidate.job.launch[0].local[d];
    }
    find_flight(t, candidate.unit);
    candidate_release(&candidate);
    return ok;
}

// Why there is no more, as the end of a sentence.
static const char *end_text(const Tune *t)
{
    return stop_asked(&t->stop) ? arena_printf(t->arena, ", as %s", stop_text(&t->stop))
           : isfinite(t->budget_s)
               ? arena_printf(t->arena,
                              " within the budget of %g s (the reference took %.1f s)",
                              t->budget_s, t->result->reference_s)
               : "";
}

void tune_say_end(Tune *t)
{
    if (stop_due(&t->stop))
        diag_world(t->diags, "C092", "no kernel was found%s", end_text(t));
}

static bool no_winner(Tune *t)
{
    if (t->aimless)
        return diag_world(t->diags, "C094",
                          "an objective has no value: %s does not report what it needs",
                          t->result->device);
    AutoBuf text = buf_new();
    trial_counts(&text, t->result->count);
    return diag_world(t->diags, "C013",
                      "no candidate was built, right and in time%s:%s%s%s", end_text(t),
                      text.len ? text.text : " none was tried",
                      t->last_log[0] ? "; the last: " : "", t->last_log);
}

// What this search was worth: another, no more rigorous one need not be made.
static bool put_rigor(Tune *t)
{
    double spent_s = clock_s() - t->start_s;
    bool all = (double)t->result->trials >= t->result->space_points;
    if (t->small.taken)
        return true;
    t->result->rigor = t->stopped || t->options->where  ? RIGOR_NONE
                       : all                            ? RIGOR_EXHAUSTIVE
                       : spent_s >= RIGOR_PATIENT_S - 1 ? RIGOR_PATIENT
                                                        : RIGOR_MEASURE;
    return store_put_rigor(t->store, t->session, t->result->rigor, t->diags);
}

static int compare_front(const void *a, const void *b)
{
    return compare_doubles(((const TuneFront *)a)->values.objective,
                           ((const TuneFront *)b)->values.objective);
}

// What the goal says of the best, and of those that none beats.
static void conclude_goal(Tune *t)
{
    TuneResult *r = t->result;
    const Finalist *best = &t->best[0];
    r->nmetric = goal_metrics(t->goal);
    r->nobjective = goal_objectives(t->goal);
    for (int i = 0; i < r->nmetric; i++) {
        r->metric[i] = arena_strdup(t->arena, goal_metric(t->goal, i));
        r->unit[i] = goal_unit(i);
    }
    for (int i = 0; i < r->nobjective; i++)
        r->objective[i] = arena_strdup(t->arena, goal_objective(t->goal, i));
    r->nfront = t->front.len;
    r->front = NEW_ARRAY(t->arena, TuneFront, r->nfront + 1);
    for (int i = 0; i < r->nfront; i++) {
        const Finalist *f = &t->front.at[i];
        r->front[i].point = point_text(t->space, &f->point, t->arena);
        goal_values(t->goal, &f->point, f->ns, &f->measures, &r->front[i].values);
    }
    qsort(r->front, (size_t)r->nfront, sizeof *r->front, compare_front);
    if (t->nbest)
        goal_values(t->goal, &best->point, best->ns, &best->measures, &r->values);
}

bool tune_conclude(Tune *t)
{
    t->result->signal = stop_asked(&t->stop);
    conclude_goal(t);
    if (!t->nbest || !(t->best[0].cost < INFINITY || t->small.taken))
        return no_winner(t);
    t->result->checked = t->nagain > 0;
    t->result->best_ns = t->best[0].ns;
    t->result->point = point_text(t->space, &t->best[0].point, t->arena);
    return put_rigor(t) && tune_find_roofline(t) && write_kernel(t);
}
