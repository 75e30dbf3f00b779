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
    return expr_at(rw->ir, use(rw, array), expr_get(rw->ir, use(rw, pair), side));
}

// Parts of n elements of in, the last one filled up.
static Expr *parts_of(Rewrite *rw, const Expr *in, int64_t n, const Arith **more)
{
    *more = missing(rw, in->type->len, n);
    Expr *whole = pad_far(rw, 1, more, copy_of(rw, in));
    return make_sized(rw, P_SPLIT, num(rw, n), whole);
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
    const Arith *len[] = {num(rw, n), num(rw, m)}, *more[2];
    Expr *tile = make_map(rw, 2, make_lambda(rw, t, body), index_pair(rw, len));
    Expr *right = parts_of(rw, inner->arg[0], m, &more[1]);
    Expr *line = make_map(rw, 1, make_lambda(rw, ys, tile), right);
    Expr *left = parts_of(rw, at->arg[0], n, &more[0]);
    Expr *tiles = make_map(rw, 1, make_lambda(rw, xs, line), left);
    return cut(rw, at, more, 2, make(rw, P_JOIN, 2, NULL, NULL, tiles));
}

// Element k of an array, of a zip or map component by component.
static Expr *element(Rewrite *rw, const Expr *array, Param *k)
{
    if (is_dims(array, P_MAP, 1)) {
        Expr *e = element(rw, array->arg[0], k);
        return call(rw, array->fun, e);
    }
    if (!is_dims(array, P_ZIP, 1) || array->narg > PARTS_MAX)
        return expr_at(rw->ir, copy_of(rw, array), use(rw, k));
    Expr *part[PARTS_MAX];
    for (int i = 0; i < array->narg; i++)
        part[i] = element(rw, array->arg[i], k);
    return expr_tuple(rw->ir, part, array->narg);
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
    const Expr *body = map->fun->arg[0];
    const Expr *fold =
        is(body, P_REDSEQ) || is(body, P_REDUCE) ? body : fold_to_name(body, 0);
    const Param *t = map->fun->params[0];
    return fold && type_is_scalar(fold->type) && !expr_mentions(fold->arg[0], t) ? fold
                                                                                 : NULL;
}

// The rest of the function, for each output and what was folded for it.
static Expr *after_fold(Rewrite *rw, const Expr *at, const Expr *fold, Param *sums)
{
    Param *p = fresh(rw, "p"), *sum = fresh(rw, "sum");
    Expr *body = with_name(rw, copy_of(rw, at->fun->arg[0]), fold, sum);
    Expr *get = expr_get(rw->ir, use(rw, p), 0);
    body = expr_replace(rw->ir, body, sum, get);
    get = expr_get(rw->ir, use(rw, p), 1);
    body = expr_replace(rw->ir, body, at->fun->params[0], get);
    Expr *pairs =
        make_zip(rw, at->dims, (Expr *[]){use(rw, sums), copy_of(rw, at->arg[0])}, 2);
    return make_map(rw, at->dims, make_lambda(rw, p, body), pairs);
}

Expr *rule_mapReduceBlock(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    (void)args;
    const Expr *reduce = is(at, P_MAP) ? block_fold(at) : NULL;
    if (!reduce)
        return NULL;
    const Param *t = at->fun->params[0];
    Param *acc = fresh(rw, "acc"), *k = fresh(rw, "k"), *p = fresh(rw, "p");
    Expr *own = expr_get(rw->ir, use(rw, p), 1);
    Expr *in = expr_replace(rw->ir, reduce->arg[1], t, own);
    const Expr *part[] = {expr_get(rw->ir, use(rw, p), 0), element(rw, in, k)};
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
        if (c->child == CHILD_FUN && is(c->expr, P_MAPWRG) &&
            c->expr->fun->params[0] == param)
            return data_of(c->expr);
    return NULL;
}

