// SPDX-License-Identifier: Apache-2.0
//
// Recipes, and running one on the caller's queue. Only a recipe that a worker has run and
// found right should come here: what crashes now takes the caller along.

#include "api/recipe.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Making ------------------------------------------------------------------------------

// Names in the code that `emit --host` prints, and what such names begin with (fw_ is
// reserved anyway).
static bool is_ours(const char *name)
{
    static const char *const word[] = {"self",  "queue",   "stream",    "buffer", "caller",
                                       "error", "bytes",   "out_error", "i",      "arg",
                                       "ok",    "scratch", "malloc",    "free",   "size_t",
                                       "NULL",  "stdin",   "stdout",    "stderr"};
    static const char *const prefix[] = {"cl_", "CL_", "CU", "FW_"};
    for (int i = 0; i < COUNTOF(word); i++)
        if (strcmp(word[i], name) == 0)
            return true;
    for (int i = 0; i < COUNTOF(prefix); i++)
        if (strncmp(prefix[i], name, strlen(prefix[i])) == 0)
            return true;
    return false;
}

bool recipe_reserved(const char *name)
{
    return is_ours(name) || emit_reserved(name);
}

// Also by a name that is the same in capitals, as macros have it.
static bool is_taken(const Argument *argument, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcasecmp(argument[i].name, name) == 0)
            return true;
    return recipe_reserved(name);
}

