// SPDX-License-Identifier: Apache-2.0
//
// A fold of products on matrix units: reduceMatrix of a block of accumulators in registers,
// over two tiles in local memory, becomes one statement that a warp does together.
//
//   method  The 32 items of a warp are 4 along x and 8 along y. Each holds, of every 8 x 8
//           outputs of the warp, two neighbours of one row: this is how the instructions
//           lay out what they sum up (fragments of m16n8k16 and its like, PTX ISA 9.7.14).
//           So the outputs of an item are pairs along x and single along y, as far apart as
//           the group has items, which the derivation writes as it writes any block.
//
// Where options do not ask for matrix units it is the loop that it stands for.

#include "lower/internal.h"

enum { LANES_X = 4, LANES_Y = 8, PAIR = 2 };

typedef struct {
    const Expr *map, *pair; // the function's map over the block; what it adds up
    const Param *k, *p;
    struct {
        const Expr *tile;
        bool turned;
    } side[2];
} MatrixFold;

static bool is_place(const MatrixFold *m, const Expr *e, int side)
{
    return e->kind == E_GET && e->index == side && e->arg[0]->kind == E_GET &&
           e->arg[0]->index == 1 && expr_is_use(e->arg[0]->arg[0], m->p);
}

// tile[place][k] or tile[k][place], converted or not.
static bool find_tile(MatrixFold *m, const Expr *e, int side)
{
    if (expr_is_op(e, OP_FLOAT))
        e = e->arg[0];
    if (e->kind != E_AT || e->arg[0]->kind != E_AT || e->arg[0]->arg[0]->kind != E_PARAM)
        return false;
    const Expr *far = e->arg[0]->arg[1], *near = e->arg[1];
    m->side[side].tile = e->arg[0]->arg[0];
    m->side[side].turned = expr_is_use(far, m->k);
    return m->side[side].turned ? is_place(m, near, side)
                                : is_place(m, far, side) && expr_is_use(near, m->k);
}

static bool is_map(const Expr *e)
{
    return e->kind == E_PATTERN &&
           (e->pattern == P_MAP || e->pattern == P_MAPSEQ || e->pattern == P_MAPUNROLL);
}

// A map over pairs of a sum and its place, in two dimensions or row by row.
static bool find_fold(MatrixFold *m, const Expr *expr)
{
    const Expr *map = expr->fun->arg[0], *inner = map;
    if (!is_map(map) || !expr_is(map->arg[0], P_ZIP) || map->arg[0]->narg != 2 ||
        map->arg[0]->dims != 2 || !expr_is_use(map->arg[0]->arg[0], expr->fun->params[0]))
        return false;
    if (map->dims == 1) {
        inner = map->fun->arg[0];
        if (!is_map(inner) || !expr_is_use(inner->arg[0], map->fun->params[0]))
            return false;
    }
    const Expr *sum = inner->fun->arg[0];
    m->map = map;
    m->k = expr->fun->params[1];
    m->p = inner->fun->params[0];
    if (sum->kind != E_OP || sum->op != OP_ADD || sum->arg[0]->kind != E_GET ||
        sum->arg[0]->index != 0 || !expr_is_use(sum->arg[0]->arg[0], m->p))
        return false;
    const Expr *product = sum->arg[1];
    return expr_is_op(product, OP_MUL) && find_tile(m, product->arg[0], 0) &&
           find_tile(m, product->arg[1], 1);
}

// The row or column of an output of the item; NULL: it is no index.
static const Arith *place_of(Lower *l, const View *places, int i, int j, int side)
{
    const View *at = view_elem(l, places, arith_const(l->ctx, i));
    at = view_elem(l, at, arith_const(l->ctx, j));
    const KExpr *e = view_read(l, view_get(l, at, side));
    return e->kind == K_INDEX ? e->arith : NULL;
}

// Where the outputs of the warp begin in one dimension, if those of the item are groups of
// as many as an item has there, each `step` from the one before, one group `apart` from the
// next: pairs of columns, one row, or two rows where four warps add up together.
static const Arith *warp_start(Lower *l, const View *places, int side, int n,
                               int64_t *apart)
{
    const bool two_rows = !side && l->options->group;
    const int lanes = side ? LANES_X : LANES_Y, near = side || two_rows ? PAIR : 1;
    const int step = two_rows ? LANES_Y : 1;
    const Arith *item = l->item[!side], *first = place_of(l, places, 0, 0, side);
    if (!item || !first)
        return NULL;
    const Arith *warp = arith_div(l->ctx, item, arith_const(l->ctx, lanes));
    const Arith *lane = arith_mod(l->ctx, item, arith_const(l->ctx, lanes));
    const Arith *of_warp = arith_mulc(l->ctx, warp, lanes * near);
    const Arith *of_lane = arith_mulc(l->ctx, lane, two_rows ? 1 : near);
    const Arith *start = arith_sub(l->ctx, arith_sub(l->ctx, first, of_warp), of_lane);
    if (arith_mentions(start, item))
        return NULL;
    *apart = LANES_X * PAIR;
    for (int i = 0; i < n; i++) {
        const Arith *at =
            side ? place_of(l, places, 0, i, side) : place_of(l, places, i, 0, side);
        int64_t far = 0;
        if (!at || !arith_is_const(arith_sub(l->ctx, at, first), &far))
            return NULL;
        if (i == near)
            *apart = far;
        if (far != i / near * *apart + i % near * step)
            return NULL;
    }
    return arith_add(l->ctx, start, of_warp);
}

