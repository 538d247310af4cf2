// The MySQL codec against a real server: every statement goes through the blocking driver and
// through the wire, and both must give the same. The server is the first mysql target in
// PRONY_TEST_TARGETS, with the right to make tables and procedures and to set global variables;
// without one nothing is run and the status is 77. Names are the process's; all is dropped.
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
#include "db/mysql_wire.h"
#include "wire_loop.h"

#define N_STATEMENTS 256
#define FIRST_INDEX  100 // of compare; lower ones are the tests' own

static_assert(sizeof(struct mysqldb_wire) <= 2048, "thousands of sessions have one each");

static char *server_url;
static char name[32]; // %T in statements

enum { BLOCKING, BY_WIRE, N_WAYS };

// The same server in both ways.
struct pair {
    struct db_target *targets[N_WAYS];
    struct db_session *sessions[N_WAYS];
    int index; // of the next statement
};

// ---- helpers

static char *with_name(const char *sql)
{
    struct str out = STR_INIT;

    for (; *sql; sql++) {
        if (sql[0] == '%' && sql[1] == 'T') {
            str_add(&out, name);
            sql++;
        } else {
            str_addc(&out, *sql);
        }
    }
    return str_detach(&out);
}

static void pair_open(struct pair *p, enum db_protocol protocol)
{
    const struct db_open_options options = {.protocol = protocol, .n_statements = N_STATEMENTS};

    *p = (struct pair){.index = FIRST_INDEX};
    for (int way = 0; way < N_WAYS; way++) {
        struct err err = ERR_INIT;
        struct db_result result = {0};
        if (db_open(&p->targets[way], server_url, &options, &err) < 0)
            fail_msg("%s", err.text);
        if (way == BY_WIRE)
            wire_loop_wrap(p->targets[way]);
        if (db_connect(p->targets[way], 0, &p->sessions[way], &result) != DB_OK)
            fail_msg("%s", result.message);
    }
}

static void pair_close(struct pair *p)
{
    for (int way = 0; way < N_WAYS; way++) {
        db_disconnect(p->sessions[way]);
        db_close(p->targets[way]);
    }
}

// Set-up: by the blocking session only.
static void run(struct pair *p, const char *sql)
{
    struct db_result result = {0};
    char *text = with_name(sql);

    if (db_query(p->sessions[BLOCKING], text, false, &result) != DB_OK)
        fail_msg("%s: %s", text, result.message);
    free(text);
}

static void add_value(const struct db_value *value, struct str *out)
{
    static const char *const marks[] = {[DB_NULL] = "",
                                        [DB_BOOL] = "bool ",
                                        [DB_INT] = "int ",
                                        [DB_DOUBLE] = "double ",
                                        [DB_TEXT] = "text "};
    char buf[DB_VALUE_TEXT_MAX];
    int len;
    const char *text = db_value_text(value, buf, &len);

    str_add(out, marks[value->type]);
    str_addn(out, text ? text : "NULL", text ? (size_t)len : 4);
}

static void add_answer(struct db_session *session, const struct db_result *result, struct str *out)
{
    str_addf(out, "%s %s %s, %lld rows, %s%d columns", db_class_name(result->class), result->native,
             result->message, (long long)result->rows,
             result->in_transaction ? "in transaction, " : "", result->n_columns);
    for (int i = 0; i < result->n_columns; i++) {
        struct db_value value = db_row_value(session, i);
        str_addf(out, ", %s: ", db_row_name(session, i));
        add_value(&value, out);
    }
}

// A statement in pieces, as the workload floor makes it: '?' is a parameter.
struct compiled {
    struct db_statement base;
    char *sql;
    char *pieces[9];
};

