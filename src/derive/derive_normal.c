// SPDX-License-Identifier: Apache-2.0
//
// The normal form of a program, which its space and all its points begin with.
//
//   method  Operands first, then the expression itself. Maps of the host level that are
//           written inside one another become one; what reads a chain, a product or a
//           prefix element by element moves into its function, whatever turns the array in
//           between, so that nothing folds the same elements for each of its readers; of
//           two independent maps around a fold of both the inner one comes to stand beside
//           the fold.

#include "derive/walk.h"

// Maps in maps -------------------------------------------------------------------------

static bool has_window(const Expr *in, int dims)
{
    const bool repeated = expr_is(in, P_ARRAY); // along other dimensions
    while (repeated && (expr_is(in, P_ARRAY) || in->kind == E_AT))
        in = in->kind == E_AT ? in->arg[0] : in->fun->arg[0];
    while (expr_is(in, P_TRANSPOSE) || expr_is(in, P_GATHER) || expr_is(in, P_TAKE) ||
           expr_is(in, P_DROP))
        in = in->arg[in->narg - 1];
    bool found = expr_is(in, P_SLIDE);
    for (int i = 0; is_zip(in, dims) && i < in->narg; i++)
        found |= has_window(in->arg[i], dims);
    return found;
}

// Maps of a map that folds nothing are one map. Folds of windows of the row itself are
// those of a stencil, and so are those of windows beside the row; others may be of a
// product.
static bool is_flat(const Expr *map)
{
    const Expr *inner = is_map(map) ? map->fun->arg[0] : NULL;
    const Type *type = inner && is_map(inner) ? inner->fun->arg[0]->type : NULL;
    return !type || type->kind == T_ARRAY ||
           (has_fold(inner->fun->arg[0]) &&
            !((has_window(inner->arg[0], inner->dims) ||
               has_window(map->arg[0], map->dims) ||
               (inner->dims > 1 && !is_chain_body(inner->fun->arg[0]))) &&
              expr_mentions(inner->arg[0], map->fun->params[0])));
}

// A map in several dimensions whose function folds rows or has their prefixes is a nest of
// maps, whose innermost is a chain.
static void nest_at(DeriveWalk *w, Path at)
{
    const Expr *map = walk_node(w, at);
    while (is_map(map) && map->dims > 1 && is_chain_body(map->fun->arg[0]) &&
           !has_window(map->arg[0], map->dims) && walk_apply_plain(w, RULE_MAP_NEST, at)) {
        at = walk_below(w, at, CHILD_FUN);
        map = walk_node(w, at);
    }
}

// Behind the lets of a function, a map in several dimensions is a nest of maps, one for
// each dimension of work-items.
static void nest_behind_lets(DeriveWalk *w, Path at)
{
    for (int d = 1; d < DIMS_MAX && !w->deep && is_map(walk_node(w, at)); d++) {
        Path tail = walk_below_lets(w, walk_below(w, at, CHILD_FUN));
        if (tail.n > at.n + 1 && !w->deep && is_map(walk_node(w, tail)))
            walk_apply_plain(w, RULE_MAP_NEST, tail);
        at = tail;
    }
}

// Folds of rows along an axis: maps of rows there are not taken apart, for the fold may
// share their pass.
static void find_axes(const Expr *expr, Axes *axes)
{
    if (expr->type && expr->type->kind == T_ARRAY && folds_together(expr) &&
        axes->n < COUNTOF(axes->length))
        axes->length[axes->n++] = expr->arg[1]->type->len;
    for (int i = 0; i < expr->narg; i++)
        find_axes(expr->arg[i], axes);
}

// Long lists of small arrays are not taken apart either: an item has one of them.
static bool is_instances(const Expr *map)
{
    enum { LIST_LEAST = 4096 };
    int64_t length, words = 1, inner;
    if (!is_map(map) || map->dims != 1 || map->type->elem->kind != T_ARRAY ||
        !arith_is_const(map->type->len, &length) || length < LIST_LEAST)
        return false;
    for (const Type *type = map->type->elem; type->kind == T_ARRAY; type = type->elem)
        words = arith_is_const(type->len, &inner) ? words * inner : SMALL_MOST + 1;
    return words <= SMALL_MOST;
}

static bool is_kept(const Expr *map, const Axes *axes)
{
    if (is_instances(map))
        return true;
    for (int i = 0; i < axes->n && is_map(map) && map->dims == 1; i++)
        if (map->type->len == axes->length[i])
            return true;
    return false;
}

// Into the function of what is read -----------------------------------------------------

bool is_costly(const Expr *expr)
{
    while (expr_is(expr, P_TRANSPOSE) || (is_map(expr) && layout_function(expr->fun)))
        expr = expr->arg[0];
    return has_chain(expr) || has_product(expr) ||
           (is_map(expr) && expr_find_pattern(expr->fun, P_SCAN));
}

