// Tables and their filling. The fastest way depends on the storage engine (mysql_engines.c): LOAD
// DATA LOCAL, fed from memory, or INSERTs of many rows. Both send chunks, all of one transaction
// where the engine has those; more than a few MiB in one statement gained nothing. Leaving out the
// checks of unique and foreign keys, which brings InnoDB of MariaDB 10.6 and later to load an empty
// table without undo records, cost more processor time than it saved, and locks others out.
//
// Without transactions what was loaded before a failure stays. LOCK TABLES would not change that,
// gained nothing, and leaves Aria (10.11) with a COUNT(*) of the first chunk alone.
#include <assert.h>
#include <errmsg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/units.h"
#include "db/mysqldb.h"

#define LOAD_CHUNK       (4u << 20)
#define INSERT_CHUNK     (1u << 20)
#define INSERT_CHUNK_MIN (8u << 10)
#define ROW_SLACK        1024 // room made before a row is written

// ---- LOAD DATA's file, in memory

static int infile_init(void **ret, const char *name, void *arg)
{
    struct mysqldb_session *s = arg;

    (void)name;
    *ret = s;
    if (!s || !s->bulk.sending)
        return 1;
    s->bulk.sent = 0;
    return 0;
}

static int infile_read(void *arg, char *out, unsigned size)
{
    struct mysqldb_bulk *bulk = &((struct mysqldb_session *)arg)->bulk;
    size_t left = bulk->chunk.len - bulk->sent;
    size_t n = left < size ? left : size;

    assert(bulk->sending && bulk->sent <= bulk->chunk.len);
    memcpy(out, bulk->chunk.buf + bulk->sent, n);
    bulk->sent += n;
    return (int)n;
}

static void infile_end(void *arg)
{
    (void)arg;
}

static int infile_error(void *arg, char *out, unsigned size)
{
    (void)arg;
    snprintf(out, size, "the server asked for a file, and gets none");
    return CR_UNKNOWN_ERROR;
}

void mysqldb_infile_install(MYSQL *mysql, struct mysqldb_session *session)
{
    mysql_set_local_infile_handler(mysql, infile_init, infile_read, infile_end, infile_error,
                                   session);
}

// ---- tables

// A lock of the server's by name: 64 characters at most, one set of names for all databases. A
// server that has no such locks is taken at its word.
enum db_class mysqldb_claim(struct db_session *base, const char *name, struct db_result *result)
{
    struct str sql = STR_INIT, got = STR_INIT;

    assert(!strpbrk(name, "'\\"));
    str_addf(&sql, "SELECT GET_LOCK(CONCAT('prony ', MD5(CONCAT(DATABASE(), '.%s'))), 1)", name);
    if (mysqldb_ask(mysqldb_session(base), sql.buf, 0, &got, NULL) && strcmp(got.buf, "0") == 0)
        db_fail(result, DB_BUSY, "", "another session fills the tables of %s", name);
    str_release(&sql);
    str_release(&got);
    return result->class;
}

enum db_class mysqldb_create_table(struct db_session *base, const struct db_table *table,
                                   bool with_key, struct db_result *result)
{
    static const char strict[] =
        "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_ENGINE_SUBSTITUTION')";
    struct mysqldb_session *s = mysqldb_session(base);
    struct db_result ignored = {0};
    struct str sql = STR_INIT, suffix = STR_INIT;

    // Else a server without the engine quietly takes another one.
    mysqldb_run(s, strict, &ignored);
    str_addf(&suffix, " ENGINE=%s", mysqldb_target(base)->engine_name);
    db_create_table_sql(table, with_key, suffix.buf, &sql);
    mysqldb_run(s, sql.buf, result);
    str_release(&sql);
    str_release(&suffix);
    return result->class;
}

struct settle_look {
    struct str error;
};

