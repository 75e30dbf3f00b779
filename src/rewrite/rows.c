// SPDX-License-Identifier: Apache-2.0
//
// What a map stores for each row becomes one stage over all rows; the arrays that it gives
// for each row are made element by element.

#include "rewrite/internal.h"

// What a map's function ends in behind its lets, if it is of a pattern whose own function
// mentions none of them.
static const Expr *of_each_row(const Expr *at, Pattern pattern)
{
    const Expr *body = is_dims(at, P_MAP, 1) ? at->fun->arg[0] : NULL;
    const Expr *stage = body ? expr_behind_lets(body) : NULL;
    if (!stage || !expr_is(stage, pattern))
        return NULL;
    for (; body != stage; body = body->arg[1])
        if (expr_mentions(stage->fun, body->param))
            return NULL;
    return stage;
}

// A body in which the stage has become its operand.
static Expr *operand_of(Rewrite *rw, const Expr *body, const Expr *stage, Expr *operand)
{
    return body == stage ? operand
                         : expr_let(rw->ir, body->param, body->arg[0],
                                    operand_of(rw, body->arg[1], stage, operand));
}

Expr *rule_joinScatter(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Ir *ir = rw->ir;
    const Expr *scatter = of_each_row(at, P_SCATTER);
    const Arith *n = scatter ? len_of(scatter, 0) : NULL;
    const int64_t most = n ? arith_most(arith_mul(ir->arith, len_of(at, 0), n)) : -1;
    if (most < 0 || most > INT32_MAX)
        return NULL;
    Param *k = fresh(rw, "k");
    Expr *number = expr_op(ir, OP_DIV, use(rw, k), expr_num(ir, n), NULL);
    Expr *place = expr_op(ir, OP_MOD, use(rw, k), expr_num(ir, n), NULL);
    Expr *to = expr_replace(ir, scatter->fun->arg[0], scatter->fun->params[0], place);
    to = expr_replace(ir, to, at->fun->params[0],
                      expr_at(ir, copy_of(rw, at->arg[0]), number));
    Expr *first = expr_op(ir, OP_MUL, copy_of(rw, number), expr_num(ir, n), NULL);
    to = expr_op(ir, OP_ADD, first, to, NULL);
    Expr *operand = operand_of(rw, at->fun->arg[0], scatter, scatter->arg[0]);
    Expr *rows = map_by(rw, 1, at->fun->params[0], operand, copy_of(rw, at->arg[0]));
    Expr *all =
        make(rw, P_SCATTER, 1, NULL, make_lambda(rw, k, to), make1(rw, P_JOIN, rows));
    return copy_of(rw, make_sized(rw, P_SPLIT, n, all));
}

// The names that a function of a row has for what belongs to the row, and the arrays of
// all rows' values.
typedef struct {
    Rewrite *rw;
    const Param *name[PARTS_MAX];
    Expr *all[PARTS_MAX];
    int n;
    const bool *counts; // components of a tuple that are the same for all rows; NULL: none
} RowNames;

// The values of an expression for all rows: those of a name, or a map of the names that it
// mentions.
static Expr *mapped(const RowNames *rows, const Expr *value)
{
    Rewrite *rw = rows->rw;
    Param *t = fresh(rw, "t");
    Expr *part[PARTS_MAX];
    int which[PARTS_MAX], n = 0;
    for (int i = 0; i < rows->n; i++) {
        if (expr_is_use(value, rows->name[i]))
            return copy_of(rw, rows->all[i]);
        if (expr_mentions(value, rows->name[i]) || (n == 0 && i == rows->n - 1)) {
            part[n] = copy_of(rw, rows->all[i]);
            which[n++] = i;
        }
    }
    Expr *body = copy_of(rw, value);
    for (int i = 0; i < n; i++)
        body = expr_replace(rw->ir, body, rows->name[which[i]],
                            part_of_value(rw, use(rw, t), i, n));
    return map_by(rw, 1, t, body, n > 1 ? make_zip(rw, 1, part, n) : part[0]);
}

