// The client under a clock that stands still and a server that answers as scripted: latencies,
// counts, retries, outcomes are known exactly.
#include "load_sim.h"

#include <math.h>
#include <stdio.h>

#define SQL(k)                              \
    {                                       \
        .want = VM_SQL, .kind = DB_KIND_##k \
    }
#define MS NS_PER_MS

static struct sim *sim_new(void)
{
    struct sim *sim = mem_calloc_lines(1, sizeof(*sim));
    sim_init(sim);
    return sim;
}

static void sim_free(struct sim *sim)
{
    sim_release(sim);
    free(sim);
}

static const struct sim_step one_read[] = {SQL(READ)};
static const struct sim_step one_write[] = {SQL(WRITE)};
static const struct sim_step begin_write_commit[] = {SQL(BEGIN), SQL(WRITE), SQL(COMMIT)};

// ---- answers

static struct sim_answer in_2_ms(struct sim *sim, int client, int statement, int64_t now_ns)
{
    (void)sim, (void)client, (void)statement, (void)now_ns;
    return (struct sim_answer){DB_OK, 2 * MS};
}

// Statement k takes k + 1 ms.
static struct sim_answer by_statement(struct sim *sim, int client, int statement, int64_t now_ns)
{
    (void)sim, (void)client, (void)now_ns;
    return (struct sim_answer){DB_OK, (statement + 1) * MS};
}

// ---- closed loop

static void a_fixed_latency_is_measured_exactly(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    sim_script(sim, one_read, 1, 1);
    sim->execute = in_2_ms;
    const struct result *r = sim_run(sim);
    assert_int_equal(r->counts.done, 5000);
    assert_int_equal(r->counts.planned, 5000);
    // The last one completes at the very end, which is outside [0 s, 10 s).
    assert_int_equal(r->window_done, 4999);
    assert_true(r->duration_s == 10.0 && r->window_s == 10.0);
    assert_true(r->tps == 499.9);
    assert_int_equal(r->latency.hist.m.min_ns, 2 * MS);
    assert_int_equal(r->latency.hist.m.max_ns, 2 * MS);
    assert_true(hist_mean_ns(&r->latency.hist.m) == 2e6);
    assert_int_equal(hist_sparse_quantile(&r->latency.hist, 0.5), 2 * MS);
    assert_int_equal(r->n_series, 10);
    assert_int_equal(r->series[0].done, 499); // the 500th completes at 1 s sharp: in second 1
    for (int t = 1; t < 10; t++) {
        assert_int_equal(r->series[t].t_s, t);
        assert_int_equal(r->series[t].done, 500);
        assert_int_equal(r->series[t].latency.m.count, 500);
    }
    assert_false(r->service.present);
    assert_string_equal(r->status, "done");
    sim_free(sim);
}

static void each_statement_has_its_own_time(void **state)
{
    (void)state;
    static const struct sim_step steps[] = {
        SQL(BEGIN), SQL(WRITE), {.want = VM_SLEEP, .sleep_ns = 10 * MS}, SQL(READ), SQL(COMMIT)};
    struct sim *sim = sim_new();
    sim_script(sim, steps, 5, 1);
    sim->execute = by_statement;
    sim->plan.time_ns = 0;
    sim->plan.transactions = 100;
    const struct result *r = sim_run(sim);
    assert_int_equal(r->counts.done, 100);
    assert_true(hist_mean_ns(&r->latency.hist.m) == 20e6); // 1 + 2 + 10 + 3 + 4
    assert_true(fabs(r->duration_s - 2.0) < 1e-8); // the last completion lies within, by 1 ns
    assert_int_equal(r->window_done, 100);
    assert_int_equal(r->n_statements, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(r->statements[i].count, 100);
        assert_int_equal(r->statements[i].rows, 100);
        assert_true(hist_mean_ns(&r->statements[i].m) == (i + 1) * 1e6);
    }
    assert_int_equal(r->statements_sent, 400);
    sim_free(sim);
}

