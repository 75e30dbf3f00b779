// SPDX-License-Identifier: Apache-2.0
//
// arith: shapes that must fold, text, pointer equality, divisibility, facts, symbolic
// bounds, overflow, release, and the time a stencil's indices take (printed only).
#include "arith/arith.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const Arith *parse(ArithCtx *c, const char *text)
{
    const Arith *a = arith_parse(c, text);
    if (!a)
        print_error("cannot read %s\n", text);
    assert_non_null(a);
    return a;
}

static const Arith *loop(ArithCtx *c, const char *name, const char *end)
{
    return arith_var(c, name, arith_const(c, 0), arith_addc(c, parse(c, end), -1));
}

// Sizes N M K c n d; loops below them; t a thread, y and z small, u unknown.
static ArithCtx *new_world(void)
{
    static const char *const size[] = {"N", "M", "K", "c", "n", "d"};
    static const char *const loops[][2] = {
        {"i", "N"},         {"j", "M"},     {"k", "K"},     {"p", "c"},
        {"q", "n"},         {"h", "c + n"}, {"l", "2 + n"}, {"r", "c + n + d"},
        {"e", "c*(c + n)"}, {"t", "1024"},  {"y", "4"},     {"z", "2"}};
    ArithCtx *c = arith_ctx_new();
    for (int i = 0; i < COUNTOF(size); i++)
        arith_size(c, size[i]);
    for (int i = 0; i < COUNTOF(loops); i++)
        loop(c, loops[i][0], loops[i][1]);
    arith_var(c, "u", NULL, NULL);
    arith_var(c, "v", NULL, NULL);
    arith_var_multiple(c, "m4", arith_const(c, 4), NULL, 4);
    arith_var_multiple(c, "m8", arith_const(c, 8), NULL, 8);
    return c;
}

typedef struct {
    const char *text, *expected;
} Row;

static void check_rows(ArithCtx *c, const Row *row, int n)
{
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        const Arith *a = parse(c, row[i].text), *b = parse(c, row[i].expected);
        Buf text = buf_new();
        arith_print(&text, a);
        if (strcmp(text.text, row[i].expected) != 0 || a != b) {
            print_error("%s: %s, expected %s\n", row[i].text, text.text, row[i].expected);
            wrong++;
        }
        buf_release(&text);
    }
    assert_int_equal(wrong, 0);
    assert_false(arith_overflowed(c));
}

