#include "load/gather.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "stats/warmup.h"

static const struct client *client_of(const struct gather *g, int i)
{
    return g->client(g->arg, i);
}

// ---- whole run

static void sum_clients(const struct gather *g, struct result *r)
{
    struct shared *shared = g->shared;
    struct result_counts *sum = &r->counts;
    int64_t started = 0;

    r->done_by_client = mem_calloc((size_t)shared->plan->clients, sizeof(*r->done_by_client));
    for (int i = 0; i < shared->plan->clients; i++) {
        const struct client *c = client_of(g, i);
        const struct client_counts *n = &c->counts;
        r->done_by_client[i] = c->done;
        sum->done += c->done;
        sum->failed += n->failed;
        sum->unknown += n->unknown;
        sum->in_flight += n->in_flight;
        sum->retried += n->retried;
        sum->retries += c->retries;
        started += n->started;
        r->statements_sent += n->statements;
        r->reconnects += n->reconnects;
        r->reconnect_attempts += n->reconnect_attempts;
        for (int k = 0; k < DB_CLASS_COUNT; k++)
            r->errors[k] += n->errors[k];
    }
    sum->planned = started;
    if (shared->arrivals) {
        int64_t due = arrivals_due(shared->arrivals, g->end_ns);
        int64_t most = shared->plan->clients * shared->plan->transactions;
        if (shared->plan->transactions > 0 && due > most)
            due = most;
        // An idle client that woke up just after an early end may have begun one more.
        sum->planned = due > started ? due : started;
        sum->backlog = sum->planned - started;
    }
}

static void take_slowest(const struct gather *g, struct result *r)
{
    struct slowest *s = &g->seconds->slowest;

    slowest_sort(s);
    r->n_slowest = s->n;
    r->slowest = mem_resize(s->items, (size_t)s->n, sizeof(*s->items));
    *s = (struct slowest){0};
}

static void take_outages(const struct gather *g, struct result *r)
{
    struct outage *o = &g->shared->outage;

    outage_finish(o, g->end_ns);
    r->outage_s = outage_sum_s(o);
    r->n_outages = o->n;
    r->outages = mem_resize(o->items, (size_t)o->n, sizeof(*o->items));
    o->items = NULL;
    o->n = 0;
}

// ---- the window

static void explain_steadiness(struct result *r, const struct warmup *w, int from_s, int n)
{
    r->steady = w->settled && !w->stepped_down && !w->too_short;
    if (w->too_short)
        r->steady_why = mem_printf("too short to tell: %d whole second%s", n, n == 1 ? "" : "s");
    else if (w->stepped_down)
        r->steady_why = mem_printf("fell to %.2f at %d s", w->step_ratio, from_s + w->step_at_s);
    else if (!w->settled)
        r->steady_why = mem_strdup("the rate was still changing at the end");
}

// Sets warmup_s and steady. The last second, if it is not whole, says nothing about the rate.
static void find_warmup(const struct gather *g, struct result *r)
{
    const struct plan *plan = g->shared->plan;
    int whole = (int)floor(r->duration_s + 1e-9);
    double *tps = mem_calloc((size_t)whole, sizeof(*tps));
    struct warmup found = {0};
    int cut = 0;

    for (int t = 0; t < whole && t < g->seconds->n; t++)
        tps[t] = (double)g->seconds->items[t].done;
    if (plan->warmup == PLAN_WARMUP_FIXED) {
        cut = (int)((plan->warmup_ns + NS_PER_S - 1) / NS_PER_S);
        if (cut >= r->duration_s) {
            r->steady_why = mem_printf("ended within its warm-up of %d s: nothing was cut", cut);
            goto out;
        }
    }
    warmup_find(tps + cut, whole - cut, &found);
    explain_steadiness(r, &found, cut, whole - cut);
    if (plan->warmup == PLAN_WARMUP_AUTO) {
        r->warmup_s = found.seconds;
    } else {
        r->warmup_s = cut;
        if (found.seconds > 0 && r->steady) { // the cut that was asked for left a part of it
            r->steady = false;
            r->steady_why = mem_printf("settled only %d s after the start", cut + found.seconds);
        }
    }
out:
    free(tps);
}

struct window {
    struct hist *hists; // by channel
    int64_t *rows;
    int64_t *failed;
    struct hist_sparse latency; // of the second being read
    bool is_inside;
};

