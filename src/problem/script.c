// SPDX-License-Identifier: Apache-2.0
//
// Scripts of calls as problems: what tuning asks of them, answered by the module fuse. A
// point is a solution: a cover of the calls by kernels, each with its choices. T among the
// sizes is the number of instances; the text is read with the others when they are bound.

#include "problem/npy.h"
#include "problem/problem.h"

#include <stdlib.h>
#include <string.h>

// LIMIT_S: a candidate is several kernels, of which PoCL on a busy machine compiles one in
// 10 s when it first runs.
enum { LIMIT_S = 60 };

// Binding -----------------------------------------------------------------------------

bool script_instances(const Binding *binding, int nbinding, int64_t *instances,
                      Diags *diags)
{
    int64_t n = *instances = -1;
    for (int i = 0; i < nbinding; i++)
        if (strcmp(binding[i].name, "T") == 0)
            n = *instances = binding[i].value;
    if (n == -1)
        return diag_error(diags, span_none, "F031",
                          "size T has no value: give the number of instances, -s T=N");
    if (n == 0)
        return diag_error(diags, span_none, "F032",
                          "T is 0: with no instances there is nothing to launch or time");
    return (n > 0 && n <= INT32_MAX / 2) ||
           diag_error(diags, span_none, "F032", "T must be from 1 to %d, here %lld",
                      INT32_MAX / 2, (long long)n);
}

static bool script_bind(Problem *problem, Diags *diags)
{
    bool ok;
    script_free(problem->script);
    problem->script = script_parse(problem->source.name, problem->source.text,
                                   problem->binding, problem->nbinding, diags, &ok);
    return ok && script_instances(problem->binding, problem->nbinding, &problem->instances,
                                  diags);
}

static void script_close(Problem *problem)
{
    script_free(problem->script);
    problem->script = NULL;
}

static uint64_t script_identity(const Problem *problem)
{
    return hash_mix(script_hash(problem->script), (uint64_t)problem->instances);
}

static int64_t elem_words(const Problem *problem, const Elem *elem)
{
    return elem->words * elem_count(elem, problem->instances);
}

static double script_bytes(const Problem *problem)
{
    const Script *script = problem->script;
    double words = 0;
    for (int e = 0; e < script->nelem; e++)
        if (script->elem[e].is_input || script->elem[e].is_output)
            words += (double)elem_words(problem, &script->elem[e]);
    return words * (double)sizeof(float);
}

static double script_flops(const Problem *problem)
{
    const Script *script = problem->script;
    double flops = 0;
    for (int v = 0; v < script->ncall; v++)
        flops += script->call[v].function->flops *
                 (double)call_count(&script->call[v], problem->instances);
    return flops;
}

// Data --------------------------------------------------------------------------------

// A list of instances, each of the element's lengths; one value for all is that alone.
enum { LENGTHS_MAX = 16 };
static NpyLayout layout_of(const Problem *problem, const Elem *elem,
                           int64_t shape[LENGTHS_MAX])
{
    int n = 0;
    if (!elem->is_uniform)
        shape[n++] = problem->instances;
    for (const Type *type = elem->type; type->kind == T_ARRAY && n < LENGTHS_MAX;
         type = type->elem)
        arith_is_const(type->len, &shape[n++]);
    return (NpyLayout){"<f4", shape, n, sizeof(float)};
}

static Argument *script_arguments(const Problem *problem, Arena *arena, int *n)
{
    const Script *script = problem->script;
    *n = script->ninput + script->noutput;
    Argument *argument = NEW_ARRAY(arena, Argument, *n);
    for (int i = 0; i < *n; i++) {
        bool in = i < script->ninput;
        const Elem *elem = &script->elem[in ? i : script->output[i - script->ninput]];
        int64_t count = elem_words(problem, elem),
                *shape = NEW_ARRAY(arena, int64_t, LENGTHS_MAX);
        argument[i] = (Argument){.name = elem->name,
                                 .type = "float",
                                 .count = count,
                                 .bytes = count * (int64_t)sizeof(float),
                                 .in = in,
                                 .out = !in,
                                 .shape = shape,
                                 .rank = layout_of(problem, elem, shape).ndim};
    }
    return argument;
}

