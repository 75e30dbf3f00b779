// SPDX-License-Identifier: Apache-2.0
//
// Scripts of calls as problems: with its sizes a script is a program (fuse/program.c),
// which is bound to T, the number of instances, and all that follows is a program's.

#include "problem/problem.h"

static const Binding *instances(const Problem *problem, Diags *diags)
{
    const Binding *count = binding_find(problem->binding, problem->nbinding, "T");
    if (!count)
        diag_error(diags, span_none, "F031",
                   "size T has no value: give the number of instances, -s T=N");
    else if (count->value == 0)
        diag_error(diags, span_none, "F032",
                   "T is 0: with no instances there is nothing to launch or time");
    else if (count->value < 0 || count->value > INT32_MAX / 2)
        diag_error(diags, span_none, "F032", "T must be from 1 to %d, not %lld",
                   INT32_MAX / 2, (long long)count->value);
    else
        return count;
    return NULL;
}

// The text of the program, which the problem keeps.
static const Source *as_program(Problem *problem, Diags *diags)
{
    bool ok;
    script_free(problem->script);
    problem->script = script_parse(problem->source.name, problem->source.text,
                                   problem->binding, problem->nbinding, diags, &ok);
    if (!ok)
        return NULL;
    Buf text = buf_new();
    script_print(&text, problem->script);
    Source *source = NEW(problem->arena, Source);
    size_t len = text.len;
    *source = (Source){problem->source.name, buf_keep(&text, problem->arena), len};
    return source;
}

bool script_bind(Problem *problem, Diags *diags)
{
    const Source *source = as_program(problem, diags);
    const Binding *count = source ? instances(problem, diags) : NULL;
    Program *program = count ? ir_parse(problem->ir, source, diags) : NULL;
    if (!program || !ir_infer(program, diags))
        return false;
    problem->program = program;
    problem->bound = problem->general = ir_bind(program, count, 1, diags);
    return problem->bound != NULL;
}
