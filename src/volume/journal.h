// The journal (log) of a file system on a device of its own: of ext3, ext4, xfs and jfs.
#pragma once

#include "volume/type.h"

// Appends what makes the device of the key journal, if it is given, and sets plan->journal. Before
// plan_file_system.
int journal_plan(struct plan_of_volume *plan, const struct volume *volume, struct err *err);

// For plan_file_system, where plan->journal is set. make: what turns the device into a journal,
// before mkfs; users is the value of the key mkfs, or NULL. mkfs: appends to its step.
int journal_make(struct plan_of_volume *plan, const char *fs, const char *users, struct err *err);
void journal_add_mkfs(const struct plan_of_volume *plan, struct plan_step *step, const char *fs,
                      const char *users);
// What the mount needs to know of it, as an option; NULL: nothing. The caller frees it.
char *journal_mount_option(const struct plan_of_volume *plan, const char *fs);
