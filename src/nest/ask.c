// SPDX-License-Identifier: Apache-2.0
//
// Questions about expressions that the derivation asks.

#include "nest/nest.h"

#include "lower/lower.h"

int64_t reduce_length(const Expr *expr)
{
    int64_t len;
    bool reduce = expr_is(expr, P_REDUCE);
    return reduce && arith_is_const(expr->arg[1]->type->len, &len) ? len : 0;
}

// The length of rows in a joined array, 0 if it is none: of the shortest that are longer
// than `done` and are whole numbers of these.
static int64_t rows_beyond(const Expr *expr, int64_t done);

static int64_t joined_beyond(const Expr *rows, int64_t done)
{
    int64_t row, near = 0;
    if (!arith_is_const(rows->type->elem->len, &row) || row < 1)
        return 0;
    if (is_map(rows) && rows->dims == 1 && row > done)
        near = rows_beyond(rows->fun->arg[0], done);
    if (near && near < row && row % near == 0)
        return near;
    if (row > done)
        return row % done ? 0 : row;
    return done % row ? 0 : row * rows_beyond(rows, done / row);
}

static int64_t rows_beyond(const Expr *expr, int64_t done)
{
    while (is_map(expr) && expr->dims == 1)
        expr = expr->arg[0];
    if (expr_is(expr, P_JOIN) && expr->dims == 1)
        return joined_beyond(expr->arg[0], done);
    int64_t row = 0;
    for (int i = 0; is_zip(expr, 1) && i < expr->narg && !row; i++)
        row = rows_beyond(expr->arg[i], done);
    return row;
}

int64_t fold_row(const Expr *array, int64_t done)
{
    int64_t len, row = rows_beyond(array, done);
    return row && arith_is_const(array->type->len, &len) && len > row && len % row == 0
               ? row
               : 0;
}

int64_t inner_length(const Expr *expr)
{
    int64_t len = reduce_length(expr), most = 0;
    if (len <= UNROLL_MOST)
        return len;
    for (int64_t row = 1; (row = fold_row(expr->arg[1], row)) && row <= UNROLL_MOST;)
        most = row;
    return most;
}

int64_t nested_length(const Expr *expr)
{
    int64_t len = reduce_length(expr);
    return len && reduce_length(expr->fun->arg[0]) ? len * nested_length(expr->fun->arg[0])
                                                   : len;
}

bool is_window(const Expr *expr, int dims)
{
    if (!expr_is(expr, P_SLIDE) || expr->dims != dims)
        return false;
    for (int k = 0; k < dims; k++) {
        int64_t size, step;
        if (!arith_is_const(expr->num[2 * k], &size) ||
            !arith_is_const(expr->num[2 * k + 1], &step) || step != 1)
            return false;
    }
    return true;
}

bool is_zip(const Expr *expr, int dims)
{
    return expr_is(expr, P_ZIP) && expr->dims == dims;
}

bool is_map(const Expr *expr)
{
    return expr_is(expr, P_MAP);
}

bool folds_pairs(const Expr *map, const Expr *inner)
{
    const Expr *body = is_map(inner) && inner->dims == 1 ? inner->fun->arg[0] : NULL;
    if (!body || !type_is_scalar(body->type))
        return false;
    const Expr *fold = fold_inside(body);
    return fold && type_is_scalar(fold->type) && expr_mentions(fold, map->fun->params[0]) &&
           expr_mentions(fold, inner->fun->params[0]);
}

bool is_product(const Expr *map)
{
    return is_map(map) && map->dims == 1 && folds_pairs(map, map->fun->arg[0]) &&
           !expr_mentions(map->fun->arg[0]->arg[0], map->fun->params[0]);
}

bool has_fold(const Expr *expr)
{
    return expr_find_pattern(expr, P_REDUCE);
}

static bool is_product_in(const Expr *expr, const void *none)
{
    return is_product(expr);
}

bool has_product(const Expr *expr)
{
    return expr_find(expr, is_product_in, NULL);
}

bool hides_product(const Expr *from, const Expr *to)
{
    return (has_product(from) || has_product(to)) && has_fold(from) && has_fold(to);
}

