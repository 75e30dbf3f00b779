// SPDX-License-Identifier: Apache-2.0
//
// Plots are well-formed XML, whatever the numbers and names; they hold one mark a value, in
// the right place; tables are aligned; the report of an evaluation names what it shows.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/knn.h"
#include "report/svg.h"
#include "report/table.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A checker of the XML that an SVG needs: tags nest, attributes are quoted and differ,
// text has no bare < or &. NULL, or where it is wrong.

static const char *skip_entity(const char *p)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    for (int i = 0; i < COUNTOF(known); i++)
        if (strncmp(p, known[i], strlen(known[i])) == 0)
            return p + strlen(known[i]);
    return NULL;
}

static const char *skip_value(const char *p)
{
    while (*p && *p != '"' && *p != '<') {
        if (strncmp(p, "nan", 3) == 0 || strncmp(p, "inf", 3) == 0)
            return NULL; // no number of SVG
        p = *p == '&' ? skip_entity(p) : p + 1;
        if (!p)
            return NULL;
    }
    return *p == '"' ? p + 1 : NULL;
}

static const char *skip_attributes(const char *p)
{
    while (*p == ' ') {
        const char *name = ++p;
        while (isalnum((unsigned char)*p) || *p == '-')
            p++;
        if (p == name || p[0] != '=' || p[1] != '"' || !(p = skip_value(p + 2)))
            return NULL;
    }
    return p;
}

static const char *malformed(const char *p)
{
    char open[16][16];
    int depth = 0, roots = 0;
    while (*p) {
        const char *start = p;
        if (*p != '<') {
            p = *p == '&' ? skip_entity(p) : p + 1;
            if (!p || (depth == 0 && !isspace((unsigned char)*start)) ||
                (unsigned char)*start < '\n')
                return start;
            continue;
        }
        bool closing = p[1] == '/';
        p += 1 + closing;
        size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz");
        if (n == 0 || n > 15)
            return start;
        if (closing) {
            if (depth == 0 || strncmp(open[depth - 1], p, n) != 0 || open[depth - 1][n])
                return start;
            depth--;
            p += n;
        } else {
            if (depth == 16 || (depth == 0 && roots++))
                return start;
            memcpy(open[depth], p, n);
            open[depth++][n] = 0;
            p = skip_attributes(p + n);
            if (!p)
                return start;
            if (*p == '/') {
                depth--;
                p++;
            }
        }
        if (*p++ != '>')
            return start;
    }
    return depth || roots != 1 ? "the end" : NULL;
}

static void assert_svg(const Buf *out)
{
    const char *where = malformed(out->text);
    if (where)
        fail_msg("malformed at: %.80s", where);
    assert_non_null(strstr(out->text, "xmlns=\"http://www.w3.org/2000/svg\""));
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

static void test_checker(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "<a>", "<a></b>", "<a b=c/>",       "<a>&</a>",    "<a b=\"<\"/>", "<a/><b/>",
        "x",   "",        "<a b=\"nan\"/>", "<a></a></a>", "<a b=\"1/>",   "<ab></a>"};
    assert_null(malformed("<svg a=\"1\" b-c=\"x &amp; y\"><g/>text &lt;</svg>\n"));
    for (int i = 0; i < COUNTOF(bad); i++)
        assert_non_null(malformed(bad[i]));
}

static const char *const names[] = {"plain", "<&\"quoted\">", "a name much too long to fit",
                                    "tab\there", ""};

static void test_series(void **state)
{
    (void)state;
    const double x[] = {1, 10, 100, NAN, 1000}, y[] = {0.5, NAN, 2, 3, -4};
    const SvgSeries series[] = {{"one", x, y, 5, .colour = 0, .step = true},
                                {NULL, x, y, 5, .colour = 11, .dashed = true},
                                {"none", x, y, 0, .colour = 2}};
    for (int log = 0; log < 2; log++) {
        SvgPlot plot = {
            .width = 400, .height = 300, .x_label = "runs", .x_log = log, .y_log = log};
        Buf out;
        buf_init(&out);
        svg_open(&out, 800, 300);
        svg_lines(&out, &plot, series, 3);
        plot.x = 400;
        SvgSeries dots[3];
        for (int i = 0; i < 3; i++) {
            dots[i] = series[i];
            dots[i].dots = true;
        }
        svg_lines(&out, &plot, dots, 3);
        svg_close(&out);
        assert_svg(&out);
        assert_int_equal(count(out.text, "<path"), 3);
        assert_int_equal(count(out.text, "<circle"), log ? 4 : 6);
        assert_int_equal(count(out.text, ">one<"), 2);
        buf_release(&out);
    }
}

static void test_heat(void **state)
{
    (void)state;
    const double value[] = {0, 0.5, 1, NAN, 0.25, 0.75};
    SvgPlot plot = {.width = 300, .height = 200, .y_label = "rows"};
    Buf out;
    buf_init(&out);
    svg_open(&out, 300, 200);
    svg_heat(&out, &plot, names, 2, names, 3, value, 2);
    svg_close(&out);
    assert_svg(&out);
    assert_int_equal(count(out.text, "<rect"), 7);
    assert_int_equal(count(out.text, "#d0d0d0"), 1); // what is missing is grey
    assert_int_equal(count(out.text, "#edf4fa"), 1); // the least
    assert_int_equal(count(out.text, "#084081"), 1); // the most
    assert_int_equal(count(out.text, ">0.25<"), 1);
    buf_release(&out);
}

// Nothing to draw, or a single value, is still a drawing.
static void test_degenerate(void **state)
{
    (void)state;
    static const double one[][1] = {{0}, {5}, {-3}, {NAN}, {1e-300}, {1e300}};
    for (int i = 0; i < COUNTOF(one); i++)
        for (int log = 0; log < 2; log++)
            for (int n = 0; n < 2; n++) {
                SvgPlot plot = {.width = 300, .height = 200, .x_log = log, .y_log = log};
                SvgSeries series = {.name = "s", .x = one[i], .y = one[i], .n = n};
                Buf out;
                buf_init(&out);
                svg_open(&out, 300, 200);
                svg_lines(&out, &plot, &series, 1);
                svg_heat(&out, &plot, names, n, names, 1, one[i], 1);
                svg_close(&out);
                assert_svg(&out);
                buf_release(&out);
            }
}

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
        cmocka_unit_test(test_checker), cmocka_unit_test(test_series),
        cmocka_unit_test(test_heat),    cmocka_unit_test(test_degenerate),
        cmocka_unit_test(test_table),   cmocka_unit_test(test_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
