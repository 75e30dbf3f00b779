// SPDX-License-Identifier: Apache-2.0
//
// Loops whose steps all items of a group take together. Each array of the state is in local
// memory once, where a step may change it (change.c), else twice: what a step reads, and
// what it makes; two steps that are written out know which is which. Scalars are each
// item's own.

#include "lower/internal.h"

typedef struct {
    const Expr *loop;
    const Env *env;
    const View *first;    // of scalars: what they begin with
    const View *state[2]; // arrays, and variables for scalars
    Changes *changes;     // NULL: the states have arrays of their own
} GroupSteps;

static const Arith *constant(Lower *l, int64_t value)
{
    return arith_const(l->ctx, value);
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

// From state k to the other, or to itself: then some of it may come late.
static const View *next_state(Lower *l, const GroupSteps *g, int k, const Arith *steps)
{
    const Expr *value = g->loop->fun->arg[0];
    const int outer = l->inside[LOOP_SEQ];
    l->inside[LOOP_SEQ] = 0; // all items take it
    const Env *env = step_env(l, g->env, g->loop, g->state[k], steps);
    env = env_behind_lets(l, env, &value);
    const View *next = NULL;
    const int levels = g->changes ? changes_levels(g->changes) : 1;
    for (int i = 0; i < levels; i++) {
        if (g->changes)
            changes_make(g->changes, steps, i, i, i);
        if (i)
            add_barrier(l);
        if (g->changes && !changes_any(g->changes, i))
            continue; // all that it has is loaded before
        next = gen_state(l, value, env, g->state[1 - k]);
    }
    l->inside[LOOP_SEQ] = outer;
    return next;
}

static void take_step(Lower *l, const GroupSteps *g, int k, const Arith *steps)
{
    Changes *around = l->changes;
    l->changes = g->changes;
    const View *next = next_state(l, g, k, steps);
    l->changes = around;
    set_scalars(l, next, g->state[0]);
    add_barrier(l);
}

// Both states have the same variables, and the same arrays if a step may change them where
// they are.
static void begin_states(Lower *l, GroupSteps *g)
{
    const Type *type = g->loop->type;
    g->state[0] = view_leaves(l, type, g->state[0], g->first, with_variable, NULL);
    g->state[1] = g->state[0];
    const Arith *number = arith_iter(l->ctx, "step", g->loop->num[0]);
    Changes *around = l->changes;
    Kernel *kernel = l->kernel, looked_at = *kernel; // whose names stay free
    Block *block = l->block, looks = {0};
    const int loops = l->loops.len;
    const View **array = NEW_ARRAY(l->arena, const View *, parts_of(type));
    int n = 0;
    list_arrays(l, g->state[0], array, &n);
    looked_at.names = (Map){.arena = l->arena};
    l->kernel = &looked_at;
    l->block = &looks;
    l->changes = g->changes = changes_new(l, array, n, number, true);
    next_state(l, g, 0, number);
    changes_look(l, &looks);
    if (!changes_found(l, g->changes))
        g->changes = NULL;
    l->changes = around;
    l->kernel = kernel;
    l->block = block;
    l->loops.len = loops;
    if (!g->changes)
        g->state[1] =
            view_leaves(l, type, new_arrays(l, type), g->state[0], with_scalar, NULL);
}

static void one_step(Lower *l, void *user, const Arith *iter)
{
    take_step(l, user, 0, iter);
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
    GroupSteps g = {expr, env, NULL, {new_arrays(l, type)}, NULL};
    int64_t steps = 0;
    if (!arith_is_const(expr->num[0], &steps))
        return lower_fail(l, expr->span, "L045", "a group takes a known number of steps");
    g.first = gen_state(l, expr->arg[0], env, g.state[0]);
    add_barrier(l);
    begin_states(l, &g);
    if (g.changes) {
        gen_loop(l, LOOP_SEQ, 0, false, expr->num[0], one_step, &g);
        return g.state[0];
    }
    gen_loop(l, LOOP_SEQ, 0, false, constant(l, steps / 2), two_steps, &g);
    if (steps % 2)
        take_step(l, &g, 0, constant(l, steps - 1));
    return g.state[steps % 2];
}

// Prefixes that are arrays: each is read where it was written, by all items of the group.
static void make_prefix(Lower *l, const RowSteps *s, const View *before, const Arith *at)
{
    const int outer = l->inside[LOOP_SEQ];
    l->inside[LOOP_SEQ] = 0; // all items make it
    gen_row(l, s, before, at);
    l->inside[LOOP_SEQ] = outer;
    add_barrier(l);
}

static void next_prefix(Lower *l, void *user, const Arith *iter)
{
    const RowSteps *s = user;
    make_prefix(l, s, view_elem(l, s->out, iter), arith_addc(l->ctx, iter, 1));
}

void gen_prefixes(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    if (!l->kernel || !expr_find_pattern(expr->fun, P_MAPLCL)) {
        gen_steps(l, expr, env, true, NULL, out);
        return;
    }
    RowSteps s = {expr, env, eval(l, expr->arg[1], env), out};
    if (out->kind != V_MEM && out->kind != V_LAYOUT && out->kind != V_TUPLE) {
        lower_fail(l, expr->span, "L046",
                   "prefixes of a group are read where they are stored");
        return;
    }
    make_prefix(l, &s, eval(l, expr->arg[0], env), constant(l, 0));
    gen_loop(l, LOOP_SEQ, 0, false, arith_addc(l->ctx, s.in->type->len, -1), next_prefix,
             &s);
}
