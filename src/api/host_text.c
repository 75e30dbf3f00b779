// SPDX-License-Identifier: Apache-2.0
//
// A recipe as a C program that runs it without forewarp: a header and a body, for the
// recipe's target. The tables (kernels, launches, arguments, sizes) are printed; the code
// that walks them is a text with places for names (host/*.txt).
//
// C99, without warnings; it allocates in open only, and keeps no global state.

#include "api/recipe.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// What stands for $ and a letter in the texts.
typedef struct {
    const Recipe *recipe;
    const char *stem; // $s
    char name[256];   // $n
    Buf upper;        // $N
    Buf handles;      // $h: "cl_mem a, cl_mem out"
    Buf bytes;        // $b: the sizes as macros
    Buf tables;       // $t
    Buf values;       // $v: "a, out"
    Buf places;       // $a: "&a, &out"
    Buf sizes;        // $z: "long long N, "; of generic sizes
    Buf named;        // $y: ", N"
    Buf resize;       // $r: what sets all that depends on them
} Host;

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
        case 'r': buf_puts(out, host->resize.text); break;
        case 's': buf_puts(out, host->stem); break;
        case 'k': buf_puts(out, host->recipe->source); break;
        case 'P': put_comment(out, host->recipe->problem); break;
        case 'p': put_comment(out, host->recipe->point); break;
        case 'V': buf_puts(out, FW_VERSION); break;
        default: BUG("no $%c in the text of a host program", *text);
        }
    }
}

static void put_lines(Buf *out, const Host *host, const char *const *line)
{
    for (; *line; line++)
        put_text(out, host, *line);
}

// Tables ------------------------------------------------------------------------------

// A character of a literal after another one; 0 before the first.
static void put_char(Buf *out, char before, char c)
{
    if (c == '"' || c == '\\')
        buf_printf(out, "\\%c", c);
    else if (c == '?' && before == '?') // no trigraphs
        buf_puts(out, "\\?");
    else if (c == '\n')
        buf_puts(out, "\\n");
    else if (c == '\t')
        buf_puts(out, "\\t");
    else if ((unsigned char)c < ' ' || (unsigned char)c > '~')
        buf_printf(out, "\\%03o", (unsigned char)c);
    else
        buf_putc(out, c);
}

static void put_literal(Buf *out, const char *text)
{
    buf_putc(out, '"');
    for (char before = 0; *text; before = *text++)
        put_char(out, before, *text);
    buf_putc(out, '"');
}

// A text as string literals short enough for any compiler, a line of it a line.
static void put_literals(Buf *out, const char *text)
{
    enum { LITERAL_MOST = 400 };
    while (*text) {
        buf_puts(out, "    \"");
        char before = 0;
        for (int n = 0; *text && n < LITERAL_MOST && before != '\n'; n++) {
            put_char(out, before, *text);
            before = *text++;
        }
        buf_puts(out, "\",\n");
    }
}

static int kernel_number(const Job *job, int launch)
{
    for (int i = 0, n = 0; i < job->nlaunch; i++) {
        int same = 0;
        while (strcmp(job->launch[same].kernel, job->launch[i].kernel) != 0)
            same++;
        if (strcmp(job->launch[i].kernel, job->launch[launch].kernel) == 0)
            return n;
        n += same == i;
    }
    BUG("no launch %d", launch);
}

static bool is_first(const Job *job, int launch)
{
    for (int i = 0; i < launch; i++)
        if (strcmp(job->launch[i].kernel, job->launch[launch].kernel) == 0)
            return false;
    return true;
}

static void put_size3(Buf *out, const int64_t size[3])
{
    buf_printf(out, "{%" PRId64 ", %" PRId64 ", %" PRId64 "}", size[0], size[1], size[2]);
}

