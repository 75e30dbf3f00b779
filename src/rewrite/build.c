// SPDX-License-Identifier: Apache-2.0
//
// Building the right sides of rules. Every node that goes in is used once; what is needed
// twice is copied with dup.

#include "rewrite/internal.h"

Expr *make(Rewrite *rw, Pattern p, int dims, const Arith *const *nums, Expr *fun, Expr *in)
{
    return expr_pattern(rw->ir, p, dims, 0, nums, fun, &in, 1);
}

Expr *make1(Rewrite *rw, Pattern p, Expr *in)
{
    return make(rw, p, 1, NULL, NULL, in);
}

Expr *make_sized(Rewrite *rw, Pattern p, const Arith *n, Expr *in)
{
    return make(rw, p, 1, &n, NULL, in);
}

Expr *make_map(Rewrite *rw, int dims, Expr *fun, Expr *in)
{
    return make(rw, P_MAP, dims, NULL, fun, in);
}

Expr *map_by(Rewrite *rw, int dims, Param *param, Expr *body, Expr *in)
{
    return make_map(rw, dims, make_lambda(rw, param, body), in);
}

Expr *array_by(Rewrite *rw, const Arith *len, Param *param, Expr *body)
{
    return expr_pattern(rw->ir, P_ARRAY, 1, 0, &len, make_lambda(rw, param, body), NULL, 0);
}

Expr *make_op(Rewrite *rw, Op op, Expr *a, Expr *b)
{
    return expr_op(rw->ir, op, a, b, NULL);
}

Expr *get_of(Rewrite *rw, Param *param, int i)
{
    return expr_get(rw->ir, use(rw, param), i);
}

Expr *make_reduce(Rewrite *rw, Pattern p, Expr *fun, Expr *init, Expr *in)
{
    return expr_pattern(rw->ir, p, 1, 0, NULL, fun, (Expr *[]){init, in}, 2);
}

Expr *make_zip(Rewrite *rw, int dims, Expr **part, int n)
{
    return expr_pattern(rw->ir, P_ZIP, dims, 0, NULL, NULL, part, n);
}

Expr *make_pad(Rewrite *rw, int dims, const Arith *const *nums, Expr *value, Expr *in)
{
    Expr *pad = expr_pattern(rw->ir, P_PAD, dims, 0, nums, NULL, (Expr *[]){value, in}, 2);
    pad->mode = PAD_CONSTANT;
    return pad;
}

Expr *with_neutral(Rewrite *rw, const Expr *fold, const Arith *k, Expr *in)
{
    const Arith *both[] = {num(rw, 0), k};
    return k == both[0] ? in : make_pad(rw, 1, both, start_value(rw, fold->arg[0]), in);
}

Expr *make_lambda(Rewrite *rw, Param *param, Expr *body)
{
    return expr_lambda(rw->ir, &param, 1, body);
}

Expr *part_of_value(Rewrite *rw, Expr *value, int i, int n)
{
    return n > 1 ? expr_get(rw->ir, value, i) : value;
}

Expr *all_parts(Rewrite *rw, Expr **part, int n)
{
    return n > 1 ? expr_tuple(rw->ir, part, n) : part[0];
}

Expr *make_identity(Rewrite *rw)
{
    Param *e = fresh(rw, "e");
    return make_lambda(rw, e, use(rw, e));
}

Param *fresh(Rewrite *rw, const char *name)
{
    return param_new(rw->ir, name, NULL);
}

Expr *use(Rewrite *rw, Param *param)
{
    return expr_param(rw->ir, param);
}

Expr *copy_of(Rewrite *rw, const Expr *expr)
{
    return expr_clone(rw->ir, expr);
}

Expr *make_nest(Rewrite *rw, Pattern p, int dims, const int64_t *par, Expr *f, Expr *in)
{
    int d = par ? (int)par[0] : 0;
    if (dims == 1)
        return expr_pattern(rw->ir, p, 1, d, NULL, f, &in, 1);
    Param *row = fresh(rw, "r");
    Expr *inner = make_nest(rw, p, dims - 1, par ? par + 1 : NULL, f, use(rw, row));
    return expr_pattern(rw->ir, p, 1, d, NULL, make_lambda(rw, row, inner), &in, 1);
}

static bool is_simple(const Expr *expr)
{
    expr = expr_behind_gets(expr);
    if (expr->kind == E_TUPLE) {
        for (int i = 0; i < expr->narg; i++)
            if (!is_simple(expr->arg[i]))
                return false;
        return true;
    }
    return expr->kind == E_PARAM || expr->kind == E_LITERAL || expr->kind == E_NUM;
}

Expr *call(Rewrite *rw, const Expr *lambda, Expr *value)
{
    const Param *param = lambda->params[0];
    const Expr *body = lambda->arg[0];
    if (is_simple(value) || expr_uses(body, param) <= 1)
        return expr_project(expr_replace(rw->ir, body, param, value));
    Param *held = fresh(rw, param->name);
    Expr *name = use(rw, held);
    return expr_let(rw->ir, held, value, expr_replace(rw->ir, body, param, name));
}

