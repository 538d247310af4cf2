// A run as a file of its own, and back. The file is a store with one run, so whatever reads a store
// reads it. Rows are copied by SQL between the two databases; the run gets a new number where it
// lands.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/internal.h"

// Every table whose rows belong to a run by run_id.
static const char *const part_tables[] = {
    "series",   "statements", "slowest",  "clients",     "outages", "errors",
    "warnings", "options",    "counters", "environment", "watch",
};

// The columns of a table but the first (id or run_id), joined by commas.
static int column_list(struct store *store, const char *table, struct str *out, struct err *err)
{
    char *sql = mem_printf("SELECT name FROM pragma_table_info('%s') WHERE cid > 0", table);
    sqlite3_stmt *stmt;
    int rc = store_prepare(store, &stmt, sql, "copying a run", err);

    free(sql);
    if (rc < 0)
        return -1;
    while (sqlite3_step(stmt) == SQLITE_ROW)
        str_addf(out, "%s%s", out->len ? ", " : "", (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    return 0;
}

// Copies run `id` of the attached database `other` into the store's own.
static int copy_run(struct store *store, int64_t id, int64_t *ret_id, struct err *err)
{
    struct str columns = STR_INIT, sql = STR_INIT;
    int rc = column_list(store, "runs", &columns, err);

    if (rc == 0) {
        str_addf(&sql, "INSERT INTO main.runs (%s) SELECT %s FROM other.runs WHERE id = %lld",
                 columns.buf, columns.buf, (long long)id);
        rc = store_exec(store, sql.buf, "copying a run", err);
        *ret_id = sqlite3_last_insert_rowid(store->db);
    }
    for (size_t i = 0; rc == 0 && i < ARR_LEN(part_tables); i++) {
        str_clear(&columns);
        str_clear(&sql);
        rc = column_list(store, part_tables[i], &columns, err);
        if (rc < 0)
            break;
        str_addf(&sql,
                 "INSERT INTO main.%s (run_id, %s) SELECT %lld, %s FROM other.%s "
                 "WHERE run_id = %lld",
                 part_tables[i], columns.buf, (long long)*ret_id, columns.buf, part_tables[i],
                 (long long)id);
        rc = store_exec(store, sql.buf, "copying a run", err);
    }
    str_release(&columns);
    str_release(&sql);
    return rc;
}

static int attach(struct store *store, const char *path, struct err *err)
{
    sqlite3_stmt *stmt;

    if (store_prepare(store, &stmt, "ATTACH ? AS other", "opening the other file", err) < 0)
        return -1;
    sqlite3_bind_text(stmt, 1, path, -1, SQLITE_STATIC);
    int rc =
        sqlite3_step(stmt) == SQLITE_DONE ? 0 : store_fail(store, "opening the other file", err);
    sqlite3_finalize(stmt);
    return rc;
}

// Copies one run from the file at `from` into `to`, in one transaction.
static int transfer(struct store *to, const char *from, int64_t id, int64_t *ret_id,
                    struct err *err)
{
    if (attach(to, from, err) < 0)
        return -1;
    int rc = store_exec(to, "BEGIN IMMEDIATE", "copying a run", err);
    if (rc == 0 &&
        (copy_run(to, id, ret_id, err) < 0 || store_exec(to, "COMMIT", "copying a run", err) < 0)) {
        sqlite3_exec(to->db, "ROLLBACK", NULL, NULL, NULL);
        rc = -1;
    }
    sqlite3_exec(to->db, "DETACH other", NULL, NULL, NULL);
    return rc;
}

int store_export(struct store *store, const char *which, const char *path, struct err *err)
{
    struct store *to;
    struct stat st;
    int64_t id = 0, new_id = 0;

    if (store_find(store, which, &id, err) < 0)
        return -1;
    if (stat(path, &st) == 0)
        return err_set(err, ERR_USAGE, "%s exists already: name a new file with -o FILE", path);
    if (store_open(&to, path, STORE_WRITE, err) < 0)
        return -1;
    int rc = store_make(to, err) < 0 || transfer(to, store->path, id, &new_id, err) < 0 ? -1 : 0;
    store_close(to);
    if (rc < 0)
        unlink(path);
    return rc;
}

// The one run of an exported file.
static int only_run(struct store *from, int64_t *ret_id, char **ret_uuid, struct err *err)
{
    sqlite3_stmt *stmt;
    int n = 0;

    if (store_prepare(from, &stmt, "SELECT id, uuid FROM runs", "reading it", err) < 0)
        return -1;
    while (sqlite3_step(stmt) == SQLITE_ROW && n++ == 0) {
        *ret_id = sqlite3_column_int64(stmt, 0);
        *ret_uuid = mem_strdup((const char *)sqlite3_column_text(stmt, 1));
    }
    sqlite3_finalize(stmt);
    if (n == 1)
        return 0;
    free(*ret_uuid);
    *ret_uuid = NULL;
    return err_set(err, ERR_USAGE, "%s holds %s, not one exported run: make it with `prony export`",
                   from->path, n ? "several runs" : "no run");
}

int store_import(struct store *store, const char *path, int64_t *ret_id, bool *ret_known,
                 struct err *err)
{
    struct store *from;
    char *uuid = NULL;
    int64_t id = 0;

    // Opened by itself first: its kind and version are checked, and words name the right file.
    if (store_open(&from, path, STORE_READ, err) < 0)
        return -1;
    int rc = only_run(from, &id, &uuid, err);
    store_close(from);
    if (rc < 0 || store_make(store, err) < 0) {
        free(uuid);
        return -1;
    }
    struct err ignored = ERR_INIT;
    *ret_known = store_find(store, uuid, ret_id, &ignored) == 0;
    if (!*ret_known)
        rc = transfer(store, path, id, ret_id, err);
    free(uuid);
    return rc;
}
