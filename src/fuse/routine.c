// SPDX-License-Identifier: Apache-2.0
//
// Compute routines made of definitions of the language. A def maps arrays to one array; the
// threads of an instance share the leading dimensions of that, and the rest are loops. The
// expression is evaluated with indices that are symbols: layout patterns become index
// arithmetic, a reduction becomes a loop with an accumulator, and what remains is C text.
// The same walk, without its text, finds which words each thread touches and how many
// operations there are.
//
// It knows the patterns below and no other; slide and pad belong to stencils, which are not
// functions of small elements.

#include "fuse/routine.h"

#include "fuse/read.h"

#include <setjmp.h>
#include <string.h>

typedef enum {
    V_SCALAR,
    V_TUPLE,
    V_PARAM,
    V_MAP,
    V_ZIP,
    V_TRANSPOSED,
    V_SPLIT,
    V_JOINED,
    V_COMPUTED,
    V_ROW
} ValueKind;

typedef struct Env Env;
typedef struct Val Val;

struct Val {
    ValueKind kind;
    const char *text; // SCALAR
    bool atom;        // SCALAR: needs no parentheses
    const Arith *num; // SCALAR: the same as an index; NULL if it is none. PARAM: first word
    int param;        // PARAM
    const Type *type; // PARAM
    int n, dims;      // TUPLE, ZIP: items; SPLIT: row length; MAP, ZIP: dimensions
    const Val *const *item;
    const Val *src;
    const Expr *fun;
    const Env *env;
};

struct Env {
    const Param *param;
    const Val *val;
    const Env *outer;
};

typedef struct {
    const Arith *var;
    int64_t len;
} Loop;

typedef struct {
    const Script *script;
    ArithCtx *ctx;
    Arena *arena;
    const Elementary *function;
    const Impl *impl;
    const Held *held; // NULL: only find what is touched
    uint64_t *bit[ARITY_MAX + 1];
    double flops;
    const Arith *lane;
    Loop loop[16];
    int nloop, serial, indent;
    const char *unroll;
    const Arith *word,
        *own; // by strips: the word at hand, and its place among the thread's
    PutTree *tree;
    void *user;
    Buf *out;
    Diags *diags;
    jmp_buf refuse;
} Maker;

FW_NORETURN static void refuse(Maker *m, Span span, const char *what)
{
    if (!m->diags)
        BUG("a routine that was accepted is refused: %s", what);
    diag_error(m->diags, span, "F016", "no compute routine can be made of %s", what);
    longjmp(m->refuse, 1);
}

// A size that has a value is a constant by now.
static int64_t constant(Maker *m, const Arith *a, Span span)
{
    int64_t value = 0;
    const Program *program = m->function->program;
    if (arith_is_const(a, &value))
        return value;
    for (int i = 0; i < program->sizes.len; i++)
        if (arith_mentions(a, program->sizes.at[i].arith))
            refuse(m, span,
                   arena_printf(m->arena,
                                "the size `%s`: it has no value, and the lengths of the "
                                "parameters do not say it",
                                program->sizes.at[i].name));
    BUG("a length that is neither a number nor made of sizes");
}

static Val *val_new(Maker *m, ValueKind kind)
{
    Val *v = NEW(m->arena, Val);
    v->kind = kind;
    return v;
}

static const Val *scalar(Maker *m, const char *text, bool atom)
{
    Val *v = val_new(m, V_SCALAR);
    v->text = text;
    v->atom = atom;
    return v;
}

static void put_line(Maker *m, const char *format, ...) FW_PRINTF(2, 3);
static void put_line(Maker *m, const char *format, ...)
{
    if (!m->held)
        return;
    va_list args;
    buf_printf(m->out, "%*s", 4 * m->indent, "");
    va_start(args, format);
    buf_vprintf(m->out, format, args);
    va_end(args);
    buf_putc(m->out, '\n');
}

static const char *arith_text(Maker *m, const Arith *a)
{
    Buf text;
    buf_init(&text);
    arith_print(&text, a);
    return buf_keep(&text, m->arena);
}

// An int that is known as an index.
static const Val *number(Maker *m, const Arith *value)
{
    Val *v = val_new(m, V_SCALAR);
    bool atom = value->kind == A_VAR || (value->kind == A_CONST && value->value >= 0);
    v->num = value;
    v->text = arena_printf(m->arena, atom ? "%s" : "(%s)", arith_text(m, value));
    v->atom = true;
    return v;
}

