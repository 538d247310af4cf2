// The main thread's side of the ring: a few worker threads drive all clients over the wire codecs.
#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "load/connect_error.h"
#include "load/loop.h"
#include "load/ring_worker.h"

#define CONNECT_AT_ONCE  32
#define CONNECT_TRIES    5 // a crowd of clients may overrun a listen queue
#define CONNECT_PAUSE_NS (50 * NS_PER_MS)
#define LOOK_EVERY_NS    (50 * NS_PER_MS) // how soon *stop is noticed
#define START_DELAY_NS   (1 * NS_PER_MS)

static struct ring *own(struct loop *loop)
{
    return (struct ring *)loop;
}

// ---- connecting before the load

static void job_is_back(struct connector_job *job)
{
    struct ring_client *rc = job->owner;
    struct ring *ring = rc->worker->ring;
    struct connector_job *head = atomic_load(&ring->back);

    do
        job->next = head;
    while (!atomic_compare_exchange_weak(&ring->back, &head, job));
    gate_open(&ring->main);
}

static void submit(struct ring_client *rc)
{
    rc->job = (struct connector_job){.client = rc->client.id, .done = job_is_back, .owner = rc};
    connector_submit(rc->worker->ring->connector, &rc->job);
}

// A few words for what cannot be taken over are no refusal by the server.
static int refused(struct ring *ring, struct ring_client *rc, int n_connected, struct err *err)
{
    const struct connector_job *job = &rc->job;

    if (job->result.class == DB_OTHER && job->is_not_adopted)
        return err_set(err, ERR_ABSENT, "--loop %s: %s", ring->base.ops->name, job->result.message);
    struct connect_failure failure = {
        .target = ring->shared->plan->target,
        .clients = ring->n_clients,
        .connected = n_connected,
        .result = &job->result,
    };
    for (int i = 0; i < ring->n_clients && !failure.session; i++)
        if (ring->clients[i]->wire) { // given back to the library, which can ask for the setting
            db_wire_release(ring->clients[i]->wire);
            ring->clients[i]->wire = NULL;
            failure.session = ring->clients[i]->session;
        }
    return connect_error(&failure, err);
}

static bool is_worth_a_try(const struct connector_job *job, int tries)
{
    return job->client > 0 && tries < CONNECT_TRIES &&
           (job->result.class == DB_UNAVAILABLE || job->result.class == DB_LOST);
}

// Connects clients [from, to). Jobs are always awaited, also after a failure.
static int connect_clients(struct ring *ring, int from, int to, volatile sig_atomic_t *stop,
                           struct err *err)
{
    int out = to - from, n_connected = from, rc = 0;
    int *tries = mem_calloc((size_t)ring->n_clients, sizeof(*tries));

    for (int i = from; i < to; i++)
        submit(ring->clients[i]);
    while (out > 0) {
        uint32_t turn = gate_turn(&ring->main);
        struct connector_job *job = atomic_exchange(&ring->back, NULL);
        if (!job)
            gate_wait(&ring->main, turn, clock_now_ns(&clock_system) + LOOK_EVERY_NS);
        if (stop && *stop && rc == 0)
            rc = err_set(err, ERR_FAILED, "interrupted before the load began");
        for (struct connector_job *next; job; job = next) {
            struct ring_client *client = job->owner;
            next = job->next;
            if (!job->session && rc == 0 && is_worth_a_try(job, ++tries[job->client])) {
                clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + CONNECT_PAUSE_NS);
                submit(client);
                continue;
            }
            out--;
            client->session = job->session;
            client->wire = job->wire;
            if (job->session)
                n_connected++;
            else if (rc == 0)
                rc = refused(ring, client, n_connected, err);
        }
    }
    free(tries);
    return rc;
}

// ---- making it

// One worker drives thousands of clients; more of them pay when one is busy all the time, and take
// CPU from a server on the same machine. A quarter of the processors leaves it the rest.
static int choose_workers(const struct plan *plan)
{
    cpu_set_t set;
    int cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    int n = plan->threads > 0 ? plan->threads : (cpus + 3) / 4;

    return n < plan->clients ? n : plan->clients;
}

