// Between the files of the command vdisk; nothing else includes it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"

struct vdisk_options {
    struct opt_list disks;
    char *log, *output;
    int64_t hang_ns, seed, at, unit;
    int survivors;
    bool json, abort, share;
};

// What an action gets. args[0] is the action.
struct call {
    struct vdisk_options *options;
    char **args;
    int n_args;
    char *dir; // args[1] as a whole path
    struct err *err;
};

// Actions: 0, or -1 with c->err.
int vdisk_serve(struct call *c);
int vdisk_up(struct call *c);
int vdisk_down(struct call *c);

// Begins a recording of the daemon's disks.
int vdisk_record(const struct call *c, const char *file);

// A path that means the same from another directory. The last part need not be there.
char *vdisk_whole_path(const char *path);
