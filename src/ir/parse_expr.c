// SPDX-License-Identifier: Apache-2.0
//
// The parser: expressions. Precedence climbing over the infix operations; pipes,
// operators and calls are desugared at once, so that what is left is Expr:
//
//   x |> f(a)              f(a, x)
//   the function `f`       \a b -> f(a, b)
//   the function `split(4)`  \x -> split(4, x)
//   \a b -> e where a pattern passes one tuple   \t -> e with t.0 for a and t.1 for b
//
// How many sizes precede the other arguments of a pattern is settled by counting the
// arguments up to the closing parenthesis.

#include "ir/internal.h"

#include <math.h>
#include <string.h>

static Expr *parse_application(Parser *p, Token name, Expr *piped);

// Whatever stands where an error is; never seen outside, as the declaration has failed.
static Expr *dummy(Parser *p)
{
    return expr_literal(p->ir, 0, false);
}

static Expr *spanned(Parser *p, Expr *expr, Span start)
{
    expr->span = span_since(p, start);
    return expr;
}

// Names -------------------------------------------------------------------------------

static const Local *find_local(const Parser *p, const char *name)
{
    for (int i = p->local.len - 1; i >= 0; i--)
        if (!strcmp(p->local.at[i].name, name))
            return &p->local.at[i];
    return NULL;
}

static Param *bind(Parser *p, Token name)
{
    Param *param = param_new(p->ir, name.text, NULL);
    param->span = name.span;
    VEC_PUSH(p->ir->arena, &p->local, ((Local){name.text, param, -1, -1}));
    return param;
}

static Expr *use_param(Parser *p, Param *param, Span span)
{
    Expr *use = expr_param(p->ir, param);
    use->span = span;
    return use;
}

// Component -1: the tuple itself.
static Expr *use_component(Parser *p, Param *tuple, int component, Span span)
{
    if (component < 0)
        return use_param(p, tuple, span);
    Expr *get = expr_get(p->ir, use_param(p, tuple, span), component);
    get->span = span;
    return get;
}

static void fail_not_value(Parser *p, const Token *name)
{
    PatternWord word;
    Op op;
    if (name_is_pattern(name->text, &word))
        fail(p, name->span, "P009",
             "`%s` is a pattern and needs its arguments in parentheses", name->text);
    else if (name_is_op(name->text, &op) || find_global(p, name->text))
        fail(p, name->span, "P009",
             "`%s` is a function and needs its arguments in parentheses", name->text);
    else if (name_is_reserved(name->text))
        fail(p, name->span, "P009", "`%s` is a word of the language, not a value",
             name->text);
    else
        fail_unknown(p, name, false);
}

static Expr *parse_name(Parser *p)
{
    Token name = take(p);
    if (look(p)->kind == TOK_LPAREN)
        return parse_application(p, name, NULL);
    const Local *local = find_local(p, name.text);
    if (local) {
        Expr *value = use_component(p, local->param, local->within, name.span);
        return local->component < 0
                   ? value
                   : spanned(p, expr_get(p->ir, value, local->component), name.span);
    }
    const Global *global = find_global(p, name.text);
    if (global && global->size)
        return spanned(p, expr_num(p->ir, global->size), name.span);
    if (!global && !strcmp(name.text, "inf"))
        return spanned(p, expr_literal(p->ir, INFINITY, true), name.span);
    if (global && global->broken)
        p->failed = true;
    fail_not_value(p, &name);
    return dummy(p);
}

// Arguments ---------------------------------------------------------------------------

typedef VEC(Expr *) Exprs;

// The arguments from here to the parenthesis that closes them, found ahead of parsing. A
// comma between `let` and `in` is wrong, and is told when it is met.
static int count_args(Parser *p)
{
    const Token *token = look(p);
    if (token->kind == TOK_RPAREN || token->kind == TOK_END)
        return 0;
    const Token *open = token - 1;
    int depth = 0, lets = 0, n = 1;
    for (; depth >= 0; token++) {
        if (token->kind == TOK_END || token->kind == TOK_FUN || token->kind == TOK_DEF) {
            fail(p, open->span, "P005", "this parenthesis is not closed");
            return 0;
        }
        depth += token->kind == TOK_LPAREN || token->kind == TOK_LBRACKET;
        depth -= token->kind == TOK_RPAREN || token->kind == TOK_RBRACKET;
        if (!depth && token[-1].kind != TOK_LAMBDA)
            lets += (token->kind == TOK_LET) - (token->kind == TOK_IN);
        n += token->kind == TOK_COMMA && !depth && lets <= 0;
    }
    return n;
}