static void clients_count_apart_and_the_slowest_say_who(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    sim_script(sim, one_read, 1, 1);
    sim->execute = in_2_ms;
    sim->plan.clients = 3;
    sim->plan.transactions = 7;
    sim->plan.time_ns = 0;
    const struct result *r = sim_run(sim);
    for (int i = 0; i < 3; i++)
        assert_int_equal(r->done_by_client[i], 7);
    assert_int_equal(r->n_slowest, 21);
    for (int i = 0; i < 21; i++) { // equal latencies: in order of time, then client
        assert_int_equal(r->slowest[i].latency_ns, 2 * MS);
        assert_int_equal(r->slowest[i].number, i / 3 + 1);
        assert_int_equal(r->slowest[i].client, i % 3);
        assert_int_equal(r->slowest[i].end_ns, (i / 3 + 1) * 2 * MS);
    }
    sim_free(sim);
}

static void scripts_are_chosen_by_weight(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    sim_script(sim, one_read, 1, 3);
    sim_script(sim, one_read, 1, 0);
    sim_script(sim, one_read, 1, 1);
    sim->execute = in_2_ms;
    sim->plan.clients = 10;
    const struct result *r = sim_run(sim);
    assert_int_equal(r->statements[1].count, 0);
    double share = (double)r->statements[0].count / (double)r->window_done;
    // 50 000 draws: five standard deviations
    assert_true(fabs(share - 0.75) < 5 * sqrt(0.75 * 0.25 / 50000));
    sim_free(sim);
}

static void think_time_is_not_latency(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    sim_script(sim, one_read, 1, 1);
    sim->execute = in_2_ms;
    sim->plan.clients = 100;
    sim->plan.think_ns = 8 * MS;
    const struct result *r = sim_run(sim);
    assert_int_equal(r->latency.hist.m.max_ns, 2 * MS);
    assert_true(fabs(r->tps - 10000) < 100); // 100 clients, one per 10 ms each
    sim_free(sim);
}

static void a_warm_up_is_cut_in_whole_seconds(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    sim_script(sim, one_read, 1, 1);
    sim->execute = in_2_ms;
    sim->plan.time_ns = 25 * NS_PER_S + 500 * MS;
    sim->plan.warmup = PLAN_WARMUP_FIXED;
    sim->plan.warmup_ns = 2500 * MS;
    const struct result *r = sim_run(sim);
    assert_true(r->warmup_s == 3);
    assert_true(r->window_s == 22.5);
    assert_int_equal(r->window_done, 22 * 500 + 250);
    assert_int_equal(r->statements[0].count, r->window_done);
    assert_int_equal(r->n_series, 26);
    assert_int_equal(r->series[25].done, 250);
    assert_true(r->steady);
    assert_null(r->steady_why);
    sim_free(sim);
}

static void a_run_that_ends_within_its_warm_up_keeps_everything(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    sim_script(sim, one_read, 1, 1);
    sim->execute = in_2_ms;
    sim->plan.time_ns = 3 * NS_PER_S;
    sim->plan.warmup = PLAN_WARMUP_FIXED;
    sim->plan.warmup_ns = 5 * NS_PER_S;
    const struct result *r = sim_run(sim);
    assert_true(r->warmup_s == 0);
    assert_int_equal(r->window_done, 1499);
    assert_false(r->steady);
    assert_non_null(strstr(r->steady_why, "warm-up"));
    sim_free(sim);
}

// ---- open loop

// The server stalls for a second: who comes then waits for its end.
static struct sim_answer stalled(struct sim *sim, int client, int statement, int64_t now_ns)
{
    (void)client, (void)statement;
    int64_t from = sim->start_ns + 3 * NS_PER_S;
    int64_t to = from + NS_PER_S;
    int64_t begin = now_ns >= from && now_ns < to ? to : now_ns;
    return (struct sim_answer){DB_OK, begin - now_ns + 1 * MS};
}

// The same by the theory: arrivals are served first come, first served, by as many servers as there
// are clients.
static void expect_queue(int clients, int n, int64_t *latency_ns)
{
    int64_t *free_ns = mem_calloc((size_t)clients, sizeof(*free_ns));
    for (int k = 0; k < n; k++) {
        int64_t planned = k * MS; // 1000 a second
        int best = 0;
        for (int i = 1; i < clients; i++)
            if (free_ns[i] < free_ns[best])
                best = i;
        int64_t begin = free_ns[best] > planned ? free_ns[best] : planned;
        if (begin >= 3000 * MS && begin < 4000 * MS)
            begin = 4000 * MS;
        free_ns[best] = begin + 1 * MS;
        latency_ns[k] = free_ns[best] - planned;
    }
    free(free_ns);
}

