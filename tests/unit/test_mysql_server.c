// The MySQL driver against a real server: what is its own and not in the suite that all drivers
// share. The server is the first mysql target in PRONY_TEST_TARGETS, with the right to make tables
// and procedures, to kill its own sessions and to set global variables; without one nothing is run
// and the status is 77. Tables are named after the process and dropped at the end.
#include "db/db.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"

static char *server_url;
static char table_name[64];

// One case's connection.
struct guest {
    struct db_target *target;
    struct db_session *session;
    struct db_result result;
};

// ---- helpers

// The server's URL with one more parameter, or with another database.
static char *other_url(const char *database, const char *name, const char *value)
{
    struct url url = {0};
    struct str out = STR_INIT;
    struct err err = ERR_INIT;

    assert_int_equal(url_parse(&url, server_url, &err), 0);
    if (database) {
        free(url.path);
        url.path = mem_strdup(database);
    }
    if (name)
        kvs_set(&url.params, name, value);
    url_print(&url, true, &out);
    url_release(&url);
    return str_detach(&out);
}

static void guest_open(struct guest *g, const char *url, enum db_protocol protocol)
{
    const struct db_open_options options = {.protocol = protocol, .n_statements = 2};
    struct err err = ERR_INIT;

    *g = (struct guest){0};
    if (db_open(&g->target, url, &options, &err) < 0)
        fail_msg("%s", err.text);
}

static void guest_connect(struct guest *g)
{
    if (db_connect(g->target, 0, &g->session, &g->result) != DB_OK)
        fail_msg("%s", g->result.message);
}

static void guest_arrive(struct guest *g, const char *engine, enum db_protocol protocol)
{
    char *url = other_url(NULL, engine ? "engine" : NULL, engine);

    guest_open(g, url, protocol);
    guest_connect(g);
    free(url);
}

static void guest_leave(struct guest *g)
{
    db_disconnect(g->session);
    db_close(g->target);
}

// Text with every %T replaced by the table's name.
static enum db_class say(struct guest *g, const char *sql, bool want_row)
{
    struct str out = STR_INIT;

    for (; *sql; sql++) {
        if (sql[0] == '%' && sql[1] == 'T') {
            str_add(&out, table_name);
            sql++;
        } else {
            str_addc(&out, *sql);
        }
    }
    enum db_class class = db_query(g->session, out.buf, want_row, &g->result);
    str_release(&out);
    return class;
}

static void say_ok(struct guest *g, const char *sql)
{
    if (say(g, sql, false) != DB_OK)
        fail_msg("%s: %s", sql, g->result.message);
}

static int64_t number(struct guest *g, const char *sql)
{
    if (say(g, sql, true) != DB_OK)
        fail_msg("%s: %s", sql, g->result.message);
    assert_int_equal(g->result.rows, 1);
    assert_int_equal(db_row_value(g->session, 0).type, DB_INT);
    return db_row_value(g->session, 0).i;
}

static void text_is(struct guest *g, const char *sql, const char *expected)
{
    if (say(g, sql, true) != DB_OK)
        fail_msg("%s: %s", sql, g->result.message);
    struct db_value value = db_row_value(g->session, 0);
    assert_int_equal(value.type, DB_TEXT);
    if (strcasecmp(value.s, expected) != 0)
        fail_msg("%s gives %s", sql, value.s);
}

static void make_table(struct guest *g, const char *engine)
{
    char *sql =
        mem_printf("CREATE TABLE %s (id INT PRIMARY KEY, v INT) ENGINE=%s", table_name, engine);

    say_ok(g, "DROP TABLE IF EXISTS %T");
    say_ok(g, sql);
    free(sql);
    say_ok(g, "INSERT INTO %T VALUES (1, 10), (2, 20), (3, 30)");
}

static void execute_ok(struct guest *g, const struct db_statement *statement,
                       const struct db_value *params, bool want_row)
{
    if (db_execute(g->session, statement, params, want_row, &g->result) != DB_OK)
        fail_msg("%s: %s", statement->sql, g->result.message);
}

