// SPDX-License-Identifier: Apache-2.0
//
// Values as the buffers of a rig: one a plane, in the order of a unit's buffers.

#include "plan/plan.h"

// Relative to the value or to a tenth of the mean one: sums of a few thousand floats in
// another order differ by up to a few 1e-5.
static const double TOLERANCE = 1e-4;
// Half: where the machine has no such arithmetic, compilers round once an expression and
// not once an operation, which differs by a unit (2^-11) for each term that cancels.
static const double TOLERANCE_HALF = 8 / 2048.0;

static const void *packed(const Value *value, int plane, Arena *arena)
{
    Scalar scalar = value->scalar[plane];
    int64_t n = value->count[plane];
    void *bytes = arena_alloc(arena, (size_t)n * scalar_device_bytes(scalar));
    scalar_pack(scalar, value->plane[plane], n, bytes);
    return bytes;
}

static RigBuffer output_buffer(const Problem *problem, const Type *plane)
{
    const Type *scalar = plane;
    while (scalar->kind == T_ARRAY)
        scalar = scalar->elem;
    RigBuffer buffer = {.name = "out", .scalar = scalar->scalar};
    arith_is_const(type_count(problem->ir->arith, plane), &buffer.count);
    return buffer;
}

ProblemData *data_new(const Problem *problem, Value **inputs, Arena *arena)
{
    const Function *main = problem->bound->main;
    ProblemData *data = NEW(arena, ProblemData);
    data->input = inputs;
    for (int i = 0; i < main->nparam; i++)
        data->ninput += inputs[i]->nplane;
    const Type *plane[PLANES_MOST];
    data->noutput =
        MIN(type_planes(arena, main->body->type, plane, PLANES_MOST), PLANES_MOST);
    data->buffer = NEW_ARRAY(arena, RigBuffer, data->ninput + data->noutput);
    data->nbuffer = data->ninput + data->noutput;
    int *output = NEW_ARRAY(arena, int, MAX(data->noutput, 1));
    for (int k = 0; k < data->noutput; k++)
        output[k] = data->ninput + k;
    data->output = output;
    RigBuffer *at = data->buffer;
    for (int i = 0; i < main->nparam; i++)
        for (int k = 0; k < inputs[i]->nplane; k++, at++) {
            *at = (RigBuffer){.name = main->params[i]->name,
                              .scalar = inputs[i]->scalar[k],
                              .count = inputs[i]->count[k],
                              .init = packed(inputs[i], k, arena)};
        }
    for (int k = 0; k < data->noutput; k++)
        *at++ = output_buffer(problem, plane[k]);
    data->tolerance = TOLERANCE;
    for (int k = 0; k < data->noutput; k++)
        if (data->buffer[data->ninput + k].scalar == S_HALF)
            data->tolerance = TOLERANCE_HALF;
    return data;
}

void data_expect(ProblemData *data, Value *expect, Arena *arena)
{
    data->expect = expect;
    for (int k = 0; k < data->noutput; k++)
        data->buffer[data->ninput + k].expect = packed(expect, k, arena);
}
