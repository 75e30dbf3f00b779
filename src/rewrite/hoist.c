// SPDX-License-Identifier: Apache-2.0
//
// Folds, and stages that are stored, deep inside an expression get names further out: where
// their value is the same for all that is around them, or for a map that is.
//
//   source  let floating, and full laziness: Peyton Jones, Partain, Santos, ICFP 1996

#include "rewrite/internal.h"

// Naming folds -------------------------------------------------------------------------

bool mentions_bound(const Expr *expr, const Bound *bound)
{
    for (; bound; bound = bound->outer) {
        if (bound->by->kind == E_LET && expr_mentions(expr, bound->by->param))
            return true;
        for (int i = 0; bound->by->kind == E_LAMBDA && i < bound->by->nparam; i++)
            if (expr_mentions(expr, bound->by->params[i]))
                return true;
    }
    return false;
}

const Bound *bound_around(const Expr *expr, int i, const Bound *bound, Bound *own)
{
    *own = (Bound){expr, bound};
    return expr->kind == E_LAMBDA || (expr->kind == E_LET && i == 1) ? own : bound;
}

bool loop_folds(const Expr *expr, int64_t least)
{
    return expr_is(expr, P_ITERATE) && !array_is_large(expr->type, SMALL_MOST + 1) &&
           arith_is_const(expr->num[0], NULL) && expr_find(expr->fun, is_long_nest, &least);
}

// What a chain names: folds, prefixes and loops of them.
static bool is_link(const Expr *expr, int64_t least)
{
    return nest_is_long(expr, least) || loop_folds(expr, least);
}

typedef bool Wanted(const Expr *expr, int64_t least);

// The first of so many elements that is the same for all that is bound on the way to it.
static const Expr *first_free(const Expr *expr, int64_t least, Wanted *is,
                              const Bound *bound);

static const Expr *free_below(const Expr *expr, int64_t least, Wanted *is,
                              const Bound *bound)
{
    const Expr *found = NULL;
    for (int i = 0; i < expr->narg && !found; i++) {
        Bound own;
        found = first_free(expr->arg[i], least, is, bound_around(expr, i, bound, &own));
    }
    return expr->fun && !found ? first_free(expr->fun, least, is, bound) : found;
}

static const Expr *first_free(const Expr *expr, int64_t least, Wanted *is,
                              const Bound *bound)
{
    return is(expr, least) && !mentions_bound(expr, bound)
               ? expr
               : free_below(expr, least, is, bound);
}

static const Expr *to_name(const Expr *expr, int64_t least, Wanted *is)
{
    const bool let = expr->kind == E_LET;
    const Expr *value = let ? expr->arg[0] : expr;
    const bool stands = let ? is(value, least) : nest_is_long(value, least);
    return stands ? NULL : first_free(value, least, is, NULL);
}

const Expr *fold_to_name(const Expr *expr, int64_t least)
{
    return to_name(expr, least, nest_is_long);
}

const Expr *link_to_name(const Expr *expr, int64_t least)
{
    return to_name(expr, least, is_link);
}

const Expr *link_within(const Expr *expr, int64_t least)
{
    const Expr *found = NULL, *value = expr->kind == E_LET ? expr->arg[0] : expr;
    for (const Expr *next; (next = free_below(value, least, is_link, NULL)); value = next)
        found = next;
    return found;
}

const Expr *fold_inside(const Expr *body)
{
    if (expr_is(body, P_REDSEQ) || expr_is(body, P_REDUCE))
        return body;
    if (body->kind == E_LET && expr_is(body->arg[0], P_REDUCE) &&
        !expr_find(body->arg[1], is_long_nest, &(int64_t){0}))
        return body->arg[0];
    return fold_to_name(body, 0);
}

// An expression with a name for a part of it.
static Expr *named_in(Rewrite *rw, const Expr *at, const Expr *part, const char *word)
{
    Param *name = fresh(rw, word);
    return expr_let(rw->ir, name, copy_of(rw, part),
                    with_name(rw, copy_of(rw, at), part, name));
}

