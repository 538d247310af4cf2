// PostgreSQL's codec against a real server: every statement goes through the blocking driver and
// through the wire, and both must give the same; then what only a wire does. The server is the
// first postgres target in PRONY_TEST_TARGETS, with a superuser's rights; without one nothing is
// run and the status is 77. Where the URL asks for TLS, the wire must have it. Nothing but
// temporary tables is made.
#include <fcntl.h>
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
#include "db/postgres.h"
#include "db/postgres_wire.h"
#include "wire_loop.h"

#define N_STATEMENTS 300

static char *server_url;

enum { BLOCKING, BY_WIRE, N_WAYS };

// The same server in both ways; each session has a temporary table t of its own.
struct pair {
    struct db_target *targets[N_WAYS];
    struct db_session *sessions[N_WAYS];
    int index; // of the next statement
};

static struct db_target *open_target(enum db_protocol protocol)
{
    const struct db_open_options options = {.protocol = protocol, .n_statements = N_STATEMENTS};
    struct db_target *target = NULL;
    struct err err = ERR_INIT;

    if (db_open(&target, server_url, &options, &err) < 0)
        fail_msg("%s", err.text);
    return target;
}

static struct db_session *connect_to(struct db_target *target)
{
    struct db_session *session = NULL;
    struct db_result result;

    if (db_connect(target, 0, &session, &result) != DB_OK)
        fail_msg("%s", result.message);
    return session;
}

static void query_ok(struct db_session *session, const char *sql)
{
    struct db_result result;

    if (db_query(session, sql, false, &result) != DB_OK)
        fail_msg("%s: %s", sql, result.message);
}

static void pair_open(struct pair *p, enum db_protocol protocol)
{
    *p = (struct pair){0};
    for (int way = 0; way < N_WAYS; way++) {
        p->targets[way] = open_target(protocol);
        if (way == BY_WIRE)
            wire_loop_wrap(p->targets[way]);
        p->sessions[way] = connect_to(p->targets[way]);
        query_ok(
            p->sessions[way],
            "CREATE TEMP TABLE t (id int PRIMARY KEY, big "
            "bigint, words text, flag boolean); INSERT INTO t SELECT i, i * 1000000000::bigint, "
            "'number ' || i, i % 2 = 0 FROM generate_series(1, 100) i");
    }
}

static void pair_close(struct pair *p)
{
    for (int way = 0; way < N_WAYS; way++) {
        db_disconnect(p->sessions[way]);
        db_close(p->targets[way]);
    }
}

// ---- both ways alike

static void add_answer(struct db_session *session, const struct db_result *result, struct str *out)
{
    static const char *const marks[] = {"", "bool ", "int ", "double ", "text "};

    // libpq and the codec have words of their own for a lost connection.
    str_addf(out, "%s %s %s, %lld rows, %s%d columns", db_class_name(result->class), result->native,
             result->class == DB_LOST ? "" : result->message, (long long)result->rows,
             result->in_transaction ? "in transaction, " : "", result->n_columns);
    for (int i = 0; i < result->n_columns; i++) {
        str_addf(out, ", %s", db_row_name(session, i));
        if (result->rows == 0)
            continue;
        char buf[DB_VALUE_TEXT_MAX];
        struct db_value value = db_row_value(session, i);
        int len;
        const char *text = db_value_text(&value, buf, &len);
        str_addf(out, ": %s", marks[value.type]);
        str_addn(out, text ? text : "NULL", text ? (size_t)len : 4);
    }
}

static void same(const char *sql, bool want_row, struct str answers[N_WAYS])
{
    if (answers[0].len != answers[1].len ||
        memcmp(answers[0].buf, answers[1].buf, answers[0].len) != 0)
        fail_msg("%s (want_row %d)\nblocking: %.2000s\nby wire:  %.2000s", sql, want_row,
                 answers[0].buf, answers[1].buf);
    for (int way = 0; way < N_WAYS; way++)
        str_release(&answers[way]);
}

