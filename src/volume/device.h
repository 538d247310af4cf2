// May what is on a device be overwritten? Only volumes of type device ask; apart for its tests.
#pragma once

#include "base/err.h"

// ERR_USAGE when the device (or file) carries a file system, partition table or other signature,
// but for a file system that prony made (FS_LABEL). ERR_ABSENT in a build without libblkid.
int device_check_signature(const char *path, struct err *err);
