// SPDX-License-Identifier: Apache-2.0
//
// Along which dimensions of an array neighbours lie beside one another in memory, as far as
// layouts tell: along the last one of what is stored as it is.
//
//   method  a set of dimensions, bit 0 the outermost, goes through each layout on the way
//           from memory

#include "rewrite/internal.h"
#include "rewrite/staging.h"

// What the functions of maps on the way are given.
typedef struct Given Given;
struct Given {
    const Param *param;
    unsigned along; // of its array
    const Given *outer;
};

static unsigned along(const Rewrite *rw, const Expr *expr, int part, const Given *given);

static unsigned of_stored(const Type *type, int part)
{
    if (type->kind == T_TUPLE && part >= 0 && part < type->n)
        type = type->item[part];
    int dims = depth_of(type);
    return dims ? 1u << (dims - 1) : 0;
}

static unsigned of_param(const Rewrite *rw, const Expr *use, int part, const Given *given)
{
    for (; given; given = given->outer)
        if (given->param == use->param)
            return given->along;
    for (const Context *c = rw->context; c; c = c->outer) {
        const Expr *by = c->expr;
        const Rewrite around = {rw->ir, c->outer};
        if (by->kind == E_LET && c->child == 1 && by->param == use->param)
            return along(&around, by->arg[0], part, NULL);
        if (c->child == CHILD_FUN && by->kind == E_PATTERN && by->narg == 1 &&
            by->fun->params[0] == use->param)
            return along(&around, by->arg[0], part, NULL) >> by->dims;
    }
    return of_stored(use->type, part);
}

static unsigned of_map(const Rewrite *rw, const Expr *map, int part, const Given *given)
{
    unsigned in = along(rw, map->arg[0], part, given);
    const Given elem = {map->fun->params[0], in >> map->dims, given};
    return (in & ((1u << map->dims) - 1)) | along(rw, map->fun->arg[0], part, &elem)
                                                << map->dims;
}

static unsigned of_pattern(const Rewrite *rw, const Expr *expr, int part,
                           const Given *given)
{
    unsigned in =
        expr->narg && expr->pattern != P_MAP ? along(rw, data_of(expr), part, given) : 0;
    switch ((int)expr->pattern) {
    case P_MAP: return of_map(rw, expr, part, given);
    case P_ZIP:
        return along(rw, expr->arg[part < 0 || part >= expr->narg ? 0 : part], -1, given);
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

static unsigned along(const Rewrite *rw, const Expr *expr, int part, const Given *given)
{
    if (expr->kind == E_PARAM)
        return of_param(rw, expr, part, given);
    if (expr->kind == E_GET)
        return along(rw, expr->arg[0], expr->index, given);
    if (expr->kind == E_AT)
        return along(rw, expr->arg[0], part, given) >> 1;
    return expr->kind == E_PATTERN ? of_pattern(rw, expr, part, given) : 0;
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

bool is_turned(const Rewrite *rw, const Expr *source, const Expr *value, const Param *row,
               const Param *k)
{
    const Expr *access = access_to(value, row, k), *get = access;
    if (!access || expr_mentions(access->arg[1], row))
        return access != NULL;
    while (get->narg && !(get->kind == E_GET && expr_is_use(get->arg[0], row)))
        get = get->arg[get->kind == E_AT ? 0 : get->narg - 1];
    // The group has an element of the source, and the rows are its.
    return along(rw, source, get->kind == E_GET ? get->index : -1, NULL) >> 1 & 1;
}
