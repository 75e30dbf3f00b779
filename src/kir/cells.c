// SPDX-License-Identifier: Apache-2.0
//
// Cells: which of an array an item loads, and which another one stores.
//
//   method  Two accesses by different items, each with variables of its own, meet nowhere
//           if they differ in a coordinate by what is known of both: sides of conditions,
//           guards, ranges of loops. Of a store whose cell no other item has, a load of
//           that cell is the item's own.
//
// What is not proved is taken to meet.

#include "kir/cells.h"

#include "kir/passes.h"

enum { FACTS_MAX = 24 };

const CellArray *cells_array(const Cells *k, const Buffer *buffer)
{
    for (int i = 0; i < k->arrays.len; i++)
        if (k->arrays.at[i]->buffer == buffer)
            return k->arrays.at[i];
    return NULL;
}

static void touch(Cells *k, CellUses *list, const CellArray *array, const Arith *index,
                  const Type *type, const Side *side)
{
    const Stm **loops = COPY_ARRAY(k->arena, k->loops.at, k->loops.len);
    k->unknown |= type->kind == T_VECTOR;
    VEC_PUSH(
        k->arena, list,
        ((CellUse){array, index, side, k->kernel, loops, k->loops.len, k->part, k->at++}));
}

static void look_value(Cells *k, const KExpr *e)
{
    const CellArray *array = e->buffer ? cells_array(k, e->buffer) : NULL;
    for (int i = 0; i < kexpr_args(e); i++)
        look_value(k, e->arg[i]);
    if (array && e->kind == K_LOAD)
        touch(k, &k->loads, array, e->arith, e->type, e->side);
    else
        k->unknown |= array != NULL;
}

static void look_block(Cells *k, const Block *block);

static void look_stm(Cells *k, const Stm *stm)
{
    const CellArray *array = stm->buffer ? cells_array(k, stm->buffer) : NULL;
    if (stm->value)
        look_value(k, stm->value);
    if (array && stm->kind == ST_STORE) {
        touch(k, &k->stores, array, stm->index, stm->value->type, stm->side);
        k->unknown |= k->part == NO_PART || stm->atomic || stm->async;
    } else {
        k->unknown |= array != NULL;
    }
    if (stm->iter)
        VEC_PUSH(k->arena, &k->own, stm->iter);
    if (stm->kind == ST_FOR)
        VEC_PUSH(k->arena, &k->loops, stm);
    look_block(k, &stm->body);
    look_block(k, &stm->other);
    k->loops.len -= stm->kind == ST_FOR;
}

static void look_block(Cells *k, const Block *block)
{
    VEC_EACH(const Stm *, stm, block) {
        const int outer = k->part;
        for (int i = 0; i < k->parts.len; i++)
            if (k->parts.at[i].stm == stm)
                k->part = k->parts.at[i].part;
        look_stm(k, stm);
        k->part = outer;
    }
}

static const Arith *as_has(const Cells *k, const Arith *a, CellItem item)
{
    if (a && item == k->behind && k->number->kind == A_VAR)
        a = arith_subst(k->ctx, a, k->number, arith_addc(k->ctx, k->number, -k->steps));
    for (int i = 0; a && item != ANY && i < k->of[item].len; i++)
        a = arith_subst(k->ctx, a, k->own.at[i], k->of[item].at[i]);
    return a;
}

// Newer than what they are compared with: proofs begin with the newest.
void cells_items(Cells *k)
{
    for (int i = 0; i < k->own.len; i++)
        for (CellItem item = LOADS; item <= STORES; item++) {
            const Arith *a = k->own.at[i];
            VEC_PUSH(k->arena, &k->of[item],
                     arith_var_multiple(k->ctx, a->name, as_has(k, a->lo, item),
                                        as_has(k, a->hi, item), a->multiple));
        }
}

// What is known -----------------------------------------------------------------------

static const Arith *negative(const Cells *k, const Arith *a)
{
    return arith_mulc(k->ctx, a, -1);
}

static uint32_t newest(const Arith *a)
{
    uint32_t id = a->kind == A_SUM ? 0 : a->id;
    for (int i = 0; a->kind == A_SUM && i < a->n; i++)
        id = MAX(id, a->term[i].arg->id);
    return id;
}

static void add_fact(Cells *k, const Arith *a)
{
    int at = k->facts.len;
    VEC_PUSH(k->arena, &k->facts, a);
    for (; at > 0 && newest(k->facts.at[at - 1]) < newest(a); at--)
        k->facts.at[at] = k->facts.at[at - 1];
    k->facts.at[at] = a;
}

