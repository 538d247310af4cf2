// Commands to a daemon of virtual disks: one text, one answer, over a socket in its directory. An
// answer comes when the command is done, so that "cut" means that the power is gone. NAME "*" is
// every disk.
//
//     ping                          pid PID
//     add NAME SPEC                 makes a disk (vdisk_spec.h)
//     remove NAME
//     floor NAME READ WRITE FLUSH   what the path takes, ns: from now on the model counts
//     set NAME KEY=VALUE,...        changes faults
//     stats [NAME]                  lines "KEY VALUE"; after "disk NAME" they are of that disk
//     cut NAME SURVIVORS SEED       cuts the power
//     power NAME                    gives it back; the disk must not be in use
//     save NAME [PATH]              what it holds is its saved state; or is written to a file
//     restore NAME [copy|share PATH]  back to that; or to what a file holds; not while in use
//     forget NAME                   the saved state goes
//     record PATH | record-end      recording of all disks (vdisk_log.h)
//     mark TEXT                     a word in the recording
//     stop                          ends the daemon; no disk may be in use
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define VDISK_COMMAND_MAX 4096
#define VDISK_ANSWER_MAX  (128 * 1024)

// Sends a command and waits for its answer, which is added to `answer` (may be NULL). Returns 0, or
// -1 with err: what the daemon says, or that there is none, or that it did not answer in time
// (0: 10 s). *ret_pid (may be NULL) is the daemon's process.
int vdisk_command(const char *dir, const char *command, int64_t deadline_ns, struct str *answer,
                  int *ret_pid, struct err *err);

// The address of a daemon's socket; its path may be longer than an address holds. Returns a
// descriptor of the directory that must stay open while the address is used, or -1 with err.
struct sockaddr_un;
int vdisk_address(const char *dir, struct sockaddr_un *ret, struct err *err);