Expr *rule_nameFold(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *fold = at->kind == E_LAMBDA ? NULL
                       : args->at[1]        ? link_within(at, args->at[0])
                                            : link_to_name(at, args->at[0]);
    return fold ? named_in(rw, at, fold, "fold") : NULL;
}

// Hoisting folds -----------------------------------------------------------------------

// Is the component of the element used by a function that is called again and again for it?
static bool is_repeated(const Expr *expr, const Param *elem, int k)
{
    bool found = expr->fun && uses_component(expr->fun, elem, k);
    for (int i = 0; i < expr->narg && !found; i++)
        found = is_repeated(expr->arg[i], elem, k);
    return found;
}

// What a map goes through, or a part of a zip, in which so many elements are folded for
// each element that its function goes on to repeat.
static const Expr *repeated_operand(const Expr *map, int64_t least, const Bound *bound)
{
    const Expr *in = expr_is(map, P_MAP) ? map->arg[0] : NULL;
    const bool zip = in && expr_is(in, P_ZIP);
    for (int i = 0; in && i < (zip ? in->narg : 1); i++) {
        const Expr *part = zip ? in->arg[i] : in;
        if (is_repeated(map->fun->arg[0], map->fun->params[0], zip ? i : -1) &&
            expr_find(part, is_long_nest, &least) && !mentions_bound(part, bound))
            return part;
    }
    return NULL;
}

// A fold or prefix of so many elements, the value of a name that has one in it, or a short
// array that has a name and is computed: the first in a function that a pattern calls again
// and again, if it is the same for all that is bound on the way to it. What is read under a
// guard stays there. The same of what a map goes through if its function does so with each
// element.
static const Expr *invariant(const Expr *expr, int64_t least, const Bound *bound, bool loop)
{
    const Expr *value = expr->kind == E_LET ? expr->arg[0] : expr;
    bool costly = value == expr
                      ? nest_is_long(value, least)
                      : (makes_array(value) && !array_is_large(value->type, TABLE_LEAST)) ||
                            expr_find(value, is_long_nest, &least) != NULL;
    if (loop && costly && !mentions_bound(value, bound))
        return value;
    const Expr *found = repeated_operand(expr, least, bound);
    for (int i = 0; i < expr->narg && !found && !expr_guards(expr, i); i++) {
        Bound own;
        found = invariant(expr->arg[i], least, bound_around(expr, i, bound, &own), loop);
    }
    return expr->fun && !found ? invariant(expr->fun, least, bound, true) : found;
}

// Removes other names for that one, so that what mentions them is seen to be the same, too.
static Expr *without_alias(Rewrite *rw, Expr *expr, Param *name)
{
    while (expr->kind == E_LET && expr_is_use(expr->arg[0], name))
        expr = expr_replace(rw->ir, expr->arg[1], expr->param, use(rw, name));
    for (int i = 0; i < expr->narg; i++)
        expr->arg[i] = without_alias(rw, expr->arg[i], name);
    if (expr->fun)
        expr->fun = without_alias(rw, expr->fun, name);
    return expr;
}

Expr *rule_hoistFold(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *value =
        at->kind == E_LAMBDA ? NULL : invariant(at, args->at[0], NULL, false);
    if (!value)
        return NULL;
    Param *name = fresh(rw, "fold");
    Expr *rest = with_name(rw, copy_of(rw, at), value, name);
    return expr_let(rw->ir, name, copy_of(rw, value), without_alias(rw, rest, name));
}

// Hoisting maps ------------------------------------------------------------------------

// In a map, deep in a function: what is the same for all that is around the map.
typedef struct {
    Rewrite *rw;
    int64_t least;
    const Expr *map, *value; // value: of what is found in the map's function
    const Expr *named;       // what the name takes the place of
    const Expr *part[PARTS_MAX];
    int component[PARTS_MAX], n; // parts of a zip that it is made of; n 0: of the element
    bool tables;                 // the map goes through places again and again
} Common;

