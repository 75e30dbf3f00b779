// SPDX-License-Identifier: Apache-2.0
//
// The store as one SQLite file: a row a session (what trials are comparable), a row a
// trial, and a row a measured ceiling of a device. Every statement is its own transaction;
// with the write-ahead log readers and one writer do not wait for each other, and where a
// file system refuses it the ordinary journal serves. A file is checked before anything is
// written to it.
//
// It keeps no cache and interprets no point: text in, text out.
#include "store/store.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct Store {
    sqlite3 *db;
    char *path;
};

enum {
    APPLICATION_ID = 0x46577270, // "FWrp"
    SCHEMA_VERSION = 6,
    BUSY_MS = 10000,
    LOG_BYTES = 4096,
};

// Version 1; its last number is APPLICATION_ID.
static const char schema[] =
    "CREATE TABLE session("
    " id INTEGER PRIMARY KEY, problem TEXT NOT NULL, problem_hash TEXT NOT NULL,"
    " space_hash TEXT NOT NULL, fingerprint TEXT NOT NULL, device TEXT NOT NULL,"
    " version TEXT NOT NULL, created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,"
    " UNIQUE(problem, problem_hash, space_hash, fingerprint, device, version));"
    "CREATE TABLE trial("
    " id INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES session(id),"
    " point TEXT NOT NULL, status TEXT NOT NULL, time_ns REAL, cut INTEGER NOT NULL,"
    " max_error REAL, spent_s REAL, log TEXT, samples TEXT NOT NULL,"
    " created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE(session, point));"
    "PRAGMA application_id = 1180136048;";

// What version 2 added.
static const char schema_ceiling[] =
    "CREATE TABLE ceiling("
    " fingerprint TEXT NOT NULL, what TEXT NOT NULL, bytes INTEGER NOT NULL,"
    " value REAL NOT NULL, created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,"
    " PRIMARY KEY(fingerprint, what, bytes));"
    "PRAGMA user_version = 2;";

// What version 3 added.
static const char schema_rigor[] =
    "ALTER TABLE session ADD COLUMN rigor INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 3;";

// What version 4 added; its last number is SCHEMA_VERSION.
static const char schema_limit[] = "ALTER TABLE trial ADD COLUMN limit_s REAL;"
                                   "PRAGMA user_version = 4;";

static const char schema_checked[] =
    "ALTER TABLE trial ADD COLUMN seed INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE checked("
    " session INTEGER NOT NULL REFERENCES session(id), point TEXT NOT NULL,"
    " status TEXT NOT NULL, log TEXT, created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,"
    " PRIMARY KEY(session, point));"
    "PRAGMA user_version = 5;";

static const char schema_measures[] = "ALTER TABLE trial ADD COLUMN measures TEXT;"
                                      "PRAGMA user_version = 6;";

// From each version to the next.
static const char *const schema_step[SCHEMA_VERSION] = {
    schema, schema_ceiling, schema_rigor, schema_limit, schema_checked, schema_measures};

// Failures ----------------------------------------------------------------------------

typedef struct {
    int rc;
    const char *code, *text;
} Failure;

static const Failure failures[] = {
    {SQLITE_FULL, "Q002", "the disk is full"},
    {SQLITE_BUSY, "Q003", "another process has kept it locked for more than 10 s"},
    {SQLITE_LOCKED, "Q003", "it is locked"},
    {SQLITE_CORRUPT, "Q004", "the file is damaged; move it away to start a new one"},
    {SQLITE_NOTADB, "Q005", "the file is not a store"},
    {SQLITE_READONLY, "Q006", "the file cannot be written"},
    {SQLITE_PERM, "Q006", "the file cannot be written"},
    {SQLITE_CANTOPEN, "Q001", "the file cannot be opened"},
    {SQLITE_IOERR, "Q007", "reading or writing the file failed"},
};

static bool fail_because(const Store *store, Diags *diags, const char *code,
                         const char *text)
{
    return diag_world(diags, code, "store %s: %s", store->path, text);
}

