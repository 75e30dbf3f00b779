// SPDX-License-Identifier: Apache-2.0
//
// arith, inside: the context, polynomials over interned monomials, and what the files
// of this module use of one another.
//
// A Poly is a sum that is not interned: proofs and intermediate results work on them,
// so that only answers become nodes. Its terms lie in the scratch arena or in a node
// and are never written once the Poly is made.

#ifndef FW_ARITH_INTERNAL_H
#define FW_ARITH_INTERNAL_H

#include "arith/arith.h"

typedef struct {
    int64_t lo, hi; // INT64_MIN and INT64_MAX where there is none
} Range;

enum { N_SAMPLES = 6 };

typedef struct {
    const Arith *node;
    const Arith *image; // rebuilt form, valid when stamp is the context's
    uint64_t hash;
    uint32_t next; // in its bucket, as id + 1
    uint32_t stamp;
    Range range;   // without facts, so that it stays true as long as the node
    Range refined; // the same of a sum, worked out when first asked for
    bool is_refined;
    int64_t multiple;
    int parts; // of the expression written out, INT_MAX from there on
    unsigned flags;
    bool is_sampled;           // sampled and sample are worked out
    unsigned sampled;          // bit k: sample[k] is the value at point k
    int64_t sample[N_SAMPLES]; // see sample.c
} NodeInfo;

// Which atoms a term has among its factors: only sums that have these are searched.
enum { HAS_DIV = 1, HAS_MOD = 2, HAS_EXACT = 4 };

typedef struct {
    const Arith *node;
    bool size;
} Variable;

// What a constructor made of its operands while certain facts were held: a kernel that is
// written out asks for the same sums again and again.
typedef enum {
    MEMO_ADD,
    MEMO_SUB,
    MEMO_MUL,
    MEMO_ADDC,
    MEMO_MULC,
    MEMO_DIV,
    MEMO_MOD,
    MEMO_MIN,
    MEMO_MAX,
    MEMO_KINDS = 16
} MemoKind;

typedef struct {
    uint64_t when; // state of the context and kind
    const Arith *a;
    int64_t b; // a number, or that of the other operand
} MemoKey;

typedef struct {
    MemoKey key;
    const Arith *result;
} Memo;

enum { MEMO_SLOTS = 4096, CONSTS = 128 };

struct ArithCtx {
    Arena *arena, *scratch;
    NodeInfo *info; // by id
    uint32_t n_nodes, cap_nodes;
    uint32_t *bucket; // newest first, as id + 1
    uint32_t n_buckets;
    VEC(Variable) vars; // in order of creation
    VEC(const Arith *) facts;
    unsigned live; // bit k: the facts hold at point k
    bool overflow;
    int steps; // left to the proof under way
    uint32_t stamp;
    Memo *memo;             // a slot for each hash, the newest result stays
    uint64_t state, plain;  // of facts and nodes; without facts
    uint64_t states;        // how many there were
    uint32_t small[CONSTS]; // numbers of the constants from 0 up, as id + 1, if still so
};

typedef struct {
    int64_t value;
    int n;
    const ArithTerm *t; // sorted by arg->id, coefficients not 0
} Poly;

// A polynomial being collected: any order, repeats allowed.
typedef struct {
    int64_t value;
    int n;
    ArithTerm *t;
} Build;

// arith.c
const Arith *node_make(ArithCtx *c, ArithKind kind, int64_t value, int n,
                       const ArithTerm *t);
const Arith *node_pair(ArithCtx *c, ArithKind kind, const Arith *a, const Arith *b);

static inline const NodeInfo *info_of(const ArithCtx *c, const Arith *a)
{
    return &c->info[a->id];
}

static inline MemoKey memo_key(const ArithCtx *c, MemoKind kind, const Arith *a, int64_t b)
{
    return (MemoKey){c->state * MEMO_KINDS + kind, a, b};
}

static inline Memo *memo_slot(const ArithCtx *c, MemoKey key)
{
    uint64_t h = (key.when << 48 ^ (uint64_t)key.b << 24 ^ key.a->id) * 0x9e3779b97f4a7c15u;
    return &c->memo[h >> 52];
}

// NULL: not known, or not to be relied on.
static inline const Arith *memo_find(const ArithCtx *c, MemoKey key)
{
    const Memo *memo = memo_slot(c, key);
    bool same = memo->key.when == key.when && memo->key.a == key.a && memo->key.b == key.b;
    return same && !c->overflow ? memo->result : NULL;
}

static inline const Arith *memo_keep(const ArithCtx *c, MemoKey key, const Arith *result)
{
    if (!c->overflow)
        *memo_slot(c, key) = (Memo){key, result};
    return result;
}

// poly.c
int64_t checked_add(ArithCtx *c, int64_t a, int64_t b);
int64_t checked_mul(ArithCtx *c, int64_t a, int64_t b);
// A_DIV, A_MOD, A_MIN or A_MAX of two values; false: a division by less than 1.
bool pair_of(ArithKind kind, int64_t x, int64_t y, int64_t *value);
int64_t gcd64(int64_t a, int64_t b);
int64_t mul_or(int64_t a, int64_t b, int64_t otherwise); // otherwise: on overflow

Build build_new(ArithCtx *c, int cap);
void build_push(ArithCtx *c, Build *b, int64_t coef, const Arith *mono); // NULL is 1
Poly build_done(ArithCtx *c, Build *b);

static inline Poly poly_const(int64_t value)
{
    return (Poly){value, 0, NULL};
}

static inline Poly poly_of(const Arith *a)
{
    return a->kind == A_CONST ? poly_const(a->value)
           : a->kind == A_SUM ? (Poly){a->value, a->n, a->term}
                              : (Poly){0, 1, &a->self};
}

Poly poly_add(ArithCtx *c, Poly a, Poly b, int64_t k); // a + k*b
Poly poly_addc(ArithCtx *c, Poly a, int64_t value);
Poly poly_scale(ArithCtx *c, Poly a, int64_t k);
Poly poly_mul(ArithCtx *c, Poly a, Poly b);
int poly_size(Poly a); // terms, the constant counted
// d*(e/d) + e%d and its kin put together again.
Poly poly_fold(ArithCtx *c, Poly p);
const Arith *poly_node(ArithCtx *c, Poly p);

const ArithTerm *mono_factors(const Arith *mono, int *n);
const Arith *mono_mul(ArithCtx *c, const Arith *a, const Arith *b);
// a / b where b divides a; *out is NULL where that is 1.
bool mono_div(ArithCtx *c, const Arith *a, const Arith *b, const Arith **out);
bool mono_has(const Arith *mono, const Arith *atom);
// p = a*x + b with no factor x in b.
void poly_isolate(ArithCtx *c, Poly p, const Arith *x, Poly *a, Poly *b);
// The factor of p with the highest id below limit; NULL if none.
const Arith *poly_top(Poly p, uint32_t limit);

// sample.c
void sample_assume(ArithCtx *c, const Arith *fact);
void sample_reset(ArithCtx *c);
bool sample_refutes(const ArithCtx *c, Poly p); // false somewhere, so never provable

// bounds.c
Range range_of_node(const ArithCtx *c, const Arith *a); // from its parts
int64_t multiple_of_node(const ArithCtx *c, const Arith *a);
Range poly_range(const ArithCtx *c, Poly p);
bool poly_nonneg(ArithCtx *c, Poly p);

#endif
