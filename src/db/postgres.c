// PostgreSQL through libpq: sessions. The rest of the driver is listed in db/postgres.h.
//
// Parameters go as text of unspecified type and rows come as text, as in pgbench. Memory of our own
// is taken at connect; per request only libpq allocates.
#include "db/postgres.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/units.h"
#include "db/postgres_wire.h"

// pg_type's numbers of types whose text is a number here.
enum { TYPE_BOOL = 16, TYPE_INT8 = 20, TYPE_INT2 = 21, TYPE_INT4 = 23, TYPE_OID = 26 };
enum { TYPE_FLOAT4 = 700, TYPE_FLOAT8 = 701, TYPE_NUMERIC = 1700 };

static struct postgres_target *target_of(const struct postgres_session *s)
{
    return (struct postgres_target *)s->base.target;
}

// ---- failures

// Server text can have lines of its own; libpq's end in hints after a newline.
static enum db_class fail_text(struct db_result *result, enum db_class class, const char *native,
                               const char *text, const char *detail)
{
    int len = (int)strcspn(text, "\n");

    if (detail)
        return db_fail(result, class, native, "%.*s (%s)", len, text, detail);
    return db_fail(result, class, native, "%.*s", len, text);
}

enum db_class postgres_fail(struct postgres_session *s, const PGresult *res,
                            struct db_result *result)
{
    const char *state = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    const char *text = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    const char *detail = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL) : NULL;

    if (!text && res)
        text = PQresultErrorMessage(res);
    if (!text || !*text)
        text = PQerrorMessage(s->conn);
    if (PQstatus(s->conn) == CONNECTION_BAD) {
        postgres_cancel_detach(s->cancel);
        result->in_transaction = false;
        return fail_text(result, DB_LOST, state ? state : s->loss,
                         *text ? text : "the server closed the connection", NULL);
    }
    result->in_transaction = PQtransactionStatus(s->conn) != PQTRANS_IDLE;
    enum db_class class = postgres_class(state ? state : "");
    if (state && (strcmp(state, "26000") == 0 || strcmp(state, "42P05") == 0))
        detail = "does a pooler share its connections? Then use --protocol extended or simple";
    return fail_text(result, class, state, text, detail);
}

// Announcements are not shown, but what a server says before it hangs up tells why it did.
static void on_notice(void *arg, const PGresult *res)
{
    struct postgres_session *s = arg;
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);

    if (state && strncmp(state, "57P", 3) == 0 && strlen(state) < sizeof(s->loss))
        memcpy(s->loss, state, strlen(state) + 1);
}

// ---- connecting

static enum db_class fail_connect(struct postgres_session *s, struct db_result *result)
{
    const char *message = PQerrorMessage(s->conn);
    struct str text = STR_INIT;
    char state[SQLSTATE_MAX];

    enum db_class class =
        postgres_connect_class(message, PQconnectionNeedsPassword(s->conn) != 0, state);
    postgres_add_connect_text(&text, message);
    db_fail(result, class, state, "%s", text.buf);
    str_release(&text);
    return class;
}

// What PQconnectdb does, but with our settings from the first byte on: notices swallowed, and the
// SQLSTATE in the text of a refusal (there is no other way to have it). The time allowed is counted
// anew for each host, as libpq does.
static enum db_class connect_within(struct postgres_session *s, int64_t timeout_ns,
                                    bool *ret_timed_out, struct db_result *result)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    const char *host = NULL;
    int64_t deadline_ns = 0;

    PQsetNoticeReceiver(s->conn, on_notice, s);
    PQsetErrorVerbosity(s->conn, PQERRORS_VERBOSE);
    while (PQstatus(s->conn) != CONNECTION_BAD && state != PGRES_POLLING_OK &&
           state != PGRES_POLLING_FAILED) {
        int64_t now_ns = clock_now_ns(&clock_system);
        if (deadline_ns == 0 || PQhost(s->conn) != host) {
            host = PQhost(s->conn);
            deadline_ns = now_ns + timeout_ns;
        }
        struct pollfd fd = {PQsocket(s->conn), state == PGRES_POLLING_READING ? POLLIN : POLLOUT,
                            0};
        int wait_ms = -1;
        if (timeout_ns > 0)
            wait_ms = now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / NS_PER_MS + 1) : 0;
        int n = poll(&fd, 1, wait_ms);
        if (n == 0) {
            char limit[UNITS_MAX];
            *ret_timed_out = true;
            return db_fail(result, DB_UNAVAILABLE, "", "no answer from %s within %s", host,
                           units_format_duration_exact(timeout_ns, limit));
        }
        if (n < 0 && errno != EINTR)
            return db_fail(result, DB_OTHER, "", "poll: %s", strerror(errno));
        if (n > 0)
            state = PQconnectPoll(s->conn);
    }
    if (PQstatus(s->conn) != CONNECTION_OK)
        return fail_connect(s, result);
    return DB_OK;
}

