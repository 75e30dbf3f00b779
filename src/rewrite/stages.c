// SPDX-License-Identifier: Apache-2.0
//
// Stages: maps that names hold are reordered and joined in one map, and a zip that
// separates a map from its reader is removed.
//
//   source  several results of one map: the horizontal fusion of Futhark (Henriksen et
//           al., PLDI 2017, section 4); paper 004, section 3 (outputs of a fusion)

#include "rewrite/internal.h"

// The first let among the operands, at any depth; guarded sides stay where they are.
static bool find_let(const Expr *expr, Path *at)
{
    if (expr->kind == E_LET)
        return true;
    for (int i = 0; i < expr->narg && !expr_guards(expr, i); i++) {
        if (!path_push(at, i))
            return false;
        if (find_let(expr->arg[i], at))
            return true;
        at->n--;
    }
    return false;
}

Expr *rule_letOut(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Path path = {0};
    bool let = at->kind == E_LET;
    if (at->kind == E_LAMBDA || (let && !path_push(&path, 0)) ||
        !find_let(let ? at->arg[0] : at, &path))
        return NULL;
    const Expr *inner = path_find(at, &path);
    Expr *rest = put_at(rw, at, &path, inner->arg[1]);
    return expr_let(rw->ir, inner->param, inner->arg[0], rest);
}

// Does it make windows of what has that name? NULL: of anything.
static bool is_window_of(const Expr *expr, const void *name)
{
    return expr_is(expr, P_SLIDE) && (!name || expr_mentions(expr, name));
}

typedef struct {
    const Expr *let;
    bool windows; // also those over windows of it
} FoldAgain;

static bool takes_value(const Expr *fold, const void *of)
{
    const FoldAgain *again = of;
    return expr_is(fold, P_REDUCE) && fold->type->kind != T_ARRAY &&
           expr_mentions(fold->arg[1], again->let->param) &&
           (again->windows ||
            !expr_any_here(fold->arg[1], is_window_of, again->let->param));
}

// In place: folds have the let's value in place of its name.
static bool fold_value(Rewrite *rw, Expr *expr, const FoldAgain *again)
{
    bool changed = takes_value(expr, again);
    if (changed)
        expr->arg[1] = expr_replace(rw->ir, expr->arg[1], again->let->param,
                                    copy_of(rw, again->let->arg[0]));
    for (int i = 0; !expr_is(expr, P_REDUCE) && i < expr->narg; i++)
        changed |= fold_value(rw, expr->arg[i], again);
    return changed;
}

// A copy of all that follows, for each of a thousand lets, would take gigabytes.
Expr *rule_foldAgain(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (at->kind != E_LET || !expr_is(at->arg[0], P_MAP) || !at_host(rw) ||
        expr_find_pattern(at->arg[0], P_REDUCE))
        return NULL;
    FoldAgain again = {at, args->at[0] && !expr_any_here(at->arg[0], is_window_of, NULL)};
    if (!expr_find(at->arg[1], takes_value, &again))
        return NULL;
    Expr *let = copy_of(rw, at);
    again.let = let;
    return fold_value(rw, let->arg[1], &again) ? let : NULL;
}

// The let that follows one, if its operand i does not mention what that names.
static const Expr *let_behind(const Expr *at, int i)
{
    const Expr *second = at->kind == E_LET && at->arg[1]->kind == E_LET ? at->arg[1] : NULL;
    return second && !expr_mentions(second->arg[i], at->param) ? second : NULL;
}

// What follows both is shared with at, and not copied: only one of the two may go on.
Expr *rule_letSwap(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *second = let_behind(at, 0);
    if (!second)
        return NULL;
    Expr *rest = expr_let(rw->ir, at->param, at->arg[0], second->arg[1]);
    return expr_let(rw->ir, second->param, second->arg[0], rest);
}

