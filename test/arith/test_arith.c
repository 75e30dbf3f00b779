// SPDX-License-Identifier: Apache-2.0
//
// arith: random expressions against their values at every point of small ranges:
// constructors, ranges, proofs, bounds, substitution and text, with and without facts.
// FW_LONG in the environment makes it a long run.
#include "arith/arith.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Random expressions ----------------------------------------------------------------

enum { N_VARS = 6, MAX_POINTS = 2048, POOL = 36, LIMIT = 1000000 };

typedef struct {
    ArithCtx *c;
    const Arith *var[N_VARS];
    int n_points;
    int64_t at[N_VARS][MAX_POINTS];
    bool holds[MAX_POINTS]; // the facts, at this point
} World;

// An expression and what it must be worth at every point.
typedef struct {
    const Arith *a;
    int64_t *value;
} Sample;

typedef struct {
    const World *world;
    int point;
} At;

static bool look_up(void *user, const Arith *var, int64_t *value)
{
    const At *at = user;
    for (int v = 0; v < N_VARS; v++) {
        if (at->world->var[v] == var) {
            *value = at->world->at[v][at->point];
            return true;
        }
    }
    return false;
}

static int64_t value_at(const World *w, const Arith *a, int point)
{
    int64_t value = 0;
    At at = {w, point};
    bool ok = arith_eval(a, look_up, &at, &value);
    if (!ok) {
        Buf text = buf_new();
        arith_print(&text, a);
        print_error("no value: %s\n", text.text);
        buf_release(&text);
    }
    assert_true(ok);
    return value;
}

static void add_points(World *w, int depth, int64_t *chosen)
{
    if (depth == N_VARS) {
        assert_true(w->n_points < MAX_POINTS);
        for (int v = 0; v < N_VARS; v++)
            w->at[v][w->n_points] = chosen[v];
        w->holds[w->n_points++] = true;
        return;
    }
    // What the variables of new_world are bounded by, said again in C.
    int64_t n = chosen[0], lo[] = {1, 0, 0, -2, 0, 0}, hi[] = {3, n - 1, 5, 1, n + 1, 8};
    int64_t step = depth == 5 ? 4 : 1;
    for (int64_t x = lo[depth]; x <= hi[depth]; x += step) {
        chosen[depth] = x;
        add_points(w, depth + 1, chosen);
    }
}

static World *new_world(void)
{
    World *w = xcalloc(1, sizeof *w);
    ArithCtx *c = w->c = arith_ctx_new();
    const Arith *zero = arith_const(c, 0);
    const Arith *n = arith_var(c, "n", arith_const(c, 1), arith_const(c, 3));
    w->var[0] = n;
    w->var[1] = arith_var(c, "j", zero, arith_addc(c, n, -1));
    w->var[2] = arith_var(c, "x", zero, arith_const(c, 5));
    w->var[3] = arith_var(c, "y", arith_const(c, -2), arith_const(c, 1));
    w->var[4] = arith_var(c, "k", zero, arith_addc(c, n, 1));
    w->var[5] = arith_var_multiple(c, "m", zero, arith_const(c, 8), 4);
    add_points(w, 0, (int64_t[N_VARS]){0});
    return w;
}

static void free_world(World *w)
{
    arith_ctx_free(w->c);
    free(w);
}

static int64_t floor_of(int64_t a, int64_t d)
{
    int64_t q = a / d;
    return q * d > a ? q - 1 : q;
}

static int64_t apply(int op, int64_t a, int64_t b)
{
    switch (op) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return floor_of(a, b);
    case 4: return a - b * floor_of(a, b);
    case 5: return MIN(a, b);
    case 6: return MAX(a, b);
    default: return floor_of(a + b - 1, b);
    }
}

static const Arith *build(ArithCtx *c, int op, const Arith *a, const Arith *b)
{
    const Arith *(*const make[])(ArithCtx *, const Arith *, const Arith *) = {
        arith_add, arith_sub, arith_mul, arith_div,
        arith_mod, arith_min, arith_max, arith_ceil_div};
    return make[op](c, a, b);
}

