// Making and filling tables.
//
// Rows go by COPY in text format, in pieces of PIECE bytes: binary was no faster (the server's work
// per row is elsewhere), and text fits any column type. Into an empty table it is COPY (FREEZE) in
// a transaction that truncates the table first, as pgbench does: rows are born frozen and VACUUM
// finds nothing to do. FREEZE needs that; where it cannot be had (rows are there, a foreign key
// points here, a partitioned table, another product), plain COPY follows.
//
// In that transaction a column with one value for all rows is left out of COPY and gets it as a
// default, which is dropped again before the end: a twentieth of the time.
#include "db/postgres.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/mem.h"

#define PIECE   (64 * 1024)
#define SLICE   (8 * 1024) // what libpq hands to the kernel at once
#define PEEK    4096       // of what the server says; an error comes after few notices
#define LOOK_MS 20

static void reset(struct db_result *result)
{
    *result = (struct db_result){.class = DB_OK};
}

// Failures after which another way is not tried.
static bool is_final(enum db_class class)
{
    return class == DB_LOST || class == DB_CANCELLED;
}

void postgres_bulk_release(struct postgres_bulk *bulk)
{
    str_release(&bulk->rows);
    free(bulk->columns);
    bulk->columns = NULL;
}

// A product that does not know the setting refuses it, and waits.
enum db_class postgres_hurry(struct db_session *base, bool on, struct db_result *result)
{
    struct postgres_session *s = postgres_session(base);

    return postgres_run(s, on ? "SET synchronous_commit = off" : "RESET synchronous_commit",
                        result);
}

enum db_class postgres_create_table(struct db_session *base, const struct db_table *table,
                                    bool with_key, struct db_result *result)
{
    struct postgres_session *s = postgres_session(base);
    struct str sql = STR_INIT;

    assert(table->fillfactor >= 0 && table->fillfactor <= 100);
    db_create_table_sql(table, with_key, "", &sql);
    if (table->fillfactor > 0)
        str_addf(&sql, " WITH (fillfactor=%d)", table->fillfactor);
    postgres_cancel_busy(s->cancel);
    postgres_run(s, sql.buf, result);
    postgres_cancel_idle(s->cancel);
    str_release(&sql);
    return result->class;
}

// ---- beginning

static enum db_class runf(struct postgres_session *s, struct db_result *result, const char *before,
                          const char *name, const char *after)
{
    struct str sql = STR_INIT;

    str_addf(&sql, "%s%s%s", before, name, after);
    postgres_run(s, sql.buf, result);
    str_release(&sql);
    return result->class;
}

static enum db_class start_copy(struct postgres_session *s, const struct db_table *table,
                                bool frozen, struct db_result *result)
{
    struct str sql = STR_INIT;
    const char *separator = "";

    str_addf(&sql, "COPY %s (", table->name);
    for (int i = 0; i < table->n_columns; i++) {
        if (s->bulk.columns[i].is_default)
            continue;
        str_addf(&sql, "%s%s", separator, table->columns[i].name);
        separator = ", ";
    }
    str_addf(&sql, ") FROM STDIN%s", frozen ? " WITH (FREEZE ON)" : "");
    PGresult *res = postgres_exec(s, sql.buf);
    str_release(&sql);
    if (PQresultStatus(res) != PGRES_COPY_IN) {
        postgres_fail(s, res, result);
        postgres_drain(s, result);
    }
    PQclear(res);
    return result->class;
}

static void roll_back(struct postgres_session *s)
{
    struct db_result ignored = {0};

    if (PQtransactionStatus(s->conn) == PQTRANS_INTRANS ||
        PQtransactionStatus(s->conn) == PQTRANS_INERROR)
        postgres_run(s, "ROLLBACK", &ignored);
}

// Gives the columns that COPY leaves out their default, or takes it from them.
static enum db_class set_defaults(struct postgres_session *s, bool on, struct db_result *result)
{
    const struct db_table *table = s->bulk.table;
    struct str sql = STR_INIT;
    int n = 0;

    str_addf(&sql, "ALTER TABLE %s", table->name);
    for (int i = 0; i < table->n_columns; i++) {
        const struct db_column *column = &table->columns[i];
        if (!s->bulk.columns[i].is_default)
            continue;
        str_addf(&sql, "%s ALTER COLUMN %s ", n++ ? "," : "", column->name);
        if (on)
            str_addf(&sql, "SET DEFAULT '%s'", column->constant);
        else
            str_add(&sql, "DROP DEFAULT");
    }
    if (n > 0)
        postgres_run(s, sql.buf, result);
    str_release(&sql);
    return result->class;
}

static void choose_defaults(struct postgres_bulk *bulk)
{
    int n = 0;

    for (int i = 0; i < bulk->table->n_columns; i++)
        n += bulk->columns[i].is_default = bulk->table->columns[i].constant != NULL;
    if (n == bulk->table->n_columns) // COPY needs one
        bulk->columns[0].is_default = false;
}

