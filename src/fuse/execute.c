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
    buf_printf(out, " x%d", c->instances);
    if (fused_serial(k) > 1)
        buf_printf(out, ":%d", fused_serial(k));
    buf_printf(out, "%s%s %s", c->early ? "+" : "", c->registers ? "*" : "",
               copy_name[c->copy]);
}

void solution_print(Buf *out, const Script *script, const Solution *solution)
{
    for (int i = 0; i < solution->n; i++) {
        buf_puts(out, i ? " | " : "");
        print_kernel(out, script, &solution->kernel[i]);
    }
}

// Reading it back -----------------------------------------------------------------------

typedef struct {
    const FuseSpace *space;
    const char *at;
    int64_t local_bytes, group_max;
} Reading;

// SERIAL_MOST: of a device of few units and a long list.
enum { NUMBER_MOST = 1 << 16, SERIAL_MOST = 1 << 30 };

static int take_number(Reading *r, long most)
{
    char *end;
    long n = strtol(r->at, &end, 10);
    bool is = end > r->at && n >= 0 && n < most;
    r->at = end;
    return is ? (int)n : -1;
}

static Set take_calls(Reading *r)
{
    Set set = 0;
    int ncall = r->space->graph.n;
    while (*r->at && *r->at != '/') {
        int v = ncall > 9 ? take_number(r, NUMBER_MOST) : *r->at++ - '0';
        if (v < 1 || v > ncall || (set >> (v - 1) & 1))
            return 0;
        set |= (Set)1 << (v - 1);
        r->at += *r->at == '.';
    }
    return set;
}

static const Fusion *find_fusion(const FuseSpace *space, Set set)
{
    for (int i = 0; i < space->fusion.len; i++)
        if (space->fusion.at[i].set == set)
            return &space->fusion.at[i];
    return NULL;
}

static bool take_lanes(Reading *r, const Fusion *f, Choice *choice)
{
    for (int i = 0; i < f->ncall; i++) {
        const Elementary *e = r->space->graph.script->call[f->order[i]].function;
        int k = 0, lanes;
        if (*r->at++ != (i ? '.' : '/'))
            return false;
        lanes = take_number(r, NUMBER_MOST);
        while (k < e->nimpl && e->impl[k].lanes != lanes)
            k++;
        if (k == e->nimpl)
            return false;
        choice->impl[i] = (uint8_t)k;
    }
    return true;
}

static bool take_copy(Reading *r, Choice *choice)
{
    for (int c = 0; c < COPIES; c++) {
        size_t len = strlen(copy_name[c]);
        if (strncmp(r->at, copy_name[c], len) == 0) {
            choice->copy = (CopyKind)c;
            r->at += len;
            return true;
        }
    }
    return false;
}

// By as many threads there may be an implementation in strips and one that is not, which
// comes first.
static void use_strips(const Reading *r, const Fusion *f, Choice *choice)
{
    for (int i = 0; i < f->ncall; i++) {
        const Elementary *e = r->space->graph.script->call[f->order[i]].function;
        int lanes = e->impl[choice->impl[i]].lanes;
        for (int k = 0; k < e->nimpl; k++)
            if (e->impl[k].strip && e->impl[k].lanes == lanes)
                choice->impl[i] = (uint8_t)k;
    }
}

// 123/3.3.1 x32+* fours
static bool take_kernel(Reading *r, FusedKernel *kernel)
{
    Choice choice = {0};
    const Fusion *f = find_fusion(r->space, take_calls(r));
    if (!f || !take_lanes(r, f, &choice) || strncmp(r->at, " x", 2) != 0)
        return false;
    r->at += 2;
    choice.instances = take_number(r, NUMBER_MOST);
    if (*r->at == ':') {
        r->at++;
        choice.serial = take_number(r, SERIAL_MOST / MAX(choice.instances, 1));
    }
    choice.early = *r->at == '+';
    r->at += choice.early;
    choice.registers = *r->at == '*';
    r->at += choice.registers;
    if (choice.instances <= 0 || choice.serial < 0 || *r->at++ != ' ' ||
        !take_copy(r, &choice))
        return false;
    if (choice.copy == COPY_STRIPS)
        use_strips(r, f, &choice);
    return fused_make(r->space->graph.script, f, &choice, r->local_bytes, r->group_max,
                      kernel);
}