static void init_workers(struct ring *ring)
{
    int n_channels = TALLY_STATEMENTS + ring->shared->workload->n_statements;
    int next = 0;

    ring->workers = mem_calloc_lines((size_t)ring->n_workers, sizeof(*ring->workers));
    ring->clients = mem_calloc((size_t)ring->n_clients, sizeof(*ring->clients));
    for (int i = 0; i < ring->n_workers; i++) {
        struct ring_worker *w = &ring->workers[i];
        w->ring = ring;
        w->n = w->running = (ring->n_clients - next) / (ring->n_workers - i);
        w->clients = mem_calloc((size_t)w->n, sizeof(*w->clients));
        str_init(&w->out);
        str_init(&w->plain);
        str_init(&w->sealed);
        timers_init(&w->timers, w->n);
        recorder_init(&w->recorder, n_channels, &ring->shared->end_ns, &ring->seconds->slow_floor);
        for (int k = 0; k < w->n; k++, next++) {
            w->clients[k].worker = w;
            ring->clients[next] = &w->clients[k];
            client_init(&w->clients[k].client, next, ring->shared, &w->recorder, &w->log);
        }
    }
    assert(next == ring->n_clients);
}

// Until it is past this.
static void wait_for_worker(struct ring_worker *w, enum ring_ready ready)
{
    struct ring *ring = w->ring;
    uint32_t turn;

    while ((turn = gate_turn(&ring->main)), atomic_load(&w->ready) == (int)ready)
        gate_wait(&ring->main, turn, INT64_MAX);
}

