// SPDX-License-Identifier: Apache-2.0
//
// Keyed folds in parts, which are folded for each key afterwards, and by work-items that
// update one array.
//
//   source  privatised and shared histograms: Podlozhnyuk, "Histogram calculation in CUDA",
//           2007

#include "rewrite/internal.h"

enum { NEAR_MOST = 16 }; // elements that an item reads at once

Expr *without_keys(Ir *ir, const Expr *keyed)
{
    Expr *fold = NEW(ir->arena, Expr), *values = NEW(ir->arena, Expr);
    const Type *elements = keyed->arg[1]->type;
    *values = (Expr){.kind = E_PARAM, .span = keyed->span};
    values->type = type_array(ir->arena, elements->len, elements->elem->item[1]);
    *fold = *keyed;
    fold->pattern = P_REDUCE;
    fold->type = keyed->type->elem;
    fold->nnum = 0;
    fold->arg = NEW_ARRAY(ir->arena, Expr *, 2);
    fold->arg[0] = keyed->arg[0];
    fold->arg[1] = values;
    return fold;
}

static bool is_update(const Expr *f, int i, const Type *type)
{
    const Expr *body = i < 0 ? f->arg[0] : f->arg[0]->arg[i];
    return type->kind == T_SCALAR && combined(f, i) >= 0 && op_updates(body->op) &&
           (type->scalar == S_INT || type->scalar == S_UINT || type->scalar == S_FLOAT ||
            type->scalar == S_DOUBLE);
}

bool keyed_updates(const Expr *keyed)
{
    const Type *type = keyed->type->elem;
    const Expr *f = keyed->fun;
    if (type->kind != T_TUPLE)
        return is_update(f, -1, type);
    bool all = f->arg[0]->kind == E_TUPLE;
    for (int i = 0; all && i < type->n; i++)
        all = is_update(f, i, type->item[i]);
    return all;
}

// Can the function itself join what it made of parts? One operation can; others are tried.
static bool joins_itself(Rewrite *rw, const Expr *keyed)
{
    const Expr *fold = without_keys(rw->ir, keyed);
    return is_regroupable(fold) && (combined(fold->fun, -1) >= 0 || folds_by_parts(fold));
}

// What folds the results of parts: f itself, or its operations; NULL: nothing does.
static Expr *joins_parts(Rewrite *rw, const Expr *keyed)
{
    const Expr *f = keyed->fun;
    if (joins_itself(rw, keyed))
        return copy_of(rw, f);
    if (!keyed_updates(keyed))
        return NULL;
    Param *both[] = {fresh(rw, "a"), fresh(rw, "b")};
    const Type *type = keyed->type->elem;
    int n = type->kind == T_TUPLE ? type->n : 0;
    Expr **item = NEW_ARRAY(rw->ir->arena, Expr *, MAX(n, 1));
    for (int i = 0; i < MAX(n, 1); i++) {
        Expr *a = n ? get_of(rw, both[0], i) : use(rw, both[0]);
        Expr *b = n ? get_of(rw, both[1], i) : use(rw, both[1]);
        item[i] = make_op(rw, (n ? f->arg[0]->arg[i] : f->arg[0])->op, a, b);
    }
    return expr_lambda(rw->ir, both, 2, all_parts(rw, item, n));
}

static Expr *component(Rewrite *rw, const Expr *x, int i)
{
    if (is_dims(x, P_ZIP, 1))
        return copy_of(rw, x->arg[i]);
    Param *e = fresh(rw, "e");
    return map_by(rw, 1, e, get_of(rw, e, i), copy_of(rw, x));
}

