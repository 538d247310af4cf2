// One suite for all drivers: what the contract in db/db.h promises, whatever the engine. Runs on
// null and sqlite; real servers are added by URL in the environment variable PRONY_TEST_TARGETS
// (separated by blanks). Every target runs once per protocol it distinguishes, and once more where
// its engine has a wire codec: through that (wire_loop.h). Tables are named after the process and
// dropped at the end. Cases ask for capabilities, never for a name.
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "db/db.h"
#include "db/driver.h"
#include "wire_loop.h"

#define SEED         20261204
#define N_STATEMENTS 8
#define N_MANY       20000

static const char *const protocol_names[] = {
    [DB_SIMPLE] = "simple", [DB_EXTENDED] = "extended", [DB_PREPARED] = "prepared"};

// What one case runs on.
struct subject {
    char *url;
    enum db_protocol protocol;
    bool by_wire;
    char table[64];
    // while a case runs:
    struct db_target *target;
    struct db_session *session;
    struct db_result result;
};

// ---- helpers

static void check(struct subject *s, enum db_class class, const char *what)
{
    if (class != DB_OK)
        fail_msg("%s: %s: %s %s", what, db_class_name(class), s->result.native, s->result.message);
    assert_int_equal(s->result.class, DB_OK);
    assert_string_equal(s->result.message, "");
    assert_string_equal(s->result.native, "");
}

// Text with every %T replaced by the case's table; the caller frees it.
static char *with_table(const struct subject *s, const char *sql)
{
    struct str out = STR_INIT;

    for (; *sql; sql++) {
        if (sql[0] == '%' && sql[1] == 'T') {
            str_add(&out, s->table);
            sql++;
        } else {
            str_addc(&out, *sql);
        }
    }
    return str_detach(&out);
}

static enum db_class query(struct subject *s, const char *sql, bool want_row)
{
    char *text = with_table(s, sql);
    enum db_class class = db_query(s->session, text, want_row, &s->result);

    free(text);
    return class;
}

static void query_ok(struct subject *s, const char *sql)
{
    check(s, query(s, sql, false), sql);
}

// Statements as the workload floor compiles them: parameters stand as ':' in the text here, and
// those within quotes are text (quotes are the simple protocol's; placeholders have none).
struct compiled {
    struct db_statement base;
    char *sql;
    char *pieces[16];
};

static void compile(struct subject *s, struct compiled *c, int index, const char *sql)
{
    struct str text = STR_INIT, piece = STR_INIT;
    char *source = with_table(s, sql);
    int n = 0;

    *c = (struct compiled){.base = {.index = index}};
    for (const char *p = source; *p; p++) {
        if (*p != ':') {
            str_addc(&piece, *p);
            if (*p != '\'')
                str_addc(&text, *p);
            continue;
        }
        c->pieces[n++] = str_detach(&piece);
        if (db_placeholder(s->target) == DB_PLACE_DOLLAR)
            str_addf(&text, "$%d", n);
        else
            str_addc(&text, '?');
    }
    c->pieces[n] = str_detach(&piece);
    c->sql = str_detach(&text);
    c->base.sql = c->sql;
    c->base.n_params = n;
    c->base.pieces = (const char **)c->pieces;
    c->base.kind = db_statement_kind(source);
    free(source);
}

static void compiled_release(struct compiled *c)
{
    for (int i = 0; i <= c->base.n_params; i++)
        free(c->pieces[i]);
    free(c->sql);
}

static enum db_class execute_once(struct subject *s, int index, const char *sql,
                                  const struct db_value *params, bool want_row)
{
    struct compiled c;

    compile(s, &c, index, sql);
    enum db_class class = db_execute(s->session, &c.base, params, want_row, &s->result);
    compiled_release(&c);
    return class;
}

static struct db_value int_value(int64_t i)
{
    return (struct db_value){.type = DB_INT, .i = i};
}

static struct db_value text_value(const char *s)
{
    return (struct db_value){.type = DB_TEXT, .s = s, .text_len = (uint32_t)strlen(s)};
}

// Column i of the kept row as text; a copy in out. NULL for NULL.
static const char *row_text(struct subject *s, int i, char out[256])
{
    char buf[DB_VALUE_TEXT_MAX];
    struct db_value value = db_row_value(s->session, i);
    int len;
    const char *text = db_value_text(&value, buf, &len);

    if (!text)
        return NULL;
    assert_true(len < 256);
    memcpy(out, text, (size_t)len);
    out[len] = '\0';
    return out;
}

static int64_t number(struct subject *s, const char *sql)
{
    char text[256];

    check(s, query(s, sql, true), sql);
    assert_int_equal(s->result.rows, 1);
    return strtoll(row_text(s, 0, text), NULL, 10);
}

