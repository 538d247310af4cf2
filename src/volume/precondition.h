// What brings a device into the state in which it is to be measured, before it is formatted.
#pragma once

#include "volume/type.h"

// Appends what the key precondition asks for; device is a path or "$NAME". *flags, of
// plan_file_system, is told what mkfs must not undo. The commands may take hours; a signal ends
// them.
int precondition_plan(struct plan_of_volume *plan, const struct volume *volume, const char *device,
                      unsigned *flags, struct err *err);

// What the key discard means: a flag for mkfs, and, with true, an option of the mount.
int discard_plan(const struct volume *volume, unsigned *flags, bool *ret_mount, struct err *err);
