// SPDX-License-Identifier: Apache-2.0
//
// Constraints from text to postfix code, by recursive descent. The operators of C and of
// Python are both read; where the two languages disagree it is Python's meaning, since
// that is what recorded tuning spaces use: `/` is exact, comparisons chain
// (`32 <= x * y <= 1024`), `not` binds looser than a comparison. The conjuncts of a
// top-level && become constraints of their own, so that each can prune early.
//
// Lists, tuples, sets, ranges and comprehensions are written out while they are read: they
// are operands of `in` and of functions, and no values; by itself a list is a domain. A
// lambda's names are those of the parameters, or one name for all of them: `lambda p:
// p["bx"] <= 32`.
#include "space/internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Space *space;
    Diags *diags;
    const Source *source;
    const char *text; // of the source, up to the end of the constraint
    const char *end;  // of the current token
    ConstraintToken token;
    int nesting, stack;    // depth of the text, and of the values at run time
    ConstraintToken all;   // of a lambda: the name that stands for all parameters
    ConstraintToken local; // of a comprehension: its name
    Code *value;           // and what it stands for
    int nvalue;
    bool domain; // a list by itself is read
    int ncode;
    Code code[CONSTRAINT_CODE];
} ConstraintParser;

typedef VEC(Snippet) Sequence;

enum { NESTING_MAX = 64, OF_C = 1 }; // OF_C: mark of an operator that is C's

// From loose to tight.
typedef enum {
    LEVEL_CHOICE,
    LEVEL_OR,
    LEVEL_AND,
    LEVEL_NOT,
    LEVEL_COMPARE,
    LEVEL_BITOR,
    LEVEL_BITXOR,
    LEVEL_BITAND,
    LEVEL_SHIFT,
    LEVEL_SUM,
    LEVEL_TERM,
    LEVEL_UNARY
} Precedence;

typedef struct {
    const char *text;
    Precedence level;
    ConstraintOp op;
} Infix;

static const Infix infixes[] = {
    {"||", LEVEL_OR, OP_OR},        {"or", LEVEL_OR, OP_OR},
    {"&&", LEVEL_AND, OP_AND},      {"and", LEVEL_AND, OP_AND},
    {"==", LEVEL_COMPARE, OP_EQ},   {"!=", LEVEL_COMPARE, OP_NE},
    {"<", LEVEL_COMPARE, OP_LT},    {"<=", LEVEL_COMPARE, OP_LE},
    {">", LEVEL_COMPARE, OP_GT},    {">=", LEVEL_COMPARE, OP_GE},
    {"is", LEVEL_COMPARE, OP_EQ},   {"|", LEVEL_BITOR, OP_BITOR},
    {"^", LEVEL_BITXOR, OP_BITXOR}, {"&", LEVEL_BITAND, OP_BITAND},
    {"<<", LEVEL_SHIFT, OP_SHL},    {">>", LEVEL_SHIFT, OP_SHR},
    {"+", LEVEL_SUM, OP_ADD},       {"-", LEVEL_SUM, OP_SUB},
    {"*", LEVEL_TERM, OP_MUL},      {"/", LEVEL_TERM, OP_DIV},
    {"%", LEVEL_TERM, OP_MOD},      {"//", LEVEL_TERM, OP_FLOORDIV},
};

// Words that are operators and so cannot name a parameter.
static const char *const reserved[] = {"and", "or",   "not",    "in", "is",
                                       "if",  "else", "lambda", "for"};

