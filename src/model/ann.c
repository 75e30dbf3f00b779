// SPDX-License-Identifier: Apache-2.0
//
// The model of paper 002: a bag of 11 networks, each of one hidden layer of 30 units.
#include "model/bag.h"

static const NetworkStyle style = {.layers = 1, .steps = 15000, .rate = 0.02F};

static void *fit(const Matrix *x, const double *y, uint64_t seed)
{
    return bag_fit(x, y, &style, seed);
}

static void *load(const json_t *json, int d)
{
    return bag_load(json, d, &style);
}

const ModelKind model_ann = {
    .name = "ann",
    .doc = "mean of 11 neural networks, each of one hidden layer",
    .columns = COLUMNS_ALL,
    .fit = fit,
    .predict = bag_predict,
    .save = bag_save,
    .load = load,
    .free = bag_free,
};
