// SPDX-License-Identifier: Apache-2.0
//
// Tables are aligned; the report of an evaluation names what it shows.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/knn.h"
#include "report/table.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_table(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Table t = table_new(arena, 3);
    const char *const head[] = {"name", "n", "long column"};
    for (int i = 0; i < 3; i++)
        table_put(&t, "%s", head[i]);
    table_put(&t, "caf\xc3\xa9");
    table_number(&t, 1.25, 1);
    table_number(&t, NAN, 1);
    table_put(&t, "a longer name");
    table_number(&t, 100, 0);
    table_put(&t, "%d", 7);
    Buf out;
    buf_init(&out);
    table_print(&out, &t);
    assert_string_equal(out.text, "  name             n  long column\n"
                                  "  -------------------------------\n"
                                  "  caf\xc3\xa9           1.2            -\n"
                                  "  a longer name  100            7\n");
    buf_release(&out);
    arena_free(arena);
}

static Eval *small_eval(Arena *arena, Diags *diags)
{
    Buf text;
    buf_init(&text);
    buf_puts(&text, "# device: Test <GPU>\n# generation_s: 1\n# compilation_s: 2\n"
                    "# execution_s: 7\nprogram,size,expression,global0,global1,global2,"
                    "local0,local1,local2,lines,time_ns,status\n");
    for (int p = 0; p < 3; p++)
        for (int size = 1024; size <= 4096; size *= 2)
            for (int i = 0; i < 20; i++)
                buf_printf(&text, "\"p<%d>\",%d,e,%d,1,1,%d,1,1,%d,%d,ok\n", p, size, size,
                           i % 4, i % 5, 100 + i % 5 * 50 + i);
    Source *source = NEW(arena, Source);
    *source = (Source){"small", arena_strdup(arena, text.text), text.len};
    buf_release(&text);
    EvalOptions options = {.goal = 0.9, .seed = 1};
    const Dataset *data = dataset_parse(source, arena, diags);
    return eval_run(data, model_find("knn"), &options, arena, diags);
}

static void test_report(void **state)
{
    (void)state;
    static const char *const parts[] = {"measured on Test <GPU>", "Figure 7", "How soon",
                                        "By size", "Summary over 9 program and size pairs"};
    Arena *arena = arena_new();
    Diags diags;
    diags_init(&diags, arena);
    const Eval *e = small_eval(arena, &diags);
    assert_non_null(e);
    Buf out;
    buf_init(&out);
    report_knn(&out, e);
    for (int i = 0; i < COUNTOF(parts); i++)
        if (!strstr(out.text, parts[i]))
            fail_msg("no `%s` in the report", parts[i]);
    buf_release(&out);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
