// SPDX-License-Identifier: Apache-2.0
//
// Jam: sequential loops of one block with the same iterations, none of which needs what
// another computes, become one loop. The folds of all outputs of an item then share what
// they load, and what neighbours load are neighbours in one body.
//
//   source  unroll and jam: Allen and Cocke, A catalogue of optimizing transformations,
//           1971
//   why     16 folds of 64 rows each, which NVRTC unrolls one by one, took 57 s to
//           compile; as one loop they take 0.5 s
//
// Only loops that do nothing but compute values. A loop moves up to an earlier one, and
// with it the declarations that it needs; what they read must not change in between. Of
// loops that store, one follows another where it reads of a private array only what the
// other has just put there: then the array is a register.

#include "kir/passes.h"

// The loads of a body with more statements would not fit the registers of an item.
enum { JAM_STATEMENTS = 512 };

typedef VEC(Stm *) Stms;

// What a statement, with all within it, sets, stores to and makes; and what it reads, loads
// from, has indices of, and sets: variables, buffers and indices, each once. Without a bit
// in common two lists have nothing in common.
typedef struct {
    VEC(const void *) of;
    uint64_t bits;
} TouchList;

typedef struct {
    const Stm *stm;
    TouchList does, needs;
    bool barrier;
} Touches;

typedef struct {
    Pass *pass;
    Arena *arena; // of this pass
    Table table;  // of statements that were looked at, and of what each does and needs
    VEC(Touches *) touches;
} Jam;

// Touches ---------------------------------------------------------------------------------

static Key key_of(const Touches *t, const TouchList *list, const void *p)
{
    return (Key){t->stm, p, list == &t->does ? t->stm : NULL};
}

static void touch(Jam *jam, Touches *t, TouchList *list, const void *p)
{
    if (table_find(&jam->table, key_of(t, list, p)) >= 0)
        return;
    table_push(&jam->table, key_of(t, list, p), 0);
    VEC_PUSH(jam->arena, &list->of, p);
    list->bits |= 1ull << (hash_mix((uint64_t)(uintptr_t)p, 0) & 63);
}

static void touch_index(Jam *jam, Touches *t, const Arith *a)
{
    if (a && a->kind == A_VAR)
        touch(jam, t, &t->needs, a);
    for (int i = 0; a && i < a->n; i++)
        touch_index(jam, t, a->term[i].arg);
}

static void touch_value(Jam *jam, Touches *t, const KExpr *e)
{
    if (!e)
        return;
    if (e->kind == K_VAR || e->kind == K_LOAD)
        touch(jam, t, &t->needs, e->kind == K_VAR ? (const void *)e->var : e->buffer);
    touch_index(jam, t, e->arith);
    for (int i = 0; e->cond && i < e->n; i++)
        touch_index(jam, t, e->cond[i]);
    for (int i = 0; i < kexpr_args(e); i++)
        touch_value(jam, t, e->arg[i]);
}

static void touch_stm(Jam *jam, Touches *t, const Stm *stm)
{
    if (stm->kind == ST_DECL || stm->kind == ST_ASSIGN) {
        touch(jam, t, &t->does, stm->var);
        touch(jam, t, &t->needs, stm->var);
    }
    if (stm->kind == ST_STORE)
        touch(jam, t, &t->does, stm->buffer);
    if (stm->kind == ST_INT)
        touch(jam, t, &t->does, stm->iter);
    t->barrier |= stm->kind == ST_BARRIER;
    touch_index(jam, t, stm->index);
    touch_index(jam, t, stm->extent);
    touch_value(jam, t, stm->value);
    for (int i = 0; i < stm->body.len; i++)
        touch_stm(jam, t, stm->body.at[i]);
    for (int i = 0; i < stm->other.len; i++)
        touch_stm(jam, t, stm->other.at[i]);
}

