// SPDX-License-Identifier: Apache-2.0
//
// Products on matrix units: the fold of a block that adds up products of a factor of its
// row and a factor of its column becomes a loop over tiles of both factors in local memory,
// whose inner fold a warp can do at once.
//
// A factor may be any function of its row, its place in the fold, and what does not change:
// what is copied to the tile is its value, so that whatever stands before a product (a
// scale, a conversion, a sum of inputs) is computed once for the group. Where the tiles do
// not divide the fold, the last one is filled up by products of zeros.

#include "rewrite/internal.h"
#include "rewrite/staging.h"

enum { SIDES = 2 }; // rows, columns

typedef struct {
    Staging staging;
    Param *pair; // of what was summed up, and the place of the output: row, column
    Param *k, *part, *within;
    const Arith *len;
    struct {
        const Expr *value; // as it is multiplied, but for a conversion
        Scalar scalar;     // its type; BOOL: it is no number
        Op cast;           // OPS: none
        bool turned;
        int64_t places; // rows or columns of the group
        Param *tile;
    } factor[SIDES];
} MatrixStaging;

// Is it component `side` of the place?
static bool is_place(const MatrixStaging *m, const Expr *e, int side)
{
    return e->kind == E_GET && e->index == side && e->arg[0]->kind == E_GET &&
           e->arg[0]->index == 1 && expr_is_use(e->arg[0]->arg[0], m->pair);
}

// Does it depend on the pair only by that component of the place?
static bool only_place(const MatrixStaging *m, const Expr *e, int side)
{
    if (is_place(m, e, side))
        return true;
    if (expr_is_use(e, m->pair))
        return false;
    for (int i = 0; i < e->narg; i++)
        if (!only_place(m, e->arg[i], side))
            return false;
    return !e->fun || only_place(m, e->fun, side);
}

// Takes both factors. A conversion of a short type is what a product of the wider one does
// by itself. Integers of 8 bits are numbers of the other factor's short type, too.
static void take_factors(MatrixStaging *m, const Expr *const factor[SIDES])
{
    Rewrite *rw = m->staging.rw;
    Scalar from[SIDES] = {expr_converted(factor[0]), expr_converted(factor[1])};
    for (int side = 0; side < SIDES; side++) {
        const Expr *e = factor[side];
        Scalar other = from[!side];
        bool tiny = scalar_info[from[side]].integer && scalar_info[from[side]].bytes == 1 &&
                    scalar_is_short(other);
        m->factor[side].cast = OPS;
        if (tiny || scalar_is_short(from[side])) {
            m->factor[side].cast = OP_FLOAT;
            e = e->arg[0];
        }
        if (tiny)
            e = make_op(rw, op_cast(other), copy_of(rw, e), NULL);
        m->factor[side].value = e;
        m->factor[side].scalar = tiny                        ? other
                                 : e->type->kind == T_SCALAR ? e->type->scalar
                                                             : S_BOOL;
    }
}

// Are there instructions for factors and sums of these types?
static bool has_unit(const MatrixStaging *m, const Type *sum)
{
    Scalar scalar = m->factor[0].scalar;
    if (scalar != m->factor[1].scalar)
        return false;
    if (scalar_is_short(scalar) && sum->scalar == S_FLOAT)
        return true;
    return sum->scalar == scalar &&
           (scalar == S_HALF || scalar == S_FLOAT || scalar == S_DOUBLE);
}

static bool is_sum(const MatrixStaging *m, const Expr *e)
{
    return e->kind == E_GET && e->index == 0 && expr_is_use(e->arg[0], m->pair);
}

