// SPDX-License-Identifier: Apache-2.0
//
// What a template's outputs must be: from a C function on the host, another kernel or the
// template itself at a point on the device, a program, or files.
//
// A reference runs as a job of its own runner, in a worker: it may crash as a kernel may.

#include "problem/template.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Template *t;
    ProblemData *data;
    const char *device;
    const Workplace *place;
    Arena *arena;
    const char **how;
    Diags *diags;
} Expect;

static const TemplateArg *arg_of(const Template *t, int buffer)
{
    const TemplateArg *arg = t->arg.at;
    while (arg->buffer != buffer)
        arg++;
    return arg;
}

static bool is_compared(const Template *t, int buffer)
{
    return !arg_of(t, buffer)->unchecked;
}

// A job on a device, with images as plain arrays where it is the host.
typedef struct {
    const Expect *e;
    const Job *job;
    RunnerConfig config;
    RunnerBuffer *buffer;
    Runner *runner;
} Running;

// Takes what the job leaves in the outputs to out.
static bool compute(const Running *r, void **out)
{
    const Expect *e = r->e;
    Trial trial = {0};
    for (int i = 0; i < r->config.nbuffer; i++)
        if (!out[i] && (!r->buffer[i].init || r->buffer[i].inout))
            out[i] = arena_shared(e->arena, runner_buffer_bytes(&r->buffer[i]));
    bool ok = runner_compute(r->runner, r->job, &trial, out, e->diags);
    if (ok && trial.status != TRIAL_OK)
        ok = diag_world(e->diags, "R003", "%s: the reference did not run: %s%s%s",
                        e->t->path, trial_status_name[trial.status], trial.log ? ": " : "",
                        trial.log ? trial.log : "");
    trial_release(&trial);
    return ok;
}

// The first element whose bytes are all the same in each of the two, and that byte; -1:
// there is none.
static int64_t find_element(const RunnerBuffer *buffer, const unsigned char *a, int byte_a,
                            const unsigned char *b, int byte_b)
{
    int width = buffer->width;
    for (size_t i = 0; i < runner_buffer_bytes(buffer); i += (size_t)width) {
        int k = 0;
        while (k < width && a[i + (size_t)k] == byte_a && b[i + (size_t)k] == byte_b)
            k++;
        if (k == width)
            return (int64_t)i / width;
    }
    return -1;
}

enum { UNWRITTEN = 0xff }; // bytes that an output holds before the run that is handed over

static bool may_be_unwritten(const Running *r, void *const *out)
{
    for (int i = 0; i < r->config.nbuffer; i++)
        if (out[i] && !r->buffer[i].init && is_compared(r->e->t, i) &&
            find_element(&r->buffer[i], out[i], UNWRITTEN, out[i], UNWRITTEN) >= 0)
            return true;
    return false;
}

// What a reference leaves unwritten would be expected of a kernel as what happened to be
// there. An output with such elements begins as zeros from then on: where neither writes,
// they agree. Which these are shows in a run that does begin with zeros.
static bool settle_unwritten(Running *r, void **out)
{
    const Expect *e = r->e;
    int n = r->config.nbuffer;
    RunnerBuffer *given = NEW_ARRAY(e->arena, RunnerBuffer, n);
    void **other = NEW_ARRAY(e->arena, void *, n);
    for (int i = 0; i < n; i++) {
        given[i] = r->buffer[i];
        if (given[i].init)
            continue;
        r->buffer[i].init = arena_alloc(e->arena, runner_buffer_bytes(&given[i]));
        r->buffer[i].inout = true;
    }
    if (!runner_fill(r->runner, &r->config, e->diags) || !compute(r, other))
        return false;
    for (int i = 0; i < n; i++) {
        int64_t first = given[i].init || !is_compared(e->t, i)
                            ? -1
                            : find_element(&given[i], out[i], UNWRITTEN, other[i], 0);
        if (first < 0)
            continue;
        out[i] = other[i];
        e->data->buffer[i].init = r->buffer[i].init;
        e->data->buffer[i].inout = true;
        *e->how = arena_printf(e->arena,
                               "%s; `%s` begins as zeros, since element %lld of it is "
                               "not written",
                               *e->how, given[i].name, (long long)first);
    }
    return true;
}

// What rounding decides ---------------------------------------------------------------

enum { MOVES = 16, PIECE = 512 };

// Each number moved by up to `by` of itself, the other way in every second run.
static void move_input(const Element *element, const char *from, int64_t n, int run,
                       double by, char *to)
{
    double x[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        int len = (int)MIN(PIECE, n - i);
        element_unpack(element, from + i * element->bytes, len, x);
        for (int k = 0; k < len; k++) {
            uint64_t drawn = hash_mix((uint64_t)(run / 2), (uint64_t)(i + k)) >> 40;
            double part = (double)drawn / (1 << 23) - 1;
            x[k] *= 1 + (run % 2 ? -part : part) * by;
        }
        element_pack(element, x, len, to + i * element->bytes);
    }
}