static void a_stall_under_a_rate_puts_the_right_share_into_the_tail(void **state)
{
    (void)state;
    enum { CLIENTS = 10, N = 10000 };
    struct sim *sim = sim_new();
    sim_script(sim, one_read, 1, 1);
    sim->execute = stalled;
    sim->plan.clients = CLIENTS;
    sim->plan.rate_tps = 1000;
    sim->plan.arrival = PLAN_EVEN;
    const struct result *r = sim_run(sim);
    int64_t *expected = mem_calloc(N, sizeof(*expected));
    expect_queue(CLIENTS, N, expected);

    assert_int_equal(r->counts.planned, N);
    assert_int_equal(r->counts.done, N);
    assert_int_equal(r->counts.backlog, 0);
    double sum = 0;
    int64_t worst = 0;
    for (int k = 0; k < N; k++) {
        sum += (double)expected[k];
        worst = expected[k] > worst ? expected[k] : worst;
    }
    // The last completes 1 ms after its planned start: at the end, outside of the window.
    assert_int_equal(r->window_done, N - 1);
    assert_true(r->latency.hist.m.sum_ns == sum - (double)expected[N - 1]);
    assert_int_equal(r->latency.hist.m.max_ns, worst);
    struct hist *h = mem_calloc(1, sizeof(*h));
    hist_init(h);
    hist_add_sparse(h, &r->latency.hist);
    static const double limits_ms[] = {1.5, 10.5, 100.5, 250, 500, 750, 900, 990, 999};
    for (size_t i = 0; i < ARR_LEN(limits_ms); i++) {
        int64_t limit_ns = (int64_t)(limits_ms[i] * (double)MS);
        int above = 0;
        for (int k = 0; k < N - 1; k++)
            above += expected[k] > limit_ns;
        double got = hist_share_above(h, limit_ns) * (N - 1);
        // The bucket that holds the limit, 1/128 wide, is divided by interpolation.
        assert_true(fabs(got - above) <= 1 + limits_ms[i] / 128);
    }
    assert_true(r->service.present);
    assert_int_equal(r->service.hist.m.count, N - 1);
    // Only the ten that met the stall were served slowly.
    hist_clear(h);
    hist_add_sparse(h, &r->service.hist);
    assert_int_equal((int)nearbyint(hist_share_above(h, 2 * MS) * (N - 1)), CLIENTS);
    free(h);
    free(expected);
    sim_free(sim);
}

static void a_saturated_server_leaves_a_backlog_and_its_wait_is_latency(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    sim_script(sim, one_read, 1, 1);
    sim->execute = in_2_ms;
    sim->plan.rate_tps = 1000; // twice what one client can do
    sim->plan.arrival = PLAN_EVEN;
    const struct result *r = sim_run(sim);
    assert_int_equal(r->counts.planned, 10000);
    assert_int_equal(r->counts.done, 5000);
    assert_int_equal(r->counts.backlog, 5000);
    assert_int_equal(r->service.hist.m.max_ns, 2 * MS);
    // Transaction k (from 0) is planned at k ms, begins at 2k ms, ends 2 ms later.
    assert_int_equal(r->latency.hist.m.max_ns, (4998 + 2) * MS);
    assert_int_equal(r->latency.hist.m.min_ns, 2 * MS);
    sim_free(sim);
}

static void poisson_arrivals_come_at_the_rate(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    sim_script(sim, one_read, 1, 1);
    sim->execute = in_2_ms;
    sim->plan.clients = 50;
    sim->plan.rate_tps = 1000;
    const struct result *r = sim_run(sim);
    assert_true(fabs((double)r->counts.planned - 10000) < 5 * 100);
    assert_true(r->counts.planned - r->counts.done <= 50);
    assert_int_equal(r->counts.planned, r->counts.done + r->counts.backlog);
    sim_free(sim);
}

