// Outages: the times in which no client had a session, as far as the clients have noticed.
//
// Told only when a session is lost, opened or given up, so a lock costs nothing. Clients that have
// ended count no longer: an outage is one of those that are still there.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "store/result.h"

struct outage {
    pthread_mutex_t lock;
    int active;       // clients that have not ended
    _Atomic int up;   // of them with a session; written under the lock
    int64_t since_ns; // of the present outage; -1 none
    int64_t latest_ns;
    int64_t start_ns;
    struct result_outage *items;
    int n;
    int cap;
};

void outage_init(struct outage *o, int clients); // all of them up
void outage_release(struct outage *o);
void outage_start(struct outage *o, int64_t start_ns);            // what from_s and to_s count from
void outage_down(struct outage *o, int64_t now_ns);               // a client has lost its session
void outage_up(struct outage *o, int64_t now_ns);                 // a client has a session again
void outage_leave(struct outage *o, bool was_up, int64_t now_ns); // a client has ended
void outage_finish(struct outage *o, int64_t end_ns); // the load ended: closes the present one
int outage_clients_up(const struct outage *o);        // from any thread
double outage_sum_s(const struct outage *o);
