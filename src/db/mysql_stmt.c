// Statements with parameters, by the binary protocol. "extended" prepares, executes and closes each
// time; "prepared" prepares a statement once per session, when it is first needed.
//
// A server that cannot prepare a kind of statement (LOCK TABLES on some, everything on some
// proxies) is sent it as text from then on.
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "db/mysqldb.h"

struct mysqldb_handle {
    MYSQL_STMT *stmt;
    bool as_text;   // cannot be prepared on this server
    bool bound;     // the library has a copy of binds of these types:
    uint8_t *types; // enum db_type per parameter; DB_NULL: none but NULL was seen
};

// Parameters on their way. The library keeps a copy of the binds, whose pointers lead here: they
// stay right from one execution to the next, for every statement of the session.
struct mysqldb_binder {
    MYSQL_BIND binds[DB_PARAMS_MAX];
    struct {
        int64_t i;
        double d;
        unsigned long len;
        my_bool null;
    } slots[DB_PARAMS_MAX];
};

void mysqldb_handles_make(struct mysqldb_session *s)
{
    s->n_handles = s->base.target->options.n_statements;
    s->handles = mem_calloc((size_t)s->n_handles, sizeof(*s->handles));
}

static void handle_drop(struct mysqldb_handle *handle)
{
    if (handle->stmt)
        mysql_stmt_close(handle->stmt);
    free(handle->types);
    *handle = (struct mysqldb_handle){.as_text = handle->as_text};
}

void mysqldb_handles_release(struct mysqldb_session *s)
{
    for (int i = 0; i < s->n_handles; i++)
        handle_drop(&s->handles[i]);
    free(s->handles);
    free(s->binder);
    s->handles = NULL;
    s->binder = NULL;
    s->n_handles = 0;
}

static enum db_class fail(struct mysqldb_session *s, struct mysqldb_handle *handle,
                          struct db_result *result)
{
    unsigned code = mysql_stmt_errno(handle->stmt);
    const char *message = mysql_stmt_error(handle->stmt);
    char native[sizeof(result->native)];

    if (code == 0)
        return mysqldb_fail(s, result);
    snprintf(native, sizeof(native), "%u", code);
    db_fail(result, mysqldb_class(code, mysql_stmt_sqlstate(handle->stmt), message, false), native,
            "%s", message);
    if (mysqldb_is_stale_statement(code))
        handle_drop(handle);
    result->in_transaction = mysqldb_in_transaction(s);
    return result->class;
}

// Leaves handle->as_text set and DB_OK when the server takes the statement only as text.
static enum db_class prepare(struct mysqldb_session *s, struct mysqldb_handle *handle,
                             const struct db_statement *statement, struct db_result *result)
{
    assert(!handle->stmt && !handle->as_text);
    handle->stmt = mysql_stmt_init(s->mysql);
    if (!handle->stmt)
        return mysqldb_fail(s, result);
    if (mysql_stmt_prepare(handle->stmt, statement->sql, strlen(statement->sql)) != 0) {
        handle->as_text = mysqldb_is_unpreparable(mysql_stmt_errno(handle->stmt));
        if (!handle->as_text)
            fail(s, handle, result);
        handle_drop(handle);
        return result->class;
    }
    unsigned long n = mysql_stmt_param_count(handle->stmt);
    if (n != (unsigned long)statement->n_params) {
        handle_drop(handle);
        db_fail(result, DB_SYNTAX, "", "the statement has %lu placeholders for %d parameters", n,
                statement->n_params);
        result->in_transaction = mysqldb_in_transaction(s);
        return result->class;
    }
    handle->types = mem_calloc((size_t)statement->n_params, sizeof(*handle->types));
    return DB_OK;
}

// ---- parameters

