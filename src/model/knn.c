// SPDX-License-Identifier: Apache-2.0
//
// k nearest neighbours over principal components (000, section 5): features are centred and
// scaled, projected on the components that hold 95 % of the variance, and the prediction is
// the mean target of the 5 nearest training rows there.
//
// One thing is added to the paper: training rows with the same features count together
// (nearest.c), because many candidates share theirs. The seed is not used.
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

static const int neighbours = 5;
static const double variance_kept = 0.95;

typedef struct {
    Scaler scaler;
    Pca pca;
    Nearest *nearest;
} Knn;

static Matrix project(const Knn *knn, const Matrix *x)
{
    AutoMatrix scaled = scaler_apply(&knn->scaler, x);
    return pca_apply(&knn->pca, &scaled);
}

static void *fit(const Matrix *x, const double *y, uint64_t seed)
{
    Knn *knn = xcalloc(1, sizeof *knn);
    knn->scaler = scaler_fit(x);
    AutoMatrix scaled = scaler_apply(&knn->scaler, x);
    knn->pca = pca_fit(&scaled, variance_kept);
    AutoMatrix points = pca_apply(&knn->pca, &scaled);
    knn->nearest = nearest_new(&points, y, NULL);
    return knn;
}

static void predict(const void *p, const Matrix *x, double *y)
{
    const Knn *knn = p;
    AutoMatrix points = project(knn, x);
    for (int i = 0; i < x->n; i++)
        y[i] = nearest_mean(knn->nearest, matrix_row(&points, i), neighbours);
}

static void drop(void *p)
{
    AUTO_FREE Knn *knn = p;
    scaler_free(&knn->scaler);
    pca_free(&knn->pca);
    nearest_free(knn->nearest);
}

static json_t *save(const void *p)
{
    const Knn *knn = p;
    int d = knn->scaler.d;
    Matrix points;
    const double *value, *weight;
    nearest_points(knn->nearest, &points, &value, &weight);
    json_t *json = json_pack(
        "{s:i, s:o, s:o, s:f, s:i, s:o, s:o, s:o}", "components", knn->pca.d, "axes",
        json_numbers(knn->pca.axis, (int64_t)knn->pca.d * d), "variance",
        json_numbers(knn->pca.variance, knn->pca.d), "total", knn->pca.total, "rows",
        points.n, "points", json_numbers(points.at, (int64_t)points.n * points.d), "value",
        json_numbers(value, points.n), "weight", json_numbers(weight, points.n));
    scaler_save(&knn->scaler, json);
    return json;
}

static bool all_at_least(const double *at, int n, double least)
{
    for (int i = 0; i < n; i++)
        if (!(at[i] >= least))
            return false;
    return true;
}

static bool load_pca(Pca *pca, const json_t *json, int d)
{
    json_int_t n = json_integer_value(json_object_get(json, "components"));
    if (n < 0 || n > d)
        return false;
    *pca = (Pca){.from = d,
                 .d = (int)n,
                 .axis = json_get_numbers(json, "axes", n * d),
                 .variance = json_get_numbers(json, "variance", n),
                 .total = json_number_value(json_object_get(json, "total"))};
    return pca->axis && pca->variance;
}

static Nearest *load_nearest(const json_t *json, int d)
{
    json_int_t n = json_integer_value(json_object_get(json, "rows"));
    if (n < 1 || n > INT32_MAX)
        return NULL;
    AutoMatrix points = {(int)n, d, json_get_numbers(json, "points", n * d)};
    AUTO_FREE double *value = json_get_numbers(json, "value", n);
    AUTO_FREE double *weight = json_get_numbers(json, "weight", n);
    bool ok = points.at && value && weight && all_at_least(weight, (int)n, 1);
    return ok ? nearest_new(&points, value, weight) : NULL;
}

static void *load(const json_t *json, int d)
{
    Knn *knn = xcalloc(1, sizeof *knn);
    if (scaler_load(&knn->scaler, json, d) && load_pca(&knn->pca, json, knn->scaler.d))
        knn->nearest = load_nearest(json, knn->pca.d);
    if (knn->nearest)
        return knn;
    drop(knn);
    return NULL;
}

const ModelKind model_knn = {
    .name = "knn",
    .doc = "mean of the 5 nearest training points over principal components",
    .columns = COLUMNS_PAPER,
    .fit = fit,
    .predict = predict,
    .save = save,
    .load = load,
    .free = drop,
};
