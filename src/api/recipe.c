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
    static const char *const word[] = {
        "self", "queue",  "stream", "buffer", "caller", "error",   "bytes",   "out_error",
        "i",    "cost",   "best",   "arg",    "ok",     "scratch", "variant", "malloc",
        "free", "size_t", "NULL",   "stdin",  "stdout", "stderr"};
    static const char *const prefix[] = {"cl_", "CL_", "CU", "FW_"};
    if (FIND_TEXT(word, COUNTOF(word), name) >= 0)
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

// What is put together: launches and scratch buffers of all points of a rule.
typedef struct {
    const Variants *variants;
    Arena *arena;
    Recipe *recipe;
    VEC(JobLaunch) launch;
    VEC(int64_t) scratch;
    VEC(OpenNumber) open;
    Buf source;
} Joining;

static void add_open(Joining *j, OpenKind kind, int i, int k, const Arith *a, int64_t scale)
{
    if (arith_is_const(a, NULL))
        return;
    VEC_PUSH(j->arena, &j->open, (OpenNumber){kind, i, k, arith_text(a, j->arena), scale});
}

// The numbers of a unit's launches, which become those from `first` on.
static void open_unit(Joining *j, const Unit *unit, int first, int first_scratch)
{
    for (int i = 0; i < unit->launches.len; i++) {
        const Launch *launch = &unit->launches.at[i];
        const Kernel *kernel = launch->kernel;
        for (int d = 0; d < 3; d++)
            add_open(j, OPEN_GLOBAL, first + i, d, launch->global[d], 1);
        const Target *target = j->variants->target;
        add_open(j, OPEN_LOCAL, first + i, 0,
                 emit_local_bytes(unit->program->ir->arith, target, kernel), 1);
        for (int k = 0; k < kernel->sizes.len; k++)
            add_open(j, OPEN_ARG, first + i, kernel->params.len + k, launch->size[k], 1);
    }
    for (int i = unit->ninput + unit->noutput; i < unit->buffers.len; i++) {
        const Buffer *buffer = unit->buffers.at[i];
        if (!buffer->formal)
            add_open(j, OPEN_SCRATCH, first_scratch++, 0, buffer->count,
                     target_bytes(j->variants->target, buffer->scalar));
    }
}

static JobLaunch moved(const JobLaunch *from, int callers, int by, Arena *arena)
{
    JobLaunch to = *from;
    JobArg *arg = NEW_ARRAY(arena, JobArg, MAX(from->narg, 1));
    for (int k = 0; k < from->narg; k++) {
        arg[k] = from->arg[k];
        if (job_reads(&arg[k]) && arg[k].buffer >= callers)
            arg[k].buffer += by;
    }
    to.arg = arg;
    return to;
}

static bool add_point(Joining *j, const Point *point, int number, bool alone, Diags *diags)
{
    Recipe *recipe = j->recipe;
    const Problem *problem = j->variants->problem;
    const char *name =
        alone ? problem->name : arena_printf(j->arena, "%s_v%d", problem->name, number);
    Candidate candidate;
    if (!variants_candidate(j->variants, point, name, j->arena, &candidate, diags))
        return false;
    const Job *job = &candidate.job;
    bool ok = !reads_images(job) ||
              diag_error(diags, span_none, "C056",
                         "a kernel that reads images runs in forewarp only");
    if (alone)
        variants_text(j->variants, &candidate, &j->source);
    else
        buf_puts(&j->source, candidate.source.text);
    Variant *variant = &recipe->variant[number];
    *variant = (Variant){j->launch.len, job->nlaunch, j->scratch.len, job->nscratch};
    const Unit *open = problem_is_generic(problem) ? candidate.unit : NULL;
    if (open)
        open_unit(j, open, variant->first, variant->first_scratch);
    for (int i = 0; i < job->nlaunch; i++) {
        JobLaunch launch =
            moved(&job->launch[i], recipe->nargument, j->scratch.len, j->arena);
        launch.kernel = arena_strdup(j->arena, launch.kernel);
        if (open) // that of one size says less than a kernel may need
            launch.local_bytes =
                emit_local_most(j->variants->target, open->launches.at[i].kernel);
        VEC_PUSH(j->arena, &j->launch, launch);
    }
    for (int i = 0; i < job->nscratch; i++)
        VEC_PUSH(j->arena, &j->scratch, job->scratch_bytes[i]);
    recipe->options = arena_strdup(j->arena, job->options);
    recipe->job.named = job->named;
    candidate_release(&candidate);
    return ok;
}

