// SPDX-License-Identifier: Apache-2.0
//
// Functions of rows, before the normal form: what they give is seen to be maps, and what
// they store becomes stages over all rows. Results, each on its own.

#include "derive/walk.h"

bool has_function(const Expr *expr, const void *none)
{
    return expr->fun != NULL;
}

// Is something folded for the row itself, not for each of its elements?
static bool folds_row(const Expr *expr)
{
    return expr_any_here(expr, is_nest, NULL);
}

// Arrays of one length that a function gives are made element by element.
static void tuples_by_element(DeriveWalk *w, Path at)
{
    while (!w->deep && walk_node(w, at)->kind == E_TUPLE &&
           walk_apply_plain(w, RULE_UNZIP_TUPLE, at))
        at = walk_below(w, walk_below(w, at, 0), CHILD_FUN);
}

static bool is_result(const Expr *expr, const Param *param)
{
    return expr_is_use(expr, param) ||
           ((expr_is(expr, P_UNZIP) || under_turn(expr) != expr) &&
            expr_is_use(expr->arg[0], param));
}

static bool turns_scan(const Expr *expr)
{
    return under_turn(expr) != expr && scan_read(under_turn(expr));
}

// Which part of a zip is a turned prefix, beside no other prefix? -1: none is.
static int64_t turned_part(const Expr *zip)
{
    int64_t found = -1;
    for (int i = 0; is_zip(zip, 1) && i < zip->narg; i++) {
        if (!expr_find_pattern(zip->arg[i], P_SCAN))
            continue;
        if (found >= 0 || !turns_scan(zip->arg[i]))
            return -1;
        found = i;
    }
    return found;
}

// What a map makes of turned prefixes is made in their order, and turned as it is written.
void derive_turn_result(DeriveWalk *w, Path at)
{
    const Expr *map = w->deep ? NULL : walk_node(w, at);
    if (!map || !is_map(map) || map->dims > 1)
        return;
    const Path in = walk_below(w, at, 0);
    const int64_t part = turned_part(map->arg[0]);
    if (part >= 0)
        walk_apply(w, RULE_ZIP_TURN, in, &part, 1);
    if (!w->deep && (part >= 0 || turns_scan(walk_node(w, in))))
        walk_apply_plain(w, RULE_MAP_GATHER, at);
}

// Rows of prefixes that are made backwards would be kept by the items that make other
// prefixes of them, or beside them.
bool derive_stays_apart(const Expr *map, int i)
{
    enum { ROW_LEAST = 32 };
    const Expr *in = map->arg[0], *rows = in->arg[i];
    const Expr *row = is_map(rows) ? expr_behind_lets(rows->fun->arg[0]) : NULL;
    bool other = expr_find_pattern(map->fun, P_SCAN);
    for (int k = 0; k < in->narg && !other; k++)
        other = k != i && expr_find_pattern(in->arg[k], P_SCAN);
    return other && row && under_turn(row) != row && array_is_large(row->type, ROW_LEAST) &&
           expr_find_pattern(row, P_SCAN);
}

// Turned prefixes of rows that items share are prefixes of rows, which are turned as they
// are written. Where the map of the prefixes is.
Path derive_turn_outside(DeriveWalk *w, Path at)
{
    const int64_t only = 0;
    const Expr *map = w->deep ? NULL : walk_node(w, at);
    const Expr *body = map && is_map(map) ? map->fun->arg[0] : NULL;
    const Expr *scan = body && turns_scan(body) ? scan_read(body->arg[0]) : NULL;
    return scan && chain_shares(scan) && !expr_find_pattern(scan->arg[1], P_SCAN) &&
                   walk_apply(w, RULE_MAP_FISSION_ARG, at, &only, 1)
               ? walk_below(w, at, 0)
               : at;
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
    if (expr && expr->kind == E_LET && is_result(expr->arg[1], expr->param))
        walk_apply_plain(w, RULE_LET_INLINE, at);
    else if (expr && is_map(expr) && !folds_row(expr->fun->arg[0]))
        tuples_by_element(w, walk_below_lets(w, walk_below(w, at, CHILD_FUN)));
}

// Stages ---------------------------------------------------------------------------------

// Is it a row of what is there, which a place says? Its reader reads the row itself.
static bool is_row_read(const Expr *value)
{
    return value->type->kind == T_ARRAY && expr_behind_gets(value)->kind == E_AT;
}