// What a map's element has at component k, itself: k < 0.
static const Expr *part_at(const Expr *map, int k)
{
    const Expr *in = map->arg[0];
    if (k < 0)
        return is_dims(in, P_ZIP, 1) ? NULL : in;
    return is_dims(in, P_ZIP, 1) && k < in->narg ? in->arg[k] : NULL;
}

// Notes the components that an expression uses of the element; false where one of them is
// another one for what is around.
static bool note_parts(Common *c, const Expr *expr, const Bound *bound)
{
    const int component = element_component(expr, c->map->fun->params[0]);
    if (component >= -1) {
        const Expr *part = part_at(c->map, component);
        if (!part || mentions_bound(part, bound) || c->n == PARTS_MAX)
            return false;
        for (int i = 0; i < c->n; i++)
            if (c->component[i] == component)
                return true;
        c->part[c->n] = part;
        c->component[c->n++] = component;
        return true;
    }
    for (int i = 0; i < expr->narg; i++)
        if (!note_parts(c, expr->arg[i], bound))
            return false;
    return !expr->fun || note_parts(c, expr->fun, bound);
}

// An expression with the lets that it mentions around it; NULL: it mentions what a function
// binds.
static const Expr *with_lets(Rewrite *rw, const Expr *expr, const Bound *within)
{
    Expr *all = (Expr *)expr;
    for (; within; within = within->outer) {
        const Expr *by = within->by;
        for (int i = 0; by->kind == E_LAMBDA && i < by->nparam; i++)
            if (expr_mentions(all, by->params[i]))
                return NULL;
        if (by->kind == E_LET && expr_mentions(all, by->param))
            all = expr_let(rw->ir, by->param, by->arg[0], all);
    }
    return all;
}

bool calls_function(const Expr *expr, const void *none)
{
    return expr_calls(expr, calls_function, NULL) ||
           (expr->kind == E_OP && op_info[expr->op].kind >= OPK_EXP);
}

// Does a map of few elements go through their places, perhaps beside other arrays?
static bool goes_through_places(const Expr *map)
{
    const Expr *in = map->arg[0];
    int64_t len;
    bool places = is_counting(in);
    for (int i = 0; is_dims(in, P_ZIP, 1) && i < in->narg; i++)
        places |= is_counting(in->arg[i]);
    return places && arith_is_const(len_of(in, 0), &len) && len < TABLE_LEAST;
}

static bool has_function_around(const Bound *bound)
{
    for (; bound; bound = bound->outer)
        if (bound->by->kind == E_LAMBDA)
            return true;
    return false;
}

// An expression with literals in place of their names.
static const Expr *with_literals(Rewrite *rw, const Expr *expr, const Bound *bound)
{
    for (; expr && bound; bound = bound->outer) {
        const Expr *by = bound->by;
        if (by->kind == E_LET && by->arg[0]->kind == E_LITERAL &&
            expr_mentions(expr, by->param))
            expr = expr_replace(rw->ir, expr, by->param, by->arg[0]);
    }
    return expr;
}

// A function as the sine, of the place of the element and of nothing else of it: then the
// function around the map would find the same table again and again.
static bool is_of_place(Common *c, const Expr *expr, const Bound *within,
                        const Bound *bound)
{
    if (!c->tables || expr->kind == E_LAMBDA || !type_is_scalar(expr->type) ||
        !expr_find(expr, calls_function, NULL))
        return false;
    c->n = 0;
    c->named = expr;
    c->value = with_literals(c->rw, with_lets(c->rw, expr, within), bound);
    if (!c->value || mentions_bound(c->value, bound) || !note_parts(c, c->value, bound))
        return false;
    for (int i = 0; i < c->n; i++)
        if (!is_counting(c->part[i]))
            return false;
    return c->n > 0;
}

