// SPDX-License-Identifier: Apache-2.0
//
// Tables are aligned; the report of an evaluation names what it shows.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/report.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_table(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    TextTable t = table_new(arena, 3);
    const char *const head[] = {"name", "n", "long column"};
    for (int i = 0; i < 3; i++)
        table_put(&t, "%s", head[i]);
    table_put(&t, "caf\xc3\xa9");
    table_put(&t, "1.2");
    table_put(&t, "-");
    table_put(&t, "a longer name");
    table_put(&t, "%d", 100);
    table_put(&t, "%d", 7);
    Buf out = buf_new();
    table_print(&out, &t);
    assert_string_equal(out.text, "  name             n  long column\n"
                                  "  -------------------------------\n"
                                  "  caf\xc3\xa9           1.2            -\n"
                                  "  a longer name  100            7\n");
    buf_release(&out);
    arena_free(arena);
}

static void test_result(void **state)
{
    (void)state;
    static const char text[] = "{\"model\": \"knn\", \"goal\": 0.9, \"none\": null, "
                               "\"sum\": {\"runs\": 3, \"curve\": [1, "
                               "2]}, \"groups\": [{\"name\": \"a\", \"ns\": 12345.6, "
                               "\"tries\": [{\"n\": 1, \"ok\": true}, "
                               "{\"n\": 2, \"ok\": false}]}, {\"name\": \"b\", \"ns\": "
                               "null, \"tries\": [{\"n\": 3, "
                               "\"ok\": true}]}]}";
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    Buf out = buf_new();
    report_result(&out, json);
    assert_string_equal(out.text, "  model: knn\n"
                                  "  goal: 0.9\n"
                                  "  none: -\n"
                                  "\nsum\n"
                                  "  runs: 3\n"
                                  "\ngroups\n"
                                  "  name     ns\n"
                                  "  -----------\n"
                                  "  a     12346\n"
                                  "  b         -\n"
                                  "\ntries\n"
                                  "  name  n   ok\n"
                                  "  ------------\n"
                                  "  a     1  yes\n"
                                  "  a     2   no\n"
                                  "  b     3  yes\n");
    buf_release(&out);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
