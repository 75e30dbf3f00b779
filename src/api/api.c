// SPDX-License-Identifier: Apache-2.0
//
// The public interface (include/forewarp.h): problems, devices, and what all of it shares.

#include "api/api.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *fw_version(void)
{
    return FW_VERSION;
}

void fw_free_text(char *text)
{
    free(text);
}

int fw_worker(int argc, char **argv, int *status)
{
    bool is_worker = argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0;
    if (is_worker)
        *status = worker_main(argc, argv);
    return is_worker;
}

// What is shared ----------------------------------------------------------------------

void api_message(Diags *diags, char **message)
{
    AutoBuf text = buf_new();
    diags_print(&text, diags);
    if (message)
        *message = text.len ? xstrdup(text.text) : NULL;
    arena_free(diags->arena);
}

bool api_given(const void *value, const char *what, char **message)
{
    if (value)
        return true;
    Diags diags = {.arena = arena_new()};
    diag_error(&diags, span_none, "C090", "the %s is NULL", what);
    api_message(&diags, message);
    return false;
}

const char *api_or(const char *text, const char *otherwise)
{
    return text && text[0] ? text : otherwise;
}

const char *api_worker(const char *worker, Arena *arena, Diags *diags)
{
    const char *path = getenv("PATH");
    char *save = NULL, *copy = arena_strdup(arena, path ? path : "");
    if (worker && worker[0])
        return worker;
    for (char *dir = strtok_r(copy, ":", &save); dir; dir = strtok_r(NULL, ":", &save)) {
        const char *file = arena_printf(arena, "%s/forewarp", dir);
        if (access(file, X_OK) == 0)
            return file;
    }
    diag_world(
        diags, "C014",
        "the forewarp program, which runs candidates, is not on PATH: add the folder "
        "that `make install` put it in, or give its path as the worker");
    return NULL;
}

const char *api_store(const char *store, Arena *arena)
{
    AutoBuf path = buf_new();
    store_default_path(&path);
    return arena_strdup(arena, api_or(store, path.text));
}

// Problems ----------------------------------------------------------------------------

// Reads "N=1,M=2"; false with a diagnostic.
static bool parse_sizes(const char *sizes, Arena *arena, Binding *binding, int most, int *n,
                        Diags *diags)
{
    char *save = NULL, *text = arena_strdup(arena, sizes ? sizes : "");
    for (char *item = strtok_r(text, ", ", &save); item;
         item = strtok_r(NULL, ", ", &save)) {
        if (*n == most || !binding_parse(item, arena, &binding[*n]))
            return diag_error(diags, span_none, "C002",
                              "sizes are NAME=VALUE,... or NAME=LOW:HIGH: `%s`", item);
        (*n)++;
    }
    return true;
}

// What is asked for: a file, or where text is not NULL that.
typedef struct {
    const char *name, *text, *sizes;
    char **message;
    fw_problem *made;
} Loading;

static void find_sizes(fw_problem *made)
{
    const Problem *problem = made->problem;
    int n = problem_is_generic(problem) ? problem->general->sizes.len : 0;
    made->size = NEW_ARRAY(problem->arena, fw_size, n + 1);
    ARRAY_EACH_REF(const SizeDecl *, size, problem->general->sizes.at, n)
        if (!arith_is_const(size->arith, NULL))
            made->size[made->nsize++] =
                (fw_size){size->name, size->range.low, size->range.high,
                          size->range.multiple, problem_number(problem, size->arith)};
}

static fw_problem *bound(Problem *problem, const char *sizes, Diags *diags, char **message)
{
    Binding binding[64];
    int n = 0;
    bool ok = problem->kind &&
              parse_sizes(sizes, problem->arena, binding, COUNTOF(binding), &n, diags) &&
              problem_bind(problem, binding, n, diags);
    api_message(diags, message);
    if (!ok) {
        problem_free(problem);
        return NULL;
    }
    fw_problem *made = xcalloc(1, sizeof *made);
    made->problem = problem;
    made->argument = problem->kind->arguments(problem, problem->arena, &made->nargument);
    made->label = problem_label(problem);
    find_sizes(made);
    return made;
}

static void load_deep(void *user)
{
    Loading *l = user;
    Diags diags = {.arena = arena_new()};
    Problem *problem =
        l->text ? problem_parse(l->name, l->text, &diags) : problem_load(l->name, &diags);
    l->made = bound(problem, l->sizes, &diags, l->message);
}

fw_problem *fw_problem_load(const char *path, const char *sizes, char **message)
{
    Loading loading = {path, NULL, sizes, message, NULL};
    if (!api_given(path, "path", message))
        return NULL;
    deep_call(load_deep, &loading);
    return loading.made;
}

