// Settings of a block device that matter to a database: I/O scheduler, read-ahead, queue.
#pragma once

#include "volume/type.h"

// Rows for the table of keys of a type that has a block device.
#define BLOCK_KEYS                                                                   \
    {"scheduler", "NAME", "I/O scheduler: none, mq-deadline, bfq, kyber", true},     \
        {"readahead", "SIZE", "how far the kernel reads ahead; 0 not at all", true}, \
    {                                                                                \
        "queue", "N", "requests that the scheduler holds", true                      \
    }

// Appends what sets them, as the keys of the volume say, and puts the former values back. device is
// a path or "$NAME".
int block_plan(struct plan_of_volume *plan, const struct volume *volume, const char *device,
               struct err *err);
