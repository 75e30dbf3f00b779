// SPDX-License-Identifier: Apache-2.0
//
// Problem files of forewarp's own form (doc/problems.md) into templates. Every key is
// known or refused; messages name the place as a path: arguments[2].shape. Expressions
// are only kept as text here: they are read when the sizes are bound.

#include "ir/names.h"
#include "problem/template.h"

#include <string.h>

bool reader_wrong(const TemplateReader *r, const char *where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *what = arena_vprintf(r->diags->arena, format, args);
    va_end(args);
    return diag_error(r->diags, span_none, "J002", "%s: %s%s%s", r->t->path, where,
                      where[0] ? ": " : "", what);
}

const char *reader_in(const TemplateReader *r, const char *where, const char *key)
{
    return arena_printf(r->t->arena, "%s%s%s", where, where[0] ? "." : "", key);
}

static const char *at(const TemplateReader *r, const char *where, size_t i)
{
    return arena_printf(r->t->arena, "%s[%zu]", where, i);
}

static bool no_key(const TemplateReader *r, const char *where, const char *key,
                   const char *const *known)
{
    int n = 0;
    AutoBuf hint = buf_new();
    while (known[n])
        n++;
    guess_print_known(&hint, key, known, n);
    return reader_wrong(r, where, "there is no such key here%s", hint.text);
}

// Every key of the object must be one of the list, which NULL ends.
bool reader_keys(const TemplateReader *r, const char *where, const json_t *object,
                 const char *const *known)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return reader_wrong(r, where, "expected an object { }");
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        int i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            return no_key(r, reader_in(r, where, key), key, known);
    }
    return true;
}

// A text, copied; an absent key leaves *out alone.
bool reader_text(const TemplateReader *r, const char *where, const json_t *object,
                 const char *key, bool needed, const char **out)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        return !needed || reader_wrong(r, reader_in(r, where, key), "it is missing");
    if (!json_is_string(value) || !json_string_value(value)[0])
        return reader_wrong(r, reader_in(r, where, key), "expected a text");
    *out = arena_strdup(r->t->arena, json_string_value(value));
    return true;
}

static const char *number_text(Arena *arena, double x)
{
    for (int digits = 15;; digits++) {
        char *text = arena_printf(arena, "%.*g", digits, x);
        if (digits == 17 || strtod(text, NULL) == x)
            return text;
    }
}

// An expression: a text, a number or a truth value.
static const char *expression_of(const TemplateReader *r, const char *where,
                                 const json_t *value)
{
    if (json_is_string(value) && json_string_value(value)[0])
        return arena_strdup(r->t->arena, json_string_value(value));
    if (json_is_number(value))
        return number_text(r->t->arena, json_number_value(value));
    if (json_is_boolean(value))
        return json_is_true(value) ? "1" : "0";
    reader_wrong(r, where, "expected an expression: a text or a number");
    return NULL;
}

// An expression; an absent key leaves *out alone.
static bool read_expression(const TemplateReader *r, const char *where,
                            const json_t *object, const char *key, const char **out)
{
    const json_t *value = json_object_get(object, key);
    return !value || (*out = expression_of(r, reader_in(r, where, key), value));
}

