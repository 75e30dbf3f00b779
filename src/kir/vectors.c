// SPDX-License-Identifier: Apache-2.0
//
// Vectors: in straight-line code, loads of neighbouring elements become one vector load and
// stores of neighbouring elements one vector store.
//
//   method  indices are split into a variable part and a constant; elements with the same
//           variable part fall into chunks of `vector` by their constants. A chunk whose
//           start is provably aligned is loaded at once if at least two elements of it
//           are wanted, and stored at once if all of it is.
//   why     one 128-bit access for four 32-bit ones: 54 against 80 to 90 % of copy
//   bandwidth
//           on GPUs (Laplace in single precision, A100 and H100, 20 to 28 % faster)
//
// Only buffers that the kernel does not write are loaded so, and only buffers that it does
// not read are stored so: order cannot matter then. Of local memory that need hold only
// between two barriers. Loads in a branch of a select stay.

#include "kir/passes.h"

enum { CHUNKS_MAX = 512, LANES_MAX = 8 };

// Neighbours [start, start + width) of the elements `base + constant` of a buffer.
typedef struct {
    const Buffer *buffer;
    const Arith *base;
    int64_t start;
    bool within;                   // if one of them is in the buffer, all are
    unsigned loaded, stored;       // one bit a lane
    unsigned guarded;              // likewise, loads behind conditions of indices
    const Var *vector;             // the loaded chunk
    const KExpr *value[LANES_MAX]; // what is to be stored
    int seen;                      // of its stores
    const Side *side;              // of a certain load, which all share
} Chunk;

// What statements read, and what they write.
typedef VEC(const Buffer *) Buffers;
typedef struct {
    Arena *arena;
    Buffers read, written;
} BufferUses;

typedef struct {
    Pass *pass;
    Kernel *kernel;
    Chunk *chunk;
    int nchunk, width, names;
    BufferUses all, here; // of the kernel; of local memory between the barriers at hand
    Block *out;
} Vectors;

static void add_buffer(Arena *arena, Buffers *to, const Buffer *buffer)
{
    if (!list_has(to->at, to->len, buffer))
        VEC_PUSH(arena, to, buffer);
}

static void note_read(const KExpr *e, void *user)
{
    BufferUses *uses = user;
    if (e->kind == K_LOAD || e->kind == K_TILE)
        add_buffer(uses->arena, &uses->read, e->buffer);
}

static void note_uses(Stm *stm, void *user)
{
    BufferUses *uses = user;
    kexpr_each(stm->value, note_read, uses);
    if (stm->kind == ST_STORE)
        add_buffer(uses->arena, &uses->written, stm->buffer);
}

static int64_t floor_to(int64_t x, int64_t step)
{
    return x - ((x % step) + step) % step;
}

// The chunk of an element, made if missing; NULL if it cannot be aligned or is not simple.
static Chunk *chunk_of(Vectors *v, const Buffer *buffer, const Arith *index,
                       const Type *type, int *lane)
{
    int64_t c = index->kind == A_SUM || index->kind == A_CONST ? index->value : 0,
            start = floor_to(c, v->width);
    if (buffer->space == MEM_PRIVATE || type->kind != T_SCALAR || type->scalar == S_BOOL)
        return NULL;
    const Arith *base = arith_addc(v->pass->ctx, index, -c);
    *lane = (int)(c - start);
    ARRAY_EACH_REF(Chunk *, chunk, v->chunk, v->nchunk)
        if (chunk->buffer == buffer && chunk->base == base && chunk->start == start)
            return chunk;
    if (v->nchunk == CHUNKS_MAX || arith_multiple(v->pass->ctx, base) % v->width != 0)
        return NULL;
    bool ends = arith_multiple(v->pass->ctx, buffer->count) % v->width == 0;
    v->chunk[v->nchunk] =
        (Chunk){.buffer = buffer, .base = base, .start = start, .within = ends};
    return &v->chunk[v->nchunk++];
}

static const Arith *chunk_index(const Vectors *v, const Chunk *chunk)
{
    return arith_addc(v->pass->ctx, chunk->base, chunk->start);
}

static Chunk *load_chunk(Vectors *v, const KExpr *e, int *lane)
{
    const Buffers *written = e->kind == K_LOAD && e->buffer->space == MEM_LOCAL
                                 ? &v->here.written
                                 : &v->all.written;
    if (e->kind != K_LOAD || list_has(written->at, written->len, e->buffer))
        return NULL;
    return chunk_of(v, e->buffer, e->arith, e->type, lane);
}

