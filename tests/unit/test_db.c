// The layer in front of the drivers, and what can be said of values and statements without one.
#include <math.h>
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
#include "base/rng.h"
#include "db/driver.h"

#define SEED 20261201

// ---- values

static void int_is_written_in_decimal(void **state)
{
    static const struct {
        int64_t i;
        const char *text;
    } cases[] = {
        {0, "0"},
        {7, "7"},
        {-1, "-1"},
        {10, "10"},
        {-1000, "-1000"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };
    char out[DB_VALUE_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        assert_int_equal(db_format_int(cases[i].i, out), strlen(cases[i].text));
        assert_string_equal(out, cases[i].text);
    }
}

static const char *text_of(struct db_value value, char buf[DB_VALUE_TEXT_MAX])
{
    int len = -1;
    const char *text = db_value_text(&value, buf, &len);

    assert_int_equal(len, text ? (int)strlen(text) : 0);
    return text;
}

static void value_is_sent_as_text(void **state)
{
    static const struct {
        struct db_value value;
        const char *text;
    } cases[] = {
        {{.type = DB_NULL}, NULL},
        {{.type = DB_BOOL, .b = true}, "true"},
        {{.type = DB_BOOL, .b = false}, "false"},
        {{.type = DB_INT, .i = -42}, "-42"},
        {{.type = DB_TEXT, .text_len = 4, .s = "it's"}, "it's"},
        {{.type = DB_DOUBLE, .d = 0}, "0"},
        {{.type = DB_DOUBLE, .d = -0.0}, "-0"},
        {{.type = DB_DOUBLE, .d = 1}, "1"},
        {{.type = DB_DOUBLE, .d = 0.1}, "0.1"},
        {{.type = DB_DOUBLE, .d = -2.5}, "-2.5"},
        {{.type = DB_DOUBLE, .d = 1234.05}, "1234.05"},
        {{.type = DB_DOUBLE, .d = 0.000001}, "0.000001"},
        {{.type = DB_DOUBLE, .d = 1.0 / 3}, "0.3333333333333333"},
        {{.type = DB_DOUBLE, .d = 0.1 + 0.2}, "0.30000000000000004"},
        {{.type = DB_DOUBLE, .d = 1e300}, "1e+300"},
        {{.type = DB_DOUBLE, .d = 5e-324}, "4.94065645841247e-324"},
        {{.type = DB_DOUBLE, .d = NAN}, "NaN"},
        {{.type = DB_DOUBLE, .d = -INFINITY}, "-Infinity"},
    };
    char buf[DB_VALUE_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        const char *text = text_of(cases[i].value, buf);
        if (cases[i].text)
            assert_string_equal(text, cases[i].text);
        else
            assert_null(text);
    }
}

static void any_double_reads_back_the_same(void **state)
{
    char buf[DB_VALUE_TEXT_MAX];
    struct rng rng;

    (void)state;
    rng_init(&rng, SEED, 0, RNG_DATA);
    for (int i = 0; i < 200000; i++) {
        struct db_value value = {.type = DB_DOUBLE};
        uint64_t bits = rng_u64(&rng);
        switch (i % 3) {
        case 0: // any bits
            memcpy(&value.d, &bits, sizeof(bits));
            break;
        case 1: // few decimals
            value.d = (double)rng_range(&rng, -1000000000, 1000000000) /
                      pow(10, (double)rng_range(&rng, 0, 9));
            break;
        default:
            value.d = rng_double(&rng) * 1000;
        }
        if (!isfinite(value.d))
            continue;
        double back = strtod(text_of(value, buf), NULL);
        if (memcmp(&back, &value.d, sizeof(back)) != 0)
            fail_msg("seed %d: %.17g became %s", SEED, value.d, buf);
    }
}

// ---- statements

static void kind_comes_from_the_first_word(void **state)
{
    static const struct {
        const char *sql;
        enum db_kind kind;
    } cases[] = {
        {"SELECT 1", DB_KIND_READ},
        {"  select\n1", DB_KIND_READ},
        {"/* why */ -- because\n SELECT 1", DB_KIND_READ},
        {"(SELECT 1) UNION (SELECT 2)", DB_KIND_READ},
        {"VALUES (1)", DB_KIND_READ},
        {"SHOW server_version", DB_KIND_READ},
        {"EXPLAIN UPDATE t SET a = 1", DB_KIND_READ},
        {"TABLE t", DB_KIND_READ},
        {"selection_of_mine()", DB_KIND_WRITE},
        {"UPDATE t SET a = 1", DB_KIND_WRITE},
        {"WITH x AS (SELECT 1) DELETE FROM t", DB_KIND_WRITE},
        {"CALL p()", DB_KIND_WRITE},
        {"", DB_KIND_WRITE},
        {"-- nothing", DB_KIND_WRITE},
        {"/* open", DB_KIND_WRITE},
        {"BEGIN", DB_KIND_BEGIN},
        {"begin;", DB_KIND_BEGIN},
        {"BEGIN ISOLATION LEVEL SERIALIZABLE", DB_KIND_BEGIN},
        {"START TRANSACTION READ ONLY", DB_KIND_BEGIN},
        {"START SLAVE", DB_KIND_WRITE},
        {"LOCK TABLES a WRITE, b READ", DB_KIND_BEGIN},
        {"LOCK TABLE a IN SHARE MODE", DB_KIND_WRITE},
        {"COMMIT", DB_KIND_COMMIT},
        {"END;", DB_KIND_COMMIT},
        {"UNLOCK TABLES", DB_KIND_COMMIT},
        {"PREPARE TRANSACTION 'a'", DB_KIND_COMMIT},
        {"PREPARE p AS SELECT 1", DB_KIND_WRITE},
        {"ROLLBACK", DB_KIND_ROLLBACK},
        {"ABORT", DB_KIND_ROLLBACK},
        {"ROLLBACK TO SAVEPOINT a", DB_KIND_WRITE},
        {"ROLLBACK WORK TO a", DB_KIND_WRITE},
        // several in one text: what decides the outcome
        {"SELECT 1; SELECT 2", DB_KIND_READ},
        {"SELECT 1; -- nothing more", DB_KIND_READ},
        {"SELECT 1; UPDATE t SET a = 1", DB_KIND_WRITE},
        {"BEGIN; UPDATE t SET a = 1", DB_KIND_BEGIN},
        {"BEGIN; UPDATE t SET a = 1; COMMIT;", DB_KIND_COMMIT},
        {"UPDATE t SET a = 'x; commit'", DB_KIND_WRITE},
        {"UPDATE t SET a = 'it''s'; SELECT 1", DB_KIND_WRITE},
        {"SELECT $$ ; commit $$", DB_KIND_READ},
        {"SELECT $a$ ; $$ ; commit $a$ ; end", DB_KIND_COMMIT},
        {"SELECT a /* ; commit */ FROM t WHERE a = $1", DB_KIND_READ},
        {"SELECT \"a;commit\" FROM t; ; ", DB_KIND_READ},
        {"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END", DB_KIND_WRITE},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        if (db_statement_kind(cases[i].sql) != cases[i].kind)
            fail_msg("'%s' is of kind %d", cases[i].sql, db_statement_kind(cases[i].sql));
}

static void simple_text_holds_the_parameters_unquoted(void **state)
{
    const char *pieces[] = {"SELECT ", ", '", "', ", ""};
    struct db_statement statement = {.sql = "?", .n_params = 3, .pieces = pieces};
    struct db_value params[] = {
        {.type = DB_INT, .i = -5}, {.type = DB_TEXT, .text_len = 2, .s = "ab"}, {.type = DB_NULL}};
    struct str out = STR_INIT;

    (void)state;
    str_add(&out, "what was there before");
    db_statement_expand(&statement, params, &out);
    assert_string_equal(out.buf, "SELECT -5, 'ab', NULL");
    str_release(&out);
}

static void create_table_is_standard_sql(void **state)
{
    static const struct db_column columns[] = {{"aid", "int", true}, {"filler", "char(84)", false}};
    struct db_table table = {.name = "t", .columns = columns, .n_columns = 2, .primary_key = "aid"};
    struct str out = STR_INIT;

    (void)state;
    db_create_table_sql(&table, true, " ENGINE=innodb", &out);
    assert_string_equal(out.buf, "CREATE TABLE t (aid int NOT NULL, filler char(84), "
                                 "PRIMARY KEY (aid)) ENGINE=innodb");
    str_clear(&out);
    db_create_table_sql(&table, false, "", &out);
    assert_string_equal(out.buf, "CREATE TABLE t (aid int NOT NULL, filler char(84))");
    str_release(&out);
}

// ---- classes, errors

static void names_are_stable_and_differ(void **state)
{
    (void)state;
    assert_string_equal(db_class_name(DB_OK), "ok");
    assert_string_equal(db_class_name(DB_SERIALIZATION), "serialization");
    assert_string_equal(db_class_name(DB_OTHER), "other");
    assert_string_equal(db_cap_name(0), "transactions");
    for (int a = 0; a < DB_CLASS_COUNT; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(db_class_name((enum db_class)a),
                                    db_class_name((enum db_class)b));
    for (int a = 0; a < DB_CAP_COUNT_BITS; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(db_cap_name(a), db_cap_name(b));
}

static void classes_say_what_the_core_may_do(void **state)
{
    (void)state;
    for (int class = 0; class < DB_CLASS_COUNT; class ++) {
        bool retry = class == DB_SERIALIZATION || class == DB_DEADLOCK || class == DB_BUSY;
        bool lost = class == DB_LOST || class == DB_UNAVAILABLE || class == DB_TOO_MANY;
        assert_int_equal(db_class_is_retry((enum db_class) class), retry);
        assert_int_equal(db_class_is_lost((enum db_class) class), lost);
    }
}

static void message_is_one_line_and_never_empty(void **state)
{
    char long_text[2 * DB_MESSAGE_MAX];
    struct db_result result = {0};

    (void)state;
    assert_int_equal(db_fail(&result, DB_SYNTAX, "42601", "near \"x\"\n\tline %d\n", 2), DB_SYNTAX);
    assert_int_equal(result.class, DB_SYNTAX);
    assert_string_equal(result.native, "42601");
    assert_string_equal(result.message, "near \"x\"  line 2");
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    db_fail(&result, DB_OTHER, NULL, "%s", long_text);
    assert_int_equal(strlen(result.message), DB_MESSAGE_MAX - 1);
    assert_string_equal(result.native, "");
    db_fail(&result, DB_DEADLOCK, "1", "\n");
    assert_string_equal(result.message, "deadlock");
}

static void unknown_engine_names_a_near_miss(void **state)
{
    static const struct {
        const char *url, *text;
    } cases[] = {
        {"sqlit:x.db", "unknown engine sqlit, did you mean sqlite?"},
        {"nul:", "unknown engine nul, did you mean null?"},
        {"oracle:x", "unknown engine oracle: must be sqlite"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct db_open_options options = {0};
        struct db_target *target = NULL;
        struct err err = ERR_INIT;
        assert_int_equal(db_open(&target, cases[i].url, &options, &err), -1);
        assert_int_equal(err.kind, ERR_USAGE);
        if (!strstr(err.text, cases[i].text))
            fail_msg("%s", err.text);
        assert_null(target);
    }
}

static void every_driver_fills_its_slots(void **state)
{
    (void)state;
    db_check_drivers(); // aborts
    const char *const *engines = db_engines();
    bool null = false, sqlite = false;
    for (; *engines; engines++) {
        null |= strcmp(*engines, "null") == 0;
        sqlite |= strcmp(*engines, "sqlite") == 0;
    }
    assert_true(null);
    assert_true(sqlite);
}

// ---- the layer, on the null driver

static struct db_target *open_null(const char *url, struct clock_fake *fake, const char *trace)
{
    struct db_open_options options = {.clock = &fake->base, .n_statements = 2, .trace_path = trace};
    struct db_target *target = NULL;
    struct err err = ERR_INIT;

    clock_fake_init(fake, 1000 * NS_PER_S);
    if (db_open(&target, url, &options, &err) < 0)
        fail_msg("%s", err.text);
    return target;
}

static void lost_session_answers_lost_until_connected_anew(void **state)
{
    static const struct db_statement update = {
        .index = 0, .kind = DB_KIND_WRITE, .sql = "UPDATE t SET a = 1"};
    struct clock_fake fake;
    struct db_target *target = open_null("null:?lose=1&lose_when=before", &fake, NULL);
    struct db_session *session = NULL;
    struct db_result result;

    (void)state;
    assert_int_equal(db_connect(target, 0, &session, &result), DB_OK);
    assert_false(db_session_lost(session));
    assert_int_equal(db_execute(session, &update, NULL, false, &result), DB_LOST);
    assert_true(db_session_lost(session));
    assert_int_equal(db_query(session, "SELECT 1", true, &result), DB_LOST); // null would answer
    assert_int_equal(result.rows, 0);
    assert_string_equal(result.message, "the connection was lost before");
    db_disconnect(session);
    assert_int_equal(db_connect(target, 0, &session, &result), DB_OK);
    assert_int_equal(db_query(session, "SELECT 1", true, &result), DB_OK);
    db_disconnect(session);
    db_close(target);
}

static void result_is_reset_by_every_call(void **state)
{
    static const struct db_statement begin = {.index = 1, .kind = DB_KIND_BEGIN, .sql = "BEGIN"};
    struct clock_fake fake;
    struct db_target *target = open_null("null:", &fake, NULL);
    struct db_session *session = NULL;
    struct db_result result;

    (void)state;
    memset(&result, 0x55, sizeof(result));
    assert_int_equal(db_connect(target, 0, &session, &result), DB_OK);
    memset(&result, 0x55, sizeof(result));
    assert_int_equal(db_execute(session, &begin, NULL, true, &result), DB_OK);
    assert_int_equal(result.class, DB_OK);
    assert_true(result.in_transaction);
    assert_int_equal(result.rows, 0);
    assert_int_equal(result.lock_wait_ns, 0);
    assert_int_equal(result.given_delay_ns, 0);
    assert_int_equal(result.n_columns, 0);
    assert_string_equal(result.native, "");
    assert_string_equal(result.message, "");
    db_disconnect(session);
    db_close(target);
}

static char *read_whole(const char *path)
{
    char *text = mem_calloc(1, 65536);
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    text[fread(text, 1, 65535, f)] = '\0';
    fclose(f);
    return text;
}

static void trace_has_a_line_per_call(void **state)
{
    static const char expected[] =
        "time_s\tclient\tcall\tclass\trows\tduration_us\ttext\terror\n"
        "0.000000\t-1\topen\tok\t0\t0.0\tnull:?latency=2ms&fail=1\t\n"
        "0.000000\t7\tconnect\tok\t0\t0.0\t\t\n"
        "0.000000\t7\texecute\tserialization\t0\t2000.0\tUPDATE t  SET a = 1\tnull failed, as "
        "told\n"
        "0.002000\t7\tquery\tok\t1\t0.0\tSELECT "
        "1111111111111111111111111111111111111111111111111111111111111111111111111\t\n"
        "0.002000\t7\tbulk_begin\tok\t0\t0.0\tt\t\n"
        "0.002000\t7\tbulk_end\tok\t2\t0.0\t\t\n"
        "0.002000\t7\tdisconnect\tok\t0\t0.0\t\t\n"
        "0.002000\t-1\tclose\tok\t0\t0.0\t\t\n";
    static const struct db_statement update = {
        .index = 0, .kind = DB_KIND_WRITE, .sql = "UPDATE t\n SET a = 1"};
    static const struct db_column columns[] = {{"a", "int", true}};
    static const struct db_table table = {.name = "t", .columns = columns, .n_columns = 1};
    struct db_value row = {.type = DB_INT};
    char path[] = "/tmp/test_db_trace_XXXXXX";
    struct clock_fake fake;
    struct db_session *session = NULL;
    struct db_result result;

    (void)state;
    close(mkstemp(path));
    struct db_target *target = open_null("null:?latency=2ms&fail=1", &fake, path);
    assert_int_equal(db_connect(target, 7, &session, &result), DB_OK);
    assert_int_equal(db_execute(session, &update, NULL, false, &result), DB_SERIALIZATION);
    char sql[200] = "SELECT ";
    memset(sql + 7, '1', 100);
    assert_int_equal(db_query(session, sql, false, &result), DB_OK);
    assert_int_equal(db_bulk_begin(session, &table, &result), DB_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(db_bulk_row(session, &row, &result), DB_OK);
    assert_int_equal(db_bulk_end(session, &result), DB_OK);
    db_disconnect(session);
    db_close(target);
    char *text = read_whole(path);
    assert_string_equal(text, expected);
    free(text);
    unlink(path);
}

static void trace_that_cannot_be_written_is_refused_at_open(void **state)
{
    struct db_open_options options = {.trace_path = "/nonexistent/trace"};
    struct db_target *target = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(db_open(&target, "null:", &options, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_string_equal(err.text, "cannot write the trace to /nonexistent/trace: "
                                  "No such file or directory");
}

static void facts_of_nothing_are_unknown(void **state)
{
    struct clock_fake fake;
    struct db_target *target = open_null("null:?max_connections=3", &fake, NULL);
    struct db_session *session = NULL;
    struct db_result result;
    struct db_facts facts;

    (void)state;
    assert_int_equal(db_connect(target, 0, &session, &result), DB_OK);
    db_describe(session, &facts);
    assert_string_equal(facts.engine, "null");
    assert_int_equal(facts.data_bytes, -1);
    assert_int_equal(facts.cache_bytes, -1);
    assert_int_equal(facts.max_connections, 3);
    assert_int_equal(facts.connections_used, 0);
    assert_string_equal(facts.max_connections_setting, "max_connections");
    assert_string_equal(kvs_get(&facts.settings, "data_path"), "unknown: null keeps no data");
    db_facts_release(&facts);
    db_disconnect(session);
    db_close(target);
}

static void a_state_of_a_file_has_what_shapes_it(void **state)
{
    static const struct {
        const char *url, *shape, *plain, *named;
    } cases[] = {
        {"sqlite:", "engine=sqlite ", "sqlite:f.db", "sqlite:f.db"},
        {"sqlite:?journal_mode=wal&PAGE_SIZE=8192&data=loop:size=1G,fs=xfs",
         "engine=sqlite engine.PAGE_SIZE=8192 ",
         "sqlite:f.db?PAGE_SIZE=8192&data=loop:size=1G,fs=xfs",
         "sqlite:f.db?journal_mode=wal&PAGE_SIZE=8192&data=loop:size=1G,fs=xfs"},
        {"sqlite:mine.db", NULL, NULL, NULL},
        {"null:", NULL, NULL, NULL},
        {"nothing:", NULL, NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct str shape = STR_INIT, plain = STR_INIT, named = STR_INIT;
        struct kvs facts = KVS_INIT;
        struct err err = ERR_INIT;
        int rc = db_shape(cases[i].url, "f.db", &facts, &plain, &named, &err);
        assert_int_equal(rc, cases[i].shape ? 0 : -1);
        for (size_t k = 0; k < facts.n; k++)
            str_addf(&shape, "%s=%s ", facts.items[k].key, facts.items[k].value);
        if (rc == 0) {
            assert_string_equal(shape.buf, cases[i].shape);
            assert_string_equal(plain.buf, cases[i].plain);
            assert_string_equal(named.buf, cases[i].named);
        } else {
            assert_non_null(strstr(err.text, "databases that prony makes itself"));
        }
        kvs_release(&facts);
        str_release(&shape);
        str_release(&plain);
        str_release(&named);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(int_is_written_in_decimal),
        cmocka_unit_test(value_is_sent_as_text),
        cmocka_unit_test(any_double_reads_back_the_same),
        cmocka_unit_test(kind_comes_from_the_first_word),
        cmocka_unit_test(simple_text_holds_the_parameters_unquoted),
        cmocka_unit_test(create_table_is_standard_sql),
        cmocka_unit_test(names_are_stable_and_differ),
        cmocka_unit_test(classes_say_what_the_core_may_do),
        cmocka_unit_test(message_is_one_line_and_never_empty),
        cmocka_unit_test(unknown_engine_names_a_near_miss),
        cmocka_unit_test(every_driver_fills_its_slots),
        cmocka_unit_test(lost_session_answers_lost_until_connected_anew),
        cmocka_unit_test(result_is_reset_by_every_call),
        cmocka_unit_test(trace_has_a_line_per_call),
        cmocka_unit_test(trace_that_cannot_be_written_is_refused_at_open),
        cmocka_unit_test(facts_of_nothing_are_unknown),
        cmocka_unit_test(a_state_of_a_file_has_what_shapes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
