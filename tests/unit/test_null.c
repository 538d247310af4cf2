// The null driver does exactly what it is told: under a fake clock to the nanosecond, by chance
// within what chance allows.
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/units.h"
#include "db/db.h"

#define SEED     20261202
#define START_NS (1000 * NS_PER_S)

static const struct db_statement statements[] = {
    {.index = 0, .kind = DB_KIND_BEGIN, .sql = "BEGIN"},
    {.index = 1, .kind = DB_KIND_WRITE, .sql = "UPDATE t SET a = a + 1"},
    {.index = 2, .kind = DB_KIND_READ, .sql = "SELECT abalance, t.b, max(c) AS top FROM t"},
    {.index = 3, .kind = DB_KIND_COMMIT, .sql = "COMMIT"},
    {.index = 4, .kind = DB_KIND_ROLLBACK, .sql = "ROLLBACK"},
};
enum { BEGIN, UPDATE, SELECT, COMMIT, ROLLBACK };

struct fixture {
    struct clock_fake fake;
    struct db_target *target;
    struct db_session *session;
    struct db_result result;
};

static struct db_target *open_target(const char *url, const struct clock *clock, uint64_t seed)
{
    struct db_open_options options = {.clock = clock, .seed = seed};
    struct db_target *target = NULL;
    struct err err = ERR_INIT;

    if (db_open(&target, url, &options, &err) < 0)
        fail_msg("%s", err.text);
    db_set_statements(target, ARR_LEN(statements), DB_SIMPLE);
    return target;
}

static void begin(struct fixture *f, const char *url)
{
    clock_fake_init(&f->fake, START_NS);
    f->target = open_target(url, &f->fake.base, SEED);
    f->session = NULL;
    assert_int_equal(db_connect(f->target, 0, &f->session, &f->result), DB_OK);
}

static void end(struct fixture *f)
{
    db_disconnect(f->session);
    db_close(f->target);
}

static enum db_class run(struct fixture *f, int statement)
{
    int64_t before_ns = f->fake.now_ns;
    enum db_class class = db_execute(f->session, &statements[statement], NULL, false, &f->result);

    assert_int_equal(f->result.given_delay_ns, f->fake.now_ns - before_ns);
    return class;
}

static void reconnect(struct fixture *f)
{
    db_disconnect(f->session);
    f->session = NULL;
    assert_int_equal(db_connect(f->target, 0, &f->session, &f->result), DB_OK);
}

static int64_t counter(struct fixture *f, const char *name)
{
    struct kvs counters = KVS_INIT;
    int64_t value = -1;

    db_sample(f->session, &counters);
    const char *text = kvs_get(&counters, name);
    assert_non_null(text);
    assert_int_equal(units_parse_int(text, &value, NULL), 0);
    kvs_release(&counters);
    return value;
}

// ---- the URL

static void bad_parameter_is_named(void **state)
{
    static const struct {
        const char *url, *text;
    } cases[] = {
        {"null:?latecy=2ms", "null: unknown parameter latecy, did you mean latency?"},
        {"null:?latency=2", NULL}, // a bare number counts in seconds
        {"null:?latency=fast", "null: parameter latency"},
        {"null:?fail=1.5", "null: parameter fail: '1.5' is not between 0 and 1"},
        {"null:?fail=-0.1", "null: parameter fail"},
        {"null:?fail_class=serialisation",
         "null: parameter fail_class: unknown value serialisation, did you mean serialization?"},
        {"null:?fail_class=ok", "null: parameter fail_class"},
        {"null:?fail_class=lost", "null: parameter fail_class"},
        {"null:?distribution=normal", "null: parameter distribution: unknown value normal: "
                                      "must be fixed or exponential"},
        {"null:?latency=1ms&latency=2ms", "null: parameter latency stands twice"},
        {"null:?max_connections=-1", "null: parameter max_connections"},
        {"null:x.db", "null: has no host or path"},
        {"null://host/db", "null: has no host or path"},
        {"null:", NULL},
        {"null", NULL},
        {"null:?latency=2ms&distribution=exponential&fail=0.01&fail_class=deadlock&lose=0.001&"
         "lose_at=commit&lose_when=after&refuse_for=2s&stall_at=3s&stall_for=1s&down_at=5s&"
         "down_for=2s&max_connections=10&read_only=1&value=7&latency_per=transaction",
         NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct db_open_options options = {0};
        struct db_target *target = NULL;
        struct err err = ERR_INIT;
        int r = db_open(&target, cases[i].url, &options, &err);
        if (r == 0)
            db_close(target);
        if (!cases[i].text && r < 0)
            fail_msg("%s: %s", cases[i].url, err.text);
        if (cases[i].text && (r == 0 || !strstr(err.text, cases[i].text)))
            fail_msg("%s: %s", cases[i].url, err.text);
        if (cases[i].text)
            assert_int_equal(err.kind, ERR_USAGE);
    }
}

// ---- time

static void fixed_latency_is_given_exactly(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, "null:?latency=2ms");
    for (int i = BEGIN; i <= COMMIT; i++) {
        assert_int_equal(run(&f, i), DB_OK);
        assert_int_equal(f.result.given_delay_ns, 2 * NS_PER_MS);
    }
    assert_int_equal(f.fake.now_ns, START_NS + 8 * NS_PER_MS);
    end(&f);
}

