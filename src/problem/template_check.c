// SPDX-License-Identifier: Apache-2.0
//
// Which elements of an output count, and how far they may be off, where the problem file
// says it; and the text of what judges in place of a comparison.
//
// A command is a judge whose text writes the arrays to .npy files and starts it.

#include "problem/template.h"

#include <math.h>
#include <string.h>

// Places ------------------------------------------------------------------------------

bool place_open(const Template *t, const char *where, const char *text, PlaceExpr *made,
                Diags *diags)
{
    static const double none = 0;
    made->space = space_new();
    space_add(made->space, "i", &none, 1);
    for (int i = 0; i < t->size.len; i++)
        space_define(made->space, t->size.at[i].name, (double)t->size.at[i].value);
    made->expr = space_expression(made->space, where, text, diags);
    return made->expr;
}

void place_values(const PlaceExpr *expr, int64_t first, int n, double *out)
{
    double place[64];
    for (int k = 0; k < n; k++)
        place[k] = (double)(first + k);
    space_evaluate_many(expr->expr, place, n, out);
}

// Bounds ------------------------------------------------------------------------------

static bool set_bounds(const Template *t, int number, RunnerBuffer *buffer,
                       double tolerance, Arena *arena, Diags *diags)
{
    enum { MANY = 64 };
    const TemplateArg *arg = &t->arg.at[number];
    const char *where = arena_printf(t->arena, "%s: arguments[%d].check", t->path, number);
    bool real = arg->element->kind == 'f';
    double scale = check_scale(buffer->scalar, buffer->expect, buffer->count);
    float *bound = NEW_ARRAY(arena, float, buffer->count);
    double *expect = NEW_ARRAY(arena, double, MANY), part[MANY];
    size_t bytes = scalar_device_bytes(buffer->scalar);
    PlaceExpr expr = {0};
    bool ok = !arg->part || place_open(t, where, arg->part, &expr, diags);
    for (int64_t i = 0; ok && i < buffer->count; i += MANY) {
        int n = (int)MIN(MANY, buffer->count - i);
        scalar_unpack(buffer->scalar, (const char *)buffer->expect + (size_t)i * bytes, n,
                      expect);
        for (int k = 0; k < n; k++) {
            double e = fabs(expect[k]);
            double usual = real ? tolerance * fmax(e, scale) : 0;
            bound[i + k] =
                (float)(arg->bounded ? arg->absolute + arg->relative * e : usual);
            bound[i + k] = isfinite(bound[i + k]) ? bound[i + k] : 0;
            bound[i + k] += buffer->bound ? buffer->bound[i + k] : 0;
        }
        for (int k = 0; arg->part && k < n; k++) {
            place_values(&expr, i + k, 1, &part[k]);
            if (part[k] == 0)
                bound[i + k] = INFINITY;
        }
    }
    space_free(expr.space);
    buffer->bound = bound;
    return ok;
}

bool template_bounds(const Template *t, ProblemData *data, Arena *arena, Diags *diags)
{
    for (int i = 0; i < t->arg.len; i++) {
        const TemplateArg *arg = &t->arg.at[i];
        RunnerBuffer *buffer = arg->buffer < 0 ? NULL : &data->buffer[arg->buffer];
        if (template_has_bounds(arg) && arg->member.len > 1 && arg->element->bytes == 1)
            return diag_error(diags, span_none, "J014",
                              "%s: arguments[%d]: `%s` is a struct of several types, whose "
                              "bytes have no bounds, and whose elements are not counted",
                              t->path, i, arg->type);
        if (buffer && buffer->expect && (arg->part || arg->bounded || buffer->bound) &&
            !set_bounds(t, i, buffer, data->tolerance, arena, diags))
            return false;
    }
    return true;
}

// Judges ------------------------------------------------------------------------------

static void put_call(Buf *out, const char *function, int n)
{
    buf_printf(out,
               "\nvoid " JUDGE_NAME "_entry(void *const *arg);\n"
               "void " JUDGE_NAME "_entry(void *const *arg)\n"
               "{\n    *(int *)arg[0] = %s(",
               function);
    for (int k = 1; k <= n; k++)
        buf_printf(out, "%sarg[%d]", k > 1 ? ", " : "", k);
    buf_puts(out, ");\n}\n");
}

