// SPDX-License-Identifier: Apache-2.0
//
// The store: what goes in comes out, processes share it, a killed writer leaves it whole,
// and files that are not healthy stores are refused, by name, and left alone.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/wisdom.h"

#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    char folder[64], path[96];
    Arena *arena;
    Diags diags;
} Fixture;

static const StoreKey key = {
    .problem = "jacobi2d N=64",
    .problem_hash = 0xfedcba9876543210u,
    .space_hash = 7,
    .fingerprint = "device/1",
    .device = "A device",
    .version = "1",
};

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/fw_store_XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof f->path, "%s/deep/er/trials.db", f->folder);
    f->arena = arena_new();
    f->diags = (Diags){.arena = f->arena};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    int rc = system(command);
    arena_free(f->arena);
    free(f);
    return rc;
}

static Store *open_ok(Fixture *f)
{
    Store *store = store_open(f->path, &f->diags);
    if (!store)
        print_error("%s\n", f->diags.list.at[0].message);
    assert_non_null(store);
    return store;
}

static void refused(Fixture *f, const char *path, const char *code)
{
    f->diags = (Diags){.arena = f->arena};
    assert_null(store_open(path, &f->diags));
    assert_int_equal(f->diags.world, 1);
    assert_string_equal(f->diags.list.at[0].code, code);
    assert_non_null(strstr(f->diags.list.at[0].message, path));
}

typedef struct {
    int n;
    char point[8][64];
    StoreTrial last;
    double sample[TRIAL_SAMPLES];
    char log[8192];
} Seen;

static void see(void *user, const StoreTrial *trial)
{
    Seen *seen = user;
    if (seen->n < COUNTOF(seen->point))
        snprintf(seen->point[seen->n], sizeof seen->point[0], "%s", trial->point);
    seen->n++;
    seen->last = *trial;
    memcpy(seen->sample, trial->sample_ns, sizeof(double) * (size_t)trial->nsample);
    snprintf(seen->log, sizeof seen->log, "%s", trial->log ? trial->log : "(none)");
}

static Seen look(Fixture *f, Store *store, int64_t session)
{
    Seen seen = {0};
    assert_true(store_each(store, session, see, &seen, &f->diags));
    return seen;
}

static StoreTrial trial_of(const char *point, double time_ns)
{
    return (StoreTrial){.point = point, .status = TRIAL_OK, .time_ns = time_ns};
}

static void put(Fixture *f, Store *store, int64_t session, const StoreTrial *trial)
{
    assert_true(store_put(store, session, trial, &f->diags));
}

static void test_round_trip(void **state)
{
    Fixture *f = *state;
    Store *store = open_ok(f);
    int64_t session = store_session(store, &key, &f->diags);
    assert_true(session > 0);
    const double sample[] = {1.0 / 3, 2e6, 12345.678};
    StoreTrial trial = {"lx=64", TRIAL_WRONG_RESULT, 0.1,    true, 1e-7,
                        2.5,     "why\nso",          sample, 3,    7.5,
                        false,   UINT64_MAX,         {0}};
    measure_tell(&trial.measures, MEASURE_ENERGY, 0.125);
    put(f, store, session, &trial);
    store_close(store);
    store = open_ok(f);
    assert_int_equal(store_session(store, &key, &f->diags), session);
    Seen seen = look(f, store, session);
    assert_int_equal(seen.n, 1);
    assert_string_equal(seen.point[0], "lx=64");
    assert_int_equal(seen.last.status, TRIAL_WRONG_RESULT);
    assert_true(seen.last.time_ns == 0.1 && seen.last.cut);
    assert_true(seen.last.max_error == 1e-7 && seen.last.spent_s == 2.5);
    assert_string_equal(seen.log, "why\nso");
    assert_int_equal(seen.last.nsample, 3);
    assert_true(seen.last.seed == UINT64_MAX);
    assert_memory_equal(seen.sample, sample, sizeof sample);
    assert_true(seen.last.limit_s == 7.5);
    assert_true(measure_of(&seen.last.measures, MEASURE_ENERGY) == 0.125);
    assert_true(isnan(measure_of(&seen.last.measures, MEASURE_REGISTERS)));
    store_close(store);
}

