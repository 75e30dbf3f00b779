// SPDX-License-Identifier: Apache-2.0
//
// forewarp run: a program or template on given arrays.

#include "cli/cli.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const Problem *problem;
    DeviceInfo device;
    Point point;
    ProblemData *data;
    void **raw; // the outputs, by buffer
    Runner *runner;
    Variants variants;
    Candidate candidate;
    Trial trial;
    Limit limit;
    Workplace place;
} RunCommand;

static bool make_data(Options *o, RunCommand *run)
{
    InputFiles files;
    if (!cli_inputs(o, run->problem, &files))
        return false;
    run->data =
        run->problem->kind->data(run->problem, o->seed, &files, o->arena, &o->diags);
    if (run->data && o->nout > run->data->noutput)
        return diag_error(&o->diags, span_none, "C022", "%d files for %d outputs", o->nout,
                          run->data->noutput);
    return run->data != NULL;
}

// What can be wrong without running anything.
static bool choose(Options *o, RunCommand *run)
{
    return devices_find(o->arena, NULL, cli_stop(), o->device, &run->device, &o->diags) &&
           problem_fits(run->problem, &run->device, &o->diags) &&
           variants_open(&run->variants, run->problem, &run->device, &o->diags) &&
           cli_point(o, &run->variants, &run->device, &run->point);
}

static bool open_run(Options *o, RunCommand *run)
{
    const char *how;
    if (!cli_place(o, run->problem, &run->place))
        return false;
    if (o->check && !run->problem->kind->expect(run->problem, run->data, o->device,
                                                &run->place, o->arena, &how, &o->diags))
        return false;
    RunnerConfig config = {.device = o->device,
                           .folder = run->place.folder,
                           .sandbox = run->place.sandbox,
                           .stop = run->place.stop,
                           .nbuffer = run->data->nbuffer,
                           .buffer = run->data->buffer,
                           .judge = run->data->judge,
                           .tolerance = run->data->tolerance,
                           .build_limit_s = 60,
                           .run_limit_s = 120};
    run->runner = runner_open(&config, &o->diags);
    return run->runner != NULL;
}

static bool execute(Options *o, RunCommand *run)
{
    if (!variants_candidate(&run->variants, &run->point, run->problem->name, o->arena,
                            &run->candidate, &o->diags))
        return false;
    run->raw = data_outputs(run->data, o->arena);
    if (!runner_run_one(run->runner, &run->candidate.job, 5, &run->trial, run->raw,
                        &o->diags))
        return false;
    return run->trial.status == TRIAL_OK ||
           diag_world(&o->diags, "C021", "the kernel failed: %s%s%s",
                      trial_status_name[run->trial.status], run->trial.log ? ": " : "",
                      run->trial.log ? run->trial.log : "");
}

static bool write_outputs(Options *o, const RunCommand *run)
{
    const ProblemData *data = run->data;
    for (int k = 0; k < o->nout; k++)
        if (!run->problem->kind->write(run->problem, data, k, run->raw[data->output[k]],
                                       o->out[k], &o->diags))
            return false;
    return true;
}

// What bounds the time, as far as the device was measured.
static bool find_limit(Options *o, RunCommand *run)
{
    const DeviceInfo *device = runner_device(run->runner);
    Work work = problem_work(run->problem);
    Ceilings ceilings = {0};
    run->limit.bytes = work.bytes;
    run->limit.flops = work_flops(&work);
    if (access(cli_store(o), F_OK) != 0)
        return true;
    Store *store = store_open(cli_store(o), &o->diags);
    bool ok = store && ceilings_load(store, device, ceilings_bytes(device, work.bytes),
                                     &ceilings, &o->diags);
    if (ok && ceilings.copy_gbs <= 0)
        ok = ceilings_load(store, device, ceilings_bytes(device, 0), &ceilings, &o->diags);
    store_close(store);
    Roofline roofline = roofline_of(&work, &ceilings);
    if (ceilings.copy_gbs > 0 && !roofline_is_refuted(roofline, run->trial.time_ns))
        run->limit.roofline = roofline; // every kernel moves something
    return ok;
}

static bool is_compared(const ProblemData *data)
{
    bool any = data->judge != NULL;
    for (int i = 0; i < data->nbuffer; i++)
        any |= data->buffer[i].expect != NULL;
    return any;
}

// The error is null where nothing was compared.
static json_t *run_json(const Options *o, const RunCommand *run)
{
    return json_pack(
        "{s:s, s:s, s:f, s:o, s:o}", "problem", problem_label(run->problem), "device",
        runner_device(run->runner)->name, "time_ns", run->trial.time_ns, "max_error",
        o->check && is_compared(run->data) ? json_real(run->trial.max_error) : json_null(),
        "roofline", cli_roofline_json(&run->limit, run->trial.time_ns));
}

static void print_run(Options *o, const RunCommand *run)
{
    AutoBuf time = buf_new();
    const Problem *problem = run->problem;
    cli_time(&time, run->trial.time_ns);
    printf("%s on %s: %s", problem_label(problem), runner_device(run->runner)->name,
           time.text);
    for (int i = 0, n = 0; problem_spans(problem) && i < problem->nbinding; i++)
        printf("%s%s=%lld", n++ ? "," : " at ", problem->binding[i].name,
               (long long)problem->binding[i].value);
    if (o->check && !is_compared(run->data))
        printf(", NOT checked: there is no reference");
    else if (o->check)
        printf(", agrees with the reference (largest relative error %.2g)",
               run->trial.max_error);
    for (int i = 0; o->check && i < run->data->nbuffer; i++)
        if (run->data->buffer[i].spared)
            printf(", of which %lld elements of %s may be wrong",
                   (long long)run->data->buffer[i].spared, run->data->buffer[i].name);
    if (run->limit.roofline.ns > 0)
        printf(", %.1f %% of roofline", 100 * run->limit.roofline.ns / run->trial.time_ns);
    putchar('\n');
    cli_print_roofline(&run->limit);
    if (run->place.sandbox)
        printf("  sandbox  %s\n", run->place.sandbox->says);
}

static void close_run(RunCommand *run)
{
    trial_release(&run->trial);
    candidate_release(&run->candidate);
    variants_close(&run->variants);
    if (run->runner)
        runner_close(run->runner);
}

int cmd_run(Options *o)
{
    RunCommand run = {.problem = cli_problem(o, SIZES_ALL)};
    if (!run.problem)
        return 2;
    bool ok = choose(o, &run) && make_data(o, &run) && open_run(o, &run) &&
              execute(o, &run) && write_outputs(o, &run) && find_limit(o, &run);
    if (ok) {
        if (cli_prints(o))
            print_run(o, &run);
        ok = cli_json(o, run_json(o, &run));
    }
    close_run(&run);
    return ok ? 0 : 1;
}