// Tells what SQLite reported last.
static bool fail(const Store *store, Diags *diags)
{
    int rc = sqlite3_errcode(store->db), system = sqlite3_system_errno(store->db);
    bool why = system && (rc == SQLITE_CANTOPEN || rc == SQLITE_IOERR);
    for (int i = 0; i < COUNTOF(failures); i++) {
        if (rc != failures[i].rc)
            continue;
        return diag_world(diags, failures[i].code, "store %s: %s%s%s", store->path,
                          failures[i].text, why ? ": " : "", why ? strerror(system) : "");
    }
    return fail_because(store, diags, "Q001", sqlite3_errmsg(store->db));
}

static bool exec(Store *store, const char *sql)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static sqlite3_stmt *prepare(Store *store, const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return NULL;
    return statement;
}

// The single number a statement yields; -1 on failure.
static int64_t ask_number(Store *store, const char *sql)
{
    sqlite3_stmt *statement = prepare(store, sql);
    int64_t number = -1;
    if (statement && sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

// Opening ----------------------------------------------------------------------------

static bool make_parent(const char *path, Diags *diags)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return true;
    AUTO_FREE char *folder = xstrdup(path);
    folder[slash - path] = 0;
    bool ok = file_mkdirs(folder);
    if (!ok)
        diag_world(diags, "Q001", "store %s: the folder %s cannot be made: %s", path,
                   folder, strerror(errno));
    return ok;
}

// True for a healthy file: SQLite's own check finds nothing.
static bool is_sound(Store *store, Diags *diags)
{
    sqlite3_stmt *check = prepare(store, "PRAGMA quick_check(1)");
    int rc = check ? sqlite3_step(check) : SQLITE_ERROR;
    const char *text =
        rc == SQLITE_ROW ? (const char *)sqlite3_column_text(check, 0) : NULL;
    bool ok = text && strcmp(text, "ok") == 0;
    if (!ok && text)
        fail_because(store, diags, "Q004",
                     "the file is damaged; move it away to start a new one");
    else if (!ok)
        fail(store, diags);
    sqlite3_finalize(check);
    return ok;
}

// True if the file is new (version 0), or of this program and of a version it reads.
static bool is_ours(Store *store, Diags *diags, int *have)
{
    int64_t id = ask_number(store, "PRAGMA application_id");
    int64_t version = id < 0 ? -1 : ask_number(store, "PRAGMA user_version");
    int64_t tables =
        version < 0 ? -1 : ask_number(store, "SELECT count(*) FROM sqlite_master");
    if (id < 0 || version < 0 || tables < 0)
        return fail(store, diags);
    bool is_new = id == 0 && version == 0 && tables == 0;
    *have = is_new ? 0 : (int)MAX(version, 1); // version 1 did not say so
    if (!is_new && id != APPLICATION_ID)
        return fail_because(store, diags, "Q005",
                            "the file is a database of another program");
    if (version > SCHEMA_VERSION)
        return fail_because(store, diags, "Q008",
                            "the file was made by a newer version of forewarp");
    return true;
}

// Makes the tables that are missing, unless another process was faster.
static bool make_tables(Store *store, Diags *diags)
{
    int have;
    if (!exec(store, "BEGIN IMMEDIATE"))
        return fail(store, diags);
    if (!is_ours(store, diags, &have)) {
        exec(store, "ROLLBACK");
        return false;
    }
    bool ok = true;
    for (; ok && have < SCHEMA_VERSION; have++)
        ok = exec(store, schema_step[have]);
    if (ok && exec(store, "COMMIT"))
        return true;
    fail(store, diags);
    exec(store, "ROLLBACK");
    return false;
}

// As is_ours, seen at one moment: another process may be making the tables.
static bool is_ours_now(Store *store, Diags *diags, int *have)
{
    exec(store, "BEGIN");
    bool ours = is_ours(store, diags, have);
    exec(store, "COMMIT");
    return ours;
}

static void checkpoint_on_close(Store *store, bool on)
{
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !on, NULL);
}

