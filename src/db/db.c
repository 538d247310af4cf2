// The thin layer in front of the drivers: state checks, assertions, tracing. It is the only caller
// of their slots.
#include "db/db.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/text.h"
#include "db/driver.h"
#include "db/trace.h"
#include "db/wire.h"

#define CONNECT_TIMEOUT_NS (10 * NS_PER_S)

static const char *const class_names[] = {
    [DB_OK] = "ok",
    [DB_SERIALIZATION] = "serialization",
    [DB_DEADLOCK] = "deadlock",
    [DB_BUSY] = "busy",
    [DB_LOST] = "lost",
    [DB_UNAVAILABLE] = "unavailable",
    [DB_TOO_MANY] = "too_many",
    [DB_DENIED] = "denied",
    [DB_NO_DATABASE] = "no_database",
    [DB_UNDEFINED] = "undefined",
    [DB_SYNTAX] = "syntax",
    [DB_CONSTRAINT] = "constraint",
    [DB_READ_ONLY] = "read_only",
    [DB_FULL] = "full",
    [DB_CANCELLED] = "cancelled",
    [DB_OTHER] = "other",
};
static_assert(ARR_LEN(class_names) == DB_CLASS_COUNT, "every class has a name");

static const char *const cap_names[] = {
    "transactions",  "row_locks",   "prepared", "key_first",
    "bulk_parallel", "lock_tables", "hollow",   "pipeline",
};
static_assert(ARR_LEN(cap_names) == DB_CAP_COUNT_BITS, "every capability has a name");

const char *db_class_name(enum db_class class)
{
    assert(class >= 0 && class < DB_CLASS_COUNT);
    return class_names[class];
}

bool db_class_is_retry(enum db_class class)
{
    return class == DB_SERIALIZATION || class == DB_DEADLOCK || class == DB_BUSY;
}

bool db_class_is_lost(enum db_class class)
{
    return class == DB_LOST || class == DB_UNAVAILABLE || class == DB_TOO_MANY;
}

const char *db_cap_name(int bit)
{
    assert(bit >= 0 && bit < DB_CAP_COUNT_BITS);
    return cap_names[bit];
}

void db_facts_release(struct db_facts *facts)
{
    kvs_release(&facts->settings);
}

enum db_class db_fail(struct db_result *result, enum db_class class, const char *native,
                      const char *fmt, ...)
{
    va_list ap;

    assert(class > DB_OK && class < DB_CLASS_COUNT);
    result->class = class;
    snprintf(result->native, sizeof(result->native), "%s", native ? native : "");
    va_start(ap, fmt);
    vsnprintf(result->message, sizeof(result->message), fmt, ap);
    va_end(ap);
    size_t len = 0;
    for (; result->message[len]; len++)
        if ((unsigned char)result->message[len] < ' ')
            result->message[len] = ' ';
    while (len > 0 && result->message[len - 1] == ' ')
        result->message[--len] = '\0';
    if (len == 0) // a server that says nothing
        snprintf(result->message, sizeof(result->message), "%s", class_names[class]);
    return class;
}

static void result_reset(struct db_result *result)
{
    result->class = DB_OK;
    result->in_transaction = false;
    result->rows = 0;
    result->lock_wait_ns = 0;
    result->given_delay_ns = 0;
    result->n_columns = 0;
    result->native[0] = '\0';
    result->message[0] = '\0';
}

// ---- targets

const char *const *db_engines(void)
{
    static const char *names[16]; // written the same by every caller

    int n = 0;
    for (const struct db_driver *const *d = db_drivers; *d; d++) {
        assert(n < (int)ARR_LEN(names) - 1);
        names[n++] = (*d)->name;
    }
    return names;
}

static const struct db_driver *find_driver(const char *scheme)
{
    for (const struct db_driver *const *d = db_drivers; *d; d++)
        for (const char *const *s = (*d)->schemes; *s; s++)
            if (strcmp(*s, scheme) == 0)
                return *d;
    return NULL;
}

