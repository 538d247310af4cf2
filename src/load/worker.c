// What a thread of the threads loop does: connect, wait for the start, drive its client.
#include "load/worker.h"

#include <assert.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"

#define CONNECT_TRIES    5 // before the load; a crowd of clients may overrun a listen queue
#define CONNECT_PAUSE_NS (100 * NS_PER_MS)

static int64_t now_ns(const struct worker *w)
{
    return clock_now_ns(w->threads->shared->plan->clock);
}

static void set_phase(struct worker *w, enum worker_phase phase)
{
    atomic_store(&w->phase, phase);
    gate_open(&w->threads->main);
}

// ---- calls

static void enter_call(struct worker *w)
{
    atomic_store_explicit(&w->place, WORKER_CALL, memory_order_release);
}

// Where the client was abandoned meanwhile, this thread must not go on: it stays here until the
// process ends.
static void leave_call(struct worker *w)
{
    int place = WORKER_CALL;

    if (atomic_compare_exchange_strong_explicit(&w->place, &place, WORKER_OWN, memory_order_acquire,
                                                memory_order_acquire))
        return;
    for (;;)
        pause();
}

static void swap_session(struct worker *w, struct db_session *session)
{
    pthread_mutex_lock(&w->lock);
    struct db_session *old = w->session;
    w->session = session;
    pthread_mutex_unlock(&w->lock);
    db_disconnect(old);
}

static enum db_class connect_session(struct worker *w)
{
    struct db_session *session = NULL;

    swap_session(w, NULL);
    enter_call(w);
    enum db_class class =
        db_connect(w->threads->shared->plan->target, w->client.id, &session, &w->result);
    leave_call(w);
    if (class == DB_OK)
        swap_session(w, session);
    return class;
}

static int64_t do_connect(struct worker *w)
{
    enum db_class class = connect_session(w);
    int64_t now = now_ns(w);

    if (class == DB_OK)
        client_connected(&w->client, now);
    else
        client_refused(&w->client, &w->result, now);
    return now;
}

static int64_t do_execute(struct worker *w)
{
    struct client *c = &w->client;
    const struct vm_step *step = &c->step;

    enter_call(w);
    client_sending(c, now_ns(w));
    db_execute(w->session, step->statement, step->params, step->want_row, &w->result);
    int64_t now = now_ns(w);
    leave_call(w);
    if (step->want_row && w->result.class == DB_OK) {
        int n = w->result.rows > 0 ? w->result.n_columns : 0;
        client_take_row(c, w->result.rows, n);
        for (int i = 0; i < n; i++)
            client_take_column(c, db_row_name(w->session, i), db_row_value(w->session, i));
    }
    client_answered(c, &w->result, now);
    return now;
}

static int64_t do_query(struct worker *w)
{
    enter_call(w);
    client_sending(&w->client, now_ns(w));
    db_query(w->session, w->client.query, false, &w->result);
    int64_t now = now_ns(w);
    leave_call(w);
    client_answered(&w->client, &w->result, now);
    return now;
}

// ---- waiting

static int64_t spin_until(struct worker *w, uint32_t turn, int64_t now, int64_t until_ns)
{
    while (now < until_ns && gate_turn(&w->threads->wake) == turn) {
        pacing_pause();
        now = now_ns(w);
    }
    return now;
}

// Waits for a planned start.
static int64_t wait_precisely(struct worker *w, uint32_t turn, int64_t now, int64_t until_ns)
{
    struct pacing *p = &w->pacing;
    int64_t sleep_until_ns = until_ns - (int64_t)p->lead_ns;

    if (now >= sleep_until_ns) // so soon that sleeping is out of the question
        return spin_until(w, turn, now, until_ns);
    gate_wait(&w->threads->wake, turn, sleep_until_ns);
    int64_t woken_ns = now_ns(w);
    if (woken_ns < sleep_until_ns)
        return woken_ns; // woken: let the client look
    now = spin_until(w, turn, woken_ns, until_ns);
    pacing_learn(p, woken_ns - sleep_until_ns, now - woken_ns);
    return now;
}

static int64_t wait_until(struct worker *w, uint32_t turn, int64_t until_ns, bool precise)
{
    const struct clock *clock = w->threads->shared->plan->clock;
    int64_t now = now_ns(w);

    if (clock != &clock_system) {
        clock_sleep_until_ns(clock, until_ns);
        return now_ns(w);
    }
    if (precise && w->pacing.allowed_ns > 0)
        return wait_precisely(w, turn, now, until_ns);
    if (now < until_ns)
        gate_wait(&w->threads->wake, turn, until_ns);
    return now_ns(w);
}

// ---- the thread

static void drive(struct worker *w)
{
    struct client *c = &w->client;
    int64_t now = now_ns(w);

    for (;;) {
        uint32_t turn = gate_turn(&w->threads->wake);
        switch (client_step(c, now)) {
        case ASK_EXECUTE:
            now = do_execute(w);
            break;
        case ASK_QUERY:
            now = do_query(w);
            break;
        case ASK_CONNECT:
            now = do_connect(w);
            break;
        case ASK_WAIT:
            now = wait_until(w, turn, c->until_ns, c->precise);
            break;
        case ASK_NEXT:
            if (txlog_wants_flush(&w->log)) {
                txlog_flush(&w->log);
                now = now_ns(w);
            }
            break;
        case ASK_END:
            return;
        case ASK_JOIN: // a pipeline keeps to loops that have a codec
        case ASK_END_BATCH:
        case ASK_FLUSH:
        case CLIENT_GO_ON:
            assert(!"an ask");
        }
    }
}

static bool connect_first(struct worker *w)
{
    struct threads *t = w->threads;
    enum db_class class = DB_OK;

    while (sem_wait(&t->connecting) < 0)
        ;
    for (int i = 0; i < CONNECT_TRIES && !atomic_load(&t->quit); i++) {
        if (i > 0)
            clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + i * CONNECT_PAUSE_NS);
        class = connect_session(w);
        // The very first tells at once that nobody is there.
        if (w->client.id == 0 || (class != DB_UNAVAILABLE && class != DB_LOST))
            break;
    }
    sem_post(&t->connecting);
    return class == DB_OK && w->session;
}

void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct threads *t = w->threads;
    uint32_t turn = gate_turn(&t->start);

    prctl(PR_SET_TIMERSLACK, 1UL); // ns; the standard is 50 us
    pacing_init(&w->pacing, t->shared->plan->rate_tps);
    if (!connect_first(w)) {
        set_phase(w, WORKER_REFUSED);
        return NULL;
    }
    client_connected(&w->client, now_ns(w));
    set_phase(w, WORKER_CONNECTED);
    while (!atomic_load(&t->started)) {
        gate_wait(&t->start, turn, INT64_MAX);
        turn = gate_turn(&t->start);
    }
    if (!atomic_load(&t->quit)) {
        while (now_ns(w) < t->shared->start_ns)
            clock_sleep_until_ns(t->shared->plan->clock, t->shared->start_ns);
        drive(w);
        recorder_close(&w->recorder);
        txlog_buffer_release(&w->log);
    }
    swap_session(w, NULL);
    atomic_fetch_sub(&t->running, 1);
    set_phase(w, WORKER_ENDED);
    return NULL;
}
