// SPDX-License-Identifier: Apache-2.0
//
// Lists of values as Python writes them: `[1, 2, 4]`, `list(range(1, 9))`,
// `[2**i for i in range(6)]`, and such joined by `+`. The elements are expressions in the
// language of constraints, or words in quotes.
//
//   source  the T1 format's `Values`: the forms that occur in the community's files
//
// It is not Python: a comprehension has one `for`.

#include "problem/template.h"

#include <math.h>
#include <string.h>

enum { LIST_MOST = INT16_MAX, TEXT_MOST = 1 << 16 };

typedef struct {
    const Template *t;
    const char *where;
    Diags *diags;
    Space *names; // sizes, and the variable of a comprehension
    Arena *arena;
} List;

static bool wrong(const List *l, const char *what, const char *text)
{
    const TemplateReader r = {(Template *)(uintptr_t)l->t, l->diags};
    return reader_wrong(&r, l->where, "%s: `%s`", what, text);
}

static bool number_of(const List *l, const char *text, double *value)
{
    const SpaceExpr *expr = space_expression(l->names, l->where, text, l->diags);
    if (!expr)
        return false;
    *value = space_evaluate(l->names, expr, NULL);
    return isfinite(*value) || wrong(l, "it has no value", text);
}

static const char *trimmed(Arena *arena, const char *from, size_t len)
{
    while (len && strchr(" \t\n", *from))
        from++, len--;
    while (len && strchr(" \t\n", from[len - 1]))
        len--;
    return arena_strndup(arena, from, len);
}

// The first `what` outside brackets and quotes; NULL if there is none.
static const char *find_outside(const char *text, const char *what)
{
    int depth = 0;
    char quote = 0;
    for (; *text; text++) {
        if (!quote && depth == 0 && strncmp(text, what, strlen(what)) == 0)
            return text;
        if (quote)
            quote = *text == quote ? 0 : quote;
        else if (*text == '\'' || *text == '"')
            quote = *text;
        else
            depth += (*text == '[' || *text == '(') - (*text == ']' || *text == ')');
    }
    return NULL;
}

// What is between `open`, which begins the text, and `close`, which ends it; else NULL.
static const char *inside(Arena *arena, const char *text, const char *open, char close)
{
    size_t n = strlen(text), k = strlen(open);
    if (n <= k || strncmp(text, open, k) != 0 || text[n - 1] != close)
        return NULL;
    return trimmed(arena, text + k, n - k - 1);
}

static bool append_list(const List *l, json_t *out, const char *text);

// `a, b, c` to up to three numbers.
static int arguments(const List *l, const char *text, double value[3])
{
    for (int n = 0; n < 3; n++) {
        const char *comma = find_outside(text, ",");
        size_t len = comma ? (size_t)(comma - text) : strlen(text);
        if (!number_of(l, trimmed(l->arena, text, len), &value[n]))
            return 0;
        if (!comma)
            return n + 1;
        text = comma + 1;
    }
    return 0;
}

static bool append_range(const List *l, json_t *out, const char *text)
{
    double x[3] = {0, 0, 1};
    int n = arguments(l, text, x);
    if (n == 0)
        return wrong(l, "range takes 1 to 3 numbers", text);
    double from = n == 1 ? 0 : x[0], to = n == 1 ? x[0] : x[1], step = n == 3 ? x[2] : 1;
    if (step == 0 || (to - from) / step > LIST_MOST)
        return wrong(l, "the range is too long", text);
    for (int k = 0; step > 0 ? from + k * step < to : from + k * step > to; k++) {
        if (k > LIST_MOST)
            return wrong(l, "the range is too long", text);
        json_array_append_new(out, json_whole(from + k * step));
    }
    return true;
}

