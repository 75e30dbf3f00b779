// SPDX-License-Identifier: Apache-2.0
//
// What is known of a value: intervals, divisibility, and proofs of a >= 0.
//
// Method: first the interval of the whole, kept with every node. Else the atom created
// last (the innermost variable) is replaced by the end of its range that makes the sum
// smallest, given the sign of what multiplies it, until an interval decides; a quotient
// is bounded through d*(e div d) <= e, a minimum by cases. Facts are subtracted, scaled
// so that a term of theirs cancels. Goals that are false at a sample point are given up
// (sample.c). A quota of steps bounds every proof; running out,
// or an overflow on the way, means not proved.
//
// Being whole is used where a goal is scaled by d (d*p >= 1 - d is enough) and where the
// terms share a factor; beyond that it does not look for integer points.
#include "arith/internal.h"

// Wide enough for any sum of two products of int64_t.
__extension__ typedef __int128 Wide;

enum { PROOF_STEPS = 48, PROOF_TERMS = 40, REFINE_STEPS = 12 };

static const Range everything = {INT64_MIN, INT64_MAX};

// Intervals -------------------------------------------------------------------------

// A finite end is never one that means infinity: it gives way by one.
static Range finish(Wide lo, Wide hi)
{
    Range r;
    r.lo = lo <= INT64_MIN ? INT64_MIN : lo >= INT64_MAX ? INT64_MAX - 1 : (int64_t)lo;
    r.hi = hi >= INT64_MAX ? INT64_MAX : hi <= INT64_MIN ? INT64_MIN + 1 : (int64_t)hi;
    return r;
}

static Wide mul_ends(int64_t a, int64_t b)
{
    Wide infinity = (Wide)1 << 100;
    if (a == 0 || b == 0)
        return 0;
    if (a == INT64_MIN || a == INT64_MAX || b == INT64_MIN || b == INT64_MAX)
        return (a < 0) == (b < 0) ? infinity : -infinity;
    return (Wide)a * b;
}

static Range range_mul(Range a, Range b)
{
    Wide end[4] = {mul_ends(a.lo, b.lo), mul_ends(a.lo, b.hi), mul_ends(a.hi, b.lo),
                   mul_ends(a.hi, b.hi)};
    Wide lo = end[0], hi = end[0];
    for (int i = 1; i < 4; i++) {
        lo = MIN(lo, end[i]);
        hi = MAX(hi, end[i]);
    }
    return finish(lo, hi);
}

static Range range_prod(const ArithCtx *c, const Arith *a)
{
    Range r = {1, 1};
    for (int i = 0; i < a->n; i++)
        r = range_mul(r, info_of(c, a->term[i].arg)->range);
    if (a->n == 2 && a->term[0].arg == a->term[1].arg)
        r.lo = MAX(r.lo, 0);
    return r;
}

static int64_t div_end(int64_t a, int64_t d)
{
    return a == INT64_MIN || a == INT64_MAX ? a : floor_div(a, d);
}

static Range range_div(Range a, Range d)
{
    if (d.hi < 1)
        return everything;
    int64_t small = MAX(d.lo, 1), large = d.hi;
    return (Range){div_end(a.lo, a.lo >= 0 ? large : small),
                   div_end(a.hi, a.hi >= 0 ? small : large)};
}

// step: both a and d are known to be multiples of it.
static Range range_mod(Range a, Range d, int64_t step)
{
    if (d.hi < 1)
        return everything;
    if (a.lo >= 0 && a.hi < MAX(d.lo, 1))
        return a;
    int64_t hi = d.hi == INT64_MAX ? INT64_MAX : d.hi - MAX(step, 1);
    return (Range){0, a.lo >= 0 ? MIN(hi, a.hi) : hi};
}

static Range range_var(const ArithCtx *c, const Arith *a)
{
    return (Range){a->lo ? info_of(c, a->lo)->range.lo : INT64_MIN,
                   a->hi ? info_of(c, a->hi)->range.hi : INT64_MAX};
}

