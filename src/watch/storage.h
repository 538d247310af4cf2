// Where a path lies: file system, mount options, and the whole stack of block devices under it down
// to the device models (partition, LVM, dm-crypt, md, bcache, loop and the file under it, zfs pool,
// btrfs members).
//
// From /proc/self/mountinfo, statfs and /sys only: no root needed, nothing is opened or written.
// What cannot be told is "unknown: REASON", never empty.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/kv.h"

#define STORAGE_LAYERS_MAX 32

struct storage_layer {
    int depth;            // 0 is what the file system is on; its parts have depth + 1
    char kind[24];        // "partition", "disk", "loop", "dm-linear", "dm-crypt", "raid1", "zpool",
                          // "file", ...
    char name[64];        // "vda2", "vg0-data", "tank"
    char device[32];      // what the kernel calls it ("dm-0"); "" where it is no block device
    char model[96];       // of a disk: vendor and model; "" elsewhere
    int rotational;       // 1, 0, -1 unknown
    char scheduler[32];   // "none", "mq-deadline"; "" where there is none
    char write_cache[16]; // "write back", "write through"; ""
    int64_t bytes;        // size; -1 unknown
};

struct storage {
    char path[PATH_MAX];   // as resolved; of the nearest existing parent when it does not exist
    char fs[32];           // "ext4", "tmpfs", "fuse.x"; "unknown: ..."
    char source[PATH_MAX]; // what is mounted: "/dev/vda2", "tank/data"
    char mount_point[PATH_MAX];
    char mount_options[1024];     // per mount and per file system, joined by commas, no duplicates
    bool in_memory;               // tmpfs, ramfs
    bool is_overlay;              // overlay, aufs: a container's own layer
    bool is_network;              // nfs, cifs, ceph, 9p, virtiofs, ...
    int64_t fs_bytes, free_bytes; // -1 unknown
    dev_t device;                 // st_dev: equal for two paths on one file system
    struct storage_layer layers[STORAGE_LAYERS_MAX];
    int n_layers;
    char unknown[160]; // why layers are missing; "" when they are whole
};

void storage_describe(const char *path, struct storage *ret);

// True when both lie on one file system, or share a disk at the bottom of their stacks.
bool storage_shares_device(const struct storage *a, const struct storage *b);

// "ext4 on vda (QEMU HARDDISK, flash, write back cache)": one line, at most size - 1 bytes.
void storage_summary(const struct storage *storage, char *out, int size);

// Adds PREFIX.path, PREFIX.filesystem, PREFIX.mount_options, PREFIX.device.N.kind, ...
// (docs/environment.md).
void storage_record(const struct storage *storage, const char *prefix, struct kvs *environment);
