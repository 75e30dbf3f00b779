// SPDX-License-Identifier: Apache-2.0
//
// The public interface, as a user of the library sees it: on the host, and on the first
// OpenCL device if there is one. This program is its own worker.

#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "forewarp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <CL/cl.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] =
    "size N\ndef twice(x: [N]float): [N]float = x |> map(\\v -> 2*v)\n";
static const char steps[] = "size N\n"
                            "def steps(x: [N]float): [N]float =\n"
                            "  x |> iterate(3, \\s -> s |> map(\\v -> v + 1))\n";
static const char self[] = "/proc/self/exe";

typedef struct {
    char folder[64], store[96], other[96];
    fw_device *host;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/forewarp-test-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->store, sizeof f->store, "%s/a.db", f->folder);
    snprintf(f->other, sizeof f->other, "%s/b.db", f->folder);
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

// Where tools/check has measured what the devices reach, a store that knows it.
static void know_devices(const Fixture *f)
{
    const char *from = getenv("FW_TEST_STORE");
    char command[512];
    if (from && snprintf(command, sizeof command, "cp '%s' '%s'", from, f->store) < 512)
        assert_int_equal(system(command), 0);
}

static fw_problem *twice(const char *sizes)
{
    fw_problem *problem = fw_problem_parse("twice.fw", text, sizes, NULL);
    assert_non_null(problem);
    return problem;
}

// Problems and devices ------------------------------------------------------------------

static void test_problem(void **state)
{
    (void)state;
    char *message = NULL;
    fw_argument a;
    fw_problem *problem = fw_problem_parse("twice.fw", text, "N=1000", &message);
    assert_non_null(problem);
    assert_null(message);
    assert_true(fw_problem_bytes(problem) == 8000);
    assert_string_equal(fw_problem_label(problem), "twice N=1000");
    assert_true(fw_problem_math(problem, "strict", &message));
    assert_false(fw_problem_math(problem, "loose", &message));
    assert_non_null(strstr(message, "and not `loose`"));
    fw_free_text(message);
    message = NULL;
    assert_int_equal(fw_problem_arguments(problem), 2);
    assert_true(fw_problem_argument(problem, 0, &a));
    assert_string_equal(a.name, "x");
    assert_true(a.in && !a.out && a.bytes == 4000 && a.count == 1000);
    assert_true(fw_problem_argument(problem, 1, &a));
    assert_string_equal(a.name, "out");
    assert_string_equal(a.type, "float");
    assert_true(!a.in && a.out);
    assert_false(fw_problem_argument(problem, 2, &a));
    fw_problem_free(problem);
    problem = fw_problem_load("templates/transpose.json", "H=64,W=32", &message);
    assert_non_null(problem);
    assert_true(fw_problem_bytes(problem) == 2 * 64 * 32 * 4);
    assert_int_equal(fw_problem_arguments(problem), 2);
    assert_false(fw_problem_math(problem, "strict", &message));
    assert_non_null(strstr(message, "options"));
    fw_free_text(message);
    fw_problem_free(problem);
}

static void has_shape(const char *program, const char *sizes, int i, int rank,
                      const int64_t *want)
{
    int64_t extent[4] = {-1, -1, -1, -1};
    fw_problem *problem = strchr(program, '\n')
                              ? fw_problem_parse("shapes.fw", program, sizes, NULL)
                              : fw_problem_load(program, sizes, NULL);
    assert_non_null(problem);
    assert_int_equal(fw_problem_shape(problem, i, extent, 4), rank);
    for (int d = 0; d < 4; d++)
        assert_int_equal(extent[d], d < rank ? want[d] : -1);
    // No more are set than there is room for.
    extent[0] = -1;
    assert_int_equal(fw_problem_shape(problem, i, extent, 0), rank);
    assert_int_equal(extent[0], -1);
    fw_problem_free(problem);
}

static void test_shapes(void **state)
{
    (void)state;
    static const char pairs[] =
        "size N, M\n"
        "def f(s: float, x: [N][M](float, int)): [M][N]float =\n"
        "  x |> transpose |> map(\\r -> r |> map(\\p -> s * p.0))\n";
    const int64_t in[] = {5, 3}, out[] = {3, 5}, none[] = {0};
    has_shape(pairs, "N=5,M=3", 0, 0, none);
    has_shape(pairs, "N=5,M=3", 1, 2, in);
    has_shape(pairs, "N=5,M=3", 2, 2, in);
    has_shape(pairs, "N=5,M=3", 3, 2, out);
    has_shape(pairs, "N=5,M=3", 4, -1, none);
    has_shape(pairs, "N=5,M=3", -1, -1, none);
    has_shape("templates/transpose.json", "H=64,W=32", 1, 2, (int64_t[]){32, 64});
    has_shape("examples/fusion/axpydot.fws", "T=1000", 0, 1, (int64_t[]){1000});
}

