// Why the kernel refused a mount. mount(8) only lists what may have been wrong.
#pragma once

#include "base/str.h"

// argv is the command that failed: mount [-t TYPE] [-o OPTIONS] DEVICE DIRECTORY. Tries it once
// more, up to the point before anything appears in the tree, and replaces why by what the kernel
// says, if it says anything.
void mount_reason(char *const *argv, struct str *why);
