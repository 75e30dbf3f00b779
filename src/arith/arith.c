// SPDX-License-Identifier: Apache-2.0
//
// The context, interning, and the constructors of constants, variables, sums and
// products.
//
// Method: hash-consing in a chained table, newest node first, so that a release takes
// nodes off the heads of their chains in reverse order of creation. Ranges and
// multiples are worked out once, when a node is made; they never depend on facts.
#include "arith/internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

ArithCtx *arith_ctx_new(void)
{
    ArithCtx *c = xcalloc(1, sizeof *c);
    c->arena = arena_new();
    c->scratch = arena_new();
    sample_reset(c);
    c->memo = xcalloc(MEMO_SLOTS, sizeof *c->memo);
    c->state = c->plain = c->states = 1;
    c->n_buckets = 256;
    c->bucket = xcalloc(c->n_buckets, sizeof *c->bucket);
    return c;
}

void arith_ctx_free(ArithCtx *c)
{
    if (!c)
        return;
    arena_free(c->arena);
    arena_free(c->scratch);
    free(c->info);
    free(c->memo);
    free(c->bucket);
    free(c->vars.at);
    free(c->facts.at);
    free(c);
}

ArithMark arith_mark(const ArithCtx *c)
{
    return (ArithMark){arena_mark(c->arena), c->n_nodes, c->facts.len};
}

void arith_release(ArithCtx *c, ArithMark mark)
{
    while (c->n_nodes > mark.nodes) {
        const NodeInfo *last = &c->info[--c->n_nodes];
        if (last->node->kind != A_VAR)
            c->bucket[last->hash & (c->n_buckets - 1)] = last->next;
    }
    while (c->vars.len && c->vars.at[c->vars.len - 1].node->id >= mark.nodes)
        c->vars.len--;
    int kept = 0;
    while (kept < MIN(mark.facts, c->facts.len) && c->facts.at[kept]->id < mark.nodes)
        kept++;
    arith_facts_reset(c, kept);
    c->plain = c->state = ++c->states;
    if (c->facts.len)
        c->state = ++c->states;
    arena_reset(c->arena, mark.arena);
}

// Interning -------------------------------------------------------------------------

static uint64_t hash_node(ArithKind kind, int64_t value, int n, const ArithTerm *t)
{
    uint64_t h = (uint64_t)value * 8 + (uint64_t)kind;
    for (int i = 0; i < n; i++)
        h = (h ^ h >> 32 ^ (uint64_t)t[i].coef << 32 ^ t[i].arg->id) * 0x9e3779b97f4a7c15u;
    return hash_mix(h, 0);
}

static bool same_node(const Arith *a, ArithKind kind, int64_t value, int n,
                      const ArithTerm *t)
{
    if (a->kind != kind || a->value != value || a->n != n)
        return false;
    for (int i = 0; i < n; i++)
        if (a->term[i].coef != t[i].coef || a->term[i].arg != t[i].arg)
            return false;
    return true;
}

// Oldest first, so that every chain stays newest first.
static void grow_buckets(ArithCtx *c)
{
    c->n_buckets *= 2;
    free(c->bucket);
    c->bucket = xcalloc(c->n_buckets, sizeof *c->bucket);
    for (uint32_t id = 0; id < c->n_nodes; id++) {
        if (c->info[id].node->kind == A_VAR)
            continue;
        uint32_t *head = &c->bucket[c->info[id].hash & (c->n_buckets - 1)];
        c->info[id].next = *head;
        *head = id + 1;
    }
}

static unsigned flags_of(const ArithCtx *c, const Arith *a)
{
    int64_t d;
    unsigned flags = 0;
    if (a->kind == A_MOD)
        return HAS_MOD;
    if (a->kind == A_DIV) {
        bool exact = arith_is_const(a->term[1].arg, &d) && d > 0 &&
                     info_of(c, a->term[0].arg)->multiple % d == 0;
        return exact ? HAS_DIV | HAS_EXACT : HAS_DIV;
    }
    if (a->kind == A_PROD)
        for (int i = 0; i < a->n; i++)
            flags |= info_of(c, a->term[i].arg)->flags & (HAS_DIV | HAS_MOD);
    return flags;
}

static int parts_of_node(const ArithCtx *c, const Arith *a)
{
    int parts = 1;
    for (int i = 0; i < a->n; i++)
        if (__builtin_add_overflow(parts, info_of(c, a->term[i].arg)->parts, &parts))
            return INT_MAX;
    return parts;
}

static const Arith *add_node(ArithCtx *c, Arith *a, uint64_t hash)
{
    if (c->n_nodes == c->cap_nodes) {
        c->cap_nodes = c->cap_nodes ? 2 * c->cap_nodes : 256;
        c->info = xrealloc(c->info, c->cap_nodes * sizeof *c->info);
    }
    a->id = c->n_nodes;
    NodeInfo info = {.node = a, .hash = hash};
    info.range = range_of_node(c, a);
    info.multiple = multiple_of_node(c, a);
    info.parts = parts_of_node(c, a);
    info.flags = flags_of(c, a);
    if (a->kind != A_VAR) {
        uint32_t *head = &c->bucket[hash & (c->n_buckets - 1)];
        info.next = *head;
        *head = a->id + 1;
    }
    c->info[c->n_nodes++] = info;
    if (c->n_nodes > c->n_buckets)
        grow_buckets(c);
    return a;
}

