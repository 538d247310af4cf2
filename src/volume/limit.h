// I/O limits of a device, by the io controller of cgroup v2. It limits processes, not devices, so
// prony, and with it the servers it starts, works in a group of its own while the volume is up.
#pragma once

#include "volume/type.h"

// Appends what the key limit asks for; device is a path or "$NAME". ERR_ABSENT when there is no
// such controller here.
int limit_plan(struct plan_of_volume *plan, const struct volume *volume, const char *device,
               struct err *err);

// The same with the controller found: root is where cgroup v2 is mounted, own the group of this
// process. For tests.
int limit_plan_in(struct plan_of_volume *plan, const struct volume *volume, const char *device,
                  const char *root, const char *own, struct err *err);
