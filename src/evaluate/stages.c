// SPDX-License-Identifier: Apache-2.0
//
// A repetition puts the points of a record in an order of chance. Those before the N-th
// valid one are the first stage, the failing among them too; the rest is what the models
// predict and what the second stage is picked from.
//
// A training is a task of its own, and threads take the tasks in turn: their numbers do not
// depend on which does which.
#include "evaluate/stages.h"

#include "measure/json.h"
#include "model/attempt.h"
#include "search/encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const int stage_first[STAGE_FIRSTS] = {100, 200, 500, 1000, 2000, 3000, 4000};
enum { STAGE_SECONDS = 5, STAGE_SCATTER = 100 };
static const int stage_second[STAGE_SECONDS] = {10, 50, 100, 150, 200};

enum { UNSEEN_LEAST = 100, REPEATS_MOST = 100 };

// One second stage, as means over the repetitions; NAN where none had a point that ran.
typedef struct {
    double slowdown,
        worst;     // its best point over the best not seen before; of all repetitions
    double failed; // share of its points that fail
    int empty;     // repetitions in which all of them failed
} StageCell;

// What a model trained on so many valid points does, by the names of the result.
enum {
    TRIED,  // points until so many were valid
    ERROR,  // mean relative error on valid points that it has not seen
    SPREAD, // standard deviation of that over the repetitions
    MEDIAN, // relative error
    RANK,   // Spearman's correlation
    FIT_S,  // processor time of training
    // The model of failures, of points not seen: share it is right about; share of the
    // larger kind; failing points that it trusts, good ones that it doubts, of their kind.
    RIGHT,
    PLAIN,
    MISSED,
    DOUBTED,
    STAGE_NUMBERS
};
static const char *const number_name[STAGE_NUMBERS] = {
    "tried",      "error",          "spread",      "median", "rank",
    "training_s", "failures_right", "larger_kind", "missed", "doubted"};

typedef struct {
    int first; // 0: the record is too small, nothing else is set
    double number[STAGE_NUMBERS];
    StageCell with[STAGE_SECONDS];    // doubted points last
    StageCell without[STAGE_SECONDS]; // as 002 has it: failures are not learnt
} StageFirst;

typedef struct {
    const Recorded *recorded;
    const ModelKind *kind;
    int repeats;
    double best_ns;
    StageFirst first[STAGE_FIRSTS];
    int nscatter; // points not seen by one model of the most training points
    double actual_ns[STAGE_SCATTER], predicted_ns[STAGE_SCATTER];
} Stages;

// All points of a record as a model sees them.
typedef struct {
    Stages *stages;
    Matrix x;
    double *cost; // INFINITY: failed
    int n;
    uint64_t seed;
} RecordView;

// What one repetition says of one first stage.
typedef struct {
    const RecordView *view;
    int first, repeat;
    StageFirst result;
    bool scatters;
} Task;

// A repetition -------------------------------------------------------------------------

typedef struct {
    int *order, n, tried; // of points; the first `tried` are the first stage
    double *time, *doubt; // predicted, of the others
} StageTrial;

static void open_trial(const RecordView *view, int first, Rng *rng, StageTrial *trial)
{
    size_t n = (size_t)view->n;
    *trial = (StageTrial){.n = view->n,
                          .order = xcalloc(n, sizeof(int)),
                          .time = xcalloc(n, sizeof(double)),
                          .doubt = xcalloc(n, sizeof(double))};
    for (int i = 0; i < view->n; i++)
        trial->order[i] = i;
    rng_shuffle(rng, trial->order, view->n);
    for (int valid = 0; valid < first; trial->tried++)
        valid += attempt_ran(view->cost[trial->order[trial->tried]]);
}

static void close_trial(StageTrial *trial)
{
    free(trial->order);
    free(trial->time);
    free(trial->doubt);
}

static double thread_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Trains on the first stage and predicts the rest; seconds of training.
static double predict_rest(const RecordView *view, StageTrial *trial, uint64_t seed)
{
    AutoMatrix seen = matrix_select(&view->x, trial->order, trial->tried);
    Matrix rest =
        matrix_select(&view->x, trial->order + trial->tried, trial->n - trial->tried);
    AUTO_FREE double *cost = xcalloc((size_t)trial->tried, sizeof *cost);
    for (int i = 0; i < trial->tried; i++)
        cost[i] = view->cost[trial->order[i]];
    double start = thread_s();
    Attempts fit = attempts_fit(view->stages->kind, &seen, cost, seed);
    double spent = thread_s() - start;
    attempts_predict(&fit, &rest, trial->time, trial->doubt);
    attempts_free(&fit);
    matrix_free(&rest);
    return spent;
}

// The cost of the i-th of the rest.
static double rest_cost(const RecordView *view, const StageTrial *trial, int i)
{
    return view->cost[trial->order[trial->tried + i]];
}

