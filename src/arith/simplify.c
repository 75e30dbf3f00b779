// SPDX-License-Identifier: Apache-2.0
//
// The constructors of quotients, remainders, minima and maxima, and rebuilding.
//
//   source  the shapes Lift's simplifier lists rule by rule (paper 000, section 4.2.3)
//           follow here from one decomposition
//
// Division of a by b works towards
//       a = q*b + g*r + s,   b = g*d,   0 <= s < g (or r a multiple of what bounds s)
// so that a div b = q + r div d and a mod b = g*(r mod d) + s. It takes multiples of d
// out of r, decides r div d where the range of r allows, and takes common factors out
// of r and d, until nothing changes. Quotient and remainder go through the same steps,
// which is what lets a sum put them together again.
#include "arith/internal.h"

typedef struct {
    const Arith *q, *r, *d, *g, *s;
} Quot;

// Multiples of the divisor ----------------------------------------------------------

// (coef*mono) div d, known to be exact though d does not divide coef.
static const Arith *exact_div(ArithCtx *c, int64_t coef, const Arith *mono, int64_t d)
{
    int64_t g = gcd64(coef, d);
    ArithTerm t = {coef / g, mono};
    const Arith *e = poly_node(c, (Poly){0, 1, &t});
    return d == g ? e : node_pair(c, A_DIV, e, arith_const(c, d / g));
}

static bool divides(ArithCtx *c, int64_t d, ArithTerm t)
{
    return t.coef % d == 0 || mul_or(t.coef, info_of(c, t.arg)->multiple, 1) % d == 0;
}

// Coefficients keep their sign and fall below d; the constant comes into [0, d).
static void reduce_const(ArithCtx *c, Quot *z, int64_t d)
{
    Poly a = poly_of(z->r);
    Build q = build_new(c, a.n), r = build_new(c, a.n), exact = build_new(c, a.n);
    q.value = floor_div(a.value, d);
    r.value = floor_mod(a.value, d);
    for (int i = 0; i < a.n; i++) {
        int64_t whole = a.t[i].coef / d, left = a.t[i].coef % d;
        if (whole)
            build_push(c, &q, whole, a.t[i].arg);
        if (left && divides(c, d, (ArithTerm){left, a.t[i].arg}))
            build_push(c, &exact, 1, exact_div(c, left, a.t[i].arg, d));
        else if (left)
            build_push(c, &r, left, a.t[i].arg);
    }
    Poly whole = build_done(c, &q);
    for (int i = 0; i < exact.n; i++)
        whole = poly_add(c, whole, poly_of(exact.t[i].arg), 1);
    z->q = arith_add(c, z->q, poly_node(c, whole));
    z->r = poly_node(c, build_done(c, &r));
}

// r -= lead's cofactor * d wherever lead, a term of d, divides a term of r.
static void divide_by(ArithCtx *c, Poly d, ArithTerm lead, Poly *q, Poly *r)
{
    int steps = r->n + 4;
    for (int i = r->n - 1; i >= 0 && steps; i--) {
        const Arith *rest;
        int64_t k = r->t[i].coef == INT64_MIN ? 0 : r->t[i].coef / lead.coef;
        if (!k || !mono_div(c, r->t[i].arg, lead.arg, &rest))
            continue;
        Build b = build_new(c, 1);
        build_push(c, &b, k, rest);
        Poly factor = build_done(c, &b);
        *q = poly_add(c, *q, factor, 1);
        *r = poly_add(c, *r, poly_mul(c, factor, d), -1);
        i = r->n;
        steps--;
    }
}

// The term of d taken as leading is the one that leaves the shortest remainder.
static bool divide(ArithCtx *c, Poly a, Poly d, Poly *q, Poly *r)
{
    int best = poly_size(a);
    bool found = false;
    for (int i = 0; i < d.n; i++) {
        Poly qi = poly_const(0), ri = a;
        if (d.t[i].coef == INT64_MIN)
            continue;
        divide_by(c, d, d.t[i], &qi, &ri);
        if (poly_size(ri) >= best)
            continue;
        best = poly_size(ri);
        *q = qi;
        *r = ri;
        found = true;
    }
    return found;
}