// Every call once, each after what it needs.
static bool is_whole(const Graph *graph, const Solution *s)
{
    Set done = 0;
    for (int i = 0; i < s->n; i++) {
        Set set = s->kernel[i].fusion->set, pred = 0;
        for (Set m = set; m; m &= m - 1)
            pred |= graph->pred[__builtin_ctzll(m)];
        if ((set & done) || (pred & ~set & ~done))
            return false;
        done |= set;
    }
    return __builtin_popcountll(done) == graph->n;
}

bool solution_parse(const FuseSpace *space, const char *text, const DeviceInfo *device,
                    Solution *solution, Diags *diags)
{
    Reading r = {space, text, device ? fused_local_bytes(device) : ON_CHIP_BYTES,
                 device ? device->max_group : THREADS_MAX};
    bool ok = true;
    solution->n = 0;
    while (ok && *r.at && solution->n < CALLS_MAX) {
        ok = take_kernel(&r, &solution->kernel[solution->n++]);
        if (ok && strncmp(r.at, " | ", 3) == 0)
            r.at += 3;
        else
            ok = ok && !*r.at;
    }
    return (ok && is_whole(&space->graph, solution)) ||
           diag_error(
               diags, span_none, "F033",
               "`%s` is no solution, or does not fit: one is written as tune prints it, "
               "`123/3.3.1 x32+* fours | 456/5.5.5 x16 words`",
               text);
}

// Jobs --------------------------------------------------------------------------------

typedef struct {
    const Script *script;
    int64_t instances;
    int number[ELEMS_MAX]; // of each element's buffer; -1: none yet
    int part[ELEMS_MAX];   // of the parts of a sum; -1: none
    int nbuffer;
    Arena *arena;
    Job *job;
    int64_t *scratch;
    JobLaunch *launch;
} Maker;

static int add_scratch(Maker *m, int64_t words)
{
    m->scratch[m->job->nscratch] = words * (int64_t)sizeof(float);
    return m->nbuffer + m->job->nscratch++;
}

static void add_launch(Maker *m, const char *name, int64_t global, int64_t local,
                       const JobArg *arg, int narg)
{
    m->launch[m->job->nlaunch++] = (JobLaunch){.kernel = name,
                                               .global = {global, 1, 1},
                                               .local = {local, 1, 1},
                                               .narg = narg,
                                               .arg = arg};
}

// Buffers for what the kernel stores and nobody has given one to.
static void make_room(Maker *m, const FusedKernel *k)
{
    int elem[PLACES_MAX], n = fused_arguments(m->script, k->fusion, elem);
    int64_t parts = fused_parts(m->script, k, m->instances);
    for (int i = 0; i < n; i++) {
        const Elem *e = &m->script->elem[elem[i]];
        if (m->number[elem[i]] < 0)
            m->number[elem[i]] = add_scratch(m, elem_count(e, m->instances) * e->words);
        const Call *sum = sum_of(m->script, elem[i]);
        if (sum && (k->fusion->set >> (sum - m->script->call) & 1))
            m->part[elem[i]] = add_scratch(m, parts * e->words);
    }
}

static void launch_kernel(Maker *m, const FusedKernel *k, const char *name)
{
    int elem[PLACES_MAX], n = fused_arguments(m->script, k->fusion, elem);
    JobArg *arg = NEW_ARRAY(m->arena, JobArg, n + 1);
    for (int i = 0; i < n; i++) {
        const Call *sum = sum_of(m->script, elem[i]);
        bool part = sum && (k->fusion->set >> (sum - m->script->call) & 1);
        arg[i] = (JobArg){.kind = ARG_BUFFER,
                          .buffer = part ? m->part[elem[i]] : m->number[elem[i]]};
    }
    arg[n] = (JobArg){.kind = ARG_INT,
                      .number = fused_count(m->script, k->fusion, m->instances)};
    add_launch(m, name, fused_blocks(m->script, k, m->instances) * k->threads, k->threads,
               arg, n + 1);
}