// Names the engines that were typed rightly but are not in this build apart from slips.
static int unknown_engine(const char *scheme, struct err *err)
{
    static const struct {
        const char *scheme, *library;
    } optional[] = {
        {"postgres", "libpq"},
        {"postgresql", "libpq"},
        {"mysql", "libmariadb"},
        {"mariadb", "libmariadb"},
        {NULL, NULL},
    };
    const char *words[32];
    int n = 0;

    for (int i = 0; optional[i].scheme; i++)
        if (strcmp(scheme, optional[i].scheme) == 0)
            return err_set(err, ERR_ABSENT,
                           "this prony was built without %s, which the engine %s needs; "
                           "prony --version lists what is in it",
                           optional[i].library, scheme);
    for (const struct db_driver *const *d = db_drivers; *d; d++)
        for (const char *const *s = (*d)->schemes; *s; s++) {
            assert(n < (int)ARR_LEN(words) - 1);
            words[n++] = *s;
        }
    words[n] = NULL;
    return text_unknown("engine", scheme, words, err);
}

static void target_free(struct db_target *target)
{
    db_trace_close(target->trace);
    url_release(&target->url);
    free(target->display);
    free(target);
}

int db_open(struct db_target **ret, const char *url, const struct db_open_options *options,
            struct err *err)
{
    struct url parsed = {0};
    struct str display = STR_INIT;

    db_check_drivers();
    if (url_parse(&parsed, url, err) < 0)
        return -1;
    const struct db_driver *driver = find_driver(parsed.scheme);
    if (!driver) {
        unknown_engine(parsed.scheme, err);
        url_release(&parsed);
        return -1;
    }
    struct db_target *target = mem_calloc(1, driver->target_size);
    target->driver = driver;
    target->url = parsed;
    target->caps = driver->caps;
    target->options = *options;
    target->options.trace_path = NULL;
    if (!target->options.clock)
        target->options.clock = &clock_system;
    if (target->options.connect_timeout_ns == 0)
        target->options.connect_timeout_ns = CONNECT_TIMEOUT_NS;
    url_print(&parsed, false, &display);
    target->display = str_detach(&display);
    target->options.display = NULL;
    if (options->trace_path &&
        db_trace_open(&target->trace, options->trace_path, target->options.clock, err) < 0) {
        target_free(target);
        return -1;
    }
    int64_t start_ns = target->trace ? clock_now_ns(target->options.clock) : 0;
    if (driver->open(target, err) < 0) {
        if (driver->close)
            driver->close(target);
        target_free(target);
        return -1;
    }
    if (driver->wire && driver->wire->depth_max > 1 && options->protocol != DB_SIMPLE)
        target->caps |= DB_CAP_PIPELINE;
    if (options->display) {
        free(target->display);
        target->display = mem_strdup(options->display);
    }
    if (target->trace)
        db_trace_call(target->trace, -1, "open", target->display, start_ns, NULL);
    *ret = target;
    return 0;
}

char *db_data_volume(const char *url)
{
    struct url parsed = {0};

    if (url_parse(&parsed, url, NULL) < 0)
        return NULL;
    const struct db_driver *driver = find_driver(parsed.scheme);
    char *text =
        driver && driver->takes_volume ? mem_strdup(kvs_get(&parsed.params, "data")) : NULL;
    url_release(&parsed);
    return text;
}

bool db_names_file(const char *url)
{
    struct url parsed = {0};
    bool names = url_parse(&parsed, url, NULL) == 0 && parsed.path && parsed.path[0];

    url_release(&parsed);
    return names;
}

static bool is_shaping(const struct db_driver *driver, const char *key)
{
    for (const char *const *word = driver->shaping; word && *word; word++)
        if (strcasecmp(*word, key) == 0)
            return true;
    return false;
}

int db_shape(const char *url, const char *file, struct kvs *shape, struct str *plain,
             struct str *named, struct err *err)
{
    struct url parsed = {0}, made = {0};

    if (url_parse(&parsed, url, err) < 0)
        return -1;
    const struct db_driver *driver = find_driver(parsed.scheme);
    if (!driver || !driver->takes_volume || parsed.has_authority ||
        (parsed.path && parsed.path[0])) {
        url_release(&parsed);
        return err_set(
            err, ERR_USAGE,
            "states are of databases that prony makes itself: of sqlite: without a file's "
            "name, server:postgres, server:mariadb and server:mysql");
    }
    kvs_add(shape, "engine", driver->name);
    made.scheme = parsed.scheme;
    made.path = (char *)file;
    for (size_t i = 0; i < parsed.params.n; i++) {
        const struct kv *item = &parsed.params.items[i];
        struct str key = STR_INIT;
        bool shapes = is_shaping(driver, item->key);
        str_addf(&key, "engine.%s", item->key);
        if (shapes)
            kvs_add(shape, key.buf, item->value);
        if (shapes || strcmp(item->key, "data") == 0)
            kvs_add(&made.params, item->key, item->value);
        str_release(&key);
    }
    url_print(&made, true, plain);
    kvs_release(&made.params);
    made.params = parsed.params;
    url_print(&made, true, named);
    url_release(&parsed);
    return 0;
}

