// How long a virtual disk takes: a pure model. Given a request and when it arrived, it says when
// the disk is done with it. No clock, no thread and no memory but its own; the same specification,
// seed and requests give the same times. Times are nanoseconds on any one clock that does not go
// back: requests are put in the order in which they arrived.
//
// A disk has channels (arms of a hard disk, flash channels); a request takes the one that is free
// first, in the order of arrival (no reordering of reads). Of a hard disk (rpm > 0) an arm moves
// (seek by distance), waits for the sector (the platter turns on whether one asks or not) and
// transfers at the rate of its zone: outside, where addresses begin, faster than inside. Of a solid
// state disk a channel takes its access time and all share the transfer rate. Reads that go on
// where the one before ended are read ahead and cost only their transfer.
//
// Writes go into the write cache at the rate of the link. A flush writes everything in it to the
// medium, in the order of addresses; from three quarters on the cache is written out by quarters,
// oldest first, and a write waits until there is room for it. Without a cache every write goes to
// the medium. Not modelled: reads answered from the write cache, writing out while idle, bad
// sectors.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define VDISK_CHANNELS_MAX 64

enum vdisk_op {
    VDISK_READ,
    VDISK_WRITE,
    VDISK_FLUSH,
    VDISK_DISCARD, // free of cost; what it covers in the cache need not be written any more
    VDISK_OPS,
};

// The numbers of a model. All zero: a disk that takes no time and has no write cache.
struct vdisk_model_spec {
    int64_t rpm;           // 0: solid state
    int64_t seek_track_ns; // to the next track
    int64_t seek_full_ns;  // over the whole disk; between them by the root of the distance
    int64_t read_ns;       // access time of a read that is not sequential, beside the mechanics
    int64_t write_ns;      // accepting a write
    int64_t flush_ns;      // a flush, beside what is written out
    int64_t rate;          // bytes per second of the medium, outside; 0: no limit
    int64_t rate_inner;    // inside; 0: as outside
    int64_t link_rate;     // bytes per second into the cache; 0: no limit
    int64_t channels;      // 1 to VDISK_CHANNELS_MAX; 0 counts as 1
    int64_t cache_bytes;   // 0: no write cache
    int64_t capacity;      // bytes of the disk it stands for; at least the size. A smaller disk is
                           // then its outer part (short stroke). 0: its size
};

// The named model, or NULL. vdisk_model_names ends with NULL: "none", "hdd-7200", ...
const struct vdisk_model_spec *vdisk_model_find(const char *name);
extern const char *const vdisk_model_names[];

struct vdisk_model;

// Makes a model of a disk of size bytes. flush_is_free: the disk answers flushes out of its cache
// (it is protected, or lies) and writes out only when that is full.
struct vdisk_model *vdisk_model_new(const struct vdisk_model_spec *spec, int64_t size,
                                    bool flush_is_free, uint64_t seed);
void vdisk_model_free(struct vdisk_model *model);
void vdisk_model_set_flush_is_free(struct vdisk_model *model, bool is_free);

// When the disk is done; never before arrival_ns. offset + length lie within the size.
int64_t vdisk_model_done_ns(struct vdisk_model *model, enum vdisk_op op, int64_t offset,
                            int64_t length, int64_t arrival_ns);

// The power is gone: the cache is empty, the arms stand at the start.
void vdisk_model_reset(struct vdisk_model *model);

// Bytes written and not yet written out, at a time.
int64_t vdisk_model_dirty_bytes(struct vdisk_model *model, int64_t now_ns);

// The least time that the model claims for a request of this kind (reads: a random one of 4 KiB on
// average); 0 when it claims none, as writes into a cache do that take no time of their own.
int64_t vdisk_model_claim_ns(const struct vdisk_model_spec *spec, enum vdisk_op op);
