// SPDX-License-Identifier: Apache-2.0
//
// The tables of a host program: for each device the kernels' text, what they compile to,
// launches, arguments and bytes; and the table of devices. host/tables.txt has their types.

#include "api/host_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const host_tables[] = {
#include "api/host/tables.inc"
    NULL};

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
    return FIND(job->launch, launch, kernel, job->launch[launch].kernel) < 0;
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

// Tables have the number of their part at the end of their names.
static void put_launches(Buf *out, const Job *job, int number)
{
    buf_printf(out, "static const fw_launch fw_launch%d[] = {\n", number);
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

static void put_args(Buf *out, const Job *job, int number)
{
    buf_printf(out, "static const fw_arg fw_arg%d[] = {\n", number);
    int n = 0;
    for (int i = 0; i < job->nlaunch; n += job->launch[i++].narg)
        for (int k = 0; k < job->launch[i].narg; k++)
            put_arg(out, &job->launch[i].arg[k]);
    buf_puts(out, n ? "};\n\n" : "    {FW_VALUE, 0, 0},\n};\n\n");
}

bool host_is_buffer(const Argument *argument)
{
    return !argument->image && !argument->value;
}

static void put_bytes(Buf *out, const Recipe *recipe, int number)
{
    buf_printf(out, "static const size_t fw_bytes%d[] = {\n", number);
    for (int i = 0; i < recipe->nargument; i++)
        buf_printf(out, "    %" PRId64 ", /* %s */\n",
                   host_is_buffer(&recipe->argument[i]) ? recipe->argument[i].bytes : 0,
                   recipe->argument[i].name);
    for (int i = 0; i < recipe->job.nscratch; i++)
        buf_printf(out, "    %" PRId64 ",\n", recipe->job.scratch_bytes[i]);
    buf_puts(out, "};\n\n");
}

// What a kernel is called in compiled code; its name, if that has no other for it.
static const char *kernel_symbol(const HostPart *part, const char *name)
{
    DeviceText text = {0};
    AutoArena *arena = arena_new();
    job_names(&part->recipe->job, arena, &text);
    const char *symbol = part->symbols.text, *found = name;
    for (int i = 0; part->symbols.len && i < text.nname; i++, symbol += strlen(symbol) + 1)
        if (strcmp(text.name[i], name) == 0)
            found = symbol;
    return found;
}

static void put_kernels(Buf *out, const HostPart *part, const char *table, int number,
                        bool symbols)
{
    const Job *job = &part->recipe->job;
    buf_printf(out, "static const char *const %s%d[] = {\n", table, number);
    for (int i = 0; i < job->nlaunch; i++)
        if (is_first(job, i)) {
            const char *name = job->launch[i].kernel;
            buf_puts(out, "    ");
            put_literal(out, symbols ? kernel_symbol(part, name) : name);
            buf_puts(out, ",\n");
        }
    buf_puts(out, "};\n\n");
}

// For NVRTC and HIP's compiler one by one; how many there are.
static int put_options(Buf *out, const Recipe *recipe, int number)
{
    bool apart = !language_is(target_name(recipe->target), LANGUAGE_OPENCL);
    int n = 0;
    char *save = NULL, *options = xstrdup(recipe->options);
    buf_printf(out, "static const char *const fw_option%d[] = {\n", number);
    for (char *o = apart ? strtok_r(options, " ", &save) : options; o;
         o = apart ? strtok_r(NULL, " ", &save) : NULL, n++) {
        buf_puts(out, "    ");
        put_literal(out, o);
        buf_puts(out, ",\n");
    }
    buf_puts(out, "    NULL,\n};\n\n");
    free(options);
    return n;
}

// The first argument of a launch among all.
int host_first_arg(const Job *job, int launch)
{
    int first = 0;
    for (int i = 0; i < launch; i++)
        first += job->launch[i].narg;
    return first;
}

static void put_variants(Buf *out, const Recipe *recipe, int number)
{
    buf_printf(out, "static const fw_variant fw_variant%d[] = {\n", number);
    ARRAY_EACH_REF(const Variant *, v, recipe->variant, recipe->nvariant)
        buf_printf(out, "    {%d, %d, %d, %d},\n", v->first, v->n, v->first_scratch,
                   v->nscratch);
    buf_puts(out, "};\n\n");
}

static void put_image(Buf *out, const Buf *image, int number)
{
    buf_printf(out, "static const unsigned char fw_image%d[] = {", number);
    for (size_t i = 0; i < image->len; i++)
        buf_printf(out, "%s%d,", i % 32 ? "" : "\n    ", (unsigned char)image->text[i]);
    buf_puts(out, "\n};\n\n");
}

static int count_kernels(const Job *job)
{
    int n = 0;
    for (int i = 0; i < job->nlaunch; i++)
        n += is_first(job, i);
    return n;
}

// The tables of one part; how many options it has.
static int put_part(Host *host, int i)
{
    const HostPart *part = &host->part[i];
    const Recipe *recipe = part->recipe;
    Buf *out = &host->tables;
    buf_printf(out, "static const char *const fw_source%d[] = {\n", i);
    put_literals(out, recipe->source);
    buf_puts(out, "};\n\n");
    put_kernels(out, part, "fw_name", i, false);
    if (part->image.len) {
        put_kernels(out, part, "fw_symbol", i, true);
        put_image(out, &part->image, i);
    }
    put_launches(out, &recipe->job, i);
    int options = put_options(out, recipe, i);
    put_args(out, &recipe->job, i);
    put_bytes(out, recipe, i);
    put_variants(out, recipe, i);
    return options;
}

void host_put_tables(Host *host)
{
    int kernels = 1, launches = 1, scratch = 0, args = 1, options = 0;
    Buf *out = &host->tables;
    for (int i = 0; i < host->n; i++) {
        const Job *job = &host->part[i].recipe->job;
        kernels = MAX(kernels, count_kernels(job));
        launches = MAX(launches, job->nlaunch);
        scratch = MAX(scratch, job->nscratch);
        args = MAX(args, host_first_arg(job, job->nlaunch));
        int own = put_part(host, i);
        options = MAX(options, own);
    }
    Buf parts = *out;
    *out = buf_new();
    buf_printf(
        out,
        "enum {\n    FW_DEVICES = %d,\n    FW_KERNELS = %d,\n    FW_LAUNCHES = "
        "%d,\n    FW_BUFFERS = %d, /* the caller's */\n    FW_SCRATCH = %d, /* between "
        "kernels */\n    FW_ARGS = %d,\n    FW_OPTIONS = %d\n};\n\n",
        host->n, kernels, launches, host->recipe->nargument, scratch, args, options);
    host_lines(out, host, host_tables);
    buf_puts(out, parts.text);
    buf_release(&parts);
}

// What open chooses from.
void host_put_devices(Host *host)
{
    Buf *out = &host->resize;
    buf_puts(out, "\nstatic const fw_device fw_devices[FW_DEVICES] = {\n");
    for (int i = 0; i < host->n; i++) {
        const HostPart *part = &host->part[i];
        const Job *job = &part->recipe->job;
        buf_puts(out, "    {");
        put_literal(out, part->device);
        buf_printf(out,
                   ", fw_source%d, sizeof fw_source%d / sizeof fw_source%d[0], "
                   "fw_option%d,\n     fw_name%d, %d, fw_launch%d, %d, fw_arg%d, %d, "
                   "fw_bytes%d, %d, fw_variant%d, fw_resize%d,\n     ",
                   i, i, i, i, i, count_kernels(job), i, job->nlaunch, i,
                   MAX(host_first_arg(job, job->nlaunch), 1), i, job->nscratch, i, i);
        if (part->image.len)
            buf_printf(out, "fw_image%d, sizeof fw_image%d, fw_symbol%d},\n", i, i, i);
        else
            buf_puts(out, "NULL, 0, NULL},\n");
    }
    buf_puts(out, "};\n");
}
