// SPDX-License-Identifier: Apache-2.0
//
// Where an exploration has something to choose: the maps, reductions and layouts at host
// level that nobody has lowered, and the maps that may become stages of their own.

#include "evaluate/random_walk.h"

// Written to memory by itself, under layouts that can be turned to the writing side.
static bool writes_itself(const Expr *e)
{
    if (e->kind == E_LET)
        return writes_itself(e->arg[1]);
    if (e->kind != E_PATTERN || e->pattern == P_ARRAY || e->pattern == P_TOLOCAL ||
        e->pattern == P_TOPRIVATE)
        return false;
    if (needs_wrapped(e))
        return writes_itself(e->arg[0]);
    if (pattern_info[e->pattern].group == G_VIEW)
        return view_inverts(e) && writes_itself(data_of(e));
    return true;
}

static SiteKind find(const Expr *e, Path *at, bool root);

static SiteKind find_in(const Expr *e, int child, Path *at, bool root)
{
    const Expr *inner = child == CHILD_FUN ? e->fun->arg[0] : e->arg[child];
    if (!path_push(at, child))
        return SITE_NONE;
    SiteKind found = find(inner, at, root);
    if (!found)
        at->n--;
    return found;
}

static SiteKind find_in_args(const Expr *e, Path *at, bool root)
{
    SiteKind found = SITE_NONE;
    for (int i = 0; i < e->narg && !found; i++)
        found = find_in(e, i, at, root);
    return found;
}

static SiteKind find_pattern(const Expr *e, Path *at, bool root)
{
    bool through =
        e->pattern == P_TOGLOBAL ||
        (root && (needs_wrapped(e) || pattern_info[e->pattern].group == G_VIEW) &&
         writes_itself(e));
    SiteKind found = find_in_args(e, at, through);
    if (!found && e->pattern == P_ITERATE)
        found = find_in(e, CHILD_FUN, at, true);
    if (found || through)
        return found;
    if (e->pattern == P_REDUCE)
        return SITE_REDUCE;
    if (!root)
        return SITE_NONE;
    if (e->pattern == P_MAP)
        return SITE_MAP;
    if (e->pattern == P_SCAN)
        return SITE_SCAN;
    bool view = pattern_info[e->pattern].group == G_VIEW || e->pattern == P_ARRAY;
    return view && e->type->kind == T_ARRAY ? SITE_COPY : SITE_NONE;
}

// Root: the expression is written to memory as it stands.
static SiteKind find(const Expr *e, Path *at, bool root)
{
    switch (e->kind) {
    case E_LET: {
        SiteKind found = find_in(e, 0, at, false);
        return found ? found : find_in(e, 1, at, root);
    }
    case E_TUPLE: return find_in_args(e, at, root);
    case E_PATTERN: return find_pattern(e, at, root);
    case E_OP:
    case E_CALL:
    case E_GET:
    case E_AT:
    case E_PARAM: {
        SiteKind found = find_in_args(e, at, false);
        return found ? found : root && e->type->kind == T_ARRAY ? SITE_COPY : SITE_NONE;
    }
    case E_LITERAL:
    case E_NUM:
    case E_LAMBDA: break;
    }
    return SITE_NONE;
}

SiteKind site_find(RandomWalk *w, Path *at)
{
    at->n = 0;
    return find(w->r.expr, at, true);
}

// Stages ---------------------------------------------------------------------------------

enum { STAGES_MOST = 16 };

typedef struct {
    Path at[STAGES_MOST];
    int n;
} StagePaths;

// Maps that something else reads, outermost first.
static void note_stages(const Expr *e, Path *at, bool read, StagePaths *stages)
{
    if (read && expr_is(e, P_MAP) && stages->n < STAGES_MOST)
        stages->at[stages->n++] = *at;
    bool host = e->fun && e->pattern == P_ITERATE;
    for (int i = host ? CHILD_FUN : 0; i < e->narg; i++) {
        const Expr *inner = i == CHILD_FUN ? e->fun->arg[0] : e->arg[i];
        bool reads = i != CHILD_FUN && e->kind != E_TUPLE &&
                     !(e->kind == E_LET && i == 1) && !(expr_is(e, P_TOGLOBAL));
        if (!path_push(at, i))
            return;
        note_stages(inner, at, reads, stages);
        at->n--;
    }
}

// A stage with a name is written where it is read, layouts move inside it, and maps join.
static bool fuse_named(RandomWalk *w, Path let)
{
    const Path all = {0};
    if (!apply_plain(w, RULE_LET_INLINE, let))
        return false;
    while (rewriter_first(&w->r, &all, RULE_LAYOUT_OF_MAP))
        continue;
    return rewriter_first(&w->r, &all, RULE_MAP_FUSION);
}

// The map that reads this one, through layouts or a zip, takes it in.
static bool fuse(RandomWalk *w, Path at)
{
    if (at.n == 0)
        return false;
    Path user = at;
    user.n--;
    int64_t i = at.step[at.n - 1];
    if (node_at(w, user)->kind == E_LET)
        return fuse_named(w, user);
    if (apply_plain(w, RULE_LAYOUT_OF_MAP, user)) {
        const Expr *e = node_at(w, user);
        return expr_is(e, P_MAP) && fuse(w, user);
    }
    if (apply_plain(w, RULE_MAP_FUSION, user) || apply_plain(w, RULE_REDUCE_FUSION, user))
        return true;
    if (user.n == 0)
        return false;
    user.n--;
    return apply_rule(w, RULE_MAP_ZIP_FUSION, user, &i, 1);
}

// Innermost first, so that the other positions stay right: stored, fused, or left to be
// computed where it is read.
void choose_stages(RandomWalk *w)
{
    StagePaths stages = {.n = 0};
    Path at = {0};
    note_stages(w->r.expr, &at, false, &stages);
    for (int i = stages.n - 1; i >= 0; i--) {
        const Expr *e = node_at(w, stages.at[i]);
        if (!e || !expr_is(e, P_MAP))
            continue;
        if (chance(w, 50))
            apply_plain(w, RULE_TO_GLOBAL, stages.at[i]);
        else if (chance(w, 50))
            fuse(w, stages.at[i]);
    }
}
