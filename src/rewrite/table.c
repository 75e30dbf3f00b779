// SPDX-License-Identifier: Apache-2.0
//
// Tables of functions of several places, as the basis of a transform: each element of the
// table is computed once, and not once for each of what else there is.
#include "rewrite/internal.h"

typedef struct {
    Rewrite *rw;
    const Expr *value; // NULL: there is none
    int n;
    const Param *place[DIMS_MAX];
    int64_t len[DIMS_MAX];
} PlaceTable;

static bool binds_param(const Bound *around, const Param *param, int *number)
{
    const Expr *fun = around->by->fun;
    for (*number = 0; fun && *number < fun->nparam; ++*number)
        if (fun->params[*number] == param)
            return true;
    return around->by->kind == E_LET && around->by->param == param;
}

// A name of a value: a place of an array by index, or what the value binds itself.
static bool note_place(PlaceTable *t, const Param *param, const Bound *around)
{
    int number = 0;
    for (int i = 0; i < t->n; i++)
        if (t->place[i] == param)
            return true;
    while (around && !binds_param(around, param, &number))
        around = around->outer;
    if (!around || !expr_is(around->by, P_ARRAY) || t->n == DIMS_MAX ||
        !arith_is_const(len_of(around->by, number), &t->len[t->n]))
        return false;
    t->place[t->n++] = param;
    return true;
}

static bool note_places(PlaceTable *t, const Expr *expr, const Expr *value,
                        const Bound *around)
{
    if (expr->kind == E_PARAM)
        return expr_find(value, expr_binds, expr->param) ||
               note_place(t, expr->param, around);
    bool ok = !expr->fun || note_places(t, expr->fun, value, around);
    for (int i = 0; i < expr->narg && ok; i++)
        ok = note_places(t, expr->arg[i], value, around);
    return ok;
}

static bool is_small(const PlaceTable *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->n && count < TABLE_LEAST; i++)
        count *= MAX(t->len[i], 1);
    return count < TABLE_LEAST;
}

// Is there a function around that none of the places is of? It would find the table again.
static bool is_found_again(const PlaceTable *t, const Bound *around)
{
    for (; around; around = around->outer) {
        bool own = !around->by->fun;
        for (int i = 0, number; i < t->n; i++)
            own |= binds_param(around, t->place[i], &number);
        if (!own)
            return true;
    }
    return false;
}

// A function of one place is left to hoistMap, which gives the map of that place a table.
static bool is_of_places(PlaceTable *t, const Expr *expr, const Bound *around)
{
    t->n = 0;
    return expr->kind != E_LAMBDA && type_is_scalar(expr->type) &&
           expr_find(expr, calls_function, NULL) && note_places(t, expr, expr, around) &&
           t->n > 1 && is_small(t) && is_found_again(t, around);
}

static bool find_table(PlaceTable *t, const Expr *expr, const Bound *around)
{
    if (is_of_places(t, expr, around)) {
        t->value = expr;
        return true;
    }
    const Bound own = {expr, around}; // by a pattern with a function, too
    for (int i = 0; i < expr->narg && !expr_guards(expr, i); i++)
        if (find_table(t, expr->arg[i], expr->kind == E_LET && i == 1 ? &own : around))
            return true;
    return expr->fun && find_table(t, expr->fun->arg[0], &own);
}

// The number of an element, the last place being the one that varies fastest.
static Expr *number_of(const PlaceTable *t)
{
    Rewrite *rw = t->rw;
    Expr *number = use(rw, (Param *)t->place[0]);
    for (int i = 1; i < t->n; i++)
        number = make_op(rw, OP_ADD, arith_of(rw, OP_MUL, number, t->len[i]),
                         use(rw, (Param *)t->place[i]));
    return number;
}

// One array, in one dimension: a short launch, whatever blocks the program has.
static Expr *table_of(const PlaceTable *t)
{
    Rewrite *rw = t->rw;
    int64_t count = 1;
    Param *k = fresh(rw, "k");
    Expr *value = copy_of(rw, t->value);
    for (int i = t->n - 1; i >= 0; count *= t->len[i--]) {
        Expr *place = count > 1 ? arith_of(rw, OP_DIV, use(rw, k), count) : use(rw, k);
        place = i > 0 ? arith_of(rw, OP_MOD, place, t->len[i]) : place;
        value = expr_replace(rw->ir, value, t->place[i], place);
    }
    return array_by(rw, num(rw, count), k, value);
}

Expr *rule_tableOfPlaces(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    PlaceTable t = {.rw = rw};
    if (at->kind == E_LAMBDA || !find_table(&t, at, NULL))
        return NULL;
    Param *table = fresh(rw, "table");
    Expr *element = expr_at(rw->ir, use(rw, table), number_of(&t));
    return copy_of(
        rw, expr_let(rw->ir, table, table_of(&t), exchanged(rw, at, t.value, element)));
}