static void reduce(ArithCtx *c, Quot *z)
{
    int64_t d;
    Poly q, r;
    if (arith_is_const(z->d, &d))
        reduce_const(c, z, d);
    else if (divide(c, poly_of(z->r), poly_of(z->d), &q, &r)) {
        z->q = arith_add(c, z->q, poly_node(c, q));
        z->r = poly_node(c, r);
    }
}

static bool exact_quotient(ArithCtx *c, const Arith *a, const Arith *d, const Arith **q)
{
    Poly quotient, r;
    int64_t value, by;
    if (arith_is_const(d, &by)) {
        if (!arith_is_const(a, &value) || by < 1 || value % by)
            return false;
        *q = arith_const(c, value / by);
        return true;
    }
    if (!divide(c, poly_of(a), poly_of(d), &quotient, &r) || poly_size(r))
        return false;
    *q = poly_node(c, quotient);
    return true;
}

// Deciding the quotient -------------------------------------------------------------

static void take(ArithCtx *c, Quot *z, int64_t k)
{
    if (k == 0)
        return;
    z->q = arith_addc(c, z->q, k);
    z->r = arith_sub(c, z->r, arith_mulc(c, z->d, k));
}

// Does all of the range fall to one quotient?
static bool one_quotient(Range r, int64_t d)
{
    return r.lo != INT64_MIN && r.hi != INT64_MAX && r.lo <= r.hi &&
           floor_div(r.lo, d) == floor_div(r.hi, d);
}

static bool decide_by_range(ArithCtx *c, Quot *z, int64_t d)
{
    Range r = info_of(c, z->r)->range;
    if (!one_quotient(r, d))
        return false;
    take(c, z, floor_div(r.lo, d));
    return true;
}

static bool decide_by_proof(ArithCtx *c, Quot *z)
{
    Range r = info_of(c, z->r)->range;
    const Arith *beyond = arith_sub(c, z->r, z->d);
    if (arith_nonneg(c, z->r)) {
        if (arith_lt(c, z->r, z->d))
            return true;
        if (!arith_nonneg(c, beyond) || !arith_lt(c, beyond, z->d))
            return false;
        take(c, z, 1);
        return true;
    }
    if (r.lo >= 0 || !arith_nonneg(c, arith_add(c, z->r, z->d)) ||
        !arith_lt(c, z->r, arith_const(c, 0)))
        return false;
    take(c, z, -1);
    return true;
}

// One way to choose residues of the coefficients other than those with their own sign.
typedef enum { ALL_POSITIVE, ALL_NEGATIVE, SMALLEST, N_WAYS } Residues;

// How often d is added to k, a residue with |k| < d.
static int64_t times_added(Residues way, int64_t k, int64_t d)
{
    switch (way) {
    case ALL_POSITIVE: return k < 0;
    case ALL_NEGATIVE: return -(k > 0);
    case SMALLEST:
    case N_WAYS: break;
    }
    return (k < 0 && -k > d / 2) - (k > 0 && k > d / 2);
}

static bool decide_shifted(ArithCtx *c, Quot *z, int64_t d, Residues way)
{
    Poly a = poly_of(z->r);
    Build moved = build_new(c, a.n);
    for (int i = 0; i < a.n; i++) {
        int64_t times = times_added(way, a.t[i].coef, d);
        if (times)
            build_push(c, &moved, times, a.t[i].arg);
    }
    if (moved.n == 0)
        return false;
    Poly q = build_done(c, &moved);
    Poly r = poly_add(c, a, q, d);
    Range range = poly_range(c, r);
    if (!one_quotient(range, d))
        return false;
    z->q = arith_sub(c, z->q, poly_node(c, q));
    z->r = poly_node(c, r);
    take(c, z, floor_div(range.lo, d));
    return true;
}

static bool decide(ArithCtx *c, Quot *z)
{
    int64_t d;
    if (z->r->kind == A_CONST && z->r->value == 0)
        return true;
    if (!arith_is_const(z->d, &d))
        return decide_by_proof(c, z);
    if (decide_by_range(c, z, d))
        return true;
    for (int way = 0; way < N_WAYS; way++)
        if (decide_shifted(c, z, d, (Residues)way))
            return true;
    bool plain = z->r->kind == A_CONST || z->r->kind == A_VAR;
    return (!plain || c->facts.len) && decide_by_proof(c, z);
}