// Functions: of one value, of several that an operator joins, of a list alone.
typedef enum { CALL_ONE, CALL_TWO, CALL_JOIN, CALL_LEN } CallKind;
static const struct {
    const char *name;
    CallKind kind;
    ConstraintOp op;
} calls[] = {
    {"min", CALL_JOIN, OP_MIN},    {"max", CALL_JOIN, OP_MAX},
    {"sum", CALL_JOIN, OP_ADD},    {"any", CALL_JOIN, OP_OR},
    {"all", CALL_JOIN, OP_AND},    {"len", CALL_LEN, OP_NUMBER},
    {"abs", CALL_ONE, OP_ABS},     {"fabs", CALL_ONE, OP_ABS},
    {"int", CALL_ONE, OP_INT},     {"trunc", CALL_ONE, OP_INT},
    {"round", CALL_ONE, OP_ROUND}, {"ceil", CALL_ONE, OP_CEIL},
    {"floor", CALL_ONE, OP_FLOOR}, {"sqrt", CALL_ONE, OP_SQRT},
    {"log2", CALL_ONE, OP_LOG2},   {"log10", CALL_ONE, OP_LOG10},
    {"log", CALL_ONE, OP_LOG},     {"float", CALL_ONE, OP_NUMBER},
    {"bool", CALL_ONE, OP_NOT},    {"pow", CALL_TWO, OP_POW},
};

// Tokens ---------------------------------------------------------------------------

static Span span_of(const ConstraintParser *p, ConstraintToken token)
{
    uint32_t start = (uint32_t)(token.text - p->text);
    return (Span){p->source, start, start + (uint32_t)token.len};
}

static bool error_at(ConstraintParser *p, const char *code, const char *what)
{
    if (p->token.kind == T_END)
        return diag_error(p->diags, span_of(p, p->token), code, "%s, found the end", what);
    return diag_error(p->diags, span_of(p, p->token), code, "%s, found `%.*s`", what,
                      p->token.len, p->token.text);
}

static bool too_deep(ConstraintParser *p)
{
    return diag_error(p->diags, span_of(p, p->token), "S003",
                      "the constraint is too long or too deeply nested");
}

static void advance(ConstraintParser *p)
{
    while (isspace((unsigned char)*p->end))
        p->end++;
    p->token = token_at(p->end);
    p->end += p->token.len;
}

static bool at(const ConstraintParser *p, const char *text)
{
    return (p->token.kind == T_SIGN || p->token.kind == T_NAME) &&
           (size_t)p->token.len == strlen(text) &&
           memcmp(p->token.text, text, strlen(text)) == 0;
}

static bool accept(ConstraintParser *p, const char *text)
{
    if (!at(p, text))
        return false;
    advance(p);
    return true;
}

static bool expect(ConstraintParser *p, const char *text, const char *what)
{
    return accept(p, text) || error_at(p, "S001", what);
}

// Code -------------------------------------------------------------------------------

static bool emit(ConstraintParser *p, Code code)
{
    if (p->ncode == CONSTRAINT_CODE)
        return too_deep(p);
    p->code[p->ncode++] = code;
    p->stack += 1 - arity(code.op);
    return p->stack <= CONSTRAINT_STACK || too_deep(p);
}

// form: how Python writes it.
static bool emit_as(ConstraintParser *p, double number, int form)
{
    return emit(p, (Code){.op = OP_NUMBER, .param = form, .number = number});
}

static bool emit_number(ConstraintParser *p, double number)
{
    return emit_as(p, number, VALUE_WHOLE);
}

// Takes what was emitted since `from` out again.
static Snippet cut(ConstraintParser *p, int from)
{
    Snippet out = {NEW_ARRAY(p->space->arena, Code, MAX(p->ncode - from, 1)),
                   p->ncode - from};
    memcpy(out.code, p->code + from, sizeof *out.code * (size_t)out.n);
    for (; p->ncode > from; p->ncode--)
        p->stack -= 1 - arity(p->code[p->ncode - 1].op);
    return out;
}

static bool emit_op(ConstraintParser *p, ConstraintOp op)
{
    return emit(p, (Code){.op = op});
}

static bool paste(ConstraintParser *p, Snippet from)
{
    for (int i = 0; i < from.n; i++)
        if (!emit(p, from.code[i]))
            return false;
    return true;
}

// Repeats the code of an operand.
static bool emit_copy(ConstraintParser *p, int from, int to)
{
    for (int i = from; i < to; i++)
        if (!emit(p, p->code[i]))
            return false;
    return true;
}

