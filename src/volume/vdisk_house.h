// The disks of one daemon and their recording, without FUSE, threads or clock: the order in which
// things become visible, logged and durable. The daemon holds one lock around every call (but
// `dead`, which is set before it is taken); times are passed in.
//
// A request: house_admit when it arrives (may it be served at all), house_due_ns (when is it done
// by the model), then at that time house_write, house_flush or house_zero, and then its reply. So a
// write is logged and in the cache when it is replied to and not before, and a flush covers what
// was replied to before it arrived.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "volume/vdisk_cache.h"
#include "volume/vdisk_layers.h"
#include "volume/vdisk_log.h"
#include "volume/vdisk_model.h"
#include "volume/vdisk_spec.h"

#define VDISK_DISKS_MAX 64

struct vdisk_counters {
    uint64_t requests[VDISK_OPS];
    uint64_t bytes[VDISK_OPS];
    uint64_t eio;      // requests answered with EIO, also after a cut
    uint64_t destaged; // writes that a full cache or a discard made durable
    uint64_t lied;     // flushes acknowledged and not done
    uint64_t cuts;
};

struct vdisk_disk {
    char name[VDISK_NAME_MAX + 1];
    uint16_t index;
    struct vdisk_spec spec;
    struct vdisk_model *model;
    struct vdisk_cache *cache;
    struct vdisk_counters counters;
    struct vdisk_layers contents;
    atomic_bool dead;            // its power is cut
    bool is_timed;               // the model counts; not before the floor was measured
    int64_t floor_ns[VDISK_OPS]; // what the path takes by itself
    int64_t last_due_ns;         // of all requests so far: the last reply,
    int64_t last_done_ns;        // and when the model was done
    int opens;                   // by the loop device
};

struct vdisk_house {
    struct vdisk_disk *disks[VDISK_DISKS_MAX]; // by index; removed ones are NULL
    int n_disks;
    struct vdisk_log *log; // NULL: not recording
    char *log_path;
    uint64_t seq;                // the last sequence number given
    unsigned epoch;              // of the numbers: a recording begins them anew
    void (*beat)(void *context); // called now and then during long work; may be NULL
    void *beat_context;
};

void house_init(struct vdisk_house *house);
void house_release(struct vdisk_house *house); // ends the recording

// Makes a disk; its contents lie in memory or in spec->media. Takes over what spec owns, also on
// failure.
int house_add(struct vdisk_house *house, const char *name, struct vdisk_spec *spec, int64_t now_ns,
              struct err *err);
int house_remove(struct vdisk_house *house, struct vdisk_disk *disk, struct err *err);
struct vdisk_disk *house_find(struct vdisk_house *house, const char *name);

// Changes faults of a running disk.
int house_set(struct vdisk_house *house, struct vdisk_disk *disk, const char *text, int64_t now_ns,
              struct err *err);

// The model counts from now on, less what the path takes by itself; counters begin anew.
void house_set_floor(struct vdisk_disk *disk, const int64_t floor_ns[VDISK_OPS]);

// 0, or the negative errno to answer with: dead, a fault, or beyond the disk.
int house_admit(struct vdisk_disk *disk, enum vdisk_op op, uint64_t offset, uint64_t length);

// When the reply is due; INT64_MAX while the disk stalls. Only for what was admitted.
int64_t house_due_ns(struct vdisk_disk *disk, enum vdisk_op op, uint64_t offset, uint64_t length,
                     int64_t arrival_ns);

// What each request does. Return 0 or a negative errno.
int house_read(struct vdisk_disk *disk, uint64_t offset, void *bytes, size_t n);
int house_write(struct vdisk_house *house, struct vdisk_disk *disk, uint64_t offset,
                const void *bytes, size_t n, int64_t now_ns);
int house_zero(struct vdisk_house *house, struct vdisk_disk *disk, uint64_t offset, uint64_t n,
               int64_t now_ns);

// A flush in two steps: what it covers, when it arrives; and its end.
struct house_flush {
    uint64_t covers; // all writes through this number
    unsigned epoch;
};
int house_flush_begin(struct vdisk_house *house, struct vdisk_disk *disk, int64_t now_ns,
                      struct house_flush *ret);
int house_flush_end(struct vdisk_house *house, struct vdisk_disk *disk,
                    const struct house_flush *flush, int64_t now_ns);

// Cuts the power: survivors are chosen and the disk is dead. A protected disk keeps all.
int house_cut(struct vdisk_house *house, struct vdisk_disk *disk, const struct vdisk_fate *fate,
              int64_t now_ns, struct vdisk_cut *ret, struct err *err);
int house_power(struct vdisk_house *house, struct vdisk_disk *disk, int64_t now_ns,
                struct err *err);

// What a disk holds, kept as its saved state: in the daemon (path NULL), from which it differs by
// what is written since; or written to path, a new file. Pending writes are durable then.
int house_save(struct vdisk_house *house, struct vdisk_disk *disk, const char *path,
               struct err *err);
// Back to the saved state, or to what a file holds; shares: that is read where nothing was written
// since, and must not change. Not while the disk is used, recorded or without power.
int house_restore(struct vdisk_house *house, struct vdisk_disk *disk, const char *path, bool shares,
                  struct err *err);
int house_forget(struct vdisk_disk *disk, struct err *err); // the state; the disk stays as it is

// Begins a recording: all caches are written out and the contents of all disks are its base.
int house_record(struct vdisk_house *house, const char *path, int64_t now_ns, struct err *err);
int house_record_end(struct vdisk_house *house, struct err *err);
int house_mark(struct vdisk_house *house, const char *text, int64_t now_ns, struct err *err);

// Lines "KEY VALUE" about one disk.
void house_stats(const struct vdisk_disk *disk, int64_t now_ns, struct str *out);
