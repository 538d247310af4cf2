// One JSON document per run, built as a tree and printed whole. docs/json.md describes every key;
// durations are in the unit their key ends with, and a number that does not exist is null.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "report/events.h"
#include "report/json_value.h"
#include "report/report.h"

// Counters are numbers where they read as numbers.
static json_t *counters_object(const struct kvs *list)
{
    json_t *object = json_object();

    for (size_t i = 0; i < list->n; i++) {
        char *end;
        double value = strtod(list->items[i].value, &end);
        json_object_set_new(object, list->items[i].key,
                            *end ? json_value_text(list->items[i].value)
                                 : json_value_number(value));
    }
    return object;
}

static json_t *histogram(const struct hist_sparse *hist)
{
    json_t *array = json_array();

    for (int i = 0; i < hist->n; i++)
        json_array_append_new(
            array, json_pack("[o, o, I]", json_value_us((double)hist_bucket_low(hist->bucket[i])),
                             json_value_us((double)hist_bucket_high(hist->bucket[i])),
                             (json_int_t)hist->counts[i]));
    return array;
}

static json_t *latency(const struct result_latency *l)
{
    static const struct {
        const char *name;
        double q;
    } quantiles[] = {{"p50", 0.5},  {"p90", 0.9},    {"p95", 0.95},
                     {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999}};
    const struct hist_moments *m = &l->hist.m;
    bool any = m->count > 0;
    json_t *object = json_object();

    json_object_set_new(object, "count", json_integer(m->count));
    json_object_set_new(object, "mean", any ? json_value_us(hist_mean_ns(m)) : json_null());
    json_object_set_new(object, "sd", any ? json_value_us(hist_sd_ns(m)) : json_null());
    json_object_set_new(object, "min", any ? json_value_us((double)m->min_ns) : json_null());
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
        json_object_set_new(
            object, quantiles[i].name,
            any ? json_value_us((double)hist_sparse_quantile(&l->hist, quantiles[i].q))
                : json_null());
    json_object_set_new(object, "max", any ? json_value_us((double)m->max_ns) : json_null());
    json_object_set_new(object, "histogram", histogram(&l->hist));
    return object;
}

static json_t *counts(const struct result_counts *c)
{
    return json_pack("{sI sI sI sI sI sI sI sI sI}", "planned", (json_int_t)c->planned, "done",
                     (json_int_t)c->done, "failed", (json_int_t)c->failed, "skipped",
                     (json_int_t)c->skipped, "unknown", (json_int_t)c->unknown, "backlog",
                     (json_int_t)c->backlog, "in_flight", (json_int_t)c->in_flight, "retried",
                     (json_int_t)c->retried, "retries", (json_int_t)c->retries);
}

// Only classes that occurred: an absent key is zero.
static json_t *errors(const int64_t *by_class)
{
    json_t *object = json_object();

    for (int class = 1; class < DB_CLASS_COUNT; class ++)
        if (by_class[class])
            json_object_set_new(object, db_class_name((enum db_class) class),
                                json_integer(by_class[class]));
    return object;
}

static json_t *statements(const struct result *r)
{
    json_t *array = json_array();

    for (int i = 0; i < r->n_statements; i++) {
        const struct result_statement *s = &r->statements[i];
        bool any = s->m.count > 0;
        json_array_append_new(
            array, json_pack("{so so sI sI sI so so so so}", "script", json_value_text(s->script),
                             "sql", json_value_text(s->sql), "count", (json_int_t)s->count,
                             "failed", (json_int_t)s->failed, "rows", (json_int_t)s->rows,
                             "mean_us", any ? json_value_us(hist_mean_ns(&s->m)) : json_null(),
                             "p50_us", any ? json_value_us((double)s->p50_ns) : json_null(),
                             "p99_us", any ? json_value_us((double)s->p99_ns) : json_null(),
                             "max_us", any ? json_value_us((double)s->m.max_ns) : json_null()));
    }
    return array;
}

