// Reading a result back: by which words a run is found, and its rows into the struct they came
// from.
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/internal.h"

// Far beyond what runs have; they bound what a damaged file can make us allocate.
#define CLIENTS_MAX  10000000
#define DURATION_MAX 1e8

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0' && strlen(text) < 18;
}

static bool is_uuid_prefix(const char *text)
{
    return strlen(text) >= 6 && text[strspn(text, "0123456789abcdef-")] == '\0';
}

// Runs a lookup with one text parameter. Returns rows found (at most 2 are looked at).
static int find_by(struct store *store, const char *sql, const char *word, int64_t *ret_id,
                   struct err *err)
{
    sqlite3_stmt *stmt;
    int n = 0;

    if (store_prepare(store, &stmt, sql, "looking up a run", err) < 0)
        return -1;
    sqlite3_bind_text(stmt, 1, word, -1, SQLITE_STATIC);
    while (n < 2 && sqlite3_step(stmt) == SQLITE_ROW)
        if (n++ == 0)
            *ret_id = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return n;
}

int store_find(struct store *store, const char *which, int64_t *ret_id, struct err *err)
{
    int n = 0;

    if (strcmp(which, "last") == 0) {
        n = find_by(store, "SELECT max(id) FROM runs WHERE ?1 NOTNULL HAVING max(id) NOTNULL",
                    which, ret_id, err);
        if (n == 0)
            return err_set(err, ERR_USAGE, "results file %s holds no run yet", store->path);
        return n < 0 ? -1 : 0;
    }
    if (is_number(which))
        n = find_by(store, "SELECT id FROM runs WHERE id = CAST(?1 AS INTEGER)", which, ret_id,
                    err);
    if (n == 0)
        n = find_by(store, "SELECT max(id) FROM runs WHERE label = ?1 HAVING max(id) NOTNULL",
                    which, ret_id, err);
    if (n == 0 && is_uuid_prefix(which))
        n = find_by(store, "SELECT id FROM runs WHERE substr(uuid, 1, length(?1)) = ?1", which,
                    ret_id, err);
    if (n == 0)
        return err_set(err, ERR_USAGE,
                       "no run %s in results file %s: give a number from `prony list`, a label, "
                       "or last",
                       which, store->path);
    if (n > 1)
        return err_set(err, ERR_USAGE, "several runs begin with %s: give more of it", which);
    return n < 0 ? -1 : 0;
}

// ---- columns

static char *column_text(sqlite3_stmt *stmt, int at)
{
    return mem_strdup((const char *)sqlite3_column_text(stmt, at));
}

static int column_hist(sqlite3_stmt *stmt, int at, struct hist_sparse *ret)
{
    if (sqlite3_column_type(stmt, at) == SQLITE_NULL)
        return 0;
    return hist_decode(ret, sqlite3_column_blob(stmt, at), sqlite3_column_bytes(stmt, at));
}

static int64_t column_ns(sqlite3_stmt *stmt, int at)
{
    return (int64_t)(sqlite3_column_double(stmt, at) * 1e3 + 0.5);
}

static void read_field(sqlite3_stmt *stmt, int at, const struct field *field, struct result *result)
{
    void *value = (char *)result + field->offset;

    switch (field->type) {
    case FIELD_TEXT:
        *(char **)value = column_text(stmt, at);
        break;
    case FIELD_INT:
        *(int64_t *)value = sqlite3_column_int64(stmt, at);
        break;
    case FIELD_REAL:
        *(double *)value = sqlite3_column_double(stmt, at);
        break;
    case FIELD_BOOL:
        *(bool *)value = sqlite3_column_int(stmt, at) != 0;
        break;
    case FIELD_SEED:
        if (sqlite3_column_text(stmt, at))
            *(uint64_t *)value = strtoull((const char *)sqlite3_column_text(stmt, at), NULL, 10);
        break;
    }
}

static int damaged(struct store *store, int64_t id, struct err *err)
{
    return err_set(err, ERR_FAILED,
                   "results file %s: run %lld is damaged: export it from where it came once more",
                   store->path, (long long)id);
}

// A file from elsewhere was not checked by us when it was written.
static bool is_sound(const struct result *r)
{
    return r->uuid && r->status && r->target && r->engine && r->workload && r->protocol &&
           r->loop && r->prony_version && r->clients >= 1 && r->clients <= CLIENTS_MAX &&
           r->duration_s >= 0 && r->duration_s <= DURATION_MAX;
}