static void add_sizes(Joining *j)
{
    const Problem *problem = j->variants->problem;
    const Program *program = problem->general;
    RecipeSize *size = NEW_ARRAY(j->arena, RecipeSize, program->sizes.len + 1);
    OpenCondition *condition =
        NEW_ARRAY(j->arena, OpenCondition, program->conditions.len + 1);
    VEC_EACH_REF(const SizeDecl *, from, &program->sizes) {
        if (arith_is_const(from->arith, NULL))
            continue;
        const char *name = arena_strdup(j->arena, from->name), *c_name = name;
        while (is_taken(j->recipe->argument, j->recipe->nargument, c_name))
            c_name = arena_printf(j->arena, "%s_", c_name);
        size[j->recipe->nsize++] =
            (RecipeSize){name, c_name, from->range, problem_number(problem, from->arith)};
    }
    VEC_EACH_REF(const Condition *, c, &program->conditions)
        condition[j->recipe->ncondition++] = (OpenCondition){
            arith_text(c->lhs, j->arena), c->rhs ? arith_text(c->rhs, j->arena) : NULL,
            arena_strdup(j->arena, c->why)};
    j->recipe->size = size;
    j->recipe->condition = condition;
    for (int i = 0; i < j->recipe->nargument; i++)
        for (int k = 0; k < j->recipe->argument[i].rank; k++)
            add_open(j, OPEN_SHAPE, i, k, j->recipe->argument[i].extent[k], 1);
}

// A stored rule is a text that anybody may have written.
static bool read_rule(Joining *j, const char *text, Diags *diags)
{
    Recipe *recipe = j->recipe;
    Binding *size = NEW_ARRAY(j->arena, Binding, recipe->nsize + 1);
    for (int i = 0; i < recipe->nsize; i++)
        size[i] = (Binding){.name = recipe->size[i].name, .value = recipe->size[i].value};
    return (rule_parse(text, j->arena, &recipe->rule) &&
            rule_choose(&recipe->rule, size, recipe->nsize) >= 0) ||
           diag_world(diags, "C096", "the stored rule is damaged: %s", text);
}

static bool add_rule(Joining *j, const char *text, Diags *diags)
{
    Recipe *recipe = j->recipe;
    if (!read_rule(j, text, diags))
        return false;
    recipe->nvariant = recipe->rule.n;
    for (int v = 0; v < recipe->nvariant; v++) {
        const char *point = recipe->rule.row[v].point;
        Point at;
        if (!point_parse(j->variants->space, point, &at) ||
            !space_valid(j->variants->space, &at))
            return diag_world(diags, "C096",
                              "the stored rule has no point of this space: %s", point);
        if (!add_point(j, &at, v, recipe->nvariant == 1, diags))
            return false;
    }
    return true;
}

static const char *rule_head(const Joining *j)
{
    Buf text = buf_new();
    buf_printf(&text, "// %s\n//\n// The kernel whose cost is least is run:\n",
               problem_label(j->variants->problem));
    for (int i = 0; i < j->recipe->rule.n; i++) {
        buf_printf(&text, "//   %s_v%d, ", j->variants->problem->name, i);
        rule_print_row(&text, &j->recipe->rule.row[i]);
        buf_putc(&text, '\n');
    }
    buf_printf(&text, "\n%s\n", j->variants->prelude.text);
    return buf_keep(&text, j->arena);
}

