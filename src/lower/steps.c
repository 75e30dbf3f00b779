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

// What each step adds to component i of the state, an integer; 0: it is no such one.
static int64_t added_to(const Expr *loop, int i)
{
    const Expr *step = expr_behind_lets(loop->fun->arg[0]);
    const Expr *next = step->kind == E_TUPLE ? step->arg[i] : step;
    if (next->kind != E_OP || next->op != OP_ADD || next->type->kind != T_SCALAR ||
        next->type->scalar != S_INT || next->arg[1]->kind != E_LITERAL)
        return 0;
    const Expr *old = next->arg[0];
    const bool counts = old->kind == E_GET && old->index == i &&
                        expr_is_use(old->arg[0], loop->fun->params[0]);
    return counts ? (int64_t)next->arg[1]->number : 0;
}

// Component i of the state after so many steps, if it counts from a number that is known
// where the loop begins; NULL: it is no such one.
static const View *counted(Lower *l, const GroupSteps *g, int i, const Arith *steps)
{
    const int64_t by = added_to(g->loop, i);
    int64_t start, all;
    if (!by || !view_is_known(g->first->item[i], &start) ||
        !arith_is_const(g->loop->num[0], &all) ||
        fabs((double)start + (double)all * (double)by) >= INT32_MAX)
        return NULL;
    return view_value(l, k_index(l, arith_add(l->ctx, constant(l, start),
                                              arith_mulc(l->ctx, steps, by))));
}

// An array in local memory; a literal in place of a scalar.
static const View *new_array(Lower *l, const Type *type, const View *none,
                             const View *neither, const void *user)
{
    return type->kind == T_ARRAY ? buffers_new(l, type, MEM_LOCAL, ROLE_TEMP, 0, "state")
                                 : view_value(l, k_literal(l, 0, type));
}

static const View *new_arrays(Lower *l, const Type *type)
{
    return view_leaves(l, type, NULL, NULL, new_array, NULL);
}

// The array, or a variable for the scalar.
static const View *with_variable(Lower *l, const Type *type, const View *array,
                                 const View *scalar, const void *user)
{
    return type->kind == T_ARRAY ? array : fold_variable(l, scalar, type);
}

static const View *with_scalar(Lower *l, const Type *type, const View *array,
                               const View *scalar, const void *user)
{
    return type->kind == T_ARRAY ? array : scalar;
}

// Both states have the same variables; scalars that count have none.
static void begin_states(Lower *l, GroupSteps *g)
{
    const Type *type = g->loop->type;
    if (type->kind == T_SCALAR)
        g->state[0] = g->state[1] = fold_variable(l, g->first, type);
    for (int k = 0; k < 2 && type->kind == T_TUPLE; k++) {
        const View **item = NEW_ARRAY(l->arena, const View *, type->n);
        const View *scalars = k ? g->state[0] : g->first;
        for (int i = 0; i < type->n; i++) {
            item[i] = view_get(l, scalars, i);
            if (!counted(l, g, i, constant(l, 0)))
                item[i] = view_leaves(l, type->item[i], view_get(l, g->state[k], i),
                                      item[i], k ? with_scalar : with_variable, NULL);
        }
        g->state[k] = view_tuple(l, type, item);
    }
}

// A state as a step that comes after so many reads it.
static const View *state_after(Lower *l, const GroupSteps *g, const View *state,
                               const Arith *steps)
{
    const Type *type = g->loop->type;
    if (type->kind != T_TUPLE)
        return state;
    const View **item = NEW_ARRAY(l->arena, const View *, type->n);
    for (int i = 0; i < type->n; i++) {
        item[i] = counted(l, g, i, steps);
        if (!item[i])
            item[i] = view_get(l, state, i);
    }
    return view_tuple(l, type, item);
}

static const View *copy_leaf(Lower *l, const Type *type, const View *value, const View *to,
                             const void *user)
{
    if (type->kind != T_ARRAY)
        return fold_next(l, value, type);
    gen_copy(l, value, to);
    return to;
}

// Writes the arrays of a state, and returns its scalars, which change when nothing reads
// the old ones any more. A state that is no tuple of its parts, as the results of another
// loop, is copied.
static const View *gen_state(Lower *l, const Expr *value, const Env *env, const View *to)
{
    env = env_behind_lets(l, env, &value);
    if (value->type->kind == T_ARRAY) {
        gen(l, value, env, to);
        return to;
    }
    if (value->kind != E_TUPLE)
        return view_leaves(l, value->type, eval(l, value, env), to, copy_leaf, NULL);
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
    const View *from = state_after(l, g, g->state[k], steps), *to = g->state[1 - k];
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
    return state_after(l, &g, g.state[steps % 2], expr->num[0]);
}

// Prefixes that are arrays: each is read where it was written, by all items of the group.
typedef struct {
    const Expr *scan;
    const Env *env;
    const View *in, *out;
} GroupPrefixes;

static void make_prefix(Lower *l, const GroupPrefixes *g, const View *before,
                        const Arith *at)
{
    const Expr *f = g->scan->fun;
    const View *arg[] = {before, view_elem(l, g->in, at)};
    const Env *env = g->env;
    const int outer = l->inside[LOOP_SEQ];
    for (int i = 0; i < COUNTOF(arg); i++)
        env = env_bind_named(l, env, f->params[i], arg[i], f->arg[0]);
    l->inside[LOOP_SEQ] = 0; // all items make it
    gen(l, f->arg[0], env, view_elem(l, g->out, at));
    l->inside[LOOP_SEQ] = outer;
    add_barrier(l);
}

static void next_prefix(Lower *l, void *user, const Arith *iter)
{
    const GroupPrefixes *g = user;
    make_prefix(l, g, view_elem(l, g->out, iter), arith_addc(l->ctx, iter, 1));
}

void gen_prefixes(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    if (!l->kernel || !expr_find_pattern(expr->fun, P_MAPLCL)) {
        gen_steps(l, expr, env, true, NULL, out);
        return;
    }
    GroupPrefixes g = {expr, env, eval(l, expr->arg[1], env), out};
    if (out->kind != V_MEM && out->kind != V_LAYOUT && out->kind != V_TUPLE) {
        lower_fail(l, expr->span, "L046",
                   "prefixes of a group are read where they are stored");
        return;
    }
    make_prefix(l, &g, eval(l, expr->arg[0], env), constant(l, 0));
    gen_loop(l, LOOP_SEQ, 0, false, arith_addc(l->ctx, g.in->type->len, -1), next_prefix,
             &g);
}
