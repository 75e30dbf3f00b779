// SPDX-License-Identifier: Apache-2.0
//
// Algorithmic rules: other ways to say the same, before threads and memory are chosen.
//
//   source  paper 000, section 3.3; Lift Rules, ReduceRules

#include "rewrite/internal.h"

// One positive number for each dimension.
static bool sizes_fit(const RuleArgs *args, int dims)
{
    for (int k = 0; k < args->n; k++)
        if (args->at[k] < 1)
            return false;
    return args->n == dims;
}

Expr *rule_splitJoin(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_MAP) || !sizes_fit(args, at->dims))
        return NULL;
    const Arith *n[DIMS_MAX], *k[DIMS_MAX];
    for (int i = 0; i < at->dims; i++) {
        n[i] = num(rw, args->at[i]);
        k[i] = missing(rw, len_of(at, i), args->at[i]);
    }
    Param *part = fresh(rw, "part");
    Expr *covered = pad_far(rw, at->dims, k, copy_of(rw, at->arg[0]));
    Expr *parts = make(rw, P_SPLIT, at->dims, n, NULL, covered);
    Expr *inner = make_map(rw, at->dims, copy_of(rw, at->fun), use(rw, part));
    Expr *all = map_by(rw, at->dims, part, inner, parts);
    return cut(rw, at, k, at->dims, make(rw, P_JOIN, at->dims, NULL, NULL, all));
}

// Reductions ------------------------------------------------------------------------------

// The input with k neutral elements more, split into parts of n.
static Expr *parts_of(Rewrite *rw, const Expr *reduce, const Arith *k, const Arith *n)
{
    Expr *in = copy_of(rw, reduce->arg[1]);
    return make_sized(rw, P_SPLIT, n, with_neutral(rw, reduce, k, in));
}

static Expr *parts_of_size(Rewrite *rw, const Expr *reduce, int64_t n)
{
    const Arith *k = missing(rw, len_of(reduce->arg[1], 0), n);
    return parts_of(rw, reduce, k, num(rw, n));
}

static Expr *reduce_parts(Rewrite *rw, const Expr *reduce, Expr *parts)
{
    Param *part = fresh(rw, "part");
    Expr *each = fold_like(rw, reduce, P_REDUCE, use(rw, part));
    return fold_like(rw, reduce, P_REDUCE, map_by(rw, 1, part, each, parts));
}

Expr *rule_partialReduce(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_REDUCE) || args->at[0] < 1 || !is_regroupable(at))
        return NULL;
    return reduce_parts(rw, at, parts_of_size(rw, at, args->at[0]));
}

enum { PARTS_OF_REDUCE = 1 << 20 };

Expr *rule_partialReduceInto(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t parts = args->at[0], l = args->at[1];
    if (!expr_is(at, P_REDUCE) || parts < 1 || l < 1 || parts > PARTS_OF_REDUCE ||
        l > PARTS_OF_REDUCE || !is_regroupable(at))
        return NULL;
    ArithCtx *c = rw->ir->arith;
    const Arith *len = len_of(at->arg[1], 0);
    const Arith *lines = arith_ceil_div(c, len, num(rw, parts * l)); // of l, in a part
    const Arith *n = arith_mulc(c, lines, l);
    const Arith *k = arith_add(c, arith_mulc(c, n, parts), arith_mulc(c, len, -1));
    return reduce_parts(rw, at, parts_of(rw, at, k, n));
}

// The elements of a joined array, mapped or not, as the rows that are joined; NULL: of
// others.
static Expr *joined_rows(Rewrite *rw, const Expr *list)
{
    if (is_dims(list, P_JOIN, 1))
        return copy_of(rw, list->arg[0]);
    Expr *rows = is_dims(list, P_MAP, 1) ? joined_rows(rw, list->arg[0]) : NULL;
    return rows ? make_map(rw, 2, copy_of(rw, list->fun), rows) : NULL;
}

