// SPDX-License-Identifier: Apache-2.0
//
// Where the user's files are.
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_user_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
