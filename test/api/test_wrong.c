// SPDX-License-Identifier: Apache-2.0
//
// The public interface given what it cannot use: NULL for every object and text, numbers
// that name nothing, wrong counts. This program is its own worker.

#include "forewarp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    "size N\ndef twice(x: [N]float): [N]float = x |> map(\\v -> 2*v)\n";
static const char self[] = "/proc/self/exe";

typedef struct {
    char folder[64], store[96];
    fw_device *host;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/forewarp-test-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->store, sizeof f->store, "%s/a.db", f->folder);
    if (!getenv("FW_TEST_CACHE")) // of tools/check, for all tests
        setenv("XDG_CACHE_HOME", f->folder, 1);
    f->host = fw_device_open("host", self, NULL);
    *state = f;
    return f->host ? 0 : -1;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    fw_device_free(f->host);
    int status = system(command);
    free(f);
    return status;
}

static fw_problem *twice(const char *sizes)
{
    fw_problem *problem = fw_problem_parse("twice.fw", text, sizes, NULL);
    assert_non_null(problem);
    return problem;
}

// Frees what was said of a NULL, which names it.
static void expect_null(char **message)
{
    assert_non_null(*message);
    assert_non_null(strstr(*message, "NULL"));
    fw_free_text(*message);
    *message = NULL;
}

static void test_null_objects(void **state)
{
    const Fixture *f = *state;
    char *m = NULL, *header = (char *)"x", *body = (char *)"x";
    fw_argument argument;
    fw_size size;
    fw_trial trial;
    int64_t extent[2];
    void *list[1] = {NULL};
    fw_problem *problem = twice("N=1000");
    assert_false(fw_problem_load(NULL, NULL, &m));
    expect_null(&m);
    assert_false(fw_problem_parse(NULL, "x", NULL, &m));
    expect_null(&m);
    assert_false(fw_problem_parse("x", NULL, NULL, &m));
    expect_null(&m);
    assert_false(fw_device_open(NULL, NULL, &m));
    expect_null(&m);
    assert_false(fw_device_adopt(NULL, NULL, &m));
    expect_null(&m);
    assert_false(fw_plan_make(NULL, f->host, NULL, &m));
    expect_null(&m);
    assert_false(fw_plan_make(problem, NULL, NULL, &m));
    expect_null(&m);
    assert_false(fw_plan_host(NULL, "x", &header, &body, &m) || header || body);
    expect_null(&m);
    assert_false(fw_plan_host(NULL, "x", NULL, NULL, &m));
    expect_null(&m);
    assert_false(fw_queue_open(NULL, &m));
    expect_null(&m);
    assert_false(fw_load(NULL, NULL, &m));
    expect_null(&m);
    assert_false(fw_execute(NULL, NULL, list, 1, &m));
    expect_null(&m);
    assert_false(fw_run(NULL, list, 1, &m));
    expect_null(&m);
    assert_false(fw_resize(NULL, extent, 1, &m));
    expect_null(&m);
    assert_false(fw_search_open(NULL, f->host, NULL, &m));
    expect_null(&m);
    assert_false(fw_search_open(problem, NULL, NULL, &m));
    expect_null(&m);
    assert_false(fw_search_measure(NULL, "lx=1", &trial, &m));
    expect_null(&m);
    assert_false(fw_search_plan(NULL, NULL, &m));
    expect_null(&m);
    assert_int_equal(fw_wisdom_import(f->store, NULL, "", &m), -1);
    expect_null(&m);
    assert_false(fw_problem_math(NULL, "strict", &m));
    expect_null(&m);
    assert_false(fw_problem_math(problem, NULL, &m));
    expect_null(&m);
    assert_int_equal(fw_wisdom_import(f->store, "x", NULL, &m), -1);
    expect_null(&m);
    assert_false(fw_wisdom_forget(f->store, NULL, f->host, &m));
    expect_null(&m);
    assert_false(fw_wisdom_forget(f->store, problem, NULL, NULL)); // nobody wants to know
    assert_false(fw_problem_label(NULL) || fw_problem_bytes(NULL) > 0 ||
                 fw_problem_arguments(NULL) || fw_problem_argument(NULL, 0, &argument) ||
                 fw_problem_argument(problem, 0, NULL) || fw_problem_sizes(NULL) ||
                 fw_problem_size(NULL, 0, &size) || fw_problem_size(problem, 0, NULL) ||
                 fw_problem_extent(NULL, 0, 0));
    assert_int_equal(fw_problem_shape(NULL, 0, extent, 2), -1);
    assert_int_equal(fw_problem_shape(problem, 0, NULL, 2), -1);
    assert_false(fw_device_id(NULL) || fw_device_name(NULL) || fw_device_fingerprint(NULL));
    assert_int_equal(fw_plan_origin(NULL), FW_PLAIN);
    assert_false(fw_plan_found_for(NULL) || fw_plan_foreign(NULL) || fw_plan_source(NULL) ||
                 fw_plan_target(NULL) || fw_plan_point(NULL) || fw_plan_time(NULL) > 0 ||
                 fw_plan_baseline(NULL) > 0 || fw_queue_handle(NULL));
    assert_false(fw_search_points(NULL) > 0 || fw_search_parameters(NULL) ||
                 fw_search_parameter(NULL, 0, NULL) || fw_search_value(NULL, 0, 0) ||
                 fw_search_valid(NULL, "lx=1") || fw_search_plain(NULL) ||
                 fw_search_ask(NULL) || fw_search_tell(NULL, "lx=1", 1));
    fw_free_text(NULL);
    fw_problem_free(NULL);
    fw_device_free(NULL);
    fw_plan_free(NULL);
    fw_queue_free(NULL);
    fw_executable_free(NULL);
    fw_search_free(NULL);
    fw_problem_free(problem);
}

