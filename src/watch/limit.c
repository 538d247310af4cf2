// A rule tells which share of what there is (of the clients' time, of a device's, of the
// processors') one cause has taken, and the words for it. The first of the table with half or more
// is the limit: what stands further up explains what stands below, for a row that is locked while
// its commit is flushed keeps the device flushing, and every wait leaves processors idle.
#include "watch/limit.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"

#define ENOUGH      0.5
#define DEVICE_FULL 0.9
#define CPUS_FULL   0.85
#define WAITS_SHOWN 2

struct look {
    const struct result *r;
    const struct doubt_input *in;
    int waits_s; // seconds of the window in which sessions' waits were looked at
};

// NaN: cannot be told. words gets the evidence.
typedef double limit_rule(const struct look *look, struct str *words);

// ---- waits of sessions

static bool in_window(const struct result *r, int second)
{
    return second >= r->warmup_s && second < r->duration_s;
}

// Sessions that waited for it, on average; a second that does not name it had none.
static double mean_wait(const struct look *look, const struct result_watch *watch)
{
    double sum = 0;

    for (int s = 0; s < watch->n; s++)
        if (in_window(look->r, s) && isfinite(watch->values[s]))
            sum += watch->values[s];
    return look->waits_s > 0 ? sum / look->waits_s : 0;
}

static int count_wait_seconds(const struct result *r)
{
    int most = 0;

    for (int i = 0; i < r->n_watch; i++) {
        int n = 0;
        for (int s = 0; strcmp(r->watch[i].subject, "waits") == 0 && s < r->watch[i].n; s++)
            n += in_window(r, s) && isfinite(r->watch[i].values[s]);
        most = n > most ? n : most;
    }
    return most;
}

typedef bool wait_test(const char *name);

static bool is_lock(const char *name)
{
    return strncmp(name, "Lock:", 5) == 0 || strcmp(name, "row lock") == 0 ||
           strcasestr(name, "table level lock") || strcasestr(name, "metadata lock");
}

// IO:WALSync and IO:WALWrite is who flushes, LWLock:WALWrite who waits for him.
static bool is_flush(const char *name)
{
    return strncmp(name, "IO:WAL", 6) == 0 || strcmp(name, "LWLock:WALWrite") == 0 ||
           strcasecmp(name, "commit") == 0;
}

static bool is_data_io(const char *name)
{
    return strncmp(name, "IO:", 3) == 0 && !is_flush(name);
}

static bool is_client(const char *name)
{
    return strcmp(name, "client") == 0;
}

// The share of the clients' time; names of the longest waits go to words.
static double wait_share(const struct look *look, wait_test *test, struct str *words)
{
    const struct result *r = look->r;
    const struct result_watch *shown[WAITS_SHOWN] = {NULL};
    double sum = 0;

    if (look->waits_s == 0)
        return NAN;
    for (int i = 0; i < r->n_watch; i++) {
        const struct result_watch *watch = &r->watch[i];
        if (strcmp(watch->subject, "waits") != 0 || !test(watch->name))
            continue;
        sum += mean_wait(look, watch);
        for (int k = 0; k < WAITS_SHOWN; k++)
            if (!shown[k] || mean_wait(look, watch) > mean_wait(look, shown[k])) {
                for (int m = WAITS_SHOWN - 1; m > k; m--)
                    shown[m] = shown[m - 1];
                shown[k] = watch;
                break;
            }
    }
    for (int k = 0; words && k < WAITS_SHOWN && shown[k]; k++)
        str_addf(words, "%s%s %.0f %%", k ? ", " : "", shown[k]->name,
                 100 * mean_wait(look, shown[k]) / (double)r->clients);
    return sum / (double)r->clients;
}

// ---- others

static double counter(const struct result *r, const char *name)
{
    const char *text = kvs_get(&r->counters, name);

    return text && isdigit((unsigned char)text[0]) ? strtod(text, NULL) : NAN;
}

// The device that commits wait for: the first under the log; "" unknown.
static const char *log_device(const struct look *look)
{
    const struct storage *place = look->in->log ? look->in->log : look->in->data;

    for (int i = 0; place && i < place->n_layers; i++)
        if (place->layers[i].device[0] &&
            isfinite(result_watch_mean(look->r, place->layers[i].device, "flushes_per_s")))
            return place->layers[i].device;
    return "";
}

static bool is_embedded(const struct result *r)
{
    return strcmp(r->engine, "sqlite") == 0 || strcmp(r->engine, "null") == 0;
}

