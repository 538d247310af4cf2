// Thousands of small runs with random plans and random answers, losses at any point, steps at any
// time: whatever happens, the accounting holds, nothing is committed that is said not to be, and no
// session is left inside a transaction.
#include "load_sim.h"

#include <stdio.h>

#include "base/rng.h"

#define SEED 20261130
#define RUNS 3000
#define MS   NS_PER_MS

struct world {
    struct rng rng;
    double p_error, p_retry, p_lost, p_refused;
    int64_t latency_ns;
    // The truth at the server, by client: what the present pass has done.
    int *writes;      // in the open transaction
    int *implicit;    // in the present batch, outside of one
    int64_t *durable; // passes of which something was committed
    bool *pass_counted;
    int64_t *last_number;
};

static enum db_class draw_class(struct world *w)
{
    static const enum db_class retries[] = {DB_SERIALIZATION, DB_DEADLOCK, DB_BUSY};
    static const enum db_class errors[] = {DB_CONSTRAINT, DB_UNDEFINED, DB_FULL,
                                           DB_OTHER,      DB_CANCELLED, DB_DENIED};
    double x = rng_double(&w->rng);

    if ((x -= w->p_lost) < 0)
        return DB_LOST;
    if ((x -= w->p_retry) < 0)
        return retries[rng_range(&w->rng, 0, 2)];
    if ((x -= w->p_error) < 0)
        return errors[rng_range(&w->rng, 0, 5)];
    return DB_OK;
}

static void commit(struct world *w, int client)
{
    if (!w->pass_counted[client])
        w->durable[client]++;
    w->pass_counted[client] = true;
}

// A statement is carried out. Outside of a transaction a batch is one by itself.
static void apply(struct sim *sim, int client, int statement, bool is_batch)
{
    struct world *w = sim->arg;
    bool open = sim->in_transaction[client];

    switch (sim->statements[statement].kind) {
    case DB_KIND_WRITE:
        if (open)
            w->writes[client]++;
        else if (is_batch)
            w->implicit[client]++;
        else
            commit(w, client);
        break;
    case DB_KIND_BEGIN:
        w->writes[client] = open ? w->writes[client] : w->implicit[client];
        w->implicit[client] = 0;
        break;
    case DB_KIND_COMMIT:
        if (open ? w->writes[client] > 0 : w->implicit[client] > 0)
            commit(w, client);
        w->implicit[client] = 0;
        break;
    default:
        w->implicit[client] = 0;
        break;
    case DB_KIND_READ:
        break;
    }
}

static void end_batch(struct sim *sim, int client, bool is_open)
{
    struct world *w = sim->arg;

    if (w->implicit[client] > 0 && !is_open)
        commit(w, client);
    w->implicit[client] = 0;
}

// The connection is lost, but the server goes on with what it was sent, for a while or to its end.
static void go_on(struct sim *sim, int client)
{
    struct world *w = sim->arg;
    const struct sim_queue *q = &sim->queues[client];
    bool open = sim->in_transaction[client];

    for (int i = q->next; i < q->n && rng_double(&w->rng) < 0.8; i++) {
        enum db_kind kind = sim->statements[q->statements[i]].kind;
        apply(sim, client, q->statements[i], true);
        open =
            kind == DB_KIND_BEGIN || (open && kind != DB_KIND_COMMIT && kind != DB_KIND_ROLLBACK);
        sim->in_transaction[client] = open;
        if (q->last[i])
            end_batch(sim, client, open);
    }
    w->implicit[client] = 0; // rolled back
}

// A lost statement has been executed by the server, or not: both happen.
static struct sim_answer execute(struct sim *sim, int client, int statement, int64_t now_ns)
{
    struct world *w = sim->arg;
    const struct client *c = &sim->clients[client];
    struct sim_answer answer = {draw_class(w), rng_range(&w->rng, 0, 2 * w->latency_ns)};
    bool applied = answer.class == DB_OK || (answer.class == DB_LOST && rng_double(&w->rng) < 0.5);
    const struct sim_queue *q = &sim->queues[client];

