// SPDX-License-Identifier: Apache-2.0
//
// Values: array data as structure-of-arrays planes of doubles, and rounding to the
// scalar types. A vector is width neighbouring numbers of one plane.
#include "ir/ir.h"

#include <math.h>
#include <string.h>

enum { DOUBLE_DIGITS = 53, DOUBLE_TOP = 1023 }; // DOUBLE_TOP: the largest exponent

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// A power of two that a double holds as a number that is not subnormal.
static double power(int exponent)
{
    return of_bits((uint64_t)(exponent + DOUBLE_TOP) << (DOUBLE_DIGITS - 1));
}

// The largest exponent of a floating type of 16 bits.
static int top_exponent(Scalar scalar)
{
    return (1 << (15 - scalar_info[scalar].digits)) - 1;
}

// To a floating type of 16 bits, ties to even; beyond its largest number and a half step:
// infinite. A number so large that its last place is one step of the type rounds the sum.
static double round_narrow(Scalar scalar, double x)
{
    int digits = scalar_info[scalar].digits, top = top_exponent(scalar);
    if (x == 0 || !isfinite(x))
        return x;
    int exponent =
        MAX((int)(bits_of(x) >> (DOUBLE_DIGITS - 1) & 2047) - DOUBLE_TOP, 1 - top);
    if (exponent > top)
        return copysign(INFINITY, x);
    double large = 1.5 * power(exponent + DOUBLE_DIGITS - digits), r = (x + large) - large;
    return fabs(r) >= power(top + 1) ? copysign(INFINITY, x) : copysign(r, x);
}

// The largest of 64 bits is the largest double below it.
static double round_integer(Scalar scalar, double x)
{
    const ScalarInfo *info = &scalar_info[scalar];
    int bits = 8 * info->bytes;
    bool is_signed = info->kind == SCALAR_SIGNED;
    double top = power(bits - is_signed);
    double last = bits == 64 ? top - top / power(DOUBLE_DIGITS) : top - 1;
    if (isnan(x))
        return 0;
    return trunc(fmax(is_signed ? -top : 0, fmin(last, x))) + 0.0;
}

double scalar_round(Scalar scalar, double x)
{
    if (scalar_info[scalar].integer)
        return round_integer(scalar, x);
    return scalar == S_BOOL     ? x != 0
           : scalar == S_DOUBLE ? x
           : scalar == S_FLOAT  ? (double)(float)x
                                : round_narrow(scalar, x);
}

// Bits ---------------------------------------------------------------------------------

// The bits of a number that the type has: it moves a double's exponent and digits.
static uint64_t narrow_bits(Scalar scalar, double x)
{
    int digits = scalar_info[scalar].digits, top = top_exponent(scalar);
    uint64_t sign = signbit(x) ? 0x8000 : 0, one = (uint64_t)1 << (digits - 1);
    uint64_t endless = 0x8000 - one;
    double a = fabs(x);
    if (isnan(x))
        return sign | endless | one >> 1;
    if (isinf(x))
        return sign | endless;
    if (a < power(1 - top))
        return sign | (uint64_t)(a * power(top + digits - 2));
    uint64_t less = (uint64_t)(DOUBLE_TOP - top) << (DOUBLE_DIGITS - 1);
    return sign | (bits_of(a) - less) >> (DOUBLE_DIGITS - digits);
}

static double narrow_of_bits(Scalar scalar, uint64_t bits)
{
    int digits = scalar_info[scalar].digits, top = top_exponent(scalar);
    uint64_t sign = (bits & 0x8000) << 48, all = bits & 0x7fff;
    uint64_t fraction = all & ((1u << (digits - 1)) - 1);
    int e = (int)(all >> (digits - 1));
    uint64_t more = (uint64_t)(DOUBLE_TOP - top) << (DOUBLE_DIGITS - 1);
    double a = e == 0             ? (double)fraction * power(2 - top - digits)
               : e == 2 * top + 1 ? (fraction ? (double)NAN : (double)INFINITY)
                                  : of_bits((all << (DOUBLE_DIGITS - digits)) + more);
    return of_bits(bits_of(a) | sign);
}

uint64_t scalar_bits(Scalar scalar, double x)
{
    uint64_t wide;
    uint32_t narrow;
    float single = (float)x;
    if (scalar_info[scalar].integer)
        return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
    if (scalar == S_BOOL)
        return x != 0;
    if (scalar_info[scalar].bytes == 2)
        return narrow_bits(scalar, x);
    memcpy(&wide, &x, sizeof wide);
    memcpy(&narrow, &single, sizeof narrow);
    return scalar == S_FLOAT ? narrow : wide;
}

double scalar_of_bits(Scalar scalar, uint64_t bits)
{
    const ScalarInfo *info = &scalar_info[scalar];
    int unused = 64 - 8 * info->bytes;
    uint32_t narrow = (uint32_t)bits;
    double wide;
    float single;
    if (info->kind == SCALAR_SIGNED)
        return (double)((int64_t)(bits << unused) >> unused);
    if (info->kind == SCALAR_UNSIGNED)
        return (double)(bits << unused >> unused);
    if (scalar == S_BOOL)
        return bits != 0;
    if (info->bytes == 2)
        return narrow_of_bits(scalar, bits);
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&single, &narrow, sizeof single);
    return scalar == S_FLOAT ? (double)single : wide;
}

// Values -------------------------------------------------------------------------------

// Adds the planes of a type of which there are `count`.
static void add_planes(Arena *arena, Value *value, const Type *type, int64_t count)
{
    int64_t len = type->kind == T_VECTOR ? type->width : 1;
    switch (type->kind) {
    case T_SCALAR:
    case T_VECTOR:
        value->scalar[value->nplane] = type->scalar;
        value->count[value->nplane] = count * len;
        value->plane[value->nplane++] = NEW_ARRAY(arena, double, count *len);
        return;
    case T_ARRAY:
        if (!arith_is_const(type->len, &len) || len < 0)
            BUG("a value of unknown length");
        add_planes(arena, value, type->elem, count * len);
        return;
    case T_TUPLE:
        for (int i = 0; i < type->n; i++)
            add_planes(arena, value, type->item[i], count);
        return;
    }
}

Value *value_new(Arena *arena, const Type *type)
{
    int n = type_leaves(type);
    Value *value = NEW(arena, Value);
    value->type = type;
    value->plane = NEW_ARRAY(arena, double *, n);
    value->count = NEW_ARRAY(arena, int64_t, n);
    value->scalar = NEW_ARRAY(arena, Scalar, n);
    add_planes(arena, value, type, 1);
    return value;
}

// Floats below 1.5 also after rounding to the type.
double scalar_random(Rng *rng, Scalar scalar)
{
    const ScalarInfo *info = &scalar_info[scalar];
    if (scalar == S_DOUBLE)
        return 0.5 + rng_double(rng);
    if (!info->floating)
        return (double)rng_below(rng, scalar == S_BOOL ? 2 : INTS_USUAL);
    uint64_t steps = (uint64_t)1 << (info->digits - 1);
    return 0.5 + (double)rng_below(rng, steps) / (double)steps;
}

void value_random(Value *value, uint64_t seed)
{
    Rng rng = {0};
    for (int p = 0; p < value->nplane; p++)
        for (int64_t i = 0; i < value->count[p]; i++) {
            if (i % RANDOM_CHUNK == 0)
                rng = rng_new(random_seed(seed, p, i));
            value->plane[p][i] = scalar_random(&rng, value->scalar[p]);
        }
}