static const struct db_column columns[] = {
    {"id", "int", true},
    {"big", "bigint", false},
    {"real_number", "double precision", false},
    {"words", "varchar(200)", false},
};

static struct db_table table_of(struct subject *s)
{
    return (struct db_table){.name = s->table,
                             .columns = columns,
                             .n_columns = 4,
                             .primary_key = "id",
                             .fillfactor = 100};
}

static void make_table(struct subject *s)
{
    struct db_table table = table_of(s);

    check(s, db_create_table(s->session, &table, true, &s->result), "create table");
}

static void load_rows(struct subject *s, int n)
{
    struct db_table table = table_of(s);

    make_table(s);
    check(s, db_bulk_begin(s->session, &table, &s->result), "bulk begin");
    for (int i = 1; i <= n; i++) {
        struct db_value row[4] = {int_value(i),
                                  int_value(-i),
                                  {.type = DB_DOUBLE, .d = i / 2.0},
                                  text_value("some words")};
        check(s, db_bulk_row(s->session, row, &s->result), "bulk row");
    }
    check(s, db_bulk_end(s->session, &s->result), "bulk end");
    assert_int_equal(s->result.rows, n);
}

static bool has(const struct subject *s, enum db_cap cap)
{
    return db_caps(s->target) & cap;
}

static struct db_session *connect_again(struct subject *s, int client)
{
    struct db_session *session = NULL;

    check(s, db_connect(s->target, client, &session, &s->result), "connect");
    return session;
}

