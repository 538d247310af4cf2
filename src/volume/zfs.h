// Inside of the type zfs: what a text asks for, and the ZFS that is here. Also for its tests.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/kv.h"
#include "volume/type.h"

enum zfs_role { ZFS_DISK, ZFS_LOG, ZFS_CACHE, ZFS_ROLES };
extern const char *const zfs_roles[]; // "disk", "log", "cache"

// One file or device of the pool.
struct zfs_part {
    enum zfs_role role;
    char *path;
    int64_t bytes; // of a file; 0: it is a device
};

struct zfs_shape {
    bool own;      // the pool is prony's, and goes with the volume
    char *pool;    // its name
    char *dataset; // what is made and mounted, POOL/...
    char *dir;     // where the files lie, made for them; NULL: there are none
    int layout;    // index into zfs_layouts
    int64_t group; // disks in each mirror or raidz
    bool mirrored; // the log is
    struct zfs_part *parts;
    size_t n_parts, cap_parts;
    struct kvs of_pool, of_dataset; // properties
};
extern const char *const zfs_layouts[]; // "stripe", "mirror", ...
enum { ZFS_STRIPE, ZFS_MIRROR, ZFS_RAIDZ, ZFS_RAIDZ2, ZFS_RAIDZ3 };

// Reads and checks the keys; looks at the directory and the devices, which it adds to plan. Release
// it in any case.
int zfs_shape_read(const struct volume *volume, struct plan_of_volume *plan, struct zfs_shape *ret,
                   struct err *err);
void zfs_shape_release(struct zfs_shape *shape);

// The number of files and devices of a role.
size_t zfs_shape_count(const struct zfs_shape *shape, enum zfs_role role);

// Slot `event`.
int zfs_event(const struct volume *volume, const char *event, struct str *script, struct err *err);

// ---- the ZFS that is here

enum zfs_kind { ZFS_KERNEL, ZFS_FUSE };

// Whose commands answer? ERR_ABSENT when nobody's can, naming the package.
int zfs_find(enum zfs_kind *ret, struct err *err);

// A path that is there as long as pools and datasets may be: a command that undoes one need not be
// tried without it.
const char *zfs_control(enum zfs_kind kind);

// zfs-fuse works in a daemon, which serves all pools of the machine. Appends what starts it, where
// none runs, and what stops it when the last volume that asked for it is gone. ERR_USAGE when it
// does not run and would come up with pools of the user's own.
int zfs_fuse_plan(struct plan_of_volume *plan, const char *name, struct err *err);

// What these steps do. The daemon serves until each name that was up is down; others' pools keep it
// running. down of one that is not up is nothing to do.
int zfs_fuse_up(const char *name, struct err *err);
int zfs_fuse_down(const char *name, struct err *err);
