// SPDX-License-Identifier: Apache-2.0
//
// Constraints from text to postfix code, by recursive descent. The operators of C and of
// Python are both read; where the two languages disagree it is Python's meaning, since
// that is what recorded tuning spaces use: `/` is exact, comparisons chain
// (`32 <= x * y <= 1024`), `not` binds looser than a comparison. The conjuncts of a
// top-level && become constraints of their own, so that each can prune early.
//
// There is no assignment, no conditional expression, and no call but min and max.
#include "space/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef enum { T_END, T_NUMBER, T_NAME, T_WORD, T_SIGN } TokenKind;

typedef struct {
    TokenKind kind;
    const char *text;
    int len;
} Token;

typedef struct {
    Space *space;
    Diags *diags;
    const Source *source;
    const char *text; // of the source, up to the end of the constraint
    const char *end;  // of the current token
    Token token;
    int nesting, stack; // depth of the text, and of the values at run time
    int ncode;
    Code code[CONSTRAINT_CODE];
} Parser;

enum { NESTING_MAX = 64 };

// From loose to tight.
typedef enum {
    LEVEL_OR,
    LEVEL_AND,
    LEVEL_NOT,
    LEVEL_COMPARE,
    LEVEL_SUM,
    LEVEL_TERM,
    LEVEL_UNARY
} Level;

typedef struct {
    const char *text;
    Level level;
    ConstraintOp op;
} Infix;

static const Infix infixes[] = {
    {"||", LEVEL_OR, OP_OR},      {"or", LEVEL_OR, OP_OR},
    {"&&", LEVEL_AND, OP_AND},    {"and", LEVEL_AND, OP_AND},
    {"==", LEVEL_COMPARE, OP_EQ}, {"!=", LEVEL_COMPARE, OP_NE},
    {"<", LEVEL_COMPARE, OP_LT},  {"<=", LEVEL_COMPARE, OP_LE},
    {">", LEVEL_COMPARE, OP_GT},  {">=", LEVEL_COMPARE, OP_GE},
    {"+", LEVEL_SUM, OP_ADD},     {"-", LEVEL_SUM, OP_SUB},
    {"*", LEVEL_TERM, OP_MUL},    {"/", LEVEL_TERM, OP_DIV},
    {"%", LEVEL_TERM, OP_MOD},    {"//", LEVEL_TERM, OP_FLOORDIV},
};

// Words that are operators and so cannot name a parameter.
static const char *const reserved[] = {"and", "or", "not", "in"};

// Tokens ---------------------------------------------------------------------------

static Span span_of(const Parser *p, Token token)
{
    uint32_t start = (uint32_t)(token.text - p->text);
    return (Span){p->source, start, start + (uint32_t)token.len};
}

static bool error_at(Parser *p, const char *code, const char *what)
{
    if (p->token.kind == T_END)
        return diag_error(p->diags, span_of(p, p->token), code, "%s, found the end", what);
    return diag_error(p->diags, span_of(p, p->token), code, "%s, found `%.*s`", what,
                      p->token.len, p->token.text);
}

static bool too_deep(Parser *p)
{
    return diag_error(p->diags, span_of(p, p->token), "S003",
                      "the constraint is too long or too deeply nested");
}

static int sign_len(const char *text)
{
    static const char *const two[] = {"||", "&&", "==", "!=", "<=", ">=", "//", "**"};
    for (int i = 0; i < COUNTOF(two); i++)
        if (strncmp(text, two[i], 2) == 0)
            return 2;
    return 1;
}

// A point belongs to a name if a letter follows: `best.lx`.
static int name_len(const char *text)
{
    int n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_' ||
           (text[n] == '.' && isalpha((unsigned char)text[n + 1])))
        n++;
    return n;
}

static int number_len(const char *text)
{
    char *end;
    strtod(text, &end);
    return (int)(end - text);
}

// With both quotes; unterminated text ends with the source.
static int word_len(const char *text)
{
    const char *close = strchr(text + 1, text[0]);
    return close ? (int)(close + 1 - text) : (int)strlen(text);
}

static Token token_at(const char *s)
{
    unsigned char c = (unsigned char)s[0];
    if (!c)
        return (Token){T_END, s, 0};
    if (isdigit(c) || (c == '.' && isdigit((unsigned char)s[1])))
        return (Token){T_NUMBER, s, number_len(s)};
    if (isalpha(c) || c == '_')
        return (Token){T_NAME, s, name_len(s)};
    if (c == '\'' || c == '"')
        return (Token){T_WORD, s, word_len(s)};
    return (Token){T_SIGN, s, sign_len(s)};
}

static void advance(Parser *p)
{
    while (isspace((unsigned char)*p->end))
        p->end++;
    p->token = token_at(p->end);
    p->end += p->token.len;
}