static void test_messages(void **state)
{
    char *message = NULL;
    assert_null(fw_problem_parse("twice.fw", text, "", &message));
    assert_non_null(strstr(message, "size N has no value"));
    fw_free_text(message);
    assert_null(fw_problem_parse("open.fw",
                                 "size N generic\n"
                                 "def twice(x: [N]float) = x |> map(\\v -> 2*v)\n",
                                 "", &message));
    assert_non_null(strstr(message, "open.fw:1:6: error T021: size N has no value"));
    fw_free_text(message);
    assert_null(fw_problem_parse("bad.fw", "def f(", "", &message));
    assert_non_null(strstr(message, "bad.fw:1:"));
    fw_free_text(message);
    assert_null(fw_problem_load("no/such/file.fw", "", &message));
    fw_free_text(message);
    assert_null(fw_problem_parse("twice.fw", text, "N=x", NULL));
    assert_null(fw_device_open("moon:0", self, &message));
    assert_non_null(strstr(message, "moon:0"));
    fw_free_text(message);
    assert_null(fw_device_open("opencl:99", self, &message));
    fw_free_text(message);
    assert_null(fw_device_adopt("opencl", NULL, &message));
    assert_non_null(strstr(message, "NULL"));
    fw_free_text(message);
    // What failed before is passed on: a message, and no crash.
    char *header, *body;
    const Fixture *f = *state;
    fw_problem *problem = twice("N=8");
#define IS_NULL(call)                                                                      \
    do {                                                                                   \
        message = NULL;                                                                    \
        assert_true((call));                                                               \
        assert_non_null(strstr(message, "is NULL"));                                       \
        fw_free_text(message);                                                             \
    } while (0)
    IS_NULL(!fw_problem_load(NULL, "", &message));
    IS_NULL(!fw_problem_parse("x.fw", NULL, "", &message));
    IS_NULL(!fw_device_open(NULL, self, &message));
    IS_NULL(!fw_device_adopt(NULL, NULL, &message));
    IS_NULL(!fw_plan_make(NULL, f->host, NULL, &message));
    IS_NULL(!fw_plan_make(problem, NULL, NULL, &message));
    IS_NULL(!fw_plan_host(NULL, "x", &header, &body, &message));
    IS_NULL(!fw_load(NULL, NULL, &message));
    IS_NULL(!fw_execute(NULL, NULL, (void *[]){problem}, 1, &message));
    IS_NULL(!fw_search_open(NULL, f->host, NULL, &message));
    IS_NULL(fw_wisdom_import(f->store, "w", NULL, &message) == -1);
    IS_NULL(!fw_wisdom_forget(f->store, NULL, f->host, &message));
#undef IS_NULL
    assert_null(fw_plan_make(NULL, f->host, NULL, NULL));
    fw_problem_free(problem);
    fw_plan_free(NULL);
    fw_device_free(NULL);
    fw_problem_free(NULL);
    fw_executable_free(NULL);
    fw_search_free(NULL);
}

static void test_device(void **state)
{
    const Fixture *f = *state;
    fw_device *adopted = fw_device_adopt("host", NULL, NULL);
    assert_non_null(adopted);
    assert_string_equal(fw_device_id(adopted), "host");
    assert_string_equal(fw_device_fingerprint(adopted), fw_device_fingerprint(f->host));
    assert_true(strlen(fw_device_name(adopted)) > 0);
    fw_device_free(adopted);
}

// Plans -------------------------------------------------------------------------------

static fw_plan *make(const Fixture *f, const fw_problem *problem, fw_rigor rigor,
                     char **message)
{
    fw_plan_options options = {
        .rigor = rigor, .budget_trials = 3, .store = f->store, .worker = self};
    return fw_plan_make(problem, f->host, &options, message);
}

