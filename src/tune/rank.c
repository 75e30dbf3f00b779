// SPDX-License-Identifier: Apache-2.0
//
// Points in the order of a model's predictions: each is derived and lowered, and the model
// is asked for the features of its kernels. Nothing is compiled or run.
//
//   method  a model predicts throughput relative to the best that its program reaches, of
//           candidates of one kernel. The time of a kernel is taken to be the bytes of its
//           buffers over that, and the time of a candidate the sum of those of its kernels.
//
// A program's terms are not shared between threads, so each thread reads the program again.
#include "tune/internal.h"

#include "calibrate/describe.h"
#include "calibrate/predict.h"
#include "cost/features.h"
#include "model/dataset.h"
#include "search/numbers.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_ALL = 20000, POINTS_SAMPLE = 10000, THREADS_MOST = 16, THREAD_POINTS = 256 };

// The pool ------------------------------------------------------------------------------

static Point *all_points(const Space *space, Arena *arena, int *n)
{
    *n = (int)space_count(space);
    Point *point = NEW_ARRAY(arena, Point, *n);
    for (int i = 0; i < *n; i++)
        space_point(space, (uint64_t)i, &point[i]);
    return point;
}

static Point *some_points(const Space *space, uint64_t seed, Arena *arena, int *n)
{
    Point *point = NEW_ARRAY(arena, Point, POINTS_SAMPLE);
    Numbers seen = {0};
    Rng rng;
    rng_seed(&rng, seed);
    *n = 0;
    for (int draw = 0; draw < 2 * POINTS_SAMPLE && *n < POINTS_SAMPLE; draw++) {
        space_sample(space, &rng, &point[*n]);
        *n += numbers_put(&seen, point_hash(space, &point[*n]), 0);
    }
    numbers_release(&seen);
    return point;
}

// Predictions ---------------------------------------------------------------------------

typedef struct {
    const Problem *problem;
    const DeviceInfo *device;
    const Model *model;     // or:
    const Weights *weights; // predict from counts
    const Point *point;
    int n, threads;
    double *predicted; // the larger, the better
    bool *known;       // the point can be lowered
} Rank;

typedef struct {
    const Rank *rank;
    int number;
    pthread_t thread;
} Share;

// What a thread works with: a program of its own.
typedef struct {
    const Rank *rank;
    Problem *own;
    Derivation *derivation;
    FeatureSetting setting;
    Arena *scratch;
    double *x; // a row of the model
} Worker;

static const double LEAST_SHARE = 1e-6;

static bool set_row(const Model *model, const double feature[FEATURES], double *x)
{
    bool ok = true;
    for (int c = 0; c < model->d; c++)
        ok &= column_value(model->feature[c], feature, &x[c]) && isfinite(x[c]);
    return ok;
}

// The inverse of the time, but for a factor that all points share.
static bool ask_model(const Worker *w, const Unit *unit, double *predicted)
{
    const Model *model = w->rank->model;
    double time = 0;
    for (int i = 0; i < unit->kernels.len; i++) {
        double feature[FEATURES], bytes, share;
        if (!features_kernel(unit, i, &w->setting, feature, &bytes) ||
            !set_row(model, feature, w->x))
            return false;
        model_predict(model, &(Matrix){1, model->d, w->x}, &share);
        time += bytes / MAX(share, LEAST_SHARE);
    }
    *predicted = 1 / time;
    return unit->kernels.len > 0;
}

static bool ask_weights(const Worker *w, const Unit *unit, double *predicted)
{
    bool ok = predict_unit(w->rank->weights, unit, &w->setting, w->scratch, predicted);
    *predicted = -*predicted;
    return ok;
}

static bool predict_point(const Worker *w, int i)
{
    const Rank *rank = w->rank;
    IrMark mark = ir_mark(w->own->ir);
    ArenaMark scratch = arena_mark(w->scratch);
    Diags quiet;
    diags_init(&quiet, w->scratch);
    Unit *unit = derive_unit(w->derivation, &rank->point[i], true, w->scratch, &quiet);
    bool ok = unit && (rank->model ? ask_model : ask_weights)(w, unit, &rank->predicted[i]);
    arena_reset(w->scratch, scratch);
    ir_release(w->own->ir, mark);
    return ok;
}

static void *do_share(void *user)
{
    const Share *share = user;
    const Rank *rank = share->rank;
    Worker w = {.rank = rank, .scratch = arena_new()};
    Diags quiet;
    diags_init(&quiet, arena_new());
    w.own = problem_parse(rank->problem->source.name, rank->problem->source.text, &quiet);
    if (!w.own ||
        !problem_bind(w.own, rank->problem->binding, rank->problem->nbinding, &quiet))
        BUG("a program that was read cannot be read again");
    w.derivation = derive_new(w.own->bound, rank->device, &quiet);
    DeviceModel device;
    describe_device(rank->device, &device);
    w.setting = (FeatureSetting){&device, w.own->binding, w.own->nbinding};
    w.x = xcalloc(rank->model ? (size_t)rank->model->d + 1 : 1, sizeof *w.x);
    for (int i = share->number; w.derivation && i < rank->n; i += rank->threads)
        rank->known[i] = predict_point(&w, i);
    free(w.x);
    derive_free(w.derivation);
    problem_free(w.own);
    arena_free(quiet.arena);
    arena_free(w.scratch);
    return NULL;
}

