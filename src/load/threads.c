// The main thread's side of the threads loop.
#include "load/threads.h"

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
#define LOOK_EVERY_NS   (50 * NS_PER_MS) // how soon *stop is noticed
// From the signal to the common start: time for every thread to wake up.
#define START_DELAY_NS      (1 * NS_PER_MS)
#define START_PER_CLIENT_NS (20 * NS_PER_US)

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
                return connect_error(t, &t->workers[i], err);
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

void threads_give_back(struct threads *t)
{
    atomic_store(&t->quit, true);
    atomic_store(&t->started, true);
    gate_open(&t->start);
    for (int i = 0; i < t->n; i++)
        if (t->workers[i].has_thread)
            pthread_join(t->workers[i].thread, NULL);
    threads_free(t);
}

int threads_start(struct threads **ret, struct shared *shared, struct seconds *seconds,
                  volatile sig_atomic_t *stop, struct err *err)
{
    struct threads *t = mem_calloc_lines(1, sizeof(*t));

    t->shared = shared;
    t->seconds = seconds;
    t->n = shared->plan->clients;
    atomic_init(&t->running, t->n);
    sem_init(&t->connecting, 0, CONNECT_AT_ONCE);
    init_workers(t);
    // The first alone: what is wrong with the target is then said once and at once.
    if (start_threads(t, 0, 1, err) < 0 || await_connected(t, 1, stop, err) < 0 ||
        start_threads(t, 1, t->n, err) < 0 || await_connected(t, t->n, stop, err) < 0) {
        threads_give_back(t);
        return -1;
    }
    *ret = t;
    return 0;
}

int64_t threads_go(struct threads *t, struct txlog *log)
{
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

int threads_running(const struct threads *t)
{
    return atomic_load(&t->running);
}

void threads_wait(struct threads *t, int64_t until_ns)
{
    uint32_t turn = gate_turn(&t->main);

    if (threads_running(t) > 0)
        gate_wait(&t->main, turn, until_ns);
}

void threads_wake(struct threads *t)
{
    gate_open(&t->wake);
}

void threads_collect(struct threads *t)
{
    for (int i = 0; i < t->n; i++) {
        struct recorder *r = &t->workers[i].recorder;
        for (struct tally *tally = recorder_take(r), *next; tally; tally = next) {
            next = tally->next;
            seconds_add(t->seconds, tally);
            recorder_give(r, tally);
        }
    }
}

void threads_cancel(struct threads *t)
{
    for (int i = 0; i < t->n; i++) {
        struct worker *w = &t->workers[i];
        if (atomic_load(&w->place) != WORKER_CALL)
            continue;
        pthread_mutex_lock(&w->lock);
        if (w->session && atomic_load(&w->place) == WORKER_CALL)
            db_cancel(w->session);
        pthread_mutex_unlock(&w->lock);
    }
}

int threads_abandon(struct threads *t)
{
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

void threads_join(struct threads *t)
{
    assert(threads_running(t) == 0);
    for (int i = 0; i < t->n; i++) {
        if (atomic_load(&t->workers[i].place) == WORKER_ABANDONED)
            pthread_detach(t->workers[i].thread);
        else
            pthread_join(t->workers[i].thread, NULL);
    }
    threads_collect(t);
}

const struct client *threads_client(const struct threads *t, int i)
{
    assert(i >= 0 && i < t->n);
    return &t->workers[i].client;
}

void threads_free(struct threads *t)
{
    if (!t || t->has_abandoned)
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
