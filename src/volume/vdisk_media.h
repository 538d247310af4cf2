// Where the contents of a virtual disk lie: a sparse file, in memory (memfd) or the user's. Read
// and written by system calls, not mapped, so that a full file system is an error and no signal.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "volume/vdisk_cache.h"

// path NULL: memory. A file that is not there is made (mode 0600, the user of sudo owns it); one of
// this size is taken as it is; any other is refused, and one that another disk has open: it is
// locked (flock) until the descriptor is closed. Returns a descriptor, or -1 with err.
int vdisk_media_open(const char *path, int64_t size, struct err *err);

// The calls for vdisk_cache. fd must stay where it is.
struct vdisk_medium vdisk_media_of(int *fd);

// The first multiple of chunk at or after offset whose chunk may hold data; INT64_MAX when none.
uint64_t vdisk_media_next_data(int fd, uint64_t offset, uint64_t chunk);