static void query_both(struct pair *p, const char *sql, bool want_row)
{
    struct str answers[N_WAYS] = {STR_INIT, STR_INIT};
    struct db_result result;

    for (int way = 0; way < N_WAYS; way++) {
        db_query(p->sessions[way], sql, want_row, &result);
        add_answer(p->sessions[way], &result, &answers[way]);
    }
    same(sql, want_row, answers);
}

// A statement in pieces; '?' is a parameter.
struct compiled {
    struct db_statement base;
    char *sql;
    char *pieces[9];
};

static void compile(struct compiled *c, int index, const char *source)
{
    struct str sql = STR_INIT;
    int n = 0;

    *c = (struct compiled){.base = {.index = index, .kind = db_statement_kind(source)}};
    const char *mark;
    for (; (mark = strchr(source, '?')) != NULL; source = mark + 1) {
        str_addn(&sql, source, (size_t)(mark - source));
        c->pieces[n++] = mem_strndup(source, (size_t)(mark - source));
        str_addf(&sql, "$%d", n);
    }
    str_add(&sql, source);
    c->pieces[n] = mem_strdup(source);
    c->sql = str_detach(&sql);
    c->base.sql = c->sql;
    c->base.n_params = n;
    c->base.pieces = (const char **)c->pieces;
}

static void compiled_release(struct compiled *c)
{
    for (int i = 0; i <= c->base.n_params; i++)
        free(c->pieces[i]);
    free(c->sql);
}

static void execute_both(struct pair *p, const char *sql, const struct db_value *params)
{
    struct compiled c;

    compile(&c, p->index++, sql);
    for (int turn = 0; turn < 4; turn++) {
        struct str answers[N_WAYS] = {STR_INIT, STR_INIT};
        struct db_result result;
        bool want_row = turn % 2;
        for (int way = 0; way < N_WAYS; way++) {
            db_execute(p->sessions[way], &c.base, params, want_row, &result);
            add_answer(p->sessions[way], &result, &answers[way]);
        }
        same(sql, want_row, answers);
    }
    compiled_release(&c);
}

static const enum db_protocol protocols[] = {DB_SIMPLE, DB_EXTENDED, DB_PREPARED};

static void statements_are_answered_alike(void **state)
{
    static const char *const statements[] = {
        "SELECT 1",
        "SELECT id, big, words, flag, NULL AS nothing FROM t ORDER BY id",
        "SELECT count(*), sum(big), avg(id), max(words) FROM t",
        "SELECT 0.1::float4, 1e-300::float8, 'nan'::float8, 1.50::numeric, 7::oid, 3::int2",
        "SELECT '\\x00ff'::bytea, ARRAY[1, 2], '{\"a\": 1}'::jsonb, date '2024-02-29'",
        "SELECT id FROM t WHERE false",
        "SELECT",
        "SELECT repeat('long ', 100000)",
        "SELECT i, repeat('x', i % 300) FROM generate_series(1, 20000) i",
        "VALUES (1, 'a'), (2, 'b')",
        "TABLE t",
        "SHOW server_version_num",
        "EXPLAIN (COSTS off) SELECT * FROM t",
        "INSERT INTO t (id) SELECT 1000 + count(*) FROM t",
        "INSERT INTO t (id) SELECT 1000 + count(*) FROM t RETURNING id, words",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT DO NOTHING",
        "UPDATE t SET words = upper(words) WHERE id <= 10",
        "UPDATE t SET words = lower(words) WHERE id <= 10 RETURNING id",
        "DELETE FROM t WHERE id > 1000",
        "WITH gone AS (DELETE FROM t WHERE id > 90 RETURNING id) SELECT count(*) FROM gone",
        "CREATE TEMP TABLE IF NOT EXISTS other AS SELECT * FROM t",
        "DROP TABLE IF EXISTS other",
        "SET work_mem = '5MB'",
        "DO $$BEGIN RAISE WARNING 'look out'; END$$",
        "LISTEN ear",
        "NOTIFY ear, 'hello'",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "VACUUM t",
        "",
        "   -- nothing",
        "/* nothing */ ;",
        // Failures.
        "SELEC 1",
        "SELECT * FROM nowhere",
        "SELECT nothing FROM t",
        "SELECT nothing(1)",
        "SELECT 1/0",
        "SELECT 1/(id - 50) FROM t ORDER BY id",
        "INSERT INTO t (id) VALUES (1)",
        "INSERT INTO t (id) VALUES (NULL)",
        "DO $$BEGIN RAISE 'no luck' USING ERRCODE = '40001', DETAIL = 'two\nlines'; END$$",
        "DO $$BEGIN RAISE E'first\\nsecond' USING ERRCODE = '40P01'; END$$",
        "DO $$BEGIN RAISE '%', repeat('long ', 100000); END$$",
        "EXECUTE nothing",
        "FETCH 1 FROM nothing",
        "COPY t FROM stdin",
        "COPY t TO stdout",
        "COPY (SELECT 1/0) TO stdout",
        "SELECT 1",
    };

    (void)state;
    for (size_t k = 0; k < ARR_LEN(protocols); k++) {
        struct pair p;
        pair_open(&p, protocols[k]);
        for (size_t i = 0; i < ARR_LEN(statements); i++) {
            query_both(&p, statements[i], false);
            query_both(&p, statements[i], true);
            execute_both(&p, statements[i], NULL);
        }
        pair_close(&p);
    }
}

