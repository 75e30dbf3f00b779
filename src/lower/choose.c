// SPDX-License-Identifier: Apache-2.0
//
// What an `if` gives: a choice where both sides are at hand, else a branch. All components
// of a tuple are of one branch.

#include "kir/passes.h"
#include "lower/internal.h"

static const View *read_leaf(Lower *l, const Type *type, const View *view, const View *none,
                             const void *leaves)
{
    Leaves *to = (Leaves *)(uintptr_t)leaves;
    to->at[to->n++] = view_read(l, view);
    return view;
}

Leaves read_leaves(Lower *l, const View *view, const Type *type)
{
    Leaves leaves = {.at = NEW_ARRAY(l->arena, const KExpr *, type_leaves(type))};
    view_leaves(l, type, view, NULL, read_leaf, &leaves);
    return leaves;
}

static const View *next_leaf(Lower *l, const Type *type, const View *none,
                             const View *neither, const void *next)
{
    const KExpr *const **at = (const KExpr *const **)(uintptr_t)next;
    return view_value(l, *(*at)++);
}

const View *choose_leaves(Lower *l, const Type *type, const Side *sides, const Block *yes,
                          Leaves a, const Block *no, Leaves b)
{
    const KExpr *const *chosen = k_choose_all(l, sides, yes, a.at, no, b.at, a.n);
    return view_leaves(l, type, NULL, NULL, next_leaf, &chosen);
}

static bool may_all_go_ahead(Lower *l, Leaves leaves, const Block *block, int from)
{
    bool may = block_may_go_ahead(l, block, from);
    for (int i = 0; may && i < leaves.n; i++)
        may = may_go_ahead(l->ctx, leaves.at[i]);
    return may;
}

static bool loads(Leaves leaves, const Block *block, int from)
{
    bool any = false;
    for (int i = 0; i < leaves.n; i++)
        any |= kexpr_any(leaves.at[i], kexpr_is_load, NULL);
    for (int k = from; k < block->len; k++)
        any |= kexpr_any(block->at[k]->value, kexpr_is_load, NULL);
    return any;
}

static void name_leaves(Lower *l, Leaves leaves, const char *name)
{
    for (int i = 0; i < leaves.n; i++)
        leaves.at[i] = k_named(l, leaves.at[i], name);
}

// A side of an `if` before it is known whether it is wanted, so that its loads wait for no
// condition and may be merged; nothing where they could be out of bounds, or there are
// none. Within a side that is tried so itself, what is out of bounds is so for that one
// too: its value is thrown away, and is not made a second time here.
static Leaves eval_ahead(Lower *l, const Expr *expr, const Env *env)
{
    if (!l->options->eager || !l->block)
        return (Leaves){0};
    int before = l->block->len;
    l->ahead++;
    Leaves leaves = read_leaves(l, eval(l, expr, env), expr->type);
    l->ahead--;
    bool safe = !l->unsafe && may_all_go_ahead(l, leaves, l->block, before);
    if (safe && loads(leaves, l->block, before)) {
        name_leaves(l, leaves, "ahead");
        return leaves;
    }
    l->block->len = before;
    l->unsafe = !safe && l->ahead;
    return l->unsafe ? leaves : (Leaves){0};
}

// In a stream nearly all cells want the same side, and a choice costs less than a branch.
static void unbranch(Lower *l, Block *side, Leaves leaves)
{
    bool computed = false;
    for (int i = 0; i < leaves.n; i++)
        computed |= leaves.at[i]->n > 0;
    if (!l->stream || !l->block || !computed || loads(leaves, side, 0) ||
        !may_all_go_ahead(l, leaves, side, 0))
        return;
    for (int i = 0; i < side->len; i++)
        VEC_PUSH(l->arena, l->block, side->at[i]);
    side->len = 0;
    name_leaves(l, leaves, "either");
}

// One side of an `if`, in a block of its own, under the facts of its condition.
static Leaves eval_side(Lower *l, const Expr *expr, const Env *env, Block *block,
                        const Side *side)
{
    Outside outside = side_open(l, side, block);
    side_assume(l, side);
    Leaves leaves = read_leaves(l, eval(l, expr, env), expr->type);
    side_close(l, outside);
    unbranch(l, block, leaves);
    return leaves;
}

static bool is_function(const Expr *expr, const void *none)
{
    const bool op = expr->kind == E_OP;
    return op &&
           (op_info[expr->op].kind == OPK_EXP || op_info[expr->op].kind == OPK_SPECIAL);
}

// Is it taken in some iterations of a loop only, and long? Where a step of a tree has ever
// fewer nodes, half of the work is not done. (20,000 options of 256 steps with a power in
// each node: 2.4 and 4.1 ms.)
static bool is_long_sometimes(const Lower *l, const KExpr *cond, const Expr *side)
{
    bool varies = false;
    for (int i = 0; i < l->loops.len; i++)
        for (int k = 0; l->loops.at[i].open && k < cond->n; k++)
            varies |= arith_mentions(cond->cond[k], l->loops.at[i].iter);
    return varies && expr_find(side, is_function, NULL);
}

// The components of a tuple are chosen together: what a side computes, it computes once.
const View *eval_select(Lower *l, const Expr *expr, const Env *env)
{
    const KExpr *cond = view_read(l, eval(l, expr->arg[0], env));
    if (cond->kind == K_LITERAL)
        return eval(l, expr->arg[cond->number != 0 ? 1 : 2], env);
    if (type_holds_array(expr->type))
        return lower_fail(l, expr->span, "L019", "an `if` between arrays");
    if (expr->type->kind == T_TUPLE && cond->kind != K_COND)
        cond = k_named(l, cond, "chosen"); // each component asks for it
    Block yes = {0}, no = {0};
    const Side *sides = sides_new(l, cond);
    const bool ahead = cond->kind == K_COND && !is_long_sometimes(l, cond, expr->arg[1]);
    Leaves a = ahead ? eval_ahead(l, expr->arg[1], env) : (Leaves){0};
    if (!a.n)
        a = eval_side(l, expr->arg[1], env, &yes, &sides[0]);
    Leaves b = eval_side(l, expr->arg[2], env, &no, &sides[1]);
    return choose_leaves(l, expr->type, sides, &yes, a, &no, b);
}
