// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a template as a runner's buffers, in the device's layout from the start:
// a volume of 512^3 bytes would take a gigabyte as doubles.

#include "problem/template.h"

#include <math.h>
#include <string.h>

// Elements ----------------------------------------------------------------------------

static const Element elements[] = {
#define X(name, dtype, bytes, kind, compared, own)                                         \
    {name, dtype, bytes, kind, compared, own},
    ELEMENTS(X)
#undef X
};

const Element *element_find(const char *name, int *width)
{
    static const struct {
        const char *text;
        int width;
    } widths[] = {{"", 1}, {"2", 2}, {"3", 3}, {"4", 4}, {"8", 8}, {"16", 16}};
    for (int i = 0; i < COUNTOF(elements); i++) {
        size_t n = strlen(elements[i].name);
        for (int k = 0; strncmp(name, elements[i].name, n) == 0 && k < COUNTOF(widths); k++)
            if (strcmp(name + n, widths[k].text) == 0) {
                *width = widths[k].width;
                return &elements[i];
            }
    }
    return NULL;
}

// Integers wrap around, as a conversion in the kernel would.
static void pack_one(const Element *element, double x, void *to)
{
    int64_t whole = !(fabs(x) < 0x1p63) ? 0 : (int64_t)x;
    uint64_t bits = x >= 0x1p63 && x < 0x1p64 ? (uint64_t)x : (uint64_t)whole;
    if (element->kind == 'f')
        scalar_pack(element->compared, &x, 1, to);
    else
        memcpy(to, &bits, (size_t)element->bytes); // the least bytes come first
}

void element_pack(const Element *element, const double *from, int64_t n, void *to)
{
    if (element->kind == 'f')
        scalar_pack(element->compared, from, n, to);
    else
        for (int64_t i = 0; i < n; i++)
            pack_one(element, from[i], (char *)to + i * element->bytes);
}

void element_unpack(const Element *element, const void *from, int64_t n, double *to)
{
    if (element->kind == 'f') {
        scalar_unpack(element->compared, from, n, to);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)from + i * element->bytes, (size_t)element->bytes);
        int unused = 64 - 8 * element->bytes;
        to[i] = element->kind == 'u' ? (double)bits
                                     : (double)((int64_t)(bits << unused) >> unused);
    }
}

// Contents ----------------------------------------------------------------------------

// Floating: in [low, high), by default [0, 1). Integers: low to high, by default 0 to 99.
static double random_number(const Fill *fill, const Element *element, Rng *rng)
{
    bool floating = element->kind == 'f';
    double low = fill->ranged ? fill->low : 0;
    double high = fill->ranged ? fill->high : floating ? 1 : 99;
    double span = floating ? high - low : floor(high) - ceil(low) + 1;
    double x = rng_double(rng) * span;
    return floating ? low + x : ceil(low) + floor(x);
}

// Random or constant numbers, member by member; what is between members is zero.
static void fill_numbers(const TemplateArg *arg, const Fill *fill, uint64_t seed, char *to)
{
    int64_t bytes = (int64_t)arg->element->bytes * arg->width;
    bool random = fill->kind == FILL_RANDOM;
    Rng rng = rng_new(seed);
    memset(to, 0, (size_t)(arg->count * arg->element->bytes));
    for (int64_t i = 0; i < arg->count / arg->width; i++, to += bytes)
        VEC_EACH_REF(const Member *, member, &arg->member) {
            char *at = to + member->offset;
            for (int k = 0; k < member->width; k++, at += member->element->bytes)
                pack_one(member->element,
                         random ? random_number(fill, member->element, &rng) : fill->low,
                         at);
        }
}

NpyLayout template_layout(const TemplateArg *arg, int64_t *shape)
{
    int n = arg->ndim;
    memcpy(shape, arg->length, sizeof arg->length);
    if (arg->width > 1)
        shape[n++] = arg->width;
    return (NpyLayout){arg->element->dtype, shape, n, arg->element->bytes};
}

static bool read_npy(const TemplateArg *arg, const char *path, char *to, Diags *diags)
{
    int64_t shape[DIMS_MAX + 1];
    const NpyLayout layout = template_layout(arg, shape);
    return npy_read_raw(path, &layout, to, diags);
}

// A file of as many bytes as the array.
static bool read_raw(const TemplateArg *arg, const char *path, char *to, Diags *diags)
{
    size_t bytes = (size_t)(arg->count * arg->element->bytes);
    AutoBuf file = buf_new();
    bool ok = file_read(path, FILE_DATA_MOST, &file);
    if (!ok)
        diag_error(diags, span_none, "J012", "cannot read %s: %s", path, file.text);
    else if (!(ok = file.len == bytes))
        diag_error(diags, span_none, "J012", "%s has %zu bytes, %zu are needed", path,
                   file.len, bytes);
    if (ok)
        memcpy(to, file.text, bytes);
    return ok;
}

