// One run from the plan to the result: the main thread watches while the clients work.
#include "load/run.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "load/gather.h"
#include "load/loop.h"
#include "load/seconds.h"
#include "load/shared.h"
#include "load/txlog.h"

#define WATCH_EVERY_NS  (50 * NS_PER_MS) // how soon *stop is noticed
#define TICK_AFTER_NS   (30 * NS_PER_MS) // time for the clients to hand over the second that ended
#define END_AHEAD_NS    (1 * NS_PER_MS)  // see end_now
#define CANCEL_AGAIN_NS (500 * NS_PER_MS)
#define HANG_NS         (15 * NS_PER_S) // from the cut; longer than a connection attempt may take
#define HANG_STOP_NS    (2 * NS_PER_S)  // likewise when *stop is 2

struct totals { // of all clients so far
    int64_t done, errors, retries;
};

struct run {
    const struct plan *plan;
    const struct run_hooks *hooks;
    struct shared *shared;
    struct seconds seconds;
    struct loop *loop;
    char *loop_why; // a better loop could not be had; NULL: it could
    struct txlog *log;
    int64_t start_ns;
    int64_t tick_due_ns, collect_due_ns, cancel_due_ns;
    int64_t ticked_ns; // when the last tick was
    struct totals at_tick;
    int64_t p50_ns, p99_ns;
    int stop; // the value of *stop acted upon
    int n_abandoned;
    struct rusage usage;
};

static const struct client *client_at(const void *arg, int i)
{
    const struct loop *loop = arg;

    return loop->ops->client(loop, i);
}

static int64_t now_ns(const struct run *run)
{
    return clock_now_ns(run->plan->clock);
}

// ---- progress

static struct totals sum_totals(const struct run *run)
{
    struct totals sum = {0};

    for (int i = 0; i < run->plan->clients; i++) {
        const struct client *c = run->loop->ops->client(run->loop, i);
        sum.done += atomic_load_explicit(&c->done, memory_order_relaxed);
        sum.errors += atomic_load_explicit(&c->errors, memory_order_relaxed);
        sum.retries += atomic_load_explicit(&c->retries, memory_order_relaxed);
    }
    return sum;
}

static double progress_of(const struct run *run, const struct totals *sum, int64_t now)
{
    const struct plan *plan = run->plan;
    double share;

    if (plan->time_ns > 0)
        share = (double)(now - run->start_ns) / (double)plan->time_ns;
    else
        share = (double)sum->done / ((double)plan->transactions * plan->clients);
    return share > 1 ? 1 : share;
}

static void tick(struct run *run, int64_t now)
{
    const struct plan *plan = run->plan;
    struct totals sum = sum_totals(run);
    double left_s = (double)(run->start_ns + plan->time_ns - now) / NS_PER_S;

    (void)seconds_take_recent(&run->seconds, &run->p50_ns, &run->p99_ns);
    struct run_tick t = {
        .at_s = (double)(now - run->start_ns) / NS_PER_S,
        .left_s = plan->time_ns == 0 ? -1
                  : left_s < 0       ? 0
                                     : left_s,
        .tps = (double)(sum.done - run->at_tick.done) * NS_PER_S / (double)(now - run->ticked_ns),
        .p50_ns = run->p50_ns,
        .p99_ns = run->p99_ns,
        .errors = sum.errors - run->at_tick.errors,
        .retries = sum.retries - run->at_tick.retries,
        .clients_up = outage_clients_up(&run->shared->outage),
        .clients = plan->clients,
        .progress = progress_of(run, &sum, now),
    };
    run->at_tick = sum;
    run->ticked_ns = now;
    if (run->hooks->tick)
        run->hooks->tick(run->hooks->arg, &t);
}

// Collecting goes on once a second, whatever the interval of the ticks.
static void collect_and_tick(struct run *run, int64_t now)
{
    int64_t every_ns = run->plan->progress_ns > 0 ? run->plan->progress_ns : NS_PER_S;

    if (now < run->collect_due_ns && now < run->tick_due_ns)
        return;
    run->loop->ops->collect(run->loop);
    while (run->collect_due_ns <= now)
        run->collect_due_ns += NS_PER_S;
    if (now < run->tick_due_ns)
        return;
    while (run->tick_due_ns <= now)
        run->tick_due_ns += every_ns;
    if (now - TICK_AFTER_NS < shared_end_ns(run->shared)) // which may be the end of time
        tick(run, now);
}

