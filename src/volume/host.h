// Settings of this machine that a run needs: set before anything is made, read back, recorded, and
// put back at the end, on error, on signals and after kill -9 (the registry of leftovers), the last
// one first. A reboot undoes them by itself.
//
//     KEY=VALUE
//     vm.dirty_ratio=5            a sysctl, as sysctl(8) names it (also with '/' for '.')
//     zfs.arc_max=1GB             a parameter of the module zfs (zfs_arc_max)
//     module.NAME.PARAMETER=1     of any module that is loaded
//     thp=never   thp.defrag=defer    transparent huge pages
//     governor=performance        of every CPU's frequency
//     /sys/PATH=VALUE, /proc/sys/PATH=VALUE    any other file there
//
// A number with a unit (64MB, 1GB) is written as bytes. What the kernel then shows must be what was
// wanted, or it is an error before the run, with the kernel's reason. A setting belongs to one
// prony: a file in HOST_CLAIMS says whose it is, until it was put back.
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/kv.h"
#include "base/leftovers.h"
#include "base/str.h"

#define HOST_CLAIMS "/run/prony-host"

struct host_wish {
    char *const *items; // KEY=VALUE; a key stands once
    size_t n;
    struct leftovers *leftovers;
    const char *root;   // put before /proc/sys and /sys; NULL: nothing (tests have their own)
    const char *claims; // NULL: HOST_CLAIMS
};

struct host_settings;

// Sets all, in their order. ERR_USAGE: unknown, given twice, refused by the kernel, another
// prony's; ERR_ABSENT: not by this user, or not here. On failure what was set is put back.
int host_set(struct host_settings **ret, const struct host_wish *wish, struct err *err);

// Puts them back, the last one first, and frees. A line in report for each that could not be (it
// stays in the registry). Returns how many. NULL is allowed.
int host_put_back(struct host_settings *settings, struct str *report);

// "vm.dirty_ratio=5 (was 20), thp=never (was madvise)"
void host_describe(const struct host_settings *settings, struct str *out);

// Adds host.set.KEY (what was set) and host.was.KEY (what was there) to the environment.
void host_record_settings(const struct host_settings *settings, struct kvs *environment);