// Names that nothing uses, and those of rows that are there, would be stages.
static void drop_names(DeriveWalk *w, Path at)
{
    for (const Expr *let; !w->deep && (let = walk_node(w, at))->kind == E_LET;)
        if ((expr_mentions(let->arg[1], let->param) && !is_row_read(let->arg[0])) ||
            !walk_apply_plain(w, RULE_LET_INLINE, at))
            at = walk_below(w, at, 1);
}

static bool is_long_fold(const Expr *expr, const void *none)
{
    return nest_is_long(expr, HOST_LEAST);
}

static bool fuses_with(const Expr *in)
{
    return is_map(in) && !expr_find(in->fun, is_long_fold, NULL) &&
           !layout_function(in->fun);
}

// The map at a position, and what it reads as operand i of a zip, or alone, are one,
// perhaps as maps in maps.
static bool fuse_operand(DeriveWalk *w, Path at, int64_t i)
{
    const Expr *map = walk_node(w, at);
    Path below = walk_below(w, at, 0);
    if (i >= 0)
        below = walk_below(w, below, (int)i);
    const Expr *in = w->deep ? NULL : walk_node(w, below);
    if (!in || !fuses_with(in))
        return false;
    if (in->dims != map->dims)
        return walk_apply_plain(w, RULE_MAP_NEST, in->dims > map->dims ? below : at);
    return i < 0 ? walk_apply_plain(w, RULE_MAP_FUSION, at)
                 : walk_apply(w, RULE_MAP_ZIP_FUSION, at, &i, 1);
}

// The layout of what a map gives becomes one of what it reads.
static void move_layout(DeriveWalk *w, Path at)
{
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    const Expr *in = expr && expr->narg ? expr->arg[expr->narg - 1] : NULL;
    if (!in || !(fuses_with(in) || (expr_is(expr, P_GATHER) && is_map(in))))
        return;
    const Rewriter before = rewriter_hold(&w->r);
    if (expr_is(expr, P_TRANSPOSE) && expr->arg[0]->dims == 1)
        walk_apply_plain(w, RULE_MAP_FLATTEN, walk_below(w, at, 0));
    rewriter_end(&w->r, &before, walk_apply_plain(w, RULE_LAYOUT_OF_MAP, at));
}

// Maps of elements that read one another are one, and layouts of what they give are layouts
// of what they read.
static void fuse_maps(DeriveWalk *w, Path at)
{
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    if (!expr || !expr_find(expr, has_function, NULL))
        return;
    for (int i = 0; !w->deep && i < walk_node(w, at)->narg; i++)
        fuse_maps(w, walk_below(w, at, i));
    if (expr->kind == E_PATTERN && pattern_info[expr->pattern].group == G_VIEW)
        move_layout(w, at);
    for (bool again = !w->deep && is_map(walk_node(w, at)); again && !w->deep;) {
        const Expr *map = walk_node(w, at), *in = map->arg[0];
        again = fuse_operand(w, at, -1) || walk_apply_plain(w, RULE_ZIP_FLATTEN, at) ||
                (in->dims > map->dims && walk_apply_plain(w, RULE_ZIP_NEST, at));
        for (int64_t i = 0; !again && is_zip(in, map->dims) && i < in->narg; i++)
            again = fuse_operand(w, at, i);
    }
    if (!w->deep && walk_node(w, at)->fun)
        fuse_maps(w, walk_below(w, at, CHILD_FUN));
}

static bool is_nest_of(const Expr *expr, const void *name)
{
    return is_nest(expr, NULL) && expr_mentions(expr, name);
}

static bool is_any(const Expr *expr, const void *none)
{
    return true;
}

// A small array that maps read, and no fold: each item of such a map would make all of the
// array, and read a few elements. Little stands in it: each name of a chain would double.
static bool is_read_sparsely(const Expr *let)
{
    enum { READS_MOST = 2, ITEM_MOST = 16, NODES_MOST = 40 };
    const Expr *rest = let->arg[1];
    return !array_is_large(let->arg[0]->type, SMALL_MOST + 1) &&
           array_is_large(let->arg[0]->type, ITEM_MOST + 1) && !has_fold(let->arg[0]) &&
           expr_uses(rest, let->param) <= READS_MOST &&
           expr_count(let->arg[0], is_any, NULL) <= NODES_MOST &&
           !expr_find(rest, is_nest_of, let->param);
}

