// SPDX-License-Identifier: Apache-2.0
//
// Which recurrences become prefixes that work-items share (rule scanAffine). That takes
// more operations: pairs of numbers are joined instead of numbers, and of two components
// six. So it is done where there are fewer of them than items are needed to be busy.
// Neither the device nor the point decides, for the bounds of the reference are those of
// the same form.

#include "derive/walk.h"

static bool is_in_turn(const Expr *expr, const void *none)
{
    return expr_is(expr, P_SCAN) && !folds_by_parts(expr);
}

// How many elements what has a position in its function has; INT32_MAX: it is not known.
static int64_t elements_around(const DeriveWalk *w, Path at)
{
    int64_t all = 1, n;
    while (at.n-- > 0) {
        const Expr *map = walk_node(w, at);
        const bool each =
            at.step[at.n] == CHILD_FUN && (is_map(map) || expr_is(map, P_ARRAY));
        for (int i = 0; each && i < map->dims; i++)
            all = arith_is_const(type_elem(map->type, i)->len, &n) ? MIN(all * n, INT32_MAX)
                                                                   : INT32_MAX;
    }
    return all;
}

// (H200, predicted: rows of 1,024, as loops and shared: 8,192 of them 74 and 51 us, 32,768
// 142 and 181; columns of 1,024: 8,192 of them 67 and 38.)
static void share_scan(DeriveWalk *w, Path at)
{
    enum { BUSY = 1 << 14, OF_PAIRS = 8, LENGTH_LEAST = 64 };
    int64_t length;
    const Expr *scan = walk_node(w, at);
    const int64_t most = type_is_scalar(scan->type->elem) ? BUSY : BUSY / OF_PAIRS;
    const bool is_short = arith_is_const(scan->type->len, &length) && length < LENGTH_LEAST;
    if (is_short || elements_around(w, at) >= most ||
        !walk_apply_plain(w, RULE_SCAN_AFFINE, at))
        walk_apply_plain(w, RULE_SCAN_FISSION, at);
}

static void share_scans(DeriveWalk *w, Path at)
{
    if (w->deep || !expr_find(walk_node(w, at), is_in_turn, NULL))
        return;
    if (is_in_turn(walk_node(w, at), NULL))
        share_scan(w, at);
    if (walk_node(w, at)->fun)
        share_scans(w, walk_below(w, at, CHILD_FUN));
    for (int i = 0; !w->deep && i < walk_node(w, at)->narg; i++)
        share_scans(w, walk_below(w, at, i));
}

// Those of an array that a function makes, unless some prefix in it stays one that is made
// in turn: who makes that has the others, too.
void derive_scans(DeriveWalk *w, Path at)
{
    const Expr *expr = w->deep || w->strict ? NULL : walk_node(w, at);
    if (!expr || !expr_find(expr, is_in_turn, NULL))
        return;
    if (expr->kind == E_PATTERN && expr->fun && expr->type->kind == T_ARRAY) {
        const Rewriter before = rewriter_hold(&w->r);
        share_scans(w, at);
        rewriter_end(&w->r, &before, !expr_find(walk_node(w, at), is_in_turn, NULL));
        return;
    }
    if (expr->fun)
        derive_scans(w, walk_below(w, at, CHILD_FUN));
    for (int i = 0; !w->deep && i < walk_node(w, at)->narg; i++)
        derive_scans(w, walk_below(w, at, i));
}
