// SPDX-License-Identifier: Apache-2.0
//
// Printing, parsing and evaluating. Parentheses are the fewest that read back as the
// same node; positive terms come first, so that a sum rarely begins with a minus.
//
//   sum     = product { ("+" | "-") product }
//   product = unary { ("*" | "/" | "%") unary }
//   unary   = "-" unary | number | name | ("min" | "max") "(" sum "," sum ")" | "(" sum ")"
#include "arith/internal.h"

#include <ctype.h>
#include <string.h>

// Printing --------------------------------------------------------------------------

// How tightly the place binds: anything, a product's first operand, a later operand.
typedef enum { PLACE_SUM, PLACE_FIRST, PLACE_LATER } Place;

static void print(Buf *out, const Arith *a, Place place);

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

// coef*mono without the sign; first: nothing stands before it that could take its head.
static void print_term(Buf *out, ArithTerm t, Place place)
{
    if (magnitude(t.coef) != 1) {
        buf_printf(out, "%llu*", (unsigned long long)magnitude(t.coef));
        place = PLACE_LATER;
    }
    if (t.arg->kind != A_PROD) {
        print(out, t.arg, place);
        return;
    }
    for (int i = 0; i < t.arg->n; i++) {
        if (i)
            buf_putc(out, '*');
        print(out, t.arg->term[i].arg, i ? PLACE_LATER : place);
    }
}

static void print_signed(Buf *out, ArithTerm t, bool first)
{
    if (t.coef == INT64_MIN) { // its magnitude alone would not read back
        buf_printf(out, "%s-", first ? "" : " + ");
        print_term(out, t, PLACE_LATER);
        return;
    }
    if (first) {
        if (t.coef < 0)
            buf_putc(out, '-');
        print_term(out, t, t.coef < 0 ? PLACE_LATER : PLACE_FIRST);
        return;
    }
    buf_puts(out, t.coef < 0 ? " - " : " + ");
    print_term(out, t, PLACE_FIRST);
}

static void print_sum(Buf *out, const Arith *a)
{
    bool first = true;
    for (int negative = 0; negative < 2; negative++) {
        for (int i = 0; i < a->n; i++) {
            if ((a->term[i].coef < 0) != (negative == 1))
                continue;
            print_signed(out, a->term[i], first);
            first = false;
        }
    }
    if (a->value == INT64_MIN)
        buf_printf(out, " + %lld", (long long)a->value);
    else if (a->value)
        buf_printf(out, " %c %llu", a->value < 0 ? '-' : '+',
                   (unsigned long long)magnitude(a->value));
}

static void print_pair(Buf *out, const Arith *a, const char *op)
{
    print(out, a->term[0].arg, PLACE_FIRST);
    buf_puts(out, op);
    print(out, a->term[1].arg, PLACE_LATER);
}

static void print_call(Buf *out, const Arith *a, const char *name)
{
    buf_puts(out, name);
    buf_putc(out, '(');
    print(out, a->term[0].arg, PLACE_SUM);
    buf_puts(out, ", ");
    print(out, a->term[1].arg, PLACE_SUM);
    buf_putc(out, ')');
}

static bool needs_parens(const Arith *a, Place place)
{
    bool single = a->kind == A_SUM && a->n == 1 && a->value == 0 && a->term[0].coef > 0;
    if (a->kind == A_CONST)
        return a->value < 0 && place != PLACE_SUM;
    if (a->kind == A_SUM && !single)
        return place != PLACE_SUM;
    if (single || a->kind == A_PROD || a->kind == A_DIV || a->kind == A_MOD)
        return place == PLACE_LATER;
    return false;
}

static void print_bare(Buf *out, const Arith *a)
{
    switch (a->kind) {
    case A_CONST: buf_printf(out, "%lld", (long long)a->value); return;
    case A_VAR: buf_puts(out, a->name); return;
    case A_SUM: print_sum(out, a); return;
    case A_PROD: print_term(out, (ArithTerm){1, a}, PLACE_FIRST); return;
    case A_DIV: print_pair(out, a, "/"); return;
    case A_MOD: print_pair(out, a, "%"); return;
    case A_MIN: print_call(out, a, "min"); return;
    case A_MAX: print_call(out, a, "max"); return;
    }
    BUG("kind %d", (int)a->kind);
}

static void print(Buf *out, const Arith *a, Place place)
{
    bool parens = needs_parens(a, place);
    if (parens)
        buf_putc(out, '(');
    print_bare(out, a);
    if (parens)
        buf_putc(out, ')');
}

void arith_print(Buf *out, const Arith *a)
{
    print(out, a, PLACE_SUM);
}

const char *arith_text(const Arith *a, Arena *arena)
{
    Buf text = buf_new();
    arith_print(&text, a);
    return buf_keep(&text, arena);
}

// Parsing ---------------------------------------------------------------------------

enum { MAX_DEPTH = 200 };

typedef struct {
    ArithCtx *c;
    const char *at;
    int depth;
} ArithParser;

static const Arith *parse_sum(ArithParser *p);

static bool accept(ArithParser *p, char ch)
{
    while (*p->at == ' ')
        p->at++;
    if (*p->at != ch)
        return false;
    p->at++;
    return true;
}

