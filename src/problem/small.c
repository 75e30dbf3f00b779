// SPDX-License-Identifier: Apache-2.0
//
// The interpreter as a judge: what the outputs of a program are by the definition of the
// language, and a program at sizes so small that the interpreter has the answer in a
// moment.

#include "problem/pass.h"

#include <math.h>

// The least that the interpreter does: one operation for each element, of 8 bytes at most,
// and those that the program writes.
double interpret_least(const Problem *problem)
{
    Work work = problem_work(problem);
    return work.ops + work.bytes / sizeof(double);
}

// Integers that a double cannot hold, of 8 bytes.
static bool is_beyond(const RunnerBuffer *buffer)
{
    const ScalarInfo *info = &scalar_info[buffer->scalar];
    const uint64_t least = info->kind == SCALAR_SIGNED ? -(1ull << 53) : 0;
    const uint64_t *x = buffer->init;
    for (int64_t i = 0; info->integer && info->bytes == 8 && i < buffer->count; i++)
        if (x[i] - least > (1ull << 53) - least)
            return true;
    return false;
}

bool interpret(const Problem *problem, ProblemData *data, int64_t most, Arena *arena,
               Diags *said)
{
    Value *expect;
    AutoArena *scratch = arena_new();
    for (int k = 0; k < data->ninput; k++)
        if (is_beyond(&data->buffer[k]))
            return diag_error(said, span_none, "R008", "an input beyond 2^53");
    bool ok = ir_eval(problem->bound, data_inputs(problem, data, scratch), scratch, &expect,
                      most, said);
    if (ok)
        data_expect(data, expect, arena);
    return ok;
}

// Does it take more than that, as many steps over three dimensions do, or windows of
// hundreds of elements?
static bool is_large(const Problem *problem, double most)
{
    double volume = 1;
    for (int i = 0; i < problem->nbinding; i++)
        volume *= (double)problem->binding[i].value;
    return fmax(volume, interpret_least(problem)) > most;
}

static const char *first_said(const Diags *diags)
{
    return diags->list.len ? diags->list.at[0].message : "it said nothing";
}

Problem *problem_small(const Problem *problem, Arena *arena, ProblemData **data,
                       const char **why)
{
    // The first are its own. The third is for many steps over three dimensions, the fourth
    // for windows of windows, the next for arrays of 64 times a size. Those after the cheap
    // ones are for programs whose own lengths are hundreds, which then take seconds; the
    // others are for programs that need large sizes.
    enum { CHEAP = 6, SLOW = 8 };
    static const int64_t sizes[][2] = {
        {INT64_MAX, 1}, {40, 8}, {16, 8},  {112, 8},   {5, 2},       {2, 1},
        {5, 2},         {2, 1},  {64, 32}, {128, 128}, {1024, 1024}, {1 << 16, 1 << 16}};
    *why = "at small sizes it does more than the interpreter can do in a moment";
    for (int i = 0; i < COUNTOF(sizes); i++) {
        Diags quiet = {.arena = arena};
        const double most = i < CHEAP  ? INTERPRETER_QUOTA / 20
                            : i < SLOW ? INTERPRETER_QUOTA
                                       : INFINITY;
        Problem *small = problem_shrunk(problem, sizes[i][0], sizes[i][1], &quiet);
        if (!small)
            *why =
                arena_printf(arena, "it cannot have small sizes: %s", first_said(&quiet));
        if (!small || is_large(small, most)) {
            problem_free(small);
            continue;
        }
        *data = data_random(small, 1, arena);
        if (interpret(small, *data, INTERPRETER_QUOTA, arena, &quiet))
            return small;
        if (said_beyond(&quiet)) {
            *why = NULL;
            problem_free(small);
            return NULL;
        }
        if (refused_as_wrong(&quiet))
            *why = arena_printf(arena, "%s: %s", problem_label(small), first_said(&quiet));
        problem_free(small);
    }
    return NULL;
}
