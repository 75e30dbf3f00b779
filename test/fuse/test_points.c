// SPDX-License-Identifier: Apache-2.0
//
// The space of a script: its points are the solutions that the device can hold, each once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fuse/points.h"

#include <stdlib.h>
#include <string.h>

static const DeviceInfo gpu = {
    .target = "cuda", .compute_units = 132, .max_group = 1024, .local_bytes = 48 * 1024};
static const DeviceInfo small = {.target = "opencl",
                                 .is_cpu = true,
                                 .compute_units = 2,
                                 .max_group = 64,
                                 .local_bytes = 4 * 1024};

typedef struct {
    Arena *arena;
    Diags diags;
    Script *script;
    ScriptSpace *s;
    const DeviceInfo *device;
} Fixture;

static void open_script(Fixture *f, Script *script, bool ok, const DeviceInfo *device,
                        int64_t instances)
{
    f->script = script;
    f->device = device;
    f->s = ok ? script_space_new(script, 0, instances, device, &f->diags) : NULL;
    if (!f->s)
        print_error("%s\n", f->diags.list.at[0].message);
    assert_non_null(f->s);
}

static Fixture *fixture_new(const char *path, const DeviceInfo *device, int64_t instances)
{
    bool ok;
    Fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    diags_init(&f->diags, f->arena);
    Script *script = script_load(path, NULL, 0, &f->diags, &ok);
    open_script(f, script, ok, device, instances);
    return f;
}

static Fixture *fixture_text(const char *text, const DeviceInfo *device, int64_t instances)
{
    bool ok;
    Fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    diags_init(&f->diags, f->arena);
    Script *script = script_parse("test.fws", text, NULL, 0, &f->diags, &ok);
    open_script(f, script, ok, device, instances);
    return f;
}

static void fixture_free(Fixture *f)
{
    script_space_free(f->s);
    script_free(f->script);
    arena_free(f->arena);
    free(f);
}

static const char *text_of(Fixture *f, const Point *point)
{
    Solution *solution = xmalloc(sizeof *solution);
    Buf text;
    buf_init(&text);
    script_solution(f->s, point, solution);
    solution_print(&text, f->script, solution);
    free(solution);
    return buf_keep(&text, f->arena);
}

// To a solution and back; its text is read as the same solution, which the device holds.
static void check_point(Fixture *f, const Point *point)
{
    const Space *space = script_space_points(f->s);
    Solution *solution = xmalloc(sizeof *solution), *read = xmalloc(sizeof *read);
    Point back;
    script_solution(f->s, point, solution);
    assert_int_equal(script_kernels(f->s, point), solution->n);
    assert_true(script_point(f->s, solution, &back));
    assert_true(point_equal(space, point, &back));
    assert_true(solution_parse(script_space_sets(f->s), text_of(f, point), f->device, read,
                               &f->diags));
    assert_int_equal(read->n, solution->n);
    for (int i = 0; i < read->n; i++) {
        const FusedKernel *a = &solution->kernel[i], *b = &read->kernel[i];
        assert_true(a->fusion->set == b->fusion->set && a->threads == b->threads &&
                    a->top == b->top && fused_serial(a) == fused_serial(b));
        assert_true(a->threads <= f->device->max_group);
        assert_true((a->top * (int64_t)a->choice.instances + a->common) * 4 <=
                    f->device->local_bytes);
    }
    free(solution);
    free(read);
}

static void check_samples(Fixture *f, int n)
{
    const Space *space = script_space_points(f->s);
    Rng rng;
    Map seen;
    Point *point = NEW_ARRAY(f->arena, Point, n);
    rng_seed(&rng, 5);
    map_init(&seen, f->arena);
    for (int i = 0; i < n; i++) {
        space_sample(space, &rng, &point[i]);
        check_point(f, &point[i]);
        const char *text = text_of(f, &point[i]);
        const Point *same = map_get(&seen, text);
        assert_true(!same || point_equal(space, same, &point[i]));
        map_put(&seen, text, &point[i]);
    }
    script_plain(f->s, &point[0]);
    assert_true(space_valid(space, &point[0]));
    assert_int_equal(script_kernels(f->s, &point[0]), f->script->ncall);
    check_point(f, &point[0]);
}

static void test_examples(void **state)
{
    (void)state;
    static const char *const path[] = {
        "examples/fusion/paper.fws", "examples/fusion/atax.fws",
        "examples/fusion/axpydot.fws", "examples/fusion/gemver.fws",
        "bench/fusion/covariance.fws"};
    for (int i = 0; i < COUNTOF(path); i++)
        for (int k = 0; k < 2; k++) {
            // Of the small device a row of 301 words fits only in the threads of strips.
            if (k == 1 && (i == 1 || i == 3))
                continue;
            Fixture *f = fixture_new(path[i], k ? &small : &gpu, 100000);
            check_samples(f, 200);
            fixture_free(f);
        }
}

