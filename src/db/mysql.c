// MySQL and MariaDB through libmariadb: one blocking connection per session.
//
// Transactions as the server reports them after each answer. A failed statement carries no report,
// so the last one stands: after a deadlock, where the server has rolled back everything, a session
// still counts as inside, and the ROLLBACK the core sends does no harm. LOCK TABLES counts as a
// transaction too: it is what a workload writes instead of BEGIN on engines that have none, and
// ROLLBACK ends it (the driver adds UNLOCK TABLES, which MySQL's own ROLLBACK leaves out).
#include "db/mysqldb.h"

#include <assert.h>
#include <errmsg.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text.h"
#include "db/mysql_wire.h"

// ---- errors and state

bool mysqldb_in_transaction(const struct mysqldb_session *s)
{
    return (s->mysql->server_status & SERVER_STATUS_IN_TRANS) != 0 || s->tables_locked;
}

static enum db_class fail_with(unsigned code, const char *sqlstate, const char *message,
                               bool connecting, struct db_result *result)
{
    char native[sizeof(result->native)];

    if (code == 0) // the library failed without saying why
        code = CR_UNKNOWN_ERROR;
    snprintf(native, sizeof(native), "%u", code);
    return db_fail(result, mysqldb_class(code, sqlstate, message, connecting), native, "%s",
                   message);
}

enum db_class mysqldb_fail(struct mysqldb_session *s, struct db_result *result)
{
    fail_with(mysql_errno(s->mysql), mysql_sqlstate(s->mysql), mysql_error(s->mysql), false,
              result);
    if (result->class == DB_LOST)
        s->base.lost = true; // describe and sample give no class to the layer
    result->in_transaction = mysqldb_in_transaction(s);
    return result->class;
}

enum mysqldb_locks mysqldb_locks(enum db_kind kind, const char *sql)
{
    switch (kind) {
    case DB_KIND_BEGIN: // BEGIN and LOCK TABLES both let go of earlier locks
        return text_first_word_is(sql, "lock") ? MYSQLDB_LOCKS_TAKEN : MYSQLDB_LOCKS_GONE;
    case DB_KIND_COMMIT: // COMMIT keeps them
        return text_first_word_is(sql, "unlock") ? MYSQLDB_LOCKS_GONE : MYSQLDB_LOCKS_KEPT;
    case DB_KIND_ROLLBACK:
        return MYSQLDB_LOCKS_LEFT;
    default:
        return MYSQLDB_LOCKS_KEPT;
    }
}

void mysqldb_note_locks(struct mysqldb_session *s, enum db_kind kind, const char *sql)
{
    enum mysqldb_locks locks = mysqldb_locks(kind, sql);

    if (locks == MYSQLDB_LOCKS_TAKEN) {
        s->tables_locked = true;
    } else if (locks == MYSQLDB_LOCKS_GONE) {
        s->tables_locked = false;
    } else if (locks == MYSQLDB_LOCKS_LEFT && s->tables_locked) {
        static const char unlock[] = MYSQLDB_UNLOCK;
        s->tables_locked = mysql_real_query(s->mysql, unlock, sizeof(unlock) - 1) != 0;
    }
}

// ---- the kept row

void mysqldb_row_begin(struct mysqldb_row *row, int n)
{
    assert(n >= 0);
    if (n > row->cap) {
        row->fields = mem_resize(row->fields, (size_t)n, sizeof(*row->fields));
        row->cap = n;
    }
    row->n = 0;
    str_clear(&row->bytes);
}

static size_t keep_bytes(struct mysqldb_row *row, const char *text, size_t len)
{
    size_t offset = row->bytes.len;

    str_addn(&row->bytes, text, len);
    str_addc(&row->bytes, '\0');
    return offset;
}

struct mysqldb_field *mysqldb_row_add(struct mysqldb_row *row, const char *name)
{
    assert(row->n < row->cap);
    struct mysqldb_field *field = &row->fields[row->n++];
    field->value = (struct db_value){.type = DB_NULL};
    field->name = keep_bytes(row, name, strlen(name));
    return field;
}