// Is it sum + x * y, in any order, with a factor for each side?
static bool find_factors(MatrixStaging *m, const Expr *body)
{
    const Expr *x = NULL, *y = NULL;
    if (body->kind != E_OP || body->type->kind != T_SCALAR)
        return false;
    if (body->op == OP_FMA && is_sum(m, body->arg[2])) {
        x = body->arg[0];
        y = body->arg[1];
    }
    for (int i = 0; i < 2 && body->op == OP_ADD && !x; i++) {
        const Expr *product = body->arg[1 - i];
        if (is_sum(m, body->arg[i]) && expr_is_op(product, OP_MUL)) {
            x = product->arg[0];
            y = product->arg[1];
        }
    }
    if (!x)
        return false;
    bool swap = !only_place(m, x, 0);
    take_factors(m, (const Expr *const[]){swap ? y : x, swap ? x : y});
    for (int side = 0; side < SIDES; side++)
        if (!only_place(m, m->factor[side].value, side))
            return false;
    return has_unit(m, body->type);
}

// The array of the group's that a factor takes its row from: param[place].
static const Expr *pick_of(const MatrixStaging *m, const Expr *e, int side)
{
    if (e->kind == E_AT && e->arg[0]->kind == E_PARAM && is_place(m, e->arg[1], side))
        return e;
    const Expr *found = NULL;
    for (int i = 0; i < e->narg && !found; i++)
        found = pick_of(m, e->arg[i], side);
    return found || !e->fun ? found : pick_of(m, e->fun, side);
}

static bool find_layout(MatrixStaging *m, int side)
{
    Rewrite *rw = m->staging.rw;
    const Expr *value = m->factor[side].value, *pick = pick_of(m, value, side);
    const Expr *source = pick ? group_source(rw, pick->arg[0]->param) : NULL;
    if (!pick || !arith_is_const(pick->arg[0]->type->len, &m->factor[side].places))
        return false;
    bool odd;
    Param *row = fresh(rw, "row");
    Expr *from = with_name(rw, copy_of(rw, value), pick, row);
    m->factor[side].turned = source && is_turned(rw, source, from, row, m->k, &odd);
    return true;
}

// The factor's value at a row or column of the group, and at a place in the fold.
static Expr *value_at(MatrixStaging *m, int side, Expr *place, Expr *k)
{
    Rewrite *rw = m->staging.rw;
    Param *at = fresh(rw, "at");
    Expr *own = expr_get(rw->ir, get_of(rw, m->pair, 1), side);
    Expr *value = with_name(rw, copy_of(rw, m->factor[side].value), own, at);
    value = expr_replace(rw->ir, value, at, place);
    return expr_replace(rw->ir, value, m->k, k);
}

// Zero beyond the end of the fold, where the last value there is loaded.
static Expr *filled_up(MatrixStaging *m, int side, Expr *place, Expr *k)
{
    Rewrite *rw = m->staging.rw;
    if (divides(rw, m->staging.step, m->len))
        return value_at(m, side, place, k);
    const Arith *last = arith_addc(rw->ir->arith, m->len, -1);
    Expr *inside = make_op(rw, OP_MINIMUM, expr_clone(rw->ir, k), expr_num(rw->ir, last));
    Expr *is_in = make_op(rw, OP_LE, k, expr_num(rw->ir, last));
    Scalar scalar = m->factor[side].scalar;
    Expr *zero = cast_value(rw, scalar, S_FLOAT, expr_literal(rw->ir, 0, true));
    return expr_op(rw->ir, OP_SELECT, is_in, value_at(m, side, place, inside), zero);
}

// The tile of a factor, [places][step], or [step][places] where that is how it is read.
static Expr *tile_of(MatrixStaging *m, int side)
{
    Staging *s = &m->staging;
    Rewrite *rw = s->rw;
    bool turned = m->factor[side].turned;
    int64_t count = m->factor[side].places * s->step;
    int64_t row = turned ? m->factor[side].places : s->step;
    int64_t most = 16 / scalar_info[m->factor[side].scalar].bytes;
    int64_t lanes = lanes_of(s, count, row, most);
    if (!lanes)
        return NULL;
    Param *q = fresh(rw, "q");
    Expr *far = arith_of(rw, OP_DIV, use(rw, q), row);
    Expr *near = arith_of(rw, OP_MOD, use(rw, q), row);
    Expr *k = number_of(rw, m->part, s->step, turned ? far : near);
    Expr *value = filled_up(m, side, turned ? near : far, k);
    Expr *flat = array_by(rw, num(rw, count), q, value);
    return make1(rw, P_TOLOCAL,
                 make_sized(rw, P_SPLIT, num(rw, row), copied_together(s, flat, lanes)));
}

