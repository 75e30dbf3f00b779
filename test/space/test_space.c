// SPDX-License-Identifier: Apache-2.0
//
// The space against brute force: constraints against their meaning in C, and counts,
// numbers, samples and neighbours against a walk over every raw point.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "constrain.h"
#include "space/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    Space *space;
    Arena *arena;
    Diags diags;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof *f);
    f->space = space_new();
    f->arena = arena_new();
    f->diags = (Diags){.arena = f->arena};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    space_free(f->space);
    arena_free(f->arena);
    free(f);
    return 0;
}

static const char *const words[] = {"plain", "tiled", "a b", "it's"};

// Moves to the next raw point, the last parameter fastest; false after the last.
static bool next_raw(const Space *space, Point *point)
{
    for (int i = space_params(space) - 1; i >= 0; i--) {
        if (++point->choice[i] < space_param(space, i)->n)
            return true;
        point->choice[i] = 0;
    }
    return false;
}

// Constraints ------------------------------------------------------------------------

static double floor_of(double a, double b)
{
    return floor(a / b);
}

static double rest_of(double a, double b)
{
    return a - b * floor(a / b);
}

// What a text means for a and b in -6..6, x in {0.5, 1.5, 2}, and w one of the words.
typedef struct {
    double a, b, x;
    const char *w;
} Case;

#define MEANINGS(X)                                                                        \
    X(0, "a <= b", a <= b)                                                                 \
    X(1, "a + b * 2 - 3 == x * 2", a + b * 2 - 3 == x * 2)                                 \
    X(2, "(a + b) * 2 != a - -b", (a + b) * 2 != a + b)                                    \
    X(3, "-2 <= a < b <= 4", -2 <= a && a < b && b <= 4)                                   \
    X(4, "a / b > x", b != 0 && a / b > x)                                                 \
    X(5, "!(a / b > x)", b != 0 && a / b <= x)                                             \
    X(6, "a // b == 1", b != 0 && floor_of(a, b) == 1)                                     \
    X(7, "a % b == 1", b != 0 && rest_of(a, b) == 1)                                       \
    X(8, "b == 0 || a % b == 0", b == 0 || rest_of(a, b) == 0)                             \
    X(9, "a % b == 0 || b == 0", b != 0 && rest_of(a, b) == 0)                             \
    X(10, "not (b != 0 && a % b == 0)", b == 0 || rest_of(a, b) != 0)                      \
    X(11, "not a == b and x > 1 or a > 5", (a != b && x > 1) || a > 5)                     \
    X(12, "!a == b", (a == 0) == b)                                                        \
    X(13, "a ** 2 <= 9", a *a <= 9)                                                        \
    X(14, "-a ** 2 <= -9", -(a * a) <= -9)                                                 \
    X(15, "2 ** a ** 2 > 16 ", a *a > 4)                                                   \
    X(16, "2 ** -1 == x", x == 0.5)                                                        \
    X(17, "min(a, b, 2) >= max(-3, x - 3)", fmin(fmin(a, b), 2) >= fmax(-3, x - 3))        \
    X(18, "a in (1, 2, b, )", a == 1 || a == 2 || a == b)                                  \
    X(19, "a not in [1, b + 1]", a != 1 && a != b + 1)                                     \
    X(20, "w == 'tiled' || a > 0", strcmp(w, "tiled") == 0 || a > 0)                       \
    X(21, "w in ('plain', \"it's\") && 3 > a", strchr("pi", w[0]) && a < 3)                \
    X(22, "w != 'plain'", strcmp(w, "plain") != 0)                                         \
    X(23, "w == 1", false)                                                                 \
    X(24, "a * b && x == 1.5e0", a *b != 0 && x == 1.5)                                    \
    X(25, "a", a != 0)                                                                     \
    X(26, "1 < 2", true)                                                                   \
    X(27, "x * 3 % 1 == 0.5 && 0x10 > a", x < 2)                                           \
    X(28, "a%x<1", rest_of(a, x) < 1)

static const char *const texts[] = {
#define X(n, text, meaning) text,
    MEANINGS(X)
#undef X
};

static bool meaning_of(int n, Case c)
{
    double a = c.a, b = c.b, x = c.x;
    const char *w = c.w;
    switch (n) {
#define X(i, text, meaning)                                                                \
    case i: return (meaning);
        MEANINGS(X)
#undef X
    }
    return false;
}

