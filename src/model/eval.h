// SPDX-License-Identifier: Apache-2.0
//
// eval: how well a kind of model finds fast points (000, sections 7 and 8): its predictions
// for every program are made by a model that has seen no row of that program; the points of
// a program at one size are run from the highest prediction to the lowest; and the same is
// asked of a random order.
//
// Choices the paper leaves open:
// - A row that failed is a point like any other, of throughput 0: to run it costs a run, no
//   kernel time, and finds nothing. Correlations are over the rows that ran.
// - Points with equal predictions are taken in random order, by expectation, so nothing
//   depends on the order of the file. A random search is one such tie of all points.

#ifndef FW_EVAL_H
#define FW_EVAL_H

#include "model/dataset.h"

enum { EVAL_CURVE_MAX = 300 }; // runs followed in a curve: 3 % of 10,000 points

// Besides the goal asked for: nearer to the best.
#define EVAL_STRICT 0.95

// An order to run points in, as the expectation over its ties.
typedef struct {
    double runs;    // until a point reaches the goal
    double time_ns; // of the kernels run until then, that point's own included
} EvalCost;

// NAN if no point reaches the goal. prediction NULL: all equal.
EvalCost eval_cost(const double *prediction, const double *throughput,
                   const double *time_ns, int n, double goal);
// best[i]: the best throughput after i + 1 runs; length at most n.
void eval_curve(const double *prediction, const double *throughput, int n, double *best,
                int length);
// The mean over seeded random orders: a check on eval_cost with prediction NULL.
EvalCost eval_cost_simulated(const double *throughput, const double *time_ns, int n,
                             double goal, int repeat, uint64_t seed);

typedef struct {
    int group; // of the dataset
    double pearson, spearman;
    int good; // points within the goal
    EvalCost model, random;
    EvalCost model_strict, random_strict; // to EVAL_STRICT
    double *model_curve, *random_curve;   // the best after 1, 2, ... runs
    int curve;                            // their length
} EvalGroup;

typedef struct {
    int feature;
    double redundancy;
} EvalFeature;

// How soon a goal is reached, over groups.
typedef struct {
    double goal, mean, geomean; // runs
    double random_mean, random_geomean;
    double soon; // share of the groups within EVAL_SOON runs
} EvalReach;
enum { EVAL_SOON = 5 };

// The groups of one size: models that count on features of fixed scale fail at the ends.
typedef struct {
    int size, groups;
    double pearson, runs, strict_runs, fewer_runs; // the last a geometric mean
} EvalSize;

// Means over all groups, or NAN where there are none.
typedef struct {
    double pearson, spearman, lowest_pearson, highest_pearson;
    double model_runs, random_runs;     // mean
    double median_model, median_random; // runs
    double fewer_runs, less_time;       // geometric means of random / model
    double after1, after5, after10;     // best throughput after that many model runs
    double random1, random5, random10;  // and random ones
    EvalReach goal, strict;
} EvalSummary;

typedef struct {
    const Dataset *data;
    const ModelKind *kind;
    double goal;
    double *predicted;    // a row of the dataset each
    int ngroup;           // groups with a row that ran, at least two programs
    EvalGroup *group;     // in the dataset's order
    EvalFeature *feature; // data->d, most redundant first
    double *fewer_runs;   // nprogram: geometric mean over sizes; NAN if none
    double *less_time;
    int nsize;      // sizes with a group
    EvalSize *size; // in the dataset's order
    EvalSummary summary;
} Eval;

typedef struct {
    double goal;       // 0.9 in the paper
    int random_repeat; // 0: exact expectation of random search; else simulated so often
    uint64_t seed;
} EvalOptions;

// NULL with a diagnostic if the data are of one program only, or nothing ran.
Eval *eval_run(const Dataset *data, const ModelKind *kind, const EvalOptions *options,
               Arena *arena, Diags *diags);

#endif