static Touches *touches_of(Jam *jam, const Stm *stm)
{
    Key key = {stm, NULL, NULL};
    int entry = table_find(&jam->table, key);
    if (entry < 0) {
        Touches *touches = NEW_OF(jam->arena, Touches, .stm = stm);
        touch_stm(jam, touches, stm);
        entry = table_push(&jam->table, key, jam->touches.len);
        VEC_PUSH(jam->arena, &jam->touches, touches);
    }
    return jam->touches.at[jam->table.entry.at[entry].value];
}

static bool have_common(Jam *jam, const Touches *one, const TouchList *a,
                        const Touches *other, const TouchList *b)
{
    if (a->of.len > b->of.len)
        return have_common(jam, other, b, one, a);
    for (int i = 0; (a->bits & b->bits) && i < a->of.len; i++)
        if (table_find(&jam->table, key_of(other, b, a->of.at[i])) >= 0)
            return true;
    return false;
}

// Both orders of them are one: neither changes what the other reads, or sets what it sets.
static bool commute(Jam *jam, const Stm *one, const Stm *other)
{
    const Touches *a = touches_of(jam, one), *b = touches_of(jam, other);
    return !a->barrier && !b->barrier && !have_common(jam, a, &a->does, b, &b->needs) &&
           !have_common(jam, b, &b->does, a, &a->needs);
}

// May one of them use what the other stores to?
static bool may_share(Jam *jam, const Stm *one, const Stm *other)
{
    const Touches *a = touches_of(jam, one), *b = touches_of(jam, other);
    return have_common(jam, a, &a->does, b, &b->needs) ||
           have_common(jam, a, &a->does, b, &b->does);
}

// Questions -----------------------------------------------------------------------------

static bool is_no_store(const Stm *stm, const void *user)
{
    return stm->kind != ST_STORE && stm->kind != ST_DECL && stm->kind != ST_ASSIGN &&
           stm->kind != ST_IF && (stm->kind != ST_FOR || stm->loop != LOOP_SEQ);
}

static bool is_candidate(const Stm *stm)
{
    return stm->kind == ST_FOR && stm->loop == LOOP_SEQ && !stm->value &&
           !stm_any(stm, stm_stores, NULL) && !stm_any(stm, is_no_store, NULL);
}

static bool same_iterations(const Stm *a, const Stm *b)
{
    return b->kind == ST_FOR && a->iter == b->iter && a->extent == b->extent &&
           a->unroll == b->unroll && a->body.len + b->body.len <= JAM_STATEMENTS &&
           is_candidate(a) && is_candidate(b);
}

static bool sets_var(const Stm *stm, const void *var)
{
    return (stm->kind == ST_DECL || stm->kind == ST_ASSIGN) && stm->var == var;
}

static bool sets_read_of(const Stm *setter, const void *reader)
{
    return (setter->kind == ST_DECL || setter->kind == ST_ASSIGN) &&
           stm_any(reader, stm_reads, setter->var);
}

static bool set_by(const Stm *setter, const void *other)
{
    return (setter->kind == ST_DECL || setter->kind == ST_ASSIGN) &&
           stm_any(other, sets_var, setter->var);
}

// Loops that store -----------------------------------------------------------------------

typedef struct {
    const Stm *a, *b;     // the loops
    const Buffer *buffer; // that one of them stores to
} Pair;

static bool loads_elsewhere(const KExpr *e, const void *user)
{
    const Pair *p = user;
    return e->kind == K_LOAD && e->buffer == p->buffer && e->arith != p->a->iter;
}

static bool is_elsewhere(const Stm *stm, const void *user)
{
    const Pair *p = user;
    return (stm->kind == ST_STORE && stm->buffer == p->buffer &&
            (stm->index != p->a->iter || stm->value->type->width > 1)) ||
           kexpr_any(stm->value, loads_elsewhere, user);
}

static bool uses(const Stm *loop, const Buffer *buffer)
{
    return stm_any(loop, stm_stores, buffer) || stm_any(loop, stm_loads, buffer);
}

static bool is_shared(const Stm *store, const void *user)
{
    const Pair *p = user;
    return store->kind == ST_STORE && uses(p->a, store->buffer) &&
           uses(p->b, store->buffer);
}