static bool move_inputs(Running *r, const ProblemData *data, double units, int run)
{
    for (int i = 0; i < r->config.nbuffer; i++) {
        const RunnerBuffer *given = &data->buffer[i];
        const Element *element = arg_of(r->e->t, i)->element;
        size_t bytes = runner_buffer_bytes(given);
        if (!given->init || element->kind != 'f')
            continue;
        if (r->buffer[i].init == given->init)
            r->buffer[i].init = arena_shared(r->e->arena, bytes);
        double unit = ldexp(1, element->bytes == 2 ? -10 : element->bytes == 4 ? -23 : -52);
        move_input(element, given->init, (int64_t)bytes / element->bytes, run, units * unit,
                   (char *)(uintptr_t)r->buffer[i].init);
    }
    return runner_fill(r->runner, &r->config, r->e->diags);
}

// How far elements moved, twice, at the most of all runs; of integers infinitely. Returns
// how many had not moved before.
static int64_t note_moves(const RunnerBuffer *buffer, bool real, const char *a,
                          const char *b, float *bound)
{
    size_t bytes = scalar_device_bytes(buffer->scalar);
    double x[PIECE], y[PIECE];
    int64_t news = 0;
    for (int64_t i = 0; i < buffer->count; i += PIECE) {
        int len = (int)MIN(PIECE, buffer->count - i);
        scalar_unpack(buffer->scalar, a + (size_t)i * bytes, len, x);
        scalar_unpack(buffer->scalar, b + (size_t)i * bytes, len, y);
        for (int k = 0; k < len; k++) {
            double far = x[k] == y[k] ? 0 : real ? 2 * fabs(x[k] - y[k]) : INFINITY;
            news += far > 0 && bound[i + k] == 0;
            bound[i + k] = fmaxf(bound[i + k], isnan(far) ? INFINITY : (float)far);
        }
    }
    return news;
}

// Integers that are computed from floating numbers, and compared as they are.
static void tell_exact(const Running *r, void *const *out)
{
    const Expect *e = r->e;
    const char *whole = NULL;
    bool floats = false;
    for (int i = 0; i < r->config.nbuffer; i++) {
        const TemplateArg *arg = arg_of(e->t, i);
        floats |= arg->element->kind == 'f' && r->buffer[i].init;
        if (out[i] && is_compared(e->t, i) && arg->element->kind != 'f' &&
            arg->member.len == 1 && !arg->bounded && arg->rounding == 0 && arg->spared == 0)
            whole = whole ? whole : arg->name;
    }
    if (whole && floats)
        *e->how = arena_printf(e->arena,
                               "%s; `%s` must be equal, even where rounding decides it "
                               "(\"tolerance\": {\"rounding\": 8} leaves that out)",
                               *e->how, whole);
}

// The reference runs again with inputs moved by a few units of their last place, until
// another pair of runs shows no further element that moves.
static bool see_moves(Running *r, void *const *out)
{
    const Expect *e = r->e;
    int n = r->config.nbuffer;
    void **other = NEW_ARRAY(e->arena, void *, n);
    float **bound = NEW_ARRAY(e->arena, float *, n);
    int64_t *moved = NEW_ARRAY(e->arena, int64_t, n), news = 0;
    double units = 0;
    for (int i = 0; i < n; i++) {
        double of = out[i] && is_compared(e->t, i) ? arg_of(e->t, i)->rounding : 0;
        bound[i] = of > 0 ? NEW_ARRAY(e->arena, float, r->buffer[i].count) : NULL;
        units = fmax(units, of);
    }
    tell_exact(r, out);
    for (int run = 0; units > 0 && run < MOVES && (run % 2 || run == 0 || news); run++) {
        news = run % 2 ? news : 0;
        if (!move_inputs(r, e->data, units, run) || !compute(r, other))
            return false;
        for (int i = 0; i < n; i++)
            if (bound[i]) {
                int64_t found =
                    note_moves(&r->buffer[i], arg_of(e->t, i)->element->kind == 'f', out[i],
                               other[i], bound[i]);
                moved[i] += found;
                news += found;
            }
    }
    for (int i = 0; i < n; i++)
        if (bound[i]) {
            e->data->buffer[i].bound = bound[i];
            *e->how = arena_printf(
                e->arena, "%s; rounding decides %lld of %lld elements of `%s`", *e->how,
                (long long)moved[i], (long long)r->buffer[i].count, r->buffer[i].name);
        }
    return true;
}