// A map of turned arrays is a turned map of arrays: so that the chain below comes free.
static bool turn_both(DeriveWalk *w, Path at)
{
    if (!walk_apply_plain(w, RULE_TRANSPOSE_BOTH, at))
        return false;
    Path in = walk_below(w, walk_below(w, at, 0), 0);
    walk_apply_plain(w, RULE_LAYOUT_OF_ZIP, in);
    const Expr *zip = walk_node(w, in);
    walk_apply_plain(w, RULE_TRANSPOSE_TWICE, in);
    for (int i = 0; is_zip(zip, zip->dims) && i < zip->narg; i++)
        walk_apply_plain(w, RULE_TRANSPOSE_TWICE, walk_below(w, in, i));
    return true;
}

// One rewrite of a map that reads something costly as its operand, or as part i of it.
static bool fuse_part(DeriveWalk *w, Path at, Path part, int64_t i)
{
    const Expr *map = walk_node(w, at), *from = walk_node(w, part);
    if (from->kind == E_LET)
        return walk_apply_plain(
            w, expr_uses(from->arg[1], from->param) > 1 ? RULE_LET_OUT : RULE_LET_INLINE,
            expr_uses(from->arg[1], from->param) > 1 ? at : part);
    if (expr_is(from, P_TRANSPOSE))
        return turn_both(w, at);
    if (map->dims > 1 && walk_apply_plain(w, RULE_MAP_NEST, at))
        return true;
    if (is_map(from) && from->dims > 1)
        return walk_apply_plain(w, RULE_MAP_NEST, part);
    return i < 0 ? walk_apply_plain(w, RULE_MAP_FUSION, at)
                 : walk_apply(w, RULE_MAP_ZIP_FUSION, at, &i, 1);
}

static bool folds_name(const Expr *expr, const void *param)
{
    return expr_is(expr, P_REDUCE) && expr_is_use(expr->arg[1], param);
}

// The name that fusion leaves for what the function reads once goes, and one for what it
// only folds.
static bool inline_once(DeriveWalk *w, Path at)
{
    const Expr *let = walk_node(w, at);
    return let->kind == E_LET && expr_uses(let->arg[1], let->param) <= 1 &&
           (is_costly(let->arg[0]) ||
            (is_map(let->arg[0]) && expr_find(let->arg[1], folds_name, let->param)) ||
            (type_is_scalar(let->type) && has_fold(let->arg[0]))) &&
           walk_apply_plain(w, RULE_LET_INLINE, at);
}

// Is it a name for a prefix that a map reads element by element, and nothing else does, or
// that is a result?
static bool names_scan(const Expr *let)
{
    if (let->kind != E_LET || !scan_read(under_turn(let->arg[0])))
        return false;
    const Expr *in = is_map(let->arg[1]) ? let->arg[1]->arg[0] : under_turn(let->arg[1]);
    bool read = in->kind == E_PARAM && in->param == let->param;
    for (int i = 0; is_zip(in, 1) && i < in->narg; i++)
        read |= in->arg[i]->kind == E_PARAM && in->arg[i]->param == let->param;
    return read && expr_uses(let->arg[1], let->param) == 1;
}

// So is what is read of a prefix, which is one pass with it, and within a function a map of
// folds of any length: it may be half of a product.
static bool is_moved(const Expr *expr, bool host)
{
    return is_costly(expr) || (is_map(expr) && scan_read(expr)) ||
           (!host && is_map(expr) && fold_is_long(expr->fun->arg[0], 0));
}

static bool fuse_once(DeriveWalk *w, Path at, bool host)
{
    const Expr *map = walk_node(w, at), *in = map->arg[0];
    Path below = walk_below(w, at, 0);
    if (w->deep || !is_map(map) || layout_function(map->fun))
        return false;
    if (!holds_arrays(map->fun->arg[0]) && inline_once(w, walk_below(w, at, CHILD_FUN)))
        return true;
    if (expr_is(in, P_SCATTER)) // elements go to their places when they are made
        return walk_apply_plain(w, map->dims > 1 ? RULE_MAP_NEST : RULE_MAP_SCATTER, at);
    if (!expr_is(in, P_ZIP))
        return is_moved(in, host) && fuse_part(w, at, below, -1);
    for (int i = 0; i < in->narg; i++)
        if (is_moved(in->arg[i], host) && !derive_stays_apart(map, i))
            return walk_apply_plain(w, RULE_ZIP_NEST, at) ||
                   fuse_part(w, at, walk_below(w, below, i), i);
    return false;
}

// Arrays by index -----------------------------------------------------------------------

// How often the elements of a let's value are wanted at least, for each of what the rest
// makes; other names for it are looked through, and windows want them more than once.
static int count_uses(const Expr *expr, const Param *of)
{
    const int most = 2;
    if (expr_is_use(expr, of))
        return 1;
    int n = expr->fun ? count_uses(expr->fun, of) : 0;
    for (int i = 0; i < expr->narg && n < most; i++) {
        bool other = expr->kind == E_LET && i == 0 && expr_is_use(expr->arg[0], of);
        n += other ? count_uses(expr->arg[1], expr->param) : count_uses(expr->arg[i], of);
    }
    return is_nest(expr, NULL) || expr_is(expr, P_SLIDE) ? most * n : n;
}

