// SPDX-License-Identifier: Apache-2.0
//
// Copies under way: a loop that copies a piece of the inputs to local memory, waits, and
// computes with it, begins the copies of pieces some iterations ahead, which the memory
// system then does by itself.
//
//   method  Where a loop is as ahead.c wants it, and what it stores is what it loads, each
//           buffer becomes a ring of `stages` pieces. All but one are begun before the
//           loop. An iteration waits until its own piece is there, for itself and then for
//           all, and begins the piece that takes the place of the one before, which no item
//           reads any more: so one barrier an iteration is enough.
//   source  cp.async of NVIDIA's PTX; multistage pipelines of CUTLASS 2
//
// Products of four warps together are asynchronous, too. They begin before the copies,
// which therefore cost no time. In a ring of at least four pieces, an iteration waits for
// the last batch of products only in the next iteration, so that matrix units never wait
// for a barrier; the pieces that the batch reads are then overwritten one iteration later,
// too.
//
// Which rows are copied may be read from an array: what is the same in all iterations is
// read before the loop.
//
// It needs pieces of 4, 8 or 16 bytes. A loop with other pieces stays unchanged.

#include "kir/passes.h"

typedef struct {
    Pass *pass;
    Kernel *kernel;
    Stm *loop;
    int barrier;  // in its body: what stands before it is copied
    int products; // in its body: what four warps add up, and do by themselves; -1: nothing
    int late;     // iterations of which products are under way when one ends
    VEC(Buffer *) rings;
    VEC(const Arith *) piece; // elements of one of each
} Ring;

static int64_t iterations(const Ring *r)
{
    int64_t n = 0;
    arith_is_const(r->loop->extent, &n);
    return n;
}

static bool is_copied_load(const Stm *stm)
{
    const KExpr *load = stm->kind == ST_DECL && stm->var->is_const ? stm->value : NULL;
    if (!load || load->kind != K_LOAD || load->side || load->buffer->formal ||
        load->buffer->value || load->buffer->space != MEM_GLOBAL ||
        load->buffer->role != ROLE_INPUT)
        return false;
    int bytes = scalar_info[load->buffer->scalar].bytes *
                (load->type->kind == T_VECTOR ? load->type->width : 1);
    return bytes == 4 || bytes == 8 || bytes == 16;
}

// The load that a store stores; NULL: it stores something else.
static const KExpr *copied_load(const Ring *r, const Stm *store)
{
    const KExpr *value = store->kind == ST_STORE && !store->side ? store->value : NULL;
    if (!value || value->kind != K_VAR || store->buffer->space != MEM_LOCAL)
        return NULL;
    ARRAY_EACH(const Stm *, stm, r->loop->body.at, r->barrier)
        if (stm->kind == ST_DECL && stm->var == value->var)
            return stm->value;
    return NULL;
}

static int ring_of(const Ring *r, const Buffer *buffer)
{
    for (int i = 0; i < r->rings.len; i++)
        if (r->rings.at[i] == buffer)
            return i;
    return -1;
}

static bool add_ring(Ring *r, const Buffer *buffer)
{
    if (ring_of(r, buffer) >= 0)
        return true;
    for (int i = r->barrier; i < r->loop->body.len; i++)
        if (stm_any(r->loop->body.at[i], stm_stores, buffer))
            return false;
    VEC_PUSH(r->pass->arena, &r->rings, (Buffer *)buffer);
    VEC_PUSH(r->pass->arena, &r->piece, buffer->count);
    return true;
}

static void find_products(Ring *r)
{
    const Block *body = &r->loop->body;
    r->products = -1;
    for (int i = r->barrier + 1; i < body->len; i++) {
        const KExpr *value = body->at[i]->kind == ST_MATRIX ? body->at[i]->value : NULL;
        if (value && value->fragments->together)
            r->products = r->products < 0 ? i : body->len;
    }
    if (r->products >= body->len)
        r->products = -1;
    r->late = r->products >= 0 && r->pass->options->stages >= 4;
}

// Does the loop copy so, and is what it copies used by nothing else?
static bool find_ring(Ring *r, Stm *loop)
{
    const Block *body = &loop->body;
    r->loop = loop;
    if (loop->kind != ST_FOR || loop->loop != LOOP_SEQ || iterations(r) < 2)
        return false;
    r->rings.len = r->piece.len = 0;
    for (r->barrier = 0; r->barrier < body->len; r->barrier++)
        if (body->at[r->barrier]->kind == ST_BARRIER)
            break;
    find_products(r);
    if (r->barrier + 1 >= body->len)
        return false;
    ARRAY_EACH(const Stm *, stm, body->at, r->barrier) {
        if (!is_copied_load(stm) && !(copied_load(r, stm) && add_ring(r, stm->buffer)))
            return false;
        for (int k = r->barrier; stm->kind == ST_DECL && k < body->len; k++)
            if (stm_any(body->at[k], stm_reads, stm->var))
                return false;
    }
    return r->rings.len > 0;
}

// Rewriting -----------------------------------------------------------------------------

static Stm *stm_of(Ring *r, StmKind kind, Block *to)
{
    return block_add(r->pass->arena, to, (Stm){.kind = kind});
}

// Where the piece of an iteration begins in a ring.
static const Arith *start_of(Ring *r, int ring, const Arith *iteration)
{
    ArithCtx *ctx = r->pass->ctx;
    const Arith *stages = arith_const(ctx, r->pass->options->stages);
    return arith_mul(ctx, arith_mod(ctx, iteration, stages), r->piece.at[ring]);
}

