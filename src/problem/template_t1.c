// SPDX-License-Identifier: Apache-2.0
//
// The community's T1 files (TuningSchema 1.0.0, and what its files in use add to it) into
// templates: what Kernel Tuner and KTT read too.
//
//   source  TuningSchema, T1 1.0.0; Kernel Tuner 1.4.0, tune_kernel_T1: the grid is the
//           problem's size by the divisors, where these are given
//
// A T1 file says little of its data and names no reference, so the template at its default
// point is one. Keys that say how to search are the command line's.

#include "problem/template.h"

#include <math.h>
#include <string.h>

typedef struct {
    const TemplateReader *r;
    const json_t *space, *kernel;
} T1;

static const char *in(const TemplateReader *r, const char *format, size_t i)
{
    return arena_printf(r->t->arena, format, i);
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

// An expression given as text or number; `otherwise` if it is absent.
static const char *expression_of(const TemplateReader *r, const json_t *object,
                                 const char *key, const char *otherwise)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_string(value))
        return arena_strdup(r->t->arena, json_string_value(value));
    if (json_is_integer(value))
        return arena_printf(r->t->arena, "%lld", (long long)json_integer_value(value));
    return otherwise;
}

// Sizes: ProblemSize[0], ... ----------------------------------------------------------

// A whole number, or a text that has one: an expression over the sizes before it.
static bool read_size(const T1 *f, const char *where, const json_t *item, int64_t *size)
{
    Space *known = f->r->t->sizes;
    const char *text = json_string_value(item);
    const SpaceExpr *expr = text ? space_expression(known, where, text, f->r->diags) : NULL;
    double value = expr ? space_evaluate(known, expr, NULL) : json_number_value(item);
    if (text && !expr)
        return false;
    if (!(text || json_is_integer(item)) || fabs(value) > 0x1p53 || value != floor(value))
        return reader_wrong(f->r, where, "expected a whole number");
    *size = (int64_t)value;
    return true;
}

// A size or a list of them.
static bool read_sizes(const T1 *f)
{
    Template *t = f->r->t;
    const json_t *given = json_object_get(f->kernel, "ProblemSize");
    size_t n = json_is_array(given) ? json_array_size(given) : given != NULL;
    for (size_t i = 0; i < n && i < DIMS_MAX; i++) {
        const json_t *item = json_is_array(given) ? json_array_get(given, i) : given;
        Binding size = {.name = in(f->r, "ProblemSize[%zu]", i)};
        if (!read_size(f, in(f->r, "KernelSpecification.ProblemSize[%zu]", i), item,
                       &size.value))
            return false;
        VEC_PUSH(t->arena, &t->size, size);
        space_define(t->sizes, size.name, (double)size.value);
    }
    return true;
}

// Parameters and conditions -----------------------------------------------------------

// The default, if it is one of the values: files in use have lists of one, and others.
static const json_t *default_of(const json_t *param, const json_t *values)
{
    const json_t *first = json_object_get(param, "Default");
    if (json_is_array(first))
        first = json_array_get(first, 0);
    for (size_t i = 0; first && i < json_array_size(values); i++)
        if (json_equal(json_array_get(values, i), first))
            return first;
    return NULL;
}

// In lengths a parameter stands for its largest value, as `max(filter_width)` does where
// these files are read as Python.
static void define_largest(const Template *t)
{
    const TemplateParam *param = &t->param.at[t->param.len - 1];
    double largest = param->value[0];
    for (int i = 1; i < param->n; i++)
        largest = MAX(largest, param->value[i]);
    space_define(t->sizes, param->name, largest);
}

static bool read_params(const T1 *f)
{
    const json_t *list = json_object_get(f->space, "TuningParameters");
    if (!json_is_array(list) || json_array_size(list) == 0)
        return reader_wrong(f->r, "ConfigurationSpace.TuningParameters",
                            "expected a list of parameters");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *where = in(f->r, "ConfigurationSpace.TuningParameters[%zu]", i);
        const json_t *param = json_array_get(list, i);
        const char *name = text_of(param, "Name"), *text = text_of(param, "Values");
        json_t *values = json_object_get(param, "Values");
        if (!name || (!text && !json_is_array(values)))
            return reader_wrong(f->r, where, "expected `Name` and `Values`, as texts");
        json_t *made =
            text ? list_parse(f->r->t, where, text, f->r->diags) : json_incref(values);
        bool ok = made && reader_param(f->r, where, name, made, default_of(param, made));
        json_decref(made);
        if (!ok)
            return false;
        define_largest(f->r->t);
    }
    return true;
}

