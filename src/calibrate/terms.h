// SPDX-License-Identifier: Apache-2.0
//
// terms: what a model of slowness sees of a candidate. A device's weights predict a time
// from counted demands (predict.h); how many times longer the candidate takes is learnt
// from what that time is made of: the share of each part of the device and of each demand,
// and the features of the kernels. Shares, unlike counts, mean the same on another device
// of other weights.

#ifndef FW_CALIBRATE_TERMS_H
#define FW_CALIBRATE_TERMS_H

#include "calibrate/predict.h"

enum { TERMS = RESOURCES + DEMANDS + FEATURES };
const char *terms_name(int term);   // of a column
bool terms_are(const Model *model); // whether they are what the model was fitted to

// The predicted time in seconds, and the terms, of all kernels of a unit together. False if
// the weights have no demands, or a size no value.
bool terms_unit(const Weights *weights, const Unit *unit, const FeatureSetting *setting,
                Arena *arena, double term[TERMS], double *seconds);

#endif