// Must it be a map? One whose elements are folded or have folds in them or more dimensions
// than work-items have, one that makes elements of others which are wanted more than once,
// or of a stage, and within a function every one that is no other order of what there is.
static bool is_map_by_index(const Expr *expr, bool host, bool often, int around)
{
    const Expr *body = expr_is(expr, P_ARRAY) ? expr->fun->arg[0] : NULL;
    return body && (expr_find(body, host ? is_nest : is_work, NULL) ||
                    (often && expr_find(body, is_work, NULL) &&
                     expr_find(body, expr_is_at, NULL)) ||
                    around + nest_depth(expr) > DIMS_MAX);
}

// Is part i of an expression wanted more than once, or what follows a fold?
static bool is_wanted(const Expr *expr, int i, bool host, bool often)
{
    if (expr->kind != E_LET)
        return expr->kind == E_TUPLE && often;
    return i ? often || (host && expr_find(expr->arg[0], is_nest, NULL))
             : host && count_uses(expr->arg[1], expr->param) > 1;
}

// From the outside in: a function is then given rows, whose elements its own maps are
// given. often: it is the value of a name that is used more than once, or has the name of
// a fold around it; around: dimensions of the maps whose element this is.
static void maps_by_index(DeriveWalk *w, Path at, bool host, bool often, int around)
{
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    if (!expr)
        return;
    if (walk_apply_plain(w, RULE_ARRAY_VIEW, at)) {
        maps_by_index(w, at, host, often, around);
        return;
    }
    if (is_map_by_index(expr, host, often, around))
        walk_apply_plain(w, RULE_ARRAY_MAP, at);
    if (host && derive_is_table(expr))
        walk_apply_plain(w, RULE_ARRAY_MAP, walk_below(w, at, 0));
    walk_apply_plain(w, RULE_INDEX_ZIP, at);
    expr = walk_node(w, at);
    bool loop = expr_is(expr, P_ITERATE);
    bool operand = loop || expr->kind == E_LET || expr->kind == E_TUPLE;
    if (expr->fun)
        maps_by_index(w, walk_below(w, at, CHILD_FUN), host && loop, false,
                      is_map(expr) ? around + expr->dims : 0);
    for (int i = 0; !w->deep && i < walk_node(w, at)->narg; i++) {
        expr = walk_node(w, at);
        maps_by_index(w, walk_below(w, at, i), host && operand,
                      is_wanted(expr, i, host, often), 0);
    }
}

// What is the same for all elements -----------------------------------------------------

// Folds move out of functions that call for the same one again and again, as far as to
// where what they fold is bound; with a map that goes through what they fold, as an array.
static void hoist_folds(DeriveWalk *w, Path at, bool host, bool bound)
{
    int64_t least = host ? HOST_LEAST : 0;
    while (bound && !w->deep &&
           (walk_apply(w, RULE_HOIST_FOLD, at, &least, 1) ||
            (host && walk_apply(w, RULE_HOIST_MAP, at, &least, 1))))
        at = walk_below(w, at, 1);
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    if (!expr || !expr_find(expr, has_function, NULL))
        return;
    bool loop = expr_is(expr, P_ITERATE);
    for (int i = 0; !w->deep && i < walk_node(w, at)->narg; i++)
        hoist_folds(w, walk_below(w, at, i), host, expr->kind == E_LET && i == 1);
    if (!w->deep && walk_node(w, at)->fun)
        hoist_folds(w, walk_below(w, at, CHILD_FUN), host && loop, true);
}

// Products ------------------------------------------------------------------------------

// Arrays of the outer element that the inner map reads beside the other operand: by index.
static void index_rows(DeriveWalk *w, Path at)
{
    Path inner = walk_below(w, at, CHILD_FUN);
    const Expr *map = walk_node(w, at);
    for (int64_t i = 0; !w->deep && is_map(map) && is_map(walk_node(w, inner)); i++) {
        const Expr *in = walk_node(w, inner)->arg[0];
        if (!is_zip(in, 1) || i >= in->narg)
            return;
        map = walk_node(w, at);
        if (expr_mentions(in->arg[i], map->fun->params[0]))
            walk_apply(w, RULE_ZIP_INDEX, inner, &i, 1);
    }
}

// A product that reads something of the row beside each sum, before rows are joined.
static void index_product(DeriveWalk *w, Path at)
{
    const Expr *map = w->deep ? NULL : walk_node(w, at);
    if (!map || !is_map(map) || map->dims > 1 || is_product(map) ||
        !folds_pairs(map, map->fun->arg[0]))
        return;
    const Rewriter before = rewriter_hold(&w->r);
    index_rows(w, at);
    rewriter_end(&w->r, &before, !w->deep && is_product(walk_node(w, at)));
}