static void a_rate_with_a_number_of_transactions_plans_no_more_than_these(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    sim_script(sim, one_read, 1, 1);
    sim->execute = in_2_ms;
    sim->plan.clients = 4;
    sim->plan.rate_tps = 1000;
    sim->plan.time_ns = 0;
    sim->plan.transactions = 25;
    const struct result *r = sim_run(sim);
    assert_int_equal(r->counts.planned, 100);
    assert_int_equal(r->counts.done, 100);
    assert_int_equal(r->counts.backlog, 0);
    sim_free(sim);
}

// ---- the end

static void what_runs_at_the_end_may_finish_and_counts_but_not_in_the_window(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    sim_script(sim, begin_write_commit, 3, 1);
    sim->execute = in_2_ms;        // 6 ms each
    sim->plan.time_ns = 1003 * MS; // the 168th runs from 1002 to 1008 ms
    const struct result *r = sim_run(sim);
    assert_int_equal(r->counts.done, 168);
    assert_int_equal(r->window_done, 167);
    assert_int_equal(r->counts.planned, 168);
    assert_true(fabs(r->tps - 167 / 1.003) < 1e-9);
    assert_int_equal(r->n_slowest, 168);
    sim_free(sim);
}

static void what_does_not_finish_in_time_is_in_flight(void **state)
{
    (void)state;
    static const struct {
        int64_t finish_ms;
        int done, in_flight;
    } cases[] = {{0, 167, 1}, {2, 167, 1}, {4, 168, 0}, {6, 168, 0}};
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct sim *sim = sim_new();
        sim_script(sim, begin_write_commit, 3, 1);
        sim->execute = in_2_ms;
        sim->plan.time_ns = 1003 * MS;
        sim->plan.finish_for_ns = cases[i].finish_ms * MS;
        const struct result *r = sim_run(sim);
        assert_int_equal(r->counts.done, cases[i].done);
        assert_int_equal(r->counts.in_flight, cases[i].in_flight);
        sim_free(sim);
    }
}

static void a_sleeping_transaction_may_finish_a_thinking_client_ends_at_once(void **state)
{
    (void)state;
    static const struct sim_step sleepy[] = {
        SQL(READ), {.want = VM_SLEEP, .sleep_ns = 500 * MS}, SQL(READ)};
    struct sim *sim = sim_new();
    sim_script(sim, sleepy, 3, 1);
    sim->execute = in_2_ms;
    sim->plan.time_ns = 100 * MS;
    const struct result *r = sim_run(sim);
    assert_int_equal(r->counts.done, 1);
    assert_int_equal(r->window_done, 0);
    assert_int_equal(sim->clients[0].ended_ns - sim->start_ns, 504 * MS);
    sim_free(sim);

    sim = sim_new();
    sim_script(sim, sleepy, 3, 1);
    sim->execute = in_2_ms;
    sim->plan.time_ns = 100 * MS;
    sim->plan.finish_for_ns = 200 * MS;
    r = sim_run(sim);
    assert_int_equal(r->counts.in_flight, 1);
    assert_int_equal(sim->clients[0].ended_ns - sim->start_ns, 300 * MS);
    assert_string_equal(r->status, "failed");
    sim_free(sim);

    sim = sim_new();
    sim_script(sim, one_read, 1, 1);
    sim->execute = in_2_ms;
    sim->plan.time_ns = 100 * MS;
    sim->plan.think_ns = 3600 * NS_PER_S;
    r = sim_run(sim);
    assert_int_equal(r->counts.done, 1);
    assert_int_equal(sim->clients[0].ended_ns - sim->start_ns, 100 * MS);
    sim_free(sim);
}

// ---- retries and errors

struct trouble { // for the first `times` executions of statement `at` of every transaction
    enum db_class class;
    int at;
    int times;
    int seen;
    int executed_after; // of other statements since
};

static struct sim_answer troubled(struct sim *sim, int client, int statement, int64_t now_ns)
{
    (void)client, (void)now_ns;
    struct trouble *t = sim->arg;
    if (statement == 0 && t->at != 0 && t->seen > t->times)
        t->seen = 0; // the next transaction
    if (statement != t->at)
        return (struct sim_answer){DB_OK, 1 * MS};
    if (t->seen++ < t->times)
        return (struct sim_answer){t->class, 1 * MS};
    if (t->at == 0)
        t->seen = 0;
    return (struct sim_answer){DB_OK, 1 * MS};
}