static void several_statements_in_one_text_are_answered_alike(void **state)
{
    static const char *const texts[] = {
        "SELECT 1; SELECT 2 AS b, 'x' AS c",
        "SELECT 1; UPDATE t SET big = 0 WHERE id < 4",
        "UPDATE t SET big = 0 WHERE id < 4; SELECT id FROM t ORDER BY id",
        "SELECT 1;;",
        "SELECT 1; SELECT 1/0; SELECT 2",
        "SELECT 1; COPY t TO stdout; SELECT 2",
        "SELECT 1; COPY t FROM stdin; SELECT 2",
        "COPY t TO stdout; SELECT 1/0",
        "BEGIN; SELECT 1",
        "SELECT 1/0",
        "COPY t TO stdout",
        "SELECT 1",
        "ROLLBACK; SELECT id FROM t WHERE id = 5",
        "BEGIN; CREATE TEMP TABLE u (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)",
        "INSERT INTO u VALUES (1), (1)",
        "COMMIT",
        "SELECT 1",
    };
    struct pair p;

    (void)state;
    pair_open(&p, DB_SIMPLE);
    for (size_t i = 0; i < ARR_LEN(texts); i++)
        for (int want_row = 0; want_row < 2; want_row++)
            query_both(&p, texts[i], want_row);
    for (size_t i = 0; i < ARR_LEN(texts); i++)
        execute_both(&p, texts[i], NULL);
    pair_close(&p);
}

static void parameters_are_sent_alike(void **state)
{
    char *large = mem_calloc(1200001, 1);
    memset(large, 'w', 1200000);
    const struct db_value values[] = {
        {.type = DB_INT, .i = INT64_MIN + 1},
        {.type = DB_INT, .i = INT64_MAX},
        {.type = DB_DOUBLE, .d = 0.1},
        {.type = DB_DOUBLE, .d = -1e300},
        {.type = DB_BOOL, .b = true},
        {.type = DB_NULL},
        {.type = DB_TEXT, .s = "42", .text_len = 2},
    };
    const struct db_value text[] = {{.type = DB_TEXT, .s = large, .text_len = 1200000},
                                    {.type = DB_TEXT, .s = "", .text_len = 0}};

    (void)state;
    for (size_t k = 0; k < ARR_LEN(protocols); k++) {
        struct pair p;
        pair_open(&p, protocols[k]);
        for (size_t i = 0; i < ARR_LEN(values); i++) {
            const struct db_value params[] = {values[i], values[i]};
            execute_both(&p, "SELECT ? AS a, ?::text AS b", params);
            execute_both(&p, "SELECT id FROM t WHERE id = ? OR ?::text IS NULL", params);
            execute_both(&p, "SELECT 1 + ?", params);
        }
        if (protocols[k] == DB_SIMPLE)
            execute_both(&p, "SELECT length('?'), md5('?')", text);
        else
            execute_both(&p, "SELECT length(?), md5(?)", text);
        pair_close(&p);
    }
    free(large);
}

