// SPDX-License-Identifier: Apache-2.0
//
// Whether two kernels are the same but for their buffers and the names of their variables.
//
//   method  Both are walked at once. What is met for the first time becomes a pair, and has
//           that partner from then on: buffers, variables, and integers with all that they
//           are made of. A pair is equal in everything that is printed or counted.
//
// Sums whose terms come in another order are taken for different.

#include "kir/passes.h"

#include <string.h>

typedef struct {
    ArithCtx *ctx;
    Table pairs; // (a, b) of a pair; (a, none) and (none, b) of what has a partner
    bool first;  // the last pair is new
} Twins;

static bool is_pair(Twins *t, const void *a, const void *b)
{
    t->first = false;
    if (table_find(&t->pairs, (Key){a, b, t}) >= 0)
        return true;
    if (table_find(&t->pairs, (Key){a, NULL, t}) >= 0 ||
        table_find(&t->pairs, (Key){NULL, b, t}) >= 0)
        return false;
    table_push(&t->pairs, (Key){a, b, t}, 0);
    table_push(&t->pairs, (Key){a, NULL, t}, 0);
    table_push(&t->pairs, (Key){NULL, b, t}, 0);
    return t->first = true;
}

static bool same_arith(Twins *t, const Arith *a, const Arith *b)
{
    if (!a || !b)
        return a == b;
    if (!is_pair(t, a, b))
        return false;
    if (!t->first)
        return true;
    if (a->kind == A_VAR)
        return b->kind == A_VAR && (a == b || (!a->fixed && !b->fixed));
    bool same = a->kind == b->kind && a->value == b->value && a->n == b->n;
    for (int i = 0; i < a->n && same; i++)
        same = a->term[i].coef == b->term[i].coef &&
               same_arith(t, a->term[i].arg, b->term[i].arg);
    return same;
}

static bool same_var(Twins *t, const Var *a, const Var *b)
{
    if (!a || !b)
        return a == b;
    return is_pair(t, a, b) && type_equal(t->ctx, a->type, b->type) &&
           a->is_const == b->is_const && a->folds == b->folds;
}

static bool same_buffer(Twins *t, const Buffer *a, const Buffer *b)
{
    if (!a || !b)
        return a == b;
    return is_pair(t, a, b) && a->space == b->space && a->scalar == b->scalar &&
           same_arith(t, a->count, b->count) && a->formal == b->formal &&
           (a->role == ROLE_INPUT) == (b->role == ROLE_INPUT) && a->value == b->value &&
           a->vector == b->vector && a->row == b->row && a->places == b->places &&
           a->items == b->items && a->near == b->near;
}

static bool same_value(Twins *t, const KExpr *a, const KExpr *b)
{
    if (!a || !b)
        return a == b;
    bool same = a->kind == b->kind && type_equal(t->ctx, a->type, b->type) &&
                memcmp(&a->number, &b->number, sizeof a->number) == 0 && a->op == b->op &&
                a->callee == b->callee && a->lane == b->lane && a->n == b->n &&
                !a->cond == !b->cond && !a->arg == !b->arg &&
                a->fragments == b->fragments && same_arith(t, a->arith, b->arith) &&
                same_var(t, a->var, b->var) && same_buffer(t, a->buffer, b->buffer);
    for (int i = 0; i < a->n && same; i++)
        same = (!a->arg || same_value(t, a->arg[i], b->arg[i])) &&
               (!a->cond || same_arith(t, a->cond[i], b->cond[i]));
    return same;
}

static bool same_block(Twins *t, const Block *a, const Block *b);

static bool same_statement(Twins *t, const Stm *a, const Stm *b)
{
    return a->kind == b->kind && a->loop == b->loop && a->form == b->form &&
           a->unroll == b->unroll && a->dim == b->dim && a->fence_local == b->fence_local &&
           a->fence_global == b->fence_global && a->atomic == b->atomic &&
           a->async == b->async && a->keep == b->keep && a->apart == b->apart &&
           same_var(t, a->var, b->var) && same_buffer(t, a->buffer, b->buffer) &&
           same_arith(t, a->index, b->index) && same_value(t, a->value, b->value) &&
           same_arith(t, a->iter, b->iter) && same_arith(t, a->extent, b->extent) &&
           same_arith(t, a->threads, b->threads) && same_block(t, &a->body, &b->body) &&
           same_block(t, &a->other, &b->other);
}

static bool same_block(Twins *t, const Block *a, const Block *b)
{
    bool same = a->len == b->len;
    for (int i = 0; i < a->len && same; i++)
        same = same_statement(t, a->at[i], b->at[i]);
    return same;
}

// All of it that needs no pairs.
static bool same_shape(const Kernel *a, const Kernel *b)
{
    return a->body.len == b->body.len && a->params.len == b->params.len &&
           a->sizes.len == b->sizes.len && a->locals.len == b->locals.len &&
           a->images.len == b->images.len &&
           memcmp(a->local, b->local, sizeof a->local) == 0 && a->resident == b->resident &&
           a->group == b->group && a->matrix == b->matrix && a->band == b->band &&
           a->any_group == b->any_group && a->wide == b->wide;
}

static bool same_sizes(Twins *t, const Kernel *a, const Kernel *b)
{
    bool same = true;
    for (int i = 0; i < 3 && same; i++)
        same = same_arith(t, a->global[i], b->global[i]);
    for (int i = 0; i < a->sizes.len && same; i++)
        same = same_arith(t, a->sizes.at[i], b->sizes.at[i]);
    return same;
}

Buffer **kernel_twin(ArithCtx *ctx, const Kernel *a, const Kernel *b, Arena *arena)
{
    if (!same_shape(a, b))
        return NULL;
    Twins t = {.ctx = ctx};
    table_init(&t.pairs, arena);
    if (!same_sizes(&t, a, b) || !same_block(&t, &a->body, &b->body))
        return NULL;
    Buffer **buffer = NEW_ARRAY(arena, Buffer *, MAX(a->params.len, 1));
    for (int i = 0; i < a->params.len; i++)
        for (int k = 0; k < b->params.len; k++)
            if (is_pair(&t, a->params.at[i], b->params.at[k]))
                buffer[i] = b->params.at[k];
    return buffer;
}