static void read_channel(void *arg, int channel, int64_t rows, int64_t failed,
                         const struct hist_sparse *hist)
{
    struct window *w = arg;

    if (channel == TALLY_LATENCY) {
        struct hist_sparse *copy = &w->latency;
        size_t n = (size_t)hist->n;
        *copy = *hist;
        copy->bucket = mem_calloc(n, sizeof(*copy->bucket));
        copy->counts = mem_calloc(n, sizeof(*copy->counts));
        memcpy(copy->bucket, hist->bucket, n * sizeof(*copy->bucket));
        memcpy(copy->counts, hist->counts, n * sizeof(*copy->counts));
    }
    if (!w->is_inside)
        return;
    hist_add_sparse(&w->hists[channel], hist);
    w->rows[channel] += rows;
    w->failed[channel] += failed;
}

// Statements that null answered without any delay of its own were not recorded as given: they stand
// in the first bucket.
static void take_given(struct result *r, struct window *w, int n_channels)
{
    struct hist *given = &w->hists[TALLY_GIVEN];
    int64_t executed = 0;

    if (given->m.count == 0)
        return;
    for (int i = TALLY_STATEMENTS; i < n_channels; i++)
        executed += w->hists[i].m.count;
    assert(executed >= given->m.count);
    int64_t without = executed - given->m.count;
    if (without > 0) {
        given->counts[0] += (uint64_t)without;
        given->m.count = executed;
        given->m.min_ns = 0;
    }
    r->given_delay = given->m;
    hist_sparse_from(&r->given_hist, given);
}

static void take_statements(const struct gather *g, struct result *r, const struct window *w)
{
    const struct workload *workload = g->shared->workload;

    r->n_statements = workload->n_statements;
    r->statements = mem_calloc((size_t)r->n_statements, sizeof(*r->statements));
    for (int i = 0; i < r->n_statements; i++) {
        const struct statement_origin *origin = &workload->origins[i];
        const struct hist *h = &w->hists[TALLY_STATEMENTS + i];
        r->statements[i] = (struct result_statement){
            .script = mem_strdup(workload->scripts[origin->script].name),
            .sql = mem_strdup(origin->text),
            .count = h->m.count,
            .failed = w->failed[TALLY_STATEMENTS + i],
            .rows = w->rows[TALLY_STATEMENTS + i],
            .m = h->m,
            .p50_ns = hist_quantile(h, 0.5),
            .p99_ns = hist_quantile(h, 0.99),
        };
    }
}

// Reads each second once, keeping its latencies for the series, and frees the rest of it.
static void read_seconds(const struct gather *g, struct result *r, struct window *w)
{
    struct seconds *s = g->seconds;
    int n = (int)ceil(r->duration_s - 1e-9);

    n = n > s->n ? n : s->n;
    r->n_series = n;
    r->series = mem_calloc((size_t)n, sizeof(*r->series));
    for (int t = 0; t < n; t++) {
        r->series[t].t_s = t;
        r->series[t].latency.m.min_ns = INT64_MAX;
        if (t >= s->n)
            continue;
        w->latency = (struct hist_sparse){.m.min_ns = INT64_MAX};
        w->is_inside = t >= r->warmup_s;
        seconds_read(s, t, read_channel, w);
        seconds_forget(s, t);
        r->series[t].done = s->items[t].done;
        r->series[t].errors = s->items[t].errors;
        r->series[t].latency = w->latency;
        assert(w->latency.m.count == s->items[t].done);
        if (w->is_inside) {
            r->window_done += s->items[t].done;
            r->lock_wait_ns += s->items[t].lock_wait_ns;
        }
    }
}

static void take_window(const struct gather *g, struct result *r)
{
    int n_channels = g->seconds->n_channels;
    struct window w = {
        .hists = mem_calloc((size_t)n_channels, sizeof(*w.hists)),
        .rows = mem_calloc((size_t)n_channels, sizeof(*w.rows)),
        .failed = mem_calloc((size_t)n_channels, sizeof(*w.failed)),
    };

    for (int i = 0; i < n_channels; i++)
        hist_init(&w.hists[i]);
    read_seconds(g, r, &w);
    r->window_s = r->duration_s - r->warmup_s;
    assert(r->window_s > 0);
    r->tps = (double)r->window_done / r->window_s;
    r->latency.present = true;
    hist_sparse_from(&r->latency.hist, &w.hists[TALLY_LATENCY]);
    r->service.present = g->shared->arrivals != NULL;
    hist_sparse_from(&r->service.hist, &w.hists[TALLY_SERVICE]);
    take_given(r, &w, n_channels);
    take_statements(g, r, &w);
    free(w.hists);
    free(w.rows);
    free(w.failed);
}

