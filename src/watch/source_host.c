// The machine: processors, run queue, memory, pressure. Shares are of all processors, or of time.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "watch/source.h"
#include "watch/sysfs.h"

// The times of the line "cpu" of /proc/stat, in its order (proc(5)).
static const char *const times[] = {
    "cpu_user_share",   "cpu_nice_share", "cpu_system_share",  "cpu_idle_share",
    "cpu_iowait_share", "cpu_irq_share",  "cpu_softirq_share", "cpu_steal_share",
};

static const struct {
    const char *file, *line, *name;
} pressures[] = {
    {"cpu", "some", "pressure_cpu_share"},
    {"io", "some", "pressure_io_share"},
    {"io", "full", "pressure_io_full_share"},
    {"memory", "some", "pressure_memory_share"},
};

static const struct {
    const char *line, *name;
} memories[] = {
    {"MemAvailable", "memory_available_bytes"},
    {"Dirty", "dirty_bytes"},
    {"Writeback", "writeback_bytes"},
};

struct host {
    struct watch_counter times[ARR_LEN(times)], switches, pressures[ARR_LEN(pressures)];
};

static void *host_open(const struct sampler_options *options)
{
    (void)options;
    return mem_calloc(1, sizeof(struct host));
}

static void put_times(struct host *host, const char *line, double passed_s,
                      struct watch_table *table)
{
    double rates[ARR_LEN(times)], sum = 0;
    char *end;

    for (size_t i = 0; i < ARR_LEN(times); i++) {
        double now = strtod(line, &end);
        rates[i] = end == line ? NAN : watch_rate(&host->times[i], now, passed_s);
        line = end;
        sum += rates[i];
    }
    for (size_t i = 0; i < ARR_LEN(times); i++)
        watch_put(table, "host", times[i], rates[i] / sum);
}

static void put_stat(struct host *host, double passed_s, struct watch_table *table)
{
    FILE *file = fopen("/proc/stat", "re");
    char line[256]; // the line of interrupts is longer, and passes in pieces
    bool begins = true;

    while (file && fgets(line, sizeof(line), file)) {
        if (begins && strncmp(line, "cpu ", 4) == 0)
            put_times(host, line + 4, passed_s, table);
        else if (begins && strncmp(line, "ctxt ", 5) == 0)
            watch_put(table, "host", "context_switches_per_s",
                      watch_rate(&host->switches, strtod(line + 5, NULL), passed_s));
        else if (begins && strncmp(line, "procs_running ", 14) == 0 && passed_s > 0)
            watch_put(table, "host", "running_tasks", strtod(line + 14, NULL));
        else if (begins && strncmp(line, "procs_blocked ", 14) == 0 && passed_s > 0)
            watch_put(table, "host", "blocked_tasks", strtod(line + 14, NULL));
        begins = strchr(line, '\n') != NULL;
    }
    if (file)
        fclose(file);
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345": microseconds in which tasks waited.
static double pressure_us(const char *name, const char *wanted)
{
    char path[64], line[256];
    double total = NAN;

    snprintf(path, sizeof(path), "/proc/pressure/%s", name);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        const char *at = strstr(line, "total=");
        if (strncmp(line, wanted, strlen(wanted)) == 0 && at)
            total = strtod(at + 6, NULL);
    }
    if (file)
        fclose(file);
    return total;
}

static void host_sample(void *self, double passed_s, struct watch_table *table)
{
    struct host *host = self;
    char value[64];

    put_stat(host, passed_s, table);
    for (size_t i = 0; i < ARR_LEN(pressures); i++) {
        double now = pressure_us(pressures[i].file, pressures[i].line);
        if (isfinite(now)) // a kernel without them
            watch_put(table, "host", pressures[i].name,
                      watch_rate(&host->pressures[i], now / 1e6, passed_s));
    }
    for (size_t i = 0; i < ARR_LEN(memories) && passed_s > 0; i++)
        if (sysfs_value(value, sizeof(value), "/proc/meminfo", memories[i].line))
            watch_put(table, "host", memories[i].name, strtod(value, NULL) * 1024);
}

const struct watch_source watch_host = {
    .open = host_open,
    .sample = host_sample,
    .close = free,
};