static bool is_laid_out(const Expr *expr)
{
    return expr_in_group(expr, G_VIEW) && writes_itself(expr);
}

const Expr *under_layout(const Expr *expr)
{
    while (is_laid_out(expr))
        expr = expr->arg[0];
    return expr;
}

static const Expr *tail_of_lets(const Expr *expr)
{
    while (expr->kind == E_LET || is_laid_out(expr))
        expr = expr->arg[expr->kind == E_LET];
    return expr;
}

// Does it fold many elements, or find some prefixes, other than for each element of a map?
static bool folds_long(const Expr *expr, const void *none)
{
    enum { PREFIXES_MOST = 4 }; // each element would find all of them
    return fold_is_long(expr, INNER_MOST + 1) || scan_is_long(expr, PREFIXES_MOST + 1);
}

// Would each element of the map that a body ends with fold again what all of them read?
static bool folds_before(const Expr *body)
{
    bool found = false;
    for (; body->kind == E_LET || is_laid_out(body); body = body->arg[body->kind == E_LET])
        found |= body->kind == E_LET && expr_any_here(body->arg[0], folds_long, NULL);
    return found || expr_any_here(body->arg[0], folds_long, NULL);
}

int nested_depth(const Expr *map)
{
    int depth = 0;
    while (depth < DIMS_MAX && is_map(map) && map->dims == 1) {
        const Expr *body = map->fun->arg[0], *inner = tail_of_lets(body);
        depth++;
        if (is_map(inner) && (folds_before(body) || is_whole_item(map)))
            break;
        map = inner;
    }
    return depth;
}

int array_dims(const Type *type)
{
    return MIN(type_depth(type), DIMS_MAX);
}

int lowered_dims(const Expr *expr)
{
    bool pattern = expr->kind == E_PATTERN;
    int dims = pattern && pattern_info[expr->pattern].group == G_PAR ? expr->par + 1 : 0;
    for (int i = expr->fun ? -1 : 0; i < expr->narg; i++) {
        int inner = lowered_dims(i < 0 ? expr->fun : expr->arg[i]);
        dims = MAX(dims, inner);
    }
    return dims;
}

bool moves_rows(const Expr *expr)
{
    return is_map(expr) && expr->type->kind == T_ARRAY &&
           type_elem(expr->type, expr->dims)->kind == T_ARRAY &&
           !expr_computes(expr->fun->arg[0]) && !expr_computes(expr->arg[0]);
}

bool is_relayout(const Expr *expr)
{
    if (expr->kind != E_PATTERN)
        return false;
    bool view = pattern_info[expr->pattern].group == G_VIEW;
    return view ? expr_is(expr, P_UNZIP) || writes_itself(expr)
                : is_map(expr) && layout_function(expr->fun) && writes_itself(expr->arg[0]);
}

bool writes_itself(const Expr *expr)
{
    if (expr->kind != E_PATTERN)
        return false;
    if (pattern_info[expr->pattern].group != G_VIEW)
        return expr->pattern != P_ARRAY;
    return view_inverts(expr) && writes_itself(expr->arg[0]);
}

bool has_result(const Expr *result, const Param *param, int field)
{
    int found;
    result = expr_behind_lets(result);
    const bool items = result->kind == E_TUPLE || is_zip(result, 1);
    for (int i = 0; items && i < result->narg; i++)
        if (has_result(result->arg[i], param, field))
            return true;
    return placed_result(result, &found) == param && found == field;
}

bool makes_results(const Expr *let)
{
    const Type *type = let->arg[0]->type, *tuple = type_tuple_of(type);
    int n = is_map(let->arg[0]) && tuple ? tuple->n : 0;
    for (int i = 0; i < n; i++)
        if (!has_result(let->arg[1], let->param, i))
            return false;
    return n > 0;
}

double bytes_below(const Expr *expr)
{
    double bytes = expr->kind == E_PARAM && expr->type->kind == T_ARRAY
                       ? type_bytes(expr->type, NULL, NULL)
                       : 0;
    for (int i = 0; i < expr->narg; i++)
        bytes += bytes_below(expr->arg[i]);
    return bytes + (expr->fun ? bytes_below(expr->fun->arg[0]) : 0);
}
