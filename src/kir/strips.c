// SPDX-License-Identifier: Apache-2.0
//
// Strips: work-items that go through a row each would read elements that lie a row apart.
// The items of a group copy a strip of columns of all their rows to local memory together,
// neighbours by neighbours, go through it there, and copy what they made of it back.
//
//   method  In a loop over the elements of an item's row, what is read or written at the
//           neighbour in the next iteration, but not by the next item, is in a tile of
//           [items][columns]; rows are gone through in either direction. Copies count
//           through the tile: its row stands for the item in the index, its column for the
//           iteration.
//   needs   items that all go through the loop, which does not wait and has none within;
//           loops over groups may be around the items, or between them and the loop
//
// The last strip repeats the last column in place of what is behind it. Copies from memory
// are written out, so that ahead.c and ring.c can begin them before their turn.

#include "kir/passes.h"

#include <stdlib.h>
#include <string.h>

enum { TILES_MOST = 8, UNROLLED = 16 };

typedef struct {
    bool load;
    const Buffer *from; // or to: global memory
    const Arith *index;
    const KExpr *cond; // of a store: where it is done; NULL: everywhere
    bool beyond;       // of a load: it may be outside of the array where nobody wants it
    Buffer *tile;
    const KExpr *value; // of a load: this iteration's element
} Tiled;

typedef struct {
    Kernel *kernel;
    const KernelOptions *options;
    ArithCtx *ctx;
    Arena *arena;
    const Stm *items, *loop;
    const KExpr *cond;          // all conditions around the statement that is looked at
    int64_t columns;            // of a strip
    const Arith *width, *count; // the same; elements of a tile
    Tiled tiled[TILES_MOST];
    int ntiled, names;
    int64_t bytes;               // of all tiles so far
    VEC(const Buffer *) written; // from tiles of loops before
    bool ok;
} Strips;

// What is in tiles --------------------------------------------------------------------

// On, or back in a row that is gone through from its end.
static bool moves_by_one(const Strips *s, const Arith *index, const Arith *var)
{
    return llabs(index_stride(s->ctx, index, var)) == 1;
}

static int tile_of(Strips *s, bool load, const Buffer *buffer, const Arith *index)
{
    for (int i = 0; i < s->ntiled; i++)
        if (s->tiled[i].load == load && s->tiled[i].from == buffer &&
            s->tiled[i].index == index)
            return i;
    return -1;
}

static void note(Strips *s, bool load, const Buffer *buffer, const Arith *index,
                 bool beyond)
{
    if (!arith_mentions(index, s->items->iter) || !moves_by_one(s, index, s->loop->iter) ||
        moves_by_one(s, index, s->items->iter) || tile_of(s, load, buffer, index) >= 0 ||
        (load && s->ntiled == TILES_MOST))
        return;
    for (int i = 0; i < s->ntiled && !load; i++) // which of two is the last one?
        s->ok &= s->tiled[i].load || s->tiled[i].from != buffer;
    s->ok &= s->ntiled < TILES_MOST;
    s->tiled[s->ok ? s->ntiled++ : 0] = (Tiled){load, buffer, index, s->cond, beyond};
}

static void note_load(const KExpr *e, void *user)
{
    Strips *s = user;
    const bool ahead = !e->side || may_go_ahead(s->ctx, e);
    if (e->kind == K_LOAD && e->type->kind == T_SCALAR &&
        !list_has(s->written.at, s->written.len, e->buffer) &&
        kernel_only_reads(s->kernel, e->buffer) &&
        (ahead || arith_is_const(e->buffer->count, NULL)))
        note(s, true, e->buffer, e->arith, !ahead);
}

// a: NULL: none.
static const KExpr *both_of(const Strips *s, const KExpr *a, const KExpr *b)
{
    if (!a)
        return b;
    const Arith **cond = NEW_ARRAY(s->arena, const Arith *, a->n + b->n);
    memcpy(cond, a->cond, (size_t)a->n * sizeof *cond);
    memcpy(cond + a->n, b->cond, (size_t)b->n * sizeof *cond);
    return kexpr_cond(s->arena, cond, a->n + b->n);
}

static void note_block(Strips *s, const Block *block)
{
    VEC_EACH(const Stm *, stm, block) {
        bool store = stm->kind == ST_STORE;
        s->ok &= store || stm->kind == ST_DECL || stm->kind == ST_ASSIGN ||
                 stm->kind == ST_ARRAY || stm->kind == ST_IF;
        kexpr_each(stm->value, note_load, s);
        if (store && stm->buffer->space == MEM_GLOBAL && !stm->atomic &&
            stm->value->type->kind == T_SCALAR)
            note(s, false, stm->buffer, stm->index, false);
        if (stm->kind != ST_IF)
            continue;
        s->ok &= stm->value->kind == K_COND && !stm->other.len;
        if (!s->ok)
            return;
        const KExpr *outer = s->cond;
        s->cond = both_of(s, outer, stm->value);
        note_block(s, &stm->body);
        s->cond = outer;
    }
}