static void check_twice(const fw_plan *plan, int n)
{
    float *x = malloc(sizeof(float) * (size_t)n), *out = calloc((size_t)n, sizeof(float));
    char *message = NULL;
    for (int i = 0; i < n; i++)
        x[i] = (float)i;
    fw_executable *executable = fw_load(plan, NULL, &message);
    if (message)
        print_message("%s", message);
    assert_non_null(executable);
    void *const buffer[] = {x, out};
    assert_true(fw_execute(executable, NULL, buffer, 2, &message));
    for (int i = 0; i < n; i++)
        assert_true(out[i] == 2 * x[i]);
    assert_false(fw_execute(executable, NULL, buffer, 1, &message));
    assert_non_null(strstr(message, "takes 2 buffers, not 1"));
    fw_free_text(message);
    void *const none[] = {x, NULL};
    assert_false(fw_execute(executable, NULL, none, 2, &message));
    assert_non_null(strstr(message, "buffer 1 (out)"));
    fw_free_text(message);
    fw_executable_free(executable);
    free(x);
    free(out);
}

static void test_measure(void **state)
{
    const Fixture *f = *state;
    know_devices(f);
    char *message = NULL;
    fw_problem *problem = twice("N=1000");
    fw_plan *plan = make(f, problem, FW_MEASURE, &message);
    if (message)
        print_message("%s", message);
    assert_non_null(plan);
    assert_non_null(strstr(fw_plan_source(plan), "twice_k0"));
    assert_string_equal(fw_plan_target(plan), "c");
    assert_int_equal(fw_plan_origin(plan), FW_MEASURED);
    assert_true(fw_plan_time(plan) > 0 && fw_plan_baseline(plan) > 0);
    assert_null(fw_plan_found_for(plan));
    fw_problem_free(problem); // a plan needs it no more
    check_twice(plan, 1000);
    fw_plan_free(plan);
}

// What was found is wisdom: for less rigorous requests, and marked for other sizes.
static void test_wisdom_of_store(void **state)
{
    const Fixture *f = *state;
    know_devices(f);
    char *message = NULL;
    fw_problem *problem = twice("N=1000"), *larger = twice("N=2000");
    assert_null(make(f, problem, FW_WISDOM_ONLY, &message));
    assert_non_null(strstr(message, "no wisdom"));
    fw_free_text(message);
    fw_plan *plan = make(f, problem, FW_MEASURE, NULL);
    assert_non_null(plan);
    fw_plan_free(plan);
    plan = make(f, problem, FW_MEASURE, &message);
    assert_int_equal(fw_plan_origin(plan), FW_WISDOM);
    assert_null(message);
    fw_plan_free(plan);
    plan = make(f, problem, FW_PATIENT, NULL); // asks for more than there is
    assert_int_equal(fw_plan_origin(plan), FW_MEASURED);
    fw_plan_free(plan);
    plan = make(f, problem, FW_WISDOM_ONLY, NULL);
    double time = fw_plan_time(plan);
    fw_plan_free(plan);
    plan = make(f, larger, FW_WISDOM_ONLY, &message);
    assert_int_equal(fw_plan_origin(plan), FW_NEAREST);
    assert_string_equal(fw_plan_found_for(plan), "twice N=1000");
    assert_non_null(strstr(message, "not measured"));
    fw_free_text(message);
    assert_true(fw_plan_time(plan) > time); // in proportion to the bytes
    check_twice(plan, 2000);
    fw_plan_free(plan);
    assert_true(fw_wisdom_forget(f->store, problem, f->host, NULL));
    assert_null(make(f, larger, FW_WISDOM_ONLY, NULL));
    fw_problem_free(problem);
    fw_problem_free(larger);
}

// An estimate runs nothing, and so needs no worker; the store is not made.
static void test_estimate(void **state)
{
    const Fixture *f = *state;
    fw_problem *problem = twice("N=5000");
    fw_plan_options options = {
        .rigor = FW_ESTIMATE, .store = f->store, .worker = "/no/worker"};
    fw_plan *plan = fw_plan_make(problem, f->host, &options, NULL);
    assert_non_null(plan);
    assert_int_equal(fw_plan_origin(plan), FW_PLAIN);
    assert_true(fw_plan_time(plan) == 0);
    fw_plan_free(plan);
    options.models = "data/models";
    plan = fw_plan_make(problem, f->host, &options, NULL);
    assert_int_equal(fw_plan_origin(plan), FW_PREDICTED);
    check_twice(plan, 5000);
    fw_plan_free(plan);
    assert_int_not_equal(access(f->store, F_OK), 0);
    fw_problem_free(problem);
}

typedef struct {
    int shown, accept_at, trials, stop_at, wrong;
} Hooks;