// `, ` before every argument but the first.
static void separate(Parser *p, bool *first)
{
    if (!*first)
        expect(p, TOK_COMMA, " and another argument");
    *first = false;
}

// All the arguments of a call, in parentheses or (piped into a bare name) none; the
// piped one becomes the last.
static Exprs parse_args(Parser *p, Expr *piped)
{
    Exprs args = {0};
    if (accept_token(p, TOK_LPAREN)) {
        int n = count_args(p);
        bool first = true;
        for (int i = 0; i < n && !p->failed; i++) {
            separate(p, &first);
            VEC_PUSH(p->ir->arena, &args, parse_expr(p));
        }
        expect(p, TOK_RPAREN, " or `,` after the argument");
    }
    if (piped)
        VEC_PUSH(p->ir->arena, &args, piped);
    return args;
}

static Expr *call_op(Parser *p, Op op, const Exprs *args)
{
    Expr *expr = expr_new(p->ir, E_OP, span_none);
    expr->op = op;
    expr->arg = args->at;
    expr->narg = args->len;
    return expr;
}

static Expr *call_function(Parser *p, Function *callee, const Exprs *args)
{
    Expr *expr = expr_new(p->ir, E_CALL, span_none);
    expr->callee = callee;
    expr->arg = args->at;
    expr->narg = args->len;
    return expr;
}

// Functions given to patterns ---------------------------------------------------------

// Something that can be called with k arguments: an operation, a function, or (k = 1) a
// call that lacks its last argument.
typedef struct {
    Span span;
    Op op;
    Function *callee; // NULL if an operation
} Callee;

static Expr *call(Parser *p, const Callee *callee, const Exprs *args)
{
    Expr *expr = callee->callee ? call_function(p, callee->callee, args)
                                : call_op(p, callee->op, args);
    expr->span = callee->span;
    return expr;
}

// Most patterns pass one element, which may be a tuple; these pass an index.
static bool passes_index(Pattern pattern)
{
    return pattern == P_ARRAY || pattern == P_GATHER || pattern == P_SCATTER;
}

// Does a function of k parameters take a tuple of k apart here? Reports if it does not
// fit at all.
static bool destructures(Parser *p, Pattern pattern, int want, int k, Span span)
{
    if (k == want)
        return false;
    if (want == 1 && k > 1 && !passes_index(pattern))
        return true;
    const bool fold = want == 2 && k > want && !passes_index(pattern);
    fail(p, span, "P008", "`%s` needs a function of %d parameter%s, this one has %d%s",
         pattern_info[pattern].text, want, want == 1 ? "" : "s", k,
         fold ? "; a tuple is taken apart in parentheses: \\s (a, b) -> ..." : "");
    return false;
}

static Expr *lambda_over(Parser *p, Param **params, int n, Expr *body, Span span)
{
    Expr *lambda = expr_lambda(p->ir, params, n, body);
    lambda->span = span;
    return lambda;
}

static Expr *eta_expand(Parser *p, const Callee *callee, int k, Pattern pattern, int want)
{
    static const char *const letter[] = {"a", "b", "c"};
    VEC(Param *) params = {0};
    Exprs args = {0};
    bool apart = destructures(p, pattern, want, k, callee->span);
    Param *tuple = param_new(p->ir, "t", NULL);
    tuple->span = callee->span;
    for (int i = 0; i < k; i++) {
        const char *name = callee->callee ? callee->callee->params[i]->name : letter[i];
        Param *param = apart ? tuple : param_new(p->ir, name, NULL);
        param->span = callee->span;
        VEC_PUSH(p->ir->arena, &params, param);
        VEC_PUSH(p->ir->arena, &args,
                 apart ? use_component(p, tuple, i, callee->span)
                       : use_param(p, param, callee->span));
    }
    Expr *body = call(p, callee, &args);
    return lambda_over(p, params.at, apart ? 1 : k, body, callee->span);
}

