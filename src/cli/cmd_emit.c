// SPDX-License-Identifier: Apache-2.0
//
// forewarp emit: one candidate, of a point or of a derivation in a file, as text.

#include "api/recipe.h"
#include "calibrate/describe.h"
#include "cli/cli.h"
#include "problem/template.h"

#include <stdlib.h>
#include <string.h>

// What is emitted, and where it comes from.
typedef struct {
    Options *o;
    const Problem *problem;
    DeviceInfo device;
    const Target *target;
    Variants variants;
    Point point;
    Rewriting steps;
    Expr *body;
    KernelOptions options;
    const char **id; // devices of -d, nid of them; NULL: the default
    int nid;
} Emission;

// Reading -----------------------------------------------------------------------------

static bool read_derivation(Emission *e)
{
    Options *o = e->o;
    const char *why;
    const Source *source = source_read(o->derivation, o->arena, &why);
    if (!source)
        return diag_error(&o->diags, span_none, "C016", "cannot read %s: %s", o->derivation,
                          why);
    const Rewriting *steps = derivation_parse(o->arena, source, &o->diags);
    e->body = steps ? derivation_apply(e->problem->general, steps, &o->diags) : NULL;
    if (!e->body)
        return false;
    e->steps = *steps;
    if (!o->point && !o->best)
        derive_natural(e->body, e->device.max_group, e->options.local);
    return true;
}

static bool make_expression(Emission *e)
{
    Options *o = e->o;
    if (!cli_point(o, &e->variants, &e->device, &e->point))
        return false;
    const Derivation *derivation = e->variants.derivation;
    e->options = derive_options(derivation, &e->point);
    if (o->derivation)
        return read_derivation(e);
    e->body = derive_body(derivation, &e->point, &o->diags);
    return e->body && derive_rewriting(derivation, &e->point, &e->steps, &o->diags);
}

// Printing ----------------------------------------------------------------------------

static bool print_kernel(Emission *e, Buf *text)
{
    Options *o = e->o;
    Unit *unit = lower(e->problem->general, e->body, &e->options, o->arena, &o->diags);
    for (int i = 0; unit && i < unit->kernels.len; i++)
        if (!target_has_threads(e->target) && kernel_needs_threads(unit->kernels.at[i]))
            return diag_error(&o->diags, span_none, "C033",
                              "work-items of this kernel wait for each other, which target "
                              "%s cannot express",
                              target_name(e->target));
    const char *why = derive_unfused(e->variants.derivation);
    if (why)
        buf_printf(text, "// A step of the time loop is a kernel of its own: %s.\n", why);
    if (unit)
        emit_unit(text, e->target, unit);
    return unit != NULL;
}

// The program with the lowered expression in place of what it says, for these sizes.
static bool print_expression(Emission *e, Buf *text)
{
    const Program *bound = e->problem->general;
    Program lowered = *bound;
    Function main = *bound->main;
    main.body = e->body;
    lowered.main = &main;
    memset(&lowered.defs, 0, sizeof lowered.defs);
    VEC_PUSH(e->o->arena, &lowered.defs, &main);
    memset(&lowered.sizes, 0, sizeof lowered.sizes);
    for (int i = 0; i < bound->sizes.len; i++)
        if (!arith_is_const(bound->sizes.at[i].arith, NULL))
            VEC_PUSH(e->o->arena, &lowered.sizes, bound->sizes.at[i]);
    ir_print(text, &lowered);
    return true;
}

static bool print_derivation(Emission *e, Buf *text)
{
    if (!e->o->derivation || e->o->point || e->o->best) {
        buf_puts(text, "// --point '");
        point_print(text, e->variants.space, &e->point);
        buf_puts(text, "'\n");
    }
    derivation_print(text, &e->steps);
    return true;
}

typedef bool Print(Emission *e, Buf *text);

static Print *find_print(Options *o)
{
    static const struct {
        const char *name;
        Print *print;
    } known[] = {{"kernel", print_kernel},
                 {"expression", print_expression},
                 {"derivation", print_derivation}};
    int i = FIND(known, COUNTOF(known), name, o->print ? o->print : "kernel");
    if (i >= 0)
        return known[i].print;
    diag_error(&o->diags, span_none, "C017",
               "--print takes kernel, expression or derivation: `%s`", o->print);
    return NULL;
}

// A template or a script has nothing but its kernels.
static bool print_candidate(Emission *e, Buf *text)
{
    Options *o = e->o;
    Candidate candidate;
    if (o->derivation || (o->print && strcmp(o->print, "kernel") != 0))
        return diag_error(&o->diags, span_none, "C033",
                          "a %s has no expression and no derivation",
                          e->problem->kind->name);
    if (!cli_point(o, &e->variants, &e->device, &e->point) ||
        !variants_candidate(&e->variants, &e->point, e->problem->name, o->arena, &candidate,
                            &o->diags))
        return false;
    variants_text(&e->variants, &candidate, text);
    candidate_release(&candidate);
    return true;
}

// Host programs -----------------------------------------------------------------------