// `EXPRESSION for NAME in LIST if CONDITION`
static bool append_comprehension(const List *l, json_t *out, const char *text,
                                 const char *middle)
{
    const char *in = find_outside(middle, " in ");
    if (!in)
        return wrong(l, "`in` is missing", text);
    if (in <= middle + 5) // nothing between ` for ` and ` in `
        return wrong(l, "a name is missing before `in`", text);
    const char *item = trimmed(l->arena, text, (size_t)(middle - text));
    const char *name = trimmed(l->arena, middle + 5, (size_t)(in - middle - 5));
    const char *only = find_outside(in + 4, " if ");
    size_t len = only ? (size_t)(only - in - 4) : strlen(in + 4);
    json_t *over = json_array();
    size_t before = json_array_size(out);
    bool ok = append_list(l, over, trimmed(l->arena, in + 4, len)), real = false;
    for (size_t i = 0; ok && i < json_array_size(over); i++) {
        double value, holds = 1;
        space_define(l->names, name, json_number_value(json_array_get(over, i)));
        ok = (!only || number_of(l, only + 4, &holds)) &&
             (holds == 0 || number_of(l, item, &value));
        if (!ok || holds == 0)
            continue;
        json_array_append_new(out, json_whole(value));
        real |= value != floor(value);
    }
    for (size_t i = before; real && i < json_array_size(out); i++) // then Python's are
        json_array_set_new(out, i, json_real(json_number_value(json_array_get(out, i))));
    json_decref(over);
    return ok;
}

static bool append_item(const List *l, json_t *out, const char *text)
{
    size_t n = strlen(text);
    double value;
    if (n >= 2 && (text[0] == '\'' || text[0] == '"') && text[n - 1] == text[0]) {
        json_array_append_new(out, json_stringn(text + 1, n - 2));
        return true;
    }
    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0) {
        json_array_append_new(out, json_boolean(text[0] == 'T'));
        return true;
    }
    if (!number_of(l, text, &value))
        return false;
    bool real = strspn(text, "+-.0123456789eE") == n && strpbrk(text, ".eE");
    json_array_append_new(out, real ? json_real(value) : json_whole(value));
    return true;
}

static bool append_items(const List *l, json_t *out, const char *text)
{
    const char *middle = find_outside(text, " for ");
    if (middle)
        return append_comprehension(l, out, text, middle);
    while (*text) {
        const char *comma = find_outside(text, ",");
        size_t len = comma ? (size_t)(comma - text) : strlen(text);
        if (!append_item(l, out, trimmed(l->arena, text, len)))
            return false;
        text = comma ? comma + 1 : "";
        text += strspn(text, " \t\n");
    }
    return true;
}

static bool append_one(const List *l, json_t *out, const char *text)
{
    const char *part;
    if ((part = inside(l->arena, text, "[", ']')))
        return append_items(l, out, part);
    if ((part = inside(l->arena, text, "list(", ')')))
        return append_list(l, out, part);
    if ((part = inside(l->arena, text, "range(", ')')))
        return append_range(l, out, part);
    if ((part = inside(l->arena, text, "(", ')')))
        return append_items(l, out, part);
    return wrong(l, "expected a list [ ] or a range", text);
}

// Lists with a plus between them.
static bool append_list(const List *l, json_t *out, const char *text)
{
    for (const char *plus = text; plus; text = plus ? plus + 1 : text) {
        plus = find_outside(text, "+");
        size_t len = plus ? (size_t)(plus - text) : strlen(text);
        if (!append_one(l, out, trimmed(l->arena, text, len)))
            return false;
        if (json_array_size(out) > LIST_MOST)
            return wrong(l, "the list is too long", text);
    }
    return true;
}

json_t *list_parse(const Template *t, const char *where, const char *text, Diags *diags)
{
    List list = {t, where, diags, t->sizes, t->arena};
    json_t *out = json_array();
    for (int i = 0; i < t->size.len; i++)
        space_define(list.names, t->size.at[i].name, (double)t->size.at[i].value);
    bool ok = strlen(text) <= TEXT_MOST || wrong(&list, "the text is too long", "...");
    ok = ok && append_list(&list, out, trimmed(list.arena, text, strlen(text)));
    if (ok)
        return out;
    json_decref(out);
    return NULL;
}
