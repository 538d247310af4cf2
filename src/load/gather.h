// From what was recorded to the result: the warm-up is cut, seconds are summed up, the outcome is
// put into words.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "load/client.h"
#include "load/seconds.h"
#include "load/shared.h"
#include "store/result.h"

struct gather {
    struct shared *shared;
    struct seconds *seconds; // packed; its channels are freed on the way
    const struct client *(*client)(const void *arg, int i);
    const void *arg;
    int64_t end_ns; // of the load, as it really was
    bool interrupted;
    int n_abandoned;
};

// Never fails; the result passes result_check. Loop, threads, CPU time, boot id and real times are
// the caller's to add.
struct result *gather_result(const struct gather *g);