// A long fold in the map's function that is made of such components alone, or a table;
// within: what is bound in the function.
static bool find_common(Common *c, const Expr *expr, const Bound *within,
                        const Bound *bound)
{
    const Expr *value = expr->kind == E_LET ? expr->arg[0] : expr;
    bool nest = value == expr ? nest_is_long(value, c->least)
                              : expr_find(value, is_long_nest, &c->least) != NULL;
    c->n = 0;
    if (nest && type_is_scalar(value->type) && !mentions_bound(value, within) &&
        !mentions_bound(value, bound) && note_parts(c, value, bound) && c->n) {
        c->value = c->named = value;
        return true;
    }
    if (is_of_place(c, value, within, bound))
        return true;
    for (int i = 0; i < expr->narg && !expr_guards(expr, i); i++) {
        Bound own;
        if (find_common(c, expr->arg[i], bound_around(expr, i, within, &own), bound))
            return true;
    }
    return expr->fun && find_common(c, expr->fun, within, bound);
}

static bool find_map(Common *c, const Expr *expr, const Bound *bound)
{
    if (bound && is_dims(expr, P_MAP, 1)) {
        c->map = expr;
        c->tables = has_function_around(bound) && goes_through_places(expr);
        if (find_common(c, expr->fun->arg[0], NULL, bound) &&
            (c->named != expr->fun->arg[0] || has_function_around(bound)))
            return true; // what is all of a function would only get another name
    }
    for (int i = 0; i < expr->narg && !expr_guards(expr, i); i++) {
        Bound own;
        if (find_map(c, expr->arg[i], bound_around(expr, i, bound, &own)))
            return true;
    }
    return expr->fun && find_map(c, expr->fun, bound);
}

// The value for each element, as a map of the parts that it is made of.
static Expr *map_of_common(const Common *c)
{
    Rewrite *rw = c->rw;
    const Param *e = c->map->fun->params[0];
    Expr *part[PARTS_MAX], *body = copy_of(rw, c->value);
    for (int i = 0; i < c->n; i++)
        part[i] = copy_of(rw, c->part[i]);
    Param *t = fresh(rw, "t");
    for (int i = 0; i < c->n && c->component[0] >= 0; i++) {
        Param *own = fresh(rw, "own");
        Expr *get = expr_get(rw->ir, expr_param(rw->ir, (Param *)e), c->component[i]);
        body = with_name(rw, body, get, own);
        body = expr_replace(rw->ir, body, own, c->n > 1 ? get_of(rw, t, i) : use(rw, t));
    }
    body = expr_replace(rw->ir, body, e, use(rw, t));
    return map_by(rw, 1, t, body, c->n > 1 ? make_zip(rw, 1, part, c->n) : part[0]);
}

Expr *exchanged(Rewrite *rw, const Expr *expr, const Expr *old, Expr *value)
{
    if (expr == old)
        return value;
    Expr *to = arena_copy(rw->ir->arena, expr, sizeof(Expr));
    to->arg = NEW_ARRAY(rw->ir->arena, Expr *, expr->narg);
    for (int i = 0; i < expr->narg; i++)
        to->arg[i] = exchanged(rw, expr->arg[i], old, value);
    if (expr->fun)
        to->fun = exchanged(rw, expr->fun, old, value);
    return to;
}

// The map with one part more, which its function has instead of the value.
static Expr *map_with(const Common *c, Param *all)
{
    Rewrite *rw = c->rw;
    const Expr *in = c->map->arg[0];
    bool zip = is_dims(in, P_ZIP, 1);
    Expr *part[PARTS_MAX];
    int n = zip ? in->narg : 1;
    for (int i = 0; i < n; i++)
        part[i] = copy_of(rw, zip ? in->arg[i] : in);
    part[n] = use(rw, all);
    Param *t = fresh(rw, "t"), *found = fresh(rw, "found");
    Expr *body = exchanged(rw, c->map->fun->arg[0], c->named, use(rw, found));
    body = with_name(rw, copy_of(rw, body), c->named, found);
    body = expr_replace(rw->ir, body, found, get_of(rw, t, n));
    Expr *element = zip ? use(rw, t) : get_of(rw, t, 0);
    body = expr_replace(rw->ir, body, c->map->fun->params[0], element);
    return map_by(rw, 1, t, body, make_zip(rw, 1, part, n + 1));
}