static int64_t now_ns(void)
{
    return clock_now_ns(&clock_system);
}

// ---- cases

static void refused_connections_have_their_class(void **state)
{
    static const struct {
        const char *database, *name, *value;
        enum db_class class;
    } cases[] = {
        {"prony_no_such_database", NULL, NULL, DB_NO_DATABASE},
        {NULL, "engine", "no_such_engine", DB_UNDEFINED},
        {NULL, "charset", "no_such_charset", DB_OTHER},
        {NULL, "init_command", "no such command", DB_SYNTAX},
        {NULL, "socket", "/nonexistent/socket", DB_UNAVAILABLE},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        char *url = other_url(cases[i].database, cases[i].name, cases[i].value);
        struct guest g;
        guest_open(&g, url, DB_PREPARED);
        enum db_class class = db_connect(g.target, 0, &g.session, &g.result);
        if (class != cases[i].class)
            fail_msg("%s is %s: %s", url, db_class_name(class), g.result.message);
        assert_string_not_equal(g.result.message, "");
        db_close(g.target);
        free(url);
    }
}

static void values_have_the_type_of_their_column_by_every_protocol(void **state)
{
    static const struct {
        const char *sql;
        enum db_type type;
        const char *text;
    } columns[] = {
        {"1", DB_INT, "1"},
        {"CAST(-5 AS SIGNED)", DB_INT, "-5"},
        {"18446744073709551615", DB_TEXT, "18446744073709551615"}, // more than an int64_t
        {"2.5e0", DB_DOUBLE, "2.5"},
        {"CAST(1.25 AS DECIMAL(5,2))", DB_TEXT, "1.25"},
        {"'text'", DB_TEXT, "text"},
        {"''", DB_TEXT, ""},
        {"NULL", DB_NULL, NULL},
        {"DATE'2020-01-02'", DB_TEXT, "2020-01-02"},
        {"TIMESTAMP'2020-01-02 03:04:05'", DB_TEXT, "2020-01-02 03:04:05"},
        {"TIME'01:02:03'", DB_TEXT, "01:02:03"},
        {"1 < 2", DB_INT, "1"},
    };
    struct str sql = STR_INIT;
    struct guest g;
    char buf[DB_VALUE_TEXT_MAX];
    int len;

    (void)state;
    str_add(&sql, "SELECT ");
    for (size_t i = 0; i < ARR_LEN(columns); i++)
        str_addf(&sql, "%s%s AS c%zu", i ? ", " : "", columns[i].sql, i);
    const char *pieces[] = {sql.buf};
    const struct db_statement statement = {.sql = sql.buf, .pieces = pieces};
    for (enum db_protocol protocol = DB_SIMPLE; protocol <= DB_PREPARED; protocol++) {
        guest_arrive(&g, NULL, protocol);
        execute_ok(&g, &statement, NULL, true);
        assert_int_equal(g.result.n_columns, ARR_LEN(columns));
        for (int i = 0; i < g.result.n_columns; i++) {
            struct db_value value = db_row_value(g.session, i);
            const char *text = db_value_text(&value, buf, &len);
            if (value.type != columns[i].type || (text != NULL) != (columns[i].text != NULL) ||
                (text && strcmp(text, columns[i].text) != 0))
                fail_msg("protocol %d: %s is %s of type %d", protocol, columns[i].sql,
                         text ? text : "NULL", value.type);
        }
        guest_leave(&g);
    }
    str_release(&sql);
}