void mysqldb_row_text(struct mysqldb_row *row, struct mysqldb_field *field, const char *text,
                      size_t len)
{
    field->value = (struct db_value){.type = DB_TEXT, .text_len = (uint32_t)len};
    field->text = keep_bytes(row, text, len);
}

void mysqldb_row_end(struct mysqldb_row *row)
{
    for (int i = 0; i < row->n; i++) // only now do the bytes stay where they are
        if (row->fields[i].value.type == DB_TEXT)
            row->fields[i].value.s = row->bytes.buf + row->fields[i].text;
}

void mysqldb_row_release(struct mysqldb_row *row)
{
    free(row->fields);
    str_release(&row->bytes);
    *row = (struct mysqldb_row){.bytes = STR_INIT};
}

enum db_type mysqldb_type(enum enum_field_types type)
{
    switch (type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
        return DB_INT;
    case MYSQL_TYPE_DOUBLE: // FLOAT's shortest text differs between the protocols: text
        return DB_DOUBLE;
    default:
        return DB_TEXT;
    }
}

void mysqldb_row_parse(struct mysqldb_row *row, const char *name, enum db_type type,
                       const char *bytes, size_t len)
{
    struct mysqldb_field *field = mysqldb_row_add(row, name);
    char *end = NULL;

    if (!bytes)
        return;
    mysqldb_row_text(row, field, bytes, len);
    const char *text = row->bytes.buf + field->text; // now with an end
    errno = 0;
    if (type == DB_INT) {
        long long i = strtoll(text, &end, 10);
        if (errno == 0 && end == text + len && len > 0)
            field->value = (struct db_value){.type = DB_INT, .i = i};
    } else if (type == DB_DOUBLE) {
        double d = strtod(text, &end);
        if (end == text + len && len > 0)
            field->value = (struct db_value){.type = DB_DOUBLE, .d = d};
    }
}

static void keep_text_row(struct mysqldb_row *row, MYSQL_RES *res, MYSQL_ROW values)
{
    const MYSQL_FIELD *columns = mysql_fetch_fields(res);
    const unsigned long *lengths = mysql_fetch_lengths(res);
    int n = (int)mysql_num_fields(res);

    mysqldb_row_begin(row, n);
    for (int i = 0; i < n; i++)
        mysqldb_row_parse(row, columns[i].name, mysqldb_type(columns[i].type), values[i],
                          lengths[i]);
    mysqldb_row_end(row);
}

static const char *row_name(struct db_session *base, int i)
{
    const struct mysqldb_row *row = &mysqldb_session(base)->row;

    assert(i < row->n);
    return row->bytes.buf + row->fields[i].name;
}

static struct db_value row_value(struct db_session *base, int i)
{
    const struct mysqldb_row *row = &mysqldb_session(base)->row;

    assert(i < row->n);
    return row->fields[i].value;
}

// ---- plain text

// Reads one result set to its end. Returns its rows, or -1 when the connection or server failed.
static int64_t read_set(struct mysqldb_session *s, MYSQL_RES *res, bool want_row, db_row_fn *fn,
                        void *arg)
{
    int n = (int)mysql_num_fields(res);
    const char **names = NULL;
    int64_t rows = 0;
    MYSQL_ROW values;

    if (fn) {
        names = mem_calloc((size_t)n, sizeof(*names));
        for (int i = 0; i < n; i++)
            names[i] = mysql_fetch_fields(res)[i].name;
    }
    while ((values = mysql_fetch_row(res)) != NULL) {
        if (rows++ == 0 && want_row)
            keep_text_row(&s->row, res, values);
        if (fn)
            fn(arg, n, names, (const char *const *)values);
    }
    free(names);
    return mysql_errno(s->mysql) == 0 ? rows : -1;
}