static Arith *alloc_node(ArithCtx *c, ArithKind kind, int n)
{
    Arith *a = arena_alloc(c->arena, sizeof *a + (size_t)n * sizeof(ArithTerm));
    a->kind = kind;
    a->multiple = 1;
    a->self = (ArithTerm){1, a};
    a->n = n;
    return a;
}

const Arith *node_make(ArithCtx *c, ArithKind kind, int64_t value, int n,
                       const ArithTerm *t)
{
    uint64_t hash = hash_node(kind, value, n, t);
    uint32_t at = c->bucket[hash & (c->n_buckets - 1)];
    for (; at; at = c->info[at - 1].next) {
        const NodeInfo *info = &c->info[at - 1];
        if (info->hash == hash && same_node(info->node, kind, value, n, t))
            return info->node;
    }
    Arith *a = alloc_node(c, kind, n);
    a->value = value;
    a->fixed = true;
    for (int i = 0; i < n; i++)
        a->fixed &= t[i].arg->fixed;
    if (n)
        memcpy(a->term, t, (size_t)n * sizeof *t);
    return add_node(c, a, hash);
}

const Arith *node_pair(ArithCtx *c, ArithKind kind, const Arith *a, const Arith *b)
{
    ArithTerm t[2] = {{1, a}, {1, b}};
    return node_make(c, kind, 0, 2, t);
}

// Constants and variables -----------------------------------------------------------

static bool is_that_const(const ArithCtx *c, uint32_t id, int64_t value)
{
    return id < c->n_nodes && c->info[id].node->kind == A_CONST &&
           c->info[id].node->value == value;
}

const Arith *arith_const(ArithCtx *c, int64_t value)
{
    if (value < 0 || value >= CONSTS)
        return node_make(c, A_CONST, value, 0, NULL);
    uint32_t *small = &c->small[value];
    if (!*small || !is_that_const(c, *small - 1, value))
        *small = node_make(c, A_CONST, value, 0, NULL)->id + 1;
    return c->info[*small - 1].node;
}

static const Arith *new_var(ArithCtx *c, const char *name, const Arith *lo, const Arith *hi,
                            int64_t multiple, bool size)
{
    Arith *a = alloc_node(c, A_VAR, 0);
    a->name = arena_strdup(c->arena, name);
    a->lo = lo;
    a->hi = hi;
    a->multiple = multiple;
    a->fixed = size;
    const Arith *var = add_node(c, a, 0);
    VEC_PUSH(NULL, &c->vars, ((Variable){var, size}));
    return var;
}

const Arith *arith_var(ArithCtx *c, const char *name, const Arith *lo, const Arith *hi)
{
    return arith_var_multiple(c, name, lo, hi, 1);
}

const Arith *arith_iter(ArithCtx *c, const char *name, const Arith *extent)
{
    const Arith *zero = arith_const(c, 0), *last = arith_addc(c, extent, -1);
    return arith_var(c, name, zero, last == zero ? arith_const(c, 1) : last);
}

const Arith *arith_var_multiple(ArithCtx *c, const char *name, const Arith *lo,
                                const Arith *hi, int64_t multiple)
{
    if (multiple < 1)
        BUG("variable %s: multiple %lld", name, (long long)multiple);
    if (lo && lo == hi && lo->kind == A_CONST)
        return lo;
    return new_var(c, name, lo, hi, multiple, false);
}

const Arith *arith_launch(ArithCtx *c, const char *name, int64_t lo, int64_t hi,
                          int64_t multiple)
{
    if (lo == hi)
        return arith_const(c, lo);
    const Arith *var =
        new_var(c, name, arith_const(c, lo), arith_const(c, hi), multiple, false);
    ((Arith *)var)->fixed = ((Arith *)var)->launch = true; // no node is made of it yet
    return var;
}

const Arith *arith_size(ArithCtx *c, const char *name)
{
    for (int i = c->vars.len - 1; i >= 0; i--) // the last one counts
        if (c->vars.at[i].size && strcmp(c->vars.at[i].node->name, name) == 0)
            return c->vars.at[i].node;
    return arith_size_within(c, name, 1, INT32_MAX, 1);
}

const Arith *arith_size_within(ArithCtx *c, const char *name, int64_t lo, int64_t hi,
                               int64_t multiple)
{
    const Arith *least = arith_const(c, lo), *most = arith_const(c, hi);
    for (int i = c->vars.len - 1; i >= 0; i--) {
        const Arith *var = c->vars.at[i].node;
        if (c->vars.at[i].size && strcmp(var->name, name) == 0 && var->lo == least &&
            var->hi == most && var->multiple == multiple)
            return var;
    }
    return new_var(c, name, least, most, multiple, true);
}