static enum db_class start_connection(struct postgres_session *s, struct db_result *result)
{
    struct postgres_target *t = target_of(s);
    bool timed_out = false;

    s->conn = PQconnectStartParams(t->keywords, t->values, 0);
    if (!s->conn)
        return db_fail(result, DB_OTHER, "", "libpq is out of memory");
    connect_within(s, t->connect_timeout_ns, &timed_out, result);
    if (!timed_out || !t->several_hosts)
        return result->class;
    // Only libpq itself can pass over a silent host to the next one.
    PQfinish(s->conn);
    s->conn = PQconnectdbParams(t->keywords, t->values, 0);
    if (!s->conn)
        return db_fail(result, DB_OTHER, "", "libpq is out of memory");
    if (PQstatus(s->conn) != CONNECTION_OK)
        return fail_connect(s, result);
    PQsetNoticeReceiver(s->conn, on_notice, s);
    *result = (struct db_result){.class = DB_OK};
    return DB_OK;
}

static enum db_class postgres_connect(struct db_session *base, struct db_result *result)
{
    struct postgres_session *s = postgres_session(base);
    struct postgres_target *t = target_of(s);

    str_init(&s->sql);
    str_init(&s->bulk.rows);
    if (start_connection(s, result) != DB_OK)
        return result->class;
    PQsetErrorVerbosity(s->conn, PQERRORS_DEFAULT);
    s->cancel = postgres_cancel_create(s->conn);
    if (!s->cancel)
        return db_fail(result, DB_OTHER, "", "libpq is out of memory");

    s->n_statements = t->base.options.n_statements;
    if (s->n_statements > 0 && t->base.options.protocol == DB_PREPARED) {
        s->prepared = mem_calloc((size_t)s->n_statements, sizeof(*s->prepared));
        s->names = mem_calloc((size_t)s->n_statements, sizeof(*s->names));
        for (int i = 0; i < s->n_statements; i++) {
            char digits[DB_VALUE_TEXT_MAX];
            int len = db_format_int(i, digits);
            assert(6 + (size_t)len < sizeof(s->names[i].text));
            memcpy(s->names[i].text, "prony_", 6);
            memcpy(s->names[i].text + 6, digits, (size_t)len + 1);
        }
    }
    return DB_OK;
}

static void postgres_disconnect(struct db_session *base)
{
    struct postgres_session *s = postgres_session(base);

    PQclear(s->row);
    if (s->cancel)
        postgres_cancel_detach(s->cancel);
    // PQfinish says goodbye, and would wait for room in the socket if the server reads no more.
    if (s->conn && PQsocket(s->conn) >= 0 &&
        (base->lost || PQtransactionStatus(s->conn) == PQTRANS_ACTIVE))
        shutdown(PQsocket(s->conn), SHUT_RDWR);
    PQfinish(s->conn);
    postgres_cancel_release(s->cancel);
    postgres_bulk_release(&s->bulk);
    str_release(&s->sql);
    free(s->prepared);
    free(s->names);
}

// ---- requests