static int on_trial(void *user, const fw_trial *trial)
{
    Hooks *hooks = user;
    hooks->wrong += strcmp(trial->status, "ok") != 0 || !(trial->time > 0);
    return ++hooks->trials == hooks->stop_at;
}

static int verify(void *user, const fw_result *result)
{
    Hooks *hooks = user;
    const float *x = result->input[0], *out = result->output[1];
    hooks->wrong += result->n != 2 || result->input[1] || result->output[0];
    for (int i = 0; i < 1000; i++)
        hooks->wrong += out[i] != 2 * x[i];
    return ++hooks->shown == hooks->accept_at;
}

static void test_hooks(void **state)
{
    const Fixture *f = *state;
    know_devices(f);
    fw_problem *problem = twice("N=1000");
    Hooks hooks = {.accept_at = 2, .stop_at = 4};
    fw_plan_options options = {.store = f->store,
                               .worker = self,
                               .budget_trials = 50,
                               .on_trial = on_trial,
                               .verify = verify,
                               .user = &hooks};
    fw_plan *plan = fw_plan_make(problem, f->host, &options, NULL);
    assert_non_null(plan);
    assert_int_equal(hooks.shown, 2);
    assert_int_equal(hooks.wrong, 0);
    assert_true(hooks.trials >= 4 && hooks.trials < 50);
    fw_plan_free(plan);
    hooks = (Hooks){.accept_at = -1, .stop_at = 1};
    char *message = NULL;
    assert_null(fw_plan_make(problem, f->host, &options, &message));
    assert_non_null(strstr(message, "accepted none"));
    fw_free_text(message);
    fw_problem_free(problem);
}

// Wisdom is shown too, and a search follows where it is rejected.
static void test_verify_wisdom(void **state)
{
    const Fixture *f = *state;
    fw_problem *problem = twice("N=1009");
    fw_plan_free(make(f, problem, FW_MEASURE, NULL));
    Hooks hooks = {.accept_at = 1};
    fw_plan_options options = {.store = f->store,
                               .worker = self,
                               .budget_trials = 5,
                               .on_trial = on_trial,
                               .verify = verify,
                               .user = &hooks};
    fw_plan *plan = fw_plan_make(problem, f->host, &options, NULL);
    assert_non_null(plan);
    assert_int_equal(fw_plan_origin(plan), FW_WISDOM);
    assert_true(fw_plan_time(plan) > 0);
    assert_int_equal(hooks.shown, 1);
    assert_int_equal(hooks.trials, 0);
    fw_plan_free(plan);
    hooks = (Hooks){.accept_at = 4}; // one more than was tried before
    plan = fw_plan_make(problem, f->host, &options, NULL);
    assert_non_null(plan);
    assert_int_equal(fw_plan_origin(plan), FW_MEASURED);
    assert_int_equal(hooks.wrong, 0);
    fw_plan_free(plan);
    fw_problem_free(problem);
}

static void test_wrong_options(void **state)
{
    const Fixture *f = *state;
    char *message = NULL;
    fw_problem *problem = twice("N=1000");
    fw_plan_options options = {.store = f->store, .worker = self, .strategy = "luck"};
    assert_null(fw_plan_make(problem, f->host, &options, &message));
    assert_non_null(strstr(message, "luck"));
    fw_free_text(message);
    options = (fw_plan_options){.store = f->store, .worker = self, .where = "lx >="};
    assert_null(fw_plan_make(problem, f->host, &options, &message));
    fw_free_text(message);
    options = (fw_plan_options){.store = f->store, .worker = "/no/worker"};
    assert_null(fw_plan_make(problem, f->host, &options, &message));
    fw_free_text(message);
    options = (fw_plan_options){.rigor = (fw_rigor)77, .worker = self};
    assert_null(fw_plan_make(problem, f->host, &options, &message));
    fw_free_text(message);
    fw_problem_free(problem);
}

// A search of one's own ---------------------------------------------------------------