static int start_workers(struct ring *ring, struct err *err)
{
    sigset_t all, old;
    int rc = 0;

    sigfillset(&all); // signals are for the main thread, whose waits they end
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (int i = 0; i < ring->n_workers && rc == 0; i++) {
        struct ring_worker *w = &ring->workers[i];
        int error = pthread_create(&w->thread, NULL, ring_worker_main, w);
        w->has_thread = error == 0;
        if (error)
            rc = err_set(err, ERR_USAGE, "--threads %d: thread %d cannot be started: %s",
                         ring->n_workers, i + 1, strerror(error));
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    for (int i = 0; i < ring->n_workers && rc == 0; i++) {
        wait_for_worker(&ring->workers[i], RING_UNMADE);
        if (atomic_load(&ring->workers[i].ready) == RING_NOT_MADE) {
            *err = ring->workers[i].err;
            rc = -1;
        }
    }
    return rc;
}

// The sessions go to the workers.
static void hand_over(struct ring *ring)
{
    atomic_store(&ring->connected, true);
    gate_open(&ring->start);
    for (int i = 0; i < ring->n_workers; i++)
        wait_for_worker(&ring->workers[i], RING_MADE);
}

static void close_sessions(struct ring *ring)
{
    for (int i = 0; i < ring->n_clients; i++) {
        struct ring_client *rc = ring->clients[i];
        if (rc->is_abandoned)
            continue;
        db_wire_release(rc->wire);
        db_disconnect(rc->session);
        rc->wire = NULL;
        rc->session = NULL;
    }
}

static void ring_free(struct loop *loop)
{
    struct ring *ring = own(loop);

    if (ring->has_abandoned)
        return;
    for (int i = 0; i < ring->n_workers; i++) {
        struct ring_worker *w = &ring->workers[i];
        for (int k = 0; k < w->n; k++)
            client_release(&w->clients[k].client);
        free(w->clients);
        str_release(&w->out);
        str_release(&w->plain);
        str_release(&w->sealed);
        timers_release(&w->timers);
        recorder_release(&w->recorder);
    }
    free(ring->workers);
    free(ring->clients);
    free(ring);
}

static void join_threads(struct ring *ring)
{
    for (int i = 0; i < ring->n_workers; i++)
        if (ring->workers[i].has_thread)
            pthread_join(ring->workers[i].thread, NULL);
}

static void ring_give_back(struct loop *loop)
{
    struct ring *ring = own(loop);

    atomic_store(&ring->quit, true);
    gate_open(&ring->start);
    join_threads(ring);
    connector_stop(ring->connector);
    close_sessions(ring);
    ring_free(loop);
}

static int ring_start(const struct loop_ops *ops, const struct poller_ops *poller,
                      struct loop **ret, struct shared *shared, struct seconds *seconds,
                      volatile sig_atomic_t *stop, struct err *err)
{
    struct ring *ring = mem_calloc_lines(1, sizeof(*ring));

    ring->base.ops = ops;
    ring->shared = shared;
    ring->seconds = seconds;
    ring->poller = poller;
    ring->n_clients = shared->plan->clients;
    ring->n_workers = choose_workers(shared->plan);
    atomic_init(&ring->running, ring->n_clients);
    init_workers(ring);
    int n_threads = ring->n_clients < CONNECT_AT_ONCE ? ring->n_clients : CONNECT_AT_ONCE;
    // The first alone: what is wrong with the target is then said once and at once.
    if (start_workers(ring, err) < 0 ||
        connector_start(&ring->connector, shared->plan->target, n_threads, err) < 0 ||
        connect_clients(ring, 0, 1, stop, err) < 0 ||
        connect_clients(ring, 1, ring->n_clients, stop, err) < 0) {
        ring_give_back(&ring->base);
        return -1;
    }
    hand_over(ring);
    *ret = &ring->base;
    return 0;
}

#ifdef HAVE_URING
static int start_uring(struct loop **ret, struct shared *shared, struct seconds *seconds,
                       volatile sig_atomic_t *stop, struct err *err)
{
    return ring_start(&loop_ring_uring, &poller_uring, ret, shared, seconds, stop, err);
}
#endif

static int start_epoll(struct loop **ret, struct shared *shared, struct seconds *seconds,
                       volatile sig_atomic_t *stop, struct err *err)
{
    return ring_start(&loop_ring_epoll, &poller_epoll, ret, shared, seconds, stop, err);
}

// ---- while it runs

static int64_t ring_go(struct loop *loop, struct txlog *log)
{
    struct ring *ring = own(loop);
    int64_t start_ns = clock_now_ns(&clock_system) + START_DELAY_NS;

    shared_start(ring->shared, start_ns);
    for (int i = 0; i < ring->n_workers; i++) {
        recorder_start(&ring->workers[i].recorder, start_ns);
        txlog_buffer_init(&ring->workers[i].log, log);
    }
    atomic_store(&ring->started, true);
    gate_open(&ring->start);
    return start_ns;
}

static int ring_running(const struct loop *loop)
{
    return atomic_load(&((const struct ring *)loop)->running);
}

static void ring_wait(struct loop *loop, int64_t until_ns)
{
    struct ring *ring = own(loop);
    uint32_t turn = gate_turn(&ring->main);

    if (ring_running(loop) > 0)
        gate_wait(&ring->main, turn, until_ns);
}

static void wake_workers(struct ring *ring)
{
    for (int i = 0; i < ring->n_workers; i++)
        ring->poller->wake(ring->workers[i].poller);
}

static void ring_wake(struct loop *loop)
{
    struct ring *ring = own(loop);

    atomic_fetch_add(&ring->moves, 1);
    wake_workers(ring);
}

static void ring_collect(struct loop *loop)
{
    struct ring *ring = own(loop);

    for (int i = 0; i < ring->n_workers; i++) {
        struct recorder *r = &ring->workers[i].recorder;
        for (struct tally *tally = recorder_take(r), *next; tally; tally = next) {
            next = tally->next;
            seconds_add(ring->seconds, tally);
            recorder_give(r, tally);
        }
    }
}

static void press(struct ring *ring, enum ring_press what)
{
    for (int i = 0; i < ring->n_workers; i++)
        atomic_store(&ring->workers[i].press, what);
    wake_workers(ring);
}

static void ring_cancel(struct loop *loop)
{
    press(own(loop), RING_CANCEL);
}

static int ring_abandon(struct loop *loop)
{
    struct ring *ring = own(loop);
    int n = 0;

    for (int i = 0; i < ring->n_workers; i++)
        atomic_store(&ring->workers[i].pressed, false);
    press(ring, RING_ABANDON);
    for (int i = 0; i < ring->n_workers; i++) {
        struct ring_worker *w = &ring->workers[i];
        uint32_t turn;
        // A worker whose last client has just ended does not answer any more.
        while ((turn = gate_turn(&ring->main)), !atomic_load(&w->pressed) && w->running > 0)
            gate_wait(&ring->main, turn, clock_now_ns(&clock_system) + LOOK_EVERY_NS);
        n += w->n_abandoned;
        w->n_abandoned = 0;
    }
    if (n > 0)
        ring->has_abandoned = true;
    return n;
}

static void ring_join(struct loop *loop)
{
    struct ring *ring = own(loop);

    join_threads(ring);
    if (!ring->has_abandoned) // else one of its threads does not come back
        connector_stop(ring->connector);
    ring_collect(loop);
    close_sessions(ring);
}

static const struct client *ring_client(const struct loop *loop, int i)
{
    return &((const struct ring *)loop)->clients[i]->client;
}

static int ring_threads(const struct loop *loop)
{
    return ((const struct ring *)loop)->n_workers;
}

#define RING_OPS(loop_name, starter)                                                              \
    {                                                                                             \
        .name = loop_name, .start = starter, .give_back = ring_give_back, .go = ring_go,          \
        .running = ring_running, .wait = ring_wait, .wake = ring_wake, .collect = ring_collect,   \
        .cancel = ring_cancel, .abandon = ring_abandon, .join = ring_join, .client = ring_client, \
        .threads = ring_threads, .free = ring_free,                                               \
    }

#ifdef HAVE_URING
const struct loop_ops loop_ring_uring = RING_OPS("ring-uring", start_uring);
#endif
const struct loop_ops loop_ring_epoll = RING_OPS("ring-epoll", start_epoll);