static bool open_file(Store *store, Diags *diags)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int have;
    if (access(store->path, F_OK) == 0 && access(store->path, W_OK) != 0)
        return diag_world(diags, "Q006", "store %s: the file cannot be written: %s",
                          store->path, strerror(errno));
    if (sqlite3_open_v2(store->path, &store->db, flags, NULL) != SQLITE_OK)
        return fail(store, diags);
    sqlite3_busy_timeout(store->db, BUSY_MS);
    checkpoint_on_close(store, false); // a file found damaged stays as it is
    if (!is_ours_now(store, diags, &have) || !is_sound(store, diags))
        return false;
    checkpoint_on_close(store, true);
    exec(store, "PRAGMA journal_mode = WAL"); // refused: the journal there is will do
    exec(store, "PRAGMA synchronous = NORMAL");
    return have == SCHEMA_VERSION || make_tables(store, diags);
}

Store *store_open(const char *path, Diags *diags)
{
    if (!make_parent(path, diags))
        return NULL;
    Store *store = xcalloc(1, sizeof *store);
    store->path = xstrdup(path);
    if (open_file(store, diags))
        return store;
    store_close(store);
    return NULL;
}

void store_close(Store *store)
{
    if (!store)
        return;
    sqlite3_close(store->db);
    free(store->path);
    free(store);
}

void store_default_path(Buf *out)
{
    const char *path = getenv("FOREWARP_STORE");
    if (path && *path) {
        buf_puts(out, path);
        return;
    }
    user_folder(out, "XDG_DATA_HOME", ".local/share");
    buf_puts(out, "/trials.db");
}

// Sessions ---------------------------------------------------------------------------

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

static void bind_key(sqlite3_stmt *statement, const StoreKey *key)
{
    char problem_hash[17], space_hash[17];
    hash_hex(key->problem_hash, problem_hash);
    hash_hex(key->space_hash, space_hash);
    const char *const column[] = {key->problem,     problem_hash, space_hash,
                                  key->fingerprint, key->device,  key->version};
    for (int i = 0; i < COUNTOF(column); i++)
        bind_text(statement, i + 1, column[i]);
}

// Steps a statement to its end or first row; finalizes it. The rc of the step.
static int run(sqlite3_stmt *statement, int64_t *number)
{
    if (!statement)
        return SQLITE_ERROR;
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rc;
}

static int find_session(Store *store, const StoreKey *key, int64_t *session)
{
    sqlite3_stmt *find = prepare(
        store, "SELECT id FROM session WHERE problem = ?1 AND problem_hash = ?2 AND"
               " space_hash = ?3 AND fingerprint = ?4 AND device = ?5 AND version = ?6");
    if (find)
        bind_key(find, key);
    return run(find, session);
}

