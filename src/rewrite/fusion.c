// SPDX-License-Identifier: Apache-2.0
//
// Fusion: a map whose elements go straight into the function that wants them.
//
//   source  Lift FusionRules

#include "rewrite/internal.h"

Expr *rule_mapFusion(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_MAP) || !is_dims(at->arg[0], P_MAP, at->dims))
        return NULL;
    const Expr *first = at->arg[0];
    Param *e = fresh(rw, first->fun->params[0]->name);
    Expr *between = call(rw, first->fun, use(rw, e));
    Expr *body = call(rw, at->fun, between);
    return map_by(rw, at->dims, e, body, copy_of(rw, first->arg[0]));
}

static bool zip_of_map(const Expr *zip, int dims, const RuleArgs *args)
{
    int64_t i = args->at[0];
    return is_dims(zip, P_ZIP, dims) && i >= 0 && i < zip->narg && zip->narg <= PARTS_MAX &&
           is_dims(zip->arg[i], P_MAP, dims);
}

Expr *rule_mapZipFusion(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_MAP) || !zip_of_map(at->arg[0], at->dims, args))
        return NULL;
    const Expr *zip = at->arg[0], *map = zip->arg[args->at[0]];
    Param *t = fresh(rw, "t"), *y = fresh(rw, "y");
    Expr *value = call(rw, map->fun, get_of(rw, t, (int)args->at[0]));
    Expr *item[PARTS_MAX], *part[PARTS_MAX];
    for (int k = 0; k < zip->narg; k++) {
        const bool is = zip->arg[k] == map;
        item[k] = is ? use(rw, y) : get_of(rw, t, k);
        part[k] = copy_of(rw, is ? map->arg[0] : zip->arg[k]);
    }
    // The name makes the tuple simple, so that it can be taken apart.
    Expr *body = call(rw, at->fun, expr_tuple(rw->ir, item, zip->narg));
    return map_by(rw, at->dims, t, expr_let(rw->ir, y, value, body),
                  make_zip(rw, zip->dims, part, zip->narg));
}

Expr *rule_reduceFusion(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if ((!expr_is(at, P_REDUCE) && !expr_is(at, P_REDSEQ)) ||
        !is_dims(at->arg[1], P_MAP, 1))
        return NULL;
    const Expr *map = at->arg[1];
    Param *a = fresh(rw, "a"), *e = fresh(rw, "e"), *y = fresh(rw, "y");
    Expr *value = call(rw, map->fun, use(rw, e));
    Expr *all = call_all(rw, at->fun, (const Expr *[]){use(rw, a), use(rw, y)});
    Expr *f = expr_lambda(rw->ir, (Param *[]){a, e}, 2, expr_let(rw->ir, y, value, all));
    return make_reduce(rw, P_REDSEQ, f, copy_of(rw, at->arg[0]), copy_of(rw, map->arg[0]));
}

// Layouts move inside ---------------------------------------------------------------------

Expr *layout_like(Rewrite *rw, const Expr *layout, Expr *in)
{
    Expr *fun = layout->fun ? copy_of(rw, layout->fun) : NULL;
    Expr *copy =
        make(rw, layout->pattern, layout->dims, layout->nnum ? layout->num : NULL, fun, in);
    copy->mode = layout->mode;
    return copy;
}

// Windows and rows are new dimensions inside those of the map.
static Expr *map_of_rows(Rewrite *rw, const Expr *at, const Expr *map)
{
    if (map->dims != at->dims)
        return NULL;
    Param *row = fresh(rw, "row");
    Expr *inner = make_map(rw, map->dims, copy_of(rw, map->fun), use(rw, row));
    return map_by(rw, map->dims, row, inner, layout_like(rw, at, copy_of(rw, map->arg[0])));
}

// The function of a map over as many dimensions, written as one map or as two.
static const Expr *function_over(const Expr *map, int dims)
{
    if (map->dims == dims)
        return map->fun;
    const Expr *inner = inner_of(map, P_MAP);
    return inner && map->dims + inner->dims == dims ? inner->fun : NULL;
}

static Expr *map_of_layout(Rewrite *rw, const Expr *at, const Expr *map, int from, int to)
{
    const Expr *f = function_over(map, from);
    return f ? make_map(rw, to, copy_of(rw, f),
                        layout_like(rw, at, copy_of(rw, map->arg[0])))
             : NULL;
}

// Layouts that leave the elements below the dimensions they move as they are.
static bool moves_only(const Expr *at)
{
    static const bool does[PATTERNS] = {
        [P_PAD] = true,    [P_TAKE] = true,    [P_DROP] = true,
        [P_GATHER] = true, [P_SCATTER] = true,
    };
    return does[at->pattern] && !(at->pattern == P_PAD && at->mode == PAD_CONSTANT);
}

Expr *rule_layoutOfMap(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (at->kind != E_PATTERN || at->narg == 0 || !expr_is(data_of(at), P_MAP))
        return NULL;
    const Expr *map = data_of(at);
    int most = MAX(at->dims, map->dims);
    if (expr_is(at, P_SLIDE) || expr_is(at, P_SPLIT))
        return map_of_rows(rw, at, map);
    if (expr_is(at, P_JOIN))
        return map_of_layout(rw, at, map, 2 * at->dims, at->dims);
    if (expr_is(at, P_TRANSPOSE))
        return map_of_layout(rw, at, map, 2, 2);
    return moves_only(at) ? map_of_layout(rw, at, map, most, most) : NULL;
}

Expr *rule_zipTurn(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const int64_t i = args->at[0];
    Expr *part[PARTS_MAX];
    if (!is_dims(at, P_ZIP, 1) || at->narg > PARTS_MAX || i < 0 || i >= at->narg ||
        under_turn(at->arg[i]) == at->arg[i])
        return NULL;
    for (int k = 0; k < at->narg; k++) {
        const Expr *under = under_turn(at->arg[k]);
        part[k] = copy_of(rw, under);
        if (under == at->arg[k])
            part[k] = layout_like(rw, at->arg[i], part[k]);
    }
    return layout_like(rw, at->arg[i], make_zip(rw, 1, part, at->narg));
}