// The same, of each component of a tuple; names on the way are of all rows. type: the
// value's, which may be new. NULL: they are too many.
static Expr *spread(RowNames *rows, const Expr *value, const Type *type)
{
    Rewrite *rw = rows->rw;
    Expr *item[PARTS_MAX];
    if (value->kind == E_LET && rows->n < PARTS_MAX) {
        Param *all = fresh(rw, value->param->name);
        Expr *held = mapped(rows, value->arg[0]);
        rows->name[rows->n] = value->param;
        rows->all[rows->n++] = use(rw, all);
        Expr *rest = spread(rows, value->arg[1], type);
        return rest ? expr_let(rw->ir, all, held, rest) : NULL;
    }
    if (value->kind == E_LET)
        return NULL;
    if (value->kind != E_TUPLE)
        return type->kind == T_TUPLE ? make1(rw, P_UNZIP, mapped(rows, value))
                                     : mapped(rows, value);
    for (int i = 0; i < value->narg; i++)
        item[i] = rows->counts && rows->counts[i] ? copy_of(rw, value->arg[i])
                                                  : mapped(rows, value->arg[i]);
    return expr_tuple(rw->ir, item, value->narg);
}

// A step for all rows, of the arrays of their states.
static Expr *step_of_all(Rewrite *rw, const Expr *at, const Expr *loop, const bool *counts,
                         Param *state)
{
    const Type *type = loop->type;
    const int n = type->kind == T_TUPLE ? type->n : 1;
    RowNames rows = {.rw = rw, .counts = counts};
    Expr *own[PARTS_MAX];
    for (int i = 0; i < n; i++) {
        Param *name = param_new(rw->ir, "own", n > 1 ? type->item[i] : type);
        Expr *part = part_of_value(rw, use(rw, state), i, n);
        own[i] = counts[i] ? part : use(rw, name);
        if (counts[i])
            continue;
        rows.name[rows.n] = name;
        rows.all[rows.n++] = part;
    }
    rows.name[rows.n] = at->fun->params[0];
    rows.all[rows.n++] = copy_of(rw, at->arg[0]);
    Expr *value = all_parts(rw, own, n);
    return spread(&rows, call_all(rw, loop->fun, (const Expr *[]){value}), type);
}

// Does component i count from the same number for each row?
static bool is_counter(const Expr *loop, int i)
{
    Op op;
    const Expr *first = loop->arg[0]->kind == E_TUPLE ? loop->arg[0]->arg[i] : loop->arg[0];
    return (first->kind == E_LITERAL || first->kind == E_NUM) && expr_added(loop, i, &op);
}

// Prefixes of arrays for all rows: each step makes one array of each row.
static Expr *scan_of_all(Rewrite *rw, const Expr *at, const Expr *scan)
{
    Param *state = fresh(rw, "state"), *now = fresh(rw, "now");
    const Expr *f = scan->fun, *body = at->fun->arg[0];
    Expr *rows = copy_of(rw, at->arg[0]), *each[] = {use(rw, state), use(rw, now)};
    const RowNames given = {rw, {at->fun->params[0]}, {rows}, 1};
    const RowNames made = {
        rw, {f->params[0], f->params[1], at->fun->params[0]}, {each[0], each[1], rows}, 3};
    Expr *first = mapped(&given, operand_of(rw, body, scan, start_value(rw, scan->arg[0])));
    Expr *in = mapped(&given, operand_of(rw, body, scan, scan->arg[1]));
    Expr *step = expr_lambda(rw->ir, (Param *[]){state, now}, 2, mapped(&made, f->arg[0]));
    return make1(rw, P_TRANSPOSE,
                 make_reduce(rw, P_SCAN, step, first, make1(rw, P_TRANSPOSE, in)));
}

