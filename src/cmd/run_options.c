#include "cmd/run_options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"

static const char *const protocols[] = {"simple", "extended", "prepared", NULL};
static const char *const pipelines[] = {"none", "auto", NULL};
static const char *const watches[] = {"on", "off", NULL};
static const char *const tunes[] = {"none", "oltp", NULL}; // by enum server_tune
static const char *const arrivals[] = {"poisson", "even", NULL};
const char *const run_loops[] = {"auto", "ring-uring", "ring-epoll", "threads", NULL};

// ---- values with words of their own

static int parse_threads(const char *text, void *value, struct err *err)
{
    int64_t *threads = value;

    if (strcmp(text, "auto") == 0) {
        *threads = 0;
        return 0;
    }
    if (units_parse_int(text, threads, err) < 0 || *threads < 1 || *threads > 1024)
        return err_set(err, ERR_USAGE, "must be auto, or between 1 and 1024");
    return 0;
}

static void print_threads(const void *value, char *out, size_t size)
{
    const int64_t *threads = value;

    if (*threads)
        snprintf(out, size, "%lld", (long long)*threads);
    else
        snprintf(out, size, "auto");
}

static int parse_warmup(const char *text, void *value, struct err *err)
{
    struct run_warmup *warmup = value;

    *warmup = (struct run_warmup){.kind = PLAN_WARMUP_AUTO};
    if (strcmp(text, "auto") == 0)
        return 0;
    if (strcmp(text, "none") == 0) {
        warmup->kind = PLAN_WARMUP_NONE;
        return 0;
    }
    warmup->kind = PLAN_WARMUP_FIXED;
    if (units_parse_duration(text, NS_PER_S, &warmup->ns, err) < 0)
        return err_set(err, ERR_USAGE, "must be auto, none, or a duration such as 30s");
    return 0;
}

static void print_warmup(const void *value, char *out, size_t size)
{
    const struct run_warmup *warmup = value;
    char text[UNITS_MAX];

    if (warmup->kind == PLAN_WARMUP_FIXED)
        units_format_duration_exact(warmup->ns, text);
    else
        snprintf(text, sizeof(text), "%s", warmup->kind == PLAN_WARMUP_AUTO ? "auto" : "none");
    snprintf(out, size, "%s", text);
}

static int parse_seed(const char *text, void *value, struct err *err)
{
    struct run_seed *seed = value;

    if (strcmp(text, "random") == 0) {
        *seed = (struct run_seed){0};
        return 0;
    }
    seed->given = true;
    seed->value = strtoull(text, NULL, 10);
    // Readable by every tool that reads JSON or SQL integers.
    if (!*text || text[strspn(text, "0123456789")] || strlen(text) > 19 || seed->value > INT64_MAX)
        return err_set(err, ERR_USAGE, "must be random, or a whole number up to %lld (19 digits)",
                       (long long)INT64_MAX);
    return 0;
}

static void print_seed(const void *value, char *out, size_t size)
{
    const struct run_seed *seed = value;

    if (seed->given)
        snprintf(out, size, "%llu", (unsigned long long)seed->value);
    else
        snprintf(out, size, "random");
}

// ---- rows

#define AT(member) offsetof(struct run_options, member)