// Do the two meet in something else than the same element of an array of the item?
static bool is_met_elsewhere(const Stm *store, const void *user)
{
    Pair p = *(const Pair *)user;
    if (!is_shared(store, user))
        return false;
    p.buffer = store->buffer;
    return p.buffer->space != MEM_PRIVATE || stm_any(p.a, is_elsewhere, &p) ||
           stm_any(p.b, is_elsewhere, &p);
}

// Does the second loop read, element by element, what the first one has stored?
static bool follows(Jam *jam, const Stm *a, const Stm *b)
{
    const Pair both = {a, b, NULL};
    return a->kind == ST_FOR && b->kind == ST_FOR && !a->value && !b->value &&
           a->iter == b->iter && a->extent == b->extent && a->unroll == b->unroll &&
           may_share(jam, a, b) && stm_any(a, is_shared, &both) &&
           !stm_any(a, is_met_elsewhere, &both) && !stm_any(b, is_met_elsewhere, &both) &&
           !stm_any(a, is_no_store, NULL) && !stm_any(b, is_no_store, NULL) &&
           !stm_any(a, sets_read_of, b) && !stm_any(b, sets_read_of, a) &&
           !stm_any(a, set_by, b);
}

// Moving --------------------------------------------------------------------------------

// The declarations between two places of a block that a loop needs, in order, which may all
// move up to the first place; false if one cannot, or something else is in the way.
static bool can_follow(Jam *jam, const Block *block, int first, int loop, Stms *with)
{
    const Stm *moved = block->at[loop];
    bool behind = follows(jam, block->at[first], moved);
    if (!behind && !same_iterations(block->at[first], moved))
        return false;
    with->len = 0;
    VEC_PUSH(jam->arena, with, (Stm *)moved);
    for (int i = loop - 1; i >= first; i--) {
        Stm *stm = block->at[i];
        bool free = true;
        for (int k = behind && i == first; free && k < with->len; k++)
            free = commute(jam, stm, with->at[k]);
        if (free)
            continue;
        if (i == first || stm->kind != ST_DECL)
            return false;
        VEC_PUSH(jam->arena, with, stm);
    }
    for (int i = first + 1; behind && i < loop; i++)
        if (block->at[i]->kind != ST_DECL)
            return false;
    return true;
}

// The statements of the list move up to `first`, in their order; the loop into the one
// there.
static void move_up(Jam *jam, Block *block, int *first, const Stms *with)
{
    Block out = {0};
    Stm *into = block->at[*first], *loop = with->at[0];
    for (int i = 0; i < *first; i++)
        VEC_PUSH(jam->pass->arena, &out, block->at[i]);
    for (int k = with->len - 1; k > 0; k--)
        VEC_PUSH(jam->pass->arena, &out, with->at[k]);
    for (int i = *first; i < block->len; i++)
        if (!list_has(with->at, with->len, block->at[i]))
            VEC_PUSH(jam->pass->arena, &out, block->at[i]);
    for (int i = 0; i < loop->body.len; i++)
        VEC_PUSH(jam->pass->arena, &into->body, loop->body.at[i]);
    touch_stm(jam, touches_of(jam, into), loop);
    *first += with->len - 1;
    *block = out;
}

static void jam_block(Jam *jam, Block *block)
{
    Stms with = {0};
    for (int first = 0; first < block->len; first++) {
        for (int i = first + 1; block->at[first]->kind == ST_FOR && i < block->len; i++)
            if (can_follow(jam, block, first, i, &with)) {
                move_up(jam, block, &first, &with);
                i = first;
            }
        jam_block(jam, &block->at[first]->body);
        jam_block(jam, &block->at[first]->other);
    }
}

void pass_jam(Pass *pass, Kernel *kernel)
{
    Jam jam = {.pass = pass, .arena = arena_new()};
    table_init(&jam.table, jam.arena);
    jam_block(&jam, &kernel->body);
    arena_free(jam.arena);
}