// Common factors --------------------------------------------------------------------

static bool in_range(ArithCtx *c, const Arith *a, const Arith *end)
{
    return arith_nonneg(c, a) && arith_lt(c, a, end);
}

// r = t + s, t the terms that g divides.
static void part(ArithCtx *c, Poly r, int64_t g, bool by_coef, Build *t, Build *s)
{
    *t = build_new(c, r.n);
    *s = build_new(c, r.n);
    for (int i = 0; i < r.n; i++) {
        bool into = by_coef ? r.t[i].coef % g == 0 : divides(c, g, r.t[i]);
        build_push(c, into ? t : s, r.t[i].coef, r.t[i].arg);
    }
}

// How much of the constant goes with s, so that s may lie in [0, g).
static int64_t rest_value(ArithCtx *c, Build s, int64_t value, int64_t g)
{
    int64_t lo = s.n ? poly_range(c, (Poly){0, s.n, s.t}).lo : 0;
    int64_t least, whole, rest;
    if (lo == INT64_MIN || __builtin_add_overflow(value, lo, &least) ||
        __builtin_mul_overflow(floor_div(least, g), g, &whole) ||
        __builtin_sub_overflow(value, whole, &rest) || rest == INT64_MIN)
        return floor_mod(value, g);
    return rest;
}

static void divide_terms(Build *t, int64_t g)
{
    t->value /= g;
    for (int i = 0; i < t->n; i++)
        t->t[i].coef /= g;
}

static void accept(ArithCtx *c, Quot *z, const Arith *s, const Arith *t, const Arith *g)
{
    z->s = arith_add(c, z->s, arith_mul(c, z->g, s));
    z->g = arith_mul(c, z->g, g);
    z->r = t;
}

static bool shrink_by(ArithCtx *c, Quot *z, int64_t d, int64_t g)
{
    Poly r = poly_of(z->r);
    Build t, s;
    part(c, r, g, false, &t, &s);
    s.value = rest_value(c, s, r.value, g);
    t.value = checked_add(c, r.value, -s.value);
    int64_t common = d;
    for (int i = 0; i < t.n; i++)
        common = gcd64(common, t.t[i].coef);
    if (common == 1 && s.n == 0 && s.value == 0)
        return false;
    const Arith *rest = poly_node(c, build_done(c, &s));
    if (!in_range(c, rest, arith_const(c, g)))
        return false;
    divide_terms(&t, common);
    accept(c, z, rest, poly_node(c, build_done(c, &t)), arith_const(c, common));
    z->d = arith_const(c, d / common);
    return true;
}

static int64_t next_factor(ArithCtx *c, Poly r, int64_t d, int64_t below)
{
    int64_t best = 1;
    for (int i = 0; i < r.n; i++) {
        int64_t k = r.t[i].coef;
        int64_t g = gcd64(d, mul_or(k, info_of(c, r.t[i].arg)->multiple, k));
        if (g < below && g > best)
            best = g;
    }
    return best;
}

static bool shrink_const(ArithCtx *c, Quot *z, int64_t d)
{
    Poly r = poly_of(z->r);
    for (int64_t g = d; (g = next_factor(c, r, d, g)) > 1;)
        if (shrink_by(c, z, d, g))
            return true;
    return false;
}

static bool shrink_by_content(ArithCtx *c, Quot *z)
{
    Poly d = poly_of(z->d), r = poly_of(z->r);
    int64_t g = d.value;
    for (int i = 0; i < d.n; i++)
        g = gcd64(g, d.t[i].coef);
    if (g < 2)
        return false;
    Build t, s;
    part(c, r, g, true, &t, &s);
    s.value = rest_value(c, s, r.value, g);
    t.value = checked_add(c, r.value, -s.value);
    const Arith *rest = poly_node(c, build_done(c, &s));
    if (!in_range(c, rest, arith_const(c, g)))
        return false;
    divide_terms(&t, g);
    accept(c, z, rest, poly_node(c, build_done(c, &t)), arith_const(c, g));
    Build less = build_new(c, d.n);
    less.value = d.value;
    for (int i = 0; i < d.n; i++)
        build_push(c, &less, d.t[i].coef, d.t[i].arg);
    divide_terms(&less, g);
    z->d = poly_node(c, build_done(c, &less));
    return true;
}

