// SPDX-License-Identifier: Apache-2.0
//
// Defs that leave lengths and types of scalars open: each call gets a copy for the types of
// its arguments.
//
//   method  a name that is alone in a parameter's length, as A in [A] or [2*A + 1], or its
//           scalar type, is what the argument has there; the copy is inferred like any def
//           that is written where it is called, so that a type that does not fit is
//           reported there

#include "ir/internal.h"

Instance instance_new(Ir *ir, const Function *of)
{
    Instance instance = {.ir = ir, .of = of};
    instance.size = NEW_ARRAY(ir->arena, const Arith *, of->ngeneric);
    instance.type = NEW_ARRAY(ir->arena, const Type *, of->ngeneric);
    return instance;
}

// What a name is where a length `c*name + d` is the value; NULL: the length is no such.
static const Arith *solved(ArithCtx *c, const Arith *length, const Arith *name,
                           const Arith *value)
{
    int64_t at0, at1;
    if (!arith_is_const(arith_subst(c, length, name, arith_const(c, 0)), &at0) ||
        !arith_is_const(arith_subst(c, length, name, arith_const(c, 1)), &at1) ||
        at1 <= at0 ||
        !arith_equal(c, length, arith_addc(c, arith_mulc(c, name, at1 - at0), at0)))
        return NULL;
    return arith_div(c, arith_addc(c, value, -at0), arith_const(c, at1 - at0));
}

void instance_match(Instance *instance, const Type *param, const Type *argument)
{
    const Function *f = instance->of;
    ArithCtx *c = instance->ir->arith;
    if (param->kind == T_ARRAY && argument->kind == T_ARRAY) {
        for (int i = 0; i < f->ngeneric; i++)
            if (f->generic[i].size && !instance->size[i])
                instance->size[i] =
                    solved(c, param->len, f->generic[i].size, argument->len);
        instance_match(instance, param->elem, argument->elem);
        return;
    }
    bool tuples = param->kind == T_TUPLE && argument->kind == T_TUPLE;
    for (int i = 0; tuples && i < param->n && i < argument->n; i++)
        instance_match(instance, param->item[i], argument->item[i]);
    for (int i = 0; argument->kind == T_SCALAR && i < f->ngeneric; i++)
        if (f->generic[i].type && f->generic[i].type == param && !instance->type[i])
            instance->type[i] = argument;
}

const char *instance_open(const Instance *instance)
{
    for (int i = 0; i < instance->of->ngeneric; i++)
        if (!instance->size[i] && !instance->type[i])
            return instance->of->generic[i].name;
    return NULL;
}

// Where a value mentions the names itself they stay apart: all at once, by way of others.
static const Arith *length(const Instance *instance, const Arith *arith)
{
    ArithCtx *c = instance->ir->arith;
    const Function *f = instance->of;
    char name[24];
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < f->ngeneric; i++) {
            const Arith *size = f->generic[i].size;
            if (!size || !instance->size[i])
                continue;
            snprintf(name, sizeof name, "?%d", i);
            const Arith *between = arith_size(c, arena_strdup(instance->ir->arena, name));
            arith = turn == 0 ? arith_subst(c, arith, size, between)
                              : arith_subst(c, arith, between, instance->size[i]);
        }
    return arith;
}

const Type *instance_type(const Instance *instance, const Type *type)
{
    Arena *arena = instance->ir->arena;
    const Function *f = instance->of;
    if (type->kind == T_ARRAY) {
        const Type *elem = instance_type(instance, type->elem);
        for (int i = 0; elem && i < f->ngeneric; i++)
            if (f->generic[i].size && !instance->size[i])
                return NULL;
        return elem ? type_array(arena, length(instance, type->len), elem) : NULL;
    }
    if (type->kind == T_TUPLE) {
        const Type **item = NEW_ARRAY(arena, const Type *, type->n);
        for (int i = 0; i < type->n; i++)
            if (!(item[i] = instance_type(instance, type->item[i])))
                return NULL;
        return type_tuple(arena, item, type->n);
    }
    for (int i = 0; i < f->ngeneric; i++)
        if (f->generic[i].type == type)
            return instance->type[i];
    return type;
}

// In place, on a copy.
static void settle(const Instance *instance, Expr *e)
{
    const Function *f = instance->of;
    int nums = e->kind == E_NUM ? 1 : e->nnum;
    for (int i = 0; i < nums; i++)
        e->num[i] = length(instance, e->num[i]);
    for (int i = 0; e->kind == E_CALL && i < f->ngeneric; i++)
        if (f->generic[i].convert == e->callee) {
            e->kind = E_OP;
            e->op = op_cast(instance->type[i]->scalar);
        }
    for (int i = 0; i < e->narg; i++)
        settle(instance, e->arg[i]);
    if (e->fun)
        settle(instance, e->fun);
}

Function *instance_function(const Instance *instance)
{
    Ir *ir = instance->ir;
    const Function *f = instance->of;
    Function *copy = arena_copy(ir->arena, f, sizeof(Function));
    Expr *lambda = expr_clone(ir, expr_lambda(ir, f->params, f->nparam, f->body));
    copy->ngeneric = 0;
    copy->params = lambda->params;
    copy->body = lambda->arg[0];
    copy->result = f->result ? instance_type(instance, f->result) : NULL;
    for (int i = 0; i < f->nparam; i++)
        copy->params[i]->type = instance_type(instance, f->params[i]->type);
    settle(instance, copy->body);
    return copy;
}
