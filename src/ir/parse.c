// SPDX-License-Identifier: Apache-2.0
//
// The parser: declarations, types and sizes. Recursive descent (the grammar is in
// doc/language.md), names resolved on the way, so a name must be declared before it is
// used. Types are not inferred here.
//
// Errors: the first in a declaration is reported; from then on the declaration reads as
// ended, so that every function below returns by itself, and parsing goes on at the next
// `size`, `fun` or `def`.

#include "ir/internal.h"

#include <limits.h>
#include <string.h>

enum {
    RECURSION_MAX = 500,
    TREE_MAX = 2000,      // depth of an expression: chains of operators are not recursion
    SIZE_NODES_MAX = 256, // products of sums grow when they are multiplied out
    TEXT_MAX = 1 << 20,
    DECLARED_MAX = 4096, // each is looked for among all
    PARAMS_MAX = 1024,
    ERRORS_MAX = 100, // more are not looked for
};

// Tokens and errors -------------------------------------------------------------------

void fail(Parser *p, Span span, const char *code, const char *format, ...)
{
    if (p->failed)
        return;
    p->failed = true;
    va_list args;
    va_start(args, format);
    diag_verror(p->diags, span, code, format, args);
    va_end(args);
}

const Token *look(const Parser *p)
{
    static const Token end = {.kind = TOK_END};
    return p->failed ? &end : &p->token[p->at];
}

TokenKind look_after(const Parser *p)
{
    const Token *token = look(p);
    return token->kind == TOK_END ? TOK_END : token[1].kind;
}

Token take(Parser *p)
{
    Token token = *look(p);
    if (token.kind != TOK_END)
        p->at++;
    return token;
}

bool accept_token(Parser *p, TokenKind kind)
{
    if (look(p)->kind != kind)
        return false;
    take(p);
    return true;
}

static void print_found(Buf *out, const Token *token)
{
    switch (token->kind) {
    case TOK_NAME: buf_printf(out, "`%s`", token->text); return;
    case TOK_INT: buf_printf(out, "`%lld`", (long long)token->integer); return;
    case TOK_FLOAT: buf_printf(out, "`%g`", token->number); return;
    case TOK_END:
    case TOK_BAD:
    case TOK_STRING: buf_puts(out, token_text[token->kind]); return;
#define TOKEN(id, text) case TOK_##id:
        TOKEN_WORDS(TOKEN)
        TOKEN_MARKS(TOKEN)
#undef TOKEN
        buf_printf(out, "`%s`", token_text[token->kind]);
        return;
    case TOKENS: break;
    }
    BUG("token of kind %d", token->kind);
}

void fail_expected(Parser *p, const char *what, const char *where)
{
    const Token *token = look(p);
    if (token->kind == TOK_BAD) // the lexer has said what is wrong
        p->failed = true;
    if (p->failed)
        return;
    AutoBuf found = buf_new();
    print_found(&found, token);
    fail(p, token->span, "P005", "expected %s%s, found %s", what, where, found.text);
}

Token expect(Parser *p, TokenKind kind, const char *where)
{
    if (look(p)->kind == kind)
        return take(p);
    char what[40];
    bool word = kind > TOK_STRING;
    snprintf(what, sizeof what, word ? "`%s`" : "%s", token_text[kind]);
    fail_expected(p, what, where);
    return *look(p);
}

Span span_since(const Parser *p, Span start)
{
    return p->at ? span_join(start, p->token[p->at - 1].span) : start;
}

bool enter(Parser *p)
{
    if (++p->depth > RECURSION_MAX)
        fail(p, look(p)->span, "P010", "nested more than %d deep", RECURSION_MAX);
    return !p->failed;
}

void leave(Parser *p)
{
    p->depth--;
}

// Names -------------------------------------------------------------------------------

Global *find_global(const Parser *p, const char *name)
{
    return map_get(&p->by_name, name);
}

static bool is_local(const Parser *p, const char *name)
{
    for (int i = 0; i < p->local.len; i++)
        if (!strcmp(p->local.at[i].name, name))
            return true;
    return false;
}

