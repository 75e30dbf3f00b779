// SPDX-License-Identifier: Apache-2.0
//
// Constructors of kernel IR.

#include "kir/passes.h"
#include "lower/internal.h"

#include <string.h>

static KExpr *k_new(Lower *l, KExprKind kind, const Type *type)
{
    KExpr *k = NEW_RAW(l->arena, KExpr, 1);
    *k = (KExpr){.kind = kind, .type = type};
    return k;
}

// One that is made of others.
static KExpr *k_of(Lower *l, KExprKind kind, const Type *type, const KExpr *const *arg,
                   int n)
{
    KExpr *k = k_new(l, kind, type);
    k->arg = COPY_ARRAY(l->arena, arg, n);
    k->n = n;
    return k;
}

const KExpr *k_literal(Lower *l, double number, const Type *type)
{
    KExpr *k = k_new(l, K_LITERAL, type);
    k->number = number;
    return k;
}

const KExpr *k_index(Lower *l, const Arith *arith)
{
    KExpr *k = k_new(l, K_INDEX, type_scalar(S_INT));
    k->arith = arith;
    return k;
}

const KExpr *k_var(Lower *l, const Var *var)
{
    return kexpr_var(l->arena, var);
}

// Simplified by what is known where we are.
static const Arith *k_known(Lower *l, const Arith *a)
{
    return arith_facts(l->ctx) ? arith_simplify(l->ctx, a) : a;
}

const KExpr *k_load(Lower *l, const Buffer *buffer, const Arith *index, const Type *type)
{
    KExpr *k = k_new(l, K_LOAD, type);
    k->buffer = buffer;
    k->arith = own_index(l, buffer, k_known(l, index));
    k->side = l->side;
    return k;
}

const KExpr *k_op_sides(Lower *l, Op op, const Type *type, const KExpr *const *arg, int n,
                        const Side *sides)
{
    KExpr *k = k_of(l, K_OP, type, arg, n);
    k->op = op;
    k->side = sides;
    return k;
}

const KExpr *k_op(Lower *l, Op op, const Type *type, const KExpr *const *arg, int n)
{
    return k_op_sides(l, op, type, arg, n, NULL);
}

const KExpr *k_call(Lower *l, const Function *callee, const Type *type,
                    const KExpr *const *arg, int n)
{
    KExpr *k = k_of(l, K_CALL, type, arg, n);
    k->callee = callee;
    return k;
}

const KExpr *k_cond(Lower *l, const Arith *const *cond, int n)
{
    KExpr *k = k_new(l, K_COND, type_scalar(S_BOOL));
    const Arith **copy = NEW_ARRAY(l->arena, const Arith *, n);
    for (int i = 0; i < n; i++)
        copy[i] = cond_rounded(l->ctx, k_known(l, cond[i]));
    k->cond = copy;
    k->n = n;
    return k;
}

const KExpr *k_vector(Lower *l, const Type *type, const KExpr *const *arg)
{
    return k_of(l, K_VECTOR, type, arg, type->width);
}

const KExpr *k_lane(Lower *l, const KExpr *vector, int lane)
{
    if (vector->kind == K_VECTOR)
        return vector->arg[lane];
    KExpr *k = k_of(l, K_LANE, type_scalar(vector->type->scalar), &vector, 1);
    k->lane = lane;
    return k;
}

const KExpr *k_shuffle(Lower *l, const KExpr *value, const Arith *lane)
{
    KExpr *k = k_of(l, K_SHUFFLE, value->type, &value, 1);
    k->arith = lane;
    return k;
}

// About 150 KB of text: compilers take longer than a search waits, and the passes, of which
// some are not linear, longer than all other points together.
enum { QUICK_NODES = 20000 };

void check_length(Lower *l, const Kernel *kernel)
{
    if (!l->failed && l->options->quick && block_nodes(&kernel->body) > QUICK_NODES)
        lower_fail(l, span_none, "L029", "the kernel is too long to be considered");
}

