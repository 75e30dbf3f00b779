// SPDX-License-Identifier: Apache-2.0
//
// Polynomials over monomials: sums, products, taking a factor out, and putting
// quotients and remainders together again.
//
// Every constant is checked; what overflows sets the context's flag and goes on with an
// arbitrary value.
#include "arith/internal.h"

#include <stdlib.h>

int64_t checked_add(ArithCtx *c, int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    c->overflow = true;
    return 0;
}

int64_t checked_mul(ArithCtx *c, int64_t a, int64_t b)
{
    int64_t product;
    if (!__builtin_mul_overflow(a, b, &product))
        return product;
    c->overflow = true;
    return 0;
}

int64_t mul_or(int64_t a, int64_t b, int64_t otherwise)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? otherwise : product;
}

bool pair_of(ArithKind kind, int64_t x, int64_t y, int64_t *value)
{
    if (kind == A_MIN || kind == A_MAX) {
        *value = kind == A_MIN ? MIN(x, y) : MAX(x, y);
        return true;
    }
    if (y < 1)
        return false;
    *value = kind == A_DIV ? floor_div(x, y) : floor_mod(x, y);
    return true;
}

// INT64_MIN has no positive counterpart: 1 is always a right, if weak, answer.
int64_t gcd64(int64_t a, int64_t b)
{
    if (a == INT64_MIN || b == INT64_MIN)
        return 1;
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

// Monomials -------------------------------------------------------------------------

const ArithTerm *mono_factors(const Arith *mono, int *n)
{
    *n = mono->kind == A_PROD ? mono->n : 1;
    return mono->kind == A_PROD ? mono->term : &mono->self;
}

const Arith *mono_mul(ArithCtx *c, const Arith *a, const Arith *b)
{
    int na, nb, n = 0, i = 0, j = 0;
    const ArithTerm *fa = mono_factors(a, &na), *fb = mono_factors(b, &nb);
    ArithTerm *f = NEW_RAW(c->scratch, ArithTerm, na + nb);
    while (i < na || j < nb)
        f[n++] = j == nb || (i < na && fa[i].arg->id <= fb[j].arg->id) ? fa[i++] : fb[j++];
    return node_make(c, A_PROD, 0, n, f);
}

bool mono_div(ArithCtx *c, const Arith *a, const Arith *b, const Arith **out)
{
    *out = NULL;
    if (a == b)
        return true;
    if (a->kind != A_PROD)
        return false;
    int nb, n = 0, j = 0;
    const ArithTerm *fb = mono_factors(b, &nb);
    if (nb > a->n)
        return false;
    ArithTerm *f = NEW_RAW(c->scratch, ArithTerm, a->n);
    for (int i = 0; i < a->n; i++) {
        if (j < nb && a->term[i].arg == fb[j].arg)
            j++;
        else
            f[n++] = a->term[i];
    }
    if (j < nb)
        return false;
    *out = n == 1 ? f[0].arg : node_make(c, A_PROD, 0, n, f);
    return true;
}

bool mono_has(const Arith *mono, const Arith *atom)
{
    if (mono == atom)
        return true;
    if (mono->kind == A_PROD)
        for (int i = 0; i < mono->n; i++)
            if (mono->term[i].arg == atom)
                return true;
    return false;
}

// Building --------------------------------------------------------------------------

Build build_new(ArithCtx *c, int cap)
{
    return (Build){.t = NEW_RAW(c->scratch, ArithTerm, cap)};
}

void build_push(ArithCtx *c, Build *b, int64_t coef, const Arith *mono)
{
    if (mono)
        b->t[b->n++] = (ArithTerm){coef, mono};
    else
        b->value = checked_add(c, b->value, coef);
}

static int by_id(const void *pa, const void *pb)
{
    const ArithTerm *a = pa, *b = pb;
    return (a->arg->id > b->arg->id) - (a->arg->id < b->arg->id);
}

static void sort_terms(ArithTerm *t, int n)
{
    if (n > 24) {
        qsort(t, (size_t)n, sizeof *t, by_id);
        return;
    }
    for (int i = 1; i < n; i++) {
        ArithTerm moving = t[i];
        int j = i;
        for (; j > 0 && t[j - 1].arg->id > moving.arg->id; j--)
            t[j] = t[j - 1];
        t[j] = moving;
    }
}

Poly build_done(ArithCtx *c, Build *b)
{
    int n = 0;
    sort_terms(b->t, b->n);
    for (int i = 0; i < b->n; i++) {
        if (n && b->t[n - 1].arg == b->t[i].arg)
            b->t[n - 1].coef = checked_add(c, b->t[n - 1].coef, b->t[i].coef);
        else if (n && b->t[n - 1].coef == 0)
            b->t[n - 1] = b->t[i];
        else
            b->t[n++] = b->t[i];
    }
    if (n && b->t[n - 1].coef == 0)
        n--;
    return (Poly){b->value, n, b->t};
}

// Arithmetic ------------------------------------------------------------------------

Poly poly_add(ArithCtx *c, Poly a, Poly b, int64_t k)
{
    ArithTerm *t = NEW_RAW(c->scratch, ArithTerm, a.n + b.n);
    int n = 0, i = 0, j = 0;
    while (i < a.n || j < b.n) {
        if (j == b.n || (i < a.n && a.t[i].arg->id < b.t[j].arg->id)) {
            t[n++] = a.t[i++];
            continue;
        }
        int64_t coef = checked_mul(c, b.t[j].coef, k);
        if (i < a.n && a.t[i].arg == b.t[j].arg)
            coef = checked_add(c, coef, a.t[i++].coef);
        if (coef)
            t[n++] = (ArithTerm){coef, b.t[j].arg};
        j++;
    }
    return (Poly){checked_add(c, a.value, checked_mul(c, b.value, k)), n, t};
}

Poly poly_addc(ArithCtx *c, Poly a, int64_t value)
{
    a.value = checked_add(c, a.value, value);
    return a;
}

Poly poly_scale(ArithCtx *c, Poly a, int64_t k)
{
    return k == 1 ? a : poly_add(c, poly_const(0), a, k);
}

Poly poly_mul(ArithCtx *c, Poly a, Poly b)
{
    if (a.n == 0)
        return poly_scale(c, b, a.value);
    if (b.n == 0)
        return poly_scale(c, a, b.value);
    Build p = build_new(c, (a.n + 1) * (b.n + 1));
    p.value = checked_mul(c, a.value, b.value);
    for (int i = 0; b.value && i < a.n; i++)
        build_push(c, &p, checked_mul(c, a.t[i].coef, b.value), a.t[i].arg);
    for (int j = 0; a.value && j < b.n; j++)
        build_push(c, &p, checked_mul(c, b.t[j].coef, a.value), b.t[j].arg);
    for (int i = 0; i < a.n; i++)
        for (int j = 0; j < b.n; j++)
            build_push(c, &p, checked_mul(c, a.t[i].coef, b.t[j].coef),
                       mono_mul(c, a.t[i].arg, b.t[j].arg));
    return build_done(c, &p);
}

int poly_size(Poly a)
{
    return a.n + (a.value != 0);
}

void poly_isolate(ArithCtx *c, Poly p, const Arith *x, Poly *a, Poly *b)
{
    Build with = build_new(c, p.n), without = build_new(c, p.n);
    without.value = p.value;
    for (int i = 0; i < p.n; i++) {
        const Arith *rest;
        if (!mono_div(c, p.t[i].arg, x, &rest))
            build_push(c, &without, p.t[i].coef, p.t[i].arg);
        else
            build_push(c, &with, p.t[i].coef, rest);
    }
    *a = build_done(c, &with);
    *b = build_done(c, &without);
}

const Arith *poly_top(Poly p, uint32_t limit)
{
    const Arith *top = NULL;
    for (int i = 0; i < p.n; i++) {
        int n;
        const ArithTerm *f = mono_factors(p.t[i].arg, &n);
        while (n && f[n - 1].arg->id >= limit)
            n--;
        if (n && (!top || f[n - 1].arg->id > top->id))
            top = f[n - 1].arg;
    }
    return top;
}

// Putting together ------------------------------------------------------------------

static bool has_terms(Poly p, Poly part)
{
    int i = 0;
    for (int j = 0; j < part.n; j++) {
        while (i < p.n && p.t[i].arg->id < part.t[j].arg->id)
            i++;
        if (i == p.n || p.t[i].arg != part.t[j].arg || p.t[i].coef != part.t[j].coef)
            return false;
    }
    return part.n > 0;
}

// Term t holds the factor m = e mod d; around is what multiplies it. Where p also has
// around*d*(e div d), both become around*e; where it has around*d*((e div d) mod k),
// both become around*(e mod d*k).
static bool join_at(ArithCtx *c, Poly *p, ArithTerm t, const Arith *m)
{
    const Arith *e = m->term[0].arg, *d = m->term[1].arg, *rest;
    const Arith *quotient = arith_div(c, e, d);
    mono_div(c, t.arg, m, &rest);
    Poly around = rest ? poly_of(rest) : poly_const(1);
    around = poly_scale(c, around, t.coef);
    Poly around_d = poly_mul(c, around, poly_of(d));
    Poly both = poly_mul(c, around_d, poly_of(quotient));
    Poly remainder = poly_mul(c, around, poly_of(m));
    if (has_terms(*p, both)) {
        Poly left = poly_add(c, poly_add(c, *p, both, -1), remainder, -1);
        *p = poly_add(c, left, poly_mul(c, around, poly_of(e)), 1);
        return true;
    }
    for (int i = 0; i < p->n; i++) {
        const Arith *other = poly_top((Poly){0, 1, &p->t[i]}, UINT32_MAX);
        if (other->kind != A_MOD || other == m || other->term[0].arg != quotient)
            continue;
        both = poly_mul(c, around_d, poly_of(other));
        if (!has_terms(*p, both))
            continue;
        const Arith *whole = arith_mod(c, e, arith_mul(c, d, other->term[1].arg));
        Poly left = poly_add(c, poly_add(c, *p, both, -1), remainder, -1);
        *p = poly_add(c, left, poly_mul(c, around, poly_of(whole)), 1);
        return true;
    }
    return false;
}

static bool join_once(ArithCtx *c, Poly *p)
{
    for (int i = 0; i < p->n; i++) {
        if (!(info_of(c, p->t[i].arg)->flags & HAS_MOD))
            continue;
        int n;
        const ArithTerm *f = mono_factors(p->t[i].arg, &n);
        for (int k = 0; k < n; k++)
            if (f[k].arg->kind == A_MOD && join_at(c, p, p->t[i], f[k].arg))
                return true;
    }
    return false;
}

// k*d*(e div d) where d is known to divide e.
static bool exact_once(ArithCtx *c, Poly *p)
{
    for (int i = 0; i < p->n; i++) {
        const Arith *a = p->t[i].arg;
        if (!(info_of(c, a)->flags & HAS_EXACT))
            continue;
        int64_t d = a->term[1].arg->value;
        if (p->t[i].coef % d)
            continue;
        int64_t k = p->t[i].coef / d;
        Poly left = poly_add(c, *p, (Poly){0, 1, &p->t[i]}, -1);
        *p = poly_add(c, left, poly_of(a->term[0].arg), k);
        return true;
    }
    return false;
}

Poly poly_fold(ArithCtx *c, Poly p)
{
    for (bool again = true; again;) {
        unsigned flags = 0;
        int split = 0;
        for (int i = 0; i < p.n; i++) {
            unsigned f = info_of(c, p.t[i].arg)->flags;
            flags |= f;
            split += f != 0;
        }
        again = ((flags & HAS_EXACT) && exact_once(c, &p)) ||
                ((flags & HAS_MOD) && split > 1 && join_once(c, &p));
    }
    return p;
}

const Arith *poly_node(ArithCtx *c, Poly p)
{
    p = poly_fold(c, p);
    if (p.n == 0)
        return arith_const(c, p.value);
    if (p.n == 1 && p.value == 0 && p.t[0].coef == 1)
        return p.t[0].arg;
    return node_make(c, A_SUM, p.value, p.n, p.t);
}
