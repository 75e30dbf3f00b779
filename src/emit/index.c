// SPDX-License-Identifier: Apache-2.0
//
// Symbolic integers as C: sums with the widest strides first and the constant last, `/` and
// `%` only where the dividend is known not to be negative (C rounds toward zero, we round
// down), conditions with the negative terms moved to the other side: `x <= 4094`.

#include "emit/print.h"

#include <stdlib.h>

const char *index_type(const Printer *p)
{
    return p->kernel && p->kernel->wide ? "long" : "int";
}

static bool is_size(const Printer *p, const Arith *var)
{
    return p->kernel && list_has(p->kernel->sizes.at, p->kernel->sizes.len, var);
}

// In a wide kernel, thread and loop variables are long; sizes and literals are int.
static bool is_long(const Printer *p, const Arith *a)
{
    if (a->kind == A_VAR)
        return !is_size(p, a);
    for (int i = 0; i < a->n; i++)
        if (is_long(p, a->term[i].arg))
            return true;
    return false;
}

static bool wide(const Printer *p)
{
    return p->kernel && p->kernel->wide;
}

// An operand of a helper or built-in, which must be as wide as the others.
static void put_operand(Printer *p, const Arith *a)
{
    if (!wide(p) || is_long(p, a))
        put_index(p, a, PREC_ANY);
    else if (a->kind == A_CONST)
        put(p, "%lldL", (long long)a->value);
    else {
        put(p, "(long)");
        put_index(p, a, PREC_UNARY);
    }
}

// Calls a function of the target itself (own), or one of our helpers.
static void put_pair(Printer *p, bool own, const char *fun, const Arith *a)
{
    put(p, own ? "%s(" : wide(p) ? "fw_%sl(" : "fw_%s(", fun);
    put_operand(p, a->term[0].arg);
    put(p, ", ");
    put_operand(p, a->term[1].arg);
    put(p, ")");
}

static void put_quotient(Printer *p, char op, const Arith *a, Prec prec)
{
    if (!arith_nonneg(p->ctx, a->term[0].arg)) {
        put_pair(p, false, op == '/' ? "div" : "mod", a);
        return;
    }
    put(p, prec > PREC_PRODUCT ? "(" : "");
    put_index(p, a->term[0].arg, PREC_POSTFIX);
    put(p, "%c", op);
    put_index(p, a->term[1].arg, PREC_POSTFIX);
    put(p, prec > PREC_PRODUCT ? ")" : "");
}

// coef is positive. In a wide kernel a factor that is long comes first.
static void put_product(Printer *p, int64_t coef, const Arith *a, Prec prec)
{
    int first = 0;
    while (wide(p) && first < a->n && !is_long(p, a->term[first].arg))
        first++;
    put(p, prec > PREC_PRODUCT ? "(" : "");
    if (wide(p) && first == a->n)
        put(p, "(long)");
    first = first == a->n ? 0 : first;
    if (coef != 1 && !wide(p))
        put(p, "%lld*", (long long)coef);
    put_index(p, a->term[first].arg, PREC_UNARY);
    if (coef != 1 && wide(p))
        put(p, "*%lld", (long long)coef);
    for (int i = 0; i < a->n; i++) {
        if (i == first)
            continue;
        put(p, "*");
        put_index(p, a->term[i].arg, PREC_UNARY);
    }
    put(p, prec > PREC_PRODUCT ? ")" : "");
}

static void put_term(Printer *p, int64_t coef, const Arith *a, Prec prec)
{
    if (coef == 1) {
        put_index(p, a, prec);
    } else if (a->kind == A_PROD) {
        put_product(p, coef, a, prec);
    } else {
        put(p, "%s%lld*", prec > PREC_PRODUCT ? "(" : "", (long long)coef);
        put_index(p, a, PREC_UNARY);
        put(p, prec > PREC_PRODUCT ? ")" : "");
    }
}

// Sums --------------------------------------------------------------------------------

// Symbolic strides before constant ones, wide ones before narrow ones.
static int compare_term(const void *a, const void *b)
{
    const ArithTerm *x = a, *y = b;
    bool px = x->arg->kind == A_PROD, py = y->arg->kind == A_PROD;
    if (px != py)
        return px ? -1 : 1;
    int64_t cx = x->coef < 0 ? -x->coef : x->coef, cy = y->coef < 0 ? -y->coef : y->coef;
    if (cx != cy)
        return cx > cy ? -1 : 1;
    return x->arg->id < y->arg->id ? -1 : x->arg->id > y->arg->id;
}

