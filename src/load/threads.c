// The threads loop, the main thread's side: a thread per client calls the blocking library. For
// every engine, and for sessions that no wire codec can take over.
//
// A call into a library that does not return even when it is cancelled is abandoned: its thread
// stops where it comes back, and its memory is never freed.
#include "load/loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "load/connect_error.h"
#include "load/worker.h"

// Enough for the client libraries (TLS handshakes and name service included), and address space for
// thousands. What is not touched takes no memory.
#define STACK_BYTES (256 << 10)
#if defined(__SANITIZE_ADDRESS__)
#define STACK_FACTOR 4
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STACK_FACTOR 4
#endif
#endif
#ifndef STACK_FACTOR
#define STACK_FACTOR 1
#endif

#define CONNECT_AT_ONCE 32
#define CANCEL_PASS_NS  (500 * NS_PER_MS)
#define LOOK_EVERY_NS   (50 * NS_PER_MS) // how soon *stop is noticed
// From the signal to the common start: time for every thread to wake up.
#define START_DELAY_NS      (1 * NS_PER_MS)
#define START_PER_CLIENT_NS (20 * NS_PER_US)

static void threads_free(struct loop *loop);

static struct threads *own(struct loop *loop)
{
    assert(loop->ops == &loop_threads);
    return (struct threads *)loop;
}

static int start_thread(struct worker *w, const pthread_attr_t *attr, struct err *err)
{
    int error = pthread_create(&w->thread, attr, worker_main, w);

    if (error)
        return err_set(err, ERR_USAGE,
                       "--clients %d: cannot start thread %d: %s; use fewer clients, or raise the "
                       "limits on processes and memory (ulimit -u, -v)",
                       w->threads->n, w->client.id + 1, strerror(error));
    w->has_thread = true;
    return 0;
}

// Starts [from, to). Signals are for the main thread, whose waits they end.
static int start_threads(struct threads *t, int from, int to, struct err *err)
{
    pthread_attr_t attr;
    sigset_t all, old;
    int rc = 0;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, (size_t)STACK_BYTES * STACK_FACTOR);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (int i = from; i < to && rc == 0; i++)
        rc = start_thread(&t->workers[i], &attr, err);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

static int refused(struct threads *t, const struct worker *w, struct err *err)
{
    struct connect_failure failure = {
        .target = t->shared->plan->target, .clients = t->n, .result = &w->result};

    for (int i = 0; i < t->n; i++) {
        if (atomic_load(&t->workers[i].phase) != WORKER_CONNECTED)
            continue;
        if (failure.connected++ == 0) // it waits for the start: nobody else uses its session
            failure.session = t->workers[i].session;
    }
    return connect_error(&failure, err);
}

// Waits until [0, n) are connected. -1 without words when *stop was raised.
static int await_connected(struct threads *t, int n, volatile sig_atomic_t *stop, struct err *err)
{
    for (int done = 0; done < n;) {
        uint32_t turn = gate_turn(&t->main);
        int phase = atomic_load(&t->workers[done].phase);
        if (phase == WORKER_CONNECTED) {
            done++;
            continue;
        }
        for (int i = done; i < n; i++) // any that failed, not just the next one
            if (atomic_load(&t->workers[i].phase) == WORKER_REFUSED)
                return refused(t, &t->workers[i], err);
        if (stop && *stop)
            return err_set(err, ERR_FAILED, "interrupted before the load began");
        gate_wait(&t->main, turn, clock_now_ns(&clock_system) + LOOK_EVERY_NS);
    }
    return 0;
}

static void init_workers(struct threads *t)
{
    const struct workload *w = t->shared->workload;
    int n_channels = TALLY_STATEMENTS + w->n_statements;

    t->workers = mem_calloc_lines((size_t)t->n, sizeof(*t->workers));
    for (int i = 0; i < t->n; i++) {
        struct worker *worker = &t->workers[i];
        worker->threads = t;
        pthread_mutex_init(&worker->lock, NULL);
        recorder_init(&worker->recorder, n_channels, &t->shared->end_ns, &t->seconds->slow_floor);
        client_init(&worker->client, i, t->shared, &worker->recorder, &worker->log);
    }
}

static void threads_give_back(struct loop *loop)
{
    struct threads *t = own(loop);

    atomic_store(&t->quit, true);
    atomic_store(&t->started, true);
    gate_open(&t->start);
    for (int i = 0; i < t->n; i++)
        if (t->workers[i].has_thread)
            pthread_join(t->workers[i].thread, NULL);
    threads_free(loop);
}