// A parameter's type may change from one execution to the next, and be NULL in between.
static void parameters_change_their_type_between_executions(void **state)
{
    const char *pieces[] = {"SELECT CONCAT(", ", '/', ", ")"};
    const struct db_statement statement = {
        .sql = "SELECT CONCAT(?, '/', ?)", .n_params = 2, .pieces = pieces};
    static const struct {
        struct db_value a, b;
        const char *text;
    } rows[] = {
        {{.type = DB_INT, .i = 1}, {.type = DB_INT, .i = 2}, "1/2"},
        {{.type = DB_NULL}, {.type = DB_INT, .i = 3}, NULL},
        {{.type = DB_INT, .i = 4}, {.type = DB_TEXT, .s = "five", .text_len = 4}, "4/five"},
        {{.type = DB_NULL}, {.type = DB_NULL}, NULL},
        {{.type = DB_INT, .i = 6}, {.type = DB_DOUBLE, .d = 7.5}, "6/7.5"},
        {{.type = DB_TEXT, .s = "", .text_len = 0}, {.type = DB_BOOL, .b = true}, "/1"},
        {{.type = DB_INT, .i = INT64_MIN}, {.type = DB_NULL}, NULL},
        {{.type = DB_INT, .i = INT64_MIN}, {.type = DB_INT, .i = 8}, "-9223372036854775808/8"},
    };
    struct guest g;

    (void)state;
    guest_arrive(&g, NULL, DB_PREPARED);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < ARR_LEN(rows); i++) {
            const struct db_value params[] = {rows[i].a, rows[i].b};
            execute_ok(&g, &statement, params, true);
            struct db_value value = db_row_value(g.session, 0);
            assert_int_equal(value.type, rows[i].text ? DB_TEXT : DB_NULL);
            if (rows[i].text)
                assert_string_equal(value.s, rows[i].text);
        }
    guest_leave(&g);
}

static void every_answer_of_a_call_is_read(void **state)
{
    char *sql = mem_printf("CALL %s_p()", table_name);
    const char *pieces[] = {sql};
    const struct db_statement statement = {.kind = DB_KIND_WRITE, .sql = sql, .pieces = pieces};
    struct guest g;

    (void)state;
    for (enum db_protocol protocol = DB_SIMPLE; protocol <= DB_PREPARED; protocol++) {
        guest_arrive(&g, NULL, protocol);
        make_table(&g, "innodb");
        say_ok(&g, "DROP PROCEDURE IF EXISTS %T_p");
        say_ok(&g, "CREATE PROCEDURE %T_p() BEGIN SELECT 1 AS a, 2 AS b; SELECT id FROM %T; "
                   "UPDATE %T SET v = v + 1; END");
        for (int i = 0; i < 3; i++) {
            execute_ok(&g, &statement, NULL, true);
            assert_int_equal(g.result.rows, 1 + 3);
            assert_int_equal(g.result.n_columns, 2);
            assert_string_equal(db_row_name(g.session, 1), "b");
        }
        assert_int_equal(number(&g, "SELECT v FROM %T WHERE id = 1"), 13);
        say_ok(&g, "DROP PROCEDURE %T_p");
        guest_leave(&g);
    }
    free(sql);
}

static void lock_tables_is_a_transaction_that_rollback_ends(void **state)
{
    struct guest g, other;

    (void)state;
    guest_arrive(&g, "myisam", DB_PREPARED);
    guest_arrive(&other, "myisam", DB_PREPARED);
    make_table(&g, "myisam");
    say_ok(&other, "SET lock_wait_timeout = 1");

    say_ok(&g, "LOCK TABLES %T WRITE");
    assert_true(g.result.in_transaction);
    assert_int_equal(say(&other, "UPDATE %T SET v = 0", false), DB_BUSY);
    assert_int_equal(say(&g, "SELECT * FROM no_such_table", false), DB_SYNTAX); // 1100: not locked
    assert_true(g.result.in_transaction);
    say_ok(&g, "ROLLBACK");
    assert_false(g.result.in_transaction);
    say_ok(&other, "UPDATE %T SET v = 0");

    say_ok(&g, "LOCK TABLES %T WRITE");
    say_ok(&g, "UNLOCK TABLES");
    assert_false(g.result.in_transaction);
    say_ok(&g, "LOCK TABLES %T WRITE");
    say_ok(&g, "COMMIT"); // lets go of nothing
    assert_true(g.result.in_transaction);
    say_ok(&g, "BEGIN"); // lets go of the tables and begins
    assert_true(g.result.in_transaction);
    say_ok(&other, "UPDATE %T SET v = 0");
    say_ok(&g, "COMMIT");
    assert_false(g.result.in_transaction);
    guest_leave(&other);
    guest_leave(&g);
}

