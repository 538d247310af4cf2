#include "server/tune.h"

#include <assert.h>
#include <inttypes.h>

#include "server/kind.h"

#define MB (INT64_C(1) << 20)
#define GB (INT64_C(1) << 30)

static int64_t within(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

// In whole megabytes, as people write them.
static void add_size(struct kvs *settings, const char *name, int64_t bytes, const char *unit)
{
    kvs_addf(settings, name, "%" PRId64 "%s", bytes / MB, unit);
}

// A log that fills its volume stops the server: at most half of what is free there.
static int64_t log_size(const struct tune_input *input, int64_t wanted, int64_t least)
{
    if (input->log_free_bytes >= 0 && wanted > input->log_free_bytes / 2)
        wanted = input->log_free_bytes / 2;
    return wanted < least ? least : wanted;
}

void tune_postgres(const struct tune_input *input, struct kvs *settings)
{
    int64_t connections = input->clients + 20 > 100 ? input->clients + 20 : 100;
    int64_t shared = within(input->ram_bytes / 4, 128 * MB, 64 * GB);
    int64_t wal_max = log_size(input, 8 * GB, 256 * MB);
    int64_t gather = within(input->cpus / 2, 1, 4);

    assert(input->ram_bytes > 0 && input->cpus > 0);
    kvs_addf(settings, "max_connections", "%" PRId64, connections);
    add_size(settings, "shared_buffers", shared, "MB");
    add_size(settings, "effective_cache_size",
             within(input->ram_bytes / 4 * 3, 256 * MB, INT64_MAX), "MB");
    add_size(settings, "maintenance_work_mem", within(input->ram_bytes / 16, 64 * MB, 2 * GB),
             "MB");
    // Each session may use it several times over at once.
    int64_t rest = input->ram_bytes - shared;
    add_size(settings, "work_mem", within(rest / (connections * 3) / gather, 4 * MB, GB), "MB");
    kvs_add(settings, "wal_buffers", "16MB");
    add_size(settings, "max_wal_size", wal_max, "MB");
    add_size(settings, "min_wal_size", within(wal_max / 4, 80 * MB, 2 * GB), "MB");
    kvs_add(settings, "checkpoint_completion_target", "0.9");
    if (input->cpus >= 4) {
        kvs_addf(settings, "max_worker_processes", "%" PRId64, within(input->cpus, 8, 1024));
        kvs_addf(settings, "max_parallel_workers", "%" PRId64, within(input->cpus, 8, 1024));
        kvs_addf(settings, "max_parallel_workers_per_gather", "%" PRId64, gather);
    }
}

// MySQL's own rule for a machine of its own (innodb_dedicated_server), and direct I/O, so that
// pages are not kept twice.
void tune_innodb(const struct tune_input *input, struct kvs *settings)
{
    int64_t ram = input->ram_bytes;
    int64_t connections = input->clients + 20 > 151 ? input->clients + 20 : 151;
    int64_t pool = ram < GB ? 128 * MB : ram <= 4 * GB ? ram / 2 : ram / 4 * 3;
    int64_t log = ram < 8 * GB ? 512 * MB : ram <= 128 * GB ? GB : 2 * GB;

    assert(ram > 0);
    kvs_addf(settings, "max_connections", "%" PRId64, connections);
    add_size(settings, "innodb_buffer_pool_size", pool, "M");
    add_size(settings, "innodb_log_file_size", log_size(input, log, 48 * MB), "M");
    kvs_add(settings, "innodb_log_buffer_size", "64M");
    kvs_add(settings, "innodb_flush_method", "O_DIRECT");
}
