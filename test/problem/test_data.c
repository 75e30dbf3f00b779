// SPDX-License-Identifier: Apache-2.0
//
// The arrays of a program in the device's layout: values made of them are the same again,
// to the bit; further sets meet what folds and indices need.
#include "tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

// Every scalar type, tuples, more elements than are made at a time.
static const char text[] =
    "size N\n"
    "def d(a: [N](float, int), b: [N]half, c: [N](bool, double), s: float): [N]float =\n"
    "  zip(a, b, c) |> map(\\p -> s * p.0.0)\n";

static void test_random(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse("d.fw", text, &diags);
    const Binding size = {.name = "N", .value = 10001};
    assert_true(problem_bind(problem, &size, 1, &diags));
    Value **inputs = problem_inputs(problem, 7, arena);
    ProblemData *want = data_new(problem, inputs, arena);
    ProblemData *got = data_random(problem, 7, arena);
    assert_int_equal(got->ninput, 6);
    assert_int_equal(got->nbuffer, 7);
    for (int i = 0; i < got->ninput; i++) {
        assert_int_equal(got->buffer[i].scalar, want->buffer[i].scalar);
        assert_int_equal(got->buffer[i].count, i < 5 ? 10001 : 1);
        assert_memory_equal(got->buffer[i].init, want->buffer[i].init,
                            runner_buffer_bytes(&got->buffer[i]));
    }
    Value **back = data_inputs(problem, got, arena);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < back[i]->nplane; k++)
            assert_memory_equal(back[i]->plane[k], inputs[i]->plane[k],
                                (size_t)back[i]->count[k] * sizeof(double));
    problem_free(problem);
    arena_free(arena);
}

// Of further sets each line of integers has one largest and one least, elsewhere in each
// set, so that a fold that leaves one out shows; and half of those of many scales are
// mostly 0, so that some results hang on one element alone.
static void test_more(void **state)
{
    (void)state;
    enum { LONG = 48, SETS = MORE_SETS };
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse(
        "d.fw", "size N\ndef d(k: [N]int, x: [N]float) = zip(k, x)\n", &diags);
    const Binding size = {.name = "N", .value = LONG};
    assert_true(problem_bind(problem, &size, 1, &diags));
    bool seen[LONG] = {false};
    int places = 0, sparse = 0;
    for (int set = 0; set < SETS; set++) {
        ProblemData *data = data_more(problem, set, 1, arena);
        const int *k = data->buffer[0].init;
        const float *x = data->buffer[1].init;
        int most = 0, least = 0, zeros = 0;
        for (int i = 0; i < LONG; i++) {
            assert_true(k[i] >= 0 && k[i] < INTS_USUAL);
            most += k[i] == INTS_USUAL - 1;
            least += k[i] == 0;
            zeros += x[i] == 0;
            places += k[i] == INTS_USUAL - 1 && !seen[i];
            seen[i] |= k[i] == INTS_USUAL - 1;
        }
        assert_int_equal(most, 1);
        assert_int_equal(least, 1);
        sparse += set % MORE_KINDS == MORE_SCALES && zeros > LONG / 2;
    }
    assert_int_equal(places, SETS);
    assert_int_equal(sparse, SETS / MORE_KINDS / 2);
    problem_free(problem);
    arena_free(arena);
}

// The last key is in half of the sets, with a value that is not 0 in most, and a key behind
// it in the others: there are more keys than values, so chance alone shows it seldom.
static void test_last_key(void **state)
{
    (void)state;
    enum { LONG = 33, KEYS = 1000 };
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem =
        problem_parse("d.fw",
                      "size N\ndef d(k: [N]int, x: [N]float) =\n"
                      "  zip(k, x) |> map(\\i v -> (i, v)) |> reduceBy(1000, +, 0.0)\n",
                      &diags);
    const Binding size = {.name = "N", .value = LONG};
    assert_true(problem_bind(problem, &size, 1, &diags));
    int last = 0, behind = 0, values = 0, again = 0;
    for (int set = 0; set < MORE_SETS; set++) {
        ProblemData *data = data_more(problem, set, 1, arena);
        const int *k = data->buffer[0].init;
        const float *x = data->buffer[1].init;
        bool of_last = false, of_behind = false, seen[2 * KEYS] = {false}, met = false;
        for (int i = 0; i < LONG; i++) {
            met |= seen[k[i]];
            seen[k[i]] = true;
            of_last |= k[i] == KEYS - 1;
            of_behind |= k[i] >= KEYS;
            values += k[i] == KEYS - 1 && x[i] != 0;
        }
        again += met;
        last += of_last;
        behind += of_behind;
    }
    assert_true(last >= MORE_SETS / 2 && behind >= MORE_SETS / 2);
    assert_true(again >= MORE_SETS / 2); // two values have one key
    assert_true(values >= MORE_SETS / 3);
    problem_free(problem);
    arena_free(arena);
}