Expr *rule_letIn(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *second = let_behind(at, 1);
    if (!second)
        return NULL;
    Expr *value = expr_let(rw->ir, at->param, at->arg[0], second->arg[0]);
    return expr_let(rw->ir, second->param, value, second->arg[1]);
}

// Names what a tuple is made of: each component, or the array that is unzipped. Without it
// the name of the whole would be of no array.
Expr *rule_letApart(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *value = at->kind == E_LET ? at->arg[0] : at;
    const bool unzips = expr_is(value, P_UNZIP);
    const int n = unzips ? value->type->n : value->narg;
    const int dims = unzips ? dims_of_tuples(value->arg[0]->type) : 0;
    if (value == at || (!dims && value->kind != E_TUPLE) || n > PARTS_MAX)
        return NULL;
    NamedValues names = {.n = 0};
    Expr *part[PARTS_MAX];
    for (int i = 0; i < n; i++)
        part[i] = unzips && i > 0
                      ? use(rw, names.param[0])
                      : name_value(rw, &names, at->param->name, copy_of(rw, value->arg[i]));
    for (int i = 0; unzips && i < n; i++)
        part[i] = component_of_all(rw, part[i], dims, i);
    const Expr *parts = expr_tuple(rw->ir, part, n);
    return with_names(rw, &names,
                      call_all(rw, make_lambda(rw, at->param, at->arg[1]), &parts));
}

Expr *rule_letSplit(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *split = at->kind == E_LET ? at->arg[0] : at;
    if (split == at || !is_dims(split, P_SPLIT, 1))
        return NULL;
    Param *whole = fresh(rw, at->param->name);
    Expr *rows = make_sized(rw, P_SPLIT, split->num[0], use(rw, whole));
    return expr_let(rw->ir, whole, copy_of(rw, split->arg[0]),
                    expr_replace(rw->ir, at->arg[1], at->param, rows));
}

// What one map reads instead of several zips: each array once ---------------------------

typedef struct {
    int dims, n;
    bool full;
    const Expr *part[PARTS_MAX];
    // What is no part: names of arrays, and of the element of each that is at hand.
    int nname;
    Param *name[PARTS_MAX], *own[PARTS_MAX];
} Parts;

static int name_place(const Parts *parts, const Expr *expr)
{
    int i = parts->nname - 1;
    while (i >= 0 && !expr_is_use(expr, parts->name[i]))
        i--;
    return i;
}

static int part_place(const Parts *parts, const Expr *expr)
{
    for (int i = 0; i < parts->n; i++)
        if (expr_equal(parts->part[i], expr))
            return i;
    return -1;
}

static void add_parts(Parts *parts, const Expr *expr)
{
    if (is_dims(expr, P_ZIP, parts->dims)) {
        for (int i = 0; i < expr->narg; i++)
            add_parts(parts, expr->arg[i]);
    } else if (part_place(parts, expr) < 0 && name_place(parts, expr) < 0) {
        parts->full |= parts->n == PARTS_MAX;
        if (!parts->full)
            parts->part[parts->n++] = expr;
    }
}

// An element of expr, from one of all parts.
static Expr *element_of(Rewrite *rw, const Parts *parts, const Expr *expr, Param *e)
{
    if (!is_dims(expr, P_ZIP, parts->dims)) {
        const int name = name_place(parts, expr);
        Expr *all = use(rw, name < 0 ? e : parts->own[name]);
        return parts->n == 1 || name >= 0 ? all
                                          : expr_get(rw->ir, all, part_place(parts, expr));
    }
    Expr *item[PARTS_MAX];
    for (int i = 0; i < expr->narg; i++)
        item[i] = element_of(rw, parts, expr->arg[i], e);
    return expr_tuple(rw->ir, item, expr->narg);
}

static Expr *zip_of(Rewrite *rw, const Parts *parts)
{
    Expr *part[PARTS_MAX];
    for (int i = 0; i < parts->n; i++)
        part[i] = copy_of(rw, parts->part[i]);
    return parts->n == 1 ? part[0] : make_zip(rw, parts->dims, part, parts->n);
}