void postgres_drain(struct postgres_session *s, struct db_result *result)
{
    PGresult *res;

    while ((res = PQgetResult(s->conn)) != NULL) {
        ExecStatusType status = PQresultStatus(res);
        if (status == PGRES_FATAL_ERROR && result->class == DB_OK)
            postgres_fail(s, res, result);
        if (status == PGRES_COPY_IN)
            PQputCopyEnd(s->conn, "COPY is not supported here");
        if (status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
            char *data;
            while (PQgetCopyData(s->conn, &data, 0) > 0)
                PQfreemem(data);
        }
        PQclear(res);
        if (PQstatus(s->conn) == CONNECTION_BAD)
            break;
    }
}

// The answer to what was sent: the last result, or the first failure, or a COPY as soon as it
// begins. PQexec would give the last failure: of a server that says why and then hangs up, that is
// the hanging up.
static PGresult *last_result(struct postgres_session *s, int sent)
{
    PGresult *last = NULL;
    PGresult *res;

    while (sent && (res = PQgetResult(s->conn)) != NULL) {
        if (last && PQresultStatus(last) == PGRES_FATAL_ERROR) {
            PQclear(res);
        } else {
            PQclear(last);
            last = res;
        }
        ExecStatusType status = PQresultStatus(last);
        if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH ||
            (status == PGRES_FATAL_ERROR && PQstatus(s->conn) == CONNECTION_BAD))
            break;
    }
    return last;
}

PGresult *postgres_exec(struct postgres_session *s, const char *sql)
{
    return last_result(s, PQsendQuery(s->conn, sql));
}

// COPY wants data that no workload has; the session is usable again afterwards.
static enum db_class refuse_copy(struct postgres_session *s, ExecStatusType status,
                                 struct db_result *result)
{
    struct db_result ignored = {0};

    if (status == PGRES_COPY_IN)
        PQputCopyEnd(s->conn, "COPY is not supported here");
    if (status != PGRES_COPY_IN) {
        char *data;
        while (PQgetCopyData(s->conn, &data, 0) > 0)
            PQfreemem(data);
    }
    postgres_drain(s, &ignored);
    if (PQstatus(s->conn) == CONNECTION_BAD)
        return postgres_fail(s, NULL, result);
    result->in_transaction = PQtransactionStatus(s->conn) != PQTRANS_IDLE;
    return db_fail(result, DB_OTHER, "",
                   "COPY between client and server is not supported in a workload");
}

// Takes res over: it is kept as the row, or cleared.
static enum db_class take_result(struct postgres_session *s, PGresult *res, bool want_row,
                                 struct db_result *result)
{
    ExecStatusType status = PQresultStatus(res);
    PGnotify *notify;

    switch (status) {
    case PGRES_TUPLES_OK:
        result->rows = PQntuples(res);
        if (want_row) {
            result->n_columns = PQnfields(res);
            s->row = res;
            res = NULL;
        }
        break;
    case PGRES_COMMAND_OK:
        result->rows = strtoll(PQcmdTuples(res), NULL, 10);
        break;
    case PGRES_EMPTY_QUERY:
        break;
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
        refuse_copy(s, status, result);
        break;
    default:
        postgres_fail(s, res, result);
    }
    PQclear(res);
    if (result->class != DB_OK)
        return result->class;
    while ((notify = PQnotifies(s->conn)) != NULL) // a workload that listens must not grow us
        PQfreemem(notify);
    result->in_transaction = PQtransactionStatus(s->conn) != PQTRANS_IDLE;
    return DB_OK;
}

static void forget_row(struct postgres_session *s)
{
    if (s->row) {
        PQclear(s->row);
        s->row = NULL;
    }
}

static void set_params(struct postgres_session *s, const struct db_statement *statement,
                       const struct db_value *params)
{
    assert(statement->n_params >= 0 && statement->n_params <= DB_PARAMS_MAX);
    for (int i = 0; i < statement->n_params; i++) {
        int len;
        s->param_values[i] = db_value_text(&params[i], s->param_texts[i], &len);
    }
}

