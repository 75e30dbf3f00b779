// SPDX-License-Identifier: Apache-2.0
//
// sweep: points of many programs that were timed (bench/sweep), and what models make of
// them.

#ifndef FW_EVALUATE_SWEEP_H
#define FW_EVALUATE_SWEEP_H

#include "calibrate/terms.h"

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
    // Filled in by sweep_terms: what is known without a run
    bool *known;       // the point is one of the program's, and can be lowered
    double *predicted; // by weights, in seconds
    Matrix term;       // n by TERMS
    int *turn; // among the points that are tried first: 0 is the plain one, -1: none
} Sweep;

Sweep *sweep_read(const char *path, Arena *arena, Diags *diags); // NULL with diagnostics
// For the device of the sweep, whichever the weights are of (weights_scale).
void sweep_terms(Sweep *sweep, const Weights *weights, Arena *arena);

#endif