static const Row identity[] = {
    {"u + 0*v", "u"},
    {"u*v - v*u", "0"},
    {"u/1", "u"},
    {"u%1", "0"},
    {"0/N", "0"},
    {"7/2", "3"},
    {"-7/2", "-4"},
    {"-7%2", "1"},
    {"(4*u + 3)/4", "u"},
    {"(4*u + 3)%4", "3"},
    {"(8*u + y)/4", "2*u"},
    {"(8*u + y)%4", "y"},
    {"(8*u + 4*v + t)/4", "2*u + v + t/4"},
    {"(8*u + 4*v + t)%4", "t%4"},
    {"(4*u + 6*v)/8", "(2*u + 3*v)/4"},
    {"(4*u + 6*v + 1)/8", "(2*u + 3*v)/4"},
    {"(4*u + 6*v)%8", "2*((2*u + 3*v)%4)"},
    {"(4*u + 6*v + 1)%8", "2*((2*u + 3*v)%4) + 1"},
    {"(4*u + y)/8", "u/2"},
    {"(4*u + y)%8", "y + 4*(u%2)"},
    {"(K*(4*u + y) + k)%(8*K)", "k + K*y + 4*K*(u%2)"},
    {"u*i/(u*v)", "i*u/(u*v)"},
    {"8*(u/4) + u%4", "8*(u/4) + u%4"},
    {"u/3/5", "u/15"},
    {"(u/3 + 2)/5", "(u + 6)/15"},
    {"u/N/M", "u/(N*M)"},
    {"u%7/7", "0"},
    {"u%N/N", "0"},
    {"u%12%4", "u%4"},
    {"u%(N*M)%M", "u%M"},
    {"(u%12 + v)%4", "(u + v)%4"},
    {"u%12/4", "u/4%3"},
    {"4*(u/4) + u%4", "u"},
    {"12*(u/4) + 3*(u%4) + v", "3*u + v"},
    {"N*(u/N) + u%N", "u"},
    {"M*N*(u/N) + M*(u%N)", "M*u"},
    {"4*(u/4%3) + u%4", "u%12"},
    {"4*((t%32)/4) + t%32%4", "t%32"},
    {"(u - 1)/4", "(u + 3)/4 - 1"},
    {"(u - 1)%4", "(u + 3)%4"},
    {"(-u)%1", "0"},
    {"(y + 8)%4", "y"},
    {"(y - 8)/4", "-2"},
    {"(-y)/4", "(-y)/4"},
    {"(3 - y)/4", "0"},
    {"(2 + 2*z)/4", "z"},
    {"(2 + 2*u)/4", "(u + 1)/2"},
    {"(3*z + 1)/4", "z"},
    {"t/1024", "0"},
    {"t%1024", "t"},
    {"(t + 1024)%1024", "t"},
    {"(t + 2048)/1024", "2"},
    {"-1/N", "-1"},
    {"(N - 1)/N", "0"},
    {"(N + N - 1)/N", "1"},
    {"N*M/N", "M"},
    {"N*M%N", "0"},
    {"4*N*u/(2*N)", "2*u"},
    {"2*u/(2*N)", "u/N"},
    {"2*u%(2*N)", "2*(u%N)"},
    {"(M*u + j)/(M*N)", "u/N"},
    {"(M*u + j)%(M*N)", "j + M*(u%N)"},
};

// A tile of c and a halo of n: h < c + n, r < c + n + d.
static const Row halo[] = {
    {"((c + n)*u + h)/(c + n)", "u"},
    {"((c + n)*u + h)%(c + n)", "h"},
    {"(u*(2 + n) + l)/(2 + n)", "u"},
    {"(u*(2 + n) + l)%(2 + n)", "l"},
    {"(c*u + n*u)/(c + n)", "u"},
    {"(c*u + n*u)%(c + n)", "0"},
    {"(n*(c + n) + h)/(c + n)", "n"},
    {"(n*(c + n) + p)/(c + n)", "n"},
    {"(c*(c + n) + q)%(c + n)", "q"},
    {"((c + n)*u + (c + n)*v + h)%(c + n)", "h"},
    {"((c + n)*u + (c + n)*v + h)/(c + n)", "u + v"},
    {"(N*(c + n)*u + M*(c + n) + h)/(c + n)", "M + N*u"},
    {"(N*(c + n)*u + M*(c + n) + h)%(c + n)", "h"},
    {"((c + n)*u - 1)/(c + n)", "u - 1"},
    {"(-1 + (c + n)*u)%(c + n)", "c + n - 1"},
    {"(-1 + c + n)/(c + n)", "0"},
    {"(-1 + c + n)%(c + n)", "c + n - 1"},
    {"(c + n)/(c + n)", "1"},
    {"(c + n + h)/(c + n)", "1"},
    {"(c + n + h)%(c + n)", "h"},
    {"(c + p)/(c + n + c)", "0"},
    {"((c + n + d)*u + r)/(c + n + d)", "u"},
    {"((c + n + d)*u + r)%(c + n + d)", "r"},
    {"((c + n)*(c + n)*u + (c + n)*h + q)/(c + n)/(c + n)", "u"},
    {"(c*(c + n)*u + e)/(c*(c + n))", "u"},
    {"(c*(c + n)*u + e)%(c*(c + n))", "e"},
    {"(c*(c + n)*u + c*h + p)/(c*(c + n))", "u"},
    {"(c*((c + n)*u + h) + p)/c%(c + n)", "h"},
    {"(2*c + 2*n + 2*h)/(2*(c + n))", "1"},
    {"h/(c + n)", "0"},
    {"h%(c + n)", "h"},
    {"((c + n)*(u/(c + n)) + u%(c + n))", "u"},
    {"((c - n)*u + (2*n)*u)/(c + n)", "u"},
};