static void forget_defaults(struct postgres_bulk *bulk)
{
    for (int i = 0; i < bulk->table->n_columns; i++)
        bulk->columns[i].is_default = false;
}

// READ COMMITTED, because a snapshot kept from before the truncation forbids FREEZE. The lock comes
// before the look, so that nobody's row is truncated.
static enum db_class begin_frozen(struct postgres_session *s, const struct db_table *table,
                                  struct db_result *result)
{
    if (postgres_run(s, "BEGIN ISOLATION LEVEL READ COMMITTED", result) != DB_OK ||
        runf(s, result, "LOCK TABLE ", table->name, " IN ACCESS EXCLUSIVE MODE") != DB_OK ||
        runf(s, result, "SELECT 1 FROM ", table->name, " LIMIT 1") != DB_OK)
        goto failed;
    if (result->rows > 0) {
        db_fail(result, DB_OTHER, "", "the table holds rows");
        goto failed;
    }
    choose_defaults(&s->bulk);
    if (runf(s, result, "TRUNCATE ", table->name, "") == DB_OK &&
        set_defaults(s, true, result) == DB_OK && start_copy(s, table, true, result) == DB_OK)
        return DB_OK;
failed:
    forget_defaults(&s->bulk);
    roll_back(s);
    return result->class;
}

static bool is_blank_padded(const char *type)
{
    return strncasecmp(type, "char(", 5) == 0 || strncasecmp(type, "character(", 10) == 0;
}

enum db_class postgres_bulk_begin(struct db_session *base, const struct db_table *table,
                                  struct db_result *result)
{
    struct postgres_session *s = postgres_session(base);
    struct postgres_bulk *bulk = &s->bulk;

    bulk->table = table;
    bulk->n_rows = 0;
    bulk->own_transaction = false;
    bulk->columns = mem_resize(bulk->columns, (size_t)table->n_columns, sizeof(*bulk->columns));
    for (int i = 0; i < table->n_columns; i++)
        bulk->columns[i] =
            (struct postgres_bulk_column){.strip = is_blank_padded(table->columns[i].type)};
    str_clear(&bulk->rows);
    str_reserve(&bulk->rows, PIECE + 4096);

    postgres_cancel_busy(s->cancel);
    if (PQtransactionStatus(s->conn) == PQTRANS_IDLE) {
        bulk->own_transaction = begin_frozen(s, table, result) == DB_OK;
        if (!bulk->own_transaction && !is_final(result->class)) {
            reset(result);
            start_copy(s, table, false, result);
        }
    } else {
        start_copy(s, table, false, result);
    }
    if (result->class != DB_OK)
        postgres_cancel_idle(s->cancel);
    return result->class; // busy until bulk_end: the server waits for our rows
}

// ---- rows

static void add_text(struct str *out, const char *text, size_t len)
{
    size_t start = 0;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c != '\\' && c != '\n' && c != '\r' && c != '\t')
            continue;
        str_addn(out, text + start, i - start);
        str_addc(out, '\\');
        str_addc(out, c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : c);
        start = i + 1;
    }
    str_addn(out, text + start, len - start);
}

static size_t stripped(const char *text, size_t len)
{
    while (len > 0 && text[len - 1] == ' ')
        len--;
    return len;
}

// Integers straight into the buffer, where room was made for them.
static void add_value(struct str *out, const struct db_value *value, bool strip)
{
    char buf[DB_VALUE_TEXT_MAX];
    int len;

    if (value->type == DB_INT) {
        str_reserve(out, DB_VALUE_TEXT_MAX);
        out->len += (size_t)db_format_int(value->i, out->buf + out->len);
        return;
    }
    const char *text = db_value_text(value, buf, &len);
    if (!text)
        str_addn(out, "\\N", 2);
    else
        add_text(out, text, strip ? stripped(text, (size_t)len) : (size_t)len);
}

// Ends the load after a failure; the session is then as before bulk_begin. The first error stays.
static enum db_class give_up(struct postgres_session *s, struct db_result *result)
{
    struct db_result copy_end = {0};

    // Refused when the server has ended the COPY already: then its reason waits to be read.
    (void)PQputCopyEnd(s->conn, "the load was given up");
    postgres_drain(s, &copy_end);
    if (result->class == DB_OK) {
        if (copy_end.class == DB_OK)
            postgres_fail(s, NULL, &copy_end);
        *result = copy_end;
    }
    roll_back(s);
    s->bulk.own_transaction = false;
    result->in_transaction =
        PQtransactionStatus(s->conn) > PQTRANS_ACTIVE && PQstatus(s->conn) == CONNECTION_OK;
    postgres_cancel_idle(s->cancel);
    return result->class;
}

