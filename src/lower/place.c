// SPDX-License-Identifier: Apache-2.0
//
// Results that are the value of a let, or a component of it: the value is written to the
// output at once, and other uses read it there. Otherwise it would be stored and then
// copied. A loop at host level likewise, with a name or without.

#include "lower/internal.h"

static bool is_rows(const Expr *expr)
{
    return expr_is(expr, P_JOIN) || expr_is(expr, P_SPLIT);
}

// Maps in maps that take a component of each element.
static bool takes_field(const Expr *map, int *field)
{
    const Expr *body = map->fun->arg[0];
    const Param *element = map->fun->params[0];
    if (body->kind == E_GET && expr_is_use(body->arg[0], element)) {
        *field = body->index;
        return true;
    }
    return expr_is(body, P_MAP) && expr_is_use(body->arg[0], element) &&
           takes_field(body, field);
}

const Param *placed_result(const Expr *result, int *field)
{
    *field = -1;
    while (is_rows(result))
        result = result->arg[0];
    if (result->kind == E_GET) {
        *field = result->index;
        result = result->arg[0];
        if (expr_is(result, P_UNZIP))
            result = result->arg[0];
    } else if (expr_is(result, P_MAP)) {
        if (!takes_field(result, field))
            return NULL;
        result = result->arg[0];
    }
    return result->kind == E_PARAM ? result->param : NULL;
}

// The destination of the first result that is that component (-1: all) of the param.
static const View *destination(Lower *l, const Expr *result, const Param *param, int field,
                               const View *out)
{
    int found;
    while (result->kind == E_LET)
        result = result->arg[1];
    const bool items = result->kind == E_TUPLE || expr_is(result, P_ZIP);
    for (int i = 0; items && i < result->narg; i++) {
        const View *item =
            destination(l, result->arg[i], param, field, view_get(l, out, i));
        if (item)
            return item;
    }
    bool memory = l->kernel || out->kind == V_MEM || out->kind == V_TUPLE;
    if (!memory || placed_result(result, &found) != param || found != field)
        return NULL;
    for (; is_rows(result); result = result->arg[0])
        out = view_inverse(l, result, NULL, out);
    return out;
}

// The fold of a component (-1: all) of the param that a let's body names.
static const Expr *find_fold(const Expr *expr, const Param *param, int field)
{
    const Expr *found = NULL;
    if (expr_is(expr, P_REDSEQ)) {
        const Expr *in = expr->arg[1];
        if (in->kind == E_GET && in->index == field && expr_is(in->arg[0], P_UNZIP))
            in = in->arg[0]->arg[0];
        else if (field >= 0)
            return NULL;
        return expr_is_use(in, param) ? expr : NULL;
    }
    for (int i = 0; (expr->kind == E_TUPLE || expr->kind == E_LET) && i < expr->narg; i++)
        found = found ? found : find_fold(expr->arg[i], param, field);
    return found;
}

// Where the elements go that a loop of a kernel makes: results, or what folds them there
// and then, so that they are nowhere. NULL: one is wanted otherwise.
static const View *folded_place(Lower *l, const Expr *let, const Env *env, const View *out)
{
    const Expr *value = let->arg[0], *body = let->arg[1];
    const Type *tuple = value->type->elem->kind == T_TUPLE ? value->type->elem : NULL;
    int n = tuple ? tuple->n : 1, nfold = 0;
    const Expr **fold = NEW_ARRAY(l->arena, const Expr *, n);
    const View **item = NEW_ARRAY(l->arena, const View *, n);
    if (expr_count(body, expr_is_use, let->param) != n)
        return NULL;
    for (int i = 0; i < n; i++) {
        fold[i] = find_fold(body, let->param, tuple ? i : -1);
        item[i] = fold[i] ? NULL : destination(l, body, let->param, tuple ? i : -1, out);
        nfold += fold[i] != NULL;
        if (!fold[i] && !item[i])
            return NULL;
    }
    for (int i = 0; nfold && i < n; i++)
        if (fold[i])
            item[i] =
                view_fold(l, tuple ? type_field(l->arena, value->type, i) : value->type,
                          fold[i], env, fold_begin(l, fold[i], env));
    return !nfold ? NULL : tuple ? view_tuple(l, value->type, item) : item[0];
}

const View *place_rest(Lower *l, const Expr *value, const View **item)
{
    LoopCounters c;
    const bool counts = is_time_loop(value) && find_counters(l->ir, value, &c);
    for (int i = 0; i < type_tuple_of(value->type)->n; i++)
        if (!item[i] && !(counts && c.value[i]))
            item[i] = buffers_new(l, type_field(l->arena, value->type, i), MEM_GLOBAL,
                                  ROLE_TEMP, 0, "temp");
    return view_tuple(l, value->type, item);
}

const View *let_place(Lower *l, const Expr *let, const Env *env, const View *out)
{
    const Expr *value = let->arg[0];
    const Type *type = value->type, *tuple = type_tuple_of(type);
    if (l->kernel && expr_is(value, P_MAPSEQ))
        return folded_place(l, let, env, out);
    if (l->kernel || !(expr_is(value, P_TOGLOBAL) || is_time_loop(value)))
        return NULL;
    const View *whole = destination(l, let->arg[1], let->param, -1, out);
    if (whole || !tuple)
        return whole;
    const View **item = NEW_ARRAY(l->arena, const View *, tuple->n);
    bool any = false;
    for (int i = 0; i < tuple->n; i++) {
        item[i] = destination(l, let->arg[1], let->param, i, out);
        any |= item[i] != NULL;
    }
    return any ? place_rest(l, value, item) : NULL;
}

// Split and joined arrays have their elements in the same order.
static const View *under_rows(const View *view)
{
    while (view->kind == V_LAYOUT && view->dims == 1 &&
           (view->pattern == P_SPLIT || view->pattern == P_JOIN))
        view = view->src;
    return view;
}

bool in_place(const View *from, const View *out)
{
    from = under_rows(from);
    out = under_rows(out);
    bool same = from->kind == out->kind;
    for (int i = 0; same && from->kind == V_TUPLE && i < type_tuple_of(from->type)->n; i++)
        same = in_place(from->item[i], out->item[i]);
    return same &&
           (from->kind == V_TUPLE || (from->kind == V_MEM && from->buffer == out->buffer &&
                                      from->offset == out->offset));
}

bool map_in_place(const Expr *map, const View *in, const View *out)
{
    int field;
    return map->pattern == P_MAP && in->kind == V_TUPLE && takes_field(map, &field) &&
           in_place(in->item[field], out);
}