    (void)now_ns;
    if (c->number != w->last_number[client]) {
        w->last_number[client] = c->number;
        w->pass_counted[client] = false;
    }
    if (statement < 0)
        return answer;
    // Behind a BEGIN that fails the next batch of a section would be carried out without one. BEGIN
    // has no reason to.
    if (q->n > 0 && sim->statements[statement].kind == DB_KIND_BEGIN && answer.class != DB_LOST) {
        answer.class = DB_OK;
        applied = true;
    }
    if (q->n > 0 && answer.class == DB_LOST) {
        go_on(sim, client);
    } else if (applied) {
        enum db_kind kind = sim->statements[statement].kind;
        bool open = kind == DB_KIND_BEGIN || (sim->in_transaction[client] &&
                                              kind != DB_KIND_COMMIT && kind != DB_KIND_ROLLBACK);
        apply(sim, client, statement, q->n > 0);
        if (q->n > 0 && q->last[q->next])
            end_batch(sim, client, open);
    } else {
        w->implicit[client] = 0;
    }
    return answer;
}

static struct sim_answer reconnect(struct sim *sim, int client, int statement, int64_t now_ns)
{
    struct world *w = sim->arg;

    (void)client, (void)statement, (void)now_ns;
    return (struct sim_answer){rng_double(&w->rng) < w->p_refused ? DB_UNAVAILABLE : DB_OK,
                               rng_range(&w->rng, 0, w->latency_ns)};
}

static void put_command(struct sim_step *steps, int *n, int at, enum vm_command command)
{
    memmove(&steps[at + 1], &steps[at], (size_t)(*n - at) * sizeof(*steps));
    steps[at] = (struct sim_step){.want = VM_PIPELINE, .command = command};
    (*n)++;
}

// A pipeline section around some of the steps, with a sync perhaps.
static int draw_section(struct sim_step *steps, int n, struct rng *rng)
{
    int from = (int)rng_range(rng, 0, n - 1), to = (int)rng_range(rng, from, n);

    for (int i = from; i < to; i++) {
        steps[i].want_row = false; // what the compiler refuses
        if (steps[i].want == VM_SLEEP)
            return n;
    }
    put_command(steps, &n, to, VM_END_PIPELINE);
    for (int64_t syncs = rng_range(rng, 0, 2); syncs > 0; syncs--)
        put_command(steps, &n, (int)rng_range(rng, from, to), VM_SYNC_PIPELINE);
    put_command(steps, &n, from, VM_START_PIPELINE);
    return n;
}

static void draw_script(struct sim *sim, struct rng *rng)
{
    static const enum db_kind kinds[] = {DB_KIND_READ, DB_KIND_WRITE, DB_KIND_BEGIN, DB_KIND_COMMIT,
                                         DB_KIND_ROLLBACK};
    struct sim_step steps[12];
    int n = (int)rng_range(rng, 1, 8);
    bool tidy = rng_double(rng) < 0.7; // BEGIN first, COMMIT last

    for (int i = 0; i < n; i++) {
        double x = rng_double(rng);
        steps[i] = (struct sim_step){.want = VM_SQL, .kind = kinds[rng_range(rng, 0, 4)]};
        if (tidy)
            steps[i].kind = i == 0       ? DB_KIND_BEGIN
                            : i == n - 1 ? DB_KIND_COMMIT
                                         : kinds[rng_range(rng, 0, 1)];
        else if (x < 0.1)
            steps[i] = (struct sim_step){.want = VM_SLEEP, .sleep_ns = rng_range(rng, 0, 20 * MS)};
        else if (x < 0.11)
            steps[i].want = VM_ERROR;
        else if (x < 0.2)
            steps[i].want_row = true;
        if (tidy && i > 0 && i < n - 1)
            steps[i].want_row = x < 0.1;
    }
    if (rng_range(rng, 0, 3) == 0)
        n = draw_section(steps, n, rng);
    sim_script(sim, steps, n, rng_double(rng) + 0.01);
}

static double draw_probability(struct rng *rng, double most)
{
    return rng_double(rng) < 0.3 ? 0 : rng_double(rng) * most;
}