// Is it another name, or a map that is read once and not made anew for each reader?
static bool is_inlined(const Expr *let)
{
    return is_name(let->arg[0]) ||
           (is_map(under_views(let->arg[0])) &&
            (is_read_sparsely(let) || (expr_uses(let->arg[1], let->param) == 1 &&
                                       !is_read_again(let->arg[1], let->param))));
}

// Maps that have names, and are read once, are one with those that read them; products are
// not, if they are to be kept.
static void inline_maps(DeriveWalk *w, Path at, bool products)
{
    while (!w->deep &&
           (walk_apply_plain(w, RULE_LET_OUT, at) || walk_node(w, at)->kind == E_LET))
        if (walk_node(w, at)->kind != E_LET || !is_inlined(walk_node(w, at)) ||
            (products && folds_matrix(walk_node(w, at)->arg[0])) ||
            !walk_apply_plain(w, RULE_LET_INLINE, at))
            at = walk_below(w, at, 1);
}

// Lets before a stage alone, of which its function uses the first; or before a fold by key,
// of which its elements may.
static bool is_stage_of_lets(const Expr *body, const RowStages *wanted)
{
    const Expr *stage = expr_behind_lets(body);
    return body != stage && is_row_stage(stage, wanted) &&
           (expr_is(stage, P_REDUCEBY) || expr_mentions(stage->fun, body->param));
}

// Takes such a function apart. Another name for what it is given would be a copy of that.
static bool part_lets(DeriveWalk *w, Path at, const RowStages *wanted)
{
    const Path body = walk_below(w, at, CHILD_FUN);
    bool lets = is_stage_of_lets(walk_node(w, body), wanted);
    while (lets && is_name(walk_node(w, body)->arg[0]) &&
           walk_apply_plain(w, RULE_LET_INLINE, body))
        lets = !w->deep && is_stage_of_lets(walk_node(w, body), wanted);
    return lets && walk_apply_plain(w, RULE_MAP_FISSION_LET, at);
}

// Bytes of the longest array in a type; -1: not known.
static int64_t longest_bytes(const Type *type)
{
    int64_t most = 0, bytes = 1, len;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++) {
        bytes = longest_bytes(type->item[i]);
        most = bytes < 0 || most < 0 ? -1 : MAX(most, bytes);
    }
    for (bytes = 1; type->kind == T_ARRAY; type = type->elem) {
        if (!arith_is_const(type->len, &len))
            return -1;
        bytes *= MIN(MAX(len, 1), INT32_MAX / bytes);
        if (type->elem->kind == T_SCALAR)
            most = bytes * scalar_info[type->elem->scalar].bytes;
    }
    return most;
}

// The same of what a map's function is given, and of what it makes and gives names.
static int64_t given_bytes(const Expr *map)
{
    return longest_bytes(type_elem(map->arg[0]->type, map->dims));
}

static int64_t named_bytes(const Expr *map)
{
    int64_t most = 0;
    for (const Expr *e = map->fun->arg[0]; e->kind == E_LET; e = e->arg[1])
        if (makes_array(e->arg[0]))
            most = MAX(most, longest_bytes(e->arg[0]->type));
    return most;
}

// Prefixes that are rows: an item has none of them.
static bool names_steps(const Expr *map)
{
    const Expr *e = map->fun->arg[0];
    while (e->kind == E_LET && !scans_rows(e->arg[0]))
        e = e->arg[1];
    return e->kind == E_LET;
}

static bool has_rows(const Type *type)
{
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        if (has_rows(type->item[i]))
            return true;
    return type_depth(type) > 1;
}

// Is it a loop of numbers of whose steps a group cannot have the prefixes and loops? Then
// they are launched.
static bool has_long_steps(const Expr *expr, const void *walk)
{
    const DeriveWalk *w = walk;
    return !is_loop_of_arrays(expr) && is_shared_loop(expr) &&
           steps_bytes(expr, false) > w->room;
}

static bool has_fewer(const Expr *map, int64_t most)
{
    int64_t rows;
    return arith_is_const(map->type->len, &rows) && rows < most;
}

static bool folds_much(const Expr *expr, const void *none)
{
    enum { TERMS_LEAST = 1 << 20 };
    int64_t n;
    return is_map(expr) && arith_is_const(expr->type->len, &n) &&
           n * expr_fold_terms(expr->fun) >= TERMS_LEAST;
}