static int setup(void **state)
{
    struct subject *s = *state;
    struct db_open_options options = {.clock = &clock_system, .seed = SEED, .create_missing = true};
    struct err err = ERR_INIT;

    if (db_open(&s->target, s->url, &options, &err) < 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    if (s->by_wire)
        wire_loop_wrap(s->target);
    db_set_statements(s->target, N_STATEMENTS, s->protocol);
    if (db_connect(s->target, 0, &s->session, &s->result) != DB_OK) {
        print_error("%s\n", s->result.message);
        return -1;
    }
    char *drop = with_table(s, "DROP TABLE IF EXISTS %T");
    int r = db_query(s->session, drop, false, &s->result) == DB_OK ? 0 : -1;
    free(drop);
    return r;
}

static int teardown(void **state)
{
    struct subject *s = *state;
    char *drop = with_table(s, "DROP TABLE IF EXISTS %T");

    // A case that failed may have left the session anywhere.
    db_disconnect(s->session);
    s->session = NULL;
    int r = -1;
    if (db_connect(s->target, 0, &s->session, &s->result) == DB_OK &&
        db_query(s->session, drop, false, &s->result) == DB_OK)
        r = 0;
    free(drop);
    db_disconnect(s->session);
    db_close(s->target);
    s->session = NULL;
    return r;
}

// ---- records

static void facts_are_filled(void **state)
{
    struct subject *s = *state;
    struct db_facts facts;

    db_describe(s->session, &facts);
    assert_true(facts.engine[0] && facts.version[0]);
    assert_int_not_equal(strncmp(facts.version, "unknown", 7), 0);
    assert_true(facts.max_connections >= 0 && facts.connections_used >= 0);
    assert_false(facts.read_only);
    assert_true(facts.data_bytes >= -1 && facts.cache_bytes >= -1);
    assert_true(has(s, DB_CAP_HOLLOW) || facts.settings.n > 0);
    for (size_t i = 0; i < facts.settings.n; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(facts.settings.items[i].key, facts.settings.items[j].key);
    if (facts.data_bytes < 0) // then the reason is given
        assert_int_equal(strncmp(kvs_get(&facts.settings, "data_bytes"), "unknown: ", 9), 0);
    if (facts.cache_bytes < 0)
        assert_int_equal(strncmp(kvs_get(&facts.settings, "cache_bytes"), "unknown: ", 9), 0);
    db_facts_release(&facts);
    assert_int_equal(query(s, "SELECT 1", true), DB_OK); // it left the session usable
    assert_false(s->result.in_transaction);
}

static void counters_are_numbers_that_grow(void **state)
{
    struct subject *s = *state;
    struct kvs first = KVS_INIT, second = KVS_INIT;

    db_sample(s->session, &first);
    if (!has(s, DB_CAP_HOLLOW))
        load_rows(s, 1000);
    db_sample(s->session, &second);
    assert_true(first.n > 0);
    for (size_t i = 0; i < first.n; i++) {
        char *end;
        const char *later = kvs_get(&second, first.items[i].key);
        double a = strtod(first.items[i].value, &end);
        assert_true(*end == '\0' && a >= 0);
        assert_non_null(later);
        if (strtod(later, NULL) < a)
            fail_msg("%s went from %s to %s", first.items[i].key, first.items[i].value, later);
    }
    kvs_release(&first);
    kvs_release(&second);
}

// ---- rows

static void query_keeps_the_first_row(void **state)
{
    struct subject *s = *state;
    char text[256];

    check(s,
          query(s, "SELECT 42 AS answer, 'it''s' AS quoted, NULL AS no_value, 'x' AS other", true),
          "query");
    assert_int_equal(s->result.rows, 1);
    assert_int_equal(s->result.n_columns, 4);
    assert_string_equal(db_row_name(s->session, 0), "answer");
    assert_string_equal(db_row_name(s->session, 2), "no_value");
    assert_string_equal(row_text(s, 0, text), "42");
    assert_string_equal(row_text(s, 1, text), "it's");
    assert_null(row_text(s, 2, text));
    assert_int_equal(db_row_value(s->session, 2).type, DB_NULL);
    assert_string_equal(row_text(s, 3, text), "x");
    check(s, query(s, "SELECT 1", false), "query");
    assert_int_equal(s->result.rows, 1);
}

static void add_row(void *arg, int n_columns, const char *const *names, const char *const *values)
{
    struct str *out = arg;

    for (int i = 0; i < n_columns; i++)
        str_addf(out, "%s=%s ", names[i], values[i] ? values[i] : "NULL");
    str_addc(out, '\n');
}

static void query_each_gives_every_row(void **state)
{
    struct subject *s = *state;
    struct str rows = STR_INIT;

    make_table(s);
    query_ok(s, "INSERT INTO %T VALUES (1, 10, 0.5, 'a'), (2, NULL, NULL, NULL), (3, -3, 2, '')");
    assert_int_equal(s->result.rows, 3);
    char *sql = with_table(s, "SELECT id, big, words FROM %T ORDER BY id");
    check(s, db_query_each(s->session, sql, add_row, &rows, &s->result), "query each");
    free(sql);
    assert_int_equal(s->result.rows, 3);
    assert_string_equal(rows.buf, "id=1 big=10 words=a \nid=2 big=NULL words=NULL \n"
                                  "id=3 big=-3 words= \n");
    str_clear(&rows);
    sql = with_table(s, "SELECT id FROM %T WHERE id > 100");
    check(s, db_query_each(s->session, sql, add_row, &rows, &s->result), "query each");
    free(sql);
    assert_int_equal(s->result.rows, 0);
    assert_string_equal(rows.buf, "");
    str_release(&rows);
}

static void many_rows_are_counted_whether_kept_or_not(void **state)
{
    struct subject *s = *state;
    struct compiled c;
    char text[256];

    load_rows(s, N_MANY);
    compile(s, &c, 0, "SELECT id, words FROM %T ORDER BY id");
    for (int want_row = 0; want_row < 2; want_row++) {
        check(s, db_execute(s->session, &c.base, NULL, want_row, &s->result), c.sql);
        assert_int_equal(s->result.rows, N_MANY);
    }
    assert_int_equal(s->result.n_columns, 2);
    assert_string_equal(row_text(s, 0, text), "1");
    assert_string_equal(row_text(s, 1, text), "some words");
    assert_string_equal(db_row_name(s->session, 1), "words");
    check(s, execute_once(s, 1, "SELECT id FROM %T WHERE id < 0", NULL, true), "none");
    assert_int_equal(s->result.rows, 0);
    compiled_release(&c);
}

// ---- parameters

static void parameters_arrive_as_they_were(void **state)
{
    struct subject *s = *state;
    static const char words[] = "it's \"quoted\", \xc3\xa9\xc2\xb5 %_;-- /* : ? $1";
    // In the simple protocol the parameter becomes part of the text as it is.
    static const char quoted[] = "it''s \"quoted\", \xc3\xa9\xc2\xb5 %_;-- /* : ? $1";
    static const struct {
        int64_t big;
        double number;
    } cases[] = {
        {0, 0},
        {INT64_MAX, 1.5},
        {INT64_MIN, -0.1},
        {INT_MAX, 1e100},
        {-1, 3.141592653589793},
        {4294967296, 0.000001},
        {1000000007, 123456789.125},
    };
    struct compiled insert, select;
    char text[256];

    make_table(s);
    compile(s, &insert, 0, "INSERT INTO %T (id, big, real_number, words) VALUES (:, :, :, ':')");
    compile(s, &select, 1, "SELECT big, real_number, words FROM %T WHERE id = :");
    assert_int_equal(insert.base.n_params, 4);
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct db_value params[4] = {int_value((int64_t)i),
                                     int_value(cases[i].big),
                                     {.type = DB_DOUBLE, .d = cases[i].number},
                                     text_value(s->protocol == DB_SIMPLE ? quoted : words)};
        // -2^63 as text is minus and a number too large by one: engines disagree, not drivers.
        if (s->protocol == DB_SIMPLE && cases[i].big == INT64_MIN)
            params[1].i = -INT64_MAX;
        check(s, db_execute(s->session, &insert.base, params, false, &s->result), insert.sql);
        assert_int_equal(s->result.rows, 1);
        check(s, db_execute(s->session, &select.base, params, true, &s->result), select.sql);
        assert_int_equal(s->result.rows, 1);
        assert_int_equal(s->result.n_columns, 3);
        assert_int_equal(strtoll(row_text(s, 0, text), NULL, 10), params[1].i);
        assert_true(strtod(row_text(s, 1, text), NULL) == cases[i].number);
        assert_string_equal(row_text(s, 2, text), words);
    }
    compiled_release(&insert);
    compiled_release(&select);
}

static void null_and_empty_and_bool_parameters_arrive(void **state)
{
    struct subject *s = *state;
    struct compiled insert;
    char text[256];

    make_table(s);
    compile(s, &insert, 0, "INSERT INTO %T (id, big, real_number, words) VALUES (:, :, :, :)");
    struct db_value params[4] = {
        int_value(1), {.type = DB_NULL}, {.type = DB_NULL}, {.type = DB_NULL}};
    check(s, db_execute(s->session, &insert.base, params, false, &s->result), insert.sql);
    check(s, query(s, "SELECT big, real_number, words FROM %T WHERE id = 1", true), "select");
    for (int i = 0; i < 3; i++)
        assert_null(row_text(s, i, text));
    if (s->protocol != DB_SIMPLE) { // the same handle, other types
        params[0] = int_value(2);
        params[1] = int_value(7);
        params[2] = int_value(3); // a whole number for a double
        params[3] = text_value("");
        check(s, db_execute(s->session, &insert.base, params, false, &s->result), insert.sql);
        check(s, query(s, "SELECT big, real_number, words FROM %T WHERE id = 2", true), "select");
        assert_string_equal(row_text(s, 0, text), "7");
        assert_true(strtod(row_text(s, 1, text), NULL) == 3);
        assert_string_equal(row_text(s, 2, text), "");
    }
    compiled_release(&insert);
    check(s,
          execute_once(s, 1, "SELECT id FROM %T WHERE id = 1 AND : = :",
                       (struct db_value[]){int_value(5), int_value(5)}, true),
          "comparison of two parameters");
    assert_int_equal(s->result.rows, 1);
}

static void long_text_passes(void **state)
{
    struct subject *s = *state;
    char words[201];

    make_table(s);
    memset(words, 'w', 200);
    words[200] = '\0';
    struct db_value params[2] = {int_value(1), text_value(words)};
    check(s, execute_once(s, 0, "INSERT INTO %T (id, words) VALUES (:, ':')", params, false),
          "long");
    char text[256];
    check(s, query(s, "SELECT words FROM %T", true), "select");
    assert_string_equal(row_text(s, 0, text), words);
}

static void affected_rows_are_counted(void **state)
{
    struct subject *s = *state;
    struct db_value params[1] = {int_value(40)};

    load_rows(s, 100);
    check(s, execute_once(s, 0, "UPDATE %T SET big = big + 1000 WHERE id > :", params, false),
          "update");
    assert_int_equal(s->result.rows, 60);
    check(s, execute_once(s, 1, "DELETE FROM %T WHERE id > :", params, false), "delete");
    assert_int_equal(s->result.rows, 60);
    check(s, execute_once(s, 2, "UPDATE %T SET big = 0 WHERE id > :", params, false), "update");
    assert_int_equal(s->result.rows, 0);
    assert_int_equal(number(s, "SELECT count(*) FROM %T"), 40);
}

// ---- failures

static void failure_has_its_class_and_the_session_goes_on(void **state)
{
    struct subject *s = *state;
    static const struct {
        const char *sql;
        enum db_class class;
    } cases[] = {
        {"SELECT a FROM %T_that_is_not_there", DB_UNDEFINED},
        {"UPDATE %T_that_is_not_there SET a = 1", DB_UNDEFINED},
        {"SELECT no_such_column FROM %T", DB_UNDEFINED},
        {"SELEC 1", DB_SYNTAX},
        {"SELECT FROM WHERE", DB_SYNTAX},
        {"INSERT INTO %T (id) VALUES (1)", DB_CONSTRAINT},
        {"UPDATE %T SET id = NULL", DB_CONSTRAINT},
    };

    load_rows(s, 1);
    for (int by_query = 0; by_query < 2; by_query++)
        for (size_t i = 0; i < ARR_LEN(cases); i++) {
            enum db_class class = by_query ? query(s, cases[i].sql, false)
                                           : execute_once(s, (int)i, cases[i].sql, NULL, false);
            if (class != cases[i].class)
                fail_msg("%s: %s %s %s", cases[i].sql, db_class_name(class), s->result.native,
                         s->result.message);
            assert_true(s->result.message[0] && s->result.native[0]);
            assert_null(strchr(s->result.message, '\n'));
            assert_false(s->result.in_transaction);
            assert_false(db_session_lost(s->session));
            assert_int_equal(number(s, "SELECT count(*) FROM %T"), 1);
        }
    // A handle whose statement failed works when the reason is gone.
    struct compiled c;
    compile(s, &c, 7, "INSERT INTO %T (id) VALUES (:)");
    struct db_value id = int_value(1);
    assert_int_equal(db_execute(s->session, &c.base, &id, false, &s->result), DB_CONSTRAINT);
    id = int_value(2);
    check(s, db_execute(s->session, &c.base, &id, false, &s->result), c.sql);
    compiled_release(&c);
}

static void transaction_state_is_known(void **state)
{
    struct subject *s = *state;
    static const struct {
        const char *sql;
        bool in_transaction;
    } steps[] = {
        {"SELECT 1", false}, {"BEGIN", true},     {"SELECT 1", true},  {"COMMIT", false},
        {"BEGIN", true},     {"ROLLBACK", false}, {"SELECT 1", false},
    };

    for (int by_query = 0; by_query < 2; by_query++)
        for (size_t i = 0; i < ARR_LEN(steps); i++) {
            check(s,
                  by_query ? query(s, steps[i].sql, false)
                           : execute_once(s, (int)i, steps[i].sql, NULL, false),
                  steps[i].sql);
            assert_int_equal(s->result.in_transaction, steps[i].in_transaction);
        }
}

static void failed_transaction_ends_by_rollback(void **state)
{
    struct subject *s = *state;

    load_rows(s, 1);
    query_ok(s, "BEGIN");
    query_ok(s, "INSERT INTO %T (id) VALUES (2)");
    assert_true(s->result.in_transaction);
    assert_int_equal(query(s, "INSERT INTO %T (id) VALUES (1)", false), DB_CONSTRAINT);
    assert_true(s->result.in_transaction);
    query_ok(s, "ROLLBACK");
    assert_false(s->result.in_transaction);
    assert_int_equal(number(s, "SELECT count(*) FROM %T"), 1);
}

static void rollback_undoes_and_commit_keeps(void **state)
{
    struct subject *s = *state;

    make_table(s);
    query_ok(s, "BEGIN");
    query_ok(s, "INSERT INTO %T (id) VALUES (1)");
    query_ok(s, "ROLLBACK");
    query_ok(s, "BEGIN");
    query_ok(s, "INSERT INTO %T (id) VALUES (2)");
    struct db_session *mine = s->session, *other = connect_again(s, 1);
    query_ok(s, "COMMIT");
    s->session = other;
    assert_int_equal(number(s, "SELECT count(*) FROM %T"), 1);
    assert_int_equal(number(s, "SELECT min(id) FROM %T"), 2);
    s->session = mine;
    db_disconnect(other);
}

struct cross {
    struct subject s; // a copy with a session of its own
    enum db_class class;
};

static void *update_second_row(void *arg)
{
    struct cross *cross = arg;

    cross->class = query(&cross->s, "UPDATE %T SET big = 2 WHERE id = 2", false);
    if (cross->s.result.in_transaction)
        query(&cross->s, "ROLLBACK", false);
    return NULL;
}

static void crossed_locks_are_worth_a_retry(void **state)
{
    struct subject *s = *state;
    pthread_t thread;

    load_rows(s, 2);
    struct cross cross = {.s = *s};
    cross.s.session = connect_again(s, 1);
    query_ok(&cross.s, "BEGIN");
    query_ok(&cross.s, "UPDATE %T SET big = 1 WHERE id = 1");
    query_ok(s, "BEGIN");
    query_ok(s, "UPDATE %T SET big = 1 WHERE id = 2");
    assert_int_equal(pthread_create(&thread, NULL, update_second_row, &cross), 0);
    enum db_class class = query(s, "UPDATE %T SET big = 2 WHERE id = 1", false);
    if (class == DB_OK || s->result.in_transaction)
        query_ok(s, "ROLLBACK"); // lets the other go on
    pthread_join(thread, NULL);
    if (!(db_class_is_retry(class) && cross.class == DB_OK) &&
        !(class == DB_OK && db_class_is_retry(cross.class)))
        fail_msg("%s and %s", db_class_name(class), db_class_name(cross.class));
    db_disconnect(cross.s.session);
}

static void *cancel_soon(void *session)
{
    clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 300 * NS_PER_MS);
    db_cancel(session);
    return NULL;
}