// The statement's text is gone from the server, and comes back by itself.
static void forgotten_statements_are_prepared_again(void **state)
{
    static const char *const forgetting[] = {"DISCARD ALL", "DEALLOCATE ALL", "DEALLOCATE prony_0"};
    struct pair p;
    struct compiled c;

    (void)state;
    pair_open(&p, DB_PREPARED);
    compile(&c, 0, "SELECT 5 AS five");
    for (size_t i = 0; i < ARR_LEN(forgetting); i++)
        for (int way = 0; way < N_WAYS; way++) {
            struct db_result result;
            for (int turn = 0; turn < 3; turn++)
                assert_int_equal(db_execute(p.sessions[way], &c.base, NULL, true, &result), DB_OK);
            query_ok(p.sessions[way], forgetting[i]);
            assert_int_equal(db_execute(p.sessions[way], &c.base, NULL, true, &result),
                             DB_UNDEFINED);
            assert_string_equal(result.native, "26000");
            assert_int_equal(db_execute(p.sessions[way], &c.base, NULL, true, &result), DB_OK);
            assert_int_equal(db_row_value(p.sessions[way], 0).i, 5);
        }
    // By wire even a statement that itself asks for one that is not there can go on.
    compiled_release(&c);
    compile(&c, 1, "EXECUTE nothing");
    struct db_result result;
    for (int turn = 0; turn < 3; turn++) {
        db_execute(p.sessions[BY_WIRE], &c.base, NULL, false, &result);
        assert_string_equal(result.native, "26000");
    }
    query_ok(p.sessions[BY_WIRE], "PREPARE nothing AS SELECT 1");
    assert_int_equal(db_execute(p.sessions[BY_WIRE], &c.base, NULL, false, &result), DB_OK);
    compiled_release(&c);
    pair_close(&p);
}

static void a_session_that_is_ended_is_lost_alike(void **state)
{
    static const struct {
        const char *before, *sql;
    } cases[] = {
        {"SELECT 1", "SELECT pg_terminate_backend(pg_backend_pid())"},
        {"BEGIN", "SELECT pg_terminate_backend(pg_backend_pid())"},
        // The server says goodbye while nothing is asked.
        {"SET idle_session_timeout = '100ms'", "SELECT 1"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct pair p;
        pair_open(&p, DB_PREPARED);
        for (int way = 0; way < N_WAYS; way++)
            query_ok(p.sessions[way], cases[i].before);
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 400 * NS_PER_MS);
        query_both(&p, cases[i].sql, true);
        for (int way = 0; way < N_WAYS; way++)
            assert_true(db_session_lost(p.sessions[way]));
        query_both(&p, "SELECT 1", true);
        pair_close(&p);
    }
}

// ---- taking over and giving back

static struct db_wire *adopt(struct db_session *session)
{
    char why[DB_MESSAGE_MAX];
    struct db_wire *wire = db_wire_adopt(session, why, sizeof(why));

    if (!wire)
        fail_msg("%s", why);
    return wire;
}

static void ask(struct db_wire *wire, const char *sql, struct str *out)
{
    struct db_result result = {0};

    assert_int_equal(wire->codec->encode_query(wire, sql, true, out, &result), DB_OK);
}

static bool has_tls(void)
{
    return strstr(server_url, "sslmode=") != NULL;
}

