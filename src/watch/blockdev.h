// The block devices under a mounted file system, from sysfs.
#pragma once

#include "watch/storage.h"

// Fills layers (and `unknown`, when the stack cannot be followed) from fs, source and device. The
// first layers get the given depth.
void blockdev_stack(struct storage *storage, int depth);
