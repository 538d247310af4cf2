// Opening the results file: paths, versions, migrations, the proof that it can be written.
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/sudo.h"
#include "store/internal.h"

#define TRIAL_PAGES 40 // an empty results file has about so many

extern const char store_schema_sql[];

// migrations[v] leads from version v to v + 1; version 0 is an empty file.
static const char *const migrations[] = {
    store_schema_sql,
    // What was watched during a run, and what held it back.
    "CREATE TABLE watch ("
    "    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,"
    "    position INTEGER NOT NULL,"
    "    subject TEXT NOT NULL,"
    "    name TEXT NOT NULL,"
    "    seconds TEXT NOT NULL,"
    "    PRIMARY KEY (run_id, position)"
    ") WITHOUT ROWID;"
    "ALTER TABLE runs ADD COLUMN limit_id TEXT;"
    "ALTER TABLE runs ADD COLUMN limit_text TEXT;",
    // Runs that belong together, and sets of runs to compare with.
    "ALTER TABLE runs ADD COLUMN block INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE baselines ("
    "    name TEXT NOT NULL,"
    "    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,"
    "    PRIMARY KEY (name, run_id)"
    ") WITHOUT ROWID;",
};
_Static_assert(ARR_LEN(migrations) == STORE_VERSION, "one migration per version");

int store_fail(struct store *store, const char *doing, struct err *err)
{
    return err_set(err, ERR_FAILED, "results file %s: %s: %s", store->path, doing,
                   sqlite3_errmsg(store->db));
}

int store_exec(struct store *store, const char *sql, const char *doing, struct err *err)
{
    if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return store_fail(store, doing, err);
    return 0;
}

int store_prepare(struct store *store, sqlite3_stmt **ret, const char *sql, const char *doing,
                  struct err *err)
{
    if (sqlite3_prepare_v2(store->db, sql, -1, ret, NULL) != SQLITE_OK)
        return store_fail(store, doing, err);
    return 0;
}

static int64_t store_pragma(struct store *store, const char *sql)
{
    sqlite3_stmt *stmt;
    int64_t value = -1;

    if (sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return -1;
    if (sqlite3_step(stmt) == SQLITE_ROW)
        value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return value;
}

// A file that another program made is left alone, whatever its tables.
static int store_check_kind(struct store *store, int64_t *ret_version, struct err *err)
{
    int64_t version = store_pragma(store, "PRAGMA user_version");
    int64_t application = store_pragma(store, "PRAGMA application_id");
    int64_t tables = store_pragma(store, "SELECT count(*) FROM sqlite_schema");

    if (version < 0 || application < 0 || tables < 0)
        return err_set(err, ERR_USAGE,
                       "results file %s cannot be read: %s; name another with --store FILE",
                       store->path, sqlite3_errmsg(store->db));
    if (tables > 0 && application != STORE_APPLICATION_ID)
        return err_set(err, ERR_USAGE,
                       "%s is a database that prony did not make; name another results file "
                       "with --store FILE",
                       store->path);
    if (version > STORE_VERSION)
        return err_set(err, ERR_USAGE,
                       "results file %s has version %lld, this prony knows %d: use a newer prony, "
                       "or another file with --store FILE",
                       store->path, (long long)version, STORE_VERSION);
    if (version == 0 && store->mode == STORE_READ)
        return err_set(err, ERR_USAGE,
                       "results file %s is empty: run `prony run` first, or name another with "
                       "--store FILE",
                       store->path);
    *ret_version = version;
    return 0;
}

// Before anything is locked for writing. The transaction makes one moment of it: while another
// prony makes the file, its tables may be there when the mark that says whose they are was not yet.
static int store_check_kind_at_one_moment(struct store *store, struct err *err)
{
    sqlite3_exec(store->db, "BEGIN", NULL, NULL, NULL);
    int r = store_check_kind(store, &store->version, err);
    sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL);
    return r;
}