void fail_unknown(Parser *p, const Token *name, bool sizes_only)
{
    if (p->failed)
        return;
    if (sizes_only && is_local(p, name->text)) {
        fail(p, name->span, "P009",
             "`%s` is a value; lengths and counts are made of sizes and whole numbers: "
             "compute up to a size, and let an `if` choose what counts",
             name->text);
        return;
    }
    for (int i = 0; sizes_only && i < p->generic.len; i++)
        if (p->generic.at[i].convert && !strcmp(p->generic.at[i].name, name->text)) {
            fail(p, name->span, "P009",
                 "`%s` begins with a small letter, so the def leaves a type open, and no "
                 "length",
                 name->text);
            return;
        }
    if (p->self && !strcmp(p->self, name->text)) {
        fail(p, name->span, "P006", "`%s` cannot call itself: there is no recursion",
             name->text);
        return;
    }
    Guess guess = guess_new(name->text);
    for (int i = 0; i < p->globals.len; i++)
        if (!sizes_only || p->globals.at[i]->size)
            guess_offer(&guess, p->globals.at[i]->name);
    for (int i = 0; i < p->local.len && !sizes_only; i++)
        guess_offer(&guess, p->local.at[i].name);
    if (!sizes_only)
        guess_offer_words(&guess);
    AutoBuf hint = buf_new();
    guess_print(&hint, &guess);
    fail(p, name->span, "P006", "%s named `%s` is declared before this%s",
         sizes_only ? "no size" : "nothing", name->text, hint.text);
}

Token take_new_name(Parser *p, const char *what)
{
    const Token *token = look(p);
    if (token->kind == TOK_NAME ? name_is_reserved(token->text)
                                : token->kind >= TOK_SIZE && token->kind <= TOK_FALSE)
        fail(p, token->span, "P015", "`%s` is a word of the language and cannot be %s",
             token->text ? token->text : token_text[token->kind], what);
    if (token->kind != TOK_NAME)
        fail_expected(p, what, "");
    Token name = take(p);
    if (!name.text)
        name.text = "?";
    return name;
}

// Declares a name; an error if it is declared already.
static void declare(Parser *p, Token name, const Arith *size, Function *function)
{
    const Global *before = find_global(p, name.text);
    if (before) {
        int line, col;
        span_line_col(before->span, &line, &col);
        fail(p, name.span, "P007", "`%s` is declared already, in line %d", name.text, line);
        return;
    }
    if (p->globals.len == DECLARED_MAX)
        fail(p, name.span, "P018", "the text declares more than %d names", DECLARED_MAX);
    if (p->globals.len >= DECLARED_MAX)
        return;
    Global *global =
        NEW_OF(p->ir->arena, Global, name.text, name.span, size, function, false);
    VEC_PUSH(p->ir->arena, &p->globals, global);
    map_put(&p->by_name, name.text, global);
}

// Sizes: symbolic integers ------------------------------------------------------------

static const Arith *parse_sum(Parser *p);

// The result of an operation, or an error if it has grown out of bounds. The limit is
// on the value, not the text, so that what is printed can be read again.
static const Arith *checked(Parser *p, const Arith *size)
{
    if (arith_overflowed(p->ir->arith))
        fail(p, span_since(p, p->size_start), "P011", "the size does not fit 64 bits");
    else if (arith_parts(p->ir->arith, size) > SIZE_NODES_MAX)
        fail(p, span_since(p, p->size_start), "P011",
             "the size is too complicated: multiplied out it has more than %d parts",
             SIZE_NODES_MAX);
    return p->failed ? arith_const(p->ir->arith, 1) : size;
}

static const Arith *size_name(Parser *p)
{
    Token name = take(p);
    const Global *global = find_global(p, name.text);
    if (global && global->size)
        return global->size;
    if (global && global->broken)
        p->failed = true;
    fail_unknown(p, &name, true);
    return arith_const(p->ir->arith, 1);
}