// One expression, or as many as an array has dimensions; how many; 0: it is wrong.
static int read_expressions(const TemplateReader *r, const char *where, const json_t *json,
                            const char *what, const char **out)
{
    size_t n = json_is_array(json) ? json_array_size(json) : 1;
    if (!json || n < 1 || n > DIMS_MAX) {
        reader_wrong(r, where, "expected 1 to %d %s", DIMS_MAX, what);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        if (!(out[i] = expression_of(r, at(r, where, i),
                                     json_is_array(json) ? json_array_get(json, i) : json)))
            return 0;
    return (int)n;
}

static bool flag_of(const TemplateReader *r, const char *where, const json_t *object,
                    const char *key, bool *out)
{
    const json_t *value = json_object_get(object, key);
    if (value && !json_is_boolean(value))
        return reader_wrong(r, reader_in(r, where, key), "expected true or false");
    if (value)
        *out = json_is_true(value);
    return true;
}

// One of the words of the list, as its number; an absent key leaves *out alone.
static bool word_of(const TemplateReader *r, const char *where, const json_t *object,
                    const char *key, const char *const *word, int n, int *out)
{
    const char *text;
    if (!json_object_get(object, key))
        return true;
    if (!reader_text(r, where, object, key, true, &text))
        return false;
    int found = FIND_TEXT(word, n, text);
    if (found >= 0) {
        *out = found;
        return true;
    }
    AutoBuf known = buf_new();
    for (int i = 0; i < n; i++)
        buf_printf(&known, "%s%s", i ? ", " : "", word[i]);
    return reader_wrong(r, reader_in(r, where, key), "`%s` is not one of %s", text,
                        known.text);
}

// Files -------------------------------------------------------------------------------

const char *reader_path(const TemplateReader *r, const char *name)
{
    return name[0] == '/' ? arena_strdup(r->t->arena, name)
                          : arena_printf(r->t->arena, "%s%s", r->t->folder, name);
}

const char *reader_file(const TemplateReader *r, const char *where, const char *name,
                        Buf *text)
{
    const char *path = reader_path(r, name);
    if (file_read(path, FILE_TEXT_MOST, text))
        return path;
    reader_wrong(r, where, "cannot read %s: %s", path, text->text);
    return NULL;
}

void template_line(Buf *out, const char *path)
{
    buf_puts(out, "#line 1 \"");
    for (const char *c = path; *c; c++) {
        if (*c == '"' || *c == '\\')
            buf_putc(out, '\\');
        buf_putc(out, (unsigned char)*c < ' ' ? '?' : *c);
    }
    buf_puts(out, "\"\n");
}

// One text, or a list of them.
static bool texts_of(const TemplateReader *r, const char *where, const json_t *value,
                     void (*push)(Template *t, const char *text))
{
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_string(item) || !json_string_value(item)[0])
            return reader_wrong(r, where, "expected a text or a list of texts");
        push(r->t, arena_strdup(r->t->arena, json_string_value(item)));
    }
    return true;
}

static void push_file(Template *t, const char *text)
{
    VEC_PUSH(t->arena, &t->file, text);
}

static void push_option(Template *t, const char *text)
{
    t->options =
        arena_printf(t->arena, "%s%s%s", t->options, t->options[0] ? " " : "", text);
}

// Parameters, sizes, constraints ------------------------------------------------------

bool reader_is_name(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return strspn(text, letters) == strlen(text) && text[0] &&
           !strchr("0123456789", text[0]);
}

static bool is_taken(const Template *t, const char *name)
{
    return FIND(t->param.at, t->param.len, name, name) >= 0 ||
           FIND(t->size.at, t->size.len, name, name) >= 0 ||
           FIND_TEXT(t->loop.at, t->loop.len, name) >= 0;
}

static bool check_name(const TemplateReader *r, const char *where, const char *name)
{
    if (!reader_is_name(name))
        return reader_wrong(r, where, "`%s` cannot name a macro", name);
    return !is_taken(r->t, name) || reader_wrong(r, where, "the name is given twice");
}

static const char *value_text(Arena *arena, const json_t *value)
{
    if (json_is_string(value))
        return arena_strdup(arena, json_string_value(value));
    if (json_is_boolean(value))
        return json_is_true(value) ? "1" : "0";
    return number_text(arena, json_number_value(value));
}

static bool check_values(const TemplateReader *r, const char *where, const json_t *values)
{
    size_t n = json_array_size(values), words = 0;
    Map seen = {.arena = r->t->arena};
    if (n == 0 || n > INT16_MAX)
        return reader_wrong(r, where, "expected 1 to %d values", INT16_MAX);
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(values, i);
        words += json_is_string(value);
        if (!json_is_string(value) && !json_is_number(value) && !json_is_boolean(value))
            return reader_wrong(r, at(r, where, i),
                                "expected a number, truth value or text");
        const char *text = value_text(r->t->arena, value);
        if (map_get(&seen, text))
            return reader_wrong(r, at(r, where, i), "the value is given twice");
        map_put(&seen, text, (void *)value);
    }
    return words == 0 || words == n ||
           reader_wrong(r, where, "the values must be all numbers or all texts");
}