// Words touched -----------------------------------------------------------------------

typedef struct {
    const Maker *m;
    int lane;
    int64_t at[16];
} Moment;

static bool look_up(void *user, const Arith *var, int64_t *value)
{
    const Moment *now = user;
    if (var == now->m->lane) {
        *value = now->lane;
        return true;
    }
    for (int i = 0; i < now->m->nloop; i++)
        if (var == now->m->loop[i].var) {
            *value = now->at[i];
            return true;
        }
    return false;
}

static bool step(const Maker *m, Moment *now)
{
    for (int i = m->nloop - 1; i >= 0; i--) {
        if (++now->at[i] < m->loop[i].len)
            return true;
        now->at[i] = 0;
    }
    return false;
}

// By strips a thread touches its own words, and scalars.
static bool is_own(Maker *m, int param, const Arith *word)
{
    int64_t apart;
    return m->function->words[param] == 1 ||
           (m->word && arith_is_const(arith_sub(m->ctx, word, m->word), &apart) &&
            apart == 0);
}

static void touch(Maker *m, int param, const Arith *word, Span span)
{
    int words = m->function->words[param], row = map_row_words(words);
    if (m->impl->strip) {
        if (!is_own(m, param, word))
            refuse(m, span, "an index that is another thread's");
        return;
    }
    for (int lane = 0; lane < m->impl->lanes; lane++) {
        Moment now = {.m = m, .lane = lane};
        do {
            int64_t w;
            if (!arith_eval(word, look_up, &now, &w) || w < 0 || w >= words)
                refuse(m, span, "an index that is not known or out of bounds");
            m->bit[param][lane * row + w / 64] |= (uint64_t)1 << w % 64;
        } while (step(m, &now));
    }
}

// A word of a parameter or of the result, as it is written.
static const char *place(Maker *m, int param, const Arith *word, Span span)
{
    if (!m->held) {
        touch(m, param, word, span);
        return "0";
    }
    const Held *held = &m->held[param];
    int own = m->function->words[param] / m->impl->lanes;
    if (held->kind == HELD_SCALAR)
        return held->name;
    if (held->kind == HELD_ARRAY && m->impl->strip)
        word = m->own;
    else if (held->kind == HELD_ARRAY)
        word = arith_sub(m->ctx, word, arith_mulc(m->ctx, m->lane, own));
    return arena_printf(m->arena, "%s[%s]", held->name, arith_text(m, word));
}

// Loops -------------------------------------------------------------------------------

static const Arith *loop_begin(Maker *m, int64_t len, Span span)
{
    static const char letter[] = "rcklmpqstuvwxyz";
    if (m->nloop == COUNTOF(m->loop) - 1)
        refuse(m, span, "loops nested so deeply");
    const char *name = arena_printf(m->arena, "%c", letter[m->nloop]);
    const Arith *var =
        arith_var(m->ctx, name, arith_const(m->ctx, 0), arith_const(m->ctx, len - 1));
    m->loop[m->nloop++] = (Loop){var, len};
    if (m->held && m->unroll[0])
        put_line(m, "%s", m->unroll);
    put_line(m, "for (int %s = 0; %s < %lld; %s++) {", name, name, (long long)len, name);
    m->indent++;
    return var;
}

static void loop_end(Maker *m)
{
    m->nloop--;
    m->indent--;
    put_line(m, "}");
}

int strip_own(const Impl *impl, int words)
{
    int all = impl->lanes * impl->strip;
    return (words + all - 1) / all * impl->strip;
}

// A thread's words of an array of so many, one after another. Returns the word.
static const Arith *strips_begin(Maker *m, int64_t words, Span span)
{
    int own = strip_own(m->impl, (int)words), strip = m->impl->strip;
    int lanes = m->impl->lanes;
    const Arith *k = loop_begin(m, own / strip, span);
    const Arith *j = strip > 1 ? loop_begin(m, strip, span) : arith_const(m->ctx, 0);
    m->own = arith_add(m->ctx, arith_mulc(m->ctx, k, strip), j);
    m->word = arith_add(m->ctx, arith_mulc(m->ctx, k, (int64_t)strip * lanes),
                        arith_add(m->ctx, arith_mulc(m->ctx, m->lane, strip), j));
    if ((int64_t)own * lanes > words) {
        put_line(m, "if (%s < %lld) {", arith_text(m, m->word), (long long)words);
        m->indent++;
    }
    return m->word;
}