static void draw_plan(struct sim *sim, struct world *w, struct rng *rng)
{
    struct plan *plan = &sim->plan;

    for (int64_t n = rng_range(rng, 1, SIM_SCRIPTS_MAX); n > 0; n--)
        draw_script(sim, rng);
    plan->clients = (int)rng_range(rng, 1, 12);
    plan->time_ns = rng_range(rng, 0, 3) ? rng_range(rng, 1, 3000) * MS : 0;
    plan->transactions =
        plan->time_ns == 0 || rng_range(rng, 0, 3) == 0 ? rng_range(rng, 1, 50) : 0;
    plan->rate_tps = rng_range(rng, 0, 1) ? 10 + rng_double(rng) * 2000 : 0;
    plan->arrival = rng_range(rng, 0, 1) ? PLAN_POISSON : PLAN_EVEN;
    plan->think_ns = rng_range(rng, 0, 2) ? 0 : rng_range(rng, 1, 20) * MS;
    plan->max_tries = (int)rng_range(rng, 1, 5);
    plan->reconnect_for_ns = rng_range(rng, 0, 3) * rng_range(rng, 0, 500) * MS;
    plan->finish_for_ns = rng_range(rng, 0, 2) * 10 * MS;
    plan->pipeline_auto = rng_range(rng, 0, 2) == 0;
    plan->seed = rng_u64(rng);
    w->p_lost = draw_probability(rng, 0.1);
    w->p_retry = draw_probability(rng, 0.3);
    w->p_error = draw_probability(rng, 0.1);
    w->p_refused = draw_probability(rng, 0.9);
    w->latency_ns = rng_range(rng, 1000, 10 * MS);
}

// Events in order, with steps that nobody asked for, and an end that may come early.
static void run_randomly(struct sim *sim, struct world *w)
{
    int64_t now_ns = sim->start_ns;
    int64_t stop_ns =
        rng_range(&w->rng, 0, 3) ? INT64_MAX : now_ns + rng_range(&w->rng, 0, 2000) * MS;

    for (;;) {
        int next = 0;
        for (int i = 1; i < sim->plan.clients; i++)
            if (sim->due_ns[i] < sim->due_ns[next])
                next = i;
        if (sim->due_ns[next] == INT64_MAX)
            return;
        if (sim->due_ns[next] > stop_ns) { // as the main thread does: later than any client's time
            int64_t end_ns = stop_ns > now_ns ? stop_ns : now_ns + 1;
            if (end_ns < shared_end_ns(&sim->shared))
                sim->shared.end_ns = end_ns;
            int64_t cut_ns = shared_end_ns(&sim->shared) + sim->plan.finish_for_ns;
            if (cut_ns < shared_cut_ns(&sim->shared))
                sim->shared.cut_ns = cut_ns;
            for (int i = 0; i < sim->plan.clients; i++) // woken
                if (sim->asked[i] == ASK_WAIT && sim->due_ns[i] > end_ns)
                    sim->due_ns[i] = end_ns;
            stop_ns = INT64_MAX;
            continue;
        }
        now_ns = sim->due_ns[next];
        if (sim_deliver(sim, next, now_ns))
            sim_step(sim, next, now_ns);
        sim_collect(sim);
        int other = (int)rng_range(&w->rng, 0, sim->plan.clients - 1);
        if (sim->asked[other] == ASK_WAIT && sim->due_ns[other] > now_ns)
            sim_step(sim, other, now_ns); // nobody asked for it
    }
}

static void check_counts(const struct sim *sim, const struct result *r)
{
    const struct result_counts *n = &r->counts; // their sum was checked by gather_result
    int64_t errors = 0;
    int64_t series_done = 0;

    for (int k = 1; k < DB_CLASS_COUNT; k++)
        errors += r->errors[k];
    assert_int_equal(r->errors[DB_OK], 0);
    // Every failed try is an error: those that were repeated, the last ones, and the losses.
    assert_true(errors >= n->failed + n->retries + n->unknown);
    for (int t = 0; t < r->n_series; t++)
        series_done += r->series[t].done;
    assert_int_equal(series_done, r->window_done);
    assert_true(n->done - r->window_done <= r->clients); // what finished after the end
    assert_true(r->reconnects <= r->reconnect_attempts);
    assert_true(r->outage_s <= r->duration_s + 1e-9);
    for (int i = 0; i + 1 < r->n_outages; i++)
        assert_true(r->outages[i].to_s <= r->outages[i + 1].from_s);
    assert_int_equal(r->n_slowest, n->done < SLOWEST_MAX ? n->done : SLOWEST_MAX);
    assert_int_equal(sim->retried, n->retries);
    if (sim->plan.transactions > 0)
        assert_true(n->planned <= r->clients * sim->plan.transactions);
}

