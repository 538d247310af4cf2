// The guard of a daemon: a process of its own session that holds the abort file of the daemon's
// FUSE connection. When the daemon's heart does not beat for the time allowed (it is stopped, or
// hangs), everything that uses its disks waits in the kernel and cannot be killed; then the guard
// fires: it ends the connection, so that all of them get errors, and kills the daemon.
//
// A pause of the whole machine does not count: what counts is how often the guard itself looked.
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct vdisk_watch {
    atomic_llong beats;     // by the daemon, at least ten a second
    atomic_uint connection; // number of the FUSE connection + 1; 0: none yet
    atomic_bool is_armed;   // the guard holds the abort file
};

// Forks the guard of this process, which must have one thread and no FUSE device open yet. The page
// is shared with it. deadline_ns: how long the heart may stand still. NULL with err.
struct vdisk_watch *vdisk_watch_start(int64_t deadline_ns, pid_t *ret_guard, struct err *err);

static inline void vdisk_watch_beat(struct vdisk_watch *watch)
{
    atomic_fetch_add_explicit(&watch->beats, 1, memory_order_relaxed);
}

// The number of the FUSE connection behind a mount point; -1 with err when it is none. Asks the
// kernel's table, never the daemon.
int vdisk_connection_of(const char *mount_point, struct err *err);

// Opens the abort file of a connection, whether the control file system is mounted or not.
int vdisk_abort_open(int connection, struct err *err);

// Ends a connection for good: everything that waits for it gets an error.
int vdisk_abort(int connection, struct err *err);
