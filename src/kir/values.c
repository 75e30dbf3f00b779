// SPDX-License-Identifier: Apache-2.0
//
// Values and statements of kernel IR.

#include "kir/kir.h"

const KExpr *kexpr_var(Arena *arena, const Var *var)
{
    return NEW_OF(arena, KExpr, .kind = K_VAR, .type = var->type, .var = var);
}

const KExpr *kexpr_load(Arena *arena, const Buffer *buffer, const Arith *index)
{
    return NEW_OF(arena, KExpr, .kind = K_LOAD, .type = type_scalar(buffer->scalar),
                  .buffer = buffer, .arith = index);
}

const KExpr *kexpr_cond(Arena *arena, const Arith *const *cond, int n)
{
    return NEW_OF(arena, KExpr, .kind = K_COND, .type = type_scalar(S_BOOL), .cond = cond,
                  .n = n);
}

KExpr *kexpr_copy(Arena *arena, const KExpr *e, const KExpr ***arg)
{
    KExpr *copy = arena_copy(arena, e, sizeof(KExpr));
    *arg = NEW_ARRAY(arena, const KExpr *, MAX(e->n, 1));
    for (int i = 0; i < kexpr_args(e); i++)
        (*arg)[i] = e->arg[i];
    copy->arg = e->kind == K_COND ? NULL : *arg;
    return copy;
}

const KExpr *kexpr_map(Arena *arena, const KExpr *e, KExprMap *map, void *user)
{
    KExpr *copy = NULL;
    const KExpr **arg;
    for (int i = 0; i < kexpr_args(e); i++) {
        const KExpr *to = map(user, e->arg[i]);
        if (to == e->arg[i])
            continue;
        copy = copy ? copy : kexpr_copy(arena, e, &arg);
        arg[i] = to;
    }
    return copy ? copy : e;
}

Stm *block_add(Arena *arena, Block *to, Stm stm)
{
    Stm *made = arena_copy(arena, &stm, sizeof(Stm));
    VEC_PUSH(arena, to, made);
    return made;
}

const Var *block_name(Arena *arena, Block *to, const char *name, const KExpr *value)
{
    Var *var = NEW_OF(arena, Var, name, value->type, true);
    block_add(arena, to, (Stm){.kind = ST_DECL, .var = var, .value = value});
    return var;
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