static bool at(const Parser *p, const char *text)
{
    return (p->token.kind == T_SIGN || p->token.kind == T_NAME) &&
           (size_t)p->token.len == strlen(text) &&
           memcmp(p->token.text, text, strlen(text)) == 0;
}

static bool accept(Parser *p, const char *text)
{
    if (!at(p, text))
        return false;
    advance(p);
    return true;
}

static bool expect(Parser *p, const char *text, const char *what)
{
    return accept(p, text) || error_at(p, "S001", what);
}

// Code -------------------------------------------------------------------------------

static int arity(ConstraintOp op)
{
    return op == OP_NUMBER || op == OP_PARAM ? 0 : op == OP_NEG || op == OP_NOT ? 1 : 2;
}

static bool emit(Parser *p, Code code)
{
    if (p->ncode == CONSTRAINT_CODE)
        return too_deep(p);
    p->code[p->ncode++] = code;
    p->stack += 1 - arity(code.op);
    return p->stack <= CONSTRAINT_STACK || too_deep(p);
}

static bool emit_op(Parser *p, ConstraintOp op)
{
    return emit(p, (Code){.op = op});
}

// Repeats the code of an operand.
static bool emit_copy(Parser *p, int from, int to)
{
    for (int i = from; i < to; i++)
        if (!emit(p, p->code[i]))
            return false;
    return true;
}

// Expressions ---------------------------------------------------------------------------

static bool parse(Parser *p, Level level);

static bool nest(Parser *p, Level level)
{
    if (++p->nesting > NESTING_MAX)
        return too_deep(p);
    bool ok = parse(p, level);
    p->nesting--;
    return ok;
}

static bool parse_number(Parser *p)
{
    double number = strtod(p->token.text, NULL);
    advance(p);
    return emit(p, (Code){.op = OP_NUMBER, .number = number});
}

static bool parse_word(Parser *p)
{
    Token token = p->token;
    if (token.len < 2 || token.text[token.len - 1] != token.text[0])
        return diag_error(p->diags, span_of(p, token), "S004", "the word has no end quote");
    bool known;
    const char *word =
        arena_strndup(p->space->arena, token.text + 1, (size_t)token.len - 2);
    double number = space_intern(p->space, word, &known);
    if (!known)
        diag_warning(p->diags, span_of(p, token), "S005", "no parameter has the value '%s'",
                     word);
    advance(p);
    return emit(p, (Code){.op = OP_NUMBER, .number = number});
}

// min or max of one or more arguments; the name and the parenthesis are read.
static bool parse_extreme(Parser *p, ConstraintOp op)
{
    if (!nest(p, LEVEL_OR))
        return false;
    while (accept(p, ","))
        if (!nest(p, LEVEL_OR) || !emit_op(p, op))
            return false;
    return expect(p, ")", "expected `,` or `)`");
}

static bool is_reserved(const Parser *p)
{
    for (int i = 0; i < COUNTOF(reserved); i++)
        if (at(p, reserved[i]))
            return true;
    return false;
}

// A defined name, or one element `name[2]` of several; NULL if there is none.
static const double *parse_defined(Parser *p, Token token)
{
    const char *start = token.text, *end = start + token.len;
    if (at(p, "[")) {
        const char *close = strchr(p->token.text, ']');
        end = close ? close + 1 : end;
    }
    const char *name = arena_strndup(p->space->arena, start, (size_t)(end - start));
    const double *number = map_get(&p->space->names, name);
    while (number && p->token.kind != T_END && p->token.text < end)
        advance(p);
    return number;
}

static bool parse_name(Parser *p)
{
    Token token = p->token;
    if (is_reserved(p))
        return error_at(p, "S001", "expected a value");
    advance(p);
    if (accept(p, "(")) {
        if (token.len == 3 && memcmp(token.text, "min", 3) == 0)
            return parse_extreme(p, OP_MIN);
        if (token.len == 3 && memcmp(token.text, "max", 3) == 0)
            return parse_extreme(p, OP_MAX);
        return diag_error(p->diags, span_of(p, token), "S006",
                          "`%.*s` is not a function; there are min and max", token.len,
                          token.text);
    }
    char *name = arena_strndup(p->space->arena, token.text, (size_t)token.len);
    int param = space_find(p->space, name);
    const double *number = param < 0 ? parse_defined(p, token) : NULL;
    if (number)
        return emit(p, (Code){.op = OP_NUMBER, .number = *number});
    if (param < 0)
        return space_no_parameter(p->space, span_of(p, token), "S002", name, p->diags);
    return emit(p, (Code){.op = OP_PARAM, .param = param});
}

static bool parse_primary(Parser *p)
{
    if (p->token.kind == T_NUMBER)
        return parse_number(p);
    if (p->token.kind == T_WORD)
        return parse_word(p);
    if (p->token.kind == T_NAME)
        return parse_name(p);
    if (!expect(p, "(", "expected a value"))
        return false;
    return nest(p, LEVEL_OR) && expect(p, ")", "expected `)`");
}

