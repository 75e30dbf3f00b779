// SPDX-License-Identifier: Apache-2.0
//
// Explorations as text: what is read, how rows are grouped, and every mistake at its line;
// the same text gzipped.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define HEAD "program,size,expression,global0,global1,global2,local0,local1,local2,"

static const char good[] =
    "# device: Some GPU: the fast one\n"
    "# a remark\n"
    "#generation_s:  12.5 \n" HEAD "lines,\"loads, all\",time_ns,status\n"
    "a,4096,\"tile 4, local\",64,1,1,8,1,1,2,0.5,200,ok\n"
    "b,512,\"say \"\"x\"\"\",64,2,1,8,1,1,1,1e3,50,ok\r\n"
    "\n"
    "a,4096,e,128,1,1,8,1,1,-1,0,100.0,ok\n"
    "a,1024,e,128,1,1,8,1,1,-1,0,,crashed\n"
    "a,4096,,128,1,1,16,1,1,-1,0,,timed-out";

static Dataset *parse(const char *text, Arena *arena, Diags *diags)
{
    Source *source = NEW(arena, Source);
    *source = (Source){"data.csv", text, strlen(text)};
    *diags = (Diags){.arena = arena};
    return dataset_parse(source, arena, diags);
}

static void check_good(const Dataset *data)
{
    assert_int_equal(data->n, 5);
    assert_int_equal(data->d, 8);
    assert_string_equal(data->feature[0], "global0");
    assert_string_equal(data->feature[7], "loads, all");
    assert_true(matrix_row(&data->x, 1)[7] == 1000);
    assert_true(matrix_row(&data->x, 2)[0] == 128);
    assert_string_equal(data->expression[0], "tile 4, local");
    assert_string_equal(data->expression[1], "say \"x\"");
    assert_ptr_equal(data->expression[2], data->expression[3]);
    assert_string_equal(data->expression[4], "");
    assert_string_equal(data->status[4], "timed-out");
    assert_true(data->time_ns[0] == 200 && isnan(data->time_ns[3]));
}

static void test_reads(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags;
    Dataset *data = parse(good, arena, &diags);
    assert_non_null(data);
    check_good(data);
    assert_string_equal(dataset_meta(data, "device"), "Some GPU: the fast one");
    assert_null(dataset_meta(data, "a remark"));
    arena_free(arena);
}

static void test_groups(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags;
    Dataset *data = parse(good, arena, &diags);
    assert_int_equal(data->nprogram, 2);
    assert_int_equal(data->nsize, 3);
    assert_string_equal(data->size_name[0], "512"); // by number, not by text
    assert_string_equal(data->size_name[2], "4096");
    assert_int_equal(data->ngroup, 3);
    const DatasetGroup *g = &data->group_at[data->group[0]];
    assert_string_equal(data->program_name[g->program], "a");
    assert_string_equal(data->size_name[g->size], "4096");
    assert_int_equal(g->n, 3);
    assert_int_equal(g->ok, 2);
    assert_int_equal(g->row[1], 2);
    assert_true(g->best_ns == 100);
    const double throughput[] = {0.5, 1, 1, 0, 0};
    assert_memory_equal(data->throughput, throughput, sizeof throughput);
    const DatasetGroup *failed = &data->group_at[data->group[3]];
    assert_int_equal(failed->ok, 0);
    assert_true(isinf(failed->best_ns));
    arena_free(arena);
}

static void test_gzip(void **state)
{
    (void)state;
    char path[] = "/tmp/fw_dataset_XXXXXX";
    close(mkstemp(path));
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    gzFile file = gzopen(path, "wb");
    assert_int_equal(gzwrite(file, good, sizeof good - 1), sizeof good - 1);
    gzclose(file);
    check_good(dataset_read(path, arena, &diags));
    assert_true(file_write(path, good, sizeof good - 1));
    check_good(dataset_read(path, arena, &diags));
    assert_int_equal(diags.errors, 0);
    unlink(path);
    assert_null(dataset_read(path, arena, &diags));
    assert_int_equal(diags_exit_status(&diags), 1);
    arena_free(arena);
}

