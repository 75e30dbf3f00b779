// SPDX-License-Identifier: Apache-2.0
//
// Loops whose steps all items of a group take together. Each array of the state is in local
// memory twice: what a step reads, and what it makes; two steps that are written out know
// which is which. Scalars are each item's own; those that count are known from the number
// of the step.

#include "lower/internal.h"

#include <math.h>

typedef struct {
    const Expr *loop;
    const Env *env;
    const View *first;    // of scalars: what they begin with
    const View *state[2]; // arrays, and variables for scalars that are not counted
} GroupSteps;

static const Arith *constant(Lower *l, int64_t value)
{
    return arith_const(l->ctx, value);
}

// What each step adds to component i of the state, an integer that is known where the loop
// begins; 0: it is no such one.
static int64_t counted_by(const GroupSteps *g, int i)
{
    const Expr *f = g->loop->fun, *step = expr_behind_lets(f->arg[0]);
    const Expr *next = step->kind == E_TUPLE ? step->arg[i] : step;
    int64_t steps, start;
    if (next->kind != E_OP || next->op != OP_ADD || next->type->kind != T_SCALAR ||
        next->type->scalar != S_INT || !view_is_known(g->first->item[i], &start) ||
        !arith_is_const(g->loop->num[0], &steps))
        return 0;
    const Expr *old = next->arg[0], *by = next->arg[1];
    const bool counts = old->kind == E_GET && old->index == i &&
                        expr_is_use(old->arg[0], f->params[0]) && by->kind == E_LITERAL;
    const bool fits =
        counts && fabs((double)start + (double)steps * by->number) < INT32_MAX;
    return fits ? (int64_t)by->number : 0;
}

// A state of the arrays in one, and the scalars in another; of these variables, if new.
static const View *state_of(Lower *l, const View *arrays, const View *scalars,
                            const Type *type, bool new)
{
    if (type->kind == T_ARRAY)
        return arrays;
    if (type->kind != T_TUPLE)
        return new ? fold_variable(l, scalars, type) : scalars;
    const View **item = NEW_ARRAY(l->arena, const View *, type->n);
    for (int i = 0; i < type->n; i++)
        item[i] = state_of(l, view_get(l, arrays, i), view_get(l, scalars, i),
                           type->item[i], new);
    return view_tuple(l, type, item);
}

static void begin_states(Lower *l, GroupSteps *g)
{
    const Type *type = g->loop->type;
    for (int k = 0; k < 2 && type->kind == T_TUPLE; k++) {
        const View **item = NEW_ARRAY(l->arena, const View *, type->n);
        for (int i = 0; i < type->n; i++)
            item[i] = counted_by(g, i)
                          ? view_get(l, g->first, i)
                          : state_of(l, view_get(l, g->state[k], i),
                                     view_get(l, k ? g->state[0] : g->first, i),
                                     type->item[i], k == 0);
        g->state[k] = view_tuple(l, type, item);
    }
}

// Arrays in local memory; literals in place of scalars.
static const View *new_arrays(Lower *l, const Type *type)
{
    if (type->kind == T_ARRAY)
        return buffers_new(l, type, MEM_LOCAL, ROLE_TEMP, 0, "state");
    if (type->kind != T_TUPLE)
        return view_value(l, k_literal(l, 0, type));
    const View **item = NEW_ARRAY(l->arena, const View *, type->n);
    for (int i = 0; i < type->n; i++)
        item[i] = new_arrays(l, type->item[i]);
    return view_tuple(l, type, item);
}

// What a step that comes after so many reads; it makes the other state.
static const View *state_before(Lower *l, const GroupSteps *g, const View *state,
                                const Arith *steps)
{
    const Type *type = g->loop->type;
    if (type->kind != T_TUPLE)
        return state;
    const View **item = NEW_ARRAY(l->arena, const View *, type->n);
    for (int i = 0; i < type->n; i++) {
        const int64_t by = counted_by(g, i);
        int64_t start;
        item[i] = view_get(l, state, i);
        if (by && view_is_known(g->first->item[i], &start))
            item[i] = view_value(l, k_index(l, arith_add(l->ctx, constant(l, start),
                                                         arith_mulc(l->ctx, steps, by))));
    }
    return view_tuple(l, type, item);
}

// Copies the arrays of a state that is there, as the results of another loop, and returns
// its scalars.
static const View *copy_state(Lower *l, const View *value, const View *to)
{
    const Type *type = value->type;
    if (type->kind == T_ARRAY) {
        gen_copy(l, value, to);
        return to;
    }
    if (type->kind != T_TUPLE)
        return fold_next(l, value, type);
    const View **item = NEW_ARRAY(l->arena, const View *, type->n);
    for (int i = 0; i < type->n; i++)
        item[i] = copy_state(l, view_get(l, value, i), view_get(l, to, i));
    return view_tuple(l, type, item);
}

// Writes the arrays of a state, and returns its scalars, which change when nothing reads
// the old ones any more.
static const View *gen_state(Lower *l, const Expr *value, const Env *env, const View *to)
{
    for (; value->kind == E_LET; value = value->arg[1])
        env = env_bind_named(l, env, value->param, eval(l, value->arg[0], env),
                             value->arg[1]);
    if (value->type->kind == T_ARRAY) {
        gen(l, value, env, to);
        return to;
    }
    if (value->kind != E_TUPLE)
        return copy_state(l, eval(l, value, env), to);
    const View **item = NEW_ARRAY(l->arena, const View *, value->narg);
    for (int i = 0; i < value->narg; i++)
        item[i] = gen_state(l, value->arg[i], env, view_get(l, to, i));
    return view_tuple(l, value->type, item);
}

static void set_scalars(Lower *l, const View *value, const View *state)
{
    for (int i = 0; state->kind == V_TUPLE && i < type_tuple_of(state->type)->n; i++)
        set_scalars(l, view_get(l, value, i), view_get(l, state, i));
    if (state->kind == V_VAR)
        gen_copy(l, value, state);
}

// From state k to the other.
static void take_step(Lower *l, const GroupSteps *g, int k, const Arith *steps)
{
    const Expr *f = g->loop->fun;
    const int outer = l->inside[LOOP_SEQ];
    const View *from = state_before(l, g, g->state[k], steps), *to = g->state[1 - k];
    l->inside[LOOP_SEQ] = 0; // all items take it
    set_scalars(l, gen_state(l, f->arg[0], env_bind(l, g->env, f->params[0], from), to),
                g->state[0]);
    l->inside[LOOP_SEQ] = outer;
    add_barrier(l);
}

static void two_steps(Lower *l, void *user, const Arith *iter)
{
    const Arith *steps = arith_mulc(l->ctx, iter, 2);
    take_step(l, user, 0, steps);
    take_step(l, user, 1, arith_add(l->ctx, steps, constant(l, 1)));
}

const View *gen_steps_together(Lower *l, const Expr *expr, const Env *env)
{
    const Type *type = expr->type;
    GroupSteps g = {expr, env, NULL, {new_arrays(l, type), new_arrays(l, type)}};
    int64_t steps = 0;
    if (!arith_is_const(expr->num[0], &steps))
        return lower_fail(l, expr->span, "L045", "a group takes a known number of steps");
    g.first = gen_state(l, expr->arg[0], env, g.state[0]);
    add_barrier(l);
    begin_states(l, &g);
    gen_loop(l, LOOP_SEQ, 0, false, constant(l, steps / 2), two_steps, &g);
    if (steps % 2)
        take_step(l, &g, 0, constant(l, steps - 1));
    return state_before(l, &g, g.state[steps % 2], expr->num[0]);
}
