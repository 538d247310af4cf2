// Mounts and loop devices as the kernel sees them, and how both are let go. Only registry.c and
// volumes use it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

// Is something mounted at this directory (absolute, without symbolic links)?
bool attached_is_mounted(const char *dir);

// Unmounts what is mounted there, once: what lies below it is another's. Nothing there is success.
// Never lazily: what is busy stays, and is told. One attempt may take deadline_ns; it is tried
// again for retry_ns.
int attached_unmount(const char *dir, int64_t deadline_ns, int64_t retry_ns, struct err *err);

// Detaches the loop devices whose file this is (absolute, without symbolic links); none is success.
// Waits for as long as retry_ns until they let go.
int attached_detach(const char *file, int64_t retry_ns, struct err *err);