// Runs a job, and takes what it leaves in the outputs for what is expected.
static bool run_job(const Expect *e, const char *device, const Job *job)
{
    int n = e->data->nbuffer;
    bool host = device_is_host(device);
    RunnerBuffer *buffer = NEW_ARRAY(e->arena, RunnerBuffer, n);
    void **out = NEW_ARRAY(e->arena, void *, n);
    for (int i = 0; i < n; i++) {
        buffer[i] = e->data->buffer[i];
        if (host)
            buffer[i].image = (ImageShape){0};
    }
    Running r = {.e = e,
                 .job = job,
                 .config = {.device = device,
                            .worker = e->place->worker,
                            .folder = e->place->folder,
                            .sandbox = e->place->sandbox,
                            .stop = e->place->stop,
                            .nbuffer = n,
                            .buffer = buffer,
                            .build_limit_s = 60,
                            .run_limit_s = 120,
                            .workers = 1},
                 .buffer = buffer};
    r.runner = runner_open(&r.config, e->diags);
    bool ok = r.runner && compute(&r, out) &&
              (!may_be_unwritten(&r, out) || settle_unwritten(&r, out)) &&
              see_moves(&r, out);
    for (int i = 0; ok && i < n; i++)
        if (out[i] && is_compared(e->t, i))
            e->data->buffer[i].expect = out[i];
    runner_close(r.runner);
    return ok;
}

// A C function ------------------------------------------------------------------------

static bool run_text(const Expect *e, const char *device, const char *entry)
{
    const Template *t = e->t;
    const TemplateReference *ref = &t->reference;
    Job job;
    AutoBuf macros = buf_new(), source = buf_new();
    template_macros(t, ref->text, NULL, &macros);
    bool ok = template_job(t, &ref->launch, 1, &t->plain, e->arena, &job, e->diags);
    job.prelude = macros.text;
    template_line(&source, ref->file);
    buf_puts(&source, ref->text);
    buf_puts(&source, entry);
    job.source = source.text;
    if (entry[0])
        job.options = t->include;
    ok = ok && run_job(e, device, &job);
    return ok;
}

static bool run_c(const Expect *e)
{
    AutoBuf entry = buf_new();
    template_entries(e->t, &e->t->reference.launch, 1, &e->t->plain, &entry);
    return run_text(e, device_host_id, entry.text);
}

// The template at a point -------------------------------------------------------------

static bool run_point(const Expect *e, const Problem *problem)
{
    Candidate candidate = {0};
    Variants variants = {.problem = problem, .space = e->t->space};
    bool ok = problem->kind->candidate(&variants, &e->t->reference.at, "", e->arena,
                                       &candidate, e->diags) &&
              run_job(e, e->device, &candidate.job);
    candidate_release(&candidate);
    return ok;
}

// A program ---------------------------------------------------------------------------

static bool give_inputs(const Expect *e, const Problem *program, Value **input)
{
    const Function *main = program->bound->main;
    for (int i = 0; i < main->nparam; i++) {
        int k = template_arg(e->t, main->params[i]->name);
        const TemplateArg *arg = k < 0 ? NULL : &e->t->arg.at[k];
        input[i] = value_new(e->arena, main->params[i]->type);
        if (!arg || !template_is_array(arg) || arg->access == ACCESS_OUT ||
            input[i]->nplane != 1 || input[i]->scalar[0] != arg->element->compared ||
            input[i]->count[0] != arg->count)
            return diag_error(e->diags, span_none, "R004",
                              "%s: reference: the template has no array argument with the "
                              "name, type and length of the program's input `%s`",
                              e->t->path, main->params[i]->name);
        element_unpack(arg->element, e->data->buffer[arg->buffer].init, arg->count,
                       input[i]->plane[0]);
    }
    return true;
}

// The program's outputs are the checked ones of the template, in order.
static bool take_outputs(const Expect *e, const ProblemData *from)
{
    int plane = 0;
    for (int k = 0; k < e->data->noutput; k++) {
        RunnerBuffer *buffer = &e->data->buffer[e->data->output[k]];
        if (!is_compared(e->t, e->data->output[k]))
            continue;
        const RunnerBuffer *found = &from->buffer[from->ninput + plane];
        if (plane == from->noutput || found->scalar != buffer->scalar ||
            found->count != buffer->count)
            return diag_error(e->diags, span_none, "R004",
                              "%s: reference: the program's output %d is not `%s`",
                              e->t->path, plane, buffer->name);
        buffer->expect = found->expect;
        plane++;
    }
    return plane == from->noutput || diag_error(e->diags, span_none, "R004",
                                                "%s: reference: the program has %d "
                                                "outputs, the template %d",
                                                e->t->path, from->noutput, plane);
}