// Three maps, one in the other, of which the inner two are no rows and columns: if the
// outer one moves in beside the innermost, the two are a product.
static bool is_apart(const Expr *map)
{
    const Expr *inner = map->dims == 1 ? map->fun->arg[0] : NULL;
    if (!inner || !is_map(inner) || inner->dims != 1 || is_product(map) ||
        expr_mentions(inner->arg[0], map->fun->params[0]))
        return false;
    const NestReads reads = nest_reads(map);
    const Expr *rows = inner->fun->arg[0];
    return is_map(rows) && rows->dims == 1 && reads_pairs(&reads, 0, 2) &&
           !reads_pairs(&reads, 1, 2) &&
           !expr_mentions(rows->arg[0], map->fun->params[0]) && folds_pairs(map, rows);
}

static void find_product(DeriveWalk *w, Path at)
{
    const Expr *map = walk_node(w, at);
    if (!is_map(map))
        return;
    if (map->dims > 1) {
        const NestReads reads = nest_reads(map);
        if (reads_pairs(&reads, 0, 1))
            walk_apply_plain(w, RULE_MAP_NEST, at);
        return;
    }
    const Rewriter before = rewriter_hold(&w->r);
    bool stays = true;
    if (is_map(map->fun->arg[0]) && map->fun->arg[0]->dims > 1 && has_fold(map->fun) &&
        !has_window(map->arg[0], 1) && !has_chain(map))
        walk_apply_plain(w, RULE_MAP_NEST, walk_below(w, at, CHILD_FUN));
    if (is_apart(walk_node(w, at)))
        walk_apply_plain(w, RULE_MAP_INTERCHANGE, at);
    else if (folds_pairs(map, map->fun->arg[0]))
        index_rows(w, at);
    else // a map of windows in several dimensions stays one
        stays = w->deep || has_product(walk_node(w, at));
    rewriter_end(&w->r, &before, stays);
}

// The whole -----------------------------------------------------------------------------

// Is it there already? A name for it would stand between two maps.
static bool costs_nothing(const Expr *value)
{
    value = expr_behind_gets(value);
    return is_view(value) || value->kind == E_PARAM || value->kind == E_LITERAL;
}

static bool is_param(const Expr *e, const void *none)
{
    return e->kind == E_PARAM;
}

static bool has_data_index(const Expr *e, const void *none)
{
    return e->kind == E_AT && expr_find(e->arg[1], is_param, NULL);
}

static bool has_read_index(const Expr *e, const void *none)
{
    return e->kind == E_AT && expr_find(e->arg[1], expr_is_at, NULL);
}

static bool is_computed(const Expr *e, const void *none)
{
    return e->kind == E_PATTERN && !is_view(e);
}

// Is it read where a scalar says, which only kernels read?
static bool is_looked_up(const Expr *value)
{
    return !expr_find(value, is_computed, NULL) && expr_find(value, has_data_index, NULL);
}

// Is what a param names folded by key, or are its prefixes wanted, which items share?
static bool is_folded(const Expr *expr, const void *param)
{
    return (expr_is(expr, P_REDUCEBY) || scan_elem_bytes(expr)) &&
           expr_mentions(expr->arg[1], param);
}

// How often it is read outside of functions and windows.
static int reads_in_place(const Expr *expr, const Param *param)
{
    int n = expr_is_use(expr, param);
    for (int i = 0; i < expr->narg && !expr_is(expr, P_SLIDE); i++)
        n += reads_in_place(expr->arg[i], param);
    return n;
}

// How many of them are of maps that fold the rows to numbers, once each?
static int reads_of_folds(const Expr *expr, const Param *param)
{
    if (is_map(expr) && has_fold(expr->fun->arg[0]))
        return type_holds_array(type_elem(expr->type, expr->dims))
                   ? 0
                   : reads_in_place(expr->arg[0], param);
    int n = 0;
    for (int i = 0; i < expr->narg; i++)
        n += reads_of_folds(expr->arg[i], param);
    return n;
}

// Does a map, or an array by index, read no more than it makes, and compute little?
static bool is_little(const Expr *map, double bytes, double operations)
{
    const bool indices = expr_is(map, P_ARRAY);
    const Expr *element = map->fun->arg[0];
    while (is_map(element))
        element = element->fun->arg[0];
    return (indices || !expr_find_pattern(map->arg[0], P_SLIDE)) &&
           !expr_find(map->fun, indices ? has_read_index : has_data_index, NULL) &&
           bytes <= type_bytes(map->type, NULL, NULL) &&
           pipeline_operations(element) <= operations;
}

// Does a let's value mention a map with a name, which its kernel may make too?
static bool reads_map(const DeriveWalk *w, Path at)
{
    const Expr *value = walk_node(w, at)->arg[0];
    while (at.n-- > 0) {
        const Expr *let = walk_node(w, at);
        if (let->kind == E_LET && is_map(let->arg[0]) && expr_mentions(value, let->param))
            return true;
    }
    return false;
}

