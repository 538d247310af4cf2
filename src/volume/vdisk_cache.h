// What a virtual disk holds after its power was cut: the fault model (VDISK.md) as a pure
// structure. It keeps the writes that were acknowledged and are not durable yet, each with its
// contents, and what durable bytes lie beneath them. Deterministic: the same writes, cut and fate
// give the same disk.
//
// The medium always holds what the host sees, so reads and flushes cost nothing here. Under every
// block that a pending write touched its durable contents are kept; a cut puts these back and lets
// those writes survive that the fate chooses.
//
// Sequence numbers come from the caller, ascending. "Through seq" means: that write and all before.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VDISK_BLOCK 4096

// Where the bytes lie. Each returns 0 or a negative errno. Offsets and lengths are within the disk.
struct vdisk_medium {
    int (*read)(void *context, uint64_t offset, void *bytes, size_t n);
    int (*write)(void *context, uint64_t offset, const void *bytes, size_t n);
    int (*zero)(void *context, uint64_t offset, uint64_t n);
    void *context;
};

// Which of the pending writes survive a cut.
enum vdisk_survivors {
    VDISK_DROP,   // none
    VDISK_PREFIX, // the oldest ones, up to a random place, where the last of them is torn
    VDISK_RANDOM, // each unit of each write by a coin of its own
    VDISK_KEEP,   // all: the cache is protected
};

struct vdisk_fate {
    enum vdisk_survivors survivors;
    uint64_t seed;
    uint32_t unit; // bytes that are written whole or not at all, aligned: 512, 4096; 0: a write
};

struct vdisk_cut {
    uint64_t pending_writes, pending_bytes; // that were acknowledged and not durable
    uint64_t survived_units, lost_units;    // of them (a unit 0: whole writes)
};

struct vdisk_cache;

// limit_bytes bounds what may be pending, counted in blocks; 0: every write is durable at once.
struct vdisk_cache *vdisk_cache_new(const struct vdisk_medium *medium, uint64_t limit_bytes);
void vdisk_cache_free(struct vdisk_cache *cache);

// Writes to the medium and keeps a copy as pending. On an error of the medium nothing is pending
// and what the medium holds there is undefined, as on a real disk.
int vdisk_cache_write(struct vdisk_cache *cache, uint64_t seq, uint64_t offset, const void *bytes,
                      size_t n);

// The sequence number through which writes must become durable to hold the bound; 0: none.
uint64_t vdisk_cache_overflow(const struct vdisk_cache *cache);

// The newest pending write that overlaps a range; 0: none.
uint64_t vdisk_cache_newest(const struct vdisk_cache *cache, uint64_t offset, uint64_t n);

// Pending writes through seq are durable now (flush, destaging). Returns how many there were.
size_t vdisk_cache_settle(struct vdisk_cache *cache, uint64_t seq);

// The range reads zero from now on, durably. No pending write may overlap it (settle them first).
int vdisk_cache_zero(struct vdisk_cache *cache, uint64_t offset, uint64_t n);

// The power is cut: afterwards nothing is pending and the medium holds what survived. cut_seq (the
// last number given before it) is a part of the choice, beside the seed.
int vdisk_cache_cut(struct vdisk_cache *cache, uint64_t cut_seq, const struct vdisk_fate *fate,
                    struct vdisk_cut *ret);

uint64_t vdisk_cache_pending_bytes(const struct vdisk_cache *cache); // counted in blocks
uint64_t vdisk_cache_pending_writes(const struct vdisk_cache *cache);

// The coin of a unit: whether it survives in VDISK_RANDOM. unit counts from the start of the disk.
bool vdisk_fate_coin(uint64_t seed, uint64_t seq, uint64_t unit);