static void latency_per_transaction_falls_on_its_end(void **state)
{
    static const struct {
        int statement;
        int64_t delay_ms;
    } steps[] = {
        {BEGIN, 0},  {UPDATE, 0}, {SELECT, 0},
        {COMMIT, 5}, {UPDATE, 5}, // a transaction of its own
        {SELECT, 5}, {BEGIN, 0},  {ROLLBACK, 0},
    };
    struct fixture f;

    (void)state;
    begin(&f, "null:?latency=5ms&latency_per=transaction");
    for (size_t i = 0; i < ARR_LEN(steps); i++) {
        assert_int_equal(run(&f, steps[i].statement), DB_OK);
        assert_int_equal(f.result.given_delay_ns, steps[i].delay_ms * NS_PER_MS);
    }
    end(&f);
}

static void exponential_latency_has_its_mean_and_spread(void **state)
{
    enum { N = 40000 };
    struct fixture f;
    double sum = 0, squares = 0;

    (void)state;
    begin(&f, "null:?latency=2ms&distribution=exponential");
    for (int i = 0; i < N; i++) {
        assert_int_equal(run(&f, SELECT), DB_OK);
        double ms = (double)f.result.given_delay_ns / NS_PER_MS;
        sum += ms;
        squares += ms * ms;
    }
    double mean = sum / N, sd = sqrt(squares / N - mean * mean);
    assert_true(fabs(mean - 2) < 0.05); // 5 standard errors
    assert_true(fabs(sd - 2) < 0.1);
    end(&f);
}

static void same_seed_gives_same_delays(void **state)
{
    int64_t delays[2][100];
    struct fixture f;

    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        begin(&f, "null:?latency=2ms&distribution=exponential");
        for (int i = 0; i < 100; i++) {
            run(&f, SELECT);
            delays[pass][i] = f.result.given_delay_ns;
        }
        end(&f);
    }
    assert_memory_equal(delays[0], delays[1], sizeof(delays[0]));
    assert_int_not_equal(delays[0][0], delays[0][1]);
}

static void stall_stops_every_session(void **state)
{
    static const struct {
        int64_t at_ms, delay_ms; // begin after the first execute, and what it must take
    } steps[] = {
        {0, 10},
        {980, 10},   // before
        {995, 1010}, // runs into the stall: that much longer
        {2010, 10},  // after it
    };
    struct fixture f;
    struct db_session *other = NULL;

    (void)state;
    begin(&f, "null:?latency=10ms&stall_at=1s&stall_for=1s");
    for (size_t i = 0; i < ARR_LEN(steps); i++) {
        f.fake.now_ns = START_NS + steps[i].at_ms * NS_PER_MS;
        assert_int_equal(run(&f, SELECT), DB_OK);
        assert_int_equal(f.result.given_delay_ns, steps[i].delay_ms * NS_PER_MS);
    }
    f.fake.now_ns = START_NS + 1300 * NS_PER_MS;
    assert_int_equal(db_connect(f.target, 1, &other, &f.result), DB_OK);
    assert_int_equal(db_execute(other, &statements[SELECT], NULL, false, &f.result), DB_OK);
    assert_int_equal(f.result.given_delay_ns, 710 * NS_PER_MS); // the rest of it, then its own
    db_disconnect(other);
    end(&f);
}

static void delay_is_recorded_as_it_really_was(void **state)
{
    struct db_target *target = open_target("null:?latency=3ms", &clock_system, SEED);
    struct db_session *session = NULL;
    struct db_result result;

    (void)state;
    assert_int_equal(db_connect(target, 0, &session, &result), DB_OK);
    for (int i = 0; i < 20; i++) {
        int64_t before_ns = clock_now_ns(&clock_system);
        assert_int_equal(db_execute(session, &statements[SELECT], NULL, false, &result), DB_OK);
        int64_t took_ns = clock_now_ns(&clock_system) - before_ns;
        assert_true(result.given_delay_ns >= 3 * NS_PER_MS);
        assert_true(result.given_delay_ns <= took_ns);
    }
    db_disconnect(session);
    db_close(target);
}