// split and join, flattening and its inverse.
static const Row layout[] = {
    {"(u*N + i)/N", "u"},
    {"(u*N + i)%N", "i"},
    {"(i*M + j)/M", "i"},
    {"(i*M + j)%M", "j"},
    {"(i*M + j)/M*M + (i*M + j)%M", "j + M*i"},
    {"((i*M + j)*K + k)/K", "j + M*i"},
    {"((i*M + j)*K + k)/K%M", "j"},
    {"((i*M + j)*K + k)/K/M", "i"},
    {"((i*M + j)*K + k)/(M*K)", "i"},
    {"((i*M + j)*K + k)%(M*K)", "k + K*j"},
    {"((i*M + j)*K + k)%K", "k"},
    {"((i*M + j)*K + k)/(N*M*K)", "0"},
    {"((i*M + j)*K + k)%(N*M*K)", "k + K*j + M*K*i"},
    {"t/32*32 + t%32", "t"},
    {"(t/32*32 + t%32)/32", "t/32"},
    {"(32*(t/32) + t%32)*N", "N*t"},
    {"(4*(t/4) + t%4)%4", "t%4"},
    {"(N - 1 - i)/N", "0"},
    {"(i + N)%N", "i"},
    {"(i - N)/N", "-1"},
    {"(i - N)%N", "i"},
};

static const Row extremes[] = {
    {"min(u, u)", "u"},
    {"min(i, N)", "i"},
    {"min(i, N - 1)", "i"},
    {"max(i, N - 1)", "N - 1"},
    {"max(i, 0)", "i"},
    {"min(i, -1)", "-1"},
    {"max(i - 1, 0)", "max(i, 1) - 1"},
    {"min(u + 1, v + 1)", "min(v, u) + 1"},
    {"min(u + 3*i, v + 3*i)", "3*i + min(v, u)"},
    {"min(min(u, v), v)", "min(v, u)"},
    {"max(v, max(u, v))", "max(v, u)"},
    {"min(max(u, v), v)", "v"},
    {"max(min(u, v), u)", "u"},
    {"min(min(u, 5), 3)", "min(u, 3)"},
    {"min(min(u, 3), 5)", "min(u, 3)"},
    {"max(max(u, 5), 3)", "max(u, 5)"},
    {"max(max(u, 3), 5)", "max(u, 5)"},
    {"max(min(max(u, 0), N - 1), 0)", "min(max(u, 0), N - 1)"},
    {"min(u%N, N)", "u%N"},
    {"min(t/4, 255)", "t/4"},
    {"max(4*(u/4), u - 3)", "4*(u/4)"},
    {"min(i*M + j, N*M - 1)", "j + M*i"},
    {"min(u, v) - min(v, u)", "0"},
    {"min(4*u + y - 1, N - 1)", "min(y + 4*u, N) - 1"},
    {"min(u + 1, N - 1)", "min(u, N - 2) + 1"},
};

static const Row text[] = {
    {"4*i+j-1", "4*i + j - 1"},
    {"i*(N)", "N*i"},
    {"(u+1)/N", "(u + 1)/N"},
    {"(u+1)%N", "(u + 1)%N"},
    {"-u", "-u"},
    {"1 - u", "-u + 1"},
    {"N - u", "N - u"},
    {"-(u/3)", "-(u/3)"},
    {"2*(u/3)", "2*(u/3)"},
    {"u/3*N", "N*(u/3)"},
    {"u/(v*v)", "u/(v*v)"},
    {"u/(2*v)", "u/(2*v)"},
    {"u%(v + 1)", "u%(v + 1)"},
    {"--u", "u"},
    {"- 3", "-3"},
    {"max(u, v/3%4)", "max(v/3%4, u)"},
    {"9223372036854775807", "9223372036854775807"},
    {"-9223372036854775808", "-9223372036854775808"},
    {"-9223372036854775808*u", "-9223372036854775808*u"},
    {"min", "min"},
    {"u/0", "u/0"},
};