static void add_case_params(Space *space)
{
    int64_t ints[13];
    for (int i = 0; i < COUNTOF(ints); i++)
        ints[i] = i - 6;
    space_add_ints(space, "a", ints, COUNTOF(ints));
    space_add_ints(space, "b", ints, COUNTOF(ints));
    space_add(space, "x", (const double[]){0.5, 1.5, 2}, 3);
    space_add_words(space, "w", words, COUNTOF(words));
}

static void test_meanings(void **state)
{
    Fixture *f = *state;
    for (int n = 0; n < COUNTOF(texts); n++) {
        Space *space = space_new();
        add_case_params(space);
        bool ok = space_constrain(space, texts[n], &f->diags);
        double count = 0;
        Point p = {0};
        do {
            Case c = {space_value(space, &p, 0), space_value(space, &p, 1),
                      space_value(space, &p, 2), space_word(space, &p, "w")};
            bool expect = meaning_of(n, c);
            count += expect;
            if (!ok || space_valid(space, &p) != expect)
                fail_msg("%s: a=%g b=%g x=%g w=%s", texts[n], c.a, c.b, c.x, c.w);
        } while (next_raw(space, &p));
        if (space_count(space) != count)
            fail_msg("%s: %g points, not %g", texts[n], space_count(space), count);
        space_free(space);
    }
}

typedef struct {
    const char *text, *code;
    uint32_t start, end;
} Wrong;

static void test_wrong_texts(void **state)
{
    static const Wrong wrong[] = {
        {"", "S001", 0, 0},
        {"a +", "S001", 3, 3},
        {"a + * b", "S001", 4, 5},
        {"a b", "S001", 2, 3},
        {"(a", "S001", 2, 2},
        {"a)", "S001", 1, 2},
        {"a = 1", "S001", 2, 3},
        {"a < foo", "S002", 4, 7},
        {"w == 'x", "S004", 5, 7},
        {"fabz(a) > 1", "S006", 0, 4},
        {"a in 3", "S001", 5, 6},
        {"a in ()", "S001", 6, 7},
        {"min()", "S001", 4, 5},
        {"a not b", "S001", 6, 7},
        {"a in (1, 2", "S001", 10, 10},
        {"and a", "S001", 0, 3},
        {"a $ b", "S001", 2, 3},
        {"a ** ", "S001", 5, 5},
        {"min(a b)", "S001", 6, 7},
    };
    Fixture *f = *state;
    add_case_params(f->space);
    for (int i = 0; i < COUNTOF(wrong); i++) {
        f->diags = (Diags){.arena = f->arena};
        assert_false(space_constrain(f->space, wrong[i].text, &f->diags));
        assert_int_equal(f->diags.errors, 1);
        const Diag *diag = &f->diags.list.at[0];
        assert_string_equal(diag->code, wrong[i].code);
        assert_string_equal(diag->span.source->text, wrong[i].text);
        assert_int_equal(diag->span.start, wrong[i].start);
        assert_int_equal(diag->span.end, wrong[i].end);
    }
    assert_true(space_count(f->space) == space_raw_count(f->space));
}

static void test_unknown_word_warns(void **state)
{
    Fixture *f = *state;
    add_case_params(f->space);
    assert_true(space_constrain(f->space, "w != 'tield'", &f->diags));
    assert_int_equal(f->diags.list.len, 1);
    assert_int_equal(f->diags.list.at[0].kind, DIAG_WARNING);
    assert_true(space_count(f->space) == space_raw_count(f->space));
}

static void test_deep_texts(void **state)
{
    Fixture *f = *state;
    static const char *const piece[] = {"(",      "-",   "!",    "not ",  "a+(",
                                        "a in (", "2**", "min(", "a<a<(", "a+a*"};
    add_case_params(f->space);
    for (int i = 0; i < COUNTOF(piece); i++) {
        Buf text = buf_new();
        for (int k = 0; k < 5000; k++)
            buf_puts(&text, piece[i]);
        f->diags = (Diags){.arena = f->arena};
        assert_false(space_constrain(f->space, text.text, &f->diags));
        buf_release(&text);
    }
    Buf text; // a chain repeats its middle, so this would double at every level
    text = buf_new();
    for (int k = 0; k < 15; k++)
        buf_puts(&text, "a<(");
    buf_puts(&text, "a");
    for (int k = 0; k < 15; k++)
        buf_puts(&text, ")<b");
    assert_false(space_constrain(f->space, text.text, &f->diags));
    buf_release(&text);
}