static bool shrink_by_atom(ArithCtx *c, Quot *z, const Arith *f)
{
    Poly d, none, t, s;
    poly_isolate(c, poly_of(z->d), f, &d, &none);
    if (poly_size(none))
        return false;
    poly_isolate(c, poly_of(z->r), f, &t, &s);
    const Arith *rest = poly_node(c, s);
    if (poly_size(t) == 0 || !in_range(c, rest, f)) // so that f > 0 too
        return false;
    accept(c, z, rest, poly_node(c, t), f);
    z->d = poly_node(c, d);
    return true;
}

static bool shrink(ArithCtx *c, Quot *z)
{
    int64_t d;
    if (arith_is_const(z->d, &d))
        return shrink_const(c, z, d);
    if (shrink_by_content(c, z))
        return true;
    Poly divisor = poly_of(z->d);
    int n;
    const ArithTerm *f = mono_factors(divisor.t[0].arg, &n);
    for (int i = 0; i < n; i++)
        if (shrink_by_atom(c, z, f[i].arg))
            return true;
    return false;
}

// Quotient and remainder ------------------------------------------------------------

// True where r div d is 0.
static bool quotient(ArithCtx *c, const Arith *a, const Arith *b, Quot *z)
{
    const Arith *zero = arith_const(c, 0);
    *z = (Quot){.q = zero, .r = a, .d = b, .g = arith_const(c, 1), .s = zero};
    do {
        reduce(c, z);
        if (decide(c, z))
            return true;
    } while (shrink(c, z));
    return false;
}

// (e div b + k) div d is (e + k*b) div b*d, and (e mod d*k) div d is (e div d) mod k.
static const Arith *div_atom(ArithCtx *c, const Arith *r, const Arith *d)
{
    const Arith *inner = r, *k;
    if (r->kind == A_SUM && r->n == 1 && r->term[0].coef == 1)
        inner = r->term[0].arg;
    if (inner->kind == A_DIV) {
        const Arith *b = inner->term[1].arg;
        const Arith *e = inner->term[0].arg;
        if (inner != r)
            e = arith_add(c, e, arith_mulc(c, b, r->value));
        return arith_div(c, e, arith_mul(c, b, d));
    }
    if (r->kind == A_MOD && exact_quotient(c, r->term[1].arg, d, &k))
        return arith_mod(c, arith_div(c, r->term[0].arg, d), k);
    return node_pair(c, A_DIV, r, d);
}

// A remainder by a multiple of d, inside a remainder by d, changes nothing.
static const Arith *mod_atom(ArithCtx *c, const Arith *r, const Arith *d)
{
    Poly p = poly_of(r), plain = p;
    for (int i = 0; i < p.n; i++) {
        const Arith *m = p.t[i].arg, *k;
        if (m->kind != A_MOD || !exact_quotient(c, m->term[1].arg, d, &k))
            continue;
        plain = poly_add(c, plain, (Poly){0, 1, &p.t[i]}, -1);
        plain = poly_add(c, plain, poly_of(m->term[0].arg), p.t[i].coef);
    }
    if (plain.t == p.t)
        return node_pair(c, A_MOD, r, d);
    return arith_mod(c, poly_node(c, plain), d);
}

static bool foldable(const Arith *d)
{
    return d->kind != A_CONST || d->value >= 1;
}

const Arith *arith_div(ArithCtx *c, const Arith *a, const Arith *b)
{
    Quot z;
    if (!foldable(b))
        return node_pair(c, A_DIV, a, b);
    MemoKey key = memo_key(c, MEMO_DIV, a, b->id);
    const Arith *result = memo_find(c, key);
    if (result)
        return result;
    ArenaMark mark = arena_mark(c->scratch);
    if (quotient(c, a, b, &z))
        result = z.q;
    else
        result = arith_add(c, z.q, div_atom(c, z.r, z.d));
    arena_reset(c->scratch, mark);
    return memo_keep(c, key, result);
}