static void *cancel_soon(void *session)
{
    clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 50 * NS_PER_MS);
    db_cancel(session);
    return NULL;
}

static void waiting_statement_can_be_cancelled(void **state)
{
    struct db_target *target = open_target("null:?latency=60s", &clock_system, SEED);
    struct db_session *session = NULL;
    struct db_result result;
    pthread_t thread;

    (void)state;
    assert_int_equal(db_connect(target, 0, &session, &result), DB_OK);
    int64_t before_ns = clock_now_ns(&clock_system);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, session), 0);
    assert_int_equal(db_execute(session, &statements[UPDATE], NULL, false, &result), DB_CANCELLED);
    assert_true(clock_now_ns(&clock_system) - before_ns < 5 * NS_PER_S);
    pthread_join(thread, NULL);
    db_disconnect(session);
    db_close(target);
}

static void plain_execute_neither_waits_nor_allocates(void **state)
{
    enum { N = 300000 };
    struct db_target *target = open_target("null:", &clock_system, SEED);
    struct db_session *session = NULL;
    struct db_result result;

    (void)state;
    assert_int_equal(db_connect(target, 0, &session, &result), DB_OK);
    assert_int_equal(db_execute(session, &statements[SELECT], NULL, true, &result), DB_OK);
    size_t held = mallinfo2().uordblks;
    int64_t before_ns = clock_now_ns(&clock_system);
    for (int i = 0; i < N; i++)
        db_execute(session, &statements[SELECT], NULL, true, &result);
    int64_t each_ns = (clock_now_ns(&clock_system) - before_ns) / N;
    assert_int_equal(mallinfo2().uordblks, held);
    assert_int_equal(result.given_delay_ns, 0);
    if (each_ns > 500) // some 10 to 20 without sanitizers
        fail_msg("an execute took %lld ns", (long long)each_ns);
    db_disconnect(session);
    db_close(target);
}

// ---- state and answers

static void transaction_state_follows_the_statements(void **state)
{
    static const struct {
        int statement;
        bool in_transaction;
        int64_t rows;
    } steps[] = {
        {SELECT, false, 1}, {UPDATE, false, 1}, {BEGIN, true, 0},     {UPDATE, true, 1},
        {COMMIT, false, 0}, {BEGIN, true, 0},   {ROLLBACK, false, 0}, {COMMIT, false, 0},
    };
    struct fixture f;

    (void)state;
    begin(&f, "null:");
    for (size_t i = 0; i < ARR_LEN(steps); i++) {
        assert_int_equal(run(&f, steps[i].statement), DB_OK);
        assert_int_equal(f.result.in_transaction, steps[i].in_transaction);
        assert_int_equal(f.result.rows, steps[i].rows);
    }
    assert_int_equal(counter(&f, "commits"), 2); // the lone UPDATE, and one COMMIT that had a BEGIN
    assert_int_equal(counter(&f, "rollbacks"), 1);
    assert_int_equal(counter(&f, "statements"), 8);
    end(&f);
}

static void row_has_the_columns_that_were_asked_for(void **state)
{
    static const struct {
        const char *sql;
        const char *names[4];
    } cases[] = {
        {"SELECT 1", {"1"}},
        {"SELECT a, t.b, \"C\" FROM t", {"a", "b", "c"}},
        {"select count(*) from t", {"count"}},
        {"SELECT max(a, b) AS top, 'x, y' AS text FROM t", {"top", "text"}},
        {"SELECT a INTO b FROM t", {"a"}},
        {"SELECT a from_date, b FROM t", {"from_date", "b"}},
        {"SHOW version", {"column"}},
    };
    struct fixture f;

    (void)state;
    begin(&f, "null:?value=42");
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        assert_int_equal(db_query(f.session, cases[i].sql, true, &f.result), DB_OK);
        int n = 0;
        for (; n < 4 && cases[i].names[n]; n++) {
            assert_string_equal(db_row_name(f.session, n), cases[i].names[n]);
            assert_int_equal(db_row_value(f.session, n).type, DB_INT);
            assert_int_equal(db_row_value(f.session, n).i, 42);
        }
        assert_int_equal(f.result.n_columns, n);
        assert_int_equal(f.result.rows, 1);
    }
    assert_int_equal(db_execute(f.session, &statements[SELECT], NULL, true, &f.result), DB_OK);
    assert_int_equal(f.result.n_columns, 3);
    assert_string_equal(db_row_name(f.session, 2), "top");
    assert_int_equal(db_execute(f.session, &statements[UPDATE], NULL, true, &f.result), DB_OK);
    assert_int_equal(f.result.n_columns, 0);
    end(&f);
}