// In some sets every element of a line is less than all of the next line, but where that is
// the third: what belongs to another line shows in a fold of max or min.
static void test_lines(void **state)
{
    (void)state;
    enum { LINES = 9, LONG = 19 };
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse(
        "d.fw", "size N, M\ndef d(x: [N][M]float) = map(reduce(max, 0.0), x)\n", &diags);
    const Binding size[] = {{.name = "N", .value = LINES}, {.name = "M", .value = LONG}};
    assert_true(problem_bind(problem, size, 2, &diags));
    int apart = 0;
    for (int set = 0; set < MORE_SETS; set++) {
        const float *x = data_more(problem, set, 1, arena)->buffer[0].init;
        bool all = true;
        for (int i = 0; i + LONG < LINES * LONG; i++)
            for (int k = 0; i / LONG % 3 < 2 && k < LONG; k++)
                all &= x[i] < x[(i / LONG + 1) * LONG + k];
        apart += all;
    }
    assert_true(apart >= MORE_SETS / MORE_KINDS / 4);
    problem_free(problem);
    arena_free(arena);
}

// A program of arrays of 1000 elements.
static Problem *bound_problem(const char *head, const char *body, Arena *arena)
{
    Diags diags = {.arena = arena};
    const Binding size = {.name = "N", .value = 1000};
    char program[320];
    snprintf(program, sizeof program, "size N\n%s =\n  %s\n", head, body);
    Problem *problem = problem_parse("d.fw", program, &diags);
    assert_true(problem && problem_bind(problem, &size, 1, &diags));
    return problem;
}

// Integers that lead to a key or an index have all the values that are legal; others, and
// those that would leave an array, are small.
static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int64_t below;
    } want[] = {
        {"map(\\i -> x[i], k)", 1000},
        {"map(\\i -> x[N - 1 - i], k)", 1000},
        {"map(\\i -> x[2 * i], k)", 500},
        {"map(\\i -> x[(i * 7919) % N], k)", 1000},
        {"map(\\i -> x[min(i * i, N - 1)], k)", 1000},
        {"map(\\i -> x[i / 2 + 3], k)", 1000},
        {"map(\\i -> x[8 * i], k)", 125},
        {"map(\\i -> x[300 * i], k)", 3},
        {"array(N, \\j -> x[4 * (j / 4) + k[j]])", 3},
        {"array(N, \\j -> if j + k[j] < N then x[j + k[j]] else 0)", 8},
        {"gather(\\i -> k[i], x)", 1000},
        {"let y = take(30, x) in map(\\i -> x[i] + y[i], k)", 15},
        {"zip(k, x) |> map(\\i v -> (i, v)) |> reduceBy(64, +, 0.0)", 73},
        {"zip(map(abs, k), x) |> reduceBy(64, max, 0.0) |> map(\\v -> v + 1)", 73},
        {"(zip(k, x) |> reduceBy(64, +, 0.0), map(\\i -> take(64, x)[i], k))", 64},
        {"map(\\i -> float(i), k)", 8},
        {"map(\\i v -> float(i) * x[int(v)], zip(k, x))", 8},
        {"map(\\i -> x[reduce(max, 0, k) / i], k)", 8},
        {"zip(k, x) |> map(\\i v -> (int(float(i) * 2), v)) |> reduceBy(64, +, 0.0)", 73},
    };
    for (int i = 0; i < COUNTOF(want); i++) {
        Arena *arena = arena_new();
        Problem *problem =
            bound_problem("def d(k: [N]int, x: [N]float)", want[i].body, arena);
        assert_int_equal(problem_ranges(problem, 2, arena)[0].below, want[i].below);
        const int *k = data_random(problem, 1, arena)->buffer[0].init;
        for (int j = 0; j < 1000; j++)
            assert_true(k[j] >= 0 && k[j] < want[i].below);
        problem_free(problem);
        arena_free(arena);
    }
}