// param gives the text where there is one; the type is the one kept for the parameter.
static void bind_one(struct mysqldb_binder *binder, int k, enum db_type type,
                     const struct db_value *param)
{
    MYSQL_BIND *bind = &binder->binds[k];

    memset(bind, 0, sizeof(*bind));
    bind->is_null = &binder->slots[k].null;
    bind->length = &binder->slots[k].len;
    switch (type) {
    case DB_BOOL:
    case DB_INT:
        bind->buffer_type = MYSQL_TYPE_LONGLONG;
        bind->buffer = &binder->slots[k].i;
        break;
    case DB_DOUBLE:
        bind->buffer_type = MYSQL_TYPE_DOUBLE;
        bind->buffer = &binder->slots[k].d;
        break;
    case DB_NULL:
    case DB_TEXT:
        bind->buffer_type = MYSQL_TYPE_STRING;
        if (param->type == DB_TEXT) { // the library only reads it
            bind->buffer = (void *)(uintptr_t)param->s;
            bind->buffer_length = param->text_len;
        }
        break;
    }
}

// Binds anew only where the library's copy no longer fits: other types, or texts, which lie
// elsewhere each time. A parameter that is NULL keeps the type it had.
static int bind_params(struct mysqldb_session *s, struct mysqldb_handle *handle,
                       const struct db_value *params, int n)
{
    bool again = !handle->bound;

    assert(n <= DB_PARAMS_MAX);
    if (!s->binder && n > 0) // at the first need: sessions of the ring have none
        s->binder = mem_calloc(1, sizeof(*s->binder));
    struct mysqldb_binder *binder = s->binder;
    for (int k = 0; k < n; k++) {
        const struct db_value *param = &params[k];
        binder->slots[k].null = param->type == DB_NULL;
        binder->slots[k].len = param->type == DB_TEXT ? param->text_len : 0;
        if (param->type == DB_BOOL)
            binder->slots[k].i = param->b;
        else if (param->type == DB_INT)
            binder->slots[k].i = param->i;
        else if (param->type == DB_DOUBLE)
            binder->slots[k].d = param->d;
        if (param->type != DB_NULL && (param->type == DB_TEXT || param->type != handle->types[k])) {
            handle->types[k] = (uint8_t)param->type;
            again = true;
        }
    }
    if (!again)
        return 0;
    for (int k = 0; k < n; k++)
        bind_one(binder, k, handle->types[k], &params[k]);
    if (n > 0 && mysql_stmt_bind_param(handle->stmt, binder->binds))
        return -1;
    handle->bound = true;
    return 0;
}

// ---- rows

// Copies a column's text from the row just fetched, whatever its type and length.
static int keep_text(MYSQL_STMT *stmt, unsigned column, struct mysqldb_row *row,
                     struct mysqldb_field *field)
{
    char small[256];
    char *text = small;
    unsigned long len = 0;
    my_bool null = 0, cut = 0;
    MYSQL_BIND bind = {
        .buffer_type = MYSQL_TYPE_STRING,
        .buffer = small,
        .buffer_length = sizeof(small),
        .length = &len,
        .is_null = &null,
        .error = &cut,
    };

    if (mysql_stmt_fetch_column(stmt, &bind, column, 0))
        return -1;
    if (null)
        return 0;
    if (len > sizeof(small)) {
        text = mem_calloc(1, len);
        bind.buffer = text;
        bind.buffer_length = len;
        if (mysql_stmt_fetch_column(stmt, &bind, column, 0)) {
            free(text);
            return -1;
        }
    }
    mysqldb_row_text(row, field, text, len);
    if (text != small)
        free(text);
    return 0;
}

static int keep_column(MYSQL_STMT *stmt, unsigned column, const MYSQL_FIELD *meta,
                       struct mysqldb_row *row)
{
    struct mysqldb_field *field = mysqldb_row_add(row, meta->name);
    enum db_type type = mysqldb_type(meta->type);
    bool is_unsigned = (meta->flags & UNSIGNED_FLAG) != 0;
    struct db_value value = {.type = type};
    my_bool null = 0, cut = 0;
    MYSQL_BIND bind = {.is_null = &null, .error = &cut, .is_unsigned = is_unsigned};

    if (type == DB_TEXT)
        return keep_text(stmt, column, row, field);
    bind.buffer_type = type == DB_INT ? MYSQL_TYPE_LONGLONG : MYSQL_TYPE_DOUBLE;
    bind.buffer = type == DB_INT ? (void *)&value.i : (void *)&value.d;
    if (mysql_stmt_fetch_column(stmt, &bind, column, 0))
        return -1;
    if (null)
        return 0;
    if (type == DB_INT && is_unsigned && value.i < 0) { // more than an int64_t holds
        char text[24];
        int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)value.i);
        mysqldb_row_text(row, field, text, (size_t)len);
        return 0;
    }
    field->value = value;
    return 0;
}

