// The table of doubts. A rule looks at the result and its surroundings and, when it applies, adds
// one warning: what is doubtful with its figure, then what to do. Thresholds stand beside their
// rule and in docs/doubts.md. The order of the table is the order shown: what can make the result
// wrong first, what limits its meaning after.
#include "watch/doubts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "watch/flush.h"

typedef void doubt_rule(struct result *r, const struct doubt_input *in);

// NaN where the engine has no such counter, or it was reset during the run.
static double counter(const struct result *r, const char *name)
{
    const char *text = kvs_get(&r->counters, name);
    char *end = NULL;
    double value = text ? strtod(text, &end) : NAN;

    return text && end != text && !*end ? value : NAN;
}

static bool setting_is(const struct doubt_input *in, const char *name, const char *value)
{
    const char *is = kvs_get(&in->facts->settings, name);

    return is && strcasecmp(is, value) == 0;
}

// The storage engine of MySQL's tables; "" elsewhere.
static const char *table_engine(const struct doubt_input *in)
{
    const char *is = kvs_get(&in->facts->settings, "table_engine");

    if (!is)
        is = kvs_get(&in->facts->settings, "engine");
    return is ? is : "";
}

// Where commits are flushed to; NULL unknown.
static const struct storage *log_place(const struct doubt_input *in)
{
    return in->log ? in->log : in->data;
}

// Two digits, as one would type them.
static char *rough_number(double value, char out[UNITS_MAX])
{
    double step = value > 0 ? pow(10, floor(log10(value)) - 1) : 1;

    snprintf(out, UNITS_MAX, "%.*f", step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0,
             round(value / step) * step);
    return out;
}

// ---- something went wrong

static void doubt_errors(struct result *r, const struct doubt_input *in)
{
    int64_t bad = r->counts.failed + r->counts.unknown;
    int most = 0;

    (void)in;
    if (bad == 0)
        return;
    for (int class = 1; class < DB_CLASS_COUNT; class ++)
        if (r->errors[class] > r->errors[most])
            most = class;
    const char *reason = r->reasons[most];
    result_add_warning(
        r, "errors",
        "%lld of %lld transactions failed or have an unknown outcome (most often %s%s%s); the "
        "throughput counts only those that succeeded: find the cause before comparing",
        (long long)bad, (long long)r->counts.planned, db_class_name((enum db_class)most),
        reason ? ": " : "", reason ? reason : "");
}

static void doubt_outage(struct result *r, const struct doubt_input *in)
{
    (void)in;
    if (r->outage_s > 0)
        result_add_warning(r, "outage",
                           "for %.1f s no client had a connection; the mean throughput includes "
                           "this time: look at the series, or run again without it",
                           r->outage_s);
}

static void doubt_log_write(struct result *r, const struct doubt_input *in)
{
    if (in->log_write_error)
        result_add_warning(r, "transaction-log",
                           "the transaction log is not whole (%s): free space there, or leave "
                           "--log-transactions away",
                           strerror((int)in->log_write_error));
}

// ---- where the data lies

static void doubt_memory(struct result *r, const struct doubt_input *in)
{
    if (in->data && in->data->in_memory)
        result_add_warning(r, "data-in-memory",
                           "%s lies on %s, which is memory: nothing here says anything about "
                           "storage; put the data on a disk",
                           in->data->path, in->data->fs);
    else if (in->log && in->log->in_memory)
        result_add_warning(r, "data-in-memory",
                           "the transaction log, %s, lies on %s, which is memory: commits wait for "
                           "no disk; put the log on one",
                           in->log->path, in->log->fs);
}

static void doubt_overlay(struct result *r, const struct doubt_input *in)
{
    const struct storage *place = in->data && in->data->is_overlay ? in->data
                                  : in->log && in->log->is_overlay ? in->log
                                                                   : NULL;

    if (place)
        result_add_warning(r, "data-on-overlay",
                           "%s lies on a container's overlay, which copies files up and syncs in "
                           "its own way: mount a volume for the data",
                           place->path);
}

