// The table of doubts. A rule looks at the result and its surroundings and, when it applies, adds
// one warning: what is doubtful with its figure, then what to do. Thresholds stand beside their
// rule and in docs/doubts.md. The order of the table is the order shown: what can make the result
// wrong first, what limits its meaning after.
#include "watch/doubts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

typedef void doubt_rule(struct result *r, const struct doubt_input *in);

static double counter(const struct result *r, const char *name)
{
    const char *text = kvs_get(&r->counters, name);

    return text ? strtod(text, NULL) : NAN;
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
    result_add_warning(
        r, "errors",
        "%lld of %lld transactions failed or have an unknown outcome (most often: %s); the "
        "throughput counts only those that succeeded: find the cause before comparing",
        (long long)bad, (long long)r->counts.planned, db_class_name((enum db_class)most));
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
    const struct storage *place = in->data && in->data->in_memory ? in->data
                                  : in->log && in->log->in_memory ? in->log
                                                                  : NULL;

    if (place)
        result_add_warning(r, "data-in-memory",
                           "%s lies on %s, which is memory: nothing here says anything about "
                           "storage; put the data on a disk",
                           place->path, place->fs);
}

static void doubt_overlay(struct result *r, const struct doubt_input *in)
{
    if (in->data && in->data->is_overlay)
        result_add_warning(r, "data-on-overlay",
                           "%s lies on a container's overlay, which copies files up and syncs in "
                           "its own way: mount a volume for the data",
                           in->data->path);
}

static void doubt_store_on_volume(struct result *r, const struct doubt_input *in)
{
    // Written once at the end, so only a transaction log or a trace would disturb much.
    if (in->data && in->store && r->duration_s > 0 && kvs_get(&r->options, "log-transactions") &&
        storage_shares_device(in->data, in->store))
        result_add_warning(r, "store-on-volume",
                           "the results file and the transaction log share a disk with the "
                           "data: put them elsewhere (--store, --log-transactions)");
}

static bool durable(const struct doubt_input *in)
{
    static const struct {
        const char *setting;
        const char *off;
    } rules[] = {
        {"fsync", "off"},
        {"synchronous_commit", "off"},
        {"synchronous", "off"},
        {"synchronous", "0"},
        {"innodb_flush_log_at_trx_commit", "0"},
        {"innodb_flush_log_at_trx_commit", "2"},
    };

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        const char *value = kvs_get(&in->facts->settings, rules[i].setting);
        if (value && strcasecmp(value, rules[i].off) == 0)
            return false;
    }
    return true;
}

static void doubt_not_durable(struct result *r, const struct doubt_input *in)
{
    if (in->workload_writes && !durable(in))
        result_add_warning(r, "not-durable",
                           "the engine is set not to flush at commit (fsync, synchronous, "
                           "synchronous_commit or innodb_flush_log_at_trx_commit): acknowledged "
                           "transactions are lost when the power goes; compare only with the like");
}

// One client cannot commit faster than the device flushes. Below 20 us a flush is not plausible on
// anything but a protected cache.
static void doubt_fast_flush(struct result *r, const struct doubt_input *in)
{
    double per_commit_us = r->clients / r->tps * 1e6;

    if (!in->workload_writes || !in->data || in->data->in_memory || !durable(in) || r->tps <= 0)
        return;
    bool wal_normal = kvs_get(&in->facts->settings, "synchronous") &&
                      strcasecmp(kvs_get(&in->facts->settings, "synchronous"), "full") != 0 &&
                      strcasecmp(kvs_get(&in->facts->settings, "synchronous"), "extra") != 0;
    if (r->clients == 1 && per_commit_us < 20 && !wal_normal)
        result_add_warning(
            r, "fast-flush",
            "one client commits every %.0f us: no disk flushes so fast, so a "
            "protected cache answers or flushes are ignored; test with the power cut",
            per_commit_us);
    else if (r->clients == 1 && per_commit_us < 400 && !wal_normal && in->data->n_layers > 0 &&
             in->data->layers[in->data->n_layers - 1].rotational == 1 &&
             strcmp(in->data->layers[in->data->n_layers - 1].model, "virtio_blk") != 0)
        result_add_warning(r, "fast-flush",
                           "one client commits every %.0f us on a rotating disk, which takes "
                           "milliseconds: its cache acknowledges before writing, or flushes are "
                           "ignored; test with the power cut",
                           per_commit_us);
}

// ---- what was really exercised

