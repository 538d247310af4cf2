// The load generator's front: runs a plan and returns what was measured.
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "load/plan.h"
#include "store/result.h"

// Called about once a second from the calling thread while the load runs, and once per -P interval.
struct run_tick {
    double at_s;            // since the load began
    double left_s;          // < 0 when it ends by transactions
    double tps;             // over the last interval
    int64_t p50_ns, p99_ns; // of the last interval; 0 when nothing completed
    int64_t errors;         // in the last interval
    int64_t retries;        // likewise
    int clients_up;         // sessions that stand
    int clients;
    double progress; // 0..1
};
typedef void run_tick_fn(void *arg, const struct run_tick *tick);

// *stop is raised from a signal handler: 1 ends the load now and gives a full result of what was
// measured, 2 gives up at once.
struct run_hooks {
    volatile sig_atomic_t *stop;
    run_tick_fn *tick; // optional
    void *arg;
};

// Connects every client, runs the load, gathers. 0 and *ret (status "done", "interrupted" or, when
// no transaction succeeded, "failed" with the reason); negative with err when nothing was started
// (ERR_USAGE, naming the setting when the server has too few connections) or there is no result
// (ERR_FAILED). Fills everything of the result that the load knows: not environment, warnings,
// store id, command, label.
int run_load(const struct plan *plan, const struct run_hooks *hooks, struct result **ret,
             struct err *err);