// Are there fewer rows than groups that run at once, and more work in each than a group
// should do alone? Then many groups share each array of a row.
static bool wants_groups(const DeriveWalk *w, const Expr *map)
{
    return !w->cpu && has_fewer(map, w->units) && expr_find(map->fun, folds_much, NULL);
}

// What is to be stored for each row. A row that a group holds, and goes through again,
// needs no memory beyond that; the folds of rows that it does not hold are shared by groups
// if there are fewer rows than groups that run at once.
static RowStages stages_wanted(const DeriveWalk *w, const Expr *map)
{
    // Fewer are an item's. (A reference is checked with rows of 32, whose steps nvcc takes
    // 46 s for when they are written out.)
    enum { STAGE_LEAST = 32, AGAIN_LEAST = 256, COLUMNS_AT_ONCE = 512 };
    // Columns are an item's each, so that neighbours read neighbours.
    const int64_t at_once = reads_columns(map) ? w->units * COLUMNS_AT_ONCE : w->units;
    const bool steps = names_steps(map);
    const bool few = has_fewer(map, at_once) || steps || named_bytes(map) > w->room;
    int64_t bytes = given_bytes(map);
    if (few && bytes >= 0)
        bytes = MAX(bytes, named_bytes(map));
    const bool held = bytes >= 0 && bytes <= w->room && !steps && !wants_groups(w, map);
    const bool again = !held || !folds_row(map->fun->arg[0]) ||
                       has_rows(type_elem(map->arg[0]->type, map->dims));
    return (RowStages){
        .least = STAGE_LEAST,
        .loops = w->cpu                                   ? LOOPS_NONE
                 : expr_find(map->fun, has_long_steps, w) ? LOOPS_ALL
                                                          : LOOPS_ARRAYS,
        .again = again ? AGAIN_LEAST : 0,
        .folds = !held && bytes >= 0 && few,
    };
}

// Windows that a function gives turned are written so: only what is turned fuses.
static Path under_result(DeriveWalk *w, Path body)
{
    const Path result = walk_below_lets(w, body);
    const Expr *given = walk_node(w, result);
    return expr_is(given, P_TRANSPOSE) && expr_find_pattern(given, P_SLIDE)
               ? walk_below(w, result, 0)
               : body;
}

// A map in several dimensions as one of a list. Where the map then is.
Path derive_joined(DeriveWalk *w, Path at)
{
    while (!w->deep && walk_node(w, at)->dims > 1 && walk_apply_plain(w, RULE_MAP_JOIN, at))
        at = walk_below(w, at, 0);
    return at;
}

// Hoists a stage of a map in several dimensions as of one of a list, where *at then is.
static bool hoist_of_list(DeriveWalk *w, Path *at, const int64_t *stages)
{
    const Rewriter before = rewriter_hold(&w->r);
    const Path list = derive_joined(w, *at);
    const bool found = list.n > at->n && walk_apply(w, RULE_HOIST_STAGE, list, stages, 4);
    if (found)
        *at = list;
    w->listed |= found;
    return rewriter_end(&w->r, &before, found);
}

// Arrays that a function makes and reads again get names, within the steps of its loops,
// too.
static void name_arrays(DeriveWalk *w, Path at)
{
    inline_maps(w, at, true);
    while (!w->deep) {
        if (walk_apply_plain(w, RULE_LET_OUT, at))
            continue;
        const Expr *expr = walk_node(w, at);
        const bool let = expr->kind == E_LET;
        if (let &&
            (only_reads(under_views(expr->arg[0])) ||
             !expr_uses(expr->arg[1], expr->param)) &&
            walk_apply_plain(w, RULE_LET_INLINE, at))
            continue;
        const Path value = let ? walk_below(w, at, 0) : at;
        if (walk_apply(w, RULE_NAME_ARRAY, value, (int64_t[]){!let}, 1))
            continue;
        if (is_loop_of_arrays(walk_node(w, value)))
            name_arrays(w, walk_below(w, value, CHILD_FUN));
        if (!let)
            break;
        at = walk_below(w, at, 1);
    }
}