static enum db_class prepare(struct postgres_session *s, const struct db_statement *statement,
                             struct db_result *result)
{
    PGresult *res = last_result(s, PQsendPrepare(s->conn, s->names[statement->index].text,
                                                 statement->sql, statement->n_params, NULL));

    if (PQresultStatus(res) == PGRES_COMMAND_OK)
        s->prepared[statement->index] = true;
    else
        postgres_fail(s, res, result);
    PQclear(res);
    return result->class;
}

static enum db_class execute_prepared(struct postgres_session *s,
                                      const struct db_statement *statement, bool want_row,
                                      struct db_result *result)
{
    int i = statement->index;

    assert(i >= 0 && i < s->n_statements);
    if (!s->prepared[i] && prepare(s, statement, result) != DB_OK)
        return result->class;
    int sent = PQsendQueryPrepared(s->conn, s->names[i].text, statement->n_params, s->param_values,
                                   NULL, NULL, 0);
    take_result(s, last_result(s, sent), want_row, result);
    // Forgotten by the server (DISCARD, a pooler), unless the statement itself is an EXECUTE of
    // another one.
    if (result->class == DB_UNDEFINED && strcmp(result->native, "26000") == 0 &&
        strstr(result->message, s->names[i].text))
        s->prepared[i] = false;
    return result->class;
}

static enum db_class postgres_execute(struct db_session *base, const struct db_statement *statement,
                                      const struct db_value *params, bool want_row,
                                      struct db_result *result)
{
    struct postgres_session *s = postgres_session(base);
    int sent;

    forget_row(s);
    postgres_cancel_busy(s->cancel);
    switch (base->target->options.protocol) {
    case DB_PREPARED:
        set_params(s, statement, params);
        execute_prepared(s, statement, want_row, result);
        break;
    case DB_EXTENDED:
        set_params(s, statement, params);
        sent = PQsendQueryParams(s->conn, statement->sql, statement->n_params, NULL,
                                 s->param_values, NULL, NULL, 0);
        take_result(s, last_result(s, sent), want_row, result);
        break;
    case DB_SIMPLE:
        db_statement_expand(statement, params, &s->sql);
        take_result(s, postgres_exec(s, s->sql.buf), want_row, result);
        break;
    }
    postgres_cancel_idle(s->cancel);
    return result->class;
}

static void give_rows(const PGresult *res, db_row_fn *fn, void *arg)
{
    int n = PQnfields(res);
    const char **names = mem_calloc((size_t)n + 1, sizeof(*names));
    const char **values = mem_calloc((size_t)n + 1, sizeof(*values));

    for (int i = 0; i < n; i++)
        names[i] = PQfname(res, i);
    for (int row = 0; row < PQntuples(res); row++) {
        for (int i = 0; i < n; i++)
            values[i] = PQgetisnull(res, row, i) ? NULL : PQgetvalue(res, row, i);
        fn(arg, n, names, values);
    }
    free(names);
    free(values);
}

// Row by row, so that a result of any size can be read.
static enum db_class query_each(struct postgres_session *s, const char *sql, db_row_fn *fn,
                                void *arg, struct db_result *result)
{
    PGresult *res;
    int64_t rows = 0;

    if (!PQsendQuery(s->conn, sql))
        return postgres_fail(s, NULL, result);
    PQsetSingleRowMode(s->conn);
    while (result->class == DB_OK && (res = PQgetResult(s->conn)) != NULL) {
        if (PQresultStatus(res) == PGRES_SINGLE_TUPLE) {
            give_rows(res, fn, arg);
            rows += PQntuples(res);
            PQclear(res);
            continue;
        }
        take_result(s, res, false, result);
    }
    if (PQstatus(s->conn) == CONNECTION_BAD)
        return result->class != DB_OK ? result->class : postgres_fail(s, NULL, result);
    postgres_drain(s, result);
    result->in_transaction = PQtransactionStatus(s->conn) != PQTRANS_IDLE;
    result->rows = rows;
    return result->class;
}