static void put_arg(Buf *out, const JobArg *arg)
{
    if (arg->kind == ARG_BUFFER)
        buf_printf(out, "    {FW_BUFFER, 0, %d},\n", arg->buffer);
    else if (arg->kind == ARG_VALUE)
        buf_printf(out, "    {FW_CALLER, %d, %d},\n", (int)scalar_device_bytes(arg->scalar),
                   arg->buffer);
    else if (arg->kind == ARG_INT)
        buf_printf(out, "    {FW_VALUE, 4, 0x%" PRIx32 "u},\n", (uint32_t)arg->number);
    else {
        uint64_t value = 0;
        memcpy(&value, arg->bits, (size_t)arg->buffer);
        buf_printf(out, "    {FW_VALUE, %d, 0x%" PRIx64 "u},\n", arg->buffer, value);
    }
}

static void put_launches(Buf *out, const Job *job)
{
    buf_puts(out,
             "/* Kernel, work-items in all and in a group, bytes of local memory that the "
             "text does not declare, its arguments: their first number, and how many. "
             "*/\nstatic const struct {\n    int kernel;\n    size_t global[3], "
             "local[3], local_bytes;\n    int first, n;\n} fw_launch[] = {\n");
    for (int i = 0, first = 0; i < job->nlaunch; i++) {
        const JobLaunch *launch = &job->launch[i];
        buf_printf(out, "    {%d, ", kernel_number(job, i));
        put_size3(out, launch->global);
        buf_puts(out, ", ");
        put_size3(out, launch->local);
        buf_printf(out, ", %" PRId64 ", %d, %d},\n", launch->local_bytes, first,
                   launch->narg);
        first += launch->narg;
    }
    buf_puts(out, "};\n\n");
}

static void put_args(Buf *out, const Job *job)
{
    buf_puts(
        out,
        "/* A buffer by its number, those of the caller first; a value of the "
        "caller's, of so many bytes, by its number among these; or so many bytes of a "
        "value. */\nenum { FW_BUFFER, FW_CALLER, FW_VALUE };\nstatic const struct {\n    "
        "int kind;\n    size_t bytes;\n    unsigned long long value;\n} "
        "fw_arg[] = {\n");
    int n = 0;
    for (int i = 0; i < job->nlaunch; n += job->launch[i++].narg)
        for (int k = 0; k < job->launch[i].narg; k++)
            put_arg(out, &job->launch[i].arg[k]);
    buf_puts(out, n ? "};\n\n" : "    {FW_VALUE, 0, 0},\n};\n\n");
}

static bool is_buffer(const Argument *argument)
{
    return !argument->image && !argument->value;
}

static void put_bytes(Buf *out, const Recipe *recipe)
{
    buf_puts(out,
             "/* Bytes of the caller's buffers (0: it is a value, or an image), then of "
             "those between kernels. */\n"
             "static const size_t fw_bytes[] = {\n");
    for (int i = 0; i < recipe->nargument; i++)
        buf_printf(out, "    %" PRId64 ", /* %s */\n",
                   is_buffer(&recipe->argument[i]) ? recipe->argument[i].bytes : 0,
                   recipe->argument[i].name);
    for (int i = 0; i < recipe->job.nscratch; i++)
        buf_printf(out, "    %" PRId64 ",\n", recipe->job.scratch_bytes[i]);
    buf_puts(out, "};\n\n");
}

static void put_kernels(Buf *out, const Job *job)
{
    buf_puts(out, "static const char *const fw_kernel_name[] = {\n");
    for (int i = 0; i < job->nlaunch; i++)
        if (is_first(job, i)) {
            buf_puts(out, "    ");
            put_literal(out, job->launch[i].kernel);
            buf_puts(out, ",\n");
        }
    buf_puts(out, "};\n\n");
}

