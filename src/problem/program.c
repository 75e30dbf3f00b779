// SPDX-License-Identifier: Apache-2.0
//
// Programs as problems: what tuning asks of them, answered by the modules that read, lower
// and emit them. And the variants of any problem.

#include "problem/npy.h"
#include "problem/problem.h"

#include <string.h>

static bool program_bind(Problem *problem, Diags *diags)
{
    const Binding *binding = problem->binding;
    bool open = false; // a range alone: no number for it is known
    for (int i = 0; i < problem->nbinding; i++)
        open |= binding[i].range.high && !binding[i].value;
    Program *bound = (open ? ir_bind_open : ir_bind)(problem->program, binding,
                                                     problem->nbinding, diags);
    problem->bound = problem->general = bound;
    if (bound && bound->generic)
        problem->general =
            ir_bind_open(problem->program, binding, problem->nbinding, diags);
    return problem->general != NULL;
}

static void program_free(Problem *problem)
{
    // all of it is the arena's
}

// sizes: with the values of generic ones.
static uint64_t hash_of(const Problem *problem, bool sizes)
{
    AutoBuf text = buf_new();
    ir_print(&text, problem->general);
    for (int i = 0; sizes && i < problem->nbinding; i++)
        buf_printf(&text, "%s=%lld\n", problem->binding[i].name,
                   (long long)problem->binding[i].value);
    if (problem->bound->math != MATH_STANDARD)
        buf_printf(&text, "math %s\n", math_info[problem->bound->math].text);
    return hash_bytes(text.text, text.len, 0);
}

static uint64_t program_hash(const Problem *problem)
{
    return hash_of(problem, problem_is_generic(problem) && !problem_spans(problem));
}

uint64_t problem_span_hash(const Problem *problem)
{
    return hash_of(problem, false);
}

static int64_t length_of(const void *problem, const Arith *len)
{
    return problem_number(problem, len);
}

static double program_bytes(const Problem *problem)
{
    const Function *main = problem->bound->main;
    double bytes = type_bytes(main->body->type, length_of, problem);
    for (int i = 0; i < main->nparam; i++)
        bytes += type_bytes(main->params[i]->type, length_of, problem);
    return bytes;
}

// Arguments ---------------------------------------------------------------------------

// The lengths of an array, and the width of its vectors.
static void set_shape(const Problem *problem, const Type *type, Arena *arena,
                      Argument *argument)
{
    int n = 0;
    for (const Type *t = type; t->kind == T_ARRAY; t = t->elem)
        n++;
    int64_t *shape = NEW_ARRAY(arena, int64_t, n + 1);
    const Arith **extent = NEW_ARRAY(arena, const Arith *, n + 1);
    for (n = 0; type->kind == T_ARRAY; type = type->elem)
        extent[n++] = type->len;
    if (type->kind == T_VECTOR)
        extent[n++] = arith_const(problem->ir->arith, type->width);
    for (int i = 0; i < n; i++)
        shape[i] = problem_number(problem, extent[i]);
    argument->shape = shape;
    argument->extent = extent;
    argument->rank = n;
}

static int add_arguments(const Problem *problem, const char *name, const Type *type,
                         bool out, Arena *arena, Argument *argument)
{
    const Type *plane[PLANES_MOST];
    int n = MIN(type_planes(arena, type, plane, PLANES_MOST), PLANES_MOST);
    for (int i = 0; argument && i < n; i++) {
        const Type *scalar = type_leaf(plane[i]);
        Scalar of = scalar->scalar;
        int64_t count = problem_number(problem, type_count(problem->ir->arith, plane[i]));
        argument[i] =
            (Argument){.name = n == 1 ? name : arena_printf(arena, "%s_%d", name, i),
                       .type = of == S_BOOL ? "uchar" : scalar_info[of].opencl,
                       .count = count,
                       .bytes = count * (int64_t)scalar_device_bytes(of),
                       .in = !out,
                       .out = out,
                       .value = !out && plane[i]->kind == T_SCALAR};
        set_shape(problem, plane[i], arena, &argument[i]);
    }
    return n;
}

static Argument *program_arguments(const Problem *problem, Arena *arena, int *n)
{
    const Function *main = problem->general->main;
    Argument *argument = NULL;
    for (int round = 0; round < 2; round++) { // the first counts
        *n = 0;
        for (int i = 0; i < main->nparam; i++)
            *n += add_arguments(problem, main->params[i]->name, main->params[i]->type,
                                false, arena, argument ? argument + *n : NULL);
        const Script *script = problem->script; // whose results have names
        for (int i = 0; i < (script ? script->noutput : 1); i++) {
            const Type *type = main->body->type;
            *n += add_arguments(problem,
                                script ? script->elem[script->output[i]].name : "out",
                                script && script->noutput > 1 ? type->item[i] : type, true,
                                arena, argument ? argument + *n : NULL);
        }
        if (!argument)
            argument = NEW_ARRAY(arena, Argument, *n);
    }
    return argument;
}

// Data --------------------------------------------------------------------------------

static bool read_plane(const InputFiles *files, const char *name, const Type *type,
                       const RunnerBuffer *into, Diags *diags)
{
    const char *file = input_file(files, name);
    return !file || npy_read(file, type, (void *)(uintptr_t)into->init, diags);
}

