// The contract of a volume type: a row in the table of volume/types.c. A type only plans; running,
// listing, undoing, locking and telling are done once, for all, in volume.c and plan_run.c. A new
// type is a file and a row; nothing else knows its name.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/url.h"
#include "volume/plan.h"
#include "volume/volume.h"

struct volume_key {
    const char *name; // as typed: "size"
    const char *arg;  // what stands for its value in help: "SIZE"
    const char *help; // one line
    bool is_aside;    // where and how fast it is, and nothing of what comes to lie on it
};

struct volume_type {
    const char *name;              // "loop", lower case
    const char *summary;           // one line, for help
    const char *example;           // "loop:size=2G,fs=ext4"
    const struct volume_key *keys; // ends with name NULL; other keys are refused before plan,
    const char *others;            // unless this says in help what they are; NULL: refused
    bool fresh; // it comes up empty, and what was written is gone, or out of reach, afterwards

    // Required. Checks the values and appends to the plan what brings such a volume up; sets
    // plan->path, and plan->lock where the thing exists before. Looks only: files, /sys, who we
    // are. The order of the steps is the order of up; each names what undoes it.
    int (*plan)(const struct volume *volume, struct plan_of_volume *plan, struct err *err);

    // Optional. Called by volume_up when the lock is held, before the first step: is what it
    // destroys allowed and unused? Looks only.
    int (*before)(const struct volume *volume, struct err *err);

    // Optional: its contents can be one file. Then plan obeys wish.image, sets n_rest, and this
    // plans the commands that make path, which is not there yet, a sparse copy of the contents,
    // while the steps from n_rest on are undone.
    int (*plan_save)(const struct volume *volume, const char *path, struct plan_of_volume *plan,
                     struct err *err);

    // Optional. When all steps are done: measure, and add what is worth knowing to facts, which
    // volume_record repeats. A failure takes the volume down.
    int (*ready)(const struct volume *volume, struct kvs *facts, struct err *err);

    // Optional. Appends the shell commands that make an event (volume_event_script) happen to a
    // volume that is up, also to a kept one.
    int (*event)(const struct volume *volume, const char *event, struct str *script,
                 struct err *err);
};

// NULL-terminated, in the order of help.
extern const struct volume_type *const volume_types[];
extern const struct volume_type volume_type_dir;
extern const struct volume_type volume_type_loop;
extern const struct volume_type volume_type_device;
extern const struct volume_type volume_type_lvm;
extern const struct volume_type volume_type_md;
extern const struct volume_type volume_type_zfs;
extern const struct volume_type volume_type_btrfs;
extern const struct volume_type volume_type_vdisk;

// What a type sees of a volume.
struct volume {
    const struct volume_type *type; // NULL: kept, which has no steps
    struct spec spec;
    char *text; // spec in print
    struct volume_wish wish;
    char *name; // copy of wish.name; of a kept one: its own
    struct plan_of_volume plan;
    struct kvs facts; // of ready
    bool is_up, is_kept;
};

// The value of a key as text (NULL: not given), size or yes/no; errors name volume and key.
const char *volume_value(const struct volume *volume, const char *key);
int volume_size(const struct volume *volume, const char *key, int64_t standard, int64_t *ret,
                struct err *err);
int volume_choice(const struct volume *volume, const char *key, const char *const *choices,
                  int standard, int *ret, struct err *err);

// Where the volume is mounted, absolute: the value of `at`, or VOLUME_MOUNT_DIR/NAME. The directory
// is not there yet. NULL with err when it is. The caller frees it.
#define VOLUME_MOUNT_DIR "/run/prony-volumes"
char *volume_mount_point(const struct volume *volume, struct err *err);