bool reader_param(const TemplateReader *r, const char *where, const char *name,
                  const json_t *values, const json_t *first)
{
    Template *t = r->t;
    if (!check_name(r, where, name) || !check_values(r, where, values))
        return false;
    if (t->param.len == SPACE_PARAMS_MAX)
        return reader_wrong(r, where, "at most %d parameters", SPACE_PARAMS_MAX);
    int n = (int)json_array_size(values);
    double *value = NEW_ARRAY(t->arena, double, n);
    const char **word = NEW_ARRAY(t->arena, const char *, n);
    char *form = NEW_ARRAY(t->arena, char, n);
    bool words = json_is_string(json_array_get(values, 0));
    for (int i = 0; i < n; i++) {
        const json_t *item = json_array_get(values, (size_t)i);
        value[i] = json_is_true(item) ? 1 : json_number_value(item);
        word[i] = value_text(t->arena, item);
        form[i] = json_is_boolean(item) ? VALUE_TRUTH
                  : json_is_real(item)  ? VALUE_REAL
                                        : VALUE_WHOLE;
    }
    VEC_PUSH(t->arena, &t->param,
             (TemplateParam){.name = arena_strdup(t->arena, name),
                             .n = n,
                             .value = value,
                             .form = form,
                             .word = words ? word : NULL,
                             .first = first ? value_text(t->arena, first) : NULL});
    return true;
}

json_t *list_parse(const Template *t, const char *where, const char *text, Diags *diags)
{
    SpaceItem *item;
    for (int i = 0; i < t->size.len; i++)
        space_define(t->sizes, t->size.at[i].name, (double)t->size.at[i].value);
    int n = space_items(t->sizes, arena_printf(t->arena, "%s: %s", t->path, where), text,
                        &item, diags);
    json_t *list = n < 0 ? NULL : json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(
            list, item[i].word                  ? json_string(item[i].word)
                  : item[i].form == VALUE_TRUTH ? json_boolean(item[i].number != 0)
                  : item[i].form == VALUE_REAL  ? json_real(item[i].number)
                                                : json_whole(item[i].number));
    return list;
}

// A list, or a Python expression that makes one.
static bool read_param(const TemplateReader *r, const char *where, const char *name,
                       const json_t *values)
{
    static const char *const known[] = {"values", "default", NULL};
    const json_t *first = NULL;
    if (json_is_object(values)) {
        if (!reader_keys(r, where, values, known))
            return false;
        first = json_object_get(values, "default");
        values = json_object_get(values, "values");
    }
    if (json_is_array(values))
        return reader_param(r, where, name, values, first);
    if (!json_is_string(values))
        return reader_wrong(r, where, "expected a list of values");
    json_auto_t *list = list_parse(r->t, where, json_string_value(values), r->diags);
    return list && reader_param(r, where, name, list, first);
}

static bool read_params(const TemplateReader *r, const json_t *params)
{
    const char *name;
    json_t *values;
    if (!json_is_object(params) || json_object_size(params) == 0)
        return reader_wrong(r, "parameters", "expected an object of names and values");
    json_object_foreach((json_t *)(uintptr_t)params, name, values)
    {
        if (!read_param(r, reader_in(r, "parameters", name), name, values))
            return false;
    }
    return true;
}

static bool read_sizes(const TemplateReader *r, const json_t *sizes)
{
    const char *name;
    json_t *value;
    if (sizes && !json_is_object(sizes))
        return reader_wrong(r, "sizes", "expected an object of names and whole numbers");
    json_object_foreach((json_t *)(uintptr_t)sizes, name, value)
    {
        const char *where = reader_in(r, "sizes", name);
        if (!check_name(r, where, name))
            return false;
        if (!json_is_integer(value))
            return reader_wrong(r, where, "expected a whole number");
        VEC_PUSH(r->t->arena, &r->t->size,
                 (Binding){arena_strdup(r->t->arena, name), json_integer_value(value)});
    }
    return true;
}

