// SPDX-License-Identifier: Apache-2.0
//
// Recorded spaces: both formats read as the same space, the traps of published files, and
// texts that are wrong, cut short or changed at random.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/recorded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *arena;
    Diags diags;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    f->diags = (Diags){.arena = f->arena};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    arena_free(f->arena);
    free(f);
    return 0;
}

static Recorded *parse(Fixture *f, const char *text)
{
    return recorded_parse("folder/some.json.gz", text, strlen(text), &f->diags);
}

// As Kernel Tuner writes it; the last failed in the old way, the one before in the new one.
static const char cache[] =
    "{\n\"device_name\": \"GPU\",\n\"kernel_name\": \"k\",\n\"problem_size\": [\n8\n],\n"
    "\"tune_params_keys\": [\n\"bx\",\n\"pad\",\n\"how\"\n],\n"
    "\"tune_params\": {\"bx\": [32, 16], \"pad\": [true, false], \"how\": [\"a\", "
    "\"b\"]},\n"
    "\"objective\": [\"time\"],\n\"cache\": {\n"
    "\"32,True,a\": {\"bx\": 32, \"pad\": true, \"how\": \"a\", \"time\": 2.0, \"times\": "
    "[2.5,"
    " 1.5], \"compile_time\": 100, \"verification_time\": 0, \"benchmark_time\": 6.0,"
    " \"GFLOP/s\": NaN, \"strategy_time\": 0, \"framework_time\": 16},\n"
    "\"16,True,a\": {\"bx\": 16, \"pad\": true, \"how\": \"a\", \"time\": 1.0, \"times\": "
    "[1.0],"
    " \"compile_time\": 200},\n"
    "\"16,False,b\": {\"bx\": 16, \"pad\": false, \"how\": \"b\", \"__error__\": \"x\","
    " \"compile_time\": 50},\n"
    "\"32,False,b\": {\"bx\": 32, \"pad\": false, \"how\": \"b\", \"time\":"
    " \"RuntimeFailedConfig\", \"compile_time\": 60}";

static const char t4[] =
    "{\"metadata\": {\"timeunit\": \"miliseconds\"}, \"results\": ["
    "{\"configuration\": {\"bx\": 32, \"pad\": true, \"how\": \"a\"}, \"times\":"
    " {\"compilation\": 100, \"framework\": 16, \"search_algorithm\": 0, \"validation\": 0,"
    " \"runtimes\": [2.5, 1.5]}, \"invalidity\": \"correct\", \"correctness\": 1,"
    " \"measurements\": [{\"name\": \"time\", \"value\": 2.0, \"unit\": \"\"}],"
    " \"objectives\": [\"time\"]},"
    "{\"configuration\": {\"bx\": 16, \"pad\": true, \"how\": \"a\"}, \"times\":"
    " {\"compilation_time\": 200, \"runtimes\": [1.0]}, \"invalidity\": \"correct\","
    " \"correctness\": 1, \"measurements\": [], \"objectives\": [\"time\"]},"
    "{\"configuration\": {\"bx\": 16, \"pad\": false, \"how\": \"b\"}, \"times\":"
    " {\"compilation\": 50, \"runtimes\": []}, \"invalidity\": \"compile\", "
    "\"correctness\": 1,"
    " \"measurements\": [{\"name\": \"__error__\", \"value\": \"\", \"unit\": \"\"}]},"
    "{\"configuration\": {\"bx\": 16, \"pad\": false, \"how\": \"a\"}, \"times\": {},"
    " \"invalidity\": \"constraints\", \"correctness\": 0},"
    "{\"configuration\": {\"bx\": 32, \"pad\": false, \"how\": \"b\"}, \"times\":"
    " {\"compilation\": 60}, \"invalidity\": \"runtime\", \"correctness\": 0,"
    " \"measurements\": [{\"name\": \"time\", \"value\": \"RuntimeFailedConfig\"}]}"
    "], \"schema_version\": \"1.0.0\"}";

static const RecordedPoint *at(const Recorded *r, const char *text)
{
    Point point;
    assert_true(point_parse(r->space, text, &point));
    assert_true(space_valid(r->space, &point));
    return &r->at[space_number(r->space, &point)];
}