// The elements in rows of n; those that are missing in the last one have no key, and zeros
// as values, which may be loaded side by side with those that are there.
static Expr *rows_of(Rewrite *rw, const Expr *x, const Arith *n)
{
    ArithCtx *c = rw->ir->arith;
    const Arith *more = arith_mod(c, arith_mulc(c, len_of(x, 0), -1), n);
    if (more == num(rw, 0))
        return make_sized(rw, P_SPLIT, n, copy_of(rw, x));
    const Arith *both[] = {num(rw, 0), more};
    Expr *none = expr_literal(rw->ir, -1, false);
    Expr *key = make_pad(rw, 1, both, none, component(rw, x, 0)),
         *value = component(rw, x, 1);
    Expr *zero = literal_of(rw, x->type->elem->item[1], 0);
    value = zero ? make_pad(rw, 1, both, zero, value) : pad_far(rw, 1, &more, value);
    return make_sized(rw, P_SPLIT, n, make_zip(rw, 1, (Expr *[]){key, value}, 2));
}

// The fold of other elements.
static Expr *fold_of(Rewrite *rw, const Expr *keyed, Expr *elements)
{
    return expr_pattern(rw->ir, P_REDUCEBY, 1, 0, keyed->num, copy_of(rw, keyed->fun),
                        (Expr *[]){copy_of(rw, keyed->arg[0]), elements}, 2);
}

// What parts found, joined for each key.
static Expr *each_key(Rewrite *rw, const Expr *keyed, Expr *join, Param *found)
{
    Param *key = fresh(rw, "key");
    Expr *all =
        make_reduce(rw, P_REDUCE, join, start_value(rw, keyed->arg[0]), use(rw, key));
    return map_by(rw, 1, key, all, make1(rw, P_TRANSPOSE, use(rw, found)));
}

Expr *rule_reduceByParts(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    enum { PARTS_MOST = 1 << 20 };
    int64_t count = args->at[0], l = args->at[1];
    Expr *join = expr_is(at, P_REDUCEBY) ? joins_parts(rw, at) : NULL;
    if (!join || count < 1 || l < 1 || count > PARTS_MOST || l > PARTS_MOST)
        return NULL;
    ArithCtx *c = rw->ir->arith;
    const Arith *lines = arith_ceil_div(c, len_of(at->arg[1], 0), num(rw, count * l));
    const Arith *n = arith_mulc(c, lines, l);
    if (arith_most(n) < 1)
        return NULL;
    Param *part = fresh(rw, "part"), *found = fresh(rw, "found");
    Expr *each = make_lambda(rw, part, fold_of(rw, at, use(rw, part)));
    return expr_let(rw->ir, found, make_map(rw, 1, each, rows_of(rw, at->arg[1], n)),
                    each_key(rw, at, join, found));
}

// Keyed folds of each element of x are of its parts, which other maps join.
Expr *rule_keyedSplit(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    enum { PARTS_MOST = 1 << 20 };
    const int64_t parts = args->at[0];
    const Expr *keyed = is_dims(at, P_MAP, 1) ? at->fun->arg[0] : NULL;
    Expr *join = keyed && expr_is(keyed, P_REDUCEBY) ? joins_parts(rw, keyed) : NULL;
    Param *e = at->fun ? at->fun->params[0] : NULL;
    if (!join || !at_host(rw) || parts < 1 || parts > PARTS_MOST ||
        expr_mentions(keyed->arg[0], e) || expr_mentions(keyed->fun, e))
        return NULL;
    const Arith *n =
        arith_ceil_div(rw->ir->arith, len_of(keyed->arg[1], 0), num(rw, parts));
    if (arith_most(n) < 1)
        return NULL;
    Param *k = fresh(rw, "k"), *found = fresh(rw, "found"), *all = fresh(rw, "all");
    Expr *each =
        fold_of(rw, keyed, expr_at(rw->ir, rows_of(rw, keyed->arg[1], n), use(rw, k)));
    Expr *folds =
        make_map(rw, 1, copy_of(rw, make_lambda(rw, e, each)), copy_of(rw, at->arg[0]));
    const Arith *count =
        arith_ceil_div(rw->ir->arith, len_of(keyed->arg[1], 0), n); // none is empty
    folds = map_by(rw, 1, k, folds, counting(rw, count));
    Expr *keys = make_lambda(rw, all, each_key(rw, keyed, join, all));
    return expr_let(rw->ir, found, folds,
                    make_map(rw, 1, keys, make1(rw, P_TRANSPOSE, use(rw, found))));
}

