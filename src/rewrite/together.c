// SPDX-License-Identifier: Apache-2.0
//
// Folds in the pass of the map that makes what they fold: each part of the list is gone
// through once, where results are stored and the fold goes on; what the parts give is
// folded behind it. The folds may be of scalars, or of rows element by element.

#include "rewrite/internal.h"

Expr *fold_of_map(Rewrite *rw, const Expr *reduce)
{
    Expr *fold = rule_reduceFission(rw, reduce, NULL);
    fold = fold ? fold : copy_of(rw, reduce);
    if (!expr_is(fold->arg[1], P_MAP))
        fold->arg[1] = make_map(rw, 1, make_identity(rw), fold->arg[1]);
    return fold;
}

// In so many dimensions what an array has in order, by joins of each of its parts; NULL:
// they are no such.
static Expr *without_joins(Rewrite *rw, const Expr *in, int dims)
{
    Expr *part[PARTS_MAX] = {NULL};
    const bool zip = is_dims(in, P_ZIP, 1), map = is_dims(in, P_MAP, 1);
    if (dims > 1 && (zip || map)) {
        for (int i = 0; i < in->narg; i++)
            if (i == PARTS_MAX || !(part[i] = without_joins(rw, in->arg[i], dims)))
                return NULL;
        return zip ? make_zip(rw, dims, part, in->narg)
                   : make_map(rw, dims, copy_of(rw, in->fun), part[0]);
    }
    for (; dims > 1 && expr_is(in, P_JOIN); dims--)
        in = in->arg[0];
    return dims > 1 ? NULL : copy_of(rw, in);
}

static Expr *with_joins(Rewrite *rw, Expr *in, int dims)
{
    for (; dims > 1; dims--)
        in = make1(rw, P_JOIN, in);
    return in;
}

// A name for what a fold folds, as a map, so that it is a stage like others.
Expr *rule_nameFolded(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const int64_t dims = args->at[0];
    if (!expr_is(at, P_REDUCE) || !at_host(rw) || dims < 1 || dims > DIMS_MAX)
        return NULL;
    Expr *fold = fold_of_map(rw, at), *in = without_joins(rw, fold->arg[1], (int)dims);
    Param *each = fresh(rw, "each");
    return in ? expr_let(rw->ir, each, in,
                         make_reduce(rw, P_REDUCE, fold->fun, fold->arg[0],
                                     with_joins(rw, use(rw, each), (int)dims)))
              : NULL;
}

// What is computed gets a name, and so is a stage: item i of a tuple, or all of it.
Expr *rule_nameStage(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t i = args->at[0];
    bool tuple = at->kind == E_TUPLE;
    if (!at_host(rw) || i < 0 || i >= (tuple ? at->narg : 1))
        return NULL;
    const Expr *item = tuple ? at->arg[i] : at;
    if (item->kind != E_PATTERN)
        return NULL;
    Param *stage = fresh(rw, "stage");
    Expr *rest = use(rw, stage);
    if (tuple) {
        rest = copy_of(rw, at);
        rest->arg[i] = use(rw, stage);
    }
    return expr_let(rw->ir, stage, copy_of(rw, item), rest);
}

// Element by element one of the operations that are associative.
static bool adds_arrays(const Expr *fun)
{
    const Expr *map = fun->arg[0], *zip = is_dims(map, P_MAP, 1) ? map->arg[0] : NULL;
    if (!zip || fun->nparam != 2 || !is_dims(zip, P_ZIP, 1) || zip->narg != 2 ||
        !expr_is_use(zip->arg[0], fun->params[0]) ||
        !expr_is_use(zip->arg[1], fun->params[1]))
        return false;
    const Expr *sum = map->fun->arg[0];
    const Param *t = map->fun->params[0];
    bool operation = sum->kind == E_OP && (sum->op == OP_ADD || sum->op == OP_MUL ||
                                           sum->op == OP_MINIMUM || sum->op == OP_MAXIMUM);
    for (int i = 0; operation && i < 2; i++)
        operation = sum->arg[i]->kind == E_GET && sum->arg[i]->index == i &&
                    expr_is_use(sum->arg[i]->arg[0], t);
    return operation;
}

static bool may_part(const Expr *fold)
{
    return fold->type->kind == T_ARRAY
               ? adds_arrays(fold->fun)
               : is_operation(fold) && !type_holds_array(fold->type);
}

bool folds_together(const Expr *reduce)
{
    return expr_is(reduce, P_REDUCE) &&
           (may_part(reduce) ||
            (type_is_scalar(reduce->type) && accumulated(reduce->fun) >= 0));
}

static bool has_only_integers(const Type *type)
{
    type = type_leaf(type);
    return type->kind == T_SCALAR && !scalar_info[type->scalar].floating;
}

