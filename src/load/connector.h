// Threads that open and close sessions with the client library's blocking calls, for loops that
// must not block. A job goes in, is done by one of the threads, and comes back through its done
// function.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "db/db.h"
#include "db/wire.h"

struct connector;

// A job belongs to the connector from submit until done is called, in one of its threads.
struct connector_job {
    int client;
    struct db_session
        *session;            // to be closed first (NULL: none); then the new one, NULL when refused
    struct db_wire *wire;    // likewise; released before its session is closed
    struct db_result result; // of connecting
    bool is_not_adopted;     // connected, but no codec can take it over: result says why
    void (*done)(struct connector_job *job);
    void *owner;                // for done
    struct connector_job *next; // the connector's, then the receiver's
};

// Negative when no thread can be started.
int connector_start(struct connector **ret, struct db_target *target, int n_threads,
                    struct err *err);
void connector_submit(struct connector *c, struct connector_job *job); // any thread
// Ends when every job that was submitted is done; jobs not begun are still done.
void connector_stop(struct connector *c); // NULL allowed
