// Whole runs with real threads on null: measured against what null says it did.
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
#include "base/clock.h"
#include "base/mem.h"
#include "load/run.h"

#define MS NS_PER_MS

// What prony's own code may add to a delay; sanitizers slow it down.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_NS 300e3
#else
#define OWN_NS 30e3
#endif

struct fixture {
    struct db_target *target;
    struct workload *workload;
    struct plan plan;
    struct run_hooks hooks;
    struct err err;
    struct result *result;
};

static volatile sig_atomic_t stop;

static void setup(struct fixture *f, const char *url, const char *script)
{
    struct db_open_options options = {.clock = &clock_system, .seed = 1};
    memset(f, 0, sizeof(*f));
    if (db_open(&f->target, url, &options, &f->err) < 0)
        fail_msg("%s", f->err.text);
    struct workload_options wo = {
        .placeholder = db_placeholder(f->target),
        .caps = db_caps(f->target),
        .scale = 1,
        .clients = 1,
    };
    int rc = strchr(script, ' ')
                 ? workload_load_text(&f->workload, "test.sql", script, &wo, &f->err)
                 : workload_load_builtin(&f->workload, script, &wo, &f->err);
    if (rc < 0)
        fail_msg("%s", f->err.text);
    db_set_statements(f->target, f->workload->n_statements, DB_PREPARED);
    stop = 0;
    f->hooks.stop = &stop;
    f->plan = (struct plan){
        .clock = &clock_system,
        .target = f->target,
        .workload = f->workload,
        .clients = 4,
        .loop = "threads",
        .protocol = DB_PREPARED,
        .time_ns = NS_PER_S,
        .warmup = PLAN_WARMUP_NONE,
        .max_tries = 10,
        .reconnect_for_ns = 60 * NS_PER_S,
        .finish_for_ns = 5 * NS_PER_S,
        .seed = 42,
    };
}

static struct result *run(struct fixture *f)
{
    if (run_load(&f->plan, &f->hooks, &f->result, &f->err) < 0)
        fail_msg("%s", f->err.text);
    return f->result;
}

static void release(struct fixture *f)
{
    result_free(f->result);
    workload_free(f->workload);
    db_close(f->target);
}

static int64_t commits(struct fixture *f)
{
    struct kvs counters = KVS_INIT;
    struct db_session *session;
    struct db_result answer;
    while (db_connect(f->target, -1, &session, &answer) == DB_UNAVAILABLE) // refused for 20 ms
        usleep(5000);
    assert_int_equal(answer.class, DB_OK);
    db_sample(session, &counters);
    db_disconnect(session);
    int64_t n = strtoll(kvs_get(&counters, "commits"), NULL, 10);
    kvs_release(&counters);
    return n;
}

static void latencies_agree_with_what_null_gave(void **state)
{
    (void)state;
    static const char *const urls[] = {"null:?latency=2ms",
                                       "null:?latency=5ms&distribution=exponential"};
    for (size_t i = 0; i < ARR_LEN(urls); i++) {
        struct fixture f;
        setup(&f, urls[i], "select-only");
        const struct result *r = run(&f);
        assert_string_equal(r->status, "done");
        assert_int_equal(r->given_delay.count, r->statements[0].count);
        // Medians: other programs on this machine may stop us between two readings of the clock.
        double given = (double)hist_sparse_quantile(&r->given_hist, 0.5);
        double latency = (double)hist_sparse_quantile(&r->latency.hist, 0.5);
        assert_true(fabs(latency - given) <= 0.01 * given + OWN_NS);
        assert_true(hist_mean_ns(&r->latency.hist.m) >= hist_mean_ns(&r->given_delay));
        release(&f);
    }
}

static void a_stall_fills_the_tail_under_a_rate(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, "null:?latency=100us&stall_at=1&stall_for=1", "select-only");
    f.plan.clients = 8;
    f.plan.time_ns = 4 * NS_PER_S;
    f.plan.rate_tps = 500;
    f.plan.arrival = PLAN_EVEN;
    const struct result *r = run(&f);
    struct hist *h = mem_calloc(1, sizeof(*h));
    hist_init(h);
    hist_add_sparse(h, &r->latency.hist);
    assert_int_equal(r->counts.planned, 2000);
    // 500 of 2000 arrive during the stall and wait for 1 s down to 0 s, and a little longer.
    double above_500 = hist_share_above(h, 500 * MS) * (double)h->m.count;
    double above_900 = hist_share_above(h, 900 * MS) * (double)h->m.count;
    assert_true(above_500 >= 248 && above_500 <= 300);
    assert_true(above_900 >= 48 && above_900 <= 100);
    assert_true(r->service.present);
    free(h);
    release(&f);
}

