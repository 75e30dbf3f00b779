// SPDX-License-Identifier: Apache-2.0
//
// The two stages of paper 002 on a record made here: its times are a product of what each
// parameter costs, and the fastest third of what the times alone promise fails.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "evaluate/stages.h"

#include "measure/json.h"
#include "search/encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// 7 x 7 x 7 x 2 points; times fall with a and b, and fail where a * b is above 256.
static Recorded *make_record(double slower, Diags *diags)
{
    Buf text = buf_new();
    buf_puts(&text,
             "{\"device_name\": \"none\", \"tune_params_keys\": [\"a\", \"b\", \"c\", "
             "\"d\"], \"objective\": \"time\", \"cache\": {");
    for (int i = 0; i < 686; i++) {
        int a = 1 << i % 7, b = 1 << i / 7 % 7, c = 1 << i / 49 % 7, d = i / 343;
        double time = slower * (10 + fabs(log2(c) - 3) + 4 * d) / sqrt((double)a * b);
        buf_printf(&text,
                   "%s\"%d,%d,%d,%d\": {\"a\": %d, \"b\": %d, \"c\": %d, \"d\": %d, ",
                   i ? ", " : "", a, b, c, d, a, b, c, d);
        if (a * b > 256)
            buf_puts(&text, "\"time\": \"RuntimeFailedConfig\"}");
        else
            buf_printf(&text, "\"time\": %.9g}", time);
    }
    buf_puts(&text, "}}");
    Recorded *made = recorded_parse("made.json", text.text, text.len, diags);
    buf_release(&text);
    assert_non_null(made);
    return made;
}

static double number(const json_t *json, const char *key)
{
    return json_number_of(json, key, NAN);
}

static void test_two_stages(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Recorded *record = make_record(1, &diags);
    json_t *stages = stages_run(record, model_find("ann"), STAGE_ALL, 2, 1, &diags);
    assert_non_null(stages);
    const json_t *firsts = json_object_get(stages, "first_stages");
    assert_true(json_array_size(firsts) < STAGE_FIRSTS); // too few for 4000
    const json_t *first = json_array_get(firsts, 1), *with, *without;
    assert_true(number(first, "first") == 200);
    assert_true(number(first, "tried") > 200 && number(first, "tried") < 300);
    assert_true(number(first, "error") > 0 && number(first, "error") < 0.02);
    assert_true(number(first, "rank") > 0.99);
    assert_true(number(first, "failures_right") > 0.97 &&
                number(first, "larger_kind") < 0.9);
    // What times alone promise fails; what is learnt of failures keeps clear of it.
    with = json_array_get(json_object_get(first, "second"), 0);
    without = json_array_get(json_object_get(first, "second_ignoring_failures"), 0);
    assert_true(number(without, "failed") > 0.5);
    assert_true(number(with, "failed") < 0.1);
    assert_true(number(with, "empty") == 0);
    assert_true(number(with, "slowdown") < 1.05 && number(with, "slowdown") >= 1);
    assert_int_equal(json_array_size(json_object_get(stages, "scatter")), 100);
    json_t *again = stages_run(record, model_find("ann"), STAGE_ALL, 2, 1, &diags);
    const json_t *other = json_array_get(json_object_get(again, "first_stages"), 1);
    assert_true(number(other, "error") ==
                number(first, "error")); // whatever the threads do
    json_decref(stages);
    json_decref(again);
    recorded_free(record);
    arena_free(arena);
}

static void test_too_few(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    static const char other[] =
        "{\"tune_params_keys\": [\"x\"], \"cache\": {\"1\": {\"x\": 1, "
        "\"time\": 1.0}, \"2\": {\"x\": 2, \"time\": 2.0}}}";
    Recorded *c = recorded_parse("other.json", other, strlen(other), &diags);
    assert_null(stages_run(c, model_find("ann"), STAGE_ALL, 1, 1, &diags));
    recorded_free(c);
    arena_free(arena);
}

// A record has launches where any of its points has; one without does not run.
static void test_launches(void **state)
{
    (void)state;
    static const char text[] =
        "{\"tune_params_keys\": [\"x\"], \"cache\": {\"1\": {\"x\": 1, \"time\": 1.0%s}, "
        "\"2\": {\"x\": 2, \"time\": \"failed\"}}}";
    static const char launch[] = ", \"groups\": [8, 4, 1], \"local\": [2, 16, 1]";
    static const double want[2][LAUNCH_COLUMNS] = {{3, 2, 0, 1, 4, 0, 5, 5, 10}};
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    for (int has = 0; has < 2; has++) {
        const char *json = arena_printf(arena, text, has ? launch : "");
        Recorded *record = recorded_parse("made.json", json, strlen(json), &diags);
        Encoding *code = encode_new(record->space);
        int bare = code->d;
        encode_launches(code, recorded_launches(record));
        assert_int_equal(code->d - bare, has ? LAUNCH_COLUMNS : 0);
        for (int i = 0; i < 2 && has; i++) {
            double row[16];
            Point point;
            space_point(record->space, (uint64_t)i, &point);
            encode_point(code, &point, row);
            assert_memory_equal(row + bare, want[i], sizeof want[i]);
        }
        encode_free(code);
        recorded_free(record);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_stages),
        cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_launches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