static void a_lock_not_had_in_time_is_busy_and_keeps_the_transaction(void **state)
{
    struct guest g, other;

    (void)state;
    guest_arrive(&g, "innodb", DB_PREPARED);
    guest_arrive(&other, "innodb", DB_PREPARED);
    make_table(&g, "innodb");
    say_ok(&other, "SET innodb_lock_wait_timeout = 1");
    say_ok(&g, "BEGIN");
    say_ok(&g, "UPDATE %T SET v = 11 WHERE id = 1");
    say_ok(&other, "BEGIN");
    say_ok(&other, "UPDATE %T SET v = 12 WHERE id = 2");
    assert_int_equal(say(&other, "UPDATE %T SET v = 12 WHERE id = 1", false), DB_BUSY);
    assert_true(other.result.in_transaction);
    say_ok(&other, "ROLLBACK");
    say_ok(&g, "ROLLBACK");
    guest_leave(&other);
    guest_leave(&g);
}

static void a_table_that_changed_its_shape_is_prepared_anew(void **state)
{
    char *sql = mem_printf("SELECT * FROM %s WHERE id = 1", table_name);
    const char *pieces[] = {sql};
    const struct db_statement statement = {.sql = sql, .pieces = pieces};
    struct guest g;

    (void)state;
    guest_arrive(&g, "innodb", DB_PREPARED);
    make_table(&g, "innodb");
    execute_ok(&g, &statement, NULL, true);
    assert_int_equal(g.result.n_columns, 2);
    say_ok(&g, "ALTER TABLE %T ADD COLUMN w INT DEFAULT 9");
    (void)db_execute(g.session, &statement, NULL, true, &g.result); // may fail once
    assert_false(db_session_lost(g.session));
    execute_ok(&g, &statement, NULL, true);
    assert_int_equal(g.result.n_columns, 3);
    assert_int_equal(db_row_value(g.session, 2).i, 9);
    guest_leave(&g);
    free(sql);
}

static void a_killed_session_is_lost_at_once(void **state)
{
    struct guest g, other;

    (void)state;
    guest_arrive(&g, NULL, DB_PREPARED);
    guest_arrive(&other, NULL, DB_PREPARED);
    char *sql = mem_printf("KILL %lld", (long long)number(&g, "SELECT CONNECTION_ID()"));
    say_ok(&other, sql);
    int64_t start_ns = now_ns();
    assert_int_equal(say(&g, "SELECT 1", false), DB_LOST);
    assert_true(now_ns() - start_ns < 2 * NS_PER_S);
    assert_true(db_session_lost(g.session));
    guest_leave(&g);
    guest_leave(&other);
    free(sql);
}

static void *cancel_soon(void *session)
{
    clock_sleep_until_ns(&clock_system, now_ns() + 200 * NS_PER_MS);
    db_cancel(session);
    return NULL;
}

static void a_cancel_does_not_reach_the_next_statement(void **state)
{
    struct guest g;
    pthread_t thread;

    (void)state;
    guest_arrive(&g, NULL, DB_PREPARED);
    for (int i = 0; i < 3; i++) { // the second finds the connection for it open
        pthread_create(&thread, NULL, cancel_soon, g.session);
        int64_t start_ns = now_ns();
        assert_int_equal(say(&g,
                             "SELECT COUNT(*) FROM information_schema.collations a, "
                             "information_schema.collations b, information_schema.collations c, "
                             "information_schema.collations d",
                             false),
                         DB_CANCELLED);
        assert_true(now_ns() - start_ns < 5 * NS_PER_S);
        pthread_join(thread, NULL);
        say_ok(&g, "SELECT 1");
    }
    db_cancel(g.session); // nothing runs
    say_ok(&g, "SELECT 1");
    guest_leave(&g);
}