// Each number of the array from its place, i.
static bool fill_expression(const Template *t, const TemplateArg *arg, const Fill *fill,
                            const char *where, char *to, Diags *diags)
{
    enum { MANY = 64 };
    double value[MANY];
    PlaceExpr expr;
    bool ok = place_open(t, arena_printf(t->arena, "%s.expression", where), fill->file,
                         &expr, diags);
    if (ok)
        fill_numbers(arg, fill, 0, to);
    for (int64_t i = 0; ok && i < arg->count; i += MANY) {
        int n = (int)MIN(MANY, arg->count - i);
        place_values(&expr, i, n, value);
        for (int k = 0; k < n; k++)
            pack_one(arg->element, value[k], to + (i + k) * arg->element->bytes);
    }
    space_free(expr.space);
    return ok;
}

bool template_fill(const Template *t, const TemplateArg *arg, const Fill *fill,
                   const char *where, uint64_t seed, char *to, Diags *diags)
{
    switch (fill->kind) {
    case FILL_RANDOM:
    case FILL_CONSTANT: fill_numbers(arg, fill, seed, to); return true;
    case FILL_FILE: return read_npy(arg, fill->file, to, diags);
    case FILL_RAW: return read_raw(arg, fill->file, to, diags);
    case FILL_EXPRESSION: return fill_expression(t, arg, fill, where, to, diags);
    case FILL_VIEW: break;
    }
    BUG("fill %d", (int)fill->kind);
}

// Where an element of the view lies in what it shows; -1: outside.
static int64_t shown_at(int64_t i, int64_t pad, int64_t length, Edge edge)
{
    i -= pad;
    if (i >= 0 && i < length)
        return i;
    return edge == EDGE_ZERO ? -1 : i < 0 ? 0 : length - 1;
}

// Rows of the innermost dimension: the others are folded into three.
static void fill_view(const TemplateArg *arg, const TemplateArg *of, const char *from,
                      char *to)
{
    size_t bytes = (size_t)arg->element->bytes * (size_t)arg->width;
    int64_t to_len[DIMS_MAX] = {1, 1, 1}, from_len[DIMS_MAX] = {1, 1, 1};
    int64_t pad[DIMS_MAX] = {0, 0, 0};
    for (int d = 0; d < arg->ndim; d++) {
        int k = DIMS_MAX - arg->ndim + d;
        to_len[k] = arg->length[d];
        from_len[k] = of->length[d];
        pad[k] = arg->pad;
    }
    for (int64_t z = 0; z < to_len[0]; z++)
        for (int64_t y = 0; y < to_len[1]; y++)
            for (int64_t x = 0; x < to_len[2]; x++, to += bytes) {
                int64_t c = shown_at(z, pad[0], from_len[0], arg->fill.edge);
                int64_t b = shown_at(y, pad[1], from_len[1], arg->fill.edge);
                int64_t a = shown_at(x, pad[2], from_len[2], arg->fill.edge);
                int64_t i = (c * from_len[1] + b) * from_len[2] + a;
                if (a >= 0 && b >= 0 && c >= 0)
                    memcpy(to, from + (size_t)i * bytes, bytes);
                else
                    memset(to, 0, bytes);
            }
}

// Buffers -----------------------------------------------------------------------------

bool template_has_bounds(const TemplateArg *arg)
{
    return arg->bounded || arg->part || arg->rounding > 0 || arg->spared > 0;
}

// Integers of other sizes than an int's are compared as ints: whole ones.
static int64_t compared_count(const TemplateArg *arg)
{
    if (arg->element->compared != S_INT || template_has_bounds(arg))
        return arg->count;
    return (arg->count * arg->element->bytes + 3) / 4;
}

static ImageShape image_shape(const TemplateArg *arg)
{
    ImageShape shape = {
        arg->ndim, {1, 1, 1}, arg->width, arg->element->bytes, arg->element->kind};
    for (int d = 0; d < arg->ndim; d++)
        shape.size[d] = arg->length[arg->ndim - 1 - d];
    return shape;
}