static void transactions_per_client_end_the_run(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, "null:", "tpcb");
    f.plan.time_ns = 0;
    f.plan.transactions = 500;
    const struct result *r = run(&f);
    assert_int_equal(r->counts.planned, 2000);
    assert_int_equal(r->counts.done, 2000);
    assert_int_equal(r->window_done, 2000);
    for (int i = 0; i < 4; i++)
        assert_int_equal(r->done_by_client[i], 500);
    assert_int_equal(r->statements_sent, 2000 * 7);
    assert_int_equal(commits(&f), 2000);
    release(&f);
}

static void losses_and_failures_agree_with_what_was_committed(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "null:?latency=200us&lose=0.01",
        "null:?latency=200us&lose=0.05&lose_at=commit&refuse_for=20ms",
        "null:?latency=200us&fail=0.02&fail_class=deadlock&lose=0.002",
        "null:?latency=200us&fail=0.02&fail_class=constraint",
    };
    for (size_t i = 0; i < ARR_LEN(urls); i++) {
        struct fixture f;
        setup(&f, urls[i], "tpcb");
        f.plan.clients = 8;
        const struct result *r = run(&f);
        int64_t applied = commits(&f);
        assert_true(r->counts.done > 0);
        assert_true(applied >= r->counts.done);
        assert_true(applied <= r->counts.done + r->counts.unknown + r->counts.in_flight);
        if (strstr(urls[i], "lose"))
            assert_true(r->errors[DB_LOST] > 0 && r->reconnects > 0);
        else
            assert_true(r->counts.failed > 0 && r->counts.unknown == 0);
        if (strstr(urls[i], "deadlock"))
            assert_true(r->counts.retried > 0);
        release(&f);
    }
}

// ---- stopping

static void stop_at_tick(void *arg, const struct run_tick *tick)
{
    (void)tick;
    stop = *(int *)arg;
}

static void a_first_signal_ends_in_a_full_result(void **state)
{
    (void)state;
    struct fixture f;
    int value = 1;
    setup(&f, "null:?latency=1ms", "select-only");
    f.plan.time_ns = 3600 * NS_PER_S;
    f.hooks.tick = stop_at_tick;
    f.hooks.arg = &value;
    const struct result *r = run(&f);
    assert_string_equal(r->status, "interrupted");
    assert_true(r->duration_s > 0.9 && r->duration_s < 10);
    assert_true(r->counts.done > 0 && r->counts.in_flight == 0);
    release(&f);
}

static void a_second_signal_cancels_what_runs(void **state)
{
    (void)state;
    struct fixture f;
    int value = 2;
    setup(&f, "null:?latency=1h", "select-only");
    f.plan.time_ns = 3600 * NS_PER_S;
    f.plan.finish_for_ns = 3600 * NS_PER_S;
    f.hooks.tick = stop_at_tick;
    f.hooks.arg = &value;
    int64_t start = clock_now_ns(&clock_system);
    const struct result *r = run(&f);
    assert_true(clock_now_ns(&clock_system) - start < 20 * NS_PER_S);
    assert_int_equal(r->counts.in_flight, 4);
    assert_string_equal(r->status, "failed");
    assert_non_null(strstr(r->failure, "still running"));
    release(&f);
}

static void the_end_cancels_what_does_not_finish(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, "null:?latency=1h", "tpcb");
    f.plan.time_ns = 200 * MS;
    f.plan.finish_for_ns = 200 * MS;
    const struct result *r = run(&f);
    assert_int_equal(r->counts.in_flight, 4);
    assert_true(r->duration_s == 0.2);
    release(&f);
}

static void sleeping_and_thinking_clients_notice_the_end(void **state)
{
    (void)state;
    struct fixture f;
    int value = 1;
    setup(&f, "null:", "SELECT 1;\n");
    f.plan.time_ns = 3600 * NS_PER_S;
    f.plan.think_ns = 3600 * NS_PER_S;
    f.hooks.tick = stop_at_tick;
    f.hooks.arg = &value;
    const struct result *r = run(&f);
    assert_true(r->duration_s < 10);
    assert_true(r->counts.done >= 4);
    release(&f);
}

// ---- before the load

static void who_cannot_connect_is_told_why(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, "null:?max_connections=3", "select-only");
    assert_true(run_load(&f.plan, &f.hooks, &f.result, &f.err) < 0);
    assert_int_equal(f.err.kind, ERR_USAGE);
    assert_non_null(strstr(f.err.text, "--clients 4"));
    assert_non_null(strstr(f.err.text, "3"));
    release(&f);

    setup(&f, "null:", "select-only");
    stop = 1;
    assert_true(run_load(&f.plan, &f.hooks, &f.result, &f.err) < 0);
    assert_int_equal(f.err.kind, ERR_FAILED);
    release(&f);

    setup(&f, "null:", "select-only");
    f.plan.log_prefix = "/nowhere/log";
    assert_true(run_load(&f.plan, &f.hooks, &f.result, &f.err) < 0);
    assert_int_equal(f.err.kind, ERR_USAGE);
    release(&f);
}