// Floats that lead to keys or indices are drawn from all of them, others as usual.
static void test_key_floats(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int below;
    } want[] = {
        {"map(\\v -> x[int(v)], x)", 512},
        {"map(\\v -> x[int(floor(v)) + 1], x)", 512},
        {"map(\\v -> x[int(v * 100)], x)", 8},
        {"map(\\v -> x[int(v / h)], x)", 256},
        {"map(\\v -> x[min(int(v * 100), 99)], x)", 1},
        {"map(\\v -> x[int(v + h) % 300], x)", 512},
        {"map(\\v -> x[int(exp(v))], x)", 0},
        {"map(\\v -> float(int(v)), x)", 0},
        {"map(\\v -> (int(v * 64), v), x) |> reduceBy(64, +, 0.0)", 1},
        {"map(\\v -> (int(v), v), x) |> reduceBy(64, +, 0.0)", 64},
        {"map(\\v u -> (int(v) * 32 + int(u), v), zip(x, x)) |> reduceBy(1024, +, 0.0)",
         32},
        {"map(\\v -> (int((v - 0.5) * 64), v), x) |> reduceBy(64, +, 0.0)", 0},
    };
    for (int i = 0; i < COUNTOF(want); i++) {
        AutoArena *arena = arena_new();
        Problem *problem =
            bound_problem("def d(x: [N]float, h: float)", want[i].body, arena);
        const InputRange *drawn = problem_ranges(problem, 2, arena);
        if (drawn[0].below != want[i].below)
            print_message("%s\n", want[i].body);
        assert_int_equal(drawn[0].below, want[i].below);
        assert_int_equal(drawn[1].below, 0);
        const float *x = data_random(problem, 1, arena)->buffer[0].init;
        for (int j = 0; j < 1000; j++)
            assert_true(want[i].below ? x[j] >= 0 && x[j] < (float)want[i].below
                                      : x[j] >= 0.5f && x[j] < 1.5f);
        problem_free(problem);
    }
}

// Floats stay as they are if an index, a divisor or an opaque function reads them; others
// are drawn of any size, though some are made ints.
static void test_index_floats(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool index;
    } want[] = {
        {"map(\\v -> float(int(v)), x)", false},
        {"map(\\v -> x[int(v)], x)", true},
        {"map(\\v -> x[int(uint(v))], x)", true},
        {"map(\\v -> x[if v > 1 then 3 else 4] + float(int(v)), x)", false},
        {"map(\\v -> float(7 / int(v)), x)", true},
        {"map(\\v -> float(int(v) / 7), x)", false},
        {"gather(\\i -> int(x[i]), x)", true},
        {"zip(map(int, x), x) |> map(\\i v -> (i, v)) |> reduceBy(64, +, 0.0)", true},
        {"map(\\v -> f(float(int(v))), x)", true},
        {"(iterate(2, \\s -> (s.1, s.2, map(\\v -> s.0[int(v)], s.0)), (y, y, x))).0",
         true},
        {"(iterate(2, \\s -> (s.1, s.2, map(\\v -> float(int(v)), s.0)), (y, y, x))).0",
         false},
    };
    for (int i = 0; i < COUNTOF(want); i++) {
        Arena *arena = arena_new();
        Problem *problem = bound_problem("fun f(x: float): float = c\"return x;\" flops 1\n"
                                         "def d(x: [N]float, y: [N]float)",
                                         want[i].body, arena);
        assert_int_equal(problem_ranges(problem, 2, arena)[0].index, want[i].index);
        const float *x = data_more(problem, MORE_FEW_DIGITS, 1, arena)->buffer[0].init;
        bool negative = false;
        for (int j = 0; j < 1000; j++)
            negative |= x[j] < 0;
        assert_int_equal(negative, !want[i].index);
        problem_free(problem);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),     cmocka_unit_test(test_last_key),
        cmocka_unit_test(test_lines),      cmocka_unit_test(test_integers),
        cmocka_unit_test(test_key_floats), cmocka_unit_test(test_index_floats),
        cmocka_unit_test(test_more)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
