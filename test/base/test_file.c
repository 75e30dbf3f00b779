// SPDX-License-Identifier: Apache-2.0
//
// Where the user's files are, what is read of them, and that nobody else has a part in what
// is made.
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
    Buf path = buf_new();
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

typedef struct {
    char path[64], victim[96], file[96];
} Folder;

static Folder folder_of_test(void)
{
    Folder f = {.path = "/tmp/forewarp-test-XXXXXX"};
    assert_non_null(mkdtemp(f.path));
    snprintf(f.victim, sizeof f.victim, "%s/victim", f.path);
    snprintf(f.file, sizeof f.file, "%s/file", f.path);
    assert_true(file_write(f.victim, "mine", 4));
    return f;
}

static void assert_holds(const char *path, const char *text)
{
    Buf got = buf_new();
    assert_true(file_read(path, 1 << 16, &got));
    assert_string_equal(got.text, text);
    buf_release(&got);
}

static unsigned mode_of(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return about.st_mode & 0777;
}

// A link by the name that could be foreseen: of the process, before anything is written.
static void test_write(void **state)
{
    (void)state;
    Folder f = folder_of_test();
    char link[160];
    mode_t mask = umask(027);
    snprintf(link, sizeof link, "%s.%ld.tmp", f.file, (long)getpid());
    assert_int_equal(symlink(f.victim, link), 0);
    assert_true(file_write(f.file, "new", 3));
    assert_holds(f.victim, "mine");
    assert_holds(f.file, "new");
    assert_int_equal(mode_of(f.file), 0640);
    umask(mask);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(f.file), 0);
    assert_int_equal(unlink(f.victim), 0);
    assert_int_equal(rmdir(f.path), 0); // and nothing else is there
}

static void test_private(void **state)
{
    (void)state;
    Folder f = folder_of_test();
    char path[160], link[160];
    bool was_open;
    snprintf(path, sizeof path, "%s/a/b/c", f.path);
    snprintf(link, sizeof link, "%s/link", f.path);
    assert_true(file_mkdir_private(path, &was_open));
    assert_true(!was_open && mode_of(path) == 0700);
    chmod(path, 0770);
    assert_int_equal(symlink(path, link), 0);
    assert_true(file_mkdir_private(link, &was_open));
    assert_true(was_open && mode_of(path) == 0700);
    assert_true(file_mkdir_private(path, &was_open));
    assert_false(was_open);
    assert_false(file_mkdir_private(f.victim, &was_open)); // no folder
    if (geteuid() == 0) {
        assert_int_equal(lchown(link, 65534, 65534), 0);
        assert_false(file_mkdir_private(link, &was_open));
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_false(file_mkdir_private(path, &was_open));
    }
    remove_tree(f.path);
}

// Made by a process that does not come to remove it; its path to name.
static void leave_one(const char *parent, char *name, size_t size)
{
    int fd[2], status;
    assert_int_equal(pipe(fd), 0);
    pid_t pid = fork();
    if (pid == 0) {
        TempFolder folder;
        bool ok = temp_open(&folder, parent, "left") &&
                  write(fd[1], folder.path, strlen(folder.path)) > 0;
        _exit(!ok);
    }
    close(fd[1]);
    ssize_t n = read(fd[0], name, size - 1);
    assert_true(n > 0);
    name[n] = 0;
    close(fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_temp(void **state)
{
    (void)state;
    Folder f = folder_of_test();
    TempFolder a, b;
    char left[160], other[160], early[160];
    leave_one(f.path, left, sizeof left);
    snprintf(early, sizeof early, "%s/left-abc123", f.path); // killed before it had a lock
    assert_int_equal(mkdir(early, 0700), 0);
    assert_int_equal(mode_of(left), 0700);
    snprintf(other, sizeof other, "%s/left-mine", f.path); // not made by temp_open
    assert_int_equal(mkdir(other, 0777), 0);
    assert_true(temp_open(&a, f.path, "left"));
    assert_int_equal(access(left, F_OK), -1);
    assert_int_equal(access(early, F_OK), -1);
    assert_true(temp_open(&b, f.path, "left"));
    assert_int_equal(mode_of(a.path), 0700); // one in use stays
    assert_string_not_equal(a.path, b.path);
    temp_close(&a);
    temp_close(&b);
    assert_int_equal(rmdir(other), 0);
    assert_int_equal(unlink(f.victim), 0);
    assert_int_equal(rmdir(f.path), 0);
    assert_false(temp_open(&a, f.path, "left"));
}

static void assert_unread(const char *path, size_t most, const char *why)
{
    Buf text = buf_new();
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
    text = buf_new();
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_user_folder),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_private),
        cmocka_unit_test(test_temp),
        cmocka_unit_test(test_reading_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