// ---- the rules

static double by_rate(const struct look *look, struct str *words)
{
    const struct result *r = look->r;

    if (r->rate_tps <= 0 || (double)r->counts.backlog > 0.01 * (double)r->counts.planned)
        return NAN;
    str_addf(words, "the rate that was asked for, %g tps, was met: more may be possible",
             r->rate_tps);
    return 1;
}

static double by_think(const struct look *look, struct str *words)
{
    const struct result *r = look->r;
    const struct hist_sparse *hist = &r->latency.hist;
    const char *think = kvs_get(&r->options, "think");

    if (r->rate_tps > 0 || !think || strtod(think, NULL) <= 0 || hist->m.count == 0)
        return NAN;
    double share = 1 - r->tps * hist_mean_ns(&hist->m) / 1e9 / (double)r->clients;
    str_addf(words, "the think time between transactions, %.0f %% of the clients' time",
             100 * share);
    return share;
}

static double by_lock(const struct look *look, struct str *words)
{
    const struct result *r = look->r;
    struct str names = STR_INIT;
    double share = wait_share(look, is_lock, &names);
    double counted = counter(r, "lock_wait_ms") / 1e3 / r->duration_s / (double)r->clients;
    double own = (double)r->lock_wait_ns / 1e9 / r->window_s / (double)r->clients;

    // A maximum that ignores what cannot be told.
    share = fmax(share, fmax(counted, own));
    str_addf(words, "locks: clients waited for one %.0f %% of the time", 100 * share);
    if (names.len)
        str_addf(words, " (%s)", names.buf);
    else if (own == share)
        str_add(words, ", for SQLite has one writer at a time");
    if (look->in->contended && look->in->contended_rows > 0 &&
        look->in->contended_rows < r->clients)
        str_addf(words, "; %lld clients write %lld row%s", (long long)r->clients,
                 (long long)look->in->contended_rows, look->in->contended_rows == 1 ? "" : "s");
    str_release(&names);
    return share;
}

// What `prony run --probe` found one writer's flushes to be; NaN without.
static double probed_flushes(const struct look *look)
{
    const struct kvs *environment = &look->r->environment;
    const char *text = kvs_get(environment, "probe.log.log_flush_1_per_s");

    text = text ? text : kvs_get(environment, "probe.data.log_flush_1_per_s");
    return text ? strtod(text, NULL) : NAN;
}

static double by_flush(const struct look *look, struct str *words)
{
    const struct result *r = look->r;
    const char *device = log_device(look);
    double busy = result_watch_mean(r, device, "flush_share");
    double flushes = result_watch_mean(r, device, "flushes_per_s");
    double waited = wait_share(look, is_flush, NULL);
    char rate[UNITS_MAX];

    if (!look->in->workload_writes)
        return NAN;
    str_addf(words, "the flush of commits: %s commits/s", units_format_rate(r->tps, rate));
    if (flushes > 0 && r->tps > 0)
        str_addf(words, ", %.2f flushes per commit of %s", flushes / r->tps,
                 units_format_duration(llround(1e9 * busy / flushes), rate));
    double probed = probed_flushes(look);
    if (probed > 0 && flushes > 0)
        str_addf(words, "; the probe reached %s flushes/s: %.0f %% of that",
                 units_format_rate(probed, rate), 100 * flushes / probed);
    if (busy > 0)
        str_addf(words, "; %s was flushing %.0f %% of the time", device, 100 * busy);
    if (waited > 0)
        str_addf(words, "; sessions waited for it %.0f %% of theirs", 100 * waited);
    return fmax(waited, busy);
}

// The busiest device, when it had no idle time left; or reads and writes of data that sessions
// wait for.
static double by_device(const struct look *look, struct str *words)
{
    const struct result *r = look->r;
    const struct result_watch *most = NULL;
    double share = 0, waited = wait_share(look, is_data_io, NULL);

    for (int i = 0; i < r->n_watch; i++) {
        const struct result_watch *w = &r->watch[i];
        if (strcmp(w->name, "busy_share") != 0)
            continue;
        double busy = result_watch_mean(r, w->subject, w->name);
        if (busy > share) {
            share = busy;
            most = w;
        }
    }
    if (!most)
        return NAN;
    str_addf(words,
             "the device %s: busy %.0f %% of the time with %.0f reads/s and %.0f writes/s, %.1f "
             "requests under way",
             most->subject, 100 * share, result_watch_mean(r, most->subject, "reads_per_s"),
             result_watch_mean(r, most->subject, "writes_per_s"),
             result_watch_mean(r, most->subject, "queue"));
    if (waited > 0)
        str_addf(words, "; sessions waited for data %.0f %% of their time", 100 * waited);
    return fmax(waited, share >= DEVICE_FULL ? share : 0);
}