// A thread that cannot be started leaves its share to this one.
static void predict_all(Rank *rank)
{
    Share share[THREADS_MOST];
    bool started[THREADS_MOST];
    int wanted = MIN(processors(), THREADS_MOST);
    rank->threads = MIN(wanted, 1 + rank->n / THREAD_POINTS);
    for (int i = 0; i < rank->threads; i++) {
        share[i] = (Share){.rank = rank, .number = i};
        started[i] = i > 0 && thread_start(&share[i].thread, do_share, &share[i]);
    }
    for (int i = 0; i < rank->threads; i++)
        if (!started[i])
            do_share(&share[i]);
    for (int i = 0; i < rank->threads; i++)
        if (started[i])
            pthread_join(share[i].thread, NULL);
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
        return p->predicted > q->predicted ? -1 : 1;
    return p->tie != q->tie ? (p->tie > q->tie ? 1 : -1) : p->number - q->number;
}

static void sort_points(const Rank *rank, uint64_t seed, Arena *arena, Ranking *ranking)
{
    Place *place = xcalloc((size_t)rank->n + 1, sizeof *place);
    const double *predicted = rank->predicted;
    Point *point = NEW_ARRAY(arena, Point, rank->n);
    ranking->n = 0;
    for (int i = 0; i < rank->n; i++)
        if (rank->known[i])
            place[ranking->n++] = (Place){predicted[i], hash_mix(seed, (uint64_t)i), i};
    qsort(place, (size_t)ranking->n, sizeof *place, compare_places);
    for (int i = 0; i < ranking->n; i++)
        point[i] = rank->point[place[i].number];
    ranking->point = point;
    free(place);
}

static bool check_model(const Model *model, Diags *diags)
{
    double value, feature[FEATURES] = {0};
    for (int c = 0; c < model->d; c++)
        if (!column_value(model->feature[c], feature, &value))
            return diag_error(diags, span_none, "C019",
                              "the model was fitted to `%s`, which no kernel here tells; "
                              "see `forewarp help features`",
                              model->feature[c]);
    return true;
}

static bool rank_all(Rank *rank, uint64_t seed, Arena *arena, Ranking *ranking,
                     Diags *diags)
{
    double start = clock_s();
    Derivation *derivation = derive_new(rank->problem->bound, rank->device, diags);
    if (!derivation)
        return false;
    const Space *space = derive_space(derivation);
    rank->point = space_count(space) <= POINTS_ALL
                      ? all_points(space, arena, &rank->n)
                      : some_points(space, seed, arena, &rank->n);
    rank->predicted = xcalloc((size_t)rank->n + 1, sizeof *rank->predicted);
    rank->known = xcalloc((size_t)rank->n + 1, sizeof *rank->known);
    predict_all(rank);
    sort_points(rank, seed, arena, ranking);
    ranking->seconds = clock_s() - start;
    free(rank->known);
    free(rank->predicted);
    derive_free(derivation);
    return true;
}

bool rank_points(const Problem *problem, const DeviceInfo *device, const Model *model,
                 uint64_t seed, Arena *arena, Ranking *ranking, Diags *diags)
{
    Rank rank = {.problem = problem, .device = device, .model = model};
    return check_model(model, diags) && rank_all(&rank, seed, arena, ranking, diags);
}

bool rank_predicted(const Problem *problem, const DeviceInfo *device,
                    const Weights *weights, uint64_t seed, Arena *arena, Ranking *ranking,
                    Diags *diags)
{
    Rank rank = {.problem = problem, .device = device, .weights = weights};
    return rank_all(&rank, seed, arena, ranking, diags);
}

// Of a problem ------------------------------------------------------------------------

static void compare_device(const TuneOptions *options, const DeviceInfo *device,
                           const char *fingerprint, Diags *diags)
{
    if (strcmp(fingerprint, device->fingerprint) != 0)
        diag_warning(diags, span_none, "C018", "%s was fitted on another device",
                     options->model);
}

static bool has_derivation(const Ways *ways)
{
    return ways->derivation != NULL;
}

static bool rank_program(const Ways *ways, const DeviceInfo *device,
                         const TuneOptions *options, const SearchKind *strategy,
                         Arena *arena, Ranking *ranking, Diags *diags)
{
    const Problem *problem = ways->problem;
    if (strategy->by_weights) {
        Weights *weights = NEW(arena, Weights);
        if (!weights_load(weights, options->model, device->fingerprint, diags))
            return false;
        compare_device(options, device, weights->device.fingerprint, diags);
        ranking->model = "weights";
        return rank_predicted(problem, device, weights, options->seed, arena, ranking,
                              diags);
    }
    if (!options->model && !options->models)
        return diag_error(diags, span_none, "C017", "strategy `%s` needs a fitted model",
                          strategy->name);
    const char *path = options->model;
    if (!path)
        path = arena_printf(arena, "%s/%s.json.gz", options->models,
                            device->is_cpu ? "cpu" : "gpu");
    Model *model = model_load(path, diags);
    if (!model)
        return false;
    if (options->model)
        compare_device(options, device, model->fingerprint, diags);
    bool ok = rank_points(problem, device, model, options->seed, arena, ranking, diags);
    ranking->model = model->kind->name;
    model_free(model);
    return ok;
}

static const Ranker ranker_program = {has_derivation, rank_program, NULL};

const Ranker *ranker_find(const Ways *ways)
{
    static const Ranker *const rankers[] = {&ranker_program, &ranker_script};
    for (int i = 0; i < COUNTOF(rankers); i++)
        if (rankers[i]->applies(ways))
            return rankers[i];
    return NULL;
}