// Does a let hold a map of elements that a fold by key or a prefix reads, and nothing else,
// or that is done as fast as it is read? No kernel both makes and folds what has a name.
// What folds of rows read is made by each: this takes less time than to store and read it.
static bool is_part_of_fold(const DeriveWalk *w, Path at)
{
    enum { NEXT_TO_NOTHING = 4, BYTE_TIME = 4 }; // operations
    const Expr *let = walk_node(w, at), *value = let->arg[0], *body = let->arg[1];
    const int reads =
        is_map(value) || expr_is(value, P_ARRAY) ? reads_in_place(body, let->param) : 0;
    if (!reads || has_fold(value) || reads_map(w, at) ||
        expr_count(body, expr_is_use, let->param) != reads)
        return false;
    if (is_map(value) && expr_find(body, is_folded, let->param))
        return reads == 1 || is_little(value, type_bytes(value->arg[0]->type, NULL, NULL),
                                       NEXT_TO_NOTHING);
    const double bytes =
        type_bytes(type_elem(value->type, type_depth(value->type)), NULL, NULL);
    return reads > 1 && reads_of_folds(body, let->param) == reads &&
           is_little(value, bytes_below(value), BYTE_TIME * bytes);
}

// Are they maps of rows which items of a group share, or go through, one each?
static bool maps_rows(const Expr *map)
{
    if (is_map(map) && map->dims > 1 && expr_is(map->fun->arg[0], P_REDUCEBY))
        return true;
    if (is_map(map) && map->dims > 1) // prefixes of rows may be turned
        return is_chain_body(map->fun->arg[0]) &&
               !type_holds_array(map->fun->arg[0]->type) &&
               !has_window(map->arg[0], map->dims);
    const Expr *inner = is_map(map) && map->dims == 1 ? map->fun->arg[0] : NULL;
    return chain_depth(map) > 1 ||
           (inner && is_map(inner) && expr_mentions(inner->arg[0], map->fun->params[0]) &&
            (walks_rows(inner) || maps_rows(inner) || is_keyed_map(inner)));
}

// Rows in batches are rows of one list: a group has several where they are short, and parts
// of one where they are few and long. Where the map comes to stand.
static Path join_rows(DeriveWalk *w, Path at)
{
    while (!w->deep && maps_rows(walk_node(w, at)) && !has_product(walk_node(w, at))) {
        const Rewriter before = rewriter_hold(&w->r);
        bool flat = walk_node(w, at)->dims > 1 || walk_apply_plain(w, RULE_MAP_FLATTEN, at);
        if (!rewriter_end(&w->r, &before, flat && walk_apply_plain(w, RULE_MAP_JOIN, at)))
            return at;
        at = walk_below(w, at, 0);
    }
    return at;
}

// From the inside out.
static void flatten(DeriveWalk *w, Path at)
{
    const Expr *map = walk_node(w, at);
    if (!w->deep && is_map(map) && is_map(map->fun->arg[0]) && !is_kept(map, &w->axes))
        flatten(w, walk_below(w, at, CHILD_FUN));
    while (!w->deep && !is_flat(walk_node(w, at)) && !is_kept(walk_node(w, at), &w->axes) &&
           walk_apply_plain(w, RULE_MAP_FLATTEN, at))
        ;
}

static void normal_at(DeriveWalk *w, Path at, bool host);

// Names within what a function computes become names of the function, one after the other.
static void lets_out(DeriveWalk *w, Path at)
{
    while (!w->deep && has_fold(walk_node(w, at)) &&
           (walk_apply_plain(w, RULE_LET_OUT, at) || walk_node(w, at)->kind == E_LET))
        at = walk_below(w, at, 1);
}

static bool is_ordered_fold(const Expr *expr, const void *none)
{
    return expr_is(expr, P_REDUCE) && order_shows(expr);
}

// Windows share what they fold along an axis where that saves more than a map that stores
// it takes. Where the map that reads it is. (Two cores, sums of 5 x 5: 0.93 and 0.49 ms, of
// 3 x 3 x 3: 6.9 and 0.8. H100, 5 x 5: 87 and 91 us, 9 x 9: 118 and 95, 5 x 5 x 5 in steps
// of 2: 128 and 163.)
static Path separate_folds(DeriveWalk *w, Path at)
{
    enum { SAVED_LEAST = 32, SAVED_LEAST_CPU = 8 };
    const int64_t least = w->cpu ? SAVED_LEAST_CPU : SAVED_LEAST;
    while (!w->deep && is_map(walk_node(w, at)) &&
           !(w->strict && expr_find(walk_node(w, at)->fun, is_ordered_fold, NULL))) {
        const int64_t terms = expr_fold_terms(walk_node(w, at)->fun);
        if (!walk_apply(w, RULE_SEPARATE_FOLD, at, &least, 1))
            break;
        w->windows = MAX(w->windows, terms);
        normal_at(w, walk_below(w, at, 0), true);
        at = walk_below(w, at, 1);
    }
    return at;
}

