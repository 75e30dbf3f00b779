// SPDX-License-Identifier: Apache-2.0
//
// Loops beside whose arrays something counts: `iterate(T, \a t -> (f(a, t), t + 1), (a,
// 0))`.
//
//   method  A number to which each step adds the same, and one that no step changes, is no
//           state: after k steps it is what it began with and k times that. So the loop is
//           lowered as one over the other components, whose function has a second
//           parameter, the number of the step: the variable of a loop in a kernel, an
//           argument of the launch at host level (iterate.c), and of several steps in one
//           kernel that of the first and what each comes after it (stream_reads.c).
//           Integers wrap around as their sums would. Floating numbers count if they are
//           whole and every sum of them is exact.

#include "lower/internal.h"

#include <math.h>

static const Expr *component(Ir *ir, const Expr *tuple, int i)
{
    if (tuple->kind == E_TUPLE)
        return tuple->arg[i];
    Expr *get = expr_get(ir, (Expr *)tuple, i);
    get->type = tuple->type->item[i];
    return get;
}

static bool is_made(const Expr *expr, const void *none)
{
    return expr->kind == E_PATTERN || expr->kind == E_CALL || expr->kind == E_LET ||
           expr->kind == E_AT;
}

// Are all sums of floating numbers exact?
static bool is_exact(const Expr *loop, const Expr *first, const Expr *by)
{
    int64_t steps;
    while (first->kind == E_OP && op_info[first->op].types == TY_CAST)
        first = first->arg[0];
    if (first->kind != E_LITERAL || by->kind != E_LITERAL || signbit(first->number) ||
        !arith_is_const(loop->num[0], &steps))
        return false;
    const double most = first->number + (double)steps * fabs(by->number);
    return floor(first->number) == first->number && floor(by->number) == by->number &&
           most <= ldexp(1, scalar_info[by->type->scalar].digits);
}

// first + by * number, in its type.
static Expr *counted(Ir *ir, const Expr *first, Op op, const Expr *by, const Param *number)
{
    Expr *sum = expr_param(ir, (Param *)number);
    sum->type = number->type;
    if (first->type->scalar != S_INT)
        sum = expr_op(ir, op_cast(first->type->scalar), sum, NULL, NULL);
    sum->type = first->type;
    if (by->kind != E_LITERAL || by->number != 1)
        sum = expr_op(ir, OP_MUL, sum, expr_clone(ir, by), NULL);
    sum->type = first->type;
    if (op == OP_SUB || first->kind != E_LITERAL || first->number != 0)
        sum = expr_op(ir, op, expr_clone(ir, first), sum, NULL);
    sum->type = first->type;
    return sum;
}

static const Expr *value_of(Ir *ir, const Expr *loop, int i, const Param *number)
{
    Op op;
    const Expr *step = expr_behind_lets(loop->fun->arg[0]), *next = step->arg[i];
    const Expr *first = component(ir, loop->arg[0], i);
    if (next->type->kind != T_SCALAR || expr_find(first, is_made, NULL))
        return NULL;
    if (next->kind == E_GET && next->index == i &&
        expr_is_use(next->arg[0], loop->fun->params[0]))
        return first;
    const Expr *by = expr_added(loop, i, &op);
    return by && (type_is_integer(next->type) || is_exact(loop, first, by))
               ? counted(ir, first, op, by, number)
               : NULL;
}

// The others --------------------------------------------------------------------------

static const Type *rest_type(Ir *ir, const LoopCounters *c, const Type *tuple)
{
    const Type **item = NEW_ARRAY(ir->arena, const Type *, c->n);
    int n = 0;
    for (int i = 0; i < c->n; i++)
        if (!c->value[i])
            item[n++] = tuple->item[i];
    return n == 1 ? item[0] : type_tuple(ir->arena, item, n);
}

// The other components of a tuple of all; a single one is no tuple.
static Expr *rest_of(Ir *ir, const LoopCounters *c, const Expr *tuple, const Type *type)
{
    Expr **item = NEW_ARRAY(ir->arena, Expr *, c->n);
    int n = 0;
    for (int i = 0; i < c->n; i++)
        if (!c->value[i])
            item[n++] = (Expr *)component(ir, tuple, i);
    if (n == 1)
        return item[0];
    Expr *rest = expr_tuple(ir, item, n);
    rest->type = type;
    return rest;
}