static bool read_constraint(const TemplateReader *r, const char *where, const json_t *json)
{
    const char *text = expression_of(r, where, json);
    if (!text)
        return false;
    VEC_PUSH(r->t->arena, &r->t->constraint,
             (TemplateText){arena_printf(r->t->arena, "%s: %s", r->t->path, where), text});
    return true;
}

static bool read_constraints(const TemplateReader *r, const json_t *list)
{
    if (list && !json_is_array(list))
        return read_constraint(r, "constraints", list);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_constraint(r, at(r, "constraints", i), json_array_get(list, i)))
            return false;
    return true;
}

// Arguments ---------------------------------------------------------------------------

int template_arg(const Template *t, const char *name)
{
    return FIND(t->arg.at, t->arg.len, name, name);
}

static bool read_range(const TemplateReader *r, const char *where, const json_t *range,
                       Fill *fill)
{
    const json_t *low = json_array_get(range, 0), *high = json_array_get(range, 1);
    if (json_array_size(range) != 2 || !json_is_number(low) || !json_is_number(high) ||
        json_number_value(low) > json_number_value(high))
        return reader_wrong(r, where, "expected [lowest, highest]");
    fill->ranged = true;
    fill->low = json_number_value(low);
    fill->high = json_number_value(high);
    return true;
}

static bool read_view(const TemplateReader *r, const char *where, const json_t *json,
                      Fill *fill)
{
    static const char *const edges[] = {"zero", "clamp"};
    const char *of = NULL;
    int edge = EDGE_ZERO;
    if (!reader_text(r, where, json, "of", true, &of) ||
        !word_of(r, where, json, "edge", edges, COUNTOF(edges), &edge))
        return false;
    fill->kind = FILL_VIEW;
    fill->edge = (Edge)edge;
    fill->of = template_arg(r->t, of);
    if (fill->of < 0 || !template_is_array(&r->t->arg.at[fill->of]))
        return reader_wrong(r, reader_in(r, where, "of"),
                            "there is no array `%s` before this one", of);
    return read_expression(r, where, json, "pad", &fill->pad);
}

// "random", a number, {"random": [0, 1]}, {"npy": FILE}, {"of": ARGUMENT, "pad": 2}
bool reader_fill(const TemplateReader *r, const char *where, const json_t *json, Fill *fill)
{
    static const char *const known[] = {"random", "npy",  "raw",        "of",
                                        "pad",    "edge", "expression", NULL};
    if (!json)
        return true;
    if (json_is_number(json)) {
        *fill = (Fill){.kind = FILL_CONSTANT, .low = json_number_value(json)};
        return true;
    }
    if (json_is_string(json) && strcmp(json_string_value(json), "random") == 0)
        return true;
    if (!json_is_object(json))
        return reader_wrong(r, where, "expected \"random\", a number or an object");
    if (!reader_keys(r, where, json, known))
        return false;
    if (json_object_get(json, "random"))
        return read_range(r, reader_in(r, where, "random"), json_object_get(json, "random"),
                          fill);
    if (json_object_get(json, "of"))
        return read_view(r, where, json, fill);
    if (json_object_get(json, "expression")) {
        fill->kind = FILL_EXPRESSION;
        return reader_text(r, where, json, "expression", true, &fill->file);
    }
    bool raw = json_object_get(json, "raw") != NULL;
    fill->kind = raw ? FILL_RAW : FILL_FILE;
    if (!reader_text(r, where, json, raw ? "raw" : "npy", true, &fill->file))
        return false;
    fill->file = reader_path(r, fill->file);
    return true;
}