// Moves the names of separated folds from the operands of an expression to before it. Then
// a map fuses with the map that follows the names, and what they hold are stages.
static Path names_before(DeriveWalk *w, Path at)
{
    while (!w->deep &&
           (walk_node(w, at)->kind == E_PATTERN || walk_node(w, at)->kind == E_TUPLE) &&
           walk_apply_plain(w, RULE_LET_OUT, at))
        at = walk_below(w, at, 1);
    return at;
}

// If a map reads several products, the first is computed where the map is, whose tiles are
// those of the product. The others are stages before it.
static Path name_products(DeriveWalk *w, Path at)
{
    const int64_t only = 0;
    Path in = walk_below(w, at, 0);
    bool another = false;
    for (int i = 0; !w->deep && i < walk_node(w, in)->narg; i++) {
        const Expr *zip = walk_node(w, in);
        const bool product = is_zip(zip, zip->dims) && has_product(zip->arg[i]);
        if (product && another)
            walk_apply(w, RULE_NAME_STAGE, walk_below(w, in, i), &only, 1);
        another |= product;
    }
    return names_before(w, at);
}

// Does a number that is computed stand between a map and the product in its function? Items
// find it anyway; in the fold, compilers find it once.
static bool is_before_product(const Expr *let)
{
    const Expr *value = let->arg[0];
    return let->kind == E_LET && type_is_scalar(value->type) &&
           !expr_find(value, is_computed, NULL) && is_map(expr_behind_lets(let->arg[1])) &&
           has_product(let->arg[1]);
}

// Takes a chain apart that a group has no room for, or that a product is within.
static bool parts_chain(DeriveWalk *w, Path at)
{
    if (is_for_items(walk_node(w, at)) || !derive_part_chain(w, at))
        return false;
    w->listed = true;
    derive_result_apart(w, walk_below_lets(w, at));
    hoist_folds(w, at, true, false);
    normal_at(w, at, true);
    return true;
}

static void normal_map(DeriveWalk *w, Path at, bool host)
{
    if (host)
        at = separate_folds(w, name_products(w, at));
    Path function = walk_below(w, at, CHILD_FUN);
    while (!w->deep && is_before_product(walk_node(w, function)) &&
           walk_apply_plain(w, RULE_LET_INLINE, function))
        ;
    if (host && parts_chain(w, at))
        return;
    index_product(w, at);
    if (host && !is_kept(walk_node(w, at), &w->axes))
        at = join_rows(w, join_outer(w, at));
    if (host)
        flatten(w, at);
    nest_at(w, at);
    bool fused = false;
    while (!w->deep && fuse_once(w, at, host)) {
        fused = true;
        while (expr_is(walk_node(w, at), P_TRANSPOSE) ||
               expr_is(walk_node(w, at), P_SCATTER) || walk_node(w, at)->kind == E_LET)
            at = walk_below(w, at, walk_node(w, at)->kind == E_LET);
    }
    if (w->deep || !is_map(walk_node(w, at)))
        return;
    Path body = walk_below(w, at, CHILD_FUN);
    if (fused)
        normal_at(w, body, false);
    lets_out(w, body);
    if (names_scan(walk_node(w, body)) && walk_apply_plain(w, RULE_LET_INLINE, body))
        normal_at(w, body, false);
    if (fused && host && parts_chain(w, at))
        return;
    derive_turn_result(w, walk_below_lets(w, body));
    find_product(w, at);
    if (host)
        nest_behind_lets(w, derive_turn_outside(w, at));
}

// A fold of what folds give is one fold, so that items can share all of it.
static void join_folds(DeriveWalk *w, Path at)
{
    for (;;) {
        const Rewriter before = rewriter_hold(&w->r);
        walk_apply_plain(w, RULE_REDUCE_FISSION, at);
        Path in = walk_below(w, at, 1);
        if (!w->deep && is_map(walk_node(w, in)))
            walk_apply_plain(w, RULE_REDUCE_FISSION, walk_below(w, in, CHILD_FUN));
        if (!rewriter_end(&w->r, &before, walk_apply_plain(w, RULE_JOIN_REDUCE, at)))
            return;
    }
}

// What a fold folds is a stage of its own where each element is found by folds of its own,
// which are not the same fold: items would find them one by one.
static void name_folded(DeriveWalk *w, Path at)
{
    enum { ROW_LEAST = 32 };
    const int64_t dims = 1;
    const Rewriter before = rewriter_hold(&w->r);
    join_folds(w, at);
    bool joined = w->r.expr != before.expr;
    rewriter_end(&w->r, &before, false);
    const Rewriter whole = rewriter_hold(&w->r);
    if (has_fold(walk_node(w, at)->fun))
        walk_apply_plain(w, RULE_REDUCE_FISSION, at);
    const Expr *in = walk_node(w, at)->arg[1];
    const Expr *fold = is_map(in) ? in->fun->arg[0] : NULL;
    fold = fold && !fold_is_long(fold, ROW_LEAST) ? fold_to_name(fold, ROW_LEAST) : fold;
    rewriter_end(&w->r, &whole,
                 fold && !joined && type_is_scalar(walk_node(w, at)->type) &&
                     walk_apply(w, RULE_NAME_FOLDED, at, &dims, 1));
}

