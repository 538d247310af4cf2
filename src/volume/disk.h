// What every volume does with the disk that it has: settings, limits, what is done to it first, the
// file system and its mount.
#pragma once

#include "volume/type.h"

// Rows for the table of keys of such a type, but for those of block.h.
#define DISK_KEYS                                                                                \
    {"fs", "NAME", "file system: whatever mkfs.NAME and the kernel offer (ext4)"},               \
        {"mkfs", "{OPTION...}", "options for mkfs.NAME, cut at blanks"},                         \
        {"mount", "{OPTION,...}", "mount options"},                                              \
        {"journal", "SIZE|DEVICE", "of ext3, ext4, xfs, jfs apart: a file, or a device"},        \
        {"discard", "WORD", "no, mkfs (as it likes to), mount: what is freed, too (mkfs)"},      \
        {"precondition", "{WORD...}", "of the device, in order: discard, fill or fill:N, read"}, \
    {                                                                                            \
        "limit", "{WORD...}", "of a run's I/O, a second: rbps=SIZE wbps=SIZE riops=N wiops=N",   \
            true                                                                                 \
    }

// Appends all that follows when the device (a path or "$NAME") is there, up to the mount at point,
// and sets plan->path. flags are those of plan_file_system.
int disk_plan(struct plan_of_volume *plan, const struct volume *volume, const char *device,
              unsigned flags, const char *point, struct err *err);