static void launch_sums(Maker *m, const FusedKernel *k, const char *target,
                        const char *name, Buf *source)
{
    for (int step = 0; step < k->fusion->ncall; step++) {
        const Call *call = &m->script->call[k->fusion->order[step]];
        if (call->function->kind != FUNCTION_SUM)
            continue;
        const char *sum = arena_printf(m->arena, "%s_sum%d", name, step);
        int words = call->function->words[0];
        JobArg *arg = NEW_ARRAY(m->arena, JobArg, 3);
        arg[0] = (JobArg){.kind = ARG_BUFFER, .buffer = m->part[call->out]};
        arg[1] = (JobArg){.kind = ARG_BUFFER, .buffer = m->number[call->out]};
        arg[2] =
            (JobArg){.kind = ARG_INT, .number = fused_parts(m->script, k, m->instances)};
        fused_print_sum(target, sum, words, source);
        add_launch(m, sum, fused_sum_size(words), SUM_THREADS, arg, 3);
    }
}

void solution_job(const Script *script, Solution *solution, int64_t instances,
                  const int *buffer_of, int nbuffer, const char *target, const char *prefix,
                  const char *prelude, Arena *arena, Buf *source, Job *job)
{
    Maker m = {.script = script,
               .instances = instances,
               .nbuffer = nbuffer,
               .arena = arena,
               .job = job};
    m.scratch = NEW_ARRAY(arena, int64_t, 2 * CALLS_MAX);
    m.launch = NEW_ARRAY(arena, JobLaunch, 2 * CALLS_MAX);
    *job = (Job){
        .prelude = prelude, .options = "", .scratch_bytes = m.scratch, .launch = m.launch};
    memcpy(m.number, buffer_of, sizeof m.number);
    for (int i = 0; i < solution->n; i++) {
        FusedKernel *k = &solution->kernel[i];
        const char *name = arena_printf(arena, "%s%d", prefix, i);
        make_room(&m, k);
        fused_print(script, k, target, name, source);
        launch_kernel(&m, k, name);
        launch_sums(&m, k, target, name, source);
    }
    job->source = source->text;
}

static void print_launches(const Script *script, const Solution *s, const Job *job,
                           int64_t instances, Buf *out)
{
    buf_printf(out, "// %s: ", script->name);
    solution_print(out, script, s);
    buf_printf(out, ", T = %lld\n//\n// Launches, in order:\n", (long long)instances);
    for (int i = 0; i < job->nlaunch; i++)
        buf_printf(out, "//   %s, global %lld, local %lld\n", job->launch[i].kernel,
                   (long long)job->launch[i].global[0], (long long)job->launch[i].local[0]);
    buf_puts(out,
             "// Arguments have the names of the script's variables; p_x are the parts of "
             "the sum x.\n\n");
}

void solution_source(const Script *script, Solution *solution, int64_t instances,
                     const char *target, Buf *out)
{
    Arena *arena = arena_new();
    int nowhere[ELEMS_MAX] = {0};
    Buf source;
    Job job;
    buf_init(&source);
    solution_job(script, solution, instances, nowhere, 0, target,
                 arena_printf(arena, "%s_k", script->name), "", arena, &source, &job);
    print_launches(script, solution, &job, instances, out);
    fused_prelude(target, out);
    buf_puts(out, source.text);
    buf_release(&source);
    arena_free(arena);
}

bool fused_time_copy(Rig *rig, int64_t fours, int samples, Trial *trial, Diags *diags)
{
    int nbuffer = 1; // of the rig's own, which is not looked at
    int64_t bytes[2] = {fours * 16, fours * 16};
    JobArg arg[3] = {{.kind = ARG_BUFFER, .buffer = nbuffer},
                     {.kind = ARG_BUFFER, .buffer = nbuffer + 1},
                     {.kind = ARG_INT, .number = fours}};
    JobLaunch launch = {.kernel = "fw_copy",
                        .global = {fours / 4, 1, 1},
                        .local = {256, 1, 1},
                        .narg = 3,
                        .arg = arg};
    Buf source;
    buf_init(&source);
    fused_print_copy(rig_device(rig)->target, "fw_copy", &source);
    Job job = {.prelude = "",
               .source = source.text,
               .options = "",
               .nscratch = 2,
               .scratch_bytes = bytes,
               .nlaunch = 1,
               .launch = &launch};
    bool ok = rig_run_one(rig, &job, samples, trial, NULL, diags);
    buf_release(&source);
    return ok;
}

