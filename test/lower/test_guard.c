// SPDX-License-Identifier: Apache-2.0
//
// Barriers of groups that walk over tiles: where fewer tiles than groups lie along one
// dimension, all of them stand inside the `if` over groups. And indices behind a guard:
// what items that stick out add up must fit too.

#include "calibrate/describe.h"
#include "lower/lower.h"
#include "rewriter/rewriter.h"
#include "tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static const char program[] =
    "size N, M\n"
    "def f(a: [N][M]float): [N][M]float =\n"
    "  a |> pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\p -> p[0][1] + p[2][1])\n";

static const char steps[] = "tile(4, 64) @ root\n"
                            "mapWrg(1, 0) @ 0\n"
                            "toLocal(1, 0) @ 0.f.f.0.0\n"
                            "mapLcl(1, 0) @ 0.f.f\n";

static int count_barriers(const Block *block)
{
    int n = 0;
    for (int i = 0; i < block->len; i++)
        n += (block->at[i]->kind == ST_BARRIER) + count_barriers(&block->at[i]->body) +
             count_barriers(&block->at[i]->other);
    return n;
}

// The first `if` over groups.
static const Stm *find_guard(const Block *block)
{
    const Stm *found = NULL;
    for (int i = 0; i < block->len && !found; i++) {
        const Stm *stm = block->at[i];
        bool guard =
            stm->kind == ST_FOR && stm->loop == LOOP_WRG && stm->form == FORM_GUARD;
        found = guard ? stm : find_guard(&stm->body);
    }
    return found;
}

static void test_guarded_groups(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Binding sizes[] = {{"N", 512}, {"M", 512}};
    Problem *problem = problem_parse("test.fw", program, &diags);
    assert_true(problem && problem_bind(problem, sizes, 2, &diags));
    Source source = {"steps", steps, strlen(steps)};
    const Rewriting *rules = derivation_parse(arena, &source, &diags);
    Expr *body = rules ? derivation_apply(problem->bound, rules, &diags) : NULL;
    if (!body)
        fail_msg("%s", diags.list.at[0].message);
    // 8 x 128 tiles for 16 x 1 groups.
    KernelOptions options = {.local = {64, 1, 1}, .global = {1024, 1, 1}, .name = "k"};
    const Unit *unit = lower(problem->bound, body, &options, arena, &diags);
    assert_non_null(unit);
    const Block *whole = &unit->kernels.at[0]->body;
    const Stm *guard = find_guard(whole);
    assert_non_null(guard);
    assert_int_equal(count_barriers(whole), 2);
    assert_int_equal(count_barriers(&guard->body), 2);
    problem_free(problem);
    arena_free(arena);
}

// Does a stream over n x n elements compute its indices in 64 bits?
static bool is_wide(int64_t n)
{
    static const char *const value[][2] = {
        {"lx", "64"}, {"ly", "1"}, {"fuse", "4"}, {"cols", "4"}, {"rows", "256"}};
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    DeviceModel model;
    DeviceInfo device;
    assert_true(device_model_find("nvidia-h200", &model));
    describe_model(&model, &device);
    device.shuffle = true;
    Binding sizes[] = {{"N", n}, {"M", n}, {"T", 8}};
    Problem *problem = problem_load("examples/an5d/j2d5pt.fw", &diags);
    assert_true(problem && problem_bind(problem, sizes, 3, &diags));
    Derivation *derivation = derive_new(problem->bound, &device, &diags);
    Point point = {0};
    for (int i = 0; i < COUNTOF(value); i++)
        assert_true(space_set(derive_space(derivation), &point, value[i][0], value[i][1]));
    assert_true(space_valid(derive_space(derivation), &point));
    const Unit *unit = derive_unit(derivation, &point, false, arena, &diags);
    assert_non_null(unit);
    bool wide = unit->kernels.at[0]->wide;
    derive_free(derivation);
    problem_free(problem);
    arena_free(arena);
    return wide;
}

// 46337 squared elements are fewer than 2^31, but the last stream begins beyond them.
static void test_wide_indices(void **state)
{
    (void)state;
    assert_false(is_wide(32768));
    assert_true(is_wide(46337));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_guarded_groups),
                                       cmocka_unit_test(test_wide_indices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