static void test_own_search(void **state)
{
    const Fixture *f = *state;
    know_devices(f);
    char *message = NULL, plain[256];
    fw_problem *problem = twice("N=1000");
    fw_plan_options options = {
        .store = f->store, .worker = self, .strategy = "random", .seed = 3};
    fw_search *search = fw_search_open(problem, f->host, &options, &message);
    assert_non_null(search);
    assert_true(fw_search_points(search) > 10);
    int n = fw_search_parameters(search), values = 0;
    assert_true(n > 2);
    assert_non_null(fw_search_parameter(search, 0, &values));
    assert_true(values > 0 && fw_search_value(search, 0, values - 1));
    assert_null(fw_search_value(search, 0, values));
    assert_null(fw_search_parameter(search, n, NULL));
    snprintf(plain, sizeof plain, "%s", fw_search_plain(search));
    assert_true(fw_search_valid(search, plain));
    assert_false(fw_search_valid(search, "lx=3"));
    assert_null(fw_search_plan(search, NULL, &message));
    fw_free_text(message);
    fw_trial trial;
    assert_true(fw_search_measure(search, plain, &trial, &message));
    assert_string_equal(trial.status, "ok");
    assert_true(trial.time > 0);
    double time = trial.time;
    assert_true(fw_search_measure(search, plain, &trial, &message)); // from the store
    assert_true(trial.time == time);
    assert_false(fw_search_measure(search, "lx=3", &trial, &message));
    fw_free_text(message);
    fw_plan *plan = fw_search_plan(search, NULL, &message);
    assert_string_equal(fw_plan_point(plan), plain);
    assert_int_equal(fw_plan_origin(plan), FW_MEASURED);
    fw_plan_free(plan);
    fw_search_free(search);
    fw_problem_free(problem);
}

// The strategy's points, the caller's times: here large values of the first parameter are
// fast, and the search finds the largest.
static void test_ask_tell(void **state)
{
    const Fixture *f = *state;
    fw_problem *problem = twice("N=4096");
    fw_plan_options options = {.store = f->store, .worker = "/no/worker"};
    fw_search *search = fw_search_open(problem, f->host, &options, NULL);
    assert_non_null(search);
    double best = INFINITY;
    for (int i = 0; i < 60; i++) {
        const char *asked = fw_search_ask(search);
        if (!asked)
            break;
        const char *bx = strstr(asked, "bx=");
        assert_non_null(bx);
        double time = 1.0 / atof(bx + 3);
        best = time < best ? time : best;
        assert_true(fw_search_tell(search, asked, i % 7 == 6 ? 0 : time));
    }
    assert_false(fw_search_tell(search, "bx=1", 1));
    fw_plan *plan = fw_search_plan(search, NULL, NULL);
    assert_non_null(plan);
    assert_int_equal(fw_plan_origin(plan), FW_PREDICTED); // never run by forewarp
    assert_true(1.0 / atof(strstr(fw_plan_point(plan), "bx=") + 3) <= 2 * best);
    fw_plan_free(plan);
    fw_search_free(search);
    fw_problem_free(problem);
}

// Wisdom as text ------------------------------------------------------------------------

static char *replaced(const char *in, const char *old, const char *new)
{
    const char *at = strstr(in, old);
    assert_non_null(at);
    char *out = malloc(strlen(in) + strlen(new) + 1);
    sprintf(out, "%.*s%s%s", (int)(at - in), in, new, at + strlen(old));
    return out;
}

static void test_wisdom_text(void **state)
{
    const Fixture *f = *state;
    know_devices(f);
    char *message = NULL;
    fw_problem *problem = twice("N=1000");
    fw_plan_free(make(f, problem, FW_MEASURE, NULL));
    char *wisdom = fw_wisdom_export(f->store, &message);
    assert_non_null(wisdom);
    assert_non_null(strstr(wisdom, "\"problem\": \"twice N=1000\""));
    assert_int_equal(fw_wisdom_import(f->other, "w", wisdom, &message), 1);
    assert_int_equal(fw_wisdom_import(f->other, "w", wisdom, &message), 0);
    char *again = fw_wisdom_export(f->other, NULL);
    assert_non_null(strstr(again, "\"point\""));
    fw_plan_options options = {.store = f->other, .worker = self};
    fw_plan *plan = fw_plan_make(problem, f->host, &options, NULL);
    assert_int_equal(fw_plan_origin(plan), FW_WISDOM);
    fw_plan_free(plan);
    free(again);
    // Of another device: never, unless asked for, and then it is said.
    assert_true(fw_wisdom_forget(f->other, problem, f->host, NULL));
    char *foreign = replaced(wisdom, fw_device_fingerprint(f->host), "0123456789abcdef");
    assert_int_equal(fw_wisdom_import(f->other, "w", foreign, NULL), 1);
    options.rigor = FW_WISDOM_ONLY;
    assert_null(fw_plan_make(problem, f->host, &options, NULL));
    options.any_device = 1;
    plan = fw_plan_make(problem, f->host, &options, &message);
    assert_non_null(plan);
    assert_string_equal(fw_plan_foreign(plan), fw_device_name(f->host));
    assert_non_null(strstr(message, "another device"));
    fw_free_text(message);
    fw_plan_free(plan);
    free(foreign);
    fw_free_text(wisdom);
    fw_problem_free(problem);
}