static void a_session_can_be_taken_over_and_given_back(void **state)
{
    struct db_target *target = open_target(DB_PREPARED);
    struct db_session *session = connect_to(target);
    struct str out = STR_INIT;
    struct db_result result;
    struct compiled c;

    (void)state;
    compile(&c, 7, "SELECT 6 AS six");
    int fd = PQsocket(postgres_session(session)->conn);
    for (int turn = 0; turn < 3; turn++) {
        int flags = fcntl(fd, F_GETFL) & ~O_NONBLOCK;
        assert_int_equal(fcntl(fd, F_SETFL, turn == 1 ? flags : flags | O_NONBLOCK), 0);
        int before = fcntl(fd, F_GETFL);
        // Prepared by one side, known to the other.
        assert_int_equal(db_execute(session, &c.base, NULL, true, &result), DB_OK);
        struct db_wire *wire = adopt(session);
        assert_int_equal(wire->fd, fd);
        assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
        assert_int_equal(wire->tls != NULL, has_tls());
        for (int i = 0; i < 3; i++) {
            assert_int_equal(db_wire_encode(wire, &c.base, NULL, true, &out, &result), DB_OK);
            assert_int_equal(out.buf[0], 'B');
            assert_int_equal(wire_loop_run(wire, &out, &result), DB_WIRE_ANSWERED);
            assert_int_equal(wire->codec->row_value(wire, 0).i, 6);
        }
        db_wire_release(wire);
        assert_int_equal(fcntl(fd, F_GETFL), before);
        assert_false(db_session_lost(session));
    }
    assert_int_equal(db_execute(session, &c.base, NULL, true, &result), DB_OK);
    db_disconnect(session);
    db_close(target);
    compiled_release(&c);
    str_release(&out);
}

static void a_session_that_is_busy_stays_with_the_driver(void **state)
{
    struct db_target *target = open_target(DB_PREPARED);
    struct db_session *session = connect_to(target);
    char why[DB_MESSAGE_MAX];
    struct db_result result;

    (void)state;
    query_ok(session, "BEGIN");
    assert_null(db_wire_adopt(session, why, sizeof(why)));
    assert_string_equal(why, "the connection is inside a transaction");
    query_ok(session, "COMMIT");
    db_wire_release(adopt(session));
    assert_int_equal(
        db_query(session, "SELECT pg_terminate_backend(pg_backend_pid())", false, &result),
        DB_LOST);
    assert_null(db_wire_adopt(session, why, sizeof(why)));
    assert_string_equal(why, "the connection was lost before");
    db_disconnect(session);
    db_close(target);
}

static void leaving_in_the_middle_does_not_wait(void **state)
{
    static const char *const last_words[] = {
        "SELECT pg_sleep(30)",
        "SELECT repeat('x', 1000) FROM generate_series(1, 100000)", // nobody reads it
        NULL,                                                       // inside a transaction
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(last_words); i++) {
        struct db_target *target = open_target(DB_PREPARED);
        struct db_session *session = connect_to(target);
        struct db_wire *wire = adopt(session);
        struct str out = STR_INIT;
        struct db_result result;
        ask(wire, "BEGIN", &out);
        assert_int_equal(wire_loop_run(wire, &out, &result), DB_WIRE_ANSWERED);
        assert_true(result.in_transaction);
        if (last_words[i]) {
            ask(wire, last_words[i], &out);
            assert_int_equal(wire_loop_send(wire, &out), 0);
        }
        int64_t start_ns = clock_now_ns(&clock_system);
        db_wire_release(wire);
        assert_int_equal(db_session_lost(session), last_words[i] != NULL);
        db_disconnect(session);
        assert_in_range(clock_now_ns(&clock_system) - start_ns, 0, 5 * NS_PER_S);
        db_close(target);
        str_release(&out);
    }
}

// ---- several requests at once