// `split(4)` or `transpose` as a function: the argument it lacks is the parameter.
static Expr *partial(Parser *p, Token name, Pattern pattern, int want)
{
    destructures(p, pattern, want, 1, name.span);
    Param *param = param_new(p->ir, "x", NULL);
    param->span = name.span;
    Expr *body = parse_application(p, name, use_param(p, param, name.span));
    return lambda_over(p, &param, 1, body, span_since(p, name.span));
}

static Expr *named_function(Parser *p, Pattern pattern, int want)
{
    Token name = take(p);
    PatternWord word;
    Callee callee = {.span = name.span};
    const Global *global = find_global(p, name.text);
    if (look(p)->kind == TOK_LPAREN || name_is_pattern(name.text, &word))
        return partial(p, name, pattern, want);
    if (find_local(p, name.text)) {
        fail(p, name.span, "P009", "`%s` is a value; a function is needed here", name.text);
    } else if (name_is_op(name.text, &callee.op)) {
        return eta_expand(p, &callee, op_info[callee.op].args, pattern, want);
    } else if (global && global->function && !global->broken) {
        callee.callee = global->function;
        return eta_expand(p, &callee, callee.callee->nparam, pattern, want);
    } else if (global && global->size) {
        fail(p, name.span, "P009", "`%s` is a size; a function is needed here", name.text);
    }
    if (global && global->broken)
        p->failed = true;
    fail_unknown(p, &name, false);
    return dummy(p);
}

static bool operator_alone(const Parser *p, Op *op)
{
    TokenKind next = look_after(p), kind = look(p)->kind;
    if (kind <= TOK_FALSE || (next != TOK_COMMA && next != TOK_RPAREN))
        return false;
    *op = kind == TOK_BITNOT ? OP_BITNOT : OP_NOT;
    return kind == TOK_NOT || kind == TOK_BITNOT || name_is_infix(token_text[kind], op);
}

// `(m, i)`: a parameter that is a tuple, taken apart into names of its components.
static Param *parse_group(Parser *p)
{
    Span start = take(p).span;
    Param *tuple = param_new(p->ir, "t", NULL);
    int n = 0;
    do {
        bind(p, take_new_name(p, "the name of a component"));
        p->local.at[p->local.len - 1].param = tuple;
        p->local.at[p->local.len - 1].component = n++;
    } while (accept_token(p, TOK_COMMA));
    expect(p, TOK_RPAREN, " after the names of the components");
    tuple->span = span_since(p, start);
    if (n < 2)
        fail(p, tuple->span, "P008", "a tuple has two components or more");
    return tuple;
}

// The parameter of a name becomes a component of a tuple.
static void put_within(Local *local, Param *const *params, int n, Param *tuple)
{
    int i = 0;
    while (i < n - 1 && params[i] != local->param)
        i++;
    *(local->component < 0 ? &local->component : &local->within) = i;
    local->param = tuple;
}

// The names between the backslash and the arrow; those of a tuple taken apart are bound
// to its components.
static Expr *parse_lambda(Parser *p, Pattern pattern, int want)
{
    int outer = p->local.len;
    Span start = take(p).span;
    VEC(Param *) params = {0};
    do {
        if (look(p)->kind == TOK_LPAREN) {
            VEC_PUSH(p->ir->arena, &params, parse_group(p));
            continue;
        }
        Token name = take_new_name(p, "the name of a parameter");
        for (int i = outer; i < p->local.len; i++)
            if (!strcmp(p->local.at[i].name, name.text))
                fail(p, name.span, "P007", "two parameters are called `%s`", name.text);
        Param *param = bind(p, name);
        VEC_PUSH(p->ir->arena, &params, param);
    } while (look(p)->kind == TOK_NAME || look(p)->kind == TOK_LPAREN);
    Span span = span_since(p, start);
    expect(p, TOK_ARROW, " and the body of the function");
    if (destructures(p, pattern, want, params.len, span)) {
        Param *tuple = param_new(p->ir, "t", NULL);
        tuple->span = span;
        for (int i = outer; i < p->local.len; i++)
            put_within(&p->local.at[i], params.at, params.len, tuple);
        params.at[0] = tuple;
        params.len = 1;
    }
    Expr *body = parse_expr(p);
    p->local.len = outer;
    return lambda_over(p, params.at, params.len, body, span_since(p, start));
}