// Random bytes and random tokens neither crash nor hang.
static void test_random_texts(void **state)
{
    static const char *const token[] = {
        "a", "b",  "w",  "'plain'", "(",   ")",   "+",  "-", "*",   "/", "//",   "%", "**",
        "<", "<=", "==", "in",      "not", "and", "||", "1", "2.5", ",", "min(", "!", "'"};
    Fixture *f = *state;
    Rng rng = rng_new(1);
    for (int round = 0; round < 20000; round++) {
        Space *space = space_new();
        add_case_params(space);
        Arena *arena = arena_new();
        f->diags = (Diags){.arena = arena};
        Buf text = buf_new();
        for (uint64_t n = rng_below(&rng, 12); n > 0; n--) {
            if (round % 2)
                buf_puts(&text, token[rng_below(&rng, COUNTOF(token))]);
            else
                buf_putc(&text, (char)(32 + rng_below(&rng, 96)));
            buf_putc(&text, ' ');
        }
        if (space_constrain(space, text.text, &f->diags))
            assert_int_equal(f->diags.errors, 0);
        else
            assert_int_equal(f->diags.errors, 1);
        buf_release(&text);
        arena_free(arena);
        space_free(space);
    }
}

// Spaces against brute force -------------------------------------------------------------

static const char *const patterns[] = {
    "%1$s * %2$s <= 12",
    "%1$s %% %2$s == 0",
    "%1$s + %2$s + %3$s > 7",
    "%1$s * %2$s * %3$s <= 30",
    "%1$s < %2$s || %3$s == 2",
    "(%1$s + 2 * %2$s) // %3$s != 3 && %1$s != 3",
    "%1$s in (1, 2, 4)",
    "(%1$s * %2$s - %3$s * %4$s) %% 3 != 1",
    "2 <= %1$s * %2$s <= 16",
    "max(%1$s, %2$s) >= min(%3$s, %4$s) + 1",
    "%1$s / %2$s > %3$s - 2",
    "%1$s %% (%2$s - 3) >= %3$s - 2 || %4$s > 2",
    "(%1$s - 2) ** %2$s <= %3$s * %4$s",
    "!(%1$s // (%2$s - 2) < %3$s) && %4$s != 1",
    "%1$s - %2$s in (%3$s, -1, 0)",
    "%1$s ** 2 > %2$s - 2 && (%3$s - %4$s) * %1$s != 2",
};

static void random_space(Space *space, Rng *rng)
{
    static const char *const names[] = {"p0", "p1", "p2", "p3", "p4", "p5"};
    int n = 1 + (int)rng_below(rng, COUNTOF(names));
    for (int i = 0; i < n; i++) {
        double value[6];
        int size = 1 + (int)rng_below(rng, COUNTOF(value));
        for (int k = 0; k < size; k++)
            value[k] = rng_below(rng, 8) == 0 ? -k : (k + 3) % size + 1;
        space_add(space, names[i], value, size);
    }
    for (uint64_t k = rng_below(rng, 6); k > 0; k--) {
        const char *name[4];
        for (int i = 0; i < 4; i++)
            name[i] = names[rng_below(rng, (uint64_t)n)];
        char text[128];
        const char *pattern = patterns[rng_below(rng, COUNTOF(patterns))];
        snprintf(text, sizeof text, pattern, name[0], name[1], name[2], name[3]);
        constrain(space, text);
    }
}

static int raw_valid(const Space *space)
{
    Point point = {0};
    int n = 0;
    do
        n += space_valid(space, &point);
    while (next_raw(space, &point));
    return n;
}

static void check_numbers(const Space *space, int count)
{
    bool *seen = xcalloc((size_t)space_raw_count(space), 1);
    for (int i = 0; i < count; i++) {
        Point point;
        space_point(space, (uint64_t)i, &point);
        assert_true(space_valid(space, &point));
        assert_int_equal(space_number(space, &point), i);
        int raw = 0;
        for (int k = 0; k < space_params(space); k++)
            raw = raw * space_param(space, k)->n + point.choice[k];
        assert_false(seen[raw]);
        seen[raw] = true;
    }
    free(seen);
}