Expr *rule_zipFlatten(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_MAP) || !is_dims(at->arg[0], P_ZIP, at->dims))
        return NULL;
    const Expr *zip = at->arg[0];
    Parts parts = {.dims = at->dims};
    add_parts(&parts, zip);
    bool same = parts.n == zip->narg;
    for (int i = 0; same && i < zip->narg; i++)
        same = !is_dims(zip->arg[i], P_ZIP, at->dims);
    if (same || parts.full)
        return NULL;
    Param *e = fresh(rw, "t");
    Expr *body = call(rw, at->fun, element_of(rw, &parts, zip, e));
    return map_by(rw, at->dims, e, body, zip_of(rw, &parts));
}

Expr *rule_zipNest(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *zip = is_dims(at, P_MAP, 1) ? at->arg[0] : NULL;
    if (!zip || !expr_is(zip, P_ZIP) || zip->dims < 2 || zip->narg > PARTS_MAX)
        return NULL;
    Param *t = fresh(rw, "t");
    Expr *row[PARTS_MAX], *part[PARTS_MAX];
    for (int i = 0; i < zip->narg; i++) {
        row[i] = get_of(rw, t, i);
        part[i] = copy_of(rw, zip->arg[i]);
    }
    Expr *body = call(rw, at->fun, make_zip(rw, zip->dims - 1, row, zip->narg));
    return map_by(rw, 1, t, body, make_zip(rw, 1, part, zip->narg));
}

Expr *rule_zipIndex(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t i = args->at[0];
    const Expr *zip = is_dims(at, P_MAP, 1) ? at->arg[0] : NULL;
    if (!zip || !is_dims(zip, P_ZIP, 1) || zip->narg > PARTS_MAX || i < 0 || i >= zip->narg)
        return NULL;
    Param *t = fresh(rw, "t");
    Expr *item[PARTS_MAX], *part[PARTS_MAX];
    for (int k = 0; k < zip->narg; k++) {
        item[k] = get_of(rw, t, k);
        part[k] = k == i ? counting(rw, len_of(zip, 0)) : copy_of(rw, zip->arg[k]);
    }
    item[i] = expr_at(rw->ir, copy_of(rw, zip->arg[i]), item[i]);
    const Expr *items = expr_tuple(rw->ir, item, zip->narg);
    Expr *body = call_all(rw, at->fun, &items);
    return map_by(rw, 1, t, body, make_zip(rw, 1, part, zip->narg));
}

// Several maps as one -------------------------------------------------------------------

static bool like_maps(Rewrite *rw, const Expr *a, const Expr *b)
{
    if (!expr_is(a, P_MAP) || !is_dims(b, P_MAP, a->dims))
        return false;
    for (int k = 0; k < a->dims; k++)
        if (!arith_equal(rw->ir->arith, len_of(a, k), len_of(b, k)))
            return false;
    return true;
}

// How often the elements of a map are, or have, an element of what a param names.
static int names_elements(const Expr *in, int dims, const Param *param)
{
    int n = expr_is_use(in, param);
    for (int i = 0; is_dims(in, P_ZIP, dims) && i < in->narg; i++)
        n += names_elements(in->arg[i], dims, param);
    return n;
}

static bool takes_item(const Expr *expr, const void *all)
{
    return expr_is(expr, P_MAP) && expr_is_use(expr->arg[0], all) &&
           element_component(expr->fun->arg[0], expr->fun->params[0]) >= 0;
}

