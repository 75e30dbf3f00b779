// SPDX-License-Identifier: Apache-2.0
//
// What the outputs must be. The interpreter is the meaning of the language; where it would
// take too long, the plain kernel printed as C stands in for it, after agreeing with it on
// small sizes.

#include "problem/problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Scalar operations the interpreter may spend, about 2 s, and the most outputs for which it
// is worth a try.
enum { INTERPRETER_QUOTA = 20000000, INTERPRETER_OUTPUTS = 2000000 };

// What cannot be done within its quota is not tried: that would cost as long.
static bool interpretable(const Problem *problem)
{
    int64_t outputs = 0;
    const Arith *count = type_count(problem->ir->arith, problem->bound->main->body->type);
    Work work = problem_work(problem);
    return arith_is_const(count, &outputs) && outputs <= INTERPRETER_OUTPUTS &&
           work.float_flops + work.double_flops <= INTERPRETER_QUOTA;
}

// Runs the plain point on the host device; its outputs are compared with what is expected,
// or, where nothing is yet, expected from then on. error: NULL, or how far they are from
// what is expected is wanted, and not whether that is too far.
static bool run_plain(const Problem *problem, ProblemData *data, const Workplace *place,
                      Arena *arena, double *error, Diags *diags)
{
    RigConfig config = {.device = "host",
                        .worker = place->worker,
                        .folder = place->folder,
                        .sandbox = place->sandbox,
                        .stop = place->stop,
                        .nbuffer = data->nbuffer,
                        .buffer = data->buffer,
                        .tolerance = error ? INFINITY : data->tolerance,
                        .build_limit_s = 60,
                        .run_limit_s = 120};
    Rig *rig = rig_open(&config, diags);
    if (!rig)
        return false;
    Derivation *derivation = derive_new(problem->bound, rig_device(rig), diags);
    Point plain;
    Buf prelude;
    buf_init(&prelude);
    const Target *target = target_find(rig_device(rig)->target);
    emit_prelude(&prelude, target, problem->bound);
    Candidate candidate = {0};
    bool ok = derivation != NULL;
    if (ok) {
        derive_reference(derivation, &plain);
        ok = candidate_make(problem, derivation, &plain, problem->name, target,
                            prelude.text, arena, &candidate, diags);
    }
    Trial trial = {0};
    void **raw = data_outputs(data, arena);
    ok = ok && rig_compute(rig, &candidate.job, &trial, raw, diags);
    if (ok && trial.status != TRIAL_OK)
        ok = diag_world(diags, "R001", "the plain kernel as C is no reference: %s%s%s",
                        trial_status_name[trial.status], trial.log ? ": " : "",
                        trial.log ? trial.log : "");
    for (int k = data->ninput; ok && k < data->nbuffer; k++)
        if (!data->buffer[k].expect)
            data->buffer[k].expect = raw[k];
    if (ok && error)
        *error = trial.max_error;
    trial_release(&trial);
    candidate_release(&candidate);
    buf_release(&prelude);
    derive_free(derivation);
    rig_close(rig);
    return ok;
}

// The same program with sizes of at most `most`, keeping each size's remainder modulo
// `keep`; NULL if its conditions do not allow them.
static Problem *shrunk(const Problem *problem, int64_t most, int64_t keep, Diags *diags)
{
    Problem *small = problem_parse(problem->source.name, problem->source.text, diags);
    Binding binding[64];
    int n = MIN(problem->nbinding, COUNTOF(binding));
    for (int i = 0; i < n; i++) {
        int64_t value = problem->binding[i].value;
        binding[i] = problem->binding[i];
        if (value > most)
            binding[i].value = most - keep + value % keep;
    }
    if (small && problem_bind(small, binding, n, diags))
        return small;
    problem_free(small);
    return NULL;
}

// Many steps over three dimensions: more than the interpreter can do even of small sizes.
static bool is_large(const Problem *problem)
{
    double volume = 1;
    for (int i = 0; i < problem->nbinding; i++)
        volume *= (double)problem->binding[i].value;
    return volume > INTERPRETER_QUOTA / 20;
}

static bool agrees_when_small(const Problem *problem, const Workplace *place, Diags *diags)
{
    // The second is for many steps over three dimensions, the others for what needs more.
    static const int64_t sizes[][2] = {
        {40, 8}, {16, 8}, {64, 32}, {128, 128}, {1024, 1024}};
    Arena *scratch = arena_new();
    bool done = false, ok = false;
    for (int i = 0; i < COUNTOF(sizes) && !done; i++) {
        Diags quiet;
        diags_init(&quiet, scratch);
        Problem *small = shrunk(problem, sizes[i][0], sizes[i][1], &quiet);
        if (small && i == 0 && is_large(small)) {
            problem_free(small);
            continue;
        }
        if (!small)
            continue;
        Value **inputs = problem_inputs(small, 1, scratch), *expect;
        ProblemData *data = data_new(small, inputs, scratch);
        done = ir_eval(small->bound, inputs, scratch, &expect, INTERPRETER_QUOTA, &quiet);
        if (done) {
            data_expect(data, expect, scratch);
            ok = run_plain(small, data, place, scratch, NULL, diags);
        }
        problem_free(small);
    }
    arena_free(scratch);
    if (!done)
        diag_world(diags, "R002", "no small sizes at which the reference could be checked");
    return ok;
}

static bool interpret(const Problem *problem, ProblemData *data, Arena *arena)
{
    Value *expect;
    Arena *scratch = arena_new();
    Diags quiet;
    diags_init(&quiet, scratch);
    bool ok = interpretable(problem) &&
              ir_eval(problem->bound, data_inputs(problem, data, scratch), scratch, &expect,
                      INTERPRETER_QUOTA, &quiet);
    if (ok)
        data_expect(data, expect, arena);
    arena_free(scratch);
    return ok;
}

