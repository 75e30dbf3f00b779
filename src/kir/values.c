// SPDX-License-Identifier: Apache-2.0
//
// Values of kernel IR.

#include "kir/kir.h"

const KExpr *kexpr_var(Arena *arena, const Var *var)
{
    return NEW_OF(arena, KExpr, .kind = K_VAR, .type = var->type, .var = var);
}

bool kexpr_maybe(const KExpr *e, int i)
{
    return i > 0 && e->kind == K_OP &&
           (e->op == OP_SELECT || e->op == OP_AND || e->op == OP_OR);
}

const Side *kexpr_side(const KExpr *e, int i)
{
    if (!kexpr_maybe(e, i) || !e->side)
        return NULL;
    return &e->side[e->op == OP_OR || i == 2];
}

// A sum that is a multiple of g but for its constant is >= 0 just where it is with the next
// multiple below in place of the constant: so neighbours have one condition.
const Arith *cond_rounded(ArithCtx *ctx, const Arith *cond)
{
    int64_t c = cond->kind == A_SUM ? cond->value : 0;
    int64_t g = c ? arith_multiple(ctx, arith_addc(ctx, cond, -c)) : 1;
    return g > 1 ? arith_addc(ctx, cond, -((c % g + g) % g)) : cond;
}
