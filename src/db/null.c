// The engine that answers by itself. It shows what the harness costs (without parameters an
// execute makes no system call and allocates nothing), and gives tests a server that is slow,
// fails, stalls, or goes away exactly as told.
//
// Model. A statement is answered after a latency; a stall stops all sessions for a while, as a
// checkpoint does: what runs then takes that much longer, what comes then waits for its end. An
// outage (down) and a loss cut connections. A commit that is lost *after* has been applied: the
// counter commits of db_sample tells the truth about outcomes that the client cannot know.
// db_query is for set-up and checks: it is answered at once and never fails.
#include "db/null.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/units.h"

// How long a sleeping statement may take to notice that it was cancelled.
#define CANCEL_SLICE_NS (20 * NS_PER_MS)

static struct null_target *target_of(const struct null_session *session)
{
    return (struct null_target *)session->base.target;
}

static void count(struct null_session *session, enum null_counter counter, uint64_t n)
{
    uint64_t old = atomic_load_explicit(&session->counters[counter], memory_order_relaxed);

    atomic_store_explicit(&session->counters[counter], old + n, memory_order_relaxed);
}

// ---- target

static int null_open(struct db_target *base, struct err *err)
{
    struct null_target *target = (struct null_target *)base;
    struct null_told *told = &target->told;

    pthread_mutex_init(&target->lock, NULL);
    if (null_parse(&base->url, told, err) < 0)
        return -1;
    target->plain = told->latency_ns == 0 && told->fail == 0 && told->lose == 0 &&
                    told->stall_for_ns == 0 && told->down_for_ns == 0 && !told->read_only;
    return 0;
}

static void null_close(struct db_target *base)
{
    struct null_target *target = (struct null_target *)base;

    assert(!target->sessions);
    free(target->connects);
    pthread_mutex_destroy(&target->lock);
}

static bool is_within(int64_t now_ns, int64_t origin_ns, int64_t at_ns, int64_t for_ns)
{
    return origin_ns != 0 && for_ns > 0 && now_ns >= origin_ns + at_ns &&
           now_ns < origin_ns + at_ns + for_ns;
}

// ---- sessions

// Every connection of a client gets a stream of its own: one that is lost at its first statement
// must not be so for ever.
static void seed_session(struct null_target *target, struct null_session *session)
{
    uint64_t client = (uint32_t)session->base.client;
    uint64_t nth = target->base.stream;

    if (session->base.client >= 0) {
        while (target->n_connects <= client)
            (void)ARR_PUSH(target->connects, target->n_connects, target->cap_connects);
        nth = target->connects[client]++;
    }
    rng_init(&session->rng, target->base.options.seed, client | nth << 32, RNG_DRIVER);
}

static enum db_class null_connect(struct db_session *base, struct db_result *result)
{
    struct null_session *session = (struct null_session *)base;
    struct null_target *target = target_of(session);
    const struct null_told *told = &target->told;
    int64_t now_ns = clock_now_ns(target->base.options.clock);
    int64_t refuse_ns = atomic_load(&target->refuse_until_ns);
    char text[UNITS_MAX];

    if (is_within(now_ns, atomic_load(&target->origin_ns), told->down_at_ns, told->down_for_ns))
        return db_fail(result, DB_UNAVAILABLE, "", "null is down, as told");
    if (now_ns < refuse_ns)
        return db_fail(result, DB_UNAVAILABLE, "", "null refuses connections for another %s",
                       units_format_duration(refuse_ns - now_ns, text));
    pthread_mutex_lock(&target->lock);
    bool full = told->max_connections > 0 && target->n_sessions >= told->max_connections;
    if (!full) {
        seed_session(target, session);
        session->next = target->sessions;
        session->link = &target->sessions;
        if (session->next)
            session->next->link = &session->next;
        target->sessions = session;
        target->n_sessions++;
    }
    pthread_mutex_unlock(&target->lock);
    if (full)
        return db_fail(result, DB_TOO_MANY, "", "null has max_connections=%lld, all in use",
                       (long long)told->max_connections);
    session->n_columns = target->base.options.n_statements;
    session->columns = mem_calloc((size_t)session->n_columns, sizeof(*session->columns));
    return DB_OK;
}

