// SPDX-License-Identifier: Apache-2.0
//
// What the files of exploration share.

#ifndef FW_REWRITE_EXPLORE_H
#define FW_REWRITE_EXPLORE_H

#include "rewrite/internal.h"

// One random walk from the program to a lowered expression.
typedef struct {
    Rewriter r;
    Rng *rng;
    const ExploreOptions *options;
    int64_t local[3];    // shape of a work-group, by thread dimension
    int64_t local_bytes; // left for tiles
    bool stuck;
} Walk;

bool chance(Walk *w, int percent);
int64_t pick(Walk *w, const int64_t *of, int n);
// 2^0 ... 2^k, at most `most`.
int64_t pick_power(Walk *w, int64_t most);
// Applies a rule; false where it does not match.
bool apply_rule(Walk *w, RuleId rule, Path at, const int64_t *args, int n);
bool apply_plain(Walk *w, RuleId rule, Path at); // without arguments
const Expr *node_at(Walk *w, Path at);
Path below(Path at, int child);
Path functions(Path at, int n); // through n functions
// Past the layouts that a rule put around a map or reduction.
Path inwards(Walk *w, Path at);
bool needs_wrapped(const Expr *expr); // an abstract map of an invertible layout

// explore_site.c: what at host level is not lowered yet.
typedef enum { SITE_NONE, SITE_MAP, SITE_REDUCE, SITE_SCAN, SITE_COPY } SiteKind;
SiteKind site_find(Walk *w, Path *at);
void choose_stages(Walk *w);

// explore_map.c, explore_fold.c
void lower_map(Walk *w, Path at);
void lower_reduce(Walk *w, Path at);
void lower_scalars(Walk *w, Path at); // reductions within a work-item
bool lower_seq(Walk *w, Path at);     // a loop, unrolled or not

#endif