// For NVRTC one by one.
static void put_options(Buf *out, const Recipe *recipe)
{
    if (!language_is(target_name(recipe->target), LANGUAGE_CUDA)) {
        buf_puts(out, "static const char fw_options[] = ");
        put_literal(out, recipe->options);
        buf_puts(out, ";\n\n");
        return;
    }
    char *save = NULL, *options = xstrdup(recipe->options);
    buf_puts(out, "static const char *const fw_option[] = {\n");
    for (char *o = strtok_r(options, " ", &save); o; o = strtok_r(NULL, " ", &save)) {
        buf_puts(out, "    ");
        put_literal(out, o);
        buf_puts(out, ",\n");
    }
    buf_puts(out, "    NULL,\n};\n\n");
    free(options);
}

// The first argument of a launch among all.
static int first_arg(const Job *job, int launch)
{
    int first = 0;
    for (int i = 0; i < launch; i++)
        first += job->launch[i].narg;
    return first;
}

static void put_variants(Buf *out, const Recipe *recipe)
{
    buf_puts(out,
             "/* For sizes of a kind: launches and buffers between kernels, the first "
             "and how many. */\nstatic const struct {\n    int first, n, first_scratch, "
             "scratch;\n} fw_variant[] = {\n");
    for (int i = 0; i < recipe->nvariant; i++) {
        const Variant *v = &recipe->variant[i];
        buf_printf(out, "    {%d, %d, %d, %d},\n", v->first, v->n, v->first_scratch,
                   v->nscratch);
    }
    buf_puts(out, "};\n\n");
}

static void put_tables(Host *host)
{
    const Recipe *recipe = host->recipe;
    const Job *job = &recipe->job;
    Buf *out = &host->tables;
    int kernels = 0;
    for (int i = 0; i < job->nlaunch; i++)
        kernels += is_first(job, i);
    buf_printf(out,
               "enum {\n    FW_KERNELS = %d,\n    FW_LAUNCHES = %d,\n    "
               "FW_BUFFERS = %d, /* the caller's */\n    FW_SCRATCH = %d, /* between "
               "kernels */\n    FW_ARGS = %d\n};\n\n",
               kernels, job->nlaunch, recipe->nargument, job->nscratch,
               MAX(first_arg(job, job->nlaunch), 1));
    if (!language_is(target_name(recipe->target), LANGUAGE_C)) {
        buf_puts(out, "static const char *const fw_source[] = {\n");
        put_literals(out, recipe->source);
        buf_puts(out, "};\n\n");
        put_kernels(out, job);
        put_launches(out, job);
    }
    put_options(out, recipe);
    put_args(out, job);
    put_bytes(out, recipe);
    put_variants(out, recipe);
}

// Generic sizes -------------------------------------------------------------------------

static const char *size_name(const Recipe *recipe, const char *name)
{
    for (int i = 0; i < recipe->nsize; i++)
        if (strcmp(recipe->size[i].name, name) == 0)
            return recipe->size[i].c_name;
    BUG("no size %s", name);
}

