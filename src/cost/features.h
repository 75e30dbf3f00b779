// SPDX-License-Identifier: Apache-2.0
//
// cost: static features of a candidate.
//
//   source  paper 000, sections 4.1 to 4.4 and Table 1
//
// The same features are found in two ways: features_expression on the lowered functional
// expression, as the paper does it, and features_unit on the kernels as they are emitted,
// after duplicate loads are gone and the border is split off; ranking uses the second.
// Counts are averages over all work-items of all launches.
//
// It measures nothing and predicts nothing.

#ifndef FW_COST_FEATURES_H
#define FW_COST_FEATURES_H

#include "cost/device_model.h"
#include "lower/lower.h"

typedef enum {
    FEATURES_PARALLELISM,
    FEATURES_MEMORY,
    FEATURES_CONTROL,
    FEATURES_EXTRA,
    FEATURE_GROUP_COUNT
} FeatureGroup;

typedef enum {
#define FEATURE(id, name, unit, group, doc) FEATURE_##id,
#include "cost/features.def"
#undef FEATURE
    FEATURES
} Feature;

enum { FEATURES_PAPER = FEATURE_LOOP_BODIES + 1 }; // those of Table 1 come first

typedef struct {
    const char *name, *unit;
    FeatureGroup group;
    const char *doc;
} FeatureInfo;
extern const FeatureInfo feature_info[FEATURES];
extern const char *const feature_group_name[FEATURE_GROUP_COUNT];

// What features depend on besides the candidate.
typedef struct {
    const DeviceModel *device;
    const Binding *binding; // values of generic sizes
    int nbinding;
} FeatureSetting;

// All features of the kernels of a unit. False if a size is not bound.
bool features_unit(const Unit *unit, const FeatureSetting *setting, double out[FEATURES]);

// The features of one of its kernels, launched once; bytes: of the buffers it is given,
// times its launches. False if a size is not bound.
bool features_kernel(const Unit *unit, int number, const FeatureSetting *setting,
                     double out[FEATURES], double *bytes);

// The features of Table 1 of a lowered expression (as for lower); the others are 0. False
// with a diagnostic if it cannot be lowered, false without one if a size is not bound.
bool features_expression(const Program *program, Expr *body, const LowerOptions *options,
                         const FeatureSetting *setting, Diags *diags, double out[FEATURES]);

#endif