static Chunk *store_chunk(Vectors *v, const Stm *stm, int *lane)
{
    const Buffers *read = stm->kind == ST_STORE && stm->buffer->space == MEM_LOCAL
                              ? &v->here.read
                              : &v->all.read;
    if (stm->kind != ST_STORE || list_has(read->at, read->len, stm->buffer))
        return NULL;
    return chunk_of(v, stm->buffer, stm->index, stm->value->type, lane);
}

// May a chunk behind a condition be loaded whole, from the first or the last chunk of the
// buffer where its own is outside?
static bool can_move(const Vectors *v, const Chunk *chunk)
{
    return v->pass->options->eager && chunk->within && chunk->buffer->space == MEM_GLOBAL &&
           arith_nonneg(v->pass->ctx,
                        arith_addc(v->pass->ctx, chunk->buffer->count, -v->width));
}

static void note_value(Vectors *v, const KExpr *e, bool guarded)
{
    int lane;
    Chunk *chunk = load_chunk(v, e, &lane);
    if (chunk && guarded && can_move(v, chunk))
        chunk->guarded |= 1u << lane;
    if (chunk && !guarded) {
        chunk->loaded |= 1u << lane;
        chunk->side = e->side;
    }
    bool of_indices = e->kind == K_OP && e->op == OP_SELECT && e->arg[0]->kind == K_COND;
    for (int i = 0; i < kexpr_args(e); i++)
        if (!kexpr_maybe(e, i) || of_indices)
            note_value(v, e->arg[i], guarded || kexpr_maybe(e, i));
}

static void note_block(Vectors *v, const Block *block, int from, int to)
{
    for (int i = from; i < to; i++) {
        const Stm *stm = block->at[i];
        int lane;
        if (stm->value)
            note_value(v, stm->value, false);
        Chunk *chunk = store_chunk(v, stm, &lane);
        if (chunk) // an element stored twice is left as it stands
            chunk->stored =
                chunk->stored & (1u << lane) ? 1u << 31 : chunk->stored | 1u << lane;
    }
}

static int lanes(unsigned bits)
{
    int n = 0;
    for (; bits; bits &= bits - 1)
        n++;
    return n;
}

// A vector load of four costs the caches what a load of every fourth element does, so two
// wanted elements pay for it (gaussian 8192 x 8192 on an H200: 137 us with three, 134 with
// two).
static bool loads_whole(const Vectors *v, const Chunk *chunk)
{
    return chunk && lanes(chunk->loaded | chunk->guarded) >= (chunk->within ? 2 : v->width);
}

// Rewriting ----------------------------------------------------------------------------

static const Var *declare(Vectors *v, const Buffer *buffer, const KExpr *value)
{
    const char *stem = arena_printf(v->pass->arena, "%s_v", buffer->name);
    const char *name = name_fresh(v->pass->arena, v->kernel, stem, &v->names);
    return block_name(v->pass->arena, v->out, name, value);
}

// Local memory is aligned to its widest access.
static void note_width(Vectors *v, const Buffer *buffer)
{
    VEC_EACH(Buffer *, local, &v->kernel->locals)
        if (local == buffer)
            local->vector = MAX(local->vector, v->width);
}

static const Arith *chunk_place(const Vectors *v, const Chunk *chunk)
{
    ArithCtx *ctx = v->pass->ctx;
    const Arith *index = chunk_index(v, chunk);
    if (chunk->loaded)
        return index;
    index = arith_max(ctx, index, arith_const(ctx, 0));
    return arith_min(ctx, index, arith_addc(ctx, chunk->buffer->count, -v->width));
}

static const KExpr *lane_value(Vectors *v, Chunk *chunk, int lane, const Type *type)
{
    if (!chunk->vector) {
        note_width(v, chunk->buffer);
        KExpr *load =
            NEW_OF(v->pass->arena, KExpr, .kind = K_LOAD,
                   .type = type_vector(type->scalar, v->width), .buffer = chunk->buffer,
                   .arith = chunk_place(v, chunk), .side = chunk->side);
        chunk->vector = declare(v, chunk->buffer, load);
    }
    KExpr *e = NEW(v->pass->arena, KExpr);
    const KExpr **arg = NEW_ARRAY(v->pass->arena, const KExpr *, 1);
    arg[0] = kexpr_var(v->pass->arena, chunk->vector);
    *e = (KExpr){.kind = K_LANE, .type = type, .lane = lane, .n = 1, .arg = arg};
    return e;
}