// Each array is one map of what it is made of: names within it that nothing reads again go.
static void fuse_arrays(DeriveWalk *w, Path at)
{
    for (bool let = true; let && !w->deep; at = walk_below(w, at, 1)) {
        let = walk_node(w, at)->kind == E_LET;
        const Path value = walk_under_layout(w, let ? walk_below(w, at, 0) : at);
        const Expr *array = w->deep ? NULL : walk_node(w, value);
        if (array && is_loop_of_arrays(array))
            fuse_arrays(w, walk_below(w, value, CHILD_FUN));
        if (array)
            fuse_maps(w, value);
        if (!w->deep && is_map(walk_node(w, value))) {
            inline_maps(w, walk_below(w, value, CHILD_FUN), false);
            fuse_maps(w, value);
        }
        if (!let)
            return;
    }
}

// Are its elements windows, which share what they read?
static bool has_windows(const Expr *in)
{
    bool found = expr_is(in, P_SLIDE);
    const bool view = in->kind == E_PATTERN && pattern_info[in->pattern].group == G_VIEW;
    for (int i = 0; view && i < in->narg && !found; i++)
        found = has_windows(in->arg[i]);
    return found;
}

// Names the arrays of a function, and makes each one map; false: a group need hold none.
static bool settle_arrays(DeriveWalk *w, Path body)
{
    name_arrays(w, body);
    fuse_arrays(w, body);
    return !w->deep && holds_arrays(walk_node(w, body));
}

static bool is_loop_alone(const Expr *expr, const void *none)
{
    return is_loop_of_arrays(expr) && !is_group_loop(expr);
}

// A group that has room for all arrays of an element makes them one after the other.
static bool hold_in_group(DeriveWalk *w, Path at)
{
    if (has_windows(walk_node(w, at)->arg[0]) || wants_groups(w, walk_node(w, at)) ||
        expr_find(walk_node(w, at)->fun, is_loop_alone, NULL))
        return false;
    const Rewriter before = rewriter_hold(&w->r);
    const Path list = derive_joined(w, at), body = walk_below(w, list, CHILD_FUN);
    const Expr *map = settle_arrays(w, body) ? walk_node(w, list) : NULL;
    const bool held = map && chain_depth(map) == 1 && shared_stage(map) < 0 &&
                      chain_scan_bytes(map) <= w->room;
    w->listed |= held && list.n > at.n;
    return rewriter_end(&w->r, &before, held);
}

// A product of all elements with a matrix that they share is a stage of its own, and so is
// what a group holds before it, if the function goes on from there.
static bool part_at_shared(DeriveWalk *w, Path at)
{
    const Path body = walk_below(w, at, CHILD_FUN);
    if (walk_node(w, at)->dims > 1 || shared_stage(walk_node(w, at)) < 0)
        return false;
    const Rewriter before = rewriter_hold(&w->r);
    bool ok = settle_arrays(w, body) &&
              !is_result(walk_node(w, body)->arg[1], walk_node(w, body)->param) &&
              expr_mentions(walk_node(w, body)->arg[0], walk_node(w, at)->fun->params[0]);
    while (ok && !w->deep && shared_stage(walk_node(w, at)) > 1)
        ok = walk_apply_plain(w, RULE_LET_IN, body);
    ok = ok && !w->deep && shared_stage(walk_node(w, at)) >= 0 &&
         walk_apply_plain(w, RULE_MAP_FISSION_LET, at);
    return rewriter_end(&w->r, &before, ok);
}

static bool makes_row(const Expr *expr, const void *none)
{
    return makes_array(expr) && array_is_large(expr->type, SMALL_MOST + 1);
}

static bool is_given_rows(const Expr *map)
{
    return type_holds_array(type_elem(map->arg[0]->type, map->dims));
}

// Is a function given rows, or does it make some?
static bool is_of_rows(const Expr *map)
{
    return is_given_rows(map) || expr_find(map->fun, makes_row, NULL);
}

// Those that are made are stored if they are few, and too long for a group, or folded by
// key.
static bool stores_rows(const DeriveWalk *w, const Expr *map)
{
    const Expr *row = under_views(expr_behind_lets(map->fun->arg[0]));
    return is_given_rows(map) || expr_is(row, P_REDUCEBY) ||
           (has_fewer(map, w->units) && named_bytes(map) > w->room);
}