static bool parse_unary(Parser *p)
{
    if (accept(p, "-"))
        return nest(p, LEVEL_UNARY) && emit_op(p, OP_NEG);
    if (accept(p, "!"))
        return nest(p, LEVEL_UNARY) && emit_op(p, OP_NOT);
    if (accept(p, "+"))
        return nest(p, LEVEL_UNARY);
    if (!parse_primary(p))
        return false;
    return !accept(p, "**") || (nest(p, LEVEL_UNARY) && emit_op(p, OP_POW));
}

static const Infix *infix_at(const Parser *p, Level level)
{
    for (int i = 0; i < COUNTOF(infixes); i++)
        if (infixes[i].level == level && at(p, infixes[i].text))
            return &infixes[i];
    return NULL;
}

// `(e, f)` after `a in`, as a == e || a == f; the code of a begins at `from`.
static bool parse_members(Parser *p, int from)
{
    int to = p->ncode;
    const char *close = accept(p, "[") ? "]" : ")";
    if (*close == ')' && !expect(p, "(", "expected `(` after `in`"))
        return false;
    do {
        bool first = p->ncode == to;
        if ((!first && !emit_copy(p, from, to)) || !nest(p, LEVEL_OR) ||
            !emit_op(p, OP_EQ) || (!first && !emit_op(p, OP_OR)))
            return false;
    } while (accept(p, ",") && !at(p, close));
    return expect(p, close, "expected `,` or the end of the list");
}

static bool parse_in(Parser *p, int from)
{
    bool negate = accept(p, "not");
    return expect(p, "in", "expected `in`") && parse_members(p, from) &&
           (!negate || emit_op(p, OP_NOT));
}

// a < b < c is a < b && b < c: the middle operand's code is repeated.
static bool parse_comparison(Parser *p)
{
    int from = p->ncode;
    if (!parse(p, LEVEL_SUM))
        return false;
    if (at(p, "in") || at(p, "not"))
        return parse_in(p, from);
    int to = p->ncode;
    bool chained = false;
    for (const Infix *infix; (infix = infix_at(p, LEVEL_COMPARE)); chained = true) {
        advance(p);
        if (chained && !emit_copy(p, from, to))
            return false;
        from = p->ncode;
        if (!parse(p, LEVEL_SUM))
            return false;
        to = p->ncode;
        if (!emit_op(p, infix->op) || (chained && !emit_op(p, OP_AND)))
            return false;
    }
    return true;
}

static bool parse(Parser *p, Level level)
{
    if (level == LEVEL_UNARY)
        return parse_unary(p);
    if (level == LEVEL_COMPARE)
        return parse_comparison(p);
    if (level == LEVEL_NOT)
        return accept(p, "not") ? nest(p, LEVEL_NOT) && emit_op(p, OP_NOT)
                                : parse(p, LEVEL_COMPARE);
    if (!parse(p, level + 1))
        return false;
    for (const Infix *infix; (infix = infix_at(p, level));) {
        advance(p);
        if (!parse(p, level + 1) || !emit_op(p, infix->op))
            return false;
    }
    return true;
}

// Conjuncts ------------------------------------------------------------------------------

static Constraint constraint_of(Space *space, const Code *code, int n)
{
    Code *copy = NEW_ARRAY(space->arena, Code, n);
    memcpy(copy, code, sizeof *copy * (size_t)n);
    Constraint constraint = {.code = copy, .ncode = n, .text = space->texts.len};
    for (int i = 0; i < n; i++)
        if (code[i].op == OP_PARAM)
            constraint.params |= (uint64_t)1 << code[i].param;
    return constraint;
}

static void add_conjunct(Space *space, const Code *code, int n)
{
    Constraint constraint = constraint_of(space, code, n);
    VEC_PUSH(space->arena, &space->constraints, constraint);
}

int constraint_operand(const Code *code, int end)
{
    for (int need = 1; need > 0; end--)
        need += arity(code[end - 1].op) - 1;
    return end;
}

static void split_conjuncts(Space *space, const Code *code, int n)
{
    if (code[n - 1].op != OP_AND) {
        add_conjunct(space, code, n);
        return;
    }
    int right = constraint_operand(code, n - 1);
    split_conjuncts(space, code, right);
    split_conjuncts(space, code + right, n - 1 - right);
}

bool constraint_parse(Space *space, Span span, Constraint *whole, Diags *diags)
{
    char *text = arena_strndup(space->arena, span.source->text, span.end);
    Parser p = {.space = space,
                .diags = diags,
                .source = span.source,
                .text = text,
                .end = text + span.start};
    advance(&p);
    if (!parse(&p, LEVEL_OR))
        return false;
    if (p.token.kind != T_END)
        return error_at(&p, "S001", "expected an operator");
    if (whole)
        *whole = constraint_of(space, p.code, p.ncode);
    else
        split_conjuncts(space, p.code, p.ncode);
    return true;
}