static enum db_class postgres_query(struct db_session *base, const char *sql, bool want_row,
                                    db_row_fn *fn, void *arg, struct db_result *result)
{
    struct postgres_session *s = postgres_session(base);

    forget_row(s);
    postgres_cancel_busy(s->cancel);
    if (fn)
        query_each(s, sql, fn, arg, result);
    else
        take_result(s, postgres_exec(s, sql), want_row, result);
    postgres_cancel_idle(s->cancel);
    return result->class;
}

enum db_class postgres_run(struct postgres_session *s, const char *sql, struct db_result *result)
{
    return take_result(s, postgres_exec(s, sql), false, result);
}

// ---- the kept row

static const char *postgres_row_name(struct db_session *base, int i)
{
    struct postgres_session *s = postgres_session(base);

    assert(s->row && i < PQnfields(s->row));
    return PQfname(s->row, i);
}

static struct db_value text_value(const char *text, int len)
{
    return (struct db_value){.type = DB_TEXT, .text_len = (uint32_t)len, .s = text};
}

// Sums of bigint are numeric: one without a fraction is an integer here if it fits.
static struct db_value integer_value(const char *text, int len)
{
    char *end;

    errno = 0;
    long long i = strtoll(text, &end, 10);
    if (errno || *end || end == text)
        return text_value(text, len);
    return (struct db_value){.type = DB_INT, .i = i};
}

struct db_value postgres_value(uint32_t type, const char *text, int len)
{
    switch (type) {
    case TYPE_BOOL:
        return (struct db_value){.type = DB_BOOL, .b = text[0] == 't'};
    case TYPE_INT2:
    case TYPE_INT4:
    case TYPE_INT8:
    case TYPE_OID:
    case TYPE_NUMERIC:
        return integer_value(text, len);
    case TYPE_FLOAT4:
    case TYPE_FLOAT8:
        return (struct db_value){.type = DB_DOUBLE, .d = strtod(text, NULL)};
    default:
        return text_value(text, len);
    }
}

static struct db_value postgres_row_value(struct db_session *base, int i)
{
    struct postgres_session *s = postgres_session(base);

    assert(s->row && i < PQnfields(s->row) && PQntuples(s->row) > 0);
    if (PQgetisnull(s->row, 0, i))
        return (struct db_value){.type = DB_NULL};
    return postgres_value(PQftype(s->row, i), PQgetvalue(s->row, 0, i), PQgetlength(s->row, 0, i));
}

// ---- the table

static const char *const schemes[] = {"postgres", "postgresql", NULL};
static const char *const loops[] = {"ring", "threads", NULL};

const struct db_driver db_driver_postgres = {
    .name = "postgres",
    .schemes = schemes,
    .loops = loops,
    .params_help = "every connection parameter of libpq (host, port, dbname, user, sslmode, "
                   "options, service, target_session_attrs, ...)",
    .placeholder = DB_PLACE_DOLLAR,
    // Not BULK_PARALLEL: COPY by two sessions cannot FREEZE, and what that leaves to VACUUM costs
    // more than the second session gains (measured on PostgreSQL 15: 1.1 to 1.2 times the time).
    .caps = DB_CAP_TRANSACTIONS | DB_CAP_ROW_LOCKS | DB_CAP_PREPARED,
    .target_size = sizeof(struct postgres_target),
    .session_size = sizeof(struct postgres_session),
    .open = postgres_open,
    .close = postgres_close,
    .connect = postgres_connect,
    .disconnect = postgres_disconnect,
    .execute = postgres_execute,
    .query = postgres_query,
    .row_name = postgres_row_name,
    .row_value = postgres_row_value,
    .cancel = postgres_cancel,
    .hurry = postgres_hurry,
    .create_table = postgres_create_table,
    .bulk_begin = postgres_bulk_begin,
    .bulk_row = postgres_bulk_row,
    .bulk_end = postgres_bulk_end,
    .settle_table = postgres_settle_table,
    .describe = postgres_describe,
    .describe_place = postgres_describe_place,
    .sample = postgres_sample,
    .gauges = postgres_gauges,
    .wire = &postgres_wire_codec,
};