static const Arith *size_min_max(Parser *p)
{
    bool min = !strcmp(take(p).text, "min");
    expect(p, TOK_LPAREN, "");
    const Arith *a = parse_sum(p);
    expect(p, TOK_COMMA, " and another size");
    const Arith *b = parse_sum(p);
    expect(p, TOK_RPAREN, "");
    return checked(p, min ? arith_min(p->ir->arith, a, b) : arith_max(p->ir->arith, a, b));
}

static const Arith *size_primary(Parser *p)
{
    const Token *token = look(p);
    const Arith *size = arith_const(p->ir->arith, 1);
    if (!enter(p)) {
        leave(p);
        return size;
    }
    if (token->kind == TOK_INT) {
        size = arith_const(p->ir->arith, take(p).integer);
    } else if (accept_token(p, TOK_MINUS)) {
        size = arith_mulc(p->ir->arith, size_primary(p), -1);
    } else if (accept_token(p, TOK_LPAREN)) {
        size = parse_sum(p);
        expect(p, TOK_RPAREN, "");
    } else if (token->kind == TOK_NAME) {
        bool call = !strcmp(token->text, "min") || !strcmp(token->text, "max");
        size = call ? size_min_max(p) : size_name(p);
    } else {
        fail_expected(p, "a size: an integer or the name of a size", "");
    }
    leave(p);
    return size;
}

static const Arith *divide(Parser *p, TokenKind op, const Arith *a, const Arith *b,
                           Span span)
{
    ArithCtx *ctx = p->ir->arith;
    if (!arith_le(ctx, arith_const(ctx, 1), b)) {
        fail(p, span, "P011", "the divisor of a size must be positive for all sizes");
        return a;
    }
    return op == TOK_OVER ? arith_div(ctx, a, b) : arith_mod(ctx, a, b);
}

static const Arith *parse_product(Parser *p)
{
    const Arith *size = size_primary(p);
    for (;;) {
        TokenKind op = look(p)->kind;
        if (op != TOK_TIMES && op != TOK_OVER && op != TOK_MOD)
            return size;
        take(p);
        Span span = look(p)->span;
        const Arith *right = size_primary(p);
        size = op == TOK_TIMES ? arith_mul(p->ir->arith, size, right)
                               : divide(p, op, size, right, span_since(p, span));
        size = checked(p, size);
    }
}

static const Arith *parse_sum(Parser *p)
{
    const Arith *size = parse_product(p);
    for (;;) {
        TokenKind op = look(p)->kind;
        if (op != TOK_PLUS && op != TOK_MINUS)
            return size;
        take(p);
        const Arith *right = parse_product(p);
        size = checked(p, op == TOK_PLUS ? arith_add(p->ir->arith, size, right)
                                         : arith_sub(p->ir->arith, size, right));
    }
}

const Arith *parse_size(Parser *p)
{
    p->size_start = look(p)->span;
    return parse_sum(p);
}

// Types -------------------------------------------------------------------------------

static const Type *array_type(Parser *p)
{
    int64_t value;
    Span span = look(p)->span;
    const Arith *len = parse_size(p);
    if (arith_is_const(len, &value) && value < 1)
        fail(p, span_since(p, span), "P011", "the length of an array must be at least 1");
    if (look(p)->kind == TOK_COMMA)
        fail(p, look(p)->span, "P005",
             "each length has its own brackets: write `[N][M]float`, not `[N, M]float`");
    expect(p, TOK_RBRACKET, " after the length");
    return type_array(p->ir->arena, len, parse_type(p));
}

static const Type *tuple_type(Parser *p)
{
    VEC(const Type *) item = {0};
    do
        VEC_PUSH(p->ir->arena, &item, parse_type(p));
    while (accept_token(p, TOK_COMMA));
    expect(p, TOK_RPAREN, "");
    return item.len == 1 ? item.at[0] : type_tuple(p->ir->arena, item.at, item.len);
}

