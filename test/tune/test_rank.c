// SPDX-License-Identifier: Apache-2.0
//
// Points ranked by a model: fitted to one feature, it must sort points by that feature;
// the same seed gives the same order; kernels add up; what cannot be known is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calibrate/describe.h"
#include "cost/features.h"
#include "model/dataset.h"
#include "tune/tune.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *arena;
    Diags diags;
    Problem *problem;
    DeviceInfo device;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    f->diags = (Diags){.arena = f->arena};
    DeviceModel model;
    assert_true(device_model_find("nvidia-a100", &model));
    describe_model(&model, &f->device);
    *state = f;
    return 0;
}

static void bind(Fixture *f, const char *path, int sizes)
{
    static const Binding binding[] = {{"N", 256}, {"M", 192}};
    f->problem = problem_load(path, &f->diags);
    assert_non_null(f->problem);
    assert_true(problem_bind(f->problem, binding, sizes, &f->diags));
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    problem_free(f->problem);
    arena_free(f->arena);
    free(f);
    return 0;
}

// Faster the larger this column is, from 1 to 1024.
static Model *model_of(const char *column)
{
    Matrix x = matrix_new(1024, 1);
    double y[1024];
    for (int i = 0; i < 1024; i++)
        x.at[i] = i + 1, y[i] = (i + 1) / 1024.0;
    Model *model = model_fit(model_find("knn"), &x, y, 1, &column, "");
    matrix_free(&x);
    return model;
}

// The five nearest of 1 and of 2 are the same: those groups are equal in rank.
static int64_t group_of(const Space *space, const Point *point)
{
    return MAX(space_int(space, point, "lx") *
                   (space_find(space, "ly") < 0 ? 1 : space_int(space, point, "ly")),
               2);
}

static void check_order(Fixture *f, const Ranking *ranking, bool sampled)
{
    Derivation *derivation = derive_new(f->problem->bound, &f->device, &f->diags);
    const Space *space = derive_space(derivation);
    assert_true(sampled ? space_count(space) > 20000 && ranking->n >= 10000
                        : space_count(space) == ranking->n);
    for (int i = 0; i < ranking->n; i++) {
        assert_true(space_valid(space, &ranking->point[i]));
        if (i > 0)
            assert_true(group_of(space, &ranking->point[i]) <=
                        group_of(space, &ranking->point[i - 1]));
    }
    assert_true(group_of(space, &ranking->point[0]) >= 256);
    derive_free(derivation);
}

static bool rank_by(Fixture *f, Model *model, uint64_t seed, Ranking *ranking)
{
    Derivation *derivation = derive_new(f->problem->general, &f->device, &f->diags);
    bool ok = rank_points(f->problem, &f->device, derivation, &(Predictor){model, NULL},
                          NULL, seed, f->arena, ranking, &f->diags);
    derive_free(derivation);
    return ok;
}

static void test_all_points(void **state)
{
    Fixture *f = *state;
    bind(f, "examples/scal.fw", 1);
    Model *model = model_of("group_size");
    Ranking ranking, again, other;
    assert_true(rank_by(f, model, 1, &ranking));
    assert_true(rank_by(f, model, 1, &again));
    assert_true(rank_by(f, model, 2, &other));
    check_order(f, &ranking, false);
    size_t bytes = sizeof(Point) * (size_t)ranking.n;
    assert_true(ranking.n > 20 && again.n == ranking.n && other.n == ranking.n);
    assert_memory_equal(again.point, ranking.point, bytes);
    assert_memory_not_equal(other.point, ranking.point, bytes);
    model_free(model);
}

static void test_some_points(void **state)
{
    Fixture *f = *state;
    bind(f, "examples/jacobi2d.fw", 2);
    Model *model = model_of("group_size");
    Ranking ranking;
    assert_true(rank_by(f, model, 1, &ranking));
    check_order(f, &ranking, true);
    model_free(model);
}

// The bytes of all kernels of the plain point, under a cover.
static double bytes_of(Fixture *f, const char *cover, int *kernels)
{
    Derivation *derivation = derive_new(f->problem->bound, &f->device, &f->diags);
    DeviceModel device;
    describe_device(&f->device, &device);
    FeatureSetting setting = {&device, f->problem->binding, f->problem->nbinding};
    Point point;
    derive_plain(derivation, &point);
    assert_true(space_set(derive_space(derivation), &point, "cover", cover));
    KernelOptions options = derive_options(derivation, &point);
    Unit *unit = lower(f->problem->bound, derive_body(derivation, &point, &f->diags),
                       &options, f->arena, &f->diags);
    assert_non_null(unit);
    double sum = 0;
    *kernels = unit->kernels.len;
    for (int i = 0; i < unit->kernels.len; i++) {
        double feature[FEATURES], bytes;
        assert_true(features_kernel(unit, i, &setting, feature, &bytes));
        assert_true(feature[FEATURE_LAUNCHES] == 1 && feature[FEATURE_OUTPUTS] == 1);
        sum += bytes;
    }
    derive_free(derivation);
    return sum;
}

// blur is two kernels, with a grid between them, or one.
static void test_several_kernels(void **state)
{
    Fixture *f = *state;
    int kernels;
    bind(f, "examples/blur.fw", 2);
    double grid = 4.0 * 256 * 192;
    assert_true(bytes_of(f, "1+2", &kernels) == 2 * grid && kernels == 1);
    assert_true(bytes_of(f, "1|2", &kernels) == 4 * grid && kernels == 2);
}

// What is left out of lowering for features changes none of them.
static void test_quick_lowering(void **state)
{
    Fixture *f = *state;
    bind(f, "examples/blur.fw", 2);
    Derivation *derivation = derive_new(f->problem->bound, &f->device, &f->diags);
    DeviceModel device;
    describe_device(&f->device, &device);
    FeatureSetting setting = {&device, f->problem->binding, f->problem->nbinding};
    Rng rng = rng_new(1);
    for (int i = 0; i < 40; i++) {
        double feature[2][FEATURES];
        Point point;
        space_sample(derive_space(derivation), &rng, &point);
        for (int quick = 0; quick < 2; quick++) {
            KernelOptions options = derive_options(derivation, &point);
            options.quick = quick;
            Unit *unit =
                lower(f->problem->bound, derive_body(derivation, &point, &f->diags),
                      &options, f->arena, &f->diags);
            assert_non_null(unit);
            assert_true(features_unit(unit, &setting, feature[quick]));
        }
        assert_memory_equal(feature[0], feature[1], sizeof feature[0]);
    }
    derive_free(derivation);
}

static void test_unknown_feature(void **state)
{
    Fixture *f = *state;
    bind(f, "examples/scal.fw", 1);
    static const char *const names[] = {"luck", "luck/outputs", "ifs/luck"};
    for (int i = 0; i < COUNTOF(names); i++) {
        Model *model = model_of(names[i]);
        Ranking ranking;
        assert_false(rank_by(f, model, 1, &ranking));
        assert_int_equal(f->diags.errors, i + 1);
        assert_non_null(strstr(f->diags.list.at[i].message, names[i]));
        model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_points, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_some_points, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_several_kernels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_quick_lowering, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_feature, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
