// What a worker thread of the ring does: reap what has arrived, step the clients concerned, queue
// what they send, and let the poller hand all of it to the kernel in the call that waits for the
// next.
//
// One look at the clock per wake-up stamps everything that had arrived by then, and is the moment
// from which what is sent next counts: time that a worker spends on other clients is part of a
// client's latency and never falls between two transactions.
#include "load/ring_worker.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "db/driver.h"

static void drive(struct ring_client *rc);

static int64_t clock_ns(void)
{
    return clock_now_ns(&clock_system);
}

static int slot_of(const struct ring_client *rc)
{
    return (int)(rc - rc->worker->clients);
}

// ---- sessions

static void submit_job(struct ring_client *rc)
{
    struct connector_job *job = &rc->job;

    assert(rc->link == RING_NONE);
    rc->link = RING_CONNECTING;
    *job = (struct connector_job){
        .client = rc->client.id,
        .session = rc->session,
        .wire = rc->wire,
        .done = ring_worker_mail,
        .owner = rc,
    };
    rc->session = NULL;
    rc->wire = NULL;
    connector_submit(rc->worker->ring->connector, job);
}

// Takes the session away from the poller, and goes on with connecting when it has let go.
static void connect_anew(struct ring_client *rc)
{
    rc->out = rc->lost = false;
    if (rc->link == RING_POLLED) {
        rc->link = poller_remove(rc->worker->poller, slot_of(rc)) ? RING_NONE : RING_LEAVING;
        rc->reconnect = true;
    }
    if (rc->link == RING_NONE)
        submit_job(rc);
}

static void connected(struct ring_client *rc)
{
    struct ring_worker *w = rc->worker;
    struct connector_job *job = &rc->job;

    if (rc->is_abandoned) // nobody waits for it any more
        return;
    rc->link = RING_NONE;
    rc->session = job->session;
    rc->wire = job->wire;
    if (rc->session && poller_add(w->poller, slot_of(rc), rc->wire->fd) < 0) {
        rc->lost = true; // the next request says so
        client_connected(&rc->client, w->now_ns);
    } else if (rc->session) {
        rc->lost = false;
        rc->link = RING_POLLED;
        client_connected(&rc->client, w->now_ns);
    } else {
        client_refused(&rc->client, &job->result, w->now_ns);
    }
    drive(rc);
}

void ring_worker_mail(struct connector_job *job)
{
    struct ring_client *rc = job->owner;
    struct ring_worker *w = rc->worker;
    struct connector_job *head = atomic_load_explicit(&w->mail, memory_order_relaxed);

    do
        job->next = head;
    while (!atomic_compare_exchange_weak_explicit(&w->mail, &head, job, memory_order_release,
                                                  memory_order_relaxed));
    w->poller->ops->wake(w->poller);
    gate_open(&w->ring->main);
}

// ---- requests

static void send_bytes(struct ring_client *rc, struct str *bytes)
{
    struct ring_worker *w = rc->worker;

    if (bytes->len == 0)
        return;
    if (rc->wire->tls) {
        str_clear(&w->sealed);
        if (db_wire_seal(rc->wire, bytes, &w->sealed) < 0)
            rc->wire->broken = true; // the next feed, or the peer, ends it
        bytes = &w->sealed;
    }
    w->poller->ops->send(w->poller, slot_of(rc), bytes->buf, bytes->len);
}

// A request that went nowhere is answered at once.
static bool is_lost(struct ring_client *rc)
{
    if (!rc->lost && rc->link == RING_POLLED)
        return false;
    memset(&rc->result, 0, sizeof(rc->result));
    db_fail(&rc->result, DB_LOST, "", "the connection was closed while nothing was sent");
    return true;
}

static void clear_result(struct ring_client *rc)
{
    memset(&rc->result, 0, offsetof(struct db_result, native));
    rc->result.native[0] = rc->result.message[0] = '\0';
}

// A statement of a batch cannot be sent. The codec has those before it open: none will go out.
static bool part_with_batch(struct ring_client *rc)
{
    rc->wire->broken = true;
    rc->result.class = DB_LOST;
    return false;
}

static bool execute(struct ring_client *rc)
{
    struct ring_worker *w = rc->worker;
    const struct vm_step *step = &rc->client.step;
    bool is_joined = client_is_joined(&rc->client);

    client_sending(&rc->client, w->now_ns);
    if (is_lost(rc))
        return false;
    clear_result(rc);
    if (!is_joined)
        str_clear(&w->out);
    if (db_wire_encode(rc->wire, step->statement, step->params, step->want_row, &w->out,
                       &rc->result) != DB_OK)
        return is_joined ? part_with_batch(rc) : false;
    send_bytes(rc, &w->out);
    return rc->out = true;
}

