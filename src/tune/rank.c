// SPDX-License-Identifier: Apache-2.0
//
// Points in the order of predictions: each is derived and lowered, and a model is asked for
// what is known of its kernels. Nothing is compiled or run.
//
//   method  a model of throughput predicts how near a candidate of one kernel comes to the
//           best of its program: the time of a kernel is taken to be the bytes of its
//           buffers over that, and the time of a candidate the sum of those of its kernels.
//           Weights predict times from demands, and a model of slowness how many times
//           longer it takes. The pool is points that are often good, their neighbours, and
//           points at random; after it come the neighbours of the best, round after round,
//           as long as they are better.
//
// A program's terms are not shared between threads, so each thread reads the program again.
#include "tune/internal.h"

#include "calibrate/describe.h"
#include "calibrate/predict.h"
#include "model/dataset.h"
#include "search/moves.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POINTS_ALL = 20000, POINTS_SAMPLE = 10000, TASK_POINTS = 4 };
// A climb has so many rounds, each of which looks at so many neighbours of each centre.
enum { ROUNDS = 6, CENTRES = 8, NEAR = 32 };

// What a thread works with: a program of its own.
typedef struct {
    const Rank *rank;
    Problem *own; // NULL: not opened yet
    Derivation *derivation;
    FeatureSetting setting;
    Arena *scratch, *text;
} RankWorker;

struct Rank {
    const Problem *problem;
    const DeviceInfo *device;
    DeviceModel described;
    Predictor by;
    Point *point;
    int n, cap, from;  // predicted are those from there on
    double *predicted; // logarithms of times, plus one term; INFINITY: not to be lowered
    double end_s;      // nothing is predicted later
    int statements;    // of kernels with more nothing is predicted
    const Derivation *derivation;
    Numbers seen;
    RankWorker worker[THREADS_MOST];
};

// The pool ------------------------------------------------------------------------------

static void add_point(Rank *rank, const Space *space, const Point *point)
{
    uint64_t hash = point_hash(space, point);
    if (numbers_get(&rank->seen, hash))
        return;
    numbers_put(&rank->seen, hash, (uint64_t)rank->n);
    if (rank->n == rank->cap) {
        rank->cap = rank->cap ? 2 * rank->cap : 1024;
        size_t cap = (size_t)rank->cap;
        rank->point = xrealloc(rank->point, sizeof *rank->point * cap);
        rank->predicted = xrealloc(rank->predicted, sizeof *rank->predicted * cap);
    }
    rank->predicted[rank->n] = INFINITY;
    rank->point[rank->n++] = *point;
}

static void add_near(Rank *rank, const Space *space, const Point *of, Rng *rng)
{
    Point near[MOVES_MOST];
    int found = move_all(space, rng, of, near);
    for (int i = 0; i < MIN(found, NEAR); i++)
        add_point(rank, space, &near[i]);
}

static void add_often(Rank *rank, const Space *space)
{
    Point often[FIRST_MOST];
    int n = derive_first(rank->derivation, often, FIRST_MOST);
    for (int i = 0; i < n; i++)
        if (space_valid(space, &often[i]))
            add_point(rank, space, &often[i]);
}

// All points of a space of at most `all`, else a sample of as many as `some`.
static void add_pool(Rank *rank, const Space *space, int all, int some, Rng *rng)
{
    Point point;
    if (space_count(space) <= all)
        for (int i = 0, n = (int)space_count(space); i < n; i++) {
            space_point(space, (uint64_t)i, &point);
            add_point(rank, space, &point);
        }
    else {
        add_often(rank, space);
        for (int draw = 0, most = rank->n + some; draw < 2 * some && rank->n < most;
             draw++) {
            space_sample(space, rng, &point);
            add_point(rank, space, &point);
        }
    }
}

// Predictions ---------------------------------------------------------------------------

static const double LEAST_SHARE = 1e-6;

static bool set_row(const Model *model, const double feature[FEATURES], double *x)
{
    bool ok = true;
    for (int c = 0; c < model->d; c++)
        ok &= column_value(model->feature[c], feature, &x[c]) && isfinite(x[c]);
    return ok;
}