// The maps that lets hold, and their components if the rest uses those. Elements at other
// places of a map before are computed again. False: they do not fit.
static bool find_maps(Rewrite *rw, const Expr *at, const Expr *rest, const Expr **map,
                      int *apart, Parts *parts)
{
    int n = 0;
    for (const Expr *let = at; let != rest; let = let->arg[1], n++) {
        if (!like_maps(rw, at->arg[0], let->arg[0]))
            return false;
        map[n] = let->arg[0];
        for (int k = n - 1; k >= 0; k--)
            if (apart[k] || names_elements(map[n]->arg[0], parts->dims, parts->name[k]) <
                                expr_count(map[n], expr_is_use, parts->name[k]))
                map[n] = expr_replace(rw->ir, map[n], parts->name[k], map[k]);
        add_parts(parts, map[n]->arg[0]);
        const int uses = expr_count(rest, expr_is_use, let->param);
        if (is_map_of_tuples(map[n]) && uses &&
            expr_count(rest, takes_item, let->param) == uses)
            apart[n] = type_tuple_of(map[n]->type)->n;
        parts->name[n] = let->param;
        parts->own[n] = fresh(rw, let->param->name);
        parts->nname++;
    }
    return !parts->full;
}

static Expr *tuple_of_maps(Rewrite *rw, const Expr *at, int n)
{
    const Expr *map[PARTS_MAX], *of[PARTS_MAX], *rest = at;
    Expr *item[PARTS_MAX], *value[PARTS_MAX] = {NULL};
    int lets = 0, m = 0, apart[PARTS_MAX] = {0};
    for (; lets < n && rest->kind == E_LET; rest = rest->arg[1])
        lets++;
    Parts parts = {.dims = at->arg[0]->dims};
    if (lets < n || !find_maps(rw, at, rest, map, apart, &parts))
        return NULL;
    Param *e = fresh(rw, "e"), *all = fresh(rw, at->param->name);
    for (int i = 0; i < n; i++) {
        Expr *element = element_of(rw, &parts, map[i]->arg[0], e), *own[PARTS_MAX];
        Param *t = fresh(rw, "t");
        if (m + MAX(apart[i], 1) > PARTS_MAX)
            return NULL;
        for (int k = 0; k < MAX(apart[i], 1); k++, m++) {
            const Expr *part = apart[i] ? map_of_item(rw, map[i], k) : map[i];
            item[m] = call(rw, part->fun, copy_of(rw, element));
            own[k] = get_of(rw, t, m);
        }
        if (!apart[i]) {
            value[i] = item[m - 1];
            item[m - 1] = use(rw, parts.own[i]);
        }
        Expr *mine = all_parts(rw, own, apart[i]);
        of[i] = map_by(rw, parts.dims, t, mine, use(rw, all));
        m -= !expr_mentions(rest, parts.name[i]);
    }
    for (int i = 0; i < n && m == 1; i++)
        of[i] = use(rw, all);
    Expr *body = m == 1 ? item[0] : expr_tuple(rw->ir, item, MAX(m, 1));
    for (int i = n - 1; i >= 0; i--)
        if (value[i])
            body = call(rw, make_lambda(rw, parts.own[i], body), value[i]);
    Expr *maps = map_by(rw, parts.dims, e, body, zip_of(rw, &parts));
    return expr_let(rw->ir, all, maps, rest_with(rw, rest, parts.name, of, n));
}

// Several folds as one ------------------------------------------------------------------

static bool is_sum(const Expr *expr)
{
    return expr_is(expr, P_REDUCE) && combined(expr->fun, -1) >= 0 && reduce_shares(expr);
}

// The folds that n lets hold, of maps that go through as many elements, where none needs
// the others. Returns what follows the lets; NULL: they do not fit.
static const Expr *find_folds(Rewrite *rw, const Expr *at, int n, const Expr **fold,
                              Param **name)
{
    const Expr *let = at, *first = at->arg[0];
    for (int i = 0; i < n; i++, let = let->arg[1]) {
        if (let->kind != E_LET || !is_sum(let->arg[0]) ||
            !arith_equal(rw->ir->arith, len_of(first->arg[1], 0),
                         len_of(let->arg[0]->arg[1], 0)))
            return NULL;
        for (int k = 0; k < i; k++)
            if (expr_mentions(let->arg[0], name[k]))
                return NULL;
        name[i] = let->param;
        fold[i] = fold_of_map(rw, let->arg[0]);
    }
    return let;
}