// ---- loading

static const struct db_column columns[] = {{"id", "int", true},
                                           {"t", "varchar(100)", false},
                                           {"d", "double", false},
                                           {"b", "boolean", false}};

static struct db_table load_table(void)
{
    return (struct db_table){
        .name = table_name, .columns = columns, .n_columns = 4, .primary_key = "id"};
}

static const char nasty[] = "a\tb\nc\\d'e\"f\\N\0z\r,";
#define NASTY_HEX "6109620A635C64276522665C4E007A0D2C"

static enum db_class load_row(struct guest *g, int64_t id, const char *text, size_t len)
{
    const struct db_value values[] = {
        {.type = DB_INT, .i = id},
        {.type = text ? DB_TEXT : DB_NULL, .s = text, .text_len = (uint32_t)len},
        {.type = DB_DOUBLE, .d = (double)id / 8},
        {.type = DB_BOOL, .b = id % 2}};

    return db_bulk_row(g->session, values, &g->result);
}

static void load_all(struct guest *g, const struct db_table *table, int n)
{
    enum db_class class = db_bulk_begin(g->session, table, &g->result);

    for (int i = 1; class == DB_OK && i <= n; i++) {
        if (i % 3 == 0)
            class = load_row(g, i, NULL, 0);
        else
            class = i % 3 == 1 ? load_row(g, i, nasty, sizeof(nasty) - 1) : load_row(g, i, "x", 1);
    }
    if (class == DB_OK)
        class = db_bulk_end(g->session, &g->result);
    if (class != DB_OK)
        fail_msg("%s", g->result.message);
    assert_int_equal(g->result.rows, n);
}

// More than one chunk by either way, with everything in it that either way must escape.
static void check_load(const char *engine)
{
    const struct db_table table = load_table();
    const int n = 200001;
    struct guest g;

    guest_arrive(&g, engine, DB_PREPARED);
    say_ok(&g, "DROP TABLE IF EXISTS %T");
    if (db_create_table(g.session, &table, true, &g.result) != DB_OK)
        fail_msg("%s", g.result.message);
    text_is(&g,
            "SELECT engine FROM information_schema.tables WHERE table_schema = DATABASE() "
            "AND table_name = '%T'",
            engine);
    load_all(&g, &table, n);
    assert_int_equal(number(&g, "SELECT COUNT(*) FROM %T"), n);
    assert_int_equal(number(&g, "SELECT COUNT(*) FROM %T WHERE t IS NULL"), n / 3);
    assert_int_equal(number(&g, "SELECT COUNT(*) FROM %T WHERE HEX(t) = '" NASTY_HEX "'"), n / 3);
    assert_int_equal(number(&g, "SELECT COUNT(*) FROM %T WHERE d <> id / 8 OR b <> id % 2"), 0);
    if (db_settle_table(g.session, &table, &g.result) != DB_OK)
        fail_msg("%s", g.result.message);
    guest_leave(&g);
}

static void loaded_rows_are_right_on_every_storage_engine(void **state)
{
    (void)state;
    check_load("innodb");
    check_load("myisam");
    check_load("aria");
}

// Else a statement of a loader that was killed, which the server has yet to run, could meet the new
// tables.
static void a_claim_lasts_as_long_as_its_session(void **state)
{
    struct guest first, second;

    (void)state;
    guest_arrive(&first, NULL, DB_PREPARED);
    guest_arrive(&second, NULL, DB_PREPARED);
    assert_int_equal(db_claim(first.session, "tpcb", &first.result), DB_OK);
    assert_int_equal(db_claim(first.session, "tpcb", &first.result), DB_OK);
    assert_int_equal(db_claim(second.session, "tpcb", &second.result), DB_BUSY);
    assert_non_null(strstr(second.result.message, "another session fills the tables of tpcb"));
    assert_int_equal(db_claim(second.session, "other", &second.result), DB_OK);
    guest_leave(&first);
    enum db_class class = DB_BUSY; // until the server has seen it go
    for (int i = 0; i < 20 && class == DB_BUSY; i++)
        class = db_claim(second.session, "tpcb", &second.result);
    assert_int_equal(class, DB_OK);
    guest_leave(&second);
}