// FILE.c and FILE.h.
static bool write_host(Options *o, const HostPart *part, int n)
{
    const char *path = o->nout ? o->out[0] : "";
    size_t len = strlen(path);
    if (len < 3 || strcmp(path + len - 2, ".c") != 0)
        return diag_error(&o->diags, span_none, "C058",
                          "--host writes a C program: name its file with -o FILE.c");
    const char *base = arena_strndup(o->arena, path, len - 2), *slash = strrchr(base, '/');
    AutoBuf header = buf_new(), body = buf_new();
    return recipe_host(part, n, slash ? slash + 1 : base, &header, &body, &o->diags) &&
           cli_write(o, arena_printf(o->arena, "%s.h", base), &header) &&
           cli_write(o, path, &body);
}

// The text of a template is the same for all devices of its language.
static bool find_device(Emission *e)
{
    Options *o = e->o;
    if (!e->problem->template || o->best || o->device_given || o->device_model)
        return cli_device(o, &e->device);
    snprintf(e->device.target, sizeof e->device.target, "%s",
             e->problem->template->language);
    return true;
}

// What a processor allows, as local memory of the size of its cache, no GPU may have.
static void warn_of_limits(Emission *e)
{
    const char *target = target_name(e->target);
    if (e->device.is_cpu && target_has_threads(e->target) &&
        strcmp(target, e->device.target) != 0)
        diag_warning(&e->o->diags, span_none, "C100",
                     "this kernel for target %s keeps to the limits of a processor, %s; "
                     "name the GPU it is for: --device-model nvidia-h200",
                     target, e->device.id);
}

// The i-th of the devices, and the variants of the problem on it.
static bool open_device(Emission *e, int i)
{
    Options *o = e->o;
    o->device = e->id ? e->id[i] : o->device;
    variants_close(&e->variants);
    if (!find_device(e) || !(e->target = cli_target(o, &e->device)))
        return false;
    warn_of_limits(e);
    describe_target(target_name(e->target), &e->device);
    return variants_open(&e->variants, e->problem, &e->device, &o->diags);
}

// One, but for a host program.
static bool list_devices(Emission *e)
{
    Options *o = e->o;
    e->nid = 1;
    if (!o->device_given)
        return true;
    e->nid = cli_devices(o, o->device, &e->id);
    return e->nid && (e->nid == 1 || o->host ||
                      diag_error(&o->diags, span_none, "C059",
                                 "emit takes one device without --host, and this is a "
                                 "list `%s`",
                                 o->device));
}

// The part for a device; with --binary it is also compiled.
static bool make_part(Emission *e, HostPart *part)
{
    Options *o = e->o;
    Recipe *recipe = NEW(o->arena, Recipe);
    const char *rule;
    *part = (HostPart){.recipe = recipe, .device = arena_strdup(o->arena, e->device.name)};
    return cli_rule(o, &e->variants, &e->device, &e->point, &rule) &&
           recipe_make(&e->variants, &e->point, rule, o->arena, recipe, &o->diags) &&
           (!o->binary || host_part_compile(part, e->device.id, &o->diags));
}

static bool emit_host(Emission *e)
{
    Options *o = e->o;
    HostPart part[CLI_LIST_MAX];
    int n = 0;
    bool ok = true;
    if (o->derivation || o->print)
        return diag_error(&o->diags, span_none, "C059",
                          "--host cannot be combined with --derivation or --print");
    while (ok && n < e->nid) {
        ok = (n == 0 || open_device(e, n)) && make_part(e, &part[n]);
        n++;
    }
    ok = ok && write_host(o, part, n);
    for (int i = 0; i < n; i++)
        host_part_release(&part[i]);
    return ok;
}

static bool emit(Emission *e, Print *print)
{
    if (e->o->host)
        return emit_host(e);
    AutoBuf text = buf_new();
    bool ok = e->problem->program ? make_expression(e) && print(e, &text)
                                  : print_candidate(e, &text);
    ok = ok && cli_write(e->o, e->o->nout ? e->o->out[0] : NULL, &text);
    return ok;
}

// A host program takes any value of a generic size, so one that is not given is as good as
// another.
static Problem *host_problem(Options *o)
{
    enum { ANY = 1024 };
    Problem *problem = cli_problem(o, SIZES_LATER);
    const Program *program = problem ? problem->program : NULL;
    const int sizes = program ? program->sizes.len : 0;
    Binding *all = NEW_ARRAY(o->arena, Binding, o->nbinding + sizes + 1);
    int n = o->nbinding;
    for (int i = 0; i < n; i++)
        all[i] = o->binding[i];
    for (int i = 0; i < sizes; i++) {
        const SizeDecl *size = &program->sizes.at[i];
        if (size->generic && size_within(&size->range, ANY) &&
            FIND(o->binding, o->nbinding, name, size->name) < 0)
            all[n++] = (Binding){.name = size->name, .value = ANY};
    }
    return problem && problem_bind(problem, all, n, &o->diags) ? problem : NULL;
}

int cmd_emit(Options *o)
{
    Emission e = {.o = o};
    Print *print = find_print(o);
    // A plan is for numbers; a kernel's text can do without.
    e.problem = !print                ? NULL
                : o->host && !o->best ? host_problem(o)
                                      : cli_problem(o, o->best ? SIZES_ALL : SIZES_OPEN);
    if (!e.problem || !list_devices(&e))
        return 2;
    bool ok = open_device(&e, 0) && emit(&e, print);
    variants_close(&e.variants);
    return ok ? 0 : 2;
}