void db_close(struct db_target *target)
{
    if (!target)
        return;
    int64_t start_ns = target->trace ? clock_now_ns(target->options.clock) : 0;
    if (target->driver->close)
        target->driver->close(target);
    if (target->trace)
        db_trace_call(target->trace, -1, "close", NULL, start_ns, NULL);
    target_free(target);
}

void db_set_statements(struct db_target *target, int n_statements, enum db_protocol protocol)
{
    assert(n_statements >= 0);
    target->options.n_statements = n_statements;
    target->options.protocol = protocol;
}

const char *db_engine(const struct db_target *target)
{
    return target->driver->name;
}

const char *db_display(const struct db_target *target)
{
    return target->display;
}

bool db_is_temporary(const struct db_target *target)
{
    return target->temporary;
}

unsigned db_caps(const struct db_target *target)
{
    return target->caps;
}

enum db_placeholder db_placeholder(const struct db_target *target)
{
    return target->driver->placeholder;
}

bool db_has_loop(const struct db_target *target, const char *loop)
{
    for (const char *const *l = target->driver->loops; *l; l++)
        if (strcmp(*l, loop) == 0)
            return true;
    return false;
}

// ---- sessions

// Around each call of a driver: the start of the trace line, and what every answer means for the
// session's state.
static int64_t call_begin(const struct db_session *session, struct db_result *result)
{
    result_reset(result);
    return session->target->trace ? clock_now_ns(session->target->options.clock) : 0;
}

static enum db_class call_end(struct db_session *session, const char *call, const char *text,
                              int64_t start_ns, enum db_class class, struct db_result *result)
{
    assert(class == result->class);
    assert((class == DB_OK) == (result->message[0] == '\0'));
    if (class == DB_LOST) {
        session->lost = true;
        session->bulk = false;
        result->in_transaction = false;
    }
    if (session->target->trace)
        db_trace_call(session->target->trace, session->client, call, text, start_ns, result);
    return class;
}

static enum db_class fail_lost(struct db_result *result)
{
    result_reset(result);
    return db_fail(result, DB_LOST, "", "the connection was lost before");
}

enum db_class db_connect(struct db_target *target, int client, struct db_session **ret,
                         struct db_result *result)
{
    struct db_session *session = mem_calloc(1, target->driver->session_size);

    session->target = target;
    session->client = client;
    __atomic_fetch_add(&target->stream, 1, __ATOMIC_RELAXED);
    int64_t start_ns = call_begin(session, result);
    enum db_class class = target->driver->connect(session, result);
    call_end(session, "connect", NULL, start_ns, class, result);
    if (class != DB_OK) {
        target->driver->disconnect(session);
        free(session);
        return class;
    }
    *ret = session;
    return DB_OK;
}

void db_disconnect(struct db_session *session)
{
    if (!session)
        return;
    struct db_target *target = session->target;
    int client = session->client;
    int64_t start_ns = target->trace ? clock_now_ns(target->options.clock) : 0;
    target->driver->disconnect(session);
    free(session);
    if (target->trace)
        db_trace_call(target->trace, client, "disconnect", NULL, start_ns, NULL);
}

enum db_class db_execute(struct db_session *session, const struct db_statement *statement,
                         const struct db_value *params, bool want_row, struct db_result *result)
{
    assert(statement->index >= 0 && statement->index < session->target->options.n_statements);
    assert(statement->n_params == 0 || params);
    assert(!session->bulk);
    if (session->lost)
        return fail_lost(result);
    int64_t start_ns = call_begin(session, result);
    enum db_class class =
        session->target->driver->execute(session, statement, params, want_row, result);
    return call_end(session, "execute", statement->sql, start_ns, class, result);
}

const char *db_row_name(struct db_session *session, int i)
{
    assert(i >= 0);
    return session->target->driver->row_name(session, i);
}

