// SPDX-License-Identifier: Apache-2.0
//
// Products: every element of one array with every element of another, each pair folded over
// a common length, as in a matrix product. Blocks of outputs in registers, tiles of both
// operands in local memory.
//
//   source  Lift MacroRules and ReuseRules (tiling, register blocking); Steuwer et al.,
//           "Matrix multiplication beyond auto-tuning", CASES 2016
//
// The function may be any pure one; nothing here knows of multiplication.

#include "rewrite/internal.h"
#include "rewrite/staging.h"

static Expr *index_pair(Rewrite *rw, const Arith *const *len)
{
    Param *i = fresh(rw, "i"), *j = fresh(rw, "j");
    Expr *pair = expr_tuple(rw->ir, (Expr *[]){use(rw, i), use(rw, j)}, 2);
    Expr *f = expr_lambda(rw->ir, (Param *[]){i, j}, 2, pair);
    return expr_pattern(rw->ir, P_ARRAY, 2, 0, len, f, NULL, 0);
}

static Expr *picked(Rewrite *rw, Param *array, Param *pair, int side)
{
    return expr_at(rw->ir, use(rw, array), get_of(rw, pair, side));
}

// The tile's elements by their numbers in it, so that whoever copies the tile elsewhere has
// only to look there.
Expr *rule_productTile(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t n = args->at[0], m = args->at[1];
    if (!is_dims(at, P_MAP, 1) || !is_dims(at->fun->arg[0], P_MAP, 1) || n < 1 || m < 1 ||
        n > 1 << 20 || m > 1 << 20)
        return NULL;
    const Expr *inner = at->fun->arg[0];
    Param *const x = at->fun->params[0], *const y = inner->fun->params[0];
    if (expr_mentions(inner->arg[0], x))
        return NULL;
    Param *xs = fresh(rw, "rows"), *ys = fresh(rw, "columns"), *t = fresh(rw, "t");
    Expr *body = expr_replace(rw->ir, inner->fun->arg[0], x, picked(rw, xs, t, 0));
    body = expr_replace(rw->ir, body, y, picked(rw, ys, t, 1));
    const Arith *len[] = {num(rw, n), num(rw, m)}, *rows = at->arg[0]->type->len,
                *columns = inner->arg[0]->type->len,
                *more[] = {missing(rw, rows, n), missing(rw, columns, m)};
    Expr *tile = map_by(rw, 2, t, body, index_pair(rw, len));
    Expr *right = split_unread(rw, copy_of(rw, inner->arg[0]), columns, m);
    Expr *line = map_by(rw, 1, ys, tile, right);
    Expr *left = split_unread(rw, copy_of(rw, at->arg[0]), rows, n);
    Expr *tiles = map_by(rw, 1, xs, line, left);
    return cut(rw, at, more, 2, make(rw, P_JOIN, 2, NULL, NULL, tiles));
}

// A place in an array, or what is there, however the array is laid out.
static bool is_access(const Expr *expr)
{
    if (expr->kind == E_PATTERN)
        return only_views(expr);
    bool access = expr->kind == E_PARAM || expr->kind == E_LITERAL || expr->kind == E_NUM ||
                  expr->kind == E_AT || expr->kind == E_GET || expr->kind == E_TUPLE ||
                  (expr->kind == E_OP && expr->narg);
    for (int i = 0; i < expr->narg && access; i++)
        access = is_access(expr->arg[i]);
    return access;
}

// f(value), without a name for an access: the code for equal ones is shared anyway.
static Expr *apply(Rewrite *rw, const Expr *fun, Expr *value)
{
    return is_access(value) ? call_all(rw, fun, (const Expr *[]){value})
                            : call(rw, fun, value);
}

// An element of an array, of a zip or map component by component, of a joined one by the
// row and the place in it.
static Expr *element(Rewrite *rw, const Expr *array, Expr *place)
{
    if (is_dims(array, P_MAP, 1))
        return apply(rw, array->fun, element(rw, array->arg[0], place));
    if (is_dims(array, P_ARRAY, 1))
        return apply(rw, array->fun, place);
    if (is_dims(array, P_JOIN, 1) && array->arg[0]->type) {
        const Arith *len = array->arg[0]->type->elem->len;
        Expr *far = make_op(rw, OP_DIV, place, expr_num(rw->ir, len));
        Expr *near = make_op(rw, OP_MOD, expr_clone(rw->ir, place), expr_num(rw->ir, len));
        return element(rw, element(rw, array->arg[0], far), near);
    }
    if (!is_dims(array, P_ZIP, 1) || array->narg > PARTS_MAX)
        return expr_at(rw->ir, copy_of(rw, array), place);
    Expr *part[PARTS_MAX];
    for (int i = 0; i < array->narg; i++)
        part[i] = element(rw, array->arg[i], expr_clone(rw->ir, place));
    return expr_tuple(rw->ir, part, array->narg);
}