// The first element of an array of the group's in an expression: param[i].
static const Expr *row_of(const Staging *s, const Expr *expr)
{
    if (expr->kind == E_AT && expr->arg[0]->kind == E_PARAM &&
        group_source(s->rw, expr->arg[0]->param))
        return expr;
    const Expr *found = NULL;
    for (int i = 0; i < expr->narg && !found; i++)
        found = row_of(s, expr->arg[i]);
    return expr->fun && !found ? row_of(s, expr->fun) : found;
}

// Is it element k of something made of one row alone?
static const Expr *row_access(const Staging *s, const Expr *expr)
{
    if (expr->kind != E_AT || !expr_is_use(expr->arg[1], s->k) ||
        !type_is_scalar(expr->type) || expr_mentions(expr->arg[0], s->k))
        return NULL;
    return row_of(s, expr->arg[0]);
}

static int find_operand(const Staging *s, const Param *array, const Expr *access,
                        const Expr *pick)
{
    for (int i = 0; i < s->n; i++) {
        Expr *from = copy_of(s->rw, access->arg[0]);
        from = with_name(s->rw, from, pick, s->operand[i].row);
        if (s->operand[i].array == array && expr_equal(from, s->operand[i].from))
            return i;
    }
    return -1;
}

static void note_operand(Staging *s, const Expr *access, const Expr *pick)
{
    const Param *array = pick->arg[0]->param;
    int64_t rows;
    if (find_operand(s, array, access, pick) >= 0 || s->n == OPERANDS_MAX ||
        !arith_is_const(pick->arg[0]->type->len, &rows))
        return;
    int i = s->n++;
    Param *row = fresh(s->rw, "row");
    Expr *from = with_name(s->rw, copy_of(s->rw, access->arg[0]), pick, row);
    s->operand[i].array = array;
    s->operand[i].row = row;
    s->operand[i].from = from;
    s->operand[i].turned = is_turned(s->rw, group_source(s->rw, array), from, row);
    s->operand[i].rows = rows;
    s->operand[i].tile = fresh(s->rw, "tile");
}

static void note_operands(const Expr *expr, void *staging)
{
    const Expr *pick = row_access(staging, expr);
    if (pick)
        note_operand(staging, expr, pick);
}

// from(array[i])[k] becomes tile[k][i].
static Expr *redirect(Staging *s, Expr *expr, Param *within)
{
    const Expr *pick = row_access(s, expr);
    int i = pick ? find_operand(s, pick->arg[0]->param, expr, pick) : -1;
    if (i >= 0) {
        Expr *row = expr_at(s->rw->ir, use(s->rw, s->operand[i].tile), use(s->rw, within));
        Expr *index = copy_of(s->rw, pick->arg[1]);
        return expr_at(s->rw->ir, row, redirect(s, index, within));
    }
    for (int a = 0; a < expr->narg; a++)
        expr->arg[a] = redirect(s, expr->arg[a], within);
    if (expr->fun)
        expr->fun = redirect(s, expr->fun, within);
    return expr;
}

Expr *arith_of(Rewrite *rw, Op op, Expr *a, int64_t b)
{
    return expr_op(rw->ir, op, a, expr_literal(rw->ir, (double)b, false), NULL);
}