static void test_tables(void **state)
{
    static const struct {
        const Row *row;
        int n;
    } table[] = {{identity, COUNTOF(identity)},
                 {halo, COUNTOF(halo)},
                 {layout, COUNTOF(layout)},
                 {extremes, COUNTOF(extremes)},
                 {text, COUNTOF(text)}};
    (void)state;
    for (int i = 0; i < COUNTOF(table); i++) {
        ArithCtx *c = new_world();
        check_rows(c, table[i].row, table[i].n);
        arith_ctx_free(c);
    }
}

static void test_syntax(void **state)
{
    static const char *const bad[] = {"",    "+",      "1 +",      "(1",
                                      "1)",  "min(1)", "max(1, 2", "2 3",
                                      "a b", "1 $ 2",  "*a",       "9223372036854775808"};
    ArithCtx *c = arith_ctx_new();
    (void)state;
    for (int i = 0; i < COUNTOF(bad); i++)
        assert_null(arith_parse(c, bad[i]));
    Buf deep = buf_new();
    for (int i = 0; i < 100000; i++)
        buf_putc(&deep, i % 2 ? '-' : '(');
    assert_null(arith_parse(c, deep.text));
    buf_release(&deep);
    arith_ctx_free(c);
}

static void test_same_pointer(void **state)
{
    static const char *const same[][3] = {
        {"u + v + i", "i + (v + u)", "(u + i) + v"},
        {"(u + v)*(u - v)", "u*u - v*v", "-(v - u)*(u + v)"},
        {"(u + 1)*(v + 2)*(i + 3)", "(i + 3)*(v + 2)*(u + 1)", "(u + 1)*((i + 3)*(v + 2))"},
        {"2*(u + v) - u", "u + 2*v", "v + u + v"},
        {"(u + 4)/4", "1 + u/4", "u/4 + 1"},
        {"min(u, v)", "min(v, u)", "min(v + 1, u + 1) - 1"},
        {"N*(u/N) + v", "v + (u/N)*N", "u - u%N + v"},
    };
    ArithCtx *c = new_world();
    (void)state;
    for (int i = 0; i < COUNTOF(same); i++) {
        const Arith *a = parse(c, same[i][0]);
        assert_ptr_equal(a, parse(c, same[i][1]));
        if (i + 1 < COUNTOF(same))
            assert_ptr_equal(a, parse(c, same[i][2]));
        else
            assert_true(arith_equal(c, a, parse(c, same[i][2])));
    }
    assert_ptr_equal(arith_size(c, "N"), arith_size(c, "N"));
    assert_ptr_not_equal(arith_var(c, "w", NULL, NULL), arith_var(c, "w", NULL, NULL));
    const Arith *three = arith_const(c, 3);
    assert_ptr_equal(arith_var(c, "w", three, three), three);
    arith_ctx_free(c);
}

static void test_multiples(void **state)
{
    static const Row row[] = {
        {"m8%4", "0"},
        {"m4%4", "0"},
        {"4*(m4/4)", "m4"},
        {"(m4 + 3)/4", "m4/4"},
        {"(m4 + y)/4", "m4/4"},
        {"(m4 + y)%4", "y"},
        {"(m4 + 3)/8", "m4/8"},
        {"(m4 + 3)%8", "m4%8 + 3"},
        {"(2*m4 + m8)%8", "0"},
        {"(m4*u + 5)%4", "1"},
        {"8*((m8 + 7)/8)", "m8"},
        {"max(m4, m4/4*4)", "m4"},
    };
    ArithCtx *c = new_world();
    (void)state;
    check_rows(c, row, COUNTOF(row));
    assert_int_equal(arith_multiple(c, parse(c, "6*u + 9*v + 12")), 3);
    assert_int_equal(arith_multiple(c, parse(c, "m8 - 4*u")), 4);
    assert_int_equal(arith_multiple(c, parse(c, "0")), 0);
    assert_int_equal(arith_multiple(c, parse(c, "m8%12")), 4);
    assert_true(arith_le(c, parse(c, "m8%12"), parse(c, "8")));
    arith_ctx_free(c);
}

