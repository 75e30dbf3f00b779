// SPDX-License-Identifier: Apache-2.0
//
// Templates as problems: a point is macros before the user's text and the extents of its
// launches. Candidates are built one by one: their texts define the same names.

#include "problem/template.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double EXTENT_MOST = 0x1p31;

// Loading -----------------------------------------------------------------------------

// What is before the last dot of the file's name, made a name.
static const char *stem(Arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char *name = arena_strndup(arena, base, strcspn(base, "."));
    for (char *p = name; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", *p))
            *p = '_';
    return name[0] ? name : "kernel";
}

static const char *folder_of(Arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    return arena_strndup(arena, path, slash ? (size_t)(slash + 1 - path) : 0);
}

static json_t *parse_json(const Problem *problem, Diags *diags)
{
    json_error_t error;
    json_t *json = json_loadb(problem->source.text, problem->source.len,
                              JSON_REJECT_DUPLICATES, &error);
    uint32_t at = (uint32_t)MIN((size_t)MAX(error.position, 0), problem->source.len);
    if (!json)
        diag_error(diags, (Span){&problem->source, at > 0 ? at - 1 : 0, at}, "J001", "%s",
                   error.text);
    return json;
}

// Longer lists are refused, because each name is searched among all others. Lists of
// numbers are values of a parameter, which have a limit of their own.
enum { ITEMS_MOST = 1000 };

static bool is_crowded(const json_t *json)
{
    const char *key;
    json_t *item;
    size_t i, others = json_object_size(json);
    json_array_foreach(json, i, item)
    {
        others += !json_is_number(item);
        if (is_crowded(item))
            return true;
    }
    json_object_foreach((json_t *)json, key, item) if (is_crowded(item)) return true;
    return others > ITEMS_MOST;
}

bool template_load(Problem *problem, Diags *diags)
{
    Arena *arena = problem->arena;
    Template *t = problem->template = NEW(arena, Template);
    t->problem = problem;
    t->arena = arena;
    t->path = problem->source.name;
    t->folder = folder_of(arena, t->path);
    t->options = t->include = "";
    t->language = language_name[LANGUAGE_OPENCL];
    t->tolerance = 1e-4;
    t->sizes = space_new();
    problem->name = stem(arena, t->path);
    t->json = parse_json(problem, diags);
    if (!t->json)
        return false;
    if (is_crowded(t->json))
        return diag_error(diags, span_none, "J001",
                          "%s holds a list or an object of more than %d items", t->path,
                          ITEMS_MOST);
    bool t1 = json_object_get(t->json, "ConfigurationSpace") ||
              json_object_get(t->json, "KernelSpecification");
    return t1 ? template_read_t1(t, diags) : template_read(t, diags);
}

void template_uncheck(Template *t)
{
    t->reference = (TemplateReference){.kind = REFERENCE_NONE};
    json_object_set_new(t->json, "reference", json_string("none")); // another problem
}

static void template_free(Problem *problem)
{
    template_unbind(problem->template);
}

// Jobs --------------------------------------------------------------------------------

// `-O{LEVEL}`: parameters and sizes in braces stand for their values.
static const char *options_at(const Template *t, const Point *point, Arena *arena)
{
    Buf out = buf_new();
    for (const char *c = t->options; *c;) {
        const char *close = *c == '{' ? strchr(c, '}') : NULL;
        char *name = close ? arena_strndup(arena, c + 1, (size_t)(close - c - 1)) : NULL;
        if (name && template_value_print(t, point, name, &out))
            c = close + 1;
        else
            buf_putc(&out, *c++);
    }
    buf_printf(&out, "%s%s", out.len && t->include[0] ? " " : "", t->include);
    return buf_keep(&out, arena);
}

bool template_job(const Template *t, const TemplateLaunch *launch, int nlaunch,
                  const Point *point, Arena *arena, Job *job, Diags *diags)
{
    *job = (Job){.prelude = "",
                 .source = t->text,
                 .options = options_at(t, point, arena),
                 .named = language_is(t->language, LANGUAGE_CUDA)};
    return template_launches(t, launch, nlaunch, point, arena, job, diags);
}

// What Kernel Tuner defines before a kernel, where the file is of its form.
static void kernel_tuner_macros(const Template *t, const JobLaunch *launch, Buf *out)
{
    static const char axis[] = "xyz";
    buf_puts(out, "#define kernel_tuner 1\n");
    for (int d = 0; d < DIMS_MAX; d++) {
        const char *name = arena_printf(t->arena, "block_size_%c", axis[d]);
        buf_printf(out, "#define grid_size_%c %" PRId64 "\n", axis[d],
                   launch->global[d] / launch->local[d]);
        if (space_find(t->space, name) < 0)
            buf_printf(out, "#define %s %" PRId64 "\n", name, launch->local[d]);
    }
}

// Variants --------------------------------------------------------------------------------

bool template_fits(const Template *t, const char *target, Diags *diags)
{
    return strcmp(target, t->language) == 0 ||
           diag_error(diags, span_none, "J009", "%s is written in %s, not in %s", t->path,
                      t->language, target);
}

static bool template_open(Variants *variants, const DeviceInfo *device, Diags *diags)
{
    variants->space = variants->problem->template->space;
    return template_fits(variants->problem->template, device->target, diags);
}

static void template_close(Variants *variants)
{
    // the space is the template's
}

static int template_first(const Variants *variants, Point *point, int max)
{
    *point = variants->problem->template->plain;
    return MIN(1, max);
}

static bool template_candidate(const Variants *variants, const Point *point,
                               const char *name, Arena *arena, Candidate *candidate,
                               Diags *diags)
{
    // the kernel is called what its author calls it
    const Template *t = variants->problem->template;
    candidate->source = buf_new();
    Job *job = &candidate->job;
    if (!template_job(t, t->launch.at, t->launch.len, point, arena, job, diags)) {
        candidate_release(candidate);
        return false;
    }
    if (t->kernel_tuner)
        kernel_tuner_macros(t, &job->launch[0], &candidate->source);
    template_macros(t, t->text, point, &candidate->source);
    if (t->include[0]) // what compilers keep depends on it
        buf_printf(&candidate->source, "// includes %016" PRIx64 "\n",
                   template_included(t));
    job->prelude = candidate->source.text;
    if (language_is(t->language, LANGUAGE_C)) {
        Buf text = buf_new();
        buf_puts(&text, t->text);
        template_entries(t, t->launch.at, t->launch.len, point, &text);
        job->source = buf_keep(&text, arena);
    }
    return true;
}

static bool template_shape(const void *user, const Point *point, LaunchShape *shape)
{
    const Template *t = ((const Variants *)user)->problem->template;
    const TemplateLaunch *launch = template_first_launch(t);
    bool right = true;
    *shape = (LaunchShape){{1, 1, 1}, {1, 1, 1}};
    if (!launch->global[0]) // a C function
        return true;
    for (int d = 0; d < DIMS_MAX; d++) {
        double items = space_evaluate(t->scope, launch->local_expr[d], point);
        double global = space_evaluate(t->scope, launch->global_expr[d], point);
        shape->local[d] = items;
        shape->groups[d] = launch->groups ? global : ceil(global / items);
        right = right && items >= 1 && items <= EXTENT_MOST && global >= 1 &&
                global <= EXTENT_MOST;
    }
    return right;
}

static void print_extent(Buf *text, const char *what, const int64_t x[3])
{
    buf_printf(text, " %s %" PRId64 " x %" PRId64 " x %" PRId64, what, x[0], x[1], x[2]);
}

// A name of the user's in a line of a comment, which it cannot end.
static void put_comment(Buf *text, const char *name)
{
    size_t start = text->len;
    buf_shown(text, name, strlen(name));
    for (; start < text->len; start++)
        if (text->text[start] == '\n' || text->text[start] == '\\')
            text->text[start] = '?';
}

enum { SHOWN_MOST = 100 };

// The user's text after the point's macros, with its launches in a comment.
static void template_text(const Variants *variants, const Candidate *candidate, Buf *text)
{
    const Template *t = variants->problem->template;
    buf_puts(text, "// ");
    put_comment(text, problem_label(variants->problem));
    buf_puts(text, "\n//\n// Launches, global in work-items:\n");
    ARRAY_EACH_REF(const JobLaunch *, launch, candidate->job.launch,
                   MIN(candidate->job.nlaunch, SHOWN_MOST)) {
        buf_puts(text, "//   ");
        put_comment(text, launch->kernel);
        print_extent(text, "global", launch->global);
        print_extent(text, "local", launch->local);
        if (launch->local_bytes)
            buf_printf(text, " shared %" PRId64 " bytes", launch->local_bytes);
        buf_putc(text, '\n');
    }
    if (candidate->job.nlaunch > SHOWN_MOST)
        buf_printf(text, "//   and %d more\n", candidate->job.nlaunch - SHOWN_MOST);
    const char *options = candidate->job.options;
    buf_puts(text, options[0] ? "// Options: " : "");
    for (const char *c = options; *c; c++)
        buf_putc(text, (unsigned char)*c < ' ' ? ' ' : *c); // a line of a comment
    buf_printf(text, "%s\n%s\n%s", options[0] ? "\n" : "", candidate->source.text, t->text);
}

const ProblemKind problem_template = {.name = "template",
                                      .strategy = "auto",
                                      .limit_s = TRIAL_LIMIT_S,
                                      .bind = template_bind,
                                      .free = template_free,
                                      .hash = template_hash,
                                      .bytes = template_bytes,
                                      .arguments = template_arguments,
                                      .data = template_data,
                                      .expect = template_expect,
                                      .write = template_write,
                                      .open = template_open,
                                      .close = template_close,
                                      .first = template_first,
                                      .candidate = template_candidate,
                                      .text = template_text,
                                      .shape = template_shape};