bool order_shows(const Expr *reduce)
{
    const Expr *body = reduce->fun->arg[0];
    while (body && (body->kind == E_CALL || expr_is(body, P_MAP)))
        body = body->kind == E_CALL ? body->callee->body : body->fun->arg[0];
    bool picks =
        body && body->kind == E_OP && (body->op == OP_MINIMUM || body->op == OP_MAXIMUM);
    return !picks && !has_only_integers(reduce->type);
}

// What a let's map makes: n components of each element, those that are stored and those
// that are folded.
typedef struct {
    const Expr *let;
    int dims, n;
    bool tuple;
    const Expr *fold[PARTS_MAX]; // NULL: it is stored
} Made;

// Is it component k (-1: all) of what the let makes?
static bool is_part(const Expr *expr, const Made *m, int k)
{
    if (k < 0)
        return expr_is_use(expr, m->let->param);
    const Expr *body = is_dims(expr, P_MAP, m->dims) ? expr->fun->arg[0] : NULL;
    return body && expr_is_use(expr->arg[0], m->let->param) && body->kind == E_GET &&
           body->index == k && expr_is_use(body->arg[0], expr->fun->params[0]);
}

static int count_parts(const Expr *expr, const Made *m, int k)
{
    int n = is_part(expr, m, k);
    for (int i = 0; i < expr->narg; i++)
        n += count_parts(expr->arg[i], m, k);
    return expr->fun ? n + count_parts(expr->fun, m, k) : n;
}

static bool is_bound_in(const Expr *expr, const void *body)
{
    return expr->kind == E_PARAM && expr_find(body, expr_binds, expr->param);
}

static bool folds_part(const Expr *expr, const Made *m, int k)
{
    const Expr *in = expr_is(expr, P_REDUCE) ? expr->arg[1] : NULL;
    for (int d = 1; in && d < m->dims; d++)
        in = expr_is(in, P_JOIN) ? in->arg[0] : NULL;
    return in && is_part(in, m, k);
}

static const Expr *find_fold(const Expr *expr, const Made *m, int k)
{
    if (folds_part(expr, m, k))
        return may_part(expr) ? expr : NULL;
    for (int i = 0; i < expr->narg; i++) {
        const Expr *found = find_fold(expr->arg[i], m, k);
        if (found)
            return found;
    }
    return NULL;
}

static bool look_at(Made *m, const Expr *let)
{
    const Type *element = type_elem(let->arg[0]->type, let->arg[0]->dims);
    *m = (Made){
        .let = let, .dims = let->arg[0]->dims, .n = 1, .tuple = element->kind == T_TUPLE};
    if (m->tuple)
        m->n = element->n;
    bool any = false;
    for (int k = 0; k < m->n && m->n <= PARTS_MAX; k++) {
        int part = m->tuple ? k : -1;
        if (count_parts(let->arg[1], m, part) == 1)
            m->fold[k] = find_fold(let->arg[1], m, part);
        // It must begin with what is known where the let is.
        if (m->fold[k] && expr_find(m->fold[k]->arg[0], is_bound_in, let->arg[1]))
            m->fold[k] = NULL;
        any |= m->fold[k] != NULL;
    }
    return any && m->n <= PARTS_MAX;
}

static Expr *rows_of(Rewrite *rw, int64_t n, Expr *in)
{
    return make_sized(rw, P_SPLIT, num(rw, n), in);
}

// Component k of what f makes of an element.
static Expr *component(Rewrite *rw, const Made *m, Param *e, int k)
{
    Expr *made = call(rw, m->let->arg[0]->fun, use(rw, e));
    return made->kind == E_TUPLE ? made->arg[k] : part_of_value(rw, made, k, m->n);
}

// The function for rows of so many elements: a row of each component.
static Expr *by_rows(Rewrite *rw, const Made *m)
{
    Param *row = fresh(rw, "row");
    Expr *item[PARTS_MAX];
    for (int k = 0; k < m->n; k++) {
        Param *e = fresh(rw, "e");
        item[k] = map_by(rw, 1, e, component(rw, m, e, k), use(rw, row));
    }
    return make_lambda(rw, row, all_parts(rw, item, m->n));
}

// The fold of rows of scalars, element by element, and of the row that it leaves.
static Expr *fold_rows(Rewrite *rw, const Expr *fold, int64_t near, Expr *rows)
{
    Param *a = fresh(rw, "a"), *b = fresh(rw, "b"), *t = fresh(rw, "t");
    Expr *both[] = {use(rw, a), use(rw, b)};
    const Expr *pair[] = {get_of(rw, t, 0), get_of(rw, t, 1)};
    Expr *each = map_by(rw, 1, t, call_all(rw, fold->fun, pair), make_zip(rw, 1, both, 2));
    Expr *init = array_by(rw, num(rw, near), fresh(rw, "i"), start_value(rw, fold->arg[0]));
    Expr *columns = make_reduce(
        rw, P_REDUCE, expr_lambda(rw->ir, (Param *[]){a, b}, 2, each), init, rows);
    Param *left = fresh(rw, "left");
    return expr_let(rw->ir, left, columns, fold_like(rw, fold, P_REDUCE, use(rw, left)));
}