// As reference_compute, which may find that steps magnify what rounding does: there is as
// much room then for the template, unless its file says how much.
static bool compute_program(const Expect *e, const Problem *program, ProblemData *data)
{
    const char *how;
    double usual = data->tolerance;
    if (!reference_compute(program, data, device_host_id, e->place, e->arena, &how,
                           e->diags))
        return false;
    if (data->tolerance > usual && !json_object_get(e->t->json, "tolerance")) {
        e->data->tolerance = MAX(e->data->tolerance, data->tolerance);
        *e->how = arena_printf(e->arena, "%s: %s", *e->how, how);
    }
    return true;
}

static bool run_program(const Expect *e, const Problem *problem)
{
    const TemplateReference *ref = &e->t->reference;
    Problem *program = problem_parse(ref->file, ref->text, e->diags);
    Binding binding[64];
    int n = 0;
    for (int i = 0; program->kind && i < problem->nbinding; i++)
        for (int k = 0; k < program->program->sizes.len && n < COUNTOF(binding); k++)
            if (strcmp(program->program->sizes.at[k].name, problem->binding[i].name) == 0)
                binding[n++] = problem->binding[i];
    bool ok = program->kind && problem_bind(program, binding, n, e->diags);
    if (ok) {
        Value **input = NEW_ARRAY(e->arena, Value *, MAX(program->bound->main->nparam, 1));
        ok = give_inputs(e, program, input);
        ProblemData *data = ok ? data_new(program, input, e->arena) : NULL;
        ok = ok && compute_program(e, program, data) && take_outputs(e, data);
    }
    if (ok)
        problem_free(program); // else a message may point into it
    return ok;
}

// Values ------------------------------------------------------------------------------

static bool read_outputs(const Expect *e)
{
    const TemplateReference *ref = &e->t->reference;
    for (int i = 0; i < ref->output.len; i++) {
        const TemplateArg *arg = &e->t->arg.at[template_arg(e->t, ref->output.at[i])];
        RunnerBuffer *buffer = &e->data->buffer[arg->buffer];
        const char *where =
            arena_printf(e->arena, "%s: reference.values.%s", e->t->path, arg->name);
        char *expect = arena_alloc(e->arena, runner_buffer_bytes(buffer));
        if (!template_fill(e->t, arg, &ref->value.at[i], where, 0, expect, e->diags))
            return false;
        buffer->expect = expect;
    }
    return true;
}

static bool is_something_compared(const Expect *e)
{
    for (int i = 0; i < e->data->nbuffer; i++)
        if (e->data->buffer[i].expect)
            return true;
    return diag_error(e->diags, span_none, "J011", "%s: no output is compared", e->t->path);
}

// The result says how many elements may be wrong: a reader judges by it.
static bool say_spared(const Expect *e)
{
    VEC_EACH_REF(const TemplateArg *, arg, &e->t->arg)
        if (arg->spared > 0)
            *e->how = arena_printf(
                e->arena, "%s; %lld of %lld elements of `%s` may be wrong", *e->how,
                (long long)arg->spared, (long long)arg->count, arg->name);
    return true;
}

// Before a device is opened: its kind says what it takes.
static bool is_for(const Template *t, const char *device, Diags *diags)
{
    const DeviceKind *kind;
    int index;
    if (!device_parse(device, &kind, &index))
        return true; // who opens it says so
    return template_fits(t, kind->target, diags);
}

bool template_expect(const Problem *problem, ProblemData *data, const char *device,
                     const Workplace *place, Arena *arena, const char **how, Diags *diags)
{
    const Template *t = problem->template;
    const Expect e = {t, data, device, place, arena, how, diags};
    bool ok = false;
    if (!is_for(t, device, diags))
        return false;
    switch (t->reference.kind) {
    case REFERENCE_C:
        *how = arena_printf(arena, "C function %s", t->reference.launch.kernel);
        ok = run_c(&e);
        break;
    case REFERENCE_KERNEL:
        *how = arena_printf(arena, "kernel %s", t->reference.launch.kernel);
        ok = run_text(&e, device, "");
        break;
    case REFERENCE_FW:
        *how = arena_printf(arena, "program %s", t->reference.file);
        ok = run_program(&e, problem);
        break;
    case REFERENCE_VALUES:
        *how = "the values of the problem file";
        ok = read_outputs(&e);
        break;
    case REFERENCE_NONE: *how = "none, as was asked: results are NOT checked"; return true;
    case REFERENCE_JUDGE:
        *how =
            t->reference.command
                ? arena_printf(arena, "the command %s judges", t->reference.command)
                : arena_printf(arena, "C function %s judges", t->reference.launch.kernel);
        data->judge = template_judge(t, arena);
        return true;
    case REFERENCE_POINT:
        *how = t->reference.given ? "the template at another point"
                                  : "none given: the template at its default point";
        ok = run_point(&e, problem);
        break;
    }
    return ok && is_something_compared(&e) && template_bounds(t, data, arena, diags) &&
           say_spared(&e);
}