// The sum of the terms and the constant c; sorts the terms.
static void put_terms(Printer *p, ArithTerm *term, int n, int64_t c)
{
    qsort(term, (size_t)n, sizeof *term, compare_term);
    bool started = false;
    for (int i = 0; i < n; i++) {
        if (term[i].coef < 0)
            continue;
        put(p, started ? " + " : "");
        put_term(p, term[i].coef, term[i].arg, PREC_SUM);
        started = true;
    }
    if (!started && c > 0) {
        put(p, "%lld", (long long)c);
        started = true;
        c = 0;
    }
    for (int i = 0; i < n; i++) {
        if (term[i].coef > 0)
            continue;
        put(p, started ? " - " : "-");
        put_term(p, -term[i].coef, term[i].arg, started ? PREC_PRODUCT : PREC_UNARY);
        started = true;
    }
    if (started && c)
        put(p, " %c %lld", c < 0 ? '-' : '+', (long long)(c < 0 ? -c : c));
    else if (!started)
        put(p, "%lld", (long long)c);
}

static ArithTerm *terms_of(Printer *p, const Arith *a)
{
    return COPY_ARRAY(p->arena, a->term, a->n);
}

static void put_sum(Printer *p, const Arith *a, Prec prec)
{
    if (a->n == 1 && !a->value && a->term[0].coef > 0) {
        put_term(p, a->term[0].coef, a->term[0].arg, prec);
        return;
    }
    put(p, prec > PREC_SUM ? "(" : "");
    put_terms(p, terms_of(p, a), a->n, a->value);
    put(p, prec > PREC_SUM ? ")" : "");
}

void put_index(Printer *p, const Arith *a, Prec prec)
{
    switch (a->kind) {
    case A_CONST:
        if (a->value == INT32_MAX && p->target->largest)
            put(p, "%s", p->target->largest);
        else if (a->value == INT32_MIN)
            put(p, LEAST_INT);
        else
            put(p, a->value < 0 && prec > PREC_SUM ? "(%lld)" : "%lld",
                (long long)a->value);
        return;
    case A_VAR: put_name(p, a->name); return;
    case A_SUM: put_sum(p, a, prec); return;
    case A_PROD: put_product(p, 1, a, prec); return;
    case A_DIV: put_quotient(p, '/', a, prec); return;
    case A_MOD: put_quotient(p, '%', a, prec); return;
    case A_MIN: put_pair(p, has_builtins(p), "min", a); return;
    case A_MAX: put_pair(p, has_builtins(p), "max", a); return;
    }
    BUG("integer of kind %d", a->kind);
}

// Conditions --------------------------------------------------------------------------

// a >= 0, as a comparison of two sums without negative terms.
static void put_cond(Printer *p, const Arith *a)
{
    ArithTerm one = {1, a}, *term = a->kind == A_SUM ? terms_of(p, a) : &one;
    int n = a->kind == A_SUM ? a->n : 1, npos = 0;
    int64_t c = a->kind == A_SUM ? a->value : 0;
    ArithTerm *pos = NEW_ARRAY(p->arena, ArithTerm, n),
              *neg = NEW_ARRAY(p->arena, ArithTerm, n);
    for (int i = 0; i < n; i++) {
        if (term[i].coef > 0)
            pos[npos++] = term[i];
        else
            neg[i - npos] = (ArithTerm){-term[i].coef, term[i].arg};
    }
    int nneg = n - npos;
    if (!nneg) {
        put_terms(p, pos, npos, 0);
        put(p, " >= %lld", (long long)-c);
        return;
    }
    bool strict = npos && c == -1;
    put_terms(p, neg, nneg, npos && c < 0 && !strict ? -c : 0);
    put(p, strict ? " < " : " <= ");
    put_terms(p, pos, npos, npos ? MAX(c, 0) : c);
}

void put_conds(Printer *p, const Arith *const *cond, int n, Prec prec)
{
    int64_t value;
    bool paren = prec > (n == 1 ? PREC_ORDER : PREC_AND) && n > 0;
    put(p, paren ? "(" : "");
    for (int i = 0; i < n; i++) {
        put(p, i ? " && " : "");
        if (arith_is_const(cond[i], &value))
            put(p, value >= 0 ? "true" : "false");
        else
            put_cond(p, cond[i]);
    }
    put(p, n ? "" : "true");
    put(p, paren ? ")" : "");
}
