// SPDX-License-Identifier: Apache-2.0
//
// Invariants: what every iteration of a loop loads from the same place is loaded once, in
// front of it.
//
//   why    A compiler no longer sees that pointers are restricted once a loop is shared out
//          among threads, and takes an index that the loop loads for another one in each
//          lane. (Shortest paths between 256 nodes, whose number of the step is a state:
//          7.0 ms with gathers, 1.2 without; gcc 12, two cores.)
//   needs  a loop that has iterations, and of the kernel that it does not write the array
//
// Names of such values move with them, out of as many loops as they can.

#include "kir/passes.h"

#include <string.h>

typedef struct {
    const Kernel *kernel;
    const Stm *loop;
} LoopUse;

// Does it give a value to what an index or an expression mentions?
static bool gives(const Stm *stm, const void *user)
{
    const KExpr *e = user;
    if (e->kind == K_VAR)
        return stm->var == e->var && (stm->kind == ST_DECL || stm->kind == ST_ASSIGN);
    bool names = stm->kind == ST_FOR || stm->kind == ST_INT;
    for (int i = 0; names && i < e->n && e->cond; i++)
        if (arith_mentions(e->cond[i], stm->iter))
            return true;
    return names && e->arith && arith_mentions(e->arith, stm->iter);
}

// On an iteration of the loop, or on what the kernel writes.
static bool depends(const KExpr *e, const void *user)
{
    const LoopUse *a = user;
    return gives(a->loop, e) ||
           (e->kind == K_LOAD && (e->buffer->space != MEM_GLOBAL ||
                                  block_any(&a->kernel->body, stm_stores, e->buffer))) ||
           block_any(&a->loop->body, gives, e);
}

// An index, or a name for an element or for the value of a name.
static bool is_invariant(const Stm *stm, const LoopUse *a)
{
    const KExpr *value = stm->value;
    const bool names = value && stm->kind == ST_DECL && stm->var->is_const &&
                       (value->kind == K_LOAD || value->kind == K_VAR);
    return (names || (stm->kind == ST_INT && value)) && !kexpr_any(value, depends, a);
}

static const char *name_of(const Stm *stm)
{
    return stm->kind == ST_DECL ? stm->var->name : stm->iter ? stm->iter->name : "";
}

// Copies of a loop declare the same names, of which a block has each once.
static bool is_taken(const Block *block, const Stm *moved)
{
    VEC_EACH(const Stm *, stm, block)
        if (strcmp(name_of(stm), name_of(moved)) == 0)
            return true;
    return false;
}

static bool has_iterations(const Stm *stm)
{
    int64_t extent = 0;
    return stm->kind == ST_FOR && !stm->value && arith_is_const(stm->extent, &extent) &&
           extent > 0;
}

// From all loops that stand in a block. Two that may be shared out as one, `outer` and the
// only statement in it, have nothing in between that the outer one cannot do without.
static void move_out(Pass *pass, const Kernel *kernel, const Stm *outer, Block *block)
{
    Block out = {0};
    VEC_EACH(Stm *, stm, block) {
        const LoopUse around = {kernel, stm}, beyond = {kernel, outer};
        const bool joined = outer && block->len == 1 && stm_is_parallel(outer, NULL) &&
                            stm_is_parallel(stm, NULL);
        move_out(pass, kernel, stm->kind == ST_FOR ? stm : NULL, &stm->body);
        move_out(pass, kernel, NULL, &stm->other);
        const bool runs = has_iterations(stm) && (!joined || has_iterations(outer));
        for (int i = 0; runs && i < stm->body.len;) {
            Stm **at = &stm->body.at[i];
            if (!is_invariant(*at, &around) || is_taken(&out, *at) ||
                is_taken(block, *at) || (joined && !is_invariant(*at, &beyond))) {
                i++;
                continue;
            }
            VEC_PUSH(pass->arena, &out, *at);
            stm->body.len--;
            memmove(at, at + 1, (size_t)(stm->body.len - i) * sizeof(Stm *));
        }
        VEC_PUSH(pass->arena, &out, stm);
    }
    *block = out;
}

void pass_invariants(Pass *pass, Kernel *kernel)
{
    move_out(pass, kernel, NULL, &kernel->body);
}
