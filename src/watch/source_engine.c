// The engine, asked over a session of its own: its counters, and what its sessions wait for.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "watch/source.h"

#define WAITS_MAX 64

// Of what db_sample tells, those that say how it goes from second to second.
static const char *const counters[] = {
    "commits",          "rollbacks",      "wal_bytes",
    "wal_writes",       "wal_syncs",      "blocks_read",
    "blocks_hit",       "blocks_written", "buffers_allocated",
    "backend_buffers",  "data_reads",     "data_writes",
    "data_syncs",       "buffer_waits",   "checkpoints",
    "lock_waits",       "lock_wait_ms",   "deadlocks",
    "wal_buffers_full", "temp_bytes",     "checkpoint_buffers",
};

struct engine {
    struct db_target *target;
    pthread_mutex_t lock;       // around changes of session, and calls on it from another thread
    struct db_session *session; // NULL: none yet, or lost
    bool had_session, is_given_up;
    _Atomic bool ends; // no connecting any more
    struct watch_counter counters[ARR_LEN(counters)];
    struct wait {
        char name[64];
        double sum; // since the last sample
    } waits[WAITS_MAX];
    int n_waits, n_looks;
    struct kvs gauges; // of the last look
};

static void *engine_open(const struct sampler_options *options)
{
    struct engine *engine;

    if (!options->target || !db_has_gauges(options->target))
        return NULL;
    engine = mem_calloc(1, sizeof(*engine));
    engine->target = options->target;
    pthread_mutex_init(&engine->lock, NULL);
    return engine;
}

static void take_session(struct engine *engine, struct db_session *session)
{
    pthread_mutex_lock(&engine->lock);
    struct db_session *old = engine->session;
    engine->session = session;
    pthread_mutex_unlock(&engine->lock);
    db_disconnect(old);
}

// Connects when the clients stand, for the last session that the server allows is theirs; without
// one left it is given up. Servers are restarted during runs: a session that was there is wanted
// again.
static bool has_session(struct engine *engine)
{
    struct db_session *session;
    struct db_result answer;

    if (engine->session && !db_session_lost(engine->session))
        return true;
    take_session(engine, NULL);
    if (engine->is_given_up || engine->ends)
        return false;
    if (db_connect(engine->target, -1, &session, &answer) != DB_OK) {
        engine->is_given_up = !engine->had_session;
        return false;
    }
    engine->had_session = true;
    take_session(engine, session);
    return true;
}

static void engine_cancel(void *self)
{
    struct engine *engine = self;

    engine->ends = true;
    pthread_mutex_lock(&engine->lock);
    if (engine->session)
        db_cancel(engine->session);
    pthread_mutex_unlock(&engine->lock);
}

static struct wait *find_wait(struct engine *engine, const char *name)
{
    for (int i = 0; i < engine->n_waits; i++)
        if (strcmp(engine->waits[i].name, name) == 0)
            return &engine->waits[i];
    if (engine->n_waits == WAITS_MAX)
        return NULL;
    struct wait *wait = &engine->waits[engine->n_waits++];
    snprintf(wait->name, sizeof(wait->name), "%s", name);
    return wait;
}

static void engine_look(void *self)
{
    struct engine *engine = self;

    kvs_release(&engine->gauges);
    if (!engine->session || db_session_lost(engine->session))
        return;
    db_gauges(engine->session, &engine->gauges);
    if (engine->gauges.n > 0)
        engine->n_looks++;
    for (size_t i = 0; i < engine->gauges.n; i++) {
        const struct kv *gauge = &engine->gauges.items[i];
        size_t prefix = strlen(DB_GAUGE_WAIT);
        if (strncmp(gauge->key, DB_GAUGE_WAIT, prefix) != 0)
            continue;
        struct wait *wait = find_wait(engine, gauge->key + prefix);
        if (wait)
            wait->sum += strtod(gauge->value, NULL);
    }
}

static void put_waits(struct engine *engine, struct watch_table *table)
{
    for (int i = 0; i < engine->n_waits; i++) {
        if (engine->n_looks > 0)
            watch_put(table, "waits", engine->waits[i].name,
                      engine->waits[i].sum / engine->n_looks);
        engine->waits[i].sum = 0;
    }
    engine->n_looks = 0;
    for (size_t i = 0; i < engine->gauges.n; i++)
        if (strncmp(engine->gauges.items[i].key, DB_GAUGE_WAIT, strlen(DB_GAUGE_WAIT)) != 0)
            watch_put(table, "engine", engine->gauges.items[i].key,
                      strtod(engine->gauges.items[i].value, NULL));
}

static void engine_sample(void *self, double passed_s, struct watch_table *table)
{
    struct engine *engine = self;
    struct kvs now = KVS_INIT;

    if (!has_session(engine))
        return;
    db_sample(engine->session, &now);
    for (size_t i = 0; i < ARR_LEN(counters); i++) {
        const char *value = kvs_get(&now, counters[i]);
        char name[64];
        snprintf(name, sizeof(name), "%s_per_s", counters[i]);
        if (value)
            watch_put(table, "engine", name,
                      watch_rate(&engine->counters[i], strtod(value, NULL), passed_s));
    }
    kvs_release(&now);
    if (passed_s > 0)
        put_waits(engine, table);
}

static void engine_close(void *self)
{
    struct engine *engine = self;

    db_disconnect(engine->session);
    pthread_mutex_destroy(&engine->lock);
    kvs_release(&engine->gauges);
    free(engine);
}

const struct watch_source watch_engine = {
    .open = engine_open,
    .look = engine_look,
    .sample = engine_sample,
    .cancel = engine_cancel,
    .close = engine_close,
};