static bool steps_apart(const SpaceParam *param, int from, int to)
{
    double a = param->value[from], b = param->value[to];
    for (int i = 0; i < param->n; i++)
        if (param->value[i] > MIN(a, b) && param->value[i] < MAX(a, b))
            return false;
    return a != b;
}

static bool is_neighbour(const Space *space, const Point *a, const Point *b, bool adjacent)
{
    int differ = 0;
    bool near = true;
    for (int i = 0; i < space_params(space); i++)
        if (a->choice[i] != b->choice[i]) {
            differ++;
            near = near && steps_apart(space_param(space, i), a->choice[i], b->choice[i]);
        }
    return differ == 1 && (near || !adjacent);
}

static bool distinct_values(const Space *space)
{
    for (int i = 0; i < space_params(space); i++)
        for (int k = 0; k < space_param(space, i)->n; k++)
            for (int j = 0; j < k; j++)
                if (space_param(space, i)->value[j] == space_param(space, i)->value[k])
                    return false;
    return true;
}

static void check_neighbours(const Space *space, const Point *from, bool adjacent)
{
    Point found[64], other = {0};
    int n = space_neighbours(space, from, adjacent, found, COUNTOF(found)), expect = 0;
    assert_true(n <= COUNTOF(found));
    for (int i = 0; i < n; i++) {
        assert_true(space_valid(space, &found[i]));
        assert_true(is_neighbour(space, from, &found[i], adjacent));
        for (int k = 0; k < i; k++)
            assert_false(point_equal(space, &found[i], &found[k]));
    }
    do
        expect += space_valid(space, &other) && is_neighbour(space, from, &other, adjacent);
    while (next_raw(space, &other));
    assert_int_equal(n, expect);
    Point one;
    assert_int_equal(space_neighbours(space, from, adjacent, &one, MIN(n, 1)), n);
}

static void test_brute_force(void **state)
{
    Fixture *f = *state;
    Rng rng = rng_new(2);
    for (int round = 0; round < 300; round++) {
        Space *space = space_new();
        random_space(space, &rng);
        int count = raw_valid(space);
        assert_true(space_build(space, &f->diags));
        assert_true(space_count(space) == count);
        check_numbers(space, count);
        if (count > 0 && distinct_values(space)) {
            Point point;
            space_sample(space, &rng, &point);
            check_neighbours(space, &point, false);
            check_neighbours(space, &point, true);
        }
        space_free(space);
    }
}

// A relation by code is what the same relation as text is, whatever else constrains the
// space, and also asked before all its choices are made.
static bool divides(const void *user, const int *choice)
{
    const Space *space = user;
    for (int b = 0; b < space_param(space, 1)->n; b++)
        for (int a = 0; a < space_param(space, 0)->n; a++)
            if ((choice[0] < 0 || choice[0] == b) && (choice[1] < 0 || choice[1] == a) &&
                fmod(space_param(space, 1)->value[b], space_param(space, 0)->value[a]) == 0)
                return true;
    return false;
}

static void test_relations(void **state)
{
    Fixture *f = *state;
    const int64_t number[] = {7, 2, 12, 3, 4, 6, 8, 1, 5};
    Space *by[2] = {space_new(), f->space};
    for (int i = 0; i < 2; i++) {
        space_add_ints(by[i], "a", number, COUNTOF(number));
        space_add_ints(by[i], "b", number, COUNTOF(number));
        space_add_words(by[i], "w", words, COUNTOF(words));
        space_add_ints(by[i], "c", number, COUNTOF(number));
        assert_true(
            space_constrain(by[i], "a * c <= 24 && (b > 2 || w == 'tiled')", &f->diags));
    }
    constrain(by[0], "b % a == 0");
    SpaceRelation relation = {2, {1, 0}, divides, by[1], "a divides b"};
    space_relate(by[1], &relation);
    assert_int_equal(space_relations(by[1]), 1);
    int count = raw_valid(by[0]);
    assert_true(space_count(by[0]) == count && space_count(by[1]) == count);
    check_numbers(by[1], count);
    Point point = {0};
    do
        assert_int_equal(space_valid(by[0], &point), space_valid(by[1], &point));
    while (next_raw(by[0], &point));
    const Point broken = {{2, 1, 1, 1}}; // 12 does not divide 2
    assert_string_equal(space_broken(by[1], &broken), "a divides b");
    uint64_t hash = space_hash(by[1]);
    relation.text = "another";
    space_relate(by[1], &relation);
    assert_true(space_hash(by[1]) != hash && space_count(by[1]) == count);
    space_free(by[0]);
}