static void put_number(Buf *out, const Recipe *recipe, const Arith *a)
{
    static const char *const fun[] = {
        [A_DIV] = "fw_div", [A_MOD] = "fw_mod", [A_MIN] = "fw_min", [A_MAX] = "fw_max"};
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
    for (int n = 0; n < recipe->nopen; n++) {
        const OpenNumber *open = &recipe->open[n];
        if (open->kind == kind && open->i == i && open->k == k)
            return open;
    }
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
    for (int i = 0; i < recipe->nsize; i++) {
        const RecipeSize *size = &recipe->size[i];
        buf_printf(out, "    if (%s < %" PRId64 " || %s > %" PRId64, size->c_name,
                   size->range.low, size->c_name, size->range.high);
        if (size->range.multiple > 1)
            buf_printf(out, " || %s %% %" PRId64 " != 0", size->c_name,
                       size->range.multiple);
        buf_puts(out, ")\n        return 0;\n");
    }
    for (int i = 0; i < recipe->ncondition; i++) {
        const OpenCondition *c = &recipe->condition[i];
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

// The row of the rule that holds as an if; of the body's variant.
static void put_row(Buf *out, const Recipe *recipe, int i)
{
    const RuleRow *row = &recipe->rule.row[i];
    buf_puts(out, i ? "    else " : "    ");
    for (int k = 0; k < row->ntest; k++)
        buf_printf(out, "%s%s %s %" PRId64, k ? " && " : "if (",
                   size_name(recipe, row->test[k].size),
                   row->test[k].below ? "<" : ">=", row->test[k].than);
    buf_puts(out, row->ntest ? ")\n        " : recipe->rule.n > 1 ? "\n        " : "");
}

static void put_choice(Buf *out, const Recipe *recipe)
{
    for (int i = 0; i < recipe->rule.n; i++) {
        put_row(out, recipe, i);
        buf_printf(out, "variant = %d; /* ", recipe->of_row[i]);
        put_comment(out, recipe->rule.row[i].point);
        buf_puts(out, " */\n");
    }
}

static void put_settings(Buf *out, const Recipe *recipe)
{
    for (int i = 0; i < recipe->nargument; i++) {
        if (!is_buffer(&recipe->argument[i]))
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
        case OPEN_ARG:
            buf_printf(out, "    self->value[%d] = (unsigned long long)(",
                       first_arg(&recipe->job, open->i) + open->k);
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

// The functions that formulas call, as far as text has calls.
static void put_helpers(Buf *out, const char *text)
{
    static const struct {
        const char *name, *body;
    } helper[] = {{"fw_div", "a / b - (a % b < 0)"},
                  {"fw_mod", "(a % b + b) % b"},
                  {"fw_min", "a < b ? a : b"},
                  {"fw_max", "a > b ? a : b"}};
    for (int i = 0; i < COUNTOF(helper); i++)
        if (strstr(text, helper[i].name))
            buf_printf(
                out,
                "static long long %s(long long a, long long b)\n{\n    return %s;\n}\n\n",
                helper[i].name, helper[i].body);
}

static void describe_sizes(Host *host)
{
    const Recipe *recipe = host->recipe;
    for (int i = 0; i < recipe->nsize; i++) {
        buf_printf(&host->sizes, "long long %s, ", recipe->size[i].c_name);
        buf_printf(&host->named, ", %s", recipe->size[i].c_name);
    }
}

static void put_resize(Host *host)
{
    const Recipe *recipe = host->recipe;
    Buf body;
    buf_init(&body);
    put_checks(&body, recipe);
    if (recipe->nvariant > 1) {
        buf_puts(&body, "    int variant;\n");
        put_choice(&body, recipe);
    }
    if (recipe->nsize)
        put_settings(&body, recipe);
    if (recipe->nvariant > 1)
        buf_puts(&body, "    self->variant = variant;\n");
    put_helpers(&host->resize, body.text);
    buf_printf(&host->resize,
               "/* Sets what depends on the sizes; 0: one is not in its range. */\n"
               "static int fw_resize(%s *self",
               host->name);
    for (int i = 0; i < recipe->nsize; i++)
        buf_printf(&host->resize, ", long long %s", recipe->size[i].c_name);
    buf_printf(&host->resize, ")\n{\n%s%s    return 1;\n}\n",
               recipe->nsize ? "" : "    (void)self;\n", body.text);
    buf_release(&body);
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
    buf_puts(out, recipe->nvariant > 1 ? "    int variant;\n" : "");
    buf_puts(out, "    void *const caller[] = {");
    for (int i = 0; i < recipe->nargument; i++)
        buf_printf(out, "%s(void *)%s%s", i ? ", " : "",
                   recipe->argument[i].value ? "&" : "", recipe->argument[i].name);
    buf_puts(out, "};\n");
    put_checks(out, recipe);
    if (recipe->nvariant > 1)
        put_choice(out, recipe);
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
    Buf rest;
    buf_init(&rest);
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
    put_c_run(&rest, host);
    put_text(out, host,
             "/* Generated by forewarp $V: see $s.h. */\n#include \"$s.h\"\n\n"
             "#include <stdlib.h>\n\n");
    put_c_kernels(out, recipe);
    put_helpers(out, rest.text);
    buf_puts(out, rest.text);
    buf_release(&rest);
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
    NULL};
static const char *const c_header[] = {
#include "api/host/c.h.inc"
    NULL};

static const struct {
    const char *in, *out;                    // types of the caller's buffers
    const char *const *header, *const *body; // body NULL: put_c_body
} hosts[LANGUAGES] = {
    [LANGUAGE_OPENCL] = {"cl_mem ", "cl_mem ", opencl_header, opencl_body},
    [LANGUAGE_CUDA] = {"CUdeviceptr ", "CUdeviceptr ", cuda_header, cuda_body},
    [LANGUAGE_C] = {"const void *", "void *", c_header, NULL},
};

// Is there a function stem_run in a text of C?
static bool runs_already(const char *source, const char *stem)
{
    Buf run;
    buf_init(&run);
    buf_printf(&run, "%s_run", stem);
    bool found = strstr(source, run.text) != NULL;
    buf_release(&run);
    return found;
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
    for (int i = 0; i < COUNTOF(type); i++)
        if (strcmp(type[i].opencl, argument->type) == 0)
            return type[i].c;
    BUG("a value of type %s", argument->type);
}

static void describe(Host *host, const char *in, const char *out)
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
        buf_printf(&host->bytes, "#define %s_", host->upper.text);
        put_upper(&host->bytes, a->name);
        if (recipe->nsize) {
            buf_printf(&host->bytes, "_BYTES(%s) ((size_t)", host->named.text + 2);
            put_argument_bytes(&host->bytes, recipe, i);
            buf_printf(&host->bytes, ") /* %s, of %s */\n", way, a->type);
            continue;
        }
        buf_printf(&host->bytes,
                   "_BYTES ((size_t)%" PRId64 ") /* %s, %" PRId64 " of %s%s */\n", a->bytes,
                   way, a->count, a->type, a->image ? ", an image" : "");
    }
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
        for (int k = 0; k < job->launch[i].narg; k++) {
            const JobArg *arg = &job->launch[i].arg[k];
            if (arg->kind == ARG_LOCAL || arg->kind == ARG_SYMBOL ||
                (arg->kind == ARG_BITS && arg->buffer > (int)sizeof(uint64_t)))
                return false;
        }
    return true;
}

bool recipe_host(const Recipe *recipe, const char *stem, Buf *header, Buf *body,
                 Diags *diags)
{
    Language at = 0;
    if (!check_stem(stem, diags))
        return false;
    if (!can_print(&recipe->job))
        return diag_error(diags, span_none, "C057",
                          "--host cannot print launches with variables of a module, local "
                          "memory as an argument, or values of "
                          "more than 8 bytes");
    while (at < LANGUAGES && !language_is(target_name(recipe->target), at))
        at++;
    if (at == LANGUAGES)
        return diag_error(diags, span_none, "C057", "no host program for target %s",
                          target_name(recipe->target));
    Host host = {.recipe = recipe, .stem = stem};
    Buf *const part[] = {&host.upper,  &host.handles, &host.bytes,
                         &host.tables, &host.values,  &host.places,
                         &host.sizes,  &host.named,   &host.resize};
    for (int i = 0; i < COUNTOF(part); i++)
        buf_init(part[i]);
    set_name(stem, recipe, host.name, sizeof host.name);
    put_upper(&host.upper, host.name);
    describe_sizes(&host);
    describe(&host, hosts[at].in, hosts[at].out);
    put_lines(header, &host, hosts[at].header);
    if (hosts[at].body) {
        put_tables(&host);
        put_resize(&host);
        put_lines(body, &host, hosts[at].body);
    } else {
        put_c_body(body, &host);
    }
    for (int i = 0; i < COUNTOF(part); i++)
        buf_release(part[i]);
    return true;
}
