// SPDX-License-Identifier: Apache-2.0
//
// Along which dimensions of an array neighbours lie beside one another in memory, as far as
// layouts tell: along the last one of what is stored as it is.
//
//   method  a set of dimensions, bit 0 the outermost, goes through each layout on the way
//           from memory. Rows in memory of a length that is no multiple of a vector, and
//           layouts that move by less than one, leave no vectors to load.

#include "rewrite/internal.h"
#include "rewrite/staging.h"

// What the functions of maps on the way are given.
typedef struct Given Given;
struct Given {
    const Param *param;
    unsigned along; // of its array
    const Given *outer;
};

// odd: set where vectors cannot be loaded.
static unsigned along(const Rewrite *rw, const Expr *expr, int part, const Given *given,
                      bool *odd);

static bool is_odd(const Rewrite *rw, const Arith *number)
{
    return arith_multiple(rw->ir->arith, number) % STAGED_LANES != 0;
}

static unsigned of_stored(const Rewrite *rw, const Type *type, int part, bool *odd)
{
    if (!type) // made by the rule at hand
        return 0;
    if (type->kind == T_TUPLE && part >= 0 && part < type->n)
        type = type->item[part];
    int dims = type_depth(type);
    for (int i = 1; i < dims; i++)
        type = type->elem;
    if (dims)
        *odd |= is_odd(rw, type->len);
    return dims ? 1u << (dims - 1) : 0;
}

// Does such a layout move neighbours along these dimensions by less than a vector?
static bool moves_odd(const Rewrite *rw, const Expr *layout, unsigned dims)
{
    const int numbers = layout->pattern == P_DROP ? 1 : 2;
    for (int k = 0; k < layout->dims; k++)
        if ((dims >> k & 1) && (layout->pattern == P_GATHER || layout->pattern == P_SLIDE ||
                                is_odd(rw, layout->num[numbers * k])))
            return true;
    return false;
}

static unsigned of_param(const Rewrite *rw, const Expr *use, int part, const Given *given,
                         bool *odd)
{
    for (; given; given = given->outer)
        if (given->param == use->param)
            return given->along;
    for (const Context *c = rw->context; c; c = c->outer) {
        const Expr *by = c->expr;
        const Rewrite around = {rw->ir, c->outer};
        if (by->kind == E_LET && c->child == 1 && by->param == use->param)
            return along(&around, by->arg[0], part, NULL, odd);
        if (c->child == CHILD_FUN && by->kind == E_PATTERN && by->narg == 1 &&
            by->fun->params[0] == use->param)
            return along(&around, by->arg[0], part, NULL, odd) >> by->dims;
    }
    return of_stored(rw, use->type, part, odd);
}

static unsigned of_map(const Rewrite *rw, const Expr *map, int part, const Given *given,
                       bool *odd)
{
    unsigned in = along(rw, map->arg[0], part, given, odd);
    const Given elem = {map->fun->params[0], in >> map->dims, given};
    return (in & ((1u << map->dims) - 1)) | along(rw, map->fun->arg[0], part, &elem, odd)
                                                << map->dims;
}

static unsigned of_pattern(const Rewrite *rw, const Expr *expr, int part,
                           const Given *given, bool *odd)
{
    unsigned in = expr->narg && expr->pattern != P_MAP
                      ? along(rw, data_of(expr), part, given, odd)
                      : 0;
    bool moves = expr->pattern == P_PAD || expr->pattern == P_DROP ||
                 expr->pattern == P_GATHER || expr->pattern == P_SLIDE;
    if (moves)
        *odd |= moves_odd(rw, expr, in);
    switch ((int)expr->pattern) {
    case P_MAP: return of_map(rw, expr, part, given, odd);
    case P_ARRAY: return along(rw, expr->fun->arg[0], part, given, odd) << expr->dims;
    case P_ZIP:
        return along(rw, expr->arg[part < 0 || part >= expr->narg ? 0 : part], -1, given,
                     odd);
    case P_TRANSPOSE: return (in & ~3u) | (in & 1) << 1 | (in >> 1 & 1);
    case P_PAD:
    case P_TAKE:
    case P_DROP:
    case P_GATHER: return in;
    case P_SPLIT: return in << expr->dims;
    case P_JOIN: return in >> expr->dims;
    case P_SLIDE: return (in & ((1u << expr->dims) - 1)) | in << expr->dims;
    default: return 0;
    }
}

static unsigned along(const Rewrite *rw, const Expr *expr, int part, const Given *given,
                      bool *odd)
{
    if (expr->kind == E_PARAM)
        return of_param(rw, expr, part, given, odd);
    if (expr->kind == E_GET)
        return along(rw, expr->arg[0], expr->index, given, odd);
    if (expr->kind == E_AT)
        return along(rw, expr->arg[0], part, given, odd) >> 1;
    return expr->kind == E_PATTERN ? of_pattern(rw, expr, part, given, odd) : 0;
}

// The first access to something of the row, or by its number, at a place that depends on k.
static const Expr *access_to(const Expr *expr, const Param *row, const Param *k)
{
    if (expr->kind == E_AT && expr_mentions(expr, row) && expr_mentions(expr, k))
        return expr;
    const Expr *found = NULL;
    for (int i = 0; i < expr->narg && !found; i++)
        found = access_to(expr->arg[i], row, k);
    return found || !expr->fun ? found : access_to(expr->fun, row, k);
}

// Which index of an access, or of what it looks at, counts neighbours in memory; NULL: none
// that is known.
static const Expr *nearest_index(const Rewrite *rw, const Expr *access, bool *odd)
{
    for (; access && access->kind == E_AT; access = access->arg[0])
        if (along(rw, access->arg[0], -1, NULL, odd) & 1)
            return access->arg[1];
    return NULL;
}

bool is_turned(const Rewrite *rw, const Expr *source, const Expr *value, const Param *row,
               const Param *k, bool *odd)
{
    const Expr *access = access_to(value, row, k), *get = access;
    *odd = false;
    const Expr *nearest = nearest_index(rw, access, odd);
    if (!access || nearest)
        return nearest && expr_mentions(nearest, row);
    if (expr_mentions(access->arg[1], row))
        return true;
    while (get->narg && !(get->kind == E_GET && expr_is_use(get->arg[0], row)))
        get = get->arg[get->kind == E_AT ? 0 : get->narg - 1];
    if (get->kind != E_GET && !expr_is_use(get, row)) // the row says which one it is
        return true;
    // The group has an element of the source, and the rows are its.
    return along(rw, source, get->kind == E_GET ? get->index : -1, NULL, odd) >> 1 & 1;
}
