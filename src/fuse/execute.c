// SPDX-License-Identifier: Apache-2.0
//
// Solutions as jobs of a rig; data and reference. The reference is the unfused sequence, as
// C on the host; where functions are definitions, the interpreter must agree with it first.

#include "fuse/execute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Text --------------------------------------------------------------------------------

static void print_kernel(Buf *out, const Script *script, const FusedKernel *k)
{
    const char *separator = script->ncall > 9 ? "." : "";
    const Choice *c = &k->choice;
    for (int i = 0; i < k->fusion->ncall; i++)
        buf_printf(out, "%s%d", i ? separator : "", k->fusion->order[i] + 1);
    for (int i = 0; i < k->fusion->ncall; i++) {
        const Call *call = &script->call[k->fusion->order[i]];
        buf_printf(out, "%c%d", i ? '.' : '/', call->function->impl[c->impl[i]].lanes);
    }
    buf_printf(out, " x%d%s%s %s", c->instances, c->early ? "+" : "",
               c->registers ? "*" : "", copy_name[c->copy]);
}

void solution_print(Buf *out, const Script *script, const Solution *solution)
{
    for (int i = 0; i < solution->n; i++) {
        buf_puts(out, i ? " | " : "");
        print_kernel(out, script, &solution->kernel[i]);
    }
}

// Jobs --------------------------------------------------------------------------------

static void make_launch(const Script *script, const FusedKernel *k, int64_t instances,
                        const int *number, const char *name, Arena *arena, JobLaunch *to)
{
    int elem[PLACES_MAX], n = kernel_arguments(script, k->fusion, elem);
    int64_t block = k->choice.instances, blocks = (instances + block - 1) / block;
    JobArg *arg = NEW_ARRAY(arena, JobArg, n + 1);
    for (int i = 0; i < n; i++)
        arg[i] = (JobArg){.kind = ARG_BUFFER, .buffer = number[elem[i]]};
    arg[n] = (JobArg){.kind = ARG_INT, .number = instances};
    *to = (JobLaunch){.kernel = name,
                      .global = {blocks * k->threads, 1, 1},
                      .local = {k->threads, 1, 1},
                      .narg = n + 1,
                      .arg = arg};
}

void solution_job(const Script *script, Solution *solution, int64_t instances,
                  const int *buffer_of, int nbuffer, const char *target, const char *prefix,
                  const char *prelude, Arena *arena, Buf *source, Job *job)
{
    int number[ELEMS_MAX];
    int64_t *scratch = NEW_ARRAY(arena, int64_t, CALLS_MAX);
    JobLaunch *launch = NEW_ARRAY(arena, JobLaunch, solution->n);
    *job = (Job){.prelude = prelude,
                 .options = "",
                 .scratch_bytes = scratch,
                 .launch = launch,
                 .nlaunch = solution->n};
    memcpy(number, buffer_of, sizeof number);
    for (int i = 0; i < solution->n; i++) {
        FusedKernel *k = &solution->kernel[i];
        for (int p = 0; p < k->fusion->nelem; p++) {
            int e = k->fusion->elem[p];
            if (number[e] < 0 && fusion_stores(script, k->fusion, e)) {
                scratch[job->nscratch] =
                    instances * script->elem[e].words * (int64_t)sizeof(float);
                number[e] = nbuffer + job->nscratch++;
            }
        }
        const char *name = arena_printf(arena, "%s%d", prefix, i);
        kernel_print(script, k, target, name, source);
        make_launch(script, k, instances, number, name, arena, &launch[i]);
    }
    job->source = source->text;
}

// Data --------------------------------------------------------------------------------

static size_t list_bytes(const Script *script, int elem, int64_t instances)
{
    return (size_t)instances * (size_t)script->elem[elem].words * sizeof(float);
}

static void fill_inputs(const Script *script, ScriptData *data, uint64_t seed, Arena *arena)
{
    for (int e = 0; e < script->nelem; e++) {
        data->value[e] = arena_alloc(arena, list_bytes(script, e, data->instances));
        if (!script->elem[e].is_input)
            continue;
        Rng rng;
        rng_seed(&rng, hash_mix(seed, (uint64_t)e));
        for (int64_t i = 0; i < data->instances * script->elem[e].words; i++)
            data->value[e][i] = (float)(0.5 + rng_double(&rng));
    }
}

// Every call by its first implementation, a kernel each.
static bool unfused(const Script *script, const FuseSpace *space, Solution *solution)
{
    solution->n = 0;
    for (int v = 0; v < script->ncall; v++)
        for (int i = 0; i < space->fusion.len; i++) {
            Choice choice = {.instances = 16};
            if (space->fusion.at[i].set == (Set)1 << v &&
                !kernel_make(script, &space->fusion.at[i], &choice, INT64_MAX, INT64_MAX,
                             &solution->kernel[solution->n++]))
                return false;
        }
    return true;
}

