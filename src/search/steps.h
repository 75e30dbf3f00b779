// SPDX-License-Identifier: Apache-2.0
//
// Heuristic files (paper 001, section 7.3): what a search varies, step by step. The syntax
// is described in doc/heuristics.md; heuristic.c follows the steps.

#ifndef FW_SEARCH_STEPS_H
#define FW_SEARCH_STEPS_H

#include "space/space.h"

typedef enum {
    VARY_ALL,   // name
    VARY_EQUAL, // name = a
    VARY_LIST,  // name in (...)
    VARY_RANGE, // name in a..b
} VaryKind;

// A parameter of a step and the values it takes there.
typedef struct {
    VaryKind kind;
    const char *name;
    Span span, a, b; // of the name, of expressions
    int sample;      // so many of the values, drawn at random; 0: all
} Vary;

enum { REPEAT_DEPTH = 8 }; // most repetitions inside one another

typedef enum { STEP_SET, STEP_TUNE, STEP_REPEAT, STEP_END } StepKind;

typedef struct {
    StepKind kind;
    VEC(Vary) vary;
    Span where;  // TUNE; its source is NULL if there is none
    int64_t n;   // REPEAT: how often; TUNE: so many points, drawn at random, 0: all
    int partner; // END: its REPEAT
} Step;

// What a space may lack; then it is a number.
typedef struct {
    const char *name;
    double value;
} Default;

typedef struct Steps {
    VEC(Step) steps;
    VEC(Default) defaults;
} Steps;

// A size of the problem, for expressions.
typedef struct StepsSize {
    const char *name;
    double value;
} StepsSize;

// NULL with diagnostics that point into the source; owner: arena.
Steps *steps_parse(const Source *source, Arena *arena, Diags *diags);
// Are all names known to the space, and all expressions right? Diagnostics if not.
bool steps_check(const Steps *script, const Space *space, const StepsSize *size, int nsize,
                 Diags *diags);
// Defines sizes, defaults, and best.NAME for every parameter, in a space that asks for
// them. best NULL: 1, or the first word.
void steps_define(Space *to, const Steps *script, const Space *space, const StepsSize *size,
                  int nsize, const Point *best);
// The default of a name, or NULL.
const Default *steps_default(const Steps *script, const char *name);

#endif