// What a map stores for each row becomes a stage over all rows, from the inside out: every
// item that reads an element of a scattered row would scatter all of it, and a loop over
// steps of a long row would be one item's. (A processor's thread has a row in its cache.)
// So does what is made anew for each of those who read it.
void derive_stages_of_rows(DeriveWalk *w, Path at)
{
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    if (!expr || !expr_find(expr, has_function, NULL))
        return;
    for (int i = 0; !w->deep && i < walk_node(w, at)->narg; i++)
        derive_stages_of_rows(w, walk_below(w, at, i));
    if (!w->deep && walk_node(w, at)->fun)
        derive_stages_of_rows(w, walk_below(w, at, CHILD_FUN));
    expr = w->deep ? NULL : walk_node(w, at);
    if (!expr || !is_map(expr) || !is_of_rows(expr) || is_for_items(expr) ||
        hold_in_group(w, at) || !stores_rows(w, walk_node(w, at)))
        return;
    const RowStages wanted = stages_wanted(w, expr);
    const int64_t args[] = {wanted.least, wanted.loops, wanted.again, wanted.folds};
    if (expr->dims > 1 && expr_find(expr->fun, is_row_stage, &wanted) &&
        walk_apply_plain(w, RULE_MAP_NEST, at)) {
        derive_stages_of_rows(w, at);
        return;
    }
    if (part_at_shared(w, at) || walk_apply(w, RULE_HOIST_STAGE, at, args, 4) ||
        hoist_of_list(w, &at, args) || part_lets(w, at, &wanted)) {
        Path rest = walk_below(w, at, 1);
        walk_apply_plain(w, RULE_ZIP_FLATTEN, rest);
        drop_names(w, walk_below(w, rest, CHILD_FUN));
        derive_stages_of_rows(w, walk_below(w, at, 0));
        derive_stages_of_rows(w, rest);
        return;
    }
    Path body = walk_below(w, at, CHILD_FUN);
    const bool goes_again = folds_row(walk_node(w, body)) && !wanted.folds;
    if (!goes_again) // not through a row that a group holds
        inline_maps(w, body, false);
    const Expr *given = walk_node(w, walk_below_lets(w, body));
    const bool scan = expr_is(given, P_SCAN),
               launched = launches_rows(given, w->steps_room);
    if (launched || is_row_stage(given, &wanted)) {
        if (walk_apply_plain(w, RULE_JOIN_SCATTER, at) ||
            ((scan ? launched : wanted.loops) &&
             walk_apply_plain(w, RULE_ITERATE_ROWS, at))) {
            derive_results_of_rows(w, at);
            derive_stages_of_rows(w, at);
        }
    } else if (!goes_again) {
        fuse_maps(w, under_result(w, body));
        derive_results_of_rows(w, at);
    }
}

// Stages over the same rows --------------------------------------------------------------

// How often the elements that a map is given are, or have, an element of what a param
// names.
static int names_elements(const Expr *in, const Param *param)
{
    int n = expr_is_use(in, param);
    for (int i = 0; is_zip(in, in->dims) && i < in->narg; i++)
        n += names_elements(in->arg[i], param);
    return n;
}

// Shorter rows are an item's, of which a group has many.
static bool has_long_rows(const Type *type)
{
    return type_depth(type) > 1 && array_is_large(type->elem, SMALL_MOST + 1);
}

// Does an array of rows stand among what another map is given, too?
static bool shares_rows(const Expr *in, const Expr *other)
{
    bool found = has_long_rows(in->type) && expr_equal(in, other);
    for (int i = 0; is_zip(in, in->dims) && i < in->narg && !found; i++)
        found = shares_rows(in->arg[i], other);
    for (int i = 0; is_zip(other, other->dims) && i < other->narg && !found; i++)
        found = shares_rows(in, other->arg[i]);
    return found;
}

// Is it a map that a group may do, of rows that are neighbours in memory?
static bool is_of_each_row(const Expr *map)
{
    return is_map(map) && (map->dims == 1 || (map->dims == 2 && !has_fold(map))) &&
           type_depth(map->type) <= 2 && !has_windows(map->arg[0]) && !reads_columns(map) &&
           !has_product(map) && !expr_find_pattern(map, P_SCAN);
}

// Does it go through rows that the n stages at a position make, or go through?
static bool goes_with(const DeriveWalk *w, Path at, int64_t n, const Expr *map)
{
    bool shares = false;
    const Expr *let = walk_node(w, at);
    if (!is_of_each_row(map) ||
        !arith_equal(w->r.ir->arith, map->type->len, let->arg[0]->type->len))
        return false;
    for (; n > 0; n--, let = let->arg[1]) {
        const int reads = names_elements(map->arg[0], let->param);
        if (reads < expr_count(map, expr_is_use, let->param))
            return false;
        shares |= (reads && has_long_rows(let->arg[0]->type)) ||
                  shares_rows(let->arg[0]->arg[0], map->arg[0]);
    }
    return shares;
}

