// SPDX-License-Identifier: Apache-2.0
//
// Recurrences, as `0.9 * y + x`, become prefixes that items can share: what an element does
// to the state is an affine map, and prefixes of such maps are compositions.
//
//   source  Kogge and Stone, IEEE Transactions on Computers, 1973; Blelloch 1990
//   method  Each component of the next state is read from the outside in as a sum: a
//           coefficient times each component of the state, and a rest. A sum of less
//           components or without a rest has NULL there. A map of n components is a tuple
//           of n * n coefficients, row by row, and n rests. A choice in which one side
//           forgets a floating state is left as it is: 0 times infinity is NaN.

#include "rewrite/internal.h"

enum { STATE_MOST = 2, MAP_MOST = STATE_MOST * STATE_MOST + STATE_MOST };
enum { LOOKS = 256, LOOKS_OF_COPY = 32 };

typedef struct {
    Rewrite *rw;
    const Param *state;
    Scalar scalar; // of all components
    int n;
    Expr *one;
    int looks; // as in choice.c
} Affine;

// Coefficients of the components, and the rest behind them.
typedef struct {
    Expr *at[STATE_MOST + 1];
} AffineSum;

static bool find_sum(Affine *a, Expr *expr, AffineSum *sum);

static Expr *times(const Affine *a, Expr *x, Expr *y)
{
    return x == a->one ? y : y == a->one ? x : make_op(a->rw, OP_MUL, x, y);
}

// Where row i of a map has coefficient j; j = n: its rest.
static int place_in_map(int n, int i, int j)
{
    return j < n ? i * n + j : n * n + i;
}

static Expr *part_of(const Affine *a, Param *map, int i, int j)
{
    return get_of(a->rw, map, place_in_map(a->n, i, j));
}

static Expr *plus(const Affine *a, Expr *x, Expr *y)
{
    return !x ? y : !y ? x : make_op(a->rw, OP_ADD, x, y);
}

static bool sum_of_copy(Affine *a, const Expr *of, Param *const *name, Expr *const *arg,
                        int n, AffineSum *sum)
{
    const Expr *const *value = (const Expr *const *)arg;
    a->looks -= LOOKS_OF_COPY;
    return of &&
           find_sum(a, expr_project(expr_replace_all(a->rw->ir, of, name, value, n)), sum);
}

// Each part of a sum by an operation with something that has no state.
static bool scaled(const Affine *a, Op op, Expr *by, AffineSum *sum)
{
    for (int i = 0; i <= a->n; i++)
        if (sum->at[i])
            sum->at[i] = op == OP_MUL ? times(a, sum->at[i], by)
                                      : make_op(a->rw, op, sum->at[i], by);
    return true;
}

static bool chosen(const Affine *a, Expr *test, AffineSum *sum, const AffineSum *other)
{
    Expr *zero = literal_of(a->rw, type_scalar(a->scalar), 0);
    for (int i = 0; i <= a->n; i++) {
        Expr *x = sum->at[i], *y = other->at[i];
        if (!x != !y && i < a->n && scalar_info[a->scalar].floating)
            return false;
        if (x != y)
            sum->at[i] = expr_op(a->rw->ir, OP_SELECT, test, x ? x : zero, y ? y : zero);
    }
    return true;
}

static bool sum_of_op(Affine *a, Expr *op, AffineSum *sum)
{
    Expr **arg = op->arg;
    const bool state[] = {expr_mentions(arg[0], a->state),
                          op->narg > 1 && expr_mentions(arg[1], a->state)};
    AffineSum other;
    switch ((int)op->op) {
    case OP_NEG: return find_sum(a, arg[0], sum) && scaled(a, OP_NEG, NULL, sum);
    case OP_MUL:
        return state[0] != state[1] && find_sum(a, arg[state[1]], sum) &&
               scaled(a, OP_MUL, start_value(a->rw, arg[state[0]]), sum);
    case OP_DIV:
        return !state[1] && scalar_info[a->scalar].floating && find_sum(a, arg[0], sum) &&
               scaled(a, OP_DIV, start_value(a->rw, arg[1]), sum);
    case OP_SELECT:
        return !state[0] && find_sum(a, arg[1], sum) && find_sum(a, arg[2], &other) &&
               chosen(a, arg[0], sum, &other);
    case OP_ADD:
    case OP_SUB:
        if (!find_sum(a, arg[0], sum) || !find_sum(a, arg[1], &other))
            return false;
        if (op->op == OP_SUB)
            scaled(a, OP_NEG, NULL, &other);
        for (int i = 0; i <= a->n; i++)
            sum->at[i] = plus(a, sum->at[i], other.at[i]);
        return true;
    }
    return false;
}

static bool find_sum(Affine *a, Expr *expr, AffineSum *sum)
{
    const int i = element_component(expr, a->state) + (a->n == 1); // -1: the state itself
    *sum = (AffineSum){{NULL}};
    if (a->looks-- <= 0)
        return false;
    if (i >= 0 && i < a->n) {
        sum->at[i] = a->one;
        return true;
    }
    if (!expr_mentions(expr, a->state)) {
        sum->at[a->n] = start_value(a->rw, expr);
        return true;
    }
    if (expr->kind == E_LET)
        return sum_of_copy(a, expr->arg[1], &expr->param, expr->arg, 1, sum);
    if (expr->kind == E_CALL)
        return sum_of_copy(a, expr->callee->body, expr->callee->params, expr->arg,
                           expr->narg, sum);
    return expr->kind == E_OP && sum_of_op(a, expr, sum);
}