// A kernel's length is looked at whenever it has grown by a quarter, so that one which is
// too long is given up before all of it is there. What is only tried may yet go again.
Stm *stm_add(Lower *l, StmKind kind)
{
    if (!l->block)
        BUG("a statement outside a kernel");
    if (++l->statements > l->look_at && l->kernel && !l->ahead) {
        check_length(l, l->kernel);
        l->look_at = l->statements + l->statements / 4 + 64;
    }
    Stm *stm = NEW(l->arena, Stm);
    stm->kind = kind;
    VEC_PUSH(l->arena, l->block, stm);
    return stm;
}

const char *name_new(Lower *l, const char *stem)
{
    void *seen = map_get(&l->kernel->names, stem);
    if (!seen) {
        name_take(l->kernel, stem);
        return stem;
    }
    int *next = seen; // how far the numbers of this stem have come, once it has any
    if (seen == l->kernel) {
        next = NEW(l->arena, int);
        *next = 1;
        map_put(&l->kernel->names, stem, next);
    }
    return name_fresh(l->arena, l->kernel, arena_printf(l->arena, "%s_", stem), next);
}

Var *var_new(Lower *l, const char *name, const Type *type, bool is_const)
{
    return NEW_OF(l->arena, Var, name_new(l, name), type, is_const);
}

Var *add_decl(Lower *l, const char *name, bool is_const, const KExpr *value)
{
    Stm *decl = stm_add(l, ST_DECL);
    decl->value = value;
    return decl->var = var_new(l, name, value->type, is_const);
}

void add_assign(Lower *l, const Var *var, const KExpr *value)
{
    Stm *stm = stm_add(l, ST_ASSIGN);
    stm->var = (Var *)var;
    stm->value = value;
}

Stm *add_store(Lower *l, const Buffer *buffer, const Arith *index, const KExpr *value)
{
    Stm *stm = stm_add(l, ST_STORE);
    stm->buffer = buffer;
    stm->index = index;
    stm->value = value;
    return stm;
}

Stm *open_if(Lower *l, const KExpr *cond)
{
    Stm *branch = stm_add(l, ST_IF);
    branch->value = cond;
    l->block = &branch->body;
    return branch;
}

const KExpr *k_kept(Lower *l, const KExpr *value, const char *name)
{
    return k_var(l, add_decl(l, name, true, value));
}

const KExpr *k_named(Lower *l, const KExpr *value, const char *name)
{
    bool trivial =
        value->kind == K_LITERAL || value->kind == K_VAR || value->kind == K_INDEX;
    return trivial || !l->block ? value : k_kept(l, value, name);
}

static Block with_assignments(Lower *l, const Block *side, Var *const *var,
                              const KExpr *const *value, int n)
{
    Block block = *side, *outer = l->block;
    l->block = &block;
    for (int i = 0; i < n; i++)
        add_assign(l, var[i], value[i]);
    l->block = outer;
    return block;
}

const KExpr *const *k_choose_all(Lower *l, const Side *sides, const Block *yes,
                                 const KExpr *const *a, const Block *no,
                                 const KExpr *const *b, int n)
{
    const KExpr **chosen = NEW_ARRAY(l->arena, const KExpr *, MAX(n, 1));
    Var **var = NEW_ARRAY(l->arena, Var *, MAX(n, 1));
    const bool branches = yes->len || no->len;
    for (int i = 0; !branches && i < n; i++)
        chosen[i] = k_op_sides(l, OP_SELECT, a[i]->type,
                               (const KExpr *[]){sides->cond, a[i], b[i]}, 3, sides);
    if (!branches)
        return chosen;
    for (int i = 0; i < n; i++) {
        Stm *decl = stm_add(l, ST_DECL);
        decl->var = var[i] = var_new(l, "chosen", a[i]->type, false);
        chosen[i] = k_var(l, var[i]);
    }
    Stm *branch = stm_add(l, ST_IF);
    branch->value = sides->cond;
    branch->side = sides;
    branch->body = with_assignments(l, yes, var, a, n);
    branch->other = with_assignments(l, no, var, b, n);
    return chosen;
}

const KExpr *k_choose(Lower *l, const Side *sides, const Block *yes, const KExpr *a,
                      const Block *no, const KExpr *b)
{
    return k_choose_all(l, sides, yes, &a, no, &b, 1)[0];
}
