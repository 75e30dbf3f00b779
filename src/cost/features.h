// SPDX-License-Identifier: Apache-2.0
//
// cost: static features of a candidate.
//
//   source  paper 000, sections 4.1 to 4.4 and Table 1
//
// Features are read off kernels. Models see those of the kernels that are emitted, after
// duplicate loads are gone and the border is split off; those of kernels that keep each
// loop and load of the expression (lower_as_written) are the counts of the paper's
// Algorithm 1. Counts are averages over all work-items of all launches.
//
// It measures nothing and predicts nothing.

#ifndef FW_COST_FEATURES_H
#define FW_COST_FEATURES_H

#include "cost/device_model.h"
#include "kir/kir.h"

typedef enum {
    FEATURES_PARALLELISM,
    FEATURES_MEMORY,
    FEATURES_CONTROL,
    FEATURES_EXTRA,
    FEATURE_GROUP_COUNT
} FeatureGroup;

// What a feature or a demand tells about.
#define SUBJECTS_DEF(X)                                                                    \
    X(LAUNCHES, "launches")                                                                \
    X(GROUPS, "groups and their shape")                                                    \
    X(BYTES, "bytes of memory and last cache")                                             \
    X(LINES, "lines of the nearest cache")                                                 \
    X(ACCESSES, "accesses to global memory")                                               \
    X(LOCAL, "local memory")                                                               \
    X(OPERATIONS, "arithmetic operations")                                                 \
    X(LOOPS, "loops, conditions, outputs")                                                 \
    X(BARRIERS, "barriers")                                                                \
    X(WAITS, "waits for memory and operations")                                            \
    X(REGISTERS, "registers and occupancy")                                                \
    X(WAVES, "waves")

typedef enum {
#define X(id, text) SUBJECT_##id,
    SUBJECTS_DEF(X)
#undef X
        SUBJECTS
} Subject;
extern const char *const subject_name[SUBJECTS];

typedef enum {
#define FEATURE(id, name, unit, group, subject, source, doc) FEATURE_##id,
#include "cost/features.def"
#undef FEATURE
    FEATURES
} Feature;

typedef enum { FEATURE_MADE, FEATURE_SAID } FeatureSource;

enum { FEATURES_PAPER = FEATURE_LOOP_BODIES + 1 }; // those of Table 1 come first

typedef struct {
    const char *name, *unit;
    FeatureGroup group;
    Subject subject;
    FeatureSource source;
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

#endif