static int keep_row(struct mysqldb_session *s, MYSQL_STMT *stmt)
{
    MYSQL_RES *meta = mysql_stmt_result_metadata(stmt);
    int r = 0;

    if (!meta)
        return -1;
    unsigned n = mysql_num_fields(meta);
    mysqldb_row_begin(&s->row, (int)n);
    for (unsigned i = 0; i < n && r == 0; i++)
        r = keep_column(stmt, i, &mysql_fetch_fields(meta)[i], &s->row);
    mysqldb_row_end(&s->row);
    mysql_free_result(meta);
    return r;
}

// Reads one result set to its end without keeping it. Nothing is bound: what is wanted of the first
// row is fetched from the row itself. Returns the rows, or -1.
static int64_t read_set(struct mysqldb_session *s, MYSQL_STMT *stmt, bool want_row)
{
    int64_t rows = 0;
    int rc;

    while ((rc = mysql_stmt_fetch(stmt)) == 0 || rc == MYSQL_DATA_TRUNCATED)
        if (rows++ == 0 && want_row && keep_row(s, stmt) < 0)
            return -1;
    return rc == MYSQL_NO_DATA ? rows : -1;
}

// ---- execution

// Every answer of an execution: CALL gives several.
static enum db_class read_answers(struct mysqldb_session *s, struct mysqldb_handle *handle,
                                  bool want_row, struct db_result *result)
{
    MYSQL_STMT *stmt = handle->stmt;
    int64_t affected = 0, rows = 0;
    bool has_set = false;

    for (;;) {
        if (mysql_stmt_field_count(stmt) > 0) {
            int64_t n = read_set(s, stmt, want_row && !has_set);
            if (n < 0)
                return fail(s, handle, result);
            rows += n;
            has_set = true;
        } else {
            affected += (int64_t)mysql_stmt_affected_rows(stmt);
        }
        if (!mysql_stmt_more_results(stmt))
            break;
        int more = mysql_stmt_next_result(stmt);
        if (more > 0)
            return fail(s, handle, result);
        if (more < 0)
            break;
    }
    result->rows = has_set ? rows : affected;
    result->n_columns = s->row.n;
    result->in_transaction = mysqldb_in_transaction(s);
    return DB_OK;
}

static enum db_class execute_bound(struct mysqldb_session *s, struct mysqldb_handle *handle,
                                   const struct db_statement *statement,
                                   const struct db_value *params, bool want_row,
                                   struct db_result *result)
{
    if (bind_params(s, handle, params, statement->n_params) < 0 ||
        mysql_stmt_execute(handle->stmt) != 0)
        return fail(s, handle, result);
    return read_answers(s, handle, want_row, result);
}

enum db_class mysqldb_execute(struct db_session *base, const struct db_statement *statement,
                              const struct db_value *params, bool want_row,
                              struct db_result *result)
{
    struct mysqldb_session *s = mysqldb_session(base);
    struct mysqldb_handle *handle = &s->handles[statement->index];
    enum db_protocol protocol = base->target->options.protocol;

    assert(statement->index < s->n_handles);
    s->row.n = 0;
    atomic_store_explicit(&s->busy, true, memory_order_release);
    if (protocol != DB_SIMPLE && !handle->stmt && !handle->as_text)
        prepare(s, handle, statement, result);
    if (handle->stmt) {
        execute_bound(s, handle, statement, params, want_row, result);
    } else if (result->class == DB_OK) {
        db_statement_expand(statement, params, &s->text);
        mysqldb_text(s, s->text.buf, s->text.len, want_row, NULL, NULL, result);
    }
    atomic_store_explicit(&s->busy, false, memory_order_release);
    if (protocol == DB_EXTENDED)
        handle_drop(handle);
    if (result->class == DB_OK && statement->kind >= DB_KIND_BEGIN) {
        mysqldb_note_locks(s, statement->kind, statement->sql);
        result->in_transaction = mysqldb_in_transaction(s);
    }
    return result->class;
}
