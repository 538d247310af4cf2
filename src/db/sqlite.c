// SQLite through its library: one connection per session, statements kept by index.
//
// Protocols: simple puts the parameters into the text and compiles it each time; extended compiles
// each time and binds; prepared compiles once per session.
#include "db/sqlite.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define PUBLISH_EVERY 64 // calls

static struct sqlite_session *session_of(struct db_session *base)
{
    return (struct sqlite_session *)base;
}

// ---- sessions

static enum db_class sqlite_connect(struct db_session *base, struct db_result *result)
{
    struct sqlite_session *session = session_of(base);
    struct sqlite_target *target = (struct sqlite_target *)base->target;
    struct err err = ERR_INIT;

    str_init(&session->text);
    str_init(&session->row.bytes);
    sqlite_busy_init(&session->busy, target, base->client, target->base.stream);
    if (sqlite_connect_file(session, &err) < 0) {
        int rc = session->db ? sqlite3_extended_errcode(session->db) : SQLITE_NOMEM;
        int primary = rc & 0xff;
        if (primary == SQLITE_OK || primary == SQLITE_ROW || primary == SQLITE_DONE)
            return db_fail(result, DB_OTHER, "", "%s", err.text); // a pragma that did not take
        enum db_class class = sqlite_fail(session, rc, result);
        return db_fail(result, class == DB_LOST ? DB_UNAVAILABLE : class, result->native, "%s",
                       err.text);
    }
    session->n_handles = base->target->options.n_statements;
    session->handles = mem_calloc((size_t)session->n_handles, sizeof(*session->handles));
    pthread_mutex_lock(&target->lock);
    session->next = target->sessions;
    session->link = &target->sessions;
    if (session->next)
        session->next->link = &session->next;
    target->sessions = session;
    pthread_mutex_unlock(&target->lock);
    return DB_OK;
}

static void leave_target(struct sqlite_session *session)
{
    struct sqlite_target *target = (struct sqlite_target *)session->base.target;

    sqlite_publish(session);
    pthread_mutex_lock(&target->lock);
    *session->link = session->next;
    if (session->next)
        session->next->link = session->link;
    for (int i = 0; i < SQLITE_COUNTERS; i++)
        target->retired[i] += session->counters[i];
    pthread_mutex_unlock(&target->lock);
}

static void sqlite_disconnect(struct db_session *base)
{
    struct sqlite_session *session = session_of(base);

    if (session->link)
        leave_target(session);
    for (int i = 0; i < session->n_handles; i++)
        sqlite3_finalize(session->handles[i]);
    free(session->handles);
    sqlite3_finalize(session->bulk);
    int rc = sqlite3_close(session->db); // rolls back what is open
    assert(rc == SQLITE_OK);
    (void)rc;
    str_release(&session->text);
    str_release(&session->row.bytes);
    free(session->row.values);
    free(session->row.names);
    free(session->row.texts);
}

static void sqlite_cancel(struct db_session *base)
{
    struct sqlite_session *session = session_of(base);

    atomic_store(&session->busy.cancelled, true); // while waiting for a lock
    sqlite3_interrupt(session->db);               // while working
}

// ---- rows

static void row_reserve(struct sqlite_row *row, int n)
{
    if (n <= row->cap)
        return;
    row->values = mem_resize(row->values, (size_t)n, sizeof(*row->values));
    row->names = mem_resize(row->names, (size_t)n, sizeof(*row->names));
    row->texts = mem_resize(row->texts, (size_t)n, sizeof(*row->texts));
    row->cap = n;
}

static size_t keep_bytes(struct sqlite_row *row, const char *text, size_t len)
{
    size_t offset = row->bytes.len;

    str_addn(&row->bytes, text ? text : "", len);
    str_addc(&row->bytes, '\0');
    return offset;
}

// Copies the row the statement stands on. Memory grows with the largest row and is kept.
static void keep_row(struct sqlite_row *row, sqlite3_stmt *stmt)
{
    int n = sqlite3_column_count(stmt);

    row_reserve(row, n);
    str_clear(&row->bytes);
    row->n = n;
    for (int i = 0; i < n; i++) {
        const char *name = sqlite3_column_name(stmt, i);
        struct db_value *value = &row->values[i];
        row->names[i] = keep_bytes(row, name, name ? strlen(name) : 0);
        switch (sqlite3_column_type(stmt, i)) {
        case SQLITE_INTEGER:
            *value = (struct db_value){.type = DB_INT, .i = sqlite3_column_int64(stmt, i)};
            break;
        case SQLITE_FLOAT:
            *value = (struct db_value){.type = DB_DOUBLE, .d = sqlite3_column_double(stmt, i)};
            break;
        case SQLITE_NULL:
            *value = (struct db_value){.type = DB_NULL};
            break;
        default: { // text; a blob is given as its bytes
            const void *bytes = sqlite3_column_blob(stmt, i);
            size_t len = (size_t)sqlite3_column_bytes(stmt, i);
            row->texts[i] = keep_bytes(row, bytes, len);
            *value = (struct db_value){.type = DB_TEXT, .text_len = (uint32_t)len};
        }
        }
    }
    for (int i = 0; i < n; i++) // only now do the bytes stay where they are
        if (row->values[i].type == DB_TEXT)
            row->values[i].s = row->bytes.buf + row->texts[i];
}