static void test_damaged_gzip(void **state)
{
    (void)state;
    char path[] = "/tmp/fw_dataset_XXXXXX";
    close(mkstemp(path));
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    gzFile file = gzopen(path, "wb");
    gzwrite(file, good, sizeof good - 1);
    gzclose(file);
    Buf bytes = buf_new();
    FILE *packed = fopen(path, "rb"); // as it is: file_read unpacks it
    for (int c; (c = fgetc(packed)) != EOF;)
        buf_putc(&bytes, (char)c);
    fclose(packed);
    assert_true(file_write(path, bytes.text, bytes.len / 2)); // cut short
    assert_null(dataset_read(path, arena, &diags));
    assert_int_equal(diags_exit_status(&diags), 1);
    bytes.text[bytes.len / 2] ^= 0x55;
    bytes.text[bytes.len / 2 + 1] ^= 0x55;
    assert_true(file_write(path, bytes.text, bytes.len));
    assert_null(dataset_read(path, arena, &diags));
    buf_release(&bytes);
    unlink(path);
    arena_free(arena);
}

static void test_not_text(void **state)
{
    (void)state;
    static const char *const texts[] = {"bad \xff byte\n", "\xc3"};
    char path[] = "/tmp/fw_dataset_XXXXXX";
    close(mkstemp(path));
    for (int i = 0; i < 3; i++) {
        Arena *arena = arena_new();
        Diags diags = {.arena = arena};
        const char *text = i < 2 ? texts[i] : "nul\0byte";
        assert_true(file_write(path, text, i < 2 ? strlen(text) : 8));
        assert_null(dataset_read(path, arena, &diags));
        assert_non_null(strstr(diags.list.at[0].message, "not UTF-8 text"));
        assert_int_equal(diags_exit_status(&diags), 2);
        arena_free(arena);
    }
    unlink(path);
}

#define ROW "a,1,e,1,1,1,1,1,1,"

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line, col;
        const char *message;
    } cases[] = {
        {"", 1, 1, "no header"},
        {"# only: this\n", 2, 1, "no header"},
        {"program,size\n", 1, 9, "ends before column `expression`"},
        {"program,dim,expression\n", 1, 9, "not `dim`"},
        {HEAD "time_ns\n", 1, 70, "must be `status`, not `time_ns`"},
        {HEAD "lines,status\n", 1, 70, "column 10 of the header must be `time_ns`"},
        {HEAD "lines,lines,time_ns,status\n", 1, 76, "two columns have this name"},
        {HEAD ",time_ns,status\n", 1, 70, "without a name"},
        {HEAD "time_ns,status\n", 2, 1, "no row"},
        {HEAD "time_ns,status\n" ROW "5\n", 2, 1, "the row has 10 fields, the header 11"},
        {HEAD "time_ns,status\n" ROW "5,ok,\n", 2, 1, "12 fields"},
        {HEAD "time_ns,status\n" ROW "5,ok\n" ROW ",ok\n", 3, 19, "must be a number"},
        {HEAD "time_ns,status\n" ROW "-5,ok\n", 2, 19, "above 0"},
        {HEAD "time_ns,status\n" ROW "nan,ok\n", 2, 19, "must be a number"},
        {HEAD "time_ns,status\n" ROW "5,crashed\n", 2, 19, "has no time"},
        {HEAD "time_ns,status\n" ROW "5,\n", 2, 21, "no status"},
        {HEAD "time_ns,status\na,1,e,1,1x,1,1,1,1,5,ok\n", 2, 9, "must be a number"},
        {HEAD "time_ns,status\na,1,e,1,1e999,1,1,1,1,5,ok\n", 2, 9, "must be a number"},
        {HEAD "time_ns,status\n,1,e,1,1,1,1,1,1,5,ok\n", 2, 1, "no program"},
        {HEAD "time_ns,status\na,1,\"e,1,1,1,1,1,1,5,ok\n", 2, 5, "not closed"},
        {HEAD "time_ns,status\na,1,\"e\"f,1,1,1,1,1,1,5,ok\n", 2, 8, "a comma belongs"},
    };
    for (int i = 0; i < COUNTOF(cases); i++) {
        Arena *arena = arena_new();
        Diags diags;
        assert_null(parse(cases[i].text, arena, &diags));
        assert_true(diags.list.len > 0);
        const Diag *diag = &diags.list.at[0];
        int line, col;
        span_line_col(diag->span, &line, &col);
        if (line != cases[i].line || col != cases[i].col ||
            !strstr(diag->message, cases[i].message))
            fail_msg("case %d: %d:%d: %s", i, line, col, diag->message);
        assert_int_equal(diags_exit_status(&diags), 2);
        Buf text = buf_new();
        diags_print(&text, &diags);
        assert_non_null(strstr(text.text, "data.csv:"));
        buf_release(&text);
        arena_free(arena);
    }
}

