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
    buf_puts(out,
             "/* A buffer by its number, those of the caller first; or so many bytes of "
             "a value. */\nenum { FW_BUFFER, FW_VALUE };\nstatic const struct {\n    "
             "int kind;\n    size_t bytes;\n    unsigned long long value;\n} "
             "fw_arg[] = {\n");
    int n = 0;
    for (int i = 0; i < job->nlaunch; n += job->launch[i++].narg)
        for (int k = 0; k < job->launch[i].narg; k++)
            put_arg(out, &job->launch[i].arg[k]);
    buf_puts(out, n ? "};\n\n" : "    {FW_VALUE, 0, 0},\n};\n\n");
}

static void put_bytes(Buf *out, const Recipe *recipe)
{
    buf_puts(out, "/* Bytes of the caller's buffers, then of those between kernels. */\n"
                  "static const size_t fw_bytes[] = {\n");
    for (int i = 0; i < recipe->nargument; i++)
        buf_printf(out, "    %" PRId64 ", /* %s */\n",
                   recipe->argument[i].image ? 0 : recipe->argument[i].bytes,
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
    if (strcmp(target_name(recipe->target), "cuda") != 0) {
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
               "FW_BUFFERS = %d, /* the caller's */\n    FW_SCRATCH = %d /* between "
               "kernels */\n};\n\n",
               kernels, job->nlaunch, recipe->nargument, job->nscratch);
    if (strcmp(target_name(recipe->target), "c") != 0) {
        buf_puts(out, "static const char *const fw_source[] = {\n");
        put_literals(out, recipe->source);
        buf_puts(out, "};\n\n");
        put_kernels(out, job);
        put_launches(out, job);
    }
    put_options(out, recipe);
    put_args(out, job);
    put_bytes(out, recipe);
}

// C -----------------------------------------------------------------------------------

static void put_c_call(Buf *out, const JobLaunch *launch, const Host *host)
{
    int callers = host->recipe->nargument;
    for (int k = 0; k < launch->narg; k++)
        if (launch->arg[k].kind != ARG_BUFFER)
            buf_printf(out, "    const unsigned long long v%d = 0x%" PRIx64 "u;\n", k,
                       (uint64_t)launch->arg[k].number);
    buf_puts(out, "    void *const arg[] = {");
    for (int k = 0; k < launch->narg; k++) {
        const JobArg *arg = &launch->arg[k];
        buf_puts(out, k ? ", " : "");
        if (arg->kind != ARG_BUFFER)
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

// Each launch is a function of its own: there may be thousands, of few kinds.
static void put_c_body(Buf *out, const Host *host)
{
    const Recipe *recipe = host->recipe;
    const Job *job = &recipe->job;
    put_text(out, host,
             "/* Generated by forewarp $V: see $s.h. */\n#include \"$s.h\"\n\n"
             "#include <stdlib.h>\n\n");
    put_c_kernels(out, recipe);
    for (int i = 0; i < job->nlaunch; i++) {
        buf_printf(out,
                   "static void fw_launch%d(void *const *caller, void *const *scratch)\n"
                   "{\n    (void)caller, (void)scratch;\n",
                   i);
        put_c_call(out, &job->launch[i], host);
        buf_puts(out, "}\n\n");
    }
    put_text(out, host, "int $n_run($h)\n{\n    static const size_t bytes[] = {");
    for (int i = 0; i < job->nscratch; i++)
        buf_printf(out, "%" PRId64 ", ", job->scratch_bytes[i]);
    buf_printf(out, "0};\n    void *scratch[%d] = {NULL};\n    int ok = 1;\n",
               job->nscratch + 1);
    buf_puts(out, "    void *const caller[] = {");
    for (int i = 0; i < recipe->nargument; i++)
        buf_printf(out, "%s(void *)%s", i ? ", " : "", recipe->argument[i].name);
    buf_printf(out,
               "};\n    for (int i = 0; i < %d; i++)\n        ok = ok && caller[i];\n"
               "    for (int i = 0; i < %d; i++)\n        ok = (scratch[i] = "
               "malloc(bytes[i])) && ok;\n    if (ok) {\n",
               recipe->nargument, job->nscratch);
    for (int i = 0; i < job->nlaunch; i++)
        buf_printf(out, "        fw_launch%d(caller, scratch);\n", i);
    buf_printf(out,
               "    }\n    for (int i = 0; i < %d; i++)\n        free(scratch[i]);\n"
               "    return ok;\n}\n",
               job->nscratch);
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
    const char *target, *in, *out;           // types of the caller's buffers
    const char *const *header, *const *body; // body NULL: put_c_body
} hosts[] = {
    {"opencl", "cl_mem ", "cl_mem ", opencl_header, opencl_body},
    {"cuda", "CUdeviceptr ", "CUdeviceptr ", cuda_header, cuda_body},
    {"c", "const void *", "void *", c_header, NULL},
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
    bool c = strcmp(target_name(recipe->target), "c") == 0;
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

static void describe(Host *host, const char *in, const char *out)
{
    const Recipe *recipe = host->recipe;
    for (int i = 0; i < recipe->nargument; i++) {
        const Argument *a = &recipe->argument[i];
        buf_printf(&host->handles, "%s%s%s", i ? ", " : "", a->out ? out : in, a->name);
        buf_printf(&host->values, "%s%s", i ? ", " : "", a->name);
        buf_printf(&host->bytes, "#define %s_", host->upper.text);
        put_upper(&host->bytes, a->name);
        buf_printf(&host->bytes,
                   "_BYTES ((size_t)%" PRId64 ") /* %s, %" PRId64 " of %s%s */\n", a->bytes,
                   a->in && a->out ? "in and out"
                   : a->out        ? "out"
                                   : "in",
                   a->count, a->type, a->image ? ", an image" : "");
    }
}

// The body includes "stem.h": what an #include cannot name is no stem.
static bool check_stem(const char *stem, Diags *diags)
{
    bool ok = stem[0] && !strpbrk(stem, "\"\\/?*");
    for (const char *c = stem; *c; c++)
        ok = ok && (unsigned char)*c >= ' ' && *c != 0x7f;
    return ok || diag_error(diags, span_none, "C058",
                            "`%s` cannot name a C file: an #include cannot say it", stem);
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
    int at = 0;
    if (!check_stem(stem, diags))
        return false;
    if (!can_print(&recipe->job))
        return diag_error(diags, span_none, "C057",
                          "--host prints no launches with variables of a module, local "
                          "memory as an argument, or values of "
                          "more than 8 bytes");
    while (at < COUNTOF(hosts) && strcmp(hosts[at].target, target_name(recipe->target)))
        at++;
    if (at == COUNTOF(hosts))
        return diag_error(diags, span_none, "C057", "no host program for target %s",
                          target_name(recipe->target));
    Host host = {.recipe = recipe, .stem = stem};
    Buf *const part[] = {&host.upper, &host.handles, &host.bytes, &host.tables,
                         &host.values};
    for (int i = 0; i < COUNTOF(part); i++)
        buf_init(part[i]);
    set_name(stem, recipe, host.name, sizeof host.name);
    put_upper(&host.upper, host.name);
    describe(&host, hosts[at].in, hosts[at].out);
    put_lines(header, &host, hosts[at].header);
    if (hosts[at].body) {
        put_tables(&host);
        put_lines(body, &host, hosts[at].body);
    } else {
        put_c_body(body, &host);
    }
    for (int i = 0; i < COUNTOF(part); i++)
        buf_release(part[i]);
    return true;
}