// While nothing is missing or near overflow, plain integers do.
static bool add_scaled(Range *sum, int64_t k, Range r)
{
    int64_t lo, hi;
    if (r.lo == INT64_MIN || r.hi == INT64_MAX ||
        __builtin_mul_overflow(k, k > 0 ? r.lo : r.hi, &lo) ||
        __builtin_mul_overflow(k, k > 0 ? r.hi : r.lo, &hi) ||
        __builtin_add_overflow(sum->lo, lo, &lo) ||
        __builtin_add_overflow(sum->hi, hi, &hi) || lo == INT64_MIN || hi == INT64_MAX ||
        lo == INT64_MAX || hi == INT64_MIN)
        return false;
    *sum = (Range){lo, hi};
    return true;
}

Range poly_range(const ArithCtx *c, Poly p)
{
    Range sum = finish(p.value, p.value);
    int i = 0;
    while (i < p.n && sum.lo != INT64_MIN && sum.hi != INT64_MAX &&
           add_scaled(&sum, p.t[i].coef, info_of(c, p.t[i].arg)->range))
        i++;
    for (; i < p.n; i++) {
        int64_t k = p.t[i].coef;
        Range r = info_of(c, p.t[i].arg)->range;
        Wide lo = mul_ends(k, k > 0 ? r.lo : r.hi), hi = mul_ends(k, k > 0 ? r.hi : r.lo);
        sum = finish(sum.lo == INT64_MIN ? INT64_MIN : sum.lo + lo,
                     sum.hi == INT64_MAX ? INT64_MAX : sum.hi + hi);
    }
    return sum;
}

static int64_t step_of(const ArithCtx *c, const Arith *a, const Arith *d)
{
    return gcd64(info_of(c, a)->multiple, info_of(c, d)->multiple);
}

Range range_of_node(const ArithCtx *c, const Arith *a)
{
    Range x = everything, y = everything;
    if (a->kind >= A_DIV) {
        x = info_of(c, a->term[0].arg)->range;
        y = info_of(c, a->term[1].arg)->range;
    }
    switch (a->kind) {
    case A_CONST: return finish(a->value, a->value);
    case A_VAR: return range_var(c, a);
    case A_SUM: return poly_range(c, (Poly){a->value, a->n, a->term});
    case A_PROD: return range_prod(c, a);
    case A_DIV: return range_div(x, y);
    case A_MOD: return range_mod(x, y, step_of(c, a->term[0].arg, a->term[1].arg));
    case A_MIN: return (Range){MIN(x.lo, y.lo), MIN(x.hi, y.hi)};
    case A_MAX: return (Range){MAX(x.lo, y.lo), MAX(x.hi, y.hi)};
    }
    BUG("kind %d", (int)a->kind);
}

// Divisibility ----------------------------------------------------------------------

static int64_t multiple_of_sum(const ArithCtx *c, const Arith *a)
{
    int64_t g = a->value;
    for (int i = 0; i < a->n && g != 1; i++) {
        int64_t k = a->term[i].coef;
        g = gcd64(g, mul_or(k, info_of(c, a->term[i].arg)->multiple, k));
    }
    return g;
}

static int64_t multiple_of_div(const ArithCtx *c, const Arith *a)
{
    int64_t d, m = info_of(c, a->term[0].arg)->multiple;
    if (!arith_is_const(a->term[1].arg, &d) || d < 1 || m % d)
        return 1;
    return m / d;
}

int64_t multiple_of_node(const ArithCtx *c, const Arith *a)
{
    int64_t m = 1;
    switch (a->kind) {
    case A_CONST: return gcd64(a->value, 0);
    case A_VAR: return a->multiple;
    case A_SUM: return multiple_of_sum(c, a);
    case A_PROD:
        for (int i = 0; i < a->n; i++)
            m = mul_or(m, info_of(c, a->term[i].arg)->multiple, m);
        return m;
    case A_DIV: return multiple_of_div(c, a);
    case A_MOD:
    case A_MIN:
    case A_MAX: return step_of(c, a->term[0].arg, a->term[1].arg);
    }
    BUG("kind %d", (int)a->kind);
}

