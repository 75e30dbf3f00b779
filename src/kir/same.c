// SPDX-License-Identifier: Apache-2.0
//
// One name for constants of the same value in straight-line code.
//
//   method  Value numbering over the blocks: a constant has the number of its value, which
//   is
//           made of the numbers of its operands, and holds until its block ends. A constant
//           whose number another one has is left out, and the other one stands in its
//           place. What is loaded has no number but that of its name (loads.c), nor have
//           variables that change.
//
//   why     Outputs of one item that differ in one index, such as the directions of a
//           lattice, share what they compute of the others: compilers find that again, but
//           a model that counts the kernel's operations does not, nor does its reader.

#include "kir/passes.h"

#include <string.h>

typedef struct {
    Pass *pass;
    Arena *arena; // of this pass
    Table table;  // of values: their number; of variables: the number of what they hold; of
                  // numbers: the name, which holds until its block ends
    int numbers;
    VEC(const Var *) names;
} Same;

enum { NONE = -1 };

static const void *as_pointer(int64_t value)
{
    return (const void *)(intptr_t)value;
}

static int number_of_key(Same *s, Key key)
{
    int i = table_find(&s->table, key);
    if (i >= 0)
        return s->table.entry.at[i].value;
    table_push(&s->table, key, s->numbers);
    return s->numbers++;
}

static Key key_of_name(Same *s, int number)
{
    return (Key){as_pointer(number), NULL, &s->names};
}

static const Var *name_of(Same *s, int number)
{
    int i = table_find(&s->table, key_of_name(s, number));
    return i < 0 ? NULL : s->names.at[s->table.entry.at[i].value];
}

static void give_name(Same *s, int number, const Var *name)
{
    table_push(&s->table, key_of_name(s, number), s->names.len);
    VEC_PUSH(s->arena, &s->names, name);
}

// A constant that has no number yet has one of its own.
static int number_of_var(Same *s, const Var *var)
{
    const Key key = {var, NULL, NULL};
    int i = table_find(&s->table, key);
    if (i >= 0 || !var->is_const)
        return i >= 0 ? s->table.entry.at[i].value : NONE;
    const int number = number_of_key(s, key);
    give_name(s, number, var);
    return number;
}

// What a value is but for its arguments.
static int number_of_head(Same *s, const KExpr *e)
{
    int64_t bits;
    memcpy(&bits, &e->number, sizeof bits);
    switch (e->kind) {
    case K_LITERAL: return number_of_key(s, (Key){e->type, as_pointer(bits), s});
    case K_INDEX: return number_of_key(s, (Key){e->type, e->arith, NULL});
    case K_OP:
    case K_LANE:
    case K_VECTOR: {
        const int64_t what = (int64_t)e->kind << 32 | (int64_t)e->op << 8 | e->lane;
        return number_of_key(s, (Key){e->type, as_pointer(what), &s->numbers});
    }
    case K_CALL: return number_of_key(s, (Key){e->type, e->callee, &s->table});
    default: return NONE;
    }
}

static int number_of(Same *s, const KExpr *e)
{
    if (e->kind == K_VAR)
        return number_of_var(s, e->var);
    int number = number_of_head(s, e);
    for (int i = 0; number != NONE && i < kexpr_args(e); i++) {
        const int arg = number_of(s, e->arg[i]);
        number = arg == NONE ? NONE
                             : number_of_key(s, (Key){as_pointer(number), as_pointer(arg),
                                                      as_pointer(1)});
    }
    return number;
}

static const KExpr *renamed(void *user, const KExpr *e)
{
    Same *s = user;
    int i = e->kind == K_VAR ? table_find(&s->table, (Key){e->var, NULL, NULL}) : NONE;
    if (i < 0)
        return kexpr_map(s->pass->arena, e, renamed, s);
    const Var *name = name_of(s, s->table.entry.at[i].value);
    return !name || name == e->var ? e : kexpr_var(s->pass->arena, name);
}

// Is it a constant whose value another one has?
static bool is_again(Same *s, const Stm *stm)
{
    if (stm->kind != ST_DECL || !stm->var->is_const || !stm->value)
        return false;
    const int number = number_of(s, stm->value);
    if (number == NONE)
        return false;
    const Var *name = name_of(s, number);
    const bool again = name && name->type == stm->var->type;
    if (!name)
        give_name(s, number, stm->var);
    if (!name || again)
        table_push(&s->table, (Key){stm->var, NULL, NULL}, number);
    return again;
}

static void walk_block(Same *s, Block *block)
{
    const int len = s->table.entry.len;
    Block out = {0};
    VEC_EACH(Stm *, stm, block) {
        if (stm->value)
            stm->value = renamed(s, stm->value);
        if (is_again(s, stm))
            continue;
        walk_block(s, &stm->body);
        walk_block(s, &stm->other);
        VEC_PUSH(s->pass->arena, &out, stm);
    }
    if (out.len < block->len)
        *block = out;
    table_pop(&s->table, len);
}

void pass_same(Pass *pass, Kernel *kernel)
{
    Same s = {.pass = pass, .arena = arena_new()};
    table_init(&s.table, s.arena);
    walk_block(&s, &kernel->body);
    arena_free(s.arena);
}
