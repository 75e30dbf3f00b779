// SPDX-License-Identifier: Apache-2.0
//
// What any kernel of a problem must do: bytes and operations, counted in the program.
//
//   method  a walk over the expression with the number of elements each function is applied
//           to, from the lengths in the types
//
// An element that several windows read is counted once, because a kernel need not compute
// it again; nothing is saved for equal subexpressions or by algebra.

#include "problem/problem.h"

// What is bound around an expression, and how often it is bound anew.
typedef struct Level Level;
struct Level {
    const Expr *by; // a lambda, or a let
    double times;
    const Level *outer;
};

typedef struct {
    const Problem *problem;
    Work *work;
    const Level *level; // NULL: nothing is bound
} Counter;

static void count_expr(Counter *c, const Expr *expr, double times);

static bool is_product(const Expr *expr)
{
    return expr->op == OP_MUL && expr->arg[0]->kind != E_LITERAL &&
           expr->arg[0]->kind != E_NUM && expr->arg[1]->kind != E_LITERAL &&
           expr->arg[1]->kind != E_NUM;
}

static void count_op(Counter *c, const Expr *expr, double times)
{
    const Type *type = expr->type;
    const OpInfo *op = &op_info[expr->op];
    if (!type_is_float(type) && is_product(expr))
        c->work->int_ops += 2 * times * MAX(type->width, 1);
    if (!type_is_float(type) || op->kind == OPK_FREE || op->types == TY_SELECT ||
        op->types == TY_CAST)
        return;
    double flops = times * (expr->op == OP_FMA ? 2 : 1) * MAX(type->width, 1);
    if (type->scalar == S_DOUBLE)
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
    if (expr->pattern == P_ITERATE)
        return (double)problem_number(c->problem, expr->num[0]);
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
    if (function->body)
        count_expr(c, function->body, times);
    else if (function->result->scalar == S_DOUBLE)
        c->work->double_flops += times * function->flops;
    else
        c->work->float_flops += times * function->flops;
}

static bool mentions_level(const Expr *expr, const Level *level)
{
    if (level->by->kind == E_LET)
        return expr_mentions(expr, level->by->param);
    for (int i = 0; i < level->by->nparam; i++)
        if (expr_mentions(expr, level->by->params[i]))
            return true;
    return false;
}

// How often a fold must be computed: once for each value of what it mentions, however deep
// in other functions it stands.
static double times_of_fold(const Counter *c, const Expr *fold, double times)
{
    if (!c->level)
        return times;
    for (const Level *level = c->level; level; level = level->outer)
        if (mentions_level(fold, level))
            return level->times;
    return 1;
}

static void count_within(Counter *c, const Expr *by, const Expr *expr, double times)
{
    const Level *outer = c->level;
    c->level = &(Level){by, times, outer};
    count_expr(c, expr, times);
    c->level = outer;
}

static void count_expr(Counter *c, const Expr *expr, double times)
{
    if (fold_is_long(expr, 0))
        times = times_of_fold(c, expr, times);
    if (expr->kind == E_OP && expr->type)
        count_op(c, expr, times);
    if (expr->kind == E_CALL)
        count_function(c, expr->callee, times);
    if (expr->kind == E_PATTERN && expr->fun)
        count_within(c, expr->fun, expr->fun->arg[0], times * applications(c, expr));
    for (int i = 0; i < expr->narg; i++)
        if (expr->kind == E_LET && i == 1)
            count_within(c, expr, expr->arg[i], times);
        else
            count_expr(c, expr->arg[i], times);
}

Work problem_work(const Problem *problem)
{
    Work work = {.bytes = problem_bytes(problem)};
    Counter counter = {problem, &work, NULL};
    if (problem->kind->flops)
        work.float_flops = problem->kind->flops(problem);
    if (problem->bound) // of a template's operations nothing is known
        count_expr(&counter, problem->bound->main->body, 1);
    return work;
}