// The bytes of all tiles of the loop.
static int64_t tile_bytes(const Strips *s)
{
    int64_t count = 0, bytes = 0;
    arith_is_const(s->count, &count);
    for (int i = 0; i < s->ntiled; i++)
        bytes += count * scalar_info[s->tiled[i].from->scalar].bytes *
                 (s->tiled[i].load ? MAX(s->options->stages, 1) : 1);
    return bytes;
}

// As many columns as there is room for, but no fewer than neighbours share an access.
static bool set_width(Strips *s)
{
    enum { COLUMNS_LEAST = 8 };
    for (;; s->columns /= 2) {
        s->width = arith_const(s->ctx, s->columns);
        s->count = arith_mulc(s->ctx, s->items->extent, s->columns | 1);
        const int64_t bytes = s->bytes + tile_bytes(s);
        if (bytes <= s->options->room) {
            s->bytes = bytes;
            return true;
        }
        if (s->columns < 2 * COLUMNS_LEAST)
            return false;
    }
}

static bool find_strips(Strips *s, const Stm *loop)
{
    int64_t length;
    if (!s->items || loop->kind != ST_FOR || loop->loop != LOOP_SEQ || loop->value)
        return false;
    bool is_short = arith_is_const(loop->extent, &length) && length < s->options->strip;
    s->columns = is_short ? length : s->options->strip;
    s->loop = loop;
    s->ntiled = 0;
    s->ok = true;
    note_block(s, &loop->body);
    return s->ok && s->ntiled && set_width(s);
}

// Copies ------------------------------------------------------------------------------

// What the item does in its turn k with an index, or a condition, of the loop.
typedef struct {
    const Arith *row, *column, *iteration;
} CopyTurn;

static CopyTurn turn_of(const Strips *s, const Arith *strip, const Arith *k)
{
    const Arith *near =
        arith_add(s->ctx, arith_mul(s->ctx, k, s->items->extent), s->items->iter);
    const Arith *column = arith_mod(s->ctx, near, s->width);
    return (CopyTurn){arith_div(s->ctx, near, s->width), column,
                      arith_add(s->ctx, arith_mul(s->ctx, strip, s->width), column)};
}

static const Arith *moved(const Strips *s, const Arith *index, const CopyTurn *turn)
{
    const Arith *row = arith_var(s->ctx, "row", s->items->iter->lo, s->items->iter->hi);
    index = arith_subst(s->ctx, index, s->items->iter, row);
    index = arith_subst(s->ctx, index, s->loop->iter, turn->iteration);
    return arith_subst(s->ctx, index, row, turn->row);
}

// An odd number of columns keeps the rows apart in the banks.
static const Arith *place_of(const Strips *s, const Arith *row, const Arith *column)
{
    return arith_add(s->ctx, arith_mulc(s->ctx, row, s->columns | 1), column);
}

// Where the statements of a loop go, and its number. A single turn needs no loop.
typedef struct {
    Block *body;
    const Arith *iter;
} TurnLoop;

static TurnLoop add_turns(Strips *s, Block *to, const Arith *extent, int unroll)
{
    int64_t n;
    if (arith_is_const(extent, &n) && n == 1)
        return (TurnLoop){to, arith_const(s->ctx, 0)};
    const char *name = name_fresh(s->arena, s->kernel, "k", &s->names);
    const Arith *iter = arith_iter(s->ctx, name, extent);
    const Stm loop = {.kind = ST_FOR, .iter = iter, .extent = extent, .unroll = unroll};
    return (TurnLoop){&block_add(s->arena, to, loop)->body, iter};
}

static const KExpr *add_value(Strips *s, Block *to, const KExpr *value)
{
    const char *name = name_fresh(s->arena, s->kernel, "x", &s->names);
    return kexpr_var(s->arena, block_name(s->arena, to, name, value));
}

static const Arith *within(const Strips *s, const Buffer *buffer, const Arith *index)
{
    index = arith_max(s->ctx, index, arith_const(s->ctx, 0));
    return arith_min(s->ctx, index, arith_addc(s->ctx, buffer->count, -1));
}

static void copy_in(Strips *s, const Tiled *t, const Arith *strip, Block *to)
{
    const Arith *last = arith_addc(s->ctx, s->loop->extent, -1);
    for (int64_t k = 0; k < s->columns; k++) {
        CopyTurn turn = turn_of(s, strip, arith_const(s->ctx, k));
        turn.iteration = arith_min(s->ctx, turn.iteration, last);
        const Arith *index = moved(s, t->index, &turn);
        if (t->beyond)
            index = within(s, t->from, index);
        const KExpr *value = add_value(s, to, kexpr_load(s->arena, t->from, index));
        block_add(s->arena, to,
                  (Stm){.kind = ST_STORE,
                        .buffer = t->tile,
                        .index = place_of(s, turn.row, turn.column),
                        .value = value});
    }
}

