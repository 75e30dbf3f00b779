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

#ifndef FW_EVALUATE_EVAL_H
#define FW_EVALUATE_EVAL_H

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
    double goal;       // 0.9 in the paper
    int random_repeat; // 0: exact expectation of random search; else simulated so often
    uint64_t seed;
} EvalOptions;

// The result as it is shown (doc/explorations.md). NULL with a diagnostic if the data are
// of one program only, or nothing ran.
json_t *eval_run(const Dataset *data, const ModelKind *kind, const EvalOptions *options,
                 Arena *arena, Diags *diags);

#endif