static void running_statement_is_cancelled_from_another_thread(void **state)
{
    struct subject *s = *state;
    pthread_t thread;

    load_rows(s, N_MANY);
    int64_t start_ns = clock_now_ns(&clock_system);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, s->session), 0);
    // Would take hours.
    enum db_class class =
        query(s, "SELECT count(*) FROM %T a, %T b, %T c WHERE a.big + b.big + c.big > 0", false);
    pthread_join(thread, NULL);
    assert_true(clock_now_ns(&clock_system) - start_ns < 30 * NS_PER_S);
    assert_true(class == DB_CANCELLED || class == DB_LOST);
    assert_int_equal(db_session_lost(s->session), class == DB_LOST);
    if (class == DB_LOST) {
        db_disconnect(s->session);
        s->session = NULL;
        s->session = connect_again(s, 0);
    }
    assert_int_equal(number(s, "SELECT count(*) FROM %T"), N_MANY);
}

// ---- loading

static void loaded_rows_are_what_was_given(void **state)
{
    struct subject *s = *state;
    static const char *const words[] = {
        "plain",
        "",
        "it's",
        "tab\there",
        "line\nbreak",
        "back\\slash \\N \\.",
        "\xc3\xa9\xc2\xb5",
        "comma, \"quoted\"",
        "\r",
        NULL,
    };
    static const int64_t numbers[] = {0, -1, INT64_MAX, INT64_MIN, 42, 7, 8, 9, 10, 11};
    enum { N = ARR_LEN(words) };
    struct db_table table = table_of(s);

    make_table(s);
    check(s, db_bulk_begin(s->session, &table, &s->result), "bulk begin");
    for (int i = 0; i < N; i++) {
        struct db_value row[4] = {int_value(i),
                                  int_value(numbers[i]),
                                  {.type = DB_DOUBLE, .d = i / 3.0},
                                  words[i] ? text_value(words[i])
                                           : (struct db_value){.type = DB_NULL}};
        check(s, db_bulk_row(s->session, row, &s->result), "bulk row");
    }
    check(s, db_bulk_end(s->session, &s->result), "bulk end");
    assert_int_equal(s->result.rows, N);
    assert_false(s->result.in_transaction);
    check(s, db_settle_table(s->session, &table, &s->result), "settle");
    for (int i = 0; i < N; i++) {
        char text[256],
            *sql = mem_printf("SELECT big, real_number, words FROM %%T WHERE id = %d", i);
        check(s, query(s, sql, true), sql);
        free(sql);
        assert_int_equal(s->result.rows, 1);
        assert_int_equal(strtoll(row_text(s, 0, text), NULL, 10), numbers[i]);
        assert_true(fabs(strtod(row_text(s, 1, text), NULL) - i / 3.0) < 1e-12);
        const char *got = row_text(s, 2, text);
        if (words[i])
            assert_string_equal(got, words[i]);
        else
            assert_null(got);
    }
}