static enum db_class send_and_read(struct mysqldb_session *s, const char *sql, size_t len,
                                   bool want_row, db_row_fn *fn, void *arg,
                                   struct db_result *result)
{
    int64_t affected = 0, rows = 0;
    bool has_set = false;
    int more = 0;

    s->row.n = 0;
    if (mysql_real_query(s->mysql, sql, len) != 0)
        return mysqldb_fail(s, result);
    while (more == 0) {
        MYSQL_RES *res = mysql_use_result(s->mysql);
        if (res) {
            int64_t n = read_set(s, res, want_row && !has_set, fn, arg);
            mysql_free_result(res);
            if (n < 0)
                return mysqldb_fail(s, result);
            rows += n;
            has_set = true;
        } else if (mysql_field_count(s->mysql) > 0) {
            return mysqldb_fail(s, result);
        } else {
            affected += (int64_t)mysql_affected_rows(s->mysql);
        }
        more = mysql_next_result(s->mysql); // 0: another answer, -1: none, > 0: it failed
    }
    if (more > 0)
        return mysqldb_fail(s, result);
    result->rows = has_set ? rows : affected;
    result->n_columns = s->row.n;
    result->in_transaction = mysqldb_in_transaction(s);
    return DB_OK;
}

enum db_class mysqldb_text(struct mysqldb_session *s, const char *sql, size_t len, bool want_row,
                           db_row_fn *fn, void *arg, struct db_result *result)
{
    atomic_store_explicit(&s->busy, true, memory_order_release);
    enum db_class class = send_and_read(s, sql, len, want_row, fn, arg, result);
    atomic_store_explicit(&s->busy, false, memory_order_release);
    return class;
}

enum db_class mysqldb_run(struct mysqldb_session *s, const char *sql, struct db_result *result)
{
    return mysqldb_text(s, sql, strlen(sql), false, NULL, NULL, result);
}

static enum db_class query(struct db_session *base, const char *sql, bool want_row, db_row_fn *fn,
                           void *arg, struct db_result *result)
{
    struct mysqldb_session *s = mysqldb_session(base);

    if (mysqldb_text(s, sql, strlen(sql), want_row, fn, arg, result) == DB_OK) {
        mysqldb_note_locks(s, db_statement_kind(sql), sql);
        result->in_transaction = mysqldb_in_transaction(s);
    }
    return result->class;
}

bool mysqldb_ask(struct mysqldb_session *s, const char *sql, int column, struct str *value,
                 struct str *why)
{
    struct db_result result = {0};
    char buf[DB_VALUE_TEXT_MAX];
    int len = 0;

    str_clear(value);
    if (mysqldb_text(s, sql, strlen(sql), true, NULL, NULL, &result) == DB_OK &&
        s->row.n > column) {
        const char *text = db_value_text(&s->row.fields[column].value, buf, &len);
        if (text) {
            str_addn(value, text, (size_t)len);
            return true;
        }
    }
    if (why) {
        str_clear(why);
        str_addf(why, "unknown: %s",
                 result.class == DB_OK ? "the server did not tell" : result.message);
    }
    return false;
}

// ---- connecting

struct engine_look {
    struct mysqldb_target *target;
    bool asked, has, transactions;
    struct str names;
};

static void look_at_engine(void *arg, int n, const char *const *names, const char *const *values)
{
    struct engine_look *look = arg;

    (void)names;
    if (n < 3 || !values[0] || !values[1])
        return;
    look->asked = true;
    if (strcasecmp(values[1], "YES") != 0 && strcasecmp(values[1], "DEFAULT") != 0)
        return;
    str_addf(&look->names, "%s%s", look->names.len ? ", " : "", values[0]);
    if (strcasecmp(values[0], look->target->engine_name) == 0) {
        look->has = true;
        look->transactions = values[2] && strcasecmp(values[2], "YES") == 0;
    }
}