static void check_space(const Recorded *r, int n)
{
    assert_non_null(r);
    assert_string_equal(r->name, "some");
    assert_string_equal(r->objective, "time");
    assert_false(r->maximise);
    assert_int_equal(r->n, n);
    assert_int_equal(r->nvalid, 2);
    assert_int_equal(space_count(r->space), n);
    assert_true(at(r, "bx=32 pad=True how=a")->value == 2);
    assert_true(fabs(at(r, "bx=32 pad=True how=a")->cost_s - 0.120) < 1e-12);
    assert_true(at(r, "bx=16 pad=True how=a")->value == 1);
    assert_true(fabs(at(r, "bx=16 pad=True how=a")->cost_s - 0.201) < 1e-12);
    assert_true(isnan(at(r, "bx=16 pad=False how=b")->value));
    assert_true(fabs(at(r, "bx=16 pad=False how=b")->cost_s - 0.050) < 1e-12);
    assert_true(recorded_cost(r, at(r, "bx=16 pad=False how=b")) == INFINITY);
    assert_true(recorded_cost(r, at(r, "bx=16 pad=True how=a")) == 1e6);
    Point none;
    assert_true(point_parse(r->space, "bx=16 pad=False how=a", &none));
    assert_false(space_valid(r->space, &none));
}

static void test_cache(void **state)
{
    Fixture *f = *state;
    Recorded *closed = parse(f, arena_printf(f->arena, "%s}\n}", cache));
    check_space(closed, 4);
    assert_string_equal(closed->device, "GPU");
    recorded_free(closed);
}

// The tuner was killed: before it closed the file, or in the middle of a line.
static void test_unclosed(void **state)
{
    Fixture *f = *state;
    Recorded *open = parse(f, arena_printf(f->arena, "%s,", cache));
    check_space(open, 4);
    recorded_free(open);
    open = parse(f, arena_printf(f->arena, "%s,\n\"48,Tr", cache));
    check_space(open, 4);
    recorded_free(open);
    size_t last = (size_t)(strstr(cache, "\"32,False,b\": {") - cache);
    Recorded *cut = recorded_parse("some", cache, last + 30, &f->diags);
    check_space(cut, 3 + 1 - 1);
    recorded_free(cut);
}

static void test_t4(void **state)
{
    Fixture *f = *state;
    Recorded *r = parse(f, t4), *same;
    check_space(r, 4);
    same = parse(f, arena_printf(f->arena, "%s}\n}", cache));
    assert_true(space_hash(r->space) == space_hash(same->space));
    recorded_free(same);
    recorded_free(r);
}

// Rates are to be high, and a strategy is told that they are low costs.
static void test_rate(void **state)
{
    Fixture *f = *state;
    Recorded *r = parse(f, "{\"tune_params_keys\": [\"x\"], \"objective\": \"GFLOP/s\","
                           " \"cache\": {\"1\": {\"x\": 1, \"time\": 1, \"GFLOP/s\": 10},"
                           " \"2\": {\"x\": 2, \"time\": 2, \"GFLOP/s\": 5},"
                           " \"3\": {\"x\": 3, \"GFLOP/s\": 1e20}}}");
    assert_non_null(r);
    assert_true(r->maximise);
    assert_int_equal(r->nvalid, 2);
    assert_true(recorded_cost(r, at(r, "x=1")) < recorded_cost(r, at(r, "x=2")));
    recorded_free(r);
}

static void test_wrong(void **state)
{
    Fixture *f = *state;
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"", "some.json"},
        {"[]", "neither"},
        {"{\"x\": 1}", "neither"},
        {"{\"results\": 1}", "not a list"},
        {"{\"results\": []}", "no configurations"},
        {"{\"cache\": {}}", "tune_params_keys"},
        {"{\"cache\": {}, \"tune_params_keys\": [1]}", "names"},
        {"{\"cache\": {}, \"tune_params_keys\": [\"x\", \"x\"]}", "two parameters"},
        {"{\"cache\": {\"1\": {}}, \"tune_params_keys\": [\"x\"]}", "no value in `1`"},
        {"{\"cache\": {\"1\": 3}, \"tune_params_keys\": [\"x\"]}", "not an object: `1`"},
        {"{\"cache\": {\"1\": {\"x\": []}}, \"tune_params_keys\": [\"x\"]}",
         "neither number"},
        {"{\"cache\": {\"1\": {\"x\": 1}}, \"tune_params_keys\": [\"x\"]}", "every"},
        {"{\"results\": [{}]}", "no configuration in `result 0`"},
        {"{\"results\": [], \"metadata\": {\"timeunit\": \"weeks\"}}", "weeks"},
        {"{\"results\": [{\"configuration\": {\"a\": 1}},"
         " {\"configuration\": {\"a\": 1, \"b\": 2}}]}",
         "other parameters"},
        {"{\"results\": [{\"configuration\": {\"a\": 1}}, {\"configuration\": {\"b\": "
         "2}}]}",
         "no value"},
        {"{\"results\": [\n 5 6]}", "2:"},
    };
    for (int i = 0; i < COUNTOF(wrong); i++) {
        f->diags = (Diags){.arena = f->arena};
        assert_null(parse(f, wrong[i].text));
        assert_int_equal(f->diags.errors, 1);
        assert_int_equal(diags_exit_status(&f->diags), 2);
        if (!strstr(f->diags.list.at[0].message, wrong[i].says))
            fail_msg("%d: %s", i, f->diags.list.at[0].message);
    }
}

