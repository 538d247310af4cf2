// The programs of a server that are installed.
#pragma once

#include "base/err.h"

struct server_plan;

// Fills programs and version of the plan: from bin= of the wish (a directory; what lies in its bin,
// sbin or scripts counts too; or a version, where the kind has them side by side), else the newest
// that is installed, or the one that `version` wants ("" any). ERR_ABSENT names the package.
int find_programs(struct server_plan *plan, const char *version, struct err *err);