static ValueRange random_range(const SpaceParam *param, Rng *rng)
{
    double a = param->value[rng_below(rng, (uint64_t)param->n)];
    double b = rng_below(rng, 3) ? param->value[rng_below(rng, (uint64_t)param->n)] : a;
    return (ValueRange){MIN(a, b), MAX(a, b), false};
}

static bool in_ranges(const Space *space, const Point *point, const ValueRange *range)
{
    for (int i = 0; i < space_params(space); i++) {
        double value = space_value(space, point, i);
        if (value < range[i].lo || value > range[i].hi)
            return false;
    }
    return true;
}

// What ranges decide holds at every point within them.
static void test_ranges(void **state)
{
    (void)state;
    Rng rng;
    int decided = 0;
    rng = rng_new(6);
    for (int round = 0; round < 3000; round++) {
        Space *space = space_new();
        random_space(space, &rng);
        ValueRange range[SPACE_PARAMS_MAX];
        for (int i = 0; i < space_params(space); i++)
            range[i] = random_range(space_param(space, i), &rng);
        for (int k = 0; k < space->constraints.len; k++) {
            const Constraint *constraint = &space->constraints.at[k];
            Verdict verdict = constraint_decide(constraint, range);
            Point point = {0};
            double value[SPACE_PARAMS_MAX];
            decided += verdict != UNDECIDED;
            for (bool more = verdict != UNDECIDED; more; more = next_raw(space, &point)) {
                space_numbers(space, &point, value);
                if (in_ranges(space, &point, range))
                    assert_int_equal(constraint_holds(constraint, value),
                                     verdict == ALWAYS_TRUE);
            }
        }
        space_free(space);
    }
    assert_true(decided > 1000);
}

static void test_uniform(void **state)
{
    Fixture *f = *state;
    const int64_t v[] = {1, 2, 3, 4, 5, 6};
    space_add_ints(f->space, "a", v, 6);
    space_add_ints(f->space, "b", v, 6);
    space_add_ints(f->space, "c", v, 4);
    space_add_words(f->space, "w", words, 2);
    constrain(f->space, "a * b <= 8");
    constrain(f->space, "c != 2 || w == 'tiled'");
    int count = (int)space_count(f->space);
    assert_int_equal(count, raw_valid(f->space));
    int *hits = xcalloc((size_t)count, sizeof *hits);
    Rng rng = rng_new(3);
    for (int i = 0; i < 200 * count; i++) {
        Point point;
        space_sample(f->space, &rng, &point);
        hits[space_number(f->space, &point)]++;
    }
    double chi2 = 0;
    for (int i = 0; i < count; i++)
        chi2 += (hits[i] - 200.0) * (hits[i] - 200.0) / 200.0;
    free(hits);
    // Mean count - 1, variance twice that: within five standard deviations.
    assert_true(fabs(chi2 - (count - 1)) < 5 * sqrt(2.0 * (count - 1)));
}

// More constraints in one component than bits in a word, and more parameters than usual.
static void test_many(void **state)
{
    Fixture *f = *state;
    const int64_t v[] = {0, 1};
    char name[16], text[64];
    for (int i = 0; i < SPACE_PARAMS_MAX; i++) {
        snprintf(name, sizeof name, "q%d", i);
        space_add_ints(f->space, name, v, 2);
    }
    for (int i = 0; i + 1 < SPACE_PARAMS_MAX; i++) {
        snprintf(text, sizeof text, "q%d <= q%d", i, i + 1);
        constrain(f->space, text);
        snprintf(text, sizeof text, "q%d + q%d < 3", i, i + 1);
        constrain(f->space, text);
    }
    assert_true(space_count(f->space) == SPACE_PARAMS_MAX + 1);
    for (uint64_t i = 0; i <= SPACE_PARAMS_MAX; i++) {
        Point point;
        space_point(f->space, i, &point);
        assert_true(space_valid(f->space, &point));
        assert_int_equal(space_number(f->space, &point), i);
    }
}

