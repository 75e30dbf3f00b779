// SPDX-License-Identifier: Apache-2.0
//
// The time that a tuning has. All of it counts: asking for the device, inputs, the
// reference, the search, the best few once more, and the roofline.
//
//   method  the search ends as much earlier as timing the best few again will take, by what
//           their trials took, checking the best on further inputs, by what the reference
//           and a trial's checks took, and measuring the roofline where it is not known.
//           What is under way then is dropped. The end may use the slack, by which a budget
//           may be exceeded, where it takes longer than was predicted. Of the further
//           inputs there are as many as there is time for, and the result says how many. A
//           candidate is not begun if compiling it is predicted to take longer than is
//           left: as long as the longest text so far, or more in proportion, and no less
//           than a text of its length takes NVRTC.
//   grace   a search that ends without a kernel has wasted its time. So the reference and
//           then the first few trials, until one is right, may use most of the slack; the
//           result says how much. There they are sampled once, and what follows has only
//           what is left of the slack. If none is right then, the plain kernel is the
//           result if it was right at small sizes (tune_small.c).
#include "tune/internal.h"

#include <limits.h>
#include <math.h>
#include <string.h>

// On a processor a plain kernel may take so long an operation (mm: 0.8 ns on two cores), or
// as long as the reference did, and is slow if that is longer than a share of the budget
// and than another kernel takes a compiler.
static const double PLAIN_S = 1e-9, SLOW = 0.1, COMPILE_S = 1.5;
// A byte of a long text takes NVRTC no less (16 at once on 16 cores: 255 kB 1.5 s, 500 kB
// more than 2.5 s).
static const double TEXT_S = 4e-6;
enum { STATEMENT_BYTES = 58 }; // (6-field FDTD in 3D: 57 to 59 for kernels of 15 to 450 kB)
static const double COMPILING = 0.4; // of the budget, for a kernel that is to be predicted
enum { FIRST_TRIALS = 8 };           // after which none may ever be right
static const double SLACK_S = 2, SLACK = 0.2;        // the larger of the two
static const double ROOFLINE_S = 2, ROOFLINE = 0.15; // the lesser: for ceilings of a device
// For more sets of inputs than one of each kind; of budgets of trials a quarter of it.
static const double SETS_S = 2, SETS = 0.05;
// To end what is under way, and to write what was found.
static const double WRITING_S = 0.3;
// Shares of the slack: for a reference and a first right kernel, for the best few once
// more, and for the checks of the best.
static const double FIRST = 0.5, AGAIN = 0.5, CHECKS = 0.6;
// At most of the budget for what comes after the search, and at least for what comes before
// it and after the first right kernel, however long that took.
static const double AFTERWARDS = 0.35, SEARCH = 0.35;

static double slack_s(const Tune *t)
{
    return fmax(SLACK_S, SLACK * t->budget_s);
}

// As of a trial: warm-ups and the checks are a few runs more.
double tune_again_s(const Tune *t, double ns)
{
    return 1e-9 * ns * (FINAL_SAMPLES + 4) + t->spent.other_s / MAX(t->spent.trials, 1);
}

bool tune_plain_is_slow(const Tune *t)
{
    Work work = problem_work(t->problem);
    double plain_s = fmin(PLAIN_S * work.ops, t->set_s);
    return t->device->is_cpu && plain_s > fmax(SLOW * t->budget_s, COMPILE_S);
}

// To make a set of further inputs and its reference, and to run the best on it.
static double set_s(const Tune *t)
{
    return t->set_s + t->spent.check_s / MAX(t->spent.trials, 1);
}

static double roofline_s(const Tune *t)
{
    return t->roofline_known ? 0 : fmin(ROOFLINE_S, ROOFLINE * t->budget_s);
}

int tune_sets_in_time(const Tune *t)
{
    double left = stop_left_s(&t->stop) - WRITING_S - roofline_s(t) - t->sets_s;
    double some_s = fmin(SETS_S, isfinite(t->budget_s) ? SETS * t->budget_s : SETS_S / 4);
    double wanted = fmax(MORE_KINDS, fmin(MORE_SETS, some_s / set_s(t)));
    return (int)fmax(fmin(wanted, left / set_s(t)), 0);
}

static double afterwards_s(const Tune *t)
{
    double s = WRITING_S + roofline_s(t) +
               (t->problem->kind->more ? t->sets_s + MORE_KINDS * set_s(t) : 0);
    for (int i = 0; i < t->nbest; i++)
        s += tune_again_s(t, t->best[i].ns);
    return fmin(s, AFTERWARDS * t->budget_s);
}