static void load_without_rows_is_fine(void **state)
{
    struct subject *s = *state;
    struct db_table table = table_of(s);

    if (!has(s, DB_CAP_HOLLOW))
        make_table(s);
    check(s, db_bulk_begin(s->session, &table, &s->result), "bulk begin");
    check(s, db_bulk_end(s->session, &s->result), "bulk end");
    assert_int_equal(s->result.rows, 0);
    if (!has(s, DB_CAP_HOLLOW))
        assert_int_equal(number(s, "SELECT count(*) FROM %T"), 0);
}

static void load_that_fails_leaves_nothing(void **state)
{
    struct subject *s = *state;
    struct db_table table = table_of(s);
    enum db_class class = DB_OK;

    make_table(s);
    check(s, db_bulk_begin(s->session, &table, &s->result), "bulk begin");
    for (int i = 0; i < 1000 && class == DB_OK; i++) {
        struct db_value row[4] = {
            int_value(i < 500 ? i : 1), {.type = DB_NULL}, {.type = DB_NULL}, {.type = DB_NULL}};
        class = db_bulk_row(s->session, row, &s->result);
    }
    if (class == DB_OK) // an engine that tells at the end
        class = db_bulk_end(s->session, &s->result);
    assert_int_equal(class, DB_CONSTRAINT);
    assert_int_equal(number(s, "SELECT count(*) FROM %T"), 0);
    assert_false(s->result.in_transaction);
}

