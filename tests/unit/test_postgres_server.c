// The PostgreSQL driver against a real server: what is PostgreSQL's own and not in the suite that
// all drivers share. The server is the first postgres target in PRONY_TEST_TARGETS, with a
// superuser's rights; without one nothing is run and the status is 77. Roles and tables are named
// after the process and dropped at the end.
#include "db/db.h"

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

static char *server_url;
static char role[64];
static char table_name[64];

// One case's connection.
struct guest {
    struct db_target *target;
    struct db_session *session;
    struct db_result result;
};

// The server's URL with other parts where they are given.
static char *other_url(const char *user, const char *database, const char *options)
{
    struct url url = {0};
    struct str out = STR_INIT;
    struct err err = ERR_INIT;

    assert_int_equal(url_parse(&url, server_url, &err), 0);
    if (user) {
        free(url.user);
        url.user = mem_strdup(user);
    }
    if (database) {
        free(url.path);
        url.path = mem_strdup(database);
    }
    if (options)
        kvs_add(&url.params, "options", options);
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

static void guest_close(struct guest *g)
{
    db_disconnect(g->session);
    db_close(g->target);
}

static void query_ok(struct guest *g, const char *sql)
{
    if (db_query(g->session, sql, true, &g->result) != DB_OK)
        fail_msg("%s: %s", sql, g->result.message);
}

static void queryf_ok(struct guest *g, const char *fmt, const char *name)
{
    struct str sql = STR_INIT;

    for (; *fmt; fmt++)
        if (*fmt == '%')
            str_add(&sql, name);
        else
            str_addc(&sql, *fmt);
    query_ok(g, sql.buf);
    str_release(&sql);
}

static int64_t now_ns(void)
{
    return clock_now_ns(&clock_system);
}

// ---- connecting

static void a_refused_connection_has_its_class(void **state)
{
    static const struct {
        const char *user, *database, *options;
        enum db_class class;
        const char *native;
    } cases[] = {
        {NULL, "no_such_database", NULL, DB_NO_DATABASE, "3D000"},
        {"no_such_role", NULL, NULL, DB_DENIED, "28000"},
        {NULL, NULL, "-c no_such_setting=1", DB_OTHER, "42704"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct guest g;
        char *url = other_url(cases[i].user, cases[i].database, cases[i].options);
        guest_open(&g, url, DB_PREPARED);
        enum db_class class = db_connect(g.target, 0, &g.session, &g.result);
        assert_string_equal(db_class_name(class), db_class_name(cases[i].class));
        assert_string_equal(g.result.native, cases[i].native);
        assert_null(strstr(g.result.message, cases[i].native));
        guest_close(&g);
        free(url);
    }
}

static void a_role_at_its_limit_is_too_many(void **state)
{
    struct guest admin, g;

    (void)state;
    guest_open(&admin, server_url, DB_PREPARED);
    guest_connect(&admin);
    queryf_ok(&admin, "CREATE ROLE % LOGIN CONNECTION LIMIT 0", role);
    char *url = other_url(role, NULL, NULL);
    guest_open(&g, url, DB_PREPARED);
    assert_int_equal(db_connect(g.target, 0, &g.session, &g.result), DB_TOO_MANY);
    assert_string_equal(g.result.native, "53300");
    queryf_ok(&admin, "ALTER ROLE % CONNECTION LIMIT 3", role);
    guest_connect(&g);
    struct db_facts facts;
    db_describe(g.session, &facts);
    assert_int_equal(facts.max_connections, 3);
    assert_int_equal(facts.connections_used, 0);
    assert_non_null(strstr(facts.max_connections_setting, "ALTER ROLE"));
    db_facts_release(&facts);
    guest_close(&g);
    queryf_ok(&admin, "DROP ROLE %", role);
    guest_close(&admin);
    free(url);
}

static void a_session_says_who_it_is(void **state)
{
    struct guest g;

    (void)state;
    char *url = other_url(NULL, NULL, "-c geqo=off");
    guest_open(&g, url, DB_PREPARED);
    guest_connect(&g);
    query_ok(&g, "SHOW application_name");
    assert_string_equal(db_row_value(g.session, 0).s, "prony");
    query_ok(&g, "SHOW geqo");
    assert_string_equal(db_row_value(g.session, 0).s, "off");
    guest_close(&g);
    free(url);
}

// ---- requests

static void values_have_the_type_of_their_column(void **state)
{
    static const struct {
        const char *sql;
        enum db_type type;
        const char *text;
    } cases[] = {
        {"SELECT 7::smallint", DB_INT, "7"},
        {"SELECT -7::int", DB_INT, "-7"},
        {"SELECT 9223372036854775807::bigint", DB_INT, "9223372036854775807"},
        {"SELECT sum(x::bigint) FROM generate_series(1, 10) x", DB_INT, "55"},
        {"SELECT 9223372036854775808::numeric", DB_TEXT, "9223372036854775808"},
        {"SELECT 1.50::numeric", DB_TEXT, "1.50"},
        {"SELECT 1.5::float8", DB_DOUBLE, "1.5"},
        {"SELECT 'Infinity'::float8", DB_DOUBLE, "Infinity"},
        {"SELECT 1 = 1", DB_BOOL, "true"},
        {"SELECT NULL::int", DB_NULL, NULL},
        {"SELECT '12'::text", DB_TEXT, "12"},
        {"SELECT 'x'::char(4)", DB_TEXT, "x   "},
    };
    struct guest g;

    (void)state;
    guest_open(&g, server_url, DB_PREPARED);
    guest_connect(&g);
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        char buf[DB_VALUE_TEXT_MAX];
        int len;
        query_ok(&g, cases[i].sql);
        struct db_value value = db_row_value(g.session, 0);
        const char *text = db_value_text(&value, buf, &len);
        if (value.type != cases[i].type || (text == NULL) != (cases[i].text == NULL) ||
            (text && strcmp(text, cases[i].text) != 0))
            fail_msg("%s: type %d %s", cases[i].sql, (int)value.type, text ? text : "NULL");
    }
    guest_close(&g);
}

static void copy_is_refused_and_the_session_goes_on(void **state)
{
    static const char *const texts[] = {
        "COPY pg_class TO STDOUT",
        "COPY pg_class FROM STDIN",
    };

    (void)state;
    for (int protocol = DB_SIMPLE; protocol <= DB_PREPARED; protocol++) {
        struct guest g;
        guest_open(&g, server_url, (enum db_protocol)protocol);
        guest_connect(&g);
        for (int i = 0; i < 2; i++) {
            const char *pieces[] = {texts[i]};
            struct db_statement statement = {.index = i, .sql = texts[i], .pieces = pieces};
            enum db_class class = db_execute(g.session, &statement, NULL, true, &g.result);
            assert_int_equal(class, DB_OTHER);
            assert_non_null(strstr(g.result.message, "COPY"));
            query_ok(&g, "SELECT 1");
            assert_false(g.result.in_transaction);
        }
        guest_close(&g);
    }
}

static void the_first_failure_of_several_statements_counts(void **state)
{
    struct guest g;

    (void)state;
    guest_open(&g, server_url, DB_SIMPLE);
    guest_connect(&g);
    query_ok(&g, "SELECT 1; SELECT 2, 3");
    assert_int_equal(g.result.n_columns, 2);
    assert_int_equal(db_query(g.session, "SELECT 1; SELECT 1/0; SELEC", false, &g.result),
                     DB_SYNTAX);
    assert_int_equal(db_query(g.session, "SELECT 1; SELECT 1/0; SELECT 2", false, &g.result),
                     DB_OTHER);
    assert_string_equal(g.result.native, "22012");
    guest_close(&g);
}

static void a_forgotten_statement_is_prepared_again(void **state)
{
    const char *pieces[] = {"SELECT 1"};
    const struct db_statement statement = {.sql = "SELECT 1", .pieces = pieces};
    struct guest g;

    (void)state;
    guest_open(&g, server_url, DB_PREPARED);
    guest_connect(&g);
    assert_int_equal(db_execute(g.session, &statement, NULL, true, &g.result), DB_OK);
    query_ok(&g, "DISCARD ALL");
    assert_int_equal(db_execute(g.session, &statement, NULL, true, &g.result), DB_UNDEFINED);
    assert_non_null(strstr(g.result.message, "--protocol"));
    assert_int_equal(db_execute(g.session, &statement, NULL, true, &g.result), DB_OK);
    guest_close(&g);
}

struct ending {
    struct guest guest;
    char sql[128];
};

static void *run_soon(void *arg)
{
    struct ending *ending = arg;

    clock_sleep_until_ns(&clock_system, now_ns() + 200 * NS_PER_MS);
    (void)db_query(ending->guest.session, ending->sql, false, &ending->guest.result);
    return NULL;
}

static void a_server_that_ends_a_session_says_why(void **state)
{
    struct ending ending;
    struct guest g;
    pthread_t thread;

    (void)state;
    guest_open(&ending.guest, server_url, DB_PREPARED);
    guest_connect(&ending.guest);
    guest_open(&g, server_url, DB_PREPARED);
    guest_connect(&g);
    query_ok(&g, "SELECT pg_backend_pid()");
    snprintf(ending.sql, sizeof(ending.sql), "SELECT pg_terminate_backend(%lld)",
             (long long)db_row_value(g.session, 0).i);
    int64_t start_ns = now_ns();
    pthread_create(&thread, NULL, run_soon, &ending);
    assert_int_equal(db_query(g.session, "SELECT pg_sleep(60)", false, &g.result), DB_LOST);
    assert_in_range(now_ns() - start_ns, 100 * NS_PER_MS, 20 * NS_PER_S);
    assert_string_equal(g.result.native, "57P01");
    assert_true(db_session_lost(g.session));
    pthread_join(thread, NULL);
    guest_close(&g);
    guest_close(&ending.guest);
}

struct cancelling {
    struct db_session *session;
    pthread_mutex_t lock;
    bool over; // the statement has ended: a cancel would be meant for the next one
};

// Again until it is over: on a busy machine the statement may not have begun yet.
static void *cancel_soon(void *arg)
{
    struct cancelling *cancelling = arg;
    bool over = false;

    while (!over) {
        clock_sleep_until_ns(&clock_system, now_ns() + 20 * NS_PER_MS);
        pthread_mutex_lock(&cancelling->lock);
        over = cancelling->over;
        if (!over)
            db_cancel(cancelling->session);
        pthread_mutex_unlock(&cancelling->lock);
    }
    return NULL;
}

static void cancelling_end(struct cancelling *cancelling)
{
    pthread_mutex_lock(&cancelling->lock);
    cancelling->over = true;
    pthread_mutex_unlock(&cancelling->lock);
}

static void a_cancel_does_not_reach_the_next_statement(void **state)
{
    struct guest g;

    (void)state;
    guest_open(&g, server_url, DB_PREPARED);
    guest_connect(&g);
    for (int i = 0; i < 20; i++) {
        struct cancelling cancelling = {g.session, PTHREAD_MUTEX_INITIALIZER, false};
        pthread_t thread;
        pthread_create(&thread, NULL, cancel_soon, &cancelling);
        // Sometimes the statement ends just before it is cancelled.
        const char *sql = i % 2 ? "SELECT pg_sleep(0.02)" : "SELECT pg_sleep(60)";
        enum db_class class = db_query(g.session, sql, false, &g.result);
        cancelling_end(&cancelling);
        assert_true(class == DB_CANCELLED || (i % 2 && class == DB_OK));
        query_ok(&g, "SELECT count(*) FROM generate_series(1, 20000)");
        pthread_join(thread, NULL);
    }
    db_cancel(g.session); // nothing runs
    query_ok(&g, "SELECT 1");
    guest_close(&g);
}

// ---- loading

static const struct db_column columns[] = {{"id", "int", true}, {"filler", "char(10)"}};
static const struct db_table table = {table_name, columns, 2, NULL, 100};

static const struct db_column columns_constant[] = {{"id", "int", true},
                                                    {"filler", "char(10)", .constant = "x"}};
static const struct db_table table_constant = {table_name, columns_constant, 2, NULL, 100};

static enum db_class load_table(struct guest *g, const struct db_table *into, int64_t n_rows,
                                int64_t bad_row)
{
    if (db_bulk_begin(g->session, into, &g->result) != DB_OK)
        return g->result.class;
    for (int64_t i = 0; i < n_rows; i++) {
        struct db_value row[] = {{.type = DB_INT, .i = i},
                                 {.type = DB_TEXT, .s = "x   ", .text_len = 4}};
        if (i == bad_row)
            row[0] = (struct db_value){.type = DB_TEXT, .s = "no", .text_len = 2};
        if (db_bulk_row(g->session, row, &g->result) != DB_OK)
            return g->result.class;
    }
    return db_bulk_end(g->session, &g->result);
}

static enum db_class load(struct guest *g, int64_t n_rows, int64_t bad_row)
{
    return load_table(g, &table, n_rows, bad_row);
}

static int64_t count(struct guest *g)
{
    queryf_ok(g, "SELECT count(*) FROM % WHERE octet_length(filler) = 10", table_name);
    return db_row_value(g->session, 0).i;
}

static void begin_load(struct guest *g)
{
    guest_open(g, server_url, DB_PREPARED);
    guest_connect(g);
    queryf_ok(g, "DROP TABLE IF EXISTS %", table_name);
    if (db_create_table(g->session, &table, false, &g->result) != DB_OK)
        fail_msg("%s", g->result.message);
}

static void end_load(struct guest *g)
{
    if (!db_session_lost(g->session))
        queryf_ok(g, "DROP TABLE %", table_name);
    guest_close(g);
}

static void rows_are_born_frozen_in_an_empty_table(void **state)
{
    struct guest g;

    (void)state;
    begin_load(&g);
    assert_int_equal(load(&g, 1000, -1), DB_OK);
    assert_int_equal(g.result.rows, 1000);
    assert_false(g.result.in_transaction);
    assert_int_equal(count(&g), 1000);
    // The visibility map of a table filled otherwise is empty until the first VACUUM.
    queryf_ok(&g, "SELECT pg_relation_size('%', 'vm')", table_name);
    assert_true(db_row_value(g.session, 0).i > 0);
    assert_int_equal(db_settle_table(g.session, &table, &g.result), DB_OK);
    queryf_ok(&g, "SELECT relpages = relallvisible FROM pg_class WHERE relname = '%'", table_name);
    assert_true(db_row_value(g.session, 0).b);
    end_load(&g);
}

static int64_t count_constant(struct guest *g)
{
    queryf_ok(g, "SELECT count(*) FROM % WHERE filler = 'x' AND octet_length(filler) = 10",
              table_name);
    return db_row_value(g->session, 0).i;
}

static int64_t count_defaults(struct guest *g)
{
    queryf_ok(g, "SELECT count(*) FROM pg_attrdef WHERE adrelid = '%'::regclass", table_name);
    return db_row_value(g->session, 0).i;
}

static void a_column_with_one_value_has_it_in_every_row(void **state)
{
    struct guest g;

    (void)state;
    begin_load(&g);
    assert_int_equal(load_table(&g, &table_constant, 100, 3), DB_OTHER);
    assert_int_equal(count_defaults(&g), 0);
    assert_int_equal(load_table(&g, &table_constant, 100, -1), DB_OK); // as a default
    assert_int_equal(count_constant(&g), 100);
    assert_int_equal(count_defaults(&g), 0);
    assert_int_equal(load_table(&g, &table_constant, 100, -1), DB_OK); // with the rows
    assert_int_equal(count_constant(&g), 200);
    end_load(&g);
}

static void a_session_in_a_hurry_does_not_wait_for_the_disk(void **state)
{
    struct guest g;

    (void)state;
    guest_open(&g, server_url, DB_PREPARED);
    guest_connect(&g);
    assert_int_equal(db_hurry(g.session, true, &g.result), DB_OK);
    query_ok(&g, "SHOW synchronous_commit");
    assert_string_equal(db_row_value(g.session, 0).s, "off");
    assert_int_equal(db_hurry(g.session, false, &g.result), DB_OK);
    query_ok(&g, "SHOW synchronous_commit");
    assert_string_equal(db_row_value(g.session, 0).s, "on");
    guest_close(&g);
}

static void rows_that_are_there_stay(void **state)
{
    struct guest g;

    (void)state;
    begin_load(&g);
    queryf_ok(&g, "INSERT INTO % VALUES (-1, 'y')", table_name);
    assert_int_equal(load(&g, 10, -1), DB_OK);
    assert_int_equal(count(&g), 11);
    query_ok(&g, "BEGIN"); // in a transaction of the caller's
    assert_int_equal(load(&g, 10, -1), DB_OK);
    assert_true(g.result.in_transaction);
    query_ok(&g, "ROLLBACK");
    assert_int_equal(count(&g), 11);
    end_load(&g);
}

static void a_bad_row_ends_the_load_at_once(void **state)
{
    struct guest g;

    (void)state;
    begin_load(&g);
    int64_t start_ns = now_ns();
    assert_int_equal(load(&g, INT64_C(1) << 40, 3), DB_OTHER);
    assert_in_range(now_ns() - start_ns, 0, 20 * NS_PER_S);
    assert_string_equal(g.result.native, "22P02");
    assert_false(g.result.in_transaction);
    assert_int_equal(count(&g), 0);
    end_load(&g);
}

static void a_load_can_be_cancelled(void **state)
{
    struct guest g;
    pthread_t thread;

    (void)state;
    begin_load(&g);
    struct cancelling cancelling = {g.session, PTHREAD_MUTEX_INITIALIZER, false};
    pthread_create(&thread, NULL, cancel_soon, &cancelling);
    int64_t start_ns = now_ns();
    enum db_class class = load(&g, INT64_C(1) << 40, -1);
    cancelling_end(&cancelling);
    assert_int_equal(class, DB_CANCELLED);
    assert_in_range(now_ns() - start_ns, 0, 20 * NS_PER_S);
    pthread_join(thread, NULL);
    assert_int_equal(count(&g), 0);
    end_load(&g);
}

// ---- records

static void a_role_without_rights_is_told_what_it_may_know(void **state)
{
    struct guest admin, g;
    struct db_facts facts;

    (void)state;
    guest_open(&admin, server_url, DB_PREPARED);
    guest_connect(&admin);
    queryf_ok(&admin, "CREATE ROLE % LOGIN", role);
    char *url = other_url(role, NULL, "-c default_transaction_read_only=on");
    guest_open(&g, url, DB_PREPARED);
    guest_connect(&g);
    db_describe(g.session, &facts);
    assert_memory_equal(facts.version, kvs_get(&facts.settings, "version_text") + 11, 2);
    assert_true(facts.read_only);
    assert_string_equal(facts.read_only_why, "default_transaction_read_only=on");
    assert_true(facts.cache_bytes > 0);
    assert_true(facts.data_bytes > 0);
    assert_true(facts.max_connections > 0);
    assert_string_equal(facts.max_connections_setting, "max_connections");
    assert_non_null(kvs_get(&facts.settings, "fsync"));
    // The directory: seen, or said why not.
    assert_true(facts.data_path[0] != '\0' ||
                strncmp(kvs_get(&facts.settings, "data_path"), "unknown: ", 9) == 0);
    query_ok(&g, "SELECT 1");
    assert_false(g.result.in_transaction);
    db_facts_release(&facts);
    guest_close(&g);
    queryf_ok(&admin, "DROP ROLE %", role);
    guest_close(&admin);
    free(url);
}

static void the_writing_of_log_is_counted(void **state)
{
    struct guest g;
    struct kvs before = KVS_INIT, after = KVS_INIT;

    (void)state;
    begin_load(&g);
    db_sample(g.session, &before);
    assert_int_equal(load(&g, 100000, -1), DB_OK);
    query_ok(&g, "CHECKPOINT");
    query_ok(&g, "SELECT pg_sleep(1.1)"); // sessions report once a second
    query_ok(&g, "SELECT 1");
    db_sample(g.session, &after);
    const char *const names[] = {"wal_bytes", "checkpoints", "checkpoints_requested", "commits",
                                 "rows_inserted"};
    for (size_t i = 0; i < ARR_LEN(names); i++) {
        const char *from = kvs_get(&before, names[i]), *to = kvs_get(&after, names[i]);
        if (!from || !to || strtoll(to, NULL, 10) <= strtoll(from, NULL, 10))
            fail_msg("%s: %s, then %s", names[i], from ? from : "none", to ? to : "none");
    }
    kvs_release(&before);
    kvs_release(&after);
    end_load(&g);
}

// ---- the program

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_connection_has_its_class),
        cmocka_unit_test(a_role_at_its_limit_is_too_many),
        cmocka_unit_test(a_session_says_who_it_is),
        cmocka_unit_test(values_have_the_type_of_their_column),
        cmocka_unit_test(copy_is_refused_and_the_session_goes_on),
        cmocka_unit_test(the_first_failure_of_several_statements_counts),
        cmocka_unit_test(a_forgotten_statement_is_prepared_again),
        cmocka_unit_test(a_server_that_ends_a_session_says_why),
        cmocka_unit_test(a_cancel_does_not_reach_the_next_statement),
        cmocka_unit_test(rows_are_born_frozen_in_an_empty_table),
        cmocka_unit_test(a_column_with_one_value_has_it_in_every_row),
        cmocka_unit_test(a_session_in_a_hurry_does_not_wait_for_the_disk),
        cmocka_unit_test(rows_that_are_there_stay),
        cmocka_unit_test(a_bad_row_ends_the_load_at_once),
        cmocka_unit_test(a_load_can_be_cancelled),
        cmocka_unit_test(a_role_without_rights_is_told_what_it_may_know),
        cmocka_unit_test(the_writing_of_log_is_counted),
    };
    char *targets = mem_strdup(getenv("PRONY_TEST_TARGETS"));
    char *rest = targets;

    for (char *word; (word = strsep(&rest, " ")) != NULL;)
        if (!server_url && strncmp(word, "postgres", 8) == 0)
            server_url = word;
    if (!server_url) {
        fprintf(stderr, "PRONY_TEST_TARGETS names no postgres target\n");
        free(targets);
        return 77;
    }
    snprintf(role, sizeof(role), "prony_role_%d", (int)getpid());
    snprintf(table_name, sizeof(table_name), "prony_table_%d", (int)getpid());
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(targets);
    return failed;
}