static const Arith *parse_number(ArithParser *p, bool negative)
{
    uint64_t value = 0, limit = (uint64_t)INT64_MAX + negative;
    for (; isdigit((unsigned char)*p->at); p->at++) {
        uint64_t digit = (uint64_t)(*p->at - '0');
        if (value > (limit - digit) / 10)
            return NULL;
        value = 10 * value + digit;
    }
    return arith_const(p->c, (int64_t)(negative ? 0 - value : value));
}

static const Arith *parse_call(ArithParser *p, bool smaller)
{
    const Arith *a = parse_sum(p);
    if (!a || !accept(p, ','))
        return NULL;
    const Arith *b = parse_sum(p);
    if (!b || !accept(p, ')'))
        return NULL;
    return smaller ? arith_min(p->c, a, b) : arith_max(p->c, a, b);
}

static const Arith *find_name(ArithCtx *c, const char *name, size_t len)
{
    for (int i = c->vars.len - 1; i >= 0; i--) {
        const Arith *var = c->vars.at[i].node;
        if (strncmp(var->name, name, len) == 0 && var->name[len] == '\0')
            return var;
    }
    return arith_size(c, arena_strndup(c->arena, name, len));
}

static const Arith *parse_name(ArithParser *p)
{
    const char *name = p->at;
    while (isalnum((unsigned char)*p->at) || *p->at == '_')
        p->at++;
    size_t len = (size_t)(p->at - name);
    bool smaller = len == 3 && strncmp(name, "min", 3) == 0;
    bool larger = len == 3 && strncmp(name, "max", 3) == 0;
    if ((smaller || larger) && accept(p, '('))
        return parse_call(p, smaller);
    return find_name(p->c, name, len);
}

static const Arith *parse_unary(ArithParser *p)
{
    if (accept(p, '-')) {
        if (isdigit((unsigned char)*p->at))
            return parse_number(p, true);
        if (++p->depth > MAX_DEPTH)
            return NULL;
        const Arith *a = parse_unary(p);
        p->depth--;
        return a ? arith_mulc(p->c, a, -1) : NULL;
    }
    if (accept(p, '(')) {
        const Arith *a = parse_sum(p);
        return a && accept(p, ')') ? a : NULL;
    }
    if (isdigit((unsigned char)*p->at))
        return parse_number(p, false);
    if (isalpha((unsigned char)*p->at) || *p->at == '_')
        return parse_name(p);
    return NULL;
}

static const Arith *parse_product(ArithParser *p)
{
    const Arith *a = parse_unary(p);
    while (a) {
        char op = accept(p, '*') ? '*' : accept(p, '/') ? '/' : accept(p, '%') ? '%' : 0;
        if (!op)
            return a;
        const Arith *b = parse_unary(p);
        if (!b)
            return NULL;
        a = op == '*'   ? arith_mul(p->c, a, b)
            : op == '/' ? arith_div(p->c, a, b)
                        : arith_mod(p->c, a, b);
    }
    return NULL;
}

static const Arith *parse_sum(ArithParser *p)
{
    if (++p->depth > MAX_DEPTH)
        return NULL;
    const Arith *a = parse_product(p);
    while (a) {
        bool plus = accept(p, '+');
        if (!plus && !accept(p, '-'))
            break;
        const Arith *b = parse_product(p);
        a = !b ? NULL : plus ? arith_add(p->c, a, b) : arith_sub(p->c, a, b);
    }
    p->depth--;
    return a;
}

const Arith *arith_parse(ArithCtx *c, const char *text)
{
    ArithParser p = {.c = c, .at = text};
    const Arith *a = parse_sum(&p);
    return a && accept(&p, '\0') ? a : NULL;
}

// Evaluating ------------------------------------------------------------------------

typedef struct {
    ArithLookup *lookup;
    void *user;
} Assignment;

static bool eval(const Arith *a, const Assignment *by, int64_t *value);

static bool eval_sum(const Arith *a, const Assignment *by, int64_t *value)
{
    int64_t x;
    *value = a->value;
    for (int i = 0; i < a->n; i++) {
        if (!eval(a->term[i].arg, by, &x) ||
            __builtin_mul_overflow(x, a->term[i].coef, &x) ||
            __builtin_add_overflow(*value, x, value))
            return false;
    }
    return true;
}

static bool eval_prod(const Arith *a, const Assignment *by, int64_t *value)
{
    int64_t x;
    *value = 1;
    for (int i = 0; i < a->n; i++)
        if (!eval(a->term[i].arg, by, &x) || __builtin_mul_overflow(*value, x, value))
            return false;
    return true;
}

static bool eval_pair(const Arith *a, const Assignment *by, int64_t *value)
{
    int64_t x, y;
    return eval(a->term[0].arg, by, &x) && eval(a->term[1].arg, by, &y) &&
           pair_of(a->kind, x, y, value);
}

static bool eval(const Arith *a, const Assignment *by, int64_t *value)
{
    switch (a->kind) {
    case A_CONST: *value = a->value; return true;
    case A_VAR: return by->lookup(by->user, a, value);
    case A_SUM: return eval_sum(a, by, value);
    case A_PROD: return eval_prod(a, by, value);
    case A_DIV:
    case A_MOD:
    case A_MIN:
    case A_MAX: return eval_pair(a, by, value);
    }
    BUG("kind %d", (int)a->kind);
}

bool arith_eval(const Arith *a, ArithLookup *lookup, void *user, int64_t *value)
{
    return eval(a, &(Assignment){lookup, user}, value);
}
