// SPDX-License-Identifier: Apache-2.0
//
// Lowering: which threads or loops do a map or a reduction.
//
//   source  paper 000, section 3.3; Lift OpenCLRules

#include "rewrite/internal.h"

// One different thread dimension for each dimension of the map, free around and inside.
static bool dims_fit(const Rewrite *rw, const Expr *at, const RuleArgs *args, Pattern p)
{
    if (!is(at, P_MAP) || args->n != at->dims)
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

static Expr *threads(Rewrite *rw, const Expr *at, const RuleArgs *args, Pattern p)
{
    return make_nest(rw, p, at->dims, args->at, copy_of(rw, at->fun),
                     copy_of(rw, at->arg[0]));
}

Expr *rule_mapGlb(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!dims_fit(rw, at, args, P_MAPGLB) || inside_loop(rw) || inside(rw, P_MAPWRG, -1) ||
        inside(rw, P_MAPLCL, -1) || mentions_threads(at->fun, P_MAPWRG, -1) ||
        mentions_threads(at->fun, P_MAPLCL, -1))
        return NULL;
    return threads(rw, at, args, P_MAPGLB);
}

Expr *rule_mapWrg(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!dims_fit(rw, at, args, P_MAPWRG) || inside_loop(rw) || inside(rw, P_MAPGLB, -1) ||
        inside(rw, P_MAPLCL, -1) || mentions_threads(at->fun, P_MAPGLB, -1))
        return NULL;
    return threads(rw, at, args, P_MAPWRG);
}

Expr *rule_mapLcl(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!dims_fit(rw, at, args, P_MAPLCL) || !inside(rw, P_MAPWRG, -1) || inside_loop(rw) ||
        mentions_threads(at->fun, P_MAPGLB, -1) || mentions_threads(at->fun, P_MAPWRG, -1))
        return NULL;
    return threads(rw, at, args, P_MAPLCL);
}

static bool without_threads(const Expr *f)
{
    return !mentions_threads(f, P_MAPGLB, -1) && !mentions_threads(f, P_MAPWRG, -1) &&
           !mentions_threads(f, P_MAPLCL, -1);
}

Expr *rule_mapSeq(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    (void)args;
    if (!is(at, P_MAP) || !without_threads(at->fun))
        return NULL;
    return make_nest(rw, P_MAPSEQ, at->dims, NULL, copy_of(rw, at->fun),
                     copy_of(rw, at->arg[0]));
}

Expr *rule_mapSeqUnroll(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    (void)args;
    if ((!is(at, P_MAP) && !is(at, P_MAPSEQ)) || !without_threads(at->fun))
        return NULL;
    for (int k = 0; k < at->dims; k++)
        if (!arith_is_const(len_of(at, k), NULL))
            return NULL;
    return make_nest(rw, P_MAPUNROLL, at->dims, NULL, copy_of(rw, at->fun),
                     copy_of(rw, at->arg[0]));
}

static Expr *fold(Rewrite *rw, const Expr *at, Pattern p)
{
    return make_reduce(rw, p, copy_of(rw, at->fun), copy_of(rw, at->arg[0]),
                       copy_of(rw, at->arg[1]));
}

Expr *rule_reduceSeq(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    (void)args;
    return is(at, P_REDUCE) ? fold(rw, at, P_REDSEQ) : NULL;
}

Expr *rule_reduceSeqUnroll(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    (void)args;
    if ((!is(at, P_REDUCE) && !is(at, P_REDSEQ)) ||
        !arith_is_const(len_of(at->arg[1], 0), NULL))
        return NULL;
    return fold(rw, at, P_REDUNROLL);
}

Expr *rule_scanSeq(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    (void)args;
    return is(at, P_SCAN) ? fold(rw, at, P_SCANSEQ) : NULL;
}

// A reduction by a work-group -------------------------------------------------------------

// Folds of one function, over other arrays.
static Expr *fold_of(Rewrite *rw, const Expr *reduce, Param *in)
{
    return make_reduce(rw, P_REDSEQ, copy_of(rw, reduce->fun), copy_of(rw, reduce->arg[0]),
                       use(rw, in));
}

static Expr *lcl(Rewrite *rw, Param *param, Expr *body, Expr *in)
{
    return make(rw, P_MAPLCL, 1, NULL, make_lambda(rw, param, body), in);
}

