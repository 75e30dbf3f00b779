// SPDX-License-Identifier: Apache-2.0
//
// Where the user's files are, and what is read of them.
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static void set(const char *variable, const char *value)
{
    if (value)
        setenv(variable, value, 1);
    else
        unsetenv(variable);
}

static void expect(const char *data, const char *home, const char *want)
{
    Buf path;
    buf_init(&path);
    set("XDG_DATA_HOME", data);
    set("HOME", home);
    user_folder(&path, "XDG_DATA_HOME", ".local/share");
    assert_string_equal(path.text, want);
    buf_release(&path);
}

static void test_user_folder(void **state)
{
    (void)state;
    expect("/d", "/h", "/d/forewarp");
    expect(NULL, "/h", "/h/.local/share/forewarp");
    expect("", "/h", "/h/.local/share/forewarp");
    const struct passwd *user = getpwuid(getuid());
    if (!user)
        skip();
    char want[4096];
    snprintf(want, sizeof want, "%s/.local/share/forewarp", user->pw_dir);
    expect(NULL, NULL, want);
    expect(NULL, "", want);
}

static void assert_unread(const char *path, size_t most, const char *why)
{
    Buf text;
    buf_init(&text);
    buf_puts(&text, "before");
    assert_false(file_read(path, most, &text));
    assert_string_equal(text.text, why);
    buf_release(&text);
}

// No file, however long, takes more memory than its reader allows.
static void test_reading_is_limited(void **state)
{
    (void)state;
    static const char *const too_long =
        "it holds more than 64 KiB, the most that is read of such a file";
    char folder[] = "/tmp/forewarp-file-XXXXXX", path[64];
    Buf text;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a", folder);
    char *zeros = xcalloc(1, (1 << 16) + 1);
    buf_init(&text);
    assert_true(file_write(path, zeros, 1 << 16));
    assert_true(file_read(path, 1 << 16, &text));
    assert_int_equal(text.len, 1 << 16);
    assert_true(file_write(path, zeros, (1 << 16) + 1));
    assert_unread(path, 1 << 16, too_long);
    assert_unread("/dev/zero", 1 << 16, too_long);
    assert_unread(folder, 1 << 16, "Is a directory");
    assert_unread("/dev/absent", 1 << 16, "No such file or directory");
    gzFile file = gzopen(path, "wb9"); // a thousand times shorter than what it holds
    for (int i = 0; i < 1000; i++)
        assert_int_equal(gzwrite(file, zeros, 1 << 16), 1 << 16);
    gzclose(file);
    assert_unread(path, 1 << 16, too_long);
    file = gzopen(path, "wb9");
    gzwrite(file, "text", 4);
    gzclose(file);
    buf_clear(&text);
    assert_true(file_read(path, 4, &text));
    assert_string_equal(text.text, "text");
    buf_release(&text);
    free(zeros);
    remove_tree(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_user_folder),
                                       cmocka_unit_test(test_reading_is_limited)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
