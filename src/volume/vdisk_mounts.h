// What the kernel's own tables say of mounts and loop devices: no question here goes to a file
// system, so none can hang on a daemon that does.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

// Looks a mount up by its point. 1 found, 0 not, -1 the table cannot be read. Any ret may be NULL.
int vdisk_mount_find(const char *point, unsigned *ret_major, unsigned *ret_minor,
                     struct str *ret_source);

// The first mount point of a loop device; false: it is not mounted.
bool vdisk_loop_mount(int number, struct str *ret_point);

// The loop device that is attached to a file; -1: none.
int vdisk_loop_of(const char *path);

// Every loop device attached to a file under dir.
void vdisk_loops_under(const char *dir, void (*found)(int number, const char *path, void *context),
                       void *context);