// What a part of the list gives.
static Expr *of_part(Rewrite *rw, const Made *m, int64_t near)
{
    Param *part = fresh(rw, "part"), *t = fresh(rw, "t");
    Expr *f = near ? by_rows(rw, m) : copy_of(rw, m->let->arg[0]->fun), *item[PARTS_MAX];
    for (int k = 0; k < m->n; k++) {
        Expr *made = item_list(rw, t, m->tuple, k);
        const Expr *fold = m->fold[k];
        item[k] = !fold  ? made
                  : near ? fold_rows(rw, fold, near, made)
                         : fold_like(rw, fold, P_REDUCE, made);
    }
    Expr *body = all_parts(rw, item, m->n);
    return make_lambda(rw, part,
                       expr_let(rw->ir, t, make_map(rw, 1, f, use(rw, part)), body));
}

// What a map in several dimensions reads, as a list.
static Expr *list_of(Rewrite *rw, const Expr *in, int dims)
{
    if (!is_dims(in, P_ZIP, dims))
        return with_joins(rw, copy_of(rw, in), dims);
    Expr *part[PARTS_MAX];
    for (int i = 0; i < in->narg; i++)
        part[i] = list_of(rw, in->arg[i], dims);
    return make_zip(rw, 1, part, in->narg);
}

// The elements of the parts in their places.
static Expr *in_places(Rewrite *rw, const Expr *map, int64_t near, Expr *made)
{
    made = with_joins(rw, made, near ? 3 : 2);
    for (int k = map->dims - 1; k > 0; k--)
        made = make_sized(rw, P_SPLIT, len_of(map, k), made);
    return made;
}

static bool may_have_parts(Rewrite *rw, const Made *m, int64_t rows, int64_t near)
{
    const Expr *map = m->let->arg[0];
    const Type *element = type_elem(map->type, m->dims);
    const Arith *length = len_of(map, 0);
    for (int k = 1; k < m->dims; k++)
        length = arith_mul(rw->ir->arith, length, len_of(map, k));
    for (int k = 0; k < m->n && near; k++)
        if (!type_is_scalar(m->tuple ? element->item[k] : element))
            return false;
    return rows >= 1 && near >= 0 && divides(rw, rows * MAX(near, 1), length) &&
           !(is_dims(map->arg[0], P_ZIP, m->dims) && map->arg[0]->narg > PARTS_MAX);
}

Expr *rule_foldTogether(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t rows = args->at[0], near = args->at[1];
    const Expr *map = at->kind == E_LET ? at->arg[0] : NULL;
    Made m;
    if (!map || !expr_is(map, P_MAP) || !at_host(rw) || !look_at(&m, at) ||
        !may_have_parts(rw, &m, rows, near))
        return NULL;
    Param *parts = fresh(rw, "parts");
    Expr *in = list_of(rw, map->arg[0], m.dims);
    in = rows_of(rw, rows, near ? rows_of(rw, near, in) : in);
    Expr *rest = copy_of(rw, at->arg[1]);
    for (int k = 0; k < m.n; k++) {
        Param *t = fresh(rw, "t"), *name = fresh(rw, "p");
        Expr *field = make_lambda(rw, t, get_of(rw, t, k));
        Expr *old =
            m.tuple ? make_map(rw, m.dims, field, use(rw, at->param)) : use(rw, at->param);
        Expr *made = item_list(rw, parts, m.tuple, k);
        if (m.fold[k])
            old = with_joins(rw, old, m.dims);
        else
            made = in_places(rw, map, near, made);
        rest = expr_replace(rw->ir, with_name(rw, rest, old, name), name, made);
    }
    return expr_let(rw->ir, parts, make_map(rw, 1, of_part(rw, &m, near), in), rest);
}

// What all items of a group write is kept in their registers.
Expr *rule_holdOwn(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    bool written = at->kind == E_PATTERN && expr_find_pattern(at, P_MAPLCL);
    if (!written || expr_is(at, P_TOLOCAL) || expr_is(at, P_TOPRIVATE) ||
        type_depth(at->type) != 1 || static_count(at->type) < 1 || !by_all_items(rw))
        return NULL;
    return make1(rw, P_TOPRIVATE, copy_of(rw, at));
}