static void test_facts(void **state)
{
    ArithCtx *c = new_world();
    const Arith *clamp = parse(c, "min(4*u + y, N - 1)");
    (void)state;
    assert_ptr_not_equal(clamp, parse(c, "4*u + y"));
    arith_assume(c, parse(c, "N - 1 - (4*u + y)"));
    assert_int_equal(arith_facts(c), 1);
    assert_ptr_equal(arith_simplify(c, clamp), parse(c, "4*u + y"));
    assert_ptr_equal(parse(c, "min(4*u + y, N - 1)"), parse(c, "4*u + y"));
    assert_ptr_equal(parse(c, "min(4*u + y, 2*N)"), parse(c, "4*u + y"));
    assert_true(arith_mentions(parse(c, "min(4*u + y + 1, N - 1)"), parse(c, "N")));
    arith_facts_reset(c, 0);
    assert_ptr_equal(arith_simplify(c, clamp), clamp);

    // One guard for a vector of four; then two guards for a flat index.
    arith_assume(c, parse(c, "N - 4 - 4*u"));
    assert_true(arith_lt(c, parse(c, "4*u + y"), parse(c, "N")));
    assert_true(arith_lt(c, parse(c, "4*u + t%4"), parse(c, "N")));
    arith_facts_reset(c, 0);
    arith_assume(c, parse(c, "N - 1 - u"));
    arith_assume(c, parse(c, "M - 1 - v"));
    assert_true(arith_lt(c, parse(c, "u*M + v"), parse(c, "N*M")));
    assert_false(arith_nonneg(c, parse(c, "u*M + v")));
    arith_assume(c, parse(c, "v"));
    assert_ptr_equal(parse(c, "(u*M + v)/M"), parse(c, "u"));
    assert_ptr_equal(parse(c, "(u*M + v)%M"), parse(c, "v"));
    arith_facts_reset(c, 2);
    assert_int_equal(parse(c, "(u*M + v)%M")->kind, A_MOD);

    // A fact times what may be negative proves nothing.
    arith_assume(c, parse(c, "u - 1000000"));
    assert_true(arith_nonneg(c, parse(c, "u*i - 1000000*i")));
    assert_false(arith_nonneg(c, parse(c, "u*v - 1000000*v")));
    arith_facts_reset(c, 0);

    // What exceeds a fact is found whatever the others lead to.
    static const char squares[] =
        "59 - 12*i - 6*j - 4*k - 36*i*i - 36*i*j - 9*j*j - 24*i*k - 12*j*k - 4*k*k";
    arith_assume(c, parse(c, "-2*k"));
    arith_assume(c, parse(c, "54 - 36*i*i - 36*i*j - 9*j*j"));
    assert_false(arith_nonneg(c, parse(c, squares)));
    arith_assume(c, parse(c, squares));
    assert_true(arith_nonneg(c, parse(c, squares)));
    arith_ctx_free(c);
}

static void test_proofs(void **state)
{
    static const char *const nonneg[] = {
        "N - 1 - i",
        "N*M - 1 - i*M - j",
        "N*M*K - 1 - (i*M + j)*K - k",
        "N - 1 - u%N",
        "N*M - 1 - u%(N*M)",
        "(N - 1)/32 - i/32",
        "u - 4*(u/4)",
        "3 - u + 4*(u/4)",
        "u*u",
        "N*N*M - i*i*j",
        "N*N - 1",
        "max(u, v) - min(u, v)",
        "min(N, M) - 1",
        "N + M - max(N, M)",
        "(N + 3)/4 - 1 - i/4",
        "(N*M - 1)/256 - (i*M + j)/256",
        "4*N - 3",
        "(N + 31)/32*32 - N",
        "max(u, 0)",
        "2*N - i - 1 - min(i, 3)",
    };
    static const char *const not_nonneg[] = {"u",   "i - 1",   "N - 2",  "N - M",
                                             "u*v", "i*M - j", "-(u*u)", "min(u, N)"};
    ArithCtx *c = new_world();
    (void)state;
    for (int i = 0; i < COUNTOF(nonneg); i++) {
        if (!arith_nonneg(c, parse(c, nonneg[i])))
            print_error("not proved: %s\n", nonneg[i]);
        assert_true(arith_nonneg(c, parse(c, nonneg[i])));
    }
    for (int i = 0; i < COUNTOF(not_nonneg); i++)
        assert_false(arith_nonneg(c, parse(c, not_nonneg[i])));
    arith_ctx_free(c);
}