static void retry_classes_are_tried_again_up_to_max_tries(void **state)
{
    (void)state;
    static const struct {
        enum db_class class;
        int times, max_tries;
        int done, failed, retried, retries;
    } cases[] = {
        // of 10 transactions
        {DB_SERIALIZATION, 0, 10, 10, 0, 0, 0},   {DB_SERIALIZATION, 1, 10, 10, 0, 10, 10},
        {DB_DEADLOCK, 3, 10, 10, 0, 10, 30},      {DB_BUSY, 9, 10, 10, 0, 10, 90},
        {DB_SERIALIZATION, 1000, 1, 0, 10, 0, 0}, {DB_DEADLOCK, 1000, 4, 0, 10, 10, 30},
        {DB_CONSTRAINT, 1000, 10, 0, 10, 0, 0},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        for (int at = 0; at < 3; at++) {
            struct sim *sim = sim_new();
            struct trouble t = {.class = cases[i].class, .at = at, .times = cases[i].times};
            sim_script(sim, begin_write_commit, 3, 1);
            sim->execute = troubled;
            sim->arg = &t;
            sim->plan.time_ns = 0;
            sim->plan.transactions = 10;
            sim->plan.max_tries = cases[i].max_tries;
            const struct result *r = sim_run(sim);
            assert_int_equal(r->counts.done, cases[i].done);
            assert_int_equal(r->counts.failed, cases[i].failed);
            assert_int_equal(r->counts.retried, cases[i].retried);
            assert_int_equal(r->counts.retries, cases[i].retries);
            assert_int_equal(sim->retried, cases[i].retries);
            assert_int_equal(r->errors[cases[i].class], cases[i].retries + cases[i].failed);
            assert_false(sim->in_transaction[0]); // every failed try was rolled back
            assert_string_equal(r->status, cases[i].done ? "done" : "failed");
            sim_free(sim);
        }
    }
}

static void latency_counts_from_the_first_try(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    struct trouble t = {.class = DB_SERIALIZATION, .at = 2, .times = 2};
    sim_script(sim, begin_write_commit, 3, 1);
    sim->execute = troubled;
    sim->arg = &t;
    sim->plan.time_ns = 0;
    sim->plan.transactions = 1;
    const struct result *r = sim_run(sim);
    // Three tries of 3 ms, two ROLLBACKs of 1 ms, two pauses of at most 0.25 and 0.5 ms.
    assert_true(r->latency.hist.m.min_ns > 11 * MS);
    assert_true(r->latency.hist.m.min_ns <= 11 * MS + 750 * NS_PER_US);
    sim_free(sim);
}

static void what_was_committed_in_part_is_not_tried_again(void **state)
{
    (void)state;
    // The first write commits by itself; the second one fails.
    static const struct sim_step two_writes[] = {SQL(WRITE), SQL(WRITE)};
    struct sim *sim = sim_new();
    struct trouble t = {.class = DB_DEADLOCK, .at = 1, .times = 1000};
    sim_script(sim, two_writes, 2, 1);
    sim->execute = troubled;
    sim->arg = &t;
    sim->plan.time_ns = 0;
    sim->plan.transactions = 5;
    const struct result *r = sim_run(sim);
    assert_int_equal(r->counts.failed, 5);
    assert_int_equal(r->counts.retries, 0);
    sim_free(sim);
}

static void a_script_that_leaves_its_transaction_open_has_failed(void **state)
{
    (void)state;
    static const struct sim_step open_end[] = {SQL(BEGIN), SQL(WRITE)};
    struct sim *sim = sim_new();
    sim_script(sim, open_end, 2, 1);
    sim->execute = in_2_ms;
    const struct result *r = sim_run(sim);
    assert_int_equal(r->counts.done, 0);
    assert_int_equal(r->counts.failed, 10); // then it gives up
    assert_false(sim->in_transaction[0]);
    assert_non_null(strstr(r->failure, "COMMIT"));
    sim_free(sim);
}

