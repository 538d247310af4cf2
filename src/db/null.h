// Inside of the null driver: what a target was told, and what a session keeps.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/rng.h"
#include "db/driver.h"

enum null_lose_at { NULL_LOSE_ANY, NULL_LOSE_COMMIT };
enum null_lose_when { NULL_LOSE_EITHER, NULL_LOSE_BEFORE, NULL_LOSE_AFTER };

// The parameters of the URL; times are nanoseconds, those called _at count from the first
// db_execute on the target.
struct null_told {
    int64_t latency_ns;
    int exponential;     // distribution
    int per_transaction; // latency_per
    double fail;         // probability
    int fail_class;      // index into null_fail_classes
    double lose;
    int lose_at;   // enum null_lose_at
    int lose_when; // enum null_lose_when
    int64_t refuse_for_ns;
    int64_t stall_at_ns, stall_for_ns;
    int64_t down_at_ns, down_for_ns;
    int64_t max_connections; // 0: unlimited
    int64_t value;           // of every column
    int read_only;
};

enum null_counter {
    NULL_STATEMENTS,
    NULL_COMMITS,   // transactions applied, also where the answer was lost
    NULL_ROLLBACKS, // asked for
    NULL_FAILURES,
    NULL_LOSSES,
    NULL_ROWS_LOADED,
    NULL_COUNTERS
};

struct null_target {
    struct db_target base;
    struct null_told told;
    bool plain; // nothing was told that takes time or fails: execute is a handful of instructions
    _Atomic int64_t origin_ns;       // of the first db_execute; 0: not yet
    _Atomic int64_t refuse_until_ns; // after a loss
    pthread_mutex_t lock;            // for what follows
    struct null_session *sessions;   // list of the connected ones
    int n_sessions;
    uint64_t retired[NULL_COUNTERS]; // of sessions that are gone
    uint32_t *connects; // per client: how often it connected, for a fresh random stream each time
    size_t n_connects, cap_connects;
};

// Column names that an answer to a SELECT has.
struct null_columns {
    int n;       // 0: not yet known
    char *names; // one text, each name terminated
};

struct null_session {
    struct db_session base;
    struct null_session *next; // under the target's lock
    struct null_session **link;
    bool in_transaction;
    atomic_bool cancelled;
    struct rng rng;
    struct null_columns *columns; // by statement index
    int n_columns;
    struct null_columns query_columns; // of the last db_query
    const struct null_columns *row;    // of the last answer with a row
    int64_t bulk_rows;
    // Written by the session's thread alone, read by any: no locked instruction is needed.
    _Atomic uint64_t counters[NULL_COUNTERS];
};

// The URL's parameters into told (null_url.c).
extern const char *const null_fail_classes[];
enum db_class null_fail_class(int index);
extern const char null_params_help[];
int null_parse(const struct url *url, struct null_told *told, struct err *err);

// Names the columns of a SELECT from its text, as an engine would: "a", "t.b", "f(c) AS d" give a,
// b, d (null_row.c). Never fails: there is at least one.
void null_columns_parse(struct null_columns *columns, const char *sql);
void null_columns_release(struct null_columns *columns);
const char *null_columns_name(const struct null_columns *columns, int i);