// A map of more dimensions than work-items have, whose outermost have become one, keeps its
// name, so that what reads it likewise finds a stage.
static void name_whole(DeriveWalk *w, Path at)
{
    const Expr *let = walk_node(w, at), *whole = let->kind == E_LET ? let->arg[0] : let;
    while (expr_is(whole, P_SPLIT))
        whole = whole->arg[0];
    bool joined = whole != let && is_map(whole) && whole->dims == DIMS_MAX;
    while (!w->deep && joined && walk_apply_plain(w, RULE_LET_SPLIT, at))
        ;
}

// The lets at a position, of which there may be a thousand: where what follows them is.
static Path normal_lets(DeriveWalk *w, Path at, bool host)
{
    while (!w->deep && walk_node(w, at)->kind == E_LET) {
        const Expr *value = walk_node(w, at)->arg[0];
        if ((costs_nothing(value) ||
             (host && (is_looked_up(value) || is_part_of_fold(w, at)))) &&
            walk_apply_plain(w, RULE_LET_INLINE, at))
            continue;
        normal_at(w, walk_below(w, at, 0), host);
        name_whole(w, at);
        at = walk_below(w, at, 1);
    }
    return at;
}

// What a fold begins with is found by a kernel of its own if only kernels can read it.
static bool name_start(DeriveWalk *w, Path at)
{
    const Expr *fold = walk_node(w, at);
    if (!is_nest(fold, NULL) || !is_looked_up(fold->arg[0]))
        return false;
    const Rewriter before = rewriter_hold(&w->r);
    Path start = walk_below(w, at, 0);
    return rewriter_end(&w->r, &before,
                        walk_apply_plain(w, RULE_NAME_START, at) &&
                            walk_apply_plain(w, RULE_ONLY_ELEMENT, start) &&
                            walk_apply_plain(w, RULE_TO_GLOBAL, walk_below(w, start, 0)));
}

// Is it another layout of what follows a name? That would be stored, and then copied.
static bool shows_let(const Expr *expr)
{
    return expr->kind == E_PATTERN && pattern_info[expr->pattern].group == G_VIEW &&
           expr->narg == 1 && expr->arg[0]->kind == E_LET;
}

static void normal_at(DeriveWalk *w, Path at, bool host)
{
    at = normal_lets(w, at, host);
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    if (!expr)
        return;
    if (host && expr->kind == E_AT && is_looked_up(expr) &&
        !walk_apply_plain(w, RULE_ELEMENTS_OF, at))
        return;
    if (expr->kind == E_PATTERN && walk_apply_plain(w, RULE_START_APART, at)) {
        normal_at(w, at, host);
        return;
    }
    if (host && name_start(w, at)) {
        normal_at(w, at, host);
        return;
    }
    // An item would keep all of what rows of several arrays are folded to.
    if (expr_is(expr, P_REDUCE) &&
        (expr->type->kind == T_TUPLE || expr->arg[1]->type->elem->kind == T_TUPLE) &&
        walk_apply_plain(w, RULE_REDUCE_MAP_INTERCHANGE, at)) {
        normal_at(w, at, host);
        return;
    }
    // Rows that are folded by key would be those of one item: a group holds the folds of
    // all their elements, which it reads side by side, or those of a column. (H100, sums of
    // rows of 2,031 by 5 keys, 40 KB: 250 and 397 us; of 4,000 by 7, 112 KB: 776 and 578.)
    if (expr_is(expr, P_REDUCEBY) &&
        ((4 * type_bytes(expr->type, NULL, NULL) <= (double)w->room &&
          walk_apply_plain(w, RULE_REDUCE_BY_ELEMENTS, at)) ||
         walk_apply_plain(w, RULE_REDUCE_BY_MAP_INTERCHANGE, at))) {
        normal_at(w, at, host);
        return;
    }
    // A prefix that items cannot share as it stands may be one of what a map makes.
    if (expr_is(expr, P_SCAN) && !folds_by_parts(expr))
        walk_apply_plain(w, RULE_SCAN_FISSION, at);
    // What is folded by key is of words that items can update.
    if (expr_is(expr, P_REDUCEBY) && !(w->strict && order_shows(expr)) &&
        walk_apply_plain(w, RULE_REDUCE_BY_WORDS, at) && is_map(walk_node(w, at))) {
        normal_at(w, at, host);
        return;
    }
    if (host && !is_kept(walk_node(w, at), &w->axes))
        at = join_inner(w, at);
    bool loop = expr_is(expr, P_ITERATE) || launches_rows(expr, w->steps_room);
    if (walk_node(w, at)->fun)
        normal_at(w, walk_below(w, at, CHILD_FUN), host && loop);
    for (int i = 0; !w->deep && i < walk_node(w, at)->narg; i++)
        normal_at(w, walk_below(w, at, i), host);
    const bool parts = host && !w->deep && expr_is(walk_node(w, at), P_UNZIP);
    if (host && !w->deep &&
        (w->windows || parts || (w->listed && shows_let(walk_node(w, at)))))
        at = names_before(w, at);
    if (parts && derive_result_apart(w, at)) {
        normal_at(w, at, host);
        return;
    }
    if (!w->deep && is_map(walk_node(w, at)))
        normal_map(w, at, host);
    if (!w->deep && fold_is_long(walk_node(w, at), 0)) {
        if (host)
            name_folded(w, at);
        else
            join_folds(w, at);
    }
    walk_apply_plain(w, RULE_JOIN_ZIP, at);
    walk_apply_plain(w, RULE_SCAN_SHIFT, at);
}