Expr *number_of(Rewrite *rw, Param *part, int64_t step, Expr *within)
{
    return expr_op(rw->ir, OP_ADD, arith_of(rw, OP_MUL, use(rw, part), step), within, NULL);
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

// The tile of an operand: [step][rows], read along what is contiguous.
static Expr *staged(Staging *s, int i, Param *part)
{
    Rewrite *rw = s->rw;
    int64_t rows = s->operand[i].rows, count = rows * s->step;
    bool turned = s->operand[i].turned;
    int64_t side = turned ? rows : s->step, lanes = lanes_of(s, count, side, 4);
    s->ok &= lanes > 0;
    if (!s->ok)
        return NULL;
    Param *q = fresh(rw, "q");
    Expr *far = arith_of(rw, OP_DIV, use(rw, q), side);
    Expr *near = arith_of(rw, OP_MOD, use(rw, q), side);
    Expr *row = expr_at(rw->ir, expr_param(rw->ir, (Param *)s->operand[i].array),
                        turned ? near : far);
    row = expr_replace(rw->ir, s->operand[i].from, s->operand[i].row, row);
    Expr *from = expr_at(rw->ir, row, number_of(rw, part, s->step, turned ? far : near));
    const Arith *len = num(rw, count);
    Expr *flat =
        expr_pattern(rw->ir, P_ARRAY, 1, 0, &len, make_lambda(rw, q, from), NULL, 0);
    Expr *tile = make_sized(rw, P_SPLIT, num(rw, side), copied_together(s, flat, lanes));
    return make1(rw, P_TOLOCAL, turned ? tile : make1(rw, P_TRANSPOSE, tile));
}

bool find_items(Staging *s)
{
    s->items[0] = s->items[1] = 0;
    for (const Context *c = s->rw->context; c; c = c->outer) {
        if (c->child != CHILD_FUN || is(c->expr, P_MAPWRG))
            continue;
        if (!is(c->expr, P_MAPLCL) || c->expr->par > 1)
            return s->items[0] && s->items[1];
        if (!arith_is_const(c->expr->type->len, &s->items[c->expr->par]))
            return false;
    }
    return s->items[0] && s->items[1];
}

// What does not fill a tile is folded behind the tiles, from where it lies.
static Expr *with_rest(Rewrite *rw, const Expr *at, int64_t len, int64_t step, Expr *tiles)
{
    Param *i = fresh(rw, "i");
    const Arith *rest = num(rw, len % step);
    Expr *k = arith_of(rw, OP_ADD, use(rw, i), len - len % step);
    Expr *numbers =
        expr_pattern(rw->ir, P_ARRAY, 1, 0, &rest, make_lambda(rw, i, k), NULL, 0);
    return make_reduce(rw, P_REDSEQ, copy_of(rw, at->fun), tiles, numbers);
}

Expr *rule_stageTiles(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t len;
    if (!is(at, P_REDSEQ) || !is_dims(at->arg[1], P_ARRAY, 1) || args->at[0] < 1 ||
        (!divides(rw, args->at[0], at->arg[1]->type->len) &&
         (!arith_is_const(at->arg[1]->type->len, &len) || len < args->at[0])) ||
        !expr_is_use(at->arg[1]->fun->arg[0], at->arg[1]->fun->params[0]))
        return NULL;
    Staging s = {.rw = rw, .k = at->fun->params[1], .step = args->at[0], .ok = true};
    if (!find_items(&s))
        return NULL;
    expr_each(at->fun->arg[0], note_operands, &s);
    Param *acc = fresh(rw, "acc"), *part = fresh(rw, "part"), *within = fresh(rw, "k");
    Expr *body = redirect(&s, copy_of(rw, at->fun->arg[0]), within);
    body = expr_replace(rw->ir, body, s.k, number_of(rw, part, s.step, use(rw, within)));
    Expr *f = expr_lambda(rw->ir, (Param *[]){at->fun->params[0], within}, 2, body);
    body = make_reduce(rw, P_REDSEQ, expr_clone(rw->ir, f), use(rw, acc),
                       counting(rw, num(rw, s.step)));
    for (int i = s.n - 1; i >= 0 && s.ok; i--) {
        Expr *tile = staged(&s, i, part);
        body = tile ? expr_let(rw->ir, s.operand[i].tile, tile, body) : NULL;
    }
    if (!s.n || !s.ok)
        return NULL;
    const Arith *parts = arith_divc(rw->ir->arith, at->arg[1]->type->len, s.step);
    f = expr_lambda(rw->ir, (Param *[]){acc, part}, 2, body);
    Expr *all = make_reduce(rw, P_REDSEQ, f, copy_of(rw, at->arg[0]), counting(rw, parts));
    return divides(rw, s.step, at->arg[1]->type->len) ? all
                                                      : with_rest(rw, at, len, s.step, all);
}
