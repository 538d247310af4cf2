// The client's states: what it does next. How an answer is judged and a transaction counted is in
// client_outcome.c.
#include "load/client.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "load/client_internal.h"

#define RECONNECT_FIRST_NS (50 * NS_PER_MS)
#define RECONNECT_MAX_NS   (1 * NS_PER_S)

void client_init(struct client *c, int id, struct shared *shared, struct recorder *recorder,
                 struct txlog_buffer *log)
{
    uint64_t seed = shared->plan->seed;

    *c = (struct client){
        .shared = shared,
        .recorder = recorder,
        .log = log,
        .vm = vm_new(shared->workload, id, seed),
        .id = id,
        .state = CLIENT_CONNECTING,
    };
    if (plan_pipelines(shared->plan))
        c->pipeline = mem_calloc(1, sizeof(*c->pipeline));
    rng_init(&c->choice, seed, (uint64_t)id, RNG_CHOICE);
    rng_init(&c->think, seed, (uint64_t)id, RNG_THINK);
    rng_init(&c->backoff, seed, (uint64_t)id, RNG_BACKOFF);
}

void client_release(struct client *c)
{
    vm_free(c->vm);
    free(c->pipeline);
    c->vm = NULL;
    c->pipeline = NULL;
}

static bool is_over(const struct client *c, int64_t now_ns)
{
    return now_ns >= shared_end_ns(c->shared);
}