// The width of a tile divides l, and is the largest that adds at most an eighth of columns.
static int64_t tile_width(int64_t columns, int64_t l)
{
    int64_t width = l;
    while (width > 1 && (columns + width - 1) / width * width * 8 > columns * 9)
        width = width % 2 ? 1 : width / 2;
    return width;
}

Expr *rule_partialReduceTiles(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    enum { WIDTH_LEAST = 32 };
    int64_t parts = args->at[0], l = args->at[1], rows, columns;
    Expr *in = expr_is(at, P_REDUCE) ? joined_rows(rw, at->arg[1]) : NULL;
    if (!in || parts < 1 || l < 1 || parts > PARTS_OF_REDUCE || l > PARTS_OF_REDUCE ||
        !is_regroupable(at) || !expr_commutes(at->fun))
        return NULL;
    const Expr *joined = at->arg[1];
    while (expr_is(joined, P_MAP))
        joined = joined->arg[0];
    if (!arith_is_const(len_of(joined->arg[0], 0), &rows) ||
        !arith_is_const(len_of(joined->arg[0], 1), &columns) || rows < 1 || columns < 1)
        return NULL;
    int64_t width = tile_width(columns, l), turn = l / width; // rows that l elements are
    if (width < MIN(WIDTH_LEAST, l))
        return NULL;
    int64_t across = (columns + width - 1) / width;
    int64_t height = (rows * across + parts * turn - 1) / (parts * turn) * turn;
    int64_t down = (rows + height - 1) / height;
    const Arith *more[] = {num(rw, 0), num(rw, down * height - rows), num(rw, 0),
                           num(rw, across * width - columns)};
    in = make_pad(rw, 2, more, start_value(rw, at->arg[0]), in);
    in = make(rw, P_SPLIT, 2, (const Arith *[]){num(rw, height), num(rw, width)}, NULL, in);
    Param *tile = fresh(rw, "tile");
    Expr *flat = make_lambda(rw, tile, make1(rw, P_JOIN, use(rw, tile)));
    return reduce_parts(rw, at, make_map(rw, 1, flat, make1(rw, P_JOIN, in)));
}

Expr *rule_partialReduceStrided(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_REDUCE) || args->at[0] < 1 || !is_regroupable(at) ||
        !expr_commutes(at->fun))
        return NULL;
    return reduce_parts(rw, at, make1(rw, P_TRANSPOSE, parts_of_size(rw, at, args->at[0])));
}

// \k -> the folds of part k of each element of x.
static Expr *folds_of_part(Rewrite *rw, const Expr *map, const Expr *x, const Expr *reduce,
                           const Arith *more, const Arith *n)
{
    Param *k = fresh(rw, "k");
    Expr *part = expr_at(rw->ir, parts_of(rw, reduce, more, n), use(rw, k));
    Expr *f = make_lambda(rw, map->fun->params[0], fold_like(rw, reduce, P_REDUCE, part));
    return make_lambda(rw, k, make_map(rw, 1, copy_of(rw, f), copy_of(rw, x)));
}

Expr *rule_foldSplit(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t parts = args->at[0];
    Path where = {0};
    if (!is_dims(at, P_MAP, 1) || parts < 1 || parts > PARTS_OF_REDUCE ||
        !path_to_fold(at->fun->arg[0], &where, is_regroupable))
        return NULL;
    const Expr *body = at->fun->arg[0], *reduce = path_find(body, &where);
    ArithCtx *c = rw->ir->arith;
    const Arith *len = len_of(reduce->arg[1], 0);
    const Arith *n = arith_ceil_div(c, len, num(rw, parts));
    const Arith *more = arith_add(c, arith_mulc(c, n, parts), arith_mulc(c, len, -1));
    NamedValues stages = {.n = 0}; // once, though two maps read them
    Expr *x = without_stages(rw, at->arg[0], &stages);
    Expr *partial = make_map(rw, 1, folds_of_part(rw, at, x, reduce, more, n),
                             counting(rw, num(rw, parts)));
    Param *p = fresh(rw, "p"), *t = fresh(rw, "t");
    Expr *rest = fold_like(rw, reduce, P_REDUCE, get_of(rw, t, 1));
    rest = expr_replace(rw->ir, put_at(rw, body, &where, rest), at->fun->params[0],
                        get_of(rw, t, 0));
    Expr *both[] = {x, make1(rw, P_TRANSPOSE, use(rw, p))};
    Expr *whole = map_by(rw, 1, t, rest, make_zip(rw, 1, both, 2));
    return with_names(rw, &stages, expr_let(rw->ir, p, partial, whole));
}