// What an operand that ends here is worth: of `and` and `or` one of theirs, as in Python,
// where C's && and || are 1 or 0. Where only the truth counts they stay as they are, which
// tells more of ranges.
static void as_value(ConstraintParser *p, int end)
{
    Code *code = &p->code[end - 1];
    bool select = code->op == OP_SELECT;
    if (!select && ((code->op != OP_AND && code->op != OP_OR) || code->param == OF_C))
        return;
    int right = constraint_operand(p->code, end - 1);
    int left = select ? constraint_operand(p->code, right) : right;
    if (!select)
        code->op = code->op == OP_AND ? OP_BOTH : OP_EITHER;
    as_value(p, end - 1);
    as_value(p, left);
}

// The same of what was read last.
static bool value(ConstraintParser *p)
{
    as_value(p, p->ncode);
    return true;
}

// Expressions ---------------------------------------------------------------------------

static bool parse(ConstraintParser *p, Precedence level);
static bool parse_call(ConstraintParser *p, ConstraintToken name);

static bool nest(ConstraintParser *p, Precedence level)
{
    if (++p->nesting > NESTING_MAX)
        return too_deep(p);
    bool ok = parse(p, level);
    p->nesting--;
    return ok;
}

static bool parse_number(ConstraintParser *p)
{
    double number = strtod(p->token.text, NULL);
    bool real = strcspn(p->token.text, ".eE") < (size_t)p->token.len;
    advance(p);
    return emit_as(p, number, real ? VALUE_REAL : VALUE_WHOLE);
}

static bool parse_word(ConstraintParser *p)
{
    ConstraintToken token = p->token;
    if (token.len < 2 || token.text[token.len - 1] != token.text[0])
        return diag_error(p->diags, span_of(p, token), "S004", "the word has no end quote");
    bool known;
    const char *word =
        arena_strndup(p->space->arena, token.text + 1, (size_t)token.len - 2);
    double number = space_intern(p->space, word, &known);
    if (!known && !p->domain)
        diag_warning(p->diags, span_of(p, token), "S005", "no parameter has the value '%s'",
                     word);
    advance(p);
    return emit_as(p, number, VALUE_WORD);
}

static bool is_reserved(const ConstraintParser *p)
{
    for (int i = 0; i < COUNTOF(reserved); i++)
        if (at(p, reserved[i]))
            return true;
    return false;
}

// A defined name, or one element `name[2]` of several; NULL if there is none.
static const double *parse_defined(ConstraintParser *p, ConstraintToken token)
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

static bool is_token(ConstraintToken a, ConstraintToken b)
{
    return a.len == b.len && memcmp(a.text, b.text, (size_t)a.len) == 0;
}

static bool is_text(ConstraintToken token, const char *text)
{
    return (size_t)token.len == strlen(text) && memcmp(token.text, text, strlen(text)) == 0;
}

// `p["bx"]`, the `p` of a lambda is read.
static bool parse_item(ConstraintParser *p)
{
    if (!expect(p, "[", "expected `[`"))
        return false;
    ConstraintToken token = p->token;
    if (token.kind != T_WORD || token.len < 3 || token.text[token.len - 1] != token.text[0])
        return error_at(p, "S001", "expected the name of a parameter in quotes");
    char *name = arena_strndup(p->space->arena, token.text + 1, (size_t)token.len - 2);
    int param = space_find(p->space, name);
    if (param < 0)
        return space_no_parameter(p->space, span_of(p, token), "S002", name, p->diags);
    advance(p);
    return emit(p, (Code){.op = OP_PARAM, .param = param}) &&
           expect(p, "]", "expected `]`");
}

static bool parse_name(ConstraintParser *p)
{
    ConstraintToken token = p->token;
    if (is_reserved(p))
        return error_at(p, "S001", "expected a value");
    advance(p);
    if (accept(p, "("))
        return parse_call(p, token);
    if (p->local.len && is_token(token, p->local))
        return paste(p, (Snippet){p->value, p->nvalue});
    if (p->all.len && is_token(token, p->all))
        return parse_item(p);
    char *name = arena_strndup(p->space->arena, token.text, (size_t)token.len);
    int param = space_find(p->space, name);
    const double *number = param < 0 ? parse_defined(p, token) : NULL;
    if (number)
        return emit_number(p, *number);
    if (param < 0 && (is_text(token, "True") || is_text(token, "False")))
        return emit_as(p, is_text(token, "True"), VALUE_TRUTH);
    if (param < 0)
        return space_no_parameter(p->space, span_of(p, token), "S002", name, p->diags);
    return emit(p, (Code){.op = OP_PARAM, .param = param});
}

