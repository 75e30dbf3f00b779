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

// What a statement, with all within it, touches: a bit of each, which others share. No bit
// in common: nothing in common.
typedef struct {
    uint64_t sets, reads, stores, loads, makes, indexed;
    bool barrier;
} TouchMarks;

typedef struct {
    Pass *pass;
    Arena *arena; // of this pass
    Table table;  // of statements that were looked at
    VEC(TouchMarks) marks;
} Jam;

// Marks -----------------------------------------------------------------------------------

static uint64_t bit_of(const void *p)
{
    return 1ull << (hash_mix((uint64_t)(uintptr_t)p, 0) & 63);
}

static uint64_t bits_of_index(const Arith *a)
{
    uint64_t bits = a && a->kind == A_VAR ? bit_of(a) : 0;
    for (int i = 0; a && i < a->n; i++)
        bits |= bits_of_index(a->term[i].arg);
    return bits;
}

static void mark_value(TouchMarks *m, const KExpr *e)
{
    if (!e)
        return;
    if (e->kind == K_VAR)
        m->reads |= bit_of(e->var);
    if (e->kind == K_LOAD)
        m->loads |= bit_of(e->buffer);
    m->indexed |= bits_of_index(e->arith);
    for (int i = 0; e->cond && i < e->n; i++)
        m->indexed |= bits_of_index(e->cond[i]);
    for (int i = 0; i < kexpr_args(e); i++)
        mark_value(m, e->arg[i]);
}

static void mark_stm(TouchMarks *m, const Stm *stm)
{
    if (stm->kind == ST_DECL || stm->kind == ST_ASSIGN)
        m->sets |= bit_of(stm->var);
    if (stm->kind == ST_STORE)
        m->stores |= bit_of(stm->buffer);
    if (stm->kind == ST_INT)
        m->makes |= bit_of(stm->iter);
    m->barrier |= stm->kind == ST_BARRIER;
    m->indexed |= bits_of_index(stm->index) | bits_of_index(stm->extent);
    mark_value(m, stm->value);
    for (int i = 0; i < stm->body.len; i++)
        mark_stm(m, stm->body.at[i]);
    for (int i = 0; i < stm->other.len; i++)
        mark_stm(m, stm->other.at[i]);
}

static TouchMarks *marks_of(Jam *jam, const Stm *stm)
{
    Key key = {stm, NULL, NULL};
    int entry = table_find(&jam->table, key);
    if (entry < 0) {
        TouchMarks marks = {0};
        mark_stm(&marks, stm);
        entry = table_push(&jam->table, key, jam->marks.len);
        VEC_PUSH(jam->arena, &jam->marks, marks);
    }
    return &jam->marks.at[jam->table.entry.at[entry].value];
}

// Whether neither order can matter, as far as the marks tell.
static bool are_apart(Jam *jam, const Stm *one, const Stm *other)
{
    TouchMarks a = *marks_of(jam, one), b = *marks_of(jam, other);
    return !a.barrier && !b.barrier && !(a.sets & (b.reads | b.sets)) &&
           !(b.sets & a.reads) && !(a.stores & b.loads) && !(b.stores & a.loads) &&
           !(a.makes & b.indexed) && !(b.makes & a.indexed);
}

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
static bool commute(Jam *jam, const Stm *a, const Stm *b)
{
    return are_apart(jam, a, b) || (!disturbs(a, b) && !disturbs(b, a));
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
    mark_stm(marks_of(jam, into), loop);
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