Expr *rule_joinReduce(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *map = expr_is(at, P_REDUCE) ? at->arg[1] : NULL;
    const Expr *inner = map && is_dims(map, P_MAP, 1) ? map->fun->arg[0] : NULL;
    if (!inner || !expr_is(inner, P_REDUCE) || !is_regroupable(at) ||
        !is_regroupable(inner) || !expr_equal(at->fun, inner->fun) ||
        !expr_equal(at->arg[0], inner->arg[0]))
        return NULL;
    Expr *f = make_lambda(rw, map->fun->params[0], copy_of(rw, inner->arg[1]));
    Expr *rows = make_map(rw, 1, copy_of(rw, f), copy_of(rw, map->arg[0]));
    return fold_like(rw, at, P_REDUCE, make1(rw, P_JOIN, rows));
}

// The same fold, which goes through rows one after another.
static Expr *fold_rows(Rewrite *rw, const Expr *at, Expr *rows)
{
    Param *acc = fresh(rw, "acc"), *row = fresh(rw, "row");
    Expr *each =
        make_reduce(rw, P_REDSEQ, copy_of(rw, at->fun), use(rw, acc), use(rw, row));
    Expr *f = expr_lambda(rw->ir, (Param *[]){acc, row}, 2, each);
    return make_reduce(rw, at->pattern, f, start_value(rw, at->arg[0]), rows);
}

Expr *rule_reduceRows(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_REDUCE) || !expr_is(at->arg[1], P_JOIN))
        return NULL;
    return fold_rows(rw, at, copy_of(rw, at->arg[1]->arg[0]));
}

Expr *rule_splitReduce(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const int64_t n = args->at[0];
    if ((!expr_is(at, P_REDUCE) && !expr_is(at, P_REDSEQ)) || n < 1 ||
        !divides(rw, n, len_of(at->arg[1], 0)))
        return NULL;
    return fold_rows(rw, at, make_sized(rw, P_SPLIT, num(rw, n), copy_of(rw, at->arg[1])));
}

Expr *rule_reduceAsMap(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_REDUCE))
        return NULL;
    Expr *whole = make_sized(rw, P_SPLIT, len_of(at->arg[1], 0), copy_of(rw, at->arg[1]));
    Param *part = fresh(rw, "part");
    Expr *each = fold_like(rw, at, P_REDUCE, use(rw, part));
    Expr *map = map_by(rw, 1, part, each, whole);
    return expr_at(rw->ir, map, expr_literal(rw->ir, 0, false));
}

// Orders ---------------------------------------------------------------------------------

// Position (l, c, b) of l * c * b elements is element (c, l, b): with b of 1 the strided
// order of Lift, else cyclic merging of blocks (paper 001, section 4). part: so in each
// part of so many elements; 0: of all.
static Expr *strided(Rewrite *rw, int64_t l, int64_t c, int64_t b, int64_t part)
{
    Param *i = fresh(rw, "i");
    Expr *at = part ? arith_of(rw, OP_MOD, use(rw, i), part) : use(rw, i);
    Expr *near = arith_of(rw, OP_DIV, at, c * b),
         *far = arith_of(rw, OP_MOD, use(rw, i), c * b);
    if (b > 1) {
        near = make_op(rw, OP_ADD, arith_of(rw, OP_MUL, near, b),
                       arith_of(rw, OP_MOD, use(rw, i), b));
        far = arith_of(rw, OP_DIV, far, b);
    }
    Expr *to = make_op(rw, OP_ADD, arith_of(rw, OP_MUL, far, l * b), near);
    at = part ? arith_of(rw, OP_MUL, arith_of(rw, OP_DIV, use(rw, i), part), part) : NULL;
    return make_lambda(rw, i, at ? make_op(rw, OP_ADD, at, to) : to);
}