static Expr *parse_fun(Parser *p, Pattern pattern, int dims)
{
    int want = pattern == P_ARRAY ? dims : pattern_info[pattern].fun;
    Callee callee = {0};
    if (look(p)->kind == TOK_LAMBDA)
        return parse_lambda(p, pattern, want);
    if (look(p)->kind == TOK_NAME)
        return named_function(p, pattern, want);
    if (operator_alone(p, &callee.op)) {
        callee.span = take(p).span;
        return eta_expand(p, &callee, op_info[callee.op].args, pattern, want);
    }
    fail_expected(p, "a function: `\\x -> ...`, a name or an operator", "");
    return dummy(p);
}

// Patterns ----------------------------------------------------------------------------

static void print_item(Buf *out, bool *first, const char *item)
{
    buf_printf(out, "%s%s", *first ? "(" : ", ", item);
    *first = false;
}

// `slide2(size, size, array)`: what the pattern takes, for a message.
static void print_usage(Buf *out, const PatternWord *word)
{
    const PatternInfo *info = &pattern_info[word->pattern];
    bool first = true;
    buf_putc(out, '`');
    pattern_print_name(out, word->pattern, word->dims, word->par);
    for (int i = 0; i < info->num; i++)
        print_item(out, &first, "size");
    if (word->pattern == P_PAD)
        print_item(out, &first, "mode");
    if (info->fun)
        print_item(out, &first, "function");
    if (info->data == 2)
        print_item(out, &first, "initial");
    if (info->data)
        print_item(out, &first, info->data < 0 ? "array, ..." : "array");
    buf_puts(out, ")`");
    if (info->num && word->dims > 1)
        buf_printf(out, ", the sizes once or %d times", word->dims);
}

// How many of the argc arguments are sizes; reports if the number fits no way.
static int count_nums(Parser *p, const Token *name, const PatternWord *word, int argc,
                      bool piped)
{
    const PatternInfo *info = &pattern_info[word->pattern];
    int others = (word->pattern == P_PAD) + (info->fun > 0);
    int data = info->data < 0 ? 1 : info->data;
    int nums = argc + piped - others - data;
    if (nums == info->num || (info->num && nums == info->num * word->dims))
        return nums;
    if (info->data < 0 && nums > 0)
        return 0;
    AutoBuf usage = buf_new();
    print_usage(&usage, word);
    fail(p, name->span, "P008", "wrong number of arguments: expected %s, found %d%s",
         usage.text, argc, piped ? " and the piped array" : "");
    return 0;
}

static void parse_nums(Parser *p, Expr *expr, int n, bool *first)
{
    int group = pattern_info[expr->pattern].num;
    expr->nnum = group * expr->dims;
    for (int i = 0; i < expr->nnum; i++) {
        if (i < n) {
            separate(p, first);
            expr->num[i] = parse_size(p);
        } else {
            expr->num[i] = expr->num[i % group];
        }
    }
}

// clamp, mirror, wrap, or the constant, which is the first of the arguments.
static void parse_mode(Parser *p, Expr *expr, Exprs *args, bool *first)
{
    int mode;
    separate(p, first);
    const Token *token = look(p);
    if (token->kind == TOK_NAME && name_is_mode(token->text, &mode)) {
        take(p);
        expr->mode = (PadMode)mode;
    } else {
        expr->mode = PAD_CONSTANT;
        VEC_PUSH(p->ir->arena, args, parse_expr(p));
    }
}

static Expr *parse_pattern(Parser *p, Token name, const PatternWord *word, Expr *piped)
{
    Expr *expr = expr_new(p->ir, E_PATTERN, name.span);
    const PatternInfo *info = &pattern_info[word->pattern];
    expr->pattern = word->pattern;
    expr->dims = word->dims;
    expr->par = word->par;
    if (p->in_fun)
        fail(p, name.span, "P016", "a fun computes with scalars; patterns belong in a def");
    bool open = accept_token(p, TOK_LPAREN), first = true;
    int argc = open ? count_args(p) : 0;
    int nums = count_nums(p, &name, word, argc, piped != NULL);
    Exprs args = {0};
    parse_nums(p, expr, nums, &first);
    if (word->pattern == P_PAD)
        parse_mode(p, expr, &args, &first);
    if (info->fun) {
        separate(p, &first);
        expr->fun = parse_fun(p, word->pattern, word->dims);
    }
    int rest = argc - nums - (word->pattern == P_PAD) - (info->fun > 0);
    for (int i = 0; i < rest && !p->failed; i++) {
        separate(p, &first);
        VEC_PUSH(p->ir->arena, &args, parse_expr(p));
    }
    if (open)
        expect(p, TOK_RPAREN, " or `,` after the argument");
    if (piped)
        VEC_PUSH(p->ir->arena, &args, piped);
    expr->arg = args.at;
    expr->narg = args.len;
    return expr;
}