int64_t store_session(Store *store, const StoreKey *key, Diags *diags)
{
    int64_t session = 0;
    if (find_session(store, key, &session) == SQLITE_ROW)
        return session;
    sqlite3_stmt *add =
        prepare(store, "INSERT OR IGNORE INTO session(problem, problem_hash, space_hash,"
                       " fingerprint, device, version) VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
    if (add)
        bind_key(add, key);
    if (run(add, &session) == SQLITE_DONE &&
        find_session(store, key, &session) == SQLITE_ROW)
        return session;
    fail(store, diags);
    return 0;
}

// Trials -----------------------------------------------------------------------------

// The head of a log, cut between characters of UTF-8.
static int log_bytes(const char *log)
{
    size_t n = strnlen(log, LOG_BYTES + 1);
    if (n <= LOG_BYTES)
        return (int)n;
    for (n = LOG_BYTES; n > 0 && ((unsigned char)log[n] & 0xc0) == 0x80; n--)
        ;
    return (int)n;
}

static void bind_trial(sqlite3_stmt *put, int64_t session, const StoreTrial *trial)
{
    sqlite3_bind_int64(put, 1, session);
    bind_text(put, 2, trial->point);
    bind_text(put, 3, trial_status_name[trial->status]);
    if (isfinite(trial->time_ns))
        sqlite3_bind_double(put, 4, trial->time_ns);
    sqlite3_bind_int(put, 5, trial->cut);
    sqlite3_bind_double(put, 6, trial->max_error);
    sqlite3_bind_double(put, 7, trial->spent_s);
    if (trial->log)
        sqlite3_bind_text(put, 8, trial->log, log_bytes(trial->log), SQLITE_TRANSIENT);
    AutoBuf text = buf_new();
    for (int i = 0; i < trial->nsample; i++)
        buf_printf(&text, "%s%.17g", i ? "," : "", trial->sample_ns[i]);
    bind_text(put, 9, text.text);
    if (trial->limit_s > 0)
        sqlite3_bind_double(put, 10, trial->limit_s);
    sqlite3_bind_int64(put, 11, (int64_t)trial->seed);
    AutoBuf measures = buf_new();
    measures_print(&measures, &trial->measures);
    bind_text(put, 12, measures.text);
}

#define INTO_TRIAL                                                                         \
    " INTO trial(session, point, status, time_ns, cut, max_error, spent_s, log, samples,"  \
    " limit_s, seed, measures)"                                                            \
    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"

static bool write_trial(Store *store, const char *sql, int64_t session,
                        const StoreTrial *trial, Diags *diags)
{
    if (trial->outside)
        return true;
    sqlite3_stmt *put = prepare(store, sql);
    if (put)
        bind_trial(put, session, trial);
    int64_t none;
    return run(put, &none) == SQLITE_DONE || fail(store, diags);
}

StoreTrial store_trial(const char *point, const Trial *trial)
{
    return (StoreTrial){.point = point,
                        .status = trial->status,
                        .time_ns = trial->time_ns,
                        .cut = trial->cut,
                        .max_error = trial->max_error,
                        .spent_s = trial->build_s + trial->check_s + trial->timing_s,
                        .limit_s = trial->limit_s,
                        .outside = trial->outside,
                        .log = trial->log,
                        .sample_ns = trial->sample_ns,
                        .nsample = trial->nsample,
                        .measures = trial->measures};
}

bool store_put(Store *store, int64_t session, const StoreTrial *trial, Diags *diags)
{
    return write_trial(store, "INSERT OR REPLACE" INTO_TRIAL, session, trial, diags);
}

bool store_put_again(Store *store, int64_t session, const StoreTrial *trial, Diags *diags)
{
    return write_trial(store,
                       "UPDATE trial SET status = ?3, time_ns = ?4, cut = ?5,"
                       " max_error = ?6, log = ?8, samples = ?9, limit_s = ?10, seed = ?11,"
                       " measures = ?12"
                       " WHERE session = ?1 AND point = ?2",
                       session, trial, diags);
}

bool store_add(Store *store, int64_t session, const StoreTrial *trial, bool *added,
               bool *right, Diags *diags)
{
    bool ok = write_trial(store, "INSERT OR IGNORE" INTO_TRIAL, session, trial, diags);
    *added = ok && sqlite3_changes(store->db) > 0;
    sqlite3_stmt *get =
        prepare(store, "SELECT status = ?3 FROM trial WHERE session = ?1 AND point = ?2");
    if (get) {
        sqlite3_bind_int64(get, 1, session);
        bind_text(get, 2, trial->point);
        bind_text(get, 3, trial_status_name[TRIAL_OK]);
    }
    int64_t is_ok = 0;
    int rc = run(get, &is_ok);
    *right = is_ok != 0;
    return ok && (rc == SQLITE_ROW || fail(store, diags));
}

static int read_samples(const char *text, double sample[TRIAL_SAMPLES])
{
    int n = 0;
    while (text && *text && n < TRIAL_SAMPLES) {
        char *end;
        sample[n++] = strtod(text, &end);
        text = *end == ',' ? end + 1 : NULL;
    }
    return n;
}

static double read_double(sqlite3_stmt *row, int column, double absent)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL
               ? absent
               : sqlite3_column_double(row, column);
}

