// SPDX-License-Identifier: Apache-2.0
//
// The reader of heuristic files: a step a line, cut at commas, `..` and `where` outside
// parentheses. Expressions stay text: they are constraints of a space, which reads them.

#include "search/steps.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const Source *source;
    const char *at, *end; // the rest of the line
    Arena *arena;
    Diags *diags;
    Steps *script;
    VEC(int) open; // repeats without their end
} StepsReader;

static Span span_of(const StepsReader *r, const char *from, const char *to)
{
    return (Span){r->source, (uint32_t)(from - r->source->text),
                  (uint32_t)(to - r->source->text)};
}

static bool fail(StepsReader *r, const char *what)
{
    const char *to = r->at < r->end ? r->at + 1 : r->at;
    return diag_error(r->diags, span_of(r, r->at, to), "H001", "%s", what);
}

static void skip_space(StepsReader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// A word by itself, not the beginning of a longer one.
static bool at_word(const StepsReader *r, const char *at, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(r->end - at) >= n && memcmp(at, word, n) == 0 &&
           (at + n == r->end || !is_name(at[n])) &&
           (at == r->source->text || !is_name(at[-1]));
}

static bool take_word(StepsReader *r, const char *word)
{
    skip_space(r);
    if (!at_word(r, r->at, word))
        return false;
    r->at += strlen(word);
    skip_space(r);
    return true;
}

static bool take_char(StepsReader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    skip_space(r);
    return true;
}

static const char *take_name(StepsReader *r, Span *span)
{
    const char *from = r->at;
    if (r->at < r->end && !isdigit((unsigned char)*r->at))
        while (r->at < r->end && is_name(*r->at))
            r->at++;
    *span = span_of(r, from, r->at);
    if (from == r->at)
        fail(r, "expected the name of a parameter");
    return from == r->at ? NULL : arena_strndup(r->arena, from, (size_t)(r->at - from));
}

static bool take_count(StepsReader *r, int64_t *n)
{
    char *end;
    if (r->at == r->end || !isdigit((unsigned char)*r->at))
        return fail(r, "expected a whole number");
    *n = strtoll(r->at, &end, 10);
    if (*n < 1 || *n > 1000000)
        return fail(r, "expected a number from 1 to 1000000");
    r->at = end;
    skip_space(r);
    return true;
}

// An expression: up to a comma, `..`, `where` or a parenthesis that it did not open.
static bool take_expression(StepsReader *r, Span *span)
{
    const char *from = r->at;
    int depth = 0;
    for (; r->at < r->end; r->at++) {
        char c = *r->at;
        if (c == '(' || c == '[')
            depth++;
        else if ((c == ')' || c == ']') && depth-- == 0)
            break;
        else if (depth == 0 &&
                 (c == ',' || (c == '.' && r->at[1] == '.') || at_word(r, r->at, "where")))
            break;
    }
    const char *to = r->at;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    *span = span_of(r, from, to);
    return to > from || fail(r, "expected an expression");
}

static bool take_range(StepsReader *r, Vary *vary)
{
    vary->kind = VARY_RANGE;
    if (!take_expression(r, &vary->a))
        return false;
    if (r->end - r->at < 2 || r->at[0] != '.' || r->at[1] != '.')
        return fail(r, "expected `..`");
    r->at += 2;
    skip_space(r);
    return take_expression(r, &vary->b);
}

// sample(n) or sample(n, a..b); the word is read.
static bool take_sample(StepsReader *r, Vary *vary)
{
    int64_t n;
    if (!take_char(r, '('))
        return fail(r, "expected `(`");
    if (!take_count(r, &n))
        return false;
    vary->sample = (int)n;
    if (take_char(r, ',') && !take_range(r, vary))
        return false;
    return take_char(r, ')') || fail(r, "expected `)`");
}

static bool take_vary(StepsReader *r, StepKind step, Vary *vary)
{
    *vary = (Vary){.kind = VARY_ALL};
    vary->name = take_name(r, &vary->span);
    if (!vary->name)
        return false;
    if (take_char(r, '=')) {
        vary->kind = VARY_EQUAL;
        return take_expression(r, &vary->a);
    }
    if (step == STEP_SET)
        return fail(r, "expected `=`");
    if (!take_word(r, "in"))
        return true;
    if (take_word(r, "sample"))
        return take_sample(r, vary);
    if (r->at == r->end || *r->at != '(')
        return take_range(r, vary);
    vary->kind = VARY_LIST;
    return take_expression(r, &vary->a);
}

static bool take_step(StepsReader *r, Step *step)
{
    do {
        Vary vary;
        if (!take_vary(r, step->kind, &vary))
            return false;
        VEC_PUSH(r->arena, &step->vary, vary);
    } while (take_char(r, ','));
    if (step->kind == STEP_TUNE && take_word(r, "where")) {
        step->where = span_of(r, r->at, r->end);
        r->at = r->end;
        return step->where.end > step->where.start || fail(r, "expected an expression");
    }
    return true;
}

static bool take_defaults(StepsReader *r)
{
    int first = r->script->defaults.len;
    Span span;
    do {
        Default item = {take_name(r, &span), 0};
        if (!item.name)
            return false;
        VEC_PUSH(r->arena, &r->script->defaults, item);
    } while (take_char(r, ','));
    char *end;
    if (!take_char(r, '='))
        return fail(r, "expected `=`");
    double value = strtod(r->at, &end);
    if (end == r->at || end > r->end)
        return fail(r, "expected a number");
    r->at = end;
    for (int i = first; i < r->script->defaults.len; i++)
        r->script->defaults.at[i].value = value;
    return true;
}

static bool close_repeat(StepsReader *r, const char *from, Step *step)
{
    if (!r->open.len)
        return diag_error(r->diags, span_of(r, from, from + 3), "H002",
                          "`end` without its `repeat`");
    step->partner = r->open.at[--r->open.len];
    return true;
}

static bool take_line(StepsReader *r)
{
    const char *from = r->at;
    Step step = {0};
    bool ok;
    if (take_word(r, "optional"))
        return take_defaults(r);
    if (take_word(r, "set")) {
        step.kind = STEP_SET;
        ok = take_step(r, &step);
    } else if (take_word(r, "tune")) {
        step.kind = STEP_TUNE;
        ok = take_step(r, &step);
    } else if (take_word(r, "sample")) {
        step.kind = STEP_TUNE;
        ok = take_count(r, &step.n) && take_step(r, &step);
    } else if (take_word(r, "repeat")) {
        step.kind = STEP_REPEAT;
        ok = take_count(r, &step.n) &&
             (r->open.len < REPEAT_DEPTH || fail(r, "too many repetitions in one another"));
        VEC_PUSH(r->arena, &r->open, r->script->steps.len);
    } else if (take_word(r, "end")) {
        step.kind = STEP_END;
        ok = close_repeat(r, from, &step);
    } else {
        return fail(r, "expected set, tune, sample, repeat, end or optional");
    }
    VEC_PUSH(r->arena, &r->script->steps, step);
    return ok;
}

// Comments begin with #.
static void read_line(StepsReader *r, const char *from, const char *to)
{
    const char *comment = memchr(from, '#', (size_t)(to - from));
    r->at = from;
    r->end = comment ? comment : to;
    while (r->end > r->at && isspace((unsigned char)r->end[-1]))
        r->end--;
    skip_space(r);
    if (r->at == r->end || !take_line(r))
        return;
    skip_space(r);
    if (r->at < r->end)
        fail(r, "expected the end of the line");
}

Steps *steps_parse(const Source *source, Arena *arena, Diags *diags)
{
    int errors = diags->errors;
    StepsReader r = {
        .source = source, .arena = arena, .diags = diags, .script = NEW(arena, Steps)};
    const char *end = source->text + source->len;
    for (const char *line = source->text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        read_line(&r, line, stop);
        line = stop + 1;
    }
    r.at = r.end = end;
    if (r.open.len && diags->errors == errors)
        fail(&r, "expected `end`");
    if (!r.script->steps.len && diags->errors == errors)
        fail(&r, "expected a step");
    return diags->errors > errors ? NULL : r.script;
}

// Against a space -----------------------------------------------------------------------

const Default *steps_default(const Steps *script, const char *name)
{
    int i = FIND(script->defaults.at, script->defaults.len, name, name);
    return i < 0 ? NULL : &script->defaults.at[i];
}

// A number, or a word where that is not NULL.
static void define_best(Space *to, const char *name, double value, const char *word)
{
    AutoBuf text = buf_new();
    buf_printf(&text, "best.%s", name);
    if (word)
        space_define_word(to, text.text, word);
    else
        space_define(to, text.text, value);
}

void steps_define(Space *to, const Steps *script, const Space *space, const StepsSize *size,
                  int nsize, const Point *best)
{
    for (int i = 0; i < nsize; i++)
        space_define(to, size[i].name, size[i].value);
    VEC_EACH_REF(const Default *, item, &script->defaults) {
        space_define(to, item->name, item->value);
        define_best(to, item->name, item->value, NULL);
    }
    for (int i = 0; i < space_params(space); i++) {
        const SpaceParam *param = space_param(space, i);
        define_best(to, param->name, best ? space_value(space, best, i) : 1,
                    param->label ? param->label[best ? best->choice[i] : 0] : NULL);
    }
}

static bool check_expression(Space *scratch, Span span, Diags *diags)
{
    return !span.source || space_constrain_span(scratch, span, diags);
}

static void check_vary(const Steps *script, const Space *space, Space *scratch,
                       const Vary *vary, Diags *diags)
{
    if (space_find(space, vary->name) < 0 && !steps_default(script, vary->name)) {
        space_no_parameter(space, vary->span, "H003", vary->name, diags);
        return;
    }
    if (vary->kind == VARY_LIST) { // of a list only its values are expressions
        AutoBuf text = buf_new();
        buf_printf(&text, "0 in %.*s", (int)(vary->a.end - vary->a.start),
                   vary->a.source->text + vary->a.start);
        AutoArena *arena = arena_new();
        Diags quiet = {.arena = arena};
        if (!space_constrain(scratch, text.text, &quiet))
            diag_error(diags, vary->a, "H004", "%s", quiet.list.at[0].message);
        return;
    }
    check_expression(scratch, vary->a, diags);
    check_expression(scratch, vary->b, diags);
}

bool steps_check(const Steps *script, const Space *space, const StepsSize *size, int nsize,
                 Diags *diags)
{
    int errors = diags->errors;
    Space *scratch = space_like(space);
    steps_define(scratch, script, space, size, nsize, NULL);
    VEC_EACH_REF(const Step *, step, &script->steps) {
        for (int k = 0; k < step->vary.len; k++)
            check_vary(script, space, scratch, &step->vary.at[k], diags);
        check_expression(scratch, step->where, diags);
    }
    space_free(scratch);
    return diags->errors == errors;
}
