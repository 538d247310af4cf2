// The stub: a server that speaks PostgreSQL's and MySQL's protocols and has an answer to everything
// without having a database. One thread, one epoll; made to cost as little as it can per answer, so
// that a client's cost can be measured against it, and to do wrong on request, so that a client can
// be tested.
//
//     main.c      options, the sockets to listen on, signals, the record
//     loop.c      epoll, sessions, sending, delays, the stall
//     postgres.c  mysql.c   the protocols: bytes in, bytes out; *_plan.c: an answer made into bytes
//     sql.c       what a statement is answered with
//     faults.c    delays, errors, losses
//
// Life of one statement: bytes are received into one buffer that all sessions share; the protocol
// takes whole messages from it and appends answers to the session's out; what is left of a message
// is kept in the session's in. A statement that is delayed holds the session: nothing more of its
// input is taken until it is due. What was appended is sent when the input is used up.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "faults.h"
#include "sql.h"

#define MESSAGE_MAX (16 << 20) // longer ones end the session

struct stub;
struct session;

struct protocol {
    const char *name;
    size_t size; // of its session, which begins with a struct session; zeroed

    // A new session: sets up the protocol's part of it and says what there is to say.
    void (*open)(struct session *s);

    // Takes whole messages and appends answers to s->out. Returns the number of bytes taken; stops
    // after a statement that holds the session, and when s->ending. -1: this is not our protocol.
    ssize_t (*take)(struct session *s, const char *bytes, size_t n);

    // The statement that held the session is due: answers it.
    void (*resume)(struct session *s);

    void (*release)(struct session *s); // only after open
};

extern const struct protocol protocol_postgres, protocol_mysql;

struct session {
    struct stub *stub;
    const struct protocol *protocol;
    int fd;
    uint32_t number; // what the client calls it, to cancel
    bool has_begun;  // authenticated: counts as a session
    bool send_now;   // the client waits for what stands in out
    bool want_write; // the socket is full
    bool ending;     // goes when out is sent
    bool gone;       // closed; freed at the end of the loop's turn
    struct str in;   // of a message that has not come whole; or input after a held statement
    struct str out;
    size_t n_sent; // of out

    // A statement that is delayed.
    int heap_index; // -1: none
    int64_t due_ns;
    enum fate fate;
    bool cancelled;
    int64_t start_ns; // of the statement: it was there, or the one before it was answered

    struct session *torn_next; // --tear: in the list of those with bytes to send
    bool is_torn;
    struct session *prev, *next;
};

// Shared with bench/run through a file (--counters); 64-bit words in this order.
struct counters {
    uint64_t statements; // of the load
    uint64_t sessions;   // now
    uint64_t sessions_total;
    uint64_t rise_ns;  // when the second session at a time came, the last time that it did
    uint64_t ready_ns; // when the last session that came was ready
};

struct stub {
    int64_t scale;
    bool tear;
    struct faults faults;
    struct counters *counters;
    int64_t first_ns; // of the first statement of the load; 0: not yet
    int64_t reads;    // pieces of input that came

    int epoll;
    int64_t woken_ns; // from waiting: what is read now had come by then
    uint32_t next_number;
    struct session *sessions; // list
    struct session *gone;     // list, by next
    struct session *torn;     // list, by torn_next
    struct session **heap;    // by due_ns
    int n_heap, cap_heap;
    char *buffer;                 // what was received
    struct session *listeners[2]; // sessions without a number
    int n_listeners;
    volatile sig_atomic_t *stop;
};

// Sets up what the caller has not; before any other call. stub_release is due also after a failure.
int stub_init(struct stub *stub, struct err *err);

// A listening socket at a path, or at a port of 127.0.0.1 (all digits; 0: any). ret_port is that
// port, 0 for a path.
int stub_listen(struct stub *stub, const char *where, const struct protocol *protocol,
                int *ret_port, struct err *err);

// Serves until *stop, which a signal raises that only these let through.
void stub_serve(struct stub *stub, const sigset_t *signals);
void stub_release(struct stub *stub);

// ---- for the protocols

// A statement of the load begins: counted, and its fate drawn. True: it holds the session, so
// return to the loop; resume is called when it is due, which asks for s->fate. False: answer as
// s->fate says now. No server lets a ROLLBACK fail, so that is not failed on purpose either.
bool session_begin(struct session *s, bool is_setup, enum sql_transaction transaction);

// s->fate is a drop: appends what is to be sent of the answer and ends the session. out_before: the
// length of out before the answer.
void session_drop(struct session *s, size_t out_before);

// The session counts from here on (it has authenticated).
void session_ready(struct session *s);

// Ends the delay of a session of this number (a client asks for that); it is answered with
// cancelled set. end: closes it instead.
void stub_cancel(struct stub *stub, const struct protocol *protocol, uint32_t number, bool end);