// How far an output may be off: relative, or several bounds, which are added.
bool reader_bound(const TemplateReader *r, const char *where, const json_t *json,
                  TemplateArg *arg)
{
    static const char *const known[] = {"absolute", "relative", "rounding", "elements",
                                        NULL};
    const json_t *absolute = json_object_get(json, "absolute");
    const json_t *rounding = json_object_get(json, "rounding");
    const json_t *elements = json_object_get(json, "elements");
    const json_t *relative =
        json_is_number(json) ? json : json_object_get(json, "relative");
    if (!json)
        return true;
    if (!json_is_number(json) && !reader_keys(r, where, json, known))
        return false;
    arg->bounded = absolute || relative;
    arg->absolute = json_number_value(absolute);
    arg->relative = json_number_value(relative);
    arg->rounding = json_number_value(rounding);
    arg->spared = json_integer_value(elements);
    return ((!absolute || json_is_number(absolute)) &&
            (!relative || json_is_number(relative)) &&
            (!rounding || json_is_number(rounding)) &&
            (!elements || json_is_integer(elements)) &&
            (arg->bounded || rounding || elements) && arg->absolute >= 0 &&
            arg->relative >= 0 && arg->rounding >= 0 && arg->spared >= 0) ||
           reader_wrong(r, where,
                        "expected a number of at least 0, or {\"absolute\": .., "
                        "\"relative\": .., \"rounding\": .., \"elements\": ..}");
}

static bool read_array(const TemplateReader *r, const char *where, const json_t *json,
                       TemplateArg *arg)
{
    static const char *const access[] = {"in", "out", "inout"};
    int chosen = ACCESS_IN;
    bool checked = true;
    const json_t *check = json_object_get(json, "check");
    const json_t *fill = json_object_get(json, "fill");
    arg->ndim =
        read_expressions(r, reader_in(r, where, "shape"), json_object_get(json, "shape"),
                         "lengths, outermost first", arg->shape);
    if (!arg->ndim ||
        !word_of(r, where, json, "access", access, COUNTOF(access), &chosen) ||
        !reader_fill(r, reader_in(r, where, "fill"), fill, &arg->fill) ||
        !flag_of(r, where, json, "image", &arg->image) ||
        !reader_text(r, where, json, "symbol", false, &arg->symbol) ||
        !(json_is_string(check) ? read_expression(r, where, json, "check", &arg->part)
                                : flag_of(r, where, json, "check", &checked)))
        return false;
    arg->access = (Access)chosen;
    arg->unchecked = !checked;
    if (!reader_bound(r, reader_in(r, where, "tolerance"),
                      json_object_get(json, "tolerance"), arg))
        return false;
    if ((arg->part || arg->bounded || arg->rounding > 0 || arg->spared > 0) &&
        arg->access == ACCESS_IN)
        return reader_wrong(r, where, "an input is not compared");
    if (arg->access == ACCESS_OUT && fill)
        return reader_wrong(r, reader_in(r, where, "fill"),
                            "an output has no content before the run; with \"access\": "
                            "\"inout\" it does");
    if (arg->symbol && !language_is(r->t->language, LANGUAGE_CUDA))
        return reader_wrong(r, reader_in(r, where, "symbol"),
                            "only CUDA has variables of a module");
    if (arg->symbol && !reader_kernel(r, reader_in(r, where, "symbol"), arg->symbol, true))
        return false;
    if (arg->image &&
        (arg->access != ACCESS_IN || !language_is(r->t->language, LANGUAGE_OPENCL)))
        return reader_wrong(r, reader_in(r, where, "image"),
                            "an image must be an input of an OpenCL kernel");
    if (arg->width == 4 && arg->member.len == 1 && arg->member.at[0].width == 3 &&
        arg->access != ACCESS_IN && checked)
        return reader_wrong(r, reader_in(r, where, "type"),
                            "the fourth place of `%s` has no defined content: use a vector "
                            "of four, or \"check\": false",
                            arg->type);
    if (arg->image && (arg->width > 4 || arg->member.len > 1))
        return reader_wrong(r, reader_in(r, where, "type"),
                            "images have at most 4 channels");
    return true;
}

// One expression, or a list of one a lane, of all members.
static bool read_values(const TemplateReader *r, const char *where, const json_t *value,
                        TemplateArg *arg)
{
    size_t n = json_is_array(value) ? json_array_size(value) : 1, lanes = 0;
    for (int i = 0; i < arg->member.len; i++)
        lanes += (size_t)arg->member.at[i].width;
    if (n != lanes)
        return reader_wrong(r, where, "expected %zu value%s, for `%s`", lanes,
                            lanes == 1 ? "" : "s", arg->type);
    for (size_t i = 0; i < n; i++) {
        const char *text = expression_of(
            r, at(r, where, i), json_is_array(value) ? json_array_get(value, i) : value);
        if (!text)
            return false;
        VEC_PUSH(r->t->arena, &arg->values, text);
    }
    return true;
}

