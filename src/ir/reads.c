// SPDX-License-Identifier: Apache-2.0
//
// How an array is read: once, element by element, or again and again. An array of the
// second kind that is not stored is made as often as it is read. Folds and prefixes go
// through what they read.

#include "ir/internal.h"

bool fold_is_long(const Expr *expr, int64_t least)
{
    int64_t len;
    return expr_is(expr, P_REDUCE) &&
           !(arith_is_const(expr->arg[1]->type->len, &len) && len < least);
}

bool scan_is_long(const Expr *expr, int64_t least)
{
    int64_t len;
    return expr_is(expr, P_SCAN) && !(arith_is_const(expr->type->len, &len) && len < least);
}

bool nest_is_long(const Expr *expr, int64_t least)
{
    return fold_is_long(expr, least) || scan_is_long(expr, least);
}

bool is_long_nest(const Expr *expr, const void *least)
{
    return nest_is_long(expr, *(const int64_t *)least);
}

bool is_nest(const Expr *expr, const void *none)
{
    return nest_is_long(expr, 0) || expr_is(expr, P_REDUCEBY);
}

int element_component(const Expr *expr, const Param *elem)
{
    if (expr_is_use(expr, elem))
        return -1;
    return expr->kind == E_GET && expr_is_use(expr->arg[0], elem) ? expr->index : -2;
}

bool uses_component(const Expr *expr, const Param *elem, int k)
{
    const int component = element_component(expr, elem);
    if (component >= 0)
        return k < 0 || component == k;
    bool used = component == -1 || (expr->fun && uses_component(expr->fun, elem, k));
    for (int i = 0; i < expr->narg && !used; i++)
        used = uses_component(expr->arg[i], elem, k);
    return used;
}

bool is_work(const Expr *expr, const void *none)
{
    return expr->kind == E_OP || expr->kind == E_CALL || is_nest(expr, none);
}

bool makes_array(const Expr *expr)
{
    return expr->kind == E_PATTERN && expr->type->kind == T_ARRAY &&
           pattern_info[expr->pattern].group != G_VIEW && expr->fun &&
           (expr_find(expr->fun, is_work, NULL) || is_nest(expr, NULL));
}

// What is read in an expression: a name, or a component of it if k is not negative.
typedef struct {
    const Param *name;
    int k;
} NameRead;

static bool reads_again(const NameRead *read, const Expr *expr, ReadBy around);

// Does the map read its elements, or the components k of them, again?
static bool elements_again(const Expr *map, int k, int *looks)
{
    return reads_again(&(NameRead){map->fun->params[0], k}, map->fun->arg[0],
                       (ReadBy){.looks = looks});
}

// What is around the value of a let.
static ReadBy around_value(const Expr *let, ReadBy around)
{
    const bool costly = around.costly || expr_find(let->arg[0], is_nest, NULL);
    return (ReadBy){
        .reads = true,
        .nests = expr_find(let->arg[1], is_nest, NULL),
        .again = reads_again(&(NameRead){let->param, -1}, let->arg[1],
                             (ReadBy){.costly = costly, .looks = around.looks}),
        .costly = around.costly,
        .looks = around.looks,
    };
}

// What is around what a pattern reads element by element.
static ReadBy around_read(const Expr *expr, int i, ReadBy around)
{
    const bool map = expr_is(expr, P_MAP);
    const bool zip = expr_is(expr->arg[i], P_ZIP);
    return (ReadBy){
        .reads = i == expr->narg - 1,
        .nests = !map || expr_find(expr->fun, is_nest, NULL),
        // What a map makes of costly elements is made anew with them.
        .again = map && ((around.again && around.costly) ||
                         (!zip && elements_again(expr, -1, around.looks))),
        .costly = around.costly,
        .map = map && zip ? expr : NULL,
        .looks = around.looks,
    };
}

ReadBy around_arg(const Expr *expr, int i, ReadBy around)
{
    const bool pattern = expr->kind == E_PATTERN;
    const bool view = pattern && pattern_info[expr->pattern].group == G_VIEW;
    if (pattern && !view && expr->fun)
        return around_read(expr, i, around);
    if (expr->kind == E_LET && i == 0)
        return around_value(expr, around);
    if (!view && expr->kind != E_LET && expr->kind != E_GET && expr->kind != E_TUPLE)
        return (ReadBy){.costly = around.costly, .looks = around.looks};
    const bool costly =
        around.costly || (expr->narg && expr_find(expr->arg[0], is_nest, NULL));
    const Expr *map = around.map;
    around.map = NULL;
    if (expr_is(expr, P_ZIP) && map)
        around.again |= elements_again(map, i, around.looks);
    else if (expr_is(expr, P_SLIDE))
        around.again |= around.reads;
    else if (expr_is(expr, P_TRANSPOSE) || expr_is(expr, P_GATHER))
        around.again |= around.reads && (around.nests || costly);
    else if (expr_is(expr, P_JOIN))
        around.again |= around.reads && costly;
    return around;
}

static bool reads_again(const NameRead *read, const Expr *expr, ReadBy around)
{
    const int component = element_component(expr, read->name);
    if (component >= -1)
        return around.again && (read->k < 0 || component < 0 || component == read->k);
    if (expr->fun && uses_component(expr->fun, read->name, read->k))
        return true;
    for (int i = 0; i < expr->narg && --*around.looks > 0; i++)
        if (expr_mentions(expr->arg[i], read->name) &&
            reads_again(read, expr->arg[i], around_arg(expr, i, around)))
            return true;
    return false;
}

bool is_read_again(const Expr *expr, const Param *name)
{
    int looks = LOOKS_MOST;
    return reads_again(&(NameRead){name, -1}, expr, (ReadBy){.looks = &looks});
}