static void compile(struct compiled *c, int index, const char *sql)
{
    int n = 0;

    *c = (struct compiled){.base = {.index = index, .kind = db_statement_kind(sql)}};
    c->sql = with_name(sql);
    const char *start = c->sql, *mark;
    for (; (mark = strchr(start, '?')) != NULL; start = mark + 1)
        c->pieces[n++] = mem_strndup(start, (size_t)(mark - start));
    c->pieces[n] = mem_strdup(start);
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

static void same(const char *sql, int want_row, const struct str answers[N_WAYS])
{
    if (answers[0].len != answers[1].len ||
        memcmp(answers[0].buf, answers[1].buf, answers[0].len) != 0)
        fail_msg("%s (want_row %d)\nblocking: %s\nby wire:  %s", sql, want_row, answers[0].buf,
                 answers[1].buf);
}

static void execute_both(struct pair *p, const struct compiled *c, const struct db_value *params,
                         bool want_row)
{
    struct str answers[N_WAYS] = {STR_INIT, STR_INIT};
    struct db_result result;

    for (int way = 0; way < N_WAYS; way++) {
        db_execute(p->sessions[way], &c->base, params, want_row, &result);
        add_answer(p->sessions[way], &result, &answers[way]);
    }
    same(c->sql, want_row, answers);
    for (int way = 0; way < N_WAYS; way++)
        str_release(&answers[way]);
}

// The statement again and again: with and without its row, so that definitions are known and not.
static void compare(struct pair *p, const char *sql, const struct db_value *params)
{
    static const bool wants[] = {false, true, true, false, true};
    struct compiled c;

    compile(&c, p->index++, sql);
    for (size_t i = 0; i < ARR_LEN(wants); i++)
        execute_both(p, &c, params, wants[i]);
    compiled_release(&c);
}

static void compare_query(struct pair *p, const char *sql, bool want_row)
{
    struct str answers[N_WAYS] = {STR_INIT, STR_INIT};
    struct db_result result;
    char *text = with_name(sql);

    for (int way = 0; way < N_WAYS; way++) {
        db_query(p->sessions[way], text, want_row, &result);
        add_answer(p->sessions[way], &result, &answers[way]);
    }
    same(text, want_row, answers);
    free(text);
    for (int way = 0; way < N_WAYS; way++)
        str_release(&answers[way]);
}

// A test per protocol.
#define EACH_PROTOCOL(p)                                                               \
    for (int protocol_ = DB_SIMPLE;                                                    \
         protocol_ <= DB_PREPARED && (pair_open((p), (enum db_protocol)protocol_), 1); \
         pair_close(p), protocol_++)

// ---- tests

static const char *const types[] = {
    "TINYINT",
    "TINYINT UNSIGNED",
    "BOOLEAN",
    "SMALLINT",
    "SMALLINT UNSIGNED",
    "MEDIUMINT",
    "MEDIUMINT UNSIGNED",
    "INT",
    "INT UNSIGNED",
    "INT(8) ZEROFILL",
    "BIGINT",
    "BIGINT UNSIGNED",
    "FLOAT",
    "FLOAT UNSIGNED",
    "FLOAT(10,3)",
    "FLOAT ZEROFILL",
    "DOUBLE",
    "DOUBLE(20,4)",
    "DOUBLE ZEROFILL",
    "DECIMAL(10,0)",
    "DECIMAL(30,10)",
    "DECIMAL(20,5) ZEROFILL",
    "BIT(1)",
    "BIT(10)",
    "BIT(64)",
    "YEAR",
    "DATE",
    "TIME",
    "TIME(1)",
    "TIME(3)",
    "TIME(6)",
    "DATETIME",
    "DATETIME(2)",
    "DATETIME(6)",
    "TIMESTAMP NULL",
    "TIMESTAMP(4) NULL",
    "CHAR(20)",
    "VARCHAR(300)",
    "VARCHAR(20) CHARACTER SET latin1",
    "BINARY(20)",
    "VARBINARY(300)",
    "TINYTEXT",
    "TEXT",
    "MEDIUMTEXT",
    "LONGTEXT",
    "TINYBLOB",
    "BLOB",
    "MEDIUMBLOB",
    "LONGBLOB",
    "JSON",
    "ENUM('12','abc','')",
    "SET('12','abc','x')",
    "INET6",
    "UUID",
};

// As text, whatever the type makes of it, if it takes it at all.
static const char *const values[] = {
    "NULL",
    "0",
    "1",
    "-1",
    "12",
    "127",
    "-128",
    "255",
    "99999",
    "-8388608",
    "16777215",
    "2147483647",
    "-2147483648",
    "4294967295",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "0.1",
    "-1.5",
    "1e-20",
    "1.17549435e-38",
    "3.4028235e38",
    "1234567.891",
    "1e15",
    "1e16",
    "0.000012345678",
    "'2024-02-29'",
    "'2024-02-29 23:59:58.123456'",
    "'0000-00-00'",
    "'1970-01-02 00:00:01'",
    "'9999-12-31 23:59:59.999999'",
    "'-838:59:59'",
    "'838:59:58.999999'",
    "'00:00:00'",
    "'12:34:56.5'",
    "'12'",
    "'abc'",
    "''",
    "'12,abc'",
    "'\\n\\0\\'\"'",
    "'\xc3\xa9\xc2\xb5\xf0\x9f\x98\x80'",
    "REPEAT('0123456789', 26)",
    "b'1010'",
    "'{\"a\": [1, null]}'",
    "'2001:db8::1'",
    "'123e4567-e89b-12d3-a456-426655440000'",
    "2024",
    "1901",
};

static void every_type_of_column_reads_alike(void **state)
{
    struct pair p;

    (void)state;
    EACH_PROTOCOL(&p)
    {
        for (int way = 0; way < N_WAYS; way++) {
            struct db_result result;
            db_query(p.sessions[way], "SET sql_mode=''", false, &result);
        }
        for (size_t i = 0; i < ARR_LEN(types); i++) {
            struct str sql = STR_INIT;
            run(&p, "DROP TABLE IF EXISTS %T");
            str_addf(&sql, "CREATE TABLE %%T (id INT PRIMARY KEY, v %s)", types[i]);
            run(&p, sql.buf);
            for (size_t k = 0; k < ARR_LEN(values); k++) {
                struct db_result ignored;
                str_clear(&sql);
                str_addf(&sql, "INSERT INTO %s VALUES (%zu, %s)", name, k, values[k]);
                db_query(p.sessions[BLOCKING], sql.buf, false, &ignored); // not all fit
            }
            struct compiled c;
            compile(&c, 0, "SELECT v, id, v FROM %T WHERE id = ?");
            for (size_t k = 0; k < ARR_LEN(values); k++)
                execute_both(&p, &c, &(struct db_value){.type = DB_INT, .i = (int64_t)k}, true);
            compiled_release(&c);
            compare(&p, "SELECT * FROM %T", NULL);
            str_release(&sql);
        }
        run(&p, "DROP TABLE %T");
    }
}

static void expressions_read_alike(void **state)
{
    static const char *const sqls[] = {
        "SELECT 1",
        "SELECT 1, 2, 3",
        "SELECT NULL",
        "SELECT 1.5, 1e0, -0.0, 1/3",
        "SELECT TRUE",
        "SELECT 18446744073709551615, -1",
        "SELECT CAST(1.1 AS FLOAT), CAST(1.1 AS DOUBLE)",
        "SELECT SUM(a), AVG(a), COUNT(*), MIN(a) FROM (SELECT 1 a UNION SELECT 2) t",
        "SELECT NOW() IS NULL, CURDATE() - CURDATE()",
        "SELECT TIMEDIFF('10:00', '12:30:01.5')",
        "SELECT CONCAT('a', NULL)",
        "SELECT '' AS ``",
        "SELECT 1 AS `a``b`, 2 AS `\xc3\xa9`",
        "SELECT 5 AS a, 6 AS a",
        "SELECT REPEAT('x', 70000)",
        "SELECT REPEAT('x', 1000000)",
        "SELECT seq FROM seq_1_to_5000",
        "SELECT seq FROM seq_1_to_10 WHERE seq > 100",
        "SHOW VARIABLES LIKE 'character_set_client'",
        "SHOW WARNINGS",
        "DO 1",
        "SET @x = 5",
        "SELECT @x",
        "EXPLAIN SELECT 1",
        "SELECT 1 FROM dual WHERE FALSE",
        "VALUES (1,2),(3,4)",
        "SELECT ST_GeomFromText('POINT(1 2)')",
        "SELECT JSON_OBJECT('a', 1)",
        "SELECT UUID() IS NULL",
        "SELECT REPEAT('a', 250)",
        "SELECT REPEAT('a', 251)",
        "SELECT REPEAT('a', 65536)",
        "ANALYZE TABLE no_such_table",
        "CHECK TABLE no_such_table",
        "KILL QUERY 0",
        "SELECT SLEEP(0)",
    };
    struct pair p;

    (void)state;
    EACH_PROTOCOL(&p)
    {
        for (size_t i = 0; i < ARR_LEN(sqls); i++) {
            compare(&p, sqls[i], NULL);
            compare_query(&p, sqls[i], true);
            compare_query(&p, sqls[i], false);
        }
    }
}

static void parameters_of_every_type_arrive_alike(void **state)
{
    struct db_value text = {.type = DB_TEXT, .s = "words", .text_len = 5};
    const struct db_value rows[][4] = {
        {{.type = DB_INT, .i = 1},
         {.type = DB_DOUBLE, .d = 0.1},
         {.type = DB_BOOL, .b = true},
         text},
        {{.type = DB_NULL}, {.type = DB_NULL}, {.type = DB_NULL}, {.type = DB_NULL}},
        {text,
         {.type = DB_INT, .i = INT64_MIN},
         {.type = DB_DOUBLE, .d = 1e300},
         {.type = DB_NULL}},
        {{.type = DB_INT, .i = INT64_MAX}, {.type = DB_NULL}, text, {.type = DB_BOOL}},
        {{.type = DB_INT, .i = -1}, {.type = DB_DOUBLE, .d = -0.0}, {.type = DB_INT}, text},
    };
    struct pair p;

    (void)state;
    EACH_PROTOCOL(&p)
    {
        struct compiled c;
        compile(&c, 0, "SELECT ?, ?, ?, ? AS d");
        for (int round = 0; round < 2; round++)
            for (size_t i = 0; i < ARR_LEN(rows); i++)
                execute_both(&p, &c, rows[i], true);
        compiled_release(&c);
    }
}

static void statements_that_change_data_count_alike(void **state)
{
    static const char *const sqls[] = {
        "INSERT INTO %T VALUES (1, 1), (2, 2), (3, 3)",
        "UPDATE %T SET v = 5",
        "UPDATE %T SET v = 5",
        "UPDATE %T SET v = 6 WHERE id > 1",
        "INSERT INTO %T VALUES (1, 1)",
        "INSERT IGNORE INTO %T VALUES (1, 1), (9, 9)",
        "REPLACE INTO %T VALUES (9, 8)",
        "INSERT INTO %T VALUES (9, 1) ON DUPLICATE KEY UPDATE v = 7",
        "DELETE FROM %T WHERE id = 9",
        "INSERT INTO %T VALUES (20, 1) RETURNING id, v",
        "DELETE FROM %T RETURNING id",
        "DELETE FROM %T",
        "INSERT INTO %T VALUES ('x', 1)",
        "TRUNCATE %T",
    };
    struct pair p;

    (void)state;
    EACH_PROTOCOL(&p)
    {
        for (size_t i = 0; i < ARR_LEN(sqls); i++) {
            struct str answers[N_WAYS] = {STR_INIT, STR_INIT};
            for (int way = 0; way < N_WAYS; way++) {
                struct db_result result;
                struct compiled c;
                run(&p, "DROP TABLE IF EXISTS %T");
                run(&p, "CREATE TABLE %T (id INT PRIMARY KEY, v INT NOT NULL)");
                compile(&c, 0, "COMMIT"); // a handle that must be prepared for each way anew
                for (size_t k = 0; k <= i; k++) {
                    compiled_release(&c);
                    compile(&c, (int)k, sqls[k]);
                    db_execute(p.sessions[way], &c.base, NULL, k % 2, &result);
                }
                add_answer(p.sessions[way], &result, &answers[way]);
                compiled_release(&c);
            }
            same(sqls[i], (int)i % 2, answers);
            for (int way = 0; way < N_WAYS; way++)
                str_release(&answers[way]);
        }
        run(&p, "DROP TABLE %T");
    }
}

static void failures_are_told_alike(void **state)
{
    static const char *const sqls[] = {
        "SELECT * FROM no_such_table",
        "SELEC 1",
        "SELECT nothing",
        "SELECT 1 FROM",
        "CALL no_such()",
        "INSERT INTO no_such VALUES (1)",
        "USE no_such_database",
        "SELECT * FROM no_such.t",
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'ours'",
        "SIGNAL SQLSTATE '40001'",
        "SELECT (SELECT 1 UNION SELECT 2)",
        "SELECT EXP(10000)",
        "SELECT 1; SELECT 2",
        "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE %T",
        "SET @@global.no_such = 1",
        "",
        "KILL 99999999",
        "SAVEPOINT",
        "ROLLBACK TO nothing",
        "SELECT ST_GeomFromText('x')",
    };
    struct pair p;

    (void)state;
    EACH_PROTOCOL(&p)
    {
        run(&p, "CREATE TABLE IF NOT EXISTS %T (v TEXT)");
        for (size_t i = 0; i < ARR_LEN(sqls); i++) {
            compare(&p, sqls[i], NULL);
            compare_query(&p, sqls[i], true);
        }
        run(&p, "DROP TABLE %T");
    }
}

static void transactions_and_locks_are_known_alike(void **state)
{
    static const char *const sqls[] = {
        "BEGIN",
        "SELECT 1",
        "no such word",
        "SELECT 1",
        "COMMIT",
        "START TRANSACTION READ ONLY",
        "ROLLBACK",
        "LOCK TABLES %T WRITE",
        "SELECT * FROM no_such",
        "INSERT INTO %T VALUES ('x')",
        "COMMIT",
        "SELECT 1",
        "ROLLBACK",
        "SELECT 1",
        "LOCK TABLES %T READ",
        "UNLOCK TABLES",
        "LOCK TABLES %T READ",
        "BEGIN",
        "INSERT INTO %T VALUES ('y')",
        "ROLLBACK",
        "SET autocommit=0",
        "SELECT * FROM %T",
        "COMMIT",
        "SET autocommit=1",
        "BEGIN",
        "CREATE TABLE IF NOT EXISTS %T (v INT)",
        "SELECT 1",
        "BEGIN",
        "SAVEPOINT a",
        "ROLLBACK TO a",
        "SELECT 1",
        "ROLLBACK",
    };
    struct pair p;

    (void)state;
    // One after the other: they lock each other out.
    EACH_PROTOCOL(&p)
    {
        struct str answers[N_WAYS] = {STR_INIT, STR_INIT};
        run(&p, "CREATE TABLE IF NOT EXISTS %T (v TEXT)");
        for (int way = 0; way < N_WAYS; way++) {
            run(&p, "TRUNCATE %T");
            for (size_t i = 0; i < ARR_LEN(sqls); i++) {
                struct db_result result;
                struct compiled c;
                char *sql = with_name(sqls[i]);
                compile(&c, (int)i, sqls[i]);
                if (i % 3 == 2)
                    db_query(p.sessions[way], sql, true, &result);
                else
                    db_execute(p.sessions[way], &c.base, NULL, true, &result);
                str_addf(&answers[way], "%s: ", sql);
                add_answer(p.sessions[way], &result, &answers[way]);
                str_addc(&answers[way], '\n');
                compiled_release(&c);
                free(sql);
            }
        }
        same("a row of statements", true, answers);
        for (int way = 0; way < N_WAYS; way++)
            str_release(&answers[way]);
        run(&p, "DROP TABLE %T");
    }
}

static void procedures_give_all_their_results_alike(void **state)
{
    static const char *const bodies[] = {
        "() SELECT 1 AS a",
        "() BEGIN SELECT 1 AS a, 'x' AS b; SELECT 2.5 AS c UNION SELECT 3; DO 1; END",
        "() BEGIN SET @y = 1; END",
        "() BEGIN SELECT 1 AS a FROM dual WHERE FALSE; SELECT 7 AS b; END",
        "() BEGIN SELECT 1 AS a; SELECT * FROM no_such_table; END",
        "() BEGIN SELECT seq FROM seq_1_to_1000; SIGNAL SQLSTATE '45000'; END",
        "() BEGIN UPDATE (SELECT 1) x SET a = 1; END",
    };
    struct pair p;

    (void)state;
    EACH_PROTOCOL(&p)
    {
        for (size_t i = 0; i < ARR_LEN(bodies); i++) {
            struct db_result result;
            char *sql = mem_printf("CREATE PROCEDURE %s%s", name, bodies[i]);
            run(&p, "DROP PROCEDURE IF EXISTS %T");
            if (db_query(p.sessions[BLOCKING], sql, false, &result) == DB_OK) {
                compare(&p, "CALL %T()", NULL);
                compare_query(&p, "CALL %T()", true);
            }
            free(sql);
        }
        run(&p, "DROP PROCEDURE IF EXISTS %T");
        run(&p, "CREATE PROCEDURE %T(IN a INT, OUT b INT) BEGIN SET b = a + 1; SELECT a; END");
        compare(&p, "CALL %T(?, @z)", &(struct db_value){.type = DB_INT, .i = 4});
        compare(&p, "SELECT @z", NULL);
        run(&p, "DROP PROCEDURE %T");
    }
}

static void columns_that_change_are_noticed(void **state)
{
    static const char *const changes[] = {
        "ALTER TABLE %T MODIFY v VARCHAR(20)", "ALTER TABLE %T ADD w INT DEFAULT 7",
        "ALTER TABLE %T MODIFY v DOUBLE",      "ALTER TABLE %T DROP id",
        "ALTER TABLE %T MODIFY v DATE NULL",
    };
    struct pair p;

    (void)state;
    EACH_PROTOCOL(&p)
    {
        struct compiled c;
        run(&p, "DROP TABLE IF EXISTS %T");
        run(&p, "CREATE TABLE %T (id INT, v INT)");
        run(&p, "INSERT INTO %T VALUES (1, 20)");
        compile(&c, 0, "SELECT * FROM %T");
        for (int i = 0; i < 3; i++)
            execute_both(&p, &c, NULL, true);
        for (size_t k = 0; k < ARR_LEN(changes); k++) {
            if (k == ARR_LEN(changes) - 1)
                run(&p, "UPDATE %T SET v = NULL");
            run(&p, changes[k]);
            // The library finds out by failing once; the codec needs not.
            struct db_result ignored;
            db_execute(p.sessions[BLOCKING], &c.base, NULL, true, &ignored);
            for (int i = 0; i < 3; i++)
                execute_both(&p, &c, NULL, i != 1);
        }
        compiled_release(&c);
        run(&p, "DROP TABLE %T");
    }
}

static void long_rows_and_parameters_pass(void **state)
{
    struct db_result result;
    struct pair p;
    char *text = mem_calloc(17000001, 1);
    struct db_value param = {.type = DB_TEXT, .s = text, .text_len = 17000000};

    (void)state;
    memset(text, 'x', 17000000);
    pair_open(&p, DB_PREPARED);
    db_query(p.sessions[BLOCKING], "SELECT @@global.max_allowed_packet", true, &result);
    char *restore = mem_printf("SET GLOBAL max_allowed_packet = %lld",
                               (long long)db_row_value(p.sessions[BLOCKING], 0).i);
    run(&p, "SET GLOBAL max_allowed_packet = 67108864");
    pair_close(&p);
    for (int protocol = DB_EXTENDED; protocol <= DB_PREPARED; protocol++) {
        struct compiled c;
        pair_open(&p, (enum db_protocol)protocol);
        compile(&c, 0, "SELECT LENGTH(?)");
        for (int i = 0; i < 2; i++)
            execute_both(&p, &c, &param, true);
        compiled_release(&c);
        compile(&c, 1, "SELECT REPEAT('x', 40000000) UNION ALL SELECT 'y'");
        execute_both(&p, &c, NULL, false);
        compiled_release(&c);
        assert_int_equal(
            db_query(p.sessions[BY_WIRE], "SELECT REPEAT('x', 20000000)", true, &result),
            DB_OTHER); // too long for a script by wire
        assert_int_equal(db_query(p.sessions[BY_WIRE], "SELECT 1", true, &result), DB_OK);
        pair_close(&p);
    }
    pair_open(&p, DB_PREPARED);
    run(&p, restore);
    pair_close(&p);
    free(restore);
    free(text);
}

static void killed_session_is_lost_alike(void **state)
{
    struct pair p, other;

    (void)state;
    pair_open(&other, DB_SIMPLE);
    EACH_PROTOCOL(&p)
    {
        for (int way = 0; way < N_WAYS; way++) {
            struct db_result result;
            db_query(p.sessions[way], "SELECT CONNECTION_ID()", true, &result);
            char *kill = mem_printf("KILL %lld", (long long)db_row_value(p.sessions[way], 0).i);
            run(&other, kill);
            free(kill);
            assert_int_equal(db_query(p.sessions[way], "SELECT 1", false, &result), DB_LOST);
            assert_true(db_session_lost(p.sessions[way]));
        }
    }
    pair_close(&other);
}

// ---- taking over and giving back

static struct db_session *connect_plainly(struct db_target **ret, const char *parameter,
                                          const char *value)
{
    const struct db_open_options options = {.protocol = DB_PREPARED, .n_statements = 1};
    struct db_session *session;
    struct str text = STR_INIT;
    struct db_result result;
    struct err err = ERR_INIT;
    struct url url;

    assert_int_equal(url_parse(&url, server_url, &err), 0);
    if (parameter)
        kvs_set(&url.params, parameter, value);
    url_print(&url, true, &text);
    url_release(&url);
    if (db_open(ret, text.buf, &options, &err) < 0)
        fail_msg("%s", err.text);
    if (db_connect(*ret, 0, &session, &result) != DB_OK)
        fail_msg("%s", result.message);
    str_release(&text);
    return session;
}

static void session_can_be_given_back(void **state)
{
    struct db_target *target;
    struct db_session *session = connect_plainly(&target, NULL, NULL);
    struct db_result result;
    struct str out = STR_INIT;
    char why[200];

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct db_wire *wire = db_wire_adopt(session, why, sizeof(why));
        if (!wire)
            fail_msg("%s", why);
        int fd = wire->fd;
        assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
        wire->codec->encode_query(wire, i == 0 ? "BEGIN" : "SELECT 5 AS a", true, &out, &result);
        assert_int_equal(wire_loop_run(wire, &out, &result), DB_WIRE_ANSWERED);
        assert_true(result.in_transaction);
        db_wire_release(wire);
        assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
        assert_false(db_session_lost(session));
        assert_int_equal(db_query(session, "SELECT 6 AS b", true, &result), DB_OK);
        assert_int_equal(db_row_value(session, 0).i, 6);
        assert_true(result.in_transaction);
    }
    str_release(&out);
    db_disconnect(session);
    db_close(target);
}