// After the budget, for a first right kernel.
static double first_s(const Tune *t)
{
    return (t->spent.trials < FIRST_TRIALS ? FIRST : AGAIN) * slack_s(t);
}

// Half of what is left, or a part of the budget, of which half the slack may be used.
static double search_end(const Tune *t, double end)
{
    double from = fmax(t->spent.right_s, t->spent.begun_s), left = fmax(end - from, 0);
    double least = fmax(left / 2, fmin(SEARCH * t->budget_s, left + slack_s(t) / 2));
    return fmin(fmax(end - afterwards_s(t), from + least),
                fmax(end + slack_s(t) / 2, from));
}

void tune_set_end(Tune *t, BudgetPart part)
{
    double end = t->start_s + t->budget_s, right_s = t->spent.right_s, grace_s = 0;
    switch (part) {
    case BUDGET_REFERENCE: end += FIRST * slack_s(t); break;
    case BUDGET_SEARCH:
        grace_s = t->nbest || !isfinite(end) ? 0 : first_s(t);
        end = t->nbest ? search_end(t, end) : end + first_s(t);
        break;
    case BUDGET_AFTERWARDS: end = fmax(end + AGAIN * slack_s(t), right_s); break;
    case BUDGET_CHECKS: end = fmax(end + CHECKS * slack_s(t), right_s); break;
    }
    t->stop.grace_s = grace_s;
    t->stop.end_s = end;
}

bool tune_has_time(const Tune *t, double seconds)
{
    return clock_s() + seconds < t->start_s + t->budget_s && !stop_asked(&t->stop);
}

// Is more search not wanted, whatever is left?
static const char *enough(const Tune *t)
{
    const TuneOptions *o = t->options;
    int64_t still = t->result->trials - t->gain.trials;
    if (!t->nbest)
        return NULL;
    if (t->roofline_ns > 0 && t->roofline_ns >= o->enough * t->best[0].ns)
        return arena_printf(t->arena, "%g %% of the roofline's speed was reached",
                            100 * o->enough);
    if (o->quiet_trials && still >= o->quiet_trials)
        return arena_printf(t->arena, "%lld trials brought no gain", (long long)still);
    if (o->quiet_s > 0 && clock_s() - t->gain.at_s >= o->quiet_s)
        return arena_printf(t->arena, "%g s brought no gain", o->quiet_s);
    return NULL;
}

bool tune_budget_left(const Tune *t)
{
    if (!t->result->enough)
        t->result->enough = enough(t);
    return !t->stopped && !t->result->enough && !t->options->no_search &&
           !stop_due(&t->stop) &&
           (!t->budget_trials || t->result->trials < t->budget_trials);
}

int tune_trials_in(const Tune *t, double seconds, int most)
{
    double left = stop_left_s(&t->stop);
    int done = t->spent.trials;
    if (done < 2) // a right kernel first of all; in its time compilers were loaded
        return isfinite(left) && t->device->is_cpu ? 1 + done : most;
    double pace = (clock_s() - t->spent.first_s) / (done - 1);
    return (int)fmin(most, fmax(1, fmin(left, seconds) / pace));
}

void tune_spent(Tune *t, const Job *job, const Trial *trial)
{
    double bytes = (double)strlen(job->source);
    t->spent.other_s += trial->build_s + trial->check_s;
    t->spent.check_s += trial->check_s;
    if (trial->status == TRIAL_OK && t->spent.right_s <= 0)
        t->spent.right_s = clock_s();
    if (t->spent.trials++ == 0)
        t->spent.first_s = clock_s();
    else if (trial->status == TRIAL_OK && bytes >= t->spent.bytes) {
        t->spent.build_s = trial->build_s;
        t->spent.bytes = bytes;
    }
}

int tune_statements_in_time(const Tune *t)
{
    return (int)fmin(COMPILING * t->budget_s / (TEXT_S * STATEMENT_BYTES), INT_MAX);
}

bool tune_compiles_in_time(const Tune *t, const Job *job)
{
    double bytes = (double)strlen(job->source), longest = t->spent.bytes;
    double usual_s = t->device->is_cpu ? 0 : bytes * TEXT_S;
    double known_s = longest > 0 ? t->spent.build_s * fmax(1, bytes / longest) : 0;
    return (t->nbest ? fmax(usual_s, known_s) : usual_s) < stop_left_s(&t->stop);
}