// The GEMM of CLBlast as in published benchmarks of tuners: 82,944 points, 17,956 valid.
static void test_gemm(void **state)
{
    static const struct {
        const char *name;
        int n;
        int64_t value[4];
    } param[] = {
        {"MWG", 4, {16, 32, 64, 128}},
        {"NWG", 4, {16, 32, 64, 128}},
        {"KWG", 1, {32}},
        {"MDIMC", 3, {8, 16, 32}},
        {"NDIMC", 3, {8, 16, 32}},
        {"MDIMA", 3, {8, 16, 32}},
        {"NDIMB", 3, {8, 16, 32}},
        {"KWI", 1, {2}},
        {"VWM", 4, {1, 2, 4, 8}},
        {"VWN", 4, {1, 2, 4, 8}},
        {"SA", 2, {0, 1}},
        {"SB", 2, {0, 1}},
    };
    Fixture *f = *state;
    for (int i = 0; i < COUNTOF(param); i++)
        space_add_ints(f->space, param[i].name, param[i].value, param[i].n);
    constrain(f->space, "KWG % KWI == 0");
    constrain(f->space, "MWG % (MDIMC * VWM) == 0");
    constrain(f->space, "NWG % (NDIMC * VWN) == 0");
    constrain(f->space, "MWG % (MDIMA * VWM) == 0");
    constrain(f->space, "NWG % (NDIMB * VWN) == 0");
    constrain(f->space, "KWG % ((MDIMC * NDIMC) / MDIMA) == 0");
    constrain(f->space, "KWG % ((MDIMC * NDIMC) / NDIMB) == 0");
    assert_true(space_raw_count(f->space) == 82944);
    assert_int_equal((int)space_count(f->space), 17956);
}

static void add_letters(Space *space, int nparam, int n)
{
    double *value = xmalloc(sizeof *value * (size_t)n);
    for (int i = 0; i < n; i++)
        value[i] = i + 1;
    for (int i = 0; i < nparam; i++)
        space_add(space, (const char[]){(char)('a' + i), 0}, value, n);
    free(value);
}

static void test_large(void **state)
{
    static const char *const ten[] = {
        "a * b <= 64",
        "a * b >= 4",
        "c % d == 0 || d > c",
        "e * f * 4 + g * h <= 200",
        "a * e % 4 == 0",
        "b * f >= c",
        "g in (1, 2, 4, 8) || h < 8",
        "max(a, c) <= 9",
        "a * c * e <= 300",
        "6 <= b * d * f <= 400",
    };
    Fixture *f = *state;
    add_letters(f->space, 8, 10);
    for (int i = 0; i < COUNTOF(ten); i++)
        constrain(f->space, ten[i]);
    clock_t start = clock();
    assert_true(space_build(f->space, &f->diags));
    assert_true(clock() - start < 5 * CLOCKS_PER_SEC); // slack for sanitizers
    double share = space_count(f->space) / space_raw_count(f->space), hits = 0;
    Rng rng = rng_new(4);
    for (int i = 0; i < 100000; i++) {
        Point point = {0};
        for (int k = 0; k < 8; k++)
            point.choice[k] = (int16_t)rng_below(&rng, 10);
        hits += space_valid(f->space, &point);
    }
    assert_true(fabs(hits / 1e5 - share) < 5 * sqrt(share / 1e5));
}

// No part of these constraints takes few values, so nothing can be shared above.
static void test_without_structure(void **state)
{
    enum { N = 52 };
    Fixture *f = *state;
    add_letters(f->space, 4, N);
    constrain(f->space, "(a * b + c * d) % 7 != 0 && (a * c + b * d) % 5 != 0");
    double expect = 0;
    for (int a = 1; a <= N; a++)
        for (int b = 1; b <= N; b++)
            for (int c = 1; c <= N; c++)
                for (int d = 1; d <= N; d++)
                    expect += (a * b + c * d) % 7 != 0 && (a * c + b * d) % 5 != 0;
    assert_true(space_count(f->space) == expect);
}

