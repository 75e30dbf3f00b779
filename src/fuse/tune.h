// SPDX-License-Identifier: Apache-2.0
//
// tune: the empirical stage: the first solutions by prediction are built, checked and timed
// (paper 004, sections 4.3.3 and 5.2).

#ifndef FW_FUSE_TUNE_H
#define FW_FUSE_TUNE_H

#include "fuse/predict.h"

typedef struct {
    const char *text;
    Set set[CALLS_MAX]; // of each kernel
    int n;
    double predicted_ns, time_ns; // of all instances
    TrialStatus status;
    bool reused;   // from the store
    int partition; // how many different partitions came before its own
} FuseTrial;

typedef struct {
    int done, wanted;
    double best_ns, elapsed_s;
    const char *stage;
} FuseProgress;

typedef struct {
    const char *device, *store, *out;
    FusePlace place;
    int64_t instances;
    int limit, solutions; // most calls a kernel; solutions to try; 0: 20
    int sample;           // solutions drawn at random to try besides
    uint64_t seed;
    double budget_s; // INFINITY: not bounded by time
    bool fresh;
    void (*progress)(void *user, const FuseProgress *progress);
    void *user;
} FuseOptions;

typedef struct {
    const char *device, *fingerprint, *target, *kernel_path;
    int ntrial;
    FuseTrial *trial; // in the order of prediction
    int routines;     // timed for the tables now
    int best;         // the rank at which the fastest was found
    int best_partition;
    int within;                   // the first rank within 3 % of the fastest
    double unfused_ns, single_ns; // without fusions; as one kernel; INFINITY: not possible
    double best_ns, copy_ns;
    double bytes; // inputs read once, outputs written once
    int nrandom;
    FuseTrial *random;
    double correlation; // Spearman's, of prediction and time: over the random ones if any
    double space_s, cover_s, elapsed_s;
    double max_error;
    int64_t count[TRIAL_STATUS_COUNT];
    int64_t reused;
} FuseResult;

// False with diagnostics if nothing was right or the world failed. Strings live in arena.
bool fuse_tune(const Script *script, const FuseOptions *options, Arena *arena,
               FuseResult *result, Diags *diags);

#endif