static void look_at_analyze(void *arg, int n, const char *const *names, const char *const *values)
{
    struct settle_look *look = arg;

    (void)names; // Table, Op, Msg_type, Msg_text
    if (n >= 4 && values[2] && strcasecmp(values[2], "error") == 0 && look->error.len == 0)
        str_add(&look->error, values[3] ? values[3] : "ANALYZE TABLE failed");
}

// ANALYZE TABLE tells of its failures as rows. An engine that has no such thing says so in a note.
enum db_class mysqldb_settle_table(struct db_session *base, const struct db_table *table,
                                   struct db_result *result)
{
    struct mysqldb_session *s = mysqldb_session(base);
    struct settle_look look = {.error = STR_INIT};
    struct str sql = STR_INIT;

    str_addf(&sql, "ANALYZE TABLE %s", table->name);
    mysqldb_text(s, sql.buf, sql.len, false, look_at_analyze, &look, result);
    if (result->class == DB_OK && look.error.len > 0)
        db_fail(result, strstr(look.error.buf, "doesn't exist") ? DB_UNDEFINED : DB_OTHER, "", "%s",
                look.error.buf);
    result->rows = 0;
    str_release(&sql);
    str_release(&look.error);
    return result->class;
}

// ---- loading

void mysqldb_bulk_release(struct mysqldb_session *s)
{
    str_release(&s->bulk.head);
    str_release(&s->bulk.chunk);
    free(s->bulk.table);
    s->bulk.table = NULL;
}

static bool has_transactions(const struct mysqldb_session *s)
{
    return (db_caps(s->base.target) & DB_CAP_TRANSACTIONS) != 0;
}

// Ends the load after a failure whose class and text stand in result.
static enum db_class abandon(struct mysqldb_session *s, struct db_result *result)
{
    struct db_result ignored = {0};

    assert(result->class != DB_OK);
    if (result->class != DB_LOST) {
        if (has_transactions(s))
            mysqldb_run(s, "ROLLBACK", &ignored);
        result->in_transaction = mysqldb_in_transaction(s);
    }
    mysqldb_bulk_release(s);
    return result->class;
}

static void add_columns(const struct db_table *table, struct str *out)
{
    for (int i = 0; i < table->n_columns; i++)
        str_addf(out, "%s%s", i ? "," : "", table->columns[i].name);
}

static void make_head(struct mysqldb_session *s, const struct db_table *table)
{
    struct mysqldb_bulk *bulk = &s->bulk;

    str_clear(&bulk->head);
    if (bulk->load_data) {
        // The standard format, said in full, and in numbers: what a backslash in quotes means
        // depends on sql_mode. Without a character set that of the database would be taken.
        str_addf(&bulk->head,
                 "LOAD DATA LOCAL INFILE 'prony' INTO TABLE %s CHARACTER SET %s "
                 "FIELDS TERMINATED BY 0x09 ENCLOSED BY '' ESCAPED BY 0x5c "
                 "LINES TERMINATED BY 0x0a STARTING BY '' (",
                 bulk->table, mysql_character_set_name(s->mysql));
        add_columns(table, &bulk->head);
        str_addc(&bulk->head, ')');
    } else {
        str_addf(&bulk->head, "INSERT INTO %s (", bulk->table);
        add_columns(table, &bulk->head);
        str_add(&bulk->head, ") VALUES ");
    }
}

static void chunk_clear(struct mysqldb_bulk *bulk)
{
    str_clear(&bulk->chunk);
    if (!bulk->load_data)
        str_addn(&bulk->chunk, bulk->head.buf, bulk->head.len);
    bulk->chunk_rows = 0;
}

// The server was to take every row as it is: LOCAL makes it skip rows and bend values with no more
// than a warning.
static enum db_class check_chunk(struct mysqldb_session *s, struct db_result *result)
{
    unsigned warnings = mysql_warning_count(s->mysql);

