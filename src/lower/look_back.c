// SPDX-License-Identifier: Apache-2.0
//
// A prefix in one pass: each group tells what its part folds to, and waits for what the
// groups before it tell.
//
//   method  Parts are in blocks, these in blocks of blocks, and so on, as the digits of a
//           number. A group folds the parts of its block that are before its own, then the
//           blocks before that one in theirs. The last group of a block tells what all of
//           it folds to. No group waits for a chain longer than the levels, and the order
//           of every fold is that of the parts: results do not depend on which group is
//           faster.
//   source  Merrill and Garland, "Single-pass parallel prefix scan with decoupled
//           look-back", 2016, whose groups look back until one knows all that is before it
//
// Groups must begin in the order of their numbers: a group waits only for lower ones.

#include "lower/internal.h"

typedef struct {
    const Expr *expr;
    const Env *env;
    const View *start, *words;  // z; room for what is told
    const View *own;            // what is told
    const Arith *first, *count; // the first element that is waited for, and how many
    int64_t block;              // elements at most
    bool group;                 // all items of a group look back together
    const View *acc;
} LookBack;

// Components ------------------------------------------------------------------------------

// A word for each piece of a value.
static const View *word_at(Lower *l, const LookBack *b, const Arith *index, int64_t word)
{
    return view_elem(l, view_elem(l, b->words, index), arith_const(l->ctx, word));
}

static void tell(Lower *l, const LookBack *b, const View *value, const Arith *index,
                 int64_t word)
{
    if (value->type->kind == T_TUPLE) {
        for (int i = 0; i < value->type->n; i++) {
            tell(l, b, view_get(l, value, i), index, word);
            word += type_pieces(value->type->item[i]);
        }
        return;
    }
    const View *place = word_at(l, b, index, word);
    const KExpr *scalar = view_read(l, value);
    Stm *stm = stm_add(l, ST_PUBLISH);
    stm->buffer = place->buffer;
    stm->index = place->offset;
    stm->value = scalar;
}

static const View *told(Lower *l, const LookBack *b, const Type *type, const Arith *index,
                        int64_t word)
{
    if (type->kind == T_TUPLE) {
        const View **item = NEW_ARRAY(l->arena, const View *, type->n);
        for (int i = 0; i < type->n; i++) {
            item[i] = told(l, b, type->item[i], index, word);
            word += type_pieces(type->item[i]);
        }
        return view_tuple(l, type, item);
    }
    const View *place = word_at(l, b, index, word);
    return view_value(l, k_named(l,
                                 NEW_OF(l->arena, KExpr, .kind = K_AWAIT, .type = type,
                                        .buffer = place->buffer, .arith = place->offset),
                                 "told"));
}

// Elements --------------------------------------------------------------------------------

static const Type *array_type(Lower *l, const LookBack *b, int64_t n)
{
    return type_array(l->arena, arith_const(l->ctx, n), b->expr->type);
}

typedef struct {
    const LookBack *b;
    const View *tile, *in;
    int64_t each;
} Tile;

// What element i of them is, or what a fold begins with where there are fewer.
static void wait_step(Lower *l, void *user, const Arith *i)
{
    const Tile *t = user;
    const LookBack *b = t->b;
    const View *place = view_elem(l, t->tile, i);
    const Arith *left = arith_addc(l->ctx, arith_sub(l->ctx, b->count, i), -1);
    gen_copy(l, b->start, place);
    Outside outside = side_now(l);
    guard_open(l, &left, 1);
    gen_copy(l, told(l, b, b->expr->type, arith_add(l->ctx, b->first, i), 0), place);
    side_close(l, outside);
}

// Neighbours of a tile by an item.
static void fold_step(Lower *l, void *user, const Arith *i)
{
    const Tile *t = user;
    const LookBack *b = t->b;
    const View *from = view_layout(
        l, P_DROP, 1, NEW_OF(l->arena, const Arith *, arith_mulc(l->ctx, i, t->each)),
        t->in, array_type(l, b, t->each));
    const View *acc = gen_fold(l, b->expr, b->env, b->start, from, NULL, NULL);
    gen_copy(l, acc, view_elem(l, t->tile, i));
}

static const View *add_tile(Lower *l, const LookBack *b, int64_t n)
{
    l->shared_tile = true;
    return buffers_new(l, array_type(l, b, n), MEM_LOCAL, ROLE_TEMP, 0, "tile");
}

