// Tables and their filling: prepared inserts in one transaction.
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "db/sqlite.h"

// Rows that ANALYZE reads per index: enough for the planner, and no second pass over the table.
#define ANALYSIS_LIMIT "1000"

static bool is_int_type(const char *type)
{
    return strcasecmp(type, "int") == 0 || strcasecmp(type, "integer") == 0 ||
           strcasecmp(type, "bigint") == 0;
}

// A key of one whole-number column is declared INTEGER, which makes it the table's own key (the
// rowid): with any other name SQLite would keep a second tree from key to rowid.
enum db_class sqlite_create_table(struct db_session *base, const struct db_table *table,
                                  bool with_key, struct db_result *result)
{
    struct db_column columns[64];
    struct db_table copy = *table;
    struct str sql = STR_INIT;

    assert(table->n_columns <= (int)(sizeof(columns) / sizeof(columns[0])));
    memcpy(columns, table->columns, (size_t)table->n_columns * sizeof(columns[0]));
    copy.columns = columns;
    for (int i = 0; with_key && table->primary_key && i < table->n_columns; i++)
        if (strcasecmp(columns[i].name, table->primary_key) == 0 && is_int_type(columns[i].type))
            columns[i].type = "integer";
    db_create_table_sql(&copy, with_key, "", &sql);
    enum db_class class = sqlite_query(base, sql.buf, false, NULL, NULL, result);
    str_release(&sql);
    return class;
}

// Undoes the load after a failure whose class and text stand in result.
static enum db_class abandon(struct sqlite_session *session, struct db_result *result)
{
    sqlite3_finalize(session->bulk);
    session->bulk = NULL;
    if (!sqlite3_get_autocommit(session->db))
        sqlite3_exec(session->db, "ROLLBACK", NULL, NULL, NULL);
    result->in_transaction = !sqlite3_get_autocommit(session->db);
    return result->class;
}

enum db_class sqlite_bulk_begin(struct db_session *base, const struct db_table *table,
                                struct db_result *result)
{
    struct sqlite_session *session = (struct sqlite_session *)base;
    struct str sql = STR_INIT;

    assert(!session->bulk);
    if (sqlite_query(base, "BEGIN IMMEDIATE", false, NULL, NULL, result) != DB_OK)
        return result->class;
    str_addf(&sql, "INSERT INTO %s VALUES (", table->name);
    for (int i = 0; i < table->n_columns; i++)
        str_add(&sql, i ? ",?" : "?");
    str_addc(&sql, ')');
    int rc = sqlite3_prepare_v3(session->db, sql.buf, -1, SQLITE_PREPARE_PERSISTENT, &session->bulk,
                                NULL);
    str_release(&sql);
    if (rc != SQLITE_OK) {
        sqlite_fail(session, rc, result);
        return abandon(session, result);
    }
    session->bulk_columns = table->n_columns;
    session->bulk_rows = 0;
    return DB_OK;
}

enum db_class sqlite_bulk_row(struct db_session *base, const struct db_value *values,
                              struct db_result *result)
{
    struct sqlite_session *session = (struct sqlite_session *)base;

    assert(session->bulk);
    int rc = sqlite_bind(session->bulk, values, session->bulk_columns);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(session->bulk);
    if (rc != SQLITE_DONE) {
        sqlite_fail(session, rc, result);
        return abandon(session, result);
    }
    sqlite3_reset(session->bulk);
    session->bulk_rows++;
    result->in_transaction = true;
    return DB_OK;
}

enum db_class sqlite_bulk_end(struct db_session *base, struct db_result *result)
{
    struct sqlite_session *session = (struct sqlite_session *)base;

    assert(session->bulk);
    sqlite3_finalize(session->bulk);
    session->bulk = NULL;
    if (sqlite_query(base, "COMMIT", false, NULL, NULL, result) != DB_OK)
        return abandon(session, result);
    result->rows = session->bulk_rows;
    return DB_OK;
}

// The planner's statistics; and the load leaves the write-ahead log, where there is one, so that
// the run does not begin with its checkpoint.
enum db_class sqlite_settle_table(struct db_session *base, const struct db_table *table,
                                  struct db_result *result)
{
    struct str sql = STR_INIT;

    str_addf(&sql,
             "PRAGMA analysis_limit=" ANALYSIS_LIMIT "; ANALYZE %s; "
             "PRAGMA analysis_limit=0; PRAGMA wal_checkpoint(TRUNCATE)",
             table->name);
    enum db_class class = sqlite_query(base, sql.buf, false, NULL, NULL, result);
    str_release(&sql);
    return class;
}