static void null_disconnect(struct db_session *base)
{
    struct null_session *session = (struct null_session *)base;
    struct null_target *target = target_of(session);

    if (!session->link) // was refused
        return;
    pthread_mutex_lock(&target->lock);
    *session->link = session->next;
    if (session->next)
        session->next->link = session->link;
    target->n_sessions--;
    for (int i = 0; i < NULL_COUNTERS; i++)
        target->retired[i] += session->counters[i];
    pthread_mutex_unlock(&target->lock);
    for (int i = 0; i < session->n_columns; i++)
        null_columns_release(&session->columns[i]);
    free(session->columns);
    null_columns_release(&session->query_columns);
}

// ---- statements

// Does what the statement says: the session's state and the counters.
static void apply(struct null_session *session, enum db_kind kind, struct db_result *result)
{
    switch (kind) {
    case DB_KIND_READ:
        result->rows = 1;
        break;
    case DB_KIND_WRITE:
        result->rows = 1;
        if (!session->in_transaction)
            count(session, NULL_COMMITS, 1);
        break;
    case DB_KIND_BEGIN:
        session->in_transaction = true;
        break;
    case DB_KIND_COMMIT:
        if (session->in_transaction)
            count(session, NULL_COMMITS, 1);
        session->in_transaction = false;
        break;
    case DB_KIND_ROLLBACK:
        if (session->in_transaction)
            count(session, NULL_ROLLBACKS, 1);
        session->in_transaction = false;
        break;
    }
    count(session, NULL_STATEMENTS, 1);
    result->in_transaction = session->in_transaction;
}

// Whether data becomes durable with this statement: where losing the answer leaves it unknown.
static bool is_commit_point(const struct null_session *session, enum db_kind kind)
{
    return session->in_transaction ? kind == DB_KIND_COMMIT : kind == DB_KIND_WRITE;
}

static enum db_class lose(struct null_session *session, int64_t now_ns, const char *why,
                          struct db_result *result)
{
    struct null_target *target = target_of(session);

    if (target->told.refuse_for_ns > 0)
        atomic_store(&target->refuse_until_ns, now_ns + target->told.refuse_for_ns);
    session->in_transaction = false;
    count(session, NULL_LOSSES, 1);
    return db_fail(result, DB_LOST, "", "null lost the connection %s, as told", why);
}

// When the answer is due for a statement that comes at now_ns.
static int64_t plan_end_ns(struct null_session *session, enum db_kind kind, int64_t now_ns,
                           int64_t origin_ns)
{
    const struct null_told *told = &target_of(session)->told;
    int64_t latency_ns = told->latency_ns;

    if (told->per_transaction &&
        (session->in_transaction ? kind != DB_KIND_COMMIT : kind == DB_KIND_BEGIN))
        latency_ns = 0;
    if (told->exponential && latency_ns > 0)
        latency_ns = (int64_t)rng_exponential(&session->rng, (double)latency_ns);
    int64_t end_ns = now_ns + latency_ns;
    int64_t stall_ns = origin_ns + told->stall_at_ns;
    if (told->stall_for_ns > 0 && now_ns < stall_ns + told->stall_for_ns) {
        if (now_ns >= stall_ns)
            end_ns = stall_ns + told->stall_for_ns + latency_ns;
        else if (end_ns > stall_ns)
            end_ns += told->stall_for_ns;
    }
    return end_ns;
}

// Sleeps to the time; false when cancelled meanwhile. *now_ns is the time afterwards.
static bool sleep_to(struct null_session *session, int64_t end_ns, int64_t *now_ns)
{
    const struct clock *clock = target_of(session)->base.options.clock;

    while (*now_ns < end_ns) {
        int64_t slice_ns = *now_ns + CANCEL_SLICE_NS;
        clock_sleep_until_ns(clock, slice_ns < end_ns ? slice_ns : end_ns);
        *now_ns = clock_now_ns(clock);
        if (atomic_load_explicit(&session->cancelled, memory_order_relaxed))
            return false;
    }
    return true;
}

// The time of the first execute, from which stalls and outages count.
static int64_t take_origin_ns(struct null_target *target, int64_t now_ns)
{
    int64_t origin_ns = atomic_load_explicit(&target->origin_ns, memory_order_relaxed);

    if (origin_ns == 0 && atomic_compare_exchange_strong(&target->origin_ns, &origin_ns, now_ns))
        origin_ns = now_ns;
    return origin_ns;
}

static bool draw(struct null_session *session, double probability)
{
    return probability > 0 && rng_double(&session->rng) < probability;
}

