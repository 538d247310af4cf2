// Keeping a result: one transaction, all rows or none.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "store/internal.h"

#define FIELD(column_name, kind, member)                   \
    {                                                      \
        column_name, kind, offsetof(struct result, member) \
    }

const struct field store_run_fields[] = {
    FIELD("uuid", FIELD_TEXT, uuid),
    FIELD("status", FIELD_TEXT, status),
    FIELD("failure", FIELD_TEXT, failure),
    FIELD("started_real_ns", FIELD_INT, started_real_ns),
    FIELD("ended_real_ns", FIELD_INT, ended_real_ns),
    FIELD("started_mono_ns", FIELD_INT, started_mono_ns),
    FIELD("ended_mono_ns", FIELD_INT, ended_mono_ns),
    FIELD("boot_id", FIELD_TEXT, boot_id),
    FIELD("prony_version", FIELD_TEXT, prony_version),
    FIELD("command", FIELD_TEXT, command),
    FIELD("label", FIELD_TEXT, label),
    FIELD("note", FIELD_TEXT, note),
    FIELD("block", FIELD_INT, block),
    FIELD("target", FIELD_TEXT, target),
    FIELD("engine", FIELD_TEXT, engine),
    FIELD("engine_version", FIELD_TEXT, engine_version),
    FIELD("workload", FIELD_TEXT, workload),
    FIELD("workload_hash", FIELD_TEXT, workload_hash),
    FIELD("scale", FIELD_INT, scale),
    FIELD("clients", FIELD_INT, clients),
    FIELD("threads", FIELD_INT, threads),
    FIELD("loop", FIELD_TEXT, loop),
    FIELD("protocol", FIELD_TEXT, protocol),
    FIELD("seed", FIELD_SEED, seed),
    FIELD("rate_tps", FIELD_REAL, rate_tps),
    FIELD("duration_s", FIELD_REAL, duration_s),
    FIELD("warmup_s", FIELD_REAL, warmup_s),
    FIELD("steady", FIELD_BOOL, steady),
    FIELD("steady_why", FIELD_TEXT, steady_why),
    FIELD("planned", FIELD_INT, counts.planned),
    FIELD("done", FIELD_INT, counts.done),
    FIELD("failed", FIELD_INT, counts.failed),
    FIELD("skipped", FIELD_INT, counts.skipped),
    FIELD("unknown", FIELD_INT, counts.unknown),
    FIELD("backlog", FIELD_INT, counts.backlog),
    FIELD("in_flight", FIELD_INT, counts.in_flight),
    FIELD("retried", FIELD_INT, counts.retried),
    FIELD("retries", FIELD_INT, counts.retries),
    FIELD("window_s", FIELD_REAL, window_s),
    FIELD("window_done", FIELD_INT, window_done),
    FIELD("tps", FIELD_REAL, tps),
    FIELD("lock_wait_ns", FIELD_INT, lock_wait_ns),
    FIELD("reconnects", FIELD_INT, reconnects),
    FIELD("reconnect_attempts", FIELD_INT, reconnect_attempts),
    FIELD("outage_s", FIELD_REAL, outage_s),
    FIELD("cpu_user_s", FIELD_REAL, cpu_user_s),
    FIELD("cpu_sys_s", FIELD_REAL, cpu_sys_s),
    FIELD("cpu_us_per_statement", FIELD_REAL, cpu_us_per_statement),
    FIELD("statements_sent", FIELD_INT, statements_sent),
    FIELD("limit_id", FIELD_TEXT, limit_id),
    FIELD("limit_text", FIELD_TEXT, limit_text),
    {NULL},
};

// ---- binding

static void bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
    sqlite3_bind_text(stmt, at, text, -1, SQLITE_TRANSIENT); // NULL binds NULL
}

static void bind_us(sqlite3_stmt *stmt, int at, double ns)
{
    sqlite3_bind_double(stmt, at, ns / NS_PER_US);
}

static void bind_hist(sqlite3_stmt *stmt, int at, const struct hist_sparse *hist)
{
    struct str bytes = STR_INIT;

    if (hist->m.count > 0) {
        hist_encode(hist, &bytes);
        sqlite3_bind_blob(stmt, at, bytes.buf, (int)bytes.len, SQLITE_TRANSIENT);
    }
    str_release(&bytes);
}

static void bind_field(sqlite3_stmt *stmt, int at, const struct field *field,
                       const struct result *result)
{
    const void *value = (const char *)result + field->offset;
    char seed[32];

    switch (field->type) {
    case FIELD_TEXT:
        bind_text(stmt, at, *(char *const *)value);
        break;
    case FIELD_INT:
        sqlite3_bind_int64(stmt, at, *(const int64_t *)value);
        break;
    case FIELD_REAL:
        sqlite3_bind_double(stmt, at, *(const double *)value);
        break;
    case FIELD_BOOL:
        sqlite3_bind_int(stmt, at, *(const bool *)value);
        break;
    case FIELD_SEED: // 64 unsigned bits do not fit SQLite's integers
        snprintf(seed, sizeof(seed), "%llu", (unsigned long long)*(const uint64_t *)value);
        bind_text(stmt, at, seed);
        break;
    }
}