static void load_into_nothing_fails_and_the_session_goes_on(void **state)
{
    struct subject *s = *state;
    struct db_table table = table_of(s);

    enum db_class class = db_bulk_begin(s->session, &table, &s->result);
    if (class == DB_OK)
        class = db_bulk_end(s->session, &s->result);
    assert_int_equal(class, DB_UNDEFINED);
    check(s, query(s, "SELECT 1", true), "query");
}

static void table_is_not_made_twice(void **state)
{
    struct subject *s = *state;
    struct db_table table = table_of(s);

    make_table(s);
    assert_int_not_equal(db_create_table(s->session, &table, true, &s->result), DB_OK);
    assert_false(s->result.in_transaction);
    check(s, query(s, "SELECT 1", true), "query");
}

static void key_can_come_after_the_rows(void **state)
{
    struct subject *s = *state;
    struct db_table table = table_of(s);

    check(s, db_create_table(s->session, &table, false, &s->result), "create table");
    query_ok(s, "INSERT INTO %T (id) VALUES (1)");
    query_ok(s, "ALTER TABLE %T ADD PRIMARY KEY (id)");
    assert_int_equal(query(s, "INSERT INTO %T (id) VALUES (1)", false), DB_CONSTRAINT);
}

// ---- sessions

static void handles_are_made_anew_after_a_reconnect(void **state)
{
    struct subject *s = *state;
    struct compiled c;

    if (has(s, DB_CAP_HOLLOW))
        compile(s, &c, 3, "UPDATE %T SET big = : WHERE id = :");
    else
        compile(s, &c, 3, "SELECT 20 + :, 1 + :");
    struct db_value params[2] = {int_value(20), int_value(22)};
    for (int i = 0; i < 3; i++) {
        for (int n = 0; n < 3; n++) {
            check(s, db_execute(s->session, &c.base, params, false, &s->result), c.sql);
            assert_int_equal(s->result.rows, 1);
        }
        db_disconnect(s->session);
        s->session = NULL;
        s->session = connect_again(s, 0);
    }
    compiled_release(&c);
}