// One fold of tuples instead of several.
static Expr *fold_tuples(Rewrite *rw, const Expr *const *fold, int n, Expr *in)
{
    Param *a = fresh(rw, "a"), *b = fresh(rw, "b");
    Expr *sum[PARTS_MAX], *init[PARTS_MAX];
    for (int i = 0; i < n; i++) {
        const Expr *both[] = {get_of(rw, a, i), get_of(rw, b, i)};
        sum[i] = call_all(rw, fold[i]->fun, both);
        init[i] = start_value(rw, fold[i]->arg[0]);
    }
    Expr *f = expr_lambda(rw->ir, (Param *[]){a, b}, 2, expr_tuple(rw->ir, sum, n));
    return make_reduce(rw, P_REDUCE, f, expr_tuple(rw->ir, init, n), in);
}

static Expr *tuple_of_folds(Rewrite *rw, const Expr *at, int n)
{
    const Expr *fold[PARTS_MAX], *of[PARTS_MAX];
    Expr *item[PARTS_MAX];
    Param *name[PARTS_MAX], *e = fresh(rw, "e"), *all = fresh(rw, at->param->name);
    const Expr *rest = find_folds(rw, at, n, fold, name);
    Parts parts = {.dims = 1};
    for (int i = 0; rest && i < n; i++)
        add_parts(&parts, fold[i]->arg[1]->arg[0]);
    if (!rest || parts.full)
        return NULL;
    for (int i = 0; i < n; i++) {
        const Expr *map = fold[i]->arg[1];
        item[i] = call(rw, map->fun, element_of(rw, &parts, map->arg[0], e));
        of[i] = get_of(rw, all, i);
    }
    Expr *f = make_lambda(rw, e, expr_tuple(rw->ir, item, n));
    Expr *maps = make_map(rw, 1, f, zip_of(rw, &parts));
    return expr_let(rw->ir, all, fold_tuples(rw, fold, n, maps),
                    rest_with(rw, rest, name, of, n));
}

Expr *rule_letTuple(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const int64_t n = args->at[0];
    if (at->kind != E_LET || n < 2 || n > PARTS_MAX)
        return NULL;
    return is_sum(at->arg[0]) ? tuple_of_folds(rw, at, (int)n)
                              : tuple_of_maps(rw, at, (int)n);
}

// A layout of a zip ---------------------------------------------------------------------

// Windows, or rows, of pairs from pairs of windows.
static Expr *zip_windows(Rewrite *rw, const Expr *at, Expr *pairs, int n)
{
    Param *t = fresh(rw, "t");
    Expr *part[PARTS_MAX];
    for (int i = 0; i < n; i++)
        part[i] = get_of(rw, t, i);
    Expr *zip = make_zip(rw, at->dims, part, n);
    return map_by(rw, at->dims, t, zip, pairs);
}

Expr *rule_layoutOfZip(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    bool windows = expr_is(at, P_SLIDE) || expr_is(at, P_SPLIT);
    bool moves = (expr_is(at, P_PAD) && at->mode != PAD_CONSTANT) || expr_is(at, P_TAKE) ||
                 expr_is(at, P_DROP) || expr_is(at, P_GATHER);
    const Expr *zip = at->kind == E_PATTERN && at->narg ? data_of(at) : NULL;
    bool turns = zip && expr_is(at, P_TRANSPOSE) && expr_is(zip, P_ZIP) && zip->dims > 1;
    if ((!turns && (!(windows || moves) || !is_dims(zip, P_ZIP, at->dims))) ||
        zip->narg > PARTS_MAX)
        return NULL;
    Expr *part[PARTS_MAX];
    for (int i = 0; i < zip->narg; i++)
        part[i] = layout_like(rw, at, copy_of(rw, zip->arg[i]));
    Expr *pairs = make_zip(rw, zip->dims, part, zip->narg);
    return windows ? zip_windows(rw, at, pairs, zip->narg) : pairs;
}
