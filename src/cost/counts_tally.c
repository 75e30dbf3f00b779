// SPDX-License-Identifier: Apache-2.0
//
// The walk over one kernel: what each statement does, and for which iterations.
//
//   source  paper 003, algorithm 1

#include "cost/counts_internal.h"

#include <string.h>

static void tally_block(Tally *t, const Block *block);
static void tally_value(Tally *t, const KExpr *e);

// Domains -----------------------------------------------------------------------------

// The domain where the walk stands, made new after a loop or condition was entered.
static void renew(Tally *t)
{
    Domain *d = NEW(t->arena, Domain);
    const Stm **loop = COPY_ARRAY(t->arena, t->loops.at, t->loops.len);
    Guard *guard = COPY_ARRAY(t->arena, t->guards.at, t->guards.len);
    *d = (Domain){loop, t->loops.len, guard, t->guards.len, t->halves};
    const Domain *around = t->domain;
    bool same = around && around->nguard == d->nguard; // as scopes nest
    d->share = same ? around->share : scope_share(&t->scope, guard, d->nguard);
    d->exec = t->unguarded * d->share;
    for (int i = 0; i < t->halves; i++)
        d->exec *= 0.5;
    t->domain = d;
}

// One side of a condition: a value or a block, and back.
static void tally_side(Tally *t, const KExpr *cond, bool negated, const KExpr *value,
                       const Block *block)
{
    const Domain *before = t->domain;
    Guard guard = {cond->cond, cond->n, negated};
    bool data = cond->kind != K_COND;
    if (data)
        t->halves++;
    else
        VEC_PUSH(t->arena, &t->guards, guard);
    renew(t);
    if (value)
        tally_value(t, value);
    if (block)
        tally_block(t, block);
    t->halves -= data;
    t->guards.len -= !data;
    t->domain = before;
}

void tally_item(Tally *t, const Domain *domain, int property, int64_t times)
{
    for (int i = t->items.len - 1; i >= 0 && i >= t->items.len - 16; i--)
        if (t->items.at[i].domain == domain && t->items.at[i].property == property) {
            t->items.at[i].times += times;
            return;
        }
    VEC_PUSH(t->arena, &t->items, (CountedItem){domain, property, times});
}

// Values ------------------------------------------------------------------------------

static void note_array(Tally *t, const Buffer *buffer, bool store)
{
    for (int i = 0; i < t->arrays.len; i++)
        if (t->arrays.at[i].buffer == buffer && t->arrays.at[i].store == store)
            return;
    VEC_PUSH(t->arena, &t->arrays, (ArrayUse){buffer, store});
}

static void tally_access(Tally *t, const Buffer *buffer, const Arith *index,
                         const Type *type, bool store)
{
    int width = type->kind == T_VECTOR ? type->width : 1;
    if (buffer->space == MEM_PRIVATE)
        return;
    if (buffer->space == MEM_GLOBAL)
        note_array(t, buffer, store);
    if (!t->accesses)
        return;
    if (buffer->space == MEM_LOCAL) {
        int degree = store ? 0 : stride_bank_degree(t, buffer, index, width);
        tally_item(t, t->domain, store ? COUNT_PUT : COUNT_LOCAL + degree, 1);
        return;
    }
    Touch touch = {.domain = t->domain,
                   .buffer = buffer,
                   .index = index,
                   .width = width,
                   .store = store};
    stride_note(t, &touch);
    VEC_PUSH(t->arena, &t->touches, touch);
}

// The property of an operation, or -1: integers and conversions are free.
static int op_property(Op op, const Type *type)
{
    if (!type_is_float(type) || op_info[op].types == TY_SELECT ||
        op_info[op].types == TY_CAST)
        return -1;
    int is_double = type->scalar == S_DOUBLE;
    switch (op_info[op].kind) {
    case OPK_ADD: return COUNT_ADD + is_double;
    case OPK_MUL: return COUNT_MUL + is_double;
    case OPK_DIV: return COUNT_DIV + is_double;
    case OPK_EXP: return (op == OP_POW ? COUNT_POW : COUNT_SPECIAL) + is_double;
    case OPK_SPECIAL: return COUNT_SPECIAL + is_double;
    case OPK_FREE: return -1;
    }
    return -1;
}

// product: an operand is one.
static void tally_op(Tally *t, Op op, const Type *type, bool product)
{
    int property = op_property(op, type);
    int lanes = type->kind == T_VECTOR ? type->width : 1;
    if (property < 0)
        return;
    tally_item(t, t->domain, property, lanes);
    if (op == OP_FMA)
        tally_item(t, t->domain, property - COUNT_MUL + COUNT_ADD, lanes);
    if (op == OP_FMA || ((op == OP_ADD || op == OP_SUB) && product))
        tally_item(t, t->domain, COUNT_FUSED + (type->scalar == S_DOUBLE), lanes);
}

static void tally_function(Tally *t, const Function *function);

// Inside a function an `if` is on data.
static void tally_expr(Tally *t, const Expr *e)
{
    bool select = e->kind == E_OP && e->op == OP_SELECT;
    bool product = false;
    for (int i = 0; i < e->narg; i++)
        product |= e->arg[i]->kind == E_OP && e->arg[i]->op == OP_MUL;
    if (e->kind == E_OP && e->type)
        tally_op(t, e->op, e->type, product);
    if (e->kind == E_CALL)
        tally_function(t, e->callee);
    for (int i = 0; i < e->narg; i++) {
        const Domain *before = t->domain;
        t->halves += select && i > 0;
        if (select && i > 0)
            renew(t);
        tally_expr(t, e->arg[i]);
        t->halves -= select && i > 0;
        t->domain = before;
    }
}