static bool ask_model(const Model *model, const Unit *unit, const FeatureSetting *setting,
                      Arena *arena, double *seconds)
{
    double *x = NEW_ARRAY(arena, double, model->d);
    *seconds = 0;
    for (int i = 0; i < unit->kernels.len; i++) {
        double feature[FEATURES], bytes, share;
        if (!features_kernel(unit, i, setting, feature, &bytes) ||
            !set_row(model, feature, x))
            return false;
        model_predict(model, &(Matrix){1, model->d, x}, &share);
        *seconds += bytes / MAX(share, LEAST_SHARE);
    }
    return unit->kernels.len > 0;
}

bool predictor_seconds(const Predictor *by, const Unit *unit, const FeatureSetting *setting,
                       Arena *arena, double *seconds)
{
    double term[TERMS], slowness;
    if (!by->weights)
        return ask_model(by->model, unit, setting, arena, seconds);
    if (!by->model)
        return predict_unit(by->weights, unit, setting, arena, seconds);
    if (!terms_unit(by->weights, unit, setting, arena, term, seconds))
        return false;
    model_predict(by->model, &(Matrix){1, by->model->d, term}, &slowness);
    *seconds *= exp(slowness);
    return true;
}

static bool is_any(const Stm *stm, const void *of)
{
    return true;
}

// What a compiler's time goes by.
static int count_statements(const Unit *unit)
{
    int n = 0;
    for (int i = 0; i < unit->kernels.len; i++)
        n += block_count(&unit->kernels.at[i]->body, is_any, NULL);
    return n;
}

static void predict_point(const RankWorker *w, int i)
{
    const Rank *rank = w->rank;
    IrMark mark = ir_mark(w->own->ir);
    ArenaMark scratch = arena_mark(w->scratch);
    Diags quiet = {.arena = w->scratch};
    Unit *unit = derive_unit(w->derivation, &rank->point[i], true, w->scratch, &quiet);
    double time;
    if (unit && count_statements(unit) <= rank->statements &&
        predictor_seconds(&rank->by, unit, &w->setting, w->scratch, &time) && time > 0)
        rank->predicted[i] = log(time);
    arena_reset(w->scratch, scratch);
    ir_release(w->own->ir, mark);
}

static void open_worker(const Rank *rank, RankWorker *w)
{
    w->rank = rank;
    w->scratch = arena_new();
    w->text = arena_new();
    Diags quiet = {.arena = w->text};
    w->own = problem_again(rank->problem, &quiet);
    if (!w->own ||
        !problem_bind(w->own, rank->problem->binding, rank->problem->nbinding, &quiet))
        BUG("a program that was read cannot be read again");
    w->derivation = derive_new(w->own->general, rank->device, &quiet);
    w->setting = (FeatureSetting){&rank->described, w->own->binding, w->own->nbinding};
}

static void close_workers(Rank *rank)
{
    ARRAY_EACH_REF(RankWorker *, w, rank->worker, THREADS_MOST) {
        if (!w->own)
            continue;
        derive_free(w->derivation);
        problem_free(w->own);
        arena_free(w->text);
        arena_free(w->scratch);
    }
}

static void predict_some(void *user, int thread, int task)
{
    Rank *rank = user;
    RankWorker *w = &rank->worker[thread];
    if (!w->own)
        open_worker(rank, w);
    int first = rank->from + task * TASK_POINTS;
    for (int i = first; w->derivation && i < MIN(first + TASK_POINTS, rank->n); i++)
        if (clock_s() < rank->end_s)
            predict_point(w, i);
}

// Those from a number on.
static void predict_from(Rank *rank, int from)
{
    rank->from = from;
    tasks_call((rank->n - from + TASK_POINTS - 1) / TASK_POINTS, predict_some, rank);
}

static int best_of(const Rank *rank, const bool *done)
{
    int best = -1;
    for (int i = 0; i < rank->n; i++)
        if (isfinite(rank->predicted[i]) && !done[i] &&
            (best < 0 || rank->predicted[i] < rank->predicted[best]))
            best = i;
    return best;
}

