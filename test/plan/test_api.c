// SPDX-License-Identifier: Apache-2.0
//
// The public interface, as a user of the library sees it.

#include "forewarp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "measure/measure.h"

static const char text[] =
    "size N\ndef twice(x: [N]float): [N]float = x |> map(\\v -> 2*v)\n";

static void test_problem(void **state)
{
    (void)state;
    char *message = NULL;
    fw_problem *problem = fw_problem_parse("twice.fw", text, "N=1000", &message);
    assert_non_null(problem);
    assert_null(message);
    assert_true(fw_problem_bytes(problem) == 8000);
    fw_problem_free(problem);
    problem = fw_problem_load("templates/transpose.json", "H=64,W=32", &message);
    assert_non_null(problem);
    assert_true(fw_problem_bytes(problem) == 2 * 64 * 32 * 4);
    fw_problem_free(problem);
}

static void test_messages(void **state)
{
    (void)state;
    char *message = NULL;
    assert_null(fw_problem_parse("twice.fw", text, "", &message));
    assert_non_null(strstr(message, "size N has no value"));
    fw_free_text(message);
    assert_null(fw_problem_parse("bad.fw", "def f(", "", &message));
    assert_non_null(strstr(message, "bad.fw:1:"));
    fw_free_text(message);
    assert_null(fw_problem_load("no/such/file.fw", "", &message));
    fw_free_text(message);
    assert_null(fw_problem_parse("twice.fw", text, "N=x", NULL));
}

static void test_plan(void **state)
{
    (void)state;
    char *message = NULL;
    fw_problem *problem = fw_problem_parse("twice.fw", text, "N=1000", &message);
    fw_tune_options options = {.device = "host",
                               .budget_trials = 3,
                               .store = "/tmp/forewarp-test/api.db",
                               .out = "/tmp/forewarp-test/api",
                               .worker = "/proc/self/exe"};
    fw_plan *plan = fw_plan_make(problem, &options, &message);
    if (message)
        print_message("%s", message);
    assert_non_null(plan);
    assert_non_null(strstr(fw_plan_source(plan), "twice_k0"));
    assert_string_equal(fw_plan_target(plan), "c");
    assert_true(fw_plan_time(plan) > 0 && fw_plan_baseline(plan) > 0);
    fw_plan_free(plan);
    fw_problem_free(problem);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_problem),
                                       cmocka_unit_test(test_messages),
                                       cmocka_unit_test(test_plan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