// ---- status

// Why most of the clients that gave up did so; DB_OK when none did.
static enum db_class give_up_class(const struct gather *g, int *ret_n)
{
    int by_class[DB_CLASS_COUNT] = {0};
    enum db_class most = DB_OK;

    *ret_n = 0;
    for (int i = 0; i < g->shared->plan->clients; i++) {
        const struct client *c = client_of(g, i);
        if (c->end != CLIENT_GAVE_UP)
            continue;
        (*ret_n)++;
        by_class[c->give_up_class]++;
    }
    for (int k = DB_OK + 1; k < DB_CLASS_COUNT; k++)
        if (by_class[k] > by_class[most])
            most = (enum db_class)k;
    return most;
}

static const char *reason_text(const struct gather *g, enum db_class class)
{
    const char *text = g->shared->reasons[class];

    return text[0] ? text : "no words from the server";
}

static void take_reasons(const struct gather *g, struct result *r)
{
    for (int k = DB_OK + 1; k < DB_CLASS_COUNT; k++)
        if (r->errors[k] > 0 && g->shared->reasons[k][0])
            r->reasons[k] = mem_strdup(g->shared->reasons[k]);
}

static char *failure_without_success(const struct gather *g, const struct result *r)
{
    enum db_class most = DB_OK;

    for (int k = DB_OK + 1; k < DB_CLASS_COUNT; k++)
        if (r->errors[k] > r->errors[most])
            most = (enum db_class)k;
    if (most != DB_OK)
        return mem_printf("no transaction succeeded: %s: %s", db_class_name(most),
                          reason_text(g, most));
    if (r->counts.in_flight > 0)
        return mem_printf("no transaction succeeded: %lld were still running at the end; a longer "
                          "--time would let them finish",
                          (long long)r->counts.in_flight);
    return mem_strdup("no transaction succeeded: none was begun");
}

static void judge(const struct gather *g, struct result *r)
{
    int n;
    enum db_class class = give_up_class(g, &n);
    bool all = n == g->shared->plan->clients;

    if (all || (n > 0 && class == DB_FULL)) {
        r->status = mem_strdup("failed");
        r->failure = mem_printf("%s%s gave up after %.1f s: %s: %s", all ? "every" : "a", " client",
                                r->duration_s, db_class_name(class), reason_text(g, class));
    } else if (r->counts.done == 0) {
        r->status = mem_strdup("failed");
        r->failure = failure_without_success(g, r);
    } else {
        r->status = mem_strdup(g->interrupted ? "interrupted" : "done");
    }
    if (n > 0 && !all)
        result_add_warning(r, "clients-gave-up",
                           "%d of %d clients gave up during the run (%s: %s), the rest went on "
                           "without them: look at the server's log, or raise --reconnect-for",
                           n, g->shared->plan->clients, db_class_name(class),
                           reason_text(g, class));
    if (g->n_abandoned > 0)
        result_add_warning(r, "clients-hang",
                           "%d clients hung in calls that did not return, even when cancelled, "
                           "and were left behind: look whether the server still answers",
                           g->n_abandoned);
}

struct result *gather_result(const struct gather *g)
{
    const struct plan *plan = g->shared->plan;
    static const char *const protocols[] = {
        [DB_SIMPLE] = "simple", [DB_EXTENDED] = "extended", [DB_PREPARED] = "prepared"};
    struct result *r = result_new();

    assert(g->end_ns > g->shared->start_ns);
    r->started_mono_ns = g->shared->start_ns;
    r->ended_mono_ns = g->end_ns;
    r->duration_s = (double)(g->end_ns - g->shared->start_ns) / NS_PER_S;
    r->target = mem_strdup(db_display(plan->target));
    r->engine = mem_strdup(db_engine(plan->target));
    r->workload = mem_strdup(plan->workload->name);
    r->workload_hash = mem_strdup(plan->workload->source_hash);
    r->scale = plan->workload->scale;
    r->clients = plan->clients;
    r->protocol = mem_strdup(protocols[plan->protocol]);
    r->seed = plan->seed;
    r->rate_tps = plan->rate_tps;
    sum_clients(g, r);
    take_slowest(g, r);
    take_outages(g, r);
    find_warmup(g, r);
    take_window(g, r);
    take_reasons(g, r);
    judge(g, r);
    result_check(r);
    return r;
}
