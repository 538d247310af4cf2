// The disk of any moment of a recording: f(log, cut point, fate). Uses the structure that the
// daemon itself uses, so a live cut and its replay cannot differ.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "volume/vdisk_cache.h"
#include "volume/vdisk_log.h"
#include "volume/vdisk_spec.h"

struct vdisk_replay {
    struct vdisk_cut cut; // what was pending at the cut point
    uint64_t last_seq;    // of the log, as far as it could be read
    int64_t size;         // of the disk
};

// The size of the disk called name at its first record. Reads the log from its start.
int vdisk_replay_find(const char *log_path, const char *name, uint16_t *ret_disk, int64_t *ret_size,
                      struct err *err);

// Puts onto a medium of zeros what the disk holds when its power is cut after record cut_seq
// (UINT64_MAX: after the last one; 0 is before everything). A protected disk keeps what it had.
// Live cuts on the way happen as they did. The log must be whole up to the cut point.
int vdisk_replay_disk(const char *log_path, uint16_t disk, uint64_t cut_seq,
                      const struct vdisk_fate *fate, const struct vdisk_medium *medium,
                      struct vdisk_replay *ret, struct err *err);