static void doubt_store_on_volume(struct result *r, const struct doubt_input *in)
{
    // The results file is written once, after the load: only what is written during it disturbs.
    if (in->data && in->written && r->duration_s > 0 &&
        (storage_shares_device(in->data, in->written) ||
         (in->log && storage_shares_device(in->log, in->written))))
        result_add_warning(
            r, "store-on-volume",
            "what prony writes during the load, %s, shares a disk with the data: put "
            "it elsewhere (--log-transactions, --trace)",
            in->written->path);
}

// ---- what a commit is worth

// The setting that keeps commits from being flushed, in words; NULL when they are.
static const char *not_flushed(const struct doubt_input *in)
{
    static const struct {
        const char *setting, *value, *words;
    } rules[] = {
        {"fsync", "off", "fsync=off flushes nothing"},
        {"synchronous_commit", "off", "synchronous_commit=off acknowledges before the flush"},
        {"synchronous", "off", "synchronous=off flushes nothing"},
    };
    static const struct {
        const char *setting, *value, *words;
    } innodb_rules[] = {
        {"innodb_flush_log_at_trx_commit", "0",
         "innodb_flush_log_at_trx_commit=0 writes and flushes once a second"},
        {"innodb_flush_log_at_trx_commit", "2",
         "innodb_flush_log_at_trx_commit=2 flushes once a second"},
        {"innodb_flush_method", "nosync", "innodb_flush_method=nosync flushes nothing"},
        {"innodb_flush_method", "littlesync", "innodb_flush_method=littlesync flushes little"},
    };
    const char *engine = table_engine(in);

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (setting_is(in, rules[i].setting, rules[i].value))
            return rules[i].words;
    if (setting_is(in, "journal_mode", "wal") && setting_is(in, "synchronous", "normal"))
        return "journal_mode=wal with synchronous=normal flushes at checkpoints only";
    if (strcasestr(engine, "myisam") && !setting_is(in, "flush", "on"))
        return "MyISAM does not flush at the end of a statement";
    if (strcasestr(engine, "memory"))
        return "tables of the engine MEMORY are kept nowhere else";
    if (engine[0] && !strcasestr(engine, "innodb"))
        return NULL;
    for (size_t i = 0; i < sizeof(innodb_rules) / sizeof(innodb_rules[0]); i++)
        if (setting_is(in, innodb_rules[i].setting, innodb_rules[i].value))
            return innodb_rules[i].words;
    return NULL;
}

static void doubt_not_durable(struct result *r, const struct doubt_input *in)
{
    const char *why = in->workload_writes ? not_flushed(in) : NULL;

    if (why)
        result_add_warning(r, "not-durable",
                           "%s: acknowledged transactions are lost when the power goes; compare "
                           "only with the like",
                           why);
}

static void doubt_not_whole(struct result *r, const struct doubt_input *in)
{
    const char *why = NULL;

    if (!in->workload_writes || (in->data && strstr(in->data->fs, "zfs")))
        return; // ZFS writes a page whole or not at all
    if (setting_is(in, "full_page_writes", "off"))
        why = "full_page_writes=off";
    else if (setting_is(in, "journal_mode", "off") || setting_is(in, "journal_mode", "memory"))
        why = "a journal_mode without a journal on disk";
    else if (setting_is(in, "innodb_doublewrite", "off") && strcasestr(table_engine(in), "innodb"))
        why = "innodb_doublewrite=OFF";
    if (why)
        result_add_warning(r, "not-crash-safe",
                           "%s saves writes, and a crash in the middle of one can leave a database "
                           "that cannot be repaired: compare only with the like",
                           why);
}