// Runs a bound insert and makes it ready for the next row.
static int step_row(struct store *store, sqlite3_stmt *stmt, struct err *err)
{
    int rc = sqlite3_step(stmt);

    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return rc == SQLITE_DONE ? 0 : store_fail(store, "keeping the result", err);
}

// ---- the run's own row

static int put_run(struct store *store, struct result *result, struct err *err)
{
    static const char *const derived =
        "started_utc, latency_mean_us, latency_sd_us, latency_p50_us, latency_p90_us, "
        "latency_p99_us, latency_p999_us, latency_max_us, latency_histogram, "
        "service_histogram, given_histogram";
    static const double quantiles[] = {0.5, 0.9, 0.99, 0.999};
    const struct hist_sparse *latency = &result->latency.hist;
    struct str sql = STR_INIT;
    sqlite3_stmt *stmt;
    char utc[32];
    int n = 0;

    str_add(&sql, "INSERT INTO runs (");
    for (; store_run_fields[n].column; n++)
        str_addf(&sql, "%s, ", store_run_fields[n].column);
    str_addf(&sql, "%s) VALUES (", derived);
    for (int i = 0; i < n + 11; i++)
        str_add(&sql, i ? ", ?" : "?");
    str_add(&sql, ")");
    int rc = store_prepare(store, &stmt, sql.buf, "keeping the result", err);
    str_release(&sql);
    if (rc < 0)
        return rc;

    for (int i = 0; i < n; i++)
        bind_field(stmt, i + 1, &store_run_fields[i], result);
    clock_format_utc(result->started_real_ns, utc, sizeof(utc));
    bind_text(stmt, ++n, utc);
    if (result->latency.present && latency->m.count > 0) {
        bind_us(stmt, n + 1, hist_mean_ns(&latency->m));
        bind_us(stmt, n + 2, hist_sd_ns(&latency->m));
        for (int i = 0; i < 4; i++)
            bind_us(stmt, n + 3 + i, (double)hist_sparse_quantile(latency, quantiles[i]));
        bind_us(stmt, n + 7, (double)latency->m.max_ns);
        bind_hist(stmt, n + 8, latency);
    }
    if (result->service.present)
        bind_hist(stmt, n + 9, &result->service.hist);
    bind_hist(stmt, n + 10, &result->given_hist);
    rc = step_row(store, stmt, err);
    sqlite3_finalize(stmt);
    if (rc == 0)
        result->id = sqlite3_last_insert_rowid(store->db);
    return rc;
}

// ---- what belongs to it: each binds row i from its second parameter on

typedef void bind_row_fn(sqlite3_stmt *stmt, const struct result *result, int i);

static int put_rows(struct store *store, const struct result *result, const char *sql, int n,
                    bind_row_fn *bind, struct err *err)
{
    sqlite3_stmt *stmt;
    int rc = store_prepare(store, &stmt, sql, "keeping the result", err);

    for (int i = 0; rc == 0 && i < n; i++) {
        sqlite3_bind_int64(stmt, 1, result->id);
        bind(stmt, result, i);
        rc = step_row(store, stmt, err);
    }
    sqlite3_finalize(stmt);
    return rc;
}

static void bind_second(sqlite3_stmt *stmt, const struct result *result, int i)
{
    const struct result_second *second = &result->series[i];

    sqlite3_bind_int(stmt, 2, second->t_s);
    sqlite3_bind_int64(stmt, 3, second->done);
    sqlite3_bind_int64(stmt, 4, second->errors);
    if (second->latency.m.count > 0) {
        bind_us(stmt, 5, (double)hist_sparse_quantile(&second->latency, 0.5));
        bind_us(stmt, 6, (double)hist_sparse_quantile(&second->latency, 0.99));
        bind_us(stmt, 7, (double)second->latency.m.max_ns);
        bind_hist(stmt, 8, &second->latency);
    }
}

static void bind_statement(sqlite3_stmt *stmt, const struct result *result, int i)
{
    const struct result_statement *s = &result->statements[i];

    sqlite3_bind_int(stmt, 2, i);
    bind_text(stmt, 3, s->script);
    bind_text(stmt, 4, s->sql);
    sqlite3_bind_int64(stmt, 5, s->count);
    sqlite3_bind_int64(stmt, 6, s->failed);
    sqlite3_bind_int64(stmt, 7, s->rows);
    if (s->m.count > 0) {
        bind_us(stmt, 8, hist_mean_ns(&s->m));
        bind_us(stmt, 9, hist_sd_ns(&s->m));
        bind_us(stmt, 10, (double)s->m.min_ns);
        bind_us(stmt, 11, (double)s->p50_ns);
        bind_us(stmt, 12, (double)s->p99_ns);
        bind_us(stmt, 13, (double)s->m.max_ns);
    }
    sqlite3_bind_double(stmt, 14, s->m.sum_ns);
    sqlite3_bind_double(stmt, 15, s->m.sum_sq);
}