// Runs the unfused sequence on the host with every call's result as an output.
static bool run_reference(const Script *script, ScriptData *data, const FusePlace *place,
                          Diags *diags)
{
    Arena *arena = arena_new();
    RigBuffer *buffer = NEW_ARRAY(arena, RigBuffer, script->nelem);
    int number[ELEMS_MAX];
    void **out = NEW_ARRAY(arena, void *, script->nelem);
    for (int e = 0; e < script->nelem; e++) {
        bool input = script->elem[e].is_input;
        number[e] = e;
        buffer[e] = (RigBuffer){.name = script->elem[e].name,
                                .scalar = S_FLOAT,
                                .count = data->instances * script->elem[e].words,
                                .init = input ? data->value[e] : NULL};
        out[e] = input ? NULL : data->value[e];
    }
    RigConfig config = {.device = "host",
                        .worker = place->worker,
                        .folder = place->folder,
                        .nbuffer = script->nelem,
                        .buffer = buffer,
                        .tolerance = 1,
                        .build_limit_s = 60,
                        .run_limit_s = 120};
    Rig *rig = rig_open(&config, diags);
    Solution *solution = NEW(arena, Solution);
    Buf source, prelude;
    Job job;
    Trial trial = {0};
    buf_init(&source);
    buf_init(&prelude);
    kernel_prelude("c", &prelude);
    bool ok = rig && unfused(script, fuse_space(script, 1, arena), solution);
    if (ok) {
        solution_job(script, solution, data->instances, number, script->nelem, "c",
                     "reference", prelude.text, arena, &source, &job);
        ok = rig_run_one(rig, &job, 1, &trial, out, diags);
    }
    if (ok && trial.status != TRIAL_OK)
        ok = diag_world(diags, "F020", "the unfused sequence as C is no reference: %s%s%s",
                        trial_status_name[trial.status], trial.log ? ": " : "",
                        trial.log ? trial.log : "");
    trial_release(&trial);
    buf_release(&source);
    buf_release(&prelude);
    rig_close(rig);
    arena_free(arena);
    return ok;
}

// The interpreter ------------------------------------------------------------------------

static Value *instance_value(const ScriptData *data, const Type *type, int elem, int words,
                             int64_t t, Arena *arena)
{
    Value *v = value_new(arena, type);
    for (int w = 0; w < words; w++)
        v->plane[0][w] = data->value[elem][t * words + w];
    return v;
}

static bool agrees(const Script *script, const ScriptData *data, const Call *call,
                   int64_t t, Arena *arena, Diags *diags)
{
    const Elementary *f = call->function;
    Program program = *f->program;
    Value *in[ARITY_MAX], *out;
    program.main = (Function *)(uintptr_t)f->def;
    for (int p = 0; p < f->nparam; p++)
        in[p] = instance_value(data, f->type[p], call->in[p], f->words[p], t, arena);
    if (!ir_eval(&program, in, arena, &out, 0, diags))
        return false;
    int words = f->words[f->nparam];
    for (int w = 0; w < words; w++) {
        double want = out->plane[0][w], got = data->value[call->out][t * words + w];
        if (!(fabs(got - want) <= 1e-4 * fmax(fabs(want), 1e-3)) && isfinite(want))
            return diag_world(diags, "F021",
                              "%s as C gives %g where the interpreter gives %g (word %d of "
                              "%s, instance %lld)",
                              f->name, got, want, w, script->elem[call->out].name,
                              (long long)t);
    }
    return true;
}

enum { INTERPRETED = 32 }; // instances

static bool check_reference(const Script *script, const ScriptData *data, Diags *diags)
{
    Arena *arena = arena_new();
    bool ok = true;
    for (int v = 0; v < script->ncall && ok; v++)
        for (int64_t t = 0; t < MIN(INTERPRETED, data->instances) && ok; t++)
            if (script->call[v].function->def)
                ok = agrees(script, data, &script->call[v], t, arena, diags);
    arena_free(arena);
    return ok;
}

ScriptData *script_data(const Script *script, int64_t instances, uint64_t seed,
                        const FusePlace *place, Arena *arena, Diags *diags)
{
    ScriptData *data = NEW(arena, ScriptData);
    data->instances = instances;
    data->value = NEW_ARRAY(arena, float *, script->nelem);
    data->buffer = NEW_ARRAY(arena, RigBuffer, script->nelem);
    fill_inputs(script, data, seed, arena);
    if (!run_reference(script, data, place, diags) || !check_reference(script, data, diags))
        return NULL;
    for (int output = 0; output < 2; output++)
        for (int e = 0; e < script->nelem; e++) {
            const Elem *elem = &script->elem[e];
            if (!output)
                data->buffer_of[e] = -1;
            if (output ? !elem->is_output : !elem->is_input)
                continue;
            data->buffer_of[e] = data->nbuffer;
            data->buffer[data->nbuffer++] =
                (RigBuffer){.name = elem->name,
                            .scalar = S_FLOAT,
                            .count = instances * elem->words,
                            .init = output ? NULL : data->value[e],
                            .expect = output ? data->value[e] : NULL};
        }
    return data;
}