static bool parse_primary(ConstraintParser *p)
{
    if (p->token.kind == T_NUMBER)
        return parse_number(p);
    if (p->token.kind == T_WORD)
        return parse_word(p);
    if (p->token.kind == T_NAME)
        return parse_name(p);
    if (!expect(p, "(", "expected a value"))
        return false;
    return nest(p, LEVEL_CHOICE) && expect(p, ")", "expected `)`");
}

static bool parse_unary(ConstraintParser *p)
{
    if (accept(p, "-"))
        return nest(p, LEVEL_UNARY) && value(p) && emit_op(p, OP_NEG);
    if (accept(p, "!"))
        return nest(p, LEVEL_UNARY) && emit_op(p, OP_NOT);
    if (accept(p, "~"))
        return nest(p, LEVEL_UNARY) && value(p) && emit_op(p, OP_BITNOT);
    if (accept(p, "+"))
        return nest(p, LEVEL_UNARY);
    if (!parse_primary(p))
        return false;
    return !accept(p, "**") ||
           (value(p) && nest(p, LEVEL_UNARY) && value(p) && emit_op(p, OP_POW));
}

static const Infix *infix_at(const ConstraintParser *p, Precedence level)
{
    for (int i = 0; i < COUNTOF(infixes); i++)
        if (infixes[i].level == level && at(p, infixes[i].text))
            return &infixes[i];
    return NULL;
}

// Sequences ---------------------------------------------------------------------------

static bool push_next(ConstraintParser *p, Sequence *out)
{
    int from = p->ncode;
    if (!nest(p, LEVEL_CHOICE))
        return false;
    as_value(p, p->ncode);
    VEC_PUSH(p->space->arena, out, cut(p, from));
    return true;
}

// What code without parameters is worth.
static bool constant(ConstraintParser *p, Snippet of, ConstraintToken at, const char *what,
                     double *x)
{
    const Constraint code = {.code = of.code, .ncode = of.n};
    for (int i = 0; i < of.n; i++)
        if (of.code[i].op == OP_PARAM)
            return diag_error(p->diags, span_of(p, at), "S007", "%s", what);
    constraint_eval(&code, NULL, -1, NULL, 1, x);
    return true;
}

// Up to three numbers of a range, as they are written: `range(` is read.
static bool parse_range(ConstraintParser *p, double x[3])
{
    double given[3] = {0, 0, 1};
    int n = 0;
    do {
        Sequence one = {0};
        ConstraintToken token = p->token;
        if (n == 3 || !push_next(p, &one))
            return n < 3 ? false : error_at(p, "S001", "expected `)`");
        if (!constant(p, one.at[0], token, "a range needs numbers", &given[n++]))
            return false;
    } while (accept(p, ","));
    x[0] = n == 1 ? 0 : given[0];
    x[1] = n == 1 ? given[0] : given[1];
    x[2] = given[2];
    return expect(p, ")", "expected `,` or `)`");
}

enum { RANGE_MOST = 256, DOMAIN_MOST = INT16_MAX };

static bool push_range(ConstraintParser *p, Sequence *out)
{
    double x[3];
    int most = p->domain ? DOMAIN_MOST : RANGE_MOST;
    ConstraintToken token = p->token;
    if (!parse_range(p, x))
        return false;
    double n = ceil((x[1] - x[0]) / x[2]);
    if (!(n <= most))
        return diag_error(p->diags, span_of(p, token), "S007",
                          "a range of more than %d numbers", most);
    for (int k = 0; k < n; k++) {
        int from = p->ncode;
        if (!emit_number(p, x[0] + k * x[2]))
            return false;
        VEC_PUSH(p->space->arena, out, cut(p, from));
    }
    return true;
}

