// SPDX-License-Identifier: Apache-2.0
//
// Arrays by index. Tables are arrays of functions of their places, as the weights of a
// transform, a window or a filter; each is made once, those of one length by one kernel.
// What reads a stage beside its own place reads windows of it.

#include "derive/walk.h"

bool derive_is_table(const Expr *let)
{
    return let->kind == E_LET && expr_is(let->arg[0], P_ARRAY) &&
           !array_is_large(let->arg[0]->type, TABLE_LEAST) &&
           expr_find(let->arg[0]->fun, calls_function, NULL) &&
           is_read_again(let->arg[1], let->param);
}

static bool is_map_of_places(const Expr *expr)
{
    return is_map(expr) && expr->dims == 1 && expr_is(expr->arg[0], P_ARRAY) &&
           type_is_scalar(expr->type->elem) && expr_find(expr->fun, calls_function, NULL);
}

// How many lets from there on name tables of one length, none of which reads another: at
// most as many as a zip has parts.
static int64_t tables_from(const Expr *first)
{
    enum { TABLES_MOST = 32 };
    int64_t n = 0;
    for (const Expr *let = first;
         let->kind == E_LET && n < TABLES_MOST && is_map_of_places(let->arg[0]);
         let = let->arg[1], n++) {
        bool reads = false;
        for (const Expr *other = first; other != let; other = other->arg[1])
            reads |= expr_mentions(let->arg[0], other->param);
        if (reads || let->arg[0]->type->len != first->arg[0]->type->len)
            break;
    }
    return n;
}

void derive_join_tables(DeriveWalk *w, Path at)
{
    for (; !w->deep && walk_node(w, at)->kind == E_LET; at = walk_below(w, at, 1)) {
        const int64_t n = tables_from(walk_node(w, at));
        if (n > 1)
            walk_apply(w, RULE_LET_TUPLE, at, &n, 1);
    }
}

// The arrays of the host level that read a stage, or what a name shows of it, beside their
// own place do so in windows; true: there are such.
static bool look_in_windows(DeriveWalk *w, Path at, const Param *stage)
{
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    bool found = expr && is_map(expr) && expr_mentions(expr, stage);
    if (expr && expr_is(expr, P_ARRAY) && expr_mentions(expr, stage))
        return walk_apply_plain(w, RULE_ARRAY_WINDOWS, at);
    if (expr && (expr->kind == E_LET || expr->kind == E_TUPLE))
        for (int i = 0; i < expr->narg; i++)
            found |= look_in_windows(w, walk_below(w, at, i), stage);
    if (expr && expr->kind == E_LET && is_view(expr->arg[0]) &&
        expr_mentions(expr->arg[0], stage))
        found |= look_in_windows(w, walk_below(w, at, 1), expr->param);
    return found;
}

void derive_windows_by_index(DeriveWalk *w, Path at)
{
    for (; !w->deep && walk_node(w, at)->kind == E_LET; at = walk_below(w, at, 1)) {
        const Expr *let = walk_node(w, at), *value = let->arg[0];
        const bool stage = (expr_is(value, P_ARRAY) || is_map(value)) &&
                           type_is_scalar(type_elem(value->type, value->dims)) &&
                           expr_find(value->fun, is_work, NULL);
        if (stage && look_in_windows(w, walk_below(w, at, 1), let->param))
            walk_apply_plain(w, RULE_ARRAY_WINDOWS, walk_below(w, at, 0));
        derive_windows_by_index(w, walk_below(w, at, 0));
    }
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    if (expr && expr_is(expr, P_ITERATE))
        derive_windows_by_index(w, walk_below(w, at, CHILD_FUN));
    else if (expr && expr->kind == E_GET)
        derive_windows_by_index(w, walk_below(w, at, 0));
}