// Does it look something up where a scalar says, outside of all patterns but as what a fold
// begins with?
static bool looks_up(const Expr *expr)
{
    bool found = has_data_index(expr, NULL);
    int n = expr->kind != E_PATTERN ? expr->narg : fold_is_long(expr, 0);
    for (int i = 0; i < n && !found; i++)
        found = looks_up(expr->arg[i]);
    return found;
}

// Folds beside what is looked up have names, and the rest is for one item.
static void name_folds_beside(DeriveWalk *w, Path at)
{
    const int64_t any[] = {0, 0};
    at = walk_below_lets(w, at);
    while (!w->deep && looks_up(walk_node(w, at)) &&
           walk_apply(w, RULE_NAME_FOLD, at, any, 2)) {
        Path fold = walk_below(w, at, 0);
        if (walk_apply_plain(w, RULE_START_APART, fold)) {
            name_folds_beside(w, fold);
            walk_apply_plain(w, RULE_LET_OUT, at);
        }
        at = walk_below_lets(w, at);
    }
}

static void only_elements(DeriveWalk *w, Path at)
{
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    if (expr && expr->kind == E_TUPLE)
        for (int i = 0; i < expr->narg; i++)
            only_elements(w, walk_below(w, at, i));
    else if (expr && is_looked_up(expr))
        walk_apply_plain(w, RULE_ONLY_ELEMENT, at);
}

// Rewrites each position from the outside in, as far as something below is of the sort.
// rewrite: returns where what was there has come to stand.
static void rewrite_all(DeriveWalk *w, Path at, ExprTest *sort,
                        Path (*rewrite)(DeriveWalk *w, Path at))
{
    if (w->deep || !expr_find(walk_node(w, at), sort, NULL))
        return;
    at = rewrite(w, at);
    if (walk_node(w, at)->fun)
        rewrite_all(w, walk_below(w, at, CHILD_FUN), sort, rewrite);
    for (int i = 0; !w->deep && i < walk_node(w, at)->narg; i++)
        rewrite_all(w, walk_below(w, at, i), sort, rewrite);
}

// Folds that choose become folds by operations, before anybody asks what folds are shared.
static Path fold_choice(DeriveWalk *w, Path at)
{
    walk_apply_plain(w, RULE_FOLD_CHOICE, at);
    return at;
}

// Does it name a tuple with arrays, below the names of its own?
static bool names_arrays(const Expr *expr, const void *none)
{
    const Expr *value = expr->kind == E_LET ? expr_behind_lets(expr->arg[0]) : expr;
    return value != expr && type_holds_array(value->type) &&
           (value->kind == E_TUPLE || expr_is(value, P_UNZIP));
}

// Names of tuples of arrays become names of the arrays, which are stages then.
static Path tuple_apart(DeriveWalk *w, Path at)
{
    while (names_arrays(walk_node(w, at), NULL) && walk_apply_plain(w, RULE_LET_OUT, at))
        at = walk_below(w, at, 1);
    if (names_arrays(walk_node(w, at), NULL))
        walk_apply_plain(w, RULE_LET_APART, at);
    return at;
}

void derive_normalise(DeriveWalk *w, Path at)
{
    rewrite_all(w, at, names_arrays, tuple_apart);
    rewrite_all(w, at, is_nest, fold_choice);
    derive_scans(w, at);
    if (!at.n)
        derive_name_results(w);
    w->axes.n = 0;
    for (Path in = at; !w->deep && walk_apply_plain(w, RULE_TABLE_OF_PLACES, in);)
        in = walk_below(w, in, 1);
    derive_results_of_rows(w, at);
    derive_windows_by_index(w, at);
    maps_by_index(w, at, true, false, 0);
    derive_results_of_rows(w, at); // arrays by index may be other names of them
    derive_join_rows(w, at);
    derive_stages_of_rows(w, at);
    derive_results_apart(w, at);
    walk_apply_plain(w, RULE_SAFE_FOLD, at);
    name_folds_beside(w, at);
    hoist_folds(w, at, true, true);
    derive_join_tables(w, at);
    derive_join_folds(w, at);
    find_axes(w->r.expr, &w->axes);
    normal_at(w, at, true);
    derive_turn_result(w, walk_below_lets(w, at));
    only_elements(w, walk_below_lets(w, at));
}
