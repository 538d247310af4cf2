// Counters: the server's global status under prony's names, which are those of the other engines
// where they mean the same. All are cumulative since the server's start.
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/units.h"
#include "db/mysqldb.h"

static const struct {
    const char *status, *name;
} counters[] = {
    {"Com_commit", "commits"},
    {"Com_rollback", "rollbacks"},
    {"Questions", "statements"}, // of all clients
    {"Slow_queries", "slow_statements"},
    {"Table_locks_waited", "table_lock_waits"},
    {"Created_tmp_disk_tables", "temp_disk_tables"},
    // The redo log. Syncs are those of the log alone, where the server counts them apart.
    {"Innodb_os_log_written", "wal_bytes"},
    {"Innodb_log_writes", "wal_writes"},
    {"Innodb_os_log_fsyncs", "wal_syncs"},
    {"Innodb_log_waits", "wal_buffers_full"},         // waits because the log buffer was too small
    {"Innodb_lsn_last_checkpoint", "checkpoint_lsn"}, // bytes: moves when a checkpoint is made
    {"Innodb_lsn_current", "wal_lsn"},
    // Data files.
    {"Innodb_data_fsyncs", "data_syncs"},
    {"Innodb_data_reads", "data_reads"},
    {"Innodb_data_writes", "data_writes"},
    {"Innodb_data_read", "data_read_bytes"},
    {"Innodb_data_written", "data_written_bytes"},
    {"Innodb_dblwr_pages_written", "doublewrite_pages"},
    {"Innodb_dblwr_writes", "doublewrite_writes"},
    // The buffer pool.
    {"Innodb_buffer_pool_reads", "blocks_read"}, // pages that it lacked
    {"Innodb_buffer_pool_read_requests", "block_requests"},
    {"Innodb_buffer_pool_pages_flushed", "blocks_written"},
    {"Innodb_buffer_pool_wait_free", "buffer_waits"}, // for a clean page: flushing lags behind
    // Locks.
    {"Innodb_row_lock_waits", "lock_waits"},
    {"Innodb_row_lock_time", "lock_wait_ms"},
    {"Innodb_deadlocks", "deadlocks"},
    // The binary log.
    {"Binlog_commits", "binlog_commits"},
    {"Binlog_group_commits", "binlog_group_commits"},
    {"Binlog_bytes_written", "binlog_bytes"},
    {"Binlog_cache_disk_use", "binlog_cache_spills"},
    // MyISAM and Aria.
    {"Key_reads", "key_blocks_read"},
    {"Key_read_requests", "key_block_requests"},
    {"Key_writes", "key_blocks_written"},
    {"Aria_pagecache_reads", "aria_blocks_read"},
    {"Aria_pagecache_read_requests", "aria_block_requests"},
    {"Aria_pagecache_writes", "aria_blocks_written"},
    {"Aria_transaction_log_syncs", "aria_log_syncs"},
};

static void take_counter(void *arg, int n, const char *const *names, const char *const *values)
{
    struct kvs *out = arg;

    (void)names;
    for (size_t i = 0; n >= 2 && values[0] && values[1] && i < ARR_LEN(counters); i++)
        if (strcasecmp(values[0], counters[i].status) == 0)
            kvs_set(out, counters[i].name, values[1]);
}

// Requests that the pool could serve, as the other engines count them.
static void add_blocks_hit(struct kvs *out)
{
    const char *requests = kvs_get(out, "block_requests");
    const char *reads = kvs_get(out, "blocks_read");
    int64_t n, missed;

    if (requests && reads && units_parse_int(requests, &n, NULL) == 0 &&
        units_parse_int(reads, &missed, NULL) == 0 && n >= missed)
        kvs_addf(out, "blocks_hit", "%lld", (long long)(n - missed));
}

void mysqldb_sample(struct db_session *base, struct kvs *out)
{
    struct mysqldb_session *s = mysqldb_session(base);
    struct db_result ignored = {0};
    struct str sql = STR_INIT;

    // Asking for these alone saves the server from sending hundreds more.
    str_add(&sql, "SHOW GLOBAL STATUS WHERE Variable_name IN (");
    for (size_t i = 0; i < ARR_LEN(counters); i++)
        str_addf(&sql, "%s'%s'", i ? "," : "", counters[i].status);
    str_addc(&sql, ')');
    mysqldb_text(s, sql.buf, sql.len, false, take_counter, out, &ignored);
    str_release(&sql);
    add_blocks_hit(out);
}

// ---- momentary values

static const struct {
    const char *status, *name;
} gauges_of[] = {
    {"Innodb_row_lock_current_waits", DB_GAUGE_WAIT "row lock"},
    {"Innodb_buffer_pool_pages_dirty", "dirty_pages"},
    {"Innodb_checkpoint_age", "checkpoint_age_bytes"},
    {"Innodb_history_list_length", "history_list_length"},
};

static void take_gauge(void *arg, int n, const char *const *names, const char *const *values)
{
    struct kvs *out = arg;

    (void)names;
    for (size_t i = 0; n >= 2 && values[0] && values[1] && i < ARR_LEN(gauges_of); i++)
        if (strcasecmp(values[0], gauges_of[i].status) == 0)
            kvs_set(out, gauges_of[i].name, values[1]);
}

static void take_state(void *arg, int n, const char *const *names, const char *const *values)
{
    (void)names;
    if (n < 2 || !values[0] || !values[1])
        return;
    char *key = mem_printf(DB_GAUGE_WAIT "%s", values[0]);
    kvs_add(arg, key, values[1]);
    free(key);
}

// The process list tells the stage that a session is in, which is not always a wait: one that waits
// for a row lock is "Updating".
void mysqldb_gauges(struct db_session *base, struct kvs *out)
{
    static const char status[] =
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_row_lock_current_waits', "
        "'Innodb_buffer_pool_pages_dirty', 'Innodb_checkpoint_age', 'Innodb_history_list_length')";
    static const char states[] =
        "SELECT CASE WHEN command = 'Sleep' THEN 'client' WHEN coalesce(state, '') = '' THEN 'CPU' "
        "ELSE state END, count(*) FROM information_schema.processlist WHERE db = database() AND "
        "id <> connection_id() GROUP BY 1";
    struct mysqldb_session *s = mysqldb_session(base);
    struct db_result ignored = {0};

    mysqldb_text(s, status, strlen(status), false, take_gauge, out, &ignored);
    mysqldb_text(s, states, strlen(states), false, take_state, out, &ignored);
}