struct db_value db_row_value(struct db_session *session, int i)
{
    assert(i >= 0);
    return session->target->driver->row_value(session, i);
}

static enum db_class query(struct db_session *session, const char *sql, bool want_row,
                           db_row_fn *fn, void *arg, struct db_result *result)
{
    assert(!session->bulk);
    if (session->lost)
        return fail_lost(result);
    int64_t start_ns = call_begin(session, result);
    enum db_class class = session->target->driver->query(session, sql, want_row, fn, arg, result);
    return call_end(session, "query", sql, start_ns, class, result);
}

enum db_class db_query(struct db_session *session, const char *sql, bool want_row,
                       struct db_result *result)
{
    return query(session, sql, want_row, NULL, NULL, result);
}

enum db_class db_query_each(struct db_session *session, const char *sql, db_row_fn *fn, void *arg,
                            struct db_result *result)
{
    assert(fn);
    return query(session, sql, false, fn, arg, result);
}

void db_cancel(struct db_session *session)
{
    struct db_target *target = session->target;
    int64_t start_ns = target->trace ? clock_now_ns(target->options.clock) : 0;

    target->driver->cancel(session);
    if (target->trace)
        db_trace_call(target->trace, session->client, "cancel", NULL, start_ns, NULL);
}

bool db_session_lost(const struct db_session *session)
{
    return session->lost;
}

// ---- loading

enum db_class db_create_table(struct db_session *session, const struct db_table *table,
                              bool with_key, struct db_result *result)
{
    assert(!session->bulk);
    if (session->lost)
        return fail_lost(result);
    int64_t start_ns = call_begin(session, result);
    enum db_class class = session->target->driver->create_table(session, table, with_key, result);
    return call_end(session, "create_table", table->name, start_ns, class, result);
}

enum db_class db_bulk_begin(struct db_session *session, const struct db_table *table,
                            struct db_result *result)
{
    assert(!session->bulk);
    if (session->lost)
        return fail_lost(result);
    int64_t start_ns = call_begin(session, result);
    enum db_class class = session->target->driver->bulk_begin(session, table, result);
    session->bulk = class == DB_OK;
    return call_end(session, "bulk_begin", table->name, start_ns, class, result);
}

// Not traced unless it fails: a load has millions.
enum db_class db_bulk_row(struct db_session *session, const struct db_value *values,
                          struct db_result *result)
{
    assert(session->bulk && !session->lost);
    result_reset(result);
    enum db_class class = session->target->driver->bulk_row(session, values, result);
    if (class == DB_OK)
        return DB_OK;
    session->bulk = false;
    int64_t now_ns = session->target->trace ? clock_now_ns(session->target->options.clock) : 0;
    return call_end(session, "bulk_row", NULL, now_ns, class, result);
}

enum db_class db_bulk_end(struct db_session *session, struct db_result *result)
{
    assert(session->bulk && !session->lost);
    int64_t start_ns = call_begin(session, result);
    enum db_class class = session->target->driver->bulk_end(session, result);
    session->bulk = false;
    return call_end(session, "bulk_end", NULL, start_ns, class, result);
}

enum db_class db_claim(struct db_session *session, const char *name, struct db_result *result)
{
    assert(!session->bulk);
    if (session->lost)
        return fail_lost(result);
    int64_t start_ns = call_begin(session, result);
    enum db_class class = DB_OK;
    if (session->target->driver->claim)
        class = session->target->driver->claim(session, name, result);
    return call_end(session, "claim", name, start_ns, class, result);
}

enum db_class db_hurry(struct db_session *session, bool on, struct db_result *result)
{
    assert(!session->bulk);
    if (session->lost)
        return fail_lost(result);
    if (!session->target->driver->hurry)
        return DB_OK;
    int64_t start_ns = call_begin(session, result);
    enum db_class class = session->target->driver->hurry(session, on, result);
    return call_end(session, "hurry", on ? "on" : "off", start_ns, class, result);
}

enum db_class db_settle_table(struct db_session *session, const struct db_table *table,
                              struct db_result *result)
{
    assert(!session->bulk);
    if (session->lost)
        return fail_lost(result);
    int64_t start_ns = call_begin(session, result);
    enum db_class class = DB_OK;
    if (session->target->driver->settle_table)
        class = session->target->driver->settle_table(session, table, result);
    return call_end(session, "settle_table", table->name, start_ns, class, result);
}