static const char *sqlite_row_name(struct db_session *base, int i)
{
    const struct sqlite_row *row = &session_of(base)->row;

    assert(i < row->n);
    return row->bytes.buf + row->names[i];
}

static struct db_value sqlite_row_value(struct db_session *base, int i)
{
    const struct sqlite_row *row = &session_of(base)->row;

    assert(i < row->n);
    return row->values[i];
}

static void give_row(sqlite3_stmt *stmt, db_row_fn *fn, void *arg)
{
    int n = sqlite3_column_count(stmt);
    const char **names = mem_calloc((size_t)n, sizeof(*names));
    const char **values = mem_calloc((size_t)n, sizeof(*values));

    for (int i = 0; i < n; i++) {
        names[i] = sqlite3_column_name(stmt, i);
        values[i] = (const char *)sqlite3_column_text(stmt, i);
    }
    fn(arg, n, names, values);
    free(names);
    free(values);
}

// ---- statements

static void call_begin(struct sqlite_session *session)
{
    session->busy.waited_ns = 0;
    atomic_store_explicit(&session->busy.cancelled, false, memory_order_relaxed);
    session->row.n = 0;
}

static enum db_class call_end(struct sqlite_session *session, enum db_class class,
                              struct db_result *result)
{
    result->lock_wait_ns = session->busy.waited_ns;
    if (++session->calls % PUBLISH_EVERY == 0)
        sqlite_publish(session);
    return class;
}

int sqlite_bind(sqlite3_stmt *stmt, const struct db_value *values, int n)
{
    int rc = SQLITE_OK;

    for (int i = 0; i < n && rc == SQLITE_OK; i++) {
        const struct db_value *value = &values[i];
        switch (value->type) {
        case DB_NULL:
            rc = sqlite3_bind_null(stmt, i + 1);
            break;
        case DB_BOOL:
            rc = sqlite3_bind_int(stmt, i + 1, value->b);
            break;
        case DB_INT:
            rc = sqlite3_bind_int64(stmt, i + 1, value->i);
            break;
        case DB_DOUBLE:
            rc = sqlite3_bind_double(stmt, i + 1, value->d);
            break;
        case DB_TEXT: // the caller's text lives until the call is over
            rc = sqlite3_bind_text(stmt, i + 1, value->s, (int)value->text_len, SQLITE_STATIC);
            break;
        }
    }
    return rc;
}

enum db_class sqlite_run(struct sqlite_session *session, sqlite3_stmt *stmt, bool want_row,
                         db_row_fn *fn, void *arg, struct db_result *result)
{
    sqlite3_int64 changes = sqlite3_total_changes64(session->db);
    int n_columns = sqlite3_column_count(stmt);
    int64_t rows = 0;
    int rc;

    session->row.n = 0;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (rows++ == 0 && want_row)
            keep_row(&session->row, stmt);
        if (fn)
            give_row(stmt, fn, arg);
    }
    if (rc != SQLITE_DONE) {
        enum db_class class = sqlite_fail(session, rc, result);
        sqlite3_reset(stmt);
        // A failed statement may have ended the transaction (disk full, I/O error).
        result->in_transaction = !sqlite3_get_autocommit(session->db);
        return class;
    }
    sqlite3_reset(stmt); // lets go of the read lock
    if (n_columns > 0)
        result->rows = rows;
    else if (sqlite3_total_changes64(session->db) != changes)
        result->rows = sqlite3_changes64(session->db); // else the number of an earlier statement
    else
        result->rows = 0;
    result->n_columns = session->row.n;
    result->in_transaction = !sqlite3_get_autocommit(session->db);
    return DB_OK;
}

// Every statement of a text, one after the other; the answer is the last one's.
static enum db_class run_text(struct sqlite_session *session, const char *sql, bool want_row,
                              db_row_fn *fn, void *arg, struct db_result *result)
{
    enum db_class class = DB_OK;
    bool found = false;

    while (class == DB_OK && *sql) {
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(session->db, sql, -1, &stmt, &sql);
        if (rc != SQLITE_OK)
            return sqlite_fail(session, rc, result);
        if (!stmt) // blanks or a comment
            continue;
        found = true;
        class = sqlite_run(session, stmt, want_row, fn, arg, result);
        sqlite3_finalize(stmt);
    }
    if (!found)
        result->in_transaction = !sqlite3_get_autocommit(session->db);
    return class;
}

