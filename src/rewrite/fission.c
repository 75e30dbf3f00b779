// SPDX-License-Identifier: Apache-2.0
//
// Fission: one map becomes two, the first giving what the second starts from.
//
//   source  Lift FissionRules

#include "rewrite/internal.h"

// map(\param -> value, x), with fresh names.
static Expr *first_map(Rewrite *rw, const Expr *at, const Expr *value)
{
    Param *e = fresh(rw, at->fun->params[0]->name);
    Expr *body = expr_replace(rw->ir, value, at->fun->params[0], use(rw, e));
    return map_by(rw, at->dims, e, body, copy_of(rw, at->arg[0]));
}

// A layout, or a map that gives each row one.
static bool lays_out(const Expr *e)
{
    return e->kind == E_PATTERN &&
           (view_inverts(e) || (e->pattern == P_MAP && lays_out(e->fun->arg[0])));
}

Expr *rule_mapFissionArg(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t i = args->at[0];
    if (!expr_is(at, P_MAP))
        return NULL;
    const Expr *body = at->fun->arg[0];
    const Param *e = at->fun->params[0];
    const bool view = expr_in_group(body, G_VIEW);
    const bool takes = body->kind == E_CALL || body->kind == E_OP || view || lays_out(body);
    if (!takes || i < 0 || i >= body->narg || expr_is_use(body->arg[i], e) ||
        (body->fun && expr_mentions(body->fun, e)))
        return NULL;
    for (int k = 0; k < body->narg; k++)
        if (expr_mentions(body->arg[k], e) != (k == i))
            return NULL;
    Param *y = fresh(rw, "y");
    Expr *rest = copy_of(rw, body);
    rest->arg[i] = use(rw, y);
    return map_by(rw, at->dims, y, rest, first_map(rw, at, body->arg[i]));
}

// The map of what follows the let, which is given the values of the first map, too.
static Expr *second_map(Rewrite *rw, const Expr *at, Param *t, Expr *values)
{
    const Expr *let = at->fun->arg[0];
    Expr *part[] = {values, copy_of(rw, at->arg[0])};
    const Expr *rest = expr_replace(rw->ir, let->arg[1], let->param, get_of(rw, t, 0));
    rest = expr_replace(rw->ir, rest, at->fun->params[0], get_of(rw, t, 1));
    return map_by(rw, at->dims, t, copy_of(rw, rest), make_zip(rw, at->dims, part, 2));
}

Expr *rule_mapFissionLet(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!is_dims(at, P_MAP, 1) || at->fun->arg[0]->kind != E_LET)
        return NULL;
    const Expr *let = at->fun->arg[0];
    Param *p = fresh(rw, let->param->name), *t = fresh(rw, "t");
    Expr *map = second_map(rw, at, t, use(rw, p));
    return expr_let(rw->ir, p, first_map(rw, at, let->arg[0]), map);
}

// a o g(e), or a tuple of such that adds up each component by itself: g goes to a map. What
// is left combines values of one type and may be regrouped.
static Expr *fold_fission(Rewrite *rw, const Expr *at)
{
    const Expr *f = at->fun, *body = f->arg[0];
    const int n = body->kind == E_TUPLE ? body->narg : 1;
    if (n > PARTS_MAX || (n > 1 && is_regroupable(at)))
        return NULL;
    Expr *value[PARTS_MAX], *sum[PARTS_MAX];
    Param *e = fresh(rw, "e"), *a = fresh(rw, "a"), *y = fresh(rw, "y");
    for (int i = 0; i < n; i++) {
        const Expr *own = n > 1 ? body->arg[i] : body;
        const int side = n > 1 ? combined(f, i) : accumulated(f);
        if (side < 0)
            return NULL;
        const Expr *g = start_value(rw, own->arg[side]);
        value[i] = expr_replace(rw->ir, g, f->params[1], use(rw, e));
        sum[i] = make_op(rw, own->op, part_of_value(rw, use(rw, a), i, n),
                         part_of_value(rw, use(rw, y), i, n));
    }
    Expr *map = map_by(rw, 1, e, all_parts(rw, value, n), copy_of(rw, at->arg[1]));
    Expr *fold = expr_lambda(rw->ir, (Param *[]){a, y}, 2, all_parts(rw, sum, n));
    return make_reduce(rw, at->pattern, fold, copy_of(rw, at->arg[0]), map);
}

Expr *rule_reduceFission(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return expr_is(at, P_REDUCE) ? fold_fission(rw, at) : NULL;
}

Expr *rule_scanFission(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return expr_is(at, P_SCAN) ? fold_fission(rw, at) : NULL;
}
