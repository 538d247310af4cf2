// prony init on SQLite: what is made, recognised, refused and replaced; and the tasks of several
// sessions on null.
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
#include "base/clock.h"
#include "base/mem.h"
#include "load/fill.h"
#include "load/mark.h"
#include "workload/schema.h"

static char path[64];

struct fixture {
    struct db_target *target;
    struct db_session *session;
    struct err err;
    struct fill_options options;
    struct fill_report report;
    struct fill_look look;
};

static void open_target(struct fixture *f, const char *url)
{
    struct db_open_options options = {.seed = 1, .create_missing = true, .n_statements = 1};
    struct db_result result;
    *f = (struct fixture){.options = {.scale = 1}};
    if (db_open(&f->target, url, &options, &f->err) < 0)
        fail_msg("%s", f->err.text);
    if (db_connect(f->target, -1, &f->session, &result) != DB_OK)
        fail_msg("%s", result.message);
}

static void open_file(struct fixture *f)
{
    char url[96];
    snprintf(url, sizeof(url), "sqlite:%s?synchronous=off", path);
    open_target(f, url);
}

static void close_target(struct fixture *f)
{
    db_disconnect(f->session);
    db_close(f->target);
}

static void remove_file(void)
{
    static const char *const ends[] = {"", "-journal", "-wal", "-shm"};
    for (size_t i = 0; i < ARR_LEN(ends); i++) {
        char name[96];
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
}

static int make_path(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "/tmp/test_fill.XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0)
        return -1;
    close(fd);
    remove_file();
    return 0;
}

static int remove_path(void **state)
{
    (void)state;
    remove_file();
    return 0;
}

static void run_sql(struct fixture *f, const char *sql)
{
    struct db_result result;
    if (db_query(f->session, sql, false, &result) != DB_OK)
        fail_msg("%s: %s", sql, result.message);
}

static int64_t ask(struct fixture *f, const char *sql)
{
    struct db_result result;
    if (db_query(f->session, sql, true, &result) != DB_OK)
        fail_msg("%s: %s", sql, result.message);
    assert_int_equal(result.rows, 1);
    struct db_value value = db_row_value(f->session, 0);
    return mark_int(&value);
}

static void look(struct fixture *f)
{
    if (fill_look(f->session, &schema_tpcb, &f->look, &f->err) < 0)
        fail_msg("%s", f->err.text);
}

static int fill(struct fixture *f)
{
    return fill_tables(f->target, &schema_tpcb, &f->options, &f->report, &f->err);
}

static void an_init_makes_all_tables_and_says_whose_they_are(void **state)
{
    (void)state;
    struct fixture f;
    open_file(&f);
    look(&f);
    assert_int_equal(f.look.state, FILL_ABSENT);
    f.options.scale = 2;
    assert_int_equal(fill(&f), 0);
    assert_int_equal(f.report.rows, 200022);
    assert_int_equal(f.report.jobs, 1);
    assert_true(f.report.seconds > 0);
    assert_int_equal(ask(&f, "select count(*) from pgbench_branches"), 2);
    assert_int_equal(ask(&f, "select count(*) from pgbench_tellers"), 20);
    assert_int_equal(ask(&f, "select count(*) from pgbench_accounts"), 200000);
    assert_int_equal(ask(&f, "select max(aid) from pgbench_accounts where bid = 1"), 100000);
    assert_int_equal(ask(&f, "select count(*) from pgbench_history"), 0);
    look(&f);
    assert_int_equal(f.look.state, FILL_COMPLETE);
    assert_true(f.look.ours);
    assert_int_equal(f.look.scale, 2);
    assert_int_equal(strlen(f.look.made), strlen("2026-11-30T14:35:00Z"));

    // Again, to another scale: the old tables go.
    f.options.scale = 1;
    assert_int_equal(fill(&f), 0);
    assert_int_equal(ask(&f, "select count(*) from pgbench_accounts"), 100000);
    assert_int_equal(ask(&f, "select count(*) from prony_init"), 1);
    close_target(&f);
}

static void the_balances_are_compared(void **state)
{
    (void)state;
    struct fixture f;
    int64_t balances[4];
    bool equal = false;
    open_file(&f);
    assert_int_equal(fill(&f), 0);
    assert_int_equal(fill_check(f.session, &schema_tpcb, balances, &equal, &f.err), 0);
    assert_true(equal);
    run_sql(&f, "update pgbench_accounts set abalance = 7 where aid = 1");
    assert_int_equal(fill_check(f.session, &schema_tpcb, balances, &equal, &f.err), 0);
    assert_false(equal);
    assert_int_equal(balances[0], 7);
    assert_int_equal(balances[1], 0);
    run_sql(&f, "update pgbench_tellers set tbalance = 7 where tid = 1");
    run_sql(&f, "update pgbench_branches set bbalance = 7 where bid = 1");
    run_sql(&f, "insert into pgbench_history (delta) values (3), (4)");
    assert_int_equal(fill_check(f.session, &schema_tpcb, balances, &equal, &f.err), 0);
    assert_true(equal);
    close_target(&f);
}

static void what_is_there_is_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        const char *change; // after an init to scale 1
        enum fill_state state;
        bool ours;
        const char *detail;
    } cases[] = {
        {"untouched", NULL, FILL_COMPLETE, true, ""},
        {"no mark", "drop table prony_init", FILL_COMPLETE, false, ""},
        {"a table is gone", "drop table pgbench_tellers", FILL_PARTIAL, true,
         "pgbench_tellers is missing"},
        {"a table is empty", "delete from pgbench_accounts", FILL_PARTIAL, true,
         "pgbench_accounts is empty"},
        {"made anew by another tool, to another scale",
         "insert into pgbench_branches values (2, 0, null)", FILL_COMPLETE, false, ""},
        {"interrupted", "update prony_init set state = 'filling', scale = 50", FILL_PARTIAL, true,
         "an init to scale 50 was interrupted"},
        {"the history may be empty or not", "insert into pgbench_history (tid) values (1)",
         FILL_COMPLETE, true, ""},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct fixture f;
        open_file(&f);
        f.options.replace_foreign = true;
        assert_int_equal(fill(&f), 0);
        if (cases[i].change)
            run_sql(&f, cases[i].change);
        look(&f);
        if (f.look.state != cases[i].state || f.look.ours != cases[i].ours ||
            strcmp(f.look.detail, cases[i].detail) != 0)
            fail_msg("%s: state %d, ours %d, %s", cases[i].what, f.look.state, f.look.ours,
                     f.look.detail);
        close_target(&f);
    }
}

