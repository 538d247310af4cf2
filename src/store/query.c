// Questions to the store: the list of runs, and a person's own SQL, which cannot change anything.
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "store/internal.h"

static char *text_at(sqlite3_stmt *stmt, int at)
{
    return mem_strdup((const char *)sqlite3_column_text(stmt, at));
}

int store_list(struct store *store, int limit, struct store_row **ret, int *ret_n, struct err *err)
{
    sqlite3_stmt *stmt;
    struct store_row *rows = NULL;
    size_t n = 0, cap = 0;

    if (store_prepare(store, &stmt,
                      "SELECT id, started_real_ns, label, target, engine, workload, status, "
                      "clients, (SELECT count(*) FROM warnings WHERE run_id = runs.id), "
                      "duration_s, tps, latency_p99_us "
                      "FROM runs ORDER BY started_real_ns DESC, id DESC LIMIT ?",
                      "listing the runs", err) < 0)
        return -1;
    sqlite3_bind_int(stmt, 1, limit > 0 ? limit : -1);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        *ARR_PUSH(rows, n, cap) = (struct store_row){
            .id = sqlite3_column_int64(stmt, 0),
            .started_real_ns = sqlite3_column_int64(stmt, 1),
            .label = text_at(stmt, 2),
            .target = text_at(stmt, 3),
            .engine = text_at(stmt, 4),
            .workload = text_at(stmt, 5),
            .status = text_at(stmt, 6),
            .clients = sqlite3_column_int64(stmt, 7),
            .warnings = sqlite3_column_int64(stmt, 8),
            .duration_s = sqlite3_column_double(stmt, 9),
            .tps = sqlite3_column_double(stmt, 10),
            .p99_us = sqlite3_column_double(stmt, 11),
        };
    if (sqlite3_finalize(stmt) != SQLITE_OK) {
        store_rows_free(rows, (int)n);
        return store_fail(store, "listing the runs", err);
    }
    *ret = rows;
    *ret_n = (int)n;
    return 0;
}

void store_rows_free(struct store_row *rows, int n)
{
    for (int i = 0; i < n; i++) {
        free(rows[i].label);
        free(rows[i].target);
        free(rows[i].engine);
        free(rows[i].workload);
        free(rows[i].status);
    }
    free(rows);
}

// Reading is allowed, with functions and recursion; so are pragmas that only tell (no argument).
static int authorize(void *arg, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)arg, (void)a, (void)c, (void)d;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_PRAGMA:
        return b ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

static int sql_rows(struct store *store, sqlite3_stmt *stmt, store_row_fn *fn, void *arg,
                    struct err *err)
{
    int n = sqlite3_column_count(stmt), rc;
    const char **names = mem_calloc((size_t)n, sizeof(*names));
    const char **values = mem_calloc((size_t)n, sizeof(*values));
    int *types = mem_calloc((size_t)n, sizeof(*types));

    for (int i = 0; i < n; i++)
        names[i] = sqlite3_column_name(stmt, i);
    fn(arg, n, names, NULL, NULL);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (int i = 0; i < n; i++) {
            types[i] = sqlite3_column_type(stmt, i);
            values[i] = (const char *)sqlite3_column_text(stmt, i);
        }
        fn(arg, n, names, values, types);
    }
    free(names);
    free(values);
    free(types);
    return rc == SQLITE_DONE ? 0 : err_set(err, ERR_FAILED, "%s", sqlite3_errmsg(store->db));
}

static int only_reading(const struct store *store, struct err *err)
{
    return err_set(err, ERR_USAGE,
                   "only reading is allowed here: give a SELECT (to change the file, open %s with "
                   "sqlite3)",
                   store->path);
}

int store_sql(struct store *store, const char *sql, store_row_fn *fn, void *arg, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    const char *rest;
    int rc;

    // Used once before, for its first use declares a table, as the authorizer sees it: the table
    // watch is read with it.
    sqlite3_exec(store->db, "SELECT 1 FROM json_each('[]')", NULL, NULL, NULL);
    sqlite3_set_authorizer(store->db, authorize, NULL);
    rc = sqlite3_prepare_v2(store->db, sql, -1, &stmt, &rest);
    if (rc == SQLITE_AUTH)
        rc = only_reading(store, err);
    else if (rc != SQLITE_OK)
        rc = err_set(err, ERR_USAGE, "%s (the tables are described in docs/store.md)",
                     sqlite3_errmsg(store->db));
    else if (stmt && !sqlite3_stmt_readonly(stmt)) // VACUUM, which asks nobody
        rc = only_reading(store, err);
    else if (!stmt)
        rc = err_set(err, ERR_USAGE, "the query is empty: give a SELECT");
    else if (rest[strspn(rest, " \t\r\n;")])
        rc = err_set(err, ERR_USAGE, "one query at a time: more text follows the first");
    else
        rc = sql_rows(store, stmt, fn, arg, err);
    sqlite3_finalize(stmt);
    sqlite3_set_authorizer(store->db, NULL, NULL);
    return rc;
}
