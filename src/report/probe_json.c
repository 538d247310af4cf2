// The document of a probe: docs/json.md describes every key.
#include <jansson.h>
#include <math.h>

#include "base/clock.h"
#include "base/str.h"
#include "report/json_value.h"
#include "report/probe.h"
#include "report/probe_words.h"

static json_t *latency(const struct hist *hist)
{
    static const struct {
        const char *name;
        double q;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}};
    json_t *object = json_object();

    json_object_set_new(object, "count", json_integer(hist->m.count));
    json_object_set_new(object, "mean", json_value_us(hist_mean_ns(&hist->m)));
    json_object_set_new(object, "min", json_value_us((double)hist->m.min_ns));
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
        json_object_set_new(object, quantiles[i].name,
                            json_value_us((double)hist_quantile(hist, quantiles[i].q)));
    json_object_set_new(object, "max", json_value_us((double)hist->m.max_ns));
    return object;
}

static json_t *measure(const struct report_probe *report, const struct probe_measure *m)
{
    json_t *object = json_object(), *slices = json_array();
    bool cached = m->is_block && report->probe->through_cache[0];
    double bytes_per_s = m->block_bytes ? m->rate.mean * (double)m->block_bytes : NAN;

    for (int i = 0; i < m->n_slices; i++)
        json_array_append_new(slices, json_value_number(m->per_s[i]));
    json_object_set_new(object, "id", json_string(m->id));
    json_object_set_new(object, "how", json_string(m->how));
    json_object_set_new(object, "block_bytes",
                        m->block_bytes ? json_integer(m->block_bytes) : json_null());
    json_object_set_new(object, "per_s", json_value_number(m->rate.mean));
    json_object_set_new(object, "low_per_s", json_value_number(m->rate.low));
    json_object_set_new(object, "high_per_s", json_value_number(m->rate.high));
    json_object_set_new(object, "bytes_per_s", json_value_number(bytes_per_s));
    json_object_set_new(object, "slices_per_s", slices);
    json_object_set_new(object, "operations", json_integer(m->operations));
    json_object_set_new(object, "flushes", json_integer(m->flushes));
    json_object_set_new(object, "seconds", json_value_number(m->seconds));
    json_object_set_new(object, "through_cache", json_boolean(cached));
    json_object_set_new(object, "latency_us", latency(&m->latency));
    return object;
}

static json_t *sentences(const struct kvs *list)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->n; i++) {
        json_t *object = json_object();
        json_object_set_new(object, "id", json_string(list->items[i].key));
        json_object_set_new(object, "text", json_value_text(list->items[i].value));
        json_array_append_new(array, object);
    }
    return array;
}

static void add_identity(json_t *root, const struct report_probe *report)
{
    const struct probe_result *p = report->probe;
    struct str answer = STR_INIT;
    char started[32];

    clock_format_utc(p->started_real_ns, started, sizeof(started));
    probe_words_answer(report, &answer);
    json_object_set_new(root, "schema", json_string(REPORT_PROBE_SCHEMA));
    json_object_set_new(root, "status", json_string(p->interrupted ? "interrupted" : "done"));
    json_object_set_new(root, "prony_version", json_value_text(report->version));
    json_object_set_new(root, "command", json_value_text(report->command));
    json_object_set_new(root, "started_utc", json_string(started));
    json_object_set_new(root, "path", json_value_text(p->dir));
    json_object_set_new(root, "answer", json_value_text(answer.buf));
    json_object_set_new(root, "seconds", json_value_number(p->seconds));
    json_object_set_new(root, "layout_seconds", json_value_number(p->layout_seconds));
    json_object_set_new(root, "asked_bytes", json_integer(p->asked_bytes));
    json_object_set_new(root, "file_bytes", json_integer(p->file_bytes));
    json_object_set_new(root, "rounds", json_integer(p->rounds));
    json_object_set_new(root, "io", json_string(p->io));
    json_object_set_new(root, "io_why", json_value_text(p->io_why[0] ? p->io_why : NULL));
    json_object_set_new(root, "through_cache",
                        json_value_text(p->through_cache[0] ? p->through_cache : NULL));
    str_release(&answer);
}

int report_probe_json(const struct report_probe *report, FILE *out)
{
    struct kvs meaning = KVS_INIT, doubts = KVS_INIT;
    json_t *root = json_object(), *measures = json_array();

    add_identity(root, report);
    for (int i = 0; i < PROBE_KINDS; i++)
        json_array_append_new(measures, measure(report, &report->probe->measures[i]));
    json_object_set_new(root, "measures", measures);
    probe_words_meaning(report, &meaning);
    probe_words_doubts(report, &doubts);
    json_object_set_new(root, "meaning", sentences(&meaning));
    json_object_set_new(root, "warnings", sentences(&doubts));
    json_object_set_new(root, "environment", json_value_kvs(report->environment));
    kvs_release(&meaning);
    kvs_release(&doubts);
    return json_value_dump(root, out);
}