// name(arguments), or the name alone if an argument is piped into it.
static Expr *parse_application(Parser *p, Token name, Expr *piped)
{
    Span start = piped ? piped->span : name.span;
    PatternWord word;
    Callee callee = {.span = name.span};
    const Global *global = find_global(p, name.text);
    if (name_is_pattern(name.text, &word))
        return spanned(p, parse_pattern(p, name, &word, piped), start);
    int want = 0;
    if (find_local(p, name.text) || (global && global->size))
        fail(p, name.span, "P009", "`%s` is a value and cannot be called", name.text);
    else if (name_is_op(name.text, &callee.op))
        want = op_info[callee.op].args;
    else if (global && !global->broken)
        callee.callee = global->function, want = global->function->nparam;
    else if (global)
        p->failed = true;
    else
        fail_unknown(p, &name, false);
    if (callee.callee && callee.callee->is_def && p->in_fun)
        fail(p, name.span, "P016", "a fun can call only funs, and `%s` is a def",
             name.text);
    if (p->failed)
        return dummy(p);
    Exprs args = parse_args(p, piped);
    if (want != args.len)
        fail(p, name.span, "P008", "`%s` takes %d argument%s, not %d", name.text, want,
             want == 1 ? "" : "s", args.len);
    return spanned(p, call(p, &callee, &args), start);
}

// Expressions -------------------------------------------------------------------------

static Expr *parse_literal(Parser *p)
{
    Token token = take(p);
    Expr *expr = dummy(p);
    expr->boolean = token.kind == TOK_TRUE || token.kind == TOK_FALSE;
    expr->floating = token.kind == TOK_FLOAT;
    expr->number = expr->floating  ? token.number
                   : expr->boolean ? token.kind == TOK_TRUE
                                   : (double)token.integer;
    expr->span = token.span;
    return expr;
}

static Expr *parse_parens(Parser *p)
{
    Span start = take(p).span;
    Exprs item = {0};
    do
        VEC_PUSH(p->ir->arena, &item, parse_expr(p));
    while (accept_token(p, TOK_COMMA));
    expect(p, TOK_RPAREN, " or `,`");
    Expr *expr = item.len == 1 ? item.at[0] : expr_tuple(p->ir, item.at, item.len);
    return spanned(p, expr, start);
}

// size(N - 1): a size used as an int value, as one number instead of operations.
static Expr *parse_num(Parser *p)
{
    Span start = take(p).span;
    expect(p, TOK_LPAREN, " and a size");
    Expr *expr = expr_num(p->ir, parse_size(p));
    expect(p, TOK_RPAREN, "");
    return spanned(p, expr, start);
}

static Expr *parse_primary(Parser *p)
{
    switch ((int)look(p)->kind) {
    case TOK_INT:
    case TOK_FLOAT:
    case TOK_TRUE:
    case TOK_FALSE: return parse_literal(p);
    case TOK_LPAREN: return parse_parens(p);
    case TOK_SIZE: return parse_num(p);
    case TOK_NAME: return parse_name(p);
    case TOK_LAMBDA:
        fail(p, look(p)->span, "P013", "`\\` can only begin the function of a pattern");
        return dummy(p);
    case TOK_LET:
    case TOK_IF:
        fail(p, look(p)->span, "P005", "`%s` needs parentheses around it here",
             token_text[look(p)->kind]);
        return dummy(p);
    }
    fail_expected(p, "an expression", "");
    return dummy(p);
}

static Expr *parse_postfix(Parser *p)
{
    Span start = look(p)->span;
    Expr *expr = parse_primary(p);
    for (;;) {
        if (accept_token(p, TOK_LBRACKET)) {
            expr = expr_at(p->ir, expr, parse_expr(p));
            expect(p, TOK_RBRACKET, " after the index");
        } else if (accept_token(p, TOK_DOT)) {
            Token index = expect(p, TOK_INT, ", the number of a component, after the dot");
            if (index.integer > 255)
                fail(p, index.span, "P003", "no tuple has that many components");
            expr = expr_get(p->ir, expr, (int)index.integer);
        } else {
            return expr;
        }
        spanned(p, expr, start);
    }
}