// In words -------------------------------------------------------------------------------

Expr *start_part(Rewrite *rw, const Expr *init, int i)
{
    if (init->type->kind != T_TUPLE)
        return start_value(rw, init);
    return init->kind == E_TUPLE ? start_value(rw, init->arg[i])
                                 : expr_get(rw->ir, copy_of(rw, init), i);
}

Expr *rule_reduceByWords(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_REDUCEBY) || type_holds_array(at->type->elem))
        return NULL;
    const Type *type = at->type->elem;
    const Expr *f = at->fun;
    int n = type->kind == T_TUPLE ? type->n : 0;
    if (n > PARTS_MAX || (n && f->arg[0]->kind != E_TUPLE))
        return NULL;
    Param *s = fresh(rw, "s"), *r = fresh(rw, "r");
    Expr *next[PARTS_MAX], *start[PARTS_MAX], *back[PARTS_MAX];
    bool narrow = false;
    for (int i = 0; i < MAX(n, 1); i++) {
        const Expr *body = n ? f->arg[0]->arg[i] : f->arg[0];
        Scalar was = n ? type->item[i]->scalar : type->scalar, word = scalar_word(was);
        int side = combined(f, n ? i : -1);
        if (side < 0 || !op_updates(body->op) || (n && type->item[i]->kind != T_SCALAR))
            return NULL;
        const Expr *value = body->arg[side];
        narrow |= word != was;
        Expr *given = cast_value(rw, word, value->type->scalar, copy_of(rw, value));
        next[i] = make_op(rw, body->op, part_of_value(rw, use(rw, s), i, n), given);
        start[i] = cast_value(rw, word, was, start_part(rw, at->arg[0], i));
        back[i] = cast_value(rw, was, word, part_of_value(rw, use(rw, r), i, n));
    }
    if (!narrow)
        return NULL;
    Expr *arg[] = {all_parts(rw, start, n), copy_of(rw, at->arg[1])};
    Expr *fun =
        expr_lambda(rw->ir, (Param *[]){s, f->params[1]}, 2, all_parts(rw, next, n));
    Expr *words =
        expr_pattern(rw->ir, P_REDUCEBY, 1, 0, at->num, expr_clone(rw->ir, fun), arg, 2);
    return map_by(rw, 1, r, all_parts(rw, back, n), words);
}

Expr *key_if_valid(Rewrite *rw, Param *element, const Arith *k, Expr *key)
{
    Expr *past =
        make_op(rw, OP_LT, part_of_value(rw, use(rw, element), 0, 2), expr_num(rw->ir, k));
    Expr *valid = make_op(rw, OP_GE, part_of_value(rw, use(rw, element), 0, 2),
                          expr_literal(rw->ir, 0, false));
    return expr_op(rw->ir, OP_SELECT, make_op(rw, OP_AND, valid, past), key,
                   expr_literal(rw->ir, -1, false));
}

