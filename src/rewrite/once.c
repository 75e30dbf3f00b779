// SPDX-License-Identifier: Apache-2.0
//
// A computation as one step of a time loop: what is known of steps then holds for it.
//
//   method  the state of the loop is the arrays that the computation reads, one of the type
//           of each of its results; names of maps around it that it mentions come along

#include "rewrite/internal.h"

// The arrays that an expression reads by a name from outside it.
typedef struct {
    Rewrite *rw;
    const Expr *body;
    Param *at[PARTS_MAX];
    bool window[PARTS_MAX]; // windows of it are read
    int n;
} OuterNames;

static void note_name(OuterNames *names, Param *param, bool window)
{
    int i = 0;
    while (i < names->n && names->at[i] != param)
        i++;
    if (i == PARTS_MAX || expr_find(names->body, expr_binds, param))
        return;
    names->at[i] = param;
    names->window[i] |= window;
    names->n = MAX(names->n, i + 1);
}

static void find_names(OuterNames *names, const Expr *expr, bool window)
{
    const Type *type = expr->kind == E_PARAM ? expr->param->type : NULL;
    if (type && type->kind == T_ARRAY)
        note_name(names, expr->param, window);
    if (expr->fun)
        find_names(names, expr->fun, window);
    for (int i = 0; i < expr->narg; i++)
        find_names(names, expr->arg[i], window || expr_is(expr, P_SLIDE));
}

// The maps that lets around an expression hold and it mentions, as lets of its own.
static const Expr *with_maps(Rewrite *rw, const Expr *expr)
{
    for (const Context *c = rw->context; c; c = c->outer) {
        const Expr *let = c->expr;
        if (let->kind != E_LET || c->child != 1 || !expr_is(let->arg[0], P_MAP) ||
            !expr_mentions(expr, let->param))
            continue;
        Param *own = param_new(rw->ir, let->param->name, let->param->type);
        Expr *body = expr_replace(rw->ir, expr, let->param, use(rw, own));
        expr = expr_let(rw->ir, own, copy_of(rw, let->arg[0]), body);
    }
    return expr;
}

// The array of a type that takes the part of a result: one that nothing else is, of which
// windows are read, if there is such a one.
static Param *state_like(const OuterNames *names, const Type *type, Param *const *taken,
                         int n)
{
    Param *best = NULL;
    int most = -1;
    for (int i = 0; i < names->n; i++) {
        int good = 2 * names->window[i] + 1;
        for (int k = 0; k < n; k++)
            good -= taken[k] == names->at[i];
        if (good > most && type_equal(names->rw->ir->arith, names->at[i]->type, type)) {
            best = names->at[i];
            most = good;
        }
    }
    return best;
}

// The results of an expression as arrays; 0: they are not.
static int results_of(Rewrite *rw, const Type *type, const Type **result)
{
    const Type *tuple = type_tuple_of(type);
    if (type->kind != T_ARRAY ||
        (tuple && (tuple->n > PARTS_MAX || type_holds_array(tuple))))
        return 0;
    for (int i = 0; tuple && i < tuple->n; i++)
        result[i] = type_field(rw->ir->arena, type, i);
    if (!tuple)
        result[0] = type;
    return tuple ? tuple->n : 1;
}

Expr *rule_iterateOnce(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Type *result[PARTS_MAX];
    Param *taken[PARTS_MAX];
    OuterNames names = {.rw = rw};
    int n = expr_is(at, P_MAP) && at_host(rw) ? results_of(rw, at->type, result) : 0;
    const Expr *body = n ? with_maps(rw, at) : NULL;
    if (n) {
        names.body = body;
        find_names(&names, body, false);
    }
    Expr *state[PARTS_MAX];
    for (int i = 0; i < n; i++) {
        taken[i] = state_like(&names, result[i], taken, i);
        if (!taken[i])
            return NULL;
        state[i] = use(rw, taken[i]);
    }
    if (!n)
        return NULL;
    Param *s = fresh(rw, "s");
    for (int i = n - 1; i >= 0; i--) {
        body = expr_replace(rw->ir, body, taken[i], item_list(rw, s, n > 1, i));
    }
    Expr *all = n == 1 ? state[0] : make_zip(rw, at->dims, state, n);
    const Arith *once = num(rw, 1);
    return make(rw, P_ITERATE, 1, &once, make_lambda(rw, s, copy_of(rw, body)), all);
}