static void fail_at(const World *w, const char *what, const Arith *a, const Arith *b,
                    int point)
{
    Buf text = buf_new();
    arith_print(&text, a);
    if (b) {
        buf_puts(&text, " and ");
        arith_print(&text, b);
    }
    buf_puts(&text, " at");
    for (int v = 0; v < N_VARS; v++)
        buf_printf(&text, " %s=%lld", w->var[v]->name, (long long)w->at[v][point]);
    print_error("%s: %s\n", what, text.text);
    buf_release(&text);
    fail();
}

#define EXPECT(test, what, a, b, point)                                                    \
    do {                                                                                   \
        if (!(test))                                                                       \
            fail_at(w, what, a, b, point);                                                 \
    } while (0)

static void check_value(const World *w, Sample s)
{
    int64_t lo, hi, multiple = arith_multiple(w->c, s.a);
    bool nonneg = arith_nonneg(w->c, s.a);
    arith_range(w->c, s.a, &lo, &hi);
    for (int p = 0; p < w->n_points; p++) {
        if (!w->holds[p])
            continue;
        int64_t v = s.value[p];
        EXPECT(value_at(w, s.a, p) == v, "value", s.a, NULL, p);
        EXPECT(lo <= v && v <= hi, "range", s.a, NULL, p);
        EXPECT(!nonneg || v >= 0, "nonneg", s.a, NULL, p);
        EXPECT(multiple ? v % multiple == 0 : v == 0, "multiple", s.a, NULL, p);
    }
}

static void check_order(const World *w, Sample s, Sample t)
{
    bool le = arith_le(w->c, s.a, t.a), lt = arith_lt(w->c, s.a, t.a);
    bool equal = arith_equal(w->c, s.a, t.a);
    for (int p = 0; p < w->n_points; p++) {
        if (!w->holds[p])
            continue;
        EXPECT(!le || s.value[p] <= t.value[p], "le", s.a, t.a, p);
        EXPECT(!lt || s.value[p] < t.value[p], "lt", s.a, t.a, p);
        EXPECT(!equal || s.value[p] == t.value[p], "equal", s.a, t.a, p);
    }
}

static void check_bounds(const World *w, Sample s, Rng *rng)
{
    const Arith *var[2] = {w->var[rng_below(rng, N_VARS)], w->var[rng_below(rng, N_VARS)]};
    const Arith *lo = arith_lower_bound(w->c, s.a, var, 2);
    const Arith *minus = arith_sub(w->c, arith_const(w->c, 0), s.a);
    const Arith *hi = arith_lower_bound(w->c, minus, var, 2); // of -a
    for (int v = 0; v < 2; v++) {
        assert_false(lo && arith_mentions(lo, var[v]));
        assert_false(hi && arith_mentions(hi, var[v]));
    }
    for (int p = 0; p < w->n_points; p++) {
        if (!w->holds[p])
            continue;
        EXPECT(!lo || value_at(w, lo, p) <= s.value[p], "lower bound", s.a, lo, p);
        EXPECT(!hi || value_at(w, hi, p) <= -s.value[p], "upper bound", s.a, hi, p);
    }
}

static void check_rebuilt(const World *w, Sample s, Sample by, Rng *rng)
{
    int v = (int)rng_below(rng, N_VARS);
    const Arith *again = arith_simplify(w->c, s.a);
    const Arith *back = arith_subst(w->c, s.a, w->var[v], by.a);
    const Arith *image[] = {again, back};
    Buf text = buf_new();
    arith_print(&text, s.a);
    const Arith *parsed = arith_parse(w->c, text.text);
    if (parsed != s.a && arith_facts(w->c) == 0)
        print_error("not read back: %s\n", text.text);
    assert_true(parsed && (parsed == s.a || arith_facts(w->c) > 0));
    buf_release(&text);
    for (int p = 0; p < w->n_points; p++)
        if (w->holds[p])
            EXPECT(value_at(w, image[0], p) == s.value[p], "simplify", s.a, again, p);
    // Where the substituted value is the variable's own, nothing changes.
    bool same = !arith_overflowed(w->c);
    for (int p = 0; p < w->n_points && same; p++)
        if (w->holds[p] && by.value[p] == w->at[v][p])
            EXPECT(value_at(w, back, p) == s.value[p], "subst", s.a, by.a, p);
}

