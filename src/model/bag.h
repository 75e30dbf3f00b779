// SPDX-License-Identifier: Apache-2.0
//
// A bag of small networks, for the kinds of model that are one.

#ifndef FW_MODEL_BAG_H
#define FW_MODEL_BAG_H

#include "model/network.h"

// The functions of a ModelKind, for networks of a style.
void *bag_fit(const Matrix *x, const double *y, const NetworkStyle *style, uint64_t seed);
void bag_predict(const void *bag, const Matrix *x, double *y);
json_t *bag_save(const void *bag);
void *bag_load(const json_t *json, int d, const NetworkStyle *style);
void bag_free(void *bag);

#endif
