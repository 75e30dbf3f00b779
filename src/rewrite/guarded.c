// SPDX-License-Identifier: Apache-2.0
//
// Folds on one side of a condition are made safe to find on either: rules that give folds
// names, and kernels of their own, do not ask the condition.
//
//   source  if-conversion: Allen, Kennedy, Porterfield, Warren, POPL 1983
//   method  an index that may be outside of its array becomes the nearest one inside, and
//           a divisor of integers that may be 0 becomes 1; where the condition holds,
//           neither changes a value

#include "rewrite/internal.h"

// The indices that an `array` counts, and how many there are.
typedef struct CountedIn {
    const Expr *array;
    const struct CountedIn *outer;
} CountedIn;

static bool is_counted(const Rewrite *rw, const CountedIn *c, const Expr *index,
                       const Arith *len)
{
    for (; c; c = c->outer)
        for (int i = 0; i < c->array->fun->nparam; i++)
            if (expr_is_use(index, c->array->fun->params[i]))
                return arith_le(rw->ir->arith, c->array->num[i], len);
    return false;
}

static bool is_known(const Expr *number)
{
    return number->kind == E_NUM || number->kind == E_LITERAL;
}

// As inside_of makes it, or who wrote the program did.
static bool is_inside(const Rewrite *rw, const Expr *index, const Arith *len)
{
    const Expr *low = expr_is_op(index, OP_MINIMUM) ? index->arg[0] : NULL;
    return low && expr_is_op(low, OP_MAXIMUM) && low->arg[1]->kind == E_NUM &&
           arith_nonneg(rw->ir->arith, low->arg[1]->num[0]) &&
           index->arg[1]->kind == E_NUM &&
           arith_lt(rw->ir->arith, index->arg[1]->num[0], len);
}

// As not_zero makes it.
static bool is_not_zero(const Expr *divisor)
{
    return divisor->kind == E_LET && expr_is_op(divisor->arg[1], OP_SELECT) &&
           expr_is_op(divisor->arg[1]->arg[0], OP_EQ);
}

static Expr *inside_of(Rewrite *rw, Expr *index, const Arith *len)
{
    const Arith *last = arith_addc(rw->ir->arith, len, -1);
    Expr *low = make_op(rw, OP_MAXIMUM, index, expr_num(rw->ir, num(rw, 0)));
    return make_op(rw, OP_MINIMUM, low, expr_num(rw->ir, last));
}

static Expr *not_zero(Rewrite *rw, Expr *divisor)
{
    const Type *type = divisor->type;
    Param *by = fresh(rw, "by");
    Expr *is = make_op(rw, OP_EQ, use(rw, by), literal_of(rw, type, 0));
    return expr_let(rw->ir, by, divisor,
                    expr_op(rw->ir, OP_SELECT, is, literal_of(rw, type, 1), use(rw, by)));
}

static bool divides_ints(const Expr *expr)
{
    return expr->kind == E_OP && (expr->op == OP_DIV || expr->op == OP_MOD) &&
           expr->type->kind == T_SCALAR && type_is_integer(expr->type) &&
           !is_known(expr->arg[1]) && !is_not_zero(expr->arg[1]);
}

static bool is_division(const Expr *expr, const void *none)
{
    const Function *fun = expr->kind == E_CALL ? expr->callee : NULL;
    return divides_ints(expr) ||
           (fun && fun->body && expr_find(fun->body, is_division, NULL));
}

// Changes the expression; false: there was nothing to change. Guarded: on a side of a
// condition; fold: in a fold there.
static bool make_safe(Rewrite *rw, Expr *expr, bool guarded, bool fold,
                      const CountedIn *counted)
{
    bool changed = false;
    fold |=
        guarded && expr->kind == E_PATTERN && pattern_info[expr->pattern].group != G_VIEW;
    if (fold && expr->kind == E_CALL && is_division(expr, NULL)) {
        const Function *fun = expr->callee; // which divides
        const Expr *const *arg = (const Expr *const *)expr->arg;
        *expr = *expr_replace_all(rw->ir, fun->body, fun->params, arg, fun->nparam);
        changed = true;
    }
    const Arith *len = fold && expr->narg ? expr->arg[0]->type->len : NULL;
    const bool at = fold && expr->kind == E_AT && !is_known(expr->arg[1]) &&
                    !is_inside(rw, expr->arg[1], len) &&
                    !is_counted(rw, counted, expr->arg[1], len);
    const bool by = fold && divides_ints(expr);
    const bool gathers =
        fold && expr_is(expr, P_GATHER) && !is_inside(rw, expr->fun->arg[0], len);
    for (int i = 0; i < expr->narg; i++) {
        const bool side = expr_guards(expr, i);
        changed |= make_safe(rw, expr->arg[i], guarded || side, fold && !side, counted);
    }
    CountedIn own = {expr, counted};
    if (expr->fun)
        changed |= make_safe(rw, expr->fun, guarded, fold,
                             expr_is(expr, P_ARRAY) ? &own : counted);
    if (at)
        expr->arg[1] = inside_of(rw, expr->arg[1], len);
    if (by)
        expr->arg[1] = not_zero(rw, expr->arg[1]);
    if (gathers)
        expr->fun->arg[0] = inside_of(rw, expr->fun->arg[0], len);
    return changed || at || by || gathers;
}

static bool is_condition(const Expr *expr, const void *none)
{
    return expr_guards(expr, 1);
}

Expr *rule_safeFold(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Expr *safe = expr_find(at, is_condition, NULL) ? copy_of(rw, at) : NULL;
    return safe && make_safe(rw, safe, false, false, NULL) ? safe : NULL;
}