// ---- the end

// The end is put a little into the future, so that every client learns of it before it comes, and
// none records something as within the load that is not.
static void end_now(struct run *run)
{
    struct shared *shared = run->shared;
    int64_t end_ns;

    do {
        end_ns = now_ns(run) + END_AHEAD_NS;
        if (end_ns >= shared_end_ns(shared))
            return;
        atomic_store(&shared->end_ns, end_ns);
        run->loop->ops->wake(run->loop);
    } while (now_ns(run) >= end_ns);
    atomic_store(&shared->cut_ns, end_ns + run->plan->finish_for_ns);
    run->loop->ops->wake(run->loop);
}

static void heed_stop(struct run *run)
{
    int stop = run->hooks->stop ? *run->hooks->stop : 0;

    if (stop <= run->stop)
        return;
    if (run->stop == 0)
        end_now(run);
    if (stop >= 2) {
        int64_t now = now_ns(run);
        int64_t end_ns = shared_end_ns(run->shared);
        int64_t cut_ns = now > end_ns ? now : end_ns;
        if (cut_ns < shared_cut_ns(run->shared))
            atomic_store(&run->shared->cut_ns, cut_ns);
        run->loop->ops->wake(run->loop);
    }
    run->stop = stop;
}

// After the cut: what runs at servers is cancelled, again and again, and in the end left alone.
static void press_on(struct run *run, int64_t now)
{
    int64_t cut_ns = shared_cut_ns(run->shared);

    if (now < cut_ns || now < run->cancel_due_ns)
        return;
    run->cancel_due_ns = now + CANCEL_AGAIN_NS;
    if (now - cut_ns >= (run->stop >= 2 ? HANG_STOP_NS : HANG_NS))
        run->n_abandoned += run->loop->ops->abandon(run->loop);
    else
        run->loop->ops->cancel(run->loop);
}

static int64_t earliest(const int64_t *times, int n)
{
    int64_t least = INT64_MAX;

    for (int i = 0; i < n; i++)
        if (times[i] < least)
            least = times[i];
    return least;
}

static void watch(struct run *run)
{
    while (run->loop->ops->running(run->loop) > 0) {
        heed_stop(run);
        int64_t now = now_ns(run);
        collect_and_tick(run, now);
        press_on(run, now);
        int64_t wake[] = {now + WATCH_EVERY_NS, run->tick_due_ns, run->collect_due_ns,
                          shared_cut_ns(run->shared)};
        int64_t until_ns = earliest(wake, sizeof(wake) / sizeof(wake[0]));
        if (until_ns <= now) // the cut has passed
            until_ns = now + WATCH_EVERY_NS;
        run->loop->ops->wait(run->loop, until_ns);
    }
    run->loop->ops->join(run->loop);
}

// When the load really ended: at its end, or when the last client had nothing more to do.
static int64_t true_end_ns(const struct run *run)
{
    int64_t last_ns = run->start_ns;

    for (int i = 0; i < run->plan->clients; i++) {
        const struct client *c = run->loop->ops->client(run->loop, i);
        if (c->end == CLIENT_TIME_IS_UP)
            return shared_end_ns(run->shared);
        if (c->ended_ns > last_ns)
            last_ns = c->ended_ns;
    }
    // One more: the last completion lies within.
    return last_ns + 1 < shared_end_ns(run->shared) ? last_ns + 1 : shared_end_ns(run->shared);
}

// ---- all of it

static double seconds_of(struct timeval after, struct timeval before)
{
    return (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_usec - before.tv_usec) / 1e6;
}

