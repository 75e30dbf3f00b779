// SPDX-License-Identifier: Apache-2.0
//
// Functions of arrays, drawn at random, as programs of one array and as functions of a map:
// on a GPU each array then costs what it costs alone, and no item makes much more by
// itself. Small arrays are an item's, which reads them from its registers.

#include "derive/derive_parts.h"
#include "problem/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

// Steps of a function, from an array `%s` to one of the same type.
static const char *const of_rows[] = {
    "%s |> pad(1, 1, clamp) |> slide(3, 1) |> map(\\w -> w[0] + w[1] * w[2])",
    "%s |> scatter(\\i -> (i + 5) % M)",
    "%s |> gather(\\i -> M - 1 - i)",
    "%s |> map(\\v -> v * v + 1.0)",
    ("%s |> iterate(3, \\s -> s |> pad(1, 1, wrap) |> slide(3, 1) |> map(\\w -> w[0] - "
     "w[2]))"),
    "zip(%s, g) |> map(\\v w -> v - 0.5 * w)",
    "%s |> pad(2, 2, mirror) |> slide(5, 1) |> map(\\w -> reduce(max, w[0], w))",
};
static const char *const of_images[] = {
    "%s |> pad2(1, 1, 1, 1, clamp) |> slide2(3, 1) |> map2(\\w -> w[0][1] + w[1][2])",
    "%s |> map(\\r -> r |> pad(1, 1, 0) |> slide(3, 1) |> map(\\w -> w[0] + w[2]))",
    ("%s |> transpose |> map(\\r -> r |> pad(1, 1, wrap) |> slide(3, 1) |> map(\\w -> w[0] "
     "* "
     "w[2])) |> transpose"),
    "%s |> map2(\\v -> v * v + 1.0)",
    "%s |> map(\\r -> map(\\v -> 2.0 * v, r))",
    "%s |> map(\\r -> zip(r, g[0]) |> map(\\v w -> v - w))",
    "zip2(%s, g) |> map2(\\v w -> v - 0.5 * w)",
    "%s |> scatter(\\i -> (i + 3) % N)",
    ("%s |> iterate(2, \\s -> s |> pad2(1, 1, 1, 1, 0) |> slide2(3, 1) |> map2(\\w -> "
     "w[1][0] "
     "- w[1][2]))"),
    ("%s |> transpose |> map(\\r -> r |> pad(2, 2, clamp) |> slide(5, 1) |> map(\\w -> "
     "reduce(max, w[0], w))) |> transpose"),
    "%s |> map(\\r -> scan(+, 0.0, r))",
    "%s |> transpose |> map(\\r -> scan(max, 0.0, r)) |> transpose",
    "%s |> map(\\r -> let m = reduce(max, 0.0, r) in map(\\v -> v - m, r))",
    "%s |> gather(\\i -> N - 1 - i)",
    ("(\\q -> zip(q, map(\\r -> reduce(+, 0.0, r), q)) |> map(\\r s -> map(\\v -> v / s, "
     "r)))"),
    ("(\\q -> let m = map(\\c -> reduce(+, 0.0, c), transpose(q)) in map(\\r -> zip(r, m) "
     "|> "
     "map(-), q))"),
    "(\\q -> let m = reduce(max, 0.0, join(q)) in map2(\\v -> v / m, q))",
};

// Those of small arrays are in registers of an item.
static const char *const of_small[] = {
    "array(16, \\i -> if i % 8 < 4 then %s[i] + %s[i + 4] else %s[i - 4] - %s[i])",
    "array(16, \\i -> 0.5 * %s[i] + 0.25 * %s[(i + 3) % 16])",
    "k |> map(\\r -> zip(r, %s) |> map(*) |> reduce(+, 0.0))",
    "let s = zip(%s, %s) |> map(*) |> reduce(+, 0.0) in map(\\v -> v / (1.0 + s), %s)",
    "%s |> pad(1, 1, wrap) |> slide(3, 1) |> map(\\w -> w[0] + w[1] * w[2])",
    "iterate(4, \\s -> array(16, \\i -> s[i] - 0.5 * s[15 - i]), %s)",
    "%s |> scan(+, 0.0)",
    "%s |> map(\\v -> v * v + 1.0)",
};

enum { PROGRAMS = 400, ARRAYS = 1000, N = 96, M = 160 };

static const DeviceInfo gpu = {.target = "opencl",
                               .has_double = true,
                               .compute_units = 8,
                               .warp = 32,
                               .max_group = 1024,
                               .max_item = {1024, 1024, 64},
                               .local_bytes = 49152};