static void test_wrong_wisdom(void **state)
{
    const Fixture *f = *state;
    char *message = NULL;
    static const char good[] =
        "{\"forewarp\": \"wisdom\", \"format\": 1}\n"
        "{\"problem\": \"p N=1\", \"device\": \"d\", \"point\": \"lx=1\", \"time_ns\": 5, "
        "\"rigor\": \"none\", \"trials\": 1, \"when\": \"w\", \"version\": \"v\", "
        "\"fingerprint\": \"0123456789abcdef\", \"problem_hash\": \"0123456789abcdef\", "
        "\"space_hash\": \"0123456789abcdef\"}\n";
    assert_int_equal(fw_wisdom_import(f->store, "good", good, NULL), 1);
    static const struct {
        const char *old, *new, *says;
    } change[] = {
        {"wisdom", "folly", "not wisdom"},
        {"\"format\": 1", "\"format\": 2", "format"},
        {"5,", "-5,", "time_ns"},
        {"5,", "1e999,", ":2:"},
        {"\"trials\": 1", "\"trials\": 0", "trials"},
        {"none", "some", "rigor"},
        {"p N=1", "p\\u0007", "problem"},
        {"\"when\"", "\"whence\"", "when"},
        {"0123456789abcdef", "0123456789abcdeF", "fingerprint"},
        {"\"device\": \"d\"", "\"device\": 7", "device"},
        {"\"device\": \"d\"", "\"device\": \"d\", \"extra\": 1", "unknown"},
        {"}\n{", "}\n{]", ":2:"},
        {"lx=1", "lx", "point"},
        {"lx=1", "lx=1 lx=2", "point"},
        {"lx=1", "=1", "point"},
        {"lx=1", "a\xff", ":2:"},
        {"\"d\"", "\"\\u009b\"", "device"},
    };
    for (int i = 0; i < (int)(sizeof change / sizeof change[0]); i++) {
        char *bad = replaced(good, change[i].old, change[i].new);
        assert_int_equal(fw_wisdom_import(f->store, "bad", bad, &message), -1);
        if (!strstr(message, change[i].says))
            fail_msg("%s: %s", change[i].says, message);
        fw_free_text(message);
        free(bad);
    }
    assert_int_equal(fw_wisdom_import(f->store, "empty", "", NULL), -1);
}

// A queue of one's own --------------------------------------------------------------------

typedef struct {
    cl_context context;
    cl_command_queue queue;
    cl_mem x, out;
} Guest;

static bool open_guest(Guest *guest, size_t bytes)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
        return false;
    guest->context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    guest->queue = clCreateCommandQueue(guest->context, device,
                                        CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);
    if (error != CL_SUCCESS)
        guest->queue = clCreateCommandQueue(guest->context, device, 0, &error);
    guest->x = clCreateBuffer(guest->context, CL_MEM_READ_ONLY, bytes, NULL, &error);
    guest->out = clCreateBuffer(guest->context, CL_MEM_READ_WRITE, bytes, NULL, &error);
    return error == CL_SUCCESS;
}

static void close_guest(Guest *guest)
{
    clReleaseMemObject(guest->x);
    clReleaseMemObject(guest->out);
    clReleaseCommandQueue(guest->queue);
    clReleaseContext(guest->context);
}

