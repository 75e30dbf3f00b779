// SPDX-License-Identifier: Apache-2.0
//
// The arrays of a program as the buffers of a rig, in the device's layout: one a plane, in
// the order of a unit's buffers. Values, which hold a double a scalar, are made of them
// only for the interpreter: 16384 x 16384 floats would be 2 GB, which take longer to get
// than to fill.

#include "problem/problem.h"

// Relative to the value or to a tenth of the mean one: sums of a few thousand floats in
// another order differ by up to a few 1e-5.
static const double TOLERANCE = 1e-4;
// Half: where the machine has no such arithmetic, compilers round once an expression and
// not once an operation, which differs by a unit (2^-11) for each term that cancels.
static const double TOLERANCE_HALF = 8 / 2048.0;

enum { CHUNK = 4096 }; // random scalars at a time

// One a plane; returns how many.
static int add_buffers(const Problem *problem, const char *name, const Type *type,
                       Arena *arena, RigBuffer *buffer)
{
    const Type *plane[PLANES_MOST];
    int n = MIN(type_planes(arena, type, plane, PLANES_MOST), PLANES_MOST);
    for (int k = 0; k < n; k++) {
        const Type *scalar = plane[k];
        while (scalar->kind == T_ARRAY)
            scalar = scalar->elem;
        buffer[k] = (RigBuffer){.name = name, .scalar = scalar->scalar};
        arith_is_const(type_count(problem->ir->arith, plane[k]), &buffer[k].count);
    }
    return n;
}

// With inputs that are still to be filled.
static ProblemData *make_data(const Problem *problem, Arena *arena)
{
    const Function *main = problem->bound->main;
    ProblemData *data = NEW(arena, ProblemData);
    data->buffer = NEW_ARRAY(arena, RigBuffer, (main->nparam + 1) * PLANES_MOST);
    for (int i = 0; i < main->nparam; i++)
        data->ninput += add_buffers(problem, main->params[i]->name, main->params[i]->type,
                                    arena, &data->buffer[data->ninput]);
    data->noutput =
        add_buffers(problem, "out", main->body->type, arena, &data->buffer[data->ninput]);
    data->nbuffer = data->ninput + data->noutput;
    for (int i = 0; i < data->ninput; i++)
        data->buffer[i].init = arena_raw(arena, rig_buffer_bytes(&data->buffer[i]));
    int *output = NEW_ARRAY(arena, int, MAX(data->noutput, 1));
    data->tolerance = TOLERANCE;
    for (int k = 0; k < data->noutput; k++) {
        output[k] = data->ninput + k;
        if (data->buffer[output[k]].scalar == S_HALF)
            data->tolerance = TOLERANCE_HALF;
    }
    data->output = output;
    return data;
}

void data_pack(const RigBuffer *buffer, const double *plane)
{
    scalar_pack(buffer->scalar, plane, buffer->count, (void *)(uintptr_t)buffer->init);
}

ProblemData *data_new(const Problem *problem, Value **inputs, Arena *arena)
{
    ProblemData *data = make_data(problem, arena);
    const RigBuffer *at = data->buffer;
    for (int i = 0; i < problem->bound->main->nparam; i++)
        for (int k = 0; k < inputs[i]->nplane; k++)
            data_pack(at++, inputs[i]->plane[k]);
    return data;
}

static void fill_random(const RigBuffer *buffer, Rng *rng)
{
    double chunk[CHUNK];
    size_t bytes = scalar_device_bytes(buffer->scalar);
    char *to = (char *)(uintptr_t)buffer->init;
    for (int64_t i = 0; i < buffer->count; i += CHUNK, to += CHUNK * bytes) {
        int64_t n = MIN(CHUNK, buffer->count - i);
        scalar_random(rng, buffer->scalar, chunk, n);
        scalar_pack(buffer->scalar, chunk, n, to);
    }
}

ProblemData *data_random(const Problem *problem, uint64_t seed, Arena *arena)
{
    const Function *main = problem->bound->main;
    ProblemData *data = make_data(problem, arena);
    const RigBuffer *at = data->buffer;
    const Type *plane[PLANES_MOST];
    for (int i = 0; i < main->nparam; i++) {
        Rng rng;
        rng_seed(&rng, hash_mix(seed, (uint64_t)i)); // as problem_inputs
        int n =
            MIN(type_planes(arena, main->params[i]->type, plane, PLANES_MOST), PLANES_MOST);
        for (int k = 0; k < n; k++)
            fill_random(at++, &rng);
    }
    return data;
}

Value **data_inputs(const Problem *problem, const ProblemData *data, Arena *arena)
{
    const Function *main = problem->bound->main;
    Value **input = NEW_ARRAY(arena, Value *, MAX(main->nparam, 1));
    const RigBuffer *at = data->buffer;
    for (int i = 0; i < main->nparam; i++) {
        input[i] = value_new(arena, main->params[i]->type);
        for (int k = 0; k < input[i]->nplane; k++, at++)
            scalar_unpack(at->scalar, at->init, at->count, input[i]->plane[k]);
    }
    return input;
}

void **data_outputs(const ProblemData *data, Arena *arena)
{
    void **out = NEW_ARRAY(arena, void *, data->nbuffer);
    for (int k = 0; k < data->noutput; k++)
        out[data->output[k]] =
            arena_raw(arena, rig_buffer_bytes(&data->buffer[data->output[k]]));
    return out;
}

void data_expect(ProblemData *data, const Value *expect, Arena *arena)
{
    for (int k = 0; k < data->noutput; k++) {
        RigBuffer *buffer = &data->buffer[data->ninput + k];
        void *bytes = arena_raw(arena, rig_buffer_bytes(buffer));
        scalar_pack(buffer->scalar, expect->plane[k], buffer->count, bytes);
        buffer->expect = bytes;
    }
}
