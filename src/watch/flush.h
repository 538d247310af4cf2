// Can this storage have done a flush so fast?
#pragma once

#include <stdbool.h>

#include "watch/storage.h"

// Why a flush that takes so long cannot have reached the medium, as a clause ("a rotating disk
// takes milliseconds"); NULL when it may have. place may be NULL: not known. A guest does not
// know whether its disk rotates or has a cache: there only what no disk can do is told.
const char *flush_too_fast(double each_us, const struct storage *place, bool is_virtual);
