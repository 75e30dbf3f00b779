// SPDX-License-Identifier: Apache-2.0
//
// report: results as text, and the page of one tuning or several.

#ifndef FW_REPORT_H
#define FW_REPORT_H

#include "base/base.h"
#include "cost/features.h"
#include "tune/run.h"

#include <jansson.h>

// Text tables with aligned columns: the first to the left, the others to the right.

typedef struct {
    Arena *arena;
    int columns;
    VEC(char *) cell; // row by row, the head first
} TextTable;

// "1.234 ms"; micro: how the letter of microseconds is written.
void put_duration(Buf *out, double ns, const char *micro);

TextTable table_new(Arena *arena, int columns);
// The next cell; rows fill by themselves.
void table_put(TextTable *table, const char *format, ...) FW_PRINTF(2, 3);
void table_row(TextTable *table, const char *const *cell, int n);
// The head, a line, and the rows, indented by two. Needs: complete rows.
void table_print(Buf *out, const TextTable *table);

// A result as text, from the same value that is written as JSON: single values a line each,
// a list of objects as a table, and lists within its rows as tables of their own, whose
// first columns say which row they are of. Lists of numbers are in the JSON alone.

void report_result(Buf *out, json_t *result);

// analysis: what the record of a tuning says beyond its trials: which parameters matter,
// what the kernels' features tell of their times, and what models would have predicted.
// Nothing is compiled or run.

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
    // The kernels that are looked at: at most ANALYSIS_KERNELS that ran, with the best.
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

// The page of one tuning, or of several side by side, from their records.

// One file of HTML that draws itself (plot.js, verdict.js, page.js) and loads nothing else.
// of: one for each run, at least one; an analysis with no `ok` is left out. live: the run
// goes on, and the page loads itself again.
void report_page(Buf *out, const Analysis *const *of, int n, bool live);

#endif