static void bind_slow(sqlite3_stmt *stmt, const struct result *result, int i)
{
    const struct result_slow *slow = &result->slowest[i];

    sqlite3_bind_int(stmt, 2, i + 1);
    sqlite3_bind_int(stmt, 3, slow->client);
    sqlite3_bind_int64(stmt, 4, slow->number);
    sqlite3_bind_int64(stmt, 5, slow->end_ns);
    sqlite3_bind_int64(stmt, 6, slow->latency_ns);
    sqlite3_bind_int(stmt, 7, slow->script);
}

static void bind_client(sqlite3_stmt *stmt, const struct result *result, int i)
{
    sqlite3_bind_int(stmt, 2, i);
    sqlite3_bind_int64(stmt, 3, result->done_by_client[i]);
}

static void bind_outage(sqlite3_stmt *stmt, const struct result *result, int i)
{
    sqlite3_bind_double(stmt, 2, result->outages[i].from_s);
    sqlite3_bind_double(stmt, 3, result->outages[i].to_s);
}

static void bind_error(sqlite3_stmt *stmt, const struct result *result, int i)
{
    bind_text(stmt, 2, db_class_name((enum db_class)(i + 1))); // DB_OK is no error
    sqlite3_bind_int64(stmt, 3, result->errors[i + 1]);
}

static void bind_warning(sqlite3_stmt *stmt, const struct result *result, int i)
{
    sqlite3_bind_int(stmt, 2, i);
    bind_text(stmt, 3, result->warnings[i].id);
    bind_text(stmt, 4, result->warnings[i].text);
}

static void bind_kv(sqlite3_stmt *stmt, const struct kvs *list, int i)
{
    sqlite3_bind_int(stmt, 2, i);
    bind_text(stmt, 3, list->items[i].key);
    bind_text(stmt, 4, list->items[i].value);
}

static void bind_option(sqlite3_stmt *stmt, const struct result *result, int i)
{
    bind_kv(stmt, &result->options, i);
}

static void bind_counter(sqlite3_stmt *stmt, const struct result *result, int i)
{
    bind_kv(stmt, &result->counters, i);
}

static void bind_environment(sqlite3_stmt *stmt, const struct result *result, int i)
{
    bind_kv(stmt, &result->environment, i);
}

// "[0.98,null,1]": five digits are more than a sample is worth.
static void bind_watch(sqlite3_stmt *stmt, const struct result *result, int i)
{
    const struct result_watch *watch = &result->watch[i];
    struct str text = STR_INIT;

    str_addc(&text, '[');
    for (int s = 0; s < watch->n; s++) {
        str_add(&text, s ? "," : "");
        if (isfinite(watch->values[s]))
            str_addf(&text, "%.5g", watch->values[s]);
        else
            str_add(&text, "null");
    }
    str_addc(&text, ']');
    sqlite3_bind_int(stmt, 2, i);
    bind_text(stmt, 3, watch->subject);
    bind_text(stmt, 4, watch->name);
    bind_text(stmt, 5, text.buf);
    str_release(&text);
}

static int put_parts(struct store *store, const struct result *r, struct err *err)
{
    const struct {
        const char *sql;
        int n;
        bind_row_fn *bind;
    } parts[] = {
        {"INSERT INTO series VALUES (?, ?, ?, ?, ?, ?, ?, ?)", r->n_series, bind_second},
        {"INSERT INTO statements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
         r->n_statements, bind_statement},
        {"INSERT INTO slowest VALUES (?, ?, ?, ?, ?, ?, ?)", r->n_slowest, bind_slow},
        {"INSERT INTO clients VALUES (?, ?, ?)", r->done_by_client ? (int)r->clients : 0,
         bind_client},
        {"INSERT INTO outages VALUES (?, ?, ?)", r->n_outages, bind_outage},
        {"INSERT INTO errors VALUES (?, ?, ?)", DB_CLASS_COUNT - 1, bind_error},
        {"INSERT INTO warnings VALUES (?, ?, ?, ?)", r->n_warnings, bind_warning},
        {"INSERT INTO options VALUES (?, ?, ?, ?)", (int)r->options.n, bind_option},
        {"INSERT INTO counters VALUES (?, ?, ?, ?)", (int)r->counters.n, bind_counter},
        {"INSERT INTO watch VALUES (?, ?, ?, ?, ?)", r->n_watch, bind_watch},
        {"INSERT INTO environment VALUES (?, ?, ?, ?)", (int)r->environment.n, bind_environment},
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (put_rows(store, r, parts[i].sql, parts[i].n, parts[i].bind, err) < 0)
            return -1;
    return 0;
}

int store_put(struct store *store, struct result *result, struct err *err)
{
    assert(store->mode == STORE_WRITE && result->uuid);
    result_check(result);
    if (store_begin(store, err) < 0)
        return -1;
    if (put_run(store, result, err) < 0 || put_parts(store, result, err) < 0 ||
        store_exec(store, "COMMIT", "keeping the result", err) < 0) {
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
        result->id = 0;
        return -1;
    }
    return 0;
}
