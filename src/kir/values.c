// SPDX-License-Identifier: Apache-2.0
//
// Values and statements of kernel IR.

#include "kir/passes.h"

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

bool kexpr_same_cond(const KExpr *a, const KExpr *b)
{
    bool same = a->n == b->n;
    for (int i = 0; i < a->n && same; i++)
        same = a->cond[i] == b->cond[i];
    return same;
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

// A side of a condition, and what it is in the copy.
typedef struct {
    const Side *from, *to;
} CopiedSide;

typedef struct {
    ArithCtx *ctx;
    Arena *arena;
    const Arith *from, *to;
    VEC(CopiedSide) sides;
} Substitution;

static const Arith *index_moved(const Substitution *m, const Arith *a)
{
    return a ? arith_subst(m->ctx, a, m->from, m->to) : NULL;
}

static const KExpr *value_moved(void *user, const KExpr *e);

// Sides of a condition outside of what is copied are copied with the first that is on them.
static const Side *side_moved(Substitution *m, const Side *side)
{
    if (!side)
        return NULL;
    for (int i = m->sides.len - 1; i >= 0; i--)
        if (m->sides.at[i].from == side)
            return m->sides.at[i].to;
    Side *to = arena_copy(m->arena, side, sizeof(Side));
    VEC_PUSH(m->arena, &m->sides, (CopiedSide){side, to});
    to->outer = side_moved(m, side->outer);
    to->cond = value_moved(m, side->cond);
    return to;
}

static const Side *sides_moved(Substitution *m, const Side *from, const KExpr *cond)
{
    Side *to = NEW_ARRAY(m->arena, Side, 2);
    for (int i = 0; i < 2; i++) {
        to[i] = (Side){side_moved(m, from[i].outer), cond, from[i].holds};
        VEC_PUSH(m->arena, &m->sides, (CopiedSide){&from[i], &to[i]});
    }
    return to;
}

static const KExpr *value_moved(void *user, const KExpr *e)
{
    Substitution *m = user;
    const KExpr **arg;
    KExpr *copy = kexpr_copy(m->arena, e, &arg);
    copy->arith = index_moved(m, e->arith);
    if (e->cond) {
        const Arith **cond = NEW_ARRAY(m->arena, const Arith *, e->n);
        for (int i = 0; i < e->n; i++)
            cond[i] = index_moved(m, e->cond[i]);
        copy->cond = cond;
    }
    if (e->kind == K_LOAD)
        copy->side = side_moved(m, e->side);
    for (int i = 0; i < kexpr_args(e); i++) {
        arg[i] = value_moved(m, e->arg[i]);
        if (i == 0 && e->side && e->kind != K_LOAD)
            copy->side = sides_moved(m, e->side, arg[0]);
    }
    return copy;
}

static void add_moved(Substitution *m, Block *to, const Block *from)
{
    VEC_EACH(const Stm *, stm, from) {
        Stm *made = block_add(m->arena, to, *stm);
        made->index = index_moved(m, stm->index);
        made->extent = index_moved(m, stm->extent);
        made->threads = index_moved(m, stm->threads);
        made->value = stm->value ? value_moved(m, stm->value) : NULL;
        if (stm->side)
            made->side = stm->kind == ST_STORE ? side_moved(m, stm->side)
                                               : sides_moved(m, stm->side, made->value);
        made->body = made->other = (Block){0};
        add_moved(m, &made->body, &stm->body);
        add_moved(m, &made->other, &stm->other);
    }
}

Block block_moved(ArithCtx *ctx, Arena *arena, const Block *block, const Arith *from,
                  const Arith *to)
{
    Block made = {0};
    add_moved(&(Substitution){ctx, arena, from, to, {0}}, &made, block);
    return made;
}

Division loop_divided(ArithCtx *ctx, const Stm *loop, int64_t size, const char *block,
                      const char *iter)
{
    const Arith *count = arith_const(ctx, size);
    Division d = {.blocks = arith_ceil_div(ctx, loop->extent, count), .extent = count};
    d.block = arith_iter(ctx, block, d.blocks);
    const Arith *begin = arith_mulc(ctx, d.block, size);
    if (arith_multiple(ctx, loop->extent) % size != 0)
        d.extent = arith_min(ctx, arith_sub(ctx, loop->extent, begin), count);
    d.iter = arith_iter(ctx, iter, d.extent);
    d.index = arith_add(ctx, begin, d.iter);
    return d;
}

void block_map(Arena *arena, Block *block, StmMap *map, void *user)
{
    Block out = {0};
    VEC_EACH(Stm *, stm, block) {
        block_map(arena, &stm->body, map, user);
        block_map(arena, &stm->other, map, user);
        map(user, &out, stm);
    }
    *block = out;
}

static void map_items(Arena *arena, Block *block, ItemLoopMap *map, void *user, int around)
{
    Block out = {0};
    VEC_EACH(Stm *, stm, block) {
        if (stm->kind == ST_FOR && loop_is_of_items(stm) && map(user, &out, stm, around))
            continue;
        int inside = around + (stm->kind == ST_FOR && stm->loop != LOOP_SEQ);
        VEC_PUSH(arena, &out, stm);
        map_items(arena, &stm->body, map, user, inside);
        map_items(arena, &stm->other, map, user, inside);
    }
    *block = out;
}

void block_map_items(Arena *arena, Block *block, ItemLoopMap *map, void *user)
{
    map_items(arena, block, map, user, 0);
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

int64_t index_stride(ArithCtx *ctx, const Arith *index, const Arith *var)
{
    int64_t stride;
    if (!arith_mentions(index, var))
        return 0;
    const Arith *next = arith_subst(ctx, index, var, arith_addc(ctx, var, 1));
    return arith_is_const(arith_sub(ctx, next, index), &stride) ? stride : STRIDE_ANY;
}

// If all terms of a sum but its constant are multiples of g, the constant may be rounded
// down to a multiple of g: the sum is >= 0 for the same values. So neighbours have one
// condition.
const Arith *cond_rounded(ArithCtx *ctx, const Arith *cond)
{
    int64_t c = cond->kind == A_SUM ? cond->value : 0;
    int64_t g = c ? arith_multiple(ctx, arith_addc(ctx, cond, -c)) : 1;
    return g > 1 ? arith_addc(ctx, cond, -((c % g + g) % g)) : cond;
}
