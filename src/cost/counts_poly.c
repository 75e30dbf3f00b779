// SPDX-License-Identifier: Apache-2.0
//
// Polynomials with rational coefficients over the columns of a Sum, 128 bits and checked.
// A function that returns bool returns false on overflow.

#include "cost/counts_sum.h"

#include <string.h>

static Wide wide_gcd(Wide a, Wide b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        Wide t = a % b;
        a = b;
        b = t;
    }
    return a;
}

Ratio ratio_new(Wide num, Wide den)
{
    Wide g = wide_gcd(num, den);
    g = den < 0 ? -g : g;
    return (Ratio){num / g, den / g};
}

bool ratio_mul(Ratio *a, Ratio b)
{
    Ratio x = ratio_new(a->num, b.den), y = ratio_new(b.num, a->den);
    return !__builtin_mul_overflow(x.num, y.num, &a->num) &&
           !__builtin_mul_overflow(x.den, y.den, &a->den);
}

bool ratio_add(Ratio *a, Ratio b)
{
    Wide g = wide_gcd(a->den, b.den), left, right, num, den;
    if (__builtin_mul_overflow(a->num, b.den / g, &left) ||
        __builtin_mul_overflow(b.num, a->den / g, &right) ||
        __builtin_add_overflow(left, right, &num) ||
        __builtin_mul_overflow(a->den, b.den / g, &den))
        return false;
    *a = ratio_new(num, den);
    return true;
}

bool row_scale_add(SumRow *to, const SumRow *from, int64_t factor)
{
    for (int k = 0; k <= SUM_COLS; k++) {
        int64_t scaled;
        if (__builtin_mul_overflow(from->coef[k], factor, &scaled) ||
            __builtin_add_overflow(to->coef[k], scaled, &to->coef[k]))
            return false;
    }
    return true;
}

static bool add_term(Arena *arena, CountPoly *to, const Term *term)
{
    if (term->coef.num == 0)
        return true;
    for (int i = 0; i < to->len; i++) {
        if (memcmp(to->at[i].power, term->power, SUM_COLS) != 0)
            continue;
        if (!ratio_add(&to->at[i].coef, term->coef))
            return false;
        if (to->at[i].coef.num == 0)
            to->at[i] = to->at[--to->len];
        return true;
    }
    VEC_PUSH(arena, to, *term);
    return true;
}

bool qpoly_add(Arena *arena, CountPoly *to, const CountPoly *from, Ratio factor)
{
    VEC_EACH(Term, term, from)
        if (!ratio_mul(&term.coef, factor) || !add_term(arena, to, &term))
            return false;
    return true;
}

bool qpoly_mul(Arena *arena, CountPoly *out, const CountPoly *a, const CountPoly *b)
{
    *out = (CountPoly){0};
    for (int i = 0; i < a->len; i++)
        for (int j = 0; j < b->len; j++) {
            Term term = a->at[i];
            if (!ratio_mul(&term.coef, b->at[j].coef))
                return false;
            for (int k = 0; k < SUM_COLS; k++) {
                if (term.power[k] + b->at[j].power[k] > UINT8_MAX)
                    return false;
                term.power[k] = (uint8_t)(term.power[k] + b->at[j].power[k]);
            }
            if (!add_term(arena, out, &term))
                return false;
        }
    return true;
}

void qpoly_constant(Arena *arena, CountPoly *out, Ratio value)
{
    *out = (CountPoly){0};
    Term term = {.coef = value};
    add_term(arena, out, &term);
}

bool qpoly_row(Arena *arena, CountPoly *out, const SumRow *row)
{
    *out = (CountPoly){0};
    for (int k = 0; k <= SUM_COLS; k++) {
        Term term = {.coef = {row->coef[k], 1}};
        if (k < SUM_COLS)
            term.power[k] = 1;
        if (!add_term(arena, out, &term))
            return false;
    }
    return true;
}

void qpoly_part(Arena *arena, CountPoly *out, const CountPoly *from, int column, int power)
{
    *out = (CountPoly){0};
    VEC_EACH(Term, term, from) {
        if (term.power[column] != power)
            continue;
        term.power[column] = 0;
        VEC_PUSH(arena, out, term);
    }
}

int qpoly_degree(const CountPoly *poly, int column)
{
    int degree = 0;
    for (int i = 0; i < poly->len; i++)
        degree = MAX(degree, poly->at[i].power[column]);
    return degree;
}

// sum of coef[k] * x^k.
static bool horner(Arena *arena, CountPoly *out, const CountPoly *coef, int degree,
                   const CountPoly *x)
{
    *out = coef[degree];
    for (int k = degree - 1; k >= 0; k--) {
        CountPoly next;
        if (!qpoly_mul(arena, &next, out, x) ||
            !qpoly_add(arena, &next, &coef[k], (Ratio){1, 1}))
            return false;
        *out = next;
    }
    return true;
}

enum { DEGREE_MOST = 12 };

bool qpoly_substitute(Arena *arena, CountPoly *out, const CountPoly *from, int column,
                      const CountPoly *by)
{
    CountPoly coef[DEGREE_MOST + 1];
    int degree = qpoly_degree(from, column);
    if (degree > DEGREE_MOST)
        return false;
    for (int k = 0; k <= degree; k++)
        qpoly_part(arena, &coef[k], from, column, k);
    return horner(arena, out, coef, degree, by);
}

static Ratio binomial(int n, int k)
{
    Ratio r = {1, 1};
    for (int i = 0; i < k; i++)
        ratio_mul(&r, ratio_new(n - i, i + 1));
    return r;
}

// Bernoulli numbers with B1 = +1/2.
static Ratio bernoulli(int n)
{
    Ratio b[DEGREE_MOST + 1];
    for (int m = 0; m <= n; m++) {
        Ratio sum = {0, 1};
        for (int j = 0; j < m; j++) {
            Ratio part = binomial(m + 1, j);
            ratio_mul(&part, b[j]);
            ratio_add(&sum, part);
        }
        b[m] = m ? ratio_new(-sum.num, sum.den * (m + 1)) : (Ratio){1, 1};
    }
    return n == 1 ? (Ratio){1, 2} : b[n];
}

bool qpoly_faulhaber(Arena *arena, CountPoly *out, int k, const CountPoly *x)
{
    CountPoly coef[DEGREE_MOST + 2];
    if (k >= DEGREE_MOST)
        return false;
    qpoly_constant(arena, &coef[0], (Ratio){k == 0, 1});
    for (int j = 0; j <= k; j++) {
        Ratio c = binomial(k + 1, j);
        ratio_mul(&c, bernoulli(j));
        ratio_mul(&c, (Ratio){1, k + 1});
        qpoly_constant(arena, &coef[k + 1 - j], c);
    }
    return horner(arena, out, coef, k + 1, x);
}