// What the machine did to a point is no trial of it: it adds nothing and replaces nothing.
static void test_outside(void **state)
{
    Fixture *f = *state;
    Store *store = open_ok(f);
    int64_t session = store_session(store, &key, &f->diags);
    StoreTrial good = trial_of("lx=1", 5), full = {.point = "lx=1",
                                                   .status = TRIAL_BUILD_FAILED,
                                                   .time_ns = INFINITY,
                                                   .outside = true};
    put(f, store, session, &good);
    put(f, store, session, &full);
    assert_true(store_put_again(store, session, &full, &f->diags));
    full.point = "lx=2";
    put(f, store, session, &full);
    Seen seen = look(f, store, session);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.last.status, TRIAL_OK);
    store_close(store);
}

static void test_ceilings(void **state)
{
    Fixture *f = *state;
    double value = -1;
    Store *store = open_ok(f);
    assert_true(store_get_ceiling(store, "f", "copy", 64, &value, &f->diags));
    assert_true(value == -1);
    assert_true(store_put_ceiling(store, "f", "copy", 64, 4283.5, &f->diags));
    assert_true(store_put_ceiling(store, "f", "copy", 64, 4100.25, &f->diags));
    assert_true(store_put_ceiling(store, "f", "copy", 128, 1, &f->diags));
    assert_true(store_put_ceiling(store, "g", "copy", 64, 2, &f->diags));
    store_close(store);
    store = open_ok(f);
    assert_true(store_get_ceiling(store, "f", "copy", 64, &value, &f->diags));
    assert_true(value == 4100.25);
    assert_true(store_get_ceiling(store, "f", "float", 0, &value, &f->diags));
    assert_true(value == 4100.25);
    store_close(store);
}

static void test_absent_values(void **state)
{
    Fixture *f = *state;
    Store *store = open_ok(f);
    int64_t session = store_session(store, &key, &f->diags);
    for (int status = 0; status < TRIAL_STATUS_COUNT; status++) {
        StoreTrial trial = {
            "p", (TrialStatus)status, INFINITY, false, NAN, 0, NULL, NULL, 0, 0, false, 0,
            {0}};
        put(f, store, session, &trial);
        Seen seen = look(f, store, session);
        assert_int_equal(seen.n, 1);
        assert_int_equal(seen.last.status, status);
        assert_true(isinf(seen.last.time_ns) && isnan(seen.last.max_error));
        assert_int_equal(seen.last.nsample, 0);
        assert_string_equal(seen.log, "(none)");
    }
    store_close(store);
}

static void test_replace_order_forget(void **state)
{
    Fixture *f = *state;
    Store *store = open_ok(f);
    StoreKey other = key;
    other.version = "2";
    int64_t a = store_session(store, &key, &f->diags);
    int64_t b = store_session(store, &other, &f->diags);
    assert_true(a > 0 && b > 0 && a != b);
    const char *const point[] = {"x=1", "x=2", "x=1"};
    for (int i = 0; i < COUNTOF(point); i++) {
        StoreTrial trial = trial_of(point[i], 10 + i);
        put(f, store, a, &trial);
    }
    StoreTrial trial = trial_of("x=9", 1);
    put(f, store, b, &trial);
    Seen seen = look(f, store, a);
    assert_int_equal(seen.n, 2);
    assert_string_equal(seen.point[0], "x=2");
    assert_string_equal(seen.point[1], "x=1");
    assert_true(seen.last.time_ns == 12);
    assert_true(store_forget(store, a, &f->diags));
    assert_int_equal(look(f, store, a).n, 0);
    assert_int_equal(look(f, store, b).n, 1);
    store_close(store);
}

static void test_long_log(void **state)
{
    Fixture *f = *state;
    Store *store = open_ok(f);
    int64_t session = store_session(store, &key, &f->diags);
    char log[6000] = "head";
    memset(log + 4, 'x', 4091);
    strcpy(log + 4095, "\xc3\xa9 tail that does not fit"); // cut inside a character
    StoreTrial trial = trial_of("x=1", 1);
    trial.log = log;
    put(f, store, session, &trial);
    Seen seen = look(f, store, session);
    assert_int_equal(strlen(seen.log), 4095);
    assert_memory_equal(seen.log, log, 4095);
    store_close(store);
}

