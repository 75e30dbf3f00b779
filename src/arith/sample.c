// SPDX-License-Identifier: Apache-2.0
//
// Refutation by example: a few points at which every variable lies within its bounds.
// A node keeps its value there once it was asked for, so that a goal which is false at one
// of them is given up at once instead of being searched for a proof. Points where a fact
// does not hold are left out while the fact is held. Nothing is ever concluded to be true
// from them.
#include "arith/internal.h"

enum { SPREAD = 4095 }; // how far from one bound where the other is far or missing

// At point 0 every variable is low, at point 1 high, at the others scattered.
static int64_t offset_at(const Arith *var, int point, int64_t width)
{
    if (point < 2)
        return point == 0 ? 0 : width;
    uint64_t h = hash_mix(var->id + 1, (uint64_t)point);
    return (int64_t)(h % ((uint64_t)width + 1));
}

static const NodeInfo *sampled(const ArithCtx *c, const Arith *a);

static bool var_at(const ArithCtx *c, const Arith *a, int k, int64_t *value)
{
    const NodeInfo *lo = a->lo ? sampled(c, a->lo) : NULL;
    const NodeInfo *hi = a->hi ? sampled(c, a->hi) : NULL;
    int64_t width = SPREAD;
    if ((lo && !(lo->sampled >> k & 1)) || (hi && !(hi->sampled >> k & 1)))
        return false;
    if (lo && hi) {
        if (__builtin_sub_overflow(hi->sample[k], lo->sample[k], &width) || width < 0)
            return false;
        width = MIN(width, SPREAD);
    }
    int64_t offset = offset_at(a, k, width);
    int64_t start = lo ? lo->sample[k] : hi ? hi->sample[k] : -SPREAD / 2;
    if (!lo && hi)
        offset -= width;
    if (__builtin_add_overflow(start, offset, value))
        return false;
    int64_t beyond = floor_mod(*value, a->multiple);
    if (__builtin_sub_overflow(*value, beyond, value))
        return false;
    return (!lo || *value >= lo->sample[k]) && (!hi || *value <= hi->sample[k]);
}

static bool sum_at(const ArithCtx *c, Poly p, int k, int64_t *value)
{
    int64_t x;
    *value = p.value;
    for (int i = 0; i < p.n; i++) {
        const NodeInfo *info = sampled(c, p.t[i].arg);
        if (!(info->sampled >> k & 1) ||
            __builtin_mul_overflow(info->sample[k], p.t[i].coef, &x) ||
            __builtin_add_overflow(*value, x, value))
            return false;
    }
    return true;
}

static bool prod_at(const ArithCtx *c, const Arith *a, int k, int64_t *value)
{
    *value = 1;
    for (int i = 0; i < a->n; i++) {
        const NodeInfo *info = sampled(c, a->term[i].arg);
        if (!(info->sampled >> k & 1) ||
            __builtin_mul_overflow(info->sample[k], *value, value))
            return false;
    }
    return true;
}

static bool pair_at(const ArithCtx *c, const Arith *a, int k, int64_t *value)
{
    const NodeInfo *left = sampled(c, a->term[0].arg), *right = sampled(c, a->term[1].arg);
    return (left->sampled & right->sampled & 1u << k) &&
           pair_of(a->kind, left->sample[k], right->sample[k], value);
}

static bool node_sample(const ArithCtx *c, const Arith *a, int k, int64_t *value)
{
    switch (a->kind) {
    case A_CONST: *value = a->value; return true;
    case A_VAR: return var_at(c, a, k, value);
    case A_SUM: return sum_at(c, (Poly){a->value, a->n, a->term}, k, value);
    case A_PROD: return prod_at(c, a, k, value);
    case A_DIV:
    case A_MOD:
    case A_MIN:
    case A_MAX: return pair_at(c, a, k, value);
    }
    BUG("kind %d", (int)a->kind);
}

// Fills in a node's values when they are first asked for.
static const NodeInfo *sampled(const ArithCtx *c, const Arith *a)
{
    NodeInfo *info = &c->info[a->id];
    if (info->is_sampled)
        return info;
    info->is_sampled = true;
    for (int k = 0; k < N_SAMPLES; k++)
        if (node_sample(c, a, k, &info->sample[k]))
            info->sampled |= 1u << k;
    return info;
}

void sample_assume(ArithCtx *c, const Arith *fact)
{
    const NodeInfo *info = sampled(c, fact);
    for (int k = 0; k < N_SAMPLES; k++)
        if (!(info->sampled >> k & 1) || info->sample[k] < 0)
            c->live &= ~(1u << k);
}

void sample_reset(ArithCtx *c)
{
    c->live = (1u << N_SAMPLES) - 1;
    for (int i = 0; i < c->facts.len; i++)
        sample_assume(c, c->facts.at[i]);
}

bool sample_refutes(const ArithCtx *c, Poly p)
{
    int64_t value;
    for (int k = 0; k < N_SAMPLES; k++)
        if (c->live >> k & 1 && sum_at(c, p, k, &value) && value < 0)
            return true;
    return false;
}