static bool is_cut(const struct client *c, int64_t now_ns)
{
    return now_ns >= shared_cut_ns(c->shared);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static enum client_ask go(struct client *c, enum client_state state)
{
    c->state = state;
    return CLIENT_GO_ON;
}

static enum client_ask ask_wait(struct client *c, int64_t until_ns, bool precise)
{
    c->until_ns = until_ns;
    c->precise = precise;
    return ASK_WAIT;
}

static enum client_ask end(struct client *c, enum client_end why, int64_t now_ns)
{
    assert(c->end == CLIENT_RUNS && why != CLIENT_RUNS);
    c->state = CLIENT_ENDED;
    c->end = why;
    c->ended_ns = now_ns;
    outage_leave(&c->shared->outage, c->has_session, now_ns);
    return ASK_END;
}

static enum client_ask give_up(struct client *c, enum db_class class, int64_t now_ns)
{
    c->give_up_class = class;
    return end(c, CLIENT_GAVE_UP, now_ns);
}

// The session is not used any more: closing it rolls back what is open.
enum client_ask client_cut_short(struct client *c, int64_t now_ns)
{
    c->counts.in_flight++;
    return end(c, CLIENT_TIME_IS_UP, now_ns);
}

static int choose_script(struct client *c)
{
    const struct workload *w = c->shared->workload;
    int last = 0;

    if (w->n_scripts == 1)
        return 0;
    double x = rng_double(&c->choice) * c->shared->weight_total;
    for (int i = 0; i < w->n_scripts; i++) {
        if (w->scripts[i].weight <= 0)
            continue;
        last = i;
        if (x < w->scripts[i].weight)
            return i;
        x -= w->scripts[i].weight;
    }
    return last; // x was within rounding of the total
}

static void begin_try(struct client *c)
{
    c->may_be_committed = c->is_committed = false;
    c->trouble = DB_OK;
    if (c->pipeline)
        pipeline_clear(c->pipeline);
    c->state = CLIENT_SCRIPT;
}

static enum client_ask begin(struct client *c, int64_t planned_ns, int64_t now_ns)
{
    assert(c->has_session && !c->in_transaction && planned_ns <= now_ns);
    c->script = choose_script(c);
    c->planned_ns = planned_ns;
    c->start_ns = now_ns;
    c->tries = 1;
    c->number = ++c->counts.started;
    vm_begin(c->vm, c->script);
    begin_try(c);
    return CLIENT_GO_ON;
}

// ---- a function per state

static enum client_ask state_ready(struct client *c, int64_t now_ns)
{
    const struct plan *plan = c->shared->plan;

    if (is_over(c, now_ns))
        return end(c, CLIENT_TIME_IS_UP, now_ns);
    if (plan->transactions > 0 && c->counts.started >= plan->transactions)
        return end(c, CLIENT_HAS_FINISHED, now_ns);
    if (!c->shared->arrivals)
        return begin(c, now_ns, now_ns);
    c->planned_ns = arrivals_take(c->shared->arrivals);
    return go(c, CLIENT_ARRIVAL);
}

// An arrival planned before the end is served even if this idle client wakes up just after it.
static enum client_ask state_arrival(struct client *c, int64_t now_ns)
{
    int64_t end_ns = shared_end_ns(c->shared);

    if (c->planned_ns >= end_ns)
        return now_ns >= end_ns ? end(c, CLIENT_TIME_IS_UP, now_ns) : ask_wait(c, end_ns, false);
    if (now_ns < c->planned_ns)
        return ask_wait(c, c->planned_ns, true);
    return begin(c, c->planned_ns, now_ns);
}

enum client_ask client_heed(struct client *c, enum vm_want want, int64_t now_ns)
{
    switch (want) {
    case VM_SQL:
        if (is_cut(c, now_ns))
            return client_cut_short(c, now_ns);
        c->is_durable = client_is_durable(c, c->step.statement->kind);
        c->may_be_committed |= c->is_durable;
        c->counts.statements++;
        c->state = CLIENT_ANSWER;
        return ASK_EXECUTE;
    case VM_SLEEP:
        c->wake_ns = now_ns + c->step.sleep_ns;
        return go(c, CLIENT_SLEEP);
    case VM_END:
        client_script_ended(c, now_ns);
        return CLIENT_GO_ON;
    case VM_ERROR:
        client_script_failed(c, c->step.error, now_ns);
        return CLIENT_GO_ON;
    case VM_PIPELINE: // for pipeline.c
        break;
    }
    assert(!"a want of the virtual machine");
    return CLIENT_GO_ON;
}

static enum client_ask state_script(struct client *c, int64_t now_ns)
{
    enum vm_want want = vm_run(c->vm, &c->step);

    return c->pipeline ? client_pipe(c, want, now_ns) : client_heed(c, want, now_ns);
}

static enum client_ask state_sleep(struct client *c, int64_t now_ns)
{
    if (is_cut(c, now_ns))
        return client_cut_short(c, now_ns);
    if (now_ns < c->wake_ns)
        return ask_wait(c, earlier(c->wake_ns, shared_cut_ns(c->shared)), false);
    return go(c, CLIENT_SCRIPT);
}

static enum client_ask state_undo(struct client *c, int64_t now_ns)
{
    if (is_cut(c, now_ns)) { // closing the session does it
        client_count(c, TXLOG_FAILED, now_ns);
        return CLIENT_GO_ON;
    }
    c->query = c->locked ? "UNLOCK TABLES" : "ROLLBACK";
    c->counts.statements++;
    c->state = CLIENT_UNDO_ANSWER;
    return ASK_QUERY;
}

static enum client_ask state_backoff(struct client *c, int64_t now_ns)
{
    if (is_over(c, now_ns)) {
        client_count(c, TXLOG_FAILED, now_ns);
        return CLIENT_GO_ON;
    }
    if (now_ns < c->wake_ns)
        return ask_wait(c, earlier(c->wake_ns, shared_end_ns(c->shared)), false);
    client_count_retry(c);
    vm_retry(c->vm);
    begin_try(c);
    return CLIENT_GO_ON;
}

static enum client_ask state_after(struct client *c, int64_t now_ns)
{
    int64_t think_ns = c->shared->plan->think_ns;

    if (client_is_hopeless(c))
        return give_up(c, c->trouble, now_ns);
    if (!c->has_session) {
        c->state = CLIENT_CONNECT;
    } else if (think_ns > 0) {
        c->wake_ns = now_ns + (int64_t)rng_exponential(&c->think, (double)think_ns);
        c->state = CLIENT_THINK;
    } else {
        c->state = CLIENT_READY;
    }
    return ASK_NEXT;
}

static enum client_ask state_think(struct client *c, int64_t now_ns)
{
    if (is_over(c, now_ns) || now_ns >= c->wake_ns)
        return go(c, CLIENT_READY);
    return ask_wait(c, earlier(c->wake_ns, shared_end_ns(c->shared)), false);
}

static enum client_ask state_connect(struct client *c, int64_t now_ns)
{
    assert(!c->has_session && c->had_session);
    if (is_over(c, now_ns))
        return end(c, CLIENT_TIME_IS_UP, now_ns);
    if (c->shared->plan->reconnect_for_ns == 0)
        return give_up(c, DB_LOST, now_ns);
    c->counts.reconnect_attempts++;
    c->state = CLIENT_CONNECTING;
    return ASK_CONNECT;
}

static enum client_ask state_connect_wait(struct client *c, int64_t now_ns)
{
    if (is_over(c, now_ns) || now_ns >= c->wake_ns)
        return go(c, CLIENT_CONNECT);
    return ask_wait(c, earlier(c->wake_ns, shared_end_ns(c->shared)), false);
}

static enum client_ask state_ended(struct client *c, int64_t now_ns)
{
    (void)c;
    (void)now_ns;
    return ASK_END;
}

static enum client_ask state_reported(struct client *c, int64_t now_ns)
{
    (void)c;
    (void)now_ns;
    assert(!"client_step before the report");
    return ASK_END;
}

typedef enum client_ask state_fn(struct client *c, int64_t now_ns);

static state_fn *const states[CLIENT_STATES] = {
    [CLIENT_READY] = state_ready,         [CLIENT_ARRIVAL] = state_arrival,
    [CLIENT_SCRIPT] = state_script,       [CLIENT_ANSWER] = state_reported,
    [CLIENT_FLUSH] = client_state_flush,  [CLIENT_PIPELINE] = state_reported,
    [CLIENT_HEED] = client_state_heed,    [CLIENT_SLEEP] = state_sleep,
    [CLIENT_UNDO] = state_undo,           [CLIENT_UNDO_ANSWER] = state_reported,
    [CLIENT_BACKOFF] = state_backoff,     [CLIENT_AFTER] = state_after,
    [CLIENT_THINK] = state_think,         [CLIENT_CONNECT] = state_connect,
    [CLIENT_CONNECTING] = state_reported, [CLIENT_CONNECT_WAIT] = state_connect_wait,
    [CLIENT_ENDED] = state_ended,
};

enum client_ask client_step(struct client *c, int64_t now_ns)
{
    enum client_ask ask;

    do
        ask = states[c->state](c, now_ns);
    while (ask == CLIENT_GO_ON);
    return ask;
}

// ---- connecting

void client_connected(struct client *c, int64_t now_ns)
{
    assert(c->state == CLIENT_CONNECTING && !c->has_session);
    if (c->had_session) {
        c->counts.reconnects++;
        outage_up(&c->shared->outage, now_ns);
    }
    c->has_session = c->had_session = true;
    c->in_transaction = c->locked = false;
    c->state = CLIENT_READY;
}

void client_session_lost(struct client *c, int64_t now_ns)
{
    assert(c->has_session);
    c->has_session = c->in_transaction = c->locked = false;
    c->lost_ns = now_ns;
    c->backoff_ns = RECONNECT_FIRST_NS;
    outage_down(&c->shared->outage, now_ns);
}

// The pauses double up to a second, each cut at random to between half and all of its length, so
// that clients that lost their sessions together do not come back in step.
void client_refused(struct client *c, const struct db_result *result, int64_t now_ns)
{
    int64_t give_up_ns = c->lost_ns + c->shared->plan->reconnect_for_ns;

    assert(c->state == CLIENT_CONNECTING && c->had_session && result->class != DB_OK);
    client_count_error(c, result->class, NULL, result, now_ns);
    if (now_ns >= give_up_ns) {
        (void)give_up(c, result->class, now_ns);
        return;
    }
    int64_t pause_ns = rng_range(&c->backoff, c->backoff_ns / 2, c->backoff_ns);
    c->backoff_ns = earlier(2 * c->backoff_ns, RECONNECT_MAX_NS);
    c->wake_ns = earlier(now_ns + pause_ns, give_up_ns);
    c->state = CLIENT_CONNECT_WAIT;
}

void client_abandon(struct client *c, int64_t now_ns)
{
    if (c->state == CLIENT_ENDED)
        return;
    if (c->state == CLIENT_UNDO_ANSWER) {
        client_count(c, TXLOG_FAILED, now_ns);
        (void)end(c, CLIENT_TIME_IS_UP, now_ns);
    } else if (c->state == CLIENT_ANSWER || c->state == CLIENT_PIPELINE) {
        (void)client_cut_short(c, now_ns);
    } else {
        (void)end(c, CLIENT_TIME_IS_UP, now_ns);
    }
}
