// SPDX-License-Identifier: Apache-2.0
//
// Arrays in local memory that live one after another have the same memory.
//
//   method  an array lives from the statement that fills it to the last one that reads it,
//           both of one block. Where those of two arrays do not overlap, one takes the
//           place of the other, if a barrier stands in between or is worth putting there.
//           Where they meet in one statement, which reads one array to fill the other, each
//           item must read no more of the first than it has written, or is about to write,
//           of the second: then what is made takes the place of what it is made of.
//           Arrays are placed in the order in which they are filled, each where memory has
//           to grow the least.
//   source  register allocation by linear scan (Poletto and Sarkar, TOPLAS 1999), for
//   arrays
//
// What a sequential loop runs again may read what the iteration before it left: arrays that
// are used within such a loop alone stay where they are, as do tiles of matrix units and
// what is copied asynchronously. Barriers that order nothing go with the next pass.

#include "kir/passes.h"

#include <string.h>

enum { BARRIER_BYTES = 2048 }; // what is worth a barrier of its own

typedef struct {
    Buffer *buffer, *in; // in: whose memory it has; its own at first
    const Block *block;  // NULL: it is not placed
    int first, last;     // statements of the block
    int64_t bytes;
} Life;

typedef struct {
    Pass *pass;
    Kernel *kernel;
    VEC(Life) lives;
    VEC(const Stm *) loops; // open ones
} Reuse;

// When an array lives -----------------------------------------------------------------

static bool is_of(const KExpr *e, const void *buffer)
{
    return e->buffer == buffer;
}

static bool uses(const Stm *stm, const void *buffer)
{
    return stm->buffer == buffer || kexpr_any(stm->value, is_of, buffer);
}

static bool is_tile(const KExpr *e, const void *buffer)
{
    return e->kind != K_LOAD && e->buffer == buffer;
}

static bool uses_as_tile(const Stm *stm, const void *buffer)
{
    return (stm->buffer == buffer && (stm->kind != ST_STORE || stm->async)) ||
           kexpr_any(stm->value, is_tile, buffer);
}

static bool fills_in_loop(const Stm *stm, const void *buffer)
{
    return stm->kind == ST_FOR && stm->loop == LOOP_SEQ &&
           block_any(&stm->body, stm_stores, buffer);
}

// Are copies to it moved to where they are not waited for?
static bool may_move(const Reuse *r, const Buffer *buffer)
{
    const KernelOptions *o = r->pass->options;
    return (o->ahead || o->stages > 1) &&
           block_any(&r->kernel->body, fills_in_loop, buffer);
}

// Finds where it lives if all its uses are in several statements of this block.
static void find_life(const Reuse *r, const Block *block, Life *life)
{
    const Buffer *buffer = life->buffer;
    int first = -1, last = -1;
    for (int i = 0; i < block->len; i++)
        if (stm_any(block->at[i], uses, buffer)) {
            first = first < 0 ? i : first;
            last = i;
        }
    if (first < last && !stm_any(block->at[first], stm_loads, buffer) &&
        block_count(block, uses, buffer) == block_count(&r->kernel->body, uses, buffer) &&
        !block_any(block, uses_as_tile, buffer) && !may_move(r, buffer)) {
        life->block = block;
        life->first = first;
        life->last = last;
    }
}

// What takes the place of what it is made of ------------------------------------------

typedef struct {
    const Reuse *r;
    const Buffer *from, *to;
    const Arith *base; // the first index met; others are so far from it:
    int64_t low, high;
    VEC(int64_t) stored; // from where to where, in turn
    VEC(const Stm *) loops, around;
    bool ok;
} InPlace;

static bool same_loops(const InPlace *p)
{
    return p->loops.len == p->around.len &&
           !memcmp(p->loops.at, p->around.at, sizeof *p->loops.at * (size_t)p->loops.len);
}

static void note(InPlace *p, const Arith *index, const Type *type, bool stores)
{
    Arena *arena = p->r->pass->arena;
    int64_t at = 0, end;
    if (!p->base) {
        p->base = index;
        for (int i = 0; i < p->loops.len; i++)
            VEC_PUSH(arena, &p->around, p->loops.at[i]);
    }
    p->ok &=
        same_loops(p) && arith_is_const(arith_sub(p->r->pass->ctx, index, p->base), &at);
    end = at + (type->kind == T_VECTOR ? type->width : 1);
    p->low = MIN(p->low, at);
    p->high = MAX(p->high, end);
    for (int i = 0; !stores && i < p->stored.len; i += 2) // it would read what is new
        p->ok &= end <= p->stored.at[i] || at >= p->stored.at[i + 1];
    if (stores) {
        VEC_PUSH(arena, &p->stored, at);
        VEC_PUSH(arena, &p->stored, end);
    }
}

