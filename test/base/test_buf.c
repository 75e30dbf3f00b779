// SPDX-License-Identifier: Apache-2.0
//
// Growable text formats as the C library does, whether it does so by itself or not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SAME(...)                                                                          \
    do {                                                                                   \
        char want[4096];                                                                   \
        Buf got;                                                                           \
        got = buf_new();                                                                   \
        buf_puts(&got, "before ");                                                         \
        int n = snprintf(want, sizeof want, "before " __VA_ARGS__);                        \
        buf_printf(&got, __VA_ARGS__);                                                     \
        assert_string_equal(got.text, want);                                               \
        assert_int_equal(got.len, n);                                                      \
        buf_release(&got);                                                                 \
    } while (0)

static void test_formats(void **state)
{
    (void)state;
    char wide[2000];
    memset(wide, 'x', sizeof wide - 1);
    wide[sizeof wide - 1] = 0;
    SAME("%s", "");
    SAME("%s%d", "name", 7);
    SAME("%d %d %d", 0, INT_MAX, INT_MIN);
    SAME("%lld %lld", LLONG_MAX, LLONG_MIN);
    SAME("100 %% of %c%c", 'a', 'b');
    SAME("%s and %s", wide, wide + 1000);
    SAME("%5d|%-8s|%.3s|%+d", 42, "ab", "abcdef", 3);
    SAME("%g %.17g %a", 0.1, 0.1, 0.1);
    SAME("%s %zu %llx %08x", wide, sizeof wide, 1ULL << 60, 255);
}

static void test_arena(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    char *brief = arena_printf(arena, "%s_%d", "k", -12);
    char *long_one = arena_printf(arena, "%300d", 5);
    assert_string_equal(brief, "k_-12");
    assert_int_equal(strlen(long_one), 300);
    arena_free(arena);
}

// What may not reach a terminal stands as a `?` for each character.
static void test_shown(void **state)
{
    (void)state;
    static const char *const each[][2] = {
        {"plain, \t\n", "plain, \t\n"},
        {"\033[31m\a\r\177", "?[31m??"
                             "?"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xc2\x9b"
         "1m\xc2\x80",
         "?1m?"},
        {"\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8", "???"},
        {"\xff\x80\xc3(\xe2\x82", "??"
                                  "?("
                                  "??"},
        {"\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80", "?????????"},
    };
    for (int i = 0; i < COUNTOF(each); i++) {
        Buf shown = buf_new();
        buf_shown(&shown, each[i][0], strlen(each[i][0]));
        assert_string_equal(shown.text, each[i][1]);
        buf_release(&shown);
    }
    Arena *arena = arena_new();
    Diags diags;
    Buf text;
    Source source = {"\033[1mname", "a \xc2\x9b\xe2\x80\xae b\xff c", 12};
    diags = (Diags){.arena = arena};
    text = buf_new();
    diag_error(&diags, (Span){&source, 11, 12}, "X000", "what \033]0;\a is");
    diags_print(&text, &diags);
    assert_string_equal(text.text, "?[1mname:1:12: error X000: what ?]0;? is\n"
                                   "    a ?? b? c\n"
                                   "            ^\n");
    buf_release(&text);
    arena_free(arena);
}

static int deepest(int n)
{
    volatile char page[1024];
    page[0] = (char)n;
    return n == 0 ? page[0] : deepest(n - 1) + page[0] * 0;
}

static void go_deep(void *user)
{
    *(int *)user = deepest(3000) + 1;
}

static void *call_deep(void *user)
{
    deep_call(go_deep, user);
    return NULL;
}

// A caller's thread may have a stack that holds nothing.
static void test_deep_call(void **state)
{
    (void)state;
    pthread_attr_t attr;
    pthread_t thread;
    int gone = 0;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 1 << 17), 0);
    assert_int_equal(pthread_create(&thread, &attr, call_deep, &gone), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    assert_int_equal(gone, 1);
    gone = 0;
    call_deep(&gone);
    assert_int_equal(gone, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_deep_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
