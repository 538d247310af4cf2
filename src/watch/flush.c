#include "watch/flush.h"

#include <string.h>

// Thresholds (docs/doubts.md). A turn of the fastest disks takes 4 ms; writing flash itself, which
// has to be done for what lies in a volatile cache, over 100 us; and the way through file system
// and driver alone 20 us. What a guest is told of its disk, turns and cache, is what somebody typed
// for the hypervisor, and a loop device always says "write back": neither is evidence.
#define ROTATING_US 400
#define VOLATILE_US 100
#define ANY_US      20

const char *flush_too_fast(double each_us, const struct storage *place, bool is_virtual)
{
    const struct storage_layer *disk =
        place && place->n_layers > 0 ? &place->layers[place->n_layers - 1] : NULL;

    if (each_us < ANY_US)
        return "no disk flushes so fast";
    if (!disk || is_virtual || strcmp(disk->kind, "loop") == 0)
        return NULL;
    if (each_us < ROTATING_US && disk->rotational == 1)
        return "a rotating disk takes milliseconds";
    if (each_us < VOLATILE_US && strcmp(disk->write_cache, "write back") == 0)
        return "a volatile cache, which the disk says it has, takes longer to write out";
    return NULL;
}