static void note_load(const KExpr *e, void *user)
{
    InPlace *p = user;
    if (e->kind == K_LOAD && e->buffer == p->from)
        note(p, e->arith, e->type, false);
}

static void note_stm(InPlace *p, const Stm *stm)
{
    kexpr_each(stm->value, note_load, p);
    if (stm->kind == ST_STORE && stm->buffer == p->to)
        note(p, stm->index, stm->value->type, true);
    p->ok &= stm->buffer != p->from;
    if (stm->kind == ST_FOR)
        VEC_PUSH(p->r->pass->arena, &p->loops, stm);
    for (int i = 0; i < stm->body.len; i++)
        note_stm(p, stm->body.at[i]);
    for (int i = 0; i < stm->other.len; i++)
        note_stm(p, stm->other.at[i]);
    p->loops.len -= stm->kind == ST_FOR;
}

// Does each item read only what it writes itself, before it does?
static bool is_in_place(const Reuse *r, const Stm *stm, const Life *from, const Life *to)
{
    InPlace p = {.r = r, .from = from->buffer, .to = to->buffer, .ok = true};
    for (int i = 0; i < r->loops.len; i++)
        VEC_PUSH(r->pass->arena, &p.loops, r->loops.at[i]);
    note_stm(&p, stm);
    if (!p.ok || !p.base || !p.stored.len || p.high - p.low > INT32_MAX)
        return false;
    Access all = {.buffer = to->buffer,
                  .index = arith_addc(r->pass->ctx, p.base, p.low),
                  .width = (int)(p.high - p.low),
                  .loops = p.around.at,
                  .nloop = p.around.len};
    for (int i = r->loops.len; i < p.around.len; i++)
        if (!arith_mentions(p.base, p.around.at[i]->iter))
            return false;
    return access_is_own(&all, r->kernel->local);
}

// Placing -----------------------------------------------------------------------------

// Is there a barrier among the statements from first on, before end?
static bool has_barrier(const Block *block, int first, int end)
{
    for (int i = first; i < end; i++)
        if (block->at[i]->kind == ST_BARRIER)
            return true;
    return false;
}

static int last_use_before(const Life *life, int end)
{
    int i = MIN(life->last, end - 1);
    while (i > life->first && !stm_any(life->block->at[i], uses, life->buffer))
        i--;
    return i;
}

typedef enum { APART, APART_BY_BARRIER, AT_ONCE } Order; // what it takes to be apart

static Order order_of(const Reuse *r, const Life *before, const Life *after)
{
    const Block *block = after->block;
    if (before->last > after->first ||
        (before->last == after->first &&
         !is_in_place(r, block->at[after->first], before, after)))
        return AT_ONCE;
    int last = last_use_before(before, after->first);
    if (has_barrier(block, last + 1, after->first))
        return APART;
    return after->bytes >= BARRIER_BYTES && has_barrier(block, 0, block->len)
               ? APART_BY_BARRIER
               : AT_ONCE;
}

// Groups that do their work in turns begin again with what was first.
static bool begins_again(const Reuse *r)
{
    for (int i = 0; i < r->loops.len; i++)
        if (r->loops.at[i]->form == FORM_LOOP)
            return true;
    return false;
}

static Order order_in(const Reuse *r, const Buffer *memory, const Life *life)
{
    Order order = APART;
    VEC_EACH_REF(const Life *, other, &r->lives) {
        if (other == life || other->in != memory)
            continue;
        if (other->block != life->block || other->first > life->first ||
            (begins_again(r) && !has_barrier(life->block, 0, other->first) &&
             !has_barrier(life->block, life->last + 1, life->block->len)))
            return AT_ONCE;
        order = MAX(order, order_of(r, other, life));
    }
    return order;
}

static int64_t count_of(const Buffer *buffer)
{
    int64_t count = -1;
    return arith_is_const(buffer->count, &count) ? count : -1;
}

static const Arith *open_count(const Buffer *buffer)
{
    return buffer->open ? buffer->open : buffer->count;
}