static bool usable_values(const World *w, int op, const Sample *a, const Sample *b,
                          int64_t *value)
{
    bool divides = op == 3 || op == 4 || op == 7;
    for (int p = 0; p < w->n_points; p++) {
        if (divides && b->value[p] < 1)
            return false;
        value[p] = apply(op, a->value[p], b->value[p]);
        if (llabs(value[p]) > LIMIT)
            return false;
    }
    return true;
}

static Sample leaf(const World *w, Rng *rng, int64_t *value)
{
    int v = (int)rng_below(rng, N_VARS + 3);
    int64_t k = v < N_VARS ? 0 : (int64_t)rng_below(rng, 14) - 4;
    for (int p = 0; p < w->n_points; p++)
        value[p] = v < N_VARS ? w->at[v][p] : k;
    return (Sample){v < N_VARS ? w->var[v] : arith_const(w->c, k), value};
}

// Leaves, then combinations of what is there already; the last few are deep.
static int fill(const World *w, Rng *rng, Sample *pool, int64_t *values)
{
    static const int op_of[] = {0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6, 7};
    int n = 0;
    for (int tries = 0; n < POOL && tries < 10 * POOL; tries++) {
        int64_t *value = values + (size_t)n * MAX_POINTS;
        if (n < 10) {
            pool[n++] = leaf(w, rng, value);
            continue;
        }
        const Sample *a = &pool[rng_below(rng, (uint64_t)n)];
        const Sample *b = &pool[rng_below(rng, (uint64_t)n)];
        int op = op_of[rng_below(rng, COUNTOF(op_of))];
        if (!usable_values(w, op, a, b, value))
            continue;
        pool[n++] = (Sample){build(w->c, op, a->a, b->a), value};
    }
    return n;
}

// Contradictory facts would allow everything, so those that hold nowhere are left out.
static void assume(World *w, const Sample *fact)
{
    int left = 0;
    for (int p = 0; p < w->n_points; p++)
        left += w->holds[p] && fact->value[p] >= 0;
    if (left == 0)
        return;
    arith_assume(w->c, fact->a);
    for (int p = 0; p < w->n_points; p++)
        w->holds[p] = w->holds[p] && fact->value[p] >= 0;
}

static void random_rounds(uint64_t seed, int rounds, bool facts)
{
    World *w = new_world();
    Sample pool[POOL];
    int64_t *values = xcalloc((size_t)POOL * MAX_POINTS, sizeof *values);
    Rng rng = rng_new(seed);
    for (int round = 0; round < rounds; round++) {
        ArithMark mark = arith_mark(w->c);
        int n = fill(w, &rng, pool, values);
        for (int i = 0; facts && i < 2; i++)
            assume(w, &pool[10 + rng_below(&rng, (uint64_t)n - 10)]);
        if (facts)
            n = fill(w, &rng, pool, values);
        for (int i = 10; i < n; i++) {
            check_value(w, pool[i]);
            Sample other = pool[rng_below(&rng, (uint64_t)n)];
            check_order(w, pool[i], other);
            check_bounds(w, pool[i], &rng);
        }
        assert_false(arith_overflowed(w->c));
        for (int i = 10; i < n; i++)
            check_rebuilt(w, pool[i], pool[rng_below(&rng, 10)], &rng);
        arith_release(w->c, mark);
        memset(w->holds, 1, sizeof w->holds);
    }
    free(values);
    free_world(w);
}

static void test_random(void **state)
{
    (void)state;
    random_rounds(1, getenv("FW_LONG") ? 3000 : 40, false);
}

static void test_random_facts(void **state)
{
    (void)state;
    random_rounds(2, getenv("FW_LONG") ? 3000 : 40, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_random_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