static const Type *named_type(Parser *p)
{
    Token name = take(p);
    const Type *type = name_is_type(name.text);
    for (int i = 0; !type && i < p->generic.len; i++)
        if (!strcmp(p->generic.at[i].name, name.text))
            type = p->generic.at[i].type;
    if (type)
        return type;
    fail(p, name.span, "P006",
         "`%s` is not a type; there are %svectors of 2, 4 or 8 like float4, tuples "
         "(float, int) and arrays [N]float",
         name.text,
#define SCALAR(id, name, ...) name ", "
#include "ir/scalars.def"
#undef SCALAR
    );
    return type_scalar(S_FLOAT);
}

const Type *parse_type(Parser *p)
{
    const Type *type = type_scalar(S_FLOAT);
    if (!enter(p))
        ;
    else if (accept_token(p, TOK_LBRACKET))
        type = array_type(p);
    else if (accept_token(p, TOK_LPAREN))
        type = tuple_type(p);
    else if (look(p)->kind == TOK_NAME)
        type = named_type(p);
    else
        fail_expected(p, "a type", "");
    leave(p);
    return type;
}

// Declarations ------------------------------------------------------------------------

static bool accept_word(Parser *p, const char *word)
{
    const Token *next = look(p);
    bool is = next->kind == TOK_NAME && !strcmp(next->text, word);
    if (is)
        take(p);
    return is;
}

static int64_t take_integer(Parser *p, const char *what)
{
    if (look(p)->kind != TOK_INT)
        fail_expected(p, what, "");
    return take(p).integer;
}

// `1..65536 multiple 4`, or nothing: any.
static SizeRange parse_range(Parser *p)
{
    SizeRange range = size_any;
    Span span = look(p)->span;
    if (look(p)->kind == TOK_INT) {
        range.low = take_integer(p, "the least value of the size");
        expect(p, TOK_DOT, " and another one before the largest value of the size");
        expect(p, TOK_DOT, " before the largest value of the size");
        range.high = take_integer(p, "the largest value of the size");
    }
    if (accept_word(p, "multiple"))
        range.multiple = take_integer(p, "what the size is a multiple of");
    if (!p->failed && !size_range_settle(&range))
        fail(p, span_since(p, span), "P019",
             "a range of sizes begins at 1 or more, ends at %d or less, and holds a size",
             INT32_MAX);
    return range;
}

static bool at_declaration(const Parser *p)
{
    const Token *token = &p->token[p->at];
    return token->kind == TOK_FUN || token->kind == TOK_DEF || token->kind == TOK_END ||
           (token->kind == TOK_SIZE && token[1].kind != TOK_LPAREN);
}

static void parse_size_declaration(Parser *p)
{
    Token name = take_new_name(p, "the name of a size");
    SizeDecl decl = {.name = name.text, .span = name.span, .range = size_any};
    decl.generic = accept_word(p, "generic");
    const Span next = look(p)->span;
    if (decl.generic)
        decl.range = parse_range(p);
    else if (accept_word(p, "multiple"))
        fail(p, next, "P005", "`multiple` follows `generic`: any other size has a value");
    decl.arith = arith_size_within(p->ir->arith, name.text, decl.range.low, decl.range.high,
                                   decl.range.multiple);
    if (name.span.source) // none if the name was refused
        declare(p, name, decl.arith, NULL);
    if (!p->failed)
        VEC_PUSH(p->ir->arena, &p->program->sizes, decl);
}

// A size that is wrong hides none of those after it.
static void parse_sizes(Parser *p)
{
    bool broken = false;
    do {
        parse_size_declaration(p);
        broken |= p->failed;
        while (p->failed && p->token[p->at].kind != TOK_COMMA && !at_declaration(p))
            p->at++;
        p->failed = false;
    } while (accept_token(p, TOK_COMMA));
    p->failed = broken;
}

static void add_param(Parser *p, Token name)
{
    if (p->local.len == PARAMS_MAX)
        fail(p, name.span, "P018", "`%s` has more than %d parameters", p->self, PARAMS_MAX);
    for (int i = 0; i < p->local.len; i++)
        if (!strcmp(p->local.at[i].name, name.text))
            fail(p, name.span, "P007", "two parameters are called `%s`", name.text);
    Param *param = param_new(p->ir, name.text, NULL);
    param->span = name.span;
    VEC_PUSH(p->ir->arena, &p->local, (Local){name.text, param, -1, -1});
}

