// SPDX-License-Identifier: Apache-2.0
//
// What any kernel of a problem must do: bytes and operations, counted in the program.
//
//   method  a walk over the expression with the number of elements each function is applied
//           to, from the lengths in the types
//
// An element that several windows read is counted once, because a kernel need not compute
// it again, and so is what windows fold along the same axis, unless the order of folds
// shows; nothing is saved for equal subexpressions or by other algebra.

#include "problem/problem.h"

#include <math.h>

// What is bound around an expression.
typedef struct Level Level;
struct Level {
    const Expr *by;  // a lambda, or a let
    const Expr *map; // of a lambda: the pattern that it belongs to
    const Level *outer;
    int depth;              // of lambdas around it, itself one
    double times;           // how often the lambda around it is called
    double calls[DIMS_MAX]; // of a lambda: how often it is called for each of those
    const Level *of;        // of a let: the innermost lambda that its value depends on,
    unsigned params;        // by these parameters
};

typedef struct {
    const Problem *problem;
    Work *work;
    const Level *level;     // NULL: nothing is bound
    const Expr *sum, *term; // of the fold around, if it adds up products
} Counter;

static void count_expr(Counter *c, const Expr *expr, double times);

static bool is_product(const Expr *expr)
{
    return expr->op == OP_MUL && expr->arg[0]->kind != E_LITERAL &&
           expr->arg[0]->kind != E_NUM && expr->arg[1]->kind != E_LITERAL &&
           expr->arg[1]->kind != E_NUM;
}

// The sum that a fold does, and the product that it adds each time, if there is one.
static void find_term(const Expr *fold, const Expr **sum, const Expr **term)
{
    const Expr *body = fold->fun->arg[0], *last = fold->arg[1];
    *sum = *term = NULL;
    if (!expr_is_op(body, OP_ADD))
        return;
    const bool first = expr_is_use(body->arg[0], fold->fun->params[0]);
    const Expr *e = body->arg[first];
    if (expr_is_use(e, fold->fun->params[1]) && last->kind == E_PATTERN && last->fun)
        e = last->fun->arg[0];
    while (e->kind == E_LET)
        e = e->arg[1];
    if (expr_is_op(e, OP_MUL))
        *sum = body, *term = e;
}

// A product of floats that were halfs is one of halfs, which adds up floats.
static Scalar factor_type(const Expr *e)
{
    const Scalar from = expr_converted(e);
    return scalar_is_short(from) ? from : e->type->scalar;
}

// The type whose matrix units may do the product; S_BOOL: there are none.
static Scalar unit_type(const Counter *c, const Expr *product)
{
    static const Scalar scalar[] = {S_HALF, S_BF16, S_DOUBLE, S_FLOAT};
    const Scalar from[] = {factor_type(product->arg[0]), factor_type(product->arg[1])};
    const bool fast = c->problem->bound->math == MATH_FAST;
    for (int i = 0; i < COUNTOF(scalar) - !fast; i++)
        if (from[0] == scalar[i] || from[1] == scalar[i])
            return scalar[i];
    return S_BOOL;
}

static void count_op(Counter *c, const Expr *expr, double times)
{
    const Type *type = expr->type;
    const OpInfo *op = &op_info[expr->op];
    if (op->kind != OPK_FREE)
        c->work->ops += times * (expr->op == OP_FMA ? 2 : 1) * MAX(type->width, 1);
    if (!type_is_float(type) && is_product(expr))
        c->work->int_ops += 2 * times * MAX(type->width, 1);
    if (!type_is_float(type) || op->kind == OPK_FREE || op->types == TY_SELECT ||
        op->types == TY_CAST)
        return;
    double flops = times * (expr->op == OP_FMA ? 2 : 1) * MAX(type->width, 1);
    const Scalar unit = expr == c->sum || expr == c->term ? unit_type(c, c->term) : S_BOOL;
    if (unit != S_BOOL)
        c->work->products[unit] += flops;
    else if (type->scalar == S_DOUBLE)
        c->work->double_flops += flops;
    else
        c->work->float_flops += type->scalar == S_HALF ? flops / 2 : flops;
}

// How often the function of a pattern is applied.
static double applications(Counter *c, const Expr *expr)
{
    const Type *over = expr->pattern == P_ARRAY ? expr->type
                       : expr->narg             ? expr->arg[expr->narg - 1]->type
                                                : NULL;
    double times = 1;
    if (expr->pattern == P_ITERATE) { // a loop that ends by itself may do so at once
        const int64_t steps = problem_number(c->problem, expr->num[0]);
        return (double)(repeat_ends(expr) ? MIN(steps, 1) : steps);
    }
    if (expr->pattern == P_MAPSLIDE)
        return (double)problem_number(c->problem, expr->type->len);
    for (int k = 0; k < expr->dims && over && over->kind == T_ARRAY; k++) {
        times *= (double)problem_number(c->problem, over->len);
        over = over->elem;
    }
    return times;
}