// Strings and samples live until the next step.
static bool read_trial(sqlite3_stmt *row, StoreTrial *trial, double sample[TRIAL_SAMPLES])
{
    *trial = (StoreTrial){
        .point = (const char *)sqlite3_column_text(row, 0),
        .time_ns = read_double(row, 2, INFINITY),
        .cut = sqlite3_column_int(row, 3),
        .max_error = read_double(row, 4, NAN),
        .spent_s = read_double(row, 5, 0),
        .log = (const char *)sqlite3_column_text(row, 6),
        .sample_ns = sample,
        .nsample = read_samples((const char *)sqlite3_column_text(row, 7), sample),
        .limit_s = read_double(row, 8, 0),
        .seed = (uint64_t)sqlite3_column_int64(row, 9),
    };
    measures_parse(&trial->measures, (const char *)sqlite3_column_text(row, 10));
    return trial->point &&
           trial_status_find((const char *)sqlite3_column_text(row, 1), &trial->status) &&
           (trial->status != TRIAL_OK || trial->time_ns == INFINITY ||
            (trial->time_ns >= 0 && trial->time_ns <= TRIAL_NS_MOST));
}

bool store_each(Store *store, int64_t session, StoreEach *each, void *user, Diags *diags)
{
    sqlite3_stmt *rows = prepare(store, "SELECT point, status, time_ns, cut, max_error, "
                                        "spent_s, log, samples, limit_s, seed, "
                                        "measures"
                                        " FROM trial WHERE session = ?1 ORDER BY id");
    if (!rows)
        return fail(store, diags);
    sqlite3_bind_int64(rows, 1, session);
    StoreTrial trial;
    double sample[TRIAL_SAMPLES];
    bool ok = true;
    int rc;
    while (ok && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        ok = read_trial(rows, &trial, sample);
        if (ok)
            each(user, &trial);
        else
            fail_because(store, diags, "Q004", "the file is damaged: an unreadable trial");
    }
    if (ok && rc != SQLITE_DONE)
        ok = fail(store, diags);
    sqlite3_finalize(rows);
    return ok;
}

// Rigor and the best ------------------------------------------------------------------

const char *const rigor_name[RIGORS] = {"none", "measure", "patient", "exhaustive"};

bool store_put_rigor(Store *store, int64_t session, Rigor rigor, Diags *diags)
{
    sqlite3_stmt *put =
        prepare(store, "UPDATE session SET rigor = max(rigor, ?2) WHERE id = ?1");
    if (put) {
        sqlite3_bind_int64(put, 1, session);
        sqlite3_bind_int(put, 2, (int)rigor);
    }
    int64_t none;
    return run(put, &none) == SQLITE_DONE || fail(store, diags);
}

static Rigor read_rigor(int64_t number)
{
    return number > 0 && number < RIGORS ? (Rigor)number : RIGOR_NONE;
}

static uint64_t read_hash(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? strtoull(text, NULL, 16) : 0;
}

static const char *read_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)

bool store_each_best(Store *store, StoreEachBest *each, void *user, Diags *diags)
{
    // With one min() the other columns are those of the row that has it.
    sqlite3_stmt *rows = prepare(
        store, "SELECT s.id, s.problem, s.problem_hash, s.space_hash, s.fingerprint,"
               " s.device, s.version, s.rigor, s.created, t.point, min(t.time_ns),"
               " (SELECT count(*) FROM trial WHERE session = s.id)"
               " FROM session s JOIN trial t ON t.session = s.id"
               " WHERE t.status = 'ok' AND t.time_ns > 0 AND t.time_ns <= " TEXT_OF(
                   TRIAL_NS_MOST) " GROUP BY s.id ORDER BY s.id");
    int rc = SQLITE_ERROR;
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        StoreBest best = {.key = {.problem = read_text(rows, 1),
                                  .problem_hash = read_hash(rows, 2),
                                  .space_hash = read_hash(rows, 3),
                                  .fingerprint = read_text(rows, 4),
                                  .device = read_text(rows, 5),
                                  .version = read_text(rows, 6)},
                          .session = sqlite3_column_int64(rows, 0),
                          .rigor = read_rigor(sqlite3_column_int64(rows, 7)),
                          .point = read_text(rows, 9),
                          .time_ns = sqlite3_column_double(rows, 10),
                          .trials = sqlite3_column_int64(rows, 11),
                          .when = read_text(rows, 8)};
        each(user, &best);
    }
    bool ok = rc == SQLITE_DONE || fail(store, diags);
    sqlite3_finalize(rows);
    return ok;
}

