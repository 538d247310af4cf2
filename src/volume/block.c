// A device keeps its settings when it is let go, a loop device too. So each is read into a variable
// before it is set, and put back from it. The kernel takes them from files; which file it is
// depends on the device, which for loop is known only when it is attached, hence the small shell
// commands.
#include "volume/block.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/units.h"

#define SECTOR    512
#define AHEAD_MAX (1LL << 30)
#define QUEUE_MAX 65536

#define QUEUE_FILE(name) "\"/sys/class/block/${1##*/}/queue/" name "\""

static const char read_scheduler[] = "sed -n 's/.*\\[\\(.*\\)\\].*/\\1/p' " QUEUE_FILE("scheduler");
static const char write_scheduler[] = "echo \"$2\" >" QUEUE_FILE("scheduler");
static const char read_queue[] = "cat " QUEUE_FILE("nr_requests");
static const char write_queue[] = "echo \"$2\" >" QUEUE_FILE("nr_requests");

static void plan_file(struct plan_of_volume *plan, const char *device, const char *variable,
                      const char *read, const char *write, const char *value)
{
    char *former = mem_printf("$%s", variable);

    struct plan_step *step = plan_command(plan, "sh", "-c", read, "sh", device, NULL);
    step->variable = mem_strdup(variable);
    step = plan_command(plan, "sh", "-c", write, "sh", device, value, NULL);
    plan_undo(step, PLAN_COMMAND, "sh", "-c", write, "sh", device, former, NULL);
    free(former);
}

static int plan_scheduler(struct plan_of_volume *plan, const struct volume *volume,
                          const char *device, struct err *err)
{
    const char *name = volume_value(volume, "scheduler");
    const char *p = name;

    while (p && (isalnum((unsigned char)*p) || *p == '-' || *p == '_'))
        p++;
    if (name && (*p || !*name))
        return err_set(err, ERR_USAGE,
                       "scheduler=%s: must be a word: none, mq-deadline, bfq or kyber", name);
    if (name)
        plan_file(plan, device, "SCHEDULER", read_scheduler, write_scheduler, name);
    return 0;
}

static int plan_queue(struct plan_of_volume *plan, const struct volume *volume, const char *device,
                      struct err *err)
{
    const char *text = volume_value(volume, "queue");
    int64_t n;

    if (!text)
        return 0;
    if (units_parse_int(text, &n, NULL) < 0 || n < 1 || n > QUEUE_MAX)
        return err_set(err, ERR_USAGE, "queue=%s: must be a whole number between 1 and %d", text,
                       QUEUE_MAX);
    plan_file(plan, device, "QUEUE", read_queue, write_queue, text);
    return 0;
}

static int plan_readahead(struct plan_of_volume *plan, const struct volume *volume,
                          const char *device, struct err *err)
{
    int64_t bytes;
    char sectors[32];

    if (!volume_value(volume, "readahead"))
        return 0;
    if (volume_size(volume, "readahead", 0, &bytes, err) < 0)
        return -1;
    if (bytes % SECTOR || bytes > AHEAD_MAX)
        return err_set(err, ERR_USAGE, "readahead=%s: must be a multiple of 512 bytes, at most 1GB",
                       volume_value(volume, "readahead"));
    snprintf(sectors, sizeof(sectors), "%lld", (long long)(bytes / SECTOR));
    struct plan_step *step = plan_command(plan, "blockdev", "--getra", device, NULL);
    step->variable = mem_strdup("READAHEAD");
    step = plan_command(plan, "blockdev", "--setra", sectors, device, NULL);
    plan_undo(step, PLAN_COMMAND, "blockdev", "--setra", "$READAHEAD", device, NULL);
    return 0;
}

int block_plan(struct plan_of_volume *plan, const struct volume *volume, const char *device,
               struct err *err)
{
    bool of_disk = volume_value(volume, "scheduler") || volume_value(volume, "queue");

    if (device[0] == '/' && of_disk) {
        char *queue = mem_printf("/sys/class/block/%s/queue", strrchr(device, '/') + 1);
        bool is_disk = access(queue, F_OK) == 0;
        free(queue);
        if (!is_disk)
            return err_set(err, ERR_USAGE,
                           "scheduler and queue belong to whole disks, not to the partition %s",
                           device);
    }
    // The scheduler first: it brings a queue of its own.
    if (plan_scheduler(plan, volume, device, err) < 0 || plan_queue(plan, volume, device, err) < 0)
        return -1;
    return plan_readahead(plan, volume, device, err);
}