static bool parse_sequence(ConstraintParser *p, Sequence *out);

// Where the reader stands.
typedef struct {
    const char *end;
    ConstraintToken token;
} ReaderPlace;

static ReaderPlace place(const ConstraintParser *p)
{
    return (ReaderPlace){p->end, p->token};
}

static void go_back(ConstraintParser *p, ReaderPlace to)
{
    p->end = to.end;
    p->token = to.token;
}

// `if CONDITION`, after an item; false where it is not kept.
static bool parse_only(ConstraintParser *p, const Code *otherwise, bool *kept)
{
    double holds;
    int from = p->ncode;
    ConstraintToken token = p->token;
    if (!nest(p, LEVEL_OR))
        return false;
    if (otherwise)
        return emit(p, *otherwise) && emit_op(p, OP_SELECT);
    if (!constant(p, cut(p, from), token,
                  "which items a list has cannot depend on parameters here", &holds))
        return false;
    *kept = holds != 0 && !isnan(holds);
    return true;
}

// The items of `ITEM for NAME in SEQUENCE if CONDITION`; start: where ITEM begins, and the
// reader stands at `for`. `otherwise` stands for an item whose condition does not hold;
// NULL: it is left out.
static bool write_out(ConstraintParser *p, ReaderPlace start, const Code *otherwise,
                      Sequence *out)
{
    ConstraintToken outer = p->local;
    Code *outer_value = p->value;
    int outer_n = p->nvalue;
    Sequence over = {0};
    advance(p);
    ConstraintToken name = p->token;
    if (name.kind != T_NAME || is_reserved(p))
        return error_at(p, "S001", "expected a name after `for`");
    advance(p);
    if (!expect(p, "in", "expected `in`") || !parse_sequence(p, &over))
        return false;
    ReaderPlace after = place(p), last = after;
    bool conditional = at(p, "if");
    for (int i = 0; i < over.len; i++) {
        int from = p->ncode;
        p->local = name;
        p->value = over.at[i].code;
        p->nvalue = over.at[i].n;
        go_back(p, start);
        if (!nest(p, LEVEL_CHOICE))
            return false;
        go_back(p, after);
        bool kept = true;
        if (accept(p, "if") && !parse_only(p, otherwise, &kept))
            return false;
        last = place(p);
        Snippet item = cut(p, from);
        if (kept)
            VEC_PUSH(p->space->arena, out, item);
    }
    if (over.len == 0 && conditional)
        return error_at(p, "S001", "expected a list that is not empty");
    go_back(p, last);
    p->local = outer;
    p->value = outer_value;
    p->nvalue = outer_n;
    return true;
}

// Goes to the `for` on this level, if there is one before the bracket closes: reading what
// comes before it is only possible once its name is known.
static bool find_for(ConstraintParser *p)
{
    for (int depth = 0; p->token.kind != T_END; advance(p)) {
        if (at(p, "(") || at(p, "[") || at(p, "{"))
            depth++;
        if ((at(p, ")") || at(p, "]") || at(p, "}")) && depth-- == 0)
            return false;
        if (depth == 0 && at(p, "for"))
            return true;
    }
    return false;
}

static bool parse_items(ConstraintParser *p, const char *close, const Code *otherwise,
                        Sequence *out)
{
    ReaderPlace start = place(p);
    if (find_for(p))
        return write_out(p, start, otherwise, out) &&
               expect(p, close, "expected the end of the list");
    go_back(p, start);
    do
        if (!push_next(p, out))
            return false;
    while (accept(p, ",") && !at(p, close));
    return expect(p, close, "expected `,` or the end of the list");
}

static const char *closing(ConstraintParser *p)
{
    return accept(p, "[") ? "]" : accept(p, "(") ? ")" : accept(p, "{") ? "}" : NULL;
}