// Begins the copies of an iteration.
static void begin_copies(Ring *r, const Arith *iteration, Block *to)
{
    ArithCtx *ctx = r->pass->ctx;
    ARRAY_EACH(const Stm *, store, r->loop->body.at, r->barrier) {
        const KExpr *from = copied_load(r, store);
        if (!from)
            continue;
        KExpr *load = arena_copy(r->pass->arena, from, sizeof(KExpr));
        load->arith = arith_subst(ctx, from->arith, r->loop->iter, iteration);
        Stm *copy = stm_of(r, ST_STORE, to);
        copy->async = true;
        copy->buffer = store->buffer;
        copy->value = load;
        copy->index =
            arith_add(ctx, arith_subst(ctx, store->index, r->loop->iter, iteration),
                      start_of(r, ring_of(r, store->buffer), iteration));
    }
}

// The value with this iteration's pieces.
static const KExpr *moved(Ring *r, const KExpr *e)
{
    if (!e || e->kind == K_COND)
        return e;
    int ring = e->buffer ? ring_of(r, e->buffer) : -1;
    const KExpr **arg;
    KExpr *copy = kexpr_copy(r->pass->arena, e, &arg);
    if (ring >= 0)
        copy->arith = arith_add(r->pass->ctx, e->arith, start_of(r, ring, r->loop->iter));
    for (int i = 0; i < e->n; i++)
        arg[i] = moved(r, e->arg[i]);
    return copy;
}

static void move_pieces(Stm *stm, void *ring)
{
    stm->value = moved(ring, stm->value);
}

static int ahead_of(const Ring *r)
{
    return r->pass->options->stages - 1 - r->late;
}

// Begins the copies of the iteration that is so far ahead, if there is one.
static void branch_ahead(Ring *r, Block *to)
{
    ArithCtx *ctx = r->pass->ctx;
    const Arith *next = arith_addc(ctx, r->loop->iter, ahead_of(r));
    const Arith **cond = NEW_ARRAY(r->pass->arena, const Arith *, 1);
    cond[0] = arith_addc(ctx, arith_sub(ctx, r->loop->extent, next), -1);
    Stm *branch = stm_of(r, ST_IF, to);
    branch->value = kexpr_cond(r->pass->arena, cond, 1);
    begin_copies(r, next, &branch->body);
}

static void wait_for(Ring *r, const Buffer *sums, int keep, Block *to)
{
    block_add(r->pass->arena, to, (Stm){.kind = ST_WAIT, .buffer = sums, .keep = keep});
}

static void begin_first(Ring *r, Block *before)
{
    for (int s = 0; s < ahead_of(r); s++) {
        if (s < iterations(r))
            begin_copies(r, arith_const(r->pass->ctx, s), before);
        stm_of(r, ST_COMMIT, before);
    }
}

static void make_ring(Ring *r)
{
    Block body = {0}, rest = {0};
    const Block *old = &r->loop->body;
    wait_for(r, NULL, ahead_of(r) - 1, &body);
    VEC_PUSH(r->pass->arena, &body, old->at[r->barrier]);
    const bool waits = old->at[old->len - 1]->kind == ST_BARRIER;
    for (int i = r->barrier + 1; i + waits < old->len; i++)
        VEC_PUSH(r->pass->arena, &rest, old->at[i]);
    block_each(&rest, move_pieces, r);
    int first = r->products < 0 ? 0 : r->products - r->barrier; // before the copies
    for (int i = 0; i <= rest.len; i++) {
        if (i == first) {
            if (ahead_of(r) < iterations(r))
                branch_ahead(r, &body);
            stm_of(r, ST_COMMIT, &body);
        }
        if (i < rest.len)
            VEC_PUSH(r->pass->arena, &body, rest.at[i]);
    }
    if (r->products >= 0) {
        Stm *products = old->at[r->products];
        products->async = true;
        wait_for(r, products->buffer, r->late, &body);
    }
    r->loop->body = body;
    for (int i = 0; i < r->rings.len; i++)
        r->rings.at[i]->count =
            arith_mulc(r->pass->ctx, r->piece.at[i], r->pass->options->stages);
}

// Is it a number from an input, the same in each iteration and known before the first?
static bool is_fixed(const Stm *loop, int at)
{
    const Stm *stm = loop->body.at[at];
    const KExpr *load = stm->kind == ST_INT ? stm->value : NULL;
    if (!load || load->kind != K_LOAD || load->side || load->buffer->role != ROLE_INPUT ||
        arith_mentions(load->arith, loop->iter))
        return false;
    for (int i = 0; i < at; i++)
        if (loop->body.at[i]->kind == ST_INT &&
            arith_mentions(load->arith, loop->body.at[i]->iter))
            return false;
    return true;
}

static void move_fixed(Ring *r, Stm *loop, Block *before)
{
    Block *body = &loop->body;
    r->loop = loop;
    if (loop->kind != ST_FOR || loop->loop != LOOP_SEQ || iterations(r) < 2)
        return;
    Block rest = {0};
    for (int i = 0; i < body->len; i++)
        VEC_PUSH(r->pass->arena, is_fixed(loop, i) ? before : &rest, body->at[i]);
    *body = rest;
}

static void look_at(void *user, Block *to, Stm *stm)
{
    Ring *r = user;
    move_fixed(r, stm, to);
    const bool ring = find_ring(r, stm);
    const Buffer *sums = ring && r->late ? stm->body.at[r->products]->buffer : NULL;
    if (ring) {
        begin_first(r, to);
        make_ring(r);
    }
    VEC_PUSH(r->pass->arena, to, stm);
    if (sums)
        wait_for(r, sums, 0, to);
}

void pass_ring(Pass *pass, Kernel *kernel)
{
    Ring r = {.pass = pass, .kernel = kernel};
    block_map(pass->arena, &kernel->body, look_at, &r);
}