// Proofs use facts in their order: those of the newest variables come first, and what two
// of them say of older ones is a fact, too.
static void know(Cells *k, const Arith *a)
{
    ArithCtx *ctx = k->ctx;
    a = arith_simplify(ctx, a);
    const int before = k->facts.len;
    const Arith *said[FACTS_MAX];
    for (int i = 0; i < before && before < FACTS_MAX; i++)
        said[i] = k->facts.at[i];
    add_fact(k, a);
    for (int i = 0; i < before && before < FACTS_MAX; i++) {
        const Arith *both = arith_add(ctx, a, said[i]);
        if (newest(said[i]) == newest(a) && newest(both) < newest(a) &&
            !arith_is_const(both, NULL))
            add_fact(k, both);
    }
    arith_facts_reset(ctx, k->known);
    VEC_EACH(const Arith *, fact, &k->facts)
        arith_assume(ctx, fact);
}

static void know_zero(Cells *k, const Arith *a)
{
    know(k, a);
    know(k, negative(k, a));
}

static void assume_cond(Cells *k, const KExpr *cond, bool holds, CellItem item);

// That two integers are equal, or that they are not.
static void assume_equal(Cells *k, const KExpr *cond, bool equal, CellItem item)
{
    if (cond->arg[0]->kind != K_INDEX || cond->arg[1]->kind != K_INDEX)
        return;
    const Arith *d = arith_sub(k->ctx, cond->arg[0]->arith, cond->arg[1]->arith);
    d = as_has(k, d, item);
    if (equal)
        know_zero(k, d);
    else
        VEC_PUSH(k->arena, &k->unequal, d);
}

static void assume_op(Cells *k, const KExpr *cond, bool holds, CellItem item)
{
    if (cond->op == OP_NOT)
        assume_cond(k, cond->arg[0], !holds, item);
    else if (cond->op == (holds ? OP_AND : OP_OR))
        for (int i = 0; i < 2; i++)
            assume_cond(k, cond->arg[i], holds, item);
    else if (cond->op == OP_EQ || cond->op == OP_NE)
        assume_equal(k, cond, holds == (cond->op == OP_EQ), item);
}

static void assume_cond(Cells *k, const KExpr *cond, bool holds, CellItem item)
{
    if (cond->kind == K_OP)
        assume_op(k, cond, holds, item);
    for (int i = 0; cond->kind == K_COND && (holds || cond->n == 1) && i < cond->n; i++) {
        const Arith *a = as_has(k, cond->cond[i], item);
        know(k, holds ? a : arith_addc(k->ctx, negative(k, a), -1));
    }
}

// The outer ones first, by which what is inside is simplified.
static void assume_side(Cells *k, const Side *side, CellItem item)
{
    if (side)
        assume_side(k, side->outer, item);
    if (side)
        assume_cond(k, side->cond, side->holds, item);
}

// All that an access says of its item, or of another one that makes the same access.
void cells_assume(Cells *k, const CellUse *touch, CellItem item)
{
    ArithCtx *ctx = k->ctx;
    const int before = k->unequal.len;
    assume_side(k, touch->side, item);
    for (int i = before; i < k->unequal.len; i++) {
        const Arith *d = k->unequal.at[i];
        if (arith_nonneg(ctx, d))
            know(k, arith_addc(ctx, d, -1));
        else if (arith_nonneg(ctx, negative(k, d)))
            know(k, arith_addc(ctx, negative(k, d), -1));
    }
}

void cells_forget(Cells *k)
{
    arith_facts_reset(k->ctx, k->known);
    k->facts.len = k->unequal.len = 0;
}

// Where in the array an access is, by axis; returns how many there are.
static int coordinates(const Cells *k, const CellArray *array, const Arith *index,
                       const Arith *at[CELL_AXES_MAX])
{
    ArithCtx *ctx = k->ctx;
    const Type *type = array->type;
    const Arith *rest = arith_sub(ctx, index, array->offset);
    int n = 0;
    for (; type->elem->kind == T_ARRAY && n < CELL_AXES_MAX - 1; type = type->elem) {
        const Arith *row = mem_count(ctx, array->buffer, type->elem);
        at[n++] = arith_div(ctx, rest, row);
        rest = arith_mod(ctx, rest, row);
    }
    at[n] = rest;
    return n + 1;
}

static bool is_never_zero(const Cells *k, const Arith *d)
{
    ArithCtx *ctx = k->ctx;
    const int64_t fixed = d->kind == A_SUM ? d->value : 0;
    const int64_t step = fixed ? arith_multiple(ctx, arith_addc(ctx, d, -fixed)) : 0;
    bool never = arith_nonneg(ctx, arith_addc(ctx, d, -1)) ||
                 arith_nonneg(ctx, arith_addc(ctx, negative(k, d), -1)) ||
                 (step > 1 && fixed % step != 0);
    for (int i = 0; i < k->unequal.len && !never; i++)
        never = arith_equal(ctx, d, k->unequal.at[i]) ||
                arith_equal(ctx, negative(k, d), k->unequal.at[i]);
    return never;
}