    if (warnings == 0 && result->rows == s->bulk.chunk_rows)
        return DB_OK;
    long long taken = (long long)result->rows, sent = (long long)s->bulk.chunk_rows;
    struct str text = STR_INIT, code = STR_INIT;
    mysqldb_ask(s, "SHOW WARNINGS LIMIT 1", 1, &code, NULL); // Level, Code, Message
    mysqldb_ask(s, "SHOW WARNINGS LIMIT 1", 2, &text, NULL);
    unsigned number = (unsigned)strtoul(code.buf, NULL, 10);
    enum db_class class = number ? mysqldb_class(number, NULL, text.buf, false) : DB_CONSTRAINT;
    db_fail(result, class == DB_OTHER ? DB_CONSTRAINT : class, code.buf,
            "loading %s: the server took %lld of %lld rows with %u warnings%s%s", s->bulk.table,
            taken, sent, warnings, text.len ? ": " : "", text.buf);
    str_release(&text);
    str_release(&code);
    return result->class;
}

static enum db_class send_chunk(struct mysqldb_session *s, struct db_result *result)
{
    struct mysqldb_bulk *bulk = &s->bulk;

    if (bulk->load_data) {
        bulk->sending = true;
        mysqldb_text(s, bulk->head.buf, bulk->head.len, false, NULL, NULL, result);
        bulk->sending = false;
    } else if (bulk->chunk_rows > 0) {
        bulk->chunk.buf[--bulk->chunk.len] = '\0'; // the comma behind the last row
        mysqldb_text(s, bulk->chunk.buf, bulk->chunk.len, false, NULL, NULL, result);
    }
    if (result->class == DB_OK)
        check_chunk(s, result);
    bulk->rows += bulk->chunk_rows;
    chunk_clear(bulk);
    return result->class;
}

static size_t insert_limit(struct mysqldb_session *s)
{
    struct str text = STR_INIT;
    int64_t packet = 0;

    mysqldb_ask(s, "SELECT @@max_allowed_packet", 0, &text, NULL);
    if (units_parse_int(text.buf, &packet, NULL) < 0)
        packet = 0;
    str_release(&text);
    if (packet / 2 < INSERT_CHUNK_MIN)
        return INSERT_CHUNK_MIN;
    return packet / 2 < INSERT_CHUNK ? (size_t)packet / 2 : INSERT_CHUNK;
}

// Sends an empty file, for whether LOAD DATA LOCAL may be used shows in no other way for sure: the
// server's switch, a proxy in between, another product. False: it may not.
static bool probe_load_data(struct mysqldb_session *s, struct db_result *result)
{
    struct db_result probe = {0};

    switch (send_chunk(s, &probe)) {
    case DB_OK:
        return true;
    case DB_DENIED:
    case DB_SYNTAX:
    case DB_OTHER:
        return false;
    default: // INSERT would fare no better
        *result = probe;
        return false;
    }
}

// INSERT would find only at the first chunk that the table is not there, or of another shape.
static enum db_class probe_table(struct mysqldb_session *s, const struct db_table *table,
                                 struct db_result *result)
{
    struct str sql = STR_INIT;

    str_add(&sql, "SELECT ");
    add_columns(table, &sql);
    str_addf(&sql, " FROM %s LIMIT 0", table->name);
    mysqldb_run(s, sql.buf, result);
    str_release(&sql);
    return result->class;
}

enum db_class mysqldb_bulk_begin(struct db_session *base, const struct db_table *table,
                                 struct db_result *result)
{
    struct mysqldb_session *s = mysqldb_session(base);
    struct mysqldb_bulk *bulk = &s->bulk;

    assert(!bulk->table && table->n_columns > 0);
    bulk->table = mem_strdup(table->name);
    bulk->n_columns = table->n_columns;
    bulk->rows = 0;
    if (has_transactions(s) && mysqldb_run(s, "START TRANSACTION", result) != DB_OK)
        return abandon(s, result);
    bulk->load_data = mysqldb_target(base)->engine.load_data;
    make_head(s, table);
    chunk_clear(bulk);
    if (bulk->load_data && !probe_load_data(s, result)) {
        if (result->class != DB_OK)
            return abandon(s, result);
        bulk->load_data = false;
        make_head(s, table);
        chunk_clear(bulk);
    }
    if (!bulk->load_data && probe_table(s, table, result) != DB_OK)
        return abandon(s, result);
    bulk->limit = bulk->load_data ? LOAD_CHUNK : insert_limit(s);
    str_reserve(&bulk->chunk, bulk->limit + ROW_SLACK);
    return DB_OK;
}