// An opaque function costs what it declares, as additions.
static void tally_function(Tally *t, const Function *function)
{
    if (function->body)
        tally_expr(t, function->body);
    else if (function->flops > 0)
        tally_item(t, t->domain, COUNT_ADD + (function->result->scalar == S_DOUBLE),
                   (int64_t)function->flops);
}

// An item has two outputs of each 8 x 8. What they are made of is counted, not how fast a
// unit makes it.
static void tally_matrix(Tally *t, const KExpr *e)
{
    const Fragments *f = e->fragments;
    int is_double = e->type->scalar == S_DOUBLE;
    int64_t n = 2 * f->step * f->groups[0] * f->groups[1];
    tally_item(t, t->domain, COUNT_ADD + is_double, n);
    tally_item(t, t->domain, COUNT_MUL + is_double, n);
    tally_item(t, t->domain, COUNT_FUSED + is_double, n);
}

static void tally_value(Tally *t, const KExpr *e)
{
    if (e->kind == K_COND)
        return;
    if (e->kind == K_LOAD)
        tally_access(t, e->buffer, e->arith, e->type, false);
    if (e->kind == K_AWAIT)
        tally_access(t, e->buffer, e->arith, type_scalar(S_LONG), false);
    if (e->kind == K_CALL)
        tally_function(t, e->callee);
    if (e->kind == K_MATRIX) {
        tally_matrix(t, e);
        return;
    }
    if (e->kind == K_OP && e->op == OP_SELECT) {
        tally_value(t, e->arg[0]);
        tally_side(t, e->arg[0], false, e->arg[1], NULL);
        tally_side(t, e->arg[0], true, e->arg[2], NULL);
        return;
    }
    bool product = false;
    for (int i = 0; i < kexpr_args(e); i++)
        product |= e->arg[i]->kind == K_OP && e->arg[i]->op == OP_MUL;
    if (e->kind == K_OP)
        tally_op(t, e->op, e->type, product);
    for (int i = 0; i < kexpr_args(e); i++)
        tally_value(t, e->arg[i]);
}

// Statements --------------------------------------------------------------------------

static void tally_for(Tally *t, const Stm *stm)
{
    const Domain *before = t->domain;
    double unguarded = t->unguarded;
    int64_t extent = scope_extent(&t->scope, stm->extent);
    scope_declare(&t->scope, stm, extent);
    t->unguarded *= (double)extent / (double)scope_threads(&t->scope, stm->loop, stm->dim);
    VEC_PUSH(t->arena, &t->loops, stm);
    renew(t);
    tally_block(t, &stm->body);
    t->loops.len--;
    t->unguarded = unguarded;
    t->domain = before;
}

static void tally_stm(Tally *t, const Stm *stm)
{
    if (stm->value)
        tally_value(t, stm->value);
    switch (stm->kind) {
    case ST_DECL:
    case ST_ASSIGN:
    case ST_COMMIT:
    case ST_WAIT:
    case ST_MATRIX:
    case ST_ARRAY: return;
    case ST_STORE: tally_access(t, stm->buffer, stm->index, stm->value->type, true); return;
    case ST_PUBLISH:
        tally_access(t, stm->buffer, stm->index, type_scalar(S_LONG), true);
        return;
    case ST_INT: {
        VEC_PUSH(t->arena, &t->defs,
                 (Definition){stm->iter, stm->value ? NULL : stm->index});
        scope_declare(&t->scope, stm, 0);
        return;
    }
    case ST_FOR: tally_for(t, stm); return;
    case ST_IF:
        tally_side(t, stm->value, false, NULL, &stm->body);
        if (stm->other.len)
            tally_side(t, stm->value, true, NULL, &stm->other);
        return;
    case ST_BARRIER: tally_item(t, t->domain, COUNT_BARRIER, 1); return;
    }
    BUG("statement of kind %d", stm->kind);
}

static void tally_block(Tally *t, const Block *block)
{
    for (int i = 0; i < block->len; i++)
        tally_stm(t, block->at[i]);
}

bool tally_kernel(Tally *t, Arena *arena, const Unit *unit, const Kernel *kernel,
                  const FeatureSetting *setting, struct KeptShare *kept, bool accesses)
{
    static const DeviceModel any = {.warp = COUNTS_WARP, .line_bytes = 128};
    *t = (Tally){.arena = arena, .unit = unit, .kernel = kernel, .accesses = accesses};
    for (int i = 0; i < unit->launches.len; i++)
        t->launches += unit->launches.at[i].kernel == kernel;
    t->setting = *setting;
    t->setting.device = &any;
    if (!scope_init(&t->scope, arena, kernel, &t->setting))
        return false;
    t->scope.kept = kept;
    t->unguarded = 1;
    for (int d = 0; d < 3; d++)
        t->unguarded *= (double)t->scope.global[d];
    renew(t);
    tally_block(t, &kernel->body);
    stride_classes(t);
    return true;
}
