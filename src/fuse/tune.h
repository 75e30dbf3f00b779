// SPDX-License-Identifier: Apache-2.0
//
// tune: what is particular to tuning a script: its points in the order in which times of
// routines predict them to be fast, and what came of that order (paper 004, sections 4.3.3
// and 5.2).

#ifndef FW_FUSE_TUNE_H
#define FW_FUSE_TUNE_H

#include "fuse/points.h"
#include "fuse/predict.h"

typedef struct {
    Point point;
    double predicted_ns; // of all instances; INFINITY: no order was asked for
} FusePoint;

typedef struct {
    const char *store;
    Workplace place;
    int64_t instances;
    int solutions; // how many are wanted
    int sample;    // drawn at random besides, of any cost
    uint64_t seed;
} FuseAsked;

typedef struct {
    FusePoint *point;
    int n;
    // The best by prediction without fusions, then as one kernel where that is possible.
    Point first[2];
    int nfirst;
    FusePoint *random;
    int nrandom;
    int routines;            // timed for the tables now
    double units_s, cover_s; // spent on predictions, and on the order
} FuseRanking;

// False with a diagnostic: the routines cannot be timed, or nothing is predicted. Owner:
// arena.
bool fuse_rank(const ScriptSpace *s, const Script *script, const FuseAsked *asked,
               Arena *arena, FuseRanking *ranking, Diags *diags);

// A trial.
typedef struct {
    Point point;
    TrialStatus status;
    double time_ns; // INFINITY unless ok
    bool reused;    // from the store
} Outcome;

typedef struct {
    const char *text;   // as solution_print
    Set set[CALLS_MAX]; // of each kernel
    int n;
    Outcome outcome;
    double predicted_ns;
    int partition; // how many different partitions came before its own
} FuseTrial;

typedef struct {
    const char *solution; // the fastest
    int ntrial;
    FuseTrial *trial; // those that were tried, in the order of prediction
    int nrandom;
    FuseTrial *random;
    int best;           // the rank of the fastest of these; -1: none was right
    int best_partition; // -1 likewise
    bool is_fastest;    // of all: not one that was tried to compare with
    int within;         // the first rank within 3 % of the fastest of all; -1: none
    double unfused_ns, single_ns; // without fusions; as one kernel; INFINITY: not tried
    double correlation; // Spearman's, of prediction and time: over the random ones if any
    int routines;
    double space_s, cover_s;
} FuseResult;

// ranking: NULL where another strategy led. best: the point of the fastest. Owner: arena.
FuseResult *fuse_conclude(const ScriptSpace *s, const Script *script,
                          const FuseRanking *ranking, const Outcome *outcome, int n,
                          const Point *best, double best_ns, Arena *arena);

#endif