static void a_script_error_is_a_failed_transaction_with_its_words(void **state)
{
    (void)state;
    static const struct sim_step broken[] = {SQL(BEGIN), {.want = VM_ERROR}};
    struct sim *sim = sim_new();
    sim_script(sim, broken, 2, 1);
    sim->execute = in_2_ms;
    const struct result *r = sim_run(sim);
    assert_int_equal(r->counts.failed, 10);
    assert_int_equal(r->errors[DB_OTHER], 10);
    assert_non_null(strstr(r->failure, "script:1: division by zero"));
    assert_false(sim->in_transaction[0]);
    sim_free(sim);
}

static struct sim_answer undefined(struct sim *sim, int client, int statement, int64_t now_ns)
{
    (void)sim, (void)now_ns, (void)client, (void)statement;
    return (struct sim_answer){DB_UNDEFINED, 1 * MS};
}

// Client 0 never succeeds; the others do.
static struct sim_answer one_is_denied(struct sim *sim, int client, int statement, int64_t now_ns)
{
    (void)sim, (void)now_ns, (void)statement;
    return (struct sim_answer){client == 0 ? DB_DENIED : DB_OK, 1 * MS};
}

static struct sim_answer full_after_1_s(struct sim *sim, int client, int statement, int64_t now_ns)
{
    (void)client, (void)statement;
    return (struct sim_answer){now_ns >= sim->start_ns + NS_PER_S ? DB_FULL : DB_OK, 1 * MS};
}

static struct sim_answer fails_after_1_s(struct sim *sim, int client, int statement, int64_t now_ns)
{
    (void)client, (void)statement;
    return (struct sim_answer){now_ns >= sim->start_ns + NS_PER_S ? DB_UNDEFINED : DB_OK, 1 * MS};
}

static void who_meets_nothing_but_errors_gives_up(void **state)
{
    (void)state;
    static const struct {
        sim_answer_fn *answer;
        const char *status, *failure;
        int failed, gave_up;
    } cases[] = {
        {undefined, "failed", "every client gave up after 0.0 s: undefined: script:1: as scripted",
         30, 3},
        {one_is_denied, "done", NULL, 10, 1},
        {full_after_1_s, "failed", "every client gave up after 1.0 s: full", 30, 3},
        {fails_after_1_s, "done", NULL, 3 * 9000, 0}, // it has worked before: goes on
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct sim *sim = sim_new();
        sim_script(sim, one_read, 1, 1);
        sim->execute = cases[i].answer;
        sim->plan.clients = 3;
        const struct result *r = sim_run(sim);
        int gave_up = 0;
        for (int k = 0; k < 3; k++)
            gave_up += sim->clients[k].end == CLIENT_GAVE_UP;
        assert_int_equal(gave_up, cases[i].gave_up);
        assert_int_equal(r->counts.failed, cases[i].failed);
        assert_string_equal(r->status, cases[i].status);
        if (cases[i].failure)
            assert_non_null(strstr(r->failure, cases[i].failure));
        else
            assert_null(r->failure);
        assert_int_equal(result_has_warning(r, "clients-gave-up"), gave_up > 0 && gave_up < 3);
        sim_free(sim);
    }
}

// ---- lost connections

struct loss { // at the n-th statement of the run (from 0), once
    int at;
    int executed;
};

static struct sim_answer lost_once(struct sim *sim, int client, int statement, int64_t now_ns)
{
    (void)client, (void)statement, (void)now_ns;
    struct loss *loss = sim->arg;
    return (struct sim_answer){loss->executed++ == loss->at ? DB_LOST : DB_OK, 1 * MS};
}