static void foreign_tables_are_dropped_only_when_told(void **state)
{
    (void)state;
    struct fixture f;
    remove_file();
    open_file(&f);
    run_sql(&f, "create table pgbench_accounts (mine int)");
    run_sql(&f, "insert into pgbench_accounts values (1)");
    assert_true(fill(&f) < 0);
    assert_int_equal(f.err.kind, ERR_USAGE);
    assert_non_null(strstr(f.err.text, "--replace"));
    assert_int_equal(ask(&f, "select count(mine) from pgbench_accounts"), 1);
    assert_int_equal(ask(&f, "select count(*) from sqlite_master where name = 'prony_init'"), 0);
    f.options.replace_foreign = true;
    assert_int_equal(fill(&f), 0);
    assert_int_equal(ask(&f, "select count(*) from pgbench_accounts"), 100000);
    close_target(&f);
}

static volatile sig_atomic_t stop;

static void stop_while_loading(void *arg, const struct fill_tick *tick)
{
    (void)arg;
    if (tick->table && strcmp(tick->table, "pgbench_accounts") == 0)
        stop = 1;
}

static void an_interrupted_init_is_recognised_and_replaced(void **state)
{
    (void)state;
    struct fixture f;
    remove_file();
    open_file(&f);
    assert_int_equal(fill(&f), 0);
    stop = 0;
    f.options = (struct fill_options){.scale = 100, .stop = &stop, .tick = stop_while_loading};
    assert_true(fill(&f) < 0);
    assert_int_equal(f.err.kind, ERR_FAILED);
    assert_non_null(strstr(f.err.text, "interrupted"));
    look(&f);
    assert_int_equal(f.look.state, FILL_PARTIAL);
    assert_true(f.look.ours);
    assert_non_null(strstr(f.look.detail, "100"));
    f.options = (struct fill_options){.scale = 1};
    assert_int_equal(fill(&f), 0);
    look(&f);
    assert_int_equal(f.look.state, FILL_COMPLETE);
    close_target(&f);
}

static void a_failure_names_the_table_and_leaves_the_mark(void **state)
{
    (void)state;
    struct fixture f;
    remove_file();
    open_file(&f);
    f.options.scale = 3;
    run_sql(&f, "create view pgbench_tellers as select 1"); // in the way of the table
    f.options.replace_foreign = true;
    assert_true(fill(&f) < 0);
    assert_non_null(strstr(f.err.text, "pgbench_tellers"));
    assert_int_equal(ask(&f, "select count(*) from prony_init where state = 'filling'"), 1);
    close_target(&f);
}

// ---- several sessions

struct ticks {
    int n;
    int64_t last_rows;
    int64_t total;
};

static void count_ticks(void *arg, const struct fill_tick *tick)
{
    struct ticks *t = arg;
    t->n++;
    assert_true(tick->rows >= t->last_rows);
    t->last_rows = tick->rows;
    if (tick->rows_total)
        t->total = tick->rows_total;
}

static void several_sessions_load_every_row_once(void **state)
{
    (void)state;
    static const int jobs[] = {1, 2, 7, 40};
    for (size_t i = 0; i < ARR_LEN(jobs); i++) {
        struct fixture f;
        struct ticks ticks = {0};
        struct kvs counters = KVS_INIT;
        open_target(&f, "null:");
        f.options =
            (struct fill_options){.scale = 31, .jobs = jobs[i], .tick = count_ticks, .arg = &ticks};
        assert_int_equal(fill(&f), 0);
        assert_int_equal(f.report.rows, 31 * 100011);
        assert_int_equal(f.report.jobs, jobs[i]);
        db_sample(f.session, &counters);
        assert_string_equal(kvs_get(&counters, "rows_loaded"), "3100341");
        assert_int_equal(ticks.total, 31 * 100011);
        assert_true(ticks.n >= 2);
        kvs_release(&counters);
        close_target(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_init_makes_all_tables_and_says_whose_they_are),
        cmocka_unit_test(the_balances_are_compared),
        cmocka_unit_test(what_is_there_is_recognised),
        cmocka_unit_test(foreign_tables_are_dropped_only_when_told),
        cmocka_unit_test(an_interrupted_init_is_recognised_and_replaced),
        cmocka_unit_test(a_failure_names_the_table_and_leaves_the_mark),
        cmocka_unit_test(several_sessions_load_every_row_once),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
