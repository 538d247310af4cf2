// Tables and their filling: prepared inserts in one transaction.
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "db/sqlite.h"

// Rows that ANALYZE reads per index: enough for the planner, and no second pass over the table.
#define ANALYSIS_LIMIT "1000"

#define CHAR_WIDTH_MAX 10000

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
    struct db_column columns[SQLITE_COLUMNS_MAX];
    struct db_table copy = *table;
    struct str sql = STR_INIT;

    assert(table->n_columns <= SQLITE_COLUMNS_MAX);
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

// N of "char(N)", 0 for any other type. Other engines fill such a column with blanks; SQLite keeps
// what it is given, and rows of a few bytes instead of a hundred would be another benchmark.
static uint32_t char_width(const char *type)
{
    const char *digits = type + 5;
    uint32_t width = 0;

    if (strncasecmp(type, "char(", 5) != 0)
        return 0;
    for (; *digits >= '0' && *digits <= '9' && width < CHAR_WIDTH_MAX; digits++)
        width = 10 * width + (uint32_t)(*digits - '0');
    return *digits == ')' && width <= CHAR_WIDTH_MAX ? width : 0;
}

// Binds the text with the blanks that its column's type asks for. Width counts bytes: what is
// loaded is ASCII.
static int bind_padded(struct sqlite_session *session, int column, const struct db_value *value)
{
    struct str *text = &session->text;
    uint32_t width = session->bulk_widths[column];

    assert(value->type == DB_TEXT && value->text_len < width);
    str_clear(text);
    str_reserve(text, width);
    str_addn(text, value->s, value->text_len);
    memset(text->buf + text->len, ' ', width - value->text_len);
    return sqlite3_bind_text(session->bulk, column + 1, text->buf, (int)width, SQLITE_TRANSIENT);
}

static int bind_row(struct sqlite_session *session, const struct db_value *values)
{
    int rc = sqlite_bind(session->bulk, values, session->bulk_columns);

    for (int i = 0; i < session->bulk_columns && rc == SQLITE_OK; i++)
        if (values[i].type == DB_TEXT && values[i].text_len < session->bulk_widths[i])
            rc = bind_padded(session, i, &values[i]);
    return rc;
}

enum db_class sqlite_bulk_begin(struct db_session *base, const struct db_table *table,
                                struct db_result *result)
{
    struct sqlite_session *session = (struct sqlite_session *)base;
    struct str sql = STR_INIT;

    assert(!session->bulk && table->n_columns <= SQLITE_COLUMNS_MAX);
    if (sqlite_query(base, "BEGIN IMMEDIATE", false, NULL, NULL, result) != DB_OK)
        return result->class;
    str_addf(&sql, "INSERT INTO %s VALUES (", table->name);
    for (int i = 0; i < table->n_columns; i++) {
        str_add(&sql, i ? ",?" : "?");
        session->bulk_widths[i] = char_width(table->columns[i].type);
    }
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
    int rc = bind_row(session, values);
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