// As a literal of C, whatever its bytes.
static void put_literal(Buf *out, const char *bytes, size_t n)
{
    buf_putc(out, '"');
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "\\%03o", (unsigned char)bytes[i]);
    buf_putc(out, '"');
}

static void put_array(Buf *out, const TemplateArg *arg, int k)
{
    int64_t shape[DIMS_MAX + 1];
    const NpyLayout layout = template_layout(arg, shape);
    AutoBuf head = buf_new();
    npy_header(&layout, &head);
    buf_printf(out, "    put(folder, \"%s\", ", arg->name);
    put_literal(out, head.text, head.len);
    buf_printf(out, ", %zu, arg[%d], %lld, command);\n", head.len, k,
               (long long)arg->count * arg->element->bytes);
}

static const char command_head[] =
    "#define _GNU_SOURCE\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    "#include <unistd.h>\n"
    "static void put(const char *folder, const char *name, const char *head, size_t "
    "nhead,\n"
    "                const void *data, size_t n, char *command)\n"
    "{\n"
    "    char path[4200];\n"
    "    snprintf(path, sizeof path, \"%s/%s.npy\", folder, name);\n"
    "    FILE *file = fopen(path, \"wb\");\n"
    "    if (!file || fwrite(head, 1, nhead, file) != nhead ||\n"
    "        fwrite(data, 1, n, file) != n)\n"
    "        perror(path);\n"
    "    if (file)\n        fclose(file);\n"
    "    sprintf(command + strlen(command), \" '%s'\", path);\n"
    "}\n"
    "static int fw_command(void *const *arg)\n"
    "{\n"
    "    const char *temp = getenv(\"TMPDIR\");\n"
    "    char folder[4096], remove[4200];\n"
    "    snprintf(folder, sizeof folder, \"%s/judge-XXXXXX\", temp ? temp : \"/tmp\");\n"
    "    if (!mkdtemp(folder))\n        return 1;\n";

// Beside the problem file, with the files as its arguments; its status is the answer.
static void put_command(const Template *t, Buf *out)
{
    const TemplateReference *ref = &t->reference;
    size_t room = strlen(ref->command) + strlen(t->folder) + 64;
    buf_puts(out, command_head);
    buf_printf(out, "    char *command = malloc(%zu + 4300 * %d);\n    strcpy(command, ",
               room, ref->launch.arg.len + 1);
    const char *text = arena_printf(t->arena, "cd '%s' && %s",
                                    t->folder[0] ? t->folder : ".", ref->command);
    put_literal(out, text, strlen(text));
    buf_puts(out, ");\n");
    for (int k = 0; k < ref->launch.arg.len; k++)
        put_array(out, &t->arg.at[ref->launch.arg.at[k]], 1 + k);
    buf_puts(out, "    int status = system(command);\n    free(command);\n"
                  "    snprintf(remove, sizeof remove, \"rm -r '%s'\", folder);\n"
                  "    return (system(remove) != 0) | status;\n}\n"
                  "\nvoid " JUDGE_NAME "_entry(void *const *arg);\n"
                  "void " JUDGE_NAME "_entry(void *const *arg)\n"
                  "{\n    *(int *)arg[0] = fw_command(arg);\n}\n");
}

const RunnerJudge *template_judge(const Template *t, Arena *arena)
{
    const TemplateReference *ref = &t->reference;
    RunnerJudge *judge = NEW(arena, RunnerJudge);
    int *buffer = NEW_ARRAY(arena, int, ref->launch.arg.len + 1);
    Buf text = buf_new();
    if (ref->command)
        put_command(t, &text);
    else {
        template_macros(t, ref->text, NULL, &text);
        template_line(&text, ref->file);
        buf_puts(&text, ref->text);
        put_call(&text, ref->launch.kernel, ref->launch.arg.len);
    }
    for (int k = 0; k < ref->launch.arg.len; k++)
        buffer[k] = t->arg.at[ref->launch.arg.at[k]].buffer;
    *judge = (RunnerJudge){buf_keep(&text, arena), t->include, buffer, ref->launch.arg.len};
    return judge;
}