static bool read_arg(const TemplateReader *r, const char *where, const json_t *json)
{
    static const char *const array_keys[] = {"name", "type",      "shape", "access",
                                             "fill", "image",     "check", "symbol",
                                             "if",   "tolerance", NULL};
    static const char *const scalar_keys[] = {"name", "type", "value", "if", NULL};
    static const char *const local_keys[] = {"name", "type", "local", "if", NULL};
    const json_t *value = json_object_get(json, "value");
    const json_t *local = json_object_get(json, "local"),
                 *type = json_object_get(json, "type");
    TemplateArg arg = {.buffer = -1};
    if (!reader_keys(r, where, json,
                     value   ? scalar_keys
                     : local ? local_keys
                             : array_keys) ||
        !reader_text(r, where, json, "name", true, &arg.name))
        return false;
    if (!type)
        return reader_wrong(r, reader_in(r, where, "type"), "it is missing");
    if (!reader_type(r, reader_in(r, where, "type"), type, &arg))
        return false;
    if (template_arg(r->t, arg.name) >= 0)
        return reader_wrong(r, reader_in(r, where, "name"), "`%s` is given twice",
                            arg.name);
    if (value && !read_values(r, reader_in(r, where, "value"), value, &arg))
        return false;
    if (!read_expression(r, where, json, "local", &arg.local) ||
        (!value && !local && !read_array(r, where, json, &arg)) ||
        !read_expression(r, where, json, "if", &arg.when))
        return false;
    VEC_PUSH(r->t->arena, &r->t->arg, arg);
    return true;
}

static bool read_args(const TemplateReader *r, const json_t *list)
{
    if (!json_is_array(list) || json_array_size(list) == 0)
        return reader_wrong(r, "arguments", "expected a list of objects");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_arg(r, at(r, "arguments", i), json_array_get(list, i)))
            return false;
    return true;
}

// Launches ----------------------------------------------------------------------------

static bool read_extent(const TemplateReader *r, const char *where, const json_t *json,
                        const char **out)
{
    for (int i = 0; i < DIMS_MAX; i++)
        out[i] = "1";
    return read_expressions(r, where, json, "expressions, x first", out) > 0;
}

bool reader_arg_names(const TemplateReader *r, const char *where, const json_t *names,
                      TemplateLaunch *launch)
{
    if (!names)
        return true;
    if (!json_is_array(names))
        return reader_wrong(r, where, "expected a list of names of arguments");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (!name || template_arg(r->t, name) < 0)
            return reader_wrong(r, at(r, where, i), "there is no argument `%s`",
                                name ? name : "");
        VEC_PUSH(r->t->arena, &launch->argument, arena_strdup(r->t->arena, name));
    }
    return true;
}

static bool read_shared(const TemplateReader *r, const char *where, const json_t *json,
                        TemplateLaunch *launch)
{
    const json_t *shared = json_object_get(json, "shared");
    if (shared && !language_is(r->t->language, LANGUAGE_CUDA))
        return reader_wrong(
            r, reader_in(r, where, "shared"),
            "only CUDA has dynamic shared memory; in OpenCL use an argument with `local`");
    return read_expression(r, where, json, "shared", &launch->shared);
}

