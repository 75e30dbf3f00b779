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
#include "kir/table.h"

// Loads of a body of so many statements fill the registers of an item.
enum { JAM_STATEMENTS = 512 };

typedef VEC(Stm *) Stms;

typedef struct {
    Pass *pass;
    Arena *arena; // of this pass
} Jam;

// Questions -----------------------------------------------------------------------------

static bool computes_only(const Stm *stm)
{
    bool known = stm->kind == ST_DECL || stm->kind == ST_ASSIGN || stm->kind == ST_IF ||
                 (stm->kind == ST_FOR && stm->loop == LOOP_SEQ);
    for (int i = 0; known && i < stm->body.len; i++)
        known = computes_only(stm->body.at[i]);
    for (int i = 0; known && i < stm->other.len; i++)
        known = computes_only(stm->other.at[i]);
    return known;
}

static bool is_candidate(const Stm *stm)
{
    return stm->kind == ST_FOR && stm->loop == LOOP_SEQ && !stm->value &&
           computes_only(stm);
}

static bool same_iterations(const Stm *a, const Stm *b)
{
    return is_candidate(b) && a->iter == b->iter && a->extent == b->extent &&
           a->unroll == b->unroll && a->body.len + b->body.len <= JAM_STATEMENTS;
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

static bool has_iter(const KExpr *e, const void *iter)
{
    bool found = e->arith && arith_mentions(e->arith, iter);
    for (int i = 0; e->cond && i < e->n; i++)
        found |= arith_mentions(e->cond[i], iter);
    return found;
}

static bool uses_iter(const Stm *stm, const void *iter)
{
    return (stm->index && arith_mentions(stm->index, iter)) ||
           (stm->extent && arith_mentions(stm->extent, iter)) ||
           kexpr_any(stm->value, has_iter, iter);
}

// An index that a statement makes of what was computed.
static bool makes_index_of(const Stm *stm, const void *reader)
{
    return stm->kind == ST_INT && stm_any(reader, uses_iter, stm->iter);
}

static bool stores_read_of(const Stm *store, const void *reader)
{
    return store->kind == ST_BARRIER ||
           (store->kind == ST_STORE && stm_any(reader, stm_loads, store->buffer));
}

static bool set_by(const Stm *setter, const void *other)
{
    return (setter->kind == ST_DECL || setter->kind == ST_ASSIGN) &&
           stm_any(other, sets_var, setter->var);
}

// Does it change what the other reads, or set what that sets?
static bool disturbs(const Stm *stm, const Stm *other)
{
    return stm_any(stm, sets_read_of, other) || stm_any(stm, stores_read_of, other) ||
           stm_any(stm, makes_index_of, other) || stm_any(stm, set_by, other);
}

// Both orders of them are one.
static bool commute(const Stm *a, const Stm *b)
{
    return !disturbs(a, b) && !disturbs(b, a);
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

// Of an array of the item the same element in each iteration, or something else?
static bool is_met_elsewhere(const Stm *store, const void *user)
{
    Pair p = *(const Pair *)user;
    if (!is_shared(store, user))
        return false;
    p.buffer = store->buffer;
    return p.buffer->space != MEM_PRIVATE || stm_any(p.a, is_elsewhere, &p) ||
           stm_any(p.b, is_elsewhere, &p);
}

static bool is_no_store(const Stm *stm, const void *user)
{
    (void)user;
    return stm->kind != ST_STORE && stm->kind != ST_DECL && stm->kind != ST_ASSIGN &&
           stm->kind != ST_IF && (stm->kind != ST_FOR || stm->loop != LOOP_SEQ);
}

// Does the second loop read, element by element, what the first one has stored?
static bool follows(const Stm *a, const Stm *b)
{
    const Pair both = {a, b, NULL};
    return a->kind == ST_FOR && b->kind == ST_FOR && !a->value && !b->value &&
           a->iter == b->iter && a->extent == b->extent && a->unroll == b->unroll &&
           stm_any(a, is_shared, &both) && !stm_any(a, is_met_elsewhere, &both) &&
           !stm_any(b, is_met_elsewhere, &both) && !stm_any(a, is_no_store, NULL) &&
           !stm_any(b, is_no_store, NULL) && !stm_any(a, sets_read_of, b) &&
           !stm_any(b, sets_read_of, a) && !stm_any(a, set_by, b);
}

// Moving --------------------------------------------------------------------------------

// The declarations between two places of a block that a loop needs, in order, which may all
// move up to the first place; false if one cannot, or something else is in the way.
static bool can_follow(Jam *jam, const Block *block, int first, int loop, Stms *with)
{
    const Stm *moved = block->at[loop];
    bool behind = follows(block->at[first], moved);
    if (!behind &&
        !(is_candidate(block->at[first]) && same_iterations(block->at[first], moved)))
        return false;
    with->len = 0;
    VEC_PUSH(jam->arena, with, (Stm *)moved);
    for (int i = loop - 1; i >= first; i--) {
        Stm *stm = block->at[i];
        bool free = true;
        for (int k = behind && i == first; free && k < with->len; k++)
            free = commute(stm, with->at[k]);
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
    Jam jam = {pass, arena_new()};
    jam_block(&jam, &kernel->body);
    arena_free(jam.arena);
}