// The map's value for all elements gets a name outside of an expression with the map in it.
static Expr *named_outside(const Common *c, const Expr *expr)
{
    Rewrite *rw = c->rw;
    const Expr *in = c->map->arg[0];
    if (is_dims(in, P_ZIP, 1) && in->narg + 1 >= PARTS_MAX)
        return NULL;
    Param *all = fresh(rw, "all");
    Expr *whole = map_of_common(c);
    return copy_of(
        rw, expr_let(rw->ir, all, whole, exchanged(rw, expr, c->map, map_with(c, all))));
}

Expr *rule_hoistMap(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Common c = {.rw = rw, .least = args->at[0]};
    return at->kind != E_LAMBDA && find_map(&c, at, NULL) ? named_outside(&c, at) : NULL;
}

// Hoisting stages ----------------------------------------------------------------------

bool array_is_large(const Type *type, int64_t least)
{
    int64_t n = 1, len;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        if (array_is_large(type->item[i], least))
            return true;
    if (type->kind != T_ARRAY)
        return false;
    for (; n < least && type->kind == T_ARRAY; type = type->elem)
        n = arith_is_const(type->len, &len) ? n * MIN(len, least) : least;
    return n >= least;
}

static bool fills_rows(const Expr *expr, const void *none)
{
    return expr_is(expr, P_SCAN) || is_loop_of_arrays(expr);
}

bool is_row_stage(const Expr *expr, const void *user)
{
    const RowStages *wanted = user;
    const bool loop = wanted->loops && expr_is(expr, P_ITERATE) &&
                      arith_is_const(expr->num[0], NULL); // steps are launched
    if (loop && wanted->loops == LOOPS_ALL && expr_find(expr->fun, fills_rows, NULL))
        return true;
    if (wanted->folds &&
        (nest_is_long(expr, wanted->least) ||
         (expr_is(expr, P_MAP) && expr_find(expr->fun, is_long_nest, &wanted->least))))
        return true;
    if (expr_is(expr, P_REDUCEBY))
        return array_is_large(expr->arg[1]->type, wanted->least);
    return (loop || expr_is(expr, P_SCATTER)) && array_is_large(expr->type, wanted->least);
}

// What a function gives, and that under the views that it gives it in.
typedef struct {
    const Expr *result, *under;
    bool moved; // so that elements cannot be written where they come to stand
} MapResult;

const Expr *under_views(const Expr *expr)
{
    while (expr->kind == E_PATTERN && expr->narg &&
           pattern_info[expr->pattern].group == G_VIEW && !expr_is(expr, P_ZIP))
        expr = data_of(expr);
    return expr;
}

// Prefixes that an item finds one after the other, or what is made of them element by
// element.
static bool is_walk(const Expr *expr)
{
    return expr_is(expr, P_MAP) ? expr->dims == 1 && is_walk(expr->arg[0])
                                : expr_is(expr, P_SCAN) && !folds_by_parts(expr);
}

// An item would keep all of a row that is wanted in another order than it comes in, or by
// folds and prefixes of its elements.
static bool keeps_row(const RowStages *wanted, const MapResult *given, const Expr *expr,
                      const ReadBy *around)
{
    return is_walk(expr) && array_is_large(expr->type, wanted->least) &&
           (expr == given->under ? given->moved : around->reads && around->nests);
}

