// SPDX-License-Identifier: Apache-2.0
//
// Values: array data as structure-of-arrays planes of doubles, and rounding to the
// scalar types. A vector is width neighbouring numbers of one plane.
#include "ir/ir.h"

#include <math.h>

// To binary16, ties to even; beyond 65504 and a half step: infinite.
static double round_half(double x)
{
    if (x == 0 || !isfinite(x))
        return x;
    int exponent = MAX(ilogb(x), -14);
    double step = ldexp(1, exponent - 10), r = nearbyint(x / step) * step;
    return fabs(r) > 65504 ? copysign(INFINITY, x) : r;
}

static double round_int(double x)
{
    if (isnan(x))
        return 0;
    return trunc(fmax(-2147483648.0, fmin(2147483647.0, x))) + 0.0;
}

double scalar_round(Scalar scalar, double x)
{
    switch (scalar) {
    case S_BOOL: return x != 0;
    case S_INT: return round_int(x);
    case S_HALF: return round_half(x);
    case S_FLOAT: return (double)(float)x;
    case S_DOUBLE: return x;
    }
    BUG("scalar %d", (int)scalar);
}

static int count_planes(const Type *type)
{
    int n = 0;
    switch (type->kind) {
    case T_SCALAR:
    case T_VECTOR: return 1;
    case T_ARRAY: return count_planes(type->elem);
    case T_TUPLE:
        for (int i = 0; i < type->n; i++)
            n += count_planes(type->item[i]);
        return n;
    }
    BUG("type kind %d", (int)type->kind);
}

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
    int n = count_planes(type);
    Value *value = NEW(arena, Value);
    value->type = type;
    value->plane = NEW_ARRAY(arena, double *, n);
    value->count = NEW_ARRAY(arena, int64_t, n);
    value->scalar = NEW_ARRAY(arena, Scalar, n);
    add_planes(arena, value, type, 1);
    return value;
}

static double random_scalar(Rng *rng, Scalar scalar)
{
    switch (scalar) {
    case S_BOOL: return (double)rng_below(rng, 2);
    case S_INT: return (double)rng_below(rng, 8);
    // Below 1.5 also after rounding to the type.
    case S_HALF: return 0.5 + (double)rng_below(rng, 1024) / 1024;
    case S_FLOAT: return 0.5 + (double)rng_below(rng, 1 << 23) / (1 << 23);
    case S_DOUBLE: return 0.5 + rng_double(rng);
    }
    BUG("scalar %d", (int)scalar);
}

void scalar_random(Rng *rng, Scalar scalar, double *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = random_scalar(rng, scalar);
}

void value_random(Value *value, uint64_t seed)
{
    Rng rng;
    rng_seed(&rng, seed);
    for (int p = 0; p < value->nplane; p++)
        scalar_random(&rng, value->scalar[p], value->plane[p], value->count[p]);
}
