// SPDX-License-Identifier: Apache-2.0
//
// Functions of rows, before the normal form: what they give is seen to be maps, and what
// they store becomes stages over all rows.

#include "derive/walk.h"

static bool has_function(const Expr *expr, const void *none)
{
    return expr->fun != NULL;
}

// Is something folded for the row itself, not for each of its elements?
static bool folds_row(const Expr *expr)
{
    bool found =
        fold_is_long(expr, 0) || scan_is_long(expr, 0) || expr_is(expr, P_REDUCEBY);
    for (int i = 0; i < expr->narg && !found; i++)
        found = folds_row(expr->arg[i]);
    return found;
}

// Arrays of one length that a function gives are made element by element.
static void tuples_by_element(DeriveWalk *w, Path at)
{
    while (!w->deep && walk_node(w, at)->kind == E_TUPLE &&
           walk_apply_plain(w, RULE_UNZIP_TUPLE, at))
        at = walk_below(w, walk_below(w, at, 0), CHILD_FUN);
}

// A function gives a map for its rows as itself: not by a name, nor as one of a tuple.
void derive_results_of_rows(DeriveWalk *w, Path at)
{
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    if (!expr || !expr_find(expr, has_function, NULL))
        return;
    for (int i = 0; !w->deep && i < walk_node(w, at)->narg; i++)
        derive_results_of_rows(w, walk_below(w, at, i));
    if (!w->deep && walk_node(w, at)->fun)
        derive_results_of_rows(w, walk_below(w, at, CHILD_FUN));
    expr = w->deep ? NULL : walk_node(w, at);
    if (expr && expr->kind == E_LET && expr_is_use(expr->arg[1], expr->param))
        walk_apply_plain(w, RULE_LET_INLINE, at);
    else if (expr && is_map(expr) && !folds_row(expr->fun->arg[0]))
        tuples_by_element(w, walk_below_lets(w, walk_below(w, at, CHILD_FUN)));
}

// Stages ---------------------------------------------------------------------------------

static void drop_unused(DeriveWalk *w, Path at)
{
    for (; !w->deep && walk_node(w, at)->kind == E_LET; at = walk_below(w, at, 1))
        while (walk_node(w, at)->kind == E_LET &&
               !expr_mentions(walk_node(w, at)->arg[1], walk_node(w, at)->param) &&
               walk_apply_plain(w, RULE_LET_INLINE, at))
            ;
}

// A scatter or a loop whose function uses the name before it.
static bool is_stage_of_lets(const Expr *body)
{
    const Expr *stage = body;
    while (stage->kind == E_LET)
        stage = stage->arg[1];
    return body != stage && stage->fun && expr_mentions(stage->fun, body->param);
}

// What a map stores for each row becomes a stage over all rows, from the inside out: every
// item that reads an element of a scattered row would scatter all of it, and a loop over
// steps of a long row would be one item's. (A processor's thread has a row in its cache.)
void derive_stages_of_rows(DeriveWalk *w, Path at)
{
    const RowStages wanted = {.least = HOST_LEAST, .loops = !w->cpu};
    const int64_t args[] = {wanted.least, wanted.loops};
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    if (!expr || !expr_find(expr, is_row_stage, &wanted))
        return;
    for (int i = 0; !w->deep && i < walk_node(w, at)->narg; i++)
        derive_stages_of_rows(w, walk_below(w, at, i));
    if (!w->deep && walk_node(w, at)->fun)
        derive_stages_of_rows(w, walk_below(w, at, CHILD_FUN));
    expr = w->deep ? NULL : walk_node(w, at);
    if (!expr || !is_map(expr) || !expr_find(expr->fun, is_row_stage, &wanted))
        return;
    if (walk_apply_plain(w, RULE_MAP_NEST, at))
        derive_stages_of_rows(w, at);
    else if (walk_apply(w, RULE_HOIST_STAGE, at, args, 2) ||
             (is_stage_of_lets(walk_node(w, at)->fun->arg[0]) &&
              walk_apply_plain(w, RULE_MAP_FISSION_LET, at))) {
        Path rest = walk_below(w, at, 1);
        walk_apply_plain(w, RULE_ZIP_FLATTEN, rest);
        drop_unused(w, walk_below(w, rest, CHILD_FUN));
        derive_stages_of_rows(w, walk_below(w, at, 0));
        derive_stages_of_rows(w, rest);
    } else if (!walk_apply_plain(w, RULE_JOIN_SCATTER, at) && wanted.loops &&
               walk_apply_plain(w, RULE_ITERATE_ROWS, at))
        derive_stages_of_rows(w, at);
}
