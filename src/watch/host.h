// The machine: what it is (recorded once with each run) and how it was doing during the load (two
// samples). From /proc and /sys; works in containers, where some of it is "unknown: REASON".
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/kv.h"

// host.kernel, host.os, host.cpu_model, host.cpus, host.memory_bytes, host.virtualization,
// host.container, host.cpu_governor, host.on_battery, host.boot_id, host.clocksource, host.swap,
// host.transparent_hugepage, host.vm.dirty_ratio and the other vm.* that matter to databases, ...
// (docs/environment.md).
void host_record(struct kvs *environment);

// As recorded there: is this a guest?
bool host_is_virtual(const struct kvs *environment);

struct host_sample {
    int64_t mono_ns;
    double user_s, system_s, iowait_s, irq_s, idle_s, steal_s; // sums over all CPUs since boot
    double throttled_s; // CPU quota of our cgroup; 0 none or unknown
    bool on_battery;
    int cpus;                  // that this process may use
    int64_t free_memory_bytes; // MemAvailable
};
void host_sample_take(struct host_sample *ret);

// The clock of the fastest CPU; 0 unknown. Only under load does it say what the CPUs can: idle ones
// slow down.
double host_frequency_mhz(void);