// An element of a tile as it is multiplied.
static Expr *tile_at(MatrixStaging *m, int side, Param *pair)
{
    Rewrite *rw = m->staging.rw;
    bool turned = m->factor[side].turned;
    Expr *place = expr_get(rw->ir, get_of(rw, pair, 1), side);
    Expr *k = use(rw, m->within);
    Expr *tile = use(rw, m->factor[side].tile);
    Expr *e =
        expr_at(rw->ir, expr_at(rw->ir, tile, turned ? k : place), turned ? place : k);
    Op cast = m->factor[side].cast;
    return cast == OPS ? e : make_op(rw, cast, e, NULL);
}

static Expr *inner_fold(MatrixStaging *m, const Expr *map, Param *sums)
{
    Rewrite *rw = m->staging.rw;
    Param *acc = fresh(rw, "acc"), *pair = fresh(rw, "p");
    Expr *product = make_op(rw, OP_MUL, tile_at(m, 0, pair), tile_at(m, 1, pair));
    Expr *sum = make_op(rw, OP_ADD, get_of(rw, pair, 0), product);
    Expr *pairs =
        make_zip(rw, 2, (Expr *[]){use(rw, acc), copy_of(rw, data_of(map)->arg[1])}, 2);
    Expr *body = map_by(rw, 2, pair, sum, pairs);
    Expr *f = expr_lambda(rw->ir, (Param *[]){acc, m->within}, 2, body);
    return make_reduce(rw, P_REDMATRIX, f, use(rw, sums),
                       counting(rw, num(rw, m->staging.step)));
}

// Is it what mapReduceBlock makes, with factors that there are instructions for?
static bool find_matrix(MatrixStaging *m, const Expr *at)
{
    const Expr *map = at->fun->arg[0], *acc = NULL;
    if (!is_dims(map, P_MAP, 2) || !is_dims(data_of(map), P_ZIP, 2) ||
        data_of(map)->narg != 2)
        return false;
    acc = data_of(map)->arg[0];
    m->pair = map->fun->params[0];
    return expr_is_use(acc, at->fun->params[0]) &&
           !expr_mentions(map->fun, at->fun->params[0]) &&
           find_factors(m, map->fun->arg[0]) && find_layout(m, 0) && find_layout(m, 1);
}

Expr *rule_matrixTiles(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_REDSEQ) || !is_dims(at->arg[1], P_ARRAY, 1) || args->at[0] < 1 ||
        !expr_is_use(at->arg[1]->fun->arg[0], at->arg[1]->fun->params[0]))
        return NULL;
    MatrixStaging m = {.staging = {.rw = rw, .step = args->at[0]},
                       .k = at->fun->params[1],
                       .part = fresh(rw, "part"),
                       .within = fresh(rw, "k"),
                       .len = at->arg[1]->type->len};
    if (!find_items(&m.staging) || !find_matrix(&m, at))
        return NULL;
    Param *sums = fresh(rw, "sums");
    for (int side = 0; side < SIDES; side++)
        m.factor[side].tile = fresh(rw, "tile");
    Expr *body = inner_fold(&m, at->fun->arg[0], sums);
    for (int side = SIDES - 1; side >= 0; side--) {
        Expr *tile = tile_of(&m, side);
        if (!tile)
            return NULL;
        body = expr_let(rw->ir, m.factor[side].tile, tile, body);
    }
    const Arith *parts =
        arith_ceil_div(rw->ir->arith, m.len, arith_const(rw->ir->arith, m.staging.step));
    Expr *f = expr_lambda(rw->ir, (Param *[]){sums, m.part}, 2, body);
    return make_reduce(rw, P_REDSEQ, f, copy_of(rw, at->arg[0]), counting(rw, parts));
}