// The whole state, made of the others and of what the number says.
static Expr *whole_state(Ir *ir, const LoopCounters *c, Param *rest, const Type *type)
{
    Expr **item = NEW_ARRAY(ir->arena, Expr *, c->n);
    for (int i = 0, k = 0; i < c->n; i++) {
        item[i] = (Expr *)c->value[i];
        if (item[i])
            continue;
        item[i] = expr_param(ir, rest);
        item[i]->type = rest->type;
        if (c->others > 1)
            item[i] = expr_get(ir, item[i], k++);
        item[i]->type = type->item[i];
    }
    Expr *whole = expr_tuple(ir, item, c->n);
    whole->type = type;
    return whole;
}

static Expr *rest_step(Ir *ir, const LoopCounters *c, const Expr *fun, Param *rest)
{
    const Type *whole = fun->params[0]->type;
    Expr *step = expr_project(
        expr_replace(ir, fun->arg[0], fun->params[0], whole_state(ir, c, rest, whole)));
    Expr **last = &step;
    for (; (*last)->kind == E_LET; last = &(*last)->arg[1])
        (*last)->type = rest->type;
    *last = rest_of(ir, c, *last, rest->type);
    return step;
}

bool find_counters(Ir *ir, const Expr *loop, LoopCounters *found)
{
    const Expr *step = expr_behind_lets(loop->fun->arg[0]);
    if (is_told_number(loop) || step->kind != E_TUPLE || loop->type->kind != T_TUPLE)
        return false;
    Param *number = param_new(ir, "step", type_scalar(S_INT));
    LoopCounters c = {.n = step->narg, .number = number};
    c.value = NEW_ARRAY(ir->arena, const Expr *, c.n);
    for (int i = 0; i < c.n; i++) {
        c.value[i] = value_of(ir, loop, i, number);
        c.others += !c.value[i];
    }
    if (c.others == 0 || c.others == c.n)
        return false;
    const Type *type = rest_type(ir, &c, loop->type);
    Param *param[] = {param_new(ir, loop->fun->params[0]->name, type), number};
    Expr *fun = expr_lambda(ir, param, 2, rest_step(ir, &c, loop->fun, param[0]));
    Expr *rest = arena_copy(ir->arena, loop, sizeof *loop);
    rest->fun = fun;
    rest->type = type;
    rest->arg = NEW_ARRAY(ir->arena, Expr *, 1);
    rest->arg[0] = rest_of(ir, &c, loop->arg[0], type);
    c.loop = rest;
    *found = c;
    return true;
}

bool is_time_loop(const Expr *expr)
{
    return expr_is(expr, P_ITERATE) || expr_is(expr, P_ITERSTREAM);
}

bool is_loop_result(Ir *ir, const Expr *expr)
{
    LoopCounters c;
    const Expr *loop = expr->kind == E_GET ? expr->arg[0] : NULL;
    return loop && is_time_loop(loop) &&
           !(find_counters(ir, loop, &c) && c.value[expr->index]);
}

// Views -------------------------------------------------------------------------------

const Env *step_env(Lower *l, const Env *env, const Expr *loop, const View *state,
                    const Arith *number)
{
    env = env_bind(l, env, loop->fun->params[0], state);
    return is_told_number(loop)
               ? env_bind(l, env, loop->fun->params[1], view_value(l, k_index(l, number)))
               : env;
}

const View *counted_rest(Lower *l, const LoopCounters *c, const View *whole)
{
    const View **item = NEW_ARRAY(l->arena, const View *, c->n);
    int n = 0;
    for (int i = 0; i < c->n; i++)
        if (!c->value[i])
            item[n++] = view_get(l, whole, i);
    return n == 1 ? item[0] : view_tuple(l, c->loop->type, item);
}

const View *counted_result(Lower *l, const LoopCounters *c, const Env *env,
                           const View *rest)
{
    const View **item = NEW_ARRAY(l->arena, const View *, c->n);
    const Type **type = NEW_ARRAY(l->arena, const Type *, c->n);
    int n = 0;
    env = env_bind(l, env, c->number, view_value(l, k_index(l, c->loop->num[0])));
    for (int i = 0; i < c->n; i++) {
        item[i] = c->value[i]      ? eval(l, c->value[i], env)
                  : c->others == 1 ? rest
                                   : view_get(l, rest, n++);
        type[i] = item[i]->type;
    }
    return view_tuple(l, type_tuple(l->arena, type, c->n), item);
}
