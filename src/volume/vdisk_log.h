// The recording of virtual disks: every write with its contents, every discard, flush and
// destaging of all disks of a daemon under one sequence number with time stamps, so that later the
// disk of any moment can be made again (vdisk_replay.h). A file:
//
//     header   "prony-vdisk-log", version, random id, monotonic and real time of the start
//     records  a head of 56 bytes, then the payload padded with zeros to 8 bytes
//     end      a record of its own that counts; without it the recorder was killed
//
// Everything is little-endian. The sum of a record covers its head, its payload and the sum of the
// record before it, so that what is damaged, missing, doubled or in another order is seen. A log
// that is cut short can be read up to there and is then refused.
//
// Order, which is what the recording is for: a write is logged before its reply; a flush is logged
// when it arrives (VDISK_LOG_FLUSH: seq) and again before its reply (VDISK_LOG_FLUSHED), with the
// sequence number that stood when it arrived: it covers all writes up to it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define VDISK_LOG_VERSION     1
#define VDISK_LOG_PAYLOAD_MAX (4u << 20)

enum vdisk_log_type {
    VDISK_LOG_DISK = 1, // a disk: its text (vdisk_spec.h) is the payload; offset: its size. Comes
                        // before its other records, and again when its options change
    VDISK_LOG_BASE,     // contents from before the recording, durable; bytes not named are zero
    VDISK_LOG_WRITE,    // offset, payload
    VDISK_LOG_ZERO,     // discard, write zeros: offset, length; durable at once
    VDISK_LOG_FLUSH,    // a flush arrived
    VDISK_LOG_FLUSHED,  // done: all writes through `through` are durable, unless the disk lies
    VDISK_LOG_DESTAGED, // through `through` durable: the cache was full, or a range was discarded
    VDISK_LOG_CUT,      // the power was cut; payload: the fate as text
    VDISK_LOG_POWER,    // and came back
    VDISK_LOG_MARK,     // payload: a text of whoever drives the recording
    VDISK_LOG_END,      // offset: number of records before it
    VDISK_LOG_TYPES,
};

struct vdisk_log_record {
    enum vdisk_log_type type;
    uint16_t disk;     // number of the disk within the log
    bool lied;         // of a VDISK_LOG_FLUSHED: acknowledged, nothing became durable
    uint64_t seq;      // ascending by one from 1 over all disks and types
    int64_t time_ns;   // CLOCK_MONOTONIC of the recording machine
    uint64_t offset;   // bytes
    uint64_t length;   // of the payload; of a VDISK_LOG_ZERO: of the range
    uint64_t through;  // a sequence number
    const void *bytes; // payload; of a reader: valid until its next call
};

// ---- writing

struct vdisk_log;

// Creates the file (mode 0600), which must not exist.
int vdisk_log_create(struct vdisk_log **ret, const char *path, struct err *err);

// Writes a record before it returns, under the next sequence number, which is put into record->seq.
// Returns 0 or a negative errno; after an error the log is broken and every later call fails so.
int vdisk_log_put(struct vdisk_log *log, struct vdisk_log_record *record);

uint64_t vdisk_log_seq(const struct vdisk_log *log);  // the last one given; 0 before the first
uint64_t vdisk_log_size(const struct vdisk_log *log); // bytes of the file
int vdisk_log_error(const struct vdisk_log *log);     // 0, or the negative errno that broke it

// Writes the end and frees. NULL is allowed.
int vdisk_log_close(struct vdisk_log *log, struct err *err);

// ---- reading

struct vdisk_log_reader;

int vdisk_log_open(struct vdisk_log_reader **ret, const char *path, struct err *err);

// The same on bytes in memory, which must stay (for tests and fuzzing).
int vdisk_log_open_bytes(struct vdisk_log_reader **ret, const void *bytes, size_t n,
                         struct err *err);

// The next record: 1; the end of a whole log: 0; -1 with err when it is damaged or cut short. What
// was read until then is sound.
int vdisk_log_next(struct vdisk_log_reader *reader, struct vdisk_log_record *ret, struct err *err);

uint64_t vdisk_log_id(const struct vdisk_log_reader *reader);
void vdisk_log_reader_free(struct vdisk_log_reader *reader);