// `list(` and others that leave the items of a sequence as they are.
static bool at_wrapper(const ConstraintParser *p)
{
    static const char *const wrappers[] = {"list", "tuple", "set", "sorted", "frozenset"};
    ConstraintParser look = *p;
    advance(&look);
    for (int i = 0; i < COUNTOF(wrappers); i++)
        if (at(p, wrappers[i]))
            return at(&look, "(");
    return false;
}

// A list, tuple, set or range.
static bool parse_one_sequence(ConstraintParser *p, Sequence *out)
{
    ReaderPlace start = place(p);
    if (accept(p, "range") && accept(p, "("))
        return push_range(p, out);
    go_back(p, start);
    if (at_wrapper(p)) {
        advance(p);
        advance(p);
        return parse_sequence(p, out) && expect(p, ")", "expected `)`");
    }
    const char *close = closing(p);
    if (!close)
        return error_at(p, "S001", "expected a list");
    return parse_items(p, close, NULL, out) &&
           (out->len <= DOMAIN_MOST ||
            diag_error(p->diags, span_of(p, start.token), "S007",
                       "a list of more than %d values", DOMAIN_MOST));
}

// One, or several that are joined by +.
static bool parse_sequence(ConstraintParser *p, Sequence *out)
{
    if (!parse_one_sequence(p, out))
        return false;
    while (accept(p, "+"))
        if (!parse_one_sequence(p, out))
            return false;
    return true;
}

// Functions ---------------------------------------------------------------------------

// What an operator leaves a value as it is with: of all and any, and of sum.
static const Code *neutral(ConstraintOp op)
{
    static const Code zero = {.op = OP_NUMBER, .number = 0},
                      one = {.op = OP_NUMBER, .number = 1};
    return op == OP_AND ? &one : op == OP_OR || op == OP_ADD ? &zero : NULL;
}

// What a function of many is given: values, or one sequence. The parenthesis is read.
static bool parse_arguments(ConstraintParser *p, ConstraintOp op, Sequence *out)
{
    const ConstraintParser kept = *p;
    const char *close = NULL;
    bool range = at(p, "range") || at_wrapper(p);
    bool comprehension = find_for(p);
    go_back(p, place(&kept));
    if (!comprehension && (range || (close = closing(p)))) {
        if (!(range ? parse_sequence(p, out) : parse_items(p, close, neutral(op), out)))
            return false;
        if (accept(p, ")"))
            return true;
        *p = kept; // `(a + b) * c, d`
        out->len = 0;
    }
    return parse_items(p, ")", neutral(op), out);
}

// How many there are; of a set those that are not there before.
static bool count_items(ConstraintParser *p, const Sequence *items, bool set)
{
    if (!set)
        return emit_number(p, items->len);
    for (int i = 0; i < items->len; i++) {
        if (!emit_number(p, 1))
            return false;
        for (int k = 0; k < i; k++)
            if (!paste(p, items->at[i]) || !paste(p, items->at[k]) || !emit_op(p, OP_NE) ||
                !emit_op(p, OP_MUL))
                return false;
        if (i > 0 && !emit_op(p, OP_ADD))
            return false;
    }
    return items->len > 0 || emit_number(p, 0);
}

static bool parse_len(ConstraintParser *p)
{
    Sequence items = {0};
    bool set = at(p, "{") || at(p, "set") || at(p, "frozenset");
    return parse_sequence(p, &items) && expect(p, ")", "expected `)`") &&
           count_items(p, &items, set);
}

static bool join(ConstraintParser *p, const Sequence *items, ConstraintOp op)
{
    if (items->len == 0)
        return emit(p, *(neutral(op) ? neutral(op) : neutral(OP_OR)));
    for (int i = 0; i < items->len; i++)
        if (!paste(p, items->at[i]) || (i > 0 && !emit_op(p, op)))
            return false;
    bool truth = op == OP_AND || op == OP_OR;
    return !truth || (emit_op(p, OP_NOT) && emit_op(p, OP_NOT));
}