// Writers in processes of their own ----------------------------------------------------

// Writes points PREFIX0, PREFIX1, ... and a byte to the pipe after each.
static void write_points(const char *path, const char *prefix, int n, int pipe_end)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Store *store = store_open(path, &diags);
    int64_t session = store ? store_session(store, &key, &diags) : 0;
    bool ok = session > 0;
    for (int i = 0; ok && i < n; i++) {
        char point[32];
        snprintf(point, sizeof point, "%s%d", prefix, i);
        StoreTrial trial = trial_of(point, i);
        ok = store_put(store, session, &trial, &diags);
        if (ok && pipe_end >= 0)
            ok = write(pipe_end, "x", 1) == 1;
    }
    _exit(ok ? 0 : 1);
}

static void test_two_writers(void **state)
{
    Fixture *f = *state;
    pid_t child[3];
    for (int i = 0; i < COUNTOF(child); i++)
        if ((child[i] = fork()) == 0)
            write_points(f->path, i == 0 ? "a" : i == 1 ? "b" : "c", 100, -1);
    for (int i = 0; i < COUNTOF(child); i++) {
        int status;
        waitpid(child[i], &status, 0);
        assert_int_equal(status, 0);
    }
    Store *store = open_ok(f);
    int64_t session = store_session(store, &key, &f->diags);
    assert_int_equal(look(f, store, session).n, 300);
    store_close(store);
}

static void test_killed_writer(void **state)
{
    Fixture *f = *state;
    int committed = 0;
    for (int round = 0; round < 5; round++) {
        int ends[2];
        char prefix[2] = {(char)('a' + round), 0}, byte;
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0)
            write_points(f->path, prefix, 1000000, ends[1]);
        close(ends[1]);
        for (int i = 0; i < 20 + 7 * round; i++, committed++)
            assert_int_equal(read(ends[0], &byte, 1), 1);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(ends[0], &byte, 1) == 1)
            committed++;
        close(ends[0]);
        Store *store = open_ok(f);
        int n = look(f, store, store_session(store, &key, &f->diags)).n;
        assert_in_range(n, committed, committed + round + 1);
        store_close(store);
    }
}

