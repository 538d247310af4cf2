// Counters of the server, cumulative since its statistics were last reset. The difference of two
// samples describes what happened in between (all of the server, not prony's clients alone).
//
// Views differ between versions, so each is read whole and its columns are looked up by name: what
// a version lacks is left out. Names of counters are the same whatever the version.
#include "db/postgres.h"

#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"

struct counter {
    const char *column;
    const char *name;
};

// pg_stat_bgwriter; from PostgreSQL 17 on the checkpointer has a view of its own.
static const struct counter bgwriter[] = {
    {"checkpoints_timed", "checkpoints_timed"},
    {"checkpoints_req", "checkpoints_requested"},
    {"checkpoint_write_time", "checkpoint_write_ms"},
    {"checkpoint_sync_time", "checkpoint_sync_ms"},
    {"buffers_checkpoint", "checkpoint_buffers"}, // pages written by checkpoints
    {"buffers_clean", "bgwriter_buffers"},        // pages written by the background writer
    {"maxwritten_clean", "bgwriter_stops"},       // it stopped at bgwriter_lru_maxpages
    {"buffers_backend", "backend_buffers"},       // pages that sessions had to write themselves
    {"buffers_backend_fsync", "backend_fsyncs"},  // and flush themselves
    {"buffers_alloc", "buffers_allocated"},
    {NULL, NULL},
};

static const struct counter checkpointer[] = {
    {"num_timed", "checkpoints_timed"},        {"num_requested", "checkpoints_requested"},
    {"write_time", "checkpoint_write_ms"},     {"sync_time", "checkpoint_sync_ms"},
    {"buffers_written", "checkpoint_buffers"}, {NULL, NULL},
};

static const struct counter session_io[] = {
    {"writes", "backend_buffers"},
    {"fsyncs", "backend_fsyncs"},
    {NULL, NULL},
};

// pg_stat_database, the row of the connected database.
static const struct counter database[] = {
    {"xact_commit", "commits"},
    {"xact_rollback", "rollbacks"},
    {"blks_read", "blocks_read"}, // asked of the kernel, whose cache may have had them
    {"blks_hit", "blocks_hit"},
    {"blk_read_time", "block_read_ms"}, // 0 unless track_io_timing is on
    {"blk_write_time", "block_write_ms"},
    {"tup_returned", "rows_returned"},
    {"tup_fetched", "rows_fetched"},
    {"tup_inserted", "rows_inserted"},
    {"tup_updated", "rows_updated"},
    {"tup_deleted", "rows_deleted"},
    {"conflicts", "conflicts"}, // queries cancelled by recovery on a replica
    {"deadlocks", "deadlocks"},
    {"temp_files", "temp_files"},
    {"temp_bytes", "temp_bytes"},
    {NULL, NULL},
};

// pg_stat_wal, PostgreSQL 14 and later.
static const struct counter wal[] = {
    {"wal_records", "wal_records"},
    {"wal_fpi", "wal_full_pages"}, // whole pages written because of full_page_writes
    {"wal_bytes", "wal_bytes"},
    {"wal_buffers_full", "wal_buffers_full"}, // written early because wal_buffers was full
    {"wal_write", "wal_writes"},
    {"wal_sync", "wal_syncs"},
    {"wal_write_time", "wal_write_ms"}, // 0 unless track_wal_io_timing is on
    {"wal_sync_time", "wal_sync_ms"},
    {NULL, NULL},
};

static const struct view {
    int from, before; // server versions (PQserverVersion) that have it; before 0: all later ones
    const char *sql;
    const struct counter *counters;
} views[] = {
    {0, 0, "SELECT * FROM pg_stat_bgwriter", bgwriter},
    {170000, 0, "SELECT * FROM pg_stat_checkpointer", checkpointer},
    {170000, 0,
     "SELECT sum(writes) AS writes, sum(fsyncs) AS fsyncs FROM pg_stat_io "
     "WHERE backend_type = 'client backend' AND object = 'relation'",
     session_io},
    {0, 0, "SELECT * FROM pg_stat_database WHERE datname = current_database()", database},
    {140000, 0, "SELECT * FROM pg_stat_wal", wal},
    {180000, 0,
     "SELECT sum(writes) AS wal_write, sum(fsyncs) AS wal_sync, "
     "sum(write_time) AS wal_write_time, sum(fsync_time) AS wal_sync_time "
     "FROM pg_stat_io WHERE object = 'wal'",
     wal},
    {100000, 140000,
     "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS wal_bytes "
     "WHERE NOT pg_is_in_recovery()",
     wal},
};

static void take_row(const PGresult *res, const struct counter *counters, struct kvs *out)
{
    for (const struct counter *c = counters; c->column; c++) {
        int i = PQfnumber(res, c->column);
        if (i >= 0 && !PQgetisnull(res, 0, i))
            kvs_set(out, c->name, PQgetvalue(res, 0, i));
    }
}

static void add_checkpoints(struct kvs *out)
{
    const char *timed = kvs_get(out, "checkpoints_timed");
    const char *requested = kvs_get(out, "checkpoints_requested");
    char text[DB_VALUE_TEXT_MAX];

    if (!timed || !requested)
        return;
    db_format_int(strtoll(timed, NULL, 10) + strtoll(requested, NULL, 10), text);
    kvs_set(out, "checkpoints", text);
}

void postgres_sample(struct db_session *base, struct kvs *counters)
{
    struct postgres_session *s = postgres_session(base);
    int version = PQserverVersion(s->conn);

    for (size_t i = 0; i < ARR_LEN(views); i++) {
        const struct view *v = &views[i];
        if (version < v->from || (v->before && version >= v->before))
            continue;
        PGresult *res = postgres_ask(s, v->sql, NULL);
        if (res)
            take_row(res, v->counters, counters);
        PQclear(res);
    }
    add_checkpoints(counters);
}

// Sessions that are in no statement wait for their client, as does one in the middle of sending or
// reading. A session without a wait is on a processor, or wants to be.
void postgres_gauges(struct db_session *base, struct kvs *gauges)
{
    struct postgres_session *s = postgres_session(base);
    PGresult *res = postgres_ask(s,
                                 "SELECT CASE WHEN state <> 'active' OR wait_event_type = 'Client' "
                                 "THEN 'client' ELSE coalesce(wait_event_type || ':' || "
                                 "wait_event, 'CPU') END, count(*) FROM pg_stat_activity WHERE "
                                 "backend_type = 'client backend' AND datname = current_database() "
                                 "AND pid <> pg_backend_pid() GROUP BY 1",
                                 NULL);

    for (int i = 0; res && PQnfields(res) == 2 && i < PQntuples(res); i++) {
        char *key = mem_printf(DB_GAUGE_WAIT "%s", PQgetvalue(res, i, 0));
        kvs_add(gauges, key, PQgetvalue(res, i, 1));
        free(key);
    }
    PQclear(res);
}