static Expr *order_in(Rewrite *rw, Pattern p, int dim, Expr *order, Expr *in)
{
    if (dim == 0)
        return make(rw, p, 1, NULL, order, in);
    Param *row = fresh(rw, "r");
    Expr *inner = make(rw, p, 1, NULL, order, use(rw, row));
    return map_by(rw, dim, row, inner, in);
}

Expr *rule_reorder(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t dim = args->at[0], l = args->at[1], b = args->at[2], len;
    const int64_t part = args->n > 3 ? args->at[3] : 0;
    if (!expr_is(at, P_MAP) || args->n > 4 || dim < 0 || dim >= at->dims || l < 1 ||
        b < 1 || part < 0 || l > 1 << 20 || b > 1 << 20)
        return NULL;
    if (!arith_is_const(len_of(at, (int)dim), &len) || len == 0)
        return NULL;
    const int64_t each = part ? part : len, c = each / (l * b);
    if (len % each != 0 || each % (l * b) != 0)
        return NULL;
    Expr *in = order_in(rw, P_GATHER, (int)dim, strided(rw, l, c, b, part),
                        copy_of(rw, at->arg[0]));
    Expr *map = make_map(rw, at->dims, copy_of(rw, at->fun), in);
    return order_in(rw, P_SCATTER, (int)dim, strided(rw, l, c, b, part), map);
}

static Expr *order_outside(Rewrite *rw, const Expr *at, Pattern p)
{
    if (!is_dims(at, P_MAP, 1) || !expr_is(at->arg[0], p))
        return NULL;
    const Expr *order = at->arg[0];
    Expr *map = make_map(rw, 1, copy_of(rw, at->fun), copy_of(rw, order->arg[0]));
    return make(rw, p, 1, NULL, copy_of(rw, order->fun), map);
}

Expr *rule_mapGather(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return order_outside(rw, at, P_GATHER);
}

Expr *rule_mapScatter(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return order_outside(rw, at, P_SCATTER);
}

// Zips -----------------------------------------------------------------------------------

Expr *rule_joinZip(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *zip = is_dims(at, P_JOIN, 1) ? at->arg[0] : NULL;
    if (!zip || !expr_is(zip, P_ZIP) || zip->dims < 2 || zip->narg > PARTS_MAX)
        return NULL;
    Expr *part[PARTS_MAX];
    for (int i = 0; i < at->arg[0]->narg; i++)
        part[i] = make1(rw, P_JOIN, copy_of(rw, zip->arg[i]));
    return make_zip(rw, zip->dims - 1, part, zip->narg);
}

// Dimensions -----------------------------------------------------------------------------

Expr *rule_mapNest(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_MAP) || at->dims == 1)
        return NULL;
    Param *row = fresh(rw, "r");
    Expr *inner = make_map(rw, at->dims - 1, copy_of(rw, at->fun), use(rw, row));
    return map_by(rw, 1, row, inner, copy_of(rw, at->arg[0]));
}

// The start value apart from the fold ----------------------------------------------------

// The operation by which component i of a fold adds up or multiplies, or the only one;
// number: what it begins with if nothing is there.
static bool adds_to(const Expr *f, int i, Op *op, int *number)
{
    const Expr *body = i < 0 ? f->arg[0] : f->arg[0]->arg[i];
    if (combined(f, i) < 0 || body->type->kind != T_SCALAR)
        return false;
    *op = body->op;
    *number = body->op == OP_MUL;
    return body->op == OP_ADD || body->op == OP_MUL;
}