fw_problem *fw_problem_parse(const char *name, const char *text, const char *sizes,
                             char **message)
{
    Loading loading = {name, text, sizes, message, NULL};
    if (!api_given(name, "name", message) || !api_given(text, "text", message))
        return NULL;
    deep_call(load_deep, &loading);
    return loading.made;
}

void fw_problem_free(fw_problem *problem)
{
    if (problem)
        problem_free(problem->problem);
    free(problem);
}

int fw_problem_math(fw_problem *problem, const char *how, char **message)
{
    if (!api_given(problem, "problem", message) || !api_given(how, "how", message))
        return 0;
    Diags diags = {.arena = arena_new()};
    Problem *p = problem->problem;
    Math math;
    if (!p->program)
        diag_error(&diags, span_none, "C035",
                   "a template says in \"options\" how exact float is");
    else if (!math_find(how, &math))
        diag_error(&diags, span_none, "C016",
                   "float is standard, exact, strict or fast, and not `%s`", how);
    else
        p->program->math = p->bound->math = p->general->math = math;
    api_message(&diags, message);
    return !diags.errors;
}

const char *fw_problem_label(const fw_problem *problem)
{
    return problem ? problem->label : NULL;
}

double fw_problem_bytes(const fw_problem *problem)
{
    return problem ? problem_bytes(problem->problem) : 0;
}

int fw_problem_arguments(const fw_problem *problem)
{
    return problem ? problem->nargument : 0;
}

int fw_problem_argument(const fw_problem *problem, int i, fw_argument *argument)
{
    if (!problem || !argument || i < 0 || i >= problem->nargument)
        return 0;
    const Argument *a = &problem->argument[i];
    *argument = (fw_argument){.name = a->name,
                              .type = a->type,
                              .count = a->count,
                              .bytes = a->bytes,
                              .in = a->in,
                              .out = a->out,
                              .image = a->image,
                              .value = a->value};
    return 1;
}

int fw_problem_shape(const fw_problem *problem, int i, int64_t *extent, int room)
{
    if (!problem || i < 0 || i >= problem->nargument || (!extent && room > 0))
        return -1;
    const Argument *a = &problem->argument[i];
    for (int d = 0; d < MIN(a->rank, room); d++)
        extent[d] = a->shape[d];
    return a->rank;
}

int fw_problem_sizes(const fw_problem *problem)
{
    return problem ? problem->nsize : 0;
}

int fw_problem_size(const fw_problem *problem, int i, fw_size *size)
{
    if (!problem || !size || i < 0 || i >= problem->nsize)
        return 0;
    *size = problem->size[i];
    return 1;
}

const char *fw_problem_extent(const fw_problem *problem, int i, int extent)
{
    if (!problem || i < 0 || i >= problem->nargument || extent < 0 ||
        extent >= problem->argument[i].rank || !problem->argument[i].extent)
        return NULL;
    return arith_text(problem->argument[i].extent[extent], problem->problem->arena);
}

// Devices -----------------------------------------------------------------------------

static bool find_device(const char *id, const char *worker, DeviceInfo *info, Diags *diags)
{
    AutoArena *arena = arena_new();
    const char *program = api_worker(worker, arena, diags);
    return program && devices_find(arena, program, NULL, id, info, diags);
}

fw_device *fw_device_open(const char *id, const char *worker, char **message)
{
    if (!api_given(id, "name of the device", message))
        return NULL;
    Diags diags = {.arena = arena_new()};
    fw_device *device = xcalloc(1, sizeof *device);
    bool ok = find_device(id, worker, &device->info, &diags);
    api_message(&diags, message);
    if (ok)
        return device;
    free(device);
    return NULL;
}

fw_device *fw_device_adopt(const char *name, void *queue, char **message)
{
    if (!api_given(name, "kind", message))
        return NULL;
    fw_device *device = xcalloc(1, sizeof *device);
    const DeviceKind *kind = device_kind(name);
    Diags diags = {.arena = arena_new()};
    AutoBuf log = buf_new();
    Device *opened = kind ? kind->adopt(queue, &log) : NULL;
    if (opened) {
        device->info = *kind->info(opened);
        kind->close(opened);
    } else if (!kind) {
        diag_error(&diags, span_none, "C006",
                   "a kind of device is opencl, cuda or host, not `%s`", name);
    } else {
        diag_world(&diags, "C007", "%.*s", (int)strcspn(log.text, "\n"), log.text);
    }
    api_message(&diags, message);
    if (opened)
        return device;
    free(device);
    return NULL;
}

void fw_device_free(fw_device *device)
{
    free(device);
}

const char *fw_device_id(const fw_device *device)
{
    return device ? device->info.id : NULL;
}

const char *fw_device_name(const fw_device *device)
{
    return device ? device->info.name : NULL;
}

const char *fw_device_fingerprint(const fw_device *device)
{
    return device ? device->info.fingerprint : NULL;
}