int64_t arith_multiple(ArithCtx *c, const Arith *a)
{
    return info_of(c, a)->multiple;
}

// Proofs ----------------------------------------------------------------------------

static bool prove(ArithCtx *c, Poly p, int first_fact);

typedef enum { STUCK, FAILED, PROVED } Outcome;

// The goal p = a*x + b, and the sign of a.
typedef struct {
    const Arith *x;
    Poly a, b;
    int sign, facts;
} BoundGoal;

// x replaced by bound/scale, with scale > 0; p is whole, so scale*p > -scale will do.
static bool with_bound(ArithCtx *c, const BoundGoal *g, Poly bound, Poly scale)
{
    Poly b = poly_addc(c, poly_add(c, poly_mul(c, g->b, scale), scale, 1), -1);
    return prove(c, poly_add(c, poly_mul(c, g->a, bound), b, 1), g->facts);
}

static bool with_const(ArithCtx *c, const BoundGoal *g, int64_t bound)
{
    if (bound == INT64_MIN || bound == INT64_MAX)
        return false;
    return with_bound(c, g, poly_const(bound), poly_const(1));
}

static Outcome by_var(ArithCtx *c, const BoundGoal *g)
{
    const Arith *bound = g->sign > 0 ? g->x->lo : g->x->hi;
    if (!bound)
        return STUCK;
    return with_bound(c, g, poly_of(bound), poly_const(1)) ? PROVED : FAILED;
}

// d*(e div d) lies between e - d + step and e.
static Outcome by_div(ArithCtx *c, const BoundGoal *g)
{
    const Arith *e = g->x->term[0].arg, *d = g->x->term[1].arg;
    if (d->kind == A_CONST && d->value < 1)
        return STUCK;
    Poly scale = poly_of(d), bound = poly_of(e);
    if (g->sign > 0)
        bound = poly_addc(c, poly_add(c, bound, scale, -1), MAX(step_of(c, e, d), 1));
    if (with_bound(c, g, bound, scale))
        return PROVED;
    Range r = info_of(c, g->x)->range;
    return with_const(c, g, g->sign > 0 ? r.lo : r.hi) ? PROVED : FAILED;
}

static Outcome by_mod(ArithCtx *c, const BoundGoal *g)
{
    const Arith *e = g->x->term[0].arg, *d = g->x->term[1].arg;
    Poly one = poly_const(1);
    if (d->kind == A_CONST && d->value < 1)
        return STUCK;
    if (g->sign > 0)
        return with_bound(c, g, poly_const(0), one) ? PROVED : FAILED;
    Poly last = poly_addc(c, poly_of(d), -MAX(step_of(c, e, d), 1));
    if (with_bound(c, g, last, one))
        return PROVED;
    bool below = info_of(c, e)->range.lo >= 0 && with_bound(c, g, poly_of(e), one);
    return below ? PROVED : FAILED;
}

// The smaller of two from below, or the larger from above, is either: both must do.
static Outcome by_cases(ArithCtx *c, const BoundGoal *g)
{
    bool both = (g->x->kind == A_MIN) == (g->sign > 0);
    Poly one = poly_const(1);
    bool first = with_bound(c, g, poly_of(g->x->term[0].arg), one);
    if (first != both)
        return first ? PROVED : FAILED;
    return with_bound(c, g, poly_of(g->x->term[1].arg), one) ? PROVED : FAILED;
}

static int sign_of(ArithCtx *c, Poly a, int facts)
{
    Range r = poly_range(c, a);
    if (r.lo >= 0)
        return 1;
    if (r.hi <= 0)
        return -1;
    if (a.n == 1 && a.value == 0)
        return 0;
    return prove(c, a, facts) ? 1 : prove(c, poly_scale(c, a, -1), facts) ? -1 : 0;
}