static const struct opt_row rows[] = {
    {"file", 'f', OPT_LIST, AT(files), .arg = "FILE[@WEIGHT]", .group = "What to run",
     .help = "a script in pgbench's language, no workload"},
    {"define", 'D', OPT_LIST, AT(defines), .arg = "NAME=VALUE",
     .help = "set a variable for the scripts"},
    {"scale", 's', OPT_INT, AT(scale), .min = 0, .max = 1000000, .arg = "N",
     .help = "scale of the tables; checked when they exist"},
    {"protocol", 'M', OPT_CHOICE, AT(protocol), "prepared", .choices = protocols, .arg = "NAME",
     .help = "simple, extended or prepared statements"},
    VOLUMES_ROWS(AT(volumes)),
    STATE_ROW(AT(state)),

    {"host-setting", 0, OPT_LIST, AT(host), .arg = "K=V",
     .help = "of this machine, for the run: vm.dirty_ratio=5"},
    {"tune", 0, OPT_CHOICE, AT(tune), "none", .choices = tunes, .arg = "NAME",
     .help = "oltp: fit a server: target to this machine"},

    {"clients", 'c', OPT_INT, AT(clients), "8", 1, 100000, .arg = "N", .group = "Load",
     .help = "simulated sessions"},
    {"threads", 'j', OPT_CUSTOM, AT(threads), "auto", .arg = "N", .parse = parse_threads,
     .print = print_threads, .help = "worker threads of the ring loop"},
    {"time", 'T', OPT_DURATION, AT(time_ns), "60s", 0, 31536000, .arg = "DURATION",
     .help = "length of the run; seconds if bare"},
    {"transactions", 't', OPT_INT, AT(transactions), NULL, 0, 1e12, .arg = "N",
     .help = "end after N transactions per client instead"},
    {"rate", 'R', OPT_DOUBLE, AT(rate_tps), NULL, 0, 1e8, .arg = "TPS",
     .help = "open loop: so many a second; latency from the plan"},
    {"arrival", 0, OPT_CHOICE, AT(arrival), "poisson", .choices = arrivals, .arg = "NAME",
     .help = "starts under --rate: poisson or even"},
    {"think", 0, OPT_DURATION, AT(think_ns), NULL, 0, 86400, .arg = "DURATION",
     .help = "mean pause of a client between transactions"},
    {"warmup", 0, OPT_CUSTOM, AT(warmup), "auto", .arg = "WHAT", .parse = parse_warmup,
     .print = print_warmup, .help = "leave out the start: auto, none or a duration"},
    {"max-tries", 0, OPT_INT, AT(max_tries), "10", 1, 1000000, .arg = "N",
     .help = "tries of a transaction after deadlocks and such"},
    {"reconnect-for", 0, OPT_DURATION, AT(reconnect_for_ns), "60s", 0, 86400, .arg = "TIME",
     .help = "how long a lost connection is tried again"},
    {"seed", 0, OPT_CUSTOM, AT(seed), "random", .arg = "N", .parse = parse_seed,
     .print = print_seed, .help = "makes random choices repeatable"},
    {"at", 0, OPT_LIST, AT(at), .arg = "DURATION WHAT", .pair = true,
     .help = "during the load: checkpoint, restart, or a command"},
    {"loop", 0, OPT_CHOICE, AT(loop), "auto", .choices = run_loops, .arg = "NAME",
     .help = "auto, ring-uring, ring-epoll or threads"},
    {"pipeline", 0, OPT_CHOICE, AT(pipeline), "none", .choices = pipelines, .arg = "NAME",
     .help = "auto: send BEGIN ... COMMIT together"},
    {"probe", 0, OPT_DURATION, AT(probe_ns), NULL, 2, 3600, .arg = "DURATION",
     .help = "probe the storage of data and log before the load"},
    {"watch", 0, OPT_CHOICE, AT(watch), "on", .choices = watches, .arg = "WHAT",
     .help = "off: do not look at machine and server"},

    {"progress", 'P', OPT_DURATION, AT(progress_ns), NULL, 0, 86400, .arg = "DURATION",
     .group = "Output", .unrecorded = true, .help = "print a line each so often"},
    {"statements", 'r', OPT_FLAG, AT(statements), .unrecorded = true,
     .help = "show latency per statement"},
    {"json", 0, OPT_TEXT, AT(json), .arg = "FILE", .unrecorded = true,
     .help = "write the result as JSON (- is the terminal)"},
    {"log-transactions", 'l', OPT_TEXT, AT(log_prefix), .arg = "PREFIX", .unrecorded = true,
     .help = "a line per transaction, as pgbench -l, to files"},
    {"label", 0, OPT_TEXT, AT(label), .arg = "NAME", .unrecorded = true,
     .help = "name to find the run by"},
    {"note", 0, OPT_TEXT, AT(note), .arg = "TEXT", .unrecorded = true,
     .help = "words kept with the run"},
    {"block", 0, OPT_INT, AT(block), NULL, 1, 1e9, .arg = "N", .unrecorded = true,
     .help = "runs of one block are compared in pairs"},
    {"store", 0, OPT_TEXT, AT(store), .arg = "FILE", .unrecorded = true,
     .help = "results file, else $PRONY_STORE or ./prony.db"},
    {"trace", 0, OPT_TEXT, AT(trace), .arg = "FILE", .unrecorded = true,
     .help = "write every database call (slow)"},
    {"quiet", 'q', OPT_FLAG, AT(quiet), .unrecorded = true, .help = "print errors only"},
    {NULL},
};