static int threads_start(struct loop **ret, struct shared *shared, struct seconds *seconds,
                         volatile sig_atomic_t *stop, struct err *err)
{
    struct threads *t = mem_calloc_lines(1, sizeof(*t));

    t->base.ops = &loop_threads;
    t->shared = shared;
    t->seconds = seconds;
    t->n = shared->plan->clients;
    atomic_init(&t->running, t->n);
    sem_init(&t->connecting, 0, CONNECT_AT_ONCE);
    init_workers(t);
    // The first alone: what is wrong with the target is then said once and at once.
    if (start_threads(t, 0, 1, err) < 0 || await_connected(t, 1, stop, err) < 0 ||
        start_threads(t, 1, t->n, err) < 0 || await_connected(t, t->n, stop, err) < 0) {
        threads_give_back(&t->base);
        return -1;
    }
    *ret = &t->base;
    return 0;
}

static int64_t threads_go(struct loop *loop, struct txlog *log)
{
    struct threads *t = own(loop);
    struct shared *shared = t->shared;
    int64_t start_ns =
        clock_now_ns(shared->plan->clock) + START_DELAY_NS + t->n * START_PER_CLIENT_NS;

    shared_start(shared, start_ns);
    for (int i = 0; i < t->n; i++) {
        recorder_start(&t->workers[i].recorder, start_ns);
        txlog_buffer_init(&t->workers[i].log, log);
    }
    atomic_store(&t->started, true);
    gate_open(&t->start);
    return start_ns;
}

static int threads_running(const struct loop *loop)
{
    return atomic_load(&((const struct threads *)loop)->running);
}

static void threads_wait(struct loop *loop, int64_t until_ns)
{
    struct threads *t = own(loop);
    uint32_t turn = gate_turn(&t->main);

    if (threads_running(loop) > 0)
        gate_wait(&t->main, turn, until_ns);
}

static void threads_wake(struct loop *loop)
{
    gate_open(&own(loop)->wake);
}

static void threads_collect(struct loop *loop)
{
    struct threads *t = own(loop);

    for (int i = 0; i < t->n; i++) {
        struct recorder *r = &t->workers[i].recorder;
        for (struct tally *tally = recorder_take(r), *next; tally; tally = next) {
            next = tally->next;
            seconds_add(t->seconds, tally);
            recorder_give(r, tally);
        }
    }
}

// A server that does not answer may take seconds for each: the next call goes on with the next one.
static void threads_cancel(struct loop *loop)
{
    struct threads *t = own(loop);
    int64_t until_ns = clock_now_ns(&clock_system) + CANCEL_PASS_NS;

    for (int i = 0; i < t->n; i++) {
        struct worker *w = &t->workers[t->cancel_next];
        if (clock_now_ns(&clock_system) >= until_ns)
            return;
        t->cancel_next = (t->cancel_next + 1) % t->n;
        if (atomic_load(&w->place) != WORKER_CALL)
            continue;
        pthread_mutex_lock(&w->lock);
        if (w->session && atomic_load(&w->place) == WORKER_CALL)
            db_cancel(w->session);
        pthread_mutex_unlock(&w->lock);
    }
}

static int threads_abandon(struct loop *loop)
{
    struct threads *t = own(loop);
    int n = 0;

    for (int i = 0; i < t->n; i++) {
        struct worker *w = &t->workers[i];
        int place = WORKER_CALL;
        if (!atomic_compare_exchange_strong(&w->place, &place, WORKER_ABANDONED))
            continue;
        client_abandon(&w->client, clock_now_ns(t->shared->plan->clock));
        recorder_close(&w->recorder);
        txlog_buffer_release(&w->log);
        atomic_fetch_sub(&t->running, 1);
        t->has_abandoned = true;
        n++;
    }
    return n;
}

static void threads_join(struct loop *loop)
{
    struct threads *t = own(loop);

    assert(threads_running(loop) == 0);
    for (int i = 0; i < t->n; i++) {
        if (atomic_load(&t->workers[i].place) == WORKER_ABANDONED)
            pthread_detach(t->workers[i].thread);
        else
            pthread_join(t->workers[i].thread, NULL);
    }
    threads_collect(loop);
}

static const struct client *threads_client(const struct loop *loop, int i)
{
    const struct threads *t = (const struct threads *)loop;

    assert(i >= 0 && i < t->n);
    return &t->workers[i].client;
}

static void threads_free(struct loop *loop)
{
    struct threads *t = own(loop);

    if (t->has_abandoned)
        return;
    for (int i = 0; i < t->n; i++) {
        client_release(&t->workers[i].client);
        recorder_release(&t->workers[i].recorder);
        txlog_buffer_release(&t->workers[i].log);
        pthread_mutex_destroy(&t->workers[i].lock);
    }
    sem_destroy(&t->connecting);
    free(t->workers);
    free(t);
}

static int threads_threads(const struct loop *loop)
{
    return ((const struct threads *)loop)->n;
}

const struct loop_ops loop_threads = {
    .name = "threads",
    .start = threads_start,
    .give_back = threads_give_back,
    .go = threads_go,
    .running = threads_running,
    .wait = threads_wait,
    .wake = threads_wake,
    .collect = threads_collect,
    .cancel = threads_cancel,
    .abandon = threads_abandon,
    .join = threads_join,
    .client = threads_client,
    .threads = threads_threads,
    .free = threads_free,
};
