// SPDX-License-Identifier: Apache-2.0
//
// Masks: a sum to which 0 is added where a condition on indices does not hold stays as it
// is there.
//
//   method  s = s + (c ? e : 0) becomes s = c ? s + e : s
//   why     that is one instruction behind a predicate which all outputs of an item share;
//           a multiplication, a choice and an addition are three
//
// The sum of -0.0 and 0 is 0, so floating sums stay as they are where bits are promised.

#include "kir/passes.h"

static bool is_mask(const KExpr *e)
{
    return e->kind == K_OP && e->op == OP_SELECT && e->arg[0]->kind == K_COND &&
           e->arg[2]->kind == K_LITERAL && e->arg[2]->number == 0;
}

static const KExpr *add_behind(Arena *arena, const KExpr *add, const KExpr *sum,
                               const KExpr *e)
{
    const bool mask = is_mask(e);
    const KExpr **arg, *copy = kexpr_copy(arena, mask ? e : add, &arg);
    arg[mask] = mask ? add_behind(arena, add, sum, e->arg[1]) : sum;
    arg[mask + 1] = mask ? sum : e;
    return copy;
}

static bool is_own(const Stm *stm, const KExpr *e)
{
    return stm->kind == ST_ASSIGN
               ? e->kind == K_VAR && e->var == stm->var
               : e->kind == K_LOAD && e->buffer == stm->buffer && e->arith == stm->index;
}

static void mask_sum(Stm *stm, void *user)
{
    const Pass *pass = user;
    const KExpr *add = stm->value;
    bool own = stm->kind == ST_ASSIGN ||
               (stm->kind == ST_STORE && stm->buffer->space == MEM_PRIVATE);
    if (!own || add->kind != K_OP || add->op != OP_ADD || add->type->kind != T_SCALAR ||
        (pass->program->math == MATH_STRICT && scalar_info[add->type->scalar].floating))
        return;
    for (int i = 0; i < 2; i++)
        if (is_own(stm, add->arg[i]) && is_mask(add->arg[1 - i])) {
            stm->value = add_behind(pass->arena, add, add->arg[i], add->arg[1 - i]);
            return;
        }
}

void pass_masks(Pass *pass, Kernel *kernel)
{
    block_each(&kernel->body, mask_sum, pass);
}