static unsigned drawn(unsigned *state, unsigned n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

// Functions of arrays of one type.
typedef struct {
    const char *const *step;
    int nstep, steps; // of a function at most
    const char *sizes, *type, *number, *fold;
    int times; // what they cost alone is allowed, all items together
    int wrong; // that may cost more, of all programs
} Arrays;

static const Arrays rows = {of_rows, COUNTOF(of_rows),     3,  "size M\n", "[M]",
                            "%s[2]", "reduce(+, 0.0, %s)", 40, 0};
// Of 2,000 programs there are 11, which join columns' prefixes with folds of all.
static const Arrays images = {
    of_images,  COUNTOF(of_images),         3,  "size N, M\n", "[N][M]",
    "%s[1][2]", "reduce(+, 0.0, join(%s))", 40, PROGRAMS / 100};
static const Arrays small = {of_small, COUNTOF(of_small),    6, "", "[16]",
                             "%s[2]",  "reduce(+, 0.0, %s)", 6, 0};

// Writes a text with a name in its holes.
static void fill(Buf *out, const char *text, const char *name)
{
    for (const char *hole; (hole = strstr(text, "%s")); text = hole + 2)
        buf_printf(out, "%.*s%s", (int)(hole - text), text, name);
    buf_puts(out, text);
}

// A function of g, of a few steps: its result, beside g, or beside a number.
static void draw(Buf *out, const Arrays *arrays, unsigned seed)
{
    unsigned state = seed;
    int n = 1 + (int)drawn(&state, (unsigned)arrays->steps);
    char was[] = "g";
    for (int i = 0; i < n; i++) {
        const char *text = arrays->step[drawn(&state, (unsigned)arrays->nstep)];
        const char name[] = {(char)('a' + i), 0};
        buf_printf(out, "let %s = ", name);
        if (strstr(text, "%s"))
            fill(out, text, was);
        else // "(\q -> BODY)": a let of q
            buf_printf(out, "let q = %s in %.*s", was, (int)strlen(text) - 8, text + 7);
        buf_puts(out, " in ");
        was[0] = name[0];
    }
    const unsigned beside = drawn(&state, 5);
    buf_printf(out, beside <= 2 ? "(%s" : "%s", was);
    if (beside <= 2) {
        buf_puts(out, ", ");
        fill(out, beside == 0 ? "g" : beside == 1 ? arrays->number : arrays->fold, was);
        buf_puts(out, ")");
    }
}

// What all work-items execute, and the most of one: statements, those of threads apart.
typedef struct {
    double all, item;
} Cost;

// Of what a group shares, the last item has less.
static int64_t loop_length(const Arith *extent)
{
    const int64_t most = arith_most(extent);
    return most < 1 || most > ARRAYS * N * M ? 1 : most;
}

static Cost cost_of(const Block *block)
{
    Cost sum = {0, 0};
    for (int i = 0; i < block->len; i++) {
        const Stm *s = block->at[i];
        Cost body = cost_of(&s->body), other = cost_of(&s->other);
        int64_t extent = 1;
        if (s->kind == ST_FOR)
            extent = loop_length(s->extent);
        sum.all += 1 + (double)extent * (body.all + other.all);
        sum.item += 1 + (s->kind == ST_FOR && s->loop != LOOP_SEQ ? 1 : (double)extent) *
                            (body.item + other.item);
    }
    return sum;
}

static Cost plain_cost(const char *text)
{
    static const Binding size[] = {{"B", ARRAYS}, {"N", N}, {"M", M}};
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse("test", text, &diags);
    Point point;
    Cost most = {0, 0};
    Buf out = buf_new();
    Binding given[3];
    int n = 0;
    for (int i = 0; i < 3; i++)
        if (strstr(text, ((const char *[]){"[B]", "[N]", "[M]"})[i]))
            given[n++] = size[i];
    if (!problem || !problem->program || !problem_bind(problem, given, n, &diags)) {
        diags_print(&out, &diags);
        fail_msg("%s: %s", text, out.text);
    }
    Derivation *d = derive_new(problem->bound, &gpu, &diags);
    assert_non_null(d);
    derive_plain(d, &point);
    const Unit *unit = derive_unit(d, &point, false, arena, &diags);
    if (!unit) {
        diags_print(&out, &diags);
        fail_msg("%s: %s", text, out.text);
    }
    for (int i = 0; i < unit->launches.len; i++) {
        Cost work = cost_of(&unit->launches.at[i].kernel->body);
        most.all += work.all;
        most.item = fmax(most.item, work.item);
    }
    buf_release(&out);
    derive_free(d);
    problem_free(problem);
    arena_free(arena);
    return most;
}

static bool costs_the_same(const Arrays *arrays, unsigned seed)
{
    Buf f = buf_new(), one = buf_new(), all = buf_new();
    draw(&f, arrays, seed);
    const bool tuple = f.text[f.len - 1] == ')' && strstr(f.text, "in (");
    const char *const form = !tuple || seed % 3 == 0 ? "map(\\g -> %s, x)"
                             : seed % 3 == 1         ? "unzip(map(\\g -> %s, x))"
                                             : "let y = map(\\g -> %s, x) in unzip(y)";
    static const char matrix[] = "k: [16][16]float";
    buf_printf(&one, "%sdef p(g: %sfloat, %s) = %s\n", arrays->sizes, arrays->type, matrix,
               f.text);
    buf_printf(&all, "size B\n%sdef p(x: [B]%sfloat, %s) = ", arrays->sizes, arrays->type,
               matrix);
    buf_printf(&all, form, f.text);
    buf_puts(&all, "\n");
    const Cost alone = plain_cost(one.text), batch = plain_cost(all.text);
    const bool same = batch.all <= (double)arrays->times * ARRAYS * alone.all &&
                      batch.item <= 4 * alone.item + 6000;
    if (!same)
        print_error("%s: %g statements an array, %g of an item; %g and %g for one array\n",
                    all.text, batch.all / ARRAYS, batch.item, alone.all, alone.item);
    buf_release(&f);
    buf_release(&one);
    buf_release(&all);
    return same;
}

static void test_functions(void **state)
{
    const Arrays *arrays = *state;
    int wrong = 0;
    for (unsigned seed = 1; seed <= PROGRAMS; seed++)
        wrong += !costs_the_same(arrays, seed);
    assert_in_range(wrong, 0, arrays->wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_functions, (void *)&rows),
        cmocka_unit_test_prestate(test_functions, (void *)&images),
        cmocka_unit_test_prestate(test_functions, (void *)&small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
