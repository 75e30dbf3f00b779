// SPDX-License-Identifier: Apache-2.0
//
// A problem: a program, a template or a script with its sizes bound, and a program's data.

#include "problem/template.h"

#include <stdlib.h>
#include <string.h>

Problem *problem_new(const char *name, const char *text, size_t len)
{
    Ir *ir = ir_new();
    Problem *problem = NEW_OF(ir->arena, Problem, .ir = ir, .arena = ir->arena);
    problem->source.name = arena_strdup(ir->arena, name);
    problem->source.text = arena_strndup(ir->arena, text, len);
    problem->source.len = len;
    return problem;
}

static Problem *parsed(Problem *problem, Diags *diags)
{
    Program *program = ir_parse(problem->ir, &problem->source, diags);
    if (program && ir_infer(program, diags)) {
        problem->program = program;
        problem->name = program->main->name;
        problem->kind = &problem_program;
    }
    return problem;
}

Problem *problem_parse(const char *name, const char *text, Diags *diags)
{
    return parsed(problem_new(name, text, strlen(text)), diags);
}

bool path_is_script(const char *path)
{
    return path_ends(path, ".fws");
}

bool path_is_program(const char *path)
{
    return path_ends(path, ".fw");
}

// A kernel is no program: reading it as one would only give a list of wrong characters.
static bool is_kernel(const char *path)
{
    return path_ends(path, ".cl") || path_ends(path, ".cu") || path_ends(path, ".c");
}

Problem *problem_load(const char *path, Diags *diags)
{
    Buf text = buf_new();
    bool read = file_read(path, FILE_TEXT_MOST, &text);
    if (!read)
        diag_error(diags, span_none, "C001", "cannot read %s: %s", path, text.text);
    Problem *problem = problem_new(path, text.text, text.len);
    buf_release(&text);
    if (read && is_kernel(path)) {
        diag_error(
            diags, span_none, "C080",
            "%s is a kernel: give the problem file that says how to launch it (.json)",
            path);
        return problem;
    }
    if (read && path_ends(path, ".json")) {
        if (template_load(problem, diags))
            problem->kind = &problem_template;
        return problem;
    }
    if (read && path_is_script(path)) {
        problem->name = script_name(problem->arena, path);
        problem->kind = &problem_script;
        return problem;
    }
    return read ? parsed(problem, diags) : problem;
}

void problem_free(Problem *problem)
{
    if (!problem)
        return;
    if (problem->template)
        problem_template.free(problem);
    script_free(problem->script);
    ir_free(problem->ir);
}

bool problem_bind_open(Problem *problem, const Binding *binding, int n, Diags *diags)
{
    Binding *copy = NEW_ARRAY(problem->arena, Binding, MAX(n, 1));
    for (int i = 0; i < n; i++) {
        copy[i] = binding[i];
        copy[i].name = arena_strdup(problem->arena, binding[i].name);
    }
    problem->binding = copy;
    problem->nbinding = n;
    for (int i = 0; i < n; i++)
        if (problem->kind && !problem->program && copy[i].range.high)
            return diag_error(diags, span_none, "C094",
                              "%s: a range of sizes is for programs, not for a %s",
                              copy[i].name, problem->kind->name);
    return problem->kind && problem->kind->bind(problem, diags);
}

// What has no value stands for all of its range: that given, or else that which the program
// declares.
static int add_spans(const Problem *problem, const Binding *binding, int n, Binding *all)
{
    const Program *program = problem->program;
    for (int i = 0; i < n; i++)
        all[i] = binding[i];
    for (int i = 0; program && i < program->sizes.len; i++) {
        const SizeDecl *size = &program->sizes.at[i];
        if (size->generic && size->range.high < INT32_MAX - size->range.multiple &&
            FIND(all, n, name, size->name) < 0)
            all[n++] = (Binding){.name = size->name, .range = size->range};
    }
    for (int i = 0; i < n; i++)
        if (all[i].range.high && !all[i].value) {
            SizeRange range = program ? binding_span(program, &all[i]) : all[i].range;
            if (range.low <= range.high)
                all[i].range = range;
            all[i].spans = true;
            all[i].value = size_at(&all[i].range, 0.5);
        }
    return n;
}

bool problem_spans(const Problem *problem)
{
    for (int i = 0; i < problem->nbinding; i++)
        if (problem->binding[i].spans)
            return true;
    return false;
}

bool problem_bind(Problem *problem, const Binding *binding, int n, Diags *diags)
{
    int sizes = problem->program ? problem->program->sizes.len : 0;
    Binding *all = NEW_ARRAY(problem->arena, Binding, n + sizes + 1);
    n = add_spans(problem, binding, n, all);
    bool ok = problem_bind_open(problem, all, n, diags);
    const Program *bound = ok ? problem->bound : NULL;
    for (int i = 0; bound && i < bound->sizes.len; i++) {
        const SizeDecl *size = &bound->sizes.at[i];
        if (!arith_is_const(size->arith, NULL))
            ok = diag_error(diags, size->span, "T021",
                            "size %s has no value: it is generic, but data are made and "
                            "kernels run for a number; give one, as in -s %s=1024",
                            size->name, size->name);
    }
    return ok;
}

const char *problem_kernel(const Problem *problem)
{
    return problem->template ? template_first_launch(problem->template)->kernel
                             : problem->name;
}