static void a_pipeline_is_never_driven_by_threads(void **state)
{
    static const char *const loops[] = {"auto", "threads"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        setup(&f, "null:", "tpcb");
        f.plan.pipeline_auto = true;
        f.plan.loop = loops[i];
        assert_true(run_load(&f.plan, &f.hooks, &f.result, &f.err) < 0);
        assert_int_equal(f.err.kind, ERR_ABSENT);
        assert_non_null(strstr(f.err.text, "ring loop"));
        release(&f);
    }
}

static void the_log_has_a_line_for_each_transaction(void **state)
{
    (void)state;
    struct fixture f;
    char prefix[64], path[96];
    int64_t log_error = -1;
    snprintf(prefix, sizeof(prefix), "/tmp/test_run.%d", (int)getpid());
    snprintf(path, sizeof(path), "%s.%d", prefix, (int)getpid());
    setup(&f, "null:?fail=0.05&fail_class=constraint", "select-only");
    f.plan.time_ns = 0;
    f.plan.transactions = 5000;
    f.plan.log_prefix = prefix;
    f.hooks.log_write_error = &log_error;
    const struct result *r = run(&f);
    FILE *file = fopen(path, "r");
    char line[256];
    int64_t lines = 0, failed = 0;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        lines++;
        failed += strstr(line, " failed ") != NULL;
    }
    fclose(file);
    unlink(path);
    assert_int_equal(lines, 20000);
    assert_int_equal(failed, r->counts.failed);
    assert_true(failed > 0);
    assert_int_equal(log_error, 0);
    release(&f);
}

struct ticks {
    int n;
    double last_s, done;
};

static void count_tick(void *arg, const struct run_tick *tick)
{
    struct ticks *t = arg;
    t->n++;
    t->done += tick->tps * (tick->at_s - t->last_s);
    t->last_s = tick->at_s;
    assert_int_equal(tick->clients, 4);
    assert_int_equal(tick->clients_up, 4);
    assert_true(tick->progress > 0 && tick->progress <= 1);
}

static void ticks_tell_the_progress(void **state)
{
    (void)state;
    struct fixture f;
    struct ticks ticks = {0};
    setup(&f, "null:?latency=1ms", "select-only");
    f.plan.time_ns = 2500 * MS;
    f.plan.progress_ns = 500 * MS;
    f.hooks.tick = count_tick;
    f.hooks.arg = &ticks;
    const struct result *r = run(&f);
    assert_true(ticks.n >= 2 && ticks.n <= 5);
    assert_true(ticks.done > 0 && ticks.done <= (double)r->counts.done * 1.01);
    release(&f);
}

static void an_outage_of_a_second_is_in_the_result(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, "null:?latency=1ms&down_at=1&down_for=1", "tpcb");
    f.plan.time_ns = 4 * NS_PER_S;
    const struct result *r = run(&f);
    assert_string_equal(r->status, "done");
    assert_int_equal(r->n_outages, 1);
    assert_true(r->outages[0].from_s > 0.9 && r->outages[0].from_s < 1.5);
    assert_true(r->outage_s > 0.5 && r->outage_s < 2.5);
    assert_int_equal(r->reconnects, 4);
    assert_int_equal(r->errors[DB_LOST], 4);
    assert_true(r->errors[DB_UNAVAILABLE] > 0);
    assert_true(r->series[3].done > 0);
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latencies_agree_with_what_null_gave),
        cmocka_unit_test(a_stall_fills_the_tail_under_a_rate),
        cmocka_unit_test(transactions_per_client_end_the_run),
        cmocka_unit_test(losses_and_failures_agree_with_what_was_committed),
        cmocka_unit_test(a_first_signal_ends_in_a_full_result),
        cmocka_unit_test(a_second_signal_cancels_what_runs),
        cmocka_unit_test(the_end_cancels_what_does_not_finish),
        cmocka_unit_test(sleeping_and_thinking_clients_notice_the_end),
        cmocka_unit_test(who_cannot_connect_is_told_why),
        cmocka_unit_test(a_pipeline_is_never_driven_by_threads),
        cmocka_unit_test(the_log_has_a_line_for_each_transaction),
        cmocka_unit_test(ticks_tell_the_progress),
        cmocka_unit_test(an_outage_of_a_second_is_in_the_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