// Keyed folds of rows are one, whose keys are those of the rows one after the other; or
// whose keys lie row beside row, and so do each `near` elements. 0: not so.
Expr *rule_joinKeyed(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const int64_t near = args->at[0];
    const Expr *keyed = is_dims(at, P_MAP, 1) ? at->fun->arg[0] : NULL;
    if (!keyed || !expr_is(keyed, P_REDUCEBY) || near < 0 || near > NEAR_MOST)
        return NULL;
    Param *row = at->fun->params[0];
    const Arith *k = keyed->num[0], *n = len_of(at, 0);
    const Arith *all = arith_mul(rw->ir->arith, n, k);
    if (expr_mentions(keyed->fun, row) || expr_mentions(keyed->arg[0], row) ||
        arith_most(all) > INT32_MAX || arith_most(all) < 0)
        return NULL;
    Param *t = fresh(rw, "t"), *e = fresh(rw, "e");
    Expr *number = part_of_value(rw, use(rw, t), 0, 2),
         *own = part_of_value(rw, use(rw, e), 0, 2);
    Expr *base = make_op(rw, OP_MUL, near ? own : number, expr_num(rw->ir, near ? n : k));
    Expr *key = key_if_valid(rw, e, k, make_op(rw, OP_ADD, base, near ? number : own));
    Expr *item[] = {key, part_of_value(rw, use(rw, e), 1, 2)};
    Expr *elements = near > 1 ? rows_of(rw, keyed->arg[1], num(rw, near)) : keyed->arg[1];
    elements = expr_replace(rw->ir, elements, row, part_of_value(rw, use(rw, t), 1, 2));
    elements = map_by(rw, near > 1 ? 2 : 1, e, expr_tuple(rw->ir, item, 2), elements);
    Expr *part[] = {counting(rw, n), copy_of(rw, at->arg[0])};
    Expr *rows = map_by(rw, 1, t, elements, make_zip(rw, 1, part, 2));
    rows = near ? make1(rw, P_TRANSPOSE, rows) : rows;
    rows = near > 1 ? make1(rw, P_JOIN, rows) : rows;
    Expr *arg[] = {copy_of(rw, keyed->arg[0]), make1(rw, P_JOIN, rows)};
    Expr *folds = make_sized(
        rw, P_SPLIT, near ? n : k,
        expr_pattern(rw->ir, P_REDUCEBY, 1, 0, &all, copy_of(rw, keyed->fun), arg, 2));
    return near ? make1(rw, P_TRANSPOSE, folds) : folds;
}

// Updates --------------------------------------------------------------------------------

// The array that updates begin with, made by work-items.
static Expr *filled(Rewrite *rw, const Expr *keyed, Pattern items, int64_t copies)
{
    Param *k = fresh(rw, "k");
    return make(rw, items, 1, NULL, make_lambda(rw, k, start_value(rw, keyed->arg[0])),
                counting(rw, arith_mulc(rw->ir->arith, keyed->num[0], copies)));
}

// Rows of elements with keys of one copy or another of the array: the rows have the copies
// in turns, so many side by side the same. The copies of a key lie side by side, or, where
// rows do, the copies as a whole, so that items side by side update what lies so.
static Expr *by_copies(Rewrite *rw, const Expr *keyed, Expr *rows, const Arith *count,
                       int64_t copies, int64_t beside)
{
    Param *t = fresh(rw, "t"), *e = fresh(rw, "e");
    Expr *row = part_of_value(rw, use(rw, t), 0, 2),
         *key = part_of_value(rw, use(rw, e), 0, 2);
    const Arith *k = keyed->num[0];
    row = beside > 1 ? arith_of(rw, OP_DIV, row, beside) : row;
    Expr *copy = arith_of(rw, OP_MOD, row, copies);
    if (beside > 1) {
        copy = make_op(rw, OP_MUL, copy, expr_num(rw->ir, k));
        key = key_if_valid(rw, e, k, make_op(rw, OP_ADD, copy, key));
    } else {
        key = make_op(rw, OP_MINIMUM, key, expr_num(rw->ir, k));
        key = make_op(rw, OP_MAXIMUM, key, expr_literal(rw->ir, -1, false));
        key = make_op(rw, OP_ADD, arith_of(rw, OP_MUL, key, copies), copy);
    }
    Expr *item[] = {key, part_of_value(rw, use(rw, e), 1, 2)};
    Expr *all =
        map_by(rw, 1, e, expr_tuple(rw->ir, item, 2), part_of_value(rw, use(rw, t), 1, 2));
    Expr *part[] = {counting(rw, count), rows};
    return map_by(rw, 1, t, all, make_zip(rw, 1, part, 2));
}