bool fused_time_empty(Rig *rig, int64_t blocks, int threads, Trial *trial, Diags *diags)
{
    int64_t bytes = 4096;
    JobArg arg[2] = {{.kind = ARG_BUFFER, .buffer = 1}, {.kind = ARG_INT, .number = 1}};
    JobLaunch launch = {.kernel = "fw_empty",
                        .global = {blocks * threads, 1, 1},
                        .local = {threads, 1, 1},
                        .narg = 2,
                        .arg = arg};
    Buf source;
    buf_init(&source);
    fused_print_empty(rig_device(rig)->target, "fw_empty", threads, &source);
    Job job = {.prelude = "",
               .source = source.text,
               .options = "",
               .nscratch = 1,
               .scratch_bytes = &bytes,
               .nlaunch = 1,
               .launch = &launch};
    bool ok = rig_run_one(rig, &job, 10, trial, NULL, diags);
    buf_release(&source);
    return ok;
}

// Data --------------------------------------------------------------------------------

static size_t list_bytes(const Script *script, int elem, int64_t instances)
{
    const Elem *e = &script->elem[elem];
    return (size_t)elem_count(e, instances) * (size_t)e->words * sizeof(float);
}

static void fill_inputs(const Script *script, ScriptData *data, uint64_t seed, Arena *arena)
{
    for (int e = 0; e < script->nelem; e++) {
        data->value[e] = arena_alloc(arena, list_bytes(script, e, data->instances));
        if (!script->elem[e].is_input)
            continue;
        Rng rng;
        rng_seed(&rng, hash_mix(seed, (uint64_t)e));
        int64_t n = elem_count(&script->elem[e], data->instances) * script->elem[e].words;
        for (int64_t i = 0; i < n; i++)
            data->value[e][i] = (float)(0.5 + rng_double(&rng));
    }
}

// Blocks of the reference hold so many words, on the stack of a thread.
enum { REFERENCE_WORDS = 16384, REFERENCE_INSTANCES = 16 };

// Every call by its first implementation, a kernel each.
static bool unfused(const Script *script, const FuseSpace *space, Solution *solution)
{
    solution->n = 0;
    for (int v = 0; v < script->ncall; v++)
        for (int i = 0; i < space->fusion.len; i++) {
            int fit = REFERENCE_WORDS / MAX(space->fusion.at[i].top, 1);
            Choice choice = {.instances = MAX(MIN(fit, REFERENCE_INSTANCES), 1)};
            if (space->fusion.at[i].set == (Set)1 << v &&
                !fused_make(script, &space->fusion.at[i], &choice, INT64_MAX, INT64_MAX,
                            &solution->kernel[solution->n++]))
                return false;
        }
    return true;
}

// A buffer an element; those that calls make are read out to where the data keep them.
static void reference_buffers(const Script *script, const ScriptData *data,
                              RigBuffer *buffer, void **out)
{
    for (int e = 0; e < script->nelem; e++) {
        bool input = script->elem[e].is_input;
        buffer[e] = (RigBuffer){.name = script->elem[e].name,
                                .scalar = S_FLOAT,
                                .count = elem_count(&script->elem[e], data->instances) *
                                         script->elem[e].words,
                                .init = input ? data->value[e] : NULL};
        out[e] = input ? NULL : data->value[e];
    }
}