static void strips_end(Maker *m, int64_t words)
{
    if ((int64_t)strip_own(m->impl, (int)words) * m->impl->lanes > words) {
        m->indent--;
        put_line(m, "}");
    }
    loop_end(m);
    if (m->impl->strip > 1)
        loop_end(m);
    m->word = NULL;
}

// What one operation here costs an instance.
static double times(const Maker *m)
{
    double n = m->impl->lanes;
    for (int i = 0; i < m->nloop; i++)
        n *= (double)m->loop[i].len;
    return n;
}

// Values ------------------------------------------------------------------------------

static const Val *eval(Maker *m, const Expr *e, const Env *env);

static const Val *apply(Maker *m, const Expr *fun, const Env *env, const Val *const *arg)
{
    for (int i = 0; i < fun->nparam; i++) {
        Env *inner = NEW(m->arena, Env);
        *inner = (Env){fun->params[i], arg[i], env};
        env = inner;
    }
    return eval(m, fun->arg[0], env);
}

static const Val *param_at(Maker *m, int param, const Type *type, const Arith *word,
                           Span span)
{
    if (type->kind == T_SCALAR)
        return scalar(m, place(m, param, word, span), true);
    Val *v = val_new(m, V_PARAM);
    v->param = param;
    v->type = type;
    v->num = word;
    return v;
}

static const Val *at(Maker *m, const Val *array, const Arith *i, Span span);

static const Val *zipped_at(Maker *m, const Val *zip, const Arith *i, Span span)
{
    const Val **item = NEW_ARRAY(m->arena, const Val *, zip->n);
    for (int k = 0; k < zip->n; k++)
        item[k] = at(m, zip->item[k], i, span);
    Val *v = val_new(m, zip->dims > 1 ? V_ZIP : V_TUPLE);
    v->n = zip->n;
    v->dims = zip->dims - 1;
    v->item = item;
    return v;
}

static const Val *mapped_at(Maker *m, const Val *map, const Arith *i, Span span)
{
    const Val *src = at(m, map->src, i, span);
    if (map->dims == 1)
        return apply(m, map->fun, map->env, &src);
    Val *v = val_new(m, V_MAP);
    *v = *map;
    v->dims--;
    v->src = src;
    return v;
}

static const Val *computed_at(Maker *m, const Val *array, const Arith *i)
{
    const Val *arg = number(m, i);
    return apply(m, array->fun, array->env, &arg);
}

// Element i of an array.
static const Val *at(Maker *m, const Val *array, const Arith *i, Span span)
{
    const Val *src = array->src;
    Val *v;
    switch (array->kind) {
    case V_PARAM: {
        const Type *elem = array->type->elem;
        const Arith *word =
            arith_add(m->ctx, array->num, arith_mulc(m->ctx, i, type_words(elem)));
        return param_at(m, array->param, elem, word, span);
    }
    case V_MAP: return mapped_at(m, array, i, span);
    case V_ZIP: return zipped_at(m, array, i, span);
    case V_TRANSPOSED: // row i of the transposed: element j is element (j, i)
    case V_SPLIT:      // row i: element j is element n * i + j
        v = val_new(m, V_ROW);
        v->src = array;
        v->num = i;
        return v;
    case V_ROW:
        if (src->kind == V_TRANSPOSED)
            return at(m, at(m, src->src, i, span), array->num, span);
        return at(m, src->src, arith_add(m->ctx, arith_mulc(m->ctx, array->num, src->n), i),
                  span);
    case V_JOINED:
        src = at(m, src, arith_divc(m->ctx, i, array->n), span);
        return at(m, src, arith_mod(m->ctx, i, arith_const(m->ctx, array->n)), span);
    case V_COMPUTED: return computed_at(m, array, i);
    case V_SCALAR:
    case V_TUPLE: break;
    }
    BUG("an index into what is no array");
}

// Operations --------------------------------------------------------------------------

static const char *closed(Maker *m, const Val *v)
{
    return v->atom ? v->text : arena_printf(m->arena, "(%s)", v->text);
}

static bool is_int(const Expr *e)
{
    return e->type && e->type->kind == T_SCALAR && e->type->scalar == S_INT;
}

