// Everything a run was asked to be, resolved and checked: options -> plan -> load. Made by src/cmd
// (later also by src/study), read-only afterwards.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/kv.h"
#include "base/opt.h"
#include "db/db.h"
#include "workload/workload.h"

enum plan_arrival { PLAN_POISSON, PLAN_EVEN };
enum plan_warmup { PLAN_WARMUP_AUTO, PLAN_WARMUP_FIXED, PLAN_WARMUP_NONE };

struct plan {
    const struct clock *clock;
    struct db_target *target;
    const struct workload *workload;
    int clients;
    int threads;      // of the ring; the threads loop has one per client
    const char *loop; // "auto" or a name (load/loop.h)
    enum db_protocol protocol;
    bool pipeline_auto;   // statements of BEGIN ... COMMIT are sent together (load/pipeline.h)
    int64_t time_ns;      // 0: by transactions
    int64_t transactions; // per client; 0: by time
    double rate_tps;      // 0: closed loop
    enum plan_arrival arrival;
    int64_t think_ns; // mean pause after a transaction, exponential; 0: none
    enum plan_warmup warmup;
    int64_t warmup_ns;        // PLAN_WARMUP_FIXED
    int max_tries;            // >= 1
    int64_t reconnect_for_ns; // give a lost session up after so long; 0: at once
    int64_t finish_for_ns; // after the end, running transactions may finish for so long, then are
                           // cancelled
    uint64_t seed;
    const char *log_prefix; // --log-transactions: the file PREFIX.PID (load/txlog.h); NULL: none
    bool statements;        // -r: the text shows statements (they are always recorded)
    int64_t progress_ns;    // -P; 0: the terminal's own progress line
};

// Whether clients have a pipeline: by the option, or for sections of scripts.
static inline bool plan_pipelines(const struct plan *plan)
{
    return plan->pipeline_auto || plan->workload->has_pipeline;
}