// Moves all such stages, and results, to behind the first: how many they are then.
static int64_t gather_stages(DeriveWalk *w, Path at)
{
    int64_t n = 1;
    Path next = walk_below(w, at, 1);
    for (; !w->deep && walk_node(w, next)->kind == E_LET; next = walk_below(w, next, 1))
        n += goes_with(w, at, n, walk_node(w, next)->arg[0]) &&
             walk_move_up(w, next, at.n + (int)n);
    const bool tuple = walk_node(w, next)->kind == E_TUPLE;
    const int items = tuple ? walk_node(w, next)->narg : 1;
    for (int64_t i = 0; i < items && !w->deep; i++) {
        const Expr *end = walk_node(w, next);
        if (goes_with(w, at, n, tuple ? end->arg[i] : end) &&
            walk_apply(w, RULE_NAME_STAGE, next, &i, 1)) {
            n += walk_move_up(w, next, at.n + (int)n);
            next = walk_below(w, next, 1);
        }
    }
    return n;
}

// Makes rows of those in two dimensions. False: others want such rows, and no results.
static bool settle_stages(DeriveWalk *w, Path at, int64_t n)
{
    const Expr *rest = walk_node(w, at);
    for (int64_t i = 0; i < n; i++)
        rest = rest->arg[1];
    for (bool ok = true; n > 0 && !w->deep; n--, at = walk_below(w, at, 1)) {
        const Expr *let = walk_node(w, at);
        if (type_depth(let->arg[0]->type) > 1 && expr_mentions(rest, let->param) &&
            !has_result(rest, let->param, -1))
            return false;
        while (ok && let->arg[0]->dims > 1 && (let = walk_node(w, at))->arg[0]->dims > 1)
            ok = walk_apply_plain(w, RULE_MAP_NEST, walk_below(w, at, 0));
    }
    return !w->deep;
}

// A group that holds a row does all that stages do with it, one after the other.
static bool is_group_each(const DeriveWalk *w, const Expr *map)
{
    return chain_depth(map) == 1 && shared_stage(map) < 0 && chain_bytes(map) <= w->room &&
           !has_fewer(map, w->units);
}

// Stages that go through the same rows, of which some fold them, are one map: each row is
// read once, and what only they need of it is not stored.
void derive_join_rows(DeriveWalk *w, Path at)
{
    enum { LETS_MOST = 64 }; // each is compared with all that follow
    if (w->deep || walk_below_lets(w, at).n - at.n > LETS_MOST)
        return;
    for (; !w->deep && walk_node(w, at)->kind == E_LET; at = walk_below(w, at, 1)) {
        if (expr_is(walk_node(w, at)->arg[0], P_ITERATE))
            derive_join_rows(w, walk_below(w, walk_below(w, at, 0), CHILD_FUN));
        if (!is_of_each_row(walk_node(w, at)->arg[0]))
            continue;
        const Rewriter before = rewriter_hold(&w->r);
        const int64_t n = gather_stages(w, at);
        const bool ok = n > 1 && settle_stages(w, at, n) &&
                        walk_apply(w, RULE_LET_TUPLE, at, &n, 1) &&
                        is_group_each(w, walk_node(w, walk_below(w, at, 0)));
        if (!rewriter_end(&w->r, &before, ok))
            continue;
        derive_results_of_rows(w, at);
        if (!w->deep && walk_node(w, at)->kind != E_LET)
            return; // it is all of the result
    }
    if (!w->deep && expr_is(walk_node(w, at), P_ITERATE))
        derive_join_rows(w, walk_below(w, at, CHILD_FUN));
}

// A map that gives several arrays, or arrays and numbers, for each row, and folds nothing
// that a group would hold: each of its items would have a row.
static bool is_apart(const Expr *expr)
{
    if (is_for_items(expr) || (is_map(expr) && holds_arrays(expr->fun->arg[0])))
        return false;
    const Expr *given =
        is_map(expr) && expr->dims == 1 ? expr_behind_lets(expr->fun->arg[0]) : NULL;
    bool arrays = false;
    for (int i = 0; given && given->kind == E_TUPLE && i < given->narg; i++)
        arrays |= given->arg[i]->type->kind == T_ARRAY;
    return arrays && !folds_row(expr->fun->arg[0]);
}