static bool read_inputs(const Problem *problem, const InputFiles *files,
                        const ScriptData *own, Diags *diags)
{
    for (int e = 0; e < problem->script->nelem; e++) {
        const Elem *elem = &problem->script->elem[e];
        int64_t shape[LENGTHS_MAX];
        const NpyLayout layout = layout_of(problem, elem, shape);
        const char *file = elem->is_input ? input_file(files, elem->name) : NULL;
        if (file && !npy_read_raw(file, &layout, own->value[e], diags))
            return false;
    }
    return true;
}

static ProblemData *script_data(const Problem *problem, uint64_t seed,
                                const InputFiles *files, Arena *arena, Diags *diags)
{
    ScriptData *own = script_inputs(problem->script, problem->instances, seed, arena);
    ProblemData *data = NEW(arena, ProblemData);
    int *output = NEW_ARRAY(arena, int, own->nbuffer);
    *data = (ProblemData){.buffer = own->buffer,
                          .nbuffer = own->nbuffer,
                          .output = output,
                          .tolerance = 1e-4,
                          .script = own};
    for (int i = 0; i < problem->script->noutput; i++)
        output[data->noutput++] = own->buffer_of[problem->script->output[i]];
    return read_inputs(problem, files, own, diags) ? data : NULL;
}

static bool script_reference(const Problem *problem, ProblemData *data, const char *device,
                             const Workplace *place, Arena *arena, const char **how,
                             Diags *diags)
{
    (void)device; // what it computes does not depend on where
    (void)arena;
    *how = "the calls one after another as C, agreeing with the interpreter where they are "
           "definitions";
    return script_expect(problem->script, data->script, place, diags);
}

static bool script_write(const Problem *problem, const ProblemData *data, int output,
                         const void *raw, const char *path, Diags *diags)
{
    (void)data;
    const Script *script = problem->script;
    int64_t shape[LENGTHS_MAX];
    const NpyLayout layout =
        layout_of(problem, &script->elem[script->output[output]], shape);
    return npy_write_raw(path, &layout, raw, diags);
}

// Ways --------------------------------------------------------------------------------

static bool script_open(Ways *ways, const DeviceInfo *device, Diags *diags)
{
    const Problem *problem = ways->problem;
    fused_prelude(device->target, &ways->prelude);
    ways->script = script_space_new(problem->script, problem->limit, problem->instances,
                                    device, diags);
    ways->space = ways->script ? script_space_points(ways->script) : NULL;
    return ways->script != NULL;
}

static void script_shut(Ways *ways)
{
    script_space_free(ways->script);
}

static int script_first(const Ways *ways, Point *point, int max)
{
    script_plain(ways->script, point);
    return MIN(1, max);
}

static void script_rest(const Ways *ways, uint64_t named, Point *point)
{
    script_complete(ways->script, named, point);
}

static bool script_candidate(const Ways *ways, const Point *point, const char *name,
                             Arena *arena, Candidate *candidate, Diags *diags)
{
    (void)diags; // every point of the space has its kernels
    const Problem *problem = ways->problem;
    Solution *solution = xmalloc(sizeof *solution);
    int buffer[ELEMS_MAX], n = script_buffers(problem->script, buffer);
    buf_init(&candidate->source);
    script_solution(ways->script, point, solution);
    solution_job(problem->script, solution, problem->instances, buffer, n,
                 target_name(ways->target), arena_printf(arena, "%s_k", name),
                 ways->prelude.text, arena, &candidate->source, &candidate->job);
    free(solution);
    return true;
}

static void script_text(const Ways *ways, const Candidate *candidate, Buf *text)
{
    Solution *solution = xmalloc(sizeof *solution);
    script_solution(ways->script, candidate->point, solution);
    solution_source(ways->problem->script, solution, ways->problem->instances,
                    target_name(ways->target), text);
    free(solution);
}

const ProblemKind problem_script = {.name = "script",
                                    .strategy = "predicted",
                                    .limit_s = LIMIT_S,
                                    .bind = script_bind,
                                    .free = script_close,
                                    .hash = script_identity,
                                    .bytes = script_bytes,
                                    .flops = script_flops,
                                    .arguments = script_arguments,
                                    .data = script_data,
                                    .expect = script_reference,
                                    .write = script_write,
                                    .open = script_open,
                                    .close = script_shut,
                                    .first = script_first,
                                    .complete = script_rest,
                                    .candidate = script_candidate,
                                    .text = script_text};