Goal *problem_goal(const Problem *problem, const Space *space, Diags *diags)
{
    const int n = problem->nbinding;
    const char **size = NEW_ARRAY(problem->arena, const char *, n + 1);
    double *value = NEW_ARRAY(problem->arena, double, n + 1);
    Work work = problem_work(problem);
    for (int i = 0; i < n; i++) {
        size[i] = problem->binding[i].name;
        value[i] = (double)problem->binding[i].value;
    }
    GoalConfig config = {.texts = &problem->goal,
                         .space = space,
                         .nsize = n,
                         .size = size,
                         .size_value = value,
                         .flops = work_flops(&work),
                         .bytes = work.bytes};
    return goal_open(&config, diags);
}

bool problem_is_generic(const Problem *problem)
{
    return problem->bound && problem->general != problem->bound;
}

Problem *problem_again(const Problem *problem, Diags *diags)
{
    Problem *own = problem->kind == &problem_program
                       ? problem_parse(problem->source.name, problem->source.text, diags)
                       : problem_load(problem->source.name, diags);
    if (own->program) {
        own->program->math = problem->program->math;
        own->program->extra = problem->program->extra;
        own->goal = problem->goal;
    }
    return own;
}

uint64_t problem_hash(const Problem *problem)
{
    return problem->kind->hash(problem);
}

double problem_bytes(const Problem *problem)
{
    return problem->kind->bytes(problem);
}

// Kernels have the functions of their program beside them, whichever they call.
static bool computes_in(const Program *bound, Scalar scalar)
{
    for (int i = 0; i < bound->funs.len; i++)
        if (function_uses(bound->funs.at[i], scalar))
            return true;
    return function_uses(bound->main, scalar);
}

bool problem_fits(const Problem *problem, const DeviceInfo *device, Diags *diags)
{
    const Scalar optional[] = {S_HALF, S_DOUBLE};
    const bool has[] = {device->has_half, device->has_double};
    int n;
    double all = 0;
    AutoArena *arena = arena_new();
    const Argument *argument = problem->kind->arguments(problem, arena, &n),
                   *largest = NULL;
    for (int k = 0; k < COUNTOF(optional); k++) {
        const char *type = scalar_info[optional[k]].name;
        bool uses = problem->bound && computes_in(problem->bound, optional[k]);
        for (int i = 0; i < n; i++)
            uses |= strncmp(argument[i].type, type, strlen(type)) == 0;
        if (uses && !has[k])
            return diag_world(diags, "C098", "%s computes in %s, which %s cannot",
                              problem_label(problem), type, device->name);
    }
    for (int i = 0; i < n; i++) {
        all += (double)argument[i].bytes;
        if (!argument[i].image && (!largest || argument[i].bytes > largest->bytes))
            largest = &argument[i];
    }
    double held = device->is_cpu ? 2 * all : all; // there the data lie beside the buffers
    bool ok = true;
    if (held > (double)device->global_bytes)
        ok = diag_world(diags, "C084",
                        "the arrays of %s take %.3g GB%s, and %s has %.3g GB of memory",
                        problem_label(problem), all * 1e-9,
                        device->is_cpu ? " twice, as data and as buffers" : "",
                        device->name, (double)device->global_bytes * 1e-9);
    else if (largest && largest->bytes > device->alloc_bytes)
        ok =
            diag_world(diags, "C084",
                       "`%s` of %s takes %.3g GB, and a buffer of %s has at most %.3g GB",
                       largest->name, problem_label(problem), (double)largest->bytes * 1e-9,
                       device->name, (double)device->alloc_bytes * 1e-9);
    return ok;
}

const char *problem_label(const Problem *problem)
{
    AutoBuf text = buf_new();
    buf_puts(&text, problem->name);
    for (int i = 0; i < problem->nbinding; i++) {
        buf_putc(&text, ' ');
        binding_print(&text, &problem->binding[i]);
    }
    return arena_strdup(problem->arena, text.text);
}

static bool lookup_size(void *user, const Arith *var, int64_t *value)
{
    const Problem *problem = user;
    const Binding *size = binding_find(problem->binding, problem->nbinding, var->name);
    *value = size ? size->value : 0;
    return size;
}

int64_t problem_number(const Problem *problem, const Arith *a)
{
    int64_t value;
    if (!arith_eval(a, lookup_size, (void *)problem, &value))
        BUG("a size is not bound");
    return value;
}

int type_planes(Arena *arena, const Type *type, const Type **plane, int max)
{
    const Type *tuple = type_tuple_of(type);
    if (!tuple) {
        if (max > 0)
            plane[0] = type;
        return 1;
    }
    int n = 0;
    for (int i = 0; i < tuple->n; i++)
        n += type_planes(arena, type_field(arena, type, i), plane + n, max - n);
    return n;
}

const char *workplace_folder(Arena *arena)
{
    Buf path = buf_new();
    user_folder(&path, "XDG_CACHE_HOME", ".cache");
    return buf_keep(&path, arena);
}

const char *input_file(const InputFiles *files, const char *name)
{
    int i = files ? FIND_TEXT(files->name, files->n, name) : -1;
    return i < 0 ? NULL : files->file[i];
}

Problem *problem_shrunk(const Problem *problem, int64_t most, int64_t keep, Diags *diags)
{
    Problem *small = problem_again(problem, diags);
    Binding binding[64];
    int n = MIN(problem->nbinding, COUNTOF(binding));
    for (int i = 0; i < n; i++) {
        int64_t value = problem->binding[i].value;
        binding[i] = (Binding){problem->binding[i].name, value};
        if (value > most)
            binding[i].value = most - keep + value % keep;
        if (binding[i].value == 0 && value > 0)
            binding[i].value = keep;
    }
    for (int i = 0; small && small->program && i < small->program->sizes.len; i++)
        small->program->sizes.at[i].range = size_any; // the interpreter's are others
    if (small && problem_bind(small, binding, n, diags))
        return small;
    problem_free(small);
    return NULL;
}