static bool read_conditions(const T1 *f)
{
    Template *t = f->r->t;
    const json_t *list = json_object_get(f->space, "Conditions");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *where = in(f->r, "ConfigurationSpace.Conditions[%zu]", i);
        const char *text = text_of(json_array_get(list, i), "Expression");
        if (!text)
            return reader_wrong(f->r, where, "expected `Expression`");
        VEC_PUSH(t->arena, &t->constraint,
                 (TemplateText){arena_printf(t->arena, "%s: %s", t->path, where),
                                arena_strdup(t->arena, text)});
    }
    return true;
}

// Arguments ---------------------------------------------------------------------------

// The schema's names for types; its int8..uint64 are words of OpenCL otherwise.
static const char *element_name(const char *type)
{
    static const char *const renamed[][2] = {
        {"int8", "char"},     {"uint8", "uchar"},  {"int16", "short"},
        {"uint16", "ushort"}, {"int32", "int"},    {"uint32", "uint"},
        {"int64", "long"},    {"uint64", "ulong"}, {"bool", "uchar"}};
    for (int i = 0; i < COUNTOF(renamed); i++)
        if (strcmp(renamed[i][0], type) == 0)
            return renamed[i][1];
    return type;
}

static Access access_of(const json_t *json)
{
    const char *access = text_of(json, "AccessType");
    if (access && strcmp(access, "WriteOnly") == 0)
        return ACCESS_OUT;
    return access && strcmp(access, "ReadWrite") == 0 ? ACCESS_INOUT : ACCESS_IN;
}

static bool read_fill(const TemplateReader *r, const char *where, const json_t *json,
                      Fill *out)
{
    const char *fill = text_of(json, "FillType");
    const json_t *value = json_object_get(json, "FillValue");
    bool random = fill && strcmp(fill, "Random") == 0;
    const char *source = text_of(json, "DataSource");
    bool raw = fill && strcmp(fill, "BinaryRaw") == 0;
    if (raw || (fill && strcmp(fill, "Generator") == 0)) {
        if (!source)
            return reader_wrong(r, where, "FillType `%s` needs a DataSource", fill);
        out->kind = raw ? FILL_RAW : FILL_EXPRESSION;
        out->file = raw ? reader_path(r, source) : arena_strdup(r->t->arena, source);
        return true;
    }
    if (fill && !random && strcmp(fill, "Constant") != 0)
        return reader_wrong(
            r, where,
            "FillType `%s` is not supported; use Constant, Random, Generator or BinaryRaw",
            fill);
    out->kind = random ? FILL_RANDOM : FILL_CONSTANT;
    out->low = random ? 0 : json_number_value(value);
    out->high = json_number_value(value);
    out->ranged = random && out->high > 0;
    return true;
}

static bool read_scalar(const TemplateReader *r, const char *where, const json_t *json,
                        TemplateArg *arg)
{
    const json_t *given = json_object_get(json, "FillValue");
    const char *value = json_is_real(given)
                            ? arena_printf(r->t->arena, "%.17g", json_real_value(given))
                            : expression_of(r, json, "FillValue", NULL);
    if (!value)
        return reader_wrong(r, where, "a scalar needs a FillValue");
    for (int lane = 0; lane < arg->member.at[0].width; lane++)
        VEC_PUSH(r->t->arena, &arg->values, value);
    return true;
}

static bool read_local(const TemplateReader *r, const char *where, const json_t *json,
                       TemplateArg *arg)
{
    arg->local = expression_of(r, json, "Size", NULL);
    return arg->local || reader_wrong(r, where, "local memory needs a Size");
}

static bool read_vector(const TemplateReader *r, const char *where, const json_t *json,
                        TemplateArg *arg)
{
    arg->ndim = 1;
    arg->shape[0] = expression_of(r, json, "Size", NULL);
    arg->access = access_of(json);
    if (!arg->shape[0])
        return reader_wrong(r, where, "a vector needs a Size");
    return (arg->access == ACCESS_IN ||
            reader_bound(r, reader_in(r, where, "tolerance"),
                         json_object_get(json, "tolerance"), arg)) &&
           read_fill(r, where, json, &arg->fill);
}

