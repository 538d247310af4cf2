// One run as it was measured: made by src/load, kept by src/store, told by src/report. Plain data;
// what a field means here is what it means in JSON (docs/json.md) and in the store (docs/store.md).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/kv.h"
#include "db/db.h"
#include "stats/hist.h"

// planned = done + failed + skipped + unknown + backlog + in_flight  (result_check asserts it)
struct result_counts {
    int64_t planned;
    int64_t done;      // committed and acknowledged
    int64_t failed;    // gave up or met an error; certainly not committed
    int64_t skipped;   // never sent because already too late (reserved for --latency-limit)
    int64_t unknown;   // commit sent, connection lost, outcome not known
    int64_t backlog;   // due under --rate, never started
    int64_t in_flight; // still running when the run had to end
    int64_t retried;   // transactions that needed more than one try (not part of the sum)
    int64_t retries;   // extra tries in all
};

struct result_second {
    int32_t t_s; // seconds since the load began: covers [t_s, t_s + 1)
    int64_t done;
    int64_t errors;             // failed tries and losses in this second
    struct hist_sparse latency; // of transactions completed in it
};

struct result_statement {
    char *script;
    char *sql;     // as written, blanks folded
    int64_t count; // executed in the measured window
    int64_t failed;
    int64_t rows;
    struct hist_moments m;
    int64_t p50_ns, p99_ns;
};

struct result_slow { // one of the slowest transactions
    int32_t client;
    int64_t number; // of the client's transactions, from 1
    int64_t end_ns; // since the load began
    int64_t latency_ns;
    int32_t script;
};

struct result_outage { // seconds in which no session stood
    double from_s, to_s;
};

struct result_watch { // what was seen of something once a second while the load ran
    char *subject;    // "host", "vda", "server", "client", "engine", "waits"
    char *name;       // unit last: "busy_share"; of waits what sessions waited for
    double *values;   // of second i of the load; NaN: none
    int n, cap;
};

struct result_warning {
    char *id;   // stable: "too-short"
    char *text; // what is doubtful, then the remedy
};

// Latency summary of a window: moments plus the histogram every quantile comes from.
struct result_latency {
    bool present;
    struct hist_sparse hist;
};

struct result {
    int64_t id;              // in the store; 0 before it is kept
    char *uuid;              // names the run in every store it is imported to
    char *status;            // "done", "interrupted", "failed", later "aborted"
    char *failure;           // why, when failed; NULL
    int64_t started_real_ns; // start of the load
    int64_t started_mono_ns, ended_mono_ns;
    int64_t ended_real_ns;
    char *boot_id;
    char *prony_version;
    char *command;      // exact, shell-quoted, no password
    char *label, *note; // NULL when not given
    int64_t block;      // runs of one block belong together in comparisons; 0: none

    char *target; // no password
    char *engine, *engine_version;
    char *workload, *workload_hash;
    int64_t scale; // 0: unknown
    int64_t clients, threads;
    char *loop, *protocol;
    uint64_t seed;
    double rate_tps;    // 0: closed loop
    struct kvs options; // every recorded option as typed

    double duration_s;              // load from first to last second, as it really was
    double warmup_s;                // cut from the start for what follows
    bool steady;                    // settled after the warm-up
    char *steady_why;               // words when it is not ("fell to 0.6 at 214 s"); NULL
    struct result_counts counts;    // whole run
    int64_t errors[DB_CLASS_COUNT]; // whole run, failed tries by class
    char *reasons[DB_CLASS_COUNT];  // where the first of a class came from, and the server's words;
                                    // NULL. Not kept: the doubt "errors" quotes the one that counts

    // The measured window: [warmup_s, duration_s)
    double window_s;
    int64_t window_done;
    double tps;
    struct result_latency latency; // from the planned start under a rate, else from the start
    struct result_latency service; // with a rate: from the real start
    int64_t lock_wait_ns;          // sum over clients in our own busy handler (sqlite)
    struct result_statement *statements;
    int n_statements;

    struct result_second *series;
    int n_series;
    struct result_slow *slowest; // descending latency, at most 1000
    int n_slowest;
    int64_t *done_by_client; // [clients]: fairness
    struct result_outage *outages;
    int n_outages;
    int64_t reconnects, reconnect_attempts;
    double outage_s; // sum of outages

    double cpu_user_s, cpu_sys_s; // of prony during the load
    double cpu_us_per_statement;
    int64_t statements_sent;

    struct hist_moments given_delay; // null: what it really gave, per statement
    struct hist_sparse given_hist;

    struct kvs counters; // engine counters: difference over the load
    struct result_watch *watch;
    int n_watch;
    char *limit_id;         // what held the throughput back (watch/limit.h); NULL: not looked at
    char *limit_text;       // with its evidence
    struct kvs environment; // see docs/environment.md
    struct result_warning *warnings;
    int n_warnings;
};

struct result *result_new(void);
void result_free(struct result *result);

// Aborts when the accounting identity or another invariant does not hold: a bug, never input.
void result_check(const struct result *result);

void result_add_warning(struct result *result, const char *id, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
// How statements were sent, kept among the environment: "none" (each after the answer to the one
// before), "auto" (--pipeline auto) or "script" (sections of its scripts).
#define RESULT_PIPELINE "load.pipeline"
// Why the loop is not the best one: a text in the environment, only where it is so.
#define RESULT_LOOP_WHY "load.loop_why"
const char *result_pipeline(const struct result *result);

// Keeps a value of a second; what lies between it and the last one is NaN.
void result_watch_set(struct result_watch *watch, int second, double value);
void result_watch_release(struct result_watch *watch); // what it points to

// Mean over the seconds of the measured window; NaN where there are none.
double result_watch_mean(const struct result *result, const char *subject, const char *name);

bool result_has_warning(const struct result *result, const char *id);