Expr *call_all(Rewrite *rw, const Expr *lambda, const Expr *const *value)
{
    return expr_project(
        expr_replace_all(rw->ir, lambda->arg[0], lambda->params, value, lambda->nparam));
}

Expr *rest_with(Rewrite *rw, const Expr *rest, Param *const *name, const Expr *const *value,
                int n)
{
    if (rest->kind != E_LET)
        return expr_replace_all(rw->ir, rest, name, value, n);
    Expr *first = rest->arg[0];
    if (expr_mentions_any(first, (const Param *const *)name, n))
        first = expr_replace_all(rw->ir, first, name, value, n);
    return expr_let(rw->ir, rest->param, first,
                    rest_with(rw, rest->arg[1], name, value, n));
}

static void settle_literal(const Expr *expr, void *none)
{
    if (expr->kind == E_LITERAL && expr->type && type_is_float(expr->type))
        ((Expr *)expr)->floating = true;
}

void settle_literals(Expr *expr)
{
    expr_each(expr, settle_literal, NULL);
}

static bool only_literals(const Expr *expr)
{
    for (int i = 0; i < expr->narg; i++)
        if (!only_literals(expr->arg[i]))
            return false;
    return expr->kind == E_LITERAL || (expr->kind == E_OP && expr->narg > 0);
}

Expr *cast_value(Rewrite *rw, Scalar scalar, Scalar from, Expr *e)
{
    return scalar == from ? e : expr_op(rw->ir, op_cast(scalar), e, NULL, NULL);
}

Expr *literal_of(Rewrite *rw, const Type *type, int number)
{
    Expr *item[PARTS_MAX];
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        if (type->n > PARTS_MAX || !(item[i] = literal_of(rw, type->item[i], number)))
            return NULL;
    if (type->kind == T_TUPLE)
        return expr_tuple(rw->ir, item, type->n);
    if (type->kind != T_SCALAR || type->scalar == S_BOOL)
        return NULL;
    const bool floating = scalar_info[type->scalar].floating;
    return cast_value(rw, type->scalar, floating ? S_FLOAT : S_INT,
                      expr_literal(rw->ir, number, floating));
}

Expr *start_value(Rewrite *rw, const Expr *init)
{
    Expr *copy = copy_of(rw, init);
    settle_literals(copy);
    for (int i = 0; init->kind == E_TUPLE && i < init->narg; i++)
        copy->arg[i] = start_value(rw, init->arg[i]);
    const Type *type = init->type;
    // A literal of a type that no literal has by itself is converted.
    if (only_literals(init) && type->kind == T_SCALAR && type->scalar != S_BOOL &&
        type->scalar != S_INT && type->scalar != S_FLOAT &&
        !expr_is_op(init, op_cast(type->scalar)))
        return expr_op(rw->ir, op_cast(type->scalar), copy, NULL, NULL);
    return copy;
}

static bool all_zero(Rewrite *rw, const Arith *const *k, int dims)
{
    for (int i = 0; i < dims; i++)
        if (k[i] != num(rw, 0))
            return false;
    return true;
}

Expr *pad_far(Rewrite *rw, int dims, const Arith *const *k, Expr *in)
{
    if (all_zero(rw, k, dims))
        return in;
    const Arith *both[NUMS_MAX];
    for (int i = 0; i < dims; i++) {
        both[2 * i] = num(rw, 0);
        both[2 * i + 1] = k[i];
    }
    return make(rw, P_PAD, dims, both, NULL, in); // the mode is clamp, the first one
}

Expr *split_unread(Rewrite *rw, Expr *in, const Arith *len, int64_t n)
{
    const Arith *k = missing(rw, len, n);
    Expr *whole = pad_far(rw, 1, &k, in);
    if (whole != in)
        whole->mode = PAD_UNREAD;
    return make_sized(rw, P_SPLIT, num(rw, n), whole);
}

Expr *cut(Rewrite *rw, const Expr *original, const Arith *const *k, int dims, Expr *in)
{
    if (all_zero(rw, k, dims))
        return in;
    const Arith *len[DIMS_MAX];
    for (int i = 0; i < dims; i++)
        len[i] = len_of(original, i);
    return make(rw, P_TAKE, dims, len, NULL, in);
}

const Arith *num(Rewrite *rw, int64_t value)
{
    return arith_const(rw->ir->arith, value);
}

const Arith *missing(Rewrite *rw, const Arith *len, int64_t n)
{
    ArithCtx *c = rw->ir->arith;
    const Arith *whole = arith_mulc(c, arith_ceil_div(c, len, arith_const(c, n)), n);
    return arith_sub(c, whole, len);
}

Expr *with_name(Rewrite *rw, Expr *expr, const Expr *old, Param *name)
{
    if (expr_equal(expr, old))
        return use(rw, name);
    for (int i = 0; i < expr->narg; i++)
        expr->arg[i] = with_name(rw, expr->arg[i], old, name);
    if (expr->fun)
        expr->fun = with_name(rw, expr->fun, old, name);
    return expr;
}

Expr *counting(Rewrite *rw, const Arith *len)
{
    Param *i = fresh(rw, "i");
    return array_by(rw, len, i, use(rw, i));
}