bool reader_launch(const TemplateReader *r, const char *where, const json_t *json,
                   TemplateLaunch *launch)
{
    const json_t *groups = json_object_get(json, "groups");
    const json_t *global = json_object_get(json, "global");
    bool function = language_is(r->t->language, LANGUAGE_C); // which is called as it is
    launch->groups = groups != NULL;
    if (function && (groups || global || json_object_get(json, "local")))
        return reader_wrong(r, where, "a function in C has no work-items");
    if (!function && !groups == !global)
        return reader_wrong(r, where, "expected one of `global` (work-items) and `groups`");
    return reader_text(r, where, json, "kernel", true, &launch->kernel) &&
           reader_kernel(r, reader_in(r, where, "kernel"), launch->kernel, true) &&
           read_shared(r, where, json, launch) &&
           (function || (read_extent(r, reader_in(r, where, groups ? "groups" : "global"),
                                     groups ? groups : global, launch->global) &&
                         read_extent(r, reader_in(r, where, "local"),
                                     json_object_get(json, "local"), launch->local))) &&
           reader_arg_names(r, reader_in(r, where, "arguments"),
                            json_object_get(json, "arguments"), launch);
}

// The name of a repetition's number, which expressions of its launches and of values may
// have; loops one after the other may share it.
static bool read_loop(const TemplateReader *r, const char *where, TemplateLaunch *launch)
{
    Template *t = r->t;
    int i = 0;
    launch->loop = -1;
    if (!launch->as)
        return true;
    while (i < t->loop.len && strcmp(t->loop.at[i], launch->as) != 0)
        i++;
    if (i == t->loop.len && !check_name(r, reader_in(r, where, "as"), launch->as))
        return false;
    if (t->param.len + i == SPACE_PARAMS_MAX)
        return reader_wrong(r, where, "at most %d parameters and repetitions",
                            SPACE_PARAMS_MAX);
    launch->loop = t->param.len + i;
    if (i == t->loop.len)
        VEC_PUSH(t->arena, &t->loop, launch->as);
    return true;
}

static bool same_shape(const TemplateArg *a, const TemplateArg *b)
{
    bool same = a->ndim > 0 && a->ndim == b->ndim && strcmp(a->type, b->type) == 0 &&
                !a->image && !b->image && !a->symbol && !b->symbol;
    for (int d = 0; same && d < a->ndim; d++)
        same = strcmp(a->shape[d], b->shape[d]) == 0;
    return same;
}

static bool read_swap(const TemplateReader *r, const char *where, const json_t *swap,
                      TemplateLaunch *launch)
{
    const char *name[2];
    int arg[2];
    if (!swap)
        return true;
    for (size_t i = 0; i < 2; i++) {
        name[i] = json_string_value(json_array_get(swap, i));
        arg[i] = name[i] ? template_arg(r->t, name[i]) : -1;
    }
    if (json_array_size(swap) != 2 || arg[0] < 0 || arg[1] < 0 || arg[0] == arg[1] ||
        !same_shape(&r->t->arg.at[arg[0]], &r->t->arg.at[arg[1]]))
        return reader_wrong(r, where, "expected two arrays of the same type and shape");
    for (int i = 0; i < 2; i++)
        launch->swap[i] = r->t->arg.at[arg[i]].name;
    return true;
}

static bool read_times(const TemplateReader *r, const char *where, const json_t *json,
                       TemplateLaunch *launch)
{
    if (json_object_get(json, "as") && !json_object_get(json, "repeat"))
        return reader_wrong(r, reader_in(r, where, "as"), "it needs `repeat`");
    return read_expression(r, where, json, "repeat", &launch->repeat) &&
           read_expression(r, where, json, "if", &launch->when) &&
           reader_text(r, where, json, "as", false, &launch->as) &&
           read_loop(r, where, launch) &&
           read_swap(r, reader_in(r, where, "swap"), json_object_get(json, "swap"), launch);
}

enum { NESTED_MOST = 8 };

// One launch or a list of them.
static bool read_launches(const TemplateReader *r, const char *where, const json_t *json,
                          int nested, TemplateLaunch *into)
{
    static const char *const one[] = {"kernel",    "global", "groups", "local",
                                      "arguments", "shared", "if",     "repeat",
                                      "as",        "swap",   NULL};
    static const char *const list[] = {"launch", "if", "repeat", "as", "swap", NULL};
    size_t n = json_is_array(json) ? json_array_size(json) : 1;
    if (!json || n == 0)
        return reader_wrong(r, where, "it is missing");
    if (nested == NESTED_MOST)
        return reader_wrong(r, where, "lists are nested too deeply");
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_is_array(json) ? json_array_get(json, i) : json;
        const char *place = json_is_array(json) ? at(r, where, i) : where;
        const json_t *inner = json_object_get(item, "launch");
        TemplateLaunch launch = {0};
        if (!reader_keys(r, place, item, inner ? list : one) ||
            !read_times(r, place, item, &launch) ||
            !(inner ? read_launches(r, reader_in(r, place, "launch"), inner, nested + 1,
                                    &launch)
                    : reader_launch(r, place, item, &launch)))
            return false;
        VEC_PUSH(r->t->arena, &into->inner, launch);
    }
    return true;
}

