// SPDX-License-Identifier: Apache-2.0
//
// What the interpreter refuses: an index outside its array, a scatter that is no
// permutation, a division by zero. `check` tells what is refused of all inputs that it
// tries: at the same place, with the same numbers, for inputs drawn twice and for integers
// that are all one number. It does not look at sizes that would keep a reader waiting.

#include "problem/problem.h"

#include <string.h>

enum { CHECK_QUOTA = 2000000 };

const Diag *refused_as_wrong(const Diags *said)
{
    static const char *const wrong[] = {"R001", "R002", "R003"};
    for (int i = 0; said->list.len && i < COUNTOF(wrong); i++)
        if (strcmp(said->list.at[0].code, wrong[i]) == 0)
            return &said->list.at[0];
    return NULL;
}

bool said_beyond(const Diags *said)
{
    return said->list.len && strcmp(said->list.at[0].code, "R008") == 0;
}

static bool calls_text(const Expr *e, const void *none)
{
    return e->kind == E_CALL && !e->callee->body;
}

const Expr *calls_opaque(const Problem *problem)
{
    return expr_find(problem->bound->main->body, calls_text, NULL);
}

static void fill_integers(Value *value, double number)
{
    for (int k = 0; k < value->nplane; k++)
        for (int64_t i = 0; scalar_info[value->scalar[k]].integer && i < value->count[k];
             i++)
            value->plane[k][i] = number;
}

// What it says of inputs drawn with the seed; of integers that are `number`, if that is
// one.
static const Diag *refusal(const Problem *problem, uint64_t seed, double number,
                           Arena *arena)
{
    Diags said = {.arena = arena};
    Value **inputs = problem_inputs(problem, seed, arena), *result;
    for (int i = 0; number >= 0 && i < problem->bound->main->nparam; i++)
        fill_integers(inputs[i], number);
    bool ok = ir_eval(problem->bound, inputs, arena, &result, CHECK_QUOTA, &said);
    return ok ? NULL : refused_as_wrong(&said);
}

bool problem_never_refused(const Problem *problem, Diags *diags)
{
    static const double numbers[] = {-1, -1, 0, 1, 5};
    Work work = problem_work(problem);
    if (work.ops + work.bytes > CHECK_QUOTA)
        return true;
    AutoArena *arena = arena_new();
    const Diag *first = refusal(problem, 1, -1, arena);
    bool always = first;
    for (int i = 1; always && i < COUNTOF(numbers); i++) {
        const Diag *other = refusal(problem, 1 + (uint64_t)i, numbers[i], arena);
        always = other && other->span.start == first->span.start &&
                 strcmp(other->message, first->message) == 0;
    }
    if (always)
        diag_error(diags, first->span, first->code, "%s, for all inputs that were tried",
                   first->message);
    return !always;
}
