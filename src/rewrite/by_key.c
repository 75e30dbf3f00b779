// SPDX-License-Identifier: Apache-2.0
//
// Keyed folds in parts, which are folded for each key afterwards, and by work-items that
// update one array.
//
//   source  privatised and shared histograms: Podlozhnyuk, "Histogram calculation in CUDA",
//           2007

#include "rewrite/internal.h"

// The fold of all elements that a keyed fold would be without its keys.
static Expr *without_keys(Ir *ir, const Expr *keyed)
{
    Expr *fold = NEW(ir->arena, Expr), *values = NEW(ir->arena, Expr);
    const Type *elements = keyed->arg[1]->type;
    *values = (Expr){.kind = E_PARAM, .span = keyed->span};
    values->type = type_array(ir->arena, elements->len, elements->elem->item[1]);
    *fold = *keyed;
    fold->pattern = P_REDUCE;
    fold->type = keyed->type->elem;
    fold->nnum = 0;
    fold->arg = NEW_ARRAY(ir->arena, Expr *, 2);
    fold->arg[0] = keyed->arg[0];
    fold->arg[1] = values;
    return fold;
}

static bool is_update(const Expr *f, int i, const Type *type)
{
    const Expr *body = i < 0 ? f->arg[0] : f->arg[0]->arg[i];
    return type->kind == T_SCALAR && combined(f, i) >= 0 && op_updates(body->op) &&
           (type->scalar == S_INT || type->scalar == S_UINT || type->scalar == S_FLOAT ||
            type->scalar == S_DOUBLE);
}

bool keyed_updates(const Expr *keyed)
{
    const Type *type = keyed->type->elem;
    const Expr *f = keyed->fun;
    if (type->kind != T_TUPLE)
        return is_update(f, -1, type);
    bool all = f->arg[0]->kind == E_TUPLE;
    for (int i = 0; all && i < type->n; i++)
        all = is_update(f, i, type->item[i]);
    return all;
}

// What folds the results of parts: f itself, or its operations; NULL: nothing does.
static Expr *joins_parts(Rewrite *rw, const Expr *keyed)
{
    const Expr *f = keyed->fun;
    if (regroupable(without_keys(rw->ir, keyed)))
        return copy_of(rw, f);
    if (!keyed_updates(keyed))
        return NULL;
    Param *both[] = {fresh(rw, "a"), fresh(rw, "b")};
    const Type *type = keyed->type->elem;
    int n = type->kind == T_TUPLE ? type->n : 0;
    Expr **item = NEW_ARRAY(rw->ir->arena, Expr *, MAX(n, 1));
    for (int i = 0; i < MAX(n, 1); i++) {
        Expr *a = n ? expr_get(rw->ir, use(rw, both[0]), i) : use(rw, both[0]);
        Expr *b = n ? expr_get(rw->ir, use(rw, both[1]), i) : use(rw, both[1]);
        item[i] = expr_op(rw->ir, (n ? f->arg[0]->arg[i] : f->arg[0])->op, a, b, NULL);
    }
    return expr_lambda(rw->ir, both, 2, n ? expr_tuple(rw->ir, item, n) : item[0]);
}

static Expr *component(Rewrite *rw, const Expr *x, int i)
{
    if (is_dims(x, P_ZIP, 1))
        return copy_of(rw, x->arg[i]);
    Param *e = fresh(rw, "e");
    return make_map(rw, 1, make_lambda(rw, e, expr_get(rw->ir, use(rw, e), i)),
                    copy_of(rw, x));
}

// The elements in rows of n; those that are missing in the last one have no key.
static Expr *rows_of(Rewrite *rw, const Expr *x, const Arith *n)
{
    ArithCtx *c = rw->ir->arith;
    const Arith *more = arith_mod(c, arith_mulc(c, len_of(x, 0), -1), n);
    if (more == num(rw, 0))
        return make_sized(rw, P_SPLIT, n, copy_of(rw, x));
    const Arith *both[] = {num(rw, 0), more};
    Expr *arg[] = {expr_literal(rw->ir, -1, false), component(rw, x, 0)};
    Expr *key = expr_pattern(rw->ir, P_PAD, 1, 0, both, NULL, arg, 2);
    key->mode = PAD_CONSTANT;
    Expr *part[] = {key, pad_far(rw, 1, &more, component(rw, x, 1))};
    return make_sized(rw, P_SPLIT, n, make_zip(rw, 1, part, 2));
}

Expr *rule_reduceByParts(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    enum { PARTS_MOST = 1 << 20 };
    int64_t count = args->at[0], l = args->at[1];
    Expr *join = is(at, P_REDUCEBY) ? joins_parts(rw, at) : NULL;
    if (!join || count < 1 || l < 1 || count > PARTS_MOST || l > PARTS_MOST)
        return NULL;
    ArithCtx *c = rw->ir->arith;
    const Arith *lines = arith_ceil_div(c, len_of(at->arg[1], 0), num(rw, count * l));
    const Arith *n = arith_mulc(c, lines, l);
    if (arith_most(n) < 1)
        return NULL;
    Param *part = fresh(rw, "part"), *found = fresh(rw, "found"), *key = fresh(rw, "key");
    Expr *each = expr_pattern(rw->ir, P_REDUCEBY, 1, 0, at->num, copy_of(rw, at->fun),
                              (Expr *[]){copy_of(rw, at->arg[0]), use(rw, part)}, 2);
    Expr *parts = make_map(rw, 1, make_lambda(rw, part, each), rows_of(rw, at->arg[1], n));
    Expr *joined =
        make_reduce(rw, P_REDUCE, join, start_value(rw, at->arg[0]), use(rw, key));
    Expr *columns = make1(rw, P_TRANSPOSE, use(rw, found));
    return expr_let(rw->ir, found, parts,
                    make_map(rw, 1, make_lambda(rw, key, joined), columns));
}

// The array that updates begin with, made by work-items.
static Expr *filled(Rewrite *rw, const Expr *keyed, Pattern items)
{
    Param *k = fresh(rw, "k");
    return make(rw, items, 1, NULL, make_lambda(rw, k, start_value(rw, keyed->arg[0])),
                counting(rw, keyed->num[0]));
}

static Expr *updated(Rewrite *rw, const Expr *keyed, Pattern p, Expr *array, int64_t near)
{
    Expr *arg[] = {array, rows_of(rw, keyed->arg[1], num(rw, near))};
    return expr_pattern(rw->ir, p, 1, 0, NULL, copy_of(rw, keyed->fun), arg, 2);
}

static bool may_update(const Expr *at, const RuleArgs *args)
{
    enum { NEAR_MOST = 16 };
    return is(at, P_REDUCEBY) && keyed_updates(at) && args->at[0] >= 1 &&
           args->at[0] <= NEAR_MOST;
}

Expr *rule_reduceByGlb(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return may_update(at, args) && at_host(rw)
               ? updated(rw, at, P_REDBYGLB, filled(rw, at, P_MAPGLB), args->at[0])
               : NULL;
}

Expr *rule_reduceByLcl(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!may_update(at, args) || !by_all_items(rw) || !arith_is_const(at->num[0], NULL))
        return NULL;
    Expr *array = make1(rw, P_TOLOCAL, filled(rw, at, P_MAPLCL));
    return make(rw, P_MAPLCL, 1, NULL, make_identity(rw),
                updated(rw, at, P_REDBYLCL, array, args->at[0]));
}
