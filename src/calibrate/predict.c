// SPDX-License-Identifier: Apache-2.0
//
// Programs with open sizes, for symbolic counts; see predict.h.

#include "calibrate/predict.h"

#include <string.h>

static bool counts_rounds(const Expr *e, const void *size)
{
    return e->kind == E_PATTERN && e->pattern == P_ITERATE &&
           arith_mentions(e->num[0], size);
}

bool problem_open(Problem *problem, const Binding *binding, int n, Diags *diags)
{
    Program *program = problem->program;
    Binding *bound = NEW_ARRAY(problem->arena, Binding, n + 1);
    int nbound = 0;
    for (int i = 0; i < n; i++)
        bound[nbound++] = binding[i];
    VEC_EACH_REF(SizeDecl *, size, &program->sizes) {
        bool rounds = false;
        for (int d = 0; d < program->defs.len; d++)
            rounds |=
                expr_find(program->defs.at[d]->body, counts_rounds, size->arith) != NULL;
        size->generic = !rounds;
        for (int k = 0; !rounds && k < nbound; k++)
            if (strcmp(bound[k].name, size->name) == 0)
                bound[k--] = bound[--nbound];
    }
    return problem_bind_open(problem, bound, nbound, diags);
}

int problem_sample(const Problem *problem, const Binding *binding, int n, Binding *out,
                   int max)
{
    int count = 0;
    for (int i = 0; i < problem->program->sizes.len && count < max; i++) {
        const char *name = problem->program->sizes.at[i].name;
        const Binding *given = binding_find(binding, n, name);
        SizeRange span = given ? binding_span(problem->program, given) : size_any;
        int64_t value = !given         ? OPEN_SAMPLE
                        : given->value ? given->value
                                       : size_at(&span, 0.5);
        out[count++] = (Binding){name, value};
    }
    return count;
}
