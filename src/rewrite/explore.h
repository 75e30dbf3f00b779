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
} RandomWalk;

bool chance(RandomWalk *w, int percent);
int64_t pick(RandomWalk *w, const int64_t *of, int n);
// 2^0 ... 2^k, at most `most`.
int64_t pick_power(RandomWalk *w, int64_t most);
// Applies a rule; false where it does not match.
bool apply_rule(RandomWalk *w, RuleId rule, Path at, const int64_t *args, int n);
bool apply_plain(RandomWalk *w, RuleId rule, Path at); // without arguments
const Expr *node_at(RandomWalk *w, Path at);
Path below(Path at, int child);
Path functions(Path at, int n); // through n functions
// Past the layouts that a rule put around a map or reduction.
Path inwards(RandomWalk *w, Path at);
bool needs_wrapped(const Expr *expr); // an abstract map of an invertible layout

// explore_site.c: what at host level is not lowered yet.
typedef enum { SITE_NONE, SITE_MAP, SITE_REDUCE, SITE_SCAN, SITE_COPY } SiteKind;
SiteKind site_find(RandomWalk *w, Path *at);
void choose_stages(RandomWalk *w);

// explore_map.c, explore_fold.c
void lower_map(RandomWalk *w, Path at);
void lower_reduce(RandomWalk *w, Path at);
void lower_scalars(RandomWalk *w, Path at); // reductions within a work-item
bool lower_seq(RandomWalk *w, Path at);     // a loop, unrolled or not

#endif