// An array that all work-items update, each by a row of `near` elements at a time.
static Expr *updated(Rewrite *rw, const Expr *keyed, Pattern p, Expr *array, int64_t near,
                     int64_t copies, int64_t beside)
{
    const Arith *n = num(rw, near);
    Expr *rows = rows_of(rw, keyed->arg[1], n);
    if (copies > 1)
        rows = by_copies(rw, keyed, rows,
                         arith_ceil_div(rw->ir->arith, len_of(keyed->arg[1], 0), n), copies,
                         beside);
    return expr_pattern(rw->ir, p, 1, 0, NULL, copy_of(rw, keyed->fun),
                        (Expr *[]){array, rows}, 2);
}

static bool may_update(const Expr *at, const RuleArgs *args)
{
    return expr_is(at, P_REDUCEBY) && args->at[0] >= 1 && args->at[0] <= NEAR_MOST;
}

Expr *rule_reduceByGlb(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return may_update(at, args) && keyed_updates(at) && at_host(rw)
               ? updated(rw, at, P_REDBYGLB, filled(rw, at, P_MAPGLB, 1), args->at[0], 1, 1)
               : NULL;
}

// Is it x.0, x the parameter of a map that counts in x.0?
static bool counts(const Expr *number, const Expr *map)
{
    const Expr *in = map->arg[0];
    return number->kind == E_GET && number->index == 0 &&
           expr_is_use(number->arg[0], map->fun->params[0]) && is_dims(in, P_ZIP, 1) &&
           expr_is(in->arg[0], P_ARRAY) &&
           expr_is_use(in->arg[0]->fun->arg[0], in->arg[0]->fun->params[0]);
}

// The key that rows give their elements; NULL: that is not seen.
static const Expr *row_key(const Expr *rows)
{
    const Expr *each = expr_is(rows, P_MAP) ? rows->fun->arg[0] : NULL;
    const Expr *body = each && expr_is(each, P_MAP) ? each->fun->arg[0] : NULL;
    return body && body->kind == E_TUPLE ? body->arg[0] : NULL;
}

// The sum a * n + b that a key is, or `if c then a * n + b else -1`. NULL: it is another.
static const Expr *key_sum(const Expr *key)
{
    const Expr *sum = key && expr_is_op(key, OP_SELECT) ? key->arg[1] : key;
    return sum && expr_is_op(sum, OP_ADD) && expr_is_op(sum->arg[0], OP_MUL) &&
                   sum->arg[0]->arg[1]->kind == E_NUM
               ? sum
               : NULL;
}

// Is c `b >= 0 && b < n`?
static bool is_within(const Expr *c, const Expr *b, const Expr *n)
{
    return expr_is_op(c, OP_AND) && expr_is_op(c->arg[0], OP_GE) &&
           expr_is_op(c->arg[1], OP_LT) && expr_equal(c->arg[0]->arg[0], b) &&
           c->arg[0]->arg[1]->kind == E_LITERAL && c->arg[0]->arg[1]->number == 0 &&
           expr_equal(c->arg[1]->arg[0], b) && expr_equal(c->arg[1]->arg[1], n);
}

// How long rows are of whose columns, n of them, no two have a key in common: x.0 is added,
// which the inner map counts for elements that are folded by themselves (reduceByElements),
// the outer one, turned, for keyed folds that lie side by side (joinKeyed), each with some
// elements.
static int64_t counted_row(const Expr *rows)
{
    if (expr_is(rows, P_JOIN))
        rows = rows->arg[0];
    const bool turned = expr_is(rows, P_TRANSPOSE);
    const Expr *outer = turned ? rows->arg[0] : rows, *sum = key_sum(row_key(outer));
    const Expr *counter = turned || !sum ? outer : outer->fun->arg[0];
    int64_t count, stride, near = 1;
    bool known =
        sum && counts(sum->arg[1], counter) && arith_is_const(counter->type->len, &count) &&
        arith_is_const(sum->arg[0]->arg[1]->num[0], &stride) && stride == count &&
        (type_depth(rows->type) < 3 || arith_is_const(rows->type->elem->elem->len, &near));
    return known ? count * near : 0;
}

