// SPDX-License-Identifier: Apache-2.0
//
// Points ranked by a model: fitted to one feature, it must sort points by that feature;
// the same seed gives the same order; what cannot be known is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/dataset.h"
#include "plan/describe.h"
#include "plan/plan.h"

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
    static const Binding binding[] = {{"N", 256}, {"M", 192}};
    Fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    diags_init(&f->diags, f->arena);
    f->problem = problem_load("examples/jacobi2d.fw", &f->diags);
    assert_non_null(f->problem);
    assert_true(problem_bind(f->problem, binding, 2, &f->diags));
    DeviceModel model;
    assert_true(device_model_find("nvidia-a100", &model));
    describe_model(&model, &f->device);
    *state = f;
    return 0;
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
    return MAX(space_int(space, point, "lx") * space_int(space, point, "ly"), 2);
}

static void test_order(void **state)
{
    Fixture *f = *state;
    Model *model = model_of("group_size");
    Ranking ranking, again, other;
    assert_true(
        rank_points(f->problem, &f->device, model, 1, f->arena, &ranking, &f->diags));
    assert_true(rank_points(f->problem, &f->device, model, 1, f->arena, &again, &f->diags));
    assert_true(rank_points(f->problem, &f->device, model, 2, f->arena, &other, &f->diags));
    Derivation *derivation = derive_new(f->problem->bound, &f->device, &f->diags);
    const Space *space = derive_space(derivation);
    assert_true(space_count(space) > 20000 && ranking.n == 10000 && again.n == ranking.n);
    for (int i = 0; i < ranking.n; i++) {
        assert_true(space_valid(space, &ranking.point[i]));
        assert_true(point_equal(space, &ranking.point[i], &again.point[i]));
        if (i > 0)
            assert_true(group_of(space, &ranking.point[i]) <=
                        group_of(space, &ranking.point[i - 1]));
    }
    assert_int_equal(group_of(space, &ranking.point[0]), 1024);
    assert_false(point_equal(space, &ranking.point[0], &other.point[0]));
    derive_free(derivation);
    model_free(model);
}

static void test_unknown_feature(void **state)
{
    Fixture *f = *state;
    static const char *const names[] = {"luck", "luck/outputs", "ifs/luck"};
    for (int i = 0; i < COUNTOF(names); i++) {
        Model *model = model_of(names[i]);
        Ranking ranking;
        assert_false(
            rank_points(f->problem, &f->device, model, 1, f->arena, &ranking, &f->diags));
        assert_int_equal(f->diags.errors, i + 1);
        assert_non_null(strstr(f->diags.list.at[i].message, names[i]));
        model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_feature, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