// During a COPY libpq looks for an error only at the end; a full disk would be noticed after all
// the rest was sent for nothing. So what the server says is looked at before libpq reads it, which
// it does whenever it cannot send all it has at once: from then on an error is not to be seen. That
// is why rows are sent in slices, each when the socket takes one. Under TLS nothing is to be had of
// this, and an error is noticed late.
enum said { SAID_NOTHING_BAD, SAID_MUCH, SAID_ERROR };

static enum said look(int fd)
{
    unsigned char buf[PEEK];

    ssize_t n = recv(fd, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return SAID_NOTHING_BAD;
    if (n <= 0)
        return SAID_ERROR; // the connection is gone
    // Messages are a type and a length that counts itself; notices may come before the error.
    for (size_t at = 0; at < (size_t)n;) {
        if (buf[at] == 'E')
            return SAID_ERROR;
        if (at + 5 > (size_t)n)
            break;
        size_t len = (size_t)buf[at + 1] << 24 | (size_t)buf[at + 2] << 16 |
                     (size_t)buf[at + 3] << 8 | buf[at + 4];
        at += 1 + len;
    }
    return n == PEEK ? SAID_MUCH : SAID_NOTHING_BAD;
}

// Waits until the socket takes more; true when the load is over instead.
static bool has_ended(struct postgres_session *s)
{
    struct pollfd pfd = {.fd = PQsocket(s->conn), .events = POLLIN | POLLOUT};

    if (postgres_cancel_asked(s->cancel))
        return true;
    if (PQsslInUse(s->conn) || PQgssEncInUse(s->conn))
        return false;
    for (;;) {
        int n = poll(&pfd, 1, LOOK_MS);
        if (n < 0 && errno != EINTR)
            return true;
        enum said said = look(pfd.fd);
        if (said == SAID_ERROR)
            return true;
        // A server that cannot get rid of its notices would not take our rows either.
        if (said == SAID_MUCH && !PQconsumeInput(s->conn))
            return true;
        if (n > 0 && (pfd.revents & POLLOUT))
            return false;
        pfd.events = POLLOUT; // a notice that waits to be read must not make this spin
    }
}

static int send_rows(struct postgres_session *s)
{
    struct str *rows = &s->bulk.rows;

    for (size_t at = 0; at < rows->len; at += SLICE) {
        size_t len = rows->len - at < SLICE ? rows->len - at : SLICE;
        if (has_ended(s) || PQputCopyData(s->conn, rows->buf + at, (int)len) != 1)
            return -1;
    }
    str_clear(rows);
    return 0;
}

enum db_class postgres_bulk_row(struct db_session *base, const struct db_value *values,
                                struct db_result *result)
{
    struct postgres_session *s = postgres_session(base);
    struct postgres_bulk *bulk = &s->bulk;

    for (int i = 0; i < bulk->table->n_columns; i++) {
        if (bulk->columns[i].is_default)
            continue;
        add_value(&bulk->rows, &values[i], bulk->columns[i].strip);
        str_addc(&bulk->rows, '\t');
    }
    bulk->rows.buf[bulk->rows.len - 1] = '\n';
    bulk->n_rows++;
    if (bulk->rows.len >= PIECE && send_rows(s) < 0)
        return give_up(s, result);
    result->in_transaction = bulk->own_transaction;
    return DB_OK;
}

enum db_class postgres_bulk_end(struct db_session *base, struct db_result *result)
{
    struct postgres_session *s = postgres_session(base);
    struct postgres_bulk *bulk = &s->bulk;

    if (send_rows(s) < 0 || PQputCopyEnd(s->conn, NULL) != 1)
        return give_up(s, result);
    postgres_drain(s, result);
    if (result->class == DB_OK && bulk->own_transaction && set_defaults(s, false, result) == DB_OK)
        postgres_run(s, "COMMIT", result);
    if (result->class != DB_OK)
        return give_up(s, result);
    bulk->own_transaction = false;
    result->in_transaction = PQtransactionStatus(s->conn) != PQTRANS_IDLE;
    result->rows = bulk->n_rows;
    postgres_cancel_idle(s->cancel);
    return DB_OK;
}

// ---- settling

static bool is_unknown_command(const struct db_result *result)
{
    return result->class == DB_SYNTAX || strcmp(result->native, "0A000") == 0;
}

// Freezes what plain COPY left unfrozen; after COPY (FREEZE) only the statistics are work.
// Products without VACUUM, or without ANALYZE, need none.
enum db_class postgres_settle_table(struct db_session *base, const struct db_table *table,
                                    struct db_result *result)
{
    struct postgres_session *s = postgres_session(base);

    postgres_cancel_busy(s->cancel);
    runf(s, result, "VACUUM (FREEZE, ANALYZE) ", table->name, "");
    if (is_unknown_command(result)) {
        reset(result);
        runf(s, result, "ANALYZE ", table->name, "");
    }
    if (is_unknown_command(result))
        reset(result);
    postgres_cancel_idle(s->cancel);
    return result->class;
}
