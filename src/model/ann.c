// SPDX-License-Identifier: Apache-2.0
//
// The model of paper 002, a bag of 11 networks, each of one hidden layer of 30 units; and
// the same with a second hidden layer: what a parameter is worth depends on others (a tile
// on whether it is copied to local memory, and so on), which one layer of 30 units has no
// room for. On 4,000 points of convolution on an H200 the error is 10.5 %, where one layer
// of logistic units has 17.2 %; doc/two-stage.md says what each part of it is worth.
// Rectified units bend where a resource runs out, as times do.
#include "model/network.h"

#define BAG(id, text, ...)                                                                 \
    static const NetworkStyle style_##id = {__VA_ARGS__};                                  \
    static void *fit_##id(const Matrix *x, const double *y, uint64_t seed)                 \
    {                                                                                      \
        return bag_fit(x, y, &style_##id, seed);                                           \
    }                                                                                      \
    static void *load_##id(const json_t *json, int d)                                      \
    {                                                                                      \
        return bag_load(json, d, &style_##id);                                             \
    }                                                                                      \
    const ModelKind model_##id = {.name = #id,                                             \
                                  .doc = text,                                             \
                                  .columns = COLUMNS_ALL,                                  \
                                  .fit = fit_##id,                                         \
                                  .predict = bag_predict,                                  \
                                  .save = bag_save,                                        \
                                  .load = load_##id,                                       \
                                  .free = bag_free}

BAG(ann, "mean of 11 neural networks, each of one hidden layer", .layers = 1,
    .steps = 15000, .rate = 0.02F);
BAG(deep, "mean of 11 neural networks, each of two hidden layers", .layers = 2,
    .rectified = true, .steps = 30000, .rate = 0.02F, .rows = 500, .decay = 0.01F);