// The map of an element, as a tuple; NULL: it is none.
static Expr *map_of_element(Affine *a, Expr *body)
{
    Expr *item[MAP_MOST];
    const int n = a->n;
    for (; n > 1 && body->kind == E_LET && a->looks > 0; a->looks -= LOOKS_OF_COPY)
        body =
            expr_project(expr_replace(a->rw->ir, body->arg[1], body->param, body->arg[0]));
    if (n > 1 && body->kind != E_TUPLE)
        return NULL;
    for (int i = 0; i < n; i++) {
        AffineSum sum;
        if (!find_sum(a, n > 1 ? body->arg[i] : body, &sum))
            return NULL;
        for (int j = 0; j <= n; j++)
            item[place_in_map(n, i, j)] =
                sum.at[j] ? sum.at[j] : literal_of(a->rw, type_scalar(a->scalar), 0);
    }
    return expr_tuple(a->rw->ir, item, n * n + n);
}

// Row i of what a map does with column j of another one, or with its rests where j is n.
static Expr *row_times(const Affine *a, Param *map, int i, Expr *const *column)
{
    Expr *sum = NULL;
    for (int k = 0; k < a->n; k++)
        sum = plus(a, sum, times(a, part_of(a, map, i, k), column[k]));
    return sum;
}

// f, and then g.
static Expr *composed(const Affine *a)
{
    Param *f = fresh(a->rw, "f"), *g = fresh(a->rw, "g");
    Expr *item[MAP_MOST], *column[STATE_MOST];
    const int n = a->n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= n; j++) {
            for (int k = 0; k < n; k++)
                column[k] = part_of(a, f, k, j);
            Expr *sum = row_times(a, g, i, column);
            item[place_in_map(n, i, j)] = j < n ? sum : plus(a, sum, part_of(a, g, i, n));
        }
    return expr_lambda(a->rw->ir, (Param *[]){f, g}, 2,
                       expr_tuple(a->rw->ir, item, n * n + n));
}

static Expr *identity(const Affine *a)
{
    Expr *item[MAP_MOST];
    for (int i = 0; i < a->n * a->n + a->n; i++)
        item[i] = literal_of(a->rw, type_scalar(a->scalar),
                             i < a->n * a->n && i % (a->n + 1) == 0);
    return expr_tuple(a->rw->ir, item, a->n * a->n + a->n);
}

// What a map makes of the first state.
static Expr *applied(const Affine *a, const Expr *start)
{
    Param *t = fresh(a->rw, "t");
    Expr *item[STATE_MOST], *z[STATE_MOST];
    bool zero = true;
    for (int i = 0; i < a->n; i++) {
        const Expr *part = start->kind == E_TUPLE ? start->arg[i] : start;
        double number;
        zero &= is_number(part, &number) && number == 0;
        z[i] = start_part(a->rw, start, i);
    }
    for (int i = 0; i < a->n; i++)
        item[i] = plus(a, zero ? NULL : row_times(a, t, i, z), part_of(a, t, i, a->n));
    return make_lambda(a->rw, t, all_parts(a->rw, item, a->n));
}

// How many numbers a state has, if they are of one type; 0: they are not, or are short.
static int state_of(const Type *type, Scalar *scalar)
{
    enum { WORD = 4 };
    const Type *first = type->kind == T_TUPLE ? type->item[0] : type;
    bool same = first->kind == T_SCALAR && scalar_info[first->scalar].bytes >= WORD;
    for (int i = 0; type->kind == T_TUPLE && i < type->n && same; i++)
        same = type->item[i]->kind == T_SCALAR && type->item[i]->scalar == first->scalar;
    const int n = type->kind == T_TUPLE ? type->n : 1;
    *scalar = same ? first->scalar : S_FLOAT;
    return same && n <= STATE_MOST ? n : 0;
}

Expr *rule_scanAffine(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Scalar scalar;
    const int n = is_dims(at, P_SCAN, 1) ? state_of(at->type->elem, &scalar) : 0;
    if (!n || adds_up_others(at->fun) || folds_by_parts(at) ||
        expr_find(at->arg[0], is_nest, NULL) || expr_find(at->fun, is_nest, NULL) ||
        !expr_mentions(at->fun->arg[0], at->fun->params[0]))
        return NULL;
    Expr *one = literal_of(rw, type_scalar(scalar), 1);
    Affine a = {rw, at->fun->params[0], scalar, n, one, LOOKS};
    Expr *element = map_of_element(&a, at->fun->arg[0]);
    if (!element)
        return NULL;
    Expr *maps = map_by(rw, 1, at->fun->params[1], element, at->arg[1]);
    Expr *prefixes = make_reduce(rw, P_SCAN, composed(&a), identity(&a), maps);
    know_parts(rw, prefixes);
    return copy_of(rw, make_map(rw, 1, applied(&a, at->arg[0]), prefixes));
}