bool recipe_make(const Variants *variants, const Point *point, const char *rule,
                 Arena *arena, Recipe *recipe, Diags *diags)
{
    const Problem *problem = variants->problem;
    Joining j = {.variants = variants, .arena = arena, .recipe = recipe};
    *recipe = (Recipe){.problem = arena_strdup(arena, problem_label(problem)),
                       .target = variants->target,
                       .nvariant = 1};
    Argument *argument = problem->kind->arguments(problem, arena, &recipe->nargument);
    name_arguments(argument, recipe->nargument, arena);
    recipe->argument = argument;
    recipe->point =
        rule ? arena_strdup(arena, rule) : point_text(variants->space, point, arena);
    recipe->rule = (Rule){.row = {{.point = recipe->point}}, .n = 1};
    j.source = buf_new();
    if (problem_is_generic(problem))
        add_sizes(&j);
    bool ok = rule ? add_rule(&j, rule, diags) : add_point(&j, point, 0, true, diags);
    const char *head = ok && recipe->nvariant > 1 ? rule_head(&j) : "";
    recipe->source = arena_printf(arena, "%s%s", head, j.source.text);
    recipe->job.launch = j.launch.at;
    recipe->job.nlaunch = j.launch.len;
    recipe->job.scratch_bytes = j.scratch.at;
    recipe->job.nscratch = j.scratch.len;
    recipe->open = j.open.at;
    recipe->nopen = j.open.len;
    buf_release(&j.source);
    return ok;
}

// Loading -----------------------------------------------------------------------------

// A copy of what depends on the sizes of a call is its own.
struct Loaded {
    const Recipe *recipe;
    const DeviceKind *kind;
    Device *device;
    Module *module;
    Mem **scratch;
    int64_t *held; // bytes of those
    Arena *arena;
    ArithCtx *arith; // NULL: no size is generic
    const Arith **open, **lhs, **rhs, *cost[RULE_ROWS];
    int64_t *size;
    Argument *argument;
    JobLaunch *launch;
    JobArg **arg; // of each
    int64_t *scratch_bytes;
    int variant;
};

static void copy_job(Loaded *loaded)
{
    const Recipe *recipe = loaded->recipe;
    const Job *job = &recipe->job;
    Arena *arena = loaded->arena;
    loaded->argument = NEW_ARRAY(arena, Argument, recipe->nargument + 1);
    loaded->launch = NEW_ARRAY(arena, JobLaunch, job->nlaunch + 1);
    loaded->arg = NEW_ARRAY(arena, JobArg *, job->nlaunch + 1);
    loaded->scratch_bytes = NEW_ARRAY(arena, int64_t, job->nscratch + 1);
    for (int i = 0; i < recipe->nargument; i++) {
        Argument *to = &loaded->argument[i];
        *to = recipe->argument[i];
        to->shape = COPY_ARRAY(arena, to->shape, to->rank);
    }
    for (int i = 0; i < job->nlaunch; i++) {
        loaded->launch[i] = moved(&job->launch[i], 0, 0, arena);
        loaded->arg[i] = (JobArg *)loaded->launch[i].arg; // made here
    }
    for (int i = 0; i < job->nscratch; i++)
        loaded->scratch_bytes[i] = job->scratch_bytes[i];
}

static void parse_open(Loaded *loaded)
{
    const Recipe *recipe = loaded->recipe;
    ArithCtx *arith = loaded->arith = arith_ctx_new();
    loaded->open = NEW_ARRAY(loaded->arena, const Arith *, recipe->nopen + 1);
    loaded->lhs = NEW_ARRAY(loaded->arena, const Arith *, recipe->ncondition + 1);
    loaded->rhs = NEW_ARRAY(loaded->arena, const Arith *, recipe->ncondition + 1);
    loaded->size = NEW_ARRAY(loaded->arena, int64_t, recipe->nsize);
    for (int i = 0; i < recipe->nopen; i++)
        loaded->open[i] = arith_parse(arith, recipe->open[i].text);
    if (recipe->nvariant > 1)
        rule_costs(&recipe->rule, arith, loaded->cost);
    for (int i = 0; i < recipe->ncondition; i++) {
        const OpenCondition *c = &recipe->condition[i];
        loaded->lhs[i] = arith_parse(arith, c->lhs);
        loaded->rhs[i] = c->rhs ? arith_parse(arith, c->rhs) : NULL;
    }
}

static bool look_up(void *user, const Arith *var, int64_t *value)
{
    const Loaded *loaded = user;
    int i = FIND(loaded->recipe->size, loaded->recipe->nsize, name, var->name);
    if (i >= 0)
        *value = loaded->size[i];
    return i >= 0;
}

