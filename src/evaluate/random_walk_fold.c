// SPDX-License-Identifier: Apache-2.0
//
// Ways to lower reductions: of a whole input in one or two stages, and within a work-item.
//
//   source  paper 000, section 3.1; Lift ReduceRules and OpenCLRules

#include "evaluate/random_walk.h"

// Within a work-item ----------------------------------------------------------------------

enum { FOLDS_MOST = 16, UNROLL_MOST = 32 };

typedef struct {
    Path at[FOLDS_MOST];
    int n;
} Folds;

static void note_folds(const Expr *e, Path *at, Folds *folds)
{
    if (expr_is(e, P_REDUCE) && folds->n < FOLDS_MOST)
        folds->at[folds->n++] = *at;
    for (int i = e->fun ? CHILD_FUN : 0; i < e->narg; i++) {
        if (!path_push(at, i))
            return;
        note_folds(i == CHILD_FUN ? e->fun->arg[0] : e->arg[i], at, folds);
        at->n--;
    }
}

static void lower_fold(RandomWalk *w, Path at)
{
    const Expr *reduce = node_at(w, at);
    int64_t len = 0;
    arith_is_const(len_of(reduce->arg[1], 0), &len);
    if (expr_is(reduce->arg[1], P_MAP) && chance(w, 40) &&
        apply_plain(w, RULE_REDUCE_FUSION, at))
        return;
    if (len > 0 && len <= UNROLL_MOST && chance(w, 50)) {
        apply_plain(w, RULE_REDUCE_UNROLL, at);
        return;
    }
    if (!chance(w, 80))
        return;
    if (len >= 8 && chance(w, 30)) {
        apply_plain(w, RULE_REDUCE_FISSION, at);
        int64_t n = 2 * pick_power(w, MIN(len / 4, 16));
        RuleId rule = chance(w, 50) ? RULE_PARTIAL_REDUCE : RULE_PARTIAL_STRIDED;
        if (apply_rule(w, rule, at, &n, 1)) {
            Path part = functions(below(at, 1), 1);
            apply_plain(
                w, n <= UNROLL_MOST && chance(w, 50) ? RULE_REDUCE_UNROLL : RULE_REDUCE_SEQ,
                part);
        }
    }
    apply_plain(w, RULE_REDUCE_SEQ, at);
}

void lower_scalars(RandomWalk *w, Path at)
{
    Folds folds = {.n = 0};
    Path path = at;
    if (!node_at(w, at))
        return;
    note_folds(node_at(w, at), &path, &folds);
    for (int i = folds.n - 1; i >= 0; i--)
        if (node_at(w, folds.at[i]) && expr_is(node_at(w, folds.at[i]), P_REDUCE))
            lower_fold(w, folds.at[i]);
}

// Folds of a whole input ------------------------------------------------------------------

// Parts reduced by groups: each item folds elements apart, one folds what they found.
static bool parts_by_groups(RandomWalk *w, Path at, int64_t len, int64_t parts)
{
    int64_t l = w->local[0];
    int64_t chunk = ((len + parts - 1) / parts + l - 1) / l * l;
    return apply_rule(w, RULE_PARTIAL_REDUCE, at, &chunk, 1) &&
           apply_rule(w, RULE_REDUCE_WRG, below(at, 1), (int64_t[]){l, 1}, 2);
}

// Parts reduced by one work-item each, of neighbours or of elements apart.
static bool parts_by_items(RandomWalk *w, Path at, int64_t len, int64_t parts)
{
    int64_t chunk = (len + parts - 1) / parts, x = 0, l = w->local[0];
    bool apart = chance(w, 60);
    if (!apply_rule(w, apart ? RULE_PARTIAL_STRIDED : RULE_PARTIAL_REDUCE, at,
                    apart ? &parts : &chunk, 1))
        return false;
    Path map = below(at, 1), inner = map;
    if (chance(w, 50)) {
        if (!apply_rule(w, RULE_MAP_GLB, map, &x, 1))
            return false;
    } else {
        if (!apply_rule(w, RULE_SPLIT_JOIN, map, &l, 1))
            return false;
        inner = inwards(w, map);
        if (!apply_rule(w, RULE_MAP_WRG, inner, &x, 1) ||
            !apply_rule(w, RULE_MAP_LCL, functions(inner, 1), &x, 1))
            return false;
    }
    lower_scalars(w, functions(inner, 1));
    return true;
}

// What the parts gave, by one group or by one work-item.
static bool fold_parts(RandomWalk *w, Path at)
{
    int64_t parts, l;
    const Expr *reduce = node_at(w, at);
    if (chance(w, 30) || !arith_is_const(len_of(reduce->arg[1], 0), &parts))
        return apply_plain(w, RULE_REDUCE_SEQ, at);
    for (l = pick_power(w, MIN(parts, w->options->most_group)); parts % l;)
        l /= 2;
    Path map = below(at, 0);
    return apply_plain(w, RULE_REDUCE_AS_MAP, at) &&
           apply_rule(w, RULE_REDUCE_WRG, map, (int64_t[]){l, 1}, 2) &&
           apply_plain(w, RULE_TO_GLOBAL, map);
}

void lower_reduce(RandomWalk *w, Path at)
{
    int64_t len;
    if (!is_regroupable(node_at(w, at)))
        apply_plain(w, RULE_REDUCE_FISSION, at);
    const Expr *reduce = node_at(w, at);
    if (!is_regroupable(reduce) || !arith_is_const(len_of(reduce->arg[1], 0), &len) ||
        chance(w, 2)) {
        w->stuck |= !apply_plain(w, RULE_REDUCE_SEQ, at);
        return;
    }
    if (expr_is(reduce->arg[1], P_MAP) && chance(w, 20))
        apply_plain(w, RULE_MAP_FUSION, below(at, 1));
    int64_t parts = pick_power(w, MIN(len, 4096));
    bool done = chance(w, 60) ? parts_by_groups(w, at, len, parts)
                              : parts_by_items(w, at, len, parts);
    w->stuck |=
        !done || !apply_plain(w, RULE_TO_GLOBAL, below(at, 1)) || !fold_parts(w, at);
}