static void a_loss_is_unknown_only_when_something_may_be_committed(void **state)
{
    (void)state;
    static const struct sim_step two_reads[] = {SQL(READ), SQL(READ)};
    static const struct sim_step write_read[] = {SQL(WRITE), SQL(READ)};
    static const struct sim_step commit_read[] = {SQL(BEGIN), SQL(WRITE), SQL(COMMIT), SQL(READ)};
    static const struct {
        const char *what;
        const struct sim_step *steps;
        int n;
        bool transactions;
        int at;
        bool unknown;
    } cases[] = {
        {"begin", begin_write_commit, 3, true, 0, false},
        {"write in a transaction", begin_write_commit, 3, true, 1, false},
        {"commit", begin_write_commit, 3, true, 2, true},
        {"read", two_reads, 2, true, 0, false},
        {"second read", two_reads, 2, true, 1, false},
        {"write that commits by itself", one_write, 1, true, 0, true},
        {"read after such a write", write_read, 2, true, 1, true},
        {"read after the commit", commit_read, 4, true, 3, true},
        {"without transactions: lock", begin_write_commit, 3, false, 0, false},
        {"without transactions: write", begin_write_commit, 3, false, 1, true},
        {"without transactions: unlock", begin_write_commit, 3, false, 2, true},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct sim *sim = sim_new();
        struct loss loss = {.at = cases[i].at};
        sim_script(sim, cases[i].steps, cases[i].n, 1);
        sim->execute = lost_once;
        sim->arg = &loss;
        sim->plan.time_ns = 0;
        sim->plan.transactions = 5;
        sim_start(sim);
        if (!cases[i].transactions)
            sim->shared.caps &= ~(unsigned)DB_CAP_TRANSACTIONS;
        sim_run_to(sim, INT64_MAX);
        const struct result *r = sim_gather(sim);
        if (r->counts.unknown != cases[i].unknown || r->counts.failed != !cases[i].unknown)
            fail_msg("%s: unknown %d, failed %d", cases[i].what, (int)r->counts.unknown,
                     (int)r->counts.failed);
        assert_int_equal(r->counts.done, 4);
        assert_int_equal(r->counts.retries, 0);
        assert_int_equal(r->errors[DB_LOST], 1);
        assert_int_equal(r->reconnects, 1);
        assert_int_equal(r->reconnect_attempts, 1);
        sim_free(sim);
    }
}

// Down from 3 s to 5 s: connections are lost and refused.
static struct sim_answer down_execute(struct sim *sim, int client, int statement, int64_t now_ns)
{
    (void)client, (void)statement;
    int64_t t = now_ns - sim->start_ns;
    if (t >= 3 * NS_PER_S && t < 5 * NS_PER_S)
        return (struct sim_answer){DB_LOST, 0};
    return (struct sim_answer){DB_OK, 1 * MS};
}

static struct sim_answer down_connect(struct sim *sim, int client, int statement, int64_t now_ns)
{
    (void)client, (void)statement;
    int64_t t = now_ns - sim->start_ns;
    if (t >= 3 * NS_PER_S && t < 5 * NS_PER_S)
        return (struct sim_answer){DB_UNAVAILABLE, 1 * MS};
    return (struct sim_answer){DB_OK, 1 * MS};
}

static void an_outage_is_survived_and_reported(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    sim_script(sim, one_read, 1, 1);
    sim->execute = down_execute;
    sim->connect = down_connect;
    sim->plan.clients = 4;
    const struct result *r = sim_run(sim);
    assert_string_equal(r->status, "done");
    assert_int_equal(r->errors[DB_LOST], 4);
    assert_int_equal(r->counts.failed, 4); // reads: certainly nothing committed
    assert_int_equal(r->reconnects, 4);
    assert_int_equal(r->errors[DB_UNAVAILABLE], r->reconnect_attempts - 4);
    assert_true(r->reconnect_attempts >= 4 * 3 && r->reconnect_attempts <= 4 * 9);
    assert_int_equal(r->n_outages, 1);
    assert_true(fabs(r->outages[0].from_s - 3.0) < 1e-9);
    assert_true(r->outages[0].to_s >= 5.0 && r->outages[0].to_s < 6.1); // pauses are up to 1 s
    assert_true(r->outage_s == r->outages[0].to_s - r->outages[0].from_s);
    assert_int_equal(r->series[3].done, 4); // those that end at 3 s sharp
    assert_int_equal(r->series[4].done, 0);
    assert_true(r->series[4].errors > 0);
    assert_int_equal(r->series[9].done, 4000);
    sim_free(sim);
}