// Under the condition of the store, and not behind the end of the row.
static void copy_out(Strips *s, const Tiled *t, const Arith *strip, Block *to)
{
    TurnLoop copy = add_turns(s, to, s->width, UNROLLED);
    CopyTurn turn = turn_of(s, strip, copy.iter);
    int n = t->cond ? t->cond->n : 0;
    const Arith **cond = NEW_ARRAY(s->arena, const Arith *, n + 1);
    for (int i = 0; i < n; i++)
        cond[i] = moved(s, t->cond->cond[i], &turn);
    const Arith *end = arith_sub(s->ctx, s->loop->extent, turn.iteration);
    cond[n] = arith_addc(s->ctx, end, -1);
    n += !arith_nonneg(s->ctx, cond[n]);
    Block *body = copy.body;
    if (n)
        body = &block_add(s->arena, body,
                          (Stm){.kind = ST_IF, .value = kexpr_cond(s->arena, cond, n)})
                    ->body;
    block_add(
        s->arena, body,
        (Stm){.kind = ST_STORE,
              .buffer = t->from,
              .index = moved(s, t->index, &turn),
              .value = kexpr_load(s->arena, t->tile, place_of(s, turn.row, turn.column))});
}

// The loop in strips ------------------------------------------------------------------

static const KExpr *in_tiles(void *user, const KExpr *e)
{
    Strips *s = user;
    int tile = e->kind == K_LOAD ? tile_of(s, true, e->buffer, e->arith) : -1;
    return tile >= 0 ? s->tiled[tile].value : kexpr_map(s->arena, e, in_tiles, s);
}

static void use_tiles(Strips *s, const Block *block, const Arith *place)
{
    VEC_EACH(Stm *, stm, block) {
        if (stm->value)
            stm->value = in_tiles(s, stm->value);
        int tile = stm->kind == ST_STORE ? tile_of(s, false, stm->buffer, stm->index) : -1;
        if (tile >= 0) {
            stm->buffer = s->tiled[tile].tile;
            stm->index = place;
        }
        use_tiles(s, &stm->body, place);
    }
}

// One strip by each item: its elements of the tiles first, then what the loop did.
static void go_through(Strips *s, const Arith *strip, Block *to)
{
    const Arith *begin = arith_mul(s->ctx, strip, s->width);
    const Arith *left = arith_sub(s->ctx, s->loop->extent, begin);
    TurnLoop part = add_turns(s, to, arith_min(s->ctx, left, s->width), UNROLLED);
    const Arith *at = arith_add(s->ctx, begin, part.iter);
    const Arith *place = place_of(s, s->items->iter, part.iter);
    block_add(s->arena, part.body,
              (Stm){.kind = ST_INT, .iter = s->loop->iter, .index = at});
    ARRAY_EACH_REF(Tiled *, t, s->tiled, s->ntiled)
        if (t->load)
            t->value = add_value(s, part.body, kexpr_load(s->arena, t->tile, place));
    use_tiles(s, &s->loop->body, place);
    VEC_EACH(Stm *, stm, &s->loop->body)
        VEC_PUSH(s->arena, part.body, stm);
}

static void split_loop(Strips *s, Block *to)
{
    const Stm barrier = {.kind = ST_BARRIER, .fence_local = true, .fence_global = true};
    TurnLoop all = add_turns(s, to, arith_ceil_div(s->ctx, s->loop->extent, s->width), 0);
    ARRAY_EACH_REF(Tiled *, t, s->tiled, s->ntiled) {
        t->tile = NEW_OF(s->arena, Buffer,
                         .name = name_fresh(s->arena, s->kernel, "strip", &s->names),
                         .space = MEM_LOCAL, .scalar = t->from->scalar, .role = ROLE_TEMP,
                         .count = s->count);
        VEC_PUSH(s->arena, &s->kernel->locals, t->tile);
        if (t->load)
            copy_in(s, t, all.iter, all.body);
    }
    block_add(s->arena, all.body, barrier);
    go_through(s, all.iter, all.body);
    block_add(s->arena, all.body, barrier);
    ARRAY_EACH_REF(Tiled *, t, s->tiled, s->ntiled)
        if (!t->load) {
            copy_out(s, t, all.iter, all.body);
            VEC_PUSH(s->arena, &s->written, t->from);
        }
}

static void walk_block(Strips *s, Block *block)
{
    const Stm *outer = s->items;
    Block out = {0};
    VEC_EACH(Stm *, stm, block) {
        if (find_strips(s, stm)) {
            split_loop(s, &out);
            continue;
        }
        VEC_PUSH(s->arena, &out, stm);
        bool items = stm->kind == ST_FOR && stm->loop == LOOP_LCL && stm->dim == 0 &&
                     stm->form == FORM_ONCE && arith_is_const(stm->extent, NULL);
        if (items || (stm->kind == ST_FOR && stm->loop == LOOP_WRG)) {
            s->items = items ? stm : outer;
            walk_block(s, &stm->body);
            s->items = outer;
        }
    }
    *block = out;
}

void pass_strips(Pass *pass, Kernel *kernel)
{
    Strips s = {.kernel = kernel,
                .options = pass->options,
                .ctx = pass->ctx,
                .arena = pass->arena,
                .bytes = kernel_local_bytes(kernel)};
    walk_block(&s, &kernel->body);
}