static Expr *one_index(Rewrite *rw)
{
    Param *k = fresh(rw, "k");
    const Arith *one = num(rw, 1);
    return expr_pattern(rw->ir, P_ARRAY, 1, 0, &one, make_lambda(rw, k, use(rw, k)), NULL,
                        0);
}

// A copy of the expression with another one in that place.
static Expr *put_at(Rewrite *rw, const Expr *expr, const Path *at, Expr *value)
{
    if (!at->n)
        return value;
    Expr *copy = copy_of(rw, expr), *node = copy;
    for (int i = 0; i + 1 < at->n; i++)
        node = node->arg[at->step[i]];
    node->arg[at->step[at->n - 1]] = value;
    return copy;
}

// What each of l items folds: every l-th group of v neighbours.
static Expr *own_shares(Rewrite *rw, const Expr *reduce, int64_t l, int64_t v)
{
    const Arith *more = missing(rw, len_of(reduce->arg[1], 0), l * v);
    Expr *in = copy_of(rw, reduce->arg[1]);
    if (more != num(rw, 0)) {
        Expr *arg[] = {start_value(rw, reduce->arg[0]), in};
        const Arith *both[] = {num(rw, 0), more};
        in = expr_pattern(rw->ir, P_PAD, 1, 0, both, NULL, arg, 2);
        in->mode = PAD_CONSTANT;
    }
    Param *own = fresh(rw, "own");
    if (v == 1) {
        Expr *lines = make_sized(rw, P_SPLIT, num(rw, l), in);
        return lcl(rw, own, fold_of(rw, reduce, own), make1(rw, P_TRANSPOSE, lines));
    }
    Expr *lanes = make_sized(rw, P_SPLIT, num(rw, v), in);
    Expr *lines = make_sized(rw, P_SPLIT, num(rw, l), lanes);
    Param *a = fresh(rw, "a"), *near = fresh(rw, "near");
    Expr *more_of =
        make_reduce(rw, P_REDUNROLL, copy_of(rw, reduce->fun), use(rw, a), use(rw, near));
    Expr *f = expr_lambda(rw->ir, (Param *[]){a, near}, 2, more_of);
    Expr *each = make_reduce(rw, P_REDSEQ, f, copy_of(rw, reduce->arg[0]), use(rw, own));
    return lcl(rw, own, each, make1(rw, P_TRANSPOSE, lines));
}

enum { TREE_FAN = 8, TREE_LEVELS = 8 };

// In levels: an eighth of the items fold eight of what is left, till one has it all. Eight
// make three barriers of 256 items, and none needs more than eight loads.
Expr *rule_reduceWrg(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t l = args->at[0], v = args->at[1];
    Path where = {0};
    if (!is_dims(at, P_MAP, 1) || !path_to_fold(at->fun->arg[0], &where, NULL))
        return NULL;
    const Expr *reduce = path_find(at->fun->arg[0], &where);
    if (!regroupable(reduce) || !is_commutative(reduce) || !at_host(rw) || l < 1 || v < 1 ||
        l > 1 << 16 || v > 16)
        return NULL;
    Param *level[TREE_LEVELS];
    Expr *value[TREE_LEVELS];
    int n = 0;
    level[0] = fresh(rw, "found");
    value[n++] = own_shares(rw, reduce, l, v);
    for (; l % TREE_FAN == 0 && l > TREE_FAN && n < TREE_LEVELS; l /= TREE_FAN) {
        Param *own = fresh(rw, "own");
        Expr *lines = make_sized(rw, P_SPLIT, num(rw, l / TREE_FAN), use(rw, level[n - 1]));
        level[n] = fresh(rw, "found");
        value[n++] = lcl(rw, own, fold_of(rw, reduce, own), make1(rw, P_TRANSPOSE, lines));
    }
    Expr *whole = put_at(rw, at->fun->arg[0], &where, fold_of(rw, reduce, level[n - 1]));
    Expr *body = lcl(rw, fresh(rw, "only"), whole, one_index(rw));
    while (n-- > 0)
        body = expr_let(rw->ir, level[n], make1(rw, P_TOLOCAL, value[n]), body);
    Expr *f = copy_of(rw, make_lambda(rw, at->fun->params[0], body));
    return make1(rw, P_JOIN, make(rw, P_MAPWRG, 1, NULL, f, copy_of(rw, at->arg[0])));
}