// Conditional operands use a vector that is loaded anyway, or that can be.
static const KExpr *rewrite(Vectors *v, const KExpr *e, bool certain)
{
    int lane, n = kexpr_args(e);
    Chunk *chunk = load_chunk(v, e, &lane);
    if (loads_whole(v, chunk) && (certain || chunk->vector || chunk->guarded))
        return lane_value(v, chunk, lane, e->type);
    if (n == 0)
        return e;
    const KExpr **arg, *copy = kexpr_copy(v->pass->arena, e, &arg);
    for (int i = 0; i < n; i++)
        arg[i] = rewrite(v, e->arg[i], certain && !kexpr_maybe(e, i));
    return copy;
}

// The vector that lanes are those of, in order; NULL if they are not.
static const KExpr *whole_vector(const KExpr *const *lane, int width)
{
    for (int i = 0; i < width; i++)
        if (lane[i]->kind != K_LANE || lane[i]->lane != i ||
            lane[i]->arg[0]->kind != K_VAR || !lane[i]->arg[0]->var->is_const ||
            lane[i]->arg[0]->var != lane[0]->arg[0]->var)
            return NULL;
    return lane[0]->arg[0]->type->width == width ? lane[0]->arg[0] : NULL;
}

static const KExpr *vector_value(Vectors *v, const Chunk *chunk, const Type *scalar)
{
    const KExpr *whole = whole_vector(chunk->value, v->width);
    if (whole)
        return whole;
    const KExpr **arg = COPY_ARRAY(v->pass->arena, chunk->value, v->width);
    return NEW_OF(v->pass->arena, KExpr, .kind = K_VECTOR,
                  .type = type_vector(scalar->scalar, v->width), .n = v->width, .arg = arg);
}

static void store_lane(Vectors *v, Chunk *chunk, int lane, const Stm *stm)
{
    const KExpr *value = stm->value;
    bool named = value->kind == K_LANE && value->arg[0]->kind == K_VAR &&
                 value->arg[0]->var->is_const;
    chunk->value[lane] =
        named ? value : kexpr_var(v->pass->arena, declare(v, chunk->buffer, value));
    if (++chunk->seen < v->width)
        return;
    note_width(v, chunk->buffer);
    block_add(v->pass->arena, v->out,
              (Stm){.kind = ST_STORE,
                    .buffer = chunk->buffer,
                    .index = chunk_index(v, chunk),
                    .side = stm->side,
                    .value = vector_value(v, chunk, value->type)});
}

static void rewrite_block(Vectors *v, const Block *block, int from, int to)
{
    for (int i = from; i < to; i++) {
        Stm *stm = block->at[i];
        int lane;
        if (stm->value)
            stm->value = rewrite(v, stm->value, true);
        Chunk *chunk = store_chunk(v, stm, &lane);
        if (chunk && chunk->stored == (1u << v->width) - 1)
            store_lane(v, chunk, lane, stm);
        else
            VEC_PUSH(v->pass->arena, v->out, stm);
    }
}

// A part of a block without barriers of its own.
static void vector_part(Vectors *v, const Block *block, int from, int to)
{
    Chunk chunk[CHUNKS_MAX];
    v->chunk = chunk;
    v->nchunk = 0;
    v->here.read.len = v->here.written.len = 0;
    for (int i = from; i < to; i++)
        stm_each(block->at[i], note_uses, &v->here);
    note_block(v, block, from, to);
    rewrite_block(v, block, from, to);
}

static void vector_block(Vectors *v, Block *block)
{
    Block out = {0};
    for (int from = 0, to; from < block->len; from = to) {
        to = from + 1;
        while (!stm_any(block->at[from], stm_is_barrier, NULL) && to < block->len &&
               !stm_any(block->at[to], stm_is_barrier, NULL))
            to++;
        v->out = &out;
        vector_part(v, block, from, to);
    }
    *block = out;
    v->out = NULL;
    for (int i = 0; i < block->len; i++) {
        vector_block(v, &block->at[i]->body);
        vector_block(v, &block->at[i]->other);
    }
}

void pass_vectors(Pass *pass, Kernel *kernel)
{
    // What matrix units added up is stored by pairs, whatever width tiles are copied with.
    const int width = MIN(pass->options->vector, LANES_MAX);
    Vectors v = {.pass = pass, .kernel = kernel};
    v.all.arena = v.here.arena = pass->arena;
    block_each(&kernel->body, note_uses, &v.all);
    for (v.width = width; v.width > 1; v.width = kernel->matrix && v.width > 2 ? 2 : 1)
        vector_block(&v, &kernel->body);
}
