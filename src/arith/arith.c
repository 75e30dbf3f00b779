// SPDX-License-Identifier: Apache-2.0
//
// The context, interning, and the constructors of constants, variables, sums and
// products.
//
// Method: hash-consing in a chained table, newest node first, so that a release takes
// nodes off the heads of their chains in reverse order of creation. Ranges and
// multiples are worked out once, when a node is made; they never depend on facts.
#include "arith/internal.h"

#include <stdlib.h>
#include <string.h>

ArithCtx *arith_ctx_new(void)
{
    ArithCtx *c = xcalloc(1, sizeof *c);
    c->arena = arena_new();
    c->scratch = arena_new();
    sample_reset(c);
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
    free(c->bucket);
    free(c->var);
    free(c->fact);
    free(c);
}

ArithMark arith_mark(const ArithCtx *c)
{
    return (ArithMark){arena_mark(c->arena), c->n_nodes, c->n_facts};
}

void arith_release(ArithCtx *c, ArithMark mark)
{
    while (c->n_nodes > mark.nodes) {
        const NodeInfo *last = &c->info[--c->n_nodes];
        if (last->node->kind != A_VAR)
            c->bucket[last->hash & (c->n_buckets - 1)] = last->next;
    }
    while (c->n_vars && c->var[c->n_vars - 1].node->id >= mark.nodes)
        c->n_vars--;
    int kept = 0;
    while (kept < MIN(mark.facts, c->n_facts) && c->fact[kept]->id < mark.nodes)
        kept++;
    arith_facts_reset(c, kept);
    arena_reset(c->arena, mark.arena);
}

// Interning -------------------------------------------------------------------------

static uint64_t hash_node(ArithKind kind, int64_t value, int n, const ArithTerm *t)
{
    uint64_t h = hash_mix((uint64_t)kind, (uint64_t)value);
    for (int i = 0; i < n; i++)
        h = hash_mix(h ^ (uint64_t)t[i].coef, t[i].arg->id);
    return h;
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
    info.flags = flags_of(c, a);
    sample_node(c, a, &info);
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

const Arith *arith_const(ArithCtx *c, int64_t value)
{
    return node_make(c, A_CONST, value, 0, NULL);
}

static const Arith *new_var(ArithCtx *c, const char *name, const Arith *lo, const Arith *hi,
                            int64_t multiple, bool size)
{
    Arith *a = alloc_node(c, A_VAR, 0);
    a->name = arena_strdup(c->arena, name);
    a->lo = lo;
    a->hi = hi;
    a->multiple = multiple;
    if (c->n_vars == c->cap_vars) {
        c->cap_vars = c->cap_vars ? 2 * c->cap_vars : 16;
        c->var = xrealloc(c->var, (size_t)c->cap_vars * sizeof *c->var);
    }
    const Arith *var = add_node(c, a, 0);
    c->var[c->n_vars++] = (Variable){var, size};
    return var;
}

const Arith *arith_var(ArithCtx *c, const char *name, const Arith *lo, const Arith *hi)
{
    return arith_var_multiple(c, name, lo, hi, 1);
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

const Arith *arith_size(ArithCtx *c, const char *name)
{
    for (int i = 0; i < c->n_vars; i++)
        if (c->var[i].size && strcmp(c->var[i].node->name, name) == 0)
            return c->var[i].node;
    const Arith *lo = arith_const(c, 1);
    return new_var(c, name, lo, arith_const(c, INT32_MAX), 1, true);
}

// Sums and products -----------------------------------------------------------------

static const Arith *add_scaled(ArithCtx *c, const Arith *a, const Arith *b, int64_t k)
{
    ArenaMark mark = arena_mark(c->scratch);
    const Arith *sum = poly_node(c, poly_add(c, poly_of(c, a), poly_of(c, b), k));
    arena_reset(c->scratch, mark);
    return sum;
}

const Arith *arith_add(ArithCtx *c, const Arith *a, const Arith *b)
{
    return add_scaled(c, a, b, 1);
}

const Arith *arith_sub(ArithCtx *c, const Arith *a, const Arith *b)
{
    return add_scaled(c, a, b, -1);
}

const Arith *arith_mul(ArithCtx *c, const Arith *a, const Arith *b)
{
    ArenaMark mark = arena_mark(c->scratch);
    const Arith *prod = poly_node(c, poly_mul(c, poly_of(c, a), poly_of(c, b)));
    arena_reset(c->scratch, mark);
    return prod;
}

const Arith *arith_addc(ArithCtx *c, const Arith *a, int64_t value)
{
    ArenaMark mark = arena_mark(c->scratch);
    const Arith *sum = poly_node(c, poly_addc(c, poly_of(c, a), value));
    arena_reset(c->scratch, mark);
    return sum;
}

const Arith *arith_mulc(ArithCtx *c, const Arith *a, int64_t k)
{
    ArenaMark mark = arena_mark(c->scratch);
    const Arith *prod = poly_node(c, poly_scale(c, poly_of(c, a), k));
    arena_reset(c->scratch, mark);
    return prod;
}

// Facts and small questions ---------------------------------------------------------

void arith_assume(ArithCtx *c, const Arith *a)
{
    if (c->n_facts == c->cap_facts) {
        c->cap_facts = c->cap_facts ? 2 * c->cap_facts : 8;
        c->fact = xrealloc(c->fact, (size_t)c->cap_facts * sizeof *c->fact);
    }
    c->fact[c->n_facts++] = a;
    sample_assume(c, a);
}

int arith_facts(const ArithCtx *c)
{
    return c->n_facts;
}

void arith_facts_reset(ArithCtx *c, int count)
{
    if (count >= c->n_facts)
        return;
    c->n_facts = count;
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