// C rounds toward zero: the same as rounding down where nothing is negative.
static const Arith *quotient(Maker *m, Op op, const Arith *a, const Arith *b)
{
    if (!arith_nonneg(m->ctx, a) || !arith_lt(m->ctx, arith_const(m->ctx, 0), b))
        return NULL;
    return op == OP_DIV ? arith_div(m->ctx, a, b) : arith_mod(m->ctx, a, b);
}

static const Arith *lesser(Maker *m, const Arith *a, const Arith *b)
{
    return arith_le(m->ctx, a, b) ? a : arith_le(m->ctx, b, a) ? b : NULL;
}

// Ints made of sizes and of indices are indices again, if an int holds them; NULL: none.
static const Arith *index_of(Maker *m, const Expr *e, const Val *const *v)
{
    const Arith *a = v[0]->num, *b = v[e->narg - 1]->num, *made = NULL;
    int64_t lo, hi;
    if (!is_int(e) || !a || !b)
        return NULL;
    if (e->op == OP_ADD)
        made = arith_add(m->ctx, a, b);
    else if (e->op == OP_SUB)
        made = arith_sub(m->ctx, a, b);
    else if (e->op == OP_NEG)
        made = arith_mulc(m->ctx, a, -1);
    else if (e->op == OP_MUL)
        made = arith_mul(m->ctx, a, b);
    else if (e->op == OP_DIV || e->op == OP_MOD)
        made = quotient(m, e->op, a, b);
    else if (e->op == OP_MINIMUM)
        made = lesser(m, a, b);
    else if (e->op == OP_MAXIMUM)
        made = (made = lesser(m, a, b)) == a ? b : made ? a : NULL;
    else if (e->op == OP_INT)
        made = a;
    if (!made)
        return NULL;
    arith_range(m->ctx, made, &lo, &hi);
    return lo >= INT32_MIN && hi <= INT32_MAX ? made : NULL;
}

static const Val *eval_op(Maker *m, const Expr *e, const Env *env)
{
    const char *arg[3] = {"", "", ""}, *text;
    bool call = op_info[e->op].form == FORM_CALL && e->op != OP_SELECT &&
                (!is_int(e) || e->op == OP_INT);
    const Val *v[3];
    for (int i = 0; i < e->narg; i++)
        v[i] = eval(m, e->arg[i], env);
    const Arith *index = index_of(m, e, v);
    if (index)
        return number(m, index);
    // Sums of products need no parentheses.
    bool product = e->op == OP_ADD;
    for (int i = 0; i < e->narg; i++) {
        bool bare = call || (product && e->arg[i]->kind == E_OP && e->arg[i]->op == OP_MUL);
        arg[i] = bare ? v[i]->text : closed(m, v[i]);
        if (is_int(e->arg[i]) && call && !is_int(e) && e->op != OP_FLOAT)
            arg[i] = arena_printf(m->arena, "(float)%s", closed(m, v[i]));
    }
    if (op_info[e->op].kind != OPK_FREE)
        m->flops += times(m);
    if (!(text = operation_text(e->op, is_int(e), arg, m->arena)))
        refuse(m, e->span,
               arena_printf(m->arena, "the operation `%s`", op_info[e->op].text));
    return scalar(m, text, call);
}

static const Val *eval_literal(Maker *m, const Expr *e)
{
    Buf text;
    buf_init(&text);
    Val *v = val_new(m, V_SCALAR);
    if (e->boolean) {
        buf_puts(&text, e->number != 0 ? "1" : "0");
    } else if (is_int(e)) {
        return number(m, arith_const(m->ctx, (int64_t)e->number));
    } else {
        buf_printf(&text, "%.9g", e->number);
        if (!strpbrk(text.text, ".en"))
            buf_puts(&text, ".0");
        buf_putc(&text, 'f');
    }
    v->text = arena_strdup(m->arena, text.text);
    v->atom = text.text[0] != '-';
    buf_release(&text);
    return v;
}

static const Val *bound(Maker *m, const Expr *e, const Env *env)
{
    for (; env; env = env->outer)
        if (env->param == e->param)
            return env->val;
    refuse(m, e->span, "a name that is not bound");
}

// A value that is used more than once gets a name, if it is a float.
static const Val *named(Maker *m, const Expr *e, const Env *env)
{
    const Val *v = eval(m, e, env);
    if (v->kind != V_SCALAR || !e->type || !type_is_float(e->type))
        return v;
    const char *name = arena_printf(m->arena, "t%d", m->serial++);
    put_line(m, "const float %s = %s;", name, v->text);
    return scalar(m, name, true);
}

