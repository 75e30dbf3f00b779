// SPDX-License-Identifier: Apache-2.0
//
// Interchange: the order of nested maps and reductions, with the transpositions it needs.
//
//   source  Lift InterchangeRules

#include "rewrite/internal.h"

Expr *rule_mapInterchange(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!is_dims(at, P_MAP, 1) || !is_dims(at->fun->arg[0], P_MAP, 1))
        return NULL;
    const Expr *inner = at->fun->arg[0];
    if (expr_mentions(inner->arg[0], at->fun->params[0]))
        return NULL;
    Param *a = fresh(rw, at->fun->params[0]->name);
    Param *b = fresh(rw, inner->fun->params[0]->name);
    Expr *body = expr_replace(rw->ir, inner->fun->arg[0], at->fun->params[0], use(rw, a));
    body = expr_replace(rw->ir, body, inner->fun->params[0], use(rw, b));
    Expr *over_x = map_by(rw, 1, a, body, copy_of(rw, at->arg[0]));
    Expr *over_y = map_by(rw, 1, b, over_x, copy_of(rw, inner->arg[0]));
    return make1(rw, P_TRANSPOSE, over_y);
}

// The start value of an array that holds it everywhere; NULL if it is no such array.
static const Expr *filled_with(const Expr *array)
{
    for (; array->kind == E_PATTERN; array = array->fun->arg[0]) {
        if ((!is_dims(array, P_ARRAY, 1) && !is_dims(array, P_MAP, 1)) ||
            expr_mentions(array->fun->arg[0], array->fun->params[0]))
            return NULL;
        if (!type_holds_array(array->fun->arg[0]->type))
            return array->fun->arg[0];
    }
    return NULL;
}

// A fold of rows, of one array or several of one length, which does the same in each
// column. Its elements are arrays, each a row, and scalars that belong to all of a row; in
// a column the elements of the arrays come first.
typedef struct {
    const Param *acc, *row;
    Param *a, *t;         // what a column has so far, and its next element
    int n, narray;        // components of t, and those that are elements of arrays
    int place[PARTS_MAX]; // of each component of a row in t
} ColumnFold;

static int parts_of_type(const Type *type)
{
    return type->kind == T_TUPLE ? type->n : 1;
}

// Which component of the parameter an expression is; less than 0: none.
static int component_of(const Expr *expr, const Param *param)
{
    const int k = element_component(expr, param); // -1: all of it
    return param->type->kind == T_TUPLE ? k : k + 1;
}

static bool find_places(ColumnFold *c, const Type *row, const Arith *len)
{
    int n = parts_of_type(row);
    for (int arrays = 1; arrays >= 0 && n <= PARTS_MAX; arrays--) {
        for (int i = 0; i < n; i++) {
            const Type *type = row->kind == T_TUPLE ? row->item[i] : row;
            if (type->kind == T_TUPLE || (type->kind == T_ARRAY && type->len != len))
                return false;
            if ((type->kind == T_ARRAY) == arrays)
                c->place[i] = c->n++;
        }
        c->narray = arrays ? c->n : c->narray;
    }
    return c->narray > 0;
}

static Expr *next_of(Rewrite *rw, const ColumnFold *c, int i)
{
    return part_of_value(rw, use(rw, c->t), c->place[i], c->n);
}

static bool is_scalar_of_row(const Expr *expr, const void *row)
{
    return component_of(expr, row) >= 0 && expr->type->kind != T_ARRAY;
}