const Arith *arith_mod(ArithCtx *c, const Arith *a, const Arith *b)
{
    Quot z;
    if (!foldable(b))
        return node_pair(c, A_MOD, a, b);
    MemoKey key = memo_key(c, MEMO_MOD, a, b->id);
    const Arith *result = memo_find(c, key);
    if (result)
        return result;
    ArenaMark mark = arena_mark(c->scratch);
    const Arith *left = quotient(c, a, b, &z) ? z.r : mod_atom(c, z.r, z.d);
    result = arith_add(c, arith_mul(c, z.g, left), z.s);
    arena_reset(c->scratch, mark);
    return memo_keep(c, key, result);
}

const Arith *arith_divc(ArithCtx *c, const Arith *a, int64_t d)
{
    return arith_div(c, a, arith_const(c, d));
}

const Arith *arith_ceil_div(ArithCtx *c, const Arith *a, const Arith *b)
{
    return arith_div(c, arith_addc(c, arith_add(c, a, b), -1), b);
}

// Minimum and maximum ---------------------------------------------------------------

static const Arith *pick(ArithCtx *c, ArithKind kind, const Arith *a, const Arith *b)
{
    return kind == A_MIN ? arith_min(c, a, b) : arith_max(c, a, b);
}

// min(min(p, q), b) where b decides against p or q.
static const Arith *pick_nested(ArithCtx *c, ArithKind kind, const Arith *a, const Arith *b)
{
    if (a->kind != kind)
        return NULL;
    for (int i = 0; i < 2; i++) {
        const Arith *p = a->term[i].arg, *q = a->term[1 - i].arg;
        if (kind == A_MIN ? arith_le(c, b, p) : arith_le(c, p, b))
            return pick(c, kind, q, b);
        if (kind == A_MIN ? arith_le(c, p, b) : arith_le(c, b, p))
            return a;
    }
    return NULL;
}

// a and b lose the terms they share.
static Poly take_common(ArithCtx *c, Poly *a, Poly *b)
{
    Build common = build_new(c, MIN(a->n, b->n));
    for (int i = 0, j = 0; i < a->n && j < b->n;) {
        if (a->t[i].arg == b->t[j].arg && a->t[i].coef == b->t[j].coef)
            build_push(c, &common, a->t[i].coef, a->t[i].arg);
        bool both = a->t[i].arg == b->t[j].arg;
        bool step_a = both || a->t[i].arg->id < b->t[j].arg->id;
        bool step_b = both || !step_a;
        i += step_a;
        j += step_b;
    }
    Poly shared = build_done(c, &common);
    *a = poly_add(c, *a, shared, -1);
    *b = poly_add(c, *b, shared, -1);
    return shared;
}

// Does a vary faster than b? Then a keeps no constant, and b, more often the same for a
// whole loop, takes it.
static bool is_inner(ArithCtx *c, Poly a, Poly b)
{
    const Arith *top_a = poly_top(a, UINT32_MAX), *top_b = poly_top(b, UINT32_MAX);
    if (!top_a || !top_b)
        return top_a != NULL;
    if (top_a != top_b)
        return top_a->id > top_b->id;
    a.value = b.value = 0;
    return poly_node(c, a)->id > poly_node(c, b)->id;
}

static const Arith *pick_undecided(ArithCtx *c, ArithKind kind, Poly a, Poly b)
{
    Poly shared = take_common(c, &a, &b);
    bool inner = is_inner(c, a, b);
    Poly x = inner ? a : b, y = inner ? b : a;
    shared.value = x.value;
    y.value = checked_add(c, y.value, checked_mul(c, x.value, -1));
    x.value = 0;
    const Arith *first = poly_node(c, x), *second = poly_node(c, y);
    const Arith *r = pick_nested(c, kind, first, second);
    if (!r)
        r = pick_nested(c, kind, second, first);
    if (!r)
        r = node_pair(c, kind, first, second);
    return poly_node(c, poly_add(c, shared, poly_of(r), 1));
}

