// SPDX-License-Identifier: Apache-2.0
//
// Keyed folds: an element of an array in memory changes with each value that has its key.
//
//   method  reduceBy fills the array and goes through its elements in order, by one
//           work-item. reduceByGlb and reduceByLcl are given an array that is filled, and
//           elements in short rows, one of which an item takes at a time: it reads all of a
//           row before the first update, so that the loads wait for one another's no longer
//           than they must. Their updates are atomic, as others change the same element;
//           those of reduceByOwn are not.
//
// A key outside of the array updates nothing.

#include "lower/internal.h"
#include "rewrite/rewrite.h"

typedef struct {
    const Expr *expr;
    const Env *env;
    const View *in, *out, *init;
    bool atomic;
} KeyedFold;

static void fill_step(Lower *l, void *user, const Arith *iter)
{
    const KeyedFold *k = user;
    gen_copy(l, k->init, view_elem(l, k->out, iter));
}

// Does it combine what is there with one value, by such an operation?
static bool is_update(const KExpr *value, const View *place)
{
    if (value->kind != K_OP || value->n != 2 || !op_updates(value->op))
        return false;
    for (int i = 0; i < 2; i++) {
        const KExpr *load = value->arg[i];
        if (kexpr_is_load(load, place->buffer) && load->arith == place->offset &&
            !kexpr_any(value->arg[1 - i], kexpr_is_load, place->buffer))
            return true;
    }
    return false;
}

// Each component by an operation, which another order of the elements may round otherwise.
static void update_each(Lower *l, const KeyedFold *k, const View *value, const View *place)
{
    for (int i = 0; place->type->kind == T_TUPLE && i < place->type->n; i++)
        update_each(l, k, view_get(l, value, i), view_get(l, place, i));
    if (place->type->kind == T_TUPLE || l->failed)
        return;
    const KExpr *now = view_read(l, value);
    if (!is_update(now, place)) {
        lower_fail(l, k->expr->span, "L026",
                   "`%s` needs a function that combines scalars by one of + * min max",
                   pattern_info[k->expr->pattern].text);
        return;
    }
    Stm *stm = add_store(l, place->buffer, place->offset, now);
    stm->side = l->side;
    stm->atomic = k->atomic;
}

static void update_element(Lower *l, const KeyedFold *k, const View *key, const View *value)
{
    const int before = l->block->len;
    const Arith *at = value_index(l, view_read(l, key), k->expr->span);
    Stm *last = l->block->len > before ? l->block->at[l->block->len - 1] : NULL;
    if (last && last->kind == ST_INT && last->iter == at)
        last->extent = k->expr->type->len; // the reference asks where else it may be
    const Arith *end = arith_addc(l->ctx, k->expr->type->len, -1);
    const Arith *inside[] = {at, arith_sub(l->ctx, end, at)};
    Outside outside = side_now(l);
    guard_open(l, inside, 2);
    const View *place = view_elem(l, k->out, at);
    const View *arg[] = {place, value};
    if (k->atomic || keyed_updates(k->expr))
        update_each(l, k, apply(l, k->expr->fun, k->env, arg), place);
    else
        fold_element(l, k->expr, k->env, place, value);
    side_close(l, outside);
}

static void update_step(Lower *l, void *user, const Arith *iter)
{
    const KeyedFold *k = user;
    const View *elem = view_elem(l, k->in, iter);
    update_element(l, k, view_get(l, elem, 0), view_get(l, elem, 1));
}

enum { ROW_MOST = 16 };

// A row of elements: all are read first.
static void update_row(Lower *l, void *user, const Arith *iter)
{
    const KeyedFold *k = user;
    const View *row = view_elem(l, k->in, iter), *elem[ROW_MOST];
    int64_t n;
    if (!arith_is_const(row->type->len, &n) || n > ROW_MOST) {
        lower_fail(l, k->expr->span, "L026", "`%s` takes rows of at most %d elements",
                   pattern_info[k->expr->pattern].text, ROW_MOST);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        elem[i] = fold_next(l, view_elem(l, row, arith_const(l->ctx, i)), row->type->elem);
    for (int64_t i = 0; i < n; i++)
        update_element(l, k, view_get(l, elem[i], 0), view_get(l, elem[i], 1));
}

// Can it be read as it is written?
static bool is_memory(const View *view)
{
    if (view->kind != V_TUPLE)
        return view->kind == V_MEM;
    bool all = true;
    for (int i = 0; i < type_tuple_of(view->type)->n; i++)
        all &= is_memory(view->item[i]);
    return all;
}

static void gen_in_order(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    KeyedFold k = {expr, env, eval(l, expr->arg[1], env), out, eval(l, expr->arg[0], env),
                   false};
    bool begun = kernel_begin(l, expr);
    gen_loop(l, LOOP_SEQ, 0, false, expr->type->len, fill_step, &k);
    gen_loop(l, LOOP_SEQ, 0, false, k.in->type->len, update_step, &k);
    kernel_end(l, begun);
}

static void update_all(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    KeyedFold k = {expr, env,  eval(l, expr->arg[1], env),
                   out,  NULL, expr->pattern != P_REDBYOWN};
    if (l->failed)
        return;
    bool begun = kernel_begin(l, expr);
    gen_loop(l, expr->pattern == P_REDBYGLB ? LOOP_GLB : LOOP_LCL, 0, false,
             k.in->type->len, update_row, &k);
    kernel_end(l, begun);
}

const View *eval_by_key(Lower *l, const Expr *expr, const Env *env)
{
    const View *array = eval(l, expr->arg[0], env);
    if (l->failed || !is_memory(array))
        return lower_fail(l, expr->span, "L026", "`%s` updates an array in memory",
                          pattern_info[expr->pattern].text);
    update_all(l, expr, env, array);
    if (expr->pattern != P_REDBYGLB && l->kernel) {
        add_barrier(l);
        l->shared_tile = true;
    }
    return array;
}

bool gen_by_key(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    if (!is_memory(out) || (l->kernel && expr->pattern != P_REDUCEBY))
        return false;
    if (expr->pattern == P_REDUCEBY) {
        gen_in_order(l, expr, env, out);
        return true;
    }
    gen(l, expr->arg[0], env, out);
    update_all(l, expr, env, out);
    return true;
}
