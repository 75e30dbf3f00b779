// SPDX-License-Identifier: Apache-2.0
//
// A worker that somebody kills while it opens its device is started again, also for who
// only asks what the device is.
#include "measure/measure.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

static const char killed[] = "TEST_KILLED_WORKERS"; // a folder with a file for each

static const char *file_of(Arena *arena, const char *folder, int number)
{
    return arena_printf(arena, "%s/kill-%d", folder, number);
}

static void end_as_killed(const char *folder)
{
    AutoArena *arena = arena_new();
    for (int i = 0; i < 2; i++)
        if (unlink(file_of(arena, folder, i)) == 0)
            kill(getpid(), SIGKILL);
}

static void test_killed(void **state)
{
    (void)state;
    AutoArena *arena = arena_new();
    char folder[] = "/tmp/forewarp-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    setenv(killed, folder, 1);
    for (int kills = 0; kills <= 2; kills++)
        for (int asked = 0; asked < 2; asked++) {
            for (int i = 0; i < kills; i++)
                assert_true(file_write(file_of(arena, folder, i), "", 0));
            const RunnerConfig config = {.device = "host", .folder = folder};
            Diags diags = {.arena = arena};
            DeviceInfo info;
            Runner *runner = asked ? NULL : runner_open(&config, &diags);
            assert_true(runner || devices_find(arena, NULL, NULL, "host", &info, &diags));
            assert_int_equal(diags.errors, 0);
            runner_close(runner);
            for (int i = 0; i < kills; i++)
                assert_int_equal(access(file_of(arena, folder, i), F_OK), -1);
        }
    unsetenv(killed);
    remove_tree(folder);
}

static void test_killed_list(void **state)
{
    (void)state;
    AutoArena *arena = arena_new();
    char folder[] = "/tmp/forewarp-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    setenv(killed, folder, 1);
    assert_true(file_write(file_of(arena, folder, 0), "", 0));
    Diags diags = {.arena = arena};
    DeviceInfo *info;
    assert_true(devices_list(arena, NULL, NULL, &info, &diags) > 0);
    assert_int_equal(access(file_of(arena, folder, 0), F_OK), -1);
    for (int i = 0; i < diags.list.len; i++)
        assert_null(strstr(diags.list.at[i].message, "asking for"));
    unsetenv(killed);
    remove_tree(folder);
}

// As many tunings at a time as a large machine runs hold all caches that others keep.
static void test_no_cache_free(void **state)
{
    (void)state;
    enum { HELD = 100 };
    AutoArena *arena = arena_new();
    int held[HELD];
    char folder[] = "/tmp/forewarp-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < HELD; i++) {
        held[i] = open(arena_printf(arena, "%s/cache-%d.lock", folder, i), O_RDWR | O_CREAT,
                       0600);
        assert_int_equal(flock(held[i], LOCK_EX), 0);
    }
    const RunnerConfig config = {.device = "host", .folder = folder};
    Diags diags = {.arena = arena};
    Runner *runner = runner_open(&config, &diags);
    assert_non_null(runner);
    assert_int_equal(diags.errors, 0);
    runner_close(runner);
    for (int i = 0; i < HELD; i++)
        close(held[i]);
    remove_tree(folder);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0) {
        if (getenv(killed))
            end_as_killed(getenv(killed));
        return worker_main(argc, argv);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed),
                                       cmocka_unit_test(test_killed_list),
                                       cmocka_unit_test(test_no_cache_free)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