static void climb(Rank *rank, const Space *space, Rng *rng)
{
    AUTO_FREE bool *done = xcalloc((size_t)rank->n + 1, sizeof *done);
    for (int round = 0; round < ROUNDS; round++) {
        int from = rank->n, centre[CENTRES], n = 0;
        while (n < CENTRES && (centre[n] = best_of(rank, done)) >= 0)
            done[centre[n++]] = true;
        double before = n ? rank->predicted[centre[0]] : 0;
        for (int k = 0; k < n; k++) {
            Point of = rank->point[centre[k]];
            add_near(rank, space, &of, rng);
        }
        predict_from(rank, from);
        done = xrealloc(done, ((size_t)rank->n + 1) * sizeof *done);
        memset(done + from, 0, (size_t)(rank->n - from) * sizeof *done);
        int best = best_of(rank, done);
        if (best < 0 || rank->predicted[best] >= before)
            break;
    }
}

// Order ---------------------------------------------------------------------------------

typedef struct {
    double predicted;
    uint64_t tie; // equal predictions: as if shuffled
    int number;
} Place;

static int compare_places(const void *a, const void *b)
{
    const Place *p = a, *q = b;
    if (p->predicted != q->predicted)
        return p->predicted < q->predicted ? -1 : 1;
    return p->tie != q->tie ? (p->tie > q->tie ? 1 : -1) : p->number - q->number;
}

// each: of equal predictions, which are mostly of equal kernels, all or one.
static void sort_points(const Rank *rank, bool each, uint64_t seed, Arena *arena,
                        Ranking *ranking)
{
    AUTO_FREE Place *place = xcalloc((size_t)rank->n + 1, sizeof *place);
    Point *point = NEW_ARRAY(arena, Point, rank->n);
    int n = 0;
    for (int i = 0; i < rank->n; i++)
        if (isfinite(rank->predicted[i]))
            place[n++] = (Place){rank->predicted[i], hash_mix(seed, (uint64_t)i), i};
    qsort(place, (size_t)n, sizeof *place, compare_places);
    ranking->n = 0;
    for (int i = 0; i < n; i++)
        if (each || i == 0 || place[i].predicted > place[i - 1].predicted)
            point[ranking->n++] = rank->point[place[i].number];
    ranking->point = point;
}

static bool check_model(const Predictor *by, Diags *diags)
{
    double value, feature[FEATURES] = {0};
    for (int c = 0; by->model && !by->weights && c < by->model->d; c++)
        if (!column_value(by->model->feature[c], feature, &value))
            return diag_error(
                diags, span_none, "C019",
                "the model was fitted to `%s`, which kernels here do not have; "
                "see `forewarp help features`",
                by->model->feature[c]);
    return true;
}

// A half of the seconds is for the pool.
static void predict_pool(Rank *rank, const RankLimit *limit, double start, uint64_t seed)
{
    const Space *space = derive_space(rank->derivation);
    Rng rng = rng_new(seed);
    add_pool(rank, space, limit ? limit->points : POINTS_ALL,
             limit ? limit->points : POINTS_SAMPLE, &rng);
    int pool = rank->n;
    bool all = space_count(space) <= pool;
    rank->end_s = limit ? start + limit->seconds / (all ? 1 : 2) : INFINITY;
    predict_from(rank, 0);
    rank->end_s = limit ? start + limit->seconds : INFINITY;
    if (!all)
        climb(rank, space, &rng);
}

Rank *rank_open(const Problem *problem, const DeviceInfo *device,
                const Derivation *derivation, const Predictor *by, const RankLimit *limit,
                uint64_t seed, Arena *arena, Ranking *ranking, Diags *diags)
{
    double start = clock_s();
    if (!check_model(by, diags))
        return NULL;
    Rank *rank = xcalloc(1, sizeof *rank);
    rank->problem = problem;
    rank->device = device;
    rank->by = *by;
    rank->derivation = derivation;
    rank->statements = limit && limit->statements ? limit->statements : INT_MAX;
    describe_device(device, &rank->described);
    predict_pool(rank, limit, start, seed);
    sort_points(rank, !limit, seed, arena, ranking);
    ranking->seconds = clock_s() - start;
    return rank;
}