// How far predictions are off, on the points that ran.
static void judge_times(const RecordView *view, const StageTrial *trial, StageFirst *result)
{
    int rest = trial->n - trial->tried, n = 0;
    AUTO_FREE double *error = xcalloc(3 * (size_t)rest, sizeof *error);
    double *actual = error + rest, *predicted = actual + rest;
    for (int i = 0; i < rest; i++) {
        if (!attempt_ran(rest_cost(view, trial, i)))
            continue;
        actual[n] = rest_cost(view, trial, i);
        predicted[n] = exp(trial->time[i]);
        error[n] = fabs(predicted[n] - actual[n]) / actual[n];
        n++;
    }
    result->number[ERROR] = metric_mean(error, n);
    result->number[MEDIAN] = metric_median(error, n);
    result->number[RANK] = metric_spearman(actual, predicted, n);
}

static double share(int part, int whole)
{
    return whole ? (double)part / whole : NAN;
}

static void judge_doubts(const RecordView *view, const StageTrial *trial,
                         StageFirst *result)
{
    int rest = trial->n - trial->tried, failed = 0, missed = 0, doubted = 0;
    for (int i = 0; i < rest; i++) {
        bool good = attempt_ran(rest_cost(view, trial, i)), trusted = trial->doubt[i] <= 0;
        failed += !good;
        missed += !good && trusted;
        doubted += good && !trusted;
    }
    result->number[RIGHT] = share(rest - missed - doubted, rest);
    result->number[PLAIN] = share(MAX(failed, rest - failed), rest);
    result->number[MISSED] = share(missed, failed);
    result->number[DOUBTED] = share(doubted, rest - failed);
}

// Second stages ------------------------------------------------------------------------

// What the points that are predicted to be fastest turn out to be. They are picked from
// those not seen, and so compared with the best of these.
static void judge_picks(const RecordView *view, const StageTrial *trial, bool doubts,
                        StageCell *cell)
{
    int rest = trial->n - trial->tried;
    AUTO_FREE AttemptRank *pick = xcalloc((size_t)rest, sizeof *pick);
    double best_there_is = INFINITY;
    for (int i = 0; i < rest; i++) {
        pick[i] = (AttemptRank){doubts ? trial->doubt[i] : 0, trial->time[i], (uint64_t)i};
        best_there_is = fmin(best_there_is, rest_cost(view, trial, i));
    }
    attempts_sort(pick, rest);
    for (int m = 0; m < STAGE_SECONDS; m++) {
        int n = MIN(stage_second[m], rest), failed = 0;
        double best = INFINITY;
        for (int i = 0; i < n; i++) {
            double cost = rest_cost(view, trial, (int)pick[i].number);
            best = fmin(best, cost);
            failed += !attempt_ran(cost);
        }
        double slowdown = failed < n ? best / best_there_is : NAN;
        cell[m] = (StageCell){slowdown, slowdown, share(failed, n), failed == n};
    }
}

static void keep_scatter(const RecordView *view, const StageTrial *trial)
{
    Stages *s = view->stages;
    for (int i = 0; i < trial->n - trial->tried && s->nscatter < STAGE_SCATTER; i++)
        if (attempt_ran(rest_cost(view, trial, i))) {
            s->actual_ns[s->nscatter] = rest_cost(view, trial, i);
            s->predicted_ns[s->nscatter++] = exp(trial->time[i]);
        }
}

static void do_task(Task *task)
{
    const RecordView *view = task->view;
    StageFirst *result = &task->result;
    StageTrial trial;
    Rng rng = rng_new(view->seed + (uint64_t)task->repeat);
    open_trial(view, task->first, &rng, &trial);
    *result = (StageFirst){.first = task->first, .number[TRIED] = trial.tried};
    result->number[FIT_S] = predict_rest(view, &trial, rng_next(&rng));
    judge_times(view, &trial, result);
    judge_doubts(view, &trial, result);
    judge_picks(view, &trial, true, result->with);
    judge_picks(view, &trial, false, result->without);
    if (task->scatters)
        keep_scatter(view, &trial);
    close_trial(&trial);
}

// All of them --------------------------------------------------------------------------

static void do_one(void *user, int thread, int task)
{
    do_task((Task *)user + task);
}

static void add_cells(const StageCell *from, double weight, StageCell *to)
{
    for (int m = 0; m < STAGE_SECONDS; m++) {
        to[m].failed += weight * from[m].failed;
        to[m].empty += from[m].empty;
        if (!from[m].empty) {
            to[m].slowdown += from[m].slowdown;
            to[m].worst = fmax(to[m].worst, from[m].worst);
        }
    }
}

static void end_cells(StageCell *cell, int repeats)
{
    for (int m = 0; m < STAGE_SECONDS; m++) {
        int n = repeats - cell[m].empty;
        cell[m].slowdown = n ? cell[m].slowdown / n : NAN;
        cell[m].worst = n ? cell[m].worst : NAN;
    }
}