// n elements of an array from first on, which may be a part's number times n.
static Expr *elements_from(Rewrite *rw, const Expr *array, Expr *first, const Arith *n)
{
    Param *j = fresh(rw, "j");
    Expr *place = make_op(rw, OP_ADD, first, use(rw, j));
    return array_by(rw, n, j, element(rw, array, place));
}

// The same product, of what g makes of the fold.
static Expr *product_of(Rewrite *rw, const Expr *at, Expr *body)
{
    const Expr *inner = at->fun->arg[0];
    Expr *line = map_by(rw, 1, inner->fun->params[0], body, copy_of(rw, inner->arg[0]));
    Expr *all = map_by(rw, 1, at->fun->params[0], line, copy_of(rw, at->arg[0]));
    return copy_of(rw, all);
}

// How long each of the parts of a fold is: of whole vectors where the fold is, unless they
// would then be empty; NULL: some would be.
static const Arith *part_length(Rewrite *rw, const Arith *len, int64_t parts)
{
    ArithCtx *c = rw->ir->arith;
    for (int i = 0; i < 3; i++) {
        const int64_t vector = (const int64_t[]){8, 4, 1}[i];
        if (divides(rw, vector, len) && arith_le(c, num(rw, vector * parts), len))
            return arith_mulc(c, arith_divc(c, len, vector * parts), vector);
    }
    return NULL;
}

// The parts of the fold are as long as each other; who joins them folds the few elements
// that are left.
Expr *rule_productSplit(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const int64_t parts = args->at[0];
    const Expr *inner = is_dims(at, P_MAP, 1) ? at->fun->arg[0] : NULL;
    Path where = {0};
    if (!inner || !is_dims(inner, P_MAP, 1) || parts < 1 ||
        !path_to_fold(inner->fun->arg[0], &where, is_regroupable))
        return NULL;
    const Expr *body = inner->fun->arg[0], *fold = path_find(body, &where);
    const Arith *len = fold->arg[1]->type->len, *n = part_length(rw, len, parts);
    if (!n || expr_mentions(inner->arg[0], at->fun->params[0]))
        return NULL;
    const Arith *done = arith_mulc(rw->ir->arith, n, parts);
    Param *k = fresh(rw, "k"), *p = fresh(rw, "p"), *t = fresh(rw, "t"),
          *u = fresh(rw, "u");
    Expr *part = elements_from(rw, fold->arg[1],
                               make_op(rw, OP_MUL, use(rw, k), expr_num(rw->ir, n)), n);
    Expr *each = product_of(rw, at, fold_like(rw, fold, P_REDUCE, part));
    Expr *partial = map_by(rw, 1, k, each, counting(rw, num(rw, parts)));
    Expr *sum = fold_like(rw, fold, P_REDUCE, get_of(rw, u, 1));
    if (done != len) {
        const Arith *left = arith_sub(rw->ir->arith, len, done);
        Expr *rest = elements_from(rw, fold->arg[1], expr_num(rw->ir, done), left);
        rest = fold_like(rw, fold, P_REDUCE, rest);
        sum = call_all(rw, fold->fun, (const Expr *[]){sum, rest});
    }
    Expr *whole = put_at(rw, body, &where, sum);
    whole = expr_replace(rw->ir, whole, at->fun->params[0], get_of(rw, t, 0));
    whole = expr_replace(rw->ir, whole, inner->fun->params[0], get_of(rw, u, 0));
    Expr *row = make1(rw, P_TRANSPOSE, get_of(rw, t, 1));
    Expr *columns = make_zip(rw, 1, (Expr *[]){copy_of(rw, inner->arg[0]), row}, 2);
    whole = map_by(rw, 1, u, whole, columns);
    Expr *rows[] = {copy_of(rw, at->arg[0]), make1(rw, P_TRANSPOSE, use(rw, p))};
    whole = map_by(rw, 1, t, whole, make_zip(rw, 1, rows, 2));
    return expr_let(rw->ir, p, partial, whole);
}