// What the function of a map gives for a column, where it is given only elements of it and
// scalars of the row; NULL: it is given something else.
static Expr *column_value(Rewrite *rw, const ColumnFold *c, const Expr *map)
{
    const Expr *in = is_dims(map, P_MAP, 1) ? map->arg[0] : NULL;
    Expr *given[PARTS_MAX], *row[PARTS_MAX];
    bool zip = in && is_dims(in, P_ZIP, 1);
    int n = zip ? in->narg : 1;
    if (!in || n > PARTS_MAX || expr_mentions(map->fun, c->acc) ||
        expr_count(map->fun, expr_is_use, c->row) !=
            expr_count(map->fun, is_scalar_of_row, c->row))
        return NULL;
    for (int i = 0; i < n; i++) {
        const Expr *part = zip ? in->arg[i] : in;
        int own = component_of(part, c->acc), next = component_of(part, c->row);
        if (own < 0 && (next < 0 || part->type->kind != T_ARRAY))
            return NULL;
        given[i] = own < 0
                       ? next_of(rw, c, next)
                       : part_of_value(rw, use(rw, c->a), own, parts_of_type(c->acc->type));
    }
    Expr *value = call(rw, map->fun, all_parts(rw, given, n));
    if (c->n == c->narray)
        return value;
    for (int i = 0; i < c->n; i++)
        row[i] =
            c->place[i] < c->narray ? expr_literal(rw->ir, 0, false) : next_of(rw, c, i);
    return expr_replace(rw->ir, value, c->row, expr_tuple(rw->ir, row, c->n));
}

// Component i of the elements, each a row.
static Expr *component_rows(Rewrite *rw, const Expr *in, int i)
{
    if (in->type->elem->kind != T_TUPLE)
        return copy_of(rw, in);
    if (is_dims(in, P_ZIP, 1))
        return copy_of(rw, in->arg[i]);
    if (!is_dims(in, P_MAP, 1) || in->fun->arg[0]->kind != E_TUPLE)
        return expr_get(rw->ir, make1(rw, P_UNZIP, copy_of(rw, in)), i);
    Expr *f = make_lambda(rw, in->fun->params[0], in->fun->arg[0]->arg[i]);
    return make_map(rw, 1, copy_of(rw, f), copy_of(rw, in->arg[0]));
}

// The arrays turned; and what the fold of a column goes through.
static Expr *turned_rows(Rewrite *rw, const ColumnFold *c, const Expr *in, Param *column,
                         Expr **through)
{
    Expr *turned[PARTS_MAX], *next[PARTS_MAX];
    for (int i = 0; i < c->n; i++) {
        int place = c->place[i];
        Expr *rows = component_rows(rw, in, i);
        bool array = place < c->narray;
        if (array)
            turned[place] = make1(rw, P_TRANSPOSE, rows);
        next[place] = array ? part_of_value(rw, use(rw, column), place, c->narray) : rows;
    }
    *through = c->n > 1 ? make_zip(rw, 1, next, c->n) : next[0];
    return c->narray > 1 ? make_zip(rw, 1, turned, c->narray) : turned[0];
}

// The fold of a column, its start in *start; NULL: columns are not by themselves.
static Expr *column_fold(Rewrite *rw, ColumnFold *c, const Expr *at, Expr **start)
{
    *c = (ColumnFold){.acc = at->fun->params[0],
                      .row = at->fun->params[1],
                      .a = fresh(rw, "a"),
                      .t = fresh(rw, "e")};
    const Expr *body = at->fun->arg[0], *z = at->arg[0];
    const Type *all = c->acc->type;
    bool tuple = all->kind == T_TUPLE;
    const Type *first = tuple ? all->item[0] : all;
    Expr *value[PARTS_MAX], *init[PARTS_MAX];
    int n = parts_of_type(all);
    if (n > PARTS_MAX || first->kind != T_ARRAY ||
        (tuple && (body->kind != E_TUPLE || z->kind != E_TUPLE)) ||
        !find_places(c, c->row->type, first->len))
        return NULL;
    for (int i = 0; i < n; i++) {
        const Type *type = tuple ? all->item[i] : first;
        const Expr *filled = type->kind == T_ARRAY && type->len == first->len
                                 ? filled_with(tuple ? z->arg[i] : z)
                                 : NULL;
        value[i] = filled ? column_value(rw, c, tuple ? body->arg[i] : body) : NULL;
        if (!value[i])
            return NULL;
        init[i] = start_value(rw, filled);
    }
    *start = all_parts(rw, init, n);
    return all_parts(rw, value, n);
}

