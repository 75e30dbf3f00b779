// SPDX-License-Identifier: Apache-2.0
//
// Register windows: one work-item walks along an axis and keeps the window it needs.
//
//   source  Lift MapSeqSlideRewrite; in two and three dimensions this is streaming ("2.5D")

#include "rewrite/internal.h"

static bool walks(const Expr *at)
{
    return expr_is(at, P_MAP) && is_dims(at->arg[0], P_SLIDE, at->dims) &&
           has_constants(at->arg[0]) && !expr_find_pattern(at->fun, P_MAPLCL) &&
           !expr_find_pattern(at->fun, P_MAPGLB) && !expr_find_pattern(at->fun, P_MAPWRG);
}

static Expr *walk(Rewrite *rw, const Expr *at, Expr *in)
{
    return make(rw, P_MAPSLIDE, 1, at->arg[0]->num, copy_of(rw, at->fun), in);
}

Expr *rule_mapSeqSlide(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!walks(at) || at->dims != 1)
        return NULL;
    return walk(rw, at, copy_of(rw, at->arg[0]->arg[0]));
}

static Expr *turn_inside(Rewrite *rw, Expr *in)
{
    Param *p = fresh(rw, "p");
    return map_by(rw, 1, p, make1(rw, P_TRANSPOSE, use(rw, p)), in);
}

// The walked axis moves innermost, columns of windows are cut out of the others, and in a
// column it moves out again.
Expr *rule_stream(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!walks(at) || at->dims == 1)
        return NULL;
    bool deep = at->dims == 3;
    const Expr *slide = at->arg[0];
    Expr *in = make1(rw, P_TRANSPOSE, copy_of(rw, slide->arg[0]));
    if (deep)
        in = turn_inside(rw, in);
    Expr *columns = make(rw, P_SLIDE, at->dims - 1, slide->num + 2, NULL, in);
    Param *column = fresh(rw, "column");
    Expr *own = use(rw, column);
    if (deep)
        own = turn_inside(rw, own);
    Expr *body = walk(rw, at, make1(rw, P_TRANSPOSE, own));
    Expr *all = map_by(rw, at->dims - 1, column, body, columns);
    return make1(rw, P_TRANSPOSE, deep ? turn_inside(rw, all) : all);
}

// Several steps at once: what of it can be done so, lower finds out.
Expr *rule_iterateStream(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t count;
    for (int i = 0; i < 3; i++)
        if (args->at[i] < 1)
            return NULL;
    if (!expr_is(at, P_ITERATE) || !arith_is_const(at->num[0], &count) || !at_host(rw) ||
        args->at[0] > count)
        return NULL;
    const Arith *nums[] = {at->num[0], num(rw, args->at[0]), num(rw, args->at[1]),
                           num(rw, args->at[2])};
    return make(rw, P_ITERSTREAM, 1, nums, copy_of(rw, at->fun), copy_of(rw, at->arg[0]));
}