// Text for LOAD DATA: what ends a field or a line, and the sign itself, behind a backslash.
static void add_escaped(struct str *out, const char *text, size_t len)
{
    for (size_t done = 0; done < len;) {
        size_t plain = done;
        while (plain < len && text[plain] != '\\' && text[plain] != '\t' && text[plain] != '\n' &&
               text[plain] != '\0')
            plain++;
        str_addn(out, text + done, plain - done);
        if (plain < len) {
            str_addc(out, '\\');
            str_addc(out, text[plain] ? text[plain] : '0');
            plain++;
        }
        done = plain;
    }
}

static void add_load_value(struct str *out, const struct db_value *value)
{
    char buf[DB_VALUE_TEXT_MAX];
    int len = 0;

    switch (value->type) {
    case DB_NULL:
        str_addn(out, "\\N", 2);
        break;
    case DB_BOOL:
        str_addc(out, value->b ? '1' : '0');
        break;
    case DB_INT:
        len = db_format_int(value->i, buf);
        str_addn(out, buf, (size_t)len);
        break;
    case DB_DOUBLE: {
        const char *text = db_value_text(value, buf, &len);
        str_addn(out, text, (size_t)len);
        break;
    }
    case DB_TEXT:
        add_escaped(out, value->s, value->text_len);
        break;
    }
}

static void add_insert_value(MYSQL *mysql, struct str *out, const struct db_value *value)
{
    if (value->type == DB_NULL) {
        str_addn(out, "NULL", 4);
    } else if (value->type == DB_TEXT) {
        str_addc(out, '\'');
        str_reserve(out, 2 * (size_t)value->text_len + 1);
        out->len += mysql_real_escape_string(mysql, out->buf + out->len, value->s, value->text_len);
        str_addc(out, '\'');
    } else {
        add_load_value(out, value);
    }
}

enum db_class mysqldb_bulk_row(struct db_session *base, const struct db_value *values,
                               struct db_result *result)
{
    struct mysqldb_session *s = mysqldb_session(base);
    struct mysqldb_bulk *bulk = &s->bulk;
    int n = bulk->n_columns;

    assert(bulk->table);
    if (bulk->load_data) {
        for (int i = 0; i < n; i++) {
            add_load_value(&bulk->chunk, &values[i]);
            str_addc(&bulk->chunk, i < n - 1 ? '\t' : '\n');
        }
    } else {
        for (int i = 0; i < n; i++) {
            str_addc(&bulk->chunk, i == 0 ? '(' : ',');
            add_insert_value(s->mysql, &bulk->chunk, &values[i]);
        }
        str_addn(&bulk->chunk, "),", 2);
    }
    bulk->chunk_rows++;
    if (bulk->chunk.len >= bulk->limit && send_chunk(s, result) != DB_OK)
        return abandon(s, result);
    result->rows = 0;
    result->in_transaction = mysqldb_in_transaction(s);
    return DB_OK;
}

enum db_class mysqldb_bulk_end(struct db_session *base, struct db_result *result)
{
    struct mysqldb_session *s = mysqldb_session(base);
    struct mysqldb_bulk *bulk = &s->bulk;

    assert(bulk->table);
    if (bulk->chunk_rows > 0 && send_chunk(s, result) != DB_OK)
        return abandon(s, result);
    if (has_transactions(s) && mysqldb_run(s, "COMMIT", result) != DB_OK)
        return abandon(s, result);
    result->rows = bulk->rows;
    result->in_transaction = mysqldb_in_transaction(s);
    mysqldb_bulk_release(s);
    return DB_OK;
}