// As many as kernels of each cover times one another, counted by themselves.
typedef struct {
    Set set[64];
    double kernels[64];
    int n;
} Tally;

static void count_kernel(void *user, const FusedKernel *kernel, int family)
{
    Tally *t = user;
    int i = 0;
    (void)family;
    while (i < t->n && t->set[i] != kernel->fusion->set)
        i++;
    assert_true(i < COUNTOF(t->set));
    t->n = MAX(t->n, i + 1);
    t->set[i] = kernel->fusion->set;
    t->kernels[i]++;
}

static double kernels_of(const Tally *t, Set set)
{
    for (int i = 0; i < t->n; i++)
        if (t->set[i] == set)
            return t->kernels[i];
    return 0;
}

static void test_count(void **state)
{
    (void)state;
    Fixture *f = fixture_new("examples/fusion/paper.fws", &gpu, 31744);
    const Space *space = script_space_points(f->s);
    const SpaceParam *cover = space_param(space, space_find(space, "cover"));
    Tally tally = {0};
    double points = 0;
    assert_int_equal(cover->n, 32);
    script_each_kernel(f->s, count_kernel, &tally);
    for (int c = 0; c < cover->n; c++) {
        double product = 1;
        Set set = 0;
        for (const char *at = cover->label[c];; at++) {
            if (*at >= '1' && *at <= '9') {
                set |= (Set)1 << (*at - '1');
                continue;
            }
            product *= kernels_of(&tally, set);
            set = 0;
            if (!*at)
                break;
        }
        points += product;
    }
    assert_true(points > 1e9 && space_count(space) == points);
    assert_string_equal(cover->label[0], "123456");
    fixture_free(f);
}

// All points of a small space: each solution once, and every kernel in one of them.
static void test_all(void **state)
{
    (void)state;
    Fixture *f = fixture_text("VECTOR3 x; SCALAR n, y; input x;\n"
                              "n = vnorm3(x); y = mul(n, n); return n, y;",
                              &small, 1003);
    const Space *space = script_space_points(f->s);
    int n = (int)space_count(space);
    Map seen;
    map_init(&seen, f->arena);
    assert_true(n > 100 && n < 10000);
    for (int i = 0; i < n; i++) {
        Point *point = NEW(f->arena, Point);
        space_point(space, (uint64_t)i, point);
        check_point(f, point);
        assert_null(map_get(&seen, text_of(f, point)));
        map_put(&seen, text_of(f, point), point);
    }
    assert_non_null(map_get(&seen, "12/1.1 x32 words"));
    assert_non_null(map_get(&seen, "1/1 x64+* words | 2/1 x8:8+* words"));
    assert_null(map_get(&seen, "12/1.1 x128 words")); // 64 work-items a group
    fixture_free(f);
}

// What is not loaded from memory in fours, and what is not in the space.
static void test_absent(void **state)
{
    (void)state;
    Fixture *f = fixture_new("examples/fusion/paper.fws", &gpu, 31744);
    static const char *const text[] = {
        "123/3.3.1 x32+ fours | 456/5.5.5 x16 words", "451236/1.1.1.1.1.1 x128+* async",
        "123/3.3.1 x48 words | 456/5.5.5 x16 words", // a block that is none of the domain
        "123/3.3.1 x32* words | 456/5.5.5 x16 words"};
    Solution *solution = xmalloc(sizeof *solution);
    for (int i = 0; i < COUNTOF(text); i++) {
        Point point;
        assert_true(
            solution_parse(script_space_sets(f->s), text[i], &gpu, solution, &f->diags));
        assert_int_equal(script_point(f->s, solution, &point), i < 2);
        if (i < 2)
            assert_string_equal(text_of(f, &point), text[i]);
    }
    free(solution);
    fixture_free(f);
}

// 24 calls have more parameters than a space.
static void test_too_many(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags;
    Buf text;
    bool ok;
    diags_init(&diags, arena);
    buf_init(&text);
    buf_puts(&text, "SCALAR x0; input x0;\n");
    for (int i = 1; i <= 24; i++)
        buf_printf(&text, "SCALAR x%d; x%d = add(x%d, x0);\n", i, i, i - 1);
    buf_puts(&text, "return x24;\n");
    Script *script = script_parse("many.fws", text.text, NULL, 0, &diags, &ok);
    assert_true(ok);
    assert_null(script_space_new(script, 2, 100, &gpu, &diags));
    assert_string_equal(diags.list.at[0].code, "F037");
    int line, col;
    span_line_col(diags.list.at[0].span, &line, &col);
    assert_int_equal(line, 23); // the first that is one too many
    script_free(script);
    buf_release(&text);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples), cmocka_unit_test(test_count),
        cmocka_unit_test(test_all),      cmocka_unit_test(test_absent),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