static const Val *eval_let(Maker *m, const Expr *e, const Env *env)
{
    Env *inner = NEW(m->arena, Env);
    *inner = (Env){e->param, named(m, e->arg[0], env), env};
    return eval(m, e->arg[1], inner);
}

static const Val *eval_call(Maker *m, const Expr *e, const Env *env)
{
    const Function *f = e->callee;
    const Env *inner = NULL;
    if (!f->body)
        refuse(m, e->span, "a function that is C text");
    for (int i = 0; i < e->narg; i++) {
        Env *next = NEW(m->arena, Env);
        *next = (Env){f->params[i], named(m, e->arg[i], env), inner};
        inner = next;
    }
    return eval(m, f->body, inner);
}

// Patterns ----------------------------------------------------------------------------

static int64_t length(Maker *m, const Expr *array)
{
    if (!array->type || array->type->kind != T_ARRAY)
        refuse(m, array->span, "an array of unknown length");
    return constant(m, array->type->len, array->span);
}

// How a reduction's parts are put together; 0: they cannot be.
static char join_of(const Expr *e)
{
    static const struct {
        Op op;
        char join;
    } known[] = {{OP_ADD, '+'}, {OP_MINIMUM, '<'}, {OP_MAXIMUM, '>'}};
    const Expr *fun = e->fun, *body = fun->arg[0];
    bool zero = e->arg[0]->kind == E_LITERAL && e->arg[0]->number == 0;
    if (fun->kind != E_LAMBDA || body->kind != E_OP)
        return 0;
    for (int i = 0; i < COUNTOF(known); i++)
        if (body->op == known[i].op && (zero || known[i].op != OP_ADD) &&
            body->arg[0]->kind == E_PARAM && body->arg[0]->param == fun->params[0] &&
            !expr_mentions(body->arg[1], fun->params[0]))
            return known[i].join;
    return 0;
}

// All threads of the instance reduce their own words, and then what they have.
static const Val *reduce_strips(Maker *m, const Expr *e, const Env *env)
{
    const Expr *array = e->arg[e->narg - 1];
    int64_t len = length(m, array);
    char join = join_of(e);
    if (!join || m->nloop)
        refuse(m, e->span, "a reduction whose parts cannot be put together");
    const Val *start = eval(m, e->arg[0], env), *src = eval(m, array, env);
    const char *name = arena_printf(m->arena, "s%d", m->serial++);
    put_line(m, "float %s = %s;", name, start->text);
    const Val *arg[2] = {scalar(m, name, true)};
    arg[1] = at(m, src, strips_begin(m, len, e->span), e->span);
    put_line(m, "%s = %s;", name, apply(m, e->fun, env, arg)->text);
    strips_end(m, len);
    if (m->held)
        m->tree(m->user, name, join, m->indent);
    return arg[0];
}

static const Val *eval_reduce(Maker *m, const Expr *e, const Env *env)
{
    if (m->impl->strip && e->type && e->type->kind == T_SCALAR &&
        e->type->scalar == S_FLOAT)
        return reduce_strips(m, e, env);
    const Expr *array = e->arg[e->narg - 1];
    int64_t len = length(m, array);
    if (!e->type || e->type->kind != T_SCALAR || e->type->scalar != S_FLOAT)
        refuse(m, e->span, "a reduction to what is not a float");
    const Val *start = eval(m, e->arg[0], env), *src = eval(m, array, env);
    const char *name = arena_printf(m->arena, "s%d", m->serial++);
    put_line(m, "float %s = %s;", name, start->text);
    m->flops -= times(m); // the first element is only added to the neutral one
    const Arith *var = loop_begin(m, len, e->span);
    const Val *arg[2] = {scalar(m, name, true), at(m, src, var, e->span)};
    const Val *sum = apply(m, e->fun, env, arg);
    put_line(m, "%s = %s;", name, sum->text);
    loop_end(m);
    return arg[0];
}

// What a pattern's value is; V_SCALAR: nothing here. Stencils, permutations, loops of
// threads and address spaces are not for functions of small elements.
static const ValueKind value_of[PATTERNS] = {
    [P_MAP] = V_MAP,     [P_ZIP] = V_ZIP,     [P_TRANSPOSE] = V_TRANSPOSED,
    [P_SPLIT] = V_SPLIT, [P_JOIN] = V_JOINED, [P_ARRAY] = V_COMPUTED,
};