static Outcome eliminate(ArithCtx *c, Poly p, const Arith *x, int facts)
{
    BoundGoal g = {.x = x, .facts = facts};
    poly_isolate(c, p, x, &g.a, &g.b);
    g.sign = sign_of(c, g.a, facts);
    if (g.sign == 0)
        return STUCK;
    switch (x->kind) {
    case A_VAR: return by_var(c, &g);
    case A_DIV: return by_div(c, &g);
    case A_MOD: return by_mod(c, &g);
    case A_MIN:
    case A_MAX: return by_cases(c, &g);
    case A_CONST:
    case A_SUM:
    case A_PROD: break;
    }
    BUG("kind %d is no atom", (int)x->kind);
}

// Does p >= 0 follow from f >= 0, the two scaled so that term t of p cancels term u
// of f? What multiplies f must not be negative, what multiplies p is positive.
static bool cancel(ArithCtx *c, Poly p, Poly f, ArithTerm t, ArithTerm u, int facts)
{
    const Arith *rest;
    if ((t.coef < 0) != (u.coef < 0) || !mono_div(c, t.arg, u.arg, &rest))
        return false;
    if (rest && info_of(c, rest)->range.lo < 0)
        return false;
    int64_t g = gcd64(t.coef, u.coef);
    int64_t kt = t.coef / g, ku = u.coef / g;
    if (ku == INT64_MIN)
        return false;
    Poly times_f = rest ? poly_mul(c, f, poly_of(rest)) : f;
    ku = ku < 0 ? -ku : ku;
    Poly scaled = poly_addc(c, poly_scale(c, p, ku), ku - 1);
    return prove(c, poly_add(c, scaled, times_f, kt < 0 ? kt : -kt), facts);
}

static bool by_facts(ArithCtx *c, Poly p, int first)
{
    for (int i = first; i < c->facts.len; i++) {
        Poly f = poly_of(c->facts.at[i]);
        const Arith *top = poly_top(f, UINT32_MAX);
        for (int j = 0; top && j < f.n; j++)
            if (mono_has(f.t[j].arg, top))
                for (int k = p.n - 1; k >= 0; k--)
                    if (cancel(c, p, f, p.t[k], f.t[j], i + 1))
                        return true;
    }
    return false;
}

// p divided by what all its coefficients share, and rounded down.
static Poly tighten(ArithCtx *c, Poly p)
{
    int64_t g = 0;
    for (int i = 0; i < p.n && g != 1; i++)
        g = gcd64(g, p.t[i].coef);
    if (g < 2)
        return p;
    Build b = build_new(c, p.n);
    b.value = floor_div(p.value, g);
    for (int i = 0; i < p.n; i++)
        build_push(c, &b, p.t[i].coef / g, p.t[i].arg);
    return build_done(c, &b);
}

static bool search_proof(ArithCtx *c, Poly p, int first_fact)
{
    if (by_facts(c, p, first_fact))
        return true;
    uint32_t limit = UINT32_MAX;
    for (const Arith *x; (x = poly_top(p, limit)); limit = x->id) {
        Outcome outcome = eliminate(c, p, x, first_fact);
        if (outcome != STUCK)
            return outcome == PROVED;
    }
    return false;
}

static bool prove(ArithCtx *c, Poly p, int first_fact)
{
    if (c->overflow || p.n > PROOF_TERMS || c->steps-- <= 0)
        return false;
    Range r = poly_range(c, p);
    if (r.lo >= 0 || r.hi < 0)
        return r.lo >= 0;
    if (sample_refutes(c, p))
        return false;
    ArenaMark mark = arena_mark(c->scratch);
    bool proved = search_proof(c, tighten(c, p), first_fact);
    arena_reset(c->scratch, mark);
    return proved;
}