// Do the items of a group that are not told apart by loops around an access each make it?
static bool is_repeated(const Cells *k, const CellUse *store)
{
    const Kernel *kernel = store->kernel;
    bool spread[3];
    for (int d = 0; d < 3; d++)
        spread[d] = (kernel->local[d] == 1 && !kernel->any_group) || (d == 1 && k->in_rows);
    for (int i = 0; i < store->nloop; i++)
        if (loop_is_of_items(store->loops[i]))
            spread[store->loops[i]->dim] = true;
    return !spread[0] || !spread[1] || !spread[2];
}

static bool is_zero(const Cells *k, const Arith *d)
{
    return arith_nonneg(k->ctx, d) && arith_nonneg(k->ctx, negative(k, d));
}

// Are an item that loads and one that stores the same, by what is known of both?
static bool is_same_item(const Cells *k, const CellUse *store)
{
    for (int i = 0; i < store->nloop; i++) {
        const Arith *iter = store->loops[i]->iter;
        if (!is_zero(k, arith_sub(k->ctx, as_has(k, iter, LOADS), as_has(k, iter, STORES))))
            return false;
    }
    return true;
}

// Is an index of the loops around a store another one in each of their iterations?
static bool is_injective(const CellUse *store, const Arith *index)
{
    Access access = {.index = index,
                     .width = 1,
                     .groups = true,
                     .loops = store->loops,
                     .nloop = store->nloop};
    return access_is_injective(&access);
}

// Where there is a store in the array, by what an access says of the item.
static int places_of(Cells *k, const CellUse *says, const CellUse *store,
                     const Arith *at[CELL_AXES_MAX])
{
    cells_assume(k, says, ANY);
    const int n = coordinates(k, store->array, store->index, at);
    cells_forget(k);
    return n;
}

// Is the cell of a store that of no other item, nor iteration, be it one that loads?
static bool is_sole(Cells *k, const CellUse *load, const CellUse *store)
{
    const Arith *a[CELL_AXES_MAX], *b[CELL_AXES_MAX];
    const int n = places_of(k, load, store, a);
    bool all = true;
    for (int i = 0; i < store->nloop; i++)
        all = all && arith_mentions(store->index, store->loops[i]->iter);
    if (all && is_injective(store, arith_sub(k->ctx, store->index, store->array->offset)))
        return true;
    places_of(k, store, store, b);
    for (int i = 0; i < n; i++)
        all = all && a[i] == b[i] && is_injective(store, a[i]);
    return all;
}

// Is the cell at those coordinates the one that the item itself may store to?
static bool is_own_cell(Cells *k, const CellUse *store, const Arith *const *at, int n)
{
    const Arith *own[CELL_AXES_MAX];
    coordinates(k, store->array, as_has(k, store->index, LOADS), own);
    for (int i = 0; i < n; i++)
        if (!is_zero(k, arith_sub(k->ctx, at[i], own[i])))
            return false;
    return true;
}

// Does an item load there and store here in one iteration of all loops around the store?
static bool is_before(const Cells *k, const CellUse *load, const CellUse *store)
{
    bool before =
        load->at < store->at && load->nloop >= store->nloop && !is_repeated(k, store);
    for (int i = 0; i < store->nloop && before; i++)
        before = load->loops[i] == store->loops[i];
    return before;
}

Meeting cells_meeting(Cells *k, const CellUse *load, const CellUse *store)
{
    ArithCtx *ctx = k->ctx;
    const Arith *a[CELL_AXES_MAX], *b[CELL_AXES_MAX];
    if (load->array != store->array ||
        (load->kernel != store->kernel && load->at < store->at))
        return CELLS_APART;
    cells_assume(k, load, LOADS);
    cells_assume(k, store, STORES);
    const int n = coordinates(k, load->array, as_has(k, load->index, LOADS), a);
    coordinates(k, store->array, as_has(k, store->index, STORES), b);
    bool apart = false;
    for (int i = 0; i < 2 * n && !apart; i++) { // again, knowing that the later ones agree
        const Arith *d = arith_sub(ctx, a[i % n], b[i % n]);
        apart = is_never_zero(k, d);
        if (!apart && i < n)
            know_zero(k, d);
    }
    bool own = !apart && is_before(k, load, store);
    const bool cell = own && is_own_cell(k, store, a, n);
    own = own && (cell || is_same_item(k, store));
    cells_forget(k);
    if (own && cell && !is_sole(k, load, store))
        own = false;
    return apart ? CELLS_APART : own ? CELLS_OWN : CELLS_MEET;
}

void cells_look(Cells *k, const Block *block)
{
    look_block(k, block);
    k->kernels++;
}

const Arith *mem_count(ArithCtx *ctx, const Buffer *buffer, const Type *type)
{
    const int dims = buffer->row ? type_depth(type) : 0;
    if (!buffer->row || dims < buffer->row_dims)
        return type_count(ctx, type);
    if (dims == buffer->row_dims)
        return arith_const(ctx, buffer->row);
    return arith_mul(ctx, type->len, mem_count(ctx, buffer, type->elem));
}
