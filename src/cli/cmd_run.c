// SPDX-License-Identifier: Apache-2.0
//
// forewarp run: a program on given arrays.

#include "cli/cli.h"

#include "plan/npy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The file given for an input, or for one plane of an input of tuples (`a_0`).
static const char *file_for(Options *o, const char *name)
{
    for (int i = 0; i < o->nin; i++)
        if (strcmp(o->in_name[i], name) == 0) {
            const char *file = o->in_file[i];
            o->in_name[i] = ""; // used
            return file;
        }
    return NULL;
}

static bool read_plane(Options *o, const char *name, const Type *type, Value *into,
                       int plane)
{
    const char *file = file_for(o, name);
    Value *read;
    if (!file)
        return true;
    if (!npy_read(file, o->arena, type, &read, &o->diags))
        return false;
    into->plane[plane] = read->plane[0];
    return true;
}

static bool read_inputs(Options *o, const Problem *problem, Value **inputs)
{
    const Function *main = problem->bound->main;
    for (int i = 0; i < main->nparam; i++) {
        const Type *plane[PLANES_MOST];
        const Param *param = main->params[i];
        int n = MIN(type_planes(o->arena, param->type, plane, PLANES_MOST), PLANES_MOST);
        for (int k = 0; k < n; k++) {
            const char *name =
                n == 1 ? param->name : arena_printf(o->arena, "%s_%d", param->name, k);
            if (!read_plane(o, name, plane[k], inputs[i], k))
                return false;
        }
    }
    for (int i = 0; i < o->nin; i++)
        if (o->in_name[i][0])
            return diag_error(&o->diags, span_none, "C020", "there is no input `%s`",
                              o->in_name[i]);
    return true;
}

typedef struct {
    Problem *problem;
    Value **inputs, *result;
    ProblemData *data;
    Rig *rig;
    Derivation *derivation;
    Buf prelude;
    Candidate candidate;
    Trial trial;
    Limit limit;
} Run;

static bool open_run(Options *o, Run *run)
{
    run->data = data_new(run->problem, run->inputs, o->arena);
    Workplace place = cli_place(o);
    if (o->check) {
        const char *how;
        Value *expect =
            reference_compute(run->problem, run->inputs, &place, o->arena, &how, &o->diags);
        if (!expect)
            return false;
        data_expect(run->data, expect, o->arena);
    }
    RigConfig config = {.device = o->device,
                        .folder = place.folder,
                        .nbuffer = run->data->ninput + run->data->noutput,
                        .buffer = run->data->buffer,
                        .tolerance = 1e-4,
                        .build_limit_s = 60,
                        .run_limit_s = 120};
    run->rig = rig_open(&config, &o->diags);
    if (!run->rig)
        return false;
    run->derivation = derive_new(run->problem->bound, rig_device(run->rig), &o->diags);
    return run->derivation != NULL;
}

static bool execute(Options *o, Run *run)
{
    const DeviceInfo *device = rig_device(run->rig);
    const Target *target = target_find(device->target);
    Point point;
    emit_prelude(&run->prelude, target, run->problem->bound);
    if (!cli_point(o, run->problem, run->derivation, device, &point) ||
        !candidate_make(run->problem, run->derivation, &point, run->problem->name, target,
                        run->prelude.text, o->arena, &run->candidate, &o->diags))
        return false;
    int first = run->data->ninput;
    void **raw = NEW_ARRAY(o->arena, void *, first + run->data->noutput);
    run->result = value_new(o->arena, run->problem->bound->main->body->type);
    Value *r = run->result;
    for (int k = 0; k < r->nplane; k++)
        raw[first + k] =
            arena_alloc(o->arena, (size_t)r->count[k] * scalar_device_bytes(r->scalar[k]));
    if (!rig_run_one(run->rig, &run->candidate.job, 5, &run->trial, raw, &o->diags))
        return false;
    if (run->trial.status != TRIAL_OK)
        return diag_world(&o->diags, "C021", "the kernel did not run: %s%s%s",
                          trial_status_name[run->trial.status], run->trial.log ? ": " : "",
                          run->trial.log ? run->trial.log : "");
    for (int k = 0; k < r->nplane; k++)
        scalar_unpack(r->scalar[k], raw[first + k], r->count[k], r->plane[k]);
    return true;
}

static bool write_outputs(Options *o, const Run *run)
{
    if (o->nout > run->result->nplane)
        return diag_error(&o->diags, span_none, "C022", "%d files for %d outputs", o->nout,
                          run->result->nplane);
    for (int k = 0; k < o->nout; k++)
        if (!npy_write(o->out[k], run->result, k, &o->diags))
            return false;
    return true;
}

// What bounds the time, as far as the device was measured.
static bool find_limit(Options *o, Run *run)
{
    const DeviceInfo *device = rig_device(run->rig);
    Work work = problem_work(run->problem);
    Ceilings ceilings = {0};
    run->limit.bytes = work.bytes;
    run->limit.flops = work.float_flops + work.double_flops;
    if (access(cli_store(o), F_OK) != 0)
        return true;
    Store *store = store_open(cli_store(o), &o->diags);
    bool ok = store && ceilings_load(store, device, ceilings_bytes(device, work.bytes),
                                     &ceilings, &o->diags);
    if (ok && ceilings.copy_gbs <= 0)
        ok = ceilings_load(store, device, ceilings_bytes(device, 0), &ceilings, &o->diags);
    store_close(store);
    run->limit.floor = floor_of(&work, &ceilings);
    return ok;
}

static json_t *run_json(const Run *run)
{
    return json_pack("{s:s, s:s, s:f, s:f, s:o}", "problem", problem_label(run->problem),
                     "device", rig_device(run->rig)->name, "time_ns", run->trial.time_ns,
                     "max_error", run->trial.max_error, "floor",
                     cli_floor_json(&run->limit, run->trial.time_ns));
}

static void print_run(Options *o, const Run *run)
{
    Buf time;
    buf_init(&time);
    cli_time(&time, run->trial.time_ns);
    printf("%s on %s: %s", problem_label(run->problem), rig_device(run->rig)->name,
           time.text);
    if (o->check)
        printf(", agrees with the reference (largest relative error %.2g)",
               run->trial.max_error);
    if (run->limit.floor.ns > 0)
        printf(", %.1f %% of floor", 100 * run->limit.floor.ns / run->trial.time_ns);
    putchar('\n');
    cli_print_floor(&run->limit);
    buf_release(&time);
}

static void close_run(Run *run)
{
    trial_release(&run->trial);
    candidate_release(&run->candidate);
    buf_release(&run->prelude);
    derive_free(run->derivation);
    if (run->rig)
        rig_close(run->rig);
}

int cmd_run(Options *o)
{
    Run run = {.problem = cli_problem(o, true)};
    if (!run.problem)
        return 2;
    buf_init(&run.prelude);
    run.inputs = problem_inputs(run.problem, o->seed, o->arena);
    bool ok = read_inputs(o, run.problem, run.inputs) && open_run(o, &run) &&
              execute(o, &run) && write_outputs(o, &run) && find_limit(o, &run);
    if (ok) {
        if (!o->json || strcmp(o->json, "-") != 0)
            print_run(o, &run);
        ok = cli_json(o, run_json(&run));
    }
    close_run(&run);
    return ok ? 0 : 1;
}
