// What can be said about an sqlite target: facts for the record, counters of a run.
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/arr.h"
#include "base/units.h"
#include "db/sqlite.h"

static const struct sqlite_target *target_of(const struct sqlite_session *session)
{
    return (const struct sqlite_target *)session->base.target;
}

// Settings that decide durability or speed; recorded whether changed or not.
static const char *const recorded[] = {
    "journal_mode", "synchronous",        "page_size",   "cache_size", "wal_autocheckpoint",
    "mmap_size",    "locking_mode",       "auto_vacuum", "temp_store", "secure_delete",
    "foreign_keys", "journal_size_limit", "cache_spill", "fullfsync",  "checkpoint_fullfsync",
    "encoding",
};

// As words where SQLite tells a number.
static const char *value_word(const char *name, const char *value)
{
    static const char *const synchronous[] = {"off", "normal", "full", "extra"};
    static const char *const auto_vacuum[] = {"none", "full", "incremental"};
    static const char *const temp_store[] = {"default", "file", "memory"};
    static const struct {
        const char *name;
        const char *const *words;
        size_t n;
    } known[] = {
        {"synchronous", synchronous, ARR_LEN(synchronous)},
        {"auto_vacuum", auto_vacuum, ARR_LEN(auto_vacuum)},
        {"temp_store", temp_store, ARR_LEN(temp_store)},
    };
    int64_t number;

    for (size_t i = 0; i < ARR_LEN(known); i++)
        if (strcasecmp(known[i].name, name) == 0 && units_parse_int(value, &number, NULL) == 0 &&
            number >= 0 && number < (int64_t)known[i].n)
            return known[i].words[number];
    return value;
}

static void record_setting(struct sqlite_session *session, const char *name, struct kvs *settings)
{
    char *value = sqlite_pragma_get(session->db, name);

    if (value)
        kvs_set(settings, name, value_word(name, value));
    else
        kvs_set(settings, name, "unknown: SQLite did not tell");
    free(value);
}

static void describe_settings(struct sqlite_session *session, struct kvs *settings)
{
    const struct sqlite_target *target = target_of(session);
    char text[UNITS_MAX];

    for (size_t i = 0; i < ARR_LEN(recorded); i++)
        record_setting(session, recorded[i], settings);
    for (size_t i = 0; i < target->pragmas.n; i++)
        record_setting(session, target->pragmas.items[i].key, settings);
    kvs_add(settings, "busy_handler", target->library_busy ? "library" : "prony");
    kvs_add(settings, "busy_timeout", units_format_duration_exact(target->busy_ns, text));
    kvs_add(settings, "vfs", target->vfs ? target->vfs : sqlite3_vfs_find(NULL)->zName);
    kvs_add(settings, "sqlite_source_id", sqlite3_sourceid());
}

static int64_t number_of(struct sqlite_session *session, const char *pragma)
{
    char *value = sqlite_pragma_get(session->db, pragma);
    int64_t number = 0;

    if (!value || units_parse_int(value, &number, NULL) < 0)
        number = 0;
    free(value);
    return number;
}

static void describe_sizes(struct sqlite_session *session, struct db_facts *facts)
{
    const struct sqlite_target *target = target_of(session);
    char wal[PATH_MAX];
    struct stat st;

    if (stat(target->path, &st) == 0) {
        facts->data_bytes = st.st_size;
        snprintf(wal, sizeof(wal), "%s-wal", target->path);
        if (stat(wal, &st) == 0)
            facts->data_bytes += st.st_size;
    } else {
        kvs_addf(&facts->settings, "data_bytes", "unknown: %s", strerror(errno));
    }
    // Pages where positive, KiB where negative; every session has a cache of its own.
    int64_t cache = number_of(session, "cache_size");
    facts->cache_bytes = cache < 0 ? -cache * 1024 : cache * number_of(session, "page_size");
}

static void describe_read_only(struct sqlite_session *session, struct db_facts *facts)
{
    facts->read_only = sqlite3_db_readonly(session->db, "main") == 1;
    if (facts->read_only)
        snprintf(facts->read_only_why, sizeof(facts->read_only_why), "%s",
                 target_of(session)->read_only ? "mode=ro" : "the file is not writable");
    char *query_only = sqlite_pragma_get(session->db, "query_only");
    if (!facts->read_only && query_only && strcmp(query_only, "1") == 0) {
        facts->read_only = true;
        snprintf(facts->read_only_why, sizeof(facts->read_only_why), "query_only=1");
    }
    free(query_only);
}

void sqlite_describe(struct db_session *base, struct db_facts *facts)
{
    struct sqlite_session *session = (struct sqlite_session *)base;
    const struct sqlite_target *target = target_of(session);

    snprintf(facts->version, sizeof(facts->version), "%s", sqlite3_libversion());
    facts->is_local = true;
    if (!realpath(target->path, facts->data_path))
        snprintf(facts->data_path, sizeof(facts->data_path), "%s", target->path);
    describe_sizes(session, facts);
    describe_read_only(session, facts);
    describe_settings(session, &facts->settings);
}

// ---- counters

// Copies the connection's own counters to where other sessions' sample may read them.
void sqlite_publish(struct sqlite_session *session)
{
    static const struct {
        enum sqlite_counter counter;
        int op;
    } known[] = {
        {SQLITE_CACHE_HITS, SQLITE_DBSTATUS_CACHE_HIT},
        {SQLITE_BLOCKS_READ, SQLITE_DBSTATUS_CACHE_MISS},
        {SQLITE_BLOCKS_WRITTEN, SQLITE_DBSTATUS_CACHE_WRITE},
        {SQLITE_CACHE_SPILLS, SQLITE_DBSTATUS_CACHE_SPILL},
    };

    for (size_t i = 0; i < ARR_LEN(known); i++) {
        int now = 0, high = 0;
        // Taken and set to zero each time: SQLite counts in an int, which a long run overflows.
        if (sqlite3_db_status(session->db, known[i].op, &now, &high, 1) == SQLITE_OK && now > 0)
            atomic_fetch_add_explicit(&session->counters[known[i].counter], (uint64_t)now,
                                      memory_order_relaxed);
    }
    atomic_store_explicit(&session->counters[SQLITE_LOCK_WAITS], session->busy.waits,
                          memory_order_relaxed);
    atomic_store_explicit(&session->counters[SQLITE_LOCK_WAIT_US],
                          session->busy.waited_total_ns / NS_PER_US, memory_order_relaxed);
}

void sqlite_sample(struct db_session *base, struct kvs *counters)
{
    static const char *const names[] = {"cache_hits",   "blocks_read", "blocks_written",
                                        "cache_spills", "lock_waits",  "lock_wait_us"};
    static_assert(ARR_LEN(names) == SQLITE_COUNTERS, "every counter has a name");
    struct sqlite_target *target = (struct sqlite_target *)base->target;
    uint64_t sums[SQLITE_COUNTERS];

    sqlite_publish((struct sqlite_session *)base);
    pthread_mutex_lock(&target->lock);
    memcpy(sums, target->retired, sizeof(sums));
    for (struct sqlite_session *s = target->sessions; s; s = s->next)
        for (int i = 0; i < SQLITE_COUNTERS; i++)
            sums[i] += atomic_load_explicit(&s->counters[i], memory_order_relaxed);
    pthread_mutex_unlock(&target->lock);
    for (int i = 0; i < SQLITE_COUNTERS; i++)
        kvs_addf(counters, names[i], "%llu", (unsigned long long)sums[i]);
}
