// SPDX-License-Identifier: Apache-2.0
//
// analysis: what the record of a tuning says beyond its trials: which parameters matter,
// what the kernels' features tell of their times, and what models would have predicted.
// Nothing is compiled or run.

#ifndef FW_REPORT_ANALYSIS_H
#define FW_REPORT_ANALYSIS_H

#include "cost/features.h"
#include "tune/run.h"

// Predictions of the trials that ran, beside their times.
typedef struct {
    const char *model; // "boost", "weights", "forest"; NULL: there are none
    bool is_time;      // seconds turned to ns; else throughput relative to the best
    double *value;     // nkernel
    double spearman;   // with the times; positive: in the same order
} Prediction;

enum { ANALYSIS_MODELS = 2 };

typedef struct {
    const Run *run;
    int *ok, nok; // trials that ran, by number
    // The loss of explained variance (of logarithms of times held out) when a parameter's
    // values are shuffled, and what is explained with none shuffled. NAN: too few trials.
    double importance[SPACE_PARAMS_MAX], explained;
    int order[SPACE_PARAMS_MAX]; // the parameters, those that matter most first
    double *unseen_ns;           // by trial: what the forest of the others predicts; or NAN
    // Of the kernels that ran, at most ANALYSIS_KERNELS, the best included.
    int *kernel, nkernel;        // trials by number
    Matrix feature;              // nkernel by FEATURES; n 0: not known
    double redundancy[FEATURES]; // with the times (paper 000, section 6.3)
    const char *unknown;         // why features are not known; NULL: they are
    Prediction predicted[ANALYSIS_MODELS];
} Analysis;

enum { ANALYSIS_KERNELS = 1000 };

// model: a file to predict by, or NULL; models: the folder of those that come with the
// program, or NULL. False with a diagnostic if the file named is no model. Owner: arena;
// analysis_release gives back the rest.
bool analyse(const Run *run, const char *model, const char *models, Arena *arena,
             Analysis *analysis, Diags *diags);
void analysis_release(Analysis *analysis);

#endif
