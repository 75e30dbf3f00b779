// SPDX-License-Identifier: Apache-2.0
//
// Recipes as a C program that runs them without forewarp: a header and a body, for the
// recipes' target. The tables (kernels, launches, arguments, sizes) are printed, for each
// device its own; the code that walks them is a text with places for names (host/*.txt).
//
// C99, without warnings; it allocates in open only, and keeps no global state.

#include "api/host_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

// A text inside a comment, which it neither ends nor breaks.
static void put_comment(Buf *out, const char *text)
{
    for (char before = 0; *text; before = *text++) {
        bool joins = (before == '*' && *text == '/') || (before == '/' && *text == '*') ||
                     (before == '?' && *text == '?');
        buf_puts(out, joins ? " " : "");
        buf_putc(out, (unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text);
    }
}

// "Point: lx=64", or a line for each device.
static void put_points(Buf *out, const Host *host)
{
    buf_puts(out, host->n > 1 ? "Points:" : "Point: ");
    for (int i = 0; i < host->n; i++) {
        if (host->n > 1) {
            buf_puts(out, "\n *   ");
            put_comment(out, host->part[i].device);
            buf_puts(out, ": ");
        }
        put_comment(out, host->part[i].recipe->point);
    }
}

static void put_text(Buf *out, const Host *host, const char *text)
{
    for (; *text; text++) {
        if (*text != '$') {
            buf_putc(out, *text);
            continue;
        }
        switch (*++text) {
        case 'n': buf_puts(out, host->name); break;
        case 'N': buf_puts(out, host->upper.text); break;
        case 'h': buf_puts(out, host->handles.text); break;
        case 'b': buf_puts(out, host->bytes.text); break;
        case 't': buf_puts(out, host->tables.text); break;
        case 'v': buf_puts(out, host->values.text); break;
        case 'a': buf_puts(out, host->places.text); break;
        case 'z': buf_puts(out, host->sizes.text); break;
        case 'y': buf_puts(out, host->named.text); break;
        case 'q': buf_puts(out, host->params.text); break;
        case 'r': buf_puts(out, host->resize.text); break;
        case 's': buf_puts(out, host->stem); break;
        case 'P': put_comment(out, host->recipe->problem); break;
        case 'p': put_points(out, host); break;
        case 'V': buf_puts(out, FW_VERSION); break;
        default: BUG("no $%c in the text of a host program", *text);
        }
    }
}

void host_lines(Buf *out, const Host *host, const char *const *line)
{
    for (; *line; line++)
        put_text(out, host, *line);
}

// Generic sizes -------------------------------------------------------------------------

static const char *size_name(const Recipe *recipe, const char *name)
{
    int i = FIND(recipe->size, recipe->nsize, name, name);
    if (i < 0)
        BUG("no size %s", name);
    return recipe->size[i].c_name;
}

static void put_number(Buf *out, const Recipe *recipe, const Arith *a)
{
    static const char *const fun[] = {
        [A_DIV] = "FW_DIV", [A_MOD] = "FW_MOD", [A_MIN] = "FW_MIN", [A_MAX] = "FW_MAX"};
    switch (a->kind) {
    case A_CONST: buf_printf(out, "%" PRId64, a->value); return;
    case A_VAR: buf_printf(out, "(%s)", size_name(recipe, a->name)); return;
    case A_SUM:
    case A_PROD:
        buf_putc(out, '(');
        for (int i = 0; i < a->n; i++) {
            buf_puts(out, !i ? "" : a->kind == A_SUM ? " + " : "*");
            if (a->term[i].coef != 1)
                buf_printf(out, "%" PRId64 "*", a->term[i].coef);
            put_number(out, recipe, a->term[i].arg);
        }
        if (a->kind == A_SUM && a->value)
            buf_printf(out, " + %" PRId64, a->value);
        buf_putc(out, ')');
        return;
    case A_DIV:
    case A_MOD:
    case A_MIN:
    case A_MAX:
        buf_printf(out, "%s(", fun[a->kind]);
        put_number(out, recipe, a->term[0].arg);
        buf_puts(out, ", ");
        put_number(out, recipe, a->term[1].arg);
        buf_putc(out, ')');
        return;
    }
}

// A formula of the sizes as C.
static void put_formula(Buf *out, const Recipe *recipe, const char *text)
{
    ArithCtx *ctx = arith_ctx_new();
    put_number(out, recipe, arith_parse(ctx, text));
    arith_ctx_free(ctx);
}

static const OpenNumber *find_open(const Recipe *recipe, OpenKind kind, int i, int k)
{
    ARRAY_EACH_REF(const OpenNumber *, open, recipe->open, recipe->nopen)
        if (open->kind == kind && open->i == i && open->k == k)
            return open;
    return NULL;
}

static void put_open(Buf *out, const Recipe *recipe, const OpenNumber *open)
{
    if (open->scale != 1)
        buf_printf(out, "%" PRId64 "*", open->scale);
    put_formula(out, recipe, open->text);
}

// Bytes of an argument, of its extents.
static void put_argument_bytes(Buf *out, const Recipe *recipe, int i)
{
    const Argument *a = &recipe->argument[i];
    buf_printf(out, "%" PRId64, a->bytes / MAX(a->count, 1));
    for (int k = 0; k < a->rank; k++) {
        const OpenNumber *open = find_open(recipe, OPEN_SHAPE, i, k);
        buf_putc(out, '*');
        if (open)
            put_open(out, recipe, open);
        else
            buf_printf(out, "%" PRId64, a->shape[k]);
    }
}

static void put_checks(Buf *out, const Recipe *recipe)
{
    ARRAY_EACH_REF(const RecipeSize *, size, recipe->size, recipe->nsize) {
        buf_printf(out, "    if (%s < %" PRId64 " || %s > %" PRId64, size->c_name,
                   size->range.low, size->c_name, size->range.high);
        if (size->range.multiple > 1)
            buf_printf(out, " || %s %% %" PRId64 " != 0", size->c_name,
                       size->range.multiple);
        buf_puts(out, ")\n        return 0;\n");
    }
    ARRAY_EACH_REF(const OpenCondition *, c, recipe->condition, recipe->ncondition) {
        buf_puts(out, "    if (");
        put_formula(out, recipe, c->lhs);
        if (c->rhs) {
            buf_puts(out, " % ");
            put_formula(out, recipe, c->rhs);
        }
        buf_puts(out, c->rhs ? " != 0)" : " < 0)");
        buf_puts(out, "\n        return 0;\n");
    }
}

static void put_cost_number(Buf *out, const Arith *a, const void *recipe)
{
    put_number(out, recipe, a);
}

// The function that chooses a variant. FW_DIV rounds down.
static void put_costs(Buf *out, const Recipe *recipe, int number)
{
    ArithCtx *ctx = arith_ctx_new();
    buf_printf(
        out,
        "\n/* Nanoseconds that each kernel should take, as fitted to the times of its "
        "tuning: the kernel\n * that should take least is run. */\nstatic int "
        "fw_choose%d(",
        number);
    for (int i = 0; i < recipe->nsize; i++)
        buf_printf(out, "%slong long %s", i ? ", " : "", recipe->size[i].c_name);
    buf_puts(out, ")\n{\n");
    for (int i = 0; i < recipe->nsize; i++)
        buf_printf(out, "    (void)%s;\n", recipe->size[i].c_name);
    buf_puts(out, "    const double cost[] = {\n");
    for (int i = 0; i < recipe->rule.n; i++) {
        buf_puts(out, "        /* ");
        put_comment(out, recipe->rule.row[i].point);
        buf_puts(out, " */\n        ");
        rule_print_cost(out, arith_parse(ctx, recipe->rule.row[i].cost), "\n            + ",
                        put_cost_number, recipe);
        buf_puts(out, ",\n");
    }
    buf_printf(
        out,
        "    };\n    int best = 0;\n    for (int i = 1; i < %d; i++)\n        best = "
        "cost[i] < cost[best] ? i : best;\n    return best;\n}\n",
        recipe->rule.n);
    arith_ctx_free(ctx);
}

static void put_settings(Buf *out, const Recipe *recipe)
{
    for (int i = 0; i < recipe->nargument; i++) {
        if (!host_is_buffer(&recipe->argument[i]))
            continue;
        buf_printf(out, "    self->bytes[%d] = (size_t)(", i);
        put_argument_bytes(out, recipe, i);
        buf_puts(out, ");\n");
    }
    for (int n = 0; n < recipe->nopen; n++) {
        const OpenNumber *open = &recipe->open[n];
        switch (open->kind) {
        case OPEN_GLOBAL:
            buf_printf(out, "    self->global[%d][%d] = (size_t)(", open->i, open->k);
            break;
        case OPEN_LOCAL:
            buf_printf(out, "    self->local_bytes[%d] = (size_t)(", open->i);
            break;
        case OPEN_ARG:
            buf_printf(out, "    self->value[%d] = (unsigned long long)(",
                       host_first_arg(&recipe->job, open->i) + open->k);
            break;
        case OPEN_SCRATCH:
            buf_printf(out, "    self->bytes[%d] = (size_t)(", recipe->nargument + open->i);
            break;
        case OPEN_SHAPE: continue;
        }
        put_open(out, recipe, open);
        buf_puts(out, ");\n");
    }
}

// What formulas call, as far as text has calls: macros, because the header needs some of
// them, too. Several headers may define them.
static void put_helpers(Buf *out, const char *text)
{
    static const struct {
        const char *name, *body;
    } helper[] = {{"FW_DIV", "(((a) - ((a)%(b) + (b))%(b))/(b))"},
                  {"FW_MOD", "(((a)%(b) + (b))%(b))"},
                  {"FW_MIN", "((a) < (b) ? (a) : (b))"},
                  {"FW_MAX", "((a) > (b) ? (a) : (b))"}};
    for (int i = 0; i < COUNTOF(helper); i++)
        if (strstr(text, helper[i].name))
            buf_printf(out, "#ifndef %s\n#define %s(a, b) %s\n#endif\n", helper[i].name,
                       helper[i].name, helper[i].body);
}

static void describe_sizes(Host *host)
{
    const Recipe *recipe = host->recipe;
    for (int i = 0; i < recipe->nsize; i++) {
        buf_printf(&host->sizes, "long long %s, ", recipe->size[i].c_name);
        buf_printf(&host->named, ", %s", recipe->size[i].c_name);
        buf_printf(&host->params, ", long long %s", recipe->size[i].c_name);
    }
}

static void put_resize(Host *host, int number)
{
    const Recipe *recipe = host->part[number].recipe;
    Buf *out = &host->resize;
    if (recipe->nvariant > 1)
        put_costs(out, recipe, number);
    buf_printf(out, "\nstatic int fw_resize%d(%s *self%s)\n{\n%s", number, host->name,
               host->params.text, recipe->nsize ? "" : "    (void)self;\n");
    put_checks(out, recipe);
    if (recipe->nvariant > 1)
        buf_printf(out, "    self->variant = fw_choose%d(%s);\n", number,
                   host->named.text + 2);
    if (recipe->nsize)
        put_settings(out, recipe);
    buf_puts(out, "    return 1;\n}\n");
}

static void put_resizes(Host *host)
{
    Buf helpers = buf_new();
    for (int i = 0; i < host->n; i++)
        put_resize(host, i);
    put_helpers(&helpers, host->resize.text);
    buf_puts(&helpers,
             "/* Each sets what depends on the sizes; 0: one is not in its range. */");
    buf_puts(&helpers, host->resize.text);
    buf_release(&host->resize);
    host->resize = helpers;
}

// C -----------------------------------------------------------------------------------

static void put_c_call(Buf *out, int number, const Host *host)
{
    const JobLaunch *launch = &host->recipe->job.launch[number];
    int callers = host->recipe->nargument;
    for (int k = 0; k < launch->narg; k++) {
        const OpenNumber *open = find_open(host->recipe, OPEN_ARG, number, k);
        if (!job_reads(&launch->arg[k]) && !open)
            buf_printf(out, "    const unsigned long long v%d = 0x%" PRIx64 "u;\n", k,
                       (uint64_t)launch->arg[k].number);
        if (open) {
            buf_printf(out, "    const unsigned long long v%d = (unsigned long long)(", k);
            put_open(out, host->recipe, open);
            buf_puts(out, ");\n");
        }
    }
    buf_puts(out, "    void *const arg[] = {");
    for (int k = 0; k < launch->narg; k++) {
        const JobArg *arg = &launch->arg[k];
        buf_puts(out, k ? ", " : "");
        if (!job_reads(arg))
            buf_printf(out, "(void *)&v%d", k);
        else
            buf_printf(out, arg->buffer < callers ? "caller[%d]" : "scratch[%d]",
                       arg->buffer < callers ? arg->buffer : arg->buffer - callers);
    }
    buf_printf(out, "%s};\n    %s_entry(arg);\n", launch->narg ? "" : "NULL",
               launch->kernel);
}

// The kernels' text, with its entries static: two such programs may be linked together.
static void put_c_kernels(Buf *out, const Recipe *recipe)
{
    static const char entry[] = "_entry(void *const *arg)\n";
    for (const char *line = recipe->source; *line;) {
        size_t n = strcspn(line, "\n") + 1;
        bool last = !line[n - 1],
             is_entry = n > sizeof entry && !last && memcmp(line, "void ", 5) == 0 &&
                        memcmp(line + n - strlen(entry), entry, strlen(entry)) == 0;
        buf_puts(out, is_entry ? "static " : "");
        buf_write(out, line, n - last);
        line += n - last;
    }
    buf_putc(out, '\n');
}

// A parameter more for each size, of which not all launches ask.
static void put_size_params(Buf *out, const Recipe *recipe, bool uses)
{
    for (int i = 0; i < recipe->nsize; i++)
        buf_printf(out, uses ? ", (void)%s" : ", long long %s", recipe->size[i].c_name);
}

static void put_c_variant(Buf *out, const Recipe *recipe, int variant, const char *named)
{
    const Variant *v = &recipe->variant[variant];
    for (int i = 0; i < v->n; i++)
        buf_printf(out, "%s        fw_launch%d(caller, scratch%s);\n",
                   recipe->nvariant > 1 ? "    " : "", v->first + i, named);
}

// Memory for what lies between kernels, of the variants in use.
static void put_c_scratch(Buf *out, const Recipe *recipe)
{
    const Job *job = &recipe->job;
    buf_puts(out, "    const size_t bytes[] = {");
    for (int i = 0; i < job->nscratch; i++) {
        const OpenNumber *open = find_open(recipe, OPEN_SCRATCH, i, 0);
        buf_puts(out, open ? "(size_t)(" : "");
        if (open)
            put_open(out, recipe, open);
        else
            buf_printf(out, "%" PRId64, job->scratch_bytes[i]);
        buf_puts(out, open ? "), " : ", ");
    }
    buf_printf(out, "0};\n    void *scratch[%d] = {NULL};\n    int ok = 1;\n",
               job->nscratch + 1);
}

static void put_c_run(Buf *out, const Host *host)
{
    const Recipe *recipe = host->recipe;
    int n = recipe->job.nscratch;
    put_text(out, host, "int $n_run($z$h)\n{\n");
    put_c_scratch(out, recipe);
    buf_puts(out, "    void *const caller[] = {");
    for (int i = 0; i < recipe->nargument; i++)
        buf_printf(out, "%s(void *)%s%s", i ? ", " : "",
                   recipe->argument[i].value ? "&" : "", recipe->argument[i].name);
    buf_puts(out, "};\n");
    put_checks(out, recipe);
    if (recipe->nvariant > 1)
        buf_printf(out, "    const int variant = fw_choose0(%s);\n", host->named.text + 2);
    buf_printf(out,
               "    for (int i = 0; i < %d; i++)\n        ok = ok && caller[i];\n"
               "    for (int i = 0; i < %d; i++)\n        ok = (scratch[i] = "
               "malloc(bytes[i])) && ok;\n    if (ok) {\n",
               recipe->nargument, n);
    for (int v = 0; v < recipe->nvariant; v++) {
        if (recipe->nvariant > 1)
            buf_printf(out, "        if (variant == %d) {\n", v);
        put_c_variant(out, recipe, v, host->named.text);
        buf_puts(out, recipe->nvariant > 1 ? "        }\n" : "");
    }
    buf_printf(out,
               "    }\n    for (int i = 0; i < %d; i++)\n        free(scratch[i]);\n"
               "    return ok;\n}\n",
               n);
}

// Each launch is a function of its own: there may be thousands, of few kinds.
static void put_c_body(Buf *out, const Host *host)
{
    const Recipe *recipe = host->recipe;
    AutoBuf rest = buf_new();
    for (int i = 0; i < recipe->job.nlaunch; i++) {
        buf_printf(&rest,
                   "static void fw_launch%d(void *const *caller, void *const *scratch", i);
        put_size_params(&rest, recipe, false);
        buf_puts(&rest, ")\n{\n    (void)caller, (void)scratch");
        put_size_params(&rest, recipe, true);
        buf_puts(&rest, ";\n");
        put_c_call(&rest, i, host);
        buf_puts(&rest, "}\n\n");
    }
    if (recipe->nvariant > 1)
        put_costs(&rest, recipe, 0);
    put_c_run(&rest, host);
    put_text(out, host,
             "/* Generated by forewarp $V: see $s.h. */\n#include \"$s.h\"\n\n"
             "#include <stdlib.h>\n\n");
    put_c_kernels(out, recipe);
    put_helpers(out, rest.text);
    buf_puts(out, rest.text);
}

// Targets -----------------------------------------------------------------------------

static const char *const opencl_header[] = {
#include "api/host/opencl.h.inc"
    NULL};
static const char *const opencl_body[] = {
#include "api/host/opencl.c.inc"
    NULL};
static const char *const cuda_header[] = {
#include "api/host/cuda.h.inc"
    NULL};
static const char *const cuda_body[] = {
#include "api/host/cuda.c.inc"
#include "api/host/driver.c.inc"
    NULL};
static const char *const hip_header[] = {
#include "api/host/hip.h.inc"
    NULL};
static const char *const hip_body[] = {
#include "api/host/hip.c.inc"
// Its names come before what uses them: clang-format does not sort across this line.
#include "api/host/driver.c.inc"
    NULL};
static const char *const c_header[] = {
#include "api/host/c.h.inc"
    NULL};

static const struct {
    const char *target;
    const char *in, *out;                    // types of the caller's buffers
    const char *const *header, *const *body; // body NULL: put_c_body
} hosts[] = {
    {"opencl", "cl_mem ", "cl_mem ", opencl_header, opencl_body},
    {"cuda", "CUdeviceptr ", "CUdeviceptr ", cuda_header, cuda_body},
    {"hip", "hipDeviceptr_t ", "hipDeviceptr_t ", hip_header, hip_body},
    {"c", "const void *", "void *", c_header, NULL},
};

// Is there a function stem_run in a text of C?
static bool runs_already(const char *source, const char *stem)
{
    AutoBuf run = buf_new();
    buf_printf(&run, "%s_run", stem);
    return strstr(source, run.text) != NULL;
}

// What the functions are called: the stem, as C allows, unless a kernel's text of C, which
// stands in the same file, is first.
static void set_name(const char *stem, const Recipe *recipe, char *name, size_t size)
{
    bool c = language_is(target_name(recipe->target), LANGUAGE_C);
    bool bare = isalpha((unsigned char)stem[0]) && !recipe_reserved(stem) &&
                !(c && runs_already(recipe->source, stem));
    snprintf(name, size, "%s%s", bare ? "" : "fw_", stem);
    for (; *name; name++)
        if (!isalnum((unsigned char)*name))
            *name = '_';
}

static void put_upper(Buf *out, const char *name)
{
    for (; *name; name++)
        buf_putc(out, (char)toupper((unsigned char)*name));
}

// The type of a value in C; of a half or a bf16, which C has no word for, of its bits.
static const char *value_type(const Argument *argument)
{
    static const struct {
        const char *opencl, *c;
    } type[] = {{"char", "signed char "},
                {"uchar", "unsigned char "},
                {"short", "short "},
                {"ushort", "unsigned short "},
                {"half", "unsigned short "},
                {"int", "int "},
                {"uint", "unsigned int "},
                {"long", "long long "},
                {"ulong", "unsigned long long "},
                {"float", "float "},
                {"double", "double "}};
    int i = FIND(type, COUNTOF(type), opencl, argument->type);
    if (i < 0)
        BUG("a value of type %s", argument->type);
    return type[i].c;
}

static void describe_arguments(Host *host, const char *in, const char *out, Buf *bytes)
{
    const Recipe *recipe = host->recipe;
    for (int i = 0; i < recipe->nargument; i++) {
        const Argument *a = &recipe->argument[i];
        buf_printf(&host->handles, "%s%s%s", i ? ", " : "",
                   a->value ? value_type(a)
                   : a->out ? out
                            : in,
                   a->name);
        buf_printf(&host->values, "%s%s", i ? ", " : "", a->name);
        buf_printf(&host->places, "%s&%s", i ? ", " : "", a->name);
        if (a->value)
            continue;
        const char *way = a->in && a->out ? "in and out" : a->out ? "out" : "in";
        buf_printf(bytes, "#define %s_", host->upper.text);
        put_upper(bytes, a->name);
        if (recipe->nsize) {
            buf_printf(bytes, "_BYTES(%s) ((size_t)", host->named.text + 2);
            put_argument_bytes(bytes, recipe, i);
            buf_printf(bytes, ") /* %s, of %s */\n", way, a->type);
            continue;
        }
        buf_printf(bytes, "_BYTES ((size_t)%" PRId64 ") /* %s, %" PRId64 " of %s%s */\n",
                   a->bytes, way, a->count, a->type, a->image ? ", an image" : "");
    }
}

static void describe(Host *host, const char *in, const char *out)
{
    AutoBuf bytes = buf_new();
    describe_arguments(host, in, out, &bytes);
    put_helpers(&host->bytes, bytes.text);
    buf_puts(&host->bytes, bytes.text);
}

// The body includes "stem.h": what an #include cannot name is no stem.
static bool check_stem(const char *stem, Diags *diags)
{
    bool ok = stem[0] && !strpbrk(stem, "\"\\/?*");
    for (const char *c = stem; *c; c++)
        ok = ok && (unsigned char)*c >= ' ' && *c != 0x7f;
    return ok ||
           diag_error(diags, span_none, "C058",
                      "`%s` cannot be the name of a C file: no #include can name it", stem);
}

// Variables of a module, local memory and structs as arguments need more host code than is
// printed.
static bool can_print(const Job *job)
{
    for (int i = 0; i < job->nlaunch; i++)
        ARRAY_EACH_REF(const JobArg *, arg, job->launch[i].arg, job->launch[i].narg)
            if (arg->kind == ARG_LOCAL || arg->kind == ARG_SYMBOL ||
                (arg->kind == ARG_BITS && arg->buffer > (int)sizeof(uint64_t)))
                return false;
    return true;
}

static bool find_host(const HostPart *part, int n, int *at, Diags *diags)
{
    const char *target = target_name(part->recipe->target);
    for (int i = 0; i < n; i++) {
        if (!can_print(&part[i].recipe->job))
            return diag_error(diags, span_none, "C057",
                              "--host cannot print launches with variables of a module, "
                              "local memory as an argument, or values of "
                              "more than 8 bytes");
        if (part[i].recipe->target != part->recipe->target)
            return diag_error(diags, span_none, "C057",
                              "the devices of one host program have one target: %s and %s "
                              "need a file each",
                              target, target_name(part[i].recipe->target));
    }
    *at = FIND(hosts, COUNTOF(hosts), target, target);
    if (*at < 0)
        return diag_error(diags, span_none, "C057", "no host program for target %s",
                          target);
    return n == 1 || hosts[*at].body ||
           diag_error(diags, span_none, "C057", "a host program in C is for one device");
}

bool recipe_host(const HostPart *part, int n, const char *stem, Buf *header, Buf *body,
                 Diags *diags)
{
    int at = 0;
    if (!check_stem(stem, diags) || !find_host(part, n, &at, diags))
        return false;
    Host host = {.part = part, .n = n, .recipe = part->recipe, .stem = stem};
    Buf *const text[] = {&host.upper,  &host.handles, &host.bytes, &host.tables,
                         &host.values, &host.places,  &host.sizes, &host.named,
                         &host.params, &host.resize};
    for (int i = 0; i < COUNTOF(text); i++)
        *text[i] = buf_new();
    set_name(stem, part->recipe, host.name, sizeof host.name);
    put_upper(&host.upper, host.name);
    describe_sizes(&host);
    describe(&host, hosts[at].in, hosts[at].out);
    host_lines(header, &host, hosts[at].header);
    if (hosts[at].body) {
        host_put_tables(&host);
        put_resizes(&host);
        host_put_devices(&host);
        host_lines(body, &host, hosts[at].body);
    } else {
        put_c_body(body, &host);
    }
    for (int i = 0; i < COUNTOF(text); i++)
        buf_release(text[i]);
    return true;
}