static int find_call(ConstraintToken name)
{
    static const char *const modules[] = {"math.", "np.", "numpy."};
    for (int i = 0; i < COUNTOF(modules); i++) {
        int n = (int)strlen(modules[i]);
        if (name.len > n && memcmp(name.text, modules[i], (size_t)n) == 0) {
            name.text += n;
            name.len -= n;
        }
    }
    for (int i = 0; i < COUNTOF(calls); i++)
        if (is_text(name, calls[i].name))
            return i;
    return -1;
}

static bool no_call(ConstraintParser *p, ConstraintToken name)
{
    AutoBuf known = buf_new();
    for (int i = 0; i < COUNTOF(calls); i++)
        buf_printf(&known, "%s%s", i ? ", " : "", calls[i].name);
    return diag_error(p->diags, span_of(p, name), "S006",
                      "`%.*s` is not a function; there are %s", name.len, name.text,
                      known.text);
}

// The name and the parenthesis are read.
static bool parse_call(ConstraintParser *p, ConstraintToken name)
{
    int i = find_call(name);
    Sequence items = {0};
    if (i < 0)
        return no_call(p, name);
    ConstraintOp op = calls[i].op;
    switch (calls[i].kind) {
    case CALL_ONE:
        if (p->token.kind == T_WORD)
            return error_at(p, "S001", "expected a number");
        if (!nest(p, LEVEL_CHOICE) || !value(p))
            return false;
        if (op == OP_LOG && accept(p, ",")) // to a base
            return emit_op(p, op) && nest(p, LEVEL_CHOICE) && value(p) && emit_op(p, op) &&
                   emit_op(p, OP_DIV) && expect(p, ")", "expected `)`");
        if (!expect(p, ")", "expected `)`"))
            return false;
        if (op == OP_NOT && !emit_op(p, op))
            return false;
        return op == OP_NUMBER || emit_op(p, op);
    case CALL_TWO:
        return nest(p, LEVEL_CHOICE) && value(p) && expect(p, ",", "expected `,`") &&
               nest(p, LEVEL_CHOICE) && value(p) && emit_op(p, op) &&
               expect(p, ")", "expected `)`");
    case CALL_LEN: return parse_len(p);
    case CALL_JOIN: return parse_arguments(p, op, &items) && join(p, &items, op);
    }
    BUG("no such function: %d", i);
}

// `a in range(lo, hi, step)`; a's code begins at `from`.
static bool parse_in_range(ConstraintParser *p, int from)
{
    int to = p->ncode;
    double x[3];
    if (!parse_range(p, x))
        return false;
    double last = x[0] + (ceil((x[1] - x[0]) / x[2]) - 1) * x[2];
    return emit_number(p, MIN(x[0], last)) && emit_op(p, OP_GE) && emit_copy(p, from, to) &&
           emit_number(p, MAX(x[0], last)) && emit_op(p, OP_LE) && emit_op(p, OP_AND) &&
           emit_copy(p, from, to) && emit_number(p, x[0]) && emit_op(p, OP_SUB) &&
           emit_number(p, x[2]) && emit_op(p, OP_MOD) && emit_number(p, 0) &&
           emit_op(p, OP_EQ) && emit_op(p, OP_AND);
}

// `(e, f)` after `a in`, as a == e || a == f; the code of a begins at `from`.
static bool parse_members(ConstraintParser *p, int from)
{
    Sequence items = {0};
    ReaderPlace start = place(p);
    if (accept(p, "range") && accept(p, "("))
        return parse_in_range(p, from);
    go_back(p, start);
    if (!parse_sequence(p, &items))
        return false;
    Snippet a = cut(p, from);
    for (int i = 0; i < items.len; i++)
        if (!paste(p, a) || !paste(p, items.at[i]) || !emit_op(p, OP_EQ) ||
            (i > 0 && !emit_op(p, OP_OR)))
            return false;
    return items.len > 0 || emit_number(p, 0);
}

static bool parse_in(ConstraintParser *p, int from)
{
    bool negate = accept(p, "not");
    return expect(p, "in", "expected `in`") && parse_members(p, from) &&
           (!negate || emit_op(p, OP_NOT));
}

