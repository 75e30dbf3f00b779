// SPDX-License-Identifier: Apache-2.0
//
// Vectorisation: neighbouring elements computed as one vector.
//
//   source  Lift OpenCLRules (vectorizeMapZip)

#include "rewrite/internal.h"

// Means the same component by component when the element is a vector.
static bool componentwise(const Expr *e)
{
    for (int i = 0; i < e->narg; i++)
        if (!(e->kind == E_GET && e->arg[0]->kind == E_PARAM) && !componentwise(e->arg[i]))
            return false;
    if (e->kind == E_OP)
        return op_info[e->op].types == TY_ARITH || op_info[e->op].types == TY_INTEGER ||
               op_info[e->op].types == TY_FLOAT;
    return e->kind == E_CALL || e->kind == E_LET || e->kind == E_LITERAL ||
           e->kind == E_NUM ||
           (e->type && e->type->kind == T_SCALAR && e->kind == E_PARAM) ||
           (e->kind == E_GET && e->arg[0]->kind == E_PARAM);
}

static bool scalars(const Type *elem)
{
    if (elem->kind == T_TUPLE) {
        for (int i = 0; i < elem->n; i++)
            if (elem->item[i]->kind != T_SCALAR)
                return false;
        return true;
    }
    return elem->kind == T_SCALAR;
}

static Expr *vectors(Rewrite *rw, const Expr *in, int64_t n)
{
    if (!expr_is(in, P_ZIP))
        return make_sized(rw, P_ASVECTOR, num(rw, n), copy_of(rw, in));
    Expr *part[PARTS_MAX];
    for (int i = 0; i < in->narg; i++)
        part[i] = make_sized(rw, P_ASVECTOR, num(rw, n), copy_of(rw, in->arg[i]));
    return make_zip(rw, 1, part, in->narg);
}

Expr *rule_vectorize(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t n = args->at[0];
    if (!is_dims(at, P_MAP, 1) || (n != 2 && n != 4 && n != 8) ||
        !divides(rw, n, len_of(at, 0)))
        return NULL;
    const Expr *in = at->arg[0], *body = at->fun->arg[0];
    const Type *elem = in->type->elem;
    bool taken_apart = elem->kind == T_TUPLE && expr_is(in, P_ZIP) && in->narg <= PARTS_MAX;
    if (!scalars(elem) || (elem->kind == T_TUPLE && !taken_apart) ||
        at->type->elem->kind != T_SCALAR || body->kind == E_LITERAL ||
        !expr_mentions(body, at->fun->params[0]) || !componentwise(body))
        return NULL;
    Expr *map = make_map(rw, 1, copy_of(rw, at->fun), vectors(rw, in, n));
    return make1(rw, P_ASSCALAR, map);
}
