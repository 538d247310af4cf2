// The load generator's front: runs a plan and returns what was measured.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "load/plan.h"
#include "store/result.h"

// Told from the calling thread while the load runs: once per -P interval (plan->progress_ns), or
// about once a second where there is none. The numbers are those of that interval.
struct run_tick {
    double at_s;            // since the load began
    double left_s;          // < 0 when it ends by transactions
    double tps;             // over the last interval
    int64_t p50_ns, p99_ns; // of the last interval in which something completed; 0 before that
    int64_t errors;         // in the last interval
    int64_t retries;        // likewise
    int clients_up;         // sessions that stand
    int clients;
    double progress; // 0..1
};
typedef void run_tick_fn(void *arg, const struct run_tick *tick);

// *stop is raised from a signal handler: 1 ends the load now and gives a full result of what was
// measured, 2 gives up running transactions at once.
struct run_hooks {
    volatile sig_atomic_t *stop;                // optional
    run_tick_fn *tick;                          // optional
    void (*began)(void *arg, int64_t start_ns); // optional: told once, when the load begins
    void *arg;
    int64_t *log_write_error; // optional: set to the errno that ended --log-transactions, or 0
};

// Connects every client, runs the load, gathers. 0 and *ret (status "done", "interrupted" or
// "failed" with the reason: no transaction succeeded, every client gave up, or a full disk made one
// give up); negative with err when nothing was started (ERR_USAGE, naming the setting when the
// server has too few connections; ERR_FAILED when *stop was raised before the start). Fills
// everything of the result that the load knows: not environment, counters, options, store id,
// command, label, version; warnings only about the clients.
int run_load(const struct plan *plan, const struct run_hooks *hooks, struct result **ret,
             struct err *err);
