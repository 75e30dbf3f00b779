// SPDX-License-Identifier: Apache-2.0
//
// Derivations as text, and doing them again.

#include "rewriter/rewriter.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// Reading -----------------------------------------------------------------------------

typedef struct {
    Arena *arena;
    const Source *source;
    Diags *diags;
    const char *at, *end; // of the line, without its comment
} DerivationReader;

static Span span_of(const DerivationReader *r, const char *from, const char *to)
{
    return (Span){r->source, (uint32_t)(from - r->source->text),
                  (uint32_t)(to - r->source->text)};
}

static bool fail(const DerivationReader *r, const char *from, const char *to,
                 const char *code, const char *what)
{
    return diag_error(r->diags, span_of(r, from, to), code, "%s", what);
}

static void skip_space(DerivationReader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

static bool accept(DerivationReader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool expect(DerivationReader *r, char c, const char *what)
{
    skip_space(r);
    const char *from = r->at;
    return accept(r, c) || fail(r, from, MIN(from + 1, r->end), "R001", what);
}

// The word that begins here, up to a character that is not part of one.
static const char *take_word(DerivationReader *r, const char **from)
{
    skip_space(r);
    *from = r->at;
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || strchr("._-", *r->at)))
        r->at++;
    return arena_strndup(r->arena, *from, (size_t)(r->at - *from));
}

static bool read_rule(DerivationReader *r, RuleStep *step)
{
    const char *from, *word = take_word(r, &from);
    int rule = rule_find(word);
    if (rule < 0)
        return fail(r, from, r->at, "R002",
                    *word ? arena_printf(r->arena, "there is no rule %s", word)
                          : "the name of a rule is expected");
    step->rule = (RuleId)rule;
    return true;
}

static bool read_number(DerivationReader *r, RuleArgs *args)
{
    const char *from, *word = take_word(r, &from);
    char *end;
    long long value = strtoll(word, &end, 10);
    if (!*word || *end || strlen(word) > 18)
        return fail(r, from, r->at, "R003", "a number is expected");
    if (args->n == RULE_ARGS)
        return fail(r, from, r->at, "R003", "too many arguments");
    args->at[args->n++] = value;
    return true;
}

static bool read_args(DerivationReader *r, RuleStep *step)
{
    const char *from = r->at;
    if (!expect(r, '(', "`(` is expected after the rule"))
        return false;
    if (!accept(r, ')')) {
        do {
            if (!read_number(r, &step->args))
                return false;
        } while (accept(r, ','));
        if (!expect(r, ')', "`)` is expected after the arguments"))
            return false;
    }
    const RuleInfo *rule = &rule_info[step->rule];
    int least, most;
    rule_args_range(rule, &least, &most);
    if (step->args.n < least || step->args.n > most)
        return fail(r, from, r->at, "R003",
                    arena_printf(r->arena, "%s takes (%s)", rule->name, rule->args));
    return true;
}

static bool read_path(DerivationReader *r, RuleStep *step)
{
    if (!expect(r, '@', "`@` and a position are expected"))
        return false;
    const char *from, *word = take_word(r, &from);
    if (!path_parse(word, &step->path))
        return fail(r, from, r->at, "R004", "a position is like `0.f.1`, or `root`");
    skip_space(r);
    return r->at == r->end ||
           fail(r, r->at, r->end, "R001", "nothing is expected after the position");
}

static bool read_line(DerivationReader *r, Rewriting *into)
{
    skip_space(r);
    if (r->at == r->end)
        return true;
    RuleStep step = {.span = span_of(r, r->at, r->end)};
    if (!read_rule(r, &step) || !read_args(r, &step) || !read_path(r, &step))
        return false;
    VEC_PUSH(r->arena, &into->steps, step);
    return true;
}

Rewriting *derivation_parse(Arena *arena, const Source *source, Diags *diags)
{
    Rewriting *rewriting = NEW(arena, Rewriting);
    const char *stop = source->text + source->len;
    bool ok = true;
    for (const char *line = source->text; line < stop;) {
        const char *next = memchr(line, '\n', (size_t)(stop - line));
        const char *end = next ? next : stop;
        DerivationReader r = {arena, source, diags, line, end};
        for (const char *p = line; p + 1 < end; p++)
            if (p[0] == '/' && p[1] == '/') {
                r.end = p;
                break;
            }
        ok = read_line(&r, rewriting) && ok;
        line = next ? next + 1 : stop;
    }
    return ok ? rewriting : NULL;
}

// Writing and replaying -----------------------------------------------------------------

void derivation_print(Buf *out, const Rewriting *rewriting)
{
    VEC_EACH_REF(const RuleStep *, step, &rewriting->steps) {
        buf_printf(out, "%s(", rule_info[step->rule].name);
        for (int k = 0; k < step->args.n; k++)
            buf_printf(out, "%s%lld", k ? ", " : "", (long long)step->args.at[k]);
        buf_puts(out, ") @ ");
        path_print(out, &step->path);
        buf_putc(out, '\n');
    }
}

Expr *derivation_apply(const Program *program, const Rewriting *rewriting, Diags *diags)
{
    Ir *ir = program->ir;
    Expr *expr = rewrite_begin(ir, program->main->body);
    for (int i = 0; i < rewriting->steps.len; i++) {
        const RuleStep *step = &rewriting->steps.at[i];
        const RuleInfo *rule = &rule_info[step->rule];
        if (!path_find(expr, &step->path))
            return diag_null(diags, step->span, "R005",
                             "step %d: there is no such position", i + 1);
        Expr *next = rewrite_at(ir, expr, &step->path, step->rule, &step->args);
        if (!next)
            return diag_null(diags, step->span, "R006",
                             "step %d: %s does not match there: it needs %s%s%s", i + 1,
                             rule->name, rule->left, *rule->guard ? "; " : "", rule->guard);
        if (!ir_infer_expr(ir, next, diags))
            return NULL;
        expr = next;
    }
    return expr;
}