// By how much memory has to grow, then how much of it is left over.
static bool fits_better(const Life *life, const Buffer *a, const Buffer *than)
{
    int64_t count = count_of(life->buffer);
    int64_t more = MAX(count - count_of(a), 0);
    int64_t other = than ? MAX(count - count_of(than), 0) : count;
    return more != other ? more < other : !than || count_of(a) < count_of(than);
}

static void put_barrier(Reuse *r, Block *block, int at)
{
    Stm *barrier = NEW_OF(r->pass->arena, Stm, .kind = ST_BARRIER, .fence_local = true,
                          .fence_global = true);
    VEC_PUSH(r->pass->arena, block, barrier);
    for (int i = block->len - 1; i > at; i--)
        block->at[i] = block->at[i - 1];
    block->at[at] = barrier;
    VEC_EACH_REF(Life *, life, &r->lives) {
        life->first += life->block == block && life->first >= at;
        life->last += life->block == block && life->last >= at;
    }
}

static void place(Reuse *r, Block *block, Life *life)
{
    Buffer *best = NULL;
    Order needs = APART;
    for (int i = 0; i < r->lives.len; i++) {
        Buffer *memory = r->lives.at[i].in;
        if (r->lives.at[i].block != block || memory->scalar != life->buffer->scalar ||
            memory == life->buffer || !fits_better(life, memory, best))
            continue;
        Order order = order_in(r, memory, life);
        if (order != AT_ONCE) {
            best = memory;
            needs = order;
        }
    }
    if (!best)
        return;
    life->in = best;
    if (life->buffer->open || best->open)
        best->open = arith_max(r->pass->ctx, open_count(life->buffer), open_count(best));
    if (count_of(life->buffer) > count_of(best))
        best->count = life->buffer->count;
    best->vector = MAX(best->vector, life->buffer->vector);
    if (needs == APART_BY_BARRIER)
        put_barrier(r, block, life->first);
}

static void place_block(Reuse *r, Block *block);

static void place_below(Reuse *r, Stm *stm)
{
    bool together =
        stm->loop == LOOP_WRG || (stm->loop == LOOP_LCL && stm->form == FORM_ONCE);
    if (stm->kind != ST_IF && !(stm->kind == ST_FOR && together))
        return;
    if (stm->kind == ST_FOR)
        VEC_PUSH(r->pass->arena, &r->loops, stm);
    place_block(r, &stm->body);
    place_block(r, &stm->other);
    r->loops.len -= stm->kind == ST_FOR;
}

static void place_block(Reuse *r, Block *block)
{
    for (int i = 0; i < r->lives.len; i++)
        if (!r->lives.at[i].block)
            find_life(r, block, &r->lives.at[i]);
    for (int i = 0; i < block->len; i++) {
        VEC_EACH_REF(Life *, life, &r->lives)
            if (life->block == block && life->first == i && life->in == life->buffer)
                place(r, block, life);
        place_below(r, block->at[i]);
    }
}

// Naming ------------------------------------------------------------------------------

static const Buffer *memory_of(const Reuse *r, const Buffer *buffer)
{
    for (int i = 0; buffer && i < r->lives.len; i++)
        if (r->lives.at[i].buffer == buffer)
            return r->lives.at[i].in;
    return buffer;
}

// Values may be shared: what was named is named again.
static void name_value(const KExpr *e, void *reuse)
{
    ((KExpr *)e)->buffer = memory_of(reuse, e->buffer);
}

static void name_stm(Stm *stm, void *reuse)
{
    stm->buffer = memory_of(reuse, stm->buffer);
    kexpr_each(stm->value, name_value, reuse);
}

static void drop_locals(Reuse *r)
{
    int kept = 0;
    for (int i = 0; i < r->kernel->locals.len; i++)
        if (memory_of(r, r->kernel->locals.at[i]) == r->kernel->locals.at[i])
            r->kernel->locals.at[kept++] = r->kernel->locals.at[i];
    r->kernel->locals.len = kept;
}

void pass_reuse(Pass *pass, Kernel *kernel)
{
    Reuse r = {.pass = pass, .kernel = kernel};
    VEC_EACH(Buffer *, buffer, &kernel->locals) {
        Life life = {.buffer = buffer, .in = buffer};
        life.bytes = count_of(buffer) * scalar_info[buffer->scalar].bytes;
        if (life.bytes > 0 && !buffer->places)
            VEC_PUSH(pass->arena, &r.lives, life);
    }
    if (r.lives.len < 2)
        return;
    place_block(&r, &kernel->body);
    block_each(&kernel->body, name_stm, &r);
    drop_locals(&r);
}
