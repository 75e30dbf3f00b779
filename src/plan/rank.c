// SPDX-License-Identifier: Apache-2.0
//
// Points in the order of a model's predictions: each is derived and lowered, and its
// features are asked of the model. Nothing is compiled or run.
//
// A program's terms are not shared between threads, so each thread reads the program again.
#include "plan/plan.h"

#include "cost/features.h"
#include "model/dataset.h"
#include "plan/describe.h"
#include "plan/predict.h"
#include "search/numbers.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

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

// Features ------------------------------------------------------------------------------

typedef struct {
    const Problem *problem;
    const DeviceInfo *device;
    const Model *model;     // or:
    const Weights *weights; // predict from counts
    const Point *point;
    int n, threads;
    Matrix x;          // of the model
    double *predicted; // the larger, the better
    bool *known;       // the point can be lowered
} Rank;

typedef struct {
    const Rank *rank;
    int number;
    pthread_t thread;
} Share;

static bool set_row(const Rank *rank, const double feature[FEATURES], int i)
{
    bool ok = true;
    for (int c = 0; c < rank->model->d; c++) {
        double *value = &matrix_row(&rank->x, i)[c];
        ok &= column_value(rank->model->feature[c], feature, value) && isfinite(*value);
    }
    return ok;
}

static bool find_features(const Rank *rank, const Problem *own,
                          const Derivation *derivation, const FeatureSetting *setting,
                          int i)
{
    Arena *scratch = arena_new();
    ArithMark arith = arith_mark(own->ir->arith);
    ArenaMark exprs = arena_mark(own->ir->arena);
    Diags quiet;
    diags_init(&quiet, scratch);
    Expr *body = derive_body(derivation, &rank->point[i], &quiet);
    LowerOptions options = derive_options(derivation, &rank->point[i]);
    Unit *unit = body ? lower(own->bound, body, &options, scratch, &quiet) : NULL;
    double feature[FEATURES], count[PROPERTIES], cost[PROPERTIES];
    bool ok = unit != NULL;
    if (rank->model)
        ok = ok && features_unit(unit, setting, feature) && set_row(rank, feature, i);
    else if ((ok = ok && counts_numbers(unit, setting, count)))
        rank->predicted[i] = -weights_predict(rank->weights, count, cost);
    arena_free(scratch);
    arena_reset(own->ir->arena, exprs);
    arith_release(own->ir->arith, arith);
    return ok;
}

static void *do_share(void *user)
{
    const Share *share = user;
    const Rank *rank = share->rank;
    Diags quiet;
    diags_init(&quiet, arena_new());
    Problem *own =
        problem_parse(rank->problem->source.name, rank->problem->source.text, &quiet);
    if (!own || !problem_bind(own, rank->problem->binding, rank->problem->nbinding, &quiet))
        BUG("a program that was read cannot be read again");
    Derivation *derivation = derive_new(own->bound, rank->device, &quiet);
    DeviceModel device;
    describe_device(rank->device, &device);
    FeatureSetting setting = {&device, own->binding, own->nbinding};
    for (int i = share->number; derivation && i < rank->n; i += rank->threads)
        rank->known[i] = find_features(rank, own, derivation, &setting, i);
    derive_free(derivation);
    problem_free(own);
    arena_free(quiet.arena);
    return NULL;
}

// A thread that cannot be started leaves its share to this one.
static void find_all_features(Rank *rank)
{
    Share share[THREADS_MOST];
    bool started[THREADS_MOST];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int wanted = (int)MIN(MAX(processors, 1), THREADS_MOST);
    rank->threads = MIN(wanted, 1 + rank->n / THREAD_POINTS);
    for (int i = 0; i < rank->threads; i++) {
        share[i] = (Share){.rank = rank, .number = i};
        started[i] = i > 0 && !pthread_create(&share[i].thread, NULL, do_share, &share[i]);
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
    if (rank->model)
        model_predict(rank->model, &rank->x, rank->predicted);
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
    rank->x = matrix_new(rank->n, rank->model ? rank->model->d : 0);
    rank->predicted = xcalloc((size_t)rank->n + 1, sizeof *rank->predicted);
    rank->known = xcalloc((size_t)rank->n + 1, sizeof *rank->known);
    find_all_features(rank);
    sort_points(rank, seed, arena, ranking);
    ranking->seconds = clock_s() - start;
    matrix_free(&rank->x);
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