static void sessions_do_not_share_transactions(void **state)
{
    struct subject *s = *state;
    struct db_session *mine = s->session, *other = connect_again(s, 1);

    query_ok(s, "BEGIN");
    s->session = other;
    query_ok(s, "SELECT 1");
    assert_false(s->result.in_transaction);
    s->session = mine;
    query_ok(s, "SELECT 1");
    assert_true(s->result.in_transaction);
    db_disconnect(other);
}

static void open_transaction_ends_with_the_session(void **state)
{
    struct subject *s = *state;

    make_table(s);
    query_ok(s, "BEGIN");
    query_ok(s, "INSERT INTO %T (id) VALUES (1)");
    db_disconnect(s->session);
    s->session = NULL;
    s->session = connect_again(s, 0);
    assert_int_equal(number(s, "SELECT count(*) FROM %T"), 0);
}

static void display_has_no_password(void **state)
{
    struct subject *s = *state;
    struct url url;
    struct err err = ERR_INIT;

    assert_int_equal(url_parse(&url, s->url, &err), 0);
    assert_true(db_display(s->target)[0]);
    if (url.password && strlen(url.password) > 3)
        assert_null(strstr(db_display(s->target), url.password));
    url_release(&url);
}

// ---- every case on every target

// A case runs on targets that have all of `needs` and none of `excludes`.
#define CASE(name, needs, excludes)  \
    {                                \
#name, name, needs, excludes \
    }