// Rounding ----------------------------------------------------------------------------

// Steps that follow one another may magnify what rounding does: of the inverse gradient, up
// to tenfold each (0.7 % of one element in 2^28 after 24 steps). A kernel may then be right
// and further from the reference than TOLERANCE. How far is asked of the reference: it runs
// once more, on inputs that differ by their last bit, and a kernel, which rounds in each
// step, may be MARGIN times as far from it as that run is.
static const double MARGIN = 8;
// What is further than this is not told from what is wrong.
static const double TOLERANCE_MOST = 0.1;
// Bytes of inputs and outputs with which one looks first.
static const double GLANCE_BYTES = 16 << 20;

enum { CHUNK = 4096 }; // elements looked at together

// The steps of the longest iteration in e; 0: there is none.
static int64_t steps_of(const Expr *e)
{
    int64_t most = 0, n;
    if (e->kind == E_PATTERN && e->pattern == P_ITERATE &&
        !arith_is_const(e->num[0], &most))
        most = 1; // as many as it turns out
    if (e->fun && (n = steps_of(e->fun)) > most)
        most = n;
    for (int i = 0; i < e->narg; i++)
        if ((n = steps_of(e->arg[i])) > most)
            most = n;
    return most;
}

// Turns the last bit of each element that rounding can change: zero and infinity stay.
static const void *nudged(const RigBuffer *buffer, Arena *arena)
{
    size_t size = scalar_device_bytes(buffer->scalar), bytes = rig_buffer_bytes(buffer);
    unsigned char *turned = arena_raw(arena, bytes);
    double value[CHUNK];
    memcpy(turned, buffer->init, bytes);
    for (int64_t i = 0; i < buffer->count; i += CHUNK) {
        int64_t n = MIN(CHUNK, buffer->count - i);
        unsigned char *at = turned + (size_t)i * size; // little-endian, as all we run on
        scalar_unpack(buffer->scalar, at, n, value);
        for (int64_t k = 0; k < n; k++)
            if (isfinite(value[k]) && value[k] != 0)
                at[(size_t)k * size] ^= 1;
    }
    return turned;
}

// The largest relative change of a floating output as the floating inputs change by their
// last bit. Whole numbers are compared exactly, whatever they are made of.
static bool rounding_moves(const Problem *problem, const ProblemData *data,
                           const Workplace *place, double *change, Diags *diags)
{
    Arena *scratch = arena_new();
    ProblemData other = *data;
    other.buffer = NEW_ARRAY(scratch, RigBuffer, data->nbuffer);
    for (int i = 0; i < data->nbuffer; i++) {
        other.buffer[i] = data->buffer[i];
        if (!scalar_info[data->buffer[i].scalar].floating)
            other.buffer[i].expect = NULL;
        else if (i < data->ninput)
            other.buffer[i].init = nudged(&data->buffer[i], scratch);
    }
    bool ok = run_plain(problem, &other, place, scratch, change, diags);
    arena_free(scratch);
    return ok;
}

// The same of the program at sizes that cost little, with as many steps.
static bool rounding_moves_small(const Problem *problem, const Workplace *place,
                                 double *change, Diags *diags)
{
    Problem *small = NULL;
    for (int64_t most = 1024; !small && most >= 32; most /= 2) {
        small = shrunk(problem, most, 8, diags);
        if (small && problem_bytes(small) > GLANCE_BYTES) {
            problem_free(small);
            small = NULL;
        }
    }
    if (!small ||
        steps_of(small->bound->main->body) != steps_of(problem->bound->main->body)) {
        problem_free(small);
        return false;
    }
    Arena *scratch = arena_new();
    ProblemData *data = data_random(small, 1, scratch);
    bool ok = run_plain(small, data, place, scratch, NULL, diags) &&
              rounding_moves(small, data, place, change, diags);
    arena_free(scratch);
    problem_free(small);
    return ok;
}

// Sets the tolerance to what rounding can do, if that is more, and says so. Where this
// cannot be asked (the interpreter needs no compiler) the usual one stays.
static void make_room(const Problem *problem, ProblemData *data, const Workplace *place,
                      Arena *arena, const char **how)
{
    double change = 0;
    Diags quiet;
    diags_init(&quiet, arena);
    bool glance = problem_bytes(problem) > 4 * GLANCE_BYTES;
    // More elements have more that are moved far: of a sixtieth, an eighth of the most.
    if (glance && rounding_moves_small(problem, place, &change, &quiet) &&
        8 * MARGIN * change <= data->tolerance)
        return;
    if (!rounding_moves(problem, data, place, &change, &quiet) ||
        MARGIN * change <= data->tolerance)
        return;
    data->tolerance = fmin(MARGIN * change, TOLERANCE_MOST);
    *how =
        arena_printf(arena,
                     "%s; %.2g from it is right, because the inputs' last bits change it "
                     "by up to %.2g",
                     *how, data->tolerance, change);
}

bool reference_compute(const Problem *problem, ProblemData *data, const Workplace *place,
                       Arena *arena, const char **how, Diags *diags)
{
    *how = "interpreter";
    if (!interpret(problem, data, arena)) {
        *how = "plain C kernel, checked against the interpreter at small sizes";
        if (!agrees_when_small(problem, place, diags) ||
            !run_plain(problem, data, place, arena, NULL, diags))
            return false;
    }
    if (steps_of(problem->bound->main->body) > 0)
        make_room(problem, data, place, arena, how);
    return true;
}
