// SPDX-License-Identifier: Apache-2.0
//
// Guards: what a condition keeps from being evaluated, and what may be evaluated without
// it.
//
//   method  Each side of a condition is an object. While a side is open, statements go
//           to its block, and each load and store made says that it is on it, so that a
//           view of an element behind a condition must not be asked for the element before
//           the side is open (V_LATER). The passes keep what a load says; verify.c compares
//           it with where the load has come to stand.
//
// Neighbouring guards of equal conditions are one. The index of a load is simplified by
// what is known where it stands: behind the guard of a tile at the end of an array, reads
// need no clamp.

#include "kir/passes.h"
#include "lower/internal.h"

// Sides -------------------------------------------------------------------------------

const Side *sides_new(Lower *l, const KExpr *cond)
{
    Side *side = NEW_ARRAY(l->arena, Side, 2);
    side[0] = (Side){l->side, cond, true};
    side[1] = (Side){l->side, cond, false};
    return side;
}

Outside side_now(const Lower *l)
{
    return (Outside){l->block, l->side, arith_facts(l->ctx)};
}

// At host level there are no statements, and kernels begin outside all sides.
Outside side_open(Lower *l, const Side *side, Block *block)
{
    Outside outside = side_now(l);
    if (l->block) {
        l->block = block;
        l->side = side;
    }
    return outside;
}

void side_assume(Lower *l, const Side *side)
{
    if (side->cond->kind == K_COND && side->holds)
        for (int i = 0; i < side->cond->n; i++)
            arith_assume(l->ctx, side->cond->cond[i]);
}

// The guard that was closed last, if it has these conditions.
static Stm *guard_again(Lower *l, const KExpr *value)
{
    Stm *last = l->block->len ? l->block->at[l->block->len - 1] : NULL;
    bool same = last && last->kind == ST_IF && last->value->kind == K_COND &&
                !last->other.len && last->side && last->side->outer == l->side &&
                kexpr_same_cond(last->value, value);
    return same ? last : NULL;
}

void guard_open(Lower *l, const Arith *const *cond, int n)
{
    const KExpr *value = k_cond(l, cond, n);
    Stm *guard = guard_again(l, value);
    if (!guard) {
        guard = stm_add(l, ST_IF);
        guard->value = value;
        guard->side = sides_new(l, value);
    }
    side_open(l, guard->side, &guard->body);
    side_assume(l, guard->side);
}

void side_close(Lower *l, Outside outside)
{
    l->block = outside.block;
    l->side = outside.side;
    arith_facts_reset(l->ctx, outside.facts);
}

static const KExpr *side_left(Lower *l, const KExpr *e)
{
    if (e->kind != K_LOAD && (e->kind == K_COND || !e->n))
        return e;
    const KExpr **arg;
    KExpr *copy = kexpr_copy(l->arena, e, &arg);
    if (e->kind == K_LOAD)
        copy->side = l->side;
    for (int i = 0; i < e->n; i++)
        arg[i] = side_left(l, e->arg[i]);
    return copy;
}

void block_leave_side(Lower *l, Block *block)
{
    VEC_EACH(Stm *, stm, block) {
        if (stm->value)
            stm->value = side_left(l, stm->value);
        block_leave_side(l, &stm->body);
    }
}

bool block_may_go_ahead(Lower *l, const Block *block, int from)
{
    for (int i = from; i < block->len; i++) {
        const Stm *stm = block->at[i];
        bool loop = stm->kind == ST_FOR && stm->loop == LOOP_SEQ && !stm->value;
        bool names = stm->kind == ST_DECL || stm->kind == ST_INT || stm->kind == ST_ASSIGN;
        if (!loop && (!names || !stm->value || !may_go_ahead(l->ctx, stm->value)))
            return false;
        if (!block_may_go_ahead(l, &stm->body, 0))
            return false;
    }
    return true;
}