static int store_migrate(struct store *store, int64_t version, struct err *err)
{
    assert(version <= STORE_VERSION);
    for (; version < STORE_VERSION; version++) {
        char *finish = mem_printf("PRAGMA user_version = %lld", (long long)version + 1);
        int failed = store_exec(store, migrations[version], "bringing it to a new version", err) ||
                     store_exec(store, finish, "bringing it to a new version", err);
        free(finish);
        if (failed)
            return -1;
    }
    return 0;
}

// What a prony that was killed while it wrote left half done is undone by whoever opens the file
// for writing; one that only reads would be refused. Where we may not write, the refusal stands.
static void store_recover(const char *path)
{
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ==
        SQLITE_OK) {
        sqlite3_busy_timeout(db, 10000);
        sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    }
    sqlite3_close(db);
}

static bool store_is_half_written(struct store *store)
{
    return sqlite3_exec(store->db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) ==
               SQLITE_READONLY &&
           sqlite3_extended_errcode(store->db) == SQLITE_READONLY_ROLLBACK;
}

// Whether the path still names the file that we have open.
static bool store_is_in_place(struct store *store)
{
    int has_moved = 0;

    return sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved) ==
               SQLITE_OK &&
           !has_moved;
}

static int store_open_file(struct store *store, int flags, struct err *err)
{
    if (sqlite3_open_v2(store->path, &store->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return err_set(err, ERR_USAGE,
                       "results file %s cannot be %s: %s; name another with --store FILE",
                       store->path, flags & SQLITE_OPEN_CREATE ? "made" : "opened",
                       store->db ? sqlite3_errmsg(store->db) : "out of memory");
    sqlite3_busy_timeout(store->db, 10000);
    if (store->mode == STORE_READ && store_is_half_written(store))
        store_recover(store->path);
    if (store_check_kind_at_one_moment(store, err) < 0)
        return -1;
    sqlite3_exec(store->db, "PRAGMA foreign_keys = ON", NULL, NULL, NULL);
    return 0;
}

static void store_close_file(struct store *store)
{
    sqlite3_close(store->db);
    store->db = NULL;
}

// Opens the file at the path, or makes it.
static int store_open_or_make(struct store *store, struct err *err)
{
    bool exists = access(store->path, F_OK) == 0;

    if (store_open_file(store, SQLITE_OPEN_READWRITE | (exists ? 0 : SQLITE_OPEN_CREATE), err) < 0)
        return -1;
    if (!exists)
        sudo_give_path(store->path);
    return 0;
}

// Waits for the lock on the file that the path names now.
static int store_lock(struct store *store, const char *doing, struct err *err)
{
    for (int tries = 0; tries < 3; tries++) {
        if (!store->db && store_open_or_make(store, err) < 0)
            return -1;
        if (store_exec(store, "BEGIN IMMEDIATE", doing, err) < 0)
            return -1;
        if (store_is_in_place(store))
            return 0;
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
        store_close_file(store);
    }
    return err_set(err, ERR_FAILED, "results file %s: is removed again and again", store->path);
}

// The version is read under the lock, since two first runs at once may both find an empty file.
// Setting the application id, which says whose file it is, writes the first page.
static int store_begin_doing(struct store *store, const char *doing, struct err *err)
{
    char mark[64];
    int64_t version;

    assert(store->mode == STORE_WRITE);
    snprintf(mark, sizeof(mark), "PRAGMA application_id = %d", STORE_APPLICATION_ID);
    if (store_lock(store, doing, err) < 0)
        return -1;
    if (store_check_kind(store, &version, err) < 0 || store_migrate(store, version, err) < 0 ||
        store_exec(store, mark, doing, err) < 0) {
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    return 0;
}

int store_begin(struct store *store, struct err *err)
{
    return store_begin_doing(store, "beginning to write", err);
}

// Proves that the open file can be written: the first page and its journal are written for real,
// which a read-only folder or a full disk refuses.
static int store_prove_writable(struct store *store, struct err *err)
{
    static const char doing[] = "checking that it can be written";

    if (store_begin_doing(store, doing, err) < 0)
        return -1;
    if (store_exec(store, "COMMIT", doing, err) < 0) {
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    return 0;
}

int store_make(struct store *store, struct err *err)
{
    return store->db ? 0 : store_prove_writable(store, err);
}

// Takes the room of a new results file, and a lock as SQLite does.
static int try_file(int fd)
{
    static const char page[4096] = "";
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

    errno = ENOSPC; // what a write that is cut short does not say
    for (int i = 0; i < TRIAL_PAGES; i++)
        if (write(fd, page, sizeof(page)) != sizeof(page))
            return -1;
    return fcntl(fd, F_SETLK, &lock);
}

// Proves that a missing file could be made, with another beside it that has no name any more. The
// file itself is made with the first result: to remove one that got none would take the journal
// away from others who use it.
static int store_prove_makeable(struct store *store, struct err *err)
{
    const char *slash = strrchr(store->path, '/');
    int dir_len = slash ? (int)(slash + 1 - store->path) : 0;
    char *trial = mem_printf("%.*s.prony-XXXXXX", dir_len, store->path);
    int rc = 0;

    int fd = mkostemp(trial, O_CLOEXEC);
    if (fd < 0 || unlink(trial) < 0 || try_file(fd) < 0)
        rc = err_set(err, ERR_USAGE,
                     "results file %s cannot be made: %s; name another with --store FILE",
                     store->path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(trial);
    return rc;
}

// Before any load. Whatever refuses here, it was the wrong file to name.
static int store_open_to_write(struct store *store, struct err *err)
{
    bool exists = access(store->path, F_OK) == 0;

    if (exists ? store_open_file(store, SQLITE_OPEN_READWRITE, err) == 0 &&
                     store_prove_writable(store, err) == 0
               : store_prove_makeable(store, err) == 0)
        return 0;
    if (err->kind == ERR_USAGE)
        return -1;
    char *why = mem_strdup(err->text);
    err_set(err, ERR_USAGE, "%s; name another with --store FILE", why);
    free(why);
    return -1;
}

static int store_open_to_read(struct store *store, struct err *err)
{
    if (access(store->path, F_OK) < 0)
        return err_set(err, ERR_USAGE,
                       "no results file %s: run `prony run` first, or name one with --store FILE",
                       store->path);
    if (store_open_file(store, SQLITE_OPEN_READONLY, err) < 0)
        return -1;
    if (store->version == STORE_VERSION)
        return 0;
    // An older one is brought forward first, so that what reads knows one version only.
    int64_t version = store->version;
    store_close_file(store);
    store->mode = STORE_WRITE;
    int rc = store_open_to_write(store, err);
    store_close_file(store);
    store->mode = STORE_READ;
    if (rc < 0)
        return err_prefix(err, "version %lld must be brought to version %d", (long long)version,
                          STORE_VERSION);
    return store_open_file(store, SQLITE_OPEN_READONLY, err);
}

int store_open(struct store **ret, const char *path, enum store_mode mode, struct err *err)
{
    const char *from_environment = getenv("PRONY_STORE");
    struct store *store = mem_calloc(1, sizeof(*store));
    int r;

    if (!path)
        path = from_environment && *from_environment ? from_environment : "prony.db";
    store->path = mem_strdup(path);
    store->mode = mode;
    if (strcmp(path, ":memory:") == 0) // a word of SQLite's, not a file: the result would be lost
        r = err_set(err, ERR_USAGE, "--store %s: names no file that could be kept", path);
    else
        r = mode == STORE_WRITE ? store_open_to_write(store, err) : store_open_to_read(store, err);
    if (r < 0)
        store_close(store);
    else
        *ret = store;
    return r;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    store_close_file(store);
    free(store->path);
    free(store);
}

const char *store_path(const struct store *store)
{
    return store->path;
}
