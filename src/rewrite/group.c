// SPDX-License-Identifier: Apache-2.0
//
// The items of a work-group together: a fold that they share, and a value that one of them
// writes.
//
//   source  Lift MacroRules; paper 000, section 3.1

#include "rewrite/internal.h"

// A fold of the same function over another array.
static Expr *fold_of(Rewrite *rw, const Expr *reduce, Param *in)
{
    return fold_like(rw, reduce, P_REDSEQ, use(rw, in));
}

static Expr *lcl(Rewrite *rw, Param *param, Expr *body, Expr *in)
{
    return make(rw, P_MAPLCL, 1, NULL, make_lambda(rw, param, body), in);
}

// Neighbours, n of them, by an item.
static Expr *near_shares(Rewrite *rw, const Expr *reduce, Expr *in, const Arith *len,
                         int64_t n)
{
    Param *own = fresh(rw, "own");
    in = with_neutral(rw, reduce, missing(rw, len, n), in);
    return lcl(rw, own, fold_of(rw, reduce, own), make_sized(rw, P_SPLIT, num(rw, n), in));
}

// What each of l items folds: every l-th group of v neighbours.
static Expr *own_shares(Rewrite *rw, const Expr *reduce, Expr *in, int64_t l, int64_t v)
{
    in = with_neutral(rw, reduce, missing(rw, len_of(reduce->arg[1], 0), l * v), in);
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

// The levels of a fold by l items, each held in local memory: an eighth of the items fold
// eight of what is left, till so few are left that any item may fold them. Eight make three
// barriers of 256 items, and none needs more than eight loads.
static bool may_share(const Expr *reduce, int64_t l, int64_t v)
{
    return (is_operation(reduce) || folds_by_parts(reduce)) && l >= 1 && v >= 1 &&
           l <= 1 << 16 && v <= 16;
}

static Expr *add_level(Rewrite *rw, NamedValues *t, Expr *value)
{
    return name_value(rw, t, "found", make1(rw, P_TOLOCAL, value));
}

// Neighbours at each level, so that the order stays. An odd number of them keeps items
// apart in the banks of local memory.
static void tree_in_order(Rewrite *rw, NamedValues *t, const Expr *reduce, Expr *in,
                          int64_t len, int64_t l)
{
    for (int64_t n = (len + l - 1) / l | (l > 1); t->n < TREE_LEVELS; n = TREE_FAN | 1) {
        in = add_level(rw, t, near_shares(rw, reduce, in, num(rw, len), n));
        len = (len + n - 1) / n;
        if (len <= TREE_FAN)
            return;
    }
}

static void tree_by_lines(Rewrite *rw, NamedValues *t, const Expr *reduce, Expr *in,
                          int64_t l, int64_t v)
{
    in = add_level(rw, t, own_shares(rw, reduce, in, l, v));
    for (; l % TREE_FAN == 0 && l > TREE_FAN && t->n < TREE_LEVELS; l /= TREE_FAN) {
        Param *own = fresh(rw, "own");
        Expr *lines = make_sized(rw, P_SPLIT, num(rw, l / TREE_FAN), in);
        in = add_level(
            rw, t, lcl(rw, own, fold_of(rw, reduce, own), make1(rw, P_TRANSPOSE, lines)));
    }
}

// False where the length of what keeps its order is not known.
static bool tree_of(Rewrite *rw, NamedValues *t, const Expr *reduce, Expr *in, int64_t l,
                    int64_t v)
{
    int64_t len;
    *t = (NamedValues){0};
    if (expr_commutes(reduce->fun))
        tree_by_lines(rw, t, reduce, in, l, v);
    else if (arith_is_const(len_of(reduce->arg[1], 0), &len))
        tree_in_order(rw, t, reduce, in, len, l);
    return t->n > 0;
}

Expr *rule_reduceWrg(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Path where = {0};
    if (!is_dims(at, P_MAP, 1) || !path_to_fold(at->fun->arg[0], &where, NULL))
        return NULL;
    const Expr *reduce = path_find(at->fun->arg[0], &where);
    if (!may_share(reduce, args->at[0], args->at[1]) || !at_host(rw))
        return NULL;
    NamedValues t;
    if (!tree_of(rw, &t, reduce, copy_of(rw, reduce->arg[1]), args->at[0], args->at[1]))
        return NULL;
    Expr *rest = fold_of(rw, reduce, t.param[t.n - 1]);
    Expr *whole = put_at(rw, at->fun->arg[0], &where, rest);
    Expr *body =
        with_names(rw, &t, lcl(rw, fresh(rw, "only"), whole, counting(rw, num(rw, 1))));
    Expr *f = copy_of(rw, make_lambda(rw, at->fun->params[0], body));
    return make1(rw, P_JOIN, make(rw, P_MAPWRG, 1, NULL, f, copy_of(rw, at->arg[0])));
}

bool by_all_items(const Rewrite *rw)
{
    return inside(rw, P_MAPWRG, -1) && !inside(rw, P_MAPLCL, 0) &&
           !inside(rw, P_MAPLCL, 2) && !inside_abstract(rw);
}

Expr *rule_reduceLcl(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_REDUCE) || !may_share(at, args->at[0], args->at[1]) ||
        !by_all_items(rw))
        return NULL;
    NamedValues t, in = {0};
    bool near = keeps_order(at);
    Expr *x = near ? name_inputs(rw, &in, at->arg[1]) : copy_of(rw, at->arg[1]);
    if (!tree_of(rw, &t, at, x, args->at[0], args->at[1]))
        return NULL;
    return with_names(rw, &in, with_names(rw, &t, fold_of(rw, at, t.param[t.n - 1])));
}

