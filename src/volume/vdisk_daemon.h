// The daemon of virtual disks: serves any number of them as files of a FUSE file system, to be put
// under loop devices with direct I/O, and obeys commands on a socket.
//
//     DIR/             mode 0700
//     DIR/socket       commands (vdisk_control.h)
//     DIR/disks/NAME   the disks
//     DIR/daemon.log   what it has to say
//
// Three threads: the reader takes requests from the kernel and says when they are due; the timer
// carries them out and replies then; the control thread obeys. One lock holds all together. A
// process of its own guards it (vdisk_watch.h).
#pragma once

#include <stdint.h>

#include "base/err.h"

// Serves until the file system is unmounted or the command stop; runs in a process of its own.
// hang_ns: after that long without a sign of life the guard ends the disks. Returns 0 or -1.
int vdisk_daemon_run(const char *dir, int64_t hang_ns, struct err *err);
