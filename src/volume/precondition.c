// A solid state disk is fast while it is empty; a disk that was discarded or filled first gives the
// figures that last. Filling is with random bytes, which no device can compress or merge.
#include "volume/precondition.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"

#define FILL_MAX 16

// To the end and not beyond, where dd would fail. nocreat: a device that is gone is no new file.
// exec: what is killed with prony is dd itself.
static const char fill[] =
    "exec dd if=/dev/urandom of=\"$0\" bs=1M iflag=fullblock,count_bytes oflag=direct "
    "conv=fsync,nocreat status=none count=\"$(blockdev --getsize64 \"$0\")\"";

static void plan_long(struct plan_step *step, const char *device)
{
    step->is_long = true;
    step->moves = mem_strdup(device);
}

static int plan_fill(struct plan_of_volume *plan, const char *word, const char *device,
                     bool destroys, struct err *err)
{
    int64_t times = 1;

    if (word[4] == ':' &&
        (units_parse_int(word + 5, &times, NULL) < 0 || times < 1 || times > FILL_MAX))
        return err_set(err, ERR_USAGE, "precondition: fill:N fills it N times, 1 to %d", FILL_MAX);
    for (int64_t i = 0; i < times; i++) {
        struct plan_step *step = plan_command(plan, "sh", "-c", fill, device, NULL);
        step->destroys = destroys;
        plan_long(step, device);
    }
    return 0;
}

int precondition_plan(struct plan_of_volume *plan, const struct volume *volume, const char *device,
                      unsigned *flags, struct err *err)
{
    const char *value = volume_value(volume, "precondition");
    char *copy = mem_strdup(value ? value : ""), *rest = copy;
    int rc = 0;

    for (char *word; rc == 0 && (word = strsep(&rest, " \t\n,"));) {
        if (!*word)
            continue;
        if (strcmp(word, "discard") == 0) {
            struct plan_step *step = plan_command(plan, "blkdiscard", device, NULL);
            step->is_long = true;
            step->destroys = *flags & PLAN_FS_OVERWRITE;
        } else if (strcmp(word, "read") == 0) {
            char *input = mem_printf("if=%s", device);
            plan_long(plan_command(plan, "dd", input, "of=/dev/null", "bs=1M", "iflag=direct",
                                   "status=none", NULL),
                      device);
            free(input);
        } else if (strcmp(word, "fill") == 0 || strncmp(word, "fill:", 5) == 0) {
            rc = plan_fill(plan, word, device, *flags & PLAN_FS_OVERWRITE, err);
            *flags |= PLAN_FS_ALLOCATED; // mkfs shall not discard it again
        } else {
            rc = err_set(err, ERR_USAGE,
                         "precondition=%s: must be of the words discard, fill, "
                         "fill:N and read",
                         value);
        }
    }
    free(copy);
    return rc;
}

int discard_plan(const struct volume *volume, unsigned *flags, bool *ret_mount, struct err *err)
{
    static const char *const words[] = {"no", "mkfs", "mount", NULL};
    enum { NO, MKFS, MOUNT };
    int choice;

    if (volume_choice(volume, "discard", words, MKFS, &choice, err) < 0)
        return -1;
    if (choice == NO)
        *flags |= PLAN_FS_ALLOCATED;
    *ret_mount = choice == MOUNT;
    return 0;
}
