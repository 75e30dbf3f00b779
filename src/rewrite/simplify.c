// SPDX-License-Identifier: Apache-2.0
//
// Simplification: what undoes or does nothing, and names for equal values.
//
//   source  Lift SimplificationRules

#include "rewrite/internal.h"

Expr *rule_transposeTwice(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return expr_is(at, P_TRANSPOSE) && expr_is(at->arg[0], P_TRANSPOSE)
               ? copy_of(rw, at->arg[0]->arg[0])
               : NULL;
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

Expr *rule_reduceOne(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_REDUCE) || !is_regroupable(at) ||
        len_of(at->arg[1], 0) != num(rw, 1))
        return NULL;
    return expr_at(rw->ir, copy_of(rw, at->arg[1]), expr_literal(rw->ir, 0, false));
}