void rank_close(Rank *rank)
{
    if (!rank)
        return;
    close_workers(rank);
    numbers_release(&rank->seen);
    free(rank->point);
    free(rank->predicted);
    free(rank);
}

bool rank_points(const Problem *problem, const DeviceInfo *device,
                 const Derivation *derivation, const Predictor *by, const RankLimit *limit,
                 uint64_t seed, Arena *arena, Ranking *ranking, Diags *diags)
{
    Rank *rank =
        rank_open(problem, device, derivation, by, limit, seed, arena, ranking, diags);
    rank_close(rank);
    return rank;
}

void rank_predict(Rank *rank, const Point *point, int n, double seconds, double *predicted)
{
    const Space *space = derive_space(rank->derivation);
    int from = rank->n;
    for (int i = 0; i < n; i++)
        add_point(rank, space, &point[i]);
    rank->end_s = clock_s() + seconds;
    predict_from(rank, from);
    for (int i = 0; i < n; i++)
        predicted[i] =
            rank->predicted[*numbers_get(&rank->seen, point_hash(space, &point[i]))];
}

// What predicts -----------------------------------------------------------------------

// Those of the device, else those that came with the program, by published rates.
static const Weights *find_weights(const DeviceInfo *device, const char *models,
                                   Arena *arena, Diags *diags)
{
    Diags quiet = {.arena = arena};
    Weights *weights = NEW(arena, Weights);
    bool own = access(weights_path(arena, device->fingerprint), R_OK) == 0 &&
               weights_load(weights, NULL, device->fingerprint, &quiet);
    const char *path = models ? arena_printf(arena, "%s/gpu-weights.json", models) : NULL;
    if (own)
        return weights;
    if (!weights_load(weights, path, device->fingerprint, diags))
        return NULL;
    weights_scale(weights, device);
    return weights;
}

bool predictor_load(Predictor *by, const DeviceInfo *device, const char *path,
                    const char *models, Arena *arena, Diags *diags)
{
    *by = (Predictor){0};
    if (!path)
        path = arena_printf(arena, "%s/%s.json.gz", models, device->is_cpu ? "cpu" : "gpu");
    by->model = model_load(path, diags);
    if (by->model && terms_are(by->model) &&
        !(by->weights = find_weights(device, models, arena, diags)))
        predictor_free(by);
    return by->model != NULL;
}

void predictor_free(Predictor *by)
{
    model_free(by->model);
    *by = (Predictor){0};
}

// Problems ----------------------------------------------------------------------------

static void compare_device(const TuneOptions *options, const DeviceInfo *device,
                           const char *fingerprint, Diags *diags)
{
    if (strcmp(fingerprint, device->fingerprint) != 0)
        diag_warning(diags, span_none, "C018", "%s was fitted on another device",
                     options->model);
}

bool tune_rank(Tune *t, Ranking *ranking)
{
    const TuneOptions *options = t->options;
    Predictor by = {0};
    if (t->search->kind->by_weights) {
        Weights *weights = NEW(t->arena, Weights);
        if (!weights_load(weights, options->model, t->device->fingerprint, t->diags))
            return false;
        compare_device(options, t->device, weights->device.fingerprint, t->diags);
        by.weights = weights;
    } else {
        if (!options->model && !options->models)
            return diag_error(t->diags, span_none, "C017",
                              "strategy `%s` needs a fitted model", t->search->kind->name);
        if (!predictor_load(&by, t->device, options->model, options->models, t->arena,
                            t->diags))
            return false;
        if (options->model)
            compare_device(options, t->device, by.model->fingerprint, t->diags);
    }
    ranking->model = by.model ? by.model->kind->name : "weights";
    bool ok = rank_points(t->problem, t->device, t->variants.derivation, &by, NULL,
                          options->seed, t->arena, ranking, t->diags);
    predictor_free(&by);
    return ok;
}