static void test_symbolic_bounds(void **state)
{
    static const char *const row[][4] = {
        {"4*i + j", "i", "j", "4*N - 4 + j"},
        {"i*M + j", "i", "j", "N*M - 1"},
        {"N - 1 - i", "i", "i", "N - 1"},
        {"(i + 1)/4", "i", "i", "N/4"},
        {"min(i, j)", "i", "j", "min(N, M) - 1"},
        {"u%(N + 1)", "u", "u", "N"},
        {"max(i - 3, v)", "i", "i", "max(N - 4, v)"},
    };
    ArithCtx *c = new_world();
    (void)state;
    for (int i = 0; i < COUNTOF(row); i++) {
        const Arith *var[2] = {parse(c, row[i][1]), parse(c, row[i][2])};
        int n = i == 0 ? 1 : 2;
        const Arith *none = arith_const(c, 0);
        const Arith *minus = arith_sub(c, none, parse(c, row[i][0]));
        const Arith *hi = arith_sub(c, none, arith_lower_bound(c, minus, var, n));
        assert_ptr_equal(hi, parse(c, row[i][3]));
    }
    const Arith *i = parse(c, "i"), *u = parse(c, "u");
    assert_ptr_equal(arith_lower_bound(c, parse(c, "N - 1 - i"), &i, 1), parse(c, "0"));
    assert_null(arith_lower_bound(c, parse(c, "N + u"), &u, 1));
    assert_null(arith_lower_bound(c, parse(c, "i*u"), &i, 1));
    int64_t lo, hi;
    arith_range(c, parse(c, "N - i"), &lo, &hi);
    assert_int_equal(lo, 1);
    assert_int_equal(hi, INT32_MAX);
    arith_range(c, u, &lo, &hi);
    assert_true(lo == INT64_MIN && hi == INT64_MAX);
    arith_ctx_free(c);
}

static void test_subst(void **state)
{
    ArithCtx *c = new_world();
    const Arith *u = parse(c, "u");
    (void)state;
    const Arith *a = parse(c, "(4*u + v)/8*M + u%4");
    assert_ptr_equal(arith_subst(c, a, u, parse(c, "2*v")), parse(c, "9*v/8*M + 2*(v%2)"));
    assert_ptr_equal(arith_subst(c, a, u, u), a);
    assert_ptr_equal(arith_subst(c, a, arith_const(c, 4), u), a);
    assert_true(arith_mentions(a, u));
    assert_false(arith_mentions(a, parse(c, "N")));
    arith_ctx_free(c);
}

static void test_overflow(void **state)
{
    ArithCtx *c = new_world();
    (void)state;
    arith_addc(c, arith_const(c, INT64_MAX), 1);
    assert_true(arith_overflowed(c));
    assert_false(arith_overflowed(c));
    arith_mulc(c, parse(c, "9223372036854775807*u"), 2);
    assert_true(arith_overflowed(c));
    // Inside a proof it only means that nothing is proved.
    assert_false(arith_le(c, parse(c, "9223372036854775807*u"),
                          parse(c, "-9223372036854775807*u - 3*v")));
    assert_false(arith_overflowed(c));
    arith_ctx_free(c);
}

