// SPDX-License-Identifier: Apache-2.0
//
// explore: many ways to lower a program at random, each at several thread counts, with
// their features, and with their times where a device is given.
//
//   source  paper 000, sections 2 and 8.1: 1,000 random expressions, 10 thread counts each

#ifndef FW_EVALUATE_EXPLORE_H
#define FW_EVALUATE_EXPLORE_H

#include "cost/features.h"
#include "model/dataset.h"
#include "problem/problem.h"
#include "tune/tune.h"

typedef struct {
    int expressions, threads; // wanted: distinct expressions, thread counts of each
    bool derived;             // instead so many random points of the derivation
    Predictor *by;            // of some of those points; NULL: all at random
    const Dataset *again;     // or the best rows of these; NULL: none
    bool written;    // all of those instead, with their times and features as written
    DeviceInfo info; // that it asks
    uint64_t seed;
    DeviceModel model; // what features are computed for
    int64_t most_group, local_bytes;
    const char *device; // measured there; NULL: not measured
    int64_t sample;     // rows to measure, chosen at random; 0: all
    bool unchecked;     // outputs are not compared with a reference
    Workplace place;
    const char *command; // written into the file
    void (*progress)(void *user, const char *stage, int64_t done, int64_t of);
    void *user;
} ExploreRequest;

typedef struct {
    int expressions;
    int64_t rows, measured;
    int64_t count[TRIAL_STATUS_COUNT];
    double generation_s, compilation_s, execution_s;
} ExploreResult;

// Writes the rows as text (doc/explorations.md) to csv. False with diagnostics.
bool explore(const Problem *problem, const ExploreRequest *request, Buf *csv,
             ExploreResult *result, Diags *diags);

#endif