// What hands type that learned pgbench, sysbench or HammerDB.
static const struct opt_peer peers[] = {
    {"--client", "--clients"},
    {"--sysctl", "--host-setting"},
    {"--jobs", "--threads"},
    {"--num-threads", "--clients"},
    {"--max-requests", "--transactions (per client)"},
    {"--max-time", "--time"},
    {"--events", "--transactions (per client)"},
    {"--tx-rate", "--rate"},
    {"--duration", "--time"},
    {"--report-interval", "--progress"},
    {"--report-per-command", "--statements"},
    {"--report-latencies", "--statements"},
    {"--random-seed", "--seed"},
    {"--rand-seed", "--seed"},
    {"--warmup-time", "--warmup"},
    {"--log", "--log-transactions PREFIX"},
    {"--log-prefix", "--log-transactions PREFIX"},
    {"--builtin", "the workload's name as second argument: tpcb, simple-update, select-only"},
    {"-b", "the workload's name as second argument: tpcb, simple-update, select-only"},
    {"--select-only", "the workload select-only"},
    {"-S", "the workload select-only"},
    {"--skip-some-updates", "the workload simple-update"},
    {"-N", "the workload simple-update"},
    {"-i", "prony init TARGET WORKLOAD"},
    {"--initialize", "prony init TARGET WORKLOAD"},
    {"-h", "host in the target: postgres://HOST/DATABASE or postgres:host=/run/postgresql"},
    {"--host", "host in the target: postgres://HOST/DATABASE or mysql://HOST/DATABASE"},
    {"-p", "port in the target: postgres://HOST:PORT/DATABASE"},
    {"--port", "port in the target: postgres://HOST:PORT/DATABASE"},
    {"-U", "user in the target: postgres://USER@HOST/DATABASE"},
    {"--username", "user in the target: postgres://USER@HOST/DATABASE"},
    {"-d", "database in the target: postgres://HOST/DATABASE"},
    {"--dbname", "database in the target: postgres://HOST/DATABASE"},
    {"--mysql-host", "host in the target: mysql://USER@HOST/DATABASE"},
    {"--mysql-socket", "socket in the target: mysql://USER@/DATABASE?socket=PATH"},
    {"--mysql-user", "user in the target: mysql://USER@HOST/DATABASE"},
    {"--mysql-db", "database in the target: mysql://USER@HOST/DATABASE"},
    {"--mysql-password", "a password in an option file (see prony(1), TARGETS)"},
    {"--pgsql-host", "host in the target: postgres://USER@HOST/DATABASE"},
    {"--table-size", "--scale of the workload (prony init)"},
    {"--no-vacuum", "nothing: prony run never vacuums"},
    {"-n", "nothing: prony run never vacuums"},
    {NULL, NULL},
};

const struct opt_command run_command = {
    .name = "run",
    .usage = "TARGET {WORKLOAD|-f FILE[@WEIGHT]...}",
    .summary = "put a transaction load on a database and keep what was measured",
    .example = "prony run sqlite: tpcb -T 30s\n"
               "prony run postgres://me@db1/bench tpcb -c 32 -T 5m --label before",
    .rows = rows,
    .peers = peers,
    .min_args = 1,
    .max_args = 2,
};

