// One thread of the threads loop, with the client it drives. Used by threads.c and worker.c.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "load/gate.h"
#include "load/loop.h"
#include "load/pacing.h"

enum worker_place {
    WORKER_OWN,       // in prony's own code
    WORKER_CALL,      // in a call of the database layer
    WORKER_ABANDONED, // the main thread has taken over the client: the worker must touch nothing
};

enum worker_phase {
    WORKER_CONNECTING,
    WORKER_CONNECTED, // waits for the start
    WORKER_REFUSED,   // result says why
    WORKER_ENDED,
};

struct worker {
    struct threads *threads;
    pthread_t thread;
    bool has_thread;
    _Atomic int phase;
    _Atomic int place;
    pthread_mutex_t lock;       // for session, against threads_cancel
    struct db_session *session; // changed by the worker alone, under the lock
    struct db_result result;
    struct pacing pacing;
    struct txlog_buffer log;
    struct client client;
    struct recorder recorder;
};

struct threads {
    struct loop base;
    struct shared *shared;
    struct seconds *seconds;
    struct worker *workers;
    int n;
    bool has_abandoned;            // memory must stay
    int cancel_next;               // whom threads_cancel begins with
    sem_t connecting;              // how many may connect at once
    _Atomic bool started;          // shared->start_ns is set, or quit
    _Atomic bool quit;             // there will be no load: go home
    struct gate start;             // opened for either
    _Alignas(64) struct gate wake; // the end or the cut was moved
    _Alignas(64) struct gate main; // a worker has changed its phase
    _Atomic int running;
};

void *worker_main(void *worker);