// `a, b: float, c: int`: the type of a group is that of all its names.
static void parse_params(Parser *p)
{
    int first = p->local.len;
    do {
        add_param(p, take_new_name(p, "the name of a parameter"));
        if (accept_token(p, TOK_COMMA))
            continue;
        expect(p, TOK_COLON, " and the type of the parameter");
        Span span = look(p)->span;
        const Type *type = parse_type(p);
        if (p->in_fun && !type_is_scalar(type))
            fail(p, span_since(p, span), "P016",
                 "a fun takes scalars; use a def for arrays or tuples");
        for (; first < p->local.len; first++)
            p->local.at[first].param->type = type;
        if (!accept_token(p, TOK_COMMA))
            return;
    } while (!p->failed);
}

// `[A, B, t]`: lengths that a def leaves open, and, in small letters, types of scalars.
static void parse_generics(Parser *p, Function *f)
{
    Arena *arena = p->ir->arena;
    p->generic.len = 0;
    if (!accept_token(p, TOK_LBRACKET))
        return;
    if (p->in_fun)
        fail(p, look(p)->span, "P016", "a fun has fixed types; use a def for open ones");
    do {
        Token name = take_new_name(p, "the name of a length or of a type");
        OpenName open = {.name = name.text};
        bool is_type = name.text[0] >= 'a' && name.text[0] <= 'z';
        if (is_type) {
            Function *convert =
                NEW_OF(arena, Function, .name = name.text, .span = name.span, .nparam = 1);
            open.type = type_open(arena, name.text);
            open.convert = convert;
        } else {
            open.size = arith_size(p->ir->arith, name.text);
        }
        declare(p, name, open.size, open.convert);
        if (!p->failed)
            VEC_PUSH(arena, &p->generic, open);
    } while (accept_token(p, TOK_COMMA));
    expect(p, TOK_RBRACKET, " after what is left open");
    f->ngeneric = p->generic.len;
    f->generic = COPY_ARRAY(arena, p->generic.at, f->ngeneric);
}

// Their names end with the def.
static void forget_generics(Parser *p)
{
    for (int i = p->generic.len - 1; i >= 0; i--) {
        map_put(&p->by_name, p->generic.at[i].name, NULL);
        p->globals.len--;
    }
    p->generic.len = 0;
}

static void parse_head(Parser *p, Function *f)
{
    expect(p, TOK_LPAREN, " and the parameters");
    if (look(p)->kind != TOK_RPAREN)
        parse_params(p);
    else if (p->in_fun)
        fail(p, look(p)->span, "P016", "a fun needs a parameter");
    expect(p, TOK_RPAREN, " after the parameters");
    f->nparam = p->local.len;
    f->params = NEW_ARRAY(p->ir->arena, Param *, f->nparam);
    for (int i = 0; i < f->nparam; i++)
        f->params[i] = p->local.at[i].param;
    if (f->is_def && !accept_token(p, TOK_COLON))
        return;
    if (!f->is_def)
        expect(p, TOK_COLON, " and the type of the result");
    Span span = look(p)->span;
    f->result = parse_type(p);
    if (p->in_fun && !type_is_scalar(f->result))
        fail(p, span_since(p, span), "P016",
             "a fun returns a scalar; use a def for arrays or tuples");
}

static void parse_opaque(Parser *p, Function *f)
{
    Token text = take(p);
    f->text = text.text;
    if (f->is_def)
        fail(p, text.span, "P016", "only a fun can be C text");
    const Token *word = look(p);
    if (word->kind != TOK_NAME || strcmp(word->text, "flops")) {
        fail_expected(p, "`flops` and the operations of the C text", "");
        return;
    }
    take(p);
    Token cost = expect(p, TOK_INT, " for the operations of the C text");
    if (cost.integer > INT_MAX)
        fail(p, cost.span, "P003", "the number of operations does not fit an int");
    f->flops = (int)cost.integer;
}