// Several launches with a buffer between them, in a queue without order.
// On arrays of this process, which need not be aligned, and in a queue of forewarp's own.
static void run_host(const char *id)
{
    enum { N = 1000 };
    char *message = NULL;
    static float room[N + 1], out[N];
    fw_device *device = fw_device_open(id, self, NULL);
    assert_non_null(device);
    fw_problem *problem = fw_problem_parse("steps.fw", steps, "N=1000", NULL);
    fw_plan_options options = {.rigor = FW_ESTIMATE, .store = "/no/store", .worker = self};
    fw_plan *plan = fw_plan_make(problem, device, &options, NULL);
    fw_queue *queue = fw_queue_open(device, &message);
    assert_non_null(queue);
    assert_null(message);
    fw_executable *kernel = fw_load(plan, fw_queue_handle(queue), &message);
    assert_non_null(kernel);
    for (int shift = 0; shift < 2; shift++) {
        float *x = shift ? (float *)(void *)((char *)room + 1) : room;
        for (int i = 0; i < N; i++)
            memcpy(&x[i], &(float){(float)(i + shift)}, sizeof *x);
        assert_true(fw_run(kernel, (void *[]){x, out}, 2, &message));
        assert_null(message);
        for (int i = 0; i < N; i++)
            assert_true(out[i] == (float)(i + shift + 3));
    }
    assert_false(fw_run(kernel, (void *[]){room}, 1, &message));
    assert_non_null(strstr(message, "takes 2 buffers, not 1"));
    fw_free_text(message);
    assert_false(fw_run(kernel, (void *[]){room, NULL}, 2, &message));
    assert_non_null(strstr(message, "array out is NULL"));
    fw_free_text(message);
    assert_false(fw_run(kernel, (void *[]){room, room + 1}, 2, &message));
    assert_non_null(strstr(message, "x and out overlap, and kernels write out"));
    fw_free_text(message);
    fw_executable_free(kernel);
    fw_queue_free(queue);
    fw_plan_free(plan);
    fw_problem_free(problem);
    fw_device_free(device);
}

// Scalars are the addresses of their values, also where a kernel wants them in memory.
static const char *const grow =
    "size N\n"
    "def grow(g: float, on: bool, k: long, s: (double, ushort), x: [N]float):\n"
    "  ([N]float, float) =\n"
    "  (x, g) |> iterate(2, \\t -> (map(\\v -> (if on then v * t.1 else v) + float(k) +\n"
    "    float(s.0) + float(s.1), t.0), t.1))\n";

static void run_scalars(const char *id)
{
    enum { N = 100 };
    char *message = NULL;
    float x[N], out[N], g = 2, last = 0;
    unsigned char on = 1;
    int64_t k = -3;
    double s = 0.5;
    uint16_t t = 7;
    fw_device *device = fw_device_open(id, self, NULL);
    fw_problem *problem = fw_problem_parse("grow.fw", grow, "N=100", &message);
    fw_plan_options options = {.rigor = FW_ESTIMATE, .store = "/no/store", .worker = self};
    fw_plan *plan = fw_plan_make(problem, device, &options, NULL);
    fw_queue *queue = fw_queue_open(device, NULL);
    fw_executable *kernel = fw_load(plan, fw_queue_handle(queue), &message);
    assert_non_null(kernel);
    void *array[] = {&g, &on, &k, &s, &t, x, out, &last};
    fw_argument argument;
    for (int i = 0; i < 8; i++) {
        assert_true(fw_problem_argument(problem, i, &argument));
        assert_int_equal(argument.value, i < 5);
    }
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    for (; g < 5; g += 2, on = !on) {
        assert_true(fw_run(kernel, array, 8, &message));
        for (int i = 0; i < N; i++) {
            float once = (on ? x[i] * g : x[i]) + 4.5F;
            assert_true(out[i] == (on ? once * g : once) + 4.5F);
        }
        assert_true(last == g);
    }
    array[2] = NULL;
    assert_false(fw_run(kernel, array, 8, &message));
    assert_non_null(strstr(message, "array k is NULL"));
    fw_free_text(message);
    fw_executable_free(kernel);
    fw_queue_free(queue);
    fw_plan_free(plan);
    fw_problem_free(problem);
    fw_device_free(device);
}