static const Arith *min_max(ArithCtx *c, ArithKind kind, const Arith *a, const Arith *b)
{
    if (a->kind == A_CONST && b->kind == A_CONST)
        return (a->value < b->value) == (kind == A_MIN) ? a : b;
    MemoKey key = memo_key(c, kind == A_MIN ? MEMO_MIN : MEMO_MAX, a, b->id);
    const Arith *r = memo_find(c, key);
    if (r)
        return r;
    if (arith_le(c, a, b))
        return memo_keep(c, key, kind == A_MIN ? a : b);
    if (arith_le(c, b, a))
        return memo_keep(c, key, kind == A_MIN ? b : a);
    ArenaMark mark = arena_mark(c->scratch);
    r = pick_undecided(c, kind, poly_of(a), poly_of(b));
    arena_reset(c->scratch, mark);
    return memo_keep(c, key, r);
}

const Arith *arith_min(ArithCtx *c, const Arith *a, const Arith *b)
{
    return min_max(c, A_MIN, a, b);
}

const Arith *arith_max(ArithCtx *c, const Arith *a, const Arith *b)
{
    return min_max(c, A_MAX, a, b);
}

// Rebuilding ------------------------------------------------------------------------

static const Arith *rebuild(ArithCtx *c, const Arith *a, const Arith *var,
                            const Arith *value);

static const Arith *rebuild_sum(ArithCtx *c, const Arith *a, const Arith *var,
                                const Arith *value)
{
    ArenaMark mark = arena_mark(c->scratch);
    Build same = build_new(c, a->n);
    Poly changed = poly_const(a->value);
    for (int i = 0; i < a->n; i++) {
        const Arith *term = rebuild(c, a->term[i].arg, var, value);
        if (term == a->term[i].arg)
            build_push(c, &same, a->term[i].coef, term);
        else
            changed = poly_add(c, changed, poly_of(term), a->term[i].coef);
    }
    Poly sum = poly_add(c, build_done(c, &same), changed, 1);
    const Arith *result = poly_node(c, sum);
    arena_reset(c->scratch, mark);
    return result;
}

static const Arith *rebuild_prod(ArithCtx *c, const Arith *a, const Arith *var,
                                 const Arith *value)
{
    const Arith *result = rebuild(c, a->term[0].arg, var, value);
    for (int i = 1; i < a->n; i++)
        result = arith_mul(c, result, rebuild(c, a->term[i].arg, var, value));
    return result;
}

static const Arith *rebuild_node(ArithCtx *c, const Arith *a, const Arith *var,
                                 const Arith *value)
{
    if (a->kind == A_SUM)
        return rebuild_sum(c, a, var, value);
    if (a->kind == A_PROD)
        return rebuild_prod(c, a, var, value);
    const Arith *x = rebuild(c, a->term[0].arg, var, value);
    const Arith *y = rebuild(c, a->term[1].arg, var, value);
    return a->kind == A_DIV   ? arith_div(c, x, y)
           : a->kind == A_MOD ? arith_mod(c, x, y)
                              : pick(c, a->kind, x, y);
}

// Without facts, what does not mention var is simple already.
static const Arith *rebuild(ArithCtx *c, const Arith *a, const Arith *var,
                            const Arith *value)
{
    if (a == var)
        return value;
    if (a->n == 0 || (c->facts.len == 0 && (!var || !arith_mentions(a, var))))
        return a;
    if (c->info[a->id].stamp == c->stamp)
        return c->info[a->id].image;
    const Arith *image = rebuild_node(c, a, var, value);
    c->info[a->id].stamp = c->stamp;
    c->info[a->id].image = image;
    return image;
}

const Arith *arith_subst(ArithCtx *c, const Arith *a, const Arith *var, const Arith *value)
{
    c->stamp++;
    return rebuild(c, a, var->kind == A_VAR ? var : NULL, value);
}

const Arith *arith_simplify(ArithCtx *c, const Arith *a)
{
    c->stamp++;
    return rebuild(c, a, NULL, NULL);
}