int64_t keyed_row(const Expr *elements)
{
    if (is_dims(elements, P_ZIP, 1)) // whole parts, the last with elements without a key
        elements = elements->arg[0];
    if (is_dims(elements, P_PAD, 1) && elements->mode == PAD_CONSTANT)
        elements = elements->arg[1];
    if (is_dims(elements, P_MAP, 1) && elements->fun->arg[0]->kind == E_GET)
        elements = elements->arg[0];
    return expr_is(elements, P_JOIN) ? counted_row(elements->arg[0]) : 0;
}

// The elements of a keyed fold that begin with a row: itself, or a part of rows that a map
// gives it.
static const Expr *whole_rows(const Rewrite *rw, const Expr *elements)
{
    if (elements->kind != E_PARAM)
        return elements;
    for (const Context *c = rw->context; c; c = c->outer) {
        if (c->child != CHILD_FUN || c->expr->fun->params[0] != elements->param)
            continue;
        const Expr *split = c->expr->arg[0];
        int64_t row = is_dims(split, P_SPLIT, 1) ? keyed_row(split->arg[0]) : 0, n;
        bool whole = row && arith_is_const(split->num[0], &n) && n % row == 0;
        return whole ? split->arg[0] : NULL;
    }
    return NULL;
}

// How long rows are whose keys no other row has (joinKeyed), or all of one row. 0: neither.
static int64_t own_row(const Expr *elements)
{
    const Expr *rows = expr_is(elements, P_JOIN) ? elements->arg[0] : NULL;
    const Expr *key = rows ? row_key(rows) : NULL, *sum = key_sum(key);
    int64_t length = 0;
    if (sum && sum != key && counts(sum->arg[0]->arg[0], rows) &&
        is_within(key->arg[0], sum->arg[1], sum->arg[0]->arg[1]))
        elements = rows->fun->arg[0];
    return arith_is_const(elements->type->len, &length) ? length : 0;
}

// Does each of g items have elements of the array that no other updates? It has `near` of
// them, and those g * near further on. Copies are its own, or those of its part of a row,
// or it stays in its columns.
static bool have_own(const Rewrite *rw, const Expr *at, int64_t near, int64_t copies,
                     int64_t beside, int64_t g)
{
    const Expr *rows = whole_rows(rw, at->arg[1]);
    const int64_t row = rows ? keyed_row(rows) : 0;
    const int64_t own = beside == 1 ? own_row(at->arg[1]) : 0;
    return (copies * beside == g && (beside == 1 || row == near * beside)) ||
           (own && own % near == 0 && copies * near % own == 0) ||
           (copies == 1 && row && row % (near * g) == 0);
}

Expr *rule_reduceByLcl(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    enum { COPIES_MOST = 1024, UNROLL_MOST = 16 };
    if (!may_update(at, args) || !by_all_items(rw) || !arith_is_const(at->num[0], NULL) ||
        args->at[1] < 1 || args->at[1] > COPIES_MOST || args->at[2] < 1 || args->at[3] < 1)
        return NULL;
    const int64_t near = args->at[0], copies = args->at[1], beside = args->at[2];
    Pattern by =
        have_own(rw, at, near, copies, beside, args->at[3]) ? P_REDBYOWN : P_REDBYLCL;
    if (!keyed_updates(at) && (by == P_REDBYLCL || near * copies > 1))
        return NULL;
    Expr *array = make1(rw, P_TOLOCAL, filled(rw, at, P_MAPLCL, copies));
    Expr *all = updated(rw, at, by, array, near, copies, beside);
    if (copies == 1)
        return make(rw, P_MAPLCL, 1, NULL, make_identity(rw), all);
    Param *each = fresh(rw, "each");
    Expr *join =
        make_reduce(rw, copies > UNROLL_MOST ? P_REDSEQ : P_REDUNROLL, joins_parts(rw, at),
                    start_value(rw, at->arg[0]), use(rw, each));
    all = make_sized(rw, P_SPLIT, beside > 1 ? at->num[0] : num(rw, copies), all);
    all = beside > 1 ? make1(rw, P_TRANSPOSE, all) : all;
    return make(rw, P_MAPLCL, 1, NULL, make_lambda(rw, each, join), all);
}