// Splits a start value into what a fold begins with and what its result is joined with:
// component i of `found`, or all of it. Returns the joined one.
static Expr *start_apart(Rewrite *rw, const Expr *at, int i, Param *found, Expr **start,
                         bool *apart)
{
    const Expr *init = i < 0 ? at->arg[0] : at->arg[0]->arg[i];
    Expr *result = i < 0 ? use(rw, found) : get_of(rw, found, i);
    Op op;
    int number;
    double begins;
    *start = start_value(rw, init);
    if (!adds_to(at->fun, i, &op, &number) ||
        (is_number(init, &begins) && begins == number))
        return result;
    const Type *type = i < 0 ? at->fun->arg[0]->type : at->fun->arg[0]->type->item[i];
    Expr *own = *start;
    *start = literal_of(rw, type, number);
    *apart = true;
    return make_op(rw, op, own, result);
}

Expr *rule_startApart(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const bool fold = expr_is(at, P_REDUCE);
    if (!fold && !is_dims(at, P_SCAN, 1) && !expr_is(at, P_REDUCEBY))
        return NULL;
    const Expr *body = at->fun->arg[0], *init = at->arg[0];
    const int n = body->kind == E_TUPLE ? body->narg : 0;
    if (at->dims > 1 || n > PARTS_MAX || (n && init->kind != E_TUPLE) ||
        type_holds_array(body->type))
        return NULL;
    Param *found = fresh(rw, "found");
    Expr *start[PARTS_MAX], *joined[PARTS_MAX];
    bool apart = false;
    for (int i = 0; i < MAX(n, 1); i++)
        joined[i] = start_apart(rw, at, n ? i : -1, found, &start[i], &apart);
    if (!apart)
        return NULL;
    Expr *result = all_parts(rw, joined, n);
    Expr *arg[] = {all_parts(rw, start, n), copy_of(rw, at->arg[1])};
    Expr *rest =
        expr_pattern(rw->ir, at->pattern, 1, 0, at->num, copy_of(rw, at->fun), arg, 2);
    return fold ? expr_let(rw->ir, found, rest, result)
                : map_by(rw, 1, found, result, rest);
}

Expr *rule_nameStart(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if ((!expr_is(at, P_REDUCE) && !expr_is(at, P_SCAN) && !expr_is(at, P_REDUCEBY)) ||
        at->arg[0]->kind == E_PARAM || at->arg[0]->narg > PARTS_MAX)
        return NULL;
    const Expr *init = at->arg[0];
    const int n = init->kind == E_TUPLE ? init->narg : 0;
    Param *start = fresh(rw, "start");
    Expr *fold = copy_of(rw, at), *part[PARTS_MAX];
    for (int i = 0; i < n; i++)
        part[i] = get_of(rw, start, i);
    fold->arg[0] = n ? expr_tuple(rw->ir, part, n) : use(rw, start);
    return expr_let(rw->ir, start, start_value(rw, init), fold);
}

// A scalar as the only element of a map.
Expr *rule_onlyElement(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (at->kind == E_LAMBDA || !at->type || !type_is_scalar(at->type) || !at_host(rw))
        return NULL;
    Expr *only =
        map_by(rw, 1, fresh(rw, "only"), copy_of(rw, at), counting(rw, num(rw, 1)));
    return expr_at(rw->ir, only, expr_num(rw->ir, num(rw, 0)));
}

// An array in an array, element by element: where a kernel reads which one it is.
Expr *rule_elementsOf(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int dims = at->type ? type_depth(at->type) : 0;
    if (at->kind != E_AT || dims < 1 || dims > DIMS_MAX)
        return NULL;
    const Arith *len[DIMS_MAX];
    Param *param[DIMS_MAX];
    Expr *element = copy_of(rw, at);
    for (int k = 0; k < dims; k++) {
        len[k] = len_of(at, k);
        param[k] = fresh(rw, "j");
        element = expr_at(rw->ir, element, use(rw, param[k]));
    }
    return expr_pattern(rw->ir, P_ARRAY, dims, 0, len,
                        expr_lambda(rw->ir, param, dims, element), NULL, 0);
}