static bool read_arg(const TemplateReader *r, const char *where, const json_t *json)
{
    Template *t = r->t;
    const char *name = text_of(json, "Name"), *memory = text_of(json, "MemoryType");
    const char *type = text_of(json, "Type"), *special = text_of(json, "MemType");
    bool cuda = language_is(t->language, LANGUAGE_CUDA);
    if (!type || !memory)
        return reader_wrong(r, where, "expected `Type` and `MemoryType`, as texts");
    TemplateArg arg = {.name = name ? arena_strdup(t->arena, name) : where, .buffer = -1};
    json_auto_t *element = json_text(element_name(type));
    bool known = reader_type(r, where, element, &arg);
    // Kernel Tuner copies what is Constant to the variable of its name, and passes it too.
    arg.both = cuda && special && strcmp(special, "Constant") == 0;
    bool symbol = strcmp(memory, "Symbol") == 0 || arg.both;
    if (!known || (strcmp(memory, "Scalar") == 0  ? !read_scalar(r, where, json, &arg)
                   : strcmp(memory, "Local") == 0 ? !read_local(r, where, json, &arg)
                   : symbol || strcmp(memory, "Vector") == 0
                       ? !read_vector(r, where, json, &arg)
                       : !reader_wrong(r, where, "there is no MemoryType `%s`", memory)))
        return false;
    if (symbol && !name)
        return reader_wrong(r, where, "a symbol needs a Name");
    arg.symbol = symbol ? arg.name : NULL;
    VEC_PUSH(t->arena, &t->arg, arg);
    return true;
}

static bool read_args(const T1 *f)
{
    const json_t *list = json_object_get(f->kernel, "Arguments");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_arg(f->r, in(f->r, "KernelSpecification.Arguments[%zu]", i),
                      json_array_get(list, i)))
            return false;
    return true;
}

// The launch --------------------------------------------------------------------------

static bool is_tuned(const Template *t, const char *name)
{
    return FIND(t->param.at, t->param.len, name, name) >= 0;
}

// `ceil(ProblemSize[0] / (bx * tx))`; 1 where the problem has no such dimension. Without
// divisors it is the block's size.
static const char *divided(const T1 *f, int d, const json_t *divisors, const char *block)
{
    Template *t = f->r->t;
    const char *product = is_tuned(t, block) ? block : "1";
    if (d >= t->size.len)
        return "1";
    for (size_t i = 0; i < json_array_size(divisors); i++) {
        const json_t *item = json_array_get(divisors, i);
        const char *factor =
            json_is_integer(item)
                ? arena_printf(t->arena, "%lld", (long long)json_integer_value(item))
            : json_is_string(item) ? json_string_value(item)
                                   : "1";
        product =
            arena_printf(t->arena, "%s%s(%s)", i ? product : "", i ? " * " : "", factor);
    }
    return arena_printf(t->arena, "ceil(ProblemSize[%d] / (%s))", d, product);
}

static bool read_launch(const T1 *f)
{
    static const char *const axis[] = {"X", "Y", "Z"};
    static const char *const divisor[] = {"GridDivX", "GridDivY", "GridDivZ"};
    static const char *const block[] = {"block_size_x", "block_size_y", "block_size_z"};
    const json_t *global = json_object_get(f->kernel, "GlobalSize");
    const json_t *local = json_object_get(f->kernel, "LocalSize");
    const char *type = text_of(f->kernel, "GlobalSizeType");
    Template *t = f->r->t;
    bool by_size = json_is_array(json_object_get(f->kernel, "GridDivX"));
    bool items =
        type ? strcmp(type, "OpenCL") == 0 : language_is(t->language, LANGUAGE_OPENCL);
    TemplateLaunch launch = {.loop = -1, .groups = by_size || !items};
    const char *name = text_of(f->kernel, "KernelName");
    if (!name)
        return reader_wrong(f->r, "KernelSpecification.KernelName", "expected a text");
    if (!by_size && !json_is_object(global))
        return reader_wrong(f->r, "KernelSpecification",
                            "expected GlobalSize, or ProblemSize and GridDivX");
    if (!reader_kernel(f->r, "KernelSpecification.KernelName", name, true))
        return false;
    launch.kernel = arena_strdup(t->arena, name);
    const json_t *shared = json_object_get(f->kernel, "SharedMemory");
    if (json_is_string(shared) || json_integer_value(shared) > 0)
        launch.shared = expression_of(f->r, f->kernel, "SharedMemory", NULL);
    for (int d = 0; d < DIMS_MAX; d++) {
        bool tuned = is_tuned(t, block[d]);
        launch.local[d] = expression_of(f->r, local, axis[d], tuned ? block[d] : "1");
        if (!tuned && strcmp(launch.local[d], block[d]) == 0)
            launch.local[d] = d == 0 ? "256" : "1"; // as Kernel Tuner takes it
        const json_t *divisors = json_object_get(f->kernel, divisor[d]);
        launch.global[d] = by_size ? divided(f, d, divisors, block[d])
                                   : expression_of(f->r, global, axis[d], "1");
    }
    VEC_PUSH(t->arena, &t->launch, launch);
    return true;
}

