#include "store/result.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"

struct result *result_new(void)
{
    return mem_calloc(1, sizeof(struct result));
}

static void result_free_texts(struct result *r)
{
    char *texts[] = {
        r->uuid,          r->status, r->failure,  r->boot_id,    r->prony_version,  r->command,
        r->label,         r->note,   r->target,   r->engine,     r->engine_version, r->workload,
        r->workload_hash, r->loop,   r->protocol, r->steady_why, r->limit_id,       r->limit_text,
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        free(texts[i]);
}

void result_free(struct result *r)
{
    if (!r)
        return;
    result_free_texts(r);
    kvs_release(&r->options);
    kvs_release(&r->counters);
    kvs_release(&r->environment);
    hist_sparse_release(&r->latency.hist);
    hist_sparse_release(&r->service.hist);
    hist_sparse_release(&r->given_hist);
    for (int i = 0; i < r->n_statements; i++) {
        free(r->statements[i].script);
        free(r->statements[i].sql);
    }
    free(r->statements);
    for (int i = 0; i < DB_CLASS_COUNT; i++)
        free(r->reasons[i]);
    for (int i = 0; i < r->n_series; i++)
        hist_sparse_release(&r->series[i].latency);
    free(r->series);
    free(r->slowest);
    free(r->done_by_client);
    free(r->outages);
    for (int i = 0; i < r->n_warnings; i++) {
        free(r->warnings[i].id);
        free(r->warnings[i].text);
    }
    free(r->warnings);
    for (int i = 0; i < r->n_watch; i++)
        result_watch_release(&r->watch[i]);
    free(r->watch);
    free(r);
}

// A broken invariant is a bug of ours: say which, with the numbers, and stop.
static void result_require(bool holds, const char *what, const struct result *r)
{
    if (holds)
        return;
    const struct result_counts *c = &r->counts;
    fprintf(stderr,
            "prony: bug: %s (planned %lld done %lld failed %lld skipped %lld unknown %lld "
            "backlog %lld in_flight %lld retried %lld retries %lld)\n",
            what, (long long)c->planned, (long long)c->done, (long long)c->failed,
            (long long)c->skipped, (long long)c->unknown, (long long)c->backlog,
            (long long)c->in_flight, (long long)c->retried, (long long)c->retries);
    abort();
}

void result_check(const struct result *r)
{
    const struct result_counts *c = &r->counts;
    int64_t by_client = 0;

    result_require(c->done >= 0 && c->failed >= 0 && c->skipped >= 0 && c->unknown >= 0 &&
                       c->backlog >= 0 && c->in_flight >= 0 && c->retried >= 0 && c->retries >= 0,
                   "a count is negative", r);
    result_require(c->planned ==
                       c->done + c->failed + c->skipped + c->unknown + c->backlog + c->in_flight,
                   "the outcomes do not add up to what was planned", r);
    result_require(c->retries >= c->retried, "fewer retries than retried transactions", r);
    result_require(r->window_done <= c->done, "the window holds more than the run", r);
    result_require(!r->latency.present || r->latency.hist.m.count == r->window_done,
                   "latencies and transactions of the window differ in number", r);
    for (int64_t i = 0; r->done_by_client && i < r->clients; i++)
        by_client += r->done_by_client[i];
    result_require(!r->done_by_client || by_client == c->done, "clients' sums differ", r);
}

void result_add_warning(struct result *r, const char *id, const char *fmt, ...)
{
    struct str text = STR_INIT;
    va_list ap;

    assert(!result_has_warning(r, id));
    va_start(ap, fmt);
    str_vaddf(&text, fmt, ap);
    va_end(ap);
    r->warnings = mem_resize(r->warnings, (size_t)r->n_warnings + 1, sizeof(*r->warnings));
    r->warnings[r->n_warnings++] =
        (struct result_warning){.id = mem_strdup(id), .text = str_detach(&text)};
}

bool result_has_warning(const struct result *r, const char *id)
{
    for (int i = 0; i < r->n_warnings; i++)
        if (strcmp(r->warnings[i].id, id) == 0)
            return true;
    return false;
}

const char *result_pipeline(const struct result *result)
{
    const char *kept = kvs_get(&result->environment, RESULT_PIPELINE);

    return kept ? kept : "none"; // before there were pipelines
}

// ---- watching

void result_watch_set(struct result_watch *watch, int second, double value)
{
    size_t n = (size_t)watch->n, cap = (size_t)watch->cap;

    assert(second >= 0);
    while (n <= (size_t)second)
        *ARR_PUSH(watch->values, n, cap) = NAN;
    watch->values[second] = value;
    watch->n = (int)n;
    watch->cap = (int)cap;
}

void result_watch_release(struct result_watch *watch)
{
    free(watch->subject);
    free(watch->name);
    free(watch->values);
}

double result_watch_mean(const struct result *r, const char *subject, const char *name)
{
    double sum = 0;
    int n = 0;

    for (int i = 0; i < r->n_watch; i++) {
        const struct result_watch *w = &r->watch[i];
        if (strcmp(w->subject, subject) != 0 || strcmp(w->name, name) != 0)
            continue;
        for (int s = (int)ceil(r->warmup_s); s < w->n && s < r->duration_s; s++)
            if (isfinite(w->values[s])) {
                sum += w->values[s];
                n++;
            }
    }
    return n > 0 ? sum / n : NAN;
}
