// SPDX-License-Identifier: Apache-2.0
//
// Maps within one another: on which of their places does each number depend that the
// function of the innermost folds? That says which of them are rows and columns of a
// product, and which can be one map.
//
//   method  A walk to the numbers that are read. A name stands for the places of what it
//           is an element of, found once; a component of a zip's element for those of that
//           part. Numbers that only count places are no data.

#include "nest/nest.h"

enum { COMPONENTS = 8 }; // further ones depend on what all of them do

typedef struct Known {
    const Param *param;
    unsigned all, part[COMPONENTS]; // places of the element, and of its components
    bool counts, part_counts[COMPONENTS];
    int n;
    const struct Known *outer;
} Known;

// The name that an expression is, or a component of; k: which, -1: all of it.
static const Known *named(const Expr *expr, const Known *known, int *k)
{
    const bool part = expr->kind == E_GET;
    *k = part ? expr->index : -1;
    expr = part ? expr->arg[0] : expr;
    while (known && !expr_is_use(expr, known->param))
        known = known->outer;
    if (known && *k >= known->n)
        *k = -1;
    return known;
}

static unsigned places_of(const Expr *expr, const Known *known)
{
    int k;
    const Known *name = named(expr, known, &k);
    if (name)
        return k < 0 ? name->all : name->part[k];
    unsigned places = expr->fun ? places_of(expr->fun, known) : 0;
    for (int i = 0; i < expr->narg; i++)
        places |= places_of(expr->arg[i], known);
    return places;
}

static bool counts_places(const Expr *in)
{
    return expr_is(in, P_ARRAY) && !expr_find(in, expr_is_at, NULL);
}

// A name for the elements of an array, or for a value; own: the places that it adds.
static Known element_of(const Param *param, const Expr *in, unsigned own,
                        const Known *outer)
{
    const bool parts = expr_is(in, P_ZIP) || in->kind == E_TUPLE;
    Known known = {.param = param,
                   .all = own | places_of(in, outer),
                   .counts = counts_places(in),
                   .n = parts ? MIN(in->narg, COMPONENTS) : 0,
                   .outer = outer};
    for (int i = 0; i < known.n; i++) {
        known.part[i] = own | places_of(in->arg[i], outer);
        known.part_counts[i] = counts_places(in->arg[i]);
    }
    return known;
}

// Is it data, of what the maps are given?
static bool is_data(const Expr *expr, const Known *known)
{
    int k;
    const Known *name = named(expr, known, &k);
    if (expr_behind_gets(expr)->kind == E_AT)
        return true;
    return name && !(k < 0 ? name->counts : name->part_counts[k]);
}

static void add_read(NestReads *reads, unsigned read)
{
    for (int i = 0; i < reads->n; i++)
        if (reads->read[i] == read)
            return;
    if (reads->n < COUNTOF(reads->read))
        reads->read[reads->n++] = read;
}

static void find_reads(NestReads *reads, const Expr *expr, const Known *known)
{
    const ExprKind from = expr_behind_gets(expr)->kind;
    if (from == E_AT || from == E_PARAM) {
        if (type_is_scalar(expr->type) && is_data(expr, known))
            add_read(reads, places_of(expr, known));
        return;
    }
    const bool let = expr->kind == E_LET;
    const Expr *fun = expr->fun,
               *in = expr->narg ? expr->arg[let ? 0 : expr->narg - 1] : NULL;
    const bool binds = let || (fun && in);
    Known elem;
    if (binds)
        elem = element_of(let ? expr->param : fun->params[fun->nparam - 1], in, 0, known);
    for (int i = 0; i < expr->narg; i++)
        find_reads(reads, expr->arg[i], let && i == 1 ? &elem : known);
    if (fun)
        find_reads(reads, fun->arg[0], binds ? &elem : known);
}

static void find_places(NestReads *reads, const Expr *map, const Known *known)
{
    const Expr *body = map->fun->arg[0];
    const Known elem =
        element_of(map->fun->params[0], map->arg[0], 1u << reads->levels++, known);
    if (is_map(body) && reads->levels < NEST_LEVELS) {
        find_places(reads, body, &elem);
        return;
    }
    const Expr *fold = type_is_scalar(body->type) ? fold_inside(body) : NULL;
    if (fold && type_is_scalar(fold->type))
        find_reads(reads, fold, &elem);
}

NestReads nest_reads(const Expr *map)
{
    NestReads reads = {0};
    if (is_map(map))
        find_places(&reads, map, NULL);
    return reads;
}

bool reads_alike(const NestReads *reads, int a, int b)
{
    for (int i = 0; i < reads->n; i++)
        if ((reads->read[i] >> a & 1) != (reads->read[i] >> b & 1))
            return false;
    return true;
}

bool reads_pairs(const NestReads *reads, int a, int b)
{
    bool rows = false, columns = false;
    for (int i = 0; i < reads->n; i++) {
        const bool of_a = reads->read[i] >> a & 1, of_b = reads->read[i] >> b & 1;
        rows |= of_a && !of_b;
        columns |= of_b && !of_a;
    }
    return rows && columns;
}