static bool read_launch_key(const TemplateReader *r, const json_t *json)
{
    TemplateLaunch all = {0};
    if (!read_launches(r, "launch", json, 0, &all))
        return false;
    for (int i = 0; i < all.inner.len; i++)
        VEC_PUSH(r->t->arena, &r->t->launch, all.inner.at[i]);
    return true;
}

// Metrics -----------------------------------------------------------------------------

static bool read_metrics(const TemplateReader *r, const json_t *json)
{
    const char *name;
    json_t *value;
    if (json && !json_is_object(json))
        return reader_wrong(r, "metrics", "expected an object of names and expressions");
    json_object_foreach((json_t *)json, name, value)
    {
        const char *where = reader_in(r, "metrics", name);
        GoalText metric = {arena_strdup(r->t->arena, name), expression_of(r, where, value),
                           arena_printf(r->t->arena, "%s: %s", r->t->path, where)};
        if (!metric.text)
            return false;
        VEC_PUSH(r->t->arena, &r->t->problem->goal.metric, metric);
    }
    return true;
}

static void push_objective(Template *t, const char *text)
{
    const char *where = arena_printf(t->arena, "%s: objective", t->path);
    VEC_PUSH(t->arena, &t->problem->goal.objective, ((GoalText){NULL, text, where}));
}

static bool read_goal(const TemplateReader *r, const json_t *json)
{
    const json_t *objective = json_object_get(json, "objective");
    return read_metrics(r, json_object_get(json, "metrics")) &&
           (!objective || texts_of(r, "objective", objective, push_objective));
}

static bool read_tolerance(const TemplateReader *r, const json_t *json)
{
    if (json && (!json_is_number(json) || !(json_number_value(json) >= 0)))
        return reader_wrong(r, "tolerance", "expected a number of at least 0");
    if (json)
        r->t->tolerance = json_number_value(json);
    return true;
}

// The whole ---------------------------------------------------------------------------

bool template_read(Template *t, Diags *diags)
{
    static const char *const known[] = {"name",    "files",      "language",    "options",
                                        "sizes",   "parameters", "constraints", "arguments",
                                        "launch",  "reference",  "tolerance",   "note",
                                        "metrics", "objective",  NULL};
    static const char *const languages[] = {"opencl", "cuda", "c"};
    const TemplateReader reader = {t, diags}, *r = &reader;
    const json_t *json = t->json, *options = json_object_get(json, "options");
    int language = 0;
    if (!reader_keys(r, "", json, known) ||
        !reader_text(r, "", json, "name", false, &t->problem->name) ||
        !word_of(r, "", json, "language", languages, COUNTOF(languages), &language))
        return false;
    t->language = languages[language];
    if (!reader_is_name(t->problem->name))
        return reader_wrong(r, "name", "`%s` is not a name of letters, digits and _",
                            t->problem->name);
    return texts_of(r, "files", json_object_get(json, "files"), push_file) &&
           (!options || texts_of(r, "options", options, push_option)) &&
           read_sizes(r, json_object_get(json, "sizes")) &&
           read_params(r, json_object_get(json, "parameters")) &&
           read_constraints(r, json_object_get(json, "constraints")) &&
           read_args(r, json_object_get(json, "arguments")) &&
           read_launch_key(r, json_object_get(json, "launch")) &&
           reader_reference(r, json_object_get(json, "reference")) &&
           read_tolerance(r, json_object_get(json, "tolerance")) && read_goal(r, json) &&
           reader_sources(r) && reader_kernels(r);
}