// a < b < c is a < b && b < c: the middle operand's code is repeated.
static bool parse_comparison(ConstraintParser *p)
{
    int from = p->ncode;
    if (!parse(p, LEVEL_BITOR))
        return false;
    if (at(p, "in") || at(p, "not"))
        return value(p) && parse_in(p, from);
    int to = p->ncode;
    if (infix_at(p, LEVEL_COMPARE))
        as_value(p, to);
    bool chained = false;
    for (const Infix *infix; (infix = infix_at(p, LEVEL_COMPARE)); chained = true) {
        bool is = at(p, "is");
        advance(p);
        ConstraintOp op = is && accept(p, "not") ? OP_NE : infix->op;
        if (chained && !emit_copy(p, from, to))
            return false;
        from = p->ncode;
        if (!parse(p, LEVEL_BITOR) || !value(p))
            return false;
        to = p->ncode;
        if (!emit_op(p, op) || (chained && !emit_op(p, OP_AND)))
            return false;
    }
    return true;
}

// `a if c else b`, and C's `c ? a : b`.
static bool parse_choice(ConstraintParser *p)
{
    int from = p->ncode;
    if (!parse(p, LEVEL_OR))
        return false;
    if (accept(p, "if"))
        return nest(p, LEVEL_OR) && expect(p, "else", "expected `else`") &&
               nest(p, LEVEL_CHOICE) && emit_op(p, OP_SELECT);
    if (!accept(p, "?"))
        return true;
    Snippet condition = cut(p, from);
    return nest(p, LEVEL_CHOICE) && expect(p, ":", "expected `:`") && paste(p, condition) &&
           nest(p, LEVEL_CHOICE) && emit_op(p, OP_SELECT);
}

static bool parse(ConstraintParser *p, Precedence level)
{
    if (level == LEVEL_CHOICE)
        return parse_choice(p);
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
        bool logical = level < LEVEL_NOT,
             of_c = infix->text[0] == '&' || infix->text[0] == '|';
        if (!logical)
            as_value(p, p->ncode);
        advance(p);
        if (!parse(p, level + 1) || (!logical && !value(p)) ||
            !emit(p, (Code){.op = infix->op, .param = of_c ? OF_C : 0}))
            return false;
    }
    return true;
}

// `lambda p:` and `lambda bx, by:` before an expression.
static bool parse_lambda(ConstraintParser *p)
{
    int n = 0;
    ConstraintToken first = {0};
    if (!accept(p, "lambda"))
        return true;
    for (; p->token.kind == T_NAME; n++) {
        first = p->token;
        advance(p);
        if (!accept(p, ","))
            break;
    }
    char *name = arena_strndup(p->space->arena, first.text, (size_t)first.len);
    if (n == 0 && space_find(p->space, name) < 0)
        p->all = first;
    return expect(p, ":", "expected `:`");
}

// Texts ----------------------------------------------------------------------------------

static ConstraintParser open_text(Space *space, Span span, Diags *diags)
{
    char *text = arena_strndup(space->arena, span.source->text, span.end);
    ConstraintParser p = {.space = space,
                          .diags = diags,
                          .source = span.source,
                          .text = text,
                          .end = text + span.start};
    advance(&p);
    return p;
}

bool constraint_parse(Space *space, Span span, Constraint *whole, Diags *diags)
{
    ConstraintParser p = open_text(space, span, diags);
    if (!parse_lambda(&p) || !parse(&p, LEVEL_CHOICE))
        return false;
    if (p.token.kind != T_END)
        return error_at(&p, "S001", "expected an operator");
    if (whole)
        as_value(&p, p.ncode);
    if (whole)
        *whole = constraint_of(space, p.code, p.ncode);
    else
        constraint_add(space, p.code, p.ncode);
    return true;
}

int constraint_items(Space *space, Span span, Snippet **item, Diags *diags)
{
    ConstraintParser p = open_text(space, span, diags);
    Sequence found = {0};
    p.domain = true;
    bool ok = parse_sequence(&p, &found) &&
              (p.token.kind == T_END || error_at(&p, "S001", "expected `+`"));
    *item = found.at;
    return ok ? found.len : -1;
}
