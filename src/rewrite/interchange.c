// SPDX-License-Identifier: Apache-2.0
//
// Interchange: the order of nested maps and reductions, with the transpositions it needs.
//
//   source  Lift InterchangeRules

#include "rewrite/internal.h"

Expr *rule_mapInterchange(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    (void)args;
    if (!is_dims(at, P_MAP, 1) || !is_dims(at->fun->arg[0], P_MAP, 1))
        return NULL;
    const Expr *inner = at->fun->arg[0];
    if (expr_mentions(inner->arg[0], at->fun->params[0]))
        return NULL;
    Param *a = fresh(rw, at->fun->params[0]->name);
    Param *b = fresh(rw, inner->fun->params[0]->name);
    Expr *body = expr_replace(rw->ir, inner->fun->arg[0], at->fun->params[0], use(rw, a));
    body = expr_replace(rw->ir, body, inner->fun->params[0], use(rw, b));
    Expr *over_x = make_map(rw, 1, make_lambda(rw, a, body), copy_of(rw, at->arg[0]));
    Expr *over_y = make_map(rw, 1, make_lambda(rw, b, over_x), copy_of(rw, inner->arg[0]));
    return make1(rw, P_TRANSPOSE, over_y);
}

Expr *rule_mapReduceInterchange(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    (void)args;
    const Expr *reduce = is_dims(at, P_MAP, 1) ? inner_of(at, P_REDUCE) : NULL;
    if (!reduce || !type_is_scalar(reduce->type))
        return NULL;
    Param *acc = fresh(rw, "acc"), *column = fresh(rw, "column"), *t = fresh(rw, "t");
    const Expr *part[] = {expr_get(rw->ir, use(rw, t), 0), expr_get(rw->ir, use(rw, t), 1)};
    Expr *pairs = make_zip(rw, 1, (Expr *[]){use(rw, acc), use(rw, column)}, 2);
    Expr *step = make_lambda(rw, t, call_all(rw, reduce->fun, part));
    Expr *body = make_map(rw, 1, step, pairs);
    Expr *f = expr_lambda(rw->ir, (Param *[]){acc, column}, 2, body);
    const Arith *len = len_of(at, 0);
    Param *i = fresh(rw, "i");
    Expr *start =
        expr_pattern(rw->ir, P_ARRAY, 1, 0, &len,
                     make_lambda(rw, i, start_value(rw, reduce->arg[0])), NULL, 0);
    return make_reduce(rw, P_REDUCE, f, start,
                       make1(rw, P_TRANSPOSE, copy_of(rw, at->arg[0])));
}

Expr *rule_transposeBothSides(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    (void)args;
    if (!expr_is(at, P_MAP) || (at->dims == 1 && !inner_of(at, P_MAP)))
        return NULL;
    Expr *in = make1(rw, P_TRANSPOSE, copy_of(rw, at->arg[0]));
    return make1(rw, P_TRANSPOSE, make_map(rw, at->dims, copy_of(rw, at->fun), in));
}

Expr *rule_splitTranspose(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    (void)args;
    const Expr *split = is_dims(at, P_MAP, 1) ? inner_of(at, P_SPLIT) : NULL;
    if (!split || split->dims != 1 || !expr_is(at->arg[0], P_TRANSPOSE))
        return NULL;
    Expr *in = make_sized(rw, P_SPLIT, split->num[0], copy_of(rw, at->arg[0]->arg[0]));
    Param *rows = fresh(rw, "rows");
    Expr *turn = make1(rw, P_TRANSPOSE, use(rw, rows));
    return make1(rw, P_TRANSPOSE, make_map(rw, 1, make_lambda(rw, rows, turn), in));
}