Expr *rule_iterateRows(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *scan = of_each_row(at, P_SCAN);
    if (scan && scan->type->elem->kind == T_ARRAY)
        return copy_of(rw, scan_of_all(rw, at, scan));
    const Expr *loop = of_each_row(at, P_ITERATE);
    const Type *type = loop ? loop->type : NULL;
    const int n = type && type->kind == T_TUPLE ? type->n : 1;
    if (!loop || n + 1 >= PARTS_MAX)
        return NULL;
    bool counts[PARTS_MAX];
    for (int i = 0; i < n; i++)
        counts[i] = n > 1 && is_counter(loop, i);
    RowNames rows = {rw, {at->fun->params[0]}, {copy_of(rw, at->arg[0])}, 1, counts};
    Param *state = fresh(rw, "state"), *end = fresh(rw, "end");
    Expr *first = spread(
        &rows, operand_of(rw, at->fun->arg[0], loop, start_value(rw, loop->arg[0])), type);
    Expr *step = step_of_all(rw, at, loop, counts, state);
    if (!first || !step)
        return NULL;
    Expr *all = make(rw, P_ITERATE, 1, loop->num, make_lambda(rw, state, step), first);
    if (n == 1)
        return copy_of(rw, all);
    Expr *part[PARTS_MAX];
    for (int i = 0; i < n; i++) {
        part[i] = get_of(rw, end, i);
        if (counts[i])
            part[i] = map_by(rw, 1, fresh(rw, "row"), part[i], copy_of(rw, at->arg[0]));
    }
    return copy_of(rw, expr_let(rw->ir, end, all, make_zip(rw, 1, part, n)));
}

Expr *rule_unzipTuple(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const int n = at->kind == E_TUPLE ? at->narg : 0;
    Expr *part[PARTS_MAX], *own[PARTS_MAX];
    if (n < 2 || n > PARTS_MAX)
        return NULL;
    Param *t = fresh(rw, "t");
    for (int i = 0; i < n; i++) {
        if (at->arg[i]->type->kind != T_ARRAY ||
            !arith_equal(rw->ir->arith, len_of(at->arg[i], 0), len_of(at->arg[0], 0)))
            return NULL;
        part[i] = copy_of(rw, at->arg[i]);
        own[i] = get_of(rw, t, i);
    }
    Expr *elements = map_by(rw, 1, t, expr_tuple(rw->ir, own, n), make_zip(rw, 1, part, n));
    return make1(rw, P_UNZIP, elements);
}

Expr *map_of_item(Rewrite *rw, const Expr *map, int i)
{
    Param *e = fresh(rw, map->fun->params[0]->name);
    Expr *body = call(rw, map->fun, use(rw, e)), **result = &body;
    while ((*result)->kind == E_LET)
        result = &(*result)->arg[1];
    *result = (*result)->arg[i];
    return map_by(rw, map->dims, e, body, copy_of(rw, map->arg[0]));
}

bool is_map_of_tuples(const Expr *expr)
{
    return expr_is(expr, P_MAP) && expr->fun->nparam == 1 &&
           expr_behind_lets(expr->fun->arg[0])->kind == E_TUPLE;
}

int dims_of_tuples(const Type *type)
{
    const int dims = type_depth(type);
    return dims <= DIMS_MAX ? dims : 0;
}

Expr *component_of_all(Rewrite *rw, Expr *all, int dims, int i)
{
    Param *t = fresh(rw, "t");
    return map_by(rw, dims, t, get_of(rw, t, i), all);
}

Expr *rule_tupleApart(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const bool let = at->kind == E_LET, unzip = expr_is(at, P_UNZIP);
    const Expr *all = let || unzip ? at->arg[0] : at;
    const bool map = is_map_of_tuples(all);
    const Type *type = type_tuple_of(all->type);
    if (!type || type->n > PARTS_MAX || (!unzip && (!map || all->dims > 1)))
        return NULL;
    const int dims = dims_of_tuples(all->type);
    if (!map && !dims)
        return NULL;
    Expr *part[PARTS_MAX];
    for (int i = 0; i < type->n; i++)
        part[i] =
            map ? map_of_item(rw, all, i) : component_of_all(rw, copy_of(rw, all), dims, i);
    if (unzip)
        return expr_tuple(rw->ir, part, type->n);
    if (!let)
        return make_zip(rw, 1, part, type->n);
    NamedValues names = {.n = 0};
    for (int i = 0; i < type->n; i++)
        part[i] = name_value(rw, &names, at->param->name, part[i]);
    const Expr *zip = make_zip(rw, 1, part, type->n);
    return with_names(rw, &names, rest_with(rw, at->arg[1], &at->param, &zip, 1));
}
