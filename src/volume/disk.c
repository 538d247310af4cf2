#include "volume/disk.h"

#include "base/mem.h"
#include "volume/block.h"
#include "volume/journal.h"
#include "volume/limit.h"

int disk_plan(struct plan_of_volume *plan, const struct volume *volume, const char *device,
              unsigned flags, const char *point, struct err *err)
{
    // Limits come last: it is the run that they are for.
    if (block_plan(plan, volume, device, err) < 0 ||
        (!plan->journal && journal_plan(plan, volume, err) < 0) ||
        plan_file_system(plan, volume, device, flags, point, err) < 0 ||
        limit_plan(plan, volume, device, err) < 0)
        return -1;
    plan->path = mem_strdup(point);
    return 0;
}