static const View *fold_by_group(Lower *l, const LookBack *b)
{
    int64_t each = 1;
    while (each * each < b->block)
        each++;
    const int64_t n = (b->block + each - 1) / each;
    Tile waited = {.b = b, .tile = add_tile(l, b, n * each)};
    gen_loop(l, LOOP_LCL, 0, false, arith_const(l->ctx, n * each), wait_step, &waited);
    add_barrier(l);
    Tile folded = {b, add_tile(l, b, n), waited.tile, each};
    gen_loop(l, LOOP_LCL, 0, false, arith_const(l->ctx, n), fold_step, &folded);
    add_barrier(l);
    return gen_fold(l, b->expr, b->env, b->start, folded.tile, NULL, NULL);
}

static void look_step(Lower *l, void *user, const Arith *i)
{
    const LookBack *b = user;
    fold_element(l, b->expr, b->env, b->acc,
                 told(l, b, b->expr->type, arith_add(l->ctx, b->first, i), 0));
}

static const View *fold_before(Lower *l, LookBack *b, const Arith *first,
                               const Arith *count)
{
    b->first = first;
    b->count = count;
    if (b->group)
        return fold_by_group(l, b);
    b->acc = fold_variable(l, b->start, b->expr->type);
    gen_loop(l, LOOP_SEQ, 0, false, count, look_step, b);
    return b->acc;
}

// By one item of the group, or by each item for itself.
static void tell_step(Lower *l, void *user, const Arith *index)
{
    const LookBack *b = user;
    tell(l, b, b->own, b->first, 0);
}

static void tell_all(Lower *l, LookBack *b, const View *own, const Arith *index)
{
    b->own = own;
    b->first = index;
    if (b->group)
        gen_loop(l, LOOP_LCL, 0, false, arith_const(l->ctx, 1), tell_step, b);
    else
        tell_step(l, b, NULL);
}

static const View *both(Lower *l, const LookBack *b, const View *first, const View *second)
{
    const View *arg[] = {first, second};
    return fold_next(l, apply(l, b->expr->fun, b->env, arg), b->expr->type);
}

// Elements of a block: a group waits for about the root of all, of each of two levels, at
// once; an item waits for one after another, so it has few on more levels.
static int64_t block_of(const LookBack *b, int64_t parts)
{
    int64_t block = 4;
    while (b->group && block * block < parts)
        block++;
    return block;
}

// The last of a block of `parts` tells what all of it folds to.
static void tell_block(Lower *l, LookBack *b, const Arith *i, int64_t parts,
                       const View *before, const View *own, const Arith *index)
{
    const Arith *in_block = arith_mod(l->ctx, i, arith_const(l->ctx, parts));
    const Arith *last = arith_addc(l->ctx, in_block, 1 - parts);
    Outside outside = side_now(l);
    guard_open(l, &last, 1);
    tell_all(l, b, both(l, b, before, own), index);
    side_close(l, outside);
}

// Level after level: what is before i in its block, of as many blocks as a block has parts,
// and so on.
static const View *fold_levels(Lower *l, LookBack *b, const View *own, const Arith *i,
                               int64_t parts)
{
    int64_t base = 0, count = parts, reach = 1;
    const View *before = NULL;
    for (const Arith *index = i;; index = arith_divc(l->ctx, index, b->block)) {
        const Arith *at = arith_addc(l->ctx, index, base);
        if (before)
            tell_block(l, b, i, reach, before, own, at);
        else
            tell_all(l, b, own, at);
        const Arith *digit = arith_mod(l->ctx, index, arith_const(l->ctx, b->block));
        const View *near = fold_before(l, b, arith_sub(l->ctx, at, digit), digit);
        before = before ? both(l, b, near, before) : fold_next(l, near, b->expr->type);
        reach *= b->block;
        if (reach >= parts)
            return before;
        base += count;
        count = (count + b->block - 1) / b->block;
    }
}

const View *gen_look_back(Lower *l, const Expr *expr, const Env *env)
{
    int64_t parts;
    LookBack b = {.expr = expr, .env = env};
    b.group = l->inside[LOOP_WRG] && !l->inside[LOOP_LCL];
    b.start = eval(l, expr->arg[0], env);
    const View *own = fold_next(l, eval(l, expr->arg[2], env), expr->type);
    const Arith *i = eval_index(l, expr->arg[3], env);
    b.words = eval(l, expr->arg[4], env);
    if (l->failed)
        return own;
    bool turns = false; // a group that takes several parts could wait for one not begun
    for (int d = 0; d < 3; d++)
        turns |= l->options->global[d] != 0;
    if (!l->kernel || l->lanes || turns ||
        !arith_is_const(expr->arg[1]->type->len, &parts) ||
        word_at(l, &b, i, 0)->kind != V_MEM)
        return lower_fail(
            l, expr->span, "L030",
            "lookBack folds a known number of parts, one a group, whose words "
            "are in global memory");
    b.block = block_of(&b, parts);
    return fold_levels(l, &b, own, i, parts);
}