// A statement on a target that was told to be slow or to misbehave.
static enum db_class misbehave(struct null_session *session, enum db_kind kind,
                               struct db_result *result)
{
    struct null_target *target = target_of(session);
    const struct null_told *told = &target->told;
    int64_t start_ns = clock_now_ns(target->base.options.clock);
    int64_t now_ns = start_ns;
    int64_t origin_ns = take_origin_ns(target, start_ns);

    atomic_store_explicit(&session->cancelled, false, memory_order_relaxed);
    bool in_time = sleep_to(session, plan_end_ns(session, kind, start_ns, origin_ns), &now_ns);
    result->given_delay_ns = now_ns - start_ns;
    result->in_transaction = session->in_transaction;
    if (is_within(now_ns, origin_ns, told->down_at_ns, told->down_for_ns))
        return lose(session, now_ns, "because it is down", result);
    bool commit_point = is_commit_point(session, kind);
    if ((told->lose_at == NULL_LOSE_ANY || commit_point) && draw(session, told->lose)) {
        bool after = told->lose_when == NULL_LOSE_AFTER ||
                     (told->lose_when == NULL_LOSE_EITHER && draw(session, 0.5));
        if (after)
            apply(session, kind, result);
        return lose(session, now_ns, after ? "after the statement" : "before the statement",
                    result);
    }
    if (!in_time) {
        count(session, NULL_FAILURES, 1);
        return db_fail(result, DB_CANCELLED, "", "null was cancelled");
    }
    if (told->read_only && kind == DB_KIND_WRITE) {
        count(session, NULL_FAILURES, 1);
        return db_fail(result, DB_READ_ONLY, "", "null is read-only, as told");
    }
    // Opening and rolling back do not fail on real servers either, and recovery needs the latter.
    if (kind != DB_KIND_BEGIN && kind != DB_KIND_ROLLBACK && draw(session, told->fail)) {
        if (kind == DB_KIND_COMMIT)
            session->in_transaction = false;
        count(session, NULL_FAILURES, 1);
        result->in_transaction = session->in_transaction;
        return db_fail(result, null_fail_class(told->fail_class), "", "null failed, as told");
    }
    apply(session, kind, result);
    return DB_OK;
}

static enum db_class null_execute(struct db_session *base, const struct db_statement *statement,
                                  const struct db_value *params, bool want_row,
                                  struct db_result *result)
{
    struct null_session *session = (struct null_session *)base;

    (void)params;
    if (target_of(session)->plain) {
        apply(session, statement->kind, result);
    } else if (misbehave(session, statement->kind, result) != DB_OK) {
        return result->class;
    }
    if (want_row && statement->kind == DB_KIND_READ) {
        assert(statement->index < session->n_columns);
        struct null_columns *columns = &session->columns[statement->index];
        if (columns->n == 0) // the first time only
            null_columns_parse(columns, statement->sql);
        session->row = columns;
        result->n_columns = columns->n;
    }
    return DB_OK;
}

static void give_row(const struct null_session *session, db_row_fn *fn, void *arg)
{
    const struct null_columns *columns = session->row;
    const char **names = mem_calloc((size_t)columns->n, sizeof(*names));
    const char **values = mem_calloc((size_t)columns->n, sizeof(*values));
    char text[DB_VALUE_TEXT_MAX];

    db_format_int(target_of(session)->told.value, text);
    for (int i = 0; i < columns->n; i++) {
        names[i] = null_columns_name(columns, i);
        values[i] = text;
    }
    fn(arg, columns->n, names, values);
    free(names);
    free(values);
}

static enum db_class null_query(struct db_session *base, const char *sql, bool want_row,
                                db_row_fn *fn, void *arg, struct db_result *result)
{
    struct null_session *session = (struct null_session *)base;
    enum db_kind kind = db_statement_kind(sql);

    apply(session, kind, result);
    if (kind == DB_KIND_READ && (want_row || fn)) {
        null_columns_release(&session->query_columns);
        null_columns_parse(&session->query_columns, sql);
        session->row = &session->query_columns;
        result->n_columns = want_row ? session->row->n : 0;
        if (fn)
            give_row(session, fn, arg);
    }
    return DB_OK;
}

static const char *null_row_name(struct db_session *base, int i)
{
    return null_columns_name(((struct null_session *)base)->row, i);
}