// What was checked --------------------------------------------------------------------

bool store_put_checked(Store *store, int64_t session, const char *point, TrialStatus status,
                       const char *log, Diags *diags)
{
    sqlite3_stmt *put =
        prepare(store, "INSERT OR REPLACE INTO checked(session, point, status, log)"
                       " VALUES(?1, ?2, ?3, ?4)");
    if (put) {
        sqlite3_bind_int64(put, 1, session);
        bind_text(put, 2, point);
        bind_text(put, 3, trial_status_name[status]);
        if (log)
            sqlite3_bind_text(put, 4, log, log_bytes(log), SQLITE_TRANSIENT);
    }
    int64_t none;
    return run(put, &none) == SQLITE_DONE || fail(store, diags);
}

bool store_each_checked(Store *store, int64_t session, StoreEachChecked *each, void *user,
                        Diags *diags)
{
    sqlite3_stmt *rows =
        prepare(store, "SELECT point, status, log FROM checked WHERE session = ?1");
    int rc = SQLITE_ERROR;
    if (rows)
        sqlite3_bind_int64(rows, 1, session);
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        TrialStatus status;
        if (trial_status_find(read_text(rows, 1), &status)) // else as never checked
            each(user, read_text(rows, 0), status, read_text(rows, 2));
    }
    bool ok = rc == SQLITE_DONE || fail(store, diags);
    sqlite3_finalize(rows);
    return ok;
}

bool store_begin(Store *store, Diags *diags)
{
    return exec(store, "BEGIN IMMEDIATE") || fail(store, diags);
}

bool store_end(Store *store, bool keep, Diags *diags)
{
    if (!keep) {
        exec(store, "ROLLBACK");
        return true;
    }
    if (exec(store, "COMMIT"))
        return true;
    fail(store, diags);
    exec(store, "ROLLBACK");
    return false;
}

bool store_forget(Store *store, int64_t session, Diags *diags)
{
    static const char *const sql[] = {"DELETE FROM trial WHERE session = ?1",
                                      "DELETE FROM checked WHERE session = ?1",
                                      "UPDATE session SET rigor = 0 WHERE id = ?1"};
    for (int i = 0; i < COUNTOF(sql); i++) {
        sqlite3_stmt *forget = prepare(store, sql[i]);
        int64_t none;
        if (forget)
            sqlite3_bind_int64(forget, 1, session);
        if (run(forget, &none) != SQLITE_DONE)
            return fail(store, diags);
    }
    return true;
}

// Ceilings ---------------------------------------------------------------------------

static void bind_ceiling(sqlite3_stmt *statement, const char *fingerprint, const char *what,
                         int64_t bytes)
{
    bind_text(statement, 1, fingerprint);
    bind_text(statement, 2, what);
    sqlite3_bind_int64(statement, 3, bytes);
}

bool store_put_ceiling(Store *store, const char *fingerprint, const char *what,
                       int64_t bytes, double value, Diags *diags)
{
    sqlite3_stmt *put =
        prepare(store, "INSERT OR REPLACE INTO ceiling(fingerprint, what, bytes, value)"
                       " VALUES(?1, ?2, ?3, ?4)");
    if (put) {
        bind_ceiling(put, fingerprint, what, bytes);
        sqlite3_bind_double(put, 4, value);
    }
    int64_t none;
    return run(put, &none) == SQLITE_DONE || fail(store, diags);
}

bool store_get_ceiling(Store *store, const char *fingerprint, const char *what,
                       int64_t bytes, double *value, Diags *diags)
{
    sqlite3_stmt *get = prepare(store, "SELECT value FROM ceiling WHERE fingerprint = ?1"
                                       " AND what = ?2 AND bytes = ?3");
    if (!get)
        return fail(store, diags);
    bind_ceiling(get, fingerprint, what, bytes);
    int rc = sqlite3_step(get);
    if (rc == SQLITE_ROW)
        *value = sqlite3_column_double(get, 0);
    sqlite3_finalize(get);
    return rc == SQLITE_ROW || rc == SQLITE_DONE || fail(store, diags);
}