static const struct opt_row *row_named(const char *name)
{
    const struct opt_row *row = rows;

    while (strcmp(row->name, name) != 0)
        row++;
    return row;
}

// What makes every statement wait for the answer before, among the options; NULL when nothing does.
static const char *pipeline_obstacle(const struct run_options *options)
{
    if (options->protocol == DB_SIMPLE)
        return "--protocol simple";
    if (options->trace)
        return "--trace";
    return strcmp(run_loops[options->loop], "threads") == 0 ? "--loop threads" : NULL;
}

static const char *pipeline_words(const struct run_options *options)
{
    return options->pipeline == RUN_PIPELINE_AUTO ? "--pipeline auto"
                                                  : "\\startpipeline in the script";
}

static int check_pipeline_options(const struct run_options *options, struct err *err)
{
    const char *obstacle = pipeline_obstacle(options);

    if (!obstacle)
        return 0;
    return err_set(err, ERR_USAGE,
                   "%s cannot be had with %s, which waits for every answer: leave one away",
                   pipeline_words(options), obstacle);
}

int run_options_check(struct run_options *options, int n_args, char **args, struct err *err)
{
    struct str typed =
        STR_INIT; // as shown: what looks like a workload may be a URL with a password

    text_add_value(&typed, args[n_args - 1]);
    if (options->files.n && n_args > 1)
        err_set(err, ERR_USAGE,
                "both a workload (%s) and a script (-f %s) are given: leave one away", typed.buf,
                options->files.items[0]);
    else if (!options->files.n && n_args < 2)
        err_set(err, ERR_USAGE,
                "what shall run against %s? Name a workload (tpcb, simple-update, select-only) "
                "or a script with -f FILE",
                typed.buf);
    str_release(&typed);
    if (err->kind)
        return -1;
    if (options->transactions && opt_is_changed(row_named("time"), options))
        return err_set(err, ERR_USAGE,
                       "--time and --transactions exclude each other: leave one away");
    if (!options->transactions && options->time_ns < NS_PER_S)
        return err_set(err, ERR_USAGE, "--time: must be at least 1s");
    if (state_options_check(&options->state, err) < 0)
        return -1;
    if (options->trace && options->loop != 0 && strcmp(run_loops[options->loop], "threads") != 0)
        return err_set(err, ERR_USAGE,
                       "--trace sees the calls of the threads loop only: leave --loop away");
    if (options->pipeline == RUN_PIPELINE_AUTO && check_pipeline_options(options, err) < 0)
        return -1;
    if (options->transactions)
        options->time_ns = 0;
    if (opt_is_changed(row_named("arrival"), options) && options->rate_tps <= 0)
        return err_set(err, ERR_USAGE, "--arrival needs --rate");
    if (options->warmup.kind == PLAN_WARMUP_FIXED && options->time_ns &&
        options->warmup.ns >= options->time_ns)
        return err_set(err, ERR_USAGE, "--warmup must be shorter than --time");
    return 0;
}

bool run_options_pipelines(const struct run_options *options, const struct workload *workload)
{
    return options->pipeline == RUN_PIPELINE_AUTO || workload->has_pipeline;
}

// The remedy is to leave the option away, or the sections of the script, which works without them.
int run_options_check_pipeline(const struct run_options *options, const struct workload *workload,
                               const struct db_target *target, struct err *err)
{
    if (!run_options_pipelines(options, workload))
        return 0;
    if (check_pipeline_options(options, err) < 0)
        return -1;
    if (db_caps(target) & DB_CAP_PIPELINE)
        return 0;
    return err_set(
        err, ERR_USAGE,
        "%s: the engine %s answers one statement before it is sent the next: leave %s away",
        pipeline_words(options), db_engine(target),
        options->pipeline == RUN_PIPELINE_AUTO ? "--pipeline"
                                               : "\\startpipeline and \\endpipeline");
}