// The rest ----------------------------------------------------------------------------

static bool read_language(const T1 *f)
{
    const char *language = text_of(f->kernel, "Language");
    bool opencl = language && strcmp(language, "OpenCL") == 0;
    if (language && strcmp(language, "Hypertuner") == 0)
        return reader_wrong(f->r, "KernelSpecification.Language",
                            "a space of options of a search (`Hypertuner`), which has no "
                            "kernel; forewarp replay searches a record of it");
    if (!opencl && (!language || strcmp(language, "CUDA") != 0))
        return reader_wrong(f->r, "KernelSpecification.Language",
                            "`%s` is not supported; use OpenCL or CUDA",
                            language ? language : "");
    f->r->t->language = language_name[opencl ? LANGUAGE_OPENCL : LANGUAGE_CUDA];
    return true;
}

static bool read_sources(const T1 *f)
{
    Template *t = f->r->t;
    const char *file = text_of(f->kernel, "KernelFile");
    const json_t *options = json_object_get(f->kernel, "CompilerOptions");
    if (!file)
        return reader_wrong(f->r, "KernelSpecification.KernelFile", "expected a text");
    VEC_PUSH(t->arena, &t->file, arena_strdup(t->arena, file));
    for (size_t i = 0; i < json_array_size(options); i++) {
        const char *option = json_string_value(json_array_get(options, i));
        t->options = arena_printf(t->arena, "%s%s%s", t->options, t->options[0] ? " " : "",
                                  option ? option : "");
    }
    return reader_sources(f->r) && reader_kernels(f->r);
}

// How far the elements of an output may be off. KTT adds up the differences of all
// elements for `AbsoluteDifference`; here each of them has that bound.
static void read_threshold(const json_t *json, TemplateArg *arg)
{
    const json_t *threshold = json_object_get(json, "ValidationThreshold");
    const char *method = text_of(json, "ValidationMethod");
    if (!json_is_number(threshold))
        return;
    bool relative = method && strcmp(method, "SideBySideRelativeComparison") == 0;
    arg->bounded = true;
    *(relative ? &arg->relative : &arg->absolute) = json_number_value(threshold);
}

// A reference argument says what an output must hold, how far it may be off, or both.
static bool read_reference_arg(const TemplateReader *r, const char *where,
                               const json_t *json)
{
    Template *t = r->t;
    const char *target = text_of(json, "TargetName");
    const char *name = target ? target : text_of(json, "Name");
    int arg = name ? template_arg(t, name) : -1;
    Fill value = {.kind = FILL_RANDOM};
    if (!name || arg < 0 || t->arg.at[arg].access == ACCESS_IN)
        return reader_wrong(r, where, "TargetName: there is no output `%s`",
                            name ? name : "");
    read_threshold(json, &t->arg.at[arg]);
    if (!json_object_get(json, "FillType"))
        return true;
    t->reference.kind = REFERENCE_VALUES;
    t->reference.given = true;
    return read_fill(r, where, json, &value) && reader_expected(r, where, name, &value);
}

static bool read_reference_args(const T1 *f)
{
    const json_t *list = json_object_get(f->kernel, "ReferenceArguments");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_reference_arg(f->r,
                                in(f->r, "KernelSpecification.ReferenceArguments[%zu]", i),
                                json_array_get(list, i)))
            return false;
    return true;
}

bool template_read_t1(Template *t, Diags *diags)
{
    const TemplateReader r = {t, diags};
    const T1 f = {&r, json_object_get(t->json, "ConfigurationSpace"),
                  json_object_get(t->json, "KernelSpecification")};
    t->kernel_tuner = true;
    if (!f.space || !f.kernel)
        return reader_wrong(&r, f.space ? "KernelSpecification" : "ConfigurationSpace",
                            "it is missing: T1 files before version 1.0.0, which spell "
                            "keys differently, are not supported");
    return read_language(&f) && read_sizes(&f) && read_params(&f) && read_conditions(&f) &&
           read_args(&f) && read_reference_args(&f) && read_launch(&f) && read_sources(&f);
}