// Runs the unfused sequence on the host with every call's result as an output.
static bool run_reference(const Script *script, ScriptData *data, const Workplace *place,
                          Diags *diags)
{
    Arena *arena = arena_new();
    RigBuffer *buffer = NEW_ARRAY(arena, RigBuffer, script->nelem);
    void **out = NEW_ARRAY(arena, void *, script->nelem);
    int number[ELEMS_MAX];
    for (int e = 0; e < script->nelem; e++)
        number[e] = e;
    reference_buffers(script, data, buffer, out);
    RigConfig config = {.device = "host",
                        .worker = place->worker,
                        .folder = place->folder,
                        .sandbox = place->sandbox,
                        .stop = place->stop,
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
    fused_prelude("c", &prelude);
    bool ok = rig && unfused(script, fuse_space(script, 1, arena), solution);
    if (ok) {
        solution_job(script, solution, data->instances, number, script->nelem, "c",
                     "reference", prelude.text, arena, &source, &job);
        ok = rig_compute(rig, &job, &trial, out, diags);
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
        in[p] = instance_value(data, f->type[p], call->in[p], f->words[p],
                               script->elem[call->in[p]].is_uniform ? 0 : t, arena);
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

// A sum against one in double precision.
static bool adds_up(const Script *script, const ScriptData *data, const Call *call,
                    Diags *diags)
{
    int words = call->function->words[0];
    const float *in = data->value[call->in[0]], *out = data->value[call->out];
    for (int w = 0; w < words; w++) {
        double sum = 0, size = 0;
        for (int64_t t = 0; t < data->instances; t++) {
            sum += in[t * words + w];
            size += fabs(in[t * words + w]);
        }
        if (!(fabs(out[w] - sum) <= 1e-5 * size))
            return diag_world(diags, "F021", "sum as C gives %g, not %g (word %d of %s)",
                              out[w], sum, w, script->elem[call->out].name);
    }
    return true;
}

enum { INTERPRETED = 32 }; // instances

static bool check_reference(const Script *script, const ScriptData *data, Diags *diags)
{
    Arena *arena = arena_new();
    bool ok = true;
    for (int v = 0; v < script->ncall && ok; v++) {
        const Call *call = &script->call[v];
        int64_t n = MIN(INTERPRETED, call_count(call, data->instances));
        for (int64_t t = 0; t < n && ok && call->function->def; t++)
            ok = agrees(script, data, call, t, arena, diags);
        if (ok && call->function->kind == FUNCTION_SUM)
            ok = adds_up(script, data, call, diags);
    }
    arena_free(arena);
    return ok;
}

int script_buffers(const Script *script, int number[ELEMS_MAX])
{
    int n = 0;
    for (int e = 0; e < ELEMS_MAX; e++)
        number[e] = e < script->nelem && script->elem[e].is_input ? n++ : -1;
    for (int i = 0; i < script->noutput; i++)
        number[script->output[i]] = n++;
    return n;
}

static void make_buffers(const Script *script, ScriptData *data)
{
    data->nbuffer = script_buffers(script, data->buffer_of);
    for (int e = 0; e < script->nelem; e++) {
        const Elem *elem = &script->elem[e];
        if (data->buffer_of[e] >= 0)
            data->buffer[data->buffer_of[e]] =
                (RigBuffer){.name = elem->name,
                            .scalar = S_FLOAT,
                            .count = elem_count(elem, data->instances) * elem->words,
                            .init = elem->is_input ? data->value[e] : NULL};
    }
}

ScriptData *script_inputs(const Script *script, int64_t instances, uint64_t seed,
                          Arena *arena)
{
    ScriptData *data = NEW(arena, ScriptData);
    data->instances = instances;
    data->value = NEW_ARRAY(arena, float *, script->nelem);
    data->buffer = NEW_ARRAY(arena, RigBuffer, script->nelem);
    fill_inputs(script, data, seed, arena);
    make_buffers(script, data);
    return data;
}

bool script_expect(const Script *script, ScriptData *data, const Workplace *place,
                   Diags *diags)
{
    if (!run_reference(script, data, place, diags) || !check_reference(script, data, diags))
        return false;
    for (int i = 0; i < script->noutput; i++) {
        int e = script->output[i];
        data->buffer[data->buffer_of[e]].expect = data->value[e];
    }
    return true;
}
