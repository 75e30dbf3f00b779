// SPDX-License-Identifier: Apache-2.0
//
// What a model sees of the launches of a recorded space.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "search/encode.h"
#include "store/recorded.h"

#include <string.h>

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
        cmocka_unit_test(test_launches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