// A problem file may call an argument anything.
static const char *c_name(const char *name, Arena *arena)
{
    bool bare = isalpha((unsigned char)name[0]) || name[0] == '_';
    char *made = arena_printf(arena, "%s%s", bare ? "" : "a_", name);
    for (char *c = made; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return made;
}

// Each argument gets a name of its own that C allows.
static void name_arguments(Argument *argument, int n, Arena *arena)
{
    for (int i = 0; i < n; i++) {
        argument[i].name = c_name(argument[i].name, arena);
        argument[i].type = arena_strdup(arena, argument[i].type);
        while (is_taken(argument, i, argument[i].name))
            argument[i].name = arena_printf(arena, "%s_", argument[i].name);
    }
}

static bool reads_images(const Job *job)
{
    for (int i = 0; i < job->nlaunch; i++)
        for (int k = 0; k < job->launch[i].narg; k++)
            if (job->launch[i].arg[k].kind == ARG_IMAGE)
                return true;
    return false;
}

bool recipe_make(const Ways *ways, const Point *point, Arena *arena, Recipe *recipe,
                 Diags *diags)
{
    const Problem *problem = ways->problem;
    Candidate candidate;
    if (!ways_candidate(ways, point, problem->name, arena, &candidate, diags))
        return false;
    if (reads_images(&candidate.job)) {
        candidate_release(&candidate);
        return diag_error(diags, span_none, "C056",
                          "a kernel that reads images runs in forewarp only");
    }
    Buf text;
    buf_init(&text);
    ways_text(ways, &candidate, &text);
    *recipe = (Recipe){.problem = arena_strdup(arena, problem_label(problem)),
                       .target = ways->target,
                       .source = arena_strdup(arena, text.text),
                       .options = arena_strdup(arena, candidate.job.options),
                       .job = candidate.job};
    buf_clear(&text);
    point_print(&text, ways->space, point);
    recipe->point = buf_keep(&text, arena);
    recipe->job.prelude = recipe->job.source = recipe->job.options = NULL;
    candidate_release(&candidate);
    Argument *argument = problem->kind->arguments(problem, arena, &recipe->nargument);
    name_arguments(argument, recipe->nargument, arena);
    recipe->argument = argument;
    return true;
}

// Loading -----------------------------------------------------------------------------

struct Loaded {
    const Recipe *recipe;
    const DeviceKind *kind;
    Device *device;
    Module *module;
    Mem **scratch;
};

static bool make_scratch(Loaded *loaded, Buf *log)
{
    const Job *job = &loaded->recipe->job;
    loaded->scratch = xcalloc((size_t)job->nscratch + 1, sizeof *loaded->scratch);
    for (int i = 0; i < job->nscratch; i++) {
        size_t bytes = (size_t)job->scratch_bytes[i];
        loaded->scratch[i] = loaded->kind->mem_new(loaded->device, bytes, log);
        if (!loaded->scratch[i])
            return false;
    }
    return true;
}

static bool build(Loaded *loaded, Buf *log)
{
    const Recipe *recipe = loaded->recipe;
    DeviceText text = {.source = recipe->source, .options = recipe->options};
    Arena *arena = arena_new();
    job_names(&recipe->job, arena, &text);
    DeviceStatus status = loaded->kind->build(loaded->device, &text, &loaded->module, log);
    arena_free(arena);
    return status == DEV_OK;
}

Loaded *loaded_new(const Recipe *recipe, void *queue, Buf *log)
{
    Loaded *loaded = xcalloc(1, sizeof *loaded);
    loaded->recipe = recipe;
    loaded->kind = device_kind_of(target_name(recipe->target));
    loaded->device = loaded->kind->adopt(queue, log);
    if (loaded->device && make_scratch(loaded, log) && build(loaded, log))
        return loaded;
    loaded_free(loaded);
    return NULL;
}

void loaded_free(Loaded *loaded)
{
    if (!loaded)
        return;
    for (int i = 0; loaded->scratch && i < loaded->recipe->job.nscratch; i++)
        if (loaded->scratch[i])
            loaded->kind->mem_free(loaded->device, loaded->scratch[i]);
    if (loaded->module)
        loaded->kind->module_free(loaded->device, loaded->module);
    if (loaded->device)
        loaded->kind->close(loaded->device);
    free(loaded->scratch);
    free(loaded);
}

const DeviceInfo *loaded_device(const Loaded *loaded)
{
    return loaded->kind->info(loaded->device);
}

// Running -----------------------------------------------------------------------------

static bool takes(const Recipe *recipe, int n, Buf *log)
{
    if (n != recipe->nargument)
        buf_printf(log, "%s takes %d buffers, not %d\n", recipe->problem, recipe->nargument,
                   n);
    return n == recipe->nargument;
}

static bool lend_all(const Loaded *loaded, void *const *buffer, int n, DeviceArg *lent,
                     Buf *log)
{
    const Recipe *recipe = loaded->recipe;
    for (int i = 0; i < n; i++) {
        size_t bytes = (size_t)recipe->argument[i].bytes, before = log->len;
        if (loaded->kind->lend(loaded->device, &buffer[i], bytes, &lent[i], log))
            continue;
        Buf why;
        buf_init(&why);
        buf_puts(&why, log->text + before);
        log->text[log->len = before] = 0;
        buf_printf(log, "buffer %d (%s): %s", i, recipe->argument[i].name, why.text);
        buf_release(&why);
        return false;
    }
    return true;
}

// The arguments of one launch; room: where integers are kept.
static void set_args(const Loaded *loaded, const JobLaunch *from, const DeviceArg *lent,
                     DeviceArg *to, int32_t *room, Arena *arena)
{
    int first_scratch = loaded->recipe->nargument;
    for (int k = 0; k < from->narg; k++) {
        const JobArg *arg = &from->arg[k];
        switch (arg->kind) {
        case ARG_BUFFER:
            to[k] = arg->buffer < first_scratch
                        ? lent[arg->buffer]
                        : (DeviceArg){.mem = loaded->scratch[arg->buffer - first_scratch]};
            break;
        case ARG_INT:
            room[k] = (int32_t)arg->number;
            to[k] = (DeviceArg){.data = &room[k], .bytes = sizeof room[k]};
            break;
        case ARG_BITS:
        case ARG_LOCAL:
            to[k] = (DeviceArg){.data = arg->bits, .bytes = (size_t)arg->buffer};
            break;
        case ARG_SYMBOL:
            to[k] = lent[arg->buffer];
            to[k].bytes = (size_t)loaded->recipe->argument[arg->buffer].bytes;
            to[k].symbol = job_symbol(arg, arena);
            break;
        case ARG_SCALAR:
        case ARG_IMAGE: BUG("a scalar or an image as the argument of a recipe");
        }
    }
}

static bool run_launch(const Loaded *loaded, void *queue, const JobLaunch *from,
                       const DeviceArg *lent, Buf *log)
{
    DeviceArg *arg = xcalloc((size_t)from->narg + 1, sizeof *arg);
    int32_t *room = xcalloc((size_t)from->narg + 1, sizeof *room);
    Arena *arena = arena_new();
    set_args(loaded, from, lent, arg, room, arena);
    DeviceLaunch launch = {.kernel = from->kernel,
                           .local_bytes = (size_t)from->local_bytes,
                           .narg = from->narg,
                           .arg = arg};
    for (int d = 0; d < 3; d++) {
        launch.global[d] = (size_t)from->global[d];
        launch.local[d] = (size_t)from->local[d];
    }
    DeviceStatus status =
        loaded->kind->enqueue(loaded->device, loaded->module, queue, &launch, 1, log);
    arena_free(arena);
    free(arg);
    free(room);
    return status == DEV_OK;
}

static bool run_all(const Loaded *loaded, void *queue, const DeviceArg *arg, Buf *log)
{
    const Job *job = &loaded->recipe->job;
    bool ok = true;
    for (int i = 0; ok && i < job->nlaunch; i++)
        ok = run_launch(loaded, queue, &job->launch[i], arg, log);
    return ok;
}

bool loaded_run(const Loaded *loaded, void *queue, void *const *buffer, int n, Buf *log)
{
    if (!takes(loaded->recipe, n, log))
        return false;
    DeviceArg *lent = xcalloc((size_t)MAX(n, 1), sizeof *lent);
    bool ok = lend_all(loaded, buffer, n, lent, log) && run_all(loaded, queue, lent, log);
    free(lent);
    return ok;
}

// On arrays in this process's memory ----------------------------------------------------

// A buffer for an array: where kernels can work in its memory, that; else one with what is
// in it. Kernels expect elements at multiples of their size.
static Mem *take_in(const Loaded *loaded, const Argument *a, void *array, bool *wrapped,
                    Buf *log)
{
    const DeviceKind *kind = loaded->kind;
    size_t bytes = (size_t)a->bytes, element = (size_t)(a->bytes / MAX(a->count, 1));
    bool aligned = element == 0 || (uintptr_t)array % element == 0;
    if (!array) {
        buf_printf(log, "array %s is NULL\n", a->name);
        return NULL;
    }
    Mem *mem = kind->mem_wrap && aligned ? kind->mem_wrap(loaded->device, array, bytes, log)
                                         : NULL;
    *wrapped = mem != NULL;
    if (!mem)
        mem = kind->mem_new(loaded->device, bytes, log);
    if (mem && !*wrapped && a->in &&
        kind->write(loaded->device, mem, array, bytes, log) != DEV_OK) {
        kind->mem_free(loaded->device, mem);
        return NULL;
    }
    return mem;
}

// Mapping waits for the kernels, and shows this process what they wrote.
static bool take_out(const Loaded *loaded, const Argument *a, Mem *mem, void *array,
                     bool wrapped, Buf *log)
{
    const DeviceKind *kind = loaded->kind;
    if (!wrapped)
        return kind->read(loaded->device, mem, array, (size_t)a->bytes, log) == DEV_OK;
    const void *seen = kind->map(loaded->device, mem, (size_t)a->bytes, log);
    if (seen)
        kind->unmap(loaded->device, mem, seen);
    return seen != NULL;
}

bool loaded_run_host(const Loaded *loaded, void *const *array, int n, Buf *log)
{
    const Recipe *recipe = loaded->recipe;
    const DeviceKind *kind = loaded->kind;
    if (!takes(recipe, n, log))
        return false;
    DeviceArg *arg = xcalloc((size_t)MAX(n, 1), sizeof *arg);
    bool *wrapped = xcalloc((size_t)MAX(n, 1), sizeof *wrapped), ok = true;
    for (int i = 0; ok && i < n; i++)
        ok = (arg[i].mem = take_in(loaded, &recipe->argument[i], array[i], &wrapped[i],
                                   log)) != NULL;
    ok = ok && run_all(loaded, kind->queue(loaded->device), arg, log);
    for (int i = 0; i < n; i++) {
        const Argument *a = &recipe->argument[i];
        if (ok && a->out)
            ok = take_out(loaded, a, arg[i].mem, array[i], wrapped[i], log);
    }
    for (int i = 0; i < n; i++)
        if (arg[i].mem)
            kind->mem_free(loaded->device, arg[i].mem);
    free(wrapped);
    free(arg);
    return ok;
}
