// SPDX-License-Identifier: Apache-2.0
//
// Tables: arrays of functions of their places, as the weights of a transform, a window or a
// filter. Each is made once, those of one length by one kernel.

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