// Sends and reads until n requests are answered; the answers as one line.
static void run_all(struct db_wire *wire, struct str *out, int n, struct str *log)
{
    struct str plain = STR_INIT, answer = STR_INIT;
    char buf[8192];

    assert_int_equal(wire_loop_send(wire, out), 0);
    while (n > 0) {
        size_t got = wire_loop_receive(wire, buf, sizeof(buf));
        assert_true(got > 0);
        str_clear(&plain);
        if (wire->tls)
            assert_int_equal(db_wire_open(wire, buf, got, &plain, &answer), 0);
        else
            str_addn(&plain, buf, got);
        for (size_t at = 0; at < plain.len;) {
            struct db_result result;
            size_t used;
            enum db_wire_progress progress =
                db_wire_feed(wire, plain.buf + at, plain.len - at, &used, out, &result);
            assert_int_not_equal(progress, DB_WIRE_BROKEN);
            at += used;
            if (progress == DB_WIRE_MORE)
                break;
            n--;
            str_addf(log, "%s", db_class_name(result.class));
            if (result.n_columns > 0)
                str_addf(log, " %lld", (long long)wire->codec->row_value(wire, 0).i);
            str_addc(log, ';');
        }
    }
    str_release(&plain);
    str_release(&answer);
}

static void open_requests_are_answered_in_order(void **state)
{
    static const char *const texts[] = {
        "BEGIN", "SELECT ?::int AS a", "SELECT 1/(?::int - ?::int)", "SELECT ?::int AS a", "COMMIT",
    };
    struct db_value params[] = {{.type = DB_INT, .i = 4}, {.type = DB_INT, .i = 4}};
    struct compiled c[ARR_LEN(texts)];

    (void)state;
    for (size_t i = 0; i < ARR_LEN(texts); i++)
        compile(&c[i], (int)i, texts[i]);
    for (size_t k = 0; k < ARR_LEN(protocols); k++) {
        struct db_target *target = open_target(protocols[k]);
        struct db_session *session = connect_to(target);
        struct db_wire *wire = adopt(session);
        struct str out = STR_INIT, log = STR_INIT, expected = STR_INIT;
        struct db_result result;
        params[0].i = 4;
        for (int turn = 0; turn < 3; turn++) {
            for (size_t i = 0; i < ARR_LEN(texts); i++)
                assert_int_equal(db_wire_encode(wire, &c[i].base, params, true, &out, &result),
                                 DB_OK);
            run_all(wire, &out, (int)ARR_LEN(texts), &log);
            // What comes after the failure fails; COMMIT then rolls back.
            assert_string_equal(log.buf, "ok;ok 4;other;other;ok;");
            str_clear(&log);
        }
        for (int i = 0; i < wire->codec->depth_max; i++) {
            params[0].i = i;
            assert_int_equal(db_wire_encode(wire, &c[1].base, params, true, &out, &result), DB_OK);
            str_addf(&expected, "ok %d;", i);
        }
        run_all(wire, &out, wire->codec->depth_max, &log);
        assert_string_equal(log.buf, expected.buf);
        db_wire_release(wire);
        db_disconnect(session);
        db_close(target);
        str_release(&out);
        str_release(&log);
        str_release(&expected);
    }
    for (size_t i = 0; i < ARR_LEN(texts); i++)
        compiled_release(&c[i]);
}

// ---- the program

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_are_answered_alike),
        cmocka_unit_test(several_statements_in_one_text_are_answered_alike),
        cmocka_unit_test(parameters_are_sent_alike),
        cmocka_unit_test(forgotten_statements_are_prepared_again),
        cmocka_unit_test(a_session_that_is_ended_is_lost_alike),
        cmocka_unit_test(a_session_can_be_taken_over_and_given_back),
        cmocka_unit_test(a_session_that_is_busy_stays_with_the_driver),
        cmocka_unit_test(leaving_in_the_middle_does_not_wait),
        cmocka_unit_test(open_requests_are_answered_in_order),
    };
    char *targets = mem_strdup(getenv("PRONY_TEST_TARGETS"));

    for (char *word = targets ? strtok(targets, " ") : NULL; word; word = strtok(NULL, " "))
        if (strncmp(word, "postgres", 8) == 0 && !server_url)
            server_url = mem_strdup(word);
    free(targets);
    if (!server_url) {
        puts("no postgres target in PRONY_TEST_TARGETS");
        return 77;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(server_url);
    return failed;
}