static void test_opencl(void **state)
{
    const Fixture *f = *state;
    know_devices(f);
    enum { N = 1000 };
    Guest guest = {0};
    float x[N], out[N];
    char *message = NULL;
    if (!open_guest(&guest, sizeof x))
        skip();
    fw_device *device = fw_device_adopt("opencl", guest.queue, &message);
    assert_non_null(device);
    assert_string_equal(fw_device_id(device), "opencl:0");
    fw_problem *problem = fw_problem_parse("steps.fw", steps, "N=1000", NULL);
    fw_plan_options options = {.store = f->store, .worker = self, .budget_trials = 2};
    fw_plan *plan = fw_plan_make(problem, device, &options, &message);
    if (message)
        print_message("%s", message);
    assert_non_null(plan);
    fw_executable *executable = fw_load(plan, guest.queue, &message);
    assert_non_null(executable);
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    clEnqueueWriteBuffer(guest.queue, guest.x, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL);
    void *buffer[] = {guest.x, guest.out};
    assert_true(fw_execute(executable, guest.queue, buffer, 2, &message));
    clFinish(guest.queue);
    clEnqueueReadBuffer(guest.queue, guest.out, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == x[i] + 3);
    cl_int error;
    cl_mem small = clCreateBuffer(guest.context, CL_MEM_READ_WRITE, 64, NULL, &error);
    buffer[1] = small;
    assert_false(fw_execute(executable, guest.queue, buffer, 2, &message));
    assert_non_null(strstr(message, "buffer 1 (out): it has 64 bytes, 4000 are needed"));
    fw_free_text(message);
    clReleaseMemObject(small);
    fw_executable_free(executable);
    assert_true(fw_wisdom_forget(f->store, problem, device, NULL));
    fw_plan_free(plan);
    fw_problem_free(problem);
    fw_device_free(device);
    close_guest(&guest);
    // In this test: PoCL keeps the folder of caches that it saw first.
    run_host("opencl:0");
    run_scalars("opencl:0");
}

// A plan that somebody edited is found out in a worker, and never reaches this process.
static void test_run_on_host(void **state)
{
    (void)state;
    run_host("host");
    run_scalars("host");
}

static void test_trapped_wisdom(void **state)
{
    const Fixture *f = *state;
    static const char *const bad[] = {"\"A=3\"", "\"A=4\"", "\"A=5\"", "\"B=1\""};
    char *message = NULL;
    fw_device *device = fw_device_open("opencl:0", self, NULL);
    if (!device)
        skip();
    fw_problem *problem = fw_problem_load("test/programs/templates/trap.json", "", NULL);
    fw_plan_options options = {.store = f->store, .worker = self, .budget_trials = 1};
    fw_plan_free(fw_plan_make(problem, device, &options, NULL));
    char *wisdom = fw_wisdom_export(f->store, NULL);
    options.store = f->other;
    for (int i = 0; i < (int)(sizeof bad / sizeof bad[0]); i++) {
        char *edited = replaced(wisdom, "\"A=1\"", bad[i]);
        assert_int_equal(fw_wisdom_import(f->other, "w", edited, NULL), 1);
        options.rigor = FW_WISDOM_ONLY;
        assert_null(fw_plan_make(problem, device, &options, &message));
        assert_non_null(strstr(message, "is not used"));
        assert_non_null(strstr(message, "no wisdom"));
        fw_free_text(message);
        options.rigor = FW_ESTIMATE;
        fw_plan *plan = fw_plan_make(problem, device, &options, &message);
        assert_non_null(plan);
        assert_int_equal(fw_plan_origin(plan), FW_PLAIN);
        assert_string_equal(fw_plan_point(plan), "A=1");
        assert_non_null(strstr(message, "is not used"));
        fw_free_text(message);
        fw_plan_free(plan);
        assert_true(fw_wisdom_forget(f->other, problem, device, NULL));
        free(edited);
    }
    // One that is right is used, and then without a worker too.
    char *edited = replaced(wisdom, "\"A=1\"", "\"A=2\"");
    assert_int_equal(fw_wisdom_import(f->other, "w", edited, NULL), 1);
    for (int i = 0; i < 2; i++) {
        options.rigor = FW_WISDOM_ONLY;
        fw_plan *plan = fw_plan_make(problem, device, &options, &message);
        assert_non_null(plan);
        assert_null(message);
        assert_string_equal(fw_plan_point(plan), "A=2");
        fw_plan_free(plan);
        options.worker = "/no/worker";
    }
    free(edited);
    fw_free_text(wisdom);
    fw_problem_free(problem);
    fw_device_free(device);
}

// PoCL and its compiler, loaded into this process, keep what they have until it ends.
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libpocl\nleak:libLLVM\n";
}

int main(int argc, char **argv)
{
    int status;
    if (fw_worker(argc, argv, &status))
        return status;
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_problem),         TEST(test_shapes),        TEST(test_messages),
        TEST(test_device),          TEST(test_measure),       TEST(test_estimate),
        TEST(test_wisdom_of_store), TEST(test_hooks),         TEST(test_verify_wisdom),
        TEST(test_ask_tell),        TEST(test_wrong_options), TEST(test_own_search),
        TEST(test_wisdom_text),     TEST(test_wrong_wisdom),  TEST(test_opencl),
        TEST(test_run_on_host),     TEST(test_trapped_wisdom)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