// Commits in a second, at least: a transaction that writes runs some writing statement once.
static double commit_rate(const struct result *r)
{
    int64_t most = 0;

    if (r->n_statements == 0 || r->window_s <= 0)
        return r->tps;
    for (int i = 0; i < r->n_statements; i++) {
        const struct result_statement *s = &r->statements[i];
        enum db_kind kind = db_statement_kind(s->sql);
        int64_t n = s->count - s->failed;
        if (kind == DB_KIND_WRITE && n > most)
            most = n;
    }
    return (double)most / r->window_s;
}

// How often the log is flushed, one flush after the other: by the server's own count, or because
// nothing else can have made the commits durable. One client waits for each; SQLite has one writer.
static double flush_rate(const struct result *r)
{
    double counted = r->duration_s > 0 ? counter(r, "wal_syncs") / r->duration_s : 0;
    double rate = r->clients == 1 || strcmp(r->engine, "sqlite") == 0 ? commit_rate(r) : 0;

    return counted > rate ? counted : rate;
}

static void doubt_fast_flush(struct result *r, const struct doubt_input *in)
{
    const struct storage *place = log_place(in);
    double rate = flush_rate(r);
    char text[UNITS_MAX];

    if (!in->workload_writes || not_flushed(in) || (place && place->in_memory) || rate <= 0 ||
        strcmp(r->engine, "null") == 0)
        return;
    const char *why = flush_too_fast(1e6 / rate, place, host_is_virtual(&r->environment));
    if (why)
        result_add_warning(r, "fast-flush",
                           "the log is flushed every %s: %s, so a protected cache answers or "
                           "flushes are ignored; test with the power cut",
                           units_format_duration(llround(1e9 / rate), text), why);
}

// ---- what was really exercised

static void doubt_contention(struct result *r, const struct doubt_input *in)
{
    if (in->contended && in->contended_rows > 0 && in->contended_rows < r->clients)
        result_add_warning(
            r, "few-rows",
            "%lld clients contend for %lld rows (every transaction writes %s), so "
            "this measures row locks more than storage: make tables of --scale %lld or more",
            (long long)r->clients, (long long)in->contended_rows, in->contended,
            (long long)r->clients);
}

// InnoDB past the kernel's cache has its own alone; what a server elsewhere has free is not known.
static void doubt_cached(struct result *r, const struct doubt_input *in)
{
    int64_t bytes = in->facts->data_bytes;
    int64_t memory = in->before.free_memory_bytes;
    int64_t cache = in->facts->cache_bytes;
    const char *method = kvs_get(&in->facts->settings, "innodb_flush_method");
    bool is_direct =
        method && strncasecmp(method, "O_DIRECT", 8) == 0 && strcasestr(table_engine(in), "innodb");
    char data_text[UNITS_MAX], memory_text[UNITS_MAX];

    if (bytes <= 0)
        return;
    if (cache > 0 && bytes < cache)
        result_add_warning(r, "data-fits-in-memory",
                           "the data (%s) fits in the engine's cache (%s), so reads hardly touched "
                           "the volume: for reads from storage use --scale 2xRAM at init",
                           units_format_bytes(bytes, data_text),
                           units_format_bytes(cache, memory_text));
    else if (in->facts->is_local && !is_direct && bytes < memory)
        result_add_warning(r, "data-fits-in-memory",
                           "the data (%s) fits in memory (%s free), so reads hardly touched the "
                           "volume: for reads from storage use --scale 2xRAM at init",
                           units_format_bytes(bytes, data_text),
                           units_format_bytes(memory, memory_text));
}

static void doubt_checkpoint(struct result *r, const struct doubt_input *in)
{
    // Comparisons with NaN, where the engine has no such counter, are false.
    double checkpoints = counter(r, "checkpoints_timed") + counter(r, "checkpoints_requested");
    bool innodb_none = strcasestr(table_engine(in), "innodb") &&
                       counter(r, "checkpoint_lsn") == 0 && counter(r, "wal_lsn") > 0;

    if (!in->workload_writes)
        return;
    if (checkpoints == 0)
        result_add_warning(r, "no-checkpoint",
                           "no checkpoint fell into the run, so a part of the writing is still to "
                           "come: run longer than checkpoint_timeout, or lower it");
    else if (innodb_none)
        result_add_warning(r, "no-checkpoint",
                           "no checkpoint fell into the run, so a part of the writing is still to "
                           "come: run longer, or with a smaller redo log (innodb_log_file_size)");
}