// Into the scratch buffer: nobody else uses it before the batch goes out.
static bool join(struct ring_client *rc)
{
    struct ring_worker *w = rc->worker;
    const struct vm_step *step = &rc->client.step;

    client_sending(&rc->client, w->now_ns);
    if (is_lost(rc))
        return false;
    clear_result(rc);
    if (!client_is_joined(&rc->client))
        str_clear(&w->out);
    if (rc->wire->codec->encode_joined(rc->wire, step->statement, step->params, &w->out,
                                       &rc->result) != DB_OK)
        return part_with_batch(rc);
    return true;
}

static void flush(struct ring_client *rc)
{
    struct ring_worker *w = rc->worker;

    client_sending(&rc->client, w->now_ns);
    send_bytes(rc, &w->out);
    rc->out = true;
}

static bool query(struct ring_client *rc)
{
    struct ring_worker *w = rc->worker;

    client_sending(&rc->client, w->now_ns);
    if (is_lost(rc))
        return false;
    memset(&rc->result, 0, sizeof(rc->result));
    str_clear(&w->out);
    if (rc->wire->codec->encode_query(rc->wire, rc->client.query, false, &w->out, &rc->result) !=
        DB_OK)
        return false;
    send_bytes(rc, &w->out);
    return rc->out = true;
}

static void end_client(struct ring_client *rc)
{
    struct ring_worker *w = rc->worker;

    assert(!rc->ended);
    rc->ended = true;
    rc->reconnect = false;
    timers_clear(&w->timers, slot_of(rc));
    if (rc->link == RING_POLLED)
        rc->link = poller_remove(w->poller, slot_of(rc)) ? RING_NONE : RING_LEAVING;
    w->running--;
    atomic_fetch_sub(&w->ring->running, 1);
}

// Steps one client until it waits for something.
static void drive(struct ring_client *rc)
{
    struct ring_worker *w = rc->worker;

    for (;;) {
        switch (client_step(&rc->client, w->now_ns)) {
        case ASK_EXECUTE:
            if (execute(rc))
                return;
            client_answered(&rc->client, &rc->result, w->now_ns);
            break;
        case ASK_QUERY:
            if (query(rc))
                return;
            client_answered(&rc->client, &rc->result, w->now_ns);
            break;
        case ASK_JOIN:
            if (!join(rc))
                client_answered(&rc->client, &rc->result, w->now_ns);
            break;
        case ASK_END_BATCH:
            rc->wire->codec->end_batch(rc->wire, &w->out);
            break;
        case ASK_FLUSH:
            flush(rc);
            return;
        case ASK_CONNECT:
            connect_anew(rc);
            return;
        case ASK_WAIT:
            timers_set(&w->timers, slot_of(rc), rc->client.until_ns);
            return;
        case ASK_NEXT:
            if (txlog_wants_flush(&w->log))
                txlog_flush(&w->log);
            break;
        case ASK_END:
            end_client(rc);
            return;
        case CLIENT_GO_ON:
            assert(!"an ask");
        }
    }
}

// ---- answers

static void answered(struct ring_client *rc)
{
    struct ring_worker *w = rc->worker;

    if (rc->result.class == DB_OK && client_wants_row(&rc->client)) {
        int n = rc->result.rows > 0 ? rc->result.n_columns : 0;
        client_take_row(&rc->client, rc->result.rows, n);
        for (int i = 0; i < n; i++)
            client_take_column(&rc->client, rc->wire->codec->row_name(rc->wire, i),
                               rc->wire->codec->row_value(rc->wire, i));
    }
    client_answered(&rc->client, &rc->result, w->now_ns);
    rc->out = client_awaits(&rc->client);
    if (!rc->out)
        drive(rc);
}

// The session is of no more use. What was out is answered; else the next request finds out.
static void broken(struct ring_client *rc)
{
    if (!rc->out) {
        rc->lost = true;
        return;
    }
    rc->result.class = DB_LOST;
    answered(rc);
}

static void feed(struct ring_client *rc, const char *bytes, size_t n)
{
    struct ring_worker *w = rc->worker;
    struct db_wire *wire = rc->wire;
    bool first = true;

    while ((n > 0 || first) && rc->wire == wire && rc->link == RING_POLLED && !rc->lost) {
        size_t used = 0;
        first = false;
        str_clear(&w->out);
        enum db_wire_progress progress = db_wire_feed(wire, bytes, n, &used, &w->out, &rc->result);
        send_bytes(rc, &w->out);
        assert(used <= n);
        bytes += used;
        n -= used;
        if (progress == DB_WIRE_MORE)
            return;
        if (progress == DB_WIRE_BROKEN || !rc->out)
            broken(rc);
        else
            answered(rc);
    }
}