// More points than have numbers, of parameters that hang together.
static void test_large_component(void **state)
{
    Fixture *f = *state;
    add_letters(f->space, 20, 10);
    constrain(f->space, "a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q+r+s+t >= 21");
    assert_true(space_build(f->space, &f->diags));
    assert_true(fabs(space_count(f->space) / (1e20 - 1) - 1) < 1e-12);
    Rng rng = rng_new(6);
    double first = 0, last = 0;
    for (uint64_t i = 0; i < 2000; i++) {
        Point point;
        space_point(f->space, i, &point);
        assert_true(space_valid(f->space, &point) && space_number(f->space, &point) == i);
        space_sample(f->space, &rng, &point);
        first += point.choice[0];
        last += point.choice[19];
    }
    assert_true(fabs(first / 2000 - 4.5) < 0.4 && fabs(last / 2000 - 4.5) < 0.4);
    constrain(f->space, "a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q+r+s+t <= 21");
    assert_true(space_build(f->space, &f->diags));
    assert_true(space_count(f->space) == 20);
}

static void test_beyond_64_bits(void **state)
{
    Fixture *f = *state;
    add_letters(f->space, 26, 10);
    assert_true(fabs(space_count(f->space) / 1e26 - 1) < 1e-12);
    Rng rng = rng_new(5);
    double sum = 0;
    for (int i = 0; i < 2000; i++) {
        Point point;
        space_sample(f->space, &rng, &point);
        sum += point.choice[0];
    }
    assert_true(fabs(sum / 2000 - 4.5) < 0.4);
}

static void test_empty(void **state)
{
    Fixture *f = *state;
    assert_true(space_count(f->space) == 1);
    add_letters(f->space, 2, 3);
    constrain(f->space, "a + b > 6");
    assert_true(space_count(f->space) == 0);
    Space *space = space_new();
    add_letters(space, 1, 3);
    constrain(space, "2 < 1");
    assert_true(space_count(space) == 0);
    space_free(space);
    space = space_new();
    space_add(space, "none", NULL, 0);
    assert_true(space_count(space) == 0);
    space_free(space);
}

// Points as text -------------------------------------------------------------------------

static void test_text(void **state)
{
    Fixture *f = *state;
    space_add(f->space, "x", (const double[]){0.1, 1e20, -3, 1.0 / 3, 1048576, 1e-9}, 6);
    space_add_words(f->space, "w", words, COUNTOF(words));
    Point point = {0}, back;
    do {
        Buf text = buf_new();
        point_print(&text, f->space, &point);
        assert_true(point_parse(f->space, text.text, &back));
        assert_true(point_is_text(text.text));
        assert_true(point_equal(f->space, &point, &back));
        assert_true(point_hash(f->space, &point) == point_hash(f->space, &back));
        buf_release(&text);
    } while (next_raw(f->space, &point));
    static const char *const bad[] = {"",
                                      "x=0.1",
                                      "w=tiled",
                                      "x=0.2 w=tiled",
                                      "x=0.1 w",
                                      "x=0.1 w=tiled z=1",
                                      "x= w=tiled",
                                      "x=0.1 w='it",
                                      "x=0.1z w=tiled",
                                      "x=0.1 w=tiled x=0.1"};
    for (int i = 0; i < COUNTOF(bad); i++)
        assert_false(point_parse(f->space, bad[i], &back));
    static const char *const none[] = {"",      " ",    "x",       "=1",       "x=1 y",
                                       "x= y=", "x='a", "x=1 x=2", "x='a'y=1", "'x'=1"};
    for (int i = 0; i < COUNTOF(none); i++)
        assert_false(point_is_text(none[i]));
    assert_true(point_is_text("any=thing of='what\\'ever' none='' space=1= "));
    assert_true(point_parse(f->space, "  w=tiled	x=1048576 ", &back));
    Buf text = buf_new();
    point_print(&text, f->space, &back);
    assert_string_equal(text.text, "x=1048576 w=tiled");
    buf_release(&text);
    assert_int_equal(space_int(f->space, &back, "x"), 1048576);
    assert_string_equal(space_word(f->space, &back, "w"), "tiled");
    assert_true(space_set(f->space, &back, "x", "-3"));
    assert_true(space_value(f->space, &back, 0) == -3);
    assert_false(space_set(f->space, &back, "y", "-3"));
}

static uint64_t hash_of(const char *name, int n, const char *text)
{
    Space *space = space_new();
    space_add(space, name, (const double[]){1, 2, 3}, n);
    if (text)
        constrain(space, text);
    uint64_t hash = space_hash(space);
    space_free(space);
    return hash;
}

static void test_space_hash(void **state)
{
    (void)state;
    uint64_t hash = hash_of("a", 3, "a > 1");
    assert_true(hash == hash_of("a", 3, "a > 1"));
    assert_true(hash != hash_of("a", 2, "a > 1"));
    assert_true(hash != hash_of("a", 3, "a > 2"));
    assert_true(hash != hash_of("a", 3, NULL));
    assert_true(hash_of("a", 3, NULL) != hash_of("b", 3, NULL));
}