// Numbers that name nothing, texts that are none, and counts that are wrong.
static void test_wrong_numbers(void **state)
{
    const Fixture *f = *state;
    static const int numbers[] = {-1, INT_MIN, INT_MAX, 1000};
    char *m = NULL;
    fw_argument argument;
    fw_trial trial;
    int64_t extent[1] = {7};
    void *list[2] = {NULL, NULL};
    fw_problem *problem = twice("N=1000");
    fw_plan_options options = {.store = f->store, .worker = self, .rigor = FW_ESTIMATE};
    fw_plan *plan = fw_plan_make(problem, f->host, &options, NULL);
    fw_search *search = fw_search_open(problem, f->host, &options, NULL);
    fw_executable *kernel = fw_load(plan, NULL, NULL);
    assert_true(plan && search && kernel);
    for (int k = 0; k < (int)(sizeof numbers / sizeof numbers[0]); k++) {
        int i = numbers[k];
        assert_false(fw_problem_argument(problem, i, &argument));
        assert_int_equal(fw_problem_shape(problem, i, extent, 1), -1);
        assert_false(fw_search_parameter(search, i, NULL) ||
                     fw_search_value(search, i, 0) || fw_search_value(search, 0, i));
        assert_false(fw_execute(kernel, NULL, list, i, &m));
        assert_non_null(strstr(m, "takes"));
        fw_free_text(m);
        assert_false(fw_run(kernel, list, i, &m));
        assert_non_null(strstr(m, "takes"));
        fw_free_text(m);
    }
    assert_int_equal(fw_problem_shape(problem, 0, extent, -1), 1);
    assert_int_equal(extent[0], 7);
    assert_false(fw_execute(kernel, NULL, list, 2, &m));
    expect_null(&m);
    assert_false(fw_run(kernel, list, 2, &m));
    expect_null(&m);
    assert_false(fw_execute(kernel, NULL, NULL, 2, &m));
    expect_null(&m);
    static const char *const points[] = {NULL,  "",          "=",        "lx",
                                         "lx=", "lx=1 lx=1", "\xff=\xff"};
    for (int k = 0; k < (int)(sizeof points / sizeof points[0]); k++) {
        assert_false(fw_search_valid(search, points[k]) ||
                     fw_search_tell(search, points[k], 1));
        assert_false(fw_search_measure(search, points[k], &trial, &m));
        fw_free_text(m);
        fw_plan *none = points[k] ? fw_search_plan(search, points[k], NULL) : NULL;
        assert_null(none);
    }
    assert_false(fw_search_measure(search, fw_search_plain(search), NULL, &m));
    expect_null(&m);
    assert_true(fw_search_tell(search, fw_search_plain(search), NAN));
    assert_null(fw_search_plan(search, NULL, NULL)); // nothing that can be used was told
    fw_executable_free(kernel);
    fw_search_free(search);
    fw_plan_free(plan);
    fw_problem_free(problem);
}

int main(int argc, char **argv)
{
    int status;
    if (fw_worker(argc, argv, &status))
        return status;
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_null_objects), TEST(test_wrong_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