// The operand of one side: its tile, from the warp's first row or column on.
static const KExpr *tile_from(Lower *l, const View *tile, bool turned, const Arith *start,
                              int64_t *row)
{
    Buffer *buffer = (Buffer *)tile->buffer;
    const Type *type = tile->type;
    if (tile->kind != V_MEM || buffer->space != MEM_LOCAL || type->kind != T_ARRAY ||
        type->elem->kind != T_ARRAY || !arith_is_const(type->elem->len, row))
        return NULL;
    *row = buffer->row ? buffer->row : *row;
    buffer->vector = MAX(buffer->vector, 16 / scalar_info[buffer->scalar].bytes);
    return NEW_OF(l->arena, KExpr, .kind = K_TILE, .type = type_scalar(buffer->scalar),
                  .buffer = buffer,
                  .arith = arith_add(l->ctx, tile->offset,
                                     arith_mulc(l->ctx, start, turned ? 1 : *row)));
}

enum { TOGETHER = 64, ROW_HALFS = 64 }; // rows, and products, of four warps at once

// Four warps go over the whole tile, which then lies as they read it.
static bool lie_together(Lower *l, Fragments *f, const KExpr *const *tile)
{
    const int64_t warps = l->kernel->local[0] * l->kernel->local[1] / 32;
    if (f->step != ROW_HALFS || warps % 4 || l->kernel->local[0] != LANES_X ||
        f->groups[0] % 2 || (f->groups[0] > 2 && f->apart[0] != LANES_Y * PAIR * warps))
        return false;
    for (int side = 0; side < 2; side++) {
        int64_t count;
        Buffer *buffer = (Buffer *)tile[side]->buffer;
        if (scalar_info[buffer->scalar].bytes != 2 ||
            !arith_is_const(buffer->count, &count) || count % (ROW_HALFS * ROW_HALFS))
            return false;
        TilePlaces *p = NEW_OF(l->arena, TilePlaces, .count = count / ROW_HALFS,
                               .turned = f->turned[side]);
        buffer->places = p;
        buffer->vector = MAX(buffer->vector, 1024 / 2);
        ((KExpr *)tile[side])->arith = arith_const(l->ctx, 0);
    }
    return f->together = true;
}

static const KExpr *matrix_value(Lower *l, const MatrixFold *m, const Expr *expr,
                                 const Env *env, const View *acc)
{
    int64_t rows = 0, columns = 0;
    Fragments *f = NEW(l->arena, Fragments);
    const KExpr **arg = NEW_ARRAY(l->arena, const KExpr *, 2);
    const View *places = eval(l, m->map->arg[0]->arg[1], env);
    if (!arith_is_const(acc->type->len, &rows) ||
        !arith_is_const(acc->type->elem->len, &columns) || columns % PAIR ||
        !arith_is_const(expr->arg[1]->type->len, &f->step))
        return NULL;
    f->groups[0] = (int)rows;
    f->groups[1] = (int)columns / PAIR;
    for (int side = 0; side < 2; side++) {
        const Arith *start =
            warp_start(l, places, side, side ? (int)columns : (int)rows, &f->apart[side]);
        const View *tile = eval(l, m->side[side].tile, env);
        f->turned[side] = m->side[side].turned;
        arg[side] =
            start ? tile_from(l, tile, f->turned[side], start, &f->row[side]) : NULL;
        if (!arg[side])
            return NULL;
    }
    if (l->options->group && (acc->buffer->scalar != S_FLOAT || !lie_together(l, f, arg)))
        return NULL;
    return NEW_OF(l->arena, KExpr, .kind = K_MATRIX,
                  .type = type_scalar(acc->buffer->scalar), .fragments = f, .n = 2,
                  .arg = arg);
}

bool gen_matrix(Lower *l, const Expr *expr, const Env *env, const View *acc)
{
    MatrixFold m;
    if (!l->options->matrix || acc->kind != V_MEM || acc->buffer->space != MEM_PRIVATE ||
        !find_fold(&m, expr))
        return false;
    const KExpr *value = matrix_value(l, &m, expr, env, acc);
    if (!value)
        return false;
    Stm *stm = stm_add(l, ST_MATRIX);
    stm->buffer = acc->buffer;
    stm->index = acc->offset;
    stm->value = value;
    return true;
}