// A file that cannot grow: earlier trials stay.
static void test_full(void **state)
{
    Fixture *f = *state;
    Store *store = open_ok(f);
    int64_t session = store_session(store, &key, &f->diags);
    StoreTrial trial = trial_of("x=1", 1);
    put(f, store, session, &trial);
    store_close(store);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {64 * 1024, 64 * 1024};
        setrlimit(RLIMIT_FSIZE, &limit);
        write_points(f->path, "y", 2000, -1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    store = open_ok(f);
    Seen seen = look(f, store, session);
    assert_true(seen.n >= 1 && seen.n < 2000);
    assert_string_equal(seen.point[0], "x=1");
    store_close(store);
}

// Files that are refused ------------------------------------------------------------------

static void read_all(const char *path, Buf *buf)
{
    *buf = buf_new();
    assert_true(file_read(path, FILE_DATA_MOST, buf));
}

static void refused_unchanged(Fixture *f, const char *path, const char *code)
{
    Buf before, after;
    read_all(path, &before);
    refused(f, path, code);
    read_all(path, &after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.text, after.text, before.len);
    buf_release(&before);
    buf_release(&after);
}

static void fill_store(Fixture *f, int n)
{
    Store *store = open_ok(f);
    int64_t session = store_session(store, &key, &f->diags);
    for (int i = 0; i < n; i++) {
        char point[32];
        snprintf(point, sizeof point, "x=%d", i);
        StoreTrial trial = trial_of(point, i);
        trial.log = "a log that takes up some room in the file, so that it has many pages";
        put(f, store, session, &trial);
    }
    store_close(store);
}

static void test_garbage(void **state)
{
    Fixture *f = *state;
    char path[96], bytes[5000];
    snprintf(path, sizeof path, "%s/garbage.db", f->folder);
    for (int i = 0; i < COUNTOF(bytes); i++)
        bytes[i] = (char)(i * 37);
    assert_true(file_write(path, bytes, sizeof bytes));
    refused_unchanged(f, path, "Q005");
    assert_true(file_write(path, "not a database", 14));
    refused_unchanged(f, path, "Q005");
}

static void test_truncated(void **state)
{
    Fixture *f = *state;
    fill_store(f, 300);
    struct stat info;
    assert_int_equal(stat(f->path, &info), 0);
    assert_int_equal(truncate(f->path, info.st_size / 2), 0);
    refused_unchanged(f, f->path, "Q004");
}

static void damage(const char *path)
{
    Buf bytes;
    read_all(path, &bytes);
    memset(bytes.text + 4096 * 8, 0xa5, 2 * 4096);
    assert_true(file_write(path, bytes.text, bytes.len));
    buf_release(&bytes);
}

static void test_damaged_page(void **state)
{
    Fixture *f = *state;
    fill_store(f, 300);
    damage(f->path);
    refused_unchanged(f, f->path, "Q004");
}

// The log that a killed writer left is not moved into a file found damaged.
static void test_damaged_after_kill(void **state)
{
    Fixture *f = *state;
    fill_store(f, 300);
    pid_t child = fork();
    if (child == 0)
        write_points(f->path, "late", 5, -1);
    waitpid(child, NULL, 0);
    damage(f->path);
    refused_unchanged(f, f->path, "Q004");
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static int take_number(void *number, int n, char **value, char **name)
{
    (void)n, (void)name;
    *(int *)number = value[0] ? atoi(value[0]) : 0;
    return 0;
}

// Of the only session.
static int stored_rigor(const char *path)
{
    sqlite3 *db;
    int rigor = -1;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "SELECT rigor FROM session", take_number, &rigor, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    return rigor;
}

static void test_other_databases(void **state)
{
    Fixture *f = *state;
    char path[96];
    snprintf(path, sizeof path, "%s/other.db", f->folder);
    run_sql(path, "CREATE TABLE t(x)");
    refused_unchanged(f, path, "Q005");
    fill_store(f, 1);
    run_sql(f->path, "PRAGMA user_version = 7");
    refused_unchanged(f, f->path, "Q008");
}

// A file of version 1 gets what later versions added, and keeps its trials.
static void test_older_version(void **state)
{
    Fixture *f = *state;
    double value = 0;
    fill_store(f, 1);
    run_sql(f->path, "DROP TABLE ceiling; ALTER TABLE session DROP COLUMN rigor;"
                     "ALTER TABLE trial DROP COLUMN limit_s;"
                     "DROP TABLE checked; ALTER TABLE trial DROP COLUMN seed;"
                     "ALTER TABLE trial DROP COLUMN measures;"
                     "PRAGMA user_version = 1");
    Store *store = open_ok(f);
    assert_true(store_put_ceiling(store, "f", "copy", 64, 1, &f->diags));
    assert_true(store_get_ceiling(store, "f", "copy", 64, &value, &f->diags));
    assert_true(value == 1);
    int64_t session = store_session(store, &key, &f->diags);
    Seen seen = look(f, store, session);
    assert_int_equal(seen.n, 1);
    assert_int_equal(stored_rigor(f->path), RIGOR_NONE);
    assert_true(store_put_rigor(store, session, RIGOR_PATIENT, &f->diags));
    assert_true(store_put_rigor(store, session, RIGOR_MEASURE, &f->diags)); // never less
    assert_int_equal(stored_rigor(f->path), RIGOR_PATIENT);
    assert_true(
        store_put_checked(store, session, "lx=1", TRIAL_WRONG_RESULT, "x", &f->diags));
    store_close(store);
}

static void see_checked(void *user, const char *point, TrialStatus status, const char *log)
{
    Buf *seen = user;
    buf_printf(seen, "%s %s %s;", point, trial_status_name[status], log);
}

// The last outcome of a point, of a session; forgotten with its trials.
static void test_checked(void **state)
{
    Fixture *f = *state;
    Store *store = open_ok(f);
    int64_t session = store_session(store, &key, &f->diags);
    StoreKey other = key;
    other.fingerprint = "other";
    int64_t elsewhere = store_session(store, &other, &f->diags);
    Buf seen = buf_new();
    assert_true(store_put_checked(store, session, "a", TRIAL_CRASHED, NULL, &f->diags));
    assert_true(store_put_checked(store, session, "a", TRIAL_OK, NULL, &f->diags));
    assert_true(store_put_checked(store, session, "b", TRIAL_CRASHED, "why", &f->diags));
    assert_true(store_put_checked(store, elsewhere, "c", TRIAL_OK, "", &f->diags));
    assert_true(store_each_checked(store, session, see_checked, &seen, &f->diags));
    assert_string_equal(seen.text, "a ok ;b crashed why;");
    assert_true(store_forget(store, session, &f->diags));
    buf_clear(&seen);
    assert_true(store_each_checked(store, session, see_checked, &seen, &f->diags));
    assert_string_equal(seen.text, "");
    buf_release(&seen);
    store_close(store);
}

static void count_best(void *user, const StoreBest *best)
{
    (void)best;
    ++*(int *)user;
}

// Times that nothing takes, as a file made by hand may have: no plan, and no trial.
static void test_impossible_times(void **state)
{
    static const char *const time[] = {"-1", "1e19", "'fast'", "9e999"};
    Fixture *f = *state;
    for (int i = 0; i < COUNTOF(time); i++) {
        char sql[96];
        int n = 0;
        fill_store(f, 1);
        snprintf(sql, sizeof sql, "UPDATE trial SET status = 'ok', time_ns = %s", time[i]);
        run_sql(f->path, sql);
        Store *store = open_ok(f);
        assert_true(store_each_best(store, count_best, &n, &f->diags));
        assert_int_equal(n, 0);
        store_close(store);
    }
}

// All changes of a transaction, or none.
static void test_together(void **state)
{
    Fixture *f = *state;
    bool added, right;
    Store *store = open_ok(f);
    StoreTrial trial = {.point = "lx=1", .status = TRIAL_OK, .time_ns = 5};
    for (int keep = 0; keep < 2; keep++) {
        assert_true(store_begin(store, &f->diags));
        int64_t session = store_session(store, &key, &f->diags);
        assert_true(store_add(store, session, &trial, &added, &right, &f->diags));
        assert_true(added && right);
        trial.time_ns = 7; // the one that is there stays
        assert_true(store_add(store, session, &trial, &added, &right, &f->diags));
        assert_true(!added && right);
        trial.time_ns = 5;
        assert_true(store_end(store, keep, &f->diags));
        Seen seen = look(f, store, store_session(store, &key, &f->diags));
        assert_int_equal(seen.n, keep);
    }
    store_close(store);
}

static void see_order(void *user, const StoreTrial *trial)
{
    Buf *text = user;
    buf_printf(text, "%s %s %g %g; ", trial->point, trial_status_name[trial->status],
               trial->time_ns, trial->spent_s);
}

// Measured again, a trial keeps its place and what it cost; one that is not there is not
// made.
static void test_again(void **state)
{
    Fixture *f = *state;
    Store *store = open_ok(f);
    int64_t session = store_session(store, &key, &f->diags);
    StoreTrial trial = {.point = "lx=1", .status = TRIAL_OK, .time_ns = 5, .spent_s = 2};
    put(f, store, session, &trial);
    put(f, store, session,
        &(StoreTrial){.point = "lx=2", .status = TRIAL_OK, .time_ns = 6, .spent_s = 3});
    trial = (StoreTrial){.point = "lx=1", .status = TRIAL_WRONG_RESULT, .time_ns = 7};
    assert_true(store_put_again(store, session, &trial, &f->diags));
    trial.point = "lx=4";
    assert_true(store_put_again(store, session, &trial, &f->diags));
    Buf text = buf_new();
    assert_true(store_each(store, session, see_order, &text, &f->diags));
    assert_string_equal(text.text, "lx=1 wrong-result 7 2; lx=2 ok 6 3; ");
    buf_release(&text);
    store_close(store);
}

// Imported wisdom vouches for a search only where its plan is right.
static void test_wisdom_that_fails(void **state)
{
    Fixture *f = *state;
    Store *store = open_ok(f);
    int64_t session = store_session(store, &key, &f->diags);
    StoreTrial failed = {.point = "lx=1", .status = TRIAL_WRONG_RESULT};
    assert_true(store_put(store, session, &failed, &f->diags));
    const char *const point[] = {"lx=1", "lx=2"};
    for (int i = 0; i < 2; i++) {
        Wisdom wisdom = {0};
        int changed;
        StoreBest plan = {
            .key = key, .rigor = RIGOR_PATIENT, .point = point[i], .time_ns = 5};
        VEC_PUSH(f->arena, &wisdom, plan);
        assert_true(wisdom_store(store, &wisdom, &changed, &f->diags));
        assert_int_equal(changed, i);
        assert_int_equal(stored_rigor(f->path), i ? RIGOR_PATIENT : RIGOR_NONE);
    }
    store_close(store);
}

static void test_no_place(void **state)
{
    Fixture *f = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/file", f->folder);
    assert_true(file_write(path, "x", 1));
    strcat(path, "/trials.db");
    refused(f, path, "Q001");
    snprintf(path, sizeof path, "%s/file/deep/trials.db", f->folder);
    refused(f, path, "Q001");
    refused(f, f->folder, "Q001");
}

// True if a user without rights to the file or folder is told so.
static bool refused_to_others(Fixture *f, const char *path, const char *code)
{
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        f->diags = (Diags){.arena = f->arena};
        Store *store = store_open(path, &f->diags);
        bool told = !store && strcmp(f->diags.list.at[0].code, code) == 0;
        _exit(told ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    return status == 0;
}

static void test_read_only(void **state)
{
    Fixture *f = *state;
    char path[128];
    fill_store(f, 1);
    chmod(f->path, 0444);
    chmod(f->folder, 0555);
    assert_true(refused_to_others(f, f->path, "Q006"));
    snprintf(path, sizeof path, "%s/new.db", f->folder);
    assert_true(refused_to_others(f, path, "Q001"));
    snprintf(path, sizeof path, "%s/new/new.db", f->folder);
    assert_true(refused_to_others(f, path, "Q001"));
    chmod(f->folder, 0755);
}

static void test_damaged_row(void **state)
{
    Fixture *f = *state;
    fill_store(f, 3);
    run_sql(f->path, "UPDATE trial SET status = 'odd' WHERE id = 2");
    Store *store = open_ok(f);
    Seen seen = {0};
    assert_false(store_each(store, 1, see, &seen, &f->diags));
    assert_int_equal(f->diags.world, 1);
    store_close(store);
}

static void test_default_path(void **state)
{
    (void)state;
    Buf path = buf_new();
    setenv("FOREWARP_STORE", "/a/b.db", 1);
    store_default_path(&path);
    assert_string_equal(path.text, "/a/b.db");
    buf_clear(&path);
    unsetenv("FOREWARP_STORE");
    setenv("XDG_DATA_HOME", "/data", 1);
    store_default_path(&path);
    assert_string_equal(path.text, "/data/forewarp/trials.db");
    buf_clear(&path);
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", "/home/me", 1);
    store_default_path(&path);
    assert_string_equal(path.text, "/home/me/.local/share/forewarp/trials.db");
    buf_release(&path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),
        TEST(test_ceilings),
        TEST(test_older_version),
        TEST(test_outside),
        TEST(test_checked),
        TEST(test_impossible_times),
        TEST(test_together),
        TEST(test_again),
        TEST(test_wisdom_that_fails),
        TEST(test_absent_values),
        TEST(test_replace_order_forget),
        TEST(test_long_log),
        TEST(test_two_writers),
        TEST(test_killed_writer),
        TEST(test_full),
        TEST(test_garbage),
        TEST(test_truncated),
        TEST(test_damaged_page),
        TEST(test_damaged_after_kill),
        TEST(test_other_databases),
        TEST(test_no_place),
        TEST(test_read_only),
        TEST(test_damaged_row),
        cmocka_unit_test(test_default_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