// All mistakes are told at once, up to a bound.
static void test_many_mistakes(void **state)
{
    (void)state;
    Buf text = buf_new();
    buf_puts(&text, HEAD "time_ns,status\n");
    for (int i = 0; i < 100; i++)
        buf_puts(&text, ROW "0,ok\n");
    Arena *arena = arena_new();
    Diags diags;
    assert_null(parse(text.text, arena, &diags));
    assert_int_equal(diags.errors, 20);
    buf_release(&text);
    arena_free(arena);
}

// Every way to cut the text short, and every byte changed, ends in rows or a diagnostic.
static void test_any_text(void **state)
{
    (void)state;
    char text[sizeof good];
    for (size_t i = 0; i < 2 * (sizeof good - 1); i++) {
        Arena *arena = arena_new();
        Diags diags;
        size_t at = i / 2;
        memcpy(text, good, sizeof good);
        text[at] = i % 2 ? "\"\n,#x"[at % 5] : 0;
        const Dataset *data = parse(text, arena, &diags);
        assert_true((data != NULL) == (diags.errors == 0));
        arena_free(arena);
    }
}

// Table 1 and what is no feature of ours; or all, and counts over outputs.
static void test_column_sets(void **state)
{
    (void)state;
    static const char text[] =
        "program,size,expression,global0,global1,global2,local0,local1,local2,barriers,"
        "occupancy,outputs,mine,ifs,ifs/outputs,time_ns,status\n"
        "p,1,e,64,1,1,8,1,1,12,0.5,4,9,3,5,10,ok\n"
        "p,1,e,32,1,1,8,1,1,2,0.5,0,9,3,5,10,ok\n";
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    const Source source = {"sets", text, sizeof text - 1};
    const Dataset *data = dataset_parse(&source, arena, &diags);
    assert_non_null(data);
    const Dataset *paper = dataset_columns(data, COLUMNS_PAPER, arena);
    static const double first[] = {64, 1, 1, 8, 1, 1, 12, 9, 3, 5};
    assert_int_equal(paper->d, COUNTOF(first));
    assert_int_equal(paper->n, 2);
    assert_string_equal(paper->feature[7], "mine");
    assert_memory_equal(matrix_row(&paper->x, 0), first, sizeof first);
    const Dataset *all = dataset_columns(data, COLUMNS_ALL, arena);
    assert_int_equal(all->d, data->d + 1); // ifs/outputs stands there already
    assert_string_equal(all->feature[data->d], "barriers/outputs");
    assert_true(matrix_row(&all->x, 0)[data->d] == 3);
    assert_true(matrix_row(&all->x, 1)[data->d] == 2); // of no outputs: as it is
    double value, feature[FEATURES] = {0};
    feature[FEATURE_BARRIERS] = 12;
    feature[FEATURE_OUTPUTS] = 4;
    feature[FEATURE_LOCAL_SIZE_1] = 8;
    assert_true(column_value("barriers/outputs", feature, &value) && value == 3);
    assert_true(column_value("local1", feature, &value) && value == 8);
    assert_false(column_value("mine", feature, &value));
    assert_false(column_value("barriers/", feature, &value));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),         cmocka_unit_test(test_groups),
        cmocka_unit_test(test_gzip),          cmocka_unit_test(test_damaged_gzip),
        cmocka_unit_test(test_not_text),      cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_many_mistakes), cmocka_unit_test(test_column_sets),
        cmocka_unit_test(test_any_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