static void count_function(Counter *c, const Function *function, double times)
{
    const double flops = times * function->flops;
    Work *work = c->work;
    if (function->body) {
        count_expr(c, function->body, times);
        return;
    }
    work->ops += flops;
    *(function->result->scalar == S_DOUBLE ? &work->double_flops : &work->float_flops) +=
        flops;
}

static unsigned mentioned(const Expr *expr, const Expr *lambda)
{
    unsigned params = 0;
    for (int i = 0; i < lambda->nparam; i++)
        params |= (unsigned)expr_mentions(expr, lambda->params[i]) << i;
    return params;
}

// The innermost lambda that an expression depends on, and by which of its parameters; what
// a let names depends on what its value does. NULL: it is the same everywhere.
static const Level *depends_on(const Counter *c, const Expr *expr, unsigned *params)
{
    const Level *found = NULL;
    *params = 0;
    for (const Level *level = c->level; level; level = level->outer) {
        bool let = level->by->kind == E_LET;
        if (let && !expr_mentions(expr, level->by->param))
            continue;
        const Level *of = let ? level->of : level;
        unsigned by = let ? level->params : mentioned(expr, level->by);
        if (!of || !by || (found && of->depth < found->depth))
            continue;
        *params = found == of ? *params | by : by;
        found = of;
    }
    return found;
}

// How often a fold must be computed: once for each value of what it depends on, however
// deep in other functions it stands.
static double times_of_fold(const Counter *c, const Expr *fold, double times)
{
    unsigned params;
    if (!c->level)
        return times;
    const Level *of = depends_on(c, fold, &params);
    double count = of ? of->times : 1;
    for (int i = 0; of && i < MIN(of->by->nparam, DIMS_MAX); i++)
        count *= params >> i & 1 ? of->calls[i] : 1;
    return count;
}

// The share of a fold's elements that no other window has folded.
static double share_of_fold(const Counter *c, const Expr *fold)
{
    const Program *program = c->problem->bound;
    double share = 1;
    for (const Level *level = c->level; level; level = level->outer)
        if (level->map && !(program->math == MATH_STRICT && order_shows(fold)))
            share = fmin(share, fold_share(level->map, fold));
    return share;
}

static void count_lambda(Counter *c, const Expr *expr, double times)
{
    const Level *outer = c->level;
    const Expr *fun = expr->fun;
    const double calls = applications(c, expr);
    Level level = {.by = fun,
                   .map = expr,
                   .outer = outer,
                   .depth = outer ? outer->depth + 1 : 1,
                   .times = times,
                   .calls = {1, 1, 1}};
    const Type *over = expr->type;
    bool by_index = expr->pattern == P_ARRAY && fun->nparam == expr->dims;
    for (int i = 0; by_index && i < fun->nparam; i++, over = over->elem)
        level.calls[i] = (double)problem_number(c->problem, over->len);
    // Whatever else it is called with comes as one.
    level.times = by_index ? times : times * calls;
    c->level = &level;
    count_expr(c, fun->arg[0], times * calls);
    c->level = outer;
}

static void count_let(Counter *c, const Expr *let, double times)
{
    const Level *outer = c->level;
    Level level = {.by = let, .outer = outer, .depth = outer ? outer->depth : 0};
    level.of = depends_on(c, let->arg[0], &level.params);
    c->level = &level;
    count_expr(c, let->arg[1], times);
    c->level = outer;
}

static void count_expr(Counter *c, const Expr *expr, double times)
{
    const Expr *sum = c->sum, *term = c->term;
    if (fold_is_long(expr, 0)) {
        find_term(expr, &c->sum, &c->term);
        times = times_of_fold(c, expr, times) * share_of_fold(c, expr);
    }
    if (expr->kind == E_OP && expr->type)
        count_op(c, expr, times);
    if (expr->kind == E_CALL)
        count_function(c, expr->callee, times);
    if (expr->kind == E_PATTERN && expr->fun)
        count_lambda(c, expr, times);
    for (int i = 0; i < expr->narg; i++)
        if (expr->kind == E_LET && i == 1)
            count_let(c, expr, times);
        else
            count_expr(c, expr->arg[i], times);
    c->sum = sum, c->term = term;
}

double work_flops(const Work *work)
{
    double flops = work->float_flops + work->double_flops;
    for (int i = 0; i < SCALARS; i++)
        flops += work->products[i];
    return flops;
}

Work problem_work(const Problem *problem)
{
    Work work = {.bytes = problem_bytes(problem)};
    Counter counter = {.problem = problem, .work = &work};
    if (problem->kind->flops)
        work.float_flops = work.ops = problem->kind->flops(problem);
    if (problem->bound) // of a template's operations nothing is known
        count_expr(&counter, problem->bound->main->body, 1);
    return work;
}