// Sums and products -----------------------------------------------------------------

static Poly combine(ArithCtx *c, MemoKind kind, Poly a, Poly b, int64_t number)
{
    switch (kind) {
    case MEMO_ADD: return poly_add(c, a, b, 1);
    case MEMO_SUB: return poly_add(c, a, b, -1);
    case MEMO_MUL: return poly_mul(c, a, b);
    case MEMO_ADDC: return poly_addc(c, a, number);
    case MEMO_MULC: return poly_scale(c, a, number);
    case MEMO_DIV:
    case MEMO_MOD:
    case MEMO_MIN:
    case MEMO_MAX:
    case MEMO_KINDS: break;
    }
    BUG("kind %d is no polynomial's", (int)kind);
}

// a + 0, a - 0, a * 1. Under facts sums may fold further than before.
static bool changes_nothing(MemoKind kind, const Arith *b)
{
    return b->kind == A_CONST && b->value == (kind == MEMO_MUL);
}

// The operation on a and b; if b is NULL, on a and the number.
static const Arith *poly_op(ArithCtx *c, MemoKind kind, const Arith *a, const Arith *b,
                            int64_t number)
{
    if (c->facts.len == 0 && (b ? changes_nothing(kind, b) : number == (kind == MEMO_MULC)))
        return a;
    MemoKey key = memo_key(c, kind, a, b ? b->id : number);
    const Arith *result = memo_find(c, key);
    if (result)
        return result;
    ArenaMark mark = arena_mark(c->scratch);
    Poly second = b ? poly_of(b) : poly_const(0);
    result = poly_node(c, combine(c, kind, poly_of(a), second, number));
    arena_reset(c->scratch, mark);
    return memo_keep(c, key, result);
}

const Arith *arith_add(ArithCtx *c, const Arith *a, const Arith *b)
{
    return poly_op(c, MEMO_ADD, a, b, 0);
}

const Arith *arith_sub(ArithCtx *c, const Arith *a, const Arith *b)
{
    return poly_op(c, MEMO_SUB, a, b, 0);
}

const Arith *arith_mul(ArithCtx *c, const Arith *a, const Arith *b)
{
    return poly_op(c, MEMO_MUL, a, b, 0);
}

const Arith *arith_addc(ArithCtx *c, const Arith *a, int64_t value)
{
    return poly_op(c, MEMO_ADDC, a, NULL, value);
}

const Arith *arith_mulc(ArithCtx *c, const Arith *a, int64_t k)
{
    return poly_op(c, MEMO_MULC, a, NULL, k);
}

// Facts and small questions ---------------------------------------------------------

void arith_assume(ArithCtx *c, const Arith *a)
{
    VEC_PUSH(NULL, &c->facts, a);
    c->state = ++c->states;
    sample_assume(c, a);
}

int arith_facts(const ArithCtx *c)
{
    return c->facts.len;
}

void arith_facts_reset(ArithCtx *c, int count)
{
    if (count >= c->facts.len)
        return;
    c->facts.len = count;
    c->state = count ? ++c->states : c->plain;
    sample_reset(c);
}

bool arith_is_const(const Arith *a, int64_t *value)
{
    if (a->kind == A_CONST && value)
        *value = a->value;
    return a->kind == A_CONST;
}

bool arith_overflowed(ArithCtx *c)
{
    bool overflow = c->overflow;
    c->overflow = false;
    return overflow;
}

int arith_parts(const ArithCtx *c, const Arith *a)
{
    return info_of(c, a)->parts;
}

static int64_t least_of(const Arith *a)
{
    return a->kind == A_CONST                                    ? a->value
           : a->kind == A_VAR && a->lo && a->lo->kind == A_CONST ? a->lo->value
                                                                 : 0;
}

int64_t arith_most(const Arith *a)
{
    if (a->kind == A_CONST)
        return a->value;
    if (a->kind == A_VAR)
        return a->hi ? arith_most(a->hi) : INT64_MAX;
    if (a->kind != A_SUM && a->kind != A_PROD)
        return INT64_MAX;
    double most = a->kind == A_SUM ? (double)a->value : 1;
    for (int i = 0; i < a->n; i++) {
        int64_t coef = a->term[i].coef, atom = arith_most(a->term[i].arg);
        if (atom == INT64_MAX && coef > 0)
            return INT64_MAX;
        double x = coef > 0 ? (double)atom : (double)least_of(a->term[i].arg);
        most = a->kind == A_SUM ? most + (double)coef * x : most * x;
    }
    return most < 0x1p53 ? (int64_t)most : INT64_MAX;
}

// A node is younger than all it mentions, so older ones need no search.
bool arith_mentions(const Arith *a, const Arith *var)
{
    if (a == var)
        return true;
    for (int i = 0; i < a->n; i++)
        if (a->term[i].arg->id >= var->id && arith_mentions(a->term[i].arg, var))
            return true;
    return false;
}