static json_t *series(const struct result *r)
{
    json_t *array = json_array();

    for (int i = 0; i < r->n_series; i++) {
        const struct result_second *s = &r->series[i];
        bool any = s->latency.m.count > 0;
        // The last second may be cut: its rate is over the part that was.
        double part_s = fmin(1.0, r->duration_s - s->t_s);
        json_array_append_new(
            array,
            json_pack(
                "{sI so so so so sI}", "t_s", (json_int_t)s->t_s, "tps",
                json_value_number(part_s > 0 ? (double)s->done / part_s : (double)s->done),
                "p50_us",
                any ? json_value_us((double)hist_sparse_quantile(&s->latency, 0.5)) : json_null(),
                "p99_us",
                any ? json_value_us((double)hist_sparse_quantile(&s->latency, 0.99)) : json_null(),
                "max_us", any ? json_value_us((double)s->latency.m.max_ns) : json_null(), "errors",
                (json_int_t)s->errors));
    }
    return array;
}

static json_t *slowest(const struct result *r)
{
    json_t *array = json_array();

    for (int i = 0; i < r->n_slowest; i++) {
        const struct result_slow *s = &r->slowest[i];
        json_array_append_new(array,
                              json_pack("{si sI so so si}", "client", s->client, "number",
                                        (json_int_t)s->number, "end_s",
                                        json_value_number((double)s->end_ns / 1e9), "latency_us",
                                        json_value_us((double)s->latency_ns), "script", s->script));
    }
    return array;
}

static json_t *outages(const struct result *r)
{
    json_t *array = json_array();

    for (int i = 0; i < r->n_outages; i++)
        json_array_append_new(array, json_pack("{so so}", "from_s",
                                               json_value_number(r->outages[i].from_s), "to_s",
                                               json_value_number(r->outages[i].to_s)));
    return array;
}

static json_t *events(const struct result *r)
{
    struct report_event e;
    json_t *array = json_array();

    for (int i = 0; report_event_at(r, i, &e); i++)
        json_array_append_new(
            array,
            json_pack("{so so so so so so so so}", "what", json_value_text(e.what), "outcome",
                      json_value_text(e.outcome), "at_s", json_value_number(e.at_s), "from_s",
                      json_value_number(e.from_s), "to_s", json_value_number(e.to_s), "tps_before",
                      json_value_number(e.before_tps), "tps_during",
                      json_value_number(e.during_tps), "tps_after",
                      json_value_number(e.after_tps)));
    return array;
}

static json_t *warnings(const struct result *r)
{
    json_t *array = json_array();

    for (int i = 0; i < r->n_warnings; i++)
        json_array_append_new(array, json_pack("{so so}", "id", json_value_text(r->warnings[i].id),
                                               "text", json_value_text(r->warnings[i].text)));
    return array;
}

static json_t *watch(const struct result *r)
{
    json_t *array = json_array();

    for (int i = 0; i < r->n_watch; i++) {
        const struct result_watch *w = &r->watch[i];
        json_t *values = json_array();
        for (int s = 0; s < w->n; s++)
            json_array_append_new(values, json_value_number(w->values[s]));
        json_array_append_new(array, json_pack("{so so so}", "subject", json_value_text(w->subject),
                                               "name", json_value_text(w->name), "values", values));
    }
    return array;
}

static json_t *limit(const struct result *r)
{
    return r->limit_id ? json_pack("{so so}", "id", json_value_text(r->limit_id), "text",
                                   json_value_text(r->limit_text))
                       : json_null();
}

static json_t *clients_done(const struct result *r)
{
    json_t *array = json_array();

    for (int64_t i = 0; r->done_by_client && i < r->clients; i++)
        json_array_append_new(array, json_integer(r->done_by_client[i]));
    return array;
}

static void add_identity(json_t *root, const struct result *r)
{
    char started[32];

    clock_format_utc(r->started_real_ns, started, sizeof(started));
    json_object_set_new(root, "schema", json_string(REPORT_JSON_SCHEMA));
    json_object_set_new(root, "status", json_value_text(r->status));
    json_object_set_new(root, "failure", json_value_text(r->failure));
    json_object_set_new(root, "run_id", json_integer(r->id));
    json_object_set_new(root, "uuid", json_value_text(r->uuid));
    json_object_set_new(root, "label", json_value_text(r->label));
    json_object_set_new(root, "note", json_value_text(r->note));
    json_object_set_new(root, "block", r->block ? json_integer(r->block) : json_null());
    json_object_set_new(root, "prony_version", json_value_text(r->prony_version));
    json_object_set_new(root, "command", json_value_text(r->command));
    json_object_set_new(root, "started_utc", json_string(started));
    json_object_set_new(root, "target", json_value_text(r->target));
    json_object_set_new(root, "engine",
                        json_pack("{so so}", "name", json_value_text(r->engine), "version",
                                  json_value_text(r->engine_version)));
    json_object_set_new(root, "workload",
                        json_pack("{so so so}", "name", json_value_text(r->workload), "hash",
                                  json_value_text(r->workload_hash), "scale",
                                  r->scale ? json_integer(r->scale) : json_null()));
    json_object_set_new(root, "clients", json_integer(r->clients));
    json_object_set_new(root, "threads", json_integer(r->threads));
    json_object_set_new(root, "loop", json_value_text(r->loop));
    json_object_set_new(root, "protocol", json_value_text(r->protocol));
    json_object_set_new(root, "pipeline", json_value_text(result_pipeline(r)));
    json_object_set_new(root, "seed", json_integer((json_int_t)r->seed));
    json_object_set_new(root, "rate_tps",
                        r->rate_tps > 0 ? json_value_number(r->rate_tps) : json_null());
    json_object_set_new(root, "options", json_value_kvs(&r->options));
}

