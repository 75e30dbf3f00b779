// SPDX-License-Identifier: Apache-2.0
//
// What a problem file's `reference` says: what the outputs must be, or who judges them.

#include "problem/template.h"

#include <string.h>

static bool read_reference_file(const TemplateReader *r, const json_t *json,
                                const char *key)
{
    TemplateReference *ref = &r->t->reference;
    const char *name = NULL;
    if (!reader_text(r, "reference", json, key, true, &name))
        return false;
    Buf text = buf_new();
    ref->file = reader_file(r, reader_in(r, "reference", key), name, &text);
    ref->text = buf_keep(&text, r->t->arena);
    return ref->file != NULL;
}

static bool read_arguments(const TemplateReader *r, const json_t *json)
{
    return reader_arg_names(r, "reference.arguments", json_object_get(json, "arguments"),
                            &r->t->reference.launch);
}

// A function of a file, which makes the outputs or judges in place of a comparison.
static bool read_function(const TemplateReader *r, const json_t *json)
{
    TemplateReference *ref = &r->t->reference;
    const bool judges = ref->kind == REFERENCE_JUDGE;
    const char *key = judges ? "judge" : "function",
               *where = reader_in(r, "reference", key);
    return reader_text(r, "reference", json, key, true, &ref->launch.kernel) &&
           reader_kernel(r, where, ref->launch.kernel, false) && read_arguments(r, json) &&
           read_reference_file(r, json, "c") &&
           (!judges || strstr(ref->text, ref->launch.kernel) ||
            reader_wrong(r, where, "there is no `%s` in %s", ref->launch.kernel,
                         json_string_value(json_object_get(json, "c"))));
}

static bool read_command(const TemplateReader *r, const json_t *json)
{
    return reader_text(r, "reference", json, "command", true, &r->t->reference.command) &&
           read_arguments(r, json);
}

static bool read_kernel(const TemplateReader *r, const json_t *json)
{
    return reader_launch(r, "reference", json, &r->t->reference.launch) &&
           read_reference_file(r, json, "file");
}

static bool read_program(const TemplateReader *r, const json_t *json)
{
    return read_reference_file(r, json, "fw");
}

bool reader_expected(const TemplateReader *r, const char *where, const char *name,
                     const Fill *value)
{
    TemplateReference *ref = &r->t->reference;
    int arg = template_arg(r->t, name);
    if (arg < 0 || r->t->arg.at[arg].access == ACCESS_IN)
        return reader_wrong(r, where, "there is no output `%s`", name);
    if (value->kind == FILL_RANDOM || value->kind == FILL_VIEW)
        return reader_wrong(r, where,
                            "expected a number, {\"expression\": ..}, {\"npy\": FILE} or "
                            "{\"raw\": FILE}");
    VEC_PUSH(r->t->arena, &ref->output, arena_strdup(r->t->arena, name));
    VEC_PUSH(r->t->arena, &ref->value, *value);
    return true;
}

// What outputs must hold; npy: the names of files with it.
static bool read_outputs(const TemplateReader *r, const json_t *json, const char *key,
                         const char *form, bool npy)
{
    const char *name, *all = reader_in(r, "reference", key);
    json_t *given, *outputs = json_object_get(json, key);
    if (!json_is_object(outputs))
        return reader_wrong(r, all, "expected {\"OUTPUT\": %s}", form);
    json_object_foreach(outputs, name, given)
    {
        const char *where = reader_in(r, all, name), *path = json_string_value(given);
        Fill value = {.kind = npy ? FILL_FILE : FILL_RANDOM};
        if (npy && !path)
            return reader_wrong(r, where, "expected a file name");
        if (npy)
            value.file = reader_path(r, path);
        if ((!npy && !reader_fill(r, where, given, &value)) ||
            !reader_expected(r, where, name, &value))
            return false;
    }
    return true;
}

static bool read_values(const TemplateReader *r, const json_t *json)
{
    return read_outputs(r, json, "values", "VALUES", false);
}

// {"npy": {"OUTPUT": FILE}}, short for values of which each is {"npy": FILE}
static bool read_files(const TemplateReader *r, const json_t *json)
{
    return read_outputs(r, json, "npy", "\"FILE.npy\"", true);
}

static bool read_reference_point(const TemplateReader *r, const json_t *json)
{
    r->t->reference.point = json_object_get(json, "point");
    return json_is_object(r->t->reference.point) ||
           reader_wrong(r, "reference.point", "expected an object of names and values");
}

bool reader_reference(const TemplateReader *r, const json_t *json)
{
    static const struct {
        const char *key;
        ReferenceKind kind;
        bool (*read)(const TemplateReader *r, const json_t *json);
        const char *known[8];
    } forms[] = {{"judge", REFERENCE_JUDGE, read_function, {"judge", "c", "arguments"}},
                 {"command", REFERENCE_JUDGE, read_command, {"command", "arguments"}},
                 {"c", REFERENCE_C, read_function, {"c", "function", "arguments"}},
                 {"file",
                  REFERENCE_KERNEL,
                  read_kernel,
                  {"file", "kernel", "global", "groups", "local", "arguments", "shared"}},
                 {"fw", REFERENCE_FW, read_program, {"fw"}},
                 {"values", REFERENCE_VALUES, read_values, {"values"}},
                 {"npy", REFERENCE_VALUES, read_files, {"npy"}},
                 {"point", REFERENCE_POINT, read_reference_point, {"point"}}};
    if (!json)
        return true;
    if (json_is_string(json) && strcmp(json_string_value(json), "none") == 0) {
        r->t->reference.kind = REFERENCE_NONE;
        r->t->reference.given = true;
        return true;
    }
    for (int i = 0; i < COUNTOF(forms); i++)
        if (json_object_get(json, forms[i].key)) {
            r->t->reference.kind = forms[i].kind;
            r->t->reference.given = true;
            return reader_keys(r, "reference", json, forms[i].known) &&
                   forms[i].read(r, json);
        }
    return reader_wrong(r, "reference",
                        "expected one of c, file (a kernel), fw, values, npy, point, judge "
                        "and command, or \"none\"");
}