static Expr *filled(Rewrite *rw, const Expr *like, int dims, const Expr *value)
{
    const Arith *len[DIMS_MAX];
    Param *index[DIMS_MAX];
    for (int i = 0; i < dims; i++) {
        len[i] = len_of(like, i);
        index[i] = fresh(rw, "i");
    }
    Expr *f = expr_lambda(rw->ir, index, dims, start_value(rw, value));
    return expr_pattern(rw->ir, P_ARRAY, dims, 0, len, f, NULL, 0);
}

// The fold of a block's function, which may go on with what it gives; NULL: there is none.
static const Expr *block_fold(const Expr *map)
{
    const Expr *fold = fold_inside(map->fun->arg[0]);
    const Param *t = map->fun->params[0];
    return fold && type_is_scalar(fold->type) && !expr_mentions(fold->arg[0], t) ? fold
                                                                                 : NULL;
}

// The rest of the function, for each output and what was folded for it.
static Expr *after_fold(Rewrite *rw, const Expr *at, const Expr *fold, Param *sums)
{
    Param *p = fresh(rw, "p"), *sum = fresh(rw, "sum");
    Expr *body = with_name(rw, copy_of(rw, at->fun->arg[0]), fold, sum);
    Expr *get = get_of(rw, p, 0);
    body = expr_replace(rw->ir, body, sum, get);
    get = get_of(rw, p, 1);
    body = expr_replace(rw->ir, body, at->fun->params[0], get);
    Expr *pairs =
        make_zip(rw, at->dims, (Expr *[]){use(rw, sums), copy_of(rw, at->arg[0])}, 2);
    return map_by(rw, at->dims, p, body, pairs);
}

Expr *rule_mapReduceBlock(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *reduce = expr_is(at, P_MAP) ? block_fold(at) : NULL;
    if (!reduce)
        return NULL;
    const Param *t = at->fun->params[0];
    Param *acc = fresh(rw, "acc"), *k = fresh(rw, "k"), *p = fresh(rw, "p");
    Expr *own = get_of(rw, p, 1);
    Expr *in = expr_replace(rw->ir, reduce->arg[1], t, own);
    const Expr *part[] = {get_of(rw, p, 0), element(rw, in, use(rw, k))};
    const Expr *add = expr_replace(rw->ir, reduce->fun, t, own);
    Expr *step = make_lambda(rw, p, call_all(rw, add, part));
    Expr *pairs =
        make_zip(rw, at->dims, (Expr *[]){use(rw, acc), copy_of(rw, at->arg[0])}, 2);
    Expr *body = make_map(rw, at->dims, step, pairs);
    Expr *f = expr_lambda(rw->ir, (Param *[]){acc, k}, 2, body);
    Expr *block = make_reduce(rw, P_REDSEQ, f, filled(rw, at, at->dims, reduce->arg[0]),
                              counting(rw, reduce->arg[1]->type->len));
    if (reduce == at->fun->arg[0])
        return block;
    Param *sums = fresh(rw, "sums");
    return expr_let(rw->ir, sums, block, after_fold(rw, at, reduce, sums));
}

// Tiles in local memory ------------------------------------------------------------------

const Expr *group_source(const Rewrite *rw, const Param *param)
{
    for (const Context *c = rw->context; c; c = c->outer)
        if (c->child == CHILD_FUN && expr_is(c->expr, P_MAPWRG) &&
            c->expr->fun->params[0] == param)
            return data_of(c->expr);
    return NULL;
}

// What differs between the items of a group, or within one: names that are bound below its
// map. k is none of them.
static void note_bound(const Expr *expr, void *staging)
{
    Staging *s = staging;
    for (int i = 0; i < expr->nparam; i++)
        VEC_PUSH(s->rw->ir->arena, &s->bound, expr->params[i]);
    if (expr->kind == E_LET)
        VEC_PUSH(s->rw->ir->arena, &s->bound, expr->param);
}

static void find_bound(Staging *s, const Expr *at, const Expr *body)
{
    for (const Context *c = s->rw->context; c; c = c->outer) {
        bool fun = c->child == CHILD_FUN && c->expr->fun;
        if (fun && expr_is(c->expr, P_MAPWRG))
            break;
        for (int i = 0; fun && i < c->expr->fun->nparam; i++)
            VEC_PUSH(s->rw->ir->arena, &s->bound, c->expr->fun->params[i]);
        if (c->expr->kind == E_LET && c->child == 1)
            VEC_PUSH(s->rw->ir->arena, &s->bound, c->expr->param);
    }
    VEC_PUSH(s->rw->ir->arena, &s->bound, at->fun->params[0]);
    expr_each(body, note_bound, s);
}

