#include "watch/host.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "watch/sysfs.h"

static void add_file(struct kvs *env, const char *key, const char *path)
{
    char line[256];

    if (sysfs_line(line, sizeof(line), "%s", path)) {
        struct str shown = STR_INIT;
        text_add_redacted(&shown, line[0] ? line : "unknown: the file is empty");
        kvs_add(env, key, shown.buf);
        str_release(&shown);
    } else
        kvs_addf(env, key, "unknown: %s", strerror(errno));
}

static void add_value(struct kvs *env, const char *key, const char *path, const char *name)
{
    char value[256];

    if (sysfs_value(value, sizeof(value), path, name))
        kvs_add(env, key, value);
    else
        kvs_addf(env, key, "unknown: no %s in %s", name, path);
}

static int usable_cpus(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

// A laptop on battery or a throttled supply changes results from minute to minute.
static bool on_battery(void)
{
    struct dirent *entry;
    DIR *dir = opendir("/sys/class/power_supply");
    bool discharging = false;
    char status[32];

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' &&
            sysfs_line(status, sizeof(status), "/sys/class/power_supply/%s/status",
                       entry->d_name) &&
            strcmp(status, "Discharging") == 0)
            discharging = true;
    if (dir)
        closedir(dir);
    return discharging;
}

static void add_virtualisation(struct kvs *env)
{
    char product[128] = "", flags[4096];

    sysfs_line(product, sizeof(product), "/sys/class/dmi/id/product_name");
    if (sysfs_value(flags, sizeof(flags), "/proc/cpuinfo", "flags") && strstr(flags, "hypervisor"))
        kvs_addf(env, "host.virtualization", "virtual machine%s%s", product[0] ? ": " : "",
                 product);
    else
        kvs_addf(env, "host.virtualization", "none seen%s%s", product[0] ? ": " : "", product);
    if (access("/run/.containerenv", F_OK) == 0 || access("/.dockerenv", F_OK) == 0)
        kvs_add(env, "host.container", "yes");
    else
        kvs_add(env, "host.container", getenv("container") ? getenv("container") : "none seen");
}

bool host_is_virtual(const struct kvs *environment)
{
    const char *machine = kvs_get(environment, "host.virtualization");

    return machine && strncmp(machine, "virtual", 7) == 0;
}

void host_record(struct kvs *env)
{
    static const char *const vm[] = {
        "dirty_ratio",
        "dirty_background_ratio",
        "dirty_bytes",
        "dirty_background_bytes",
        "dirty_expire_centisecs",
        "dirty_writeback_centisecs",
        "swappiness",
        "overcommit_memory",
        "nr_hugepages",
        "zone_reclaim_mode",
    };
    struct utsname uts;
    char boot_id[64], path[128], key[64], thp[128];

    if (uname(&uts) == 0) {
        kvs_add(env, "host.name", uts.nodename);
        kvs_addf(env, "host.kernel", "%s %s %s", uts.sysname, uts.release, uts.machine);
        kvs_add(env, "host.kernel_build", uts.version);
    }
    add_value(env, "host.os", "/etc/os-release", "PRETTY_NAME");
    add_value(env, "host.cpu_model", "/proc/cpuinfo", "model name");
    kvs_addf(env, "host.cpus", "%d", usable_cpus());
    kvs_addf(env, "host.cpus_online", "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    kvs_addf(env, "host.memory_bytes", "%lld", (long long)units_ram_bytes());
    add_value(env, "host.swap", "/proc/meminfo", "SwapTotal");
    add_virtualisation(env);
    add_file(env, "host.cpu_governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    kvs_add(env, "host.on_battery", on_battery() ? "yes" : "no");
    add_file(env, "host.clocksource",
             "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    if (sysfs_line(thp, sizeof(thp), "/sys/kernel/mm/transparent_hugepage/enabled"))
        kvs_add(env, "host.transparent_hugepage", thp);
    add_file(env, "host.kernel_command_line", "/proc/cmdline");
    clock_boot_id(boot_id, sizeof(boot_id));
    kvs_add(env, "host.boot_id", boot_id);
    for (size_t i = 0; i < sizeof(vm) / sizeof(vm[0]); i++) {
        snprintf(path, sizeof(path), "/proc/sys/vm/%s", vm[i]);
        snprintf(key, sizeof(key), "host.vm.%s", vm[i]);
        add_file(env, key, path);
    }
}

// ---- samples

static void read_cpu_times(struct host_sample *ret)
{
    unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
    double tick = (double)sysconf(_SC_CLK_TCK);
    FILE *file = fopen("/proc/stat", "re");

    if (file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
                       &idle, &iowait, &irq, &softirq, &steal) == 8) {
        ret->user_s = (double)(user + nice) / tick;
        ret->system_s = (double)system / tick;
        ret->idle_s = (double)idle / tick;
        ret->iowait_s = (double)iowait / tick;
        ret->irq_s = (double)(irq + softirq) / tick;
        ret->steal_s = (double)steal / tick;
    }
    if (file)
        fclose(file);
}

double host_frequency_mhz(void)
{
    char line[256];
    double most = 0, mhz;
    FILE *file = fopen("/proc/cpuinfo", "re");

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "cpu MHz : %lf", &mhz) == 1 && mhz > most)
            most = mhz;
    if (file)
        fclose(file);
    return most;
}

// Time our own group was held back by a CPU quota (containers), cgroup v2.
static double throttled_s(void)
{
    char line[PATH_MAX], path[PATH_MAX + 64], value[64];
    FILE *file = fopen("/proc/self/cgroup", "re");
    double seconds = 0;

    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "0::", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.stat", line + 3);
        if (sysfs_value(value, sizeof(value), path, "throttled_usec"))
            seconds = strtod(value, NULL) / 1e6;
    }
    if (file)
        fclose(file);
    return seconds;
}

void host_sample_take(struct host_sample *ret)
{
    char value[64];

    memset(ret, 0, sizeof(*ret));
    ret->mono_ns = clock_now_ns(&clock_system);
    read_cpu_times(ret);
    ret->throttled_s = throttled_s();
    ret->on_battery = on_battery();
    ret->cpus = usable_cpus();
    if (sysfs_value(value, sizeof(value), "/proc/meminfo", "MemAvailable"))
        ret->free_memory_bytes = strtoll(value, NULL, 10) * 1024;
}