// A list of points is a space like another: counts, numbers, samples and neighbours are
// those of the points; constraints still hold.
static void test_only(void **state)
{
    (void)state;
    enum { N = 60 };
    static const int64_t v[] = {1, 2, 3, 4, 5};
    Space *space = space_new();
    for (int i = 0; i < 3; i++)
        space_add_ints(space, (const char[]){(char)('a' + i), 0}, v, COUNTOF(v));
    uint64_t plain = space_hash(space);
    Point list[N] = {{{0}}}, other = {{0}};
    Rng rng = rng_new(5);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++)
            list[i].choice[k] = (int16_t)rng_below(&rng, COUNTOF(v));
    space_only(space, list, N);
    assert_true(space_hash(space) != plain);
    int expect = 0;
    do {
        bool listed = false;
        for (int i = 0; i < N; i++)
            listed |= point_equal(space, &list[i], &other);
        assert_int_equal(space_valid(space, &other), listed);
        expect += listed;
    } while (next_raw(space, &other));
    assert_true(space_count(space) == expect);
    for (int i = 0; i < expect; i++) {
        space_point(space, (uint64_t)i, &other);
        assert_true(space_valid(space, &other));
        assert_int_equal(space_number(space, &other), i);
        check_neighbours(space, &other, true);
        check_neighbours(space, &other, false);
    }
    constrain(space, "a < 3");
    assert_true(space_count(space) < expect);
    space_sample(space, &rng, &other);
    assert_true(space_value(space, &other, 0) < 3);
    space_only(space, list, 0);
    assert_true(space_count(space) == 0);
    space_free(space);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

// Hotspot of the community's benchmark hub: 82,984 of 4,440,000 points, names of ours; and
// named sizes, one of them an element of several.
static void test_named_sizes(void **state)
{
    (void)state;
    double block[37], ten[10];
    const int64_t powers[] = {1, 2, 4, 8, 16, 32}, flags[] = {0, 1};
    for (int i = 0; i < 37; i++)
        block[i] = i < 5 ? 1 << i : 32 * (i - 4);
    for (int i = 0; i < 10; i++)
        ten[i] = i + 1;
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Space *space = space_new();
    space_define(space, "LOCAL[0]", 49152);
    space_define(space, "most", 1024);
    space_add(space, "bx", block, 37);
    space_add_ints(space, "by", powers, 6);
    space_add(space, "tx", ten, 10);
    space_add(space, "ty", ten, 10);
    space_add(space, "t", ten, 10);
    space_add(space, "unroll", ten, 10);
    space_add_ints(space, "power", flags, 2);
    constrain(space, "32 <= bx * by <= most");
    constrain(space, "t % unroll == 0");
    assert_true(space_constrain(
        space, "(bx * tx + t * 2) * (by * ty + t * 2) * (2 + power) * 4 <= LOCAL[0]",
        &diags));
    assert_true(space_raw_count(space) == 4440000);
    assert_true(space_count(space) == 82984);
    const SpaceExpr *expr = space_expression(space, "here", "bx * 2 + LOCAL[0]", &diags);
    Point point = {{0}};
    assert_true(expr && space_evaluate(space, expr, &point) == 49154);
    assert_null(space_expression(space, "here", "LOCAL[1]", &diags));
    assert_null(space_expression(space, "here", "most[0]", &diags));
    expr = space_expression(space, "here", "1 / (bx - 1)", &diags);
    assert_true(expr && isnan(space_evaluate(space, expr, &point)));
    space_free(space);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_meanings),
        TEST(test_wrong_texts),
        TEST(test_unknown_word_warns),
        TEST(test_deep_texts),
        TEST(test_random_texts),
        TEST(test_brute_force),
        TEST(test_relations),
        TEST(test_ranges),
        TEST(test_uniform),
        TEST(test_many),
        TEST(test_large),
        TEST(test_gemm),
        TEST(test_without_structure),
        TEST(test_large_component),
        TEST(test_beyond_64_bits),
        TEST(test_empty),
        TEST(test_text),
        TEST(test_space_hash),
        TEST(test_named_sizes),
        TEST(test_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
