// SPDX-License-Identifier: Apache-2.0
//
// Which programs give the same bits at every point under --math strict.

#include "problem/problem.h"

static const char *exception_in(const Expr *e)
{
    Scalar scalar = e->type && e->type->kind == T_SCALAR ? e->type->scalar : S_FLOAT;
    const char *found = NULL;
    if (e->kind == E_OP && scalar_info[scalar].floating && !op_is_rounded(e->op))
        return op_info[e->op].text;
    if (scalar_is_short(scalar))
        return scalar_info[scalar].name;
    if (e->kind == E_CALL)
        found = e->callee->body ? exception_in(e->callee->body) : e->callee->name;
    for (int i = 0; i < e->narg && !found; i++)
        found = exception_in(e->arg[i]);
    return found || !e->fun ? found : exception_in(e->fun);
}

const char *strict_exception(const Problem *problem)
{
    return exception_in(problem->bound->main->body);
}

bool problem_is_strict(const Problem *problem)
{
    return problem->bound->math == MATH_STRICT && !strict_exception(problem);
}