static void doubt_contention(struct result *r, const struct doubt_input *in)
{
    if (in->contended && in->contended_rows > 0 && in->contended_rows < r->clients)
        result_add_warning(r, "few-rows",
                           "%lld clients contend for %lld rows (every transaction writes %s), so "
                           "this measures row locks more than storage: use --scale %lld or more",
                           (long long)r->clients, (long long)in->contended_rows, in->contended,
                           (long long)r->clients);
}

static void doubt_cached(struct result *r, const struct doubt_input *in)
{
    int64_t bytes = in->facts->data_bytes;
    int64_t memory = in->before.free_memory_bytes;
    char data_text[UNITS_MAX], memory_text[UNITS_MAX];

    if (bytes <= 0 || memory <= 0 || !in->facts->is_local)
        return;
    if (in->facts->cache_bytes > memory)
        memory = in->facts->cache_bytes;
    if (bytes < memory)
        result_add_warning(r, "data-fits-in-memory",
                           "the data (%s) fits in memory (%s free), so reads hardly touched the "
                           "volume: for reads from storage use --scale 2xRAM at init",
                           units_format_bytes(bytes, data_text),
                           units_format_bytes(memory, memory_text));
}

static void doubt_checkpoint(struct result *r, const struct doubt_input *in)
{
    double checkpoints = counter(r, "checkpoints_timed") + counter(r, "checkpoints_requested");

    if (in->workload_writes && checkpoints == 0) // NaN where the engine has no such counter
        result_add_warning(r, "no-checkpoint",
                           "no checkpoint fell into the run, so a part of the writing is still to "
                           "come: run longer than checkpoint_timeout, or lower it");
}

static void doubt_not_steady(struct result *r, const struct doubt_input *in)
{
    (void)in;
    // A run too short to tell has the doubt too-short, which says the same with its remedy.
    if (r->steady || !r->steady_why || r->window_done == 0 ||
        strncmp(r->steady_why, "too short", 9) == 0)
        return;
    result_add_warning(r, "not-steady",
                       "the rate never settled (%s): run longer, or find what changed and when",
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

static void doubt_fairness(struct result *r, const struct doubt_input *in)
{
    int64_t low = INT64_MAX, high = 0;

    (void)in;
    if (!r->done_by_client || r->clients < 2 || r->counts.done < 50 * r->clients)
        return;
    for (int64_t i = 0; i < r->clients; i++) {
        low = r->done_by_client[i] < low ? r->done_by_client[i] : low;
        high = r->done_by_client[i] > high ? r->done_by_client[i] : high;
    }
    if (low * 4 < high)
        result_add_warning(r, "unfair",
                           "the busiest client did %lld transactions, the slowest %lld: latencies "
                           "are a mix of served and starved clients; look at done_by_client",
                           (long long)high, (long long)low);
}

static void doubt_steal(struct result *r, const struct doubt_input *in)
{
    const struct host_sample *a = &in->before, *b = &in->after;
    double wall_s = (double)(b->mono_ns - a->mono_ns) / 1e9 * a->cpus;
    double steal = wall_s > 0 ? (b->steal_s - a->steal_s) / wall_s : 0;

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
    if (in->before.frequency_mhz > 0 &&
        fabs(in->after.frequency_mhz / in->before.frequency_mhz - 1) > 0.25)
        result_add_warning(r, "frequency-changed",
                           "the CPU clock went from %.0f to %.0f MHz during the run: cooling or "
                           "power limits are at work; watch the temperature",
                           in->before.frequency_mhz, in->after.frequency_mhz);
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
        char text[UNITS_MAX];
        result_add_warning(r, "closed-loop",
                           "clients wait for each other's stalls (worst %s), so these latencies "
                           "leave out who would have come meanwhile: use --rate %.3g (70 %% of "
                           "this throughput) for what users would feel",
                           units_format_duration(hist->m.max_ns, text), r->tps * 0.7);
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
    doubt_errors,      doubt_outage,          doubt_log_write,   doubt_memory,    doubt_overlay,
    doubt_not_durable, doubt_fast_flush,      doubt_contention,  doubt_saturated, doubt_not_steady,
    doubt_cached,      doubt_checkpoint,      doubt_fairness,    doubt_steal,     doubt_power,
    doubt_same_host,   doubt_store_on_volume, doubt_closed_loop, doubt_too_short,
};

void doubts_judge(struct result *result, const struct doubt_input *input)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        rules[i](result, input);
}