static void loops_apart(DeriveWalk *w, Path at)
{
    if (!w->deep && expr_is(walk_node(w, at), P_ITERATE))
        derive_results_apart(w, walk_below(w, at, CHILD_FUN));
}

// The functions of maps that were made of one end in what they give.
static void result_of_part(DeriveWalk *w, Path at)
{
    walk_apply_plain(w, RULE_MAP_ID, at);
    derive_results_of_rows(w, at);
}

static bool part_tuple(DeriveWalk *w, Path at)
{
    const Expr *expr = walk_node(w, at);
    const bool let = expr->kind == E_LET;
    const int n = type_tuple_of((let ? expr->arg[0] : expr)->type)->n;
    if (!walk_apply_plain(w, RULE_TUPLE_APART, at))
        return false;
    for (int i = 0; i < n && !w->deep; i++, at = let ? walk_below(w, at, 1) : at)
        result_of_part(w, walk_below(w, at, let ? 0 : i));
    return true;
}

bool derive_result_apart(DeriveWalk *w, Path at)
{
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    const bool unzip = expr && expr_is(expr, P_UNZIP);
    return expr &&
           ((unzip && expr->arg[0]->kind == E_PARAM) ||
            is_apart(unzip ? expr->arg[0] : expr)) &&
           part_tuple(w, at);
}

// Results that are components of one array are stored apart.
void derive_results_apart(DeriveWalk *w, Path at)
{
    enum { LETS_SHARED = 128 }; // each is compared with all that follows
    const bool few = walk_below_lets(w, at).n - at.n <= LETS_SHARED;
    for (; !w->deep && walk_node(w, at)->kind == E_LET; at = walk_below(w, at, 1)) {
        while (walk_apply_plain(w, RULE_LET_OUT, at))
            ;
        if (few && expr_computes(walk_node(w, at)->arg[0]))
            walk_apply_plain(w, RULE_LET_SHARE, at);
        loops_apart(w, walk_below(w, at, 0));
        if (!w->deep && is_apart(walk_node(w, at)->arg[0]))
            part_tuple(w, at);
    }
    loops_apart(w, at);
    walk_apply_plain(w, RULE_MAP_ID, at);
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    const bool tuple = expr && expr->kind == E_TUPLE;
    for (int i = 0; tuple && !w->deep && i < walk_node(w, at)->narg; i++)
        derive_results_apart(w, walk_below(w, at, i));
    while (!w->deep && walk_apply_plain(w, RULE_LET_OUT, at))
        at = walk_below(w, at, 1);
    derive_result_apart(w, at);
}

static void hold_items(DeriveWalk *w, Path at, bool item)
{
    const Expr *expr = w->deep ? NULL : walk_node(w, at);
    if (!expr || !expr_find(expr, has_function, NULL))
        return;
    if (item && is_kept_array(expr))
        walk_apply_plain(w, RULE_HOLD_ITEM, walk_below(w, at, 0));
    for (int i = 0; !w->deep && i < walk_node(w, at)->narg; i++)
        hold_items(w, walk_below(w, at, i), item);
    expr = w->deep ? NULL : walk_node(w, at);
    if (expr && expr->fun)
        hold_items(w, walk_below(w, at, CHILD_FUN),
                   item || expr_is(expr, P_MAPGLB) || expr_is(expr, P_MAPLCL));
}

void derive_hold_items(DeriveWalk *w)
{
    hold_items(w, (Path){0}, false);
}

// Results beside a fold that may share the pass of a map get names, as that has one.
void derive_name_results(DeriveWalk *w)
{
    Path at = {0};
    const Expr *expr = w->r.expr;
    for (; expr->kind == E_LET && path_push(&at, 1); expr = expr->arg[1])
        ;
    bool tuple = expr->kind == E_TUPLE, folds = !tuple && folds_together(expr) && at.n;
    int n = tuple ? expr->narg : 1;
    for (int i = 0; tuple && i < n; i++)
        folds |= folds_together(expr->arg[i]);
    for (int64_t i = 0; folds && i < n; i++)
        if (!expr_is(tuple ? walk_node(w, at)->arg[i] : expr, P_UNZIP) &&
            walk_apply(w, RULE_NAME_STAGE, at, &i, 1))
            path_push(&at, 1);
}