static void received(struct ring_client *rc, const struct poller_event *event)
{
    struct ring_worker *w = rc->worker;

    if (!rc->wire->tls) {
        feed(rc, event->bytes, event->n);
        return;
    }
    str_clear(&w->plain);
    str_clear(&w->sealed);
    int rc_open = db_wire_open(rc->wire, event->bytes, event->n, &w->plain, &w->sealed);
    if (w->sealed.len > 0) // what TLS itself has to say
        w->poller->ops->send(w->poller, slot_of(rc), w->sealed.buf, w->sealed.len);
    if (w->plain.len > 0)
        feed(rc, w->plain.buf, w->plain.len);
    if (rc_open < 0 && rc->link == RING_POLLED)
        broken(rc);
}

// What an answer touches, in three steps, while other clients' events are handled: the client, what
// it points to, and what that points to.
static void on_soon(void *arg, int slot)
{
    struct ring_worker *w = arg;
    const struct ring_client *first = &w->clients[slot];
    const struct ring_client *second = &w->clients[w->ahead[0]];
    const struct ring_client *third = &w->clients[w->ahead[1]];

    mem_prefetch(first, offsetof(struct ring_client, job));
    mem_prefetch(&first->result, offsetof(struct db_result, message));
    if (second->wire) {
        mem_prefetch(second->wire, DB_WIRE_NEAR);
        vm_prefetch(second->client.vm);
    }
    if (third->wire) {
        db_wire_prefetch(third->wire);
        vm_prefetch_more(third->client.vm);
    }
    w->ahead[1] = w->ahead[0];
    w->ahead[0] = slot;
}

static void on_event(void *arg, const struct poller_event *event)
{
    struct ring_worker *w = arg;
    struct ring_client *rc = &w->clients[event->slot];

    if (!w->is_stamped) {
        w->now_ns = clock_ns();
        w->is_stamped = true;
    }
    switch (event->kind) {
    case POLLER_BYTES:
        if (rc->link == RING_POLLED && !rc->lost)
            received(rc, event);
        break;
    case POLLER_CLOSED:
        if (rc->link == RING_POLLED && !rc->lost)
            feed(rc, NULL, 0);
        break;
    case POLLER_GONE:
        assert(rc->link == RING_LEAVING);
        rc->link = RING_NONE;
        if (rc->reconnect)
            submit_job(rc);
        rc->reconnect = false;
        break;
    }
}

// ---- the loop

static void take_mail(struct ring_worker *w)
{
    struct connector_job *job = atomic_exchange_explicit(&w->mail, NULL, memory_order_acquire);

    for (struct connector_job *next; job; job = next) {
        next = job->next;
        connected(job->owner);
    }
}

// A request that does not end is cancelled; then its socket is shut down, which ends it for us; and
// a connection attempt that does not return is left to itself.
static void press_on(struct ring_client *rc, int press)
{
    struct ring_worker *w = rc->worker;

    if (rc->ended)
        return;
    if (rc->link == RING_POLLED && rc->out) {
        if (press == RING_CANCEL)
            db_cancel(rc->session);
        else
            shutdown(rc->wire->fd, SHUT_RDWR);
    } else if (rc->link == RING_CONNECTING && press == RING_ABANDON) {
        client_abandon(&rc->client, w->now_ns);
        rc->is_abandoned = true;
        w->n_abandoned++;
        end_client(rc);
    }
}

// The end or the cut was moved, or what hangs is to be pressed.
static void heed_main(struct ring_worker *w)
{
    unsigned moves = atomic_load(&w->ring->moves);
    int press = atomic_exchange(&w->press, RING_GO_ON);

    if (moves != w->seen_moves)
        for (int i = 0; i < w->n; i++)
            if (w->timers.place[i] >= 0) {
                timers_clear(&w->timers, i);
                drive(&w->clients[i]);
            }
    w->seen_moves = moves;
    for (int i = 0; press != RING_GO_ON && i < w->n; i++)
        press_on(&w->clients[i], press);
    if (press == RING_ABANDON) {
        atomic_store(&w->pressed, true);
        gate_open(&w->ring->main);
    }
}

static void run_timers(struct ring_worker *w)
{
    int slot;

    while ((slot = timers_take(&w->timers, w->now_ns)) >= 0)
        drive(&w->clients[slot]);
}

// Until the next deadline; for a planned start a little less, and then without sleeping.
static void wait_for_events(struct ring_worker *w)
{
    const struct poller_ops *poller = w->poller->ops;
    int64_t until_ns = timers_first_ns(&w->timers);
    bool precise = until_ns != INT64_MAX && w->pacing.allowed_ns > 0 &&
                   w->clients[w->timers.heap[0]].client.precise;

    if (!precise) {
        poller->wait(w->poller, until_ns, on_event, w);
        return;
    }
    int64_t sleep_until_ns = until_ns - (int64_t)w->pacing.lead_ns;
    if (w->now_ns < sleep_until_ns) {
        poller->wait(w->poller, sleep_until_ns, on_event, w);
        int64_t woken_ns = clock_ns();
        if (woken_ns < sleep_until_ns || timers_first_ns(&w->timers) != until_ns)
            return;
        int64_t now = woken_ns;
        for (; now < until_ns; now = clock_ns())
            pacing_pause();
        pacing_learn(&w->pacing, woken_ns - sleep_until_ns, now - woken_ns);
        return;
    }
    poller->wait(w->poller, 0, on_event, w);
}

