// SPDX-License-Identifier: Apache-2.0
//
// What a work-item keeps: small arrays that the function of a map computes and reads again,
// as matrices of a few rows, the states of an equation or the stages of a short transform.
// They are in registers, since the loops that index them are written out.

#include "nest/nest.h"

enum { MADE_MOST = 255 };

// Elements of the largest array in a type: more than MADE_MOST also where they are not
// known.
static int64_t elements_in(const Type *type)
{
    int64_t n = 1, len;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        n = MAX(n, elements_in(type->item[i]));
    if (type->kind == T_ARRAY)
        n = arith_is_const(type->len, &len) && len <= MADE_MOST
                ? len * elements_in(type->elem)
                : MADE_MOST + 1;
    return MIN(n, MADE_MOST + 1);
}

static bool is_small(const Type *type)
{
    return elements_in(type) <= SMALL_MOST;
}

static bool is_shared(const Expr *expr, const void *none)
{
    return expr_is(expr, P_MAPLCL) || expr_is(expr, P_REDLANES);
}

bool reads_element(const Expr *expr, const void *param)
{
    return expr->kind == E_AT && expr_is_use(expr->arg[0], param);
}

// Is it read more than once, and not only one element at a time?
static bool has_uses(const Expr *expr, const Param *array)
{
    const int uses = expr_uses(expr, array);
    return uses > 1 && expr_count(expr, reads_element, array) < uses;
}

bool is_kept_array(const Expr *let)
{
    if (let->kind != E_LET || let->arg[0]->type->kind != T_ARRAY ||
        !is_small(let->arg[0]->type) || elements_in(let->arg[0]->type) < 2)
        return false;
    const Expr *value = under_views(expr_behind_lets(let->arg[0])), *rest = let->arg[1];
    return makes_array(value) && !expr_find(let, is_shared, NULL) &&
           (is_read_again(rest, let->param) ||
            (has_fold(value) && has_uses(rest, let->param)));
}

static bool has_kept_array(const Expr *expr, const void *none)
{
    return is_kept_array(expr) || is_loop_of_arrays(expr);
}

// Is it looked up at a place that is computed, or read?
static bool looks_somewhere(const Expr *expr, const void *none)
{
    return expr->kind == E_AT && (expr_find(expr->arg[1], is_work, NULL) ||
                                  expr_find(expr->arg[1], expr_is_at, NULL));
}

bool is_large_work(const Expr *expr, const void *none)
{
    enum { TERMS_MOST = 2048 };
    expr = under_views(expr_behind_lets(expr));
    return makes_array(expr) &&
           elements_in(expr->type) * expr_fold_terms(expr->fun) > TERMS_MOST &&
           expr_find(expr->fun, looks_somewhere, NULL);
}

// Is it a loop that a group takes, whose steps fold much?
static bool is_long_loop(const Expr *expr, const void *none)
{
    enum { TERMS_MOST = 512 }; // of a step
    const int64_t states = is_group_loop(expr) ? elements_in(expr->type) : 0;
    return states > ALONE_MOST && states * expr_fold_terms(expr->fun) > TERMS_MOST;
}

// Is it an array, or a fold, that is too long for an item?
static bool is_long(const Expr *expr, const void *none)
{
    return nest_is_long(expr, INNER_MOST + 1) || expr_is(expr, P_REDUCEBY) ||
           is_large_work(expr, NULL) ||
           (makes_array(expr) && elements_in(expr->type) > MADE_MOST) ||
           (expr_is(expr, P_ITERATE) && !is_small(expr->type));
}

// Do all elements of the short array that a body ends with read what a function such as a
// power was called for? An item for each would call it again. Items share longer folds.
static bool calls_before(const Expr *body)
{
    const int64_t few = 16, more = few + 1;
    bool calls = false;
    if (elements_in(body->type) > few || expr_find(body, is_long_nest, &more))
        return false;
    for (; body->kind == E_LET; body = body->arg[1])
        calls |= expr_find(body->arg[0], calls_function, NULL) != NULL;
    return calls && makes_array(body);
}

// An item for each row would leave most of a GPU idle, where each takes long. (By an
// estimate for an H200, loops of 32 states: of 8,192 rows 0.28 ms by groups and 0.45 by
// items, of 100,000 rows 4.6 and 1.6.)
static bool leaves_units_idle(const Expr *map)
{
    enum { FEW_ROWS = 1 << 15 };
    int64_t rows;
    return map->dims == 1 && arith_is_const(map->type->len, &rows) && rows < FEW_ROWS &&
           expr_find(map->fun->arg[0], is_long_loop, NULL);
}

static bool is_for_one(const Expr *map)
{
    return is_map(map) && is_small(type_elem(map->type, map->dims)) &&
           elements_in(type_elem(map->arg[0]->type, map->dims)) <= MADE_MOST &&
           !leaves_units_idle(map) && !expr_find(map->fun->arg[0], is_long, NULL);
}

bool is_for_items(const Expr *map)
{
    return is_for_one(map) && expr_find(map->fun->arg[0], has_kept_array, NULL);
}

bool is_whole_item(const Expr *map)
{
    return is_for_items(map) || (is_for_one(map) && calls_before(map->fun->arg[0]));
}
