// SPDX-License-Identifier: Apache-2.0
//
// goal: what a tuning is for. Metrics are numbers of a kernel that an expression gives,
// over what a trial tells of it, the parameters and the sizes; objectives are expressions
// over these, to be made small or large. Without one it is the time.

#ifndef FW_PROBLEM_GOAL_H
#define FW_PROBLEM_GOAL_H

#include "measure/measure.h"
#include "space/space.h"

// As a problem file or a command says it. where: what messages call the text.
typedef struct {
    const char *name, *text, *where; // of an objective name is NULL
} GoalText;
typedef struct {
    VEC(GoalText) metric, objective;
} GoalTexts;

enum { GOAL_METRICS = 32, GOAL_OBJECTIVES = 8 };

// The values of a kernel; NAN: not known.
typedef struct {
    double time_ns;
    double metric[GOAL_METRICS];
    double objective[GOAL_OBJECTIVES];
    double cost; // what a search makes small; INFINITY: not known
} GoalValues;

typedef struct Goal Goal;

// texts: of a problem whose sizes are `define`d; flops and bytes: of one run, 0 where they
// are not known. NULL with diagnostics. Owner: goal_close.
typedef struct {
    const GoalTexts *texts;
    const Space *space;
    int nsize;
    const char *const *size;
    const double *size_value;
    double flops, bytes;
} GoalConfig;
Goal *goal_open(const GoalConfig *config, Diags *diags);
void goal_close(Goal *goal); // accepts NULL

// What is told of each kernel: rows of measures.def, then the metrics asked for.
int goal_metrics(const Goal *goal);
const char *goal_metric(const Goal *goal, int i);
const char *goal_unit(int i); // "" where there is none
int goal_objectives(const Goal *goal);
const char *goal_objective(const Goal *goal, int i); // "max GFLOPS"
bool goal_is_time(const Goal *goal); // it is the time alone, and to be small
bool goal_weighs(const Goal *goal);  // energy is read
void goal_values(const Goal *goal, const Point *point, double time_ns,
                 const Measures *measures, GoalValues *values);
// Is a no worse than b in any objective, and better in one?
bool goal_beats(const Goal *goal, const GoalValues *a, const GoalValues *b);

#endif
