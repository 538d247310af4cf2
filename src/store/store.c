// Opening the results file: paths, versions, migrations, the proof that it can be written.
#include "store/store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/sudo.h"
#include "store/internal.h"

extern const char store_schema_sql[];

// migrations[v] leads from version v to v + 1; version 0 is an empty file.
static const char *const migrations[] = {
    store_schema_sql,
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

// Migrates, and proves before any load that a result could be kept: setting the application id
// writes the first page and its journal for real, which a read-only folder or a full disk refuses.
// The version is read inside the transaction, since two first runs at once may both find an empty
// file.
static int store_ready_to_write(struct store *store, struct err *err)
{
    static const char doing[] = "checking that it can be written";
    char mark[64];
    int64_t version;

    snprintf(mark, sizeof(mark), "PRAGMA application_id = %d", STORE_APPLICATION_ID);
    if (store_exec(store, "BEGIN IMMEDIATE", doing, err) < 0)
        return -1;
    if (store_check_kind(store, &version, err) < 0 || store_migrate(store, version, err) < 0 ||
        store_exec(store, mark, doing, err) < 0 || store_exec(store, "COMMIT", doing, err) < 0) {
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
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

static bool store_is_in_place(const struct store *store)
{
    struct stat st;

    return stat(store->path, &st) == 0 && st.st_dev == store->dev && st.st_ino == store->ino;
}

static int store_open_file(struct store *store, struct err *err)
{
    struct stat st;
    int64_t version;

    bool existed = stat(store->path, &st) == 0;
    if (store->mode == STORE_READ && !existed)
        return err_set(err, ERR_USAGE,
                       "no results file %s: run `prony run` first, or name one with --store FILE",
                       store->path);
    int flags = store->mode == STORE_READ ? SQLITE_OPEN_READONLY
                                          : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(store->path, &store->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return err_set(err, ERR_USAGE,
                       "results file %s cannot be %s: %s; name another with --store FILE",
                       store->path, existed ? "opened" : "made",
                       store->db ? sqlite3_errmsg(store->db) : "out of memory");
    store->made = !existed;
    if (stat(store->path, &st) == 0) {
        store->dev = st.st_dev;
        store->ino = st.st_ino;
    }
    sqlite3_busy_timeout(store->db, 10000);
    if (store->mode == STORE_READ && store_is_half_written(store))
        store_recover(store->path);
    if (store_check_kind(store, &version, err) < 0)
        return -1;
    if (store->mode == STORE_READ)
        return 0;
    if (store_ready_to_write(store, err) < 0) {
        if (err->kind == ERR_USAGE)
            return -1;
        char *why = mem_strdup(err->text);
        err_set(err, ERR_USAGE, "%s; name another with --store FILE", why);
        free(why);
        return -1;
    }
    if (store->made)
        sudo_give_path(store->path);
    sqlite3_exec(store->db, "PRAGMA foreign_keys = ON", NULL, NULL, NULL);
    return 0;
}

// A file that we made for nothing goes again, unless another prony has put something into it. One
// that has it open for later finds out in store_begin.
static void store_close_file(struct store *store)
{
    if (store->made && sqlite3_exec(store->db, "BEGIN EXCLUSIVE", NULL, NULL, NULL) == SQLITE_OK) {
        bool is_empty = store_pragma(store, "SELECT count(*) FROM sqlite_schema") == 0 ||
                        store_pragma(store, "SELECT count(*) FROM runs") == 0;
        if (is_empty && store_is_in_place(store))
            unlink(store->path);
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    store->made = false;
    sqlite3_close(store->db);
    store->db = NULL;
}

int store_open(struct store **ret, const char *path, enum store_mode mode, struct err *err)
{
    const char *from_environment = getenv("PRONY_STORE");
    struct store *store = mem_calloc(1, sizeof(*store));

    if (!path)
        path = from_environment && *from_environment ? from_environment : "prony.db";
    store->path = mem_strdup(path);
    store->mode = mode;
    if (strcmp(path, ":memory:") == 0) { // a word of SQLite's, not a file: the result would be lost
        store_close(store);
        return err_set(err, ERR_USAGE, "--store %s: names no file that could be kept", path);
    }
    if (store_open_file(store, err) < 0) {
        store_close(store);
        return -1;
    }
    *ret = store;
    return 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    store_close_file(store);
    free(store->path);
    free(store);
}

int store_begin(struct store *store, struct err *err)
{
    static const char doing[] = "beginning to write";

    assert(store->mode == STORE_WRITE);
    for (int tries = 0; tries < 3; tries++) {
        if (store_exec(store, "BEGIN IMMEDIATE", doing, err) < 0)
            return -1;
        if (store_is_in_place(store))
            return 0;
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
        store_close_file(store);
        if (store_open_file(store, err) < 0)
            return -1;
    }
    return err_set(err, ERR_FAILED, "results file %s: is removed again and again", store->path);
}

const char *store_path(const struct store *store)
{
    return store->path;
}
