// SPDX-License-Identifier: Apache-2.0
//
// picks: how near to the best of the points that were timed are those that somebody puts
// first.
//
//   source  paper 003, section 6.2: choosing from a collection of kernels without a run

#ifndef FW_EVALUATE_PICKS_H
#define FW_EVALUATE_PICKS_H

#include "calibrate/predict.h"
#include "model/model.h"

// sweep: points of many programs that were timed (bench/sweep), and what models make of
// them.

// One program at one size.
typedef struct {
    const char *class, *text;
    int seed, number, class_number; // class_number: from 0, in the order of the file
    double bytes;                   // that it was to move: its scale
    Binding *binding;
    int nbinding;
    int first, n; // its rows, of which the best took best_ns
    double best_ns;
} SweepRun;

// Owner of all of it: the arena given to sweep_read.
typedef struct {
    const char *device, *fingerprint; // NULL: it does not say
    VEC(SweepRun) runs;
    VEC(const char *) classes;
    int n;
    const char **point; // of each row
    double *ns;         // INFINITY: it did not run
    int *run, *row;     // that it is of; its own number
    // Filled in by sweep_lower: what is known without a run
    DeviceInfo info;
    int *turn;       // among the points that are tried first: 0 is the plain one, -1: none
    Demand **demand; // of its kernels
    int *nkernel;    // 0: the point is none of the program's, or cannot be lowered
    Matrix term;     // n by TERMS; features, which are the last
    // Filled in by sweep_terms, with the other terms
    bool *known;       // weights predict its time
    double *predicted; // in seconds
} Sweep;

Sweep *sweep_read(const char *path, Arena *arena, Diags *diags); // NULL with diagnostics
// For the device of the sweep, which may be another one than was measured.
void sweep_lower(Sweep *sweep, const DeviceInfo *measured, Arena *arena);
// By weights of any device (weights_scale); may be called again with others.
void sweep_terms(Sweep *sweep, const Weights *weights);

// The best time of the first picks over the best time of all, in the runs of a class. Runs
// of less than PICKS_LEAST points that ran tell nothing and are left out.
enum { PICKS_LEAST = 8 };
typedef struct {
    int runs;
    double first, first_90; // one pick: the median, the 90th percentile
    double five, five_90;   // the best of five
    double best, near;      // share of runs whose first pick is within 1 % of the best, 5 %
    double rho;             // rank correlation (Spearman), the mean
} Picks;

// before: a number for each row; rows with smaller numbers are picked first, those with NAN
// last. class: its number, or -1 for all classes.
Picks picks_of(const Sweep *sweep, const double *before, int class);

// Slowness beyond what weights predict, learnt from some terms of all rows but those of
// some classes. Owner: the caller, model_free.
typedef struct {
    int from, to;    // from first to end; others count as 0,
    Subject without; // and so do features that tell about this; SUBJECTS: about none
} TermRange;
Model *picks_fit(const Sweep *sweep, const char *const *without, int nwithout,
                 TermRange terms, uint64_t seed);
// The seconds that weights predict times the slowness, of the rows of these classes.
void picks_predict(const Sweep *sweep, const Model *model, const char *const *class,
                   int nclass, TermRange terms, double *seconds);

#endif
