// What is known of file systems, beyond that mkfs.NAME makes and mount -t NAME mounts them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FS_MKFS_DEADLINE_NS (1800 * 1000000000LL) // a large disk, or discarding all of it

// The label of a file system that prony made on somebody's device: that one it may overwrite.
#define FS_LABEL "prony"

struct fs_facts {
    const char *name;
    const char *package;  // of Debian, that has its mkfs
    const char *quiet;    // options always given; NULL: none
    const char *extended; // argument of -E unless the user gives one; NULL: none
    const char *kept;     // options, or the end of extended, that keep mkfs from discarding; NULL
    const char *force;    // option that overwrites what is there; NULL: not needed
    const char *label;    // option that takes a label; NULL: none
    int label_max;
};

// Is there such a program in PATH?
bool fs_is_installed(const char *program);

// NULL for one that is not in the table: its mkfs may still be there.
const struct fs_facts *fs_find(const char *name);