static void session_given_back_in_the_middle_is_lost(void **state)
{
    struct db_target *target;
    struct db_session *session = connect_plainly(&target, NULL, NULL);
    struct db_result result;
    struct str out = STR_INIT;
    char why[200];

    (void)state;
    struct db_wire *wire = db_wire_adopt(session, why, sizeof(why));
    wire->codec->encode_query(wire, "SELECT 5 AS a", true, &out, &result);
    db_wire_release(wire);
    assert_true(db_session_lost(session));
    assert_int_equal(db_query(session, "SELECT 6 AS b", true, &result), DB_LOST);
    str_release(&out);
    db_disconnect(session);
    db_close(target);
}

static void compressed_session_is_not_taken_over_and_goes_on(void **state)
{
    struct db_target *target;
    struct db_session *session = connect_plainly(&target, "compress", "1");
    struct db_result result;
    char why[200];

    (void)state;
    assert_null(db_wire_adopt(session, why, sizeof(why)));
    assert_string_equal(why, "the connection is compressed");
    assert_int_equal(db_query(session, "SELECT 6 AS b", true, &result), DB_OK);
    db_disconnect(session);
    db_close(target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_column_reads_alike),
        cmocka_unit_test(expressions_read_alike),
        cmocka_unit_test(parameters_of_every_type_arrive_alike),
        cmocka_unit_test(statements_that_change_data_count_alike),
        cmocka_unit_test(failures_are_told_alike),
        cmocka_unit_test(transactions_and_locks_are_known_alike),
        cmocka_unit_test(procedures_give_all_their_results_alike),
        cmocka_unit_test(columns_that_change_are_noticed),
        cmocka_unit_test(long_rows_and_parameters_pass),
        cmocka_unit_test(killed_session_is_lost_alike),
        cmocka_unit_test(session_can_be_given_back),
        cmocka_unit_test(session_given_back_in_the_middle_is_lost),
        cmocka_unit_test(compressed_session_is_not_taken_over_and_goes_on),
    };
    char *targets = mem_strdup(getenv("PRONY_TEST_TARGETS"));

    for (char *rest = targets, *word; !server_url && (word = strsep(&rest, " "));)
        if (strncmp(word, "mysql:", 6) == 0)
            server_url = word;
    if (!server_url) {
        fprintf(stderr, "no mysql target in PRONY_TEST_TARGETS\n");
        free(targets);
        return 77;
    }
    snprintf(name, sizeof(name), "prony_wire_%d", (int)getpid());
    int failed = cmocka_run_group_tests_name("mysql_wire_server", tests, NULL, NULL);
    free(targets);
    return failed;
}