// What is said to have failed may have been committed in part only where a write commits by
// itself; with one transaction around everything (tidy scripts) it never has.
static void check_durability(const struct sim *sim, const struct world *w, const struct result *r)
{
    int64_t durable = 0;
    bool tidy = true;

    for (int s = 0; s < sim->workload.n_scripts; s++) {
        struct sim_step steps[SIM_STEPS_MAX];
        int n = 0;
        for (int i = 0; sim->steps[s][i].want != VM_END; i++)
            if (sim->steps[s][i].want != VM_PIPELINE)
                steps[n++] = sim->steps[s][i];
        tidy = tidy && n >= 2 && steps[0].want == VM_SQL && steps[0].kind == DB_KIND_BEGIN &&
               steps[n - 1].kind == DB_KIND_COMMIT;
        for (int i = 1; i < n - 1; i++)
            tidy = tidy && steps[i].want == VM_SQL && steps[i].kind <= DB_KIND_WRITE;
    }
    for (int i = 0; i < sim->plan.clients; i++)
        durable += w->durable[i];
    if (!tidy)
        return;
    assert_true(durable <= r->counts.done + r->counts.unknown + r->counts.in_flight);
    bool all_write = true;
    for (int s = 0; s < sim->workload.n_scripts; s++) {
        bool writes = false;
        for (int i = 0; sim->steps[s][i].want != VM_END; i++)
            writes |= sim->steps[s][i].want == VM_SQL && sim->steps[s][i].kind == DB_KIND_WRITE;
        all_write = all_write && writes;
    }
    if (all_write)
        assert_true(durable >= r->counts.done);
}

static void whatever_happens_the_accounting_holds(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, SEED, 0, RNG_DATA);
    int64_t seen_unknown = 0, seen_lost = 0, seen_in_flight = 0, seen_backlog = 0;
    int64_t seen_joined = 0, seen_rows = 0;
    for (int run = 0; run < RUNS; run++) {
        struct sim *sim = mem_calloc_lines(1, sizeof(*sim));
        struct world w = {0};
        sim_init(sim);
        rng_init(&w.rng, SEED, (uint64_t)run, RNG_DRIVER);
        draw_plan(sim, &w, &rng);
        size_t n = (size_t)sim->plan.clients;
        w.writes = mem_calloc(n, sizeof(*w.writes));
        w.implicit = mem_calloc(n, sizeof(*w.implicit));
        w.durable = mem_calloc(n, sizeof(*w.durable));
        w.pass_counted = mem_calloc(n, sizeof(*w.pass_counted));
        w.last_number = mem_calloc(n, sizeof(*w.last_number));
        sim->execute = execute;
        sim->connect = reconnect;
        sim->arg = &w;
        sim_start(sim);
        run_randomly(sim, &w);
        const struct result *r = sim_gather(sim);
        check_counts(sim, r);
        check_durability(sim, &w, r);
        seen_unknown += r->counts.unknown;
        seen_lost += r->errors[DB_LOST];
        seen_in_flight += r->counts.in_flight;
        seen_backlog += r->counts.backlog;
        seen_joined += sim->executed - sim->sent;
        seen_rows += sim->rows_taken;
        sim_release(sim);
        free(w.writes);
        free(w.implicit);
        free(w.durable);
        free(w.pass_counted);
        free(w.last_number);
        free(sim);
    }
    // The draw really covers the cases.
    assert_true(seen_unknown > 100 && seen_lost > 1000);
    assert_true(seen_in_flight > 100 && seen_backlog > 1000);
    assert_true(seen_joined > 10000 && seen_rows > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens_the_accounting_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
