// Devices of this machine that a volume may overwrite: named in its text, spelled out once more by
// the user, used by nobody, and carrying nothing that is not prony's.
#pragma once

#include "base/err.h"
#include "volume/type.h"

// Adds the block device that a user named as the value of key to those that the plan overwrites
// (plan_device). Returns its path without symbolic links, which the caller frees; NULL with err
// when it is none, or stands there already.
char *device_add(struct plan_of_volume *plan, const char *key, const char *given, struct err *err);

// The same for a list, cut at blanks and commas. *ret ends with NULL; free it with device_free.
int device_add_list(struct plan_of_volume *plan, const char *key, const char *given, char ***ret,
                    struct err *err);
void device_free(char **devices);

// Appends what removes every signature from the devices (a list as above), and, when the volume
// goes, those of the types that it will have put there ("zfs_member,gpt"; blkid's words). NULL:
// what puts them there takes them away itself.
void device_plan_wipe(struct plan_of_volume *plan, char *const *devices, const char *types);

// Slot `before` of types whose plan has devices.
int device_before(const struct volume *volume, struct err *err);

// ERR_USAGE when the device (or file) carries a file system, partition table or other signature,
// but for a file system that prony made (FS_LABEL). ERR_ABSENT in a build without libblkid.
int device_check_signature(const char *path, struct err *err);