static void under_a_rate_arrivals_go_on_during_an_outage(void **state)
{
    (void)state;
    struct sim *sim = sim_new();
    sim_script(sim, one_read, 1, 1);
    sim->execute = down_execute;
    sim->connect = down_connect;
    sim->plan.clients = 4;
    sim->plan.rate_tps = 100;
    sim->plan.arrival = PLAN_EVEN;
    const struct result *r = sim_run(sim);
    assert_int_equal(r->counts.planned, 1000);
    assert_int_equal(r->counts.failed, 4);
    assert_int_equal(r->counts.done, 996);
    // The first that waited was planned 40 ms into the outage, and waited for its end.
    double waited_s = r->outages[0].to_s - 3.04;
    double max_s = (double)r->latency.hist.m.max_ns / NS_PER_S;
    assert_true(fabs(max_s - waited_s) < 0.05);
    assert_int_equal(r->service.hist.m.max_ns, 1 * MS);
    sim_free(sim);
}

static struct sim_answer gone_for_ever(struct sim *sim, int client, int statement, int64_t now_ns)
{
    (void)client, (void)statement;
    bool is_down = now_ns >= sim->start_ns + 3 * NS_PER_S;
    return (struct sim_answer){is_down ? DB_UNAVAILABLE : DB_OK, 1 * MS};
}

static void a_server_that_stays_away_ends_the_run_with_what_was_measured(void **state)
{
    (void)state;
    static const int64_t patience_s[] = {0, 2};
    for (size_t i = 0; i < ARR_LEN(patience_s); i++) {
        struct sim *sim = sim_new();
        sim_script(sim, one_read, 1, 1);
        sim->execute = gone_for_ever;
        sim->connect = gone_for_ever;
        sim->plan.clients = 2;
        sim->plan.time_ns = 60 * NS_PER_S;
        sim->plan.reconnect_for_ns = patience_s[i] * NS_PER_S;
        const struct result *r = sim_run(sim);
        assert_string_equal(r->status, "failed");
        assert_non_null(strstr(r->failure, "every client gave up"));
        assert_int_equal(r->counts.done, 2 * 3000);
        assert_true(fabs(r->duration_s - 3.0 - (double)patience_s[i]) < 0.01);
        assert_true(fabs(r->outage_s - (double)patience_s[i]) < 0.01);
        assert_int_equal(r->n_outages, patience_s[i] > 0);
        sim_free(sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixed_latency_is_measured_exactly),
        cmocka_unit_test(each_statement_has_its_own_time),
        cmocka_unit_test(clients_count_apart_and_the_slowest_say_who),
        cmocka_unit_test(scripts_are_chosen_by_weight),
        cmocka_unit_test(think_time_is_not_latency),
        cmocka_unit_test(a_warm_up_is_cut_in_whole_seconds),
        cmocka_unit_test(a_run_that_ends_within_its_warm_up_keeps_everything),
        cmocka_unit_test(a_stall_under_a_rate_puts_the_right_share_into_the_tail),
        cmocka_unit_test(a_saturated_server_leaves_a_backlog_and_its_wait_is_latency),
        cmocka_unit_test(poisson_arrivals_come_at_the_rate),
        cmocka_unit_test(a_rate_with_a_number_of_transactions_plans_no_more_than_these),
        cmocka_unit_test(what_runs_at_the_end_may_finish_and_counts_but_not_in_the_window),
        cmocka_unit_test(what_does_not_finish_in_time_is_in_flight),
        cmocka_unit_test(a_sleeping_transaction_may_finish_a_thinking_client_ends_at_once),
        cmocka_unit_test(retry_classes_are_tried_again_up_to_max_tries),
        cmocka_unit_test(latency_counts_from_the_first_try),
        cmocka_unit_test(what_was_committed_in_part_is_not_tried_again),
        cmocka_unit_test(a_script_that_leaves_its_transaction_open_has_failed),
        cmocka_unit_test(a_script_error_is_a_failed_transaction_with_its_words),
        cmocka_unit_test(who_meets_nothing_but_errors_gives_up),
        cmocka_unit_test(a_loss_is_unknown_only_when_something_may_be_committed),
        cmocka_unit_test(an_outage_is_survived_and_reported),
        cmocka_unit_test(under_a_rate_arrivals_go_on_during_an_outage),
        cmocka_unit_test(a_server_that_stays_away_ends_the_run_with_what_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