// The means of the tasks of one first stage.
static void sum_up(const Task *task, int repeats, StageFirst *sum)
{
    double squares = 0, weight = 1.0 / repeats;
    *sum = (StageFirst){.first = task->first};
    for (int r = 0; r < repeats; r++) {
        const StageFirst *one = &task[r].result;
        for (int i = 0; i < STAGE_NUMBERS; i++)
            sum->number[i] += weight * one->number[i];
        add_cells(one->with, weight, sum->with);
        add_cells(one->without, weight, sum->without);
    }
    for (int r = 0; r < repeats; r++)
        squares += pow(task[r].result.number[ERROR] - sum->number[ERROR], 2);
    sum->number[SPREAD] = repeats > 1 ? sqrt(squares / (repeats - 1)) : NAN;
    end_cells(sum->with, repeats);
    end_cells(sum->without, repeats);
}

static void open_view(const Recorded *recorded, Stages *stages, uint64_t seed,
                      RecordView *view)
{
    Encoding *encoding = encode_new(recorded->space);
    encode_launches(encoding, recorded_launches(recorded));
    *view = (RecordView){.stages = stages,
                         .x = matrix_new(recorded->n, encoding->d),
                         .cost = xcalloc((size_t)recorded->n, sizeof(double)),
                         .n = recorded->n,
                         .seed = seed};
    stages->best_ns = INFINITY;
    for (int i = 0; i < recorded->n; i++) {
        Point point;
        space_point(recorded->space, (uint64_t)i, &point);
        encode_point(encoding, &point, matrix_row(&view->x, i));
        view->cost[i] = recorded_cost(recorded, &recorded->at[i]);
        stages->best_ns = fmin(stages->best_ns, view->cost[i]);
    }
    encode_free(encoding);
}

bool stages_fit(const Recorded *recorded, int first)
{
    return first + MAX(UNSEEN_LEAST, recorded->nvalid / 10) <= recorded->nvalid;
}

// The largest first stages come first, since they take longest.
static int list_tasks(const RecordView *view, int firsts, Task *task)
{
    int n = 0;
    for (int f = STAGE_FIRSTS - 1; f >= 0; f--)
        for (int r = 0; r < view->stages->repeats && (firsts >> f & 1) &&
                        stages_fit(view->stages->recorded, stage_first[f]);
             r++, n++)
            task[n] = (Task){
                .view = view, .first = stage_first[f], .repeat = r, .scatters = n == 0};
    return n;
}

// The result ---------------------------------------------------------------------------

static json_t *cells_json(const StageCell *cell)
{
    json_t *list = json_array();
    for (int m = 0; m < STAGE_SECONDS; m++)
        json_array_append_new(list, json_pack("{s:i, s:o, s:o, s:f, s:i}", "second",
                                              stage_second[m], "slowdown",
                                              json_finite(cell[m].slowdown), "worst",
                                              json_finite(cell[m].worst), "failed",
                                              cell[m].failed, "empty", cell[m].empty));
    return list;
}

static json_t *first_json(const StageFirst *f)
{
    json_t *json = json_pack("{s:i}", "first", f->first);
    for (int i = 0; i < STAGE_NUMBERS; i++)
        json_object_set_new(json, number_name[i], json_finite(f->number[i]));
    json_object_set_new(json, "second", cells_json(f->with));
    json_object_set_new(json, "second_ignoring_failures", cells_json(f->without));
    return json;
}

static json_t *stages_json(const Stages *s)
{
    json_t *firsts = json_array(), *scatter = json_array();
    for (int f = 0; f < STAGE_FIRSTS; f++)
        if (s->first[f].first)
            json_array_append_new(firsts, first_json(&s->first[f]));
    for (int i = 0; i < s->nscatter; i++)
        json_array_append_new(scatter,
                              json_pack("[f, f]", s->actual_ns[i], s->predicted_ns[i]));
    int repeated;
    double noise = recorded_noise(s->recorded, &repeated);
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:o, s:i, s:i, s:o, s:o}", "record",
                     s->recorded->name, "device", s->recorded->device, "model",
                     s->kind->name, "points", s->recorded->n, "ran", s->recorded->nvalid,
                     "best_ns", s->best_ns, "noise", json_finite(noise), "noise_points",
                     repeated, "repeat", s->repeats, "first_stages", firsts, "scatter",
                     scatter);
}

json_t *stages_run(const Recorded *recorded, const ModelKind *kind, int firsts, int repeats,
                   uint64_t seed, Diags *diags)
{
    RecordView view;
    Stages all = {
        .recorded = recorded, .kind = kind, .repeats = MIN(MAX(repeats, 1), REPEATS_MOST)};
    Stages *stages = &all;
    open_view(recorded, stages, seed, &view);
    AUTO_FREE Task *task = xcalloc((size_t)(STAGE_FIRSTS * stages->repeats), sizeof *task);
    int n = list_tasks(&view, firsts, task);
    tasks_call(n, do_one, task);
    for (int i = 0; i < n; i += stages->repeats)
        for (int f = 0; f < STAGE_FIRSTS; f++)
            if (stage_first[f] == task[i].first)
                sum_up(&task[i], stages->repeats, &stages->first[f]);
    matrix_free(&view.x);
    free(view.cost);
    if (n > 0)
        return stages_json(stages);
    return diag_null(diags, span_none, "X003",
                     "%s: %d valid points are too few to train and to judge a model",
                     recorded->name, recorded->nvalid);
}