static void begin(struct run *run)
{
    getrusage(RUSAGE_SELF, &run->usage);
    run->start_ns = run->loop->ops->go(run->loop, run->log);
    run->ticked_ns = run->start_ns;
    if (run->hooks->began)
        run->hooks->began(run->hooks->arg, run->start_ns);
    run->collect_due_ns = run->start_ns + NS_PER_S + TICK_AFTER_NS;
    run->tick_due_ns = run->start_ns + TICK_AFTER_NS +
                       (run->plan->progress_ns > 0 ? run->plan->progress_ns : NS_PER_S);
}

static struct result *finish(struct run *run)
{
    struct rusage usage;
    char boot_id[64];

    getrusage(RUSAGE_SELF, &usage);
    seconds_pack(&run->seconds);
    struct gather gather = {
        .shared = run->shared,
        .seconds = &run->seconds,
        .client = client_at,
        .arg = run->loop,
        .end_ns = true_end_ns(run),
        .interrupted = run->stop > 0,
        .n_abandoned = run->n_abandoned,
    };
    struct result *r = gather_result(&gather);
    int64_t real_minus_mono_ns = clock_real_ns() - clock_now_ns(&clock_system);
    r->started_real_ns = r->started_mono_ns + real_minus_mono_ns;
    r->ended_real_ns = r->ended_mono_ns + real_minus_mono_ns;
    clock_boot_id(boot_id, sizeof(boot_id));
    r->boot_id = mem_strdup(boot_id);
    r->loop = mem_strdup(run->loop->ops->name);
    if (run->loop_why)
        kvs_add(&r->environment, RESULT_LOOP_WHY, run->loop_why);
    r->threads = run->loop->ops->threads(run->loop);
    r->cpu_user_s = seconds_of(usage.ru_utime, run->usage.ru_utime);
    r->cpu_sys_s = seconds_of(usage.ru_stime, run->usage.ru_stime);
    if (r->statements_sent > 0)
        r->cpu_us_per_statement = (r->cpu_user_s + r->cpu_sys_s) * 1e6 / (double)r->statements_sent;
    return r;
}

// The first loop that can be had here. One that cannot says so by ERR_ABSENT, and the next is tried
// unless it was asked for by name.
static int start_loop(struct run *run, struct err *err)
{
    const struct loop_ops *loops[LOOPS_MAX];

    bool pipelines = plan_pipelines(run->plan);
    if (loop_choose(run->plan->target, run->plan->loop, pipelines, loops, err) < 0)
        return -1;
    for (int i = 0; loops[i]; i++) {
        if (loops[i]->start(&run->loop, run->shared, &run->seconds, run->hooks->stop, err) == 0) {
            *err = (struct err)ERR_INIT;
            return 0;
        }
        if (err->kind != ERR_ABSENT)
            break;
        free(run->loop_why);
        run->loop_why = mem_strdup(err->text);
        shared_release(run->shared); // as new for the next one
        shared_init(run->shared, run->plan);
    }
    if (pipelines && err->kind == ERR_ABSENT)
        return err_prefix(err, "statements are sent together by a ring loop only: ");
    return -1;
}

int run_load(const struct plan *plan, const struct run_hooks *hooks, struct result **ret,
             struct err *err)
{
    struct run run = {.plan = plan, .hooks = hooks};
    int rc = -1;

    run.shared = mem_calloc_lines(1, sizeof(*run.shared));
    shared_init(run.shared, plan);
    seconds_init(&run.seconds, TALLY_STATEMENTS + plan->workload->n_statements);
    if (start_loop(&run, err) < 0)
        goto out;
    // Made this late, so that a run that never begins leaves no file.
    if (plan->log_prefix && txlog_open(&run.log, plan->log_prefix, plan->clients,
                                       plan->rate_tps > 0, plan->max_tries > 1, err) < 0) {
        run.loop->ops->give_back(run.loop);
        goto out;
    }
    begin(&run);
    watch(&run);
    *ret = finish(&run);
    run.loop->ops->free(run.loop);
    if (hooks->log_write_error)
        *hooks->log_write_error = txlog_error(run.log);
    rc = 0;
out:
    txlog_close(run.log);
    free(run.loop_why);
    seconds_release(&run.seconds);
    if (run.n_abandoned == 0) { // their threads still look at it
        shared_release(run.shared);
        free(run.shared);
    }
    return rc;
}
