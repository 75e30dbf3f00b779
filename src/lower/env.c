// SPDX-License-Identifier: Apache-2.0
//
// What parameters stand for: a view, or the name of a value that is computed once for all
// its uses.

#include "lower/internal.h"

#include <string.h>

const Env *env_bind(Lower *l, const Env *env, const Param *param, const View *view)
{
    return NEW_OF(l->arena, Env, param, view, env);
}

// Computed behind a condition, when it is read?
static bool is_later(const View *view)
{
    while (view->kind == V_COND)
        view = view->src;
    return view->kind == V_LATER;
}

// What is computed when it is read, or a tuple of such: read now, once for all uses.
static const View *read_once(Lower *l, const View *view, const char *name)
{
    if (!is_later(view) || !l->block)
        return view;
    const View *all = view_read_items(l, view);
    if (all)
        return all;
    if (view->type->kind == T_TUPLE) {
        const View **item = NEW_ARRAY(l->arena, const View *, view->type->n);
        for (int i = 0; i < view->type->n; i++)
            item[i] = read_once(l, view_get(l, view, i), name);
        return view_tuple(l, view->type, item);
    }
    if (!type_is_scalar(view->type))
        return view;
    return view_value(l, k_named(l, view_read(l, view), name));
}

static const View *name_operation(Lower *l, const View *view, const char *name)
{
    return view->kind == V_VALUE && view->value->kind == K_OP
               ? view_value(l, k_named(l, view->value, name))
               : view;
}

// The items that are computed and used often get names: or the text would double with each
// function that reads what another one computes.
static const View *name_items(Lower *l, const View *view, const Param *param,
                              const Expr *body)
{
    int n = view->type->n;
    const View **item = NEW_ARRAY(l->arena, const View *, n);
    for (int i = 0; i < n; i++) {
        item[i] = view->item[i];
        if (expr_uses_item(body, param, i) > 1)
            item[i] = name_operation(l, item[i], param->name);
    }
    return view_tuple(l, view->type, item);
}

// Arrays computed where they are read -----------------------------------------------------

// How many maps, zips and tuples in it take an array as it is: at most 2. Folds do not
// count, as each has a loop of its own.
static int readers_of(const Expr *expr, const Param *array)
{
    bool reads = expr->kind == E_TUPLE || expr_is(expr, P_ZIP) || expr_is(expr, P_MAP) ||
                 expr_in_group(expr, G_PAR);
    int n = expr->fun ? readers_of(expr->fun, array) : 0;
    for (int i = 0; i < expr->narg && n < 2; i++)
        n += expr_is_use(expr->arg[i], array) ? reads : readers_of(expr->arg[i], array);
    return MIN(n, 2);
}

static bool is_named_element(const NamedElement *e, const View *map, const Block *block)
{
    return e->block == block && e->at < block->len && block->at[e->at] == e->last &&
           memcmp(e->index, map->index, sizeof e->index) == 0;
}

const View *env_element(Lower *l, const View *map)
{
    for (int i = map->elements && l->block && !l->stream ? map->elements->of.len : 0;
         i-- > 0;)
        if (is_named_element(&map->elements->of.at[i], map, l->block))
            return map->elements->of.at[i].value;
    return NULL;
}

static const View *name_computed(Lower *l, const View *view, const char *name)
{
    if (view->kind == V_TUPLE && view->type->kind == T_TUPLE) {
        const View **item = NEW_ARRAY(l->arena, const View *, view->type->n);
        for (int i = 0; i < view->type->n; i++)
            item[i] = name_computed(l, view->item[i], name);
        return view_tuple(l, view->type, item);
    }
    return name_operation(l, view, name);
}

const View *env_keep_element(Lower *l, const View *map, const View *element)
{
    if (!map->elements || !l->block || l->stream)
        return element;
    int before = l->block->len;
    element = name_computed(l, element, map->elements->name);
    if (l->block->len == before)
        return element;
    NamedElement e = {.value = element, .block = l->block, .at = l->block->len - 1};
    e.last = l->block->at[e.at];
    memcpy(e.index, map->index, sizeof e.index);
    VEC_PUSH(l->arena, &map->elements->of, e);
    return element;
}

// Its elements are named where they are read, if several maps read them: in a chain of
// arrays that each read the two before, the text would double with every array.
static const View *name_elements(Lower *l, const View *view, const Param *param,
                                 const Expr *body)
{
    if (readers_of(body, param) < 2)
        return view;
    View *named = arena_copy(l->arena, view, sizeof(View));
    named->elements = NEW_OF(l->arena, NamedElements, .name = param->name);
    return named;
}

// A scalar computed once and used often gets a name.
const Env *env_bind_named(Lower *l, const Env *env, const Param *param, const View *view,
                          const Expr *body)
{
    if (view->kind == V_TUPLE && view->type->kind == T_TUPLE)
        view = name_items(l, view, param, body);
    else if (view->kind == V_MAP)
        view = name_elements(l, view, param, body);
    else if (expr_uses(body, param) > 1)
        view = view->kind == V_VALUE ? view_value(l, k_named(l, view->value, param->name))
                                     : read_once(l, view, param->name);
    return env_bind(l, env, param, view);
}

const Env *env_behind_lets(Lower *l, const Env *env, const Expr **expr)
{
    for (; (*expr)->kind == E_LET; *expr = (*expr)->arg[1])
        env = env_bind_named(l, env, (*expr)->param, eval(l, (*expr)->arg[0], env),
                             (*expr)->arg[1]);
    return env;
}