static bool varies_by_item(const Staging *s, const Expr *expr)
{
    for (int i = 0; i < s->bound.len; i++)
        if (expr_mentions(expr, s->bound.at[i]) &&
            !expr_find(expr, expr_binds, s->bound.at[i]))
            return true;
    return false;
}

// The first element of an array of the group's in an expression that is another one for
// each item: param[i].
static const Expr *row_of(const Staging *s, const Expr *expr)
{
    if (expr->kind == E_AT && expr->arg[0]->kind == E_PARAM &&
        !expr_mentions(expr->arg[1], s->k) && varies_by_item(s, expr->arg[1]) &&
        group_source(s->rw, expr->arg[0]->param))
        return expr;
    const Expr *found = NULL;
    for (int i = 0; i < expr->narg && !found; i++)
        found = row_of(s, expr->arg[i]);
    return expr->fun && !found ? row_of(s, expr->fun) : found;
}

// Element k of the row, which there is whatever else holds.
static bool is_element(const Staging *s, const Expr *expr, const Expr *row)
{
    return expr->kind == E_AT && expr_behind_gets(expr->arg[0]) == row &&
           expr_is_use(expr->arg[1], s->k);
}

// Is it a scalar made of k and one row alone, and of what is the same for the group? A
// conversion is done when the tile is read, and what is read under a guard stays there but
// for an element of the row. Then the row; from: the scalar with a name for the row.
static const Expr *row_access(const Staging *s, const Expr *expr, bool guarded, Expr **from)
{
    bool scalar = expr->type && expr->type->kind == T_SCALAR;
    bool converts = expr->kind == E_OP && expr->narg == 1 && scalar &&
                    expr->op >= OP_BOOL && expr->op < OP_BOOL + SCALARS;
    if (!scalar || converts || !expr_mentions(expr, s->k))
        return NULL;
    const Expr *pick = row_of(s, expr);
    if (!pick || (guarded && !is_element(s, expr, pick)))
        return NULL;
    *from = with_name(s->rw, copy_of(s->rw, expr), pick, s->row);
    return expr_find(*from, expr_is_at, NULL) && !varies_by_item(s, *from) ? pick : NULL;
}

static int find_operand(const Staging *s, const Param *array, const Expr *from)
{
    for (int i = 0; i < s->n; i++)
        if (s->operand[i].array == array && expr_equal(s->operand[i].from, from))
            return i;
    return -1;
}

// The outermost scalars that are made so, each once.
static void note_operands(Staging *s, const Expr *expr, bool guarded)
{
    Expr *from;
    int64_t rows;
    const Expr *pick = row_access(s, expr, guarded, &from);
    if (!pick) {
        for (int i = 0; i < expr->narg; i++)
            note_operands(s, expr->arg[i], guarded || expr_guards(expr, i));
        if (expr->fun)
            note_operands(s, expr->fun, guarded);
        return;
    }
    const Param *array = pick->arg[0]->param;
    if (find_operand(s, array, from) >= 0 || s->n == OPERANDS_MAX ||
        !arith_is_const(pick->arg[0]->type->len, &rows))
        return;
    int i = s->n++;
    s->operand[i].array = array;
    s->operand[i].from = from;
    s->operand[i].turned = is_turned(s->rw, group_source(s->rw, array), from, s->row, s->k,
                                     &s->operand[i].odd);
    s->operand[i].rows = rows;
}

// What is made of array[i] and k becomes tile[k][i].
static Expr *redirect(Staging *s, Expr *expr, Param *within, bool guarded)
{
    Expr *from;
    const Expr *pick = row_access(s, expr, guarded, &from);
    int i = pick ? find_operand(s, pick->arg[0]->param, from) : -1;
    if (i >= 0) {
        Expr *row = expr_at(s->rw->ir, use(s->rw, s->operand[i].tile), use(s->rw, within));
        return expr_at(s->rw->ir, row, copy_of(s->rw, pick->arg[1]));
    }
    for (int a = 0; a < expr->narg; a++)
        expr->arg[a] = redirect(s, expr->arg[a], within, guarded || expr_guards(expr, a));
    if (expr->fun)
        expr->fun = redirect(s, expr->fun, within, guarded);
    return expr;
}

