// SPDX-License-Identifier: Apache-2.0
//
// The walks over kernel IR: whether something is anywhere, how much there is, and each.

#include "kir/kir.h"

bool kexpr_any(const KExpr *e, KExprTest *holds, const void *of)
{
    if (!e || holds(e, of))
        return e != NULL;
    for (int i = 0; i < kexpr_args(e); i++)
        if (kexpr_any(e->arg[i], holds, of))
            return true;
    return false;
}

bool stm_any(const Stm *stm, StmTest *holds, const void *of)
{
    return holds(stm, of) || block_any(&stm->body, holds, of) ||
           block_any(&stm->other, holds, of);
}

bool block_any(const Block *block, StmTest *holds, const void *of)
{
    for (int i = 0; i < block->len; i++)
        if (stm_any(block->at[i], holds, of))
            return true;
    return false;
}

int block_count(const Block *block, StmTest *holds, const void *of)
{
    int n = 0;
    VEC_EACH(const Stm *, stm, block)
        n += holds(stm, of) + block_count(&stm->body, holds, of) +
             block_count(&stm->other, holds, of);
    return n;
}

void kexpr_each(const KExpr *e, KExprVisit *visit, void *user)
{
    if (!e)
        return;
    visit(e, user);
    for (int i = 0; i < kexpr_args(e); i++)
        kexpr_each(e->arg[i], visit, user);
}

void stm_each(Stm *stm, StmVisit *visit, void *user)
{
    visit(stm, user);
    block_each(&stm->body, visit, user);
    block_each(&stm->other, visit, user);
}

void block_each(const Block *block, StmVisit *visit, void *user)
{
    VEC_EACH(Stm *, stm, block)
        stm_each(stm, visit, user);
}

bool kexpr_is_load(const KExpr *e, const void *buffer)
{
    return e->kind == K_LOAD && (!buffer || e->buffer == buffer);
}

static bool is_var(const KExpr *e, const void *var)
{
    return e->kind == K_VAR && e->var == var;
}

bool stm_loads(const Stm *stm, const void *buffer)
{
    return kexpr_any(stm->value, kexpr_is_load, buffer);
}

bool stm_reads(const Stm *stm, const void *var)
{
    return kexpr_any(stm->value, is_var, var);
}

bool stm_stores(const Stm *stm, const void *buffer)
{
    return (stm->kind == ST_STORE || stm->kind == ST_PUBLISH) &&
           (!buffer || stm->buffer == buffer);
}

bool kernel_only_reads(const Kernel *kernel, const Buffer *buffer)
{
    return buffer->space == MEM_GLOBAL && !buffer->formal &&
           (buffer->role == ROLE_INPUT || !block_any(&kernel->body, stm_stores, buffer));
}

static bool declares(const Stm *stm, const void *var)
{
    return stm->kind == ST_DECL && stm->var == var;
}

bool stm_carries(const Stm *stm, const void *loop)
{
    return stm->kind == ST_ASSIGN &&
           !block_any(&((const Stm *)loop)->body, declares, stm->var);
}

const KExpr *stm_joins(const Stm *assign, const Stm *loop)
{
    const KExpr *value = assign->value;
    for (int i = 0; value->kind == K_VAR && i < loop->body.len; i++)
        if (declares(loop->body.at[i], value->var))
            value = loop->body.at[i]->value;
    for (int i = 0; value && value->kind == K_OP && i < 2 && i < value->n; i++)
        if (is_var(value->arg[i], assign->var))
            return value;
    return NULL;
}

bool stm_is_loop(const Stm *stm, const void *of)
{
    return stm->kind == ST_FOR;
}

// Over its items or groups, not over the items of a group.
bool stm_is_parallel(const Stm *stm, const void *of)
{
    return stm->kind == ST_FOR && (stm->loop == LOOP_GLB || stm->loop == LOOP_WRG);
}

static bool is_exchange(const KExpr *e, const void *of)
{
    return e->kind == K_SHUFFLE || e->kind == K_AWAIT;
}

bool stm_exchanges(const Stm *stm, const void *of)
{
    return kexpr_any(stm->value, is_exchange, of);
}

bool stm_is_barrier(const Stm *stm, const void *of)
{
    return stm->kind == ST_BARRIER;
}

static int64_t block_iterations(const Block *block, int64_t most)
{
    int64_t n = 1;
    VEC_EACH(const Stm *, stm, block)
        n = MAX(n, stm_iterations(stm, most));
    return n;
}

int64_t stm_iterations(const Stm *stm, int64_t most)
{
    int64_t extent = stm->kind == ST_FOR ? most : 1;
    if (stm->kind == ST_FOR)
        arith_is_const(stm->extent, &extent);
    int64_t inside =
        MAX(block_iterations(&stm->body, most), block_iterations(&stm->other, most));
    return MIN(MIN(extent, most) * inside, most);
}

static void add_value(const KExpr *e, void *nodes)
{
    ++*(int64_t *)nodes;
}

static void add_statement(Stm *stm, void *nodes)
{
    ++*(int64_t *)nodes;
    kexpr_each(stm->value, add_value, nodes);
}

int64_t block_nodes(const Block *block)
{
    int64_t nodes = 0;
    block_each(block, add_statement, &nodes);
    return nodes;
}