static double by_cpu(const struct look *look, struct str *words)
{
    const struct result *r = look->r;
    double idle = result_watch_mean(r, "host", "cpu_idle_share") +
                  result_watch_mean(r, "host", "cpu_iowait_share");
    double steal = result_watch_mean(r, "host", "cpu_steal_share");
    double client = result_watch_mean(r, "client", "cpu_cores");
    double server = is_embedded(r) ? 0 : result_watch_mean(r, "server", "cpu_cores");
    double cpus = look->in->before.cpus, alone = fmin(cpus, (double)r->clients);

    if (!look->in->facts->is_local)
        return NAN;
    str_addf(words, "the processors: %.0f %% of %.0f busy, ", 100 * (1 - idle), cpus);
    if (is_embedded(r))
        str_addf(words, "%.2g by prony with the engine inside", client);
    else if (isfinite(server))
        str_addf(words, "%.2g by the server and %.2g by prony", server, client);
    else
        str_addf(words, "%.2g by prony", client);
    double used_cores = client + (isfinite(server) ? server : 0);
    if ((1 - idle) * cpus > 2 * used_cores && (is_embedded(r) || isfinite(server)))
        str_add(words, ", the rest by other programs");
    if (steal > 0.02)
        str_addf(words, ", %.0f %% taken by other virtual machines", 100 * steal);
    if (1 - idle >= CPUS_FULL)
        return 1 - idle;
    // Few clients cannot use every processor: each of them is at work all the time.
    double used = is_embedded(r) ? client / alone : server / alone;
    if (used >= CPUS_FULL)
        str_addf(words, "; %lld client%s can use no more", (long long)r->clients,
                 r->clients == 1 ? "" : "s");
    return used >= CPUS_FULL ? used : NAN;
}

static double by_client(const struct look *look, struct str *words)
{
    const struct result *r = look->r;
    double waited = wait_share(look, is_client, NULL);
    double cores = result_watch_mean(r, "client", "cpu_cores");

    str_addf(words,
             "the client or the way to it: the server's sessions waited for the next statement "
             "%.0f %% of the time, prony used %.2g processors with %lld threads",
             100 * waited, cores, (long long)r->threads);
    return waited;
}

static const struct row {
    const char *id;
    limit_rule *rule;
} rules[] = {
    {"rate", by_rate},     {"think", by_think}, {"lock", by_lock},     {"flush", by_flush},
    {"device", by_device}, {"cpu", by_cpu},     {"client", by_client},
};

static void keep(struct result *r, const char *id, const char *text)
{
    r->limit_id = mem_strdup(id);
    r->limit_text = mem_strdup(text);
}

// SQLite's one writer holds its lock while it flushes: the flush is what the others wait for.
static size_t order(const struct result *r, size_t i)
{
    bool swaps = strcmp(r->engine, "sqlite") == 0 && (i == 2 || i == 3);

    return swaps ? 5 - i : i;
}

void limit_judge(struct result *r, const struct doubt_input *in)
{
    struct look look = {.r = r, .in = in, .waits_s = count_wait_seconds(r)};
    struct str words = STR_INIT, most_words = STR_INIT;
    double most = 0;

    if (r->window_done == 0 || r->n_watch == 0 || strcmp(r->engine, "null") == 0)
        return;
    for (size_t i = 0; i < ARR_LEN(rules) && !r->limit_id; i++) {
        const struct row *row = &rules[order(r, i)];
        str_clear(&words);
        double share = row->rule(&look, &words);
        if (share >= ENOUGH)
            keep(r, row->id, words.buf);
        else if (share > most) {
            most = share;
            str_clear(&most_words);
            str_add(&most_words, words.buf);
        }
    }
    if (!r->limit_id && most_words.len) {
        char *text = mem_printf("none was found; most of all %s", most_words.buf);
        keep(r, "none", text);
        free(text);
    } else if (!r->limit_id) {
        keep(r, "none", "none was found");
    }
    str_release(&words);
    str_release(&most_words);
}