static void count_row(void *arg, int n_columns, const char *const *names, const char *const *values)
{
    assert_int_equal(n_columns, 2);
    assert_string_equal(names[1], "b");
    assert_string_equal(values[1], "1");
    ++*(int *)arg;
}

static void query_each_gives_one_row(void **state)
{
    struct fixture f;
    int n = 0;

    (void)state;
    begin(&f, "null:");
    assert_int_equal(db_query_each(f.session, "SELECT a, b FROM t", count_row, &n, &f.result),
                     DB_OK);
    assert_int_equal(n, 1);
    end(&f);
}

static void load_is_counted(void **state)
{
    static const struct db_column columns[] = {{"a", "int", true}};
    static const struct db_table table = {.name = "t", .columns = columns, .n_columns = 1};
    struct db_value row = {.type = DB_INT, .i = 1};
    struct fixture f;

    (void)state;
    begin(&f, "null:");
    assert_int_equal(db_create_table(f.session, &table, true, &f.result), DB_OK);
    assert_int_equal(db_bulk_begin(f.session, &table, &f.result), DB_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(db_bulk_row(f.session, &row, &f.result), DB_OK);
    assert_int_equal(db_bulk_end(f.session, &f.result), DB_OK);
    assert_int_equal(f.result.rows, 1000);
    assert_int_equal(db_settle_table(f.session, &table, &f.result), DB_OK);
    reconnect(&f); // counters outlive the session
    assert_int_equal(counter(&f, "rows_loaded"), 1000);
    assert_true(db_caps(f.target) & DB_CAP_HOLLOW);
    end(&f);
}

// ---- misbehaviour

static void told_share_of_statements_fails(void **state)
{
    enum { N = 20000 };
    struct fixture f;
    int failed = 0;

    (void)state;
    begin(&f, "null:?fail=0.1&fail_class=deadlock");
    for (int i = 0; i < N; i++) {
        enum db_class class = run(&f, UPDATE);
        assert_true(class == DB_OK || class == DB_DEADLOCK);
        failed += class == DB_DEADLOCK;
    }
    assert_in_range(failed, 1780, 2220); // 2000 +- 5 standard deviations
    assert_int_equal(counter(&f, "failures"), failed);
    assert_int_equal(counter(&f, "commits"), N - failed);
    end(&f);
}

static void failure_leaves_the_transaction_to_be_rolled_back(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, "null:?fail=1");
    assert_int_equal(run(&f, BEGIN), DB_OK);
    assert_int_equal(run(&f, UPDATE), DB_SERIALIZATION);
    assert_true(f.result.in_transaction);
    assert_int_equal(run(&f, ROLLBACK), DB_OK);
    assert_false(f.result.in_transaction);
    assert_int_equal(run(&f, BEGIN), DB_OK);
    assert_int_equal(run(&f, COMMIT), DB_SERIALIZATION);
    assert_false(f.result.in_transaction);
    assert_int_equal(counter(&f, "commits"), 0);
    end(&f);
}

// The truth that a client cannot know stands in the counter.
static void lost_commits_are_applied_or_not_as_told(void **state)
{
    static const struct {
        const char *url;
        double applied_low, applied_high; // share of lost commits
    } cases[] = {
        {"null:?lose=0.2&lose_at=commit&lose_when=before", 0, 0},
        {"null:?lose=0.2&lose_at=commit&lose_when=after", 1, 1},
        {"null:?lose=0.2&lose_at=commit", 0.4, 0.6},
    };
    struct fixture f;

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        int done = 0, unknown = 0;
        begin(&f, cases[i].url);
        for (int n = 0; n < 5000; n++) {
            assert_int_equal(run(&f, BEGIN), DB_OK);
            assert_int_equal(run(&f, UPDATE), DB_OK);
            if (run(&f, COMMIT) == DB_OK) {
                done++;
            } else {
                assert_int_equal(f.result.class, DB_LOST);
                assert_false(f.result.in_transaction);
                unknown++;
                reconnect(&f);
            }
        }
        double applied = (double)(counter(&f, "commits") - done) / unknown;
        assert_in_range(unknown, 850, 1150);
        assert_true(applied >= cases[i].applied_low && applied <= cases[i].applied_high);
        assert_int_equal(counter(&f, "losses"), unknown);
        end(&f);
    }
}

