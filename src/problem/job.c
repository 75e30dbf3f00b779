// SPDX-License-Identifier: Apache-2.0
//
// A point of the space as a job: derived, lowered, emitted, with its launches.

#include "problem/problem.h"

// Scratch buffers are the unit's temporaries, but for those that only stand for others.
static int scratch_number(const Unit *unit, const Buffer *buffer)
{
    int first = unit->ninput + unit->noutput, number = first;
    for (int i = first; i < buffer->number; i++)
        number += !unit->buffers.at[i]->formal;
    return number;
}

static void make_scratch(const Problem *problem, const Unit *unit, const Target *target,
                         Arena *arena, Job *job)
{
    int64_t *bytes = NEW_ARRAY(arena, int64_t, MAX(unit->buffers.len, 1));
    for (int i = unit->ninput + unit->noutput; i < unit->buffers.len; i++) {
        const Buffer *buffer = unit->buffers.at[i];
        if (!buffer->formal)
            bytes[job->nscratch++] = problem_number(problem, buffer->count) *
                                     target_bytes(target, buffer->scalar);
    }
    job->scratch_bytes = bytes;
}

// Targets without images get buffers.
static void make_launch(const Problem *problem, const Unit *unit, const Target *target,
                        const Launch *from, Arena *arena, JobLaunch *to)
{
    const Kernel *kernel = from->kernel;
    to->kernel = kernel->name;
    for (int d = 0; d < 3; d++) {
        to->local[d] = kernel->local[d];
        to->global[d] = problem_number(problem, from->global[d]);
    }
    const Arith *bytes = emit_local_bytes(problem->ir->arith, target, kernel);
    to->local_bytes = problem_number(problem, bytes);
    to->follows = from > unit->launches.at && emit_follows(target, unit);
    to->narg = kernel->params.len + kernel->sizes.len;
    JobArg *arg = NEW_ARRAY(arena, JobArg, MAX(to->narg, 1));
    for (int i = 0; i < kernel->params.len; i++) {
        const Buffer *buffer = from->buffer[i];
        bool image =
            target_has_images(target) && kernel_reads_image(kernel, kernel->params.at[i]);
        bool scratch = buffer->number >= unit->ninput + unit->noutput;
        bool value = buffer->value && target_takes_values(target);
        arg[i].kind = image ? ARG_IMAGE : value ? ARG_VALUE : ARG_BUFFER;
        arg[i].scalar = buffer->scalar;
        arg[i].buffer = scratch ? scratch_number(unit, buffer) : buffer->number;
    }
    for (int i = 0; i < kernel->sizes.len; i++) {
        arg[kernel->params.len + i].kind = ARG_INT;
        arg[kernel->params.len + i].number = problem_number(problem, from->size[i]);
    }
    to->arg = arg;
}

static void make_job(const Problem *problem, const Unit *unit, const Target *target,
                     const char *prelude, Arena *arena, Candidate *candidate)
{
    Job *job = &candidate->job;
    for (int i = 0; i < unit->kernels.len; i++)
        emit_kernel(&candidate->source, target, unit, unit->kernels.at[i]);
    job->prelude = prelude;
    job->source = candidate->source.text;
    job->options = target_options(target, problem->bound->math);
    make_scratch(problem, unit, target, arena, job);
    JobLaunch *launch = NEW_ARRAY(arena, JobLaunch, MAX(unit->launches.len, 1));
    for (int i = 0; i < unit->launches.len; i++)
        make_launch(problem, unit, target, &unit->launches.at[i], arena, &launch[i]);
    job->launch = launch;
    job->nlaunch = unit->launches.len;
}

bool candidate_build(const Problem *problem, const Program *program, Expr *body,
                     const KernelOptions *options, const Target *target,
                     const char *prelude, Arena *arena, Candidate *candidate, Diags *diags)
{
    *candidate = (Candidate){.unit = lower(program, body, options, arena, diags)};
    if (!candidate->unit)
        return false;
    candidate->source = buf_new();
    make_job(problem, candidate->unit, target, prelude, arena, candidate);
    return true;
}

bool candidate_make(const Problem *problem, const Derivation *derivation,
                    const Point *point, const char *name, const Target *target,
                    const char *prelude, Arena *arena, Candidate *candidate, Diags *diags)
{
    *candidate = (Candidate){0};
    Expr *body = derive_body(derivation, point, diags);
    if (!body)
        return false;
    KernelOptions options = derive_options(derivation, point);
    options.name = name;
    if (!target_takes_values(target)) { // what has bounds is no number, and compiles slowly
        options.item_loops = options.tasks = options.interior = false;
        options.rolled = true;
    }
    bool ok = candidate_build(problem, derive_program(derivation), body, &options, target,
                              prelude, arena, candidate, diags);
    candidate->point = point;
    return ok;
}

void candidate_release(Candidate *candidate)
{
    buf_release(&candidate->source);
}