static void test_absent(void **state)
{
    Fixture *f = *state;
    assert_null(recorded_read("/no/such/file.json", NULL, &f->diags));
    assert_int_equal(diags_exit_status(&f->diags), 1);
}

// Bytes changed, cut out and doubled: a space or a message, never a crash.
static void test_noise(void **state)
{
    Fixture *f = *state;
    Rng rng = rng_new(1);
    const char *closed = arena_printf(f->arena, "%s}\n}", cache);
    const char *const base[] = {closed, t4};
    int read = 0, refused = 0;
    for (int i = 0; i < 4000; i++) {
        char *text = xstrdup(base[i % 2]);
        size_t len = strlen(text);
        for (uint64_t k = rng_below(&rng, 4) + 1; k > 0; k--) {
            size_t from = rng_below(&rng, len), to = rng_below(&rng, len);
            static const char odd[] = "\"{}[],:0-1eN\\\n ";
            if (rng_below(&rng, 4) == 0)
                memmove(text + from, text + to, len - MAX(from, to));
            else
                text[from] = odd[rng_below(&rng, sizeof odd - 1)];
        }
        if (i % 5 == 0)
            len = rng_below(&rng, len);
        f->diags = (Diags){.arena = f->arena};
        Recorded *r = recorded_parse("noise", text, len, &f->diags);
        assert_int_equal(r == NULL, f->diags.errors > 0);
        *(r ? &read : &refused) += 1;
        recorded_free(r);
        free(text);
    }
    assert_true(read > 100 && refused > 100);
}

// KTT's own results: microseconds, a failure without a duration.
static const char ktt[] =
    "{\"Metadata\": {\"Device\": \"GPU\", \"KttVersion\": \"2.2\", \"TimeUnit\": "
    "\"Microseconds\"}, \"Results\": [\n"
    "{\"Configuration\": [{\"Name\": \"bx\", \"Value\": 32, \"ValueType\": "
    "\"UnsignedInt\"},"
    " {\"Name\": \"how\", \"Value\": \"a\", \"ValueType\": \"String\"}],\n"
    " \"ComputationResults\": [], \"Status\": \"Ok\", \"TotalDuration\": 2500.0,"
    " \"TotalOverhead\": 500.0},\n"
    "{\"Configuration\": [{\"Name\": \"how\", \"Value\": \"a\"}, {\"Name\": \"bx\", "
    "\"Value\": 16}], \"Status\": \"ComputationFailed\", \"TotalDuration\": 0.0}]}";

static void test_ktt(void **state)
{
    Fixture *f = *state;
    Recorded *r = parse(f, ktt);
    assert_non_null(r);
    assert_string_equal(r->device, "GPU");
    assert_int_equal(r->n, 2);
    assert_int_equal(r->nvalid, 1);
    for (int i = 0; i < r->n; i++)
        if (!isnan(r->at[i].value)) {
            assert_true(fabs(r->at[i].value - 2.5) < 1e-12);
            assert_true(fabs(r->at[i].cost_s - 3e-3) < 1e-12);
        }
    recorded_free(r);
    assert_null(parse(f, "{\"ConfigurationSpace\": {}}"));
    assert_non_null(strstr(f->diags.list.at[0].message, "a T1 file"));
}

// Scores below zero have their order, and none of them counts as a failure.
static void test_negative_scores(void **state)
{
    Fixture *f = *state;
    Recorded *r = parse(f, "{\"device_name\": \"\", \"tune_params_keys\": [\"n\"], "
                           "\"objective\": \"score\", \"cache\": {"
                           "\"1\": {\"n\": 1, \"score\": -0.5}, \"2\": {\"n\": 2, "
                           "\"score\": 0.25}, \"3\": {\"n\": 3, \"score\": -2}}}");
    assert_non_null(r);
    assert_true(r->maximise);
    int *order = recorded_order(r);
    const double want[] = {0.25, -0.5, -2};
    for (int i = 0; i < 3; i++) {
        assert_true(r->at[order[i]].value == want[i]);
        assert_true(isfinite(recorded_cost(r, &r->at[order[i]])));
    }
    free(order);
    recorded_free(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ktt),   TEST(test_negative_scores),
        TEST(test_cache), TEST(test_unclosed),
        TEST(test_t4),    TEST(test_rate),
        TEST(test_wrong), TEST(test_absent),
        TEST(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
