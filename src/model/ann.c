// SPDX-License-Identifier: Apache-2.0
//
// A bag of small networks (paper 002, section 5.2): the rows are dealt into 11 parts, each
// network is trained on all parts but one, and the prediction is their mean.
//
// It predicts what it is given: for relative errors to count, as in 002, the caller gives
// logarithms of times. Targets are centred and scaled inside.
#include "model/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 11, ROWS_MOST = 20000 };

typedef struct {
    Scaler scaler;
    double mean, deviation; // of the targets
    double low, high;       // answers stay within: a range of the targets beyond them
    Network member[MEMBERS];
} Ann;

static void shuffle(int *row, int n, Rng *rng)
{
    for (int i = n - 1; i > 0; i--) {
        int k = (int)rng_below(rng, (uint64_t)i + 1), swap = row[i];
        row[i] = row[k];
        row[k] = swap;
    }
}

static double *scale_targets(Ann *ann, const double *y, int n)
{
    double *scaled = xcalloc((size_t)n + 1, sizeof *scaled), squares = 0;
    ann->mean = metric_mean(y, n);
    double least = y[0], most = y[0];
    for (int i = 0; i < n; i++) {
        squares += (y[i] - ann->mean) * (y[i] - ann->mean);
        least = fmin(least, y[i]);
        most = fmax(most, y[i]);
    }
    ann->low = 2 * least - most;
    ann->high = 2 * most - least;
    ann->deviation = sqrt(squares / n);
    if (!(ann->deviation > 1e-12 * fabs(ann->mean)))
        ann->deviation = 1;
    for (int i = 0; i < n; i++)
        scaled[i] = (y[i] - ann->mean) / ann->deviation;
    return scaled;
}

// All rows but every 11th, from the m-th on; all of them if that would leave none.
static int leave_part(const int *all, int n, int m, int *row)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        if (n < MEMBERS || i % MEMBERS != m)
            row[count++] = all[i];
    return count;
}

static void *fit(const Matrix *x, const double *y, uint64_t seed)
{
    Ann *ann = xcalloc(1, sizeof *ann);
    Rng rng;
    rng_seed(&rng, seed);
    ann->scaler = scaler_fit(x);
    Matrix scaled = scaler_apply(&ann->scaler, x);
    double *target = scale_targets(ann, y, x->n);
    int *all = xcalloc(2 * (size_t)x->n, sizeof *all), *row = all + x->n;
    for (int i = 0; i < x->n; i++)
        all[i] = i;
    shuffle(all, x->n, &rng);
    int used = MIN(x->n, ROWS_MOST);
    for (int m = 0; m < MEMBERS; m++) {
        int n = leave_part(all, used, m, row);
        ann->member[m] = network_fit(&scaled, target, row, n, rng_next(&rng));
    }
    matrix_free(&scaled);
    free(target);
    free(all);
    return ann;
}

static void predict(const void *p, const Matrix *x, double *y)
{
    const Ann *ann = p;
    Matrix scaled = scaler_apply(&ann->scaler, x);
    for (int i = 0; i < x->n; i++) {
        double sum = 0;
        for (int m = 0; m < MEMBERS; m++)
            sum += network_value(&ann->member[m], matrix_row(&scaled, i));
        double value = ann->mean + ann->deviation * sum / MEMBERS;
        y[i] = fmin(fmax(value, ann->low), ann->high);
    }
    matrix_free(&scaled);
}

static void drop(void *p)
{
    Ann *ann = p;
    scaler_free(&ann->scaler);
    for (int m = 0; m < MEMBERS; m++)
        network_free(&ann->member[m]);
    free(ann);
}

static json_t *save(const void *p)
{
    const Ann *ann = p;
    json_t *members = json_array();
    for (int m = 0; m < MEMBERS; m++)
        json_array_append_new(members, network_save(&ann->member[m]));
    const double target[] = {ann->mean, ann->deviation, ann->low, ann->high};
    json_t *json =
        json_pack("{s:o, s:o}", "target", json_numbers(target, 4), "members", members);
    scaler_save(&ann->scaler, json);
    return json;
}

static void *load(const json_t *json, int d)
{
    Ann *ann = xcalloc(1, sizeof *ann);
    const json_t *members = json_object_get(json, "members");
    double *target = json_get_numbers(json, "target", 4);
    bool ok =
        target && scaler_load(&ann->scaler, json, d) && json_array_size(members) == MEMBERS;
    for (int m = 0; ok && m < MEMBERS; m++)
        ok = network_load(&ann->member[m], json_array_get(members, (size_t)m),
                          ann->scaler.d);
    if (ok) {
        ann->mean = target[0];
        ann->deviation = target[1];
        ann->low = target[2];
        ann->high = target[3];
    }
    free(target);
    if (ok)
        return ann;
    drop(ann);
    return NULL;
}

const ModelKind model_ann = {
    .name = "ann",
    .doc = "mean of 11 neural networks, each of one hidden layer",
    .columns = COLUMNS_ALL,
    .fit = fit,
    .predict = predict,
    .save = save,
    .load = load,
    .free = drop,
};
