// One client: a state machine that never blocks and knows no sockets, threads or clocks.
//
// A loop drives it. client_step(now) runs it until it wants something of the world and returns what
// (enum client_ask); the loop does that, and reports with client_connected, client_refused or
// client_answered. A blocking loop does it at once (load/threads.h); an event loop may drive
// thousands of clients in one thread. Times are those the loop passes in; they never go back for a
// client. Between an ask that expects a report and the report, client_step must not be called.
// After ASK_WAIT it may be called at any time: before until_ns it asks the same again. It must be
// called when the end or the cut has been moved.
//
// Outcomes of a transaction (one pass through a script):
//   done       the script came to its end, every statement was answered well, none is open
//   failed     certainly not committed as a whole: an error, max_tries used up, or a connection
//              lost before anything could have been committed
//   unknown    the connection was lost after a COMMIT, or a write that commits by itself, was sent
//              (in a pipeline: with everything before it)
//   in_flight  given up because the run had to end
// A try that failed by serialization, deadlock or a lock wait is repeated with the same random
// values (vm_retry), unless a part of it has been committed already.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "load/pipeline.h"
#include "load/recorder.h"
#include "load/shared.h"
#include "load/txlog.h"
#include "workload/vm.h"

enum client_state {
    CLIENT_READY,    // between transactions -> ARRIVAL, SCRIPT, ENDED
    CLIENT_ARRIVAL,  // open loop: waits for the planned start it took -> SCRIPT, ENDED
    CLIENT_SCRIPT,   // the script computes -> ANSWER, FLUSH, PIPELINE, SLEEP, UNDO, AFTER, ENDED
                     // (cut)
    CLIENT_ANSWER,   // a statement is with the server; left by client_answered -> SCRIPT,
                     // UNDO, BACKOFF, AFTER
    CLIENT_FLUSH,    // statements are joined (load/pipeline.h) and go out -> PIPELINE
    CLIENT_PIPELINE, // they are with the server; left by client_answered when all are answered, or
                     // the session is lost -> HEED, SCRIPT, UNDO, BACKOFF, AFTER, READY
    CLIENT_HEED,     // what the script wanted before they went out -> as SCRIPT
    CLIENT_SLEEP,    // \sleep in a transaction -> SCRIPT, ENDED (cut)
    CLIENT_UNDO,     // a try failed inside a transaction: ROLLBACK goes out -> UNDO_ANSWER, AFTER
    CLIENT_UNDO_ANSWER,  // left by client_answered -> BACKOFF, AFTER
    CLIENT_BACKOFF,      // a short pause before the same transaction's next try -> SCRIPT, AFTER
    CLIENT_AFTER,        // a transaction was counted -> THINK, READY, CONNECT, ENDED (gave up)
    CLIENT_THINK,        // -> READY, ENDED
    CLIENT_CONNECT,      // has no session -> CONNECTING, ENDED
    CLIENT_CONNECTING,   // left by client_connected -> READY, client_refused -> CONNECT_WAIT, ENDED
    CLIENT_CONNECT_WAIT, // -> CONNECT, ENDED
    CLIENT_ENDED,
    CLIENT_STATES
};

enum client_ask {
    CLIENT_GO_ON, // within the machine: not returned by client_step
    ASK_CONNECT,  // close the session if there is one, open one; report connected or refused
    ASK_EXECUTE,  // call client_sending, execute step.statement; report answered
    ASK_QUERY,    // call client_sending, run the text `query`; report answered
    // Where there is a pipeline, which needs a wire codec:
    ASK_JOIN,      // encode step.statement as a part of a batch, and step again
    ASK_END_BATCH, // encode the batch's end, and step again
    ASK_FLUSH,     // call client_sending, send what was joined; report answered for each
    ASK_WAIT,      // nothing to do before until_ns
    ASK_NEXT,      // a transaction was counted: a moment for housekeeping, then step again
    ASK_END,       // nothing more, now or later; the session may be closed
};