static void every_connection_has_a_fresh_stream(void **state)
{
    struct fixture f;
    int survived = 0;

    (void)state;
    begin(&f, "null:?lose=0.5");
    for (int i = 0; i < 200; i++) { // the first statement of each connection
        if (run(&f, SELECT) == DB_OK)
            survived++;
        reconnect(&f);
    }
    assert_in_range(survived, 60, 140);
    end(&f);
}

static void connections_are_refused_after_a_loss(void **state)
{
    struct db_session *again = NULL;
    struct fixture f;

    (void)state;
    begin(&f, "null:?lose=1&refuse_for=2s");
    assert_int_equal(run(&f, UPDATE), DB_LOST);
    assert_int_equal(db_connect(f.target, 1, &again, &f.result), DB_UNAVAILABLE);
    assert_string_equal(f.result.message, "null refuses connections for another 2.00 s");
    f.fake.now_ns += 2 * NS_PER_S - 1;
    assert_int_equal(db_connect(f.target, 1, &again, &f.result), DB_UNAVAILABLE);
    f.fake.now_ns += 1;
    assert_int_equal(db_connect(f.target, 1, &again, &f.result), DB_OK);
    db_disconnect(again);
    end(&f);
}

static void outage_cuts_all_and_refuses_until_it_is_over(void **state)
{
    struct db_session *again = NULL;
    struct fixture f;

    (void)state;
    begin(&f, "null:?down_at=3s&down_for=2s");
    assert_int_equal(run(&f, UPDATE), DB_OK);
    f.fake.now_ns = START_NS + 3 * NS_PER_S;
    assert_int_equal(run(&f, UPDATE), DB_LOST);
    assert_int_equal(db_connect(f.target, 1, &again, &f.result), DB_UNAVAILABLE);
    f.fake.now_ns = START_NS + 5 * NS_PER_S;
    reconnect(&f);
    assert_int_equal(run(&f, UPDATE), DB_OK);
    end(&f);
}

static void connection_limit_holds(void **state)
{
    struct db_session *second = NULL, *third = NULL;
    struct fixture f;

    (void)state;
    begin(&f, "null:?max_connections=2");
    assert_int_equal(db_connect(f.target, 1, &second, &f.result), DB_OK);
    assert_int_equal(db_connect(f.target, 2, &third, &f.result), DB_TOO_MANY);
    assert_null(third);
    db_disconnect(second);
    assert_int_equal(db_connect(f.target, 2, &third, &f.result), DB_OK);
    db_disconnect(third);
    end(&f);
}

static void read_only_refuses_writes(void **state)
{
    struct db_facts facts;
    struct fixture f;

    (void)state;
    begin(&f, "null:?read_only=1");
    assert_int_equal(run(&f, SELECT), DB_OK);
    assert_int_equal(run(&f, UPDATE), DB_READ_ONLY);
    db_describe(f.session, &facts);
    assert_true(facts.read_only);
    assert_string_equal(facts.read_only_why, "read_only=1");
    db_facts_release(&facts);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_parameter_is_named),
        cmocka_unit_test(fixed_latency_is_given_exactly),
        cmocka_unit_test(latency_per_transaction_falls_on_its_end),
        cmocka_unit_test(exponential_latency_has_its_mean_and_spread),
        cmocka_unit_test(same_seed_gives_same_delays),
        cmocka_unit_test(stall_stops_every_session),
        cmocka_unit_test(delay_is_recorded_as_it_really_was),
        cmocka_unit_test(waiting_statement_can_be_cancelled),
        cmocka_unit_test(plain_execute_neither_waits_nor_allocates),
        cmocka_unit_test(transaction_state_follows_the_statements),
        cmocka_unit_test(row_has_the_columns_that_were_asked_for),
        cmocka_unit_test(query_each_gives_one_row),
        cmocka_unit_test(load_is_counted),
        cmocka_unit_test(told_share_of_statements_fails),
        cmocka_unit_test(failure_leaves_the_transaction_to_be_rolled_back),
        cmocka_unit_test(lost_commits_are_applied_or_not_as_told),
        cmocka_unit_test(every_connection_has_a_fresh_stream),
        cmocka_unit_test(connections_are_refused_after_a_loss),
        cmocka_unit_test(outage_cuts_all_and_refuses_until_it_is_over),
        cmocka_unit_test(connection_limit_holds),
        cmocka_unit_test(read_only_refuses_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
