// SPDX-License-Identifier: Apache-2.0
//
// Stores of what matrix units added up in 16-bit elements: an item has pairs of neighbours,
// of which four items have a row's eight. That is half of what memory takes at a time. Two
// neighbouring items exchange a pair, so that each stores four neighbours.
//
// It needs straight-line code that all items do, and rows that begin at a multiple of four.

#include "kir/passes.h"

enum { GROUP = 8 }; // columns of a fragment, from one pair of an item to its next

typedef struct {
    Pass *pass;
    const Arith *item; // along x
} Pairs;

static bool is_pair(const Stm *stm)
{
    return stm->kind == ST_STORE && !stm->side && !stm->async &&
           stm->buffer->space == MEM_GLOBAL && stm->value->kind == K_VECTOR &&
           stm->value->type->width == 2 && scalar_info[stm->buffer->scalar].bytes == 2;
}

static bool go_together(const Pairs *p, const Stm *a, const Stm *b)
{
    int64_t apart;
    ArithCtx *ctx = p->pass->ctx;
    const Arith *row = arith_sub(ctx, a->index, arith_mulc(ctx, p->item, 2));
    return a->buffer == b->buffer &&
           arith_is_const(arith_sub(ctx, b->index, a->index), &apart) && apart == GROUP &&
           !arith_mentions(row, p->item) && arith_multiple(ctx, row) % 4 == 0;
}

static Stm *both_of(Pairs *p, const Stm *a, const Stm *b)
{
    const KExpr **arg = NEW_ARRAY(p->pass->arena, const KExpr *, 4);
    for (int i = 0; i < 4; i++)
        arg[i] = (i < 2 ? a : b)->value->arg[i % 2];
    KExpr *value = NEW_OF(p->pass->arena, KExpr, .kind = K_VECTOR,
                          .type = type_vector(a->buffer->scalar, 4), .n = 4, .arg = arg);
    Stm *stm = arena_copy(p->pass->arena, a, sizeof(Stm));
    stm->value = value;
    stm->apart = GROUP;
    return stm;
}

static void join_pairs(Pairs *p, Block *block)
{
    Block out = {0};
    int first = -1; // in out
    VEC_EACH(Stm *, stm, block) {
        if (first >= 0 && is_pair(stm) && go_together(p, out.at[first], stm)) {
            stm = both_of(p, out.at[first], stm);
            for (int k = first; k + 1 < out.len; k++)
                out.at[k] = out.at[k + 1];
            out.len--;
            first = -1;
        } else if (is_pair(stm)) {
            first = out.len;
        } else if (stm->kind != ST_DECL) {
            first = -1;
        }
        VEC_PUSH(p->pass->arena, &out, stm);
    }
    *block = out;
}

static void walk_block(Pairs *p, Block *block)
{
    VEC_EACH(Stm *, stm, block) {
        bool all = stm->loop != LOOP_LCL || stm->form == FORM_ONCE;
        if (stm->kind != ST_FOR || !all)
            continue;
        if (stm->loop == LOOP_LCL && stm->dim == 0)
            p->item = stm->iter;
        walk_block(p, &stm->body);
    }
    if (p->item)
        join_pairs(p, block);
}

void pass_pairs(Pass *pass, Kernel *kernel)
{
    Pairs p = {.pass = pass};
    walk_block(&p, &kernel->body);
}