static bool fill_buffer(const Template *t, int i, uint64_t seed, const InputFiles *files,
                        ProblemData *data, char *to, Diags *diags)
{
    const TemplateArg *arg = &t->arg.at[i];
    const char *file = input_file(files, arg->name);
    if (file)
        return read_npy(arg, file, to, diags);
    const char *where = arena_printf(t->arena, "%s: arguments[%d].fill", t->path, i);
    const TemplateArg *of = &t->arg.at[arg->fill.of];
    if (arg->fill.kind != FILL_VIEW)
        return template_fill(t, arg, &arg->fill, where, hash_mix(seed, (uint64_t)i), to,
                             diags);
    if (!data->buffer[of->buffer].init)
        return diag_error(diags, span_none, "J010", "%s: `%s` is an output", where,
                          of->name);
    fill_view(arg, of, data->buffer[of->buffer].init, to);
    return true;
}

static bool make_buffer(const Template *t, int i, uint64_t seed, const InputFiles *files,
                        ProblemData *data, Arena *arena, Diags *diags)
{
    const TemplateArg *arg = &t->arg.at[i];
    RunnerBuffer *buffer = &data->buffer[arg->buffer];
    *buffer = (RunnerBuffer){.name = arg->name,
                             .scalar = template_has_bounds(arg) ? arg->element->own
                                                                : arg->element->compared,
                             .count = compared_count(arg),
                             .bytes = (size_t)(arg->count * arg->element->bytes),
                             .width = arg->element->bytes,
                             .spared = arg->spared,
                             .inout = arg->access == ACCESS_INOUT};
    if (arg->image)
        buffer->image = image_shape(arg);
    if (arg->access == ACCESS_OUT)
        return true;
    size_t bytes = runner_buffer_bytes(buffer);
    char *init = memset(arena_shared(arena, bytes), 0, bytes);
    if (!fill_buffer(t, i, seed, files, data, init, diags))
        return false;
    buffer->init = init;
    return true;
}

ProblemData *template_data(const Problem *problem, uint64_t seed, const InputFiles *files,
                           Arena *arena, Diags *diags)
{
    const Template *t = problem->template;
    ProblemData *data = NEW(arena, ProblemData);
    int *output = NEW_ARRAY(arena, int, t->arg.len);
    data->buffer = NEW_ARRAY(arena, RunnerBuffer, t->arg.len);
    data->output = output;
    data->tolerance = t->tolerance;
    for (int i = 0; i < t->arg.len; i++) {
        const TemplateArg *arg = &t->arg.at[i];
        if (!template_is_array(arg))
            continue;
        data->nbuffer++;
        if (arg->access != ACCESS_IN)
            output[data->noutput++] = arg->buffer;
        if (!make_buffer(t, i, seed, files, data, arena, diags))
            return NULL;
    }
    return data;
}

// Each input read once, each output written once; a view is another form of an input.
double template_bytes(const Problem *problem)
{
    const Template *t = problem->template;
    double bytes = 0;
    VEC_EACH_REF(const TemplateArg *, arg, &t->arg) {
        double size =
            !template_is_array(arg) || arg->fill.kind == FILL_VIEW || arg->unchecked
                ? 0
                : (double)arg->count * arg->element->bytes;
        bytes += arg->access == ACCESS_INOUT ? 2 * size : size;
    }
    return bytes;
}

Argument *template_arguments(const Problem *problem, Arena *arena, int *n)
{
    const Template *t = problem->template;
    Argument *argument = NEW_ARRAY(arena, Argument, MAX(t->arg.len, 1));
    *n = 0;
    VEC_EACH_REF(const TemplateArg *, arg, &t->arg) {
        if (!template_is_array(arg))
            continue;
        int64_t *shape = NEW_ARRAY(arena, int64_t, DIMS_MAX + 1);
        const NpyLayout layout = template_layout(arg, shape);
        argument[(*n)++] = (Argument){.name = arg->name,
                                      .type = arg->type,
                                      .count = arg->count / arg->width,
                                      .bytes = arg->count * arg->element->bytes,
                                      .in = arg->access != ACCESS_OUT,
                                      .out = arg->access != ACCESS_IN,
                                      .image = arg->image,
                                      .shape = shape,
                                      .rank = layout.ndim};
    }
    return argument;
}

bool template_write(const Problem *problem, const ProblemData *data, int output,
                    const void *raw, const char *path, Diags *diags)
{
    const Template *t = problem->template;
    VEC_EACH_REF(const TemplateArg *, arg, &t->arg) {
        int64_t shape[DIMS_MAX + 1];
        if (arg->buffer != data->output[output])
            continue;
        const NpyLayout layout = template_layout(arg, shape);
        return npy_write_raw(path, &layout, raw, diags);
    }
    BUG("no output %d", output);
}