static void doubt_not_steady(struct result *r, const struct doubt_input *in)
{
    (void)in;
    // A run too short to tell has the doubt too-short, which says the same with its remedy.
    if (r->steady || !r->steady_why || r->window_done == 0 ||
        strncmp(r->steady_why, "too short", 9) == 0)
        return;
    result_add_warning(r, "not-steady",
                       "the rate was not steady (%s): run longer, or find what changed and when",
                       r->steady_why);
}

static void doubt_too_short(struct result *r, const struct doubt_input *in)
{
    (void)in;
    if (r->window_s < 30)
        result_add_warning(r, "too-short",
                           "%.3g s were measured, too short for write-back, checkpoints and "
                           "caches to show: use --time 5m or more for figures you will rely on",
                           r->window_s);
    if (r->window_done > 0 && r->window_done < 1000)
        result_add_warning(r, "few-transactions",
                           "only %lld transactions were measured, so p99 and beyond rest on a "
                           "handful: run longer",
                           (long long)r->window_done);
}

// ---- the load and the machine

static void doubt_same_host(struct result *r, const struct doubt_input *in)
{
    double cores = r->duration_s > 0 ? (r->cpu_user_s + r->cpu_sys_s) / r->duration_s : 0;
    double share = in->before.cpus > 0 ? cores / in->before.cpus : 0;
    bool embedded = strcmp(r->engine, "sqlite") == 0 || strcmp(r->engine, "null") == 0;

    if (in->facts->is_local && !embedded && share > 0.1)
        result_add_warning(r, "client-on-host",
                           "the load ran on the server's host and took %.0f %% of its %d CPUs "
                           "from it: run prony on another machine for absolute figures",
                           share * 100, in->before.cpus);
}

// The workers of the ring take all they can get when the server answers faster than they ask. In
// the threads loop clients wait for the server, and their threads share every processor.
static void doubt_client_limit(struct result *r, const struct doubt_input *in)
{
    double cores = r->duration_s > 0 ? (r->cpu_user_s + r->cpu_sys_s) / r->duration_s : 0;
    double most = fmin((double)r->threads, in->before.cpus);

    if (strncmp(r->loop, "ring", 4) == 0 && most > 0 && cores > 0.9 * most)
        result_add_warning(r, "client-limit",
                           "prony's %lld worker thread%s were busy %.0f %% of the time, so the "
                           "client was the limit and not the database: use --threads %lld",
                           (long long)r->threads, r->threads == 1 ? "" : "s", 100 * cores / most,
                           (long long)r->threads * 2);
}

static void doubt_fairness(struct result *r, const struct doubt_input *in)
{
    int64_t low = INT64_MAX, high = 0;

    (void)in;
    // Below its rate an open loop needs some of the clients only.
    if (r->rate_tps > 0 && r->counts.backlog <= 0.01 * (double)r->counts.planned)
        return;
    if (!r->done_by_client || r->clients < 2 || r->counts.done < 50 * r->clients)
        return;
    for (int64_t i = 0; i < r->clients; i++) {
        low = r->done_by_client[i] < low ? r->done_by_client[i] : low;
        high = r->done_by_client[i] > high ? r->done_by_client[i] : high;
    }
    if (low * 4 < high)
        result_add_warning(
            r, "unfair",
            "the busiest client did %lld transactions, the slowest %lld: latencies "
            "are a mix of served and starved clients; look at done_by_client, use fewer "
            "clients",
            (long long)high, (long long)low);
}

static double cpu_seconds(const struct host_sample *s)
{
    return s->user_s + s->system_s + s->iowait_s + s->irq_s + s->idle_s + s->steal_s;
}

