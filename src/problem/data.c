// SPDX-License-Identifier: Apache-2.0
//
// The arrays of a program as the buffers of a rig, in the device's layout: one a plane, in
// the order of a unit's buffers. Values, which hold a double a scalar, are made of them
// only for the interpreter: 16384 x 16384 floats would be 2 GB, which take longer to get
// than to fill.

#include "problem/problem.h"

#include <math.h>

// Relative to the value or to a tenth of the mean one: sums of a few thousand floats in
// another order differ by up to a few 1e-5.
static const double TOLERANCE = 1e-4;
// Of narrow types 8 units of the last place: where the machine has no such arithmetic,
// compilers round once an expression and not once an operation, which differs by a unit for
// each term that cancels.
static double tolerance_of(Scalar scalar)
{
    const ScalarInfo *info = &scalar_info[scalar];
    return info->floating && info->bytes == 2 ? ldexp(8, -info->digits) : TOLERANCE;
}

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
        data->tolerance =
            fmax(data->tolerance, tolerance_of(data->buffer[output[k]].scalar));
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

// Further inputs -------------------------------------------------------------------------

// A float that is made an int is perhaps an index, and what an opaque function does with
// its argument is not known.
static bool is_tame(const Expr *e)
{
    bool taken =
        e->kind == E_OP && e->op == OP_INT && scalar_info[e->arg[0]->type->scalar].floating;
    if (taken || (e->kind == E_CALL && (!e->callee->body || is_tame(e->callee->body))))
        return true;
    for (int i = 0; i < e->narg; i++)
        if (is_tame(e->arg[i]))
            return true;
    return e->fun && is_tame(e->fun);
}

static bool decides(const Expr *e)
{
    if ((e->kind == E_OP && (e->op == OP_SELECT || op_info[e->op].types == TY_COMP)) ||
        (e->kind == E_CALL && e->callee->body && decides(e->callee->body)))
        return true;
    for (int i = 0; i < e->narg; i++)
        if (decides(e->arg[i]))
            return true;
    return e->fun && decides(e->fun);
}

// A fold that compares is not associative where one side is not a number.
static bool folds_decide(const Expr *e)
{
    bool folds = e->kind == E_PATTERN && (e->pattern == P_REDUCE || e->pattern == P_SCAN);
    if (folds && decides(e->fun))
        return true;
    for (int i = 0; i < e->narg; i++)
        if (folds_decide(e->arg[i]))
            return true;
    return e->fun && folds_decide(e->fun);
}

static double few_digits(Rng *rng, Scalar scalar)
{
    int most = scalar == S_HALF ? 8 : 16;
    return ((double)rng_below(rng, (uint64_t)(2 * most + 1)) - most) / 4;
}

static double any_scale(Rng *rng, Scalar scalar)
{
    int most = scalar == S_HALF ? 3 : 8, power = (int)rng_below(rng, 1 << 16);
    double sign = power & 1 << 15 ? -1 : 1, x = 0.5 + (double)rng_below(rng, 1024) / 1024;
    return power % 64 == 0 ? 0 : sign * ldexp(x, power / 64 % (2 * most + 1) - most);
}

enum { OFTEN = 2, RARELY = 4096, SPECIAL_FROM = 16 };

// n of them among the first `count` elements.
static void put_some(const RigBuffer *buffer, int64_t count, int64_t n, Rng *rng)
{
    static const double values[] = {NAN, INFINITY, NAN, -INFINITY, NAN, 0};
    size_t bytes = scalar_device_bytes(buffer->scalar);
    for (int64_t i = 0; i < n; i++)
        scalar_pack(buffer->scalar, &values[i % COUNTOF(values)], 1,
                    (char *)(uintptr_t)buffer->init +
                        rng_below(rng, (uint64_t)count) * bytes);
}

// So many in the first half that whatever a kernel does once meets some, and so few in the
// rest that folds of it stay numbers; of buffers that hold more than parameters.
static void put_special(const RigBuffer *buffer, Rng *rng)
{
    if (buffer->count < SPECIAL_FROM)
        return;
    put_some(buffer, buffer->count / 2, buffer->count / 2 / OFTEN, rng);
    put_some(buffer, buffer->count, 6 + buffer->count / RARELY, rng);
}

static void fill_more(const RigBuffer *buffer, MoreInputs set, Rng *rng)
{
    double chunk[CHUNK];
    size_t bytes = scalar_device_bytes(buffer->scalar);
    char *to = (char *)(uintptr_t)buffer->init;
    for (int64_t i = 0; i < buffer->count; i += CHUNK, to += CHUNK * bytes) {
        int64_t n = MIN(CHUNK, buffer->count - i);
        for (int64_t k = 0; k < n; k++)
            chunk[k] = set == MORE_SCALES ? any_scale(rng, buffer->scalar)
                                          : few_digits(rng, buffer->scalar);
        scalar_pack(buffer->scalar, chunk, n, to);
    }
    if (set == MORE_SPECIAL)
        put_special(buffer, rng);
}

ProblemData *data_more(const Problem *problem, MoreInputs set, uint64_t seed, Arena *arena)
{
    const Expr *body = problem->bound->main->body;
    seed = hash_mix(seed, 1001 + (uint64_t)set);
    bool finite = problem->bound->math == MATH_FAST || folds_decide(body);
    if (is_tame(body) || (set == MORE_SPECIAL && finite))
        return data_random(problem, seed, arena);
    ProblemData *data = data_random(problem, seed, arena);
    for (int i = 0; i < data->ninput; i++) {
        Rng rng;
        rng_seed(&rng, hash_mix(seed, (uint64_t)i));
        if (scalar_info[data->buffer[i].scalar].floating)
            fill_more(&data->buffer[i], set, &rng);
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