static Expr *parse_unary(Parser *p);

// A minus before a number belongs to the number.
static Expr *parse_prefix(Parser *p, Op op)
{
    Expr *expr = dummy(p);
    TokenKind next = look_after(p);
    Span start = take(p).span;
    if (op == OP_NEG && (next == TOK_INT || next == TOK_FLOAT)) {
        expr = parse_literal(p);
        expr->number = -expr->number;
    } else {
        if (enter(p))
            expr = parse_unary(p);
        if (op == OP_NEG && expr->kind == E_LITERAL && isinf(expr->number))
            expr->number = -expr->number;
        else
            expr = expr_op(p->ir, op, expr, NULL, NULL);
        leave(p);
    }
    return spanned(p, expr, start);
}

static Expr *parse_unary(Parser *p)
{
    TokenKind kind = look(p)->kind;
    if (kind == TOK_MINUS || kind == TOK_NOT || kind == TOK_BITNOT)
        return parse_prefix(p, kind == TOK_NOT     ? OP_NOT
                               : kind == TOK_MINUS ? OP_NEG
                                                   : OP_BITNOT);
    return parse_postfix(p);
}

// The level of an infix operation, 0 for any other token.
static int infix_level(TokenKind kind, Op *op)
{
    if (kind <= TOK_FALSE || !name_is_infix(token_text[kind], op))
        return 0;
    return op_level(*op);
}

static Expr *parse_infix(Parser *p, int least)
{
    Span start = look(p)->span;
    Expr *expr = parse_unary(p);
    int before = 0;
    for (;;) {
        Op op;
        int level = infix_level(look(p)->kind, &op);
        if (!level || level < least)
            return expr;
        if (level == LEVEL_COMPARE && before == LEVEL_COMPARE)
            fail(p, look(p)->span, "P014",
                 "comparisons do not chain; write a < b && b < c");
        take(p);
        expr = expr_op(p->ir, op, expr, parse_infix(p, level + 1), NULL);
        spanned(p, expr, start);
        before = level;
    }
}

static Expr *parse_pipe(Parser *p)
{
    Expr *expr = parse_infix(p, LEVEL_OR);
    while (accept_token(p, TOK_PIPE)) {
        if (look(p)->kind != TOK_NAME) {
            fail_expected(p, "a pattern or a function to pipe into", "");
            return expr;
        }
        expr = parse_application(p, take(p), expr);
    }
    return expr;
}

typedef struct {
    Param *param;
    Expr *value;
    Span start;
} Let;

static Let parse_name_and_value(Parser *p)
{
    Let let = {.start = take(p).span};
    Token name = take_new_name(p, "the name of a value");
    expect(p, TOK_ASSIGN, " and the value");
    let.value = parse_expr(p);
    expect(p, TOK_IN, " and the expression that uses the name");
    let.param = bind(p, name);
    return let;
}

// Lets in a row are no recursion: a script of calls is one of a thousand of them.
static Expr *parse_let(Parser *p)
{
    VEC(Let) lets = {0};
    int outer = p->local.len;
    while (look(p)->kind == TOK_LET && !p->failed)
        VEC_PUSH(p->ir->arena, &lets, parse_name_and_value(p));
    Expr *expr = parse_expr(p);
    p->local.len = outer;
    for (int i = lets.len - 1; i >= 0; i--)
        expr = spanned(p, expr_let(p->ir, lets.at[i].param, lets.at[i].value, expr),
                       lets.at[i].start);
    return expr;
}

static Expr *parse_if(Parser *p)
{
    Span start = take(p).span;
    Expr *condition = parse_expr(p);
    expect(p, TOK_THEN, " after the condition");
    Expr *yes = parse_expr(p);
    expect(p, TOK_ELSE, " and the other value");
    Expr *no = parse_expr(p);
    return spanned(p, expr_op(p->ir, OP_SELECT, condition, yes, no), start);
}

Expr *parse_expr(Parser *p)
{
    Expr *expr;
    if (!enter(p))
        expr = dummy(p);
    else if (look(p)->kind == TOK_LET)
        expr = parse_let(p);
    else if (look(p)->kind == TOK_IF)
        expr = parse_if(p);
    else
        expr = parse_pipe(p);
    leave(p);
    return expr;
}