bool is_exchanged(const Type *type)
{
    bool ok = true;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        ok &= is_exchanged(type->item[i]);
    return type->kind == T_TUPLE ? ok
                                 : type->kind == T_SCALAR &&
                                       (type->scalar == S_FLOAT || type->scalar == S_INT ||
                                        type->scalar == S_DOUBLE || type->scalar == S_HALF);
}

Expr *rule_reduceLanes(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_REDUCE) || !may_share(at, args->at[0], args->at[1]) ||
        !expr_commutes(at->fun) || !is_exchanged(at->type) || !by_all_items(rw))
        return NULL;
    Expr *own = own_shares(rw, at, copy_of(rw, at->arg[1]), args->at[0], args->at[1]);
    Param *y = fresh(rw, "y");
    return expr_let(rw->ir, y, fold_like(rw, at, P_REDLANES, own), use(rw, y));
}

Expr *name_value(Rewrite *rw, NamedValues *names, const char *name, Expr *value)
{
    names->param[names->n] = fresh(rw, name);
    names->value[names->n] = value;
    return use(rw, names->param[names->n++]);
}

Expr *name_inputs(Rewrite *rw, NamedValues *in, const Expr *x)
{
    if (is_dims(x, P_ZIP, 1) && x->narg <= PARTS_MAX) {
        Expr *part[PARTS_MAX];
        for (int i = 0; i < x->narg; i++)
            part[i] = name_inputs(rw, in, x->arg[i]);
        return make_zip(rw, 1, part, x->narg);
    }
    if (expr_is(x, P_ARRAY) || in->n == PARTS_MAX)
        return copy_of(rw, x);
    return name_value(rw, in, "in", copy_of(rw, x));
}

// The first stage of x, outside functions: an array that is stored or the result of steps.
// NULL if there is none, or if it reads a name that x itself gives.
static const Expr *stage_in(const Expr *x)
{
    if (expr_is(x, P_TOGLOBAL) || expr_is(x, P_ITERATE))
        return x;
    for (int i = 0; i < x->narg; i++) {
        const Expr *stage = stage_in(x->arg[i]);
        if (stage)
            return x->kind == E_LET && expr_mentions(stage, x->param) ? NULL : stage;
    }
    return NULL;
}

Expr *without_stages(Rewrite *rw, const Expr *x, NamedValues *stages)
{
    Expr *rest = copy_of(rw, x);
    const Expr *stage;
    while ((stage = stage_in(rest)) && stages->n < PARTS_MAX) {
        Expr *value = copy_of(rw, stage);
        name_value(rw, stages, "stage", value);
        rest = with_name(rw, rest, value, stages->param[stages->n - 1]);
    }
    return rest;
}

Expr *with_names(Rewrite *rw, const NamedValues *names, Expr *body)
{
    for (int i = names->n - 1; i >= 0; i--)
        body = expr_let(rw->ir, names->param[i], names->value[i], body);
    return body;
}

Expr *rule_onlyItem(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (at->kind == E_LAMBDA || type_holds_array(at->type) || !by_all_items(rw))
        return NULL;
    Expr *array = lcl(rw, fresh(rw, "only"), copy_of(rw, at), counting(rw, num(rw, 1)));
    return expr_at(rw->ir, array, expr_num(rw->ir, num(rw, 0)));
}