static const struct {
    const char *name;
    CMUnitTestFunction function;
    unsigned needs, excludes;
} cases[] = {
    CASE(facts_are_filled, 0, 0),
    CASE(counters_are_numbers_that_grow, 0, 0),
    CASE(query_keeps_the_first_row, 0, DB_CAP_HOLLOW),
    CASE(query_each_gives_every_row, 0, DB_CAP_HOLLOW),
    CASE(many_rows_are_counted_whether_kept_or_not, 0, DB_CAP_HOLLOW),
    CASE(parameters_arrive_as_they_were, 0, DB_CAP_HOLLOW),
    CASE(null_and_empty_and_bool_parameters_arrive, 0, DB_CAP_HOLLOW),
    CASE(long_text_passes, 0, DB_CAP_HOLLOW),
    CASE(affected_rows_are_counted, 0, DB_CAP_HOLLOW),
    CASE(failure_has_its_class_and_the_session_goes_on, 0, DB_CAP_HOLLOW),
    CASE(transaction_state_is_known, DB_CAP_TRANSACTIONS, 0),
    CASE(failed_transaction_ends_by_rollback, DB_CAP_TRANSACTIONS, DB_CAP_HOLLOW),
    CASE(rollback_undoes_and_commit_keeps, DB_CAP_TRANSACTIONS, DB_CAP_HOLLOW),
    CASE(crossed_locks_are_worth_a_retry, DB_CAP_TRANSACTIONS | DB_CAP_ROW_LOCKS, DB_CAP_HOLLOW),
    CASE(running_statement_is_cancelled_from_another_thread, 0, DB_CAP_HOLLOW),
    CASE(loaded_rows_are_what_was_given, 0, DB_CAP_HOLLOW),
    CASE(load_without_rows_is_fine, 0, 0),
    CASE(load_that_fails_leaves_nothing, DB_CAP_TRANSACTIONS, DB_CAP_HOLLOW),
    CASE(load_into_nothing_fails_and_the_session_goes_on, 0, DB_CAP_HOLLOW),
    CASE(table_is_not_made_twice, 0, DB_CAP_HOLLOW),
    CASE(key_can_come_after_the_rows, 0, DB_CAP_HOLLOW | DB_CAP_KEY_FIRST),
    CASE(handles_are_made_anew_after_a_reconnect, 0, 0),
    CASE(sessions_do_not_share_transactions, DB_CAP_TRANSACTIONS, 0),
    CASE(open_transaction_ends_with_the_session, DB_CAP_TRANSACTIONS, DB_CAP_HOLLOW),
    CASE(display_has_no_password, 0, 0),
};

struct plan {
    struct CMUnitTest *items;
    size_t n, cap;
    struct subject **subjects;
    size_t n_subjects, cap_subjects;
};

static void add_subject(struct plan *plan, const struct db_target *target, const char *url,
                        enum db_protocol protocol, bool by_wire)
{
    struct subject *s = mem_calloc(1, sizeof(*s));
    unsigned caps = db_caps(target);

    s->url = mem_strdup(url);
    s->protocol = protocol;
    s->by_wire = by_wire;
    snprintf(s->table, sizeof(s->table), "prony_suite_%d", (int)getpid());
    *ARR_PUSH(plan->subjects, plan->n_subjects, plan->cap_subjects) = s;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        if ((caps & cases[i].needs) != cases[i].needs || (caps & cases[i].excludes))
            continue;
        *ARR_PUSH(plan->items, plan->n, plan->cap) = (struct CMUnitTest){
            .name = mem_printf("%s: %s, %s%s", cases[i].name, db_display(target),
                               protocol_names[protocol], by_wire ? ", by wire" : ""),
            .test_func = cases[i].function,
            .setup_func = setup,
            .teardown_func = teardown,
            .initial_state = s,
        };
    }
}

static void add_target(struct plan *plan, const char *url)
{
    struct db_open_options options = {.clock = &clock_system, .create_missing = true};
    struct db_target *target;
    struct err err = ERR_INIT;

    if (db_open(&target, url, &options, &err) < 0) {
        print_error("%s\n", err.text);
        exit(1);
    }
    int first = db_caps(target) & DB_CAP_PREPARED ? DB_SIMPLE : DB_PREPARED;
    for (int by_wire = 0; by_wire <= (target->driver->wire != NULL); by_wire++)
        for (int protocol = first; protocol <= DB_PREPARED; protocol++)
            add_subject(plan, target, url, (enum db_protocol)protocol, by_wire);
    db_close(target);
}

int main(void)
{
    struct plan plan = {0};
    char dir[] = "/tmp/test_driver_suite_XXXXXX";

    if (!mkdtemp(dir))
        return 1;
    char *path = mem_printf("%s/suite.db", dir);
    char *url = mem_printf("sqlite:%s?synchronous=off", path);
    add_target(&plan, "null:");
    add_target(&plan, url);
    char *more = mem_strdup(getenv("PRONY_TEST_TARGETS"));
    for (char *word = more ? strtok(more, " ") : NULL; word; word = strtok(NULL, " "))
        add_target(&plan, word);
    int failed = _cmocka_run_group_tests("driver_suite", plan.items, plan.n, NULL, NULL);
    unlink(path);
    rmdir(dir);
    for (size_t i = 0; i < plan.n; i++)
        free((char *)plan.items[i].name);
    for (size_t i = 0; i < plan.n_subjects; i++) {
        free(plan.subjects[i]->url);
        free(plan.subjects[i]);
    }
    free(plan.items);
    free(plan.subjects);
    free(more);
    free(url);
    free(path);
    return failed;
}