// A zip's arrays, or a tuple's components.
static const Val *eval_items(Maker *m, const Expr *e, ValueKind kind, const Env *env)
{
    const Val **item = NEW_ARRAY(m->arena, const Val *, e->narg);
    for (int i = 0; i < e->narg; i++)
        item[i] = eval(m, e->arg[i], env);
    Val *v = val_new(m, kind);
    v->n = e->narg;
    v->dims = e->dims;
    v->item = item;
    return v;
}

static const Val *eval_pattern(Maker *m, const Expr *e, const Env *env)
{
    ValueKind kind = value_of[e->pattern];
    if (e->pattern == P_REDUCE)
        return eval_reduce(m, e, env);
    if (kind == V_ZIP)
        return eval_items(m, e, V_ZIP, env);
    if (kind == V_SCALAR || (kind != V_MAP && e->dims > 1))
        refuse(m, e->span,
               arena_printf(m->arena, "the pattern `%s`", pattern_info[e->pattern].text));
    Val *v = val_new(m, kind);
    if (kind == V_SPLIT)
        v->n = (int)constant(m, e->num[0], e->span);
    if (kind == V_JOINED)
        v->n = (int)constant(m, e->arg[0]->type->elem->len, e->span);
    v->dims = e->dims;
    v->fun = e->fun;
    v->env = env;
    if (e->narg)
        v->src = eval(m, e->arg[e->narg - 1], env);
    return v;
}

static const Val *eval(Maker *m, const Expr *e, const Env *env)
{
    switch (e->kind) {
    case E_LITERAL: return eval_literal(m, e);
    case E_PARAM: return bound(m, e, env);
    case E_NUM: return number(m, arith_const(m->ctx, constant(m, e->num[0], e->span)));
    case E_OP: return eval_op(m, e, env);
    case E_CALL: return eval_call(m, e, env);
    case E_LET: return eval_let(m, e, env);
    case E_TUPLE: return eval_items(m, e, V_TUPLE, env);
    case E_GET: {
        const Val *tuple = eval(m, e->arg[0], env);
        if (tuple->kind != V_TUPLE)
            refuse(m, e->span, "a component of an array of tuples");
        return tuple->item[e->index];
    }
    case E_AT: {
        const Val *array = eval(m, e->arg[0], env), *i = eval(m, e->arg[1], env);
        if (!i->num)
            refuse(m, e->span, "an index that is computed");
        return at(m, array, i->num, e->span);
    }
    case E_PATTERN: return eval_pattern(m, e, env);
    case E_LAMBDA: break;
    }
    refuse(m, e->span, "a function that is not applied");
}

// The whole routine -------------------------------------------------------------------

// Index d of the result: of the threads, as long as they last; then a loop.
static void run_over(Maker *m, const Val *v, const Type *type, int64_t lanes,
                     const Arith *word)
{
    Span span = m->function->span;
    if (type->kind == T_SCALAR) {
        put_line(m, "%s = %s;", place(m, m->function->nparam, word, span), v->text);
        return;
    }
    int64_t len = type->len->value;
    const Arith *i;
    if (m->impl->strip) {
        i = strips_begin(m, len, span);
        run_over(m, at(m, v, i, span), type->elem, 1, i);
        strips_end(m, len);
        return;
    }
    bool by_lane = lanes > 1;
    if (by_lane) {
        i = arith_divc(m->ctx, m->lane, lanes / len);
        if (lanes != m->impl->lanes)
            i = arith_mod(m->ctx, i, arith_const(m->ctx, len));
    } else {
        i = loop_begin(m, len, span);
    }
    const Arith *next =
        arith_add(m->ctx, word, arith_mulc(m->ctx, i, type_words(type->elem)));
    run_over(m, at(m, v, i, span), type->elem, by_lane ? lanes / len : 1, next);
    if (!by_lane)
        loop_end(m);
}

