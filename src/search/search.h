// SPDX-License-Identifier: Apache-2.0
//
// search: strategies that pick the next points, all behind one ask/tell interface.
// A strategy never measures: the same one runs on a device and on a recorded space.

#ifndef FW_SEARCH_H
#define FW_SEARCH_H

#include "search/encode.h"

typedef struct Search Search;

// One row a strategy: one file, one line in searches.def.
typedef struct {
    const char *name;
    const char *doc;
    bool needs_ranking;           // search->ranking must be set before the first ask
    bool needs_steps;             // search->steps likewise
    bool learns;                  // from any point told, whoever asked for it
    bool by_weights;              // the ranking is that of a device's weights, no model's
    size_t state;                 // bytes of search->state; all are 0 before open
    void (*open)(Search *search); // sets what is not 0 in the state; may be NULL
    // Writes the next point; false when it has none left, or none before it is told of
    // points that were asked for.
    bool (*ask)(Search *search, Point *point);
    // The cost of an asked point in nanoseconds; INFINITY if its trial did not end ok.
    void (*tell)(Search *search, const Point *point, double cost_ns); // may be NULL
    void (*close)(Search *search); // frees what the state points to; may be NULL
} SearchKind;

// What is known of points before they run.
typedef struct {
    // Logarithms of their times, but for a term that is the same for all points; INFINITY:
    // nothing is predicted, mostly as nothing can be made of the point.
    void (*times)(void *user, const Point *point, int n, double *predicted);
    void *user;
} Predictions;

// What every strategy may read.
struct Search {
    const SearchKind *kind;
    const Space *space;
    Rng rng;      // seeded; the only source of chance
    double limit; // trials the budget allows; INFINITY if bounded by time alone
    int told;     // points told so far
    int given;    // distinct points given out, or told without
    Point best;
    double best_ns;       // INFINITY before the first success
    const Point *ranking; // points in the order to try them in; the caller's
    int nranking;
    const Predictions *predictions; // of points in ranking and others; NULL: there are none
    const Point *start;             // a sensible first point, or NULL; the caller's
    const struct Steps *steps; // steps.h: a heuristic file that was checked; the caller's
    const struct StepsSize *size;
    int nsize;
    LaunchShapes launches; // for strategies that model costs
    int stage[2];          // points of a strategy's stages; 0: its own choice
    void *state;           // what the strategy keeps; owner: the search
};

const SearchKind *search_find(const char *name); // NULL if there is none
const SearchKind *const *search_all(int *n);

Search *search_open(const SearchKind *kind, const Space *space, uint64_t seed,
                    double limit);
// No point is given out twice in one search; false when nothing is left, or nothing before
// all the points that were given out are told.
bool search_ask(Search *search, Point *point);
void search_tell(Search *search, const Point *point, double cost_ns);
void search_close(Search *search);

// For strategies: true if the point was given out or told; its cost, NAN if not told yet.
bool search_known(const Search *search, const Point *point, double *cost_ns);

#endif