static void run(struct ring_worker *w)
{
    w->now_ns = clock_ns();
    for (int i = 0; i < w->n; i++)
        drive(&w->clients[i]);
    while (w->running > 0) {
        w->is_stamped = false;
        wait_for_events(w);
        w->now_ns = clock_ns();
        take_mail(w);
        heed_main(w);
        run_timers(w);
    }
}

// Lets the poller finish with sessions that are leaving, and closes all.
static void leave(struct ring_worker *w)
{
    int64_t give_up_ns = clock_ns() + 5 * NS_PER_S;

    for (int i = 0; i < w->n; i++) {
        struct ring_client *rc = &w->clients[i];
        rc->reconnect = false;
        if (rc->link == RING_POLLED)
            rc->link = poller_remove(w->poller, i) ? RING_NONE : RING_LEAVING;
    }
    for (int i = 0; i < w->n && clock_ns() < give_up_ns;) {
        if (w->clients[i].link == RING_LEAVING)
            w->poller->ops->wait(w->poller, clock_ns() + 10 * NS_PER_MS, on_event, w);
        else
            i++;
    }
}

// The sessions were opened before; from here on this thread alone touches them. All of them are
// with the kernel before the clock of the load runs: for 3000 that takes 75 ms with io_uring, 12
// with epoll, which would be latency of the first transactions.
static void adopt(struct ring_worker *w)
{
    for (int i = 0; i < w->n; i++) {
        struct ring_client *rc = &w->clients[i];
        assert(rc->link == RING_NONE && rc->wire);
        rc->lost = poller_add(w->poller, i, rc->wire->fd) < 0;
        rc->link = rc->lost ? RING_NONE : RING_POLLED;
    }
    w->poller->ops->wait(w->poller, 0, on_event, w);
}

static void begin(struct ring_worker *w)
{
    struct ring *ring = w->ring;

    pacing_init(&w->pacing, ring->shared->plan->rate_tps);
    for (int i = 0; i < w->n; i++)
        client_connected(&w->clients[i].client, ring->shared->start_ns);
    while (clock_ns() < ring->shared->start_ns)
        clock_sleep_until_ns(&clock_system, ring->shared->start_ns);
}

static void tell_ready(struct ring_worker *w, enum ring_ready ready)
{
    atomic_store(&w->ready, ready);
    gate_open(&w->ring->main);
}

// False when there will be no load after all.
static bool wait_for(struct ring *ring, const _Atomic bool *raised)
{
    uint32_t turn;

    while ((turn = gate_turn(&ring->start)), !atomic_load(raised) && !atomic_load(&ring->quit))
        gate_wait(&ring->start, turn, clock_ns() + NS_PER_S);
    return !atomic_load(&ring->quit);
}

// A batch thread does not push a server's process off its processor at each answer, but comes when
// that has to wait, and finds several answers: half as many switches on a machine that both share,
// and half again as many transactions (MariaDB, 16 clients, two cores). Not for planned starts,
// which must not be late by our own doing, and not against what the user has chosen (chrt).
static void let_servers_finish(const struct ring_worker *w)
{
    const struct plan *plan = w->ring->shared->plan;
    struct sched_param param = {0};

    if (w->n > 1 && plan->rate_tps <= 0 && plan->think_ns == 0 &&
        sched_getscheduler(0) == SCHED_OTHER)
        (void)sched_setscheduler(0, SCHED_BATCH, &param); // as before without
}

void *ring_worker_main(void *arg)
{
    struct ring_worker *w = arg;
    struct ring *ring = w->ring;

    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    let_servers_finish(w);
    bool made = ring->poller->create(&w->poller, w->n, &w->err) == 0;
    if (made)
        w->poller->soon = on_soon;
    tell_ready(w, made ? RING_MADE : RING_NOT_MADE);
    if (!made)
        return NULL;
    if (wait_for(ring, &ring->connected)) {
        adopt(w);
        tell_ready(w, RING_ADOPTED);
        if (wait_for(ring, &ring->started)) {
            begin(w);
            run(w);
        }
    }
    leave(w);
    ring->poller->destroy(w->poller);
    txlog_buffer_release(&w->log);
    recorder_close(&w->recorder);
    gate_open(&ring->main);
    return NULL;
}
