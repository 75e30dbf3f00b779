// SPDX-License-Identifier: Apache-2.0
//
// What parameters stand for: a view, or the name of a value that is computed once for all
// its uses.

#include "lower/internal.h"

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

// The items that are computed and used often get names: or the text would double with each
// function that reads what another one computes.
static const View *name_items(Lower *l, const View *view, const Param *param,
                              const Expr *body)
{
    int n = view->type->n;
    const View **item = NEW_ARRAY(l->arena, const View *, n);
    for (int i = 0; i < n; i++) {
        item[i] = view->item[i];
        if (item[i]->kind == V_VALUE && item[i]->value->kind == K_OP &&
            expr_uses_item(body, param, i) > 1)
            item[i] = view_value(l, k_named(l, item[i]->value, param->name));
    }
    return view_tuple(l, view->type, item);
}

// A scalar computed once and used often gets a name.
const Env *env_bind_named(Lower *l, const Env *env, const Param *param, const View *view,
                          const Expr *body)
{
    if (view->kind == V_TUPLE && view->type->kind == T_TUPLE)
        view = name_items(l, view, param, body);
    else if (expr_uses(body, param) > 1)
        view = view->kind == V_VALUE ? view_value(l, k_named(l, view->value, param->name))
                                     : read_once(l, view, param->name);
    return env_bind(l, env, param, view);
}
