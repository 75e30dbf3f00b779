// SPDX-License-Identifier: Apache-2.0
//
// Lowering: which threads or loops do a map or a reduction.
//
//   source  paper 000, section 3.3; Lift OpenCLRules

#include "rewrite/internal.h"

// One different thread dimension for each dimension of the map, free around and inside.
static bool dims_fit(const Rewrite *rw, const Expr *at, const RuleArgs *args, Pattern p)
{
    if (!expr_is(at, P_MAP) || args->n != at->dims)
        return false;
    for (int k = 0; k < args->n; k++) {
        int64_t d = args->at[k];
        if (d < 0 || d > 2 || inside(rw, p, (int)d) || mentions_threads(at->fun, p, (int)d))
            return false;
        for (int j = 0; j < k; j++)
            if (args->at[j] == d)
                return false;
    }
    return true;
}

static Expr *nest_like(Rewrite *rw, const Expr *at, const int64_t *par, Pattern p)
{
    return make_nest(rw, p, at->dims, par, copy_of(rw, at->fun), copy_of(rw, at->arg[0]));
}

Expr *rule_mapGlb(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!dims_fit(rw, at, args, P_MAPGLB) || inside_loop(rw) || inside(rw, P_MAPWRG, -1) ||
        inside(rw, P_MAPLCL, -1) || expr_find_pattern(at->fun, P_MAPWRG) ||
        expr_find_pattern(at->fun, P_MAPLCL))
        return NULL;
    return nest_like(rw, at, args->at, P_MAPGLB);
}

Expr *rule_mapWrg(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!dims_fit(rw, at, args, P_MAPWRG) || inside_loop(rw) || inside(rw, P_MAPGLB, -1) ||
        expr_find_pattern(at->fun, P_MAPGLB) ||
        (inside(rw, P_MAPLCL, -1) &&
         (expr_find_pattern(at->fun, P_MAPLCL) || expr_find_pattern(at->fun, P_TOLOCAL))))
        return NULL;
    return nest_like(rw, at, args->at, P_MAPWRG);
}

Expr *rule_mapLcl(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!dims_fit(rw, at, args, P_MAPLCL) || !inside(rw, P_MAPWRG, -1) ||
        inside_abstract(rw) || expr_find_pattern(at->fun, P_MAPGLB) ||
        expr_find_pattern(at->fun, P_MAPWRG))
        return NULL;
    return nest_like(rw, at, args->at, P_MAPLCL);
}

static bool without_threads(const Expr *f)
{
    return !expr_find_pattern(f, P_MAPGLB) && !expr_find_pattern(f, P_MAPWRG) &&
           !expr_find_pattern(f, P_MAPLCL);
}

Expr *rule_mapSeq(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_MAP) || !without_threads(at->fun))
        return NULL;
    return nest_like(rw, at, NULL, P_MAPSEQ);
}

Expr *rule_mapSeqUnroll(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if ((!expr_is(at, P_MAP) && !expr_is(at, P_MAPSEQ)) || !without_threads(at->fun))
        return NULL;
    for (int k = 0; k < at->dims; k++)
        if (!arith_is_const(len_of(at, k), NULL))
            return NULL;
    return nest_like(rw, at, NULL, P_MAPUNROLL);
}

static Expr *fold(Rewrite *rw, const Expr *at, Pattern p)
{
    return fold_like(rw, at, p, copy_of(rw, at->arg[1]));
}

Expr *rule_reduceSeq(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return expr_is(at, P_REDUCE) ? fold(rw, at, P_REDSEQ) : NULL;
}

Expr *rule_reduceSeqUnroll(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if ((!expr_is(at, P_REDUCE) && !expr_is(at, P_REDSEQ)) ||
        !arith_is_const(len_of(at->arg[1], 0), NULL))
        return NULL;
    return fold(rw, at, P_REDUNROLL);
}

Expr *rule_scanSeq(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return expr_is(at, P_SCAN) ? fold(rw, at, P_SCANSEQ) : NULL;
}