static void doubt_steal(struct result *r, const struct doubt_input *in)
{
    const struct host_sample *a = &in->before, *b = &in->after;
    double wall_s = (double)(b->mono_ns - a->mono_ns) / 1e9 * a->cpus;
    double all_s = cpu_seconds(b) - cpu_seconds(a); // of all CPUs, also those we may not use
    double steal = all_s > 0 ? (b->steal_s - a->steal_s) / all_s : 0;

    if (steal > 0.02)
        result_add_warning(r, "steal",
                           "%.0f %% of the CPU time was taken by other virtual machines: expect "
                           "other figures at another hour; repeat, and compare only runs in pairs",
                           steal * 100);
    if (b->throttled_s - a->throttled_s > 0.02 * wall_s)
        result_add_warning(r, "throttled",
                           "a CPU quota held this process back for %.1f s: raise the container's "
                           "limit",
                           b->throttled_s - a->throttled_s);
}

static void doubt_power(struct result *r, const struct doubt_input *in)
{
    const char *governor = kvs_get(&r->environment, "host.cpu_governor");

    if (in->before.on_battery || in->after.on_battery)
        result_add_warning(r, "battery",
                           "the machine runs on battery and may slow its CPU at any "
                           "time: plug it in");
    if (governor && strcmp(governor, "powersave") == 0 && in->facts->is_local)
        result_add_warning(r, "frequency",
                           "the CPU governor is powersave, so the clock follows the load: set it "
                           "to performance while measuring");
    if (in->first_mhz > 0 && in->last_mhz > 0 && fabs(in->last_mhz / in->first_mhz - 1) > 0.25)
        result_add_warning(r, "frequency-changed",
                           "the CPU clock went from %.0f to %.0f MHz during the run: cooling or "
                           "power limits are at work; watch the temperature",
                           in->first_mhz, in->last_mhz);
}

static void doubt_closed_loop(struct result *r, const struct doubt_input *in)
{
    (void)in;
    const struct hist_sparse *hist = &r->latency.hist;
    // A stall holds every client back, so that a closed loop hides it; say so where one is seen.
    if (r->rate_tps > 0 || hist->m.count < 100)
        return;
    double p50 = (double)hist_sparse_quantile(hist, 0.5);
    if ((double)hist->m.max_ns > 20 * p50 && hist->m.max_ns > 100000000) {
        char text[UNITS_MAX], rate[UNITS_MAX];
        result_add_warning(r, "closed-loop",
                           "clients wait for each other's stalls (worst %s), so these latencies "
                           "leave out who would have come meanwhile: use --rate %s (70 %% of "
                           "this throughput) for what users would feel",
                           units_format_duration(hist->m.max_ns, text),
                           rough_number(r->tps * 0.7, rate));
    }
}

static void doubt_saturated(struct result *r, const struct doubt_input *in)
{
    (void)in;
    if (r->rate_tps > 0 && r->counts.backlog > 0.01 * (double)r->counts.planned)
        result_add_warning(r, "saturated",
                           "%.1f %% of the transactions due at %.6g tps were never started: the "
                           "rate is above what this set-up gives, and latencies grow with the "
                           "length of the run; lower --rate, or add clients",
                           100.0 * (double)r->counts.backlog / (double)r->counts.planned,
                           r->rate_tps);
}

static doubt_rule *const rules[] = {
    doubt_errors,       doubt_outage,      doubt_log_write,       doubt_memory,
    doubt_overlay,      doubt_not_durable, doubt_not_whole,       doubt_fast_flush,
    doubt_contention,   doubt_saturated,   doubt_not_steady,      doubt_cached,
    doubt_checkpoint,   doubt_fairness,    doubt_steal,           doubt_power,
    doubt_client_limit, doubt_same_host,   doubt_store_on_volume, doubt_closed_loop,
    doubt_too_short,
};

void doubts_judge(struct result *result, const struct doubt_input *input)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        rules[i](result, input);
}
