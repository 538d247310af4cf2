// What an answer means for the client's transaction, and how a transaction is counted.
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "load/client_internal.h"

#define HOPELESS_AFTER      10 // failed transactions in a row
#define RETRY_PAUSE_NS      (250 * NS_PER_US)
#define RETRY_PAUSE_MAX_LOG 6 // up to 16 ms

bool client_is_durable(const struct client *c, enum db_kind kind)
{
    if (kind == DB_KIND_COMMIT)
        return true;
    return kind == DB_KIND_WRITE &&
           (!c->in_transaction || !(c->shared->caps & DB_CAP_TRANSACTIONS));
}

bool client_is_hopeless(const struct client *c)
{
    return c->failed_in_row >= HOPELESS_AFTER && (!c->succeeded_once || c->trouble == DB_FULL);
}

// ---- counting

static void add(_Atomic int64_t *counter)
{
    // Only this thread writes it: no locked instruction is needed.
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static void count_done(struct client *c, int64_t now_ns)
{
    const struct shared *shared = c->shared;
    struct result_slow slow = {
        .client = c->id,
        .number = c->number,
        .end_ns = now_ns - shared->start_ns,
        .latency_ns = now_ns - c->planned_ns,
        .script = c->script,
    };

    recorder_done(c->recorder, now_ns, shared->arrivals ? now_ns - c->start_ns : -1, &slow);
    add(&c->done);
    c->succeeded_once = true;
    c->failed_in_row = 0;
}

void client_count(struct client *c, enum txlog_outcome outcome, int64_t now_ns)
{
    assert(c->planned_ns <= c->start_ns && c->start_ns <= now_ns && c->tries >= 1);
    switch (outcome) {
    case TXLOG_DONE:
        count_done(c, now_ns);
        break;
    case TXLOG_FAILED:
        c->counts.failed++;
        // Contention and lost connections are no sign that it will never work.
        if (!db_class_is_retry(c->trouble) && !db_class_is_lost(c->trouble))
            c->failed_in_row++;
        break;
    case TXLOG_UNKNOWN:
        c->counts.unknown++;
        break;
    }
    if (c->tries > 1)
        c->counts.retried++;
    if (c->log)
        txlog_add(c->log, &(struct txlog_line){
                              .client = c->id,
                              .number = c->number,
                              .outcome = outcome,
                              .script = c->script,
                              .latency_ns = now_ns - c->planned_ns,
                              .end_ns = now_ns,
                              .lag_ns = c->start_ns - c->planned_ns,
                              .retries = c->tries - 1,
                          });
    c->state = CLIENT_AFTER;
}

void client_count_retry(struct client *c)
{
    c->tries++;
    add(&c->retries);
}

void client_count_error(struct client *c, enum db_class class, const struct statement_origin *where,
                        const struct db_result *result, int64_t now_ns)
{
    assert(class > DB_OK && class < DB_CLASS_COUNT);
    c->counts.errors[class]++;
    add(&c->errors);
    recorder_error(c->recorder, now_ns);
    if (result)
        shared_reason(c->shared, class, where, result);
}

// ---- a failed try

// After the try has been undone, or needs no undoing: again, or never.
static void retry_or_fail(struct client *c, int64_t now_ns)
{
    const struct shared *shared = c->shared;

    assert(c->trouble != DB_OK);
    // Repeating what was committed in part would do it twice.
    if (!db_class_is_retry(c->trouble) || c->is_committed || c->tries >= shared->plan->max_tries ||
        now_ns >= shared_end_ns(shared)) {
        client_count(c, TXLOG_FAILED, now_ns);
        return;
    }
    int log2 = c->tries - 1 < RETRY_PAUSE_MAX_LOG ? c->tries - 1 : RETRY_PAUSE_MAX_LOG;
    c->wake_ns = now_ns + rng_range(&c->backoff, 0, RETRY_PAUSE_NS << log2);
    c->state = CLIENT_BACKOFF;
}

void client_fail_try(struct client *c, enum db_class class, int64_t now_ns)
{
    c->trouble = class;
    if (c->in_transaction || c->locked)
        c->state = CLIENT_UNDO;
    else
        retry_or_fail(c, now_ns);
}

void client_script_failed(struct client *c, const char *error, int64_t now_ns)
{
    client_count_error(c, DB_OTHER, NULL, NULL, now_ns);
    shared_reason_text(c->shared, DB_OTHER, error);
    client_fail_try(c, DB_OTHER, now_ns);
}

void client_script_ended(struct client *c, int64_t now_ns)
{
    if (!c->in_transaction) {
        client_count(c, TXLOG_DONE, now_ns);
        return;
    }
    client_count_error(c, DB_OTHER, NULL, NULL, now_ns);
    shared_reason_text(c->shared, DB_OTHER, "the script ends inside a transaction: add COMMIT");
    client_fail_try(c, DB_OTHER, now_ns);
}

// ---- answers

// CLIENT_READY ends the client.
void client_answer_cut(struct client *c, enum db_class class, int64_t now_ns)
{
    assert(now_ns >= shared_end_ns(c->shared));
    if (db_class_is_lost(class))
        client_session_lost(c, now_ns);
    c->counts.in_flight++;
    c->state = CLIENT_READY;
}

static void answer_to_undo(struct client *c, const struct db_result *result, int64_t now_ns)
{
    if (result->class == DB_OK) {
        c->in_transaction = c->locked = false;
        retry_or_fail(c, now_ns);
        return;
    }
    // Whatever is wrong with the session, a new one is sound. The server had answered with an
    // error before, so nothing was committed.
    client_count_error(c, result->class, NULL, result, now_ns);
    client_session_lost(c, now_ns);
    client_count(c, TXLOG_FAILED, now_ns);
}

void client_answer_lost(struct client *c, int statement, const struct db_result *result,
                        int64_t now_ns)
{
    assert(db_class_is_lost(result->class));
    if (now_ns >= shared_cut_ns(c->shared)) {
        client_answer_cut(c, result->class, now_ns);
        return;
    }
    client_count_error(c, result->class, &c->shared->workload->origins[statement], result, now_ns);
    c->trouble = result->class;
    client_session_lost(c, now_ns);
    client_count(c, c->may_be_committed ? TXLOG_UNKNOWN : TXLOG_FAILED, now_ns);
}

static void answer_error(struct client *c, const struct db_result *result, int64_t now_ns)
{
    const struct workload *w = c->shared->workload;
    int statement = c->step.statement->index;

    if (db_class_is_lost(result->class)) {
        client_answer_lost(c, statement, result, now_ns);
        return;
    }
    if (now_ns >= shared_cut_ns(c->shared) && result->class == DB_CANCELLED) {
        client_answer_cut(c, result->class, now_ns);
        return;
    }
    client_count_error(c, result->class, &w->origins[statement], result, now_ns);
    c->in_transaction = result->in_transaction;
    client_fail_try(c, result->class, now_ns);
}

void client_take_row(struct client *c, int64_t rows, int n_columns)
{
    assert(client_wants_row(c));
    (void)vm_take_row(c->vm, rows, n_columns); // the next vm_run tells what is wrong
}

void client_take_column(struct client *c, const char *name, struct db_value value)
{
    assert(client_wants_row(c));
    vm_take_column(c->vm, name, value);
}

void client_record_statement(struct client *c, int statement, const struct db_result *result,
                             int64_t now_ns)
{
    assert(now_ns >= c->sent_ns);
    recorder_statement(c->recorder, now_ns,
                       &(struct recorder_statement){
                           .index = statement,
                           .ns = now_ns - c->sent_ns,
                           .rows = result->rows,
                           .lock_wait_ns = result->lock_wait_ns,
                           .given_ns = result->given_delay_ns,
                           .failed = result->class != DB_OK,
                       });
}

void client_answered(struct client *c, const struct db_result *result, int64_t now_ns)
{
    if (c->state == CLIENT_UNDO_ANSWER) {
        answer_to_undo(c, result, now_ns);
        return;
    }
    if (c->pipeline && c->pipeline->n > 0) {
        client_pipe_answered(c, result, now_ns);
        return;
    }
    assert(c->state == CLIENT_ANSWER);
    enum db_kind kind = c->step.statement->kind;
    client_record_statement(c, c->step.statement->index, result, now_ns);
    if (result->class != DB_OK) {
        answer_error(c, result, now_ns);
        return;
    }
    c->is_committed |= c->is_durable;
    c->in_transaction = result->in_transaction;
    if ((c->shared->caps & (DB_CAP_TRANSACTIONS | DB_CAP_LOCK_TABLES)) == DB_CAP_LOCK_TABLES) {
        if (kind == DB_KIND_BEGIN)
            c->locked = true;
        else if (kind == DB_KIND_COMMIT)
            c->locked = false;
    }
    c->state = CLIENT_SCRIPT;
}