Expr *rule_reduceMapInterchange(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_REDUCE) || at->fun->nparam != 2)
        return NULL;
    Expr *start, *through;
    ColumnFold c;
    Expr *body = column_fold(rw, &c, at, &start);
    if (!body)
        return NULL;
    Param *column = fresh(rw, "column");
    Expr *turned = turned_rows(rw, &c, at->arg[1], column, &through);
    Expr *f = expr_lambda(rw->ir, (Param *[]){c.a, c.t}, 2, body);
    Expr *each = make_reduce(rw, P_REDUCE, f, start, through);
    Expr *all = map_by(rw, 1, column, each, turned);
    return at->type->kind == T_TUPLE ? make1(rw, P_UNZIP, all) : all;
}

// What folds an element by key of the rows that a keyed fold folds; NULL: nothing does.
static Expr *keyed_column(Rewrite *rw, const Expr *at, Expr **start)
{
    if (!expr_is(at, P_REDUCEBY) || at->fun->nparam != 2 ||
        at->type->elem->kind != T_ARRAY || at->fun->params[1]->type->kind != T_ARRAY)
        return NULL;
    ColumnFold c;
    Expr *body = column_fold(rw, &c, at, start);
    return body ? expr_lambda(rw->ir, (Param *[]){c.a, c.t}, 2, body) : NULL;
}

Expr *rule_reduceByMapInterchange(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Expr *start, *f = keyed_column(rw, at, &start);
    if (!f)
        return NULL;
    Param *column = fresh(rw, "column");
    Expr *pairs =
        make_zip(rw, 1, (Expr *[]){component_rows(rw, at->arg[1], 0), use(rw, column)}, 2);
    Expr *each =
        expr_pattern(rw->ir, P_REDUCEBY, 1, 0, at->num, f, (Expr *[]){start, pairs}, 2);
    Expr *turned = make1(rw, P_TRANSPOSE, component_rows(rw, at->arg[1], 1));
    return make1(rw, P_TRANSPOSE, map_by(rw, 1, column, each, turned));
}

// Element j of a row with key i has key i*m + j of m times as many.
Expr *rule_reduceByElements(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Expr *start, *f = keyed_column(rw, at, &start);
    if (!f)
        return NULL;
    const Arith *k = at->num[0], *m = at->type->elem->len;
    const Arith *all = arith_mul(rw->ir->arith, k, m);
    if (arith_most(all) < 0 || arith_most(all) > INT32_MAX)
        return NULL;
    Param *row = fresh(rw, "row"), *v = fresh(rw, "v");
    Expr *key = make_op(rw, OP_MUL, get_of(rw, row, 0), expr_num(rw->ir, m));
    key = make_op(rw, OP_ADD, key, get_of(rw, v, 0));
    Expr *item[] = {key_if_valid(rw, row, k, key), get_of(rw, v, 1)};
    Expr *both[] = {counting(rw, m), get_of(rw, row, 1)};
    Expr *elements =
        map_by(rw, 1, v, expr_tuple(rw->ir, item, 2), make_zip(rw, 1, both, 2));
    Expr *rows = map_by(rw, 1, row, elements, copy_of(rw, at->arg[1]));
    return make_sized(rw, P_SPLIT, m,
                      expr_pattern(rw->ir, P_REDUCEBY, 1, 0, &all, f,
                                   (Expr *[]){start, make1(rw, P_JOIN, rows)}, 2));
}

Expr *rule_transposeBothSides(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_MAP) || (at->dims == 1 && !inner_of(at, P_MAP)))
        return NULL;
    Expr *in = make1(rw, P_TRANSPOSE, copy_of(rw, at->arg[0]));
    return make1(rw, P_TRANSPOSE, make_map(rw, at->dims, copy_of(rw, at->fun), in));
}