// The first stage in the map's function, but for what this gives, that mentions no more
// than its lets and the element.
static bool find_stage(Common *c, const RowStages *wanted, const MapResult *given,
                       const Expr *expr, const Bound *within, ReadBy around)
{
    const RowStages always = {wanted->least, wanted->loops, 0, false};
    const bool again = wanted->again && around.again && makes_array(expr) &&
                       (array_is_large(expr->type, wanted->again) ||
                        expr_find(expr, is_long_nest, &wanted->least));
    const bool stage = keeps_row(wanted, given, expr, &around) ||
                       (expr == given->under ? is_row_stage(expr, &always)
                                             : again || is_row_stage(expr, wanted));
    c->n = 0;
    c->value = stage && expr != given->result ? with_lets(c->rw, expr, within) : NULL;
    c->named = expr;
    if (c->value && note_parts(c, c->value, NULL) && c->n)
        return true;
    for (int i = 0; i < expr->narg && !expr_guards(expr, i); i++) {
        Bound own;
        if (find_stage(c, wanted, given, expr->arg[i], bound_around(expr, i, within, &own),
                       around_arg(expr, i, around)))
            return true;
    }
    return expr->fun &&
           find_stage(c, wanted, given, expr->fun, within, (ReadBy){.looks = around.looks});
}

// Goes under the views around an expression.
static void go_under(MapResult *given)
{
    const Expr *under = under_views(given->under);
    for (; given->under != under; given->under = data_of(given->under))
        given->moved |= moves_elements(given->under, NULL);
}

// What is under the views that a function ends with, whether it has a name or not.
static MapResult result_of(const Expr *body)
{
    enum { NAMES_MOST = 8 }; // of names
    MapResult given = {.result = expr_behind_lets(body)};
    given.under = given.result;
    go_under(&given);
    for (int i = 0;
         i < NAMES_MOST && given.under != given.result && given.under->kind == E_PARAM;
         i++) {
        const Expr *let = body;
        while (let->kind == E_LET && !expr_is_use(given.under, let->param))
            let = let->arg[1];
        if (let->kind != E_LET)
            break;
        given.under = let->arg[0];
        go_under(&given);
    }
    return given;
}

Expr *rule_hoistStage(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const RowStages wanted = {args->at[0], args->at[1], args->at[2], args->at[3] != 0};
    Common c = {.rw = rw, .map = at};
    if (!is_dims(at, P_MAP, 1))
        return NULL;
    const Expr *body = at->fun->arg[0];
    const MapResult given = result_of(body);
    int looks = LOOKS_MOST;
    bool found = find_stage(&c, &wanted, &given, body, NULL, (ReadBy){.looks = &looks});
    return found ? named_outside(&c, at) : NULL;
}

// Naming arrays --------------------------------------------------------------------------

bool is_loop_of_arrays(const Expr *expr)
{
    return expr_is(expr, P_ITERATE) && type_holds_array(expr->type);
}

bool only_reads(const Expr *array)
{
    const Expr *e = array->fun ? expr_behind_lets(array->fun->arg[0]) : array;
    return expr_behind_gets(e)->kind == E_AT;
}

// The first in an expression that is made once where it has a name and again and again
// else, and is the same for all that is bound on the way to it; not all of the expression.
static const Expr *free_array(const Expr *expr, const Expr *all, const Bound *bound,
                              ReadBy around)
{
    const bool stored = expr_is(expr, P_SCATTER) || is_loop_of_arrays(expr) ||
                        (around.again && makes_array(expr) && !only_reads(expr));
    if (stored && expr != all && !mentions_bound(expr, bound))
        return expr;
    const Expr *found = NULL;
    for (int i = 0; i < expr->narg && !found && !expr_guards(expr, i); i++) {
        Bound own;
        found = free_array(expr->arg[i], all, bound_around(expr, i, bound, &own),
                           around_arg(expr, i, around));
    }
    return expr->fun && !found
               ? free_array(expr->fun, all, bound, (ReadBy){.looks = around.looks})
               : found;
}

Expr *rule_nameArray(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int looks = LOOKS_MOST;
    if (at->kind == E_LAMBDA || at->kind == E_LET)
        return NULL;
    const Expr *array = args->at[0] && is_loop_of_arrays(at)
                            ? at
                            : free_array(at, at, NULL, (ReadBy){.looks = &looks});
    return array ? named_in(rw, at, array, "all") : NULL;
}