// Compiles one statement with placeholders. SQLite stops at the first ';' without a word, so what
// comes behind it is looked at here.
static enum db_class prepare(struct sqlite_session *session, const struct db_statement *statement,
                             unsigned flags, sqlite3_stmt **ret, struct db_result *result)
{
    const char *rest = statement->sql;
    sqlite3_stmt *stmt = NULL, *second = NULL;
    int rc = SQLITE_OK;

    while (rc == SQLITE_OK && !stmt && *rest)
        rc = sqlite3_prepare_v3(session->db, rest, -1, flags, &stmt, &rest);
    if (rc != SQLITE_OK)
        return sqlite_fail(session, rc, result);
    while (rc == SQLITE_OK && !second && *rest)
        rc = sqlite3_prepare_v3(session->db, rest, -1, 0, &second, &rest);
    sqlite3_finalize(second);
    int n = stmt ? sqlite3_bind_parameter_count(stmt) : 0;
    if (!second && rc == SQLITE_OK && stmt && n == statement->n_params) {
        *ret = stmt;
        return DB_OK;
    }
    sqlite3_finalize(stmt);
    result->in_transaction = !sqlite3_get_autocommit(session->db);
    if (!stmt)
        return db_fail(result, DB_SYNTAX, "", "the statement is empty");
    if (second || rc != SQLITE_OK)
        return db_fail(result, DB_SYNTAX, "",
                       "cannot prepare several statements at once; "
                       "use the simple protocol");
    return db_fail(result, DB_SYNTAX, "", "the statement has %d placeholders for %d parameters", n,
                   statement->n_params);
}

static enum db_class execute_bound(struct sqlite_session *session, sqlite3_stmt *stmt,
                                   const struct db_statement *statement,
                                   const struct db_value *params, bool want_row,
                                   struct db_result *result)
{
    int rc = sqlite_bind(stmt, params, statement->n_params);

    if (rc != SQLITE_OK)
        return sqlite_fail(session, rc, result);
    return sqlite_run(session, stmt, want_row, NULL, NULL, result);
}

static enum db_class sqlite_execute(struct db_session *base, const struct db_statement *statement,
                                    const struct db_value *params, bool want_row,
                                    struct db_result *result)
{
    struct sqlite_session *session = session_of(base);
    enum db_class class = DB_OK;
    sqlite3_stmt *stmt = NULL;

    call_begin(session);
    switch (base->target->options.protocol) {
    case DB_SIMPLE:
        db_statement_expand(statement, params, &session->text);
        class = run_text(session, session->text.buf, want_row, NULL, NULL, result);
        break;
    case DB_EXTENDED:
        class = prepare(session, statement, 0, &stmt, result);
        if (class == DB_OK)
            class = execute_bound(session, stmt, statement, params, want_row, result);
        sqlite3_finalize(stmt);
        break;
    case DB_PREPARED: {
        assert(statement->index < session->n_handles);
        sqlite3_stmt **handle = &session->handles[statement->index];
        if (!*handle)
            class = prepare(session, statement, SQLITE_PREPARE_PERSISTENT, handle, result);
        if (class == DB_OK)
            class = execute_bound(session, *handle, statement, params, want_row, result);
    }
    }
    return call_end(session, class, result);
}

enum db_class sqlite_query(struct db_session *base, const char *sql, bool want_row, db_row_fn *fn,
                           void *arg, struct db_result *result)
{
    struct sqlite_session *session = session_of(base);

    call_begin(session);
    enum db_class class = run_text(session, sql, want_row, fn, arg, result);
    return call_end(session, class, result);
}

static const char *const schemes[] = {"sqlite", "sqlite3", NULL};
static const char *const loops[] = {"threads", NULL};

static const char *const shaping[] = {"page_size", "auto_vacuum", "encoding", "vfs", NULL};

const struct db_driver db_driver_sqlite = {
    .name = "sqlite",
    .schemes = schemes,
    .loops = loops,
    .params_help = sqlite_params_help,
    .placeholder = DB_PLACE_QUESTION,
    .caps = DB_CAP_TRANSACTIONS | DB_CAP_PREPARED | DB_CAP_KEY_FIRST,
    .target_size = sizeof(struct sqlite_target),
    .session_size = sizeof(struct sqlite_session),
    .takes_volume = true,
    .shaping = shaping,
    .open = sqlite_target_open,
    .close = sqlite_target_close,
    .connect = sqlite_connect,
    .disconnect = sqlite_disconnect,
    .execute = sqlite_execute,
    .query = sqlite_query,
    .row_name = sqlite_row_name,
    .row_value = sqlite_row_value,
    .cancel = sqlite_cancel,
    .create_table = sqlite_create_table,
    .bulk_begin = sqlite_bulk_begin,
    .bulk_row = sqlite_bulk_row,
    .bulk_end = sqlite_bulk_end,
    .settle_table = sqlite_settle_table,
    .describe = sqlite_describe,
    .sample = sqlite_sample,
};