Expr *arith_of(Rewrite *rw, Op op, Expr *a, int64_t b)
{
    return make_op(rw, op, a, expr_literal(rw->ir, (double)b, false));
}

Expr *number_of(Rewrite *rw, Param *part, int64_t step, Expr *within)
{
    return make_op(rw, OP_ADD, arith_of(rw, OP_MUL, use(rw, part), step), within);
}

int64_t lanes_of(const Staging *s, int64_t count, int64_t side, int64_t most)
{
    int64_t items = s->items[0] * s->items[1];
    for (int64_t lanes = most; lanes > 0; lanes /= 2)
        if (side % lanes == 0 && count % (lanes * items) == 0)
            return lanes;
    return 0;
}

Expr *copied_together(Staging *s, Expr *flat, int64_t lanes)
{
    Rewrite *rw = s->rw;
    const int64_t part[] = {lanes, s->items[0], s->items[1]};
    for (int i = 0; i < COUNTOF(part); i++)
        flat = make_sized(rw, P_SPLIT, num(rw, part[i]), flat);
    static const Pattern pattern[] = {P_MAPUNROLL, P_MAPLCL, P_MAPLCL, P_MAPUNROLL};
    static const int dim[] = {0, 0, 1, 0};
    Expr *f = make_identity(rw), *all = NULL;
    for (int i = 0; i < COUNTOF(pattern); i++) {
        bool last = i + 1 == COUNTOF(pattern);
        Param *row = fresh(rw, "r");
        Expr *in = last ? flat : use(rw, row);
        all = expr_pattern(rw->ir, pattern[i], 1, dim[i], NULL, f, &in, 1);
        f = last ? NULL : make_lambda(rw, row, all);
    }
    for (int i = 0; i < COUNTOF(part); i++)
        all = make1(rw, P_JOIN, all);
    return all;
}

// Which tile of the fold: number part, or the one that ends where the fold does.
typedef struct {
    Param *part;        // NULL: it
    const Arith *first; // begins there,
    const Arith *done;  // so many of its elements are folded already,
    const Arith *left;  // and so many are not
    const Arith *last;  // element of the fold; NULL: the tile has none beyond it
} TilePlace;

static Expr *element_of(const Staging *s, const TilePlace *tile, Expr *within)
{
    Rewrite *rw = s->rw;
    if (tile->part)
        return number_of(rw, tile->part, s->step, within);
    Expr *at = make_op(rw, OP_ADD, within, expr_num(rw->ir, tile->first));
    return tile->last ? make_op(rw, OP_MINIMUM, at, expr_num(rw->ir, tile->last)) : at;
}

// The tile of an operand: [step][rows], read along what is contiguous.
static Expr *staged(Staging *s, int i, const TilePlace *at)
{
    Rewrite *rw = s->rw;
    int64_t rows = s->operand[i].rows, count = rows * s->step;
    bool turned = s->operand[i].turned;
    int64_t side = turned ? rows : s->step;
    int64_t lanes = lanes_of(s, count, side, s->operand[i].odd ? 1 : STAGED_LANES);
    s->ok &= lanes > 0;
    if (!s->ok)
        return NULL;
    Param *q = fresh(rw, "q");
    Expr *far = arith_of(rw, OP_DIV, use(rw, q), side);
    Expr *near = arith_of(rw, OP_MOD, use(rw, q), side);
    Expr *row = expr_at(rw->ir, expr_param(rw->ir, (Param *)s->operand[i].array),
                        turned ? near : far);
    Expr *from = expr_replace(rw->ir, s->operand[i].from, s->row, row);
    from = expr_replace(rw->ir, from, s->k, element_of(s, at, turned ? far : near));
    Expr *flat = array_by(rw, num(rw, count), q, from);
    Expr *tile = make_sized(rw, P_SPLIT, num(rw, side), copied_together(s, flat, lanes));
    return make1(rw, P_TOLOCAL, turned ? tile : make1(rw, P_TRANSPOSE, tile));
}

bool find_items(Staging *s)
{
    s->items[0] = s->items[1] = 0;
    for (const Context *c = s->rw->context; c; c = c->outer) {
        if (c->child != CHILD_FUN || expr_is(c->expr, P_MAPWRG))
            continue;
        if (!expr_is(c->expr, P_MAPLCL) || c->expr->par > 1)
            return s->items[0] && s->items[1];
        if (!arith_is_const(c->expr->type->len, &s->items[c->expr->par]))
            return false;
    }
    return s->items[0] && s->items[1];
}