typedef struct {
    const Expr *expr;
    int depth;
} Visit;

// An explicit stack, because the depth is what is in question.
static int tree_depth(const Expr *expr)
{
    AutoArena *arena = arena_new();
    VEC(Visit) todo = {0};
    int deepest = 0;
    VEC_PUSH(arena, &todo, ((Visit){expr, 1}));
    while (todo.len) {
        Visit v = todo.at[--todo.len];
        deepest = MAX(deepest, v.depth);
        for (int i = 0; i < v.expr->narg; i++)
            VEC_PUSH(arena, &todo, ((Visit){v.expr->arg[i], v.depth + 1}));
        if (v.expr->fun)
            VEC_PUSH(arena, &todo, ((Visit){v.expr->fun, v.depth + 1}));
    }
    return deepest;
}

static void parse_body(Parser *p, Function *f)
{
    expect(p, TOK_ASSIGN, " and the body");
    if (look(p)->kind == TOK_STRING) {
        parse_opaque(p, f);
        return;
    }
    f->body = parse_expr(p);
    if (!p->failed && tree_depth(f->body) > TREE_MAX)
        fail(p, f->body->span, "P010", "an expression more than %d deep", TREE_MAX);
}

static void parse_function(Parser *p, bool is_def)
{
    Function *f = NEW(p->ir->arena, Function);
    Span start = p->token[p->at - 1].span;
    p->in_fun = !is_def;
    p->local.len = 0;
    f->is_def = is_def;
    Token name = take_new_name(p, is_def ? "the name of a def" : "the name of a fun");
    p->self = f->name = name.text;
    parse_generics(p, f);
    parse_head(p, f);
    parse_body(p, f);
    forget_generics(p);
    f->span = span_since(p, start);
    bool broken = p->failed;
    p->failed = false; // a failing declaration still declares its name
    if (name.kind == TOK_NAME)
        declare(p, name, NULL, f);
    Global *global = find_global(p, f->name);
    if (global && global->function == f)
        global->broken = broken;
    p->failed |= broken;
    if (p->failed)
        return;
    if (f->ngeneric)
        VEC_PUSH(p->ir->arena, &p->program->generics, f);
    else if (is_def)
        VEC_PUSH(p->ir->arena, &p->program->defs, f);
    else
        VEC_PUSH(p->ir->arena, &p->program->funs, f);
}

static void parse_declaration(Parser *p)
{
    p->failed = false;
    p->depth = 0;
    if (accept_token(p, TOK_SIZE))
        parse_sizes(p);
    else if (accept_token(p, TOK_FUN))
        parse_function(p, false);
    else if (accept_token(p, TOK_DEF))
        parse_function(p, true);
    else
        fail_expected(p, "`size`, `fun` or `def`", "");
    if (!p->failed && !at_declaration(p))
        fail_expected(p, "`size`, `fun`, `def` or the end", "");
    while (p->failed && !at_declaration(p))
        p->at++;
}

Program *ir_parse(Ir *ir, const Source *source, Diags *diags)
{
    int errors = diags->errors;
    if (source->len > TEXT_MAX)
        return diag_null(diags, span_none, "P017", "%s is longer than 1 MiB", source->name);
    Program *program = NEW_OF(ir->arena, Program, .ir = ir, .source = source);
    Parser p = {.ir = ir, .diags = diags, .program = program};
    p.by_name = (Map){.arena = ir->arena};
    p.token = lex(ir->arena, source, diags);
    while (p.token[p.at].kind != TOK_END && diags->errors - errors < ERRORS_MAX)
        parse_declaration(&p);
    if (diags->errors > errors)
        return NULL;
    if (!program->defs.len)
        return diag_null(diags, p.token[p.at].span, "P012", "the text has no def%s",
                         program->generics.len ? " whose lengths and types are all known"
                                               : "");
    program->main = program->defs.at[program->defs.len - 1];
    return program;
}