// What lowering a five-point stencil on a tile builds for one candidate.
static int stencil(ArithCtx *c, int64_t tile, int64_t vector)
{
    const Arith *N = arith_size(c, "N"), *M = arith_size(c, "M"), *zero = arith_const(c, 0);
    const Arith *w = arith_const(c, tile), *v = arith_const(c, vector);
    const Arith *rows = arith_ceil_div(c, N, w);
    const Arith *g = arith_var(c, "g", zero, arith_addc(c, rows, -1));
    const Arith *l = arith_var(c, "l", zero, arith_const(c, tile - 1));
    const Arith *b = arith_var(c, "b", zero,
                               arith_addc(c, arith_ceil_div(c, M, arith_mul(c, w, v)), -1));
    const Arith *lane = arith_var(c, "e", zero, arith_const(c, vector - 1));
    const Arith *row = arith_add(c, arith_mul(c, g, w), l);
    const Arith *col =
        arith_add(c, arith_mul(c, arith_add(c, arith_mul(c, b, w), l), v), lane);
    arith_assume(c, arith_addc(c, arith_sub(c, N, row), -1));
    arith_assume(c, arith_addc(c, arith_sub(c, M, col), -1));
    int made = 0;
    for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++, made++) {
            const Arith *y = arith_max(c, arith_addc(c, row, dy), zero);
            const Arith *x = arith_max(c, arith_addc(c, col, dx), zero);
            y = arith_min(c, y, arith_addc(c, N, -1));
            x = arith_min(c, x, arith_addc(c, M, -1));
            const Arith *flat = arith_add(c, arith_mul(c, y, M), x);
            assert_ptr_equal(arith_div(c, flat, M), y);
            assert_ptr_equal(arith_mod(c, flat, M), x);
        }
    }
    return made;
}

static void test_release(void **state)
{
    ArithCtx *c = arith_ctx_new();
    const Arith *outer = parse(c, "min(N, M) + 3");
    uint32_t first = 0;
    (void)state;
    int64_t start = clock_ns();
    int made = 0, candidates = getenv("FW_LONG") ? 100000 : 2000;
    for (int i = 0; i < candidates; i++) {
        ArithMark mark = arith_mark(c);
        made += stencil(c, 8 << i % 3, 1 << i % 2);
        ArithMark end = arith_mark(c);
        if (i < 6)
            first = MAX(first, end.nodes);
        assert_true(end.nodes <= first);
        assert_int_equal(arith_facts(c), 2);
        arith_release(c, mark);
        assert_int_equal(arith_facts(c), 0);
        assert_int_equal(arith_mark(c).nodes, mark.nodes);
    }
    double each = (double)(clock_ns() - start) / made;
    print_message("         %.1f us for each clamped, flattened and unflattened access\n",
                  each / 1000);
    assert_ptr_equal(outer, parse(c, "3 + min(M, N)"));
    arith_ctx_free(c);
}

// Many short candidates, as a search makes them.
static void test_no_growth(void **state)
{
    ArithCtx *c = arith_ctx_new();
    ArithMark empty = arith_mark(c);
    const void *block = NULL;
    (void)state;
    for (int i = 0; i < 100000; i++) {
        ArithMark mark = arith_mark(c);
        const Arith *x = arith_var(c, "x", arith_const(c, 0), arith_size(c, "N"));
        const Arith *a =
            arith_divc(c, arith_addc(c, arith_mulc(c, x, 3), i % 7), 5 + i % 3);
        arith_assume(c, a);
        if (i == 0)
            block = arith_mark(c).arena.block;
        assert_ptr_equal(arith_mark(c).arena.block, block);
        arith_release(c, mark);
    }
    assert_int_equal(arith_mark(c).nodes, empty.nodes);
    arith_ctx_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),          cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_same_pointer),    cmocka_unit_test(test_multiples),
        cmocka_unit_test(test_facts),           cmocka_unit_test(test_proofs),
        cmocka_unit_test(test_symbolic_bounds), cmocka_unit_test(test_subst),
        cmocka_unit_test(test_overflow),        cmocka_unit_test(test_release),
        cmocka_unit_test(test_no_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