// Is it a fact and what is never negative? A search may use up its steps on others.
static bool exceeds_fact(ArithCtx *c, Poly p)
{
    bool found = false;
    if (sample_refutes(c, p))
        return false;
    for (int i = 0; i < c->facts.len && !found; i++) {
        ArenaMark mark = arena_mark(c->scratch);
        Poly rest = poly_add(c, p, poly_of(c->facts.at[i]), -1);
        found = !c->overflow && poly_range(c, rest).lo >= 0;
        arena_reset(c->scratch, mark);
    }
    return found;
}

// An overflow inside a proof spoils the proof alone.
bool poly_nonneg(ArithCtx *c, Poly p)
{
    bool overflow = c->overflow;
    Range r = poly_range(c, p);
    if (r.lo >= 0)
        return true;
    c->overflow = false;
    c->steps = PROOF_STEPS;
    bool proved = prove(c, p, 0) && !c->overflow;
    c->overflow = false;
    proved = proved || exceeds_fact(c, p);
    c->overflow = overflow;
    return proved;
}

static bool nonneg_sum(ArithCtx *c, const Arith *a, const Arith *minus, int64_t plus)
{
    bool overflow = c->overflow;
    c->overflow = false;
    ArenaMark mark = arena_mark(c->scratch);
    Poly p = poly_addc(c, poly_of(a), plus);
    if (minus)
        p = poly_fold(c, poly_add(c, p, poly_of(minus), -1));
    bool proved = !c->overflow && poly_nonneg(c, p);
    arena_reset(c->scratch, mark);
    c->overflow = overflow;
    return proved;
}

bool arith_nonneg(ArithCtx *c, const Arith *a)
{
    return nonneg_sum(c, a, NULL, 0);
}

// Their difference may overflow where the two alone do not.
static bool apart(const ArithCtx *c, const Arith *a, const Arith *b)
{
    int64_t hi = info_of(c, a)->range.hi, lo = info_of(c, b)->range.lo;
    return hi != INT64_MAX && lo != INT64_MIN && hi < lo;
}

bool arith_le(ArithCtx *c, const Arith *a, const Arith *b)
{
    return a == b || apart(c, a, b) || nonneg_sum(c, b, a, 0);
}

bool arith_lt(ArithCtx *c, const Arith *a, const Arith *b)
{
    return a != b && (apart(c, a, b) || nonneg_sum(c, b, a, -1));
}

bool arith_equal(ArithCtx *c, const Arith *a, const Arith *b)
{
    if (a == b)
        return true;
    bool overflow = c->overflow;
    c->overflow = false;
    const Arith *difference = arith_sub(c, a, b);
    bool equal = !c->overflow && difference->kind == A_CONST && difference->value == 0;
    c->overflow = overflow;
    return equal;
}

// Bounds ----------------------------------------------------------------------------

// The interval of p once its variables, innermost first, gave way to their lower ends.
static int64_t refined_lo(ArithCtx *c, Poly p)
{
    int64_t best = poly_range(c, p).lo;
    uint32_t limit = UINT32_MAX;
    const Arith *x;
    for (int steps = REFINE_STEPS; steps && (x = poly_top(p, limit)); steps--) {
        Poly a, b;
        limit = x->id;
        if (x->kind != A_VAR)
            continue;
        poly_isolate(c, p, x, &a, &b);
        Range r = poly_range(c, a);
        const Arith *bound = r.lo >= 0 ? x->lo : r.hi <= 0 ? x->hi : NULL;
        if (!bound)
            continue;
        p = poly_add(c, poly_mul(c, a, poly_of(bound)), b, 1);
        if (c->overflow)
            break;
        best = MAX(best, poly_range(c, p).lo);
    }
    return best;
}

static Range refined_range(ArithCtx *c, const Arith *a)
{
    Range r = info_of(c, a)->range;
    bool overflow = c->overflow;
    ArenaMark mark = arena_mark(c->scratch);
    c->overflow = false;
    r.lo = refined_lo(c, poly_of(a));
    c->overflow = false;
    int64_t low = refined_lo(c, poly_scale(c, poly_of(a), -1));
    if (!c->overflow && low != INT64_MIN)
        r.hi = MIN(r.hi, -low);
    arena_reset(c->scratch, mark);
    c->overflow = overflow;
    return r;
}

