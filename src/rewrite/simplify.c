// SPDX-License-Identifier: Apache-2.0
//
// Simplification: pairs of layouts that undo each other, and layouts that do nothing.
//
//   source  Lift SimplificationRules

#include "rewrite/internal.h"

Expr *rule_joinOfSplit(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_JOIN) || !is_dims(at->arg[0], P_SPLIT, at->dims))
        return NULL;
    return copy_of(rw, at->arg[0]->arg[0]);
}

Expr *rule_splitOfJoin(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_SPLIT) || !is_dims(at->arg[0], P_JOIN, at->dims))
        return NULL;
    const Expr *x = at->arg[0]->arg[0];
    for (int k = 0; k < at->dims; k++)
        if (!arith_equal(rw->ir->arith, len_of(x, at->dims + k), at->num[k]))
            return NULL;
    return copy_of(rw, x);
}

// outer(inner(x)) of one dimension gives x.
static Expr *undone(Rewrite *rw, const Expr *at, Pattern outer, Pattern inner)
{
    return expr_is(at, outer) && expr_is(at->arg[0], inner)
               ? copy_of(rw, at->arg[0]->arg[0])
               : NULL;
}

Expr *rule_transposeTwice(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return undone(rw, at, P_TRANSPOSE, P_TRANSPOSE);
}

Expr *rule_mapId(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_MAP) || at->fun->nparam != 1)
        return NULL;
    const Expr *given = at->fun->arg[0], *in = at->arg[0];
    if (expr_is_use(given, at->fun->params[0]))
        return copy_of(rw, in);
    if (given->kind == E_GET && expr_is_use(given->arg[0], at->fun->params[0]) &&
        is_dims(in, P_ZIP, at->dims))
        return copy_of(rw, in->arg[given->index]);
    return NULL;
}

Expr *rule_scalarOfVector(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return undone(rw, at, P_ASSCALAR, P_ASVECTOR);
}

Expr *rule_vectorOfScalar(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Expr *x = undone(rw, at, P_ASVECTOR, P_ASSCALAR);
    return x && at->type->elem->width == at->arg[0]->arg[0]->type->elem->width ? x : NULL;
}

static Expr *order_undone(Rewrite *rw, const Expr *at, Pattern outer, Pattern inner)
{
    Expr *x = undone(rw, at, outer, inner);
    return x && expr_equal(at->fun, at->arg[0]->fun) ? x : NULL;
}

Expr *rule_gatherOfScatter(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return order_undone(rw, at, P_GATHER, P_SCATTER);
}

Expr *rule_scatterOfGather(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return order_undone(rw, at, P_SCATTER, P_GATHER);
}

Expr *rule_unzipOfZip(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_UNZIP) || !is_dims(at->arg[0], P_ZIP, 1))
        return NULL;
    const Expr *zip = copy_of(rw, at->arg[0]);
    return expr_tuple(rw->ir, zip->arg, zip->narg);
}

Expr *rule_getOfTuple(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (at->kind != E_GET || at->arg[0]->kind != E_TUPLE)
        return NULL;
    return copy_of(rw, at->arg[0]->arg[at->index]);
}

Expr *rule_letInline(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (at->kind != E_LET)
        return NULL;
    Expr *value = start_value(rw, at->arg[0]);
    return rest_with(rw, at->arg[1], &at->param, (const Expr *const[]){value}, 1);
}

static bool is_equal(const Expr *expr, const void *other)
{
    return expr->kind == ((const Expr *)other)->kind && expr_equal(expr, other);
}

Expr *rule_letShare(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (at->kind != E_LET || !expr_find(at->arg[1], is_equal, at->arg[0]))
        return NULL;
    return expr_let(rw->ir, at->param, copy_of(rw, at->arg[0]),
                    with_name(rw, copy_of(rw, at->arg[1]), at->arg[0], at->param));
}

// What a pattern with numbers that are all 0 is given.
static Expr *unchanged(Rewrite *rw, const Expr *at, Pattern p)
{
    if (!expr_is(at, p))
        return NULL;
    for (int i = 0; i < at->nnum; i++)
        if (at->num[i] != num(rw, 0))
            return NULL;
    return copy_of(rw, data_of(at));
}

Expr *rule_padNothing(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return unchanged(rw, at, P_PAD);
}

Expr *rule_takeAll(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_TAKE))
        return NULL;
    for (int k = 0; k < at->dims; k++)
        if (!arith_equal(rw->ir->arith, at->num[k], len_of(at->arg[0], k)))
            return NULL;
    return copy_of(rw, at->arg[0]);
}

Expr *rule_dropNothing(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return unchanged(rw, at, P_DROP);
}

Expr *rule_slideSplit(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_SLIDE))
        return NULL;
    const Arith *n[DIMS_MAX];
    for (int k = 0; k < at->dims; k++) {
        n[k] = at->num[2 * k];
        if (!arith_equal(rw->ir->arith, n[k], at->num[2 * k + 1]))
            return NULL;
    }
    return make(rw, P_SPLIT, at->dims, n, NULL, copy_of(rw, at->arg[0]));
}

Expr *rule_reduceOne(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_REDUCE) || !is_regroupable(at) ||
        len_of(at->arg[1], 0) != num(rw, 1))
        return NULL;
    return expr_at(rw->ir, copy_of(rw, at->arg[1]), expr_literal(rw->ir, 0, false));
}
