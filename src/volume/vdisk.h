// Virtual disks from outside: start a daemon in a directory, make disks, put them under loop
// devices, cut their power, take all down. Everything is named by the directory and the name of the
// disk, so whoever has these needs no other state; nothing here is kept in memory.
//
// Fault model and recording: VDISK.md. Commands beyond these: vdisk_control.h. Needs root, loop
// devices and /dev/fuse; where something is missing the error is ERR_ABSENT and says what.
//
// Undoing: before vdisk_start, list the directory as a tree and then the command of vdisk_stop_argv
// as leftovers (base/leftovers.h): in reverse order they take everything down, also after kill -9.
// A file system on a disk must be listed after them, so that it is unmounted before.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "volume/vdisk_cache.h"
#include "volume/vdisk_model.h"
#include "volume/vdisk_spec.h"

#define VDISK_DEVICE_MAX    32
#define VDISK_HANG_STANDARD (15 * 1000000000LL)

// Whether virtual disks can be had here, at all.
int vdisk_check_here(struct err *err);

// Starts a daemon in dir, which is made (mode 0700) unless it is there, empty and private. The
// daemon is a session of its own and outlives this process. hang_ns: see vdisk_daemon.h.
int vdisk_start(const char *dir, int64_t hang_ns, struct err *err);

// Makes a disk and attaches it: device (VDISK_DEVICE_MAX bytes) is then its loop device.
int vdisk_add(const char *dir, const char *name, const struct vdisk_spec *spec, char *device,
              struct err *err);

// What the path from the loop device to the daemon and back takes by itself: measured on a small
// disk of its own whose requests take 1 ms, for to be woken after a wait is a part of the path. Of
// single requests of 4 KiB it is what a tenth of them keep. A daemon that has timed disks knows it
// already. Half a second.
#define VDISK_FLOOR_NAME "prony-floor" // of that disk
int vdisk_measure_floor(const char *dir, int64_t ret_floor_ns[VDISK_OPS], struct err *err);

// Whether a model can be told from its path: every claim that is not 0 should be 5 times the floor.
// Own numbers below are an error unless spec->near_floor; what is below otherwise (because it was
// asked for, or belongs to a model that was asked for by name) is appended to marks, as "read 100us
// of ssd-sata is 1.4 times the floor"; a line each.
#define VDISK_FLOOR_TIMES 5
int vdisk_check_floor(const struct vdisk_spec *spec, const int64_t floor_ns[VDISK_OPS],
                      struct str *marks, struct err *err);

// Tells the daemon the floor: from now on the model of the disk counts.
int vdisk_set_floor(const char *dir, const char *name, const int64_t floor_ns[VDISK_OPS],
                    struct err *err);

// Loop device of a disk: attach, look up (false: none), detach. Detaching a mounted one is an
// error that names the mount point.
int vdisk_attach(const char *dir, const char *name, char *device, struct err *err);
bool vdisk_device(const char *dir, const char *name, char *device);
int vdisk_detach(const char *dir, const char *name, struct err *err);

// Detaches a disk and makes the daemon forget it; not while it is recorded.
int vdisk_remove(const char *dir, const char *name, struct err *err);

// Cuts the power of a disk ("*": of all). Returns when it is gone. answer: lines of the daemon.
int vdisk_cut(const char *dir, const char *name, enum vdisk_survivors survivors, uint64_t seed,
              struct str *answer, struct err *err);

// What a disk holds becomes its saved state, which the daemon keeps (path NULL), or is written to a
// new file. Unmount before, or it is as after a crash. Other disks of the daemon wait meanwhile.
int vdisk_save(const char *dir, const char *name, const char *path, struct err *err);

// Detaches, goes back to the saved state, or to what a file that vdisk_save made holds, and
// attaches anew. shares: the file is not copied; it must not change while the disk is there.
int vdisk_restore(const char *dir, const char *name, const char *path, bool shares, char *device,
                  struct err *err);

// After a cut: detaches, gives power and attaches anew. Unmount before.
int vdisk_power(const char *dir, const char *name, char *device, struct err *err);

// Detaches all disks, ends the daemon and removes what vdisk_start made. A disk that is mounted
// stops it with an error. A daemon that does not answer is ended by force: force also does so
// without asking it. Nothing there is success.
int vdisk_stop(const char *dir, bool force, struct err *err);

// The command that does vdisk_stop from anywhere; NULL-terminated, freed by vdisk_argv_free.
char **vdisk_stop_argv(const char *dir);
void vdisk_argv_free(char **argv);

// The names of the disks of a daemon. The caller frees each and the array; ends with NULL.
char **vdisk_names(const char *dir, struct err *err);