static struct db_value null_row_value(struct db_session *base, int i)
{
    const struct null_session *session = (const struct null_session *)base;

    assert(session->row && i < session->row->n);
    return (struct db_value){.type = DB_INT, .i = target_of(session)->told.value};
}

static void null_cancel(struct db_session *base)
{
    atomic_store(&((struct null_session *)base)->cancelled, true);
}

// ---- loading: accepted and counted

static enum db_class null_create_table(struct db_session *base, const struct db_table *table,
                                       bool with_key, struct db_result *result)
{
    (void)base, (void)table, (void)with_key, (void)result;
    return DB_OK;
}

static enum db_class null_bulk_begin(struct db_session *base, const struct db_table *table,
                                     struct db_result *result)
{
    (void)table, (void)result;
    ((struct null_session *)base)->bulk_rows = 0;
    return DB_OK;
}

static enum db_class null_bulk_row(struct db_session *base, const struct db_value *values,
                                   struct db_result *result)
{
    (void)values, (void)result;
    ((struct null_session *)base)->bulk_rows++;
    return DB_OK;
}

static enum db_class null_bulk_end(struct db_session *base, struct db_result *result)
{
    struct null_session *session = (struct null_session *)base;

    result->rows = session->bulk_rows;
    count(session, NULL_ROWS_LOADED, (uint64_t)session->bulk_rows);
    return DB_OK;
}

// ---- records

static void null_describe(struct db_session *base, struct db_facts *facts)
{
    struct null_session *session = (struct null_session *)base;
    struct null_target *target = target_of(session);

    snprintf(facts->version, sizeof(facts->version), "part of prony");
    facts->max_connections = (int)target->told.max_connections;
    facts->max_connections_setting = "max_connections";
    pthread_mutex_lock(&target->lock);
    facts->connections_used = target->n_sessions - 1;
    pthread_mutex_unlock(&target->lock);
    facts->is_local = true;
    facts->read_only = target->told.read_only;
    if (facts->read_only)
        snprintf(facts->read_only_why, sizeof(facts->read_only_why), "read_only=1");
    kvs_copy(&facts->settings, &target->base.url.params);
    kvs_add(&facts->settings, "data_path", "unknown: null keeps no data");
    kvs_add(&facts->settings, "data_bytes", "unknown: null keeps no data");
    kvs_add(&facts->settings, "cache_bytes", "unknown: null has no cache");
}

static void null_sample(struct db_session *base, struct kvs *counters)
{
    static const char *const names[] = {"statements", "commits", "rollbacks",
                                        "failures",   "losses",  "rows_loaded"};
    static_assert(ARR_LEN(names) == NULL_COUNTERS, "every counter has a name");
    struct null_target *target = target_of((struct null_session *)base);
    uint64_t sums[NULL_COUNTERS];

    pthread_mutex_lock(&target->lock);
    memcpy(sums, target->retired, sizeof(sums));
    for (struct null_session *s = target->sessions; s; s = s->next)
        for (int i = 0; i < NULL_COUNTERS; i++)
            sums[i] += atomic_load_explicit(&s->counters[i], memory_order_relaxed);
    pthread_mutex_unlock(&target->lock);
    for (int i = 0; i < NULL_COUNTERS; i++)
        kvs_addf(counters, names[i], "%llu", (unsigned long long)sums[i]);
}

static const char *const null_schemes[] = {"null", NULL};
static const char *const null_loops[] = {"threads", NULL};

const struct db_driver db_driver_null = {
    .name = "null",
    .schemes = null_schemes,
    .loops = null_loops,
    .params_help = null_params_help,
    .placeholder = DB_PLACE_QUESTION,
    .caps = DB_CAP_TRANSACTIONS | DB_CAP_ROW_LOCKS | DB_CAP_BULK_PARALLEL | DB_CAP_HOLLOW,
    .target_size = sizeof(struct null_target),
    .session_size = sizeof(struct null_session),
    .open = null_open,
    .close = null_close,
    .connect = null_connect,
    .disconnect = null_disconnect,
    .execute = null_execute,
    .query = null_query,
    .row_name = null_row_name,
    .row_value = null_row_value,
    .cancel = null_cancel,
    .create_table = null_create_table,
    .bulk_begin = null_bulk_begin,
    .bulk_row = null_bulk_row,
    .bulk_end = null_bulk_end,
    .describe = null_describe,
    .sample = null_sample,
};
