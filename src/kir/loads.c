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
// around and in a loop that stores to it. A load behind && or || opens no entry, and one in
// a branch of a select does only where loads may go ahead of what needs them, behind
// conditions of indices: it is of that condition, and its value is 0 where that does not
// hold. Private arrays are left alone: they are registers already.
//
//   why     the border of a guarded convolution loaded each element once for each of eight
//           outputs: a third of all instructions on an H100

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

// A select whose first branch is being looked at.
typedef struct Behind Behind;
struct Behind {
    const Behind *outer;
    const KExpr *select;
    const Behind *same; // the first one of equal conditions, whose outer one is such, too
};

typedef struct {
    Pass *pass;
    Arena *arena; // of this pass
    const Behind *behind;
    VEC(const Behind *) conditions; // of which none equals another, and those of variables
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

// Selects ---------------------------------------------------------------------------------

static Behind behind_of(Loads *l, const KExpr *select)
{
    const KExpr *cond = select->arg[0];
    Behind at = {l->behind, select, NULL};
    const Behind first = {l->behind ? l->behind->same : NULL, select, NULL};
    const Key key = {first.outer, cond->cond[0], cond->cond[cond->n - 1]};
    int i = table_find(&l->table, key);
    if (i >= 0)
        at.same = l->conditions.at[l->table.entry.at[i].value];
    if (!at.same || !kexpr_same_cond(at.same->select->arg[0], cond)) {
        at.same = arena_copy(l->arena, &first, sizeof first);
        table_push(&l->table, key, l->conditions.len);
        VEC_PUSH(l->arena, &l->conditions, at.same);
    }
    return at;
}

// Is it 0 where this condition does not hold: a load that was declared behind it?
static bool is_zero_beside(Loads *l, const KExpr *e, const Behind *at)
{
    int i = e->kind == K_VAR ? table_find(&l->table, (Key){e->var, l, NULL}) : -1;
    const Behind *b = i < 0 ? NULL : l->conditions.at[l->table.entry.at[i].value];
    while (b && b != at->same)
        b = b->outer;
    return b != NULL;
}

// May loads of its first branch go ahead, if that is what is asked for?
static bool is_of_indices(const Loads *l, const KExpr *e)
{
    return l->pass->options->eager && e->kind == K_OP && e->op == OP_SELECT &&
           e->arg[0]->kind == K_COND && e->arg[0]->n;
}

// What the first of such loads is declared as.
static const KExpr *guarded(Loads *l, const KExpr *load)
{
    Arena *arena = l->pass->arena;
    const KExpr *value = load, **arg;
    for (const Behind *b = l->behind; b; b = b->outer) {
        KExpr *select = kexpr_copy(arena, b->select, &arg);
        arg[1] = value;
        arg[2] = NEW_OF(arena, KExpr, .kind = K_LITERAL, .type = load->type);
        select->type = load->type;
        value = select;
    }
    return value;
}

// Entries -----------------------------------------------------------------------------

static bool is_candidate(const KExpr *e)
{
    return e->kind == K_LOAD && e->buffer->space != MEM_PRIVATE;
}

static Key key_of_load(const Loads *l, const KExpr *e, bool alone)
{
    return (Key){e->buffer, e->arith, alone ? (const void *)e->type : l->behind->same};
}

static LoadEntry *find_by_key(Loads *l, const KExpr *e, bool alone)
{
    int i = table_find(&l->table, key_of_load(l, e, alone));
    if (i < 0)
        return NULL;
    LoadEntry *entry = &l->entries.at[l->table.entry.at[i].value];
    return entry->version == state_of(l, e->buffer)->version ? entry : NULL;
}

// Whatever the conditions before it say, or behind the same ones.
static LoadEntry *find_entry(Loads *l, const KExpr *e)
{
    LoadEntry *entry = find_by_key(l, e, true);
    return entry || !l->behind || e->type->kind != T_SCALAR ? entry
                                                            : find_by_key(l, e, false);
}

// Opens an entry for a load of statement stm that is certain to happen, or may.
static void open_entry(Loads *l, const KExpr *e, const Stm *stm)
{
    bool alone = !l->behind || may_go_ahead(l->pass->ctx, e);
    if (!alone && e->type->kind != T_SCALAR)
        return;
    if (!l->rewriting) {
        VEC_PUSH(l->arena, &l->entries, (LoadEntry){0});
    }
    LoadEntry *entry = &l->entries.at[l->next];
    entry->version = state_of(l, e->buffer)->version;
    bool own = stm->kind == ST_DECL && stm->value == e && stm->var->is_const;
    if (own)
        entry->var = stm->var;
    else if (l->rewriting && entry->uses > 1)
        entry->var = block_name(l->pass->arena, l->out, new_name(l, e->buffer),
                                alone ? e : guarded(l, e));
    table_push(&l->table, key_of_load(l, e, alone), l->next++);
    if (!alone && entry->var) {
        table_push(&l->table, (Key){entry->var, l, NULL}, l->conditions.len);
        VEC_PUSH(l->arena, &l->conditions, l->behind->same);
    }
}

static void open_entries(Loads *l, const KExpr *e, const Stm *stm)
{
    if (is_candidate(e) && !find_entry(l, e))
        open_entry(l, e, stm);
    for (int i = 0; i < kexpr_args(e); i++) {
        const Behind *outer = l->behind,
                     at = i == 1 && is_of_indices(l, e) ? behind_of(l, e) : (Behind){0};
        if (at.same)
            l->behind = &at;
        if (at.same || !kexpr_maybe(e, i))
            open_entries(l, e->arg[i], stm);
        l->behind = outer;
    }
}

static const KExpr *visit(void *user, const KExpr *e);

// Counts the loads below e, or puts variables in their place.
static const KExpr *visit_args(Loads *l, const KExpr *e)
{
    const Behind *outer = l->behind;
    if (!is_of_indices(l, e))
        return kexpr_map(l->pass->arena, e, visit, l);
    const Behind at = behind_of(l, e);
    l->behind = &at;
    const KExpr *first = visit(l, e->arg[1]);
    l->behind = outer;
    const KExpr *second = visit(l, e->arg[2]), **arg;
    if (second->kind == K_LITERAL && second->number == 0 && is_zero_beside(l, first, &at))
        return first;
    if (first == e->arg[1] && second == e->arg[2])
        return e;
    KExpr *copy = kexpr_copy(l->pass->arena, e, &arg);
    arg[1] = first;
    arg[2] = second;
    return copy;
}

static const KExpr *visit(void *user, const KExpr *e)
{
    Loads *l = user;
    if (!is_candidate(e))
        return visit_args(l, e);
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

static void forget_shared(Loads *l)
{
    for (int i = 0; i < l->states.len; i++) {
        const Buffer *buffer = l->states.at[i].buffer;
        if (buffer->space != MEM_GLOBAL || buffer->role != ROLE_INPUT)
            l->states.at[i].version++;
    }
}

static void forget_stored(Stm *stm, void *loads)
{
    if (stm->kind == ST_STORE)
        state_of(loads, stm->buffer)->version++;
    else if (stm->kind == ST_BARRIER)
        forget_shared(loads);
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
        block_each(&stm->body, forget_stored, l);
    walk_block(l, &stm->body);
    if (stm->other.len) {
        // What the body stored counts as forgotten here too, although it did not happen.
        walk_block(l, &stm->other);
    }
    if (stm->kind == ST_FOR)
        block_each(&stm->body, forget_stored, l);
    else
        forget_stored(stm, l);
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
