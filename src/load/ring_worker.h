// One worker thread of the ring: a poller, its share of the clients, and what they record. Used by
// ring.c and ring_worker.c.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "load/client.h"
#include "load/connector.h"
#include "load/gate.h"
#include "load/loop.h"
#include "load/pacing.h"
#include "load/poller.h"
#include "load/recorder.h"
#include "load/timers.h"
#include "load/txlog.h"

enum ring_link {     // of a client's session to the poller and the connector
    RING_NONE,       // no session, or one that nobody polls yet
    RING_POLLED,     // the poller receives
    RING_LEAVING,    // removed from the poller, which is not done with it
    RING_CONNECTING, // its job is with the connector
};

struct ring_client {
    struct client client;
    struct ring_worker *worker;
    enum ring_link link;
    bool out;       // a request is with the server
    bool lost;      // the session broke while nothing was out: the next request fails at once
    bool reconnect; // RING_LEAVING: connect anew when the poller lets go
    bool ended;
    bool is_abandoned;
    struct db_session *session;
    struct db_wire *wire;
    struct connector_job job;
    struct db_result result;
};

enum ring_ready { RING_NOT_MADE = -1, RING_UNMADE, RING_MADE, RING_ADOPTED }; // its poller

enum ring_press { RING_GO_ON, RING_CANCEL, RING_ABANDON };

struct ring_worker {
    struct ring *ring;
    pthread_t thread;
    bool has_thread;
    int n;                       // clients
    struct ring_client *clients; // the slot is the index
    struct poller *poller;
    struct timers timers;
    struct pacing pacing;
    struct recorder recorder;
    struct txlog_buffer log;
    struct str out, plain, sealed; // scratch
    int ahead[2];                  // slots of which on_soon was told last
    int running;                   // clients that have not ended
    int64_t now_ns;                // of the present wake-up
    bool is_stamped;               // now_ns was taken in this wake-up
    unsigned seen_moves;           // ring->moves acted upon
    struct err err;                // why the poller could not be made
    _Atomic int ready;             // enum ring_ready
    _Atomic int press;             // enum ring_press, from the main thread
    _Atomic bool pressed;          // RING_ABANDON was done
    int n_abandoned;
    _Alignas(64) _Atomic(struct connector_job *) mail; // jobs that are done, newest first
};

struct ring {
    struct loop base;
    struct shared *shared;
    struct seconds *seconds;
    const struct poller_ops *poller;
    struct connector *connector;
    struct ring_worker *workers;
    int n_workers;
    int n_clients;
    struct ring_client **clients; // by number
    bool has_abandoned;           // memory must stay
    struct gate start, main;
    _Atomic bool connected, started, quit; // raised once, in this order
    _Atomic unsigned moves;                // how often the end or the cut was moved
    _Atomic int running;
    _Atomic(struct connector_job *) back; // jobs done before the load, newest first
};

void *ring_worker_main(void *worker);

// A job is back: for the worker, which is woken. The connector calls it.
void ring_worker_mail(struct connector_job *job);