void arith_range(ArithCtx *c, const Arith *a, int64_t *lo, int64_t *hi)
{
    Range r = info_of(c, a)->range;
    if (a->kind == A_SUM) {
        if (!info_of(c, a)->is_refined) {
            r = refined_range(c, a);
            c->info[a->id].refined = r; // its products may have made nodes
            c->info[a->id].is_refined = true;
        }
        r = info_of(c, a)->refined;
    }
    *lo = r.lo;
    *hi = r.hi;
}

typedef struct {
    const Arith *const *var;
    int n;
} Vars;

static bool mentions_any(const Arith *a, const Vars *vars)
{
    for (int i = 0; i < vars->n; i++)
        if (arith_mentions(a, vars->var[i]))
            return true;
    return false;
}

static const Arith *bound(ArithCtx *c, const Arith *a, const Vars *vars, bool upper);

static const Arith *bound_atom(ArithCtx *c, const Arith *x, const Vars *vars, bool upper)
{
    if (x->kind == A_VAR)
        return upper ? x->hi : x->lo;
    if (x->kind == A_MOD && !upper)
        return arith_const(c, 0);
    const Arith *e = x->term[0].arg, *d = x->term[1].arg;
    if (x->kind == A_MOD) {
        const Arith *top = bound(c, d, vars, true);
        return top ? arith_addc(c, top, -1) : NULL;
    }
    const Arith *first = bound(c, e, vars, upper);
    const Arith *second =
        x->kind == A_DIV && mentions_any(d, vars) ? NULL : bound(c, d, vars, upper);
    if (!first || !second)
        return NULL;
    return x->kind == A_DIV   ? arith_div(c, first, second)
           : x->kind == A_MIN ? arith_min(c, first, second)
                              : arith_max(c, first, second);
}

// The atom of p created last that mentions a variable to be rid of.
static const Arith *top_mentioning(Poly p, const Vars *vars)
{
    const Arith *x = poly_top(p, UINT32_MAX);
    while (x && !mentions_any(x, vars))
        x = poly_top(p, x->id);
    return x;
}

static Poly bound_step(ArithCtx *c, Poly p, const Arith *x, const Vars *vars, bool upper,
                       bool *ok)
{
    Poly a, b;
    *ok = false;
    poly_isolate(c, p, x, &a, &b);
    bool positive = poly_nonneg(c, a);
    if (!positive && !poly_nonneg(c, poly_scale(c, a, -1)))
        return p;
    const Arith *end = bound_atom(c, x, vars, upper == positive);
    if (!end)
        return p;
    *ok = true;
    return poly_fold(c, poly_add(c, poly_mul(c, a, poly_of(end)), b, 1));
}

static const Arith *bound(ArithCtx *c, const Arith *a, const Vars *vars, bool upper)
{
    ArenaMark mark = arena_mark(c->scratch);
    Poly p = poly_of(a);
    bool ok = true;
    for (const Arith *x; ok && (x = top_mentioning(p, vars));)
        p = bound_step(c, p, x, vars, upper, &ok);
    const Arith *end = ok ? poly_node(c, p) : NULL;
    arena_reset(c->scratch, mark);
    return end;
}

static const Arith *bound_safely(ArithCtx *c, const Arith *a, const Vars *vars, bool upper)
{
    bool overflow = c->overflow;
    c->overflow = false;
    const Arith *end = bound(c, a, vars, upper);
    if (c->overflow)
        end = NULL;
    c->overflow = overflow;
    return end;
}

const Arith *arith_lower_bound(ArithCtx *c, const Arith *a, const Arith *const *var, int n)
{
    return bound_safely(c, a, &(Vars){var, n}, false);
}
