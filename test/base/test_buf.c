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
        buf_init(&got);                                                                    \
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
