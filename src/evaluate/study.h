// SPDX-License-Identifier: Apache-2.0
//
// A study: many stencils recorded on one device, and what a strategy would have found in
// each (paper 001, sections 5 and 8). A folder of cache files, which
// data/stencils/record.sh makes, with an index.csv that says what each stencil is:
//   file,sample,parts,kernel,points,dims,density,unique,adds,muls
//
// A strategy is followed on the record alone, so it meets the times that it met on the
// device. Points that nobody recorded are no points.

#ifndef FW_EVALUATE_STUDY_H
#define FW_EVALUATE_STUDY_H

#include "derive/shape.h"
#include "model/forest.h"
#include "search/search.h"
#include "search/steps.h"
#include "store/recorded.h"

// How data are loaded (paper 001, section 4.7): elements of global memory, vectors of it,
// copies in local memory, images.
typedef enum { LOAD_GLOBAL, LOAD_VECTOR, LOAD_LOCAL, LOAD_IMAGE, LOADS } Loading;
enum { LOAD_ANY = LOADS, LOAD_WAYS };
extern const char *const loading_name[LOAD_WAYS];

// The heuristics that are followed: files of the folder heuristics, and what they are there
// for. STUDY(id, file, recorded as part, text)
#define STUDY_STEPS(X)                                                                     \
    X(DIMENSION, "dimension", "dimension", "by dimension")                                 \
    X(OPTIMISATION, "optimisation", "optimisation", "by optimisation")                     \
    X(HYBRID, "hybrid", "hybrid", "hybrid")                                                \
    X(RESTRICTED, "restricted", "hybrid", "hybrid, restricted")                            \
    X(VARIABLE, "variable", "variable", "hybrid, any work-group")                          \
    X(EXPERT, "expert", "expert", "ExpS")
typedef enum {
#define X(id, file, part, text) STEPS_##id,
    STUDY_STEPS(X)
#undef X
        STUDIED
} Studied;
extern const char *const studied_file[STUDIED], *const studied_text[STUDIED];

// What a strategy came to.
typedef struct {
    bool done;     // it could be followed: the record has what it asks for
    double ns;     // the best time; INFINITY: nothing ran
    int best;      // its number in the record
    int configs;   // that it tried
    int kernels;   // that these are: those for work-groups of any shape are built once
    double cost_s; // of building them and of running them
    double build_s, run_s;
} Found;

typedef struct {
    const char *file, *parts;
    char *kernel; // "star_3d_r2"
    Recorded *record;
    int64_t size[3]; // z, y, x
    double points;  // elements read for one; 0: it is no stencil, and the heuristics search
                    // all its space
    double density; // their share of the smallest box
    int dims, unique; // unique: 0 none, 1 x, 2 y, 3 z
    int adds, muls;   // for each of them
    // The space of the paper, by loading, and with kernels for work-groups of any shape;
    // NULL: no such points.
    Space *part[LOAD_WAYS], *part_any[LOAD_WAYS];
    int plain;        // number in the record of the plain point; -1: it has none
    int nrand, *rand; // Rand: numbers in the record, in the order they were run
    Found random;     // all of them
    // By number, from the weights of a device (NAME.predicted.gz beside the record, which
    // data/stencils/predict.sh makes); NAN: not predicted. NULL: there is no such file.
    double *predicted_ns;
    Found found[STUDIED][LOAD_WAYS]; // EXPERT: of LOAD_ANY only; the others: all but that
    int oracle[STUDIED];             // the loading that turned out best; -1: none
    int predicted[STUDIED];          // by a forest that has not seen this stencil; -1: none
} StudyStencil;

typedef struct {
    const char *device;
    int n;
    StudyStencil *stencil;
    int64_t size[3];             // most are of this one
    const Steps *steps[STUDIED]; // the heuristics
    Arena *arena;
} Study;

// Reads a folder, follows the heuristics of another, and predicts the loading of each
// stencil by a forest fitted to the others of the main set. NULL with diagnostics. Owner:
// the caller.
Study *study_read(const char *folder, const char *heuristics, uint64_t seed, Diags *diags);
void study_free(Study *study); // accepts NULL

// The loading that a forest fitted to the main set picks for a stencil; false: nothing of
// the heuristic was recorded.
bool study_pick(const Study *study, Studied studied, const StencilShape *shape,
                uint64_t seed, Loading *loading);
// Is it one of those that models are fitted to: of the size most are of, with one addition
// and one multiplication a point?
bool study_main(const Study *study, const StudyStencil *stencil);
bool study_is_stencil(const StudyStencil *stencil);
// What the forest sees of a stencil.
enum { STUDY_FEATURES = 6 };
void study_features(const StudyStencil *stencil, double x[STUDY_FEATURES]);
// Rand as if it had stopped after n: the mean of the best over all choices of n of its
// points, and their standard deviation, in ns.
double study_expected(const StudyStencil *stencil, int n, double *deviation);
// The time here of a point that another stencil recorded; false if the record lacks it.
// INFINITY: it failed.
bool study_lookup(const StudyStencil *stencil, const StudyStencil *from, const Point *point,
                  double *ns);
Loading study_loading(const Space *space, const Point *point);
// Is it one of its parts: what a heuristic was followed for, "alone" (each optimisation by
// itself around the best of Rand), "more" (what report_wanted asks for)?
bool study_has(const StudyStencil *stencil, const char *part);
// The best point of Rand with each optimisation set to the value that is best while the
// others stay (section 5.5).
void study_independent(const StudyStencil *stencil, Point *point);
// Group by dimension with at most so many passes, over the loading that is best of all
// (section 8.3.1).
Found study_passes(const Study *study, const StudyStencil *stencil, int passes);
// Operations in a second at a time, in 10^9.
double study_gflops(const StudyStencil *stencil, double ns);
// What the heuristic came to with the predicted loading, and with the best of all, whose
// costs are those of trying all.
Found study_predicted(const StudyStencil *stencil, Studied studied);
Found study_oracle(const StudyStencil *stencil, Studied studied);
// The fastest point with by or bz above 1: the time of the same point without over its own;
// its number in the record. NAN: nothing was recorded.
double study_merged(const StudyStencil *stencil, int *number);
// What removing equal loads gains at a point: the time of the same kernel with all loads
// over its own. NAN: that was not recorded.
double study_removal(const StudyStencil *stencil, int number);

#endif