static bool read_inputs(const Problem *problem, const InputFiles *files,
                        const ProblemData *data, Arena *arena, Diags *diags)
{
    const Function *main = problem->bound->main;
    const RunnerBuffer *at = data->buffer;
    for (int i = 0; i < main->nparam; i++) {
        const Type *plane[PLANES_MOST];
        const Param *param = main->params[i];
        int n = MIN(type_planes(arena, param->type, plane, PLANES_MOST), PLANES_MOST);
        for (int k = 0; k < n; k++) {
            const char *name =
                n == 1 ? param->name : arena_printf(arena, "%s_%d", param->name, k);
            if (!read_plane(files, name, plane[k], at++, diags))
                return false;
        }
    }
    return true;
}

static ProblemData *program_data(const Problem *problem, uint64_t seed,
                                 const InputFiles *files, Arena *arena, Diags *diags)
{
    ProblemData *data = data_random(problem, seed, arena);
    return read_inputs(problem, files, data, arena, diags) ? data : NULL;
}

static bool program_write(const Problem *problem, const ProblemData *data, int output,
                          const void *raw, const char *path, Diags *diags)
{
    return npy_write(path, problem->bound->main->body->type, output, raw, diags);
}

// Variants --------------------------------------------------------------------------------

static bool program_open(Variants *variants, const DeviceInfo *device, Diags *diags)
{
    emit_prelude(&variants->prelude, variants->target, variants->problem->general);
    variants->derivation = derive_new(variants->problem->general, device, diags);
    variants->space = variants->derivation ? derive_space(variants->derivation) : NULL;
    return variants->space != NULL;
}

static void program_close(Variants *variants)
{
    derive_free(variants->derivation);
}

static int program_first(const Variants *variants, Point *point, int max)
{
    derive_plain(variants->derivation, &point[0]);
    return 1 + derive_first(variants->derivation, &point[1], max - 1);
}

static bool program_candidate(const Variants *variants, const Point *point,
                              const char *name, Arena *arena, Candidate *candidate,
                              Diags *diags)
{
    return candidate_make(variants->problem, variants->derivation, point, name,
                          variants->target, variants->prelude.text, arena, candidate,
                          diags);
}

static void program_text(const Variants *variants, const Candidate *candidate, Buf *text)
{
    emit_unit(text, variants->target, candidate->unit);
}

#define PROGRAM_KIND(its_name, bind_it)                                                    \
    {                                                                                      \
        .name = its_name, .strategy = "auto", .limit_s = TRIAL_LIMIT_S, .bind = bind_it,   \
        .free = program_free, .hash = program_hash, .bytes = program_bytes,                \
        .arguments = program_arguments, .data = program_data, .expect = reference_compute, \
        .more = reference_more, .write = program_write, .open = program_open,              \
        .close = program_close, .first = program_first, .candidate = program_candidate,    \
        .text = program_text                                                               \
    }
const ProblemKind problem_program = PROGRAM_KIND("program", program_bind);
const ProblemKind problem_script = PROGRAM_KIND("script", script_bind);

// Expressions are walked on a stack that is deep enough, whoever the caller is.
typedef struct {
    Variants *variants;
    const DeviceInfo *device;
    Diags *diags;
    bool ok;
} Opening;

static void open_deep(void *user)
{
    Opening *o = user;
    o->ok = o->variants->problem->kind->open(o->variants, o->device, o->diags);
}

bool variants_open(Variants *variants, const Problem *problem, const DeviceInfo *device,
                   Diags *diags)
{
    Opening opening = {variants, device, diags, false};
    *variants = (Variants){.problem = problem, .target = target_find(device->target)};
    variants->prelude = buf_new();
    deep_call(open_deep, &opening);
    return opening.ok;
}

void variants_close(Variants *variants)
{
    if (!variants->problem)
        return;
    variants->problem->kind->close(variants);
    buf_release(&variants->prelude);
    *variants = (Variants){0};
}

bool variants_constrain(Variants *variants, const char *text, Diags *diags)
{
    Space *space = (Space *)variants->space;    // const to others: the variants own it
    Source *source = NEW(diags->arena, Source); // diagnostics outlive the space
    *source = (Source){"--where", arena_strdup(diags->arena, text), strlen(text)};
    Span whole = {source, 0, (uint32_t)source->len};
    if (!space_constrain_span(space, whole, diags) || !space_build(space, diags))
        return false;
    return space_count(space) > 0 ||
           diag_error(diags, span_none, "C042", "`%s` leaves no point of the space", text);
}

int variants_first(const Variants *variants, Point *point, int max)
{
    return variants->problem->kind->first(variants, point, max);
}

typedef struct {
    const Variants *variants;
    const Point *point;
    const char *name;
    Arena *arena;
    Candidate *candidate;
    Diags *diags;
    bool ok;
} Asked;

static void candidate_deep(void *user)
{
    Asked *a = user;
    a->ok = a->variants->problem->kind->candidate(a->variants, a->point, a->name, a->arena,
                                                  a->candidate, a->diags);
}

bool variants_candidate(const Variants *variants, const Point *point, const char *name,
                        Arena *arena, Candidate *candidate, Diags *diags)
{
    Asked asked = {variants, point, name, arena, candidate, diags, false};
    *candidate = (Candidate){0};
    deep_call(candidate_deep, &asked);
    candidate->point = point;
    return asked.ok;
}

LaunchShapes variants_launches(const Variants *variants)
{
    return (LaunchShapes){variants->problem->kind->shape, variants};
}

void variants_text(const Variants *variants, const Candidate *candidate, Buf *text)
{
    variants->problem->kind->text(variants, candidate, text);
}

void variants_simplest(const Variants *variants, Point *point)
{
    if (variants->derivation)
        derive_single(variants->derivation, point);
    else
        variants_first(variants, point, 1);
}