static int64_t number_of(const Loaded *loaded, const Arith *a)
{
    int64_t value;
    if (!arith_eval(a, look_up, (void *)loaded, &value))
        BUG("a number of a recipe without a value");
    return value;
}

static void set_numbers(Loaded *loaded)
{
    const Recipe *recipe = loaded->recipe;
    for (int i = 0; i < recipe->nopen; i++) {
        const OpenNumber *open = &recipe->open[i];
        int64_t value = number_of(loaded, loaded->open[i]) * open->scale;
        switch (open->kind) {
        case OPEN_GLOBAL: loaded->launch[open->i].global[open->k] = value; break;
        case OPEN_LOCAL: loaded->launch[open->i].local_bytes = value; break;
        case OPEN_ARG: loaded->arg[open->i][open->k].number = value; break;
        case OPEN_SCRATCH: loaded->scratch_bytes[open->i] = value; break;
        case OPEN_SHAPE:
            ((int64_t *)loaded->argument[open->i].shape)[open->k] = value;
            break;
        }
    }
    ARRAY_EACH_REF(Argument *, a, loaded->argument, recipe->nargument) {
        int64_t element = a->bytes / MAX(a->count, 1), count = 1;
        for (int k = 0; k < a->rank; k++)
            count *= a->shape[k];
        if (recipe->nsize) {
            a->bytes = count * element;
            a->count = count;
        }
    }
}

// Those of the variant at work, where they are not large enough yet.
static bool make_scratch(Loaded *loaded, Buf *log)
{
    const Variant *variant = &loaded->recipe->variant[loaded->variant];
    for (int n = 0; n < variant->nscratch; n++) {
        int i = variant->first_scratch + n;
        int64_t bytes = loaded->scratch_bytes[i];
        if (loaded->scratch[i] && loaded->held[i] >= bytes)
            continue;
        if (loaded->scratch[i])
            loaded->kind->mem_free(loaded->device, loaded->scratch[i]);
        loaded->scratch[i] = loaded->kind->mem_new(loaded->device, (size_t)bytes, log);
        loaded->held[i] = bytes;
        if (!loaded->scratch[i])
            return false;
    }
    return true;
}

static bool in_range(const Loaded *loaded, const int64_t *size, Buf *log)
{
    const Recipe *recipe = loaded->recipe;
    for (int i = 0; i < recipe->nsize; i++) {
        const RecipeSize *s = &recipe->size[i];
        if (size_within(&s->range, size[i]))
            continue;
        buf_printf(log, "%s: size %s must be from %lld to %lld", recipe->problem, s->name,
                   (long long)s->range.low, (long long)s->range.high);
        if (s->range.multiple > 1)
            buf_printf(log, " and a multiple of %lld", (long long)s->range.multiple);
        buf_printf(log, ", not %lld\n", (long long)size[i]);
        return false;
    }
    return true;
}

static bool fulfils(const Loaded *loaded, Buf *log)
{
    for (int i = 0; i < loaded->recipe->ncondition; i++) {
        int64_t lhs = number_of(loaded, loaded->lhs[i]);
        int64_t rhs = loaded->rhs[i] ? number_of(loaded, loaded->rhs[i]) : 0;
        if (loaded->rhs[i] ? rhs > 0 && lhs % rhs == 0 : lhs >= 0)
            continue;
        buf_printf(log, "%s: %s\n", loaded->recipe->problem,
                   loaded->recipe->condition[i].why);
        return false;
    }
    return true;
}

bool loaded_resize(Loaded *loaded, const int64_t *size, int n, Buf *log)
{
    const Recipe *recipe = loaded->recipe;
    if (n != recipe->nsize) {
        buf_printf(log, "%s has %d generic sizes, not %d\n", recipe->problem, recipe->nsize,
                   n);
        return false;
    }
    size_t bytes = (size_t)n * sizeof *size;
    if (n == 0 || memcmp(size, loaded->size, bytes) == 0)
        return true;
    if (!in_range(loaded, size, log))
        return false;
    AUTO_FREE int64_t *before = xcalloc((size_t)n, sizeof *before);
    memcpy(before, loaded->size, bytes);
    memcpy(loaded->size, size, bytes);
    bool ok = fulfils(loaded, log);
    if (!ok)
        memcpy(loaded->size, before, bytes);
    if (!ok)
        return false;
    set_numbers(loaded);
    if (recipe->nvariant > 1)
        loaded->variant =
            MAX(rule_least(loaded->cost, recipe->nvariant, look_up, loaded), 0);
    return make_scratch(loaded, log);
}

