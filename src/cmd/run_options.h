// The options of `prony run`: one row each gives parsing, check, help, record and manual.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/opt.h"
#include "cmd/state_use.h"
#include "cmd/volumes.h"
#include "load/plan.h"

struct run_warmup {
    enum plan_warmup kind;
    int64_t ns; // PLAN_WARMUP_FIXED
};

struct run_seed {
    bool given;
    uint64_t value;
};

struct run_options {
    int64_t clients, threads, time_ns, transactions, scale, block;
    int protocol, arrival, loop, pipeline, tune, watch;
    double rate_tps;
    int64_t think_ns;
    struct run_warmup warmup;
    int64_t max_tries, reconnect_for_ns, progress_ns, probe_ns;
    struct run_seed seed;
    struct opt_list files, defines, at, host;
    bool statements, quiet;
    struct volumes_options volumes;
    struct state_options state;
    char *log_prefix, *label, *note, *store, *json, *trace;
};

extern const struct opt_command run_command;
extern const char *const run_loops[]; // names by the index in run_options.loop

enum { RUN_PIPELINE_NONE, RUN_PIPELINE_AUTO }; // run_options.pipeline
enum { RUN_WATCH_ON, RUN_WATCH_OFF };          // run_options.watch

// What rows cannot check alone: --time with --transactions, a FILE with a workload, ...
int run_options_check(struct run_options *options, int n_args, char **args, struct err *err);

// Whether statements are sent together in this run, and whether that can be. ERR_USAGE says what is
// in the way.
bool run_options_pipelines(const struct run_options *options, const struct workload *workload);
int run_options_check_pipeline(const struct run_options *options, const struct workload *workload,
                               const struct db_target *target, struct err *err);