static void add_measures(json_t *root, const struct result *r)
{
    json_object_set_new(root, "duration_s", json_value_number(r->duration_s));
    json_object_set_new(root, "warmup_s", json_value_number(r->warmup_s));
    json_object_set_new(root, "window_s", json_value_number(r->window_s));
    json_object_set_new(root, "steady", json_boolean(r->steady));
    json_object_set_new(root, "steady_why", json_value_text(r->steady_why));
    json_object_set_new(root, "transactions", counts(&r->counts));
    json_object_set_new(root, "errors", errors(r->errors));
    json_object_set_new(root, "throughput",
                        json_pack("{so sI}", "tps", json_value_number(r->tps), "transactions",
                                  (json_int_t)r->window_done));
    json_object_set_new(root, "latency_us", latency(&r->latency));
    if (r->service.present)
        json_object_set_new(root, "service_us", latency(&r->service));
    if (r->given_hist.m.count) {
        struct result_latency given = {.present = true, .hist = r->given_hist};
        json_object_set_new(root, "given_delay_us", latency(&given));
    }
    json_object_set_new(root, "lock_wait_s", json_value_number((double)r->lock_wait_ns / 1e9));
    json_object_set_new(root, "statements", statements(r));
    json_object_set_new(root, "series", series(r));
    json_object_set_new(root, "events", events(r));
    json_object_set_new(root, "slowest", slowest(r));
    json_object_set_new(root, "done_by_client", clients_done(r));
    json_object_set_new(root, "connections",
                        json_pack("{sI sI so so}", "reconnects", (json_int_t)r->reconnects,
                                  "attempts", (json_int_t)r->reconnect_attempts, "outage_s",
                                  json_value_number(r->outage_s), "outages", outages(r)));
    json_object_set_new(root, "client_cpu",
                        json_pack("{so so so sI}", "user_s", json_value_number(r->cpu_user_s),
                                  "sys_s", json_value_number(r->cpu_sys_s), "us_per_statement",
                                  json_value_number(r->cpu_us_per_statement), "statements",
                                  (json_int_t)r->statements_sent));
}

int report_json(const struct result *result, FILE *out)
{
    json_t *root = json_object();

    add_identity(root, result);
    add_measures(root, result);
    json_object_set_new(root, "limit", limit(result));
    json_object_set_new(root, "watch", watch(result));
    json_object_set_new(root, "counters", counters_object(&result->counters));
    json_object_set_new(root, "warnings", warnings(result));
    json_object_set_new(root, "environment", json_value_kvs(&result->environment));
    return json_value_dump(root, out);
}

int report_list_json(const struct store_row *rows, int n, FILE *out)
{
    json_t *array = json_array();

    for (int i = 0; i < n; i++) {
        const struct store_row *row = &rows[i];
        char started[32];
        clock_format_utc(row->started_real_ns, started, sizeof(started));
        json_array_append_new(
            array, json_pack("{sI so ss so so so so sI so so so sI}", "run_id", (json_int_t)row->id,
                             "label", json_value_text(row->label), "started_utc", started, "status",
                             json_value_text(row->status), "target", json_value_text(row->target),
                             "engine", json_value_text(row->engine), "workload",
                             json_value_text(row->workload), "clients", (json_int_t)row->clients,
                             "duration_s", json_value_number(row->duration_s), "tps",
                             json_value_number(row->tps), "p99_us",
                             row->p99_us > 0 ? json_value_number(row->p99_us) : json_null(),
                             "doubts", (json_int_t)row->warnings));
    }
    return json_value_dump(array, out);
}