// The sizes of the problem, to begin with.
static bool prepare(Loaded *loaded, Buf *log)
{
    const Recipe *recipe = loaded->recipe;
    size_t n = (size_t)recipe->job.nscratch + 1;
    loaded->arena = arena_new();
    loaded->scratch = xcalloc(n, sizeof *loaded->scratch);
    loaded->held = NEW_ARRAY(loaded->arena, int64_t, recipe->job.nscratch + 1);
    copy_job(loaded);
    if (!recipe->nsize)
        return make_scratch(loaded, log);
    parse_open(loaded);
    int64_t *size = NEW_ARRAY(loaded->arena, int64_t, recipe->nsize);
    for (int i = 0; i < recipe->nsize; i++)
        size[i] = recipe->size[i].value;
    return loaded_resize(loaded, size, recipe->nsize, log);
}

static bool build(Loaded *loaded, Buf *log)
{
    const Recipe *recipe = loaded->recipe;
    DeviceText text = {.source = recipe->source, .options = recipe->options};
    AutoArena *arena = arena_new();
    job_names(&recipe->job, arena, &text);
    DeviceStatus status = loaded->kind->build(loaded->device, &text, &loaded->module, log);
    return status == DEV_OK;
}

Loaded *loaded_new(const Recipe *recipe, void *queue, Buf *log)
{
    Loaded *loaded = xcalloc(1, sizeof *loaded);
    loaded->recipe = recipe;
    loaded->kind = device_kind_of(target_name(recipe->target));
    loaded->device = loaded->kind->adopt(queue, log);
    if (loaded->device && prepare(loaded, log) && build(loaded, log))
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
    arith_ctx_free(loaded->arith);
    if (loaded->arena)
        arena_free(loaded->arena);
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

// Kernels may have written an output before they read what lies there, too. Of handles one
// knows only whether they are the same.
static bool are_apart(const Loaded *loaded, void *const *at, bool handles, Buf *log)
{
    for (int i = 0; i < loaded->recipe->nargument; i++)
        for (int k = 0; k < i; k++) {
            const Argument *a = &loaded->argument[k], *b = &loaded->argument[i];
            const char *from = at[k], *other = at[i];
            bool meet = handles ? from == other
                                : from < other + b->bytes && other < from + a->bytes;
            if (!meet || a->value || b->value || !(a->out || b->out) || !from)
                continue;
            buf_printf(log, "%s and %s overlap, and kernels write %s\n", a->name, b->name,
                       a->out ? a->name : b->name);
            return false;
        }
    return true;
}

// A handle of the caller's, or the address of a value.
static bool lend(const Loaded *loaded, int i, void *const *handle, DeviceArg *lent,
                 Buf *log)
{
    const Argument *a = &loaded->argument[i];
    if (!a->value)
        return loaded->kind->lend(loaded->device, handle, (size_t)a->bytes, lent, log);
    *lent = (DeviceArg){.data = *handle, .bytes = (size_t)a->bytes};
    if (!*handle)
        buf_puts(log, "the address of its value is NULL\n");
    return *handle != NULL;
}

static bool lend_all(const Loaded *loaded, void *const *buffer, int n, DeviceArg *lent,
                     Buf *log)
{
    for (int i = 0; i < n; i++) {
        size_t before = log->len;
        if (lend(loaded, i, &buffer[i], &lent[i], log))
            continue;
        AutoBuf why = buf_new();
        buf_puts(&why, log->text + before);
        log->text[log->len = before] = 0;
        buf_printf(log, "buffer %d (%s): %s", i, loaded->argument[i].name, why.text);
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
        case ARG_VALUE: to[k] = lent[arg->buffer]; break;
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
            to[k].bytes = (size_t)loaded->argument[arg->buffer].bytes;
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
    AUTO_FREE DeviceArg *arg = xcalloc((size_t)from->narg + 1, sizeof *arg);
    AUTO_FREE int32_t *room = xcalloc((size_t)from->narg + 1, sizeof *room);
    AutoArena *arena = arena_new();
    set_args(loaded, from, lent, arg, room, arena);
    DeviceLaunch launch = job_launch(from, arg);
    DeviceStatus status =
        loaded->kind->enqueue(loaded->device, loaded->module, queue, &launch, 1, log);
    return status == DEV_OK;
}

static bool run_all(const Loaded *loaded, void *queue, const DeviceArg *arg, Buf *log)
{
    const Variant *variant = &loaded->recipe->variant[loaded->variant];
    bool ok = true;
    for (int i = 0; ok && i < variant->n; i++)
        ok = run_launch(loaded, queue, &loaded->launch[variant->first + i], arg, log);
    return ok;
}

bool loaded_run(const Loaded *loaded, void *queue, void *const *buffer, int n, Buf *log)
{
    bool handles = language_is(loaded_device(loaded)->target, LANGUAGE_OPENCL);
    if (!takes(loaded->recipe, n, log) || !are_apart(loaded, buffer, handles, log))
        return false;
    AUTO_FREE DeviceArg *lent = xcalloc((size_t)MAX(n, 1), sizeof *lent);
    return lend_all(loaded, buffer, n, lent, log) && run_all(loaded, queue, lent, log);
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

// What the kernels are given for an array, or for the address of a value.
static bool take_argument(const Loaded *loaded, const Argument *a, void *array,
                          DeviceArg *arg, bool *wrapped, Buf *log)
{
    if (!array)
        buf_printf(log, "array %s is NULL\n", a->name);
    else if (a->value)
        *arg = (DeviceArg){.data = array, .bytes = (size_t)a->bytes};
    else
        arg->mem = take_in(loaded, a, array, wrapped, log);
    return arg->mem || arg->data;
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
    if (!takes(recipe, n, log) || !are_apart(loaded, array, false, log))
        return false;
    AUTO_FREE DeviceArg *arg = xcalloc((size_t)MAX(n, 1), sizeof *arg);
    bool *wrapped = xcalloc((size_t)MAX(n, 1), sizeof *wrapped), ok = true;
    for (int i = 0; ok && i < n; i++)
        ok = take_argument(loaded, &loaded->argument[i], array[i], &arg[i], &wrapped[i],
                           log);
    ok = ok && run_all(loaded, kind->queue(loaded->device), arg, log);
    for (int i = 0; i < n; i++) {
        const Argument *a = &loaded->argument[i];
        if (ok && a->out)
            ok = take_out(loaded, a, arg[i].mem, array[i], wrapped[i], log);
    }
    for (int i = 0; i < n; i++)
        if (arg[i].mem)
            kind->mem_free(loaded->device, arg[i].mem);
    free(wrapped);
    return ok;
}

// Compiled for a program without forewarp
// --------------------------------------------------

static bool compile_part(HostPart *part, const DeviceKind *kind, int index, Buf *log)
{
    const Job *job = &part->recipe->job;
    Device *device = (kind->open_compiler ? kind->open_compiler : kind->open)(index, log);
    DeviceText text = {.source = part->recipe->source, .options = part->recipe->options};
    AutoArena *arena = arena_new();
    job_names(job, arena, &text);
    bool ok =
        device && kind->image(device, &text, &part->image, &part->symbols, log) == DEV_OK;
    if (device)
        kind->close(device);
    return ok;
}

bool host_part_compile(HostPart *part, const char *device_id, Diags *diags)
{
    const DeviceKind *kind;
    const char *target = target_name(part->recipe->target);
    int index;
    if (!device_parse(device_id, &kind, &index) || strcmp(kind->target, target) != 0)
        return diag_error(
            diags, span_none, "C057",
            "--binary compiles for a device of this machine, and `%s` does not "
            "take the target %s",
            device_id, target);
    if (!kind->image)
        return diag_error(diags, span_none, "C057",
                          "--binary is not for the target %s, which is compiled with the "
                          "host program",
                          target);
    AutoBuf log = buf_new();
    return compile_part(part, kind, index, &log) ||
           diag_world(diags, "C057", "the kernels do not compile for %s: %s", device_id,
                      log.text);
}

void host_part_release(HostPart *part)
{
    buf_release(&part->image);
    buf_release(&part->symbols);
}