// Once per target: whether the server has the engine the user asked for, and what an engine that
// prony does not know can do. Servers that cannot be asked are taken at the user's word.
static enum db_class check_engine(struct mysqldb_session *s, struct db_result *result)
{
    static const char sql[] =
        "SELECT engine, support, transactions FROM information_schema.engines";
    struct mysqldb_target *t = mysqldb_target(&s->base);
    struct engine_look look = {.target = t, .names = STR_INIT};
    struct db_result ignored = {0};

    if (!t->engine_told || atomic_load(&t->engine_checked))
        return DB_OK;
    mysqldb_text(s, sql, sizeof(sql) - 1, false, look_at_engine, &look, &ignored);
    if (look.has && !mysqldb_engine_find(t->engine_name) && look.transactions)
        __atomic_fetch_or(&t->base.caps, DB_CAP_TRANSACTIONS, __ATOMIC_RELAXED);
    if (look.asked && !look.has)
        db_fail(result, DB_UNDEFINED, "1286", "the server has no storage engine %s; it has %s",
                t->engine_name, look.names.buf);
    else
        atomic_store(&t->engine_checked, true);
    str_release(&look.names);
    return result->class;
}

static enum db_class connect_session(struct db_session *base, struct db_result *result)
{
    struct mysqldb_session *s = mysqldb_session(base);

    str_init(&s->text);
    str_init(&s->row.bytes);
    str_init(&s->bulk.head);
    str_init(&s->bulk.chunk);
    s->fd = -1;
    s->mysql = mysqldb_dial(mysqldb_target(base), 0);
    if (mysql_errno(s->mysql) != 0)
        return fail_with(mysql_errno(s->mysql), mysql_sqlstate(s->mysql), mysql_error(s->mysql),
                         true, result);
    if (mysqldb_target(base)->needs_tls && !mysql_get_ssl_cipher(s->mysql))
        return db_fail(result, DB_DENIED, "2026",
                       "the server does not offer TLS, which ssl=1 needs");
    mysqldb_infile_install(s->mysql, s);
    mysqldb_cancel_init(s);
    // Without this a statement outside BEGIN would open a transaction that nobody commits.
    if (!(s->mysql->server_status & SERVER_STATUS_AUTOCOMMIT) &&
        mysqldb_run(s, "SET autocommit=1", result) != DB_OK)
        return result->class;
    if (check_engine(s, result) != DB_OK)
        return result->class;
    mysqldb_handles_make(s);
    return DB_OK;
}

static void disconnect(struct db_session *base)
{
    struct mysqldb_session *s = mysqldb_session(base);

    // First the connection: statements without one are freed without a word to the server.
    if (s->mysql)
        mysql_close(s->mysql);
    s->mysql = NULL;
    mysqldb_handles_release(s);
    mysqldb_bulk_release(s);
    mysqldb_row_release(&s->row);
    str_release(&s->text);
}

static const char *const schemes[] = {"mysql", "mariadb", NULL};
static const char *const loops[] = {"ring", "threads", NULL};

const struct db_driver db_driver_mysql = {
    .name = "mysql",
    .schemes = schemes,
    .loops = loops,
    .params_help = mysqldb_params_help,
    .placeholder = DB_PLACE_QUESTION,
    .caps = DB_CAP_PREPARED | DB_CAP_LOCK_TABLES, // open adds the storage engine's
    .target_size = sizeof(struct mysqldb_target),
    .session_size = sizeof(struct mysqldb_session),
    .open = mysqldb_open,
    .close = mysqldb_close,
    .connect = connect_session,
    .disconnect = disconnect,
    .execute = mysqldb_execute,
    .query = query,
    .row_name = row_name,
    .row_value = row_value,
    .cancel = mysqldb_cancel,
    .claim = mysqldb_claim,
    .create_table = mysqldb_create_table,
    .bulk_begin = mysqldb_bulk_begin,
    .bulk_row = mysqldb_bulk_row,
    .bulk_end = mysqldb_bulk_end,
    .settle_table = mysqldb_settle_table,
    .describe = mysqldb_describe,
    .sample = mysqldb_sample,
    .gauges = mysqldb_gauges,
    .wire = &mysqldb_wire_codec,
};