static void loading_works_where_local_files_are_forbidden(void **state)
{
    struct guest g;

    (void)state;
    guest_arrive(&g, NULL, DB_PREPARED);
    int64_t before = number(&g, "SELECT @@GLOBAL.local_infile");
    say_ok(&g, "SET GLOBAL local_infile = 0");
    check_load("innodb");
    say_ok(&g, before ? "SET GLOBAL local_infile = 1" : "SET GLOBAL local_infile = 0");
    guest_leave(&g);
}

static void loading_works_where_backslashes_are_nothing_special(void **state)
{
    const struct db_table table = load_table();
    struct guest g;

    (void)state;
    for (int i = 0; i < 2; i++) {
        guest_arrive(&g, i ? "myisam" : "innodb", DB_PREPARED);
        say_ok(&g, "DROP TABLE IF EXISTS %T");
        say_ok(&g, "SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')");
        assert_int_equal(db_create_table(g.session, &table, true, &g.result), DB_OK);
        load_all(&g, &table, 9);
        assert_int_equal(number(&g, "SELECT COUNT(*) FROM %T WHERE HEX(t) = '" NASTY_HEX "'"), 3);
        guest_leave(&g);
    }
}

// LOAD DATA LOCAL skips such rows with a warning.
static void rows_the_server_would_skip_or_bend_fail_the_load(void **state)
{
    static const char *const engines[] = {"innodb", "myisam"};
    const struct db_table table = load_table();
    struct guest g;

    (void)state;
    for (size_t i = 0; i < ARR_LEN(engines); i++) {
        guest_arrive(&g, engines[i], DB_PREPARED);
        say_ok(&g, "DROP TABLE IF EXISTS %T");
        assert_int_equal(db_create_table(g.session, &table, true, &g.result), DB_OK);
        load_all(&g, &table, 9);
        assert_int_equal(db_bulk_begin(g.session, &table, &g.result), DB_OK);
        load_row(&g, 10, "new", 3);
        load_row(&g, 5, "twice", 5);
        assert_int_equal(db_bulk_end(g.session, &g.result), DB_CONSTRAINT);
        assert_string_equal(g.result.native, "1062");
        if (db_caps(g.target) & DB_CAP_TRANSACTIONS)
            assert_int_equal(number(&g, "SELECT COUNT(*) FROM %T"), 9);
        char *longer = mem_calloc(1, 102);
        memset(longer, 'x', 101);
        assert_int_equal(db_bulk_begin(g.session, &table, &g.result), DB_OK);
        load_row(&g, 11, longer, 101); // of a varchar(100)
        assert_int_equal(db_bulk_end(g.session, &g.result), DB_CONSTRAINT);
        free(longer);
        say_ok(&g, "SELECT 1");
        guest_leave(&g);
    }
}

// ---- records

static void the_record_tells_what_decides(void **state)
{
    static const char *const settings[] = {"innodb_flush_log_at_trx_commit",
                                           "sync_binlog",
                                           "innodb_doublewrite",
                                           "innodb_buffer_pool_size",
                                           "log_bin",
                                           "max_allowed_packet",
                                           "account",
                                           "database",
                                           "connection",
                                           "tls",
                                           "table_engine",
                                           NULL};
    struct db_facts facts;
    struct guest g;

    (void)state;
    char *url = other_url(NULL, "init_command", "SET SESSION tx_isolation='READ-COMMITTED'");
    guest_open(&g, url, DB_PREPARED);
    guest_connect(&g);
    make_table(&g, "myisam");
    db_describe(g.session, &facts);
    assert_true(strcmp(facts.engine, "mariadb") == 0 || strcmp(facts.engine, "mysql") == 0);
    assert_true(facts.max_connections > 0);
    assert_true(facts.data_bytes > 0);
    assert_true(facts.cache_bytes > 0);
    assert_false(facts.read_only);
    for (size_t i = 0; settings[i]; i++)
        if (!kvs_get(&facts.settings, settings[i]))
            fail_msg("%s is left out", settings[i]);
    assert_string_equal(kvs_get(&facts.settings, "engine"), "innodb");
    assert_non_null(strstr(kvs_get(&facts.settings, "table_engine"), "MyISAM"));
    // as it holds in the session
    assert_string_equal(kvs_get(&facts.settings, "tx_isolation"), "READ-COMMITTED");
    db_facts_release(&facts);
    guest_leave(&g);
    free(url);
}