static int get_run(struct store *store, struct result *result, struct err *err)
{
    struct str sql = STR_INIT;
    sqlite3_stmt *stmt;
    int n = 0;

    str_add(&sql, "SELECT ");
    for (; store_run_fields[n].column; n++)
        str_addf(&sql, "%s, ", store_run_fields[n].column);
    str_add(&sql, "latency_histogram, service_histogram, given_histogram FROM runs WHERE id = ?");
    int rc = store_prepare(store, &stmt, sql.buf, "reading a run", err);
    str_release(&sql);
    if (rc < 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, result->id);
    if (sqlite3_step(stmt) != SQLITE_ROW) {
        rc = store_fail(store, "reading a run", err);
        goto out;
    }
    for (int i = 0; i < n; i++)
        read_field(stmt, i, &store_run_fields[i], result);
    if (column_hist(stmt, n, &result->latency.hist) < 0 ||
        column_hist(stmt, n + 1, &result->service.hist) < 0 ||
        column_hist(stmt, n + 2, &result->given_hist) < 0)
        rc = damaged(store, result->id, err);
    if (!is_sound(result))
        rc = damaged(store, result->id, err);
    result->latency.present = true;
    result->service.present = result->rate_tps > 0;
    result->given_delay = result->given_hist.m;
out:
    sqlite3_finalize(stmt);
    return rc;
}

// ---- what belongs to it: each reads one row into the result

typedef int read_row_fn(sqlite3_stmt *stmt, struct result *result, int *cap);

// Room for one more element of an array whose length is *n; cap is kept by the caller's loop.
#define MORE(items, n, cap)                               \
    ({                                                    \
        size_t n_ = (size_t)(n), cap_ = (size_t) * (cap); \
        void *new_ = ARR_PUSH(items, n_, cap_);           \
        (n)++;                                            \
        *(cap) = (int)cap_;                               \
        (typeof(items))new_;                              \
    })

static int read_second(sqlite3_stmt *stmt, struct result *r, int *cap)
{
    struct result_second *second = MORE(r->series, r->n_series, cap);

    second->t_s = sqlite3_column_int(stmt, 0);
    second->done = sqlite3_column_int64(stmt, 1);
    second->errors = sqlite3_column_int64(stmt, 2);
    return second->t_s < 0 ? -1 : column_hist(stmt, 3, &second->latency);
}

static int read_statement(sqlite3_stmt *stmt, struct result *r, int *cap)
{
    struct result_statement *s = MORE(r->statements, r->n_statements, cap);

    s->script = column_text(stmt, 0);
    s->sql = column_text(stmt, 1);
    s->count = sqlite3_column_int64(stmt, 2);
    s->failed = sqlite3_column_int64(stmt, 3);
    s->rows = sqlite3_column_int64(stmt, 4);
    s->p50_ns = column_ns(stmt, 5);
    s->p99_ns = column_ns(stmt, 6);
    s->m.count = s->count;
    s->m.min_ns = column_ns(stmt, 7);
    s->m.max_ns = column_ns(stmt, 8);
    s->m.sum_ns = sqlite3_column_double(stmt, 9);
    s->m.sum_sq = sqlite3_column_double(stmt, 10);
    return s->script && s->sql ? 0 : -1;
}

static int read_slow(sqlite3_stmt *stmt, struct result *r, int *cap)
{
    *MORE(r->slowest, r->n_slowest, cap) = (struct result_slow){
        .client = sqlite3_column_int(stmt, 0),
        .number = sqlite3_column_int64(stmt, 1),
        .end_ns = sqlite3_column_int64(stmt, 2),
        .latency_ns = sqlite3_column_int64(stmt, 3),
        .script = sqlite3_column_int(stmt, 4),
    };
    return 0;
}

static int read_client(sqlite3_stmt *stmt, struct result *r, int *cap)
{
    int client = sqlite3_column_int(stmt, 0);

    (void)cap;
    if (!r->done_by_client)
        r->done_by_client = mem_calloc((size_t)r->clients, sizeof(*r->done_by_client));
    if (client < 0 || client >= r->clients)
        return -1;
    r->done_by_client[client] = sqlite3_column_int64(stmt, 1);
    return 0;
}

static int read_outage(sqlite3_stmt *stmt, struct result *r, int *cap)
{
    *MORE(r->outages, r->n_outages, cap) = (struct result_outage){
        .from_s = sqlite3_column_double(stmt, 0), .to_s = sqlite3_column_double(stmt, 1)};
    return 0;
}

static int read_error(sqlite3_stmt *stmt, struct result *r, int *cap)
{
    const char *name = (const char *)sqlite3_column_text(stmt, 0);

    (void)cap;
    for (int class = 1; name && class < DB_CLASS_COUNT; class ++)
        if (strcmp(name, db_class_name((enum db_class) class)) == 0)
            r->errors[class] = sqlite3_column_int64(stmt, 1);
    return 0;
}

static int read_warning(sqlite3_stmt *stmt, struct result *r, int *cap)
{
    const char *id = (const char *)sqlite3_column_text(stmt, 0);
    const char *text = (const char *)sqlite3_column_text(stmt, 1);

    (void)cap;
    if (!id || !text || result_has_warning(r, id))
        return -1;
    result_add_warning(r, id, "%s", text);
    return 0;
}