// What ASK_EXECUTE encodes follows what was joined (client_is_joined), ends the batch, and goes out
// with it. As long as client_awaits says so after client_answered, more answers are due: of those
// that the server left out there are none. A statement that cannot be joined is reported at once,
// as a lost session, and what was joined before is dropped.

enum client_end {
    CLIENT_RUNS,
    CLIENT_TIME_IS_UP,   // the end of the load
    CLIENT_HAS_FINISHED, // its number of transactions
    CLIENT_GAVE_UP,      // no session for too long, or nothing but errors; give_up_class says why
};

struct client_counts {
    int64_t started;
    int64_t failed;
    int64_t unknown;
    int64_t in_flight;
    int64_t retried;
    int64_t statements; // sent
    int64_t reconnects;
    int64_t reconnect_attempts;
    int64_t errors[DB_CLASS_COUNT];
};

struct client {
    struct shared *shared;
    struct recorder *recorder;
    struct txlog_buffer *log;
    struct vm *vm;
    struct pipeline *pipeline; // NULL: every statement is answered before the next one
    int id;
    enum client_state state;

    // For the loop, valid while it does what was asked.
    struct vm_step step; // ASK_EXECUTE: statement, params, want_row
    const char *query;   // ASK_QUERY
    int64_t until_ns;    // ASK_WAIT
    bool precise;        // ASK_WAIT: lateness would be measured as latency

    // The present transaction.
    int script;
    int tries;
    int64_t number; // from 1
    int64_t planned_ns, start_ns, sent_ns;
    int64_t wake_ns; // end of a sleep or pause, whatever becomes of the run meanwhile
    bool in_transaction;
    bool locked;           // LOCK TABLES stands, where there are no transactions
    bool is_durable;       // the statement that is out commits something if it succeeds
    bool may_be_committed; // such a statement was sent in this pass
    bool is_committed;     // such a statement succeeded in this pass
    enum db_class trouble; // why the present try failed

    // The session.
    bool has_session, had_session;
    int64_t lost_ns;    // when it was lost
    int64_t backoff_ns; // present length of the pause between attempts

    bool succeeded_once;
    int failed_in_row;
    enum client_end end;
    enum db_class give_up_class;
    int64_t ended_ns;
    struct rng choice, think, backoff;
    struct client_counts counts;

    // Read by the main thread while the load runs; written by the client's thread alone.
    _Atomic int64_t done, errors, retries;
};

// The client begins in CLIENT_CONNECTING: the loop connects it before the start and reports. The
// pointers stay the caller's.
void client_init(struct client *c, int id, struct shared *shared, struct recorder *recorder,
                 struct txlog_buffer *log);
void client_release(struct client *c);

enum client_ask client_step(struct client *c, int64_t now_ns);

// Just before a statement goes out: its own time counts from here.
static inline void client_sending(struct client *c, int64_t now_ns)
{
    c->sent_ns = now_ns;
}

// The request asked for belongs to a batch that others have begun, of which nothing was sent.
static inline bool client_is_joined(const struct client *c)
{
    return c->pipeline && c->pipeline->n > 1;
}

static inline bool client_awaits(const struct client *c)
{
    return c->state == CLIENT_PIPELINE;
}

// Whether the answer that comes next, if it is good, is that to a statement with step.want_row: in
// a pipeline only the last one can be.
static inline bool client_wants_row(const struct client *c)
{
    return c->step.want_row &&
           (c->state == CLIENT_ANSWER || (c->state == CLIENT_PIPELINE && !c->pipeline->has_want &&
                                          c->pipeline->next == c->pipeline->n - 1));
}

// The row of such an answer: before client_answered.
void client_take_row(struct client *c, int64_t rows, int n_columns);
void client_take_column(struct client *c, const char *name, struct db_value value);

void client_answered(struct client *c, const struct db_result *result, int64_t now_ns);
void client_connected(struct client *c, int64_t now_ns);
void client_refused(struct client *c, const struct db_result *result, int64_t now_ns);

// The loop will never report on what was asked (a call that does not return): the transaction is
// counted as in flight. From whichever thread, when nobody else touches the client any more.
void client_abandon(struct client *c, int64_t now_ns);
