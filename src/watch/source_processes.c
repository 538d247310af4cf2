// The server's processes together, and prony itself: processors used, bytes of storage.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "watch/source.h"
#include "watch/sysfs.h"

#define CHILDREN_MAX 600 // reading more would cost what is to be measured

struct processes {
    int64_t server_pid;
    struct watch_counter client_cpu, server_cpu, read, written;
};

static void *processes_open(const struct sampler_options *options)
{
    struct processes *p = mem_calloc(1, sizeof(*p));

    p->server_pid = options->server_pid;
    return p;
}

// Seconds of CPU that a process has used, with the children that it waited for where those count.
static double cpu_s(int64_t pid, bool with_dead)
{
    char line[1024];
    double user, system, dead_user, dead_system;

    if (!sysfs_line(line, sizeof(line), "/proc/%lld/stat", (long long)pid))
        return 0;
    const char *after = strrchr(line, ')'); // the name may hold anything
    // From state (field 3) to utime, stime, cutime, cstime (14 to 17), proc(5).
    if (!after || sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lf %lf %lf %lf",
                         &user, &system, &dead_user, &dead_system) != 4)
        return 0;
    double ticks = user + system + (with_dead ? dead_user + dead_system : 0);
    return ticks / (double)sysconf(_SC_CLK_TCK);
}

static double io_bytes(int64_t pid, const char *name)
{
    char path[64], value[64];

    snprintf(path, sizeof(path), "/proc/%lld/io", (long long)pid);
    return sysfs_value(value, sizeof(value), path, name) ? strtod(value, NULL) : NAN;
}

// A server's first process and its children; NaN where there are too many to read.
static void sum_family(int64_t pid, double *ret_cpu_s, double *ret_read, double *ret_written)
{
    char path[64];
    long long child;
    int n = 0;

    *ret_cpu_s = cpu_s(pid, true);
    *ret_read = io_bytes(pid, "read_bytes");
    *ret_written = io_bytes(pid, "write_bytes");
    snprintf(path, sizeof(path), "/proc/%lld/task/%lld/children", (long long)pid, (long long)pid);
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%lld", &child) == 1) {
        if (++n > CHILDREN_MAX) {
            *ret_cpu_s = *ret_read = *ret_written = NAN;
            break;
        }
        double read = io_bytes(child, "read_bytes"), written = io_bytes(child, "write_bytes");
        *ret_cpu_s += cpu_s(child, true);
        *ret_read += isfinite(read) ? read : 0; // it has just ended
        *ret_written += isfinite(written) ? written : 0;
    }
    if (file)
        fclose(file);
}

static void processes_sample(void *self, double passed_s, struct watch_table *table)
{
    struct processes *p = self;
    double cpu, read, written;

    watch_put(table, "client", "cpu_cores",
              watch_rate(&p->client_cpu, cpu_s(getpid(), false), passed_s));
    if (p->server_pid <= 0)
        return;
    sum_family(p->server_pid, &cpu, &read, &written);
    if (isfinite(cpu) && cpu > 0)
        watch_put(table, "server", "cpu_cores", watch_rate(&p->server_cpu, cpu, passed_s));
    if (isfinite(read)) // another user's are not told
        watch_put(table, "server", "read_bytes_per_s", watch_rate(&p->read, read, passed_s));
    if (isfinite(written))
        watch_put(table, "server", "write_bytes_per_s", watch_rate(&p->written, written, passed_s));
}

const struct watch_source watch_processes = {
    .open = processes_open,
    .sample = processes_sample,
    .close = free,
};
