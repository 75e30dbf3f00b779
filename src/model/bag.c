// SPDX-License-Identifier: Apache-2.0
//
// Bagging as in paper 002, section 5.2: the rows are dealt into 11 parts, each network is
// trained on all parts but one, and the prediction is their mean.
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
} Bag;

static double *scale_targets(Bag *bag, const double *y, int n)
{
    double *scaled = xcalloc((size_t)n + 1, sizeof *scaled), squares = 0;
    bag->mean = metric_mean(y, n);
    double least = y[0], most = y[0];
    for (int i = 0; i < n; i++) {
        squares += (y[i] - bag->mean) * (y[i] - bag->mean);
        least = fmin(least, y[i]);
        most = fmax(most, y[i]);
    }
    bag->low = 2 * least - most;
    bag->high = 2 * most - least;
    bag->deviation = sqrt(squares / n);
    if (!(bag->deviation > 1e-12 * fabs(bag->mean)))
        bag->deviation = 1;
    for (int i = 0; i < n; i++)
        scaled[i] = (y[i] - bag->mean) / bag->deviation;
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

void *bag_fit(const Matrix *x, const double *y, const NetworkStyle *style, uint64_t seed)
{
    Bag *bag = xcalloc(1, sizeof *bag);
    Rng rng = rng_new(seed);
    bag->scaler = scaler_fit(x);
    AutoMatrix scaled = scaler_apply(&bag->scaler, x);
    AUTO_FREE double *target = scale_targets(bag, y, x->n);
    int *all = xcalloc(2 * (size_t)x->n, sizeof *all), *row = all + x->n;
    for (int i = 0; i < x->n; i++)
        all[i] = i;
    rng_shuffle(&rng, all, x->n);
    int used = MIN(x->n, ROWS_MOST);
    for (int m = 0; m < MEMBERS; m++) {
        int n = leave_part(all, used, m, row);
        bag->member[m] = network_fit(&scaled, target, row, n, style, rng_next(&rng));
    }
    free(all);
    return bag;
}

void bag_predict(const void *p, const Matrix *x, double *y)
{
    const Bag *bag = p;
    AutoMatrix scaled = scaler_apply(&bag->scaler, x);
    for (int i = 0; i < x->n; i++) {
        double sum = 0;
        for (int m = 0; m < MEMBERS; m++)
            sum += network_value(&bag->member[m], matrix_row(&scaled, i));
        double value = bag->mean + bag->deviation * sum / MEMBERS;
        y[i] = fmin(fmax(value, bag->low), bag->high);
    }
}

void bag_free(void *p)
{
    AUTO_FREE Bag *bag = p;
    scaler_free(&bag->scaler);
    for (int m = 0; m < MEMBERS; m++)
        network_free(&bag->member[m]);
}

json_t *bag_save(const void *p)
{
    const Bag *bag = p;
    json_t *members = json_array();
    for (int m = 0; m < MEMBERS; m++)
        json_array_append_new(members, network_save(&bag->member[m]));
    const double target[] = {bag->mean, bag->deviation, bag->low, bag->high};
    json_t *json =
        json_pack("{s:o, s:o}", "target", json_numbers(target, 4), "members", members);
    scaler_save(&bag->scaler, json);
    return json;
}

void *bag_load(const json_t *json, int d, const NetworkStyle *style)
{
    Bag *bag = xcalloc(1, sizeof *bag);
    const json_t *members = json_object_get(json, "members");
    AUTO_FREE double *target = json_get_numbers(json, "target", 4);
    bool ok =
        target && scaler_load(&bag->scaler, json, d) && json_array_size(members) == MEMBERS;
    for (int m = 0; ok && m < MEMBERS; m++)
        ok = network_load(&bag->member[m], json_array_get(members, (size_t)m),
                          bag->scaler.d, style);
    if (ok) {
        bag->mean = target[0];
        bag->deviation = target[1];
        bag->low = target[2];
        bag->high = target[3];
    }
    if (ok)
        return bag;
    bag_free(bag);
    return NULL;
}
