// SPDX-License-Identifier: Apache-2.0
//
// One load for all loads of the same element in straight-line code.
//
//   method  Value numbering over the blocks, by (buffer, index, type): the first load of an
//           element that is certain to happen in a block opens an entry, which holds until
//           the block ends or the buffer may have changed. The same walk is made twice, to
//           count the uses of each entry and then to rewrite; an entry used at least twice
//           becomes a constant declared before the statement that opened it.
//
// A buffer may have changed after a store to it, after a barrier unless it is an input, and
// around and in a loop that stores to it. A load in a branch of a select, or behind && or
// ||, opens no entry. Private arrays are left alone: they are registers already.

#include "kir/passes.h"

typedef struct {
    const Buffer *buffer;
    int version; // changes whenever the buffer may have changed
    int names;   // constants made for it
} State;

typedef struct {
    int version, uses;
    const Var *var; // in the second walk, if it is used at least twice
} LoadEntry;

typedef struct {
    Pass *pass;
    Arena *arena; // of this pass
    bool rewriting;
    Table table; // value: number of the entry
    VEC(State) states;
    VEC(LoadEntry) entries;
    int next; // entries opened so far in this walk
    Kernel *kernel;
    Block *out; // where the statements of the block go
} Loads;

static State *state_of(Loads *l, const Buffer *buffer)
{
    for (int i = 0; i < l->states.len; i++)
        if (l->states.at[i].buffer == buffer)
            return &l->states.at[i];
    VEC_PUSH(l->arena, &l->states, (State){.buffer = buffer});
    return &l->states.at[l->states.len - 1];
}

static const char *new_name(Loads *l, const Buffer *buffer)
{
    const char *stem = arena_printf(l->arena, "%s_", buffer->name);
    return name_fresh(l->pass->arena, l->kernel, stem, &state_of(l, buffer)->names);
}

// Entries -----------------------------------------------------------------------------

static bool is_candidate(const KExpr *e)
{
    return e->kind == K_LOAD && e->buffer->space != MEM_PRIVATE;
}

static LoadEntry *find_entry(Loads *l, const KExpr *e)
{
    int i = table_find(&l->table, (Key){e->buffer, e->arith, e->type});
    if (i < 0)
        return NULL;
    LoadEntry *entry = &l->entries.at[l->table.entry.at[i].value];
    return entry->version == state_of(l, e->buffer)->version ? entry : NULL;
}

// Opens an entry for a load of statement stm that is certain to happen.
static void open_entry(Loads *l, const KExpr *e, const Stm *stm)
{
    if (!l->rewriting) {
        VEC_PUSH(l->arena, &l->entries, (LoadEntry){0});
    }
    LoadEntry *entry = &l->entries.at[l->next];
    entry->version = state_of(l, e->buffer)->version;
    bool own = stm->kind == ST_DECL && stm->value == e && stm->var->is_const;
    if (own)
        entry->var = stm->var;
    else if (l->rewriting && entry->uses > 1)
        entry->var = block_name(l->pass->arena, l->out, new_name(l, e->buffer), e);
    table_push(&l->table, (Key){e->buffer, e->arith, e->type}, l->next++);
}

static void open_entries(Loads *l, const KExpr *e, const Stm *stm)
{
    if (is_candidate(e) && !find_entry(l, e))
        open_entry(l, e, stm);
    for (int i = 0; i < kexpr_args(e); i++)
        if (!kexpr_maybe(e, i))
            open_entries(l, e->arg[i], stm);
}

// Counts the loads below e, or puts variables in their place.
static const KExpr *visit(void *user, const KExpr *e)
{
    Loads *l = user;
    if (!is_candidate(e))
        return kexpr_map(l->pass->arena, e, visit, l);
    LoadEntry *entry = find_entry(l, e);
    if (!entry)
        return e;
    if (!l->rewriting)
        entry->uses++;
    else if (entry->var)
        return kexpr_var(l->pass->arena, entry->var);
    return e;
}

// Statements --------------------------------------------------------------------------

static void forget(Loads *l, const Buffer *buffer)
{
    state_of(l, buffer)->version++;
}

static void forget_shared(Loads *l)
{
    for (int i = 0; i < l->states.len; i++) {
        const Buffer *buffer = l->states.at[i].buffer;
        if (buffer->space != MEM_GLOBAL || buffer->role != ROLE_INPUT)
            l->states.at[i].version++;
    }
}

static void forget_stored(Loads *l, const Block *block)
{
    VEC_EACH(const Stm *, stm, block) {
        if (stm->kind == ST_STORE)
            forget(l, stm->buffer);
        else if (stm->kind == ST_BARRIER)
            forget_shared(l);
        forget_stored(l, &stm->body);
        forget_stored(l, &stm->other);
    }
}

static void walk_block(Loads *l, Block *block);

static void walk_value(Loads *l, Stm *stm)
{
    bool own = stm->kind == ST_DECL && stm->var->is_const && is_candidate(stm->value) &&
               !find_entry(l, stm->value);
    open_entries(l, stm->value, stm);
    const KExpr *value = visit(l, stm->value);
    if (l->rewriting && !own)
        stm->value = value;
}

static void walk_stm(Loads *l, Stm *stm)
{
    if (stm->value)
        walk_value(l, stm);
    if (stm->kind == ST_FOR)
        forget_stored(l, &stm->body);
    walk_block(l, &stm->body);
    if (stm->other.len) {
        // What the body stored counts as forgotten here too, although it did not happen.
        walk_block(l, &stm->other);
    }
    if (stm->kind == ST_FOR)
        forget_stored(l, &stm->body);
    else if (stm->kind == ST_STORE)
        forget(l, stm->buffer);
    else if (stm->kind == ST_BARRIER)
        forget_shared(l);
}

static void walk_block(Loads *l, Block *block)
{
    Block out = {0}, *outer = l->out;
    int len = l->table.entry.len;
    l->out = &out;
    for (int i = 0; i < block->len; i++) {
        walk_stm(l, block->at[i]);
        if (l->rewriting)
            VEC_PUSH(l->pass->arena, &out, block->at[i]);
    }
    if (l->rewriting && out.len > block->len)
        *block = out;
    l->out = outer;
    table_pop(&l->table, len);
}

void pass_loads(Pass *pass, Kernel *kernel)
{
    Loads l = {.pass = pass, .arena = arena_new(), .kernel = kernel};
    table_init(&l.table, l.arena);
    walk_block(&l, &kernel->body);
    l.rewriting = true;
    l.next = 0;
    for (int i = 0; i < l.states.len; i++)
        l.states.at[i].version = 0;
    walk_block(&l, &kernel->body);
    arena_free(l.arena);
}