static int read_kv(sqlite3_stmt *stmt, struct kvs *list)
{
    const char *key = (const char *)sqlite3_column_text(stmt, 0);
    const char *value = (const char *)sqlite3_column_text(stmt, 1);

    if (!key)
        return -1;
    kvs_add(list, key, value ? value : "unknown: not recorded");
    return 0;
}

static int read_option(sqlite3_stmt *stmt, struct result *r, int *cap)
{
    (void)cap;
    return read_kv(stmt, &r->options);
}

static int read_counter(sqlite3_stmt *stmt, struct result *r, int *cap)
{
    (void)cap;
    return read_kv(stmt, &r->counters);
}

static int read_environment(sqlite3_stmt *stmt, struct result *r, int *cap)
{
    (void)cap;
    return read_kv(stmt, &r->environment);
}

// "[0.98,null,1]"
static int read_watch(sqlite3_stmt *stmt, struct result *r, int *cap)
{
    struct result_watch *watch = MORE(r->watch, r->n_watch, cap);
    const char *at = (const char *)sqlite3_column_text(stmt, 2);

    watch->subject = column_text(stmt, 0);
    watch->name = column_text(stmt, 1);
    if (!watch->subject || !watch->name || !at || *at++ != '[')
        return -1;
    for (int second = 0; *at && *at != ']'; second++) {
        char *end = (char *)at + 4;
        double value = strncmp(at, "null", 4) == 0 ? NAN : strtod(at, &end);
        if (end == at || (*end != ',' && *end != ']') || second > DURATION_MAX)
            return -1;
        result_watch_set(watch, second, value);
        at = *end == ',' ? end + 1 : end;
    }
    return *at == ']' ? 0 : -1;
}

static const struct part {
    const char *sql;
    read_row_fn *read;
    bool is_brief; // read by store_get_brief too
} parts[] = {
    {"SELECT t_s, done, errors, latency_histogram FROM series WHERE run_id = ? ORDER BY t_s",
     read_second},
    {"SELECT script, sql, count, failed, rows, p50_us, p99_us, min_us, max_us, sum_ns, sum_sq "
     "FROM statements WHERE run_id = ? ORDER BY position",
     read_statement},
    {"SELECT client, number, end_ns, latency_ns, script FROM slowest WHERE run_id = ? "
     "ORDER BY rank",
     read_slow},
    {"SELECT client, done FROM clients WHERE run_id = ? ORDER BY client", read_client},
    {"SELECT from_s, to_s FROM outages WHERE run_id = ? ORDER BY from_s", read_outage},
    {"SELECT class, count FROM errors WHERE run_id = ?", read_error},
    {"SELECT id, text FROM warnings WHERE run_id = ? ORDER BY position", read_warning, true},
    {"SELECT key, value FROM options WHERE run_id = ? ORDER BY position", read_option, true},
    {"SELECT key, value FROM counters WHERE run_id = ? ORDER BY position", read_counter},
    {"SELECT subject, name, seconds FROM watch WHERE run_id = ? ORDER BY position", read_watch},
    {"SELECT key, value FROM environment WHERE run_id = ? ORDER BY position", read_environment,
     true},
};

static int get_part(struct store *store, struct result *result, const char *sql, read_row_fn *read,
                    struct err *err)
{
    sqlite3_stmt *stmt;
    int cap = 0, rc = 0;

    if (store_prepare(store, &stmt, sql, "reading a run", err) < 0)
        return -1;
    sqlite3_bind_int64(stmt, 1, result->id);
    while (rc == 0 && sqlite3_step(stmt) == SQLITE_ROW)
        if (read(stmt, result, &cap) < 0)
            rc = damaged(store, result->id, err);
    if (sqlite3_finalize(stmt) != SQLITE_OK && rc == 0)
        rc = store_fail(store, "reading a run", err);
    return rc;
}

static int get(struct store *store, int64_t id, bool brief, struct result **ret, struct err *err)
{
    struct result *result = result_new();

    result->id = id;
    if (get_run(store, result, err) < 0)
        goto fail;
    for (size_t i = 0; i < ARR_LEN(parts); i++)
        if ((parts[i].is_brief || !brief) &&
            get_part(store, result, parts[i].sql, parts[i].read, err) < 0)
            goto fail;
    *ret = result;
    return 0;
fail:
    result_free(result);
    return -1;
}

int store_get(struct store *store, const char *which, struct result **ret, struct err *err)
{
    int64_t id;

    return store_find(store, which, &id, err) < 0 ? -1 : get(store, id, false, ret, err);
}

int store_get_brief(struct store *store, int64_t id, struct result **ret, struct err *err)
{
    return get(store, id, true, ret, err);
}
