// SPDX-License-Identifier: Apache-2.0
//
// Random ways to lower a program, each a derivation, and what their files share.

#ifndef FW_EVALUATE_RANDOM_WALK_H
#define FW_EVALUATE_RANDOM_WALK_H

#include "rewriter/rewriter.h"

typedef struct {
    Expr *expr; // inferred; owner: the program's Ir
    Rewriting steps;
    uint64_t hash;
    int64_t
        local[3]; // work-items its mapLcl are made for; 0: it has none of that dimension
} Explored;

// Whether an expression can be lowered and is wanted.
typedef bool ExploreAccept(void *user, const Explored *found);

typedef struct {
    int64_t most_group;   // work-items of a group
    int64_t most_outputs; // of a work-item
    int64_t local_bytes;
    int tries;             // attempts for each expression wanted before giving up
    ExploreAccept *accept; // NULL: all
    void *user;
} ExploreOptions;
extern const ExploreOptions explore_defaults; // 256, 16, 48 KiB, 20

typedef struct {
    VEC(Explored) found;
    int tried, stuck, same, refused; // attempts, and why some gave nothing
} Exploration;

// At most n distinct lowered expressions of a bound and inferred program, the same for the
// same seed. Owner of the list and the steps: arena.
Exploration *explore_random(const Program *program, uint64_t seed, int n,
                            const ExploreOptions *options, Arena *arena);

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

// random_walk_site.c: what at host level is not lowered yet.
typedef enum { SITE_NONE, SITE_MAP, SITE_REDUCE, SITE_SCAN, SITE_COPY } SiteKind;
SiteKind site_find(RandomWalk *w, Path *at);
void choose_stages(RandomWalk *w);

// random_walk_map.c, random_walk_fold.c
void lower_map(RandomWalk *w, Path at);
void lower_reduce(RandomWalk *w, Path at);
void lower_scalars(RandomWalk *w, Path at); // reductions within a work-item
bool lower_seq(RandomWalk *w, Path at);     // a loop, unrolled or not

#endif