// The fold over one tile of each operand, which are copied before; NULL: they cannot be.
static Expr *fold_tile(Staging *s, const Expr *at, Expr *acc, const TilePlace *tile)
{
    Rewrite *rw = s->rw;
    Param *within = fresh(rw, "k"), *number = fresh(rw, "i");
    for (int i = 0; i < s->n; i++)
        s->operand[i].tile = fresh(rw, "tile");
    Expr *body = copy_of(rw, at->fun->arg[0]);
    expr_each(body, note_bound, s);
    body = redirect(s, body, within, false);
    body = expr_replace(rw->ir, body, s->k, element_of(s, tile, use(rw, within)));
    Expr *f = expr_lambda(rw->ir, (Param *[]){at->fun->params[0], within}, 2, body);
    Expr *numbers;
    if (tile->part) {
        numbers = counting(rw, num(rw, s->step));
    } else {
        Expr *skip = make_op(rw, OP_ADD, use(rw, number), expr_num(rw->ir, tile->done));
        numbers = array_by(rw, tile->left, number, skip);
    }
    body = make_reduce(rw, P_REDSEQ, expr_clone(rw->ir, f), acc, numbers);
    for (int i = s->n - 1; i >= 0 && s->ok; i--) {
        Expr *copied = staged(s, i, tile);
        body = copied ? expr_let(rw->ir, s->operand[i].tile, copied, body) : NULL;
    }
    return s->ok ? body : NULL;
}

// What is left behind the last whole tile is folded from a tile that ends there, of which
// the beginning was folded before. Where it is not known whether anything is left, that is
// a loop of one turn or none.
static Expr *fold_left(Staging *s, const Expr *at, Expr *all)
{
    Rewrite *rw = s->rw;
    ArithCtx *c = rw->ir->arith;
    const Arith *len = at->arg[1]->type->len, *step = num(rw, s->step);
    const Arith *left = arith_mod(c, len, step);
    const Arith *first = arith_max(c, arith_sub(c, len, step), num(rw, 0));
    const Arith *done = arith_sub(c, arith_sub(c, len, left), first);
    TilePlace place = {NULL, first, done, left, NULL};
    if (!arith_le(c, step, len))
        place.last = arith_addc(c, len, -1);
    if (arith_is_const(left, NULL))
        return fold_tile(s, at, all, &place);
    Param *acc = fresh(rw, "acc"), *turn = fresh(rw, "turn");
    Expr *body = fold_tile(s, at, use(rw, acc), &place);
    Expr *f = body ? expr_lambda(rw->ir, (Param *[]){acc, turn}, 2, body) : NULL;
    return f ? make_reduce(rw, P_REDSEQ, f, all,
                           counting(rw, arith_ceil_div(c, left, step)))
             : NULL;
}

Expr *rule_stageTiles(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const int64_t step = args->at[0];
    if (!expr_is(at, P_REDSEQ) || !is_dims(at->arg[1], P_ARRAY, 1) || step < 1 ||
        !arith_le(rw->ir->arith, num(rw, 1), at->arg[1]->type->len) ||
        !expr_is_use(at->arg[1]->fun->arg[0], at->arg[1]->fun->params[0]))
        return NULL;
    int64_t len;
    if (arith_is_const(at->arg[1]->type->len, &len) && len < step)
        return NULL;
    Staging s = {.rw = rw, .k = at->fun->params[1], .step = step, .ok = true};
    if (!find_items(&s))
        return NULL;
    s.row = fresh(rw, "row");
    find_bound(&s, at, at->fun->arg[0]);
    note_operands(&s, at->fun->arg[0], false);
    Param *acc = fresh(rw, "acc"), *part = fresh(rw, "part");
    Expr *body = s.n ? fold_tile(&s, at, use(rw, acc), &(TilePlace){.part = part}) : NULL;
    if (!body)
        return NULL;
    const Arith *parts = arith_divc(rw->ir->arith, at->arg[1]->type->len, step);
    Expr *f = expr_lambda(rw->ir, (Param *[]){acc, part}, 2, body);
    Expr *all = make_reduce(rw, P_REDSEQ, f, copy_of(rw, at->arg[0]), counting(rw, parts));
    return divides(rw, step, at->arg[1]->type->len) ? all : fold_left(&s, at, all);
}