static void make(Maker *m)
{
    const Function *def = m->function->def;
    const Env *env = NULL;
    const Arith *zero = arith_const(m->ctx, 0);
    m->lane = m->impl->lanes == 1 ? zero
                                  : arith_var(m->ctx, "lane", zero,
                                              arith_const(m->ctx, m->impl->lanes - 1));
    for (int i = 0; i < def->nparam; i++) {
        Val *v = val_new(m, V_PARAM);
        v->param = i;
        v->type = def->params[i]->type;
        v->num = arith_const(m->ctx, 0);
        Env *inner = NEW(m->arena, Env);
        *inner = (Env){def->params[i], v, env};
        // A scalar is read where it is used, once.
        if (v->type->kind == T_SCALAR)
            inner->val = param_at(m, i, v->type, v->num, def->span);
        env = inner;
    }
    const Type *type = m->function->type[m->function->nparam];
    run_over(m, eval(m, def->body, env), type, m->impl->lanes, arith_const(m->ctx, 0));
}

static bool find_maps(Script *script, Elementary *f, int i, Diags *diags)
{
    Impl *impl = &f->impl[i];
    Maker m = {.script = script,
               .ctx = script->ir->arith,
               .arena = script->arena,
               .function = f,
               .impl = impl,
               .unroll = "",
               .diags = diags};
    for (int p = 0; p <= f->nparam && !impl->strip; p++) {
        m.bit[p] =
            NEW_ARRAY(script->arena, uint64_t, impl->lanes * map_row_words(f->words[p]));
        impl->map[p] = (WordMap){impl->lanes, f->words[p], m.bit[p]};
    }
    if (setjmp(m.refuse))
        return false;
    make(&m);
    if (!impl->strip)
        f->flops = m.flops;
    impl->is_static = true;
    return true;
}

// Words of the arrays that a function takes and makes, if they are all one long array each
// and equally long; else 0.
static int strip_words(const Elementary *f)
{
    int words = 0;
    for (int p = 0; p <= f->nparam; p++) {
        const Type *t = f->type[p];
        bool flat = t->kind == T_ARRAY && t->elem->kind == T_SCALAR;
        if (t->kind == T_SCALAR)
            continue;
        if (!flat || (words && words != f->words[p]))
            return 0;
        words = f->words[p];
    }
    return words;
}

// STRIPS_LEAST: a warp has two words a thread. OWN_MOST: words of one array that a thread
// keeps in registers; with four arrays of them it has half of an NVIDIA thread's 255.
enum { STRIPS_LEAST = 64, WARP = 32, OWN_LEAST = 4, OWN_MOST = 32 };

void routine_strips(Script *script, Elementary *f)
{
    int words = strip_words(f), strip = words % 4 == 0 ? 4 : 1;
    for (int lanes = WARP; words >= STRIPS_LEAST && lanes <= THREADS_MAX; lanes *= 2) {
        Impl impl = {.lanes = lanes, .strip = strip};
        int own = strip_own(&impl, words);
        Diags unsaid;
        if (own > OWN_MOST || (own < OWN_LEAST && lanes > WARP) || f->nimpl == IMPLS_MAX)
            continue;
        diags_init(&unsaid, script->arena);
        f->impl[f->nimpl++] = impl;
        if (f->def && !find_maps(script, f, f->nimpl - 1, &unsaid)) {
            f->nimpl--;
            return;
        }
    }
}

bool routine_implementations(Script *script, Elementary *f, Diags *diags)
{
    int64_t lanes = 1;
    const Type *type = f->type[f->nparam];
    do {
        f->impl[f->nimpl++].lanes = (int)lanes;
        if (!find_maps(script, f, f->nimpl - 1, diags))
            return false;
        if (type->kind == T_ARRAY) {
            lanes *= type->len->value;
            type = type->elem;
        } else {
            type = NULL;
        }
    } while (type && lanes <= THREADS_MAX && f->nimpl < IMPLS_MAX);
    routine_strips(script, f);
    return true;
}

void routine_emit(const Script *script, const Elementary *f, int impl, const Held *held,
                  const char *unroll, int indent, PutTree *tree, void *user, Buf *out)
{
    ArithMark mark = arith_mark(script->ir->arith);
    ArenaMark arena = arena_mark(script->arena);
    Maker m = {.script = script,
               .ctx = script->ir->arith,
               .arena = script->arena,
               .function = f,
               .impl = &f->impl[impl],
               .held = held,
               .unroll = unroll,
               .indent = indent,
               .tree = tree,
               .user = user,
               .out = out};
    make(&m);
    arena_reset(script->arena, arena);
    arith_release(script->ir->arith, mark);
}
