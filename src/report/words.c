#include "report/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "report/events.h"

void words_answer(const struct result *r, struct str *out)
{
    const struct hist_sparse *hist = &r->latency.hist;
    char text[UNITS_MAX];

    if (r->counts.done == 0) {
        str_add(out, r->failure ? r->failure : "no transaction succeeded");
        return;
    }
    if (hist->m.count == 0) {
        str_addf(out, "%s transactions, none inside the measured window",
                 units_format_count(r->counts.done, text));
        return;
    }
    str_addf(out, "%s transactions/s", units_format_rate(r->tps, text));
    str_addf(out, ", p50 %s", units_format_duration(hist_sparse_quantile(hist, 0.5), text));
    str_addf(out, ", p99 %s", units_format_duration(hist_sparse_quantile(hist, 0.99), text));
    if (strcmp(r->status, "interrupted") == 0)
        str_add(out, " (interrupted)");
    else if (strcmp(r->status, "failed") == 0)
        str_add(out, " (ended early)");
}

void words_setup(const struct result *r, struct str *out)
{
    char text[UNITS_MAX];

    str_add(out, r->workload);
    if (r->scale)
        str_addf(out, ", scale %" PRId64, r->scale);
    str_addf(out, ", on %s", r->target);
    if (r->engine_version && strncmp(r->engine_version, "unknown", 7) != 0)
        str_addf(out, " (%s %s)", r->engine, r->engine_version);
    str_addf(out, "; %" PRId64 " client%s, %s", r->clients, r->clients == 1 ? "" : "s",
             units_format_duration((int64_t)(r->duration_s * 1e9), text));
    if (r->rate_tps > 0)
        str_addf(out, ", open loop at %s tps", units_format_rate(r->rate_tps, text));
    str_addf(out, ", %s, seed %" PRIu64, r->protocol, r->seed);
}

static void add_part(struct str *out, int64_t n, const char *name, const char **separator)
{
    char text[UNITS_MAX];

    if (n == 0)
        return;
    str_addf(out, "%s%s %s", *separator, units_format_count(n, text), name);
    *separator = ", ";
}

void words_counts(const struct result *r, struct str *out)
{
    const struct result_counts *c = &r->counts;
    const char *separator = ": ";
    char done[UNITS_MAX], planned[UNITS_MAX];

    str_addf(out, "%s done", units_format_count(c->done, done));
    if (c->planned != c->done) {
        str_addf(out, " of %s planned", units_format_count(c->planned, planned));
        add_part(out, c->failed, "failed", &separator);
        add_part(out, c->skipped, "skipped", &separator);
        add_part(out, c->unknown, "with unknown outcome", &separator);
        add_part(out, c->backlog, "due but never started", &separator);
        add_part(out, c->in_flight, "still running at the end", &separator);
    }
    if (c->retried)
        str_addf(out, "; %s needed more than one try", units_format_count(c->retried, done));
}

static bool add_pipeline(const struct result *r, struct str *out)
{
    const char *pipeline = result_pipeline(r);

    if (strcmp(pipeline, "none") == 0)
        return false;
    str_addf(out,
             "%s were sent together, without waiting for each answer: compare only with runs that "
             "do the same",
             strcmp(pipeline, "auto") == 0 ? "the statements of a transaction"
                                           : "statements of the script's pipeline sections");
    return true;
}

static bool add_loop(const struct result *r, struct str *out)
{
    const char *why = kvs_get(&r->environment, RESULT_LOOP_WHY);

    if (!why)
        return false;
    str_addf(out, "%s, as a better one could not be had (%s)", r->loop, why);
    return true;
}

// "busy 14, deadlock 2"
static bool add_errors(const struct result *r, struct str *out)
{
    char text[UNITS_MAX];
    bool any = false;

    for (int class = 1; class < DB_CLASS_COUNT; class ++) {
        if (r->errors[class] == 0)
            continue;
        str_addf(out, "%s%s %s", any ? ", " : "", db_class_name((enum db_class) class),
                 units_format_count(r->errors[class], text));
        any = true;
    }
    return any;
}

// "8 reconnects in 93 attempts; 5.2 s without any session (from 10.1 s to 15.3 s, ...)"
static bool add_outages(const struct result *r, struct str *out)
{
    if (r->reconnect_attempts == 0 && r->n_outages == 0)
        return false;
    str_addf(out, "%" PRId64 " reconnect%s in %" PRId64 " attempt%s", r->reconnects,
             r->reconnects == 1 ? "" : "s", r->reconnect_attempts,
             r->reconnect_attempts == 1 ? "" : "s");
    if (r->n_outages == 0)
        return true;
    str_addf(out, "; %.1f s without any session (", r->outage_s);
    for (int i = 0; i < r->n_outages && i < 3; i++)
        str_addf(out, "%sfrom %.1f s to %.1f s", i ? ", " : "", r->outages[i].from_s,
                 r->outages[i].to_s);
    str_addf(out, "%s)", r->n_outages > 3 ? ", ..." : "");
    return true;
}

// "3.20 us per statement, 0.40 of one core"; an engine in our own process is in it, which is said.
static bool add_cpu(const struct result *r, struct str *out)
{
    char text[UNITS_MAX];

    if (r->statements_sent == 0 || r->duration_s <= 0)
        return false;
    str_addf(out, "%s per statement, %.2f of one core",
             units_format_duration((int64_t)(r->cpu_us_per_statement * NS_PER_US), text),
             (r->cpu_user_s + r->cpu_sys_s) / r->duration_s);
    if (strcmp(r->engine, "sqlite") == 0)
        str_add(out, ", SQLite included");
    return true;
}

static void add_rate(struct str *out, const char *before, double tps, const char *after)
{
    char text[UNITS_MAX];

    if (isfinite(tps))
        str_addf(out, "%s%s%s", before, units_format_rate(tps, text), after);
}

// "1: checkpoint at 30.0 s for 1.31 s (1450 tps before, 930 during, 1470 after); 2: ..."
static bool add_events(const struct result *r, struct str *out)
{
    struct report_event event;
    char text[UNITS_MAX];
    int i = 0;

    for (; report_event_at(r, i, &event); i++) {
        char *what = mem_strdup(event.what);
        text_cut_columns(what, 40);
        str_addf(out, "%s%d: ", i ? "; " : "", i + 1);
        text_add_safe(out, what);
        free(what);
        if (isfinite(event.from_s))
            str_addf(out, " at %.1f s for %s", event.from_s,
                     units_format_duration((int64_t)((event.to_s - event.from_s) * 1e9), text));
        if (strcmp(event.outcome, "done") != 0) {
            str_add(out, ", ");
            text_add_safe(out, event.outcome);
        }
        if (!isfinite(event.during_tps))
            continue;
        add_rate(out, " (", event.before_tps, " tps before, ");
        add_rate(out, isfinite(event.before_tps) ? "" : " (", event.during_tps, " during");
        add_rate(out, ", ", event.after_tps, " after");
        str_addc(out, ')');
    }
    return i > 0;
}

// What held it back, with the evidence (watch/limit.h).
static bool add_limit(const struct result *r, struct str *out)
{
    if (!r->limit_text)
        return false;
    str_add(out, r->limit_text);
    return true;
}

const struct words_fact words_facts[] = {
    {"limit", add_limit},         {"loop", add_loop},
    {"pipelined", add_pipeline},  {"errors", add_errors},
    {"connections", add_outages}, {"events", add_events},
    {"client CPU", add_cpu},      {NULL},
};