static int64_t counter(struct guest *g, const char *name)
{
    struct kvs counters = KVS_INIT;

    db_sample(g->session, &counters);
    const char *value = kvs_get(&counters, name);
    if (!value)
        fail_msg("%s is not counted", name);
    int64_t n = strtoll(value, NULL, 10);
    kvs_release(&counters);
    return n;
}

static void commits_and_log_are_counted(void **state)
{
    struct guest g;

    (void)state;
    guest_arrive(&g, "innodb", DB_PREPARED);
    make_table(&g, "innodb");
    int64_t commits = counter(&g, "commits"), log = counter(&g, "wal_bytes");
    say_ok(&g, "BEGIN");
    say_ok(&g, "UPDATE %T SET v = v + 1");
    say_ok(&g, "COMMIT");
    assert_true(counter(&g, "commits") >= commits + 1);
    assert_true(counter(&g, "wal_bytes") > log);
    (void)counter(&g, "blocks_hit");
    guest_leave(&g);
}

// ---- the program

static int drop_table(void **state)
{
    struct guest g;

    (void)state;
    guest_arrive(&g, NULL, DB_SIMPLE);
    say_ok(&g, "DROP TABLE IF EXISTS %T");
    guest_leave(&g);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_connections_have_their_class),
        cmocka_unit_test(values_have_the_type_of_their_column_by_every_protocol),
        cmocka_unit_test(parameters_change_their_type_between_executions),
        cmocka_unit_test(every_answer_of_a_call_is_read),
        cmocka_unit_test(lock_tables_is_a_transaction_that_rollback_ends),
        cmocka_unit_test(a_lock_not_had_in_time_is_busy_and_keeps_the_transaction),
        cmocka_unit_test(a_table_that_changed_its_shape_is_prepared_anew),
        cmocka_unit_test(a_killed_session_is_lost_at_once),
        cmocka_unit_test(a_cancel_does_not_reach_the_next_statement),
        cmocka_unit_test(loaded_rows_are_right_on_every_storage_engine),
        cmocka_unit_test(a_claim_lasts_as_long_as_its_session),
        cmocka_unit_test(loading_works_where_local_files_are_forbidden),
        cmocka_unit_test(loading_works_where_backslashes_are_nothing_special),
        cmocka_unit_test(rows_the_server_would_skip_or_bend_fail_the_load),
        cmocka_unit_test(the_record_tells_what_decides),
        cmocka_unit_test(commits_and_log_are_counted),
    };
    char *targets = mem_strdup(getenv("PRONY_TEST_TARGETS"));
    char *rest = targets;

    for (char *word; (word = strsep(&rest, " ")) != NULL;)
        if (!server_url && (strncmp(word, "mysql", 5) == 0 || strncmp(word, "mariadb", 7) == 0))
            server_url = word;
    if (!server_url) {
        fprintf(stderr, "PRONY_TEST_TARGETS names no mysql target\n");
        free(targets);
        return 77;
    }
    // pgbench's tables come first when the record tells of storage engines
    snprintf(table_name, sizeof(table_name), "pgbench_test_%d", (int)getpid());
    int failed = cmocka_run_group_tests(tests, NULL, drop_table);
    free(targets);
    return failed;
}
